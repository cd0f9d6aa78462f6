"""What reading a file of predictions gives back. Every text in it is plain text, never HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Role = Literal["p", "y", "positive", "scale", "missing", "label", "source"]


@dataclass(frozen=True)
class Option:
    """One possible answer to a `Question`.

    Attributes
    ----------
    value : str
        What to pass on as the answer.
    text : str
        The option in words, with what the whole file shows about it. Plain text, never HTML.
    """

    value: str
    text: str


@dataclass(frozen=True)
class Question:
    """Something about a file that must not be guessed.

    Attributes
    ----------
    role : {"p", "y", "positive", "scale", "missing", "label", "source"}
        The argument of `read_predictions`, or of `leakviz.read_sources`, that answers it.
    text : str
        The question, with counts and first rows of the whole file. Plain text, never HTML.
    options : tuple of Option
        The possible answers, in the order of the file.
    """

    role: Role
    text: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class ColumnFacts:
    """What the whole file shows about one column.

    Attributes
    ----------
    name : str
        As in the file, without surrounding spaces.
    position : int
        0 for the first column.
    kind : {"number", "text", "empty"}
    n : int
        Rows with a value.
    missing : int
        Rows without one.
    low, high : float or None
        The smallest and largest number of a number column.
    labels : tuple of (str, int)
        The different values with their counts, in the order in which they appear; empty where there are
        more than 20.
    identifier : bool
        Whether it names rows (an index, an identity number) and measures nothing.
    text : str
        All of this in a few words.
    """

    name: str
    position: int
    kind: Literal["number", "text", "empty"]
    n: int
    missing: int
    low: float | None
    high: float | None
    labels: tuple[tuple[str, int], ...]
    identifier: bool
    text: str


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted risks and outcomes, read from a file.

    Attributes
    ----------
    p : numpy.ndarray
        Float64, shape (n,): the predicted probability of y = 1, in [0, 1]. Read-only.
    y : numpy.ndarray
        Int8, shape (n,): the outcome, 0 or 1. Read-only.
    folds : numpy.ndarray or None
        Int32, shape (n,): each row's place in `fold_names`. Read-only.
    fold_names : tuple of str
        The folds in the order in which they appear in the file.
    name : str
        The file's name.
    columns : dict of str to str
        The columns that were read, by role (``"p"``, ``"y"``, ``"fold"``).
    decided : tuple of str
        What was decided on the way, one sentence each. Plain text, never HTML.
    dropped : int
        Rows left out because a value is missing.
    content_hash : str
        SHA-256 of p, y and folds as numbers, in hex: the same whatever format the file had.
    event : str
        The label that y = 1 stands for.
    no_event : tuple of str
        The labels that y = 0 stands for; several where one label was named against the rest.
    """

    p: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    folds: np.ndarray | None = field(repr=False)
    fold_names: tuple[str, ...]
    name: str
    columns: dict[str, str]
    decided: tuple[str, ...]
    dropped: int
    content_hash: str
    event: str = ""
    no_event: tuple[str, ...] = ()

    @property
    def against(self) -> str:
        """Which label is tested against how many others, in a few words; "" where there is one other or none."""
        others = len(self.no_event)
        return f"{self.event!r} against the {others} other labels" if others > 1 else ""

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.p)
