"""What the fingerprint page shows at every stop of its sliders: one table per battery and choice.

A battery that is a list of AUROCs has two sliders, gate and tau (`page_answers`). One that knows its
Mahalanobis AUROC at every shrinkage has a third, alpha (`alpha_answers`): its table would be too large
for three sliders' stops, so decisions are kept as the two conditions whose product they are, and what
is said of a count is kept once per count.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

import leakviz
from dashboards import batteries, names
from dashboards.batteries import Battery
from dashboards.figures import fingerprint as figures
from dashboards.live import words
from leakviz.detector_sweep import LEDOIT_WOLF, sweep_detector, use_detector
from leakviz.fingerprint import groups
from leakviz.statistics import wilson_interval

GATES = leakviz.stops("0.80", "1.00", "0.005")
TAUS = leakviz.stops("0.20", "1.00", "0.005")
# Coarser where alpha is a third slider: the table holds all three.
COARSE_GATES = leakviz.stops("0.80", "1.00", "0.01")
COARSE_TAUS = leakviz.stops("0.20", "1.00", "0.01")
# Between 3e-4 and 3e-3 is no stop: there lie the medians of Ledoit and Wolf's alpha, one-class and tied.
ALPHAS = (
    *(0.0, 1e-4, 3e-4, 3e-3, 0.01, 0.02, 0.03, 0.05, 0.07),
    *(0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
RULE = leakviz.Rule()
METRICS = tuple(figures.METRICS)
NOTHING_CHOSEN = "Tap a point, or choose a setting, to read its numbers and to see its partner."
COUNTS = ("leak", "clean-excl", "clean-retrained", "clean-novel far", "clean-novel near", "clean")


class Choice(NamedTuple):
    """What menus decide: which settings are shown, under which detector."""

    backbone: str = "all"
    id_dataset: str = "all"
    distance: str = "all"
    size: str = "all"
    covariance: str = "one-class"
    detector: str = "max"


def has_alpha(battery: xr.Dataset) -> bool:
    """Tell whether the shrinkage of a battery's Mahalanobis detector can be chosen."""
    needed = {"maha_by_alpha", "maha_ledoit_wolf", "ledoit_wolf"}
    return needed <= set(battery.data_vars) and "one-class" in battery["covariance"].values


def gate_stops(battery: xr.Dataset) -> np.ndarray:
    """Return the stops of the oracle gate."""
    return COARSE_GATES if has_alpha(battery) else GATES


def tau_stops(battery: xr.Dataset) -> np.ndarray:
    """Return the stops of tau."""
    return COARSE_TAUS if has_alpha(battery) else TAUS


def alpha_stops(battery: xr.Dataset) -> list[float | str]:
    """Return the stops of alpha: numbers, and "ledoit-wolf" where its median over the settings lies."""
    known = battery["alpha"].values.tolist()
    stops = [alpha for alpha in ALPHAS if alpha in known]
    if len(stops) < 2:  # a battery of somebody's own, with stops of its own
        stops = known[:: -(-len(known) // len(ALPHAS))]
    place = int(np.searchsorted(stops, float(battery["ledoit_wolf"].isel(covariance=0).median())))
    return [*stops[:place], LEDOIT_WOLF, *stops[place:]]


def answers(battery: Battery, choice: Choice) -> xr.Dataset:
    """Return everything that the page shows, for every stop; of a shipped battery once per process."""
    if battery.name in batteries.TITLES:
        return _shared(battery, choice)
    return _answers(battery, choice)


@lru_cache(maxsize=32)
def _shared(battery: Battery, choice: Choice) -> xr.Dataset:
    return _answers(battery, choice)


def _answers(battery: Battery, choice: Choice) -> xr.Dataset:
    dataset = battery.dataset
    shown = filter_settings(dataset, choice)
    if has_alpha(dataset):
        return alpha_answers(
            dataset,
            shown,
            covariance=choice.covariance,
            detector=choice.detector,
            pairs=pairs_of(battery),
        )
    return page_answers(dataset, shown)


def filter_settings(battery: xr.Dataset, choice: Choice) -> np.ndarray:
    """Return which settings the filters leave; `distance` is a matter of other sources only."""
    keep = np.ones(battery.sizes["setting"], dtype=bool)
    for name in ("backbone", "id_dataset"):
        if getattr(choice, name) != "all":
            keep &= battery[name].values == getattr(choice, name)
    if choice.distance != "all":
        keep &= (battery["distance"].values == choice.distance) | (battery["distance"].values == "")
    if choice.size != "all":  # how many classes are called OOD; another source is none
        sizes = battery["size"].values
        keep &= (sizes == int(choice.size)) | (sizes == 0)
    return keep


def groups_of(battery: xr.Dataset) -> list[str]:
    """Return the groups that the read-outs are broken down by, those without a setting left out.

    Examples
    --------
    >>> groups_of(batteries.published().dataset)
    ['leak', 'clean-excl', 'clean-novel far', 'clean-novel near', 'clean']
    """
    regime, distance = battery["regime"].values, battery["distance"].values
    there = {
        f"{r} {d}".strip() if r == "clean-novel" else str(r) for r, d in zip(regime, distance, strict=True)
    }
    there |= {"clean"} if (regime != "leak").any() else set()
    return [group for group in COUNTS if group in there]


def over_seeds(battery: xr.Dataset) -> xr.Dataset:
    """Return the battery with every AUROC as the rule sees it: the mean over seeds, to 12 decimals."""
    if "seed" not in battery.dims:
        return battery
    own = [
        n for n, v in battery.data_vars.items() if set(v.dims) <= {"setting", "seed"} and v.dtype.kind == "f"
    ]
    return battery[own].mean("seed").round(12)


def pairs_of(battery: Battery) -> pd.DataFrame:
    """Return the matched pairs of a battery; of a shipped one they are found once per process."""
    return _shared_pairs(battery) if battery.name in batteries.TITLES else matched_pairs(battery.dataset)


@lru_cache(maxsize=4)
def _shared_pairs(battery: Battery) -> pd.DataFrame:
    return matched_pairs(battery.dataset)


def matched_pairs(battery: xr.Dataset) -> pd.DataFrame:
    """Return the matched pairs, the largest difference first within a group, with names.

    Parameters
    ----------
    battery : xarray.Dataset

    Returns
    -------
    pandas.DataFrame
        What `leakviz.contrast` returns, and ``leaked_setting``, ``excluded_setting``,
        ``retrained_setting`` (or ""), ``name``, and ``group``: the backbone, if there are many pairs.
    """
    pairs = leakviz.contrast(battery)
    many = len(pairs) > figures.MANY_PAIRS
    pairs = pairs.assign(group=[names.BACKBONE.get(b, b) if many else "" for b in pairs["backbone"]])
    order = dict.fromkeys(pairs["group"])
    pairs = pairs.assign(rank=pairs["group"].map({group: i for i, group in enumerate(order)}))
    pairs = pairs.sort_values(["rank", "difference"], ascending=[True, False], ignore_index=True)
    where = {
        (str(regime), str(pair)): str(setting)
        for regime, pair, setting in zip(
            battery["regime"].values, battery["pair"].values, battery["setting"].values, strict=True
        )
    }
    named = dict(zip(battery["setting"].values.tolist(), names.setting_names(battery), strict=True))
    leaked = [where["leak", p] for p in pairs["pair"]]
    return pairs.drop(columns="rank").assign(
        leaked_setting=leaked,
        excluded_setting=[where["clean-excl", p] for p in pairs["pair"]],
        retrained_setting=[where.get(("clean-retrained", p), "") for p in pairs["pair"]],
        name=[named[s] for s in leaked],
    )


def cut(value: float) -> str:
    """Write a cut with two decimals, or three where it needs them.

    Examples
    --------
    >>> cut(0.65), cut(0.645)
    ('0.65', '0.645')
    """
    return f"{value:.2f}" if abs(value * 100 - round(value * 100)) < 1e-6 else f"{value:.3f}"


def many(count: int, one: str, more: str) -> str:
    """Return the word for one, or for several.

    Examples
    --------
    >>> many(1, "leak", "leaks"), many(0, "leak", "leaks")
    ('leak', 'leaks')
    """
    return one if count == 1 else more


def key_of(group: str) -> str:
    """Return how a group is called in the table's variables.

    Examples
    --------
    >>> key_of("clean-novel far")
    'clean_novel_far'
    """
    return group.replace(" ", "_").replace("-", "_")


# ---- two sliders


def page_answers(battery: xr.Dataset, shown: np.ndarray) -> xr.Dataset:
    """Return what is drawn and what is said at every stop of gate and tau, for the settings that are shown.

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
    pairs, flat = matched_pairs(battery), over_seeds(battery)
    table = figures.drawn(flat, sweep, pairs, shown)
    lines = {"gate_line": sweep["gate"].variable, "tau_line": sweep["tau"].variable}
    table = table.assign({**_texts(subset, sweep), **lines, **_choice(flat, shown, pairs)})
    for i, metric in enumerate(METRICS):
        table[f"see_{metric}"] = ("metric", np.arange(len(METRICS)) == i)
    table["map_name"] = ("metric", np.array([figures.METRICS[m][1] for m in METRICS], dtype=object))
    note = "This battery holds these numbers only: there are no scores to draw."
    table["detail_note"] = ("chosen", np.array(["", *[note] * battery.sizes["setting"]], dtype=object))
    table = _with_switches(table, battery)
    return table.assign_coords(metric=list(METRICS), chosen=["", *battery["setting"].values.tolist()])


def _with_switches(table: xr.Dataset, battery: xr.Dataset) -> xr.Dataset:
    for name in figures.regimes_of(battery):
        table[f"see_{name}"] = (f"show_{name}", np.array([False, True]))
        table = table.assign_coords({f"show_{name}": [0, 1]})
    return table


def _rail(value: float) -> str:
    """Return where a rate lies on the small rail beside it."""
    return "0" if np.isnan(value) else f"{2 + 116 * value:.1f}"


def _rate(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.2f}"


def _range(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{low:.2f} to {high:.2f}"


def _area(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.4f}"


def _area_range(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{low:.3f} to {high:.3f}"


def _texts(subset: xr.Dataset, sweep: xr.Dataset) -> dict[str, xr.DataArray]:
    texts: dict[str, xr.DataArray] = {
        "say_gate": words(cut, sweep["gate"]),
        "say_tau": words(cut, sweep["tau"]),
    }
    for group in sweep["regime"].values.tolist():
        of, name = sweep.sel(regime=group, drop=True), key_of(group)
        texts[f"{name}_count"] = words(lambda k, n: f"{k} of {n}", of["correct"], of["n"])
        texts[f"{name}_rate"] = words(_rate, of["rate"])
        texts[f"{name}_interval"] = words(_range, of["low"], of["high"])
        for end, variable in (("low", "low"), ("high", "high"), ("at", "rate")):
            texts[f"{name}_{end}"] = words(_rail, of[variable])
    leak, clean = sweep.sel(regime="leak", drop=True), sweep.sel(regime="clean", drop=True)
    alarms = leak["n"] * 0 + clean["fired_count"]
    texts["alarms"] = words(lambda k: f"{k}", alarms)
    texts["alarm_word"] = words(lambda k: many(k, "false alarm", "false alarms"), alarms)
    texts["clean_n"] = words(lambda n: f"{n}", clean["n"])
    texts["leak_word"] = words(lambda n: many(n, "leak", "leaks"), leak["n"])
    texts["hit"], texts["miss"] = words(str, leak["correct"]), words(str, leak["n"] - leak["correct"])
    texts["quiet"] = words(str, clean["correct"])
    texts["area"] = words(_area, sweep["auroc"])
    texts["area_ungated"] = words(_area, sweep["auroc_ungated"])
    texts["area_interval"] = words(_area_range, sweep["auroc_low"], sweep["auroc_high"])
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
            parts.append(f"{leaks} {many(leaks, 'leak', 'leaks')}")
        if clean:
            parts.append(f"{clean} false {many(clean, 'alarm', 'alarms')}")
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
            parts.append(f"False {many(len(alarms), 'alarm', 'alarms')}: {'; '.join(alarms)}.")
        texts.append(" ".join(parts) or "No errors at these cuts.")
    data = np.array(texts, dtype=object)[which.ravel()].reshape(error.shape[:2])
    return xr.DataArray(data, {"gate": sweep["gate"], "tau": sweep["tau"]}, ("gate", "tau"))


def _partners(battery: xr.Dataset, pairs: pd.DataFrame) -> dict[str, str]:
    """Return, for a setting, whom the line leads to: leaked and excluded to each other, retrained to leaked."""
    partner = dict(zip(pairs["leaked_setting"], pairs["excluded_setting"], strict=True))
    partner |= {b: a for a, b in partner.items()}
    for leaked, retrained in zip(pairs["leaked_setting"], pairs["retrained_setting"], strict=True):
        if retrained:
            partner[retrained] = leaked
    return partner


def _choice(flat: xr.Dataset, shown: np.ndarray, pairs: pd.DataFrame) -> dict[str, Any]:
    """Return, for no setting and for each, its line to the partner and its numbers in words."""
    where = {str(s): i for i, s in enumerate(flat["setting"].values)}
    partner = _partners(flat, pairs)
    x = np.where(shown, flat["oracle_lda"].values, np.nan)
    y = np.where(shown, flat["best_unsup"].values, np.nan)
    line = np.full((4, flat.sizes["setting"] + 1), np.nan)
    details, named = [NOTHING_CHOSEN], names.setting_names(flat)
    for setting, i in where.items():
        row = flat.isel(setting=i)
        told = (
            f"{named[i]} ({names.REGIME_LONG[str(row['regime'].item())]}, {setting}): "
            f"oracle LDA {row['oracle_lda'].item():.3f}, Mahalanobis {row['maha'].item():.3f}, "
            f"kNN {row['knn'].item():.3f}, best-unsup {row['best_unsup'].item():.3f}."
        )
        line[:, i + 1] = x[i], y[i], x[i], y[i]
        if setting in partner:
            j = where[partner[setting]]
            line[2:, i + 1] = x[j], y[j]
            regime, other = str(flat["regime"].values[j]), float(flat["best_unsup"].values[j])
            told += f" Its partner, {names.REGIME_LONG[regime]}: best-unsup {other:.3f}."
        details.append(told)
    coordinates = {
        f"link_{end}": (("chosen", "one"), line[k][:, None]) for k, end in enumerate(("x0", "y0", "x1", "y1"))
    }
    return {**coordinates, "detail": ("chosen", np.array(details, dtype=object))}


# ---- three sliders


def follows(table: xr.Dataset) -> dict[str, str]:
    """Return which dims of the table nobody moves: they follow how many settings are right, per group."""
    rights = [str(name) for name in table if str(name).endswith("_right")]
    return {f"of_{name.removesuffix('_right')}": name for name in rights}


def alpha_answers(
    battery: xr.Dataset,
    shown: np.ndarray,
    *,
    covariance: str = "one-class",
    detector: str = "max",
    pairs: pd.DataFrame | None = None,
) -> xr.Dataset:
    """Return what is drawn and what is said at every stop of gate, tau and alpha.

    Parameters
    ----------
    battery : xarray.Dataset
        With ``maha_by_alpha``.
    shown : bool array, shape (S,)
    covariance, detector
        As for `leakviz.detector_sweep.use_detector`.
    pairs : pandas.DataFrame, optional
        `matched_pairs` of the battery, if they are known.

    Returns
    -------
    xarray.Dataset
        `figures.drawn_by_alpha`, the texts, the walked switches and menus.
    """
    alphas = alpha_stops(battery)
    options: dict[str, Any] = {"covariance": covariance, "detector": detector}
    subset = battery.isel(setting=shown)
    sweep = sweep_detector(subset, gates=COARSE_GATES, taus=COARSE_TAUS, alphas=alphas, **options)
    # A group that a filter leaves empty is a group of none: the page has a row for it.
    none = {"n": 0, "correct": 0, "collapsed_count": 0}
    sweep = sweep.reindex(
        regime=list(groups(battery)), fill_value={name: none.get(str(name), np.nan) for name in sweep}
    )
    pairs = matched_pairs(battery) if pairs is None else pairs
    flat = over_seeds(battery)
    seen = np.array([[False, False], [False, True]])
    table = figures.drawn_by_alpha(battery, flat, sweep, pairs, shown)
    more: dict[str, Any] = {
        "gate_line": sweep["gate"].variable,
        "tau_line": sweep["tau"].variable,
        **_alpha_texts(sweep),
        **_alpha_choice(flat, sweep, shown, pairs),
        "map_name": ("metric", np.array([figures.METRICS[m][1] for m in METRICS], dtype=object)),
        "contrast_says": ("alpha", _contrast_says(sweep, pairs)),
        **{f"see_{name}_seeds": ((f"show_{name}", "seeds"), seen) for name in figures.regimes_of(battery)},
    }
    table = _with_switches(table.assign(more), battery)
    return table.assign_coords(
        metric=list(METRICS), chosen=["", *battery["setting"].values.tolist()], seeds=[0, 1]
    )


def _alpha_texts(sweep: xr.Dataset) -> dict[str, Any]:
    """Say the counts once per count, the score's AUROC per gate and alpha."""
    stop = ("gate", "tau", "alpha")
    texts: dict[str, Any] = {
        "say_gate": words(cut, sweep["gate"]),
        "say_tau": words(cut, sweep["tau"]),
        "say_alpha": ("alpha", np.array([alpha_label(a) for a in sweep["alpha"].values], dtype=object)),
    }
    for group in sweep["regime"].values.tolist():
        name, of = key_of(group), sweep.sel(regime=group, drop=True)
        n = int(of["n"])
        right = np.arange(n + 1)
        low, high = wilson_interval(right, n)
        rate = right / n if n else np.full(1, np.nan)
        count = xr.DataArray(right, dims=f"of_{name}")
        texts[f"{name}_right"] = (stop, of["correct"].values)
        texts[f"{name}_count"] = words(lambda k, n=n: f"{k} of {n}", count)
        for what, write, values in (
            ("rate", _rate, (rate,)),
            ("interval", _range, (low, high)),
            ("low", _rail, (low,)),
            ("high", _rail, (high,)),
            ("at", _rail, (rate,)),
        ):
            texts[f"{name}_{what}"] = words(write, *(xr.DataArray(v, dims=count.dims) for v in values))
    leaks, clean = (xr.DataArray(np.arange(_n(sweep, g) + 1), dims=f"of_{g}") for g in ("leak", "clean"))
    texts["hit"], texts["quiet"] = words(str, leaks), words(str, clean)
    texts["miss"] = words(str, _n(sweep, "leak") - leaks)
    texts["alarms"] = words(str, _n(sweep, "clean") - clean)
    texts["alarm_word"] = words(lambda k: many(k, "false alarm", "false alarms"), _n(sweep, "clean") - clean)
    texts["leak_word"] = ((), many(_n(sweep, "leak"), "leak", "leaks"))
    texts["clean_n"] = ((), str(_n(sweep, "clean")))
    texts["area"] = words(_area, sweep["auroc"])
    texts["area_interval"] = words(_area_range, sweep["auroc_low"], sweep["auroc_high"])
    texts["area_ungated"] = words(_area, sweep["auroc_ungated"])
    return texts | _ungated(sweep)


def _ungated(sweep: xr.Dataset) -> dict[str, Any]:
    """Say what tau alone would flag."""
    texts: dict[str, Any] = {}
    for group, one, more in (("leak", "leak", "leaks"), ("clean", "false alarm", "false alarms")):
        name = f"{group}_ungated"
        texts[f"{name}_right"] = (("alpha", "tau"), sweep["collapsed_count"].sel(regime=group).values)
        count = xr.DataArray(np.arange(_n(sweep, group) + 1), dims=f"of_{name}")
        texts[f"{name}_says"] = words(lambda k, one=one, more=more: f"{k} {many(k, one, more)}", count)
    return texts


def _n(sweep: xr.Dataset, group: str) -> int:
    return int(sweep["n"].sel(regime=group))


def alpha_label(alpha: str) -> str:
    """Return an alpha as the slider and the sentence show it.

    Examples
    --------
    >>> alpha_label("ledoit-wolf"), alpha_label("0.0003")
    ('Ledoit-Wolf', '0.0003')
    """
    return "Ledoit-Wolf" if alpha == LEDOIT_WOLF else alpha


def _alpha_choice(
    flat: xr.Dataset, sweep: xr.Dataset, shown: np.ndarray, pairs: pd.DataFrame
) -> dict[str, Any]:
    """Return, for no setting and for each, its line to the partner and its numbers, by alpha."""
    settings = flat["setting"].values.tolist()
    where = {setting: i for i, setting in enumerate(settings)}
    partner = _partners(flat, pairs)
    other = np.array([where[partner[s]] if s in partner else i for i, s in enumerate(settings)])
    whole = sweep.reindex(setting=settings)  # nan where the filters leave a setting out
    x = np.where(shown, flat["oracle_lda"].values, np.nan)
    y, maha = whole["best_unsup"].values, whole["maha"].values  # (alpha, setting)
    unsup_of = np.concatenate([np.full((len(y), 1), np.nan), y], axis=1)
    other_of = np.concatenate([np.full((len(y), 1), np.nan), y[:, other]], axis=1)
    maha_of = np.concatenate([np.full((len(y), 1), np.nan), maha], axis=1)
    first, last = (np.concatenate([[np.nan], x[i]]) for i in (np.arange(len(x)), other))

    told, ends = [NOTHING_CHOSEN], [""]
    for i, (name, setting) in enumerate(zip(names.setting_names(flat), settings, strict=True)):
        regime = names.REGIME_LONG[str(flat["regime"].values[i])]
        left = "" if shown[i] else " It is left out by the filters."
        told.append(
            f"{name} ({regime}, {setting}).{left} Oracle LDA {flat['oracle_lda'].values[i]:.3f}, "
            f"kNN {flat['knn'].values[i]:.3f}, Mahalanobis"
        )
        j = other[i]
        ends.append(
            "."
            if i == j
            else f". Its partner, {names.REGIME_LONG[str(flat['regime'].values[j])]}: best-unsup"
        )
    stop = ("alpha", "chosen")

    def write(values: np.ndarray) -> Any:
        texts = ["" if v != v else f"{v:.3f}" for v in values.ravel().tolist()]
        return stop, np.array(texts, dtype=object).reshape(values.shape)

    alone = np.concatenate([[True], other == np.arange(len(other))])
    return {
        "link_x0": (("chosen", "one"), first[:, None].astype(np.float32)),
        "link_x1": (("chosen", "one"), last[:, None].astype(np.float32)),
        "link_y0": ((*stop, "one"), unsup_of[..., None].astype(np.float32)),
        "link_y1": ((*stop, "one"), other_of[..., None].astype(np.float32)),
        "detail": ("chosen", np.array(told, dtype=object)),
        "detail_maha": write(maha_of),
        "detail_unsup_word": ("chosen", np.array(["", *[", best-unsup"] * len(settings)], dtype=object)),
        "detail_unsup": write(unsup_of),
        "detail_partner": ("chosen", np.array(ends, dtype=object)),
        "detail_other": write(np.where(alone, np.nan, other_of)),
    }


def _contrast_says(sweep: xr.Dataset, pairs: pd.DataFrame) -> np.ndarray:
    """Say, per alpha, by how much excluding the class lifts best-unsup, and how it stands to retraining."""
    place = pd.Series(np.arange(sweep.sizes["setting"]), index=sweep["setting"].values.tolist())
    kinds = [f"{kind}_setting" for kind in ("leaked", "excluded", "retrained")]
    leaked, excluded, retrained = (place.reindex(pairs[kind]).to_numpy() for kind in kinds)  # nan: not here
    unsup = sweep["best_unsup"].values

    def less(of: np.ndarray, other: np.ndarray) -> np.ndarray:
        both = np.isfinite(of) & np.isfinite(other)
        return unsup[:, of[both].astype(int)] - unsup[:, other[both].astype(int)]

    lifts, aboves = less(excluded, leaked), less(excluded, retrained)
    texts = []
    for lift, above in zip(lifts, aboves, strict=True):
        if not len(lift):
            texts.append("No pair is left by the filters.")
            continue
        told = (
            f"Excluding the class lifts best-unsup in {int((lift > 0).sum())} of {len(lift)} pairs "
            f"(difference in best-unsup {lift.min():.2f} to {lift.max():.2f})."
        )
        if len(above):
            told += (
                f" Excluded lies above retrained in {int((above > 0).sum())} of {len(above)} "
                f"(difference in best-unsup {above.min():.2f} to {above.max():.2f})."
            )
        texts.append(told)
    return np.array(texts, dtype=object)


@lru_cache(maxsize=4)
def shared_cautions(battery: Battery) -> tuple[str, ...]:
    """Return the `cautions` of a shipped battery, found once per process."""
    return tuple(cautions(battery.dataset, pairs_of(battery)))


def _span(values: np.ndarray, digits: int) -> str:
    low, high = (f"{v:.{digits}f}" for v in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def cautions(battery: xr.Dataset, pairs: pd.DataFrame) -> list[str]:
    """Say what a computed battery shows about itself, at the paper's cuts and Ledoit and Wolf's alpha.

    Parameters
    ----------
    battery : xarray.Dataset
        With ``maha_by_alpha``.
    pairs : pandas.DataFrame
        `matched_pairs` of it.

    Returns
    -------
    list of str
    """
    plain = use_detector(battery)
    score, flat = leakviz.score_battery(plain, RULE), over_seeds(plain)
    leak = battery["regime"].values == "leak"
    fires = leakviz.fired(plain, RULE).values
    gated = leak & (flat["oracle_lda"].values < RULE.gate)
    right, n = (score[name].to_series() for name in ("correct", "n"))
    alarms = [name for name, fire in zip(names.setting_names(battery), fires & ~leak, strict=True) if fire]
    told = [
        f"At the paper's cuts ({RULE.gate:g}, {RULE.tau:g}), with Ledoit-Wolf, {right['leak']} of {n['leak']} leaks "
        f"fire and {len(alarms)} of {n['clean']} clean settings{': ' if alarms else ''}{'; '.join(alarms)}. Of the leaks that are missed, "
        f"{int(gated.sum())} fail the gate and {int((leak & ~gated & ~fires).sum())} stand above tau."
    ]
    alone = plain.isel(setting=leak & (battery["size"].values == 1))
    values = alone["maha"].transpose("setting", "seed").values
    groups = pd.DataFrame(values).groupby(alone["backbone"].values).mean().to_numpy()
    told.append(
        "For classes of equal size the leak AUROCs of any one score average 0.5 over the classes, whatever the "
        f"features: that is arithmetic, no finding (here the average of Mahalanobis is {_span(groups, 4)} on every backbone "
        f"and seed). How far the single classes spread around it, here from {values.min():.2f} to {values.max():.2f}, "
        "decides how many fire; the contrast within a pair is the evidence."
    )
    thrice = pairs[pairs["retrained_setting"] != ""]
    if len(thrice):
        unsup = flat["best_unsup"].to_series()
        above = unsup[thrice["excluded_setting"]].to_numpy() - unsup[thrice["retrained_setting"]].to_numpy()
        told.append(
            f"Leaving a class out of the fit set alone flatters its clean value, for the backbone has seen it: "
            f"excluded lies above retrained in {int((above > 0).sum())} of {len(above)} cases, by up to "
            f"{above.max():.2f}. Training again without the class is the gold standard."
        )
    backbones = len(set(battery["backbone"].values.tolist()))
    told.append(
        f"{battery.sizes['setting']} settings on {backbones} {many(backbones, 'backbone', 'backbones')}, small grey images, one training seed each: "
        "they are no independent draws, and the intervals hold within this design."
    )
    return told
