"""The marks of the regimes in legends: what a figure draws, as a small SVG."""

from __future__ import annotations

from dashboards import theme

_SHAPES = {
    "circle": '<circle cx="8" cy="8" r="4.6" {}></circle>',
    "square": '<rect x="3.8" y="3.8" width="8.4" height="8.4" {}></rect>',
    "diamond": '<path d="M8 2.4l5 5.6-5 5.6-5-5.6z" {}></path>',
    "triangle": '<path d="M8 2.7l5.1 8.7h-10.2z" {}></path>',
    "inverted_triangle": '<path d="M8 13.3l5.1-8.7h-10.2z" {}></path>',
    "star": '<path d="M8 2l1.5 4.3 4.5.1-3.6 2.7 1.3 4.4L8 10.9l-3.7 2.6 1.3-4.4L2 6.4l4.5-.1z" {}></path>',
    "square_pin": '<path d="M3.2 3.2Q8 5.6 12.8 3.2 10.4 8 12.8 12.8 8 10.4 3.2 12.8 5.6 8 3.2 3.2z" {}></path>',
    "triangle_pin": '<path d="M8 2Q9 8 13.6 11.6 8 10 2.4 11.6 7 8 8 2z" {}></path>',
    "hex": '<path d="M3 8l2.5-4.4h5L13 8l-2.5 4.4h-5z" {}></path>',
}


def mark(shape: str, color: str, *, filled: bool = False) -> str:
    """Return a mark as HTML.

    Parameters
    ----------
    shape : {"circle", "square", "diamond", "triangle", "inverted_triangle", "hex", "star", "square_pin", "triangle_pin"}
    color : str
    filled : bool, default False

    Examples
    --------
    >>> "circle" in mark("circle", theme.REGIME_COLOR["leak"])
    True
    """
    paint = f'fill="{color if filled else "none"}" stroke="{color}" stroke-width="1.7"'
    return f'<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{_SHAPES[shape].format(paint)}</svg>'


def regime_mark(regime: str, *, filled: bool = False) -> str:
    """Return the mark of a regime as HTML.

    Examples
    --------
    >>> "path" in regime_mark("clean-novel")
    True
    """
    return mark(theme.REGIME_MARK[regime], theme.REGIME_COLOR[regime], filled=filled)


def legend(*regimes: str, more: str = "") -> str:
    """Return a legend of some regimes as HTML; `LEGEND_CSS` dresses it.

    Parameters
    ----------
    *regimes : str
    more : str
        HTML of further entries.
    """
    entries = "".join(f"<span>{regime_mark(r)}{theme.REGIME_LABEL[r]}</span>" for r in regimes)
    return f'<div class="legend">{entries}{more}</div>'


LEGEND_CSS = theme.css(
    """
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: calc(12.5px * var(--lv-large, 1)); color: $muted; align-items: center }
.legend span { display: inline-flex; gap: 5px; align-items: center }
"""
)
