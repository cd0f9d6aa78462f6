"""Synthetic predictions whose leak is known: one arm for each regime of the trichotomy.

Source: arXiv 2606.11267, section 6, "Synthetic construction".
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr

from leakviz.calibration import recalibrate
from leakviz.decimals import as_decimal
from leakviz.errors import InputError

ARMS = ("clean", "miscalibrated", "broad", "deterministic", "laundered")
"""The arms, in the order of `simulate_arms`."""

# The flag of the deterministic arm is set for one in a thousand million records without the event,
# in the law that its risks are calibrated for: near-deterministic, and below 1 in float64.
_FALSE_FLAGS = 1e-9

_NODES = np.linspace(-9, 9, 2401)
_MASS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()


def simulate_arms(
    *,
    n: int = 200_000,
    prevalence: object = 0.02,
    c_statistic: object = 0.84,
    beta: object = 2.5,
    flag_fraction: object = 0.003,
    broad_c_statistic: object | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Simulate predictions without and with a leak, for the same people.

    Parameters
    ----------
    n : int, default 200,000
        Records; at least 100.
    prevalence : decimal, default 0.02
        Expected share of events, from 0.001 to 0.999.
    c_statistic : decimal, default 0.84
        Expected C-statistic of the honest risks, from 0.51 to 0.99.
    beta : decimal, default 2.5
        Factor on the logit in the miscalibrated arm, above 0 and at most 20.
    flag_fraction : decimal, default 0.003
        Share of all records that the deterministic arm flags, each of them an event.
    broad_c_statistic : decimal, optional
        Expected C-statistic of the broad arm, from `c_statistic` to 0.995; by default 15 % of the way
        from `c_statistic` to 1.
    seed : int, default 0
        Of numpy's default generator.

    Returns
    -------
    xarray.Dataset
        `p` over (`arm`, `record`) and `y` over `record`. The arms:

        - ``clean``: the honest risk, from which y is drawn;
        - ``miscalibrated``: its logit times beta; the ranking stays;
        - ``broad``: the risk given a noisy proxy of the outcome as well; calibrated;
        - ``deterministic``: the risk given a flag that only events have; calibrated;
        - ``laundered``: the miscalibrated arm after Platt's recalibration on the same data.

        Attributes: the parameters, `logit_mean` and `logit_sd` of the honest risk and `proxy_shift`, the
        distance of the proxy's means in units of its noise.

    Raises
    ------
    InputError
        If a parameter is out of range, or there are fewer events than records to flag.

    Notes
    -----
    arXiv 2606.11267, section 6. The honest logit is normal; its mean and standard deviation are found by
    quadrature. The paper recalibrates the broad arm isotonically; the risk given the proxy is
    calibrated already, so here it is not, and keeps its ranks.

    Examples
    --------
    >>> arms = simulate_arms(n=20_000, seed=1)
    >>> dict(arms.sizes), round(float(arms.y.mean()), 2)
    ({'arm': 5, 'record': 20000}, 0.02)
    >>> bool((arms.p.sel(arm="deterministic") >= 0.99).sum() == 60)
    True
    """
    _whole(n, "n", 100)
    _whole(seed, "seed", 0)
    rate = _between(prevalence, "prevalence", 0.001, 0.999)
    area = _between(c_statistic, "c_statistic", 0.51, 0.99)
    factor = _between(beta, "beta", 1e-6, 20)
    fraction = _between(flag_fraction, "flag_fraction", 0, 1)
    broad_area = area + 0.15 * (1 - area)
    if broad_c_statistic is not None:
        broad_area = _between(broad_c_statistic, "broad_c_statistic", area, 0.995)
    mean, sd = logit_normal(rate, area)
    shift = proxy_shift(mean, sd, broad_area)

    rng = np.random.default_rng(seed)
    score = rng.normal(mean, sd, n)
    clean = expit(score)
    y = (rng.random(n) < clean).astype(np.int8)
    proxy = rng.normal(shift * y, 1)
    flagged = np.flatnonzero(y)
    flags = round(n * fraction)
    if flags > flagged.size:
        raise InputError(
            f"flag_fraction asks for {flags} flagged events and only {flagged.size} of {n} records have "
            "the event; lower it, or raise n or prevalence"
        )
    miscalibrated = expit(factor * logit(clean))
    arms = {
        "clean": clean,
        "miscalibrated": miscalibrated,
        "broad": expit(score + shift * proxy - shift**2 / 2),
        "deterministic": _flag(score, rng.permutation(flagged)[:flags], flags / max(flagged.size, 1)),
        "laundered": recalibrate(miscalibrated, y, method="platt").p,
    }
    return xr.Dataset(
        {
            "p": (
                ("arm", "record"),
                np.stack([arms[name] for name in ARMS]),
                {"long_name": "predicted risk"},
            ),
            "y": ("record", y, {"long_name": "outcome"}),
        },
        coords={"arm": list(ARMS)},
        attrs={
            "n": n,
            "prevalence": rate,
            "c_statistic": area,
            "beta": factor,
            "flag_fraction": fraction,
            "broad_c_statistic": broad_area,
            "seed": seed,
            "logit_mean": mean,
            "logit_sd": sd,
            "proxy_shift": shift,
        },
    )


@lru_cache(maxsize=256)
def logit_normal(prevalence: float, c_statistic: float) -> tuple[float, float]:
    """Return mean and standard deviation of a normal logit with a given prevalence and C-statistic.

    Parameters
    ----------
    prevalence : float
        Mean risk, from 0.001 to 0.999.
    c_statistic : float
        From 0.51 to 0.99.

    Returns
    -------
    mean, sd : float
        Of the logit of the risk.

    Examples
    --------
    >>> mean, sd = logit_normal(0.5, 0.75)
    >>> abs(round(mean, 9)), round(concordance(mean, sd, 0), 9)
    (0.0, 0.75)
    """
    sd = brentq(
        lambda s: concordance(_mean_for(prevalence, s), s, 0.0) - c_statistic,
        1e-3,
        40,
        xtol=1e-12,
        rtol=1e-12,
    )
    return _mean_for(prevalence, sd), float(sd)


@lru_cache(maxsize=256)
def proxy_shift(mean: float, sd: float, c_statistic: float) -> float:
    """Return how far apart the proxy's means must be for the risk given the proxy to reach a C-statistic.

    Parameters
    ----------
    mean, sd : float
        Of the honest logit.
    c_statistic : float
        At least that of the honest risk.

    Returns
    -------
    float
        In units of the proxy's noise.

    Examples
    --------
    >>> mean, sd = logit_normal(0.5, 0.75)
    >>> round(concordance(mean, sd, proxy_shift(mean, sd, 0.8)), 9)
    0.8
    """
    if concordance(mean, sd, 0.0) >= c_statistic - 1e-9:
        return 0.0
    return float(brentq(lambda d: concordance(mean, sd, d) - c_statistic, 1e-4, 20, xtol=1e-12, rtol=1e-12))


def concordance(mean: float, sd: float, shift: float) -> float:
    """Return the C-statistic of the risk given a normal logit and a normal proxy of the outcome.

    Parameters
    ----------
    mean, sd : float
        Of the honest logit s, with P(y = 1) = expit(s).
    shift : float
        d: the proxy is N(d y, 1), so the logit becomes s + d proxy - d^2 / 2. 0: no proxy.

    Returns
    -------
    float
        P(a random event has the larger risk than a random non-event), by quadrature.

    Examples
    --------
    >>> round(concordance(0.0, 1e-9, 2.0), 6), round(float(ndtr(2 / 2**0.5)), 6)
    (0.92135, 0.92135)
    """
    score = mean + sd * _NODES
    ones = _MASS * expit(score)
    zeros = _MASS * expit(-score)
    ones, zeros = ones / ones.sum(), zeros / zeros.sum()
    if shift == 0:
        return float(ones @ (np.cumsum(zeros) - zeros / 2))
    # Given y the new logit is normal about s + d^2 / 2 (s - d^2 / 2), with variance d^2.
    lead = sd * (_NODES[1] - _NODES[0]) * np.arange(1 - _NODES.size, _NODES.size)
    pairs = np.convolve(ones, zeros[::-1])  # of s(event) - s(non-event), over the same grid
    return float(pairs @ ndtr((lead + shift**2) / (shift * math.sqrt(2))))


def _mean_for(prevalence: float, sd: float) -> float:
    width = 12 + 9 * sd
    return float(brentq(lambda m: _MASS @ expit(m + sd * _NODES) - prevalence, -width, width, xtol=1e-13))


def _flag(score: NDArray[np.float64], flagged: NDArray[np.int64], sensitivity: float) -> NDArray[np.float64]:
    """Return the risks given a flag that a share of the events and hardly any non-event has."""
    with np.errstate(divide="ignore"):
        new = score + np.log1p(-sensitivity) - math.log1p(-_FALSE_FLAGS)
    if flagged.size:
        new[flagged] = score[flagged] + math.log(sensitivity / _FALSE_FLAGS)
    return expit(new)


def _between(value: object, name: str, low: float, high: float) -> float:
    number = float(as_decimal(value, name=name))
    if not low <= number <= high:
        raise InputError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")
    return number


def _whole(value: Any, name: str, least: int) -> None:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number from {least} up, got {value!r}")
