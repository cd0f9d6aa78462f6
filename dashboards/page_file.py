"""A page as one file: HTML with everything in it, alive without a server and without a network.

``leakviz export`` and "Save page" make it. The page is built anew at a state, outside any session; its sliders
work from the answer tables as they do in the app. What a server would have to answer is taken out or written
down as text: menus that choose other data, files, downloads. The file's own security policy forbids every
request, so that it asks nobody even by mistake.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import html
import json
import re
import signal
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bokeh
import panel as pn
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.models import ImportedStyleSheet, InlineStyleSheet
from bokeh.models.ui import UIElement
from panel.io.state import set_curdoc
from tqdm import tqdm

from dashboards import server, theme
from dashboards.cards import Downloads
from dashboards.lessons import Player
from dashboards.listing import Listing
from dashboards.live import Live
from dashboards.markup import markup
from dashboards.mechanism import Hand
from dashboards.provenance import Source, sources
from dashboards.scenes import Scenes, record
from dashboards.shelf import OWN, Shelf
from dashboards.shell import FRAME_CSS, HEAD_SCRIPT, Shell
from dashboards.state import asked_of
from leakviz._stop import STOPPED
from leakviz.cli import UNUSABLE
from leakviz.paths import write_whole

# What can be saved, and what of it needs the app. "lesson" is another name of the lessons.
LEFT_OUT = {
    "fingerprint": "another battery, detector or selection of settings, and the scores behind any but the chosen setting",
    "whitening": "other features, OOD sets, fit sets and covariances",
    "audit": "the scores behind any but the chosen setting",
    "purity": "other predictions, and other parameters of the simulated arms",
    "calibration": "other predictions",
    "lodo": "other cases, classifiers, metrics, sources and rows, and a table of your own",
    "learn": "the controls of the world that are grey, dragging its centres, and the way on which lesson 6 walks the class "
    "round (its beginning and its end are here)",
}
ALIASES = {"lesson": "learn", "lessons": "learn"}

# The file asks nobody for anything, whatever is in it.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)
_ALIVE = (Live, Player, Hand, Listing)  # what works in the browser alone
_TO_PAGES = re.compile(r'<a\b[^>]*\bhref="\?[^"]*"[^>]*>(.*?)</a>', re.DOTALL)
_FIXED_CSS = theme.css(
    "p { font-size: 13px } .label { display: block; color: $muted } .value { line-height: 30px; overflow-wrap: anywhere }"
)
_ABOUT_CSS = theme.css(
    """
body { margin: 0 }
:root[data-present] :is(.saved, .about) { display: none }
.saved { color: $muted; font-size: 13px; margin: 0 0 16px }
.about { border-top: 1px solid $hair; margin-top: 34px; padding-top: 14px; font-size: 14px }
.about h2 { font-size: 15px; font-weight: 620; margin: 0 0 6px }
.about h3 { font-size: 13px; font-weight: 400; color: $muted; margin: 0 0 4px }
.about dl + h3 { margin-top: 16px }
.about p { margin: 0 0 8px; max-width: 900px }
.about .two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.4fr); gap: 18px 44px; margin-top: 16px; align-items: start }
.about table { border-collapse: collapse; width: 100%; font-size: 13.5px }
.about td, .about th { text-align: left; font-weight: 400; padding: 4px 14px 4px 0; border-bottom: 1px solid $hair; vertical-align: top; overflow-wrap: anywhere }
.about th { color: $muted; white-space: nowrap }
.about code { font-size: 12.5px; overflow-wrap: anywhere }
.about dl { margin: 0 }
.about dt { font-weight: 620 }
.about dd { margin: 0 0 2px; overflow-wrap: anywhere }
a { color: $accent }
a:focus-visible { outline: 2px solid $accent; outline-offset: 2px; border-radius: 3px }
@media (max-width: $narrow) { .about .two { grid-template-columns: minmax(0, 1fr) } }
"""
)


@dataclass(frozen=True)
class PageFile:
    """A page as a file.

    Attributes
    ----------
    name : str
        Of the page.
    html : str
        The whole file.
    query : str
        The state that it opens at, as in a link.
    told : tuple of str
        One sentence for everything that could not be shown as asked.
    """

    name: str
    html: str
    query: str
    told: tuple[str, ...] = ()

    @property
    def filename(self) -> str:
        """What the file is called, if nobody says otherwise."""
        return f"leakviz-{self.name}.html"


def page_file(
    name: str,
    make: Callable[[str, Shelf], Any],
    query: str = "",
    *,
    title: str = "",
    shelf: Shelf | None = None,
    like: Any = None,
    progress: Callable[[int, int], object] | None = None,
) -> PageFile:
    """Build a page at a state and write it as one file.

    Parameters
    ----------
    name : str
        One of `LEFT_OUT`.
    make : callable
        Makes the page from a query string and a shelf.
    query : str
        The state, as in a link. What cannot be shown as asked is told, and the nearest state is saved.
    title : str
        What the page is called.
    shelf : Shelf, optional
        The session's own data are on it; it is not changed.
    like : Viewer, optional
        A page of the session which has computed something that is in no link.
    progress : callable, optional
        Called with how many steps are done, and how many there are.

    Returns
    -------
    PageFile

    Examples
    --------
    >>> from dashboards.fingerprint import FingerprintPage
    >>> saved = page_file("fingerprint", FingerprintPage, "tau=0.6")
    >>> saved.query, saved.told, len(saved.html) < 4_000_000
    ('gate=0.95&tau=0.6', (), True)
    """
    step = progress or (lambda done, total: None)
    document = Document()
    with set_curdoc(document):
        step(0, 4)
        page = open_page(make, query, shelf, like)
        told = tuple(page.state.told)
        root = page.__panel__()
        step(1, 4)
        player = getattr(page, "player", None)
        _settle(root, keep_hidden=player is not None)
        header = Shell(pages=[[name, title or name]], page=name, subject=page.subject, saved=True)
        shown: list[pn.viewable.Viewable] = [header, root]
        roots = dict(zip(("shell", "page"), (_add(v, document) for v in shown), strict=True))
        if player is not None:
            shown.append(
                Scenes(recording=record(document, player, page.lessons), width=0, height=0, margin=0)
            )
            roots["scenes"] = _add(shown[-1], document)
        step(2, 4)
        _inline_styles(document)
        key = uuid.uuid4().hex
        packed = json.dumps(
            {
                "id": key,
                "json": json.loads(serialize_json(document.to_json(deferred=False))),
                "roots": {model.id: place for place, model in roots.items()},
            }
        )
        about = _about(name, page, title or name)
        step(3, 4)
        text = _html(
            title=f"{title or name}: {page.subject}",
            about=about,
            grey=player is not None,
            places=list(roots),
            document=_pack(packed.encode()),
        )
        for viewable, model in zip(shown, roots.values(), strict=True):
            viewable._cleanup(model)
            pn.state._views.pop(model.ref["id"], None)
        document.clear()
    step(4, 4)
    return PageFile(name, text, page.state.query(), told)


def open_page(make: Callable[[str, Shelf], Any], query: str, shelf: Shelf | None, like: Any = None) -> Any:
    """Make a page at a state, which nobody who looks at the session's own page hears of.

    Parameters
    ----------
    make : callable
        Makes the page from a query string and a shelf.
    query : str
        The state, as in a link.
    shelf : Shelf or None
        With the session's own data; it is copied.
    like : Viewer, optional
        A page of the session which has computed something that is in no link, and on no shelf.
    """
    subjects = computed(like)
    page = make("" if subjects else query, shelf.copy() if shelf is not None else Shelf())
    if subjects:
        for subject in subjects:
            page.state.offer(subject)
        page.state.read(query)
    return page


def computed(page: Any) -> list[Any]:
    """Return what a session has computed on a page itself: it is in no link, and on no shelf."""
    own, fresh = (getattr(getattr(page, "state", None), part, None) for part in ("own", "fresh"))
    return [*own.values(), *fresh.values()] if isinstance(own, dict) and isinstance(fresh, dict) else []


def _add(viewable: pn.viewable.Viewable, document: Document) -> Any:
    model = viewable.get_root(document)
    document.add_root(model)
    return model


# ---- what needs a server


def _settle(container: Any, *, keep_hidden: bool) -> None:
    """Take out of a page what a server would have to answer, or write it down as text."""
    kept = []
    for child in container.objects:
        still = _still(child, keep_hidden=keep_hidden)
        if still is not None:
            kept.append(still)
    container.objects = kept


def _still(child: Any, *, keep_hidden: bool) -> Any:
    if (not child.visible or child.styles.get("display") == "none") and not keep_hidden:
        return None  # nobody could make it seen
    if isinstance(child, pn.layout.base.ListLike):
        before = list(child.objects)
        if any(
            isinstance(part, pn.custom.JSComponent) and not isinstance(part, (*_ALIVE, Downloads))
            for part in before
        ):
            return None  # a place to bring a file
        _settle(child, keep_hidden=keep_hidden)
        gone = any(isinstance(part, pn.widgets.Button) for part in before)
        words = all(isinstance(part, pn.pane.HTML) for part in child.objects)
        return None if before and (not child.objects or (gone and words)) else child
    if isinstance(child, pn.pane.HTML):
        if isinstance(child.object, str):
            child.object = _TO_PAGES.sub(_as_text, child.object)
        return child
    if isinstance(child, _ALIVE):
        if "alone" in child.param:
            child.param.update(alone=True)
        return child
    if isinstance(child, (pn.widgets.Button, pn.widgets.FileDownload, Downloads)):
        return None
    if isinstance(child, pn.widgets.Widget):
        return _fixed(child)
    return child


def _as_text(link: re.Match[str]) -> str:
    """Return what is left of a link to another page: its words, or nothing if the link was all there was."""
    return "" if "data-live-attrs" in link[0] else link[1]


def _fixed(widget: Any) -> pn.pane.HTML:
    """Write down what a menu or a field stands at."""
    value, told = widget.value, []
    options: dict[str, Any] = {}
    for group in (getattr(widget, "groups", None) or {"": getattr(widget, "options", None) or {}}).values():
        options |= group if isinstance(group, dict) else {str(option): option for option in group}
    for one in value if isinstance(value, list) else [value]:
        told.append(next((label for label, option in options.items() if option == one), str(one)))
    label, value = html.escape(widget.label or widget.name), html.escape(", ".join(map(str, told)))
    words = f'<span class="label">{label}</span> ' if label and not re.fullmatch(r"\w+\d{5}", label) else ""
    stretched = "width" in (widget.sizing_mode or "")
    return markup(
        f'<p>{words}<span class="value">{value}</span></p>',
        css=_FIXED_CSS,
        sizing_mode="stretch_width" if stretched else None,
    )


# ---- the file


def _inline_styles(document: Document) -> None:
    """Put the style sheets that Panel would link into the document; nothing of it loads, so no spinner."""
    sheets: dict[str, InlineStyleSheet | None] = {}

    def inlined(sheet: Any) -> Any:
        if not isinstance(sheet, ImportedStyleSheet):
            return sheet
        url = str(sheet.url).split("?")[0]
        if url not in sheets:
            sheets[url] = None if url.endswith("/loading.css") else InlineStyleSheet(css=_panel_css(url))
        return sheets[url]

    with document.models.freeze():  # else every change looks through all models
        for model in document.models:
            if isinstance(model, UIElement) and model.stylesheets:
                model.stylesheets = [own for own in map(inlined, model.stylesheets) if own is not None]


@lru_cache(maxsize=32)
def _panel_css(url: str) -> str:
    """Return one of Panel's style sheets by its address, wherever that leads."""
    path = re.sub(r"^.*?/dist/", "", url)
    return (Path(pn.__file__).parent / "dist" / path).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _library() -> str:
    """Return Bokeh and Panel as the browser runs them, packed."""
    scripts = Path(bokeh.__file__).parent / "server" / "static" / "js"
    names = [f"bokeh{part}.min.js" for part in ("", "-widgets", "-tables")]
    files = [*(scripts / name for name in names), Path(pn.__file__).parent / "dist" / "panel.min.js"]
    return _pack(";\n".join(path.read_text(encoding="utf-8") for path in files).encode())


def _pack(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode()


def html_document(*, title: str, policy: str, css: str, body: str, script: str = "") -> str:
    """Return a whole HTML file.

    Parameters
    ----------
    title : str
        Plain text.
    policy : str
        The Content-Security-Policy.
    css : str
    body : str
        HTML.
    script : str
        What runs before anything is seen.
    """
    first = f"\n<script>{script}</script>" if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="leakviz {version("leakviz")}">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{css}</style>{first}
</head>
<body>
{body}
</body>
</html>
"""


def _html(*, title: str, about: str, grey: bool, places: Sequence[str], document: str) -> str:
    start = Path(__file__).with_name("page_file.js").read_text(encoding="utf-8")
    alive = "what is grey is not alive, the rest works" if grey else "its sliders and figures work"
    inside = "".join(f'<div id="{place}"></div>' for place in places if place != "shell")
    return html_document(
        title=f"{title} – leakviz",
        policy=_POLICY,
        css=theme.root_css() + FRAME_CSS + _ABOUT_CSS,
        script=HEAD_SCRIPT,
        body=f"""<div id="shell"></div>
<main id="main">
<p class="saved">A saved page: {alive} without a server. <a href="#about">About this file</a></p>
<noscript><p>The figures need JavaScript.</p></noscript>
{inside}
{about}
</main>
<script type="application/gzip" id="library">{_library()}</script>
<script type="application/gzip" id="document">{document}</script>
<script>{start}</script>""",
    )


def _about(name: str, page: Any, title: str) -> str:
    """Say at which state the file was saved, from which data, with what, and what it leaves out."""
    state, e = page.state, html.escape
    query = state.query()
    # A page that shows something else in each step says itself what is seen.
    shown = page.shown if callable(getattr(page, "shown", None)) else None  # elsewhere it is data
    told = shown() if shown else {state.param[n].label or n: _value(getattr(state, n)) for n in state.names()}
    rows = "".join(f'<tr><th scope="row">{e(n)}</th><td>{e(v)}</td></tr>' for n, v in told.items())
    inside = (
        "Every lesson is in it, with its answer, and what the switch and alpha ask for; its other controls are grey"
        if shown
        else "All answers that its sliders can ask for are in it"
    )
    when = datetime.now(UTC)
    state_option = f" --state {json.dumps(query)}" if query else ""
    again = f"<code>{e(f'leakviz export {name}{state_option} --out {name}.html')}</code>"
    if any(str(getattr(state, n)).startswith(OWN) for n in state.names()):
        again = "Bring your own file into the app again, and save the page there: no link and no command holds it."
    data = "".join(_source(source) for source in sources(page))
    return f"""<section class="about" id="about" aria-labelledby="about-title">
<h2 id="about-title">About this file</h2>
<p>{e(title)}, saved with leakviz {version("leakviz")} on <time datetime="{when.isoformat(timespec="seconds")}">{when:%d %B %Y, %H:%M} UTC</time>.
It opens at the state below. {inside}; nothing is sent or fetched.</p>
<p>What it leaves out, for a server has to answer: {e(LEFT_OUT[name])}; and every figure as SVG, PNG and CSV. The app has them: <code>leakviz serve</code>, then <code>?page={name}{"&amp;" + e(query) if query else ""}</code>.</p>
<div class="two">
<div><h3>{"It opens at" if shown else "State"}</h3><table aria-label="state">{rows}</table></div>
<div><h3>Data</h3><dl>{data}</dl>
<h3>The same file again</h3><p>{again}</p></div>
</div>
</section>"""


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _source(source: Source) -> str:
    e = html.escape
    known = f"<dd>SHA-256 <code>{e(source.content_hash)}</code></dd>" if source.content_hash else ""
    return f"<dt>{e(source.title)}</dt><dd>{e(source.source)}</dd>{known}"


# ---- from the command line


def main(arguments: Sequence[str] | None = None) -> int:
    """Export a page; see ``leakviz export --help``.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(description="Write a page as one file.")
    parser.add_argument("page", choices=[*LEFT_OUT, *ALIASES])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--state", default="")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    name, out = ALIASES.get(asked.page, asked.page), asked.out
    absent = [f"{key}={value}" for key, value in asked_of(asked.state).items() if f"{value}:".startswith(OWN)]
    if absent:
        print(
            f"leakviz: the state asks for data of your own, {' and '.join(absent)}, and this command takes no file. Bring the "
            "file into the app and save the page there, or put it into a report: leakviz report --help.",
            file=sys.stderr,
        )
        return UNUSABLE
    try:
        from app import PAGES

        server.prepare()
        title, make = PAGES[name]
        with tqdm(total=4, desc="exporting", unit="", disable=None, leave=False) as bar:
            saved = page_file(
                name, make, asked.state, title=title, progress=lambda done, total: bar.update(done - bar.n)
            )
        write_whole(out, saved.html)
    except KeyboardInterrupt:
        return STOPPED
    for sentence in saved.told:
        print(f"leakviz: {sentence}", file=sys.stderr)
    content = saved.html.encode()
    if asked.json:
        digest = hashlib.sha256(content).hexdigest()
        facts = {"file": str(out), "bytes": len(content), "sha256": digest, "page": name}
        print(json.dumps({**facts, "state": saved.query, "told": saved.told}, indent=2, ensure_ascii=False))
    else:
        state = f" at {saved.query}" if saved.query else ""
        print(f"Saved {name}{state}: {out} ({len(content) / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # told to stop, it tidies up first
    sys.exit(main())
