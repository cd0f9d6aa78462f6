"""What every page does that takes a file: one piece of work at a time, its progress, its end, what went wrong.

The file is held by the page of the session that brought it and by nothing else. A page says what its answers
mean and what it shows; how a file comes in, is refused, is read again or is given up is the same everywhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import weakref
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, ClassVar

import panel as pn

from dashboards.sheet import Sheet
from dashboards.upload import Upload, megabytes
from dashboards.work import Job, attempt, start
from leakviz.embeddings import EmbeddingsQuestion
from leakviz.errors import InputError
from leakviz.predictions.records import Question
from leakviz.predictions.sources import quoted


class Wizard:
    """A mixin: the strip for a file, the sheet below it, and the work between them.

    A subclass has ``say(role, value)``, ``use()``, ``_read(job, file, name, options)`` and ``_show()``; it calls
    `_open` when it is made.

    Attributes
    ----------
    AGAIN : dict
        What a message of the reader can ask for that needs the file to be read again: label, help, and the
        choices (value to words; none for a text).
    ACTS, ACTS_ON : dict
        What the sheet's buttons call, without and with the name of an entry of the shelf.
    SLIMMER : str
        What to do where the memory does not suffice, a sentence.
    alerts : list of str
        What went wrong last.
    """

    AGAIN: ClassVar[dict[str, tuple[str, str, dict[str, str]]]] = {}
    ACTS: ClassVar[dict[str, str]] = {"use": "use", "close": "close"}
    ACTS_ON: ClassVar[dict[str, str]] = {}
    SLIMMER: ClassVar[str] = ""

    alerts: list[str]

    def _open(self, *, limit: int, hint: str) -> None:
        """Make strip and sheet; `hint` says which files may come, and what becomes of them."""
        self.alerts = []
        self._again: tuple[Any, str, dict[str, str], str] | None = None
        self._job: Job | None = None
        self._tasks: set[asyncio.Task] = set()
        self._document = pn.state.curdoc
        self.upload = Upload(
            limit=limit,
            busy=self._busy,
            took=self.load,
            refused=self._refused,
            stopped=self.stop,
            slimmer=self.SLIMMER,
            hint=f"or drop it anywhere on this page: {hint.format(limit=megabytes(limit))}",
            sizing_mode="stretch_width",
            margin=0,
        )
        self.sheet = Sheet(self._heard, sizing_mode="stretch_width", margin=0)
        if pn.state.curdoc and pn.state.curdoc.session_context:
            page = weakref.ref(self)

            def gone(context: Any) -> None:
                left = page()
                if left is not None:
                    left.stop()

            pn.state.on_session_destroyed(gone)

    def say(self, role: str, value: str) -> None:
        """Answer a question about the file; an empty text takes an answer back."""
        raise NotImplementedError

    def _show(self) -> None:
        raise NotImplementedError

    async def _read(self, job: Job, file: Any, name: str, options: dict[str, str]) -> None:
        raise NotImplementedError

    # ---- what the user does

    def load(self, file: Any, name: str | None = None) -> None:
        """Read a file; where it cannot be read, everything stays as it was and `alerts` says why.

        Parameters
        ----------
        file : path, bytes or io.BytesIO
            An `io.BytesIO` is closed when it is not needed any more.
        name : str, optional
            What to call it.
        """
        if name is None:
            name = Path(file).name if isinstance(file, (str, os.PathLike)) else "the upload"
        if not self._is_busy(name):
            self._start_reading(file, name, {})

    def stop(self) -> None:
        """Stop what is being done."""
        if self._job:
            self._job.stopped.set()

    def _heard(self, message: dict[str, str]) -> None:
        do, value = message.get("do", ""), message.get("value", "")
        if do == "answer":
            self.say(message.get("role", ""), value)
        elif do == "retry" and self._again and not self._job and value:
            file, name, options, role = self._again
            self._start_reading(file, name, {**options, role: value})
        elif do in self.ACTS:
            getattr(self, self.ACTS[do])()
        elif do in self.ACTS_ON:
            getattr(self, self.ACTS_ON[do])(message.get("name", ""))

    def _busy(self, name: str) -> str:
        if self._job is None:
            return ""
        return f"{quoted(name)} was not taken: {quoted(self._job.name)} is still being worked on. Cancel it first, or wait."

    def _is_busy(self, name: str) -> bool:
        """Tell whether something else is being done, and say so."""
        if busy := self._busy(name):
            self._refused(busy)
        return bool(busy)

    def _refused(self, reason: str) -> None:
        self.alerts = [reason]
        self._show()

    # ---- work

    def _start_reading(self, file: Any, name: str, options: dict[str, str]) -> None:
        self._job = Job(f"Reading {name}", name)
        start(self._read(self._job, file, name, options), self._tasks)

    def _show_work(self, job: Job) -> None:
        self.upload.work(job.words(), job.done)

    async def _attempt(self, job: Job, work: Coroutine[Any, Any, None]) -> str:
        try:
            return await attempt(job, work, slimmer=self.SLIMMER)
        finally:
            self._job = None

    def _finish(self, wrong: str) -> None:
        self.alerts = [wrong] if wrong else []
        with pn.io.hold():
            self.upload.work()
            self._show()

    # ---- a file that one word of the user may open

    def _keep_to_ask(self, wrong: str, job: Job, file: Any, name: str, options: dict[str, str]) -> None:
        """Keep a file that was read in vain if something can be said about it, and let go of the one before."""
        role = next((r for r in self.AGAIN if wrong and (f"{r}=" in wrong or r in options)), None)
        before, self._again = self._again, None
        if role and not job.stopped.is_set() and file is not None:
            self._again = (file, name, options, role)
        elif wrong:
            _close(file)
        if before and before[0] is not file:
            _close(before[0])

    def _let_go(self) -> None:
        """Forget a file that was kept to be read again."""
        if self._again:
            _close(self._again[0])
        self._again = None

    def _retry(self) -> dict[str, Any] | None:
        """Return what the sheet shows where a file can be read again."""
        if self._again is None:
            return None
        role = self._again[3]
        label, text, choices = self.AGAIN[role]
        return {"role": role, "label": label, "text": text, "options": list(choices.items())}


def sha256_of(file: Any) -> str:
    """Return the SHA-256 of a file's bytes, as a report names it: of a path, bytes, or a file in memory.

    Examples
    --------
    >>> sha256_of(b"abc")[:8], sha256_of(io.BytesIO(b"abc"))[:8]
    ('ba7816bf', 'ba7816bf')
    """
    if isinstance(file, io.BytesIO):
        return hashlib.sha256(file.getbuffer()).hexdigest()
    if isinstance(file, (bytes, bytearray, memoryview)):
        return hashlib.sha256(file).hexdigest()
    with Path(file).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def in_memory(file: Any) -> io.BytesIO:
    """Return a file's bytes as a file object, so that what is looked at cannot change on the disk.

    Raises
    ------
    InputError
        If there is no file of that name.
    """
    if isinstance(file, (bytes, bytearray, memoryview)):
        return io.BytesIO(file)
    if isinstance(file, (str, os.PathLike)):
        if not Path(file).is_file():
            raise InputError(
                f"there is no file {quoted(Path(file))}. Check the path and the working directory."
            )
        return io.BytesIO(Path(file).read_bytes())
    return file


def _close(file: Any) -> None:
    if isinstance(file, io.BytesIO):
        file.close()


def note_questions(
    asked: dict[str, tuple[str, tuple]], questions: Iterable[Question | EmbeddingsQuestion], *, none: str = ""
) -> None:
    """Remember what was asked, by role: a question that is answered stays where it stands.

    `none` is said after a question that has no option.
    """
    for question in questions:
        options = tuple((option.value, option.text) for option in question.options)
        asked.setdefault(question.role, (question.text + ("" if options else none), options))


def untaken(title: str, taken: set[str]) -> str:
    """Number a title that is taken.

    Examples
    --------
    >>> untaken("preds.csv", {"preds.csv", "preds.csv (2)"})
    'preds.csv (3)'
    """
    numbered = (f"{title} ({count})" for count in range(2, len(taken) + 2))
    return next((t for t in (title, *numbered) if t not in taken), title)


def short(text: str, most: int = 48) -> str:
    """Cut a text that is too long for a sentence.

    Examples
    --------
    >>> short("predictions of the second model.csv", 20)
    'predictions o…el.csv'
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 7]}…{flat[-6:]}"


def text_again(sheet_of: str) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Return what may be asked again about a table: encoding, delimiter, and the sheet that holds `sheet_of`."""
    encodings = {
        "cp1252": "Windows, western Europe (cp1252)",
        "cp1250": "Windows, central Europe (cp1250)",
        "latin-1": "ISO 8859-1 (latin-1)",
        "mac_roman": "old Macs (mac_roman)",
        "utf-16-le": "UTF-16, little endian",
        "utf-16-be": "UTF-16, big endian",
        "gb18030": "Chinese (gb18030)",
        "shift_jis": "Japanese (shift_jis)",
    }
    return {
        "encoding": ("encoding", "How the characters of the text are written as bytes.", encodings),
        "delimiter": ("delimiter", "The one character between two cells.", {}),
        "sheet": ("sheet", f"The name of the sheet that holds {sheet_of}.", {}),
    }
