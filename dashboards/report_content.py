"""What a report says of a page at a state: its words, its numbers, its limits, and its figures.

A page's own sentences and tables are taken as they stand on the screen, so that the two cannot disagree. What
limits a result is computed from it, by `leakviz.report`.
"""

from __future__ import annotations

import hashlib
import html
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
from dashboards.figures import fingerprint as fingerprint_figures
from dashboards.figures import lodo as lodo_figures
from dashboards.figures import mechanism as mechanism_figures
from dashboards.figures import purity as purity_figures
from dashboards.figures import whitening as whitening_figures
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
    """

    name: str
    title: str
    size: tuple[float, float]
    caption: str


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
                "caption": export.sentences(f.caption, _says(page, f.name)),
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


def _stated(name: str, state: PageState) -> list[str]:
    """Return the parameters that a report gives: all, but those of simulated arms that are not shown."""
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
    state, rows = page.state, []
    for parameter in _stated(name, state):
        value = getattr(state, parameter)
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
                "source": source.source,
                "content_hash": source.content_hash,
                "file": f"data/{file}" if here else "",
                "sha256": sha256_of(path) if here and path is not None else "",
            }
        )
    return rows


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


def _fingerprint_figures(page: Any) -> list[Figure]:
    known = {
        "scatter": Figure(
            "scatter", fingerprint_figures.FIGURES["scatter"], export.SIZE,
            "Each mark is a setting; filled: the rule fires; ringed: an error. The box is where it fires",
        ),
        "rates": Figure(
            "rates", fingerprint_figures.FIGURES["rates"], (120, 80), fingerprint_figures.RATES_SAY,
        ),
        "area": Figure(
            "area", fingerprint_figures.FIGURES["area"], (120, 80),
            "AUROC of the fingerprint score, leaks against clean settings. Band: DeLong 95 %",
        ),
        "contrast": Figure(
            "contrast", fingerprint_figures.FIGURES["contrast"], (200, 85),
            "Matched pairs: best-unsup of the leaked and of the excluded class",
        ),
    }  # fmt: skip
    return [known[name] for name in page.figure_names() if name in known]


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
    file = "" if str(shown.case).startswith(OWN) else f"lodo/{shown.case}__{shown.model}.nc"
    return _data(page, [file])


def _learn_figures(page: Any) -> list[Figure]:
    captions = {
        "plane": "Simulated rows of two features, and level lines of what the detector finds familiar",
        "histograms": "Grey: ID test rows. Colour: OOD rows",
        "roc": "The line with labels, and the detector without",
    }
    sizes = {"plane": (120, 90)}
    return [
        Figure(n, mechanism_figures.FIGURES[n], sizes.get(n, (90, 75)), text) for n, text in captions.items()
    ]


def _read_of(page: Any) -> list[tuple[str, str]]:
    t = page.live.text
    rows = (
        ("line, with labels: AUROC", "oracle_says", "oracle_interval_says"),
        ("detector, without: AUROC", "auroc_says", "interval_says"),
    )
    cells = "".join(
        f'<tr><th scope="row">{label}</th><td>{t(value)}</td><td>{t(interval)}</td></tr>'
        for label, value, interval in rows
    )
    return [("In numbers, with 95 % intervals", f"<table>{cells}</table>")]


def _simulated() -> list[core.Limit]:
    return [
        core.Limit(
            "simulated data",
            True,
            "The rows are simulated, in two dimensions; they show how a leak comes about and say nothing of any data.",
        )
    ]


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
    ),
    "whitening": Kind(
        lambda page: page._heading(),
        lambda page: [("In numbers, with 95 % intervals", page._numbers())],
        lambda page: [
            Figure("auroc", whitening_figures.FIGURES["auroc"], (150, 85), "Band: DeLong 95 %. The marks: this alpha, Ledoit and Wolf's, the best"),
            Figure("spectrum", whitening_figures.FIGURES["spectrum"], (110, 75), "Dashed: of the fit set. Solid: shrunk at this alpha. Shaded: the tenths of most and least variance"),
            Figure("cumulated", whitening_figures.FIGURES["cumulated"], (110, 75), "Dashed: Euclidean, which is the signal. Solid: Mahalanobis at this alpha"),
        ],
        lambda page: _data(page, [f"battery/grey.{page.state.features}.nc"]),
        _whitening_limits,
        lambda page: ["fingerprint", "ledoit-wolf", "mahalanobis", "delong"],
    ),
    "audit": Kind(
        lambda page: page._heading(),
        lambda page: [],
        lambda page: [
            Figure("published", audit_figures.FIGURES["published"], (150, 100), "Clean by construction, but for Memo, which was leaked: whatever else lies in the box is a false alarm"),
            Figure("own", audit_figures.FIGURES["own"], (150, 100), "Clean by construction: what lies in the box is a false alarm"),
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
        lambda page: ["fingerprint", "mahalanobis", "knn"],
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
            )
        ],
        lambda page: _data(page, _vector_files([v.name for v in _vectors(page)])),
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
            Figure("benefit", calibration_figures.TITLES["benefit"], (150, 90), "Beside it: to treat all, and to treat none"),
        ],
        lambda page: _data(page, _vector_files([page.vector.name])),
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
            )
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
        lambda page: page._headline().object,
        _read_of,
        _learn_figures,
        lambda page: _data(page, []),
        lambda page: _simulated(),
        lambda page: ["fingerprint", "mahalanobis", "ledoit-wolf", "delong"],
    ),
}  # fmt: skip


def _split_heading(page: Any) -> str:
    paragraphs = "".join(f"<p>{html.escape(p)}</p>" for p in explain(page.result.answer).split("\n\n"))
    return f"<h1>{page.view.heading()}</h1>{paragraphs}"


def _split_figures(page: Any) -> list[Figure]:
    both = "contrast" in page.result.answer
    found = [
        Figure("box", SPLIT_FIGURES["box"], (120, 95), "Large marks: mean of three seeds; dots: the seeds. The box is where the rule fires"),
        Figure("contrast", SPLIT_FIGURES["contrast"], (120, 65), "Lines: 95 % intervals (DeLong), mean of the seeds"),
        Figure("histograms", SPLIT_FIGURES["histograms"], (110, 75), "Grey: ID test rows. Colour: OOD rows"),
        Figure("spectrum", SPLIT_FIGURES["spectrum"], (110, 75), "Dashed: of the fit set. Solid: shrunk at the alpha in use. Shaded: the tenths of most and least variance"),
    ]  # fmt: skip
    return [figure for figure in found if both or figure.name != "contrast"]


def _split_data(page: Any) -> list[dict[str, Any]]:
    audit = page.result.audit
    return [
        {
            "title": audit.title,
            "source": page.result.source,
            "content_hash": hash_of_arrays(audit.id_test, audit.ood_test),
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
