"""The purity page: the blind test on shipped, simulated and a user's own predictions.

Source: arXiv 2606.11267, sections 4 to 7. The core answers, `dashboards.purity_answers` puts the
answers into a table, the figures draw, this page arranges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import param
import xarray as xr

import leakviz
from dashboards import purity_answers as answers
from dashboards import theme
from dashboards.cards import card, downloads, helped
from dashboards.figures import purity as figures
from dashboards.live import Attribute, Column, Edge, Live, Slider, Tap
from dashboards.markup import headline, link_note, markup, notes
from dashboards.shelf import (
    ARM,
    OWN,
    SIMULATED,
    ArmSettings,
    Shelf,
    Vector,
    VectorState,
    shipped_names,
    simulated,
)
from dashboards.state import nearest_stop
from dashboards.stencil import figure_pane
from leakviz.blind import EPSILON_STOPS, BlindTest, blind_test_ranked
from leakviz.graded import RESAMPLES
from leakviz.purity import DELTA_STOPS, K_MIN_STOPS, purity_curve_ranked

TITLE = "Purity"
SLOTS = {"first": "predictions", "beside": "beside them", "third": "and a third"}
SLOT_HELP = {
    "first": "p and y on trial, default flchain, honest",
    "beside": "in the same figure, default its leaky twin",
    "third": "in the same figure, default none",
}
NONE = "none"
DEFAULT = ("flchain__lr__honest", "flchain__lr__chapter", NONE)
# In links and on the screen: the field of ArmSettings, what it is called, its help.
ARMS = {
    "n": ("n", "n", "records, default 200,000"),
    "prevalence": ("prevalence", "prevalence", "share of events, default 0.02"),
    "c": ("c_statistic", "C", "of the honest risks, default 0.84"),
    "beta": ("beta", "beta", "factor on the logit, default 2.5"),
    "flag": ("flag_fraction", "flag fraction", "share flagged, default 0.003"),
    "seed": ("seed", "seed", "of the generator, default 0"),
}
MOST_SIMULATED = 2_000_000
SOURCE = 'Source: <a href="https://arxiv.org/abs/2606.11267">arXiv 2606.11267</a>'
START: dict[str, Any] = {
    "delta": 0.05,
    "k_min": 50,
    "ceiling": "off",
    "epsilon": 0.01,
    "max_risk": 0.9,
    "alpha": 0.001,
}


class PurityState(VectorState):
    """What a link to this page carries."""

    first: Any = param.Selector(default=DEFAULT[0], objects=list(DEFAULT), label="predictions")
    beside: Any = param.Selector(default=DEFAULT[1], objects=list(DEFAULT), label="beside them")
    third: Any = param.Selector(default=DEFAULT[2], objects=list(DEFAULT), label="and a third")
    delta = param.Number(0.05, label="delta")
    k_min = param.Number(50, label="k_min")
    ceiling: Any = param.Selector(default="off", objects=list(answers.CEILINGS), label="C* ceiling")
    epsilon = param.Number(0.01, label="epsilon")
    max_risk: Any = param.Selector(default=0.9, objects=list(answers.RISKS), label="M")
    alpha: Any = param.Selector(default=0.001, objects=list(answers.RATES), label="alpha")
    n = param.Integer(ArmSettings.n, label="n")
    prevalence = param.Number(ArmSettings.prevalence, label="prevalence")
    c = param.Number(ArmSettings.c_statistic, label="C")
    beta = param.Number(ArmSettings.beta, label="beta")
    flag = param.Number(ArmSettings.flag_fraction, label="flag fraction")
    seed = param.Integer(ArmSettings.seed, label="seed")

    chooses = tuple(SLOTS)
    stops = {"delta": DELTA_STOPS, "k_min": K_MIN_STOPS.astype(np.float64), "epsilon": EPSILON_STOPS}

    def offer(self, names: list[str]) -> None:
        """Take these vectors as what can be chosen."""
        for slot in SLOTS:
            self.param[slot].objects = [*names, *([] if slot == "first" else [NONE])]

    def arms(self) -> ArmSettings:
        """Return the parameters of the simulated arms."""
        return ArmSettings(**{field: getattr(self, name) for name, (field, _, _) in ARMS.items()})

    def _read_one(self, name: str, text: str) -> tuple[Any, str]:
        default = self.param[name].default
        if name == "ceiling" and text not in answers.CEILINGS:
            value, sentence = nearest_stop(
                text, np.array([float(c) for c in answers.CEILINGS[:-1]]), "C* ceiling", np.inf
            )
            return (f"{value:.2f}" if np.isfinite(value) else default), sentence.replace(
                "inf is shown", "none is set"
            )
        if name in ARMS:
            try:
                return read_number(name, text), ""
            except ValueError as error:
                return default, f"The link's {error}; {default:g} is taken."
        return super()._read_one(name, text)


def read_number(name: str, text: str) -> float:
    """Read one parameter of the simulated arms from what was typed.

    Raises
    ------
    ValueError
        If it is no number of its kind.
    """
    label = ARMS[name][1]
    try:
        return int(text.replace(",", "").replace(" ", "")) if name in ("n", "seed") else float(text)
    except ValueError:
        kind = "whole number" if name in ("n", "seed") else "number"
        raise ValueError(f"{label} “{text.strip()}” is no {kind}") from None


def simulate(settings: ArmSettings) -> None:
    """Simulate the arms, so that they are there when they are asked for.

    Raises
    ------
    leakviz.InputError
        If a parameter is out of range.
    """
    if settings.n > MOST_SIMULATED:
        raise leakviz.InputError(f"n must be at most {MOST_SIMULATED:,} on this page, got {settings.n:,}")
    simulated(settings)


@lru_cache(maxsize=32)
def _shared(arms: ArmSettings, *vectors: Vector | None) -> xr.Dataset:
    """Return the table of vectors that every session can choose, once per process."""
    return answers.page_answers(vectors, Shelf(arms=arms).get)


_BANNER_CSS = theme.css(
    """
.vector { margin: 7px 0 0; padding-left: 46px; position: relative; font-size: 15px }
.vector .swatch { position: absolute; left: 0; top: 5px }
.none { display: none }
.vector b { color: $accent; font-weight: 650 }
.vector .m { color: $muted }
h1, .note { max-width: none }
.scope { margin-top: 9px }
"""
)
_TABLE_CSS = theme.css(
    """
table.evidence { table-layout: fixed }
table.evidence th:first-child { width: 27% }
.evidence td, .evidence th { white-space: normal; vertical-align: top }
.evidence small { display: block; font-size: 12px; color: $muted }
.evidence .none { display: none }
.swatch { width: 36px; height: 12px; vertical-align: middle }
.rates { margin-top: 6px }
.rates td, .rates th { white-space: normal }
h2 { margin-bottom: 6px }
"""
)
_SOURCES_CSS = ".none { display: none } .swatch { margin-right: 8px; vertical-align: middle }"
_RULED_CSS = theme.css(
    ":host { display: block; border-top: 1px solid $hair; border-bottom: 1px solid $hair; padding: 10px 0 12px }"
)
_MENU_CSS = ":host { flex: 1 1 260px; max-width: 400px }"
_ENTRY_CSS = ":host { flex: 1 1 110px; max-width: 190px }"
_ROW_CSS = (
    ":host { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: flex-start; margin-bottom: 12px }"
)
_FOUR_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 14px 20px }
@media (max-width: 1000px) { :host { grid-template-columns: repeat(2, minmax(0, 1fr)) } }
@media (max-width: 520px) { :host { grid-template-columns: minmax(0, 1fr) } }
"""
)
_BUTTON_CSS = theme.css(
    """
.pick { display: flex; flex-wrap: wrap; gap: 0 6px; align-items: baseline; font-size: 13px; color: $muted }
.pick button { font-size: 13px; padding: 4px 5px; min-height: 24px }
.pick button[aria-pressed=true] { color: $ink; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: $accent; text-decoration-thickness: 2px }
"""
)


def curves_wiring(slots: Sequence[int] = figures.SLOTS) -> tuple[list[Column], list[Attribute]]:
    """Return what the figure of purity takes from the table, for these vectors side by side."""
    columns = [
        Column("box:source", "left", "box_left"),
        Column("box:source", "bottom", "box_bottom"),
        Column("k_min_text:source", "x", "box_left"),
        Column("k_min_text:source", "text", "k_min_text"),
        Column("line_text:source", "x", "line_x"),
        Column("line_text:source", "text", "line_text"),
    ]
    attributes = [
        Attribute("line:glyph", "location", "line"),
        Attribute("k_min:glyph", "location", "k_min_line"),
        *(
            Attribute("purity:x_range", end, f"x_{end.removeprefix('reset_')}")
            for end in ("start", "end", "reset_start", "reset_end")
        ),
    ]
    for i in slots:
        columns += [
            Column(f"curve_{i}:source", "rank", f"k_{i}"),
            Column(f"curve_{i}:source", "purity", f"purity_{i}"),
            Column(f"band_{i}:source", "x", f"band_x_{i}"),
            Column(f"band_{i}:source", "y", f"band_y_{i}"),
            *(
                Column(f"{layer}_{i}:source", column, f"spike_{end}_{i}")
                for layer in ("spike", "spike_text")
                for column, end in (("rank", "x"), ("purity", "y"))
            ),
            Column(f"spike_text_{i}:source", "text", f"spike_text_{i}"),
        ]
        attributes += [
            Attribute(f"base_{i}:glyph", "location", f"base_{i}"),
            Attribute(f"base_{i}:glyph", "visible", f"seen_{i}"),
            *(
                Attribute(f"{layer}_{i}:glyph_renderer", "visible", f"seen_{i}")
                for layer in ("curve", "band", "spike", "spike_text")
            ),
        ]
    return columns, attributes


def curves_hooks(live: Live) -> dict[str, list[Callable]]:
    """Return the hooks by which the figure of purity is found."""
    hooks: dict[str, list[Callable]] = {
        "figure": [live.tag("purity", "x_range", "figure")],
        "box": [live.tag("box", "source")],
        "line": [live.tag("line", "glyph")],
        "k_min": [live.tag("k_min", "glyph")],
        "k_min_text": [live.tag("k_min_text", "source")],
        "line_text": [live.tag("line_text", "source")],
    }
    for i in figures.SLOTS:
        hooks[f"base_{i}"] = [live.tag(f"base_{i}", "glyph")]
        for layer in ("curve", "band", "spike", "spike_text"):
            hooks[f"{layer}_{i}"] = [live.tag(f"{layer}_{i}", "source", "glyph_renderer")]
    return hooks


def curves_at_start(vector: Vector | None) -> xr.Dataset:
    """Return what the figure of purity shows of one vector where the sliders start."""
    return answers.first_look(vector, delta=START["delta"], k_min=START["k_min"])


def curves_data(vector: Vector, test: BlindTest) -> pd.DataFrame:
    """Return the numbers behind one vector's curve: every point that is drawn, and what was tested."""
    curve = purity_curve_ranked(vector.ranked, max_points=figures.POINTS)
    frame = curve[["events", "purity", "threshold"]].to_dataframe().reset_index()
    frame.insert(0, "vector", vector.name)
    return frame.assign(
        base_rate=test.prevalence,
        delta=float(Fraction(test.delta)),
        k_min=test.k_min,
        spike=test.spike,
        verdict=test.verdict,
    )


def _swatch(slot: int) -> str:
    """Return a vector's line as the figure draws it."""
    color = "currentColor" if slot == 0 else theme.VECTOR_COLOR[slot]
    path = ("M1 6h34", "M1 6h9m4 0h9m4 0h8", "M1 6h12m4 0h3m4 0h11")[slot]
    return (
        '<svg class="swatch" viewBox="0 0 36 12" width="36" height="12" aria-hidden="true">'
        f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2.6"></path></svg>'
    )


class PurityPage(pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string, from which the page starts.
    shelf : Shelf, optional
        The session's prediction vectors; without it, the shipped and the simulated ones.

    Examples
    --------
    >>> page = PurityPage("?first=nassCDS__lr__honest&beside=none")
    >>> {name: test.verdict for name, test in page.answer().items()}
    {'nassCDS__lr__honest': 'not shown'}
    """

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        self.shelf = shelf if shelf is not None else Shelf()
        self.state = PurityState()
        self.state.shelf = self.shelf
        self.state.offer(self.shelf.names())
        self.told: list[str] = []
        self.state.read(query)
        self.shelf.hear(self.state, "purity", TITLE)
        if not any(f"{name}=" in query for name in ARMS):
            self._show_arms()
        if self.shelf.own and "first=" not in query:
            self.state.param.update(first=self.shelf.own[-1].name, beside=NONE, third=NONE)
        super().__init__(**params)
        self._busy = False
        self._alert = markup("", css="p { margin-top: 4px }")
        self._take_arms()
        self._vectors = self._chosen()
        self.live = self._make_live()
        self._settle()
        self._say()
        self._root: pn.Column | None = None
        self._menus: dict[str, pn.widgets.Select] = {}
        self._inputs: dict[str, pn.widgets.TextInput] = {}
        self._arms_row: pn.Column | None = None
        self.live.param.watch(self._released, "state")
        self.state.param.watch(self._follow, self.state.names())
        self.shelf.param.watch(self._own_changed, "own")
        self.shelf.param.watch(self._arms_changed, "arms")

    # ---- answers

    def _chosen(self) -> tuple[Vector | None, ...]:
        names = (getattr(self.state, slot) for slot in SLOTS)
        return tuple(None if name == NONE else self.shelf.get(name) for name in names)

    def _table(self) -> xr.Dataset:
        if any(v is not None and v.name.startswith(OWN) for v in self._vectors):
            return answers.page_answers(self._vectors, self.shelf.get)
        return _shared(self.shelf.arms, *self._vectors)

    figure_sources = {
        "certification": "computed by leakviz for the method of arXiv 2606.11267, sections 2 and 6",
        "graded": "flchain, R package survival, see data/predictions/README.md; as arXiv 2606.11267, section 7.2",
    }
    figure_state = {
        "purity": ("delta", "k_min"),
        "certification": ("delta", "k_min", "max_risk", "alpha"),
        "graded": ("delta", "k_min", "epsilon"),
    }

    @property
    def subject(self) -> str:
        """What data the page shows."""
        first, *others = filter(None, self._vectors)
        return f"{first.title}, and {len(others)} more" if others else first.title

    @property
    def titles(self) -> list[str | None]:
        """The titles of what is chosen, None for no vector."""
        return [None if v is None else v.title for v in self._vectors]

    def answer(self) -> dict[str, BlindTest]:
        """Return the core's answer for each chosen vector at the present state."""
        s = self.state
        return {
            v.name: blind_test_ranked(
                v.ranked,
                delta=s.delta,
                k_min=int(s.k_min),
                c_max=None if s.ceiling == "off" else s.ceiling,
                breadths=answers.breadths(v, self.shelf.get),
                epsilon=s.epsilon,
            )
            for v in self._vectors
            if v is not None
        }

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present state.

        Parameters
        ----------
        name : {"purity", "certification", "graded"}
        """
        s = self.state
        if name == "purity":
            vectors = filter(None, self._vectors)
            frames = [curves_data(v, test) for v, test in zip(vectors, self._tests(), strict=True)]
            return pd.concat(frames, ignore_index=True)
        if name == "certification":
            rates = answers.read_false_certification().sel(max_risk=s.max_risk, delta=s.delta)
            frame = rates[["scan", "single", "naive"]].to_dataframe().reset_index()
            return frame[["max_risk", "delta", "k_min", "scan", "single", "naive"]].assign(alpha=s.alpha)
        if name == "graded":
            now = self.live.at()
            null = now["graded_null"].values
            return pd.DataFrame(
                {
                    "vector": [f"flchain__lr__{arm}" for arm in answers.GRADED],
                    "window_days": answers.WINDOWS,
                    "c_gain": now["graded_delta_c"].values,
                    "breadth_percent": now["graded_breadth"].values,
                    "honest_low_percent": null[0],
                    "honest_high_percent": null[2],
                    "spike": now["graded_spike"].values.astype(int),
                    "m_star": now["graded_m_star"].values,
                    "delta": s.delta,
                    "epsilon": s.epsilon,
                }
            )
        raise ValueError(f"no figure is called {name!r}; there are purity, certification and graded")

    def _tests(self) -> list[BlindTest]:
        """Return the answer for each chosen vector, twice for one that is chosen twice."""
        found = self.answer()
        return [found[v.name] for v in self._vectors if v is not None]

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> Any:
        """Return a figure at the present state as a HoloViews element.

        Parameters
        ----------
        name : {"purity", "certification", "graded"}
            The last is a layout of four.
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        now = self.live.at()
        if name == "purity":
            return figures.purity_curves(now, titles=self.titles, hooks=hooks, backend=backend)
        if name == "certification":
            return figures.certification_curves(now, k_mins=K_MIN_STOPS, hooks=hooks, backend=backend)
        if name == "graded":
            return hv.Layout([self._panel(p, backend, hooks) for p in figures.PANELS]).cols(4)
        raise ValueError(f"no figure is called {name!r}; there are purity, certification and graded")

    def _panel(self, panel: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        return figures.severity_panel(
            panel,
            self.live.at(),
            ticks=answers.TICKS,
            ylim=self._panel_range(panel),
            hooks=hooks,
            backend=backend,
        )

    @staticmethod
    def _panel_range(panel: str) -> tuple[float, float]:
        """Return a vertical range that holds every stop."""
        whole = answers.graded()[f"graded_{panel}"][1]
        top = {"delta_c": 1.15 * np.nanmax(whole), "breadth": 103.0, "spike": 1.08 * np.nanmax(whole)}
        if panel in top:
            return 0.0, float(top[panel])
        return float(np.floor(np.nanmin(whole) * 20) / 20), 1.004

    # ---- the hand

    def _make_live(self) -> Live:
        columns, attributes = curves_wiring()
        columns += [
            Column("true:source", "rate", "true_curve"),
            Column("naive:source", "rate", "naive_curve"),
            Column("needed:source", "k_min", "needed_x"),
            Column("needed:source", "rate", "needed_y"),
            Column("graded_null:source", "y", "graded_null"),
        ]
        attributes += [
            Attribute("edges", "left", "k_min_line"),
            Attribute("edges", "bottom", "line"),
            Attribute("alpha:glyph", "location", "alpha_line"),
            Attribute("cert_k_min:glyph", "location", "k_min_line"),
            Attribute("graded_k_min:glyph", "location", "k_min_line"),
        ]
        for panel in figures.PANELS:
            for layer in (f"graded_{panel}", f"graded_{panel}_line"):
                columns.append(Column(f"{layer}:source", panel, f"graded_{panel}"))
        return Live(
            self._table(),
            sliders=[
                Slider("delta", "delta", "impurity let through, default 0.05"),
                Slider("k_min", "k_min", "shortest head that counts, default 50"),
                Slider("ceiling", "C* ceiling", "best honest C-statistic, default off"),
                Slider("epsilon", "epsilon", "excess over honest, default 0.01"),
            ],
            columns=columns,
            attributes=attributes,
            grips=[
                Edge("edges", "left", "k_min"),
                Edge("edges", "bottom", "delta", by="line"),
                Tap("certification", x="k_min"),
            ],
            start=START,
            labels={
                "delta": [answers.decimal(v) for v in DELTA_STOPS],
                "k_min": [f"{k:,}" for k in K_MIN_STOPS],
                "ceiling": list(answers.CEILINGS),
                "epsilon": [answers.decimal(v) for v in EPSILON_STOPS],
                "max_risk": [f"{v:g}" for v in answers.RISKS],
                "alpha": [f"{v:g}" for v in answers.RATES],
            },
            follows=answers.FOLLOWS,
            sizing_mode="stretch_width",
            margin=0,
        )

    def _settle(self) -> None:
        """Move the hand to the state."""
        self.live.go(**{name: getattr(self.state, name) for name in START})

    def _released(self, event: Any) -> None:
        """Take over where the hand let go."""
        self._busy = True
        try:
            self.state.param.update(**{name: self.live.value(name) for name in START})
        finally:
            self._busy = False

    def _follow(self, *events: Any) -> None:
        changed = {e.name for e in events}
        with pn.io.hold():
            if changed & set(ARMS):
                self._take_arms()
            if changed & set(SLOTS):
                self._choose()
            if not self._busy:
                self._settle()
            self._say()

    def _choose(self) -> None:
        """Show the vectors that the state names."""
        vectors = self._chosen()
        if vectors != self._vectors:
            self._vectors = vectors
            self.live.update_answers(self._table())
        for slot, menu in self._menus.items():
            menu.value = getattr(self.state, slot)
        if self._arms_row is not None:
            self._arms_row.visible = self._simulates

    @property
    def _simulates(self) -> bool:
        return any(getattr(self.state, slot).startswith(SIMULATED) for slot in SLOTS)

    def _take_arms(self) -> None:
        """Simulate with the state's parameters, or say why not and keep what there was."""
        settings = self.state.arms()
        if settings == self.shelf.arms:
            return
        try:
            simulate(settings)
        except leakviz.InputError as error:
            self.told = [f"The arms were not simulated anew: {error}."]
            self._show_arms()
        else:
            self.shelf.arms = settings

    def _show_arms(self) -> None:
        """Let the state say what the shelf's arms are."""
        self.state.param.update(
            **{name: getattr(self.shelf.arms, field) for name, (field, _, _) in ARMS.items()}
        )

    def _arms_changed(self, event: Any) -> None:
        with pn.io.hold():
            self._show_arms()
            for name, entry in self._inputs.items():
                entry.value = self._written(name)
            if self._simulates:
                self._choose()

    def _own_changed(self, event: Any) -> None:
        """Offer a session's new vectors; the newest is shown at once, alone."""
        names = self.shelf.names()
        gone = {v.name for v in event.old} - {v.name for v in event.new}
        new = [v for v in event.new if v not in event.old]
        kept = {slot: getattr(self.state, slot) for slot in SLOTS}
        for (slot, name), default in zip(kept.items(), DEFAULT, strict=True):
            if name in gone:
                kept[slot] = default
        if new:
            kept = {"first": new[-1].name, "beside": NONE, "third": NONE}
        with pn.io.hold():
            self.state.offer([*names, *gone])
            for slot, menu in self._menus.items():
                menu.groups = self._groups(slot)
            self.state.param.update(**kept)
            self.state.offer(names)
            self._choose()

    def _say(self) -> None:
        """Show what could not be had; what was said once goes with the next change."""
        self._alert.object = notes(self.told)
        self._alert.visible = bool(self.told)
        self.told = []

    # ---- the page

    def _heading(self) -> str:
        t, lines = self.live.text, []
        for i in figures.SLOTS:
            lines.append(
                f"<div {self.live.attrs(class_=f'row_{i}')}>{_swatch(i)}{t(f'title_{i}')}: "
                f"<b>{t(f'verdict_{i}')}</b>{t(f'trigger_{i}')}. {t(f'evidence_{i}')} {t(f'ties_{i}')} "
                f'{t(f"m_says_{i}")} <span class="m">{t(f"assumes_{i}")}</span></div>'
            )
        return (
            '<div role="status" aria-live="polite" aria-atomic="true">'
            f"<h1>At delta <b>{t('say_delta')}</b>, k_min <b>{t('say_k_min')}</b> and {t('say_ceiling')} "
            f"the blind test says: <b>{t('together')}</b>.</h1>"
            f"<p {self.live.attrs(class_='rates_can')}>If no honest risk exceeds 0.9, an honest ranking shows a head that convicts "
            f"<b>{t('cases_9')}</b>. The formula M^k_min gives {t('naive_9')}, the chance that {t('say_k_min')} "
            "records of risk 0.9 all have the event.</p>"
            f"<p {self.live.attrs(class_='rates_cannot')}>The test cannot fire on these data: neither an honest ranking nor a leak "
            f"shows a head that convicts.</p>{''.join(lines)}</div>"
            '<p class="small scope">Near-label: the head is as pure as if an input held the outcome, or almost, as a cause of death '
            "does, which only the dead have. Above the ceiling: the ranking is better than an honest one is held to be. "
            "An outcome that is nearly deterministic at prediction time fires honestly; "
            "a smooth leak below the ceiling cannot be seen by any test on (p, y).</p>"
        )

    def _evidence(self) -> str:
        t = self.live.text

        def row(label: str, name: str, small: str = "") -> str:
            cells = "".join(
                f"<td {self.live.attrs(class_=f'cell_{i}')}>{t(f'{name}_{i}')}"
                + (f"<small>{t(f'{small}_{i}')}</small>" if small else "")
                + "</td>"
                for i in figures.SLOTS
            )
            return f'<tr><th scope="row">{label}</th>{cells}</tr>'

        heads = "".join(
            f'<th scope="col" {self.live.attrs(class_=f"cell_{i}")} aria-label="{which}">{_swatch(i)}</th>'
            for i, which in enumerate(("first", "second", "third"))
        )
        return (
            '<h2>The evidence <span class="aside">95 % intervals</span></h2>'
            f'<table class="evidence" aria-label="evidence for each vector"><tr><td></td>{heads}</tr>'
            + row("records", "size", "events")
            + row("C*", "c", "c_interval")
            + row("pure head", "head", "head_events")
            + row("with ties broken", "order")
            + row("M*", "m_star", "m_star_head")
            + row("M*, all heads", "m_scan")
            + row("breadth", "breadth", "breadth_null")
            + row("dispersion z, unit weight", "z", "z_records")
            + "</table>"
            '<p class="small">With ties broken: how far down the head would reach if tied records stood one by one, events last '
            "to events first. No threshold cuts inside ties, so the pure head ends at or above the first. A pure head convicts only if you hold that nobody’s outcome is nearly certain at prediction time; "
            "M*, that no admissible risk exceeds it (“all heads” allows for having looked at every one); the ceiling, that no "
            "honest model ranks better.</p>"
        )

    def _rates(self) -> str:
        t = self.live.text
        rows = "".join(
            f'<tr><th scope="row">{risk}</th><td class="n">{t(f"true_{key}")}</td>'
            f'<td class="n m">{t(f"naive_{key}")}</td></tr>'
            for risk, key in (("0.9", "9"), ("0.8", "8"), ("0.5", "5"))
        )
        return (
            "<h2>How often honest rankings convict</h2>"
            '<table class="rates" aria-label="rates of false certification"><tr><th scope="col" class="m">no risk above M</th>'
            f'<th scope="col" class="n m">true rate, at most</th><th scope="col" class="n m">M^k_min</th></tr>{rows}</table>'
            '<p class="small">On data with events enough for a head: M^k_min is the chance that k_min records of risk M all have the event. The head may have '
            "delta without it, and any length from k_min on, so honest rankings convict more often.</p>"
        )

    def _groups(self, slot: str) -> dict[str, dict[str, str]]:
        """Return the options of a menu: the user's vectors, the shipped, the simulated."""

        def named(names: list[str]) -> dict[str, str]:
            options: dict[str, str] = {}
            for name in names:
                title = self.shelf.title(name)
                options[title if title not in options else f"{title} ({name})"] = name
            return options

        groups = {
            "your own": named([v.name for v in reversed(self.shelf.own)]),
            "public data": named(list(shipped_names())),
            "simulated": named([SIMULATED + arm for arm in ARM]),
        }
        if slot != "first":
            groups = {" ": {"none": NONE}, **groups}
        return {title: options for title, options in groups.items() if options}

    def _choices(self) -> pn.Row:
        for slot, label in SLOTS.items():
            menu = pn.widgets.Select(
                label=label,
                groups=self._groups(slot),
                value=getattr(self.state, slot),
                margin=0,
                sizing_mode="stretch_width",
                stylesheets=[theme.FIELD_CSS],
            )
            menu.param.watch(lambda event, slot=slot: self._menu_chosen(slot, event.new), "value")
            self._menus[slot] = menu
        reset = markup(self.live.reset(), sizing_mode=None, styles={"margin-top": "18px"})
        menus = [helped(menu, SLOT_HELP[slot], css=_MENU_CSS) for slot, menu in self._menus.items()]
        return pn.Row(*menus, reset, margin=0, sizing_mode="stretch_width", stylesheets=[_ROW_CSS])

    def _menu_chosen(self, slot: str, name: str | None) -> None:
        if name is not None and name != getattr(self.state, slot):
            setattr(self.state, slot, name)

    def _written(self, name: str) -> str:
        value = getattr(self.state, name)
        return f"{value:,}" if name == "n" else f"{value:g}"

    def _arms(self) -> pn.Column:
        for name, (_, label, _) in ARMS.items():
            entry = pn.widgets.TextInput(
                label=label,
                value=self._written(name),
                margin=0,
                sizing_mode="stretch_width",
                stylesheets=[theme.FIELD_CSS],
            )
            entry.param.watch(lambda event, name=name: self._typed(name, event.new), "value")
            self._inputs[name] = entry
        self._arms_row = pn.Column(
            pn.Row(
                *(helped(entry, ARMS[name][2], css=_ENTRY_CSS) for name, entry in self._inputs.items()),
                margin=0,
                sizing_mode="stretch_width",
                stylesheets=[_ROW_CSS],
            ),
            visible=self._simulates,
            sizing_mode="stretch_width",
            margin=0,
        )
        return self._arms_row

    def _typed(self, name: str, text: str) -> None:
        """Simulate with what was typed, or say what is wrong with it; the picture stays till then."""
        if text == self._written(name):
            return
        try:
            values = {other: getattr(self.state, other) for other in ARMS} | {name: read_number(name, text)}
            settings = ArmSettings(**{ARMS[other][0]: value for other, value in values.items()})
            simulate(settings)
        except ValueError as error:
            self.told = [f"The arms were not simulated anew: {error}."]
            self._say()
        else:
            self.state.param.update(**values)

    def _pane(self, name: str, draw: Callable[[], hv.Overlay]) -> pn.pane.Bokeh:
        return figure_pane(("purity", name), self.live, draw, sizing_mode="stretch_both", margin=0)

    def _purity(self) -> pn.Column:
        live = self.live
        hooks = curves_hooks(live)
        hooks["figure"].append(live.edges("edges", beyond=figures.FAR, left="k_min_line", bottom="line"))
        body = card(
            figures.TITLE,
            self._pane("purity", lambda: self.figure("purity", hooks=hooks)),
            "A curve that is inside the shaded box at a cut convicts. The mark with its number is the end of the pure "
            "head; the grey wedge or band: where purity lies inside ties, from events last to events first; dotted, level: the "
            "base rate. "
            f"Drag the edges of the box. {SOURCE}, sections 2 to 4.",
            links=downloads(
                "purity",
                lambda backend: self.figure("purity", backend),
                lambda: self.data("purity"),
                page=self,
            ),
            height=430,
        )
        sources = "".join(
            f"<p {live.attrs(class_=f'row_{i}')}>{_swatch(i)}{live.text(f'title_{i}')}: {live.text(f'source_{i}')}.</p>"
            for i in figures.SLOTS
        )
        body.append(markup(f'<div class="small">{sources}</div>', css=_SOURCES_CSS))
        return body

    def _certification(self) -> pn.Column:
        live = self.live
        hooks = {
            "figure": [live.taps("certification")],
            "alpha": [live.tag("alpha", "glyph")],
            "naive": [live.tag("naive", "source")],
            "true": [live.tag("true", "source")],
            "k_min": [live.tag("cert_k_min", "glyph")],
            "needed": [live.tag("needed", "source")],
        }
        body = card(
            "How long must a pure head be?",
            self._pane("certification", lambda: self.figure("certification", hooks=hooks)),
            "Solid, vermilion: the true rate, exact, at this delta, for a head at any rank from k_min on. Dashed: the formula "
            "M^k_min, which holds for delta 0 only. Dotted: alpha; ring: the k_min that it needs. Tap to move k_min. "
            f"{SOURCE}, section 6; rates computed here, see data/certification/README.md.",
            links=downloads(
                "certification",
                lambda backend: self.figure("certification", backend),
                lambda: self.data("certification"),
                page=self,
            ),
            height=300,
        )
        body.insert(1, markup(self._calculator(), css=_BUTTON_CSS))
        return body

    def _calculator(self) -> str:
        live, t = self.live, self.live.text
        risks = "".join(live.button("max_risk", i, f"{v:g}") for i, v in enumerate(answers.RISKS))
        rates = "".join(live.button("alpha", i, f"{v:g}") for i, v in enumerate(answers.RATES))
        return (
            f'<p role="status" class="note">If no honest risk exceeds {t("say_max_risk")} and at most {t("say_alpha")} of honest '
            f"models may be convicted, at delta {t('say_delta')} <b>{t('needed')}</b> {t('needed_why')}. "
            f"The present k_min {t('say_k_min')} convicts {t('chosen_true')}; the formula gives {t('chosen_naive')}.</p>"
            f'<div class="pick" role="group" aria-label="M, largest honest risk"><span>M</span>{risks}<span class="help">largest honest risk, default 0.9</span></div>'
            f'<div class="pick" role="group" aria-label="alpha, rate that is tolerated"><span>alpha</span>{rates}<span class="help">share of honest models convicted, default 0.001</span></div>'
        )

    def _graded_pane(self, panel: str, title: str) -> pn.Column:
        tag = self.live.tag
        hooks: dict[str, list] = {
            layer: [tag(layer, "source")] for layer in (f"graded_{panel}", f"graded_{panel}_line")
        }
        hooks["graded_null"] = [tag("graded_null", "source")]
        hooks["graded_k_min"] = [tag("graded_k_min", "glyph")]
        pane = self._pane(panel, lambda: self._panel(panel, hooks=hooks))
        return pn.Column(
            markup(f'<p class="small">{title}</p>'),
            pn.Column(pane, height=230, sizing_mode="stretch_width", margin=0),
            sizing_mode="stretch_width",
            margin=0,
        )

    def _graded(self) -> pn.Column:
        t = self.live.text
        panes = [self._graded_pane(panel, title) for panel, (title, _) in figures.PANELS.items()]
        links = downloads(
            "graded-leak",
            lambda backend: self.figure("graded", backend),
            lambda: self.data("graded"),
            size=(260, 65),
            page=self,
            of="graded",
        )
        body = card(
            "A leak that grows: from which severity does it show?",
            pn.Column(*panes, sizing_mode="stretch_width", margin=0, stylesheets=[_FOUR_CSS]),
            "flchain, logistic regression: the model is told who died within so many days after the baseline. Breadth at "
            f"epsilon {t('say_epsilon')}, over the honest model; grey: breadth of two honest models over each other "
            f"(logistic regression and gradient boosting), 95 % of {RESAMPLES:,} resamples of the rows. 0 days: the honest model. Dashed: k_min. "
            f"As the operating characteristic of {SOURCE.removeprefix('Source: ')}, section 7.2; "
            "data: R package survival, see data/predictions/README.md.",
            links=links,
            height=None,
        )
        body.insert(1, markup(self._graded_says()))
        return body

    def _graded_says(self) -> str:
        t = self.live.text
        return f'<p class="note">{t("graded_says")} {t("graded_head_says")} {t("graded_m_says")}</p>'

    def _cautions(self) -> pn.pane.HTML:
        return markup(
            "<h2>What this page cannot tell</h2>"
            '<p class="note">A recalibrated leak that ranks no better than an honest model could has the law of an honest '
            "model: no function of (p, y) tells them apart (proposition 1). That is why the verdict is never the opposite "
            "of leaky, only “not shown”.</p>"
            '<p class="note">A pure head convicts only if nobody’s outcome is nearly certain at prediction time (lemma 3). '
            "Digits, cells under a microscope and death at ninety are nearly certain, and fire honestly.</p>"
            '<p class="note">Strong regularisation, or a numeric code for the leak, can hide a near-label: injury severity '
            "in nassCDS reaches a C* of 0.986 with logistic regression and shows no pure head at all.</p>",
            css="p { margin-top: 6px !important }",
        )

    def __panel__(self) -> pn.Column:
        """Build the page once; in the app, what is not seen first follows when the rest is there."""
        if self._root is None:
            right = pn.Column(
                markup(self._evidence(), css=_TABLE_CSS),
                sizing_mode="stretch_width",
                margin=0,
                stylesheets=[":host { gap: 18px }"],
            )
            root = self._root = pn.Column(
                link_note(self.state),
                self._alert,
                headline(self.state, self._heading, lambda: self.subject, css=_BANNER_CSS),
                pn.Column(
                    self._choices(),
                    self._arms(),
                    self.live,
                    sizing_mode="stretch_width",
                    margin=0,
                    stylesheets=[_RULED_CSS],
                ),
                pn.Column(
                    self._purity(), right, stylesheets=[theme.TWO_CSS], sizing_mode="stretch_width", margin=0
                ),
                sizing_mode="stretch_width",
                margin=0,
                stylesheets=[":host { gap: 18px }"],
            )

            def rest() -> None:
                right.append(markup(self._rates(), css=_TABLE_CSS))
                root.extend([self._certification(), self._graded(), self._cautions()])

            self.live.when_seen(rest)
        return self._root


assert {field for field, _, _ in ARMS.values()} == {f.name for f in fields(ArmSettings)}
