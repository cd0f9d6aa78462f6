"""The figures of the fingerprint page: answers in, HoloViews elements out.

`drawn` and `drawn_by_alpha` turn what the core answers into what is drawn (positions, fills, rings),
for every stop of the sliders at once; each figure takes that table at one stop. The browser copies rows
of the same table into the same columns, so the figure on the screen and the figure in the file are one.

With alpha a third slider, a decision is too much to keep for every stop of the three. It is kept as its
two conditions, gate passed and detectors collapsed, whose product it is (`fills`, `rings`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import xarray as xr

from dashboards import theme
from dashboards.figures.style import INK, above, apart, by_column, frame, offset, on_paper, style
from dashboards.names import setting_names

FIGURES = {
    "scatter": "Fingerprint box",
    "map": "Would other cuts do?",
    "rates": "Sensitivity and specificity at this gate",
    "area": "Score AUROC against alpha",
    "contrast": "The same class, inside and outside the fit set",
}
RATES_SAY = (
    "Solid, vermilion: sensitivity. Dashed: specificity. Bands: Wilson 95 %. Dotted: the published tau"
)
REGIMES = {"leak": "leak", "excluded": "clean-excl", "novel": "clean-novel"}  # name in columns: regime
RETRAINED = {"retrained": "clean-retrained"}  # only where a backbone was trained again
METRICS = {
    "balanced": ("balanced_accuracy", "balanced accuracy"),
    "sensitivity": ("sensitivity", "sensitivity"),
    "specificity": ("specificity", "specificity"),
}
PUBLISHED = {"gate": 0.95, "tau": 0.65}  # 2607.19393, section 5.1
# Where a name may stand beside its ring, in order of preference: right or left, level, above or below.
PLACES = ((1, 0), (-1, 0), (-1, 1), (-1, -1), (1, 1), (1, -1))
NAME_SHIFT = (14, 15)  # px
MAP_EVERY = 2  # with alpha, the map has every second tau: it is an image for each alpha
MANY_PAIRS = 24  # beyond which pairs stand in groups, without a name below each

_FRAME = (560, 300)  # px: the scatter's frame at which names are kept apart


def regimes_of(battery: xr.Dataset) -> dict[str, str]:
    """Return the regimes of a battery, name in columns to regime, in the order in which they are drawn.

    Examples
    --------
    >>> import leakviz
    >>> list(regimes_of(leakviz.load_battery("published")))
    ['leak', 'excluded', 'novel']
    """
    again = RETRAINED if (battery["regime"].values == "clean-retrained").any() else {}
    return {"leak": "leak", "excluded": "clean-excl", **again, "novel": "clean-novel"}


def fills(now: xr.Dataset, name: str) -> tuple[str, ...]:
    """Return the variables whose product tells which points are filled: those that fire."""
    return (f"{name}_fill",) if f"{name}_fill" in now else (f"{name}_passes", f"{name}_collapsed")


def rings(now: xr.Dataset, name: str) -> dict[str, tuple[str, ...]]:
    """Return the layers of rings around the errors of a regime, and the variables that show them."""
    if f"{name}_ring" in now:
        return {f"{name}_rings": (f"{name}_ring",)}
    if name != "leak":
        return {f"{name}_rings": fills(now, name)}
    # A leak is missed where it fails the gate, or passes it and stands: never both.
    return {f"{name}_rings": (f"{name}_passes", f"{name}_stands"), f"{name}_gated": (f"{name}_fails",)}


def product(now: xr.Dataset, variables: Sequence[str]) -> np.ndarray:
    """Return the entrywise product of some rows, as floats."""
    return np.prod([now[v].values.astype(np.float64) for v in variables], axis=0)


def scatter_range(battery: xr.Dataset) -> dict[str, tuple[float, float]]:
    """Return the fixed ranges of the scatter: the populated part, on a 0.01 and a 0.1 grid."""
    low_x = np.floor(float(battery["oracle_lda"].min()) * 100 - 0.5) / 100
    lowest = float(battery["best_unsup"].min())
    if "maha_by_alpha" in battery:  # the points move with alpha: room for all of it
        lowest = min(lowest, float(battery["maha_by_alpha"].min()), float(battery["knn"].min()))
    low_y = np.floor(lowest * 10) / 10
    return {"x": (float(low_x), 1.0035), "y": (float(low_y), 1.03)}


def drawn(battery: xr.Dataset, sweep: xr.Dataset, pairs: pd.DataFrame, shown: np.ndarray) -> xr.Dataset:
    """Return what the figures draw, for every stop of gate and tau.

    Parameters
    ----------
    battery : xarray.Dataset
        The whole battery: each setting keeps its place in the columns.
    sweep : xarray.Dataset
        `leakviz.sweep_rule` of the settings shown.
    pairs : pandas.DataFrame
        `leakviz.contrast` of the whole battery, in the order in which the pairs stand.
    shown : array of bool, shape (S,)
        Which settings the filters leave; the others have no position.

    Returns
    -------
    xarray.Dataset
        Row dimensions: one per regime, ``pair``, ``cut`` (the curves' tau), ``edge`` (twice
        that: a band's outline), ``pixel`` (the map, row by row), ``one`` (a single mark).
    """
    gates, taus = sweep["gate"].values, sweep["tau"].values
    whole = sweep.reindex(setting=battery["setting"].values, fill_value=False)
    fires, error = whole["fired"].values, whole["error"].values
    x = np.where(shown, battery["oracle_lda"].values, np.nan)
    y = np.where(shown, battery["best_unsup"].values, np.nan)
    stop = ("gate", "tau")
    table: dict[str, Any] = {}
    regimes = regimes_of(battery)
    for name, regime in regimes.items():
        of = np.flatnonzero(battery["regime"].values == regime)
        table[f"{name}_x"] = (name, x[of])
        table[f"{name}_y"] = (name, y[of])
        table[f"{name}_fill"] = ((*stop, name), fires[..., of])
        table[f"{name}_ring"] = ((*stop, name), error[..., of])
    for column, values in place_names(battery, x, y, error).items():
        for name, regime in regimes.items():
            table[f"{name}_name_{column}"] = ((*stop, name), values[..., battery["regime"].values == regime])
    table["box_left"] = (("gate", "one"), gates[:, None])
    table["box_top"] = (("tau", "one"), taus[:, None])
    table["box_label_x"] = (("gate", "one"), np.maximum(gates, scatter_range(battery)["x"][0])[:, None])
    for key, (variable, _) in METRICS.items():
        table[f"heat_{key}"] = ("pixel", sweep[variable].values.T.ravel())  # one row per tau
    for name, group in (("sensitivity", "leak"), ("specificity", "clean")):
        of_group = sweep.sel(regime=group)
        low, high = of_group["low"].values, of_group["high"].values
        table[name] = (("gate", "cut"), of_group["rate"].values)
        table[f"{name}_band"] = (("gate", "edge"), np.concatenate([low, high[:, ::-1]], axis=1))
        table[f"{name}_low"], table[f"{name}_high"] = (("gate", "cut"), low), (("gate", "cut"), high)
    for name, (rows, members) in pair_members(battery, pairs).items():
        table[f"pair_{name}"] = (rows, y[members])
        table[f"pair_{name}_fill"] = ((*stop, rows), fires[..., members])
    return xr.Dataset(table, {"gate": gates, "tau": taus})


def pair_members(battery: xr.Dataset, pairs: pd.DataFrame) -> dict[str, tuple[str, list[int]]]:
    """Return the members of the pairs: of each kind its row dimension and which settings they are."""
    where = {str(s): i for i, s in enumerate(battery["setting"].values)}
    members = {
        "leak": ("pair", [where[s] for s in pairs["leaked_setting"]]),
        "excluded": ("pair", [where[s] for s in pairs["excluded_setting"]]),
    }
    if pairs["retrained_setting"].any():
        members["retrained"] = ("again", [where[s] for s in pairs["retrained_setting"] if s])
    return members


def drawn_by_alpha(
    battery: xr.Dataset, flat: xr.Dataset, sweep: xr.Dataset, pairs: pd.DataFrame, shown: np.ndarray
) -> xr.Dataset:
    """Return what the figures draw, for every stop of gate, tau and alpha.

    Parameters
    ----------
    battery : xarray.Dataset
        The whole battery: each setting keeps its place in the columns.
    flat : xarray.Dataset
        The same, means over seeds.
    sweep : xarray.Dataset
        `leakviz.detector_sweep.sweep_detector` of the settings shown.
    pairs, shown
        As for `drawn`.

    Returns
    -------
    xarray.Dataset
        Row dimensions as in `drawn`; ``at`` (the stops of alpha along the curve of the score's AUROC)
        and ``rim`` (twice that), ``again`` (pairs with a retrained backbone).
    """
    gates, taus, alphas = (sweep[dim].values for dim in ("gate", "tau", "alpha"))
    settings = battery["setting"].values
    values = sweep[[name for name in sweep if str(name).startswith(("maha", "best_unsup"))]]
    values = values.reindex(setting=settings).transpose("alpha", "setting")
    decided = sweep[["passes", "collapsed"]].reindex(setting=settings, fill_value=False)
    passes, collapsed = decided["passes"].values, decided["collapsed"].values
    oracle = battery["oracle_lda"].where(xr.DataArray(shown, dims="setting"))
    ends = {"least": oracle.min("seed").values, "most": oracle.max("seed").values}
    x = np.where(shown, flat["oracle_lda"].values, np.nan)
    y = values["best_unsup"].values
    table: dict[str, Any] = {}

    def decide(name: str, rows: str, of: Sequence[int] | np.ndarray) -> None:
        table[f"{name}_passes"] = (("gate", rows), passes[:, of])
        table[f"{name}_collapsed"] = (("alpha", "tau", rows), collapsed[..., of])

    for name, regime in regimes_of(battery).items():
        of = np.flatnonzero(battery["regime"].values == regime)
        table[f"{name}_x"] = (name, x[of])
        decide(name, name, of)
        for column, variable in (
            ("y", "best_unsup"),
            ("least", "best_unsup_low"),
            ("most", "best_unsup_high"),
            ("maha", "maha"),
        ):
            table[f"{name}_{column}"] = (("alpha", name), values[variable].values[:, of].astype(np.float32))
        for end, at in ends.items():
            table[f"{name}_x_{end}"] = (name, at[of])
        if name == "leak":
            table["leak_fails"] = (("gate", name), ~passes[:, of])
            table["leak_stands"] = (("alpha", "tau", name), ~collapsed[..., of])
    for name, (rows, members) in pair_members(battery, pairs).items():
        table[f"pair_{name}"] = (("alpha", rows), y[:, members].astype(np.float32))
        decide(f"pair_{name}", rows, members)
    table["box_left"] = (("gate", "one"), gates[:, None])
    table["box_top"] = (("tau", "one"), taus[:, None])
    table["box_label_x"] = (("gate", "one"), np.maximum(gates, scatter_range(battery)["x"][0])[:, None])
    images = [sweep[variable].transpose("alpha", "tau", "gate").values for variable, _ in METRICS.values()]
    pixels = np.stack(images)[:, :, ::MAP_EVERY].reshape(len(images), len(alphas), -1).astype(np.float32)
    table["heat"] = (("metric", "alpha", "pixel"), pixels)  # one row per tau
    area, low, high = (sweep[name].values for name in ("auroc", "auroc_low", "auroc_high"))
    table["area_curve"] = (("gate", "at"), area)
    table["area_low"], table["area_high"] = (("gate", "at"), low), (("gate", "at"), high)
    table["area_band"] = (("gate", "rim"), np.concatenate([low, high[:, ::-1]], axis=1))
    table["area_now"] = (("gate", "alpha", "one"), area[..., None])
    place = np.arange(len(alphas), dtype=np.float64)
    table["alpha_line"] = ("alpha", place)
    table["alpha_place"] = (("alpha", "one"), place[:, None])
    return xr.Dataset(table, {"gate": gates, "tau": taus, "alpha": alphas})


def place_names(
    battery: xr.Dataset, x: np.ndarray, y: np.ndarray, error: np.ndarray
) -> dict[str, np.ndarray]:
    """Choose, for each stop, where beside its ring each error's name stands, if it has room.

    A name that would cover another name or ring is left out of the figure; the list of errors
    below it is complete.

    Parameters
    ----------
    battery : xarray.Dataset
    x, y : float, shape (S,)
        Positions; nan for settings that are not shown.
    error : bool, shape (G, T, S)

    Returns
    -------
    dict of str to array, shape (G, T, S)
        ``seen``: whether the name is there; ``align``: "left" or "right"; ``dx``, ``dy``: its
        shift in pixels, down being positive.
    """
    ranges = scatter_range(battery)
    px = (x - ranges["x"][0]) / np.ptp(ranges["x"]) * _FRAME[0]
    py = (y - ranges["y"][0]) / np.ptp(ranges["y"]) * _FRAME[1]
    widths = [6.6 * len(name) for name in ring_names(battery)]
    flat = error.reshape(-1, error.shape[-1]) & np.isfinite(px)
    patterns, which = np.unique(flat, axis=0, return_inverse=True)
    chosen = np.full((len(patterns), len(x)), -1, dtype=np.int8)  # -1: no room
    for row, pattern in zip(chosen, patterns, strict=True):
        wrong = np.flatnonzero(pattern)
        rings = {i: (px[i] - 11, px[i] + 11, py[i] - 11, py[i] + 11) for i in wrong}
        texts: list[tuple[float, ...]] = []
        for i in wrong:
            for number, (dx, dy) in enumerate(PLACES):
                start = px[i] + NAME_SHIFT[0] if dx > 0 else px[i] - NAME_SHIFT[0] - widths[i]
                middle = py[i] + NAME_SHIFT[1] * dy
                text = (start, start + widths[i], middle - 7, middle + 7)
                inside = text[0] >= 0 and text[1] <= _FRAME[0] and text[2] >= 0 and text[3] <= _FRAME[1]
                covers = any(_overlap(text, other) for other in texts) or any(
                    _overlap(text, ring) for j, ring in rings.items() if j != i
                )
                if inside and not covers:
                    row[i] = number
                    texts.append(text)
                    break
    at = chosen[which.ravel()].reshape(error.shape)
    places = np.array(PLACES, dtype=np.float64)
    return {
        "seen": at >= 0,
        "align": np.where(places[at, 0] > 0, "left", "right").astype(object),
        "dx": places[at, 0] * NAME_SHIFT[0],
        "dy": -places[at, 1] * NAME_SHIFT[1],
    }


def ring_names(battery: xr.Dataset) -> list[str]:
    """Return the names that stand beside rings: another source is known without its backbone."""
    return [
        name.rsplit(",", 1)[0] if regime == "clean-novel" else name
        for name, regime in zip(setting_names(battery), battery["regime"].values, strict=True)
    ]


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def setting_columns(battery: xr.Dataset, now: xr.Dataset, name: str, regime: str) -> pd.DataFrame:
    """Return what a point tells about itself when it is hovered over or tapped."""
    names = np.array(setting_names(battery), dtype=object)
    of = battery["regime"].values == regime
    maha = now[f"{name}_maha"].values if f"{name}_maha" in now else battery["maha"].values[of]
    return pd.DataFrame(
        {"setting": names[of], "maha": maha.astype(np.float64), "knn": battery["knn"].values[of]}
    )


def scatter(
    battery: xr.Dataset,
    now: xr.Dataset,
    *,
    link: Sequence[float] = (np.nan,) * 4,
    visible: Sequence[str] = (*REGIMES, *RETRAINED),
    seeds: bool = True,
    ranges: dict[str, tuple[float, float]] | None = None,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw oracle LDA against best-unsup, the firing box, the errors and one chosen pair.

    Parameters
    ----------
    battery : xarray.Dataset
        Means over seeds.
    now : xarray.Dataset
        `drawn` or `drawn_by_alpha` at one stop.
    link : four floats
        x and y of a chosen setting and of its partner (nan for none).
    visible : sequence of str
        The regimes that are drawn.
    seeds : bool
        Whether the whiskers over the seeds are drawn, where `now` has them.
    ranges : dict, optional
        As `scatter_range` returns them, of the battery with its seeds.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    ranges, regimes = ranges or scatter_range(battery), regimes_of(battery)
    left, top = now["box_left"].values[0], now["box_top"].values[0]
    box = hv.Rectangles([(left, -1.0, 2.0, top)], label="firing box")
    layers: list[hv.Element] = [
        style(
            box,
            backend,
            bokeh={
                "fill_color": theme.REGIME_COLOR["leak"],
                "fill_alpha": 0.07,
                "line_color": theme.REGIME_COLOR["leak"],
                "line_width": 1.8,
            },
            matplotlib={
                "facecolor": theme.REGIME_COLOR["leak"] + "12",
                "edgecolor": theme.REGIME_COLOR["leak"],
                "linewidth": 1.3,
            },
            hooks=hooks.get("box"),
        ),
        style(
            hv.Labels(
                {
                    "x": [float(now["box_label_x"].values[0])],
                    "y": [ranges["y"][0]],
                    "text": ["fires: decodable, not detectable"],
                },
                ["x", "y"],
                "text",
            ),
            backend,
            bokeh={
                "text_color": theme.LIGHT["alarm"],
                "text_font_size": "12px",
                "text_font": theme.FONT_VALUE,
                "text_align": "left",
                "text_baseline": "bottom",
            },
            matplotlib={
                "color": theme.LIGHT["alarm"],
                "size": 8,
                "horizontalalignment": "left",
                "verticalalignment": "bottom",
                "hooks": [on_paper(5, -4)],
            },
            hooks=[offset(8, -6), *hooks.get("box_label", [])],
        ),
        style(
            hv.Segments([tuple(link)], ["x0", "y0", "x1", "y1"]),
            backend,
            bokeh={"color": INK, "line_width": 1.4},
            matplotlib={"color": INK, "linewidth": 1},
            hooks=hooks.get("link"),
        ),
    ]
    crowded = battery.sizes["setting"] > 100
    for name in regimes:
        if seeds or backend == "bokeh":
            layers += _whiskers(now, name, regimes[name], backend, hooks, seeds and name in visible)
    for name, regime in regimes.items():
        if backend == "matplotlib" and name not in visible:
            continue  # no place in the legend either
        color = theme.REGIME_COLOR[regime]
        x, y = now[f"{name}_x"].values, now[f"{name}_y"].values.astype(np.float64)
        data = setting_columns(battery, now, name, regime).assign(
            oracle_lda=x, best_unsup=y, fill=product(now, fills(now, name))
        )
        if backend == "matplotlib":
            data["face"] = np.where(data["fill"] > 0, color, theme.LIGHT["bg"])
        kdims = ["oracle_lda", "best_unsup"]
        points = hv.Points(data, kdims, label=theme.REGIME_LABEL[regime])
        for layer, variables in rings(now, name).items():
            ring = data.assign(ring=product(now, variables))
            ring["edge"] = np.where(ring["ring"] > 0, INK, "#00000000")
            layers.append(
                style(
                    hv.Points(ring, kdims),
                    backend,
                    bokeh={
                        "marker": "circle",
                        "size": 16 if crowded else 21,
                        "fill_alpha": 0,
                        "line_color": INK,
                        "line_width": 1.0 if crowded else 1.3,
                        "visible": name in visible,
                    },
                    matplotlib={
                        "marker": "o",
                        "s": 100 if crowded else 160,
                        "facecolors": "none",
                        "edgecolors": hv.dim("edge"),
                    },
                    hooks=[by_column(line_alpha="ring"), *hooks.get(layer, [])],
                )
            )
        layers.append(
            style(
                points,
                backend,
                bokeh={
                    "marker": theme.REGIME_MARK[regime],
                    "size": (8 if crowded else 10.5) * (1.25 if regime == "clean-retrained" else 1),
                    "color": color,
                    "line_width": 1.7,
                    "visible": name in visible,
                    "tools": ["tap", "hover"],
                    "hover_tooltips": [
                        ("", "@setting"),
                        ("oracle LDA", "@oracle_lda{0.000}"),
                        ("Mahalanobis", "@maha{0.000}"),
                        ("kNN", "@knn{0.000}"),
                        ("best-unsup", "@best_unsup{0.000}"),
                    ],
                },
                matplotlib={
                    "marker": theme.PAPER_MARK[theme.REGIME_MARK[regime]],
                    "s": 20 if crowded else 34,
                    "facecolors": hv.dim("face"),
                    "edgecolors": color,
                    "linewidth": 0.9 if crowded else 1.2,
                },
                hooks=[by_column(fill_alpha="fill"), *hooks.get(name, [])],
            )
        )
    for name in regimes:
        if f"{name}_name_seen" in now and (backend == "bokeh" or name in visible):
            layers += _names(battery, now, name, backend, hooks.get(f"{name}_names", []), name in visible)
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["scatter"],
        xlabel="oracle LDA, AUROC with labels",
        ylabel="best-unsup, AUROC without labels",
        xlim=ranges["x"],
        ylim=ranges["y"],
        height=560,
        zoom=True,
        grid="y",
        xformatter="%.2f",
        yformatter="%.1f",
        hooks=hooks.get("figure"),
    )


def _whiskers(
    now: xr.Dataset,
    name: str,
    regime: str,
    backend: str,
    hooks: dict[str, list[Callable]],
    visible: bool,
) -> list[hv.Element]:
    """Draw from the smallest to the largest of the seeds, both ways, if `now` has them."""
    if f"{name}_least" not in now or (backend == "matplotlib" and not visible):
        return []
    x, y = now[f"{name}_x"].values, now[f"{name}_y"].values.astype(np.float64)
    low, high = (now[f"{name}_{end}"].values.astype(np.float64) for end in ("least", "most"))
    left, right = now[f"{name}_x_least"].values, now[f"{name}_x_most"].values
    color = theme.REGIME_COLOR[regime]
    return [
        style(
            hv.Segments({"x0": a, "y0": b, "x1": c, "y1": d}, ["x0", "y0", "x1", "y1"]),
            backend,
            bokeh={"color": color, "line_width": 1, "alpha": 0.4, "visible": visible},
            matplotlib={"color": color, "linewidth": 0.6, "alpha": 0.4},
            hooks=hooks.get(f"{name}_{layer}"),
        )
        for layer, (a, b, c, d) in (("tall", (x, low, x, high)), ("wide", (left, y, right, y)))
    ]


def _names(
    battery: xr.Dataset, now: xr.Dataset, name: str, backend: str, hooks: Sequence[Callable], visible: bool
) -> list[hv.Element]:
    """Draw the names of one regime's errors beside their rings."""
    of = battery["regime"].values == regimes_of(battery)[name]
    data = pd.DataFrame({"x": now[f"{name}_x"].values, "y": now[f"{name}_y"].values})
    data["text"] = np.array(ring_names(battery), dtype=object)[of]
    data["alpha"] = now[f"{name}_name_seen"].values.astype(float)
    for column in ("align", "dx", "dy"):
        data[column] = now[f"{name}_name_{column}"].values
    if backend == "matplotlib":
        ranges = scatter_range(battery)
        data = data[data["alpha"] > 0]
        data["x"] += data["dx"] * np.ptp(ranges["x"]) / _FRAME[0]
        data["y"] -= data["dy"] * np.ptp(ranges["y"]) / _FRAME[1]
        return [
            style(
                hv.Labels(data[data["align"] == align], ["x", "y"], "text"),
                backend,
                bokeh={},
                matplotlib={"color": INK, "size": 8, "horizontalalignment": align},
            )
            for align in ("left", "right")
            if (data["align"] == align).any()
        ]

    place = by_column(text_alpha="alpha", text_align="align", x_offset="dx", y_offset="dy")
    vdims = ["text", "alpha", "align", "dx", "dy"]
    look = {
        "text_color": INK,
        "text_font": theme.FONT_VALUE,
        "text_font_size": "12px",
        "text_baseline": "middle",
        "visible": visible,
    }
    return [
        style(hv.Labels(data, ["x", "y"], vdims), backend, bokeh=look, matplotlib={}, hooks=[place, *hooks])
    ]


def heat_map(
    now: xr.Dataset,
    *,
    gates: np.ndarray,
    taus: np.ndarray,
    gate: float,
    tau: float,
    metric: str = "balanced",
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw how the rule does over (gate, tau), where the sliders stand, and the published point.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at any stop (the map does not depend on it).
    gates, taus : float arrays
        The stops.
    gate, tau : float
        Where the sliders stand.
    metric : {"balanced", "sensitivity", "specificity"}
        Which of the three maps is seen; with Bokeh all three are there.
    hooks, backend
        As for `scatter`.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = []
    for variable, seen, label in maps(now, metric):
        if backend == "matplotlib" and not seen:
            continue
        pixels = now[variable].values.reshape(len(taus), len(gates))
        image = hv.Image((gates, taus, pixels), ["gate", "tau"], label)
        layers.append(
            style(
                image,
                backend,
                bokeh={"cmap": theme.ramp(), "clim": (0.5, 1.0), "visible": seen},
                matplotlib={"cmap": _ramp(), "clim": (0.5, 1.0), "hooks": [_color_bar]}
                if backend == "matplotlib"
                else {},
                hooks=hooks.get(variable),
            )
        )
    layers += [
        style(
            hv.VLine(gate),
            backend,
            bokeh={"color": theme.ON_MAP, "line_width": 1.2},
            matplotlib={"color": theme.ON_MAP, "linewidth": 0.9},
            hooks=[above, *hooks.get("cross_gate", [])],
        ),
        style(
            hv.HLine(tau),
            backend,
            bokeh={"color": theme.ON_MAP, "line_width": 1.2},
            matplotlib={"color": theme.ON_MAP, "linewidth": 0.9},
            hooks=[above, *hooks.get("cross_tau", [])],
        ),
        style(
            hv.Points([(PUBLISHED["gate"], PUBLISHED["tau"])]),
            backend,
            bokeh={"marker": "x", "size": 8, "color": theme.ON_MAP, "line_width": 1.8},
            matplotlib={"marker": "x", "s": 24, "c": theme.ON_MAP, "edgecolors": None},
        ),
        style(
            hv.Points({"gate": [gate], "tau": [tau]}, ["gate", "tau"]),
            backend,
            bokeh={
                "marker": "circle",
                "size": 13,
                "fill_alpha": 0,
                "line_color": theme.REGIME_COLOR["leak"],
                "line_width": 2.2,
            },
            matplotlib={
                "marker": "o",
                "s": 60,
                "facecolors": "none",
                "edgecolors": theme.REGIME_COLOR["leak"],
                "linewidth": 1.6,
            },
            hooks=[above, *hooks.get("cross", [])],
        ),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title=f"{METRICS[metric][1].capitalize()}; ring: this rule, cross: the published one",
        xlabel="oracle gate",
        ylabel="tau",
        xlim=(float(gates[0]), float(gates[-1])),
        ylim=(float(taus[0]), float(taus[-1])),
        height=200,
        xformatter="%.2f",
        yformatter="%.1f",
        hooks=hooks.get("figure"),
    )


def maps(now: xr.Dataset, metric: str) -> list[tuple[str, bool, str]]:
    """Return the images of the map: variable, whether it is seen, what it shows.

    There are three that lie on each other, or one that is exchanged.
    """
    if "heat" in now:
        return [("heat", True, METRICS[metric][1])]
    return [(f"heat_{key}", key == metric, label) for key, (_, label) in METRICS.items()]


def _fill(color: str) -> Callable:
    """Return a hook: matplotlib's bands take the default cycle inside an overlay, whatever is asked."""

    def hook(plot: Any, element: Any) -> None:
        plot.handles["artist"].set(facecolor=color, edgecolor="none")

    return hook


def _color_bar(plot: Any, element: Any) -> None:
    bar = plot.handles["fig"].colorbar(plot.handles["artist"], ax=plot.handles["axis"], pad=0.03)
    bar.outline.set_visible(False)
    bar.set_label(str(element.vdims[0]))


def _ramp() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("leakviz", theme.RAMP)


def rate_curves(
    now: xr.Dataset,
    *,
    taus: np.ndarray,
    tau: float,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw sensitivity and specificity against tau at the present gate, with Wilson 95 % bands.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at one gate.
    taus : float array
        The stops of tau.
    tau : float
        Where the slider stands.
    hooks, backend
        As for `scatter`.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = []
    look = (("sensitivity", theme.REGIME_COLOR["leak"], "solid"), ("specificity", INK, "dashed"))
    for name, color, _ in look:
        low, high = now[f"{name}_low"].values, now[f"{name}_high"].values
        layers.append(
            style(
                hv.Area((taus, low, high), "tau", ["low", "high"]),
                backend,
                bokeh={"fill_color": color, "fill_alpha": 0.14, "line_alpha": 0},
                matplotlib={"alpha": 0.14, "hooks": [_fill(color)]},
                hooks=hooks.get(f"{name}_band"),
            )
        )
    for name, color, dash in look:
        layers.append(
            style(
                hv.Curve((taus, now[name].values), "tau", "rate", label=name),
                backend,
                bokeh={"color": color, "line_width": 2, "line_dash": dash},
                matplotlib={"color": color, "linewidth": 1.5, "linestyle": {"dashed": "--"}.get(dash, "-")},
                hooks=hooks.get(name),
            )
        )
    layers += [
        style(
            hv.VLine(PUBLISHED["tau"]),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
        ),
        style(
            hv.VLine(tau),
            backend,
            bokeh={"color": theme.REGIME_COLOR["leak"], "line_width": 1.6},
            matplotlib={"color": theme.REGIME_COLOR["leak"], "linewidth": 1.2},
            hooks=[above, *hooks.get("tau", [])],
        ),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title="Sensitivity and specificity; line: this tau, dotted: the published one",
        xlabel="tau",
        ylabel="rate",
        xlim=(float(taus[0]), float(taus[-1])),
        ylim=(0.0, 1.03),
        height=190,
        grid="y",
        xformatter="%.1f",
        yformatter="%.1f",
        hooks=hooks.get("figure"),
    )


def area_curve(
    now: xr.Dataset,
    *,
    alphas: Sequence[str],
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the AUROC of the fingerprint score against alpha at the present gate, with its 95 % band.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn_by_alpha` at one stop.
    alphas : sequence of str
        The names of the stops of alpha, which stand evenly spaced as on the slider.
    hooks, backend
        As for `scatter`.
    """
    hooks = hooks or {}
    place = np.arange(len(alphas), dtype=np.float64)
    low, high = now["area_low"].values, now["area_high"].values
    color = theme.REGIME_COLOR["leak"]
    at = float(now["alpha_line"].item())
    layers: list[hv.Element] = [
        style(
            hv.Area((place, low, high), "alpha", ["low", "high"]),
            backend,
            bokeh={"fill_color": INK, "fill_alpha": 0.12, "line_alpha": 0},
            matplotlib={"alpha": 0.12, "hooks": [_fill(INK)]},
            hooks=hooks.get("area_band"),
        ),
        style(
            hv.Curve((place, now["area_curve"].values), "alpha", "area"),
            backend,
            bokeh={"color": INK, "line_width": 2},
            matplotlib={"color": INK, "linewidth": 1.5},
            hooks=hooks.get("area_curve"),
        ),
    ]
    if "ledoit-wolf" in alphas:
        layers.append(
            style(
                hv.VLine(list(alphas).index("ledoit-wolf")),
                backend,
                bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
                matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
            )
        )
    layers += [
        style(
            hv.VLine(at),
            backend,
            bokeh={"color": color, "line_width": 1.6},
            matplotlib={"color": color, "linewidth": 1.2},
            hooks=[above, *hooks.get("alpha", [])],
        ),
        style(
            hv.Points({"alpha": [at], "area": now["area_now"].values.ravel()}, ["alpha", "area"]),
            backend,
            bokeh={"marker": "circle", "size": 9, "color": color},
            matplotlib={"marker": "o", "s": 28, "color": color},
            hooks=[above, *hooks.get("area_now", [])],
        ),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title="AUROC of the fingerprint score",
        xlabel="alpha, steps of the slider",
        ylabel="AUROC",
        xlim=(-0.5, len(alphas) - 0.5),
        ylim=(0.5, 1.01),
        height=190,
        grid="y",
        yformatter="%.1f",
        xticks=alpha_ticks(alphas),
        hooks=[apart, *hooks.get("figure", [])],
    )


def alpha_ticks(alphas: Sequence[str]) -> list[tuple[float, str]]:
    """Return labels for some stops of alpha, where there is room.

    Examples
    --------
    >>> alpha_ticks(["0", "0.001", "ledoit-wolf", "0.005", "0.01", "1"])
    [(0, '0'), (2, 'L-W'), (4, '0.01'), (5, '1')]
    """
    written = {"0": "0", "ledoit-wolf": "L-W", "0.01": "0.01", "0.1": "0.1", "0.5": "0.5", "1": "1"}
    return [(i, written[a]) for i, a in enumerate(map(str, alphas)) if a in written]


def dumbbells(
    pairs: pd.DataFrame,
    now: xr.Dataset,
    *,
    tau: float,
    low: float | None = None,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw best-unsup of each matched pair, leaked and excluded (and retrained, where it was), and tau.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The pairs in order, with their short ``name`` and, where they are many, their ``group``.
    now : xarray.Dataset
        `drawn` or `drawn_by_alpha` at one stop.
    tau : float
        Where the slider stands.
    low : float, optional
        Where the axis begins; by default just below the leaked values.
    hooks, backend
        As for `scatter`.
    """
    hooks = hooks or {}
    place = np.arange(len(pairs), dtype=np.float64)
    crowded = len(pairs) > MANY_PAIRS
    leaked, excluded = (now[f"pair_{name}"].values.astype(np.float64) for name in ("leak", "excluded"))
    layers: list[hv.Element] = [
        style(
            hv.Segments({"x0": place, "y0": leaked, "x1": place, "y1": excluded}, ["x0", "y0", "x1", "y1"]),
            backend,
            bokeh={"color": INK, "line_width": 1 if crowded else 1.4, "alpha": 0.55},
            matplotlib={"color": INK, "linewidth": 0.7 if crowded else 1, "alpha": 0.55},
            hooks=hooks.get("stems"),
        ),
        style(
            hv.HLine(tau),
            backend,
            bokeh={"color": theme.REGIME_COLOR["leak"], "line_width": 1.6, "line_dash": "dashed"},
            matplotlib={"color": theme.REGIME_COLOR["leak"], "linewidth": 1.2, "linestyle": "--"},
            hooks=[above, *hooks.get("tau", [])],
        ),
    ]
    everywhere = np.arange(len(pairs))
    again = np.flatnonzero(pairs["retrained_setting"] != "")
    rows = {"excluded": everywhere, "leak": everywhere, "retrained": again}
    for name, regime in (("excluded", "clean-excl"), ("leak", "leak"), ("retrained", "clean-retrained")):
        if f"pair_{name}" not in now:
            continue
        color = theme.REGIME_COLOR[regime]
        data = pd.DataFrame(
            {
                "place": place[rows[name]],
                "best_unsup": now[f"pair_{name}"].values.astype(np.float64),
                "fill": product(now, fills(now, f"pair_{name}")),
                "pair": pairs["name"].to_numpy()[rows[name]],
                "difference": pairs["difference"].to_numpy()[rows[name]],
            }
        )
        if backend == "matplotlib":
            data["face"] = np.where(data["fill"] > 0, color, theme.LIGHT["bg"])
        told = [("", "@pair"), ("best-unsup", "@best_unsup{0.000}")]
        layers.append(
            style(
                hv.Points(data, ["place", "best_unsup"], label=theme.REGIME_LABEL[regime]),
                backend,
                bokeh={
                    "marker": theme.REGIME_MARK[regime],
                    "size": (6.5 if crowded else 10) * (1.4 if name == "retrained" else 1),
                    "color": color,
                    "line_width": 1.2 if crowded else 1.7,
                    "tools": ["tap", "hover"],
                    "hover_tooltips": told if crowded else [*told, ("difference", "@difference{0.000}")],
                },
                matplotlib={
                    "marker": theme.PAPER_MARK[theme.REGIME_MARK[regime]],
                    "s": 12 if crowded else 30,
                    "facecolors": hv.dim("face"),
                    "edgecolors": color,
                    "linewidth": 0.8 if crowded else 1.2,
                },
                hooks=[by_column(fill_alpha="fill"), *hooks.get(f"pair_{name}", [])],
            )
        )
    if low is None:
        low = np.floor(float(np.nanmin(leaked)) * 10) / 10 if np.isfinite(leaked).any() else 0.0
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["contrast"],
        left=54 if crowded else 84,
        xlabel="",
        ylabel="best-unsup, AUROC",
        xlim=(-0.6, len(pairs) - 0.4),
        ylim=(low, 1.04),
        height=300,
        grid="y",
        yformatter="%.1f",
        xticks=_pair_ticks(pairs),
        xrotation=0 if crowded else 40,
        hooks=hooks.get("figure"),
    )


def _pair_ticks(pairs: pd.DataFrame) -> list[tuple[float, str]]:
    """Return a label per pair, or, where there is no room for them, one in the middle of each group."""
    if len(pairs) <= MANY_PAIRS:
        return [(float(i), name) for i, name in enumerate(pairs["name"])]
    places = pd.Series(np.arange(len(pairs), dtype=np.float64)).groupby(pairs["group"].to_numpy(), sort=False)
    return [(middle, str(group)) for group, middle in places.mean().items()]
