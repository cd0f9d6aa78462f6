"""Shrinkage: what whitening does to a detector, at every alpha that a slider can ask for.

Sigma(alpha) = (1 - alpha) S + alpha tr(S)/D I runs from full whitening (alpha 0) to
Euclidean distances (alpha 1). One eigendecomposition serves every alpha: scores at all of
them are one matrix product of the squared projections.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.decimals import as_fraction_of_one
from leakviz.detectors import Spectrum, decompose
from leakviz.errors import InputError
from leakviz.matrices import as_features
from leakviz.moments import Covariance, FitStatistics, as_statistics
from leakviz.statistics import auroc_with_interval

_SMALL = ("0", "1e-5", "3e-5")
_DECADES = [f"{digits}e-{power}" for power in (4, 3, 2) for digits in (1, 1.5, 2, 3, 4, 5, 7)]
_LARGE = [f"0.{hundredths:02d}" for hundredths in (*range(10, 71, 5), 80, 90, 95)]

ALPHAS: NDArray[np.float64] = np.array([float(stop) for stop in (*_SMALL, *_DECADES, *_LARGE, "1")])
"""The 41 stops of the pages' slider for alpha: 0, then a scale that is logarithmic below 0.1."""

Singular = Literal["refuse", "nan"]
Array = NDArray[np.float64]


def whitening_spectrum(
    fit: ArrayLike | FitStatistics,
    ood: ArrayLike,
    *,
    alphas: ArrayLike = ALPHAS,
    covariance: Covariance = "one-class",
    fit_labels: ArrayLike | None = None,
    standardize: bool = True,
    singular: Singular = "refuse",
) -> xr.Dataset:
    """Tell on which directions a Mahalanobis distance spends its separation, at every alpha.

    Parameters
    ----------
    fit : array-like of numbers, shape (n, D), or FitStatistics
        In-distribution fit rows, or their statistics.
    ood : array-like of numbers, shape (m, D)
        OOD rows.
    alphas : array-like of floats or decimal strings in [0, 1], shape (A,)
        Strictly increasing; by default `ALPHAS`.
    covariance : {"one-class", "tied"}, default "one-class"
    fit_labels : array-like of whole numbers or text, shape (n,), optional
        Classes of the fit rows, for "tied"; statistics carry their own.
    standardize : bool, default True
        Divide each feature by its standard deviation in the fit set first.
    singular : {"refuse", "nan"}, default "refuse"
        What to answer at alpha 0 where there are too few fit rows for an
        inverse: an error, or nan at this alpha alone.

    Returns
    -------
    xarray.Dataset
        Coordinates ``alpha`` (A) and ``direction`` (d: 0 has the largest
        eigenvalue; features that are constant in the fit set are left out).

        ``eigenvalue``, ``signal_mass`` : float (direction)
            Of S; and s_i, the share of the squared shift of the mean, Delta,
            that lies along direction i. The signal mass is the Euclidean budget.
        ``cumulated_signal_mass`` : float (direction)
        ``budget``, ``cumulated_budget`` : float (alpha, direction)
            Mahalanobis budget (s_i / lambda_i(alpha)) / sum, and its running sum.
        ``top_signal_mass``, ``bottom_signal_mass`` : float
            Signal mass of the tenth of the directions with the largest, and
            with the smallest eigenvalues.
        ``bottom_budget``, ``excess`` : float (alpha)
            Mahalanobis budget of the bottom tenth, and what it is above the
            Euclidean one.
        ``condition_number`` : float (alpha)
            Largest over smallest eigenvalue of Sigma(alpha).
        ``ledoit_wolf`` : float
            The alpha that Ledoit and Wolf's estimator chooses; nan where the
            statistics were stored without fourth moments.

        Attributes ``n_fit``, ``n_ood``, ``n_constant``, ``rank``, ``n_tenth``
        (directions in a tenth), ``covariance``.

    Raises
    ------
    InputError
        As `leakviz.Mahalanobis`, and if the OOD mean equals the fit mean, so that
        there is no shift to share out.

    Notes
    -----
    arXiv 2607.19393, section 8, equation 2, Observation 3 and Appendix A.
    Delta is the OOD mean less the fit mean, in the coordinates of the detector.
    A tenth is rounded to the nearest whole number of directions, at least one.
    At alpha = 0 directions below 1e-6 of the largest eigenvalue get no budget.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fit = rng.normal(size=(500, 2)) * [10, 1]
    >>> ood = rng.normal(size=(100, 2)) * [10, 1] + [20, 0.5]
    >>> spectrum = whitening_spectrum(fit, ood, alphas=[0, 1], standardize=False)
    >>> spectrum.signal_mass.round(3).values.tolist()
    [0.999, 0.001]
    >>> spectrum.budget.round(2).values.tolist()
    [[0.93, 0.07], [1.0, 0.0]]
    """
    asked = _prepare(fit, alphas, covariance, fit_labels, standardize, singular)
    return _spectrum_answer(asked, as_features(ood, "ood", width=asked.statistics.n_features))


def _spectrum_answer(asked: "_Asked", rows: NDArray[Any]) -> xr.Dataset:
    spectrum, alpha, known = asked.spectrum, asked.alpha, asked.known
    origin = rows[:1].astype(np.float64)
    mean = origin + (rows - origin).mean(axis=0, dtype=np.float64)
    signal = spectrum.project(mean)[0] ** 2
    total = float(signal.sum())
    if total == 0:
        raise InputError("ood has the same mean as the fit set, so there is no shift to share out")
    mass = signal / total
    size = mass.size
    budget, condition = np.full((alpha.size, size), np.nan), np.full(alpha.size, np.nan)
    shrunk = spectrum.shrunk(alpha[known])
    spent = mass / shrunk
    budget[known] = spent / spent.sum(axis=1, keepdims=True)
    smallest = np.where(np.isinf(shrunk), np.nan, shrunk)
    condition[known] = shrunk[:, 0] / np.nanmin(smallest, axis=1)

    tenth = max(1, round(size / 10))
    bottom = budget[:, -tenth:].sum(axis=1)
    answer = xr.Dataset(
        {
            "eigenvalue": ("direction", spectrum.eigenvalues),
            "signal_mass": ("direction", mass),
            "cumulated_signal_mass": ("direction", np.cumsum(mass)),
            "budget": (("alpha", "direction"), budget),
            "cumulated_budget": (("alpha", "direction"), np.cumsum(budget, axis=1)),
            "top_signal_mass": ((), float(mass[:tenth].sum())),
            "bottom_signal_mass": ((), float(mass[-tenth:].sum())),
            "bottom_budget": ("alpha", bottom),
            "excess": ("alpha", bottom - mass[-tenth:].sum()),
            "condition_number": ("alpha", condition),
            "ledoit_wolf": ((), asked.ledoit_wolf),
        },
        {"alpha": alpha, "direction": np.arange(size)},
    )
    return answer.assign_attrs(_facts(spectrum), n_ood=rows.shape[0], n_tenth=tenth)


def sweep_shrinkage(
    fit: ArrayLike | FitStatistics,
    id_test: ArrayLike,
    ood_test: ArrayLike,
    *,
    alphas: ArrayLike = ALPHAS,
    covariance: Covariance = "one-class",
    fit_labels: ArrayLike | None = None,
    standardize: bool = True,
    singular: Singular = "refuse",
) -> xr.Dataset:
    """Return the AUROC of the Mahalanobis detector at every alpha.

    Parameters
    ----------
    fit, alphas, covariance, fit_labels, standardize, singular
        As for `whitening_spectrum`.
    id_test, ood_test : array-like of numbers, shapes (n, D) and (m, D)

    Returns
    -------
    xarray.Dataset
        Coordinate ``alpha`` (A).

        ``auroc``, ``low``, ``high`` : float (alpha)
            With its 95 % interval; larger scores are more in-distribution, and
            nothing is flipped.
        ``sign_agnostic`` : float (alpha)
            max(auroc, 1 - auroc).
        ``ledoit_wolf``, ``auroc_ledoit_wolf``, ``low_ledoit_wolf``, ``high_ledoit_wolf`` : float
            The alpha of Ledoit and Wolf and what the detector reaches there;
            nan where the statistics were stored without fourth moments.
        ``best_alpha``, ``best_auroc`` : float
            The stop with the largest AUROC, of several the smallest. **Not
            available without labels**: finding it takes the answer.

        Attributes as for `whitening_spectrum`, and ``n_id``.

    Raises
    ------
    InputError
        As `leakviz.Mahalanobis`, and if alphas are no increasing decimals in [0, 1].

    Notes
    -----
    arXiv 2607.19393, section 8 and Table 9.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fit, id_test = rng.normal(size=(200, 4)), rng.normal(size=(100, 4))
    >>> sweep = sweep_shrinkage(fit, id_test, rng.normal(size=(100, 4)) + 2, alphas=[0, 0.1, 1])
    >>> sweep.auroc.round(2).values.tolist()
    [0.99, 0.99, 1.0]
    >>> sweep.best_alpha.attrs["long_name"]
    'best alpha (not available without labels)'
    """
    asked = _prepare(fit, alphas, covariance, fit_labels, standardize, singular)
    own, other = _test_rows(asked, id_test, ood_test)
    return _sweep_answer(asked, asked.score(own), asked.score(other))


def _sweep_answer(asked: "_Asked", own: Array, other: Array) -> xr.Dataset:
    spectrum, alpha, known, chosen = asked.spectrum, asked.alpha, asked.known, asked.ledoit_wolf
    auroc, low, high = areas(own, other)
    columns = {}
    at_chosen = [np.nan] * 3
    for place, (name, values) in enumerate((("auroc", auroc), ("low", low), ("high", high))):
        column = np.full(alpha.size, np.nan)
        column[known] = values[: int(known.sum())]
        columns[name] = column
        if not np.isnan(chosen):
            at_chosen[place] = float(values[-1])
    best = int(np.nanargmax(columns["auroc"]))
    answer = xr.Dataset(
        {
            **{name: ("alpha", column) for name, column in columns.items()},
            "sign_agnostic": ("alpha", np.maximum(columns["auroc"], 1 - columns["auroc"])),
            "ledoit_wolf": ((), chosen, {"long_name": "Ledoit-Wolf alpha"}),
            "auroc_ledoit_wolf": ((), at_chosen[0]),
            "low_ledoit_wolf": ((), at_chosen[1]),
            "high_ledoit_wolf": ((), at_chosen[2]),
            "best_alpha": (
                (),
                float(alpha[best]),
                {"long_name": "best alpha (not available without labels)"},
            ),
            "best_auroc": ((), float(columns["auroc"][best])),
        },
        {"alpha": alpha},
    )
    return answer.assign_attrs(_facts(spectrum), n_id=own.shape[1], n_ood=other.shape[1])


def score_histograms(
    fit: ArrayLike | FitStatistics,
    id_test: ArrayLike,
    ood_test: ArrayLike,
    *,
    alphas: ArrayLike = ALPHAS,
    covariance: Covariance = "one-class",
    fit_labels: ArrayLike | None = None,
    standardize: bool = True,
    singular: Singular = "refuse",
    n_bins: int = 60,
) -> xr.Dataset:
    """Count ID and OOD rows by squared Mahalanobis distance, on the same bins at every alpha.

    Parameters
    ----------
    fit, id_test, ood_test, alphas, covariance, fit_labels, standardize, singular
        As for `sweep_shrinkage`.
    n_bins : int, default 60

    Returns
    -------
    xarray.Dataset
        Coordinates ``alpha`` (A) and ``bin`` (n_bins).

        ``left``, ``right`` : float (bin)
            Edges: squared distances, evenly spaced on a log scale from the
            smallest to the largest at any alpha. A distance of 0 is counted in
            the first bin.
        ``id_count``, ``ood_count`` : int (alpha, bin)
            Every row is in one bin. 0 throughout where `singular` is "nan" and
            alpha is 0.

        Attributes as for `sweep_shrinkage`.

    Raises
    ------
    InputError
        As `sweep_shrinkage`, and if there is no bin.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fit, id_test = rng.normal(size=(200, 4)), rng.normal(size=(100, 4))
    >>> counts = score_histograms(fit, id_test, rng.normal(size=(50, 4)) + 2, alphas=[0, 1])
    >>> counts.id_count.sum("bin").values.tolist(), counts.ood_count.sum("bin").values.tolist()
    ([100, 100], [50, 50])
    """
    asked = _prepare(fit, alphas, covariance, fit_labels, standardize, singular)
    own, other = _test_rows(asked, id_test, ood_test)
    return _counts_answer(asked, asked.score(own), asked.score(other), n_bins)


def _counts_answer(asked: "_Asked", own: Array, other: Array, n_bins: int) -> xr.Dataset:
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise InputError(f"n_bins must be a whole number from 1 up, got {n_bins!r}")
    spectrum, alpha, known = asked.spectrum, asked.alpha, asked.known
    distances = [-scores[: int(known.sum())] for scores in (own, other)]
    edges = _log_edges(np.concatenate([d.ravel() for d in distances]), n_bins)
    counts = []
    for distance in distances:
        table = np.zeros((alpha.size, n_bins), dtype=np.int64)
        places = np.clip(np.searchsorted(edges, distance, side="right") - 1, 0, n_bins - 1)
        shifted = places + n_bins * np.arange(places.shape[0])[:, np.newaxis]
        table[known] = np.bincount(shifted.ravel(), minlength=n_bins * places.shape[0]).reshape(-1, n_bins)
        counts.append(table)
    answer = xr.Dataset(
        {
            "left": ("bin", edges[:-1]),
            "right": ("bin", edges[1:]),
            "id_count": (("alpha", "bin"), counts[0]),
            "ood_count": (("alpha", "bin"), counts[1]),
        },
        {"alpha": alpha, "bin": np.arange(n_bins)},
    )
    return answer.assign_attrs(_facts(spectrum), n_id=own.shape[1], n_ood=other.shape[1])


def whitening_answers(
    fit: ArrayLike | FitStatistics,
    id_test: ArrayLike,
    ood_test: ArrayLike,
    *,
    alphas: ArrayLike = ALPHAS,
    covariance: Covariance = "one-class",
    fit_labels: ArrayLike | None = None,
    standardize: bool = True,
    singular: Singular = "refuse",
    n_bins: int = 60,
) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    """Return spectrum, sweep and histograms at once: for one decomposition, each row scored once.

    Parameters
    ----------
    fit, id_test, ood_test, alphas, covariance, fit_labels, standardize, singular, n_bins
        As for `score_histograms`.

    Returns
    -------
    spectrum, sweep, counts : xarray.Dataset
        As `whitening_spectrum`, `sweep_shrinkage` and `score_histograms` give them.

    Raises
    ------
    InputError
        As these.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fit, id_test = rng.normal(size=(200, 4)), rng.normal(size=(100, 4))
    >>> ood = rng.normal(size=(50, 4)) + 2
    >>> spectrum, sweep, counts = whitening_answers(fit, id_test, ood, alphas=[0, 1])
    >>> spectrum.identical(whitening_spectrum(fit, ood, alphas=[0, 1]))
    True
    >>> sweep.identical(sweep_shrinkage(fit, id_test, ood, alphas=[0, 1]))
    True
    >>> counts.identical(score_histograms(fit, id_test, ood, alphas=[0, 1]))
    True
    """
    asked = _prepare(fit, alphas, covariance, fit_labels, standardize, singular)
    own, other = _test_rows(asked, id_test, ood_test)
    scores = asked.score(own), asked.score(other)
    return (
        _spectrum_answer(asked, other),
        _sweep_answer(asked, *scores),
        _counts_answer(asked, *scores, n_bins),
    )


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of one fit set, and its decomposition."""

    statistics: FitStatistics
    spectrum: Spectrum
    alpha: Array
    known: NDArray[np.bool_]  # at which alphas there is an answer
    ledoit_wolf: float

    def score(self, rows: NDArray[Any]) -> Array:
        """Score rows at every alpha that has an answer, and then at Ledoit and Wolf's, if that is known."""
        alphas = self.alpha[self.known]
        return self.spectrum.score(
            rows, alphas if np.isnan(self.ledoit_wolf) else np.append(alphas, self.ledoit_wolf)
        )


def _prepare(
    fit: ArrayLike | FitStatistics,
    alphas: ArrayLike,
    covariance: Covariance,
    fit_labels: ArrayLike | None,
    standardize: bool,
    singular: str,
) -> _Asked:
    statistics = as_statistics(fit, labels=fit_labels if covariance == "tied" else None)
    alpha = as_alphas(alphas)
    spectrum = decompose(statistics, covariance=covariance, standardize=standardize)
    known = _answerable(spectrum, alpha, singular)
    return _Asked(statistics, spectrum, alpha, known, _ledoit_wolf(statistics, covariance, standardize))


def _test_rows(asked: _Asked, id_test: ArrayLike, ood_test: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    width = asked.statistics.n_features
    return as_features(id_test, "id_test", width=width), as_features(ood_test, "ood_test", width=width)


def areas(id_score: Array, ood_score: Array) -> tuple[Array, Array, Array]:
    """Return the AUROCs of several detectors on the same rows, with their 95 % intervals.

    Parameters
    ----------
    id_score, ood_score : numpy.ndarray, shapes (A, n) and (A, m)
        Larger where a row looks more in-distribution.

    Returns
    -------
    auroc, low, high : numpy.ndarray of float64, shape (A,)

    Examples
    --------
    >>> areas(np.array([[3.0, 2.0]]), np.array([[1.0, 2.5]]))[0].tolist()
    [0.75]
    """
    is_ood = np.repeat([False, True], [id_score.shape[1], ood_score.shape[1]])
    found = [
        auroc_with_interval(-np.concatenate([a, b]), is_ood) for a, b in zip(id_score, ood_score, strict=True)
    ]
    value, low, high = np.array(found).reshape(-1, 3).T
    return value, low, high


def as_alphas(alphas: ArrayLike) -> Array:
    """Return stops of alpha as strictly increasing numbers in [0, 1].

    Parameters
    ----------
    alphas : array-like of floats or decimal strings, shape (A,)

    Returns
    -------
    numpy.ndarray of float64, shape (A,)

    Raises
    ------
    InputError
        If they are not, or there is none.

    Examples
    --------
    >>> as_alphas([0, "0.1", 1]).tolist()
    [0.0, 0.1, 1.0]
    """
    given = np.asarray(alphas, dtype=object)
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"alphas must be a list of at least one number, got the shape {given.shape}")
    values = np.array([float(as_fraction_of_one(a, name=f"alphas[{i}]")) for i, a in enumerate(given)])
    falls = np.flatnonzero(np.diff(values) <= 0)
    if falls.size:
        raise InputError(
            f"alphas must be strictly increasing; {falls.size} of {values.size} are not, "
            f"first: alphas[{falls[0] + 1}] = {values[falls[0] + 1]:g}; sort them and drop repeats"
        )
    return values


def _answerable(spectrum: Spectrum, alpha: Array, singular: str) -> NDArray[np.bool_]:
    """Return at which alphas there is an answer, or refuse alpha = 0 where there is none."""
    if singular not in ("refuse", "nan"):
        raise InputError(f"singular must be 'refuse' or 'nan', got {singular!r}")
    if singular == "refuse" or spectrum.degrees >= spectrum.eigenvalues.size:
        return np.ones(alpha.size, dtype=bool)
    known = alpha > 0
    if not known.any():
        spectrum.refuse_singular()
    return known


def _ledoit_wolf(statistics: FitStatistics, covariance: Covariance, standardize: bool) -> float:
    if not statistics.knows_ledoit_wolf(covariance=covariance, standardize=standardize):
        return float("nan")
    return statistics.ledoit_wolf(covariance=covariance, standardize=standardize)


def _facts(spectrum: Spectrum) -> dict[str, object]:
    return {
        "covariance": spectrum.covariance,
        "n_fit": spectrum.count,
        "n_constant": spectrum.n_constant,
        "rank": spectrum.rank,
    }


def _log_edges(distances: Array, n_bins: int) -> Array:
    positive = distances[distances > 0]
    if positive.size == 0:
        return np.linspace(0, 1, n_bins + 1)
    low, high = float(positive.min()), float(positive.max())
    if low == high:
        low, high = low / 2, high * 2
    edges = np.exp(np.linspace(np.log(low), np.log(high), n_bins + 1))
    edges[0], edges[-1] = low, high  # exp(log(x)) may miss x by a little
    return edges
