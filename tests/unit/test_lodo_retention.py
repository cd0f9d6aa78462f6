"""Retention, its sweeps, attributions and ablation against hand-worked cases and scikit-learn."""

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from leakviz.decimals import stops
from leakviz.errors import InputError
from leakviz.lodo import (
    ablate_shortcuts,
    load_published_retention,
    retention,
    sweep_retention,
    weighted_attributions,
)
from leakviz.lodo.pairs import auroc_gap
from leakviz.lodo.retention import _why_undefined, fit_coefficients, fixed_basis
from leakviz.lodo.words import explain_ablation
from leakviz.statistics import auroc, auroc_interval

NAMES = ("signal", "shortcut", "flips", "noise", "constant")


@pytest.fixture(scope="module")
def world():
    """Four sources; the shortcut works in one of them, another feature points the other way in one."""
    rng = np.random.default_rng(5)
    source = np.repeat(["a", "b", "c", "d"], [120, 100, 80, 100])
    y = rng.integers(0, 2, source.size)
    sign = 2 * y - 1
    X = np.column_stack(
        [
            0.8 * sign,
            2.0 * sign * (source == "a"),
            1.2 * sign * np.select([source == "b", source == "c"], [1, -1.5], 0),
            0 * sign,
            np.full(source.size, 3.7),
        ]
    )
    X[:, :4] += rng.normal(size=(source.size, 4))
    return X, y, source


@pytest.fixture(scope="module")
def result(world):
    return retention(*world, features=NAMES, bootstrap=60, null_draws=8, n_jobs=1)


def test_coefficients_are_scikit_learns(world, result):
    X, y, source = world
    Z = StandardScaler().fit_transform(X)
    for k, name in enumerate("abcd"):
        rows = source != name
        # balanced weights add up to the rows of the fold, so C is raised to what it is for all rows
        model = LogisticRegression(
            C=source.size / rows.sum(), class_weight="balanced", tol=1e-10, solver="newton-cholesky"
        )
        expected = model.fit(Z[rows], y[rows]).coef_[0]
        np.testing.assert_allclose(result.coefficient_without[k], expected, atol=1e-6)
    full = LogisticRegression(class_weight="balanced", tol=1e-10, solver="newton-cholesky").fit(Z, y)
    np.testing.assert_allclose(result.coefficient, full.coef_[0], atol=1e-6)
    np.testing.assert_allclose(result.intercept, full.intercept_[0], atol=1e-6)
    np.testing.assert_allclose(result.centre[:4], X[:, :4].mean(axis=0))


def test_coefficients_without_balanced_classes_are_scikit_learns(world):
    X, y, source = world
    rows = (y == 1) | (np.arange(y.size) % 3 == 0)
    X, y, source = X[rows], y[rows], source[rows]
    found = retention(X, y, source, class_weight=None, bootstrap=0, null_draws=0, n_jobs=1)
    Z = StandardScaler().fit_transform(X)
    for k, name in enumerate("abcd"):
        kept = source != name
        model = LogisticRegression(C=source.size / kept.sum(), tol=1e-10, solver="newton-cholesky")
        np.testing.assert_allclose(
            found.coefficient_without[k], model.fit(Z[kept], y[kept]).coef_[0], atol=1e-6
        )
    assert found.attrs["class_weight"] == "none"
    assert found.attrs["model"] == "logistic regression on standardised features, classes not balanced"
    weighted = retention(X, y, source, bootstrap=0, null_draws=0, n_jobs=1)
    assert weighted.attrs["class_weight"] == "balanced"
    assert abs(weighted.coefficient - found.coefficient).max() > 0.01


def test_a_source_without_which_one_label_is_left_is_passed_over(world):
    X, y, source = world
    rows = (y == 0) | (source == "b")
    found = retention(X[rows], y[rows], source[rows], bootstrap=0, null_draws=2, n_jobs=1)
    bad = found.source.values == "b"
    assert found.why_not.values[bad].tolist() == [
        f"training has {(source[rows] != 'b').sum()} rows, all with y = 0"
    ]
    assert np.isnan(found.coefficient_without.values[bad]).all()
    ratio = found.coefficient_without.values[~bad, :4] / found.coefficient.values[:4]
    np.testing.assert_allclose(found.retention.values[:4], ratio.min(axis=0))
    assert "b" not in found.argmin_source.values
    assert not np.isnan(found.null_retention[:, :4]).any()


def test_retention_is_the_smallest_ratio(result):
    ratio = result.coefficient_without / result.coefficient.where(result.coefficient != 0)
    known = (result.undefined == "").values
    np.testing.assert_array_equal(result.retention.values[known], ratio.min("source").values[known])
    by = ratio.isel(feature=known).argmin("source").values
    assert result.argmin_source.values[known].tolist() == result.source.values[by].tolist()


def test_each_feature_is_what_it_was_made_to_be(result):
    of = result.set_index({"feature": "feature"}).sel
    assert of(feature="signal").retention.item() > 0.7
    assert of(feature="shortcut").retention.item() < 0.3
    assert of(feature="shortcut").argmin_source.item() == "a"
    assert of(feature="noise").undefined.item() in ("not significant", "small")
    assert of(feature="constant").undefined.item() == "constant"
    assert math.isnan(of(feature="constant").retention.item())
    assert of(feature="noise").argmin_source.item() == ""
    assert np.isnan(result.null_retention.sel(feature=["noise", "constant"])).all()
    # Shuffled sources are alike, so no source carries a feature.
    assert of(feature="shortcut").null_low.item() > 0.6
    assert of(feature="signal").null_median.item() > 0.8


def test_sign_flip_is_its_own_category():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 150)
    source = np.repeat(["x", "y", "z"], 100)
    weight = np.select([source == "x"], [3.0], -0.4)  # strong one way in x, weak the other way elsewhere
    X = (weight * (2 * y - 1) + rng.normal(size=300))[:, None]
    found = retention(X, y, source, bootstrap=50, null_draws=0, n_jobs=1)
    assert found.sign_flip.values.tolist() == [True]
    assert found.retention.item() < 0
    assert found.argmin_source.item() == "x"
    assert found.undefined.item() == ""
    assert np.isnan(found.null_median).all()


def test_why_a_retention_is_undefined():
    w = np.array([0.0, 2.0, 0.0199, 0.02, 1.0, 1.0])
    low = np.array([-1, 1, 0.01, 0.01, -0.1, math.nan])
    high = np.array([1, 3, 0.03, 0.03, 2.0, math.nan])
    assert _why_undefined(w, low, high, 0.01).tolist() == ["constant", "", "small", "", "not significant", ""]


def test_row_bootstrap_has_the_width_of_the_asymptotic_error():
    rng = np.random.default_rng(1)
    n = 600
    y = np.tile([0, 1], n // 2)
    X = (0.8 * y + rng.normal(size=n))[:, None]
    found = retention(X, y, np.repeat(["a", "b"], n // 2), C=1000, bootstrap=150, null_draws=0, n_jobs=1)
    width = (found.coefficient_high - found.coefficient_low).item() / (2 * 1.96)
    Z = StandardScaler().fit_transform(X)
    p = 1 / (1 + np.exp(-(found.intercept.item() + found.coefficient.item() * Z[:, 0])))
    design = np.column_stack([np.ones(n), Z])
    error = np.sqrt(np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]))[1, 1])
    assert width == pytest.approx(error, rel=0.25)


def test_sparse_and_frames_and_groups(world):
    X, y, source = world
    X = np.maximum(np.round(X, 2), 0)[:, :4]
    few = {"bootstrap": 5, "null_draws": 1, "n_jobs": 1}
    dense = retention(pd.DataFrame(X, columns=list("pqrs")), y, source, **few)
    assert dense.feature.values.tolist() == list("pqrs")
    thin = retention(csr_matrix(X), y, source, **few)
    np.testing.assert_allclose(
        thin.coefficient, dense.coefficient, atol=1e-3
    )  # centring moves the intercept alone
    np.testing.assert_allclose(thin.firing_ratio, dense.firing_ratio, rtol=1e-12)
    np.testing.assert_allclose(thin.scale, dense.scale)
    pairs = retention(X, y, source, groups=np.arange(y.size) // 2, **few)
    np.testing.assert_allclose(pairs.coefficient, dense.coefficient)
    # whole pairs are drawn: where all rows of a pair are alike, twice as few units make a wider interval
    twin = np.repeat(np.arange(0, y.size, 2), 2)
    alone, grouped = (
        retention(X[twin], y[twin], source[twin], groups=g, bootstrap=60, null_draws=0, n_jobs=1)
        for g in (None, np.arange(y.size) // 2)
    )
    width = [(r.coefficient_high - r.coefficient_low).values[0] for r in (alone, grouped)]
    assert width[1] > 1.15 * width[0]


def test_firing_by_hand():
    X = np.array([[1, 0, 2, 1.0], [3, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 2], [1, 0, 1, 0], [0, 0, -1, 0]])
    y = [1, 1, 1, 0, 0, 0]
    source = ["a", "b", "a", "b", "a", "b"]
    found = retention(X, y, source, bootstrap=0, null_draws=0, n_jobs=1)
    # 2 of 3 positives against 1 of 3 negatives; never; ever negative; 1 of 3 against 1 of 3
    np.testing.assert_allclose(found.firing_ratio, [2, math.nan, math.nan, 1])
    np.testing.assert_allclose(found.firing_positive, [2 / 3, 0, math.nan, 1 / 3])
    only = np.array([[1.0], [0], [0], [0]])
    found = retention(only, [1, 0, 1, 0], ["a", "a", "b", "b"], bootstrap=0, null_draws=0, n_jobs=1)
    assert found.firing_ratio.values.tolist() == [math.inf]


def test_fixed_basis_of_a_constant_is_zero():
    X = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]])
    assert (fixed_basis(X).Z[:, 0] == 0).all()
    assert (fixed_basis(csr_matrix(X)).scale[0], fixed_basis(X).scale[0]) == (1, 1)


def test_weights_add_up_to_all_rows_whatever_is_left_out():
    rng = np.random.default_rng(2)
    Z, y = rng.normal(size=(60, 2)), np.tile([0, 1, 1], 20)
    once = fit_coefficients(Z, y, 1.0, np.ones(60))
    thrice = fit_coefficients(np.tile(Z, (3, 1)), np.tile(y, 3), 1 / 3, np.ones(180))
    np.testing.assert_allclose(once[0], thrice[0], atol=1e-8)
    half = np.r_[np.ones(30), np.zeros(30)]
    alone = fit_coefficients(Z[:30], y[:30], 2.0, np.ones(30))
    np.testing.assert_allclose(fit_coefficients(Z, y, 1.0, half)[0], alone[0], atol=1e-8)


# Sweeps


def by_hand():
    return xr.Dataset(
        {
            "coefficient": ("feature", [3.0, -2.0, 1.0, 0.5, 0.1]),
            "retention": ("feature", [0.9, 0.4, -0.2, 1.1, math.nan]),
            "argmin_source": ("feature", ["a", "b", "b", "a", ""]),
            "firing_ratio": ("feature", [2.0, 0.25, 1.0, math.nan, 5.0]),
            "null_retention": (
                ("draw", "feature"),
                [[0.95, 0.9, 0.8, 0.9, math.nan], [0.9, 0.3, 0.45, 0.9, math.nan]],
            ),
            "null_median": ("feature", [0.925, 0.6, 0.625, 0.9, math.nan]),
        },
        {"feature": list("ABCDE"), "source": ["a", "b", "c"]},
    )


def test_sweep_by_hand():
    sweep = sweep_retention(
        by_hand(), thresholds=["-0.2", "0", "0.5", "1"], firing_ratios=["1", "1.5", "4", "4.5"]
    )
    assert sweep.n_shortcuts.values.tolist() == [0, 1, 2, 3]
    assert sweep.share.values.tolist() == [0, 1 / 4, 2 / 4, 3 / 4]
    assert sweep.shortcut.sel(retention_threshold=0.5).values.tolist() == [False, True, True, False, False]
    assert sweep.shortcuts_by_source.sel(retention_threshold=1).values.tolist() == [1, 2, 0]
    assert sweep.null_share.values.tolist() == [0, 0, 0.25, 1]  # of the two draws: 0 and 2 of 4 below 0.5
    assert sweep.null_share_low.sel(retention_threshold=0.5).item() == pytest.approx(0.025)
    assert sweep.null_median_share.values.tolist() == [0, 0, 0, 1]
    # B speaks for label 0 and fires four times as often there.
    assert sweep.specific.sel(firing_ratio=1.5).values.tolist() == [True, True, False, False, True]
    assert sweep.specific.sel(firing_ratio=4).values.tolist() == [False, True, False, False, True]
    quadrants = sweep.quadrant_count.sel(retention_threshold=0.5)
    assert quadrants.sel(firing_ratio=1.5).values.tolist() == [1, 1, 0, 1]  # C; B; none; A
    assert quadrants.sel(firing_ratio=4.5).values.tolist() == [2, 0, 1, 0]
    assert (quadrants.sum("quadrant") == 3).all()
    counts = (
        sweep.n_features,
        sweep.n_defined,
        sweep.n_sign_flips,
        sweep.n_above_one,
        sweep.n_without_firing,
    )
    assert [int(count) for count in counts] == [5, 4, 1, 1, 1]


def test_sweep_of_the_largest_features_alone():
    sweep = sweep_retention(by_hand(), thresholds=["0.5"], firing_ratios=["1"], top=2)
    assert sweep.feature.values.tolist() == ["A", "B"]
    assert sweep.n_shortcuts.values.tolist() == [1]


def test_sweep_agrees_with_one_stop_at_a_time(result):
    thresholds, ratios = stops("-0.5", "1", "0.05"), stops("0.5", "3", "0.25")
    sweep = sweep_retention(result, thresholds=thresholds, firing_ratios=ratios)
    for cut in thresholds:
        below = result.retention < cut
        assert sweep.n_shortcuts.sel(retention_threshold=cut).item() == int(below.sum())
        null = (result.null_retention < cut).sum("feature") / int(result.retention.notnull().sum())
        assert sweep.null_share.sel(retention_threshold=cut).item() == pytest.approx(null.mean().item())
    assert sweep.n_without_firing == sweep.n_defined  # features with negative values do not fire
    assert (sweep.quadrant_count == 0).all()


def test_fact_published_features():
    features = load_published_retention()
    sweep = sweep_retention(
        features, thresholds=stops("0", "1", "0.01"), firing_ratios=stops("1", "3", "0.05")
    )
    of = {"retention_threshold": 0.5, "firing_ratio": 1.5}
    assert sweep.n_shortcuts.sel(retention_threshold=0.5).item() == 10
    assert sweep.quadrant_count.sel(of).values.tolist() == [5, 5, 5, 5]
    names = ["Pure Shortcuts", "Context-Dependent", "Robust+Correlated", "Truly Generalizable"]
    ours = np.select(
        [
            sweep.shortcut.sel(retention_threshold=0.5) & ~sweep.specific.sel(firing_ratio=1.5),
            sweep.shortcut.sel(retention_threshold=0.5),
            ~sweep.specific.sel(firing_ratio=1.5),
        ],
        names[:3],
        names[3],
    )
    assert ours.tolist() == features.quadrant.values.tolist()
    assert int(sweep.n_sign_flips) == 2
    assert features.printed_shortcuts.sum() == 14
    assert features.printed_shortcuts.sel(source="mosscap") == 6


@pytest.mark.parametrize(
    ("change", "informative"),
    [
        ({"thresholds": []}, "thresholds is empty"),
        ({"thresholds": [0.5, 0.5]}, r"thresholds must be strictly increasing.*thresholds\[1\] = 0.5"),
        ({"firing_ratios": [-1, 2]}, "firing_ratios must be from 0 up, got -1"),
        ({"thresholds": ["many"]}, "thresholds must be a finite decimal number"),
        ({"top": 0}, "top must be a whole number from 1 up"),
    ],
)
def test_sweep_refuses(change, informative):
    with pytest.raises(InputError, match=informative):
        sweep_retention(by_hand(), **({"thresholds": [0.5], "firing_ratios": [1.5]} | change))
    with pytest.raises(InputError, match="result needs 'retention' over 'feature'"):
        sweep_retention(by_hand().drop_vars("retention"), thresholds=[0.5], firing_ratios=[1])


@pytest.mark.parametrize(
    ("change", "informative"),
    [
        ({"features": ["p"]}, "features has 1 names and X has 2 columns"),
        ({"features": ["p", "p"]}, "features has 'p' twice"),
        ({"C": 0}, "C must be above 0"),
        ({"smallest": "2"}, "smallest must lie between 0 and 1"),
        ({"bootstrap": -1}, "bootstrap must be a whole number"),
        (
            {"source": ["a", "b"] * 4},
            "no source can be left out: without source 'a', training has 4 rows, all with",
        ),
        ({"class_weight": "even"}, "class_weight must be 'balanced' or None, got 'even'"),
        ({"X": ["text"] * 8}, "X must be a matrix of numbers"),
        ({"X": pd.DataFrame({"p": ["u"] * 8, "q": [1] * 8})}, "column 'p' holds"),
    ],
)
def test_retention_refuses(change, informative):
    given = {"X": np.ones((8, 2)), "y": [0, 1] * 4, "source": ["a"] * 4 + ["b"] * 4} | change
    with pytest.raises(InputError, match=informative):
        retention(given.pop("X"), given.pop("y"), given.pop("source"), n_jobs=1, **given)


# Attributions


def test_attributions_by_hand():
    result = xr.Dataset(
        {
            "coefficient": ("feature", [2.0, -1.0, 1.0]),
            "retention": ("feature", [0.25, 1.5, math.nan]),
            "centre": ("feature", [1.0, 0.0, 0.0]),
            "scale": ("feature", [2.0, 1.0, 0.5]),
            "intercept": ((), 0.5),
            "null_retention": (("draw", "feature"), [[1.0, 1.0, math.nan], [0.1, 1.0, math.nan]]),
        },
        {"feature": list("pqr")},
    )
    X = [[5, 3, 1], [1, 1, 0.25]]
    found = weighted_attributions(X, result, k=1)
    assert found.attribution.values.tolist() == [[4, -3, 2], [0, -1, 0.5]]
    assert found.weight.values.tolist() == [0.25, 1, 1]
    assert found.weighted_attribution.values.tolist() == [[1, -3, 2], [0, -1, 0.5]]
    assert found.jaccard.values.tolist() == [0, 1]  # p gives way to q; q stays
    assert found.order_changed.values.tolist() == [True, False]
    assert found.null_jaccard.values.tolist() == [1, 0.5]
    assert (found.mean_jaccard, found.changed_share) == (0.5, 0.5)
    assert (found.demoted_retention, found.promoted_retention) == (0.25, 1)
    two = weighted_attributions(X, result, k=2)
    assert two.jaccard.values.tolist() == [1 / 3, 1]  # p, q against q, r
    assert two.attrs["undefined"] == ""
    for k in (3, 50):  # all features are in the top 3 of 3, whatever their weights
        every = weighted_attributions(X, result, k=k)
        assert np.isnan(every.jaccard).all()
        assert np.isnan(every.null_jaccard).all()
        assert math.isnan(every.mean_jaccard)
        assert every.attrs["undefined"].startswith(
            f"3 features have a coefficient, so the top {k} are all of them"
        )
        assert every.order_changed.values.tolist() == [True, False]
        assert math.isnan(every.demoted_retention)
    without = result.assign(coefficient=("feature", [2.0, 0.0, 1.0]))  # a constant never moves
    assert (
        weighted_attributions(X, without, k=2).attrs["undefined"].startswith("2 features have a coefficient")
    )


def test_attributions_add_up_to_the_logit(world, result):
    X, y, _ = world
    found = weighted_attributions(X, result)
    logits = found.attribution.sum("feature") + found.intercept
    scaler = StandardScaler().fit(X)
    model = LogisticRegression(class_weight="balanced", tol=1e-10).fit(scaler.transform(X), y)
    np.testing.assert_allclose(logits, model.decision_function(scaler.transform(X)), atol=1e-4)


def test_attributions_refuse(result):
    with pytest.raises(InputError, match="X must have the 5 features of the result"):
        weighted_attributions(np.zeros((3, 2)), result)
    with pytest.raises(InputError, match="explain some of the rows"):
        weighted_attributions(np.broadcast_to(0.0, (5_000_000, 5)), result)


# Ablation


def test_ablation_drops_what_others_show_and_nothing_of_the_source_itself(world):
    X, y, source = world
    found = ablate_shortcuts(X, y, source, features=NAMES, draws=2, n_jobs=1)
    dropped = found.dropped.sel(feature="shortcut")
    assert dropped.sel(source=["b", "c", "d"]).all()  # where "a" is in training, the shortcut shows
    assert not found.dropped.sel(feature="constant").any()
    changed = y.copy()
    own = source == "b"
    changed[own] = 1 - changed[own]
    other = ablate_shortcuts(X, changed, source, features=NAMES, draws=2, n_jobs=1)
    np.testing.assert_array_equal(found.dropped.sel(source="b"), other.dropped.sel(source="b"))
    np.testing.assert_array_equal(found.score[:, own], other.score[:, own])
    for arm in range(2):
        assert found.auc[arm].item() == pytest.approx(auroc(found.score[arm], y))
    assert found.change.item() == pytest.approx((found.auc[1] - found.auc[0]).item())
    assert found.change_low < found.change < found.change_high
    assert found.random_change.shape == (2,)
    assert (found.n_dropped == found.dropped.sum("feature")).all()


def test_ablation_is_a_plain_refit(world):
    X, y, source = world
    found = ablate_shortcuts(X, y, source, draws=0, n_jobs=1)
    own = source == "c"
    scaler = StandardScaler().fit(X[~own])
    Z = scaler.transform(X)
    for arm, columns in ((0, np.ones(5, bool)), (1, ~found.dropped.sel(source="c").values)):
        model = LogisticRegression(
            C=source.size / (~own).sum(), class_weight="balanced", tol=1e-10, solver="newton-cholesky"
        )
        model.fit(Z[~own][:, columns], y[~own])
        np.testing.assert_allclose(
            found.score[arm, own], model.decision_function(Z[own][:, columns]), atol=1e-6
        )


def test_steps_take_away_the_lowest_nested_retention_first(world):
    X, y, source = world
    found = ablate_shortcuts(X, y, source, draws=2, folds=3, n_jobs=1)
    assert found.removed.values.tolist() == [0, 1, 2, 3, 4]
    scores = {name: np.full((5, y.size), math.nan) for name in ("cv", "lodo")}
    fold = StratifiedKFold(3, shuffle=True, random_state=0)
    splits = [("cv", *split) for split in fold.split(X, y)]
    splits += [("lodo", np.flatnonzero(source != name), np.flatnonzero(source == name)) for name in "abcd"]
    for protocol, train, test in splits:
        C = y.size / train.size
        nested = retention(X[train], y[train], source[train], C=C, bootstrap=0, null_draws=0, n_jobs=1)
        order = np.argsort(nested.retention.values, kind="stable")  # undefined ones last
        scaler = StandardScaler().fit(X[train])
        for count in range(5):
            kept = np.setdiff1d(np.arange(5), order[:count])
            model = LogisticRegression(C=C, class_weight="balanced", tol=1e-8)
            model.fit(scaler.transform(X[train])[:, kept], y[train])
            scores[protocol][count, test] = model.decision_function(scaler.transform(X[test])[:, kept])
    for protocol, values in scores.items():
        of = found.sel(ablation_protocol=protocol)
        np.testing.assert_allclose(
            of.step_auc, [auroc(s, y) for s in values], atol=1e-4
        )  # a pair or two may tie
        low, high = auroc_interval(values[2], y)
        assert (of.step_auc_low[2].item(), of.step_auc_high[2].item()) == pytest.approx((low, high), abs=2e-4)
        change = auroc_gap(values[3], values[0], y)
        names = ("step_change", "step_change_low", "step_change_high")
        assert [of[name].values[3] for name in names] == pytest.approx(change, abs=2e-4)
    assert found.step_auc.sel(ablation_protocol="lodo", removed=0) == found.auc.sel(arm="all features")
    np.testing.assert_array_equal(found.step_random.sel(removed=0), [found.auc.values[0]] * 2)
    without = ablate_shortcuts(X, y, source, draws=0, steps=0, n_jobs=1)
    assert "step_auc" not in without
    assert ablate_shortcuts(X, y, source, draws=0, steps=3, n_jobs=1).removed.values.tolist() == [0, 2, 4]


def test_ablation_passes_over_a_source_that_cannot_be_left_out(world):
    X, y, source = world
    rows = (y == 0) | (source == "b")
    found = ablate_shortcuts(X[rows], y[rows], source[rows], draws=1, n_jobs=1)
    bad = found.source.values == "b"
    assert (found.why_not.values != "").tolist() == bad.tolist()
    assert (np.isnan(found.score[0]) == (source[rows] == "b")).all()
    assert np.isnan(found.auc).all()  # the others hold negatives only
    assert not np.isnan(found.step_auc.sel(ablation_protocol="cv")).any()
    assert not found.dropped.values[bad].any()


def test_ablation_without_anything_left_ties_and_few_sources_are_refused():
    rng = np.random.default_rng(0)
    y, source = np.tile([0, 1], 60), np.repeat(["a", "b", "c"], 40)
    X = rng.normal(size=(120, 1))
    found = ablate_shortcuts(X, y, source, threshold="9", draws=0, n_jobs=1)
    assert found.dropped.all()
    assert (found.score[1] == 0).all()
    assert found.auc[1] == 0.5
    with pytest.raises(InputError, match="source has 2 values"):
        ablate_shortcuts(X[:80], y[:80], source[:80])


def test_sources_of_one_group_have_no_interval_and_no_null(world):
    """Drawn within a source, its one group is always itself: an interval would have no width."""
    X, y, source = world
    few = {"features": NAMES, "n_jobs": 1}
    kept = retention(X, y, source, groups=source, bootstrap=30, null_draws=2, **few)
    assert np.isnan(kept.coefficient_low).all()
    assert np.isnan(kept.null_median).all()
    assert kept.sizes["draw"] == 0
    assert "nothing can be drawn within a source" in kept.attrs["undefined"]
    plain = retention(X, y, source, bootstrap=0, null_draws=0, **few)
    np.testing.assert_array_equal(kept.retention, plain.retention)
    assert "undefined" not in plain.attrs
    ablation = ablate_shortcuts(X, y, source, groups=source, draws=0, steps=2, **few)
    assert np.isnan(ablation.step_auc.sel(ablation_protocol="cv")).all()
    assert not np.isnan(ablation.step_auc.sel(ablation_protocol="lodo")).any()
    assert "no fold divides a source" in ablation.attrs["undefined"]
    assert "Cross-validation is not compared: every source is one" in " ".join(explain_ablation(ablation))
