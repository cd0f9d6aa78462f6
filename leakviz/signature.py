"""The perturbation signature of a transformer: how its embedding answers to masked attention heads."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakviz.errors import InputError
from leakviz.matrices import as_features, as_labels


def perturbation_signature(clean: ArrayLike, masked: ArrayLike, centroids: ArrayLike) -> NDArray[np.float64]:
    """Return the perturbation-response signature of each row.

    With phi the embedding, hat its L2 normalisation and M_k the masks, the columns
    are, in the order of `signature_blocks`:

    - displacement d_k = |hat phi(x; M_k) - hat phi(x)|^2, K columns;
    - norm ratio r_k = |phi(x; M_k)| / |phi(x)|, K columns;
    - centroid distance g_0, g_1, ..., g_K: from hat phi, clean and then under each
      mask, to the nearest of the normalised centroids, K + 1 columns;
    - flip rate: the share of masks under which another centroid is the nearest.

    Parameters
    ----------
    clean : array-like of numbers, shape (n, m)
        Embeddings of the unmasked pass.
    masked : array-like of numbers, shape (K, n, m)
        Embeddings under each mask; K = 25 gives the paper's 77 columns.
    centroids : array-like of numbers, shape (C, m)
        One per ID class, such as `class_centroids` returns. Whether an excluded
        class keeps its centroid changes the result: say which.

    Returns
    -------
    numpy.ndarray of float64, shape (n, 3 K + 2)

    Raises
    ------
    InputError
        If shapes do not fit together, a number is missing or infinite, or an
        embedding or centroid is all zero.

    Notes
    -----
    arXiv 2607.19393, section 3. The paper leaves open whether the distances are
    taken on normalised embeddings; here they are, as its displacements.

    Examples
    --------
    >>> clean = [[2.0, 0.0]]
    >>> masked = [[[0.0, 1.0]]]
    >>> perturbation_signature(clean, masked, [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [[2.0, 0.5, 0.0, 0.0, 1.0]]
    """
    plain = as_features(clean, "clean")
    stack = np.asarray(masked)
    if stack.ndim != 3 or stack.shape[0] == 0 or stack.shape[1:] != plain.shape:
        raise InputError(
            f"masked must have the shape (masks, {plain.shape[0]}, {plain.shape[1]}), got {stack.shape}"
        )
    targets, _ = _normalised(as_features(centroids, "centroids", width=plain.shape[1]), "centroids")
    unit, length = _normalised(plain, "clean")
    distance, nearest = _nearest(unit, targets)

    displacement, ratio, distances = [], [], [distance]
    flips = np.zeros(plain.shape[0])
    for place, embedding in enumerate(stack):
        name = f"masked[{place}]"
        moved, moved_length = _normalised(as_features(embedding, name), name)
        displacement.append(((moved - unit) ** 2).sum(axis=1))
        ratio.append(moved_length / length)
        distance, other = _nearest(moved, targets)
        distances.append(distance)
        flips += other != nearest
    return np.column_stack([*displacement, *ratio, *distances, flips / stack.shape[0]])


def signature_blocks(n_masks: int) -> dict[str, slice]:
    """Return which columns of a signature belong to which block.

    Parameters
    ----------
    n_masks : int
        K, from 1 up.

    Returns
    -------
    dict of str to slice
        ``displacement``, ``norm ratio``, ``centroid distance``, ``flip rate``.

    Raises
    ------
    InputError
        If there is no mask.

    Examples
    --------
    >>> {name: (part.start, part.stop) for name, part in signature_blocks(25).items()}
    {'displacement': (0, 25), 'norm ratio': (25, 50), 'centroid distance': (50, 76), 'flip rate': (76, 77)}
    """
    if n_masks < 1:
        raise InputError(f"n_masks must be at least 1, got {n_masks!r}")
    return {
        "displacement": slice(0, n_masks),
        "norm ratio": slice(n_masks, 2 * n_masks),
        "centroid distance": slice(2 * n_masks, 3 * n_masks + 1),
        "flip rate": slice(3 * n_masks + 1, 3 * n_masks + 2),
    }


def class_centroids(clean: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Return the mean of the L2-normalised embeddings of each class.

    Parameters
    ----------
    clean : array-like of numbers, shape (n, m)
        Embeddings of the unmasked pass, ID training rows only.
    labels : array-like of whole numbers or text, shape (n,)

    Returns
    -------
    numpy.ndarray of float64, shape (C, m)
        Classes in sorted order.

    Raises
    ------
    InputError
        If a row is all zero or there is not one label per row.

    Examples
    --------
    >>> class_centroids([[2.0, 0.0], [0.0, 3.0]], ["dog", "cat"]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    rows = as_features(clean, "clean")
    marks = as_labels(labels, "labels", rows=rows.shape[0], of="clean")
    unit, _ = _normalised(rows, "clean")
    return np.stack([unit[marks == label].mean(axis=0) for label in np.unique(marks)])


def ahss(signature: ArrayLike) -> NDArray[np.float64]:
    """Return the attention-head sensitivity score of each row: minus the mean displacement.

    Parameters
    ----------
    signature : array-like of numbers, shape (n, 3 K + 2)
        As `perturbation_signature` returns it.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        Larger where the base method calls a row more in-distribution.

    Raises
    ------
    InputError
        If the number of columns is not 3 K + 2.

    Notes
    -----
    AHSS of Constantinou et al., Scientific Reports 16 (2026), 2449, as arXiv
    2607.19393, section 3, gives it.

    Examples
    --------
    >>> ahss([[2.0, 0.5, 0.0, 0.0, 1.0]]).tolist()
    [-2.0]
    """
    rows = as_features(signature, "signature")
    n_masks, rest = divmod(rows.shape[1] - 2, 3)
    if rest or n_masks < 1:
        raise InputError(f"signature has {rows.shape[1]} columns, but a signature of K masks has 3 K + 2")
    return -rows[:, signature_blocks(n_masks)["displacement"]].mean(axis=1, dtype=np.float64)


def _normalised(rows: NDArray[Any], name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rows at length 1, and their lengths."""
    values = rows.astype(np.float64)
    length = np.linalg.norm(values, axis=1)
    zero = np.flatnonzero(length == 0)
    if zero.size:
        raise InputError(
            f"{name} is all zero in {zero.size:,} of {length.size:,} rows; first: row {int(zero[0])}; "
            "such an embedding has no direction: drop these rows, or mask fewer heads"
        )
    return values / length[:, np.newaxis], length


def _nearest(
    unit: NDArray[np.float64], targets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distance to the nearest target, and which it is."""
    squared = np.maximum(2 - 2 * unit @ targets.T, 0)
    nearest = squared.argmin(axis=1)
    return np.sqrt(squared[np.arange(nearest.size), nearest]), nearest
