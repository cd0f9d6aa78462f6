"""The page on which a user brings features: a split is audited for a leak into its fit set.

The reader of `leakviz.embeddings` finds and asks; this page shows, waits for answers, and runs the audit in
a thread of its own. A file is held by the page of the session that brought it and by nothing else.
"""

from __future__ import annotations

import asyncio
import html
import io
import json
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import h5py
import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import xarray as xr

from dashboards import batteries, names
from dashboards.batteries import OWN, Battery
from dashboards.embeddings_result import (
    FIGURES,
    Result,
    ResultView,
    known_to_be,
    make_result,
    read_battery,
    read_from,
    renamed,
)
from dashboards.markup import link_note, markup, waiting_note
from dashboards.shelf import Shelf
from dashboards.state import OwnFileState
from dashboards.upload import megabytes
from dashboards.wizard import Wizard, in_memory, note_questions, sha256_of, short, untaken
from dashboards.work import Job, in_document, in_thread, start
from leakviz import report as core
from leakviz.audit import explain, headline
from leakviz.embeddings import EmbeddingsInspection, inspect_embeddings
from leakviz.embeddings.reading import LABELS, TABLES
from leakviz.embeddings.reading import ROLES as CORE_ROLES
from leakviz.errors import InputError
from leakviz.predictions.sources import quoted

TITLE = "Your embeddings"
LIMIT = 1_000_000_000  # bytes: a file is held in memory while it is looked at
MOST_CLASSES = 1_000  # in a menu
FORMATS = "npz, npy (one array after the other), Parquet, netCDF, or a saved battery (.nc)"
SLIMMER = "Save float16 or float32 instead of float64, or fewer fit rows; the command leakviz audit takes larger files."

# role: (label, help); the first six are the arguments of `leakviz.read_embeddings`
ROLES = {
    "fit": ("fit features", "The rows that the detectors are fitted on."),
    "id_test": ("ID test features", "In-distribution rows that no detector was fitted on."),
    "ood_test": ("OOD features", "The rows that the benchmark designates as OOD."),
    "fit_labels": ("fit labels", "The class of every fit row. The exclusion contrast needs them."),
    "id_test_labels": (
        "ID test labels",
        "Their classes: each is halved for the probe. Default: rows as they come.",
    ),
    "ood_class": (
        "designated class",
        "The class that the OOD rows were taken from, as the fit labels name it.",
    ),
    "shrinkage": ("shrinkage, alpha", "Of the Mahalanobis detector. Default: Ledoit-Wolf."),
    "k": ("neighbour, k", "Whose distance the kNN detector takes. Default: 50."),
    "overlap": ("rows in two sets", "A detector knows rows that it was fitted on. Default: refuse."),
}
OPTIONS: dict[str, dict[str, str]] = {
    "shrinkage": {
        "ledoit-wolf": "Ledoit-Wolf",
        **{alpha: alpha for alpha in ("0", "0.001", "0.01", "0.03", "0.1", "0.3")},
        "1": "1 (Euclidean)",
    },
    "k": {k: k for k in ("1", "5", "10", "20", "50", "100", "200")},
    "overlap": {"refuse": "refuse, so that they can be removed", "report": "count them and go on"},
}
DEFAULTS = {"shrinkage": "ledoit-wolf", "k": "50", "overlap": "refuse"}
NO_ARRAY = " No array here could be it: drop one more .npy file, or another file."
SAY_REPORT = "say overlap='report' to count them and go on"  # as the core words it
AGAIN: dict[str, tuple[str, str, dict[str, str]]] = {
    "role_column": (
        "role column",
        "The column that says which rows are for what: fit, id_test, ood_test.",
        {},
    ),
    "label_column": ("label column", "The column with the class of each row.", {}),
}
VERDICT_SENTENCE = {
    "fires": "<b>fires</b>",
    "not shown": "<b>not shown</b>",
    "undetermined": "<b>undetermined</b>",
}
# Why no command line makes a report of an audit.
MANY_ARRAYS = (
    "its features came as several .npy files, and a report is made from one: save them together as .npz"
)
NO_FILE = "the example is made by the app, and is in no file"
EXAMPLE = ("resnet-fashion", "Sneaker")  # backbone, designated class

# Audits take a minute: they have threads of their own, so that small files need not wait for them.
_AUDITORS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="leakviz-audit")

_HEADING_CSS = ".note { overflow-wrap: anywhere } h1 { overflow-wrap: anywhere }"
_INTRO: list[dict[str, Any]] = [
    {
        "heading": "What a file holds",
        "code": "np.savez(\n"
        "    'emb.npz',\n"
        "    fit=...,         # (n, D) features of the fit set\n"
        "    id_test=...,     # (a, D) in-distribution test rows\n"
        "    ood_test=...,    # (b, D) rows designated as OOD\n"
        "    fit_labels=...,  # (n,) classes; for the contrast\n"
        "    ood_class='fox', # the class they were taken from\n"
        ")",
        "notes": [
            "Other names do no harm: you say which array plays which role. All features come from one layer of one model "
            "that was trained on the classes; the penultimate layer is the usual one.",
            "From a terminal: leakviz audit emb.npz",
        ],
        "button": {"do": "example", "words": "Try with an example"},
    },
    {
        "heading": "What happens with it",
        "steps": [
            "You see the arrays found and answer what the file leaves open. Labels may be missing.",
            "Rows that are in two sets are looked for first: a detector knows what it was fitted on.",
            "A supervised probe and two unsupervised detectors are compared on held-out rows. The split fires when the "
            "probe can tell the OOD rows and no detector can.",
            "If the fit labels name the designated class, the detectors are fitted again without it: the exclusion "
            "contrast, which is the evidence.",
        ],
        "notes": [
            "The verdict is “fires”, “not shown” or “undetermined”, never “clean”. Pickles and arrays of Python objects "
            "are never opened."
        ],
    },
]


class EmbeddingsState(OwnFileState):
    """What a link to this page carries: the hash of the audit that is shown; the file stays in its session."""


class EmbeddingsPage(Wizard, pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string; the audit that it names is shown when its file is brought.
    shelf : Shelf, optional
        Where the session's audits and batteries go.

    Attributes
    ----------
    found : EmbeddingsInspection or None
        The file that is looked at.
    said : dict of str to str
        What the user answered about it.
    options : dict of str to str
        How the audit is done.
    alerts : list of str
        What went wrong last.
    results : dict of str to Result
        Of each audit on the shelf.

    Examples
    --------
    >>> import io
    >>> rng, file = np.random.default_rng(0), io.BytesIO()
    >>> place = np.repeat(np.eye(3) * 9, 200, axis=0)
    >>> np.savez(file, fit=place + rng.normal(size=(600, 3)), fit_labels=np.repeat([0, 1, 2], 200),
    ...     id_test=place[:400] + rng.normal(size=(400, 3)), ood_test=place[400:] + rng.normal(size=(200, 3)))
    >>> page = EmbeddingsPage()
    >>> page.load(file.getvalue(), "emb.npz")
    >>> page.say("ood_class", "2")
    >>> page.use()
    >>> page.answer().attrs["verdict"], page.shelf.batteries[0].dataset["regime"].values.tolist()
    ('fires', ['leak', 'clean-excl'])
    """

    subject = "Files stay in this session"
    AGAIN, SLIMMER = AGAIN, SLIMMER
    ACTS: ClassVar[dict[str, str]] = {**Wizard.ACTS, "example": "example"}
    ACTS_ON: ClassVar[dict[str, str]] = {"show": "show_audit", "remove": "remove"}

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        super().__init__(**params)
        self.state = EmbeddingsState()
        self.state.read(query)
        self.shelf = shelf if shelf is not None else Shelf()
        self.shelf.hear(self.state, "embeddings", TITLE)
        self.found: EmbeddingsInspection | None = None
        self.title = ""
        self.said: dict[str, str] = {}
        self.options = dict(DEFAULTS)
        self._failed = False  # whether the answers as they are have failed
        self.results: dict[str, Result] = {}
        self.used = ""  # the result of the file that is looked at, as it is answered now
        self._last = ""  # the audit or battery that came last
        self._asked: dict[str, tuple[str, tuple]] = {}  # questions that were open: text and options
        self._files: list[io.BytesIO] = []  # of the file that is looked at
        self._parts: dict[str, io.BytesIO] = {}  # of arrays that come one by one
        self._columns: dict[str, str] = {}  # what was said so that the file could be opened
        self._is_example = False
        self._shared = False  # whether rows in two sets were found
        self.heading = markup("", css=_HEADING_CSS)
        self._open(
            limit=LIMIT,
            hint=f"{FORMATS}, up to {{limit}}. Only this session sees it, its features are not written to disk, and a "
            "reload forgets it.",
        )
        page = weakref.ref(self)

        def truth_said(truth: str) -> None:
            here = page()
            if here is not None:
                here.say_truth(truth)

        self.view: ResultView | None = None  # made for the first audit
        self._truth_said = truth_said
        self.state.param.watch(self._asked_for, "file")
        self._show()
        self._root = pn.Column(
            link_note(self.state),
            self.heading,
            self.upload,
            self.sheet,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[":host { gap: 18px }"],
        )

    def __panel__(self) -> pn.Column:
        """Return the page."""
        return self._root

    # ---- answers

    def answer(self) -> xr.Dataset:
        """Return the core's answer to the audit that is shown, as `leakviz.audit_split` gives it.

        Raises
        ------
        ValueError
            If there is none.
        """
        return self._shown().answer

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure of the audit that is shown.

        Parameters
        ----------
        name : {"box", "contrast", "histograms", "spectrum"}
        """
        self._shown()
        assert self.view is not None
        return self.view.data(name)

    def figure(self, name: str, backend: str = "bokeh") -> hv.Overlay:
        """Return a figure of the audit that is shown.

        Parameters
        ----------
        name : {"box", "contrast", "histograms", "spectrum"}
        backend : {"bokeh", "matplotlib"}
        """
        self._shown()
        assert self.view is not None
        return self.view.figure(name, backend)

    @property
    def shown(self) -> Result | None:
        """The audit that is shown."""
        return self.view.result if self.view else None

    def _shown(self) -> Result:
        if self.shown is None:
            raise ValueError("there is no audit yet")
        return self.shown

    def _show_result(self, result: Result) -> None:
        if self.view is None:
            self.view = ResultView(self._truth_said)
        self.view.show(result)
        if self.view.root not in self._root.objects:
            self._root.insert(2, self.view.root)

    def _hide_result(self) -> None:
        if self.view is not None:
            self.view.hide()

    # ---- what the user does

    def example(self) -> None:
        """Load an example: features of a backbone that was trained here, a trained class designated as OOD."""
        if self._is_busy("the example"):
            return
        self._job = Job("Making the example", "the example")
        start(self._read(self._job, None, "example.npz", {}), self._tasks)

    def say(self, role: str, value: str) -> None:
        """Answer a question about the file or the audit; an empty text takes an answer back."""
        if self.found is None or role not in ROLES or self._job:
            return
        if role in OPTIONS:
            if value in OPTIONS[role]:
                self.options = {**self.options, role: value}
                self.used, self._failed = "", False
                self._show()
            return
        said = {r: v for r, v in self.said.items() if r != role}
        if value:
            said[role] = value
        if role == "fit_labels":
            said.pop("ood_class", None)
        try:
            found = self.found.answer(**{r: said.get(r) for r in CORE_ROLES})
        except InputError as error:
            self._refused(str(error))
            return
        self.found, self.said, self.used, self.alerts = found, said, "", []
        self._failed = False
        self._note_questions()
        self._show()

    def use(self) -> None:
        """Audit the split."""
        found = self.found
        if found is None or found.questions or found.problem or self.used or self._job:
            return
        self._job = Job(f"Auditing {self.title}", self.title)
        start(self._audit(self._job, found), self._tasks)

    def show_audit(self, name: str) -> None:
        """Show an audit that is on the shelf."""
        if name in self.results and not self._job:
            if name != self.used:
                self._set(None)
            self._show_result(self.results[name])
            self.alerts = []
            self._show()

    def say_truth(self, truth: str) -> None:
        """Say what the split that is shown is known to be; it is a battery then."""
        result = self.shown
        if result is not None and truth in result.truths and truth != result.truth:
            self._keep(known_to_be(result, truth))

    def close(self) -> None:
        """Put the file away; the shelf keeps what was put there."""
        self.stop()
        self._let_go()
        self._set(None)
        self._hide_result()
        self.alerts = []
        self._show()

    def remove(self, name: str) -> None:
        """Take an audit, or a battery, off the shelf and forget it."""
        if self._job:
            return
        if self.shown is not None and self.shown.audit.name == name:
            self._hide_result()
        if name == self.used:
            self._set(None)
        self.results.pop(name, None)
        with pn.io.hold():
            self.shelf.audits = [a for a in self.shelf.audits if a.name != name]
            self.shelf.batteries = [b for b in self.shelf.batteries if b.name != name]
            self._show()

    # ---- work

    async def _read(self, job: Job, file: Any, name: str, options: dict[str, str]) -> None:
        parts = dict(self._parts)

        async def read() -> None:
            def work() -> tuple[io.BytesIO, EmbeddingsInspection | xr.Dataset, dict[str, io.BytesIO]]:
                made = example_file() if file is None else in_memory(file)
                return made, *opened(made, name, parts, options)

            made, found, together = await in_thread(job, work, self._show_work)
            if isinstance(found, EmbeddingsInspection):
                self._set(found, files=[*together.values()] or [made], parts=together)
                self._columns, self._is_example = dict(options), file is None
                self.title = name if len(together) < 2 else f"{len(together)} arrays"
                self._hide_result()
            else:
                digest = sha256_of(made)
                made.close()
                self._take_battery(found, name, digest)

        wrong = await self._attempt(job, read())
        self._keep_to_ask(wrong, job, file, name, options)
        self._finish(wrong)

    async def _audit(self, job: Job, found: EmbeddingsInspection) -> None:
        options, title, said = dict(self.options), self.title, {**self._columns, **self.said}
        files = list(self._files)

        def made() -> Result:
            result = make_result(found, options, job, title)
            why = "" if len(files) == 1 else MANY_ARRAYS
            if self._is_example:
                why = NO_FILE
            if why:
                return replace(result, audit=replace(result.audit, file=why))
            given = said | {name: value for name, value in options.items() if value != DEFAULTS[name]}
            if given.get("ood_class"):
                given["ood_class"] = core.listed([given["ood_class"]])
            facts = {"name": title, "sha256": sha256_of(files[0])}
            return read_from(result, facts, found.read().content_hash, given)

        async def audit() -> None:
            work = in_thread(job, made, self._show_work, _AUDITORS)
            result, _ = await asyncio.gather(work, self._prepare())
            taken = {a.title for a in self.shelf.audits if a.name != result.audit.name}
            result = renamed(result, untaken(title, taken))

            def keep() -> None:
                self.used = result.audit.name
                self._keep(result)

            await in_document(self._document, keep, job)

        wrong = await self._attempt(job, audit())
        self._shared = self._shared or SAY_REPORT in wrong
        self._failed = bool(wrong)
        self._finish(wrong.replace(SAY_REPORT, f"choose “{OPTIONS['overlap']['report']}” below"))

    async def _prepare(self) -> None:
        """Make the figures meanwhile, one after the other, so that nobody waits for all of them at once."""
        view = self.view = self.view or ResultView(self._truth_said)
        for name in FIGURES:
            if name not in view.panes:
                await asyncio.sleep(0)  # others first
                await in_document(self._document, partial(view.prepare, name))

    def _keep(self, result: Result) -> None:
        """Show a result and put it on the shelf, in the place of the same audit if it is there."""
        battery, name = result.battery(), result.audit.name
        self.results[name] = result
        with pn.io.hold():
            self._show_result(result)
            self._last = name
            self._tell_state()
            self.shelf.audits = [*(a for a in self.shelf.audits if a.name != name), result.audit]
            others = [b for b in self.shelf.batteries if b.name != name]
            self.shelf.batteries = others + ([battery] if battery else [])
            self._show()

    def _take_battery(self, dataset: xr.Dataset, name: str, digest: str) -> None:
        battery = own_battery(dataset, name, digest, self.shelf)
        self._last = battery.name
        self.shelf.batteries = [*(b for b in self.shelf.batteries if b.name != battery.name), battery]

    def _set(
        self,
        found: EmbeddingsInspection | None,
        *,
        files: list[io.BytesIO] | None = None,
        parts: dict[str, io.BytesIO] | None = None,
    ) -> None:
        """Look at another file, or at none."""
        for file in self._files:
            if file not in (files or []):
                file.close()
        self._files, self._parts = files or [], parts or {}
        self.found, self.said, self.options = found, {}, dict(DEFAULTS)
        self.used, self.title, self._shared, self._asked, self._failed = "", "", False, {}, False
        self._note_questions()

    def _note_questions(self) -> None:
        if self.found:
            note_questions(self._asked, self.found.questions, none=NO_ARRAY)

    # ---- what is seen

    def _asked_for(self, event: Any) -> None:
        """Show an audit of this session once more, as a link to it asks."""
        if self.shown is None or event.new != self.shown.audit.name:
            self.show_audit(event.new)

    def _tell_state(self) -> None:
        self.state.show(list(self.results), self.shown.audit.name if self.shown else "")

    def _show(self) -> None:
        with pn.io.hold():
            self._tell_state()
            self.sheet.page = json.dumps(self.page())
            self.heading.object = self._heading()

    def _heading(self) -> str:
        h1, note = self._sentence()
        waiting = waiting_note(self.shelf, "embeddings", self._last)
        return f'<div role="status" aria-live="polite" aria-atomic="true"><h1>{h1}</h1></div><p class="note">{note}</p>{waiting}'

    def _sentence(self) -> tuple[str, str]:
        """Return the sentence on top and what stands below it, as HTML."""
        found, shown = self.found, self.shown
        if self.view and shown and (found is None or self.used == shown.audit.name):
            verdict = explain(shown.answer).split("\n\n")[0]
            at = "At the published cuts, 0.95 and 0.65: "
            if headline(shown.answer) != shown.answer.attrs["verdict"]:
                at = ""  # the labels come first
            return self.view.heading(), f"{at}{html.escape(verdict)}"
        if found is None:
            return (
                "Bring the features of a model, and see whether a trained class <b>leaked</b> into the OOD set.",
                "A file needs three tables: the features that the detectors are fitted on, ID test rows, and the rows "
                "that are called OOD. Nothing is guessed: what the file does not settle, you are asked.",
            )
        name, many = html.escape(short(self.title)), len(found.arrays)
        holds = f"<b>{many}</b> {'array' if many == 1 else 'arrays'}"
        if found.problem:
            return f"{name} holds {holds}, and <b>cannot be used</b> as it is.", "The reason is below."
        if found.questions:
            asked = len(found.questions)
            return (
                f"{name} holds {holds} and leaves <b>{asked}</b> {'question' if asked == 1 else 'questions'} open.",
                "Answer in any order; an answer can be taken back. An array in a file of its own (.npy) may still come.",
            )
        if self._failed:
            return f"{name} <b>cannot be audited</b> as it is.", "The reason is below."
        told = "Check below which array plays which role; labels make it say more."
        if shown is not None:
            told = "The result that is shown is of the answers before. " + told
        return f"{name} can be <b>audited</b>.", told

    def page(self) -> dict[str, Any]:
        """Return what the page shows below the strip, as plain texts."""
        found = self.found
        shelf = [
            self._on_shelf(audit.name) for audit in reversed(self.shelf.audits) if audit.name in self.results
        ]
        shelf += [
            self._battery_on_shelf(b) for b in reversed(self.shelf.batteries) if b.name not in self.results
        ]
        return {
            "alert": [*([found.problem] if found and found.problem else []), *self.alerts],
            "retry": self._retry(),
            "file": None if found is None else self._file(found),
            "intro": _INTRO if found is None and not shelf else [],
            "shelf": shelf,
        }

    def _on_shelf(self, name: str) -> dict[str, Any]:
        result = self.results[name]
        answer = result.answer
        size = f"oracle LDA {float(answer['oracle_lda'].mean()):.3f}, best-unsup {float(answer['best_unsup'].mean()):.3f}"
        if "contrast" in answer:
            size += f", contrast {float(answer['contrast'].mean()):+.3f}".replace("-", "−")
        links = [["whitening", f"?page=whitening&features={name}"]]
        if result.truth:
            links.insert(0, ["fingerprint", f"?page=fingerprint&battery={name}"])
        return {
            "name": name,
            "title": result.audit.title,
            "verdict": headline(answer),
            "size": size,
            "explain": explain(answer).split("\n\n"),
            "source": result.source,
            "links": links,
            "acts": [["show", "show"], ["remove", "remove"]],
        }

    def _battery_on_shelf(self, battery: Battery) -> dict[str, Any]:
        settings = battery.dataset.sizes["setting"]
        return {
            "name": battery.name,
            "title": battery.title,
            "verdict": "battery",
            "size": f"{settings:,} {'setting' if settings == 1 else 'settings'}",
            "explain": [f"{battery.dataset.attrs['title']}. Source: {battery.dataset.attrs['source']}."],
            "source": battery.source,
            "links": [["fingerprint", f"?page=fingerprint&battery={battery.name}"]],
            "acts": [["remove", "remove"]],
        }

    def _file(self, found: EmbeddingsInspection) -> dict[str, Any]:
        many = len(found.questions)
        if found.problem:
            told = "The file cannot be used with these answers."
        elif many:
            told = f"{many} {'question is' if many == 1 else 'questions are'} open."
        elif self.used:
            told = "The audit is above and on your shelf. Change an answer to audit again."
        else:
            told = "Looks for rows in two sets, then compares the probe with the detectors. A large file takes a minute."
        fields = [field for role in ROLES if (field := self._field(found, role))]
        facts = {
            a.name: f"{' × '.join(f'{n:,}' for n in a.shape) or 'a single value'}, {a.dtype}"
            for a in found.arrays
        }
        uses = {
            str(found.answers[role]): ROLES[role][0] for role in (*TABLES, *LABELS) if role in found.answers
        }
        if "ood_class" not in self.said:
            uses["ood_class"] = ROLES["ood_class"][0]  # an array of this name says it
        problems = {a.name: a.problem for a in found.arrays if a.problem}
        return {
            "ready": not many and not found.problem and not self.used,
            "verb": "Audit this split",
            "words": told,
            "questions": [
                field for field in fields if field["role"] in self._asked or field["role"] == "overlap"
            ],
            "rest": [
                field for field in fields if field["role"] not in self._asked and field["role"] != "overlap"
            ],
            "facts": [
                ["format", found.format],
                ["size", megabytes(sum(file.getbuffer().nbytes for file in self._files))],
            ],
            "decided": list(found.decided),
            "things": {
                "heading": "Arrays",
                "rows": [
                    [short(name, 60), problems.get(name) or text, uses.get(name, "")]
                    for name, text in list(facts.items())[:40]
                ],
                "more": f"{len(facts) - 40:,} more arrays are not shown." if len(facts) > 40 else "",
            },
        }

    def _field(self, found: EmbeddingsInspection, role: str) -> dict[str, Any] | None:
        """Return a question, or a menu for what was decided, or None where there is nothing to choose."""
        label, text = ROLES[role]
        if role in OPTIONS:
            if role == "overlap" and not self._shared:
                return None
            options = [[value, words] for value, words in OPTIONS[role].items()]
            return {
                "role": role,
                "label": label,
                "text": text,
                "options": options,
                "value": self.options[role],
                "said": False,
            }
        said = self.said.get(role, "")
        value = found.answers.get(role, "")
        if role == "ood_class":
            value = " or ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if role in self._asked:
            text, asked = self._asked[role]
            options = [list(option) for option in asked]
        else:
            facts = {a.name: a for a in found.arrays}
            held = found.candidates.get(role, ())[:MOST_CLASSES]
            options = [
                [
                    name,
                    name
                    if role == "ood_class"
                    else f"{short(name, 40)}: {' × '.join(f'{n:,}' for n in facts[name].shape)}",
                ]
                for name in held
            ]
            if not options and not value:
                return None
            if role not in TABLES and not (value and not said):
                options.insert(0, ["", "not stated" if role == "ood_class" else "none"])
            elif said:
                options.append(["", "take back, let the file decide"])
        if value and value not in [option for option, _ in options]:
            options.append([value, value])
        return {
            "role": role,
            "label": label,
            "text": text,
            "options": options,
            "value": str(value),
            "said": bool(said),
        }


def opened(
    file: io.BytesIO, name: str, parts: Mapping[str, io.BytesIO], columns: Mapping[str, str]
) -> tuple[EmbeddingsInspection | xr.Dataset, dict[str, io.BytesIO]]:
    """Open what was brought: a battery, a file of features, or one array more of several.

    Parameters
    ----------
    file : io.BytesIO
    name : str
    parts : mapping of str to io.BytesIO
        Arrays that came before, by the names of their files.
    columns : mapping
        role_column, label_column.

    Returns
    -------
    EmbeddingsInspection or battery
    dict of str to io.BytesIO
        The parts with this one, if it is one.
    """
    head = file.getvalue()[:8] if file.getbuffer().nbytes < 8 else bytes(file.getbuffer()[:8])
    if head.startswith(b"\x89HDF") and _is_battery(file):
        return read_battery(file.getvalue()), {}
    if head.startswith(b"\x93NUMPY"):
        file.name = name  # type: ignore[attr-defined]  # what messages call it
        together = {**parts, name.removesuffix(".npy"): file}
        return inspect_embeddings(together, max_bytes=LIMIT), together
    return inspect_embeddings(file, name=name, max_bytes=LIMIT, **columns), {}  # type: ignore[arg-type]


def own_battery(dataset: xr.Dataset, name: str, digest: str, shelf: Shelf) -> Battery:
    """Return a battery that was read from a file.

    Parameters
    ----------
    dataset : xarray.Dataset
    name : str
        Of the file.
    digest : str
        SHA-256 of its bytes.
    shelf : Shelf
        Which is not changed: no two batteries on it have one title.
    """
    known = str(dataset.attrs["content_hash"])
    return Battery(
        name=OWN + known[:12],
        title=untaken(name, {b.title for b in shelf.batteries if b.name != OWN + known[:12]}),
        source=f"your file {quoted(name)}: {dataset.attrs['title']}",
        dataset=dataset,
        file={"name": name, "kind": "battery", "sha256": digest, "content_hash": known, "options": {}},
    )


def is_battery(content: bytes) -> bool:
    """Tell whether a file's bytes are those of a battery."""
    return content.startswith(b"\x89HDF") and _is_battery(io.BytesIO(content))


def _is_battery(file: io.BytesIO) -> bool:
    file.seek(0)
    try:
        with h5py.File(file, "r") as held:
            return {"setting", "oracle_lda"} <= set(held)
    except (OSError, RuntimeError, ValueError):
        return False  # damaged: the reader says so


def example_file() -> io.BytesIO:
    """Return the example: a trained class of the shipped battery, designated as OOD while it is in the fit set."""
    from leakviz.battery.cached import rows_of, sample_rows

    name, ood = EXAMPLE
    backbone = batteries.backbone(name)
    classes = np.array([names.ood_name(backbone.id_dataset, c) for c in backbone.classes])
    fit, labels = sample_rows(backbone, rows=2_000)
    own, other = rows_of(backbone, ood)
    file = io.BytesIO()
    np.savez(
        file,
        fit=fit,
        fit_labels=classes[labels],
        id_test=backbone.rows[own],
        id_test_labels=classes[backbone.kinds[own]],
        ood_test=backbone.rows[other],
        ood_class=np.array(names.ood_name(backbone.id_dataset, ood)),
    )
    file.seek(0)
    return file
