"""Shrinkage sweeps and budgets against hand-worked values, scikit-learn and one-by-one refits."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.covariance import ShrunkCovariance, ledoit_wolf_shrinkage
from sklearn.metrics import roc_auc_score

from leakviz.detectors import Mahalanobis, detector_auroc
from leakviz.errors import InputError
from leakviz.moments import class_statistics, fit_statistics
from leakviz.statistics import auroc_interval
from leakviz.whitening import ALPHAS, score_histograms, sweep_shrinkage, whitening_spectrum

SIZE = 20


@pytest.fixture(scope="module")
def split():
    """Return fit rows with their classes, ID rows, OOD rows: correlated, the shift partly in small directions."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(SIZE, SIZE)) * np.geomspace(3, 0.03, SIZE)[:, None]
    means = rng.normal(size=(4, SIZE))
    labels = np.repeat([0, 1, 2, 3], 80)

    def draw(classes):
        return rng.normal(size=(len(classes), SIZE)) @ mixing + means[classes]

    shift = np.linspace(0, 0.5, SIZE)
    return draw(labels), labels, draw(labels[::2]), draw(labels[::4]) + shift


def test_alphas_are_the_sliders_stops():
    assert ALPHAS.size == 41
    assert (ALPHAS[0], ALPHAS[-1]) == (0, 1)
    assert (np.diff(ALPHAS) > 0).all()
    assert {0.01, 0.1, 0.2, 0.3, 0.5, 0.7} <= set(ALPHAS.tolist())  # as typed, to the last digit
    below = ALPHAS[1:][ALPHAS[1:] <= 0.1]
    assert below.size > 20
    assert np.diff(np.log10(below))[2:].max() < 0.2  # log-like


# The sweep


def test_sweep_equals_refits_one_by_one_with_scikit_learn(split):
    fit, _, own, other = split
    sweep = sweep_shrinkage(fit, own, other)
    centre, spread = fit.mean(axis=0), fit.std(axis=0)
    tests = (np.concatenate([own, other]) - centre) / spread
    is_ood = np.repeat([False, True], [len(own), len(other)])
    for alpha in ALPHAS:
        distance = ShrunkCovariance(shrinkage=alpha).fit((fit - centre) / spread).mahalanobis(tests)
        found = sweep.sel(alpha=alpha)
        assert float(found.auroc) == pytest.approx(roc_auc_score(is_ood, distance), abs=1e-12)
        low, high = auroc_interval(distance, is_ood)
        assert (float(found.low), float(found.high)) == pytest.approx((low, high), abs=1e-9)
    chosen = ledoit_wolf_shrinkage((fit - centre) / spread)
    assert float(sweep.ledoit_wolf) == pytest.approx(chosen, rel=1e-9)
    distance = ShrunkCovariance(shrinkage=chosen).fit((fit - centre) / spread).mahalanobis(tests)
    assert float(sweep.auroc_ledoit_wolf) == pytest.approx(roc_auc_score(is_ood, distance), abs=1e-12)
    assert float(sweep.best_auroc) == sweep.auroc.values.max()
    assert float(sweep.sel(alpha=sweep.best_alpha).auroc) == float(sweep.best_auroc)
    assert "not available without labels" in sweep.best_alpha.attrs["long_name"]
    assert np.ptp(sweep.auroc.values) > 0.05  # alpha matters here


def test_tied_sweep_is_the_detectors(split):
    fit, labels, own, other = split
    sweep = sweep_shrinkage(fit, own, other, alphas=[0, 0.01, 1], covariance="tied", fit_labels=labels)
    for alpha in (0, 0.01, 1):
        detector = Mahalanobis(shrinkage=alpha, covariance="tied").fit(fit, labels)
        expected = detector_auroc(detector.score_samples(own), detector.score_samples(other))
        assert float(sweep.auroc.sel(alpha=alpha)) == expected


def test_statistics_answer_like_rows(split):
    fit, labels, own, other = split
    statistics = class_statistics(fit, labels).without(1)
    left = labels != 1
    for covariance in ("one-class", "tied"):
        options = {"covariance": covariance, "alphas": ALPHAS[::8]}
        rows = {**options, "fit_labels": labels[left]}
        for name, one, two in (
            (
                "sweep",
                *(sweep_shrinkage(f, own, other, **o) for f, o in ((statistics, options), (fit[left], rows))),
            ),
            (
                "budget",
                *(whitening_spectrum(f, other, **o) for f, o in ((statistics, options), (fit[left], rows))),
            ),
            (
                "counts",
                *(
                    score_histograms(f, own, other, **o)
                    for f, o in ((statistics, options), (fit[left], rows))
                ),
            ),
        ):
            assert one.attrs == two.attrs, name
            for variable in one:
                assert one[variable].values == pytest.approx(two[variable].values, rel=1e-6, abs=1e-9), (
                    variable
                )


def test_a_stored_alpha_stands_for_fourth_moments(split):
    fit, labels, own, other = split
    whole = class_statistics(fit, labels, fourth_moments=False).union()
    unknown = sweep_shrinkage(whole, own, other, alphas=[0.1])
    assert np.isnan(unknown.ledoit_wolf)
    assert np.isnan(unknown.auroc_ledoit_wolf)
    known = dataclasses.replace(whole, stored_alpha={"one-class": 0.1})
    answer = sweep_shrinkage(known, own, other, alphas=[0.1])
    assert float(answer.ledoit_wolf) == 0.1
    assert float(answer.auroc_ledoit_wolf) == float(answer.auroc[0])


def test_neither_a_factor_nor_a_shift_changes_a_sweep(split):
    fit, _, own, other = split
    plain = sweep_shrinkage(fit, own, other)
    moved = sweep_shrinkage(fit * 1e3 + 7, own * 1e3 + 7, other * 1e3 + 7)
    assert moved.auroc.values == pytest.approx(plain.auroc.values, abs=1e-12)
    assert float(moved.ledoit_wolf) == pytest.approx(float(plain.ledoit_wolf), rel=1e-9)


def test_too_few_rows_are_refused_at_alpha_0_or_marked(split):
    fit, _, own, other = split
    for function, arguments in ((sweep_shrinkage, (own, other)), (whitening_spectrum, (other,))):
        with pytest.raises(InputError, match="full rank 20, but 15 fit rows give rank 14"):
            function(fit[:15], *arguments)
        marked = function(fit[:15], *arguments, alphas=[0, 0.1], singular="nan")
        assert np.isnan(marked.isel(alpha=0)["auroc" if "auroc" in marked else "excess"])
        assert np.isfinite(marked.isel(alpha=1)["auroc" if "auroc" in marked else "excess"])
    with pytest.raises(InputError, match="full rank"):
        sweep_shrinkage(fit[:15], own, other, alphas=[0], singular="nan")


# The budget


def test_budget_worked_by_hand():
    # S = diag(4, 1), Delta = (3, 1): s = (.9, .1). At alpha 1/2 the eigenvalues are (13/4, 7/4).
    fit = [[2.0 * a, 1.0 * b] for a in (-1, 1) for b in (-1, 1)]
    found = whitening_spectrum(fit, [[3.0, 1.0]], alphas=[0, 0.5, 1], standardize=False)
    assert found.eigenvalue.values == pytest.approx([4, 1])
    assert found.signal_mass.values == pytest.approx([0.9, 0.1])
    whole, half = 0.9 / 4 + 0.1, 0.9 / 3.25 + 0.1 / 1.75
    expected = [[0.225 / whole, 0.1 / whole], [0.9 / 3.25 / half, 0.1 / 1.75 / half], [0.9, 0.1]]
    assert found.budget.values == pytest.approx(np.array(expected))
    assert found.condition_number.values == pytest.approx([4, 13 / 7, 1])
    assert found.bottom_budget.values == pytest.approx([row[1] for row in expected])
    assert found.excess.values == pytest.approx([row[1] - 0.1 for row in expected])
    assert (float(found.top_signal_mass), float(found.bottom_signal_mass)) == pytest.approx((0.9, 0.1))
    assert found.attrs["n_tenth"] == 1


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 30), standardize=st.booleans())
@settings(deadline=None, max_examples=15)
def test_whitening_never_spends_less_on_small_directions_than_euclid(seed, size, standardize):
    # Observation 3: towards small eigenvalues the Mahalanobis budget dominates the Euclidean one.
    rng = np.random.default_rng(seed)
    fit = rng.normal(size=(80, size)) @ (rng.normal(size=(size, size)) * np.geomspace(3, 0.3, size)[:, None])
    found = whitening_spectrum(fit, fit[:9] + rng.normal(size=size), standardize=standardize)
    assume(found.attrs["rank"] == size)  # a direction that is left out at alpha 0 spends nothing
    assert found.budget.sum("direction").values == pytest.approx(np.ones(ALPHAS.size))
    assert float(found.signal_mass.sum()) == pytest.approx(1)
    assert found.cumulated_budget.values[:, -1] == pytest.approx(np.ones(ALPHAS.size))
    assert (found.cumulated_budget <= found.cumulated_signal_mass + 1e-9).all()
    assert (found.excess >= -1e-9).all()
    assert (found.excess.diff("alpha") <= 1e-9).all()  # and shrinking takes it back
    assert found.budget.sel(alpha=1).values == pytest.approx(found.signal_mass.values)
    assert float(found.condition_number.sel(alpha=1)) == pytest.approx(1)
    assert found.attrs["n_tenth"] == max(1, round(size / 10))


def test_a_null_direction_gets_no_budget_at_alpha_0(split):
    fit, _, _, other = split

    def normed(rows):
        return rows - rows.mean(axis=1, keepdims=True)

    found = whitening_spectrum(normed(fit), normed(other) + 0.01, standardize=False)
    assert (found.attrs["rank"], found.sizes["direction"]) == (SIZE - 1, SIZE)
    assert float(found.signal_mass[-1]) > 1e-6
    assert float(found.budget.sel(alpha=0)[-1]) == 0
    assert float(found.budget.sel(alpha=1e-5)[-1]) > float(found.signal_mass[-1])
    assert float(found.condition_number.sel(alpha=0)) < 1e6


def test_no_shift_is_no_budget(split):
    with pytest.raises(InputError, match="same mean"):
        whitening_spectrum([[0.0], [2.0]], [[1.0]])


# The histograms


def test_histograms_count_every_row_once(split):
    fit, _, own, other = split
    found = score_histograms(fit, own, other, alphas=[0, 0.1, 1], n_bins=25)
    edges = np.append(found.left.values, found.right.values[-1])
    assert np.diff(np.log(edges)) == pytest.approx(np.full(25, np.log(edges[-1] / edges[0]) / 25))
    for alpha in (0, 0.1, 1):
        detector = Mahalanobis(shrinkage=alpha).fit(fit)
        for name, rows in (("id_count", own), ("ood_count", other)):
            counted = found[name].sel(alpha=alpha).values
            assert counted.sum() == len(rows)
            distance = -detector.score_samples(rows)
            middle = (edges[1:-1, None] > distance).sum(axis=1)
            assert np.cumsum(counted)[:-1].tolist() == middle.tolist()


def test_a_distance_of_0_is_in_the_first_bin():
    found = score_histograms([[0.0], [2.0]], [[1.0], [2.0]], [[4.0]], alphas=[0], n_bins=3)
    assert found.id_count.values.tolist() == [[2, 0, 0]]
    assert found.ood_count.values.tolist() == [[0, 0, 1]]


def test_options_are_checked(split):
    fit, labels, own, other = split
    for alphas, message in (
        ([], "at least one number"),
        ([0.1, 0.1], r"strictly increasing; 1 of 2 are not, first: alphas\[1\] = 0.1"),
        ([2], r"alphas\[0\] must lie between 0 and 1"),
    ):
        with pytest.raises(InputError, match=message):
            sweep_shrinkage(fit, own, other, alphas=alphas)
    with pytest.raises(InputError, match="n_bins must be a whole number"):
        score_histograms(fit, own, other, n_bins=0)
    with pytest.raises(InputError, match="singular must be"):
        sweep_shrinkage(fit, own, other, singular="ignore")
    with pytest.raises(InputError, match="carries its own"):
        sweep_shrinkage(fit_statistics(fit, labels=labels), own, other, covariance="tied", fit_labels=labels)
    with pytest.raises(InputError, match="ood_test has 3 features and the fit set 20"):
        sweep_shrinkage(fit, own, other[:, :3])
