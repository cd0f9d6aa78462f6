"""What the fingerprint is compared with: pairs in the wild, an overlap index, another representation."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from leakviz.battery import check_battery, load_battery
from leakviz.errors import InputError
from leakviz.paths import data_dir
from leakviz.signature import signature_blocks
from leakviz.statistics import auroc, auroc_interval

ALL_BLOCKS = "all 77"
CONVENTIONS = ("kept", "dropped")
"""Whether the centroid of an excluded class stays in the signature's distances, or goes."""


class Quoted(NamedTuple):
    """A figure that a paper's prose states: a range, or a number twice, and what is noted beside it."""

    low: float
    high: float
    note: str


def quoted_figure(subject: str, quantity: str, *, arxiv_id: str = "2607.19393") -> Quoted:
    """Return a figure that a paper's prose states.

    Parameters
    ----------
    subject, quantity : str
        As data/published/quoted_figures.csv names them.
    arxiv_id : str, default "2607.19393"

    Returns
    -------
    Quoted

    Raises
    ------
    InputError
        If there is not exactly one.

    Examples
    --------
    >>> quoted_figure("24 in-the-wild pairs", "pairs_that_fire").low
    1.0
    """
    quoted = pd.read_csv(
        data_dir() / "published" / "quoted_figures.csv", dtype={"arxiv_id": str}, keep_default_na=False
    )
    found = quoted[
        (quoted["arxiv_id"] == arxiv_id) & (quoted["subject"] == subject) & (quoted["quantity"] == quantity)
    ]
    if len(found) != 1:
        raise InputError(
            f"quoted_figures.csv has {len(found)} rows of {quantity} for {subject!r}; there must be one"
        )
    return Quoted(float(found["low"].iloc[0]), float(found["high"].iloc[0]), str(found["note"].iloc[0]))


def published_wild() -> pd.DataFrame:
    """Return the published audit of benchmark pairs in the wild, as far as its numbers are public.

    Returns
    -------
    pandas.DataFrame
        One row per setting, or per group of settings of which a range alone is
        public:

        ``setting``, ``title`` : str
            A name for links, and one for people.
        ``regime``, ``distance`` : str
            As in a battery.
        ``oracle_low``, ``oracle_high``, ``unsup_low``, ``unsup_high`` : float
            AUROC of the probe and of the best unsupervised detector; equal
            unless a range is public.
        ``n`` : int
            How many settings the row stands for.
        ``exact`` : bool
            Whether both numbers are printed for this setting.
        ``space`` : {"embedding", "signature"}
        ``source`` : str
            Where it is printed, and what is not.

    Notes
    -----
    arXiv 2607.19393, section 6, Table 12 (the same fit sets and sources), Figure
    3 and Appendices F and H. Of the 24 image pairs, 12 are printed in full, two
    with an oracle of "about 1", and ten as the range of the far pairs. Ten of the
    twelve text and document settings are known as a count only ("none fires")
    and are not here.

    Examples
    --------
    >>> wild = published_wild()
    >>> int(wild.n[wild.regime == "clean-novel"].sum())
    24
    """

    def figure(subject: str, quantity: str) -> tuple[float, float]:
        found = quoted_figure(subject, quantity)
        return found.low, found.high

    battery = load_battery("published")
    novel = battery.isel(setting=np.flatnonzero(battery["regime"].values == "clean-novel"))
    rows = [
        {
            "setting": str(row["setting"].item()),
            "backbone": str(row["backbone"].item()),
            "id_dataset": str(row["id_dataset"].item()),
            "ood": str(row["ood"].item()),
            "regime": "clean-novel",
            "distance": str(row["distance"].item()),
            "oracle": (float(row["oracle_lda"]),) * 2,
            "unsup": (float(row["best_unsup"]),) * 2,
            "exact": True,
            "source": "Table 12",
        }
        for row in (novel.isel(setting=i) for i in range(novel.sizes["setting"]))
    ]
    about = figure("18 far and 2 near stl10 pairs", "oracle_lda_auroc")
    both = figure("cifar10 to stl10, resnet50 / vit", "best_unsup_auroc")
    for backbone, value in zip(("resnet50", "vit_b16"), both, strict=True):
        rows.append(
            {
                "setting": f"wild_c10_{backbone}_stl10",
                "backbone": backbone,
                "id_dataset": "cifar10",
                "ood": "stl10",
                "regime": "clean-novel",
                "distance": "near",
                "oracle": about,
                "unsup": (value, value),
                "exact": False,
                "source": "section 6; the oracle is printed as “about 1”, Figure 3",
            }
        )
    far = int(sum(row["distance"] == "far" for row in rows))
    rows.append(
        {
            "setting": "wild_far",
            "title": f"{18 - far} more far pairs",
            "regime": "clean-novel",
            "distance": "far",
            "oracle": about,
            "unsup": figure("18 far pairs", "best_unsup_auroc"),
            "n": 18 - far,
            "exact": False,
            "source": "Appendix F; the range of the 18 far pairs, oracle “about 1”, Figure 3",
        }
    )
    text = "20news/comp.sys.mac.hardware"
    rows += [
        {
            "setting": "wild_mac_embedding",
            "title": f"{text} held out",
            "regime": "clean-retrained",
            "oracle": figure("20news/mac.hw, embedding", "oracle_lda_auroc"),
            "unsup": figure("20news/mac.hw, embedding", "best_unsup_auroc"),
            "exact": True,
            "source": "Appendix H, RoBERTa embedding",
        },
        {
            "setting": "wild_mac_signature",
            "title": f"{text} held out, in its signature",
            "regime": "clean-retrained",
            "oracle": figure("20news/comp.sys.mac.hardware held out", "oracle_lda_auroc"),
            "unsup": figure("20news/comp.sys.mac.hardware held out", "unsupervised_auroc"),
            "exact": False,
            "space": "signature",
            "source": "section 4; the range over all unsupervised detectors",
        },
        {
            "setting": "wild_memo",
            "title": "Tobacco/Memo, leaked",
            "regime": "leak",
            "oracle": figure("tobacco/memo leaked", "oracle_lda_auroc"),
            "unsup": (
                max(
                    figure("tobacco/memo leaked", f"{name}_auroc")[1] for name in ("prs_maha", "maha", "knn")
                ),
            )
            * 2,
            "exact": True,
            "space": "signature",
            "source": "Table 1: oracle and PRS-Maha in the signature, Mahalanobis and kNN in the embedding",
        },
    ]
    frame = pd.DataFrame(rows)
    for name in ("oracle", "unsup"):
        frame[[f"{name}_low", f"{name}_high"]] = frame.pop(name).tolist()
    missing = {
        "title": "",
        "backbone": "",
        "id_dataset": "",
        "ood": "",
        "distance": "",
        "space": "embedding",
        "n": 1,
    }
    return frame.fillna(missing).astype({"n": int})


def contest_index(battery: xr.Dataset) -> pd.DataFrame:
    """Compare the neighbourhood index with the fingerprint as detectors of a leak.

    Parameters
    ----------
    battery : xarray.Dataset
        A battery that knows ``neighbourhood_leakage``, or any subset of its settings.

    Returns
    -------
    pandas.DataFrame
        One row per contestant: ``score`` (str), ``auroc``, ``low``, ``high``
        (leak against clean, larger where a leak is suspected, 95 % interval),
        ``n_leak``, ``n_clean``. The contestants: the index over all settings;
        the index on matched pairs, where it is exactly 0.5, for it never sees
        the fit set; 1 - best_unsup over all settings, and on matched pairs.

    Raises
    ------
    InputError
        If the battery lacks the index.

    Notes
    -----
    arXiv 2607.19393, Appendix G.

    Examples
    --------
    >>> battery = load_battery("published").assign(neighbourhood_leakage=("setting", np.arange(52) / 52))
    >>> contest_index(battery).score.tolist()[:2]
    ['neighbourhood index', 'neighbourhood index, matched pairs']
    """
    check_battery(battery)
    if "neighbourhood_leakage" not in battery:
        raise InputError(
            "battery has no 'neighbourhood_leakage'; the computed one has: load_battery('computed')"
        )
    leak = battery["regime"].values == "leak"
    regimes = pd.Series(battery["regime"].values)
    pairs = pd.Series(battery["pair"].values)
    member = (pairs != "") & regimes.isin(["leak", "clean-excl"])
    both = member & (pairs[member].groupby(pairs).transform("size").reindex(pairs.index) == 2)
    best = battery["best_unsup"]
    suspicion = 1 - (best.mean("seed").round(12) if "seed" in best.dims else best).values
    index = battery["neighbourhood_leakage"].values
    rows = []
    for name, values in (("neighbourhood index", index), ("1 − best-unsup", suspicion)):
        for where, kept in (("", np.ones(leak.size, bool)), (", matched pairs", both.to_numpy())):
            rows.append({"score": name + where, **_separation(values[kept], leak[kept])})
    return pd.DataFrame(rows)


def _separation(values: NDArray[np.float64], leak: NDArray[np.bool_]) -> dict[str, float]:
    low, high = auroc_interval(values, leak)
    return {
        "auroc": auroc(values, leak),
        "low": low,
        "high": high,
        "n_leak": int(leak.sum()),
        "n_clean": int((~leak).sum()),
    }


def signature_settings(signature: xr.Dataset) -> pd.DataFrame:
    """Return every setting of a signature battery with what each reading of the signature says.

    Parameters
    ----------
    signature : xarray.Dataset
        As ``load_battery("computed-signature")`` returns it.

    Returns
    -------
    pandas.DataFrame
        Per setting, means over seeds: ``setting``, ``backbone``, ``id_dataset``,
        ``regime``, ``ood``, ``convention`` ("all", "kept" or "dropped"),
        ``oracle_lda`` and ``best_unsup`` in signature space, and the AUROCs
        ``embedding_maha``, ``prs_maha``, ``ahss``, ``knn``, ``isolation_forest``.

    Raises
    ------
    InputError
        If it is no signature battery.

    Notes
    -----
    arXiv 2607.19393, section 7 and Appendices C and E.

    Examples
    --------
    >>> signature_settings(load_battery("published"))
    Traceback (most recent call last):
    leakviz.errors.InputError: battery has no 'prs_maha', so it is none of signatures; ...
    """
    check_battery(signature)
    if "prs_maha" not in signature or "convention" not in signature.coords:
        raise InputError(
            "battery has no 'prs_maha', so it is none of signatures; load_battery('computed-signature') is"
        )
    names = ("oracle_lda", "best_unsup", "embedding_maha", "prs_maha", "ahss", "knn", "isolation_forest")
    texts = ("setting", "backbone", "id_dataset", "regime", "ood", "convention")
    return pd.DataFrame(
        {
            **{name: signature[name].values.astype(str) for name in texts},
            **{name: signature[name].mean("seed").round(12).values for name in names},
        }
    )


def block_ablation(signature: xr.Dataset) -> pd.DataFrame:
    """Return the Mahalanobis AUROC of each block of the signature alone, averaged over settings.

    Parameters
    ----------
    signature : xarray.Dataset
        As ``load_battery("computed-signature")`` returns it.

    Returns
    -------
    pandas.DataFrame
        Per ``group`` ("leak", "clean-excl, kept", "clean-excl, dropped",
        "clean-novel") and ``block`` (those of the signature, then "all 77"):
        ``mean``, ``low`` and ``high`` (smallest and largest) over settings of the
        mean over seeds; ``n`` settings; ``weakest``: in how many of them this
        block has the smallest AUROC of the four (nan for "all 77").

    Raises
    ------
    InputError
        If it is no signature battery.

    Notes
    -----
    arXiv 2607.19393, section 7 and Table 7.

    Examples
    --------
    >>> block_ablation(load_battery("published"))
    Traceback (most recent call last):
    leakviz.errors.InputError: battery has no 'prs_maha', so it is none of signatures; ...
    """
    frame = signature_settings(signature)
    alone = signature["maha_by_block"].mean("seed").transpose("setting", "block").values
    blocks = list(signature_blocks(1))
    weakest = alone.argmin(axis=1)
    group = np.where(
        frame["regime"] == "clean-excl", "clean-excl, " + frame["convention"], frame["regime"]
    ).astype(str)
    rows = []
    for name in ("leak", *(f"clean-excl, {c}" for c in CONVENTIONS), "clean-novel"):
        of = group == name
        values = np.column_stack([alone[of], frame["prs_maha"].to_numpy()[of]])
        if not of.any():
            continue
        for place, block in enumerate([*blocks, ALL_BLOCKS]):
            column = values[:, place]
            rows.append(
                {
                    "group": name,
                    "block": block,
                    "mean": float(column.mean()),
                    "low": float(column.min()),
                    "high": float(column.max()),
                    "n": int(of.sum()),
                    "weakest": float((weakest[of] == place).sum()) if place < len(blocks) else np.nan,
                }
            )
    return pd.DataFrame(rows)
