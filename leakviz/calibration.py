"""Do the predicted risks mean what they say, and what are they worth?

Dispersion, reliability, slope, Brier score, net benefit, and recalibration, which heals the
calibration and leaves the ranking, and with it the head and the C-statistic, as it was.

Functions that end in ``_ranked`` answer from `leakviz.purity.RankedPredictions`, sorted once.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import betainc, betaln, expit, hyp2f1, logit, ndtri

from leakviz.decimals import as_decimal
from leakviz.errors import InputError
from leakviz.purity import RankedPredictions, check_predictions, parts, rank_predictions
from leakviz.statistics import wilson_interval

#: Fewer effective records than this do not make a z.
FEWEST_EFFECTIVE = 30

#: A weight of thresholds: "uniform", ("uniform", low, high) or ("beta", a, b).
Weight = str | tuple[str, float, float]

_GROUPS = 4_000
_ONE = int(np.float64(1).view(np.int64)) << 1


@dataclass(frozen=True)
class Dispersion:
    """The dispersion statistic of one weight.

    Attributes
    ----------
    weight : str
        "unit" (Spiegelhalter's test), "uniform" (the formula of arXiv 2606.11267) or the weight's parameters.
    v : float or None
        Weighted squared residuals over their expectation; 1 is expected of calibrated risks.
        None if no record carries variance.
    z : float or None
        Standard normal for calibrated risks. None if fewer than 30 effective records carry it:
        then it is no test.
    z_raw : float or None
        The same number, not refused: what the formula gives. None only if nothing carries variance.
    effective_records : float
        (sum v)^2 / sum v^2 over the records' variances v: how many equal records would carry as much.
    rows : int
        Records with p strictly between 0 and 1; only these count.
    certain : int
        Records with p = 0 or p = 1, left out, since they carry no variance.
    contradicted_ones, contradicted_zeros : int
        Among them, those with p = 1 and no event; with p = 0 and the event.
    untested : str
        Why `z` is None, in a few words; "" if it is not.
    """

    weight: str
    v: float | None
    z: float | None
    z_raw: float | None
    effective_records: float
    rows: int
    certain: int
    contradicted_ones: int
    contradicted_zeros: int
    untested: str = ""

    @property
    def contradicted(self) -> int:
        """Records whose certainty was wrong: no calibrated prediction has any."""
        return self.contradicted_ones + self.contradicted_zeros


def dispersion(p: ArrayLike, y: ArrayLike, *, weight: Weight = "unit") -> Dispersion:
    """Test whether outcomes scatter about the predicted risks as they should.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    weight : str or tuple, default "unit"
        "unit" weighs all records alike. Any other value is a weight of thresholds as in
        `expected_net_benefit`; "uniform" is the paper's, w = -ln(1 - p), which a few records near 1 carry.

    Returns
    -------
    Dispersion
        V, z and how many records carry them.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`, and for an unknown weight.

    Notes
    -----
    With a = w^2, r = y - p and s^2 = p (1 - p): V = sum a r^2 / sum a s^2 and
    z = sum a (1 - 2 p) r / sqrt(sum a^2 s^2 (1 - 2 p)^2). arXiv 2606.11267, section 2 and appendix B;
    Spiegelhalter, Statistics in Medicine 5 (1986), 421-433. Predictions that were recalibrated
    on the same data do not have a standard normal z.

    Examples
    --------
    >>> result = dispersion([0.2, 0.2, 0.2, 0.2, 0.2], [1, 0, 0, 0, 0])
    >>> round(result.v, 12), round(result.z_raw, 12), result.z is None
    (1.0, 0.0, True)
    """
    return dispersion_ranked(rank_predictions(p, y), weights=(weight,))[0]


def dispersion_ranked(
    ranked: RankedPredictions, *, weights: tuple[Weight, ...] = ("unit", "uniform")
) -> tuple[Dispersion, ...]:
    """As `dispersion`, for several weights in one pass over sorted predictions."""
    low, high = np.searchsorted(ranked.keys, [2, _ONE], side="left")  # p = 0 below, p = 1 from here up
    zeros_wrong = int((ranked.keys[:low] & 1).sum())
    ones_wrong = int(ranked.n - high - (ranked.keys[high:] & 1).sum())
    sums = np.zeros((len(weights), 5))
    inner = ranked.keys[low:high]
    for part in parts(inner.size):
        p = (inner[part] >> 1).view(np.float64)
        residual = (inner[part] & 1) - p
        lean = 1 - 2 * p
        variance = p * (1 - p)
        spread = variance * lean
        spread *= lean
        lean *= residual
        squares = residual * residual
        for i, weight in enumerate(weights):
            if weight == "unit":
                sums[i] += squares.sum(), variance.sum(), lean.sum(), spread.sum(), spread @ spread
            else:
                a = _threshold_weight(p, weight)
                a *= a
                sums[i, :3] += a @ squares, a @ variance, a @ lean
                a *= a
                a *= spread
                sums[i, 3:] += a.sum(), a @ a

    results = []
    for i, weight in enumerate(weights):
        squares, expected, pull, total, total_squares = sums[i]
        effective = total * total / total_squares if total_squares > 0 else 0.0
        z_raw = float(pull / math.sqrt(total)) if total > 0 else None
        name = _weight_name(weight)
        few = f"{effective:.1f} effective records carry the {name} weight, fewer than {FEWEST_EFFECTIVE}"
        results.append(
            Dispersion(
                weight=name,
                v=float(squares / expected) if expected > 0 else None,
                z=z_raw if effective >= FEWEST_EFFECTIVE else None,
                untested="" if effective >= FEWEST_EFFECTIVE else few,
                z_raw=z_raw,
                effective_records=float(effective),
                rows=int(high - low),
                certain=int(ranked.n - (high - low)),
                contradicted_ones=ones_wrong,
                contradicted_zeros=zeros_wrong,
            )
        )
    return tuple(results)


def leak_dispersion_ranked(ranked: RankedPredictions) -> tuple[Dispersion, Dispersion]:
    """Return the dispersion of unit and of uniform weight, as a sign of a leak.

    Parameters
    ----------
    ranked : RankedPredictions
        From `leakviz.purity.rank_predictions`.

    Returns
    -------
    (Dispersion, Dispersion)
        As `dispersion_ranked`; but where every outcome or every prediction is the same, or every prediction is a
        decision, `z` is None: what the formula then gives, `z_raw`, holds the number of events against the sum of the
        risks, and tells no risk from another.

    Examples
    --------
    >>> unit, _ = leak_dispersion_ranked(rank_predictions(np.linspace(0.1, 0.4, 200), np.zeros(200)))
    >>> unit.z, round(unit.z_raw, 1), unit.untested
    (None, -7.5, 'every record lacks the event')
    """
    why = ""
    if ranked.events in (0, ranked.n):
        why = f"every record {'has' if ranked.events else 'lacks'} the event"
    elif ranked.constant:
        why = "every prediction is the same"
    found = dispersion_ranked(ranked)
    if not why and not found[0].rows:
        why = "decisions are no risks"
    unit, uniform = (replace(d, z=None, untested=why) if why else d for d in found)
    return unit, uniform


def net_benefit(p: ArrayLike, y: ArrayLike, thresholds: ArrayLike) -> xr.Dataset:
    """Return the net benefit of acting on p >= threshold, with the two policies that use no prediction.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    thresholds : array-like, shape (t,)
        Each in [0, 1).

    Returns
    -------
    xarray.Dataset
        Over `threshold`:

        - `net_benefit`: true positives / n - false positives / n * threshold / (1 - threshold);
        - `treat_all`, `treat_none`: of acting on everybody and on nobody (0);
        - `standardised`, `treat_all_standardised`: divided by the prevalence (nan without events),
          so that 1 is the best;
        - `positives`, `true_positives`: counts with p >= threshold.

        Attributes: `n`, `events`, `prevalence`.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`, and for a threshold outside [0, 1).

    Notes
    -----
    Vickers and Elkin, Medical Decision Making 26 (2006), 565-574; arXiv 2606.11267, section 2.

    Examples
    --------
    >>> curve = net_benefit([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0], [0, 0.5])
    >>> curve.net_benefit.values.tolist(), curve.treat_all.values.tolist()
    ([0.5, 0.25], [0.5, 0.0])
    """
    return net_benefit_ranked(rank_predictions(p, y), thresholds)


def net_benefit_ranked(ranked: RankedPredictions, thresholds: ArrayLike) -> xr.Dataset:
    """As `net_benefit`, on predictions that `rank_predictions` has sorted; no pass over the rows."""
    try:
        tau = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError("thresholds must be numbers in [0, 1)") from error
    bad = ~((tau >= 0) & (tau < 1))
    if tau.ndim != 1 or bad.any():
        first = (
            f"; first: position {int(np.argmax(bad))} has {tau.flat[int(np.argmax(bad))]}"
            if bad.any()
            else ""
        )
        raise InputError(
            f"thresholds must be a vector of numbers in [0, 1); {np.count_nonzero(bad)} of {tau.size} "
            f"are not{first}"
        )
    positives, hits = ranked.count_at_least(tau)
    odds = tau / (1 - tau)
    benefit = (hits - (positives - hits) * odds) / ranked.n
    everybody = (ranked.events - (ranked.n - ranked.events) * odds) / ranked.n
    scale = ranked.prevalence or math.nan
    return xr.Dataset(
        {
            "net_benefit": ("threshold", benefit, {"long_name": "net benefit"}),
            "treat_all": ("threshold", everybody, {"long_name": "net benefit of acting on everybody"}),
            "treat_none": ("threshold", np.zeros(tau.size), {"long_name": "net benefit of acting on nobody"}),
            "standardised": ("threshold", benefit / scale, {"long_name": "net benefit / prevalence"}),
            "treat_all_standardised": (
                "threshold",
                everybody / scale,
                {"long_name": "the same of everybody"},
            ),
            "positives": ("threshold", positives, {"long_name": "records with p >= threshold"}),
            "true_positives": ("threshold", hits, {"long_name": "events among them"}),
        },
        coords={"threshold": tau},
        attrs={"n": ranked.n, "events": ranked.events, "prevalence": ranked.prevalence},
    )


@dataclass(frozen=True)
class ExpectedNetBenefit:
    """Net benefit, averaged over a weight of thresholds.

    Attributes
    ----------
    weight : str
        Name and parameters of the weight.
    value, low, high : float
        Of the predictions, with its 95 % interval (normal, records independent; nan for one record).
    treat_all : float
        Of acting on everybody; -inf where the weight reaches up to 1 without vanishing there.
        Acting on nobody has 0.
    standardised : float or None
        value / prevalence; None without events.
    """

    weight: str
    value: float
    low: float
    high: float
    treat_all: float
    standardised: float | None


def expected_net_benefit(p: ArrayLike, y: ArrayLike, *, weight: Weight = "uniform") -> ExpectedNetBenefit:
    """Return the net benefit averaged over thresholds.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    weight : str or tuple, default "uniform"
        The density of thresholds: "uniform" on (0, 1); ("uniform", low, high), 0 <= low < high <= 1;
        or ("beta", a, b), both above 0.

    Returns
    -------
    ExpectedNetBenefit
        -inf where a prediction of 1 without the event meets a weight that reaches up to 1.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`, and for an unknown weight.

    Notes
    -----
    arXiv 2606.11267, equation 1: the mean of y H(p) - (1 - y) G(p), with H the integral of the weight up
    to p, and G that of weight times odds; both in closed form.

    Examples
    --------
    >>> import math
    >>> result = expected_net_benefit([0.5, 0.5], [1, 0])
    >>> round(result.value, 6), round((0.5 - (math.log(2) - 0.5)) / 2, 6), result.treat_all
    (0.153426, 0.153426, -inf)
    """
    risks, outcomes = check_predictions(p, y)
    gain, loss = _integrals(risks, weight)
    each = np.where(outcomes == 1, gain, -loss)
    value = float(each.mean())
    half = math.nan
    if each.size > 1 and math.isfinite(value):
        half = float(-ndtri(0.025) * each.std(ddof=1) / math.sqrt(each.size))
    all_gain, all_loss = (float(part[0]) for part in _integrals(np.ones(1), weight))
    prevalence = float(outcomes.mean())
    treat_all = prevalence * all_gain - ((1 - prevalence) * all_loss if prevalence < 1 else 0.0)
    return ExpectedNetBenefit(
        weight=_weight_name(weight),
        value=value,
        low=value - half,
        high=value + half,
        treat_all=treat_all,
        standardised=value / prevalence if prevalence > 0 else None,
    )


def sweep_expected_net_benefit(p: ArrayLike, y: ArrayLike, *, weights: Iterable[Weight]) -> xr.Dataset:
    """Return `expected_net_benefit` for many weights of thresholds.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    weights : iterable of weights
        Each as `expected_net_benefit` takes it.

    Returns
    -------
    xarray.Dataset
        Over `weight` (its name): `value`, `low`, `high`, `treat_all`, `standardised`.

    Raises
    ------
    InputError
        As `expected_net_benefit`.

    Notes
    -----
    Each record is shared out between the two nearest of some 4,000 risks, which lie closer towards 0 and 1
    and include the ends of uniform weights. This moves a value by less than a millionth, as long as
    no prediction is nearer to 1 than a thousandth where the weight reaches up to 1.

    Examples
    --------
    >>> table = sweep_expected_net_benefit([0.5, 0.5], [1, 0], weights=[("uniform", 0, 0.5), ("beta", 2, 2)])
    >>> table.value.values.round(4).tolist(), table.weight.values.tolist()
    ([0.3069, 0.125], ['uniform(0, 0.5)', 'beta(2, 2)'])
    """
    return sweep_expected_net_benefit_ranked(rank_predictions(p, y), weights=weights)


def sweep_expected_net_benefit_ranked(ranked: RankedPredictions, *, weights: Iterable[Weight]) -> xr.Dataset:
    """As `sweep_expected_net_benefit`, on predictions that `rank_predictions` has sorted."""
    chosen = list(weights)
    read = [_read_weight(weight) for weight in chosen]
    ends = [end for kind, *both in read if kind == "uniform" for end in both]
    nodes = np.unique(np.concatenate([(1 - np.cos(np.linspace(0, np.pi, 4001))) / 2, ends]))
    p, outcome = ranked.predictions(), ranked.outcomes()
    left = np.clip(np.searchsorted(nodes, p, side="right") - 1, 0, nodes.size - 2)
    share = (p - nodes[left]) / (nodes[left + 1] - nodes[left])
    of = []
    for kind in (1, 0):
        here = outcome == kind
        of.append(
            np.bincount(left[here], 1 - share[here], nodes.size)
            + np.bincount(left[here] + 1, share[here], nodes.size)
        )
    events, others = of
    seen = others > 0  # a loss that is infinite counts only where somebody bears it

    columns = np.empty((5, len(chosen)))
    for i, weight in enumerate(chosen):
        gain, loss = _integrals(nodes, weight)
        value = float(events @ gain - others[seen] @ loss[seen]) / ranked.n
        half = math.nan
        if ranked.n > 1 and math.isfinite(value):
            squares = float(events @ gain**2 + others[seen] @ loss[seen] ** 2)
            variance = max(0.0, squares - ranked.n * value**2) / (ranked.n - 1)
            half = float(-ndtri(0.025)) * math.sqrt(variance / ranked.n)
        rate = ranked.prevalence
        everybody = rate * gain[-1] - ((1 - rate) * loss[-1] if rate < 1 else 0.0)
        columns[:, i] = value, value - half, value + half, everybody, value / rate if rate else math.nan
    names = ("value", "low", "high", "treat_all", "standardised")
    return xr.Dataset(
        {name: ("weight", column) for name, column in zip(names, columns, strict=True)},
        coords={"weight": [_weight_name(weight) for weight in chosen]},
        attrs={"n": ranked.n, "events": ranked.events, "prevalence": ranked.prevalence},
    )


def calibration_curve(
    p: ArrayLike, y: ArrayLike, *, n_bins: int = 10, strategy: str = "quantile", level: object = 0.95
) -> xr.Dataset:
    """Return the share of events in bins of the predicted risk.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    n_bins : int, default 10
        From 1 up.
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equal number of records, or of equal width. Records with the same prediction stay
        together, so "quantile" bins may differ in size, and either kind may be empty.
    level : decimal, default 0.95
        Confidence of the bars.

    Returns
    -------
    xarray.Dataset
        Over `bin`, 0 to n_bins - 1: `n`, `events`, `p_min`, `p_max`, `predicted` (mean), `observed`
        (share of events), `low` and `high` (Wilson). Empty bins stay, with n = 0 and nan.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`, and for a bad `n_bins`, `strategy` or `level`.

    Notes
    -----
    A tie block at a quantile goes to the side that is nearer in records. Wilson, JASA 22 (1927), 209-212.

    Examples
    --------
    >>> curve = calibration_curve([0.1, 0.1, 0.8, 0.9], [0, 1, 1, 1], n_bins=2)
    >>> curve.predicted.values.round(2).tolist(), curve.observed.values.tolist()
    ([0.1, 0.85], [0.5, 1.0])
    """
    swept = sweep_calibration_ranked(
        rank_predictions(p, y), n_bins=[n_bins], strategies=[strategy], level=level
    )
    return swept.isel(n_bins=0, strategy=0, drop=True)


def sweep_calibration(
    p: ArrayLike,
    y: ArrayLike,
    *,
    n_bins: Iterable[int] = range(5, 51),
    strategies: Iterable[str] = ("quantile", "uniform"),
    level: object = 0.95,
) -> xr.Dataset:
    """Return `calibration_curve` for every stop of the slider for the number of bins.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    n_bins : iterable of int, default 5 to 50
        Numbers of bins.
    strategies : iterable of str
        "quantile", "uniform" or both.
    level : decimal, default 0.95
        Confidence of the bars.

    Returns
    -------
    xarray.Dataset
        The variables of `calibration_curve` over (`strategy`, `n_bins`, `bin`); bins that a stop does not
        have are empty.

    Raises
    ------
    InputError
        As `calibration_curve`.

    Examples
    --------
    >>> table = sweep_calibration([0.1, 0.1, 0.8, 0.9], [0, 1, 1, 1], n_bins=[1, 2])
    >>> table.n.sel(strategy="quantile").values.tolist()
    [[4, 0], [2, 2]]
    """
    return sweep_calibration_ranked(rank_predictions(p, y), n_bins=n_bins, strategies=strategies, level=level)


def sweep_calibration_ranked(
    ranked: RankedPredictions,
    *,
    n_bins: Iterable[int] = range(5, 51),
    strategies: Iterable[str] = ("quantile", "uniform"),
    level: object = 0.95,
) -> xr.Dataset:
    """As `sweep_calibration`, on predictions that `rank_predictions` has sorted."""
    counts, names = list(n_bins), list(strategies)
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise InputError(f"n_bins must be a whole number from 1 up, got {count!r}")
    for name in names:
        if name not in ("quantile", "uniform"):
            raise InputError(f"strategy must be 'quantile' or 'uniform', got {name!r}")
    p = ranked.predictions()
    p_sum = np.append(0.0, np.cumsum(p))
    shape = (len(names), len(counts), max(counts, default=0))
    first = np.full(shape, ranked.n, dtype=np.int64)
    last = first.copy()
    for i, name in enumerate(names):
        for j, count in enumerate(counts):
            edges = _bin_edges(ranked, p, count, name)
            first[i, j, :count], last[i, j, :count] = edges[:-1], edges[1:]
    n = last - first
    events = ranked.events_above(ranked.n - first) - ranked.events_above(ranked.n - last)
    filled = n > 0
    size = np.maximum(n, 1)

    def where_filled(values: NDArray) -> NDArray[np.float64]:
        return np.where(filled, values, np.nan)

    p_min = where_filled(p[np.minimum(first, ranked.n - 1)])
    p_max = where_filled(p[np.maximum(last, 1) - 1])
    mean = np.clip((p_sum[last] - p_sum[first]) / size, p_min, p_max)  # rounding must not leave the bin
    low, high = wilson_interval(events, n, level=level)  # type: ignore[arg-type]
    dims = ("strategy", "n_bins", "bin")
    return xr.Dataset(
        {
            "n": (dims, n, {"long_name": "records"}),
            "events": (dims, events, {"long_name": "events"}),
            "p_min": (dims, p_min, {"long_name": "smallest predicted risk"}),
            "p_max": (dims, p_max, {"long_name": "largest predicted risk"}),
            "predicted": (dims, mean, {"long_name": "mean predicted risk"}),
            "observed": (dims, where_filled(events / size), {"long_name": "share of events"}),
            "low": (dims, low, {"long_name": "Wilson interval, lower end"}),
            "high": (dims, high, {"long_name": "Wilson interval, upper end"}),
        },
        coords={"strategy": names, "n_bins": counts, "bin": np.arange(shape[2])},
        attrs={"n": ranked.n, "events": ranked.events, "prevalence": ranked.prevalence},
    )


def _bin_edges(
    ranked: RankedPredictions, p: NDArray[np.float64], count: int, strategy: str
) -> NDArray[np.int64]:
    """Return the positions, in ascending order of p, at which bins begin and end: count + 1 of them."""
    if strategy == "uniform":
        inner = np.searchsorted(p, np.arange(1, count) / count, side="left")
    else:
        target = np.arange(1, count) * ranked.n // count
        below = np.searchsorted(p, p[target], side="left")
        above = np.searchsorted(p, p[target], side="right")
        inner = np.where(target - below <= above - target, below, above)
    return np.concatenate(([0], inner, [ranked.n])).astype(np.int64)


def isotonic_curve(
    p: ArrayLike, y: ArrayLike, *, n_resamples: int = 200, level: object = 0.95, seed: int = 0
) -> xr.Dataset:
    """Return the isotonic reliability curve (CORP), with the band in which calibrated risks would lie.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    n_resamples : int, default 200
        Draws for the band; 0 leaves it nan.
    level : decimal, default 0.95
        Share of the draws in the band, at each p.
    seed : int, default 0
        Of the draws.

    Returns
    -------
    xarray.Dataset
        Over `step`, ascending, the constant pieces of the curve: `p_min`, `p_max`, `recalibrated` (share
        of events), `n`, `events`. Over `p`, at most 200 predictions: `band_low`, `band_high`.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`, and for bad options.

    Notes
    -----
    Dimitriadis, Gneiting and Jordan, PNAS 118 (2021), e2016191118. The curve is exact. The band is that
    of consistency: outcomes drawn from the predicted risks themselves. For it, neighbouring predictions
    are pooled into at most 4,000 groups.

    Examples
    --------
    >>> curve = isotonic_curve([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], n_resamples=0)
    >>> curve.recalibrated.values.tolist(), curve.p_max.values.tolist()
    ([0.0, 0.5, 1.0], [0.1, 0.3, 0.4])
    """
    return isotonic_curve_ranked(rank_predictions(p, y), n_resamples=n_resamples, level=level, seed=seed)


def isotonic_curve_ranked(
    ranked: RankedPredictions, *, n_resamples: int = 200, level: object = 0.95, seed: int = 0
) -> xr.Dataset:
    """As `isotonic_curve`, on predictions that `rank_predictions` has sorted."""
    confidence = _open_unit(level, "level")
    _check_resamples(n_resamples)
    group = _pool(ranked, ranked.n)
    fit = isotonic_regression(group.events / group.n, weights=group.n)
    first = fit.blocks[:-1]
    n = np.add.reduceat(group.n, first)
    events = np.add.reduceat(group.events, first)

    coarse = _pool(ranked, _GROUPS)
    at = np.unique(np.linspace(0, coarse.n.size - 1, 200).round().astype(int))
    draws = np.full((max(n_resamples, 1), at.size), np.nan)
    rng = np.random.default_rng(seed)
    for i in range(n_resamples):
        drawn = rng.binomial(coarse.n, coarse.p_mean) / coarse.n
        draws[i] = isotonic_regression(drawn, weights=coarse.n).x[at]
    band = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return xr.Dataset(
        {
            "p_min": ("step", group.p_min[first], {"long_name": "smallest predicted risk"}),
            "p_max": ("step", group.p_max[fit.blocks[1:] - 1], {"long_name": "largest predicted risk"}),
            "recalibrated": ("step", events / n, {"long_name": "share of events"}),
            "n": ("step", n, {"long_name": "records"}),
            "events": ("step", events, {"long_name": "events"}),
            "band_low": ("p", band[0], {"long_name": "lower end for calibrated risks"}),
            "band_high": ("p", band[1], {"long_name": "upper end for calibrated risks"}),
        },
        coords={"p": coarse.p_mean[at]},
        attrs={"n": ranked.n, "events": ranked.events, "prevalence": ranked.prevalence},
    )


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; all three None where the data do not determine it.

    Attributes
    ----------
    value, low, high : float or None
        Estimate and the ends of its interval.
    """

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class CalibrationSummary:
    """Calibration in numbers, each named by what it estimates.

    Attributes
    ----------
    calibration_in_the_large : Estimate
        Intercept of a logistic model for y with logit p as an offset (slope fixed at 1): 0 for
        calibrated risks; above 0, the risks are too low on the whole.
    slope : Estimate
        Slope of a logistic model for y on logit p: 1 for calibrated risks; below 1, too extreme.
    slope_intercept : Estimate
        The intercept of that same model, at logit p = 0; not calibration-in-the-large.
    observed_minus_expected : Estimate
        Share of events less mean prediction.
    brier : Estimate
        Mean of (y - p)^2.
    miscalibration, discrimination : Estimate
        Of the CORP decomposition, brier = miscalibration - discrimination + uncertainty. Bootstrap
        percentiles; for these two the interval can miss the value, which isotonic fits push up.
    uncertainty : Estimate
        prevalence (1 - prevalence).
    left_out : int
        Records with p = 0 or 1, whose logit is infinite: not in the first three.
    level : float
        Confidence of the intervals.
    """

    calibration_in_the_large: Estimate
    slope: Estimate
    slope_intercept: Estimate
    observed_minus_expected: Estimate
    brier: Estimate
    miscalibration: Estimate
    discrimination: Estimate
    uncertainty: Estimate
    left_out: int
    level: float


def calibration_summary(
    p: ArrayLike, y: ArrayLike, *, level: object = 0.95, n_resamples: int = 200, seed: int = 0
) -> CalibrationSummary:
    """Return slope, intercepts and Brier score with its decomposition, each with an interval.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    level : decimal, default 0.95
        Confidence.
    n_resamples : int, default 200
        Bootstrap draws for the decomposition; 0 leaves its intervals None.
    seed : int, default 0
        Of the draws.

    Returns
    -------
    CalibrationSummary
        None stands where the data do not determine a number: one class, or outcomes that the
        predictions separate completely.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`, and for bad options.

    Notes
    -----
    Van Calster et al., BMC Medicine 17 (2019), 230, name the estimands. Maximum likelihood with Wald
    intervals; mean differences with normal intervals; the decomposition (Dimitriadis, Gneiting and
    Jordan, PNAS 118 (2021), e2016191118) is exact, its intervals resample records pooled into at most
    4,000 groups of neighbours.

    Examples
    --------
    >>> summary = calibration_summary([0.2] * 5 + [0.8] * 5, [1, 0, 0, 0, 0, 1, 1, 1, 1, 0])
    >>> round(summary.slope.value, 6), abs(round(summary.calibration_in_the_large.value, 6))
    (1.0, 0.0)
    >>> [round(part.value, 3) for part in (summary.brier, summary.miscalibration, summary.discrimination)]
    [0.16, 0.0, 0.09]
    """
    return calibration_summary_ranked(rank_predictions(p, y), level=level, n_resamples=n_resamples, seed=seed)


def calibration_summary_ranked(
    ranked: RankedPredictions, *, level: object = 0.95, n_resamples: int = 200, seed: int = 0
) -> CalibrationSummary:
    """As `calibration_summary`, on predictions that `rank_predictions` has sorted."""
    confidence = _open_unit(level, "level")
    _check_resamples(n_resamples)
    z = float(ndtri((1 + confidence) / 2))
    p, y = ranked.predictions(), ranked.outcomes()
    inside = (p > 0) & (p < 1)
    x, y_inside = logit(p[inside]), y[inside]

    nothing = Estimate(None, None, None)
    in_the_large = slope = slope_intercept = nothing
    if _mixed(y_inside):
        in_the_large = _wald(*_fit_logistic(x, y_inside, fixed_slope=True), 0, z)
        fit = None if _separated(x, y_inside) else _fit_logistic(x, y_inside)
        if fit is not None:
            slope_intercept, slope = _wald(*fit, 0, z), _wald(*fit, 1, z)

    residual = y - p
    groups = _pool(ranked, ranked.n)
    isotonic = isotonic_regression(groups.events / groups.n, weights=groups.n).x
    best = _within_brier(groups.n, groups.events, isotonic) / ranked.n
    brier = float((residual**2).mean())
    uncertainty = ranked.prevalence * (1 - ranked.prevalence)
    drawn = _resampled_parts(_pool(ranked, _GROUPS), n_resamples, seed) if n_resamples else np.empty((0, 3))

    def resampled(value: float, column: int) -> Estimate:
        if n_resamples == 0:
            return Estimate(value, None, None)
        low, high = np.quantile(drawn[:, column], [(1 - confidence) / 2, (1 + confidence) / 2])
        return Estimate(value, float(low), float(high))

    return CalibrationSummary(
        calibration_in_the_large=in_the_large,
        slope=slope,
        slope_intercept=slope_intercept,
        observed_minus_expected=_mean(residual, z),
        brier=_mean(residual**2, z),
        miscalibration=resampled(max(0.0, brier - best), 0),
        discrimination=resampled(max(0.0, uncertainty - best), 1),
        uncertainty=resampled(uncertainty, 2),
        left_out=int(np.count_nonzero(~inside)),
        level=confidence,
    )


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Predictions after recalibration, and on what it was fitted.

    Attributes
    ----------
    p : numpy.ndarray of float64, shape (n,)
        New predictions, in the order of the rows given; read-only.
    method : str
        "none", "platt" or "isotonic".
    fitted_on : str
        "nothing", "same data" or "other folds".
    note : str
        What this means for a reader.
    """

    p: NDArray[np.float64]
    method: str
    fitted_on: str
    note: str


def recalibrate(
    p: ArrayLike, y: ArrayLike, *, method: str = "platt", folds: ArrayLike | None = None
) -> Recalibrated:
    """Recalibrate predictions, as an honest author would, or one who launders a leak.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    method : {"none", "platt", "isotonic"}, default "platt"
        "platt" fits a logistic model on logit p; predictions of exactly 0 or 1 keep their value.
        "isotonic" fits a non-decreasing curve.
    folds : array-like, shape (n,), optional
        A fold for each row. With it, each fold is recalibrated by a fit on the others.

    Returns
    -------
    Recalibrated
        The new predictions and the label of how they were made.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`; for an unknown method; if `folds` has missing values, another
        length or a single fold; or if the rows for a fit have one class only or, for "platt",
        are separated completely by p.

    Notes
    -----
    arXiv 2606.11267, corollary 2: a fit on the same data leaves ranking, C and head as they were (isotonic
    can merge neighbours into ties) and takes the dispersion signal away. Cross-fitting can
    reorder rows of different folds a little.

    Examples
    --------
    >>> result = recalibrate([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 1], method="isotonic")
    >>> result.p.tolist(), result.fitted_on
    ([0.5, 0.5, 0.5, 0.5], 'same data')
    """
    risks, outcomes = check_predictions(p, y)
    if method not in ("none", "platt", "isotonic"):
        raise InputError(f"method must be 'none', 'platt' or 'isotonic', got {method!r}")
    fitted_on, note = "nothing", "as given"
    new = risks.copy()
    if method != "none" and folds is None:
        fitted_on = "same data"
        note = (
            "fitted on the same data: z is no standard normal here, and calibration looks better than it is"
        )
        new = _recalibrate(risks, outcomes, risks, method, "all rows")
    elif method != "none":
        fitted_on, note = "other folds", "each fold by a fit on the others"
        fold, names = _check_folds(folds, risks.size)
        for i, name in enumerate(names):
            here = fold == i
            new[here] = _recalibrate(
                risks[~here], outcomes[~here], risks[here], method, f"all folds but {name}"
            )
    new.flags.writeable = False
    return Recalibrated(p=new, method=method, fitted_on=fitted_on, note=note)


def _recalibrate(
    p: NDArray[np.float64], y: NDArray[np.uint8], new: NDArray[np.float64], method: str, rows: str
) -> NDArray[np.float64]:
    if not _mixed(y):
        raise InputError(f"y has only one class in {rows}, so nothing can be fitted there; give other folds")
    if method == "isotonic":
        order = np.argsort(p, kind="stable")
        values, first, n = np.unique(p[order], return_index=True, return_counts=True)
        fit = isotonic_regression(np.add.reduceat(y[order].astype(np.float64), first) / n, weights=n)
        return np.clip(np.interp(new, values, fit.x), 0.0, 1.0)
    inside = (p > 0) & (p < 1)
    x, y_inside = logit(p[inside]), y[inside]
    if not _mixed(y_inside) or _separated(x, y_inside):
        raise InputError(
            f"p separates y completely in {rows}, or is 0 or 1 for all of one class: no logistic curve fits; "
            "use method='isotonic'"
        )
    (intercept, slope), _ = _fit_logistic(x, y_inside)
    return np.where((new > 0) & (new < 1), expit(intercept + slope * logit(new)), new)


def _check_folds(folds: ArrayLike | None, rows: int) -> tuple[NDArray[np.int64], NDArray]:
    array = np.asarray(folds)
    if array.shape != (rows,):
        raise InputError(f"folds must have one value per row, got the shape {array.shape} for {rows} rows")
    missing = np.asarray(pd.isna(array))
    if missing.any():
        raise InputError(
            f"folds is missing in {np.count_nonzero(missing)} of {rows} rows; "
            f"first: row {int(np.argmax(missing))}; give every row a fold"
        )
    codes, names = pd.factorize(array)
    if len(names) < 2:
        raise InputError(f"folds must hold at least two folds, got only {names[0]!r}")
    return codes, np.asarray(names)


def _threshold_weight(p: NDArray[np.float64], weight: Weight) -> NDArray[np.float64]:
    if weight == "uniform":
        left = 1 - p  # -log1p(-p), to the last digits, in half of the time
        lost = left - 1
        lost += p
        lost /= left
        return np.subtract(lost, np.log(left), out=lost)
    gain, loss = _integrals(p, weight)
    return gain + loss


def _integrals(p: NDArray[np.float64], weight: Weight) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return H and G of equation 1 at p: the integrals of the weight, and of the weight times the odds."""
    kind, first, second = _read_weight(weight)
    with np.errstate(divide="ignore"):  # G is infinite at 1 for a weight that does not vanish there
        if kind == "uniform":
            inside = np.clip(p, first, second)
            width = second - first
            return (inside - first) / width, (
                _odds_integral(inside) - _odds_integral(np.array(first))
            ) / width
        gain = betainc(first, second, p)
        if second > 1:
            return gain, first / (second - 1) * betainc(first + 1, second - 1, p)
        # B(p; a + 1, b - 1) as a hypergeometric function, for b <= 1
        below = np.minimum(p, np.nextafter(1, 0))
        scale = np.exp(-betaln(first, second)) / (first + 1)
        loss = scale * below ** (first + 1) * hyp2f1(first + 1, 2 - second, first + 2, below)
        return gain, np.where(p < 1, loss, np.inf)


def _odds_integral(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return -np.log1p(-p) - p


def _read_weight(weight: Weight) -> tuple[str, float, float]:
    if weight == "uniform":
        return "uniform", 0.0, 1.0
    if isinstance(weight, (tuple, list)) and len(weight) == 3 and weight[0] in ("uniform", "beta"):
        kind = str(weight[0])
        first, second = (float(as_decimal(value, name="weight")) for value in weight[1:])
        if kind == "uniform" and 0 <= first < second <= 1:
            return kind, first, second
        if kind == "beta" and first > 0 and second > 0:
            return kind, first, second
    raise InputError(
        "weight must be 'uniform', ('uniform', low, high) with 0 <= low < high <= 1, or ('beta', a, b) with "
        f"a and b above 0 (dispersion also takes 'unit'), got {weight!r}"
    )


def _weight_name(weight: Weight) -> str:
    if isinstance(weight, str):
        return weight
    kind, first, second = _read_weight(weight)
    return f"{kind}({first:g}, {second:g})"


def _mixed(y: NDArray[np.uint8]) -> bool:
    return bool(y.size) and 0 < int(y.sum(dtype=np.int64)) < y.size


def _separated(x: NDArray[np.float64], y: NDArray[np.uint8]) -> bool:
    ones, zeros = x[y == 1], x[y == 0]
    return bool(ones.min() >= zeros.max() or ones.max() <= zeros.min())


def _fit_logistic(
    x: NDArray[np.float64], y: NDArray[np.uint8], *, fixed_slope: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit P(y = 1) = expit(intercept + slope x) by Newton's method; return coefficients and covariance."""
    beta = np.array([0.0, 1.0])
    free = 1 if fixed_slope else 2
    deviance = _deviance(beta, x, y)
    for _ in range(100):
        mean = expit(beta[0] + beta[1] * x)
        weight = mean * (1 - mean)
        residual = y - mean
        gradient = np.array([residual.sum(), residual @ x])[:free]
        weighted = weight @ x
        information = np.array([[weight.sum(), weighted], [weighted, (weight * x) @ x]])[:free, :free]
        step = np.linalg.lstsq(information, gradient, rcond=None)[0]
        for _ in range(40):  # halve a step that leads uphill
            trial = beta.copy()
            trial[:free] += step
            trial_deviance = _deviance(trial, x, y)
            if trial_deviance <= deviance + 1e-12 * abs(deviance):
                break
            step = step / 2
        beta, deviance = trial, trial_deviance
        if np.abs(step).max() < 1e-10:
            break
    return beta[:2], np.linalg.pinv(information)


def _deviance(beta: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.uint8]) -> float:
    eta = beta[0] + beta[1] * x
    return float(np.logaddexp(0, eta).sum() - eta[y == 1].sum())


def _wald(beta: NDArray[np.float64], covariance: NDArray[np.float64], which: int, z: float) -> Estimate:
    half = z * math.sqrt(covariance[which, which])
    return Estimate(float(beta[which]), float(beta[which] - half), float(beta[which] + half))


def _mean(values: NDArray[np.float64], z: float) -> Estimate:
    mean = float(values.mean())
    if values.size < 2:
        return Estimate(mean, None, None)
    half = z * float(values.std(ddof=1)) / math.sqrt(values.size)
    return Estimate(mean, mean - half, mean + half)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Neighbours in p, pooled; tied predictions are never parted."""

    n: NDArray[np.int64]
    events: NDArray[np.int64]
    p_min: NDArray[np.float64]
    p_max: NDArray[np.float64]
    p_mean: NDArray[np.float64]
    event_brier: NDArray[np.float64]
    other_brier: NDArray[np.float64]


def _pool(ranked: RankedPredictions, most: int) -> _Groups:
    cuts, _ = ranked.cuts()
    first = ranked.n - cuts[::-1]  # ascending positions at which tie blocks begin
    if first.size > most:
        target = np.arange(most) * ranked.n // most
        first = np.unique(first[np.searchsorted(first, target, side="right") - 1])
    end = np.append(first[1:], ranked.n)
    p, y = ranked.predictions(), ranked.outcomes().astype(np.float64)
    n = np.diff(np.append(first, ranked.n))
    return _Groups(
        n=n,
        events=np.add.reduceat(y, first).astype(np.int64),
        p_min=p[first],
        p_max=p[end - 1],
        p_mean=np.clip(np.add.reduceat(p, first) / n, p[first], p[end - 1]),
        event_brier=np.add.reduceat(y * (1 - p) ** 2, first),
        other_brier=np.add.reduceat((1 - y) * p**2, first),
    )


def _within_brier(n: NDArray, events: NDArray, fitted: NDArray[np.float64]) -> float:
    return float((events * (1 - fitted) ** 2 + (n - events) * fitted**2).sum())


def _resampled_parts(group: _Groups, n_resamples: int, seed: int) -> NDArray[np.float64]:
    """Resample records; return miscalibration, discrimination and uncertainty of each draw."""
    rng = np.random.default_rng(seed)
    cells = np.concatenate([group.events, group.n - group.events])
    brier = np.concatenate([group.event_brier, group.other_brier]) / np.maximum(cells, 1)
    total = int(group.n.sum())
    parts = np.empty((n_resamples, 3))
    for i in range(n_resamples):
        drawn = rng.multinomial(total, cells / total)
        events, others = np.split(drawn, 2)
        n = events + others
        some = n > 0
        fitted = isotonic_regression(events[some] / n[some], weights=n[some]).x
        best = _within_brier(n[some], events[some], fitted) / total
        rate = events.sum() / total
        uncertainty = rate * (1 - rate)
        parts[i] = max(0.0, float(drawn @ brier) / total - best), max(0.0, uncertainty - best), uncertainty
    return parts


def _open_unit(value: Any, name: str) -> float:
    number = as_decimal(value, name=name)
    if not 0 < number < 1:
        raise InputError(f"{name} must be above 0 and below 1, got {value!r}")
    return float(number)


def _check_resamples(n_resamples: int) -> None:
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, (int, np.integer)) or n_resamples < 0:
        raise InputError(f"n_resamples must be a whole number from 0 up, got {n_resamples!r}")
