"""The page on which a report is put together: pages at their states, notes, and the files.

It holds what the report consists of; `dashboards.report_file` makes it. The work goes step by step in the session's
own loop, so that nobody waits for more than one figure.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlencode

import panel as pn
import param
from bokeh.document import Document
from panel.custom import JSComponent
from panel.io.state import set_curdoc

from dashboards import fonts, theme
from dashboards.export import state_says
from dashboards.markup import link_note, markup
from dashboards.page_file import computed
from dashboards.report_content import PAGES, SplitState, file_facts, makers
from dashboards.report_file import Asked, Report, drawing, html_with, making, pdf_with
from dashboards.section_states import TITLES, readable, start_of, state_of, written
from dashboards.shelf import OWN, Shelf
from dashboards.state import OWN_NAME, TAKERS, PageState, asked_of
from dashboards.work import Job, start
from leakviz import report as core
from leakviz.errors import InputError

TITLE = "Report"
# Where a file is brought whose page is not this one; the others as `TAKERS` says.
AT_HAND = {"lodo": "on “Sources”, under “Your own table”"}
TYPES = {"html": "text/html", "pdf": "application/pdf", "json": "application/json"}
MOST = 50  # sections
LONGEST = {"title": 300, "author": 300, "notes": 20_000, "note": 20_000, "state": 4_000}

_log = logging.getLogger(__name__)
_CSS = theme.css(
    """
:host { display: block; width: 100% }
.two { display: grid; grid-template-columns: minmax(0, 1.25fr) minmax(0, 1fr); gap: 28px 48px; align-items: start }
section { min-width: 0 }
h2.more { margin-top: 26px }
ol, ul { list-style: none; margin: 8px 0 0; padding: 0 }
li { border-top: 1px solid $hair; padding: 9px 0 }
li:last-child { border-bottom: 1px solid $hair }
.empty { margin-top: 8px }
[hidden] { display: none }
.line { display: flex; flex-wrap: wrap; gap: 0 10px; align-items: baseline }
.name { font-weight: 620 }
.grow { flex: 1 1 0 }
.quiet { font-size: 13px; min-height: 24px; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: $hair }
.quiet:hover { color: $ink }
.quiet:disabled, .framed:disabled { opacity: .45; cursor: default }
.small { overflow-wrap: anywhere }
.offers li { display: grid; grid-template-columns: auto 132px minmax(0, 1fr); gap: 2px 12px; align-items: baseline; padding: 6px 0 }
.field { margin-top: 8px }
.field label { display: block; font-size: 13px; color: $muted }
input, textarea { font: 14px/1.4 $font; color: $ink; background: $bg; border: 1px solid $hair; border-radius: 6px; padding: 5px 8px; width: 100%; box-sizing: border-box; color-scheme: var(--lv-scheme, light); resize: vertical }
input:focus-visible, textarea:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
.bar { display: flex; flex-wrap: wrap; gap: 8px 10px; align-items: center; margin: 16px 0 6px }
.status { min-height: 22px; font-size: 13px; color: $muted }
.alert { color: $alarm; overflow-wrap: anywhere }
@media (max-width: $narrow) { .two { grid-template-columns: minmax(0, 1fr) } }
@media (max-width: 520px) { .offers li { grid-template-columns: auto minmax(0, 1fr) } .offers .small { grid-column: 1 / -1 } }
"""
)


class ReportState(PageState):
    """What a link to this page carries: the sections, and the author's words.

    Attributes
    ----------
    sections : list of (str, str, str)
        Page, state as in a link, and note of each. A state that cannot be had is moved to the nearest one when the link
        is read; one that names a file which is not here is kept, and waits.

    Parameters
    ----------
    opened : callable, optional
        Takes the name of a page and returns its state, ready to read a link; by default that of a session without data.
    """

    understands = ("add",)  # sections to be put behind those that there are
    sections = param.List(default=[], item_type=tuple, label="sections")
    heading = param.String(default="", label="title")
    author = param.String(default="", label="author")
    notes = param.String(default="", label="notes")

    def __init__(self, opened: Callable[[str], PageState] | None = None, **params: Any):
        self._opened = opened or partial(state_of, shelf=Shelf(), made={})
        self.lost: dict[str, tuple[str, ...]] = {}  # of each kind in `TAKERS`, the files that are missing
        super().__init__(**params)

    def query(self) -> str:
        """Return the report as a query string.

        Examples
        --------
        >>> state = ReportState(sections=[("purity", "delta=0.1", "look; here")])
        >>> again = ReportState()
        >>> again.read(state.query()), again.sections
        ([], [('purity', 'delta=0.1', 'look; here')])
        """
        pairs = []
        if self.sections:
            parts = (
                ":".join(quote(text, safe="=&,") for text in section if text or section[2])
                for section in self.sections
            )
            pairs.append(("sections", ";".join(parts)))
        pairs += [(n, getattr(self, n)) for n in ("heading", "author", "notes") if getattr(self, n)]
        return urlencode(pairs, safe=",:;")

    def _read(self, query: str) -> list[str]:
        asked, told = asked_of(query), []
        more = "add" in asked  # to what there is
        sections: list[tuple[str, str, str]] = list(self.sections) if more else []
        self.lost = {}
        for part in filter(None, asked.get("add" if more else "sections", "").split(";")):
            page, state, note = (unquote(text) for text in (*part.split(":"), "", "")[:3])
            if page not in (*PAGES, "embeddings") or len(sections) >= MOST:
                told.append(f"The link names a section “{page[:60]}”, which cannot be had; it is left out.")
                continue
            found, sentences = self._checked(page, state[: LONGEST["state"]])
            if page == "embeddings" and "audit=own:" not in found:
                told.append(f"The link names a section “{TITLES[page]}” with no audit; it is left out.")
                continue
            told += [f"Section {len(sections) + 1}, {TITLES[page]}: {one}" for one in sentences]
            if more and self.holds(page, found, sections):
                told.append(twice(page))
                continue
            sections.append((page, found, note[: LONGEST["note"]]))
        words = {
            n: asked.get(n, getattr(self, n) if more else "")[: LONGEST["title" if n == "heading" else n]]
            for n in ("heading", "author", "notes")
        }
        self.param.update(sections=sections, **words)
        return told

    def _checked(self, page: str, state: str) -> tuple[str, list[str]]:
        """Return the nearest state that its page can show, and what had to be moved; a state that waits for a file is kept."""
        if not state:
            return "", []
        one = self._opened(page)
        told = one.read(state)
        if one.missing:
            before = self.lost.get(one.brought, ())
            self.lost[one.brought] = tuple(dict.fromkeys((*before, *one.missing)))
            self.missing = tuple(dict.fromkeys(name for names in self.lost.values() for name in names))
            return state, told[1:]  # the first says that it waits
        return (written(one) if told else state), told

    def holds(self, page: str, state: str, sections: Sequence[tuple[str, str, str]] | None = None) -> bool:
        """Tell whether a section shows the same page in the same state, however the two are written."""

        def whole(state: str) -> str:
            one = self._opened(page)
            one.read(state)
            return state if one.missing else written(one)

        there = self.sections if sections is None else sections
        return whole(state) in [whole(other) for name, other, _ in there if name == page]

    def waits_in(self, state: str) -> bool:
        """Tell whether a section's state names a file that is missing."""
        return any(name in state for name in self.missing)

    def missing_of(self, brought: str) -> tuple[str, ...]:
        """Return the files that the sections wait for and that are brought there."""
        return self.lost.get(brought, ())

    def arrive(self, new: Collection[str] = ()) -> None:
        """Look again for the files that sections wait for; where another has come, the page of that file says so."""
        waited = self.missing
        if not waited:
            return
        self._look_again()
        come = tuple(name for name in waited if name not in self.missing)
        if not come:
            return
        self.came = (*self.came, *come)
        ready = "and the report can be made." if not self.missing else "and its section is ready."
        waiting = [self.waits_for_words()] if self.missing else []
        self.told = [f"This is the file that the link names, {' and '.join(come)}, {ready}", *waiting]

    def _look_again(self) -> None:
        self.missing, self.lost = (), {}
        for page, state, _ in self.sections:
            if OWN in state:
                self._checked(page, state)

    def waits_for_words(self) -> str:
        """Say what the report waits for, and where it is brought."""
        many = len(self.missing) > 1
        places = " and ".join(
            f"{' and '.join(names)} {AT_HAND.get(brought, TAKERS[brought])}"
            for brought, names in self.lost.items()
        )
        return (
            f"The report shows {'files' if many else 'a file'} of somebody’s own, not {'all ' if many else ''}here: a link "
            f"carries the hash of the numbers, never the numbers. Bring {places}; {'each' if many else 'it'} is checked "
            "against the hash, and its section is ready then. Until then no report can be made, unless you remove the section."
        )

    _waiting = waits_for_words

    def _moved(self, *events: Any) -> None:
        if self._reading or not self.told or self.query() == self._as_read:
            return
        if self.missing:
            self._look_again()
        self.told = [self.waits_for_words()] if self.missing else []


def twice(page: str) -> str:
    """Say that a section is not taken a second time.

    Examples
    --------
    >>> twice("purity")
    'Purity is in the report already, with the same data and the same state; it was not added again.'
    """
    return f"{TITLES[page]} is in the report already, with the same data and the same state; it was not added again."


class Desk(JSComponent):
    """Shows what the report consists of, and sends back what is pressed and typed.

    Attributes
    ----------
    page : str
        JSON: ``sections`` (page, title, words, note), ``offers`` (page, title, words), ``title``, ``author``, ``notes``,
        ``work`` (what is being done, or ""), ``alert``.
    """

    page = param.String(default="{}", doc="JSON.")

    _esm = Path(__file__).with_name("report.js")
    _stylesheets: ClassVar[list[str]] = [theme.TEXT_CSS, _CSS]

    def __init__(self, said: Callable[[dict[str, Any]], object], **params: Any):
        """Take what is called with a message."""
        super().__init__(**params)
        self._said = said

    def _handle_msg(self, data: Any) -> None:
        if isinstance(data, dict):
            self._said(data)

    def give(self, name: str, content: bytes, kind: str) -> None:
        """Let the browser keep a file."""
        self._send_msg({"name": name, "base64": base64.b64encode(content).decode(), "type": TYPES[kind]})


class ReportPage(pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string.
    shelf : Shelf, optional
        The session's own data.
    made : mapping of str to Viewer, optional
        The pages that were visited in this session, by name: they are added at their present state.

    Examples
    --------
    >>> page = ReportPage()
    >>> page.add("purity")
    >>> page.state.sections
    [('purity', '', '')]
    """

    subject = "what you put together"

    def __init__(
        self,
        query: str = "",
        shelf: Shelf | None = None,
        made: Mapping[str, Any] | None = None,
        **params: Any,
    ):
        super().__init__(**params)
        self.shelf = shelf if shelf is not None else Shelf()
        self.made: Mapping[str, Any] = made if made is not None else {}
        self.state = ReportState(lambda name: state_of(name, self.shelf, self.made))
        self.state.read(query)
        self.shelf.hear(self.state, "report", TITLE)
        self.alert = ""
        self.files: dict[str, bytes] = {}  # the last of each kind, for a notebook
        self._job: Job | None = None
        self._tasks: set[asyncio.Task] = set()
        self._report: tuple[Any, Report] | None = None
        self._heading = markup("")
        self.desk = Desk(self._heard, sizing_mode="stretch_width", margin=0)
        self.state.param.watch(lambda *_: self.look(), [*self.state.names(), "told"])
        self._root = pn.Column(
            link_note(self.state),
            self._heading,
            self.desk,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[":host { gap: 18px }"],
        )
        self.look()

    def __panel__(self) -> pn.Column:
        """Return the page, with what can be added as it is now."""
        self.state.arrive()  # a table or an audit comes onto no shelf
        self.look()
        return self._root

    # ---- what the user does

    def add(self, name: str) -> None:
        """Add a page, as it was left in this session, or as it starts."""
        if name not in self._offered() or len(self.state.sections) >= MOST:
            return
        state = self._state_of(name)
        self.alert = twice(name) if self.state.holds(name, state) else ""
        if self.alert:
            self.look()
        else:
            self.state.sections = [*self.state.sections, (name, state, "")]

    def remove(self, at: int) -> None:
        """Take a section out."""
        self.state.sections = [s for i, s in enumerate(self.state.sections) if i != at]

    def move(self, at: int, by: int) -> None:
        """Move a section up (-1) or down (1)."""
        sections = list(self.state.sections)
        if 0 <= at < len(sections) and 0 <= at + by < len(sections):
            sections.insert(at + by, sections.pop(at))
            self.state.sections = sections

    def note(self, at: int, text: str) -> None:
        """Put a note to a section."""
        self.state.sections = [
            (page, state, text[: LONGEST["note"]] if i == at else note)
            for i, (page, state, note) in enumerate(self.state.sections)
        ]

    def make(self, kind: str) -> None:
        """Make the report as a file, which the browser keeps; `files` has it, too.

        Parameters
        ----------
        kind : {"html", "pdf", "json"}
        """
        if kind not in TYPES or not self.state.sections or self._job is not None:
            return
        if self.state.missing:
            self.alert = self.state.waits_for_words()
            self.look()
        else:
            self._job = Job("Making the report", "the report")
            start(self._make(self._job, kind), self._tasks)

    def stop(self) -> None:
        """Stop what is being made."""
        if self._job is not None:
            self._job.stopped.set()

    def _heard(self, data: Mapping[str, Any]) -> None:
        do, at, value = data.get("do"), data.get("at"), data.get("value")
        if do == "add":
            self.add(str(data.get("page")))
        elif do in ("up", "down", "remove", "note") and isinstance(at, int) and not isinstance(at, bool):
            acts: dict[str, Callable[[], None]] = {
                "up": partial(self.move, at, -1),
                "down": partial(self.move, at, 1),
                "remove": partial(self.remove, at),
                "note": partial(self.note, at, str(value or "")),
            }
            acts[do]()
        elif do in ("title", "author", "notes"):
            name = "heading" if do == "title" else do
            self.state.param.update(**{name: str(value or "")[: LONGEST[do]]})
        elif do == "make":
            self.make(str(data.get("kind")))
        elif do == "stop":
            self.stop()

    # ---- making

    def _steps(self, kind: str) -> Generator[str, None, bytes]:
        """Make the report step by step: say what comes next, then do it; the file is returned at the end."""
        state = self.state
        shelf, tables = self.shelf, computed(self.made.get("lodo"))
        key = (
            state.query(),
            (*shelf.own, *shelf.audits, *shelf.batteries, *tables),
        )  # they compare as the same ones
        if self._report is None or self._report[0] != key:
            asked = [Asked(p, query, note, self.made.get(p)) for p, query, note in state.sections]
            made = yield from making(
                asked,
                makers(self._audits()),
                shelf=self.shelf,
                title=state.heading,
                author=state.author,
                notes=state.notes,
                files=self._files(),
                no_command=self._no_command(),
            )
            self._report = (key, made)
        report = self._report[1]
        if kind == "json":
            return core.write_report(report.document).encode()
        drawn = yield from drawing(report, "svg" if kind == "html" else "pdf")
        yield "Setting the pages"
        return html_with(report, drawn).encode() if kind == "html" else pdf_with(report, drawn)

    async def _make(self, job: Job, kind: str) -> None:
        self.alert = ""
        steps, content = self._steps(kind), b""
        try:
            while not content and not job.stopped.is_set():
                with set_curdoc(Document()):  # of no session: nobody looks at the pages that it is made of
                    job.text, content = _step(steps)
                self.look()
                await asyncio.sleep(0.01)  # others first
        except InputError as error:
            self.alert = str(error)
        except Exception:
            _log.exception("a report could not be made")
            self.alert = "The report could not be made, for a reason that this app does not know. Its log has the details."
        self._job = None
        if content:
            self.files[kind] = content
            if self._report is not None:
                letters = fonts.says(self._report[1].lost) if kind == "pdf" else ""
                self.alert = " ".join(filter(None, (*self._report[1].told, letters)))
            self.desk.give(f"leakviz-report.{kind}", content, kind)
        self.look()

    def _audits(self) -> dict[str, Any]:
        """Return the results of the audits that were made in this session, by name."""
        return getattr(self.made.get("embeddings"), "results", {})

    def _sources(self) -> dict[str, Any]:
        """Return what each of the user's own data that the report shows was read from, by name: see `Audit.file`."""
        states = " ".join(state for _, state, _ in self.state.sections)
        shelf, tables = self.shelf, getattr(getattr(self.made.get("lodo"), "state", None), "own", {})
        known: dict[str, Any] = {vector.name: file_facts(vector) for vector in shelf.own}
        known |= {battery.name: battery.file for battery in shelf.batteries}
        known |= {audit.name: audit.file for audit in shelf.audits}
        known |= {name: subject.file for name, subject in tables.items()}
        shown = set(OWN_NAME.findall(states))
        return {name: file for name, file in known.items() if name in shown}

    def _files(self) -> list[dict[str, Any]]:
        """Return what the report says of the user's files that it shows."""
        return [dict(file) for file in self._sources().values() if not isinstance(file, str)]

    def _no_command(self) -> str:
        """Say why no command makes the report, or return ""."""
        why = []
        for name, file in self._sources().items():
            if isinstance(file, str):
                why.append(f"of {name}, {file or 'it is not known what file it was read from'}.")
        names = [(file["name"], file["sha256"]) for file in self._files()]
        twice = [name for name, _ in dict.fromkeys(names) if len({sha for n, sha in names if n == name}) > 1]
        why += [
            f"two of its files are called {name}: give one of them another name."
            for name in dict.fromkeys(twice)
        ]
        if any(page == "lodo" and self._is_fresh(state) for page, state, _ in self.state.sections):
            why.append("a case was recomputed in this session, and a command shows the result that ships.")
        return " ".join(why)

    def _is_fresh(self, query: str) -> bool:
        state: Any = state_of("lodo", self.shelf, self.made)
        state.read(query)
        return (state.case, state.model) in state.fresh

    # ---- what is seen

    def _offered(self) -> list[str]:
        """Return the pages that can be added."""
        return [*PAGES, *(["embeddings"] if self._audits() else [])]

    def _state_of(self, name: str) -> str:
        page = self.made.get(name)
        if page is None:
            return start_of(name, self.shelf)[0]
        if name == "embeddings":
            shown = page.shown.audit.name if page.shown else next(reversed(page.results))
            at = {name: page.view.live.value(name) for name in SplitState.stops} if page.shown else {}
            return "&".join([f"audit={shown}", *(f"{name}={value:g}" for name, value in at.items())])
        return written(page.state)

    def _words_of(self, name: str) -> str:
        """Say of a page in which state it would be added."""
        page = self.made.get(name)
        if page is None:
            data = start_of(name, self.shelf)[1]
            return f"as it starts: {data}" if data else "as it starts"
        if name == "embeddings":
            return f"as you left it: {page.shown.audit.title}" if page.shown else "the audit that came last"
        state = state_says(page.state)
        return f"as you left it: {page.subject}" + (f"; {state}" if state else "")

    def look(self) -> None:
        """Show the report as it is."""
        state = self.state
        many = len(state.sections)
        told = "Put pages together into a <b>report</b>."
        if many:
            told = f"A report of <b>{many}</b> {'section' if many == 1 else 'sections'}."
        self._heading.object = (
            f'<div role="status" aria-live="polite" aria-atomic="true"><h1>{told}</h1></div>'
            '<p class="note">Results first, then figures, notes, and the limits that apply to these results; parameters, '
            "hashes of the data, versions, the command that makes it again, and BibTeX. A file of your own is in it by name "
            "and hash alone.</p>"
        )
        self.desk.page = json.dumps(
            {
                "sections": [
                    {
                        "page": p,
                        "title": TITLES[p],
                        "words": readable(p, query, self.shelf)
                        + ("; waits for its file" if state.waits_in(query) else ""),
                        "note": note,
                    }
                    for p, query, note in state.sections
                ],
                "offers": [
                    {"page": name, "title": TITLES[name], "words": self._words_of(name)}
                    for name in self._offered()
                ],
                "title": state.heading,
                "author": state.author,
                "notes": state.notes,
                "work": self._job.text + " …" if self._job else "",
                "alert": self.alert,
            }
        )


def _step(steps: Generator[str, None, bytes]) -> tuple[str, bytes]:
    """Return what comes next, or what came of it."""
    try:
        return next(steps), b""
    except StopIteration as done:
        return "", done.value
