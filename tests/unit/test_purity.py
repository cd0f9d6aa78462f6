"""The head of the ranking, against fractions by brute force and against hand-worked values."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import beta, binom

from leakviz.errors import InputError
from leakviz.paths import data_dir
from leakviz.purity import (
    DELTA_STOPS,
    K_MIN_STOPS,
    BreadthCurve,
    Spike,
    check_predictions,
    head_bound_ranked,
    purity_curve,
    rank_predictions,
    spike_ranked,
    sweep_purity,
)

DELTAS = st.sampled_from(["0", "0.05", "0.1", "0.25", "0.3", "0.5", "0.95", Fraction(1, 3)])


@st.composite
def predictions(draw, max_size=40):
    n = draw(st.integers(1, max_size))
    levels = draw(st.sampled_from([1, 3, 10, 1000]))  # few levels: many ties
    p = np.array(draw(st.lists(st.integers(0, levels), min_size=n, max_size=n))) / levels
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return p, y


def cuts_by_hand(p, y):
    """Return (k, events) at every threshold, from the definition k = #{p >= t}."""
    return [(int((p >= t).sum()), int(y[p >= t].sum())) for t in sorted(set(p.tolist()), reverse=True)]


def largest(pairs, delta):
    return max((k for k, e in pairs if Fraction(e, k) >= 1 - Fraction(delta)), default=0)


def in_order(p, y, events_first):
    order = np.lexsort((-y if events_first else y, -p))
    cum = np.cumsum(y[order])
    return [(k + 1, int(e)) for k, e in enumerate(cum)]


@given(predictions(), DELTAS)
@settings(max_examples=400, deadline=None)
def test_spike_equals_brute_force_in_fractions(data, delta):
    p, y = data
    found = spike_ranked(rank_predictions(p, y), delta)
    cuts = cuts_by_hand(p, y)
    contiguous = 0
    for k, e in cuts:
        if Fraction(e, k) < 1 - Fraction(delta):
            break
        contiguous = k
    assert found == Spike(
        tie_blocks=largest(cuts, delta),
        contiguous=contiguous,
        worst_order=largest(in_order(p, y, False), delta),
        best_order=largest(in_order(p, y, True), delta),
    )


@given(predictions(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_row_order_and_increasing_transforms_leave_the_head_alone(data, random):
    p, y = data
    order = list(range(p.size))
    random.shuffle(order)
    expected = sweep_purity(p, y, deltas=["0", "0.1"])
    shuffled = sweep_purity(p[order], y[order], deltas=["0", "0.1"])
    squared = sweep_purity(p**2 / 2, y, deltas=["0", "0.1"])
    assert expected.identical(shuffled)
    assert expected.drop_vars("spike_threshold").identical(squared.drop_vars("spike_threshold"))


@given(predictions(max_size=60))
@settings(max_examples=100, deadline=None)
def test_curve_lists_every_cut_and_the_orders_between(data):
    p, y = data
    curve = purity_curve(p, y, max_points=None)
    assert list(zip(curve.k.values, curve.events.values, strict=True)) == cuts_by_hand(p, y)
    low, high = dict(in_order(p, y, False)), dict(in_order(p, y, True))
    for k, worst, best in zip(
        curve.band_k.values, curve.band_low.values, curve.band_high.values, strict=True
    ):
        assert (worst, best) == (low[k] / k, high[k] / k)
    # Between the points listed each order only rises or only falls: its extremes are listed.
    assert max(high[k] / k for k in high) == curve.band_high.max()
    assert min(low[k] / k for k in low) == curve.band_low.min()
    assert set(curve.k.values) <= set(curve.band_k.values)


@given(predictions())
@settings(max_examples=100, deadline=None)
def test_counts_above_a_threshold(data):
    p, y = data
    ranked = rank_predictions(p, y)
    tau = np.array([0.0, 0.1, 1 / 3, 0.5, 1.0])
    records, events = ranked.count_at_least(tau)
    assert records.tolist() == [(p >= t).sum() for t in tau]
    assert events.tolist() == [y[p >= t].sum() for t in tau]


def test_nineteen_of_twenty_pass_at_a_twentieth():
    p = np.linspace(1, 0.5, 20)
    y = np.array([1] * 7 + [0] + [1] * 12)
    for delta in ("0.05", 0.05):
        assert spike_ranked(rank_predictions(p, y), delta).tie_blocks == 20
    assert spike_ranked(rank_predictions(p, y), "0.04999").tie_blocks == 7
    assert spike_ranked(rank_predictions(p, y), "0.05").contiguous == 7


def test_decimal_delta_is_not_its_float():
    # 7 of 10 pass at 0.3: in floats 1 - 0.3 is below 0.7, and 1 - 0.9 is below 0.1
    p, y = np.linspace(1, 0.1, 10), np.array([1] * 7 + [0] * 3)
    assert spike_ranked(rank_predictions(p, y), 0.3).tie_blocks == 10
    assert spike_ranked(rank_predictions(p, np.array([1] + [0] * 9)), 0.9).tie_blocks == 10


@pytest.mark.parametrize(
    ("name", "spike"),
    [
        ("flchain__lr__honest", 225),
        ("flchain__lr__chapter", 2283),
        ("flchain__hgb__futime", 0),
        ("monica__lr__honest", 948),
        ("monica_cc__lr__honest", 1),
        ("nassCDS__lr__injSeverity", 0),
        ("actg175__lr__days", 9),
    ],
)
def test_reference_spikes(name, spike):
    data = pd.read_parquet(data_dir() / "predictions" / f"{name}.parquet")
    assert sweep_purity(data["p"], data["y"], deltas=["0.05"]).spike.item() == spike


def test_sweep_says_what_stands_in_the_head():
    table = sweep_purity([0.9, 0.8, 0.7, 0.1], [1, 1, 0, 0], deltas=["0", "0.35", "0.5"])
    assert table.spike.values.tolist() == [2, 3, 4]
    assert table.spike_events.values.tolist() == [2, 2, 2]
    assert table.spike_threshold.values.tolist() == [0.8, 0.7, 0.1]
    assert table.spike_fraction.values.tolist() == [0.5, 0.75, 1.0]
    assert table.line.values.tolist() == [1.0, 0.65, 0.5]
    nobody = sweep_purity([0.9, 0.8], [0, 0], deltas=["0.05"])
    assert nobody.spike.item() == 0
    assert np.isnan(nobody.spike_purity.item())
    assert np.isnan(nobody.spike_threshold.item())


def test_zeros_of_either_sign_are_one_block():
    ranked = rank_predictions([0.0, -0.0, 5e-324], [1, 0, 1])
    assert ranked.cuts()[0].tolist() == [1, 3]


def test_neighbouring_floats_are_not_tied():
    p = np.array([0.5, np.nextafter(0.5, 1), np.nextafter(1, 0), 1.0])
    assert rank_predictions(p, [1, 0, 1, 0]).cuts()[0].tolist() == [1, 2, 3, 4]


def test_float32_counts_in_float64():
    p = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    ranked = rank_predictions(p, [0, 1, 1])
    assert ranked.predictions().tolist() == p.astype(np.float64).tolist()


def test_input_stays_as_it_was():
    p, y = np.array([0.3, 0.9, -0.0, 0.1]), np.array([0, 1, 0, 1])
    before = p.tobytes(), y.tobytes()
    purity_curve(p, y)
    assert (p.tobytes(), y.tobytes()) == before


def test_thinned_curve_keeps_what_the_eye_and_the_sliders_land_on():
    rng = np.random.default_rng(3)
    p = np.round(rng.random(60_000) ** 3, 5)
    y = rng.random(p.size) < p
    full, thin = purity_curve(p, y, max_points=None), purity_curve(p, y)
    assert thin.attrs["thinned"] == 1
    assert thin.sizes["k"] <= 2000
    assert thin.sizes["band_k"] <= 2000
    same = full.sel(k=thin.k, band_k=thin.band_k)  # every point is one of the full curve
    assert np.array_equal(same.purity, thin.purity)
    assert np.array_equal(same.band_high, thin.band_high)
    kept = set(thin.k.values.tolist())
    assert {k for k in full.k.values.tolist() if k <= 50} <= kept
    ranked = rank_predictions(p, y)
    assert {spike_ranked(ranked, d).tie_blocks for d in DELTA_STOPS} - {0} <= kept
    assert {ranked.cut_at_or_above(int(k)) for k in K_MIN_STOPS} - {0} <= kept
    assert full.k.values[-1] in kept
    # in each of 150 columns of a logarithmic axis the same lowest and highest value are drawn
    edges = np.geomspace(51, p.size + 1, 151)
    for low, high in pairwise(edges):
        column = full.purity[(full.k >= low) & (full.k < high)]
        drawn = thin.purity[(thin.k >= low * 0.93) & (thin.k < high * 1.07)]
        if column.size:
            assert drawn.min() <= column.min()
            assert drawn.max() >= column.max()


def test_thinning_refuses_what_does_not_fit():
    p = np.linspace(0, 1, 5000)
    y = np.arange(5000) % 2
    with pytest.raises(InputError, match="max_points must be at least 400"):
        purity_curve(p, y, max_points=10)
    with pytest.raises(InputError, match="keep fewer or allow more"):
        purity_curve(p, y, keep=range(1, 3000))


def exact_bound(events, k, alpha):
    return float(beta.ppf(alpha, events, k - events + 1)) if events else 0.0


@given(st.integers(50, 120), st.integers(1, 50), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=60, deadline=None)
def test_m_star_is_the_largest_clopper_pearson_bound(n, levels, seed, scan):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, levels + 1, n) / levels
    y = (rng.random(n) < p ** rng.uniform(0.2, 4)).astype(int)
    bound = head_bound_ranked(rank_predictions(p, y), whole_scan=scan)
    by_hand = [
        exact_bound(e, k, 0.05 * (49 / (k * (k - 1)) if scan else 1))
        for k, e in cuts_by_hand(p, y)
        if k >= 50
    ]
    assert bound.risk == pytest.approx(max(by_hand), rel=1e-9)


def test_m_star_of_pure_heads():
    p = np.linspace(1, 0, 400)
    ranked = rank_predictions(p, np.arange(400) < 225)
    assert head_bound_ranked(ranked).risk == pytest.approx(0.05 ** (1 / 225))
    alpha = 0.05 * 49 / (225 * 224)
    assert head_bound_ranked(ranked, whole_scan=True).risk == pytest.approx(alpha ** (1 / 225))
    assert head_bound_ranked(rank_predictions(p[:49], np.ones(49))) is None
    assert head_bound_ranked(rank_predictions(p, np.zeros(400))).risk == 0


def test_m_star_inverts_the_binomial_tail():
    ranked = rank_predictions(np.linspace(1, 0, 300), np.r_[np.ones(90), 0, np.ones(20), np.zeros(189)])
    bound = head_bound_ranked(ranked)
    assert binom.sf(bound.events - 1, bound.k, bound.risk) == pytest.approx(0.05)


def test_m_star_for_the_whole_scan_rarely_exceeds_the_true_risk():
    rng = np.random.default_rng(5)
    p = np.linspace(1, 0, 2000)
    exceeded = sum(
        head_bound_ranked(rank_predictions(p, rng.random(2000) < 0.7), whole_scan=True).risk > 0.7
        for _ in range(300)
    )
    assert exceeded <= 25  # 5 % of 300 is 15; 25 is beyond its 99 % point


@given(predictions(max_size=25), st.data())
@settings(max_examples=150, deadline=None)
def test_breadth_equals_brute_force(data, more):
    p, y = data
    q = np.array(more.draw(st.lists(st.integers(0, 5), min_size=p.size, max_size=p.size))) / 5
    epsilon = more.draw(st.sampled_from(["0", "0.01", "0.1", "0.25", "0.5"]))
    reference = cuts_by_hand(q, y)

    def reference_events(k):
        before = (0, 0)
        for cut, events in reference:
            if cut >= k:
                share = Fraction(events - before[1], cut - before[0])
                return before[1] + (k - before[0]) * share
            before = cut, events
        raise AssertionError

    wide = [k for k, e in cuts_by_hand(p, y) if Fraction(e - reference_events(k), k) > Fraction(epsilon)]
    curve = BreadthCurve(rank_predictions(p, y), rank_predictions(q, y))
    assert curve.breadth(epsilon) == max(wide, default=0) / p.size


@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        ([], [], "have no rows"),
        ([0.1, 0.2], [1], "got 2 and 1"),
        ([0.1, np.nan, np.nan], [1, 0, 1], r"p is missing \(nan\) in 2 of 3 rows; first: row 1"),
        (
            [0.1, 1.5, 2],
            [1, 0, 1],
            r"p is outside \[0, 1\] in 2 of 3 rows; first: row 1 has 1.5.*percentages",
        ),
        ([0.1, -np.inf], [1, 0], "first: row 1 has -inf"),
        ([0.1, 0.2, 0.3], [0, 1, 2], "y is neither 0 nor 1 in 1 of 3 rows; first: row 2 has 2"),
        ([0.1, 0.2], [0, np.nan], r"y is missing \(nan\) in 1 of 2 rows; first: row 1"),
        ([0.1, 0.2], [0.5, 1.0], "first: row 0 has 0.5"),
        ([0.1, 0.2], [-1, 1], "first: row 0 has -1"),
        (["a", "b"], [0, 1], "p must be numbers.*row 0"),
        ([0.1, 0.2], ["case", "control"], "y must be numbers.*row 0"),
        ([0.1, None], [0, 1], "p is missing in 1 of 2 rows; first: row 1"),
        ([[0.1, 0.9], [0.2, 0.8]], [0, 1], r"one-dimensional, got the shape \(2, 2\)"),
        ([0.1, "x"], [0, 1], "p must be numbers"),
        ([[0.1], [0.2, 0.3]], [0, 1], "rows of different lengths"),
        (np.ma.masked_array([0.1, 0.2], [False, True]), [0, 1], "masked.*first: row 1"),
        (pd.array([0.1, None], dtype="Float64"), [0, 1], "first: row 1"),
        (np.array([0.1, "x"], dtype=object), [0, 1], "p is not a number in 1 of 2 rows; first: row 1 has x"),
    ],
)
def test_bad_input_names_argument_row_and_count(p, y, message):
    with pytest.raises(InputError, match=message):
        check_predictions(p, y)


@pytest.mark.parametrize("delta", ["1", "-0.01", "a", None, float("nan")])
def test_bad_delta(delta):
    with pytest.raises(InputError, match="delta"):
        sweep_purity([0.1], [1], deltas=[delta])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, object])
def test_outcomes_of_any_kind(dtype):
    y = np.array([True, False, True]).astype(dtype)
    assert rank_predictions([0.1, 0.2, 0.3], y).events == 2


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1, allow_subnormal=True)))
@settings(max_examples=100, deadline=None)
def test_packing_loses_nothing(p):
    y = np.arange(p.size) % 2
    ranked = rank_predictions(p, y)
    order = np.lexsort((y, p))
    assert ranked.predictions().tolist() == p[order].tolist()
    assert ranked.outcomes().tolist() == y[order].tolist()
