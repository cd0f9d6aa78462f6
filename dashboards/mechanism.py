"""The page Learn: why a leak inverts a score, in eight lessons and a world to play with.

Source: arXiv 2607.19393 and 2606.11267. The core simulates and answers (`leakviz.world`, `leakviz.lessons`),
`dashboards.mechanism_answers` puts the answers into a table, the figures draw, this page arranges.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import param
import xarray as xr
from panel.custom import JSComponent

from dashboards import mechanism_answers as answers
from dashboards import theme
from dashboards.cards import card, downloads
from dashboards.figures import mechanism as figures
from dashboards.lessons import END, ENDING, FREE, WORLD, Player, valid_guesses
from dashboards.live import STRIP_CSS, Attribute, Column, Live, Slider
from dashboards.marks import LEGEND_CSS, regime_mark
from dashboards.markup import link_note, markup
from dashboards.mechanism_answers import DETECTORS, GAUSSIAN, RULE, page_answers
from dashboards.shelf import Shelf
from dashboards.state import PageState
from dashboards.stencil import figure_pane
from leakviz.lessons import Lesson, lessons
from leakviz.world import FRAME, WORLD_ALPHAS, World, score_world, simulate_leak

TITLE = "Learn"
LAST = 8
ROWS = (30, 50, 100, 200, 300, 500, 1000)  # at least 50 in all: the audit looks at the 50th neighbour
STOPS = {
    "classes": np.arange(2, 6),
    "distance": np.arange(0, 241) / 20,
    "angle": np.arange(0, 361),
    "anisotropy": np.arange(10, 101) / 10,
    "orientation": np.arange(0, 181),
    "rows": np.array(ROWS),
    "alpha": np.asarray(WORLD_ALPHAS),
    "seed": np.arange(0, 51),
}
# Where the world starts that one plays with.
START: dict[str, Any] = {
    "classes": 3,
    "in_fit": False,
    "distance": 6.25,
    "angle": 90,
    "anisotropy": 1.5,
    "orientation": 0,
    "rows": 300,
    "seed": 0,
    "detector": "one-class",
    "alpha": 0.0,
    "centres": None,
}
WHOLE = ("classes", "angle", "orientation", "rows", "seed")
# Which controls a lesson leaves to the hand once it is answered, and which figures it needs.
KNOBS: dict[int, tuple[str, ...]] = {
    1: ("distance", "angle"),
    2: ("distance",),
    3: ("in_fit",),
    4: ("in_fit", "distance"),
    5: ("in_fit",),
    6: ("angle",),
    7: ("alpha",),
}
VIEWS: dict[int, tuple[str, ...]] = {
    1: (),
    2: ("histograms", "roc"),
    3: ("histograms", "roc"),
    4: ("histograms", "box"),
    5: ("histograms", "box"),
    6: ("histograms", "roc"),
    7: ("histograms", "roc"),
}
ALL_KNOBS = (*STOPS, "in_fit", "detector", "centres", "reset")
PAPER = '<a href="https://arxiv.org/abs/2607.19393">arXiv 2607.19393</a>'


def _slider(name: str, label: str, help: str, *, unit: str = "") -> dict[str, Any]:
    stops = STOPS[name]
    if name == "rows":
        return {"name": name, "label": label, "help": help, "unit": unit, "stops": list(ROWS)}
    step = float(stops[1] - stops[0])
    return {
        "name": name,
        "label": label,
        "help": help,
        "unit": unit,
        "min": float(stops[0]),
        "max": float(stops[-1]),
        "step": step,
    }


CONTROLS: tuple[dict[str, Any], ...] = (
    {
        "name": "detector",
        "label": "detector",
        "help": "default one-class Gaussian",
        "options": [[name, text.removesuffix(" Mahalanobis")] for name, text in DETECTORS.items()],
    },
    {
        "name": "classes",
        "label": "known classes",
        "help": "C, 2 to 5; default 3",
        "options": [[str(c), str(c)] for c in STOPS["classes"].tolist()],
        "whole": True,
    },
    _slider("distance", "distance", "in standard deviations; default 6.25"),
    _slider("angle", "angle", "round the known classes; default 90°", unit="°"),
    _slider("anisotropy", "anisotropy", "wide over narrow axis; default 1.5"),
    _slider("orientation", "orientation", "of the wide axis; default 0°", unit="°"),
    _slider("rows", "rows", "n, of each class in the fit set; default 300"),
    _slider("seed", "seed", "of the random draw; default 0"),
)


def read_centres(text: str) -> list[list[float]] | None:
    """Read centres as a link writes them; None where they are none, or not 2 to 5 points in the plane.

    Examples
    --------
    >>> read_centres("1,2;-3.5,0"), read_centres("1,2;far"), read_centres("")
    ([[1.0, 2.0], [-3.5, 0.0]], None, None)
    """
    try:
        points = [[float(v) for v in part.split(",")] for part in text.split(";")]
    except ValueError:
        return None
    inside = all(
        len(p) == 2 and all(low <= v <= high for v, (low, high) in zip(p, FRAME, strict=True)) for p in points
    )
    return points if inside and len(points) in STOPS["classes"] else None


def write_centres(centres: Any) -> str:
    """Write centres for a link.

    Examples
    --------
    >>> write_centres([[1.0, 2.0], [-3.5, 0.04]]), write_centres(None)
    ('1,2;-3.5,0', '')
    """
    if centres is None:
        return ""
    return ";".join(",".join(f"{round(float(v), 1) + 0.0:g}" for v in point) for point in centres)


class MechanismState(PageState):
    """What a link to this page carries: the step; where it is the world, what the world is like."""

    step: Any = param.Selector(default="1", objects=[*map(str, range(1, LAST + 1)), END, WORLD], label="step")
    present: Any = param.Selector(default="0", objects=["0", "1"], label="present")
    detector: Any = param.Selector(default=START["detector"], objects=list(DETECTORS), label="detector")
    in_fit: Any = param.Selector(default="0", objects=["0", "1"], label="class in the fit set")
    classes = param.Number(START["classes"], label="known classes")
    distance = param.Number(START["distance"], label="distance")
    angle = param.Number(START["angle"], label="angle")
    anisotropy = param.Number(START["anisotropy"], label="anisotropy")
    orientation = param.Number(START["orientation"], label="orientation")
    rows = param.Number(START["rows"], label="rows")
    alpha = param.Number(START["alpha"], label="alpha")
    seed = param.Number(START["seed"], label="seed")
    centres = param.String("", label="centres")

    stops = STOPS
    entries = ("step",)  # a step is a place to come back to

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen."""
        return f"lesson {value}" if name == "step" else super().title(name, value)

    def query(self) -> str:
        """Return the state as a query string: what the world is like only where it is on the screen."""
        pairs = [("step", self.step)]
        if self.present == "1":
            pairs.append(("present", "1"))
        if self.step == WORLD:
            for name in self.names()[2:]:
                value = getattr(self, name)
                if value != self.param[name].default:
                    pairs.append((name, f"{value:g}" if name in self.stops else str(value)))
        return urlencode(pairs, safe=",;")

    def _read_one(self, name: str, text: str) -> tuple[Any, str]:
        if name != "centres":
            return super()._read_one(name, text)
        centres = read_centres(text)
        if centres is None and text:
            return "", "The link asks for centres that are not in the plane; the default ones are shown."
        return write_centres(centres), ""

    def case(self) -> dict[str, Any]:
        """Return the world that the state describes."""
        found = {name: getattr(self, name) for name in START}
        found |= {name: int(found[name]) for name in WHOLE}
        return {**found, "in_fit": self.in_fit == "1", "centres": read_centres(self.centres)}


def world_of(case: Mapping[str, Any]) -> World:
    """Return the world of a case: what `simulate_leak` takes, with a detector and an alpha beside it."""
    given = {name: value for name, value in case.items() if name not in ("detector", "alpha")}
    if given.get("centres") is not None:
        given.pop("classes", None)
    return simulate_leak(**given)


def frozen(case: Mapping[str, Any]) -> str:
    """Return what tells one case from another, but for the switch and alpha, which the table answers."""
    return json.dumps(
        {k: v for k, v in case.items() if k not in ("in_fit", "alpha")},
        sort_keys=True,
        default=np.ndarray.tolist,
    )


@lru_cache(maxsize=48)
def _answers(key: str, alpha: float | None) -> xr.Dataset:
    """Return the table of the world that `frozen` wrote: at every alpha, or at one."""
    case = json.loads(key)
    return page_answers(world_of(case), detector=case["detector"], alpha=alpha)


def lesson_case(number: int, stage: int) -> dict[str, Any]:
    """Return the world of a lesson: before the answer (-1), after it (0), or of a further case (1 and on).

    Examples
    --------
    >>> lesson_case(3, -1)["in_fit"], lesson_case(3, 0)["in_fit"]
    (False, True)
    """
    lesson = lessons()[number - 1]
    state = lesson.state if stage < 0 else lesson.state_after if stage == 0 else lesson.also[stage - 1].state
    return {"in_fit": False, **state}


_HAND_CSS = (
    STRIP_CSS
    + theme.css(
        """
.controls { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px 22px; font: calc(13px * var(--lv-large, 1))/1.45 $font; color: $muted; border-top: 1px solid $hair; padding-top: 12px; margin-top: 4px }
.controls[hidden], .control[hidden] { display: none !important }
.wide { grid-column: 1 / -1 }
.few { grid-template-columns: minmax(0, 1fr); gap: 4px; padding-top: 8px; margin-top: 0 }
.top { display: flex; justify-content: space-between; align-items: flex-start; gap: 12px }
.top:not(:has(.control:not([hidden]))) { display: none }
.control { min-width: 0 }
output { min-width: 3em }
select { display: block; width: 100%; color-scheme: var(--lv-scheme, light); font: inherit; color: $ink; background: $bg; border: 1px solid $hair; border-radius: 6px; padding: 4px 6px; min-height: 30px }
select:focus-visible, button:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
.framed { font: inherit; color: $ink; background: none; border: 1px solid $hair; border-radius: 6px; padding: 5px 12px; cursor: pointer }
.framed:hover { border-color: $muted }
.switch { display: flex; align-items: center; gap: 10px; font: 600 calc(15px * var(--lv-large, 1))/1.4 $font; text-align: left; color: $ink; background: none; border: 0; padding: 4px 0; cursor: pointer; border-radius: 6px }
.heard { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.switch .track { flex: none; width: 44px; height: 24px; border-radius: 12px; background: $hair; box-shadow: inset 0 0 0 1px $muted; position: relative }
.switch .track::after { content: ""; position: absolute; left: 3px; top: 3px; width: 18px; height: 18px; border-radius: 50%; background: $bg; box-shadow: 0 0 0 1px $muted }
.switch[aria-checked=true] .track::after { left: 23px; box-shadow: none }
@media (prefers-reduced-motion: no-preference) { .switch .track::after { transition: left .15s } }
input:disabled, select:disabled, .framed:disabled { opacity: .45; cursor: default }
@media (max-width: 360px) { .controls { grid-template-columns: minmax(0, 1fr) } }
"""
    )
    + f".switch[aria-checked=true] .track {{ background: {theme.REGIME_COLOR['leak']}; box-shadow: none }}"
)


class Hand(JSComponent):
    """The switch, the sliders and menus of the world, and its centres in the plane.

    Parameters
    ----------
    key : str
        Of the `Live` whose table the switch walks.
    asked : callable
        Called with what the hand changes, a dict, and whether it rests; returns when the answer is on its way.
    """

    wiring = param.String(default="{}", doc="JSON: the table's id, and the controls.")
    values = param.Dict(default={}, doc="Where the controls stand.")
    shown = param.List(default=[], item_type=str, doc="Which controls there are.")
    answered = param.Integer(default=0, doc="The number of the request that was answered last.")
    alone = param.Boolean(default=False, doc="Whether there is no server to ask.")

    _esm = Path(__file__).with_name("mechanism.js")
    _stylesheets: ClassVar[list[str]] = [_HAND_CSS]

    def __init__(self, key: str, asked: Callable[[dict[str, Any], bool], object], **params: Any):
        super().__init__(wiring=json.dumps({"id": key, "controls": CONTROLS}), **params)
        self._asked = asked

    def flip(self, on: bool) -> None:
        """Turn the switch, for the eye to follow."""
        self._send_msg({"flip": int(on)})

    def glide(self, stop: int) -> None:
        """Move alpha to a stop, for the eye to follow."""
        self._send_msg({"glide": stop})

    def walk(self, name: str, value: float) -> None:
        """Move a slider to a value, as a hand would: each place on the way is computed."""
        self._send_msg({"walk": [name, value]})

    def _handle_msg(self, data: Any) -> None:
        if not isinstance(data, dict) or not isinstance(data.get("n"), int):
            return
        change = data.get("change")
        with pn.io.hold():
            try:
                if isinstance(change, dict):
                    self._asked(change, bool(data.get("rest")))
            finally:
                self.answered = data["n"]


_PAGE_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: var(--lv-columns, minmax(0, 424px) minmax(0, 1fr) minmax(0, 276px)); gap: 12px 28px; align-items: start }
.left, .twins { grid-row: 1 / span 3 }
.left { grid-column: 1 }
.plane { grid-column: 2; grid-row: 1 }
.bars { grid-column: 2; grid-row: 2 / span 2 }
.right { grid-column: 3; grid-row: 1 / span 2 }
.controls { grid-column: 3; grid-row: 3 }
.twins { grid-column: 2 / -1 }
.left.all { grid-column: 1 / -1 }
:host(.lesson) { margin-bottom: -28px !important } /* a lesson is one screen */
:host(.world) { grid-template-columns: minmax(0, 372px) minmax(0, 1fr) minmax(0, 290px) }
:host(.world) .left { grid-column: 1 / -1; grid-row: 1 }
:host(.world) .controls { grid-column: 1; grid-row: 2 / span 2 }
:host(.world) .plane { grid-row: 2 }
:host(.world) .bars { grid-row: 3 }
:host(.world) .right { grid-row: 2 / span 2 }
@media (max-width: 1080px) {
  :host, :host(.world) { grid-template-columns: minmax(0, 340px) minmax(0, 1fr); grid-template-rows: none }
  .left, .twins { grid-row: 1 / span 4 }
  .plane { grid-row: 1 }
  .bars { grid-row: 2 }
  .right { grid-column: 2; grid-row: 3 }
  .controls { grid-column: 2; grid-row: 4 }
  :host(.world) .controls { grid-row: 2 / span 3 }
  :host(.world) .right { grid-row: 4 }
}
@media (max-width: $narrow) {
  :host, :host(.world) { grid-template-columns: minmax(0, 1fr) }
  :host(.lesson) { margin-bottom: 0 !important }
  .left, .plane, .bars, .right, .controls, .twins, :host(.world) :is(.left, .plane, .bars, .right, .controls) { grid-column: 1; grid-row: auto }
  /* what the hand moves stays in sight */
  :host(.world) .plane { order: -1; position: sticky; top: 0; z-index: 2; background: $bg; padding-bottom: 4px; box-shadow: 0 1px $hair }
}
"""
)
_SIDE_CSS = ":host { gap: 10px }"
_TWINS_CSS = ":host { gap: 14px }"
_TWO_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 20px 28px; align-items: start }
@media (max-width: 1000px) { :host { grid-template-columns: minmax(0, 1fr) } }
"""
)
_SEEN_CSS = theme.css(
    "td, th { white-space: normal; padding: 3px 0 } th svg { vertical-align: -3px; margin-right: 4px } p { margin-top: 8px !important }"
)
_PLANE_CSS = ":host { aspect-ratio: 4 / 3; min-height: 200px }"
_READ_CSS = theme.css(
    """
.read { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 12px; border-top: 1px solid $hair; padding: 8px 0 }
.read .what { color: $muted; font-size: calc(13px * var(--lv-large, 1)) }
.read .value { grid-row: span 2; font-size: calc(27px * var(--lv-large, 1)); font-weight: 620; line-height: 1.25; text-align: right; min-width: 2.4em }
.read .more { font-size: calc(13px * var(--lv-large, 1)); min-height: 1.45em }
.rule { color: $muted; font-size: calc(13px * var(--lv-large, 1)); border-top: 1px solid $hair; padding: 8px 0 0; min-height: 4.4em; line-height: 1.4 }
"""
)
_MARK_CSS = theme.css(
    ".dot { fill: $ink; opacity: .45 } .ring { fill: none; stroke: $ink; stroke-width: 1.2 } .legend .gone { display: none }"
)


def _changes(change: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of what a browser asks for what can be had, at the nearest stop."""
    kept: dict[str, Any] = {}
    for name, value in change.items():
        if name == "detector" and value in DETECTORS:
            kept[name] = value
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)
        if name in STOPS and number:
            stops = STOPS[name]
            stop = float(stops[int(np.argmin(np.abs(stops - value)))])
            kept[name] = int(stop) if name in WHOLE else stop
    return kept


class MechanismPage(pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string, from which the page starts.
    shelf : Shelf, optional
        Not used: every page is made alike.

    Examples
    --------
    >>> page = MechanismPage("?step=world&in_fit=1")
    >>> bool(page.answer()["auroc"] < 0.5)
    True
    """

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        self.state = MechanismState()
        self.state.read(query)
        super().__init__(**params)
        self.lessons: tuple[Lesson, ...] = lessons()
        self._quiet = False
        self._root: pn.Column | None = None
        self._parts: dict[str, Any] = {}
        self.player = Player(
            self.lessons,
            step=self.state.step,
            present=self.state.present == "1",
            sizing_mode="stretch_width",
            margin=0,
        )
        self._case = self._scene()
        self.live = self._make_live(self._table(self._case))
        self.hand = Hand(self.live.key, self._asked, sizing_mode="stretch_width", margin=0)
        self._settle()
        self.live.param.watch(self._released, "state")
        self.player.param.watch(self._played, ["step", "guesses", "present", "stage"])
        self.state.param.watch(self._follow, self.state.names())

    # ---- answers

    @property
    def subject(self) -> str:
        """What data the page shows."""
        return "simulated"

    @property
    def number(self) -> int:
        """The number of the lesson, 0 where there is none."""
        return int(self.state.step) if self.state.step.isdigit() else 0

    @property
    def revealed(self) -> bool:
        """Whether the lesson's answer is on the screen."""
        return self.player.revealed(self.state.step)

    def reveal(self) -> None:
        """Show the lesson's answer, unasked: where nobody is asked, as in a report, nothing is kept back."""
        if self.number and not self.revealed:
            self.player.guesses = {**self.player.guesses, self.state.step: None}

    def words(self) -> tuple[str, ...]:
        """Return what the step says, plain text: its heading with the answer, then what leads to it and what follows.

        Examples
        --------
        >>> MechanismPage("?step=4").words()[0][:60]
        'Lesson 4, Leaked, or just hard? It stays silent, because the'
        """
        if self.state.step == END:
            return (ENDING["title"], *(check["text"] for check in ENDING["checks"]))
        if not self.number:
            return (FREE["title"],)
        one = self.lessons[self.number - 1]
        stop = "" if one.title.endswith("?") else "."
        # The curves of lesson 8 show its further cases, too.
        also = [f"{case.label}: {case.text}" for case in one.also] if self.number == LAST else []
        told = (one.text, one.question, one.found(), *also)
        return (f"Lesson {one.number}, {one.title}{stop} {one.reveal}", *filter(None, told))

    def views(self) -> tuple[str, ...]:
        """Return the figures that the step shows once it is answered."""
        if self.number == LAST:
            return ("reliability", "purity")
        if self.state.step == END:
            return ()
        return ("plane", *VIEWS.get(self.number, ("histograms", "roc", "box")))

    @property
    def case(self) -> dict[str, Any]:
        """The world that is shown, as `leakviz.simulate_leak` takes it, with detector and alpha."""
        share = self.live.value("share")
        alpha = self.live.value("alpha") if "alpha" in self._knobs() else self._case["alpha"]
        return {**self._case, "in_fit": share > 0, "alpha": alpha}

    @property
    def world(self) -> World:
        """The world that is shown."""
        return world_of(self.case)

    def shown(self) -> dict[str, str]:
        """Return what is on the screen: the step, and the world or the models that it shows.

        Examples
        --------
        >>> shown = MechanismPage("?step=4").shown()
        >>> shown["step"], shown["distance"], shown["OOD class in the fit set"]
        ('lesson 4: Leaked, or just hard?', '0', 'no')
        """
        if not self.number:
            told = {"step": "answers" if self.state.step == END else "explore the world"}
        else:
            told = {"step": f"lesson {self.number}: {self.lessons[self.number - 1].title}"}
        if self.state.step == END:
            return told
        if self.number == LAST:
            names = ("n", "prevalence", "c_statistic", "leaky_c_statistic", "flag_fraction", "beta", "seed")
            return told | {name.replace("_", " "): f"{answers.twins().attrs[name]:g}" for name in names}
        case, world = self.case, self.world
        told["detector"] = DETECTORS[case["detector"]]
        if case["detector"] in GAUSSIAN:
            told["alpha"] = f"{case['alpha']:g}"
        told["OOD class in the fit set"] = "yes" if world.in_fit else "no"
        centres = " and ".join(f"({x:.1f}, {y:.1f})" for x, y in world.centres)
        told |= {"known classes": str(world.classes), "their centres": centres}
        for name in ("distance", "angle", "anisotropy", "orientation"):
            told[name] = f"{getattr(world, name):g}"
        told |= {"fit rows of each class": str(world.rows), "test rows of each kind": str(world.test_rows)}
        return told | {"features of noise": str(world.noise_dimensions), "seed": str(world.seed)}

    def says(self) -> str:
        """Return the caption of the page's figures in files: what was simulated."""
        where = "2606.11267" if self.number == LAST else "2607.19393"
        told = ", ".join(f"{name} {value}" for name, value in self.shown().items() if name != "step")
        return f"Simulated with leakviz, after arXiv {where}: {told}." if told else "Simulated with leakviz."

    def answer(self) -> xr.Dataset:
        """Return the core's answer for what is shown, as `leakviz.score_world` gives it."""
        case = self.case
        return score_world(world_of(case), detector=case["detector"], alpha=case["alpha"])

    def _scene(self) -> dict[str, Any]:
        """Return the world that the step asks for."""
        number = self.number
        if 1 <= number < LAST:
            return lesson_case(number, self.player.stage if self.revealed else -1)
        return self.state.case()

    def _knobs(self) -> tuple[str, ...]:
        """Return which controls there are."""
        if self.state.step == WORLD:
            gaussian = self._case["detector"] in GAUSSIAN
            return tuple(k for k in ALL_KNOBS if gaussian or k != "alpha")
        return KNOBS.get(self.number, ()) if self.revealed else ()

    def _table(self, case: Mapping[str, Any]) -> xr.Dataset:
        """Return the answers of a world: at every alpha where the hand may move it."""
        moves = self.state.step == WORLD or "alpha" in KNOBS.get(self.number, ())
        return _answers(frozen(case), None if moves else float(case["alpha"]))

    # ---- the hand

    def _make_live(self, table: xr.Dataset) -> Live:
        columns = [
            *(
                Column(f"{layer}:source", axis, f"{variable}_{axis}")
                for layer, variable in {
                    **{name: name for name in figures.level_names()},
                    **{name: name for name in ("fit", "ood_fit", "id", "ood", "centre", "ood_centre")},
                    **{name: name for name in ("pair", "excluded", "leaked", "now")},
                    "line": "oracle",
                }.items()
                for axis in "xy"
            ),
            *(
                Column(f"{kind}_bars:source", column, variable)
                for kind in ("id", "ood")
                for column, variable in (
                    ("left", "bin_left"),
                    ("right", "bin_right"),
                    ("top", f"{kind}_share"),
                )
            ),
            Column("curve:source", "x", "fpr"),
            Column("curve:source", "y", "tpr"),
        ]
        painted = {
            "ood": ("line_color", "marker"),
            "ood_fit": ("fill_color", "marker"),
            "ood_centre": ("line_color",),
            "ood_bars": ("fill_color",),
            "curve": ("line_color",),
            "now": ("line_color", "fill_color", "marker"),
        }
        attributes = [
            Attribute("line:glyph_renderer", "visible", "see_line"),
            *(
                Attribute(f"{model}{part}:glyph_renderer", "visible", f"see_{model}")
                for model in ("flag", "recalibrated")
                for part in ("", "_marks")
            ),
            *(Attribute(f"{name}:glyph_renderer", "visible", "see_levels") for name in figures.level_names()),
            *(
                Attribute(f"{layer}:glyph", name, "marker" if name == "marker" else "color")
                for layer, names in painted.items()
                for name in names
            ),
            *(
                Attribute(f"histograms:{axis}_range", f"{reset}{end}", variable)
                for axis, end, variable in (
                    ("x", "start", "bin_start"),
                    ("x", "end", "bin_end"),
                    ("y", "end", "share_end"),
                )
                for reset in ("", "reset_")
            ),
        ]
        return Live(
            table,
            sliders=[Slider("alpha", "alpha", "shrinkage of the covariance; default 0, full whitening")],
            columns=columns,
            attributes=attributes,
            start={"share": 0.0, "alpha": 0.0, "layers": "all"},
            labels={"alpha": [f"{a:g}" for a in table["alpha"].values]},
            sizing_mode="stretch_width",
            margin=0,
        )

    def _covered(self) -> bool:
        """Tell whether the scores on the screen would give the answer away."""
        if not self.number or self.number == LAST or self.revealed:
            return False
        lesson = self.lessons[self.number - 1]
        return dict(lesson.state) == dict(lesson.state_after)

    def _layers(self) -> str:
        if self.number == LAST:
            return ("rows", "flag", "all")[self.player.stage] if self.revealed else "rows"
        if self.number == 1:
            return "line" if self.revealed else "rows"
        if not self._covered():
            return "all"
        return "levels" if self.number == 4 else "rows"

    def _show_step(self) -> None:
        """Show the world of the step, from the question to the answer where that is the step's."""
        before, case = self._case, self._scene()
        moved = {name for name in {*before, *case} if before.get(name) != case.get(name)}
        if self.revealed and moved == {"angle"} and "angle" in self._knobs() and _served():
            self._settle()
            self.hand.walk("angle", float(case["angle"]))
            return
        known = self.live.answers
        table = self._table(case)
        turned = frozen(case) == frozen(before) and table is known
        self._case = case
        if not turned:
            self.live.update_answers(table)
        self._settle(turn=turned)

    def _settle(self, *, turn: bool = False) -> None:
        """Move the hand to the case that is shown; where only the switch turns, for the eye to follow."""
        case = self._case
        share = 1.0 if case["in_fit"] else 0.0
        wanted: dict[str, Any] = {"share": share, "alpha": case["alpha"], "layers": self._layers()}
        if turn and _served():
            if share != self.live.value("share"):
                del wanted["share"]
                self.hand.flip(bool(share))
            elif case["alpha"] != self.live.value("alpha") and "alpha" in self._knobs():
                del wanted["alpha"]
                self.hand.glide(int(np.argmin(np.abs(STOPS["alpha"] - case["alpha"]))))
        self.live.go(**wanted)
        self._show_controls()
        self._show_parts()

    def _show_controls(self) -> None:
        knobs = self._knobs()
        world = world_of(self._case)
        values = {"detector": self._case["detector"]}
        values |= {name: getattr(world, name) for name in STOPS if name != "alpha"}
        self.hand.param.update(values=values, shown=list(knobs))

    def _show_parts(self) -> None:
        """Show what the step needs: its figures, or the curves of lesson 8, or neither at the end."""
        if not self._parts:
            return
        step, number = self.state.step, self.number
        world = step == WORLD or 1 <= number < LAST
        views = VIEWS.get(number, ("histograms", "roc", "box"))
        covered = self._covered()
        hard = covered and number == 4  # what has collapsed is seen, what tells why is not
        boxed = "box" in views and (self.revealed or number not in (4, 5))
        visible = {
            "headline": step == WORLD,
            "plane": world,
            "right": world,
            "twins": number == LAST,
            "covered": covered and not hard,
            "scores": not covered or hard,
            "histograms": world and "histograms" in views and (not covered or hard),
            "line_reads": not covered,
            "alpha": "alpha" in self._knobs(),
            "controls": bool(self._knobs()),
            "roc": "roc" in views,
            "box": boxed,
            "detector_reads": number != 1,
            "rule": boxed,
        }
        for name, seen in visible.items():
            self._parts[name].visible = seen
        self._parts["left"].css_classes = ["left", "all"] if step == END else ["left"]
        self._parts["body"].css_classes = ["world"] if step == WORLD else ["lesson"]
        if number == LAST:
            told = self.player.stage if self.revealed else -1
            self._seen.object = answers.twins_table(answers.twins(), told=told)

    def _asked(self, change: Mapping[str, Any], rest: bool) -> None:
        """Show the world that the hand asks for: at once at one alpha, and at every alpha when it rests."""
        if self.state.step != WORLD and not self._knobs():
            return
        case = {**self._case, "alpha": self.live.value("alpha")}
        if "reset" in change:
            case = dict(START) if self.state.step == WORLD else self._scene()
            self._case = case
            self.live.update_answers(self._table(case))
            self._settle(turn=True)
            self._write()
            return
        asked = {name: value for name, value in _changes(change).items() if name in self._knobs()}
        case |= asked
        if "classes" in asked:
            case["centres"] = None
        if "centre" in change and "centres" in self._knobs():
            case |= _moved(case, change["centre"])
        whole = rest and "alpha" in self._knobs()
        gaussian = case["detector"] in GAUSSIAN
        self._case = case
        table = (
            _answers(frozen(case), None if whole and gaussian else float(case["alpha"]))
            if rest
            else page_answers(
                world_of(case),
                detector=case["detector"],
                alpha=float(case["alpha"]),
                share=round(self.live.value("share")),
            )
        )
        self.live.update_answers(table)
        if rest:
            self._show_controls()
            self._show_parts()  # kNN has no alpha
            self._write()

    def _write(self) -> None:
        """Take over into the state, and so into the link, where the hand rests."""
        if self.state.step != WORLD:
            return
        case = self.case
        values = {name: case[name] for name in (*STOPS, "detector")}
        self._quiet = True
        try:
            self.state.param.update(
                **values,
                in_fit="1" if case["in_fit"] else "0",
                centres=write_centres(case.get("centres")),
            )
        finally:
            self._quiet = False

    def _released(self, event: Any) -> None:
        """Take over where the hand let go of the switch or of alpha."""
        self._case = self.case
        self._write()

    def _played(self, *events: Any) -> None:
        """Follow the player: another step, an answer, a further case, the class that looks on."""
        if self._quiet:
            return
        player = self.player
        kept = valid_guesses(player.guesses, self.lessons)
        if kept != player.guesses:
            player.guesses = kept
        changed = {e.name for e in events}
        step = player.step if player.step in self.state.param["step"].objects else self.state.step
        with pn.io.hold():
            self.state.param.update(step=step, present="1" if player.present else "0")
            if changed & {"guesses", "stage"}:
                self._show_step()

    def _follow(self, *events: Any) -> None:
        """Follow the state: a step or a link."""
        if self._quiet:
            return
        changed = {e.name for e in events}
        with pn.io.hold():
            stage = 0 if "step" in changed else self.player.stage
            self._quiet = True
            try:  # together: the player must not be asked for a step with the stage of another
                self.player.param.update(step=self.state.step, present=self.state.present == "1", stage=stage)
            finally:
                self._quiet = False
            if changed - {"present"}:
                self._show_step()

    # ---- figures

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present state.

        Parameters
        ----------
        name : {"plane", "histograms", "roc", "box", "reliability", "purity"}
        """
        if name not in figures.FIGURES:
            raise ValueError(f"no figure is called {name!r}; there are {', '.join(figures.FIGURES)}")
        if name in ("reliability", "purity"):
            return figures.twins_data(name, answers.twins())
        case = self.case
        world = world_of(case)
        if name == "plane":
            return _rows_frame(world)
        found = score_world(world, detector=case["detector"], alpha=case["alpha"])
        told = {"detector": case["detector"], "alpha": float(found["alpha"]), "in_fit": case["in_fit"]}
        if name == "box":
            names = ["oracle_lda", "oracle_lda_low", "oracle_lda_high", "maha", "knn", "best_unsup"]
            return pd.DataFrame([{**told, **{n: float(found[n]) for n in names}}])
        columns = {
            "histograms": ["left", "right", "id_count", "ood_count"],
            "roc": ["false_positive_rate", "true_positive_rate"],
        }[name]
        return found[columns].to_dataframe().reset_index(drop=True).assign(**told)

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        """Return a figure at the present state as a HoloViews element.

        Parameters
        ----------
        name : {"plane", "histograms", "roc", "box", "reliability", "purity"}
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        if name not in figures.FIGURES:
            raise ValueError(f"no figure is called {name!r}; there are {', '.join(figures.FIGURES)}")
        if name in ("reliability", "purity"):
            draw = {"reliability": figures.reliability, "purity": figures.purity}[name]
            return draw(answers.twins(), hooks=hooks, backend=backend)
        now = self.live.at()
        if name == "box":
            return figures.box(now, gate=RULE.gate, tau=RULE.tau, hooks=hooks, backend=backend)
        one = {"plane": figures.plane, "histograms": figures.histograms, "roc": figures.roc}[name]
        return one(now, hooks=hooks, backend=backend)

    # ---- the page

    def _card(
        self,
        name: str,
        hooks: dict[str, list[Callable]],
        caption: str,
        *,
        height: int | None,
        legend: str = "",
        sheets: list[str] | None = None,
    ) -> pn.Column:
        pane = figure_pane(
            ("mechanism", name),
            self.live,
            lambda: self.figure(name, hooks=hooks),
            sizing_mode="stretch_both",
            margin=0,
        )
        body = card(
            figures.FIGURES[name],
            pane,
            caption,
            links=downloads(
                f"learn-{name}",
                lambda backend: self.figure(name, backend),
                lambda: self.data(name),
                size=(120, 90) if name == "plane" else (90, 75),
                page=self,
            ),
            height=height,
            stylesheets=sheets,
        )
        if legend:
            body.insert(1, markup(legend, css=LEGEND_CSS + _MARK_CSS))
        return body

    def _plane(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list[Callable]] = {
            **{name: [live.tag(name, "source", "glyph_renderer")] for name in figures.level_names()},
            **{name: [live.tag(name, "source")] for name in ("fit", "id", "centre", "held")},
            **{name: [live.tag(name, "source", "glyph")] for name in ("ood", "ood_fit", "ood_centre")},
            "line": [live.tag("line", "source", "glyph_renderer")],
            "figure": [live.tag("plane", "figure")],
        }
        grey = '<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><circle cx="8" cy="8" r="{}" class="{}"></circle></svg>'
        legend = (
            f'<div class="legend"><span>{grey.format("3", "dot")}fit set</span>'
            f"<span>{grey.format('4', 'ring')}known, test</span>"
            '<span><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><g class="ring"><circle cx="8" cy="8" r="6"></circle>'
            '<path d="M2 8h12M8 2v12"></path></g></svg>centre</span>'
            f"<span {live.attrs(class_='legend_out')}>{regime_mark('clean-excl')}OOD class</span>"
            f"<span {live.attrs(class_='legend_in')}>{regime_mark('leak')}OOD class, in the fit set</span></div>"
        )
        t = live.text
        return self._card(
            "plane",
            hooks,
            f"{t('levels_caption')} {t('line_caption')} At most {answers.TEST_DRAWN} rows of a kind are drawn. "
            f"<b>{t('away_says')}</b>",
            height=None,
            legend=legend,
            sheets=[_PLANE_CSS],
        )

    def _histograms(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list[Callable]] = {
            "id_bars": [live.tag("id_bars", "source")],
            "ood_bars": [live.tag("ood_bars", "source", "glyph")],
            "figure": [live.tag("histograms", "x_range", "y_range")],
        }
        return self._card(
            "histograms",
            hooks,
            f"Test rows, {live.text('unit_says')}. Grey: known classes.",
            height=124,
        )

    def _roc(self) -> pn.Column:
        hooks = {"curve": [self.live.tag("curve", "source", "glyph")]}
        return self._card("roc", hooks, "The area below it is the AUROC. Dotted: a coin.", height=170)

    def _box(self) -> pn.Column:
        live = self.live
        hooks = {
            **{name: [live.tag(name, "source")] for name in ("pair", "excluded", "leaked")},
            "now": [live.tag("now", "source", "glyph")],
        }
        return self._card(
            "box",
            hooks,
            f"In the box it fires ({PAPER}). Rings: the class in the fit set, and out.",
            height=118,
        )

    def _twins(self) -> pn.Column:
        """Return the curves of lesson 8, and what a test sees of them."""
        layers = ("flag", "flag_marks", "recalibrated", "recalibrated_marks")
        hooks = {layer: [self.live.tag(layer, "glyph_renderer")] for layer in layers}
        paper = '<a href="https://arxiv.org/abs/2606.11267">arXiv 2606.11267</a>'
        cards = [
            self._card(
                "reliability",
                hooks,
                f"{answers.twins().sizes['bin']} groups of equally many records: how many of each have the event. Dotted: as many "
                f"as predicted. {paper}.",
                height=204,
            ),
            self._card(
                "purity",
                hooks,
                f"Purity: of the k records with the highest risk, the share that has the event. {paper}.",
                height=204,
            ),
        ]
        self._seen = markup("", css=_SEEN_CSS)
        return pn.Column(
            pn.Column(*cards, stylesheets=[_TWO_CSS], sizing_mode="stretch_width", margin=0),
            self._seen,
            stylesheets=[_TWINS_CSS],
            sizing_mode="stretch_width",
            margin=0,
        )

    def _reads(self) -> tuple[pn.pane.HTML, pn.pane.HTML, pn.pane.HTML]:
        """Return the AUROCs in words: of the line, of the detector, and what the rule says."""
        t = self.live.text
        line = (
            '<div class="read"><span class="what">line, with labels: AUROC</span>'
            f'<span class="value">{t("oracle_says")}</span><span class="more m">{t("oracle_interval_says")}</span></div>'
        )
        detector = (
            '<div class="read" role="status"><span class="what">detector, without: AUROC</span>'
            f'<span class="value">{t("auroc_says")}</span><span class="more"><span class="m">{t("interval_says")}</span><br>'
            f"<b>{t('word_says')}</b></span></div>"
        )
        rule = f'<p class="rule">{t("rule_says")} Best-unsup is {t("unsup_says")}{t("contrast_says")}.</p>'
        return tuple(markup(text, css=_READ_CSS) for text in (line, detector, rule))  # type: ignore[return-value]

    def _headline(self) -> pn.pane.HTML:
        t = self.live.text
        return markup(
            '<div role="status" aria-live="polite" aria-atomic="true"><h1>'
            f"{t('fit_says')}: <b>{t('tells_says')}</b> (AUROC <b>{t('auroc_says')}</b>), while {t('line_says')} "
            f"(<b>{t('oracle_says')}</b>).</h1></div>",
            css="h1 { max-width: none }",
        )

    def __panel__(self) -> pn.Column:
        """Build the page once; in the app, what is not seen first follows when the rest is there."""
        if self._root is None:
            wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
            side: dict[str, Any] = {"stylesheets": [_SIDE_CSS], **wide}
            line, detector, rule = self._reads()
            plane, bars, roc, box = self._plane(), self._histograms(), self._roc(), self._box()
            scores = pn.Column(line, detector, rule, roc, box, stylesheets=[_SIDE_CSS], **wide)
            covered = markup('<p class="note">The scores come after your answer.</p>')
            right = pn.Column(covered, scores, **side)
            headline, twins = self._headline(), self._twins()
            alpha = pn.Column(self.live, **wide)  # what is hidden must not have a display of its own
            self._parts = {
                "headline": headline,
                "plane": plane,
                "twins": twins,
                "right": right,
                "covered": covered,
                "histograms": bars,
                "scores": scores,
                "alpha": alpha,
                "roc": roc,
                "box": box,
                "line_reads": line,
                "detector_reads": detector,
                "rule": rule,
            }
            left = pn.Column(self.player, **side)
            controls = pn.Column(self.hand, alpha, **side)
            self._parts |= {"left": left, "controls": controls}
            placed = {
                "left": left,
                "plane": plane,
                "controls": controls,
                "right": right,
                "bars": bars,
                "twins": twins,
            }
            for name, part in placed.items():
                part.css_classes = [name]
            body = pn.Column(*placed.values(), stylesheets=[_PAGE_CSS], **wide)
            self._parts["body"] = body
            self._root = pn.Column(
                link_note(self.state), headline, body, stylesheets=[":host { gap: 14px }"], **wide
            )
            self._show_parts()
        return self._root


def _served() -> bool:
    """Tell whether a browser looks on that can be sent messages."""
    return pn.state.curdoc is not None and pn.state.curdoc.session_context is not None


def _moved(case: Mapping[str, Any], moved: Any) -> dict[str, Any]:
    """Return what changes of a case where a centre is dragged: -1 is the class, the others are known."""
    try:
        which, x, y = int(moved[0]), float(moved[1]), float(moved[2])
    except (TypeError, ValueError, LookupError, OverflowError):
        return {}
    world = world_of(case)
    (left, right), (bottom, top) = FRAME
    if not (left <= x <= right and bottom <= y <= top) or not -1 <= which < len(world.centres):
        return {}
    if which >= 0:  # the class stays where it is, whatever the known ones do
        centres = [[round(float(v), 1) for v in centre] for centre in world.centres]
        centres[which] = [round(x, 1), round(y, 1)]
        x, y = (float(v) for v in world.ood_centre)
        case = {**case, "centres": centres}
        world = world_of(case)
    distance, angle = world.locate(x, y)
    return {"centres": case.get("centres"), **_changes({"distance": distance, "angle": angle % 360})}


def _rows_frame(world: World) -> pd.DataFrame:
    """Return every row of a world: its place, its class, and what it is for."""
    parts = {
        "fit": (world.id_fit, world.id_fit_labels),
        "id_test": (world.id_test, world.id_test_labels),
        "ood_test": (world.ood_test, np.full(len(world.ood_test), len(world.centres))),
    }
    if world.in_fit:
        parts["fit, the class"] = (world.ood_fit, np.full(len(world.ood_fit), len(world.centres)))
    return pd.concat(
        [
            pd.DataFrame({"role": role, "class": labels, "feature_1": rows[:, 0], "feature_2": rows[:, 1]})
            for role, (rows, labels) in parts.items()
        ],
        ignore_index=True,
    )
