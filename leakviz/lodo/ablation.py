"""Take the shortcuts away and score again, with every source left out of the search for shortcuts too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.decimals import as_decimal, as_fraction_of_one
from leakviz.errors import InputError
from leakviz.lodo import fits
from leakviz.lodo.inputs import check_groups, check_labelled, fingerprint_of, whole
from leakviz.lodo.pairs import auroc_gap, pair_table
from leakviz.lodo.retention import _named_matrix, _positive, fit_coefficients, fixed_basis
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
    groups: ArrayLike | None = None,
    smallest: object = "0.01",
    draws: int = 5,
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
        Labels; both must occur, also without any two sources.
    source : array-like of str or int, shape (n,)
        Where each row is from; three or more.
    features : sequence of str, optional
        Names; by default a DataFrame's columns, or ``f0``, ``f1`` and so on.
    threshold : decimal, default "0.5"
        A feature whose retention among the sources that are left is below is dropped.
    C : float, default 1
        As for `retention`.
    groups : array-like of str or int, shape (n,), optional
        Groups of the source that is left out leave training too.
    smallest : decimal, default "0.01"
        A coefficient below this share of the largest one has no retention, and stays.
    draws : int, default 5
        The control: how often as many features are dropped at random instead.
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

    Raises
    ------
    InputError
        If input cannot be used, there are fewer than three sources, or two of them left out leave one
        label.

    Notes
    -----
    arXiv 2602.14161, section 5.3 and Table 13, which ablates one list for all sources and finds a change
    of 0.001. Here the search is nested. Significance is not asked, since a bootstrap in every fold would
    cost a hundred times as much. Where every feature is dropped, all scores are 0: ties.

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
    share = float(as_fraction_of_one(smallest, name="smallest"))
    whole(draws, "draws", 0)
    whole(seed, "seed", 0)
    K = len(labelled.names)
    if K < 3:
        raise InputError(f"source has {K} values; without one, retention among the others needs two or more")
    training = [fits.without_source(labelled.code, codes, k) for k in range(K)]
    for k, train in enumerate(training):
        for other in range(K):
            words = f"without sources {labelled.names[k]!r} and {labelled.names[other]!r}"
            fits.check_training(labelled.y, train & (labelled.code != other), words)

    tasks = [
        (matrix, labelled.y, labelled.code, k, train, strength, cut, share, draws, seed)
        for k, train in enumerate(training)
    ]
    done = fits.run(_ablate_one, tasks, n_jobs=n_jobs, progress=progress, name="ablation")
    dropped = np.array([mask for mask, _ in done])
    scores = np.empty((2 + draws, labelled.n))
    for k, (_, values) in enumerate(done):
        scores[:, labelled.code == k] = values

    whole_arm, ablated = scores[0], scores[1]
    change, low, high = auroc_gap(ablated, whole_arm, labelled.y, level=level)
    full = auroc(whole_arm, labelled.y)
    bounds = np.array([auroc_interval(arm, labelled.y, level=level) for arm in scores[:2]])
    tables = [pair_table(arm, labelled.y, labelled.code, n_sources=K) for arm in scores[:2]]
    return xr.Dataset(
        {
            "score": (("arm", "row"), scores[:2]),
            "auc": ("arm", [full, auroc(ablated, labelled.y)]),
            "auc_low": ("arm", bounds[:, 0]),
            "auc_high": ("arm", bounds[:, 1]),
            "within_mean": ("arm", [table.within_mean for table in tables]),
            "change": ((), change),
            "change_low": ((), low),
            "change_high": ((), high),
            "random_change": ("draw", np.array([auroc(s, labelled.y) - full for s in scores[2:]])),
            "dropped": (("source", "feature"), dropped),
            "n_dropped": ("source", dropped.sum(axis=1)),
        },
        {"arm": list(ARMS), "source": list(labelled.names), "feature": list(names)},
        {
            "threshold": str(threshold),
            "C": strength,
            "level": str(level),
            "input_hash": fingerprint_of(
                matrix,
                labelled,
                features=names,
                C=strength,
                threshold=cut,
                smallest=share,
                draws=draws,
                seed=seed,
                level=str(level),
                groups=None if codes is None else codes.tolist(),
            ),
        },
    )


def _ablate_one(
    matrix: Any,
    y: NDArray[np.int64],
    code: NDArray[np.int32],
    left_out: int,
    train: NDArray[np.bool_],
    C: float,
    cut: float,
    smallest: float,
    draws: int,
    seed: int,
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the shortcuts among the training rows, and scores (arms and draws) of the source left out."""
    basis = fixed_basis(matrix[train])
    label, home = y[train], code[train]
    strength = C * y.size / label.size  # C is meant for all rows, and total weight is the rows of a fit
    everything = np.ones(label.size)
    w, intercept = fit_coefficients(basis.Z, label, strength, everything)
    without = np.array([fit_coefficients(basis.Z, label, strength, (home, k))[0] for k in np.unique(home)])
    known = (w != 0) & (np.abs(w) >= smallest * np.abs(w).max())
    shortcut = known & ((without / np.where(w == 0, 1, w)).min(axis=0) < cut)

    rows = matrix[code == left_out]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    test = (rows - basis.centre) / basis.scale
    rng = np.random.default_rng([seed, 9, left_out])
    masks = [shortcut, *(rng.permutation(shortcut) for _ in range(draws))]
    scores = [test @ w + intercept]
    for mask in masks:
        scores.append(_score_without(basis.Z, label, strength, test, mask))
    return shortcut, np.array(scores)


def _score_without(
    Z: Any, y: NDArray[np.int64], C: float, test: NDArray, mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    if mask.all():
        return np.zeros(len(test))
    w, intercept = fit_coefficients(Z[:, ~mask], y, C, np.ones(y.size))
    return test[:, ~mask] @ w + intercept
