"""The figures of the page for one's own embeddings: an audit in, HoloViews elements out.

`drawn` turns an audit into rows of fixed lengths, at every stop of gate and tau at once, so that figures
that were drawn once take any other audit: the same columns are written anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dashboards import theme
from dashboards.figures.style import INK, frame, offset, style

SEEDS = 3  # as many as an audit has
SCORES = {"oracle_lda": "oracle LDA", "maha": "Mahalanobis", "knn": "kNN", "best_unsup": "best-unsup"}
FIGURES = {"box": "In the fingerprint box", "contrast": "Inside and outside the fit set"}
# A split of which nobody said what it is has no regime's colour.
UNKNOWN = (theme.UNKNOWN_COLOR, "hex", "not known")

Array = NDArray[np.float64]


def look(truth: str) -> tuple[str, str, str]:
    """Return colour, mark and name of what a split is known to be."""
    if not truth:
        return UNKNOWN
    return theme.REGIME_COLOR[truth], theme.REGIME_MARK[truth], theme.REGIME_LABEL[truth]


def drawn(audit: xr.Dataset, truth: str, *, gates: Array, taus: Array) -> xr.Dataset:
    """Return what the figures draw, for every stop of gate and tau.

    Parameters
    ----------
    audit : xarray.Dataset
        As `leakviz.audit_split` returns it, with `SEEDS` seeds.
    truth : str
        The split's regime, or "".
    gates, taus : float arrays
        The stops.

    Returns
    -------
    xarray.Dataset
        Row dimensions ``one``, ``run`` (a seed) and ``score`` (an entry of `SCORES`). What is not
        there is nan.
    """
    nothing = np.full(SEEDS, np.nan)
    given = {name: audit[name].values for name in SCORES}
    other = dict.fromkeys(SCORES, nothing)
    if "contrast" in audit:
        other = {n: audit[n if n == "oracle_lda" else f"{n}_excluded"].values for n in SCORES}
    table: dict[str, Any] = {
        "box_left": (("gate", "one"), gates[:, np.newaxis]),
        "box_top": (("tau", "one"), taus[:, np.newaxis]),
    }
    for name, values in (("split", given), ("other", other)):
        x, y = values["oracle_lda"], values["best_unsup"]
        table[f"{name}_runs_x"], table[f"{name}_runs_y"] = ("run", x), ("run", y)
        # The rule takes means over seeds, to 12 decimals.
        mx, my = round(float(x.mean()), 12), round(float(y.mean()), 12)
        table[f"{name}_x"], table[f"{name}_y"] = ("one", [mx]), ("one", [my])
        fires = (mx >= gates[:, np.newaxis]) & (my < taus)
        table[f"{name}_fill"] = (("gate", "tau", "one"), fires[..., np.newaxis])
    table["link_x0"], table["link_y0"] = table["split_x"], table["split_y"]
    table["link_x1"], table["link_y1"] = table["other_x"], table["other_y"]
    for name, suffix in (("given", ""), ("without", "_excluded")):
        values = given if name == "given" else other
        table[f"{name}_at"] = ("score", np.array([values[s].mean() for s in SCORES]))
        for end in ("low", "high"):
            table[f"{name}_{end}"] = (
                "score",
                np.array([_end(audit, s, suffix, end, values) for s in SCORES]),
            )
    color, mark, _ = look(truth)
    table["color"], table["mark"] = ((), color), ((), mark)
    lowest = np.nanmin([0.905, *given["oracle_lda"]])
    table["x_start"] = ((), float(np.floor(lowest * 100 - 1) / 100))
    return xr.Dataset(table, {"gate": gates, "tau": taus})


def _end(audit: xr.Dataset, score: str, suffix: str, end: str, values: dict[str, Array]) -> float:
    """Return the mean over seeds of an interval's end; best-unsup has no interval of its own."""
    name = f"{score}_{end}" if score == "oracle_lda" else f"{score}{suffix}_{end}"
    if np.isnan(values[score]).all() or name not in audit:
        return float("nan")
    return float(audit[name].mean())


def box(
    now: xr.Dataset,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the split in the fingerprint box, seed by seed, and what it is without the designated class.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at one stop.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    left, top = now["box_left"].item(), now["box_top"].item()
    leak = theme.REGIME_COLOR["leak"]
    layers: list[hv.Element] = [
        style(
            hv.Rectangles([(left, -1.0, 2.0, top)]),
            backend,
            bokeh={"fill_color": leak, "fill_alpha": 0.07, "line_color": leak, "line_width": 1.8},
            matplotlib={"facecolor": leak + "12", "edgecolor": leak, "linewidth": 1.3},
            hooks=hooks.get("box"),
        ),
        style(
            hv.Labels({"x": [1.0], "y": [0.0], "text": ["fires"]}, ["x", "y"], "text"),
            backend,
            bokeh={
                "text_color": theme.LIGHT["alarm"],
                "text_font_size": "12px",
                "text_font": theme.FONT_VALUE,
                "text_align": "right",
                "text_baseline": "bottom",
            },
            matplotlib={
                "color": theme.LIGHT["alarm"],
                "size": 8,
                "horizontalalignment": "right",
                "verticalalignment": "bottom",
            },
            hooks=[offset(0, -6), *hooks.get("box_label", [])],
        ),
        style(
            hv.Segments(
                {e: now[f"link_{e}"].values for e in ("x0", "y0", "x1", "y1")}, ["x0", "y0", "x1", "y1"]
            ),
            backend,
            bokeh={"color": INK, "line_width": 1.2, "line_dash": "dotted"},
            matplotlib={"color": INK, "linewidth": 0.9, "linestyle": ":"},
            hooks=hooks.get("link"),
        ),
    ]
    color, mark = now["color"].item(), now["mark"].item()
    excluded = theme.REGIME_COLOR["clean-excl"], theme.REGIME_MARK["clean-excl"]
    for name, (ink, shape), label in (
        ("other", excluded, "without the designated class"),
        ("split", (color, mark), "as given"),
    ):
        layers += [
            style(
                hv.Points({"x": now[f"{name}_runs_x"].values, "y": now[f"{name}_runs_y"].values}, ["x", "y"]),
                backend,
                bokeh={"marker": "circle", "size": 4, "color": ink, "line_alpha": 0, "fill_alpha": 0.75},
                matplotlib={"marker": "o", "s": 6, "facecolors": ink, "edgecolors": "none", "alpha": 0.75},
                hooks=hooks.get(f"{name}_runs"),
            ),
            style(
                hv.Points(
                    {"x": now[f"{name}_x"].values, "y": now[f"{name}_y"].values}, ["x", "y"], label=label
                ),
                backend,
                bokeh={
                    "marker": shape,
                    "size": 15,
                    "color": ink,
                    "line_width": 2,
                    "fill_alpha": float(now[f"{name}_fill"].item()),
                },
                matplotlib={
                    "marker": PAPER_MARK[shape],
                    "s": 70,
                    "facecolors": ink if now[f"{name}_fill"].item() else "none",
                    "edgecolors": ink,
                    "linewidth": 1.5,
                },
                hooks=[_own_alpha(now[f"{name}_fill"].item()), *hooks.get(name, [])],
            ),
        ]
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["box"],
        xlabel="oracle LDA, AUROC with labels",
        ylabel="best-unsup, AUROC without labels",
        xlim=(now["x_start"].item(), 1.0035),
        ylim=(0.0, 1.03),
        height=430,
        grid="y",
        xformatter="%.2f",
        yformatter="%.1f",
        hooks=hooks.get("figure"),
    )


PAPER_MARK = {**theme.PAPER_MARK, "hex": "h"}


def _own_alpha(fires: bool) -> Callable:
    """Return a hook: the fill follows a column, which the sliders move."""

    def hook(plot: Any, element: Any) -> None:
        source, glyph = plot.handles["source"], plot.handles["glyph"]
        source.data["fill_alpha"] = np.array([float(fires)])
        glyph.update(fill_alpha="fill_alpha")

    return hook


def contrast(
    now: xr.Dataset,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the AUROC of every score with the fit set as given, and without the designated class.

    Parameters
    ----------
    now, hooks, backend
        As for `box`.
    """
    hooks = hooks or {}
    rows = np.arange(len(SCORES))[::-1].astype(float)
    excluded = theme.REGIME_COLOR["clean-excl"], theme.REGIME_MARK["clean-excl"]
    given = now["color"].item(), now["mark"].item()
    ends = ["x0", "y0", "x1", "y1"]
    layers: list[hv.Element] = [
        style(
            hv.VLine(0.5),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
        ),
    ]
    for name, shift, (color, shape), label in (
        ("without", -0.13, excluded, "without the designated class"),
        ("given", 0.13, given, "as given"),
    ):
        at = now[f"{name}_at"].values
        segments = {
            "x0": now[f"{name}_low"].values,
            "y0": rows + shift,
            "x1": now[f"{name}_high"].values,
            "y1": rows + shift,
        }
        layers += [
            style(
                hv.Segments(segments, ends),
                backend,
                bokeh={"color": color, "line_width": 2.4, "alpha": 0.45},
                matplotlib={"color": color, "linewidth": 1.6, "alpha": 0.45},
                hooks=hooks.get(f"{name}_interval"),
            ),
            style(
                hv.Points({"x": at, "y": rows + shift}, ["x", "y"], label=label),
                backend,
                bokeh={"marker": shape, "size": 10, "color": color, "line_width": 1.7, "fill_alpha": 1},
                matplotlib={"marker": PAPER_MARK[shape], "s": 34, "facecolors": color, "edgecolors": color},
                hooks=hooks.get(name),
            ),
        ]
    return frame(
        hv.Overlay(layers),
        backend,
        title="AUROC of every score",
        xlabel="AUROC, not flipped",
        ylabel="",
        xlim=(-0.02, 1.03),
        ylim=(-0.6, len(SCORES) - 0.4),
        height=190,
        grid="x",
        left=92,
        xformatter="%.1f",
        yticks=[(float(row), label) for row, label in zip(rows, SCORES.values(), strict=True)],
        hooks=hooks.get("figure"),
    )
