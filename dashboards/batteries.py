"""The batteries that pages can show: published, computed here, and a session's own.

The first two are loaded once per process, when somebody first asks for them, and shared. A user's
battery lives in the session that brought it, on its `Shelf`, and goes with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import xarray as xr

import leakviz
from leakviz.battery.cached import Backbone, load_backbone

OWN = "own:"
PUBLISHED, COMPUTED = "published", "computed"
TITLES = {PUBLISHED: "published", COMPUTED: "computed here"}


@dataclass(frozen=True, eq=False)
class Battery:
    """A battery with a name and a provenance.

    Attributes
    ----------
    name : str
        In links: ``published``, ``computed``, ``own:<hash>``.
    title : str
        On the screen, plain text (a user's file name may be in it: escape it).
    source : str
        One line of provenance, plain text.
    dataset : xarray.Dataset
        As `leakviz.load_battery` returns it.
    backbones : tuple of str
        The backbones whose features are there too (`backbone` loads them); none for most.
    file : dict or str
        The user's file that it was read from, as a report says it; or a sentence on why no command line can read that.
    """

    name: str
    title: str
    source: str
    dataset: xr.Dataset = field(repr=False)
    backbones: tuple[str, ...] = ()
    file: Mapping[str, Any] | str = field(default="", repr=False)


@lru_cache(maxsize=1)
def published() -> Battery:
    """Return the published battery, loaded once per process.

    Examples
    --------
    >>> published().dataset.sizes["setting"]
    52
    """
    dataset = leakviz.load_battery(PUBLISHED)
    return Battery(PUBLISHED, TITLES[PUBLISHED], "arXiv 2607.19393, Table 12", dataset)


@lru_cache(maxsize=1)
def computed() -> Battery:
    """Return the battery that leakviz computed, loaded once per process."""
    dataset = leakviz.load_battery(COMPUTED)
    backbones = tuple(json.loads(dataset.attrs.get("backbones", "{}")))
    return Battery(
        COMPUTED, TITLES[COMPUTED], "computed by leakviz, see data/battery/README.md", dataset, backbones
    )


def backbone(name: str) -> Backbone:
    """Return the features and statistics of one backbone of the computed battery, loaded once per process.

    Parameters
    ----------
    name : str
        One of ``computed().backbones``.

    Returns
    -------
    Backbone
        Shared: do not change it.
    """
    return load_backbone(computed().dataset, name)


def titles(own: Sequence[Battery] = ()) -> dict[str, str]:
    """Return the names and titles of what can be chosen, without loading it.

    Parameters
    ----------
    own : sequence of Battery
        The session's, the newest last.

    Examples
    --------
    >>> titles()
    {'published': 'published', 'computed': 'computed here'}
    """
    return {**TITLES, **{battery.name: battery.title for battery in reversed(own)}}


def get(name: str, own: Sequence[Battery] = ()) -> Battery:
    """Return a battery.

    Parameters
    ----------
    name : str
    own : sequence of Battery
        The session's.

    Raises
    ------
    KeyError
        If there is none of this name.

    Examples
    --------
    >>> get("published").title
    'published'
    """
    if name == PUBLISHED:
        return published()
    if name == COMPUTED:
        return computed()
    return {battery.name: battery for battery in own}[name]
