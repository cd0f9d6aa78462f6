"""What is behind the AUROCs of one setting: how its scores are distributed, and how they rank."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.battery.cached import Backbone, fit_set, knn_of, rows_of
from leakviz.detector_sweep import LEDOIT_WOLF, alpha_name
from leakviz.detectors import decompose, oracle_lda
from leakviz.errors import InputError
from leakviz.moments import Covariance
from leakviz.statistics import auroc, auroc_interval

Array = NDArray[np.float64]


def setting_detail(
    backbone: Backbone,
    battery: xr.Dataset,
    setting: str,
    *,
    alphas: Sequence[float | str] = (LEDOIT_WOLF,),
    covariance: Covariance = "one-class",
    n_bins: int = 48,
    n_points: int = 201,
) -> xr.Dataset:
    """Return the scores of one setting of a computed battery, as histograms and ROC curves.

    Everything speaks of the rows that a probe seed holds out, as the battery's
    own AUROCs do.

    Parameters
    ----------
    backbone : Backbone
        As `leakviz.battery.load_backbone` returns it.
    battery : xarray.Dataset
        That it belongs to.
    setting : str
        One of ``battery.setting``.
    alphas : sequence, length A, default ("ledoit-wolf",)
        Shrinkages of the Mahalanobis detector: numbers in [0, 1], "ledoit-wolf".
    covariance : {"one-class", "tied"}, default "one-class"
    n_bins : int, default 48
        Of the histograms.
    n_points : int, default 201
        Of the ROC curves. Each lies on the exact curve, evenly spaced along it,
        both ends among them.

    Returns
    -------
    xarray.Dataset
        Coordinates ``seed``, ``alpha`` (text), ``bin``, ``point``. For each of
        ``maha`` (seed, alpha, ...), ``knn`` and ``oracle`` (seed, ...):

        ``<name>_id``, ``<name>_ood`` : float (..., bin)
            Share of the ID and of the OOD rows in each bin.
        ``<name>_left``, ``<name>_right`` : float (bin)
            Edges: squared distance, evenly spaced on a log scale (maha),
            distance to the 50th neighbour (knn), the probe's score, larger where
            more OOD (oracle).
        ``<name>_fpr``, ``<name>_tpr`` : float (..., point)
            ROC curve; OOD counts as positive.
        ``<name>_auroc``, ``<name>_low``, ``<name>_high`` : float (...)
            With the 95 % interval.

        Attributes ``n_id``, ``n_ood`` (rows that a seed holds out), ``n_fit``
        (0 where it is not known), ``alpha_is_fixed``: for a setting whose
        backbone was trained again only the scores at Ledoit and Wolf's one-class
        alpha are kept, and stand at every alpha.

    Raises
    ------
    InputError
        If there is no such setting, or it is one of another backbone.

    Notes
    -----
    Detectors and probe: arXiv 2607.19393, sections 3 and 5.1. Features are
    half-precision numbers, so an AUROC may differ from the battery's in the
    fourth decimal.

    Examples
    --------
    >>> from leakviz.battery import load_backbone, load_battery
    >>> battery = load_battery("computed")
    >>> detail = setting_detail(load_backbone(battery, "vit-mnist"), battery, "P_vit-mnist_2")
    >>> bool(abs(detail.maha_auroc[:, 0] - battery.maha.sel(setting="P_vit-mnist_2")).max() < 1e-3)
    True
    """
    known = battery["setting"].values.tolist()
    if setting not in known:
        raise InputError(f"setting must be one of the battery's {len(known)}, got {setting!r}")
    row = battery.sel(setting=setting)
    if str(row["backbone"].item()) != backbone.name:
        raise InputError(
            f"setting {setting!r} belongs to the backbone {str(row['backbone'].item())!r}, not to {backbone.name!r}"
        )
    asked = list(alphas)
    regime, ood = str(row["regime"].item()), str(row["ood"].item())
    own, other = rows_of(backbone, ood)
    places = np.concatenate([own, other])
    is_ood = np.repeat([False, True], [own.size, other.size])
    halves = backbone.held_out[:, places]
    if regime == "clean-retrained":
        scores, n_fit = _retrained(backbone, ood, places, len(asked)), 0
    else:
        without = ood.split("+") if regime == "clean-excl" else ()
        statistics = fit_set(backbone, without=without)
        chosen = statistics.ledoit_wolf(covariance=covariance)
        numbers = [chosen if alpha == LEDOIT_WOLF else float(alpha) for alpha in asked]
        rows, n_fit = backbone.rows[places], statistics.count
        scores = {
            "maha": -decompose(statistics, covariance=covariance).score(rows, numbers),
            "knn": -knn_of(backbone, without=without)[places],
            "oracle": np.full(halves.shape, np.nan),
        }
        for seed, half in enumerate(halves):
            probe = oracle_lda(rows[~is_ood], rows[is_ood], held_out=half)
            scores["oracle"][seed, half] = -probe.score

    table: dict[str, object] = {}
    for name, values in scores.items():
        by_seed = values if name == "oracle" else np.broadcast_to(values, (len(halves), *values.shape))
        table |= _describe(name, by_seed, halves, is_ood, n_bins, n_points)
    return xr.Dataset(
        table,
        {
            "seed": list(backbone.seeds),
            "alpha": [alpha_name(alpha) for alpha in asked],
            "bin": np.arange(n_bins),
            "point": np.arange(n_points),
        },
        {
            "setting": setting,
            "covariance": covariance,
            "n_id": int((halves[0] & ~is_ood).sum()),
            "n_ood": int((halves[0] & is_ood).sum()),
            "n_fit": n_fit,
            "alpha_is_fixed": regime == "clean-retrained",
        },
    )


def roc_points(scores: ArrayLike, labels: ArrayLike, *, n_points: int = 201) -> tuple[Array, Array]:
    """Return points of the exact ROC curve, evenly spaced along it.

    Parameters
    ----------
    scores : array-like of numbers, shape (n,)
        Larger means "more like label 1". Rows with equal scores are passed
        together: a slanted step.
    labels : array-like of bool, shape (n,)
    n_points : int, default 201

    Returns
    -------
    false_positive_rate, true_positive_rate : numpy.ndarray of float64, shape (n_points,)
        From (0, 0) to (1, 1); their sum rises in even steps.

    Raises
    ------
    InputError
        If one of the labels does not occur.

    Examples
    --------
    >>> fpr, tpr = roc_points([3.0, 2.0, 1.0], [True, False, True], n_points=5)
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.0, 0.5, 1.0, 1.0], [0.0, 0.5, 0.5, 0.5, 1.0])
    """
    values, is_one = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    ones = int(is_one.sum())
    if ones in (0, is_one.size):
        raise InputError("labels has only one class, so there is no ROC curve")
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), values.size - 1)
    hits = np.cumsum(is_one[order])[ends]
    tpr = np.concatenate([[0.0], hits / ones])
    fpr = np.concatenate([[0.0], (ends + 1 - hits) / (values.size - ones)])
    along = np.linspace(0.0, 2.0, n_points)
    return np.interp(along, fpr + tpr, fpr), np.interp(along, fpr + tpr, tpr)


def _retrained(backbone: Backbone, ood: str, places: NDArray[np.int64], n_alphas: int) -> dict[str, Array]:
    kept = backbone.retrained[ood]
    maha = -kept["maha"][places].astype(np.float64)
    return {
        "maha": np.broadcast_to(maha, (n_alphas, maha.size)),
        "knn": -kept["knn"][places].astype(np.float64),
        "oracle": -kept["oracle_lda"][:, places].astype(np.float64),
    }


def _describe(
    name: str, values: Array, halves: NDArray[np.bool_], is_ood: NDArray[np.bool_], n_bins: int, n_points: int
) -> dict[str, object]:
    """Summarise one detector; values are (seed, row) or (seed, alpha, row), larger where more OOD."""
    dims: tuple[str, ...] = ("seed", "alpha") if values.ndim == 3 else ("seed",)
    shape = values.shape[:-1]
    edges = _edges(values[np.isfinite(values)], n_bins, log=name == "maha")
    shares = np.zeros((2, *shape, n_bins))
    curves, area = np.zeros((2, *shape, n_points)), np.zeros((3, *shape))
    for at in np.ndindex(shape):
        half = halves[at[0]]
        scores, labels = values[at][half], is_ood[half]
        for kind in (0, 1):
            members = scores[labels == bool(kind)]
            inside = np.clip(np.searchsorted(edges, members, side="right") - 1, 0, n_bins - 1)
            shares[(kind, *at)] = np.bincount(inside, minlength=n_bins) / members.size
        curves[(0, *at)], curves[(1, *at)] = roc_points(scores, labels, n_points=n_points)
        area[(slice(None), *at)] = auroc(scores, labels), *auroc_interval(scores, labels)
    return {
        f"{name}_left": ("bin", edges[:-1]),
        f"{name}_right": ("bin", edges[1:]),
        f"{name}_id": ((*dims, "bin"), shares[0]),
        f"{name}_ood": ((*dims, "bin"), shares[1]),
        f"{name}_fpr": ((*dims, "point"), curves[0]),
        f"{name}_tpr": ((*dims, "point"), curves[1]),
        f"{name}_auroc": (dims, area[0]),
        f"{name}_low": (dims, area[1]),
        f"{name}_high": (dims, area[2]),
    }


def _edges(values: Array, n_bins: int, *, log: bool) -> Array:
    """Return evenly spaced edges around values; rows far out fall into the outermost bins."""
    if log:
        values = np.log(np.maximum(values, 1e-12))
    low, high = np.quantile(values, [0.0005, 0.9995])
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, n_bins + 1)
    return np.exp(edges) if log else edges
