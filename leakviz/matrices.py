"""Tables of features: what the detectors accept, and what is wrong with the rest."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from leakviz.errors import InputError

Progress = Callable[[int, int], object]
"""Called as ``progress(done, total)``, in the caller's thread; the unit is the callee's."""

_LARGEST = 1e70
_BLOCK = 1 << 22  # numbers converted to float64 at a time: 32 MB


def as_features(values: ArrayLike, name: str, *, width: int | None = None) -> NDArray[Any]:
    """Return a table of finite numbers in the type that it came in, or say what is wrong.

    Parameters
    ----------
    values : array-like of numbers, shape (n, D)
        One row per example, one column per feature.
    name : str
        What error messages call it.
    width : int, optional
        The number of columns that it must have.

    Returns
    -------
    numpy.ndarray, shape (n, D)
        Not copied where it is an array already.

    Raises
    ------
    InputError
        If it is no table of real numbers, has no row or no column, has another
        width, or a number is missing or infinite.

    Examples
    --------
    >>> as_features([[1, 2], [3, 4]], "fit").shape
    (2, 2)
    >>> as_features(np.array([[1.0], [np.inf]], dtype=np.float16), "fit")
    Traceback (most recent call last):
    leakviz.errors.InputError: fit is infinite in 1 of 2 rows; first: row 1, column 0; float16 ends at 65504, \
beyond it is infinity: save the features as float32
    """
    if np.ma.is_masked(values):
        raise InputError(f"{name} has {np.ma.count_masked(values):,} masked values; drop these rows first")
    if issparse(values):
        raise InputError(f"{name} is sparse, and sparse input is not supported; give {name}.toarray()")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be a table, got rows of different lengths") from error
    if array.dtype.kind not in "iuf":
        told = "convert it first"
        if array.dtype.kind == "O":
            told = "make it a plain table first: np.stack(list_of_rows).astype('float32')"
        raise InputError(f"{name} must be real numbers, got the type {array.dtype}; {told}")
    if array.ndim != 2:
        raise InputError(f"{name} must have the shape (rows, features), got the shape {array.shape}")
    if 0 in array.shape:
        raise InputError(f"{name} is empty: it has the shape {array.shape}")
    if width is not None and array.shape[1] != width:
        raise InputError(
            f"{name} has {array.shape[1]:,} features and the fit set {width:,}; "
            "both must come from the same layer of the same model"
        )
    if array.dtype.kind == "f":
        _refuse_not_finite(array, name)
    if array.dtype == np.float64:
        _refuse_too_large(array, name)
    return array


def as_labels(values: ArrayLike, name: str, *, rows: int, of: str) -> NDArray[Any]:
    """Return one label per row as whole numbers or text, or say what is wrong.

    Parameters
    ----------
    values : array-like of whole numbers, bool or text, shape (rows,)
        Labels; none may be missing.
    name : str
        What error messages call it.
    rows : int
        How many there must be.
    of : str
        What error messages call the table that the labels belong to.

    Returns
    -------
    numpy.ndarray, shape (rows,)
        Of integers or text.

    Raises
    ------
    InputError
        If it is not one-dimensional, has another length, or a label is missing
        or neither a whole number nor text.

    Examples
    --------
    >>> as_labels(["cat", "dog"], "fit_labels", rows=2, of="fit").tolist()
    ['cat', 'dog']
    """
    if np.ma.is_masked(values):
        raise InputError(f"{name} has {np.ma.count_masked(values):,} masked values; drop these rows first")
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got the shape {array.shape}")
    if array.size != rows:
        raise InputError(
            f"{name} has {array.size:,} labels and {of} has {rows:,} rows; give one label per row"
        )
    if array.dtype.kind == "O":
        array = _plain_labels(array, name)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        bad = ~(np.isfinite(array) & (array == np.floor(array)))
        _refuse_labels(bad, array, name, "missing or no whole number", "give class numbers or names")
        return array.astype(np.int64)
    if array.dtype.kind not in "iuU":
        raise InputError(f"{name} must be whole numbers or text, got the type {array.dtype}")
    if array.dtype.kind == "U":
        _refuse_labels(np.char.strip(array) == "", array, name, "empty", "give every row its class")
    return array


def blocks(array: NDArray[Any], *, rows: int | None = None) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield the rows of a table in float64, a few megabytes at a time, each with its slice.

    Parameters
    ----------
    array : numpy.ndarray, shape (n, D)
    rows : int, optional
        How many at a time; by default what 32 MB hold.

    Yields
    ------
    slice, numpy.ndarray of float64

    Examples
    --------
    >>> [(part.start, block.shape) for part, block in blocks(np.ones((5, 2)), rows=3)]
    [(0, (3, 2)), (3, (2, 2))]
    """
    step = rows or max(1, _BLOCK // max(1, array.shape[1]))
    for start in range(0, array.shape[0], step):
        part = slice(start, min(start + step, array.shape[0]))
        yield part, array[part].astype(np.float64, copy=False)


def _refuse_not_finite(array: NDArray[Any], name: str) -> None:
    step = max(1, _BLOCK // array.shape[1])
    bad = np.concatenate(
        [~np.isfinite(array[i : i + step]).all(axis=1) for i in range(0, array.shape[0], step)]
    )
    if not bad.any():
        return
    row = int(np.flatnonzero(bad)[0])
    column = int(np.flatnonzero(~np.isfinite(array[row]))[0])
    if np.isnan(array[row, column]):
        problem, told = "missing (nan)", "drop or mend these rows first"
    else:
        problem, told = "infinite", "drop or mend these rows first"
        if array.dtype == np.float16:
            told = "float16 ends at 65504, beyond it is infinity: save the features as float32"
    raise InputError(
        f"{name} is {problem} in {int(bad.sum()):,} of {array.shape[0]:,} rows; "
        f"first: row {row}, column {column}; {told}"
    )


def _refuse_too_large(array: NDArray[Any], name: str) -> None:
    """Refuse numbers whose fourth powers, which Ledoit-Wolf's alpha sums, are infinite."""
    largest = max(float(array.max()), -float(array.min()))
    if largest > _LARGEST:
        row, column = (int(at[0]) for at in np.nonzero(np.abs(array) > _LARGEST))
        raise InputError(
            f"{name} has numbers up to {largest:.3g}, too large to square; first: row {row}, column {column}; "
            f"divide all features by one number, so that they stay below {_LARGEST:g}"
        )


def _plain_labels(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Turn a column of Python objects into text or numbers, whichever all of them are."""
    missing = np.array([value is None or value != value for value in array], dtype=bool)
    _refuse_labels(missing, array, name, "missing", "give every row its class")
    if all(isinstance(value, str) for value in array):
        return array.astype(str)
    whole = [isinstance(value, (int, np.integer, np.bool_)) for value in array]
    _refuse_labels(
        ~np.array(whole, dtype=bool), array, name, "no whole number", "give all as numbers or all as text"
    )
    return array.astype(np.int64)


def _refuse_labels(bad: NDArray[np.bool_], array: NDArray[Any], name: str, problem: str, told: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{name} is {problem} in {int(bad.sum()):,} of {bad.size:,} rows; "
            f"first: row {row} has {getattr(array[row], 'item', lambda: array[row])()!r}; {told}"
        )
