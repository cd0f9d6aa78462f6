"""A table that a user brings to the page of held-out sources: read, asked about, computed.

The reader of `leakviz.inspect_sources` finds and asks; this part of the page shows, waits for answers, and
leaves sources out in a thread of its own. A file is held by the page of the session that brought it and by
nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import panel as pn

import leakviz
from dashboards.lodo_answers import CLASSIFIERS, OWN, Subject, computed, shipped
from dashboards.sheet import Sheet
from dashboards.upload import Upload, megabytes
from dashboards.work import Job, attempt, in_document, in_thread, start
from leakviz.lodo.table import SourceInspection
from leakviz.predictions.sources import quoted

LIMIT = 200_000_000  # bytes
FORMATS = "CSV, TSV, Parquet, Feather, JSON lines or Excel"
SLIMMER = "Leave out columns that are not needed; the command leakviz lodo takes larger files."
SEEN_COLUMNS = 40

# role: (label, help); the first five are the arguments of `leakviz.read_sources`
ROLES = {
    "label": ("label, y", "The column with what is predicted: two labels."),
    "positive": ("label 1", "The label that counts as positive."),
    "source": ("source", "The column that says where a row is from: a hospital, a site, a file."),
    "groups": ("groups", "Rows that belong together, such as a patient’s. Default: none."),
    "missing": ("missing values", "What happens to rows in which something is missing. Default: refuse."),
    "model": ("classifier", "What is fitted, anew in each fold. Default: logistic, balanced."),
}
MODELS = ("logistic", "logistic-unweighted", "forest", "boosting")
AGAIN = {
    "encoding": (
        "encoding",
        "How the characters of the text are written as bytes, such as cp1252 or latin-1.",
    ),
    "delimiter": ("delimiter", "The one character between two cells."),
    "sheet": ("sheet", "The name of the sheet that holds the table."),
}

# Leaving sources out takes a while: threads of their own, so that small files need not wait for it.
_WORKERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="leakviz-lodo")


class OwnTable:
    """The wizard for one session's tables.

    Parameters
    ----------
    took : callable
        Takes the `Subject` when it is computed.
    rise : callable
        Takes whether there is something to answer or to wait for, so that it is to be seen first.
    n_jobs : int
        Worker processes for long fits.

    Attributes
    ----------
    found : SourceInspection or None
        The file that is looked at.
    said : dict of str to str
        What the user answered about it.
    model : str
        Which classifier is fitted.
    alerts : list of str
        What went wrong last.
    """

    def __init__(
        self, took: Callable[[Subject], object], *, rise: Callable[[bool], object], n_jobs: int = -1
    ):
        self.took = took
        self._rise = rise
        self.n_jobs = n_jobs
        self.found: SourceInspection | None = None
        self.title = ""
        self.said: dict[str, str] = {}
        self.model = MODELS[0]
        self.alerts: list[str] = []
        self.used = ""  # the case that the answers as they are have given
        self._asked: dict[str, tuple[str, tuple]] = {}  # questions that were open: text and options
        self._file: io.BytesIO | None = None
        self._again: tuple[io.BytesIO, str, dict[str, str], str] | None = None
        self._job: Job | None = None
        self._tasks: set[asyncio.Task] = set()
        self._document = pn.state.curdoc
        self.upload = Upload(
            limit=LIMIT,
            busy=self._busy,
            took=self.load,
            refused=self._refused,
            stopped=self.stop,
            slimmer=SLIMMER,
            hint=f"or drop it anywhere on this page: {FORMATS}, up to {megabytes(LIMIT)}, with features, a label and a "
            "column that says where each row is from. Only this session sees it, and a reload forgets it.",
            sizing_mode="stretch_width",
            margin=0,
        )
        self.sheet = Sheet(self._heard, sizing_mode="stretch_width", margin=0)
        self._show()
        if pn.state.curdoc and pn.state.curdoc.session_context:
            own = weakref.ref(self)

            def gone(context: Any) -> None:
                left = own()
                if left is not None:
                    left.stop()

            pn.state.on_session_destroyed(gone)

    # ---- what the user does

    def load(self, file: Any, name: str | None = None) -> None:
        """Read a file; where it cannot be read, everything stays as it was and `alerts` says why.

        Parameters
        ----------
        file : path, bytes or io.BytesIO
            An `io.BytesIO` is closed when it is not needed any more.
        name : str, optional
            What to call it.
        """
        if name is None:
            name = Path(file).name if isinstance(file, (str, os.PathLike)) else "the upload"
        if busy := self._busy(name):
            self._refused(busy)
            return
        self._start_reading(file, name, {})

    def answer(self, role: str, value: str) -> None:
        """Answer a question about the file; an empty text takes an answer back."""
        if self.found is None or role not in ROLES or self._job:
            return
        if role == "model":
            if value in MODELS:
                self.model, self.used = value, ""
                self._show()
            return
        said = {r: v for r, v in self.said.items() if r != role}
        if value:
            said[role] = value
        if role == "label":
            said.pop("positive", None)
        try:
            found = self.found.answer(**{r: said.get(r) for r in ROLES if r != "model"})
        except leakviz.InputError as error:
            self._refused(str(error))
            return
        self.found, self.said, self.used, self.alerts = found, said, "", []
        self._note_questions()
        self._show()

    def use(self) -> None:
        """Leave out each source."""
        found = self.found
        if found is None or found.questions or found.problem or self.used or self._job:
            return
        self._job = Job(f"Reading {self.title}", self.title)
        start(self._compute(self._job, found), self._tasks)

    def recompute(self, what: Callable[[Callable[[str, int, int], None]], Subject], name: str) -> None:
        """Compute a case that ships anew, with the same progress bar and the same way to stop it.

        Parameters
        ----------
        what : callable
            Takes what `computed` takes as ``progress``, returns the subject.
        name : str
            What it is called.
        """
        if busy := self._busy(name):
            self._refused(busy)
            return
        job = self._job = Job(f"Recomputing {name}", name)

        async def work() -> None:
            def fit() -> Subject:
                return what(_hearing(job, name))

            subject = await in_thread(job, fit, self._show_work, _WORKERS)
            await in_document(self._document, lambda: self.took(subject))

        start(self._finished(job, work()), self._tasks)

    def close(self) -> None:
        """Put the file away; what was computed from it stays on the page."""
        self.stop()
        self._set(None, "", None)
        self.alerts = []
        self._show()

    def stop(self) -> None:
        """Stop what is being done."""
        if self._job:
            self._job.stopped.set()

    @property
    def busy(self) -> bool:
        """Whether something is being done."""
        return self._job is not None

    def _heard(self, message: dict[str, str]) -> None:
        do, value = message.get("do"), message.get("value", "")
        if do == "answer":
            self.answer(message.get("role", ""), value)
        elif do == "retry" and self._again and not self._job and value:
            file, title, options, role = self._again
            self._start_reading(file, title, {**options, role: value})
        elif do in ("use", "close"):
            {"use": self.use, "close": self.close}[do]()

    def _busy(self, name: str) -> str:
        if self._job is None:
            return ""
        return f"{quoted(name)} was not taken: {quoted(self._job.name)} is still being worked on. Cancel it first, or wait."

    def _refused(self, reason: str) -> None:
        self.alerts = [reason]
        self._show()

    # ---- work

    def _show_work(self, job: Job) -> None:
        self.upload.work(job.words(), job.done)
        self._rise(True)

    async def _attempted(self, job: Job, work: Coroutine[Any, Any, None]) -> str:
        try:
            return await attempt(job, work, slimmer=SLIMMER)
        finally:
            self._job = None

    async def _finished(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        self._finish(await self._attempted(job, work))

    def _finish(self, wrong: str) -> None:
        self.alerts = [wrong] if wrong else []
        with pn.io.hold():
            self.upload.work()
            self._show()

    def _start_reading(self, file: Any, name: str, options: dict[str, str]) -> None:
        if isinstance(file, (bytes, bytearray, memoryview)):
            file = io.BytesIO(file)
        elif isinstance(file, (str, os.PathLike)):
            path = Path(file)
            if not path.is_file():
                self._refused(f"there is no file {quoted(path)}. Check the path and the working directory.")
                return
            file = io.BytesIO(path.read_bytes())
        self._job = Job(f"Reading {name}", name)
        start(self._read(self._job, file, name, options), self._tasks)

    async def _read(self, job: Job, file: io.BytesIO, name: str, options: dict[str, str]) -> None:
        async def read() -> None:
            def work() -> SourceInspection:
                return leakviz.inspect_sources(
                    file, name=name, progress=job.progress, max_bytes=LIMIT, **options
                )  # type: ignore[arg-type]

            self._set(await in_thread(job, work, self._show_work), name, file)

        wrong = await self._attempted(job, read())
        role = next((r for r in AGAIN if wrong and (f"{r}=" in wrong or r in options)), None)
        before, self._again = self._again, None
        if role and not job.stopped.is_set():
            self._again = (file, name, options, role)
        elif wrong:
            file.close()
        if before and before[0] is not file:
            before[0].close()
        self._finish(wrong)

    async def _compute(self, job: Job, found: SourceInspection) -> None:
        model, title = self.model, self.title

        async def fit() -> None:
            subject = await in_thread(
                job, lambda: subject_of(found, model, job, title, self.n_jobs), self._show_work, _WORKERS
            )

            def keep() -> None:
                self.used = subject.case
                self.took(subject)

            await in_document(self._document, keep)

        await self._finished(job, fit())

    def _set(self, found: SourceInspection | None, name: str, file: io.BytesIO | None) -> None:
        """Look at another file, or at none."""
        if self._file is not None and self._file is not file:
            self._file.close()
        self._file, self.found, self.title = file, found, name
        self.said, self.model, self.used, self._asked = {}, MODELS[0], "", {}
        self._note_questions()

    def _note_questions(self) -> None:
        """Remember what was asked: a question that is answered stays where it stands."""
        for question in self.found.questions if self.found else ():
            options = tuple((option.value, option.text) for option in question.options)
            self._asked.setdefault(question.role, (question.text, options))

    # ---- what is seen

    def _show(self) -> None:
        page = self.page()
        self.sheet.page = json.dumps(page)
        waits = self.found is not None and not self.used
        self._rise(bool(self._job or waits or page["alert"] or page["retry"]))

    def page(self) -> dict[str, Any]:
        """Return what is shown below the strip, as plain texts."""
        found = self.found
        again = None
        if self._again:
            label, text = AGAIN[self._again[3]]
            again = {"role": self._again[3], "label": label, "text": text, "options": []}
        return {
            "alert": [*([found.problem] if found and found.problem else []), *self.alerts],
            "retry": again,
            "file": None if found is None else self._seen(found),
            "intro": [],
            "shelf": [],
        }

    def _seen(self, found: SourceInspection) -> dict[str, Any]:
        many = len(found.questions)
        if found.problem:
            told = "The file cannot be used with these answers."
        elif many:
            told = f"{many} {'question is' if many == 1 else 'questions are'} open."
        elif self.used:
            told = "The page above shows it. Change an answer to compute again."
        else:
            told = "Fits the classifier once per fold and once per source left out, and the controls. It can be stopped."
        fields = [field for role in ROLES if (field := self._field(found, role))]
        uses = {
            str(found.answers[r]): ROLES[r][0] for r in ("label", "source", "groups") if r in found.answers
        }
        rest = len(found.columns) - SEEN_COLUMNS
        return {
            "ready": not many and not found.problem and not self.used,
            "verb": "Leave each source out",
            "words": told,
            "questions": [field for field in fields if field["role"] in self._asked],
            "rest": [field for field in fields if field["role"] not in self._asked],
            "facts": [["file", found.name], ["format", found.format], ["rows", f"{found.n:,}"]],
            "decided": list(found.decided),
            "things": {
                "heading": "Columns",
                "rows": [[c.name, c.text, uses.get(c.name, "")] for c in found.columns[:SEEN_COLUMNS]],
                "more": f"{rest:,} more columns are not shown." if rest > 0 else "",
            },
        }

    def _field(self, found: SourceInspection, role: str) -> dict[str, Any] | None:
        """Return a question, or a menu for what was decided, or None where there is nothing to choose."""
        label, text = ROLES[role]
        said = self.said.get(role, "")
        value = self.model if role == "model" else str(found.answers.get(role, ""))
        if role in self._asked:
            text, asked = self._asked[role]
            options = [list(option) for option in asked]
        elif role == "model":
            options = [[name, CLASSIFIERS[name]] for name in MODELS]
        elif role in ("label", "source", "groups"):
            held = found.candidates.get(role, ())
            options = [[name, name] for name in held]
            if not options:
                return None
            if role == "groups":
                options.insert(0, ["", "none"])
            elif said:
                options.append(["", "take back, let the file decide"])
        elif value:
            options = [[value, value]]
        else:
            return None
        if value and value not in [option for option, _ in options]:
            options.append([value, value])
        return {
            "role": role,
            "label": label,
            "text": text,
            "options": options,
            "value": value,
            "said": bool(said),
        }


def subject_of(found: SourceInspection, model: str, job: Job, title: str, n_jobs: int) -> Subject:
    """Read the table and leave out each of its sources: what a thread does.

    Raises
    ------
    leakviz.InputError
        As `leakviz.read_sources`, `leakviz.lodo` and `leakviz.retention`.
    """
    table = found.read()
    case = OWN + hashlib.sha256(f"{table.content_hash} {model}".encode()).hexdigest()[:12]
    columns = ", ".join(f"{role} is {quoted(column)}" for role, column in table.columns.items())
    return computed(
        table,
        model=model,
        case=case,
        title=title,
        source=f"your file {quoted(title)}: {columns}; SHA-256 of the numbers {table.content_hash[:12]}",
        progress=_hearing(job, title),
        n_jobs=n_jobs,
    )


def penguins(progress: Callable[[str, int, int], None]) -> Subject:
    """Compute the case of the penguins anew, with one seed."""
    kept = shipped("penguins", "logistic")
    begun = time.perf_counter()
    fresh = computed(
        leakviz.load_lodo_data("penguins"),
        model="logistic",
        case="penguins",
        title=kept.title,
        source=kept.source,
        progress=progress,
        n_jobs=1,
    )
    gaps = [f"{float(s.result['gap'].sel(baseline='cv', scope='all')):.3f}" for s in (fresh, kept)]
    return replace(
        fresh,
        told=f"Recomputed here in {time.perf_counter() - begun:.1f} s, with one seed and "
        f"{fresh.result.sizes['draw']} draws of each control: gap {gaps[0]}. The kept result has "
        f"{kept.result.sizes['seed']} seeds and {kept.result.sizes['draw']} draws: gap {gaps[1]}.",
    )


def _hearing(job: Job, name: str) -> Callable[[str, int, int], None]:
    def hear(what: str, done: int, total: int) -> None:
        job.text = f"{what}: {name}"
        job.progress(done, total)

    return hear
