"""Read a recognised file to its end, in batches, into a table of packed columns.

What a file would unpack to is compared with the limit before it is unpacked. Text is checked on every
byte on its way to the parser.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from leakviz.errors import InputError
from leakviz.predictions.columns import Table
from leakviz.predictions.sources import FORMATS, Source, mark_encoding, quoted, recognise

DELIMITERS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
_BLOCK = 4 << 20  # bytes of text parsed at a time: no row may be longer
_ROWS = 65_536  # rows per batch of the other formats
_MAX_COLUMNS = 10_000
_MAX_KEYS = 1_000
_EXCEL_BYTES = 400_000_000  # a full sheet of a few columns is far below this
_EXCEL_RATIO = 200  # XML of numbers shrinks about tenfold

Progress = Callable[[int, int], object]


@dataclass
class Opened:
    """A file read to its end."""

    format: str
    table: Table
    words: list[str]
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None


def read_table(
    source: Source,
    *,
    format: str | None,
    encoding: str | None,
    delimiter: str | None,
    sheet: str | None,
    only: frozenset[str] | None,
    max_bytes: int,
    progress: Progress | None,
) -> Opened:
    """Read a whole file; with `only`, skip the columns that are not named, where the format can."""
    if format is not None and format not in FORMATS:
        raise InputError(f"format={format!r} is not known. Choose one of {', '.join(FORMATS)}.")
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError as error:
            raise InputError(f"encoding={encoding!r} is not known. Try 'utf-8' or 'cp1252'.") from error
    found = recognise(source, encoding)
    if format == "tsv":
        format, delimiter = "csv", delimiter or "\t"
    if format is not None and format != found:
        raise InputError(
            f"{quoted(source.name)} is {found} by its content, but format={format!r} was asked for. "
            "Leave format out, or check that it is the right file."
        )
    report = progress or (lambda done, total: None)
    opened = Opened(found, Table(), [], encoding=encoding, delimiter=delimiter, sheet=sheet)
    ending = _ENDINGS.get(Path(source.name).suffix.lower())
    if ending is not None and ending != found:
        opened.words.append(f"The name says {ending}, but the content is {found}, and was read as that.")
    read = {
        "csv": _read_csv,
        "parquet": _read_parquet,
        "feather": _read_feather,
        "jsonl": _read_jsonl,
        "excel": _read_excel,
    }[found]
    read(source, opened, only, max_bytes, report)
    report(source.size, source.size)
    return opened


_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
}


class _Utf8(io.RawIOBase):
    """A text file as UTF-8: decoded on the way, checked on every byte, counted."""

    def __init__(self, source: Source, encoding: str | None) -> None:
        self._name = quoted(source.name)
        self._file = source.open()
        self._named = encoding is not None
        self.encoding = encoding or mark_encoding(source.head) or "utf-8"
        self._decoder = codecs.getincrementaldecoder(self.encoding)(errors="strict")
        self._as_is = codecs.lookup(self.encoding).name == "utf-8"
        self.done = 0
        self.quotes = 0
        self.blank = 0  # blank lines between others
        self.first_blank = 0
        self._lines = 0
        self._ends = b""  # the line ends with which what was read ended

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        # another encoding may take up to three bytes in UTF-8 for each of its own
        ask = (1 << 20) if size < 0 else max(1, size if self._as_is else size // 3)
        while True:
            raw = self._file.read(ask)
            text = self._decode(raw)
            self.done += len(raw)
            if text or not raw:
                break
        if b"\0" in text:
            line = self._lines + text[: text.index(0)].count(b"\n") + 1
            raise InputError(
                f"{self._name}, line {line:,}: a NUL byte, which no text has. The file is damaged, or is not "
                "UTF-8 (for UTF-16 say encoding='utf-16-le'). Export it again."
            )
        self._count_blank(text)
        self._lines += text.count(b"\n")
        self.quotes += text.count(b'"')
        return text

    def _count_blank(self, text: bytes) -> None:
        if not (self._ends or b"\n\n" in text or b"\n\r\n" in text):
            self._ends = text[len(text.rstrip(b"\r\n")) :]
            return
        before = self._lines - self._ends.count(b"\n")
        text = self._ends + text
        for gap in re.finditer(rb"\n((?:\r?\n)+)(?=[^\r\n])", text):
            if not self.blank:
                self.first_blank = before + text[: gap.start(1)].count(b"\n") + 1
            self.blank += gap.group(1).count(b"\n")
        self._ends = text[len(text.rstrip(b"\r\n")) :]

    def _decode(self, raw: bytes) -> bytes:
        if self._as_is and raw and raw.isascii() and not self._decoder.getstate()[0]:
            return raw
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self._lines + raw[: error.start].count(b"\n") + 1
            bad = error.object[error.start]
            raise InputError(
                f"{self._name}, line {line:,}: byte 0x{bad:02X} is not {self.encoding}. "
                + (
                    "Choose another encoding."
                    if self._named
                    else "Save the file as UTF-8, or say its encoding: encoding='cp1252' is usual for "
                    "files from Windows and Excel in western Europe."
                )
            ) from error
        return text.encode("utf-8")


def _read_csv(
    source: Source, opened: Opened, only: frozenset[str] | None, max_bytes: int, report: Progress
) -> None:
    name = quoted(source.name)
    with _Utf8(source, opened.encoding) as stream:
        opened.encoding = stream.encoding
        head = source.head.decode(stream.encoding, errors="ignore")
        skip = 0
        if said := re.match(r"sep=(.)\r?\n", head):
            head, skip = head[said.end() :], 1
            opened.delimiter = opened.delimiter or said.group(1)
        if not head.strip():
            raise InputError(f"{name} is empty: it holds nothing but blanks.")
        whole = len(source.head) == source.size
        if opened.delimiter is None:
            opened.delimiter = _sniff_delimiter(head, whole, name)
        elif len(opened.delimiter) != 1:
            raise InputError(f"delimiter={opened.delimiter!r} is not one character.")
        header = next(row for row in _records(head, opened.delimiter) if row)
        names = [cell.strip() for cell in header]
        _check_header(names, name)
        ragged: list[Any] = []
        extra = [0]

        def refuse(row: Any) -> str:
            if not ragged:
                ragged.append(row)
            extra[0] += 1
            return "skip"

        keys = [f"c{i}" for i in range(len(names))]
        wanted = _wanted(names, only)
        last: list[Any] = []
        try:
            reader = pa_csv.open_csv(
                pa.PythonFile(stream, mode="r"),
                read_options=pa_csv.ReadOptions(
                    column_names=keys, block_size=_BLOCK, skip_rows=skip, use_threads=False
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=opened.delimiter, newlines_in_values=True, invalid_row_handler=refuse
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(keys, pa.string()),
                    include_columns=[keys[i] for i in wanted],
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
            first = True
            for batch in reader:
                arrays = batch.columns
                if first and len(batch):
                    arrays, first = [array.slice(1) for array in arrays], False
                if len(arrays[0]):
                    opened.table.add([names[i] for i in wanted], arrays)
                    last = arrays
                report(min(stream.done, source.size), source.size)
        except pa.ArrowInvalid as error:
            _refuse_csv(error, name)
        if ragged:
            raise InputError(_ragged_words(name, ragged[0], extra[0], len(names), opened.table.rows))
        if stream.quotes % 2 and any("\n" in str(array[-1]) for array in last):
            raise InputError(
                f"{name}: a double quote is opened and never closed, so the end of the file reads as one "
                f'cell (row {opened.table.rows:,}). Close it, or double it ("") inside a quoted cell.'
            )
    if opened.table.rows == 0:
        opened.table.columns = []
        raise InputError(_no_rows(name, names))
    between = DELIMITERS.get(opened.delimiter, quoted(opened.delimiter))
    opened.words.append(f"Text in {stream.encoding} with {between} between cells.")
    if stream.blank and not stream.quotes:  # inside quotes a blank line belongs to a cell
        lines = "1 blank line" if stream.blank == 1 else f"{stream.blank:,} blank lines"
        opened.words.append(
            f"{lines} left out, the first at line {stream.first_blank:,}; rows are counted without them."
        )


def _refuse_csv(error: Exception, name: str) -> None:
    if "straddling" in str(error) or "block" in str(error):
        raise InputError(
            f"{name}: one row is longer than {_BLOCK >> 20} MB. A double quote is opened and never closed, "
            "or the file is not a table."
        ) from error
    raise InputError(f"{name} cannot be read as delimited text: {str(error).splitlines()[0]}.") from error


def _ragged_words(name: str, row: Any, count: int, width: int, good: int) -> str:
    total = good + count
    words = (
        f"{name}: {count:,} of {total:,} rows do not have as many cells as the header ({width}). The first "
        f"is row {row.number - 1:,} with {row.actual_columns}: {quoted(row.text)}. "
    )
    if good == 0 and row.actual_columns == width + 1:
        return words + (
            "All have one more: R's write.table leaves out the name above the row names; "
            "write with row.names=FALSE."
        )
    return words + (
        "Put quotes around cells that hold the delimiter, and remove comments and lines that are no data."
    )


def _records(head: str, delimiter: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO(head, newline=""), delimiter=delimiter, strict=False)
    except csv.Error:
        return


def _sniff_delimiter(head: str, whole: bool, name: str) -> str:
    """Find the delimiter that gives every row of the head as many cells as the header."""
    widths: dict[str, list[int]] = {}
    for delimiter in DELIMITERS:
        rows = [len(row) for row, _ in zip(_records(head, delimiter), range(1001), strict=False) if row]
        widths[delimiter] = rows if whole or len(rows) in (1, 1001) else rows[:-1]
    splitting = [d for d, rows in widths.items() if rows and rows[0] > 1]
    even = [d for d in splitting if len(set(widths[d])) == 1]
    # a comma may also be a decimal mark, so it comes last
    for choice in (even, splitting):
        if choice:
            return choice[0]
    first = next((row for row in _records(head, ",") if row), [""])
    if first and first[0].lstrip().startswith("#"):
        raise InputError(
            f"{name} begins with a comment, {quoted(first[0])}. Take lines that begin with # away: the first line "
            "must name the columns."
        )
    raise InputError(
        f"{name} has one column only, {quoted(first[0])}: no comma, semicolon, tab or bar stands in its "
        "first line. A file of predictions needs p and y; for another delimiter say delimiter='...'."
    )


def _check_header(names: list[str], name: str) -> None:
    if len(names) > _MAX_COLUMNS:
        raise InputError(f"{name} has {len(names):,} columns, more than {_MAX_COLUMNS:,}. Keep p and y.")
    number = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?%?")
    numeric = [cell for cell in names if number.fullmatch(cell)]
    broken = [cell for cell in numeric if not cell.isdigit()]
    if broken or len(numeric) == len(names):
        cell = (broken or numeric)[0]
        raise InputError(
            f"{name} has no header: its first line holds {quoted(cell)}, which is data. Put a line with the "
            "names of the columns on top, for instance p and y."
        )


def _no_rows(name: str, names: list[str]) -> str:
    shown = ", ".join(quoted(n) for n in names[:6]) + (", ..." if len(names) > 6 else "")
    return f"{name} has a header ({shown}) and 0 rows below it."


def _wanted(names: list[str], only: frozenset[str] | None) -> list[int]:
    if only is None or not only <= set(names):
        return list(range(len(names)))
    return [i for i, name in enumerate(names) if name in only]


def _check_rows(rows: int, name: str, max_bytes: int) -> None:
    if rows * 9 > max_bytes:
        raise InputError(
            f"{name} claims {rows:,} rows, which take {rows * 9:,} bytes as p and y, more than the limit of "
            f"{max_bytes:,}. Check the file, or raise max_bytes."
        )


def _read_parquet(
    source: Source, opened: Opened, only: frozenset[str] | None, max_bytes: int, report: Progress
) -> None:
    name = quoted(source.name)
    try:
        with source.open() as stream:
            file = pq.ParquetFile(stream)
            schema = file.schema_arrow
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            unpacked = sum(group.total_byte_size for group in groups)
            if unpacked > max_bytes:
                raise InputError(
                    f"{name} has {source.size:,} bytes and unpacks to {unpacked:,}, more than the limit of "
                    f"{max_bytes:,}. Keep only the columns for p and y, or raise max_bytes."
                )
            rows = file.metadata.num_rows
            _check_rows(rows, name, max_bytes)
            _check_width(len(schema), name)
            # texts stay references into their dictionary: one long text cannot be multiplied
            texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
            if texts and len(set(schema.names)) == len(schema.names):
                stream.seek(0)
                file = pq.ParquetFile(stream, read_dictionary=texts)
            wanted = _wanted(list(schema.names), only)
            columns = None
            if len(wanted) < len(schema) and not any(pa.types.is_nested(f.type) for f in schema):
                columns = [schema.names[i] for i in wanted]
            done = 0
            for batch in file.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False):
                opened.table.add([n.strip() for n in batch.schema.names], batch.columns)
                done += len(batch)
                report(source.size * done // max(rows, 1), source.size)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{name} begins like Parquet but is damaged or cut short (it has {source.size:,} bytes). "
            f"Copy or export it again. The reader says: {_first_line(error)}."
        ) from error
    if opened.table.rows == 0:
        raise InputError(_no_rows(name, list(schema.names)))


def _read_feather(
    source: Source, opened: Opened, only: frozenset[str] | None, max_bytes: int, report: Progress
) -> None:
    name = quoted(source.name)
    try:
        with source.open() as stream:
            unpacked = _feather_bytes(stream)
            if unpacked > max_bytes:
                raise InputError(
                    f"{name} has {source.size:,} bytes and unpacks to {unpacked:,}, more than the limit of "
                    f"{max_bytes:,}. Keep only the columns for p and y, or raise max_bytes."
                )
            stream.seek(0)
            file = pa.ipc.open_file(pa.PythonFile(stream, mode="r"))
            names = list(file.schema.names)
            _check_width(len(names), name)
            for i in range(file.num_record_batches):
                batch = file.get_batch(i)
                batch.validate(full=True)  # offsets that point outside would crash the process
                _check_rows(opened.table.rows + len(batch), name, max_bytes)
                opened.table.add([n.strip() for n in names], batch.columns)
                report(source.size * (i + 1) // file.num_record_batches, source.size)
    except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as error:
        raise InputError(
            f"{name} begins like Feather but is damaged or cut short (it has {source.size:,} bytes). "
            f"Copy or export it again. The reader says: {_first_line(error)}."
        ) from error
    if opened.table.rows == 0:
        raise InputError(_no_rows(name, names))


def _feather_bytes(stream: Any) -> int:
    """Return what an Arrow file unpacks to, in bytes, without unpacking it.

    Each compressed buffer says its size in its first eight bytes; where the buffers lie is in the message
    before them, a FlatBuffer (https://arrow.apache.org/docs/format/Columnar.html).
    """
    stream.seek(8)  # the magic bytes and their padding; a stream of messages follows
    total = 0
    for message in pa.ipc.MessageReader.open_stream(pa.PythonFile(stream, mode="r")):
        if message.type == "schema" or message.body is None:
            continue
        flat = memoryview(message.metadata)
        batch = _flat_field(flat, _flat_offset(flat, 0), 2)
        if message.type == "dictionary":
            batch = _flat_field(flat, batch + _flat_offset(flat, batch), 1)
        batch += _flat_offset(flat, batch)
        buffers = _flat_field(flat, batch, 2)
        compressed = _flat_field(flat, batch, 3) != 0
        if not buffers:
            continue
        buffers += _flat_offset(flat, buffers)
        body = memoryview(message.body)
        for i in range(_flat_offset(flat, buffers)):
            start, length = struct.unpack_from("<qq", flat, buffers + 4 + 16 * i)
            if compressed and length >= 8:
                (claimed,) = struct.unpack_from("<q", body, start)
                length = claimed if claimed >= 0 else length
            total += length
    return total


def _flat_offset(flat: memoryview, at: int) -> int:
    """Return the unsigned 32-bit number at a place in a FlatBuffer."""
    return struct.unpack_from("<I", flat, at)[0]


def _flat_field(flat: memoryview, table: int, field: int) -> int:
    """Return where the value of a field of a table lies, 0 where it is left out."""
    fields = table - struct.unpack_from("<i", flat, table)[0]
    at = 4 + 2 * field
    if at >= struct.unpack_from("<H", flat, fields)[0]:
        return 0
    offset = struct.unpack_from("<H", flat, fields + at)[0]
    return table + offset if offset else 0


def _check_width(width: int, name: str) -> None:
    if width > _MAX_COLUMNS:
        raise InputError(f"{name} has {width:,} columns, more than {_MAX_COLUMNS:,}. Keep p and y.")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")


class _Twice(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return row


def _read_jsonl(
    source: Source, opened: Opened, only: frozenset[str] | None, max_bytes: int, report: Progress
) -> None:
    name = quoted(source.name)
    # in the order in which the keys appear; a column may begin late
    names: dict[str, None] = {}
    with _Utf8(source, opened.encoding) as stream:
        opened.encoding = stream.encoding
        for line, block in _line_blocks(stream, name):
            rows, columns = _json_columns(block, line, name)
            names.update(dict.fromkeys(columns))
            if len(names) > _MAX_KEYS:
                raise InputError(f"{name} has more than {_MAX_KEYS:,} different keys. Keep p and y.")
            if not names:
                opened.table.rows += rows  # empty objects before the first key
            elif rows:
                arrays = [columns[key] if key in columns else pa.nulls(rows, pa.string()) for key in names]
                opened.table.add([key.strip() for key in names], arrays)
            report(min(stream.done, source.size), source.size)
    if not names:
        raise InputError(f"{name} holds no rows with values.")


def _line_blocks(stream: _Utf8, name: str) -> Iterator[tuple[int, bytes]]:
    """Give whole lines, about 512 kB at a time, with the number of the first one."""
    line, rest = 1, b""
    while block := stream.read(1 << 19):
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if len(rest) > _BLOCK:
            raise InputError(f"{name}: one line is longer than {_BLOCK >> 20} MB, so it is not JSON lines.")
        if newline:
            yield line, whole
            line += whole.count(b"\n") + 1
    yield line, rest


def _json_columns(block: bytes, first: int, name: str) -> tuple[int, dict[str, Any]]:
    """Read a block of lines, each by itself, so that a line can be named; a key left out is a null."""
    decode = json.JSONDecoder(object_pairs_hook=_once).decode
    columns: dict[str, list[Any]] = {}
    rows = 0
    for number, line in enumerate(block.split(b"\n"), start=first):
        if not line.strip():
            continue
        row = _json_row(line, number, name, decode)
        for key, value in row.items():
            if key not in columns:
                columns[key] = [None] * rows
                if len(columns) > _MAX_KEYS:
                    raise InputError(
                        f"{name}, line {number:,}: more than {_MAX_KEYS:,} different keys. Keep p and y."
                    )
            columns[key].append(value)
        rows += 1
        for values in columns.values():
            if len(values) < rows:
                values.append(None)
    return rows, {key: _json_array(values) for key, values in columns.items()}


def _json_row(line: bytes, number: int, name: str, decode: Callable[[str], Any]) -> dict[str, Any]:
    try:
        row = decode(line.decode("utf-8").strip())
    except _Twice as error:
        raise InputError(
            f"{name}, line {number:,}: the key {quoted(error)} stands twice in one object. Rename one."
        ) from error
    except (ValueError, RecursionError) as error:
        hint = (
            "Write one object per line, not one object over several lines, and check that the file is whole"
        )
        raise InputError(f"{name}, line {number:,} is not JSON ({_first_line(error)}). {hint}.") from error
    if not isinstance(row, dict):
        raise InputError(f'{name}, line {number:,} is not a JSON object like {{"p": 0.5, "y": 1}}.')
    return row


def _json_array(values: list[Any]) -> Any:
    """Return numbers as floats where there is nothing else, else the text of everything."""
    if set(map(type, values)) <= {int, float, type(None)}:
        try:
            return pa.array(values, pa.float64(), from_pandas=False)
        except (pa.ArrowInvalid, OverflowError):
            pass  # whole numbers that no float holds
    return pa.array([_json_text(value) for value in values], pa.string())


def _json_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _read_excel(
    source: Source, opened: Opened, only: frozenset[str] | None, max_bytes: int, report: Progress
) -> None:
    name = quoted(source.name)
    _check_excel_size(source, max_bytes)
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{name} is an Excel file, which needs openpyxl: pip install 'leakviz[excel]', or save it as CSV."
        ) from error
    with source.open() as stream:
        try:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            _read_sheet(book, opened, name, source.size, report)
        except InputError:
            raise
        except Exception as error:  # openpyxl lets errors of zip, XML and its own schema through
            raise InputError(
                f"{name} is an Excel file that cannot be read. Open it in Excel and save it again, or save "
                f"CSV. The reader says: {_first_line(error)}."
            ) from error


def _check_excel_size(source: Source, max_bytes: int) -> None:
    with source.open() as stream, zipfile.ZipFile(stream) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
        largest = max(archive.infolist(), key=lambda member: member.file_size)
    limit = min(max_bytes, _EXCEL_BYTES)
    bomb = unpacked > 50_000_000 and unpacked > _EXCEL_RATIO * source.size
    if unpacked > limit or bomb:
        raise InputError(
            f"{quoted(source.name)} has {source.size:,} bytes and claims to unpack to {unpacked:,} (the "
            f"largest part is {quoted(largest.filename)}), so it is refused unopened: the limit is {limit:,} "
            f"bytes and {_EXCEL_RATIO} times its size. Save the table as CSV or Parquet."
        )


def _read_sheet(book: Any, opened: Opened, name: str, size: int, report: Progress) -> None:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    for sheet in sheets.values():
        sheet.reset_dimensions()  # what a sheet claims about its size is not to be trusted
    if opened.sheet is None:
        used = [title for title, sheet in sheets.items() if any(any(_filled(row)) for row in _rows(sheet))]
        if not used:
            raise InputError(f"{name} is empty: none of its {len(sheets)} sheets holds a value.")
        if len(used) > 1:
            shown = ", ".join(quoted(title) for title in used)
            raise InputError(f"{name} has {len(used)} sheets with values: {shown}. Say which: sheet='...'.")
        opened.sheet = used[0]
    elif opened.sheet not in sheets:
        shown = ", ".join(quoted(title) for title in sheets)
        raise InputError(f"{name} has no sheet {opened.sheet!r}. It has {shown}.")
    rows = _rows(sheets[opened.sheet])
    header: list[Any] = []
    above = 0  # blank rows above the header
    for row in rows:
        header = _trimmed(row)
        if header:
            break
        above += 1
    names = ["" if cell is None else str(cell).strip() for cell in header]
    if not names:
        raise InputError(f"{name}, sheet {quoted(opened.sheet)} is empty.")
    _check_header(names, name)
    held: list[list[str | None]] = []
    blank = 0
    for row in rows:
        cells = _trimmed(row)
        if not cells:
            blank += 1
            continue
        if blank:
            held.extend([None] * len(names) for _ in range(blank))  # a gap inside the data is missing values
            blank = 0
        if len(cells) > len(names):
            number = opened.table.rows + len(held) + 1
            raise InputError(
                f"{name}, row {number:,} (sheet row {number + above + 1:,}) has {len(cells)} cells, the "
                f"header {len(names)}: {quoted(cells[len(names)])} has no name above it. Name that column or "
                "remove it."
            )
        held.append([_json_text_or_date(cell) for cell in cells] + [None] * (len(names) - len(cells)))
        if len(held) >= _ROWS:
            _flush_rows(opened.table, names, held)
            report(0, size)
    _flush_rows(opened.table, names, held)
    if opened.table.rows == 0:
        raise InputError(_no_rows(name, names))
    opened.words.append(f"Sheet {quoted(opened.sheet)} of the Excel file.")


def _rows(sheet: Any) -> Iterator[tuple[Any, ...]]:
    return iter(sheet.iter_rows(values_only=True, max_col=_MAX_COLUMNS))


def _filled(row: tuple[Any, ...]) -> Iterator[bool]:
    return (cell is not None and cell != "" for cell in row)


def _trimmed(row: tuple[Any, ...]) -> list[Any]:
    cells = list(row)
    while cells and (cells[-1] is None or cells[-1] == ""):
        cells.pop()
    return cells


def _json_text_or_date(value: object) -> str | None:
    return _json_text(value) if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _flush_rows(table: Table, names: list[str], held: list[list[str | None]]) -> None:
    if held:
        table.add(names, [pa.array(column, pa.string()) for column in zip(*held, strict=True)])
        held.clear()
