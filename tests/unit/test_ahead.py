"""Work that is done before it is asked for: in order, with rests, and never in anybody's way."""

import asyncio
import itertools
import threading
import time

import pytest

from dashboards.ahead import Ahead, in_loop


@pytest.fixture
def ahead():
    made = Ahead(pause=0.0, most=4)
    yield made
    made.stop()
    assert made._thread is None or not made._thread.is_alive()


def test_what_was_asked_last_is_done_first_and_the_oldest_is_forgotten(ahead):
    done, gate, begun = [], threading.Event(), threading.Event()

    def wait():
        begun.set()
        gate.wait(10)

    ahead.ask({"first": wait})
    assert begun.wait(10)
    ahead.ask({name: lambda name=name: done.append(name) for name in "abc"})
    ahead.ask({name: lambda name=name: done.append(name.upper()) for name in "xb"})
    assert not ahead.wait(0.05)
    gate.set()
    assert ahead.wait(10)
    assert done == ["X", "B", "a", "c"]  # b once, in its new place
    ahead.ask({name: lambda name=name: done.append(name) for name in "123456"})
    assert ahead.wait(10)
    assert done[4:] == ["1", "2", "3", "4"]


def test_a_step_that_fails_is_left_and_one_that_is_not_finished_goes_on(ahead):
    left = iter([True, True, False])
    calls = []

    def more():
        calls.append(time.monotonic())
        return next(left)

    def fails():
        raise ValueError("no such fit set")

    ahead.ask({"fails": fails, "more": more})
    assert ahead.wait(10)
    assert len(calls) == 3
    assert min(b - a for a, b in itertools.pairwise(calls)) >= 0.02  # it rests in between


def test_it_stops(ahead):
    done = []
    ahead.ask({"slow": lambda: time.sleep(0.1), "never": lambda: done.append(1)})
    ahead.stop()
    ahead.ask({"later": lambda: done.append(2)})
    assert ahead.wait(1)
    assert done == []


def test_figures_are_drawn_in_the_loop():
    async def run():
        loop = asyncio.get_running_loop()
        here = threading.get_ident()
        assert await loop.run_in_executor(None, in_loop(loop, threading.get_ident)) == here
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, in_loop(loop, lambda: 1 / 0))

    asyncio.run(run())
