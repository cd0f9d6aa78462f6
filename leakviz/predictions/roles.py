"""Settle which column means what: by what was said, by what leaves one reading only, else by asking.

Each ``settle_*`` function looks at one column on every row of it, adds what is settled to `answers`, what
is open to `questions` and what a reader should know to `decided`, and raises what no answer can heal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from leakviz.errors import InputError
from leakviz.predictions.columns import (
    BAD,
    COMMA,
    GROUPED,
    INFINITE,
    MISSING,
    PERCENT,
    POINT,
    Column,
    Tally,
    number_text,
)
from leakviz.predictions.records import ColumnFacts, Option, Question
from leakviz.predictions.sources import quoted

SCALES = ("probability", "percent", "logit")
MISSING_ANSWERS = ("refuse", "drop")
MOST_LABELS = 20  # from which one is chosen as the event; any that is named is taken


def check_answers(answers: dict[str, Any]) -> None:
    """Refuse answers that no file can make sense of."""
    for role, known in (("scale", SCALES), ("missing", MISSING_ANSWERS)):
        if role in answers and answers[role] not in known:
            raise InputError(f"{role}={answers[role]!r} is not known. Choose one of {', '.join(known)}.")
    if "p" in answers and answers["p"] == answers.get("y"):
        raise InputError(f"p and y are both column {quoted(answers['p'])}. Name two columns.")


def can_be_p(column: Column) -> bool:
    """Tell whether a column holds numbers that measure something."""
    return column.is_number and not column.is_identifier


def outcomes(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that can be y: two labels; or one, if it is 0, 1, false or true, or no other can."""
    whole = [column for column in columns if column.is_integer or not column.is_number]
    few = [column for column in whole if column.name != "" and 1 <= len(column.label_counts) <= 2]
    likely = [column for column in few if len(column.label_counts) == 2 or _is_known(column)]
    return likely or few


def can_be_y(column: Column) -> bool:
    """Tell whether a column can be y once its event is named: 2 to 20 labels, one of them against the others."""
    whole = column.is_integer or not column.is_number
    return (
        whole
        and column.name != ""
        and not column.is_identifier
        and 2 <= len(column.label_counts) <= MOST_LABELS
    )


def _is_known(column: Column) -> bool:
    labels = {tally.text.lower() for tally in column.label_counts}
    return labels <= {"0", "1"} or labels <= {"false", "true"}


def can_be_fold(column: Column) -> bool:
    """Tell whether a column holds 2 to 100 different values and no gap."""
    return 2 <= len(column.label_counts) <= 100 and not column.missing and not column.is_identifier


def choose_columns(
    columns: Sequence[Column], answers: dict[str, Any], questions: list[Question], decided: list[str]
) -> dict[str, Column]:
    """Settle p, y and fold by what was said, by the names p and y, or because nothing else is possible."""
    chosen: dict[str, Column] = {}
    for role in ("p", "y", "fold"):
        if role in answers:
            chosen[role] = find_column(columns, answers[role], role)
    for role in ("p", "y"):
        own = [c for c in columns if c.name.lower() == role and c not in chosen.values()]
        if role not in chosen and len(own) == 1:
            chosen[role] = own[0]
            decided.append(f"{role} is column {quoted(own[0].name)}, by its name.")
        elif role not in chosen and len(own) > 1 and len({c.name for c in own}) == 1:
            raise InputError(_twice_words(own))
    _choose_by_elimination(columns, chosen, decided)
    free = [c for c in columns if c not in chosen.values()]
    if "y" not in chosen:
        ys = [c for c in outcomes(columns) if c in free] or [c for c in free if can_be_y(c)]
        questions.append(_column_question("y", ys, columns))
    if "p" not in chosen:
        questions.append(_column_question("p", [c for c in free if can_be_p(c)], columns))
    for role in ("p", "y"):
        if role in chosen:
            answers[role] = chosen[role].name
    return chosen


def _choose_by_elimination(columns: Sequence[Column], chosen: dict[str, Column], decided: list[str]) -> None:
    """Choose y and p where one column can be it, and no other one even if it were broken.

    An identifier is neither; numbers with a fraction are no outcome. Any other column may be the one that
    is meant, with a third label or a text among its numbers, so it opens a question.
    """
    free = [c for c in columns if c not in chosen.values()]
    ys = [chosen["y"]] if "y" in chosen else [c for c in outcomes(columns) if c in free]
    ps = [chosen["p"]] if "p" in chosen else [c for c in free if can_be_p(c)]
    pairs = [(a, b) for a in ps for b in ys if a is not b]
    if not pairs:
        if not ys and any(can_be_y(c) and any(c is not p for p in ps) for c in free):
            return  # one label against the others: that is asked
        _refuse_columns(columns, ps, ys)
    rest = [c for c in free if not c.is_identifier]
    alone = len(pairs) == 1 and all(c in pairs[0] for c in rest)
    if "y" not in chosen and len(ys) == 1:
        fractions = all(c is ys[0] or (c.is_number and not c.is_integer) for c in rest)
        if alone or fractions:
            chosen["y"] = ys[0]
            decided.append(f"y is column {quoted(ys[0].name)}: no other column can be.")
    if "p" not in chosen and alone:
        chosen["p"] = pairs[0][0]
        decided.append(f"p is column {quoted(chosen['p'].name)}: no other column can be.")


def find_column(columns: Sequence[Column], name: object, role: str) -> Column:
    """Return the one column of that name."""
    found = [c for c in columns if c.name == str(name).strip()]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(_twice_words(found))
    near = [c.name for c in columns if c.name.lower() == str(name).strip().lower()]
    shown = ", ".join(quoted(c.name) for c in columns[:20]) + (", ..." if len(columns) > 20 else "")
    hint = f" Do you mean {quoted(near[0])}?" if near else ""
    raise InputError(f"{role}={name!r}: there is no such column.{hint} The file has {shown}.")


def _twice_words(found: Sequence[Column]) -> str:
    places = " and ".join(str(c.position + 1) for c in found)
    return (
        f"column {quoted(found[0].name)} stands {len(found)} times in the file (columns {places}), and they "
        "may differ. Rename or remove all but one."
    )


def _refuse_columns(columns: Sequence[Column], ps: Sequence[Column], ys: Sequence[Column]) -> None:
    shown = "; ".join(describe(c).text for c in columns[:8]) + ("; ..." if len(columns) > 8 else "")
    if not ys:
        raise InputError(
            f"no column can be y, which holds two labels. The columns are: {shown}. "
            "Make a column that is 1 for the event and 0 otherwise, or say y='...'."
        )
    if not ps or len(columns) > 1:
        raise InputError(
            f"no column can be p, which holds numbers. The columns are: {shown}. Add the predicted risks, or "
            "say p='...'."
        )
    raise InputError(f"one column cannot be both p and y: {shown}. Add the other one.")


def _column_question(
    role: Literal["p", "y"], options: Sequence[Column], columns: Sequence[Column]
) -> Question:
    text = "Which column is the outcome y?" if role == "y" else "Which column is the predicted risk p?"
    sums = _sum_to_one(options) if role == "p" else None
    if sums is not None:
        text += (
            f" {', '.join(quoted(c.name) for c in sums)} add up to 1 on every row, so they are the "
            "probabilities of the classes: choose the one of the event."
        )
    others = [c for c in columns if c not in options and not c.is_identifier]
    if role == "y":
        needs = "two labels, or one to be named against the others"
        others = [c for c in others if len(c.label_counts) > 2 and (c.is_integer or not c.is_number)]
    else:
        needs = "numbers"
        others = [c for c in others if not c.is_number]
    if others:
        shown = "; ".join(describe(c).text for c in others[:3]) + ("; ..." if len(others) > 3 else "")
        text += (
            f" It needs {needs}; these are not asked about: {shown}."
            if role == "y"
            else f" It needs {needs}, which these do not hold: {shown}."
        )
    return Question(role, text, tuple(Option(c.name, describe(c).text) for c in options))


def _sum_to_one(columns: Sequence[Column]) -> list[Column] | None:
    """Return the columns that are class probabilities: inside [0, 1] and adding up to 1 on every row."""
    inside = [
        c for c in columns if not c.missing and not c.count(INFINITE) and 0 <= c.span[0] <= c.span[1] <= 1
    ]
    inside = [c for c in inside if len(c.label_counts) != 2 or not _is_known(c)]
    if len(inside) < 2:
        return None
    total = np.zeros(inside[0].length)
    for column in inside:
        total += column.numbers()
    return inside if bool(np.all(np.abs(total - 1) < 1e-3)) else None


def _where(column: Column, flag: int) -> str:
    tally = column.tallies[flag]
    return f"{tally.number:,} of {column.length:,} rows, first row {tally.row:,} ({quoted(tally.text)})"


def settle_p(
    column: Column, answers: dict[str, Any], questions: list[Question], decided: list[str], y: Column | None
) -> str | None:
    """Check that p holds numbers of one notation and settle their scale; return the decimal mark."""
    name = quoted(column.name)
    if column.present == 0:
        raise InputError(f"p, column {name}, is empty: all {column.length:,} rows are missing.")
    if column.count(BAD):
        hint = "Write plain numbers"
        if column.count(BAD) == column.present and y is not None and y.is_number and not _is_known(y):
            hint = (
                "It looks like the outcome: say p and y the other way round, or name the column of the risks"
            )
        raise InputError(f"p, column {name}: not a number in {_where(column, BAD)}. {hint}.")
    if column.count(INFINITE):
        raise InputError(
            f"p, column {name}: infinite in {_where(column, INFINITE)}. A logit is infinite where the risk "
            "is exactly 0 or 1; save the probabilities instead."
        )
    decimal = _decimal_mark(column, name, decided)
    if column.count(PERCENT):
        if column.count(PERCENT) < column.present:
            raise InputError(
                f"p, column {name}: a percent sign in {_where(column, PERCENT)}, and none in the others. "
                "Write all of them in one way."
            )
        if answers.setdefault("scale", "percent") != "percent":
            raise InputError(f"p, column {name}, has percent signs, but scale={answers['scale']!r} was said.")
        decided.append(f"{name} is in percent, as its signs say.")
    _settle_scale(column, name, answers, questions, decided)
    return decimal


def _decimal_mark(column: Column, name: str, decided: list[str]) -> str | None:
    comma, grouped, point = column.count(COMMA), column.count(GROUPED), column.count(POINT)
    if (comma or grouped) and point:
        kind = COMMA if comma else GROUPED
        raise InputError(
            f"p, column {name}: a comma in {_where(column, kind)}, but a point in {_where(column, POINT)}. "
            "Use one decimal mark and no thousands separators."
        )
    if grouped and not comma:
        raise InputError(
            f"p, column {name}: {_where(column, GROUPED)} may be a decimal comma or a thousands separator. "
            "Write it with a decimal point."
        )
    if comma:
        decided.append(f"The decimal mark of {name} is a comma.")
        return ","
    return "." if point else None


def _settle_scale(
    column: Column, name: str, answers: dict[str, Any], questions: list[Question], decided: list[str]
) -> None:
    low, high = column.span
    scale = answers.get("scale")
    if scale is None and low >= 0 and high <= 1:
        answers["scale"] = "probability"
        return
    if scale == "logit":
        saturated = int(np.count_nonzero(np.isin(expit(column.numbers()), (0.0, 1.0))))
        decided.append(f"{name} holds logits from {low:g} to {high:g}; p is 1 / (1 + exp(-logit)).")
        if saturated:
            decided.append(f"{saturated:,} logits are so large that p is exactly 0 or 1, which ties them.")
        return
    top = 100.0 if scale == "percent" else 1.0
    bad = _outside(column, top)
    if scale is None:
        if bad is not None and _stray(column, bad):
            raise InputError(
                f"p, column {name}: all but {bad.number:,} of {column.length:,} rows are in [0, 1], as probabilities are; "
                f"{bad.number:,} {'is' if bad.number == 1 else 'are'} outside, first row {bad.row:,} ({bad.text}), "
                f"from {number_text(low)} to {number_text(high)} in all. Correct these rows where they were made "
                "(rounding often does this) and load the file again."
            )
        questions.append(_scale_question(column, name, bad))
    elif bad is not None:
        words = "probabilities are in [0, 1]" if scale == "probability" else "percentages are in [0, 100]"
        others = {"probability": ("percent", "logit"), "percent": ("logit",)}[scale]
        fitting = [s for s in others if s == "logit" or (low >= 0 and high <= 100)]
        raise InputError(
            f"p, column {name}: {words}, but {bad.number:,} of {column.length:,} rows are outside, first row "
            f"{bad.row:,} ({bad.text}). Correct them"
            + (
                "."
                if scale == "probability" and _stray(column, bad)
                else ", or say " + " or ".join(f"scale='{s}'" for s in fitting) + "."
            )
        )
    elif scale == "percent":
        decided.append(f"{name} was divided by 100; it goes from {low:g} % to {high:g} %.")


def _stray(column: Column, bad: Tally) -> bool:
    """Tell whether the values outside [0, 1] are so few that neither logits nor percentages explain them.

    Among logits of risks, values in [0, 1] are risks from 0.5 to 0.73: that 99 in 100 rows are there, and some
    far from it, does not happen.
    """
    return column.length >= 200 and bad.number * 100 <= column.length


def _outside(column: Column, top: float) -> Tally | None:
    values = column.numbers()
    bad = (values < 0) | (values > top)
    count = int(np.count_nonzero(bad))
    if not count:
        return None
    first = int(np.argmax(bad))
    return Tally(count, first + 1, number_text(values[first]))


def _scale_question(column: Column, name: str, bad: Tally | None) -> Question:
    assert bad is not None
    low, high = column.span
    text = (
        f"What is the scale of p? Column {name} goes from {low:g} to {high:g}, and {bad.number:,} of "
        f"{column.length:,} rows are outside [0, 1], first row {bad.row:,} ({bad.text}). Scores that are neither, such as "
        "an SVM's margins, are to be calibrated out of fold first; read as logits, their ranks hold (C-statistic, pure head, "
        "M*), and their dispersion and calibration mean nothing."
    )
    options = []
    if low >= 0 and high <= 100:
        options.append(Option("percent", "'percent' divides by 100"))
    options.append(Option("logit", "'logit' takes 1 / (1 + exp(-value))"))
    return Question("scale", text, tuple(options))


def settle_y(
    column: Column,
    answers: dict[str, Any],
    questions: list[Question],
    decided: list[str],
    p: Column | None,
) -> None:
    """Check that y holds at most two labels and settle which one is 1."""
    name = quoted(column.name)
    if column.present == 0:
        raise InputError(f"y, column {name}, is empty: all {column.length:,} rows are missing.")
    labels = column.label_counts
    if not labels or (len(labels) > 2 and (_broken(column, p) or not _one_of_many(column, answers))):
        raise InputError(_too_many_labels(column, p))
    shown = " and ".join(f"{quoted(tally.text)} ({_rows(tally.number)})" for tally in labels)
    if "positive" in answers:
        wanted = _label_of(answers["positive"], column)
        if wanted is None:
            raise InputError(
                f"positive={answers['positive']!r} is not in y, column {name}, which holds {shown}."
            )
        others = [quoted(tally.text) for tally in labels if tally.text != wanted]
        zero = ""
        if others:
            many = f", the {len(others)} other labels" * (len(others) > 1)
            zero = f", 0 where {listed_short(others)}{many}"
        decided.append(f"y is 1 where {name} is {quoted(wanted)}{zero}.")
        answers["positive"] = wanted
    elif _is_known(column):
        texts = {tally.text.lower(): tally.text for tally in labels}
        words = "true" if set(texts) <= {"false", "true"} else "1"
        answers["positive"] = texts.get(words, words)
        if words == "true":
            decided.append(f"y is 1 where {name} is true.")
    else:
        options = tuple(
            Option(tally.text, f"{quoted(tally.text)} ({_rows(tally.number)}, first row {tally.row:,})")
            for tally in labels
        )
        text = f"Which label of {name} is the event, y = 1?"
        if len(labels) > 2:
            text += (
                f" There are {len(labels)} labels: the one that you name stands against all the others"
                + (", with p its probability" if p is not None else "")
                + ". If one of them stands for an unknown outcome, leave its rows out first."
            )
        questions.append(Question("positive", text, options))
    if len(labels) == 1:
        decided.append(f"y holds one label only, {shown}: nothing can be tested.")


def _label_of(positive: object, column: Column) -> str | None:
    """Find the label that `positive` means: the same text, the same number, or the same truth value."""
    texts = [tally.text for tally in column.label_counts]
    wanted = str(positive).strip()
    if wanted in texts:
        return wanted
    if isinstance(positive, (bool, np.bool_)) and all(text.lower() in ("false", "true") for text in texts):
        return next((text for text in texts if text.lower() == wanted.lower()), None)
    if column.is_number:
        try:
            return next((text for text in texts if float(text) == float(wanted)), None)
        except ValueError:
            return None
    return None


def listed_short(texts: Sequence[str], most: int = 6) -> str:
    """Write names with commas between, the first few where there are many.

    Examples
    --------
    >>> listed_short(["a", "b", "c"], most=2)
    'a, b, ...'
    """
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")


def _broken(column: Column, p: Column | None) -> bool:
    """Tell whether more than two labels are a mistake: one label in several spellings, or p and y swapped."""
    same = [_same(tally.text) for tally in column.label_counts]
    swapped = p is not None and column.is_number and len(p.label_counts) == 2
    return swapped or len(set(same)) < len(same)


def _one_of_many(column: Column, answers: dict[str, Any]) -> bool:
    """Tell whether one label of many can be the event: it is named, or the labels are few enough to be asked about."""
    return (column.is_integer or not column.is_number) and (
        "positive" in answers or len(column.label_counts) <= MOST_LABELS
    )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _too_many_labels(column: Column, p: Column | None) -> str:
    name = quoted(column.name)
    labels = column.label_counts
    if p is not None and column.is_number and len(p.label_counts) == 2 and len(labels) != 2:
        return (
            f"y, column {name}, holds more than two different values, and p, column {quoted(p.name)}, holds "
            f"{len(p.label_counts)}. Are they swapped? Say p={column.name!r}, y={p.name!r}."
        )
    if not labels:
        return (
            f"y, column {name}, holds hundreds of different values; it needs two labels. Name another column."
        )
    shown = ", ".join(
        f"{quoted(tally.text)} ({_rows(tally.number)}, first row {tally.row:,})" for tally in labels[:6]
    ) + (", ..." if len(labels) > 6 else "")
    words = f"y, column {name}, holds {len(labels):,} labels and needs two: {shown}. "
    if len({_same(tally.text) for tally in labels}) < len(labels):
        return words + "Some differ only in how they are written. Write each label in one way."
    return words + (
        "Name the one that is the event, positive='...', and it is tested against all the others; or keep the rows of "
        "two labels."
    )


def _same(text: str) -> str:
    return {"true": "1", "false": "0"}.get(text.lower(), text.lower())


def settle_missing(columns: dict[str, Column], answers: dict[str, Any], questions: list[Question]) -> None:
    """Settle what happens to rows without p, y or fold."""
    holes = {role: column for role, column in columns.items() if column.missing}
    if not holes:
        return
    rows = int(np.count_nonzero(find_holes(columns)))
    total = columns["p"].length
    found = "; ".join(
        f"{role}, column {quoted(column.name)}, in {_where(column, MISSING)}"
        for role, column in holes.items()
    )
    words = f"A value is missing: {found}."
    answer = answers.get("missing")
    if answer == "refuse":
        raise InputError(f"{words} Complete the file, or say missing='drop' to leave out {_rows(rows)}.")
    if rows == total:
        raise InputError(f"{words} No row has both p and y.")
    if answer is None:
        options = (
            Option("drop", f"'drop' leaves out {rows:,} of {total:,} rows"),
            Option("refuse", "'refuse' does not read the file"),
        )
        questions.append(Question("missing", f"{words} What shall happen to these rows?", options))


def find_holes(columns: dict[str, Column]) -> np.ndarray:
    """Return the rows where p, y or the fold is missing."""
    holes = np.isnan(columns["p"].numbers())
    for role in ("y", "fold"):
        if role in columns and columns[role].labels is not None:
            holes |= columns[role].labels[1] < 0  # type: ignore[index]
    return holes


def describe(column: Column) -> ColumnFacts:
    """Say what the whole file shows about a column."""
    kind: Literal["number", "text", "empty"] = "text"
    low = high = None
    if column.present == 0:
        kind = "empty"
    elif column.is_number:
        kind = "number"
        low, high = column.span
    labels = tuple((tally.text, tally.number) for tally in column.label_counts)
    labels = labels if len(labels) <= 20 else ()
    return ColumnFacts(
        name=column.name,
        position=column.position,
        kind=kind,
        n=column.present,
        missing=column.missing,
        low=low,
        high=high,
        labels=labels,
        identifier=column.is_identifier,
        text=_facts_text(column, kind, labels),
    )


def _facts_text(column: Column, kind: str, labels: tuple[tuple[str, int], ...]) -> str:
    name = quoted(column.name) if column.name else f"column {column.position + 1} (no name)"
    if kind == "empty":
        words = "empty"
    elif len(labels) in (1, 2) and (kind == "text" or column.is_integer):
        words = ", ".join(f"{quoted(text)} in {_rows(count)}" for text, count in labels)
    elif kind == "number":
        words = f"{column.span[0]:g} to {column.span[1]:g}"
    elif column.count(BAD) < column.present:
        bad = column.tallies[BAD]
        words = f"numbers and texts, such as {quoted(bad.text)} in row {bad.row:,}"
    elif labels:
        words = f"{len(labels)} different texts"
    else:
        words = "many different texts"
    if column.missing and kind != "empty":
        words += f", {column.missing:,} missing"
    return f"{name}: {words}"
