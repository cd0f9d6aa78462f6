"""The one mechanism that ties sliders to answers, and the only module with JavaScript.

The core computes *every answer that the sliders' stops can ask for* in one call: an
:class:`xarray.Dataset` in which some dimensions are walked by sliders. `Live` ships that table
to the browser once, and ``live.js`` copies the row of the present stop into

- **columns** of plot sources (`Column`): curves, bars, boxes, point states;
- **attributes** of models (`Attribute`): a line's location, a renderer's visibility;
- **texts** and **attributes of HTML or SVG nodes** (`text`, `attrs`): read-outs and sentences.

No formula exists twice, dragging costs the server nothing, and the same code is alive in a
notebook and in an exported file. When the hand lets go, `Live.state` in Python changes once.

A variable of the table may depend on none, some or all of the walked dimensions, and on at most
one other dimension, whose entries are the rows of a column. Rows that recur are stored once, so a
table of thousands of stops takes kilobytes. Strings are texts: Python formats them, the browser
only looks them up.

A dimension may also **follow**: its stop is an entry of the table over other dimensions. A verdict
that depends on three sliders has four cases; texts over the cases are few, where texts over three
sliders' stops would be hundreds of thousands.

Figures and texts are found by tags (`tag`) and by HTML data attributes, in whichever document
they are shown: nothing has to be wired when a page is built.
"""

from __future__ import annotations

import html
import json
import struct
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import panel as pn
import param
import xarray as xr
from bokeh.models import CustomJS
from bokeh.models.annotations import BoxAnnotation
from panel.custom import JSComponent

from dashboards import notebook, theme  # noqa: F401 (the first registers itself)


@dataclass(frozen=True)
class Slider:
    """A slider that walks one dimension of the table.

    Parameters
    ----------
    dim : str
        The dimension; its coordinate values are the stops.
    label : str
        The name on the screen and for a screen reader.
    help : str
        One line below the slider: the symbol and the default.
    marks : tuple of (float, str)
        Coordinate values to mark on the track, and what they are.
    """

    dim: str
    label: str
    help: str = ""
    marks: tuple[tuple[float, str], ...] = ()


class Column(NamedTuple):
    """Copy a row of `variable` into column `column` of the source tagged `target`.

    Several variables are multiplied entry by entry: what is drawn where *both* of two conditions hold,
    each over its own sliders, need not be tabulated over all of them together.
    """

    target: str
    column: str
    variable: str | tuple[str, ...]


class Attribute(NamedTuple):
    """Set `attribute` of the model tagged `target` to the value of `variable`."""

    target: str
    attribute: str
    variable: str


@dataclass(frozen=True)
class Edge:
    """An attribute of a model that the hand can drag, snapping to the stops of `dim`.

    `by` names the variable whose value at each stop is where the edge then lies, if that is not
    the coordinate itself.
    """

    target: str
    attribute: str
    dim: str
    by: str = ""


@dataclass(frozen=True)
class Tap:
    """A tap on the figure tagged `target` moves the sliders to the nearest stops."""

    target: str
    x: str | None = None
    y: str | None = None


@dataclass(frozen=True)
class Select:
    """Selecting point i of the source tagged `target` moves `dim` to ``stops[i]``; none to 0.

    Sources of one figure, among which one tap selects and unselects, share a `figure`.
    """

    target: str
    dim: str
    stops: tuple[int, ...]
    figure: str = ""


Grip = Edge | Tap | Select


def words(write: Callable[..., str], *arrays: xr.DataArray) -> xr.DataArray:
    """Write one text for every entry of some numbers; each distinct case is written once.

    Parameters
    ----------
    write : callable
        Takes one number of each array, returns the text.
    *arrays : xarray.DataArray
        Broadcast against each other.

    Returns
    -------
    xarray.DataArray of str

    Examples
    --------
    >>> import xarray as xr
    >>> words(lambda k: f"{k:d} of 3", xr.DataArray([1, 1, 3], dims="stop")).values.tolist()
    ['1 of 3', '1 of 3', '3 of 3']
    """
    together = xr.broadcast(*arrays)
    flat = np.stack([a.values.ravel().astype(np.float64) for a in together], axis=1)
    cases, which = np.unique(flat, axis=0, return_inverse=True)
    kinds = [a.dtype.kind for a in arrays]
    texts = [
        write(*(int(v) if kind in "biu" else float(v) for kind, v in zip(kinds, case, strict=True)))
        for case in cases
    ]
    return together[0].copy(data=np.array(texts, dtype=object)[which.ravel()].reshape(together[0].shape))


class Row(NamedTuple):
    """Where the rows of one variable are: unique rows, and for each stop the number of its row."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    number: np.ndarray
    rows: np.ndarray


def pack(variable: xr.DataArray | xr.Variable, walked: Sequence[str], *, name: object = None) -> Row:
    """Store the distinct rows of `variable` once.

    Parameters
    ----------
    variable : xarray.DataArray
        Dimensions in `walked` are stops; at most one other dimension holds a row's entries.
    walked : sequence of str
    name : str, optional
        What an error calls it, if not by its own name.

    Returns
    -------
    Row
        ``rows[number[stop]]`` is the row at the flattened `stop`. Floats of a row that depends on a
        stop are kept in full precision.

    Raises
    ------
    ValueError
        If more than one dimension is not walked.

    Examples
    --------
    >>> import xarray as xr
    >>> a = xr.DataArray([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]], dims=("tau", "point"))
    >>> pack(a, ["tau"]).number.tolist()
    [0, 0, 1]
    """
    dims = tuple(str(d) for d in variable.dims if d in walked)
    rest = [d for d in variable.dims if d not in walked]
    if len(rest) > 1:
        raise ValueError(
            f"{name or getattr(variable, 'name', '')}: only one dimension can hold a row's entries, not {rest}"
        )
    values = variable.transpose(*dims, *rest).values
    shape = values.shape[: len(dims)]
    flat = np.ascontiguousarray(values.reshape(int(np.prod(shape, dtype=int)), -1))
    if flat.shape[1] == 0 or len(flat) == 1:  # nothing that recurs
        return Row(dims, shape, np.zeros(len(flat), dtype=np.uint8), flat[:1])
    # Rows are compared as bytes: exact, and nan equals nan.
    keys = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    # Numbered as they first occur: variables that change at the same stops then share one index.
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return Row(dims, shape, number[index.ravel()], flat[first[order]])


def encode(answers: xr.Dataset, walked: Sequence[str], follows: Sequence[str] = ()) -> bytes:
    """Write the answer table as one block of bytes: a JSON header, then binary arrays.

    Parameters
    ----------
    answers : xarray.Dataset
        The table; each variable as `pack` takes it. Strings become codes into one pool; float32,
        for what is only drawn, stays float32.
    walked : sequence of str
        Dimensions that sliders and grips move.
    follows : sequence of str, optional
        Dimensions whose stop other variables hold.

    Returns
    -------
    bytes
    """
    pool: dict[str, int] = {}
    blocks: dict[bytes, list] = {}  # arrays that are equal are stored once
    offset = 0

    def place(array: np.ndarray, kind: str) -> list:
        nonlocal offset
        block = np.ascontiguousarray(array, dtype=np.dtype(kind).newbyteorder("<")).tobytes()
        block += b"\0" * (-len(block) % 8)
        if block not in blocks:
            blocks[block] = [offset, kind, array.size]
            offset += len(block)
        return [blocks[block][0], kind, array.size]

    variables: dict[str, Any] = {}
    for name in answers.data_vars:
        variable = answers.variables[name]  # without its coordinates, which are no part of it here
        text = variable.dtype.kind in "OUS"
        if text:
            unique, codes = np.unique(variable.values.astype(str), return_inverse=True)
            numbers = np.array([pool.setdefault(str(t), len(pool)) for t in unique], dtype=np.uint32)
            variable = variable.copy(data=numbers[codes.ravel()].reshape(variable.shape))
        packed = pack(variable, [*walked, *follows], name=name)
        kind = {"b": "u1", "u": "u4", "i": "i4"}.get(packed.rows.dtype.kind, "f8")
        kind = "f4" if packed.rows.dtype == np.float32 else kind
        rows, bits = packed.rows, packed.rows.dtype.kind == "b" and packed.rows.shape[1] > 8
        if bits:  # true and false of many points, over many stops: eight to a byte
            rows = np.packbits(rows, axis=1, bitorder="little")
        if kind in ("u4", "i4") and (packed.rows != packed.rows.astype(kind)).any():
            kind = "f8"  # whole numbers that are too long
        few = len(packed.rows)
        variables[str(name)] = {
            "dims": packed.dims,
            "shape": packed.shape,
            "width": packed.rows.shape[1],
            "index": place(packed.number, "u1" if few <= 2**8 else "u2" if few <= 2**16 else "u4"),
            "rows": place(rows, kind),
            "text": text,
            "bool": packed.rows.dtype.kind == "b",
            "bits": bits,
        }
    values = {dim: answers[dim].values.tolist() for dim in walked}
    head = json.dumps(
        {"values": values, "variables": variables, "pool": list(pool)}, allow_nan=False
    ).encode()
    head += b" " * (-(len(head) + 4) % 8)  # arrays begin on a multiple of 8
    return struct.pack("<I", len(head)) + head + b"".join(blocks)


STRIP_CSS = theme.css(
    """
:host { display: block; width: 100% }
.strip { display: flex; flex-wrap: wrap; gap: 12px 36px; align-items: flex-start; font: calc(13px * var(--lv-large, 1))/1.45 $font; color: $muted }
.slider { flex: 1 1 220px; max-width: 320px }
label { display: block; font-size: calc(13px * var(--lv-large, 1)) }
output { color: $ink; font-size: calc(15px * var(--lv-large, 1)); font-weight: 650; margin-left: 4px; font-variant-numeric: tabular-nums; display: inline-block; min-width: 4em }
p { margin: 0; font-size: calc(12.5px * var(--lv-large, 1)) }
input { display: block; -webkit-appearance: none; appearance: none; width: 100%; height: 28px; margin: 0; background: none; cursor: pointer; --done: 50% }
input::-webkit-slider-runnable-track { height: 4px; border-radius: 2px; background: linear-gradient(to right, $accent var(--done), $hair var(--done)) }
input::-moz-range-track { height: 4px; border-radius: 2px; background: linear-gradient(to right, $accent var(--done), $hair var(--done)) }
input::-webkit-slider-thumb { -webkit-appearance: none; width: 18px; height: 18px; margin-top: -7px; border-radius: 50%; background: $bg; border: 2px solid $accent; box-sizing: border-box }
input::-moz-range-thumb { width: 14px; height: 14px; border-radius: 50%; background: $bg; border: 2px solid $accent }
.marks { position: relative; height: 0; margin: 0 9px; display: block }
.marks i { position: absolute; top: -20px; width: 2px; height: 12px; margin-left: -1px; background: $ink; opacity: .55; pointer-events: none }
input:focus-visible { outline: 2px solid $accent; outline-offset: 2px; border-radius: 6px }
@media (max-width: $narrow) { .strip { flex-direction: column; gap: 10px } .slider { flex: none; width: 100%; max-width: none } }
"""
)


class Live(JSComponent):
    """Sliders whose every answer is already in the browser.

    Parameters
    ----------
    answers : xarray.Dataset
        Every answer: variables over the walked dimensions and at most one other each.
    sliders : sequence of Slider
        In the order in which they stand. Dimensions that only grips, buttons or menus move
        are named in `labels`.
    columns, attributes, grips : sequences
        What follows the hand, and what else can be taken in hand.
    start : mapping
        Dimension to the coordinate value it starts at and returns to on Reset.
    labels : mapping, optional
        Dimension to the texts of its stops; by default names, and numbers with three decimals.
    follows : mapping, optional
        Dimension that nobody moves to the variable that holds the number of its stop.
    leader : Live, optional
        Another table of the page: where the hand moves one of its dimensions that is also here, by the
        same stops, this one moves along in the browser. In Python, whoever made both moves both.

    Attributes
    ----------
    state : dict
        Dimension to stop number; changes once per gesture, and may be set from Python (`go`).
    """

    table = param.Bytes(default=b"", doc="The answers, as `encode` writes them.")
    wiring = param.String(default="{}", doc="JSON: sliders, targets and grips.")
    state = param.Dict(default={}, doc="Dimension to stop, as last agreed with the browser.")
    seen = param.Boolean(default=False, doc="Whether a browser has painted the page.")
    resets = param.Integer(default=0, doc="How often Reset was pressed.")

    _esm = Path(__file__).with_name("live.js")
    _stylesheets: ClassVar[list[str]] = [STRIP_CSS]

    def __init__(
        self,
        answers: xr.Dataset,
        *,
        sliders: Sequence[Slider],
        columns: Sequence[Column] = (),
        attributes: Sequence[Attribute] = (),
        grips: Sequence[Grip] = (),
        start: Mapping[str, Any],
        labels: Mapping[str, Sequence[str]] | None = None,
        follows: Mapping[str, str] | None = None,
        leader: Live | None = None,
        **params: Any,
    ):
        self.key = "live" + uuid.uuid4().hex[:8]
        self.sliders = tuple(sliders)
        self.columns = tuple(columns)
        self.attributes = tuple(attributes)
        self.grips = tuple(grips)
        self.walked = tuple(start)
        self.follows = dict(follows or {})
        self.leader = leader.key if leader else ""
        self.answers = answers
        self.starts = {dim: stop_of(answers, dim, value) for dim, value in start.items()}
        self.labels = {
            dim: list((labels or {}).get(dim, ()))
            or [str(v) if isinstance(v, str) else f"{v:.3f}" for v in answers[dim].values]
            for dim in self.walked
        }
        table = encode_once(answers, self.walked, tuple(self.follows))
        super().__init__(table=table, wiring=self._wiring(), state=dict(self.starts), **params)

    def _wiring(self) -> str:
        kind = {Edge: "edge", Tap: "tap", Select: "select"}
        wiring = {
            "id": self.key,
            "sliders": [
                {**vars(s), "marks": [[stop_of(self.answers, s.dim, v), label] for v, label in s.marks]}
                for s in self.sliders
            ],
            "columns": self.columns,
            "attributes": self.attributes,
            "grips": [{"kind": kind[type(g)], **vars(g)} for g in self.grips],
            "starts": self.starts,
            "labels": self.labels,
            "follows": self.follows,
            "leader": self.leader,
        }
        return json.dumps(wiring)

    def update_answers(
        self,
        answers: xr.Dataset,
        *,
        start: Mapping[str, Any] | None = None,
        labels: Mapping[str, Sequence[str]] | None = None,
        marks: Mapping[str, Sequence[tuple[float, str]]] | None = None,
    ) -> None:
        """Replace the table (another battery, another filter); the stops stay where they are.

        Parameters
        ----------
        answers : xarray.Dataset
            The same variables over the same walked dimensions. Where a dimension has other stops
            than before, its labels belong to them; `go` says where it then stands.
        start, labels, marks : mapping, optional
            For dimensions whose stops are others: where they start, what the stops are called, and
            what is marked on the track.
        """
        self.answers = answers
        self.starts |= {dim: stop_of(answers, dim, value) for dim, value in (start or {}).items()}
        self.labels |= {dim: list(texts) for dim, texts in (labels or {}).items()}
        self.sliders = tuple(replace(s, marks=tuple((marks or {}).get(s.dim, s.marks))) for s in self.sliders)
        self.wiring = self._wiring()  # first: the browser reads both when the table comes
        self.table = encode_once(answers, self.walked, tuple(self.follows))

    def go(self, **values: Any) -> None:
        """Move to the stops nearest to these coordinate values, here and in the browser."""
        self.state = {**self.state, **{d: stop_of(self.answers, d, v) for d, v in values.items()}}

    def at(self, **values: Any) -> xr.Dataset:
        """Return the answers at the present stop, or with some dimensions moved to other values."""
        stops = {**self.state, **{d: stop_of(self.answers, d, v) for d, v in values.items()}}
        return self.answers.isel(stops | {dim: self._stop(dim, stops) for dim in self.follows})

    def _stop(self, dim: str, state: Mapping[str, int]) -> int:
        """Return the stop of a dimension: where it stands, or what it follows."""
        return int(self._entry(self.follows[dim], state)) if dim in self.follows else state[dim]

    def _entry(self, variable: str, state: Mapping[str, int]) -> Any:
        values = self.answers[variable].variable
        return values[tuple(self._stop(str(d), state) for d in values.dims)].values.item()

    def _now(self, variable: str) -> Any:
        """Return one scalar of the table at the present stop."""
        return self._entry(variable, self.state)

    def value(self, dim: str) -> Any:
        """Return the coordinate value of the stop at which `dim` stands."""
        return self.answers[dim].values[self.state[dim]].item()

    def apply(self, figure: Any) -> None:
        """Set a figure's sources and models to the present stop: what ``live.js`` does in the browser."""
        now = self.at()
        tagged: dict[str, list[Any]] = {}
        for model in figure.references():
            for tag in model.tags:
                if isinstance(tag, str) and tag.startswith(f"{self.key}/"):
                    tagged.setdefault(tag[len(self.key) + 1 :], []).append(model)
        columns: dict[Any, dict[str, Any]] = {}
        for target, column, variable in self.columns:
            for source in tagged.get(target, ()):
                row, old = _product(now, variable), source.data[column]
                image = len(old) == 1 and np.ndim(old[0]) == 2
                new = [row.reshape(np.shape(old[0]))] if image else _like(row, old)
                columns.setdefault(source, {})[column] = new
        for source, new in columns.items():  # together: columns of unequal length are never there
            source.data = {**source.data, **new}
        for target, attribute, variable in self.attributes:
            for model in tagged.get(target, ()):
                setattr(model, attribute, self._now(variable))

    def when_seen(self, build: Callable[[], None]) -> None:
        """Build what is not seen first, in one message, once a browser has painted the rest.

        Outside a server (a notebook, a test) there is nobody to wait for: it is built at once.
        """

        def once(*_: Any) -> None:
            with pn.io.hold():
                build()

        if pn.state.curdoc and pn.state.curdoc.session_context:
            self.param.watch(once, "seen")
        else:
            once()

    # ---- what a page writes into its texts and figures so that they are found

    def text(self, variable: str) -> str:
        """Return an HTML node that shows the text `variable` and follows the hand."""
        now = html.escape(str(self._now(variable)))
        return f'<span data-live-text="{self.key} {variable}">{now}</span>'

    def attrs(self, **variables: str) -> str:
        """Return HTML attributes that follow the hand: ``attribute=variable``."""
        pairs = " ".join(f"{a.rstrip('_')}={v}" for a, v in variables.items())
        here = " ".join(f'{a.rstrip("_")}="{html.escape(str(self._now(v)))}"' for a, v in variables.items())
        return f'data-live-attrs="{self.key} {pairs}" {here}'

    def button(self, dim: str, stop: int, label: str) -> str:
        """Return an HTML button that moves `dim` to `stop` and shows whether it is there."""
        pressed = str(self.state[dim] == stop).lower()
        return (
            f'<button type="button" data-live-go="{self.key} {dim} {stop}" aria-pressed="{pressed}">'
            f"{label}</button>"
        )

    def reset(self, label: str = "Reset") -> str:
        """Return an HTML button that moves every dimension back to its start."""
        return f'<button type="button" class="framed" data-live-reset="{self.key}">{label}</button>'

    def switch(self, dim: str, label: str) -> str:
        """Return an HTML button that flips `dim` between its stops 0 and 1."""
        pressed = str(self.state[dim] == 1).lower()
        return f'<button type="button" data-live-flip="{self.key} {dim}" aria-pressed="{pressed}">{label}</button>'

    def menu(self, dim: str, label: str) -> str:
        """Return an HTML menu of the stops of `dim`."""
        options = "".join(
            f'<option value="{i}"{" selected" if i == self.state[dim] else ""}>{html.escape(text)}</option>'
            for i, text in enumerate(self.labels[dim])
        )
        return f'<select data-live-choose="{self.key} {dim}" aria-label="{html.escape(label)}">{options}</select>'

    def tag(self, name: str, *handles: str) -> Callable:
        """Return a HoloViews hook that makes a plot's models findable as ``name:handle``.

        Parameters
        ----------
        name : str
            The name that `Column.target` and the others begin with.
        *handles : str
            HoloViews plot handles (``source``, ``glyph``, ``glyph_renderer``, ...), or ``figure``.
        """

        key = self.key  # HoloViews keeps hooks: they must not keep the page

        def hook(plot: Any, element: Any) -> None:
            for handle in handles:
                model = plot.state if handle == "figure" else plot.handles[handle]
                _add_tag(model, f"{key}/{name}:{handle}")

        return hook

    def taps(self, name: str) -> Callable:
        """Return a hook: taps on this figure reach the `Tap` grips with target `name`."""
        code = (
            "document.dispatchEvent(new CustomEvent('leakviz:tap', {detail: "
            "{tag, x: cb_obj.x, y: cb_obj.y, document: cb_obj.origin.document}}))"
        )

        tag = f"{self.key}/{name}"

        def hook(plot: Any, element: Any) -> None:
            if _add_tag(plot.state, tag):
                plot.state.js_on_event("tap", CustomJS(args={"tag": tag}, code=code))

        return hook

    def selects(self, name: str) -> Callable:
        """Return a hook: a selection in this plot's source reaches the `Select` grips."""
        code = (
            "document.dispatchEvent(new CustomEvent('leakviz:select', "
            "{detail: {tag, document: cb_obj.document}}))"
        )

        tag = f"{self.key}/{name}"

        def hook(plot: Any, element: Any) -> None:
            source = plot.handles["source"]
            if _add_tag(source, tag):
                source.selected.js_on_change("indices", CustomJS(args={"tag": tag}, code=code))

        return hook

    def edges(self, name: str, *, beyond: float = 9.0, **attributes: str) -> Callable:
        """Return a hook that lays a draggable, invisible box over a figure.

        Parameters
        ----------
        name : str
            The tag of the box, for `Edge` grips and `Attribute` targets.
        beyond : float
            A value beyond every frame, where the other edges lie.
        **attributes : str
            Which of ``left``, ``right``, ``top``, ``bottom`` is moved by which variable.
        """

        tag = f"{self.key}/{name}"
        where: dict[str, Any] = {side: float(self._now(variable)) for side, variable in attributes.items()}
        far: dict[str, Any] = {"left": -beyond, "right": beyond, "top": beyond, "bottom": -beyond}

        def hook(plot: Any, element: Any) -> None:
            if any(tag in m.tags for m in plot.state.select({"type": BoxAnnotation})):
                return
            box = BoxAnnotation(
                **{**far, **where},
                editable=True,
                resizable="all",
                movable="none",
                fill_alpha=0,
                hover_fill_alpha=0,
                line_alpha=0,
                level="overlay",  # moved alone: the canvas with the points is not painted again
                line_width=14,  # how near to the edge a finger takes it
                syncable=False,  # the server need not hear of a drag
                tags=[tag],
            )
            plot.state.add_layout(box)

        return hook


_ENCODED: dict[tuple[int, tuple[str, ...], tuple[str, ...]], bytes] = {}


def encode_once(answers: xr.Dataset, walked: tuple[str, ...], follows: tuple[str, ...] = ()) -> bytes:
    """Encode a table once, as long as it lives: sessions that show the same answers share it."""
    key = (id(answers), walked, follows)
    if key not in _ENCODED:
        _ENCODED[key] = encode(answers, walked, follows)
        weakref.finalize(answers, _ENCODED.pop, key, None)
    return _ENCODED[key]


def _product(now: xr.Dataset, variable: str | tuple[str, ...]) -> np.ndarray:
    """Return a column's row at the present stop."""
    if isinstance(variable, str):
        return now[variable].values
    return np.prod([now[v].values for v in variable], axis=0)


def _like(row: np.ndarray, old: Any) -> Any:
    """Keep a column's kind: the browser patches numbers into the array that is there."""
    return list(row) if row.dtype.kind in "OUS" else row.astype(np.asarray(old).dtype)


def _add_tag(model: Any, tag: str) -> bool:
    if tag in model.tags:
        return False
    model.tags = [*model.tags, tag]
    return True


def stop_of(answers: xr.Dataset, dim: str, value: Any) -> int:
    """Return the number of the stop of `dim` nearest to `value` (equal, for names).

    Raises
    ------
    ValueError
        If a name is not among the stops.
    """
    stops = answers[dim].values
    if stops.dtype.kind in "OUS":
        found = np.flatnonzero(stops == value)
        if not len(found):
            raise ValueError(f"{dim}: no stop is called {value!r}")
        return int(found[0])
    return int(np.argmin(np.abs(stops - value)))
