"""Work that takes seconds: done in a thread, so that no other session waits for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import panel as pn

from leakviz import InputError
from leakviz.predictions.sources import quoted

T = TypeVar("T")
EVERY = 0.15  # seconds between two looks at how far it is

# Few at a time: each needs a processor and the memory of a file. A work item is let go when it is done.
READERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="leakviz-read")
_log = logging.getLogger(__name__)


class Stopped(Exception):
    """The user does not want the work any more."""


class Job:
    """One piece of work in a thread: what it is, how far it is, whether it is still wanted."""

    def __init__(self, text: str, name: str, *, quiet: bool = False):
        self.text, self.name, self.quiet = text, name, quiet
        self.done: float | None = None
        self.stopped = threading.Event()

    def progress(self, done: int, total: int) -> None:
        """Note how far it is; raise if it is not wanted any more."""
        if self.stopped.is_set():
            raise Stopped
        self.done = done / max(total, 1)

    def words(self) -> str:
        """Say what is being done, and how much of it is.

        Examples
        --------
        >>> job = Job("Reading a.csv", "a.csv")
        >>> job.progress(1, 4)
        >>> job.words()
        'Reading a.csv: 25 %'
        """
        return self.text if self.done is None else f"{self.text}: {100 * self.done:.0f} %"


def start(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task]) -> None:
    """Run a coroutine: in the session's event loop, in a notebook's, or to its end where there is none.

    Parameters
    ----------
    work : coroutine
    tasks : set
        Holds a notebook's task as long as it runs.
    """
    if pn.state.curdoc and pn.state.curdoc.session_context:

        async def run() -> None:
            await work

        pn.state.execute(run)
        return
    try:
        task = asyncio.get_running_loop().create_task(work)
    except RuntimeError:
        asyncio.run(_to_its_end(work))
        return
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    await work


async def in_thread(
    job: Job, function: Callable[[], T], show: Callable[[Job], object], pool: ThreadPoolExecutor = READERS
) -> T:
    """Run a function in a thread and show how far it is; leave it alone when it is not wanted any more.

    Parameters
    ----------
    job : Job
    function : callable
        Calls ``job.progress`` where it can.
    show : callable
        Called with the job, in the session's thread, every so often.
    pool : ThreadPoolExecutor

    Raises
    ------
    Stopped
        If the user cancelled it.
    """
    if not job.quiet:
        show(job)
    future = asyncio.get_running_loop().run_in_executor(pool, function)
    while not future.done():
        await asyncio.wait({future}, timeout=EVERY)
        if job.stopped.is_set():
            future.add_done_callback(lambda f: f.cancelled() or f.exception())
            raise Stopped
        if not future.done():
            show(job)
    return future.result()


async def in_document(document: Any, change: Callable[[], object], job: Job | None = None) -> None:
    """Make new panes or figures when it is the document's turn: only then do they find what the server serves.

    Parameters
    ----------
    document : bokeh.document.Document or None
        The session's, as `panel.state.curdoc` says it when the page is made.
    change : callable
    job : Job, optional
        What it belongs to.

    Raises
    ------
    Stopped
        If the job is not wanted any more: a session that has gone has no turn.
    """
    if document is None or not document.session_context:
        change()
        return
    done = asyncio.get_running_loop().create_future()

    def turn() -> None:
        try:
            change()
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    document.add_next_tick_callback(turn)
    while not done.done():
        await asyncio.wait({done}, timeout=EVERY)
        if job is not None and job.stopped.is_set() and not done.done():
            raise Stopped
    done.result()


async def attempt(job: Job, work: Coroutine[Any, Any, None], *, slimmer: str) -> str:
    """Await a step of the work; return what went wrong, in words.

    Parameters
    ----------
    job : Job
    work : coroutine
    slimmer : str
        What to do where the memory does not suffice, a sentence.
    """
    try:
        await work
        return ""
    except InputError as error:
        return str(error)
    except Stopped:
        return f"{quoted(job.name)} was not taken: you cancelled it."
    except MemoryError:
        return f"{quoted(job.name)} does not fit into this machine's memory. {slimmer}"
    except Exception:
        _log.exception("a file could not be read")
        return f"{quoted(job.name)} could not be read, for a reason that this app does not know. Its log has the details."
