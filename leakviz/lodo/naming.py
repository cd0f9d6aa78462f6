"""How far a source's name alone predicts the label of a row that was not looked at.

The name says only how often label 1 occurs in the source, and a row must not be judged by its own label. In
sample the rate of a source fits its rows by chance; with one row left out, a row's own label lowers the rate
that it is judged by, and a source without any signal falls below 0.5. Leaving out *pairs* is free of both.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakviz.lodo.inputs import Labelled

JUDGED_BY_OTHERS = ("name_auc", "name_auc_null", "name_auc_null_low", "name_auc_null_high", "name_accuracy")
"""What needs other rows of a row's source."""

_NULL_DRAWS = 200


class _Units(NamedTuple):
    """What leaves together: `times` units alike, each with `ones` and `zeros` rows in the source `home`."""

    home: NDArray[np.int64]
    ones: NDArray[np.float64]
    zeros: NDArray[np.float64]
    times: NDArray[np.float64]


def name_alone(labelled: Labelled, groups: NDArray[np.int32] | None, seed: int) -> dict[str, Any]:
    """Return what the source's name alone says about the label, as variables of `leakviz.lodo`.

    Parameters
    ----------
    labelled : Labelled
    groups : numpy.ndarray of int, shape (n,), or None
        Rows of one group and source leave together.
    seed : int
        Of the shuffles.

    Returns
    -------
    dict
        ``name_auc``, ``name_accuracy`` and what they are to be compared with: ``name_auc_null`` with
        ``_low`` and ``_high``, and ``label_majority``. ``name_auc_in_sample`` and
        ``name_accuracy_in_sample`` judge each row by a rate that its own label is part of.

    Notes
    -----
    Leave-pair-out: for every positive and negative row, both are left out (with their groups), and each is
    scored with the share of positives among the rest of its source. ``name_auc`` is the share of pairs in
    which the positive has the larger one; a tie counts one half, and so does a pair within one source, whose
    name tells them not apart. A source with no other row is scored with the share of all rows. As the rest
    does not depend on which of the two is the positive, the expected value is exactly 0.5 where labels have
    nothing to do with sources (Airola et al., Computational Statistics & Data Analysis 55 (2011), 1828-1844,
    on leave-pair-out).
    ``name_accuracy`` calls the rows of the same pairs by the majority of the rest (a tie by the majority of
    all rows), and weighs recall and specificity by the classes; without association it is expected to be at
    or below ``label_majority``, the share of the larger class.
    The null shuffles labels among the rows (with groups: sources among the groups), 200 times.
    Where every source is one group or one row, nothing is left to judge a row by: all of it is nan then, but for what
    is in sample.

    Examples
    --------
    >>> from leakviz.lodo.inputs import check_labelled
    >>> found = name_alone(check_labelled([1, 1, 1, 0, 0, 0], list("aaabbb")), None, 0)
    >>> float(found["name_auc"][1]), float(found["name_accuracy"][1])
    (1.0, 1.0)
    """
    units = _rows(labelled.counts()) if groups is None else _groups(labelled, groups)
    K = len(labelled.names)
    counts = labelled.counts().astype(np.float64)
    n, positives = counts.sum(axis=1), counts[:, 1]
    judged = dict.fromkeys(JUDGED_BY_OTHERS, math.nan)
    if np.bincount(units.home, units.times, K).max() > 1:
        rng = np.random.default_rng([seed, 1])
        null = np.array([_pair_auc(drawn, K) for drawn in _shuffled(units, labelled, groups, rng)])
        found = (
            _pair_auc(units, K),
            null.mean(),
            *np.quantile(null, [0.025, 0.975]),
            _pair_accuracy(units, K),
        )
        judged = dict(zip(JUDGED_BY_OTHERS, map(float, found), strict=True))
    return {
        **{name: ((), value) for name, value in judged.items()},
        "name_auc_in_sample": (
            (),
            _won(positives / n, positives, n - positives) / (positives.sum() * (n - positives).sum()),
        ),
        "name_accuracy_in_sample": ((), float(counts.max(axis=1).sum() / labelled.n)),
        "label_majority": ((), float(counts.sum(axis=0).max() / labelled.n)),
    }


def _rows(counts: NDArray[np.int64]) -> _Units:
    """Return rows as units: those of one source and label are all alike."""
    K = len(counts)
    return _Units(
        np.tile(np.arange(K), 2),
        np.repeat([0.0, 1.0], K),
        np.repeat([1.0, 0.0], K),
        counts.T.ravel().astype(np.float64),
    )


def _groups(labelled: Labelled, groups: NDArray[np.int32]) -> _Units:
    """Return the rows of a group in a source as a unit."""
    K = len(labelled.names)
    cells, unit = np.unique(groups.astype(np.int64) * K + labelled.code, return_inverse=True)
    ones, zeros = (np.bincount(unit, labelled.y == label, cells.size) for label in (1, 0))
    return _Units(cells % K, ones.astype(float), zeros.astype(float), np.ones(cells.size))


def _shuffled(
    units: _Units, labelled: Labelled, groups: NDArray[np.int32] | None, rng: np.random.Generator
) -> list[_Units]:
    if groups is not None:
        return [units._replace(home=rng.permutation(units.home)) for _ in range(_NULL_DRAWS)]
    # Shuffling the labels deals the positives to the sources at random: no row needs to be moved.
    counts = labelled.counts()
    n = counts.sum(axis=1)
    dealt = rng.multivariate_hypergeometric(n, counts[:, 1].sum(), size=_NULL_DRAWS)
    return [_rows(np.column_stack([n - ones, ones])) for ones in dealt]


def _pair_auc(units: _Units, K: int) -> float:
    ones, zeros = units.ones * units.times, units.zeros * units.times
    P, N = (np.bincount(units.home, rows, K) for rows in (ones, zeros))
    left = P[units.home] - units.ones
    rest = left + N[units.home] - units.zeros
    share = np.divide(left, rest, out=np.full(left.shape, P.sum() / (P + N).sum()), where=rest > 0)
    # Of a pair between sources, neither row is in the rest of the other's source; a pair within one is a tie.
    won = _won(share, ones, zeros) - _won_within(units.home, share, ones, zeros, N) + P @ N / 2
    return float(won / (P.sum() * N.sum()))


def _won(share: NDArray, ones: NDArray, zeros: NDArray) -> float:
    """Return how many pairs a score wins, given the numbers of positives and negatives that have it."""
    _, place = np.unique(share, return_inverse=True)
    one, zero = np.bincount(place, ones), np.bincount(place, zeros)
    return float(one @ (np.cumsum(zero) - zero / 2))


def _won_within(home: NDArray, share: NDArray, ones: NDArray, zeros: NDArray, N: NDArray) -> float:
    """Return how many of them are pairs within a source that has `N` negatives."""
    order = np.lexsort((share, home))
    at, value = home[order], share[order]
    first = np.append(True, (np.diff(at) != 0) | (np.diff(value) != 0))
    place = np.cumsum(first) - 1
    one, zero = np.bincount(place, ones[order]), np.bincount(place, zeros[order])
    before = (np.cumsum(N) - N)[at[first]]
    return float(one @ (np.cumsum(zero) - zero / 2 - before))


def _pair_accuracy(units: _Units, K: int) -> float:
    kinds, place = np.unique(np.column_stack(units[:3]), axis=0, return_inverse=True)
    home, times = kinds[:, 0].astype(np.int64), np.bincount(place.ravel(), units.times)
    each = kinds[:, 1:].T
    rows = each * times  # positives and negatives of all units of a kind
    per_source = np.array([np.bincount(home, of_label, K) for of_label in rows])
    margin = (per_source[0] - per_source[1])[home] - (each[0] - each[1])
    total = per_source.sum(axis=1)
    tie = (np.sign(total[0] - total[1]) + 1) / 2
    share = 0.0
    for label, way in ((0, 1), (1, -1)):  # positives are called rightly above 0, negatives below
        own, other = rows[label], rows[1 - label]
        alone = _majority(way * margin, tie if way == 1 else 1 - tie)
        # the other row is in another source, or in the same unit: nothing more leaves this source
        hits = own @ (alone * (total[1 - label] - per_source[1 - label][home] + each[1 - label]))
        for k in range(K):
            here = np.flatnonzero(home == k)
            gone = margin[here, np.newaxis] - (each[0] - each[1])[here]
            called = _majority(way * gone, tie if way == 1 else 1 - tie)
            partners = np.tile(other[here], (here.size, 1))
            partners[np.diag_indices(here.size)] -= each[1 - label][here]
            hits += own[here] @ (called * partners).sum(axis=1)
        share += hits / total[1 - label]
    return float(share / total.sum())


def _majority(margin: NDArray, tie: float) -> NDArray[np.float64]:
    """Return 1 where a vote is won, 0 where it is lost, and `tie` where it is tied."""
    return np.where(margin == 0, tie, margin > 0)
