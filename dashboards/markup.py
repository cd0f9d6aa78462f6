"""HTML on a page: always sanitised, so that a name from a file stays text."""

from __future__ import annotations

from typing import Any

import nh3
import panel as pn

from dashboards import theme

_TAGS = nh3.ALLOWED_TAGS | {
    *("button", "select", "option", "label", "output", "section", "main"),
    *("svg", "g", "line", "circle", "rect", "path", "title"),
}
_ATTRIBUTES = {
    **nh3.ALLOWED_ATTRIBUTES,
    "*": {"class", "id", "role", "title", "hidden", "scope", "tabindex"},
    "button": {"type", "disabled"},
    "option": {"value", "selected"},
    "svg": {"viewBox", "width", "height", "preserveAspectRatio", "focusable"},
    "line": {"x1", "x2", "y1", "y2", "stroke", "stroke-width"},
    "circle": {"cx", "cy", "r", "fill", "stroke", "stroke-width"},
    "rect": {"x", "y", "width", "height", "fill", "stroke", "stroke-width"},
    "path": {"d", "fill", "stroke", "stroke-width"},
}


def clean(html: str) -> str:
    """Keep the tags and attributes that pages use; drop scripts, handlers, styles and the rest.

    Examples
    --------
    >>> clean('<b onclick="x()">18</b><script>x()</script>')
    '<b>18</b>'
    """
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        generic_attribute_prefixes={"data-live-", "aria-"},
        url_schemes={"http", "https", "mailto"},
    )


def markup(html: str, *, css: str = "", **params: Any) -> pn.pane.HTML:
    """Return a pane of sanitised HTML in the page's type.

    Parameters
    ----------
    html : str
        Names from files are escaped by whoever writes them; what is left is sanitised here.
    css : str
        A style sheet of its own, after the shared one.
    **params
        Parameters of `panel.pane.HTML`.
    """
    params = {"sizing_mode": "stretch_width", "margin": 0, **params}
    return pn.pane.HTML(
        html,
        sanitize_html=True,
        sanitize_hook=clean,
        stylesheets=[theme.TEXT_CSS, css] if css else [theme.TEXT_CSS],
        **params,
    )
