"""The blind test as a whole: verdicts, words, agreement of sweep and single answers."""

import csv
import json
import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import leakviz
from leakviz.blind import (
    TRIGGERS,
    VERDICTS,
    BlindTest,
    blind_test,
    blind_test_ranked,
    breadth_curves,
    concordance_ranked,
    sweep_blind,
)
from leakviz.calibration import dispersion, net_benefit_ranked
from leakviz.errors import InputError
from leakviz.paths import data_dir
from leakviz.purity import rank_predictions, sweep_purity
from leakviz.statistics import auroc, auroc_interval


def shipped(name):
    data = pd.read_parquet(data_dir() / "predictions" / f"{name}.parquet")
    return data["p"], data["y"]


def pure_head(length, n=1000):
    return np.linspace(0.999, 0.001, n), np.arange(n) < length


@pytest.mark.parametrize(
    ("name", "c", "z", "spike"),
    [
        ("flchain__lr__honest", 0.841, -1.5, 225),
        ("flchain__lr__chapter", 1.000, None, 2283),
        ("flchain__hgb__futime", 0.970, None, 0),
        ("monica__lr__honest", 0.748, None, 948),
        ("monica_cc__lr__honest", 0.627, None, 1),
        ("nassCDS__lr__injSeverity", 0.986, None, 0),
        ("actg175__lr__days", None, None, 9),
    ],
)
def test_reference_values(name, c, z, spike):
    result = blind_test(*shipped(name))
    assert result.spike == spike
    if c is not None:
        assert result.c_statistic == pytest.approx(c, abs=6e-4)
    if z is not None:
        assert result.dispersion.z == pytest.approx(z, abs=0.05)


@pytest.mark.parametrize(
    "name",
    ["actg175__lr", "covid_testing__hgb", "flights_late60__lr", "monica_cc__lr", "nassCDS__lr", "nhefs__lr"],
)
def test_honest_vectors_are_not_shown(name):
    result = blind_test(*shipped(f"{name}__honest"))
    assert (result.verdict, result.trigger, result.algorithm1) == ("not shown", None, "clean")
    assert "does not mean that there is no leak" in result.explain()


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_simulated_honest_vectors_are_not_shown(seed):
    """With the six above, ten honest vectors."""
    arms = leakviz.simulate_arms(
        n=20_000, prevalence=0.02 * seed, c_statistic=0.7 + 0.03 * seed, beta=2.5, seed=seed
    )
    assert blind_test(arms["p"].sel(arm="clean"), arms["y"]).verdict == "not shown"


def test_a_head_that_events_are_too_few_for_cannot_be_seen():
    """48 of 50 are 0.96; with delta 0.3, 35 events do, and one fewer does not."""
    p = np.linspace(0.99, 0.01, 1000)
    assert blind_test(p, np.arange(1000) < 48).verdict == "leaky"
    spread = np.zeros(1000, dtype=int)
    for events, verdict in ((34, "undetermined"), (35, "not shown"), (48, "not shown")):
        y = spread.copy()
        y[20 * np.arange(1, events + 1) - 1] = 1
        result = blind_test(p, y, delta="0.3")
        assert result.verdict == verdict, events
        table = sweep_blind(rank_predictions(p, y), deltas=["0.3"], k_mins=[50], ceilings=[None])
        assert VERDICTS[table.verdict.item()] == verdict
    assert (
        "needs 35 events, and there are 34: the test cannot fire"
        in blind_test(p, np.where(np.cumsum(y) <= 34, y, 0), delta="0.3").explain()
    )
    short = blind_test(p[:40], y[:40])
    assert "there are 40 records, fewer than k_min 50" in short.explain()


@pytest.mark.parametrize("name", ["flchain__lr", "breast_cancer__lr", "monica__lr"])
def test_near_deterministic_outcomes_fire_and_the_words_say_when_that_convicts(name):
    result = blind_test(*shipped(f"{name}__honest"))
    assert (result.verdict, result.trigger) == ("leaky", "near-label")
    said = result.explain()
    assert "only if you hold that the outcome is not nearly deterministic" in said
    assert "fires honestly" in said


def test_a_smooth_leak_needs_a_ceiling():
    p, y = shipped("nassCDS__lr__injSeverity")
    assert blind_test(p, y).verdict == "not shown"
    caught = blind_test(p, y, c_max="0.95")
    assert (caught.verdict, caught.trigger, caught.algorithm1) == ("leaky", "above-ceiling", "leaky")
    assert "with its whole interval" in caught.explain()
    barely = blind_test(p, y, c_max=caught.c_statistic - 1e-6)
    assert "although not with its whole interval" in barely.explain()


def test_published_honest_panel_has_the_same_words():
    with (data_dir() / "published" / "blind_honest_panel.csv").open() as file:
        panel = list(csv.DictReader(file))
    assert len(panel) == 10
    for row in panel:  # a spike of 0 is "clean" in the paper's algorithm, whatever C
        assert (int(row["spike_at_95"]) >= 50) is (row["verdict"] == "leaky")


@pytest.mark.parametrize(
    ("events", "k_min", "expected"),
    [
        (60, 50, "leaky"),
        (49, 50, "leaky"),
        (47, 50, "undetermined"),
        (60, 64, "undetermined"),
        (60, 63, "leaky"),
    ],
)
def test_spike_at_the_edge_of_k_min(events, k_min, expected):
    # a head of e events reaches down to floor(e / 0.95): 63 for 60, 51 for 49, 49 for 47
    result = blind_test(*pure_head(events), k_min=k_min)
    assert result.spike == events * 20 // 19
    assert result.verdict == expected
    assert result.algorithm1 == ("leaky" if expected == "leaky" else "clean")


@pytest.mark.parametrize("value", [0, 1])
def test_one_class_is_undetermined(value):
    result = blind_test(np.linspace(0, 1, 100), np.full(100, value), c_max=0)
    assert (result.verdict, result.trigger) == ("undetermined", None)
    assert (result.c_statistic, result.c_low, result.c_high) == (None, None, None)
    assert "Undetermined: every record" in result.explain()
    assert BlindTest.from_json(result.to_json()) == result


@pytest.mark.parametrize("events", [40, 300, 980])  # the last beyond 1 - delta: any order would be "pure"
def test_predictions_that_are_all_the_same_are_undetermined(events):
    y = np.arange(1000) < events
    result = blind_test(np.full(1000, 0.3), y, c_max="0.4")
    assert (result.verdict, result.trigger, result.c_statistic) == ("undetermined", None, 0.5)
    reason = (
        "every record has the same prediction"
        if events >= 50
        else "a pure head of k_min 50 records needs 48 events, and there are 40"
    )
    assert f"Undetermined: {reason}" in result.explain()
    assert "unrounded" not in result.explain()
    table = sweep_blind(rank_predictions(np.full(1000, 0.3), y))
    assert (table.verdict == VERDICTS.index("undetermined")).all()
    assert (table.trigger == 0).all()
    one = np.full(1000, 0.3)
    one[0] = 0.31  # a single record that is told apart: now there is a ranking
    assert blind_test(one, np.arange(1000) < 300).verdict == "not shown"


def test_ties_hide_the_head():
    p = np.r_[np.full(120, 0.9), np.linspace(0.5, 0.1, 400)]
    y = np.r_[np.ones(80), np.zeros(40), np.ones(20), np.zeros(380)]
    result = blind_test(p, y)
    assert (result.spike, result.spike_best_order, result.spike_worst_order) == (0, 84, 0)
    assert result.ties_hide_head
    assert result.verdict == "not shown"
    assert result.levels == 401  # 0.9, and 400 that are all different
    assert "there are 401 different predictions for 520 records" in result.explain()
    assert (
        "the pure head would have 84 records: that is an upper bound, not a head that was found"
        in result.explain()
    )


def test_decisions_are_not_taken_for_risks():
    """Forty of fifty alarms are right: nobody can say in which order they would be."""
    p = np.r_[np.ones(50), np.zeros(450)]
    y = np.r_[np.ones(40), np.zeros(10), np.ones(20), np.zeros(430)]
    result = blind_test(p, y, k_min=40)
    assert (result.verdict, result.levels, result.decisions, result.ties_hide_head) == (
        "not shown",
        2,
        True,
        True,
    )
    answer = result.explain_parts()[0]
    first = "These are decisions, not risks (every prediction is 0 or 1): there is one cut, and no ranking. "
    assert answer.startswith(f"{first}Not shown: the head cannot be tested")
    assert "Ties hide the head" not in result.explain()
    assert "turned out otherwise" not in result.explain()
    assert not blind_test(np.where(p == 1, 0.9, 0.2), y).decisions
    right = blind_test(p, np.r_[np.ones(50), np.zeros(450)])  # one cut, and it is pure
    assert right.verdict == "leaky"
    assert right.explain().startswith(f"{first}Leaky, near-label")
    assert right.headline.startswith("decisions, no ranking; leaky, moderate evidence: ")


@given(st.lists(st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=30))
def test_levels_are_the_different_predictions(p):
    assert blind_test(p, np.arange(len(p)) % 2).levels == len(set(p))


@pytest.mark.parametrize("y", [np.arange(1000) < 300, np.ones(1000)])
def test_nothing_is_said_of_dispersion_where_nothing_can_be_told_apart(y):
    """300 events where 600 are predicted: far from calibrated, and all the same no risk is told from another."""
    p = np.full(1000, 0.6) if y.sum() < 1000 else np.linspace(0.1, 0.6, 1000)
    result = blind_test(p, y)
    assert (result.dispersion.z, abs(result.dispersion.z_raw) > 10) == (None, True)
    assert (result.verdict, result.warn) == ("undetermined", False)
    why = "every prediction is the same" if y.sum() < 1000 else "every record has the event"
    assert result.explain_parts()[1:] == ([f"Dispersion is not tested: {why}."], [])


def _head(events, others, below=1000):
    """A head of distinct risks with its events and others spread evenly, and none of the event below it."""
    k = events + others
    inside = np.ones(k)
    inside[np.linspace(1, k - 1, others).astype(int)] = 0  # none on top
    return np.r_[np.linspace(0.99, 0.8, k), np.linspace(0.5, 0.01, below)], np.r_[inside, np.zeros(below)]


# The bound of e events in e records is a^(1/e): alone with a = 0.05, and for all heads with
# a = 49 * 0.05 / (e (e - 1)) (leakviz.purity.head_bound_ranked).
@pytest.mark.parametrize(
    ("k", "alone", "scan", "strength"),
    [
        (52, 0.05 ** (1 / 52), (2.45 / (52 * 51)) ** (1 / 52), "moderate"),  # 0.944 and 0.874
        (200, 0.05 ** (1 / 200), (2.45 / (200 * 199)) ** (1 / 200), "strong"),  # 0.985 and 0.953
    ],
)
def test_the_strength_is_what_honest_predictions_would_need(k, alone, scan, strength):
    result = blind_test(*_head(k, 0))
    assert (result.verdict, result.strength) == ("leaky", strength)
    assert result.needed_risk == pytest.approx(alone, abs=1e-9)
    assert result.m_star_scan == pytest.approx(scan, abs=1e-9)
    shown = f"risks above M* {math.floor(alone * 1000) / 1000:.3f}, or {math.floor(scan * 1000) / 1000:.3f} with all heads"
    assert shown in result.headline


def test_a_head_that_honest_risks_of_nine_tenths_make_is_weak_evidence():
    """48 of 50: the risk at which as many or more come in 5 of 100 samples is 0.8794 (bisection of the binomial tail)."""
    p, y = _head(48, 2, below=2000)
    result = blind_test(p, y)
    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = sum(math.comb(50, e) * middle**e * (1 - middle) ** (50 - e) for e in (48, 49, 50))
        low, high = (middle, high) if tail < 0.05 else (low, middle)
    assert (result.verdict, result.trigger, result.strength) == ("leaky", "near-label", "weak")
    assert result.needed_risk == pytest.approx(low, abs=1e-9)
    assert "no leak is needed" in result.headline
    written = json.loads(result.to_json())
    assert (written["strength"], written["headline"]) == ("weak", result.headline)
    assert BlindTest.from_json(result.to_json()) == result


def test_a_head_below_fifty_records_is_held_against_its_own_bound():
    result = blind_test(
        *_head(30, 0), k_min=30, delta=0
    )  # M* looks at heads of 50 and more, here of 30 events in 50
    assert result.needed_risk == pytest.approx(0.05 ** (1 / 30))
    assert (result.strength, result.needed_risk > result.m_star) == ("moderate", True)


def test_heads_with_ties_broken_reach_below_the_last_cut_in_any_order():
    """Brute force over every order inside ties; a cut inside them there is not, so the head at cuts ends above."""
    p, y = np.r_[np.ones(5), np.zeros(4)], np.r_[1, 1, 1, 1, 1, 1, 0, 0, 0]
    reached = []
    for top in set(permutations(y[:5])):
        for rest in set(permutations(y[5:])):
            events = np.cumsum([*top, *rest])
            reached.append(max(k for k in range(1, 10) if 10 * events[k - 1] >= 7 * k))
    result = blind_test(p, y, delta="0.3", k_min=5)
    assert (min(reached), max(reached)) == (result.spike_worst_order, result.spike_best_order) == (7, 8)
    assert result.spike == 5  # 6/9 is below 0.7, and no other threshold cuts


def test_only_the_caveats_that_apply_are_said():
    leaky = blind_test(*pure_head(60)).explain()
    shown = blind_test(*shipped("nassCDS__lr__honest")).explain()
    assert "smooth leak" not in leaky
    assert "smooth leak" in shown
    assert "fires honestly" not in shown


def test_false_certification_stands_beside_the_naive_formula():
    result = blind_test(*pure_head(10))
    assert result.false_certification["0.9"] == pytest.approx(0.188, abs=5e-4)
    assert result.naive_certification["0.9"] == pytest.approx(0.00515, abs=1e-5)
    assert set(result.false_certification) == {"0.9", "0.8", "0.5"}
    said = blind_test(*pure_head(60)).explain()
    assert (
        "up to 0.188. M^k_min, 0.005, is only the chance that 50 records of risk 0.9 all have the event"
        in said
    )
    assert "the chance that" not in blind_test(*pure_head(60), delta=0).explain()
    # nine events in ten are what honest risks of 0.9 give, in the long run above any line
    assert "may fire every time: at delta 0.1, k_min 50 rules nothing out" in (
        blind_test(*pure_head(60), delta="0.1").explain()
    )


def test_m_star_in_result_and_words():
    result = blind_test(*pure_head(225))
    assert result.m_star == pytest.approx(0.05 ** (1 / 225))
    assert (result.m_star_k, result.m_star_events) == (225, 225)
    assert result.m_star_scan < result.m_star
    assert "no admissible risk exceeds M*" in result.explain()
    assert blind_test(*pure_head(5, n=49)).m_star is None


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), min_size=2, max_size=60))
@settings(max_examples=200, deadline=None)
def test_concordance_equals_the_statistics_module_and_scikit_learn(rows):
    p, y = np.array([k / 8 for k, _ in rows]), np.array([e for _, e in rows])
    area, low, high = concordance_ranked(rank_predictions(p, y))
    if len(set(y.tolist())) == 1:
        assert (area, low, high) == (None, None, None)
        return
    assert area == auroc(p, y)
    assert area == pytest.approx(roc_auc_score(y, p))
    assert (low, high) == pytest.approx(auroc_interval(p, y), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 64), st.integers(0, 1)), min_size=60, max_size=120), st.randoms())
@settings(max_examples=50, deadline=None)
def test_properties(rows, random):
    p, y = np.array([k / 64 for k, _ in rows]), np.array([e for _, e in rows])
    result = blind_test(p, y, k_min=5)
    order = list(range(p.size))
    random.shuffle(order)
    assert blind_test(p[order], y[order], k_min=5) == result

    ranking = (
        "c_statistic",
        "c_low",
        "c_high",
        "spike",
        "spike_contiguous",
        "spike_worst_order",
        "spike_best_order",
    )
    ranking += ("m_star", "m_star_scan", "verdict", "trigger", "algorithm1", "ties_hide_head")
    transformed = blind_test(p**3 / 2 + 0.25, y, k_min=5)
    assert [getattr(transformed, f) for f in ranking] == [getattr(result, f) for f in ranking]

    mirrored = blind_test(1 - p, 1 - y, k_min=5)
    assert mirrored.c_statistic == result.c_statistic
    assert mirrored.dispersion.effective_records == pytest.approx(result.dispersion.effective_records)
    if result.dispersion.z_raw is not None:
        assert mirrored.dispersion.z_raw == pytest.approx(result.dispersion.z_raw, abs=1e-9)
    assert mirrored.dispersion.contradicted == result.dispersion.contradicted


def test_weight_chooses_what_the_warning_looks_at():
    p, y = shipped("flchain__lr__honest")
    off = p**2
    by_unit, by_uniform = blind_test(off, y), blind_test(off, y, weight="uniform")
    assert by_unit.dispersion == by_uniform.dispersion == dispersion(off, y)
    assert by_unit.dispersion_uniform == dispersion(off, y, weight="uniform")
    assert by_unit.warn
    assert by_uniform.warn == (
        by_uniform.dispersion_uniform.z is not None and abs(by_uniform.dispersion_uniform.z) > 1.96
    )
    assert not blind_test(off, y, z_alpha=1e6).warn
    assert "out of line" in by_unit.explain()


def test_few_effective_records_do_not_warn():
    result = blind_test([0.9] * 20, [0] * 15 + [1] * 5)
    assert abs(result.dispersion.z_raw) > 5
    assert (result.dispersion.z, result.warn) == (None, False)
    assert "Dispersion is not tested" in result.explain()


def test_contradicted_certainty_is_named():
    p, y = shipped("flchain__lr__honest")
    result = blind_test(np.r_[p, 1.0, 0.0], np.r_[y, 0, 1])
    assert result.dispersion.contradicted == 2
    assert "2 records predicted with certainty turned out otherwise" in result.explain()


def test_breadth_needs_a_reference_and_its_null_is_not_zero():
    p, y = shipped("flchain__lr__dead1460d")
    honest, _ = shipped("flchain__lr__honest")
    second, _ = shipped("flchain__hgb__honest")
    alone = blind_test(p, y)
    assert (alone.breadth, alone.breadth_null_low, alone.breadth_null_high) == (None, None, None)
    one = blind_test(p, y, reference=honest)
    assert one.breadth > 0
    assert one.breadth_null_low is None
    assert "unknown here, and it is not 0" in one.explain()
    two = blind_test(p, y, reference=[honest, second])
    assert two.breadth == one.breadth
    assert two.breadth_null_high > 0
    assert two.breadth > two.breadth_null_high
    assert blind_test(honest, y, reference=honest).breadth == 0


def test_breadth_grows_with_the_leak():
    honest, y = shipped("flchain__lr__honest")
    breadths = [
        blind_test(shipped(f"flchain__lr__dead{days}d")[0], y, reference=honest).breadth
        for days in (30, 365, 1460)
    ]
    assert breadths == sorted(breadths)


def test_null_band_from_folds():
    rng = np.random.default_rng(0)
    risk = rng.random(3000) * 0.6
    y = rng.random(3000) < risk
    first, second = (np.clip(risk + rng.normal(0, 0.05, 3000), 0, 1) for _ in range(2))
    folds = np.arange(3000) % 5
    same = blind_test(first, y, reference=second, folds=folds)
    assert same.breadth_null_low <= same.breadth <= same.breadth_null_high
    rescaled = blind_test(first / 2, y, reference=second, folds=folds)  # only ranks matter
    assert (rescaled.breadth_null_low, rescaled.breadth_null_high) == (
        same.breadth_null_low,
        same.breadth_null_high,
    )
    leak = np.where(y & (rng.random(3000) < 0.5), 0.9 + risk / 10, risk / 2)
    leaky = blind_test(leak, y, reference=second, folds=folds)
    assert leaky.breadth > same.breadth_null_high


@pytest.mark.parametrize("with_reference", [False, True])
def test_sweep_says_what_single_tests_say(with_reference):
    p, y = shipped("breast_cancer__lr__honest")
    p = p.round(3)
    reference = [p**2 / 2 + 0.01 * (np.arange(p.size) % 2), 1 - p] if with_reference else None
    ranked = rank_predictions(p, y)
    breadths = breadth_curves(p, y, reference=reference) if with_reference else None
    stops = {
        "deltas": ["0", "0.05", "0.3"],
        "k_mins": [1, 50, 213, 214, 500],
        "ceilings": [None, "0.9", "1"],
        "epsilons": ["0", "0.01", "0.1"],
    }
    table = sweep_blind(ranked, **stops, breadths=breadths)
    assert table.verdict.dims == ("delta", "k_min", "ceiling")
    assert table.spike.dims == ("delta",)
    assert table.breadth.dims == ("epsilon",)
    epsilons = stops["epsilons"]
    for i, delta in enumerate(stops["deltas"]):
        for k_min in stops["k_mins"]:
            for ceiling in stops["ceilings"]:
                one = blind_test(
                    p, y, delta=delta, k_min=k_min, c_max=ceiling, reference=reference, epsilon=epsilons[i]
                )
                at = table.sel(
                    delta=float(delta), k_min=k_min, ceiling=math.inf if ceiling is None else float(ceiling)
                )
                assert VERDICTS[at.verdict.item()] == one.verdict
                assert TRIGGERS[at.trigger.item()] == (one.trigger or "")
                assert at.algorithm1.item() == (one.algorithm1 == "leaky")
                assert at.ties_hide_head.item() == one.ties_hide_head
                assert at.spike.item() == one.spike
                assert at.spike_contiguous.item() == one.spike_contiguous
                assert at.spike_worst_order.item() == one.spike_worst_order
                assert at.spike_best_order.item() == one.spike_best_order
                assert table.attrs["c_statistic"] == one.c_statistic
                for name in ("breadth", "breadth_null_low", "breadth_null_high"):
                    value = table[name].sel(epsilon=float(epsilons[i])).item()
                    assert (None if math.isnan(value) else value) == getattr(one, name)


def test_default_sweep_is_small_and_ships():
    table = sweep_blind(rank_predictions(*shipped("flchain__lr__honest")))
    assert table.nbytes < 1_000_000
    assert "off" in (sweep_blind.__doc__ or "")
    assert math.isinf(table.ceiling.values[-1])
    assert table.attrs["n"] == 7874


def test_sweep_with_one_class():
    table = sweep_blind(rank_predictions(np.linspace(0, 1, 100), np.ones(100)))
    assert (table.verdict == VERDICTS.index("undetermined")).all()
    assert math.isnan(table.attrs["c_statistic"])


def test_json_and_back():
    p, y = shipped("actg175__lr__days")
    for result in (blind_test(p, y), blind_test(p, y, c_max="0.8", reference=[p, 1 - p], delta="0.125")):
        text = result.to_json()
        assert BlindTest.from_json(text) == result
        assert json.loads(text)["delta"] == result.delta
    assert blind_test(p, y, delta=0.05) == blind_test(p, y, delta="0.050")


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"schema": "leakviz.BlindTest/1"}', '{"schema": "other"}', None]
)
def test_json_of_something_else(text):
    with pytest.raises(InputError, match="text"):
        BlindTest.from_json(text)


def test_result_is_frozen_and_input_unchanged():
    p, y = np.array([0.2, 0.8, -0.0]), np.array([0, 1, 0])
    before = p.tobytes(), y.tobytes()
    result = blind_test(p, y)
    with pytest.raises(AttributeError):
        result.spike = 3
    assert (p.tobytes(), y.tobytes()) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": "1"}, "delta must be at least 0 and below 1"),
        ({"k_min": 0}, "k_min must be a whole number from 1 up"),
        ({"k_min": 50.0}, "k_min"),
        ({"c_max": "1.2"}, "c_max must lie between 0 and 1"),
        ({"epsilon": "-0.1"}, "epsilon"),
        ({"z_alpha": 0}, "z_alpha"),
        ({"z_alpha": float("nan")}, "z_alpha"),
        ({"weight": "beta"}, "weight must be 'unit' or 'uniform'"),
        ({"reference": [0.1, 0.2]}, "reference and y must have the same length, got 2 and 3"),
        ({"reference": [0.1, np.nan, 0.3]}, r"reference is missing \(nan\) in 1 of 3 rows; first: row 1"),
        ({"reference": [[0.1, 0.2], [0.3]]}, "reference must hold vectors of the same length"),
        ({"folds": [1, 2]}, "folds must have one value per row"),
        ({"reference": [0.1, 0.2, 0.3], "folds": [1, 1, 1]}, "at least two folds"),
        ({"folds": [1, None, 2]}, "folds is missing in 1 of 3 rows; first: row 1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        blind_test([0.1, 0.5, 0.9], [0, 1, 1], **options)


def test_sorted_state_answers_without_sorting(monkeypatch):
    p, y = shipped("flchain__lr__honest")
    ranked = rank_predictions(p, y)
    assert not ranked.keys.flags.writeable
    curve = net_benefit_ranked(ranked, np.arange(99) / 100)
    assert curve.sizes["threshold"] == 99
    expected = sweep_purity(p, y, deltas=["0.05"]).spike.item()
    monkeypatch.setattr("leakviz.blind.rank_predictions", None)
    table = sweep_blind(ranked, deltas=["0.05"])
    assert table.spike.item() == expected


def test_options_move_without_a_pass_over_the_rows(monkeypatch):
    p, y = shipped("actg175__lr__days")
    ranked = rank_predictions(p, y)
    assert blind_test_ranked(ranked) == blind_test(p, y)
    expected = blind_test(p, y, k_min=9, c_max="0.8", delta="0.3")
    for name in ("leak_dispersion_ranked", "concordance_ranked", "head_bounds_ranked"):
        monkeypatch.setattr(f"leakviz.blind.{name}", None)
    assert blind_test_ranked(ranked, k_min=9, c_max="0.8", delta="0.3") == expected
