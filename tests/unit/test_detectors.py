"""Detectors, statistics and probe against hand-worked values, scikit-learn and scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chi2, ncx2
from sklearn.base import clone
from sklearn.covariance import LedoitWolf, ledoit_wolf_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from leakviz.detectors import (
    Mahalanobis,
    class_distances,
    decompose,
    detector_auroc,
    knn_score,
    kth_distance,
    oracle_lda,
    probe_split,
)
from leakviz.errors import InputError
from leakviz.moments import class_statistics, fit_statistics

RELAXED = settings(deadline=None, max_examples=25)
CLASSES, PER_CLASS, SIZE = 5, 60, 12


def draw(seed, per_class=PER_CLASS):
    """Return correlated features of several classes, never negative, and the classes."""
    world, rng = np.random.default_rng(99), np.random.default_rng(seed)
    mixing = world.normal(size=(SIZE, SIZE)) * np.linspace(2, 0.05, SIZE)[:, None]
    means = world.normal(size=(CLASSES, SIZE))
    labels = np.repeat(np.arange(CLASSES), per_class)
    rows = rng.normal(size=(labels.size, SIZE)) @ mixing + means[labels]
    return np.exp(rows / 4), labels


@pytest.fixture(scope="module")
def fit():
    return draw(1)


@pytest.fixture(scope="module")
def tests():
    return draw(2)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def tied_distance(fit, labels, rows, alpha):
    """Return the squared distance to the nearest class mean, straight from the definition."""
    centre, spread = fit.mean(axis=0), fit.std(axis=0)
    fit, rows = (fit - centre) / spread, (rows - centre) / spread
    means = np.stack([fit[labels == label].mean(axis=0) for label in np.unique(labels)])
    residual = fit - means[np.searchsorted(np.unique(labels), labels)]
    covariance = residual.T @ residual / len(fit)
    shrunk = (1 - alpha) * covariance + alpha * np.trace(covariance) / SIZE * np.eye(SIZE)
    away = rows[:, None] - means
    return np.einsum("nci,ij,ncj->nc", away, np.linalg.inv(shrunk), away).min(axis=1)


# Mahalanobis


def test_score_worked_by_hand():
    # S = diag(2, 1/2), tr(S)/D = 5/4, so Sigma(1/2) = diag(13/8, 7/8).
    rows = [[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    detector = Mahalanobis(shrinkage=0.5, standardize=False).fit(rows)
    assert detector.score_samples([[1.0, 1.0]]) == pytest.approx([-(8 / 13 + 8 / 7)])
    assert detector.condition_number_ == pytest.approx(13 / 7)
    # Standardised, S is the unit matrix, whatever alpha.
    detector = Mahalanobis(shrinkage="0.3").fit(rows)
    assert detector.score_samples([[2.0, 1.0]]) == pytest.approx([-(4 / 2 + 1 / 0.5)])


def test_one_class_is_scikit_learns_ledoit_wolf(fit, tests):
    rows, other = fit[0], tests[0]
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    model = LedoitWolf().fit((rows - centre) / spread)
    detector = Mahalanobis().fit(rows)
    assert detector.shrinkage_ == pytest.approx(model.shrinkage_, rel=1e-10)
    assert -detector.score_samples(other) == pytest.approx(
        model.mahalanobis((other - centre) / spread), rel=1e-9
    )
    plain = Mahalanobis(standardize=False).fit(rows)
    assert -plain.score_samples(other) == pytest.approx(LedoitWolf().fit(rows).mahalanobis(other), rel=1e-9)


@pytest.mark.parametrize("alpha", [0, 0.07, 1])
def test_tied_is_the_distance_to_the_nearest_class_mean(fit, tests, alpha):
    detector = Mahalanobis(shrinkage=alpha, covariance="tied").fit(*fit)
    assert -detector.score_samples(tests[0]) == pytest.approx(tied_distance(*fit, tests[0], alpha), rel=1e-8)


@pytest.mark.parametrize("covariance", ["one-class", "tied"])
@pytest.mark.parametrize("shrinkage", ["ledoit-wolf", 0, 0.2])
def test_neither_a_factor_nor_a_shift_changes_scores(fit, tests, covariance, shrinkage):
    def score(factor, shift):
        detector = Mahalanobis(shrinkage=shrinkage, covariance=covariance)
        return detector.fit(fit[0] * factor + shift, fit[1]).score_samples(tests[0] * factor + shift)

    plain = score(1, 0)
    assert score(1e3, 0) == pytest.approx(plain, rel=1e-8)
    assert score(1e-3, 0) == pytest.approx(plain, rel=1e-8)
    assert score(1, 1e4) == pytest.approx(plain, rel=1e-5)


def test_constant_features_are_left_out_and_counted(fit, tests):
    def widened(rows):
        return np.column_stack([rows, np.full(len(rows), 0.1), np.zeros(len(rows))])

    detector = Mahalanobis().fit(widened(fit[0]))
    assert detector.n_constant_ == 2
    expected = Mahalanobis().fit(fit[0]).score_samples(tests[0])
    # A constant feature that moves in a test row cannot be judged, so it does not count.
    moved = widened(tests[0])
    moved[:, -1] = 7
    assert detector.score_samples(moved) == pytest.approx(expected, rel=1e-9)


def test_a_null_direction_is_left_out_at_alpha_0(fit, tests):
    def normed(rows):  # as a LayerNorm does: the features of a row have mean 0
        return rows - rows.mean(axis=1, keepdims=True)

    def score(dtype, alpha):
        detector = Mahalanobis(shrinkage=alpha, standardize=False).fit(normed(fit[0]).astype(dtype))
        return detector, detector.score_samples(normed(tests[0]).astype(dtype))

    exact, expected = score(np.float64, 0)
    assert (exact.n_null_, exact.spectrum_.rank) == (1, SIZE - 1)
    assert exact.condition_number_ < 1e6
    # The plain inverse would answer with noise in float32; the two precisions agree.
    assert score(np.float32, 0)[1] == pytest.approx(expected, rel=1e-3)
    # By hand: the pseudo-inverse.
    centred = normed(fit[0]) - normed(fit[0]).mean(axis=0)
    inverse = np.linalg.pinv(centred.T @ centred / len(centred), rcond=1e-9, hermitian=True)
    away = normed(tests[0]) - normed(fit[0]).mean(axis=0)
    assert -expected == pytest.approx(np.einsum("ni,ij,nj->n", away, inverse, away), rel=1e-6)


def test_alpha_0_with_too_few_rows_says_the_rank(fit):
    with pytest.raises(InputError, match=r"full rank 12, but 9 fit rows give rank 8"):
        Mahalanobis(shrinkage=0).fit(fit[0][:9])
    assert np.isfinite(Mahalanobis().fit(fit[0][:9]).score_samples(fit[0])).all()
    few = np.tile(np.arange(5), 3)
    with pytest.raises(InputError, match=r"15 fit rows give rank 10"):
        Mahalanobis(shrinkage=0, covariance="tied").fit(fit[0][:15], few)


def test_it_is_a_scikit_learn_estimator(fit):
    detector = Mahalanobis(shrinkage=0.1, covariance="tied", standardize=False)
    assert clone(detector).get_params() == detector.get_params()
    with pytest.raises(NotFittedError):
        detector.score_samples(fit[0])
    with pytest.raises(InputError, match="3 features and the fit set 12"):
        Mahalanobis().fit(fit[0]).score_samples(fit[0][:, :3])


def test_orientation_is_invisible_to_the_detector_and_seen_by_the_probe():
    # Proposition 2: the AUROC depends on the Mahalanobis length of the shift alone. For known mean and
    # covariance it is the chance that a noncentral chi-squared exceeds a central one.
    rng = np.random.default_rng(5)
    size, length = 8, 3.0
    mixing = rng.normal(size=(size, size))
    points = chi2.ppf(np.linspace(0.0005, 0.9995, 1000), size)
    expected = ncx2.sf(points, size, length**2).mean()
    found, oracle = [], []
    for _ in range(4):
        direction = rng.normal(size=size)
        shift = length * direction / np.linalg.norm(direction)
        fit, own, other = (rng.normal(size=(4000, size)) for _ in range(3))
        detector = Mahalanobis(shrinkage=0, standardize=False).fit(fit @ mixing)
        shifted = (other + shift) @ mixing
        found.append(detector_auroc(detector.score_samples(own @ mixing), detector.score_samples(shifted)))
        oracle.append(oracle_lda(own @ mixing, shifted).auroc)
    assert found == pytest.approx([expected] * 4, abs=0.015)
    assert min(oracle) > 0.975 > 0.93 > max(found)


# Statistics of classes


@given(seed=st.integers(0, 2**32 - 1), shift=st.sampled_from([0.0, 1e4]))
@RELAXED
def test_a_downdate_equals_a_refit(seed, shift):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 40)
    rows = rng.gamma(2, size=(40, 3)) * [1, 10, 0.1] + labels[:, None] + shift
    left = np.unique(labels)[1:]
    summed = class_statistics(rows, labels).without(np.unique(labels)[0])
    kept = np.isin(labels, left)
    again = fit_statistics(rows[kept], labels=labels[kept])
    near = {"rel": 1e-7, "abs": 1e-7}
    for name in ("mean", "scatter", "within_scatter", "square_moment", "within_square_moment", "class_mean"):
        assert getattr(summed, name) == pytest.approx(getattr(again, name), **near), name
    assert (summed.count, summed.labels.tolist()) == (again.count, again.labels.tolist())
    centre, spread = rows[kept].mean(axis=0), rows[kept].std(axis=0)
    scaled = (rows[kept] - centre) / spread
    assert summed.ledoit_wolf() == pytest.approx(ledoit_wolf_shrinkage(scaled), rel=1e-6)
    means = np.stack([scaled[labels[kept] == label].mean(axis=0) for label in left])
    residual = scaled - means[np.searchsorted(left, labels[kept])]
    expected = ledoit_wolf_shrinkage(residual, assume_centered=True)
    assert summed.ledoit_wolf(covariance="tied") == pytest.approx(expected, rel=1e-6)


def test_ledoit_wolf_of_a_union_is_scikit_learns(fit):
    rows, labels = fit
    classes = class_statistics(rows, labels)
    for members in ([0, 3], [1, 2, 4], [2]):
        kept = np.isin(labels, members)
        expected = ledoit_wolf_shrinkage(rows[kept])
        assert classes.union(members).ledoit_wolf(standardize=False) == pytest.approx(expected, rel=1e-10)


def test_a_detector_from_statistics_is_the_one_from_rows(fit, tests):
    rows, labels = fit
    names = np.array(["ant", "bee", "cat", "dog", "eel"])[labels]
    for covariance in ("one-class", "tied"):
        whole = Mahalanobis.from_statistics(class_statistics(rows, names).union(), covariance=covariance)
        refitted = Mahalanobis(covariance=covariance).fit(rows[names != "cat"], names[names != "cat"])
        without = whole.without("cat")
        assert without.score_samples(tests[0]) == pytest.approx(refitted.score_samples(tests[0]), rel=1e-8)
        assert without.get_params() == whole.get_params()
    with pytest.raises(InputError, match="'cow', which is not in this fit set"):
        whole.without("cow")
    with pytest.raises(InputError, match="nothing is left"):
        whole.without(["ant", "bee", "cat", "dog", "eel"])
    with pytest.raises(InputError, match="does not know its classes apart"):
        Mahalanobis().fit(rows).without("cat")
    with pytest.raises(InputError, match="names 'cow', which is no class"):
        class_statistics(rows, names).without("cow")
    with pytest.raises(InputError, match="twice"):
        class_statistics(rows, names).union(["ant", "ant"])


def test_statistics_without_fourth_moments_need_a_number(fit):
    summed = class_statistics(*fit, fourth_moments=False).without(0)
    with pytest.raises(InputError, match="no fourth moments"):
        Mahalanobis.from_statistics(summed)
    assert Mahalanobis.from_statistics(summed, shrinkage=0.01).shrinkage_ == 0.01


# Nearest neighbours


def test_knn_is_scikit_learns(fit, tests):
    neighbours = NearestNeighbors(n_neighbors=7).fit(unit(fit[0]))
    expected = neighbours.kneighbors(unit(tests[0]))[0][:, -1]
    assert -knn_score(fit[0], tests[0], k=7) == pytest.approx(expected, abs=1e-9)
    expected = neighbours.kneighbors()[0][:, -1]  # each fit row without itself
    assert -knn_score(fit[0], None, k=7) == pytest.approx(expected, abs=1e-9)
    assert knn_score(fit[0] * 1e3, tests[0], k=7) == pytest.approx(knn_score(fit[0], tests[0], k=7), abs=1e-9)


def test_itself_is_left_out_by_index_not_by_distance():
    rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert -knn_score(rows, None, k=1) == pytest.approx([0, 0, np.sqrt(2)])
    assert -knn_score(rows, rows, k=1) == pytest.approx([0, 0, 0])


def test_one_pass_serves_every_fit_set(fit, tests):
    rows, labels = fit
    near = class_distances(rows, labels, tests[0], k=50)
    for members in ([0, 1, 2, 3, 4], [1, 3], [2]):
        expected = knn_score(rows[np.isin(labels, members)], tests[0], k=50)
        assert -kth_distance(near, members=members) == pytest.approx(expected, abs=1e-12)
    own = class_distances(rows, labels, None, k=50)
    assert -kth_distance(own) == pytest.approx(knn_score(rows, None), abs=1e-12)
    small = class_distances(rows[:70], labels[:70], tests[0], k=50)  # of class 1 there are 10
    assert -kth_distance(small) == pytest.approx(knn_score(rows[:70], tests[0]), abs=1e-12)
    with pytest.raises(InputError, match="only 10 neighbours"):
        kth_distance(small, members=[1])


def test_knn_says_what_it_cannot_answer(fit):
    rows = fit[0]
    with pytest.raises(InputError, match=r"k is 50, but the fit set has 40 rows"):
        knn_score(rows[:40], rows)
    with pytest.raises(InputError, match=r"40 rows and none is its own neighbour"):
        knn_score(rows[:40], None, k=40)
    dead = rows.copy()
    dead[[17, 30]] = 0
    with pytest.raises(InputError, match=r"fit is all zero in 2 of 300 rows; first: row 17"):
        knn_score(dead, rows)
    with pytest.raises(InputError, match=r"rows is all zero in 2 of 300 rows; first: row 17"):
        knn_score(rows, dead)
    for k in (0, 1.5, True):
        with pytest.raises(InputError, match="k must be a whole number"):
            knn_score(rows, rows, k=k)


# The probe


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
def test_oracle_is_scikit_learns_lda_on_the_held_out_half(tests, solver):
    rows, labels = tests
    own, other = rows[labels != 2], rows[labels == 2]
    oracle = oracle_lda(own, other, seed=4, id_test_labels=labels[labels != 2])
    together = np.concatenate([own, other])
    is_ood = np.repeat([False, True], [len(own), len(other)])
    probe = LinearDiscriminantAnalysis(solver=solver, shrinkage="auto")
    probe.fit(together[~oracle.held_out], is_ood[~oracle.held_out])
    expected = probe.decision_function(together[oracle.held_out])
    assert -oracle.score == pytest.approx(expected, abs=1e-6)
    assert oracle.auroc == pytest.approx(roc_auc_score(is_ood[oracle.held_out], expected), abs=1e-12)
    assert oracle.low < oracle.auroc <= oracle.high
    moved = oracle_lda(own * 1e3 + 5, other * 1e3 + 5, held_out=oracle.held_out)
    assert moved.score == pytest.approx(oracle.score, rel=1e-6, abs=1e-6)


def test_probe_does_not_read_noise():
    # With fewer rows than features an in-sample LDA separates anything.
    rng = np.random.default_rng(3)
    found = [
        oracle_lda(rng.normal(size=(60, 100)), rng.normal(size=(60, 100)), seed=s).auroc for s in range(6)
    ]
    assert 0.4 < np.mean(found) < 0.6


def test_split_halves_every_class():
    labels = np.repeat(["a", "b", "c"], [10, 7, 4])
    scored = probe_split(labels, seed=0)
    assert [int(scored[labels == name].sum()) for name in "abc"] == [5, 3, 2]
    assert scored.tolist() == probe_split(labels, seed=0).tolist()
    assert scored.tolist() != probe_split(labels, seed=1).tolist()


def test_the_mean_of_the_leak_aurocs_of_any_score_is_one_half(tests):
    # For balanced classes each pair of classes is compared both ways round.
    rows, labels = tests
    held_out = probe_split(labels, seed=2)
    for score in (knn_score(rows, rows, k=5), Mahalanobis().fit(*draw(1)).score_samples(rows)):
        areas = [
            detector_auroc(score[held_out & (labels != c)], score[held_out & (labels == c)])
            for c in range(CLASSES)
        ]
        assert np.mean(areas) == pytest.approx(0.5, abs=1e-12)
        assert np.ptp(areas) > 0.05


def test_probe_says_what_it_cannot_answer(tests):
    rows = tests[0]
    with pytest.raises(InputError, match="ood_test has 2 rows to fit the probe and 1 to score"):
        oracle_lda(rows, rows[:3])
    with pytest.raises(InputError, match=r"held_out must be bool with the shape \(20,\)"):
        oracle_lda(rows[:10], rows[10:20], held_out=[1, 0])
    with pytest.raises(InputError, match="all 12 features are constant"):
        oracle_lda(np.ones((9, 12)), np.ones((9, 12)))
    with pytest.raises(InputError, match="seed must be a whole number"):
        oracle_lda(rows, rows, seed=-1)


# Input


def test_inputs_are_never_changed(fit, tests):
    rows, labels = (array.copy() for array in fit)
    other = tests[0].copy()
    for array in (rows, labels, other):
        array.flags.writeable = False  # writing would raise
    Mahalanobis(covariance="tied").fit(rows, labels).score_samples(other)
    class_distances(rows, labels, None)
    knn_score(rows.astype(np.float32), other)
    oracle_lda(other[:100], other[100:])


BAD = {
    "objects": (np.array([[1.0, None]], dtype=object), r"real numbers, got the type object; make it a plain"),
    "text": (np.array([["a", "b"]]), "real numbers, got the type <U1"),
    "complex": (np.ones((2, 2), complex), "real numbers, got the type complex128"),
    "sparse": (csr_array(np.eye(3)), r"X is sparse, and sparse input is not supported; give X.toarray\(\)"),
    "ragged": ([[1.0], [1.0, 2.0]], "rows of different lengths"),
    "one dimension": (np.ones(3), r"shape \(rows, features\), got the shape \(3,\)"),
    "no rows": (np.ones((0, 3)), r"X is empty: it has the shape \(0, 3\)"),
    "nan": (
        np.array([[1.0, 2.0], [np.nan, 1.0], [1.0, np.nan]]),
        r"nan\) in 2 of 3 rows; first: row 1, column 0",
    ),
    "masked": (np.ma.masked_equal([[1.0, 2.0]], 2.0), "1 masked values"),
    "constant": (np.ones((5, 3)), "all 3 features are constant in the fit set"),
    "one row": (np.array([[1.0, 2.0]]), "all 2 features are constant in the fit set"),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_features_are_named(case):
    rows, message = BAD[case]
    with pytest.raises(InputError, match=message):
        Mahalanobis().fit(rows)


def test_float16_overflow_is_named():
    rows = np.ones((4, 2), dtype=np.float16)
    rows[2, 1] = np.inf
    with pytest.raises(
        InputError, match=r"infinite in 1 of 4 rows; first: row 2, column 1; float16 ends at 65504"
    ):
        Mahalanobis().fit(rows)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], "labels has 2 labels and X has 3 rows"),
        ([1.0, np.nan, 2.0], "missing or no whole number in 1 of 3 rows; first: row 1"),
        (np.array(["a", None, "b"], dtype=object), "missing in 1 of 3 rows; first: row 1 has None"),
        (["a", " ", "b"], "empty in 1 of 3 rows; first: row 1"),
        (np.array([1, "b", 2], dtype=object), "no whole number in 1 of 3 rows; first: row 1 has 'b'"),
        ([[1], [2], [3]], "one-dimensional"),
    ],
)
def test_unusable_labels_are_named(labels, message):
    with pytest.raises(InputError, match=message):
        class_statistics(np.eye(3), labels)


@pytest.mark.parametrize("shrinkage", [-0.1, 1.5, "auto", None, np.nan, True])
def test_shrinkage_is_a_share_or_ledoit_wolf(fit, shrinkage):
    with pytest.raises(InputError, match="shrinkage must"):
        Mahalanobis(shrinkage=shrinkage).fit(fit[0])


def test_covariance_is_one_of_two(fit):
    with pytest.raises(InputError, match="'one-class' or 'tied', got 'full'"):
        decompose(fit_statistics(fit[0]), covariance="full")
    with pytest.raises(InputError, match="'tied' needs the class of every fit row"):
        Mahalanobis(covariance="tied").fit(fit[0])
    with pytest.raises(InputError, match="no feature varies within a class"):
        Mahalanobis(covariance="tied").fit([[1.0], [2.0]], [0, 1])


def test_numbers_that_cannot_be_squared_are_refused():
    rows = np.random.default_rng(0).normal(size=(60, 3)) * 1e60
    assert np.isfinite(Mahalanobis().fit(rows).score_samples(rows)).all()
    rows[7, 1] = -1e200
    with pytest.raises(InputError, match=r"up to 1e\+200, too large to square; first: row 7, column 1"):
        Mahalanobis().fit(rows)
