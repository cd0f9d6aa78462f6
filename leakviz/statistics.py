"""AUROC and the intervals that belong to rates and to it."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import norm

from leakviz.decimals import as_fraction_of_one
from leakviz.errors import InputError


def auroc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Return the area under the ROC curve: how well scores rank label 1 above label 0.

    It is the share of (1, 0) pairs in which the 1 has the larger score, a tie
    counting one half. Pairs are counted in integers, so the result is the exact
    quotient, rounded once.

    Parameters
    ----------
    scores : array-like of numbers, shape (n,)
        Larger means "more like label 1". Infinities are allowed, -0.0 is 0.
        A score is never flipped: a value below 0.5 is a finding.
    labels : array-like of bool or of the numbers 0 and 1, shape (n,)
        Nothing else is accepted, and no polarity is guessed.

    Returns
    -------
    float
        In [0, 1]; nan if one of the two labels does not occur.

    Raises
    ------
    InputError
        If shapes differ or are not (n,), a score is missing or not a number,
        or a label is neither 0 nor 1.

    Notes
    -----
    The time goes into one sort of 64-bit integers that carry score and label
    together; there is no argsort. numpy's AVX-512 sort is much slower than its
    AVX2 sort on some AMD processors (``NPY_DISABLE_CPU_FEATURES`` switches it
    off). Half for a tie: Hanley and McNeil, Radiology 143 (1982), 29-36.

    Examples
    --------
    >>> auroc([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    0.875
    """
    values, is_one = _check(scores, labels)
    n_ones = int(np.count_nonzero(is_one))
    pairs = n_ones * (is_one.size - n_ones)
    if pairs == 0:
        return math.nan
    return _twice_pairs_won(_sorted_keys(values, is_one)) / (2 * pairs)


def auroc_interval(scores: ArrayLike, labels: ArrayLike, *, level: float | str = 0.95) -> tuple[float, float]:
    """Return a confidence interval for the AUROC.

    DeLong's variance on the logit scale. Where that cannot be had:

    - AUROC 1: ``((1 - level) ** (1 / m), 1)`` with m the size of the smaller
      class, and its mirror image at AUROC 0: the exact one-sided bound for m
      independent pairs that are all ranked right.
    - One class has a single member, or DeLong's variance is 0 (all scores tied,
      say): the largest variance that an AUROC of A can have, A (1 - A) / m.
      Wide, but honest: a variance of 0 would claim that nothing is left to learn.

    Parameters
    ----------
    scores : array-like of numbers, shape (n,)
        As for `auroc`.
    labels : array-like of bool or of the numbers 0 and 1, shape (n,)
        As for `auroc`.
    level : float or decimal string, default 0.95
        Confidence, above 0 and below 1.

    Returns
    -------
    low, high : float
        In [0, 1], ``low < high``, with the AUROC in between; both nan if one of
        the two labels does not occur.

    Raises
    ------
    InputError
        As `auroc`, and if `level` is not between 0 and 1.

    Notes
    -----
    Variance: DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988), 837-845,
    from ranks as in Sun and Xu, IEEE Signal Processing Letters 21 (2014),
    1389-1393: O(n log n). Largest variance: Birnbaum and Klose, Annals of
    Mathematical Statistics 28 (1957), 933-945. Rows count as independent.

    Examples
    --------
    >>> low, high = auroc_interval([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    >>> round(low, 3), round(high, 3)
    (0.228, 0.994)
    >>> low, high = auroc_interval([1, 2, 3, 4], [0, 0, 1, 1])
    >>> round(low, 3), high
    (0.224, 1.0)
    """
    return auroc_with_interval(scores, labels, level=level)[1:]


def auroc_with_interval(
    scores: ArrayLike, labels: ArrayLike, *, level: float | str = 0.95
) -> tuple[float, float, float]:
    """Return what `auroc` and `auroc_interval` return, for one sort.

    Parameters
    ----------
    scores, labels, level
        As for `auroc_interval`.

    Returns
    -------
    auroc, low, high : float

    Examples
    --------
    >>> [round(value, 3) for value in auroc_with_interval([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])]
    [0.875, 0.228, 0.994]
    """
    confidence = _check_level(level)
    values, is_one = _check(scores, labels)
    n_ones = int(np.count_nonzero(is_one))
    smaller = min(n_ones, is_one.size - n_ones)
    if smaller == 0:
        return math.nan, math.nan, math.nan
    parts = _sorted_keys(values, is_one)
    area = _twice_pairs_won(parts) / (2 * n_ones * (is_one.size - n_ones))
    bound = float(1 - confidence) ** (1 / smaller)
    if area == 1:
        return area, bound, 1.0
    if area == 0:
        return area, 0.0, 1 - bound
    variance = _delong_variance(*_roc_counts(parts), area) if smaller > 1 else 0.0
    if variance == 0:
        variance = area * (1 - area) / smaller
    centre = math.log(area / (1 - area))
    half = _z(confidence) * math.sqrt(variance) / (area * (1 - area))
    return area, float(expit(centre - half)), float(expit(centre + half))


def wilson_interval(successes: ArrayLike, n: ArrayLike, *, level: float | str = 0.95) -> tuple[Any, Any]:
    """Return Wilson's score interval for a proportion.

    Parameters
    ----------
    successes : array-like of whole numbers
        Between 0 and `n`.
    n : array-like of whole numbers
        Trials; broadcast against `successes`.
    level : float or decimal string, default 0.95
        Confidence, above 0 and below 1.

    Returns
    -------
    low, high : float or numpy.ndarray of float64
        Inside [0, 1], of the broadcast shape (floats for two scalars). `low` is
        exactly 0 without a success, `high` exactly 1 without a failure, both
        are nan where `n` is 0.

    Raises
    ------
    InputError
        If a count is missing, negative or not whole, successes exceed n, shapes
        do not broadcast, or `level` is not between 0 and 1.

    Notes
    -----
    Wilson, Journal of the American Statistical Association 22 (1927), 209-212.

    Examples
    --------
    >>> low, high = wilson_interval(18, 20)
    >>> round(low, 3), round(high, 3)
    (0.699, 0.972)
    """
    z = _z(_check_level(level))
    hits, trials = _counts(successes, "successes"), _counts(n, "n")
    try:
        hits, trials = np.broadcast_arrays(hits, trials)
    except ValueError as error:
        raise InputError(
            f"successes and n must have shapes that broadcast, got {hits.shape} and {trials.shape}"
        ) from error
    _refuse(hits > trials, hits, "successes", "above n", "check which argument is which")

    known = trials > 0
    size = np.where(known, trials, 1.0)
    rate = hits / size
    centre = (rate + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * np.sqrt(rate * (1 - rate) / size + z**2 / (4 * size**2))
    low = np.where(hits == 0, 0.0, np.maximum(centre - half, 0.0))
    high = np.where(hits == trials, 1.0, np.minimum(centre + half, 1.0))
    low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def _sorted_keys(scores: NDArray[np.float64], is_one: NDArray[np.bool_]) -> list[NDArray[np.uint64]]:
    """Return ``2 * rank + label`` in ascending order: first of the negative scores, then of the others.

    Within each of the two arrays, keys are in the order of the scores and equal
    scores have equal ranks; in a tie the zeros come before the ones.
    """
    # A float's bits, read as an integer, are in the order of its magnitude. Its sign bit leaves on the left
    # as the label comes in on the right: one fast sort of integers orders both, and all that is lost is the
    # sign of -0.0, which is no negative score.
    keys = scores.copy().view(np.uint64)
    negative = scores < 0
    any_negative = negative.any()
    if any_negative:
        keys ^= -negative.astype(np.int64).view(np.uint64)  # the larger the magnitude, the lower
    keys <<= np.uint64(1)
    keys |= is_one
    parts = [keys[negative], keys[~negative]] if any_negative else [keys]
    for part in parts:
        part.sort()
    return parts


def _twice_pairs_won(parts: list[NDArray[np.uint64]]) -> int:
    """Count the (1, 0) pairs in which the 1 has the larger score twice, and those with a tie once."""
    twice, zeros_before = 0, 0
    for keys in parts:
        ones = np.flatnonzero((keys & np.uint64(1)) != 0)  # of bools: four times faster than of integers
        # The j-th one at position i has i - j zeros of this part before it, ties included.
        not_lost = int(ones.sum()) - ones.size * (ones.size - 1) // 2 + zeros_before * ones.size
        twice += 2 * not_lost - _tied_pairs(keys)
        zeros_before += keys.size - ones.size
    return twice


def _tied_pairs(keys: NDArray[np.uint64]) -> int:
    # Where a tie block holds both labels, its last zero and its first one differ in the label bit alone.
    last_zero = np.flatnonzero((keys[1:] ^ keys[:-1]) == 1)
    if last_zero.size == 0:
        return 0
    start = np.searchsorted(keys, keys[last_zero], side="left")
    stop = np.searchsorted(keys, keys[last_zero + 1], side="right")
    return int(np.dot(last_zero + 1 - start, stop - (last_zero + 1)))


def _roc_counts(parts: list[NDArray[np.uint64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count ones and zeros up to the end of each tie block, in ascending order of the score.

    Both arrays start with 0 and end with the size of the class.
    """
    ones, zeros = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for keys in parts:
        ranks = keys >> np.uint64(1)
        last = np.flatnonzero(np.append(ranks[1:] != ranks[:-1], keys.size > 0))
        ones_in_part = np.cumsum(keys & np.uint64(1), dtype=np.int64)[last]
        zeros.append(zeros[-1][-1] + last + 1 - ones_in_part)
        ones.append(ones[-1][-1] + ones_in_part)
    return np.concatenate(ones), np.concatenate(zeros)


def _delong_variance(ones: NDArray[np.int64], zeros: NDArray[np.int64], area: float) -> float:
    """Return DeLong's variance of the AUROC."""
    # In floats: the square of the number of pairs leaves int64 at 150,000 rows.
    n_ones, n_zeros = float(ones[-1]), float(zeros[-1])
    # For the members of each tie block: the share of the other class that is on the right side of them.
    share_ones = (zeros[1:] + zeros[:-1]) / (2 * n_zeros)
    share_zeros = (2 * n_ones - (ones[1:] + ones[:-1])) / (2 * n_ones)
    spread_ones = np.dot(np.diff(ones), (share_ones - area) ** 2) / (n_ones - 1)
    spread_zeros = np.dot(np.diff(zeros), (share_zeros - area) ** 2) / (n_zeros - 1)
    return float(spread_ones / n_ones + spread_zeros / n_zeros)


def _check(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the scores as float64 in the same order and with the same ties, and which labels are 1."""
    values, marks = _vector(scores, "scores", "numbers"), _vector(labels, "labels", "0, 1 or bool")
    if values.shape != marks.shape:
        raise InputError(
            f"scores and labels must have the same length, got {values.size} and {marks.size}; "
            "give one label per score"
        )
    _refuse(np.isnan(values), values, "scores", "missing (nan)", "drop or mend these rows first")
    is_one = marks == 1
    _refuse(~(is_one | (marks == 0)), marks, "labels", "neither 0 nor 1", "write the positive class as 1")
    return _as_float64(values), is_one


def _vector(values: ArrayLike, name: str, wanted: str) -> NDArray:
    if np.ma.is_masked(values):
        raise InputError(f"{name} has {np.ma.count_masked(values)} masked values; drop these rows first")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be one-dimensional, got rows of different lengths") from error
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got the shape {array.shape}")
    if array.dtype.kind not in "biuf":
        first = f"; first: row 0 has {array[0]!r}" if array.size else ""
        raise InputError(f"{name} must be {wanted}, got the type {array.dtype}{first}; convert them first")
    return array


def _as_float64(values: NDArray) -> NDArray[np.float64]:
    """Convert scores; those that float64 would round into false ties become their ranks."""
    wide_integers = values.dtype.kind in "iu" and values.itemsize == 8 and values.size > 0
    if wide_integers and not -(2**53) <= int(values.min()) <= int(values.max()) <= 2**53:
        return np.unique(values, return_inverse=True)[1].astype(np.float64)
    if values.dtype.kind == "f" and values.itemsize > 8:
        return np.unique(values, return_inverse=True)[1].astype(np.float64)
    return values.astype(np.float64, copy=False)


def _counts(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} must be whole numbers, got the type {array.dtype}")
    numbers = array.astype(np.float64)
    bad = ~((numbers >= 0) & (numbers == np.floor(numbers)) & np.isfinite(numbers))
    _refuse(bad, numbers, name, "not a whole number from 0 up", "give counts")
    return numbers


def _refuse(bad: NDArray[np.bool_], values: NDArray, name: str, problem: str, told: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} is {problem} in {np.count_nonzero(bad)} of {bad.size} rows; "
            f"first: row {row} has {values.flat[row]}; {told}"
        )


def _check_level(level: float | str) -> Fraction:
    confidence = as_fraction_of_one(level, name="level")
    if confidence in (0, 1):
        raise InputError(f"level must be above 0 and below 1, got {level!r}")
    return confidence


@lru_cache(maxsize=16)
def _z(confidence: Fraction) -> float:
    return float(norm.ppf(float((1 + confidence) / 2)))
