"""How sure the whitening budget is: intervals for what `whitening_spectrum` reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from leakviz.detectors import Spectrum, decompose
from leakviz.errors import InputError
from leakviz.matrices import as_features
from leakviz.moments import Covariance, FitStatistics, as_statistics
from leakviz.whitening import ALPHAS, Singular, as_alphas

Array = NDArray[np.float64]

FEW = 10
"""Below so many fit rows a direction, the large-sample interval of a condition number is not given."""

_ENOUGH = 1000  # ID rows, evenly taken, tell a spread well enough


def budget_intervals(
    fit: ArrayLike | FitStatistics,
    id_test: ArrayLike,
    ood_test: ArrayLike,
    *,
    alphas: ArrayLike = ALPHAS,
    covariance: Covariance = "one-class",
    fit_labels: ArrayLike | None = None,
    standardize: bool = True,
    singular: Singular = "refuse",
    draws: int = 200,
    seed: int = 0,
) -> xr.Dataset:
    """Return 95 % intervals for the shares of the whitening budget and for the condition number.

    Parameters
    ----------
    fit, alphas, covariance, fit_labels, standardize, singular
        As for `leakviz.whitening_spectrum`.
    id_test, ood_test : array-like of numbers, shapes (n, D) and (m, D)
        The OOD rows are drawn anew; the ID rows tell how heavy the tails are on
        the directions with the largest and the smallest eigenvalue.
    draws : int, default 200
        Bootstrap draws.
    seed : int, default 0
        Of the draws.

    Returns
    -------
    xarray.Dataset
        Coordinate ``alpha`` (A). ``_low`` and ``_high`` of ``top_signal_mass``,
        ``bottom_signal_mass`` : float; ``bottom_budget``, ``excess``,
        ``condition_number`` : float (alpha). nan where `whitening_spectrum` has
        none, and for the condition number below `FEW` fit rows a direction.

    Raises
    ------
    InputError
        As `leakviz.whitening_spectrum`, and if there are fewer than 2 draws.

    Notes
    -----
    The shares: the fit set stays as it is, as in the interval of an AUROC, and
    the OOD rows are drawn with replacement; standard errors on the logit scale
    (of the excess on its own). The condition number: another fit set of as many
    rows. In large samples the eigenvalue l of a covariance moves with a row by
    (u^2 - l) / n, with u the row's coordinate on its direction, and where
    features are standardised by l sum(v^2 z^2) / n less, with v the direction
    and z the row. The spread of that over the ID rows gives the standard error
    of log(largest / smallest); for Gaussian rows and alpha 0 without
    standardising it is sqrt(4 / n) (Anderson, Annals of Mathematical Statistics
    34 (1963), 122-148).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fit, id_test, ood = (rng.normal(size=(n, 2)) * [10, 1] for n in (500, 200, 100))
    >>> got = budget_intervals(fit, id_test, ood + [20, 0.5], alphas=[0, 1], standardize=False)
    >>> got.top_signal_mass_low.round(4).item(), got.top_signal_mass_high.round(4).item()
    (0.9992, 0.9999)
    >>> got.condition_number_low.round().values.tolist(), got.condition_number_high.round().values.tolist()
    ([86.0, 1.0], [125.0, 1.0])
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 2:
        raise InputError(f"draws must be a whole number from 2 up, got {draws!r}")
    statistics = as_statistics(fit, labels=fit_labels if covariance == "tied" else None)
    own = as_features(id_test, "id_test", width=statistics.n_features)
    rows = as_features(ood_test, "ood_test", width=statistics.n_features)
    alpha = as_alphas(alphas)
    spectrum = decompose(statistics, covariance=covariance, standardize=standardize)
    known = np.ones(alpha.size, dtype=bool)
    if singular == "nan" and spectrum.degrees < spectrum.eigenvalues.size:
        known = alpha > 0
    shrunk = spectrum.shrunk(alpha[known])

    projected = spectrum.project(rows)
    often = np.random.default_rng(seed).multinomial(rows.shape[0], [1 / rows.shape[0]] * rows.shape[0], draws)
    signal = np.vstack([projected.mean(axis=0), often @ projected / rows.shape[0]]) ** 2  # row 0: as it is
    if not signal[0].any():
        raise InputError("ood_test has the same mean as the fit set, so there is no shift to share out")
    size = signal.shape[1]
    tenth = max(1, round(size / 10))
    total = signal.sum(axis=1)
    top, bottom = signal[:, :tenth].sum(axis=1) / total, signal[:, -tenth:].sum(axis=1) / total
    spent = (1 / shrunk[:, -tenth:]) @ signal[:, -tenth:].T / ((1 / shrunk) @ signal.T)  # (known, 1 + draws)

    answer: dict[str, tuple[Array, Array]] = {
        "top_signal_mass": _shares(top),
        "bottom_signal_mass": _shares(bottom),
        "bottom_budget": _shares(spent),
        "excess": _plain(spent - bottom),
        "condition_number": _conditions(spectrum, own, alpha[known], standardize),
    }
    table: dict[str, object] = {}
    for name, ends in answer.items():
        for end, values in zip(("low", "high"), ends, strict=True):
            if values.ndim == 0:
                table[f"{name}_{end}"] = ((), float(values))
                continue
            column = np.full(alpha.size, np.nan)
            column[known] = values
            table[f"{name}_{end}"] = ("alpha", column)
    return xr.Dataset(table, {"alpha": alpha}).assign_attrs(draws=int(draws), seed=seed)


_Z = float(norm.ppf(0.975))


def _plain(values: Array) -> tuple[Array, Array]:
    """Return the interval of the first value from the spread of the others, along the last axis."""
    half = _Z * values[..., 1:].std(axis=-1, ddof=1)
    return np.maximum(values[..., 0] - half, -1.0), np.minimum(values[..., 0] + half, 1.0)


def _shares(values: Array) -> tuple[Array, Array]:
    tiny = np.finfo(np.float64).tiny
    odds = logit(np.clip(values, tiny, 1 - np.finfo(np.float64).epsneg))
    half = _Z * odds[..., 1:].std(axis=-1, ddof=1)
    low, high = expit(odds[..., 0] - half), expit(odds[..., 0] + half)
    at_end = (values[..., 0] == 0) | (values[..., 0] == 1)
    return np.where(at_end, values[..., 0], low), np.where(at_end, values[..., 0], high)


def _conditions(
    spectrum: Spectrum, rows: NDArray[Any], alpha: Array, standardize: bool
) -> tuple[Array, Array]:
    """Return the interval of the condition number at each alpha, on the log scale."""
    rows = rows[:: max(1, rows.shape[0] // _ENOUGH)]
    shrunk = spectrum.shrunk(alpha)
    size = shrunk.shape[1]
    if spectrum.count < FEW * size:
        return np.full(alpha.size, np.nan), np.full(alpha.size, np.nan)
    stop = np.arange(alpha.size)
    last = size - 1 - np.argmax(np.isfinite(shrunk)[:, ::-1], axis=1)
    largest, smallest = shrunk[:, 0], shrunk[stop, last]
    # How log(largest / smallest) moves with each eigenvalue of S: by itself, and through the trace.
    slope = np.repeat((alpha * (1 / largest - 1 / smallest) / size)[:, np.newaxis], size, axis=1)
    slope[:, 0] += (1 - alpha) / largest
    slope[stop, last] -= (1 - alpha) / smallest
    error = _Z * np.sqrt((_influence(spectrum, rows, standardize) @ slope.T).var(axis=0) / spectrum.count)
    value = largest / smallest
    return value / np.exp(error), value * np.exp(error)


def _influence(spectrum: Spectrum, rows: NDArray[Any], standardize: bool) -> Array:
    """Return how one more row would move each eigenvalue of S, times the number of rows, up to a constant."""
    projected = spectrum.project(rows)
    moved = (projected - _centre_of_each(spectrum, projected)) ** 2
    if standardize:  # each feature's standard deviation moves, too
        scaled = ((rows - spectrum.location) / spectrum.scale)[:, spectrum.varies]
        moved -= spectrum.eigenvalues * (scaled**2 @ spectrum.directions**2)
    return moved


def _centre_of_each(spectrum: Spectrum, projected: Array) -> Array:
    """Return the centre that is nearest to each row: with several, that of its likely class."""
    if spectrum.centres.shape[0] == 1:
        return spectrum.centres
    weight = 1 / spectrum.shrunk([0.01])[0]
    away = (spectrum.centres**2) @ weight - 2 * (projected * weight) @ spectrum.centres.T
    return spectrum.centres[away.argmin(axis=1)]
