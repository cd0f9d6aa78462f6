"""Paper: headings, texts, tables and figures set on A4 pages, as PDF.

Matplotlib writes the texts, so that they are those of the figures in type and in bytes, and pypdf puts the figures,
which `dashboards.export.draw` has drawn as PDF, where they belong: nothing is turned into pixels.
"""

from __future__ import annotations

import io
import itertools
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from dashboards import export, fonts, theme
from dashboards.fonts import MONO, SANS

MM = 72 / 25.4
WIDE, HIGH = 210 * MM, 297 * MM
MARGIN = 20 * MM
FOOT = 12 * MM
BETWEEN = 6 * MM  # figures in a row
SMALLEST = 0.75  # of a figure's size, that it still stands on a page which has no room for all of it
_LINE = 1.4  # of the type size


class Style(NamedTuple):
    """How a text is set: type size in points, colour, weight, family, room above and below, indent."""

    size: float
    color: str = "ink"
    bold: bool = False
    mono: bool = False
    above: float = 0.0
    below: float = 4.0
    indent: float = 0.0


STYLES = {
    "title": Style(18, bold=True, below=5),
    "heading": Style(14, bold=True, above=20, below=3),
    "subheading": Style(10, bold=True, above=11, below=3),
    "verdict": Style(11.5, bold=True, above=5, below=6),
    "strong": Style(9.5, bold=True, below=2),
    "text": Style(9.2, below=5),
    "muted": Style(9.2, "muted", below=4),
    "small": Style(8, "muted", below=3),
    "alarm": Style(9.2, "alarm", bold=True, above=6),
    "item": Style(9.2, below=3, indent=10),
    "under": Style(7.6, "muted", below=2, indent=10),
    "note": Style(9.2, above=4, below=8, indent=10),
    "code": Style(7.6, mono=True, above=1, below=6, indent=4),
    "command": Style(7.6, mono=True, above=1, below=6, indent=4),
    "caption": Style(8, "muted", above=4, below=10),
    "cell": Style(8.2, below=0),
}


@dataclass(frozen=True)
class Block:
    """One thing on paper.

    Attributes
    ----------
    kind : str
        A key of `STYLES`, or "table", "figure", "figures" or "rule".
    text : str
        What it says, a table's title, a figure's caption.
    rows, header : sequences of str
        Of a table.
    pdf : bytes
        Of a figure, one page.
    beside : tuple of Block
        Of "figures": two that stand in a row.
    """

    kind: str
    text: str = ""
    rows: Sequence[Sequence[str]] = ()
    header: Sequence[str] = ()
    pdf: bytes = field(default=b"", repr=False)
    beside: tuple[Block, ...] = ()


class _Mark(NamedTuple):
    """A text or, with a length, a line, at a place on a page in points from its lower left corner."""

    x: float
    y: float
    text: str = ""
    style: Style = STYLES["text"]
    length: float = 0.0
    upright: bool = False


@lru_cache(maxsize=16384)
def _advance(character: str, bold: bool, mono: bool) -> float:
    """Return how wide a character stands, in units of the type size."""
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.ft2font import LoadFlags

    family = MONO if mono else SANS
    weight = "bold" if bold and fonts.is_bold(character, family) else "normal"
    holder = fonts.holder(character, family, weight) or family
    font = get_font(findfont(FontProperties(family=holder, weight=weight)))
    if not font.get_char_index(ord(character)):
        return 1.0  # drawn as an empty box
    font.set_size(1000, 72)
    return float(font.load_char(ord(character), flags=LoadFlags.NO_HINTING).linearHoriAdvance / 65536 / 1000)


def extent(text: str, style: Style) -> float:
    """Return how wide a text stands, in points.

    Examples
    --------
    >>> extent("0000", Style(10, mono=True)) == 4 * extent("i", Style(10, mono=True))
    True
    """
    return sum(_advance(c, style.bold, style.mono) for c in text) * style.size


def lines_of(text: str, style: Style, width: float) -> list[str]:
    """Break a text into lines of at most so many points; a word that is longer is broken.

    Examples
    --------
    >>> lines_of("one two", Style(10), 30), lines_of("a\\nb", Style(10), 100)
    (['one', 'two'], ['a', 'b'])
    """
    lines: list[str] = []
    for paragraph in _printable(text).split("\n"):
        start = paragraph[: len(paragraph) - len(paragraph.lstrip(" "))] if style.mono else ""
        line = start
        for word in paragraph.split():
            joined = f"{line} {word}" if line.strip() else f"{start}{word}"
            if extent(joined, style) <= width:
                line = joined
                continue
            if line.strip():
                lines.append(line)
            line = f"{start}{word}"
            while extent(line, style) > width:
                keep = max(1, _fitting(line, style, width))
                lines.append(line[:keep])
                line = line[keep:]
        lines.append(line)
    return lines


def command_lines(text: str, style: Style, width: float) -> str:
    """Break a command line between its words, so that a shell takes it as it is copied.

    Examples
    --------
    >>> print(command_lines("leakviz report 'a b' c", Style(10, mono=True), 110))
    leakviz report \\
      'a b' c
    """
    lines, ends = [""], []
    for word in shlex.split(text):
        for i, part in enumerate(_parts(word, style, width)):
            joined = f"{lines[-1]} {part}" if lines[-1].strip() else part
            if i:  # a backslash right behind the quotes: the shell puts the parts together
                ends.append("\\")
                lines.append(part)
            elif lines[-1].strip() and extent(f"{joined} \\", style) > width:
                ends.append(" \\")
                lines.append(f"  {part}")
            else:
                lines[-1] = joined
    return "\n".join(f"{line}{end}" for line, end in zip(lines, [*ends, ""], strict=True))


def _parts(word: str, style: Style, width: float) -> list[str]:
    """Quote a word of a command line, in parts that fit a line each."""
    parts, rest = [], word
    while "\n" not in rest and extent(f"  {shlex.quote(rest)} \\", style) > width:
        keep = len(rest) - 1
        while keep > 1 and extent(f"  {shlex.quote(rest[:keep])} \\", style) > width:
            keep -= 1
        keep = (
            max(rest.rfind("&", 1, keep), rest.rfind(" ", 1, keep)) + 1 or keep
        )  # where one would read a pause
        parts.append(shlex.quote(rest[:keep]))
        rest = rest[keep:]
    return [*parts, shlex.quote(rest)]


def _fitting(text: str, style: Style, width: float) -> int:
    room = width
    for i, character in enumerate(text):
        room -= _advance(character, style.bold, style.mono) * style.size
        if room < 0:
            return i
    return len(text)


def _printable(text: str) -> str:
    tidy = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(c if c.isprintable() or c == "\n" else " " for c in tidy)


_LEADS = ("heading", "subheading", "alarm")
_LED = ("muted", "verdict")


class Paper:
    """Sets blocks on A4 pages, one below the other.

    Parameters
    ----------
    title, author : str
        Of the document, plain text.

    Examples
    --------
    >>> Paper(title="a").write([Block("title", "a")])[:5]
    b'%PDF-'
    """

    def __init__(self, *, title: str, author: str = ""):
        self.title, self.author = title, author
        self.pages: list[list[_Mark]] = [[]]
        self.figures: list[tuple[int, float, float, float, bytes]] = []
        self.y = HIGH - MARGIN

    # ---- setting

    def write(self, blocks: Sequence[Block], progress: Callable[[int, int], object] | None = None) -> bytes:
        """Return the PDF of these blocks; the same blocks give the same bytes.

        Parameters
        ----------
        blocks : sequence of Block
        progress : callable, optional
            Told how many pages are written, and of how many.

        Raises
        ------
        RuntimeError
            If matplotlib or pypdf is not installed.
        """
        try:
            import matplotlib  # noqa: F401
            import pypdf  # noqa: F401
        except ImportError as error:
            raise RuntimeError(
                'a report as PDF needs matplotlib and pypdf: pip install "leakviz[figures]"'
            ) from error
        self.lay_out(blocks)
        return self._merged(self._printed(progress))

    def lay_out(self, blocks: Sequence[Block]) -> None:
        """Say where everything stands, and write nothing yet."""
        for i, block in enumerate(blocks):
            self._together(blocks[i:])
            self._set(block)

    def _room(self, high: float) -> None:
        """Start a page where so many points do not fit any more."""
        if self.y - high < MARGIN and self.y < HIGH - MARGIN:
            self.pages.append([])
            self.y = HIGH - MARGIN

    def _together(self, blocks: Sequence[Block]) -> None:
        """Start a page where the first block would be parted from those that it leads to."""
        end = 1
        if blocks[0].kind in _LEADS:  # a heading, what it is about, and the beginning of what stands below it
            while end < len(blocks) and blocks[end].kind in _LED:
                end += 1
            self._room(sum(map(self._tall, blocks[:end])) + self._least(blocks[end:]))
        elif blocks[0].kind == "item":  # a source and its hashes
            while end < len(blocks) and blocks[end].kind == "under":
                end += 1
            if end > 1:
                self._room(sum(map(self._tall, blocks[:end])))

    def _tall(self, block: Block) -> float:
        """Return how high a text is."""
        style = STYLES[block.kind]
        many = len(lines_of(block.text, style, WIDE - 2 * MARGIN - style.indent))
        return style.above + many * style.size * _LINE + style.below

    def _set(self, block: Block) -> None:
        if block.kind == "rule":
            self._room(12)
            self.y -= 6
            self.pages[-1].append(_Mark(MARGIN, self.y, length=WIDE - 2 * MARGIN))
            self.y -= 6
        elif block.kind == "table":
            self._table(block)
        elif block.kind in ("figure", "figures"):
            self._figures(block.beside or (block,))
        else:
            style = STYLES[block.kind]
            text = block.text
            if block.kind == "command":
                text = command_lines(text, style, WIDE - 2 * MARGIN - style.indent)
            self._text(
                text,
                style,
                bullet=block.kind == "item",
                bar=block.kind == "note",
                whole=block.kind in ("code", "command"),
            )

    def _least(self, blocks: Sequence[Block]) -> float:
        """Return how much of the block that comes first has to stand on the page of its heading."""
        if not blocks:
            return 0.0
        block = blocks[0]
        if block.kind == "item":  # all of a source, which is not parted
            under = itertools.takewhile(lambda one: one.kind == "under", blocks[1:])
            return sum(map(self._tall, (block, *under)))
        if block.kind == "table":
            return self._begun(block)
        if block.kind in ("figure", "figures"):
            return SMALLEST * max(_size_of(one.pdf)[1] for one in block.beside or (block,)) + 30
        if block.kind == "code":
            return STYLES["code"].size * _LINE * (block.text.count("\n") + 2)
        return 46.0

    def _text(
        self, text: str, style: Style, *, bullet: bool = False, bar: bool = False, whole: bool = False
    ) -> None:
        lines = lines_of(text, style, WIDE - 2 * MARGIN - style.indent)
        step = style.size * _LINE
        if self.y < HIGH - MARGIN:
            self.y -= style.above
        if whole and len(lines) * step < HIGH / 3:
            self._room(len(lines) * step)
        for i, line in enumerate(lines):
            left = len(lines) - i
            self._room(step * (2 if i == 0 and left > 1 else 1))  # no first line alone at the foot
            if bullet and i == 0:
                self.pages[-1].append(_Mark(MARGIN, self.y - style.size, "–", style))
            if bar:
                self.pages[-1].append(_Mark(MARGIN + 2, self.y - step, length=step, upright=True))
            self.pages[-1].append(_Mark(MARGIN + style.indent, self.y - style.size, line, style))
            self.y -= step
        self.y -= style.below

    def _table(self, block: Block) -> None:
        cell, head = STYLES["cell"], STYLES["cell"]._replace(color="muted")
        rows = [list(row) for row in block.rows]
        widths = _columns([*rows, *([list(block.header)] if block.header else [])], cell)
        heads = [lines_of(t, head, w) for t, w in zip(block.header, widths, strict=False)]
        self._room(self._begun(block))
        if block.text:
            self._text(block.text, STYLES["small"])
        if heads:
            self._row(heads, widths, head)
        for i, row in enumerate(rows):
            high = self._high(row, widths, cell)
            before = len(self.pages)
            last = self._high(rows[-1], widths, cell) if i == len(rows) - 2 else 0.0  # is never alone
            self._room(high + last)
            if heads and len(self.pages) > before:
                self._row(heads, widths, head)
            self._row([lines_of(t, cell, w) for t, w in zip(row, widths, strict=False)], widths, cell)
        self.y -= 8

    def _begun(self, block: Block) -> float:
        """Return how much of a table has to stand on one page: all where it is small, else its beginning."""
        cell, rows = STYLES["cell"], [list(row) for row in block.rows]
        if not rows:
            return 0.0
        widths = _columns([*rows, *([list(block.header)] if block.header else [])], cell)
        above = self._tall(Block("small", block.text)) if block.text else 0.0
        above += self._high(block.header, widths, cell) if block.header else 0.0
        high = [self._high(row, widths, cell) for row in rows]
        return above + sum(high if sum(high) < HIGH / 4 else high[:2])

    @staticmethod
    def _high(row: Sequence[str], widths: Sequence[float], style: Style) -> float:
        most = max((len(lines_of(t, style, w)) for t, w in zip(row, widths, strict=False)), default=1)
        return most * style.size * _LINE + 5

    def _row(self, cells: Sequence[Sequence[str]], widths: Sequence[float], style: Style) -> None:
        step, x = style.size * _LINE, MARGIN
        for i, (lines, width) in enumerate(zip(cells, widths, strict=False)):
            of = style._replace(color="muted") if i == 0 else style
            for k, line in enumerate(lines):
                self.pages[-1].append(_Mark(x, self.y - 2 - style.size - k * step, line, of))
            x += width + _GAP
        self.y -= max(map(len, cells), default=1) * step + 5
        self.pages[-1].append(_Mark(MARGIN, self.y, length=WIDE - 2 * MARGIN))

    def _figures(self, blocks: Sequence[Block]) -> None:
        """Set figures side by side, each with its caption below it; smaller where that saves a page."""
        style, step = STYLES["caption"], STYLES["caption"].size * _LINE
        width = (WIDE - 2 * MARGIN - BETWEEN * (len(blocks) - 1)) / len(blocks)
        captions = [lines_of(block.text, style, width) for block in blocks]
        high = max(_size_of(block.pdf)[1] for block in blocks)
        below = 8 + style.above + max(map(len, captions)) * step
        room = self.y - MARGIN - below - 0.5
        scale = room / high if SMALLEST * high <= room < high else 1.0
        self._room(scale * high + below)
        self.y -= 6 + scale * high
        for i, (block, lines) in enumerate(zip(blocks, captions, strict=True)):
            x, top = MARGIN + i * (width + BETWEEN), self.y - style.above
            self.figures.append((len(self.pages) - 1, x, self.y, scale, block.pdf))
            marks = [_Mark(x, top - style.size - k * step, line, style) for k, line in enumerate(lines)]
            self.pages[-1].extend(marks)
        self.y -= style.above + max(map(len, captions)) * step + style.below

    # ---- writing

    def _printed(self, progress: Callable[[int, int], object] | None = None) -> bytes:
        """Return the texts and lines as PDF, without the figures."""
        import matplotlib as mpl
        from matplotlib.backends.backend_pdf import FigureCanvasPdf, PdfPages
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D

        out = io.BytesIO()
        about: dict[str, Any] = {
            "Title": _printable(self.title),
            "Author": _printable(self.author),
            "Creator": "leakviz",
            "CreationDate": None,
        }
        settings: Any = {"pdf.fonttype": 42, "font.family": SANS, "pdf.compression": 6}
        with export._ONE_AT_A_TIME, mpl.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font", category=UserWarning)
            with PdfPages(out, metadata=about) as pdf:
                for number, marks in enumerate(self.pages, start=1):
                    figure = Figure(figsize=(WIDE / 72, HIGH / 72), dpi=72, frameon=False)
                    FigureCanvasPdf(figure)
                    for mark in [*marks, *self._foot(number)]:
                        if mark.length:
                            x = [mark.x, mark.x if mark.upright else mark.x + mark.length]
                            y = [mark.y, mark.y + mark.length if mark.upright else mark.y]
                            line = Line2D(
                                [v / WIDE for v in x],
                                [v / HIGH for v in y],
                                color=theme.LIGHT["accent" if mark.upright else "hair"],
                                linewidth=1.6 if mark.upright else 0.6,
                                solid_capstyle="butt",
                            )
                            line.set_transform(figure.transFigure)
                            figure.add_artist(line)
                        elif mark.text.strip():
                            figure.text(
                                mark.x / WIDE,
                                mark.y / HIGH,
                                mark.text,
                                fontsize=mark.style.size,
                                **fonts.of(
                                    mark.text, MONO if mark.style.mono else SANS, bold=mark.style.bold
                                ),
                                color=theme.LIGHT[mark.style.color],
                                verticalalignment="baseline",
                                parse_math=False,  # a dollar sign in a name is one
                            )
                    pdf.savefig(figure)
                    if progress is not None:
                        progress(number, len(self.pages))
        return out.getvalue()

    def _foot(self, number: int) -> list[_Mark]:
        style = STYLES["small"]
        words = f"page {number} of {len(self.pages)}"
        right = WIDE - MARGIN - extent(words, style)
        title = _printable(self.title).replace("\n", " ")
        keep = _fitting(title, style, right - MARGIN - 30)
        short = title if keep >= len(title) else f"{title[: max(keep - 1, 1)]}…"
        return [_Mark(MARGIN, FOOT, short, style), _Mark(right, FOOT, words, style)]

    def _merged(self, printed: bytes) -> bytes:
        """Put the figures where they belong, each as one object (a form) that the page draws."""
        from pypdf import PdfReader, PdfWriter
        from pypdf.generic import (
            ArrayObject,
            DecodedStreamObject,
            DictionaryObject,
            NameObject,
            StreamObject,
        )

        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(printed)))

        def added(data: bytes, **about: Any) -> Any:
            stream: StreamObject = DecodedStreamObject()
            stream.set_data(data)
            stream = stream.flate_encode()
            stream.update({NameObject(f"/{key}"): value for key, value in about.items()})
            return writer._add_object(stream)

        figures: dict[int, list[Any]] = {}
        for number, (at, x, y, scale, pdf) in enumerate(self.figures, start=1):
            figure = PdfReader(io.BytesIO(pdf)).pages[0]
            contents = figure.get_contents()
            form = added(
                contents.get_data() if contents is not None else b"",
                Type=NameObject("/XObject"),
                Subtype=NameObject("/Form"),
                BBox=figure.mediabox.clone(writer),
                Resources=figure["/Resources"].get_object().clone(writer),  # type: ignore[union-attr]
            )
            page = writer.pages[at]
            resources: Any = page["/Resources"].get_object()
            known = resources.setdefault(NameObject("/XObject"), DictionaryObject()).get_object()
            known[NameObject(f"/leakviz{number}")] = form
            place = f"q {scale:.4f} 0 0 {scale:.4f} {x:.3f} {y:.3f} cm /leakviz{number} Do Q\n".encode()
            figures.setdefault(at, []).append(added(place))
        for at, drawn in figures.items():  # after the texts, in the state in which the page began
            page = writer.pages[at]
            own = page.raw_get("/Contents")
            page[NameObject("/Contents")] = ArrayObject([added(b"q\n"), own, added(b"\nQ\n"), *drawn])
        out = io.BytesIO()
        writer.write(out)
        return out.getvalue()


_GAP = 14.0  # points between columns


def _columns(rows: Sequence[Sequence[str]], style: Style) -> list[float]:
    """Return the columns' widths in points: what they need, and where that is too much, a fair share."""
    many = max(map(len, rows), default=1)
    room = WIDE - 2 * MARGIN - _GAP * (many - 1)
    wanted = [1.0] * many
    for row in rows:
        for i, text in enumerate(row):
            for line in _printable(text).split("\n"):
                wanted[i] = max(wanted[i], extent(line, style) + 1)
    if sum(wanted) <= room:
        spare = (room - sum(wanted)) / many
        return [w + spare for w in wanted]
    fair = room / many
    over = [max(0.0, w - fair) for w in wanted]
    left = room - sum(min(w, fair) for w in wanted)
    return [min(w, fair) + left * o / max(sum(over), 1e-9) for w, o in zip(wanted, over, strict=True)]


@lru_cache(maxsize=64)
def _size_of(pdf: bytes) -> tuple[float, float]:
    from pypdf import PdfReader

    box = PdfReader(io.BytesIO(pdf)).pages[0].mediabox
    return float(box.width), float(box.height)
