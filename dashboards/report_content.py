"""What a report says of a page at a state: its words, its numbers, its limits, and its figures.

A page's own sentences and tables are taken as they stand on the screen, so that the two cannot disagree. What
limits a result is computed from it, by `leakviz.report`.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import numpy as np
import param

from dashboards import batteries, export
from dashboards.audit_answers import own as own_settings
from dashboards.calibration import own_key
from dashboards.embeddings_result import FIGURES as SPLIT_FIGURES
from dashboards.embeddings_result import GATES, TAUS, ResultView, result_answers
from dashboards.figures import audit as audit_figures
from dashboards.figures import calibration as calibration_figures
from dashboards.figures import detail as detail_figures
from dashboards.figures import fingerprint as fingerprint_figures
from dashboards.figures import lodo as lodo_figures
from dashboards.figures import mechanism as mechanism_figures
from dashboards.figures import purity as purity_figures
from dashboards.figures import whitening as whitening_figures
from dashboards.lessons import WORLD
from dashboards.mechanism_answers import twins, twins_table
from dashboards.page_file import ALIASES, LEFT_OUT
from dashboards.provenance import hash_of_arrays, sources
from dashboards.purity import ARMS
from dashboards.shelf import OWN, SIMULATED, Shelf, Vector, shipped_names
from dashboards.state import PageState
from leakviz import report as core
from leakviz.audit import explain
from leakviz.blind import blind_test_ranked
from leakviz.errors import InputError
from leakviz.paths import data_dir

PAGES = tuple(LEFT_OUT)
"""What a report can hold: the pages that can be saved. "embeddings" is made of a file alone."""


class Figure(NamedTuple):
    """A figure of a page in a report.

    Attributes
    ----------
    name : str
        As the page's `figure` takes it.
    title : str
    size : (width, height) in mm
    caption : str
        What its marks are; where the numbers are from and the state are added.
    small : bool
        Whether it stands beside another one, after those that are large.
    part : str
        What of the page draws it, an attribute; by default the page itself.
    """

    name: str
    title: str
    size: tuple[float, float]
    caption: str
    small: bool = False
    part: str = ""

    def of(self, page: Any) -> Any:
        """Return what draws it."""
        return getattr(page, self.part) if self.part else page


@dataclass(frozen=True)
class Section:
    """A page in a report.

    Attributes
    ----------
    facts : dict
        As `leakviz.report.SCHEMA` describes a section.
    figures : tuple of Figure
    page : Viewer
        Which draws them.
    told : tuple of str
        What could not be shown as asked.
    """

    facts: dict[str, Any]
    figures: tuple[Figure, ...]
    page: Any = field(repr=False)
    told: tuple[str, ...] = ()


# ---- a page at a state


def asked_section(text: str) -> tuple[str, str]:
    """Read what the command line calls a section: ``page``, ``page:state``, or a link that was copied.

    Returns
    -------
    (str, str)
        Name of the page, and the state as in a link.

    Raises
    ------
    InputError
        If there is no such page.

    Examples
    --------
    >>> asked_section("fingerprint:tau=0.6"), asked_section("http://localhost:5006/app?page=purity&delta=0.1")
    (('fingerprint', 'tau=0.6'), ('purity', 'delta=0.1'))
    """
    name, _, state = text.partition(":")
    if "?" in text:
        state = text.partition("?")[2]
        name = dict(parse_qsl(state)).get("page", PAGES[0])
        state = "&".join(part for part in state.split("&") if not part.startswith("page="))
    name = ALIASES.get(name, name)
    if name not in (*PAGES, "embeddings"):
        raise InputError(f"there is no page {name!r} for a report; there are {', '.join(PAGES)}.")
    return name, state


def named_own(state: str, own: Sequence[str]) -> str:
    """Write the hash for ``own`` where a state says it, as a command line does of the file that it names.

    Raises
    ------
    InputError
        If no file was named, or several.

    Examples
    --------
    >>> named_own("first=own&beside=none", ["own:0123456789ab"])
    'first=own:0123456789ab&beside=none'
    """
    pairs = parse_qsl(state, keep_blank_values=True)
    if not any(value == OWN.rstrip(":") for _, value in pairs):
        return state
    if len(own) != 1:
        which = f"there are {len(own)}: {', '.join(own)}; name one of them" if own else "no file was named"
        raise InputError(f"the state {state!r} says own, and {which}.")
    return urlencode([(k, own[0] if v == OWN.rstrip(":") else v) for k, v in pairs], safe=",:")


def makers(audits: Mapping[str, Any]) -> dict[str, tuple[str, Callable[[str, Shelf], Any]]]:
    """Return title and maker of each page that a report can hold.

    Parameters
    ----------
    audits : mapping
        The results of the user's own audits, by name; "embeddings" shows them.
    """
    from app import PAGES as APP

    own = (SplitPage.title, partial(SplitPage, audits))
    return {**{name: APP[name] for name in PAGES}, "embeddings": own}


def file_facts(vector: Vector) -> dict[str, Any]:
    """Return what a report says of the file that a user's predictions were read from."""
    return {
        "name": vector.file or vector.title,
        "kind": "predictions",
        "sha256": vector.sha256,
        "content_hash": hash_of_arrays(vector.p, vector.y, vector.folds),
        "options": core.options_of("predictions", dict(vector.options)),
    }


def section_of(name: str, page: Any, *, title: str, note: str = "") -> Section:
    """Return what a report says of a page at its present state.

    Parameters
    ----------
    name : str
        One of `PAGES`.
    page : Viewer
    title : str
        What the page is called.
    note : str
        The author's own words, plain text.

    Examples
    --------
    >>> from dashboards.purity import PurityPage
    >>> page = PurityPage("?first=nassCDS__lr__honest&beside=none")
    >>> section = section_of("purity", page, title="Purity")
    >>> section.facts["verdict"]
    'At delta 0.05, k_min 50 and no ceiling the blind test says: not shown.'
    >>> [limit["name"] for limit in section.facts["limits"] if limit["applies"]]
    ['smooth leak below the ceiling']
    """
    kind = _KINDS[name]
    if kind.settle is not None:
        kind.settle(page)
    verdict, says = _heading(kind.heading(page))
    figures = tuple(kind.figures(page))
    tables = [part for of, text in kind.tables(page) for part in _tables(of, text)]
    facts = {
        "page": name,
        "title": title,
        "state": whole_state(name, page.state),
        "note": note,
        "subject": str(page.subject),
        "verdict": verdict,
        "says": says,
        "tables": tables,
        "parameters": _parameters(name, page),
        "data": kind.data(page),
        "limits": core.together(kind.limits(page)),
        "methods": kind.methods(page),
        "figures": [
            {
                "name": f.name,
                "title": f.title,
                "caption": export.sentences(f.caption, _says(f.of(page), f.name)),
            }
            for f in figures
        ],
    }
    told = tuple(map(str, page.state.told))
    return Section(facts, figures, page, told)


def _says(page: Any, figure: str) -> str:
    """Return a figure's source, where it is not the section's, and the state that decides it."""
    if hasattr(page, "says"):
        return str(page.says())
    source = getattr(page, "figure_sources", {}).get(figure, "")
    state = export.figure_state_says(page, figure)
    return export.sentences(f"Source: {source}" if source else "", f"State: {state}" if state else "")


def _stated(name: str, state: Any) -> list[str]:
    """Return the parameters that a report gives: all, but those of simulated arms that are not shown."""
    if name == "learn":  # a lesson is a world of its own; the controls stand idle
        return [n for n in state.names() if n == "step" or (state.step == WORLD and n != "present")]
    simulates = any(str(getattr(state, n)).startswith(SIMULATED) for n in state.names())
    return [n for n in state.names() if simulates or name != "purity" or n not in ARMS]


def whole_state(name: str, state: PageState) -> str:
    """Return a page's state as in a link, defaults and all: another version's defaults do not change the report.

    Examples
    --------
    >>> from dashboards.purity import PurityPage
    >>> whole_state("purity", PurityPage("?first=nassCDS__lr__honest&beside=none").state)
    'first=nassCDS__lr__honest&beside=none&third=none&delta=0.05&k_min=50&ceiling=off&epsilon=0.01&max_risk=0.9&alpha=0.001'
    """
    before, told, pairs = state.query(), state.told, []
    for parameter in _stated(name, state):
        value = getattr(state, parameter)
        text = f"{value:g}" if parameter in state.stops else str(value)
        pairs.append((parameter, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else text))
    whole = urlencode(pairs, safe=",:")
    same = state.read(whole) == [] and state.query() == before
    if not same:  # something stands at a default that no link can name
        state.read(before)
    state.told = told
    return whole if same else before


def _parameters(name: str, page: Any) -> list[list[str]]:
    """Return the state, label and value, whatever it is: the defaults too."""
    if name == "learn":
        return [[label, text] for label, text in page.shown().items()]
    state, rows = page.state, []
    for parameter in _stated(name, state):
        value = getattr(state, parameter)
        if isinstance(value, str) and value.startswith(OWN):
            rows.append([state.label(parameter), _name_of(page, value)])
            continue
        text = f"{value:g}" if isinstance(value, float) else str(value)
        if isinstance(value, (list, tuple)):
            text = ", ".join(map(str, value)) or "none"
        shown = text or "not chosen"
        if isinstance(value, str) and value:
            with suppress(KeyError, ValueError):
                told = state.title(parameter, value)
                shown = f"{told} ({text})" if told not in (text, "") else text
        rows.append([state.label(parameter), shown])
    return rows


def _name_of(page: Any, own: str) -> str:
    """Return what people call data of the user's own that a page shows: the file's name."""
    if own == OWN:  # on the page Whitening, the OOD rows of the file
        return str(page.state.title("ood", own))
    with suppress(KeyError, ValueError):
        told = "" if not hasattr(page, "shelf") else page.shelf.get(own).title
        if told:
            return str(told)
    return str(page.subject)


class SplitState(PageState):
    """The state of `SplitPage`."""

    audit: Any = param.Selector(default="", objects=[""], label="audit")
    gate = param.Number(0.95, label="gate")
    tau = param.Number(0.65, label="tau")

    chooses = ("audit",)
    brought = "embeddings"
    stops = {"gate": GATES, "tau": TAUS}


class SplitPage:
    """A user's own split, audited: what the page "Your embeddings" shows of it.

    Parameters
    ----------
    audits : mapping of str to dashboards.embeddings_result.Result
        By name.
    query : str
        As of a link.
    shelf : Shelf
    """

    title = "Your embeddings"
    figure_state = {"box": ("gate", "tau"), **dict.fromkeys(("contrast", "histograms", "spectrum"), ())}

    def __init__(self, audits: Mapping[str, Any], query: str, shelf: Shelf):
        self.state = SplitState()
        self.state.param["audit"].objects = ["", *audits]
        self.state.read(query)
        if not self.state.audit and not self.state.missing:
            raise InputError("the page embeddings needs an audit: give a file of features, and audit=own.")
        self.result = audits.get(self.state.audit)
        self.view = ResultView(lambda truth: None)
        if self.result is not None:
            self.view.result = self.result
            self.view.live.update_answers(result_answers(self.result))
            self.view.live.go(gate=self.state.gate, tau=self.state.tau)

    @property
    def subject(self) -> str:
        """What the file is called."""
        return self.result.audit.title if self.result is not None else ""

    def figure(self, name: str, backend: str = "bokeh") -> Any:
        """Return a figure as a HoloViews element; see `ResultView.figure`."""
        return self.view.figure(name, backend)


# ---- words and numbers, from a page's HTML

_BLOCKS = ("h1", "h2", "h3", "p", "div", "li", "ul", "table", "caption", "section")
_VOID = ("br", "img", "input", "hr", "line", "circle", "path", "rect")
_SKIPPED = ("svg", "script", "style", "button", "select")


class _Reader(HTMLParser):
    """Reads paragraphs and tables; what the page hides, and what is there to be pressed, is left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[tuple[str, str]] = []  # tag, text
        self.rows: list[tuple[bool, list[str]]] = []  # whether a row of headings, cells
        self._text: list[str] = []
        self._tag = "p"
        self._hidden: list[str] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._heads, self._is_heading = True, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self._put(" ")
        if tag in _VOID:
            return
        about = dict(attrs)
        classes = (about.get("class") or "").split()
        hidden = {"none", "off", "ideal", "aside"} & set(classes) or "hidden" in about
        if self._hidden or hidden or tag in _SKIPPED or about.get("role") == "alert":
            self._hidden.append(tag)
            return
        if tag == "tr":
            self._row, self._heads = [], True
        elif tag in ("td", "th"):
            self._cell = []
            self._heads = self._heads and not (tag == "th" and about.get("scope") == "row")
            self._is_heading = tag == "th"
        elif tag == "small" and self._cell is not None:
            self._cell.append("\n")
        elif tag in _BLOCKS and self._cell is None:
            self._flush(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if self._hidden:
            self._hidden.pop()
            return
        if tag in ("td", "th") and self._cell is not None and self._row is not None:
            text = _tidy("".join(self._cell))
            self._heads = self._heads and (self._is_heading or not text)
            self._row.append(text)
            self._cell = None
        elif tag == "tr" and self._row is not None:
            if any(self._row):
                self.rows.append((self._heads, self._row))
            self._row = None
        elif tag in _BLOCKS and self._cell is None:
            self._flush("p")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._put(data)

    def _put(self, data: str) -> None:
        (self._cell if self._cell is not None else self._text).append(data.replace("\n", " "))

    def _flush(self, tag: str) -> None:
        text = _tidy("".join(self._text))
        if text:
            self.paragraphs.append((self._tag, text))
        self._text, self._tag = [], tag


def _tidy(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    joined = "\n".join(line for line in lines if line)
    return joined.replace(" .", ".").replace(" ,", ",").replace(" ;", ";")


def read_html(text: str) -> _Reader:
    """Read the paragraphs and the rows of tables of a piece of HTML.

    Examples
    --------
    >>> read = read_html('<h1>At <b>0.6</b></h1><p>Caf&eacute; &lt;b&gt;</p><table><tr><th scope="row">n</th><td>3<small>of 4</small></td></tr></table>')
    >>> read.paragraphs, read.rows
    ([('h1', 'At 0.6'), ('p', 'Café <b>')], [(False, ['n', '3\\nof 4'])])
    """
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader._flush("p")
    return reader


def _heading(text: str) -> tuple[str, list[str]]:
    """Return the sentence on top, and the paragraphs below it."""
    paragraphs = read_html(text).paragraphs
    top = [words for tag, words in paragraphs if tag == "h1"]
    below = sorted((tag != "div", i, words) for i, (tag, words) in enumerate(paragraphs) if tag != "h1")
    return " ".join(top), [words for _, _, words in below]  # what is said of each vector first


def _tables(title: str, text: str) -> list[dict[str, Any]]:
    """Return a table as the document holds it; columns in which nothing stands are left out."""
    read = read_html(text)
    rows = [cells for heads, cells in read.rows if not heads]
    if not rows:
        return []
    headers = [cells for heads, cells in read.rows if heads]
    width = max(map(len, [*rows, *headers]))
    filled = [[*cells, *[""] * (width - len(cells))] for cells in rows]
    header = [*headers[0], *[""] * (width - len(headers[0]))] if headers else [""] * width
    kept = [i for i in range(width) if any(row[i] for row in filled)]
    return [
        {
            "title": title,
            "header": [header[i] for i in kept] if headers else [],
            "rows": [[row[i] for i in kept] for row in filled],
        }
    ]


# ---- data


@lru_cache(maxsize=256)
def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a shipped file, once per process."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _data(page: Any, files: Sequence[str]) -> list[dict[str, Any]]:
    """Return where a page's numbers are from, with the shipped file, if there is one for each."""
    found = sources(page)
    named = [*files, *[""] * (len(found) - len(files))]
    rows = []
    for source, file in zip(found, named, strict=False):
        path = data_dir() / file if file else None
        here = path is not None and path.is_file()
        rows.append(
            {
                "title": source.title,
                "source": _unhashed(source.source),
                "content_hash": source.content_hash,
                "file": f"data/{file}" if here else "",
                "sha256": sha256_of(path) if here and path is not None else "",
            }
        )
    return rows


def _unhashed(source: str) -> str:
    """Return a line of provenance without the short hash of the numbers: a report has the whole one beside it.

    Examples
    --------
    >>> _unhashed("your file 'a': k 50; SHA-256 of the numbers 9b21730bc41c")
    "your file 'a': k 50"
    """
    return re.sub(r"; SHA-256 of the numbers [0-9a-f]{12}$", "", source)


def _predictions_data(vectors: Sequence[Vector], page: Any) -> list[dict[str, Any]]:
    """Return where predictions are from; of a user's file, which answer was taken for the event, too."""
    rows = _data(page, _vector_files([v.name for v in vectors]))
    events = [dict(v.options).get("positive", "1") if v.name.startswith(OWN) else "" for v in vectors]
    return [
        {**row, "source": f"{row['source']}; positive class {event}"} if event else row
        for row, event in zip(rows, events, strict=True)
    ]


def _battery_file(name: str) -> str:
    return {batteries.PUBLISHED: "published/battery_table12.csv", batteries.COMPUTED: "battery/grey.nc"}.get(
        name, ""
    )


# ---- the pages


class Kind(NamedTuple):
    """How a page is read: functions of the page."""

    heading: Callable[[Any], str]
    tables: Callable[[Any], list[tuple[str, str]]]
    figures: Callable[[Any], list[Figure]]
    data: Callable[[Any], list[dict[str, Any]]]
    limits: Callable[[Any], list[core.Limit]]
    methods: Callable[[Any], list[str]]
    settle: Callable[[Any], object] | None = None  # before it is read


def _detail_figures(page: Any) -> list[Figure]:
    """Return the figures of the setting that is chosen; none where none is, or its scores are not here."""
    detail = page.detail
    if detail is None or detail.detail is None:
        return []
    colours = "Grey: ID test rows. Colour: OOD rows"
    return [
        Figure(
            name, f"{name_of(detail)}, {detail_figures.TITLES[name]}", (100, 75),
            f"{name_of(detail)}. "
            + ("Solid: Mahalanobis. Dashed: kNN. Dotted: oracle LDA" if name == "roc" else f"{detail_figures.TITLES[name]}. {colours}"),
            small=True, part="detail",
        )
        for name in detail_figures.FIGURES
    ]  # fmt: skip


def name_of(detail: Any) -> str:
    """Return what a detail calls its setting."""
    return " ".join(words for _, words in read_html(detail.live.text("title")).paragraphs)


def _fingerprint_figures(page: Any) -> list[Figure]:
    known = {
        "scatter": Figure(
            "scatter", fingerprint_figures.FIGURES["scatter"], export.SIZE,
            "Each mark is a setting; filled: the rule fires; ringed: an error. The box is where it fires",
        ),
        "map": Figure(
            "map", fingerprint_figures.FIGURES["map"], (120, 80),
            f"At each gate and tau, {fingerprint_figures.METRICS[page.state.metric][1]}. The ring is where the sliders stand, the "
            "cross is what the paper fixed beforehand (0.95, 0.65)", small=True,
        ),
        "rates": Figure(
            "rates", fingerprint_figures.FIGURES["rates"], (120, 80), fingerprint_figures.RATES_SAY, small=True,
        ),
        "area": Figure(
            "area", fingerprint_figures.FIGURES["area"], (120, 80),
            "AUROC of the fingerprint score, leaks against clean settings. Band: DeLong 95 %", small=True,
        ),
        "contrast": Figure(
            "contrast", fingerprint_figures.FIGURES["contrast"], (200, 85),
            "Matched pairs: best-unsup of the leaked and of the excluded class",
        ),
    }  # fmt: skip
    found = [known[name] for name in page.figure_names()]
    return [*sorted(found, key=lambda figure: figure.small), *_detail_figures(page)]


def _whitening_heading(page: Any) -> str:
    """Return the page's heading, with the fit set of which its numbers are before them."""
    state = page.state
    audit = state.audit()
    of = {
        "without": "Fitted without the OOD class: ",
        "chosen": f"Fitted on chosen classes ({', '.join(map(str, state.classes))}): ",
    }.get(state.fit, "Fitted on all rows of the fit set: ")
    top, below = _heading(page._heading())
    text = f"<h1>{html.escape(of + top[:1].lower() + top[1:])}</h1>"
    text += "".join(f"<p>{html.escape(words)}</p>" for words in below)
    if audit is not None and audit.without is not None and state.fit == "without":
        text += (
            "<p>The fit set as it was given holds rows of the OOD class; they are left out here, and these numbers are not of "
            "the fit set as given.</p>"
        )
    return text


def _whitening_data(page: Any) -> list[dict[str, Any]]:
    rows = _data(page, [f"battery/grey.{page.state.features}.nc"])
    audit = page.state.audit()
    return _of_file(rows, audit.file if audit is not None else "")


def _of_file(rows: list[dict[str, Any]], file: Any) -> list[dict[str, Any]]:
    """Return the data of a page that shows one file of the user's, with the hash of all the numbers that were read from it."""
    return rows if isinstance(file, str) else [{**row, "content_hash": file["content_hash"]} for row in rows]


def _show_chosen(page: Any) -> None:
    """Have the page "In the wild" work out the setting that is chosen, if it was computed here."""
    here = page.state.chosen in page.detail.battery.dataset["setting"].values
    page.detail.show_setting(page.state.chosen if here else "")


def _whitening_limits(page: Any) -> list[core.Limit]:
    case = page._case
    return [
        *core.limits_of_features(
            int(case.fit.count), len(case.fit.mean), len(case.id_test), len(case.ood_test)
        ),
        core.Limit(
            "best alpha needs labels",
            True,
            "The best alpha is chosen by the labels of the OOD rows, which nobody has beforehand; Ledoit and Wolf's needs none.",
        ),
    ]


def _limit_of_sources_computed() -> core.Limit:
    battery = own_settings()
    n, backbones = battery.sizes["setting"], len(set(battery["backbone"].values.tolist()))
    return core.Limit(
        "dependent settings",
        n > backbones,
        f"The {n} settings that were computed here are other sources on {backbones} backbones, not {n} independent draws: a "
        "count holds within this design, not for benchmarks at large.",
    )


def _vectors(page: Any) -> list[Vector]:
    return list(dict.fromkeys(v for v in page._vectors if v is not None))


def _vector_files(names: Sequence[str]) -> list[str]:
    return [f"predictions/{name}.parquet" if name in shipped_names() else "" for name in names]


def _purity_limits(page: Any) -> list[core.Limit]:
    vectors, tests = _vectors(page), page.answer()
    limits: list[core.Limit] = []
    for vector in vectors:
        limits += core.limits_of_predictions(
            tests[vector.name],
            whose=vector.title if len(vectors) > 1 else "",
            simulated=vector.name.startswith(SIMULATED),
        )
    return limits


def _calibration_limits(page: Any) -> list[core.Limit]:
    vector, state = page.vector, page.state
    limits = core.limits_of_predictions(
        blind_test_ranked(vector.ranked), simulated=vector.name.startswith(SIMULATED)
    )
    method, fit = own_key(vector, state.method, state.fit)
    same = method != "none" and fit == "same"
    words = (
        "The recalibration is fitted on the rows that it is judged on: calibration looks better than it would on other "
        "rows, and the dispersion z is not a standard normal."
    )
    return [*limits, core.Limit("recalibrated on the same data", same, words if same else "")]


def _lodo_figures(page: Any) -> list[Figure]:
    ablated = page.shown.ablation
    random = ". Grey: range and, dotted, mean of as many features taken away at random, source left out"
    captions = {
        "gap": "Per source, with the source left out and, where that is given, with it known to the model; lines: 95 % intervals",
        "known": "AUROC of the positives of one source against the negatives of another; framed: within a source",
        "left-out": "The same, with each source left out once",
        "composition": "Rows of each source, by label",
        "retention": "Each mark is a feature; left of the line is less than the threshold. Colour and mark: the source that it hangs on",
        "ablation": "Bars: 95 % intervals (DeLong)"
        + (random if ablated is not None and ablated.sizes["draw"] else ""),
        "explanation": f"Row {page.state.row}, the features that lead its score. Light: attribution, coefficient times the "
        "standardised value. Full: times retention",
    }
    rows_high = float(np.clip(50 + 6 * page.answer().sizes["source"], 70, 110))
    return [
        Figure(
            name,
            lodo_figures.FIGURES[name],
            (150, rows_high if name in ("gap", "composition") else 110),
            caption,
        )
        for name, caption in captions.items()
        if page._picture(name) is not None
    ]


def _lodo_data(page: Any) -> list[dict[str, Any]]:
    shown = page.shown
    own = str(shown.case).startswith(OWN)
    rows = _data(page, ["" if own else f"lodo/{shown.case}__{shown.model}.nc"])
    read = page.answer().attrs.get("source_hash")  # of the table, which is the file's
    return [{**row, "content_hash": read} for row in rows] if own and read else rows


def _learn_figures(page: Any) -> list[Figure]:
    said = (_words_of(page, name) for name in ("levels_caption", "line_caption", "away_says"))
    drawn = " ".join(filter(None, said))
    captions = {
        "plane": f"Simulated rows of two features; crosses: centres. {drawn}".strip(),
        "histograms": f"Test rows, {_words_of(page, 'unit_says')}. Grey: known classes. Colour: the OOD class",
        "roc": "Of the detector: the area below the line is its AUROC. Dotted: a coin",
        "box": "In the box the rule fires. Rings: the class in the fit set, and out of it",
        "reliability": "Groups of equally many records: how many of each have the event. Dotted: as many as predicted",
        "purity": "Of the k records with the highest risk, the share that has the event",
    }
    return [
        Figure(
            name, mechanism_figures.FIGURES[name], (120, 90) if name == "plane" else (90, 75), captions[name],
            small=name != "plane",
        )
        for name in page.views()
    ]  # fmt: skip


def _words_of(page: Any, name: str) -> str:
    """Return a text of a page's table, without its marks."""
    return " ".join(words for _, words in read_html(page.live.text(name)).paragraphs)


def _learn_heading(page: Any) -> str:
    if page.state.step == WORLD:
        return str(page._headline().object)
    top, *below = map(html.escape, page.words())
    return f"<h1>{top}</h1>{''.join(f'<p>{words}</p>' for words in below)}"


def _read_of(page: Any) -> list[tuple[str, str]]:
    views, t = page.views(), page.live.text
    if not views:
        return []
    if "purity" in views:
        return [("What the blind test sees of each model", twins_table(twins(), told=2))]
    rows = [
        ("line, with labels: AUROC", "oracle_says", "oracle_interval_says"),
        ("detector, without: AUROC", "auroc_says", "interval_says"),
    ][: 1 if views == ("plane",) else 2]
    cells = "".join(
        f'<tr><th scope="row">{label}</th><td>{t(value)}</td><td>{t(interval)}</td></tr>'
        for label, value, interval in rows
    )
    return [("In numbers, with 95 % intervals", f"<table>{cells}</table>")]


def _simulated(page: Any) -> list[core.Limit]:
    words = "The rows are simulated; they show how a leak comes about and say nothing of any data."
    shown = bool(page.views())
    return [core.Limit("simulated data", shown, words if shown else "")]


def _learn_methods(page: Any) -> list[str]:
    views = page.views()
    if not views:
        return []
    if "purity" in views:
        return ["blind", "spiegelhalter", "platt"]
    return ["fingerprint", "mahalanobis", "ledoit-wolf", "delong", *(["knn"] if "box" in views else [])]


_KINDS: dict[str, Kind] = {
    "fingerprint": Kind(
        lambda page: page._heading(),
        lambda page: [
            ("What it gets right, with Wilson 95 % intervals", page._read_outs()),
            (
                "AUROC of the fingerprint score, leaks against clean settings",
                f'<table><tr><th scope="row">with the gate</th><td>{page.live.text("area")}</td>'
                f'<td>{page.live.text("area_interval")}</td></tr><tr><th scope="row">without</th>'
                f'<td>{page.live.text("area_ungated")}</td><td></td></tr></table>'
                if {"leak", "clean"} <= set(page.groups)
                else "",
            ),
        ],
        _fingerprint_figures,
        lambda page: _data(page, [_battery_file(page.shown_battery.name)]),
        lambda page: core.limits_of_battery(
            page._subset(), published=page.shown_battery.name == batteries.PUBLISHED
        ),
        lambda page: ["fingerprint", "mahalanobis", "knn", "wilson", "delong", *(["ledoit-wolf"] if page.rich else [])],
        lambda page: page._show_detail(),
    ),
    "whitening": Kind(
        _whitening_heading,
        lambda page: [("In numbers, with 95 % intervals", page._numbers())],
        lambda page: [
            Figure("auroc", whitening_figures.FIGURES["auroc"], (150, 85), "Band: DeLong 95 %. The marks: this alpha, Ledoit and Wolf's, the best"),
            Figure("histograms", whitening_figures.FIGURES["histograms"], (110, 75), "Grey: ID test rows. Colour: OOD rows", small=True),
            Figure("spectrum", whitening_figures.FIGURES["spectrum"], (110, 75), "Dashed: of the fit set. Solid: shrunk at this alpha. Shaded: the tenths of most and least variance", small=True),
            Figure("budget", whitening_figures.FIGURES["budget"], (110, 75), "Rings: share of the signal, as Euclidean distance spends its budget. Dots: Mahalanobis at this alpha. Shaded: the tenths of most and least variance", small=True),
            Figure("cumulated", whitening_figures.FIGURES["cumulated"], (110, 75), "Dashed: Euclidean, which is the signal. Solid: Mahalanobis at this alpha", small=True),
        ],
        _whitening_data,
        _whitening_limits,
        lambda page: ["fingerprint", "ledoit-wolf", "mahalanobis", "delong"],
    ),
    "audit": Kind(
        lambda page: page._heading(),
        lambda page: [],
        lambda page: [
            Figure("published", audit_figures.FIGURES["published"], (150, 100), "Clean by construction, but for Memo, which was leaked: whatever else lies in the box is a false alarm"),
            Figure("own", audit_figures.FIGURES["own"], (150, 100), "Clean by construction: what lies in the box is a false alarm"),
            Figure("pairs", audit_figures.FIGURES["pairs"], (120, 95), "In, out: the class inside the fit set, and left out of it. Left: the neighbourhood index. Right: best-unsup of the same classes; the line is tau. Thicker: the backbone retrained without the class", small=True),
            Figure("spaces", audit_figures.FIGURES["spaces"], (120, 95), "On the dotted line both spaces see as much. Filled: the rule fires in signature space", small=True),
            Figure("index", audit_figures.FIGURES["index"], (120, 70), "Each mark is a setting. Bars: means", small=True),
            *_detail_figures(page),
        ],
        lambda page: _data(page, [_battery_file(batteries.PUBLISHED), _battery_file(batteries.COMPUTED)]),
        lambda page: [
            _limit_of_sources_computed(),
            core.Limit(
                "published figures not recomputed",
                True,
                "The published settings are quoted as printed; some are given as a range or as “about 1” only.",
            ),
        ],
        lambda page: ["fingerprint", "mahalanobis", "knn", "neighbourhood"],
        _show_chosen,
    ),
    "purity": Kind(
        lambda page: page._heading(),
        lambda page: [
            ("The evidence, with 95 % intervals", _with_titles(page, page._evidence())),
            ("How often honest rankings convict", page._rates()),
        ],
        lambda page: [
            Figure(
                "purity", purity_figures.TITLE, export.SIZE,
                "A curve that is inside the shaded box at a cut convicts. A mark with its number is the end of a pure head; "
                "dotted, level: the base rate",
            ),
            Figure(
                "certification", "How long must a pure head be?", (120, 80),
                "How often an honest ranking convicts, if no honest risk exceeds M. Solid: the true rate, exact, at this delta, for a "
                "head at any rank from k_min on. Dashed: the formula M^k_min, which holds for delta 0 only. Dotted: alpha; ring: "
                "the k_min that it needs",
            ),
            Figure(
                "graded", "A leak that grows: from which severity does it show?", (260, 65),
                "Not of the predictions above: flchain, logistic regression, told who died within so many days after the baseline; "
                "0 days is the honest model. Grey: breadth of two honest models over each other. Dashed: k_min",
            ),
        ],
        lambda page: _predictions_data(_vectors(page), page),
        _purity_limits,
        lambda page: ["blind", "delong", "clopper-pearson", "spiegelhalter"],
    ),
    "calibration": Kind(
        lambda page: page._heading(),
        lambda page: [
            (
                "In numbers, with 95 % intervals, and the value if calibrated. Isotonic fits push miscalibration and "
                "discrimination up, so that their bootstrap intervals can miss them",
                page._numbers(),
            )
        ],
        lambda page: [
            Figure(
                "reliability", calibration_figures.TITLES["reliability"], (150, 110),
                "Points: bins with Wilson 95 % intervals. Line: isotonic (CORP), with its band under calibration. Bars: how many records",
            ),
            Figure("dispersion", calibration_figures.TITLES["dispersion"], (150, 80), "Two weights, two marks, at |z|; beyond the line at 1.96 risks are out of line with calibration. Beside a mark: z with its sign, and after the dot how many effective records carry it; “refused”: fewer than 30, so that it is not tested"),
            Figure("benefit", calibration_figures.TITLES["benefit"], (130, 90), "Thick: this vector. Thin: as given. Dashed: treat all. Dotted: treat none", small=True),
            Figure("weight", calibration_figures.TITLES["weight"], (130, 90), "The weight of thresholds, relative to its largest value", small=True),
        ],
        lambda page: _predictions_data([page.vector], page),
        _calibration_limits,
        lambda page: [
            "blind", "spiegelhalter", "corp", "net-benefit", "delong", "wilson",
            *(["platt"] if page.state.method == "platt" else []),
        ],
    ),
    "lodo": Kind(
        lambda page: page._heading(),
        lambda page: [
            (
                "In numbers, weighted by rows" if page.shown.published else "In numbers, with 95 % intervals",
                page._numbers(),
            ),
            page.hanging_table(),
        ],
        _lodo_figures,
        _lodo_data,
        lambda page: core.limits_of_sources(
            page.answer().sel(classifier=page.shown.model) if page.shown.published else page.answer(),
            published=bool(page.shown.published),
        ),
        lambda page: ["lodo", *([] if page.shown.published else ["delong", "wilson"])],
    ),
    "learn": Kind(
        _learn_heading,
        _read_of,
        _learn_figures,
        lambda page: _data(page, []),
        _simulated,
        _learn_methods,
        lambda page: page.reveal(),
    ),
}  # fmt: skip


def _split_heading(page: Any) -> str:
    paragraphs = "".join(f"<p>{html.escape(p)}</p>" for p in explain(page.result.answer).split("\n\n"))
    facts, known = page.result.answer.attrs, ""
    if facts["n_designated"] > 0:  # what is known by the labels comes before what the scores make of it
        known = (
            f"By its labels the fit set holds {facts['n_designated']:,} rows of the OOD class "
            f"({html.escape(str(facts['ood_class']))}): a leak. "
        )
    return f"<h1>{known}{page.view.heading()}</h1>{paragraphs}"


def _split_figures(page: Any) -> list[Figure]:
    both = "contrast" in page.result.answer
    given = "The fit set as given"
    pair = f"{given}, and, joined to it, without the OOD class" if both else given
    found = [
        Figure("box", SPLIT_FIGURES["box"], (120, 95), f"{pair}. Large marks: mean of three seeds; dots: the seeds. The box is where the rule fires"),
        Figure("contrast", SPLIT_FIGURES["contrast"], (120, 65), "Each AUROC twice: of the fit set as given, and without the OOD class. Lines: 95 % intervals (DeLong), mean of the seeds"),
        Figure("histograms", SPLIT_FIGURES["histograms"], (110, 75), f"{given}. Grey: ID test rows. Colour: OOD rows", small=True),
        Figure("spectrum", SPLIT_FIGURES["spectrum"], (110, 75), f"{given}. Dashed: its eigenvalues. Solid: shrunk at the alpha in use. Shaded: the tenths of most and least variance", small=True),
    ]  # fmt: skip
    return [figure for figure in found if both or figure.name != "contrast"]


def _split_data(page: Any) -> list[dict[str, Any]]:
    audit = page.result.audit
    return [
        {
            "title": audit.title,
            "source": _unhashed(page.result.source),
            "content_hash": hash_of_arrays(audit.id_test, audit.ood_test)
            if isinstance(audit.file, str)
            else audit.file["content_hash"],
            "file": "",
            "sha256": "",
        }
    ]


def _split_limits(page: Any) -> list[core.Limit]:
    audit, attrs = page.result.audit, page.result.answer.attrs
    without = ""
    if attrs["n_designated"] < 0:
        without = (
            "Nobody said which classes the fit rows are of: whether the class was left out, and what leaving it out would "
            "change, cannot be told."
        )
    return core.limits_of_features(
        int(audit.fit.count), len(audit.fit.mean), len(audit.id_test), len(audit.ood_test),
        rows_without=without, seeds=page.result.answer.sizes["seed"],
    )  # fmt: skip


_KINDS["embeddings"] = Kind(
    _split_heading,
    lambda page: [("AUROC of every score, with 95 % intervals, mean of three seeds", page.view._table())],
    _split_figures,
    _split_data,
    _split_limits,
    lambda page: ["fingerprint", "mahalanobis", "knn", "ledoit-wolf", "delong", "neighbourhood"],
)


def _with_titles(page: Any, text: str) -> str:
    """Put the vectors' names where the page has their lines as a heading."""
    titles = ["" if v is None else html.escape(v.title) for v in page._vectors]
    for which, title in zip(("first", "second", "third"), titles, strict=True):
        start = text.find(f'aria-label="{which}"')
        if start >= 0 and title:
            end = text.find("</th>", start)
            text = text[:end] + title + text[end:]
    return text
