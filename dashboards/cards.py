"""A figure on a page: its heading and downloads, the figure, a caption with the source."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import holoviews as hv
import pandas as pd
import panel as pn

from dashboards import export, theme
from dashboards.markup import markup

_LINK_CSS = theme.css(
    """
:host { width: auto; flex: 0 0 auto }
.bk-btn, .bk-btn.bk-btn-default { background: none !important; border: 0 !important; box-shadow: none; color: $muted !important; font: 12.5px/1.4 $font; padding: 4px 3px; min-height: 24px; text-transform: none }
.bk-btn:hover, .bk-btn.bk-btn-default:hover { color: $ink !important; text-decoration: underline }
.bk-btn a, .bk-btn svg { color: inherit }
.bk-btn a { line-height: 22px; padding: 0 3px; height: 26px; box-sizing: border-box } /* level with the heading */
.bk-btn:focus-visible, :host(:focus-visible) .bk-btn, a:focus-visible { outline: 2px solid $accent; outline-offset: 1px; border-radius: 3px }
"""
)
_LINKS_CSS = ":host { display: flex; flex: 0 0 auto; gap: 4px; width: auto }"
_HEAD_CSS = theme.css(
    """
:host { display: flex; flex-wrap: wrap; align-items: center; gap: 0 4px; margin: 0 0 4px }
.grow { flex: 1 1 auto !important; width: auto !important }
"""
)


def downloads(
    name: str,
    figure: Callable[..., hv.Overlay],
    data: Callable[[], pd.DataFrame],
    *,
    size: tuple[float, float] = export.SIZE,
    page: Any = None,
    source: str = "",
) -> list[pn.widgets.FileDownload]:
    """Return links that make SVG, PDF, PNG and CSV of a figure as it is when they are pressed.

    They are of the size for print; `dashboards.export.save` writes others.

    Parameters
    ----------
    name : str
        The files' name.
    figure : callable
        Takes ``backend`` and returns the element at the present state.
    data : callable
        Returns the data behind it.
    size : (width, height) in mm
    source : str
        Where the figure's numbers are from, if not where the page's are.
    page : optional
        The page, or the part of one, whose source and state stand below the figure in the files; see
        `dashboards.export.says`.
    """

    def draw(kind: str) -> Any:
        return export.draw(figure, kind, size=size, caption=export.says(page, source=source) if page else "")

    def link(kind: str, make: Callable[[], Any]) -> pn.widgets.FileDownload:
        return pn.widgets.FileDownload(
            callback=make,
            filename=f"{name}.{kind}",
            label=kind.upper(),
            icon=None,
            embed=False,
            auto=True,
            width=36,
            height=26,
            margin=0,
            stylesheets=[_LINK_CSS],
        )

    return [
        *(link(kind, partial(draw, kind)) for kind in export.KINDS),
        link("csv", lambda: export.table(data())),
    ]


def helped(widget: pn.viewable.Viewable, words: str, *, css: str = "") -> pn.Column:
    """Put one line of help below a menu or a field: what it stands for, and its default.

    Parameters
    ----------
    widget : Viewable
    words : str
        Plain words, HTML.
    css : str
        A style sheet for the two together.
    """
    return pn.Column(
        widget,
        markup(f'<p class="help">{words}</p>'),
        sizing_mode="stretch_width",
        margin=0,
        stylesheets=[":host { min-width: 0 }", css],
    )


def card(
    title: str,
    figure: pn.viewable.Viewable,
    caption: str = "",
    *,
    links: list[pn.widgets.FileDownload] | None = None,
    head: str = "",
    extra: str = "",
    height: int | None,
    stylesheets: list[str] | None = None,
) -> pn.Column:
    """Put a heading with its links, a figure and a caption together.

    Parameters
    ----------
    title : str
        Heading, plain text.
    figure : Viewable
    caption : str
        HTML below the figure.
    links : list of FileDownload, optional
    head : str
        HTML right of the heading.
    extra : str
        HTML between heading and figure (a legend).
    height : int or None
        Pixels kept for the figure, so that nothing moves when it arrives; None if its parts keep theirs.
    stylesheets : list of str, optional
        For the box around the figure.
    """
    heading = markup(f"<h2>{title}</h2>", css_classes=["grow"])
    parts: list[Any] = [heading]
    if head:
        parts.append(markup(head, sizing_mode=None, styles={"flex": "0 1 auto"}))
    if links:  # on a narrow page they go to the next line together
        parts.append(pn.Row(*links, stylesheets=[_LINKS_CSS], margin=0, sizing_mode=None))
    body: list[Any] = [pn.Row(*parts, stylesheets=[_HEAD_CSS], margin=0, sizing_mode="stretch_width")]
    if extra:
        body.append(markup(extra))
    body.append(
        pn.Column(figure, sizing_mode="stretch_width", margin=0, height=height, stylesheets=stylesheets or [])
    )
    if caption:
        body.append(markup(f'<p class="small">{caption}</p>'))
    return pn.Column(*body, sizing_mode="stretch_width", margin=0)
