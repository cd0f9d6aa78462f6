"""Calibration and net benefit, against hand-worked values, scikit-learn, scipy and direct formulas."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import beta as beta_law
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from leakviz.calibration import (
    calibration_curve,
    calibration_summary,
    dispersion,
    expected_net_benefit,
    isotonic_curve,
    net_benefit,
    recalibrate,
    sweep_calibration,
    sweep_expected_net_benefit,
)
from leakviz.errors import InputError
from leakviz.paths import data_dir
from leakviz.statistics import wilson_interval


def sample(n, seed=0, sharpness=1.0):
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-1, 1.5, n))
    y = (rng.random(n) < expit(logit(p) * sharpness)).astype(int)
    return p, y


def formula(p, y, a):
    """V and z as they are written in the design, term by term."""
    s2 = p * (1 - p)
    v = math.fsum(a * (y - p) ** 2) / math.fsum(a * s2)
    z = math.fsum(a * (1 - 2 * p) * (y - p)) / math.sqrt(math.fsum(a**2 * s2 * (1 - 2 * p) ** 2))
    return v, z


@pytest.mark.parametrize(
    ("weight", "w"),
    [
        ("unit", lambda p: np.ones_like(p)),
        ("uniform", lambda p: -np.log1p(-p)),
        (("uniform", "0.1", "0.6"), None),
        (("beta", 2, 3), None),
    ],
)
def test_dispersion_is_its_formula(weight, w):
    p, y = sample(20_000, seed=1)
    if w is None:
        law = beta_law(2, 3) if weight[0] == "beta" else None
        density = law.pdf if law else lambda t: 2.0 * (0.1 <= t <= 0.6)
        p, y = p[:60], y[:60]
        a = np.array([quad(lambda t: density(t) / (1 - t), 0, x, points=[0.1, 0.6])[0] for x in p]) ** 2
    else:
        a = w(p) ** 2
    result = dispersion(p, y, weight=weight)
    v, z = formula(p, y, a)
    assert result.v == pytest.approx(v, rel=1e-6)
    assert result.z_raw == pytest.approx(z, rel=1e-5)
    each = a**2 * p * (1 - p) * (1 - 2 * p) ** 2
    assert result.effective_records == pytest.approx(each.sum() ** 2 / (each**2).sum(), rel=1e-5)


def test_spiegelhalter_by_hand():
    # 40 records at 0.2, 12 events: r^2 sums to 12 * 0.64 + 28 * 0.04 = 8.8, expected 40 * 0.16 = 6.4;
    # z = 0.6 * (12 - 8) / sqrt(40 * 0.16 * 0.36)
    result = dispersion([0.2] * 40, [1] * 12 + [0] * 28)
    assert result.v == pytest.approx(8.8 / 6.4)
    assert result.z == pytest.approx(2.4 / math.sqrt(2.304))
    assert result.effective_records == pytest.approx(40)


def test_few_effective_records_make_no_z():
    few = dispersion([0.2] * 29, [1] * 6 + [0] * 23)
    assert few.z is None
    assert few.z_raw == pytest.approx(0.6 * (6 - 5.8) / math.sqrt(29 * 0.16 * 0.36))
    assert dispersion([0.5] * 100, [1, 0] * 50).z_raw is None  # (1 - 2 p) is 0: nothing to test


def test_certain_predictions_are_left_out_and_counted():
    p = [0.2] * 40 + [0, 0, 0, 1, 1, -0.0]
    y = [1] * 12 + [0] * 28 + [0, 1, 1, 1, 0, 0]
    for weight in ("unit", "uniform"):
        result = dispersion(p, y, weight=weight)
        without = dispersion(p[:40], y[:40], weight=weight)
        assert (result.v, result.z) == (without.v, without.z)
        assert (result.rows, result.certain) == (40, 6)
        assert (result.contradicted_ones, result.contradicted_zeros, result.contradicted) == (1, 2, 3)
    nothing = dispersion([0, 1], [0, 1])
    assert (nothing.v, nothing.z, nothing.effective_records) == (None, None, 0.0)


@given(st.lists(st.tuples(st.integers(1, 63), st.integers(0, 1)), min_size=30, max_size=80), st.randoms())
@settings(max_examples=60, deadline=None)
def test_dispersion_does_not_change_under_complement_or_order(rows, random):
    p, y = np.array([k / 64 for k, _ in rows]), np.array([e for _, e in rows])
    order = list(range(p.size))
    random.shuffle(order)
    result = dispersion(p, y)
    for other in (dispersion(1 - p, 1 - y), dispersion(p[order], y[order])):
        assert other.v == pytest.approx(result.v)
        assert (other.z_raw is None) == (result.z_raw is None)
        if result.z_raw is not None:
            assert other.z_raw == pytest.approx(result.z_raw, abs=1e-9)


def test_dispersion_of_a_reference_vector():
    data = pd.read_parquet(data_dir() / "predictions" / "flchain__lr__honest.parquet")
    assert dispersion(data["p"], data["y"]).z == pytest.approx(-1.5, abs=0.05)


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 1)), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_net_benefit_is_its_definition(rows):
    p, y = np.array([k / 10 for k, _ in rows]), np.array([e for _, e in rows])
    tau = np.array([0, 0.1, 0.3, 0.5, 0.7, 0.99])
    curve = net_benefit(p, y, tau)
    expected = [((y[p >= t] == 1).sum() - (y[p >= t] == 0).sum() * t / (1 - t)) / p.size for t in tau]
    assert curve.net_benefit.values == pytest.approx(expected, abs=1e-12)
    everybody = net_benefit(np.ones(p.size), y, tau)
    assert curve.treat_all.values == pytest.approx(everybody.net_benefit.values, abs=1e-12)
    assert not curve.treat_none.any()
    if y.any():
        assert curve.standardised.values == pytest.approx(np.array(expected) / y.mean(), abs=1e-9)
    else:
        assert curve.standardised.isnull().all()


def test_net_benefit_counts_the_threshold_itself():
    curve = net_benefit([0.3, 0.2], [1, 0], [0.3, np.nextafter(0.3, 1)])
    assert curve.positives.values.tolist() == [1, 0]
    assert curve.true_positives.values.tolist() == [1, 0]


@pytest.mark.parametrize("thresholds", [[0.5, 1.0], [-0.1], [np.nan], ["x"], [[0.1]]])
def test_bad_thresholds(thresholds):
    with pytest.raises(InputError, match="thresholds must be"):
        net_benefit([0.1], [1], thresholds)


@pytest.mark.parametrize(
    ("weight", "density", "ends"),
    [
        ("uniform", lambda t: 1.0, (0, 1)),
        (("uniform", "0.05", "0.3"), lambda t: 4.0, (0.05, 0.3)),
        (("beta", 2, 3), beta_law(2, 3).pdf, (0, 1)),
        (("beta", 2, 0.5), beta_law(2, 0.5).pdf, (0, 1)),
        (("beta", 1, 1), lambda t: 1.0, (0, 1)),
    ],
)
def test_expected_net_benefit_integrates_the_net_benefit_curve(weight, density, ends):
    p = np.array([0.02, 0.1, 0.25, 0.25, 0.6, 0.9])
    y = np.array([0, 0, 1, 0, 0, 1])

    def integrand(t):
        return net_benefit(p, y, [t]).net_benefit.item() * density(t)

    cuts = sorted({*ends, *p[(p > ends[0]) & (p < ends[1])].tolist()})
    pieces = [(a, b) for a, b in pairwise(cuts) if a < p.max()]
    by_hand = sum(quad(integrand, a + 1e-12, b, epsabs=1e-10)[0] for a, b in pieces)
    assert expected_net_benefit(p, y, weight=weight).value == pytest.approx(by_hand, abs=1e-7)


def test_expected_net_benefit_of_certainty():
    wrong = expected_net_benefit([1.0, 0.2], [0, 1])
    assert wrong.value == -math.inf
    right = expected_net_benefit([1.0, 0.0], [1, 0])
    assert right.value == pytest.approx(0.5)
    assert right.standardised == pytest.approx(1)
    limited = expected_net_benefit([1.0, 0.2], [0, 1], weight=("uniform", "0.1", "0.5"))
    odds = (math.log(0.9 / 0.5) - 0.4) / 0.4
    assert limited.value == pytest.approx((0.25 - odds) / 2)
    assert limited.treat_all == pytest.approx(0.5 - 0.5 * odds)
    assert expected_net_benefit([0.4], [1]).standardised == pytest.approx(0.4)
    assert expected_net_benefit([0.4, 0.1], [0, 0]).standardised is None


@pytest.mark.parametrize(
    "weight",
    ["gauss", ("uniform", 0.5, 0.5), ("uniform", -1, 1), ("beta", 0, 1), ("beta", 1), None, ("unit", 0, 1)],
)
def test_bad_weights(weight):
    with pytest.raises(InputError, match="weight must be"):
        expected_net_benefit([0.1], [1], weight=weight)
    with pytest.raises(InputError, match="weight must be"):
        dispersion([0.1], [1], weight=weight)


def test_bins_by_hand():
    p = [0.05, 0.15, 0.15, 0.15, 0.65, 0.95]
    y = [0, 1, 0, 0, 1, 1]
    uniform = calibration_curve(p, y, n_bins=4, strategy="uniform")
    assert uniform.n.values.tolist() == [4, 0, 1, 1]
    assert uniform.events.values.tolist() == [1, 0, 1, 1]
    assert uniform.predicted.values.tolist() == pytest.approx([0.125, np.nan, 0.65, 0.95], nan_ok=True)
    low, high = wilson_interval(1, 4)
    assert (uniform.low[0], uniform.high[0]) == (low, high)
    assert uniform.isel(bin=1).to_array().sel(variable=["observed", "low", "high"]).isnull().all()
    quantile = calibration_curve(p, y, n_bins=3)
    assert quantile.n.values.tolist() == [1, 3, 2]


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), min_size=1, max_size=50),
    st.integers(1, 12),
    st.sampled_from(["quantile", "uniform"]),
)
@settings(max_examples=150, deadline=None)
def test_bins_hold_every_record_once_and_never_split_a_tie(rows, n_bins, strategy):
    p, y = np.array([k / 8 for k, _ in rows]), np.array([e for _, e in rows])
    curve = calibration_curve(p, y, n_bins=n_bins, strategy=strategy)
    assert curve.sizes["bin"] == n_bins
    assert int(curve.n.sum()) == p.size
    assert int(curve.events.sum()) == y.sum()
    filled = curve.where(curve.n > 0, drop=True)
    assert (filled.p_max.values[:-1] < filled.p_min.values[1:]).all()
    for i in range(filled.sizes["bin"]):
        row = filled.isel(bin=i)
        members = (p >= row.p_min.item()) & (p <= row.p_max.item())
        assert members.sum() == row.n.item()
        assert y[members].sum() == row.events.item()
        assert row.predicted.item() == pytest.approx(p[members].mean())
    if strategy == "uniform":
        edges = np.arange(n_bins + 1) / n_bins
        counts = [((p >= a) & ((p < b) | (b == 1))).sum() for a, b in pairwise(edges)]
        assert curve.n.values.tolist() == counts


def test_quantile_bins_are_equal_without_ties():
    p, y = sample(1000)
    assert calibration_curve(p, y, n_bins=10).n.values.tolist() == [100] * 10


def test_sweep_of_bins_equals_single_curves():
    p, y = sample(500)
    table = sweep_calibration(np.round(p, 2), y, n_bins=[5, 17])
    for strategy in ("quantile", "uniform"):
        for n_bins in (5, 17):
            one = calibration_curve(np.round(p, 2), y, n_bins=n_bins, strategy=strategy)
            part = table.sel(strategy=strategy, n_bins=n_bins, drop=True).isel(bin=slice(0, n_bins))
            assert one.identical(part)
    assert not table.n.sel(n_bins=5).isel(bin=slice(5, None)).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins"),
        ({"n_bins": 2.5}, "n_bins"),
        ({"strategy": "kmeans"}, "strategy"),
        ({"level": 1}, "level"),
    ],
)
def test_bad_bin_options(options, message):
    with pytest.raises(InputError, match=message):
        calibration_curve([0.1, 0.2], [0, 1], **options)


def test_isotonic_curve_equals_scikit_learn():
    p, y = sample(3000, seed=2)
    p = np.round(p, 3)
    curve = isotonic_curve(p, y, n_resamples=0)
    reference = IsotonicRegression().fit(p, y).predict(np.sort(p))
    assert np.repeat(curve.recalibrated.values, curve.n.values) == pytest.approx(reference)
    assert (np.diff(curve.recalibrated) > 0).all()
    assert curve.band_low.isnull().all()


def test_isotonic_band_holds_calibrated_risks_and_not_others():
    p, y = sample(4000, seed=3)
    calibrated, sharp = isotonic_curve(p, y), isotonic_curve(expit(3 * logit(p)), y)

    def outside(curve):
        at = np.searchsorted(curve.p_max.values, curve.p.values).clip(max=curve.sizes["step"] - 1)
        seen = curve.recalibrated.values[at]
        return ((seen < curve.band_low) | (seen > curve.band_high)).mean().item()

    assert outside(calibrated) < 0.15
    assert outside(sharp) > 0.6


def test_slope_and_intercepts_equal_scikit_learn():
    p, y = sample(5000, seed=4, sharpness=0.6)
    summary = calibration_summary(p, y, n_resamples=0)
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(logit(p)[:, None], y)
    assert summary.slope.value == pytest.approx(model.coef_[0, 0], abs=1e-4)
    assert summary.slope_intercept.value == pytest.approx(model.intercept_[0], abs=1e-4)
    assert summary.slope.low < 0.6 < summary.slope.high
    # the offset model's likelihood equation: the mean risk after the shift is the share of events
    shifted = expit(logit(p) + summary.calibration_in_the_large.value)
    assert shifted.mean() == pytest.approx(y.mean(), abs=1e-10)
    difference = summary.observed_minus_expected
    assert difference.value == pytest.approx((y - p).mean())
    assert difference.high - difference.value == pytest.approx(
        1.959964 * (y - p).std(ddof=1) / math.sqrt(5000)
    )


def test_wald_interval_of_the_large_by_hand():
    # one predicted risk: the model is a proportion's logit, 30 of 100; variance 1 / (100 * 0.3 * 0.7)
    summary = calibration_summary([0.2] * 100, [1] * 30 + [0] * 70, n_resamples=0)
    value = math.log(3 / 7) - math.log(1 / 4)
    assert summary.calibration_in_the_large.value == pytest.approx(value)
    assert summary.calibration_in_the_large.low == pytest.approx(value - 1.959964 / math.sqrt(21), abs=1e-6)
    assert summary.slope.value is None


def test_brier_and_its_parts():
    p, y = sample(3000, seed=5)
    p = np.round(p, 3)
    summary = calibration_summary(p, y)
    assert summary.brier.value == pytest.approx(brier_score_loss(y, p))
    best = brier_score_loss(y, np.clip(IsotonicRegression().fit(p, y).predict(p), 0, 1))
    assert summary.miscalibration.value == pytest.approx(summary.brier.value - best)
    assert summary.discrimination.value == pytest.approx(y.mean() * (1 - y.mean()) - best)
    assert summary.brier.value == pytest.approx(
        summary.miscalibration.value - summary.discrimination.value + summary.uncertainty.value
    )
    for part in (summary.discrimination, summary.uncertainty, summary.brier):
        assert part.low < part.value < part.high
    assert summary == calibration_summary(p, y)  # the draws are seeded


def test_summary_says_none_where_the_data_do_not_determine():
    separated = calibration_summary([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], n_resamples=10)
    assert separated.slope.value is None
    assert separated.calibration_in_the_large.value is not None
    one_class = calibration_summary([0.1, 0.2], [0, 0], n_resamples=0)
    assert one_class.calibration_in_the_large.value is None
    assert calibration_summary([0.0, 1.0, 0.3, 0.6], [0, 1, 1, 0], n_resamples=0).left_out == 2


def test_platt_equals_a_logistic_model_and_keeps_the_ranking():
    p, y = sample(4000, seed=6, sharpness=0.5)
    result = recalibrate(p, y, method="platt")
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(logit(p)[:, None], y)
    assert result.p == pytest.approx(model.predict_proba(logit(p)[:, None])[:, 1], abs=1e-5)
    assert (result.fitted_on, "no standard normal" in result.note) == ("same data", True)
    assert np.array_equal(np.argsort(result.p), np.argsort(p))
    assert roc_auc_score(y, result.p) == roc_auc_score(y, p)


def test_isotonic_on_the_same_data_makes_z_vanish():
    p, y = sample(4000, seed=7, sharpness=0.5)
    result = recalibrate(p, y, method="isotonic")
    assert result.p == pytest.approx(IsotonicRegression().fit(p, y).predict(p))
    assert abs(dispersion(p, y).z) > 3
    assert dispersion(result.p, y).z_raw == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_cross_fitting_uses_the_other_folds_only(method):
    p, y = sample(1500, seed=8, sharpness=0.5)
    folds = np.array(["a", "b", "c"])[np.arange(1500) % 3]
    result = recalibrate(p, y, method=method, folds=folds)
    assert result.fitted_on == "other folds"
    changed = np.where(folds == "a", 1 - y, y)  # the outcomes of a fold do not touch its own predictions
    again = recalibrate(p, changed, method=method, folds=folds)
    assert np.array_equal(result.p[folds == "a"], again.p[folds == "a"])
    assert not np.array_equal(result.p[folds == "b"], again.p[folds == "b"])
    if method == "isotonic":
        model = IsotonicRegression(out_of_bounds="clip").fit(p[folds != "b"], y[folds != "b"])
        assert result.p[folds == "b"] == pytest.approx(model.predict(p[folds == "b"]))


def test_recalibration_keeps_certainty_and_input():
    p, y = sample(200, seed=9)
    p[:2] = 0, 1
    before = p.copy()
    assert recalibrate(p, y).p[:2].tolist() == [0, 1]
    assert recalibrate(p, y, method="none").p.tolist() == p.tolist()
    assert np.array_equal(p, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "beta"}, "method must be"),
        ({"folds": [0, 1]}, r"folds must have one value per row, got the shape \(2,\) for 4 rows"),
        ({"folds": [0, 0, 0, 0]}, "at least two folds"),
        ({"folds": [0, 1, np.nan, 1]}, "folds is missing in 1 of 4 rows; first: row 2"),
        ({"folds": [0, 0, 1, 1]}, "only one class in all folds but 0"),
        ({}, "separates y completely"),
    ],
)
def test_bad_recalibration(options, message):
    with pytest.raises(InputError, match=message):
        recalibrate([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], **options)


@pytest.mark.parametrize("sharpness", [0.5, 1.0])
def test_the_sweep_of_expected_net_benefit_is_that_of_one_weight_after_another(sharpness):
    p, y = sample(3000, seed=4, sharpness=sharpness)
    p[:3] = 0, 0.99, 1
    weights = [
        ("uniform", 0, 0.3),
        ("uniform", 0.005, 0.01),
        ("uniform", 0.1, 0.99),
        ("beta", 1, 2),
        ("beta", 8, 40),
    ]
    table = sweep_expected_net_benefit(p, y, weights=weights)
    for i, weight in enumerate(weights):
        one = expected_net_benefit(p, y, weight=weight)
        assert table["weight"].values[i] == one.weight
        for name in ("value", "low", "high", "treat_all", "standardised"):
            assert table[name].values[i] == pytest.approx(getattr(one, name), abs=1e-6), (weight, name)


def test_the_sweep_knows_infinite_losses():
    table = sweep_expected_net_benefit([1.0, 0.5], [0, 1], weights=["uniform", ("uniform", 0, 0.5)])
    assert table["value"].values.tolist() == [-math.inf, pytest.approx((1 - (math.log(2) - 0.5) / 0.5) / 2)]
    assert table["treat_all"].values[0] == -math.inf
    honest = sweep_expected_net_benefit([1.0, 0.5], [1, 0], weights=["uniform"])
    assert np.isfinite(honest["value"].values).all()
