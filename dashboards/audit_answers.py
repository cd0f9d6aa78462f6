"""Everything that the audit page shows, for every stop of its sliders and menus, as one table.

The core answers; this module puts the answers into rows and words, so that the browser only looks them
up (see `dashboards.live`). What fires is kept as the two conditions whose product it is.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pandas as pd
import xarray as xr

import leakviz
from dashboards import batteries, names
from dashboards.figures import audit as figures
from dashboards.live import words
from leakviz.comparisons import (
    CONVENTIONS,
    block_ablation,
    contest_index,
    published_wild,
    quoted_figure,
    signature_settings,
)

GATES = leakviz.stops("0.80", "1.00", "0.005")
TAUS = leakviz.stops("0.20", "1.00", "0.005")
RULE = leakviz.Rule()
INDEX = "neighbourhood class-leakage index, k=50"  # in data/published/quoted_figures.csv
NOTHING_CHOSEN = "Tap a point, or choose a setting, to read its numbers."
SPACES = ("embedding", *CONVENTIONS)


@lru_cache(maxsize=1)
def wild() -> pd.DataFrame:
    """Return the published audit in the wild, with names for the screen, once per process."""
    frame = published_wild()
    columns = [frame[name].astype(str) for name in ("title", "id_dataset", "ood", "backbone")]
    named = [
        title
        or f"{names.DATASET.get(data, data)} to {names.ood_name(data, ood)}, {names.BACKBONE.get(backbone, backbone)}"
        for title, data, ood, backbone in zip(*columns, strict=True)
    ]
    return frame.assign(title=named)


@lru_cache(maxsize=1)
def own() -> xr.Dataset:
    """Return the clean settings of other sources that were computed here, once per process."""
    battery = batteries.computed().dataset
    return battery.isel(setting=np.flatnonzero(battery["regime"].values == "clean-novel"))


@lru_cache(maxsize=1)
def signature() -> xr.Dataset:
    """Return the battery in signature space, once per process."""
    return leakviz.load_battery("computed-signature")


@lru_cache(maxsize=1)
def same_in_embedding() -> xr.Dataset:
    """Return the settings of the embedding battery that the signature battery has, too."""
    battery, other = batteries.computed().dataset, signature()
    wanted = {
        (str(b), str(r), str(o))
        for b, r, o in zip(other["backbone"].values, other["regime"].values, other["ood"].values, strict=True)
    }
    kept = [
        (str(b), str(r), str(o)) in wanted
        for b, r, o in zip(
            battery["backbone"].values, battery["regime"].values, battery["ood"].values, strict=True
        )
    ]
    return battery.isel(setting=np.flatnonzero(kept))


@lru_cache(maxsize=1)
def contest() -> pd.DataFrame:
    """Return the head-to-head with the neighbourhood index, once per process."""
    return contest_index(batteries.computed().dataset)


@lru_cache(maxsize=1)
def ablation() -> pd.DataFrame:
    """Return the block ablation, once per process."""
    return block_ablation(signature())


def quoted_rule() -> dict[str, str]:
    """Return how many runs and classes the rule got right in the paper's signature space (Appendix E)."""

    def numbers(subject: str, quantity: str) -> list[int]:
        return [int(n) for n in re.findall(r"\d+", quoted_figure(subject, quantity).note)]

    fired, runs = numbers("77-d signature, leak, 5 classes x 3 seeds", "best_unsup_auroc")
    false, far = numbers("77-d signature, svhn", "best_unsup_auroc")
    excluded = quoted_figure("77-d signature, clean-excl", "classes_that_false_fire")
    (classes,) = numbers("77-d signature, clean-excl", "classes_that_false_fire")
    return {
        "leak": f"{fired} of {runs} runs",
        "excluded": f"{classes - int(excluded.low)} of {classes}",
        "novel": f"{far - false} of {far} runs",
    }


@lru_cache(maxsize=1)
def readings() -> pd.DataFrame:
    """Return what each reading of the signature says of each setting, once per process."""
    frame = signature_settings(signature())
    named = dict(zip(signature()["setting"].values.tolist(), names.setting_names(signature()), strict=True))
    return frame.assign(name=frame["setting"].map(named))


@lru_cache(maxsize=1)
def index_settings() -> pd.DataFrame:
    """Return every computed setting with its neighbourhood index and its best-unsup, once per process."""
    battery = batteries.computed().dataset
    return pd.DataFrame(
        {
            "setting": battery["setting"].values.astype(str),
            "name": names.setting_names(battery),
            "regime": battery["regime"].values.astype(str),
            "pair": battery["pair"].values.astype(str),
            "index": battery["neighbourhood_leakage"].values,
            "oracle_lda": battery["oracle_lda"].mean("seed").round(12).values,
            "best_unsup": battery["best_unsup"].mean("seed").round(12).values,
        }
    )


@lru_cache(maxsize=1)
def page_answers() -> xr.Dataset:
    """Return everything that the page shows, for every stop, once per process.

    Returns
    -------
    xarray.Dataset
        `figures.drawn` and the texts, over ``gate``, ``tau``, ``reading``, ``convention`` and ``chosen``.
    """
    table = figures.drawn(wild(), own(), readings(), index_settings(), gates=GATES, taus=TAUS)
    gate, tau = table["gate"], table["tau"]
    texts = {
        "say_gate": words(_cut, gate),
        "say_tau": words(_cut, tau),
        **_wild_texts(gate, tau),
        **_index_texts(),
        **_space_texts(),
    }
    chosen, details = _details()
    texts["detail"] = xr.DataArray(np.array(details, dtype=object), dims="chosen")
    lines = {"gate_line": gate.variable, "tau_line": tau.variable}
    return table.assign({**texts, **lines}).assign_coords(chosen=chosen)


def _cut(value: float) -> str:
    """Write a cut with two decimals, or three where it needs them."""
    return f"{value:.2f}" if abs(value * 100 - round(value * 100)) < 1e-6 else f"{value:.3f}"


def _fires(oracle: np.ndarray, unsup: np.ndarray, gate: xr.DataArray, tau: xr.DataArray) -> xr.DataArray:
    """Return how many settings fire at every gate and tau."""
    passes = (oracle >= gate.values[:, None]).astype(np.int64)
    collapsed = (unsup < tau.values[:, None]).astype(np.int64)
    return xr.DataArray(passes @ collapsed.T, {"gate": gate, "tau": tau}, ("gate", "tau"))


def _wild_texts(gate: xr.DataArray, tau: xr.DataArray) -> dict[str, xr.DataArray]:
    frame, battery = wild(), own()
    counted = frame[figures.counted(frame)]
    published = _fires(counted["oracle_low"].to_numpy(), counted["unsup_low"].to_numpy(), gate, tau)
    mine = _fires(
        battery["oracle_lda"].mean("seed").round(12).values,
        battery["best_unsup"].mean("seed").round(12).values,
        gate,
        tau,
    )
    hidden = frame[frame["n"] > 1].iloc[0]
    mac = frame[frame["setting"] == "wild_mac_embedding"].iloc[0]

    def far(g: float, t: float) -> str:
        lead = f"Of {hidden['n']} more far pairs the range alone is public"
        if g > hidden["oracle_low"] or t <= hidden["unsup_low"]:
            return f"{lead}: none of them fires here."
        return f"{lead}: some of them may fire here."

    def hard(g: float, t: float) -> str:
        if t <= mac["unsup_low"]:
            return "At this tau the hard text class does not look collapsed."
        if g <= mac["oracle_low"]:
            return "At this gate the hard text class fires too, though it is clean."
        return "The hard text class is kept out by the gate alone."

    return {
        "published_count": words(str, published),
        "published_n": words(str, published * 0 + len(counted)),
        "own_count": words(str, mine),
        "own_n": words(str, mine * 0 + battery.sizes["setting"]),
        "far_says": words(far, *xr.broadcast(gate, tau)),
        "hard_says": words(hard, *xr.broadcast(gate, tau)),
    }


def _index_texts() -> dict[str, xr.DataArray]:
    sweep = leakviz.sweep_rule(batteries.computed().dataset, gates=GATES, taus=[RULE.tau])
    return {
        "score_auroc": words(lambda v: f"{v:.3f}", sweep["auroc"]),
        "score_interval": words(
            lambda low, high: f"{low:.3f} to {high:.3f}", sweep["auroc_low"], sweep["auroc_high"]
        ),
    }


def _space_texts() -> dict[str, xr.DataArray]:
    """Return how the rule does on the same settings in both spaces, and how each reading compares."""
    texts = {}
    battery, frame = signature(), readings()
    convention = battery["convention"].values.astype(str)
    subsets = {"embedding": same_in_embedding()}
    for name in CONVENTIONS:
        subsets[name] = battery.isel(setting=np.flatnonzero(np.isin(convention, ["all", name])))
    for space, subset in subsets.items():
        sweep = leakviz.sweep_rule(subset, gates=GATES, taus=TAUS)
        far, near = (sweep.sel(regime=f"clean-novel {d}", drop=True) for d in ("far", "near"))
        groups = {
            "leak": sweep.sel(regime="leak", drop=True)[["correct", "n"]],
            "excluded": sweep.sel(regime="clean-excl", drop=True)[["correct", "n"]],
            "novel": far[["correct", "n"]] + near[["correct", "n"]],
        }
        for group, of in groups.items():
            texts[f"{space}_{group}"] = words(lambda k, n: f"{k} of {n}", of["correct"], of["n"])
    below = np.zeros((len(figures.READINGS), len(CONVENTIONS), 2), dtype=np.int64)
    for i, reading in enumerate(figures.READINGS):
        for j, name in enumerate(CONVENTIONS):
            clean = frame[(frame["regime"] != "leak") & frame["convention"].isin(["all", name])]
            below[i, j] = (clean[reading] < clean["embedding_maha"]).sum(), len(clean)
    dims = ("reading", "convention")
    texts["below_says"] = words(
        lambda k, n: f"below Mahalanobis on the embedding in {k} of {n} clean settings",
        xr.DataArray(below[..., 0], dims=dims),
        xr.DataArray(below[..., 1], dims=dims),
    )
    labels = np.array(list(figures.READINGS.values()), dtype=object)
    texts["reading_name"] = xr.DataArray(labels, dims="reading")
    told = np.array([figures.CONVENTION_WORDS[c] for c in CONVENTIONS], dtype=object)
    texts["convention_says"] = xr.DataArray(told, dims="convention")
    return texts


def _details() -> tuple[list[str], list[str]]:
    """Return what can be chosen among the points in the wild, and what is told of each."""
    chosen, details = [""], [NOTHING_CHOSEN]
    for row in wild().to_dict("records"):
        if row["unsup_low"] != row["unsup_high"]:
            continue
        chosen.append(str(row["setting"]))
        details.append(
            f"{row['title']} ({names.REGIME_LONG[row['regime']]}): oracle LDA {_figure(row['oracle_low'], row['source'])}, best-unsup "
            f"{_figure(row['unsup_low'], row['source'])}. arXiv 2607.19393, {row['source']}."
        )
    frame = index_settings()
    for row in frame.to_dict("records"):
        chosen.append(str(row["setting"]))
        details.append(
            f"{row['name']} ({names.REGIME_LONG[row['regime']]}, computed here): oracle LDA {row['oracle_lda']:.3f}, "
            f"best-unsup {row['best_unsup']:.3f}, means of three seeds; neighbourhood index {row['index']:.3f}."
        )
    return chosen, details


def _figure(value: float, source: str) -> str:
    """Write a published figure as precisely as it is printed: tables have three decimals, prose has fewer."""
    return f"{value:.3f}" if source == "Table 12" else f"{value:g}"


def choices() -> list[str]:
    """Return the names of the settings that can be chosen, for a menu."""
    titles = {
        str(setting): f"{title} (published)"
        for setting, title in zip(wild()["setting"], wild()["title"], strict=True)
    }
    frame = index_settings()
    for setting, name, regime in zip(frame["setting"], frame["name"], frame["regime"], strict=True):
        titles[setting] = f"{name} ({names.REGIME[regime]}, here)"
    labels = ["no setting"]
    for setting in _details()[0][1:]:
        labels.append(titles[setting])
    return labels
