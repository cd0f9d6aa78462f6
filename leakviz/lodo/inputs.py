"""Check features, labels, sources and groups before anything is fitted."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from leakviz.errors import InputError

MOST_SOURCES = 2_000
"""Beyond this the table of pairs of sources alone takes hundreds of megabytes."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labels and sources of rows, checked.

    Attributes
    ----------
    y : numpy.ndarray of int64, shape (n,)
        0 or 1.
    code : numpy.ndarray of int32, shape (n,)
        Each row's place in `names`.
    names : tuple of str
        The sources, in the order in which they appear.
    """

    y: NDArray[np.int64]
    code: NDArray[np.int32]
    names: tuple[str, ...]

    @property
    def n(self) -> int:
        """Rows."""
        return self.y.size

    def counts(self) -> NDArray[np.int64]:
        """Return rows per source and label, shape (K, 2)."""
        cells = np.bincount(2 * self.code + self.y, minlength=2 * len(self.names))
        return cells.reshape(-1, 2)

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Which sources have both labels, shape (K,)."""
        counts = self.counts()
        return (counts[:, 0] > 0) & (counts[:, 1] > 0)


def check_labelled(y: ArrayLike, source: ArrayLike) -> Labelled:
    """Return labels and sources as codes, or say what is wrong.

    Parameters
    ----------
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Labels; both must occur.
    source : array-like of str or int, shape (n,)
        Where each row is from; at least two different values.

    Returns
    -------
    Labelled

    Raises
    ------
    InputError
        Names the argument, the first bad row (counted from 0) and how many there are.

    Examples
    --------
    >>> check_labelled([0, 1, 1], ["north", "south", "north"]).code.tolist()
    [0, 1, 0]
    """
    labels = _labels(y)
    code, names = _codes(source, "source", labels.size)
    if len(names) < 2:
        raise InputError(
            f"source has one value only, {names[0]!r}; leaving it out leaves nothing. Give two or more"
        )
    if len(names) > MOST_SOURCES:
        raise InputError(
            f"source has {len(names):,} different values in {labels.size:,} rows, more than "
            f"{MOST_SOURCES:,}; is it an identifier of rows? Name the column of their origin"
        )
    if labels.min() == labels.max():
        raise InputError(
            f"y is {labels[0]} in all {labels.size} rows; both labels must occur for scores to rank them"
        )
    return Labelled(labels, code, names)


def check_groups(groups: ArrayLike | None, n: int) -> NDArray[np.int32] | None:
    """Return groups as codes, or None where there are none."""
    return None if groups is None else _codes(groups, "groups", n)[0]


def check_features(X: Any, n: int, *, allow_missing: bool = False) -> Any:
    """Return features that can be indexed by row, or say what is wrong.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame, shape (n, d); or sequence of str, shape (n,)
        Numbers become float64; a DataFrame and texts stay what they are.
    n : int
        How many rows there must be.
    allow_missing : bool
        Whether the model takes missing values.

    Returns
    -------
    array, CSR matrix or DataFrame
        The input itself where nothing had to be changed.

    Raises
    ------
    InputError
        If rows do not match, a number is infinite, or a value is missing.

    Examples
    --------
    >>> check_features([[1, 2], [3, 4]], 2).dtype
    dtype('float64')
    """
    features: Any = X
    if sparse.issparse(X):
        features = features.tocsr()
        if features.dtype.kind not in "biuf":
            raise InputError(f"X must hold numbers, got a sparse matrix of {features.dtype}")
        features = features.astype(np.float64, copy=False)
        bad = ~np.isfinite(features.data)
        if bad.any():
            rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))[bad]
            raise InputError(_bad_rows(np.unique(rows), features.shape[0], "missing or infinite"))
    elif isinstance(X, pd.DataFrame):
        _check_frame(features, allow_missing)
    else:
        features = _check_array(X, allow_missing)
    if features.shape[0] != n:
        raise InputError(f"X and y must have the same length, got {features.shape[0]} and {n} rows")
    if len(features.shape) == 2 and features.shape[1] == 0:
        raise InputError("X has no columns; give at least one feature")
    return features


def take(X: Any, rows: NDArray) -> Any:
    """Return rows of checked features, by position or mask."""
    return X.iloc[np.flatnonzero(rows) if rows.dtype == bool else rows] if hasattr(X, "iloc") else X[rows]


def fingerprint_of(X: Any, labelled: Labelled, **settings: Any) -> str:
    """Return a SHA-256, in hex, of data and settings: the same on every machine for the same numbers."""
    digest = hashlib.sha256()
    if sparse.issparse(X):
        canonical = take(X, np.arange(labelled.n))  # a copy
        canonical.sum_duplicates()
        for array in (canonical.indptr, canonical.indices):
            digest.update(array.astype("<i8").tobytes())
        digest.update((canonical.data.astype("<f8") + 0.0).tobytes())
    elif isinstance(X, pd.DataFrame):
        digest.update(json.dumps(list(map(str, X.columns))).encode())
        digest.update(pd.util.hash_pandas_object(X, index=False).to_numpy().astype("<u8").tobytes())
    elif X is not None and X.dtype.kind == "f":
        digest.update((X.astype("<f8") + 0.0).tobytes())  # + 0.0: -0.0 is 0
    elif X is not None:
        digest.update(json.dumps([str(text) for text in X.ravel()]).encode())
    digest.update(labelled.y.astype("<i8").tobytes())
    digest.update(labelled.code.astype("<i8").tobytes())
    digest.update(json.dumps([labelled.names, settings], sort_keys=True, default=str).encode())
    return digest.hexdigest()


def count_twins(X: Any, labelled: Labelled) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count rows that have exactly the features of another row, in another source and in their own.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame
        Checked features.
    labelled : Labelled

    Returns
    -------
    shared, repeated : numpy.ndarray of int64, shape (K,)
        Per source: rows with a twin in another source; rows with a twin in their own.

    Examples
    --------
    >>> X = np.array([[1.0], [1.0], [1.0], [2.0]])
    >>> shared, repeated = count_twins(X, check_labelled([0, 1, 0, 1], ["a", "a", "b", "b"]))
    >>> shared.tolist(), repeated.tolist()
    ([2, 1], [2, 0])
    """
    _, same = np.unique(_row_hashes(X), return_inverse=True)
    K = len(labelled.names)
    cells, cell = np.unique(same * K + labelled.code, return_inverse=True)
    rows_in_cell = np.bincount(cell)[cell]
    sources_of_same = np.bincount(cells // K)[same]
    shared, repeated = (
        np.bincount(labelled.code[rows], minlength=K) for rows in (sources_of_same > 1, rows_in_cell > 1)
    )
    return shared, repeated


def label_columns(X: Any, y: NDArray) -> list[int]:
    """Return the columns of which each alone separates the labels: all values of one label below all of the other.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame
        Checked features; texts have no such column.
    y : numpy.ndarray of 0 and 1, shape (n,)

    Returns
    -------
    list of int
        Counted from 0. Empty where so few rows are there that one column of so many does it by chance in one of
        1,000 data sets.

    Examples
    --------
    >>> y = np.arange(30) % 2
    >>> label_columns(np.c_[np.arange(30.0), 5.0 - y], y)
    [1]
    """
    if len(X.shape) != 2:
        return []
    ones = int(np.count_nonzero(y))
    if 2 * X.shape[1] / math.comb(len(y), ones) >= 0.001:
        return []
    if isinstance(X, pd.DataFrame):
        places = [k for k, kind in enumerate(X.dtypes) if kind.kind in "biuf"]
        values: Any = X.iloc[:, places].to_numpy(np.float64)
    else:
        places, values = list(range(X.shape[1])), X

    def ends(label: int) -> list[NDArray]:
        of = values[np.flatnonzero(y == label)]
        found: list[Any] = [of.min(axis=0), of.max(axis=0)]
        return [np.ravel(end.toarray() if hasattr(end, "toarray") else end) for end in found]

    (low_0, high_0), (low_1, high_1) = ends(0), ends(1)
    return [places[k] for k in np.flatnonzero((high_0 < low_1) | (high_1 < low_0))]


def _row_hashes(X: Any) -> NDArray[np.uint64]:
    if sparse.issparse(X):
        canonical = take(X, np.arange(X.shape[0]))  # type: ignore[attr-defined]
        canonical.sum_duplicates()
        canonical.eliminate_zeros()
        ends = canonical.indptr
        rows = [
            hash((canonical.indices[i:j].tobytes(), canonical.data[i:j].tobytes())) for i, j in pairwise(ends)
        ]
        return np.array(rows, dtype=np.int64).view(np.uint64)
    if isinstance(X, pd.DataFrame):
        return _frame_hashes(X)
    if X.dtype.kind == "O":
        return np.asarray(pd.util.hash_array(X), dtype=np.uint64)
    return _frame_hashes(pd.DataFrame(X + 0.0))


def _frame_hashes(frame: pd.DataFrame) -> NDArray[np.uint64]:
    return np.asarray(pd.util.hash_pandas_object(frame, index=False), dtype=np.uint64)


def whole(value: object, name: str, least: int) -> int:
    """Return a whole number of at least `least`, or say what is wrong."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number from {least} up, got {value!r}")
    return int(value)


def _labels(y: ArrayLike) -> NDArray[np.int64]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise InputError(f"y must be one-dimensional, got the shape {labels.shape}")
    if labels.size == 0:
        raise InputError("y has no rows; give at least two")
    if labels.dtype.kind not in "biuf":
        raise InputError(
            f"y must be 0, 1 or bool, got the type {labels.dtype}; first: row 0 has {str(labels[0])!r}; "
            "write the positive class as 1"
        )
    _refuse(np.isnan(labels.astype(np.float64)), labels, "y", "missing (nan)", "drop or mend these rows")
    _refuse((labels != 0) & (labels != 1), labels, "y", "neither 0 nor 1", "write the positive class as 1")
    return labels.astype(np.int64)


def _codes(values: ArrayLike, name: str, n: int) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    given = np.asarray(values, dtype=object)
    if given.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got the shape {given.shape}")
    if given.size != n:
        raise InputError(f"{name} and y must have the same length, got {given.size} and {n}")
    missing = np.asarray(pd.isna(given), dtype=bool)
    _refuse(missing, given, name, "missing", "drop these rows, or give them a name of their own")
    codes, found = pd.factorize(given)
    names = tuple(str(value) for value in found)
    twice = pd.Series(names).duplicated().to_numpy()
    if twice.any():
        first = names[int(np.argmax(twice))]
        raise InputError(f"{name} has two different values that read {first!r}; write them in one way")
    return codes.astype(np.int32), names


def _check_array(X: Any, allow_missing: bool) -> NDArray:
    if np.ma.is_masked(X):
        raise InputError(f"X has {np.ma.count_masked(X)} masked values; drop these rows first")
    try:
        features = np.asarray(X)
    except ValueError as error:
        raise InputError("X must be a matrix, got rows of different lengths") from error
    if features.dtype.kind in "US":
        features = features.astype(object)
    if features.dtype.kind == "O":
        wrong = np.array([not isinstance(text, str) for text in features.ravel()], dtype=bool)
        if features.ndim == 1 and not wrong.any():
            return features
        row = int(np.argmax(wrong)) // max(1, features.size // max(1, len(features)))
        raise InputError(
            f"X must be a matrix of numbers, a DataFrame, or a sequence of texts; it has the type object, "
            f"first row that is none of these: {row}"
        )
    if features.dtype.kind not in "biuf":
        raise InputError(f"X must hold numbers or texts, got the type {features.dtype}")
    if features.ndim != 2:
        raise InputError(
            f"X must have two dimensions, rows and features, got the shape {features.shape}; "
            "for one feature give X.reshape(-1, 1)"
        )
    features = features.astype(np.float64, copy=False)
    bad = np.isinf(features) if allow_missing else ~np.isfinite(features)
    if bad.any():
        raise InputError(
            _bad_rows(np.flatnonzero(bad.any(axis=1)), len(features), "infinite" if allow_missing else "")
        )
    return features


def _check_frame(frame: pd.DataFrame, allow_missing: bool) -> None:
    bad = np.zeros(len(frame), dtype=bool)
    for _, column in frame.items():
        if not allow_missing:
            bad |= column.isna().to_numpy(dtype=bool)
        if column.dtype.kind == "f":
            bad |= np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if bad.any():
        raise InputError(_bad_rows(np.flatnonzero(bad), len(frame), "infinite" if allow_missing else ""))


def _bad_rows(rows: NDArray, n: int, problem: str) -> str:
    told = "mend or drop these rows"
    if not problem:
        problem = "missing or infinite"
        told += ", or say allow_missing=True with a model that takes missing values"
    return f"X has a value that is {problem} in {rows.size} of {n} rows; first: row {rows[0]}; {told}"


def _refuse(bad: NDArray[np.bool_], values: NDArray, name: str, problem: str, told: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} is {problem} in {np.count_nonzero(bad)} of {bad.size} rows; "
            f"first: row {row} has {values[row]}; {told}"
        )
