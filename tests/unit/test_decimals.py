from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakviz.decimals import as_decimal, as_fraction_of_one, stops
from leakviz.errors import InputError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.05", Fraction(1, 20)),
        (0.05, Fraction(1, 20)),
        (" 5e-2 ", Fraction(1, 20)),
        (np.float64(0.05), Fraction(1, 20)),
        (np.float32(0.05), Fraction(1, 20)),
        (Decimal("0.05"), Fraction(1, 20)),
        (Fraction(1, 3), Fraction(1, 3)),
        (0.1 + 0.2, Fraction(30000000000000004, 10**17)),
        (1, Fraction(1)),
        (np.int64(-3), Fraction(-3)),
        ("-0.0", Fraction(0)),
    ],
)
def test_reads_the_decimal_that_was_meant(value, expected):
    assert as_decimal(value) == expected


@pytest.mark.parametrize(
    "value",
    ["", "abc", "0,05", "1/20", "nan", "inf", float("nan"), float("-inf"), None, True, np.True_, [1], 1j],
)
def test_refuses_what_is_no_decimal(value):
    with pytest.raises(InputError, match=r"delta must be a finite decimal number .* got"):
        as_decimal(value, name="delta")


def test_refuses_an_exponent_that_would_fill_the_memory():
    with pytest.raises(InputError, match="finite decimal"):
        as_decimal("1e999999999")


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_the_way_through_its_decimal(value):
    assert float(as_decimal(value)) == value


def test_fraction_of_one_names_the_argument_and_includes_both_ends():
    assert as_fraction_of_one("0", name="tau") == 0
    assert as_fraction_of_one(1.0, name="tau") == 1
    for outside in ("-0.001", 1.001):
        with pytest.raises(InputError, match=r"tau must lie between 0 and 1, got"):
            as_fraction_of_one(outside, name="tau")


def test_stops_are_the_floats_that_the_decimals_spell():
    grid = stops("0.20", "1.00", "0.005")
    assert grid.dtype == np.float64
    assert grid.tolist() == [float(f"{thousandths / 1000:.3f}") for thousandths in range(200, 1001, 5)]
    assert 0.645 in grid
    assert not np.array_equal(grid, 0.2 + 0.005 * np.arange(161))  # the ordinary way misses some


def test_stops_are_the_same_from_strings_and_floats():
    np.testing.assert_array_equal(stops(0.8, 1, 0.005), stops("0.80", "1", "0.005"))
    assert stops(0.8, 1, 0.005).size == 41
    assert stops("0.5", "0.5", "0.1").tolist() == [0.5]
    assert stops("-0.2", "0.1", "0.1").tolist() == [-0.2, -0.1, 0.0, 0.1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("0", "1", "0"), "step must be greater than 0"),
        (("0", "1", "-0.1"), "step must be greater than 0"),
        (("1", "0", "0.1"), "stop must not be below start"),
        (("0", "1", "0.3"), "does not lead from '0' to '1' in whole steps"),
        (("0", "1", "1e-7"), "more than 1,000,000 stops"),
        (("a", "1", "0.1"), "start must be a finite decimal number"),
        (("0", None, "0.1"), "stop must be a finite decimal number"),
    ],
)
def test_stops_refuses_a_grid_that_does_not_exist(arguments, message):
    with pytest.raises(InputError, match=message):
        stops(*arguments)
