"""The papers' figures that are on no page: answers in, HoloViews elements for matplotlib out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from dashboards import theme
from dashboards.figures.style import INK, frame, style

GATE, TAU = 0.95, 0.65  # 2607.19393, section 5.1
ARM_COLOR = {
    "clean": theme.REGIME_COLOR["clean-excl"],
    "miscalibrated": theme.REGIME_COLOR["leak"],
    "broad": theme.MODEL_COLOR[3],
    "deterministic": theme.REGIME_COLOR["clean-novel"],
    "laundered": theme.MODEL_COLOR[2],
}
ARM_LINE = {
    "clean": "-",
    "miscalibrated": "-",
    "broad": "-.",
    "deterministic": (0, (6, 1.5)),
    "laundered": "--",
}
_PAPER = "matplotlib"
_ORACLE, _UNSUP = theme.REGIME_COLOR["clean-excl"], theme.REGIME_COLOR["leak"]
SMALLEST_Z = 0.01  # a logarithmic axis has no 0


def wild(pairs: pd.DataFrame) -> hv.Overlay:
    """Draw the image pairs in the wild in the fingerprint box: a mark each, a bar where a range alone is public.

    Parameters
    ----------
    pairs : pandas.DataFrame
        Of `leakviz.comparisons.published_wild`, the image pairs; with a name as ``title``.
    """
    leak, color = theme.REGIME_COLOR["leak"], theme.REGIME_COLOR["clean-novel"]
    fired = (pairs["oracle_low"] >= GATE) & (pairs["unsup_high"] < TAU)
    single = pairs.assign(fires=fired)[pairs["n"] == 1].sort_values(
        "fires", kind="stable"
    )  # a legend shows the first
    ranges = pairs[pairs["n"] > 1]
    layers: list[hv.Element] = [
        _paper(hv.Rectangles([(GATE, -1.0, 2.0, TAU)]), facecolor=leak + "12", edgecolor=leak, linewidth=1.3),
        _words([0.951], [0.51], ["fires: decodable, not detectable"], theme.LIGHT["alarm"]),
        _paper(
            hv.Segments(
                ranges[["oracle_low", "unsup_low", "oracle_high", "unsup_high"]].to_numpy(),
                ["x0", "y0", "x1", "y1"],
            ),
            color=color,
            linewidth=3.5,
            alpha=0.35,
        ),
    ]
    for kind, label in (("far", "clean, far source"), ("near", "clean, near source")):
        of = (single["distance"] == kind).to_numpy()
        data = pd.DataFrame({"oracle_lda": single["oracle_low"][of], "best_unsup": single["unsup_low"][of]})
        data["face"] = np.where(single["fires"][of], color, theme.LIGHT["bg"])
        layers.append(
            _paper(
                hv.Points(data, ["oracle_lda", "best_unsup"], label=label),
                marker=theme.PAPER_MARK[theme.REGIME_MARK["clean-novel"]],
                s=34 if kind == "near" else 16,
                facecolors=hv.dim("face"),
                edgecolors=color,
                linewidth=1.2,
            )
        )
    near = single[single["distance"] == "near"]
    at_edge = (near["oracle_low"] > 0.99).to_numpy()
    for rows, align, shift in ((near[~at_edge], "left", 0.0012), (near[at_edge], "right", -0.0012)):
        layers.append(
            _words(rows["oracle_low"] + shift, rows["unsup_low"], rows["title"], INK, align=align, size=7.5)
        )
    layers.append(
        _words(
            ranges["oracle_low"] - 0.0012,
            (ranges["unsup_low"] + ranges["unsup_high"]) / 2 - 0.02,
            [f"{title}: a range" for title in ranges["title"]],
            INK,
            align="right",
            size=7.5,
        )
    )
    return frame(
        hv.Overlay(layers),
        _PAPER,
        title="In the wild: 24 image pairs",
        xlabel="oracle LDA, AUROC with labels",
        ylabel="best-unsup, AUROC without labels",
        xlim=(0.938, 1.0025),
        ylim=(0.5, 1.03),
        height=400,
        grid="y",
        xformatter="%.2f",
        yformatter="%.1f",
    )


def gaps(settings: pd.DataFrame) -> hv.Overlay:
    """Draw what a supervised reader and the best unsupervised detector score in each setting, and the gap.

    Parameters
    ----------
    settings : pandas.DataFrame
        From the top down: ``title``, ``oracle``, ``unsup``.
    """
    place = np.arange(len(settings))[::-1].astype(float)
    oracle, unsup = settings["oracle"].to_numpy(), settings["unsup"].to_numpy()
    layers = [
        _paper(hv.VLine(0.5), color=INK, linewidth=0.8, linestyle=":"),
        _paper(
            hv.Segments({"x0": unsup, "y0": place, "x1": oracle, "y1": place}, ["x0", "y0", "x1", "y1"]),
            color=theme.QUIET_COLOR,
            linewidth=1.1,
        ),
        _paper(
            hv.Points({"auroc": oracle, "place": place}, ["auroc", "place"], label="oracle LDA, with labels"),
            marker="s",
            s=26,
            c=_ORACLE,
        ),
        _paper(
            hv.Points({"auroc": unsup, "place": place}, ["auroc", "place"], label="best unsupervised"),
            marker="o",
            s=26,
            facecolors=theme.LIGHT["bg"],
            edgecolors=_UNSUP,
            linewidth=1.2,
        ),
        _words(np.full(place.size, 1.02), place, [f"Γ {g:.2f}" for g in oracle - unsup], INK, size=7.5),
    ]
    return frame(
        hv.Overlay(layers),
        _PAPER,
        title="Decodable but not detectable",
        xlabel="AUROC; dotted: chance",
        ylabel="",
        xlim=(0.48, 1.075),
        ylim=(-0.7, place.size - 0.3),
        height=400,
        grid="y",
        yticks=list(zip(place.tolist(), settings["title"], strict=True)),
    )


def arms_calibration(curves: pd.DataFrame, *, end: float) -> hv.Overlay:
    """Draw observed against predicted risk of each arm.

    Parameters
    ----------
    curves : pandas.DataFrame
        ``arm``, ``predicted``, ``observed``.
    end : float
        Where both axes end.
    """
    layers = [_paper(hv.Curve([(0, 0), (end, end)]), color=INK, linewidth=0.8, linestyle=":")]
    layers += _lines(curves, "predicted", "observed")
    return frame(
        hv.Overlay(layers),
        _PAPER,
        title="A. Calibration",
        xlabel="predicted risk",
        ylabel="observed share of events",
        xlim=(0.0, end),
        ylim=(0.0, end),
        height=300,
        grid="y",
    )


def arms_dispersion(found: pd.DataFrame) -> hv.Overlay:
    """Draw |z| of each arm, computed here and, where it is printed, published.

    Parameters
    ----------
    found : pandas.DataFrame
        From the top down: ``arm``, ``z``, ``published`` (nan where it is not printed).
    """
    place = np.arange(len(found))[::-1].astype(float)
    z, printed = (np.maximum(np.abs(found[c].to_numpy()), SMALLEST_Z) for c in ("z", "published"))
    colors = [ARM_COLOR[a] for a in found["arm"]]
    data = pd.DataFrame({"z": z, "place": place, "color": colors})
    layers = [
        _paper(hv.VLine(1.96), color=INK, linewidth=0.8, linestyle=":"),
        _paper(hv.Points(data, ["z", "place"], label="computed here"), marker="o", s=30, c=hv.dim("color")),
        _paper(
            hv.Points({"z": printed, "place": place}, ["z", "place"], label="published"),
            marker="D",
            s=80,
            facecolors="none",
            edgecolors=INK,
            linewidth=0.9,
        ),
    ]
    return _unnamed(
        frame(
            hv.Overlay(layers),
            _PAPER,
            title="B. Dispersion",
            xlabel="|z|, log scale",
            ylabel="",
            xlim=(SMALLEST_Z * 0.3, 3000),
            ylim=(-0.6, place.size - 0.4),
            height=300,
            grid="x",
            logx=True,
            yticks=list(zip(place.tolist(), found["arm"], strict=True)),
            xticks=[(SMALLEST_Z, "≤ 0.01"), (1, "1"), (100, "100")],
        )
    )


def arms_purity(curves: pd.DataFrame) -> hv.Overlay:
    """Draw the purity of the highest risks of each arm.

    Parameters
    ----------
    curves : pandas.DataFrame
        ``arm``, ``percent`` (of the records), ``purity``.
    """
    return _unnamed(
        frame(
            hv.Overlay(_lines(curves, "percent", "purity")),
            _PAPER,
            title="C. Purity head",
            xlabel="records from the top, %",
            ylabel="purity",
            xlim=(0.01, 100.0),
            ylim=(0.0, 1.05),
            height=300,
            grid="y",
            logx=True,
            xticks=[(0.01, "0.01"), (0.1, "0.1"), (1, "1"), (10, "10"), (100, "100")],
        )
    )


def operating_characteristic(
    graded: pd.DataFrame, *, floor: tuple[float, float], top: float = 103.0
) -> hv.Overlay:
    """Draw breadth against the gain in C*, with what honest models reach and the published floor.

    Parameters
    ----------
    graded : pandas.DataFrame
        ``window_days``, ``c_gain``, ``breadth_percent``, ``honest_low_percent``, ``honest_high_percent``.
    floor : (low, high)
        The published detection floor, in C*.
    top : float
        Where the vertical axis ends.
    """
    gain, breadth = graded["c_gain"].to_numpy(), graded["breadth_percent"].to_numpy()
    right = float(np.ceil(gain.max() * 50 + 0.5) / 50)
    low, high = (float(graded[f"honest_{end}_percent"].iloc[0]) for end in ("low", "high"))
    left = -0.004
    layers = [
        _paper(hv.Rectangles([(left, low, right, high)]), facecolor=INK + "1c", edgecolor="none"),
        _paper(
            hv.Rectangles([(floor[0], -10.0, floor[1], 200.0)]),
            facecolor=_ORACLE + "40",
            edgecolor="none",
        ),
        _words([floor[1] + 0.001], [top - 8], ["floor in UK Biobank, published"], _ORACLE, size=7.5),
        _words(
            [right - 0.001], [high - 4], ["honest models over each other, 95 %"], INK, align="right", size=7.5
        ),
        _paper(
            hv.Curve((gain, breadth), "c_gain", "breadth", label="flchain, computed here"),
            color=_UNSUP,
            linewidth=1.2,
        ),
        _paper(
            hv.Points({"c_gain": gain, "breadth": breadth}, ["c_gain", "breadth"]), marker="o", s=26, c=_UNSUP
        ),
        _words(
            gain + right * 0.008,
            breadth - 5,
            ["honest" if not d else f"{d:,} days" for d in graded["window_days"]],
            INK,
            size=7.5,
        ),
    ]
    return frame(
        hv.Overlay(layers),
        _PAPER,
        title="Operating characteristic",
        xlabel="gain in C* over the honest model",
        ylabel="breadth, % of the records",
        xlim=(left, right),
        ylim=(-2.0, top),
        height=400,
        grid="y",
    )


def _unnamed(overlay: hv.Overlay) -> hv.Overlay:
    """Leave the legend out: that of the first panel is for all."""
    return overlay.opts(hv.Options("Overlay", backend=_PAPER, show_legend=False))


def _lines(curves: pd.DataFrame, x: str, y: str) -> list[hv.Element]:
    return [
        _paper(
            hv.Curve(curves.loc[curves["arm"] == arm, [x, y]], x, y, label=arm),
            color=color,
            linestyle=ARM_LINE[arm],
            linewidth=1.3,
        )
        for arm, color in ARM_COLOR.items()
    ]


def _words(
    x: Any, y: Any, text: Sequence[str] | pd.Series, color: str, *, align: str = "left", size: float = 8.0
) -> hv.Element:
    data = pd.DataFrame({"x": np.asarray(x, float), "y": np.asarray(y, float), "text": list(text)})
    return _paper(
        hv.Labels(data, ["x", "y"], "text"),
        color=color,
        size=size,
        horizontalalignment=align,
        verticalalignment="center",
    )


def _paper(element: hv.Element, **options: Any) -> hv.Element:
    return style(element, _PAPER, bokeh={}, matplotlib=options)
