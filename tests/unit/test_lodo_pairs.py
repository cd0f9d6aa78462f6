"""Tables of pairs and intervals of a gap against hand-worked cases, brute force and a bootstrap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from leakviz.errors import InputError
from leakviz.lodo.pairs import (
    auroc_gap,
    pair_table,
    percentiles,
    pooled_of,
    resample_sources,
    within_mean_of,
)
from leakviz.statistics import auroc_interval


def won_by_counting(scores, y, code, n_sources):
    """Look at every pair, one after the other."""
    won, pairs = np.zeros((2, n_sources, n_sources))
    for i in np.flatnonzero(np.asarray(y) == 1):
        for j in np.flatnonzero(np.asarray(y) == 0):
            pairs[code[i], code[j]] += 1
            won[code[i], code[j]] += 1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
    return won, pairs


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(4)
    n, K = 300, 6
    code = rng.integers(0, K, n)
    y = (rng.random(n) < np.array([0.5, 0.1, 0.9, 0.4, 0, 1])[code]).astype(int)
    first = y + rng.normal(size=n)
    second = np.round(0.5 * first + 0.3 * code + rng.normal(size=n), 1)  # with ties
    return first, second, y, code, K


def test_hand_worked_table():
    # Source 0: positive 5, negatives 1 and 5. Source 1: positives 2 and 7, negative 2. Source 2: positive 3.
    scores = [5, 1, 5, 2, 7, 2, 3]
    y = [1, 0, 0, 1, 1, 0, 1]
    code = [0, 0, 0, 1, 1, 1, 2]
    table = pair_table(scores, y, code, n_sources=3)
    # Rows: positives of 0, 1, 2. Columns: negatives of 0, 1, 2 (2 has none).
    assert table.pairs.tolist() == [[2, 1, 0], [4, 2, 0], [2, 1, 0]]
    assert table.won.tolist() == [[1.5, 1, 0], [3, 1.5, 0], [1, 1, 0]]
    np.testing.assert_array_equal(
        table.auc, [[0.75, 1, math.nan], [0.75, 0.75, math.nan], [0.5, 1, math.nan]]
    )
    assert table.pooled == 9 / 12
    assert table.within == 3 / 4
    assert table.between == 6 / 8
    assert table.within_share == 4 / 12
    assert table.within_mean == 0.75  # of sources 0 and 1; source 2 has no negative and is left out
    alone = table.only(np.array([True, False, True]))
    assert (alone.pooled, alone.within, alone.between) == (2.5 / 4, 1.5 / 2, 1 / 2)


def test_table_of_single_class_sources_has_no_within():
    table = pair_table([3, 1, 2], [1, 0, 0], [0, 1, 1], n_sources=2)
    assert table.pooled == 1
    assert math.isnan(table.within)
    assert math.isnan(table.within_mean)
    assert table.within_share == 0


rows = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=25)


@given(rows)
@settings(max_examples=60, deadline=None)
def test_table_counts_every_pair(drawn):
    scores, y, code = map(list, zip(*drawn, strict=True))
    table = pair_table(scores, y, code, n_sources=4)
    won, pairs = won_by_counting(scores, y, code, 4)
    np.testing.assert_array_equal(table.won, won)
    np.testing.assert_array_equal(table.pairs, pairs)
    if 0 < sum(y) < len(y):
        assert table.pooled == pytest.approx(roc_auc_score(y, scores), abs=1e-12)
        share = table.within_share
        parts = [part for part in (share * table.within, (1 - share) * table.between) if not math.isnan(part)]
        assert sum(parts) == pytest.approx(table.pooled, abs=1e-12)


def test_infinite_scores_tie_with_each_other():
    table = pair_table([math.inf, -math.inf, math.inf, 0], [1, 1, 0, 0], [0, 0, 0, 0], n_sources=1)
    assert table.won.tolist() == [[0.5 + 1 + 0 + 0]]


def delong(first, second, y):
    """DeLong's variance of the difference from the whole matrix of pairs, as the paper of 1988 writes it."""
    y = np.asarray(y) == 1
    kernels = [
        np.heaviside(np.asarray(s, float)[y][:, None] - np.asarray(s, float)[~y], 0.5)
        for s in (first, second)
    ]
    v10, v01 = (np.array([k.mean(axis=axis) for k in kernels]) for axis in (1, 0))
    covariance = np.cov(v10) / v10.shape[1] + np.cov(v01) / v01.shape[1]
    contrast = np.array([1, -1])
    return kernels[0].mean() - kernels[1].mean(), math.sqrt(contrast @ covariance @ contrast)


def test_gap_interval_is_delongs(sample):
    first, second, y, _, _ = sample
    gap, low, high = auroc_gap(first, second, y, level="0.9")
    expected, error = delong(first, second, y)
    assert gap == pytest.approx(expected, abs=1e-12)
    assert low == pytest.approx(expected - norm.ppf(0.95) * error, abs=1e-12)
    assert high == pytest.approx(expected + norm.ppf(0.95) * error, abs=1e-12)


def test_gap_interval_agrees_with_a_bootstrap_of_rows(sample):
    first, second, y, _, _ = sample
    rng = np.random.default_rng(0)
    ones, zeros = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    gaps = []
    for _ in range(400):
        rows = np.concatenate([rng.choice(ones, ones.size), rng.choice(zeros, zeros.size)])
        tables = [
            pair_table(s[rows], y[rows], np.zeros(rows.size, int), n_sources=1) for s in (first, second)
        ]
        gaps.append(tables[0].pooled - tables[1].pooled)
    _, low, high = auroc_gap(first, second, y)
    assert (high - low) / (2 * norm.ppf(0.975)) == pytest.approx(np.std(gaps), rel=0.15)


def test_pairing_is_in_the_interval(sample):
    first, _, y, _, _ = sample
    nearly = first + 1e-3 * np.random.default_rng(1).normal(size=first.size)
    _, low, high = auroc_gap(first, nearly, y)
    alone = auroc_interval(first, y)
    assert high - low < 0.05 * (alone[1] - alone[0])


def test_gap_without_variance_is_never_of_zero_width():
    # Both scores rank all right: DeLong's variance is 0. The bound of one AUROC is 0.05^(1/2) = 0.2236.
    gap, low, high = auroc_gap([1, 2, 3, 4], [1, 2, 4, 3], [0, 0, 1, 1])
    assert gap == 0
    assert (low, high) == (pytest.approx(-(1 - 0.05**0.5)), pytest.approx(1 - 0.05**0.5))
    # A class with one member: no variance can be had.
    gap, low, high = auroc_gap([1, 2, 3], [1, 3, 2], [0, 0, 1])
    assert gap == 0.5
    assert -1 <= low < 0.5 < high <= 1


def test_gap_of_one_class_is_undefined_and_bad_level_is_refused():
    assert all(math.isnan(value) for value in auroc_gap([1, 2], [2, 1], [1, 1]))
    with pytest.raises(InputError, match="level must be above 0"):
        auroc_gap([1, 2], [2, 1], [0, 1], level=1)


def test_a_sample_of_sources_by_hand():
    # Source 0: positive 5, negatives 1 and 5; source 1: positives 2 and 7, negative 2; source 2: positive 3.
    table = pair_table([5, 1, 5, 2, 7, 2, 3], [1, 0, 0, 1, 1, 0, 1], [0, 0, 0, 1, 1, 1, 2], n_sources=3)
    # Source 0 twice and source 1 once. Within: 2 x 1.5 of 2 x 2, and 1.5 of 2. Between 0 and 1: 2 x (1 + 3) of
    # 2 x (1 + 4), each 3/2 as heavy in a sample of three. The copies of 0 against each other: nothing.
    value = pooled_of(table, np.array([[2.0, 1.0, 0.0]]))[0]
    assert value == pytest.approx((3 + 1.5 + 1.5 * 8) / (4 + 2 + 1.5 * 10), abs=1e-15)


def test_samples_of_sources_count_pairs_as_of_separate_sources(sample):
    first, _, y, code, K = sample
    table = pair_table(first, y, code, n_sources=K)
    times = resample_sources(K, 3, np.random.default_rng(3))
    assert times.sum(axis=1).tolist() == [K] * 3
    assert times.max() > 1
    pooled, own = pooled_of(table, times), within_mean_of(table, times)
    for drawn, value, mean in zip(times, pooled, own, strict=True):
        members = np.repeat(np.arange(K), drawn.astype(int))
        won = pairs = 0.0
        for a, one in enumerate(members):
            for b, other in enumerate(members):
                if one == other and a != b:
                    continue  # two copies of one source
                ones, zeros = first[(code == one) & (y == 1)], first[(code == other) & (y == 0)]
                weight = 1 if a == b else K / (K - 1)
                pairs += weight * ones.size * zeros.size
                won += weight * np.heaviside(ones[:, None] - zeros, 0.5).sum()
        assert value == pytest.approx(won / pairs, abs=1e-12)
        each = [roc_auc_score(y[code == k], first[code == k]) for k in members if k < 4]  # 4 and 5: one label
        assert mean == pytest.approx(np.mean(each), abs=1e-12)


def test_samples_of_sources_are_centred_on_the_gap():
    # The gap is all offset: within a source both scores rank alike, and copies of it would hide the offset.
    rng = np.random.default_rng(6)
    code = np.repeat(np.arange(8), 50)
    y = rng.integers(0, 2, 400)
    signal = y + rng.normal(size=400)
    first, second = (pair_table(s, y, code, n_sources=8) for s in (signal, signal + rng.normal(size=8)[code]))
    times = resample_sources(8, 4000, rng)
    gaps = pooled_of(first, times) - pooled_of(second, times)
    gap = first.pooled - second.pooled
    error = gaps.std() / math.sqrt(4000)
    assert abs(gaps.mean() - gap) < 4 * error
    # where the copies' pairs are counted as well, it is not: the squared weights of a plain resampling
    plain = [((times @ t.won * times).sum(1) / (times @ t.pairs * times).sum(1)) for t in (first, second)]
    assert gap - (plain[0] - plain[1]).mean() > 10 * error


def test_sample_without_pairs_is_undefined():
    table = pair_table([3, 1], [1, 0], [0, 1], n_sources=2)
    values = pooled_of(table, np.array([[2.0, 0.0], [1.0, 1.0]]))
    assert math.isnan(values[0])
    assert values[1] == 1
    assert percentiles(values, 0.95) == (1, 1)
    assert all(math.isnan(value) for value in percentiles(values[:1], 0.95))
