"""The figures of the whitening page: answers in, HoloViews elements out.

`drawn` turns what the core says of one fit set and one OOD set into rows of fixed lengths, at every
stop of alpha at once, so that a figure that was drawn once takes any other: the browser copies rows
of the same table into the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dashboards.figures.style import INK, above, apart, frame, style
from leakviz.detectors import NULL
from leakviz.whitening import ALPHAS

STOPS = ALPHAS.size + 1  # with the stop of Ledoit and Wolf's alpha
POINTS = 256  # of a spectrum; more directions than that are drawn in groups of neighbours
BINS = 90
SMALLEST_SHARE = 1e-6  # of the axis of budgets
SMALLEST_EIGENVALUE = 1e-8
FIGURES = {
    "auroc": "AUROC against alpha",
    "histograms": "Distances at this alpha",
    "spectrum": "Eigenvalues",
    "budget": "Budget of each direction",
    "cumulated": "Budget, cumulated",
}

_TICKS = {0: "0", 1e-3: "0.001", 0.01: "0.01", 0.1: "0.1", 0.3: "0.3", 1: "1"}
_DISTANCES = [
    (digit * 10.0**power, f"{digit * 10 ** (power % 3)}{'kMG'[power // 3 - 1] if power > 2 else ''}")
    for power in range(12)
    for digit in (1, 3)
]
_FULL_TENTH = 0.07  # opacity of what shades a tenth of the directions

Array = NDArray[np.float64]


def place(alpha: Any) -> Array:
    """Return where an alpha stands on the axis: 0 at 0, then a scale that is logarithmic below 0.1.

    Examples
    --------
    >>> place([0, 1e-5, 0.1, 1]).tolist()
    [0.0, 1.0, 24.0, 40.0]
    """
    values = np.asarray(alpha, dtype=np.float64)
    stops = np.arange(ALPHAS.size, dtype=np.float64)
    small, logs = ALPHAS[1], np.log(ALPHAS[1:])
    among = np.interp(np.log(np.maximum(values, small)), logs, stops[1:])
    return np.where(values < small, values / small, among)


def drawn(
    spectrum: xr.Dataset, sweep: xr.Dataset, counts: xr.Dataset, *, marks: Mapping[str, int]
) -> xr.Dataset:
    """Return what the figures draw, for every stop of alpha.

    Parameters
    ----------
    spectrum, sweep, counts : xarray.Dataset
        `leakviz.whitening_spectrum`, `leakviz.sweep_shrinkage` and
        `leakviz.whitening.score_histograms` (with `BINS` bins) at the same alphas,
        at most `STOPS`.
    marks : mapping
        ``ledoit_wolf`` and ``best``: which stops are marked on the curve.

    Returns
    -------
    xarray.Dataset
        Coordinate ``alpha``: the places of the stops. Row dimensions: ``direction``,
        ``stop`` (the curve's alphas), ``edge`` (twice that: a band's outline),
        ``bin``, ``one``. What is not there is nan at the end of a row.
    """
    alpha = sweep["alpha"].values
    at = place(alpha)
    table: dict[str, Any] = {}
    _draw_directions(table, spectrum)
    _draw_curve(table, sweep, at, marks)
    _draw_counts(table, counts)
    return xr.Dataset(table, {"alpha": at})


def _draw_directions(table: dict[str, Any], spectrum: xr.Dataset) -> None:
    size = spectrum.sizes["direction"]
    groups = np.array_split(np.arange(size), min(size, POINTS))
    first, last = (np.array([g[end] for g in groups]) for end in (0, -1))

    def row(values: Array) -> Array:
        out = np.full((*values.shape[:-1], POINTS), np.nan, dtype=np.float32)
        out[..., : values.shape[-1]] = values
        return out

    def mean(values: Array) -> Array:
        return np.add.reduceat(values, first, axis=-1) / (last - first + 1)

    lam = spectrum["eigenvalue"].values
    alpha = spectrum["alpha"].values[:, np.newaxis]
    shrunk = (1 - alpha) * lam + alpha * lam.mean()
    # At alpha 0 a null direction is left out, and without an inverse there is nothing to draw.
    gone = (alpha == 0) & (lam < NULL * lam[0]) | ~np.isfinite(spectrum["budget"].values)
    shrunk = np.where(gone, np.nan, shrunk)
    budget = spectrum["budget"].values
    table["middle"] = ("direction", row((first + last) / 2 + 1.0))
    table["end"] = ("direction", row(last + 1.0))
    table["eigenvalue"] = ("direction", row(np.maximum(lam[last], SMALLEST_EIGENVALUE / 10)))
    table["shrunk"] = (("alpha", "direction"), row(shrunk[:, last]))
    table["mass"] = ("direction", row(mean(spectrum["signal_mass"].values)))
    table["budget"] = (("alpha", "direction"), row(mean(budget)))
    table["mass_sum"] = ("direction", row(spectrum["cumulated_signal_mass"].values[last]))
    table["budget_sum"] = (("alpha", "direction"), row(spectrum["cumulated_budget"].values[:, last]))
    tenth = spectrum.attrs["n_tenth"]
    for name, (left, right) in {
        "top": (0.5, tenth + 0.5),
        "bottom": (size - tenth + 0.5, size + 0.5),
    }.items():
        table[f"{name}_left"], table[f"{name}_right"] = ("one", [left]), ("one", [right])
    table["directions_start"], table["directions_end"] = ((), 0.5), ((), size + 0.5)
    smallest = max(float(lam[lam > 0].min()), SMALLEST_EIGENVALUE)
    table["eigen_start"] = ((), 10.0 ** np.floor(np.log10(smallest)))
    table["eigen_end"] = ((), 10.0 ** np.ceil(np.log10(float(lam[0]) * 1.05)))


def _draw_curve(table: dict[str, Any], sweep: xr.Dataset, at: Array, marks: Mapping[str, int]) -> None:
    fill = np.minimum(np.arange(STOPS), at.size - 1)  # the last stop fills the row up
    area, low, high = (sweep[name].values[fill] for name in ("auroc", "low", "high"))
    some = np.isfinite(area)
    table["curve_x"], table["curve_y"] = ("stop", at[fill]), ("stop", area)
    # An outline must not have holes: a stop without an answer stands on its neighbour.
    near = np.flatnonzero(some)[np.argmin(np.abs(np.arange(STOPS)[:, None] - np.flatnonzero(some)), axis=1)]
    edge_x, edge_low, edge_high = at[fill][near], low[near], high[near]
    table["band_x"] = ("edge", np.concatenate([edge_x, edge_x[::-1]]))
    table["band_y"] = ("edge", np.concatenate([edge_low, edge_high[::-1]]))
    table["now_x"] = (("alpha", "one"), at[:, np.newaxis])
    table["now_y"] = (("alpha", "one"), sweep["auroc"].values[:, np.newaxis])
    table["now_line"] = ("alpha", at)
    for name, stop in marks.items():
        table[f"{name}_x"], table[f"{name}_y"] = ("one", at[[stop]]), ("one", sweep["auroc"].values[[stop]])
    top = min(np.ceil(float(np.nanmax(high)) * 10) / 10, 1.0)
    bottom = max(min(np.floor(float(np.nanmin(low)) * 10) / 10, top - 0.3), 0.0)
    room = 0.035 * (top - bottom)  # for marks at the edge
    table["area_start"], table["area_end"] = ((), bottom - room), ((), top + room)


def _draw_counts(table: dict[str, Any], counts: xr.Dataset) -> None:
    table["bin_left"], table["bin_right"] = ("bin", counts["left"].values), ("bin", counts["right"].values)
    tops = []
    for kind in ("id", "ood"):
        share = counts[f"{kind}_count"].values / counts.attrs[f"n_{kind}"]
        table[f"{kind}_share"] = (("alpha", "bin"), share.astype(np.float32))
        tops.append(share.max())
    table["share_end"] = ((), 1.06 * float(max(tops)))
    low, high = float(counts["left"][0]), float(counts["right"][-1])
    decade = max(10 * low / high, 1.0) ** 0.5  # at least one is shown: a narrower axis may have no mark
    table["distance_start"], table["distance_end"] = ((), low / decade), ((), high * decade)


def _band_fill(color: str) -> Callable:
    """Return a hook: matplotlib's bands take the default cycle inside an overlay, whatever is asked."""

    def hook(plot: Any, element: Any) -> None:
        plot.handles["artist"].set(facecolor=color, edgecolor="none")

    return hook


def _vertical(
    x: float, backend: str, *, color: str, dash: str, width: float, hooks: Sequence[Callable]
) -> Any:
    return style(
        hv.VLine(x),
        backend,
        bokeh={"color": color, "line_width": width, "line_dash": dash},
        matplotlib={
            "color": color,
            "linewidth": 0.7 * width,
            "linestyle": {"solid": "-", "dotted": ":"}[dash],
        },
        hooks=hooks,
    )


def auroc_curve(
    now: xr.Dataset,
    *,
    color: str,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the AUROC against alpha with its interval, and the present, Ledoit and Wolf's and the best alpha.

    Parameters
    ----------
    now : xarray.Dataset
        The page's table at one stop.
    color : str
        Of the OOD set's regime.
    hooks : dict of str to list of callables
        HoloViews hooks per layer, by which the browser finds it.
    backend : {"bokeh", "matplotlib"}

    Returns
    -------
    holoviews.Overlay
    """
    hooks = hooks or {}
    band_x, band_y = now["band_x"].values, now["band_y"].values
    dims = ["place", "auroc"]

    def mark(name: str, label: str, marker: str, *, size: float, filled: bool) -> hv.Element:
        return style(
            hv.Points(
                {"place": now[f"{name}_x"].values, "auroc": now[f"{name}_y"].values}, dims, label=label
            ),
            backend,
            bokeh={
                "marker": marker,
                "size": size,
                "color": color,
                "fill_alpha": float(filled),
                "line_width": 1.8,
            },
            matplotlib={
                "marker": {"diamond": "D", "circle": "o", "inverted_triangle": "v"}[marker],
                "s": size**2 / 2.4,
                "facecolors": color if filled else "none",
                "edgecolors": color,
                "linewidth": 1.2,
            },
            hooks=hooks.get(name),
        )

    layers = [
        style(
            hv.HLine(0.5),
            backend,
            bokeh={"color": INK, "line_width": 1, "line_dash": "dotted", "line_alpha": 0.7},
            matplotlib={"color": INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.7},
        ),
        style(
            hv.Area((band_x[:STOPS], band_y[STOPS:][::-1], band_y[:STOPS]), "place", ["high", "low"]),
            backend,
            bokeh={"fill_color": color, "fill_alpha": 0.16, "line_alpha": 0},
            matplotlib={"alpha": 0.16, "hooks": [_band_fill(color)]},
            hooks=hooks.get("band"),
        ),
        style(
            hv.Curve((now["curve_x"].values, now["curve_y"].values), "place", "auroc"),
            backend,
            bokeh={"color": color, "line_width": 2},
            matplotlib={"color": color, "linewidth": 1.4},
            hooks=hooks.get("curve"),
        ),
        _vertical(
            float(now["now_line"]),
            backend,
            color=INK,
            dash="solid",
            width=1.2,
            hooks=[above, *hooks.get("now_line", [])],
        ),
        mark("ledoit_wolf", "Ledoit-Wolf", "diamond", size=20, filled=False),
        mark("best", "best, not available without labels", "inverted_triangle", size=15, filled=False),
        mark("now", "this alpha", "circle", size=7, filled=True),
    ]
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["auroc"],
        xlabel="alpha: 0 full whitening, 1 Euclidean",
        ylabel="AUROC",
        xlim=(-1.4, ALPHAS.size - 0.3),
        ylim=(float(now["area_start"]), float(now["area_end"])),
        height=250,
        grid="y",
        left=46,
        xticks=[(float(place(alpha)), text) for alpha, text in _TICKS.items()],
        hooks=[apart, *hooks.get("figure", [])],
    )


def histograms(
    now: xr.Dataset,
    *,
    color: str,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw how far ID and OOD rows lie from the fit set, as the detector measures it at one alpha.

    Parameters
    ----------
    now, color, hooks, backend
        As for `auroc_curve`.
    """
    hooks = hooks or {}
    layers = []
    for kind, ink, alpha in (("id", INK, 0.38), ("ood", color, 0.6)):
        share = now[f"{kind}_share"].values.astype(np.float64)
        bars = {
            "left": now["bin_left"].values,
            "bottom": np.zeros(share.size),
            "right": now["bin_right"].values,
            "top": share,
        }
        layers.append(
            style(
                hv.Rectangles(bars, list(bars), label={"id": "ID test", "ood": "OOD"}[kind]),
                backend,
                bokeh={"fill_color": ink, "fill_alpha": alpha, "line_alpha": 0},
                matplotlib={"facecolor": ink, "alpha": alpha, "edgecolor": "none"},
                hooks=hooks.get(kind),
            )
        )
    return frame(
        hv.Overlay(layers),
        backend,
        title=FIGURES["histograms"],
        xlabel="squared distance from the fit set",
        ylabel="share of rows",
        xlim=(float(now["distance_start"]), float(now["distance_end"])),
        ylim=(0.0, float(now["share_end"])),
        height=250,
        grid="y",
        left=46,
        logx=True,
        xticks=_DISTANCES,
        hooks=[apart, *hooks.get("figure", [])],
    )


def _tenths(
    now: xr.Dataset, low: float, high: float, backend: str, hooks: dict[str, list[Callable]]
) -> list[Any]:
    """Shade the tenth of the directions with the largest, and that with the smallest eigenvalues."""
    return [
        style(
            hv.Rectangles([(now[f"{end}_left"].item(), low, now[f"{end}_right"].item(), high)]),
            backend,
            bokeh={"fill_color": INK, "fill_alpha": _FULL_TENTH, "line_alpha": 0},
            matplotlib={"facecolor": INK, "alpha": _FULL_TENTH, "edgecolor": "none"},
            hooks=hooks.get(end),
        )
        for end in ("top", "bottom")
    ]


def _two_lines(
    now: xr.Dataset,
    x: str,
    pairs: Sequence[tuple[str, str, bool]],
    color: str,
    backend: str,
    hooks: dict[str, list[Callable]],
) -> list[Any]:
    """Draw a line that stands (dashed, ink) and one that follows alpha (solid, in the regime's colour)."""
    layers = []
    for name, label, moves in pairs:
        ink, dash = (color, "solid") if moves else (INK, "dashed")
        layers.append(
            style(
                hv.Curve((now[x].values.astype(float), now[name].values.astype(float)), x, name, label=label),
                backend,
                bokeh={"color": ink, "line_width": 2 if moves else 1.5, "line_dash": dash},
                matplotlib={
                    "color": ink,
                    "linewidth": 1.4 if moves else 1.0,
                    "linestyle": "-" if moves else "--",
                },
                hooks=hooks.get(name),
            )
        )
    return layers


def eigenvalues(
    now: xr.Dataset,
    *,
    color: str,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the eigenvalues of the covariance, as they are and shrunk.

    Parameters
    ----------
    now, color, hooks, backend
        As for `auroc_curve`.
    """
    hooks = hooks or {}
    low, high = float(now["eigen_start"]), float(now["eigen_end"])
    layers = _tenths(now, SMALLEST_EIGENVALUE / 100, 1e9, backend, hooks)
    layers += _two_lines(
        now,
        "end",
        [("eigenvalue", "of the fit set", False), ("shrunk", "shrunk at this alpha", True)],
        color,
        backend,
        hooks,
    )
    return frame(
        hv.Overlay(layers),
        backend,
        title=f"{FIGURES['spectrum']}; grey: first and last tenth",
        xlabel="direction, largest eigenvalue first",
        ylabel="eigenvalue",
        xlim=(float(now["directions_start"]), float(now["directions_end"])),
        ylim=(low, high),
        height=230,
        grid="y",
        left=58,
        logy=True,
        hooks=hooks.get("figure"),
    )


def budgets(
    now: xr.Dataset,
    *,
    color: str,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw each direction's share of the signal, which is the Euclidean budget, and of Mahalanobis' budget.

    Parameters
    ----------
    now, color, hooks, backend
        As for `auroc_curve`.
    """
    hooks = hooks or {}
    layers = _tenths(now, SMALLEST_SHARE / 100, 9.0, backend, hooks)
    x = now["middle"].values.astype(float)
    for name, label, ink, size in (
        ("mass", "signal = Euclidean budget", INK, 4.5),
        ("budget", "Mahalanobis budget", color, 5.5),
    ):
        layers.append(
            style(
                hv.Points(
                    {"direction": x, "share": now[name].values.astype(float)},
                    ["direction", "share"],
                    label=label,
                ),
                backend,
                bokeh={
                    "marker": "circle",
                    "size": size,
                    "color": ink,
                    "fill_alpha": float(name == "budget"),
                    "line_width": 1.1,
                },
                matplotlib={
                    "marker": "o",
                    "s": size**2 / 2.6,
                    "facecolors": ink if name == "budget" else "none",
                    "edgecolors": ink,
                    "linewidth": 0.8,
                },
                hooks=hooks.get(name),
            )
        )
    return frame(
        hv.Overlay(layers),
        backend,
        title=f"{FIGURES['budget']}; grey: first and last tenth",
        xlabel="direction, largest eigenvalue first",
        ylabel="share",
        xlim=(float(now["directions_start"]), float(now["directions_end"])),
        ylim=(SMALLEST_SHARE, 1.3),
        height=230,
        grid="y",
        left=58,
        logy=True,
        hooks=hooks.get("figure"),
    )


def cumulated(
    now: xr.Dataset,
    *,
    color: str,
    hooks: dict[str, list[Callable]] | None = None,
    backend: str = "bokeh",
) -> hv.Overlay:
    """Draw the budgets summed from the largest eigenvalue on.

    Parameters
    ----------
    now, color, hooks, backend
        As for `auroc_curve`.
    """
    hooks = hooks or {}
    layers = _tenths(now, -1.0, 2.0, backend, hooks)
    layers += _two_lines(
        now,
        "end",
        [("mass_sum", "Euclidean", False), ("budget_sum", "Mahalanobis", True)],
        color,
        backend,
        hooks,
    )
    return frame(
        hv.Overlay(layers),
        backend,
        title=f"{FIGURES['cumulated']}; grey: first and last tenth",
        xlabel="direction, largest eigenvalue first",
        ylabel="share, summed",
        xlim=(float(now["directions_start"]), float(now["directions_end"])),
        ylim=(0.0, 1.03),
        height=230,
        grid="y",
        left=46,
        hooks=hooks.get("figure"),
    )
