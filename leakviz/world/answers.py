"""What detectors and the probe say about a world: one answer, or every answer of the sliders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.ensemble import IsolationForest
from threadpoolctl import ThreadpoolController

from leakviz.decimals import as_fraction_of_one
from leakviz.detectors import (
    Mahalanobis,
    OracleLDA,
    Spectrum,
    as_shrinkage,
    class_distances,
    decompose,
    detector_auroc,
    kth_distance,
    oracle_lda,
    probe_split,
)
from leakviz.errors import InputError
from leakviz.lodo.pairs import auroc_gap
from leakviz.moments import Covariance, fit_statistics
from leakviz.setting_detail import roc_points
from leakviz.whitening import areas, as_alphas
from leakviz.world.draw import FRAME, World, world_features
from leakviz.world.level_sets import gaussian_level_sets, grid_level_set

DETECTORS = ("one-class", "class-conditional", "knn", "isolation-forest")
"""One Gaussian; a Gaussian around each class mean with the tied covariance (Lee et al., NeurIPS 2018); the
k-th neighbour's distance (Sun et al., ICML 2022); scikit-learn's isolation forest (Liu et al., ICDM 2008)."""

LEVELS = (0.5, 0.8, 0.95)
"""Level sets are drawn at the scores that so large shares of the ID test rows reach."""

WORLD_ALPHAS: NDArray[np.float64] = np.array(
    [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0]
)
"""The stops of the page's slider for alpha."""

N_BINS = 40
N_POINTS = 101
N_TREES = 12  # as many as a slider can wait for

_COVARIANCES: dict[str, Covariance] = {"one-class": "one-class", "class-conditional": "tied"}
_EIGHTHS = tuple(part / 8 for part in range(9))
_GRID_X = np.linspace(*FRAME[0], 49)
_GRID_Y = np.linspace(*FRAME[1], 37)

# Small products gain nothing from a second thread: it would only keep another session's core busy.
_BLAS = ThreadpoolController().select(user_api="blas")

Array = NDArray[np.float64]


def score_world(
    world: World,
    *,
    detector: str = "one-class",
    alpha: float | str = "ledoit-wolf",
    k: int = 50,
) -> xr.Dataset:
    """Score a world's test rows with a detector, and read the probe beside it.

    Parameters
    ----------
    world : World
        As `simulate_leak` returns it.
    detector : {"one-class", "class-conditional", "knn", "isolation-forest"}
    alpha : "ledoit-wolf" or decimal in [0, 1], default "ledoit-wolf"
        Shrinkage of the two Gaussian detectors.
    k : int, default 50
        Which neighbour kNN measures.

    Returns
    -------
    xarray.Dataset
        ``auroc``, ``low``, ``high`` : float
            Of the detector on all test rows, with its 95 % interval, larger
            scores for ID, not flipped. ``sign_agnostic`` is max(auroc, 1 - auroc).
        ``oracle_lda``, ``oracle_lda_low``, ``oracle_lda_high``, ``maha``, ``knn``, ``best_unsup`` : float
            As `audit_split` gives them for ``seeds=(0,)`` and the world's labels: on
            the held-out half, with Ledoit and Wolf's alpha. They do not depend on
            `detector` and `alpha`.
        ``alpha`` : float
            In use; nan for detectors that have none.
        ``id_score`` (id_row), ``ood_score`` (ood_row) : float
        ``left``, ``right``, ``id_count``, ``ood_count`` : (bin)
            Rows by how anomalous they are: Mahalanobis distance, or minus the
            score. The edges are the same for every world with as many features;
            the outermost bins hold what lies beyond.
        ``false_positive_rate``, ``true_positive_rate`` : float (point)
            Of calling a row OOD.
        ``contour_x``, ``contour_y`` : float (level, vertex); ``level_score`` : float (level)
            Lines in the plane at which the detector takes the score that a share
            ``level`` of the ID test rows reaches; nan lifts the pen. For these
            lines all further features are held at 0, their mean.
        ``oracle_x``, ``oracle_y`` : float (end)
            The probe's line inside `FRAME`; nan where it does not cross it, or too
            few rows are held out to tell it.

        Attributes: ``detector``, ``n_fit``, ``n_designated`` (rows of the OOD class
        in the fit set), ``k``.

    Raises
    ------
    InputError
        For an unknown detector, an alpha out of range, or as the core's
        detectors: fewer than k fit rows, or alpha 0 with too few.

    Notes
    -----
    Features of the world share a unit and are not standardised, except for ``maha``, as in the audit.

    Examples
    --------
    >>> from leakviz import simulate_leak
    >>> world = simulate_leak()
    >>> out, into = score_world(world), score_world(simulate_leak(in_fit=True))
    >>> bool(out.auroc > 0.9), bool(into.auroc < 0.5), bool(into.oracle_lda == out.oracle_lda > 0.99)
    (True, True, True)
    """
    _check_detector(detector)
    n_ood = world.ood_rows if world.in_fit else 0
    probe = _probe(world)
    alphas = [alpha] if detector in _COVARIANCES else [np.nan]
    found = _answers(world, detector, [n_ood], alphas, k, probe)[0]
    answer = xr.Dataset(
        {name: (dims[1:], values[0]) for name, (dims, values) in found.varying.items()}
        | found.fixed
        | _oracle_variables(world, probe)
        | {
            "alpha": ((), found.alphas[0]),
            "id_score": ("id_row", found.id_score[0]),
            "ood_score": ("ood_row", found.ood_score[0]),
            "level_score": ("level", found.level_score[0]),
        },
        {"level": list(LEVELS)},
    )
    return answer.assign_attrs(_facts(world, detector, n_ood, k))


def sweep_world(
    world: World,
    *,
    detector: str = "one-class",
    alphas: ArrayLike = WORLD_ALPHAS,
    shares: ArrayLike | None = None,
    k: int = 50,
    coarse: bool = False,
) -> xr.Dataset:
    """Return every answer that the switch and the slider for alpha can ask of a world.

    Parameters
    ----------
    world : World
        Whether the class is in its fit set does not matter.
    detector : {"one-class", "class-conditional", "knn", "isolation-forest"}
    alphas : array-like of decimals in [0, 1], shape (A,)
        Strictly increasing. Used by the two Gaussian detectors; the others have
        the single stop nan.
    shares : array-like of decimals in [0, 1], shape (S,), optional
        Parts of the OOD class's fit rows that are in the fit set: 0 is the switch
        at "out", 1 at "in". By default in eighths; for "class-conditional"
        0 and 1, since a class of which any row is in the fit set has its mean
        there; and for "isolation-forest", which is slow.
    k : int, default 50
    coarse : bool, default False
        Whether the level sets of kNN and the isolation forest are searched on a
        grid of half as many points each way, which is quicker. Nothing else
        depends on it.

    Returns
    -------
    xarray.Dataset
        Coordinates ``share`` (S), ``alpha`` (A), ``level``. As `score_world`, with

        ``auroc``, ``low``, ``high``, ``sign_agnostic`` : float (share, alpha)
        ``id_count``, ``ood_count`` : uint16 (share, alpha, bin)
        ``false_positive_rate``, ``true_positive_rate`` : float32 (share, alpha, point)
        ``contour_x``, ``contour_y`` : float32 (share, alpha, level, vertex)
        ``maha``, ``knn``, ``best_unsup``, ``ledoit_wolf`` : float (share)
            The last: the alpha that Ledoit and Wolf's estimator chooses; nan for
            detectors that have none.
        ``oracle_lda``, ``oracle_lda_low``, ``oracle_lda_high``, ``oracle_x``, ``oracle_y``
            The probe never sees the fit set.
        ``contrast``, ``contrast_low``, ``contrast_high`` : float
            The exclusion contrast: `best_unsup` at the first share less that at the
            last, with the paired 95 % interval of that difference (DeLong, for the
            detector that is best at each end); nan where there is one share.

        Attributes as `score_world`, without ``n_designated``.

    Raises
    ------
    InputError
        As `score_world`, and if alphas or shares are no increasing decimals in [0, 1].

    Examples
    --------
    >>> from leakviz import simulate_leak
    >>> table = sweep_world(simulate_leak(), alphas=[0, 0.5, 1])
    >>> dict(table.auroc.sizes)
    {'share': 9, 'alpha': 3}
    >>> table.auroc.sel(alpha=0, share=[0, 1]).round(1).values.tolist()
    [0.9, 0.4]
    """
    _check_detector(detector)
    if shares is None:
        parts = np.array(_EIGHTHS if detector in ("one-class", "knn") else (0.0, 1.0))
    else:
        parts = _increasing(shares, "shares")
    stops = as_alphas(alphas) if detector in _COVARIANCES else np.array([np.nan])
    probe = _probe(world)
    counts = [round(part * world.ood_rows) for part in parts.tolist()]
    found = _answers(world, detector, counts, stops.tolist(), k, probe, 2 if coarse else 1)
    variables: dict[str, Any] = {}
    for name, (dims, _) in found[0].varying.items():
        values = [each.varying[name][1] for each in found]
        if "vertex" in dims:
            values = _padded(values)
        variables[name] = (("share", *dims), _compact(name, np.stack(values)))
    for name in ("maha", "knn", "best_unsup"):
        variables[name] = ("share", np.array([each.fixed[name][1] for each in found]))
    variables["ledoit_wolf"] = ("share", np.array([each.ledoit_wolf for each in found]))
    for name in ("left", "right"):
        variables[name] = found[0].fixed[name]
    gap = (np.nan, np.nan, np.nan)
    if len(found) > 1:
        gap = auroc_gap(-found[0].best_held, -found[-1].best_held, probe.is_ood)
    for end, value in zip(("", "_low", "_high"), gap, strict=True):
        variables[f"contrast{end}"] = ((), value)
    answer = xr.Dataset(
        variables | _oracle_variables(world, probe),
        {"share": parts, "alpha": stops, "level": list(LEVELS)},
    )
    facts = _facts(world, detector, 0, k)
    del facts["n_designated"]
    return answer.assign_attrs(facts)


@dataclass(frozen=True, eq=False)
class _Answers:
    """What one fit set answers: `varying` over alpha, and what does not depend on it."""

    alphas: Array
    ledoit_wolf: float
    varying: dict[str, tuple[tuple[str, ...], NDArray[Any]]]
    fixed: dict[str, tuple[Any, Any]]
    id_score: Array
    ood_score: Array
    level_score: Array
    best_held: Array
    """Scores of the held-out rows by the better of Mahalanobis and kNN."""


def _answers(
    world: World,
    detector: str,
    counts: Sequence[int],
    alphas: Sequence[float | str],
    k: int,
    probe: OracleLDA,
    step: int = 1,
) -> list[_Answers]:
    """Return the answers of one fit set for each number of rows that it has of the OOD class, rising."""
    with _BLAS.limit(limits=1):
        tests = world_features(np.concatenate([world.id_test, world.ood_test]))
        if detector != "knn":
            near = _neighbours(world, counts, tests[probe.held_out], k)
            return [
                _answer(world, detector, n, alphas, probe, s, step) for n, s in zip(counts, near, strict=True)
            ]
        # For kNN itself all test rows, and what its level sets take.
        near = _neighbours(world, counts, np.concatenate([tests, *_queries(world, step)]), k)
        return [
            _answer(world, detector, n, alphas, probe, s[: tests.shape[0]][probe.held_out], step, s)
            for n, s in zip(counts, near, strict=True)
        ]


def _answer(
    world: World,
    detector: str,
    n_ood: int,
    alphas: Sequence[float | str],
    probe: OracleLDA,
    knn_held: Array,
    step: int,
    given: Array | None = None,
) -> _Answers:
    features = world_features(world.fit_with(n_ood))
    n_id, n_tests = world.id_test.shape[0], world.id_test.shape[0] + world.ood_test.shape[0]
    tests = world_features(np.concatenate([world.id_test, world.ood_test]))
    used, chosen = np.array([np.nan]), np.nan
    if detector in _COVARIANCES:
        covariance = _COVARIANCES[detector]
        labels = world.labels_with(n_ood) if covariance == "tied" else None
        statistics = fit_statistics(features, labels=labels)
        chosen = statistics.ledoit_wolf(covariance=covariance, standardize=False)
        used = np.array(
            [as_shrinkage(a, statistics, covariance=covariance, standardize=False) for a in alphas]
        )
        spectrum = decompose(statistics, covariance=covariance, standardize=False)
        scores = spectrum.score(tests, used)
        sliced = spectrum.score(_slice(world, world.id_test), used) if world.noise_dimensions else scores
        levels = _levels(sliced[:, :n_id])
        contours = _gaussian_contours(spectrum, used, levels)
    else:
        if given is None:
            # The plane and the noise, without the feature that is the same for all.
            asked = np.concatenate([tests, *_queries(world, step)])
            with config_context(assume_finite=True, skip_parameter_validation=True):  # of every tree
                forest = IsolationForest(n_estimators=N_TREES, random_state=world.seed % 2**32)
                given = forest.fit(features[:, :-1]).score_samples(asked[:, :-1])
        scores, rest = given[np.newaxis, :n_tests], given[n_tests:]
        x, y = _GRID_X[::step], _GRID_Y[::step]
        on_grid, in_slice = rest[: x.size * y.size], rest[x.size * y.size :]
        levels = _levels(in_slice[np.newaxis] if in_slice.size else scores[:, :n_id])
        values = on_grid.reshape(y.size, x.size)
        lines = [_closed_level_set(x, y, values, level) for level in levels[0]]
        contours = np.stack(_padded([line.T for line in lines]))[np.newaxis].transpose(0, 1, 3, 2)

    id_score, ood_score = scores[:, :n_id], scores[:, n_id:]
    area, low, high = areas(id_score, ood_score)
    edges = _edges(detector, world.noise_dimensions)
    id_count, ood_count = (_counts(_anomaly(detector, s), edges) for s in (id_score, ood_score))
    is_ood = np.arange(n_tests) >= n_id
    curves = np.array([roc_points(-row, is_ood, n_points=N_POINTS) for row in scores])

    maha_held = Mahalanobis().fit(features).score_samples(tests[probe.held_out])
    unsup = [detector_auroc(s[~probe.is_ood], s[probe.is_ood]) for s in (maha_held, knn_held)]
    return _Answers(
        used,
        chosen,
        {
            "auroc": (("alpha",), area),
            "low": (("alpha",), low),
            "high": (("alpha",), high),
            "sign_agnostic": (("alpha",), np.maximum(area, 1 - area)),
            "id_count": (("alpha", "bin"), id_count),
            "ood_count": (("alpha", "bin"), ood_count),
            "false_positive_rate": (("alpha", "point"), curves[:, 0]),
            "true_positive_rate": (("alpha", "point"), curves[:, 1]),
            "contour_x": (("alpha", "level", "vertex"), contours[..., 0]),
            "contour_y": (("alpha", "level", "vertex"), contours[..., 1]),
        },
        {
            "maha": ((), unsup[0]),
            "knn": ((), unsup[1]),
            "best_unsup": ((), max(unsup)),
            "left": ("bin", edges[:-1]),
            "right": ("bin", edges[1:]),
        },
        id_score,
        ood_score,
        levels,
        (maha_held, knn_held)[int(np.argmax(unsup))],
    )


def _neighbours(world: World, counts: Sequence[int], queries: Array, k: int) -> list[Array]:
    """Return the kNN scores of queries for each of several fit sets, one in the other, in one pass."""
    added = np.searchsorted(counts, np.arange(counts[-1]), side="right")  # by which of the fit sets
    group = np.concatenate([np.zeros(world.id_fit.shape[0], dtype=np.int64), added])
    near = class_distances(world_features(world.fit_with(counts[-1])), group, queries, k=k)
    names = np.unique(group)
    return [-kth_distance(near, members=names <= place, k=k) for place in range(len(counts))]


def _probe(world: World) -> OracleLDA:
    halves = probe_split(
        np.concatenate([world.id_test_labels, np.full(world.ood_test.shape[0], world.classes)]), seed=0
    )
    return oracle_lda(world_features(world.id_test), world_features(world.ood_test), held_out=halves)


def _oracle_variables(world: World, probe: OracleLDA) -> dict[str, tuple[Any, Any]]:
    line = _probe_line(world, probe)
    return {
        "oracle_lda": ((), probe.auroc),
        "oracle_lda_low": ((), probe.low),
        "oracle_lda_high": ((), probe.high),
        "oracle_x": ("end", line[:, 0]),
        "oracle_y": ("end", line[:, 1]),
    }


def _probe_line(world: World, probe: OracleLDA) -> Array:
    """Return the two points where the probe's line enters and leaves the frame, shape (2, 2)."""
    rows = np.concatenate([world.id_test, world.ood_test])
    held = rows[probe.held_out]
    if held.shape[0] <= held.shape[1] + 1:
        return np.full((2, 2), np.nan)
    # The probe's score is linear in the row, so the held-out rows and their scores determine it.
    coefficients = np.linalg.lstsq(np.column_stack([held, np.ones(held.shape[0])]), probe.score, rcond=None)[
        0
    ]
    a, b = coefficients[:2]
    c = coefficients[-1]  # where the further features are 0
    (left, right), (bottom, top) = FRAME
    crossings = [(x, -(c + a * x) / b) for x in (left, right) if b] + [
        (-(c + b * y) / a, y) for y in (bottom, top) if a
    ]
    inside = sorted({(x, y) for x, y in crossings if left <= x <= right and bottom <= y <= top})
    return np.array([inside[0], inside[-1]]) if len(inside) > 1 else np.full((2, 2), np.nan)


def _queries(world: World, step: int) -> list[Array]:
    """Return what level sets take beside the scores of the test rows: a grid, and ID rows put into the plane."""
    plane = np.stack(np.meshgrid(_GRID_X[::step], _GRID_Y[::step]), axis=-1).reshape(-1, 2)
    return [_slice(world, plane)] + ([_slice(world, world.id_test)] if world.noise_dimensions else [])


def _closed_level_set(x: Array, y: Array, values: Array, level: float) -> Array:
    """Return the outline of what is above a level on the grid; at the edge of the frame it runs along the edge."""
    out = np.array([0.01])
    x = np.concatenate([x[:1] - out, x, x[-1:] + out])
    y = np.concatenate([y[:1] - out, y, y[-1:] + out])
    return grid_level_set(x, y, np.pad(values, 1, constant_values=level - 1), level)


def _slice(world: World, rows: Array) -> Array:
    """Return the features of rows, with those beyond the plane at their mean, 0."""
    return world_features(np.column_stack([rows[:, :2], np.zeros((rows.shape[0], world.noise_dimensions))]))


def _levels(id_score: Array) -> Array:
    return np.quantile(id_score, [1 - level for level in LEVELS], axis=1).T


def _gaussian_contours(spectrum: Spectrum, alphas: Array, levels: Array) -> Array:
    return np.stack(
        [
            gaussian_level_sets(spectrum, alpha, row, beyond=np.zeros(spectrum.location.size - 2))
            for alpha, row in zip(alphas.tolist(), levels.tolist(), strict=True)
        ]
    )


def _anomaly(detector: str, scores: Array) -> Array:
    return np.sqrt(np.maximum(-scores, 0)) if detector in _COVARIANCES else -scores


def _edges(detector: str, noise_dimensions: int) -> Array:
    """Return edges that the distances of most worlds fill: a mean distance grows with sqrt(features)."""
    low, high = 0.0, 5 + 2 * np.sqrt(2 + noise_dimensions)
    if detector == "knn":
        high = 0.06 + 0.02 * np.sqrt(noise_dimensions)
    elif detector == "isolation-forest":
        low, high = 0.35, 0.8
    return np.linspace(low, high, N_BINS + 1)


def _counts(values: Array, edges: Array) -> NDArray[np.int64]:
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, N_BINS - 1)
    shifted = places + N_BINS * np.arange(values.shape[0])[:, np.newaxis]
    return np.bincount(shifted.ravel(), minlength=N_BINS * values.shape[0]).reshape(-1, N_BINS)


def _padded(arrays: Sequence[Array]) -> list[Array]:
    """Return arrays with nan appended on the last axis, so that all are as long as the longest."""
    longest = max(array.shape[-1] for array in arrays)
    return [
        np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, longest - a.shape[-1])], constant_values=np.nan)
        for a in arrays
    ]


def _compact(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if name in ("id_count", "ood_count"):
        return values.astype(np.uint16)
    if name.startswith("contour") or name.endswith("positive_rate"):
        return values.astype(np.float32)
    return values


def _facts(world: World, detector: str, n_ood: int, k: int) -> dict[str, Any]:
    return {
        "detector": detector,
        "n_fit": int(world.id_fit.shape[0] + n_ood),
        "n_designated": n_ood,
        "k": k,
    }


def _increasing(values: ArrayLike, name: str) -> Array:
    given = np.asarray(values, dtype=object)
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"{name} must be a list of at least one number, got the shape {given.shape}")
    numbers = np.array([float(as_fraction_of_one(v, name=f"{name}[{i}]")) for i, v in enumerate(given)])
    if (np.diff(numbers) <= 0).any():
        raise InputError(f"{name} must be strictly increasing, got {numbers.tolist()}")
    return numbers


def _check_detector(detector: str) -> None:
    if detector not in DETECTORS:
        raise InputError(f"detector must be one of {', '.join(map(repr, DETECTORS))}, got {detector!r}")
