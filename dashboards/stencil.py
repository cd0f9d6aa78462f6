"""Figures that HoloViews draws once per process and that every session gets a copy of.

Drawing a HoloViews overlay costs as much as the rest of a session together; a copy of its Bokeh
models costs a third of that, and is as alive: `Live` finds its sources by their tags.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import holoviews as hv
import panel as pn
import xarray as xr
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.model import Model
from bokeh.util.serialization import make_id

from dashboards.live import Live


class Drawn(NamedTuple):
    """For which sliders, answers and stop a figure was drawn."""

    key: str
    answers: xr.Dataset
    state: dict[str, int]


_DRAWN: dict[tuple[str, ...], tuple[str, Drawn]] = {}


def figure_pane(
    name: tuple[str, ...], live: Live, draw: Callable[[], hv.Overlay], **params: Any
) -> pn.pane.Bokeh:
    """Return a pane with a session's own copy of a figure, at the stop where its sliders stand.

    Parameters
    ----------
    name : tuple of str
        What the figure is called in this process: page, figure, data.
    live : Live
        The sliders that move it.
    draw : callable
        Draws it, with hooks of `live`; called for the first session only.
    **params
        Parameters of `panel.pane.Bokeh`.
    """
    if name not in _DRAWN:
        figure = hv.renderer("bokeh").get_plot(draw()).state
        live.apply(figure)  # HoloViews drops what is nan throughout, and others need those rows
        _DRAWN[name] = (_written(figure), Drawn(live.key, live.answers, dict(live.state)))
    text, drawn = _DRAWN[name]
    figure = _read(text, {drawn.key: live.key})
    if drawn.answers is not live.answers or drawn.state != live.state:
        live.apply(figure)
    return pn.pane.Bokeh(figure, **params)


def _written(figure: Model) -> str:
    document = Document()
    document.add_root(figure)
    return serialize_json(document.to_json(deferred=False))


def _read(text: str, keys: dict[str, str]) -> Any:
    """Make models from their written form, with ids and keys of their own."""
    ids: dict[str, str] = {}

    def renew(value: Any) -> Any:
        if isinstance(value, dict):
            new = {k: renew(v) for k, v in value.items()}
            if isinstance(value.get("id"), str):
                new["id"] = ids.setdefault(value["id"], str(make_id()))
            return new
        if isinstance(value, list):
            return [renew(v) for v in value]
        if isinstance(value, str):
            key, slash, rest = value.partition("/")
            return keys[key] + slash + rest if slash and key in keys else value
        return value

    document = Document.from_json(renew(json.loads(text)))
    (figure,) = document.roots
    document.remove_root(figure)
    return figure
