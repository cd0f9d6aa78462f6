"""The figures of the calibration page: answers in, HoloViews elements out.

`drawn` turns what the core says of one vector, as given and recalibrated, into what is drawn, for
every stop of the sliders and switches at once; each figure takes that table at one stop. Columns have
the same length for every vector, so figures are drawn once and only their columns change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

import leakviz
from dashboards import theme
from dashboards.figures.style import INK, by_column, frame, on_paper, style
from leakviz.calibration import Dispersion

TITLES = {
    "reliability": "Reliability: observed share of events at each risk",
    "dispersion": "Dispersion |z|: this vector beside simulated arms",
    "benefit": "Net benefit of acting at a threshold",
    "weight": "Expected net benefit, weighted over thresholds",
}
METHODS = ("none", "platt", "isotonic")
FITS = ("folds", "same")
STRATEGIES = ("quantile", "uniform")
ZOOMS = ("records", "all")
SCALES = ("plain", "standardised")
ETAS = ("uniform", "beta")
BINS = np.arange(5, 51)
# Where a range of thresholds can begin and end, and where net benefit is drawn.
ENDS = np.array(
    [0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99]
)
THRESHOLDS = np.concatenate([leakviz.stops("0", "0.1", "0.001"), leakviz.stops("0.105", "0.99", "0.005")])
BETA_A = np.array([1.0, 2.0, 3.0, 5.0, 8.0])
BETA_B = np.array([2.0, 5.0, 10.0, 20.0, 40.0])
# How far the diagram reaches when it shows where the records are.
REACHES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)

COLOR = theme.REGIME_COLOR["leak"]  # of the vector on trial
ARMS = ("clean", "miscalibrated", "broad", "deterministic", "laundered")
MARK = {"unit": "circle", "uniform": "square"}
Z_ALPHA = 1.96
_STEPS = 512  # of the isotonic curve
_BAND = 200
_BARS = 50
_LEFT = 104  # room for the longest net benefit on the axis: a label that needs more lays the page out anew
_SMALLEST, _LARGEST = 0.01, 2000.0  # |z| at the figure's ends

Reading = Any  # dashboards.calibration.Reading, a message why there is none, or None while it is computed


def threshold_range(low: float, high: float) -> tuple[float, float]:
    """Return the range between two ends, whichever is larger; equal ends reach to the next one.

    Examples
    --------
    >>> threshold_range(0.5, 0.1), threshold_range(0.1, 0.1), threshold_range(0.99, 0.99)
    ((0.1, 0.5), (0.1, 0.15), (0.9, 0.99))
    """
    i, j = sorted(int(np.argmin(np.abs(ENDS - end))) for end in (low, high))
    if i == j:
        i, j = (i, j + 1) if j + 1 < ENDS.size else (i - 1, j)
    return float(ENDS[i]), float(ENDS[j])


def drawn(
    readings: Mapping[tuple[str, str], Reading], arms: Mapping[str, tuple[Dispersion, ...]]
) -> xr.Dataset:
    """Return what the figures draw, for every stop.

    Parameters
    ----------
    readings : mapping
        For each of `METHODS` and `FITS`, what the core says; a text or None where there is nothing to draw.
    arms : mapping
        Dispersion of the simulated arms, unit and uniform weight.

    Returns
    -------
    xarray.Dataset
        Row dimensions: ``point`` (bins), ``vertex`` (isotonic curve), ``edge`` and ``outline`` (outlines
        of bands), ``bar``, ``cut`` (thresholds), ``arm`` and ``own`` (dispersions), ``one``.
    """
    table: dict[str, Any] = {}
    here = {key: r for key, r in readings.items() if hasattr(r, "bins")}
    _draw_bins(table, here)
    _draw_curve(table, here)
    _draw_frame_and_bars(table, here)
    _draw_dispersion(table, here, arms)
    _draw_benefit(table, here)
    return xr.Dataset(
        table,
        {
            "method": list(METHODS),
            "fit": list(FITS),
            "strategy": list(STRATEGIES),
            "bins": BINS,
            "zoom": list(ZOOMS),
            "scale": list(SCALES),
            "low": ENDS,
            "high": ENDS,
            "eta": list(ETAS),
            "a": BETA_A,
            "b": BETA_B,
        },
    )


def _place(method: str, fit: str) -> tuple[int, int]:
    return METHODS.index(method), FITS.index(fit)


def _empty(*shape: int) -> NDArray[np.float32]:
    return np.full((len(METHODS), len(FITS), *shape), np.nan, dtype=np.float32)


def _draw_bins(table: dict[str, Any], readings: Mapping[tuple[str, str], Reading]) -> None:
    shape = (len(STRATEGIES), BINS.size, int(BINS[-1]))
    names = ("predicted", "observed", "low", "high")
    columns = {name: _empty(*shape) for name in names}
    counts = np.zeros((len(METHODS), len(FITS), *shape), dtype=np.int32)
    for key, reading in readings.items():
        of = reading.bins.sel(strategy=list(STRATEGIES))
        counts[_place(*key)] = of["n"].values
        for name in names:
            columns[name][_place(*key)] = np.where(of["n"].values > 0, of[name].values, np.nan)
    dims = ("method", "fit", "strategy", "bins", "point")
    for name in names:
        table[f"bin_{name}"] = (dims, columns[name])
    table["bin_n"] = (dims, counts)


def _draw_curve(table: dict[str, Any], readings: Mapping[tuple[str, str], Reading]) -> None:
    x, y = _empty(2 * _STEPS), _empty(2 * _STEPS)
    band_x, band_y = _empty(2 * _BAND), _empty(2 * _BAND)
    for key, reading in readings.items():
        curve = reading.curve
        take = np.arange(curve.sizes["step"])
        if take.size > _STEPS:
            take = np.unique(np.linspace(0, take.size - 1, _STEPS).round().astype(int))
        both = np.stack([curve["p_min"].values[take], curve["p_max"].values[take]], axis=1).ravel()
        x[_place(*key)][: both.size] = both
        y[_place(*key)][: both.size] = np.repeat(curve["recalibrated"].values[take], 2)
        at = np.minimum(np.arange(_BAND), curve.sizes["p"] - 1)  # a shorter band stands still at its end
        p = curve["p"].values[at]
        band_x[_place(*key)] = np.concatenate([p, p[::-1]])
        low, high = curve["band_low"].values[at], curve["band_high"].values[at]
        band_y[_place(*key)] = np.concatenate([low, high[::-1]])
    table["curve_x"], table["curve_y"] = (
        (("method", "fit", "vertex"), x),
        (("method", "fit", "vertex"), y),
    )
    table["band_x"], table["band_y"] = (
        (("method", "fit", "edge"), band_x),
        (("method", "fit", "edge"), band_y),
    )


def reach(readings: Mapping[tuple[str, str], Reading]) -> float:
    """Return how far the diagram reaches when it shows where the records are."""
    given = readings.get(("none", "same"))
    far = getattr(given, "reach", 1.0)
    return next((r for r in REACHES if r >= far), 1.0)


def _draw_frame_and_bars(table: dict[str, Any], readings: Mapping[tuple[str, str], Reading]) -> None:
    ends = np.array([reach(readings), 1.0])
    for name, factor in (("x0", -0.012), ("x1", 1.012), ("y0", -0.19), ("y1", 1.03)):
        table[f"frame_{name}"] = ("zoom", factor * ends)
    edges = ends[:, None] * np.arange(_BARS + 1) / _BARS
    table["bar_left"] = (("zoom", "bar"), edges[:, :-1])
    table["bar_right"] = (("zoom", "bar"), edges[:, 1:])
    bottom = np.repeat(-0.18 * ends[:, None], _BARS, axis=1)
    table["bar_bottom"] = (("zoom", "bar"), bottom)
    tops = np.repeat(np.repeat(bottom[:, None, None], 3, axis=1), 2, axis=2).astype(np.float32)
    counts = np.zeros(tops.shape, dtype=np.int32)
    for key, reading in readings.items():
        i, j = _place(*key)
        for z, end in enumerate(ends):
            n = reading.counts[float(end)]
            counts[z, i, j] = n
            tops[z, i, j] += 0.14 * end * np.log1p(n) / np.log1p(reading.n)
    table["bar_top"] = (("zoom", "method", "fit", "bar"), tops)
    table["bar_n"] = (("zoom", "method", "fit", "bar"), counts)


def z_label(d: Dispersion) -> str:
    """Write a z with its effective records; a refused one with what the formula gives.

    Examples
    --------
    >>> z_label(leakviz.dispersion([0.2] * 50, [1] * 10 + [0] * 40)), z_label(leakviz.dispersion([0.2], [1]))
    ('0.0 · 50', '2.0 refused · 1')
    """
    if d.z_raw is None:
        return "no variance"
    number = signed(d.z_raw, 1)
    return (
        f"{number} · {d.effective_records:,.0f}"
        if d.z is not None
        else (f"{number} refused · {d.effective_records:,.0f}")
    )


def signed(value: float, places: int) -> str:
    """Write a number with a real minus, and no minus before zero.

    Examples
    --------
    >>> signed(-0.04, 1), signed(-1.26, 1), signed(2951.2, 1)
    ('0.0', '−1.3', '2,951.2')
    """
    text = f"{value:,.{places}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def _draw_dispersion(
    table: dict[str, Any],
    readings: Mapping[tuple[str, str], Reading],
    arms: Mapping[str, tuple[Dispersion, ...]],
) -> None:
    of_arms = [d for arm in ARMS for d in arms[arm]]
    x, fill, text, align, shift = _marks(of_arms)
    table["arm_x"], table["arm_fill"], table["arm_text"] = ("arm", x), ("arm", fill), ("arm", text)
    table["arm_align"], table["arm_shift"] = ("arm", align), ("arm", shift)
    own_x, own_fill = _empty(2).astype(np.float64), np.zeros((3, 2, 2), dtype=bool)
    own_text = np.full((3, 2, 2), "", dtype=object)
    own_align, own_shift = np.full((3, 2, 2), "left", dtype=object), np.zeros((3, 2, 2))
    for key, reading in readings.items():
        at = _place(*key)
        own_x[at], own_fill[at], own_text[at], own_align[at], own_shift[at] = _marks(reading.dispersion)
    dims = ("method", "fit", "own")
    for name, values in (
        ("x", own_x),
        ("fill", own_fill),
        ("text", own_text),
        ("align", own_align),
        ("shift", own_shift),
    ):
        table[f"own_{name}"] = (dims, values)
    for w in range(len(MARK)):
        table[f"arm_x_{w}"], table[f"arm_fill_{w}"] = ("kind", x[w::2]), ("kind", fill[w::2])
        table[f"own_x_{w}"] = (("method", "fit", "one"), own_x[..., w : w + 1])
        table[f"own_fill_{w}"] = (("method", "fit", "one"), own_fill[..., w : w + 1])


def _marks(dispersions: Any) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Return where the marks stand, whether they are filled, and what is written beside them."""
    raw = np.array([np.nan if d.z_raw is None else abs(d.z_raw) for d in dispersions])
    x = np.clip(raw, _SMALLEST, _LARGEST)
    left = x > 10  # there is no room to the right
    return (
        x,
        np.array([d.z is not None for d in dispersions]),
        np.array([z_label(d) for d in dispersions], dtype=object),
        np.where(left, "right", "left").astype(object),
        np.where(left, -9.0, 9.0),
    )


def _draw_benefit(table: dict[str, Any], readings: Mapping[tuple[str, str], Reading]) -> None:
    names = {"plain": "net_benefit", "standardised": "standardised"}
    everybody = {"plain": "treat_all", "standardised": "treat_all_standardised"}
    benefit = np.full((2, len(METHODS), len(FITS), THRESHOLDS.size), np.nan, dtype=np.float32)
    given = np.full((2, THRESHOLDS.size), np.nan, dtype=np.float32)
    treat_all = given.copy()
    for s, scale in enumerate(SCALES):
        for key, reading in readings.items():
            benefit[(s, *_place(*key))] = reading.benefit[names[scale]].values
            treat_all[s] = reading.benefit[everybody[scale]].values
            if key == ("none", "same"):
                given[s] = reading.benefit[names[scale]].values
    for s in range(len(SCALES)):
        treat_all[s] = _until_below(treat_all[s], -np.nanmax([0.0, *benefit[s].flat, *treat_all[s].flat]))
    table["benefit"] = (("scale", "method", "fit", "cut"), benefit)
    table["benefit_given"] = (("scale", "cut"), given)
    table["treat_all"] = (("scale", "cut"), treat_all)
    table["see_given"] = ("method", np.array([method != "none" for method in METHODS]))

    ends = np.array([[threshold_range(low, high) for high in ENDS] for low in ENDS])
    table["from"], table["to"] = (("low", "high"), ends[..., 0]), (("low", "high"), ends[..., 1])
    y0, y1 = np.zeros((2, *ends.shape[:2])), np.ones((2, *ends.shape[:2]))
    for i, j in np.ndindex(ends.shape[:2]):
        inside = (ends[i, j, 0] <= THRESHOLDS) & (ends[i, j, 1] >= THRESHOLDS)
        for s in range(2):
            curves = benefit[s][..., inside]
            curves = curves[np.isfinite(curves)]
            if curves.size:
                top = max(1e-4, float(curves.max()), float(np.nanmax(np.append(treat_all[s][inside], 0))))
                y0[s, i, j] = max(min(0.0, float(curves.min())), -0.6 * top) - 0.08 * top
                y1[s, i, j] = 1.06 * top
    table["benefit_y0"] = (("scale", "low", "high"), y0)
    table["benefit_y1"] = (("scale", "low", "high"), y1)

    weight = np.zeros((2, BETA_A.size, BETA_B.size, 2 * THRESHOLDS.size), dtype=np.float32)
    weight[..., THRESHOLDS.size :] = 1.0
    for i, a in enumerate(BETA_A):
        for j, b in enumerate(BETA_B):
            weight[1, i, j, THRESHOLDS.size :] = beta_shape(THRESHOLDS, a, b)[::-1]
    table["weight"] = (("eta", "a", "b", "outline"), weight)


def _until_below(values: NDArray[np.float32], floor: float) -> NDArray[np.float32]:
    """Cut a curve that falls for good after it has left every frame: its dashes down there cost time to draw."""
    gone = np.flatnonzero(values < floor)
    return np.where(
        np.arange(values.size) > (gone[0] if gone.size else values.size), np.float32(np.nan), values
    )


def beta_shape(tau: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    """Return the density of beta(a, b), relative to the largest value at `tau`.

    Examples
    --------
    >>> beta_shape(np.array([0.0, 0.5, 0.75]), 2, 2).round(9).tolist()
    [0.0, 1.0, 0.75]
    """
    log_density = xlogy(a - 1, tau) + xlog1py(b - 1, -tau)
    return np.exp(log_density - log_density.max())


def reliability(
    now: xr.Dataset, *, hooks: dict[str, list[Callable]] | None = None, backend: str = "bokeh"
) -> hv.Overlay:
    """Draw observed against predicted risk: bins, isotonic curve with band, and where the records are.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at one stop.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}
    """
    hooks = hooks or {}
    n = _BAND
    band = now["band_y"].values.astype(float)
    bins = pd.DataFrame(
        {name: now[f"bin_{name}"].values for name in ("predicted", "observed", "low", "high", "n")}
    ).astype(float)
    bars = pd.DataFrame({name: now[f"bar_{name}"].values for name in ("left", "bottom", "right", "top", "n")})
    layers: list[hv.Element] = [
        style(
            hv.Area(
                (now["band_x"].values[:n].astype(float), band[n:][::-1], band[:n]),
                "predicted",
                ["high", "low"],
            ),
            backend,
            bokeh={"fill_color": INK, "fill_alpha": 0.13, "line_alpha": 0},
            matplotlib={"alpha": 0.13, "hooks": [_fill(INK)]},
            hooks=hooks.get("band"),
        ),
        style(
            hv.Curve([(0, 0), (1, 1)], "predicted", "observed", label="calibrated"),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.8},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.8},
        ),
        style(
            hv.Rectangles(bars, ["left", "bottom", "right", "top"], ["n"]),
            backend,
            bokeh={
                "color": COLOR,
                "fill_alpha": 0.55,
                "line_alpha": 0,
                "tools": ["hover"],
                "hover_tooltips": [("predicted", "@left{0.0000} to @right{0.0000}"), ("records", "@n{0,0}")],
            },
            matplotlib={"facecolor": COLOR, "alpha": 0.55, "edgecolor": "none"},
            hooks=hooks.get("bars"),
        ),
        style(
            hv.Curve(
                (now["curve_x"].values.astype(float), now["curve_y"].values.astype(float)),
                "predicted",
                "observed",
                label="isotonic (CORP)",
            ),
            backend,
            bokeh={"color": COLOR, "line_width": 2},
            matplotlib={"color": COLOR, "linewidth": 1.5},
            hooks=hooks.get("curve"),
        ),
        style(
            hv.Segments(bins.assign(x0=bins["predicted"], x1=bins["predicted"]), ["x0", "low", "x1", "high"]),
            backend,
            bokeh={"color": INK, "line_width": 1.3},
            matplotlib={"color": INK, "linewidth": 0.9},
            hooks=hooks.get("wilson"),
        ),
        style(
            hv.Points(bins, ["predicted", "observed"], label="bins, Wilson 95 %"),
            backend,
            bokeh={
                "marker": "circle",
                "size": 6.5,
                "fill_color": INK,
                "line_color": INK,
                "tools": ["hover"],
                "hover_tooltips": [
                    ("predicted, mean", "@predicted{0.0000}"),
                    ("observed", "@observed{0.0000}"),
                    ("Wilson 95 %", "@low{0.0000} to @high{0.0000}"),
                    ("records", "@n{0,0}"),
                ],
            },
            matplotlib={"marker": "o", "s": 16, "color": INK},
            hooks=hooks.get("bins"),
        ),
    ]
    x0, x1, y0, y1 = (now[f"frame_{end}"].item() for end in ("x0", "x1", "y0", "y1"))
    return frame(
        hv.Overlay(layers),
        backend,
        title=TITLES["reliability"],
        xlabel="predicted risk",
        ylabel="observed share of events",
        xlim=(x0, x1),
        ylim=(y0, y1),
        height=540,
        grid="y",
        hooks=[_inside_unit, *hooks.get("figure", [])],
    )


def _inside_unit(plot: Any, element: Any) -> None:
    """Label risks only: below 0 stand the records."""
    for part in (*plot.state.yaxis, *plot.state.ygrid):
        part.bounds = (0.0, 1.0)


def dispersions(
    now: xr.Dataset, *, hooks: dict[str, list[Callable]] | None = None, backend: str = "bokeh"
) -> hv.Overlay:
    """Draw |z| of this vector and of the simulated arms, unit and uniform weight side by side.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at one stop.
    hooks, backend
        As for `reliability`.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = [
        style(
            hv.VLine(Z_ALPHA),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
        )
    ]
    rows = {
        "arm": (np.repeat(np.arange(len(ARMS), dtype=float)[::-1], 2), INK),
        "own": (np.array([len(ARMS)] * 2, dtype=float), COLOR),
    }
    for name, (place, color) in rows.items():
        side = np.tile([0.2, -0.2], place.size // 2)
        data = pd.DataFrame({"z": now[f"{name}_x"].values, "place": place + side})
        data["fill"] = now[f"{name}_fill"].values.astype(float)
        for column in ("text", "align", "shift"):
            data[column] = now[f"{name}_{column}"].values
        for w, (weight, mark) in enumerate(MARK.items()):
            mine = data.iloc[w::2].reset_index(drop=True)
            if backend == "matplotlib":
                mine["face"] = np.where(mine["fill"] > 0, color, theme.LIGHT["bg"])
            layers.append(
                style(
                    hv.Points(mine, ["z", "place"], label=f"{weight} weight" if name == "arm" else ""),
                    backend,
                    bokeh={
                        "marker": mark,
                        "size": 9,
                        "fill_color": color,
                        "line_color": color,
                        "line_width": 1.5,
                    },
                    matplotlib={
                        "marker": {"circle": "o", "square": "s"}[mark],
                        "s": 26,
                        "facecolors": hv.dim("face"),
                        "edgecolors": color,
                        "linewidth": 1.1,
                    },
                    hooks=[by_column(fill_alpha="fill"), *hooks.get(f"{name}_{weight}", [])],
                )
            )
        layers += _labels(data, backend, hooks.get(f"{name}_labels", []))
    ticks = [(float(len(ARMS)), "this vector"), *((float(4 - i), arm) for i, arm in enumerate(ARMS))]
    return frame(
        hv.Overlay(layers),
        backend,
        title=f"{TITLES['dispersion']}; dotted: {Z_ALPHA}",
        xlabel="|z|, log scale",
        ylabel="",
        xlim=(_SMALLEST * 0.75, _LARGEST),
        ylim=(-0.55, len(ARMS) + 0.55),
        height=300,
        grid="x",
        left=92,
        logx=True,
        yticks=ticks,
        xticks=[(0.01, "≤ 0.01"), (0.1, "0.1"), (1, "1"), (10, "10"), (100, "100"), (1000, "1000")],
        hooks=hooks.get("figure"),
    )


def _labels(data: pd.DataFrame, backend: str, hooks: list[Callable]) -> list[hv.Element]:
    if backend == "matplotlib":
        parts = []
        for align, factor in (("left", 1.25), ("right", 0.8)):
            here = data[(data["align"] == align) & np.isfinite(data["z"])]
            if len(here):
                parts.append(
                    style(
                        hv.Labels(here.assign(z=here["z"] * factor), ["z", "place"], "text"),
                        backend,
                        bokeh={},
                        matplotlib={
                            "color": INK,
                            "size": 6.5,
                            "horizontalalignment": align,
                            "hooks": [on_paper()],
                        },
                    )
                )
        return parts
    look = {
        "text_color": INK,
        "text_font": theme.FONT_VALUE,
        "text_font_size": "11px",
        "text_baseline": "middle",
    }
    place = by_column(text_align="align", x_offset="shift")
    labels = hv.Labels(data, ["z", "place"], ["text", "align", "shift"])
    return [style(labels, backend, bokeh=look, matplotlib={}, hooks=[place, *hooks])]


def benefits(
    now: xr.Dataset,
    *,
    scale: str = "plain",
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the decision curve, as given and recalibrated, with the two policies that use no prediction.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at one stop.
    scale : {"plain", "standardised"}
        What the axis is called.
    hooks, backend
        As for `reliability`.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = [
        style(
            hv.HLine(0, label="treat none"),
            backend,
            bokeh={"color": INK, "line_width": 1.3, "line_dash": "dotted"},
            matplotlib={"color": INK, "linewidth": 0.9, "linestyle": ":"},
        )
    ]
    # Only what ends soon is dashed: dashes that run far out of the frame make a step of the sliders slow.
    looks = (
        ("treat_all", "treat all", INK, "dashed", 1.3),
        ("benefit_given", "as given", COLOR, "solid", 0.9),
        ("benefit", "this vector", COLOR, "solid", 2.4),
    )
    for name, label, color, dash, width in looks:
        values = now[name].values.astype(float)
        seen = bool(now["see_given"]) or name != "benefit_given"
        if not seen and backend == "matplotlib":
            continue  # nor in the legend
        layers.append(
            style(
                hv.Curve((THRESHOLDS, values), "threshold", "net_benefit", label=label),
                backend,
                bokeh={"color": color, "line_width": width, "line_dash": dash, "visible": seen},
                matplotlib={
                    "color": color,
                    "linewidth": 0.7 * width,
                    "linestyle": {"dashed": "--"}.get(dash, "-"),
                },
                hooks=hooks.get(name),
            )
        )
    return frame(
        hv.Overlay(layers),
        backend,
        title=f"{TITLES['benefit']}; dotted: treat none",
        xlabel="threshold at which one acts",
        ylabel="net benefit / prevalence" if scale == "standardised" else "net benefit",
        xlim=(now["from"].item(), now["to"].item()),
        ylim=(now["benefit_y0"].item(), now["benefit_y1"].item()),
        height=300,
        grid="y",
        left=_LEFT,
        hooks=hooks.get("figure"),
    )


def weights(
    now: xr.Dataset, *, hooks: dict[str, list[Callable]] | None = None, backend: str = "bokeh"
) -> hv.Overlay:
    """Draw the weight of thresholds.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at one stop.
    hooks, backend
        As for `reliability`.
    """
    hooks = hooks or {}
    outline = now["weight"].values.astype(float)
    low, high = outline[: THRESHOLDS.size], outline[THRESHOLDS.size :][::-1]
    area = style(
        hv.Area((THRESHOLDS, high, low), "threshold", ["high", "low"]),
        backend,
        bokeh={"fill_color": INK, "fill_alpha": 0.22, "line_alpha": 0},
        matplotlib={"alpha": 0.22, "hooks": [_fill(INK)]},
        hooks=hooks.get("weight"),
    )
    base = style(
        hv.Curve([(0, 0), (1, 0)], "threshold", "weight"),
        backend,
        bokeh={"color": INK, "line_width": 1},
        matplotlib={"color": INK, "linewidth": 0.7},
    )
    return frame(
        hv.Overlay([area, base]),
        backend,
        title="Weight of thresholds, η",
        xlabel="threshold",
        ylabel="weight",
        xlim=(now["from"].item(), now["to"].item()),
        ylim=(0.0, 1.08),
        height=110,
        left=_LEFT,
        yticks=[(0, "0"), (1, "max")],
        hooks=hooks.get("figure"),
    )


def _fill(color: str) -> Callable:
    """Return a hook: matplotlib's bands take the default cycle inside an overlay, whatever is asked."""

    def hook(plot: Any, element: Any) -> None:
        plot.handles["artist"].set(facecolor=color, edgecolor="none")

    return hook
