"""A progress bar for whoever waits more than a second at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

Progress = Callable[[int, int], object]


@contextmanager
def bar(name: str, *, delay: float = 1, **options: Any) -> Iterator[Progress]:
    """Give a function to tell `(done, total)`: a bar on stderr shows it from the second second on, where there is a terminal.

    Parameters
    ----------
    name : str
        What the bar says.
    delay : float
        Seconds before it shows; 0 where it is known that there is something to wait for.
    **options
        As tqdm takes them.

    Examples
    --------
    >>> with bar("reading", unit="B", unit_scale=True) as progress:
    ...     progress(10, 20)
    """
    with tqdm(desc=name, disable=None, delay=delay, leave=False, **options) as shown:

        def progress(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        yield progress
