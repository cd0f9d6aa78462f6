"""The figures of the page Learn: answers in, HoloViews elements out.

The plane with its level sets, the histograms of the scores, the ROC curve and the place in the fingerprint
box are drawn from the page's table at one stop; the curves of lesson 8 from `leakviz.simulate_twins`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import xarray as xr

from dashboards import theme
from dashboards.figures.style import INK, above, frame, style
from leakviz.world import FRAME

FIGURES = {
    "plane": "What looks familiar",
    "histograms": "How unusual each row looks",
    "roc": "ROC curve",
    "box": "Fingerprint",
    "reliability": "Reliability",
    "purity": "Purity",
}
BOX = {"x": (0.44, 1.03), "y": (-0.03, 1.03)}
LEVELS = (0.5, 0.8, 0.95)  # of the ID test rows inside
ROUND, WINDING = 62, 640  # vertices of a level line: one ellipse, or several, or no ellipse
_FULL = 0.075  # how much each level fills
MODELS = {
    "honest": "the first: honest",
    "leaky": "the second: leaky",
    "flag": "near-label flag",
    "recalibrated": "flag, after Platt",
}


def _themed(**properties: str) -> Callable:
    """Return a hook: these properties of the glyph are in a colour of the page, which changes with the theme."""

    def hook(plot: Any, element: Any) -> None:
        glyph = plot.handles["glyph"]
        tags = [f"theme:{color}:{name}" for name, color in properties.items()]
        glyph.tags = [*glyph.tags, *(tag for tag in tags if tag not in glyph.tags)]

    return hook


def _outline(x: np.ndarray, y: np.ndarray) -> Callable:
    """Return a hook that gives a patch its outline: HoloViews' Area knows no holes and no second loop."""

    def hook(plot: Any, element: Any) -> None:
        plot.handles["source"].data = {"x": x.copy(), "y": y.copy()}

    return hook


def level_names() -> list[str]:
    """Return what the level lines are called, from the innermost out.

    Examples
    --------
    >>> level_names()[:2]
    ['round0', 'round1']
    """
    return [f"{kind}{level}" for kind in ("round", "winding") for level in range(len(LEVELS))]


def _loops(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Cut an outline into its loops, at what is nan."""
    cuts = np.flatnonzero(np.isnan(x) | np.isnan(y))
    parts = np.split(np.column_stack([x, y]), cuts)
    return [p[~np.isnan(p).any(axis=1)] for p in parts if (~np.isnan(p).any(axis=1)).sum() > 2]


def _level(now: xr.Dataset, name: str, backend: str, hooks: Sequence[Callable]) -> hv.Element:
    x, y = (now[f"{name}_{axis}"].values.astype(np.float64) for axis in "xy")
    ink = theme.LIGHT["accent"]
    if backend == "matplotlib":
        loops = [{"x": p[:, 0], "y": p[:, 1]} for p in _loops(x, y)]
        return style(
            hv.Polygons(loops, ["x", "y"]),
            backend,
            bokeh={},
            matplotlib={"linewidth": 0.9, "hooks": [_level_ink]},
        )
    return style(
        hv.Area([(0.0, 0.0), (1.0, 0.0)]),
        backend,
        bokeh={
            "fill_color": ink,
            "fill_alpha": _FULL,
            "line_color": ink,
            "line_alpha": 0.75,
            "line_width": 1.4,
            "visible": bool(now["see_levels"]),
        },
        matplotlib={},
        hooks=[_outline(x, y), _themed(fill_color="accent", line_color="accent"), *hooks],
    )


def _level_ink(plot: Any, element: Any) -> None:
    """Give levels their colour: in an overlay matplotlib's polygons take the default cycle (a hook)."""
    ink = theme.LIGHT["accent"]
    plot.handles["artist"].set(facecolor=f"{ink}{round(255 * _FULL):02x}", edgecolor=f"{ink}bf")


def _rows(
    now: xr.Dataset,
    name: str,
    label: str,
    backend: str,
    hooks: Sequence[Callable],
    *,
    color: str,
    marker: str,
    size: float,
    filled: bool,
    alpha: float = 0.75,
) -> hv.Element:
    data = {axis: now[f"{name}_{axis}"].values.astype(np.float64) for axis in "xy"}
    return style(
        hv.Points(data, ["x", "y"], label=label),
        backend,
        bokeh={
            "marker": marker,
            "size": size,
            "fill_color": color,
            "line_color": color,
            "fill_alpha": 0.55 if filled else 0.0,
            "line_alpha": 0.0 if filled else alpha,
            "line_width": 1.1,
        },
        matplotlib={
            "marker": theme.PAPER_MARK.get(marker, "o"),
            "s": size**2 / 2.6,
            "facecolors": color if filled else "none",
            "edgecolors": "none" if filled else color,
            "alpha": 0.55 if filled else alpha,
            "linewidth": 0.7,
        },
        hooks=hooks,
    )


def plane(
    now: xr.Dataset,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the rows, the detector's level sets, the probe's line and the centres.

    Parameters
    ----------
    now : xarray.Dataset
        The page's table at one stop.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    color, marker = str(now["color"].item()), str(now["marker"].item())
    layers: list[hv.Element] = []
    if backend == "bokeh" or bool(now["see_levels"]):
        layers += [
            _level(now, name, backend, hooks.get(name, []))
            for name in level_names()
            if backend == "bokeh" or np.isfinite(now[f"{name}_x"]).any()
        ]
    layers += [
        _rows(
            now,
            "fit",
            "fit set",
            backend,
            hooks.get("fit", []),
            color=INK,
            marker="circle",
            size=3.6,
            filled=True,
            alpha=0.35,
        ),
        _rows(
            now,
            "ood_fit",
            "OOD class, in the fit set" if backend == "bokeh" or np.isfinite(now["ood_fit_x"]).any() else "",
            backend,
            hooks.get("ood_fit", []),
            color=color,
            marker=marker,
            size=4.2,
            filled=True,
        ),
        _rows(
            now,
            "id",
            "ID test",
            backend,
            hooks.get("id", []),
            color=INK,
            marker="circle",
            size=5.2,
            filled=False,
            alpha=0.6,
        ),
        _rows(
            now,
            "ood",
            "OOD class, test",
            backend,
            hooks.get("ood", []),
            color=color,
            marker=marker,
            size=5.6,
            filled=False,
        ),
    ]
    if backend == "bokeh" or bool(now["see_line"]):
        layers.append(
            style(
                hv.Curve(
                    (now["oracle_x"].values.astype(float), now["oracle_y"].values.astype(float)), "x", "y"
                ),
                backend,
                bokeh={
                    "color": INK,
                    "line_width": 2,
                    "line_dash": "dashed",
                    "visible": bool(now["see_line"]),
                },
                matplotlib={"color": INK, "linewidth": 1.3, "linestyle": "--"},
                hooks=hooks.get("line"),
            )
        )
    for name, ink in (("centre", INK), ("ood_centre", color)):
        data = {axis: now[f"{name}_{axis}"].values.astype(np.float64) for axis in "xy"}
        if backend == "matplotlib":  # which has no circle with a cross
            for paper in (
                {"marker": "o", "s": 60, "facecolors": theme.LIGHT["bg"] + "d9", "edgecolors": ink},
                {"marker": "+", "s": 60, "c": ink, "edgecolors": None},
            ):
                options = {**paper, "linewidth": 1.1}
                layers.append(style(hv.Points(data, ["x", "y"]), backend, bokeh={}, matplotlib=options))
            continue
        layers.append(
            style(
                hv.Points(data, ["x", "y"]),
                backend,
                bokeh={
                    "marker": "circle_cross",
                    "size": 13,
                    "fill_color": theme.LIGHT["bg"],
                    "fill_alpha": 0.85,
                    "line_color": ink,
                    "line_width": 1.8,
                },
                matplotlib={},
                hooks=[above, _themed(fill_color="bg"), *hooks.get(name, [])],
            )
        )
    if backend == "bokeh":  # follows the finger while the answer is on its way
        layers.append(
            style(
                hv.Points({"x": [-99.0], "y": [-99.0]}, ["x", "y"]),
                backend,
                bokeh={
                    "marker": "circle",
                    "size": 24,
                    "fill_alpha": 0,
                    "line_color": INK,
                    "line_width": 1.4,
                },
                matplotlib={},
                hooks=[above, *hooks.get("held", [])],
            )
        )
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["plane"],
        xlabel="feature 1",
        ylabel="feature 2",
        xlim=FRAME[0],
        ylim=FRAME[1],
        height=400,
        left=40,
        hooks=[_square, *hooks.get("figure", [])],
    )


def _square(plot: Any, element: Any) -> None:
    """Keep the same room on opposite sides, so that the frame has the shape of its ranges (a hook)."""
    plot.state.update(min_border_left=40, min_border_bottom=40, min_border_top=6, min_border_right=6)
    plot.state.height = 1200  # at most: the box around it has the shape, however wide it is


def histograms(
    now: xr.Dataset,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw how unusual ID and OOD test rows look to the detector.

    Parameters
    ----------
    now, hooks, backend
        As for `plane`.
    """
    hooks = hooks or {}
    color = str(now["color"].item())
    layers = []
    for kind, ink, alpha, label in (("id", INK, 0.38, "ID test"), ("ood", color, 0.6, "OOD class")):
        share = now[f"{kind}_share"].values.astype(np.float64)
        bars = {
            "left": now["bin_left"].values,
            "bottom": np.zeros(share.size),
            "right": now["bin_right"].values,
            "top": share,
        }
        layers.append(
            style(
                hv.Rectangles(bars, list(bars), label=label),
                backend,
                bokeh={"fill_color": ink, "fill_alpha": alpha, "line_alpha": 0},
                matplotlib={"facecolor": ink, "alpha": alpha, "edgecolor": "none"},
                hooks=hooks.get(f"{kind}_bars"),
            )
        )
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["histograms"],
        xlabel="more unusual →",
        ylabel="share",
        xlim=(float(now["bin_start"]), float(now["bin_end"])),
        ylim=(0.0, float(now["share_end"])),
        height=160,
        left=44,
        yticks=[0, 0.2, 0.4, 0.6, 0.8, 1],  # of one width, so that no axis moves
        hooks=hooks.get("figure"),
    )


def _diagonal(backend: str) -> hv.Element:
    return style(
        hv.Curve([(0.0, 0.0), (1.0, 1.0)], "x", "y"),
        backend,
        bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
        matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
    )


def roc(
    now: xr.Dataset,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the detector's ROC curve.

    Parameters
    ----------
    now, hooks, backend
        As for `plane`.
    """
    hooks = hooks or {}
    color = str(now["color"].item())
    curve = (now["fpr"].values.astype(np.float64), now["tpr"].values.astype(np.float64))
    layers = [
        _diagonal(backend),
        style(
            hv.Curve(curve, "x", "y"),
            backend,
            bokeh={"color": color, "line_width": 2.2},
            matplotlib={"color": color, "linewidth": 1.5},
            hooks=hooks.get("curve"),
        ),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["roc"],
        xlabel="false alarms",
        ylabel="caught",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        height=190,
        left=44,
        xticks=[0, 0.5, 1],
        yticks=[0, 0.5, 1],
        hooks=hooks.get("figure"),
    )


def box(
    now: xr.Dataset,
    *,
    gate: float,
    tau: float,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw where this world stands in the fingerprint box, with the class in the fit set and without.

    Parameters
    ----------
    now, hooks, backend
        As for `plane`.
    gate, tau : float
        The published rule's cuts.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = [
        style(
            hv.Rectangles([(gate, -1.0, 2.0, tau)]),
            backend,
            bokeh={
                "fill_color": theme.REGIME_COLOR["leak"],
                "fill_alpha": 0.07,
                "line_color": theme.REGIME_COLOR["leak"],
                "line_width": 1.5,
            },
            matplotlib={
                "facecolor": theme.REGIME_COLOR["leak"] + "12",
                "edgecolor": theme.REGIME_COLOR["leak"],
                "linewidth": 1.1,
            },
        ),
        style(
            hv.Curve((now["pair_x"].values.astype(float), now["pair_y"].values.astype(float)), "x", "y"),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_alpha": 0.6},
            matplotlib={"color": INK, "linewidth": 0.7, "alpha": 0.6},
            hooks=hooks.get("pair"),
        ),
    ]
    for name, regime in (("excluded", "clean-excl"), ("leaked", "leak")):
        color, marker = theme.REGIME_COLOR[regime], theme.REGIME_MARK[regime]
        data = {axis: now[f"{name}_{axis}"].values.astype(float) for axis in "xy"}
        layers.append(
            style(
                hv.Points(data, ["x", "y"], label=theme.REGIME_LABEL[regime]),
                backend,
                bokeh={
                    "marker": marker,
                    "size": 8,
                    "color": color,
                    "fill_alpha": 0,
                    "line_width": 1.5,
                    "line_alpha": 0.8,
                },
                matplotlib={
                    "marker": theme.PAPER_MARK[marker],
                    "s": 26,
                    "facecolors": "none",
                    "edgecolors": color,
                    "alpha": 0.8,
                },
                hooks=hooks.get(name),
            )
        )
    color, marker = str(now["color"].item()), str(now["marker"].item())
    layers.append(
        style(
            hv.Points({"x": now["now_x"].values, "y": now["now_y"].values}, ["x", "y"], label="now"),
            backend,
            bokeh={"marker": marker, "size": 12, "color": color, "line_width": 1.5},
            matplotlib={"marker": theme.PAPER_MARK[marker], "s": 50, "facecolors": color},
            hooks=hooks.get("now"),
        )
    )
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["box"],
        xlabel="oracle, with labels",
        ylabel="best-unsup",
        xlim=BOX["x"],
        ylim=BOX["y"],
        height=190,
        left=44,
        xticks=[0.5, 0.75, 1],
        yticks=[0, 0.5, 1],
        hooks=hooks.get("figure"),
    )


def _lines(
    twins: xr.Dataset,
    x: str,
    y: str,
    dim: str,
    backend: str,
    hooks: dict[str, list[Callable]],
    *,
    marks: bool,
) -> list[hv.Element]:
    layers: list[hv.Element] = []
    for place, (model, label) in enumerate(MODELS.items()):
        color = theme.MODEL_COLOR[place]
        of = twins.sel(model=model)
        data = (of[x].values.astype(float), of[y].values.astype(float))
        dash = ("solid", "dashed", "solid", "dotted")[place]
        layers.append(
            style(
                hv.Curve(data, "x", "y", label=label),
                backend,
                bokeh={"color": color, "line_width": (4.5, 2, 2, 2.6)[place], "line_dash": dash},
                matplotlib={
                    "color": color,
                    "linewidth": (3.0, 1.3, 1.3, 1.6)[place],
                    "linestyle": {"solid": "-", "dashed": "--", "dotted": ":"}[dash],
                },
                hooks=hooks.get(model),
            )
        )
        if marks:
            layers.append(
                style(
                    hv.Points({"x": data[0], "y": data[1]}, ["x", "y"]),
                    backend,
                    bokeh={
                        "marker": theme.MODEL_MARK[place],
                        "size": (10, 6, 8, 8)[place],
                        "color": color,
                        "fill_alpha": 0.0 if place == 0 else 1.0,
                        "line_width": 1.6,
                    },
                    matplotlib={
                        "marker": theme.PAPER_MARK[theme.MODEL_MARK[place]],
                        "s": (40, 14, 24, 24)[place],
                        "facecolors": "none" if place == 0 else color,
                        "edgecolors": color,
                    },
                    hooks=hooks.get(f"{model}_marks"),
                )
            )
    return layers


def reliability(
    twins: xr.Dataset,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw, for the models of lesson 8, what share had the event against what was predicted.

    Parameters
    ----------
    twins : xarray.Dataset
        `leakviz.simulate_twins`.
    hooks, backend
        As for `plane`.
    """
    hooks = hooks or {}
    end = np.ceil(10 * float(np.nanmax([twins["predicted"], twins["observed"]]))) / 10
    layers = [
        _diagonal(backend),
        *_lines(twins, "predicted", "observed", "bin", backend, hooks, marks=True),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["reliability"],
        xlabel="predicted risk",
        ylabel="share with the event",
        xlim=(-0.02 * end, 1.02 * end),
        ylim=(-0.02 * end, 1.02 * end),
        height=300,
        grid="y",
        left=46,
        hooks=hooks.get("figure"),
    )


def purity(
    twins: xr.Dataset,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw, for the models of lesson 8, what share of the k highest risks had the event.

    Parameters
    ----------
    twins, hooks, backend
        As for `reliability`.
    """
    hooks = hooks or {}
    return frame(
        hv.Overlay(_lines(twins, "rank", "purity", "cut", backend, hooks, marks=False)),
        backend,
        title=FIGURES["purity"],
        xlabel="k, records with the highest risk",
        ylabel="share with the event",
        xlim=(1.0, float(twins["rank"].max())),
        ylim=(-0.02, 1.03),
        height=300,
        grid="y",
        left=46,
        logx=True,
        xticks=[(float(10**e), f"{10**e:,}") for e in range(6)],
        hooks=hooks.get("figure"),
    )


def twins_data(name: str, twins: xr.Dataset) -> pd.DataFrame:
    """Return the numbers behind a figure of lesson 8.

    Parameters
    ----------
    name : {"reliability", "purity"}
    twins : xarray.Dataset
        `leakviz.simulate_twins`.
    """
    columns = {
        "reliability": ["predicted", "observed", "observed_low", "observed_high"],
        "purity": ["rank", "purity"],
    }[name]
    return twins[columns].to_dataframe().dropna(how="all", subset=columns).reset_index()[["model", *columns]]
