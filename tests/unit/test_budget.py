"""Intervals of the whitening budget: against the spread of fresh samples, and where there is none."""

import numpy as np
import pytest

import leakviz
from leakviz.budget import FEW, budget_intervals

SPREAD = np.array([8.0, 3.0, 1.0, 0.5])
SHIFT = np.array([3.0, 2.0, 1.0, 1.0])
SHARES = ("top_signal_mass", "bottom_signal_mass", "bottom_budget")


def rows(n, seed, *, size=4, shift=0.0, heavy=False):
    rng = np.random.default_rng(seed)
    drawn = rng.laplace(size=(n, size)) / np.sqrt(2) if heavy else rng.normal(size=(n, size))
    return drawn * SPREAD[:size] + shift


def half(answer, name, scale):
    """Return half the width of an interval on the scale on which it is symmetric."""
    low, high = (scale(answer[f"{name}_{end}"].values) for end in ("low", "high"))
    return (high - low) / 2


def logit(p):
    return np.log(p / (1 - p))


def spectra(fits, standardize):
    """Return eigenvalues, falling, and eigenvectors of many fit sets: numpy's, not leakviz's."""
    centred = fits - fits.mean(axis=1, keepdims=True)
    if standardize:
        centred = centred / centred.std(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.einsum("fni,fnj->fij", centred, centred) / fits.shape[1])
    return values[:, ::-1], vectors[:, :, ::-1]


def test_shares_have_the_spread_of_other_ood_rows():
    fit, own = rows(4000, 0), rows(500, 1)
    (values,), (vectors,) = spectra(fit[np.newaxis], standardize=False)
    fresh = np.array([rows(150, s, shift=SHIFT).mean(axis=0) for s in range(100, 400)]) - fit.mean(axis=0)
    signal = (fresh @ vectors) ** 2
    spent = signal / (0.9 * values + 0.1 * values.mean())
    top, bottom = signal[:, 0] / signal.sum(axis=1), signal[:, 3] / signal.sum(axis=1)
    budget = spent[:, 3] / spent.sum(axis=1)
    spread = {
        "top_signal_mass": logit(top).std(),
        "bottom_signal_mass": logit(bottom).std(),
        "bottom_budget": logit(budget).std(),
        "excess": (budget - bottom).std(),
    }
    said = [
        budget_intervals(fit, own, rows(150, s, shift=SHIFT), draws=100, alphas=[0.1], standardize=False)
        for s in range(100, 112)
    ]
    for name, expected in spread.items():
        widths = np.mean([half(a, name, logit if name in SHARES else np.asarray) for a in said])
        assert widths == pytest.approx(1.96 * expected, rel=0.2), name


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("heavy", [False, True], ids=["gaussian", "laplace"])
def test_condition_numbers_have_the_spread_of_other_fit_sets(heavy, standardize):
    mix = np.array([[1, 0, 0, 0], [0.6, 1, 0, 0], [0.3, 0.2, 1, 0], [0, 0.5, 0.1, 1]])

    def drawn(n, seed):
        return rows(n, seed, heavy=heavy) @ mix

    values, _ = spectra(np.stack([drawn(600, s) for s in range(400)]), standardize)
    alphas = np.array([0, 0.05, 0.4])[:, np.newaxis, np.newaxis]
    shrunk = (1 - alphas) * values + alphas * values.mean(axis=1, keepdims=True)
    spread = np.log(shrunk[..., 0] / shrunk[..., -1]).std(axis=1)
    asked = {"alphas": [0, 0.05, 0.4], "standardize": standardize, "draws": 2}
    said = [budget_intervals(drawn(600, s), drawn(1000, 500 + s), rows(100, 1), **asked) for s in range(20)]
    widths = np.mean([half(answer, "condition_number", np.log) for answer in said], axis=0)
    np.testing.assert_allclose(widths, 1.96 * spread, rtol=0.15)
    if not heavy and not standardize:  # Anderson: the log of an eigenvalue has variance 2 / n
        assert widths[0] == pytest.approx(1.96 * np.sqrt(4 / 600), rel=0.05)


@pytest.mark.parametrize("covariance", ["one-class", "tied"])
def test_the_answer_lies_inside_and_euclid_is_exact(covariance):
    labels = np.arange(600) % 3
    fit = rows(600, 0) + labels[:, np.newaxis] * [4, 0, 1, 0]
    own, ood = rows(90, 1) + (np.arange(90) % 3)[:, np.newaxis] * [4, 0, 1, 0], rows(80, 2, shift=SHIFT)
    asked = {"covariance": covariance, "fit_labels": labels}
    spectrum = leakviz.whitening_spectrum(fit, ood, **asked)
    said = budget_intervals(fit, own, ood, **asked)
    for name in (*SHARES, "excess", "condition_number"):
        value, low, high = spectrum[name].values, said[f"{name}_low"].values, said[f"{name}_high"].values
        assert (low <= value + 1e-12).all(), name
        assert (value <= high + 1e-12).all(), name
    last = said.isel(alpha=-1)  # alpha 1: no direction is favoured
    assert last.condition_number_low == last.condition_number_high == 1
    assert abs(last.excess_low) < 1e-12
    assert abs(last.excess_high) < 1e-12


def test_neither_a_factor_nor_a_shift_matters_and_inputs_stay():
    fit, own, ood = rows(300, 0), rows(60, 1), rows(50, 2, shift=SHIFT)
    before = [a.copy() for a in (fit, own, ood)]
    one = budget_intervals(fit, own, ood, draws=20)
    two = budget_intervals(1e3 * fit + 7, 1e3 * own + 7, 1e3 * ood + 7, draws=20)
    for name in one.data_vars:
        np.testing.assert_allclose(two[name], one[name], rtol=1e-6, atol=1e-9, err_msg=str(name))
    for a, b in zip(before, (fit, own, ood), strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_interval_where_there_is_no_answer():
    ood = rows(50, 2, shift=SHIFT)
    few = budget_intervals(rows(FEW * 4 - 1, 0), rows(60, 1), ood, draws=5)
    assert np.isnan(few.condition_number_low).all()
    assert np.isfinite(few.bottom_budget_low).all()
    thin = rows(4, 0)  # rank 3 of 4
    said = budget_intervals(thin, rows(60, 1), ood, draws=5, singular="nan")
    assert np.isnan(said.bottom_budget_low.values).tolist() == [True] + [False] * (said.sizes["alpha"] - 1)
    with pytest.raises(leakviz.InputError, match="rank 3"):
        budget_intervals(thin, rows(60, 1), ood)
    with pytest.raises(leakviz.InputError, match="draws must be a whole number from 2 up, got 1"):
        budget_intervals(rows(90, 0), rows(60, 1), ood, draws=1)
    with pytest.raises(leakviz.InputError, match="no shift to share out"):
        budget_intervals([[0.0, 1.0], [2.0, 5.0], [1.0, 0.0]], [[1.0, 2.0]], [[1.0, 2.0]])
