"""A file brought by drop or by choice: in pieces, each acknowledged, into the memory of one session.

The browser sends a few pieces ahead of what the session has taken, so that a large file neither fills
the socket nor keeps other sessions waiting, the progress that is shown is true, and a cancel stops it.
(Panel's FileDropper sends everything at once, cannot be stopped, and decodes text on arrival.)
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import param
from panel.custom import JSComponent

from dashboards import theme
from leakviz.predictions.sources import quoted

MOST_PIECE = 1 << 21  # bytes; the browser sends half of it
EVERY = 0.15  # seconds between two steps of the progress bar

_CSS = theme.css(
    """
:host { display: block; width: 100% }
.strip { border-top: 1px solid $hair; border-bottom: 1px solid $hair; padding: 14px 0; font: 15px/1.45 $font; color: $ink; min-height: 72px; box-sizing: border-box; display: grid; align-items: center }
.strip.over { background: $soft; box-shadow: inset 0 0 0 2px $accent }
.rest, .work { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 18px }
.rest[hidden], .work[hidden] { display: none }
p { margin: 0 }
input { position: absolute; width: 1px; height: 1px; opacity: 0 }
.choose { background: $accent; color: $bg; border-radius: 6px; padding: 7px 14px; cursor: pointer; white-space: nowrap }
.choose:hover { filter: brightness(1.12) }
input:focus-visible + .choose { outline: 2px solid $accent; outline-offset: 2px }
.hint { flex: 1 1 320px; font-size: 13px; color: $muted }
.words { flex: 1 1 220px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.framed { font: 13px/1.45 $font; color: $ink; background: none; border: 1px solid $hair; border-radius: 6px; padding: 5px 10px; cursor: pointer }
.framed:hover { border-color: $muted }
.framed:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
.bar { flex: 1 0 100%; height: 4px; background: $hair; border-radius: 2px; overflow: hidden }
.bar span { display: block; height: 100%; background: $accent; width: 0 }
.bar.unknown span { width: 30%; animation: pass 1.4s ease-in-out infinite alternate }
@keyframes pass { to { margin-left: 70% } }
@media (prefers-reduced-motion: reduce) { .bar.unknown span { animation: none; width: 100%; opacity: .5 } }
"""
)


def megabytes(size: int) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> megabytes(1_000_000_000), megabytes(61_500_000), megabytes(2_300), megabytes(1)
    ('1,000 MB', '62 MB', '2.3 kB', '1 byte')
    """
    if size >= 10_000_000:
        return f"{size / 1e6:,.0f} MB"
    if size >= 1_000_000:
        return f"{size / 1e6:.1f} MB"
    if size >= 1_000:
        return f"{size / 1e3:.1f} kB"
    return "1 byte" if size == 1 else f"{size} bytes"


class Upload(JSComponent):
    """A strip with a button, a place to drop (the whole page) and a progress bar.

    Parameters
    ----------
    limit : int
        The largest file, in bytes.
    busy : callable
        Called with a file's name; returns why nothing can be taken now, or "".
    took : callable
        Called with the file, a `io.BytesIO` that the callee closes, and its name.
    refused : callable
        Called with the reason, a sentence in plain text, when a file is not taken.
    stopped : callable
        Called when the user cancels what the owner of this strip is doing.
    slimmer : str
        What to do with a file that is too large, a sentence.
    """

    label = param.String(default="Choose a file")
    hint = param.String(default="", doc="What may be brought, and how large.")
    working = param.String(default='{"text": "", "done": null}', doc="JSON; see `work`.")
    taken = param.String(default='{"id": "", "taken": 0}', doc="JSON; how much of which upload has arrived.")

    _esm = Path(__file__).with_name("upload.js")
    _stylesheets: ClassVar[list[str]] = [_CSS]

    def __init__(
        self,
        *,
        limit: int,
        busy: Callable[[str], str],
        took: Callable[[io.BytesIO, str], object],
        refused: Callable[[str], object],
        stopped: Callable[[], object],
        slimmer: str = "Keep only the columns for p and y, or save it as Parquet.",
        **params: Any,
    ):
        super().__init__(**params)
        self.limit, self.slimmer = limit, slimmer
        self._busy, self._took, self._refused, self._stopped = busy, took, refused, stopped
        self._coming: tuple[str, str, int, io.BytesIO] | None = None
        self._told = 0.0

    def work(self, text: str = "", done: float | None = None) -> None:
        """Show what is being done and which part of it is, or nothing."""
        self.working = json.dumps({"text": text, "done": None if done is None else round(done, 3)})

    @property
    def coming(self) -> str:
        """The name of the file on its way, or ""."""
        return self._coming[1] if self._coming else ""

    def drop(self) -> None:
        """Give up what is on its way."""
        if self._coming:
            identity, _, _, buffer = self._coming
            buffer.close()
            self._coming = None
            self._send_msg({"refused": identity})
            self.work()

    def _handle_msg(self, data: Any) -> None:
        act = {
            "start": self._start,
            "piece": self._piece,
            "fail": self._fail,
            "refuse": lambda m: self._refused(str(m.get("words"))[:300]),
            "cancel": self._cancel,
        }.get(str(data.get("do")) if isinstance(data, dict) else "")
        if act is not None:
            act(data)

    def _start(self, message: dict[str, Any]) -> None:
        identity, name, size = str(message["id"]), str(message["name"])[:255], int(message["size"])
        reason = self._busy(name)
        if self._coming is not None:
            reason = f"{quoted(name)} was not taken: {quoted(self.coming)} is still on its way."
        elif not reason and size > self.limit:
            reason = (
                f"{quoted(name)} has {size:,} bytes, more than the limit of {self.limit:,}, and was not "
                f"sent. {self.slimmer}"
            )
        if reason:
            self._send_msg({"refused": identity})
            self._refused(reason)
            return
        self._coming = (identity, name, size, io.BytesIO())
        self._tell()

    def _tell(self) -> None:
        assert self._coming is not None
        identity, name, size, buffer = self._coming
        have = buffer.tell()
        if have >= size:
            self._coming = None
            self.work(f"Reading {name}")  # until the owner says otherwise
            buffer.seek(0)
            self._took(buffer, name)
            return
        if have == 0 or time.monotonic() - self._told > EVERY:
            self._told = time.monotonic()
            self.work(f"Sending {name}: {megabytes(have)} of {megabytes(size)}", have / size)
        self.taken = json.dumps({"id": identity, "taken": have})

    def _piece(self, message: dict[str, Any]) -> None:
        if self._coming is None or message.get("id") != self._coming[0]:
            return  # of an upload that was given up
        _, name, size, buffer = self._coming
        piece = message["data"]
        have = buffer.tell()
        wrong = not isinstance(piece, bytes) or message["at"] != have
        if wrong or len(piece) > MOST_PIECE or have + len(piece) > size:
            self.drop()
            self._refused(f"{quoted(name)} did not arrive whole. Try again.")
            return
        buffer.write(piece)
        self._tell()

    def _fail(self, message: dict[str, Any]) -> None:
        if self._coming is not None and message.get("id") == self._coming[0]:
            name = self.coming
            self.drop()
            self._refused(
                f"The browser cannot read {quoted(name)}: it is a folder, or it changed or went away."
            )

    def _cancel(self, message: dict[str, Any]) -> None:
        if self._coming is not None:
            name = self.coming
            self.drop()
            self._refused(f"{quoted(name)} was not taken: you cancelled it.")
        else:
            self._stopped()
