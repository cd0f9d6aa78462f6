"""The figures of the fingerprint page: answers in, HoloViews elements out.

`drawn` turns what the core answers into what is drawn (positions, fills, rings), for every stop of
the sliders at once; each figure takes that table at one stop. The browser copies rows of the same
table into the same columns, so the figure on the screen and the figure in the file are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import xarray as xr

from dashboards import theme
from dashboards.figures.style import INK, above, by_column, frame, offset, style
from dashboards.names import setting_names

REGIMES = {"leak": "leak", "excluded": "clean-excl", "novel": "clean-novel"}  # name in columns: regime
METRICS = {
    "balanced": ("balanced_accuracy", "balanced accuracy"),
    "sensitivity": ("sensitivity", "sensitivity"),
    "specificity": ("specificity", "specificity"),
}
PUBLISHED = {"gate": 0.95, "tau": 0.65}  # 2607.19393, section 5.1
# Where a name may stand beside its ring, in order of preference: right or left, level, above or below.
PLACES = ((1, 0), (-1, 0), (-1, 1), (-1, -1), (1, 1), (1, -1))
NAME_SHIFT = (14, 11)  # px

_FRAME = (560, 400)  # px: the scatter's frame at which names are kept apart


def scatter_range(battery: xr.Dataset) -> dict[str, tuple[float, float]]:
    """Return the fixed ranges of the scatter: the populated part, on a 0.01 and a 0.1 grid."""
    low_x = np.floor(float(battery["oracle_lda"].min()) * 100 - 0.5) / 100
    low_y = np.floor(float(battery["best_unsup"].min()) * 10) / 10
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
    for name, regime in REGIMES.items():
        of = np.flatnonzero(battery["regime"].values == regime)
        table[f"{name}_x"] = (name, x[of])
        table[f"{name}_y"] = (name, y[of])
        table[f"{name}_fill"] = ((*stop, name), fires[..., of])
        table[f"{name}_ring"] = ((*stop, name), error[..., of])
    for column, values in place_names(battery, x, y, error).items():
        for name, regime in REGIMES.items():
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
    where = {str(s): i for i, s in enumerate(battery["setting"].values)}
    leaks = [where[s] for s in pairs["leaked_setting"]]
    partners = [where[s] for s in pairs["excluded_setting"]]
    table["pair_leaked"] = ("pair", y[leaks])
    table["pair_excluded"] = ("pair", y[partners])
    table["pair_fill"] = ((*stop, "pair"), fires[..., leaks])
    table["pair_excluded_fill"] = ((*stop, "pair"), fires[..., partners])
    return xr.Dataset(table, {"gate": gates, "tau": taus})


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


def setting_columns(battery: xr.Dataset, regime: str) -> pd.DataFrame:
    """Return what a point tells about itself when it is hovered over or tapped."""
    names = np.array(setting_names(battery), dtype=object)
    of = battery["regime"].values == regime
    columns = ["maha", "knn"]
    return pd.DataFrame({"setting": names[of], **{c: battery[c].values[of] for c in columns}})


def scatter(
    battery: xr.Dataset,
    now: xr.Dataset,
    *,
    link: Sequence[float] = (np.nan,) * 4,
    visible: Sequence[str] = tuple(REGIMES),
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw oracle LDA against best-unsup, the firing box, the errors and one chosen pair.

    Parameters
    ----------
    battery : xarray.Dataset
    now : xarray.Dataset
        `drawn` at one stop of gate and tau.
    link : four floats
        x and y of a chosen setting and of its partner (nan for none).
    visible : sequence of str
        The regimes that are drawn.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    ranges = scatter_range(battery)
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
    for name, regime in REGIMES.items():
        if backend == "matplotlib" and name not in visible:
            continue  # no place in the legend either
        color = theme.REGIME_COLOR[regime]
        x, y = now[f"{name}_x"].values, now[f"{name}_y"].values
        data = setting_columns(battery, regime).assign(
            oracle_lda=x,
            best_unsup=y,
            fill=now[f"{name}_fill"].values.astype(float),
            ring=now[f"{name}_ring"].values.astype(float),
        )
        if backend == "matplotlib":
            data["face"] = np.where(data["fill"] > 0, color, theme.LIGHT["bg"])
            data["edge"] = np.where(data["ring"] > 0, INK, "#00000000")
        kdims = ["oracle_lda", "best_unsup"]
        points = hv.Points(data, kdims, label=theme.REGIME_LABEL[regime])
        rings = hv.Points(data, kdims)
        layers += [
            style(
                rings,
                backend,
                bokeh={
                    "marker": "circle",
                    "size": 21,
                    "fill_alpha": 0,
                    "line_color": INK,
                    "line_width": 1.3,
                    "visible": name in visible,
                },
                matplotlib={
                    "marker": "o",
                    "s": 160,
                    "facecolors": "none",
                    "edgecolors": hv.dim("edge"),
                },
                hooks=[by_column(line_alpha="ring"), *hooks.get(f"{name}_rings", [])],
            ),
            style(
                points,
                backend,
                bokeh={
                    "marker": theme.REGIME_MARK[regime],
                    "size": 10.5,
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
                    "marker": {"circle": "o", "square": "s", "triangle": "^"}[theme.REGIME_MARK[regime]],
                    "s": 34,
                    "facecolors": hv.dim("face"),
                    "edgecolors": color,
                    "linewidth": 1.2,
                },
                hooks=[by_column(fill_alpha="fill"), *hooks.get(name, [])],
            ),
        ]
    for name in REGIMES:
        if backend == "bokeh" or name in visible:
            layers += _names(battery, now, name, backend, hooks.get(f"{name}_names", []), name in visible)
    return frame(
        hv.Overlay(layers),
        backend,
        title="Fingerprint box",
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


def _names(
    battery: xr.Dataset, now: xr.Dataset, name: str, backend: str, hooks: Sequence[Callable], visible: bool
) -> list[hv.Element]:
    """Draw the names of one regime's errors beside their rings."""
    of = battery["regime"].values == REGIMES[name]
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
    for key, (_, label) in METRICS.items():
        if backend == "matplotlib" and key != metric:
            continue
        pixels = now[f"heat_{key}"].values.reshape(len(taus), len(gates))
        image = hv.Image((gates, taus, pixels), ["gate", "tau"], label)
        layers.append(
            style(
                image,
                backend,
                bokeh={"cmap": theme.ramp(), "clim": (0.5, 1.0), "visible": key == metric},
                matplotlib={"cmap": _ramp(), "clim": (0.5, 1.0), "hooks": [_color_bar]}
                if backend == "matplotlib"
                else {},
                hooks=hooks.get(f"heat_{key}"),
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
        title=f"{METRICS[metric][1]} over oracle gate and tau",
        xlabel="oracle gate",
        ylabel="tau",
        xlim=(float(gates[0]), float(gates[-1])),
        ylim=(float(taus[0]), float(taus[-1])),
        height=200,
        xformatter="%.2f",
        yformatter="%.1f",
        hooks=hooks.get("figure"),
    )


def _fill(color: str) -> Callable:
    """Return a hook: matplotlib's bands take the default cycle inside an overlay, whatever is asked."""

    def hook(plot: Any, element: Any) -> None:
        plot.handles["artist"].set(facecolor=color, edgecolor="none")

    return hook


def _color_bar(plot: Any, element: Any) -> None:
    bar = plot.handles["fig"].colorbar(plot.handles["artist"], ax=plot.handles["axis"], pad=0.03)
    bar.outline.set_visible(False)


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
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":"},
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
        title="Sensitivity and specificity",
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


def dumbbells(
    pairs: pd.DataFrame,
    now: xr.Dataset,
    *,
    tau: float,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw best-unsup of each matched pair, leaked and excluded, and tau.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The pairs in order, with their short ``name``.
    now : xarray.Dataset
        `drawn` at one stop.
    tau : float
        Where the slider stands.
    hooks, backend
        As for `scatter`.
    """
    hooks = hooks or {}
    place = np.arange(len(pairs), dtype=np.float64)
    leaked, excluded = now["pair_leaked"].values, now["pair_excluded"].values
    layers: list[hv.Element] = [
        style(
            hv.Segments({"x0": place, "y0": leaked, "x1": place, "y1": excluded}, ["x0", "y0", "x1", "y1"]),
            backend,
            bokeh={"color": INK, "line_width": 1.4, "alpha": 0.55},
            matplotlib={"color": INK, "linewidth": 1, "alpha": 0.55},
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
    for name, regime, value, fill in (
        ("excluded", "clean-excl", excluded, now["pair_excluded_fill"].values),
        ("leaked", "leak", leaked, now["pair_fill"].values),
    ):
        color = theme.REGIME_COLOR[regime]
        data = pd.DataFrame({"place": place, "best_unsup": value, "fill": fill.astype(float)})
        data["pair"] = pairs["name"].to_numpy()
        data["difference"] = pairs["difference"].to_numpy()
        if backend == "matplotlib":
            data["face"] = np.where(data["fill"] > 0, color, theme.LIGHT["bg"])
        layers.append(
            style(
                hv.Points(data, ["place", "best_unsup"], label=theme.REGIME_LABEL[regime]),
                backend,
                bokeh={
                    "marker": theme.REGIME_MARK[regime],
                    "size": 10,
                    "color": color,
                    "line_width": 1.7,
                    "tools": ["hover"],
                    "hover_tooltips": [
                        ("", "@pair"),
                        ("best-unsup", "@best_unsup{0.000}"),
                        ("difference", "@difference{0.000}"),
                    ],
                },
                matplotlib={
                    "marker": {"circle": "o", "square": "s"}[theme.REGIME_MARK[regime]],
                    "s": 30,
                    "facecolors": hv.dim("face"),
                    "edgecolors": color,
                    "linewidth": 1.2,
                },
                hooks=[by_column(fill_alpha="fill"), *hooks.get(name, [])],
            )
        )
    low = np.floor(float(np.nanmin(leaked)) * 10) / 10 if np.isfinite(leaked).any() else 0.0
    return frame(
        hv.Overlay(layers),
        backend,
        title="The same class, inside and outside the fit set",
        left=84,
        xlabel="",
        ylabel="best-unsup, AUROC",
        xlim=(-0.6, len(pairs) - 0.4),
        ylim=(low, 1.04),
        height=300,
        grid="y",
        yformatter="%.1f",
        xticks=list(zip(place.tolist(), pairs["name"], strict=True)),
        xrotation=40,
        hooks=hooks.get("figure"),
    )
