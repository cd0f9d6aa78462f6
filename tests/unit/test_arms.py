"""The synthetic arms, against the figures of arXiv 2606.11267, section 7.1, and of the issue."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from leakviz.arms import ARMS, concordance, logit_normal, simulate_arms
from leakviz.blind import blind_test
from leakviz.calibration import dispersion, net_benefit
from leakviz.errors import InputError
from leakviz.statistics import auroc

SEEDS = range(4)


@pytest.fixture(scope="module")
def draws():
    return [simulate_arms(seed=seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def results(draws):
    return [{arm: blind_test(d.p.sel(arm=arm), d.y) for arm in ARMS} for d in draws]


def test_dispersion_tells_the_miscalibrated_arm_apart(results):
    z = [r["miscalibrated"].dispersion.z for r in results]
    assert all(280 < value < 313 for value in z)
    assert np.mean(z) == pytest.approx(295, abs=8)
    assert all(r["miscalibrated"].warn for r in results)
    for arm in ("clean", "broad", "deterministic", "laundered"):
        assert all(abs(r[arm].dispersion.z) < 3.7 for r in results)


def test_uniform_weight_is_carried_by_a_few_records(results):
    uniform = [r["miscalibrated"].dispersion_uniform for r in results]
    assert 0 < np.mean([d.z_raw for d in uniform]) < 8
    assert all(5 < d.effective_records < 30 for d in uniform)
    assert all(d.z is None for d in uniform)


def test_discrimination_is_as_asked_and_kept_exactly(draws, results):
    for draw, result in zip(draws, results, strict=True):
        assert result["clean"].c_statistic == pytest.approx(0.84, abs=0.01)
        assert result["miscalibrated"].c_statistic == result["clean"].c_statistic
        assert result["laundered"].c_statistic == result["clean"].c_statistic
        assert result["laundered"].spike == result["clean"].spike
        assert 0.84 < result["broad"].c_statistic < 0.885
        assert float(draw.y.mean()) == pytest.approx(0.02, abs=0.0015)


def test_the_flag_makes_a_pure_head(draws, results):
    for draw, result in zip(draws, results, strict=True):
        p = draw.p.sel(arm="deterministic").values
        top = np.argsort(-p)[:200]
        assert draw.y.values[top].all()
        assert result["deterministic"].spike == pytest.approx(680, abs=35)
        assert (result["deterministic"].verdict, result["deterministic"].trigger) == ("leaky", "near-label")
    assert np.mean([r["deterministic"].spike for r in results]) == pytest.approx(680, abs=15)


def test_the_other_arms_need_a_ceiling(draws, results):
    for draw, result in zip(draws, results, strict=True):
        for arm in ("clean", "miscalibrated", "broad", "laundered"):
            assert result[arm].verdict == "not shown"
            assert result[arm].algorithm1 == "clean"
        caught = blind_test(draw.p.sel(arm="broad"), draw.y, c_max="0.855")
        assert (caught.verdict, caught.trigger) == ("leaky", "above-ceiling")
        assert blind_test(draw.p.sel(arm="clean"), draw.y, c_max="0.855").verdict == "not shown"


def test_miscalibration_costs_net_benefit_and_laundering_restores_it(draws):
    tau = [0.02, 0.05]
    for draw in draws:
        clean, off, healed = (
            net_benefit(draw.p.sel(arm=arm), draw.y, tau).net_benefit
            for arm in ("clean", "miscalibrated", "laundered")
        )
        assert (off < clean).all()
        assert np.abs(healed - clean).max() < 1e-4


def test_quadrature_equals_adaptive_integration():
    mean, sd = logit_normal(0.02, 0.84)
    law = norm(mean, sd)

    def integral(f):
        return quad(lambda s: f(s) * law.pdf(s), mean - 9 * sd, mean + 9 * sd, limit=200)[0]

    prevalence = integral(expit)
    assert prevalence == pytest.approx(0.02, abs=1e-9)

    def below(s):
        return quad(lambda t: expit(-t) * law.pdf(t), mean - 9 * sd, s)[0]

    pairs = integral(lambda s: expit(s) * below(s))
    assert pairs / (prevalence * (1 - prevalence)) == pytest.approx(0.84, abs=1e-6)


def test_concordance_with_a_proxy_by_simulation():
    rng = np.random.default_rng(0)
    s = rng.normal(-1, 1, 200_000)
    y = rng.random(s.size) < expit(s)
    posterior = s + 0.8 * rng.normal(0.8 * y, 1)
    assert concordance(-1, 1, 0.8) == pytest.approx(auroc(posterior, y), abs=0.004)


def test_arms_are_reproducible_and_labelled():
    one, two = simulate_arms(n=1000, seed=3), simulate_arms(n=1000, seed=3)
    assert one.identical(two)
    assert tuple(one.arm.values) == ARMS
    assert not one.p.equals(simulate_arms(n=1000, seed=4).p)
    assert one.attrs["flag_fraction"] == 0.003


def test_other_settings_stay_calibrated():
    arms = simulate_arms(n=100_000, prevalence="0.3", c_statistic="0.75", flag_fraction="0.05", seed=2)
    for arm in ("clean", "broad", "deterministic"):
        assert abs(dispersion(arms.p.sel(arm=arm), arms.y).z) < 3.7
    assert auroc(arms.p.sel(arm="clean"), arms.y) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 10}, "n must be a whole number from 100 up"),
        ({"seed": 0.5}, "seed must be"),
        ({"prevalence": 0}, "prevalence must lie between"),
        ({"c_statistic": "1"}, "c_statistic must lie between"),
        ({"beta": 0}, "beta must lie between"),
        ({"flag_fraction": "0.5"}, "flag_fraction asks for 500 flagged events"),
        ({"broad_c_statistic": "0.8"}, "broad_c_statistic must lie between 0.84"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(InputError, match=message):
        simulate_arms(**({"n": 1000} | options))
