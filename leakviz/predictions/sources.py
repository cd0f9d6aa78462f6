"""Open a file that somebody brought: recognise it by its content, limit it, read it in batches.

Nothing here trusts a file's name, and nothing here can run what a file contains: pickles are recognised
by their first bytes and refused unread. What a file would unpack to is compared with the limit before it
is unpacked.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from leakviz.errors import InputError

MAX_BYTES = 1_000_000_000
"""Default limit in bytes, for a file and for what it unpacks to."""

FORMATS = ("csv", "tsv", "parquet", "feather", "jsonl", "excel")

_HEAD = 1 << 20  # bytes read to recognise a file

_HOW_TO_SAVE = "Save the table as CSV or Parquet (pandas: frame.to_csv('table.csv', index=False))"
_PICKLE = (
    "is a Python pickle. leakviz never loads pickles, because opening one runs whatever code it holds. "
    "If you trust it, load it yourself and re-save: pandas.read_pickle(...).to_parquet('preds.parquet')"
)
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x93NUMPY", f"is a NumPy array (.npy). {_HOW_TO_SAVE}"),
    (
        b"\x1f\x8b",
        "is compressed with gzip (an .rds file of R is, too). Decompress it, or save CSV or Parquet",
    ),
    (b"BZh", "is compressed with bzip2. Decompress it first"),
    (b"\xfd7zXZ", "is compressed with xz. Decompress it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd. Decompress it first"),
    (b"\x89HDF", f"is HDF5 or netCDF. {_HOW_TO_SAVE}"),
    (b"CDF", f"is netCDF. {_HOW_TO_SAVE}"),
    (b"SQLite format 3", f"is a SQLite database. {_HOW_TO_SAVE}"),
    (b"\xd0\xcf\x11\xe0", "is an old Excel file (.xls) or an encrypted one. Save it as .xlsx or CSV"),
    (b"%PDF", f"is a PDF. {_HOW_TO_SAVE}"),
    (b"\x89PNG", f"is a picture. {_HOW_TO_SAVE}"),
    (b"\xff\xd8\xff", f"is a picture. {_HOW_TO_SAVE}"),
    (b"FEA1", "is Feather version 1. Re-save it as version 2: pyarrow.feather.write_feather(table, file)"),
    (b"ORC", "is ORC. Save it as Parquet"),
    (b"Obj\x01", "is Avro. Save it as Parquet"),
    (b"$FL2", f"is an SPSS file. {_HOW_TO_SAVE}"),
    (b"RDX", f"is an R workspace. {_HOW_TO_SAVE}"),
)
_TEXT_PICKLE = re.compile(rb"(\([ldt]?p\d+\n|c[A-Za-z_][\w.]*\n\w+\n[p(])")
_ENCODED_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def quoted(text: object) -> str:
    """Show a text from a file in a message: in quotes, on one line, never longer than 60 characters."""
    shown = repr(str(text))
    return shown if len(shown) <= 60 else shown[:56] + "..." + shown[0]


@dataclass
class Source:
    """A readable file with its size and the name to call it by."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]
    head: bytes = field(default=b"", repr=False)


def open_source(
    file: Any,
    name: str | None,
    max_bytes: int,
    *,
    what: str = "predictions",
    slimmer: str = "Keep only the columns for p and y, save it as Parquet",
) -> Source:
    """Take a path, bytes or a binary file object, and refuse what is missing, empty or too large."""
    if isinstance(file, (bytes, bytearray, memoryview)):
        data = bytes(file)
        source = Source(name or "the upload", len(data), lambda: io.BytesIO(data))
    elif isinstance(file, (str, os.PathLike)):
        path = Path(file)
        shown = name or path.name or str(path)
        if not path.exists():
            raise InputError(f"there is no file {quoted(path)}. Check the path and the working directory.")
        if not path.is_file():
            raise InputError(f"{quoted(path)} is not a file. Name one file of {what}.")
        source = Source(shown, path.stat().st_size, lambda: path.open("rb"))
    elif hasattr(file, "read") and hasattr(file, "seek"):
        if isinstance(file, io.TextIOBase):
            raise InputError("the file object gives text. Open it with mode 'rb'.")
        size = file.seek(0, os.SEEK_END)
        own = getattr(file, "name", None)
        shown = name or (Path(own).name if isinstance(own, str) else "the upload")

        def rewind() -> IO[bytes]:
            file.seek(0)
            return io.BufferedReader(_Borrowed(file))

        source = Source(shown, size, rewind)
    else:
        raise InputError(
            f"file is a {type(file).__name__}. Give a path, the bytes of a file, or a binary file object."
        )
    if source.size == 0:
        raise InputError(f"{quoted(source.name)} is empty: it has 0 bytes.")
    if source.size > max_bytes:
        raise InputError(
            f"{quoted(source.name)} has {source.size:,} bytes, more than the limit of {max_bytes:,}. "
            f"{slimmer}, or raise max_bytes."
        )
    try:
        with source.open() as stream:
            source.head = stream.read(_HEAD)
    except OSError as error:
        raise InputError(f"{quoted(source.name)} cannot be read: {error.strerror}.") from error
    return source


class _Borrowed(io.RawIOBase):
    """A file object of somebody else, which is not closed when we are done with it."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def recognise(source: Source, encoding: str | None = None) -> str:
    """Return one of `FORMATS` (``"csv"`` for any delimited text), or refuse what cannot be read."""
    head = source.head
    name = quoted(source.name)
    if head[:4] == b"PAR1":
        return "parquet"
    if head[:6] == b"ARROW1":
        return "feather"
    if head[:4] == b"PK\x03\x04" or head[:4] == b"PK\x05\x06":
        return _recognise_zip(source)
    if head[:1] == b"\x80" and len(head) > 1 and head[1] <= 5:
        raise InputError(f"{name} {_PICKLE}.")
    if _TEXT_PICKLE.match(head):
        raise InputError(f"{name} {_PICKLE}.")
    if head[:1] == b"\x78" and head[1:2] in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
        raise InputError(f"{name} is compressed with zlib, as joblib saves pickles; it {_PICKLE}.")
    for magic, words in _MAGIC:
        if head.startswith(magic):
            raise InputError(f"{name} {words}.")
    if encoding is None and not mark_encoding(head) and b"\0" in head[:4096]:
        raise InputError(
            f"{name} is not text: byte {head.index(0) + 1:,} is NUL. If it is UTF-16 without a byte-order "
            "mark, say encoding='utf-16-le'; else export the table again as CSV or Parquet."
        )
    start = head.decode(encoding or mark_encoding(head) or "utf-8", errors="replace").lstrip()
    if start[:14].lower().startswith(("<!doctype html", "<html")):
        raise InputError(
            f"{name} is a web page, not data: perhaps a login page was saved. Download it again."
        )
    if start.startswith("<?xml"):
        raise InputError(f"{name} is XML. {_HOW_TO_SAVE}.")
    if start.startswith("["):
        raise InputError(
            f"{name} is one JSON array. Save JSON lines, one object per line "
            "(pandas: frame.to_json('preds.jsonl', orient='records', lines=True))."
        )
    return "jsonl" if start.startswith("{") else "csv"


def mark_encoding(head: bytes) -> str | None:
    """Return the encoding that a byte-order mark names."""
    return next((name for mark, name in _ENCODED_MARKS if head.startswith(mark)), None)


def _recognise_zip(source: Source) -> str:
    name = quoted(source.name)
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            members = [member.filename for member in archive.infolist()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(
            f"{name} begins like a zip or Excel file but is damaged or cut short ({error}). Export it again."
        ) from error
    if "xl/workbook.xml" in members:
        return "excel"
    if any(member.endswith(".npy") for member in members):
        raise InputError(f"{name} is a NumPy archive (.npz). {_HOW_TO_SAVE}.")
    if any(member.endswith((".pkl", "data.pkl")) for member in members):
        raise InputError(f"{name} holds a pickle (as PyTorch saves). It {_PICKLE}.")
    if "mimetype" in members and "content.xml" in members:
        raise InputError(f"{name} is an OpenDocument file. Save it as .xlsx or CSV.")
    raise InputError(
        f"{name} is a zip archive of {len(members):,} files. Unpack it and give the file of predictions."
    )
