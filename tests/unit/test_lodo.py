"""Leave-one-dataset-out against scikit-learn, hand-worked cases, and facts about its controls."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.sparse import csr_matrix
from scipy.special import logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, recall_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakviz.errors import InputError
from leakviz.lodo import explain_lodo, load_lodo_data, lodo, lodo_from_scores, summarise_lodo
from leakviz.lodo import fits as fitting
from leakviz.lodo.inputs import check_labelled, count_twins, label_columns
from leakviz.lodo.protocol import shuffle_sources
from leakviz.lodo.words import lost_within, noise_fails, source_table
from leakviz.statistics import auroc, auroc_interval, wilson_interval

QUICK = {"controls": 0, "identity": False, "bootstrap": 100, "n_jobs": 1}


@pytest.fixture(scope="module")
def world():
    """Six sources: four with both labels, one with positives and one with negatives only."""
    rng = np.random.default_rng(11)
    code = np.repeat(np.arange(6), [60, 50, 40, 40, 30, 30])
    y = (rng.random(code.size) < np.array([0.5, 0.3, 0.7, 0.5, 1, 0])[code]).astype(int)
    offset = rng.normal(size=(6, 4))
    X = 0.8 * y[:, None] * [1, 1, 0, 0] + offset[code] + rng.normal(size=(code.size, 4))
    return X, y, np.array(["a", "b", "c", "d", "only 1", "only 0"])[code]


@pytest.fixture(scope="module")
def result(world):
    return lodo(*world, seeds=(0, 1), controls=3, n_jobs=1)


def default():
    return make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", tol=1e-6, max_iter=10_000)
    )


# Agreement with scikit-learn


def test_scores_are_scikit_learns(world, result):
    X, y, source = world
    for seed in (0, 1):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        cv = cross_val_predict(default(), X, y, cv=folds, method="decision_function")
        np.testing.assert_allclose(result.score.sel(protocol="cv", seed=seed), cv, rtol=0, atol=1e-12)
    left_out = cross_val_predict(
        default(), X, y, cv=LeaveOneGroupOut(), groups=source, method="decision_function"
    )
    for seed in (0, 1):
        np.testing.assert_allclose(result.score.sel(protocol="lodo", seed=seed), left_out, rtol=0, atol=1e-12)


def test_values_are_scikit_learns_metrics(world, result):
    _, y, source = world
    cv = result.score.sel(protocol="cv").values
    lodo_score = result.score.sel(protocol="lodo", seed=0).values
    mixed = ~np.isin(source, ["only 1", "only 0"])
    for scope, rows in (("all", np.ones(y.size, bool)), ("mixed", mixed)):
        aucs = [roc_auc_score(y[rows], scores[rows]) for scores in cv]
        at = {"scope": scope}
        assert result.auc.sel(protocol="cv", **at).item() == pytest.approx(np.mean(aucs), abs=1e-12)
        assert result.auc.sel(protocol="lodo", **at).item() == pytest.approx(
            roc_auc_score(y[rows], lodo_score[rows]), abs=1e-12
        )
        assert result.gap.sel(baseline="cv", **at).item() == pytest.approx(
            np.mean(aucs) - roc_auc_score(y[rows], lodo_score[rows]), abs=1e-12
        )
        low = np.mean([auroc_interval(scores[rows], y[rows])[0] for scores in cv])
        assert result.auc_low.sel(protocol="cv", **at).item() == pytest.approx(low, abs=1e-12)
    for name in ("a", "d"):
        own = source == name
        of = result.sel(source=name, protocol="lodo")
        assert of.source_auc.item() == pytest.approx(roc_auc_score(y[own], lodo_score[own]), abs=1e-12)
        called = lodo_score[own] > 0
        assert of.rate.sel(metric="accuracy").item() == accuracy_score(y[own], called)
        assert of.rate.sel(metric="recall").item() == recall_score(y[own], called)
        low, high = wilson_interval(int((called == y[own]).sum()), int(own.sum()))
        assert of.rate_low.sel(metric="accuracy").item() == low
        assert of.rate_high.sel(metric="accuracy").item() == high


def test_the_split_is_exact(result):
    share, within, between = result.within_share, result.within, result.between
    np.testing.assert_allclose(share * within + (1 - share) * between, result.auc, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.gap_within + result.gap_between, result.gap, rtol=0, atol=1e-15)
    table, pairs = result.pair_auc.sel(protocol="lodo").values, result.pairs.sel(protocol="lodo").values
    assert np.nansum(table * pairs) / pairs.sum() == pytest.approx(
        result.auc.sel(protocol="lodo", scope="all").item(), abs=1e-12
    )
    assert (np.isnan(table) == (pairs == 0)).all()


def test_same_source_rows_are_a_fifth_of_every_source_and_never_in_training(world, result):
    X, y, source = world
    for seed in (0, 1):
        scores = result.score.sel(protocol="same-source", seed=seed).values
        held = ~np.isnan(scores)
        fitted = default().fit(X[~held], y[~held])
        np.testing.assert_allclose(scores[held], fitted.decision_function(X[held]), rtol=0, atol=1e-12)
        for name in np.unique(source):
            for label in (0, 1):
                cell = (source == name) & (y == label)
                assert abs(held[cell].sum() - cell.sum() / 5) <= 1
    matched = result.matched_lodo_auc.sel(baseline="same-source", scope="all").item()
    lodo_score = result.score.sel(protocol="lodo", seed=0).values
    held = ~np.isnan(result.score.sel(protocol="same-source").values)
    pairs = [y[h].sum() * (1 - y[h]).sum() for h in held]
    each = [roc_auc_score(y[h], lodo_score[h]) for h in held]
    assert matched == pytest.approx(np.average(each, weights=pairs), abs=1e-12)


# Sources with one label


def test_single_class_sources_are_undefined_and_have_a_rate(world, result):
    source = world[2]
    assert result.kind.values.tolist() == ["mixed"] * 4 + ["positive only", "negative only"]
    single = result.sel(source=["only 1", "only 0"])
    assert np.isnan(single.source_auc).all()
    assert np.isnan(single.source_auc_low).all()
    recall, specificity = (
        single.rate.sel(metric=name, protocol="lodo").values for name in ("recall", "specificity")
    )
    assert math.isnan(recall[1])
    assert math.isnan(specificity[0])
    scores = result.score.sel(protocol="lodo", seed=0).values
    assert recall[0] == (scores[source == "only 1"] > 0).mean()
    assert specificity[1] == (scores[source == "only 0"] <= 0).mean()
    own = result.source_auc.sel(protocol="lodo").values
    assert result.within_mean.sel(protocol="lodo", scope="all").item() == pytest.approx(np.mean(own[:4]))
    said = " ".join(explain_lodo(result))
    assert "2 of 6 sources have one label only" in said
    assert "on the 4 mixed sources alone" in said


def test_source_interval_needs_more_than_five(world, result):
    assert result.too_few_sources.values.tolist() == [False, True]  # 6 sources, 4 mixed ones
    at = {"baseline": "cv", "scope": "all"}
    low, high = result.gap_source_low.sel(**at).item(), result.gap_source_high.sel(**at).item()
    assert low < result.gap.sel(**at).item() < high
    assert np.isnan(result.gap_source_low.sel(scope="mixed")).all()
    assert "too few sources (4) for an interval over sources" in " ".join(explain_lodo(result))


def test_name_of_the_source(world, result):
    _, y, source = world  # more about it: test_lodo_naming.py
    share = pd.Series(y).groupby(source).transform("mean")
    assert result.name_auc_in_sample.item() == pytest.approx(roc_auc_score(y, share), abs=1e-12)
    assert result.name_auc_null_high.item() < result.name_auc.item() <= result.name_auc_in_sample.item()
    majority = pd.Series(y).groupby(source).transform(lambda own: own.mode()[0])
    assert result.name_accuracy_in_sample.item() == (majority == y).mean()
    said = " ".join(explain_lodo(result))
    assert f"The source's name alone ranks the label with an AUROC of {result.name_auc.item():.3f}" in said


def test_a_source_that_cannot_be_left_out_is_marked_and_the_rest_goes_on(world):
    X, y, source = world
    rows = (y == 0) | (source == "b")  # all positives are in "b"; the others hold negatives only
    X, y, source = X[rows], y[rows], source[rows]
    found = lodo(X, y, source, seeds=(0, 1), controls=2, bootstrap=20, n_jobs=1)
    others = found.source.values != "b"
    assert found.why_not.values[~others].tolist() == [
        f"training has {int((source != 'b').sum())} rows, all with y = 0"
    ]
    assert (found.why_not.values[others] == "").all()
    of = found.sel(protocol="lodo")
    assert np.isnan(of.score.values[:, source == "b"]).all()
    assert (of.called.values[:, source == "b"] == -1).all()
    assert not np.isnan(of.score.values[:, source != "b"]).any()
    train = source != "c"
    expected = default().fit(X[train], y[train]).decision_function(X[source == "c"])
    np.testing.assert_allclose(of.score.values[0, source == "c"], expected, atol=1e-12)
    specificity = of.rate.sel(metric="specificity").values
    assert specificity[found.source.values == "c"].item() == (expected <= 0).mean()
    assert np.isnan(specificity[~others]).all()
    assert np.isnan(of.auc).all()  # the rows that are scored hold one label
    assert np.isnan(found.gap).all()
    assert not np.isnan(found.auc.sel(protocol="cv", scope="all"))
    assert np.isnan(found.noise_mean)
    said = " ".join(explain_lodo(found))
    assert "Source 'b' cannot be left out: without it, training has" in said
    assert "with sources left out it is undefined (one class), and so is the gap." in said
    assert "in cross-validation; no source with both labels can be left out." in said
    json.dumps(summarise_lodo(found), allow_nan=False)
    with pytest.raises(
        InputError, match="no source can be left out: without source 'b', training has 30 rows"
    ):
        lodo(X[:60], np.repeat([0, 1], 30), np.repeat(["b", "c"], 30), **QUICK)


def test_a_gap_is_of_the_rows_that_both_protocols_score(world):
    X, y, source = world
    # "youden" needs two rows of each label in training: without "a" there is one negative.
    rows = (y == 1) | (source == "a")
    rows[np.flatnonzero((source == "c") & (y == 0))[0]] = True
    X, y, source = X[rows], y[rows], source[rows]
    found = lodo(X, y, source, threshold="youden", folds=2, **(QUICK | {"controls": 1}))
    assert (
        found.why_not.values.tolist()[0] == "training has 1 row with y = 0, and threshold='youden' needs two"
    )
    assert np.isnan(found.source_auc.sel(protocol="lodo", source="a"))
    scored = source != "a"
    cv, left_out = (found.score.sel(protocol=p)[0].values for p in ("cv", "lodo"))
    of = found.sel(baseline="cv", scope="all")
    assert of.matched_auc.item() == pytest.approx(roc_auc_score(y[scored], cv[scored]), abs=1e-12)
    assert of.matched_lodo_auc.item() == pytest.approx(roc_auc_score(y[scored], left_out[scored]), abs=1e-12)
    assert of.gap.item() == pytest.approx((of.matched_auc - of.matched_lodo_auc).item(), abs=1e-15)
    assert of.gap_low <= of.gap <= of.gap_high
    assert found.auc.sel(protocol="cv", scope="all").item() == pytest.approx(roc_auc_score(y, cv), abs=1e-12)
    assert not np.isnan(found.shuffled_gap).any()


def test_copies_across_sources_are_counted_and_said(world):
    X, y, source = world
    X = np.vstack([X, X[:3], X[-1:]])  # three rows of "a" turn up in "b", one of "only 0" twice
    y, source = np.r_[y, y[:3], y[-1]], np.r_[source, ["b"] * 3, ["only 0"]]
    texts = [" ".join(map(str, row)) for row in X]
    for features in (X, pd.DataFrame(X), csr_matrix(X), np.array(texts, dtype=object)):
        shared, repeated = count_twins(features, check_labelled(y, source))
        assert shared.tolist() == [3, 3, 0, 0, 0, 0]
        assert repeated.tolist() == [0, 0, 0, 0, 0, 2]
    found = lodo(X, y, source, **QUICK)
    assert found.shared_rows.values.tolist() == [3, 3, 0, 0, 0, 0]
    assert "6 rows have exactly the features of a row in another source" in " ".join(explain_lodo(found))


# Controls


def test_what_the_controls_and_identity_say(result):
    assert result.noise_auc.shape == result.shuffled_gap.shape == (3,)
    assert result.noise_mean.item() == pytest.approx(result.noise_auc.mean().item())
    assert result.shuffled_low.item() < result.shuffled_mean.item() < result.shuffled_high.item()
    cv = result.auc.sel(protocol="cv", scope="all").item()
    np.testing.assert_allclose(result.shuffled_gap, cv - result.shuffled_auc)
    assert result.identity_majority.item() == 60 / 250
    assert result.identity_accuracy.item() > 0.4
    counts = result.n.values
    assert (result.identity_recall.values * counts).sum() / 250 == pytest.approx(
        result.identity_accuracy.item()
    )


def test_fact_shuffled_sources_leave_no_gap_and_noise_stays_at_a_half():
    data = load_lodo_data("prompt_attacks")
    half = slice(None, None, 2)
    found = lodo(data.X[half], data.y[half], data.source[half], **(QUICK | {"controls": 1}))
    assert abs(found.shuffled_mean.item()) < 0.005
    assert 0.45 < found.noise_mean.item() < 0.55
    assert found.gap.sel(baseline="cv", scope="all").item() > 0.05


def test_fact_the_trap_without_balanced_weights_noise_falls_far_below_a_half():
    data = load_lodo_data("prompt_attacks")
    unweighted = make_pipeline(StandardScaler(), LogisticRegression())
    half = slice(None, None, 2)
    found = lodo(data.X[half], data.y[half], data.source[half], model=unweighted, **(QUICK | {"controls": 1}))
    assert found.noise_mean.item() < 0.3
    assert "it should be 0.5. It is outside 0.45 to 0.55. One draw cannot tell" in " ".join(
        explain_lodo(found)
    )


def test_shuffling_keeps_sizes_and_composition():
    rng = np.random.default_rng(0)
    labelled = check_labelled(rng.integers(0, 2, 200), rng.integers(0, 4, 200))
    code = shuffle_sources(labelled, None, rng)
    assert (code != labelled.code).mean() > 0.5
    for label in (0, 1):
        rows = labelled.y == label
        assert np.bincount(code[rows]).tolist() == np.bincount(labelled.code[rows]).tolist()
    groups = np.repeat(np.arange(50), 4).astype(np.int32)
    home = np.repeat(rng.integers(0, 4, 50), 4)
    grouped = shuffle_sources(check_labelled(labelled.y, home), groups, rng)
    assert all(len(set(grouped[groups == g])) == 1 for g in range(50))


# Options


def test_probabilities_become_logits_and_seeds_reach_the_model(world):
    X, y, source = world
    found = lodo(X, y, source, model=GaussianNB(), **QUICK)
    p = cross_val_predict(GaussianNB(), X, y, cv=LeaveOneGroupOut(), groups=source, method="predict_proba")
    np.testing.assert_allclose(found.score.sel(protocol="lodo")[0], logit(p[:, 1]), rtol=0, atol=1e-9)
    tree = DecisionTreeClassifier(max_features=1)
    twice = [lodo(X, y, source, model=tree, seeds=(0, 1), **QUICK) for _ in range(2)]
    xr_equal = twice[0].score.equals(twice[1].score)
    assert xr_equal
    lodo_scores = twice[0].score.sel(protocol="lodo").values
    assert (lodo_scores[0] != lodo_scores[1]).any()
    assert np.isinf(lodo_scores).any()  # probabilities of 0 and 1: infinite logits rank, and tie
    assert tree.random_state is None


def test_everything_is_fitted_inside_the_fold(world):
    X, y, source = world
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1]}, cv=2)
    found = lodo(X, y, source, model=make_pipeline(StandardScaler(), search), folds=2, **QUICK)
    row = 0
    train = source != source[row]
    fitted = make_pipeline(StandardScaler(), search).fit(X[train], y[train])
    assert found.score.sel(protocol="lodo")[0, row].item() == pytest.approx(
        fitted.decision_function(X[[row]])[0], abs=1e-12
    )


def test_texts_get_their_vocabulary_inside_the_fold():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 45)
    source = np.repeat(["x", "y", "z"], 30)
    words = np.where(y == 1, "good", "bad")
    texts = [
        f"{w if rng.random() < 0.8 else 'so'} {s}{s} {rng.integers(9)}"
        for w, s in zip(words, source, strict=True)
    ]
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    found = lodo(texts, y, source, model=model, **QUICK)
    train = source != "x"
    fitted = model.fit([t for t, used in zip(texts, train, strict=True) if used], y[train])
    assert "xx" not in fitted[0].vocabulary_
    expected = fitted.decision_function([t for t, used in zip(texts, train, strict=True) if not used])
    np.testing.assert_allclose(found.score.sel(protocol="lodo")[0, :30], expected, atol=1e-9)
    with pytest.raises(InputError, match="X holds texts; give a model"):
        lodo(texts, y, source)


def test_frames_sparse_matrices_and_arrays_give_the_same(world):
    X, y, source = world
    model = LogisticRegression(tol=1e-10)
    plain = lodo(X, y, source, model=model, **QUICK)
    frame = pd.DataFrame(X, columns=list("pqrs"), index=np.arange(len(X))[::-1])
    for other in (frame, csr_matrix(X), X.astype(np.float32).astype(np.float64)[:, ::1]):
        found = lodo(other, pd.Series(y, index=frame.index), pd.Series(source), model=model, **QUICK)
        np.testing.assert_allclose(found.score, plain.score, atol=2e-5)
    with pytest.raises(InputError, match="X is sparse, and the default model centres it"):
        lodo(csr_matrix(X), y, source)


def test_groups_stay_whole_and_leave_with_their_source():
    rng = np.random.default_rng(3)
    n = 160
    y, source = rng.integers(0, 2, n), np.repeat(["a", "b", "c", "d"], 40)
    groups = np.arange(n) // 2
    groups[source == "d"] = groups[source == "a"]  # patients who were at two hospitals
    X = y[:, None] + rng.normal(size=(n, 2))
    found = lodo(X, y, source, groups=groups, **QUICK)
    train = ~np.isin(source, ["a", "d"])
    expected = default().fit(X[train], y[train]).decision_function(X[source == "a"])
    np.testing.assert_allclose(found.score.sel(protocol="lodo")[0, :40], expected, atol=1e-12)
    held = ~np.isnan(found.score.sel(protocol="same-source")[0].values)
    assert not set(groups[held]) & set(groups[~held])
    fold = fitting.cross_validation(check_labelled(y, source), groups.astype(np.int32), 5, 0)
    assert all(len(set(fold[groups == g])) == 1 for g in np.unique(groups))


def test_threshold_is_fixed_without_the_source(world):
    X, y, source = world
    rows = np.flatnonzero(source == "a")
    changed = y.copy()
    changed[rows] = 1 - changed[rows]
    found, other = (lodo(X, labels, source, threshold="youden", folds=2, **QUICK) for labels in (y, changed))
    # The labels of a source move neither its own scores nor its own threshold.
    for name in ("score", "called"):
        own = [r[name].sel(protocol="lodo").values[0, rows] for r in (found, other)]
        np.testing.assert_array_equal(*own)
    train = source != "a"
    model = fitting.logistic()
    cut = fitting._youden_cut(model, X[train], y[train], 0, 2)
    expected = model.fit(X[train], y[train]).decision_function(X[rows]) > cut
    np.testing.assert_array_equal(found.called.sel(protocol="lodo").values[0, rows], expected)


def test_youden_cut_by_hand():
    # Fitted on one feature that is the score: recall + specificity is largest when 0.4 and up are positive.
    class Identity(LogisticRegression):
        def fit(self, X, y):
            self.classes_ = np.array([0, 1])
            return self

        def decision_function(self, X):
            return X[:, 0]

    X = np.array([[0.1], [0.2], [0.4], [0.8], [0.3], [0.9]])
    y = np.array([0, 0, 1, 1, 0, 1])
    cut = fitting._youden_cut(Identity(), X, y, 0, 2)
    assert cut == 0.3  # above it: 0.4, 0.8 and 0.9
    assert fitting._youden_cut(Identity(), X, 1 - y, 0, 2) == -math.inf


# Scores that somebody has already


def test_from_scores_by_hand():
    y = [1, 0, 1, 0, 1, 1]
    source = ["a", "a", "b", "b", "p", "p"]
    cv = [0.9, 0.1, 0.8, 0.2, 0.7, 0.6]
    left_out = [0.4, 0.3, 0.9, 0.6, 0.2, 0.7]
    found = lodo_from_scores(cv, left_out, y, source, threshold=0.5)
    assert found.auc.sel(scope="all").values.tolist() == [1, 5 / 8]  # 8 pairs; 0.4 and 0.2 lose 1 + 2
    assert found.gap.sel(baseline="cv", scope="all").item() == 3 / 8
    assert found.auc.sel(protocol="lodo", scope="mixed").item() == 3 / 4
    assert found.source_auc.sel(protocol="lodo").values.tolist()[:2] == [1, 1]
    assert found.within_mean.sel(protocol="lodo", scope="all").item() == 1
    assert found.gap_within.sel(baseline="cv", scope="all").item() == 0
    np.testing.assert_array_equal(found.rate.sel(metric="recall", protocol="lodo"), [0, 1, 0.5])
    np.testing.assert_array_equal(found.rate.sel(metric="specificity", protocol="lodo"), [1, 0, math.nan])
    assert found.n.values.tolist() == [2, 2, 2]
    assert "noise_mean" not in found


@pytest.mark.parametrize(
    ("change", "informative"),
    [
        ({"cv": [1, math.nan, 2, 3]}, "cv is missing .nan. in 1 of 4 rows; first: row 1"),
        ({"lodo": [1, 2, 3]}, r"lodo must have the shape \(4,\) or \(seeds, 4\), got \(3,\)"),
        ({"cv": ["a", "b", "c", "d"]}, "cv must be numbers"),
        ({"same_source": [[math.nan] * 4]}, "same_source has no score at all for seed 0"),
        ({"threshold": math.nan}, "threshold must be a finite number"),
        ({"cv": np.zeros((2, 4)), "lodo": np.zeros((3, 4))}, "scores of 2 seeds and another has 3"),
    ],
)
def test_from_scores_refuses(change, informative):
    given = {"cv": [1, 2, 3, 4], "lodo": [1, 2, 3, 4]} | change
    with pytest.raises(InputError, match=informative):
        lodo_from_scores(given.pop("cv"), given.pop("lodo"), [0, 1, 0, 1], list("aabb"), **given)


# Errors


def bad(**change):
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(40, 2)), "y": np.tile([0, 1], 20), "source": np.repeat(["a", "b"], 20)}
    given |= change
    return lodo(given.pop("X"), given.pop("y"), given.pop("source"), **(QUICK | given))


@pytest.mark.parametrize(
    ("change", "informative"),
    [
        ({"y": np.tile([0, 2], 20)}, "y is neither 0 nor 1 in 20 of 40 rows; first: row 1 has 2"),
        ({"y": np.tile([0, math.nan], 20)}, r"y is missing \(nan\) in 20 of 40 rows; first: row 1"),
        ({"y": np.zeros(40)}, "y is 0 in all 40 rows"),
        ({"y": ["no", "yes"] * 20}, "y must be 0, 1 or bool, got the type <U3; first: row 0 has 'no'"),
        ({"y": np.zeros((40, 2))}, "y must be one-dimensional"),
        ({"source": ["a"] * 40}, "source has one value only, 'a'"),
        ({"source": ["a", None] * 20}, "source is missing in 20 of 40 rows; first: row 1"),
        ({"source": np.repeat(["a", "b"], 10)}, "source and y must have the same length, got 20 and 40"),
        ({"source": [1, "1"] * 20}, "two different values that read '1'"),
        ({"source": np.tile(["a", "b"], 20)}, "without source 'a', training has 20 rows, all with y = 1"),
        ({"X": np.full((40, 2), math.nan)}, "missing or infinite in 40 of 40 rows; first: row 0"),
        ({"X": np.full((40, 2), math.inf), "allow_missing": True}, "infinite in 40 of 40 rows"),
        ({"X": np.zeros(40)}, "X must have two dimensions"),
        ({"X": np.zeros((30, 2))}, "X and y must have the same length, got 30 and 40"),
        ({"X": np.zeros((40, 0))}, "X has no columns"),
        ({"X": [["a", 1]] * 40}, "X must be a matrix of numbers, a DataFrame, or a sequence of texts"),
        ({"X": pd.DataFrame({"v": [None, *range(39)]})}, "in 1 of 40 rows; first: row 0"),
        ({"folds": 21}, "one label occurs in 20 rows only; give at most 20 folds"),
        ({"folds": 1}, "folds must be a whole number from 2 up"),
        ({"seeds": ()}, "seeds must be different whole numbers"),
        ({"seeds": (0, 0)}, "seeds must be different whole numbers"),
        ({"seeds": (-1,)}, "seeds must be a whole number from 0 up"),
        ({"threshold": "best"}, "threshold must be a finite decimal number"),
        ({"controls": True}, "controls must be a whole number"),
        ({"bootstrap": 0}, "bootstrap must be a whole number from 1 up"),
        ({"model": LinearRegression()}, "neither decision_function nor predict_proba"),
        ({"model": LogisticRegression}, "give an instance, LogisticRegression()"),
        ({"model": "logistic"}, "model must be a scikit-learn estimator, got str"),
        ({"groups": [1] * 39}, "groups and y must have the same length, got 39 and 40"),
        ({"groups": np.tile([1, 2], 20)}, "training has|give fewer folds"),
    ],
)
def test_refuses(change, informative):
    with pytest.raises(InputError, match=informative.replace("()", r"\(\)")):
        bad(**change)


def test_missing_values_reach_a_model_that_takes_them(world):
    X, y, source = world
    X = X.copy()
    X[3, 1] = math.nan
    forest = RandomForestClassifier(n_estimators=3, random_state=0)
    found = lodo(X, y, source, model=forest, allow_missing=True, **QUICK)
    assert not np.isnan(found.score.sel(protocol=["cv", "lodo"])).any()


def test_too_many_sources_are_identifiers():
    with pytest.raises(InputError, match="is it an identifier of rows"):
        check_labelled(np.tile([0, 1], 1500), np.arange(3000))


def test_input_is_not_changed(world):
    X, y, source = (array.copy() for array in world)
    for array in (X, y, source):
        array.flags.writeable = False
    lodo(X, y, source, model=default(), controls=1, bootstrap=10, n_jobs=1)


# Progress, stopping, cores


def test_progress_counts_every_fit_and_stops_when_it_raises(world):
    seen = []
    lodo(*world, **(QUICK | {"controls": 1}), progress=lambda done, total: seen.append((done, total)))
    total = 5 + 1 + 6 + 2 * 6
    assert seen == [(done, total) for done in range(total + 1)]

    class Stop(Exception):
        pass

    def progress(done, total):
        seen.append(done)
        if done == 3:
            raise Stop

    seen.clear()
    with pytest.raises(Stop):
        lodo(*world, **QUICK, progress=progress)
    assert seen == [0, 1, 2, 3]


def test_bar_is_on_stderr(capsys, world):
    lodo(*world, **QUICK, progress=True)
    caught = capsys.readouterr()
    assert "LODO" in caught.err
    assert caught.out == ""


def test_parallel_work_gives_the_same_and_stops_when_told(monkeypatch, world, result):
    monkeypatch.setattr(fitting, "_WORTH_PROCESSES", 0)
    X, y, source = world
    few = {"controls": 0, "identity": False, "bootstrap": 10, "n_jobs": 2}
    seen = []

    def progress(done, total):
        seen.append(done)
        if done == 4:
            raise KeyboardInterrupt

    with parallel_config(backend="threading"):  # worker processes take seconds to start
        found = lodo(X, y, source, **few)
        with pytest.raises(KeyboardInterrupt):
            lodo(X, y, source, progress=progress, **few)
    np.testing.assert_allclose(found.score, result.score.sel(seed=[0]), rtol=0, atol=1e-10)
    assert seen == [0, 1, 2, 3, 4]


def test_a_task_can_be_sent_to_another_process(world):
    X, y, source = world
    train = source != "a"
    task = (fitting.fit_and_score, default(), X, y, train, ~train, 0, 0.0, 5)
    function, *arguments = pickle.loads(pickle.dumps(task))
    np.testing.assert_array_equal(function(*arguments)[0], fitting.fit_and_score(*task[1:])[0])


# Words


def test_words_promise_nothing_about_the_world(world, result):
    penguins = load_lodo_data("penguins")
    few = lodo(penguins.X, penguins.y, penguins.source, controls=1, n_jobs=1)
    for found in (result, few):
        said = " ".join(explain_lodo(found)).lower()
        assert "transfer between these sources" in said
        assert not any(
            word in said for word in ("deploy", "true shift", "generaliz", "generalis", "real world")
        )
    assert "ranked as before" in " ".join(explain_lodo(few))  # within a species, nothing is lost


def test_what_is_lost_within_sources_is_said():
    """Scores by hand: in cross-validation each source is ranked right, left out only a part of the pairs is."""
    y = np.tile([0, 1], 200)
    source = np.repeat(["a", "b"], 200)
    rng = np.random.default_rng(0)
    good = y + rng.normal(scale=0.5, size=400)
    bad = y + np.where(source == "b", 4, 0) + rng.normal(scale=1.5, size=400)
    found = lodo_from_scores(good, bad, y, source)
    said = " ".join(explain_lodo(found))
    own = [[roc_auc_score(y[source == s], scores[source == s]) for s in ("a", "b")] for scores in (good, bad)]
    lost = np.mean(own[0]) - np.mean(own[1])
    assert lost > 0.1
    assert "ranked as before" not in said
    worst = int(np.argmax(np.subtract(*own)))
    named = f"most in '{'ab'[worst]}' ({own[0][worst]:.3f} to {own[1][worst]:.3f})"
    assert f": {lost:.3f} is lost in the mean (95 % over rows " in said
    assert named in said
    # A shift per source keeps every rank within it.
    kept = " ".join(explain_lodo(lodo_from_scores(good, good + np.where(source == "b", 4, 0), y, source)))
    assert "the sources' own rows are ranked as before, or nearly. Counted by pairs" in kept
    assert "The gap comes from pairs of rows of two sources" in kept
    # Few rows: as much is inside the noise.
    some = np.r_[0:12, 200:212]
    few = " ".join(explain_lodo(lodo_from_scores(good[some], bad[some], y[some], source[some])))
    assert ", inside its noise (95 % over rows" in few


def test_the_loss_within_a_source_comes_first_and_its_share_by_pairs_is_called_one():
    """By hand: 4 positives and 4 negatives in each of two sources, 64 pairs, half of them within a source.

    Known: all pairs are won. Left out: in a 10 of its 16 pairs are won, in b 14; between the sources all.
    """
    y, source = [1] * 4 + [0] * 4 + [1] * 4 + [0] * 4, ["a"] * 8 + ["b"] * 8
    known = [1.0] * 4 + [0.0] * 4 + [1.0] * 4 + [0.0] * 4
    # a: one positive is below all of its negatives but above b's, one is below two; b: one is below two of its own
    low_a, low_b = [5, 5, 2.5, 1], [5, 5, 5, 2.5]
    left_out = [*low_a, 2, 2, 3, 3, *low_b, 2, 2, 3, 3]
    found = lodo_from_scores(known, left_out, y, source)
    # a: 4 + 4 + 2 + 0 of 16; b: 4 + 4 + 4 + 2; a over b: 4 + 4 + 2 + 0; b over a: 4 + 4 + 4 + 2
    assert found.source_auc.sel(protocol="lodo").values.tolist() == [10 / 16, 14 / 16]
    assert found.gap.sel(baseline="cv", scope="all").item() == 16 / 64
    assert lost_within(found, "cv") == (1.0, 0.75, 0.25)
    said = explain_lodo(found)[1]
    assert said.startswith(
        "Within a source the mean AUROC goes from 1.000 to 0.750: a mean loss of 0.250, inside"
    )
    assert "0.125 of the gap is from pairs of one source (50.0 % of all pairs; " in said  # 8 of 64 pairs
    assert "and 0.125 from pairs of two sources (1.000 to 0.750): these are shares of the gap" in said


def test_a_source_too_small_to_speak_of_is_named():
    y = [0, 1] * 10 + [0, 1, 1] + [1]
    source = ["a"] * 10 + ["b"] * 10 + ["tiny"] * 3 + ["one"]
    cv = [0.0, 1] * 8 + [1, 0] * 2 + [0, 1, 2] + [1]
    found = lodo_from_scores(cv, cv, y, source)
    said = next(s for s in explain_lodo(found) if s.startswith("Too small"))
    assert "'tiny' (3 rows, 2 of label 1), 'one' (1 row, 1 of label 1)." in said
    # By hand: in b, of 25 pairs 9 are won and 12 are ties, which count one half: 15 of 25.
    assert found.source_auc.sel(protocol="cv").values[:2].tolist() == [1.0, 0.6]
    assert said.endswith("without these it goes from 0.800 to 0.800.")
    table = source_table(found).set_index("source")
    assert np.isfinite(table.lodo_low["one"])
    assert table.lodo_low["one"] == pytest.approx(wilson_interval(1, 1)[0])


def test_a_column_with_the_label_is_named():
    rng = np.random.default_rng(2)
    y, source = np.arange(80) % 2, np.repeat(["a", "b"], 40)
    X = np.c_[rng.normal(size=(80, 2)), 3 - 2.0 * y]
    found = lodo(X, y, source, **QUICK)
    assert found.attrs["column_with_label"] == "column 2"
    assert "gives the label away: column 2 alone separates" in " ".join(explain_lodo(found))
    assert label_columns(csr_matrix(X), y) == [2]
    assert label_columns(pd.DataFrame(X).assign(word="x"), y) == [2]
    X[0, 2] = X[1, 2]  # a tie does not separate
    assert label_columns(X, y) == []
    assert label_columns(X[:4, :1] * 0 + y[:4, None], y[:4]) == []  # of four rows it is chance


def test_groups_that_are_the_sources():
    rng = np.random.default_rng(3)
    y, source = np.arange(60) % 2, np.repeat(["a", "b", "c"], 20)
    with pytest.raises(InputError, match="groups say the same as source"):
        lodo(rng.normal(size=(60, 2)), y, source, groups=source, **QUICK)
    asked = {"folds": 3, "controls": 2, "identity": True}
    X = rng.normal(size=(60, 2))
    found = lodo(X, y, source, groups=source, **(QUICK | asked))
    compared = [n for n in found.data_vars if n.startswith(("gap", "identity_", "shuffled_"))]
    for name in [*compared, "name_auc", "name_auc_null", "name_auc_null_low", "name_accuracy"]:
        if name != "identity_rows":
            assert np.isnan(found[name]).all(), name
            assert found[name].attrs["undefined"].startswith("every source is one group"), name
    assert found.identity_rows.item() == 0
    assert {"gap", "gap_within_mean", "gap_seed_sd", "identity_recall", "shuffled_gap"} <= set(compared)
    # What rests on no such fold stays: the score without the source, and the control with noise.
    left_out = cross_val_predict(
        default(), X, y, cv=LeaveOneGroupOut(), groups=source, method="decision_function"
    )
    pooled = roc_auc_score(y, left_out)
    assert found.auc.sel(protocol="lodo", scope="all").item() == pytest.approx(pooled, abs=1e-12)
    assert 0 < found.noise_mean.item() < 1
    said = explain_lodo(found)
    assert said[0].startswith(f"Leaving a row's source out gives an AUROC of {pooled:.3f} (95 % over rows ")
    assert "What it is worth to know a source is not defined: every source is one group or one row" in said[0]
    assert said[1].startswith("Not defined for the same reason: the gap, how well a model tells the source")
    assert not any(
        "A model tells the source" in s or "name alone ranks" in s or "shuffled within" in s for s in said
    )
    told = json.loads(json.dumps(summarise_lodo(found), allow_nan=False))["variables"]
    assert told["identity_accuracy"]["values"] is None
    assert "no fold divides a source" in told["gap"]["undefined"]
    assert "undefined" not in told["auc"]
    # Sources of one row each are no other, whoever made the folds.
    rows = lodo_from_scores(X[:, 0], X[:, 1], y, np.arange(60), bootstrap=10)
    assert rows.attrs["whole_sources"] == "yes"
    assert np.isnan(rows.gap).all()
    assert np.isnan(rows.name_auc)


def test_a_source_that_is_one_group_is_not_asked_for_by_features():
    """Five sources can be divided; the sixth is one patient, whom no training set of its own rows has seen."""
    rng = np.random.default_rng(4)
    source = np.repeat(list("abcdef"), 20)
    y, groups = np.arange(120) % 2, np.arange(120)
    groups[source == "f"] = 999
    X = np.c_[np.repeat(np.arange(6) * 9.0, 20), y] + rng.normal(
        size=(120, 2)
    )  # the first column is the source
    found = lodo(X, y, source, groups=groups, **(QUICK | {"identity": True}))
    assert found.identity_rows.item() == 100
    assert found.identity_accuracy.item() == pytest.approx(found.identity_recall.values[:5].mean())
    assert found.identity_accuracy.item() > 100 / 120  # more than could be right of all rows
    assert found.identity_majority.item() == 20 / 100
    assert np.isnan(found.identity_recall.sel(source="f"))
    assert "100 of 120 rows are asked about" in " ".join(explain_lodo(found))


def test_folds_that_leave_one_label_are_refused():
    labelled = check_labelled(np.repeat([1, 0], [6, 30]), np.tile(["a", "b"], 18))
    groups = np.r_[np.zeros(6), 1:31].astype(np.int32)  # every positive is in the first group, so in one fold
    with pytest.raises(
        InputError, match=r"folds=3: without fold \d, training has \d+ rows, all with y = 0; .* finer groups"
    ):
        fitting.cross_validation(labelled, groups, 3, 0)


def test_a_control_off_its_band_says_whether_it_is_chance(result):
    def said(what, mean, low, high):
        values = dict(zip(("mean", "low", "high"), (mean, low, high), strict=True))
        return explain_lodo(result.assign({f"{what}_{end}": value for end, value in values.items()}))

    assert any(
        "gives 0.460 (mean of 3 draws, 95 % 0.400 to 0.520); it should be 0.5." in s
        for s in said("noise", 0.46, 0.4, 0.52)
    )
    few = said("noise", 0.44, 0.36, 0.52)
    assert any(s.endswith("It is outside 0.45 to 0.55, as chance may have it in so few draws.") for s in few)
    assert any("It is not, though 3 draws may be chance: what" in s for s in said("noise", 0.43, 0.42, 0.44))
    assert noise_fails(result.assign(noise_mean=0.422, noise_low=0.295, noise_high=0.549)) == ""
    many = result.isel(draw=np.zeros(10, int)).assign(noise_mean=0.43, noise_low=0.42, noise_high=0.44)
    assert any("It is not, and not by chance: what" in s for s in explain_lodo(many))
    # An interval that reaches into the band says less.
    assert noise_fails(many.assign(noise_high=0.46)) == "hint"
    for what, inside, outside in (("noise", 0.46, 0.44), ("shuffled", 0.004, 0.006)):
        for mean, where in ((inside, "inside"), (outside, "outside")):
            one = next(s for s in said(what, mean, math.nan, math.nan) if f"{mean:.3f} (" in s)
            assert f"It is {where} " in one
            assert one.endswith("One draw cannot tell how far chance moves it.")
    assert any(s.endswith("it should be 0.") for s in said("shuffled", 0.004, 0.003, 0.005))
    assert any(
        s.endswith("it should be 0, which the interval holds.") for s in said("shuffled", 0.02, -0.01, 0.05)
    )
    # Sizes 60, 50, 40, 40, 30 and 30 of 250: the squared shares add up to 11,100 of 62,500, and 82.24 % is left.
    more = next(s for s in said("shuffled", -0.02, -0.03, -0.01) if "sources shuffled" in s)
    assert "trains on 80.0 % of the rows, leaving a source out on 82.2 % on average" in more
    assert more.endswith("in favour of leaving a source out.")
    assert any(s.endswith("it should be 0, and it is not.") for s in said("shuffled", 0.02, 0.01, 0.03))
    assert any("one draw, so no interval" in s for s in explain_lodo(result.isel(draw=[0])))


def test_summary_is_json_without_rows(result):
    summary = summarise_lodo(result)
    assert summary["variables"]["source_auc"]["values"][2][4] is None
    assert summary["coords"]["source"] == ["a", "b", "c", "d", "only 1", "only 0"]
    assert not {"score", "label"} & set(summary["variables"])
    assert summary["variables"]["gap"]["values"] == result.gap.values.tolist()
    assert auroc([0, 1], [0, 1]) == 1
