"""Read a file of predictions, or say what has to be answered before it can be read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from leakviz.errors import InputError
from leakviz.predictions.columns import Column
from leakviz.predictions.readers import Opened, Progress, read_table
from leakviz.predictions.records import ColumnFacts, Predictions, Question
from leakviz.predictions.roles import (
    can_be_fold,
    can_be_p,
    can_be_y,
    check_answers,
    choose_columns,
    describe,
    find_column,
    find_holes,
    outcomes,
    settle_missing,
    settle_p,
    settle_y,
)
from leakviz.predictions.sources import MAX_BYTES, open_source, quoted


@dataclass(frozen=True, eq=False)
class Inspection:
    """A file read to its end, and what is still open about it.

    Attributes
    ----------
    name : str
        The file's name. Plain text, never HTML.
    format : {"csv", "parquet", "feather", "jsonl", "excel"}
        By the content, never by the name.
    delimiter, encoding, sheet : str or None
        Of delimited text, of any text, of an Excel file.
    decimal : {".", ","} or None
        The decimal mark of p, or None while p is open or where the format has none.
    n : int
        Rows, without the header.
    columns : tuple of ColumnFacts
        In the order of the file.
    preview : tuple of tuple of str
        The first (at most 8) rows as text; an empty text stands for a missing value.
    candidates : dict of str to tuple of str
        The columns that can be ``"p"``, ``"y"`` or ``"fold"``, in the order of the file.
    answers : dict of str to object
        What is settled: what was said, and what has one reading only.
    questions : tuple of Question
        What is open. Empty when the file can be read.
    decided : tuple of str
        What was decided without asking, one sentence each.
    problem : str or None
        Why the file cannot be read with these answers, or None.
    """

    name: str
    format: str
    delimiter: str | None
    encoding: str | None
    sheet: str | None
    decimal: str | None
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

    def answer(self, **answers: Any) -> Inspection:
        """Answer questions; the file is not read again.

        Parameters
        ----------
        **answers
            `p`, `y`, `positive`, `scale`, `missing` or `fold`, as for `read_predictions`. None takes an
            earlier answer back.

        Returns
        -------
        Inspection
            With the questions that are open now.
        """
        unknown = set(answers) - set(_ROLES)
        if unknown:
            raise InputError(
                f"there is no question {sorted(unknown)[0]!r}. Answer one of {', '.join(_ROLES)}."
            )
        said = {**self._said, **answers}
        if "p" in answers and answers["p"] != self.answers.get("p"):
            said["scale"] = answers.get("scale")
        if "y" in answers and answers["y"] != self.answers.get("y"):
            said["positive"] = answers.get("positive")
        return _inspection(self.name, self._opened, said)

    def read(self) -> Predictions:
        """Return the predictions.

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


_ROLES = ("p", "y", "positive", "scale", "missing", "fold")


def inspect_predictions(
    file: Any,
    *,
    p: str | None = None,
    y: str | None = None,
    positive: object = None,
    scale: str | None = None,
    missing: str | None = None,
    fold: str | None = None,
    format: str | None = None,
    name: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    progress: Progress | None = None,
    max_bytes: int = MAX_BYTES,
) -> Inspection:
    """Read a file of predictions to its end and say what is known and what is open.

    Parameters
    ----------
    file, p, y, positive, scale, missing, fold, format, name, encoding, delimiter, sheet, progress, max_bytes
        As for `read_predictions`; whatever is given here is not asked.

    Returns
    -------
    Inspection
        Its `questions` are to be answered with `Inspection.answer`, until `Inspection.read` can be called.

    Raises
    ------
    InputError
        Where the file cannot be opened as a table. What is wrong inside the table is in `problem`.

    Examples
    --------
    >>> found = inspect_predictions(b"risk,outcome\\n0.9,case\\n0.2,control\\n", name="preds.csv")
    >>> [(question.role, [option.value for option in question.options]) for question in found.questions]
    [('positive', ['case', 'control'])]
    >>> found.answer(positive="case").read().y
    array([1, 0], dtype=int8)
    """
    said = {"p": p, "y": y, "positive": positive, "scale": scale, "missing": missing, "fold": fold}
    source = open_source(file, name, max_bytes)
    opened = read_table(
        source,
        format=format,
        encoding=encoding,
        delimiter=delimiter,
        sheet=sheet,
        only=None,
        max_bytes=max_bytes,
        progress=progress,
    )
    return _inspection(source.name, opened, said)


def read_predictions(
    file: Any,
    *,
    p: str | None = None,
    y: str | None = None,
    positive: object = None,
    scale: str | None = None,
    missing: str | None = None,
    fold: str | None = None,
    format: str | None = None,
    name: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    progress: Progress | None = None,
    max_bytes: int = MAX_BYTES,
) -> Predictions:
    """Read predicted risks and outcomes from a file, and guess nothing.

    Columns named ``p`` and ``y`` are taken as such, in either case; so are the only column that can be y and
    the only other one that can be p, where nothing else but identifiers is in the file. The labels 0 and 1,
    and false and true, need no answer; any other two labels do.

    Parameters
    ----------
    file : path, bytes or binary file object
        CSV or other delimited text, Parquet, Feather (version 2), JSON lines or Excel (.xlsx), recognised by
        its content. Compressed files, pickles and archives are refused.
    p, y : str, optional
        The names of the columns with the predicted risk and the outcome.
    positive : object, optional
        The label of `y` that stands for 1. The column must hold no more than one other label.
    scale : {"probability", "percent", "logit"}, optional
        The unit of p. Needed where a value is outside [0, 1].
    missing : {"refuse", "drop"}, optional
        What to do with rows where p, y or the fold is missing: by default, and with ``"refuse"``, an error
        that counts them. Missing are empty cells, null, NaN, NA, N/A and None.
    fold : str, optional
        The name of the column with the cross-validation fold.
    format : {"csv", "tsv", "parquet", "feather", "jsonl", "excel"}, optional
        What the file has to be; it is an error if the content is something else.
    name : str, optional
        What to call the file, for bytes and file objects.
    encoding : str, optional
        Of text; by default its byte-order mark, or UTF-8.
    delimiter : str, optional
        One character; by default the one that splits every row of the first 1 MB like the header.
    sheet : str, optional
        Of an Excel file; needed where more than one holds values.
    progress : callable, optional
        Called as ``progress(done_bytes, total_bytes)`` after each batch, in the caller's thread.
    max_bytes : int, default 1_000_000_000
        Limit for the size of the file and for what it unpacks to, in bytes.

    Returns
    -------
    Predictions

    Raises
    ------
    InputError
        Where the file cannot be read, or cannot be read in one way only. The message names the column, the
        first row (counted from 1 below the header, blank lines not counted), how many there are, and what
        to do.

    Examples
    --------
    >>> predictions = read_predictions(b"p;y\\n0,75;1\\n0,5;0\\n", name="preds.csv")
    >>> predictions.p
    array([0.75, 0.5 ])
    >>> predictions.y
    array([1, 0], dtype=int8)
    >>> for sentence in predictions.decided:
    ...     print(sentence)
    Text in utf-8 with semicolons between cells.
    p is column 'p', by its name.
    y is column 'y', by its name.
    The decimal mark of 'p' is a comma.
    """
    said = {"p": p, "y": y, "positive": positive, "scale": scale, "missing": missing, "fold": fold}
    source = open_source(file, name, max_bytes)
    only = None
    if p is not None and y is not None:
        only = frozenset(column for column in (p, y, fold) if column is not None)
    opened = read_table(
        source,
        format=format,
        encoding=encoding,
        delimiter=delimiter,
        sheet=sheet,
        only=only,
        max_bytes=max_bytes,
        progress=progress,
    )
    return _inspection(source.name, opened, said).read()


def _in_one_line(question: Question) -> str:
    options = "; ".join(option.text for option in question.options)
    argument = f"{question.role}='...'"
    return f"{question.text} Say {argument}: {options}."


def _inspection(name: str, opened: Opened, said: dict[str, Any]) -> Inspection:
    table = opened.table
    answers: dict[str, Any] = {role: value for role, value in said.items() if value is not None}
    questions: list[Question] = []
    decided = list(opened.words)
    problem = None
    candidates = {
        "p": tuple(c.name for c in table.columns if can_be_p(c)),
        "y": tuple(c.name for c in table.columns if can_be_y(c) or c in outcomes(table.columns)),
        "fold": tuple(c.name for c in table.columns if can_be_fold(c)),
    }
    decimal = None
    try:
        check_answers(answers)
        columns = choose_columns(table.columns, answers, questions, decided)
        if "p" in columns:
            decimal = settle_p(columns["p"], answers, questions, decided, columns.get("y"))
        if "y" in columns:
            settle_y(columns["y"], answers, questions, decided, columns.get("p"))
        if "p" in columns and "y" in columns:
            settle_missing(columns, answers, questions)
    except InputError as error:
        problem = f"{quoted(name)}: {error}"
    return Inspection(
        name=name,
        format=opened.format,
        delimiter=opened.delimiter,
        encoding=opened.encoding,
        sheet=opened.sheet,
        decimal=decimal,
        n=table.rows,
        columns=tuple(describe(column) for column in table.columns),
        preview=tuple(table.preview),
        candidates=candidates,
        answers=answers,
        questions=tuple(questions),
        decided=tuple(decided),
        problem=problem,
        _opened=opened,
        _said=said,
    )


def _read(found: Inspection) -> Predictions:
    columns: dict[str, Column] = {
        role: find_column(found._opened.table.columns, found.answers[role], role)
        for role in ("p", "y", "fold")
        if role in found.answers
    }
    name = quoted(found.name)
    p = columns["p"].numbers()
    p = p.copy() if not p.flags.owndata or not p.flags.writeable else p
    if found.answers["scale"] == "percent":
        p /= 100
    elif found.answers["scale"] == "logit":
        p = expit(p)
    p += 0.0  # -0.0 becomes 0.0
    labels = columns["y"].labels
    assert labels is not None
    texts, places = labels
    wanted = found.answers["positive"]
    y = (places == texts.index(wanted) if wanted in texts else np.zeros(len(places), bool)).astype(np.int8)
    folds: np.ndarray | None = None
    fold_names: tuple[str, ...] = ()
    if "fold" in columns:
        fold_labels = columns["fold"].labels
        if fold_labels is None:
            raise InputError(
                f"{name}: fold, column {quoted(columns['fold'].name)}, holds hundreds of values."
            )
        fold_names, folds = fold_labels
    decided = list(found.decided)
    holes = find_holes(columns) if any(column.missing for column in columns.values()) else None
    dropped = 0
    if holes is not None and holes.any():
        keep = ~holes
        dropped = int(np.count_nonzero(holes))
        decided.append(f"{dropped:,} of {len(p):,} rows were left out because a value is missing.")
        p, y = p[keep], y[keep]
        folds = None if folds is None else folds[keep]
    content = hashlib.sha256()
    for array in (p, y, folds):
        if array is not None:
            array.flags.writeable = False
            content.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
    return Predictions(
        p=p,
        y=y,
        folds=folds,
        fold_names=tuple(fold_names),
        name=found.name,
        columns={role: column.name for role, column in columns.items()},
        decided=tuple(decided),
        dropped=dropped,
        content_hash=content.hexdigest(),
        event=wanted,
        no_event=tuple(text for text in texts if text != wanted),
    )
