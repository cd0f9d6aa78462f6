"""Decimals that mean what they say: 0.65 is 65/100, not the float beside it."""

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from leakviz.errors import InputError

_MOST_DIGITS = 400  # covers every float64; beyond it a short text could ask for gigabytes
_MOST_STOPS = 1_000_000


def as_decimal(value: object, *, name: str = "value") -> Fraction:
    """Read a decimal exactly.

    A string is taken digit by digit. A float stands for the shortest decimal
    that reads back as the same float, which is what a person typed: 0.05 is
    1/20, not 0.05000000000000000277.

    Parameters
    ----------
    value : str, int, float, numpy number, Decimal or Fraction
        A finite number. Strings use a decimal point ("0.05", "5e-2").
    name : str
        What error messages call it.

    Returns
    -------
    fractions.Fraction
        The exact value; ``float()`` of it is the nearest float.

    Raises
    ------
    InputError
        If it is no finite decimal number.

    Examples
    --------
    >>> as_decimal("0.05"), as_decimal(0.05)
    (Fraction(1, 20), Fraction(1, 20))
    >>> as_decimal(np.float32(0.65))
    Fraction(13, 20)
    """
    if isinstance(value, Fraction):
        return value
    is_flag = isinstance(value, (bool, np.bool_))
    if isinstance(value, Integral) and not is_flag:
        return Fraction(int(value))
    if isinstance(value, (str, float, np.floating, Decimal)):
        try:
            decimal = Decimal(str(value).strip())  # str of a float: its shortest decimal
        except InvalidOperation:
            decimal = Decimal("nan")
        if decimal.is_finite() and abs(decimal.adjusted()) <= _MOST_DIGITS:
            return Fraction(decimal)
    raise InputError(f"{name} must be a finite decimal number such as 0.05 or '0.05', got {value!r}")


def as_fraction_of_one(value: object, *, name: str) -> Fraction:
    """Read a decimal that must lie in [0, 1].

    Parameters
    ----------
    value : str, int, float, numpy number, Decimal or Fraction
        As for `as_decimal`.
    name : str
        What error messages call it.

    Returns
    -------
    fractions.Fraction
        The exact value.

    Raises
    ------
    InputError
        If it is no decimal number or lies outside [0, 1].

    Examples
    --------
    >>> as_fraction_of_one("0.65", name="tau")
    Fraction(13, 20)
    """
    decimal = as_decimal(value, name=name)
    if not 0 <= decimal <= 1:
        raise InputError(f"{name} must lie between 0 and 1, got {value!r}")
    return decimal


def stops(start: object, stop: object, step: object) -> NDArray[np.float64]:
    """Return the stops of a slider: an evenly spaced grid of decimals, both ends included.

    Each value is the float nearest to its decimal, so ``0.645`` is in
    ``stops("0.2", 1, "0.005")`` exactly, and comparing it with a published
    three-decimal figure does what the decimals say. (``numpy.arange`` and
    ``numpy.linspace`` miss many of them by one unit in the last place.)

    Parameters
    ----------
    start, stop, step : str, int, float, Decimal or Fraction
        Decimals as `as_decimal` reads them; `step` > 0, and `stop` must be
        `start` plus a whole number of steps.

    Returns
    -------
    numpy.ndarray of float64, shape (1 + (stop - start) / step,)
        Strictly increasing.

    Raises
    ------
    InputError
        If the step is not positive, does not lead from `start` to `stop`, or
        asks for more than a million stops.

    Examples
    --------
    >>> stops("0.80", "0.82", "0.005").tolist()
    [0.8, 0.805, 0.81, 0.815, 0.82]
    """
    first = as_decimal(start, name="start")
    last = as_decimal(stop, name="stop")
    width = as_decimal(step, name="step")
    if width <= 0:
        raise InputError(f"step must be greater than 0, got {step!r}")
    steps = (last - first) / width
    if steps < 0:
        raise InputError(f"stop must not be below start, got start {start!r} and stop {stop!r}")
    if steps.denominator != 1:
        raise InputError(
            f"step {step!r} does not lead from {start!r} to {stop!r} in whole steps; change one of the three"
        )
    if steps >= _MOST_STOPS:
        raise InputError(f"step {step!r} asks for more than {_MOST_STOPS:,} stops; use a wider one")
    return np.array([float(first + i * width) for i in range(int(steps) + 1)], dtype=np.float64)
