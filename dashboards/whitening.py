"""The whitening page: on which directions a Mahalanobis distance spends its separation, and what that costs.

Source: arXiv 2607.19393, section 8 and Appendix C. The core answers, `dashboards.whitening_answers`
puts the answers into a table, the figures draw, this page arranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlencode

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import param
import xarray as xr

import leakviz
from dashboards import batteries, names, theme
from dashboards import whitening_answers as answers
from dashboards.ahead import AHEAD, Step
from dashboards.cards import card, downloads
from dashboards.figures import whitening as figures
from dashboards.live import Attribute, Column, Live, Slider, Tap, encode_once
from dashboards.markup import headline, link_note, markup, notes
from dashboards.shelf import OWN, Audit, Shelf
from dashboards.state import LONGEST, PageState, asked_of, nearest_stop
from dashboards.stencil import figure_pane
from dashboards.whitening_answers import ALL, CHOSEN, ROWS, WITHOUT, Case
from leakviz.whitening import ALPHAS

TITLE = "Whitening"
LEDOIT_WOLF = "ledoit-wolf"
FITS = {ALL: "all classes", WITHOUT: "without OOD class", CHOSEN: "chosen classes"}
COVARIANCES = {"one-class": "one-class", "tied": "tied"}
PAPER = '<a href="https://arxiv.org/abs/2607.19393">arXiv 2607.19393</a>'

# What a teacher starts from: (name of the button, the state that it asks for).
LESSONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "8 × 8 digits: shrinking hurts",
        {"features": "resnet-fashion", "ood": "small-digits", "fit": ALL, "rows": "all"},
    ),
    (
        "Coat, excluded: it helps a little",
        {"features": "resnet-fashion", "ood": "Coat", "fit": WITHOUT, "rows": "all"},
    ),
    ("Sneaker, leaked", {"features": "resnet-fashion", "ood": "Sneaker", "fit": ALL, "rows": "all"}),
    (
        "150 rows: it heals",
        {"features": "resnet-fashion", "ood": "Coat", "fit": WITHOUT, "rows": "150", "alpha": "0"},
    ),
)


class WhiteningState(PageState):
    """What a link to this page carries. ``setting=`` of the computed battery is understood, too."""

    chooses = ("features",)
    brought = "embeddings"
    understands = ("setting",)

    features: Any = param.Selector(default="", objects=[""], label="features")
    ood: Any = param.Selector(default="", objects=[""], label="OOD")
    fit: Any = param.Selector(default=WITHOUT, objects=list(FITS), label="fit set")
    classes = param.ListSelector(default=[], objects=[], label="classes")
    rows: Any = param.Selector(default="all", objects=list(ROWS), label="rows")
    covariance: Any = param.Selector(default="one-class", objects=list(COVARIANCES), label="covariance")
    alpha: Any = param.Parameter(default=LEDOIT_WOLF, label="alpha")

    def __init__(self, **params: Any):
        super().__init__(**params)
        self.audits: list[Audit] = []

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen."""
        if name == "ood" and value == OWN:
            audit = self.audit()
            return (audit.ood_name if audit is not None else "") or "the designated OOD rows"
        return FITS.get(value, str(value)) if name == "fit" else super().title(name, value)

    def offer(self, audits: list[Audit]) -> None:
        """Take these embeddings of the user's as what can be chosen, beside the computed backbones."""
        self.audits = list(audits)
        computed = batteries.computed().backbones
        self.param["features"].objects = [*computed, *(a.name for a in reversed(audits))]
        self.param["features"].default = computed[0]
        if self.features not in self.param["features"].objects:
            self.features = computed[0]
        self.suit(self.features)

    def audit(self, features: str | None = None) -> Audit | None:
        """Return the user's embeddings that are chosen, None for a computed backbone."""
        name = self.features if features is None else features
        return next((a for a in self.audits if a.name == name), None)

    def suit(self, features: str) -> None:
        """Offer what these features have: OOD sets, classes, fit sets; keep of the state what is among it."""
        audit = self.audit(features)
        if audit is not None:
            oods, classes, fits, rows = [OWN], [], [ALL], ["all"]
            fits += [WITHOUT] if audit.without is not None else []
            covariances = ["one-class", *(["tied"] if audit.fit.labels is not None else [])]
        else:
            oods = [o for group in answers.targets(features).values() for o in group]
            classes, fits, rows = list(answers.classes(features)), list(FITS), list(ROWS)
            covariances = list(COVARIANCES)
        offered = {"ood": oods, "classes": classes, "fit": fits, "rows": rows, "covariance": covariances}
        for name, objects in offered.items():
            self.param[name].objects = objects
        self.param["ood"].default = "Coat" if "Coat" in oods else oods[0]
        self.param["fit"].default = WITHOUT if WITHOUT in fits else ALL
        self.param["classes"].default = classes
        with param.discard_events(self):
            self.classes = [c for c in self.classes if c in classes] or classes
            for name in ("ood", "fit", "rows", "covariance"):
                if getattr(self, name) not in self.param[name].objects:
                    setattr(self, name, self.param[name].default)

    def _read(self, query: str) -> list[str]:
        asked = asked_of(query)
        told = []
        if "setting" in asked:
            found, sentence = parts_of(asked.pop("setting")[:200])
            asked |= found
            told += [sentence] if sentence else []
        default = self.param["features"].default
        features = asked.get("features", default)[:LONGEST]
        if features not in self.param["features"].objects:
            if self.waits_for(features, "features"):
                asked = {}  # the rest is about what is not here
            else:
                told.append(
                    f"The link asks for features “{features}”, which are not here; the default is shown."
                )
            features = asked["features"] = default
        self.suit(features)
        return told + super()._read(urlencode(asked))

    def _read_one(self, name: str, text: str) -> tuple[Any, str]:
        if name == "alpha":
            if text == LEDOIT_WOLF:
                return text, ""
            value, sentence = nearest_stop(text, ALPHAS, "alpha", math.nan)
            if math.isnan(value):
                return LEDOIT_WOLF, sentence.replace("nan is shown", "Ledoit and Wolf’s is shown")
            return answers.number(value), sentence
        return super()._read_one(name, text)


def parts_of(setting: str) -> tuple[dict[str, str], str]:
    """Return what of the state a setting of the computed battery decides, and a sentence if that is not all.

    Parameters
    ----------
    setting : str
        Its name in the battery.
    """
    battery = batteries.computed().dataset
    if setting not in battery["setting"].values:
        return {}, "The link names a setting that the computed battery has not; the default is shown."
    row = battery.sel(setting=setting)
    regime = str(row["regime"].item())
    told = (
        "The features of the retrained backbone are not here; shown is the same class, excluded from the fit set."
        if regime == "clean-retrained"
        else ""
    )
    parts = {
        name: str(row[coordinate].item()) for name, coordinate in (("features", "backbone"), ("ood", "ood"))
    }
    return {**parts, "fit": ALL if regime in ("leak", "clean-novel") else WITHOUT}, told


_BANNER_CSS = "h1, .note { max-width: none }"
_CONTROLS_CSS = theme.css(
    """
:host { display: flex; flex-direction: column; gap: 8px; border-top: 1px solid $hair; border-bottom: 1px solid $hair; padding: 8px 0 10px }
"""
)
_ROW_CSS = ":host { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: flex-end; width: 100% }"
_HAND_CSS = ":host { display: flex; flex-wrap: wrap; gap: 6px 30px; align-items: center; width: 100% }"
_SELECT_CSS = ":host { flex: 1 1 150px; max-width: 215px } label { white-space: normal }"
_LONG_CSS = ":host { flex: 1 1 200px; max-width: 215px }"  # names of backbones
_CHECK_CSS = theme.css(
    """
:host { width: 100% }
.bk-input-group { display: flex; flex-wrap: wrap; gap: 2px 16px }
.bk-input-group > * { margin-left: 0 !important }
label, label span { font: 13px/1.5 $font; color: $ink }
input { accent-color: $accent; margin: 0 5px 0 0; vertical-align: -2px }
input:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
"""
)
_LESSONS_CSS = ":host { display: flex; flex-wrap: wrap; gap: 0 14px; align-items: center; width: 100% }"
_LESSON_CSS = theme.css(
    """
:host { width: auto; flex: 0 0 auto }
.bk-btn, .bk-btn.bk-btn-default { background: none !important; border: 0 !important; box-shadow: none; color: $accent !important; font: 13px/1.4 $font; padding: 4px 3px; min-height: 24px; text-transform: none }
.bk-btn:hover { text-decoration: underline }
.bk-btn:focus-visible { outline: 2px solid $accent; outline-offset: 1px; border-radius: 3px }
"""
)
_MARKS_CSS = theme.css(
    """
:host { flex: 1 1 280px; min-width: 0 }
.marks { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; font-size: 13px; color: $muted }
.marks button { color: $ink; border: 1px solid $hair; border-radius: 6px; padding: 5px 10px; font-size: 13px }
.marks button:hover { border-color: $muted }
.marks button[aria-pressed=true] { color: $accent; border-color: $accent; box-shadow: inset 0 0 0 1px $accent }
"""
)
_LEGEND_CSS = theme.css(
    """
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12.5px; color: $muted; align-items: center }
.legend span { display: inline-flex; gap: 5px; align-items: center }
.ink { stroke: $ink; fill: $ink }
"""
)
_TABLE_CSS = theme.css(
    """
td, th { white-space: normal; vertical-align: top; padding: 4px 0 }
th small { display: block; font-size: 12px; color: $muted }
td { white-space: nowrap }
h2 { margin-bottom: 4px }
.part th, .part td { border-bottom: 1px solid $muted }
"""
)
_THREE_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 22px 30px; align-items: start }
@media (max-width: 1000px) { :host { grid-template-columns: repeat(2, minmax(0, 1fr)) } }
@media (max-width: $narrow) { :host { grid-template-columns: minmax(0, 1fr); gap: 26px } }
"""
)


_NEXT = 18  # choices that are worked out ahead: fewer than are kept

# A stranger's embeddings can take seconds: one at a time, beside the sessions.
_LATER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="whitening")


def _answer_ahead(
    features: str,
    ood: str,
    fit: str,
    classes: tuple[str, ...],
    rows: str,
    covariance: Any,
    walked: tuple[str, ...],
) -> None:
    inside = answers.members(features, ood, fit, classes)
    encode_once(answers.battery_answers(features, ood, inside, rows, covariance), walked)


def _of_audit(audit: Audit, fit: str, covariance: Any) -> tuple[Case, xr.Dataset]:
    case = answers.audit_case(audit, fit, covariance)
    return case, answers.page_answers(case)


class WhiteningPage(pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string, from which the page starts.
    shelf : Shelf, optional
        The session's own embeddings, in its ``audits``.

    Examples
    --------
    >>> page = WhiteningPage("?features=resnet-fashion&ood=Sneaker&fit=all")
    >>> page.case.regime, bool(page.answer().auroc[0] < 0.5)
    ('leak', True)
    """

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        self.shelf = shelf if shelf is not None else Shelf()
        self.state = WhiteningState()
        self.state.offer(self.shelf.audits)
        if self.shelf.audits and "features=" not in query and "setting=" not in query:
            query = f"{query}&features={self.shelf.audits[-1].name}"
        self.told: list[str] = []
        self.state.read(query)
        self.shelf.hear(self.state, "whitening", TITLE)
        super().__init__(**params)
        self._busy = False
        self._alert = markup("", css="p { margin-top: 4px }")
        self._own: dict[Any, tuple[Case, xr.Dataset]] = {}
        self._coming: set[Any] = set()
        try:
            answer = self._answers()
        except leakviz.InputError as error:
            self.told.append(f"This fit set cannot be had: {error}.")
            self.state.fit = ALL
            answer = self._answers()
        self._case, table = answer or self._meanwhile()
        self._shown = self._key() if answer else None
        self.live = self._make_live(table)
        self._settle()
        self._say()
        self._root: pn.Column | None = None
        self._menus: dict[str, pn.widgets.Select] = {}
        self._boxes: pn.widgets.CheckBoxGroup | None = None
        self._ticks: pn.Column | None = None
        self._marks: pn.pane.HTML | None = None
        self.live.param.watch(self._released, "state")
        self.live.param.watch(self._reset, "resets")
        self.state.param.watch(self._follow, self.state.names())
        self.shelf.param.watch(self._audited, "audits")

    # ---- answers

    figure_state = dict.fromkeys(
        figures.FIGURES, ("features", "ood", "fit", "classes", "rows", "covariance", "alpha")
    )

    @property
    def subject(self) -> str:
        """What data the page shows."""
        audit = self.state.audit()
        return audit.title if audit else names.BACKBONE.get(self.state.features, self.state.features)

    @property
    def case(self) -> Case:
        """The fit set and the test rows that are shown."""
        return self._case

    def _key(self) -> tuple[Any, ...]:
        s = self.state
        return (s.features, s.ood, s.fit, tuple(s.classes) if s.fit == CHOSEN else (), s.rows, s.covariance)

    def _answers(self) -> tuple[Case, xr.Dataset] | None:
        """Return the case that the state names, and its table; None where it is on its way.

        Raises
        ------
        leakviz.InputError
            If there is no such fit set.
        """
        s = self.state
        audit = s.audit()
        if audit is None:
            inside = answers.members(s.features, s.ood, s.fit, s.classes)
            named = (s.features, s.ood, inside, s.rows, s.covariance)
            return answers.battery_case(*named), answers.battery_answers(*named)
        key = (audit.name, s.fit, s.covariance)
        document = pn.state.curdoc if pn.state.curdoc and pn.state.curdoc.session_context else None
        if key in self._own:
            return self._own[key]
        if document is None:  # a notebook, a test: nobody else waits
            self._own[key] = _of_audit(audit, s.fit, s.covariance)
            return self._own[key]
        if key in self._coming:
            return None
        self._coming.add(key)
        self.told.append(f"{audit.title} is on its way; until it is there, what is shown is as it was.")

        def later() -> None:
            try:
                found: Any = _of_audit(audit, key[1], key[2])
            except leakviz.InputError as error:
                found = error
            document.add_next_tick_callback(partial(self._arrived, key, found))

        _LATER.submit(later)
        return None

    def _arrived(self, key: tuple[str, str, Any], found: Any) -> None:
        """Show a case of a user's embeddings, if it is still the one that is asked for."""
        s = self.state
        self._coming.discard(key)
        if isinstance(found, leakviz.InputError):
            self.told = [f"This fit set cannot be had: {found}."]
        elif any(a.name == key[0] for a in s.audits):
            self._own[key] = found
        with pn.io.hold():
            if (s.features, s.fit, s.covariance) == key and key in self._own:
                self._choose()
                self._settle()
                self._show_controls()
            self._say()

    def _meanwhile(self) -> tuple[Case, xr.Dataset]:
        """Return what is shown until a user's embeddings are whitened."""
        backbone = batteries.computed().backbones[0]
        ood = next(iter(next(iter(answers.targets(backbone).values()))))
        named = (backbone, ood, answers.members(backbone, ood, ALL, ()), "all", "one-class")
        return answers.battery_case(*named), answers.battery_answers(*named)

    def answer(self) -> xr.Dataset:
        """Return the core's answer at the present alpha, as `leakviz.sweep_shrinkage` and
        `leakviz.whitening_spectrum` give it.
        """
        case, alpha = self._case, [self.alpha]
        asked: dict[str, Any] = {"alphas": alpha, "covariance": case.covariance, "singular": "nan"}
        if alpha == [0.0]:
            asked["alphas"] = [0.0, 1.0]  # a lone alpha without an answer is refused
        spectrum = leakviz.whitening_spectrum(case.fit, case.ood_test, **asked)
        sweep = leakviz.sweep_shrinkage(case.fit, case.id_test, case.ood_test, **asked)
        return xr.merge(
            [spectrum, sweep[["auroc", "low", "high", "sign_agnostic"]]], combine_attrs="override"
        ).isel(alpha=slice(1))

    @property
    def alpha(self) -> float:
        """The present alpha."""
        return self.live.at()["value"].item()

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present state.

        Parameters
        ----------
        name : {"auroc", "histograms", "spectrum", "budget", "cumulated"}
        """
        case = self._case
        asked: dict[str, Any] = {
            "alphas": answers.stops(case.ledoit_wolf),
            "covariance": case.covariance,
            "singular": "nan",
        }
        stop = self.live.state["alpha"]
        told = {"ood": case.ood_name, "fit_set": case.fit_name, "covariance": case.covariance}
        if name == "auroc":
            sweep = leakviz.sweep_shrinkage(case.fit, case.id_test, case.ood_test, **asked)
            frame = sweep[["auroc", "low", "high", "sign_agnostic"]].to_dataframe().reset_index()
            now = np.arange(len(frame)) == stop
            return frame.assign(**told, ledoit_wolf=frame["alpha"] == case.ledoit_wolf, shown=now)
        if name == "histograms":
            counts = leakviz.score_histograms(
                case.fit, case.id_test, case.ood_test, n_bins=figures.BINS, **asked
            )
            return counts.isel(alpha=stop).to_dataframe().reset_index(drop=True).assign(**told)
        if name not in figures.FIGURES:
            raise ValueError(f"no figure is called {name!r}; there are {', '.join(figures.FIGURES)}")
        spectrum = leakviz.whitening_spectrum(case.fit, case.ood_test, **asked).isel(alpha=stop)
        columns = {
            "spectrum": ["eigenvalue"],
            "budget": ["signal_mass", "budget"],
            "cumulated": ["cumulated_signal_mass", "cumulated_budget"],
        }[name]
        frame = spectrum[columns].to_dataframe().reset_index()
        if name == "spectrum":
            alpha = frame["alpha"]
            frame["shrunk"] = (1 - alpha) * frame["eigenvalue"] + alpha * frame["eigenvalue"].mean()
        frame["direction"] += 1
        return frame.assign(**told)

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        """Return a figure at the present state as a HoloViews element.

        Parameters
        ----------
        name : {"auroc", "histograms", "spectrum", "budget", "cumulated"}
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        draw: dict[str, Callable[..., hv.Overlay]] = {
            "auroc": figures.auroc_curve,
            "histograms": figures.histograms,
            "spectrum": figures.eigenvalues,
            "budget": figures.budgets,
            "cumulated": figures.cumulated,
        }
        if name not in draw:
            raise ValueError(f"no figure is called {name!r}; there are {', '.join(draw)}")
        now = self.live.at()
        return draw[name](now, color=now["color"].item(), hooks=hooks, backend=backend)

    # ---- the hand

    def _make_live(self, table: xr.Dataset) -> Live:
        columns = [
            Column("band:source", "x", "band_x"),
            Column("band:source", "y", "band_y"),
            Column("curve:source", "place", "curve_x"),
            Column("curve:source", "auroc", "curve_y"),
            *(
                Column(f"{mark}:source", column, f"{mark}_{end}")
                for mark in ("now", "ledoit_wolf", "best")
                for column, end in (("place", "x"), ("auroc", "y"))
            ),
            *(
                Column(f"{kind}:source", column, variable)
                for kind in ("id", "ood")
                for column, variable in (
                    ("left", "bin_left"),
                    ("right", "bin_right"),
                    ("top", f"{kind}_share"),
                )
            ),
            *(
                Column(f"{figure}_{end}:source", side, f"{end}_{side}")
                for figure in ("spectrum", "budget", "cumulated")
                for end in ("top", "bottom")
                for side in ("left", "right")
            ),
        ]
        lines = {
            "eigenvalue": ("end", "end"),
            "shrunk": ("end", "end"),
            "mass_sum": ("end", "end"),
            "budget_sum": ("end", "end"),
            "mass": ("direction", "middle"),
            "budget": ("direction", "middle"),
        }
        for layer, (column, variable) in lines.items():
            columns.append(Column(f"{layer}:source", column, variable))
            columns.append(Column(f"{layer}:source", "share" if column == "direction" else layer, layer))
        ranges = {
            "auroc": {"y": "area"},
            "histograms": {"x": "distance"},
            "spectrum": {"x": "directions", "y": "eigen"},
            "budget": {"x": "directions"},
            "cumulated": {"x": "directions"},
        }
        attributes = [
            Attribute("now_line:glyph", "location", "now_line"),
            Attribute("histograms:y_range", "end", "share_end"),
            Attribute("histograms:y_range", "reset_end", "share_end"),
            *(
                Attribute(f"{figure}:{axis}_range", f"{reset}{end}", f"{variable}_{end}")
                for figure, axes in ranges.items()
                for axis, variable in axes.items()
                for end in ("start", "end")
                for reset in ("", "reset_")
            ),
            Attribute("band:glyph", "fill_color", "color"),
            *(
                Attribute(f"{layer}:glyph", "line_color", "color")
                for layer in ("curve", "shrunk", "budget_sum")
            ),
            *(
                Attribute(f"{mark}:glyph", "line_color", "color")
                for mark in ("now", "ledoit_wolf", "best", "budget")
            ),
            *(Attribute(f"{layer}:glyph", "fill_color", "color") for layer in ("now", "ood", "budget")),
        ]
        at = self._stops(table)
        return Live(
            table,
            sliders=[
                Slider(
                    "alpha",
                    "alpha",
                    "shrinkage, 0 to 1; default Ledoit-Wolf",
                    marks=at["marks"]["alpha"],
                )
            ],
            columns=columns,
            attributes=attributes,
            grips=[Tap("auroc", x="alpha")],
            start=at["start"],
            labels=at["labels"],
            sizing_mode="stretch_width",
            margin=0,
            styles={"flex": "0 1 340px"},
        )

    def _stops(self, table: xr.Dataset) -> dict[str, Any]:
        """Return where alpha starts, what its stops are called, and which are marked on the track."""
        places, values = table["alpha"].values, table["value"].values
        own, best = table.attrs["own"], table.attrs["best"]
        told = [answers.number(v) + (" (Ledoit-Wolf)" if i == own else "") for i, v in enumerate(values)]
        marks = (
            (float(places[own]), "Ledoit-Wolf"),
            (float(places[best]), "best, not available without labels"),
        )
        return {
            "start": {"alpha": float(places[own])},
            "labels": {"alpha": told},
            "marks": {"alpha": marks},
        }

    def _settle(self) -> None:
        """Move the hand to the state."""
        alpha = self.state.alpha
        if alpha == LEDOIT_WOLF:
            self.live.state = {**self.live.state, **self.live.starts}
        else:
            self.live.go(alpha=float(figures.place(float(alpha))))

    def _released(self, event: Any) -> None:
        """Take over where the hand let go."""
        self._busy = True
        try:
            table = self.live.answers
            stop = self.live.state["alpha"]
            own = stop == table.attrs["own"]
            self.state.alpha = LEDOIT_WOLF if own else answers.number(table["value"].values[stop])
        finally:
            self._busy = False

    def _reset(self, event: Any) -> None:
        """Return to the start: of the user's own embeddings, where they are shown."""
        self.state.read(urlencode({"features": self.state.features}) if self.state.audit() else "")

    def _follow(self, *events: Any) -> None:
        changed = {e.name for e in events}
        with pn.io.hold():
            if "features" in changed:
                self.state.suit(self.state.features)
            if self._key() != self._shown:
                self._choose()
            if not self._busy:
                self._settle()
                self._show_controls()
            self._say()

    def _choose(self) -> None:
        """Show the case that the state names, or say why there is none and keep what there was."""
        try:
            answer = self._answers()
        except leakviz.InputError as error:
            self.told = [f"{str(error)[:1].upper()}{str(error)[1:]}. What is shown is as it was."]
            return
        if answer is None:
            return
        self._case, table = answer
        self._shown = self._key()
        self.live.update_answers(table, **self._stops(table))
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Have worked out, in the app, what the menus can ask for next."""
        s = self.state
        if s.audit() is not None or not (pn.state.curdoc and pn.state.curdoc.session_context):
            return
        now = {"ood": s.ood, "fit": s.fit, "rows": s.rows, "covariance": s.covariance}
        single, *others = map(list, answers.targets(s.features).values())
        more = [{name: v} for name in ("fit", "rows", "covariance") for v in s.param[name].objects]
        wanted = [*({"ood": o} for o in single), *more, *({"ood": o} for group in others for o in group)]
        steps: dict[Any, Step] = {}
        for asked in ({**now, **change} for change in wanted[:_NEXT]):
            classes = tuple(s.classes) if asked["fit"] == CHOSEN else ()
            key = (s.features, asked["ood"], asked["fit"], classes, asked["rows"], asked["covariance"])
            steps[key] = partial(_answer_ahead, *key, self.live.walked)
        for features in batteries.computed().backbones:  # this one's are there; the others open a file
            found = [o for group in answers.targets(features).values() for o in group]
            ood = s.ood if s.ood in found else "Coat" if "Coat" in found else found[0]
            key = (features, ood, WITHOUT if s.fit == CHOSEN else s.fit, (), s.rows, s.covariance)
            steps[key] = partial(_answer_ahead, *key, self.live.walked)
        AHEAD.ask(steps)

    def _audited(self, event: Any) -> None:
        """Offer the session's new embeddings; the newest is shown at once."""
        new = [a for a in event.new if a not in event.old]
        kept = {a.name for a in event.new}
        self._own = {key: value for key, value in self._own.items() if key[0] in kept}
        with pn.io.hold():
            self.state.offer(event.new)
            if new:
                self.state.features = new[-1].name
            if self._key() != self._shown:
                self._choose()
            self._settle()
            self._show_controls()
            self._say()

    def _say(self) -> None:
        """Show what could not be had; what was said once goes with the next change."""
        self._alert.object = notes(self.told)
        self._alert.visible = bool(self.told)
        self.told = []

    # ---- the page

    def _heading(self) -> str:
        t = self.live.text
        said = "".join(f"<b>{t(f'say_{i}')}</b>" if i % 2 else t(f"say_{i}") for i in range(9))
        return (
            f'<div role="status" aria-live="polite" aria-atomic="true"><h1>{said}</h1></div>'
            f'<p class="note">{t("leak_says")}Ledoit-Wolf, which needs no labels, reaches {t("ledoit_wolf_says")} at alpha '
            f"{t('ledoit_wolf_at')}. The best, {t('best_says')} at {t('best_at')}, is not available without labels.</p>"
        )

    def _select(self, name: str, title: str, **params: Any) -> pn.widgets.Select:
        menu = pn.widgets.Select(
            label=title,
            margin=0,
            sizing_mode="stretch_width",
            stylesheets=[theme.FIELD_CSS, _LONG_CSS if name == "features" else _SELECT_CSS],
            **params,
        )
        menu.param.watch(lambda event: self._menu_chosen(name, event.new), "value")
        self._menus[name] = menu
        return menu

    def _options(self, name: str) -> dict[str, Any]:
        """Return what a menu offers and what it stands at."""
        s = self.state
        audit = s.audit()
        value = getattr(s, name)
        if name == "features":
            own: dict[str, str] = {}
            for a in reversed(s.audits):
                own[a.title if a.title not in own else f"{a.title} ({a.name})"] = a.name
            computed = {names.BACKBONE.get(b, b): b for b in batteries.computed().backbones}
            groups = {"your own": own, "computed here": computed}
            return {"groups": {k: v for k, v in groups.items() if v}, "value": value}
        if name == "ood":
            if audit is not None:
                return {
                    "groups": {"your own": {audit.ood_name or "the designated OOD rows": OWN}},
                    "value": value,
                }
            found = answers.targets(s.features)
            return {
                "groups": {title: {label: o for o, label in some.items()} for title, some in found.items()},
                "value": value,
            }
        told = {
            "fit": FITS,
            "rows": {r: f"{int(r):,}" if r != "all" else "all" for r in ROWS},
            "covariance": COVARIANCES,
        }[name]
        return {"options": {told[o]: o for o in s.param[name].objects}, "value": value}

    def _show_controls(self) -> None:
        if self._marks is not None:
            self._marks.object = self._marked()
        for name, menu in self._menus.items():
            menu.param.update(**self._options(name))
        if self._boxes is not None:
            classes = self.state.param["classes"].objects
            self._boxes.param.update(
                options=self._class_names(), value=[c for c in classes if c in self.state.classes]
            )
        if self._ticks is not None:
            self._ticks.visible = self.state.fit == CHOSEN

    def _class_names(self) -> dict[str, str]:
        return {names.ood_name("", c): c for c in self.state.param["classes"].objects}

    def _menu_chosen(self, name: str, value: Any) -> None:
        if value is not None and value != getattr(self.state, name):
            setattr(self.state, name, value)

    def _ticked(self, event: Any) -> None:
        if set(event.new) != set(self.state.classes):
            self.state.classes = [c for c in self.state.param["classes"].objects if c in event.new]

    def _controls(self) -> pn.Column:
        menus = [
            self._select("features", "features", **self._options("features")),
            self._select("ood", "OOD", **self._options("ood")),
            self._select("fit", "fit set, default without OOD", **self._options("fit")),
            self._select("rows", "rows, default all", **self._options("rows")),
            self._select("covariance", "covariance, default one-class", **self._options("covariance")),
        ]
        self._boxes = pn.widgets.CheckBoxGroup(
            options=self._class_names(),
            value=list(self.state.classes),
            inline=True,
            margin=0,
            stylesheets=[_CHECK_CSS],
        )
        self._ticks = pn.Column(
            markup('<p class="small">classes in the fit set; one that is called OOD leaks</p>'),
            self._boxes,
            visible=self.state.fit == CHOSEN,
            sizing_mode="stretch_width",
            margin=0,
        )
        self._boxes.param.watch(self._ticked, "value")
        self._marks = markup(self._marked(), css=_MARKS_CSS)
        return pn.Column(
            pn.Row(*menus, margin=0, sizing_mode="stretch_width", stylesheets=[_ROW_CSS]),
            self._ticks,
            pn.Row(self.live, self._marks, margin=0, sizing_mode="stretch_width", stylesheets=[_HAND_CSS]),
            self._lessons(),
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[_CONTROLS_CSS],
        )

    def _marked(self) -> str:
        """Return the buttons that move alpha to what is marked on its track."""
        live, table = self.live, self.live.answers
        own, best = (answers.number(table["value"].values[table.attrs[stop]]) for stop in ("own", "best"))
        return (
            f'<div class="marks"><span>marked on the track:</span>{live.button("alpha", table.attrs["own"], "Ledoit-Wolf")}'
            f"<span>{own}</span><span>best {best}, not available without labels</span>{live.reset()}</div>"
        )

    def _lessons(self) -> pn.Row:
        buttons = []
        for label, wanted in LESSONS:
            button = pn.widgets.Button(label=label, margin=0, stylesheets=[_LESSON_CSS])
            button.on_click(partial(self._learn, wanted))
            buttons.append(button)
        return pn.Row(
            markup('<p class="small">to see:</p>', css="p { line-height: 30px }", sizing_mode=None),
            *buttons,
            margin=0,
            sizing_mode="stretch_width",
            stylesheets=[_LESSONS_CSS],
        )

    def _learn(self, wanted: Mapping[str, Any], event: Any = None) -> None:
        """Go to a case from the beginning: what it does not name is as at the start."""
        with pn.io.hold():
            self.state.suit(wanted["features"])
            self.state.param.update(**{"covariance": "one-class", "alpha": LEDOIT_WOLF, **wanted})

    def _pane(self, name: str, hooks: dict) -> pn.pane.Bokeh:
        return figure_pane(
            ("whitening", name),
            self.live,
            lambda: self.figure(name, hooks=hooks),
            sizing_mode="stretch_both",
            margin=0,
        )

    def _card(self, name: str, hooks: dict, caption: str, *, height: int, extra: str = "") -> pn.Column:
        body = card(
            figures.FIGURES[name],
            self._pane(name, hooks),
            caption,
            links=downloads(
                f"whitening-{name}",
                lambda backend: self.figure(name, backend),
                lambda: self.data(name),
                size=(110, 75),
                page=self,
                of=name,
            ),
            height=height,
        )
        if extra:
            body.insert(1, markup(extra, css=_LEGEND_CSS))
        return body

    def _auroc(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list] = {
            "band": [live.tag("band", "source", "glyph")],
            "curve": [live.tag("curve", "source", "glyph")],
            "now_line": [live.tag("now_line", "glyph")],
            **{mark: [live.tag(mark, "source", "glyph")] for mark in ("now", "ledoit_wolf", "best")},
            "figure": [live.taps("auroc"), live.tag("auroc", "y_range")],
        }
        return self._card(
            "auroc",
            hooks,
            "Dot: this alpha. Diamond: Ledoit-Wolf. Triangle: best, not available without labels. Band: 95 % (DeLong). "
            f"{live.text('half_says')}Tap to move alpha. As {PAPER}, section 8; {live.text('source_says')}.",
            height=250,
        )

    def _histograms(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list] = {
            "id": [live.tag("id", "source")],
            "ood": [live.tag("ood", "source", "glyph")],
            "figure": [live.tag("histograms", "x_range", "y_range")],
        }
        return self._card(
            "histograms",
            hooks,
            f"Grey: ID test rows. Colour: {live.text('ood_says')} ({live.text('regime_says')}). {live.text('rows_say')}; "
            f"bins are the same at every alpha. The score, minus this distance, is equation 1 of {PAPER}.",
            height=250,
        )

    def _direction_hooks(
        self, figure: str, layers: tuple[str, ...], axes: tuple[str, ...]
    ) -> dict[str, list]:
        tag = self.live.tag
        return {
            **{layer: [tag(layer, "source", "glyph")] for layer in layers},
            **{end: [tag(f"{figure}_{end}", "source")] for end in ("top", "bottom")},
            "figure": [tag(figure, *axes)],
        }

    def _spectrum(self) -> pn.Column:
        return self._card(
            "spectrum",
            self._direction_hooks("spectrum", ("eigenvalue", "shrunk"), ("x_range", "y_range")),
            "Dashed: of the fit set. Solid: shrunk at this alpha, (1 − alpha) λ + alpha · mean λ. Shaded here and on the "
            f"right: the tenths with the most and the least variance. {self.live.text('directions_say')} {PAPER}, section 8.",
            height=230,
        )

    def _budget(self) -> pn.Column:
        return self._card(
            "budget",
            self._direction_hooks("budget", ("mass", "budget"), ("x_range",)),
            "Rings: share of the signal, the squared shift between the means of OOD rows and fit set; Euclidean distance "
            f"spends its budget alike. Dots: Mahalanobis, the same divided by the shrunk eigenvalue. {PAPER}, section 8.",
            height=230,
        )

    def _cumulated(self) -> pn.Column:
        return self._card(
            "cumulated",
            self._direction_hooks("cumulated", ("mass_sum", "budget_sum"), ("x_range",)),
            "Dashed: Euclidean, which is the signal. Solid: Mahalanobis at this alpha. Where the solid line climbs in the "
            f"right shade, budget goes where little signal is. {PAPER}, Observation 3.",
            height=230,
        )

    def _numbers(self) -> str:
        t = self.live.text

        def row(label: str, name: str, small: str = "", unit: str = "") -> str:
            return (
                f'<tr><th scope="row">{label}{f"<small>{small}</small>" if small else ""}</th>'
                f'<td class="n">{t(f"{name}_says")}{unit}</td><td class="n m">{t(f"{name}_interval")}</td></tr>'
            )

        return (
            '<h2>In numbers <span class="aside">95 % interval</span></h2>'
            '<table aria-label="whitening in numbers, with 95 % intervals">'
            + row("AUROC", "auroc", f"sign-agnostic: {t('agnostic_says')}")
            + row("at Ledoit-Wolf’s alpha", "ledoit_wolf")
            + row("at the best alpha", "best", "not available without labels")
            + row("signal in the top tenth", "top_signal_mass", "of the directions, by variance")
            + row("budget of the bottom tenth", "bottom_budget", f"Euclidean: {t('bottom_signal_mass_says')}")
            + row("its excess over Euclidean", "excess", "percentage points")
            + row("condition number", "condition_number", "largest over smallest eigenvalue")
            + "</table>"
        )

    def _cautions(self) -> pn.pane.HTML:
        t = self.live.text
        return markup(
            "<h2>What this page cannot tell</h2>"
            f'<p class="note">The fit set is {t("fit_says")}. {t("note_says")}</p>'
            '<p class="note">Intervals of AUROC and budget: other test rows, the same fit set. Of the condition number: '
            "another fit set of as many rows, a large-sample formula, given from ten rows a direction on.</p>"
            '<p class="note">Where little budget goes to the bottom tenth, alpha matters little; where much does, shrinking '
            "helps only if no separation is there. The budget speaks of the mean of the OOD rows alone: rows that spread "
            "around the fit set’s mean can be far away on directions that carry no signal.</p>",
            css="p { margin-top: 6px !important }",
        )

    def __panel__(self) -> pn.Column:
        """Build the page once; in the app, what is not seen first follows when the rest is there."""
        if self._root is None:
            wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
            first = pn.Column(self._auroc(), self._histograms(), stylesheets=[_THREE_CSS], **wide)
            root = self._root = pn.Column(
                link_note(self.state),
                self._alert,
                headline(self.state, self._heading, lambda: self.subject, css=_BANNER_CSS),
                self._controls(),
                first,
                stylesheets=[":host { gap: 16px }"],
                **wide,
            )
            first.append(markup(self._numbers(), css=_TABLE_CSS))

            def rest() -> None:
                second = [self._spectrum(), self._budget(), self._cumulated()]
                root.extend([pn.Column(*second, stylesheets=[_THREE_CSS], **wide), self._cautions()])
                self._look_ahead()

            self.live.when_seen(rest)
        return self._root
