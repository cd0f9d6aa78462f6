"""Rates of false certification, against walks followed step by step in exact or float arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from leakviz.certification import (
    false_certification,
    false_certification_table,
    minimum_head,
    read_false_certification,
    write_false_certification,
)
from leakviz.errors import InputError
from leakviz.purity import DELTA_STOPS, K_MIN_STOPS


def walk(k_min, risk, delta, longest=3000):
    """Follow the number of non-events up to a rank beyond which little can happen."""
    hit, delta = float(Fraction(risk)), Fraction(delta)
    alive = np.zeros(longest + 1)
    alive[0] = 1
    down = 0.0
    for k in range(1, longest + 1):
        alive[1:] = alive[1:] * hit + alive[:-1] * (1 - hit)
        alive[0] *= hit
        if k >= k_min:
            limit = math.floor(delta * k)
            down += alive[: limit + 1].sum()
            alive[: limit + 1] = 0
    return down


def test_figures_of_the_design():
    assert false_certification(50, "0.9", delta="0.05") == pytest.approx(0.188, abs=5e-4)
    assert false_certification(50, "0.9", delta="0.05", scan=False) == pytest.approx(0.112, abs=5e-4)
    assert minimum_head("0.001", "0.9", delta="0.05") == 325
    assert minimum_head("0.001", "0.9") == 66
    assert minimum_head("0.008", "0.2") == 3
    assert minimum_head(0.008, 0.2) == 3


@pytest.mark.parametrize(
    ("k_min", "risk", "delta"),
    [
        (50, "0.9", "0.05"),
        (1, "0.9", "0.05"),
        (50, "0.8", "0.12"),
        (10, "0.9", "0.035"),
        (20, "0.5", "0.3"),
        (7, "0.5", "0.295"),
        (3, "0.3", "0.61"),
        (5, "0.05", "0.9"),
        (30, "0.8", "0.1234"),
        (4, "0.4", Fraction(1, 3)),
    ],
)
def test_scan_equals_the_walk_followed_step_by_step(k_min, risk, delta):
    assert false_certification(k_min, risk, delta=delta) == pytest.approx(walk(k_min, risk, delta), abs=1e-9)


def test_scan_by_simulation():
    rng = np.random.default_rng(11)
    misses = np.cumsum(rng.random((4000, 1500)) >= 0.9, axis=1)
    k = np.arange(1, 1501)
    fired = (20 * misses[:, 49:] <= k[49:]).any(axis=1).mean()
    assert fired == pytest.approx(false_certification(50, "0.9", delta="0.05"), abs=0.02)


@pytest.mark.parametrize("k", [1, 2, 19, 20, 50, 200])
def test_one_rank_is_a_binomial_tail(k):
    expected = binom.cdf(k // 20, k, 0.1)
    assert false_certification(k, "0.9", delta="0.05", scan=False) == pytest.approx(expected, rel=1e-12)


def test_by_hand():
    # delta 1/2, M 1/4: the walk goes up by 1 with 3/4 and down by 1 with 1/4; from height h it returns
    # with (1/3)^h. At k_min = 1: event 1/4, or non-event and back from height 1: 3/4 * 1/3.
    assert false_certification(1, "0.25", delta="0.5") == pytest.approx(0.5, rel=1e-12)
    assert false_certification(3, "0.2", delta=0) == 0.008
    assert false_certification(50, "0.9", delta=0) == float(Fraction(9, 10) ** 50)


@pytest.mark.parametrize(("risk", "delta"), [("0.9", "0.1"), ("0.95", "0.06"), ("0.5", "0.5")])
def test_heads_no_purer_than_the_risk_are_certain(risk, delta):
    assert false_certification(500, risk, delta=delta) == 1.0
    with pytest.raises(InputError, match="max_risk must be below 1 - delta"):
        minimum_head("0.001", risk, delta=delta)


def test_an_awkward_decimal_is_never_understated():
    true = walk(20, "0.7", "0.12345")
    answer = false_certification(20, "0.7", delta="0.12345")  # 2469 / 20000: too many roots
    assert true - 1e-12 <= answer <= 1.15 * true


@pytest.mark.parametrize(("alpha", "risk", "delta"), [("0.001", "0.9", "0.05"), ("0.01", "0.8", "0.07")])
def test_minimum_head_is_the_first_that_suffices(alpha, risk, delta):
    k = minimum_head(alpha, risk, delta=delta)
    assert false_certification(k, risk, delta=delta) <= float(alpha)
    assert false_certification(k - 1, risk, delta=delta) > float(alpha)


@pytest.mark.parametrize(
    ("alpha", "risk"), [("0.5", "0.5"), ("0.000001", "0.999"), ("0.99", "0.01"), ("0.25", "0.5")]
)
def test_minimum_head_without_impurity_is_exact(alpha, risk):
    k = minimum_head(alpha, risk)
    assert Fraction(risk) ** k <= Fraction(alpha)
    assert k == 1 or Fraction(risk) ** (k - 1) > Fraction(alpha)


def test_shipped_table_is_what_the_functions_say():
    table = read_false_certification()
    assert table.delta.values.tolist() == DELTA_STOPS.tolist()
    assert table.k_min.values.tolist() == K_MIN_STOPS.tolist()
    assert table.max_risk.values.tolist() == [0.5, 0.8, 0.9]
    for risk, delta, k in [
        ("0.9", "0.05", 50),
        ("0.9", "0.095", 20),
        ("0.8", "0.15", 325),
        ("0.5", "0.3", 7),
    ]:
        row = table.sel(max_risk=float(risk), delta=float(delta), k_min=k)
        assert row.scan.item() == pytest.approx(false_certification(k, risk, delta=delta), rel=1e-8)
        assert row.single.item() == pytest.approx(
            false_certification(k, risk, delta=delta, scan=False), rel=1e-8
        )
    assert (table.scan >= table.single - 1e-12).all()
    assert (np.diff(table.scan, axis=2) <= 1e-9).all()  # the longer the head asked for, the rarer
    assert (np.diff(table.scan, axis=1) >= -1e-9).all()  # the more impurity, the more often
    assert table.naive.sel(max_risk=0.9, k_min=50).item() == pytest.approx(0.9**50)


def test_table_can_be_written_and_read(tmp_path, monkeypatch):
    small = false_certification_table(deltas=["0", "0.05"], k_mins=[3, 50], max_risks=["0.9"])
    monkeypatch.setattr("leakviz.certification.false_certification_table", lambda **_: small)
    again = read_false_certification(write_false_certification(tmp_path / "new"))
    assert again.scan.values == pytest.approx(small.scan.values, rel=1e-9)
    assert again.naive.values == pytest.approx(small.naive.values, rel=1e-9)
    (tmp_path / "bad.csv").write_text("delta,k_min\n0.05,50\n")
    with pytest.raises(InputError, match="no column 'max_risk'"):
        read_false_certification(tmp_path / "bad.csv")
    with pytest.raises(InputError, match="does not exist"):
        read_false_certification(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("k_min", "risk", "delta", "message"),
    [
        (0, "0.9", "0.05", "k_min must be a whole number from 1 up, got 0"),
        (2.5, "0.9", "0.05", "k_min"),
        (True, "0.9", "0.05", "k_min"),
        (50, "1", "0.05", "max_risk must be above 0 and below 1"),
        (50, "0", "0.05", "max_risk"),
        (50, "x", "0.05", "max_risk"),
        (50, "0.9", "1", "delta must be at least 0 and below 1"),
    ],
)
def test_bad_arguments(k_min, risk, delta, message):
    with pytest.raises(InputError, match=message):
        false_certification(k_min, risk, delta=delta)


@pytest.mark.parametrize("alpha", [0, 1, "2", None])
def test_bad_alpha(alpha):
    with pytest.raises(InputError, match="alpha"):
        minimum_head(alpha, "0.9")
