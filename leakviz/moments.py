"""What a Gaussian needs to know of a fit set: count, mean, scatter, and Ledoit and Wolf's alpha.

Statistics of single classes add up to those of any union of them, so that a fit set with
one class left out costs milliseconds and no second look at the rows. All sums are in
float64 and about a mean, never about zero: a shift of the features changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakviz.errors import InputError
from leakviz.matrices import Progress, as_features, as_labels, blocks

Covariance = Literal["one-class", "tied"]
COVARIANCES: tuple[Covariance, ...] = ("one-class", "tied")

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassStatistics:
    """Sufficient statistics of every class of a set of features.

    Attributes
    ----------
    labels : numpy.ndarray, shape (C,)
        The classes, sorted.
    count : numpy.ndarray of int64, shape (C,)
        Rows per class.
    mean : numpy.ndarray of float64, shape (C, D)
    scatter : numpy.ndarray of float64, shape (C, D, D)
        Sum over the rows of z z', with z = x - mean of the class.
    square_moment, cube_moment : numpy.ndarray of float64, shape (C, D, D), or None
        Sums of (z z)(z z)' and of (z z) z', entry by entry: what Ledoit and
        Wolf's alpha of any union of classes needs. Where they are None, that
        alpha has to be known from elsewhere.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 5.0], [5.0, 7.0]])
    >>> classes = class_statistics(rows, ["a", "a", "b", "b"])
    >>> classes.mean.tolist()
    [[1.0, 0.0], [5.0, 6.0]]
    >>> classes.without("b").mean.tolist()
    [1.0, 0.0]
    """

    labels: NDArray[Any]
    count: NDArray[np.int64]
    mean: Array = field(repr=False)
    scatter: Array = field(repr=False)
    square_moment: Array | None = field(default=None, repr=False)
    cube_moment: Array | None = field(default=None, repr=False)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.mean.shape[1]

    def union(self, classes: ArrayLike | None = None) -> FitStatistics:
        """Return the statistics of some classes together.

        Parameters
        ----------
        classes : label or array-like of labels, optional
            By default all.

        Returns
        -------
        FitStatistics

        Raises
        ------
        InputError
            If a class is unknown or named twice, or none is named.

        Examples
        --------
        >>> rows = np.array([[0.0], [2.0], [10.0]])
        >>> class_statistics(rows, [1, 1, 2]).union().mean.tolist()
        [4.0]
        """
        chosen = np.arange(self.labels.size) if classes is None else self._places(classes)
        return _union(self, np.sort(chosen))

    def without(self, classes: ArrayLike) -> FitStatistics:
        """Return the statistics of all classes but some.

        Parameters
        ----------
        classes : label or array-like of labels
            What to leave out.

        Returns
        -------
        FitStatistics

        Raises
        ------
        InputError
            If a class is unknown or named twice, or none is left.

        Examples
        --------
        >>> rows = np.array([[0.0], [2.0], [10.0]])
        >>> class_statistics(rows, [1, 1, 2]).without(2).count
        2
        """
        left = np.setdiff1d(np.arange(self.labels.size), self._places(classes))
        if left.size == 0:
            raise InputError("classes names every class, so that nothing is left to fit; leave fewer out")
        return _union(self, left)

    def _places(self, classes: ArrayLike) -> NDArray[np.int64]:
        wanted = np.atleast_1d(np.asarray(classes))
        places = []
        for label in wanted.tolist():
            found = np.flatnonzero(self.labels == label)
            if found.size == 0:
                known = ", ".join(map(repr, self.labels.tolist()[:10]))
                raise InputError(f"classes names {label!r}, which is no class of the fit set; it has {known}")
            places.append(int(found[0]))
        if not places:
            raise InputError("classes is empty; name at least one class")
        if len(set(places)) < len(places):
            raise InputError("classes names a class twice; name each once")
        return np.array(places, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class FitStatistics:
    """Sufficient statistics of one fit set.

    Attributes
    ----------
    count : int
        Rows.
    mean : numpy.ndarray of float64, shape (D,)
    scatter : numpy.ndarray of float64, shape (D, D)
        Sum of z z', with z = x - mean.
    square_moment : numpy.ndarray of float64, shape (D, D), or None
        Sum of (z z)(z z)', entry by entry.
    labels : numpy.ndarray, shape (C,), or None
        The classes, sorted; None where the rows came without labels.
    class_mean : numpy.ndarray of float64, shape (C, D), or None
    within_scatter, within_square_moment : numpy.ndarray of float64, shape (D, D), or None
        As above, with z = x - mean of its class.
    classes : ClassStatistics or None
        What it is a union of.
    stored_alpha : dict of str to float, or None
        Ledoit and Wolf's alpha of standardised features, by covariance, where it
        was stored instead of the fourth moments (`dataclasses.replace` adds it).

    Examples
    --------
    >>> statistics = fit_statistics(np.array([[0.0, 1.0], [2.0, 1.5], [4.0, 5.0]]))
    >>> statistics.count, statistics.mean.tolist()
    (3, [2.0, 2.5])
    >>> statistics.scatter.tolist()
    [[8.0, 8.0], [8.0, 9.5]]
    """

    count: int
    mean: Array = field(repr=False)
    scatter: Array = field(repr=False)
    square_moment: Array | None = field(default=None, repr=False)
    labels: NDArray[Any] | None = None
    class_mean: Array | None = field(default=None, repr=False)
    within_scatter: Array | None = field(default=None, repr=False)
    within_square_moment: Array | None = field(default=None, repr=False)
    classes: ClassStatistics | None = field(default=None, repr=False)
    stored_alpha: dict[str, float] | None = field(default=None, repr=False)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.mean.size

    @property
    def varies(self) -> NDArray[np.bool_]:
        """Which features are not constant in the fit set, shape (D,)."""
        return np.asarray(np.diagonal(self.scatter) > 0)

    def ledoit_wolf(self, *, covariance: Covariance = "one-class", standardize: bool = True) -> float:
        """Return the shrinkage that Ledoit and Wolf's estimator chooses, from the statistics alone.

        Parameters
        ----------
        covariance : {"one-class", "tied"}
            About the one mean, or about the means of the classes.
        standardize : bool, default True
            Divide each feature by its standard deviation in the fit set first.

        Returns
        -------
        float
            alpha in [0, 1]. Constant features are left out.

        Raises
        ------
        InputError
            If all features are constant, "tied" is asked for without labels, or
            the statistics were stored without fourth moments.

        Notes
        -----
        Ledoit and Wolf, Journal of Multivariate Analysis 88 (2004), 365-411. The
        same number as ``sklearn.covariance.ledoit_wolf_shrinkage``.

        Examples
        --------
        >>> rows = np.array([[0.0, 1.0], [2.0, 1.5], [4.0, 5.0], [5.0, 1.0]])
        >>> round(fit_statistics(rows).ledoit_wolf(standardize=False), 6)
        1.0
        """
        scatter = self.scatter_for(covariance)
        if standardize and covariance in (self.stored_alpha or {}):
            return float((self.stored_alpha or {})[covariance])
        square = self.square_moment if covariance == "one-class" else self.within_square_moment
        if square is None:
            raise InputError(
                "the statistics hold no fourth moments, so Ledoit and Wolf's alpha cannot be computed from "
                "them; give shrinkage as a number"
            )
        kept = self.varies
        _refuse_all_constant(kept)
        weight = self.count / np.diagonal(self.scatter)[kept] if standardize else np.ones(int(kept.sum()))
        covariances = scatter[np.ix_(kept, kept)] / self.count * np.sqrt(np.outer(weight, weight))
        fourth = float(weight @ square[np.ix_(kept, kept)] @ weight) / self.count  # the mean of ||z||^4
        size = weight.size
        square_sum, trace = float(np.sum(covariances**2)), float(np.trace(covariances))
        spread = (square_sum - trace**2 / size) / size  # squared distance to the target
        noise = min(max((fourth - square_sum) / (size * self.count), 0.0), spread)
        return noise / spread if noise > 0 else 0.0

    def knows_ledoit_wolf(self, *, covariance: Covariance = "one-class", standardize: bool = True) -> bool:
        """Tell whether `ledoit_wolf` has what it needs.

        Examples
        --------
        >>> class_statistics([[0.0], [1.0]], [1, 1], fourth_moments=False).union().knows_ledoit_wolf()
        False
        """
        square = self.square_moment if covariance == "one-class" else self.within_square_moment
        return square is not None or (standardize and covariance in (self.stored_alpha or {}))

    def scatter_for(self, covariance: Covariance) -> Array:
        """Return the scatter of one of the two covariances, shape (D, D), or refuse "tied" without labels.

        Examples
        --------
        >>> fit_statistics(np.eye(2), labels=[1, 2]).scatter_for("tied").tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        if covariance not in COVARIANCES:
            raise InputError(f"covariance must be 'one-class' or 'tied', got {covariance!r}")
        if covariance == "one-class":
            return self.scatter
        if self.within_scatter is None:
            raise InputError(
                "covariance 'tied' needs the class of every fit row; give the labels of the fit set"
            )
        return self.within_scatter

    def degrees(self, covariance: Covariance) -> int:
        """Return the largest rank that so many rows can give the scatter.

        Examples
        --------
        >>> fit_statistics(np.eye(3)).degrees("one-class")
        2
        """
        means = 1 if covariance == "one-class" or self.labels is None else self.labels.size
        return self.count - means


def class_statistics(
    X: ArrayLike, labels: ArrayLike, *, fourth_moments: bool = True, progress: Progress | None = None
) -> ClassStatistics:
    """Summarise every class of a set of features, once, for all fit sets made of them.

    Parameters
    ----------
    X : array-like of numbers, shape (n, D)
        Features.
    labels : array-like of whole numbers or text, shape (n,)
        The class of each row.
    fourth_moments : bool, default True
        Whether to keep what Ledoit and Wolf's alpha needs: two more arrays of
        the size of the scatter.
    progress : callable, optional
        Called as ``progress(done_rows, all_rows)``.

    Returns
    -------
    ClassStatistics
        Takes 24 C D^2 bytes (8 C D^2 without fourth moments).

    Raises
    ------
    InputError
        If X is no table of finite numbers or there is not one label per row.

    Examples
    --------
    >>> classes = class_statistics([[0.0], [2.0], [10.0]], ["cat", "cat", "dog"])
    >>> classes.count.tolist(), classes.scatter.ravel().tolist()
    ([2, 1], [2.0, 0.0])
    """
    rows = as_features(X, "X")
    marks = as_labels(labels, "labels", rows=rows.shape[0], of="X")
    names, places = np.unique(marks, return_inverse=True)
    size = rows.shape[1]
    mean = np.empty((names.size, size))
    scatter = np.empty((names.size, size, size))
    square, cube = (np.empty_like(scatter) if fourth_moments else None for _ in range(2))
    done = 0
    for place in range(names.size):
        members = rows[places == place]
        mean[place] = _mean(members)

        def report(part: int, before: int = done) -> None:
            if progress is not None:
                progress(before + part, rows.shape[0])

        moments = _sums(members, mean[place], fourth_moments, report=report)
        done += members.shape[0]
        scatter[place] = moments[0]
        if square is not None and cube is not None:
            square[place], cube[place] = moments[1:]
    return ClassStatistics(names, np.bincount(places), mean, scatter, square, cube)


def fit_statistics(X: ArrayLike, *, labels: ArrayLike | None = None) -> FitStatistics:
    """Summarise a fit set from its rows.

    Parameters
    ----------
    X : array-like of numbers, shape (n, D)
        Features.
    labels : array-like of whole numbers or text, shape (n,), optional
        The class of each row; needed for a tied covariance.

    Returns
    -------
    FitStatistics
        Takes 16 D^2 bytes, twice that with labels, however many classes there are.

    Raises
    ------
    InputError
        If X is no table of finite numbers or there is not one label per row.

    Examples
    --------
    >>> statistics = fit_statistics([[0.0], [2.0], [10.0]], labels=["cat", "cat", "dog"])
    >>> statistics.scatter.item(), statistics.within_scatter.item()
    (56.0, 2.0)
    """
    rows = as_features(X, "X")
    mean = _mean(rows)
    scatter, square = _sums(rows, mean, fourth=True, cubes=False)
    if labels is None:
        return FitStatistics(rows.shape[0], mean, scatter, square)
    marks = as_labels(labels, "labels", rows=rows.shape[0], of="X")
    names, places = np.unique(marks, return_inverse=True)
    class_mean = np.stack([_mean(rows[places == place]) for place in range(names.size)])
    within, within_square = _sums(rows, class_mean, fourth=True, cubes=False, places=places)
    return FitStatistics(rows.shape[0], mean, scatter, square, names, class_mean, within, within_square)


def as_statistics(
    fit: ArrayLike | FitStatistics, *, labels: ArrayLike | None = None, name: str = "fit"
) -> FitStatistics:
    """Return the statistics of a fit set that is given as rows or as statistics.

    Parameters
    ----------
    fit : array-like of numbers, shape (n, D), or FitStatistics
    labels : array-like, shape (n,), optional
        Only with rows; statistics carry their own.
    name : str
        What error messages call it.

    Returns
    -------
    FitStatistics

    Raises
    ------
    InputError
        If labels are given with statistics, or as `fit_statistics`.

    Examples
    --------
    >>> as_statistics([[0.0], [2.0]]).count
    2
    """
    if isinstance(fit, FitStatistics):
        if labels is not None:
            raise InputError(f"labels are given beside statistics; {name} carries its own: leave labels out")
        return fit
    return fit_statistics(as_features(fit, name), labels=labels)


def _refuse_all_constant(varies: NDArray[np.bool_]) -> None:
    if not varies.any():
        raise InputError(
            f"all {varies.size:,} features are constant in the fit set, so nothing can be told apart; "
            "check that the right layer was saved and that the fit set has more than one row"
        )


def _mean(rows: NDArray[Any]) -> Array:
    # About the first row: a constant column then has exactly its own value as mean, and scatter 0.
    origin = rows[0].astype(np.float64)
    total = np.zeros(rows.shape[1])
    for _, block in blocks(rows):
        total += (block - origin).sum(axis=0)
    return origin + total / rows.shape[0]


def _sums(
    rows: NDArray[Any],
    mean: Array,
    fourth: bool,
    *,
    cubes: bool = True,
    places: NDArray[np.int64] | None = None,
    report: Callable[[int], object] = lambda done: None,
) -> list[Array]:
    """Return the scatter about `mean` (with `places`: about each row's own), then the fourth moments."""
    size = rows.shape[1]
    sums = [np.zeros((size, size)) for _ in range(1 + fourth * (1 + cubes))]
    for part, block in blocks(rows):
        centred = block - (mean if places is None else mean[places[part]])
        sums[0] += centred.T @ centred
        if fourth:
            squares = centred**2
            sums[1] += squares.T @ squares
            if cubes:
                sums[2] += squares.T @ centred
        report(part.stop)
    return sums


def _union(classes: ClassStatistics, chosen: NDArray[np.int64]) -> FitStatistics:
    count = classes.count[chosen].astype(np.float64)
    class_mean = classes.mean[chosen].astype(np.float64)
    total = float(count.sum())
    # About the first class, so that what is constant over all of them stays exactly constant.
    mean = class_mean[0] + count @ (class_mean - class_mean[0]) / total
    shift = class_mean - mean  # (C, D)
    within = classes.scatter[chosen].sum(axis=0, dtype=np.float64)
    scatter = within + (shift.T * count) @ shift
    square = within_square = None
    if classes.square_moment is not None and classes.cube_moment is not None:
        within_square = classes.square_moment[chosen].sum(axis=0)
        square = within_square + _moved(classes, chosen, shift, count)
    return FitStatistics(
        int(total),
        mean,
        scatter,
        square,
        classes.labels[chosen],
        class_mean,
        within,
        within_square,
        classes,
    )


def _moved(classes: ClassStatistics, chosen: NDArray[np.int64], shift: Array, count: Array) -> Array:
    """Return what the square moments gain when every class is seen from the common mean.

    Expand the sum of (z + s)^2 (z + s)'^2 over the rows, with z about the mean of
    the class, whose sum is 0, and s its shift.
    """
    assert classes.cube_moment is not None
    size = shift.shape[1]
    gained = np.zeros((size, size))
    for place, s, n in zip(chosen, shift, count, strict=True):
        cross = 2 * classes.cube_moment[place] * s + np.outer(np.diagonal(classes.scatter[place]), s**2)
        gained += cross + cross.T + np.outer(s, s) * (4 * classes.scatter[place] + n * np.outer(s, s))
    return gained
