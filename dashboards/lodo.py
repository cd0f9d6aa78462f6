"""The page of held-out sources: how much of a score is the benchmark, where it comes from, which features carry it.

Source: arXiv 2602.14161. The core answers, `dashboards.lodo_answers` puts the answers into rows, texts and
tables, the figures draw, this page arranges.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

import holoviews as hv
import pandas as pd
import panel as pn
import param
import xarray as xr

from dashboards import lodo_answers as answers
from dashboards import theme
from dashboards.ahead import AHEAD, Step
from dashboards.cards import card, downloads, helped
from dashboards.figures import lodo as figures
from dashboards.figures.lodo import Picture
from dashboards.listing import Listing
from dashboards.live import Attribute, Column, Live, Slider, Tap, encode_once
from dashboards.lodo_answers import (
    BASELINES,
    CASES,
    CLASSIFIERS,
    FIRING,
    METRICS,
    OWN,
    PUBLISHED,
    THRESHOLDS,
    Subject,
)
from dashboards.lodo_own import OwnTable, penguins
from dashboards.marks import LEGEND_CSS, mark
from dashboards.markup import demoted, link_note, markup, meanwhile
from dashboards.shelf import Shelf
from dashboards.state import LONGEST, PageState, asked_of, other_file
from dashboards.stencil import figure_pane
from leakviz.errors import InputError
from leakviz.lodo.cases import GIVEN
from leakviz.lodo.fits import UNDIVIDED
from leakviz.lodo.retention import QUADRANTS
from leakviz.lodo.words import retention_sentence

TITLE = "Sources"
PAPER = '<a href="https://arxiv.org/abs/2602.14161">arXiv 2602.14161</a>'
SCOPES = {"all": "all sources", "mixed": "mixed sources only"}
_STRIP = (
    f'<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><line x1="8" y1="2" x2="8" y2="14" '
    f'stroke="{theme.QUIET_COLOR}" stroke-width="4"></line></svg>'
)
ORDERS = {"top": 1, "own": 4, "page": 6, "below": 9}

_UNSHIPPED = "The features behind these scores are not shipped, so {}: choose “logistic, balanced”."
# What stands where a case has nothing to draw, by section.
_NOTHING = {
    "pairs": "There are no matrices here: no score of a row is public, so no pair of rows can be compared.",
    "known": "The name alone, the source’s identity and the controls need rows, and those are not public.",
    "retention": {
        PUBLISHED: "The printed features belong to the logistic model on SAE features: choose it to see what its "
        "coefficients keep.",
        "": "Retention compares coefficients, so it is measured on the balanced logistic model: choose it.",
        "minilm": _UNSHIPPED.format("there are no coefficients to compare"),
    },
    "explanation": {
        PUBLISHED: "The published rows are not public, so there is none to explain.",
        "": "Attributions are of the balanced logistic model: choose it.",
        **dict.fromkeys(GIVEN, _UNSHIPPED.format("no row can be explained")),
    },
    "ablation": {
        PUBLISHED: "Rows and features are not public, so nothing can be fitted without the shortcuts. The paper reports a "
        "change of 0.001 in the pooled AUROC (Table 13), for one list of shortcuts that has seen every source.",
        "": "The ablation takes the shortcuts of the balanced logistic model away: choose “logistic, balanced”.",
        **dict.fromkeys(GIVEN, _UNSHIPPED.format("nothing can be fitted without the shortcuts")),
    },
}


@dataclass(frozen=True)
class _Blank:
    """Stands for a `Live` where a figure is drawn that others write into."""

    key: str
    answers: None = None
    state: tuple = ()

    def apply(self, figure: Any) -> None:
        """Leave the figure as it was drawn."""


class LodoState(PageState):
    """What a link to this page carries."""

    chooses = ("case",)
    brought = "lodo"
    stops = {"threshold": THRESHOLDS, "firing": FIRING}

    case: Any = param.Selector(default="harm_scored_responses", objects=list(CASES), label="case")
    model: Any = param.Selector(default="logistic", objects=["logistic"], label="classifier")
    metric: Any = param.Selector(default="auc", objects=list(METRICS), label="metric")
    baseline: Any = param.Selector(default="cv", objects=list(BASELINES), label="baseline")
    scope: Any = param.Selector(default="all", objects=list(SCOPES), label="pairs of")
    row: Any = param.Integer(default=0, bounds=(0, None), label="row")
    threshold: Any = param.Number(default=0.5, label="retention threshold")
    firing: Any = param.Number(default=1.5, label="firing ratio")

    def __init__(self, **params: Any):
        super().__init__(**params)
        self.own: dict[str, Subject] = {}
        self.fresh: dict[tuple[str, str], Subject] = {}  # cases that ship, recomputed in this session
        self.told = self._suit_first(self.case, self.model)

    def offer(self, subject: Subject) -> None:
        """Take what was computed in this session as what can be chosen."""
        if subject.case.startswith(OWN):
            self.own = {**{k: v for k, v in self.own.items() if k != subject.case}, subject.case: subject}
        else:
            self.fresh = {**self.fresh, (subject.case, subject.model): subject}
        self.param["case"].objects = [*reversed(self.own), *CASES]

    def subject(self) -> Subject:
        """Return the case and classifier that are chosen."""
        return self._subject_of(self.case, self.model)

    def _subject_of(self, case: str, model: str) -> Subject:
        if case in self.own:
            return self.own[case]
        return self.fresh.get((case, model)) or answers.shipped(case, model)

    def suit(self, case: str, model: str = "") -> None:
        """Offer the classifiers, metrics and baselines of a case; keep of the state what is among them.

        Raises
        ------
        leakviz.InputError
            If a kept result does not match its data; nothing is changed then.
        """
        models = [self.own[case].model] if case in self.own else answers.classifiers(case)
        subject = self._subject_of(case, model if model in models else models[0])
        with param.discard_events(self):
            self.case = case
            self._offer("model", models, model)
            self._offer("metric", subject.metrics, self.metric)
            self._offer("baseline", subject.baselines, self.baseline)
            self.row = min(self.row, max(subject.n_rows - 1, 0))

    def _suit_first(self, case: str, model: str) -> list[str]:
        """Suit a case, or the first that can be shown; return what is wrong with those before it."""
        told: list[str] = []
        for other in dict.fromkeys((case, *CASES)):
            try:
                self.suit(other, model if other == case else "")
            except InputError as error:
                told.append(self.refused(other, error))
            else:
                break
        return told

    def refused(self, case: str, error: InputError) -> str:
        """Say that a case cannot be shown, and why."""
        return f"“{self.title('case', case)}” is not shown: {error}."

    def _offer(self, name: str, objects: list[str], value: str) -> None:
        self.param[name].objects = objects
        self.param[name].default = objects[0]
        setattr(self, name, value if value in objects else objects[0])

    def title(self, name: str, value: Any) -> str:
        """Return what a value is called on the screen."""
        told = {
            "case": CASES,
            "model": CLASSIFIERS,
            "metric": METRICS,
            "baseline": BASELINES,
            "scope": SCOPES,
        }
        return told.get(name, {}).get(value, str(value))

    def _read(self, query: str) -> list[str]:
        asked = asked_of(query)
        told = []
        case = asked.get("case", self.param["case"].default)[:LONGEST]
        if case not in self.param["case"].objects:
            if self.waits_for(case, "case"):
                asked = {}  # the rest is about what is not here
            else:
                told.append(f"The link asks for case “{case}”, which is not here; the default is shown.")
            case = asked["case"] = self.param["case"].default
        before = {name: getattr(self, name) for name in self.names()}
        if refused := self._suit_first(case, asked.get("model", "")):
            told += refused
            asked = {"case": self.case}  # the rest is about what cannot be shown
        told += super()._read(urlencode(asked))
        # What was changed to suit the case has not been told to anybody.
        self.param.trigger(
            *(n for n in ("case", "model", "metric", "baseline", "row") if before[n] != getattr(self, n))
        )
        return told

    def _read_one(self, name: str, text: str) -> tuple[Any, str]:
        if name == "row":
            last = max(self.subject().n_rows - 1, 0)
            if text.isascii() and text.isdigit() and int(text) <= last:
                return int(text), ""
            return (
                0,
                f"The link asks for row “{text[:40]}”; there are rows 0 to {last:,}, and row 0 is shown.",
            )
        return super()._read_one(name, text)


_BANNER_CSS = (
    "h1 { max-width: 1100px } .note { max-width: none } .note + .note { margin-top: 3px } .trap { margin-top: 6px }"
    + theme.css(".trap { color: $alarm; max-width: none }")
)
_ROOT_CSS = ":host { display: flex; flex-direction: column; gap: 18px }"
_CONTROLS_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)) auto; gap: 8px 22px; border-top: 1px solid $hair; border-bottom: 1px solid $hair; padding: 8px 0 10px; align-items: start }
@media (max-width: 1000px) { :host { grid-template-columns: repeat(2, minmax(0, 1fr)) } }
"""
)
_BUTTONS_CSS = theme.css(
    """
:host { display: flex; flex-direction: column; gap: 4px; align-items: flex-start; padding-top: 19px; width: auto }
@media (max-width: 1000px) { :host { padding-top: 0; grid-column: 1 / -1; flex-direction: row; flex-wrap: wrap } }
"""
)
_BUTTON_CSS = theme.css(
    """
:host { width: auto; flex: 0 0 auto }
.bk-btn, .bk-btn.bk-btn-default { background: none !important; border: 1px solid $hair !important; box-shadow: none; color: $ink !important; font: 13px/1.4 $font; border-radius: 6px; padding: 4px 10px; min-height: 30px; text-transform: none }
.bk-btn:hover { border-color: $muted !important }
.bk-btn:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
"""
)
_SECTION_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 400px); gap: 14px 40px; align-items: start }
@media (max-width: 1000px) { :host { grid-template-columns: minmax(0, 1fr) } }
"""
)
_PAIRS_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 14px 30px; align-items: start }
@media (max-width: $narrow) { :host { grid-template-columns: minmax(0, 1fr) } }
"""
)
_TABLE_CSS = theme.css(
    """
td, th { white-space: normal; vertical-align: top; padding: 4px 0 }
th small { display: block; font-size: 12px; color: $muted }
td { white-space: nowrap }
h2 { margin-bottom: 4px }
.quads { margin: 2px 0 6px }
.quads td, .quads thead th { padding: 5px 8px; text-align: right }
.quads thead th { color: $muted; font-size: 12.5px }
.lead { font-size: 16px; margin: 0 0 8px; line-height: 1.45 }
.lead b { color: $accent; font-weight: 650 }
p + p { margin-top: 6px }
p + table, table + p { margin-top: 8px }
ul { margin: 4px 0 0; padding: 0 0 0 18px; font-size: 14px; max-width: 980px }
li { padding: 2px 0 } li::marker { color: $muted }
"""
)
_HEAD_CSS = theme.css(
    "h2 { font-size: 18px; letter-spacing: -.01em } .note { max-width: 900px; font-size: 14px } :host { border-top: 1px solid $hair; padding-top: 14px; margin-top: 6px }"
)
_SWITCH_CSS = theme.css(
    """
:host { width: auto }
.bk-btn-group { gap: 6px }
.bk-btn, .bk-btn.bk-btn-default { background: none !important; border: 1px solid $hair !important; border-radius: 6px !important; box-shadow: none; color: $ink !important; font: 13px/1.4 $font; padding: 4px 10px; min-height: 30px; text-transform: none }
.bk-btn.bk-active { border-color: $accent !important; color: $accent !important; box-shadow: inset 0 0 0 1px $accent !important }
.bk-btn:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
"""
)
# Texts that are seen first.
_FIRST = ("heading", "gap_legend", "gap_caption", "numbers")
_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}


class LodoPage(pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string, from which the page starts.
    shelf : Shelf, optional
        The session's; this page takes nothing from it.

    Examples
    --------
    >>> page = LodoPage("?case=prompt_attacks&model=logistic-unweighted")
    >>> bool(page.answer().noise_mean < 0.5)
    True
    """

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        super().__init__(**params)
        self.state = LodoState()
        self.state.read(query)
        self._busy = False
        self._document = pn.state.curdoc
        self._subject = self.state.subject()
        self._panes: dict[str, pn.pane.Bokeh] = {}
        self._models: dict[str, dict[str, Any]] = {}
        self._cards: dict[str, pn.Column] = {}
        self._boxes: dict[str, Any] = {}
        self._menus: dict[str, pn.widgets.Select] = {}
        self._texts: dict[str, pn.pane.HTML] = {}
        self._root: pn.Column | None = None
        self.live = self._make_live()
        self.quadrants = self._make_quadrants()
        self._settle()
        self.own = OwnTable(self.take, rise=self._raise_own)
        self.live.param.watch(self._released, "state")
        self.quadrants.param.watch(self._released, "state")
        self.state.param.watch(self._follow, self.state.names())
        self.state.param.watch(self._told_anew, "told", precedence=3)

    # ---- answers

    figure_state = {
        "gap": ("model", "metric", "baseline"),
        "known": ("model", "baseline", "scope"),
        "left-out": ("model", "baseline", "scope"),  # of the same rows
        "composition": (),
        "retention": ("model", "threshold"),
        "ablation": ("model",),
        "explanation": ("model", "row"),
    }

    @property
    def subject(self) -> str:
        """What data the page shows."""
        s = self._subject
        return s.title if s.case.startswith(OWN) else CASES[s.case]

    @property
    def shown(self) -> Subject:
        """The case and the classifier that are shown."""
        return self._subject

    def answer(self) -> xr.Dataset:
        """Return the core's answer, as `leakviz.lodo` or `leakviz.load_published_lodo` gives it."""
        return self._subject.result

    def sweep(self) -> xr.Dataset:
        """Return the core's answer at the present stops, as `leakviz.sweep_retention` gives it.

        Raises
        ------
        ValueError
            If the case has no retention.
        """
        kept = self._subject.retention
        if kept is None:
            raise ValueError("this case has no retention")
        import leakviz

        at: dict[str, Any] = {"thresholds": [self.state.threshold], "firing_ratios": [self.state.firing]}
        return leakviz.sweep_retention(kept, **at)

    def _made(self, name: str, key: tuple, make: Callable[[], Any]) -> Any:
        """Return what is made of the present subject, once per process."""
        return answers.kept_of(self._subject, (name, *key), make)

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present state.

        Parameters
        ----------
        name : {"gap", "known", "left-out", "composition", "retention", "ablation", "explanation"}

        Raises
        ------
        ValueError
            If the case has no such figure.
        """
        rows = self._data(name)
        if rows is None:
            raise ValueError(f"the case {self.state.case!r} with {self.state.model!r} has no figure {name!r}")
        if name == "retention":
            return rows.assign(shortcut=rows["retention"] < self.state.threshold)
        return rows.copy()  # the others are every session's

    def _data(self, name: str) -> pd.DataFrame | None:
        s, state = self._subject, self.state
        if name == "gap":
            key: tuple = (state.metric, state.baseline)
            return self._made(name, key, lambda: answers.gap_rows(s, state.metric, state.baseline))
        if name in ("known", "left-out"):
            protocol = state.baseline if name == "known" else "lodo"
            return self._made(
                "pairs",
                (protocol, state.scope, state.baseline),
                lambda: answers.pair_rows(s, protocol, state.scope, state.baseline),
            )
        if name == "composition":
            return self._made(name, (), lambda: answers.composition_rows(s))
        if name == "retention":
            return self._made(name, (), lambda: answers.feature_rows(s))
        if name == "ablation":
            return self._made(name, (), lambda: answers.ablation_rows(s))
        if name == "explanation":
            return self._made(name, (state.row,), lambda: answers.explanation_rows(s, state.row))
        raise ValueError(f"no figure is called {name!r}; there are {', '.join(figures.FIGURES)}")

    def _picture(self, name: str) -> Picture | None:
        rows = self._data(name)
        if rows is None:
            return None
        state = self.state
        if name == "gap":
            return figures.gap_picture(rows, metric=METRICS[state.metric], most=answers.MOST_SOURCES)
        if name == "ablation":
            return figures.ablation_picture(rows)
        if name in ("known", "left-out"):
            of = self._data("composition")
            assert of is not None
            names = dict(zip(of["source"], of["name"], strict=True))
            sizes = dict(zip(of["source"], of["n"], strict=True))
            return figures.matrix_picture(rows, names, sizes, most=answers.MOST_IN_MATRIX)
        if name == "composition":
            return figures.composition_picture(rows, most=answers.MOST_SOURCES)
        if name == "retention":
            kept = self._subject.retention
            assert kept is not None
            return figures.retention_picture(
                answers.points_of(self._subject),
                [*map(self._subject.name_of, answers.argmin_order(kept))],
                threshold=state.threshold,
            )
        assert self._subject.attributions is not None
        return figures.explanation_picture(rows, k=int(self._subject.attributions.attrs["k"]))

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        """Return a figure at the present state as a HoloViews element.

        Parameters
        ----------
        name : {"gap", "known", "left-out", "composition", "retention", "ablation", "explanation"}
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.

        Raises
        ------
        ValueError
            If the case has no such figure.
        """
        picture = self._picture(name)
        if picture is None:
            self.data(name)
            raise AssertionError
        return figures.draw(name, picture, line=self.state.threshold, hooks=hooks, backend=backend)

    # ---- the hand

    def _make_live(self) -> Live:
        return Live(
            answers.retention_answers(self._subject),
            sliders=[
                Slider(
                    "retention_threshold",
                    "retention threshold",
                    "r; a feature that keeps less is a shortcut; default 0.50",
                )
            ],
            columns=[
                Column("retention.points:source", "fill", "shortcut"),
                Column("retention.shade:source", "right", "shade_right"),
            ],
            attributes=[Attribute("retention.line:glyph", "location", "line")],
            grips=[Tap("retention", x="retention_threshold")],
            start={"retention_threshold": 0.5},
            labels={"retention_threshold": [f"{v:.2f}".replace("-", "−") for v in THRESHOLDS]},
            **_WIDE,
        )

    def _make_quadrants(self) -> Live:
        return Live(
            answers.quadrant_answers(self._subject),
            sliders=[
                Slider(
                    "firing_ratio",
                    "firing ratio",
                    "of the two classes; from here on a feature is specific; default 1.50",
                )
            ],
            start={"firing_ratio": 1.5, "retention_threshold": 0.5},
            labels={
                "firing_ratio": [f"{v:.2f}" for v in FIRING],
                "retention_threshold": [f"{v:.2f}" for v in THRESHOLDS],
            },
            leader=self.live,
            **_WIDE,
        )

    def _settle(self) -> None:
        """Move the hands to the state."""
        self.live.go(retention_threshold=self.state.threshold)
        self.quadrants.go(retention_threshold=self.state.threshold, firing_ratio=self.state.firing)

    def _released(self, event: Any) -> None:
        """Take over where a hand let go."""
        if self._busy:
            return
        self._busy = True
        try:
            # The quadrants follow in the browser: to move them from here would undo what the hand did meanwhile.
            threshold, firing = self.live.value("retention_threshold"), self.quadrants.value("firing_ratio")
            self.state.param.update(threshold=threshold, firing=firing)
        finally:
            self._busy = False

    def take(self, subject: Subject) -> None:
        """Show what was computed in this session, and offer it from now on; a link may have waited for it."""
        waited = self.state.missing
        self._take(subject)
        if subject.case in waited:
            self.state.arrive()
        elif waited and subject.case.startswith(OWN):
            self.state.told = [other_file(subject.case, waited)]

    def _take(self, subject: Subject) -> None:
        self.state.offer(subject)
        again = subject.case == self.state.case and subject.model == self.state.model
        with pn.io.hold():
            if again:
                self._choose()
                self._show()
            else:
                self.state.case = subject.case  # first: which classifiers there are depends on it
                self.state.model = subject.model

    def _follow(self, *events: Any) -> None:
        changed = {e.name for e in events}
        with pn.io.hold():
            if changed & {"case", "model"} and not self._suits():
                return
            other = self.state.subject() is not self._subject
            if other:
                self._choose()
            if not self._busy:
                self._settle()
            if other:
                self._show()
            elif changed - {"threshold", "firing"}:
                self._show(changed)

    def _suits(self) -> bool:
        """Suit the case that was chosen, or say why it cannot be shown and go back."""
        state, shown = self.state, self._subject
        try:
            state.suit(state.case, state.model)
        except InputError as error:
            told = state.refused(state.case, error)
            state.suit(shown.case, shown.model)
            state.told = [told]
            self._show_menus()
            return False
        return True

    def _choose(self) -> None:
        """Show another case or classifier: its tables go to the browser after its figures."""
        self._subject = self.state.subject()
        self._open_more()

    def _open_more(self) -> None:
        """Have worked out, in the app, what the menus can ask for next."""
        if self._root is None or not (pn.state.curdoc and pn.state.curdoc.session_context):
            return
        s, state = self._subject, self.state
        steps: dict[Any, Step] = {}
        walked = (self.live.walked, self.quadrants.walked)
        here = [] if s.case in state.own else [(s.case, model) for model in answers.classifiers(s.case)]
        others = [(case, answers.classifiers(case)[0]) for case in CASES if case != s.case]
        # What is shown of another case stays as it is chosen here, where that case has it.
        shown = {"metric": state.metric, "baseline": state.baseline}
        wanted = [{"case": case, "model": model, **shown} for case, model in [*others, *here]]
        if s.case not in state.own and (s.case, s.model) not in state.fresh:
            wanted = [{"case": s.case, "model": s.model, "baseline": b} for b in s.baselines] + wanted
        for asked in wanted:
            query = urlencode(asked)
            if query not in _OPENED:
                steps["lodo", query] = partial(next, _open(query, walked), False)
        AHEAD.ask(steps)

    def _show(self, changed: set[str] | None = None) -> None:
        """Write what has changed into the page: of another case what is seen first at once, the rest in the next turn."""
        if changed is None:
            self._show_figures("gap")
            self._show_texts(*_FIRST)
            self._show_menus()
            document = self._document
            if document is not None and document.session_context and self._root is not None:
                document.add_next_tick_callback(self._show_rest)
            else:
                self._show_rest()
            return
        moved = {
            "gap": {"metric", "baseline"},
            "known": {"baseline", "scope"},
            "left-out": {"baseline", "scope"},
            "explanation": {"row"},
        }
        self._show_figures(*(name for name, by in moved.items() if changed & by))
        self._show_texts(*self._writers())
        self._show_menus()
        self._show_parts()

    def _show_rest(self) -> None:
        """Write the rest of a case: figures first, then the tables that move them."""
        with pn.io.hold():
            self._show_figures(*(name for name in figures.FIGURES if name != "gap"))
            self.live.update_answers(answers.retention_answers(self._subject))
            self.quadrants.update_answers(answers.quadrant_answers(self._subject))
            self._settle()
            self._show_texts(*(name for name in self._writers() if name not in _FIRST))
            self._show_parts()
            self._list()

    def _show_figures(self, *names: str) -> None:
        for name in names:
            if name in self._panes:
                self._show_figure(name)

    def _show_texts(self, *names: str) -> None:
        writers = self._writers()
        for name in names:
            pane = self._texts.get(name)
            if pane is None:
                continue
            text = writers[name]()
            if pane.object != text:
                pane.object = text

    def _show_figure(self, name: str) -> None:
        picture = self._picture(name)
        show(self._cards[name], picture is not None)
        if picture is not None:
            figure = self._panes[name].object
            if name not in self._models:
                self._models[name] = figures.models_of(figure)
            prefix = f"{self.live.key}/{name}."
            figures.write(figure, self._models[name], picture, prefix, line=self.state.threshold)
            style(self._boxes[name], height=f"{picture.height}px", flex="0 0 auto")

    # ---- texts

    def _writers(self) -> dict[str, Callable[[], str]]:
        return {
            "heading": self._heading,
            "numbers": self._numbers,
            "gap_legend": self._gap_legend,
            "gap_caption": self._gap_caption,
            "pairs": self._pairs,
            "known": self._known,
            "retention": self._retention,
            "retention_legend": self._retention_legend,
            "quadrants": self._quadrant_table,
            "ablation": self._ablation,
            "ablation_caption": self._ablation_caption,
            "explanation": self._explanation,
            "said": self._said,
        }

    def _heading(self) -> str:
        told, notes, trap = self._made(
            "heading",
            (self.state.metric, self.state.baseline),
            lambda: answers.heading(self._subject, self.state.metric, self.state.baseline),
        )
        s = self._subject
        if s.case.startswith(OWN):
            notes = [
                f"{html.escape(s.title)}: {s.result.sizes['row']:,} rows, {s.result.sizes['source']} sources.",
                *notes,
            ]
        if s.told:
            notes = [*notes, html.escape(s.told)]
        below = "".join(f'<p class="note">{n}</p>' for n in notes)
        warned = f'<p class="trap" role="note">{trap}</p>' if trap else ""
        heading = (
            f'<div role="status" aria-live="polite" aria-atomic="true"><h1>{told}</h1></div>{below}{warned}'
        )
        own = getattr(self, "own", None)
        if own is not None and (waits := own.waits_for()):
            shown = (
                f"{self.subject}, as it was computed before"
                if s.case.startswith(OWN) and own.title == s.title
                else self.subject
            )
            return f"<h1>{html.escape(waits)}</h1>{demoted(heading, shown)}"
        return meanwhile(self.state, heading, self.subject)

    def hanging_table(self) -> tuple[str, str]:
        """Return what a report says of the features that hang on one source: a title and a table as HTML."""
        rows, many = answers.hanging(self._subject, self.state.threshold)
        if not many:
            return "", ""
        title = f"Features whose coefficient hangs on one source: retention below {self.state.threshold:.2f}"
        if many > len(rows):
            title += f", the lowest {len(rows)} of {many:,}"
        cells = "".join(
            f'<tr><th scope="row">{html.escape(str(r.feature))}</th><td>{answers.three(r.coefficient)}</td>'
            f"<td>{answers.three(r.retention)}</td><td>{html.escape(str(r.source))}</td></tr>"
            for r in rows.itertuples()
        )
        heads = "".join(
            f'<th scope="col">{head}</th>' for head in ("feature", "coefficient", "retention", "hangs on")
        )
        return title, f"<table><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>"

    def _numbers(self) -> str:
        rows = self._made(
            "numbers", (self.state.baseline,), lambda: answers.numbers(self._subject, self.state.baseline)
        )
        cells = "".join(
            f'<tr><th scope="row">{label}{f"<small>{small}</small>" if small else ""}</th>'
            f'<td class="n">{value}</td><td class="n m">{interval}</td></tr>'
            for label, small, value, interval in rows
        )
        aside = "weighted by rows" if self._subject.published else "95 % interval"
        return (
            f'<h2>In numbers <span class="aside">{aside}</span></h2>'
            f'<table aria-label="pooled values">{cells}</table>'
            + (
                ""
                if self._subject.published
                else '<p class="small">A gap has two intervals: other rows of these sources, and other sources like these. '
                "With five sources or fewer the second is not given.</p>"
            )
        )

    def _gap_legend(self) -> str:
        first, left_out = theme.PROTOCOL_COLOR["baseline"], theme.PROTOCOL_COLOR["lodo"]
        entries = [(mark("circle", left_out, filled=True), "source left out")]
        if not self._subject.published:
            if not self._subject.undivided:
                entries.insert(0, (mark("circle", first), BASELINES[self.state.baseline]))
            entries.append((mark("diamond", left_out, filled=True), "pooled"))
        rows = self._data("gap")
        if rows is not None and (rows["group"] == "one label").any():
            entries.append((mark("square", left_out, filled=True), "one label: recall or specificity"))
        told = "".join(f"<span>{m}{t}</span>" for m, t in entries)
        return f'<div class="legend">{told}</div>'

    def _gap_caption(self) -> str:
        s = self._subject
        source = html.escape(s.source)
        if s.published:
            return (
                f'<p class="small">Thin bars: 95 % (Wilson). Rows that end in recall or specificity have one label. {source}; '
                f"{PAPER}, Tables 1 and 3.</p>"
            )
        told = "Thin bars of a source: 95 % of each value by itself"
        single = bool((s.result["kind"] != "mixed").any())
        wilson = "; Wilson for recall and specificity" if single else ""
        told += f" (DeLong{wilson}). " if self.state.metric == "auc" else " (Wilson). "
        if s.undivided:
            told += f"There is nothing to hold it against: {UNDIVIDED}. "
        elif self.state.metric == "auc":
            told += (
                "Bars of pooled values are of the gap, laid off from the open mark: thick over rows (paired DeLong), thin "
                "over sources (bootstrap; none with five sources or fewer). "
            )
        if single and self.state.metric == "auc":
            told += (
                "Squares, on the same axis: recall where a source has positives only, specificity where it has none; no AUROC "
                "is defined there. "
            )
        told += "" if s.undivided else "Sorted by gap. "
        drawn = min(answers.MOST_SOURCES, s.result.sizes["source"])
        if drawn < s.result.sizes["source"]:
            told += f"The {drawn} largest of {s.result.sizes['source']} sources are drawn; the CSV has all. "
        return f'<p class="small">{told}Data: {source}. Method: {PAPER}, section 4.</p>'

    def _pairs(self) -> str:
        s, state = self._subject, self.state
        if s.published:
            return f'<p class="small">{_NOTHING["pairs"]}</p>'
        rows = self._made(
            "split",
            (state.baseline, state.scope),
            lambda: answers.split_numbers(s, state.baseline, state.scope),
        )
        cells = "".join(
            f'<tr><th scope="row">{label}</th><td class="n">{first}</td><td class="n">{second}</td></tr>'
            for label, first, second in rows
        )
        drawn_of = {"known": f"in {BASELINES[state.baseline]}", "left-out": "with the source left out"}
        bare = " and none ".join(words for name, words in drawn_of.items() if self._data(name) is None)
        without = (
            f'<p class="small">There is no figure of pairs of sources that are known to the model: {UNDIVIDED}.</p>'
            if s.undivided
            else f'<p class="small">There is no figure of pairs {bare}: no pair of rows with both labels has scores there.</p>'
            if bare
            else ""
        )
        steps = [0.0, 0.25, 0.5, 0.75, 1.0]
        colors = theme.diverging(5)
        swatches = "".join(
            f'<span><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><rect x="1" y="1" width="14" '
            f'height="14" fill="{color}" stroke="{theme.QUIET_COLOR}" stroke-width="0.6"></rect></svg>{at:g}</span>'
            for at, color in zip(steps, colors, strict=True)
        )
        return (
            f'{without}<div class="legend"><span>AUROC</span>{swatches}<span>framed: within a source; empty: no pairs</span></div>'
            f'<table aria-label="within and between sources"><thead><tr><th scope="col"></th><th scope="col" class="n m">'
            f'{BASELINES[state.baseline]}</th><th scope="col" class="n m">source left out</th></tr></thead>'
            f"<tbody>{cells}</tbody></table>"
        )

    def _known(self) -> str:
        rows = answers.known_by_name(self._subject)
        if not rows:
            return f'<h2>What the source gives away</h2><p class="small">{_NOTHING["known"]}</p>'
        cells = "".join(
            f'<tr><th scope="row">{label}<small>{small}</small></th><td class="n">{value}</td>'
            f'<td class="n m">{beside}</td></tr>'
            for label, small, value, beside in rows
        )
        s = self._subject
        more = ""
        if "noise_mean" not in s.result:
            more += html.escape(str(s.result.attrs.get("controls", ""))) + " "
        shared = int(s.result["shared_rows"].sum()) if "shared_rows" in s.result else 0
        if shared:
            more += f"{shared:,} rows have exactly the features of a row of another source."
        return (
            '<h2>What the source gives away <span class="aside">for comparison</span></h2>'
            f'<table aria-label="what the source gives away, and the controls">{cells}</table>'
            + (f'<p class="small">{more}</p>' if more else "")
        )

    def _retention(self) -> str:
        s = self._subject
        if s.retention is None:
            return f'<p class="small">{_line("retention", s)}</p>'
        t = self.live.text
        why = str(s.retention.attrs.get("undefined", ""))
        null = (
            f"Intervals of coefficients and the share under shuffled sources are not defined: {html.escape(why)}."
            if why
            else f"Where sources are shuffled within each class, the share is {t('say_null')}."
            if "null_retention" in s.retention or "null_median" in s.retention
            else "The share under shuffled sources is not public for these features."
        )
        sweep = self._made("sweep", (), self.sweep)
        counts = [
            f"{int(sweep['n_sign_flips'])} change sign (retention below 0)",
            f"{int(sweep['n_above_one'])} gain (above 1)",
        ]
        undefined = int(sweep["n_features"] - sweep["n_defined"])
        if undefined:
            counts.append(
                f"{undefined} of {int(sweep['n_features'])} have none: too small, or not significant"
            )
        other = "" if s.published else retention_sentence(s.result, s.retention)
        printed = f'<p class="small">{html.escape(other)}</p>' if other else ""
        if s.published:
            printed = (
                '<p class="small">These are the 20 features that the authors print, five of each quadrant, not a sample: '
                "of their top 50, 14 are shortcuts at 0.50.</p>"
            )
        elif s.model == "tfidf":
            printed += '<p class="small">These are the 100 features with the largest coefficients, without names.</p>'
        if not int(sweep["n_defined"]):
            return f'<p class="lead">No feature has a retention: all are too small, or not significant.</p>{printed}'
        return (
            f'<p class="lead"><b>{t("say_count")}</b> of {t("say_of")} features (<b>{t("say_share")}</b>) keep less than '
            f"{t('say_threshold')} of their coefficient when one source is left out.</p>"
            f'<p class="small">{null}</p><p class="small">They hang most on: {t("say_most")}.</p>'
            f'<p class="small">{"; ".join(counts)}.</p>{printed}'
        )

    def _retention_legend(self) -> str:
        s = self._subject
        if s.retention is None:
            return ""
        order = answers.argmin_order(s.retention)
        most = len(theme.SOURCE_COLOR)
        shown = order if len(order) <= most else order[: most - 1]
        entries = [
            f"<span>{mark(m, c)}{html.escape(n)}</span>"
            for n, c, m in zip(map(s.name_of, shown), theme.SOURCE_COLOR, theme.SOURCE_MARK, strict=False)
        ]
        if len(shown) < len(order):
            entries.append(
                f"<span>{mark(theme.SOURCE_MARK[-1], theme.SOURCE_COLOR[-1])}{len(order) - len(shown)} others</span>"
            )
        return f'<div class="legend"><span>source that it hangs on:</span>{"".join(entries)}<span>filled: shortcut</span></div>'

    def _quadrant_table(self) -> str:
        s = self._subject
        if s.retention is None:
            return ""
        if not answers.has_firing(s):
            return f'<p class="small">{answers.why_no_firing(s)}</p>'
        t = self.quadrants.text
        return (
            "<h2>Quadrants</h2>"
            '<table class="quads" aria-label="features by retention and firing ratio"><thead><tr><th scope="col"></th>'
            '<th scope="col">not specific</th><th scope="col">specific</th></tr></thead><tbody>'
            f'<tr><th scope="row">shortcut<small>{QUADRANTS[0]}; {QUADRANTS[1]}</small></th><td>{t("quadrant_0")}</td>'
            f"<td>{t('quadrant_1')}</td></tr>"
            f'<tr><th scope="row">kept<small>{QUADRANTS[2]}; {QUADRANTS[3]}</small></th><td>{t("quadrant_2")}</td>'
            f"<td>{t('quadrant_3')}</td></tr></tbody></table>"
            f'<p class="small">Specific: fires at least {t("say_firing")} times as often in the class that its coefficient '
            f"speaks for. {t('say_without')} As {PAPER}, section 5.</p>"
        )

    def _ablation(self) -> str:
        s = self._subject
        if s.ablation is None:
            return f'<p class="small">{html.escape(s.why_not) or _line("ablation", s)}</p>'
        told, rows = self._made("ablation words", (), lambda: answers.ablation_words(s))
        cells = "".join(
            f'<tr><th scope="row">{label}<small>{small}</small></th><td class="n">{value}</td>'
            f'<td class="n m">{beside}</td></tr>'
            for label, small, value, beside in rows
        )
        return (
            f'<p class="lead">{told}</p><table aria-label="what taking the shortcuts away does">{cells}</table>'
            '<p class="small">That features of low retention can go without a loss says that others carry the same. A better '
            "score on sources left out would say that they mislead; a worse one, that they help between these sources, "
            "too.</p>"
        )

    def _ablation_caption(self) -> str:
        of = self._subject.ablation
        if of is None:
            return ""
        many = f"Grey: range of {of.sizes['draw']} random orders. " if of.sizes["draw"] else ""
        if why := str(of.attrs.get("undefined", "")):
            many += f"Cross-validation is not drawn: {html.escape(why)}. "
        return (
            '<p class="small">Bars: 95 % (DeLong). Whether a coefficient is significant is not asked here, so more features count as '
            "shortcuts than above. Lowest retention first, as it is among the sources that are left: the order "
            f"never sees the source that is scored. {many}{PAPER}, section 5.3, where one list serves all sources.</p>"
        )

    def _explanation(self) -> str:
        s = self._subject
        of = s.attributions
        if of is None:
            return f'<p class="small">{_line("explanation", s)}</p>'
        row = self.state.row
        source = str(s.result["source"].values[int(s.result["source_code"].values[row])])
        label = int(s.result["label"].values[row])
        null = of["null_jaccard"].values
        k = int(of.attrs["k"])
        before, after = (
            float(of[n].isel(row=row).sum()) + float(of["intercept"])
            for n in ("attribution", "weighted_attribution")
        )
        why = str(of.attrs.get("undefined", ""))
        stay = "" if why else f", and of its {k} leading features <b>{_kept(of, row, k)}</b> stay"
        told = (
            f'<p class="lead">Row {row:,}, of {html.escape(s.name_of(source))}, has the label <b>{label}</b>. '
            f"Its logit goes from <b>{answers.three(before)}</b> to <b>{answers.three(after)}</b> when each attribution is "
            f"multiplied by its feature’s retention{stay}.</p>"
        )
        if why:
            return told + (
                f'<p class="small">How far the leading features move is undefined here: {html.escape(why)}. Undefined '
                "retention weighs 1.</p>"
            )
        over = (
            f"{answers.three(null.mean())} with the retention of shuffled sources ({len(null)} draws, "
            f"{answers.three(null.min())} to {answers.three(null.max())})"
            if len(null)
            else "no null was drawn"
        )
        return told + (
            f'<table aria-label="how far the leading features move"><tr><th scope="row">mean Jaccard of the top {k}<small>over '
            f'{of.sizes["row"]:,} rows; 1 is no move</small></th><td class="n">{answers.three(of["mean_jaccard"])}</td></tr>'
            f'<tr><th scope="row">this row</th><td class="n">{answers.three(of["jaccard"].values[row])}</td></tr>'
            f'<tr><th scope="row">rows in which something moves</th><td class="n">{answers.percent(of["changed_share"])}</td></tr>'
            f'</table><p class="small">For comparison: {over}. That features of low retention move down is by construction; '
            "what says something is how far the mean lies below the one of shuffled sources. Undefined retention weighs 1.</p>"
        )

    def _said(self) -> str:
        baseline = self.state.baseline
        said = self._made("said", (baseline,), lambda: answers.said(self._subject, baseline))
        if not said:
            return ""
        return (
            "<h2>What this shows, and what it cannot</h2><ul>"
            + "".join(f"<li>{s}</li>" for s in said)
            + "</ul>"
        )

    # ---- controls

    def _options(self, name: str) -> dict[str, Any]:
        s = self.state
        value = getattr(s, name)
        if name == "case":
            own: dict[str, str] = {}
            for case, subject in reversed(s.own.items()):
                title = f"{_cut(subject.title)}, {CLASSIFIERS[subject.model]}"
                own[title if title not in own else f"{title} ({case[-4:]})"] = case
            groups = {
                "your own": own,
                "computed here": {t: c for c, t in CASES.items() if c != PUBLISHED},
                "published": {CASES[PUBLISHED]: PUBLISHED},
            }
            return {"groups": {k: v for k, v in groups.items() if v}, "value": value}
        if name == "baseline" and s.case == PUBLISHED:
            return {"options": {"none is public per source": "cv"}, "value": value}
        return {"options": {s.title(name, o): o for o in s.param[name].objects}, "value": value}

    def _select(self, name: str, title: str, words: str) -> pn.Column:
        menu = pn.widgets.Select(label=title, stylesheets=[theme.FIELD_CSS], **self._options(name), **_WIDE)
        menu.param.watch(lambda event: self._menu_chosen(name, event.new), "value")
        self._menus[name] = menu
        return helped(menu, words)

    def _menu_chosen(self, name: str, value: Any) -> None:
        if value is not None and value != getattr(self.state, name):
            setattr(self.state, name, value)

    def _show_menus(self) -> None:
        for name, menu in self._menus.items():
            menu.param.update(**self._options(name))
        if "recompute" in self._boxes:
            s = self._subject
            show(self._boxes["recompute"], (s.case, s.model) == ("penguins", "logistic"))

    def _show_parts(self) -> None:
        """Show the parts that the case has something for, each as the state says."""
        if "listing" not in self._boxes:
            return
        s, boxes = self._subject, self._boxes
        boxes["scope"].value = self.state.scope
        show(boxes["scope_row"], not s.published and bool((s.result["kind"] != "mixed").any()))
        show(boxes["pairs"], not s.published)
        show(boxes["hand"], s.retention is not None)
        show(boxes["listing"], s.retention is not None)
        show(boxes["quadrants"], answers.has_firing(s))
        show(boxes["rows"], s.attributions is not None)
        if s.attributions is not None:
            boxes["row"].value = str(self.state.row)

    def _list(self) -> None:
        rows = self._data("retention")
        if rows is None or "listing" not in self._boxes:
            return
        s = self._subject
        known = {
            "argmin_source": "hangs on",
            "firing_ratio": "firing ratio",
            "null_median": "median, sources shuffled",
        }
        columns = [
            "feature",
            "coefficient",
            "retention",
            *(c for c in ("null_median", "firing_ratio") if c in rows),
        ]
        if "firing_ratio" in columns and not answers.has_firing(s):
            columns.remove("firing_ratio")
        rows = rows.head(answers.MOST_DRAWN)
        frame = rows[[*columns, "argmin_source"]].rename(columns=known)
        frame = frame.assign(
            feature=answers.feature_names(frame["feature"].tolist()),
            **{known["argmin_source"]: [*map(s.name_of, frame[known["argmin_source"]])]},
        )
        why = rows["undefined"].tolist() if "undefined" in rows else []
        self._boxes["listing"].write(frame, caption="features, by their retention", undefined=why)

    def _controls(self) -> pn.Column:
        bring = pn.widgets.Button(label="Bring your own table", margin=0, stylesheets=[_BUTTON_CSS])
        bring.on_click(lambda event: self._raise_own(True))
        again = pn.widgets.Button(label="Recompute here", margin=0, stylesheets=[_BUTTON_CSS])
        again.on_click(lambda event: self.recompute())
        show(again, (self._subject.case, self._subject.model) == ("penguins", "logistic"))
        self._boxes["recompute"] = again
        return pn.Column(
            self._select("case", "case", "The data, with the source of each row."),
            self._select("model", "classifier", "What was fitted, anew in each fold."),
            self._select("metric", "metric", "Of each source. Default: AUROC, where it is defined."),
            self._select(
                "baseline",
                "baseline",
                "What leaving the source out is held against. Default: cross-validation.",
            ),
            pn.Column(bring, again, stylesheets=[_BUTTONS_CSS], margin=0),
            stylesheets=[_CONTROLS_CSS],
            styles={"order": str(ORDERS["top"] + 1)},
            **_WIDE,
        )

    def recompute(self) -> None:
        """Leave out each species of the penguins anew, in a thread, and show it."""
        self.own.recompute(penguins, "the penguins")

    def _told_anew(self, event: Any) -> None:
        """Follow a link that waits for a file, or waits no longer."""
        if "heading" in self._texts:
            self._texts["heading"].object = self._heading()
            self.own.raise_if_needed()

    def _raise_own(self, up: bool) -> None:
        """Put the user's own table on top while it is worked on, and below all else otherwise."""
        box = self._boxes.get("own")
        up = up or (self.state.waiting and bool(self.state.told))  # the link's file is brought there
        self._show_texts(*({"heading"} & set(self._texts)))  # which says whose numbers stand there meanwhile
        if box is not None:
            styles = {"order": str(ORDERS["own" if up else "below"])}
            if box.styles != styles:
                box.styles = styles

    # ---- the page

    def _text(self, name: str, css: str = "", **params: Any) -> pn.pane.HTML:
        pane = self._texts[name] = markup(self._writers()[name](), css=css, **params)
        return pane

    def _card(self, name: str, caption: Any, *, legend: Any = None, hooks: dict | None = None) -> pn.Column:
        picture = self._picture(name)
        tags: dict[str, list] = {
            layer: [self.live.tag(f"{name}.{layer}", "source")] for layer in figures.LAYERS[name]
        }
        tags |= hooks or {}

        def drawn() -> hv.Overlay:
            whole = picture or _example(name)
            return figures.draw(name, whole, line=self.state.threshold, hooks=tags)

        # Drawn by nobody's table: what a case has is written into it, as many rows as it has.
        blank: Any = _Blank(self.live.key)
        pane = self._panes[name] = figure_pane(
            ("lodo", name), blank, drawn, sizing_mode="stretch_both", margin=0
        )
        # As high as its box, which goes with the case; the figure itself was drawn for some other one.
        pane.object.update(sizing_mode="stretch_both", height=None)
        body = card(
            figures.FIGURES[name],
            pane,
            links=downloads(
                f"lodo-{name}",
                lambda backend: self.figure(name, backend),
                lambda: self.data(name),
                size=(150, 110),
                page=self,
                of=name,
            ),
            height=picture.height if picture else 200,
        )
        self._boxes[name] = body[1]
        if legend is not None:
            body.insert(1, legend)
        body.append(
            caption
            if isinstance(caption, pn.viewable.Viewable)
            else markup(f'<p class="small">{caption}</p>')
        )
        self._cards[name] = body
        self._show_figure(name)
        return body

    def _head(self, title: str, words: str) -> pn.pane.HTML:
        return markup(f'<h2>{title}</h2><p class="note">{words}</p>', css=_HEAD_CSS)

    def _gap_section(self) -> pn.Column:
        return pn.Column(
            self._card("gap", self._text("gap_caption"), legend=self._text("gap_legend", LEGEND_CSS)),
            self._text("numbers", _TABLE_CSS),
            stylesheets=[_SECTION_CSS],
            **_WIDE,
        )

    def _pairs_section(self) -> list[pn.viewable.Viewable]:
        switch = pn.widgets.RadioButtonGroup(
            options={v: k for k, v in SCOPES.items()},
            value=self.state.scope,
            margin=0,
            stylesheets=[_SWITCH_CSS],
        )
        switch.param.watch(lambda event: self._menu_chosen("scope", event.new), "value")
        self._boxes["scope"] = switch
        row = self._boxes["scope_row"] = helped(
            switch, "Mixed: sources with both labels. Default: all.", css=":host { max-width: 340px }"
        )
        source = f"Method: the exact split of the pooled AUROC into pairs; after {PAPER}, section 4."
        return [
            self._head(
                "Where from",
                "A pooled AUROC compares every positive with every negative. On the diagonal both are of one source; off it "
                "they are of two, and their scores come from two models when each source is left out.",
            ),
            row,
            self._grid(
                self._card(
                    "known", f"Rows: the source of the positives. Columns: of the negatives. {source}"
                ),
                self._card(
                    "left-out",
                    "The same with each source left out: orange is below 0.5, blue above, white is chance.",
                ),
            ),
            self._text("pairs", _TABLE_CSS + LEGEND_CSS + "table { max-width: 620px }"),
        ]

    def _grid(self, *cards: pn.Column) -> pn.Column:
        self._boxes["pairs"] = grid = pn.Column(*cards, stylesheets=[_PAIRS_CSS], **_WIDE)
        show(grid, not self._subject.published)
        return grid

    def _composition_section(self) -> list[pn.viewable.Viewable]:
        entries = "".join(
            f"<span>{mark('square', theme.LABEL_COLOR[k], filled=True)}{t}</span>"
            for k, t in (("positive", "label 1, positive"), ("negative", "label 0, negative"))
        )
        return [
            self._head(
                "Composition",
                "Where sources differ in their share of positives, knowing the source is half of knowing the label.",
            ),
            pn.Column(
                self._card(
                    "composition",
                    "The largest source first. Counts are of the data as they were used.",
                    legend=markup(f'<div class="legend">{entries}</div>', css=LEGEND_CSS),
                ),
                self._text("known", _TABLE_CSS),
                stylesheets=[_SECTION_CSS],
                **_WIDE,
            ),
        ]

    def _retention_section(self) -> list[pn.viewable.Viewable]:
        live = self.live
        hooks: dict[str, list] = {
            "line": [live.tag("retention.line", "glyph")],
            "figure": [live.taps("retention")],
        }
        caption = (
            "Tap to move the threshold; hover or the list names a feature. Retention: the smallest ratio of the coefficient "
            "fitted without one source to the one fitted with all, on one scale; below −1 and above 1.5 a feature stands at "
            f"the edge. {PAPER}, section 5."
        )
        quadrants = self._boxes["quadrants"] = pn.Column(self.quadrants, **_WIDE)
        listing = self._boxes["listing"] = Listing(**_WIDE)
        return [
            self._head(
                "Retention",
                "Which features carry the score, and which of them one source holds up: what is left of a coefficient when "
                "that source is left out.",
            ),
            self._boxes["hand"],
            pn.Column(
                self._card(
                    "retention", caption, legend=self._text("retention_legend", LEGEND_CSS), hooks=hooks
                ),
                pn.Column(
                    self._text("retention", _TABLE_CSS),
                    quadrants,
                    self._text("quadrants", _TABLE_CSS),
                    stylesheets=[":host { gap: 12px }"],
                    **_WIDE,
                ),
                stylesheets=[_SECTION_CSS],
                **_WIDE,
            ),
            listing,
        ]

    def _ablation_section(self) -> list[pn.viewable.Viewable]:
        quiet, full = theme.PROTOCOL_COLOR["baseline"], theme.PROTOCOL_COLOR["lodo"]
        legend = markup(
            f'<div class="legend"><span>{mark("circle", quiet)}cross-validation</span>'
            f"<span>{mark('circle', full, filled=True)}source left out</span><span>{_STRIP}as many at random, source left "
            "out</span></div>",
            css=LEGEND_CSS,
        )
        return [
            self._head(
                "Ablation",
                "What is left of the score without the shortcuts. They are looked for anew without each source, so the list "
                "has never seen the source that is scored.",
            ),
            pn.Column(
                self._card("ablation", self._text("ablation_caption"), legend=legend),
                self._text("ablation", _TABLE_CSS),
                stylesheets=[_SECTION_CSS],
                **_WIDE,
            ),
        ]

    def _explanation_section(self) -> list[pn.viewable.Viewable]:
        field = pn.widgets.TextInput(
            label="row", value=str(self.state.row), width=110, margin=0, stylesheets=[theme.FIELD_CSS]
        )
        field.param.watch(self._row_chosen, "value")
        end = {"align-self": "flex-end"}
        moved = pn.widgets.Button(
            label="the row that moves most", margin=0, stylesheets=[_BUTTON_CSS], styles=end
        )
        moved.on_click(lambda event: self._menu_chosen("row", answers.most_moved(self._subject)))
        self._boxes["row"] = field
        rows = self._boxes["rows"] = pn.Row(
            field,
            moved,
            markup(
                '<p class="help">The number of a row, from 0, and Enter. Default: 0.</p>',
                sizing_mode=None,
                styles={**end, "padding-bottom": "6px"},
            ),
            stylesheets=[":host { flex-wrap: wrap; gap: 6px 14px; align-items: flex-end }"],
            **_WIDE,
        )
        show(rows, self._subject.attributions is not None)
        quiet, full = theme.PROTOCOL_COLOR["baseline"], theme.PROTOCOL_COLOR["lodo"]
        legend = markup(
            f'<div class="legend"><span>{mark("square", quiet)}attribution</span><span>{mark("square", full, filled=True)}'
            "times retention</span></div>",
            css=LEGEND_CSS,
        )
        return [
            self._head(
                "Explanations",
                "What leads the score of one row, before and after each feature is weighted by its retention.",
            ),
            rows,
            pn.Column(
                self._card(
                    "explanation",
                    f"Features among the ten that lead before or after, at most; ▼ leaves them, ▲ comes in. Attribution: "
                    f"coefficient times the standardised value. {PAPER}, section 5.4.",
                    legend=legend,
                ),
                self._text("explanation", _TABLE_CSS),
                stylesheets=[_SECTION_CSS],
                **_WIDE,
            ),
        ]

    def _row_chosen(self, event: Any) -> None:
        text = event.new.strip()
        if text.isascii() and text.isdigit() and int(text) < self._subject.n_rows:
            self._menu_chosen("row", int(text))
        else:
            event.obj.value = str(self.state.row)  # there is no such row

    def __panel__(self) -> pn.Column:
        """Build the page once; in the app, what is not seen first follows when the rest is there."""
        if self._root is None:
            own = self._boxes["own"] = pn.Column(
                self._head(
                    "Your own table",
                    "Features, a label and the source of each row: every source is left out in turn. Nothing is guessed; "
                    "what the file does not settle, you are asked.",
                ),
                self.own.upload,
                self.own.sheet,
                styles={"order": str(ORDERS["own" if self.state.waiting else "below"])},
                stylesheets=[":host { gap: 14px }"],
                **_WIDE,
            )
            top: dict[str, Any] = {"styles": {"order": str(ORDERS["top"])}}
            alert = link_note(self.state, **top)
            # The slider is there from the beginning: that it is painted tells that the page is seen.
            gap = self._gap_section()
            hand = self._boxes["hand"] = pn.Column(self.live, **_WIDE)
            show(hand, self._subject.retention is not None)
            page = pn.Column(
                gap, hand, styles={"order": str(ORDERS["page"])}, stylesheets=[":host { gap: 18px }"], **_WIDE
            )
            self._root = pn.Column(
                alert,
                self._text("heading", _BANNER_CSS, **top),
                self._controls(),
                own,
                page,
                stylesheets=[_ROOT_CSS],
                **_WIDE,
            )

            def rest() -> None:
                page.objects = [
                    gap,
                    *self._pairs_section(),
                    *self._composition_section(),
                    *self._retention_section(),
                    *self._ablation_section(),
                    *self._explanation_section(),
                    self._text("said", _TABLE_CSS + _HEAD_CSS),
                ]
                self._show_parts()
                self._list()
                self._open_more()

            self.live.when_seen(rest)
        return self._root


_OPENED: set[str] = set()


def _open(query: str, walked: tuple[tuple[str, ...], tuple[str, ...]]) -> Iterator[bool]:
    """Make what a page of this case shows, bit by bit: its rows, its texts, and its tables as they are sent."""
    asked = dict(parse_qsl(query))
    subject = answers.shipped(asked["case"], asked["model"])
    yield True
    if asked["baseline"] in subject.baselines:
        subject.on_rows_of(asked["baseline"])
        yield True
    encode_once(answers.retention_answers(subject), walked[0])
    yield True
    encode_once(answers.quadrant_answers(subject), walked[1])
    yield True
    page = LodoPage("?" + query)
    for name in figures.FIGURES:
        yield True
        page._picture(name)
    for write in page._writers().values():
        write()
    _OPENED.add(query)


def style(box: pn.viewable.Viewable, **styles: str) -> None:
    """Set CSS properties of a box. They move what is around it; `height` and `visible` lay the whole page out, each."""
    new = {**box.styles, **styles}
    if box.styles != new:
        box.styles = new


def show(box: pn.viewable.Viewable, seen: bool) -> None:
    """Show a part of the page, or take it away."""
    style(box, display="" if seen else "none")


def _line(section: str, s: Subject) -> str:
    """Return the line that stands where a case has nothing to draw."""
    lines: Any = _NOTHING[section]
    return str(lines.get(s.case, lines.get(s.model, lines[""])))


def _kept(of: xr.Dataset, row: int, k: int) -> str:
    """Say how many of the leading features stay.

    A Jaccard index j of two sets of k has 2kj / (1 + j) members in common.
    """
    j = float(of["jaccard"].values[row])
    return str(round(2 * k * j / (1 + j)))


def _cut(text: str, most: int = 32) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 7]}…{flat[-6:]}"


def _example(name: str) -> Picture:
    """Return a picture of the first case that has one: what a figure is drawn from where its own case has none."""
    page = LodoPage("?case=penguins")
    picture = page._picture(name)
    assert picture is not None
    return picture
