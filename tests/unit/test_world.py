"""The teaching world, against references that share nothing with it: formulas by hand, and scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import combine_pvalues, ks_2samp, kstwobign
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import IsolationForest
from sklearn.metrics import auc, roc_auc_score
from sklearn.neighbors import NearestNeighbors

from leakviz import Mahalanobis, audit_split, score_world, simulate_leak, simulate_twins, sweep_world
from leakviz.detectors import decompose, probe_split
from leakviz.errors import InputError
from leakviz.lessons import _twins
from leakviz.moments import fit_statistics
from leakviz.world import DETECTORS, FRAME, LEVELS, WORLD_ALPHAS
from leakviz.world.answers import N_TREES
from leakviz.world.draw import world_features
from leakviz.world.level_sets import gaussian_level_sets, grid_level_set
from leakviz.world.twins import TWINS


@pytest.fixture(scope="module")
def worlds():
    out = simulate_leak(anisotropy=3, orientation=25, angle=70, rows=120, test_rows=300)
    return {"out": out, "in": replace(out, in_fit=True)}


@pytest.fixture(scope="module")
def scored(worlds):
    return {
        (there, detector): score_world(world, detector=detector, alpha=0)
        for there, world in worlds.items()
        for detector in DETECTORS
    }


# The draw


def test_the_covariance_is_what_anisotropy_and_orientation_say():
    assert simulate_leak(anisotropy=4).covariance == pytest.approx(np.diag([4, 0.25]))
    assert simulate_leak(anisotropy=4, orientation=90).covariance == pytest.approx(np.diag([0.25, 4]))
    # Long axis 3 along (1, 1): 3/2 [[1, 1], [1, 1]] + 1/6 [[1, -1], [-1, 1]].
    turned = simulate_leak(anisotropy=3, orientation=45).covariance
    assert turned == pytest.approx(np.array([[5 / 3, 4 / 3], [4 / 3, 5 / 3]]))


def test_rows_are_drawn_from_their_classes():
    world = simulate_leak(anisotropy=3, orientation=30, rows=20_000, test_rows=50_000, noise_dimensions=1)
    for rows, centre in (
        (world.ood_test, world.ood_centre),
        (world.ood_fit, world.ood_centre),
        (world.id_fit[world.id_fit_labels == 2], world.centres[2]),
        (world.id_test[world.id_test_labels == 1], world.centres[1]),
    ):
        assert rows[:, :2].mean(axis=0) == pytest.approx(centre, abs=0.06)
        expected = np.eye(3)
        expected[:2, :2] = world.covariance
        assert np.cov(rows.T) == pytest.approx(expected, abs=0.1)
    # No group has another's rows.
    firsts = [world.ood_test[0], world.ood_fit[0], world.id_fit[0], world.id_test[0]]
    assert len({round(row[2], 12) for row in firsts}) == 4


@given(distance=st.floats(0, 12), angle=st.floats(0, 359), ratio=st.floats(1, 10), tilt=st.floats(-180, 180))
@settings(max_examples=40, deadline=None)
def test_the_class_keeps_its_mahalanobis_distance_all_round(distance, angle, ratio, tilt):
    world = simulate_leak(
        distance=distance, angle=angle, anisotropy=ratio, orientation=tilt, rows=5, test_rows=20
    )
    away = world.ood_centre - world.centres.mean(axis=0)
    assert away @ np.linalg.solve(world.covariance, away) == pytest.approx(distance**2, abs=1e-6)
    again = world.locate(*world.ood_centre)
    assert again[0] == pytest.approx(distance, abs=1e-6)
    if distance > 1e-3:
        assert np.cos(np.deg2rad(again[1] - angle)) == pytest.approx(1, abs=1e-9)


def test_a_slider_moves_rows_and_does_not_draw_them_anew():
    first, moved = simulate_leak(distance=3), simulate_leak(distance=5)
    assert (first.id_fit == moved.id_fit).all()
    assert (first.id_test == moved.id_test).all()
    assert moved.ood_test - first.ood_test == pytest.approx(np.tile([0, 2], (600, 1)))
    fewer = simulate_leak(rows=100)
    assert (fewer.id_fit[100:200] == simulate_leak(rows=300).id_fit[300:400]).all()
    assert not (simulate_leak(seed=1).id_fit == first.id_fit).any()


def test_the_switch_adds_the_class_to_the_fit_set_and_changes_nothing_else(worlds):
    out, into = worlds["out"], worlds["in"]
    assert (out.fit == out.id_fit).all()
    assert out.fit_labels.max() == 2
    assert (into.fit == np.concatenate([out.id_fit, out.ood_fit])).all()
    assert (into.fit_labels[-120:] == 3).all()
    assert into.fit_labels.size == 480
    assert into.ood_test is out.ood_test
    again = simulate_leak(**into.parameters())
    assert (again.fit == into.fit).all()
    assert again.parameters() == into.parameters()


def test_centres_can_be_given():
    given_centres = np.array([[0.0, 0.0], [4.0, 2.0]])
    before = given_centres.copy()
    world = simulate_leak(centres=given_centres, distance=3, angle=0)
    assert world.classes == 2
    assert (world.centres == before).all()
    assert world.ood_centre == pytest.approx([5, 1])
    assert (simulate_leak(**world.parameters()).id_test == world.id_test).all()
    assert (given_centres == before).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"classes": 6}, "classes must be a whole number from 1 to 5, got 6"),
        ({"classes": True}, "classes must be a whole number"),
        ({"distance": 13}, "distance must lie between 0 and 12, got 13"),
        ({"distance": "far"}, "distance must be a finite decimal"),
        ({"angle": float("nan")}, "angle must be a finite decimal"),
        ({"anisotropy": 0.5}, "anisotropy must lie between 1 and 10"),
        ({"rows": 2}, "rows must be a whole number from 5 to 20,000, got 2"),
        ({"ood_rows": 0}, "ood_rows must be"),
        ({"test_rows": 10}, "test_rows must be"),
        ({"seed": -1}, "seed must be"),
        ({"in_fit": "yes"}, "in_fit must be True or False"),
        ({"noise_dimensions": 101}, "noise_dimensions must be"),
        ({"centres": [[0, 0, 0]]}, r"centres must have the shape \(C, 2\)"),
        ({"centres": [[0, 0], [1, float("nan")]]}, "1 of 2 rows do not, first: row 1"),
        ({"centres": [["a", 0]]}, "centres must be numbers"),
        ({"centres": [[0, 0]], "classes": 2}, "classes is 2 and centres has 1 rows"),
    ],
)
def test_a_wrong_parameter_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        simulate_leak(**wrong)


# The answers


@pytest.mark.parametrize(
    ("there", "noise"), [("in", 0), ("out", 0), ("in", 5)], ids=["in", "out", "in-with-noise"]
)
def test_the_point_in_the_box_is_that_of_an_audit(worlds, scored, there, noise):
    world = worlds[there]
    if noise:
        world = simulate_leak(rows=60, test_rows=100, noise_dimensions=noise, in_fit=True)
    found = score_world(world, alpha=0) if noise else scored[there, "one-class"]
    audit = audit_split(
        *map(world_features, (world.fit, world.id_test, world.ood_test)),
        id_test_labels=world.id_test_labels,
        seeds=(0,),
    )
    for name in ("oracle_lda", "oracle_lda_low", "oracle_lda_high", "maha", "knn", "best_unsup"):
        assert float(found[name]) == pytest.approx(float(audit[name][0]), abs=1e-12), name


@pytest.mark.parametrize("there", ["out", "in"])
def test_scores_are_those_of_the_detectors_written_out(worlds, scored, there):
    world = worlds[there]
    tests = np.concatenate([world.id_test, world.ood_test])
    truth = np.repeat([0, 1], [300, 300])

    def squared(rows, centre, covariance):
        away = rows - centre
        return np.einsum("ij,jk,ik->i", away, np.linalg.inv(covariance), away)

    one = squared(tests, world.fit.mean(axis=0), np.cov(world.fit.T, bias=True))
    labels = np.unique(world.fit_labels)
    means = np.stack([world.fit[world.fit_labels == c].mean(axis=0) for c in labels])
    within = np.cov((world.fit - means[world.fit_labels]).T, bias=True)
    nearest = np.min([squared(tests, mean, within) for mean in means], axis=0)
    unit = [
        np.column_stack([rows, np.full(len(rows), 100.0)])
        / np.sqrt((rows**2).sum(axis=1) + 1e4)[:, np.newaxis]
        for rows in (world.fit, tests)
    ]
    fiftieth = NearestNeighbors(n_neighbors=50).fit(unit[0]).kneighbors(unit[1])[0][:, -1]
    forest = IsolationForest(n_estimators=N_TREES, random_state=world.seed).fit(world.fit)
    written_out = {
        "one-class": one,
        "class-conditional": nearest,
        "knn": fiftieth,
        "isolation-forest": -forest.score_samples(tests),
    }
    assert set(written_out) == set(DETECTORS)
    for detector, anomaly in written_out.items():
        found = scored[there, detector]
        assert np.concatenate([found.id_score, found.ood_score]) == pytest.approx(-anomaly, abs=1e-6)
        assert float(found.auroc) == pytest.approx(roc_auc_score(truth, anomaly), abs=1e-4)


def test_in_the_plane_knn_ranks_by_plain_distance(worlds, scored):
    world = worlds["out"]
    plain = NearestNeighbors(n_neighbors=50).fit(world.fit).kneighbors(world.ood_test)[0][:, -1]
    found = -scored["out", "knn"].ood_score.values * 100  # seen from 100 away
    assert found == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("there", ["out", "in"])
def test_curves_and_counts_belong_to_the_auroc(scored, there, detector):
    found = scored[there, detector]
    assert float(found.low) < float(found.auroc) < float(found.high)
    area = auc(found.false_positive_rate, found.true_positive_rate)
    assert area == pytest.approx(float(found.auroc), abs=0.003)
    assert int(found.id_count.sum()) == int(found.ood_count.sum()) == 300
    # Hardly anything lies beyond the fixed edges.
    assert int(found.id_count[-1] + found.ood_count[-1]) < 30
    for place, share in enumerate(LEVELS):
        inside = (found.id_score >= found.level_score[place]).mean()
        assert float(inside) == pytest.approx(share, abs=0.01)


def test_what_the_probe_says_does_not_depend_on_the_switch(scored):
    for name in ("oracle_lda", "oracle_x", "oracle_y"):
        assert scored["in", "knn"][name].equals(scored["out", "one-class"][name])


def test_the_line_is_that_of_an_lda_of_the_fitting_half(worlds, scored):
    world, found = worlds["out"], scored["out", "one-class"]
    tests = np.concatenate([world.id_test, world.ood_test])
    marks = np.concatenate([world.id_test_labels, np.full(300, 3)])
    fitting = ~probe_split(marks, seed=0)
    rows, spread = tests[fitting], tests[fitting].std(axis=0)
    probe = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(
        rows / spread, marks[fitting] == 3
    )
    ends = np.column_stack([found.oracle_x, found.oracle_y])
    assert probe.decision_function(ends / spread) == pytest.approx([0, 0], abs=1e-8)
    (left, right), (bottom, top) = FRAME
    on_border = np.isclose(ends[:, :1], [left, right]).any(axis=1) | np.isclose(
        ends[:, 1:], [bottom, top]
    ).any(axis=1)
    assert on_border.all()
    assert not np.allclose(ends[0], ends[1])
    tiny = score_world(simulate_leak(test_rows=20, noise_dimensions=40), alpha=0)
    assert np.isnan(tiny.oracle_x).all()  # 20 held-out rows do not tell a line among 42 features


@pytest.mark.parametrize(
    "wrong",
    [
        ({"detector": "lof"}, "detector must be one of 'one-class'"),
        ({"alpha": 1.5}, "shrinkage"),
        ({"k": 500}, "k is 500"),
    ],
    ids=["detector", "alpha", "k"],
)
def test_a_wrong_option_is_named(worlds, wrong):
    with pytest.raises(InputError, match=wrong[1]):
        score_world(worlds["out"], **wrong[0])


# The table


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_table_holds_what_one_world_after_another_says(worlds, detector):
    alphas = [0, 0.1, 1] if detector in ("one-class", "class-conditional") else [0]
    table = sweep_world(worlds["in"], detector=detector, alphas=alphas)
    assert table.equals(sweep_world(worlds["out"], detector=detector, alphas=alphas))
    for share, there in ((0, "out"), (1, "in")):
        for place, alpha in enumerate(alphas):
            one = score_world(worlds[there], detector=detector, alpha=alpha)
            row = table.sel(share=share).isel(alpha=place)
            for name in ("auroc", "low", "high", "best_unsup", "oracle_lda", "id_count", "ood_count"):
                assert np.allclose(row[name], one[name], atol=1e-12), name
            for name in ("contour_x", "contour_y", "true_positive_rate"):
                many, few = row[name].values, one[name].values
                cut = many if many.ndim == 1 else many[:, : few.shape[1]]
                assert np.allclose(cut, few, atol=1e-5, equal_nan=True), name
                assert many.ndim == 1 or np.isnan(many[:, few.shape[1] :]).all()


def test_between_out_and_in_only_a_part_of_the_rows_is_in(worlds):
    table = sweep_world(worlds["out"], alphas=[0])
    world = worlds["out"]
    half = Mahalanobis(shrinkage=0, standardize=False).fit(np.concatenate([world.id_fit, world.ood_fit[:60]]))
    anomaly = -half.score_samples(np.concatenate([world.id_test, world.ood_test]))
    expected = roc_auc_score(np.repeat([0, 1], [300, 300]), anomaly)
    assert float(table.auroc.sel(share=0.5, alpha=0)) == pytest.approx(expected, abs=1e-4)
    near = sweep_world(worlds["out"], detector="knn", shares=[0.5])
    assert float(near.knn[0]) == pytest.approx(
        float(score_world(simulate_leak(**world.parameters() | {"ood_rows": 60, "in_fit": True})).knn)
    )


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_table_is_small_enough_to_ship(detector):
    table = sweep_world(simulate_leak(classes=5), detector=detector)
    assert table.nbytes <= 1_000_000
    assert table.share.values[[0, -1]].tolist() == [0, 1]
    assert table.alpha.size == (WORLD_ALPHAS.size if "c" in detector else 1)


def test_a_table_refuses_shares_that_are_none(worlds):
    with pytest.raises(InputError, match="shares must be strictly increasing"):
        sweep_world(worlds["out"], shares=[1, 0])
    with pytest.raises(InputError, match=r"shares\[1\]"):
        sweep_world(worlds["out"], shares=[0, 2])


# Level sets


@pytest.mark.parametrize(("covariance", "noise"), [("one-class", 0), ("tied", 0), ("tied", 3)])
def test_every_vertex_has_the_score_of_its_level(covariance, noise):
    world = simulate_leak(anisotropy=3, orientation=40, noise_dimensions=noise, in_fit=True, rows=80)
    labels = world.fit_labels if covariance == "tied" else None
    detector = Mahalanobis(shrinkage="0.1", covariance=covariance, standardize=True).fit(
        world_features(world.fit), labels
    )
    levels = [-1.0, -4.0, -9.0]
    lines = gaussian_level_sets(detector.spectrum_, 0.1, levels, beyond=np.append(np.zeros(noise), 100.0))
    for line, level in zip(lines, levels, strict=True):
        points = line[~np.isnan(line[:, 0])]
        assert len(points) > 60
        rows = np.column_stack([points, np.zeros((len(points), noise)), np.full(len(points), 100.0)])
        assert detector.score_samples(rows) == pytest.approx(level, abs=1e-9)


def test_outlines_of_centres_leave_no_inner_lines_and_none_where_nothing_reaches():
    rows = np.array([[-1.0, 0], [1, 0], [0, 1], [0, -1]])
    fit = np.concatenate([rows, rows + np.array([2, 0])])
    spectrum = decompose(
        fit_statistics(fit, labels=np.repeat([0, 1], 4)), covariance="tied", standardize=False
    )
    # Within scatter 1/2 I: the level -2 d^2 is a circle of radius d round (0, 0) and round (2, 0).
    (line,) = gaussian_level_sets(spectrum, 0, [-2 * 1.5**2])
    points = line[~np.isnan(line[:, 0])]
    to_each = np.array([np.hypot(points[:, 0] - x, points[:, 1]) for x in (0, 2)])
    assert to_each.min(axis=0) == pytest.approx(1.5)
    assert points[:, 0].min() == pytest.approx(-1.5)
    assert points[:, 0].max() == pytest.approx(3.5)
    apart = decompose(
        fit_statistics(np.column_stack([fit, np.tile([1.0, -1, 0, 0], 2)]), labels=np.repeat([0, 1], 4)),
        covariance="tied",
        standardize=False,
    )
    assert np.isnan(gaussian_level_sets(apart, 1, [-1.0], beyond=np.array([50.0]))).all()
    with pytest.raises(InputError, match="needs a plane"):
        gaussian_level_sets(decompose(fit_statistics([[0.0, 1.0], [1.0, 1.0]])), 0, [-1.0])


def test_a_circle_on_a_grid_is_one_closed_line():
    x, y = np.linspace(-3, 3, 61), np.linspace(-3, 3, 41)
    line = grid_level_set(x, y, -np.hypot(x, y[:, np.newaxis]), -2)
    assert np.isnan(line[-1]).all()
    assert not np.isnan(line[:-1]).any()
    assert np.hypot(*line[:-1].T) == pytest.approx(2, abs=0.01)
    assert (line[0] == line[-2]).all()
    assert np.hypot(*np.diff(line[:-1], axis=0).T).max() < 0.2


def test_saddles_are_cut_by_the_mean_of_their_corners():
    unit = np.array([0.0, 1.0])
    # Corners (bottom left, top right) at 1, the others at 0; mean 1/2.
    values = np.array([[1.0, 0.0], [0.0, 1.0]])
    low = grid_level_set(unit, unit, values, 0.4)  # the middle is above: two lines that cut the zeros off
    high = grid_level_set(unit, unit, values, 0.6)  # below: two that cut the ones off
    ends = {tuple(np.round(p, 9)) for p in low[~np.isnan(low[:, 0])]}
    assert ends == {(0.6, 0.0), (1.0, 0.4), (0.0, 0.6), (0.4, 1.0)}
    assert np.abs(low[0] - low[1]) == pytest.approx([0.4, 0.4])
    assert np.abs(high[0] - high[1]) == pytest.approx([0.4, 0.4])
    assert {tuple(np.round(p, 9)) for p in high[~np.isnan(high[:, 0])]} == {
        (0.4, 0.0),
        (1.0, 0.6),
        (0.0, 0.4),
        (0.6, 1.0),
    }
    assert grid_level_set(unit, unit, values, 2.0).shape == (0, 2)


# The twins


@pytest.fixture(scope="module")
def twins():
    return [_twins(seed) for seed in range(10)]  # the lessons' own, made once


def test_the_twins_have_the_same_law(twins):
    """Kolmogorov's distance within sampling noise: seed by seed, and for all seeds together.

    Equal laws stay below the limit in 95 % of draws, so in at least 9 of 10 with a chance of 91 %. Fisher's
    combination of all 20 p-values has power: risks of one twin shifted by 0.05 on the logit scale, a twentieth of
    what they spread, are another law.
    """
    ratio = np.array([(t.kolmogorov / t.kolmogorov_limit).values.max() for t in twins])
    assert (ratio <= 1).sum() >= 9
    p, shifted = [], []
    for t in twins:
        for outcome in (0, 1):
            two = [t.p.sel(model=m).values[t.y.sel(model=m).values == outcome] for m in TWINS[:2]]
            here = t.sel(outcome=outcome)
            assert float(here.kolmogorov) == pytest.approx(ks_2samp(*two).statistic, abs=1e-12)
            scale = np.sqrt(two[0].size * two[1].size / (two[0].size + two[1].size))
            assert kstwobign.sf(float(here.kolmogorov_limit) * scale) == pytest.approx(0.025)
            p.append(float(here.kolmogorov_p))
            shifted.append(ks_2samp(two[0], expit(logit(two[1]) + 0.05), method="asymp").pvalue)
    assert combine_pvalues(p).pvalue > 0.05
    assert combine_pvalues(shifted).pvalue < 1e-6
    events = np.array([t.prevalence.sel(model=list(TWINS[:2])).values for t in twins])
    # The difference of two shares of 0.1 among 20,000 has a standard deviation of 0.003.
    assert np.abs(np.diff(events, axis=1)).max() < 0.012


def test_both_twins_are_calibrated_and_rank_alike(twins):
    for t in twins:
        for model in TWINS[:2]:
            assert float(t.c_statistic.sel(model=model)) == pytest.approx(0.78, abs=0.02)
            assert abs(float(t.z.sel(model=model))) < 4
        inside = (t.observed_low <= t.predicted) & (t.predicted <= t.observed_high)
        assert int(inside.sel(model=list(TWINS[:2])).sum()) >= 14  # of 20 bars at 95 %


def test_only_one_twin_could_have_made_its_predictions_beforehand(twins):
    """What leaks is how the outcome came about: an honest outcome is a coin with the predicted risk."""
    for t in twins[:3]:
        y, p = t.y.sel(model="leaky").values, t.p.sel(model="leaky").values
        assert y.mean() == pytest.approx(p.mean(), abs=0.01)
    assert not (twins[0].y.sel(model="leaky") == twins[0].y.sel(model="honest")).all()


def test_the_flag_makes_a_head_and_platt_keeps_it(twins):
    for t in twins:
        flag, mended = (t.p.sel(model=m).values for m in TWINS[2:])
        order = np.argsort(-flag, kind="stable")
        assert (np.diff(mended[order]) <= 0).all()
        assert t.y.sel(model="flag").values[order[:200]].all()
        assert int(t.spike.sel(model="flag")) == int(t.spike.sel(model="recalibrated")) >= 200
        head = t.purity.sel(model="flag").values
        at_200 = int(np.searchsorted(t["rank"].sel(model="flag").values, 200, side="right")) - 1
        assert head[at_200] == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 10}, "n must be a whole number from 1,000 up, got 10"),
        ({"seed": -1}, "seed must be"),
        ({"beta": 3}, "beta must lie between 1 and 2"),
        ({"c_statistic": 0.7, "leaky_c_statistic": 0.6}, "leaky_c_statistic must lie between 0.7 and 0.99"),
        ({"prevalence": 0.9}, "prevalence must lie"),
    ],
)
def test_a_wrong_parameter_of_twins_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        simulate_twins(**wrong)
