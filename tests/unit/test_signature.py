"""The perturbation signature and the neighbourhood index against hand-worked values and brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakviz.errors import InputError
from leakviz.neighbourhood import neighbourhood_leakage
from leakviz.signature import ahss, class_centroids, perturbation_signature, signature_blocks

ROOT = np.sqrt(2)


def test_signature_worked_by_hand():
    clean = [[2.0, 0.0], [0.0, 1.0]]
    masked = [[[0.0, 4.0], [0.0, 3.0]], [[1.0, 0.0], [-1.0, 0.0]]]
    found = perturbation_signature(clean, masked, [[5.0, 0.0], [0.0, 5.0]])
    # Columns: d1 d2 | r1 r2 | g0 g1 g2 | flip rate. (-1, 0) is at distance sqrt(2) from (0, 1).
    assert found == pytest.approx(
        np.array([[2, 0, 2, 0.5, 0, 0, 0, 0.5], [0, 2, 3, 1, 0, 0, ROOT, 0]], dtype=float)
    )
    assert ahss(found).tolist() == [-1, -1]


def test_25_masks_give_the_77_columns_of_the_paper():
    rng = np.random.default_rng(0)
    clean, masked = rng.normal(size=(6, 4)), rng.normal(size=(25, 6, 4))
    centroids = class_centroids(clean, [0, 0, 1, 1, 2, 2])
    found = perturbation_signature(clean, masked, centroids)
    assert found.shape == (6, 77)
    blocks = signature_blocks(25)
    assert [part.stop - part.start for part in blocks.values()] == [25, 25, 26, 1]
    assert sum(part.stop - part.start for part in blocks.values()) == 77
    # One row and one mask, straight from the definition.
    unit = {name: v / np.linalg.norm(v) for name, v in (("clean", clean[3]), ("masked", masked[8, 3]))}
    targets = centroids / np.linalg.norm(centroids, axis=1, keepdims=True)
    assert found[3, 8] == pytest.approx(np.sum((unit["masked"] - unit["clean"]) ** 2))
    assert found[3, 33] == pytest.approx(np.linalg.norm(masked[8, 3]) / np.linalg.norm(clean[3]))
    assert found[3, 59] == pytest.approx(np.linalg.norm(unit["masked"] - targets, axis=1).min())
    nearest = np.linalg.norm(unit["clean"] - targets, axis=1).argmin()
    of_masks = masked[:, 3] / np.linalg.norm(masked[:, 3], axis=1, keepdims=True)
    other = np.linalg.norm(of_masks[:, None] - targets, axis=2).argmin(axis=1)
    assert found[3, 76] == pytest.approx(np.mean(other != nearest))
    # The scale of an embedding carries nothing.
    assert perturbation_signature(clean * 1e3, masked * 1e3, centroids) == pytest.approx(found)


def test_signature_says_what_does_not_fit():
    clean, masked = np.ones((3, 2)), np.ones((4, 3, 2))
    with pytest.raises(InputError, match=r"masked must have the shape \(masks, 3, 2\), got \(3, 4, 2\)"):
        perturbation_signature(clean, masked.transpose(1, 0, 2), clean)
    broken = masked.copy()
    broken[2, 1] = 0
    with pytest.raises(InputError, match=r"masked\[2\] is all zero in 1 of 3 rows; first: row 1"):
        perturbation_signature(clean, broken, clean)
    broken[2, 1] = np.nan
    with pytest.raises(InputError, match=r"masked\[2\] is missing \(nan\) in 1 of 3 rows"):
        perturbation_signature(clean, broken, clean)
    with pytest.raises(InputError, match="3 K \\+ 2"):
        ahss(np.ones((2, 6)))
    with pytest.raises(InputError, match="at least 1"):
        signature_blocks(0)


def leakage_by_pairs(own, other, k):
    """Ties aside, straight from Appendix G."""
    rows = np.concatenate([own, other])
    is_id = np.arange(len(rows)) < len(own)
    shares = []
    for i in np.flatnonzero(~is_id):
        distance = np.linalg.norm(rows - rows[i], axis=1)
        distance[i] = np.inf
        shares.append(is_id[np.argsort(distance)[:k]].mean())
    return float(np.mean(shares))


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 20))
@settings(deadline=None, max_examples=25)
def test_neighbourhood_index_equals_brute_force(seed, k):
    rng = np.random.default_rng(seed)
    own, other = rng.normal(size=(15, 3)), rng.normal(size=(9, 3)) + 0.7
    expected = leakage_by_pairs(own, other, k)
    assert neighbourhood_leakage(own, other, k=k) == pytest.approx(expected, abs=1e-12)
    assert neighbourhood_leakage(own * 1e3 + 50, other * 1e3 + 50, k=k) == pytest.approx(expected, abs=1e-12)


def test_a_separable_class_has_no_neighbourhood_leakage():
    # What the paper says of its leaks: the index sees overlap, and a leaked class has none.
    rng = np.random.default_rng(0)
    own, other = rng.normal(size=(80, 4)), rng.normal(size=(60, 4))
    assert neighbourhood_leakage(own, other + 20) == 0
    assert neighbourhood_leakage(own, other + 20, k=79) == pytest.approx(20 / 79)  # 59 others of its class
    assert 0.4 < neighbourhood_leakage(own, other) < 0.7


def test_ties_at_the_last_neighbour_share():
    # The OOD row is at distance 1 of two ID rows and one OOD row, of which it may take one.
    assert neighbourhood_leakage([[1.0], [-1.0]], [[0.0], [1.0]], k=1) == pytest.approx((2 / 3 + 1) / 2)
    assert neighbourhood_leakage([[1.0], [1.0]], [[1.0], [1.0]], k=2) == pytest.approx(2 / 3)


def test_neighbourhood_says_what_it_cannot_answer():
    with pytest.raises(InputError, match="from 1 to 4, the other test rows"):
        neighbourhood_leakage(np.ones((3, 1)), np.ones((2, 1)), k=5)
