"""What the authors of arXiv 2602.14161 published: LODO accuracies of 17 sources, and printed features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from leakviz.errors import InputError
from leakviz.lodo.compare import KINDS
from leakviz.lodo.retention import describe
from leakviz.paths import data_dir
from leakviz.statistics import wilson_interval

SOURCE = "github.com/maxf-zn/prompt-mining, stored notebook output (MIT, Zenity Ltd.); arXiv 2602.14161"

_MERGED = {"mosscap": ("mosscap", "gandalf_summarization")}
"""Sources that the notebook holds out as one."""


def load_published_lodo(*, folder: str | Path | None = None) -> xr.Dataset:
    """Load the published LODO accuracies: 17 held-out sources, 4 classifiers.

    Parameters
    ----------
    folder : str or pathlib.Path, optional
        Where the published tables are; by default the ones that ship.

    Returns
    -------
    xarray.Dataset
        Over ``source`` and ``classifier`` ("raw_logistic, constant 0.5" and so on):

        ``n``, ``positives``, ``positive_share``, ``kind`` : (source)
            As in `lodo`; ``positives`` is n times the published share (one decimal of a percentage),
            rounded.
        ``accuracy``, ``accuracy_low``, ``accuracy_high`` : (source, classifier)
            In [0, 1]; Wilson 95 % interval of the nearest whole number of rows. On a source with one label
            it is the recall or the specificity.
        ``f1`` : (source, classifier)
            In [0, 1]; nan on sources without positives, where it is undefined (the notebook prints 0).
        ``threshold`` : (source, classifier)
            On the probability.
        ``mean_accuracy`` : (scope, classifier)
            Weighted by rows, over "all" sources and over "mixed" ones.
        ``mean_f1`` : (scope, classifier)
            Weighted by rows, over the sources where it is defined.
        ``quoted_auc`` : (protocol)
            The paper's pooled AUROC of the raw logistic model: "cv" 0.996, "same-source" 0.997, "lodo"
            0.912. No per-source AUROC is public.

    Raises
    ------
    InputError
        If the shipped tables are missing or damaged.

    Notes
    -----
    arXiv 2602.14161, Tables 1 and 3, and the authors' notebook. Mosscap is held out together with 114
    rows of gandalf_summarization.

    Examples
    --------
    >>> published = load_published_lodo()
    >>> raw = published.sel(classifier="raw_logistic, constant 0.5")
    >>> raw.accuracy.size, round(100 * float(raw.mean_accuracy.sel(scope="mixed")), 1)
    (17, 74.1)
    """
    rows = _table("lodo_accuracy.csv", folder)
    rows["classifier"] = rows["classifier"] + ", " + rows["threshold_strategy"]
    sources = list(dict.fromkeys(rows["held_out_dataset"]))
    classifiers = list(dict.fromkeys(rows["classifier"]))
    if len(rows) != len(sources) * len(classifiers):
        raise InputError("lodo_accuracy.csv does not have one row per source and classifier; restore it")
    wide = rows.pivot(index="held_out_dataset", columns="classifier").loc[sources]

    def cells(name: str) -> np.ndarray:
        return wide[name][classifiers].to_numpy(dtype=np.float64)

    n = wide["n"][classifiers[0]].to_numpy(dtype=np.int64)
    listed = _table("lodo_datasets.csv", folder).set_index("dataset")
    listed["positives"] = (listed["n"] * listed["malicious_pct"] / 100).round()
    parts = [list(_MERGED.get(source, (source,))) for source in sources]
    positives = np.array([listed.loc[part, "positives"].sum() for part in parts], dtype=np.int64)
    if [listed.loc[part, "n"].sum() for part in parts] != n.tolist():
        raise InputError("lodo_datasets.csv and lodo_accuracy.csv count different rows; restore them")
    kind = np.select([positives == 0, positives == n], [KINDS[2], KINDS[1]], KINDS[0])
    accuracy = cells("accuracy_pct") / 100
    low, high = wilson_interval(np.rint(accuracy * n[:, np.newaxis]), n[:, np.newaxis])
    f1 = np.where((positives > 0)[:, np.newaxis], cells("f1_pct") / 100, np.nan)
    quoted = _table("quoted_figures.csv", folder)
    quoted = quoted[(quoted["arxiv_id"] == "2602.14161") & (quoted["quantity"] == "pooled_auc")]
    scopes = {"all": np.ones(len(sources), dtype=bool), "mixed": kind == KINDS[0]}
    table, per_scope = ("source", "classifier"), ("scope", "classifier")
    return xr.Dataset(
        {
            "n": ("source", n),
            "positives": ("source", positives),
            "positive_share": ("source", positives / n),
            "kind": ("source", kind),
            "accuracy": (table, accuracy),
            "accuracy_low": (table, low),
            "accuracy_high": (table, high),
            "f1": (table, f1),
            "threshold": (table, cells("threshold")),
            "mean_accuracy": (per_scope, [_weighted(accuracy, n, rows) for rows in scopes.values()]),
            "mean_f1": (per_scope, [_weighted(f1, n, rows) for rows in scopes.values()]),
            "quoted_auc": ("protocol", quoted["low"].to_numpy(dtype=np.float64)),
        },
        {
            "source": sources,
            "classifier": classifiers,
            "scope": list(scopes),
            "protocol": ["cv", "same-source", "lodo"],
        },
        {"title": "Published LODO accuracies of prompt-attack classifiers", "provenance": SOURCE},
    )


def load_published_retention(*, folder: str | Path | None = None) -> xr.Dataset:
    """Load the 20 features whose retention the authors' notebook prints: 5 of each quadrant.

    Parameters
    ----------
    folder : str or pathlib.Path, optional
        Where the published tables are; by default the ones that ship.

    Returns
    -------
    xarray.Dataset
        Over ``feature``, with what of `retention` is public: ``coefficient``, ``retention``,
        ``argmin_source``, ``firing_ratio``, ``sign_flip``; and ``quadrant``, the name that the notebook
        prints. The notebook counts 14 shortcuts among its 50 largest features; ``printed_shortcuts`` over
        ``source`` says on which sources they depend.

    Raises
    ------
    InputError
        If the shipped tables are missing.

    Notes
    -----
    The 20 are a choice, so shares among them mean nothing.

    Examples
    --------
    >>> features = load_published_retention()
    >>> features.sizes["feature"], int(features.sign_flip.sum()), int(features.printed_shortcuts.sum())
    (20, 2, 14)
    """
    rows = _table("lodo_sae_features.csv", folder)
    counts = _table("lodo_shortcut_dependency_counts.csv", folder)
    sources = list(dict.fromkeys([*counts["dataset"], *rows["depends_on"]]))
    printed = counts.set_index("dataset")["n_shortcut_features"].reindex(sources, fill_value=0)
    result = xr.Dataset(
        {
            "coefficient": ("feature", rows["coefficient"].to_numpy(dtype=np.float64)),
            "retention": ("feature", rows["retention"].to_numpy(dtype=np.float64)),
            "sign_flip": ("feature", rows["retention"].to_numpy(dtype=np.float64) < 0),
            "argmin_source": ("feature", rows["depends_on"].to_numpy(dtype=str)),
            "firing_ratio": ("feature", rows["firing_ratio"].to_numpy(dtype=np.float64)),
            "quadrant": ("feature", rows["quadrant_name"].to_numpy(dtype=str)),
            "printed_shortcuts": ("source", printed.to_numpy(dtype=np.int64)),
        },
        {"feature": rows["feature"].astype(str).to_numpy(dtype=str), "source": sources},
        {"title": "Printed features of a sparse autoencoder", "provenance": SOURCE},
    )
    return describe(result)


def _weighted(values: np.ndarray, n: np.ndarray, rows: np.ndarray) -> list[float]:
    """Return the mean of each column over some rows, weighted by n; undefined values are left out."""
    means = []
    for column in values.T:
        known = rows & ~np.isnan(column)
        means.append(float(np.average(column[known], weights=n[known])) if known.any() else float("nan"))
    return means


def _table(name: str, folder: str | Path | None) -> pd.DataFrame:
    path = (data_dir() / "published" if folder is None else Path(folder)) / name
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; restore it")
    return pd.read_csv(path, dtype={"arxiv_id": str})
