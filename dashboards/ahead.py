"""What visitors will probably ask for next, worked out before they do.

One thread for the whole process does one step at a time and rests after each, so that the sessions that are
there notice little of it. What was asked for last comes first: somebody is
looking at it now.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any

_log = logging.getLogger(__name__)

Step = Callable[[], Any]


class Ahead:
    """A queue of steps, and the thread that does them.

    Parameters
    ----------
    pause : float
        Seconds without a step after somebody asked: whoever did is still painting.
    most : int
        How many steps wait; of more than that, the oldest are forgotten.

    Examples
    --------
    >>> done, ahead = [], Ahead(pause=0.0)
    >>> ahead.ask({"a": lambda: done.append("a"), "b": lambda: done.append("b")})
    >>> ahead.wait(10), done
    (True, ['a', 'b'])
    >>> ahead.stop()
    """

    def __init__(self, *, pause: float = 1.0, most: int = 24):
        self.pause, self.most = pause, most
        self._steps: dict[Hashable, Step] = {}  # the next one first
        self._change = threading.Condition()
        self._busy = self._stopped = False
        self._asked = 0.0
        self._thread: threading.Thread | None = None

    def ask(self, steps: Mapping[Hashable, Step]) -> None:
        """Put steps in front of what waits, by name; what waits already under a name is replaced.

        Parameters
        ----------
        steps : mapping
            A step that returns True is not finished: it is called again after a rest. One that fails is
            left to whoever asks for its answer.
        """
        with self._change:
            if self._stopped:
                return
            kept = {**steps, **{name: step for name, step in self._steps.items() if name not in steps}}
            self._steps = dict(list(kept.items())[: self.most])
            self._asked = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="leakviz-ahead", daemon=True)
                self._thread.start()
            self._change.notify_all()

    def stop(self) -> None:
        """Forget what waits, let the present step end, and take no more."""
        with self._change:
            self._stopped, self._steps = True, {}
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join(2)  # a step in the loop may wait for a loop that is gone

    def wait(self, timeout: float) -> bool:
        """Wait until nothing is left to do; tell whether that was so in time."""
        with self._change:
            return self._change.wait_for(lambda: not self._steps and not self._busy, timeout)

    def _work(self) -> None:
        while True:
            with self._change:
                self._busy = False
                self._change.notify_all()
                self._change.wait_for(lambda: self._steps or self._stopped)
                while not self._stopped and (left := self._asked + self.pause - time.monotonic()) > 0:
                    self._change.wait(left)
                if self._stopped:
                    return
                name = next(iter(self._steps))
                step, self._busy = self._steps.pop(name), True
            started, more = time.monotonic(), False
            try:
                more = step() is True
            except Exception:
                _log.debug("%r could not be worked out ahead", name, exc_info=True)
            with self._change:
                if more and name not in self._steps:
                    self._steps = {name: step, **self._steps}
                rest = min(max(time.monotonic() - started, 0.02), 0.3)
                self._change.wait_for(lambda: self._stopped, rest)


def in_loop(loop: asyncio.AbstractEventLoop, work: Step) -> Step:
    """Return a step that does its work in the server's event loop: figures are drawn nowhere else.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
    work : callable
    """

    def step() -> Any:
        done: Future[Any] = Future()

        def turn() -> None:
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

        loop.call_soon_threadsafe(turn)
        return done.result(60)

    return step


AHEAD = Ahead()
