"""The calibration page: do the risks mean what they say, and what does recalibration hide?

Source: arXiv 2606.11267, sections 2, 5 and 7.1. The core answers, the figures draw, this page arranges.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import param
import xarray as xr
from scipy.special import betaincinv

import leakviz
from dashboards import theme
from dashboards.cards import Downloads, card, downloads, helped
from dashboards.figures import calibration as figures
from dashboards.figures.calibration import FITS, METHODS, SCALES, signed
from dashboards.live import Attribute, Column, Live, Slider, words
from dashboards.markup import headline, link_note, markup
from dashboards.shelf import OWN, SIMULATED, ArmSettings, Shelf, Vector, VectorState, simulated
from dashboards.state import asked_of
from dashboards.stencil import figure_pane
from leakviz.blind import concordance_ranked
from leakviz.calibration import (
    CalibrationSummary,
    Dispersion,
    Estimate,
    calibration_summary_ranked,
    isotonic_curve_ranked,
    leak_dispersion_ranked,
    net_benefit_ranked,
    sweep_calibration_ranked,
    sweep_expected_net_benefit_ranked,
)
from leakviz.purity import Spike, spike_ranked

TITLE = "Calibration"
DEFAULT = SIMULATED + "miscalibrated"  # it changes most when it is recalibrated
DELTA = "0.05"
START: dict[str, Any] = {
    "method": "none",
    "fit": "same",
    "bins": 10,
    "strategy": "quantile",
    "zoom": "records",
    "low": 0.0,
    "high": 0.3,
    "scale": "plain",
    "eta": "uniform",
    "a": 2.0,
    "b": 20.0,
}
RECALIBRATIONS = {"none": "as given", "platt": "Platt", "isotonic": "isotonic"}
FITTED = {"folds": "the other folds", "same": "the same data"}
ZOOM = {"records": "where the records are", "all": "0 to 1"}
SCALE = {"plain": "per record", "standardised": "standardised"}
ETA = {"uniform": "uniform on the range", "beta": "beta"}
PAPER = '<a href="https://arxiv.org/abs/2606.11267">arXiv 2606.11267</a>'

# Estimates in the table: key, what it is called, what would be right.
ESTIMATES = (
    ("slope", "slope, logistic on logit p", "1"),
    ("slope_intercept", "intercept of that model", "0"),
    ("calibration_in_the_large", "calibration-in-the-large, slope 1", "0"),
    ("observed_minus_expected", "observed − expected", "0"),
    ("brier", "Brier score", "small"),
    ("miscalibration", "miscalibration", "0"),
    ("discrimination", "− discrimination", "large"),
    ("uncertainty", "+ uncertainty", ""),
)
PENDING = "…"
_AT_ONCE = 20_000  # rows that are answered in full while one waits
_UNIFORM = [
    ("uniform", *figures.threshold_range(low, high))
    for i, low in enumerate(figures.ENDS)
    for high in figures.ENDS[i + 1 :]
]
_BETA = [("beta", float(a), float(b)) for a in figures.BETA_A for b in figures.BETA_B]
_WEIGHTS: list[Any] = [*_UNIFORM, *_BETA]


class CalibrationState(VectorState):
    """What a link to this page carries."""

    vector: Any = param.Selector(default=DEFAULT, objects=[DEFAULT], label="predictions")
    method: Any = param.Selector(default=START["method"], objects=list(METHODS), label="recalibration")
    fit: Any = param.Selector(default=START["fit"], objects=list(FITS), label="fitted on")
    bins = param.Number(START["bins"], label="bins")
    strategy: Any = param.Selector(
        default=START["strategy"], objects=list(figures.STRATEGIES), label="kind of bins"
    )
    zoom: Any = param.Selector(default=START["zoom"], objects=list(figures.ZOOMS), label="axes")
    low = param.Number(START["low"], label="threshold from")
    high = param.Number(START["high"], label="threshold to")
    scale: Any = param.Selector(default=START["scale"], objects=list(SCALES), label="net benefit")
    eta: Any = param.Selector(default=START["eta"], objects=list(figures.ETAS), label="weight eta")
    a = param.Number(START["a"], label="beta a")
    b = param.Number(START["b"], label="beta b")

    chooses = ("vector",)
    stops = {
        "bins": figures.BINS,
        "low": figures.ENDS,
        "high": figures.ENDS,
        "a": figures.BETA_A,
        "b": figures.BETA_B,
    }

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen."""
        menus = {"method": RECALIBRATIONS, "fit": FITTED, "zoom": ZOOM, "scale": SCALE, "eta": ETA}
        return menus[name].get(value, str(value)) if name in menus else super().title(name, value)

    def _read(self, query: str) -> list[str]:
        told = super()._read(query)
        low, high = figures.threshold_range(self.low, self.high)
        if {"low", "high"} & set(asked_of(query)) and (low, high) != (self.low, self.high):
            told.append(
                f"The link asks for thresholds from {self.low:g} to {self.high:g}; {low:g} to {high:g} are shown."
            )
        return told


@dataclass(frozen=True, eq=False)
class Reading:
    """What the core says of one vector after one recalibration.

    Attributes
    ----------
    fitted_on : str
        "nothing", "same data" or "other folds".
    n : int
        Rows.
    bins, curve, benefit, expected : xarray.Dataset
        `leakviz.calibration.sweep_calibration`, `isotonic_curve`, `net_benefit` at the figure's thresholds and
        `sweep_expected_net_benefit` at every weight that can be chosen.
    summary : CalibrationSummary
    dispersion : (Dispersion, Dispersion)
        Of unit and of uniform weight.
    c_statistic : tuple of float or None
        With its interval.
    spike : Spike
        At delta 0.05.
    counts : dict of float to array
        Records in the bars below the diagram, for each reach of its axes.
    reach : float
        How far records and their bins reach.
    full : bool
        Whether what takes resampling is there.
    """

    fitted_on: str
    n: int
    bins: xr.Dataset
    curve: xr.Dataset
    summary: CalibrationSummary
    dispersion: tuple[Dispersion, ...]
    c_statistic: tuple[float | None, float | None, float | None]
    spike: Spike
    benefit: xr.Dataset
    expected: xr.Dataset
    counts: dict[float, np.ndarray]
    reach: float
    full: bool


Key = tuple[str, str]
_READINGS: WeakKeyDictionary[Vector, dict[Key, Reading | str]] = WeakKeyDictionary()
_TABLES: WeakKeyDictionary[Vector, dict[ArmSettings, xr.Dataset]] = WeakKeyDictionary()
_LATER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="calibration")
_LOCK = threading.Lock()


def has_folds(vector: Vector) -> bool:
    """Return whether a vector can be recalibrated on other rows than it is shown on."""
    return vector.folds is not None or not vector.name.startswith(OWN)


def folds_of(vector: Vector) -> np.ndarray | None:
    """Return a fold for each row.

    Shipped vectors come without the folds that they were predicted in, and simulated ones have none: their
    rows are independent, so random fifths do. A user's rows may belong together, so nothing is made up there.
    """
    if vector.folds is None and has_folds(vector):
        return np.random.default_rng(0).permutation(vector.p.size) % 5
    return vector.folds


def keys_of(vector: Vector) -> list[Key]:
    """Return the recalibrations that differ for a vector."""
    fits = FITS if has_folds(vector) else ("same",)
    return [("none", "same"), *((m, f) for m in METHODS[1:] for f in fits)]


def own_key(vector: Vector, method: str, fit: str) -> Key:
    """Return which of `keys_of` answers for a method and a fit."""
    key = (method, fit)
    return key if key in keys_of(vector) else (method, "same")


def read(vector: Vector, key: Key, *, full: bool = True) -> Reading | str:
    """Recalibrate a vector and ask the core everything that the page shows.

    Parameters
    ----------
    vector : Vector
    key : (str, str)
        One of `keys_of`.
    full : bool
        Whether to resample for the band and the intervals of the decomposition.

    Returns
    -------
    Reading or str
        A message where no recalibration can be fitted.
    """
    method, fit = key
    ranked, fitted_on = vector.ranked, "nothing"
    if method != "none":
        folds = folds_of(vector) if fit == "folds" else None
        try:
            new = leakviz.recalibrate(vector.p, vector.y, method=method, folds=folds)
        except leakviz.InputError as error:
            return str(error)
        ranked, fitted_on = leakviz.rank_predictions(new.p, vector.y), new.fitted_on
    resamples = 200 if full else 0
    bins = sweep_calibration_ranked(ranked)
    counts = {}
    for end in figures.REACHES:
        edges = np.linspace(0, end, 51)
        above, _ = ranked.count_at_least(edges)
        if end == 1:
            above[-1] = 0  # p = 1 stands in the last bar
        counts[end] = -np.diff(above)
    most_bins = bins.sel(strategy="quantile", n_bins=50)
    top = ranked.predictions()[int(0.995 * (ranked.n - 1))]
    return Reading(
        fitted_on=fitted_on,
        n=ranked.n,
        bins=bins,
        curve=isotonic_curve_ranked(ranked, n_resamples=resamples),
        summary=calibration_summary_ranked(ranked, n_resamples=resamples),
        dispersion=leak_dispersion_ranked(ranked),
        c_statistic=concordance_ranked(ranked),
        spike=spike_ranked(ranked, DELTA),
        benefit=net_benefit_ranked(ranked, figures.THRESHOLDS),
        expected=sweep_expected_net_benefit_ranked(ranked, weights=_WEIGHTS),
        counts=counts,
        reach=max(float(top), float(most_bins["high"].where(most_bins["n"] > 0).max())),
        full=full,
    )


def readings_of(vector: Vector, keys: list[Key], *, full: bool = True) -> dict[Key, Reading | str]:
    """Return readings, each made once per vector; a hasty one gives way to a full one."""
    known = _READINGS.setdefault(vector, {})
    for key in keys:
        there = known.get(key)
        if there is None or (full and isinstance(there, Reading) and not there.full):
            new = read(vector, key, full=full)
            with _LOCK:
                there = known.get(key)
                if not (isinstance(there, Reading) and there.full):
                    known[key] = new
    return known


def page_answers(vector: Vector, arms: ArmSettings, readings: Mapping[Key, Reading | str]) -> xr.Dataset:
    """Return what is drawn and what is said at every stop.

    Parameters
    ----------
    vector : Vector
    arms : ArmSettings
        Of the simulated arms beside it.
    readings : mapping
        Of `keys_of`; those that are missing are said to be on their way.

    Returns
    -------
    xarray.Dataset
        `figures.drawn`, and the texts.
    """
    complete = all(isinstance(r, str) or r.full for r in readings.values()) and len(readings) == len(
        keys_of(vector)
    )
    tables = _TABLES.setdefault(vector, {})
    if complete and arms in tables:
        return tables[arms]
    at = {(m, f): readings.get(own_key(vector, m, f)) for m in METHODS for f in FITS}
    of_arms = {name.removeprefix(SIMULATED): dispersions_of(v) for name, v in simulated(arms).items()}
    table = figures.drawn(at, of_arms)
    table = table.assign({**_texts(vector, at), **_expected_texts(at), **_switch_texts(vector)})
    if complete:
        tables[arms] = table
    return table


_DISPERSIONS: WeakKeyDictionary[Vector, tuple[Dispersion, ...]] = WeakKeyDictionary()


def dispersions_of(vector: Vector) -> tuple[Dispersion, ...]:
    """Return the dispersion of a vector as given, unit and uniform weight, computed once."""
    if vector not in _DISPERSIONS:
        _DISPERSIONS[vector] = leak_dispersion_ranked(vector.ranked)
    return _DISPERSIONS[vector]


def _by_fit(write: Callable[[Key], str]) -> tuple[tuple[str, str], np.ndarray]:
    return ("method", "fit"), np.array([[write((m, f)) for f in FITS] for m in METHODS], dtype=object)


def estimate_text(e: Estimate, places: int) -> tuple[str, str]:
    """Write an estimate and its interval.

    Examples
    --------
    >>> estimate_text(Estimate(0.4, 0.39, 0.41), 2), estimate_text(Estimate(None, None, None), 2)
    (('0.40', '0.39 to 0.41'), ('undefined', ''))
    """
    if e.value is None:
        return "undefined", ""
    if e.low is None or e.high is None:
        return signed(e.value, places), PENDING
    return signed(e.value, places), f"{signed(e.low, places)} to {signed(e.high, places)}"


def places_of(key: str, brier: float) -> int:
    """Return how many decimals an estimate is written with: a small Brier score needs more."""
    if key in ("brier", "miscalibration", "discrimination", "uncertainty"):
        return 5 if brier < 0.1 else 4
    return 4 if key == "observed_minus_expected" else 2


def z_text(d: Dispersion) -> str:
    """Write a z, or that it is refused.

    Examples
    --------
    >>> z_text(leakviz.dispersion([0.2], [1]))
    'not tested'
    """
    return "not tested" if d.z is None else signed(d.z, 1)


def records(count: int) -> str:
    """Write a number of records.

    Examples
    --------
    >>> records(1), records(2283)
    ('1 record', '2,283 records')
    """
    return "1 record" if count == 1 else f"{count:,} records"


def _value(e: Estimate, places: int = 2) -> str:
    return estimate_text(e, places)[0]


def _area(c: tuple[float | None, ...]) -> str:
    return "undefined" if c[0] is None else f"{c[0]:.3f}"


def _by_construction(r: Reading, key: str) -> bool:
    """Tell whether a fit on the same data alone makes an estimate what it is, so that it has no interval.

    Both fits leave the residuals, and their product with the fitted logit, with the sum 0.
    """
    if r.fitted_on != "same data":
        return False
    if key == "miscalibration":
        return abs(r.summary.miscalibration.value or 0) < 1e-12  # isotonic
    return key in ("slope", "slope_intercept", "calibration_in_the_large", "observed_minus_expected")


def _texts(vector: Vector, readings: Mapping[Key, Reading | str | None]) -> dict[str, Any]:
    texts: dict[str, Any] = {}

    def put(name: str, write: Callable[[Reading], str], other: str = "undefined") -> None:
        def of(key: Key) -> str:
            reading = readings[key]
            return write(reading) if isinstance(reading, Reading) else PENDING if reading is None else other

        texts[name] = _by_fit(of)

    for key, _, _ in ESTIMATES:

        def value(r: Reading, key: str = key, part: int = 0) -> str:
            if part and _by_construction(r, key):
                return "by construction"
            return estimate_text(getattr(r.summary, key), places_of(key, r.summary.brier.value or 0))[part]

        put(f"est_{key}", value)
        put(f"int_{key}", partial(value, part=1), "")
    put("est_c", lambda r: _area(r.c_statistic))
    put(
        "int_c",
        lambda r: "" if r.c_statistic[1] is None else f"{r.c_statistic[1]:.3f} to {r.c_statistic[2]:.3f}",
        "",
    )
    put("est_spike", lambda r: f"{r.spike.tie_blocks:,}")
    for w, weight in enumerate(("unit", "uniform")):

        def z(r: Reading, w: int = w) -> str:
            return z_text(r.dispersion[w])

        def effective(r: Reading, w: int = w) -> str:
            d = r.dispersion[w]
            raw = "" if d.z is not None or d.z_raw is None else f"raw {signed(d.z_raw, 1)}, "
            return f"{raw}{d.untested or f'{d.effective_records:,.0f} effective records'}"

        put(f"z_{weight}", z)
        put(f"z_{weight}_of", effective, "")
    put("contradicted", _contradicted, "")
    pieces = {key: list(_sentence(key, readings)) for key in readings}
    for i in range(9):
        texts[f"say_{i}"] = _by_fit(lambda key, i=i: pieces[key][i])  # type: ignore[misc]
    texts["note"] = _by_fit(lambda key: _note(key, readings))
    return texts


def _sentence(key: Key, readings: Mapping[Key, Reading | str | None]) -> Iterator[str]:
    """Yield the sentence on top in nine pieces; every second one is set off."""
    given, now = readings["none", key[1]], readings[key]
    name = {"none": "", "platt": "Platt", "isotonic": "Isotonic"}[key[0]]
    if not isinstance(now, Reading) or not isinstance(given, Reading):
        yield f"{name} recalibration " if name else "What these predictions say "
        yield "is being computed" if now is None else "cannot be fitted"
        yield from (".", "", "", "", "", "", "")
        return
    slope, z = _value(now.summary.slope), z_text(now.dispersion[0])
    c, head = _area(now.c_statistic), now.spike.tie_blocks
    if key[0] == "none":
        yield "As given, the calibration slope is "
        yield slope
        yield " and the dispersion z (unit weight) "
        yield z
        yield "; C* is "
        yield c
        yield ", the pure head "
        yield records(head)
        yield "."
        return
    yield f"{name} takes the slope from {_value(given.summary.slope)} to "
    yield slope
    yield f" and z from {z_text(given.dispersion[0])} to "
    yield z
    was, before = _area(given.c_statistic), given.spike.tie_blocks
    yield "; C* stays at " if was == c else f"; C* goes from {was} to "
    yield c
    yield (
        ", the pure head at "
        if before == head and was == c
        else (", the pure head stays at " if before == head else f", the pure head goes from {before:,} to ")
    )
    yield records(head)
    yield "."


def _note(key: Key, readings: Mapping[Key, Reading | str | None]) -> str:
    """Say what the sentence on top means, and what it does not."""
    now = readings[key]
    if now is None:
        return "The figures follow in a moment."
    if isinstance(now, str):
        return now[:1].upper() + now[1:] + "."
    unit = now.dispersion[0]
    if now.c_statistic[0] is None:
        return "Every outcome is the same, so there is nothing to calibrate against and nothing to rank."
    if key[0] == "none":
        if unit.z is None:
            return f"Dispersion is not tested: {unit.untested}."
        if abs(unit.z) > figures.Z_ALPHA:
            slope = now.summary.slope.value
            how = (
                "The risks are too extreme. "
                if slope is not None and slope < 0.9
                else "The risks are not extreme enough. "
                if slope is not None and slope > 1.1
                else ""
            )
            return (
                f"{how}A leak can do that, and so can an honest model that is badly calibrated. Recalibrate, and watch "
                "the signal go."
            )
        return (
            "Calibration shows nothing here, and it could not show a leak that is calibrated: such a leak looks like "
            "a better model (Proposition 1)."
        )
    if key == ("isotonic", "same"):
        return (
            "Fitted on the same data, isotonic regression makes z 0 whatever the predictions are, so z says nothing "
            "here. It merges neighbours into ties, which can move C* and the head a little."
        )
    if unit.z is not None and abs(unit.z) > figures.Z_ALPHA:
        healed = (
            "The slope is healed, the dispersion not wholly: this curve cannot bend as the risks would need."
        )
    else:
        healed = "Nothing is left for calibration and dispersion to show."
    stays = "The ranking, and with it C* and the pure head, is what recalibration cannot hide (Corollary 2)."
    if now.fitted_on == "other folds":
        return f"{healed} {stays} Rows of different folds can change places a little."
    return f"{healed} {stays} Fitted on the same data, z is no standard normal: a small one is no evidence."


def _contradicted(r: Reading) -> str:
    unit = r.dispersion[0]
    if not unit.certain:
        return ""
    left = f"{records(unit.certain)} with p = 0 or 1 carry no variance and are left out"
    if not unit.contradicted:
        return f"{left}; none was contradicted."
    return f"{left}; {unit.contradicted:,} turned out otherwise, which no calibrated prediction does."


def _expected_texts(readings: Mapping[Key, Reading | str | None]) -> dict[str, Any]:
    """Write the expected net benefit for every weight, by range and by the parameters of beta."""
    names = ("value", "low", "high", "treat_all")
    numbers = np.full((len(names), len(SCALES), len(METHODS), len(FITS), len(_WEIGHTS)), np.nan)
    state = np.zeros((len(METHODS), len(FITS)), dtype=int)  # 0 there, 1 on its way, 2 not to be had
    for (method, fit), r in readings.items():
        i, j = METHODS.index(method), FITS.index(fit)
        if not isinstance(r, Reading):
            state[i, j] = 1 if r is None else 2
            continue
        values = np.stack([r.expected[name].values for name in names])
        prevalence = r.expected.attrs["prevalence"]
        numbers[:, 0, i, j], numbers[:, 1, i, j] = values, values / prevalence if prevalence else np.nan
    where = {weight: k for k, weight in enumerate(_WEIGHTS)}
    by_range = np.array(
        [
            [where["uniform", *figures.threshold_range(low, high)] for high in figures.ENDS]
            for low in figures.ENDS
        ]
    )
    by_beta = np.array([[where["beta", float(a), float(b)] for b in figures.BETA_B] for a in figures.BETA_A])
    texts: dict[str, Any] = {}
    dims = ("scale", "method", "fit")
    pending = xr.DataArray(state, dims=dims[1:])
    for eta, index, own in (("uniform", by_range, ("low", "high")), ("beta", by_beta, ("a", "b"))):
        value, low, high, everybody = (xr.DataArray(v[..., index], dims=(*dims, *own)) for v in numbers)

        def one(v: float, p: int) -> str:
            return (PENDING, "undefined")[p - 1] if p else "undefined" if np.isnan(v) else signed(v, 5)

        def two(a: float, b: float) -> str:
            return "" if np.isnan(a) else f"{signed(a, 5)} to {signed(b, 5)}"

        texts[f"{eta}_value"] = words(one, value, pending)
        texts[f"{eta}_interval"] = words(two, low, high)
        texts[f"{eta}_all"] = words(one, everybody.isel(method=0, fit=0), pending.isel(method=0, fit=0))
    return texts


def _switch_texts(vector: Vector) -> dict[str, Any]:
    """Return what does not depend on the data: words, and what is seen at which stop."""
    ends = [[figures.threshold_range(low, high) for high in figures.ENDS] for low in figures.ENDS]
    off = np.array(["on", "off"], dtype=object)
    crossed = has_folds(vector)
    central = [
        [betaincinv(a, b, [0.025, 0.975]) for b in figures.BETA_B.tolist()] for a in figures.BETA_A.tolist()
    ]
    told = {
        True: "fitted on",
        False: "fitted on the same data: these predictions come without folds",
    }[crossed]
    return {
        "range_says": (
            ("low", "high"),
            np.array([[f"{a:g} to {b:g}" for a, b in row] for row in ends], dtype=object),
        ),
        "beta_says": (
            ("a", "b"),
            np.array([[f"{c[0]:.3f} to {c[1]:.3f}" for c in row] for row in central], dtype=object),
        ),
        "see_uniform": ("eta", off),
        "see_beta": ("eta", off[::-1]),
        "see_fitted": ("method", np.array(["off", "on", "on"], dtype=object)),
        "see_folds": ((), "on" if crossed else "off"),
        "fitted_says": ((), told),
        "folds_say": ((), _folds_say(vector)),
        "scale_says": ("scale", np.array(["net benefit", "net benefit / prevalence"], dtype=object)),
        "title_says": ((), vector.title),
        "source_says": ((), f"{vector.title}: {vector.source}; {records(vector.ranked.n)}."),
    }


def _folds_say(vector: Vector) -> str:
    if vector.folds is not None:
        return "which rows it learns from; folds: those of the file, default"
    if has_folds(vector):
        return "which rows it learns from, default the same; folds: random fifths, seed 0"
    return ""


_HAND_CSS = theme.css(
    """
.hand { display: flex; flex-wrap: wrap; gap: 4px 26px; align-items: center }
.hand > div { display: flex; flex-wrap: wrap; gap: 2px 6px; align-items: center; font-size: 13px; color: $muted }
.hand button { border-radius: 6px; border: 1px solid $hair; padding: 5px 11px; font-size: 13px; color: $ink }
.hand button:hover { border-color: $muted }
.hand button[aria-pressed=true] { border-color: $accent; color: $accent; box-shadow: inset 0 0 0 1px $accent; font-weight: 620 }
.hand > .off { visibility: hidden }
.hand .off .pick, .pick.off { display: none }
.pick { display: inline-flex; gap: 6px }
"""
)
_MENU_CSS = ":host { width: 300px; max-width: 100% }"
_QUIET_CSS = theme.css(
    """
.quiet { display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 12.5px; color: $muted; align-items: center }
.quiet div { display: flex; flex-wrap: wrap; gap: 0 4px; align-items: center; font: inherit; color: $muted }
.quiet button { font-size: 12.5px; padding: 4px 3px; min-height: 24px }
.quiet button[aria-pressed=true] { color: $ink; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: $accent; text-decoration-thickness: 2px }
.off { display: none !important }
"""
)
_TABLE_CSS = theme.css(
    """
td, th { padding: 4px 0 }
.sub th { padding-left: 16px }
.right { color: $muted; font-size: 12.5px; padding-left: 12px; text-align: right }
th { white-space: normal }
.off { display: none }
.under { margin-top: 6px }
.m { min-width: 118px }
h2 { margin-bottom: 4px }
.ideal { display: none; font-size: 12px; color: $muted }
@media (max-width: 420px) { .right { display: none } .ideal { display: block } }
"""
)
_TWO_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 26px 40px; align-items: start }
@media (max-width: $narrow) { :host { grid-template-columns: minmax(0, 1fr); gap: 26px } }
"""
)


@dataclass(frozen=True)
class Answer:
    """The core's answer at the present state.

    Attributes
    ----------
    reading : Reading
        Of the vector, recalibrated as chosen.
    bins : xarray.Dataset
        `leakviz.calibration_curve` of it.
    expected : xarray.Dataset
        Expected net benefit at the chosen weight.
    """

    reading: Reading
    bins: xr.Dataset
    expected: xr.Dataset


class CalibrationPage(pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string, from which the page starts.
    shelf : Shelf, optional
        The session's prediction vectors.

    Examples
    --------
    >>> page = CalibrationPage("?vector=flchain__lr__honest&method=platt")
    >>> round(page.answer().reading.summary.slope.value, 6)
    1.0
    """

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        self.shelf = shelf or Shelf()
        own = [v.name for v in reversed(self.shelf.own)]
        self.state = CalibrationState()
        self.state.shelf = self.shelf
        self.state.param["vector"].objects = self.shelf.names()
        self.state.read(query)
        self.shelf.hear(self.state, "calibration", TITLE)
        if own and "vector=" not in query:
            self.state.vector = own[0]
        super().__init__(**params)
        self._releasing = False
        if "fit=" not in query:
            self._prefer_folds()
        self.live = self._make_live(self._answers())
        self._settle()
        self._root: pn.Column | None = None
        self._menu: pn.widgets.Select | None = None
        self.live.param.watch(self._released, "state")
        self.state.param.watch(self._follow, self.state.names())
        self.shelf.param.watch(self._shelved, ["own", "arms"])

    # ---- answers

    @property
    def figure_state(self) -> dict[str, tuple[str, ...]]:
        """What of the state decides each figure."""
        s = self.state
        given = ("method",) if s.method == "none" else ("method", "fit")
        return {
            "reliability": (*given, "bins", "strategy", "zoom"),
            "dispersion": given,
            "benefit": (*given, "low", "high", "scale"),
            "weight": ("low", "high", "eta", *(("a", "b") if s.eta == "beta" else ())),
        }

    @property
    def subject(self) -> str:
        """What data the page shows."""
        return self.vector.title

    @property
    def vector(self) -> Vector:
        """The vector that is shown."""
        return self.shelf.get(self.state.vector)

    def _key(self) -> Key:
        return own_key(self.vector, self.state.method, self.state.fit)

    def _answers(self) -> xr.Dataset:
        """Return the answers; in the app, what takes long follows when it is there."""
        vector, arms = self.vector, self.shelf.arms
        keys = keys_of(vector)
        document = pn.state.curdoc if pn.state.curdoc and pn.state.curdoc.session_context else None
        known = _READINGS.get(vector, {})
        ready = all(isinstance(r, str) or r.full for r in known.values()) and len(known) == len(keys)
        if ready or document is None:
            return page_answers(vector, arms, readings_of(vector, keys))
        seen = list(dict.fromkeys([("none", "same"), self._key()]))
        readings = dict(readings_of(vector, seen, full=vector.ranked.n <= _AT_ONCE))

        def later() -> None:
            answers = page_answers(vector, arms, readings_of(vector, keys))
            document.add_next_tick_callback(partial(self._arrived, vector, arms, answers))

        _LATER.submit(later)
        return page_answers(vector, arms, readings)

    def _arrived(self, vector: Vector, arms: ArmSettings, answers: xr.Dataset) -> None:
        def put(*_: Any) -> None:
            if self.vector is vector and self.shelf.arms == arms:
                with pn.io.hold():
                    self.live.update_answers(answers)

        if self.live.seen:
            put()
        else:  # a page that is being loaded could miss it
            self.live.param.watch(put, "seen")

    def answer(self) -> Answer:
        """Return the core's answer at the present state.

        Raises
        ------
        leakviz.InputError
            If the vector cannot be recalibrated as chosen.
        """
        key = self._key()
        reading = readings_of(self.vector, [key])[key]
        if isinstance(reading, str):
            raise leakviz.InputError(reading)
        s = self.state
        return Answer(
            reading=reading,
            bins=reading.bins.sel(strategy=s.strategy, n_bins=int(s.bins)).isel(bin=slice(int(s.bins))),
            expected=reading.expected.isel(weight=_WEIGHTS.index(self._weight())),
        )

    def _weight(self) -> Any:
        s = self.state
        if s.eta == "beta":
            return "beta", float(s.a), float(s.b)
        return "uniform", *figures.threshold_range(s.low, s.high)

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present state.

        Parameters
        ----------
        name : {"reliability", "dispersion", "benefit", "weight"}
        """
        s = self.state
        told = {"vector": s.vector, "recalibration": s.method}
        if name == "dispersion":
            return self._dispersion_data(told)
        if name == "weight":
            return self._weight_data(told)
        answer = self.answer()
        told["fitted_on"] = answer.reading.fitted_on
        if name == "benefit":
            low, high = figures.threshold_range(s.low, s.high)
            frame = answer.reading.benefit.to_dataframe().reset_index()
            frame = frame[(frame["threshold"] >= low) & (frame["threshold"] <= high)]
            return frame.assign(**told).reset_index(drop=True)
        if name == "reliability":
            curve = answer.reading.curve
            end = 1.0 if s.zoom == "all" else figures.reach(_READINGS[self.vector])
            edges = np.linspace(0, end, 51)
            parts = {
                f"bin, {s.strategy}": answer.bins.to_dataframe().reset_index(drop=True),
                "isotonic": curve[["p_min", "p_max", "recalibrated", "n", "events"]]
                .to_dataframe()
                .reset_index(drop=True)
                .rename(columns={"recalibrated": "observed"}),
                "band of calibrated risks": curve[["band_low", "band_high"]]
                .to_dataframe()
                .reset_index()
                .rename(columns={"p": "predicted", "band_low": "low", "band_high": "high"}),
                "records": pd.DataFrame(
                    {"p_min": edges[:-1], "p_max": edges[1:], "n": answer.reading.counts[end]}
                ),
            }
            frame = pd.concat([part.assign(part=kind) for kind, part in parts.items()], ignore_index=True)
            return frame.assign(**told)[[*told, "part", *(c for c in frame.columns if c != "part")]]
        raise ValueError(
            f"no figure is called {name!r}; there are reliability, dispersion, benefit and weight"
        )

    def _dispersion_data(self, told: dict[str, str]) -> pd.DataFrame:
        arms = {name: dispersions_of(v) for name, v in simulated(self.shelf.arms).items()}
        rows = [(name, "none", d) for name, both in arms.items() for d in both]
        reading = self.answer().reading
        rows = [(told["vector"], told["recalibration"], d) for d in reading.dispersion] + rows
        return pd.DataFrame(
            [
                {
                    "vector": name,
                    "recalibration": method,
                    **{k: getattr(d, k) for k in d.__dataclass_fields__},
                }
                for name, method, d in rows
            ]
        )

    def _weight_data(self, told: dict[str, str]) -> pd.DataFrame:
        answer = self.answer()
        s = self.state
        numbers = {str(name): v.item() for name, v in answer.expected.data_vars.items()}
        row = {**told, "fitted_on": answer.reading.fitted_on, "weight": str(answer.expected["weight"].item())}
        prevalence = answer.expected.attrs["prevalence"]
        if s.scale == "standardised":
            for k in set(numbers) - {"standardised"}:
                numbers[k] = numbers[k] / prevalence if prevalence else np.nan
        return pd.DataFrame([{**row, "net_benefit": s.scale, **numbers}])

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        """Return a figure at the present state as a HoloViews element.

        Parameters
        ----------
        name : {"reliability", "dispersion", "benefit", "weight"}
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        now = self.live.at()
        draw: dict[str, Callable[..., hv.Overlay]] = {
            "reliability": figures.reliability,
            "dispersion": figures.dispersions,
            "benefit": partial(figures.benefits, scale=self.state.scale),
            "weight": figures.weights,
        }
        if name not in draw:
            raise ValueError(f"no figure is called {name!r}; there are {', '.join(draw)}")
        return draw[name](now, hooks=hooks, backend=backend)

    # ---- the hand

    def _make_live(self, answers: xr.Dataset) -> Live:
        columns = [
            *(
                Column("bins:source", name, f"bin_{name}")
                for name in ("predicted", "observed", "low", "high", "n")
            ),
            Column("wilson:source", "x0", "bin_predicted"),
            Column("wilson:source", "x1", "bin_predicted"),
            Column("wilson:source", "low", "bin_low"),
            Column("wilson:source", "high", "bin_high"),
            Column("curve:source", "predicted", "curve_x"),
            Column("curve:source", "observed", "curve_y"),
            Column("band:source", "x", "band_x"),
            Column("band:source", "y", "band_y"),
            *(Column("bars:source", name, f"bar_{name}") for name in ("left", "right", "bottom", "top", "n")),
            Column("benefit:source", "net_benefit", "benefit"),
            Column("benefit_given:source", "net_benefit", "benefit_given"),
            Column("treat_all:source", "net_benefit", "treat_all"),
            Column("weight:source", "y", "weight"),
        ]
        attributes = [
            Attribute("benefit_given:glyph_renderer", "visible", "see_given"),
            *(
                Attribute(f"reliability:{axis}_range", end, f"frame_{axis}{i}")
                for axis in "xy"
                for i, end in enumerate(("start", "end"))
            ),
            Attribute("benefit_frame:y_range", "start", "benefit_y0"),
            Attribute("benefit_frame:y_range", "end", "benefit_y1"),
            Attribute("benefit_frame:yaxis", "axis_label", "scale_says"),
            *(
                Attribute(f"{frame}:x_range", end, variable)
                for frame in ("benefit_frame", "weight_frame")
                for end, variable in (("start", "from"), ("end", "to"))
            ),
        ]
        for name in ("arm", "own"):
            for w, weight in enumerate(figures.MARK):
                columns.append(Column(f"{name}_{weight}:source", "z", f"{name}_x_{w}"))
                columns.append(Column(f"{name}_{weight}:source", "fill_alpha", f"{name}_fill_{w}"))
            columns.append(Column(f"{name}_labels:source", "z", f"{name}_x"))
            columns.append(Column(f"{name}_labels:source", "text", f"{name}_text"))
            columns.append(Column(f"{name}_labels:source", "text_align", f"{name}_align"))
            columns.append(Column(f"{name}_labels:source", "x_offset", f"{name}_shift"))
        return Live(
            answers,
            sliders=[
                Slider("bins", "bins", "groups of predictions in the diagram, default 10"),
                Slider("low", "threshold from", "lowest risk at which one would act, default 0"),
                Slider("high", "threshold to", "highest risk at which one would act, default 0.3"),
            ],
            columns=columns,
            attributes=attributes,
            start=START,
            labels={
                "bins": [str(b) for b in figures.BINS],
                "low": [f"{t:g}" for t in figures.ENDS],
                "high": [f"{t:g}" for t in figures.ENDS],
                "a": [f"{v:g}" for v in figures.BETA_A],
                "b": [f"{v:g}" for v in figures.BETA_B],
                "method": list(RECALIBRATIONS.values()),
                "fit": list(FITTED.values()),
                "strategy": list(figures.STRATEGIES),
                "zoom": list(ZOOM.values()),
                "scale": list(SCALE.values()),
                "eta": list(ETA.values()),
            },
            sizing_mode="stretch_width",
            margin=0,
            styles={"grid-column": "1 / -1"},
        )

    def _settle(self) -> None:
        """Move the hand to the state."""
        self.live.go(**{name: getattr(self.state, name) for name in START})

    def _released(self, event: Any) -> None:
        """Take over where the hand let go."""
        self._releasing = True
        try:
            self.state.param.update(**{name: self.live.value(name) for name in START})
        finally:
            self._releasing = False

    def _follow(self, *events: Any) -> None:
        with pn.io.hold():
            if any(e.name == "vector" for e in events):
                self.live.update_answers(self._answers())
            if not self._releasing:
                self._settle()

    def _shelved(self, *events: Any) -> None:
        """Offer what the session has brought, and show the newest; follow the simulated arms."""
        names, declared = self.shelf.names(), self.state.param["vector"]
        added = [v.name for v in self.shelf.own if v.name not in declared.objects]
        declared.objects = names
        chosen = added[-1] if added else self.state.vector
        if chosen not in names:
            chosen = DEFAULT
        with pn.io.hold():
            if self._menu:
                self._menu.param.update(options=self._titles(), value=chosen)
            self.state.vector = chosen
            if added:
                self._prefer_folds()
            if any(e.name == "arms" for e in events):
                self.live.update_answers(self._answers())

    def _prefer_folds(self) -> None:
        """Fit on the other folds where a user's predictions come with folds."""
        if self.vector.folds is not None:
            self.state.fit = "folds"

    def _titles(self) -> dict[str, str]:
        titles: dict[str, str] = {}
        for name in self.shelf.names():
            title = self.shelf.title(name)
            titles[title if title not in titles else f"{title} ({name})"] = name
        return titles

    # ---- the page

    def _heading(self) -> str:
        t = self.live.text
        said = "".join(f"<b>{t(f'say_{i}')}</b>" if i % 2 else t(f"say_{i}") for i in range(9))
        return (
            f'<div role="status" aria-live="polite" aria-atomic="true"><h1>{said}</h1></div>'
            f'<p class="note">{t("note")}</p>'
        )

    def _laundering(self) -> str:
        live = self.live
        methods = "".join(live.button("method", i, label) for i, label in enumerate(RECALIBRATIONS.values()))
        fits = "".join(live.button("fit", i, label) for i, label in enumerate(FITTED.values()))
        return (
            '<div class="hand"><div role="group" aria-label="recalibration">'
            f'<span>recalibrate</span>{methods}<span class="help">p before it is shown, default as given</span></div>'
            f'<div role="group" aria-label="fitted on" {live.attrs(class_="see_fitted")}>{live.text("fitted_says")}'
            f'<span class="pick"><span {live.attrs(class_="see_folds")}><span class="pick">{fits}</span></span></span>'
            f'<span class="help">{live.text("folds_say")}</span></div></div>'
        )

    def _choose(self) -> pn.Row:
        self._menu = pn.widgets.Select(
            label="predictions",
            options=self._titles(),
            value=self.state.vector,
            margin=0,
            sizing_mode="stretch_width",
            stylesheets=[theme.FIELD_CSS],
        )
        self._menu.link(self.state, value="vector", bidirectional=True)
        return pn.Row(
            helped(self._menu, "p and y that are shown, default the miscalibrated arm", css=_MENU_CSS),
            markup(self.live.reset(), sizing_mode=None, styles={"margin-top": "18px"}),
            margin=0,
            sizing_mode=None,
            stylesheets=[
                ":host { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: flex-start; width: auto }"
            ],
        )

    def _pane(self, name: str, hooks: dict) -> pn.pane.Bokeh:
        return figure_pane(
            ("calibration", name),
            self.live,
            lambda: self.figure(name, hooks=hooks),
            sizing_mode="stretch_both",
            margin=0,
        )

    def _links(self, name: str, size: tuple[float, float]) -> Downloads:
        return downloads(
            name, lambda backend: self.figure(name, backend), lambda: self.data(name), size=size, page=self
        )

    def _reliability(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list] = {
            name: [live.tag(name, "source")] for name in ("band", "bars", "curve", "wilson", "bins")
        }
        hooks["figure"] = [live.tag("reliability", "x_range", "y_range")]
        kinds = "".join(live.button("strategy", i, s) for i, s in enumerate(("equal size", "equal width")))
        zooms = "".join(live.button("zoom", i, label) for i, label in enumerate(ZOOM.values()))
        body = card(
            figures.TITLES["reliability"],
            self._pane("reliability", hooks),
            "Dots: bins with Wilson 95 % bars. Line: isotonic regression (CORP). Grey: at each risk, where that line would lie "
            "19 times out of 20 if the risks were calibrated. Below 0: records, log scale. "
            f"{live.text('source_says')}",
            links=self._links("reliability", (120, 120)),
            height=540,
        )
        body.insert(
            1,
            markup(
                f'<div class="quiet"><div role="group" aria-label="kind of bins">bins of {kinds}'
                '<span class="help">default equal size</span></div>'
                f'<div role="group" aria-label="axes">axes {zooms}<span class="help">default the first</span></div></div>',
                css=_QUIET_CSS,
            ),
        )
        return body

    def _numbers(self) -> str:
        t = self.live.text
        rows = []
        for key, label, right in ESTIMATES:
            ideal = f'<span class="ideal">{right} if calibrated</span>' if right else ""
            sub = ' class="sub"' if key in ("miscalibration", "discrimination", "uncertainty") else ""
            rows.append(
                f'<tr{sub}><th scope="row">{label}{ideal}</th><td class="n">{t(f"est_{key}")}</td>'
                f'<td class="n m">{t(f"int_{key}")}</td><td class="right">{right}</td></tr>'
            )
        rows.append(
            f'<tr><th scope="row">C*, DeLong</th><td class="n">{t("est_c")}</td><td class="n m">{t("int_c")}</td>'
            '<td class="right">ranking</td></tr>'
            f'<tr><th scope="row">pure head at delta {DELTA}, records</th><td class="n">{t("est_spike")}</td>'
            '<td class="n m"></td><td class="right">ranking</td></tr>'
        )
        return (
            '<h2>In numbers <span class="aside">95 % interval, value if calibrated</span></h2>'
            '<table aria-label="calibration in numbers, with 95 % intervals and the value of calibrated risks">'
            f"{''.join(rows)}</table>"
            '<p class="small under">Wald, normal (observed − expected, Brier) and bootstrap intervals. Isotonic fits push '
            "miscalibration up, so its interval can miss it.</p>"
        )

    def _dispersion(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list] = {
            **{
                f"{name}_{weight}": [live.tag(f"{name}_{weight}", "source")]
                for name in ("arm", "own")
                for weight in figures.MARK
            },
            **{f"{name}_labels": [live.tag(f"{name}_labels", "source")] for name in ("arm", "own")},
        }
        return card(
            figures.TITLES["dispersion"],
            self._pane("dispersion", hooks),
            self._dispersion_says(),
            links=self._links("dispersion", (130, 90)),
            height=300,
        )

    def _dispersion_says(self) -> str:
        t = self.live.text
        return (
            "z · effective records. Circle: unit weight (Spiegelhalter). Square: the paper’s uniform weight. Hollow: "
            "refused (fewer than 30 effective records carry it, or nothing can be told apart). Dotted: 1.96. This vector: "
            f"{t('z_unit')} ({t('z_unit_of')}), uniform {t('z_uniform')} ({t('z_uniform_of')}). {t('contradicted')} "
            f"Arms: simulated as in {PAPER}, section 6."
        )

    def _benefit(self) -> pn.Column:
        live, t = self.live, self.live.text
        hooks: dict[str, list] = {
            "benefit": [live.tag("benefit", "source")],
            "benefit_given": [live.tag("benefit_given", "source", "glyph_renderer")],
            "treat_all": [live.tag("treat_all", "source")],
            "figure": [live.tag("benefit_frame", "x_range", "y_range", "yaxis")],
        }
        scales = "".join(live.button("scale", i, label) for i, label in enumerate(SCALE.values()))
        body = card(
            figures.TITLES["benefit"],
            self._pane("benefit", hooks),
            f"Thresholds {t('range_says')}. Thick: this vector. Thin, vermilion: as given. Dashed: treat all. Dotted: "
            f"treat none. Standardised: divided by the prevalence, so that 1 is the best. {PAPER}, section 2.",
            links=self._links("benefit", (130, 90)),
            height=300,
        )
        body.insert(
            1,
            markup(
                f'<div class="quiet"><div role="group" aria-label="net benefit">{scales}'
                '<span class="help">default per record</span></div></div>',
                css=_QUIET_CSS,
            ),
        )
        return body

    def _expected(self) -> pn.Column:
        live = self.live
        etas = "".join(live.button("eta", i, label) for i, label in enumerate(ETA.values()))
        hooks: dict[str, list] = {
            "weight": [live.tag("weight", "source")],
            "figure": [live.tag("weight_frame", "x_range")],
        }
        body = card(
            figures.TITLES["weight"],
            self._pane("weight", hooks),
            "The weight η of thresholds, relative to its largest value, over the thresholds on the left. Uniform η is "
            "as wide as the range; beta keeps its weight outside the range too. Treating none has 0.",
            links=self._links("weight", (130, 50)),
            height=120,
        )
        body.insert(
            1,
            markup(
                f'<div class="quiet"><div role="group" aria-label="weight eta">η {etas}'
                '<span class="help">density of thresholds, default uniform</span></div>'
                f"<div {live.attrs(class_='see_beta')}>a {live.menu('a', 'beta a')} b {live.menu('b', 'beta b')}"
                '<span class="help">of beta(a, b), default 2 and 20</span></div></div>',
                css=_QUIET_CSS,
            ),
        )
        body.insert(
            2,
            markup(self._expected_rows(), css=_TABLE_CSS),
        )
        return body

    def _expected_rows(self) -> str:
        live, t = self.live, self.live.text
        rows = []
        for eta, what, where in (
            ("uniform", "thresholds", "range_says"),
            ("beta", "95 % of the weight", "beta_says"),
        ):
            see = live.attrs(class_=f"see_{eta}")
            rows.append(
                f'<tr {see}><th scope="row">{what}</th><td class="n">{t(where)}</td><td></td></tr>'
                f'<tr {see}><th scope="row">expected {t("scale_says")}</th><td class="n">{t(f"{eta}_value")}</td>'
                f'<td class="n m">{t(f"{eta}_interval")}</td></tr>'
                f'<tr {see}><th scope="row">of treating all</th><td class="n">{t(f"{eta}_all")}</td><td></td></tr>'
            )
        return f'<table aria-label="expected net benefit, with 95 % interval">{"".join(rows)}</table>'

    def _cautions(self) -> pn.pane.HTML:
        return markup(
            "<h2>What this page cannot tell</h2>"
            '<p class="note">Good calibration is no sign of honesty: whoever recalibrates a leak moves it from the '
            "miscalibrated to the broad, calibrated regime, where no function of predictions and outcomes finds it "
            "without a ceiling on C* (Proposition 1).</p>"
            '<p class="note">Bad calibration is no proof of a leak: honest models are miscalibrated too. The dispersion '
            "warns, it does not convict.</p>"
            '<p class="note">The paper’s uniform weight is −ln(1 − p): at low prevalence a few records near 1 carry it, '
            "and then its z is refused. Its z of 291 in the miscalibrated arm comes from unit weight.</p>",
            css="p { margin-top: 6px !important }",
        )

    def __panel__(self) -> pn.Column:
        """Build the page once; in the app, what is not seen first follows when the rest is there."""
        if self._root is None:
            right = pn.Column(
                markup(self._numbers(), css=_TABLE_CSS),
                sizing_mode="stretch_width",
                margin=0,
                stylesheets=[":host { gap: 18px }"],
            )
            root = self._root = pn.Column(
                link_note(self.state),
                headline(self.state, self._heading, lambda: self.subject),
                pn.Column(
                    markup(self._laundering(), css=_HAND_CSS),
                    self._choose(),
                    self.live,
                    sizing_mode="stretch_width",
                    margin=0,
                    stylesheets=[theme.RULED_CSS],
                ),
                pn.Column(
                    self._reliability(), right, stylesheets=[_TWO_CSS], sizing_mode="stretch_width", margin=0
                ),
                sizing_mode="stretch_width",
                margin=0,
                stylesheets=[":host { gap: 18px }"],
            )

            def rest() -> None:
                right.append(self._dispersion())
                root.extend(
                    [
                        pn.Column(
                            self._benefit(),
                            self._expected(),
                            stylesheets=[_TWO_CSS],
                            sizing_mode="stretch_width",
                            margin=0,
                        ),
                        self._cautions(),
                    ]
                )

            self.live.when_seen(rest)
        return self._root
