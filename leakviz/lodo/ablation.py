"""Take the shortcuts away and score again, with every source left out of the search for shortcuts too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.decimals import as_decimal, as_fraction_of_one
from leakviz.errors import InputError
from leakviz.lodo import fits
from leakviz.lodo.inputs import check_groups, check_labelled, fingerprint_of, whole
from leakviz.lodo.pairs import auroc_gap, pair_table
from leakviz.lodo.retention import (
    _is_balanced,
    _named_matrix,
    _positive,
    fit_coefficients,
    fixed_basis,
    model_in_words,
)
from leakviz.statistics import auroc, auroc_interval

ARMS = ("all features", "without shortcuts")


def ablate_shortcuts(
    X: Any,
    y: ArrayLike,
    source: ArrayLike,
    *,
    features: Sequence[str] | None = None,
    threshold: object = "0.5",
    C: float = 1.0,
    class_weight: str | None = "balanced",
    groups: ArrayLike | None = None,
    smallest: object = "0.01",
    draws: int = 5,
    steps: int = 40,
    folds: int = 5,
    level: float | str = 0.95,
    seed: int = 0,
    progress: fits.Progress | bool | None = None,
    n_jobs: int | None = -1,
) -> xr.Dataset:
    """Leave out each source in turn, drop the features that are shortcuts among the others, and score it.

    The list of shortcuts for a source never sees that source: retention is computed anew among the sources
    that are left, so a better score cannot come from having looked.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame, shape (n, d)
        Features, all numbers.
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Labels; both must occur.
    source : array-like of str or int, shape (n,)
        Where each row is from; three or more.
    features : sequence of str, optional
        Names; by default a DataFrame's columns, or ``f0``, ``f1`` and so on.
    threshold : decimal, default "0.5"
        A feature whose retention among the sources that are left is below is dropped.
    C : float, default 1
        As for `retention`.
    class_weight : {"balanced", None}, default "balanced"
        As for `retention`.
    groups : array-like of str or int, shape (n,), optional
        Groups of the source that is left out leave training too, and stay whole in cross-validation.
    smallest : decimal, default "0.01"
        A coefficient below this share of the largest one has no retention, and stays.
    draws : int, default 5
        The control: how often as many features are dropped at random instead.
    steps : int, default 40
        How many numbers of features to take away step by step, at most; with 0 this is not asked.
    folds : int, default 5
        Of the cross-validation that the steps are compared with.
    level : float or decimal string, default 0.95
        Confidence of the intervals.
    seed : int, default 0
        Of the control.
    progress, n_jobs
        As for `lodo`.

    Returns
    -------
    xarray.Dataset
        Over ``arm`` ("all features", "without shortcuts"), ``row``, ``source``, ``feature``, ``draw``:

        ``score`` : (arm, row)
            Logits of rows whose source was left out.
        ``auc``, ``auc_low``, ``auc_high``, ``within_mean`` : (arm)
            Pooled LODO AUROC (DeLong), and the mean of the sources' own.
        ``change``, ``change_low``, ``change_high``
            AUROC without shortcuts minus with all features; paired DeLong interval.
        ``random_change`` : (draw)
            The same with as many random features dropped.
        ``dropped`` : bool (source, feature)
            The shortcuts among the other sources.
        ``n_dropped`` : (source)
        ``step_auc``, ``step_auc_low``, ``step_auc_high`` : (ablation_protocol, removed)
            Pooled AUROC in cross-validation ("cv") and with sources left out ("lodo"), where the features
            with the lowest retention are taken away, ``removed`` of them; "cv" is nan, and the attribute
            ``undefined`` says why, where every source is one group or one row. Retention is computed anew among the
            training rows of every fold and for every source, so each model has its own order; features
            without a retention go last.
        ``step_change``, ``step_change_low``, ``step_change_high`` : (ablation_protocol, removed)
            Against none taken away, with a paired DeLong interval.
        ``step_random`` : (draw, removed)
            The control: "lodo" where features are taken away in random order.
        ``why_not`` : (source)
            Why a source cannot be left out, "" where it can; its score is nan, and it is in no value.

    Raises
    ------
    InputError
        If input cannot be used, there are fewer than three sources, or no source can be left out.

    Notes
    -----
    arXiv 2602.14161, section 5.3 and Table 13, which ablates one list for all sources and finds a change
    of 0.001. Here the search is nested. Significance is not asked, since a bootstrap in every fold would
    cost a hundred times as much. Where every feature that varies is dropped, all scores are 0:
    ties.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source = np.repeat(["north", "south", "west", "east"], 80)
    >>> y = rng.integers(0, 2, 320)
    >>> X = np.c_[y, 3 * y * (source == "north")] + rng.normal(size=(320, 2))
    >>> result = ablate_shortcuts(X, y, source, draws=1, n_jobs=1)
    >>> result.dropped.sel(source="south").values.tolist()
    [False, True]
    """
    labelled = check_labelled(y, source)
    codes = check_groups(groups, labelled.n)
    matrix, names = _named_matrix(X, labelled.n, features)
    cut = float(as_decimal(threshold, name="threshold"))
    strength = _positive(C, "C")
    balanced = _is_balanced(class_weight)
    share = float(as_fraction_of_one(smallest, name="smallest"))
    whole(draws, "draws", 0)
    whole(steps, "steps", 0)
    whole(folds, "folds", 2)
    whole(seed, "seed", 0)
    K, d = len(labelled.names), len(names)
    if K < 3:
        raise InputError(f"source has {K} values; without one, retention among the others needs two or more")
    training = [fits.without_source(labelled.code, codes, k) for k in range(K)]
    unfit = [fits.why_not(labelled.y, train) for train in training]
    fits.check_sources(labelled, unfit)
    counts = np.unique(np.linspace(0, d - 1, min(steps, d)).round().astype(int)) if steps else np.arange(0)
    settings = _Settings(strength, balanced, cut, share, draws, seed, tuple(counts.tolist()))
    left_out = [k for k in range(K) if not unfit[k]]
    split = [(training[k], labelled.code == k, k, True) for k in left_out]
    divided = not fits.whole_sources(labelled, codes)
    if steps and divided:
        fold = fits.cross_validation(labelled, codes, folds, seed)
        split += [(fold != number, fold == number, K + number, False) for number in range(folds)]
    tasks = [(matrix, labelled.y, labelled.code, *one, settings) for one in split]
    done = fits.run(_ablate_one, tasks, n_jobs=n_jobs, progress=progress, name="ablation")
    dropped = np.zeros((K, d), dtype=bool)
    arms = np.full((2 + draws, labelled.n), np.nan)
    stepped = np.full((2 + draws, counts.size, labelled.n), np.nan)  # cv, lodo, lodo in random orders
    for (_, test, place, by_source), (mask, of_arms, of_steps) in zip(split, done, strict=True):
        if by_source:
            dropped[place], arms[:, test], stepped[1:, :, test] = mask, of_arms, of_steps
        else:
            stepped[0][:, test] = of_steps[0]

    known = ~np.isnan(arms[0])
    label = labelled.y[known]
    scored = arms[:, known]
    change, low, high = auroc_gap(scored[1], scored[0], label, level=level)
    full = auroc(scored[0], label)
    bounds = np.array([auroc_interval(arm, label, level=level) for arm in scored[:2]])
    tables = [pair_table(arm, label, labelled.code[known], n_sources=K) for arm in scored[:2]]
    return xr.Dataset(
        {
            "score": (("arm", "row"), arms[:2]),
            "auc": ("arm", [full, auroc(scored[1], label)]),
            "auc_low": ("arm", bounds[:, 0]),
            "auc_high": ("arm", bounds[:, 1]),
            "within_mean": ("arm", [table.within_mean for table in tables]),
            "change": ((), change),
            "change_low": ((), low),
            "change_high": ((), high),
            "random_change": ("draw", np.array([auroc(s, label) - full for s in scored[2:]])),
            "dropped": (("source", "feature"), dropped),
            "n_dropped": ("source", dropped.sum(axis=1)),
            "why_not": ("source", np.array(unfit)),
            **_step_values(stepped, labelled.y, level),
        },
        {
            "arm": list(ARMS),
            "source": list(labelled.names),
            "feature": list(names),
            **({"removed": counts, "ablation_protocol": ["cv", "lodo"]} if steps else {}),
        },
        {
            "model": model_in_words(class_weight),
            "threshold": str(threshold),
            "C": strength,
            "class_weight": class_weight or "none",
            "folds": folds,
            "level": str(level),
            **({} if divided else {"undefined": fits.UNDIVIDED}),
            "input_hash": fingerprint_of(
                matrix,
                labelled,
                features=names,
                C=strength,
                class_weight=class_weight,
                threshold=cut,
                smallest=share,
                draws=draws,
                steps=steps,
                folds=folds,
                seed=seed,
                level=str(level),
                groups=None if codes is None else codes.tolist(),
            ),
        },
    )


class _Settings(NamedTuple):
    """What all tasks of an ablation share."""

    C: float
    balanced: bool
    cut: float
    smallest: float
    draws: int
    seed: int
    counts: tuple[int, ...]


def _step_values(stepped: NDArray, y: NDArray[np.int64], level: float | str) -> dict[str, Any]:
    """Return what the step by step scores (cv, lodo and random orders; counts; rows) are worth."""
    if not stepped.shape[1]:
        return {}
    auc, change = [], []
    for protocol in stepped[:2]:
        rows = ~np.isnan(protocol[0])
        if not rows.any():
            auc += [(np.nan,) * 3] * len(protocol)
            change += [(np.nan,) * 3] * len(protocol)
            continue
        of = [scores[rows] for scores in protocol]
        auc += [(auroc(s, y[rows]), *auroc_interval(s, y[rows], level=level)) for s in of]
        change += [auroc_gap(s, of[0], y[rows], level=level) for s in of]
    rows = ~np.isnan(stepped[1, 0])
    random = [[auroc(scores[rows], y[rows]) for scores in draw] for draw in stepped[2:]]
    found: dict[str, Any] = {
        "step_random": (("draw", "removed"), np.array(random).reshape(len(stepped) - 2, stepped.shape[1]))
    }
    for name, values in (("step_auc", auc), ("step_change", change)):
        table = np.array(values).reshape(2, stepped.shape[1], 3)
        for place, end in enumerate(("", "_low", "_high")):
            found[f"{name}{end}"] = (("ablation_protocol", "removed"), table[..., place])
    return found


def _ablate_one(
    matrix: Any,
    y: NDArray[np.int64],
    code: NDArray[np.int32],
    train: NDArray[np.bool_],
    test: NDArray[np.bool_],
    place: int,
    by_source: bool,
    settings: _Settings,
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Return the shortcuts among the training rows, and scores of the test rows: of the arms and of the steps."""
    basis = fixed_basis(matrix[train])
    label, home = y[train], code[train]
    # C is meant for all rows, and total weight is the rows of a fit.
    strength = settings.C * y.size / label.size
    everything = np.ones(label.size)
    w, intercept = fit_coefficients(basis.Z, label, strength, everything, settings.balanced)
    others = [k for k in np.unique(home) if not fits.why_not(label, home != k)]
    ratio = np.full(w.size, np.nan)
    if others:
        without = np.array(
            [fit_coefficients(basis.Z, label, strength, (home, k), settings.balanced)[0] for k in others]
        )
        known = (w != 0) & (np.abs(w) >= settings.smallest * np.abs(w).max())
        ratio = np.where(known, (without / np.where(w == 0, 1, w)).min(axis=0), np.nan)
    shortcut = ratio < settings.cut

    rows = matrix[test]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    tested = (rows - basis.centre) / basis.scale
    rng = np.random.default_rng([settings.seed, 9, place])
    full = tested @ w + intercept

    def score_without(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        if not mask.any():
            return full
        if mask[w != 0].all():  # nothing, or constants: rounding must not rank the rows
            return np.zeros(len(tested))
        kept = ~mask
        few, offset = fit_coefficients(basis.Z[:, kept], label, strength, everything, settings.balanced)
        return tested[:, kept] @ few + offset

    draws = settings.draws if by_source else 0
    arms = [full]
    if by_source:
        arms += [
            score_without(mask) for mask in (shortcut, *(rng.permutation(shortcut) for _ in range(draws)))
        ]
    orders = [np.argsort(ratio, kind="stable"), *(rng.permutation(w.size) for _ in range(draws))]
    stepped = np.empty((len(orders), len(settings.counts), len(tested)))
    for number, order in enumerate(orders):
        for step, count in enumerate(settings.counts):
            stepped[number, step] = score_without(np.isin(np.arange(w.size), order[:count]))
    return shortcut, np.array(arms), stepped
