"""The papers' figures from published and shipped data, each with a caption that tells the two apart.

python -m dashboards.paper_figures [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import holoviews as hv
import numpy as np
import pandas as pd

import leakviz
from dashboards import audit_answers, export
from dashboards.figures import paper
from dashboards.fingerprint import FingerprintPage
from dashboards.purity import PurityPage
from leakviz.arms import ARMS
from leakviz.comparisons import quoted_figure
from leakviz.paths import write_whole

FINGERPRINT, BLIND = "2607.19393", "2606.11267"
FOLDER = "figures"


class PaperFigure(NamedTuple):
    """A figure of a paper, as far as what is public allows.

    Attributes
    ----------
    name : str
        Of the files.
    title : str
    size : (width, height) in mm
    figure : callable
        Takes ``backend`` and returns the element.
    data : DataFrame
        The numbers that are drawn.
    line : str
        Below the figure in the files: what is published and what is computed, in short.
    published, computed, missing : str
        What is published, what is computed here, and what the paper's figure shows and this one cannot.
    """

    name: str
    title: str
    size: tuple[float, float]
    figure: Callable[..., Any]
    data: pd.DataFrame
    line: str
    published: str
    computed: str
    missing: str

    def caption(self) -> str:
        """Return the caption as Markdown."""
        parts = {"Published": self.published, "Computed here": self.computed, "Not public": self.missing}
        told = "\n\n".join(f"**{kind}.** {text}" for kind, text in parts.items())
        files = ", ".join(f"`{self.name}.{kind}`" for kind in (*export.KINDS, "csv"))
        return f"# {self.title}\n\n{told}\n\nFiles: {files}. Made by `make figures` (leakviz).\n"


def battery() -> PaperFigure:
    """Return Figure 2 of arXiv 2607.19393: the 52 controlled settings."""
    page = FingerprintPage()
    score = page.answer()
    right = {
        kind: f"{int(score['correct'].sel(regime=kind))} of {int(score['n'].sel(regime=kind))}"
        for kind in ("leak", "clean")
    }
    return PaperFigure(
        f"{FINGERPRINT}-figure-2",
        f"Controlled validation of the leak fingerprint (arXiv {FINGERPRINT}, Figure 2)",
        (160, 110),
        lambda backend: page.figure("scatter", backend),
        page.data("scatter"),
        f"Positions published: arXiv {FINGERPRINT}, Table 12. Filled: fires, and ringed: wrong, computed here.",
        f"All positions: arXiv {FINGERPRINT}, Table 12, means of three seeds, three decimals; gate 0.95 and tau 0.65, section 5.1.",
        "Which settings fire (filled marks) and which decisions are wrong (rings), by leakviz from these numbers: "
        f"{right['leak']} leaks fire, {right['clean']} clean settings are silent.",
        "Nothing of this figure.",
    )


def in_the_wild() -> PaperFigure:
    """Return Figure 3 of arXiv 2607.19393: the image pairs in the wild, as far as their numbers are public."""
    pairs = wild_pairs()
    exact, single = int(pairs["exact"].sum()), int((pairs["n"] == 1).sum())
    return PaperFigure(
        f"{FINGERPRINT}-figure-3",
        f"Standard benchmark pairs in the wild (arXiv {FINGERPRINT}, Figure 3)",
        (160, 110),
        lambda backend: paper.wild(pairs),
        pairs,
        f"Positions published: arXiv {FINGERPRINT}, Table 12, section 6 and Appendix F. Filled: fires, computed here.",
        f"{exact} of the {int(pairs['n'].sum())} pairs with both numbers (Table 12, the same fit sets and sources); {single - exact} "
        "(CIFAR-10 to STL-10) with best-unsup (section 6) and an oracle that is printed as “about 1”.",
        "Which pairs fire (filled), by leakviz from these numbers. No position.",
        f"The positions of the other {int(pairs['n'].sum()) - single} pairs: of them the range of best-unsup over the 18 far pairs is printed "
        "(Appendix F); the pale bar spans it.",
    )


def decodable() -> PaperFigure:
    """Return Figure 4 of arXiv 2607.19393: the gap between what is decodable and what is detectable."""
    settings = gap_settings()
    of_paper = int((settings["where"] != "Table 12").sum())
    low_near, high_near = quoted_figure("most near-OOD settings", "gap_gamma")[:2]
    far = quoted_figure("cifar to svhn, far", "gap_gamma").low
    return PaperFigure(
        f"{FINGERPRINT}-figure-4",
        f"Decodable but not detectable (arXiv {FINGERPRINT}, Figure 4)",
        (170, 110),
        lambda backend: paper.gaps(settings),
        settings.assign(gap=settings["oracle"] - settings["unsup"]),
        f"AUROC published: arXiv {FINGERPRINT}, Table 1 and section 4 (first two rows), Table 12. Γ computed here.",
        f"The first {of_paper} rows are rows of the paper's figure: oracle and the best of PRS-Maha, Mahalanobis and kNN, Table 1 and "
        f"section 4. The other {len(settings) - of_paper} are no rows of it: other-source settings of Table 12, in embedding space, where the "
        "best is of Mahalanobis and kNN.",
        "The gap Γ = oracle - best unsupervised, from the printed numbers, to two decimals.",
        f"The other rows of the paper's figure (Table 4). Of them the text states gaps alone: {far:g} from CIFAR to SVHN, "
        f"{low_near:g} to {high_near:g} in most near settings. They cannot be placed and are not drawn.",
    )


def trichotomy(n: int = 200_000) -> PaperFigure:
    """Return Figure 1 of arXiv 2606.11267: the synthetic arms.

    Parameters
    ----------
    n : int, default 200,000
        Records, as in the paper.
    """
    curves, found, heads = arm_tables(n)

    def figure(backend: str) -> hv.Layout:
        end = float(np.ceil(curves["observed"].max() * 20) / 20)
        panels = [
            paper.arms_calibration(curves, end=end),
            paper.arms_dispersion(found),
            paper.arms_purity(heads),
        ]
        return hv.Layout(panels).cols(3)

    data = pd.concat(
        [curves.assign(panel="A"), found.assign(panel="B"), heads.assign(panel="C")], ignore_index=True
    )
    return PaperFigure(
        f"{BLIND}-figure-1",
        f"The trichotomy on synthetic arms (arXiv {BLIND}, Figure 1)",
        (170, 66),
        figure,
        data[["panel", "arm", *(c for c in data.columns if c not in ("panel", "arm"))]],
        f"Computed here, as in arXiv {BLIND}, section 6; colours as named below the panels. Open diamonds published: section 7.1.",
        "The open diamonds in B: z of four arms, section 7.1. The construction: sections 6 and 7.1 (200,000 records, prevalence 0.02, C* 0.84, "
        "beta 2.5, a flag for 0.3 % of the records).",
        f"All curves and filled marks: `leakviz.simulate_arms(n={n:_}, seed=0)`. A: 20 bins of equal size. B: |z| with unit weight; "
        "dotted, 1.96. C: share of events among the highest risks. Laundered: the miscalibrated arm after Platt's recalibration on the same data.",
        "The paper's own draws of the arms; z of the deterministic arm.",
    )


def floor() -> PaperFigure:
    """Return Figure 2 of arXiv 2606.11267: breadth against the gain in C*, on other data."""
    graded = PurityPage().data("graded")
    low, high, _ = quoted_figure("delirium", "detection_floor_delta_c", arxiv_id=BLIND)
    epsilon = float(graded["epsilon"].iloc[0])
    return PaperFigure(
        f"{BLIND}-figure-2",
        f"Operating characteristic of a graded leak (arXiv {BLIND}, Figure 2)",
        (160, 100),
        lambda backend: paper.operating_characteristic(graded, floor=(low, high)),
        graded,
        f"Computed here, data: flchain, R package survival. Blue band published: arXiv {BLIND}, section 7.2.",
        f"The blue band alone: the detection floor in UK Biobank, a gain in C* of {low:g} to {high:g} (section 7.2).",
        "All marks: out-of-fold predictions for flchain (data/predictions), whose model is told who died within so many days. Breadth at "
        f"epsilon {epsilon:g} over the honest model; grey, breadth of two honest models over each other, 95 % of 1,000 resamples of the rows.",
        "The paper's curve: UK Biobank's records, and Table 2 per window. The two curves are of different data and outcomes, so their "
        "floors need not agree.",
    )


FIGURES: tuple[Callable[[], PaperFigure], ...] = (battery, in_the_wild, decodable, trichotomy, floor)


def wild_pairs() -> pd.DataFrame:
    """Return the published image pairs in the wild, with names.

    Examples
    --------
    >>> pairs = wild_pairs()
    >>> int(pairs.n.sum()), int(pairs.exact.sum())
    (24, 12)
    """
    wild = audit_answers.wild()
    pairs = wild[wild["regime"] == "clean-novel"].reset_index(drop=True)
    return pairs.assign(title=pairs["title"].str.replace("stl10", "STL-10"))


def gap_settings() -> pd.DataFrame:
    """Return published settings with both an oracle and a best unsupervised AUROC, the largest gaps first.

    Examples
    --------
    >>> gap_settings()[["oracle", "unsup"]].head(2).values.tolist()
    [[1.0, 0.634], [0.882, 0.595]]
    """

    def quoted(subject: str, *quantities: str) -> float:
        return max(quoted_figure(subject, f"{q}_auroc").low for q in quantities)

    leaked, hard = "tobacco/memo leaked", "20news/comp.sys.mac.hardware held out"
    rows = [
        {
            "title": "Tobacco/Memo (G2), leaked",
            "oracle": quoted(leaked, "oracle_lda"),
            "unsup": quoted(leaked, "prs_maha", "maha", "knn"),
            "where": "Table 1",
        },
        {
            "title": "20news/mac.hw, held out",
            "oracle": quoted(hard, "oracle_lda"),
            "unsup": quoted(hard, "prs_maha"),
            "where": "section 4",
        },
    ]
    pairs = wild_pairs()
    pairs = pairs[pairs["exact"]].assign(gap=lambda f: f["oracle_low"] - f["unsup_low"])
    rows += [
        {"title": row.title, "oracle": row.oracle_low, "unsup": row.unsup_low, "where": "Table 12"}
        for row in pairs.sort_values("gap", ascending=False, kind="stable").itertuples()
    ]
    return pd.DataFrame(rows)


def arm_tables(n: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return calibration, dispersion and purity of the synthetic arms.

    Returns
    -------
    (DataFrame, DataFrame, DataFrame)
        ``arm`` with ``predicted``, ``observed``; with ``z``, ``published``; with ``percent``, ``purity``.
    """
    printed = {
        "clean": "clean",
        "miscalibrated": "miscalibrated, beta=2.5",
        "broad": "broad calibrated proxy",
        "laundered": "miscalibrated then Platt",
    }
    arms = leakviz.simulate_arms(n=n)
    y = arms["y"].values
    curves, found, heads = [], [], []
    for arm in ARMS:
        p = arms["p"].sel(arm=arm).values
        bins = leakviz.calibration_curve(p, y, n_bins=20)
        curves.append(
            pd.DataFrame(
                {"arm": arm, "predicted": bins["predicted"].values, "observed": bins["observed"].values}
            )
        )
        published = (
            quoted_figure(printed[arm], "z_dispersion", arxiv_id=BLIND).low if arm in printed else np.nan
        )
        found.append({"arm": arm, "z": leakviz.dispersion(p, y).z, "published": published})
        head = leakviz.purity_curve(p, y)
        heads.append(
            pd.DataFrame({"arm": arm, "percent": 100 * head["k"].values / n, "purity": head["purity"].values})
        )
    return pd.concat(curves, ignore_index=True), pd.DataFrame(found), pd.concat(heads, ignore_index=True)


def write(one: PaperFigure, folder: Path) -> list[Path]:
    """Write a figure as SVG, PDF and PNG, its numbers as CSV, its caption as Markdown.

    Returns
    -------
    list of Path
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for kind in export.KINDS:
        files.append(folder / f"{one.name}.{kind}")
        drawn = export.draw(one.figure, kind, size=one.size, caption=one.line)
        write_whole(files[-1], drawn.getvalue())
    for kind, text in (("csv", export.table(one.data).getvalue()), ("md", one.caption())):
        files.append(folder / f"{one.name}.{kind}")
        write_whole(files[-1], text)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Write every figure into a folder, by default ``figures``."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 1 or (given and given[0].startswith("-")):
        sys.exit(__doc__)
    folder = Path(given[0] if given else FOLDER)
    for make in FIGURES:
        for file in write(make(), folder):
            print(file)


if __name__ == "__main__":
    main()
