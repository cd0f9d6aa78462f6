"""The fingerprint page: a rule with two cuts on a battery, and how robust it is.

Source: arXiv 2607.19393, sections 4.4, 5 and 8. The core answers, `dashboards.fingerprint_answers` puts
the answers into a table, the figures draw, this page arranges.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import param
import xarray as xr

import leakviz
from dashboards import batteries, names, theme
from dashboards import fingerprint_answers as answers
from dashboards.ahead import AHEAD, Step, in_loop
from dashboards.batteries import Battery
from dashboards.cards import card, downloads
from dashboards.detail import DetailView
from dashboards.figures import fingerprint as figures
from dashboards.fingerprint_answers import METRICS, RULE, Choice, page_answers
from dashboards.live import Attribute, Column, Edge, Grip, Live, Select, Slider, Tap, encode_once
from dashboards.markup import headline, link_note, markup, meanwhile
from dashboards.shelf import Shelf
from dashboards.state import LONGEST, PageState, asked_of, nearest_stop
from dashboards.stencil import figure_pane
from leakviz.detector_sweep import LEDOIT_WOLF, alpha_name, sweep_detector, use_detector

__all__ = ["FingerprintPage", "FingerprintState", "page_answers"]

TITLE = "Fingerprint"
# The rows of the read-outs, as the paper breaks them down (2607.19393, section 5.3).
GROUPS = {
    "leak": ("leak, fires", theme.REGIME_COLOR["leak"]),
    "clean-excl": ("excluded, silent", theme.REGIME_COLOR["clean-excl"]),
    "clean-retrained": ("retrained, silent", theme.REGIME_COLOR["clean-retrained"]),
    "clean-novel far": ("far source, silent", theme.REGIME_COLOR["clean-novel"]),
    "clean-novel near": ("near source, silent", theme.REGIME_COLOR["clean-novel"]),
    "clean": ("all clean, silent", "currentColor"),
}
# What the legend calls the regimes: the words of the rows above.
LEGEND = {
    "leak": "leak",
    "clean-excl": "excluded",
    "clean-retrained": "retrained",
    "clean-novel": "other source",
}
DISTANCES = {"all": "near and far", "near": "near only", "far": "far only"}
SIZES = {"all": "any number", "1": "one class", "2": "two classes", "3": "three classes"}
COVARIANCES = {"one-class": "one-class", "tied": "tied"}
DETECTORS = {"max": "larger of both", "mahalanobis": "Mahalanobis", "knn": "kNN"}
# Menus and what stands above them. Those that a battery offers no choice for are not there.
MENUS = {
    "battery": "battery",
    "covariance": "covariance",
    "detector": "detector",
    "backbone": "backbone",
    "id_dataset": "ID data set",
    "size": "OOD group",
    "distance": "other sources",
}
FILTERS = ("backbone", "id_dataset", "distance", "size")
# What the sources of a pair's members are called.
PAIR_TARGETS = {"leak": "leaked", "excluded": "excluded_pair", "retrained": "retrained_pair"}
PAPER = '<a href="https://arxiv.org/abs/2607.19393">arXiv 2607.19393</a>'

PUBLISHED_CAUTIONS = (
    "The settings are re-designations of classes on four backbones, not 52 independent draws: "
    "the intervals hold within this design, not for benchmarks at large (section 5.1).",
    "At the published 0.95 the gate is inert on these 52 settings; at 0.96 it would remove the only false alarm. "
    "It is there for hard novel classes: in the text audit "
    "one has best-unsup 0.57 and an oracle of 0.88 to 0.91, and only the gate keeps it from firing (section 6).",
    "A hard clean pair can fire: CIFAR-100 to CIFAR-10 does, with no leak. A threshold on one "
    "setting raises a suspicion; the exclusion contrast above is the evidence (section 5.4).",
)
OWN_CAUTIONS = (
    "The rule needs features that were trained on the classes of the fit set: with others a novel class can fire "
    "and a leak can stay silent.",
    "Excluding a class from the fit set alone flatters its clean value, for the features have seen it. Training "
    "again without the class is the gold standard.",
    "A threshold on one setting raises a suspicion; the exclusion contrast is the evidence.",
)


class FingerprintState(PageState):
    """What a link to this page carries."""

    chooses = ("battery",)
    brought = "embeddings"

    battery: Any = param.Selector(default="published", objects=list(batteries.TITLES), label="battery")
    gate = param.Number(RULE.gate, label="gate")
    tau = param.Number(RULE.tau, label="tau")
    alpha: Any = param.Selector(default=LEDOIT_WOLF, objects=[LEDOIT_WOLF], label="alpha")
    covariance: Any = param.Selector(default="one-class", objects=list(COVARIANCES), label="covariance")
    detector: Any = param.Selector(default="max", objects=list(DETECTORS), label="detector")
    backbone: Any = param.Selector(default="all", objects=["all"], label="backbone")
    id_dataset: Any = param.Selector(default="all", objects=["all"], label="ID data set")
    distance: Any = param.Selector(default="all", objects=list(DISTANCES), label="other sources")
    size: Any = param.Selector(default="all", objects=["all"], label="OOD group")
    metric: Any = param.Selector(default=METRICS[0], objects=list(METRICS), label="map")
    hidden = param.ListSelector(default=[], objects=list(figures.REGIMES), label="hidden regimes")
    seeds: Any = param.Selector(default="shown", objects=["shown", "hidden"], label="seeds")
    chosen: Any = param.Selector(default="", objects=[""], label="setting")

    def __init__(self, own: Sequence[Battery] = (), **params: Any):
        super().__init__(**params)
        self.own = list(own)
        self.offer(self.own)
        self.adapt(batteries.published())

    def offer(self, own: Sequence[Battery]) -> None:
        """Take these batteries of the session as what can be chosen besides the shipped ones."""
        self.own = list(own)
        self.param["battery"].objects = list(batteries.titles(self.own))

    def shown_battery(self) -> Battery:
        """Return the battery that is chosen."""
        return batteries.get(self.battery, self.own)

    def adapt(self, battery: Battery) -> dict[str, Any]:
        """Take what this battery offers as what can be chosen; return what must change for it."""
        dataset = battery.dataset
        rich = answers.has_alpha(dataset)
        self.stops = {"gate": answers.gate_stops(dataset), "tau": answers.tau_stops(dataset)}
        alphas = answers.alpha_stops(dataset) if rich else [LEDOIT_WOLF]
        offered = {
            "alpha": [alpha_name(a) for a in alphas],
            "covariance": [c for c in COVARIANCES if c in dataset["covariance"].values]
            if rich
            else ["one-class"],
            "detector": list(DETECTORS)[: 3 if rich else 1],
            "backbone": ["all", *sorted(set(dataset["backbone"].values.tolist()))],
            "id_dataset": ["all", *sorted(set(dataset["id_dataset"].values.tolist()))],
            "size": ["all", *(str(n) for n in np.unique(dataset["size"].values) if n)]
            if "size" in dataset.coords
            else ["all"],
            "hidden": list(figures.regimes_of(dataset)),
            "seeds": ["shown", "hidden"] if rich else ["shown"],
            "chosen": ["", *dataset["setting"].values.tolist()],
        }
        changes: dict[str, Any] = {}
        for name, objects in offered.items():
            self.param[name].objects = objects
            value = getattr(self, name)
            if name == "hidden":
                kept = [regime for regime in value if regime in objects]
                if kept != value:
                    changes[name] = kept
            elif value not in objects:
                changes[name] = self.param[name].default
        for name, stops in self.stops.items():
            nearest = float(stops[int(np.argmin(np.abs(stops - getattr(self, name))))])
            if nearest != getattr(self, name):
                changes[name] = nearest
        return changes

    def _read(self, query: str) -> list[str]:
        """Read the battery first, for it says what else there is."""
        asked = asked_of(query).get("battery", self.param["battery"].default)[:LONGEST]
        known = asked in self.param["battery"].objects
        self.adapt(batteries.get(asked if known else self.param["battery"].default, self.own))
        if not known and self.waits_for(asked, "battery"):
            kept = {name: value for name, value in asked_of(query).items() if name in self.stops}
            query = urlencode(kept)  # the rest is about what is not here
        return super()._read(query)

    def _read_one(self, name: str, text: str) -> tuple[Any, str]:
        numbers = [a for a in self.param["alpha"].objects if a != LEDOIT_WOLF]
        if name == "alpha" and numbers and text not in self.param["alpha"].objects:
            value, sentence = nearest_stop(text, np.array([float(a) for a in numbers]), "alpha", np.nan)
            if np.isnan(value):
                return LEDOIT_WOLF, sentence.replace("nan is shown", "Ledoit-Wolf is shown")
            return alpha_name(value), sentence
        return super()._read_one(name, text)

    def choice(self) -> Choice:
        """Return what the menus decide."""
        return Choice(**{name: getattr(self, name) for name in Choice._fields})


_TABLE_CSS = theme.css(
    """
.bars { width: 84px; height: 14px; display: block }
.bars line.rail { stroke: $hair }
td:last-child { padding-left: 12px; width: 84px }
.dot { width: 10px; height: 10px; margin-right: 7px; vertical-align: -1px }
.cross { width: auto; margin: 14px 0 4px }
.cross td, .cross th { padding: 3px 14px 3px 0 }
.cross .n { padding-left: 14px }
@media (max-width: 420px) { .interval { display: none } }
"""
)
_LEGEND_CSS = theme.css(
    """
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12.5px; color: $muted; align-items: center }
.legend button { display: inline-flex; gap: 5px; align-items: center; font-size: 12.5px }
.legend button[aria-pressed=false] { text-decoration: line-through; opacity: .75 }
.legend span { display: inline-flex; gap: 5px; align-items: center }
.legend svg { width: 16px; height: 16px }
.legend .ink { stroke: $ink }
.legend .grey { fill: $muted }
"""
)
_CHOICE_CSS = theme.css(
    ".choose { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: baseline; margin-top: 6px }"
    " .choose span { min-width: 0; max-width: 100% }"
    # Two lines, whatever their number: nothing below moves with the hand, and no layout is made anew.
    " .errors { height: 2.9em; overflow-y: auto; contain: strict }"
)
# On a low screen everything moves together, so that the whole firing box is on the first one.
_LOW = f"@media (min-width: {theme.NARROW + 1}px) and (max-height: 1000px)"
_HEADING_CSS = (
    f"{_LOW} {{ h1 {{ font-size: 21px; line-height: 1.24; max-width: none; margin-bottom: 2px }} "
    ".note { font-size: 13px; max-width: none } }"
)
_PAGE_CSS = f":host {{ gap: 18px }} .scroll-button {{ display: none !important }} {_LOW} {{ :host {{ gap: 10px; margin-top: var(--lv-rise, 0) }} }}"
_STRIP_CSS = (
    ":host(.three) { grid-template-columns: minmax(0, 1fr) }"
    f" {_LOW} {{ :host {{ padding: 6px 0 8px; row-gap: 6px }} }}"
)
# What stands above the box on a low screen, with two sliders and with three.
_ABOVE = {False: 336, True: 388}  # px
_WHISKER = (
    '<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">'
    '<path d="M8 2v12M2 8h12" fill="none" stroke-width="1.2" class="ink"></path></svg>'
)
_METRIC_CSS = theme.css(
    """
.metric button { font-size: 12.5px; padding: 4px 3px }
.metric button[aria-pressed=true] { color: $ink; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: $accent; text-decoration-thickness: 2px }
"""
)
_SELECT_CSS = ":host { flex: 0 1 auto }"
_FILTER_CSS = ":host { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: flex-end; width: auto }"
_WIDE_CSS = theme.css(
    """
:host { overflow-x: auto; overflow-y: hidden; min-width: 0 }
.bk-Figure { min-width: 760px }  /* the names need room: a phone scrolls sideways */
"""
)


def _mark(regime: str) -> str:
    color = theme.REGIME_COLOR[regime]
    shape = {
        "circle": f'<circle cx="8" cy="8" r="4.6" fill="none" stroke="{color}" stroke-width="1.7"></circle>',
        "square": f'<rect x="3.8" y="3.8" width="8.4" height="8.4" fill="none" stroke="{color}" stroke-width="1.7"></rect>',
        "diamond": f'<path d="M8 2.4l5 5.6-5 5.6-5-5.6z" fill="none" stroke="{color}" stroke-width="1.7"></path>',
        "triangle": f'<path d="M8 2.7l5.1 8.7h-10.2z" fill="none" stroke="{color}" stroke-width="1.7"></path>',
    }[theme.REGIME_MARK[regime]]
    return f'<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{shape}</svg>'


class FingerprintPage(pn.viewable.Viewer):
    """The page: the same object in the app, in a notebook cell and in a test.

    Parameters
    ----------
    query : str
        A link's query string, from which the page starts.
    shelf : Shelf, optional
        The session's own batteries are on it.

    Examples
    --------
    >>> page = FingerprintPage("?tau=0.8")
    >>> page.state.tau, int(page.answer().correct.sel(regime="leak"))
    (0.8, 20)
    """

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        self.shelf = shelf or Shelf()
        self.state = FingerprintState(self.shelf.batteries)
        self.state.read(query)
        self.shelf.hear(self.state, "fingerprint", TITLE)
        super().__init__(**params)
        self._releasing = self._adapting = self._settling = False
        self._menus: dict[str, pn.widgets.Select] = {}
        self._root: pn.Column | None = None
        self._parts: dict[str, Any] = {}
        self._take()
        self.state.param.watch(self._follow, self.state.names())
        self.shelf.param.watch(self._offered, "batteries")

    def _take(self) -> None:
        """Take the battery that the state names, and a hand for it."""
        self.shown_battery = self.state.shown_battery()
        self.battery = self.shown_battery.dataset
        self.rich = answers.has_alpha(self.battery)
        self.flat = answers.over_seeds(self.battery)
        self.pairs = answers.pairs_of(self.shown_battery)
        self.regimes = figures.regimes_of(self.battery)
        self.groups = answers.groups_of(self.battery)
        self.ranges = figures.scatter_range(self.battery if self.rich else self.flat)
        self.live = self._make_live()
        self._settle()
        alphas = answers.alpha_stops(self.battery) if self.rich else []
        battery = self.shown_battery
        self.detail = DetailView(battery, alphas, leader=self.live) if battery.backbones else None
        self.live.param.watch(self._released, "state")
        self.live.param.watch(self._reset, "resets")

    # ---- answers

    @property
    def figure_state(self) -> dict[str, tuple[str, ...]]:
        """What of the state decides each figure."""
        of = ("backbone", "id_dataset", "distance", "size", "hidden")
        of = (*(("alpha", "detector", "covariance") if self.rich else ()), *of)
        cuts = ("gate", "tau", *of)
        decides = {
            "scatter": cuts,
            "map": ("metric", *cuts),
            "rates": cuts,
            "area": ("gate", *of),
            "contrast": cuts,
        }
        return {name: decides[name] for name in self.figure_names()}

    @property
    def subject(self) -> str:
        """What data the page shows."""
        title = {"published": "Published battery", "computed": "Computed battery"}
        name = self.shown_battery.name
        return f"{title.get(name, self.shown_battery.title)}, {self.battery.sizes['setting']} settings"

    @property
    def shown(self) -> np.ndarray:
        """Which settings the filters leave."""
        return answers.filter_settings(self.battery, self.state.choice())

    def _alpha(self) -> float | str:
        return LEDOIT_WOLF if self.state.alpha == LEDOIT_WOLF else float(self.state.alpha)

    def _subset(self) -> xr.Dataset:
        """Return the settings that the filters leave, under the detector that the state names."""
        subset = self.battery.isel(setting=self.shown)
        if not self.rich:
            return subset
        s = self.state
        return use_detector(
            subset, alpha=cast(Any, self._alpha()), covariance=s.covariance, detector=s.detector
        )

    def answer(self) -> xr.Dataset:
        """Return the core's answer at the present state, as `leakviz.score_battery` gives it."""
        return leakviz.score_battery(self._subset(), leakviz.Rule(self.state.gate, self.state.tau))

    def figure_names(self) -> tuple[str, ...]:
        """Return what `figure` and `data` can be asked for."""
        third = "area" if self.rich else "rates"
        both = "leak" in self.groups and "clean" in self.groups  # else there is no rate of one kind
        return ("scatter", *(("map", third) if both else ()), *(("contrast",) if len(self.pairs) else ()))

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present state.

        Parameters
        ----------
        name : {"scatter", "map", "rates", "area", "contrast"}
            "rates" where the battery has no alpha, "area" where it has.
        """
        s, subset = self.state, self._subset()
        rule = leakviz.Rule(s.gate, s.tau)
        under = {"alpha": s.alpha, "covariance": s.covariance, "detector": s.detector} if self.rich else {}
        if name == "scatter":
            means = answers.over_seeds(subset).drop_vars("fired_published", errors="ignore")
            frame = means.to_dataframe().reset_index()
            if self.rich:
                for end, of in (("lowest", np.min), ("highest", np.max)):
                    for variable in ("oracle_lda", "best_unsup"):
                        frame[f"{variable}_{end}_seed"] = of(subset[variable].values, axis=1)
            frame["gate"], frame["tau"] = rule.gate, rule.tau
            frame["fires"] = leakviz.fired(subset, rule).values
            hidden = [self.regimes[h] for h in s.hidden]
            return frame[~frame["regime"].isin(hidden)].assign(**under)
        if name == "contrast":
            pairs = answers.matched_pairs(subset)
            frame = pairs.drop(columns=["leaked_setting", "excluded_setting", "retrained_setting", "group"])
            return frame.assign(tau=rule.tau, **under)
        gates, taus = self.state.stops["gate"], self.state.stops["tau"]
        if name == "area" and self.rich:
            sweep = sweep_detector(
                subset,
                gates=[rule.gate],
                taus=[rule.tau],
                alphas=answers.alpha_stops(self.battery),
                covariance=s.covariance,
                detector=s.detector,
            ).isel(gate=0)
            frame = sweep[["auroc", "auroc_low", "auroc_high"]].to_dataframe().reset_index()
            return frame.assign(covariance=s.covariance, detector=s.detector)
        sweep = leakviz.sweep_rule(subset, gates=gates, taus=taus)
        if name == "map":
            frame = sweep[["sensitivity", "specificity", "balanced_accuracy"]].to_dataframe().reset_index()
            return frame.assign(**under)
        if name != "rates":
            raise ValueError(f"no figure is called {name!r}; there are {_and(self.figure_names())}")
        at_gate = sweep.sel(gate=rule.gate)
        return pd.concat(
            [
                at_gate.sel(regime=group)[["rate", "low", "high"]]
                .to_dataframe()
                .reset_index()
                .assign(rate_of=rate)[["gate", "tau", "rate_of", "rate", "low", "high"]]
                for rate, group in (("sensitivity", "leak"), ("specificity", "clean"))
            ],
            ignore_index=True,
        )

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        """Return a figure at the present state as a HoloViews element.

        Parameters
        ----------
        name : {"scatter", "map", "rates", "area", "contrast"}
            "rates" where the battery has no alpha, "area" where it has.
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        if name not in self.figure_names():
            raise ValueError(f"no figure is called {name!r}; there are {_and(self.figure_names())}")
        now, s = self.live.at(), self.state
        common: dict[str, Any] = {"hooks": hooks, "backend": backend}
        if name == "scatter":
            return figures.scatter(
                self.flat,
                now,
                link=[float(now[f"link_{e}"].values[0]) for e in ("x0", "y0", "x1", "y1")],
                visible=[r for r in self.regimes if r not in s.hidden],
                seeds=s.seeds == "shown",
                ranges=self.ranges,
                **common,
            )
        gates, taus = s.stops["gate"], s.stops["tau"]
        if name == "map":
            rows = taus[:: figures.MAP_EVERY] if self.rich else taus
            return figures.heat_map(
                now, gates=gates, taus=rows, gate=s.gate, tau=s.tau, metric=s.metric, **common
            )
        if name == "rates":
            return figures.rate_curves(now, taus=taus, tau=s.tau, **common)
        if name == "area":
            return figures.area_curve(now, alphas=self.live.answers["alpha"].values.tolist(), **common)
        low = self.ranges["y"][0] if self.rich else None
        return figures.dumbbells(self.pairs, now, tau=s.tau, low=low, **common)

    # ---- the hand

    def _columns(self, table: xr.Dataset) -> list[Column]:
        """Return which column of which source follows which variable of the table."""

        def of(variables: tuple[str, ...]) -> str | tuple[str, ...]:
            return variables[0] if len(variables) == 1 else variables

        columns = [
            Column("box:source", "left", "box_left"),
            Column("box:source", "top", "box_top"),
            Column("box_label:source", "x", "box_label_x"),
            *(Column("link:source", end, f"link_{end}") for end in ("x0", "y0", "x1", "y1")),
            Column("cross:source", "gate", "box_left"),
            Column("cross:source", "tau", "box_top"),
            *(Column(f"{heat}:source", "image", heat) for heat, *_ in figures.maps(table, METRICS[0])),
        ]
        if self.rich:
            columns += [
                Column("area_curve:source", "area", "area_curve"),
                Column("area_band:source", "y", "area_band"),
                Column("area_now:source", "alpha", "alpha_place"),
                Column("area_now:source", "area", "area_now"),
            ]
        else:
            for rate in ("sensitivity", "specificity"):
                columns.append(Column(f"{rate}:source", "rate", rate))
                columns.append(Column(f"{rate}_band:source", "y", f"{rate}_band"))
        for name, target in PAIR_TARGETS.items():
            if f"pair_{name}" in table:
                columns.append(
                    Column(f"{target}:source", "fill_alpha", of(figures.fills(table, f"pair_{name}")))
                )
                columns.append(Column(f"{target}:source", "best_unsup", f"pair_{name}"))
        if len(self.pairs):
            columns.append(Column("stems:source", "y0", "pair_leak"))
            columns.append(Column("stems:source", "y1", "pair_excluded"))
        for r in self.regimes:
            rings = figures.rings(table, r)
            for layer in (r, *rings):
                columns.append(Column(f"{layer}:source", "oracle_lda", f"{r}_x"))
                columns.append(Column(f"{layer}:source", "best_unsup", f"{r}_y"))
            columns.append(Column(f"{r}:source", "fill_alpha", of(figures.fills(table, r))))
            columns += [Column(f"{layer}:source", "line_alpha", of(v)) for layer, v in rings.items()]
            if f"{r}_name_seen" in table:
                columns += [Column(f"{r}_names:source", end, f"{r}_{end}") for end in ("x", "y")]
                columns.append(Column(f"{r}_names:source", "text_alpha", f"{r}_name_seen"))
                columns.append(Column(f"{r}_names:source", "text_align", f"{r}_name_align"))
                columns += [Column(f"{r}_names:source", f"{c}_offset", f"{r}_name_d{c}") for c in ("x", "y")]
            if f"{r}_least" in table:
                columns.append(Column(f"{r}:source", "maha", f"{r}_maha"))
                columns += [Column(f"{r}_tall:source", end, f"{r}_x") for end in ("x0", "x1")]
                columns.append(Column(f"{r}_tall:source", "y0", f"{r}_least"))
                columns.append(Column(f"{r}_tall:source", "y1", f"{r}_most"))
                columns += [Column(f"{r}_wide:source", end, f"{r}_y") for end in ("y0", "y1")]
                columns.append(Column(f"{r}_wide:source", "x0", f"{r}_x_least"))
                columns.append(Column(f"{r}_wide:source", "x1", f"{r}_x_most"))
        return columns

    def _layers(self, table: xr.Dataset, r: str) -> tuple[str, ...]:
        """Return the layers of a regime that its switch shows and hides."""
        named = (f"{r}_names",) if f"{r}_name_seen" in table else ()
        return (r, *figures.rings(table, r), *named)

    def _attributes(self, table: xr.Dataset) -> list[Attribute]:
        third = [Attribute("area_alpha:glyph", "location", "alpha_line")] if self.rich else []
        tau = [
            "cross_tau",
            *([] if self.rich else ["rates_tau"]),
            *(["contrast_tau"] if len(self.pairs) else []),
        ]
        whiskers = [
            Attribute(f"{r}_{layer}:glyph_renderer", "visible", f"see_{r}_seeds")
            for r in self.regimes
            for layer in ("tall", "wide")
        ]
        return [
            Attribute("edges", "left", "gate_line"),
            Attribute("edges", "top", "tau_line"),
            Attribute("cross_gate:glyph", "location", "gate_line"),
            *(Attribute(f"{line}:glyph", "location", "tau_line") for line in tau),
            *third,
            *(
                Attribute(f"heat_{m}:glyph_renderer", "visible", f"see_{m}")
                for m in METRICS
                if f"see_{m}" in table
            ),
            *(
                Attribute(f"{layer}:glyph_renderer", "visible", f"see_{r}")
                for r in self.regimes
                for layer in self._layers(table, r)
            ),
            *(whiskers if self.rich else []),
        ]

    def _grips(self) -> list[Grip]:
        grips: list[Grip] = [
            Edge("edges", "left", "gate"),
            Edge("edges", "top", "tau"),
            Tap("map", x="gate", y="tau"),
            *(
                Select(f"points_{r}", "chosen", tuple(int(i) + 1 for i in self._of(regime)), "scatter")
                for r, regime in self.regimes.items()
            ),
        ]
        for name, (_, of) in figures.pair_members(self.battery, self.pairs).items():
            if of:
                grips.append(Select(f"pairs_{name}", "chosen", tuple(i + 1 for i in of), "contrast"))
        return grips

    def _make_live(self) -> Live:
        table = answers.answers(self.shown_battery, self.state.choice())
        named = names.setting_names(self.battery)
        which = [names.REGIME[str(r)] for r in self.battery["regime"].values]
        sliders = [
            Slider("gate", "oracle gate", "probe AUROC needed to fire, default 0.95"),
            Slider("tau", "tau", "detection collapses below it, default 0.65"),
        ]
        start: dict[str, Any] = {
            "gate": RULE.gate,
            "tau": RULE.tau,
            "metric": METRICS[0],
            "chosen": "",
            **{f"show_{r}": 1 for r in self.regimes},
        }
        labels: dict[str, Sequence[str]] = {
            "metric": [figures.METRICS[m][1] for m in METRICS],
            "chosen": ["no setting", *(f"{n} ({w})" for n, w in zip(named, which, strict=True))],
            **{f"show_{r}": ["hidden", "shown"] for r in self.regimes},
        }
        if self.rich:
            sliders.append(
                Slider(
                    "alpha",
                    "alpha",
                    "0 whitens, 1 is Euclidean; default Ledoit-Wolf",
                    marks=((cast(Any, LEDOIT_WOLF), "Ledoit-Wolf, each setting's own"),),
                )
            )
            start |= {"alpha": LEDOIT_WOLF, "seeds": 1}
            labels["alpha"] = [answers.alpha_label(a) for a in table["alpha"].values.tolist()]
            labels["seeds"] = ["hidden", "shown"]
            for dim in ("gate", "tau"):
                labels[dim] = [f"{v:.2f}" for v in table[dim].values]
        return Live(
            table,
            sliders=sliders,
            columns=self._columns(table),
            attributes=self._attributes(table),
            grips=self._grips(),
            start=start,
            labels=labels,
            follows=answers.follows(table),
            sizing_mode="stretch_width",
            margin=0,
        )

    def _of(self, regime: str) -> np.ndarray:
        return np.flatnonzero(self.battery["regime"].values == regime)

    def _settle(self) -> None:
        """Move the hand to the state."""
        s = self.state
        values: dict[str, Any] = {f"show_{r}": int(r not in s.hidden) for r in self.regimes}
        if self.rich:
            values |= {"alpha": s.alpha, "seeds": int(s.seeds == "shown")}
        self.live.go(gate=s.gate, tau=s.tau, metric=s.metric, chosen=s.chosen, **values)

    def _released(self, event: Any) -> None:
        """Take over where the hand let go."""
        live = self.live
        values = {name: live.value(name) for name in ("gate", "tau", "metric", "chosen")}
        values["hidden"] = [r for r in self.regimes if not live.value(f"show_{r}")]
        if self.rich:
            values |= {"alpha": live.value("alpha"), "seeds": "shown" if live.value("seeds") else "hidden"}
        self._releasing = True
        try:
            self.state.param.update(**values)
        finally:
            self._releasing = False

    def _reset(self, event: Any) -> None:
        self.state.param.update(**dict.fromkeys(FILTERS, "all"), covariance="one-class", detector="max")

    def _follow(self, *events: Any) -> None:
        if self._adapting:
            return
        changed = {e.name for e in events}
        with pn.io.hold():
            if "battery" in changed:
                self._change_battery()
            else:
                if changed & set(Choice._fields):
                    self.live.update_answers(answers.answers(self.shown_battery, self.state.choice()))
                    self._look_ahead()
                if not self._releasing:
                    self._settle()
                if changed & {"chosen", "alpha", "covariance", "detector"}:
                    self._show_detail()
            self._settle_menus()

    def _look_ahead(self) -> None:
        """Have worked out, in the app, the computed battery, and then what its menus can ask for next."""
        here = self.shown_battery
        if not (pn.state.curdoc and pn.state.curdoc.session_context):
            return
        steps: dict[Any, Step] = {}
        if here.name != batteries.COMPUTED:
            steps |= _computed_ahead()
        else:
            form = (self.live.walked, tuple(self.live.follows))
            now = self.state.choice()
            for name in ("covariance", "detector", "backbone", "id_dataset", "size", "distance"):
                for value in self.state.param[name].objects:
                    choice = now._replace(**{name: value})
                    steps[here.name, choice] = partial(_answer_ahead, here.name, choice, *form)
        AHEAD.ask(steps)

    def _show_detail(self) -> None:
        """Show the setting that is chosen, if its scores are there."""
        if self.detail is not None:
            s = self.state
            self.detail.show_setting(s.chosen, covariance=s.covariance, detector=s.detector, alpha=s.alpha)

    def _change_battery(self) -> None:
        """Show another battery: other points, another hand, other figures; the frame around them stays."""
        self._adapting = True
        try:
            self.state.param.update(**self.state.adapt(self.state.shown_battery()))
        finally:
            self._adapting = False
        self._take()
        if self._root is not None:
            self._arrange()

    def _offered(self, event: Any) -> None:
        """A battery came onto the shelf, or left it."""
        self.state.offer(event.new)
        if self.state.battery not in self.state.param["battery"].objects:
            self.state.battery = self.state.param["battery"].default
        self._settle_menus()

    # ---- the page

    def _heading(self) -> str:
        t = self.live.text
        cuts = f"At gate <b>{t('say_gate')}</b> and tau <b>{t('say_tau')}</b>"
        without = None if self.rich else t("gate_says")
        if self.rich:
            cuts = (
                f"At gate <b>{t('say_gate')}</b>, tau <b>{t('say_tau')}</b> and alpha <b>{t('say_alpha')}</b>"
            )
            without = (
                f"Without the gate, tau alone would flag {t('leak_ungated_says')} and raise "
                f"{t('clean_ungated_says')}."
            )
        return (
            f'<div role="status" aria-live="polite" aria-atomic="true"><h1>{cuts} '
            f"the fingerprint catches <b>{t('leak_count')}</b> {t('leak_word')} and raises "
            f"<b>{t('alarms')}</b> {t('alarm_word')} in {t('clean_n')} clean settings.</h1></div>"
            '<p class="note">A split is flagged when a supervised probe separates the OOD class almost perfectly and '
            f"no unsupervised detector can. {without}</p>"
        )

    def _whole_subject(self) -> str:
        """Return the subject as it stands within a sentence."""
        shipped = self.shown_battery.name in batteries.TITLES
        return f"the {self.subject[:1].lower()}{self.subject[1:]}" if shipped else self.subject

    def _legend(self) -> str:
        switches = "".join(
            self.live.switch(f"show_{r}", _mark(regime) + LEGEND[regime])
            for r, regime in self.regimes.items()
        )
        if self.rich:
            switches += self.live.switch("seeds", f"{_WHISKER}seeds")
        return (
            f'<div class="legend" role="group" aria-label="regimes">{switches}'
            '<span><svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="5" class="grey"></circle></svg>'
            "filled: fires</span>"
            '<span><svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.5" fill="none" '
            'stroke-width="1.2" class="ink"></circle></svg>ring: error</span></div>'
        )

    def _read_outs(self) -> str:
        t, rows = self.live.text, []
        for key in self.groups:
            (label, color), name = GROUPS[key], answers.key_of(key)
            line = self.live.attrs(x1=f"{name}_low", x2=f"{name}_high")
            dot = self.live.attrs(cx=f"{name}_at")
            rows.append(
                f'<tr><th scope="row"><svg class="dot" viewBox="0 0 10 10" aria-hidden="true">'
                f'<circle cx="5" cy="5" r="4.5" fill="{color}"></circle></svg>{label}</th>'
                f'<td class="n">{t(f"{name}_count")}</td><td class="n">{t(f"{name}_rate")}</td>'
                f'<td class="n m interval">{t(f"{name}_interval")}</td>'
                '<td><svg class="bars" viewBox="0 0 120 14" aria-hidden="true">'
                '<line class="rail" x1="2" x2="118" y1="7" y2="7"></line>'
                f'<line y1="7" y2="7" stroke="{color}" stroke-width="3" {line}></line>'
                f'<circle cy="7" r="4" fill="{color}" {dot}></circle></svg></td></tr>'
            )
        return f'<table aria-label="what it gets right, with Wilson 95 % intervals">{"".join(rows)}</table>'

    def _two_by_two(self) -> str:
        t = self.live.text
        return (
            '<table class="cross" aria-label="two by two"><tr><td></td><th scope="col" class="n m">fires</th>'
            '<th scope="col" class="n m">silent</th></tr>'
            f'<tr><th scope="row">leak</th><td class="n">{t("hit")}</td><td class="n">{t("miss")}</td></tr>'
            f'<tr><th scope="row">clean</th><td class="n">{t("alarms")}</td><td class="n">{t("quiet")}</td></tr></table>'
            f'<p class="small">AUROC of the fingerprint score (1 − best-unsup, 0 below the gate): '
            f"{t('area')}, 95 % interval {t('area_interval')}; without the gate {t('area_ungated')}.</p>"
        )

    def _make_menus(self) -> None:
        """Make the menus once: they stay when the battery changes, so that the keyboard stays where it is."""
        for name, title in MENUS.items():
            menu = pn.widgets.Select(
                label=title, options={}, width=132, margin=0, stylesheets=[theme.FIELD_CSS, _SELECT_CSS]
            )
            self._menus[name] = menu
        self._settle_menus()
        for name, menu in self._menus.items():
            menu.param.watch(lambda event, name=name: self._picked(name, event.new), "value")

    def _picked(self, name: str, value: Any) -> None:
        if not self._settling and value is not None:
            self.state.param.update(**{name: value})

    def _labels(self, name: str) -> dict[str, str]:
        """Return what the entries of a menu are called."""
        return {
            "battery": batteries.titles(self.shelf.batteries),
            "covariance": COVARIANCES,
            "detector": DETECTORS,
            "backbone": {"all": "all", **names.BACKBONE},
            "id_dataset": {"all": "all", **names.DATASET},
            "distance": DISTANCES,
            "size": SIZES,
        }[name]

    def _settle_menus(self) -> None:
        """Let the menus offer and show what the state does."""
        self._settling = True
        try:
            for name, menu in self._menus.items():
                labels = self._labels(name)
                options = {labels.get(o, o): o for o in self.state.param[name].objects}
                if menu.options != options:
                    menu.options = options
                menu.value = getattr(self.state, name)
        finally:
            self._settling = False

    def _extras(self) -> list[Any]:
        """Return the menus that only some batteries have."""
        offered = [n for n in ("covariance", "detector", "size") if len(self.state.param[n].objects) > 1]
        return [self._menus[name] for name in offered]

    def _controls(self) -> pn.Row:
        self._make_menus()
        self._parts["extra"] = extra = pn.Row(
            *self._extras(), margin=0, sizing_mode=None, stylesheets=[_FILTER_CSS]
        )
        self._parts["reset"] = reset = markup(
            self.live.reset(), sizing_mode=None, styles={"align-self": "flex-end"}
        )
        always = [self._menus[name] for name in ("battery", "backbone", "id_dataset", "distance")]
        return pn.Row(*always, extra, reset, margin=0, sizing_mode=None, stylesheets=[_FILTER_CSS])

    def _pane(self, name: str, hooks: dict) -> pn.pane.Bokeh:
        size: dict[str, Any] = {"sizing_mode": "stretch_both", "margin": 0}
        battery = self.shown_battery.name
        if battery in batteries.TITLES:
            return figure_pane(
                ("fingerprint", battery, name), self.live, lambda: self.figure(name, hooks=hooks), **size
            )
        # A session's own is drawn for it alone, and kept nowhere else.
        figure = hv.renderer("bokeh").get_plot(self.figure(name, hooks=hooks)).state
        self.live.apply(figure)
        return pn.pane.Bokeh(figure, **size)

    def _source(self) -> str:
        """Return where the numbers are from, as HTML."""
        if self.shown_battery.name == batteries.PUBLISHED:
            return f"Source: {PAPER}, Table 12"
        return f"Source: {html.escape(self.shown_battery.source)}"

    def _seeds(self) -> str:
        """Say what a point is."""
        if self.shown_battery.name == batteries.PUBLISHED:
            return "mean of three probe seeds"
        n = self.battery.sizes.get("seed", 1)
        return "one probe seed" if n == 1 else f"mean of {n} probe seeds"

    def _scatter(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list] = {
            "figure": [live.edges("edges", left="gate_line", top="tau_line")],
            **{layer: [live.tag(layer, "source")] for layer in ("box", "box_label", "link")},
        }
        for r in self.regimes:
            hooks[r] = [live.tag(r, "source", "glyph_renderer"), live.selects(f"points_{r}")]
            whiskers = [f"{r}_tall", f"{r}_wide"] if self.rich else []
            for layer in (*self._layers(live.answers, r)[1:], *whiskers):
                hooks[layer] = [live.tag(layer, "source", "glyph_renderer")]
        detail, errors = live.text("detail"), ""
        named = "Errors are named in the figure where there is room. "
        if self.rich:
            detail += "".join(
                f" {live.text(part)}"
                if part in ("detail_maha", "detail_unsup", "detail_other")
                else live.text(part)
                for part in (
                    "detail_maha",
                    "detail_unsup_word",
                    "detail_unsup",
                    "detail_partner",
                    "detail_other",
                )
            )
            named = "Whiskers: smallest to largest seed. "
        else:
            detail += f" {live.text('detail_note')}"
            errors = (
                '<p class="small errors" tabindex="0" role="region" aria-label="errors">'
                f"{live.text('errors')}</p>"
            )
        choose = (
            f'<div class="choose small"><span>{live.menu("chosen", "setting")}</span></div>'
            f'<p class="small" role="status">{detail}</p>{errors}'
            f'<p class="small">{self.battery.sizes["setting"]} settings, {self._seeds()}. {named}{self._source()}.</p>'
        )
        body = card(
            figures.FIGURES["scatter"],
            self._pane("scatter", hooks),
            links=downloads(
                "fingerprint",
                lambda backend: self.figure("scatter", backend),
                lambda: self.data("scatter"),
                page=self,
                of="scatter",
            ),
            extra="",
            height=560,
            stylesheets=[
                f"{_LOW} {{ :host {{ flex: 0 0 clamp(300px, calc(100vh - {_ABOVE[self.rich]}px), 560px) !important; "
                "height: auto !important } .bk-Figure { flex: 1 1 0 !important; height: auto !important } }"
            ],
        )
        body.insert(1, markup(self._legend(), css=_LEGEND_CSS))
        body.append(markup(choose, css=_CHOICE_CSS))
        body.append(markup(self._two_by_two(), css=_TABLE_CSS))
        return body

    def _map(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list] = {
            "figure": [live.taps("map")],
            "cross_gate": [live.tag("cross_gate", "glyph")],
            "cross_tau": [live.tag("cross_tau", "glyph")],
            "cross": [live.tag("cross", "source")],
            **{
                heat: [live.tag(heat, "source", "glyph_renderer")]
                for heat, *_ in figures.maps(live.answers, METRICS[0])
            },
        }
        buttons = "".join(live.button("metric", i, figures.METRICS[m][1]) for i, m in enumerate(METRICS))
        body = card(
            figures.FIGURES["map"],
            self._pane("map", hooks),
            f"From {_ramp_legend()} Tap to move the sliders there. The ring is where you are, the cross is what the "
            "paper fixed beforehand (0.95, 0.65).",
            links=downloads(
                "robustness",
                lambda backend: self.figure("map", backend),
                lambda: self.data("map"),
                size=(120, 80),
                page=self,
                of="map",
            ),
            height=200,
        )
        body.insert(
            1,
            markup(
                f'<div class="metric" role="group" aria-label="what the map shows">{buttons}</div>',
                css=_METRIC_CSS,
            ),
        )
        return body

    def _rates(self) -> pn.Column:
        live = self.live
        hooks = {
            **{rate: [live.tag(rate, "source")] for rate in ("sensitivity", "specificity")},
            **{
                f"{rate}_band": [live.tag(f"{rate}_band", "source")]
                for rate in ("sensitivity", "specificity")
            },
            "tau": [live.tag("rates_tau", "glyph")],
        }
        return card(
            figures.FIGURES["rates"],
            self._pane("rates", hooks),
            f"{figures.RATES_SAY}.",
            links=downloads(
                "rates",
                lambda backend: self.figure("rates", backend),
                lambda: self.data("rates"),
                size=(120, 80),
                page=self,
            ),
            height=190,
        )

    def _area(self) -> pn.Column:
        live = self.live
        hooks = {
            "area_band": [live.tag("area_band", "source")],
            "area_curve": [live.tag("area_curve", "source")],
            "area_now": [live.tag("area_now", "source")],
            "alpha": [live.tag("area_alpha", "glyph")],
        }
        return card(
            figures.FIGURES["area"],
            self._pane("area", hooks),
            f"AUROC of the fingerprint score at this gate and alpha: {live.text('area')}, 95 % interval "
            f"{live.text('area_interval')}. Leaks against clean settings. Band: DeLong 95 %. L-W: Ledoit-Wolf.",
            links=downloads(
                "score",
                lambda backend: self.figure("area", backend),
                lambda: self.data("area"),
                size=(120, 80),
                page=self,
                of="area",
            ),
            height=190,
        )

    def _contrast_says(self) -> str:
        """Say what the contrast shows, as HTML."""
        pairs = self.pairs
        if self.rich:
            return (
                f"{self.live.text('contrast_says')} Nothing but fit-set membership differs between leaked and "
                "excluded, so it is the cause; the oracle does not move."
            )
        lift = f"{pairs['difference'].min():.2f} to {pairs['difference'].max():.2f}"
        if self.shown_battery.name == batteries.PUBLISHED:
            return (
                f"Excluding the class lifts best-unsup by {lift} in all {len(pairs)} pairs, the two misses (“cat”, "
                "on both backbones) included; the oracle does not move. Nothing else differs within a pair, so "
                "fit-set membership is the cause."
            )
        return (
            f"Excluding the class changes best-unsup by {lift} in {len(pairs)} "
            f"{answers.many(len(pairs), 'pair', 'pairs')}. Nothing else differs within a pair, so fit-set "
            "membership is the cause."
        )

    def _contrast(self) -> pn.Column:
        live = self.live
        hooks = {"stems": [live.tag("stems", "source")], "tau": [live.tag("contrast_tau", "glyph")]}
        for name, target in PAIR_TARGETS.items():
            hooks[f"pair_{name}"] = [live.tag(target, "source"), live.selects(f"pairs_{name}")]
        body = card(
            figures.FIGURES["contrast"],
            self._pane("contrast", hooks),
            f"{self._contrast_says()} {self._source()}.",
            links=downloads(
                "contrast",
                lambda backend: self.figure("contrast", backend),
                lambda: self.data("contrast"),
                size=(200, 85),
                page=self,
            ),
            height=300,
            stylesheets=[_WIDE_CSS],
        )
        return body

    def _cautions(self) -> pn.pane.HTML:
        told: Sequence[str] = OWN_CAUTIONS
        if self.shown_battery.name == batteries.COMPUTED:
            told = answers.shared_cautions(self.shown_battery)
        elif self.shown_battery.name == batteries.PUBLISHED:
            told = PUBLISHED_CAUTIONS
        paragraphs = "".join(f'<p class="note">{sentence}</p>' for sentence in told)
        return markup(
            f"<h2>What this page cannot tell</h2>{paragraphs}", css="p { margin-top: 6px !important }"
        )

    def _arrange(self) -> None:
        """Put a battery's figures and texts into the frame; in the app, what is not seen first follows."""
        parts = self._parts
        parts["heading"].object = meanwhile(self.state, self._heading(), self._whole_subject())
        parts["hand"].objects = [self.live]
        parts["extra"].objects = self._extras()
        parts["reset"].object = self.live.reset()
        parts["strip"].css_classes = ["three"] if self.rich else []
        for (
            name,
            menu,
        ) in self._menus.items():  # beside two sliders they are narrow, below three they have room
            menu.width = (190 if name == "backbone" else 132) if self.rich else 112
        right = pn.Column(
            markup('<h2>What it gets right <span class="aside">Wilson 95 %</span></h2>'),
            markup(self._read_outs(), css=_TABLE_CSS),
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[":host { gap: 14px }"],
        )
        content = pn.Column(
            pn.Column(
                self._scatter(), right, stylesheets=[theme.TWO_CSS], sizing_mode="stretch_width", margin=0
            ),
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[":host { gap: 18px }"],
        )
        parts["body"].objects = [content]

        def rest() -> None:
            if "map" in self.figure_names():
                right.extend([self._map(), self._area() if self.rich else self._rates()])
            self._show_detail()  # first: what is built shows what it was built with
            if self.detail is not None:
                content.append(self.detail.__panel__())
            content.extend([*([self._contrast()] if len(self.pairs) else []), self._cautions()])
            self._look_ahead()

        self.live.when_seen(rest)

    def __panel__(self) -> pn.Column:
        """Build the page once."""
        if self._root is None:
            wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
            parts = self._parts
            parts["heading"] = headline(self.state, self._heading, self._whole_subject, css=_HEADING_CSS)
            parts["hand"] = pn.Column(**wide)
            parts["strip"] = pn.Column(
                parts["hand"], self._controls(), stylesheets=[theme.RULED_CSS, _STRIP_CSS], **wide
            )
            parts["body"] = pn.Column(**wide)
            self._root = pn.Column(
                link_note(self.state),
                parts["heading"],
                parts["strip"],
                parts["body"],
                stylesheets=[_PAGE_CSS],
                **wide,
            )
            self._arrange()
        return self._root


def _answer_ahead(battery: str, choice: Choice, walked: tuple[str, ...], follows: tuple[str, ...]) -> None:
    encode_once(answers.answers(batteries.get(battery), choice), walked, follows)


def _computed_ahead() -> dict[Any, Step]:
    """Return the steps after which the computed battery can be shown at once; none once they are asked for."""
    if _ASKED:
        return {}
    _ASKED.append(batteries.COMPUTED)
    pictures = _pictures(batteries.COMPUTED)
    return {
        "computed: numbers": lambda: answers.shared_cautions(batteries.computed()),
        "computed: answers": lambda: answers.answers(batteries.computed(), Choice()),
        "computed: pictures": in_loop(asyncio.get_running_loop(), lambda: next(pictures, False)),
    }


_ASKED: list[str] = []


def _pictures(battery: str) -> Iterator[bool]:
    """Draw what a page of this battery shows, one figure at a time, so that sessions find it drawn."""
    page = FingerprintPage(f"?battery={battery}")
    yield True
    third = page._area if page.rich else page._rates
    for draw in (page._scatter, page._map, third, page._contrast):
        draw()
        yield True
    if page.detail is not None:
        for name in page.detail.figures:
            page.detail.card(name)
            yield True


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _ramp_legend() -> str:
    stops = "".join(
        f'<rect x="{i * 14}" y="0" width="14" height="10" fill="{color}"></rect>'
        for i, color in enumerate(theme.RAMP)
    )
    width = 14 * len(theme.RAMP)
    return f'0.5 or less <svg viewBox="0 0 {width} 10" width="{width}" height="10" aria-hidden="true">{stops}</svg> to 1.0.'
