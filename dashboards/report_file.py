"""A report as files: HTML that needs nothing but itself, PDF, and the JSON that makes both again.

``leakviz report`` and the page "Report" make it. Figures are drawn by `dashboards.export.draw`, as vectors with
their texts as text; the same report gives the same bytes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from dashboards import export, fonts, theme
from dashboards.page_file import html_document, open_page
from dashboards.report_content import Figure, Section, section_of
from dashboards.report_paper import Block, Paper
from dashboards.shelf import Shelf
from leakviz import report as core
from leakviz.errors import InputError

TITLE = "A leakage report"
NO_COMMAND = "it shows data that were brought into the app."  # reports that were written before say no more
WIDEST = 170.0  # mm: A4 without its margins
HALF = 82.0  # mm: of two figures in a row

# A report of nothing, for the examples below.
_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("title", "author", "notes", "command"), ""),
    **{"date": "2026-01-31", "versions": {}, "files": [], "sections": []},
}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CSS = theme.css(
    """
:root { color-scheme: light }
body { margin: 0; background: $bg; color: $ink; font: 15px/1.5 $font; font-variant-numeric: tabular-nums }
main { max-width: 780px; margin: 0 auto; padding: 40px 24px 60px; box-sizing: border-box }
h1, h2, h3, p, li, td, th, dd, code, pre { overflow-wrap: anywhere }
h1 { font-size: 27px; line-height: 1.25; letter-spacing: -.015em; margin: 0 0 6px }
h2 { font-size: 20px; line-height: 1.3; margin: 44px 0 2px; padding-top: 16px; border-top: 1px solid $hair; letter-spacing: -.01em }
h3 { font-size: 15px; margin: 24px 0 6px }
p { margin: 0 0 8px }
.m, figcaption, caption { color: $muted }
.small, figcaption { font-size: 13px }
.verdict { font-size: 18px; line-height: 1.4; font-weight: 600; margin: 10px 0 8px }
.sum { margin: 18px 0; padding: 0; list-style: none }
.sum li { padding: 9px 0; border-top: 1px solid $hair }
.sum li:last-child { border-bottom: 1px solid $hair }
.alarm { border-left: 3px solid $alarm; padding: 2px 0 2px 14px; margin: 16px 0 }
.notes { border-left: 3px solid $accent; padding: 2px 0 2px 14px; margin: 14px 0; white-space: pre-wrap }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; margin: 4px 0 14px }
caption { text-align: left; font-size: 13px; padding: 8px 0 4px }
td, th { text-align: left; font-weight: 400; vertical-align: top; padding: 5px 14px 5px 0; border-bottom: 1px solid $hair; white-space: pre-line }
thead th, tbody th { color: $muted }
figure { margin: 20px 0 22px }
figure svg { display: block; max-width: 100%; height: auto }
figcaption { margin-top: 6px }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 24px; align-items: start }
ul { margin: 4px 0 10px; padding: 0 0 0 20px }
li { margin-bottom: 4px }
code, pre { font: 12.5px/1.5 "DejaVu Sans Mono", ui-monospace, monospace }
pre { background: $soft; padding: 10px 12px; border-radius: 6px; white-space: pre-wrap }
@media (max-width: $narrow) { main { padding: 20px 16px 40px } .wide { overflow-x: auto } .pair { grid-template-columns: minmax(0, 1fr) } }
@page { size: A4; margin: 18mm 18mm 20mm }
@media print {
  body { font-size: 10.5pt } main { max-width: none; padding: 0 }
  figure, tr, li, pre { break-inside: avoid } h2, h3, caption { break-after: avoid }
  pre { border: 1px solid $hair }
}
"""
)


@dataclass(frozen=True)
class Report:
    """A report, and what draws its figures.

    Attributes
    ----------
    document : dict
        As `leakviz.report.SCHEMA` describes it.
    sections : tuple of Section
    told : tuple of str
        What could not be shown as asked, sentences.
    differs : tuple of str
        What is not as it was when the report was made first, sentences.
    lost : set of str
        Letters that no font of the machine has, in what was drawn as PDF: `drawing` and `pdf_with` add to it.
    """

    document: dict[str, Any]
    sections: tuple[Section, ...] = field(repr=False)
    told: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    lost: set[str] = field(default_factory=set, repr=False, compare=False)


@dataclass(frozen=True)
class Asked:
    """What a section is asked to be: page, state as in a link, the author's note, and a page to look like."""

    page: str
    state: str = ""
    note: str = ""
    like: Any = None


Progress = Callable[[str], object]
T = TypeVar("T")


def making(
    asked: Sequence[Asked],
    pages: Mapping[str, tuple[str, Callable[[str, Shelf], Any]]],
    *,
    shelf: Shelf | None = None,
    title: str = "",
    author: str = "",
    notes: str = "",
    date: str = "",
    files: Sequence[Mapping[str, Any]] = (),
    before: Mapping[str, Any] | None = None,
    no_command: str = "",
) -> Generator[str, None, Report]:
    """Make a report step by step: yield what comes next, and return it; see `make_report`."""
    if not asked:
        raise InputError("a report needs at least one page, such as purity:first=flchain__lr__honest.")
    shelf = shelf or Shelf()
    sections, told = [], []
    for number, one in enumerate(asked, start=1):
        name = pages[one.page][0]
        yield f"Section {number}, {name}"
        page = open_page(pages[one.page][1], one.state, shelf, one.like)
        missing = getattr(page.state, "missing", ())
        if missing:
            raise InputError(
                f"section {number} shows {' and '.join(missing)}, a file of somebody's own that is not here. Give it with "
                "--file, or bring it into the app; the hash of its numbers has to be that one."
            )
        section = section_of(one.page, page, title=name, note=one.note)
        told += [f"Section {number}, {name}: {sentence}" for sentence in section.told]
        sections.append(section)
    document: dict[str, Any] = {
        "schema": "leakviz.report",
        "version": core.VERSION,
        "title": title,
        "author": author,
        "date": date or datetime.now(UTC).date().isoformat(),
        "notes": notes,
        "command": "",
        **({"no_command": no_command} if no_command else {}),
        "versions": core.versions(),
        "files": [dict(file) for file in files],
        "sections": [section.facts for section in sections],
    }
    document["command"] = "" if no_command else core.command(document)
    core.write_report(document)  # checks it
    differs = core.differences(before, document) if before is not None else []
    return Report(document, tuple(sections), tuple(told), tuple(differs))


def make_report(
    asked: Sequence[Asked],
    pages: Mapping[str, tuple[str, Callable[[str, Shelf], Any]]],
    *,
    progress: Progress | None = None,
    **more: Any,
) -> Report:
    """Make a report of pages at their states.

    Parameters
    ----------
    asked : sequence of Asked
    pages : dict
        Title and maker of each page, as the app has them.
    progress : callable, optional
        Called with what is done next, once per section.
    **more
        ``shelf`` with the user's own data, which is not changed; ``title``, ``author`` and ``notes``, plain text;
        ``date`` such as ``2026-01-31``, by default today; ``files``, the user's, as the schema describes them;
        ``before``, the report that is made again; ``no_command``, a sentence on why no command makes it.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If nothing is asked for, a page shows a file that is not here, or a text is too long.

    Examples
    --------
    >>> from app import PAGES
    >>> made = make_report([Asked("purity", "first=nassCDS__lr__honest&beside=none")], PAGES, date="2026-01-31")
    >>> made.document["sections"][0]["verdict"]
    'At delta 0.05, k_min 50 and no ceiling the blind test says: not shown.'
    """
    return _to_the_end(making(asked, pages, **more), progress)


def _to_the_end(steps: Generator[str, None, T], progress: Progress | None) -> T:
    while True:
        try:
            what = next(steps)
        except StopIteration as done:
            return done.value
        if progress is not None:
            progress(what)


def drawing(report: Report, kind: str) -> Generator[str, None, list[list[bytes]]]:
    """Draw the figures of each section one by one: yield which comes next, and return all of them.

    Parameters
    ----------
    report : Report
    kind : {"svg", "pdf"}
    """
    drawn = []
    for section in report.sections:
        of = []
        beside = {i for row in rows_of(section.figures) if len(row) > 1 for i in row}
        for i, figure in enumerate(section.figures):
            yield f"Drawing {figure.title}"
            wide = HALF if i in beside else min(figure.size[0], WIDEST)
            lost = report.lost if kind == "pdf" else None
            of.append(_drawn(figure.of(section.page), figure, kind, wide, lost))
        drawn.append(of)
    return drawn


def _drawn(page: Any, figure: Figure, kind: str, wide: float, lost: set[str] | None) -> bytes:
    return export.draw(
        lambda backend: page.figure(figure.name, backend), kind, size=figure.size, width=wide, lost=lost
    ).getvalue()


def rows_of(figures: Sequence[Figure]) -> list[list[int]]:
    """Return which figures stand in a row: two small ones that follow each other, each other one alone.

    Examples
    --------
    >>> size = (110.0, 75.0)
    >>> rows_of([Figure("a", "", size, ""), *(Figure(n, "", size, "", small=True) for n in "bcd")])
    [[0], [1, 2], [3]]
    """
    rows: list[list[int]] = []
    for i, figure in enumerate(figures):
        if figure.small and rows and len(rows[-1]) == 1 and figures[rows[-1][0]].small:
            rows[-1].append(i)
        else:
            rows.append([i])
    return rows


# ---- words that HTML and PDF share


def _head(document: Mapping[str, Any]) -> tuple[str, str]:
    by = f"{document['author']}, " if document["author"] else ""
    return document["title"] or TITLE, f"{by}{core.day(document['date'])}"


def applying(section: Mapping[str, Any]) -> list[str]:
    """Return the names of the limits that apply to a section."""
    return list(dict.fromkeys(limit["name"] for limit in section["limits"] if limit["applies"]))


def _limits(section: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return a sentence for each limit that applies, and what was looked at besides."""
    apply = [
        f"{_capital(limit['name'])}. {limit['words']}" for limit in section["limits"] if limit["applies"]
    ]
    names = [limit["name"] for limit in section["limits"] if not limit["applies"]]
    if not apply:
        return [], f"None of the limits that were checked applies. Checked: {', '.join(names)}."
    return apply, f"Checked, and not found to apply: {', '.join(names)}." if names else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _data(section: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return per source its title, and lines on it; the hashes of the user's own files stand with those."""
    rows = []
    for one in section["data"]:
        lines = [one["source"]]
        if one["content_hash"] in [file["content_hash"] for file in files]:
            lines.append("Its hashes are under Files, at the end")
        elif one["content_hash"]:
            lines.append(f"SHA-256 of the numbers {one['content_hash']}")
        if one["file"]:
            lines.append(f"{one['file']}, SHA-256 of the file {one['sha256']}")
        rows.append((one["title"], lines))
    return rows


def _files(document: Mapping[str, Any]) -> list[str]:
    said = []
    for file in document["files"]:
        hashes = [f"SHA-256 of the numbers {file['content_hash']}"]
        if file["sha256"]:
            hashes.insert(0, f"SHA-256 of the file {file['sha256']}")
        said.append(f"{file['name']}: {'; '.join(hashes)}. Its rows are not in this report.")
    return said


def _again(document: Mapping[str, Any]) -> str:
    if not document["command"]:
        return f"No command makes this report: {document.get('no_command') or NO_COMMAND} Make it in the app again."
    own = " in the folder with the file" if document["files"] else ""
    return (
        f"This command{own} makes the report again, with the same bytes where the versions below are installed. "
        "So does leakviz report --from report.json"
        + (" --file, followed by the file's name." if document["files"] else ".")
    )


def _methods(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    return core.bibliography(name for section in document["sections"] for name in section["methods"])


def _figure_numbers(document: Mapping[str, Any]) -> list[list[int]]:
    numbers, at = [], 0
    for section in document["sections"]:
        many = len(section["figures"])
        numbers.append(list(range(at + 1, at + many + 1)))
        at += many
    return numbers


# ---- HTML


def html_of(report: Report, progress: Progress | None = None) -> str:
    """Return a report as one HTML file: no script, and no request to any host.

    Examples
    --------
    >>> text = html_of(Report({**_NOTHING, "title": "<b>"}, ()))
    >>> "<title>&lt;b&gt;" in text, "<script" in text
    (True, False)
    """
    return html_with(report, _to_the_end(drawing(report, "svg"), progress))


def html_with(report: Report, drawn: Sequence[Sequence[bytes]]) -> str:
    """Return a report as one HTML file with these figures, as `drawing` returns them."""
    document, e = report.document, html.escape
    title, by = _head(document)
    numbers = _figure_numbers(document)
    parts = [f"<h1>{e(title)}</h1>", f'<p class="m">{e(by)}</p>']
    if report.differs:
        told = "".join(f"<li>{e(sentence)}</li>" for sentence in report.differs)
        parts.append(
            f'<div class="alarm"><p>This is not the report as it was made first:</p><ul>{told}</ul></div>'
        )
    parts.append(_summary_html(document))
    if document["notes"]:
        parts.append(f'<div class="notes">{e(document["notes"])}</div>')
    for i, section in enumerate(document["sections"]):
        parts.append(_section_html(i, section, drawn[i], numbers[i], report))
    parts.append(_end_html(document))
    return html_document(title=title, policy=_POLICY, css=_CSS, body=f"<main>\n{''.join(parts)}\n</main>")


def _summary_html(document: Mapping[str, Any]) -> str:
    e, rows = html.escape, []
    for i, section in enumerate(document["sections"]):
        limits = applying(section)
        told = f'<br><span class="small m">Limits: {e(", ".join(limits))}</span>' if limits else ""
        rows.append(
            f'<li><a href="#section-{i + 1}">{i + 1}. {e(section["title"])}</a>, {e(section["subject"])}. '
            f"<b>{e(section['verdict'])}</b>{told}</li>"
        )
    return f'<ul class="sum" aria-label="summary">{"".join(rows)}</ul>'


def _section_html(
    at: int, section: Mapping[str, Any], drawn: Sequence[bytes], numbers: Sequence[int], report: Report
) -> str:
    e = html.escape
    parts = [
        f'<section aria-labelledby="section-{at + 1}"><h2 id="section-{at + 1}">{at + 1}. {e(section["title"])}</h2>',
        f'<p class="m">{e(section["subject"])}</p>',
        f'<p class="verdict">{e(section["verdict"])}</p>',
        *(f"<p>{e(words)}</p>" for words in section["says"]),
        *(_table_html(table) for table in section["tables"]),
    ]
    figures = [
        f"<figure>{_inline(svg, f'f{number}-', figure['title'])}"
        f"<figcaption>Figure {number}. {e(figure['caption'])}</figcaption></figure>"
        for figure, svg, number in zip(section["figures"], drawn, numbers, strict=True)
    ]
    for row in rows_of(report.sections[at].figures):
        together = "".join(figures[i] for i in row)
        parts.append(f'<div class="pair">{together}</div>' if len(row) > 1 else together)
    if section["note"]:
        parts.append(f'<h3>Notes</h3><div class="notes">{e(section["note"])}</div>')
    apply, checked = _limits(section)
    parts.append("<h3>Limits of this result</h3>")
    if apply:
        parts.append(f"<ul>{''.join(f'<li>{e(words)}</li>' for words in apply)}</ul>")
    if checked:
        parts.append(f'<p class="small m">{e(checked)}</p>')
    rows = [[label, value] for label, value in section["parameters"]]
    parts.append("<h3>Parameters</h3>" + _table_html({"title": "", "header": [], "rows": rows}))
    state = f"{section['page']}:{section['state']}" if section["state"] else section["page"]
    parts.append(f'<p class="small m">As a section of a report: <code>{e(state)}</code></p>')
    data = "".join(
        f'<li>{e(title)}<br><span class="small m">{"<br>".join(map(e, lines))}</span></li>'
        for title, lines in _data(section, report.document["files"])
    )
    parts.append(f"<h3>Data</h3><ul>{data}</ul></section>")
    return "".join(parts)


def _end_html(document: Mapping[str, Any]) -> str:
    e = html.escape
    files = "".join(f"<li>{e(words)}</li>" for words in _files(document))
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    told = f"<pre>{e(document['command'])}</pre>" if document["command"] else ""
    entries = "\n\n".join(f"% {words}\n{bibtex}" for words, bibtex in _methods(document))
    return (
        "<section><h2>How this report was made</h2>"
        + (f"<h3>Files</h3><ul>{files}</ul>" if files else "")
        + f"<h3>The same report again</h3><p>{e(_again(document))}</p>{told}"
        f"<h3>Versions</h3><p>{e(versions)}</p>"
        f"<h3>Methods that were used, as BibTeX</h3><pre>{e(entries)}</pre></section>"
    )


def _table_html(table: Mapping[str, Any]) -> str:
    e = html.escape
    head = "".join(f'<th scope="col">{e(cell)}</th>' for cell in table["header"])
    rows = "".join(
        f'<tr><th scope="row">{e(row[0])}</th>{"".join(f"<td>{e(cell)}</td>" for cell in row[1:])}</tr>'
        for row in table["rows"]
        if row
    )
    caption = f"<caption>{e(table['title'])}</caption>" if table["title"] else ""
    thead = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<div class="wide"><table>{caption}{thead}<tbody>{rows}</tbody></table></div>'


def _inline(svg: bytes, prefix: str, title: str) -> str:
    """Return an SVG as an element of a page: without a prologue, and with names of its own.

    Examples
    --------
    >>> _inline(b'<?xml version="1.0"?><svg width="1"><path id="p1"/><use xlink:href="#p1" clip-path="url(#p1)"/></svg>', "f1-", "a & b")
    '<svg role="img" aria-label="a &amp; b" width="1"><path id="f1-p1"/><use xlink:href="#f1-p1" clip-path="url(#f1-p1)"/></svg>'
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)

    def named(tag: re.Match[str]) -> str:
        inside = re.sub(r'\bid="', f'id="{prefix}', tag[0])
        inside = re.sub(r'href="#', f'href="#{prefix}', inside)
        return inside.replace("url(#", f"url(#{prefix}")

    text = re.sub(r"<[a-zA-Z][^>]*>", named, text)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(title)}"', 1).strip()


# ---- PDF


def pdf_of(report: Report, progress: Progress | None = None) -> bytes:
    """Return a report as PDF: A4, its text selectable, its figures as vectors.

    Raises
    ------
    RuntimeError
        If matplotlib or pypdf is not installed.

    Examples
    --------
    >>> pdf_of(Report({**_NOTHING, "title": "Spring"}, ()))[:5]
    b'%PDF-'
    """
    return pdf_with(report, pdf_figures(report, progress))


def pdf_figures(report: Report, progress: Progress | None = None) -> list[list[bytes]]:
    """Return the figures of each section as PDF."""
    return _to_the_end(drawing(report, "pdf"), progress)


def pdf_with(
    report: Report,
    drawn: Sequence[Sequence[bytes]],
    progress: Callable[[int, int], object] | None = None,
) -> bytes:
    """Return a report as PDF with these figures, as `drawing` returns them; `progress` is told the pages done, and all."""
    document = report.document
    report.lost.update(fonts.lost_in(document))
    title, by = _head(document)
    numbers = _figure_numbers(document)
    blocks: list[Block] = [Block("title", title), Block("muted", by)]
    if report.lost:
        blocks.append(Block("alarm", fonts.says(report.lost)))
    if report.differs:
        blocks.append(Block("alarm", "This is not the report as it was made first:"))
        blocks += [Block("item", sentence) for sentence in report.differs]
    for i, section in enumerate(document["sections"]):
        limits = applying(section)
        blocks += [
            Block("rule"),
            Block("small", f"{i + 1}. {section['title']}, {section['subject']}"),
            Block("strong", section["verdict"]),
        ]
        if limits:
            blocks.append(Block("small", f"Limits: {', '.join(limits)}"))
    blocks.append(Block("rule"))
    if document["notes"]:
        blocks.append(Block("note", document["notes"]))
    for i, section in enumerate(document["sections"]):
        blocks += _section_blocks(i, section, drawn[i], numbers[i], report)
    blocks += _end_blocks(document)
    return Paper(title=title, author=document["author"]).write(blocks, progress)


def _section_blocks(
    at: int, section: Mapping[str, Any], drawn: Sequence[bytes], numbers: Sequence[int], report: Report
) -> list[Block]:
    blocks = [
        Block("heading", f"{at + 1}. {section['title']}"),
        Block("muted", section["subject"]),
        Block("verdict", section["verdict"]),
        *(Block("text", words) for words in section["says"]),
    ]
    for table in section["tables"]:
        blocks.append(Block("table", table["title"], rows=table["rows"], header=table["header"]))
    figures = [
        Block("figure", f"Figure {number}. {figure['caption']}", pdf=pdf)
        for figure, pdf, number in zip(section["figures"], drawn, numbers, strict=True)
    ]
    for row in rows_of(report.sections[at].figures):
        together = tuple(figures[i] for i in row)
        blocks.append(Block("figures", beside=together) if len(row) > 1 else together[0])
    if section["note"]:
        blocks += [Block("subheading", "Notes"), Block("note", section["note"])]
    apply, checked = _limits(section)
    blocks.append(Block("subheading", "Limits of this result"))
    blocks += [Block("item", words) for words in apply]
    if checked:
        blocks.append(Block("small", checked))
    blocks += [Block("subheading", "Parameters"), Block("table", "", rows=section["parameters"])]
    state = f"{section['page']}:{section['state']}" if section["state"] else section["page"]
    blocks.append(Block("small", f"As a section of a report: {state}"))
    blocks.append(Block("subheading", "Data"))
    for title, lines in _data(section, report.document["files"]):
        blocks.append(Block("item", title))
        blocks += [Block("under", line) for line in lines]
    return blocks


def _end_blocks(document: Mapping[str, Any]) -> list[Block]:
    blocks = [Block("heading", "How this report was made")]
    files = _files(document)
    if files:
        blocks += [Block("subheading", "Files"), *(Block("item", words) for words in files)]
    blocks += [
        Block("subheading", "The same report again"),
        Block("text", _again(document)),
        *([Block("command", document["command"])] if document["command"] else []),
        Block("subheading", "Versions"),
        Block("text", ", ".join(f"{name} {number}" for name, number in document["versions"].items())),
        Block("subheading", "Methods that were used, as BibTeX"),
    ]
    blocks += [Block("code", f"% {words}\n{_compact(bibtex)}") for words, bibtex in _methods(document)]
    return blocks


def _compact(bibtex: str) -> str:
    """Put the short fields of a BibTeX entry on one line, so that a page holds more of them.

    Examples
    --------
    >>> print(_compact("@article{a,\\n  title = {T},\\n  volume = {1},\\n  number = {2},\\n  year = {2026}\\n}"))
    @article{a,
      title = {T},
      volume = {1}, number = {2}, year = {2026}
    }
    """
    return re.sub(r"((?:volume|number|pages|eprint) = \{[^\n]*\},)\n  (?=\w+ = )", r"\1 ", bibtex)
