"""The detectors that an audit reads, and the probe that it compares them with.

Every score is larger where a row looks more in-distribution (arXiv 2607.19393, equation 1,
and scikit-learn's ``score_samples``). The AUROC of a detector is therefore that of its
negated score against "is OOD", and is never flipped: below 0.5, the OOD rows look more
in-distribution than the ID test rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from leakviz.decimals import as_fraction_of_one
from leakviz.errors import InputError
from leakviz.matrices import Progress, as_features, as_labels, blocks
from leakviz.moments import (
    Array,
    ClassStatistics,
    Covariance,
    FitStatistics,
    class_statistics,
    fit_statistics,
)
from leakviz.statistics import auroc, auroc_interval

__all__ = [
    "ClassStatistics",
    "FitStatistics",
    "Mahalanobis",
    "OracleLDA",
    "Spectrum",
    "class_distances",
    "class_statistics",
    "decompose",
    "detector_auroc",
    "fit_statistics",
    "knn_score",
    "kth_distance",
    "oracle_lda",
    "probe_split",
]

NULL = 1e-6
"""At alpha = 0, directions whose eigenvalue is below this share of the largest are left out."""

_CELLS = 1 << 23  # numbers of a temporary table: 64 MB

# LAPACK's small steps gain nothing from a second thread, and where another program wants the core, the
# threads wait for each other: an eigendecomposition of 128 features then takes 170 ms instead of 2.
_BLAS = ThreadpoolController().select(user_api="blas")


def detector_auroc(id_score: ArrayLike, ood_score: ArrayLike) -> float:
    """Return the AUROC of a detector: how well it ranks ID rows above OOD rows.

    Parameters
    ----------
    id_score, ood_score : array-like of numbers, shapes (n,) and (m,)
        Scores, larger where a row looks more in-distribution.

    Returns
    -------
    float
        In [0, 1], never flipped.

    Examples
    --------
    >>> detector_auroc([-1.0, -2.0], [-3.0, -1.5])
    0.75
    """
    return auroc(*_negated(id_score, ood_score))


def _negated(id_score: ArrayLike, ood_score: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    own, other = np.asarray(id_score, dtype=np.float64), np.asarray(ood_score, dtype=np.float64)
    return -np.concatenate([own, other]), np.repeat([False, True], [own.size, other.size])


# The Gaussian


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigendecomposition of a fit set's covariance: one that serves every alpha.

    Attributes
    ----------
    covariance : {"one-class", "tied"}
    count : int
        Fit rows.
    degrees : int
        The largest rank that so many rows can give: rows less fitted means.
    location, scale : numpy.ndarray of float64, shape (D,)
        What features are centred at and divided by.
    varies : numpy.ndarray of bool, shape (D,)
        The features that are not constant in the fit set: d of them. The
        others are left out.
    eigenvalues : numpy.ndarray of float64, shape (d,)
        Of S, the maximum-likelihood covariance, falling, never negative.
    directions : numpy.ndarray of float64, shape (d, d)
        Unit eigenvectors, in columns.
    centres : numpy.ndarray of float64, shape (C, d)
        What distances are measured from, in the coordinates of the directions:
        one row of zeros, or the class means.

    Examples
    --------
    >>> spectrum = decompose(fit_statistics([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]]))
    >>> spectrum.eigenvalues.round(9).tolist()
    [1.0, 1.0]
    """

    covariance: Covariance
    count: int
    degrees: int
    location: Array = field(repr=False)
    scale: Array = field(repr=False)
    varies: NDArray[np.bool_] = field(repr=False)
    eigenvalues: Array = field(repr=False)
    directions: Array = field(repr=False)
    centres: Array = field(repr=False)

    @property
    def n_constant(self) -> int:
        """How many features are constant in the fit set, and left out."""
        return int(np.count_nonzero(~self.varies))

    @property
    def rank(self) -> int:
        """How many eigenvalues are at least `NULL` of the largest."""
        return int(np.count_nonzero(self.eigenvalues >= NULL * self.eigenvalues[0]))

    def shrunk(self, alphas: ArrayLike) -> Array:
        """Return the eigenvalues of (1 - alpha) S + alpha tr(S)/D I.

        Parameters
        ----------
        alphas : array-like of floats in [0, 1], shape (A,)

        Returns
        -------
        numpy.ndarray of float64, shape (A, d)
            Falling; infinite (so that the direction weighs nothing) where alpha
            is 0 and the eigenvalue is below `NULL` of the largest.

        Raises
        ------
        InputError
            If an alpha is 0 and there are too few rows for an inverse.

        Examples
        --------
        >>> spectrum = decompose(fit_statistics([[0.0], [4.0]]), standardize=False)
        >>> spectrum.shrunk([0, 0.5]).tolist()
        [[4.0], [4.0]]
        """
        alpha = np.atleast_1d(np.asarray(alphas, dtype=np.float64))[:, np.newaxis]
        if (alpha == 0).any():
            self.refuse_singular()
        values = (1 - alpha) * self.eigenvalues + alpha * self.eigenvalues.mean()
        null = self.eigenvalues < NULL * self.eigenvalues[0]
        return np.where((alpha == 0) & null, np.inf, values)

    def refuse_singular(self) -> None:
        """Refuse to invert S where there are fewer rows than that takes."""
        needed = self.eigenvalues.size
        if self.degrees < needed:
            raise InputError(
                f"shrinkage 0 needs a covariance of full rank {needed:,}, but {self.count:,} fit rows give "
                f"rank {min(self.rank, self.degrees):,}; use shrinkage='ledoit-wolf', a shrinkage above 0, "
                "or more fit rows"
            )

    def project(self, rows: NDArray[Any]) -> Array:
        """Return rows in the coordinates of the directions.

        Parameters
        ----------
        rows : numpy.ndarray, shape (n, D)

        Returns
        -------
        numpy.ndarray of float64, shape (n, d)

        Examples
        --------
        >>> spectrum = decompose(fit_statistics([[0.0], [2.0]]))
        >>> abs(spectrum.project(np.array([[3.0]]))).tolist()
        [[2.0]]
        """
        kept = self.varies
        return ((rows - self.location)[:, kept] / self.scale[kept]) @ self.directions

    def score(self, rows: NDArray[Any], alphas: ArrayLike) -> Array:
        """Return minus the squared Mahalanobis distance, at every alpha.

        Parameters
        ----------
        rows : numpy.ndarray, shape (n, D)
        alphas : array-like of floats in [0, 1], shape (A,)

        Returns
        -------
        numpy.ndarray of float64, shape (A, n)
            Larger where a row looks more in-distribution, at most 0; with
            several centres the distance to the nearest.

        Raises
        ------
        InputError
            As `shrunk`.

        Examples
        --------
        >>> decompose(fit_statistics([[0.0], [2.0]])).score(np.array([[3.0]]), [0, 1]).tolist()
        [[-4.0], [-4.0]]
        """
        weight = 1 / self.shrunk(alphas)  # (A, d)
        n_alphas, n_centres = weight.shape[0], self.centres.shape[0]
        step = max(1, _CELLS // max(n_alphas * n_centres, self.directions.shape[0], rows.shape[1]))
        answer = np.empty((n_alphas, rows.shape[0]))
        if n_centres == 1 and not self.centres.any():
            for part, block in blocks(rows, rows=step):
                answer[:, part] = -(weight @ (self.project(block) ** 2).T)
            return answer
        # |u - c|^2 under each weight is w.u^2 - 2 (w c).u + w.c^2: three matrix products for all alphas at once.
        pulled = (weight[:, np.newaxis] * self.centres).reshape(-1, weight.shape[1])  # (A C, d)
        constant = weight @ (self.centres**2).T  # (A, C)
        for part, block in blocks(rows, rows=step):
            projected = self.project(block)
            cross = (pulled @ projected.T).reshape(n_alphas, n_centres, -1)
            nearest = (constant[:, :, np.newaxis] - 2 * cross).min(axis=1)
            answer[:, part] = -np.maximum(weight @ (projected**2).T + nearest, 0)
        return answer


def decompose(
    statistics: FitStatistics, *, covariance: Covariance = "one-class", standardize: bool = True
) -> Spectrum:
    """Return the eigendecomposition of a fit set's covariance.

    Parameters
    ----------
    statistics : FitStatistics
    covariance : {"one-class", "tied"}, default "one-class"
        One Gaussian around the one mean, or class means with the pooled
        covariance within classes.
    standardize : bool, default True
        Divide each feature by its standard deviation in the fit set first.

    Returns
    -------
    Spectrum

    Raises
    ------
    InputError
        If "tied" is asked for without labels, all features are constant in the
        fit set, or none varies within a class.

    Notes
    -----
    S is scatter / n, as in scikit-learn's LedoitWolf. One-class: arXiv
    2607.19393, equation 1; tied: Lee et al., NeurIPS 2018.

    Examples
    --------
    >>> statistics = fit_statistics([[0.0, 7.0], [2.0, 7.0]])
    >>> spectrum = decompose(statistics)
    >>> spectrum.n_constant, spectrum.eigenvalues.tolist()
    (1, [1.0])
    """
    scatter = statistics.scatter_for(covariance)
    varies = statistics.varies
    if not varies.any():
        raise InputError(
            f"all {varies.size:,} features are constant in the fit set, so nothing can be told apart; "
            "check that the right layer was saved and that the fit set has more than one row"
        )
    scale = np.ones(varies.size)
    if standardize:
        scale[varies] = np.sqrt(np.diagonal(statistics.scatter)[varies] / statistics.count)
    used = scale[varies]
    covariances = scatter[np.ix_(varies, varies)] / statistics.count / np.outer(used, used)
    with _BLAS.limit(limits=1):
        values, vectors = eigh(covariances, driver="evd", check_finite=False)
    values, vectors = np.maximum(values[::-1], 0), np.ascontiguousarray(vectors[:, ::-1])
    if values[0] == 0:
        raise InputError(
            "no feature varies within a class of the fit set, so a tied covariance is 0; use 'one-class'"
        )
    if covariance == "tied":
        assert statistics.class_mean is not None
        centres = ((statistics.class_mean - statistics.mean)[:, varies] / used) @ vectors
    else:
        centres = np.zeros((1, values.size))
    return Spectrum(
        covariance,
        statistics.count,
        statistics.degrees(covariance),
        statistics.mean,
        scale,
        varies,
        values,
        vectors,
        centres,
    )


class Mahalanobis(BaseEstimator):
    """Mahalanobis detector: a Gaussian with shrunk covariance, fitted on in-distribution rows alone.

    Sigma = (1 - alpha) S + alpha tr(S)/D I, with S the maximum-likelihood
    covariance and D its size. The score is minus the squared distance from the
    mean, or from the nearest class mean.

    Parameters
    ----------
    shrinkage : "ledoit-wolf" or float in [0, 1], default "ledoit-wolf"
        alpha. At 0, directions whose eigenvalue is below 1e-6 of the largest are
        left out (a LayerNorm leaves one that is exactly null).
    covariance : {"one-class", "tied"}, default "one-class"
        One Gaussian around the one mean, or class means with the pooled
        covariance within classes.
    standardize : bool, default True
        Divide each feature by its standard deviation in the fit set first.

    Attributes
    ----------
    shrinkage_ : float
        The alpha in use.
    spectrum_ : Spectrum
        Eigenvalues, directions, location and scale.
    statistics_ : FitStatistics
        What it was fitted on.
    n_constant_ : int
        Features that are constant in the fit set, and left out.
    n_null_ : int
        Directions left out because alpha is 0 and they are numerically null.
    condition_number_ : float
        Largest over smallest eigenvalue of Sigma.
    n_features_in_ : int

    Notes
    -----
    One-class: arXiv 2607.19393, equation 1. Tied: Lee et al., NeurIPS 2018.
    Neither a shift of the features nor a common factor changes the scores.

    Examples
    --------
    >>> rows = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
    >>> detector = Mahalanobis(shrinkage=0).fit(rows)
    >>> detector.score_samples([[1.0, 1.0], [1.0, 3.0]]).tolist()
    [-0.0, -4.0]
    """

    def __init__(
        self,
        *,
        shrinkage: float | Literal["ledoit-wolf"] = "ledoit-wolf",
        covariance: Covariance = "one-class",
        standardize: bool = True,
    ) -> None:
        self.shrinkage = shrinkage
        self.covariance = covariance
        self.standardize = standardize

    @classmethod
    def from_statistics(
        cls,
        statistics: FitStatistics,
        *,
        shrinkage: float | Literal["ledoit-wolf"] = "ledoit-wolf",
        covariance: Covariance = "one-class",
        standardize: bool = True,
    ) -> Mahalanobis:
        """Return a fitted detector without looking at rows.

        Parameters
        ----------
        statistics : FitStatistics
            As `fit_statistics` or `ClassStatistics.union` return it.
        shrinkage, covariance, standardize
            As for the class.

        Returns
        -------
        Mahalanobis

        Raises
        ------
        InputError
            As `fit`; and if "ledoit-wolf" is asked for where the statistics
            were stored without fourth moments.

        Examples
        --------
        >>> classes = class_statistics([[0.0], [2.0], [9.0], [11.0]], ["cat", "cat", "dog", "dog"])
        >>> cats = Mahalanobis.from_statistics(classes.without("dog"), shrinkage=0)
        >>> cats.score_samples([[1.0], [10.0]]).tolist()
        [-0.0, -81.0]
        """
        detector = cls(shrinkage=shrinkage, covariance=covariance, standardize=standardize)
        return detector._settle(statistics)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Mahalanobis:
        """Fit on in-distribution rows.

        Parameters
        ----------
        X : array-like of numbers, shape (n, D)
        y : array-like of whole numbers or text, shape (n,), optional
            Classes; needed where the covariance is "tied", else not used.

        Returns
        -------
        Mahalanobis
            Itself.

        Raises
        ------
        InputError
            If X is no table of finite numbers, all features are constant, labels
            are missing where they are needed, the shrinkage is no number in
            [0, 1], or it is 0 and there are fewer rows than an inverse takes.
        """
        labels = y if self.covariance == "tied" else None
        return self._settle(fit_statistics(X, labels=labels))

    def without(self, classes: ArrayLike) -> Mahalanobis:
        """Return this detector fitted without some classes, from their statistics alone.

        Parameters
        ----------
        classes : label or array-like of labels

        Returns
        -------
        Mahalanobis
            A new one, with the same parameters.

        Raises
        ------
        InputError
            If it was not made from `ClassStatistics`, or a class is not in it.

        Examples
        --------
        >>> classes = class_statistics([[0.0], [2.0], [9.0], [11.0]], ["cat", "cat", "dog", "dog"])
        >>> both = Mahalanobis.from_statistics(classes.union(), shrinkage=0)
        >>> both.without("dog").score_samples([[1.0], [10.0]]).tolist()
        [-0.0, -81.0]
        """
        check_is_fitted(self)
        statistics = self.statistics_
        if statistics.classes is None or statistics.labels is None:
            raise InputError(
                "a detector fitted on rows does not know its classes apart; make it with "
                "Mahalanobis.from_statistics(class_statistics(X, labels).union())"
            )
        wanted = np.atleast_1d(np.asarray(classes)).tolist()
        held = statistics.labels.tolist()
        absent = [label for label in wanted if label not in held]
        if absent:
            raise InputError(f"classes names {absent[0]!r}, which is not in this fit set; it has {held[:10]}")
        left = [label for label in held if label not in wanted]
        if not left:
            raise InputError("classes names every class, so that nothing is left to fit; leave fewer out")
        return Mahalanobis.from_statistics(statistics.classes.union(left), **self.get_params())

    def score_samples(self, X: ArrayLike) -> Array:
        """Return minus the squared distance of each row: larger is more in-distribution.

        Parameters
        ----------
        X : array-like of numbers, shape (n, D)

        Returns
        -------
        numpy.ndarray of float64, shape (n,)

        Raises
        ------
        InputError
            If X is no table of finite numbers or has another number of features.
        """
        check_is_fitted(self)
        return self.spectrum_.score(as_features(X, "X", width=self.n_features_in_), [self.shrinkage_])[0]

    def _settle(self, statistics: FitStatistics) -> Mahalanobis:
        self.spectrum_ = decompose(statistics, covariance=self.covariance, standardize=self.standardize)
        self.shrinkage_ = as_shrinkage(
            self.shrinkage, statistics, covariance=self.covariance, standardize=self.standardize
        )
        values = self.spectrum_.shrunk([self.shrinkage_])[0]
        used = values[np.isfinite(values)]
        self.statistics_ = statistics
        self.n_features_in_ = statistics.n_features
        self.n_constant_ = self.spectrum_.n_constant
        self.n_null_ = int(values.size - used.size)
        self.condition_number_ = float(used[0] / used[-1]) if used[-1] > 0 else np.inf
        return self


def as_shrinkage(
    shrinkage: object,
    statistics: FitStatistics,
    *,
    covariance: Covariance = "one-class",
    standardize: bool = True,
) -> float:
    """Return alpha as a number, or say that it is neither one in [0, 1] nor "ledoit-wolf".

    Examples
    --------
    >>> as_shrinkage("0.1", fit_statistics([[0.0], [1.0]]))
    0.1
    """
    if isinstance(shrinkage, str) and shrinkage == "ledoit-wolf":
        return statistics.ledoit_wolf(covariance=covariance, standardize=standardize)
    if not isinstance(shrinkage, (str, Real)):
        raise InputError(f"shrinkage must be 'ledoit-wolf' or a number from 0 to 1, got {shrinkage!r}")
    try:
        return float(as_fraction_of_one(shrinkage, name="shrinkage"))
    except InputError as error:
        raise InputError(f"{error}; or use 'ledoit-wolf'") from error


# Nearest neighbours


def knn_score(
    fit: ArrayLike, rows: ArrayLike | None, *, k: int = 50, progress: Progress | None = None
) -> Array:
    """Return minus the distance to the k-th nearest fit row, on L2-normalised features.

    Parameters
    ----------
    fit : array-like of numbers, shape (n, D)
        In-distribution rows.
    rows : array-like of numbers, shape (m, D), or None
        What to score. None scores the fit rows themselves, each without itself.
    k : int, default 50
        Which neighbour.
    progress : callable, optional
        Called as ``progress(done_rows, all_rows)``.

    Returns
    -------
    numpy.ndarray of float64, shape (m,)
        Larger where a row looks more in-distribution; between -2 and 0.

    Raises
    ------
    InputError
        If a table is none, a row is all zero (it has no direction), widths
        differ, or there are fewer than k neighbours.

    Notes
    -----
    Sun et al., ICML 2022; k = 50 as in arXiv 2607.19393, section 5.1. A common
    factor changes nothing, a shift does: directions are seen from zero.

    Examples
    --------
    >>> knn_score([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0]], k=1).tolist()
    [-0.0]
    """
    near = _nearest(as_features(fit, "fit"), rows, np.array([0]), None, k, progress)
    return -kth_distance(near, k=k)


def class_distances(
    fit: ArrayLike,
    labels: ArrayLike,
    rows: ArrayLike | None,
    *,
    k: int = 50,
    progress: Progress | None = None,
) -> Array:
    """Return the distances to the k nearest rows of every class of a fit set.

    `kth_distance` makes the k-th neighbour of any union of classes out of them:
    one pass over the rows serves every fit set.

    Parameters
    ----------
    fit : array-like of numbers, shape (n, D)
        In-distribution rows.
    labels : array-like of whole numbers or text, shape (n,)
        The class of each.
    rows, k, progress
        As for `knn_score`.

    Returns
    -------
    numpy.ndarray of float64, shape (C, m, k)
        Classes in sorted order; distances of L2-normalised rows, in no order;
        infinite where a class has fewer than k rows.

    Raises
    ------
    InputError
        As `knn_score`, and if there is not one label per row.

    Examples
    --------
    >>> near = class_distances([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"], [[2.0, 0.0]], k=1)
    >>> near.round(3).ravel().tolist()
    [0.0, 1.414]
    """
    features = as_features(fit, "fit")
    marks = as_labels(labels, "labels", rows=features.shape[0], of="fit")
    names, places = np.unique(marks, return_inverse=True)
    return _nearest(features, rows, np.arange(names.size), places, k, progress)


def kth_distance(distances: Array, *, members: ArrayLike | None = None, k: int = 50) -> Array:
    """Return the distance to the k-th neighbour among some classes.

    Parameters
    ----------
    distances : numpy.ndarray, shape (C, m, K)
        As `class_distances` returns them, with K >= k.
    members : array-like of whole numbers or bool, optional
        Which of the C classes form the fit set; by default all.
    k : int, default 50

    Returns
    -------
    numpy.ndarray of float64, shape (m,)

    Raises
    ------
    InputError
        If the classes have fewer than k rows together.

    Examples
    --------
    >>> near = class_distances([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"], [[2.0, 0.0]], k=1)
    >>> kth_distance(near, members=[1], k=1).round(3).tolist()
    [1.414]
    """
    chosen = distances if members is None else distances[np.asarray(members)]
    if not 1 <= k <= distances.shape[2]:
        raise InputError(f"k must lie between 1 and {distances.shape[2]}, the neighbours kept, got {k!r}")
    flat = np.moveaxis(chosen, 0, 1).reshape(distances.shape[1], -1)
    known = np.isfinite(flat).sum(axis=1).min(initial=flat.shape[1])
    if known < k:
        raise InputError(f"k is {k}, but these classes have only {known} neighbours to offer; lower k")
    return np.partition(flat, k - 1, axis=1)[:, k - 1]


def _nearest(
    fit: NDArray[Any],
    rows: ArrayLike | None,
    groups: NDArray[np.int64],
    places: NDArray[np.int64] | None,
    k: int,
    progress: Progress | None,
) -> Array:
    """Return the distances to the k nearest rows of each group, as (group, row, k)."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f"k must be a whole number from 1 up, got {k!r}")
    itself = rows is None
    queries = fit if rows is None else as_features(rows, "rows", width=fit.shape[1])
    if k > fit.shape[0] - itself:
        raise InputError(
            f"k is {k}, but the fit set has {fit.shape[0]:,} rows"
            f"{' and none is its own neighbour' if itself else ''}; lower k"
        )
    # Group by group, so that each is one block of columns.
    order = np.arange(fit.shape[0]) if places is None else np.argsort(places, kind="stable")
    refuse_zero_rows(fit, "fit")
    unit = _unit(fit if places is None else fit[order])
    sizes = [fit.shape[0]] if places is None else np.bincount(places, minlength=groups.size).tolist()
    stops = np.cumsum(sizes)
    column = np.empty(order.size, dtype=np.int64)
    column[order] = np.arange(order.size)

    refuse_zero_rows(queries, "rows")
    answer = np.full((groups.size, queries.shape[0], k), np.inf)
    for part, block in blocks(queries, rows=max(1, _CELLS // fit.shape[0])):
        # Minus the cosine: the nearest have the smallest, and a partition for the k smallest is the quick one.
        away = -_unit(block) @ unit.T
        if itself:
            away[np.arange(block.shape[0]), column[part]] = np.inf
        for group, (size, stop) in enumerate(zip(sizes, stops, strict=True)):
            own = away[:, stop - size : stop]
            nearest = own if size <= k else np.partition(own, k - 1, axis=1)[:, :k]
            answer[group, part, : nearest.shape[1]] = np.sqrt(np.maximum(2 + 2 * nearest, 0))
        if progress is not None:
            progress(part.stop, queries.shape[0])
    return answer


def refuse_zero_rows(rows: NDArray[Any], name: str) -> None:
    """Refuse rows that have no direction.

    Examples
    --------
    >>> refuse_zero_rows(np.array([[1.0, 0.0]]), "fit")
    """
    zero = np.flatnonzero(~rows.any(axis=1))
    if zero.size:
        raise InputError(
            f"{name} is all zero in {zero.size:,} of {rows.shape[0]:,} rows; first: row {int(zero[0])}; "
            "such a row has no direction to compare: drop these rows, or save another layer"
        )


def _unit(rows: NDArray[Any]) -> Array:
    """Return the rows at length 1."""
    scaled = rows.astype(np.float64)
    # First by the largest: squares of very large or very small features would leave the range of float64.
    scaled /= np.abs(scaled).max(axis=1, keepdims=True)
    scaled /= np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, np.newaxis]
    return scaled


# The probe


@dataclass(frozen=True, eq=False)
class OracleLDA:
    """What the supervised probe reads on rows that it was not fitted on.

    Attributes
    ----------
    auroc, low, high : float
        ID against OOD on the held-out half, with its 95 % interval.
    score : numpy.ndarray of float64, shape (h,)
        Of the held-out rows, larger where more in-distribution; ID rows first.
    is_ood : numpy.ndarray of bool, shape (h,)
    held_out : numpy.ndarray of bool, shape (n + m,)
        Which of the ID and then the OOD test rows were scored; the others fitted
        the probe.
    """

    auroc: float
    low: float
    high: float
    score: Array = field(repr=False)
    is_ood: NDArray[np.bool_] = field(repr=False)
    held_out: NDArray[np.bool_] = field(repr=False)


def oracle_lda(
    id_test: ArrayLike,
    ood_test: ArrayLike,
    *,
    seed: int = 0,
    id_test_labels: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
) -> OracleLDA:
    """Tell how well a supervised linear probe separates OOD rows from ID test rows.

    Half of the rows fit a shrinkage LDA, the other half is scored: in-sample, LDA
    reads 1 from noise where there are fewer rows than features.

    Parameters
    ----------
    id_test, ood_test : array-like of numbers, shapes (n, D) and (m, D)
        At least 4 rows each.
    seed : int, default 0
        Of the split (`probe_split`).
    id_test_labels : array-like of whole numbers or text, shape (n,), optional
        Classes of the ID test rows, each of which is halved.
    held_out : array-like of bool, shape (n + m,), optional
        A split made elsewhere: True for the rows to score, ID rows first. The
        seed is then not used.

    Returns
    -------
    OracleLDA

    Raises
    ------
    InputError
        If a table is none, widths differ, a half has fewer than two rows of
        either kind, or all features are constant.

    Notes
    -----
    The diagnostic OracleLDA of arXiv 2607.19393, sections 3 and 5.1.
    scikit-learn's ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")``
    on features standardised with the fitting half, so that neither a factor nor
    a shift changes the answer.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> oracle = oracle_lda(rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) + [3, 0, 0])
    >>> round(oracle.auroc, 2)
    0.98
    """
    own = as_features(id_test, "id_test")
    other = as_features(ood_test, "ood_test", width=own.shape[1])
    is_ood = np.repeat([False, True], [own.shape[0], other.shape[0]])
    if held_out is None:
        marks = (
            np.zeros(own.shape[0], dtype=np.int64)
            if id_test_labels is None
            else np.unique(
                as_labels(id_test_labels, "id_test_labels", rows=own.shape[0], of="id_test"),
                return_inverse=True,
            )[1]
        )
        scored = probe_split(np.concatenate([marks, np.full(other.shape[0], marks.max() + 1)]), seed=seed)
    else:
        scored = np.asarray(held_out)
        if scored.dtype != bool or scored.shape != is_ood.shape:
            raise InputError(
                f"held_out must be bool with the shape {is_ood.shape}, got {scored.dtype} with {scored.shape}"
            )
    for name, kind in (("id_test", ~is_ood), ("ood_test", is_ood)):
        sizes = [int(np.count_nonzero(kind & half)) for half in (~scored, scored)]
        if min(sizes) < 2:
            raise InputError(
                f"{name} has {sizes[0]} rows to fit the probe and {sizes[1]} to score; it needs 2 of each, "
                "so give at least 4 rows"
            )
    rows = np.concatenate([own, other]).astype(np.float64)
    fitting = rows[~scored]
    centre = fitting[0] + (fitting - fitting[0]).mean(axis=0)
    spread = np.sqrt(((fitting - centre) ** 2).mean(axis=0))
    kept = spread > 0
    if not kept.any():
        raise InputError(
            f"all {kept.size:,} features are constant in the rows that fit the probe; "
            "check that the right layer was saved"
        )
    rows = (rows - centre)[:, kept] / spread[kept]
    probe = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    with _BLAS.limit(limits=1):
        probe.fit(rows[~scored], is_ood[~scored])
    score = -probe.decision_function(rows[scored])
    truth = is_ood[scored]
    low, high = auroc_interval(-score, truth)
    return OracleLDA(auroc(-score, truth), low, high, score, truth, scored)


def probe_split(labels: ArrayLike, *, seed: int) -> NDArray[np.bool_]:
    """Split rows in two halves, class by class.

    Parameters
    ----------
    labels : array-like of whole numbers or text, shape (n,)
        Each class is halved; of an odd number, the larger part fits the probe.
    seed : int
        For ``numpy.random.default_rng``.

    Returns
    -------
    numpy.ndarray of bool, shape (n,)
        True for the half that is scored.

    Raises
    ------
    InputError
        If labels are missing, or the seed is no whole number from 0 up.

    Examples
    --------
    >>> halves = probe_split([1, 1, 1, 1, 2, 2], seed=0)
    >>> int(halves[:4].sum()), int(halves[4:].sum())
    (2, 1)
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number from 0 up, got {seed!r}")
    given = np.asarray(labels)
    marks = as_labels(given, "labels", rows=given.shape[0] if given.ndim else 0, of="the split")
    rng = np.random.default_rng(seed)
    scored = np.zeros(marks.size, dtype=bool)
    for label in np.unique(marks):
        members = np.flatnonzero(marks == label)
        scored[rng.permutation(members)[: members.size // 2]] = True
    return scored


def as_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Return seeds as different whole numbers, at least one.

    Examples
    --------
    >>> as_seeds([0, 1, 2])
    (0, 1, 2)
    """
    given = tuple(seeds)
    if not given:
        raise InputError("seeds is empty; give at least one")
    for seed in given:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise InputError(f"seeds must be whole numbers from 0 up, got {seed!r}")
    if len(set(given)) < len(given):
        raise InputError("seeds has one twice; give different ones")
    return tuple(int(seed) for seed in given)
