"""The fingerprint rule against the published table, hand-worked batteries and plain loops."""

import csv
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from leakviz.battery import load_battery
from leakviz.decimals import stops
from leakviz.errors import InputError
from leakviz.fingerprint import Rule, contrast, fired, groups, score_battery, sweep_rule

TABLE = Path(__file__).parents[2] / "data" / "published" / "battery_table12.csv"


@pytest.fixture(scope="module")
def published():
    return load_battery("published")


@pytest.fixture(scope="module")
def sweep(published):
    """Every stop that the page's two sliders have."""
    return sweep_rule(published, gates=stops("0.8", "1", "0.005"), taus=stops("0.2", "1", "0.005"))


@pytest.fixture(scope="module")
def thousandths():
    """Return oracle and best_unsup of the table in whole thousandths, and which rows are leaks."""
    with open(TABLE, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    whole = {name: [int(Decimal(row[name]) * 1000) for row in rows] for name in ("oracle_lda", "best_unsup")}
    return (
        np.array(whole["oracle_lda"]),
        np.array(whole["best_unsup"]),
        np.array([r["setting"][0] == "P" for r in rows]),
    )


def battery_of(oracle, unsup, regime, distance=None, pair=None):
    """Build a battery from lists; maha and knn play no part in the rule."""
    size = len(regime)
    text = {
        "setting": [f"s{i}" for i in range(size)],
        "backbone": ["net"] * size,
        "id_dataset": ["digits"] * size,
        "regime": regime,
        "distance": distance or [""] * size,
        "ood": ["seven"] * size,
        "pair": pair or [""] * size,
    }
    coords = {name: ("setting", np.array(values, dtype=str)) for name, values in text.items()}
    half = ("setting", np.full(size, 0.5))
    variables = {
        "oracle_lda": ("setting", np.array(oracle, dtype=float)),
        "maha": half,
        "knn": half,
        "best_unsup": ("setting", np.array(unsup, dtype=float)),
    }
    return xr.Dataset(variables, coords)


def counts(score):
    """Sensitivity and specificity as the paper writes them."""
    return tuple(
        f"{int(score.correct.sel(regime=r))}/{int(score.n.sel(regime=r))}" for r in ("leak", "clean")
    )


# Facts about the published battery: data/published/README.md, and sections 5.2 and 5.3 of the paper


@pytest.mark.parametrize(
    ("gate", "tau", "expected"),
    [
        ("0.95", "0.65", ("18/20", "31/32")),
        ("0.97", "0.65", ("17/20", "32/32")),
        ("0.96", "0.65", ("18/20", "32/32")),
        ("0.95", "0.80", ("20/20", "31/32")),
        ("0.90", "0.65", ("18/20", "31/32")),
        ("0", "0.65", ("18/20", "31/32")),
    ],
)
def test_fact_counts(published, gate, tau, expected):
    assert counts(score_battery(published, Rule(gate=gate, tau=tau))) == expected


def test_fact_the_default_rule_is_the_published_one(published):
    assert Rule() == Rule(gate=0.95, tau=0.65) == Rule("0.95", "0.65")
    np.testing.assert_array_equal(fired(published, Rule()), published.fired_published)


def test_fact_specificity_over_tau(sweep):
    clean = sweep.correct.sel(gate=0.95, regime="clean")
    assert set(clean.sel(tau=slice(0.65, 0.75)).values) == {31}
    assert set(clean.sel(tau=slice(None, 0.60)).values) == {32}
    assert clean.sel(tau=slice(0.65, 0.75)).size == 21
    assert float(sweep.sensitivity.sel(gate=0.95, tau=slice(0.60, None)).min()) >= 0.80


def test_fact_breakdown_of_specificity(published):
    score = score_battery(published, Rule())
    assert score.regime.values.tolist() == [
        "leak",
        "clean-excl",
        "clean-novel far",
        "clean-novel near",
        "clean",
    ]
    assert score.n.values.tolist() == [20, 20, 8, 4, 32]
    assert score.correct.values.tolist() == [18, 20, 8, 3, 31]
    assert score.fired_count.values.tolist() == [18, 0, 0, 1, 1]


def test_fact_wilson_intervals(published):
    score = score_battery(published, Rule())
    expected = {
        "leak": (0.699, 0.972),
        "clean": (0.843, 0.994),
        "clean-excl": (0.839, 1.0),
        "clean-novel near": (0.301, 0.954),
    }
    for regime, (low, high) in expected.items():
        assert round(float(score.low.sel(regime=regime)), 3) == low
        assert round(float(score.high.sel(regime=regime)), 3) == high
    assert float(score.high.sel(regime="clean-excl")) == 1.0


def test_fact_the_only_errors(published):
    wrong = score_battery(published, Rule()).error
    assert set(wrong.setting.values[wrong.values]) == {"P_c10_rn_3", "P_c10_vit_3", "N_c100_rn_cross"}


def test_fact_auroc_is_637_of_640_pairs_with_and_without_the_gate(published, thousandths):
    score = score_battery(published, Rule())
    # Of 20 x 32 pairs only those of the leaks at .775, .758 and .645 with the clean setting at .635 are lost.
    assert float(score.auroc) == 637 / 640
    assert float(score.auroc_ungated) == 637 / 640
    assert round(637 / 640, 4) == 0.9953
    _, unsup, leak = thousandths
    won = sum((a < b) + 0.5 * (a == b) for a in unsup[leak] for b in unsup[~leak])
    assert won == 637
    assert 0.9 < float(score.auroc_low) < 637 / 640 < float(score.auroc_high) < 1


def test_fact_the_gate_is_inert(sweep):
    inert = sweep.sel(gate=slice(None, 0.94))
    assert (inert.fired == inert.fired.isel(gate=0)).all()
    assert set(sweep.auroc.sel(gate=slice(None, 0.95)).values) == {637 / 640}
    at_tau = sweep.fired.sel(tau=0.65)
    assert (at_tau.sel(gate=0.95) == at_tau.sel(gate=0.8)).all()


def test_fact_gate_0_96_removes_the_only_false_alarm_and_nothing_else(sweep):
    changed = sweep.fired.sel(gate=0.96, tau=0.65) != sweep.fired.sel(gate=0.95, tau=0.65)
    assert sweep.setting.values[changed.values].tolist() == ["N_c100_rn_cross"]


def test_fact_a_cut_at_645_thousandths_is_a_decimal(published, sweep):
    name = "P_c100_vit_g2"
    assert not sweep.fired.sel(gate=0.95, tau=0.645, setting=name)
    assert sweep.fired.sel(gate=0.95, tau=0.650, setting=name)
    assert not fired(published, Rule(tau="0.645")).sel(setting=name)
    assert fired(published, Rule(tau="0.650")).sel(setting=name)


def test_fact_contrast(published):
    pairs = contrast(published)
    assert list(pairs.columns) == [
        "pair", "id_dataset", "backbone", "ood", "leaked", "excluded", "difference", "oracle_lda",
    ]  # fmt: skip
    leaks = published.setting.values[published.regime.values == "leak"]
    assert ["P_" + pair for pair in pairs.pair] == leaks.tolist()
    assert (round(pairs.difference.min(), 3), round(pairs.difference.max(), 3)) == (0.217, 0.739)
    assert (pairs.leaked.min(), pairs.leaked.max()) == (0.251, 0.775)
    assert (pairs.excluded.min(), pairs.excluded.max()) == (0.809, 0.998)
    missed = pairs.set_index("pair").loc[["c10_rn_3", "c10_vit_3"]]
    assert missed.leaked.tolist() == [0.775, 0.758]
    assert missed.excluded.tolist() == [0.992, 0.995]
    assert missed.oracle_lda.tolist() == [0.993, 0.996]


# The sweep


def test_every_stop_agrees_with_whole_number_arithmetic(sweep, thousandths):
    oracle, unsup, leak = thousandths
    gate, tau = np.arange(800, 1001, 5), np.arange(200, 1001, 5)
    assert sweep.sizes == {"gate": 41, "tau": 161, "setting": 52, "regime": 5}
    expected = (oracle >= gate[:, None, None]) & (unsup < tau[None, :, None])
    np.testing.assert_array_equal(sweep.fired, expected)
    np.testing.assert_array_equal(sweep.error, expected != leak)
    np.testing.assert_array_equal(sweep.correct.sel(regime="leak"), expected[..., leak].sum(-1))
    np.testing.assert_array_equal(sweep.correct.sel(regime="clean"), (~expected[..., ~leak]).sum(-1))
    np.testing.assert_array_equal(sweep.fired_count.sel(regime="clean"), expected[..., ~leak].sum(-1))


def test_every_gate_has_the_auroc_of_the_gated_score(sweep, thousandths):
    oracle, unsup, leak = thousandths
    for gate, area in zip(range(800, 1001, 5), sweep.auroc.values, strict=True):
        score = np.where(oracle >= gate, 1000 - unsup, 0)
        twice = np.sign(score[leak][:, None] - score[~leak]) + 1
        assert area == twice.sum() / (2 * 20 * 32)
    assert (sweep.auroc_low < sweep.auroc).all()
    assert (sweep.auroc <= sweep.auroc_high).all()  # equal where it is 1: gates .955 and .96


def test_dims_and_types_are_the_contract(sweep):
    stop, per_regime = ("gate", "tau"), ("gate", "tau", "regime")
    assert {name: (v.dims, v.dtype.kind) for name, v in sweep.data_vars.items()} == {
        "fired": ((*stop, "setting"), "b"),
        "error": ((*stop, "setting"), "b"),
        "n": (("regime",), "i"),
        "fired_count": (per_regime, "i"),
        "correct": (per_regime, "i"),
        "rate": (per_regime, "f"),
        "low": (per_regime, "f"),
        "high": (per_regime, "f"),
        "sensitivity": (stop, "f"),
        "specificity": (stop, "f"),
        "balanced_accuracy": (stop, "f"),
        "auroc": (("gate",), "f"),
        "auroc_low": (("gate",), "f"),
        "auroc_high": (("gate",), "f"),
        "auroc_ungated": ((), "f"),
    }


def test_rates_follow_from_the_counts(sweep):
    np.testing.assert_allclose(sweep.rate, sweep.correct / sweep.n, rtol=1e-15)
    np.testing.assert_array_equal(sweep.sensitivity, sweep.rate.sel(regime="leak"))
    np.testing.assert_array_equal(sweep.specificity, sweep.rate.sel(regime="clean"))
    np.testing.assert_array_equal(sweep.balanced_accuracy, (sweep.sensitivity + sweep.specificity) / 2)
    assert ((sweep.low <= sweep.rate) & (sweep.rate <= sweep.high)).all()


@pytest.mark.parametrize(("gate", "tau"), [(0.95, 0.65), (0.8, 0.2), (1.0, 1.0), (0.975, 0.645)])
def test_score_is_the_sweep_at_one_stop(published, sweep, gate, tau):
    assert score_battery(published, Rule(gate, tau)).identical(sweep.sel(gate=gate, tau=tau))
    np.testing.assert_array_equal(fired(published, Rule(gate, tau)), sweep.fired.sel(gate=gate, tau=tau))


def test_a_hand_worked_battery():
    battery = battery_of(
        oracle=[0.95, 0.94, 0.99, 1.0, 1.0],
        unsup=[0.30, 0.10, 0.60, 0.50, 0.70],
        regime=["leak", "leak", "clean-excl", "clean-novel", "clean-novel"],
        distance=["", "", "", "far", "near"],
    )
    score = score_battery(battery, Rule(gate=0.95, tau=0.6))
    assert score.fired.values.tolist() == [True, False, False, True, False]
    assert score.error.values.tolist() == [False, True, False, True, False]
    assert score.correct.values.tolist() == [1, 1, 0, 1, 2]
    assert score.n.values.tolist() == [2, 1, 1, 1, 3]
    assert float(score.sensitivity) == 0.5
    assert float(score.specificity) == 2 / 3
    assert float(score.balanced_accuracy) == pytest.approx(7 / 12)
    # Scores: leaks .7 and 0 (gated), clean .4, .5, .3: the first leak wins 3 pairs, the second none.
    assert float(score.auroc) == 3 / 6
    assert float(score.auroc_ungated) == 1.0


def test_absent_regimes_give_nan_and_no_warning(published):
    leaks = published.isel(setting=np.flatnonzero(published.regime == "leak"))
    score = score_battery(leaks, Rule())
    assert score.n.values.tolist() == [20, 0, 0, 0, 0]
    assert np.isnan(score.rate.values).tolist() == [False, True, True, True, True]
    for name in ("low", "high"):
        assert np.isnan(score[name].values).tolist() == [False, True, True, True, True]
    for name in ("specificity", "balanced_accuracy", "auroc", "auroc_low", "auroc_high", "auroc_ungated"):
        assert np.isnan(float(score[name]))
    empty = sweep_rule(published.isel(setting=[]), gates=[0.9, 0.95], taus=[0.5])
    assert empty.fired.shape == (2, 1, 0)
    assert empty.n.values.tolist() == [0] * 5
    assert np.isnan(empty.rate.values).all()
    assert contrast(published.isel(setting=[])).empty


def test_a_novel_setting_of_no_stated_distance_counts_as_clean_alone():
    score = score_battery(battery_of([1.0], [0.9], ["clean-novel"]), Rule())
    assert score.n.values.tolist() == [0, 0, 0, 0, 1]


def test_order_of_settings_plays_no_part(published, sweep):
    order = np.random.default_rng(0).permutation(52)
    shuffled = sweep_rule(published.isel(setting=order), gates=sweep.gate, taus=sweep.tau)
    np.testing.assert_array_equal(shuffled.fired, sweep.fired.isel(setting=order))
    xr.testing.assert_equal(shuffled.drop_dims("setting"), sweep.drop_dims("setting"))


# Seeds


def test_seeds_are_averaged_before_the_cut():
    battery = battery_of([0.95, 0.95], [0.5, 0.5], ["leak", "leak"])
    unsup = xr.DataArray([[0.64, 0.5], [0.65, 0.6], [0.66, 0.7]], dims=("seed", "setting"))
    oracle = xr.DataArray([[0.94, 0.95, 0.96], [0.90, 0.95, 0.96]], dims=("setting", "seed"))
    seeded = battery.assign(best_unsup=unsup, oracle_lda=oracle)
    # Means: best_unsup 0.65 (not below the cut) and 0.60, oracle 0.95 and 0.93666...
    assert fired(seeded, Rule()).values.tolist() == [False, False]
    assert fired(seeded, Rule(tau=0.655)).values.tolist() == [True, False]
    assert fired(seeded, Rule(gate=0.9)).values.tolist() == [False, True]
    assert fired(seeded, Rule(gate=0.9)).dims == ("setting",)


def test_a_mean_of_decimals_is_compared_as_a_decimal():
    battery = battery_of([1.0], [0.5], ["leak"])
    seeds = [0.1, 0.2, 0.3]
    assert np.mean(seeds) != 0.2  # which is why the mean is rounded
    seeded = battery.assign(best_unsup=(("setting", "seed"), [seeds]))
    assert not fired(seeded, Rule(tau=0.2))[0]
    assert fired(seeded, Rule(tau=0.205))[0]
    assert float(score_battery(seeded, Rule(tau=0.2)).sensitivity) == 0.0


# Pairs


def test_contrast_leaves_out_a_pair_that_lost_a_partner():
    battery = battery_of(
        [0.9, 1.0, 0.8, 0.7],
        [0.75, 0.25, 0.5, 1.0],
        ["clean-excl", "leak", "leak", "clean-novel"],
        pair=["a", "b", "a", ""],
    )
    pairs = contrast(battery)
    assert pairs.to_dict("records") == [
        {
            "pair": "a", "id_dataset": "digits", "backbone": "net", "ood": "seven",
            "leaked": 0.5, "excluded": 0.75, "difference": 0.25, "oracle_lda": 0.8,
        }
    ]  # fmt: skip


# Input


def test_retrained_settings_are_a_group_of_their_own_and_clean():
    battery = battery_of(
        oracle=[0.99, 0.99, 0.97, 0.96, 0.98],
        unsup=[0.4, 0.9, 0.6, 0.7, 0.5],
        regime=["leak", "clean-excl", "clean-retrained", "clean-retrained", "leak"],
        pair=["a", "a", "a", "b", "b"],
    )
    assert groups(battery) == (
        "leak",
        "clean-excl",
        "clean-novel far",
        "clean-novel near",
        "clean",
        "clean-retrained",
    )
    score = score_battery(battery, Rule())
    by_group = score.sel(regime=["leak", "clean-excl", "clean", "clean-retrained"])
    assert by_group.n.values.tolist() == [2, 1, 3, 2]
    # The first retrained one, (0.97, 0.6), fires: one of the two is right, and two of the three clean.
    assert by_group.correct.values.tolist() == [2, 1, 2, 1]
    assert float(score.specificity) == pytest.approx(2 / 3)
    pairs = contrast(battery)  # b has no excluded partner
    assert pairs[["pair", "leaked", "excluded", "retrained"]].to_numpy().tolist() == [["a", 0.4, 0.9, 0.6]]


def test_without_retrained_settings_there_is_no_word_of_them(published):
    assert "clean-retrained" not in groups(published)
    assert "clean-retrained" not in score_battery(published, Rule()).regime.values
    assert "retrained" not in contrast(published)


def test_rule_keeps_decimals_as_the_nearest_floats():
    rule = Rule(gate="0.96", tau=np.float32(0.65))
    assert (rule.gate, rule.tau) == (0.96, 0.65)
    assert type(rule.gate) is type(rule.tau) is float
    assert hash(rule) == hash(Rule(0.96, 0.65))
    with pytest.raises(AttributeError):
        rule.tau = 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gate": 1.01}, "gate must lie between 0 and 1, got 1.01"),
        ({"tau": "-0.1"}, "tau must lie between 0 and 1, got '-0.1'"),
        ({"tau": float("nan")}, "tau must be a finite decimal number"),
        ({"gate": None}, "gate must be a finite decimal number"),
    ],
)
def test_rule_refuses_what_is_no_rate(arguments, message):
    with pytest.raises(InputError, match=message):
        Rule(**arguments)


@pytest.mark.parametrize(
    ("gates", "taus", "message"),
    [
        ([], [0.5], "gates is empty"),
        (0.95, [0.5], "gates must be one-dimensional"),
        ([0.9], [], "taus is empty"),
        ([0.9, 1.1], [0.5], r"gates\[1\] must lie between 0 and 1, got 1.1"),
        ([0.9], [0.5, 0.4, 0.4], r"taus must be strictly increasing; 2 of 3 .* first: taus\[1\] = 0.4"),
        ([0.9], ["x"], r"taus\[0\] must be a finite decimal number"),
    ],
)
def test_sweep_refuses_stops_that_are_none(published, gates, taus, message):
    with pytest.raises(InputError, match=message):
        sweep_rule(published, gates=gates, taus=taus)


def test_everything_refuses_what_is_no_battery():
    for call in (
        lambda: fired(xr.Dataset(), Rule()),
        lambda: score_battery(xr.Dataset(), Rule()),
        lambda: contrast(xr.Dataset()),
    ):
        with pytest.raises(InputError, match="battery has no dim 'setting'"):
            call()


def test_nothing_changes_the_battery(published):
    before = published.copy(deep=True)
    sweep_rule(published, gates=[0.95], taus=[0.65])
    fired(published, Rule())
    contrast(published)
    assert published.identical(before)


def test_stops_may_be_strings(published):
    from_text = sweep_rule(published, gates=["0.95"], taus=["0.645", "0.65"])
    assert from_text.identical(sweep_rule(published, gates=[0.95], taus=[0.645, 0.65]))
