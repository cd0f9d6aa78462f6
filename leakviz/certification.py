"""How often an honest model would be called leaky by its pure head.

The blind test fires when, at some rank k >= k_min, at least (1 - delta) k of the first k
records had the event. If no admissible risk exceeds M < 1, how often does that happen
without any leak? The worst honest case is a ranking whose every risk is exactly M, and its
rate is what is computed here.

arXiv 2606.11267, section 6, bounds it by M ** k_min. That holds for delta = 0 only: with
delta = 0.05 and M = 0.9, k_min = 50 gives 0.188, not 0.005.

Run ``python -m leakviz.certification FOLDER`` to compute the table that the package ships.
"""

import math
import sys
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom

from leakviz.decimals import as_decimal
from leakviz.errors import InputError
from leakviz.paths import data_dir, write_whole
from leakviz.purity import DELTA_STOPS, K_MIN_STOPS, check_delta

#: The bounds on the admissible risk for which every blind test reports the rate.
MAX_RISKS = ("0.9", "0.8", "0.5")

#: The tolerated rates for which the shortest heads ship with the package.
ALPHAS = ("0.05", "0.01", "0.005", "0.001", "0.0001")

_MOST_ROOTS = 1000


def false_certification(k_min: int, max_risk: object, *, delta: object, scan: bool = True) -> float:
    """Return how often a pure head appears although no risk exceeds `max_risk`.

    Parameters
    ----------
    k_min : int
        Shortest head that counts, in records; at least 1.
    max_risk : decimal
        M, the largest risk that is admissible at prediction time; above 0 and below 1.
    delta : decimal
        Impurity that the test lets through, in [0, 1).
    scan : bool, default True
        True: at least (1 - delta) k events among the first k records for some k >= k_min, which is
        what the test looks for. False: for k = k_min alone.

    Returns
    -------
    float
        A probability. For `scan` it is that of a ranking without end, so it holds for any number
        of rows, and ties, which leave fewer cuts, can only lower it.

    Raises
    ------
    InputError
        If `k_min` is no whole number from 1 up, or a decimal is out of range.

    Notes
    -----
    One k, or delta = 0: summed in rationals, rounded once. The scan: the number of non-events beyond
    delta k is a random walk that must come down to 0. With delta = a / b in lowest terms and heights
    counted in units of 1 / b, the chance to come down from height x > 0 is a sum of c z ** x over the
    a roots of M - z ** a + (1 - M) z ** b inside the unit disc, with the weights c that make it 1
    at the heights 0, -1, ..., 1 - a. It is solved in float64 (rates agree with a walk followed step by step
    to 1e-9). Where a exceeds 1000, the largest root alone is used (Lundberg's inequality): never
    too small, and too large by less than what an additional delta of a non-event would make.
    From M = 1 - delta up, the walk comes down for certain.

    Examples
    --------
    >>> round(false_certification(50, "0.9", delta="0.05"), 3)
    0.188
    >>> round(false_certification(50, "0.9", delta="0.05", scan=False), 3)
    0.112
    >>> false_certification(3, "0.2", delta=0)
    0.008
    """
    heads, risk, impurity = _check(k_min, max_risk, delta)
    if not scan:
        return float(_single_rate(heads, risk, impurity))
    return _scan_rates((heads,), risk, impurity)[0]


def minimum_head(alpha: object, max_risk: object, *, delta: object = 0) -> int:
    """Return the smallest k_min whose rate of false certification is at most alpha.

    Parameters
    ----------
    alpha : decimal
        The rate that is tolerated, above 0 and below 1.
    max_risk : decimal
        M, the largest admissible risk; above 0 and below 1 - delta.
    delta : decimal, default 0
        Impurity that the test lets through.

    Returns
    -------
    int
        For delta = 0 the smallest k with M ** k <= alpha, in rationals. Otherwise the smallest k for
        which `false_certification`, over the scan of all ranks from k on, is at most alpha.

    Raises
    ------
    InputError
        If a decimal is out of range, or `max_risk` is not below 1 - delta: then no head is long enough.

    Notes
    -----
    arXiv 2606.11267, section 6, gives ceil(log alpha / log M), for delta = 0.

    Examples
    --------
    >>> minimum_head("0.001", "0.9")
    66
    >>> minimum_head("0.001", "0.9", delta="0.05")
    325
    >>> minimum_head("0.008", "0.2")
    3
    """
    rate = as_decimal(alpha, name="alpha")
    if not 0 < rate < 1:
        raise InputError(f"alpha must be above 0 and below 1, got {alpha!r}")
    _, risk, impurity = _check(1, max_risk, delta)
    if risk >= 1 - impurity:
        raise InputError(
            f"max_risk must be below 1 - delta, got {max_risk!r} with delta {delta!r}: such heads appear "
            "at any length without a leak; lower delta"
        )
    if impurity == 0:
        return _smallest_power(rate, risk)
    longest = 16
    while _scan_rates((longest,), risk, impurity)[0] > rate:
        longest *= 2
    low, high = longest // 2 if longest > 16 else 0, longest  # low fails (or is 0), high passes
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _scan_rates((middle,), risk, impurity)[0] > rate else (low, middle)
    return high


def false_certification_table(
    *,
    deltas: Iterable[object] = DELTA_STOPS,
    k_mins: Iterable[int] = K_MIN_STOPS,
    max_risks: Iterable[object] = MAX_RISKS,
) -> xr.Dataset:
    """Return the rates of false certification for every stop of two sliders.

    Parameters
    ----------
    deltas : iterable of decimals, default 0 to 0.30 by 0.005
        Impurities; each in [0, 1).
    k_mins : iterable of int, default some 80 from 1 to 1000
        Shortest heads.
    max_risks : iterable of decimals, default 0.9, 0.8 and 0.5
        Bounds on the admissible risk.

    Returns
    -------
    xarray.Dataset
        Over `max_risk`, `delta` and `k_min`: `scan` and `single`, as `false_certification` with
        `scan` true and false. Over `max_risk` and `k_min`: `naive`, max_risk ** k_min.

    Raises
    ------
    InputError
        If a stop is out of range.

    Notes
    -----
    The default stops take about a minute; the result ships with the package, see
    `read_false_certification`.

    Examples
    --------
    >>> table = false_certification_table(deltas=["0.05"], k_mins=[50], max_risks=["0.9"])
    >>> round(table.scan.item(), 3), round(table.single.item(), 3), round(table.naive.item(), 4)
    (0.188, 0.112, 0.0052)
    """
    heads = [_check(k, "0.5", 0)[0] for k in k_mins]
    impurities = [check_delta(delta, name="deltas") for delta in deltas]
    risks = [_check(1, risk, 0)[1] for risk in max_risks]
    scan = np.empty((len(risks), len(impurities), len(heads)))
    single = np.empty_like(scan)
    for i, risk in enumerate(risks):
        for j, impurity in enumerate(impurities):
            scan[i, j] = _scan_rates(tuple(heads), risk, impurity)
            single[i, j] = [float(_single_rate(k, risk, impurity)) for k in heads]
    dims = ("max_risk", "delta", "k_min")
    return xr.Dataset(
        {
            "scan": (dims, scan, {"long_name": "rate of false certification at some k >= k_min"}),
            "single": (dims, single, {"long_name": "rate of false certification at k = k_min alone"}),
            "naive": (
                ("max_risk", "k_min"),
                [[float(risk**k) for k in heads] for risk in risks],
                {"long_name": "max_risk ** k_min, which holds for delta = 0 only"},
            ),
        },
        coords={
            "max_risk": [float(risk) for risk in risks],
            "delta": [float(delta) for delta in impurities],
            "k_min": heads,
        },
    )


def write_false_certification(folder: str | Path, *, deltas: Iterable[object] = DELTA_STOPS) -> Path:
    """Compute the table over the sliders' stops and write it as ``false_certification.csv``.

    Parameters
    ----------
    folder : str or pathlib.Path
        Made if it does not exist.
    deltas : iterable of decimals, default the slider's stops
        As `false_certification_table` takes them.

    Returns
    -------
    pathlib.Path
        The file; `read_false_certification` reads it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = read_false_certification(write_false_certification(folder, deltas=["0"]))
    >>> round(table.scan.sel(max_risk=0.8, delta=0, k_min=10).item(), 6), round(0.8**10, 6)
    (0.107374, 0.107374)
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    file = target / "false_certification.csv"
    table = false_certification_table(deltas=deltas)[["scan", "single"]].to_dataframe().reset_index()
    write_whole(file, table.to_csv(index=False, float_format="%.10g", lineterminator="\n"))
    return file


def read_false_certification(file: str | Path | None = None) -> xr.Dataset:
    """Return the shipped table of the rates of false certification.

    Parameters
    ----------
    file : str or pathlib.Path, optional
        A file that `write_false_certification` wrote; by default the one that ships with the package.

    Returns
    -------
    xarray.Dataset
        As `false_certification_table`, to ten digits.

    Raises
    ------
    InputError
        If the file is missing or has other columns.

    Examples
    --------
    >>> table = read_false_certification()
    >>> round(table.scan.sel(max_risk=0.9, delta=0.05, k_min=50).item(), 3)
    0.188
    """
    path = data_dir() / "certification" / "false_certification.csv" if file is None else Path(file)
    if not path.is_file():
        raise InputError(f"file {str(path)!r} does not exist; write it with write_false_certification")
    rows = pd.read_csv(path)
    missing = {"max_risk", "delta", "k_min", "scan", "single"} - set(rows.columns)
    if missing:
        raise InputError(f"file {str(path)!r} has no column {sorted(missing)[0]!r}; write it anew")
    table = xr.Dataset.from_dataframe(rows.set_index(["max_risk", "delta", "k_min"]))
    return table.assign(naive=table.max_risk**table.k_min)


def write_minimum_heads(folder: str | Path, *, deltas: Iterable[object] = DELTA_STOPS) -> Path:
    """Compute `minimum_head` for every tolerated rate and stop of delta, and write ``minimum_head.csv``.

    Parameters
    ----------
    folder : str or pathlib.Path
        Made if it does not exist.
    deltas : iterable of decimals, default the slider's stops
        Impurities that are let through; each in [0, 1).

    Returns
    -------
    pathlib.Path
        The file; `read_minimum_heads` reads it. All stops take about a minute: just below delta = 1 - M,
        heads of tens of thousands of records are needed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     heads = read_minimum_heads(write_minimum_heads(folder, deltas=["0", "0.05"]))
    >>> heads.k_min.sel(alpha=0.001, max_risk=0.9).values.tolist()
    [66, 325]
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    file = target / "minimum_head.csv"
    rows = [
        (alpha, risk, float(delta), minimum_head(alpha, risk, delta=delta))
        for alpha in ALPHAS
        for risk in MAX_RISKS
        for delta in map(as_decimal, deltas)
        if as_decimal(risk) < 1 - delta
    ]
    table = pd.DataFrame(rows, columns=["alpha", "max_risk", "delta", "k_min"])
    write_whole(file, table.to_csv(index=False, lineterminator="\n"))
    return file


def read_minimum_heads(file: str | Path | None = None) -> xr.Dataset:
    """Return the shipped table of the shortest heads.

    Parameters
    ----------
    file : str or pathlib.Path, optional
        A file that `write_minimum_heads` wrote; by default the one that ships with the package.

    Returns
    -------
    xarray.Dataset
        `k_min` over `alpha`, `max_risk` and `delta`; 0 where no head is long enough.

    Raises
    ------
    InputError
        If the file is missing or has other columns.

    Examples
    --------
    >>> read_minimum_heads().k_min.sel(alpha=0.001, max_risk=0.9, delta=0.05).item()
    325
    """
    path = data_dir() / "certification" / "minimum_head.csv" if file is None else Path(file)
    if not path.is_file():
        raise InputError(f"file {str(path)!r} does not exist; write it with write_minimum_heads")
    rows = pd.read_csv(path)
    missing = {"alpha", "max_risk", "delta", "k_min"} - set(rows.columns)
    if missing:
        raise InputError(f"file {str(path)!r} has no column {sorted(missing)[0]!r}; write it anew")
    table = xr.Dataset.from_dataframe(rows.set_index(["alpha", "max_risk", "delta"]))
    return table.assign(k_min=table.k_min.fillna(0).astype(int))


def _check(k_min: object, max_risk: object, delta: object) -> tuple[int, Fraction, Fraction]:
    if isinstance(k_min, (bool, np.bool_)) or not isinstance(k_min, (int, np.integer)) or k_min < 1:
        raise InputError(f"k_min must be a whole number from 1 up, got {k_min!r}")
    risk = as_decimal(max_risk, name="max_risk")
    if not 0 < risk < 1:
        raise InputError(f"max_risk must be above 0 and below 1, got {max_risk!r}")
    return int(k_min), risk, check_delta(delta)


def _smallest_power(rate: Fraction, risk: Fraction) -> int:
    """Return the smallest k with risk ** k <= rate, at least 1."""
    k = max(1, round(math.log(rate) / math.log(risk)))
    while risk**k > rate:
        k += 1
    while k > 1 and risk ** (k - 1) <= rate:
        k -= 1
    return k


def _single_rate(k: int, risk: Fraction, delta: Fraction) -> Fraction:
    """Return the probability of at most delta k non-events among k, exactly."""
    hit, miss, whole = risk.numerator, risk.denominator - risk.numerator, risk.denominator
    most = math.floor(delta * k)
    ways = 0
    term = hit**k
    for misses in range(most + 1):
        ways += term
        term = (
            term * (k - misses) * miss // ((misses + 1) * hit)
        )  # whole: C(k, m + 1) miss^(m + 1) hit^(k - m - 1)
    return Fraction(ways, whole**k)


@lru_cache(maxsize=4096)
def _scan_rates(heads: tuple[int, ...], risk: Fraction, delta: Fraction) -> tuple[float, ...]:
    """Return, for each k_min, the probability of at most delta k non-events at some k >= k_min."""
    if risk >= 1 - delta:
        return (1.0,) * len(heads)
    if delta == 0:
        return tuple(float(risk**k) for k in heads)
    roots, weights = _descent(risk, delta)
    deepest = -40 / math.log(abs(roots).max())  # from higher up, coming down has a probability below 1e-17
    a, b = delta.numerator, delta.denominator
    rates = []
    for k in heads:
        at_most = a * k // b
        non_events = np.arange(at_most + 1, min(k, at_most + 1 + int(deepest / b)) + 1)
        heights = (b * non_events - a * k)[:, np.newaxis]
        comes_down = (weights * roots**heights).sum(axis=1).real
        chance = binom.pmf(non_events, k, float(1 - risk))
        rates.append(min(1.0, float(_single_rate(k, risk, delta)) + float(chance @ comes_down)))
    return tuple(rates)


@lru_cache(maxsize=256)
def _descent(risk: Fraction, delta: Fraction) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Return z and c such that the walk comes down from height x > 0 with probability sum c z ** x."""
    a, b, hit = delta.numerator, delta.denominator, float(risk)
    if a > _MOST_ROOTS:
        return np.array([_lundberg(hit, float(delta)) ** (1 / b)], dtype=complex), np.ones(1, dtype=complex)
    roots = _roots(a, b, hit)
    # Interpolation: sum c z ** x is 1 at the heights 0, -1, ..., 1 - a, where the walk has come down.
    inverse = 1 / roots
    steps = inverse[:, np.newaxis] - inverse
    np.fill_diagonal(steps, 1)
    to_one = np.broadcast_to(1 - inverse, (a, a)).copy()
    np.fill_diagonal(to_one, 1)
    return roots, (to_one / steps).prod(axis=1)


def _roots(a: int, b: int, hit: float) -> NDArray[np.complex128]:
    """Return the a roots of hit - z ** a + (1 - hit) z ** b inside the unit disc."""
    branch = np.exp(2j * np.pi * np.arange(a) / a)
    z = np.zeros(a, dtype=complex)
    for _ in range(100):  # z ** a = hit + (1 - hit) z ** b, one root on each branch
        z = branch * (hit + (1 - hit) * z**b) ** (1 / a)
    z = _polish(z, a, b, hit)
    if not _complete(z, a, b, hit):
        coefficients = np.zeros(b + 1)
        coefficients[[0, b - a, b]] = 1 - hit, -1, hit
        z = np.roots(coefficients).astype(complex)
        z = _polish(z[np.argsort(abs(z))[:a]], a, b, hit)
    return z


def _polish(z: NDArray[np.complex128], a: int, b: int, hit: float) -> NDArray[np.complex128]:
    for _ in range(20):
        value = hit - z**a + (1 - hit) * z**b
        z = z - value / ((1 - hit) * b * z ** (b - 1) - a * z ** (a - 1))
    return z


def _complete(z: NDArray[np.complex128], a: int, b: int, hit: float) -> bool:
    residual = abs(hit - z**a + (1 - hit) * z**b).max()
    apart = abs(z[:, np.newaxis] - z) + np.eye(a)
    return bool(residual < 1e-12 and abs(z).max() < 1 and apart.min() > 1e-9)


def _lundberg(hit: float, delta: float) -> float:
    """Return r = exp(-u), with u > 0 and hit exp(u delta) + (1 - hit) exp(-u (1 - delta)) = 1."""

    def excess(u: float) -> float:
        return hit * math.expm1(u * delta) + (1 - hit) * math.expm1(-u * (1 - delta))

    upper = 1.0
    while excess(upper) <= 0:
        upper *= 2
    lower = upper
    while excess(lower) >= 0:
        lower /= 2
    return math.exp(-brentq(excess, lower, upper, xtol=1e-15, rtol=1e-14))


if __name__ == "__main__":
    print(write_false_certification(sys.argv[1]))
    print(write_minimum_heads(sys.argv[1]))
