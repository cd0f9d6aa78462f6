"""Ctrl-C while the command line is still loading: it ends at once, without a traceback.

Python loads this package, and what it stands on, before `leakviz.cli.main` can catch anything: that takes a
second or two. A program that imports leakviz for itself is left alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from itertools import pairwise
from pathlib import Path
from types import FrameType

STOPPED = 130  # what a shell calls a program that was stopped with Ctrl-C
WORDS = "leakviz: stopped; nothing was written.\n"


def _end(number: int, frame: FrameType | None) -> None:
    if not _is_server():  # which writes nothing, and whose starter says it
        os.write(2, WORDS.encode())
    os._exit(STOPPED)


def _is_command() -> bool:
    """Tell whether the process is ``leakviz``; ``python -m leakviz`` has no name of its own while it loads."""
    started = sys.argv[0] if sys.argv else ""
    how = [
        name for switch, name in pairwise(sys.orig_argv) if switch.startswith("-") and switch.endswith("m")
    ]
    return Path(started).stem == "leakviz" or (started == "-m" and how[:1] == ["leakviz"])


def _is_server() -> bool:
    return bool(sys.argv) and Path(sys.argv[0]).parts[-2:] == ("dashboards", "server.py")


def quiet_while_loading() -> None:
    """Let Ctrl-C end the process quietly, where it is the command ``leakviz`` or the server that it starts."""
    here = threading.current_thread() is threading.main_thread()
    if (
        (_is_command() or _is_server())
        and here
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, _end)


def loaded() -> None:
    """Give Ctrl-C back to the program, which tidies up when it comes."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
