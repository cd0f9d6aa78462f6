"""Draw the teaching world: Gaussian classes in a plane, and one more that is called OOD."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakviz.decimals import as_decimal
from leakviz.errors import InputError

FRAME = ((-12.8, 12.8), (-9.6, 9.6))
"""The part of the plane that is shown: left and right, bottom and top."""

HEIGHT = 100.0
"""A third feature, the same for every row. The core's kNN compares directions (it is made for features
whose length says little); seen from so far away, a direction is a place in the plane. Detectors that
standardise or decompose a covariance leave a constant feature out."""

MOST_CLASSES = 5

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class World:
    """In-distribution classes in a plane, one class called OOD, and whether it is in the fit set.

    Made by `simulate_leak`. ``dataclasses.replace(world, in_fit=True)`` flips the switch and draws
    nothing anew.

    Attributes
    ----------
    centres : numpy.ndarray of float64, shape (C, 2)
        Of the in-distribution classes, in units of the plane.
    ood_centre : numpy.ndarray of float64, shape (2,)
    covariance : numpy.ndarray of float64, shape (2, 2)
        That all classes share in the plane; its determinant is 1.
    id_fit, ood_fit : numpy.ndarray of float64, shapes (n, 2 + d) and (m, 2 + d)
        Fit rows of the in-distribution classes, and of the OOD class, which
        are in the fit set where `in_fit` is set. Columns 0 and 1 are the plane.
    id_fit_labels, id_test_labels : numpy.ndarray of int64, shapes (n,) and (a,)
        0 to C - 1.
    id_test, ood_test : numpy.ndarray of float64, shapes (a, 2 + d) and (b, 2 + d)
    in_fit : bool
        The switch.
    classes, spread, distance, angle, anisotropy, orientation, rows, ood_rows, test_rows, noise_dimensions, seed
        As `simulate_leak` took them; spread is None where the centres were given.

    Examples
    --------
    >>> world = simulate_leak(classes=2, rows=100, in_fit=True)
    >>> world.fit.shape, np.unique(world.fit_labels).tolist()
    ((300, 2), [0, 1, 2])
    """

    classes: int
    spread: float | None
    distance: float
    angle: float
    anisotropy: float
    orientation: float
    rows: int
    ood_rows: int
    test_rows: int
    in_fit: bool
    noise_dimensions: int
    seed: int
    centres: Array = field(repr=False)
    ood_centre: Array = field(repr=False)
    covariance: Array = field(repr=False)
    id_fit: Array = field(repr=False)
    id_fit_labels: NDArray[np.int64] = field(repr=False)
    ood_fit: Array = field(repr=False)
    id_test: Array = field(repr=False)
    id_test_labels: NDArray[np.int64] = field(repr=False)
    ood_test: Array = field(repr=False)

    @property
    def fit(self) -> Array:
        """What a detector is fitted on, shape (n, 2 + d) or (n + m, 2 + d)."""
        return self.fit_with(self.ood_rows if self.in_fit else 0)

    @property
    def fit_labels(self) -> NDArray[np.int64]:
        """The class of each fit row; the OOD class has the number C."""
        return self.labels_with(self.ood_rows if self.in_fit else 0)

    def fit_with(self, ood_rows: int) -> Array:
        """Return the fit set with the first so many rows of the OOD class in it.

        Examples
        --------
        >>> simulate_leak(classes=2, rows=100).fit_with(10).shape
        (210, 2)
        """
        return np.concatenate([self.id_fit, self.ood_fit[:ood_rows]])

    def labels_with(self, ood_rows: int) -> NDArray[np.int64]:
        """Return the classes of `fit_with`, shape (n + ood_rows,).

        Examples
        --------
        >>> simulate_leak(classes=2, rows=100).labels_with(10)[-11:].tolist()
        [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
        """
        return np.concatenate([self.id_fit_labels, np.full(ood_rows, self.classes)])

    def parameters(self) -> dict[str, Any]:
        """Return what `simulate_leak` makes the same world of.

        Examples
        --------
        >>> world = simulate_leak(angle=30)
        >>> bool((simulate_leak(**world.parameters()).ood_test == world.ood_test).all())
        True
        """
        where: dict[str, Any] = (
            {"centres": self.centres.tolist()}
            if self.spread is None
            else {"classes": self.classes, "spread": self.spread}
        )
        names = ("distance", "angle", "anisotropy", "orientation", "rows", "ood_rows", "test_rows")
        return where | {name: getattr(self, name) for name in (*names, "in_fit", "noise_dimensions", "seed")}

    def locate(self, x: float, y: float) -> tuple[float, float]:
        """Return the distance and the angle that put the OOD class at a point of the plane.

        Parameters
        ----------
        x, y : float
            In units of the plane.

        Returns
        -------
        distance : float
        angle : float
            Degrees, from 0 to below 360.

        Examples
        --------
        >>> world = simulate_leak(distance=5, angle=30, anisotropy=4, orientation=20)
        >>> [round(value, 9) for value in world.locate(*world.ood_centre)]
        [5.0, 30.0]
        """
        whitened = np.linalg.solve(
            _axes(self.anisotropy, self.orientation), np.array([x, y]) - self.centres.mean(axis=0)
        )
        return float(np.hypot(*whitened)), float(np.rad2deg(np.arctan2(whitened[1], whitened[0])) % 360)


def simulate_leak(
    *,
    classes: int | None = None,
    centres: ArrayLike | None = None,
    spread: object = 4,
    distance: object = "6.25",
    angle: object = 90,
    anisotropy: object = 1,
    orientation: object = 0,
    rows: int = 300,
    ood_rows: int | None = None,
    test_rows: int = 600,
    in_fit: bool = False,
    noise_dimensions: int = 0,
    seed: int = 0,
) -> World:
    """Draw Gaussian classes in a plane, and one more that is called OOD.

    Parameters
    ----------
    classes : int, optional
        In-distribution classes, 1 to 5; by default 3, or as many as `centres`.
    centres : array-like of numbers, shape (C, 2), optional
        Where they are, in units of the plane; by default on a circle, the first
        at the bottom.
    spread : decimal, default 4
        Radius of that circle, 0 to 8. Not used with `centres`.
    distance : decimal, default 6.25
        From the mean of the centres to the OOD class, 0 to 12.
    angle : decimal, default 90
        Where on the circle of that radius the OOD class is: degrees from the
        long axis, counter-clockwise, -360 to 360.
    anisotropy : decimal, default 1
        Long axis over short axis of the covariance that all classes share, in
        standard deviations, 1 to 10; their product is 1.
    orientation : decimal, default 0
        Of the long axis: degrees, counter-clockwise, -360 to 360.
    rows : int, default 300
        Fit rows of each in-distribution class, 5 to 20,000.
    ood_rows : int, optional
        Fit rows of the OOD class, 1 to 20,000; by default `rows`.
    test_rows : int, default 600
        ID test rows in all, spread evenly over the classes, and as many OOD
        test rows; 20 to 50,000.
    in_fit : bool, default False
        Whether the OOD class is in the fit set: the leak.
    noise_dimensions : int, default 0
        Further features, standard normal in every class, 0 to 100.
    seed : int, default 0
        Each group of rows has its own generator, so that another distance or
        number of rows moves the rows and does not draw them anew.

    Returns
    -------
    World

    Raises
    ------
    InputError
        If a parameter is out of range, or `classes` and `centres` differ.

    Notes
    -----
    `spread`, `distance` and `angle` are taken in the coordinates of the shared covariance (units:
    standard deviations), so that another `angle` walks the class around the ellipse at constant
    Mahalanobis distance: the orientations of arXiv 2607.19393, Proposition 2. What detectors see is
    `world_features`.

    Examples
    --------
    >>> world = simulate_leak(distance=5, angle=0, anisotropy=4)
    >>> bool(np.allclose(world.ood_centre, [10, 0])), world.covariance.round(9).tolist()
    (True, [[4.0, 0.0], [0.0, 0.25]])
    """
    given = None if centres is None else _read_centres(centres)
    if classes is None:
        n_classes = 3 if given is None else given.shape[0]
    else:
        n_classes = _whole(classes, "classes", 1, MOST_CLASSES)
    if given is not None and given.shape[0] != n_classes:
        raise InputError(
            f"classes is {n_classes} and centres has {given.shape[0]} rows; leave one of them out"
        )
    radius = _number(spread, "spread", 0, 8)
    far, turned = _number(distance, "distance", 0, 12), _number(angle, "angle", -360, 360)
    ratio = _number(anisotropy, "anisotropy", 1, 10)
    tilt = _number(orientation, "orientation", -360, 360)
    n_rows = _whole(rows, "rows", 5, 20_000)
    n_ood = n_rows if ood_rows is None else _whole(ood_rows, "ood_rows", 1, 20_000)
    n_test = _whole(test_rows, "test_rows", 20, 50_000)
    n_noise = _whole(noise_dimensions, "noise_dimensions", 0, 100)
    start = _whole(seed, "seed", 0, 2**63 - 1)
    if not isinstance(in_fit, (bool, np.bool_)):
        raise InputError(f"in_fit must be True or False, got {in_fit!r}")

    axes = _axes(ratio, tilt)
    if given is None:
        given = _on_circle(radius, -90 + 360 * np.arange(n_classes) / n_classes) @ axes.T
        own_spread = radius
    else:
        own_spread = None
    ood_centre = given.mean(axis=0) + axes @ _on_circle(far, np.array([turned]))[0]

    def group(number: int, size: int, centre: Array) -> Array:
        noise = np.random.default_rng([start, number]).normal(size=(size, 2 + n_noise))
        noise[:, :2] = noise[:, :2] @ axes.T + centre
        return noise

    sizes = [n_test // n_classes + (place < n_test % n_classes) for place in range(n_classes)]
    order = range(n_classes)
    return World(
        classes=n_classes,
        spread=own_spread,
        distance=far,
        angle=turned,
        anisotropy=ratio,
        orientation=tilt,
        rows=n_rows,
        ood_rows=n_ood,
        test_rows=n_test,
        in_fit=bool(in_fit),
        noise_dimensions=n_noise,
        seed=start,
        centres=given,
        ood_centre=ood_centre,
        covariance=axes @ axes.T,
        id_fit=np.concatenate([group(2 * c, n_rows, given[c]) for c in order]),
        id_fit_labels=np.repeat(np.arange(n_classes), n_rows),
        ood_fit=group(2 * MOST_CLASSES, n_ood, ood_centre),
        id_test=np.concatenate([group(2 * c + 1, sizes[c], given[c]) for c in order]),
        id_test_labels=np.repeat(np.arange(n_classes), sizes),
        ood_test=group(2 * MOST_CLASSES + 1, n_test, ood_centre),
    )


def world_features(rows: Array) -> Array:
    """Return rows of a world as a detector sees them: with one more feature, the same for all.

    Parameters
    ----------
    rows : numpy.ndarray, shape (n, 2 + d)

    Returns
    -------
    numpy.ndarray of float64, shape (n, 3 + d)

    Examples
    --------
    >>> world_features(np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0, 100.0]]
    """
    return np.column_stack([rows, np.full(rows.shape[0], HEIGHT)])


def _axes(ratio: float, tilt: float) -> Array:
    """Return the matrix that makes the shared covariance of a standard normal: the axes, in columns."""
    turn = np.deg2rad(tilt)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return rotation * np.array([ratio**0.5, ratio**-0.5])


def _on_circle(radius: float, degrees: Array) -> Array:
    turn = np.deg2rad(degrees)
    return radius * np.column_stack([np.cos(turn), np.sin(turn)])


def _read_centres(centres: ArrayLike) -> Array:
    try:
        given = np.array(centres, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("centres must be numbers, a row of two for each class") from error
    if given.ndim != 2 or given.shape[1] != 2 or not 1 <= given.shape[0] <= MOST_CLASSES:
        raise InputError(
            f"centres must have the shape (C, 2) with C from 1 to {MOST_CLASSES}, got {given.shape}"
        )
    bad = ~(np.abs(given) <= 100).all(axis=1)  # nan, too
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"centres must lie between -100 and 100; {int(bad.sum())} of {bad.size} rows do not, "
            f"first: row {row} has {given[row].tolist()}"
        )
    return given


def _number(value: object, name: str, low: float, high: float) -> float:
    number = float(as_decimal(value, name=name))
    if not low <= number <= high:
        raise InputError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")
    return number


def _whole(value: Any, name: str, least: int, most: int) -> int:
    good = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not good or not least <= value <= most:
        raise InputError(f"{name} must be a whole number from {least:,} to {most:,}, got {value!r}")
    return int(value)
