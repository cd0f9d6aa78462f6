"""The figures of the audit page: answers in, HoloViews elements out.

`drawn` turns settings in the wild, the head-to-head and the signature's readings into rows, at every stop
of the sliders and menus at once; each figure takes that table at one stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dashboards import theme
from dashboards.figures.style import INK, by_column, frame, offset, on_paper, style

FIGURES = {
    "published": "Published settings in the wild",
    "own": "Other sources, computed here",
    "index": "What the index sees",
    "pairs": "The same class, inside and outside the fit set",
    "spaces": "Signature against embedding",
}
# A reading of the signature: column, name on the screen.
READINGS = {
    "prs_maha": "PRS-Maha",
    "ahss": "AHSS",
    "knn": "kNN on the signature",
    "isolation_forest": "Isolation Forest on the signature",
}
CONVENTION_WORDS = {
    "kept": "the centroid of an excluded class stays",
    "dropped": "the centroid of an excluded class is dropped",
}
CONVENTIONS = tuple(CONVENTION_WORDS)
PUBLISHED = {
    "published_novel": "clean-novel",
    "published_retrained": "clean-retrained",
    "published_leak": "leak",
}
REGIMES = {"leak": "leak", "excluded": "clean-excl", "retrained": "clean-retrained", "novel": "clean-novel"}
SPACE = {"space_leak": "leak", "space_excluded": "clean-excl", "space_novel": "clean-novel"}
RANGE = {"x": (0.87, 1.004), "y": (0.45, 1.03)}
COLUMNS = {"leak": 0, "clean-excl": 1, "clean-retrained": 2}  # where a regime stands in the pairs
SHIFT = 3.6  # how far right the second block of the pairs stands

_LAYERS = {"published": tuple(PUBLISHED), "own": ("own",), "spaces": tuple(SPACE)}

Array = NDArray[np.float64]


def counted(wild: pd.DataFrame) -> NDArray[np.bool_]:
    """Tell which published rows are one clean setting with both numbers, in embedding space."""
    exact = (wild["unsup_low"] == wild["unsup_high"]) & (wild["n"] == 1)
    return (exact & (wild["space"] == "embedding") & (wild["regime"] != "leak")).to_numpy()


def points_of(wild: pd.DataFrame, layer: str) -> pd.DataFrame:
    """Return the published settings that one layer of points draws."""
    of = wild[(wild["regime"] == PUBLISHED[layer]) & (wild["unsup_low"] == wild["unsup_high"])]
    return of[of["n"] == 1]


def ranges_of(wild: pd.DataFrame) -> pd.DataFrame:
    """Return the published settings of which a range alone is public."""
    return wild[wild["unsup_low"] != wild["unsup_high"]]


def drawn(
    wild: pd.DataFrame,
    own: xr.Dataset,
    readings: pd.DataFrame,
    index: pd.DataFrame,
    *,
    gates: Array,
    taus: Array,
) -> xr.Dataset:
    """Return what the figures draw, for every stop.

    Parameters
    ----------
    wild : pandas.DataFrame
        `leakviz.comparisons.published_wild`, with a name for the screen as ``title``.
    own : xarray.Dataset
        A battery of clean-novel settings, with seeds.
    readings : pandas.DataFrame
        `leakviz.comparisons.signature_settings`.
    index : pandas.DataFrame
        Settings with regime, pair, index and best_unsup.
    gates, taus : float arrays
        The stops.

    Returns
    -------
    xarray.Dataset
        Row dimensions: one per layer of points, ``one``, ``line`` (a pair's partner).
    """
    table: dict[str, Any] = {
        "box_left": (("gate", "one"), gates[:, np.newaxis]),
        "box_top": (("tau", "one"), taus[:, np.newaxis]),
    }

    def decide(layer: str, oracle: Array, unsup: Array, *dims: str) -> None:
        table[f"{layer}_passes"] = (("gate", *dims, layer), oracle >= gates.reshape(-1, *[1] * oracle.ndim))
        table[f"{layer}_collapsed"] = (("tau", *dims, layer), unsup < taus.reshape(-1, *[1] * unsup.ndim))

    for layer in PUBLISHED:
        of = points_of(wild, layer)
        decide(layer, of["oracle_low"].to_numpy(), of["unsup_low"].to_numpy())
    oracle, unsup = (own[v].mean("seed").round(12).values for v in ("oracle_lda", "best_unsup"))
    decide("own", oracle, unsup)
    for layer, regime in SPACE.items():
        stacks = {
            name: np.stack([_of(readings, regime, c)[name].to_numpy() for c in CONVENTIONS])
            for name in ("oracle_lda", "best_unsup", "embedding_maha", *READINGS)
        }
        if regime != "clean-excl":  # of no class that was left out: both conventions are one
            stacks = {name: values[0] for name, values in stacks.items()}
        dims = ("convention",) if regime == "clean-excl" else ()
        decide(layer, stacks["oracle_lda"], stacks["best_unsup"], *dims)
        table[f"{layer}_x"] = ((*dims, layer), stacks["embedding_maha"])
        read = np.stack([stacks[name] for name in READINGS])
        table[f"{layer}_y"] = (("reading", *dims, layer), read)
    return xr.Dataset(
        table,
        {
            "gate": gates,
            "tau": taus,
            "reading": list(READINGS),
            "convention": list(CONVENTIONS),
        },
    )


def _of(readings: pd.DataFrame, regime: str, convention: str) -> pd.DataFrame:
    """Return the signature's settings of one regime under one convention, in one order for both."""
    own = convention if regime == "clean-excl" else "all"
    of = readings[(readings["regime"] == regime) & (readings["convention"] == own)]
    return of.sort_values(["backbone", "ood"], kind="stable")


def _box(now: xr.Dataset, backend: str, hooks: dict[str, list[Callable]], name: str) -> list[hv.Element]:
    leak = theme.REGIME_COLOR["leak"]
    left, top = now["box_left"].item(), now["box_top"].item()
    return [
        style(
            hv.Rectangles([(left, -1.0, 2.0, top)]),
            backend,
            bokeh={"fill_color": leak, "fill_alpha": 0.07, "line_color": leak, "line_width": 1.8},
            matplotlib={"facecolor": leak + "12", "edgecolor": leak, "linewidth": 1.3},
            hooks=hooks.get(f"{name}_box"),
        ),
        style(
            hv.Labels({"x": [1.0], "y": [RANGE["y"][0]], "text": ["fires"]}, ["x", "y"], "text"),
            backend,
            bokeh={
                "text_color": theme.LIGHT["alarm"],
                "text_font_size": "12px",
                "text_font": theme.FONT_VALUE,
                "text_align": "right",
                "text_baseline": "bottom",
            },
            matplotlib={
                "color": theme.LIGHT["alarm"],
                "size": 8,
                "horizontalalignment": "right",
                "verticalalignment": "bottom",
            },
            hooks=[offset(0, -6)],
        ),
    ]


def _points(
    data: pd.DataFrame,
    regime: str,
    fill: Array,
    backend: str,
    hooks: Sequence[Callable],
    *,
    label: str,
    tips: Sequence[tuple[str, str]],
    size: float = 10.5,
) -> hv.Element:
    """Draw settings as marks of their regime, filled where they fire."""
    color, mark = theme.REGIME_COLOR[regime], theme.REGIME_MARK[regime]
    data = data.assign(fill=fill.astype(float))
    if backend == "matplotlib":
        data["face"] = np.where(data["fill"] > 0, color, theme.LIGHT["bg"])
    return style(
        hv.Points(data, ["x", "y"], label=label),
        backend,
        bokeh={
            "marker": mark,
            "size": size * (1.25 if mark == "diamond" else 1),
            "color": color,
            "line_width": 1.7,
            "tools": ["tap", "hover"],
            "hover_tooltips": list(tips),
        },
        matplotlib={
            "marker": theme.PAPER_MARK[mark],
            "s": 3 * size,
            "facecolors": hv.dim("face"),
            "edgecolors": color,
            "linewidth": 1.1,
        },
        hooks=[by_column(fill_alpha="fill"), *hooks],
    )


def _fill(now: xr.Dataset, layer: str) -> Array:
    return (now[f"{layer}_passes"] & now[f"{layer}_collapsed"]).values.astype(float)


# Which published points are named in the figure: setting, text, side, shift in px (down is positive).
_NAMED = (
    ("N_c100_rn_cross", "CIFAR-100 to CIFAR-10", "right", -28, 0),
    ("wild_mac_embedding", "mac.hardware", "center", 0, 17),
    ("wild_memo", "Memo, leaked", "right", 6, 17),
    ("wild_c10_resnet50_stl10", "to STL-10", "right", -11, 0),
)


def published(
    now: xr.Dataset,
    wild: pd.DataFrame,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the published settings in the wild in the fingerprint box.

    Parameters
    ----------
    now : xarray.Dataset
        `drawn` at one stop.
    wild : pandas.DataFrame
        As for `drawn`.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    layers = _box(now, backend, hooks, "published")
    spans = ranges_of(wild)
    ends = {
        "x0": spans["oracle_low"],
        "y0": spans["unsup_low"],
        "x1": spans["oracle_high"],
        "y1": spans["unsup_high"],
    }
    for regime in dict.fromkeys(spans["regime"]):
        of = (spans["regime"] == regime).to_numpy()
        layers.append(
            style(
                hv.Segments({k: v.to_numpy()[of] for k, v in ends.items()}, list(ends)),
                backend,
                bokeh={
                    "color": theme.REGIME_COLOR[regime],
                    "line_width": 5,
                    "alpha": 0.35,
                    "line_cap": "round",
                },
                matplotlib={"color": theme.REGIME_COLOR[regime], "linewidth": 3.5, "alpha": 0.35},
            )
        )
    for layer, regime in PUBLISHED.items():
        of = points_of(wild, layer)
        data = pd.DataFrame({"x": of["oracle_low"], "y": of["unsup_low"], "title": of["title"]})
        layers.append(
            _points(
                data,
                regime,
                _fill(now, layer),
                backend,
                hooks.get(layer, []),
                label=theme.REGIME_LABEL[regime],
                tips=[("", "@title"), ("oracle LDA", "@x{0.000}"), ("best-unsup", "@y{0.000}")],
            )
        )
    where = wild.set_index("setting")
    for setting, text, align, dx, dy in _NAMED:
        row = where.loc[setting]
        layers.append(
            style(
                hv.Labels(
                    {"x": [row["oracle_low"]], "y": [row["unsup_low"]], "text": [text]}, ["x", "y"], "text"
                ),
                backend,
                bokeh={
                    "text_color": INK,
                    "text_font": theme.FONT_VALUE,
                    "text_font_size": "12px",
                    "text_align": align,
                    "text_baseline": "middle",
                },
                matplotlib={
                    "color": INK,
                    "size": 7.5,
                    "horizontalalignment": align,
                    "verticalalignment": "center",
                    "hooks": [on_paper(0.75 * dx, 0.75 * dy)],
                },
                hooks=[offset(dx, dy)],
            )
        )
    title = f"{FIGURES['published']}; bars: a range alone is public"
    return _in_the_box(layers, backend, title, hooks.get("published"))


def own(
    now: xr.Dataset,
    battery: xr.Dataset,
    titles: Sequence[str],
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the clean settings of other sources that were computed here in the fingerprint box.

    Parameters
    ----------
    now, hooks, backend
        As for `published`.
    battery : xarray.Dataset
        As for `drawn`.
    titles : sequence of str
        Of its settings.
    """
    hooks = hooks or {}
    layers = _box(now, backend, hooks, "own")
    x, y = (battery[v].mean("seed").round(12).values for v in ("oracle_lda", "best_unsup"))
    color = theme.REGIME_COLOR["clean-novel"]
    for a, b, c, d in (
        (x, battery["best_unsup"].min("seed").values, x, battery["best_unsup"].max("seed").values),
        (battery["oracle_lda"].min("seed").values, y, battery["oracle_lda"].max("seed").values, y),
    ):
        layers.append(
            style(
                hv.Segments({"x0": a, "y0": b, "x1": c, "y1": d}, ["x0", "y0", "x1", "y1"]),
                backend,
                bokeh={"color": color, "line_width": 1, "alpha": 0.5},
                matplotlib={"color": color, "linewidth": 0.7, "alpha": 0.5},
            )
        )
    layers.append(
        _points(
            pd.DataFrame({"x": x, "y": y, "title": list(titles)}),
            "clean-novel",
            _fill(now, "own"),
            backend,
            hooks.get("own", []),
            label=theme.REGIME_LABEL["clean-novel"],
            tips=[("", "@title"), ("oracle LDA", "@x{0.000}"), ("best-unsup", "@y{0.000}")],
        )
    )
    return _in_the_box(layers, backend, FIGURES["own"], hooks.get("own_figure"))


def _in_the_box(
    layers: list[hv.Element], backend: str, title: str, hooks: Sequence[Callable] | None
) -> hv.Overlay:
    return frame(
        hv.Overlay(layers),
        backend,
        title=title,
        xlabel="oracle LDA, AUROC with labels",
        ylabel="best-unsup, AUROC without labels",
        xlim=RANGE["x"],
        ylim=RANGE["y"],
        height=360,
        grid="y",
        xformatter="%.2f",
        yformatter="%.1f",
        hooks=hooks,
    )


def strip_of(index: pd.DataFrame, regime: str) -> pd.DataFrame:
    """Return the settings of one regime in the order in which the strip draws them."""
    return index[index["regime"] == regime].sort_values("index", kind="stable")


def index_strips(
    index: pd.DataFrame, *, hooks: dict[str, list[Callable]] | None = None, backend: str = "bokeh"
) -> hv.Overlay:
    """Draw the neighbourhood index of every computed setting, a row per regime, the means as bars.

    Parameters
    ----------
    index : pandas.DataFrame
        As for `drawn`, with a ``name``.
    hooks, backend
        As for `published`.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = []
    rows = [regime for regime in REGIMES.values() if (index["regime"] == regime).any()]
    place = {regime: float(len(rows) - 1 - i) for i, regime in enumerate(rows)}
    for regime in rows:
        of = strip_of(index, regime)
        # Spread in a fixed order, so that points of like value do not hide each other.
        spread = ((np.arange(len(of)) * 0.618034) % 1 - 0.5) * 0.62
        data = pd.DataFrame({"x": of["index"], "y": place[regime] + spread, "title": of["name"]})
        color, mark = theme.REGIME_COLOR[regime], theme.REGIME_MARK[regime]
        mean = float(of["index"].mean())
        layers += [
            style(
                hv.Points(data, ["x", "y"], label=theme.REGIME_LABEL[regime]),
                backend,
                bokeh={
                    "marker": mark,
                    "size": 6,
                    "color": color,
                    "fill_alpha": 0.25,
                    "line_width": 1.1,
                    "tools": ["tap", "hover"],
                    "hover_tooltips": [("", "@title"), ("index", "@x{0.000}")],
                },
                matplotlib={
                    "marker": theme.PAPER_MARK[mark],
                    "s": 12,
                    "facecolors": color + "40",
                    "edgecolors": color,
                    "linewidth": 0.7,
                },
                hooks=hooks.get(f"index_{regime}"),
            ),
            style(
                hv.Segments(
                    [(mean, place[regime] - 0.42, mean, place[regime] + 0.42)], ["x0", "y0", "x1", "y1"]
                ),
                backend,
                bokeh={"color": INK, "line_width": 2.2},
                matplotlib={"color": INK, "linewidth": 1.6},
            ),
        ]
    short = {
        "leak": "leak",
        "clean-excl": "excluded",
        "clean-retrained": "retrained",
        "clean-novel": "other source",
    }
    return frame(
        hv.Overlay(layers),
        backend,
        title="Neighbourhood index by regime; bars: means",
        xlabel="share of ID rows among the 50 nearest",
        ylabel="",
        xlim=(-0.015, float(np.ceil(index["index"].max() * 10) / 10)),
        ylim=(-0.6, len(rows) - 0.4),
        height=230,
        grid="x",
        left=84,
        xformatter="%.1f",
        yticks=[(place[regime], short[regime]) for regime in rows],
        hooks=hooks.get("index"),
    )


def paired(index: pd.DataFrame) -> pd.DataFrame:
    """Return the settings of matched pairs, with the column in which each stands."""
    of = index[(index["pair"] != "") & index["regime"].isin(list(COLUMNS))]
    return of.assign(column=of["regime"].map(COLUMNS).astype(float))


def pairs(
    now: xr.Dataset,
    index: pd.DataFrame,
    *,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw what the index and best-unsup say of every class leaked, excluded and retrained.

    Parameters
    ----------
    now, hooks, backend
        As for `published`.
    index : pandas.DataFrame
        As for `drawn`, with a ``name``.
    """
    hooks = hooks or {}
    members = paired(index)
    layers: list[hv.Element] = []
    for value, shift in (("index", 0.0), ("best_unsup", SHIFT)):
        wide = members.pivot(index="pair", columns="regime", values=value)
        for first, second, alpha, width in (
            ("leak", "clean-excl", 0.3, 1.0),
            ("clean-excl", "clean-retrained", 0.75, 1.4),
        ):
            if second not in wide:
                continue
            both = wide[[first, second]].dropna()
            segments = {
                "x0": np.full(len(both), shift + COLUMNS[first]),
                "y0": both[first].to_numpy(),
                "x1": np.full(len(both), shift + COLUMNS[second]),
                "y1": both[second].to_numpy(),
            }
            layers.append(
                style(
                    hv.Segments(segments, list(segments)),
                    backend,
                    bokeh={"color": theme.QUIET_COLOR, "line_width": width, "alpha": alpha},
                    matplotlib={"color": theme.QUIET_COLOR, "linewidth": 0.7 * width, "alpha": alpha},
                )
            )
        for regime in COLUMNS:
            of = members[members["regime"] == regime]
            color, mark = theme.REGIME_COLOR[regime], theme.REGIME_MARK[regime]
            data = pd.DataFrame({"x": shift + of["column"], "y": of[value], "title": of["name"]})
            layers.append(
                style(
                    hv.Points(data, ["x", "y"], label=theme.REGIME_LABEL[regime] if not shift else ""),
                    backend,
                    bokeh={
                        "marker": mark,
                        "size": 6.5,
                        "color": color,
                        "fill_alpha": 0.25,
                        "line_width": 1.2,
                        "tools": ["tap", "hover"],
                        "hover_tooltips": [("", "@title"), (value.replace("_", "-"), "@y{0.000}")],
                    },
                    matplotlib={
                        "marker": theme.PAPER_MARK[mark],
                        "s": 14,
                        "facecolors": color + "40",
                        "edgecolors": color,
                        "linewidth": 0.8,
                    },
                    hooks=hooks.get(f"pairs_{value}_{regime}"),
                )
            )
    tau = now["box_top"].item()
    layers.append(
        style(
            hv.Segments([(SHIFT - 0.4, tau, SHIFT + 2.4, tau)], ["x0", "y0", "x1", "y1"]),
            backend,
            bokeh={"color": theme.REGIME_COLOR["leak"], "line_width": 1.6},
            matplotlib={"color": theme.REGIME_COLOR["leak"], "linewidth": 1.2},
            hooks=hooks.get("pairs_tau"),
        )
    )
    layers.append(
        style(
            hv.Labels(
                {"x": [1.0, SHIFT + 1.0], "y": [1.1, 1.1], "text": ["neighbourhood index", "best-unsup"]},
                ["x", "y"],
                "text",
            ),
            backend,
            bokeh={
                "text_color": INK,
                "text_font": theme.FONT_VALUE,
                "text_font_size": "12.5px",
                "text_align": "center",
                "text_baseline": "middle",
            },
            matplotlib={"color": INK, "size": 8.5},
        )
    )
    words = {"leak": "in", "clean-excl": "out", "clean-retrained": "retrained"}
    ticks = [(shift + COLUMNS[r], text) for shift in (0.0, SHIFT) for r, text in words.items()]
    return frame(
        hv.Overlay(layers),
        backend,
        title="Matched pairs; line: tau",
        xlabel="",
        ylabel="value",
        xlim=(-0.5, SHIFT + 2.5),
        ylim=(-0.03, 1.17),
        height=430,
        grid="y",
        left=46,
        xticks=ticks,
        yformatter="%.1f",
        hooks=hooks.get("pairs"),
    )


def spaces(
    now: xr.Dataset,
    readings: pd.DataFrame,
    *,
    convention: str,
    reading: str,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw a reading of the signature against Mahalanobis on the embedding, for the same settings.

    Parameters
    ----------
    now, hooks, backend
        As for `published`.
    readings : pandas.DataFrame
        As for `drawn`, with a ``name``.
    convention : {"kept", "dropped"}
    reading : str
        One of `READINGS`.
    """
    hooks = hooks or {}
    layers: list[hv.Element] = [
        style(
            hv.Segments([(0.0, 0.0, 1.0, 1.0)], ["x0", "y0", "x1", "y1"]),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted"},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":"},
        )
    ]
    for layer, regime in SPACE.items():
        of = _of(readings, regime, convention)
        data = pd.DataFrame(
            {"x": now[f"{layer}_x"].values, "y": now[f"{layer}_y"].values, "title": of["name"].to_numpy()}
        )
        layers.append(
            _points(
                data,
                regime,
                _fill(now, layer),
                backend,
                hooks.get(layer, []),
                label=theme.REGIME_LABEL[regime],
                tips=[("", "@title"), ("on the embedding", "@x{0.000}"), ("on the signature", "@y{0.000}")],
                size=8.5,
            )
        )
    name = READINGS[reading] if backend == "matplotlib" else "signature"
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["spaces"],
        xlabel="Mahalanobis on the embedding, AUROC",
        ylabel=f"{name}, AUROC",
        xlim=(0.0, 1.03),
        ylim=(0.0, 1.03),
        height=400,
        grid="y",
        xformatter="%.1f",
        yformatter="%.1f",
        hooks=hooks.get("spaces"),
    )
