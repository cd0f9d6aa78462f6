"""The figures of the page of held-out sources: rows in, HoloViews elements out.

Sources come and go with the case, so a figure that was drawn once must take any other number of them. Each
figure is a `Picture` of layers, which is drawn (`draw`), or written into the models of a figure that
stands already (`write`): by the same columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
from bokeh.models import FixedTicker, LinearAxis

from dashboards import theme
from dashboards.figures.style import INK, above, frame, style

FIGURES = {
    "gap": "Each source when it is left out",
    "known": "Pairs of sources, both known to the model",
    "left-out": "Pairs of sources, each left out",
    "composition": "What the sources consist of",
    "retention": "Coefficient against retention",
    "ablation": "What the score is without the shortcuts",
    "explanation": "What leads one row’s score",
}
ROW = 22  # px of a row of names
SEEN = (-1.0, 1.5)  # of retentions; what is beyond stands at the edge
SQUARE = 430  # px, of a matrix: heights that change lay out the whole page anew
BESIDE = "lodo-beside"  # tag of the axis with the texts right of the frame
MOST_NUMBERED = 12  # sources in a matrix with a number in each cell

_COLORS = theme.diverging(101)


@dataclass(frozen=True)
class Picture:
    """What a figure draws.

    Attributes
    ----------
    layers : dict of str to pandas.DataFrame
        Columns of numbers and texts, as the layers of the figure name them.
    xlim, ylim : (float, float)
    xticks, yticks : tuple of (float, str)
    height : int
        Pixels.
    xlabel, ylabel : str
    beside : tuple of (float, str)
        Texts right of the frame.
    """

    layers: dict[str, pd.DataFrame] = field(repr=False)
    xlim: tuple[float, float]
    ylim: tuple[float, float]
    xticks: tuple[tuple[float, str], ...]
    yticks: tuple[tuple[float, str], ...]
    height: int
    xlabel: str
    ylabel: str = ""
    beside: tuple[tuple[float, str], ...] = ()


# ---- rows to pictures


def gap_picture(rows: pd.DataFrame, *, metric: str, most: int = 40) -> Picture:
    """Lay out one row per pooled value and source, the pooled ones on top.

    Parameters
    ----------
    rows : pandas.DataFrame
        As `dashboards.lodo_answers.gap_rows` returns them.
    metric : str
        What the axis measures, in words.
    most : int
        How many sources are drawn: the largest.
    """
    shown = rows[rows["group"] == "pooled"]
    sources = rows[rows["group"] != "pooled"]
    largest = sources["n"].sort_values(ascending=False, kind="stable").index[:most]
    rows = pd.concat([shown, sources.loc[sources.index.isin(largest)]], ignore_index=True)
    steps = 1.0 + 0.7 * (rows["group"] != rows["group"].shift(fill_value=rows["group"].iloc[0]))
    y = -(steps.cumsum().to_numpy() - 1.0)
    base, left_out = rows["baseline"].to_numpy(float), rows["lodo"].to_numpy(float)
    gap = rows["gap"].to_numpy(float)
    pooled = (rows["group"] == "pooled").to_numpy()
    ends = {n: rows[n].to_numpy(float) for n in rows.columns if n.endswith(("_low", "_high"))}
    # Around the pooled values stand the intervals of the gap: where LODO is, held against the baseline.
    spans = {
        name: np.c_[base - ends[f"{name}_high"], base - ends[f"{name}_low"]] for name in ("gap", "gap_source")
    }
    seen = [base, left_out, *(ends[f"{e}_{s}"] for e in ("baseline", "lodo") for s in ("low", "high"))]
    seen += [spans["gap"].ravel(), spans["gap_source"].ravel()]
    numbers = np.concatenate(seen)
    low = max(0.0, math.floor(10 * float(np.nanmin(numbers))) / 10)
    top = max(1.0, math.ceil(10 * float(np.nanmax(numbers)) - 1e-9) / 10)
    step = 0.1 if top - low <= 0.55 else 0.2
    ticks = np.arange(math.ceil(low / step - 1e-9), round(top / step) + 1) * step

    one_label = (rows["group"] == "one label").to_numpy()
    marks = np.where(pooled, "diamond", np.where(one_label, "square", "circle"))
    bar = 0.19

    def bars(low: Any, high: Any, shift: float, width: float) -> pd.DataFrame:
        held = np.isfinite(low) & np.isfinite(high)
        at = y[held] + shift
        return pd.DataFrame({"x0": low[held], "y0": at, "x1": high[held], "y1": at, "width": width})

    def points(x: Any, **more: Any) -> pd.DataFrame:
        held = np.isfinite(x)
        told = pd.DataFrame({"x": x, "y": y, "mark": marks, "name": rows["name"], "what": rows["metric"]})
        return told.assign(**more)[held].reset_index(drop=True)

    both = np.isfinite(base) & np.isfinite(left_out)
    says = [f"{v:.3f}".replace("-", "−") if np.isfinite(v) else "" for v in np.round(gap, 3) + 0.0]
    heads = "gap" if np.isfinite(gap).any() else metric
    if not np.isfinite(gap).any():
        says = [f"{v:.3f}" for v in left_out]
    lines = y[np.flatnonzero(rows["group"].ne(rows["group"].shift()))[1:]] + 0.85
    layers = {
        "link": pd.DataFrame({"x0": base[both], "y0": y[both], "x1": left_out[both], "y1": y[both]}),
        "baseline_bar": bars(ends["baseline_low"], ends["baseline_high"], bar, 1.4),
        "lodo_bar": bars(ends["lodo_low"], ends["lodo_high"], -bar, 1.4),
        "rows_bar": bars(spans["gap"][:, 0], spans["gap"][:, 1], -bar, 3.2),
        "source_bar": bars(spans["gap_source"][:, 0], spans["gap_source"][:, 1], -2 * bar, 1.4),
        "baseline": points(base),
        "lodo": points(left_out),
        "rule": pd.DataFrame({"x0": low - 1.0, "y0": lines, "x1": top + 1.0, "y1": lines}),
        "half": pd.DataFrame({"x0": [0.5], "y0": [y.min() - 1.0], "x1": [0.5], "y1": [0.6]})
        if metric == "AUROC"
        else pd.DataFrame({"x0": [], "y0": [], "x1": [], "y1": []}),
    }
    names = [
        f"{name}, {what}" if of else name
        for name, what, of in zip(rows["name"], rows["metric"], one_label, strict=True)
    ]
    return Picture(
        layers,
        xlim=(low - 0.03 * (top - low), top + 0.03 * (top - low)),
        ylim=(float(y.min()) - 0.75, 1.6),
        xticks=tuple((float(t), f"{t:.1f}") for t in ticks if t <= 1.0 + 1e-9),
        yticks=tuple(zip(y.tolist(), names, strict=True)),
        height=int(ROW * (2.35 - float(y.min()))) + 44,
        xlabel=f"{metric} ● ◆, recall or specificity ■" if one_label.any() else metric,
        beside=((1.0, heads), *zip(y.tolist(), says, strict=True)),
    )


def ablation_picture(rows: pd.DataFrame) -> Picture:
    """Lay out the AUROC against the number of features that are taken away.

    Parameters
    ----------
    rows : pandas.DataFrame
        As `dashboards.lodo_answers.ablation_rows` returns them.
    """
    removed = rows["removed"].to_numpy(float)
    layers: dict[str, pd.DataFrame] = {}
    seen = []
    for name, shift in (("random", 0.0), ("cv", -0.09), ("lodo", 0.09)):
        value, low, high = (
            rows.get(f"{name}{end}", pd.Series(np.nan, index=rows.index)).to_numpy(float)
            for end in ("", "_low", "_high")
        )
        x, held = removed + shift, np.isfinite(value)
        both, bar = held[1:] & held[:-1], np.isfinite(low) & np.isfinite(high)
        layers[f"{name}_line"] = pd.DataFrame(
            {"x0": x[:-1][both], "y0": value[:-1][both], "x1": x[1:][both], "y1": value[1:][both]}
        )
        layers[f"{name}_bar"] = pd.DataFrame({"x0": x[bar], "y0": low[bar], "x1": x[bar], "y1": high[bar]})
        seen += [value, low, high]
        if name != "random":
            points = pd.DataFrame({"x": x, "y": value, "mark": "circle"})
            points["name"] = [f"{k:,} taken away" for k in rows["removed"]]
            points["what"] = "AUROC"
            layers[name] = points[held].reset_index(drop=True)
    numbers = np.concatenate(seen)
    bottom = max(0.0, math.floor(20 * float(np.nanmin(numbers))) / 20)
    top = min(1.0, math.ceil(20 * float(np.nanmax(numbers)) - 1e-9) / 20)
    step = _step(max(top - bottom, 0.05))
    ticks = np.arange(math.ceil(bottom / step - 1e-9), math.floor(top / step + 1e-9) + 1) * step
    last = float(removed.max())
    pace = max(1.0, _step(max(last, 1.0)))
    layers["half"] = pd.DataFrame({"x0": [-99.0], "y0": [0.5], "x1": [1e9], "y1": [0.5]})
    return Picture(
        layers,
        xlim=(-0.6, last + 0.6),
        ylim=(bottom - 0.03 * (top - bottom), top + 0.03 * (top - bottom)),
        xticks=tuple((float(k), f"{k:.0f}") for k in np.arange(0.0, last + 0.5, pace)),
        yticks=tuple((float(t), f"{t:.2f}") for t in np.round(ticks, 10)),
        height=360,
        xlabel="features taken away, lowest retention first",
        ylabel="AUROC, pooled",
    )


def matrix_picture(
    rows: pd.DataFrame, names: dict[str, str], sizes: dict[str, int], *, most: int = 30
) -> Picture:
    """Lay out the AUROC of each pair of sources: rows hold positives, columns negatives.

    Parameters
    ----------
    rows : pandas.DataFrame
        As `dashboards.lodo_answers.pair_rows` returns them.
    names, sizes : dict of str to str, dict of str to int
        What the sources are called, and their rows: the largest are drawn.
    most : int
    """
    sources = list(dict.fromkeys(rows["positive_source"].astype(str)))
    sources = sorted(sources, key=lambda s: -sizes[s])[:most] if len(sources) > most else sources
    rows = rows[rows["positive_source"].isin(sources) & rows["negative_source"].isin(sources)]
    value = rows["pair_auc"].to_numpy(float)
    held = np.isfinite(value)
    # A source without positives has no row, one without negatives no column.
    ends = ("positive_source", "negative_source")
    down, across = ([s for s in sources if s in set(rows[end][held])] for end in ends)
    told = _names_in_margin([names[s] for s in sources])
    ticks = dict(zip(sources, told, strict=True))
    k = len(down)
    i = rows[ends[0]].map({s: n for n, s in enumerate(down)}).to_numpy(float)
    j = rows[ends[1]].map({s: n for n, s in enumerate(across)}).to_numpy(float)
    one_source = rows[ends[0]].to_numpy(str)[held] == rows[ends[1]].to_numpy(str)[held]
    i, j, value = i[held], j[held], value[held]
    level = np.rint(100 * value).astype(int)

    cells = pd.DataFrame(
        {
            "left": j - 0.5,
            "bottom": k - 1 - i - 0.5,
            "right": j + 0.5,
            "top": k - 1 - i + 0.5,
            "color": [_COLORS[v] for v in level],
            "auc": value,
            "positives": [names[s] for s in rows["positive_source"].to_numpy(str)[held]],
            "negatives": [names[s] for s in rows["negative_source"].to_numpy(str)[held]],
            "pairs": rows["pairs"].to_numpy(float)[held],
        }
    )
    texts = (
        [f"{v:.2f}".removeprefix("0") for v in value]
        if max(k, len(across)) <= MOST_NUMBERED
        else [""] * value.size
    )
    dark = (level >= 82) | (level <= 18)
    labels = pd.DataFrame({"x": j, "y": k - 1 - i, "text": texts})
    own = cells[["left", "bottom", "right", "top"]][one_source].reset_index(drop=True)
    return Picture(
        {"cells": cells, "own": own, "on_light": labels[~dark], "on_dark": labels[dark]},
        xlim=(-0.5, max(len(across), 1) - 0.5),
        ylim=(-0.5, max(k, 1) - 0.5),
        xticks=tuple((float(n), ticks[s]) for n, s in enumerate(across)),
        yticks=tuple((float(k - 1 - n), ticks[s]) for n, s in enumerate(down)),
        height=SQUARE,
        xlabel="negatives of",
        ylabel="positives of",
    )


def composition_picture(rows: pd.DataFrame, *, most: int = 40) -> Picture:
    """Lay out the share of positives and negatives in each source, and how many rows it has.

    Parameters
    ----------
    rows : pandas.DataFrame
        As `dashboards.lodo_answers.composition_rows` returns them.
    most : int
        How many sources are drawn: the largest.
    """
    rows = rows.iloc[:most]
    y = -np.arange(len(rows), dtype=float)
    share = rows["positive_share"].to_numpy(float)
    box = {"bottom": y - 0.34, "top": y + 0.34}
    says = [f"{100 * s:.0f} % of {n:,}" for s, n in zip(share, rows["n"], strict=True)]
    layers = {
        "positive": pd.DataFrame({"left": 0.0, "right": share, **box}),
        "negative": pd.DataFrame({"left": share, "right": 1.0, **box}),
    }
    return Picture(
        layers,
        xlim=(0.0, 1.0),
        ylim=(float(y.min()) - 0.7, 1.6),
        xticks=((0.0, "0"), (0.5, "50 %"), (1.0, "100 %")),
        yticks=tuple(zip(y.tolist(), rows["name"].tolist(), strict=True)),
        height=int(ROW * (2.3 - float(y.min()))) + 44,
        xlabel="share of the source’s rows",
        beside=((1.0, "positive, of rows"), *zip(y.tolist(), says, strict=True)),
    )


def retention_picture(rows: pd.DataFrame, order: Sequence[str], *, threshold: float) -> Picture:
    """Lay out features by what their coefficient keeps when a source is left out.

    Parameters
    ----------
    rows : pandas.DataFrame
        feature, coefficient, retention, argmin_source; a defined retention in every row.
    order : sequence of str
        Sources in the order of their colours; the last colour is for all that follow.
    threshold : float
        Features whose retention is below are filled.
    """
    styles = dict(zip(order, range(len(order)), strict=True))
    last = len(theme.SOURCE_COLOR) - 1
    which = np.minimum([styles.get(s, last) for s in rows["argmin_source"]], last).astype(int)
    kept = rows["retention"].to_numpy(float)
    y = rows["coefficient"].to_numpy(float)
    points = pd.DataFrame(
        {
            "x": np.clip(kept, *SEEN),
            "y": y,
            "mark": [theme.SOURCE_MARK[w] for w in which],
            "color": [theme.SOURCE_COLOR[w] for w in which],
            "fill": (kept < threshold).astype(float),
            "feature": rows["feature"].to_numpy(str),
            "kept": kept,
            "source": rows["argmin_source"].to_numpy(str),
        }
    )
    low, high = (float(y.min()), float(y.max())) if y.size else (-1.0, 1.0)
    low, high = min(low, 0.0), max(high, 0.0)
    room = 0.08 * (high - low or 1.0)
    step = _step(high - low)
    ticks = np.arange(math.ceil((low - room) / step), math.floor((high + room) / step) + 1) * step
    return Picture(
        {
            "points": points,
            "shade": pd.DataFrame({"left": [-99.0], "bottom": [-1e9], "right": [threshold], "top": [1e9]}),
        },
        xlim=(SEEN[0] - 0.06, SEEN[1] + 0.06),
        ylim=(low - room, high + room),
        xticks=tuple((t, f"{t:g}".replace("-", "−")) for t in (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5)),
        yticks=tuple((float(t), f"{t + 0.0:g}".replace("-", "−")) for t in np.round(ticks, 10)),
        height=360,
        xlabel="retention",
        ylabel="coefficient",
    )


def explanation_picture(rows: pd.DataFrame, *, k: int) -> Picture:
    """Lay out a row's leading attributions before and after weighting.

    Parameters
    ----------
    rows : pandas.DataFrame
        As `dashboards.lodo_answers.explanation_rows` returns them.
    k : int
        How many features lead.
    """
    y = -np.arange(len(rows), dtype=float)
    before, after = (rows[n].to_numpy(float) for n in ("attribution", "weighted_attribution"))

    def bars(x: Any, bottom: float, top: float) -> pd.DataFrame:
        return pd.DataFrame(
            {"left": np.minimum(x, 0), "bottom": y + bottom, "right": np.maximum(x, 0), "top": y + top}
        )

    changes = np.select([rows["place_after"] > k, rows["place_before"] > k], [" ▼ out", " ▲ in"], "")
    names = [f"{name}{c}" for name, c in zip(rows["name"], changes, strict=True)]
    numbers = np.r_[before, after, 0.0]
    room = 0.06 * float(np.ptp(numbers) or 1.0)
    low, high = float(numbers.min()) - room, float(numbers.max()) + room
    step = _step(high - low)
    ticks = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    return Picture(
        {"before": bars(before, 0.03, 0.38), "after": bars(after, -0.38, -0.03)},
        xlim=(low, high),
        ylim=(float(y.min(initial=0.0)) - 0.7, 0.7),
        xticks=tuple((float(t), f"{t + 0.0:g}".replace("-", "−")) for t in np.round(ticks, 10)),
        yticks=tuple(zip(y.tolist(), names, strict=True)),
        height=360,
        xlabel="attribution (right: label 1)",
    )


def _short(text: str, most: int = 24) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 7]}…{flat[-6:]}"


def _names_in_margin(names: list[str], most: int = 14) -> list[str]:
    """Return names as they stand on two sides of a matrix, where a long one leaves it no room; each another one.

    A name that is cut in any case is cut shorter here.

    Examples
    --------
    >>> _names_in_margin(["hate speech multi score", "a hospital of a lo…name"])
    ['hate speech multi score', 'a hospit…name']
    """
    cut = [f"{n.split('…')[0][: most - 6]}…{n.split('…')[-1][-5:]}" if "…" in n else n for n in names]
    return cut if len(set(cut)) == len(set(names)) else names


def _step(width: float) -> float:
    """Return a round distance of about five marks on an axis.

    Examples
    --------
    >>> _step(10.0), _step(1.1)
    (2.0, 0.2)
    """
    rough = max(width, 1e-12) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(m * power for m in (1, 2, 5, 10) if rough <= m * power * (1 + 1e-9)))


# ---- pictures to figures


def draw(
    name: str,
    picture: Picture,
    *,
    line: float | None = None,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw a picture.

    Parameters
    ----------
    name : str
        One of `FIGURES`.
    picture : Picture
    line : float, optional
        Where the retention threshold stands.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    layers: list[hv.Element] = []
    for drawn in _DRAW[name](picture, line, hooks, backend):
        layers += drawn
    hooks = {**hooks, "figure": [*hooks.get("figure", [])]}
    if picture.beside and backend == "bokeh":
        hooks["figure"].append(_beside(picture))
    elif picture.beside:
        low, high = picture.xlim
        edge = high + 0.03 * (high - low)
        texts = pd.DataFrame([{"x": edge, "y": y, "text": t} for y, t in picture.beside if t])
        layers += _labels(texts, backend, None, align="left")
    grid = {"gap": "x", "ablation": "y", "retention": "y", "explanation": "x"}.get(name, "")
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES[name] + _NOTES.get(name, ""),
        xlabel=picture.xlabel,
        ylabel=picture.ylabel,
        xlim=picture.xlim,
        ylim=picture.ylim,
        height=picture.height,
        grid=grid,
        left=40,
        xticks=list(picture.xticks),
        yticks=list(picture.yticks),
        xrotation=90 if name in ("known", "left-out") else None,
        hooks=hooks.get("figure"),
    )


def _beside(picture: Picture) -> Callable:
    """Return a hook that writes texts right of the frame, where no value can lie under them."""

    def hook(plot: Any, element: Any) -> None:
        if any(BESIDE in axis.tags for axis in plot.state.right):
            return
        axis = LinearAxis(
            axis_line_color=None,
            major_tick_line_color=None,
            minor_tick_line_color=None,
            major_label_text_font_size="11.5px",
            ticker=FixedTicker(ticks=[], minor_ticks=[]),  # type: ignore[arg-type]  # any ticker will do
            tags=[BESIDE],
        )
        _tick(axis, picture.beside)
        plot.state.add_layout(axis, "right")

    return hook


def _tick(axis: Any, ticks: Sequence[tuple[float, str]]) -> None:
    axis.major_label_overrides = dict(ticks)  # first: a tick without a label would show its number
    # Into the ticker that is there: for a new one Bokeh looks through all models of the page.
    axis.ticker.ticks = [at for at, _ in ticks]


def models_of(figure: Any) -> dict[str, Any]:
    """Return a figure's models by their tags: what `write` writes into."""
    return {tag: m for m in figure.references() for tag in m.tags if isinstance(tag, str)}


def write(
    figure: Any, models: Mapping[str, Any], picture: Picture, prefix: str, *, line: float | None = None
) -> None:
    """Write a picture into the models of a figure of the same name that stands.

    Parameters
    ----------
    figure : bokeh.plotting.figure
    models : mapping
        As `models_of` returns them.
    picture : Picture
    prefix : str
        What the tags of the layers' sources begin with.
    line : float, optional
        Where the retention threshold stands.
    """
    for layer, rows in picture.layers.items():
        # No rows have no type: an array of no numbers would be refused as one of colours.
        models[f"{prefix}{layer}:source"].data = {
            c: rows[c].to_numpy() if len(rows) else [] for c in rows.columns
        }
    if line is not None and f"{prefix}line:glyph" in models:
        models[f"{prefix}line:glyph"].location = line
    for axis, span, limits, ticks, label in (
        (figure.xaxis[0], figure.x_range, picture.xlim, picture.xticks, picture.xlabel),
        (figure.yaxis[0], figure.y_range, picture.ylim, picture.yticks, picture.ylabel),
    ):
        _tick(axis, ticks)
        axis.axis_label = label
        span.update(start=limits[0], end=limits[1], reset_start=limits[0], reset_end=limits[1])
    if BESIDE in models:
        _tick(models[BESIDE], picture.beside)


def _some(rows: pd.DataFrame, backend: str) -> pd.DataFrame:
    """Give a layer without rows one that is not seen, so that HoloViews makes its source."""
    if len(rows) or backend == "matplotlib":
        return rows
    blank: dict[str, Any] = {c: [np.nan] for c in rows.columns}
    blank |= {"mark": ["circle"], "text": [""], "color": [theme.QUIET_COLOR], "name": [""], "what": [""]}
    blank |= {c: [""] for c in ("feature", "source", "positives", "negatives")}
    return pd.DataFrame({c: blank[c] for c in rows.columns})


def _fields(**properties: str) -> Callable:
    """Return a hook that lets glyph properties follow columns of the source, which `write` replaces."""

    def hook(plot: Any, element: Any) -> None:
        source, glyph = plot.handles["source"], plot.handles["glyph"]
        for name, column in properties.items():
            source.data[column] = element.dimension_values(column)
            glyph.update(**{name: column})

    return hook


def _segments(
    rows: pd.DataFrame,
    backend: str,
    hooks: Any,
    *,
    color: str,
    width: float,
    alpha: float = 1.0,
    dash: str = "solid",
) -> list[hv.Element]:
    if backend == "matplotlib" and not len(rows):
        return []
    ends = ["x0", "y0", "x1", "y1"]
    return [
        style(
            hv.Segments(_some(rows[ends], backend), ends),
            backend,
            bokeh={"color": color, "line_width": width, "line_alpha": alpha, "line_dash": dash},
            matplotlib={
                "color": color,
                "linewidth": 0.75 * width,
                "alpha": alpha,
                "linestyle": {"solid": "-", "dotted": ":"}[dash],
            },
            hooks=hooks,
        )
    ]


def _rectangles(
    rows: pd.DataFrame,
    backend: str,
    hooks: Any,
    *,
    fill: str | None,
    line: str | None,
    width: float = 1.0,
    label: str = "",
) -> list[hv.Element]:
    if backend == "matplotlib" and not len(rows):
        return []
    sides = ["left", "bottom", "right", "top"]
    return [
        style(
            hv.Rectangles(_some(rows[sides], backend), sides, label=label),
            backend,
            bokeh={
                "fill_color": fill or INK,
                "fill_alpha": 1.0 if fill else 0.0,
                "line_color": line,
                "line_width": width,
            },
            matplotlib={"facecolor": fill or "none", "edgecolor": line or "none", "linewidth": 0.75 * width},
            hooks=hooks,
        )
    ]


def _labels(
    rows: pd.DataFrame, backend: str, hooks: Any, *, align: str, size: float = 11.5, color: str = INK
) -> list[hv.Element]:
    if backend == "matplotlib" and not (rows["text"] != "").any():
        return []
    return [
        style(
            hv.Labels(_some(rows, backend), ["x", "y"], "text"),
            backend,
            bokeh={
                "text_color": color,
                "text_font_size": f"{size}px",
                "text_font": theme.FONT_VALUE,
                "text_align": align,
                "text_baseline": "middle",
            },
            matplotlib={
                "color": color,
                "size": 0.6 * size,
                "horizontalalignment": align,
                "verticalalignment": "center",
            },
            hooks=hooks,
        )
    ]


def _marked(
    rows: pd.DataFrame, backend: str, hooks: Any, *, color: str, filled: bool, label: str, size: float = 9.5
) -> list[hv.Element]:
    """Draw one value per row, by the mark of the row."""
    if backend == "matplotlib":
        return [
            style(
                hv.Points(rows[rows["mark"] == mark], ["x", "y"], label=label if n == 0 else ""),
                backend,
                bokeh={},
                matplotlib={
                    "marker": theme.PAPER_MARK[mark],
                    "s": 22,
                    "facecolors": color if filled else theme.LIGHT["bg"],
                    "edgecolors": color,
                    "linewidth": 1.1,
                },
            )
            for n, mark in enumerate(dict.fromkeys(rows["mark"]))
        ]
    return [
        style(
            hv.Points(_some(rows, backend), ["x", "y"], ["mark", "name", "what"], label=label),
            backend,
            bokeh={
                "size": size,
                "color": color,
                "fill_alpha": float(filled),
                "line_width": 1.7,
                "tools": ["hover"],
                "hover_tooltips": [("", "@name"), (label, "@x{0.000}"), ("", "@what")],
            },
            matplotlib={},
            hooks=[_fields(marker="mark"), *(hooks or [])],
        )
    ]


def _draw_gap(p: Picture, line: Any, hooks: Any, backend: str) -> Any:
    of, hook = p.layers, hooks.get
    first, left_out = theme.PROTOCOL_COLOR["baseline"], theme.PROTOCOL_COLOR["lodo"]
    hair = theme.QUIET_COLOR
    yield _segments(of["half"], backend, hook("half"), color=hair, width=1.2, dash="dotted")
    yield _segments(of["rule"], backend, hook("rule"), color=hair, width=1, alpha=0.35)
    yield _segments(of["link"], backend, hook("link"), color=left_out, width=3, alpha=0.28)
    yield _segments(of["baseline_bar"], backend, hook("baseline_bar"), color=first, width=1.3)
    yield _segments(of["lodo_bar"], backend, hook("lodo_bar"), color=left_out, width=1.3)
    yield _segments(of["rows_bar"], backend, hook("rows_bar"), color=left_out, width=3.4)
    yield _segments(of["source_bar"], backend, hook("source_bar"), color=left_out, width=1.3)
    yield _marked(of["baseline"], backend, hook("baseline"), color=first, filled=False, label="source known")
    yield _marked(of["lodo"], backend, hook("lodo"), color=left_out, filled=True, label="source left out")


def _draw_ablation(p: Picture, line: Any, hooks: Any, backend: str) -> Any:
    of, hook = p.layers, hooks.get
    first, left_out = theme.PROTOCOL_COLOR["baseline"], theme.PROTOCOL_COLOR["lodo"]
    yield _segments(of["half"], backend, hook("half"), color=first, width=1.2, dash="dotted")
    yield _segments(of["random_bar"], backend, hook("random_bar"), color=first, width=4, alpha=0.3)
    yield _segments(of["random_line"], backend, hook("random_line"), color=first, width=1, dash="dotted")
    for name, color, filled, label in (
        ("cv", first, False, "cross-validation"),
        ("lodo", left_out, True, "source left out"),
    ):
        yield _segments(of[f"{name}_line"], backend, hook(f"{name}_line"), color=color, width=1.3, alpha=0.6)
        yield _segments(of[f"{name}_bar"], backend, hook(f"{name}_bar"), color=color, width=1.3)
        yield _marked(of[name], backend, hook(name), color=color, filled=filled, label=label, size=7)


def _draw_matrix(p: Picture, line: Any, hooks: Any, backend: str) -> Any:
    cells = p.layers["cells"]
    sides, more = ["left", "bottom", "right", "top"], ["color", "auc", "positives", "negatives", "pairs"]
    if backend == "matplotlib":
        yield [
            style(
                hv.Rectangles(cells, sides, more),
                backend,
                bokeh={},
                # edges of their own colour: viewers let the paper through between neighbours
                matplotlib={
                    "facecolor": hv.dim("color"),
                    "edgecolor": hv.dim("color"),
                    "linewidth": 0.3,
                    "hooks": [_color_bar],
                },
            )
        ]
    else:
        yield [
            style(
                hv.Rectangles(_some(cells, backend), sides, more),
                backend,
                bokeh={
                    "line_alpha": 0,
                    "tools": ["hover"],
                    "hover_tooltips": [
                        ("AUROC", "@auc{0.000}"),
                        ("positives of", "@positives"),
                        ("negatives of", "@negatives"),
                        ("pairs", "@pairs{0,0}"),
                    ],
                },
                matplotlib={},
                hooks=[_fields(fill_color="color"), *hooks.get("cells", [])],
            )
        ]
    yield _rectangles(p.layers["own"], backend, hooks.get("own"), fill=None, line=theme.DARK["bg"], width=1.4)
    # Of the page's colours none: the cells are the same in both themes. Two layers, since Bokeh takes the colours
    # of fewer texts than before for those of the texts that it still holds.
    for layer, color in (("on_light", theme.DARK["bg"]), ("on_dark", theme.ON_MAP)):
        yield _labels(p.layers[layer], backend, hooks.get(layer), align="center", size=10.5, color=color)


def _color_bar(plot: Any, element: Any) -> None:
    """Say on paper what the cells' colours mean (a hook): there is nothing to hover."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    colors = ScalarMappable(Normalize(0, 1), ListedColormap(_COLORS))
    bar = plot.handles["fig"].colorbar(colors, ax=plot.handles["axis"], pad=0.03, label="AUROC")
    bar.outline.set_visible(False)


def _draw_composition(p: Picture, line: Any, hooks: Any, backend: str) -> Any:
    for kind, label in (("positive", "label 1"), ("negative", "label 0")):
        color = theme.LABEL_COLOR[kind]
        yield _rectangles(p.layers[kind], backend, hooks.get(kind), fill=color, line=None, label=label)


def _draw_retention(p: Picture, line: Any, hooks: Any, backend: str) -> Any:
    rows = p.layers["points"]
    at = 0.5 if line is None else line
    alarm = theme.REGIME_COLOR["leak"]
    sides = ["left", "bottom", "right", "top"]
    yield [
        style(
            hv.Rectangles(p.layers["shade"], sides),
            backend,
            bokeh={"fill_color": alarm, "fill_alpha": 0.06, "line_alpha": 0},
            matplotlib={"facecolor": alarm + "0f", "edgecolor": "none"},
            hooks=hooks.get("shade"),
        ),
        style(
            hv.HLine(0.0),
            backend,
            bokeh={"color": theme.QUIET_COLOR, "line_width": 1, "line_alpha": 0.6},
            matplotlib={"color": theme.QUIET_COLOR, "linewidth": 0.6, "alpha": 0.6},
        ),
    ]
    if backend == "matplotlib":
        sources = list(dict.fromkeys(zip(rows["color"], rows["mark"], strict=True)))
        for color, mark in sources:
            of = rows[(rows["color"] == color) & (rows["mark"] == mark)]
            of = of.assign(face=np.where(of["fill"] > 0, color, theme.LIGHT["bg"]))
            name = of["source"].iloc[0] if of["source"].nunique() == 1 else "other sources"
            yield [
                style(
                    hv.Points(of, ["x", "y"], label=_short(name)),
                    backend,
                    bokeh={},
                    matplotlib={
                        "marker": theme.PAPER_MARK[mark],
                        "s": 24,
                        "facecolors": hv.dim("face"),
                        "edgecolors": color,
                        "linewidth": 1.1,
                    },
                )
            ]
    else:
        yield [
            style(
                hv.Points(
                    _some(rows, backend), ["x", "y"], ["mark", "color", "fill", "feature", "kept", "source"]
                ),
                backend,
                bokeh={
                    "size": 11,
                    "line_width": 1.6,
                    "tools": ["hover"],
                    "hover_tooltips": [
                        ("feature", "@feature"),
                        ("retention", "@kept{0.00}"),
                        ("coefficient", "@y{0.000}"),
                        ("hangs on", "@source"),
                    ],
                },
                matplotlib={},
                hooks=[
                    _fields(marker="mark", line_color="color", fill_color="color", fill_alpha="fill"),
                    *hooks.get("points", []),
                ],
            )
        ]
    yield [
        style(
            hv.VLine(at),
            backend,
            bokeh={"color": alarm, "line_width": 1.6},
            matplotlib={"color": alarm, "linewidth": 1.1},
            hooks=[above, *hooks.get("line", [])],
        )
    ]


def _draw_explanation(p: Picture, line: Any, hooks: Any, backend: str) -> Any:
    quiet, full = theme.PROTOCOL_COLOR["baseline"], theme.PROTOCOL_COLOR["lodo"]
    yield _rectangles(
        p.layers["before"],
        backend,
        hooks.get("before"),
        fill=None,
        line=quiet,
        width=1.4,
        label="before weighting",
    )
    yield _rectangles(
        p.layers["after"], backend, hooks.get("after"), fill=full, line=full, label="after weighting"
    )
    yield [
        style(
            hv.VLine(0.0),
            backend,
            bokeh={"color": theme.QUIET_COLOR, "line_width": 1},
            matplotlib={"color": theme.QUIET_COLOR, "linewidth": 0.7},
        )
    ]


# What the titles on paper add: there is no key beside a figure.
_NOTES = {
    "ablation": "; grey: as many at random",
    "retention": "; filled: below the threshold",
}
_DRAW: dict[str, Callable[[Picture, Any, Any, str], Any]] = {
    "gap": _draw_gap,
    "known": _draw_matrix,
    "left-out": _draw_matrix,
    "composition": _draw_composition,
    "retention": _draw_retention,
    "ablation": _draw_ablation,
    "explanation": _draw_explanation,
}
LAYERS: dict[str, tuple[str, ...]] = {
    "gap": (
        *("half", "rule", "link", "baseline_bar", "lodo_bar", "rows_bar", "source_bar"),
        *("baseline", "lodo"),
    ),
    "ablation": (
        *("half", "random_bar", "random_line", "cv_line", "cv_bar", "lodo_line", "lodo_bar"),
        *("cv", "lodo"),
    ),
    "known": ("cells", "own", "on_light", "on_dark"),
    "left-out": ("cells", "own", "on_light", "on_dark"),
    "composition": ("positive", "negative"),
    "retention": ("points", "shade"),
    "explanation": ("before", "after"),
}
