"""A figure on a page: its heading and downloads, the figure, a caption with the source."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import holoviews as hv
import pandas as pd
import panel as pn
import param
from panel.custom import JSComponent

from dashboards import export, theme
from dashboards.markup import markup
from leakviz.errors import InputError

KINDS = ("SVG", "PDF", "PNG", "CSV")

_log = logging.getLogger(__name__)

_FILES_CSS = theme.css(
    """
:host { width: auto; flex: 0 0 auto; display: var(--lv-files, block); position: relative }
.files { display: flex; flex-wrap: wrap; align-items: center; gap: 0 4px; position: relative; font: 12.5px/1.4 $font; color: $muted }
button { background: none; border: 0; color: $muted; font: 12.5px/1.4 $font; padding: 4px 3px; min-height: 26px; min-width: 24px; cursor: pointer }
button:hover { color: $ink; text-decoration: underline }
button[aria-busy=true] { opacity: .5 }
button:focus-visible, input:focus-visible { outline: 2px solid $accent; outline-offset: 1px; border-radius: 3px }
.size { border-left: 1px solid $hair; padding-left: 8px; margin-left: 3px }
.told { margin: 0; color: $alarm; flex-basis: 100% }
.told:empty { display: none }
.panel { position: absolute; top: 100%; right: 0; z-index: 5; width: 218px; box-sizing: border-box; background: $bg; border: 1px solid $hair; border-radius: 6px; padding: 10px 12px; display: grid; gap: 6px; color: $ink; box-shadow: 0 4px 14px color-mix(in srgb, $ink 14%, transparent) }
.panel label { display: flex; align-items: center; gap: 6px }
.panel input[type=radio] { margin: 0; accent-color: $accent }
.panel label:has(input[type=number]) { justify-content: space-between }
.panel input[type=number] { width: 76px; font: inherit; color: $ink; background: $bg; border: 1px solid $hair; border-radius: 5px; padding: 3px 6px }
.panel input[aria-invalid=true] { border-color: $alarm }
.panel .limits { display: block; color: $muted }
.panel input::placeholder { color: $muted; opacity: 1 }
.panel .done { justify-self: end; color: $accent }
"""
)
_HEAD_CSS = theme.css(
    """
:host { display: flex; flex-wrap: wrap; align-items: center; gap: 0 4px; margin: 0 0 4px }
.grow { flex: 1 1 auto !important; width: auto !important }
"""
)


class Downloads(JSComponent):
    """The files of one figure: SVG, PDF, PNG and CSV, and the size of the first three.

    Parameters
    ----------
    filename : str
        Of the files, without their ending.
    make : callable
        Takes what is asked for, a key of ``file`` in lower case, and ``preset``, ``width`` and ``dpi`` as
        `dashboards.export.draw`; returns the file's bytes.
    size : (width, height) in mm
        What the figure is composed for.
    """

    presets = param.Dict(default={}, doc="Per preset what it is called, its width in mm, and its dpi.")

    _esm = Path(__file__).with_name("cards.js")
    _stylesheets: ClassVar[list[str]] = [_FILES_CSS]

    def __init__(
        self, filename: str, make: Callable[..., bytes], *, size: tuple[float, float], **params: Any
    ):
        words = {"print": "for print", "slide": "for a slide, 16:9"}
        presets = {
            name: {
                "words": words[name],
                "width": f"{min((preset.shape or size)[0], preset.widest):g}",
                "dpi": str(preset.dpi),
            }
            for name, preset in export.PRESETS.items()
        }
        super().__init__(presets=presets, margin=0, sizing_mode=None, **params)
        self.filename, self._make = filename, make

    def _handle_msg(self, data: Any) -> None:
        kind = data.get("file") if isinstance(data, dict) else None
        if kind not in KINDS:
            return
        answer: dict[str, Any] = {"file": kind}
        try:
            preset = str(data.get("preset"))
            width, dpi = (_number(data.get(name)) for name in ("width", "dpi"))
            made = self._make(kind.lower(), preset=preset, width=width, dpi=dpi)
            answer |= {"name": f"{self.filename}.{kind.lower()}", "data": made}
        except InputError as error:
            answer["wrong"] = f"{error}."
        except RuntimeError as error:  # matplotlib is not here
            answer["wrong"] = f"{str(error)[:200]}."
        except Exception:
            _log.exception("%s could not be made", self.filename)
            answer["wrong"] = "This file could not be made."
        self._send_msg(answer)


def _number(value: Any) -> float | None:
    return (
        None
        if value in (None, "")
        else float(value)
        if str(value).isascii() and str(value).isdigit()
        else math.nan
    )


def downloads(
    name: str,
    figure: Callable[..., hv.Overlay],
    data: Callable[[], pd.DataFrame],
    *,
    size: tuple[float, float] = export.SIZE,
    page: Any = None,
    of: str = "",
) -> Downloads:
    """Return the buttons that make SVG, PDF, PNG and CSV of a figure as it is when they are pressed.

    They are of the size for print, or of what is chosen beside them; see `dashboards.export.draw`.

    Parameters
    ----------
    name : str
        The files' name.
    figure : callable
        Takes ``backend`` and returns the element at the present state.
    data : callable
        Returns the data behind it.
    size : (width, height) in mm
    page : optional
        The page, or the part of one, whose source and state stand below the figure in the files; see
        `dashboards.export.says`.
    of : str
        What the page calls the figure, if not as the files.
    """

    def made(kind: str, **chosen: Any) -> bytes:
        if kind == "csv":
            return export.table(data()).getvalue().encode()
        caption = export.says(page, of or name) if page else ""
        return export.draw(figure, kind, size=size, caption=caption, **chosen).getvalue()

    return Downloads(name, made, size=size)


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
    links: Downloads | None = None,
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
    links : Downloads, optional
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
    if links is not None:  # on a narrow page they go to the next line together
        parts.append(links)
    body: list[Any] = [pn.Row(*parts, stylesheets=[_HEAD_CSS], margin=0, sizing_mode="stretch_width")]
    if extra:
        body.append(markup(extra))
    body.append(
        pn.Column(figure, sizing_mode="stretch_width", margin=0, height=height, stylesheets=stylesheets or [])
    )
    if caption:
        body.append(markup(f'<p class="small">{caption}</p>'))
    return pn.Column(*body, sizing_mode="stretch_width", margin=0)
