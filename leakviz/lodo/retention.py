"""Which features carry a score from source to source: coefficients with each source left out in turn.

Retention of a feature is the smallest ratio of its coefficient without a source to its coefficient with all
of them, on one fixed basis. Near 1, no single source carries it; near 0, one does; below 0, it changes sign.
Source: arXiv 2602.14161, section 3; what is undefined, the null and the row bootstrap are this package's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from leakviz.decimals import as_decimal, as_fraction_of_one
from leakviz.errors import InputError
from leakviz.lodo import fits
from leakviz.lodo.inputs import (
    Labelled,
    check_features,
    check_groups,
    check_labelled,
    fingerprint_of,
    whole,
)
from leakviz.lodo.protocol import shuffle_sources

QUADRANTS = ("pure shortcut", "context-dependent", "robust, correlated", "robust, specific")
"""Low retention with low and high firing ratio, then high retention with low and high firing ratio."""

UNDEFINED = ("", "constant", "small", "not significant")
"""Why a retention is undefined, in the order in which it is asked; the first means that it is defined."""

UNDIVIDED = (
    "every source is one group or one row, so nothing can be drawn within a source, and to shuffle sources only gives them "
    "other names"
)
"""Why there is no interval of a coefficient, and no null."""

RETENTION_NAMES = {
    "coefficient": "coefficient of the logistic regression on all rows, per standard deviation",
    "retention": "smallest ratio of the coefficient without a source to the coefficient with all",
    "firing_ratio": "share of positives in which the feature is above 0, over the same share of negatives",
    "null_median": "median retention where source labels are shuffled within class",
}


_WIDE = 500  # features from which Newton's Hessian costs more than many gradient steps


class Basis(NamedTuple):
    """Features on one scale, fixed for all fits: (X - centre) / scale; sparse features are not centred."""

    Z: Any
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]


def retention(
    X: Any,
    y: ArrayLike,
    source: ArrayLike,
    *,
    features: Sequence[str] | None = None,
    C: float = 1.0,
    class_weight: str | None = "balanced",
    groups: ArrayLike | None = None,
    smallest: object = "0.01",
    bootstrap: int = 200,
    null_draws: int = 20,
    level: float | str = 0.95,
    seed: int = 0,
    progress: fits.Progress | bool | None = None,
    n_jobs: int | None = -1,
) -> xr.Dataset:
    """Measure how much of each feature's coefficient is left when any one source is left out.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame, shape (n, d)
        Features, all numbers.
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Labels; both must occur.
    source : array-like of str or int, shape (n,)
        Where each row is from.
    features : sequence of str, optional
        Names, all different; by default a DataFrame's columns, or ``f0``, ``f1`` and so on.
    C : float, default 1
        Inverse strength of the ridge penalty, for all n rows. It is scaled to the size of each fold: without
        a source, the penalty weighs as much against the mean loss as with all.
    class_weight : {"balanced", None}, default "balanced"
        Whether both labels weigh the same in every fit, as in the default model of `lodo`, or each row.
    groups : array-like of str or int, shape (n,), optional
        Rows of one group are drawn and shuffled together.
    smallest : decimal, default "0.01"
        Retention is undefined where the coefficient is below this share of the largest one.
    bootstrap : int, default 200
        Samples of rows, within each source and label. Retention is undefined where the coefficient's
        percentile interval contains 0. With 0 this is not asked.
    null_draws : int, default 20
        Shuffles of source labels within class: what retention is when sources do not differ.
        Neither can be done where every source is one group or one row.
    level : float or decimal string, default 0.95
        Confidence of the coefficients' intervals.
    seed : int, default 0
        Of the bootstrap and the shuffles.
    progress, n_jobs
        As for `lodo`.

    Returns
    -------
    xarray.Dataset
        Over ``feature``, ``source`` and ``draw``:

        ``coefficient``, ``coefficient_low``, ``coefficient_high`` : (feature)
            Of all rows, per standard deviation. The interval is nan without
            bootstrap.
        ``coefficient_without`` : (source, feature)
            With the source left out, on the same basis; nan where without it one label is left.
        ``retention`` : (feature)
            The smallest of ``coefficient_without / coefficient`` over the sources that can be left out; it
            may be above 1 and below 0; nan where undefined.
        ``undefined`` : (feature)
            Why: "constant", "small", "not significant", or "" where it is defined.
        ``sign_flip`` : (feature)
            Retention is below 0.
        ``argmin_source`` : (feature)
            The source without which the coefficient is smallest; "" where undefined.
        ``null_retention`` : (draw, feature)
            The same with shuffled sources; ``null_median`` and ``null_low`` (5 %) over draws.
        ``firing_positive``, ``firing_negative``, ``firing_ratio`` : (feature)
            Share of positives and of negatives in which the feature is above 0, and their ratio; nan for a
            feature that is ever negative or never fires.
        ``why_not`` : (source)
            Why a source cannot be left out (training has one label without it), "" where it can.
        ``centre``, ``scale`` : (feature); ``intercept``
            The fixed basis: coefficients belong to (X - centre) / scale.

        Attributes ``model`` (in words), ``class_weight`` ("balanced" or "none"), ``C`` and so on. Retention is
        about this logistic regression, whatever model gave the scores that it is shown beside. Where every source
        is one group or one row, the attribute ``undefined`` says why intervals and null are nan: nothing can be
        drawn within a source, and shuffling gives the same sources other names.

    Raises
    ------
    InputError
        If input cannot be used, or no source can be left out.

    Notes
    -----
    arXiv 2602.14161, section 3.3. The scaler is fitted once on all rows, since a ratio of coefficients on
    two scales would mean nothing; no row is scored here.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source = np.repeat(["north", "south", "west"], 80)
    >>> y = rng.integers(0, 2, 240)
    >>> X = np.c_[y, 3 * y * (source == "north")] + rng.normal(size=(240, 2))
    >>> result = retention(X, y, source, features=["everywhere", "north only"], null_draws=2, n_jobs=1)
    >>> result.argmin_source.values.tolist()[1], bool(result.retention[1] < 0.5)
    ('north', True)
    """
    labelled = check_labelled(y, source)
    group_codes = check_groups(groups, labelled.n)
    matrix, names = _named_matrix(X, labelled.n, features)
    strength = _positive(C, "C")
    share = float(as_fraction_of_one(smallest, name="smallest"))
    whole(bootstrap, "bootstrap", 0)
    whole(null_draws, "null_draws", 0)
    whole(seed, "seed", 0)
    balanced = _is_balanced(class_weight)
    tail = float((1 - as_fraction_of_one(level, name="level")) / 2)
    unfit = [fits.why_not(labelled.y, labelled.code != k) for k in range(len(labelled.names))]
    fits.check_sources(labelled, unfit)

    asked = {"bootstrap": bootstrap, "null_draws": null_draws}
    undivided = fits.whole_sources(labelled, group_codes)
    if undivided:
        bootstrap = null_draws = 0
    basis = fixed_basis(matrix)
    K, d = len(labelled.names), len(names)
    shuffled = [
        shuffle_sources(labelled, group_codes, np.random.default_rng([seed, 7, draw]))
        for draw in range(null_draws)
    ]
    units = _units(labelled, group_codes)
    which: list[Any] = [np.ones(labelled.n)]
    which += [(code, k) for code in (labelled.code, *shuffled) for k in range(K)]
    which += [(units, [seed, 8, draw]) for draw in range(bootstrap)]
    tasks = [(basis.Z, labelled.y, strength, one, balanced) for one in which]
    done = fits.run(_coefficients_or_nan, tasks, n_jobs=n_jobs, progress=progress, name="retention")

    coefficients = np.array([w for w, _ in done])
    w, without = coefficients[0], coefficients[1 : 1 + K]
    null = coefficients[1 + K : 1 + K + null_draws * K].reshape(null_draws, K, d)
    low, high = np.full((2, d), np.nan)
    if bootstrap:
        low, high = np.quantile(coefficients[1 + K + null_draws * K :], [tail, 1 - tail], axis=0)
    why = _why_undefined(w, low, high, share)
    known = why == ""
    kept, argmin = _smallest_ratio(w, without, known)
    null_kept = np.array([_smallest_ratio(w, of_draw, known)[0] for of_draw in null]).reshape(null_draws, d)
    result = xr.Dataset(
        {
            "coefficient": ("feature", w),
            "coefficient_low": ("feature", low),
            "coefficient_high": ("feature", high),
            "coefficient_without": (("source", "feature"), without),
            "retention": ("feature", kept),
            "undefined": ("feature", why),
            "sign_flip": ("feature", kept < 0),
            "argmin_source": ("feature", np.where(known, np.array(labelled.names)[argmin], "")),
            "null_retention": (("draw", "feature"), null_kept),
            "null_median": ("feature", _quantile(null_kept, 0.5)),
            "null_low": ("feature", _quantile(null_kept, 0.05)),
            **_firing(matrix, labelled.y),
            "why_not": ("source", np.array(unfit)),
            "centre": ("feature", basis.centre),
            "scale": ("feature", basis.scale),
            "intercept": ((), done[0][1]),
        },
        {"feature": list(names), "source": list(labelled.names)},
        {
            "model": model_in_words(class_weight),
            "class_weight": class_weight or "none",
            "C": strength,
            "smallest": str(smallest),
            **asked,
            "level": str(level),
            **({"undefined": UNDIVIDED} if undivided else {}),
            "input_hash": fingerprint_of(
                matrix,
                labelled,
                features=names,
                C=strength,
                class_weight=class_weight,
                smallest=share,
                **asked,
                level=str(level),
                seed=seed,
                groups=None if group_codes is None else group_codes.tolist(),
            ),
        },
    )
    return describe(result)


def sweep_retention(
    result: xr.Dataset, *, thresholds: ArrayLike, firing_ratios: ArrayLike, top: int | None = None
) -> xr.Dataset:
    """Answer, for every retention threshold and every firing ratio at once, which features are shortcuts.

    Parameters
    ----------
    result : xarray.Dataset
        As `retention` returns it; at least ``coefficient``, ``retention`` and ``argmin_source`` over
        ``feature``.
    thresholds : array-like of floats or decimal strings, shape (T,)
        Retention thresholds, strictly increasing. A feature whose retention is below is a shortcut; one
        that changes sign is one, and is counted apart too.
    firing_ratios : array-like of floats or decimal strings, shape (F,)
        Firing ratios, from 0 up, strictly increasing. A feature is specific if it fires at least that many
        times as often in the class that its coefficient speaks for.
    top : int, optional
        Look at the features with the largest coefficients only (by size, either sign); by default at all.

    Returns
    -------
    xarray.Dataset
        Over ``retention_threshold`` (T), ``firing_ratio`` (F), ``quadrant`` (4), ``source`` and
        ``feature``:

        ``shortcut`` : bool (retention_threshold, feature)
        ``specific`` : bool (firing_ratio, feature)
        ``n_shortcuts``, ``share`` : (retention_threshold)
            How many, and their share of the features with a defined retention (nan if there are none).
        ``null_share``, ``null_share_low``, ``null_share_high`` : (retention_threshold)
            The share that shuffled sources give: mean, 5 % and 95 % over draws. Only where ``result`` has
            ``null_retention``.
        ``null_median_share`` : (retention_threshold)
            Share of features whose median null retention is below. Only where ``result`` has
            ``null_median``.
        ``shortcuts_by_source`` : (retention_threshold, source)
            By the source that they depend on.
        ``quadrant_count`` : (retention_threshold, firing_ratio, quadrant)
            "pure shortcut" (low retention, not specific), "context-dependent" (low, specific), "robust,
            correlated" (high, not specific), "robust, specific" (high, specific: the paper's "truly
            generalizable", which one benchmark cannot show).
        ``n_features``, ``n_defined``, ``n_sign_flips``, ``n_above_one``, ``n_without_firing``
            Features looked at; with a retention; that change sign; with a retention above 1; with a
            retention and without a firing ratio, so in no quadrant.

    Raises
    ------
    InputError
        If a variable is missing, or the stops are not strictly increasing decimals.

    Notes
    -----
    arXiv 2602.14161, section 5 (retention below 0.5 among the top 50) and its quadrants. The printed
    features are split at a firing ratio between 1.40 and 1.56.

    Examples
    --------
    >>> from leakviz import load_published_retention
    >>> sweep = sweep_retention(load_published_retention(), thresholds=["0.5"], firing_ratios=["1.5"])
    >>> sweep.n_shortcuts.values.tolist(), sweep.quadrant_count.values.ravel().tolist()
    ([10], [5, 5, 5, 5])
    """
    for name in ("coefficient", "retention", "argmin_source"):
        if name not in result or result[name].dims != ("feature",):
            raise InputError(f"result needs {name!r} over 'feature'; give what retention returned")
    cuts, ratios = _stops(thresholds, "thresholds"), _stops(firing_ratios, "firing_ratios")
    if ratios[0] < 0:
        raise InputError(f"firing_ratios must be from 0 up, got {ratios[0]:g}")
    if top is not None:
        whole(top, "top", 1)
        order = np.argsort(-np.abs(result["coefficient"].values), kind="stable")[:top]
        result = result.isel(feature=np.sort(order))

    kept = result["retention"].values
    known = ~np.isnan(kept)
    shortcut = kept < cuts[:, np.newaxis]  # nan is below nothing
    firing = directed_firing(result)
    fires = ~np.isnan(firing)
    specific = firing >= ratios[:, np.newaxis]
    low, high = shortcut & fires, ~shortcut & (known & fires)
    counts = [
        rows.astype(np.float64) @ s.T.astype(np.float64)
        for rows in (low, high)
        for s in (~specific, specific)
    ]
    names = np.array(_source_names(result))
    by_source = [(shortcut & (result["argmin_source"].values == name)).sum(axis=1) for name in names]
    variables: dict[str, Any] = {
        "shortcut": (("retention_threshold", "feature"), shortcut),
        "specific": (("firing_ratio", "feature"), specific),
        "n_shortcuts": ("retention_threshold", shortcut.sum(axis=1)),
        "share": ("retention_threshold", _share(shortcut, known)),
        "shortcuts_by_source": (
            ("retention_threshold", "source"),
            np.array(by_source, dtype=np.int64).reshape(len(names), cuts.size).T,
        ),
        "quadrant_count": (
            ("retention_threshold", "firing_ratio", "quadrant"),
            np.stack(counts, axis=-1).astype(np.int64),
        ),
        "n_features": ((), known.size),
        "n_defined": ((), int(known.sum())),
        "n_sign_flips": ((), int((kept < 0).sum())),
        "n_above_one": ((), int((kept > 1).sum())),
        "n_without_firing": ((), int((known & ~fires).sum())),
    }
    if "null_retention" in result and result.sizes["draw"]:
        null = result["null_retention"].transpose("draw", "feature").values
        shares = np.array([_share(draw < cuts[:, np.newaxis], known) for draw in null])
        for name, values in (
            ("null_share", shares.mean(axis=0)),
            ("null_share_low", _quantile(shares, 0.05)),
            ("null_share_high", _quantile(shares, 0.95)),
        ):
            variables[name] = ("retention_threshold", values)
    if "null_median" in result:
        below = result["null_median"].values < cuts[:, np.newaxis]
        variables["null_median_share"] = ("retention_threshold", _share(below, known))
    return xr.Dataset(
        variables,
        {
            "retention_threshold": cuts,
            "firing_ratio": ratios,
            "quadrant": list(QUADRANTS),
            "source": names,
            "feature": result["feature"].values,
        },
        {name: result.attrs[name] for name in ("title", "provenance") if name in result.attrs},
    )


def directed_firing(result: xr.Dataset) -> NDArray[np.float64]:
    """Return how many times as often each feature fires in the class that its coefficient speaks for.

    For a positive coefficient that is the firing ratio, for a negative one its inverse; nan where there
    is none.
    """
    if "firing_ratio" not in result:
        return np.full(result.sizes["feature"], np.nan)
    ratio = result["firing_ratio"].values.astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.where(result["coefficient"].values < 0, 1 / ratio, ratio)


def fixed_basis(matrix: Any) -> Basis:
    """Return features divided by their standard deviation, dense ones centred; a constant one becomes 0."""
    if is_sparse(matrix):
        mean = np.asarray(matrix.mean(axis=0)).ravel()
        square = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
        scale = np.sqrt(np.maximum(square - mean**2, 0))
        scale[scale < 1e-10 * np.sqrt(square)] = 0
        scale[scale == 0] = 1
        return Basis(matrix.multiply(1 / scale).tocsr(), np.zeros(scale.size), scale)
    centre = matrix.mean(axis=0)
    scale = matrix.std(axis=0)
    # The rounding of a mean gives a constant column a spread of some 1e-16 of its size.
    constant = matrix.max(axis=0) == matrix.min(axis=0)
    centre = np.where(constant, matrix[0], centre)
    scale = np.where(constant | (scale == 0), 1, scale)
    return Basis((matrix - centre) / scale, centre, scale)


def model_in_words(class_weight: str | None) -> str:
    """Say which logistic regression retention is about.

    Examples
    --------
    >>> model_in_words("balanced")
    'logistic regression on standardised features, classes balanced'
    """
    weighted = "classes balanced" if class_weight == "balanced" else "classes not balanced"
    return f"logistic regression on standardised features, {weighted}"


def _is_balanced(class_weight: str | None) -> bool:
    if class_weight not in ("balanced", None):
        raise InputError(f"class_weight must be 'balanced' or None, got {class_weight!r}")
    return class_weight == "balanced"


def _coefficients_or_nan(
    Z: Any, y: NDArray[np.int64], C: float, which: Any, balanced: bool
) -> tuple[NDArray[np.float64], float]:
    """Return `fit_coefficients`, or nan where one label is left."""
    if fits.why_not(y, _times(which) > 0):
        return np.full(Z.shape[1], np.nan), np.nan
    return fit_coefficients(Z, y, C, which, balanced)


def fit_coefficients(
    Z: Any, y: NDArray[np.int64], C: float, which: Any, balanced: bool = True
) -> tuple[NDArray[np.float64], float]:
    """Fit a logistic regression on some of the rows; return its coefficients and intercept.

    Parameters
    ----------
    Z : array or CSR matrix, shape (n, d)
        On the fixed basis.
    y : array of 0 and 1, shape (n,)
    C : float
        For n rows.
    which : array of shape (n,), or (code, k), or (units, seed)
        How often each row counts; or sources and the one to leave out; or what to sample by bootstrap.
    balanced : bool
        Whether both labels weigh the same.

    Notes
    -----
    The weights always add up to n, whatever the number of rows: this is what scales C to the fold's size.
    """
    times = _times(which)
    rows = np.flatnonzero(times)
    label, counted = y[rows], times[rows]
    each = np.bincount(label, counted, minlength=2)
    weight = counted * ((y.size / (2 * each))[label] if balanced else y.size / each.sum())
    if not is_sparse(Z) and Z.shape[1] <= _WIDE:
        return _newton(Z[rows], label, C * weight)
    model = LogisticRegression(C=C, tol=1e-6, max_iter=10_000)
    model.fit(Z[rows], label, sample_weight=weight)
    return model.coef_[0].astype(np.float64), float(model.intercept_[0])


def _newton(Z: NDArray, y: NDArray, weight: NDArray) -> tuple[NDArray[np.float64], float]:
    """Minimise |w|^2 / 2 + sum weight * log-loss, to rounding; the intercept is free.

    Retention needs hundreds of small fits and takes ratios of them: Newton's method is faster there than a
    general solver, and exact. The penalty makes the problem strictly convex, so steps that are halved until
    they descend cannot fail.
    """
    design = np.column_stack([Z, np.ones(len(Z))])
    penalty = np.append(np.ones(Z.shape[1]), 0.0)
    sign = 2.0 * y - 1

    def loss(b: NDArray) -> float:
        return float(penalty @ b**2 / 2 + weight @ np.logaddexp(0, -sign * (design @ b)))

    b = np.zeros(design.shape[1])
    now = loss(b)
    for _ in range(100):
        p = expit(design @ b)
        gradient = design.T @ (weight * (p - y)) + penalty * b
        hessian = design.T @ (design * (weight * p * (1 - p))[:, np.newaxis]) + np.diag(penalty)
        hessian[-1, -1] += 1e-12  # all p at 0 or 1 would leave the intercept without curvature
        step = np.linalg.solve(hessian, gradient)
        if gradient @ step <= 1e-11 * (1 + now):  # the last step squares what is left of the error
            b = b - step
            break
        while (lower := loss(b - step)) > now:
            step = step / 2
        b, now = b - step, lower
    return b[:-1], float(b[-1])


def is_sparse(matrix: Any) -> bool:
    """Tell whether features are a sparse matrix."""
    return issparse(matrix)


def describe(result: xr.Dataset) -> xr.Dataset:
    """Return the Dataset with its variables named for a reader."""
    for name, words in RETENTION_NAMES.items():
        if name in result:
            result[name].attrs["long_name"] = words
    return result


def _times(which: Any) -> NDArray[np.float64]:
    if not isinstance(which, tuple):
        return which
    if isinstance(which[0], np.ndarray):
        code, left_out = which
        return (code != left_out).astype(np.float64)
    (unit, strata), seed = which
    rng = np.random.default_rng(seed)
    order = np.argsort(strata, kind="stable")
    times = np.zeros(strata.size)
    for members in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        drawn = rng.integers(members.size, size=members.size)
        times[members] = np.bincount(drawn, minlength=members.size)
    return times[unit]


def _units(labelled: Labelled, groups: NDArray[np.int32] | None) -> list[NDArray]:
    """Return what the bootstrap draws: the unit of each row, and the stratum of each unit."""
    if groups is None:
        return [np.arange(labelled.n), 2 * labelled.code + labelled.y]
    _, first, unit = np.unique(groups, return_index=True, return_inverse=True)
    return [unit, 2 * labelled.code[first] + labelled.y[first]]


def _named_matrix(X: Any, n: int, features: Sequence[str] | None) -> tuple[Any, tuple[str, ...]]:
    checked = check_features(X, n)
    if len(checked.shape) != 2:
        raise InputError("X must be a matrix of numbers; turn texts into features first")
    names: Sequence[Any] = [f"f{j}" for j in range(checked.shape[1])]
    if isinstance(checked, pd.DataFrame):
        for name, column in checked.items():
            if column.dtype.kind not in "biuf":
                raise InputError(f"X: column {name!r} holds {column.dtype}, not numbers; encode or drop it")
        names = list(checked.columns)
        checked = checked.to_numpy(dtype=np.float64)
    names = names if features is None else list(features)
    if len(names) != checked.shape[1]:
        raise InputError(f"features has {len(names)} names and X has {checked.shape[1]} columns")
    texts = tuple(str(name) for name in names)
    twice = pd.Series(texts).duplicated().to_numpy()
    if twice.any():
        raise InputError(f"features has {texts[int(np.argmax(twice))]!r} twice; give different names")
    return checked, texts


def _why_undefined(w: NDArray, low: NDArray, high: NDArray, smallest: float) -> NDArray[np.str_]:
    size = np.abs(w)
    small = size < smallest * size.max()
    unsure = (low <= 0) & (high >= 0)
    return np.select([w == 0, small, unsure], UNDEFINED[1:], default="")


def _smallest_ratio(
    w: NDArray, without: NDArray, known: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the smallest ratio over sources, nan where it is not to be known, and its source."""
    ratio = without / np.where(w == 0, 1, w)
    ratio = np.where(np.isnan(ratio), np.inf, ratio)  # a source that cannot be left out is never the smallest
    smallest = ratio.min(axis=0)
    return np.where(known & np.isfinite(smallest), smallest, np.nan), ratio.argmin(axis=0)


def _firing(matrix: Any, y: NDArray[np.int64]) -> dict[str, Any]:
    positive, negative = (
        np.asarray((matrix[y == label] > 0).mean(axis=0), dtype=np.float64).ravel() for label in (1, 0)
    )
    lowest = matrix.min(axis=0)
    lowest = lowest.toarray().ravel() if is_sparse(lowest) else lowest
    defined = (lowest >= 0) & (positive + negative > 0)
    ratio = np.full(positive.size, np.nan)
    ratio[defined & (negative == 0)] = np.inf
    np.divide(positive, negative, out=ratio, where=defined & (negative > 0))
    return {
        "firing_positive": ("feature", np.where(lowest >= 0, positive, np.nan)),
        "firing_negative": ("feature", np.where(lowest >= 0, negative, np.nan)),
        "firing_ratio": ("feature", ratio),
    }


def _quantile(values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return a quantile over the first axis, nan where a column holds nan or there is no row."""
    if not len(values):
        return np.full(values.shape[1:], np.nan)
    return np.quantile(values, share, axis=0)


def _share(chosen: NDArray[np.bool_], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    counts = (chosen & known).sum(axis=-1).astype(np.float64)
    return counts / known.sum() if known.any() else np.full(counts.shape, np.nan)


def _source_names(result: xr.Dataset) -> list[str]:
    if "source" in result.coords:
        return [str(name) for name in result["source"].values]
    return sorted({str(name) for name in result["argmin_source"].values} - {""})


def _positive(value: float, name: str) -> float:
    number = float(as_decimal(value, name=name))
    if number <= 0:
        raise InputError(f"{name} must be above 0, got {value!r}")
    return number


def _stops(values: ArrayLike, name: str) -> NDArray[np.float64]:
    given: Iterable[Any] = np.asarray(values, dtype=object).ravel()  # strings stay strings
    array = np.array([float(as_decimal(value, name=name)) for value in given])
    if array.size == 0:
        raise InputError(f"{name} is empty; give at least one stop")
    if (np.diff(array) <= 0).any():
        row = int(np.argmax(np.diff(array) <= 0)) + 1
        raise InputError(
            f"{name} must be strictly increasing; first that is not: {name}[{row}] = {array[row]:g}"
        )
    return array
