"""The neighbourhood index: how far the designated OOD rows are mixed into the ID test rows."""

import numpy as np
from numpy.typing import ArrayLike

from leakviz.errors import InputError
from leakviz.matrices import as_features, blocks

_CELLS = 1 << 23  # distances held at a time: 64 MB


def neighbourhood_leakage(id_test: ArrayLike, ood_test: ArrayLike, *, k: int = 50) -> float:
    """Return the neighbourhood class-leakage index of a designated OOD set.

    The share of ID rows among the k nearest neighbours of an OOD row, neighbours
    being sought among all test rows, ID and OOD, but the row itself; averaged
    over the OOD rows. It measures overlap: it never looks at a fit set, so a
    leaked class and the same class excluded get the same value.

    Parameters
    ----------
    id_test, ood_test : array-like of numbers, shapes (n, D) and (m, D)
        Features.
    k : int, default 50
        Neighbours per row; below n + m.

    Returns
    -------
    float
        In [0, 1]. Of rows that are equally far away as the k-th, each counts
        by the same fraction, so that the order of the rows does not matter.

    Raises
    ------
    InputError
        If a table is none, widths differ, or there are no k neighbours.

    Notes
    -----
    Ascarate et al., arXiv 2606.02601, under the binary labelling of arXiv
    2607.19393, Appendix G. Euclidean distances: neither a shift nor a common
    factor changes them.

    Examples
    --------
    >>> neighbourhood_leakage([[0.0], [1.0]], [[5.0], [5.1], [0.5]], k=1)
    0.3333333333333333
    """
    own = as_features(id_test, "id_test")
    other = as_features(ood_test, "ood_test", width=own.shape[1])
    total = own.shape[0] + other.shape[0]
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k < total:
        raise InputError(
            f"k must be a whole number from 1 to {total - 1}, the other test rows that there are, got {k!r}"
        )
    rows = np.concatenate([other, own]).astype(np.float64)  # OOD first: row i is column i
    rows -= rows.mean(axis=0)
    largest = np.abs(rows).max()
    rows /= largest if largest > 0 else 1.0
    norms = np.einsum("ij,ij->i", rows, rows)
    noise = 1e-12 * float(norms.max())  # what rounding can do to a squared distance
    is_id = np.arange(total) >= other.shape[0]

    shares = []
    for part, block in blocks(rows[: other.shape[0]], rows=max(1, _CELLS // total)):
        distance = norms[part, np.newaxis] - 2 * block @ rows.T + norms
        distance[np.arange(block.shape[0]), np.arange(part.start, part.stop)] = np.inf
        reach = np.partition(distance, k - 1, axis=1)[:, k - 1 : k]
        nearer, tied = distance < reach - noise, np.abs(distance - reach) <= noise
        left = k - nearer.sum(axis=1)
        tied_share = (tied & is_id).sum(axis=1) / tied.sum(axis=1)
        shares.append(((nearer & is_id).sum(axis=1) + left * tied_share) / k)
    return float(np.concatenate(shares).mean())
