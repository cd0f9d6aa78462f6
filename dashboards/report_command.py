"""``leakviz report``: reads what the command line names, makes the report, and writes its files.

It runs as a process of its own, so that the core imports no page; see `leakviz.cli`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import json
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dashboards import fonts
from dashboards.embeddings import DEFAULTS as USUAL
from dashboards.embeddings import is_battery, own_battery
from dashboards.embeddings_result import known_to_be, make_result, read_battery, read_from, renamed
from dashboards.lodo_answers import Subject
from dashboards.lodo_own import MODELS, subject_of
from dashboards.predictions import judge
from dashboards.report_content import asked_section, file_facts, makers, named_own
from dashboards.report_file import Asked, Report, applying, html_of, make_report, pdf_figures, pdf_with
from dashboards.shelf import Shelf
from dashboards.wizard import untaken
from leakviz import report as core
from leakviz._progress import Progress, bar
from leakviz._stop import STOPPED
from leakviz.cli import unusable
from leakviz.embeddings import inspect_embeddings
from leakviz.errors import InputError
from leakviz.lodo.table import inspect_sources
from leakviz.paths import write_all
from leakviz.predictions import inspect_predictions

# ---- the user's own files

OF_SOURCES = ("label", "source", "features", "groups", "model")
"""Options that only a table with sources has: they say that a file is one."""

DEFAULTS = {
    "predictions": ("purity:first=own&beside=none&third=none", "calibration:vector=own"),
    "embeddings": ("embeddings:audit=own", "whitening:features=own"),
    "battery": ("fingerprint:battery=own",),
    "sources": ("lodo:case=own",),
}


@dataclass(frozen=True)
class Own:
    """A file of the user's own, read: how the pages call it, what the report says of it, and what was computed from it.

    `audited` is of features, `held_out` of a table with sources.
    """

    name: str
    facts: dict[str, Any]
    audited: Any = field(default=None, repr=False)
    held_out: Subject | None = field(default=None, repr=False)


def kind_of(path: Path, options: Iterable[str] = (), sections: Iterable[str] = ()) -> str:
    """Return what kind of file it is: by its ending, by an option of its reader, and by the page that shows it.

    Examples
    --------
    >>> kind_of(Path("a.NPZ")), kind_of(Path("a.parquet")), kind_of(Path("a.csv"), ["source"])
    ('embeddings', 'predictions', 'sources')
    >>> kind_of(Path("a.csv"), sections=["lodo:case=own"])
    'sources'
    """
    if path.suffix.lower() in (".npz", ".npy", ".nc", ".h5", ".hdf5"):
        return "embeddings"
    shown = any(re.match(r"lodo:(.*&)?case=own(&|$)", text) for text in sections)
    return "sources" if shown or set(OF_SOURCES) & set(options) else "predictions"


def read_own(
    path: Path,
    shelf: Shelf,
    options: Mapping[str, str],
    *,
    kind: str = "",
    name: str = "",
    progress: Callable[[int, int], object] | None = None,
) -> Own:
    """Read a file and put it on the shelf.

    Parameters
    ----------
    path : Path
    shelf : Shelf
    options : mapping
        How to read it, by the names of `leakviz.report.READERS`; what belongs to the other kind is left alone.
    kind : {"predictions", "embeddings", "battery", "sources"}, optional
        By default as `kind_of` says.
    name : str
        What to call it, by default its name without the folder.
    progress : callable, optional

    Raises
    ------
    InputError
        If it is not there, or leaves a question open.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}. Check the path and the working directory.")
    content = path.read_bytes()
    kind, name = kind or kind_of(path, options), name or path.name
    if kind == "embeddings" and is_battery(content):
        kind = "battery"
    wanted = core.options_of(kind, options)
    facts: dict[str, Any] = {"name": name, "kind": kind, "sha256": hashlib.sha256(content).hexdigest()}
    if kind == "battery":
        return _read_battery(content, shelf, facts)
    if kind == "embeddings":
        return _read_features(content, shelf, wanted, facts, progress)
    if kind == "sources":
        return _read_table(content, wanted, facts, progress)
    found = inspect_predictions(content, name=name, progress=progress, **wanted)  # type: ignore[arg-type]
    vector, _, _ = judge(found, {v.name: v.title for v in shelf.own}, sha256=facts["sha256"])
    shelf.add(vector)
    return Own(vector.name, {**file_facts(vector), "name": name})


def _read_battery(content: bytes, shelf: Shelf, facts: dict[str, Any]) -> Own:
    battery = own_battery(read_battery(content), facts["name"], facts["sha256"], shelf)
    shelf.batteries = [*(b for b in shelf.batteries if b.name != battery.name), battery]
    return Own(battery.name, dict(battery.file))  # type: ignore[arg-type]  # it has one


def _read_features(
    content: bytes,
    shelf: Shelf,
    wanted: Mapping[str, str],
    facts: dict[str, Any],
    progress: Callable[[int, int], object] | None,
) -> Own:
    """Audit a file of features, and put what the pages need of it on the shelf."""
    options = {**USUAL, **{name: wanted[name] for name in USUAL if name in wanted}}
    _check_audit(options)
    reader: dict[str, Any] = {name: value for name, value in wanted.items() if name not in (*USUAL, "regime")}
    if "ood_class" in reader:
        reader["ood_class"] = core.names_of(reader["ood_class"])
    found = inspect_embeddings(io.BytesIO(content), name=facts["name"], **reader)
    job = _Job(progress)
    result = make_result(found, options, job, facts["name"])
    taken = {a.title for a in shelf.audits if a.name != result.audit.name}
    result = renamed(result, untaken(facts["name"], taken))
    known = found.read().content_hash
    result = read_from(result, facts, known, wanted)
    if "regime" in wanted:
        result = known_to_be(result, wanted["regime"])
    battery = result.battery()
    name = result.audit.name
    shelf.audits = [*(a for a in shelf.audits if a.name != name), result.audit]
    shelf.batteries = [*(b for b in shelf.batteries if b.name != name), *([battery] if battery else [])]
    return Own(name, {**facts, "content_hash": known, "options": dict(wanted)}, result)


def _read_table(
    content: bytes,
    wanted: Mapping[str, str],
    facts: dict[str, Any],
    progress: Callable[[int, int], object] | None,
) -> Own:
    """Leave out each source of a table; no shelf holds it, and the page is given what came of it."""
    model = wanted.get("model", MODELS[0])
    if model not in MODELS:
        raise InputError(f"--model must be one of {', '.join(MODELS)}, got {model!r}.")
    reader: dict[str, Any] = {name: value for name, value in wanted.items() if name != "model"}
    if "features" in reader:
        reader["features"] = core.names_of(reader["features"])
    found = inspect_sources(io.BytesIO(content), name=facts["name"], **reader)
    subject = subject_of(found, model, _Job(progress), facts["name"], -1)  # type: ignore[arg-type]  # it tells its progress alike
    known = subject.result.attrs["source_hash"]
    return Own(subject.case, {**facts, "content_hash": known, "options": dict(wanted)}, held_out=subject)


def _check_audit(options: Mapping[str, str]) -> None:
    with suppress(ValueError):
        if options["shrinkage"] != "ledoit-wolf":
            float(options["shrinkage"])
        int(options["k"])
        return
    raise InputError(
        f"--shrinkage must be ledoit-wolf or a number from 0 to 1, and --k a whole number, got "
        f"{options['shrinkage']!r} and {options['k']!r}."
    )


class _Job:
    """What the audit tells its progress to."""

    def __init__(self, progress: Callable[[int, int], object] | None):
        self.text, self.done = "", 0.0
        self._progress = progress

    def progress(self, done: int, total: int) -> None:
        """Note how far it is."""
        if self._progress is not None:
            self._progress(done, total)


def check_own(own: Own, recorded: Mapping[str, Any], given: str) -> str:
    """Refuse a file that has other numbers than the one that a report was made from.

    Parameters
    ----------
    own : Own
    recorded : dict
        What the report says of its file.
    given : str
        What the file that was given is called.

    Returns
    -------
    str
        A sentence where the numbers are the same and the bytes are not, else "".

    Raises
    ------
    InputError
        If the numbers are others.
    """
    if own.facts["content_hash"] != recorded["content_hash"]:
        same = own.facts["sha256"] == recorded["sha256"]
        raise InputError(
            (
                f"{given} has the bytes of the report's file, and is read in another way"
                if same
                else f"{given} is another file than the report's, which was {recorded['name']}"
            )
            + f": the SHA-256 of its numbers is {own.facts['content_hash']}, and the report's is {recorded['content_hash']}."
        )
    if recorded["sha256"] and own.facts["sha256"] != recorded["sha256"]:
        return f"{given} has the same numbers as the file of the report, and other bytes."
    return ""


def _read_recorded(path: Path, shelf: Shelf, options: Mapping[str, str], file: Mapping[str, Any]) -> Own:
    """Read a file as a report's file was read, under the name that it has there.

    Raises
    ------
    InputError
        If it cannot be; where it has other bytes than the report's file, that is said first.
    """
    try:
        return read_own(path, shelf, options, kind=file["kind"], name=file["name"])
    except InputError as error:
        if hashlib.sha256(path.read_bytes()).hexdigest() == file["sha256"]:
            raise
        told = str(error)
        if path.name != file["name"]:
            try:
                read_own(path, Shelf(), options, kind=file["kind"])
            except InputError as named:  # the same, of the file that was given
                told = str(named)
        raise InputError(
            f"{path.name} is another file than the report's, which was {file['name']}, and it cannot be read as that was "
            f"read: {told}"
        ) from error


def _read_again(
    document: Mapping[str, Any], paths: Sequence[str], shelf: Shelf, options: Mapping[str, str]
) -> tuple[list[Own], list[str]]:
    """Read the files that a report was made from, and check them."""
    recorded = list(document["files"])
    if len(paths) != len(recorded):
        given = f"; you gave {len(paths)} instead of {len(recorded)}." if paths else "."
        names = ", ".join(
            f"{file['name']} (SHA-256 of its numbers {file['content_hash']})" for file in recorded
        )
        raise InputError(
            f"this report was made from {names}; its rows are not in the report. Give {'the file' if len(recorded) == 1 else 'each file'} "
            f"with --file PATH{given}"
            if recorded
            else "--file was given, and this report was made from no file of the user's own."
        )
    named = {Path(path).name: path for path in paths}
    if set(named) == {file["name"] for file in recorded}:
        paths = [named[file["name"]] for file in recorded]
    owns, told = [], []
    for path, file in zip(paths, recorded, strict=True):
        strange = set(file["options"]) - set(core.READERS[file["kind"]])
        if strange:
            raise InputError(
                f"the report's file {file['name']} has the option {sorted(strange)[0]!r}, which no reader knows."
            )
        own = _read_recorded(Path(path), shelf, {**file["options"], **options}, file)
        other = check_own(own, file, Path(path).name)
        told += [other] if other else []
        # As the report says it: of a file that came by the app, the bytes were not known.
        facts = {**own.facts, "options": file["options"]} | ({} if file["sha256"] else {"sha256": ""})
        owns.append(replace(own, facts=facts))
    return owns, told


# ---- from the command line


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a report; see ``leakviz report --help``.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process: one, the JSON that `leakviz.cli` writes.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(description="Make a report.")
    parser.add_argument("asked", type=json.loads)
    asked = parser.parse_args(arguments).asked
    try:
        report, paths = _from_command(asked)
        contents = _contents(report, paths)
        write_all(contents)
    except KeyboardInterrupt:
        return STOPPED
    except InputError as error:
        return unusable(error, answers=not asked["from"])
    for sentence in (*report.told, *report.differs, *filter(None, [fonts.says(report.lost)])):
        print(f"leakviz: {sentence}", file=sys.stderr)
    sections = report.document["sections"]
    for i, section in enumerate(sections, start=1):
        limits = applying(section)
        print(
            f"{i}. {section['title']}: {section['verdict']}"
            + (f" Limits: {', '.join(limits)}." if limits else "")
        )
    for path, content in contents.items():
        print(f"Wrote {path} ({len(content) / 1e6:.2f} MB)")
    return 0


def _from_command(asked: Mapping[str, Any]) -> tuple[Report, dict[str, Path]]:
    from dashboards import server

    server.prepare()
    shelf = Shelf()
    told: list[str] = []
    options: dict[str, str] = asked["options"]
    before = None
    meta = {name: asked[name] for name in ("title", "author", "notes", "date")}
    owns: list[Own] = []
    with bar("reading", delay=0) as progress:
        if asked["from"]:
            path = Path(asked["from"])
            if not path.is_file():
                raise InputError(
                    f"there is no file {asked['from']!r}. Check the path and the working directory."
                )
            before = core.read_report(path.read_bytes(), name=path.name)
            owns, told = _read_again(before, asked["files"], shelf, options)
            meta = {name: before[name] for name in meta}
            wanted = [(s["page"], s["state"], s["note"]) for s in before["sections"]]
        else:
            owns = []
            each: list[dict[str, str]] = asked.get("each") or [{}] * len(asked["files"])
            for path, alone in zip(map(Path, asked["files"]), each, strict=True):
                given = {**options, **alone}
                kind = kind_of(path, given, asked["sections"])
                owns.append(read_own(path, shelf, given, kind=kind, progress=progress))
            wanted = _wanted(asked, owns)
    core.day(meta["date"] or "2000-01-01")  # refuse it before anything is drawn
    held_out = {own.name: own.held_out for own in owns if own.held_out is not None}
    like = SimpleNamespace(state=SimpleNamespace(own=held_out, fresh={}))  # a page that has computed them
    sections = [
        Asked(page, state, note, like if page == "lodo" and held_out else None)
        for page, state, note in wanted
    ]
    known = makers({own.name: own.audited for own in owns if own.audited is not None})
    with bar("pages", delay=0, total=len(sections)) as progress:
        report = make_report(
            sections, known, shelf=shelf, files=[own.facts for own in owns], before=before,
            progress=_counted(progress, len(sections)), **meta,
        )  # fmt: skip
    used = " ".join(section["state"] for section in report.document["sections"])
    told += [
        f"{own.facts['name']} is shown in no section; a section shows it with own, such as purity:first=own."
        for own in owns
        if own.name not in used
    ]
    report = Report(report.document, report.sections, (*told, *report.told), report.differs)
    return report, {kind: Path(asked[kind]) for kind in ("out", "pdf", "json") if asked[kind]}


def _wanted(asked: Mapping[str, Any], owns: Sequence[Own]) -> list[tuple[str, str, str]]:
    """Return page, state and note of each section that the command line names."""
    texts = asked["sections"]
    if not texts:
        texts = [text for own in owns for text in DEFAULTS[own.facts["kind"]]] if len(owns) == 1 else []
    if not texts and len(owns) > 1:
        names = ", ".join(f"{own.facts['name']} is {own.name}" for own in owns)
        raise InputError(
            f"say which sections show the files, such as purity:first=NAME&beside=NAME; {names}."
        )
    notes: dict[int, str] = {}
    for text in asked["note"]:
        number, _, words = text.partition(":")
        if not number.strip().isdigit() or not 1 <= int(number) <= max(len(texts), 1):
            raise InputError(
                f"--note must begin with the number of a section and a colon, such as '1: look at the head', got {text[:60]!r}; "
                f"there {'is one section' if len(texts) == 1 else f'are {len(texts)} sections'}."
            )
        notes[int(number)] = words.strip()
    wanted = []
    for number, text in enumerate(texts, start=1):
        page, state = asked_section(text)
        wanted.append((page, named_own(state, [own.name for own in owns]), notes.get(number, "")))
    return wanted


def _contents(report: Report, paths: Mapping[str, Path]) -> dict[Path, bytes]:
    drawn = sum(len(section.figures) for section in report.sections)
    contents: dict[Path, bytes] = {}
    total = drawn * len({"out", "pdf"} & set(paths))
    figures: list[list[bytes]] = []
    with bar("drawing", delay=0, total=total) as progress:
        count = _counted(progress, total)
        if "out" in paths:
            contents[paths["out"]] = html_of(report, count).encode()
        if "pdf" in paths:
            figures = pdf_figures(report, count)
    if "pdf" in paths:
        with bar("setting the pages of the PDF", delay=0) as progress:
            contents[paths["pdf"]] = pdf_with(report, figures, progress)
    if "json" in paths:
        contents[paths["json"]] = core.write_report(report.document).encode()
    return contents


def _counted(progress: Progress, total: int) -> Callable[[str], object]:
    """Return what is called before each step, and tells how many are done."""
    steps = itertools.count()
    return lambda what: progress(next(steps), total)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # told to stop, it tidies up first
    sys.exit(main())
