"""The fingerprint page: a rule with two cuts on a battery, and how robust it is.

Source: arXiv 2607.19393, sections 4.4 and 5. The core answers, the figures draw, this page arranges.
"""

from __future__ import annotations

import html
from functools import lru_cache
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import param
import xarray as xr

import leakviz
from dashboards import names, theme
from dashboards.cards import card, downloads
from dashboards.figures import fingerprint as figures
from dashboards.live import Attribute, Column, Edge, Grip, Live, Select, Slider, Tap, words
from dashboards.markup import markup
from dashboards.shelf import Shelf
from dashboards.state import PageState
from dashboards.stencil import figure_pane

TITLE = "Fingerprint"
GATES = leakviz.stops("0.80", "1.00", "0.005")
TAUS = leakviz.stops("0.20", "1.00", "0.005")
RULE = leakviz.Rule()

# The rows of the read-outs, as the paper breaks them down (2607.19393, section 5.3).
GROUPS = (
    ("leak", "leaks that fire", theme.REGIME_COLOR["leak"]),
    ("clean-excl", "excluded, silent", theme.REGIME_COLOR["clean-excl"]),
    ("clean-novel far", "far, silent", theme.REGIME_COLOR["clean-novel"]),
    ("clean-novel near", "hard near, silent", theme.REGIME_COLOR["clean-novel"]),
    ("clean", "all clean, silent", "currentColor"),
)
DISTANCES = {"all": "near and far", "near": "near only", "far": "far only"}
METRICS = tuple(figures.METRICS)
SOURCE = 'Source: <a href="https://arxiv.org/abs/2607.19393">arXiv 2607.19393</a>, Table 12'


class FingerprintState(PageState):
    """What a link to this page carries."""

    gate = param.Number(RULE.gate, label="gate")
    tau = param.Number(RULE.tau, label="tau")
    backbone: Any = param.Selector(default="all", objects=["all"], label="backbone")
    id_dataset: Any = param.Selector(default="all", objects=["all"], label="ID data set")
    distance: Any = param.Selector(default="all", objects=list(DISTANCES), label="other sources")
    metric: Any = param.Selector(default=METRICS[0], objects=list(METRICS), label="map")
    hidden = param.ListSelector(default=[], objects=list(figures.REGIMES), label="hidden regimes")
    chosen: Any = param.Selector(default="", objects=[""], label="setting")

    stops = {"gate": GATES, "tau": TAUS}

    @classmethod
    def of(cls, battery: xr.Dataset) -> FingerprintState:
        """Return the default state, with the choices that this battery offers."""
        state = cls()
        for name in ("backbone", "id_dataset"):
            state.param[name].objects = ["all", *sorted(set(battery[name].values.tolist()))]
        state.param["chosen"].objects = ["", *battery["setting"].values.tolist()]
        return state


@lru_cache(maxsize=8)
def published() -> xr.Dataset:
    """Load the published battery, once per process."""
    return leakviz.load_battery("published")


@lru_cache(maxsize=64)
def answers(backbone: str, id_dataset: str, distance: str) -> xr.Dataset:
    """Return everything that the page shows, for every stop, once per process and filter."""
    battery = published()
    return page_answers(battery, filter_settings(battery, backbone, id_dataset, distance))


def filter_settings(battery: xr.Dataset, backbone: str, id_dataset: str, distance: str) -> np.ndarray:
    """Return which settings the filters leave; `distance` is a matter of other sources only."""
    keep = np.ones(battery.sizes["setting"], dtype=bool)
    if backbone != "all":
        keep &= battery["backbone"].values == backbone
    if id_dataset != "all":
        keep &= battery["id_dataset"].values == id_dataset
    if distance != "all":
        keep &= (battery["distance"].values == distance) | (battery["distance"].values == "")
    return keep


@lru_cache(maxsize=8)
def matched_pairs() -> pd.DataFrame:
    """Return the matched pairs, the largest difference first, with names and setting names."""
    battery = published()
    pairs = leakviz.contrast(battery).sort_values("difference", ascending=False, ignore_index=True)
    where = {
        (str(regime), str(pair)): str(setting)
        for regime, pair, setting in zip(
            battery["regime"].values, battery["pair"].values, battery["setting"].values, strict=True
        )
    }
    named = dict(zip(battery["setting"].values.tolist(), names.setting_names(battery), strict=True))
    leaked = [where["leak", p] for p in pairs["pair"]]
    return pairs.assign(
        leaked_setting=leaked,
        excluded_setting=[where["clean-excl", p] for p in pairs["pair"]],
        name=[named[s] for s in leaked],
    )


def _cut(value: float) -> str:
    """Write a cut with two decimals, or three where it needs them."""
    return f"{value:.2f}" if abs(value * 100 - round(value * 100)) < 1e-6 else f"{value:.3f}"


def _many(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def page_answers(battery: xr.Dataset, shown: np.ndarray) -> xr.Dataset:
    """Return what is drawn and what is said at every stop, for the settings that are shown.

    Parameters
    ----------
    battery : xarray.Dataset
    shown : bool array, shape (S,)

    Returns
    -------
    xarray.Dataset
        `figures.drawn`, the texts, the walked switches and menus.
    """
    subset = battery.isel(setting=shown)
    sweep = leakviz.sweep_rule(subset, gates=GATES, taus=TAUS)
    pairs = matched_pairs()
    table = figures.drawn(battery, sweep, pairs, shown)
    lines = {"gate_line": sweep["gate"].variable, "tau_line": sweep["tau"].variable}
    table = table.assign({**_texts(subset, sweep), **lines, **_choice(battery, shown, pairs)})
    for i, metric in enumerate(METRICS):
        table[f"see_{metric}"] = ("metric", np.arange(len(METRICS)) == i)
    table["map_name"] = ("metric", np.array([figures.METRICS[m][1] for m in METRICS], dtype=object))
    for name in figures.REGIMES:
        table[f"see_{name}"] = (f"show_{name}", np.array([False, True]))
        table = table.assign_coords({f"show_{name}": [0, 1]})
    return table.assign_coords(metric=list(METRICS), chosen=["", *battery["setting"].values.tolist()])


def _texts(subset: xr.Dataset, sweep: xr.Dataset) -> dict[str, xr.DataArray]:
    texts: dict[str, xr.DataArray] = {
        "say_gate": words(_cut, sweep["gate"]),
        "say_tau": words(_cut, sweep["tau"]),
    }
    for key, _, _ in GROUPS:
        of = sweep.sel(regime=key, drop=True)
        name = key.replace(" ", "_").replace("-", "_")
        texts[f"{name}_count"] = words(lambda k, n: f"{k} of {n}", of["correct"], of["n"])
        texts[f"{name}_rate"] = words(lambda v: "none" if np.isnan(v) else f"{v:.2f}", of["rate"])
        texts[f"{name}_interval"] = words(
            lambda low, high: "" if np.isnan(low) else f"{low:.2f} to {high:.2f}", of["low"], of["high"]
        )
        for end, variable in (("low", "low"), ("high", "high"), ("at", "rate")):
            texts[f"{name}_{end}"] = words(
                lambda v: "0" if np.isnan(v) else f"{2 + 116 * v:.1f}", of[variable]
            )
    leak, clean = sweep.sel(regime="leak", drop=True), sweep.sel(regime="clean", drop=True)
    alarms = leak["n"] * 0 + clean["fired_count"]
    texts["alarms"] = words(lambda k: f"{k}", alarms)
    texts["alarm_word"] = words(lambda k: _many(k, "false alarm", "false alarms"), alarms)
    texts["clean_n"] = words(lambda n: f"{n}", clean["n"])
    texts["leak_word"] = words(lambda n: _many(n, "leak", "leaks"), leak["n"])
    texts["hit"], texts["miss"] = words(str, leak["correct"]), words(str, leak["n"] - leak["correct"])
    texts["quiet"] = words(str, clean["correct"])
    texts["area"] = words(lambda v: "undefined" if np.isnan(v) else f"{v:.4f}", sweep["auroc"])
    texts["area_ungated"] = words(
        lambda v: "undefined" if np.isnan(v) else f"{v:.4f}", sweep["auroc_ungated"]
    )
    texts["area_interval"] = words(
        lambda low, high: "" if np.isnan(low) else f"{low:.3f} to {high:.3f}",
        sweep["auroc_low"],
        sweep["auroc_high"],
    )
    texts["gate_says"] = _gate_says(subset, sweep)
    texts["errors"] = _errors(subset, sweep)
    return texts


def _gate_says(subset: xr.Dataset, sweep: xr.Dataset) -> xr.DataArray:
    """Say what the gate does at each stop: how many settings it keeps from firing."""
    none = leakviz.sweep_rule(subset, gates=[0.0], taus=TAUS).isel(gate=0, drop=True)["fired_count"]
    silenced = none - sweep["fired_count"]
    n = subset.sizes["setting"]

    def write(leaks: int, clean: int) -> str:
        if leaks == clean == 0:
            if not n:
                return "No setting is left by the filters."
            return f"On these {n} settings the gate changes no decision here: the same ones fire without it."
        parts = []
        if leaks:
            parts.append(f"{leaks} {_many(leaks, 'leak', 'leaks')}")
        if clean:
            parts.append(f"{clean} false {_many(clean, 'alarm', 'alarms')}")
        return f"The gate silences {' and '.join(parts)} that tau alone would flag."

    return words(
        write,
        silenced.sel(regime="leak", drop=True).astype(int),
        silenced.sel(regime="clean", drop=True).astype(int),
    )


def _errors(subset: xr.Dataset, sweep: xr.Dataset) -> xr.DataArray:
    """List the settings that the rule gets wrong at each stop."""
    error = sweep["error"].values
    patterns, which = np.unique(np.concatenate(error), axis=0, return_inverse=True)
    named = np.array(names.setting_names(subset), dtype=object)
    leak = subset["regime"].values == "leak"
    texts = []
    for pattern in patterns:
        missed, alarms = named[pattern & leak], named[pattern & ~leak]
        parts = []
        if len(missed):
            parts.append(f"Missed: {'; '.join(missed)}.")
        if len(alarms):
            parts.append(f"False {_many(len(alarms), 'alarm', 'alarms')}: {'; '.join(alarms)}.")
        texts.append(" ".join(parts) or "No errors at these cuts.")
    data = np.array(texts, dtype=object)[which.ravel()].reshape(error.shape[:2])
    return xr.DataArray(data, {"gate": sweep["gate"], "tau": sweep["tau"]}, ("gate", "tau"))


def _choice(battery: xr.Dataset, shown: np.ndarray, pairs: pd.DataFrame) -> dict[str, Any]:
    """Return, for no setting and for each, its line to the partner and its numbers in words."""
    where = {str(s): i for i, s in enumerate(battery["setting"].values)}
    partner = dict(zip(pairs["leaked_setting"], pairs["excluded_setting"], strict=True))
    partner |= {b: a for a, b in partner.items()}
    x = np.where(shown, battery["oracle_lda"].values, np.nan)
    y = np.where(shown, battery["best_unsup"].values, np.nan)
    size = battery.sizes["setting"] + 1
    line = np.full((4, size), np.nan)
    details = ["Tap a point, or choose a setting, to read its numbers and to see its partner."]
    regime = {
        "leak": "leaked",
        "clean-excl": "excluded from the fit set",
        "clean-novel": "clean, other source",
    }
    for setting, i in where.items():
        row = battery.isel(setting=i)
        told = (
            f"{names.setting_names(battery.isel(setting=[i]))[0]} ({regime[str(row['regime'].item())]}, {setting}): "
            f"oracle LDA {row['oracle_lda'].item():.3f}, Mahalanobis {row['maha'].item():.3f}, "
            f"kNN {row['knn'].item():.3f}, best-unsup {row['best_unsup'].item():.3f}."
        )
        line[:, i + 1] = x[i], y[i], x[i], y[i]
        if setting in partner:
            j = where[partner[setting]]
            line[2:, i + 1] = x[j], y[j]
            other = float(battery["best_unsup"].values[j])
            told += f" Its partner, {regime[str(battery['regime'].values[j])]}: best-unsup {other:.3f}."
        details.append(told)
    coordinates = {
        f"link_{end}": (("chosen", "one"), line[k][:, None]) for k, end in enumerate(("x0", "y0", "x1", "y1"))
    }
    return {**coordinates, "detail": ("chosen", np.array(details, dtype=object))}


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
    # Two lines, whatever their number: nothing below moves with the hand, and no layout is made anew.
    " .errors { height: 2.9em; overflow-y: auto; contain: strict }"
)
_METRIC_CSS = theme.css(
    """
.metric button { font-size: 12.5px; padding: 4px 3px }
.metric button[aria-pressed=true] { color: $ink; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: $accent; text-decoration-thickness: 2px }
"""
)
_SELECT_CSS = theme.css(
    """
:host { flex: 0 1 auto }
label { font: 13px/1.4 $font; color: $muted }
select.bk-input, select { font: 13px/1.4 $font; color: $ink; background-color: $bg; border: 1px solid $hair; border-radius: 6px; min-height: 30px; padding: 3px 4px 3px 6px; background-image: none; appearance: auto; color-scheme: var(--lv-scheme, light) }
select:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
"""
)
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
        The session's prediction vectors; this page needs none.

    Examples
    --------
    >>> page = FingerprintPage("?tau=0.8")
    >>> page.state.tau, int(page.answer().correct.sel(regime="leak"))
    (0.8, 20)
    """

    def __init__(self, query: str = "", shelf: Shelf | None = None, **params: Any):
        self.battery = published()
        self.state = FingerprintState.of(self.battery)
        self.told = self.state.read(query)
        super().__init__(**params)
        self._releasing = False
        self.live = self._make_live()
        self._settle()
        self._root: pn.Column | None = None
        self.live.param.watch(self._released, "state")
        self.live.param.watch(self._reset, "resets")
        self.state.param.watch(self._follow, self.state.names())

    # ---- answers

    @property
    def subject(self) -> str:
        """What data the page shows."""
        return f"Published battery, {self.battery.sizes['setting']} settings"

    @property
    def shown(self) -> np.ndarray:
        """Which settings the filters leave."""
        s = self.state
        return filter_settings(self.battery, s.backbone, s.id_dataset, s.distance)

    def answer(self) -> xr.Dataset:
        """Return the core's answer at the present state, as `leakviz.score_battery` gives it."""
        subset = self.battery.isel(setting=self.shown)
        return leakviz.score_battery(subset, leakviz.Rule(self.state.gate, self.state.tau))

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present state.

        Parameters
        ----------
        name : {"scatter", "map", "rates", "contrast"}
        """
        subset = self.battery.isel(setting=self.shown)
        rule = leakviz.Rule(self.state.gate, self.state.tau)
        if name == "scatter":
            frame = subset.drop_vars("fired_published", errors="ignore").to_dataframe().reset_index()
            frame["gate"], frame["tau"] = rule.gate, rule.tau
            frame["fires"] = leakviz.fired(subset, rule).values
            hidden = [figures.REGIMES[h] for h in self.state.hidden]
            return frame[~frame["regime"].isin(hidden)]
        if name == "contrast":
            pairs = matched_pairs()
            seen = set(subset["setting"].values.tolist())
            frame = pairs[pairs["leaked_setting"].isin(seen)].drop(
                columns=["leaked_setting", "excluded_setting"]
            )
            return frame.assign(tau=rule.tau)
        sweep = leakviz.sweep_rule(subset, gates=GATES, taus=TAUS)
        if name == "map":
            return sweep[["sensitivity", "specificity", "balanced_accuracy"]].to_dataframe().reset_index()
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
        name : {"scatter", "map", "rates", "contrast"}
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        now = self.live.at()
        gate, tau = self.state.gate, self.state.tau
        if name == "scatter":
            link = [float(now[f"link_{e}"].values[0]) for e in ("x0", "y0", "x1", "y1")]
            visible = [r for r in figures.REGIMES if r not in self.state.hidden]
            return figures.scatter(
                self.battery, now, link=link, visible=visible, hooks=hooks, backend=backend
            )
        if name == "map":
            return figures.heat_map(
                now,
                gates=GATES,
                taus=TAUS,
                gate=gate,
                tau=tau,
                metric=self.state.metric,
                hooks=hooks,
                backend=backend,
            )
        if name == "rates":
            return figures.rate_curves(now, taus=TAUS, tau=tau, hooks=hooks, backend=backend)
        if name == "contrast":
            return figures.dumbbells(matched_pairs(), now, tau=tau, hooks=hooks, backend=backend)
        raise ValueError(f"no figure is called {name!r}; there are scatter, map, rates and contrast")

    # ---- the hand

    def _make_live(self) -> Live:
        regimes = list(figures.REGIMES)
        columns = [
            Column("box:source", "left", "box_left"),
            Column("box:source", "top", "box_top"),
            Column("box_label:source", "x", "box_label_x"),
            *(Column("link:source", end, f"link_{end}") for end in ("x0", "y0", "x1", "y1")),
            Column("cross:source", "gate", "box_left"),
            Column("cross:source", "tau", "box_top"),
            *(Column(f"{rate}:source", "rate", rate) for rate in ("sensitivity", "specificity")),
            *(Column(f"{rate}_band:source", "y", f"{rate}_band") for rate in ("sensitivity", "specificity")),
            *(Column(f"heat_{m}:source", "image", f"heat_{m}") for m in METRICS),
            Column("leaked:source", "fill_alpha", "pair_fill"),
            Column("excluded_pair:source", "fill_alpha", "pair_excluded_fill"),
            Column("leaked:source", "best_unsup", "pair_leaked"),
            Column("excluded_pair:source", "best_unsup", "pair_excluded"),
            Column("stems:source", "y0", "pair_leaked"),
            Column("stems:source", "y1", "pair_excluded"),
        ]
        for r in regimes:
            for layer in (r, f"{r}_rings"):
                columns.append(Column(f"{layer}:source", "oracle_lda", f"{r}_x"))
                columns.append(Column(f"{layer}:source", "best_unsup", f"{r}_y"))
            columns.append(Column(f"{r}:source", "fill_alpha", f"{r}_fill"))
            columns.append(Column(f"{r}_rings:source", "line_alpha", f"{r}_ring"))
            columns += [Column(f"{r}_names:source", end, f"{r}_{end}") for end in ("x", "y")]
            columns.append(Column(f"{r}_names:source", "text_alpha", f"{r}_name_seen"))
            columns.append(Column(f"{r}_names:source", "text_align", f"{r}_name_align"))
            columns += [Column(f"{r}_names:source", f"{c}_offset", f"{r}_name_d{c}") for c in ("x", "y")]
        attributes = [
            Attribute("edges", "left", "gate_line"),
            Attribute("edges", "top", "tau_line"),
            Attribute("cross_gate:glyph", "location", "gate_line"),
            Attribute("cross_tau:glyph", "location", "tau_line"),
            Attribute("rates_tau:glyph", "location", "tau_line"),
            Attribute("contrast_tau:glyph", "location", "tau_line"),
            *(Attribute(f"heat_{m}:glyph_renderer", "visible", f"see_{m}") for m in METRICS),
            *(
                Attribute(f"{layer}:glyph_renderer", "visible", f"see_{r}")
                for r in regimes
                for layer in (r, f"{r}_rings", f"{r}_names")
            ),
        ]
        grips: list[Grip] = [
            Edge("edges", "left", "gate"),
            Edge("edges", "top", "tau"),
            Tap("map", x="gate", y="tau"),
            *(
                Select(f"points_{r}", "chosen", tuple(int(i) + 1 for i in self._of(regime)))
                for r, regime in figures.REGIMES.items()
            ),
        ]
        named = names.setting_names(self.battery)
        which = {"leak": "leaked", "clean-excl": "excluded", "clean-novel": "other source"}
        settings = [
            f"{name} ({which[str(r)]})" for name, r in zip(named, self.battery["regime"].values, strict=True)
        ]
        s = self.state
        return Live(
            answers(s.backbone, s.id_dataset, s.distance),
            sliders=[
                Slider("gate", "oracle gate", "supervised decodability needed to fire, default 0.95"),
                Slider(
                    "tau", "tau", "unsupervised AUROC below which detection counts as collapsed, default 0.65"
                ),
            ],
            columns=columns,
            attributes=attributes,
            grips=grips,
            start={
                "gate": RULE.gate,
                "tau": RULE.tau,
                "metric": METRICS[0],
                "chosen": "",
                **{f"show_{r}": 1 for r in regimes},
            },
            labels={
                "metric": [figures.METRICS[m][1] for m in METRICS],
                "chosen": ["no setting", *settings],
                **{f"show_{r}": ["hidden", "shown"] for r in regimes},
            },
            sizing_mode="stretch_width",
            margin=0,
        )

    def _of(self, regime: str) -> np.ndarray:
        return np.flatnonzero(self.battery["regime"].values == regime)

    def _settle(self) -> None:
        """Move the hand to the state."""
        s = self.state
        shows = {f"show_{r}": int(r not in s.hidden) for r in figures.REGIMES}
        self.live.go(gate=s.gate, tau=s.tau, metric=s.metric, chosen=s.chosen, **shows)

    def _released(self, event: Any) -> None:
        """Take over where the hand let go."""
        live = self.live
        self._releasing = True
        try:
            self.state.param.update(
                gate=live.value("gate"),
                tau=live.value("tau"),
                metric=live.value("metric"),
                chosen=live.value("chosen"),
                hidden=[r for r in figures.REGIMES if not live.value(f"show_{r}")],
            )
        finally:
            self._releasing = False

    def _reset(self, event: Any) -> None:
        self.state.param.update(backbone="all", id_dataset="all", distance="all")

    def _follow(self, *events: Any) -> None:
        s = self.state
        with pn.io.hold():
            if any(e.name in ("backbone", "id_dataset", "distance") for e in events):
                self.live.update_answers(answers(s.backbone, s.id_dataset, s.distance))
            if not self._releasing:
                self._settle()

    # ---- the page

    def _heading(self) -> str:
        t = self.live.text
        told = "".join(f'<p class="note" role="alert">{html.escape(sentence)}</p>' for sentence in self.told)
        return (
            f'{told}<div role="status" aria-live="polite" aria-atomic="true"><h1>At gate <b>{t("say_gate")}</b> and tau '
            f"<b>{t('say_tau')}</b> the fingerprint catches <b>{t('leak_count')}</b> {t('leak_word')} and raises "
            f"<b>{t('alarms')}</b> {t('alarm_word')} in {t('clean_n')} clean settings.</h1></div>"
            '<p class="note">A split is flagged when a supervised probe separates the OOD class almost perfectly and '
            f"no unsupervised detector can. {t('gate_says')}</p>"
        )

    def _legend(self) -> str:
        switches = "".join(
            self.live.switch(f"show_{r}", _mark(regime) + theme.REGIME_LABEL[regime])
            for r, regime in figures.REGIMES.items()
        )
        return (
            f'<div class="legend" role="group" aria-label="regimes">{switches}'
            '<span><svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="5" class="grey"></circle></svg>'
            "filled: fires</span>"
            '<span><svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.5" fill="none" '
            'stroke-width="1.2" class="ink"></circle></svg>ring: error</span></div>'
        )

    def _read_outs(self) -> str:
        t, rows = self.live.text, []
        for key, label, color in GROUPS:
            name = key.replace(" ", "_").replace("-", "_")
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

    def _filters(self) -> pn.Row:
        s = self.state
        labels = {
            "backbone": {"all": "all", **names.BACKBONE},
            "id_dataset": {"all": "all", **names.DATASET},
            "distance": DISTANCES,
        }
        titles = {"backbone": "backbone", "id_dataset": "ID data set", "distance": "other sources"}
        menus = []
        for name, title in titles.items():
            options = {labels[name].get(o, o): o for o in s.param[name].objects}
            menus.append(
                pn.widgets.Select.from_param(
                    s.param[name], name=title, options=options, width=150, margin=0, stylesheets=[_SELECT_CSS]
                )
            )
        reset = markup(self.live.reset(), sizing_mode=None, styles={"align-self": "flex-end"})
        return pn.Row(*menus, reset, margin=0, sizing_mode=None, stylesheets=[_FILTER_CSS])

    def _pane(self, name: str, hooks: dict) -> pn.pane.Bokeh:
        return figure_pane(
            ("fingerprint", name),
            self.live,
            lambda: self.figure(name, hooks=hooks),
            sizing_mode="stretch_both",
            margin=0,
        )

    def _scatter(self) -> pn.Column:
        live = self.live
        hooks: dict[str, list] = {
            "figure": [live.edges("edges", left="gate_line", top="tau_line")],
            **{layer: [live.tag(layer, "source")] for layer in ("box", "box_label", "link")},
        }
        for r in figures.REGIMES:
            hooks[r] = [live.tag(r, "source", "glyph_renderer"), live.selects(f"points_{r}")]
            for layer in (f"{r}_rings", f"{r}_names"):
                hooks[layer] = [live.tag(layer, "source", "glyph_renderer")]
        choose = (
            f'<div class="choose small"><span>{live.menu("chosen", "setting")}</span></div>'
            f'<p class="small" role="status">{live.text("detail")}</p>'
            f'<p class="small errors" tabindex="0" role="region" aria-label="errors">{live.text("errors")}</p>'
            f'<p class="small">{self.battery.sizes["setting"]} settings, mean of three probe seeds. Errors are named in the figure where there is room. {SOURCE}.</p>'
        )
        body = card(
            "Fingerprint box",
            self._pane("scatter", hooks),
            links=downloads(
                "fingerprint", lambda backend: self.figure("scatter", backend), lambda: self.data("scatter")
            ),
            extra="",
            height=560,
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
            **{f"heat_{m}": [live.tag(f"heat_{m}", "source", "glyph_renderer")] for m in METRICS},
        }
        buttons = "".join(live.button("metric", i, figures.METRICS[m][1]) for i, m in enumerate(METRICS))
        body = card(
            "Would other cuts do?",
            self._pane("map", hooks),
            f"From {_ramp_legend()} Tap to move the sliders there. The ring is where you are, the cross is what the "
            "paper fixed beforehand (0.95, 0.65).",
            links=downloads(
                "robustness",
                lambda backend: self.figure("map", backend),
                lambda: self.data("map"),
                size=(120, 80),
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
            "Sensitivity and specificity at this gate",
            self._pane("rates", hooks),
            "Solid, vermilion: sensitivity. Dashed: specificity. Bands: Wilson 95 %. Dotted: the published tau.",
            links=downloads(
                "rates",
                lambda backend: self.figure("rates", backend),
                lambda: self.data("rates"),
                size=(120, 80),
            ),
            height=190,
        )

    def _contrast(self) -> pn.Column:
        live = self.live
        hooks = {
            "stems": [live.tag("stems", "source")],
            "leaked": [live.tag("leaked", "source")],
            "excluded": [live.tag("excluded_pair", "source")],
            "tau": [live.tag("contrast_tau", "glyph")],
        }
        pairs = matched_pairs()
        body = card(
            "The same class, inside and outside the fit set",
            self._pane("contrast", hooks),
            f"Excluding the class lifts best-unsup by {pairs['difference'].min():.2f} to {pairs['difference'].max():.2f} in "
            f"all {len(pairs)} pairs, the two misses (“cat”, on both backbones) included; the oracle does not move. "
            f"Nothing else differs within a pair, so fit-set membership is the cause. {SOURCE}.",
            links=downloads(
                "contrast",
                lambda backend: self.figure("contrast", backend),
                lambda: self.data("contrast"),
                size=(200, 85),
            ),
            height=300,
            stylesheets=[_WIDE_CSS],
        )
        return body

    def _cautions(self) -> pn.pane.HTML:
        return markup(
            "<h2>What this page cannot tell</h2>"
            '<p class="note">The settings are re-designations of classes on four backbones, not 52 independent draws: '
            "the intervals hold within this design, not for benchmarks at large (section 5.1).</p>"
            '<p class="note">At the published 0.95 the gate is inert on these 52 settings; at 0.96 it would remove the only false alarm. It is there for hard novel classes: in the text audit '
            "one has best-unsup 0.57 and an oracle of 0.88 to 0.91, and only the gate keeps it from firing (section 6).</p>"
            '<p class="note">A hard clean pair can fire: CIFAR-100 to CIFAR-10 does, with no leak. A threshold on one '
            "setting raises a suspicion; the exclusion contrast above is the evidence (section 5.4).</p>",
            css="p { margin-top: 6px !important }",
        )

    def __panel__(self) -> pn.Column:
        """Build the page once; in the app, what is not seen first follows when the rest is there."""
        if self._root is None:
            right = pn.Column(
                markup('<h2>What it gets right <span class="aside">Wilson 95 %</span></h2>'),
                markup(self._read_outs(), css=_TABLE_CSS),
                sizing_mode="stretch_width",
                margin=0,
                stylesheets=[":host { gap: 14px }"],
            )
            root = self._root = pn.Column(
                markup(self._heading()),
                pn.Column(
                    self.live,
                    self._filters(),
                    sizing_mode="stretch_width",
                    margin=0,
                    stylesheets=[theme.RULED_CSS],
                ),
                pn.Column(
                    self._scatter(), right, stylesheets=[theme.TWO_CSS], sizing_mode="stretch_width", margin=0
                ),
                sizing_mode="stretch_width",
                margin=0,
                stylesheets=[":host { gap: 18px }"],
            )

            def rest() -> None:
                right.extend([self._map(), self._rates()])
                root.extend([self._contrast(), self._cautions()])

            self.live.when_seen(rest)
        return self._root


def _ramp_legend() -> str:
    stops = "".join(
        f'<rect x="{i * 14}" y="0" width="14" height="10" fill="{color}"></rect>'
        for i, color in enumerate(theme.RAMP)
    )
    width = 14 * len(theme.RAMP)
    return f'0.5 or less <svg viewBox="0 0 {width} 10" width="{width}" height="10" aria-hidden="true">{stops}</svg> to 1.0.'
