"""The figures of the purity page: answers in, HoloViews elements out.

`curve_rows` and `severity_rows` turn what the core answers into rows of fixed lengths, so that a
figure that was built once takes any vector: the browser copies the rows of the answer table into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr

from dashboards import theme
from dashboards.figures.style import INK, frame, offset, on_paper, style

SLOTS = (0, 1, 2)  # vectors side by side
POINTS = 2000  # of a curve, whatever the vector
FAR = 1e9  # beyond the last rank of every vector
RATE_RANGE = (1e-6, 1.6)
TITLE = "Purity: how many of the highest risks had the event"

_LEAK = theme.REGIME_COLOR["leak"]
_LINES = {"solid": "-", "dashed": "--", "dashdot": "-.", "dotted": ":"}
_MARKS = {"diamond": "D", "inverted_triangle": "v", "hex": "h"}
_RANKS = [(float(10**e), f"{10**e:,}") for e in range(9)]
_RATES = [
    (1.0, "1"),
    (0.1, "0.1"),
    (0.01, "0.01"),
    (0.001, "0.001"),
    (1e-4, "1 in 10,000"),
    (1e-5, "1 in 100,000"),
    (1e-6, "1 in a million"),
]


def curve_rows(curve: xr.Dataset | None) -> dict[str, np.ndarray]:
    """Return one vector's curve and band in rows of fixed lengths; the last point fills them up.

    Parameters
    ----------
    curve : xarray.Dataset or None
        `leakviz.purity_curve` with at most `POINTS` points; None for no vector.

    Returns
    -------
    dict of str to array
        ``k``, ``purity`` (POINTS); ``band_x``, ``band_y`` (2 POINTS): the band's outline, along its
        lower edge and back along its upper one.
    """
    if curve is None:
        return {
            **{name: np.full(POINTS, np.nan) for name in ("k", "purity")},
            "band_x": np.ones(2 * POINTS),  # an area of nan has no outline that could be moved
            "band_y": np.zeros(2 * POINTS),
        }
    k, purity, at, low, high = (
        np.pad(curve[name].values.astype(np.float64), (0, POINTS - curve[name].size), mode="edge")
        for name in ("k", "purity", "band_k", "band_low", "band_high")
    )
    return {
        "k": k,
        "purity": purity,
        "band_x": np.concatenate([at, at[::-1]]),
        "band_y": np.concatenate([low, high[::-1]]),
    }


def _plain(text: str) -> str:
    """Keep a name text on paper too: matplotlib reads formulas between dollar signs."""
    return text.replace("$", r"\$")


def purity_curves(
    now: xr.Dataset,
    *,
    titles: Sequence[str | None],
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw purity against rank, with the box that convicts and each vector's pure head.

    Parameters
    ----------
    now : xarray.Dataset
        The page's table at one stop.
    titles : three strings or None
        The vectors' titles; None where there is no vector.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    k_min, line = float(now["k_min_line"]), float(now["line"])
    layers: list[hv.Element] = [
        style(
            hv.Rectangles([(k_min, line, FAR, 2.0)], label="convicts"),
            backend,
            bokeh={"fill_color": _LEAK, "fill_alpha": 0.07, "line_color": _LEAK, "line_width": 1.8},
            matplotlib={"facecolor": _LEAK + "12", "edgecolor": _LEAK, "linewidth": 1.3},
            hooks=hooks.get("box"),
        ),
        style(
            hv.HLine(line),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
            hooks=hooks.get("line"),
        ),
        style(
            hv.VLine(k_min),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
            hooks=hooks.get("k_min"),
        ),
    ]
    shown = [slot for slot in SLOTS if titles[slot] is not None or backend == "bokeh"]
    for slot in shown:
        color, visible = theme.VECTOR_COLOR[slot], titles[slot] is not None
        half = now[f"band_x_{slot}"].size // 2
        at, edge = now[f"band_x_{slot}"].values, now[f"band_y_{slot}"].values
        layers += [
            style(
                hv.Area((at[:half], edge[:half], edge[half:][::-1]), "rank", ["low", "high"]),
                backend,
                bokeh={"fill_color": color, "fill_alpha": 0.2, "line_alpha": 0, "visible": visible},
                matplotlib={"alpha": 0.2, "hooks": [_fill(color)]},
                hooks=hooks.get(f"band_{slot}"),
            ),
            style(
                hv.HLine(float(now[f"base_{slot}"])),
                backend,
                bokeh={
                    "color": color,
                    "line_width": 1,
                    "line_alpha": 0.75,
                    "line_dash": "dotted",
                    "visible": visible,
                },
                matplotlib={"color": color, "linewidth": 0.8, "linestyle": ":", "alpha": 0.75},
                hooks=hooks.get(f"base_{slot}"),
            ),
        ]
    for slot in shown:
        color, visible = theme.VECTOR_COLOR[slot], titles[slot] is not None
        dash = theme.VECTOR_DASH[slot]
        layers.append(
            style(
                hv.Curve(
                    (now[f"k_{slot}"].values, now[f"purity_{slot}"].values),
                    "rank",
                    "purity",
                    label=_plain(titles[slot] or f"none {slot}"),
                ),
                backend,
                bokeh={"color": color, "line_width": 2.2, "line_dash": dash, "visible": visible},
                matplotlib={"color": color, "linewidth": 1.5, "linestyle": _LINES[dash]},
                hooks=hooks.get(f"curve_{slot}"),
            )
        )
    for slot in shown:
        color, visible = theme.VECTOR_COLOR[slot], titles[slot] is not None
        x, y = now[f"spike_x_{slot}"].values, now[f"spike_y_{slot}"].values
        text = now[f"spike_text_{slot}"].values
        layers += [
            style(
                hv.Points({"rank": x, "purity": y}, ["rank", "purity"]),
                backend,
                bokeh={
                    "marker": theme.VECTOR_MARK[slot],
                    "size": 12,
                    "color": color,
                    "line_color": theme.LIGHT["bg"],
                    "line_width": 1.2,
                    "visible": visible,
                },
                matplotlib={
                    "marker": _MARKS[theme.VECTOR_MARK[slot]],
                    "s": 44,
                    "facecolors": color,
                    "edgecolors": theme.LIGHT["bg"],
                },
                hooks=hooks.get(f"spike_{slot}"),
            ),
            style(
                hv.Labels({"rank": x, "purity": y, "text": text}, ["rank", "purity"], "text"),
                backend,
                bokeh={
                    "text_color": INK,
                    "text_font": theme.FONT_VALUE,
                    "text_font_size": "12px",
                    "text_align": "left",
                    "text_baseline": "bottom",
                    "visible": visible,
                },
                matplotlib={
                    "color": INK,
                    "size": 8,
                    "horizontalalignment": "left",
                    "verticalalignment": "bottom",
                    "hooks": [on_paper(5, -4 - 9 * slot)],
                },
                hooks=[offset(5, -6 - 12 * slot), *hooks.get(f"spike_text_{slot}", [])],
            ),
        ]
    layers += [
        _label(
            (np.maximum(k_min, 1.0), 0.0),
            str(now["k_min_text"].values[0]),
            backend,
            (6, -5),
            hooks.get("k_min_text"),
        ),
        _label(
            (float(now["line_x"].values[0]), line if backend == "matplotlib" else 1.0),
            str(now["line_text"].values[0]),
            backend,
            (-4, -20),
            hooks.get("line_text"),
            align="right",
        ),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title=TITLE,
        xlabel="records, from the highest predicted risk down",
        ylabel="purity: share of events among them",
        xlim=(0.9, float(now["x_end"])),
        ylim=(0.0, 1.15),
        height=430,
        grid="y",
        yformatter="%.1f",
        xticks=_RANKS,
        logx=True,
        hooks=hooks.get("figure"),
    )


def _label(
    at: tuple[float, float],
    text: str,
    backend: str,
    shift: tuple[float, float],
    hooks: Sequence[Callable] | None,
    align: str = "left",
) -> hv.Element:
    x, y = at
    return style(
        hv.Labels({"x": [float(x)], "y": [float(y)], "text": [text]}, ["x", "y"], "text"),
        backend,
        bokeh={
            "text_color": theme.LIGHT["alarm"],
            "text_font": theme.FONT_VALUE,
            "text_font_size": "12px",
            "text_align": align,
            "text_baseline": "bottom",
        },
        matplotlib={
            "color": theme.LIGHT["alarm"],
            "size": 8,
            "horizontalalignment": align,
            "verticalalignment": "bottom" if align == "left" else "top",
            "hooks": [on_paper(*((4, -3) if align == "left" else (-3, 3)))],
        },
        hooks=[offset(*shift), *(hooks or [])],
    )


def _fill(color: str) -> Callable:
    """Return a hook: matplotlib's bands take the default cycle inside an overlay, whatever is asked."""

    def hook(plot: Any, element: Any) -> None:
        plot.handles["artist"].set(facecolor=color, edgecolor="none")

    return hook


def certification_curves(
    now: xr.Dataset,
    *,
    k_mins: np.ndarray,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw how often an honest ranking fires against k_min: the true rate and the naive formula's.

    Parameters
    ----------
    now : xarray.Dataset
        The page's table at one stop.
    k_mins : int array
        The stops of k_min.
    hooks, backend
        As for `purity_curves`.
    """
    hooks = hooks or {}
    ranks = k_mins.astype(np.float64)
    layers: list[hv.Element] = [
        style(
            hv.HLine(float(now["alpha_line"])),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
            hooks=hooks.get("alpha"),
        ),
        style(
            hv.Curve((ranks, now["naive_curve"].values), "k_min", "rate", label="formula M^k_min"),
            backend,
            bokeh={"color": INK, "line_width": 1.6, "line_dash": "dashed"},
            matplotlib={"color": INK, "linewidth": 1.1, "linestyle": "--"},
            hooks=hooks.get("naive"),
        ),
        style(
            hv.Curve((ranks, now["true_curve"].values), "k_min", "rate", label="true rate"),
            backend,
            bokeh={"color": _LEAK, "line_width": 2.2},
            matplotlib={"color": _LEAK, "linewidth": 1.5},
            hooks=hooks.get("true"),
        ),
        style(
            hv.VLine(float(now["k_min_line"])),
            backend,
            bokeh={"color": _LEAK, "line_width": 1.6},
            matplotlib={"color": _LEAK, "linewidth": 1.2},
            hooks=hooks.get("k_min"),
        ),
        style(
            hv.Points({"k_min": now["needed_x"].values, "rate": now["needed_y"].values}, ["k_min", "rate"]),
            backend,
            bokeh={
                "marker": "circle",
                "size": 12,
                "fill_alpha": 0,
                "line_color": INK,
                "line_width": 1.8,
            },
            matplotlib={"marker": "o", "s": 50, "facecolors": "none", "edgecolors": INK, "linewidth": 1.3},
            hooks=hooks.get("needed"),
        ),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title="How often an honest ranking fires",
        xlabel="k_min, records",
        ylabel="rate",
        xlim=(float(ranks[0]), float(ranks[-1])),
        ylim=RATE_RANGE,
        height=300,
        left=92,
        grid="y",
        logx=True,
        logy=True,
        xticks=[(float(v), f"{v:,}") for v in (1, 3, 10, 30, 100, 300, 1000)],
        yticks=_RATES,
        hooks=hooks.get("figure"),
    )


# Panels of the graded leak: variable, title, unit on the axis
PANELS: Mapping[str, tuple[str, str]] = {
    "delta_c": ("Gain in C*", "C* gained"),
    "breadth": ("Breadth", "% of records"),
    "spike": ("Pure head", "records"),
    "m_star": ("M*", "lower bound on risk"),
}


def severity_panel(
    panel: str,
    now: xr.Dataset,
    *,
    ticks: Sequence[tuple[float, str]],
    ylim: tuple[float, float],
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw one quantity against the severity of the leak.

    Parameters
    ----------
    panel : str
        A key of `PANELS`.
    now : xarray.Dataset
        The page's table at one stop.
    ticks : sequence of (float, str)
        The severities' places and names; the honest model is the first.
    ylim : (float, float)
        Fixed for every stop.
    hooks, backend
        As for `purity_curves`.
    """
    hooks = hooks or {}
    title, unit = PANELS[panel]
    place = np.array([x for x, _ in ticks])
    value = now[f"graded_{panel}"].values
    layers: list[hv.Element] = []
    if panel == "breadth":
        ends = np.array([place[0] - 0.5, place[-1] + 0.5])
        low, high = np.split(now["graded_null"].values, 2)
        layers.append(
            style(
                hv.Area((ends, low, high[::-1]), "severity", ["low", "high"], label="honest models"),
                backend,
                bokeh={"fill_color": INK, "fill_alpha": 0.12, "line_alpha": 0},
                matplotlib={"alpha": 0.12, "hooks": [_fill(INK)]},
                hooks=hooks.get("graded_null"),
            )
        )
    if panel == "spike":
        layers.append(
            style(
                hv.HLine(float(now["k_min_line"])),
                backend,
                bokeh={"color": _LEAK, "line_width": 1.4, "line_dash": "dashed"},
                matplotlib={"color": _LEAK, "linewidth": 1.1, "linestyle": "--"},
                hooks=hooks.get("graded_k_min"),
            )
        )
    layers += [
        style(
            hv.Curve((place, value), "severity", panel),
            backend,
            bokeh={"color": _LEAK, "line_width": 1.6},
            matplotlib={"color": _LEAK, "linewidth": 1.2},
            hooks=hooks.get(f"graded_{panel}_line"),
        ),
        style(
            hv.Points({"severity": place, panel: value}, ["severity", panel]),
            backend,
            bokeh={"marker": "circle", "size": 8.5, "color": _LEAK},
            matplotlib={"marker": "o", "s": 26, "c": _LEAK},
            hooks=hooks.get(f"graded_{panel}"),
        ),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title=title,
        xlabel="window, days",
        ylabel=unit,
        xlim=(float(place[0]) - 0.5, float(place[-1]) + 0.5),
        ylim=ylim,
        height=230,
        left=60,
        grid="y",
        xticks=list(ticks),
        hooks=hooks.get("figure"),
    )
