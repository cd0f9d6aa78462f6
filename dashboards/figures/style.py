"""How every figure is dressed, for the screen (Bokeh) and for paper (matplotlib)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import holoviews as hv
import holoviews.plotting.bokeh
from bokeh.models import NoOverlap
from bokeh.models.tools import BoxZoomTool, ResetTool

from dashboards import theme

INK = theme.LIGHT["ink"]


def style(
    element: hv.Element,
    backend: str,
    *,
    bokeh: dict[str, Any],
    matplotlib: dict[str, Any],
    hooks: Sequence[Callable] | None = None,
) -> hv.Element:
    """Apply one backend's options to one layer of a figure.

    Parameters
    ----------
    element : holoviews.Element
    backend : {"bokeh", "matplotlib"}
    bokeh, matplotlib : dict
        The backends' options; only those of `backend` are applied.
    hooks : sequence of callables, optional
        HoloViews hooks, for the screen only.
    """
    if backend == "matplotlib":
        return element.opts(hv.Options(type(element).__name__, backend="matplotlib", **matplotlib))
    options = {"show_legend": False, "default_tools": ["box_zoom", "reset"], **bokeh}
    options["hooks"] = [_follow_theme(bokeh), *(hooks or [])]
    return element.opts(hv.Options(type(element).__name__, backend="bokeh", **options))


def _follow_theme(options: dict[str, Any]) -> Callable:
    """Mark what is in a colour of the page, not of the data: the shell recolours it with the theme."""
    named = {color: name for name, color in theme.LIGHT.items() if name in ("ink", "alarm")}

    def hook(plot: Any, element: Any) -> None:
        glyph, renderer = plot.handles.get("glyph"), plot.handles.get("glyph_renderer")
        if renderer is not None:  # what is chosen and what is not look as before
            renderer.selection_glyph = renderer.nonselection_glyph = None
        for option, value in options.items():
            if not isinstance(value, str) or value not in named or not option.endswith("color"):
                continue
            for own in (option, f"line_{option}"):
                tag = f"theme:{named[value]}:{own}"
                if own in glyph.properties() and tag not in glyph.tags:
                    glyph.tags = [*glyph.tags, tag]

    return hook


def offset(x: float, y: float) -> Callable:
    """Return a hook that shifts a text glyph by pixels, down being positive."""

    def hook(plot: Any, element: Any) -> None:
        plot.handles["glyph"].update(x_offset=x, y_offset=y)

    return hook


def on_paper(x: float = 0.0, y: float = 0.0) -> Callable:
    """Return a hook for matplotlib: shifts texts by points of a type of 7.5, down being positive, and keeps lines from crossing them."""

    def hook(plot: Any, element: Any) -> None:
        from matplotlib.transforms import ScaledTranslation

        for text in plot.handles["artist"]:
            em = text.get_fontsize() / 7.5  # the shift grows with the type
            by = ScaledTranslation(em * x / 72, -em * y / 72, plot.state.dpi_scale_trans)
            text.set_transform(text.get_transform() + by)
            text.set_bbox({"facecolor": theme.LIGHT["bg"], "edgecolor": "none", "pad": 0.6, "alpha": 0.85})

    return hook


def above(plot: Any, element: Any) -> None:
    """Put what moves with the hand on Bokeh's upper canvas (a hook).

    Bokeh repaints a whole canvas, with axes and all points, whenever something on it moves. On the
    upper one there is nothing else. Lines and boxes are clipped to the frame there, glyphs are not.
    """
    moved = plot.handles.get("glyph_renderer") or plot.handles["glyph"]
    moved.level = "overlay"


def apart(plot: Any, element: Any) -> None:
    """Leave out tick labels of the horizontal axis that a narrow page has no room for (a hook)."""
    for axis in plot.state.xaxis:
        axis.major_label_policy = NoOverlap(min_distance=7)


def by_column(**properties: str) -> Callable:
    """Return a hook that lets glyph properties follow dimensions of the element, row by row.

    ``hv.dim`` would do, were it not that HoloViews writes one value for a column that happens to
    be constant, which then has no rows for the sliders to move.
    """

    def hook(plot: Any, element: Any) -> None:
        source, glyph = plot.handles["source"], plot.handles["glyph"]
        for name, dimension in properties.items():
            source.data[name] = element.dimension_values(dimension)
            glyph.update(**{name: name})

    return hook


def frame(
    overlay: hv.Overlay,
    backend: str,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    height: int,
    grid: str = "",
    left: int = 54,
    xticks: Any = None,
    yticks: Any = None,
    xrotation: float | None = None,
    xformatter: str | None = None,
    yformatter: str | None = None,
    logx: bool = False,
    logy: bool = False,
    zoom: bool = False,
    hooks: Sequence[Callable] | None = None,
) -> hv.Overlay:
    """Give a figure its axes, fixed ranges and size.

    Parameters
    ----------
    title : str
        Drawn on paper; on the screen the heading above the figure says it.
    height : int
        Pixels; the width is the page's.
    grid : {"", "x", "y"}
        Which hairlines are drawn.
    left : int
        Pixels kept left of the frame, so that frames stay aligned.
    zoom : bool
        Whether box zoom and reset stand above the frame; worth their room where points crowd.
    """
    given = {
        "xticks": xticks,
        "yticks": yticks,
        "xrotation": xrotation,
        "xformatter": xformatter,
        "yformatter": yformatter,
    }
    common = {
        **{"xlabel": xlabel, "ylabel": ylabel, "xlim": xlim, "ylim": ylim, "logx": logx, "logy": logy},
        **{name: value for name, value in given.items() if value is not None},
    }
    if backend == "matplotlib":
        return overlay.opts(
            hv.Options(
                "Overlay",
                backend="matplotlib",
                title=title,
                show_grid=bool(grid),
                aspect=None,
                show_legend=True,
                legend_position="best",
                **common,
            )
        )

    def dress(plot: Any, element: Any) -> None:
        figure = plot.state
        figure.output_backend = "canvas"  # WebGL takes seconds a frame where there is no GPU
        figure.toolbar.logo = None
        figure.toolbar.autohide = True
        for tool in figure.toolbar.tools:
            tool.visible = isinstance(tool, (BoxZoomTool, ResetTool))
        figure.outline_line_color = None
        figure.min_border_left = left
        figure.min_border_right = 8
        for axis in figure.axis:
            axis.axis_line_color = None
            axis.major_tick_line_color = None
            axis.minor_tick_line_color = None
            axis.axis_label_text_font_style = "normal"
            axis.axis_label_text_font_size = "12.5px"
            axis.major_label_text_font_size = "11.5px"
        for axis_grid in figure.xgrid:
            axis_grid.visible = grid == "x"
        for axis_grid in figure.ygrid:
            axis_grid.visible = grid == "y"

    return overlay.opts(
        hv.Options(
            "Overlay",
            backend="bokeh",
            responsive=True,
            height=height,
            toolbar="above" if zoom else None,
            default_tools=["box_zoom", "reset"],
            active_tools=[],
            show_legend=False,
            title="",
            shared_axes=False,
            axiswise=True,
            framewise=False,
            hooks=[dress, *(hooks or [])],
            **common,
        )
    )
