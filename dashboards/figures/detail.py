"""The figures of a setting's detail: answers in, HoloViews elements out.

`drawn` brings what the core says of one setting to rows of fixed lengths, so that figures that were
drawn once take any other setting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr
from bokeh.models import BasicTickFormatter, FixedTicker

from dashboards.figures.style import INK, frame, style

DETECTORS = {
    "maha": ("Mahalanobis", "squared distance"),
    "knn": ("kNN", "distance to the 50th neighbour"),
    "oracle": ("Oracle LDA", "score, larger: more OOD"),
}
FIGURES = (*DETECTORS, "roc")
DASH = {"maha": "solid", "knn": "dashed", "oracle": "dotted"}
BINS, POINTS = 48, 201
TITLES = {
    **{name: f"{title}: scores of ID and OOD rows" for name, (title, _) in DETECTORS.items()},
    "roc": "ROC, OOD as positive",
}


def drawn(detail: xr.Dataset | None, *, color: str, alphas: list[str], seeds: list[int]) -> xr.Dataset:
    """Return what the figures draw, for every seed and stop of alpha.

    Parameters
    ----------
    detail : xarray.Dataset or None
        `leakviz.setting_detail.setting_detail` with `BINS` and `POINTS`; None while nothing is chosen.
    color : str
        Of the OOD rows: that of their regime.
    alphas : list of str
        The stops.
    seeds : list of int

    Returns
    -------
    xarray.Dataset
        Row dimensions ``bin`` and ``point``; ranges and colour as single values.
    """
    table: dict[str, Any] = {"ood_color": ((), color)}
    for name in DETECTORS:
        dims = ("seed", "alpha") if name == "maha" else ("seed",)
        sizes = (len(seeds), len(alphas)) if name == "maha" else (len(seeds),)
        for column, row, size in (
            ("id", "bin", BINS),
            ("ood", "bin", BINS),
            ("fpr", "point", POINTS),
            ("tpr", "point", POINTS),
        ):
            values = np.zeros((*sizes, size)) if detail is None else detail[f"{name}_{column}"].values
            table[f"{name}_{column}"] = ((*dims, row), values.astype(np.float32))
        edges = np.linspace(0.5, 1.5, BINS + 1)
        left = edges[:-1] if detail is None else detail[f"{name}_left"].values
        right = edges[1:] if detail is None else detail[f"{name}_right"].values
        table[f"{name}_left"], table[f"{name}_right"] = ("bin", left), ("bin", right)
        table[f"{name}_start"], table[f"{name}_end"] = ((), float(left[0])), ((), float(right[-1]))
        # The heights change with alpha more than one fixed range can show: as narrow as a spike, or flat.
        shares = np.stack([table[f"{name}_{kind}"][1] for kind in ("id", "ood")])
        highest = shares.max(axis=(0, 1, -1)).astype(np.float64)  # over kinds, seeds and bins
        table[f"{name}_top"] = (dims[1:], np.where(highest == 0, 1.0, 1.05 * highest))
    return xr.Dataset(table, {"seed": seeds, "alpha": alphas})


def histogram(
    name: str, now: xr.Dataset, *, hooks: dict[str, list[Callable]] | None = None, backend: str = "bokeh"
) -> hv.Overlay:
    """Draw how the scores of ID and of OOD rows are distributed.

    Parameters
    ----------
    name : {"maha", "knn", "oracle"}
    now : xarray.Dataset
        `drawn` at one stop.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}
    """
    hooks = hooks or {}
    layers = []
    for kind, color, alpha in (("id", INK, 0.38), ("ood", str(now["ood_color"].item()), 0.6)):
        bars = {
            "left": now[f"{name}_left"].values,
            "bottom": np.zeros(BINS),
            "right": now[f"{name}_right"].values,
            "top": now[f"{name}_{kind}"].values.astype(np.float64),
        }
        layers.append(
            style(
                hv.Rectangles(bars, list(bars), label={"id": "ID test", "ood": "OOD"}[kind]),
                backend,
                bokeh={"fill_color": color, "fill_alpha": alpha, "line_alpha": 0},
                matplotlib={"facecolor": color, "alpha": alpha, "edgecolor": "none"},
                hooks=hooks.get(kind),
            )
        )
    return frame(
        hv.Overlay(layers),
        backend,
        title=TITLES[name],
        xlabel=DETECTORS[name][1],
        ylabel="share of rows",
        xlim=(float(now[f"{name}_start"]), float(now[f"{name}_end"])),
        ylim=(0.0, float(now[f"{name}_top"])),
        height=210,
        logx=name == "maha",
        yformatter="%.2f",
        hooks=[*([_even_ticks] if name == "maha" else []), *hooks.get("figure", [])],
    )


def _even_ticks(plot: Any, element: Any) -> None:
    """Label 1, 2, 5, 10, ... of a logarithmic axis: Bokeh's own ticks crowd on less than a decade (a hook)."""
    ticks = [float(f"{digit}e{power}") for power in range(-3, 9) for digit in (1, 2, 5)]
    for axis in plot.state.xaxis:
        axis.ticker = FixedTicker(ticks=ticks)
        axis.formatter = BasicTickFormatter(use_scientific=False)


def roc(
    now: xr.Dataset, *, hooks: dict[str, list[Callable]] | None = None, backend: str = "bokeh"
) -> hv.Overlay:
    """Draw the ROC curves of both detectors and of the probe.

    Parameters
    ----------
    now, hooks, backend
        As for `histogram`.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = [
        style(
            hv.Segments([(0.0, 0.0, 1.0, 1.0)], ["x0", "y0", "x1", "y1"]),
            backend,
            bokeh={"color": INK, "line_width": 1, "alpha": 0.3},
            matplotlib={"color": INK, "linewidth": 0.8, "alpha": 0.3},
        )
    ]
    for name, (title, _) in DETECTORS.items():
        color = INK if name == "oracle" else str(now["ood_color"].item())
        curve = (now[f"{name}_fpr"].values.astype(float), now[f"{name}_tpr"].values.astype(float))
        layers.append(
            style(
                hv.Curve(curve, "fpr", "tpr", label=title),
                backend,
                bokeh={"color": color, "line_width": 2, "line_dash": DASH[name]},
                matplotlib={
                    "color": color,
                    "linewidth": 1.5,
                    "linestyle": {"solid": "-", "dashed": "--", "dotted": ":"}[DASH[name]],
                },
                hooks=hooks.get(name),
            )
        )
    return frame(
        hv.Overlay(layers),
        backend,
        title=TITLES["roc"],
        xlabel="share of ID rows flagged",
        ylabel="share of OOD rows flagged",
        xlim=(0.0, 1.0),
        ylim=(0.0, 1.01),
        height=210,
        grid="y",
        xformatter="%.1f",
        yformatter="%.1f",
        hooks=hooks.get("figure"),
    )
