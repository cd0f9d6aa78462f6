"""Everything that the page Learn shows of one world, as one table.

The core answers; this module puts the answers into rows and words of fixed shape, so that the browser only
looks them up (see `dashboards.live`). The switch walks ``share``, the part of the class's rows that is in the
fit set: its two ends are the switch, what lies between is the way from one fit to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dashboards import theme
from dashboards.figures.mechanism import LEVELS, MODELS, ROUND, WINDING
from dashboards.live import words
from dashboards.marks import mark
from leakviz.fingerprint import Rule
from leakviz.world import FRAME, WORLD_ALPHAS, World, simulate_twins, sweep_world

SHARES = np.arange(9) / 8
FIT_DRAWN, TEST_DRAWN = 60, 100  # rows of each class, and of each test set, that the plane shows
MOST_CLASSES = 5
RULE = Rule()
DETECTORS = {
    "one-class": "one-class Gaussian",
    "class-conditional": "class-conditional Mahalanobis",
    "knn": "kNN",
    "isolation-forest": "Isolation Forest",
}
UNITS = {  # of the histograms' axis, short: the caption has one line
    "one-class": "in standard deviations",
    "class-conditional": "in standard deviations of a class",
    "knn": "by distance to the k-th fit row",
    "isolation-forest": "by Isolation Forest’s score",
}
GAUSSIAN = ("one-class", "class-conditional")
# What there is to see besides the rows, or besides the twins of lesson 8: a lesson asks before it shows.
SEEN = ("line", "levels", "flag", "recalibrated")
# What the plane's caption says of what is drawn in it.
CAPTIONS = {
    "levels": "Shaded: 50, 80 and 95 % of the known test rows, the most familiar.",
    "line": "Dashed: the line.",
}
LAYERS = {
    "rows": (),
    "line": ("line",),
    "levels": ("levels",),
    "flag": ("line", "levels", "flag"),
    "all": SEEN,
}


def number(value: float) -> str:
    """Write an AUROC with two decimals, and with a third where two would say 1.

    Examples
    --------
    >>> number(0.414), number(0.9994), number(1.0)
    ('0.41', '0.999', '1.000')
    """
    return f"{value:.3f}" if value >= 0.995 else f"{value:.2f}"


def _signed(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")


def word(low: float, high: float) -> str:
    """Return the word for an AUROC by its 95 % interval: what the whole interval allows to say.

    Examples
    --------
    >>> word(0.15, 0.25), word(0.45, 0.55), word(0.88, 0.92), word(0.99, 1.0)
    ('below one half: inverted', 'no better than a coin', 'detects', 'orders nearly all pairs right')
    >>> word(0.62, 0.69), word(0.56, 0.64)
    ('detects a little', 'hardly detects')
    """
    if high < 0.5:
        return "below one half: inverted"
    if low <= 0.5:
        return "no better than a coin"
    if low >= 0.95:
        return "orders nearly all pairs right"
    if low >= RULE.tau:
        return "detects"
    return "hardly detects" if high < RULE.tau else "detects a little"


@lru_cache(maxsize=1)
def twins() -> xr.Dataset:
    """Return the models of lesson 8, once per process."""
    return simulate_twins()


def twins_table(found: xr.Dataset, *, told: int) -> str:
    """Return what a test of predictions sees of the models of lesson 8, as HTML.

    Parameters
    ----------
    found : xarray.Dataset
        `leakviz.simulate_twins`.
    told : int
        How much: -1 is the twins without their names, 0 with them, 1 the flag, too, 2 all.
    """
    names = dict(list(MODELS.items())[: 2 + max(told, 0)])
    if told < 0:
        names = {"honest": "the first", "leaky": "the second"}
    rows = []
    for model, name in names.items():
        of = found.sel(model=model)
        place = list(MODELS).index(model)
        mark_ = mark(theme.MODEL_MARK[place], theme.MODEL_COLOR[place], filled=place > 0)
        rows.append(
            f'<tr><th scope="row">{mark_} {name}</th><td class="n">{float(of["c_statistic"]):.3f}</td>'
            f'<td class="n">{_signed(float(of["z"]))}</td><td class="n">{int(of["spike"]):,}</td>'
            f'<td class="n">{of["verdict"].item()}</td></tr>'
        )
    apart = found["kolmogorov"].values
    limit = found["kolmogorov_limit"].values
    return (
        '<table aria-label="what the blind test sees of each model"><thead><tr><th scope="col">model</th>'
        '<th scope="col" class="n">AUROC</th><th scope="col" class="n">dispersion z</th><th scope="col" class="n">pure head</th>'
        f'<th scope="col" class="n">blind test says</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
        f'<p class="small"><b>Dispersion z</b>: how far outcomes scatter around the risks; beyond '
        f"±{float(found.attrs['z_alpha']):g} it is not chance, and the model is too sure or too unsure. <b>Pure head</b>: the most "
        f"records, counted from the highest risk down, of which at least {100 - 100 * float(found.attrs['delta']):g} % have the event; "
        f"below {int(found.attrs['k_min'])} it counts for nothing. <b>Not shown</b>: the test "
        "found no leak, which clears nobody.</p>"
        f'<p class="small">{int(found.attrs["n"]):,} simulated records a model. Kolmogorov’s distance, the widest gap '
        f"between two distributions, is {apart[1]:.3f} between {'the two' if told < 1 else 'the first two'} models’ risks of those with the event and "
        f"{apart[0]:.3f} of those without; chance alone stays below "
        f"{limit[1]:.3f} and {limit[0]:.3f} in 95 % of draws. arXiv 2606.11267, sections 3 and 4.</p>"
    )


def page_answers(
    world: World,
    *,
    detector: str,
    alpha: float | None = None,
    share: float | None = None,
) -> xr.Dataset:
    """Return what the page shows of a world.

    Parameters
    ----------
    world : leakviz.World
    detector : str
        One of `DETECTORS`.
    alpha, share : float, optional
        The only stop that is answered, which is quick: every stop of the slider, and of the switch, then
        shows it. By default all of `leakviz.world.WORLD_ALPHAS`, and of `SHARES`, are.
        With one share the level lines of kNN and Isolation Forest are coarser, too.

    Returns
    -------
    xarray.Dataset
        Over ``share``, ``alpha`` and ``layers``.
    """
    asked: dict[str, Any] = {} if alpha is None or detector not in GAUSSIAN else {"alphas": [alpha]}
    asked |= {} if share is None else {"shares": [share], "coarse": True}  # the hand is moving
    sweep = sweep_world(world, detector=detector, **asked)
    for dim in ("alpha", "share"):
        if sweep.sizes[dim] == 1:
            sweep = sweep.isel({dim: 0}, drop=True)  # the same at every stop
    if "share" in sweep.dims:
        nearest = np.abs(sweep["share"].values[:, None] - SHARES).argmin(axis=0)
        sweep = sweep.isel(share=nearest).assign_coords(share=SHARES)
    table: dict[str, Any] = {}
    _draw_rows(table, world)
    _draw_scores(table, sweep, world, detector)
    _draw_box(table, sweep)
    _write(table, sweep, world, detector)
    # Made at once: each variable that is set later costs as much as a detector.
    return xr.Dataset(
        table,
        {"share": SHARES, "alpha": np.asarray(WORLD_ALPHAS, dtype=np.float64), "layers": list(LAYERS)},
    )


def _some(rows: NDArray[Any], most: int) -> NDArray[np.float32]:
    """Return the plane's two columns of at most so many rows; nan fills them up."""
    some = np.full((most, 2), np.nan, dtype=np.float32)
    part = rows[:most, :2]
    some[: len(part)] = part
    return some


def _draw_rows(table: dict[str, Any], world: World) -> None:
    classes = len(world.centres)
    fit = np.full((MOST_CLASSES, FIT_DRAWN, 2), np.nan, dtype=np.float32)
    for k in range(classes):
        fit[k] = _some(world.id_fit[world.id_fit_labels == k], FIT_DRAWN)
    drawn = {
        "fit": fit.reshape(-1, 2),
        "id": _some(world.id_test[:: max(1, len(world.id_test) // TEST_DRAWN)], TEST_DRAWN),
        "ood": _some(world.ood_test, TEST_DRAWN),
        "centre": _some(world.centres, MOST_CLASSES),
        "ood_centre": _some(world.ood_centre[np.newaxis], 1),
    }
    for name, rows in drawn.items():
        for axis, values in zip("xy", rows.T, strict=True):
            table[f"{name}_{axis}"] = (name, values)
    own = _some(world.ood_fit, FIT_DRAWN)
    known = len(world.ood_fit[:FIT_DRAWN])
    inside = np.arange(FIT_DRAWN) < np.ceil(SHARES * known)[:, np.newaxis]
    for axis, values in zip("xy", own.T, strict=True):
        table[f"ood_fit_{axis}"] = (("share", "ood_fit"), np.where(inside, values, np.nan))


def _draw_scores(table: dict[str, Any], sweep: xr.Dataset, world: World, detector: str) -> None:
    def over(name: str) -> tuple[str, ...]:
        return tuple(str(d) for d in sweep[name].dims if d in ("share", "alpha"))

    lines = [
        sweep[f"contour_{axis}"].transpose(*over("contour_x"), "level", "vertex").values for axis in "xy"
    ]
    kind = "round" if detector == "one-class" else "winding"
    drawn = _level_lines(np.stack(lines, axis=-1).astype(np.float32), kind)
    for name, values in drawn.items():
        some = over("contour_x") if np.isfinite(values).any() else ()
        for level in range(len(LEVELS)):
            for place, axis in enumerate("xy"):
                row = values[..., level, :, place]
                table[f"{name}{level}_{axis}"] = (
                    (*some, f"{name}{level}"),
                    row if some else row.reshape(-1, row.shape[-1])[0],
                )
    for axis in "xy":
        table[f"oracle_{axis}"] = ("end", sweep[f"oracle_{axis}"].values.astype(np.float64))
    table["bin_left"], table["bin_right"] = ("bin", sweep["left"].values), ("bin", sweep["right"].values)
    sizes = {"id": len(world.id_test), "ood": len(world.ood_test)}
    for kind, size in sizes.items():
        name = f"{kind}_count"
        share = sweep[name].transpose(*over(name), "bin").values / size
        table[f"{kind}_share"] = ((*over(name), "bin"), share.astype(np.float32))
    # Where there are rows, in steps of eight bins: an axis that seldom moves.
    filled = np.flatnonzero(
        sum(table[f"{kind}_share"][1].reshape(-1, sweep.sizes["bin"]).sum(axis=0) for kind in sizes)
    )
    first, last = 8 * (filled[0] // 8), min(8 * (filled[-1] // 8 + 1), sweep.sizes["bin"]) - 1
    table["bin_start"] = ((), float(sweep["left"].values[first]))
    table["bin_end"] = ((), float(sweep["right"].values[last]))
    table["share_end"] = ((), _share_end(table))
    for name, short in (("false_positive_rate", "fpr"), ("true_positive_rate", "tpr")):
        values = sweep[name].transpose(*over(name), "point").values
        table[short] = ((*over(name), "point"), values.astype(np.float32))


def _level_lines(lines: NDArray[np.float32], kind: str) -> dict[str, NDArray[np.float32]]:
    """Put lines into rows of fixed lengths: one ellipse, or whatever else.

    Parameters
    ----------
    lines : numpy.ndarray of float32, shape (..., level, vertex, 2)
        With nan where the pen is lifted.
    kind : {"round", "winding"}
        An ellipse has `ROUND` vertices, which is half of what the core gives and as round on the screen;
        others have `WINDING`.

    Returns
    -------
    dict of str to numpy.ndarray of float32
        Of both kinds; the other is nan throughout.
    """
    sizes = {"round": ROUND, "winding": WINDING}
    drawn = {name: np.full((*lines.shape[:-2], m, 2), np.nan, np.float32) for name, m in sizes.items()}
    rows = drawn[kind].reshape(-1, sizes[kind], 2)
    for row, line in zip(rows, lines.reshape(-1, *lines.shape[-2:]), strict=True):
        thin = _thinned(line if kind == "round" else _joined(line), sizes[kind])
        row[: len(thin)] = thin
    return drawn


def _joined(line: NDArray[np.float32]) -> NDArray[np.float32]:
    """Join the arcs of an outline where the next begins, so that it can be filled.

    Examples
    --------
    >>> pen = [np.float32(np.nan)] * 2
    >>> line = np.array([[0, 0], [2, 0], pen, [2, 1], [0, 1], pen], dtype=np.float32)
    >>> _joined(line)[:, 0].tolist()
    [0.0, 2.0, 2.0, 0.0, nan]
    """
    up = _lifted(line)
    bounds = np.flatnonzero(np.diff(np.concatenate([[True], up, [True]])))
    arcs = [line[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True)]
    parts: list[NDArray[np.float32]] = []
    pen = np.full((1, 2), np.nan, np.float32)
    while arcs:
        first = arcs.pop(0)
        parts.append(first)
        end = first[-1]
        while arcs:
            away = [float(np.square(arc[0] - end).sum()) for arc in arcs]
            nearest = int(np.argmin(away))
            if away[nearest] >= float(np.square(first[0] - end).sum()):
                break
            parts.append(arcs.pop(nearest))
            end = parts[-1][-1]
        parts.append(pen)
    return np.concatenate(parts) if parts else line[:0]


def _thinned(line: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Keep every second vertex, or fewer, until a line has room; then leave out what is after its end.

    Where the pen is lifted stays, and so do the ends of each stroke.

    Examples
    --------
    >>> pen = np.float32(np.nan)
    >>> line = np.array([[0, 0], [1, 0], [2, 0], [3, 0], [pen, pen], [pen, pen]], dtype=np.float32)
    >>> _thinned(line, 4)[:, 0].tolist()
    [0.0, 2.0, 3.0, nan]
    """
    down = np.flatnonzero(~_lifted(line))
    line = line[: down[-1] + 2] if down.size else line[:0]  # with one pen lifted at the end
    for step in range(2, 9):
        if len(line) <= most:
            break
        up = _lifted(line)
        ends = up | np.append(up[1:], True) | np.insert(up[:-1], 0, True)
        line = line[ends | (np.arange(len(line)) % step == 0)]
    return line[:most]


def _lifted(line: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.isnan(line[:, 0]) | np.isnan(line[:, 1])


def _share_end(table: dict[str, Any]) -> float:
    """Return where the histograms' axis ends: on a grid of fifths, so that it seldom moves."""
    top = max(float(np.max(table[f"{kind}_share"][1])) for kind in ("id", "ood"))
    return float(np.ceil(5 * min(1.0, 1.04 * top)) / 5)


def _draw_box(table: dict[str, Any], sweep: xr.Dataset) -> None:
    oracle, unsup = float(sweep["oracle_lda"]), sweep["best_unsup"].values
    both = "share" in sweep["best_unsup"].dims  # else the hand is moving, and only one of them is known
    ends = {"excluded": unsup[0] if both else np.nan, "leaked": unsup[-1] if both else np.nan}
    for name, value in ends.items():
        table[f"{name}_x"], table[f"{name}_y"] = ("one", [oracle]), ("one", [value])
    table["pair_x"], table["pair_y"] = ("end", [oracle, oracle]), ("end", list(ends.values()))
    table["now_x"] = ("one", [oracle])
    table["now_y"] = (("share", "one"), unsup[:, np.newaxis]) if both else ("one", unsup[np.newaxis])


def _told(write: Callable[..., str], *arrays: xr.DataArray) -> tuple[Any, Any]:
    if all(a.ndim == 0 for a in arrays):  # the hand is moving: one answer
        return (), write(*(float(a) for a in arrays))
    texts = words(write, *arrays)
    return texts.dims, texts.values


def contrast_says(sweep: xr.Dataset) -> str:
    """Write the exclusion contrast with its 95 % interval.

    Examples
    --------
    >>> contrast_says(xr.Dataset({"contrast": 0.514, "contrast_low": 0.47, "contrast_high": -0.004}))
    '+0.51 (95 %: +0.47 to 0.00)'
    """
    at, low, high = (_plus(float(sweep[f"contrast{end}"])) for end in ("", "_low", "_high"))
    return f"{at} (95 %: {low} to {high})"


def _plus(value: float) -> str:
    return f"{round(value, 2):+.2f}".replace("-0.00", "0.00").replace("-", "−").replace("+0.00", "0.00")


def _write(table: dict[str, Any], sweep: xr.Dataset, world: World, detector: str) -> None:
    """Write the texts."""
    inside = SHARES > 0
    regime = np.where(inside, "leak", "clean-excl")
    table["color"] = ("share", np.array([theme.REGIME_COLOR[r] for r in regime], dtype=object))
    table["marker"] = ("share", np.array([theme.REGIME_MARK[r] for r in regime], dtype=object))
    for name in SEEN:
        table[f"see_{name}"] = ("layers", [name in shown for shown in LAYERS.values()])
    auroc, low, high = sweep["auroc"], sweep["low"], sweep["high"]
    table["auroc_says"] = _told(number, auroc)
    table["interval_says"] = _told(lambda a, b: f"{number(a)} to {number(b)}", low, high)
    table["unit_says"] = ((), UNITS[detector])
    table["word_says"] = _told(word, low, high)
    oracle = {
        k: float(sweep[f"oracle_lda{end}"]) for k, end in (("at", ""), ("low", "_low"), ("high", "_high"))
    }
    table["oracle_says"] = ((), number(oracle["at"]))
    table["oracle_interval_says"] = ((), f"{number(oracle['low'])} to {number(oracle['high'])}")
    unsup = sweep["best_unsup"]
    table["unsup_says"] = _told(number, unsup)
    passes = oracle["at"] >= RULE.gate

    def fires(value: float) -> str:
        if value >= RULE.tau:
            return "The fingerprint is silent: a detector sees the class."
        if not passes:
            return "The fingerprint is silent: even the line fails."
        return "The fingerprint fires: decodable, not detectable."

    table["rule_says"] = _told(fires, unsup)
    if "share" in unsup.dims:
        out, into = (number(float(unsup[stop])) for stop in (0, -1))
        told = [f"; with the class in the fit set it would be {into}"] + (SHARES.size - 1) * [
            f"; with the class taken out {out}: an exclusion contrast of {contrast_says(sweep)}"
        ]
        table["contrast_says"] = ("share", np.array(told, dtype=object))
    else:  # the hand is moving, and only one of them is known
        table["contrast_says"] = ((), "")

    # What is drawn is explained, and nothing else.
    table["legend_out"] = ("share", np.where(inside, "gone", "").astype(object))
    table["legend_in"] = ("share", np.where(inside, "", "gone").astype(object))
    for name, sentence in CAPTIONS.items():
        if name == "levels" and detector not in GAUSSIAN:
            sentence += " The curves are coarser while the hand moves."
        told_of = [sentence if name in shown else "" for shown in LAYERS.values()]
        table[f"{name}_caption"] = ("layers", np.array(told_of, dtype=object))
    away = any(not low <= v <= high for v, (low, high) in zip(world.ood_centre, FRAME, strict=True))
    table["away_says"] = ((), "The OOD class lies outside of this picture." if away else "")

    # One sentence, which changes with the hand.
    table["fit_says"] = (
        "share",
        np.where(inside, "The class is in the fit set", "The class is outside the fit set").astype(object),
    )

    def tells(a: float, b: float) -> str:
        kind = word(a, b)
        if kind.startswith("below"):
            return f"the {DETECTORS[detector]} calls it more familiar than the known classes"
        if kind.startswith("no better"):
            return f"the {DETECTORS[detector]} cannot tell it from the known classes"
        if kind == "hardly detects":
            return f"the {DETECTORS[detector]} hardly finds it unusual"
        if kind == "detects a little":
            return f"the {DETECTORS[detector]} finds it a little unusual"
        return f"the {DETECTORS[detector]} finds it unusual"

    table["tells_says"] = _told(tells, low, high)
    table["line_says"] = (
        (),
        "with labels a line tells it apart"
        if passes
        else "with labels a line does better than the detector"
        if oracle["at"] > 0.6
        else "with labels a line cannot tell it apart either",
    )
