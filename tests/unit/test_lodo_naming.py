"""What a source's name says about the label: brute force over pairs, and exactly nothing where there is nothing."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from leakviz.lodo import lodo, lodo_from_scores
from leakviz.lodo.inputs import check_labelled
from leakviz.lodo.naming import _pair_accuracy, _pair_auc, _rows, name_alone


def by_brute_force(y, source, groups=None):
    """Leave out every pair of a positive and a negative, and score both by what is left."""
    y, source = np.asarray(y), np.asarray(source)
    groups = np.arange(y.size) if groups is None else np.asarray(groups)
    overall = np.sign(y.sum() - (1 - y).sum())
    won, right, pairs = 0.0, np.zeros(2), 0
    for i, j in product(np.flatnonzero(y == 1), np.flatnonzero(y == 0)):
        shares, pairs = [], pairs + 1
        for place, row in enumerate((i, j)):
            gone = np.zeros(y.size, bool)
            for left_out in (i, j):
                gone |= (groups == groups[left_out]) & (source == source[left_out])
            rest = y[(source == source[row]) & ~gone]
            shares.append(rest.mean() if rest.size else y.mean())
            vote = np.sign(rest.sum() - (1 - rest).sum()) or overall
            right[place] += {1: place == 0, -1: place == 1, 0: 0.5}[int(vote)]
        won += 0.5 if source[i] == source[j] else np.heaviside(shares[0] - shares[1], 0.5)
    recall, specificity = right / pairs
    return won / pairs, y.mean() * recall + (1 - y.mean()) * specificity


def found(y, source, groups=None):
    groups = None if groups is None else np.asarray(groups, dtype=np.int32)
    return {name: value for name, (_, value) in name_alone(check_labelled(y, source), groups, 0).items()}


@pytest.mark.parametrize("seed", range(6))
def test_every_pair_is_left_out(seed):
    rng = np.random.default_rng(seed)
    n = 24
    y, source = rng.integers(0, 2, n), np.array(list("abcd"))[np.minimum(rng.integers(0, 5, n), 3)]
    y[0], y[1] = 0, 1
    source[2] = "alone"
    for groups in (None, rng.integers(0, 8, n)):
        result = found(y, source, groups)
        expected = by_brute_force(y, source, groups)
        assert (result["name_auc"], result["name_accuracy"]) == pytest.approx(expected, abs=1e-12)
    each = found(y, source, np.arange(n))
    plain = found(y, source)
    assert (each["name_auc"], each["name_accuracy"]) == pytest.approx(
        (plain["name_auc"], plain["name_accuracy"]), abs=1e-12
    )


def test_by_hand():
    # Source a: 1 1 0, b: 0 0. Pairs within a: 2, ties. With b: 1 and 0 are left in a: 1/2 above 0: 4 pairs won.
    result = found([1, 1, 0, 0, 0], list("aaabb"))
    assert result["name_auc"] == (2 * 0.5 + 4) / 6
    # Positives: without the 0 of a, 1 is left: called 1, twice. Without one of b, 1 and 0: a tie, and most rows are 0.
    # Negatives: that of a is called 1, that of b 0.
    assert result["name_accuracy"] == pytest.approx(2 / 5 * 2 / 6 + 3 / 5 * 4 / 6)
    assert result["name_auc_in_sample"] == roc_auc_score([1, 1, 0, 0, 0], [2 / 3, 2 / 3, 2 / 3, 0, 0])
    assert (result["name_accuracy_in_sample"], result["label_majority"]) == (4 / 5, 3 / 5)


@pytest.mark.parametrize("sizes", [(3, 3), (4, 2, 1), (1, 1, 1, 4)])
def test_without_association_the_expected_value_is_exactly_a_half(sizes):
    source = np.repeat(np.arange(len(sizes)), sizes)
    aucs, accuracies = [], []
    for ones in combinations(range(source.size), 3):  # every way to give the label to three rows
        y = np.isin(np.arange(source.size), ones).astype(int)
        units = _rows(check_labelled(y, source).counts())
        aucs.append(_pair_auc(units, len(sizes)))
        accuracies.append(_pair_accuracy(units, len(sizes)))
    assert np.mean(aucs) == pytest.approx(0.5, abs=1e-12)
    assert np.mean(accuracies) <= max(3, source.size - 3) / source.size + 1e-12


def test_many_sources_without_signal_are_not_said_to_predict():
    rng = np.random.default_rng(1)
    y, source = rng.integers(0, 2, 600), np.arange(600) // 10
    result = found(y, source)
    assert result["name_auc_in_sample"] > 0.6
    assert result["name_auc_null_low"] < result["name_auc"] < result["name_auc_null_high"]
    assert result["name_auc_null"] == pytest.approx(0.5, abs=0.01)
    assert 0.02 < result["name_auc_null_high"] - result["name_auc_null_low"] < 0.2
    assert result["name_accuracy"] < 0.56 < result["name_accuracy_in_sample"]


def test_a_group_is_no_witness_for_itself():
    # One patient per source: the name of the source is the name of the patient, and says nothing of others.
    y = np.repeat([0, 1, 0, 1, 0, 1], 5)
    source, patient = np.repeat(np.arange(6), 5), np.repeat(np.arange(6), 5)
    assert found(y, source)["name_auc"] == 1
    grouped = found(y, source, patient)
    judged = [grouped[f"name_{n}"] for n in ("auc", "auc_null", "auc_null_low", "auc_null_high", "accuracy")]
    assert np.isnan(
        judged
    ).all()  # there is no other patient to judge by: not 0.5, which is for none by chance
    assert grouped["name_auc_in_sample"] == 1
    # One source of two patients is enough; both are left out with their rows, and the rest is judged by all rows.
    assert found(y, source, np.r_[[9] * 2, patient[2:]])["name_auc"] == pytest.approx(
        by_brute_force(y, source, np.r_[[9] * 2, patient[2:]])[0]
    )
    X = y[:, None] + np.random.default_rng(0).normal(size=(30, 1))
    result = lodo(X, y, source, groups=patient, folds=3, controls=0, identity=False, bootstrap=10, n_jobs=1)
    assert np.isnan(result.name_auc)
    assert result.protocol.values.tolist() == ["cv", "lodo"]  # no source can be split
    assert result.baseline.values.tolist() == ["cv"]
    assert lodo_from_scores(X[:, 0], X[:, 0], y, source, bootstrap=10).name_auc.item() == 1
