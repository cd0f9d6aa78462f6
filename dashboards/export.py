"""A figure as a file: the same HoloViews element, drawn by matplotlib, and the data behind it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import holoviews as hv
import pandas as pd

from dashboards import theme

# The same figure gives the same bytes; text in an SVG stays text.
_STABLE: dict[Any, Any] = {
    "svg.hashsalt": "leakviz",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": theme.LIGHT["hair"],
    "axes.labelcolor": theme.LIGHT["muted"],
    "axes.titlelocation": "left",
    "xtick.color": theme.LIGHT["muted"],
    "ytick.color": theme.LIGHT["muted"],
    "grid.color": theme.LIGHT["hair"],
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": theme.LIGHT["hair"],
    "legend.fontsize": 7.5,
}


def draw(
    figure: Callable[..., hv.Overlay], kind: str, *, size: tuple[float, float], dpi: int = 200
) -> io.BytesIO:
    """Draw a figure for paper.

    Parameters
    ----------
    figure : callable
        Takes ``backend="matplotlib"`` and returns the element at the state to be drawn.
    kind : {"svg", "png"}
    size : (width, height) in mm
    dpi : int
        For PNG.

    Returns
    -------
    io.BytesIO

    Raises
    ------
    RuntimeError
        If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib import pyplot
    except ImportError as error:
        raise RuntimeError('figures need matplotlib: pip install "leakviz[figures]"') from error
    _load_matplotlib()
    inches = (size[0] / 25.4, size[1] / 25.4)
    with mpl.rc_context(_STABLE):
        element = figure(backend="matplotlib")
        element = element.opts(hv.Options("Overlay", backend="matplotlib", fig_inches=inches, aspect="auto"))
        drawn = hv.renderer("matplotlib").get_plot(element).state
        drawn.set_size_inches(*inches)
        out = io.BytesIO()
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
        drawn.savefig(out, format=kind, dpi=dpi, bbox_inches="tight", metadata=metadata)
        pyplot.close(drawn)
    out.seek(0)
    return out


def table(frame: pd.DataFrame) -> io.StringIO:
    """Write the data behind a figure as CSV, in the shortest decimals that read back the same."""
    out = io.StringIO()
    frame.to_csv(out, index=False)
    out.seek(0)
    return out


def _load_matplotlib() -> None:
    """Load the backend once, and leave Bokeh the current one: sessions share it."""
    if "matplotlib" not in hv.Store.renderers:
        import matplotlib as mpl

        mpl.use("agg")
        current = hv.Store.current_backend
        hv.extension("matplotlib")
        hv.Store.set_current_backend(current)
