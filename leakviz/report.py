"""A report as data: what is in it, which limits apply to its results, and how it is made again. Nothing is drawn.

A report is a document of plain values that `SCHEMA` describes. ``leakviz report`` and the page "Report" fill it
from pages at a state; ``report.json`` is that document, and ``leakviz report --from report.json`` makes the same
report again. Of a file that a user brings, the document holds the name, the hashes and how it was read.
"""

from __future__ import annotations

import csv
import io
import json
import platform
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date as calendar
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import xarray as xr

from leakviz.blind import DECISIONS, BlindTest, fewest_events
from leakviz.errors import InputError

VERSION = 1
"""Of the schema; a document of a newer one is refused."""

MAX_BYTES = 20_000_000
FEW_EVENTS = 100  # with or without the event; the usual minimum for validating a model of risks
FEW_SOURCES = 5
FEW_SETTINGS = 30  # of one kind: a Wilson interval is then up to a third wide

READERS = {
    "predictions": ("p", "y", "positive", "scale", "missing", "fold", "delimiter", "encoding", "sheet"),
    "embeddings": (
        *("fit", "id_test", "ood_test", "fit_labels", "id_test_labels", "ood_class"),
        *("role_column", "label_column", "shrinkage", "k", "overlap", "regime"),
    ),
    "battery": (),
    "sources": (
        *("label", "source", "positive", "features", "groups", "missing", "model"),
        *("delimiter", "encoding", "sheet"),
    ),
}
"""The kinds of a user's file, and the options that say how it is read, in the order in which a report has them."""

PACKAGES = (
    *("leakviz", "numpy", "scipy", "pandas", "scikit-learn", "xarray"),
    *("panel", "bokeh", "holoviews", "matplotlib", "pypdf"),
)


def _text(longest: int = 2_000, **more: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest, **more}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most}


_HASH = _text(64, pattern="^([0-9a-f]{64})?$")
_CELL = _text(1_000)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "leakviz report",
    "description": "A report of leakviz: results of pages at a state, with data, limits and methods.",
    "version": VERSION,
    **_object(
        schema={"const": "leakviz.report", "description": "What kind of document this is."},
        version={"const": VERSION, "description": "Of this schema."},
        title=_text(300),
        author=_text(300, description="Empty if nobody is named."),
        date=_text(10, pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="Of the report."),
        notes=_text(20_000, description="The author's own words on the whole; plain text."),
        command=_text(60_000, description="The command line that makes this report; empty where none does."),
        no_command=_text(4_000, description="Why no command makes it. May be left out."),
        versions={
            "type": "object",
            "additionalProperties": _text(100),
            "description": "Python, and the packages that compute and draw.",
        },
        files={
            **_list(
                _object(
                    name=_text(1_000, description="Of the user's file; its rows are not in the report."),
                    kind={"enum": list(READERS)},
                    sha256={**_HASH, "description": "Of the file's bytes; empty where they are not known."},
                    content_hash={**_HASH, "description": "Of the numbers that were read from it."},
                    options={
                        "type": "object",
                        "additionalProperties": _text(1_000),
                        "description": "How the reader was told to read it.",
                    },
                ),
                20,
            ),
            "description": "The user's own files.",
        },
        sections=_list(
            _object(
                page=_text(40, pattern="^[a-z]+$"),
                title=_text(200),
                state=_text(4_000, description="As in a link to the page."),
                note=_text(20_000, description="The author's own words on this section; plain text."),
                subject=_text(1_000, description="What data the page shows."),
                verdict=_text(4_000, description="The sentence on top of the page."),
                says=_list(_text(4_000), 50),
                tables=_list(
                    _object(title=_text(300), header=_list(_CELL, 20), rows=_list(_list(_CELL, 20), 500)), 20
                ),
                parameters=_list(_list(_CELL, 2), 100),
                data=_list(
                    _object(
                        title=_text(1_000),
                        source=_text(4_000),
                        content_hash={**_HASH, "description": "Of the numbers."},
                        file=_text(1_000, description="In leakviz's data, or the user's; may be empty."),
                        sha256={**_HASH, "description": "Of that file's bytes; may be empty."},
                    ),
                    50,
                ),
                limits=_list(
                    _object(
                        name=_text(200),
                        applies={"type": "boolean"},
                        words=_text(2_000, description="Empty where it does not apply."),
                    ),
                    100,
                ),
                methods=_list(_text(60), 50),
                figures=_list(_object(name=_text(60), title=_text(300), caption=_text(4_000)), 20),
            ),
            50,
        ),
    ),
}
SCHEMA["required"].remove("no_command")  # reports that were written before it are read
"""JSON Schema (draft 2020-12) of ``report.json``; its `version` is `VERSION`."""


def options_of(kind: str, given: Mapping[str, str | None]) -> dict[str, str]:
    """Return the options that a reader knows, in its order; those that say nothing are left out.

    Parameters
    ----------
    kind : str
        A key of `READERS`.
    given : mapping of str to str or None

    Examples
    --------
    >>> options_of("sources", {"source": "site", "label": "died", "missing": "", "p": "risk"})
    {'label': 'died', 'source': 'site'}
    """
    return {name: text for name in READERS[kind] if (text := given.get(name))}


def listed(names: Iterable[str]) -> str:
    """Write names as one text with commas between; a name that holds a comma is in quotation marks.

    Examples
    --------
    >>> listed(["fox", "cat, wild"]), names_of(listed(["fox", "cat, wild"]))
    ('fox,"cat, wild"', ['fox', 'cat, wild'])
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def names_of(text: str) -> list[str]:
    """Read what `listed` wrote."""
    return next(csv.reader([text]))


# ---- the document


def read_report(text: str | bytes, *, name: str = "report.json") -> dict[str, Any]:
    """Read a report from JSON, and check all of it.

    Parameters
    ----------
    text : str or bytes
    name : str
        What to call it where something is wrong.

    Returns
    -------
    dict
        As `SCHEMA` describes it.

    Raises
    ------
    InputError
        If it is no JSON, not a report, of a newer schema, or not as the schema says; the message names the place.

    Examples
    --------
    >>> read_report('{"schema": "leakviz.report", "version": 2}')
    Traceback (most recent call last):
        ...
    leakviz.errors.InputError: report.json is of version 2 of the report's schema, and this leakviz reads version 1. Update leakviz, or make the report again with this one.
    """
    if len(text) > MAX_BYTES:
        raise InputError(f"{name} is larger than {MAX_BYTES // 1_000_000} MB; that is no report of leakviz.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is no JSON ({str(error)[:200]}). Give what --json of leakviz report wrote."
        ) from error
    if not isinstance(document, dict) or document.get("schema") != "leakviz.report":
        raise InputError(f'{name} is no report of leakviz: it lacks "schema": "leakviz.report".')
    found = document.get("version")
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise InputError(f"{name}: version must be a whole number from 1 on, got {_short(found)}.")
    if found > VERSION:
        raise InputError(
            f"{name} is of version {found} of the report's schema, and this leakviz reads version {VERSION}. "
            "Update leakviz, or make the report again with this one."
        )
    wrong = next(iter(_wrong(document, SCHEMA, "")), None)
    if wrong:
        raise InputError(f"{name}: {wrong}.")
    _check_date(document["date"])
    if not document["sections"]:
        raise InputError(f"{name}: sections must name at least one page.")
    return document


def write_report(document: Mapping[str, Any]) -> str:
    """Return a report as JSON; `read_report` gives the same document back.

    Raises
    ------
    InputError
        If the document is not as `SCHEMA` says.
    """
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    read_report(text, name="the report")
    return text + "\n"


def _check_date(text: str) -> str:
    try:
        return calendar.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"date must be a day such as 2026-01-31, got {_short(text)}.") from None


def day(text: str) -> str:
    """Return a date as people write it, or refuse it.

    Raises
    ------
    InputError
        If it is no day.

    Examples
    --------
    >>> day("2026-01-31")
    '31 January 2026'
    """
    at = calendar.fromisoformat(_check_date(text))
    return f"{at.day} {at:%B %Y}"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute and draw a report.

    Examples
    --------
    >>> "numpy" in versions()
    True
    """
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say what is not as it was when a report is made again.

    Parameters
    ----------
    before, now : dict
        Reports, as `SCHEMA` describes them, with the same sections.

    Returns
    -------
    list of str
        Sentences on package versions, data and results; empty if nothing differs.
    """
    told = []
    names = dict.fromkeys([*before["versions"], *now["versions"]])
    changed = [
        f"{name} {before['versions'].get(name, 'not named')}, now {now['versions'].get(name, 'not named')}"
        for name in names
        if before["versions"].get(name) != now["versions"].get(name)
    ]
    if changed:
        told.append(f"Package versions differ: {'; '.join(changed)}.")
    for number, (old, new) in enumerate(zip(before["sections"], now["sections"], strict=True), start=1):
        for one, other in zip(old["data"], new["data"], strict=False):
            if (one["content_hash"], one["sha256"]) != (other["content_hash"], other["sha256"]):
                told.append(f"Section {number}: the data differ, {one['title']}: their hash is another one.")
        if len(old["data"]) != len(new["data"]):
            told.append(f"Section {number}: the page shows other data.")
        # What an older report left to the defaults, a newer one writes out.
        if not _asked(old["state"]).items() <= _asked(new["state"]).items():
            told.append(f"Section {number}: the state {old['state']} can be had only as {new['state']}.")
        if any(old[key] != new[key] for key in ("verdict", "says", "tables")):
            told.append(f"Section {number}: the numbers or the words differ from those of the report.")
    return told


def _asked(state: str) -> dict[str, str]:
    return dict(parse_qsl(state, keep_blank_values=True))


# ---- how it is made again


def command(document: Mapping[str, Any]) -> str:
    """Return the command line that makes a report.

    Parameters
    ----------
    document : dict
        As `SCHEMA` describes it; its ``command`` is not looked at.

    Returns
    -------
    str
        For a POSIX shell, with HTML, PDF and JSON as its files. A file of the user's is named as it was called; the
        options that stand behind it are for that file alone.

    Examples
    --------
    >>> section = {"page": "purity", "state": "delta=0.1", "note": "look at the head"}
    >>> report = {"title": "", "author": "", "notes": "", "date": "2026-01-31", "files": [], "sections": [section]}
    >>> command(report)
    "leakviz report purity:delta=0.1 --note '1:look at the head' --date 2026-01-31 --out report.html --pdf report.pdf --json report.json"
    """
    words = ["leakviz", "report"]
    for file in document["files"]:
        words.append(_path(file["name"]))
        for name, value in file["options"].items():
            words += [f"--{name.replace('_', '-')}", value]
    for section in document["sections"]:
        words.append(f"{section['page']}:{section['state']}" if section["state"] else section["page"])
    for number, section in enumerate(document["sections"], start=1):
        if section["note"]:
            words += ["--note", f"{number}:{section['note']}"]
    for name in ("title", "author", "notes"):
        if document[name]:
            words += [f"--{name}", document[name]]
    words += ["--date", document["date"]]
    return shlex.join([*words, "--out", "report.html", "--pdf", "report.pdf", "--json", "report.json"])


def _path(name: str) -> str:
    """Return a file's name so that no command line takes it for an option or a page."""
    return f"./{name}" if name.startswith("-") or re.match(r"[a-z]+(:|$)", name) else name


# ---- limits


@dataclass(frozen=True)
class Limit:
    """One thing that can limit what a result says.

    Attributes
    ----------
    name : str
        What was looked at.
    applies : bool
    words : str
        What it means for this result; "" where it does not apply.
    """

    name: str
    applies: bool
    words: str = ""


def _limit(name: str, applies: bool, words: str) -> Limit:
    return Limit(name, bool(applies), words if applies else "")


def limits_of_predictions(test: BlindTest, *, whose: str = "", simulated: bool = False) -> list[Limit]:
    """Return which limits apply to what the blind test says.

    Parameters
    ----------
    test : BlindTest
    whose : str
        What the predictions are called, where several are looked at.
    simulated : bool
        Whether the predictions were simulated.

    Returns
    -------
    list of Limit
        All that were looked at; a near-deterministic outcome only where the events are enough to show it. A smooth leak
        below the ceiling, which no test can look for, is among them wherever the verdict is not "leaky".

    Notes
    -----
    Few events: fewer than 100 with or without the event, the usual minimum for validating a model of risks
    (Vergouwe et al., Journal of Clinical Epidemiology 58 (2005), 475-483). The rest: arXiv 2606.11267, sections 4 to 7.

    Examples
    --------
    >>> from leakviz import blind_test
    >>> test = blind_test(np.linspace(0.99, 0.01, 200), np.arange(200) < 90)
    >>> [limit.name for limit in limits_of_predictions(test) if limit.applies]
    ['near-deterministic outcome', 'perfect ranking', 'few events']
    """
    of = f"{whose}: " if whose else ""
    fewest = min(test.events, test.n - test.events)
    kind = "events" if test.events <= test.n - test.events else "records without the event"
    needed = fewest_events(test.delta, test.k_min)
    few = f"{of}there are {fewest:,} {kind}, fewer than {FEW_EVENTS}: intervals are wide, and one record moves much."
    if test.events < needed:
        few = (
            f"{of}there are {test.events:,} events, and a pure head of k_min {test.k_min:,} needs {needed:,}: "
            "whatever is in the predictions, this test cannot fire."
        )
    z = test.dispersion if test.weight == "unit" else test.dispersion_uniform
    cannot = test.events < needed and test.spike < test.k_min  # there can be no pure head
    all_of = "had the event" if test.events else "are without the event"
    checked = [
        _limit(
            "near-deterministic outcome",
            test.spike >= test.k_min,
            f"{of}of the {test.spike:,} highest risks {test.spike_events:,} had the event. If the outcome of such "
            "records is nearly certain at prediction time (a malignant cell, a digit, death at ninety), an honest "
            "model has this head, too; the verdict rests on the assumption that it is not."
            + (f" {test.headline[:1].upper()}{test.headline[1:]}." if test.trigger == "near-label" else ""),
        ),
        _limit("decisions, not risks", test.decisions, f"{of}{DECISIONS}"),
        _limit(
            "one class",
            fewest == 0,
            f"{of}all {test.n:,} records {all_of}: there is no ranking to be judged, nothing that tells a leak from an honest "
            "model, and no dispersion to be tested.",
        ),
        _limit(
            "perfect ranking",
            test.c_statistic == 1,
            f"{of}each of the {test.events:,} events ranks above every record without the event (C* 1). Honest predictions of "
            "an uncertain outcome do not: this calls for an explanation, "
            + (
                "although the events are too few for a pure head."
                if cannot
                else "be it a leak or a certain outcome."
            ),
        ),
        _limit("few events", fewest < FEW_EVENTS or test.events < needed, few),
        _limit(
            "ties hide the head",
            test.ties_hide_head,
            f"{of}predictions are tied so that no threshold cuts where the head would be pure; unrounded scores are needed.",
        ),
        _limit(
            "dispersion not testable",
            z.z is None,
            f"{of}the dispersion is not tested: {z.untested}.",
        ),
        _limit(
            "reversed ranking",
            test.c_high is not None and test.c_high < 0.5,
            f"{of}the C-statistic is below one half with its whole interval: the event or p may be coded the other way round.",
        ),
        _limit(
            "simulated data",
            simulated,
            f"{of}the predictions were simulated; they show how the test behaves and say nothing of any data.",
        ),
    ]
    if cannot:
        checked = [limit for limit in checked if limit.name != "near-deterministic outcome"]
    if test.verdict != "leaky":  # nothing can rule it out, so it is never "checked, and not found"
        checked.append(
            Limit(
                "smooth leak below the ceiling",
                True,
                f"{of}a leak that lifts the ranking smoothly, to no more than an honest model could reach, cannot be seen by "
                "any test on predictions and outcomes"
                + (", and no ceiling on the C-statistic was given." if test.c_max is None else "."),
            )
        )
    if whose:  # a file's name stays as it is
        return checked
    return [replace(limit, words=limit.words[:1].upper() + limit.words[1:]) for limit in checked]


def limits_of_battery(battery: xr.Dataset, *, published: bool) -> list[Limit]:
    """Return which limits apply to what a battery of settings shows.

    Parameters
    ----------
    battery : xarray.Dataset
        As `leakviz.load_battery` returns it, with the settings that are shown.
    published : bool
        Whether its numbers are quoted from a paper.

    Returns
    -------
    list of Limit

    Examples
    --------
    >>> from leakviz import load_battery
    >>> [limit.name for limit in limits_of_battery(load_battery("published"), published=True) if limit.applies]
    ['dependent settings', 'few settings', 'published figures not recomputed']
    """
    n = battery.sizes["setting"]
    backbones = len(
        set(zip(battery["backbone"].values.tolist(), battery["id_dataset"].values.tolist(), strict=True))
    )
    regimes = battery["regime"].values.astype(str)
    leaks, clean = int((regimes == "leak").sum()), int((regimes != "leak").sum())
    return [
        _limit(
            "dependent settings",
            n > backbones,
            f"The {n:,} settings are designations of classes on {backbones:,} backbone{'s' if backbones > 1 else ''}, not "
            f"{n:,} independent draws: the intervals hold within this design, not for benchmarks at large.",
        ),
        _limit(
            "few settings",
            min(leaks, clean) < FEW_SETTINGS,
            f"There are {leaks:,} leaked and {clean:,} clean settings; with fewer than {FEW_SETTINGS} of a kind a rate has a "
            "wide interval.",
        ),
        _limit(
            "published figures not recomputed",
            published,
            "The AUROCs are quoted from the paper as printed, means of three seeds with three decimals; they were not "
            "computed here, and what lies within half a last digit of a cut could fall on either side.",
        ),
    ]


def limits_of_features(
    n_fit: int, n_features: int, n_id: int, n_ood: int, *, rows_without: str = "", seeds: int = 0
) -> list[Limit]:
    """Return which limits apply to scores of features.

    Parameters
    ----------
    n_fit, n_id, n_ood : int
        Rows of the fit set, of the ID test set and of the OOD set.
    n_features : int
        Columns.
    rows_without : str
        What the result cannot tell for lack of labels, a sentence, or "".
    seeds : int
        Of the probe's splits; 0 where no probe is fitted.

    Returns
    -------
    list of Limit

    Examples
    --------
    >>> [limit.name for limit in limits_of_features(100, 768, 500, 500) if limit.applies]
    ['fewer rows than features (n < D)']
    """
    fewest = min(n_id, n_ood)
    checked = [
        _limit(
            "fewer rows than features (n < D)",
            n_fit <= n_features,
            f"The fit set has {n_fit:,} rows of {n_features:,} features: its covariance has no inverse, and what a detector "
            "sees depends on the shrinkage.",
        ),
        _limit(
            "few rows per feature",
            n_features < n_fit < 10 * n_features,
            f"The fit set has {n_fit / n_features:.1f} rows a feature, fewer than ten: the small eigenvalues are estimated "
            "badly, and Mahalanobis weighs them most.",
        ),
        _limit(
            "few test rows",
            fewest < FEW_EVENTS,
            f"The smaller of the two test sets has {fewest:,} rows, fewer than {FEW_EVENTS}: AUROCs have wide intervals.",
        ),
    ]
    if seeds:
        checked.append(
            _limit(
                "few seeds",
                seeds < 3,
                f"The probe was split with {seeds} seed{'s' if seeds > 1 else ''}, fewer than three.",
            )
        )
    checked.append(_limit("no labels of the fit set", bool(rows_without), rows_without))
    return checked


def limits_of_sources(result: xr.Dataset, *, published: bool) -> list[Limit]:
    """Return which limits apply to a result of leaving sources out.

    Parameters
    ----------
    result : xarray.Dataset
        As `leakviz.lodo` or `leakviz.load_published_lodo` returns it.
    published : bool
        Whether its numbers are quoted from a paper.

    Returns
    -------
    list of Limit

    Examples
    --------
    >>> from leakviz import load_published_lodo
    >>> [limit.name for limit in limits_of_sources(load_published_lodo(), published=True) if limit.applies][0]
    'sources with one class'
    """
    many = result.sizes["source"]
    single = [str(s) for s in result["source"].values[result["kind"].values.astype(str) != "mixed"]]
    names = ", ".join(single[:6]) + (f" and {len(single) - 6} more" if len(single) > 6 else "")
    checked = [
        _limit(
            "too few sources",
            many <= FEW_SOURCES,
            f"There are {many} sources. With {FEW_SOURCES} or fewer nothing can be said about other sources: the intervals are "
            "of other rows of these sources.",
        ),
        _limit(
            "sources with one class",
            bool(single),
            f"{len(single)} of {many} sources have one class only ({names}): no AUROC is defined within them, and none is put "
            "in its place.",
        ),
    ]
    if "n" in result and "positives" in result:
        n, positives = result["n"].values.astype(float), result["positives"].values.astype(float)
        small = int((np.minimum(positives, n - positives)[positives * (n - positives) > 0] < 30).sum())
        checked.append(
            _limit(
                "small sources",
                small > 0,
                f"{small} of {many} sources have fewer than 30 rows of one class: their own AUROCs have wide intervals.",
            )
        )
    checked += [
        _limit(
            "published figures not recomputed",
            published,
            "The values are those that the authors printed or stored; the rows behind them are not public, and nothing was "
            "fitted again.",
        ),
        Limit(
            "transfer between these sources",
            True,
            "What is measured is transfer between the sources of this table; how the model does anywhere else is not.",
        ),
    ]
    return checked


def together(limits: Iterable[Limit]) -> list[dict[str, Any]]:
    """Return limits as the document holds them: each once, and those that apply first.

    Examples
    --------
    >>> together([Limit("few events", False), Limit("few events", True, "There are 3.")])
    [{'name': 'few events', 'applies': True, 'words': 'There are 3.'}]
    """
    found = list(dict.fromkeys(limits))
    applies = [limit for limit in found if limit.applies]
    names = {limit.name for limit in applies}
    rest = dict.fromkeys(limit.name for limit in found if limit.name not in names)
    return [
        *(asdict(limit) for limit in applies),
        *({"name": n, "applies": False, "words": ""} for n in rest),
    ]


# ---- methods

METHODS: dict[str, tuple[str, str]] = {
    "fingerprint": (
        "the leak fingerprint and the exclusion contrast",
        """@misc{balachandran2026decodable,
  title = {Decodable but Not Detectable: A Leakage Fingerprint for Near-{OOD} Benchmarks},
  author = {Balachandran, Vishnu Bindu},
  year = {2026},
  eprint = {2607.19393},
  archivePrefix = {arXiv}
}""",
    ),
    "blind": (
        "the blind test on predictions and outcomes",
        """@misc{jacobs2026priorfree,
  title = {A prior-free blind detection of information leakage from model predictions},
  author = {Jacobs, Laurence A.},
  year = {2026},
  eprint = {2606.11267},
  archivePrefix = {arXiv}
}""",
    ),
    "lodo": (
        "leave-one-dataset-out, and retention",
        """@misc{fomin2026benchmarks,
  title = {When Benchmarks Lie: Evaluating Malicious Prompt Classifiers Under True Distribution Shift},
  author = {Fomin, Max},
  year = {2026},
  eprint = {2602.14161},
  archivePrefix = {arXiv}
}""",
    ),
    "ledoit-wolf": (
        "the shrinkage of the covariance",
        """@article{ledoit2004wellconditioned,
  title = {A well-conditioned estimator for large-dimensional covariance matrices},
  author = {Ledoit, Olivier and Wolf, Michael},
  journal = {Journal of Multivariate Analysis},
  volume = {88},
  number = {2},
  pages = {365--411},
  year = {2004}
}""",
    ),
    "mahalanobis": (
        "the Mahalanobis detector",
        """@inproceedings{lee2018simple,
  title = {A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial Attacks},
  author = {Lee, Kimin and Lee, Kibok and Lee, Honglak and Shin, Jinwoo},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {31},
  year = {2018}
}""",
    ),
    "knn": (
        "the kNN detector",
        """@inproceedings{sun2022knn,
  title = {Out-of-Distribution Detection with Deep Nearest Neighbors},
  author = {Sun, Yiyou and Ming, Yifei and Zhu, Xiaojin and Li, Yixuan},
  booktitle = {International Conference on Machine Learning},
  year = {2022}
}""",
    ),
    "delong": (
        "intervals of an AUROC",
        """@article{delong1988comparing,
  title = {Comparing the Areas under Two or More Correlated Receiver Operating Characteristic Curves: A Nonparametric Approach},
  author = {DeLong, Elizabeth R. and DeLong, David M. and Clarke-Pearson, Daniel L.},
  journal = {Biometrics},
  volume = {44},
  number = {3},
  pages = {837--845},
  year = {1988}
}""",
    ),
    "wilson": (
        "intervals of a rate",
        """@article{wilson1927probable,
  title = {Probable Inference, the Law of Succession, and Statistical Inference},
  author = {Wilson, Edwin B.},
  journal = {Journal of the American Statistical Association},
  volume = {22},
  number = {158},
  pages = {209--212},
  year = {1927}
}""",
    ),
    "clopper-pearson": (
        "exact lower bounds on the purity of a head",
        """@article{clopper1934use,
  title = {The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial},
  author = {Clopper, C. J. and Pearson, E. S.},
  journal = {Biometrika},
  volume = {26},
  number = {4},
  pages = {404--413},
  year = {1934}
}""",
    ),
    "spiegelhalter": (
        "the dispersion z",
        """@article{spiegelhalter1986probabilistic,
  title = {Probabilistic prediction in patient management and clinical trials},
  author = {Spiegelhalter, D. J.},
  journal = {Statistics in Medicine},
  volume = {5},
  number = {5},
  pages = {421--433},
  year = {1986}
}""",
    ),
    "corp": (
        "the isotonic reliability curve and the decomposition of the Brier score",
        """@article{dimitriadis2021stable,
  title = {Stable reliability diagrams for probabilistic classifiers},
  author = {Dimitriadis, Timo and Gneiting, Tilmann and Jordan, Alexander I.},
  journal = {Proceedings of the National Academy of Sciences},
  volume = {118},
  number = {8},
  pages = {e2016191118},
  year = {2021}
}""",
    ),
    "net-benefit": (
        "net benefit",
        """@article{vickers2006decision,
  title = {Decision curve analysis: a novel method for evaluating prediction models},
  author = {Vickers, Andrew J. and Elkin, Elena B.},
  journal = {Medical Decision Making},
  volume = {26},
  number = {6},
  pages = {565--574},
  year = {2006}
}""",
    ),
    "platt": (
        "recalibration on logits",
        """@incollection{platt1999probabilistic,
  title = {Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods},
  author = {Platt, John C.},
  booktitle = {Advances in Large Margin Classifiers},
  pages = {61--74},
  year = {1999}
}""",
    ),
    "neighbourhood": (
        "the neighbourhood index",
        """@misc{ascarate2026testing,
  title = {Testing the test: score-direction instability in class-split anomaly detection},
  author = {Ascarate, A. and Lebrat, L. and Cruz, R. S. and Fookes, C. and Salvado, O.},
  year = {2026},
  eprint = {2606.02601},
  archivePrefix = {arXiv}
}""",
    ),
}
"""What a method is for, and its BibTeX entry. A field of which nobody was sure is left out."""


def bibliography(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return what methods are for, and their BibTeX entries, each once, in the order of `METHODS`.

    Examples
    --------
    >>> [bibtex.partition("{")[2].partition(",")[0] for _, bibtex in bibliography(["wilson", "blind", "wilson"])]
    ['jacobs2026priorfree', 'wilson1927probable']
    """
    wanted = set(names)
    return [entry for name, entry in METHODS.items() if name in wanted]


# ---- checking against the schema


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_KINDS: dict[str, tuple[type, str]] = {
    "string": (str, "text"),
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "boolean": (bool, "true or false"),
}


def _wrong(value: Any, schema: Mapping[str, Any], place: str) -> Sequence[str]:
    """Return what is wrong first, as a sentence without a full stop; of JSON Schema, what `SCHEMA` uses."""
    where = place or "the report"
    if "const" in schema:
        return (
            [] if value == schema["const"] else [f"{where} must be {schema['const']!r}, got {_short(value)}"]
        )
    if "enum" in schema:
        options = ", ".join(map(repr, schema["enum"]))
        return [] if value in schema["enum"] else [f"{where} must be one of {options}, got {_short(value)}"]
    kind, name = _KINDS[schema["type"]]
    if not isinstance(value, kind):
        return [f"{where} must be {name}, got {_short(value)}"]
    if isinstance(value, str):
        if len(value) > schema["maxLength"]:
            return [
                f"{where} has {len(value):,} characters, and at most {schema['maxLength']:,} may stand there"
            ]
        if "pattern" in schema and not re.fullmatch(schema["pattern"].strip("^$"), value):
            return [f"{where} is not of the form {schema['pattern']}, got {_short(value)}"]
    elif isinstance(value, list):
        if len(value) > schema["maxItems"]:
            return [f"{where} has {len(value):,} entries, and at most {schema['maxItems']:,} may stand there"]
        for i, item in enumerate(value):
            if wrong := _wrong(item, schema["items"], f"{place}[{i}]"):
                return wrong
    elif isinstance(value, dict):
        return _wrong_in(value, schema, place)
    return []


def _wrong_in(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Sequence[str]:
    known: Mapping[str, Any] = schema.get("properties", {})
    others = schema["additionalProperties"]
    dot = f"{place}." if place else ""
    for name in schema.get("required", ()):
        if name not in value:
            return [f"{place or 'the report'} lacks {name}"]
    for name, item in value.items():
        if name not in known and others is False:
            return [f"{place or 'the report'} has {_short(name)}, which version {VERSION} does not know"]
        if wrong := _wrong(item, known.get(name, others), f"{dot}{name}"):
            return wrong
    return []
