"""A figure as a file: the same HoloViews element, drawn by matplotlib, and the data behind it.

`draw` is the one function that draws for paper; the links on a page and `save` in Python lead to it:

>>> from dashboards.fingerprint import FingerprintPage
>>> from dashboards.export import save
>>> page = FingerprintPage("?tau=0.6")
>>> save(page, "scatter", "fingerprint.pdf", width=85)  # doctest: +SKIP
"""

from __future__ import annotations

import io
import math
import os
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import holoviews as hv
import numpy as np
import pandas as pd

from dashboards import fonts, theme
from dashboards.provenance import sources
from dashboards.state import OWN, PageState
from leakviz.errors import InputError

KINDS = ("svg", "pdf", "png")
SIZE = (160.0, 110.0)  # mm: what most figures are composed for
SMALLEST = 6.0  # points, of the type in a narrow figure for print
POINTS = 8.5  # the type size at which the figures' marks, lines and labels are composed
_CAPTION = 0.82  # of the type size
_LINE = 1.35  # of the caption's type size
_PAD = 0.35  # of the type size, around everything
_PANEL = 55.0  # mm at a type size of POINTS: narrower panels stand in two rows


class Preset(NamedTuple):
    """How large a figure is drawn.

    Attributes
    ----------
    widest : float
        mm; a figure that is composed for more is made narrower.
    shape : tuple of float or None
        Width and height in mm, whatever the figure is composed for; None keeps the figure's own shape.
    points : float
        Type size; marks and lines grow with it.
    dpi : int
        For PNG.
    """

    widest: float
    shape: tuple[float, float] | None
    points: float
    dpi: int


PRESETS = {
    "print": Preset(widest=170, shape=None, points=8, dpi=300),  # two columns of a journal
    "slide": Preset(widest=254, shape=(254, 254 * 9 / 16), points=14, dpi=200),  # 16:9, ten inches wide
}

# The same figure gives the same bytes; text stays text, in an SVG and in a PDF (TrueType).
_STABLE: dict[str, Any] = {
    "svg.hashsalt": "leakviz",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "text.hinting": "none",  # letters on whole pixels would make a line of few dpi longer than it was measured
    "figure.facecolor": theme.LIGHT["bg"],
    "axes.facecolor": theme.LIGHT["bg"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": theme.LIGHT["hair"],
    "axes.labelcolor": theme.LIGHT["muted"],
    "axes.titlelocation": "left",
    "axes.titlecolor": theme.LIGHT["ink"],
    "text.color": theme.LIGHT["ink"],
    "xtick.color": theme.LIGHT["muted"],
    "ytick.color": theme.LIGHT["muted"],
    "grid.color": theme.LIGHT["hair"],
    "axes.axisbelow": True,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": theme.LIGHT["hair"],
}
# In points at a type size of POINTS.
_GROWING = {
    "font.size": POINTS,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.8,
    "axes.titlepad": 6.0,
    "axes.labelpad": 4.0,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "patch.linewidth": 1.0,
    "hatch.linewidth": 0.6,
    **{f"{axis}tick.{level}.pad": 3.5 for axis in "xy" for level in ("major", "minor")},
    **{f"{axis}tick.{level}.size": size for axis in "xy" for level, size in (("major", 3.5), ("minor", 2.0))},
    **{
        f"{axis}tick.{level}.width": size for axis in "xy" for level, size in (("major", 0.8), ("minor", 0.6))
    },
}
# Options of layers that are lengths in points, and areas.
_LENGTHS = ("linewidth", "linewidths", "size", "fontsize", "markersize", "markeredgewidth")
_AREAS = ("s",)

_ONE_AT_A_TIME = threading.Lock()  # matplotlib's settings and its list of figures are the process's


def draw(
    figure: Callable[..., Any],
    kind: str,
    *,
    size: tuple[float, float] = SIZE,
    preset: str = "print",
    width: float | None = None,
    dpi: int | None = None,
    caption: str = "",
    lost: set[str] | None = None,
) -> io.BytesIO:
    """Draw a figure for paper.

    Parameters
    ----------
    figure : callable
        Takes ``backend="matplotlib"`` and returns the element at the state to be drawn.
    kind : {"svg", "pdf", "png"}
    size : (width, height) in mm
        What the figure is composed for: its shape, and its width unless another is asked for.
    preset : {"print", "slide"}
        Its width, type size and dpi; see `PRESETS`.
    width : float, optional
        mm, from 40 to 1000; the file is exactly that wide. A figure for print that is narrower than what it
        is composed for shrinks less in height, and its type to 6 points at least.
    dpi : int, optional
        From 50 to 1200, for PNG.
    caption : str
        A small line or more below the figure: where its numbers are from, and the state. It makes the
        file higher, but for a slide, whose shape is fixed.
    lost : set of str, optional
        Takes the letters that no font of the machine has: they are drawn as boxes, and stay text in an SVG.

    Returns
    -------
    io.BytesIO
        The same bytes every time.

    Raises
    ------
    leakviz.InputError
        If `kind` or `preset` is not one of these, or `width` or `dpi` is out of range.
    RuntimeError
        If matplotlib is not installed.

    Examples
    --------
    >>> import holoviews as hv
    >>> curve = lambda backend: hv.Overlay([hv.Curve([0.2, 0.4], label="rate")])
    >>> draw(curve, "svg", width=85, caption="made up").getvalue().count(b"made up</text>")
    1
    """
    chosen = _one_of(preset, "preset", PRESETS)
    _one_of(kind, "kind", dict.fromkeys(KINDS))
    (wide, _), _ = _extent(chosen, size, width)
    resolution = int(_between(chosen.dpi if dpi is None else dpi, "dpi", 50, 1200))
    try:
        import matplotlib as mpl
        from matplotlib import pyplot
    except ImportError as error:
        raise RuntimeError('figures need matplotlib: pip install "leakviz[figures]"') from error
    _load_matplotlib()
    element = figure(backend="matplotlib")
    columns = 0
    if isinstance(element, hv.Layout):
        panels = len(element)
        columns = panels if wide / panels >= _PANEL * chosen.points / POINTS else math.ceil(panels / 2)
        size = size[0] * columns / panels, size[1] * math.ceil(panels / columns)
        element = element.cols(columns).opts(hv.Options("Layout", backend="matplotlib", sublabel_format=""))
    millimetres, points = _extent(chosen, size, wide)
    zoom = points / POINTS
    settings: dict[Any, Any] = {**_STABLE, **{name: value * zoom for name, value in _GROWING.items()}}
    # what cannot be printed cannot stand in an SVG either
    words = "".join(c if c.isprintable() else " " for c in caption).strip()
    with _ONE_AT_A_TIME, mpl.rc_context(settings), warnings.catch_warnings():
        # a letter that the font has not is an empty box, and stays text in an SVG
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font", category=UserWarning)
        element = _grow(element, zoom)
        inches, high = (v / 25.4 for v in millimetres)
        element = element.opts(
            hv.Options("Overlay", backend="matplotlib", fig_inches=(inches, high), aspect="auto")
        )
        drawn = hv.renderer("matplotlib").get_plot(element).state
        try:
            drawn.set_dpi(72)  # one dot is a point
            drawn.set_size_inches(inches, high)
            lines = _wrap(words, 72 * inches - 2 * _PAD * points, points * _CAPTION)
            room = (len(lines) + 0.4) * _LINE * _CAPTION * points / 72 if lines else 0.0
            if chosen.shape is None:
                high += room
                drawn.set_size_inches(inches, high)
            _lay_out(drawn, points, 72 * room, columns)
            _put(drawn, lines, points)
            (set() if lost is None else lost).update(fonts.fall_back(drawn))
            titles = dict.fromkeys(t for axes in drawn.axes for t in [_title(axes)] if t)
            out = io.BytesIO()
            drawn.savefig(
                out, format=kind, dpi=resolution, metadata=_metadata(kind, ", ".join(titles), words)
            )
        finally:
            pyplot.close(drawn)
    out.seek(0)
    return out


def save(
    page: Any,
    name: str,
    path: str | os.PathLike[str],
    *,
    preset: str = "print",
    width: float | None = None,
    dpi: int | None = None,
    size: tuple[float, float] | None = None,
) -> Path:
    """Write a figure of a page at its present state as a file, with source and state below it.

    Parameters
    ----------
    page : Viewer
        One of the app's pages.
    name : str
        As the page's `figure` takes it.
    path : str or path
        Ends in .svg, .pdf or .png; an existing file is replaced, once the new one is whole.
    preset, width, dpi
        As for `draw`.
    size : (width, height) in mm, optional
        The figure's shape, by default 160 x 110, and 65 x 65 for each figure of a row of them.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    leakviz.InputError
        If `path` ends in something else, or as for `draw`.

    Examples
    --------
    >>> from dashboards.fingerprint import FingerprintPage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = save(FingerprintPage("?tau=0.6"), "rates", f"{folder}/rates.svg", preset="slide")
    ...     "tau 0.6" in file.read_text()
    True
    """
    target = Path(path)
    kind = target.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise InputError(f"path {str(path)!r} must end in one of .{', .'.join(KINDS)}")

    def figure(backend: str) -> Any:
        return page.figure(name, backend)

    if size is None:
        row = figure("matplotlib")
        size = (65.0 * len(row), 65.0) if isinstance(row, hv.Layout) else SIZE
    drawn = draw(figure, kind, size=size, preset=preset, width=width, dpi=dpi, caption=says(page, name))
    with _whole(target) as file:
        file.write(drawn.getvalue())
    return target


def says(page: Any, name: str = "") -> str:
    """Return the caption of a page's figure: where the numbers are from, and the state, as plain text.

    Parameters
    ----------
    page : Viewer
        One of the app's pages, or a part of one that says it itself.
    name : str
        The figure. A page's `figure_sources` says where its numbers are from, if not where the page's are.

    Examples
    --------
    >>> from dashboards.fingerprint import FingerprintPage
    >>> says(FingerprintPage("?tau=0.6&gate=0.96"), "scatter")
    'Controlled validation of the leak fingerprint, 52 settings. Source: arXiv 2607.19393, Table 12 (means of three seeds, three decimals). State: gate 0.96, tau 0.6.'
    """
    if hasattr(page, "says"):
        return str(page.says())
    titles: dict[str, list[str]] = {}
    source = getattr(page, "figure_sources", {}).get(name, "")
    with suppress(ValueError):  # a page with no data of its own
        for one in [] if source else sources(page):
            titles.setdefault(one.source, []).append(one.title)
    told = [f"Source: {source}"] if source else []
    told += [f"{'; '.join(of)}. Source: {where}" for where, of in titles.items()]
    state = figure_state_says(page, name)
    return sentences(*told, f"State: {state}" if state else "")


def figure_state_says(page: Any, name: str) -> str:
    """Return the state that decides a figure, in words; of a page that does not say what decides it, `state_says`.

    Parameters
    ----------
    page : Viewer
        Its `figure_state` names, for each figure, the parameters that decide it. They are said whatever they are,
        but for what leaves everything as it is.
    name : str
        The figure.

    Examples
    --------
    >>> from dashboards.audit import AuditPage
    >>> page = AuditPage("?tau=0.6")
    >>> figure_state_says(page, "pairs"), figure_state_says(page, "index")
    ('tau 0.6', '')
    """
    state, words = page.state, []
    decides = getattr(page, "figure_state", {}).get(name)
    if decides is None:
        return state_says(state)
    for parameter in decides:
        value = getattr(state, parameter)
        if isinstance(value, (list, tuple)):
            text = "" if value == state.param[parameter].default else " and ".join(map(str, value)) or "none"
        elif isinstance(value, str):
            own = value.startswith(OWN) and value != OWN
            text = page.subject if own else state.title(parameter, value) if value else ""
        else:
            text = f"{value:g}"
        if text not in ("", "all", "off"):
            words.append(f"{state.label(parameter)} {text}")
    return ", ".join(words)


def state_says(state: PageState) -> str:
    """Return a state in words: what moves in steps always, the rest where it is not the default.

    Examples
    --------
    >>> import param
    >>> class State(PageState):
    ...     tau = param.Number(0.65)
    ...     metric = param.Selector(default="balanced", objects=["balanced", "specificity"])
    ...     stops = {"tau": np.array([0.6, 0.65, 0.7])}
    >>> state_says(State()), state_says(State(tau=0.7, metric="specificity"))
    ('tau 0.65', 'tau 0.7, metric specificity')
    """
    words = []
    for name in state.names():
        value = getattr(state, name)
        if name in state.stops:
            words.append(f"{state.label(name)} {value:g}")
        elif value != state.param[name].default and value not in ("", [], ()):
            text = " and ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            words.append(f"{state.label(name)} {text}")
    return ", ".join(words)


def sentences(*parts: str) -> str:
    """Return what is not empty, each part ended by one full stop.

    Examples
    --------
    >>> sentences("Published.", "", "tau 0.65")
    'Published. tau 0.65.'
    """
    return " ".join(f"{part.rstrip('. ')}." for part in parts if part.strip(". "))


def table(frame: pd.DataFrame) -> io.StringIO:
    """Write the data behind a figure as CSV, in the shortest decimals that read back the same."""
    out = io.StringIO()
    frame.to_csv(out, index=False)
    out.seek(0)
    return out


# ---- sizes


def _extent(
    preset: Preset, size: tuple[float, float], width: float | None
) -> tuple[tuple[float, float], float]:
    """Return width and height in mm, and the type size.

    A figure that is narrower than what it is composed for shrinks less in height than in width, and its type
    is smaller, down to `SMALLEST` points.
    """
    own = preset.shape or size
    wide = float(min(own[0], preset.widest) if width is None else _between(width, "width", 40, 1000))
    high = wide * own[1] / own[0]
    if preset.shape is not None:
        return (wide, high), preset.points * min(1.0, wide / own[0])
    narrow = min(1.0, wide / own[0])
    return (wide, high / narrow**0.5), min(preset.points, max(preset.points * narrow, SMALLEST))


def _one_of(value: str, name: str, known: dict[str, Any]) -> Any:
    if value not in known:
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
    return known[value]


def _between(value: object, name: str, low: float, high: float) -> float:
    with suppress(TypeError, ValueError):
        number = float(value)  # type: ignore[arg-type]
        if low <= number <= high:
            return number
    raise InputError(f"{name} is {value!r}; it must be from {low:g} to {high:g}")


def _grow(element: Any, zoom: float) -> Any:
    """Let the marks, lines and labels of every layer grow with the type."""
    for layer in element.traverse(lambda e: e, [hv.Element]):
        known = hv.Store.registry["matplotlib"][type(layer)].style_opts
        given = hv.Store.lookup_options("matplotlib", layer, "style").kwargs
        given = {k: v for k, v in given.items() if k in known}
        grown = {k: v * zoom for k, v in given.items() if k in _LENGTHS and not isinstance(v, str)}
        grown |= {k: v * zoom**2 for k, v in given.items() if k in _AREAS}
        if grown:
            layer.opts(hv.Options(type(layer).__name__, backend="matplotlib", **grown))
    return element


def _title(axes: Any) -> str:
    return str(axes.get_title(loc="left") or axes.get_title())


def _lay_out(drawn: Any, points: float, room: float, columns: int) -> None:
    """Let the axes fill the sheet down to the caption, whatever room their labels need.

    Panels, if there are columns of them, get cells of one size; otherwise all axes are one group (a figure
    and its colour bar), which is stretched.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(drawn).get_renderer()
    sheet = 72 * drawn.get_size_inches()
    inside = np.array([[_PAD * points, _PAD * points + room], sheet - _PAD * points])
    for axes in drawn.axes:
        _plain_decades(axes)
        if axes.get_legend():  # inside the frame
            axes.get_legend().set_in_layout(False)
            _even_out(axes.get_legend(), points)
    _place(drawn, renderer, inside, columns, points)
    hidden = [axes for axes in drawn.axes if axes.get_legend() and not _in_the_clear(axes, renderer)]
    if hidden:
        for axes in hidden:
            inside[0, 1] += _below(axes, renderer, (inside[0, 0], inside[1, 0]), inside[0, 1], points)
        _place(drawn, renderer, inside, columns, points)
    for axes in drawn.axes:
        _thin_out(axes, renderer, points)


def _place(drawn: Any, renderer: Any, inside: np.ndarray, columns: int, points: float) -> None:
    """Let the axes fill a part of the sheet."""
    sheet = 72 * drawn.get_size_inches()
    for turn in range(3):  # long words are broken to the first frames, and ticks change with them
        frames = np.array([axes.get_position().get_points() for axes in drawn.axes]) * sheet
        parts = np.array(
            [axes.get_tightbbox(renderer, for_layout_only=True).get_points() for axes in drawn.axes]
        )
        if columns:
            placed = _in_cells(inside, frames - parts, columns, points)
        else:
            around = np.array([frames[:, 0].min(0), frames[:, 1].max(0)])
            labels = around - [parts[:, 0].min(0), parts[:, 1].max(0)]
            target = _shrunk(inside, labels)
            scale = (target[1] - target[0]) / (around[1] - around[0])
            placed = target[0] + (frames - around[0]) * scale
        for axes, (low, high) in zip(drawn.axes, placed, strict=True):
            axes.set_position((*(low / sheet), *((high - low) / sheet)))
            if turn < 2:
                _fit_names(axes, *(high - low))
                _break_long_words(axes, *(high - low))


def _even_out(legend: Any, points: float) -> None:
    """Give the legend's marks sizes that stand in a line of text and can be told apart."""
    for handle in legend.legend_handles:
        if hasattr(handle, "set_sizes"):
            handle.set_sizes(np.clip(handle.get_sizes(), (0.5 * points) ** 2, (0.85 * points) ** 2))


def _in_the_clear(axes: Any, renderer: Any) -> bool:
    """Move a legend to a place in the frame where it covers no mark, line or text, if there is one."""
    legend = axes.get_legend()
    first = legend.get_window_extent(renderer)
    if not _covers(axes, first, renderer):
        legend.set_loc("lower left")  # where it is, whatever is drawn later
        legend.set_bbox_to_anchor(_inset(legend, first), transform=axes.transAxes)
        return True
    across, down = ("right", "left", "center"), ("upper", "lower", "center")
    for where in (f"{y} {x}" for y in down for x in across if (x, y) != ("center", "center")):
        legend.set_loc(where)
        if not _covers(axes, legend.get_window_extent(renderer), renderer):
            return True
    return False


def _inset(legend: Any, box: Any) -> tuple[float, float]:
    """Return the corner of a legend that is at a box, in parts of the frame."""
    pad = legend.borderaxespad * legend._fontsize * legend.get_figure().dpi / 72
    corner = legend.axes.transAxes.inverted().transform(box.p0 - pad)
    return float(corner[0]), float(corner[1])


def _covers(axes: Any, box: Any, renderer: Any) -> bool:
    """Tell whether a box is over a mark, a line, an edge or a text; shades may lie under it, and rules."""
    for found in axes.collections:
        to_sheet = found.get_transform()
        if hasattr(found, "get_sizes") and len(found.get_offsets()) and len(found.get_paths()) <= 1:
            at = found.get_offset_transform().transform(np.ma.filled(found.get_offsets(), np.nan))
            reach = 0.5 * np.sqrt(np.max(found.get_sizes(), initial=0.0))
            if ((at > box.p0 - reach) & (at < box.p1 + reach)).all(axis=1).any():
                return True
        elif any(path.transformed(to_sheet).intersects_bbox(box, filled=False) for path in found.get_paths()):
            return True
    rules = (axes.get_xaxis_transform(which="grid"), axes.get_yaxis_transform(which="grid"))
    for line in axes.lines:
        path = line.get_transform().transform_path(line.get_path())
        if line.get_transform() not in rules and path.intersects_bbox(box, filled=False):
            return True
    return any(text.get_text() and text.get_window_extent(renderer).overlaps(box) for text in axes.texts)


def _below(axes: Any, renderer: Any, sides: tuple[float, float], foot: float, points: float) -> float:
    """Move a legend out of the frame to the foot of the sheet, in as many columns as fit; return its height."""
    old = axes.get_legend()
    words = [text.get_text().replace("\n", " ") for text in old.get_texts()]
    size = old.get_texts()[0].get_fontsize()
    widest = max(map(_extent_of, words)) + 5.0
    wide, high = 72 * axes.get_figure().get_size_inches()
    new = axes.legend(
        old.legend_handles,
        words,
        ncols=max(1, min(len(words), int((sides[1] - sides[0]) / (widest * size)))),
        loc="lower left",
        bbox_to_anchor=(sides[0] / wide, foot / high),
        bbox_transform=axes.get_figure().transFigure,
        frameon=False,
        borderaxespad=0.0,
        borderpad=0.0,
    )
    new.set_in_layout(False)
    return float(new.get_window_extent(renderer).height) + 0.6 * points


def _thin_out(axes: Any, renderer: Any, points: float) -> None:
    """Hide labels of the horizontal axis that would run into others; those of whole decades stay."""
    kept: list[tuple[float, float]] = []
    for ticks in (axes.xaxis.get_major_ticks(), axes.xaxis.get_minor_ticks()):
        for label in (tick.label1 for tick in ticks):
            if not label.get_text() or label.get_rotation():
                continue
            box = label.get_window_extent(renderer)
            if any(box.x0 < high + 0.4 * points and low - 0.4 * points < box.x1 for low, high in kept):
                label.set_visible(False)
            else:
                kept.append((box.x0, box.x1))


def _shrunk(around: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the frame whose labels reach as far as `around`; at least a third of it."""
    low, high = around + labels
    least = (around[1] - around[0]) / 3
    return np.array([low, np.maximum(high, low + least)])


def _in_cells(inside: np.ndarray, labels: np.ndarray, columns: int, points: float) -> np.ndarray:
    """Return frames of one size in rows and columns, each column and row with room for its labels."""
    number = len(labels)
    row, column = np.divmod(np.arange(number), columns)
    which = np.stack([column, row.max() - row], axis=1)
    gap = np.array([1.4, 0.8]) * points
    placed = np.empty_like(labels)
    for axis in (0, 1):
        at = which[:, axis]
        before = np.array([labels[at == i, 0, axis].max() for i in range(at.max() + 1)])
        after = np.array([-labels[at == i, 1, axis].min() for i in range(at.max() + 1)])
        whole = inside[1, axis] - inside[0, axis] - gap[axis] * at.max()
        size = max(whole - before.sum() - after.sum(), whole / 3) / (at.max() + 1)
        starts = inside[0, axis] + np.cumsum(before + np.r_[0, after[:-1] + size + gap[axis]])
        placed[:, 0, axis] = starts[at]
        placed[:, 1, axis] = starts[at] + size
    return placed


def _break_long_words(axes: Any, width: float, height: float) -> None:
    """Break title, axis labels and legend into lines where they are longer than the frame."""
    rooms = [(axes._left_title, width), (axes.title, width)]
    rooms += [(axes.xaxis.label, 1.1 * width), (axes.yaxis.label, 1.1 * height)]
    if axes.get_legend():
        rooms += [(t, 0.96 * width - 4.5 * t.get_fontsize()) for t in axes.get_legend().get_texts()]
    for text, room in rooms:
        size, words = text.get_fontsize(), text.get_text().replace("\n", " ")
        if _extent_of(words) * size > max(room, 4 * size):
            text.set_text("\n".join(_wrap(words, max(room, 4 * size), size)))
    _break_ticks(axes, width)


def _plain_decades(axes: Any) -> None:
    """Write the numbers between the decades of a short logarithmic axis, and the decades, as 20 and not as powers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    low, high = axes.get_xlim()
    if axes.get_xscale() != "log" or not 1e-3 <= low < high <= 1e5 or high / low > 50:
        return
    axis = axes.xaxis
    between = axis.get_minor_formatter()
    axis.set_minor_formatter(FuncFormatter(lambda x, at: f"{x:,g}" if between(x, at) else ""))
    between.set_axis(axis)
    between.set_locs(axis.get_minorticklocs())
    if not isinstance(axis.get_major_locator(), FixedLocator):
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))


def _fit_names(axes: Any, width: float, height: float) -> None:
    """Write names beside an axis, and upright ones below, as small as the distance of their rows asks for.

    The names of rows and columns of one figure have one size.
    """
    from matplotlib import rcParams
    from matplotlib.ticker import FixedLocator

    full = rcParams["font.size"]
    sizes, named = [full], []
    for axis, room, span in ((axes.yaxis, height, axes.get_ylim()), (axes.xaxis, width, axes.get_xlim())):
        at, labels = np.sort(axis.get_ticklocs()), axis.get_ticklabels()
        upright = axis is axes.xaxis and labels and labels[0].get_rotation() == 90
        if not isinstance(axis.get_major_locator(), FixedLocator) or len(at) < 2 or not labels:
            continue
        if axis is axes.yaxis or upright:
            named.append(axis)
            if axis.get_scale() == "linear":
                sizes.append(max(room * np.diff(at).min() / np.ptp(span) / 1.2, 0.4 * full))
    for axis in named:
        axis.set_tick_params(labelsize=min(sizes))


def _break_ticks(axes: Any, width: float) -> None:
    """Break the names below a horizontal axis into lines, each name over its own part of the axis."""
    from matplotlib.ticker import FixedLocator

    at, labels = np.asarray(axes.get_xticks()), axes.get_xticklabels()
    if not isinstance(axes.xaxis.get_major_locator(), FixedLocator) or len(at) < 2 or len(at) != len(labels):
        return
    words, size = [label.get_text().replace("\n", " ") for label in labels], labels[0].get_fontsize()
    room = width * float(np.diff(np.sort(at)).min() / np.ptp(axes.get_xlim())) - 0.6 * size
    if labels[0].get_rotation() or max(map(_extent_of, words)) * size <= room:
        return
    if max((_extent_of(word) for text in words for word in text.split()), default=0.0) * size > room:
        words = [re.sub(r"-(?=\w)", "- ", text) for text in words]  # names are broken at their hyphens
    if max((_extent_of(word) for text in words for word in text.split()), default=0.0) * size <= room:
        broken = ["\n".join(_wrap(text, room, size)) for text in words]
        axes.set_xticks(at, labels=[text.replace("- ", "-") for text in broken])


def _wrap(text: str, width: float, points: float) -> list[str]:
    """Break a text into lines that are at most so many points wide."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and _extent_of(joined) * points <= width:
            lines[-1] = joined
            continue
        while _extent_of(word) * points > width:  # a name without a space
            keep = max(1, int(len(word) * width / (_extent_of(word) * points)) - 1)
            lines.append(word[:keep])
            word = word[keep:]
        lines.append(word)
    return lines


def _extent_of(text: str) -> float:
    """Return how wide a text stands, in units of the type size."""
    return sum(map(_advance, text))


@lru_cache(maxsize=4096)
def _advance(character: str) -> float:
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.ft2font import LoadFlags

    font = get_font(findfont(FontProperties(family="DejaVu Sans")))
    if not font.get_char_index(ord(character)):
        return 1.0  # drawn as an empty box
    font.set_size(1000, 72)
    return float(font.load_char(ord(character), flags=LoadFlags.NO_HINTING).linearHoriAdvance / 65536 / 1000)


def _put(drawn: Any, lines: list[str], points: float) -> None:
    """Write the caption's lines at the foot of the sheet."""
    wide, high = (72 * v for v in drawn.get_size_inches())
    step, pad = _LINE * _CAPTION * points, _PAD * points
    for i, line in enumerate(reversed(lines)):
        drawn.text(
            pad / wide,
            (pad + i * step) / high,
            line,
            fontsize=_CAPTION * points,
            color=theme.LIGHT["muted"],
            verticalalignment="bottom",
            parse_math=False,  # a dollar sign in a file's name is one
        )


def _metadata(kind: str, title: str, caption: str) -> dict[str, Any]:
    """Return what the file says of itself, without the time."""
    if kind == "svg":
        return {"Title": title, "Description": caption, "Creator": "leakviz", "Date": None}
    if kind == "pdf":
        return {"Title": title, "Subject": caption, "Creator": "leakviz", "CreationDate": None}
    return {"Title": title, "Description": caption, "Software": "leakviz"}


@contextmanager
def _whole(target: Path) -> Iterator[Any]:
    """Write a file beside its place and put it there when it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".tmp", delete=False) as file:
        try:
            yield file
        except BaseException:
            file.close()
            os.unlink(file.name)
            raise
    os.chmod(file.name, 0o644)
    os.replace(file.name, target)


def _load_matplotlib() -> None:
    """Load the backend once, and leave Bokeh the current one: sessions share it."""
    if "matplotlib" not in hv.Store.renderers:
        import matplotlib as mpl

        mpl.use("agg")
        current = hv.Store.current_backend
        hv.extension("matplotlib")
        hv.Store.set_current_backend(current)
