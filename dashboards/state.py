"""The state of a page as a link: written on release, read and checked on arrival."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
import param

OWN = "own:"
OWN_NAME = re.compile(r"own:[0-9a-z]{1,64}")
LONGEST = 200  # characters of a value that are looked at
# Where a user brings a file, as a sentence says it; the pages' titles in quotation marks become links.
TAKERS = {
    "predictions": "under “Your predictions”",
    "embeddings": "under “Your embeddings”",
    "lodo": "below, under “Your own table”",
    "here": "below",
}


class PageState(param.Parameterized):
    """What a page's link carries. No Panel in it: a page, a notebook and a test use it alike.

    Subclasses declare parameters; those named in `stops` move in steps, those in `chooses` name data, which may
    be a file of the user's own. A link names such a file by its hash alone; read in another session, it waits
    until the file is there (`arrive`).

    Attributes
    ----------
    told : list of str
        What could not be shown as the last link asked for, and what it waits for: sentences, plain text. They
        go when the page is moved on.
    missing : tuple of str
        The names of the files that the last link waits for: ``own:<hash>``.
    link : str
        The link that waits, a query string, or "".
    came : tuple of str
        The names of the files that the last link has waited for, and that came.
    """

    stops: Mapping[str, np.ndarray] = {}
    entries: Sequence[str] = ()  # what, when it changes, is a new entry of the browser's history
    chooses: Sequence[str] = ()
    brought: str = ""  # where a user brings what `chooses` can name: a key of `TAKERS`
    understands: Sequence[str] = ()  # keys of a link that are read, but not written

    told: Any = param.List(default=[], item_type=str)

    def __init__(self, **params: Any):
        super().__init__(**params)
        self.missing: tuple[str, ...] = ()
        self._instead: dict[str, str] = {}  # parameter to what is shown where a file is missing
        self.link = ""
        self.came: tuple[str, ...] = ()
        self._as_read = ""
        self._reading = False
        self.param.watch(self._moved, self.names())

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen; a page with menus says what stands in them."""
        return str(value) or "the default"

    def label(self, name: str) -> str:
        """Return what a parameter is called on the screen."""
        declared = self.param[name]
        return str(declared.label) if getattr(declared, "_label", None) else name.replace("_", " ")

    def names(self) -> list[str]:
        """Return the parameters that a link carries, in order of declaration."""
        return [name for name in self.param if name not in ("name", "told")]

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
        return urlencode(pairs, safe=",:")

    def address(self) -> str:
        """Return what the address says: the state, or the link that waits, until the page is moved on."""
        return self.link if self.waiting else self.query()

    def read(self, query: str) -> list[str]:
        """Take what a query string asks for, as far as it can be had.

        Parameters
        ----------
        query : str
            With or without the leading question mark. ``page`` is the app's.

        Returns
        -------
        list of str
            One plain sentence for everything that could not be shown as asked; also in `told`.
        """
        self._reading, self.missing, self._instead, self.came = True, (), {}, ()
        self.link = "&".join(part for part in query.lstrip("?").split("&") if not part.startswith("page="))
        try:
            told = [*self._read(self.link), *self._strange(self.link)]
        finally:
            self._reading = False
        self._as_read = self.query()
        if self.missing:
            told.insert(0, self._waiting())
        else:
            self.link = ""
        self.told = told
        return told

    def _read(self, query: str) -> list[str]:
        """Take what a query string asks for; a page in which one value decides what another can be, reads that first."""
        told: list[str] = []
        wanted: dict[str, Any] = {}
        asked = asked_of(query)
        for name in self.names():
            if name not in asked:
                wanted[name] = self.param[name].default
                continue
            value, sentence = self._read_one(name, asked[name][:LONGEST])
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
        if self.waits_for(text, name):
            return declared.default, ""
        return (
            declared.default,
            f"The link asks for {label} “{text}”, which is not here; {self.title(name, declared.default)} is shown.",
        )

    # ---- a file of the user's own

    def waits_for(self, value: str, name: str) -> bool:
        """Note that a link names a file that is not here for a parameter; return whether it does."""
        if name not in self.chooses or not OWN_NAME.fullmatch(value):
            return False
        self.missing = (*(m for m in self.missing if m != value), value)
        self._instead[name] = self.title(name, self.param[name].default)
        return True

    def missing_of(self, brought: str) -> tuple[str, ...]:
        """Return the files that the link waits for, if this is where they are brought: a key of `TAKERS`."""
        return self.missing if brought == self.brought else ()

    def arrive(self, new: Collection[str] = ()) -> None:
        """Read the link that waits once more, where a file that it waits for can be chosen by now.

        Parameters
        ----------
        new : collection of str
            The names of files that have just come. If the page shows one of them, and the link waits for another,
            that is told.
        """
        here = {value for name in self.chooses for value in self.param[name].objects}
        come = tuple(name for name in self.missing if name in here)
        if not come:
            other = [value for name in self.chooses if (value := getattr(self, name)) in new]
            if self.missing and other:
                self.told = [other_file(other[0], self.missing) + self._as_the_link()]
            return
        came = (*self.came, *come)
        told = self.read(self.link)
        self.came = came
        self.told = [
            f"This is the file that the link names, {' and '.join(come)}, as the link shows it.",
            *told,
        ]

    def _waiting(self) -> str:
        many = len(self.missing) > 1
        instead = " and ".join(dict.fromkeys(self._instead.values()))
        return (
            f"The link shows {'files' if many else 'a file'} of somebody’s own, {' and '.join(self.missing)}: a link carries "
            f"the hash of the numbers, never the numbers. Bring {'them' if many else 'the file'} {TAKERS[self.brought]}; it is "
            f"checked against the hash, and shown as in the link. Until then: {instead}."
        )

    @property
    def waiting(self) -> bool:
        """Whether the page stands as a link left it that waits for a file."""
        return bool(self.missing) and self.query() == self._as_read

    def _as_the_link(self) -> str:
        """Say what a file is shown at that is not the link's."""
        names = [name for name in self.names() if name in asked_of(self.link) and name not in self.chooses]
        at = [f"{self.param[name].label or name} {self._written(name)}" for name in names]
        return f" It is shown at what the link asks for: {', '.join(at)}." if at else ""

    def _written(self, name: str) -> str:
        value = getattr(self, name)
        return f"{value:g}" if isinstance(value, float) else str(value)

    def _moved(self, *events: Any) -> None:
        if not self._reading and self.told and self.query() != self._as_read:
            self.told = []

    def _strange(self, query: str) -> list[str]:
        """Say what a link names that there is not, and what it says twice."""
        pairs = parse_qsl(query, keep_blank_values=True)
        known = {*self.names(), *self.understands, "page"}
        strange = list(dict.fromkeys(key for key, _ in pairs if key not in known))
        twice = [key for key in known if len({value for name, value in pairs if name == key}) > 1]
        told = [f"The link says {key} more than once; the last is taken." for key in sorted(twice)]
        if strange:
            named = ", ".join(f"“{key[:60]}”" for key in strange[:5])
            more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
            told.append(f"The link names {named}{more}, which this page does not have; it is left out.")
        return told


class OwnFileState(PageState):
    """The state of a page on which files are brought: a link to it carries the hash of what is shown."""

    file: Any = param.Selector(default="", objects=[""], label="file")

    chooses = ("file",)
    brought = "here"

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen."""
        return str(value) or "no file"

    def show(self, names: Sequence[str], shown: str) -> None:
        """Take what a session has, and which of it is shown, "" for none."""
        self.param["file"].objects = list(dict.fromkeys(["", *names, shown]))
        self.file = shown


def asked_of(query: str) -> dict[str, str]:
    """Return what a query string asks for; of what is said twice, the last.

    Examples
    --------
    >>> asked_of("?tau=0.6&tau=0.7&chosen=")
    {'tau': '0.7', 'chosen': ''}
    """
    return dict(parse_qsl(query.lstrip("?"), keep_blank_values=True))


def other_file(name: str, waited: Sequence[str]) -> str:
    """Say that a file that was brought is not the one that a link waits for.

    Parameters
    ----------
    name : str
        Of the file that was brought.
    waited : sequence of str
        Of those that the link waits for.

    Examples
    --------
    >>> other_file("own:1", ["own:2"])
    'This is not what the link shows: the link names own:2, this is own:1, taken as a new one; the link still waits. The same file read in another way (other columns, another event or setting) has another hash, too.'
    """
    return (
        f"This is not what the link shows: the link names {' and '.join(waited)}, this is {name}, taken as a new one; the "
        "link still waits. The same file read in another way (other columns, another event or setting) has another hash, too."
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
