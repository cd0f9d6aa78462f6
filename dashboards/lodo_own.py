"""A table that a user brings to the page of held-out sources: read, asked about, computed.

The reader of `leakviz.inspect_sources` finds and asks; this part of the page shows, waits for answers, and
leaves sources out in a thread of its own. A file is held by the page of the session that brought it and by
nothing else.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import leakviz
from dashboards.lodo_answers import CLASSIFIERS, OWN, Subject, computed, shipped
from dashboards.wizard import Wizard, in_memory, note_questions, sha256_of, short, text_again
from dashboards.work import Job, in_document, in_thread, start
from leakviz import report as core
from leakviz.lodo.table import SourceInspection
from leakviz.predictions.sources import quoted

LIMIT = 200_000_000  # bytes
FORMATS = "CSV, TSV, Parquet, Feather, JSON lines or Excel"
SLIMMER = "Leave out columns that are not needed; the command leakviz lodo takes larger files."
SEEN_COLUMNS = 40
MOST_TICKED = 300  # features that are offered one by one; the command takes any number

# role: (label, help); all but the last are arguments of `leakviz.read_sources`
ROLES = {
    "label": ("label, y", "The column with what is predicted: two labels."),
    "positive": ("label 1", "The label that counts as positive."),
    "source": ("source", "The column that says where a row is from: a hospital, a site, a file."),
    "features": (
        "features",
        "What the classifier is given. Untick what must not be used. Default: all numbers without another part.",
    ),
    "groups": ("groups", "Rows that belong together, such as a patient’s. Default: none."),
    "missing": ("missing values", "What happens to rows in which something is missing. Default: refuse."),
    "model": ("classifier", "What is fitted, anew in each fold. Default: logistic, balanced."),
}
MODELS = ("logistic", "logistic-unweighted", "forest", "boosting")
# Leaving sources out takes a while: threads of their own, so that small files need not wait for it.
_WORKERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="leakviz-lodo")


class OwnTable(Wizard):
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

    AGAIN = text_again("the table")
    SLIMMER = SLIMMER

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
        self.used = ""  # the case that the answers as they are have given
        self._asked: dict[str, tuple[str, tuple]] = {}  # questions that were open: text and options
        self._file: io.BytesIO | None = None
        self._open(
            limit=LIMIT,
            hint=f"{FORMATS}, up to {{limit}}, with features, a label and a column that says where each row is from. Only "
            "this session sees it, and a reload forgets it.",
        )
        self._show()

    # ---- what the user does

    def say(self, role: str, value: str) -> None:
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
        if role == "features" and value:
            said = self._chosen(said)
        elif "features" in said and role in ("label", "source", "groups"):  # what has another part is none
            rest = [name for name in json.loads(said.pop("features")) if name != value]
            if rest:
                said["features"] = json.dumps(rest)
        try:
            given: dict[str, Any] = {r: said.get(r) for r in ROLES if r != "model"}
            if "features" in said:
                given["features"] = json.loads(said["features"])
            found = self.found.answer(**given)
        except leakviz.InputError as error:
            self._refused(str(error))
            return
        self.found, self.said, self.used, self.alerts = found, said, "", []
        self._note_questions()
        self._show()

    def _chosen(self, said: dict[str, str]) -> dict[str, str]:
        """Return answers with the features in the order of the file; all that there are is no answer."""
        assert self.found is not None
        ticked = set(json.loads(said["features"]))
        offered = self.found.candidates.get("features", ())
        if ticked >= set(offered):
            return {r: v for r, v in said.items() if r != "features"}
        return {**said, "features": json.dumps([name for name in offered if name in ticked])}

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
        if self._is_busy(name):
            return
        job = self._job = Job(f"Recomputing {name}", name)

        async def work() -> None:
            def fit() -> Subject:
                return what(_hearing(job, name))

            subject = await in_thread(job, fit, self._show_work, _WORKERS)
            await in_document(self._document, lambda: self.took(subject), job)

        start(self._finished(job, work()), self._tasks)

    def close(self) -> None:
        """Put the file away; what was computed from it stays on the page."""
        self.stop()
        self._let_go()
        self._set(None, "", None)
        self.alerts = []
        self._show()

    def waits_for(self) -> str:
        """Say what stands between the file that is looked at and its numbers, plain text; "" where nothing does."""
        if self.found is None or self.used:
            return ""
        name = f"“{short(self.title)}”"
        if self._job is not None:
            return f"{name} is being computed: its progress is below."
        if self.found.problem:
            return f"{name} cannot be used as it is answered: see below."
        return f"{name} is not computed yet: {'its questions are' if self.found.questions else 'the button is'} below."

    @property
    def busy(self) -> bool:
        """Whether something is being done."""
        return self._job is not None

    # ---- work

    def _show_work(self, job: Job) -> None:
        super()._show_work(job)
        self._rise(True)

    async def _finished(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        self._finish(await self._attempt(job, work))

    async def _read(self, job: Job, file: Any, name: str, options: dict[str, str]) -> None:
        async def read() -> None:
            def work() -> tuple[io.BytesIO, SourceInspection]:
                held = in_memory(file)
                return held, leakviz.inspect_sources(
                    held, name=name, progress=job.progress, max_bytes=LIMIT, **options
                )  # type: ignore[arg-type]

            held, found = await in_thread(job, work, self._show_work)
            self._set(found, name, held)

        wrong = await self._attempt(job, read())
        self._keep_to_ask(wrong, job, file, name, options)
        self._finish(wrong)

    async def _compute(self, job: Job, found: SourceInspection) -> None:
        model, title, file = self.model, self.title, self._file

        def made() -> Subject:
            subject = subject_of(found, model, job, title, self.n_jobs)
            return replace(subject, file=table_file(found, model, subject, sha256_of(file)))

        async def fit() -> None:
            subject = await in_thread(job, made, self._show_work, _WORKERS)

            def keep() -> None:
                self.used = subject.case
                self.took(subject)

            await in_document(self._document, keep, job)

        await self._finished(job, fit())

    def _set(self, found: SourceInspection | None, name: str, file: io.BytesIO | None) -> None:
        """Look at another file, or at none."""
        if self._file is not None and self._file is not file:
            self._file.close()
        self._file, self.found, self.title = file, found, name
        self.said, self.model, self.used, self._asked = {}, MODELS[0], "", {}
        self._note_questions()

    def _note_questions(self) -> None:
        if not self.found:
            return
        # What is open may ask something else than before: of another label, or with other features.
        now: dict[str, tuple[str, tuple]] = {}
        note_questions(now, self.found.questions)
        if "missing" in self.said and "missing" in self._asked:
            note_questions(now, self.found.answer(missing=None).questions)
        self._asked.update(now)

    # ---- what is seen

    def _show(self) -> None:
        page = self.page()
        self.sheet.page = json.dumps(page)
        self.raise_if_needed(page)

    def raise_if_needed(self, page: dict[str, Any] | None = None) -> None:
        """Say anew whether there is something to answer or to wait for."""
        page = page or self.page()
        waits = self.found is not None and not self.used
        self._rise(bool(self._job or waits or page["alert"] or page["retry"]))

    def page(self) -> dict[str, Any]:
        """Return what is shown below the strip, as plain texts."""
        found = self.found
        return {
            "alert": [*([found.problem] if found and found.problem else []), *self.alerts],
            "retry": self._retry(),
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
            parts = ("label", "source", "groups") if role in ("label", "source") else ()
            taken = [found.answers.get(other) for other in parts if other != role]
            options = [list(option) for option in asked if option[0] not in taken]
        elif role == "features":
            return self._feature_field(found, label, text)
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

    def _feature_field(self, found: SourceInspection, label: str, text: str) -> dict[str, Any] | None:
        """Return the features to tick, when it is settled which columns have another part."""
        offered = found.candidates.get("features", ())
        if not {"label", "source"} <= set(found.answers) or not 1 < len(offered) <= MOST_TICKED:
            return None
        ticked = found.answers.get("features", offered)
        return {
            "role": "features",
            "label": label,
            "text": text,
            "options": [[name, name] for name in offered],
            "value": "",
            "ticked": [name for name in offered if name in ticked],
            "said": "features" in self.said,
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


def table_file(found: SourceInspection, model: str, subject: Subject, digest: str) -> dict[str, Any]:
    """Return what a report says of the file of a table: how it was read, and the SHA-256 of its bytes is `digest`."""
    ways: dict[str, Any] = {role: found.answers.get(role) for role in ROLES}
    ways["features"] = core.listed(found.answers["features"]) if "features" in found.answers else None
    ways["model"] = model if model != MODELS[0] else None
    ways["delimiter"] = found.delimiter if found.delimiter != "," else None
    ways["encoding"] = None if str(found.encoding).startswith("utf-8") else found.encoding
    ways["sheet"] = found.sheet
    return {
        "name": found.name,
        "kind": "sources",
        "sha256": digest,
        "content_hash": subject.result.attrs["source_hash"],
        "options": core.options_of("sources", {n: str(way) for n, way in ways.items() if way is not None}),
    }


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
