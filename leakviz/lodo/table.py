"""Read somebody's table of features, labels and sources, and guess nothing.

The file is opened, limited and packed by `leakviz.predictions`; here its columns get their parts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakviz.errors import InputError
from leakviz.lodo.inputs import label_columns
from leakviz.predictions.columns import (
    BAD,
    COMMA,
    GROUPED,
    INFINITE,
    MANY_LABELS,
    MISSING,
    PERCENT,
    POINT,
    Column,
)
from leakviz.predictions.readers import Opened, Progress, read_table
from leakviz.predictions.records import ColumnFacts, Option, Question
from leakviz.predictions.roles import describe, find_column, outcomes, settle_y
from leakviz.predictions.sources import MAX_BYTES, open_source, quoted

ROLES = ("label", "source", "positive", "features", "groups", "missing")
_OWN_NAMES = {"label": ("label", "y"), "source": ("source",)}
_MOST_SHOWN = 8
_MOST_LISTED = 30  # columns that a sentence lists one by one
_OF_PERSONS = re.compile(
    r"(^|[^a-z])(id|ids|identifier|patient|subject|participant|person|mrn)([^a-z]|$)|[a-z](?-i:I[dD])$", re.I
)


@dataclass(frozen=True, eq=False)
class SourceTable:
    """Features, labels and sources, read from a file: what `leakviz.lodo` takes.

    Attributes
    ----------
    X : numpy.ndarray of float64, shape (n, d)
        Features. Read-only, as the other arrays.
    y : numpy.ndarray of int8, shape (n,)
        Labels, 0 or 1.
    source : numpy.ndarray of str, shape (n,)
        Where each row is from.
    groups : numpy.ndarray of int64 or None, shape (n,)
        Which rows belong together.
    features : tuple of str
        Names of the d columns of X.
    name : str
        The file's name. Plain text, never HTML, as every other text.
    columns : dict of str to str
        The columns that were read, by role ("label", "source", "groups").
    positive, negative : str
        The labels that stand for 1 and for 0, as they are written in the file; " or " between several.
    decided : tuple of str
        What was decided on the way, one sentence each.
    dropped : int
        Rows left out because a value is missing.
    content_hash : str
        SHA-256 of all of it, in hex.
    """

    X: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.int8] = field(repr=False)
    source: NDArray[np.str_] = field(repr=False)
    groups: NDArray[np.int64] | None = field(repr=False)
    features: tuple[str, ...]
    name: str
    columns: dict[str, str]
    positive: str
    negative: str
    decided: tuple[str, ...]
    dropped: int
    content_hash: str

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.y)

    def named_columns(self) -> dict[str, str]:
        """Return the attribute ``column_with_label`` of `leakviz.lodo` with the columns' own names, where it applies."""
        told = label_columns(self.X, self.y)
        named = ", ".join(quoted(self.features[k]) for k in told[:_MOST_SHOWN])
        return {"column_with_label": named} if told else {}


@dataclass(frozen=True, eq=False)
class SourceInspection:
    """A file read to its end, and what is still open about it.

    Attributes
    ----------
    name, format, delimiter, encoding, sheet, n, columns, preview, questions, decided, problem
        As in `leakviz.predictions.Inspection`.
    candidates : dict of str to tuple of str
        The columns that can be "label", "source", "groups" or "features", in the order of the file; without
        those that another of the first three holds.
    answers : dict of str to object
        What is settled: what was said, and what has one reading only.
    """

    name: str
    format: str
    delimiter: str | None
    encoding: str | None
    sheet: str | None
    n: int
    columns: tuple[ColumnFacts, ...]
    preview: tuple[tuple[str, ...], ...] = field(repr=False)
    candidates: dict[str, tuple[str, ...]]
    answers: dict[str, Any]
    questions: tuple[Question, ...]
    decided: tuple[str, ...]
    problem: str | None
    _opened: Opened = field(repr=False)
    _said: dict[str, Any] = field(repr=False)
    _max_bytes: int = field(repr=False)

    def answer(self, **answers: Any) -> SourceInspection:
        """Answer questions; the file is not read again.

        Parameters
        ----------
        **answers
            `label`, `source`, `positive`, `features`, `groups` or `missing`, as for `read_sources`. None
            takes an earlier answer back.

        Returns
        -------
        SourceInspection
            With the questions that are open now.
        """
        unknown = set(answers) - set(ROLES)
        if unknown:
            raise InputError(
                f"there is no question {sorted(unknown)[0]!r}. Answer one of {', '.join(ROLES)}."
            )
        said = {**self._said, **answers}
        if "label" in answers and answers["label"] != self.answers.get("label"):
            said["positive"] = answers.get("positive")
        return _inspection(self.name, self._opened, said, self._max_bytes)

    def read(self) -> SourceTable:
        """Return the table.

        Raises
        ------
        InputError
            Where a question is open or the answers do not fit the file.
        """
        if self.problem is not None:
            raise InputError(self.problem)
        if self.questions:
            asked = " ".join(_in_one_line(question) for question in self.questions)
            raise InputError(f"{quoted(self.name)}: {asked}")
        return _read(self)


def inspect_sources(
    file: Any,
    *,
    label: str | None = None,
    source: str | None = None,
    positive: object = None,
    features: Sequence[str] | None = None,
    groups: str | None = None,
    missing: str | None = None,
    format: str | None = None,
    name: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    progress: Progress | None = None,
    max_bytes: int = MAX_BYTES,
) -> SourceInspection:
    """Read a table of features, labels and sources to its end and say what is known and what is open.

    Parameters
    ----------
    file, label, source, positive, features, groups, missing
        As for `read_sources`; whatever is given here is not asked.
    format, name, encoding, delimiter, sheet, progress, max_bytes
        As for `leakviz.read_predictions`.

    Returns
    -------
    SourceInspection
        Its `questions` are to be answered with `SourceInspection.answer`, until `SourceInspection.read`
        can be called.

    Raises
    ------
    InputError
        Where the file cannot be opened as a table. What is wrong inside the table is in `problem`.

    Examples
    --------
    >>> found = inspect_sources(b"sex,species,mass\\nf,a,3.5\\nm,b,4\\n", source="species", label="sex")
    >>> [question.role for question in found.questions]
    ['positive']
    >>> found.answer(positive="f").read().y
    array([1, 0], dtype=int8)
    """
    said = {
        "label": label,
        "source": source,
        "positive": positive,
        "features": features,
        "groups": groups,
        "missing": missing,
    }
    opened_source = open_source(file, name, max_bytes)
    only = None
    if label is not None and source is not None and features is not None:
        only = frozenset(c for c in (label, source, groups, *_feature_names(features)) if c is not None)
    opened = read_table(
        opened_source,
        format=format,
        encoding=encoding,
        delimiter=delimiter,
        sheet=sheet,
        only=only,
        max_bytes=max_bytes,
        progress=progress,
    )
    return _inspection(opened_source.name, opened, said, max_bytes)


def read_sources(
    file: Any,
    *,
    label: str | None = None,
    source: str | None = None,
    positive: object = None,
    features: Sequence[str] | None = None,
    groups: str | None = None,
    missing: str | None = None,
    format: str | None = None,
    name: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    progress: Progress | None = None,
    max_bytes: int = MAX_BYTES,
) -> SourceTable:
    """Read a table of features, labels and sources from a file, and guess nothing.

    Parameters
    ----------
    file : path, bytes or binary file object
        CSV or other delimited text, Parquet, Feather (version 2), JSON lines or Excel (.xlsx), recognised by
        its content.
    label : str, optional
        Name of the column with the label; a column called ``label`` or ``y`` is taken as such.
    source : str, optional
        Name of the column that says where a row is from: at least two different values, at most 1,000. A
        column called ``source`` is taken as such.
    positive : object, optional
        The label that stands for 1. 0 and 1, and false and true, need no answer.
    features : sequence of str, optional
        Names of the feature columns, which must hold numbers or false and true. By default all such columns
        that have no other part and do not look like identifiers (numbers of rows; whole numbers that are all
        different and leave [0, 100]); `SourceTable.decided` says which, and what was left out.
    groups : str, optional
        Name of a column whose values say which rows belong together, such as a patient.
    missing : {"refuse", "drop"}, optional
        What to do with rows where a value is missing: by default, and with ``"refuse"``, an error that
        counts them.
    format, name, encoding, delimiter, sheet, progress, max_bytes
        As for `leakviz.read_predictions`.

    Returns
    -------
    SourceTable

    Raises
    ------
    InputError
        Where the file cannot be read, or cannot be read in one way only. The message names the column, the
        first row (counted from 1 below the header), how many there are, and what to do.

    Examples
    --------
    >>> table = read_sources(b"y,hospital,age,note\\n1,a,70,x\\n0,b,60,y\\n", source="hospital")
    >>> table.X.tolist(), table.source.tolist()
    ([[70.0], [60.0]], ['a', 'b'])
    >>> print(table.decided[-1])
    1 feature: 'age'. Left out: 'note' (texts).
    """
    found = inspect_sources(
        file,
        label=label,
        source=source,
        positive=positive,
        features=features,
        groups=groups,
        missing=missing,
        format=format,
        name=name,
        encoding=encoding,
        delimiter=delimiter,
        sheet=sheet,
        progress=progress,
        max_bytes=max_bytes,
    )
    return found.read()


def _in_one_line(question: Question) -> str:
    options = "; ".join(option.text for option in question.options)
    return f"{question.text} Say {question.role}='...'" + (f": {options}." if options else ".")


def _inspection(name: str, opened: Opened, said: dict[str, Any], max_bytes: int) -> SourceInspection:
    columns = opened.table.columns
    answers = {role: value for role, value in said.items() if value is not None}
    questions: list[Question] = []
    decided = list(opened.words)
    problem = None
    try:
        _check_missing_answer(answers)
        chosen = _choose(columns, answers, questions, decided)
        if "label" in chosen:
            settle_y(chosen["label"], answers, questions, decided, None)
        if "source" in chosen:
            _check_source(chosen["source"])
        if "groups" in chosen:
            _group_codes(chosen["groups"])
        if {"label", "source"} <= set(chosen):
            used = _choose_features(columns, chosen, answers, decided)
            _settle_missing(chosen, used, answers, questions)
            _check_size(opened.table.rows, len(used), max_bytes)
    except InputError as error:
        problem = f"{quoted(name)}: {error}"
    return SourceInspection(
        name=name,
        format=opened.format,
        delimiter=opened.delimiter,
        encoding=opened.encoding,
        sheet=opened.sheet,
        n=opened.table.rows,
        columns=tuple(describe(column) for column in columns),
        preview=tuple(opened.table.preview),
        candidates=_candidates(columns, answers),
        answers=answers,
        questions=tuple(questions),
        decided=tuple(decided),
        problem=problem,
        _opened=opened,
        _said=said,
        _max_bytes=max_bytes,
    )


def _check_missing_answer(answers: dict[str, Any]) -> None:
    if answers.get("missing", "drop") not in ("refuse", "drop"):
        raise InputError(f"missing={answers['missing']!r} is not known. Choose one of refuse, drop.")


def _choose(
    columns: Sequence[Column], answers: dict[str, Any], questions: list[Question], decided: list[str]
) -> dict[str, Column]:
    """Settle label, source and groups by what was said or by their own names; else ask."""
    chosen: dict[str, Column] = {}

    def give(role: str, column: Column) -> None:
        for other, taken in chosen.items():
            if taken is column:
                raise InputError(
                    f"{role}: column {quoted(column.name)} is the {other} already. Name another column for {role}, or "
                    f"for {other}."
                )
        chosen[role] = column
        answers[role] = column.name

    for role in _OWN_NAMES:
        if role in answers:
            give(role, find_column(columns, answers[role], role))
    for role, own_names in _OWN_NAMES.items():
        own = [c for c in columns if c.name.lower() in own_names and c not in chosen.values()]
        if role not in chosen and len(own) == 1:
            give(role, own[0])
            decided.append(f"The {role} is column {quoted(own[0].name)}, by its name.")
    if "groups" in answers:  # after the others: groups never take a column that has a part already
        give("groups", find_column(columns, answers["groups"], "groups"))
    asked: tuple[tuple[Literal["label", "source"], str, Sequence[Column]], ...] = (
        ("label", "Which column is the label?", outcomes(columns)),
        ("source", "Which column says where a row is from?", [c for c in columns if _can_be_source(c)]),
    )
    for role, words, able in asked:
        if role in chosen:
            continue
        free = [c for c in able if c not in chosen.values()]
        if able and not free:
            held = "; ".join(f"{quoted(c.name)} is the {r}" for r, c in chosen.items() if c in able)
            raise InputError(f"no column is left that can be the {role}: {held}. Name another column there.")
        questions.append(Question(role, words, tuple(Option(c.name, describe(c).text) for c in free)))
    return chosen


def _candidates(columns: Sequence[Column], answers: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    able = {
        "label": outcomes(columns),
        "source": [c for c in columns if _can_be_source(c)],
        "groups": [c for c in columns if _can_be_groups(c)],
        "features": [c for c in columns if _is_meant_as_feature(c)],
    }
    held = {role: answers[role] for role in ("label", "source", "groups") if role in answers}

    def offered(name: str, role: str) -> bool:
        return name == answers.get(role) or name not in held.values()

    return {role: tuple(c.name for c in of if offered(c.name, role)) for role, of in able.items()}


def _can_be_source(column: Column) -> bool:
    whole = column.is_integer or not column.is_number
    return whole and 2 <= len(column.label_counts) <= 100 and not column.is_identifier


def _can_be_groups(column: Column) -> bool:
    return (column.is_integer or len(column.label_counts) > 1) and column.name != ""


def _is_truth(column: Column) -> bool:
    labels = {tally.text.lower() for tally in column.label_counts}
    return bool(labels) and labels <= {"false", "true"}


def _can_be_feature(column: Column) -> bool:
    return (column.is_number and not column.is_identifier) or _is_truth(column)


def _is_meant_as_feature(column: Column) -> bool:
    """Tell whether a column is a feature unless it is said otherwise.

    One that is nearly all numbers is meant as one: what is wrong with it has to be said.
    """
    return _can_be_feature(column) or 0 < 2 * column.count(BAD) < column.present


def _check_source(column: Column) -> None:
    name = quoted(column.name)
    if column.labels is None:
        raise InputError(
            f"source, column {name}, holds {_many(column)}; name the column that says where rows are from, not which "
            "row it is."
        )
    if len(column.label_counts) == column.present > 20:
        raise InputError(
            f"source, column {name}, holds a different value in each of the {column.present:,} rows; name the column that "
            "says where rows are from, not which row it is."
        )
    if len(column.label_counts) < 2:
        shown = quoted(column.label_counts[0].text) if column.label_counts else "no value"
        raise InputError(f"source, column {name}, holds {shown} only; two or more sources are needed.")


def _group_codes(column: Column) -> NDArray[np.int64]:
    """Return a number per row, equal for equal groups; -1 where it is missing."""
    if column.labels is not None:
        return column.labels[1].astype(np.int64)
    if not column.is_number:
        raise InputError(
            f"groups, column {quoted(column.name)}, holds more than 1,000 different texts; number the groups."
        )
    values = column.numbers()
    codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return np.where(np.isnan(values), -1, codes)


def _feature_names(features: Any) -> tuple[str, ...]:
    names = (features,) if isinstance(features, str) else tuple(str(name).strip() for name in features)
    if not names:
        raise InputError("features is empty; name at least one column, or leave it out")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"features names {twice!r} twice; name each column once")
    return names


def _choose_features(
    columns: Sequence[Column], chosen: dict[str, Column], answers: dict[str, Any], decided: list[str]
) -> list[Column]:
    if "features" in answers:
        used = [find_column(columns, name, "features") for name in _feature_names(answers["features"])]
        for role, column in chosen.items():
            if column in used:
                raise InputError(f"features names column {quoted(column.name)}, which is the {role}.")
        left: list[Column] = []
    else:
        rest = [column for column in columns if column not in chosen.values()]
        used = [c for c in rest if _is_meant_as_feature(c)]
        left = [column for column in rest if column not in used]
    for column in used:
        _check_feature(column)
    if not used:
        shown = "; ".join(describe(c).text for c in columns[:_MOST_SHOWN])
        raise InputError(f"no column is left that can be a feature, which holds numbers: {shown}.")
    words = f"{len(used)} feature{'s' * (len(used) > 1)}: {_listed(used)}."
    if left:
        words += f" Left out: {_listed(left, why=True)}."
    decided.append(words)
    if "features" not in answers and (named := [c for c in used if _may_name(c)]):
        several = len(named) > 1
        decided.append(
            f"Taken as {'features' if several else 'a feature'}: {', '.join(quoted(c.name) for c in named[:_MOST_LISTED])}, "
            f"which by name or values may say whose row it is. If so, name {'one' if several else 'it'} as groups, or "
            f"choose the features without {'them' if several else 'it'}."
        )
    return used


def _may_name(column: Column) -> bool:
    """Tell whether a column of whole numbers may name patients: by its own name, or since nearly all differ."""
    if not column.is_integer:
        return False
    if _OF_PERSONS.search(column.name):
        return True
    values = column.numbers()
    values = values[~np.isnan(values)]
    return values.size > 20 and np.unique(values).size >= 0.9 * values.size


def _many(column: Column) -> str:
    """Say how many different values a column without labels holds."""
    if not column.is_number:
        return f"more than {MANY_LABELS:,} different values"
    values = column.numbers()
    different = np.unique(values[~np.isnan(values)]).size
    kind = "whole numbers" if column.is_integer else "numbers that are not whole"
    return f"{different:,} different {kind} in {column.present:,} rows"


def _listed(columns: Sequence[Column], *, why: bool = False) -> str:
    shown = [quoted(c.name) + (f" ({_why_left(c)})" if why else "") for c in columns[:_MOST_LISTED]]
    more = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _why_left(column: Column) -> str:
    if column.present == 0:
        return "empty"
    return "looks like an identifier" if column.is_identifier else "texts"


def _check_feature(column: Column) -> None:
    name = quoted(column.name)
    if _is_truth(column):
        return

    def where(flag: int) -> str:
        tally = column.tallies[flag]
        return f"{tally.number:,} of {column.length:,} rows, first row {tally.row:,} ({quoted(tally.text)})"

    if column.present == 0:
        raise InputError(f"feature {name} is empty: all {column.length:,} rows are missing.")
    if column.count(BAD):
        raise InputError(
            f"feature {name}: not a number in {where(BAD)}. Correct them, or choose the features without it."
        )
    if column.count(INFINITE):
        raise InputError(f"feature {name}: infinite in {where(INFINITE)}. Correct or drop these rows.")
    comma, grouped, point = column.count(COMMA), column.count(GROUPED), column.count(POINT)
    if (comma or grouped) and point:
        flag = COMMA if comma else GROUPED
        raise InputError(
            f"feature {name}: a comma in {where(flag)}, but a point in {where(POINT)}. Use one decimal mark."
        )
    if grouped and not comma:
        raise InputError(
            f"feature {name}: {where(GROUPED)} may be a decimal comma or a thousands separator. Write it with "
            "a decimal point."
        )
    if 0 < column.count(PERCENT) < column.present:
        raise InputError(
            f"feature {name}: a percent sign in {where(PERCENT)}, and none in the others. Write all in one way."
        )


def _settle_missing(
    chosen: dict[str, Column], used: Sequence[Column], answers: dict[str, Any], questions: list[Question]
) -> None:
    named = [*chosen.items(), *(("feature", column) for column in used)]
    holes = [(role, column) for role, column in named if column.missing]
    if not holes:
        return
    rows, total = int(np.count_nonzero(_holes(chosen, used))), used[0].length
    found = "; ".join(
        f"{role} {quoted(c.name)} in {c.missing:,} rows, first row {c.tallies[MISSING].row:,}"
        for role, c in holes[:_MOST_SHOWN]
    )
    words = f"A value is missing: {found}" + ("; ..." if len(holes) > _MOST_SHOWN else "") + "."
    if answers.get("missing") == "refuse":
        raise InputError(f"{words} Complete the file, or say missing='drop' to leave out {rows:,} rows.")
    if rows == total:
        raise InputError(f"{words} No row is complete. Choose features that are.")
    if "missing" not in answers:
        options = (
            Option("drop", f"'drop' leaves out {rows:,} of {total:,} rows"),
            Option("refuse", "'refuse' does not read the file"),
        )
        questions.append(Question("missing", f"{words} What shall happen to these rows?", options))


def _holes(chosen: dict[str, Column], used: Sequence[Column]) -> NDArray[np.bool_]:
    holes = np.zeros(used[0].length, dtype=bool)
    for role, column in chosen.items():
        if not column.missing:
            continue
        codes = _group_codes(column) if role == "groups" or column.labels is None else column.labels[1]
        holes |= codes < 0
    for column in used:
        if column.missing:
            holes |= np.isnan(_values(column))
    return holes


def _values(column: Column) -> NDArray[np.float64]:
    if not _is_truth(column):
        return column.numbers()
    labels = column.labels
    assert labels is not None
    meant = np.array([*(float(text.lower() == "true") for text in labels[0]), np.nan])
    return meant[labels[1]]  # place -1, a missing cell, is the last


def _check_size(rows: int, width: int, max_bytes: int) -> None:
    if rows * width * 8 > max_bytes:
        raise InputError(
            f"{rows:,} rows of {width:,} features take {rows * width * 8:,} bytes, more than the limit of "
            f"{max_bytes:,}. Choose fewer features, or raise max_bytes."
        )


def _read(found: SourceInspection) -> SourceTable:
    columns = found._opened.table.columns
    chosen: dict[str, Column] = {
        role: find_column(columns, found.answers[role], role)
        for role in ("label", "source", "groups")
        if role in found.answers
    }
    used = _choose_features(columns, chosen, found.answers, [])
    X = np.column_stack([_values(column) for column in used]) + 0.0  # -0.0 becomes 0.0
    texts, places = chosen["label"].labels or ((), np.empty(0))
    wanted = found.answers["positive"]
    y = (places == texts.index(wanted) if wanted in texts else np.zeros(len(places), bool)).astype(np.int8)
    names, home = chosen["source"].labels or ((), np.empty(0))
    source = np.array([*names, ""])[home]
    groups = _group_codes(chosen["groups"]) if "groups" in chosen else None
    holes = _holes(chosen, used)
    dropped = int(holes.sum())
    decided = list(found.decided)
    if dropped:
        decided.append(f"{dropped:,} of {len(y):,} rows were left out because a value is missing.")
        X, y, source = X[~holes], y[~holes], source[~holes]
        groups = None if groups is None else groups[~holes]
    digest = hashlib.sha256(json.dumps([[c.name for c in used], source.tolist()]).encode())
    for array in (X, y, groups):
        if array is not None:
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    for array in (X, y, source, groups):
        if array is not None:
            array.flags.writeable = False
    return SourceTable(
        X=X,
        y=y,
        source=source,
        groups=groups,
        features=tuple(column.name for column in used),
        name=found.name,
        columns={role: column.name for role, column in chosen.items()},
        positive=str(wanted),
        negative=" or ".join(text for text in texts if text != wanted),
        decided=tuple(decided),
        dropped=dropped,
        content_hash=digest.hexdigest(),
    )
