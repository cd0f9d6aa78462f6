"""Columns of a file, kept compactly and known on every row.

A file arrives in batches. Every batch of a column is packed at once: as codes into its few different
texts where there are few, as float64 where there are many. What cannot be a plain number is tallied
(how many, first row, first text), so that a message can name it after the text itself is gone.

Rows are counted from 1, below the header.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MISSING = 1  # empty, null, NaN, or one of MISSING_WORDS
BAD = 2  # not a number
POINT = 4  # written with a decimal point
COMMA = 8  # written with one comma, which can only be a decimal mark
GROUPED = 16  # written like 1,234: a decimal comma or a thousands separator
PERCENT = 32  # written with a percent sign
INFINITE = 64
FLAGS = (MISSING, BAD, POINT, COMMA, GROUPED, PERCENT, INFINITE)

MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "<na>")
"""Texts (any case) that stand for a value that is not there."""

FEW = 256  # different texts up to which a batch is kept as codes
MANY_LABELS = 1000  # different texts above which a column has no labels
_PROBE = 2000  # cells looked at before a whole batch is searched for different texts

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_COMMA_NUMBER = r"^[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?$"
_THOUSANDS = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"
_INFINITE = r"^[+-]?(inf|infinity)$"


class Tally(NamedTuple):
    """How often something occurs in a column, its first row (from 1) and the text found there."""

    number: int
    row: int
    text: str


@dataclass
class Chunk:
    """One packed batch of a column: codes into texts, or numbers, or only its length."""

    length: int
    codes: np.ndarray | None = None  # int16 positions in texts; missing cells too have a text
    texts: tuple[str, ...] = ()
    values: np.ndarray | None = None  # float64: of each text, or of each row where codes is None

    def numbers(self) -> np.ndarray:
        """Return the number of each row, NaN where there is none."""
        if self.values is None:
            return np.full(self.length, np.nan)
        return self.values if self.codes is None else self.values[self.codes]

    def different(self) -> np.ndarray:
        """Return every number that occurs, not each as often as it does."""
        if self.values is None:
            return np.empty(0)
        if self.codes is None:
            return self.values
        return self.values[np.bincount(self.codes, minlength=len(self.values)) > 0]


@dataclass
class Column:
    """A column of a file, packed, with what was found on every row of it.

    Attributes
    ----------
    name : str
        As in the file, without surrounding spaces; empty where the file gives none.
    position : int
        0 for the first column.
    chunks : list of Chunk
    tallies : dict of int to Tally
        What is not a plain number, by flag.
    """

    name: str
    position: int
    chunks: list[Chunk] = field(default_factory=list)
    tallies: dict[int, Tally] = field(default_factory=dict)
    length: int = 0

    def add(self, cells: Any) -> None:
        """Pack the next batch: an Arrow array of any type."""
        chunk, flags = pack(cells)
        self._count(cells, chunk, flags)
        self.chunks.append(chunk)
        self.length += chunk.length

    def _count(self, cells: Any, chunk: Chunk, flags: np.ndarray) -> None:
        if not flags.any():
            return
        rows = flags if chunk.codes is None else flags[chunk.codes]
        for flag in FLAGS:
            hit = (rows & flag) != 0
            count = int(np.count_nonzero(hit))
            if not count:
                continue
            old = self.tallies.get(flag)
            if old is not None:
                self.tallies[flag] = old._replace(number=old.number + count)
                continue
            first = int(np.argmax(hit))
            value = cells[first].as_py()
            text = "" if value is None else str(value)
            self.tallies[flag] = Tally(count, self.length + first + 1, text)

    def count(self, flag: int) -> int:
        """Return on how many rows a flag was found."""
        return self.tallies[flag].number if flag in self.tallies else 0

    @property
    def missing(self) -> int:
        """Rows without a value."""
        return self.count(MISSING)

    @property
    def present(self) -> int:
        """Rows with a value."""
        return self.length - self.missing

    @property
    def is_number(self) -> bool:
        """Whether every value that is there is a number."""
        return self.present > 0 and not self.count(BAD)

    @cached_property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest number; NaN where there is none."""
        low = [np.fmin.reduce(chunk.different(), initial=np.nan) for chunk in self.chunks]
        high = [np.fmax.reduce(chunk.different(), initial=np.nan) for chunk in self.chunks]
        return float(np.fmin.reduce(low)), float(np.fmax.reduce(high))

    @cached_property
    def is_integer(self) -> bool:
        """Whether every value that is there is a whole number."""
        if not self.is_number or self.count(INFINITE):
            return False
        for chunk in self.chunks:
            values = chunk.different()
            if np.any(values != np.floor(values), where=~np.isnan(values)):
                return False
        return True

    @cached_property
    def is_identifier(self) -> bool:
        """Whether the column names rows and measures nothing.

        An index without a name, whole numbers that count the rows or are all different and leave
        [0, 100], or texts that are (nearly) all different.
        """
        if self.name in ("", "__index_level_0__") and (self.is_integer or not self.is_number):
            return True
        if self.present < 3 or self.missing:
            return False
        if self.count(BAD) == self.present:
            return self.labels is None or (self.present > 20 and len(self.labels[0]) == self.present)
        if not self.is_number:
            return False
        if not self.is_integer:
            return False
        values = self.numbers()
        if np.all(np.diff(values) == 1):
            return True
        low, high = self.span
        return (low < 0 or high > 100) and len(np.unique(values)) == len(values)

    def numbers(self) -> np.ndarray:
        """Return the column as float64, NaN where there is no number."""
        parts = [chunk.numbers() for chunk in self.chunks]
        return np.concatenate(parts) if parts else np.empty(0)

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], np.ndarray] | None:
        """The different values in the order in which they appear, and each row's place among them.

        Values that are numbers are compared as numbers (``1`` and ``1.0`` are one label). A missing cell
        has place -1. None where a column has too many different values to have labels.
        """
        if self._lookups is None:
            return None
        tallies, lookups = self._lookups
        parts = [lookup[chunk.codes] for lookup, chunk in zip(lookups, self.chunks, strict=True)]
        return tuple(tally.text for tally in tallies), np.concatenate(parts)

    @property
    def label_counts(self) -> tuple[Tally, ...]:
        """Each label with its count and its first row; empty where the column has no labels."""
        return () if self._lookups is None else self._lookups[0]

    @cached_property
    def _lookups(self) -> tuple[tuple[Tally, ...], list[np.ndarray]] | None:
        """The labels, and for each chunk the place of each of its codes among them."""
        number = self.is_number
        found: dict[str, Tally] = {}
        places: dict[str, int] = {}
        lookups = []
        row = 1
        for chunk in self.chunks:
            if chunk.codes is None or chunk.values is None:
                return None
            lookup = np.full(len(chunk.texts), -1, dtype=np.int32)
            counts = np.bincount(chunk.codes, minlength=len(chunk.texts))
            present = [code for code in np.flatnonzero(counts).tolist() if not is_missing(chunk.texts[code])]
            named = {code: self._label(chunk, code, number) for code in present}
            new = {code: _first(chunk, code) for code, label in named.items() if label not in places}
            for code in sorted(present, key=lambda code: new.get(code, -1)):
                label = named[code]
                lookup[code] = places.setdefault(label, len(places))
                old = found.get(label) or Tally(0, row + new[code], label)
                found[label] = old._replace(number=old.number + int(counts[code]))
            if len(places) > MANY_LABELS:
                return None
            lookups.append(lookup)
            row += chunk.length
        return tuple(found.values()), lookups

    @staticmethod
    def _label(chunk: Chunk, code: int, number: bool) -> str:
        # from 2**53 on, different whole numbers are one float
        if number and chunk.values is not None and abs(chunk.values[code]) < 2**53:
            return number_text(chunk.values[code])
        return chunk.texts[code]


def _first(chunk: Chunk, code: int) -> int:
    return int(np.argmax(chunk.codes == code))


def is_missing(text: str) -> bool:
    """Tell whether a text stands for a value that is not there."""
    return text.strip().lower() in MISSING_WORDS


def number_text(value: float) -> str:
    """Write a number in the shortest way that reads back to it; whole numbers without a point."""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def pack(cells: Any) -> tuple[Chunk, np.ndarray]:
    """Pack a batch; return it with flags per text (where it has codes) or per row."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return _pack_coded(cells)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        cells = cells.cast(pa.string())
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        cells = cells.cast(pa.float64(), safe=False)
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        try:
            cells = cells.cast(pa.string())  # dates, bytes
        except pa.ArrowException:  # lists, records: nothing of them is kept
            flags = np.where(_mask(cells.is_null()), MISSING, BAD).astype(np.uint8)
            return Chunk(len(cells)), flags
    if pc.count_distinct(cells.slice(0, _PROBE)).as_py() <= FEW:
        coded = cells.dictionary_encode()
        if len(coded.dictionary) <= FEW:
            return _pack_coded(coded)
    values, flags = _values(cells)
    worth = bool(np.any(flags & (MISSING | BAD) == 0))
    return Chunk(len(cells), values=values if worth else None), flags


def _pack_coded(cells: Any) -> tuple[Chunk, np.ndarray]:
    dictionary = cells.dictionary
    if not (pa.types.is_string(dictionary.type) or pa.types.is_large_string(dictionary.type)):
        if pa.types.is_floating(dictionary.type) or pa.types.is_integer(dictionary.type):
            dictionary = pa.array([number_text(v) for v in dictionary.to_pylist()], pa.string())
        else:
            dictionary = dictionary.cast(pa.string())
    # one more text, for cells that are null, so that every code has one
    dictionary = pa.concat_arrays([dictionary.cast(pa.string()), pa.array([""], pa.string())])
    codes = cells.indices.fill_null(len(dictionary) - 1).to_numpy(zero_copy_only=False)
    values, flags = _values(dictionary)
    if len(dictionary) > FEW + 1:
        return Chunk(len(codes), values=values[codes]), flags[codes]
    texts = tuple("" if text is None else text.strip() for text in dictionary.to_pylist())
    return Chunk(len(codes), codes.astype(np.int16), texts, values), flags


def _values(cells: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers (NaN where there is none) and the flags of an array of texts or floats."""
    if pa.types.is_floating(cells.type):
        return _plain_values(cells)
    try:
        cells.slice(0, 50).cast(pa.float64())  # a cast that fails on every row is slow
        values, flags = _plain_values(cells.cast(pa.float64()))
    except pa.ArrowInvalid:
        return _untidy_values(cells)
    flags[_mask(pc.match_substring(cells, "."))] |= POINT
    return values, flags


def _plain_values(numbers: Any) -> tuple[np.ndarray, np.ndarray]:
    if numbers.null_count:
        numbers = numbers.fill_null(np.nan)
    values = np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    flags = np.zeros(len(values), dtype=np.uint8)
    nan = np.isnan(values)
    values[nan] = np.nan  # a file may hold NaNs that raise warnings when they are compared
    flags[nan] = MISSING
    flags[np.isinf(values)] = INFINITE
    return values, flags


def _untidy_values(cells: Any) -> tuple[np.ndarray, np.ndarray]:
    """Do what `_values` does for texts with spaces, missing words, commas, percent signs or no number."""
    text = pc.utf8_trim_whitespace(pc.fill_null(cells, ""))
    missing = pc.is_in(pc.utf8_lower(text), pa.array(MISSING_WORDS, text.type))
    comma = pc.match_substring(text, ",")
    body = pc.if_else(missing, pa.scalar(None, text.type), pc.replace_substring(text, ",", "."))
    try:
        values, flags = _plain_values(body.cast(pa.float64()))
    except pa.ArrowInvalid:
        return _odd_values(text, _mask(missing))
    has_comma = _mask(comma)
    grouped = _mask(pc.match_substring_regex(text, _THOUSANDS)) if has_comma.any() else has_comma
    flags[_mask(pc.match_substring(text, "."))] |= POINT
    flags[has_comma & ~grouped] |= COMMA
    flags[grouped] |= GROUPED
    return values, flags


def _odd_values(text: Any, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Do what `_values` does for trimmed texts some of which are no numbers."""
    infinite = _mask(pc.match_substring_regex(pc.utf8_lower(text), _INFINITE))
    signed = _mask(pc.ends_with(text, "%"))
    body = pc.replace_substring_regex(text, r"\s*%$", "") if signed.any() else text
    point = _mask(pc.match_substring_regex(body, _NUMBER))
    comma = _mask(pc.match_substring_regex(body, _COMMA_NUMBER))
    grouped = _mask(pc.match_substring_regex(body, _THOUSANDS))
    number = point | comma
    plain = pc.if_else(pa.array(number), pc.replace_substring(body, ",", "."), pa.scalar(None, body.type))
    values, _ = _plain_values(plain.cast(pa.float64()))
    infinite |= np.isinf(values)  # such as 1e400
    flags = np.zeros(len(values), dtype=np.uint8)
    flags[missing] = MISSING
    flags[~(missing | infinite | number)] = BAD
    flags[infinite] |= INFINITE
    flags[point & _mask(pc.match_substring(body, "."))] |= POINT
    flags[comma & ~grouped] |= COMMA
    flags[grouped] |= GROUPED
    flags[signed & number] |= PERCENT
    values[infinite] = np.inf
    return values, flags


def _mask(array: Any) -> np.ndarray:
    if array.null_count:
        array = array.fill_null(False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)


@dataclass
class Table:
    """Every column of a file and its first rows as text."""

    columns: list[Column] = field(default_factory=list)
    preview: list[tuple[str, ...]] = field(default_factory=list)
    rows: int = 0

    def add(self, names: Iterable[str], arrays: list[Any], *, show: int = 8) -> None:
        """Add a batch; a column that was not there before is empty on the rows above."""
        for position, name in enumerate(names):
            if position == len(self.columns):
                column = Column(name, position)
                if self.rows:
                    column.add(pa.nulls(self.rows, pa.string()))
                self.columns.append(column)
        if len(self.preview) < show:
            shown = [array.slice(0, show - len(self.preview)).to_pylist() for array in arrays]
            self.preview.extend(tuple(_cell_text(cell) for cell in row) for row in zip(*shown, strict=True))
        for column, array in zip(self.columns, arrays, strict=True):
            column.add(array)
        self.rows += len(arrays[0]) if arrays else 0


def _cell_text(cell: object) -> str:
    return "" if cell is None else str(cell)[:200]
