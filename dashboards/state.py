"""The state of a page as a link: written on release, read and checked on arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
import param


class PageState(param.Parameterized):
    """What a page's link carries. No Panel in it: a page, a notebook and a test use it alike.

    Subclasses declare parameters; those named in `stops` move in steps.
    """

    stops: Mapping[str, np.ndarray] = {}
    entries: Sequence[str] = ()  # what, when it changes, is a new entry of the browser's history

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen; a page with menus says what stands in them."""
        return str(value) or "the default"

    def names(self) -> list[str]:
        """Return the parameters that a link carries, in order of declaration."""
        return [name for name in self.param if name != "name"]

    def query(self) -> str:
        """Return the state as a query string: what moves in steps always, the rest if not default.

        Examples
        --------
        >>> class State(PageState):
        ...     tau = param.Number(0.65)
        ...     stops = {"tau": np.array([0.6, 0.65, 0.7])}
        >>> State(tau=0.7).query()
        'tau=0.7'
        """
        pairs = []
        for name in self.names():
            value = getattr(self, name)
            if name in self.stops:
                pairs.append((name, f"{value:g}"))
            elif value != self.param[name].default:
                pairs.append(
                    (name, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
                )
        return urlencode(pairs, safe=",")

    def read(self, query: str) -> list[str]:
        """Take what a query string asks for, as far as it can be had.

        Parameters
        ----------
        query : str
            With or without the leading question mark. Keys of others are left alone.

        Returns
        -------
        list of str
            One plain sentence for everything that could not be shown as asked.
        """
        told: list[str] = []
        wanted: dict[str, Any] = {}
        asked = dict(parse_qsl(query.lstrip("?"), keep_blank_values=True))
        for name in self.names():
            if name not in asked:
                wanted[name] = self.param[name].default
                continue
            value, sentence = self._read_one(name, asked[name][:200])
            wanted[name] = value
            if sentence:
                told.append(sentence)
        self.param.update(**wanted)
        return told

    def _read_one(self, name: str, text: str) -> tuple[Any, str]:
        declared = self.param[name]
        label = declared.label.lower() if declared.label else name
        if name in self.stops:
            return nearest_stop(text, self.stops[name], label, declared.default)
        if isinstance(declared, param.ListSelector):
            items = list(dict.fromkeys(t for t in text.split(",") if t))
            known = [t for t in items if t in declared.objects]
            lost = [t for t in items if t not in declared.objects]
            return (
                known,
                f"The link names {', '.join(lost)} under {label}, which is not here." if lost else "",
            )
        objects: Sequence[Any] = list(declared.objects)
        for value in objects:
            if str(value) == text:
                return value, ""
        return (
            declared.default,
            f"The link asks for {label} “{text}”, which is not here; {self.title(name, declared.default)} is shown.",
        )


def nearest_stop(text: str, stops: np.ndarray, label: str, default: float) -> tuple[float, str]:
    """Read a number and move it to the nearest stop.

    Returns
    -------
    (float, str)
        The stop, and a sentence if it is not what was asked for.

    Examples
    --------
    >>> nearest_stop("7", np.array([0.2, 0.65, 1.0]), "tau", 0.65)
    (1.0, 'The link asks for tau 7; the nearest stop, 1, is shown.')
    """
    try:
        asked = float(text)
    except ValueError:
        asked = float("nan")
    if not np.isfinite(asked):
        return default, f"The link asks for {label} “{text}”, which is no number; {default:g} is shown."
    stop = float(stops[int(np.argmin(np.abs(stops - asked)))])
    near = (
        ""
        if abs(stop - asked) < 1e-9
        else f"The link asks for {label} {asked:g}; the nearest stop, {stop:g}, is shown."
    )
    return stop, near
