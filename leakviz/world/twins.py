"""Two models with the same law of predictions and outcomes, one honest, one leaky; and a near-label flag."""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import ks_2samp, kstwobign

from leakviz.arms import logit_normal, proxy_shift, simulate_arms
from leakviz.blind import BlindTest, blind_test
from leakviz.calibration import calibration_curve, recalibrate
from leakviz.decimals import as_decimal
from leakviz.errors import InputError
from leakviz.purity import purity_curve
from leakviz.setting_detail import roc_points

TWINS = ("honest", "leaky", "flag", "recalibrated")
"""The models of `simulate_twins`, in its order."""

_PURITY_POINTS = 400

Array = NDArray[np.float64]


def simulate_twins(
    *,
    n: int = 20_000,
    prevalence: object = "0.1",
    c_statistic: object = "0.65",
    leaky_c_statistic: object = "0.78",
    flag_fraction: object = "0.01",
    beta: object = "1.5",
    seed: int = 0,
) -> xr.Dataset:
    """Simulate four models of which three leak, and what can be seen of it in predictions and outcomes.

    Parameters
    ----------
    n : int, default 20,000
        Records of each model; at least 1,000.
    prevalence : decimal, default 0.1
        Expected share of events, from 0.01 to 0.5.
    c_statistic : decimal, default 0.65
        What an honest model of the leaky twin's features reaches, from 0.55 to 0.95.
    leaky_c_statistic : decimal, default 0.78
        What both twins reach, from `c_statistic` to 0.99.
    flag_fraction : decimal, default 0.01
        Share of all records that the flag marks, each of them an event.
    beta : decimal, default 1.5
        Factor on the logit of the model with the flag: over-confident, as trained models are. From 1 to 2.
    seed : int, default 0

    Returns
    -------
    xarray.Dataset
        Over `model`, `TWINS`:

        - ``honest``: each outcome is drawn from the risk that was predicted for it, so the model knew
          nothing but the risk;
        - ``leaky``: outcomes are drawn from a weaker risk, and the prediction is the risk given a noisy
          proxy of the outcome as well, which exists only after it;
        - ``flag``: risks given a flag that only events have, over-confident (`simulate_arms`);
        - ``recalibrated``: the same after Platt's recalibration on the same data.

        ``p``, ``y`` (model, record); ``c_statistic``, ``c_low``, ``c_high``, ``prevalence``, ``z`` and
        ``spike`` (model), and ``verdict``, ``warn``, as `blind_test` gives them;
        ``false_positive_rate``, ``true_positive_rate`` (model, point);
        ``predicted``, ``observed``, ``observed_low``, ``observed_high`` (model, bin), calibration in
        bins of equal numbers; ``rank``, ``purity`` (model, cut), the purity curve from its first
        record on, thinned, nan behind its end.

        Of the twins, Kolmogorov's distance between their predictions, apart for ``outcome`` 0 and 1:
        ``kolmogorov`` (outcome); ``kolmogorov_p``, how often chance alone makes it as large; and
        ``kolmogorov_limit``, which it stays below in 95 % of draws where both laws are the same, for both
        outcomes together (Bonferroni: 97.5 % for each).

        Attributes: the parameters, and ``k_min``, ``delta``, ``z_alpha`` of the test.

    Raises
    ------
    InputError
        If a parameter is out of range, or as `simulate_arms`.

    Notes
    -----
    arXiv 2606.11267, section 3: what is calibrated and has the same predictions has the same law of
    (p, y), so no function of them tells the twins apart. The proxy is normal with variance 1, so the risk
    given it is known exactly, and both twins' predictions are drawn from its law, each afresh.
    Corollary 2: recalibration takes the dispersion away, and keeps the ranking and with it the head.

    Examples
    --------
    >>> twins = simulate_twins(n=5_000)
    >>> twins.verdict.values.tolist()
    ['not shown', 'not shown', 'leaky', 'leaky']
    >>> twins.warn.sel(model=["flag", "recalibrated"]).values.tolist()
    [True, False]
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1000:
        raise InputError(f"n must be a whole number from 1,000 up, got {n!r}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number from 0 up, got {seed!r}")
    rate = _between(prevalence, "prevalence", 0.01, 0.5)
    weak = _between(c_statistic, "c_statistic", 0.55, 0.95)
    strong = _between(leaky_c_statistic, "leaky_c_statistic", weak, 0.99)
    factor = _between(beta, "beta", 1, 2)
    mean, sd = logit_normal(rate, weak)
    shift = proxy_shift(mean, sd, strong)

    risks: list[Array] = []
    outcomes: list[NDArray[np.int8]] = []
    for number in range(2):
        rng = np.random.default_rng([seed, number])
        score = rng.normal(mean, sd, n)
        happened = (rng.random(n) < expit(score)).astype(np.int8)
        risk = expit(score + shift * rng.normal(shift * happened, 1) - shift**2 / 2)
        risks.append(risk)
        # The honest twin has the same risks, but what happened is drawn from them: they came first.
        outcomes.append((rng.random(n) < risk).astype(np.int8) if number == 0 else happened)
    arms = simulate_arms(
        n=n, prevalence=rate, c_statistic=weak, flag_fraction=flag_fraction, seed=int(seed) + 1
    )
    flagged = expit(factor * logit(arms["p"].sel(arm="deterministic").values))
    marked = arms["y"].values
    risks += [flagged, recalibrate(flagged, marked, method="platt").p]
    outcomes += [marked, marked]

    tests = [blind_test(p, y) for p, y in zip(risks, outcomes, strict=True)]
    answer = xr.Dataset(
        {
            "p": (("model", "record"), np.stack(risks)),
            "y": (("model", "record"), np.stack(outcomes)),
            **_measured(tests),
            **_curves(risks, outcomes),
            **_kolmogorov(risks[:2], outcomes[:2]),
        },
        {"model": list(TWINS), "outcome": [0, 1]},
        {
            "n": int(n),
            "prevalence": rate,
            "c_statistic": weak,
            "leaky_c_statistic": strong,
            "flag_fraction": float(as_decimal(flag_fraction, name="flag_fraction")),
            "beta": factor,
            "seed": int(seed),
            "k_min": tests[0].k_min,
            "delta": tests[0].delta,
            "z_alpha": tests[0].z_alpha,
        },
    )
    return answer


def _measured(tests: list[BlindTest]) -> dict[str, Any]:
    def column(values: list[Any], dtype: Any = np.float64) -> tuple[str, NDArray[Any]]:
        return ("model", np.array([np.nan if v is None else v for v in values], dtype=dtype))

    return {
        "c_statistic": column([t.c_statistic for t in tests]),
        "c_low": column([t.c_low for t in tests]),
        "c_high": column([t.c_high for t in tests]),
        "prevalence": column([t.prevalence for t in tests]),
        "z": column([t.dispersion.z for t in tests]),
        "spike": column([t.spike for t in tests], np.int64),
        "verdict": ("model", [t.verdict for t in tests]),
        "warn": ("model", [t.warn for t in tests]),
    }


def _curves(risks: list[Array], outcomes: list[NDArray[np.int8]]) -> dict[str, Any]:
    roc = [roc_points(p, y == 1, n_points=201) for p, y in zip(risks, outcomes, strict=True)]
    bins = [calibration_curve(p, y) for p, y in zip(risks, outcomes, strict=True)]
    heads = [purity_curve(p, y, max_points=_PURITY_POINTS) for p, y in zip(risks, outcomes, strict=True)]
    rank, purity = (np.full((len(heads), max(h.k.size for h in heads)), np.nan) for _ in range(2))
    for row, head in enumerate(heads):
        rank[row, : head.k.size], purity[row, : head.k.size] = head.k.values, head.purity.values
    return {
        "false_positive_rate": (("model", "point"), np.stack([curve[0] for curve in roc])),
        "true_positive_rate": (("model", "point"), np.stack([curve[1] for curve in roc])),
        "predicted": (("model", "bin"), np.stack([b.predicted.values for b in bins])),
        "observed": (("model", "bin"), np.stack([b.observed.values for b in bins])),
        "observed_low": (("model", "bin"), np.stack([b.low.values for b in bins])),
        "observed_high": (("model", "bin"), np.stack([b.high.values for b in bins])),
        "rank": (("model", "cut"), rank),
        "purity": (("model", "cut"), purity),
    }


def _kolmogorov(risks: list[Array], outcomes: list[NDArray[np.int8]]) -> dict[str, Any]:
    found, limits = [], []
    for outcome in (0, 1):
        first, second = (p[y == outcome] for p, y in zip(risks, outcomes, strict=True))
        found.append(ks_2samp(first, second, method="asymp"))
        scale = np.sqrt(first.size * second.size / (first.size + second.size))
        limits.append(kstwobign.isf(0.05 / 2) / scale)
    return {
        "kolmogorov": ("outcome", np.array([f.statistic for f in found])),
        "kolmogorov_p": ("outcome", np.array([f.pvalue for f in found])),
        "kolmogorov_limit": ("outcome", np.array(limits)),
    }


def _between(value: object, name: str, low: float, high: float) -> float:
    number = float(as_decimal(value, name=name))
    if not low <= number <= high:
        raise InputError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")
    return number
