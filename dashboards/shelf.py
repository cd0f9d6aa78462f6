"""The prediction vectors that pages can show: shipped, simulated, and a session's own.

Shipped and simulated vectors are loaded and sorted once per process and shared. A user's vector
lives in the session that brought it, in its `Shelf`, and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import param

from dashboards.batteries import Battery
from dashboards.state import OWN, PageState
from leakviz.arms import simulate_arms
from leakviz.moments import FitStatistics
from leakviz.paths import data_dir
from leakviz.purity import RankedPredictions, rank_predictions

# What the records are; the arm says what the model was allowed to see. See data/predictions/README.md.
OUTCOME = {
    "actg175": "event in the ACTG 175 trial",
    "breast_cancer": "malignant cell sample",
    "covid_testing": "positive COVID-19 test",
    "flchain": "death in the serum free light chain study",
    "flights_late60": "arrival over 60 minutes late",
    "monica": "death, WHO MONICA",
    "monica_cc": "death, WHO MONICA, complete cases",
    "nassCDS": "death in a car crash",
    "nhefs": "death, NHEFS",
}
# Who published them, and under which licence: see data/predictions/README.md.
PUBLISHED = {
    "actg175": "lifelines (MIT)",
    "breast_cancer": "scikit-learn (UCI, CC BY 4.0)",
    "covid_testing": "R package medicaldata (MIT)",
    "flchain": "R package survival (LGPL 2 or later)",
    "flights_late60": "R package nycflights13 (CC0)",
    "monica": "R package DAAG (GPL 3)",
    "monica_cc": "R package DAAG (GPL 3)",
    "nassCDS": "US NHTSA (public domain)",
    "nhefs": "causaldata (MIT)",
}
MODEL = {"lr": "logistic regression", "hgb": "gradient boosting"}
LEAK = {
    "honest": "honest",
    "chapter": "leak: chapter of the cause of death",
    "futime": "leak: follow-up time",
    "ct_result": "leak: cycle threshold of the assay",
    "dep_delay": "leak: departure delay",
    "dep_noise60": "leak: departure delay with 60 minutes of noise",
    "injSeverity": "leak: injury severity",
    "days": "leak: time to the event",
    "yrdth": "leak: year of death",
    **{f"dead{d}d": f"leak: dead within {d} days" for d in (30, 90, 180, 365, 730, 1460)},
}
ARM = {
    "clean": "clean",
    "miscalibrated": "miscalibrated leak",
    "broad": "broad calibrated leak",
    "deterministic": "deterministic flag",
    "laundered": "miscalibrated leak, laundered by Platt",
}
SIMULATED = "arm:"


@dataclass(frozen=True, eq=False)
class Vector:
    """Predictions and outcomes with a name and a provenance.

    Attributes
    ----------
    name : str
        In links: ``flchain__lr__honest``, ``arm:clean``, ``own:<hash>``.
    title : str
        On the screen, plain text (a user's file name may be in it: escape it).
    source : str
        One line of provenance, plain text.
    p, y : numpy.ndarray, shape (n,)
    ranked : RankedPredictions
        Sorted once.
    folds : numpy.ndarray or None
    honest : str
        Name of its honest twin on the same rows, or "".
    options : tuple of (str, str)
        How a user's file was read, as arguments of `leakviz.read_predictions`; empty for the others.
    sha256 : str
        Of a user's file, its bytes; empty for the others.
    file : str
        What a user's file is called; empty for the others.
    """

    name: str
    title: str
    source: str
    p: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    ranked: RankedPredictions = field(repr=False)
    folds: np.ndarray | None = field(default=None, repr=False)
    honest: str = ""
    options: tuple[tuple[str, str], ...] = ()
    sha256: str = ""
    file: str = ""


@dataclass(frozen=True, eq=False)
class Audit:
    """A user's embeddings after their audit: what the whitening page needs of them.

    Attributes
    ----------
    name : str
        In links: ``own:<hash>``.
    title : str
        On the screen, plain text (a user's file name may be in it: escape it).
    fit : FitStatistics
        Of the fit set as it was given.
    id_test, ood_test : numpy.ndarray, shapes (n, D) and (m, D)
    ood_name : str
        What the OOD rows are called, plain text; "" if nobody said.
    without : FitStatistics or None
        Of the fit set without the designated class, where it has that class.
    file : dict or str
        The file that it was read from, as a report says it; or a sentence on why no command line can read that.
    """

    name: str
    title: str
    fit: FitStatistics = field(repr=False)
    id_test: np.ndarray = field(repr=False)
    ood_test: np.ndarray = field(repr=False)
    ood_name: str = ""
    without: FitStatistics | None = field(default=None, repr=False)
    file: Mapping[str, Any] | str = field(default="", repr=False)


@dataclass(frozen=True)
class ArmSettings:
    """The parameters of the simulated arms (arXiv 2606.11267, section 6)."""

    n: int = 200_000
    prevalence: float = 0.02
    c_statistic: float = 0.84
    beta: float = 2.5
    flag_fraction: float = 0.003
    seed: int = 0


@lru_cache(maxsize=1)
def shipped_names() -> tuple[str, ...]:
    """Return the names of the shipped vectors, honest ones first within their data."""
    names = [f.stem for f in (data_dir() / "predictions").glob("*.parquet")]
    order = list(LEAK)
    return tuple(sorted(names, key=lambda n: (n.split("__")[0], order.index(n.split("__")[2]), n)))


@lru_cache(maxsize=64)
def shipped(name: str) -> Vector:
    """Load and sort a shipped vector, once per process."""
    data, model, arm = name.split("__")
    frame = pd.read_parquet(data_dir() / "predictions" / f"{name}.parquet")
    p, y = frame["p"].to_numpy(), frame["y"].to_numpy()
    twin = f"{data}__{model}__honest"
    return Vector(
        name=name,
        title=f"{data}, {MODEL[model]}, {LEAK[arm]}",
        source=f"{OUTCOME[data]}; out-of-fold predictions, five folds; records from {PUBLISHED[data]}, "
        "see data/predictions/README.md",
        p=p,
        y=y,
        ranked=rank_predictions(p, y),
        honest=twin if arm != "honest" and twin in shipped_names() else "",
    )


@lru_cache(maxsize=4)
def simulated(settings: ArmSettings) -> dict[str, Vector]:
    """Simulate and sort the five arms, once per process and settings.

    Raises
    ------
    leakviz.InputError
        If the settings are out of range.
    """
    arms = simulate_arms(**vars(settings))
    y = arms["y"].values
    vectors = {}
    for arm, title in ARM.items():
        p = arms["p"].sel(arm=arm).values
        vectors[SIMULATED + arm] = Vector(
            name=SIMULATED + arm,
            title=f"simulated, {title}",
            source="simulated as in arXiv 2606.11267, section 6: "
            + ", ".join(f"{k} {v:g}" for k, v in vars(settings).items()),
            p=p,
            y=y,
            ranked=rank_predictions(p, y),
            honest="" if arm == "clean" else SIMULATED + "clean",
        )
    return vectors


class VectorState(PageState):
    """The state of a page that shows prediction vectors: links name them, people read their titles.

    Attributes
    ----------
    shelf : Shelf
        The session's. A page sets it before it reads a link.
    """

    brought = "predictions"
    shelf: Shelf

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen."""
        known = name in self.chooses and value in self.shelf.names()
        return self.shelf.title(value) if known else super().title(name, value)


def new_names(events: Iterable[Any]) -> set[str]:
    """Return the names of what has come onto a shelf."""
    return {one.name for event in events for one in event.new if one not in event.old}


class Shelf(param.Parameterized):
    """What one session can choose from.

    Attributes
    ----------
    own : list of Vector
        The user's, the newest last.
    arms : ArmSettings
        Of the simulated arms.
    batteries : list of Battery
        The user's, the newest last.
    audits : list of Audit
        The user's embeddings, the newest last.
    file : str
        Path of a file of predictions that whoever starts the server names, or "".
    """

    own = param.List(default=[], item_type=Vector)
    batteries = param.List(default=[], item_type=Battery)
    audits = param.List(default=[], item_type=Audit)
    arms = param.ClassSelector(class_=ArmSettings, default=ArmSettings())
    file = param.String(default="")

    def __init__(self, **params: Any):
        super().__init__(**params)
        self._links: WeakKeyDictionary[PageState, tuple[str, str]] = WeakKeyDictionary()
        # After the pages, which offer first what has come.
        self.param.watch(self._came, ["own", "batteries", "audits"], precedence=1)

    def copy(self) -> Shelf:
        """Return a shelf with the same on it: nobody who looks at this one hears of a page that is made of the copy."""
        return Shelf(
            own=list(self.own), batteries=list(self.batteries), audits=list(self.audits), arms=self.arms
        )

    def hear(self, state: PageState, page: str, title: str) -> None:
        """Let a page's state know what comes onto the shelf: a link that it was read from may wait for it.

        Parameters
        ----------
        state : PageState
        page, title : str
            The page's name in links, and on the screen.
        """
        self._links[state] = (page, title)

    def _came(self, *events: Any) -> None:
        new = new_names(events)
        for state in list(self._links):
            state.arrive(new)

    def awaited(self, brought: str) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return which links wait for a file: name and title of their page, and the names of the files.

        Parameters
        ----------
        brought : {"predictions", "embeddings"}
            Where the file is brought.

        Examples
        --------
        >>> from dashboards.purity import PurityPage
        >>> shelf = Shelf()
        >>> page = PurityPage("?first=own:0123456789ab&delta=0.1", shelf)
        >>> shelf.awaited("predictions")
        [('purity', 'Purity', ('own:0123456789ab',))]
        """
        return [
            (*page, state.missing_of(brought))
            for state, page in self._links.items()
            if state.missing_of(brought)
        ]

    def pages_of(self, name: str) -> list[tuple[str, str]]:
        """Return name and title of the pages whose link has waited for this file."""
        return [page for state, page in self._links.items() if name in state.came]

    def names(self) -> list[str]:
        """Return what can be chosen: the user's vectors, then the shipped, then the simulated."""
        return [
            *(v.name for v in reversed(self.own)),
            *shipped_names(),
            *(SIMULATED + arm for arm in ARM),
        ]

    def title(self, name: str) -> str:
        """Return a vector's title without loading it."""
        if name.startswith(SIMULATED):
            return f"simulated, {ARM[name.removeprefix(SIMULATED)]}"
        if name.startswith(OWN):
            return self.get(name).title
        data, model, arm = name.split("__")
        return f"{data}, {MODEL[model]}, {LEAK[arm]}"

    def get(self, name: str) -> Vector:
        """Return a vector.

        Raises
        ------
        KeyError
            If there is none of this name.
        """
        if name.startswith(SIMULATED):
            return simulated(self.arms)[name]
        if name.startswith(OWN):
            return {v.name: v for v in self.own}[name]
        if name not in shipped_names():
            raise KeyError(name)
        return shipped(name)

    def add(self, vector: Vector, *, instead_of: str = "") -> None:
        """Put a user's vector on the shelf; the same content again, or `instead_of`, gives way to it."""
        self.own = [*(v for v in self.own if v.name not in (vector.name, instead_of)), vector]

    def remove(self, name: str) -> None:
        """Take a user's vector off the shelf; nothing happens if it is not there."""
        self.own = [v for v in self.own if v.name != name]
