"""Level sets of a detector in the plane, as lines that a figure can draw."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leakviz.detectors import Spectrum
from leakviz.errors import InputError

Array = NDArray[np.float64]

N_STEPS = 120
"""Straight pieces that an ellipse is drawn with."""


def gaussian_level_sets(
    spectrum: Spectrum, alpha: float, levels: Sequence[float], *, beyond: Array | None = None
) -> Array:
    """Return where a Gaussian detector takes given scores, in the plane of the first two features.

    Parameters
    ----------
    spectrum : Spectrum
        Of two features or more, the first two of which vary.
    alpha : float
        Shrinkage, in [0, 1].
    levels : sequence of float, length L
        Scores, at most 0.
    beyond : numpy.ndarray of float64, shape (D - 2,), optional
        What the further features are held at; by default their mean in the fit set.

    Returns
    -------
    numpy.ndarray of float64, shape (L, C (N_STEPS + 2), 2)
        For each of the C centres an ellipse, closed, and a row of nan that
        lifts the pen. Points of one ellipse that lie inside another are nan, so
        that what is left is the outline of all of them. All nan where no point
        of the plane reaches the level.

    Notes
    -----
    With the weights w of the directions the score is -min over c of (u - c)' W (u - c); in the plane
    that is a quadratic form, whose ellipse is written down, not searched for.

    Examples
    --------
    >>> from leakviz.detectors import decompose, fit_statistics
    >>> spectrum = decompose(fit_statistics([[1.0, 0], [-1, 0], [0, 2], [0, -2]]), standardize=False)
    >>> outline = gaussian_level_sets(spectrum, 0, [-2.0])[0, :-1]
    >>> bool(np.allclose(2 * outline[:, 0] ** 2 + outline[:, 1] ** 2 / 2, 2)), outline[0].round(9).tolist()
    (True, [1.0, 0.0])
    """
    kept = np.flatnonzero(spectrum.varies)
    if kept.size < 2 or kept[0] != 0 or kept[1] != 1:
        raise InputError("spectrum needs a plane: the first two features must vary in the fit set")
    basis = spectrum.directions[:2] / spectrum.scale[:2, np.newaxis]  # (2, d): u = (point - location) basis
    weight = 1 / spectrum.shrunk([alpha])[0]
    centres = spectrum.centres
    if beyond is not None:
        centres = centres - spectrum.project(np.append(spectrum.location[:2], beyond)[np.newaxis])
    form = (basis * weight) @ basis.T
    pulled = (centres * weight) @ basis.T  # (C, 2)
    middles = np.linalg.solve(form, pulled.T).T
    # What is left of a centre's distance at the best point of the plane.
    floors = np.maximum((centres**2) @ weight - (pulled * middles).sum(axis=1), 0)

    turn = np.linspace(0, 2 * np.pi, N_STEPS + 1)
    values, vectors = np.linalg.eigh(form)
    circle = np.column_stack([np.cos(turn), np.sin(turn)]) @ (vectors / np.sqrt(values)) @ vectors.T
    answer = np.full((len(levels), middles.shape[0], N_STEPS + 2, 2), np.nan)
    for place, level in enumerate(levels):
        for centre, (middle, floor) in enumerate(zip(middles, floors, strict=True)):
            if -level <= floor:
                continue
            outline = middle + np.sqrt(-level - floor) * circle
            answer[place, centre, :-1] = outline
            if middles.shape[0] == 1:
                continue
            away = outline[:, np.newaxis] - middles
            distance = np.einsum("pci,ij,pcj->pc", away, form, away) + floors
            distance[:, centre] = np.inf
            hidden = distance.min(axis=1) < -level * (1 - 1e-9)
            answer[place, centre, :-1][hidden] = np.nan
    return answer.reshape(len(levels), -1, 2) + spectrum.location[:2]


def grid_level_set(x: Array, y: Array, values: Array, level: float) -> Array:
    """Return where values on a grid cross a level.

    Parameters
    ----------
    x, y : numpy.ndarray of float64, shapes (a,) and (b,)
        Coordinates of the grid, rising.
    values : numpy.ndarray of float64, shape (b, a)
    level : float

    Returns
    -------
    numpy.ndarray of float64, shape (n, 2)
        Lines, each followed by a row of nan that lifts the pen. Empty where
        nothing crosses.

    Notes
    -----
    Marching squares: linear between neighbours of the grid; where a cell could be cut in two ways,
    the mean of its corners decides. Lorensen and Cline, Computer Graphics 21 (1987), 163-169.

    Examples
    --------
    >>> ramp = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> grid_level_set(np.array([0.0, 1.0]), np.array([0.0, 1.0]), ramp, 0.25).tolist()
    [[0.25, 0.0], [0.25, 1.0], [nan, nan]]
    """
    above = values > level
    n_rows, n_columns = values.shape
    # Number the edges of the grid: first those that run along x, then those along y.
    along_x = np.arange(n_rows * (n_columns - 1)).reshape(n_rows, n_columns - 1)
    along_y = along_x.size + np.arange((n_rows - 1) * n_columns).reshape(n_rows - 1, n_columns)
    bottom, top, left, right = along_x[:-1], along_x[1:], along_y[:, :-1], along_y[:, 1:]

    corners = above[:-1, :-1] + 2 * above[:-1, 1:] + 4 * above[1:, 1:] + 8 * above[1:, :-1]
    middle = (values[:-1, :-1] + values[:-1, 1:] + values[1:, 1:] + values[1:, :-1]) / 4 > level
    # Where two opposite corners are above and the middle is, too, they are joined: as in the other saddle.
    case = np.where((corners == 5) & middle, 10, np.where((corners == 10) & middle, 5, corners))
    pieces = []
    for cases, ends in (
        ((1, 14, 5), (left, bottom)),
        ((2, 13, 10), (bottom, right)),
        ((4, 11, 5), (right, top)),
        ((8, 7, 10), (top, left)),
        ((3, 12), (left, right)),
        ((6, 9), (bottom, top)),
    ):
        cells = np.isin(case, cases)
        pieces.append(np.column_stack([ends[0][cells], ends[1][cells]]))
    joined = np.concatenate(pieces)
    if not joined.size:
        return np.empty((0, 2))

    edges = np.unique(joined)
    on_x = edges < along_x.size
    row_x, column_x = np.divmod(edges[on_x], n_columns - 1)
    row_y, column_y = np.divmod(edges[~on_x] - along_x.size, n_columns)
    row, column = np.concatenate([row_x, row_y]), np.concatenate([column_x, column_y])
    step_x = np.repeat([1, 0], [row_x.size, row_y.size])
    start, stop = values[row, column], values[row + 1 - step_x, column + step_x]
    part = (level - start) / (stop - start)
    points = np.column_stack(
        [
            x[column] + part * (x[column + step_x] - x[column]),
            y[row] + part * (y[row + 1 - step_x] - y[row]),
        ]
    )
    return np.concatenate(
        [np.append(points[chain], [[np.nan, np.nan]], axis=0) for chain in _chains(edges, joined)]
    )


def _chains(edges: NDArray[np.int64], joined: NDArray[np.int64]) -> list[list[int]]:
    """Join pieces that share an end to lines; each end has one other piece or none."""
    ends = np.searchsorted(edges, joined).tolist()
    next_to: list[list[int]] = [[] for _ in range(edges.size)]
    for a, b in ends:
        next_to[a].append(b)
        next_to[b].append(a)
    seen = [False] * edges.size
    chains = []
    # Open lines first, from their free ends; what is left are closed ones.
    for first in sorted(range(edges.size), key=lambda at: len(next_to[at])):
        if seen[first]:
            continue
        chain, at = [first], first
        seen[first] = True
        while step := [other for other in next_to[at] if not seen[other]]:
            at = step[0]
            seen[at] = True
            chain.append(at)
        if len(next_to[first]) == 2:
            chain.append(first)
        chains.append(chain)
    return chains
