"""The fingerprint under another detector: by hand, and against the rule's own sweep."""

import numpy as np
import pytest
import xarray as xr

import leakviz
from leakviz.detector_sweep import DETECTORS, aurocs_by_alpha, sweep_detector, use_detector
from leakviz.errors import InputError

ALPHAS = [0.0, 0.1, 1.0]


def made(n=2, seeds=2, rng=None):
    """Return a battery of `n` leaks and as many excluded partners, with AUROCs at three alphas."""
    rng = rng or np.random.default_rng(0)
    names = [f"P_{i}" for i in range(n)] + [f"N_excl_{i}" for i in range(n)]
    draw = lambda *shape: rng.uniform(0, 1, (2 * n, *shape)).round(2)  # noqa: E731
    own, both = ("setting", "seed"), ("setting", "covariance", "seed")
    text = {name: ("setting", [value] * (2 * n)) for name, value in (("backbone", "b"), ("id_dataset", "d"))}
    return xr.Dataset(
        {
            "oracle_lda": (own, 1 - draw(seeds) / 5),
            "maha": (own, draw(seeds)),
            "knn": (own, draw(seeds)),
            "best_unsup": (own, draw(seeds)),
            "maha_by_alpha": (("setting", "covariance", "alpha", "seed"), draw(2, 3, seeds)),
            "maha_ledoit_wolf": (both, draw(2, seeds)),
        },
        {
            "setting": names,
            **text,
            "regime": ("setting", ["leak"] * n + ["clean-excl"] * n),
            "distance": ("setting", [""] * (2 * n)),
            "ood": ("setting", [str(i) for i in range(n)] * 2),
            "pair": ("setting", [str(i) for i in range(n)] * 2),
            "seed": list(range(seeds)),
            "covariance": ["one-class", "tied"],
            "alpha": ALPHAS,
        },
    )


def test_the_larger_of_both_is_taken_per_seed_by_hand():
    battery = made(1)
    battery["maha_by_alpha"].loc[{"setting": "P_0", "covariance": "tied", "alpha": 0.1}] = [0.5, 0.8]
    battery["knn"].loc[{"setting": "P_0"}] = [0.7, 0.4]
    at = use_detector(battery, alpha=0.1, covariance="tied").sel(setting="P_0")
    assert at["maha"].values.tolist() == [0.5, 0.8]
    assert at["best_unsup"].values.tolist() == [0.7, 0.8]  # its mean is no maximum of means
    alone = use_detector(battery, alpha=0.1, covariance="tied", detector="mahalanobis").sel(setting="P_0")
    assert alone["best_unsup"].values.tolist() == [0.5, 0.8]
    neighbours = use_detector(battery, alpha=0.1, detector="knn").sel(setting="P_0")
    assert neighbours["best_unsup"].values.tolist() == [0.7, 0.4]


def test_ledoit_wolf_is_every_settings_own():
    battery = made()
    at = use_detector(battery, covariance="tied", detector="mahalanobis")
    np.testing.assert_array_equal(at["maha"], battery["maha_ledoit_wolf"].sel(covariance="tied"))
    assert battery["maha"].identical(made()["maha"])  # the battery that was given is as it was


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("covariance", ["one-class", "tied"])
def test_the_sweep_is_the_rules_sweep_at_each_alpha(detector, covariance):
    battery = made(20, seeds=3, rng=np.random.default_rng(5))
    options = {"covariance": covariance, "detector": detector}
    stops = {"gates": [0.8, 0.9, 0.95], "taus": [0.2, 0.5, 0.65, 1.0]}
    asked = ["ledoit-wolf", 0.0, 1.0]
    sweep = sweep_detector(battery, alphas=asked, **stops, **options)
    assert sweep["alpha"].values.tolist() == ["ledoit-wolf", "0", "1"]
    for i, alpha in enumerate(asked):
        own = leakviz.sweep_rule(use_detector(battery, alpha=alpha, **options), **stops)
        now = sweep.isel(alpha=i)
        for name in ("n", "fired_count", "correct", "sensitivity", "specificity", "balanced_accuracy"):
            np.testing.assert_array_equal(now[name].transpose(*own[name].dims), own[name], err_msg=name)
        for name in ("auroc", "auroc_low", "auroc_high", "auroc_ungated"):
            np.testing.assert_array_equal(now[name], own[name], err_msg=name)
        fires = now["passes"].values[:, np.newaxis] & now["collapsed"].values
        np.testing.assert_array_equal(fires, own["fired"])
        every = leakviz.sweep_rule(
            use_detector(battery, alpha=alpha, **options), gates=[0], taus=stops["taus"]
        )
        np.testing.assert_array_equal(now["collapsed_count"], every["fired_count"].isel(gate=0))


def test_whiskers_reach_from_the_smallest_to_the_largest_seed():
    battery = made(3, seeds=4)
    sweep = sweep_detector(battery, gates=[0.9], taus=[0.5], alphas=[0.1])
    at = aurocs_by_alpha(battery, alphas=[0.1])["best_unsup"].values[0]
    np.testing.assert_array_equal(sweep["best_unsup_low"].values[0], at.min(axis=1))
    np.testing.assert_array_equal(sweep["best_unsup_high"].values[0], at.max(axis=1))
    np.testing.assert_allclose(sweep["best_unsup"].values[0], at.mean(axis=1), atol=1e-12)


def test_no_setting_gives_no_area():
    nothing = made().isel(setting=[])
    sweep = sweep_detector(nothing, gates=[0.9], taus=[0.5], alphas=[0.1])
    assert np.isnan(sweep["auroc"].values).all()
    assert not sweep["fired_count"].values.any()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"alpha": 0.2}, "one of the battery's 3 stops from 0 to 1, got 0.2"),
        ({"alpha": "lw"}, "got 'lw'"),
        ({"covariance": "full"}, "covariance must be one of 'one-class', 'tied', got 'full'"),
        ({"detector": "both"}, "detector must be one of 'max', 'mahalanobis', 'knn', got 'both'"),
    ],
)
def test_what_is_not_there_is_refused(options, told):
    with pytest.raises(InputError, match=told):
        use_detector(made(), **options)


def test_a_battery_of_numbers_has_no_shrinkage():
    with pytest.raises(InputError, match="lacks 'maha_by_alpha'"):
        use_detector(leakviz.load_battery("published"))
