"""Which pairs a score ranks right, by the sources of their two members; intervals of a gap.

A pooled AUROC counts every (positive, negative) pair. Sorting the pairs by where their two members are
from gives the K x K table on which everything here rests: its sum is the pooled AUROC, its diagonal the
pairs within a source, the rest the pairs between sources.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from leakviz.decimals import as_fraction_of_one
from leakviz.errors import InputError
from leakviz.statistics import auroc, auroc_interval


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs of positives and negatives, by their sources.

    Attributes
    ----------
    won : numpy.ndarray of float64, shape (K, K)
        Pairs with the positive (source: row) above the negative (source: column); a tie counts one half.
    pairs : numpy.ndarray of float64, shape (K, K)
        All of them: positives of the row times negatives of the column.

    Examples
    --------
    >>> table = pair_table([3, 1, 2, 0], [1, 1, 0, 0], [0, 1, 0, 1], n_sources=2)
    >>> table.auc.tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    >>> table.pooled, table.within, table.between
    (0.75, 1.0, 0.5)
    """

    won: NDArray[np.float64]
    pairs: NDArray[np.float64]

    @property
    def auc(self) -> NDArray[np.float64]:
        """The AUROC of each cell, nan where it has no pair."""
        return _ratio(self.won, self.pairs)

    @property
    def pooled(self) -> float:
        """The AUROC of all rows: exact, as every cell counts whole and half pairs."""
        return float(_ratio(self.won.sum(), self.pairs.sum()))

    @property
    def within(self) -> float:
        """The share of pairs within a source that are ranked right; a large source counts more."""
        return float(_ratio(np.trace(self.won), np.trace(self.pairs)))

    @property
    def between(self) -> float:
        """The share of pairs between two sources that are ranked right."""
        won, pairs = self.won.sum() - np.trace(self.won), self.pairs.sum() - np.trace(self.pairs)
        return float(_ratio(won, pairs))

    @property
    def within_share(self) -> float:
        """The share of all pairs that are within a source."""
        return float(_ratio(np.trace(self.pairs), self.pairs.sum()))

    @property
    def within_mean(self) -> float:
        """The mean of the sources' own AUROCs, over the sources that have both labels."""
        own = np.diag(self.auc)
        return float(np.mean(own[~np.isnan(own)])) if not np.isnan(own).all() else math.nan

    def only(self, chosen: NDArray[np.bool_]) -> PairTable:
        """Return the table of some sources alone, the others' cells empty."""
        both = chosen[:, np.newaxis] & chosen
        return PairTable(np.where(both, self.won, 0), np.where(both, self.pairs, 0))


def pair_table(scores: ArrayLike, y: ArrayLike, code: ArrayLike, *, n_sources: int) -> PairTable:
    """Count, for every pair of sources, how many (positive, negative) pairs a score ranks right.

    Parameters
    ----------
    scores : array-like of numbers, shape (n,)
        Larger means "more like label 1"; not nan.
    y : array-like of 0 and 1, shape (n,)
        Labels.
    code : array-like of int, shape (n,)
        The source of each row, from 0 to `n_sources` - 1.
    n_sources : int
        K.

    Returns
    -------
    PairTable

    Notes
    -----
    One sort per source and a binary search of all positives in it: O(K n log n), and memory for n numbers.
    All counts are whole or half and below 2^53, so sums of them are exact.

    Examples
    --------
    >>> pair_table([0.9, 0.4, 0.4], [1, 1, 0], [0, 1, 1], n_sources=2).won.tolist()
    [[0.0, 1.0], [0.0, 0.5]]
    """
    values, labels, codes = (np.asarray(array) for array in (scores, y, code))
    order = np.argsort(values[labels == 1])  # in ascending order, a search goes through memory once
    positive, home = values[labels == 1][order], codes[labels == 1][order]
    won = np.zeros((n_sources, n_sources))
    for j in range(n_sources):
        negative = np.sort(values[(labels == 0) & (codes == j)])
        twice = np.searchsorted(negative, positive, "left") + np.searchsorted(negative, positive, "right")
        won[:, j] = np.bincount(home, weights=twice, minlength=n_sources) / 2
    n_positive, n_negative = (
        np.bincount(codes[labels == label], minlength=n_sources).astype(np.float64) for label in (1, 0)
    )
    return PairTable(won, np.outer(n_positive, n_negative))


def within_gap(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    labels: NDArray,
    code: NDArray,
    *,
    level: float | str = 0.95,
) -> tuple[float, float]:
    """Return the interval over rows of what the mean of the sources' own AUROCs loses.

    Parameters
    ----------
    first, second : numpy.ndarray, shape (seeds, n)
        Two scores of the same rows; nan where there is none.
    labels, code : numpy.ndarray, shape (n,)
        0 or 1, and the source of each row.
    level : float or decimal string, default 0.95
        Confidence.

    Returns
    -------
    low, high : float
        nan where no source has both labels.

    Notes
    -----
    Sources share no row, so their paired DeLong differences (`auroc_gap`) are independent: distances of their
    ends add up in squares, and divided by the number of sources they are those of the mean. Ends are means over
    seeds.

    Examples
    --------
    >>> first, second = np.array([[1.0, 3, 2, 4]]), np.array([[1.0, 2, 3, 4]])
    >>> low, high = within_gap(first, second, np.array([0, 0, 1, 1]), np.zeros(4, int))
    >>> round(low, 3), round(high, 3)
    (-0.943, 0.443)
    """
    ends = []
    for a, b in zip(first, second, strict=True):
        known = ~(np.isnan(a) | np.isnan(b))
        found = []
        for k in np.unique(code[known]):
            rows = known & (code == k)
            gap = auroc_gap(a[rows], b[rows], labels[rows], level=level)
            if not math.isnan(gap[0]):
                found.append(gap)
        if found:
            gap, low, high = np.array(found).T
            apart = [math.sqrt(float(np.sum((end - gap) ** 2))) / gap.size for end in (low, high)]
            ends.append((gap.mean() - apart[0], gap.mean() + apart[1]))
    if not ends:
        return math.nan, math.nan
    low, high = np.mean(ends, axis=0)
    return float(low), float(high)


def auroc_gap(
    first: ArrayLike, second: ArrayLike, labels: ArrayLike, *, level: float | str = 0.95
) -> tuple[float, float, float]:
    """Return the AUROC of one score minus that of another on the same rows, with its interval.

    Parameters
    ----------
    first, second : array-like of numbers, shape (n,)
        Two scores of the same rows.
    labels : array-like of bool or of the numbers 0 and 1, shape (n,)
        As for `leakviz.auroc`.
    level : float or decimal string, default 0.95
        Confidence, above 0 and below 1.

    Returns
    -------
    gap, low, high : float
        In [-1, 1]; all nan where one of the two labels does not occur.

    Raises
    ------
    InputError
        As `leakviz.auroc`, and if `level` is not between 0 and 1.

    Notes
    -----
    DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988), 837-845: the variance of the difference comes
    from each row's own difference of placements, so the correlation of the two scores is in it. Where that
    variance is 0 or cannot be had (one member in a class), the two intervals of `leakviz.auroc_interval` are
    combined as if the scores were independent (Zou and Donner, Statistics in Medicine 27 (2008),
    1693-1702): wide, but never of zero width.

    Examples
    --------
    >>> gap, low, high = auroc_gap([1, 3, 2, 4], [1, 2, 3, 4], [0, 0, 1, 1])
    >>> round(gap, 3), round(low, 3), round(high, 3)
    (-0.25, -0.943, 0.443)
    """
    confidence = as_fraction_of_one(level, name="level")
    if confidence in (0, 1):
        raise InputError(f"level must be above 0 and below 1, got {level!r}")
    a, b = auroc(first, labels), auroc(second, labels)
    if math.isnan(a):
        return math.nan, math.nan, math.nan
    gap = a - b
    is_one = np.asarray(labels) == 1
    difference = _placements(first, is_one) - _placements(second, is_one)
    ones, zeros = difference[is_one], difference[~is_one]
    if min(ones.size, zeros.size) > 1:
        variance = ones.var(ddof=1) / ones.size + zeros.var(ddof=1) / zeros.size
        if variance > 0:
            half = float(norm.ppf(float((1 + confidence) / 2))) * math.sqrt(variance)
            return gap, max(-1.0, gap - half), min(1.0, gap + half)
    (a_low, a_high), (b_low, b_high) = (auroc_interval(s, labels, level=level) for s in (first, second))
    low, high = gap - math.hypot(a - a_low, b_high - b), gap + math.hypot(a_high - a, b - b_low)
    return gap, max(-1.0, low), min(1.0, high)


def resample_sources(n_sources: int, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return how often each source is in each bootstrap sample, shape (draws, K)."""
    return rng.multinomial(n_sources, np.full(n_sources, 1 / n_sources), size=draws).astype(np.float64)


def pooled_of(table: PairTable, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pooled AUROC of samples of whole sources, nan where a sample has no pair.

    Parameters
    ----------
    table : PairTable
    times : numpy.ndarray, shape (draws, K)
        How often each source is in the sample; at least one of them.

    Returns
    -------
    numpy.ndarray, shape (draws,)

    Notes
    -----
    A source that is drawn t times counts as t sources: its own pairs t times, as pairs within a source; its
    pairs with another, drawn u times, t u times. Pairs between two copies of it are left out: they are
    pairs between sources, and what one source shows within itself (no offset between two sources, above
    all) would stand in for them. The pairs between sources that are left are S / (S - 1) as heavy for
    samples of S, so that pairs within and between keep their shares in the mean over samples. With the
    copies' pairs in it, the mean of a bootstrapped gap is too small by some 1 / S of what the gap has from
    offsets.

    Examples
    --------
    >>> table = PairTable(np.array([[1.0, 0.0], [1.0, 1.0]]), np.ones((2, 2)))
    >>> pooled_of(table, np.array([[1.0, 1.0], [2.0, 0.0]])).tolist()
    [0.6666666666666666, 1.0]
    """
    size = times.sum(axis=1)
    heavier = np.divide(size, size - 1, out=np.ones(size.shape), where=size > 1)

    def counted(cells: NDArray[np.float64]) -> NDArray[np.float64]:
        own = np.diag(cells)
        between = (times @ (cells - np.diag(own)) * times).sum(axis=1)
        return times @ own + heavier * between

    return _ratio(counted(table.won), counted(table.pairs))


def within_mean_of(table: PairTable, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the sources' own AUROCs in samples of whole sources, shape (draws,)."""
    own = np.diag(table.auc)
    known = ~np.isnan(own)
    return _ratio(times[:, known] @ own[known], times[:, known].sum(axis=1))


def percentiles(values: NDArray[np.float64], level: float | str) -> tuple[float, float]:
    """Return the percentile interval of bootstrap values; nan if none is defined."""
    known = values[~np.isnan(values)]
    if not known.size:
        return math.nan, math.nan
    tail = float((1 - as_fraction_of_one(level, name="level")) / 2)
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)


def _placements(scores: ArrayLike, is_one: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return, for each row, the share of the other class that is on the right side of it."""
    values = np.asarray(scores, dtype=np.float64)
    ones, zeros = np.sort(values[is_one]), np.sort(values[~is_one])
    placed = np.empty(values.size)
    placed[is_one] = _share_below(zeros, values[is_one])
    placed[~is_one] = 1 - _share_below(ones, values[~is_one])
    return placed


def _share_below(ascending: NDArray, values: NDArray) -> NDArray[np.float64]:
    twice = np.searchsorted(ascending, values, "left") + np.searchsorted(ascending, values, "right")
    return twice / (2 * ascending.size)


def _ratio(part: ArrayLike, whole: ArrayLike) -> NDArray[np.float64]:
    """Return part / whole, nan where whole is 0."""
    top, bottom = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
