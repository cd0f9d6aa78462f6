"""The page on which a user brings predictions: a file is read, questions are answered, a verdict is given.

The reader of `leakviz.predictions` finds and asks; this page shows, and waits for answers. A file is held
by the page of the session that brought it and by nothing else, and is read in a thread of its own, so that
no other session waits for it.
"""

from __future__ import annotations

import asyncio
import html
import io
import json
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import panel as pn
import xarray as xr

from dashboards import purity
from dashboards.cards import card, downloads
from dashboards.figures.purity import TITLE as TITLE_OF_CURVE
from dashboards.figures.purity import purity_curves
from dashboards.live import Live
from dashboards.markup import link_note, markup, waiting_note
from dashboards.purity_answers import part
from dashboards.shelf import OWN, Shelf, Vector
from dashboards.state import OwnFileState
from dashboards.stencil import figure_pane
from dashboards.wizard import Wizard, sha256_of, short, text_again, untaken
from dashboards.work import READERS, Job, in_document, in_thread, start
from leakviz import BlindTest, inspect_predictions, rank_predictions
from leakviz.blind import blind_test_ranked
from leakviz.predictions import MAX_BYTES, ColumnFacts, Inspection, Question
from leakviz.predictions.sources import quoted

TITLE = "Your predictions"

FORMATS = "CSV, TSV, Parquet, Feather, JSON lines or Excel"
VERDICT_SENTENCE = {
    "leaky": "{} is <b>leaky</b>, on <b>{strength} evidence</b>.",
    "not shown": "In {} a leak is <b>not shown</b>.",
    "undetermined": "On {} the test is <b>undetermined</b>.",
}
LINKS = (
    ("purity", "?page=purity&first={}&beside=none&third=none"),
    ("calibration", "?page=calibration&vector={}"),
)

# role: (label, help); the roles are the arguments of `leakviz.read_predictions`
ROLES = {
    "p": ("predicted risk, p", "The column with the predicted risk."),
    "y": ("outcome, y", "The column with the outcome: two labels, or several of which one is the event."),
    "positive": ("event, y = 1", "The label that counts as the event."),
    "scale": ("scale of p", "The unit of the numbers in p."),
    "missing": ("missing values", "What happens to rows without p, y or fold."),
    "fold": ("fold", "The column with the cross-validation fold, if there is one."),
}
SCALES = {
    "probability": "probability, 0 to 1",
    "percent": "percent, divided by 100",
    "logit": "logit, p = 1 / (1 + exp(-value))",
}
MISSING = {"drop": "leave these rows out", "refuse": "do not read the file"}

SEEN_COLUMNS = 40  # a table on the screen has no more

_HEADING_CSS = ".note { overflow-wrap: anywhere } h1 { overflow-wrap: anywhere } .links { margin-top: 8px } .note.rests { margin-top: 8px; font-size: 13.5px } .links a { margin-right: 14px }"
_INTRO: list[dict[str, Any]] = [
    {
        "heading": "What a file looks like",
        "table": {
            "label": "an example of a file",
            "header": ["risk", "died"],
            "rows": [["0.031", "no"], ["0.874", "yes"], ["0.112", "no"]],
        },
        "notes": [
            "The names are yours, and other columns do no harm. Out-of-fold or held-out predictions, please: those of the "
            "training rows look leaky.",
        ],
    },
    {
        "heading": "What happens with it",
        "steps": [
            "Every row is read. A missing value, a third label or a percentage is named with its row, and no number is "
            "made up for it.",
            "You answer what the file leaves open: which column, which label is the event, which scale.",
            "You read a verdict: leaky, not shown, or undetermined, with what it rests on. Then its purity and its "
            "calibration.",
        ],
        "notes": [
            "No test on predictions and outcomes can see a smooth leak below the ceiling, and an outcome that is nearly "
            "certain beforehand fires honestly.",
            "From a terminal: leakviz check preds.csv; or the app with a file: leakviz serve --file preds.csv (the same as panel "
            "serve app.py --args preds.csv).",
        ],
    },
]


class PredictionsState(OwnFileState):
    """What a link to this page carries: the hash of the predictions that are shown; the file stays in its session."""


class Look:
    """The purity curve of the vector that was just brought, in a figure that is there before it comes.

    No slider moves it, so its table has one stop, which Python writes into the figure.
    """

    def __init__(self) -> None:
        self.vector: Vector | None = None
        self.test: BlindTest | None = None
        columns, attributes = purity.curves_wiring(slots=[0])  # beside it there is none
        self.live = Live(
            purity.curves_at_start(None),
            sliders=[],
            columns=columns,
            attributes=attributes,
            start={},
        )
        pane = figure_pane(
            ("predictions", "purity"),
            self.live,
            lambda: self.draw("bokeh", purity.curves_hooks(self.live)),
            sizing_mode="stretch_both",
            margin=0,
        )
        self.figure = pane.object
        self.card = card(
            TITLE_OF_CURVE,
            pane,
            "A curve that is inside the shaded "
            "box at a cut convicts. The mark with its number is the end of the pure head; the grey wedge or band: where "
            "purity lies inside ties, from events last to events first; dotted, level: the base rate. "
            f"{purity.SOURCE}, sections 2 to 4.",
            links=downloads("purity", self.draw, self.data, page=self),
            height=360,
        )
        self.whose = markup("")
        self.card.insert(1, self.whose)
        self.card.visible = False

    def draw(self, backend: str, hooks: dict | None = None) -> Any:
        """Return the figure as a HoloViews element."""
        title = self.vector.title if self.vector else None
        return purity_curves(self.live.at(), titles=[title, None, None], hooks=hooks, backend=backend)

    def data(self) -> Any:
        """Return the numbers behind the figure."""
        assert self.vector is not None  # the links are there when these are
        assert self.test is not None
        return purity.curves_data(self.vector, self.test)

    def says(self) -> str:
        """Return where the vector is from as plain text, for the figure's files."""
        return f"{self.vector.title}. Source: {self.vector.source}." if self.vector else ""

    def show(self, vector: Vector, test: BlindTest, answers: xr.Dataset) -> None:
        """Write a vector's curve into the figure."""
        self.vector, self.test = vector, test
        size = f"{test.n:,} records, {test.events:,} events"
        self.whose.object = f'<p class="small">{html.escape(vector.title)}, {size}</p>'
        self.live.update_answers(answers)
        self.live.apply(self.figure)
        self.card.visible = True

    def hide(self) -> None:
        """Hide the figure; there is no vector to be seen."""
        self.vector = self.test = None
        self.card.visible = False


class PredictionsPage(Wizard, pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string; the predictions that it names are shown when their file is brought.
    shelf : Shelf, optional
        Where the session's prediction vectors go. Its `file`, if it names one, is read at once.

    Attributes
    ----------
    found : Inspection or None
        The file that is looked at.
    said : dict of str to str
        What the user answered about it.
    alerts : list of str
        What went wrong last.
    results : dict of str to BlindTest
        Of each vector that this page put on the shelf.

    Examples
    --------
    >>> page = PredictionsPage()
    >>> page.load(b"risk,outcome\\n0.9,case\\n0.2,control\\n", "preds.csv")
    >>> [question.role for question in page.found.questions]
    ['positive']
    >>> page.say("positive", "case")
    >>> page.use()  # where nothing is asked, a file is used at once
    >>> page.shelf.own[0].title, page.results[page.shelf.own[0].name].verdict
    ('preds.csv', 'undetermined')
    """

    subject = "Files stay in this session"
    AGAIN = text_again("the predictions")
    ACTS_ON: ClassVar[dict[str, str]] = {"remove": "remove"}
    SLIMMER = "Keep only the columns for p and y, or save it as Parquet."

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        super().__init__(**params)
        self.state = PredictionsState()
        self.state.read(query)
        self.shelf = shelf if shelf is not None else Shelf()
        self.shelf.hear(self.state, "predictions", TITLE)
        self.found: Inspection | None = None
        self.said: dict[str, str] = {}
        self.results: dict[str, BlindTest] = {}
        self.used = ""
        self.same = ""  # what was on the shelf with the same content
        self._replaced: set[str] = set()  # vectors of a file that was then read in another way
        self._held = ""  # what the shelf holds of this file: read another way, it takes that place
        self._sha256 = ""  # of this file's bytes
        self._unread: Inspection | None = None  # as found, with no answers
        self._asked: dict[str, Question] = {}
        self._known: dict[str, str] = {}  # the answers that `found` has taken in
        self._behind = False  # `found` does not yet know all of `said`
        self.heading = markup("", css=_HEADING_CSS)
        self._open(
            limit=MAX_BYTES,
            hint=f"{FORMATS}, up to {{limit}}. Only this session sees it, nothing is written to disk, and a reload "
            "forgets it.",
        )
        self.look = Look()
        self.shelf.param.watch(lambda *_: self._show(), "own", precedence=2)  # after the links that wait
        self.state.param.watch(self._asked_for, "file")
        self._show()
        if self.shelf.file:
            self.load(self.shelf.file)
        self._root = pn.Column(
            link_note(self.state),
            self.heading,
            self.upload,
            self.look.card,
            self.sheet,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[":host { gap: 18px }"],
        )

    def __panel__(self) -> pn.Column:
        """Return the page."""
        return self._root

    # ---- answers

    def answer(self) -> BlindTest:
        """Return the core's answer to the predictions that came last, as `leakviz.blind_test` gives it.

        Raises
        ------
        ValueError
            If there are none yet.
        """
        self._need("purity")
        assert self.look.test is not None
        return self.look.test

    def figure(self, name: str = "purity", backend: str = "bokeh") -> Any:
        """Return the purity curve of the predictions that came last as a HoloViews element.

        Parameters
        ----------
        name : {"purity"}
        backend : {"bokeh", "matplotlib"}

        Raises
        ------
        ValueError
            If there are none yet, or no figure is called so.
        """
        self._need(name)
        return self.look.draw(backend)

    def data(self, name: str = "purity") -> Any:
        """Return the numbers behind the figure, a data frame.

        Parameters
        ----------
        name : {"purity"}
        """
        self._need(name)
        return self.look.data()

    def _need(self, name: str) -> None:
        if name != "purity":
            raise ValueError(f"no figure is called {name!r}; there is purity")
        if self.look.vector is None:
            raise ValueError("there are no predictions yet")

    # ---- what the user does

    def say(self, role: str, value: str) -> None:
        """Answer a question about the file, or take the answer back with an empty text."""
        if self._unread is None or role not in ROLES:
            return
        said = dict(self.said)
        before = {**(self.found.answers if self.found else {}), **said}.get(role)
        said.pop(role, None)
        if value:
            said[role] = value
        if before != value:
            for gone in {"p": ("scale", "missing"), "y": ("positive", "missing")}.get(role, ()):
                said.pop(gone, None)
                self._asked.pop(gone, None)
        self.said, self._behind = said, True
        if self._job is None:
            self._start_answering()

    def use(self) -> None:
        """Put the predictions on the shelf and test them.

        A file that leaves nothing open is used as soon as it is read; where something was asked, this
        waits for the user. Read another way later, it is tested anew and takes its own place on the shelf.
        """
        if self._usable() and not self._job:
            start(self._use(self._begin_use()), self._tasks)

    def close(self) -> None:
        """Put the file away; the shelf keeps what was put there."""
        self.stop()
        self._let_go()
        self._set(None, None)
        self.look.hide()
        self.alerts = []
        self._show()

    def remove(self, name: str) -> None:
        """Take a vector off the shelf and forget it."""
        if name == self.used:
            self._set(None, None)
        if self.look.vector and name == self.look.vector.name:
            self.look.hide()
        self.results.pop(name, None)
        self.shelf.remove(name)

    # ---- work

    def _finish(self, wrong: str) -> None:
        super()._finish(wrong)
        if self._behind and self._job is None:
            self._start_answering()

    def _usable(self) -> bool:
        found = self.found
        return not (found is None or found.questions or found.problem or self.used or self._behind)

    async def _read(self, job: Job, file: Any, name: str, options: dict[str, str]) -> None:
        async def read() -> None:
            def work() -> tuple[Inspection, str]:
                found = inspect_predictions(file, name=name, progress=job.progress, **options)  # type: ignore[arg-type]
                return found, sha256_of(file)

            found, digest = await in_thread(job, work, self._show_work)
            self._set(found, found)
            self._sha256 = digest
            if found.questions:
                self.look.hide()  # they come first; a file that cannot be used leaves the last curve where it is

        wrong = await self._attempt(job, read())
        self._keep_to_ask(wrong, job, file, name, options)
        if self._again is None and isinstance(file, io.BytesIO):
            file.close()
        if not wrong and self._usable():
            await self._use(self._begin_use())
        else:
            self._finish(wrong)

    def _start_answering(self) -> None:
        self._behind = False
        base = self._unread
        if base is not None:
            self._job = Job(f"Looking at {base.n:,} rows of {base.name}", base.name, quiet=True)
            start(self._answer(self._job, base, dict(self.said)), self._tasks)

    async def _answer(self, job: Job, base: Inspection, said: dict[str, str]) -> None:
        async def answer() -> None:
            found = await in_thread(
                job, lambda: base.answer(**{r: said.get(r) for r in ROLES}), self._show_work
            )
            if self._unread is base:
                self._set(base, found)
                self._known = said

        wrong = await self._attempt(job, answer())
        if wrong and self._unread is base and not self._behind:
            self.said = dict(self._known)
        if not wrong and self._held and self._usable():
            await self._use(self._begin_use())
        else:
            self._finish(wrong)

    def _begin_use(self) -> tuple[Job, Inspection]:
        found = self.found
        assert found is not None
        self._job = Job(f"Ranking {found.n:,} rows of {found.name}", found.name)
        return self._job, found

    async def _use(self, begun: tuple[Job, Inspection]) -> None:
        job, found = begun
        held, digest = self._held, self._sha256
        others = {v.name: v.title for v in self.shelf.own if v.name != held}
        made: list[Vector] = []

        async def use() -> None:
            vector, result, answers = await in_thread(
                job, lambda: judge(found, others, sha256=digest), self._show_work
            )
            self.results[vector.name] = result
            self._replaced -= {vector.name}  # read that way before, and now again

            def tell() -> None:
                with pn.io.hold():
                    self.used, self.same = vector.name, others.get(vector.name, "")
                    self.look.show(vector, result, answers)
                    self._show()
                    self.upload.work()

            await in_document(self._document, tell, job)
            self._held = vector.name
            if held != vector.name:
                self._replaced |= {held}
            made.append(vector)

        self._finish(await self._attempt(job, use()))
        # The verdict first, and the next file may come: other pages take their time with a new vector.
        for vector in made:
            await asyncio.get_running_loop().run_in_executor(READERS, part, vector, self.shelf.get)
            if vector.name not in self._replaced:
                with pn.io.hold():
                    self.shelf.add(vector, instead_of=held)
            if held in self._replaced:  # and not back meanwhile
                self.results.pop(held, None)

    def _set(self, unread: Inspection | None, found: Inspection | None) -> None:
        if unread is not self._unread:
            self.said, self._known, self._asked, self._behind = {}, {}, {}, False
            self._held = ""
        self._unread, self.found = unread, found
        self.used = self.same = ""
        if found is not None:
            self._asked.update({question.role: question for question in found.questions})

    # ---- what is seen

    def _asked_for(self, event: Any) -> None:
        """Show predictions of this session once more, as a link to them asks."""
        name = event.new
        if name in ("", self.used) or name not in self.results or self._job:
            return
        vector = self.shelf.get(name)
        self._set(None, None)
        self.used = name
        self.look.show(vector, self.results[name], purity.curves_at_start(vector))
        self._show()

    def _show(self) -> None:
        with pn.io.hold():
            self.state.show([vector.name for vector in self.shelf.own], self.used)
            self.sheet.page = json.dumps(self.page())
            self.heading.object = self._heading()

    def _heading(self) -> str:
        h1, note = self._sentence()
        waiting = waiting_note(self.shelf, "predictions", self.used)
        return f'<div role="status" aria-live="polite" aria-atomic="true"><h1>{h1}</h1></div><p class="note">{note}</p>{waiting}'

    def _sentence(self) -> tuple[str, str]:
        """Return the sentence on top and what stands below it, as HTML."""
        found = self.found
        if found is None and not self.used:
            return (
                "Bring predicted risks and outcomes, and see whether a <b>leak</b> shows in them.",
                "A file needs two columns: the predicted risk p and the outcome y. It is read to its last row, and "
                "nothing is guessed: what the file does not settle, you are asked.",
            )
        of = found.name if found and not self.used else self._title()
        name = html.escape(short(of, 120))
        if found is None or self.used:
            result = self.results[self.used]
            links = " ".join(
                f'<a href="{href.format(self.used)}">See its {words}</a>' for words, href in LINKS
            )
            links += f' <a href="{html.escape(report_link(self.used))}">Make a report</a>'
            answer = VERDICT_SENTENCE[result.verdict].format(name, strength=result.strength)
            if result.decisions:
                answer = f"Decisions, no ranking: {answer}"
            needs = result.headline.partition(" evidence: ")[2]
            needs = f'{html.escape(needs[:1].upper() + needs[1:])}.</p><p class="note rests">'
            said = ("" if result.strength is None else needs) + html.escape(result.explain())
            return answer, f'{said}</p><p class="links">{links}'
        rows = f"<b>{found.n:,}</b> {'row' if found.n == 1 else 'rows'}"
        if found.problem:
            return f"{name} has {rows}, and <b>cannot be used</b> as it is.", "The reason is below."
        if found.questions:
            many = len(found.questions)
            asked = f"<b>{many}</b> open {'question' if many == 1 else 'questions'}"
            return f"{name} has {rows} and {asked}.", "Answer in any order; an answer can be taken back."
        p, y = (html.escape(short(str(found.answers[role]), 30)) for role in ("p", "y"))
        return (
            f"{name} can be used: {rows}, the risk is <b>{p}</b>, the outcome <b>{y}</b>.",
            "Check below how it was read; everything can be changed.",
        )

    def _title(self) -> str:
        """Return what the predictions that are shown are called."""
        return self.look.vector.title if self.look.vector else ""

    def page(self) -> dict[str, Any]:
        """Return what the page shows below the strip, as plain texts."""
        found = self.found
        alerts = [*([found.problem] if found and found.problem else []), *self.alerts]
        return {
            "alert": alerts,
            "retry": self._retry(),
            "file": None if found is None else self._file(found),
            "intro": _INTRO if found is None and not self.shelf.own else [],
            "shelf": [self._on_shelf(vector) for vector in reversed(self.shelf.own)],
        }

    def _on_shelf(self, vector: Vector) -> dict[str, Any]:
        result = self.results.get(vector.name)
        size = f"{vector.ranked.n:,} rows, {vector.ranked.events:,} events"
        if result and result.c_statistic is not None:
            size += f", C {result.c_statistic:.3f} ({result.c_low:.3f} to {result.c_high:.3f})"
        return {
            "name": vector.name,
            "title": vector.title,
            "size": size,
            "verdict": _verdict(result) if result else "",
            "explain": [result.explain()] if result else [],
            "source": vector.source,
            "links": [[words, href.format(vector.name)] for words, href in LINKS],
            "acts": [["remove", "remove"]],
        }

    def _file(self, found: Inspection) -> dict[str, Any]:
        open_ = {question.role for question in found.questions}
        many = len(open_)
        if found.problem:
            words = "The file cannot be used with these answers."
        elif many:
            words = f"{many} {'question is' if many == 1 else 'questions are'} open."
        elif self.used:
            words = "They are used as below, and on your shelf. Change how they are read, and they are tested anew."
        else:
            words = "Puts them on your shelf, tests them, and lets every page show them."
        fields = [self._field(found, role) for role in ROLES]
        shown = [field for field in fields if field is not None]
        return {
            "ready": not many and not found.problem and not self.used,
            "used": bool(self.used),
            "verb": "" if self.used else "Use these predictions",
            "words": words,
            "questions": [field for field in shown if field["role"] in self._asked],
            "rest": [field for field in shown if field["role"] not in self._asked],
            "facts": _facts(found),
            "decided": [
                *found.decided,
                *(
                    [f"These are the numbers of {self.same} again: this takes its place."]
                    if self.same
                    else []
                ),
            ],
            **_table(found),
        }

    def _field(self, found: Inspection, role: str) -> dict[str, Any] | None:
        """Return a question, or a menu for what was decided, or None where there is nothing to choose."""
        label, words = ROLES[role]
        said = self.said.get(role, "")
        question = self._asked.get(role)
        if question is not None:
            options = [[option.value, option.text] for option in question.options]
            words = question.text
        else:
            options = _choices(found, role)
            if not options and not said:
                return None
            if role == "fold":
                options = [["", "none"], *options]
        value = said or str(found.answers.get(role, ""))
        if value and value not in [option for option, _ in options]:
            options = [*options, [value, value]]
        elif not value and question is None and role != "fold":
            options = [["", "not chosen"], *options]
        if question is None and said and role != "fold":
            options = [*options, ["", "take back, let the file decide"]]
        return {
            "role": role,
            "label": label,
            "text": words,
            "options": options,
            "value": value,
            "said": bool(said),
        }


def report_link(name: str) -> str:
    """Return the link that puts purity and calibration of some predictions into the report, and goes there.

    Examples
    --------
    >>> report_link("own:0123456789ab")
    '?page=report&add=purity:first=own%253A0123456789ab%26beside=none%26third=none;calibration:vector=own%253A0123456789ab'
    """
    states = {"purity": f"first={name}&beside=none&third=none", "calibration": f"vector={name}"}
    parts = (f"{page}:{quote(state, safe='=&,')}" for page, state in states.items())
    return f"?page=report&{urlencode({'add': ';'.join(parts)}, safe=',:;=')}"


def _verdict(result: BlindTest) -> str:
    return result.verdict if result.strength is None else f"{result.verdict}, {result.strength} evidence"


def judge(
    found: Inspection, others: dict[str, str], *, sha256: str = ""
) -> tuple[Vector, BlindTest, xr.Dataset]:
    """Read predictions, sort them once, test them, and answer what the figure asks.

    `others` are names and titles of the vectors beside it, so that no two have one title; `sha256` is that of the file.
    """
    read = found.read()
    ranked = rank_predictions(read.p, read.y)
    columns = ", ".join(f"{role} is column {quoted(column)}" for role, column in read.columns.items())
    name = OWN + read.content_hash[:12]
    vector = Vector(
        name=name,
        title=untaken(
            short(read.name, 60) + (f", {short(read.against, 60)}" if read.against else ""),
            {title for other, title in others.items() if other != name},
        ),
        source=f"your file {quoted(read.name)}: {columns}; SHA-256 of the numbers {read.content_hash[:12]}",
        p=read.p,
        y=read.y,
        ranked=ranked,
        folds=read.folds,
        options=_options(found),
        sha256=sha256,
        file=read.name,
    )
    return vector, blind_test_ranked(ranked), purity.curves_at_start(vector)


def _options(found: Inspection) -> tuple[tuple[str, str], ...]:
    """Return the arguments of `leakviz.read_predictions` that read the file in the same way again."""
    ways: dict[str, Any] = {role: found.answers.get(role) for role in ROLES}
    known = [text for c in found.columns if c.name == ways["y"] for text, _ in c.labels]
    if len(known) == 1 and ways["positive"] not in known:
        ways["positive"] = None  # of one label alone, 0
    ways["sheet"] = found.sheet
    ways["delimiter"] = found.delimiter if found.delimiter != "," else None
    ways["encoding"] = None if str(found.encoding).startswith("utf-8") else found.encoding
    return tuple((role, str(way)) for role, way in ways.items() if way is not None)


def _facts_of(column: ColumnFacts) -> str:
    """Return what is in a column, without its name."""
    return column.text.removeprefix(f"{quoted(column.name)}: ").removeprefix(
        f"column {column.position + 1} (no name): "
    )


def _choices(found: Inspection, role: str) -> list[list[str]]:
    """Return what may be chosen for a role as it stands: values and texts."""
    chosen = {r: found.answers.get(r) for r in ("p", "y", "fold")}
    if role in ("p", "y", "fold"):
        others = {name for r, name in chosen.items() if r != role}
        facts = {column.name: column for column in found.columns}
        return [
            [name, f"{short(name, 40)}: {short(_facts_of(facts[name]), 60)}"]
            for name in found.candidates[role]
            if name and name not in others
        ]
    used = [column for column in found.columns if column.name in chosen.values()]
    if role == "positive":
        labels = next((c.labels for c in used if c.name == chosen["y"]), ())
        return [[text, f"{short(text, 60)} ({count:,} rows)"] for text, count in labels]
    if role == "scale":
        return [[value, words] for value, words in SCALES.items()] if chosen["p"] else []
    return [[value, words] for value, words in MISSING.items()] if any(c.missing for c in used) else []


def _facts(found: Inspection) -> list[list[str]]:
    """Return what was found about the file as names and values."""
    formats = {"csv": "delimited text", "jsonl": "JSON lines", "excel": "Excel"}
    marks = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", ".": "point"}
    named = [
        ("format", formats.get(found.format, found.format.capitalize())),
        ("encoding", found.encoding),
        ("sheet", found.sheet),
        ("delimiter", found.delimiter and marks.get(found.delimiter, repr(found.delimiter))),
        ("decimal mark", found.decimal and marks[found.decimal]),
        ("rows", f"{found.n:,}"),
        ("columns", f"{len(found.columns):,}"),
    ]
    return [[name, str(value)] for name, value in named if value]


def _table(found: Inspection) -> dict[str, Any]:
    """Return the first rows and the columns, as far as a screen takes them, those in use always."""
    use: dict[str, str] = {}
    for role in ("p", "y", "fold"):
        if role in found.answers:
            use[str(found.answers[role])] = role
    places = [i for i, c in enumerate(found.columns) if i < SEEN_COLUMNS or c.name in use]
    left = len(found.columns) - len(places)
    columns = [found.columns[i] for i in places]
    names = [short(c.name, 60) or f"column {c.position + 1}" for c in columns]
    used = [use.get(c.name, "") for c in columns]
    return {
        "things": {
            "heading": "Columns",
            "rows": [[n, _facts_of(c), u] for n, c, u in zip(names, columns, used, strict=True)],
            "more": f"{left:,} more columns are not shown." if left else "",
        },
        "preview": {
            "header": [list(pair) for pair in zip(names, used, strict=True)],
            "rows": [[short(row[i], 40) if i < len(row) else "" for i in places] for row in found.preview],
        },
    }
