"""What a row's score is made of, and how much of that is left when features are weighted by retention."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from leakviz.errors import InputError
from leakviz.lodo.inputs import check_features, whole

_MOST_CELLS = 20_000_000


def weighted_attributions(X: Any, result: xr.Dataset, *, k: int = 10) -> xr.Dataset:
    """Split scores into their features' contributions, before and after weighting by retention.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame, shape (n, d)
        Rows to explain, with the features of `result` in its order.
    result : xarray.Dataset
        As `retention` returns it.
    k : int, default 10
        How many leading features, by size, are compared: fewer than the features that have a coefficient,
        for otherwise the top k are all of them, before and after.

    Returns
    -------
    xarray.Dataset
        Over ``row``, ``feature`` and ``draw``:

        ``attribution`` : (row, feature)
            coefficient * (X - centre) / scale. With ``intercept`` they add up to the row's logit.
        ``weight`` : (feature)
            Retention, clipped to [0, 1]; 1 where it is undefined, since nothing speaks against the
            feature.
        ``weighted_attribution`` : (row, feature)
            attribution * weight.
        ``jaccard`` : (row)
            Features in both top k, over features in either; nan where `k` is too large, and the attribute
            ``undefined`` says so ("" otherwise).
        ``order_changed`` : (row)
            The top k are not the same in the same order.
        ``null_jaccard`` : (draw)
            Mean ``jaccard`` with the retention of shuffled sources.
        ``mean_jaccard``, ``changed_share``
            Means over rows.
        ``demoted_retention``, ``promoted_retention``
            Mean weight of the features that leave a top k, and of those that enter one; nan if none does.

    Raises
    ------
    InputError
        If `X` has other features or cannot be used, or there are more than 20 million numbers to return.

    Notes
    -----
    arXiv 2602.14161, section 5.4. Weights come from the same retention that the shift is judged by, so
    features that move down have a low retention by construction; the comparison that says something is
    that of ``mean_jaccard`` with ``null_jaccard``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source = np.repeat(["north", "south", "west"], 80)
    >>> y = rng.integers(0, 2, 240)
    >>> X = np.c_[y, 3 * y * (source == "north")] + rng.normal(size=(240, 2))
    >>> from leakviz import retention
    >>> result = retention(X, y, source, null_draws=2, n_jobs=1)
    >>> explained = weighted_attributions(X[:5], result, k=1)
    >>> explained.weighted_attribution.shape, bool(explained.weight[1] < 0.5)
    ((5, 2), True)
    """
    whole(k, "k", 1)
    rows = X if hasattr(X, "shape") else np.asarray(X)
    if len(rows.shape) != 2 or rows.shape[1] != result.sizes["feature"]:
        raise InputError(
            f"X must have the {result.sizes['feature']} features of the result, got the shape {rows.shape}"
        )
    if rows.shape[0] * rows.shape[1] > _MOST_CELLS:
        raise InputError(
            f"X has {rows.shape[0]:,} rows of {rows.shape[1]:,} features, which makes more than "
            f"{_MOST_CELLS:,} numbers; explain some of the rows"
        )
    matrix = check_features(X, rows.shape[0])
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, dtype=np.float64)
    given = result["coefficient"].values * (dense - result["centre"].values) / result["scale"].values
    weight = retention_weight(result["retention"].values)
    scored = int(np.count_nonzero(result["coefficient"].values))
    why = ""
    if k >= scored:
        why = (
            f"{scored} feature{'s have' if scored != 1 else ' has'} a coefficient, so the top {k} are all of them, "
            "before and after; compare fewer"
        )
    k = min(k, dense.shape[1])
    before, after = _leading(given, k), _leading(given * weight, k)
    own = _jaccard(before, after, dense.shape[1])
    null = np.array(
        [
            _jaccard(before, _leading(given * retention_weight(draw), k), dense.shape[1]).mean()
            for draw in result["null_retention"].transpose("draw", "feature").values
        ],
        dtype=np.float64,
    )
    if why:
        own, null = np.full(own.shape, np.nan), np.full(null.shape, np.nan)
    changed = (before != after).any(axis=1)
    leaves, enters = _moves(before, after, dense.shape[1])
    return xr.Dataset(
        {
            "attribution": (("row", "feature"), given),
            "weight": ("feature", weight),
            "weighted_attribution": (("row", "feature"), given * weight),
            "jaccard": ("row", own),
            "order_changed": ("row", changed),
            "null_jaccard": ("draw", null),
            "mean_jaccard": ((), float(own.mean())),
            "changed_share": ((), float(changed.mean())),
            "demoted_retention": ((), _mean_weight(weight, leaves)),
            "promoted_retention": ((), _mean_weight(weight, enters)),
            "intercept": ((), float(result["intercept"])),
        },
        {"feature": result["feature"].values},
        {"k": k, "undefined": why},
    )


def retention_weight(kept: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return retention clipped to [0, 1], and 1 where it is undefined."""
    return np.where(np.isnan(kept), 1.0, np.clip(kept, 0, 1))


def _leading(values: NDArray, k: int) -> NDArray[np.int64]:
    """Return the k largest by size in each row, largest first; ties go to the feature that stands first."""
    return np.argsort(-np.abs(values), axis=1, kind="stable")[:, :k]


def _member(leading: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    inside = np.zeros((len(leading), width), dtype=bool)
    np.put_along_axis(inside, leading, True, axis=1)
    return inside


def _jaccard(before: NDArray[np.int64], after: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    a, b = _member(before, width), _member(after, width)
    return (a & b).sum(axis=1) / (a | b).sum(axis=1)


def _moves(before: NDArray, after: NDArray, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often each feature leaves a top k and enters one."""
    a, b = _member(before, width), _member(after, width)
    return (a & ~b).sum(axis=0), (b & ~a).sum(axis=0)


def _mean_weight(weight: NDArray[np.float64], times: NDArray[np.int64]) -> float:
    return float(np.average(weight, weights=times)) if times.any() else float("nan")
