"""HTML on a page: always sanitised, so that a name from a file stays text."""

from __future__ import annotations

import html as text
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import nh3
import panel as pn

from dashboards import theme
from dashboards.shelf import Shelf
from dashboards.state import PageState, other_file

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


class _Text(pn.pane.HTML):
    """Sends its text alone when that changes.

    Panel sends the style sheets along, as other objects the first time, for which the browser lays the whole page
    out anew: a tenth of a second for each text.
    """

    def _update(self, ref: str, model: Any) -> None:
        properties = self._get_properties(model.document)
        model.update(**{name: value for name, value in properties.items() if name != "stylesheets"})


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
    return _Text(
        html,
        sanitize_html=True,
        sanitize_hook=clean,
        stylesheets=[theme.TEXT_CSS, css] if css else [theme.TEXT_CSS],
        **params,
    )


_WAITS = "This link waits for a file"
_NOTE_CSS = theme.css(
    """
p { margin-top: 4px; overflow-wrap: anywhere }
.bring { display: inline-block; background: $accent; color: $bg; border-radius: 6px; padding: 7px 14px; font-size: 14px; text-decoration: none; margin: 4px 0 }
.bring:hover { filter: brightness(1.12) }
"""
)

# Pages that sentences may lead to, as they are called in quotation marks.
_PAGES = {"“Your predictions”": "predictions", "“Your embeddings”": "embeddings"}


def notes(sentences: Sequence[str]) -> str:
    """Write sentences as HTML that a screen reader tells at once; the page that takes a file becomes a link.

    Parameters
    ----------
    sentences : sequence of str
        Plain text.

    Examples
    --------
    >>> notes(["Bring it under “Your predictions”, not <b>."])
    '<p class="note" role="alert">Bring it under <a href="?page=predictions">Your predictions</a>, not &lt;b&gt;.</p>'
    """
    told = "".join(f'<p class="note" role="alert">{text.escape(one, quote=False)}</p>' for one in sentences)
    for words, page in _PAGES.items():
        told = told.replace(words, f'<a href="?page={page}">{words[1:-1]}</a>')
    return told


def link_note(state: PageState, **params: Any) -> pn.pane.HTML:
    """Return a pane that says what a page's link asked for and does not show, or waits for.

    Parameters
    ----------
    state : PageState
    **params
        As `markup` takes them.
    """
    pane = markup("", css=_NOTE_CSS, **params)
    seen = weakref.ref(pane)

    def show(*_: Any) -> None:
        here = seen()
        if here is not None:
            told = notes(state.told)
            if state.waiting and state.brought in _PAGES.values():
                told += f'<p><a class="bring" href="?page={state.brought}">Bring the file</a></p>'
            if state.waiting and state.brought in (*_PAGES.values(), "lodo"):
                told = f"<h1>{_WAITS}</h1>{told}"
            here.param.update(object=told, visible=bool(state.told))

    state.param.watch(show, "told")
    show()
    return pane


def meanwhile(state: PageState, heading: str, subject: str) -> str:
    """Write a page's heading, which is not the heading while a link waits for a file.

    Parameters
    ----------
    state : PageState
    heading : str
        HTML with one ``<h1>``.
    subject : str
        What data the page shows, plain text.
    """
    return demoted(heading, subject) if state.waiting and state.told else heading


def demoted(heading: str, subject: str) -> str:
    """Write a page's heading as what is shown meanwhile, with the name of the data that it is about.

    Examples
    --------
    >>> demoted("<h1>The gap is 0.1.</h1>", "penguins")
    '<p class="note">Meanwhile, penguins: The gap is 0.1.</p>'
    """
    return re.sub(
        "<h1>(.*?)</h1>",
        lambda h1: f'<p class="note">Meanwhile, {text.escape(subject, quote=False)}: {h1[1]}</p>',
        heading,
        flags=re.DOTALL,
    )


def headline(
    state: PageState, write: Callable[[], str], subject: Callable[[], str], **params: Any
) -> pn.pane.HTML:
    """Return a pane with a page's heading, which is not the heading while a link waits for a file.

    What is shown meanwhile is not what the link is about: `link_note` has the heading then, and what the page says
    stands below it, with the name of the data that it says it about.

    Parameters
    ----------
    state : PageState
    write : callable
        Returns the heading: HTML with one ``<h1>``.
    subject : callable
        Returns what data the page shows, plain text.
    **params
        As `markup` takes them.
    """

    def written() -> str:
        return meanwhile(state, write(), subject())

    pane = markup(written(), **params)
    seen = weakref.ref(pane)
    before = [state.waiting]

    def show(*_: Any) -> None:
        here = seen()
        # Else the texts in it follow the hand by themselves.
        if here is not None and (state.waiting or before[0]):
            here.object = written()
        before[0] = state.waiting

    state.param.watch(show, ["told", *state.names()], precedence=3)  # when the page has followed its state
    return pane


def waiting_note(shelf: Shelf, brought: str, last: str) -> str:
    """Write, where files are brought, which links wait for one, and whether the last was what they wait for.

    Parameters
    ----------
    shelf : Shelf
    brought : {"predictions", "embeddings"}
    last : str
        The name of what was brought last, or "".
    """
    told = []
    for page, title in shelf.pages_of(last):
        if page == brought:  # here it is
            continue
        told.append(
            f'This is the file that the link to {title} names. <a href="?page={page}">See it there, as the link shows it</a>.'
        )
    for page, title, missing in shelf.awaited(brought):
        files = " and ".join(missing)
        if last in missing:  # on its way there
            continue
        if last and not shelf.pages_of(last):
            told.append(text.escape(other_file(last, missing)))
        else:
            told.append(
                f'A link to <a href="?page={page}">{title}</a> waits for {files}: bring that file here, and it is shown there '
                "as in the link."
            )
    return "".join(f'<p class="note" role="alert">{one}</p>' for one in told)
