"""What the page of held-out sources shows, from the core's answers: rows of its figures, texts, answer tables.

A `Subject` is one case with one classifier. Its rows are data frames, the same that the page offers as CSV; its
answer tables hold every stop of the two sliders.
"""

from __future__ import annotations

import html
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

import leakviz
from dashboards.live import words
from leakviz.decimals import stops
from leakviz.lodo.compare import compare
from leakviz.lodo.fits import MODELS, UNDIVIDED, class_weight_of
from leakviz.lodo.inputs import check_labelled
from leakviz.lodo.words import SHARES, adding_up, level_of, loss_interval, lost_within, noise_fails, undivided

T = TypeVar("T")

PUBLISHED, OWN = "published", "own:"
THRESHOLDS = stops("-0.5", "1", "0.01")
FIRING = stops("1", "4", "0.05")
TOP = 10  # features whose place is compared before and after weighting
MOST_SOURCES = 40  # in a figure: the largest
MOST_IN_MATRIX = 30
MOST_DRAWN = 2_000  # features in a figure: those with the largest coefficients
MOST_CELLS = 20_000_000  # attributions, as the core limits them
MOST_ABLATED = 20_000_000  # numbers in all fits of an ablation, which fits anew without each pair of sources

CASES = {
    "harm_scored_responses": "harm in responses, 10 files",
    "prompt_attacks": "prompt attacks, 18 sources",
    "penguins": "penguins, 3 species",
    PUBLISHED: "prompt attacks, as published",
}
CLASSIFIERS = {
    "tfidf": "logistic on TF-IDF",
    "minilm": "logistic on MiniLM",
    "logistic": "logistic, balanced",
    "logistic-unweighted": "logistic, unweighted",
    "forest": "random forest, balanced",
    "linear-svm": "linear SVM, balanced",
    "boosting": "boosted trees, balanced",
    "raw_logistic, constant 0.5": "logistic on activations, cut 0.5",
    "raw_logistic, precision 0.95": "logistic on activations, cut for precision 0.95",
    "raw_dann, constant 0.5": "domain-adversarial net, cut 0.5",
    "sae_logistic, constant 0.5": "logistic on SAE features, cut 0.5",
}
METRICS = {
    "auc": "AUROC",
    "accuracy": "accuracy",
    "recall": "recall",
    "specificity": "specificity",
    "f1": "F1",
}
BASELINES = {"cv": "cross-validation", "same-source": "same source, held out"}
OF_ONE_LABEL = {"positive only": "recall", "negative only": "specificity"}
QUADRANTS = ("pure shortcut", "context-dependent", "robust, correlated", "robust, specific")


@dataclass(frozen=True, eq=False)
class Subject:
    """One case with one classifier.

    Attributes
    ----------
    case, model : str
        As a link names them.
    title, source : str
        On the screen; plain text, in which a user's file name may be.
    result : xarray.Dataset
        As `leakviz.lodo` returns it; of the published case what `leakviz.load_published_lodo` returns.
    retention : xarray.Dataset or None
        As `leakviz.retention` returns it.
    attributions : xarray.Dataset or None
        As `leakviz.weighted_attributions` returns it.
    ablation : xarray.Dataset or None
        As `leakviz.ablate_shortcuts` returns it.
    why_not : str
        Why there is no ablation, where something was computed without it.
    told : str
        How it was computed, if that is not plain from the case.
    file : dict or str
        The user's file that it was read from, as a report says it; or a sentence on why no command line can read that.
    """

    case: str
    model: str
    title: str
    source: str
    result: xr.Dataset = field(repr=False)
    retention: xr.Dataset | None = field(default=None, repr=False)
    attributions: xr.Dataset | None = field(default=None, repr=False)
    ablation: xr.Dataset | None = field(default=None, repr=False)
    why_not: str = ""
    told: str = ""
    file: Mapping[str, Any] | str = field(default="", repr=False)

    @property
    def published(self) -> bool:
        """Whether accuracies alone are there, without scores and without a baseline."""
        return self.case == PUBLISHED

    @property
    def undivided(self) -> bool:
        """Whether every source is one group or one row, so that there is nothing to hold leaving it out against."""
        return undivided(self.result)

    @property
    def metrics(self) -> list[str]:
        """What can be shown of each source."""
        return ["accuracy", "f1"] if self.published else ["auc", "accuracy", "recall", "specificity"]

    @property
    def baselines(self) -> list[str]:
        """What leaving a source out can be compared with."""
        return ["cv"] if self.published else [str(b) for b in self.result["baseline"].values]

    def on_rows_of(self, baseline: str) -> xr.Dataset:
        """Return the result on the rows that a baseline scores: what is left out is judged on the same ones."""
        if self.published:
            return self.result
        return kept_of(self, ("rows of", baseline), lambda: _matched(self, baseline))

    def ranked(self, baseline: str) -> xr.Dataset:
        """Return what AUROCs are read from: as `on_rows_of`, or all rows where on those no gap is defined."""
        if self.published or not math.isnan(float(self.result["gap"].sel(baseline=baseline, scope="all"))):
            return self.on_rows_of(baseline)
        return self.result

    def name_of(self, source: str) -> str:
        """Return what a source is called in every figure, list and sentence."""
        return _names(self).get(source, source)

    @property
    def n_rows(self) -> int:
        """How many rows can be explained."""
        return self.attributions.sizes["row"] if self.attributions is not None else 0


def classifiers(case: str) -> list[str]:
    """Return the classifiers of a case that ships, the one to begin with first.

    Examples
    --------
    >>> classifiers("penguins")
    ['logistic', 'forest']
    """
    if case == PUBLISHED:
        return [str(c) for c in leakviz.load_published_lodo()["classifier"].values]
    found = leakviz.lodo_cases(case=case)["model"].tolist()
    first = {"harm_scored_responses": "logistic"}.get(case, found[0])
    return [first, *(m for m in found if m != first)]


@lru_cache(maxsize=32)
def shipped(case: str, model: str) -> Subject:
    """Return a case that ships, once per process."""
    if case == PUBLISHED:
        result = leakviz.load_published_lodo()
        return Subject(
            case,
            model,
            result.attrs["title"],
            result.attrs["provenance"],
            result,
            leakviz.load_published_retention() if model.startswith("sae") else None,
        )
    listed = leakviz.lodo_cases(case=case).set_index("model").loc[model]
    kept = leakviz.load_retention(listed["name"]) if listed["retention"] else None
    return Subject(
        case,
        model,
        str(listed["title"]),
        str(listed["source"]),
        leakviz.load_lodo(listed["name"]),
        kept,
        None
        if kept is None or "null_retention" not in kept
        else explained(leakviz.load_lodo_data(case).X, kept),
        leakviz.load_ablation(listed["name"]) if listed["ablation"] else None,
    )


def explained(X: NDArray[np.float64], kept: xr.Dataset) -> xr.Dataset:
    """Return the attributions of as many rows as the core takes at once."""
    return leakviz.weighted_attributions(X[: max(1, MOST_CELLS // X.shape[1])], kept, k=TOP)


def computed(
    table: Any,
    *,
    model: str,
    case: str,
    title: str,
    source: str,
    progress: Callable[[str, int, int], None] | None = None,
    n_jobs: int = -1,
) -> Subject:
    """Leave out each source of a table, and measure what its features' coefficients keep.

    Parameters
    ----------
    table : leakviz.lodo.table.SourceTable
    model : str
        A name of `leakviz.lodo.fits.MODELS`.
    case, title, source : str
        As in `Subject`.
    progress : callable, optional
        Takes what is being done, and how much of how much; may raise, which stops the work.
    n_jobs : int

    Raises
    ------
    leakviz.InputError
        As `leakviz.lodo` and `leakviz.retention`.
    """

    def hear(what: str) -> Any:
        return None if progress is None else lambda done, total: progress(what, done, total)

    common: dict[str, Any] = {"groups": table.groups, "n_jobs": n_jobs}
    result = leakviz.lodo(
        table.X, table.y, table.source, model=MODELS[model](), progress=hear("Leaving sources out"), **common
    ).assign_attrs(title=title, source_hash=table.content_hash, **table.named_columns())
    kept = attributions = None
    weight = class_weight_of(model)
    linear = model in ("logistic", "logistic-unweighted")
    if linear:
        kept = leakviz.retention(
            table.X,
            table.y,
            table.source,
            features=table.features,
            class_weight=weight,
            progress=hear("Fitting coefficients without each source"),
            **common,
        ).assign_attrs(title=title, source_hash=table.content_hash)
        attributions = explained(table.X, kept)
    ablation, why_not = None, ""
    if linear:
        ablation, why_not = _ablated(table, common | {"class_weight": weight}, hear("Taking shortcuts away"))
    return Subject(case, model, title, source, result, kept, attributions, ablation, why_not)


def _ablated(table: Any, common: dict[str, Any], progress: Any) -> tuple[xr.Dataset | None, str]:
    """Take the shortcuts of a table away where that is not too long; or say why not."""
    sources = len(set(table.source.tolist()))
    if sources**2 * table.X.shape[0] * table.X.shape[1] > MOST_ABLATED:
        return None, (
            "A table of this size is not ablated here, since the model is fitted anew without each pair of sources: the "
            "command leakviz lodo with --ablation does it."
        )
    try:
        found = leakviz.ablate_shortcuts(
            table.X, table.y, table.source, features=table.features, progress=progress, **common
        )
    except leakviz.InputError as error:
        return None, f"There is no ablation: {error}."
    return found, ""


def shown_names(sources: Sequence[str], most: int = 24) -> list[str]:
    """Return short names of sources: what all begin with is left out, and what is too long is cut.

    The names of one source differ with what it stands among: a page takes them from `Subject.name_of`.

    Examples
    --------
    >>> shown_names(["harm_hate_speech", "harm_privacy"])
    ['hate speech', 'privacy']
    >>> shown_names(["site_1", "site_2"])
    ['site 1', 'site 2']
    """
    names = [" ".join(str(s).split()) for s in sources]
    heads = {n.split("_", 1)[0] for n in names}
    if len(heads) == 1 and len(names) > 1 and all("_" in n for n in names):
        rest = [n.split("_", 1)[1] for n in names]
        names = rest if all(any(c.isalpha() for c in n) for n in rest) else names
    names = [n.replace("_", " ") for n in names]
    cut = [n if len(n) <= most else f"{n[: most - 6]}…{n[-5:]}" for n in names]
    return [c if cut.count(c) == 1 else f"{c[: most - 4]} ({i + 1})" for i, c in enumerate(cut)]


def feature_names(features: Sequence[str], most: int = 28) -> list[str]:
    """Return short names of features, each another one.

    Examples
    --------
    >>> feature_names(["age", "a very long name of a laboratory value", "a very long name of a different value"])
    ['age', 'a very long name of…ry value', 'a very long name of…nt value']
    """
    flat = [" ".join(str(f).split()) for f in features]
    cut = [f if len(f) <= most else f"{f[: most - 9]}…{f[-8:]}" for f in flat]
    seen: dict[str, int] = {}
    for k, name in enumerate(cut):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            cut[k] = f"{name} ({seen[name]})"
    return cut


def three(value: Any, *, plus: bool = False) -> str:
    """Write a number with three decimals and a proper minus sign.

    Examples
    --------
    >>> three(-0.0004), three(-0.05), three(float("nan"))
    ('0.000', '−0.050', 'undefined')
    """
    number = float(value)
    if math.isnan(number):
        return "undefined"
    rounded = round(number, 3) + 0.0
    return f"{rounded:{'+' if plus else ''}.3f}".replace("-", "−")


def percent(value: Any, digits: int = 1) -> str:
    """Write a share.

    Examples
    --------
    >>> percent(0.741377)
    '74.1 %'
    """
    number = float(value)
    return "undefined" if math.isnan(number) else f"{100 * number:.{digits}f} %"


def span(low: Any, high: Any) -> str:
    """Write an interval.

    Examples
    --------
    >>> span(0.1, 0.25)
    '0.100 to 0.250'
    """
    return "undefined" if math.isnan(float(low)) else f"{three(low)} to {three(high)}"


# ---- the same rows, the same names


_KEPT: weakref.WeakKeyDictionary[Subject, dict[tuple, Any]] = weakref.WeakKeyDictionary()


def kept_of(subject: Subject, key: tuple, make: Callable[[], T]) -> T:
    """Return what is made of a subject for a key, made once per process and kept as long as the subject lives."""
    of = _KEPT.setdefault(subject, {})
    if key not in of:
        of[key] = make()
    return of[key]


def _once(make: Callable[[Subject], T]) -> Callable[[Subject], T]:
    """Keep what is made of a subject: sessions that show the same share it."""

    @wraps(make)
    def once(subject: Subject) -> T:
        return kept_of(subject, (make,), lambda: make(subject))

    return once


def _matched(subject: Subject, baseline: str) -> xr.Dataset:
    """Compare a baseline with the left-out sources on the rows that both score.

    Nothing is fitted: the core compares once more, with the scores of the other rows taken away. Intervals over
    sources are those of `leakviz.lodo`, which compares the gap on these rows already.
    """
    of = subject.result
    both = [baseline, "lodo"]
    scores = of["score"].sel(protocol=both).transpose("protocol", "seed", "row").values
    called = of["called"].sel(protocol=both).transpose("protocol", "seed", "row").values
    known = ~np.isnan(scores).any(axis=0)
    if known.all():
        return of
    labelled = check_labelled(of["label"].values, of["source"].values[of["source_code"].values])
    return compare(
        dict(zip(both, np.where(known, scores, np.nan), strict=True)),
        dict(zip(both, np.where(known, called, -1).astype(np.int8), strict=True)),
        labelled,
        level=of.attrs["level"],
        bootstrap=1,
        seed=0,
    )


@_once
def _names(subject: Subject) -> dict[str, str]:
    """Return the shown name of each source: one per source, wherever it is named."""
    of = [subject.result, *([subject.retention] if subject.retention is not None else [])]
    sources = list(dict.fromkeys(str(s) for part in of for s in part["source"].values))
    return dict(zip(sources, shown_names(sources), strict=True))


# ---- gap


def gap_rows(subject: Subject, metric: str, baseline: str) -> pd.DataFrame:
    """Return one row per pooled value and per source: baseline, LODO and what is between them.

    Parameters
    ----------
    subject : Subject
    metric : {"auc", "accuracy", "recall", "specificity", "f1"}
    baseline : {"cv", "same-source"}

    Returns
    -------
    pandas.DataFrame
        ``group`` ("pooled", "source", "one label"), ``name``, ``source``, ``metric``, ``n``, the values
        ``baseline`` and ``lodo`` with ``_low`` and ``_high``, ``gap`` with ``gap_low`` and ``gap_high`` (paired, over
        rows) and ``gap_source_low`` and ``gap_source_high`` (over sources). Largest gap first in each group.
        What is undefined is nan; a source where both values are is left out. Where every source is one group or one
        row, no baseline is defined.
    """
    if subject.published:
        return _published_rows(subject, metric)
    of, whole = subject.on_rows_of(baseline), subject.result
    sources = of["source"].values.astype(str).tolist()
    names, kinds, n = [*map(subject.name_of, sources)], of["kind"].values.tolist(), of["n"].values
    ends, suffixes = {"baseline": baseline, "lodo": "lodo"}, ("", "_low", "_high")
    at = of.sel(protocol=list(ends.values()))
    ranked = subject.ranked(baseline).sel(protocol=list(ends.values()))
    values = {"auc": [ranked[f"source_auc{s}"].transpose("protocol", "source").values for s in suffixes]}
    for rate in at["metric"].values.tolist():
        chosen = at.sel(metric=rate)
        values[rate] = [chosen[f"rate{s}"].transpose("protocol", "source").values for s in suffixes]
    rows = [*(_pooled_auc(whole, baseline) if metric == "auc" else _pooled_rate(of, metric, baseline))]
    for k, source in enumerate(sources):
        own = OF_ONE_LABEL.get(kinds[k], "auc") if metric == "auc" else metric
        row: dict[str, Any] = {
            "group": "source" if kinds[k] == "mixed" or metric != "auc" else "one label",
            "name": names[k],
            "source": source,
            "metric": METRICS[own],
            "n": int(n[k]),
        }
        for e, end in enumerate(ends):
            row |= {f"{end}{s}": float(values[own][i][e, k]) for i, s in enumerate(suffixes)}
        row["gap"] = row["baseline"] - row["lodo"]
        if not (math.isnan(row["baseline"]) and math.isnan(row["lodo"])):
            rows.append(row)
    found = pd.DataFrame(rows)
    if subject.undivided:
        found[[c for c in found.columns if c.startswith(("baseline", "gap"))]] = math.nan
    return _ordered(found)


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    order = {"pooled": 0, "source": 1, "one label": 2}
    for name in ("gap_low", "gap_high", "gap_source_low", "gap_source_high"):
        if name not in rows:
            rows[name] = np.nan
    rank = np.where(rows["group"] == "pooled", np.arange(len(rows)), -rows["gap"].fillna(-rows["lodo"]))
    return (
        rows.assign(_group=rows["group"].map(order), _rank=rank)
        .sort_values(["_group", "_rank"], kind="stable")
        .drop(columns=["_group", "_rank"])
        .reset_index(drop=True)
    )


def _pooled_auc(of: xr.Dataset, baseline: str) -> list[dict[str, Any]]:
    """Return the pooled AUROC over all sources and over those with both labels, and the mean within sources."""
    rows = []
    single = int((of["kind"] != "mixed").sum())
    undefined = math.isnan(float(of["gap"].sel(baseline=baseline, scope="all")))
    for scope, name in (("all", "pooled"), ("mixed", "pooled, mixed sources"))[: 2 if single else 1]:
        at = of.sel(scope=scope)
        gap = at.sel(baseline=baseline)
        row: dict[str, Any] = {
            "name": name,
            "baseline": float(at["auc"].sel(protocol=baseline))
            if undefined
            else float(gap["matched_lodo_auc"]) + float(gap["gap"]),
            "gap": float(gap["gap"]),
            "lodo": float(gap["matched_lodo_auc"]),
        }
        rows.append(
            row | {n: float(gap[n]) for n in ("gap_low", "gap_high", "gap_source_low", "gap_source_high")}
        )
    at = of.sel(scope="all", baseline=baseline)
    first, left_out, lost = lost_within(of, baseline)
    if math.isnan(lost):
        first, left_out = (float(at["within_mean"].sel(protocol=p)) for p in (baseline, "lodo"))
    row = {"name": "mean within sources", "baseline": first, "gap": lost, "lodo": left_out}
    rows.append(
        row | {f"gap_source_{end}": float(at[f"gap_within_mean_source_{end}"]) for end in ("low", "high")}
    )
    n = int(of["n"].sum())
    fixed: dict[str, Any] = {"group": "pooled", "source": "", "metric": "AUROC", "n": n}
    return [fixed | row for row in rows if not math.isnan(row["baseline"])]


def _pooled_rate(of: xr.Dataset, metric: str, baseline: str) -> list[dict[str, Any]]:
    single = int((of["kind"] != "mixed").sum())
    rows = []
    for scope, name in (("all", "pooled"), ("mixed", "pooled, mixed sources"))[: 2 if single else 1]:
        row: dict[str, Any] = {"group": "pooled", "name": name, "source": "", "metric": METRICS[metric]}
        for end, protocol in (("baseline", baseline), ("lodo", "lodo")):
            at = of.sel(scope=scope, metric=metric, protocol=protocol)
            for suffix in ("", "_low", "_high"):
                row[f"{end}{suffix}"] = float(at[f"pooled_rate{suffix}"])
            row["n"] = int(at["pooled_rate_n"]) if np.isfinite(float(at["pooled_rate_n"])) else 0
        row["gap"] = row["baseline"] - row["lodo"]
        rows.append(row)
    return [row for row in rows if not math.isnan(row["lodo"])]


def _published_rows(subject: Subject, metric: str) -> pd.DataFrame:
    of = subject.result.sel(classifier=subject.model)
    rows: list[dict[str, Any]] = []
    empty = dict.fromkeys(
        ("baseline", "baseline_low", "baseline_high", "lodo_low", "lodo_high", "gap"), math.nan
    )
    mixed = int((of["kind"] == "mixed").sum())
    for scope, name in (("all", f"all {of.sizes['source']}, by rows"), ("mixed", f"{mixed} mixed, by rows")):
        chosen = np.ones(of.sizes["source"], dtype=bool) if scope == "all" else of["kind"].values == "mixed"
        value = float(of[f"mean_{metric}"].sel(scope=scope))
        row: dict[str, Any] = {"group": "pooled", "name": name, "source": "", "metric": METRICS[metric]}
        rows.append(empty | row | {"n": int(of["n"].values[chosen].sum()), "lodo": value})
    for k, name in enumerate(map(subject.name_of, of["source"].values.astype(str))):
        kind = str(of["kind"].values[k])
        own = OF_ONE_LABEL.get(kind, "accuracy") if metric == "accuracy" else METRICS[metric]
        row = {
            "group": "one label" if kind != "mixed" and metric == "accuracy" else "source",
            "name": name,
            "source": str(of["source"].values[k]),
            "metric": own,
            "n": int(of["n"].values[k]),
            "lodo": float(of[metric].values[k]),
        }
        if metric == "accuracy":
            row |= {f"lodo_{end}": float(of[f"accuracy_{end}"].values[k]) for end in ("low", "high")}
        if not math.isnan(row["lodo"]):  # F1 without positives is undefined
            rows.append(empty | row)
    return _ordered(pd.DataFrame(rows))


# ---- where from, composition


def pair_rows(subject: Subject, protocol: str, scope: str, baseline: str = "cv") -> pd.DataFrame | None:
    """Return the AUROC of the positives of one source against the negatives of another, for each pair of sources.

    Parameters
    ----------
    subject : Subject
    protocol : {"cv", "same-source", "lodo"}
    scope : {"all", "mixed"}
    baseline : {"cv", "same-source"}
        Of which rows.
    """
    if subject.published or (subject.undivided and protocol != "lodo"):
        return None
    of = subject.ranked(baseline)
    kept = np.ones(of.sizes["source"], dtype=bool) if scope == "all" else of["kind"].values == "mixed"
    at = of.sel(protocol=protocol).isel(positive_source=kept, negative_source=kept)
    frame = at[["pair_auc", "pairs"]].to_dataframe().reset_index()
    if frame["pair_auc"].isna().all():
        return None  # nothing to draw: `heading` says why
    return frame[["positive_source", "negative_source", "pair_auc", "pairs"]]


def composition_rows(subject: Subject) -> pd.DataFrame:
    """Return rows, positives and kind of each source, the largest first."""
    of = subject.result
    columns = [
        name
        for name in (
            "n",
            "positives",
            "positive_share",
            "kind",
            "shared_rows",
            "repeated_rows",
            "identity_recall",
        )
        if name in of
    ]
    frame = pd.DataFrame({"source": of["source"].values.astype(str), **{c: of[c].values for c in columns}})
    frame.insert(1, "name", [*map(subject.name_of, frame["source"])])
    return frame.sort_values("n", ascending=False, kind="stable").reset_index(drop=True)


# ---- retention


def feature_rows(subject: Subject) -> pd.DataFrame | None:
    """Return what is known of each feature, the largest coefficients first."""
    of = subject.retention
    if of is None:
        return None
    names = [
        *("coefficient", "coefficient_low", "coefficient_high", "retention", "sign_flip", "argmin_source"),
        *("undefined", "null_median", "firing_ratio", "quadrant"),
    ]
    columns = {name: of[name].values for name in names if name in of}
    frame = pd.DataFrame({"feature": of["feature"].values.astype(str), **columns})
    order = np.argsort(-np.abs(frame["coefficient"].to_numpy()), kind="stable")
    return frame.iloc[order].reset_index(drop=True)


def hanging(subject: Subject, threshold: float, most: int = 20) -> tuple[pd.DataFrame, int]:
    """Return the features whose coefficient hangs on one source, and how many there are: the lowest retention first.

    Parameters
    ----------
    subject : Subject
    threshold : float
        A feature that keeps less hangs on a source.
    most : int
        How many rows are returned.

    Returns
    -------
    pandas.DataFrame, int
        ``feature``, ``coefficient``, ``retention``, ``source``, named as on the page.
    """
    rows = feature_rows(subject)
    if rows is None:
        return pd.DataFrame(columns=["feature", "coefficient", "retention", "source"]), 0
    rows = rows[rows["retention"] < threshold].sort_values("retention", kind="stable")
    shown = rows.head(most)
    return pd.DataFrame(
        {
            "feature": feature_names(shown["feature"].tolist()),
            "coefficient": shown["coefficient"].to_numpy(),
            "retention": shown["retention"].to_numpy(),
            "source": [*map(subject.name_of, shown["argmin_source"].astype(str))],
        }
    ), len(rows)


def drawn_features(subject: Subject) -> xr.Dataset | None:
    """Return the features that are drawn: with a retention, those with the largest coefficients."""
    of = subject.retention
    if of is None:
        return None
    known = np.flatnonzero(~np.isnan(of["retention"].values))
    order = np.argsort(-np.abs(of["coefficient"].values[known]), kind="stable")[:MOST_DRAWN]
    return of.isel(feature=known[order])


def points_of(subject: Subject) -> pd.DataFrame:
    """Return the features that are drawn, under the names that they and their sources have on the page."""
    drawn = drawn_features(subject)
    assert drawn is not None
    frame = drawn[["coefficient", "retention", "argmin_source"]].to_dataframe().reset_index()
    return frame.assign(
        feature=feature_names(frame["feature"].tolist()),
        argmin_source=[*map(subject.name_of, frame["argmin_source"])],
    )


def argmin_order(of: xr.Dataset) -> list[str]:
    """Return the sources on which features hang most, the one with the most features first."""
    names, counts = np.unique(of["argmin_source"].values.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [str(n) for n in names[order] if n]


def why_no_firing(subject: Subject) -> str:
    """Say why there are no quadrants; "" where there are."""
    of = subject.retention
    if of is None or has_firing(subject):
        return ""
    if "firing_ratio" not in of:
        return (
            "There are no quadrants here: they need the share of rows in which a feature is above 0 in each class, and the "
            "words and rows behind these coefficients are not shipped."
        )
    ratios = of["firing_ratio"].values
    why = (
        "each of these features is below 0 in some row"
        if np.isnan(ratios).all()
        else "those of these features that are never below 0 are above 0 in every row"
    )
    return (
        f"There are no quadrants here: a firing ratio compares how often a feature fires (is above 0) in the two classes, "
        f"and {why}. Words that occur or not, counts and flags have one."
    )


def has_firing(subject: Subject) -> bool:
    """Tell whether firing ratios say something: some are there, and not all are 1."""
    of = subject.retention
    if of is None or "firing_ratio" not in of:
        return False
    ratios = of["firing_ratio"].values
    ratios = ratios[~np.isnan(ratios)]
    return bool((ratios != 1.0).any())


@_once
def retention_answers(subject: Subject) -> xr.Dataset:
    """Return everything that `retention threshold` shows, at every stop.

    Returns
    -------
    xarray.Dataset
        Over ``retention_threshold``: the features that are filled, the line, and the texts ``say_*``.
    """
    at = xr.DataArray(THRESHOLDS, {"retention_threshold": THRESHOLDS}, ("retention_threshold",))
    table: dict[str, Any] = {
        "line": at.variable,
        "shade_right": (("retention_threshold", "one"), THRESHOLDS[:, np.newaxis]),
        "say_threshold": words(lambda v: f"{v:.2f}".replace("-", "−"), at),
    }
    of = subject.retention
    if of is None:
        empty = np.zeros((THRESHOLDS.size, 0), dtype=bool)
        texts = dict.fromkeys(
            ("say_count", "say_of", "say_share", "say_null", "say_null_median", "say_most"), ((), "")
        )
        return xr.Dataset(
            {**table, **texts, "shortcut": (("retention_threshold", "point"), empty)}, at.coords
        )
    sweep = leakviz.sweep_retention(of, thresholds=THRESHOLDS, firing_ratios=FIRING)
    drawn = drawn_features(subject)
    assert drawn is not None
    below = drawn["retention"].values < THRESHOLDS[:, np.newaxis]
    count, share = sweep["n_shortcuts"], sweep["share"]
    table["shortcut"] = (("retention_threshold", "point"), below)
    table["say_count"] = words(lambda k: f"{k:,}", count)
    table["say_of"] = ((), f"{int(sweep['n_defined']):,}")
    table["say_share"] = words(percent, share)
    table["say_null"] = table["say_null_median"] = ((), "")
    if "null_share" in sweep:
        ends = [sweep[f"null_share{end}"] for end in ("", "_low", "_high")]
        table["say_null"] = words(
            lambda v, low, high: f"{percent(v)} (90 % of draws: {percent(low)} to {percent(high)})", *ends
        )
    elif "null_median_share" in sweep:
        table["say_null"] = words(
            lambda v: f"{percent(v)} (features whose median over shuffled sources is below)",
            sweep["null_median_share"],
        )
    table["say_most"] = _most(subject, sweep)
    return xr.Dataset(table, at.coords)


def _most(subject: Subject, sweep: xr.Dataset) -> xr.DataArray:
    """Say on which sources the shortcuts hang."""
    names = [subject.name_of(str(s)) for s in sweep["source"].values]

    def say(*counts: int) -> str:
        order = sorted(range(len(counts)), key=lambda k: -counts[k])[:3]
        told = [f"{names[k]} {counts[k]}" for k in order if counts[k]]
        return ", ".join(told) if told else "none"

    by_source = sweep["shortcuts_by_source"]
    texts = [say(*row) for row in by_source.transpose("retention_threshold", "source").values.tolist()]
    return xr.DataArray(texts, {"retention_threshold": THRESHOLDS}, ("retention_threshold",)).astype(object)


@_once
def quadrant_answers(subject: Subject) -> xr.Dataset:
    """Return the quadrant table at every stop of `retention threshold` and `firing ratio`.

    Returns
    -------
    xarray.Dataset
        ``quadrant_0`` to ``quadrant_3``, in the order of `QUADRANTS`, and ``say_firing``.
    """
    coords = {"retention_threshold": THRESHOLDS, "firing_ratio": FIRING}
    ratio = xr.DataArray(FIRING, {"firing_ratio": FIRING}, ("firing_ratio",))
    table: dict[str, Any] = {"say_firing": words(lambda v: f"{v:.2f}", ratio), "say_without": ((), "")}
    if not has_firing(subject):
        return xr.Dataset({**table, **{f"quadrant_{q}": ((), "") for q in range(4)}}, coords)
    assert subject.retention is not None
    sweep = leakviz.sweep_retention(subject.retention, thresholds=THRESHOLDS, firing_ratios=FIRING)
    for q in range(4):
        table[f"quadrant_{q}"] = words(
            lambda k: f"{k:,}", sweep["quadrant_count"].isel(quadrant=q, drop=True)
        )
    without = int(sweep["n_without_firing"])
    if without:
        table["say_without"] = ((), f"{without:,} features are ever negative, so they have no firing ratio.")
    return xr.Dataset(table, coords)


# ---- explanations


def explanation_rows(subject: Subject, row: int) -> pd.DataFrame | None:
    """Return the features that lead one row's score before or after weighting.

    Parameters
    ----------
    subject : Subject
    row : int
    """
    of = subject.attributions
    if of is None:
        return None
    at = of.isel(row=row)
    frame = pd.DataFrame(
        {
            "feature": of["feature"].values.astype(str),
            "attribution": at["attribution"].values,
            "weight": of["weight"].values,
            "weighted_attribution": at["weighted_attribution"].values,
        }
    )
    places = {}
    for name in ("attribution", "weighted_attribution"):
        order = np.argsort(-np.abs(frame[name].to_numpy()), kind="stable")
        places[name] = np.empty(len(order), dtype=int)
        places[name][order] = np.arange(1, len(order) + 1)
    k = int(of.attrs["k"])
    before, after = places["attribution"], places["weighted_attribution"]
    frame = frame.assign(place_before=before, place_after=after)
    frame.insert(1, "name", feature_names(frame["feature"].tolist()))
    shown = frame[(before <= k) | (after <= k)]
    return shown.sort_values("place_before", kind="stable").reset_index(drop=True)


def most_moved(subject: Subject) -> int:
    """Return the row whose leading features move most."""
    assert subject.attributions is not None
    return int(np.argmin(subject.attributions["jaccard"].values))


# ---- ablation


def ablation_rows(subject: Subject) -> pd.DataFrame | None:
    """Return the pooled AUROC after each step of the ablation: the features of the lowest retention go first.

    Returns
    -------
    pandas.DataFrame or None
        ``removed``; ``cv`` and ``lodo`` with ``_low`` and ``_high``; ``change`` of the latter against none removed, with
        its paired interval; ``random`` with ``_low`` and ``_high``: mean and range of the draws in which features went in
        a random order.
    """
    of = subject.ablation
    if of is None:
        return None
    frame = pd.DataFrame({"removed": of["removed"].values})
    for protocol in ("cv", "lodo"):
        at = of.sel(ablation_protocol=protocol)
        for end in ("", "_low", "_high"):
            frame[f"{protocol}{end}"] = at[f"step_auc{end}"].values
    at = of.sel(ablation_protocol="lodo")
    for end in ("", "_low", "_high"):
        frame[f"change{end}"] = at[f"step_change{end}"].values
    random = of["step_random"].transpose("draw", "removed").values
    if len(random):
        frame = frame.assign(
            random=random.mean(axis=0), random_low=random.min(axis=0), random_high=random.max(axis=0)
        )
    return frame


def ablation_words(subject: Subject) -> tuple[str, list[tuple[str, str, str, str]]]:
    """Return a sentence, and numbers: label, small print, value, interval; HTML. The case has an ablation."""
    of = subject.ablation
    assert of is not None
    dropped, many = of["n_dropped"].values, of.sizes["feature"]
    low, high = int(dropped.min()), int(dropped.max())
    count = f"{low}" if low == high else f"{low} to {high}"
    first, second = (float(v) for v in of["auc"].values)
    ends = span(of["change_low"], of["change_high"])
    says = float(of["change_low"]) > 0 or float(of["change_high"]) < 0
    told = (
        f"Without the shortcuts, <b>{count}</b> of {many:,} features, the pooled AUROC on sources left out goes from "
        f"<b>{three(first)}</b> to <b>{three(second)}</b>"
        + ("." if says else ": no change that the rows could tell from none.")
    )
    rows = [("change", "over rows, paired DeLong", three(of["change"], plus=True), ends)]
    random = of["random_change"].values
    if random.size:
        rows.append(
            (
                "control: as many features at random",
                f"{random.size} draws; beside: their range",
                three(random.mean(), plus=True),
                f"{three(random.min(), plus=True)} to {three(random.max(), plus=True)}",
            )
        )
    within = of["within_mean"].values
    if not np.isnan(within).any():
        rows.append(("mean within sources", "change", three(within[1] - within[0], plus=True), ""))
    return told, rows


# ---- sentences (HTML; names from files are escaped)


def heading(subject: Subject, metric: str, baseline: str) -> tuple[str, list[str], str]:
    """Return the sentence on top, what stands below it, and a warning or nothing; HTML."""
    if subject.published:
        return _published_heading(subject, metric)
    of = subject.result
    if subject.undivided:
        return _undivided_heading(subject, metric, baseline)
    first = {"cv": "Cross-validation", "same-source": "On held-out rows of its sources, the model"}[baseline]
    if metric != "auc":
        rows = gap_rows(subject, metric, baseline)
        pooled = rows[rows["group"] == "pooled"]
        if pooled.empty:
            return f"No source has rows of which a {METRICS[metric]} is defined.", [], _trap(subject)
        one = pooled.iloc[0]
        return (
            f"{first} has {'an' if metric == 'accuracy' else 'a'} {METRICS[metric]} of <b>{percent(one['baseline'])}</b>, and with the source left out "
            f"<b>{percent(one['lodo'])}</b>.",
            [
                f"Pooled over all rows; Wilson intervals {_percents(one, 'baseline')} and {_percents(one, 'lodo')}. "
                f"A row is called positive above a cut that is fixed without its source "
                f"({_cut(of)})."
            ],
            _trap(subject),
        )
    at, same = of.sel(scope="all", baseline=baseline), subject.ranked(baseline).sel(scope="all")
    gap, within, between = (float(at[n]) for n in ("gap", "gap_within", "gap_between"))
    auc = float(at["matched_lodo_auc"]) + gap
    if math.isnan(gap):
        known = at.sel(protocol=baseline)
        bad = (
            [(n, w) for n, w in zip(of["source"].values, of["why_not"].values, strict=True) if w]
            if "why_not" in of
            else []
        )
        why = [
            f"Without source “{html.escape(subject.name_of(str(n)))}”, {html.escape(str(w))}."
            for n, w in bad[:5]
        ]
        told = (
            f"{first} reaches an AUROC of <b>{three(known['auc'])}</b> ({span(known['auc_low'], known['auc_high'])}); with "
            "the source left out it is undefined, since the rows that can be scored have one label."
        )
        return told, why, _trap(subject)
    told = (
        f"{first} reaches an AUROC of <b>{three(auc)}</b>; with the source left out, <b>{three(at['matched_lodo_auc'])}</b>: "
        f"a gap of <b>{three(gap)}</b>. "
    )
    before, after, lost = lost_within(of, baseline)
    if math.isnan(lost):
        return told + "No source has both labels, so none has an AUROC of its own.", [], _trap(subject)
    told += (
        f"Within a source the mean AUROC goes from <b>{three(before)}</b> to <b>{three(after)}</b>: "
        f"<b>{three(abs(lost))}</b> is {'gained' if three(lost).startswith('−') else 'lost'}."
    )
    share = percent(float(same["within_share"].sel(protocol=baseline)))
    parts = adding_up(gap, within, between)
    notes = [
        f"Counted by pairs of rows, {parts[0]} of the gap is from pairs of one source ({share} of all pairs) and {parts[1]} from "
        f"pairs of two sources, whose scores are of different models: {SHARES}{_name_alone(of)} This is transfer between "
        "these sources, and nothing else."
    ]
    return told, notes, _trap(subject)


def _undivided_heading(subject: Subject, metric: str, baseline: str) -> tuple[str, list[str], str]:
    """Say what is known where no fold divides a source."""
    of = subject.result
    at = of.sel(scope="all", protocol="lodo")
    value = three(at["auc"]) if metric == "auc" else percent(at["pooled_rate"].sel(metric=metric))
    name = "AUROC" if metric == "auc" else METRICS[metric]
    told = (
        f"With the source left out, the {name} is <b>{value}</b>. What it is worth to know a source is <b>not defined</b> "
        "for this table."
    )
    known = of.sel(scope="all", protocol=baseline)
    also = three(known["auc"]) if metric == "auc" else percent(known["pooled_rate"].sel(metric=metric))
    return told, [f"{sentence(UNDIVIDED)} ({name} {also}). Name finer groups, or none."], _trap(subject)


def sentence(words: str) -> str:
    """Begin a reason as a sentence begins.

    Examples
    --------
    >>> sentence("every source is one row")
    'Every source is one row'
    """
    return words[:1].upper() + words[1:]


def _name_alone(of: xr.Dataset) -> str:
    """Say that the source decides the label, where it does."""
    if not float(of["name_auc"]) >= 0.8:
        return ""
    return f" The source’s name alone ranks the label with an AUROC of {three(of['name_auc'])}."


def _percents(row: Any, end: str) -> str:
    return f"{percent(row[f'{end}_low'])} to {percent(row[f'{end}_high'])}"


def _cut(of: xr.Dataset) -> str:
    cut = str(of.attrs.get("threshold", "0"))
    return "Youden’s, in the training rows" if cut == "youden" else f"logit {float(cut):g}"


def _trap(subject: Subject) -> str:
    """Say where the control with noise features fails, and why."""
    of = subject.result
    shown = noise_fails(of)
    if not shown:
        return ""
    mean, low, high = (three(of[f"noise_{end}"]) for end in ("mean", "low", "high"))
    single = int((of["kind"] != "mixed").sum())
    why = (
        f"{single} sources hold one label, and a model that never saw one of them has learned from fewer rows of that "
        "label: its offset moves away from the very label that it then meets"
        if single and float(of["noise_mean"]) < 0.5
        else "what a source consists of moves the offset of the model that never saw it"
    )
    cure = (
        " Balanced classes take it away: choose “logistic, balanced”."
        if subject.model == "logistic-unweighted"
        else " Read the values within sources."
    )
    return (
        f"The trap: features that know nothing get a pooled AUROC of {mean} ({low} to {high}) when the source is left "
        f"out, far from 0.5. {why[0].upper()}{why[1:]}. So part of this gap is composition, not ranking.{cure}"
        if shown == "shown"
        else f"Perhaps a trap: in {of.sizes['draw']} draws, features that know nothing get a pooled AUROC of {mean} ({low} to "
        f"{high}) when the source is left out, and not 0.5. So few draws may be chance; if they are not, {why}. Read the "
        "values within sources."
    )


def _published_heading(subject: Subject, metric: str) -> tuple[str, list[str], str]:
    of = subject.result.sel(classifier=subject.model)
    cv, same, left_out = (float(of["quoted_auc"].sel(protocol=p)) for p in ("cv", "same-source", "lodo"))
    mixed = int((of["kind"] == "mixed").sum())
    mean = of[f"mean_{metric}"]
    on_mixed = percent(mean.sel(scope="mixed"))
    quoted = (
        f"the AUROC is <b>{three(cv)}</b> cross-validated and <b>{three(left_out)}</b> with the source left out: a gap of "
        f"<b>{three(cv - left_out)}</b>"
    )
    named = CLASSIFIERS[subject.model]
    if not subject.model.startswith("raw_logistic"):  # the paper quotes AUROCs of one model alone
        kind = (
            f"is right in <b>{on_mixed}</b> of the rows of the {mixed} mixed sources"
            if metric == "accuracy"
            else f"has a mean F1 of <b>{on_mixed}</b> on the {mixed} mixed sources, weighted by rows"
        )
        told = f"As published, with the source left out, “{named}” {kind}."
        notes = [
            "No AUROC of this classifier is public. Of the logistic model on activations, pooled over all rows, "
            + quoted.replace("<b>", "").replace("</b>", "")
            + "."
        ]
    else:
        told = f"As published, {quoted}. On the {mixed} mixed sources, with the cut of this classifier, " + (
            f"<b>{on_mixed}</b> of the rows are then called right."
            if metric == "accuracy"
            else f"the mean F1 is then <b>{on_mixed}</b>."
        )
        notes = [
            f"The AUROC is the paper’s, pooled over all rows ({three(same)} on held-out rows of the same source), whatever the "
            "cut. How much of the gap is within sources and how much between them is not public, as no score of a row is."
        ]
    if metric == "f1":
        notes.append(
            "Where a source has no positives, F1 is undefined and left out; means are weighted by rows."
        )
    if metric == "accuracy":
        notes.append(
            f"{of.sizes['source'] - mixed} of the sources have one label: there an accuracy is a recall or a specificity, "
            "and a cut that calls everything positive looks perfect on half of them."
        )
    return told, notes, ""


def numbers(subject: Subject, baseline: str) -> list[tuple[str, str, str, str]]:
    """Return what is read out beside the gaps: label, small print, value, interval; HTML."""
    of = subject.result
    if subject.published:
        of = of.sel(classifier=subject.model)
        mixed = int((of["kind"] == "mixed").sum())
        return [
            (
                "accuracy, all rows",
                f"{of.sizes['source']} sources",
                percent(of["mean_accuracy"].sel(scope="all")),
                "",
            ),
            (
                "accuracy, mixed sources",
                f"{mixed} sources",
                percent(of["mean_accuracy"].sel(scope="mixed")),
                "",
            ),
            ("F1, where it is defined", "weighted by rows", percent(of["mean_f1"].sel(scope="all")), ""),
            ("F1, mixed sources", "weighted by rows", percent(of["mean_f1"].sel(scope="mixed")), ""),
        ]
    rows = []
    same, held = subject.ranked(baseline), "" if baseline == "cv" else "the same held-out rows"
    if subject.undivided:
        for name, what in (
            ("auc", "AUROC, source left out"),
            ("within_mean", "mean within sources, source left out"),
        ):
            at = same.sel(protocol="lodo", scope="all")
            ends = span(at["auc_low"], at["auc_high"]) if name == "auc" else ""
            rows.append((what, "", three(at[name]), ends))
        return [*rows, ("gap", sentence(UNDIVIDED), "not defined", "")]
    for protocol, name in ((baseline, BASELINES[baseline]), ("lodo", "source left out")):
        at = same.sel(protocol=protocol, scope="all")
        small = held if protocol == "lodo" else ""
        rows.append((f"AUROC, {name}", small, three(at["auc"]), span(at["auc_low"], at["auc_high"])))
    single = int((of["kind"] != "mixed").sum())
    for scope, name in (("all", "gap"), ("mixed", "gap, mixed sources"))[: 2 if single else 1]:
        at = of.sel(scope=scope, baseline=baseline)
        many = of.sizes["source"] if scope == "all" else of.sizes["source"] - single
        over = (
            f"too few sources ({many})"
            if bool(at["too_few_sources"])
            else span(at["gap_source_low"], at["gap_source_high"])
        )
        rows.append((name, "over rows, paired DeLong", three(at["gap"]), span(at["gap_low"], at["gap_high"])))
        rows.append(("", "over sources, bootstrap", "", over))
    at = of.sel(scope="all", baseline=baseline)
    lost = float(at["gap_within_mean"])
    if not math.isnan(lost):
        ends = span(*loss_interval(of, baseline))
        rows.append(("lost within a source, mean", "over rows, paired DeLong", three(lost), ends))
        over = (
            "too few sources"
            if bool(at["too_few_sources"])
            else span(at["gap_within_mean_source_low"], at["gap_within_mean_source_high"])
        )
        rows.append(("", "over sources, bootstrap", "", over))
    share = percent(float(same["within_share"].sel(protocol=baseline, scope="all")))
    parts = adding_up(*(float(at[name]) for name in ("gap", "gap_within", "gap_between")))
    rows.append(
        ("share of the gap, pairs of one source", f"{share} of all pairs; no source’s loss", parts[0], "")
    )
    rows.append(("share of the gap, pairs of two sources", "the rest of the pairs", parts[1], ""))
    if np.isfinite(float(at["gap_seed_sd"])):
        rows.append(
            (
                "spread over seeds",
                f"{of.sizes['seed']} seeds, standard deviation",
                three(at["gap_seed_sd"]),
                "",
            )
        )
    return rows


def split_numbers(subject: Subject, baseline: str, scope: str) -> list[tuple[str, str, str]]:
    """Return the within-source and the between-source mean of the two matrices: label, baseline, LODO."""
    at = subject.ranked(baseline).sel(scope=scope)
    rows = []
    for label, name in (
        ("mean over sources, diagonal", "within_mean"),
        ("within-source mean, over pairs", "within"),
        ("between-source mean, over pairs", "between"),
        ("all pairs: the pooled AUROC", "auc"),
    ):
        first, second = (three(at[name].sel(protocol=p)) for p in (baseline, "lodo"))
        rows.append((label, first, second))
    first, second = (percent(at["within_share"].sel(protocol=p)) for p in (baseline, "lodo"))
    rows.append(("share of pairs within a source", first, second))
    return [(label, "not defined", after) for label, _, after in rows] if subject.undivided else rows


def known_by_name(subject: Subject) -> list[tuple[str, str, str, str]]:
    """Return how far the source decides the label, and the controls: label, small print, value, reference; HTML."""
    of = subject.result
    if subject.published:
        return []
    level = level_of(of)
    if subject.undivided:
        asked = ["AUROC of the source’s name alone"]
        asked += ["source told from the features"] * ("identity_accuracy" in of)
        rows = [(name, sentence(UNDIVIDED), "not defined", "") for name in asked]
        return [*rows, *_controls(of, level)]
    ends = span(of["name_auc_null_low"], of["name_auc_null_high"])
    rows = [
        (
            "AUROC of the source’s name alone",
            f"each row scored by the share of positives among its source’s other rows; beside: labels shuffled, {ends} in 95 % "
            "of the draws",
            three(of["name_auc"]),
            f"chance: {three(of['name_auc_null'])}",
        )
    ]
    if float(of["name_auc"]) > float(of["name_auc_null_high"]):
        rows.append(
            (
                "accuracy of the source’s name alone",
                "the more frequent label of the source’s other rows",
                percent(of["name_accuracy"]),
                f"one label: {percent(of['label_majority'])}",
            )
        )
    if "identity_accuracy" in of:
        low, high = (percent(of[f"identity_{end}"]) for end in ("low", "high"))
        rows.append(
            (
                "source told from the features",
                f"{level} {low} to {high}; beside: the largest source’s share{_asked(of)}",
                percent(of["identity_accuracy"]),
                f"largest: {percent(of['identity_majority'])}",
            )
        )
    return [*rows, *_controls(of, level)]


def _asked(of: xr.Dataset) -> str:
    """Say of how many rows the source is asked, where it is not all."""
    if "identity_rows" not in of:
        return ""
    return f"; {int(of['identity_rows']):,} of {int(of['n'].sum()):,} rows: the others’ sources are one group or one row each"


def _controls(of: xr.Dataset, level: str) -> list[tuple[str, str, str, str]]:
    rows = []
    if "noise_mean" in of:
        for name, label, aim in (
            ("noise", "control: features of noise, LODO", "should be 0.5"),
            ("shuffled", "control: sources shuffled, gap", "should be 0"),
        ):
            at = [of[f"{name}_{end}"] for end in ("mean", "low", "high")]
            draws = of.sizes["draw"]
            small = "one draw, so no interval" if draws == 1 else f"{draws} draws, {level} {span(*at[1:])}"
            if name == "shuffled" and undivided(of):
                rows.append((label, "shuffling gives whole sources other names", "not defined", ""))
            else:
                rows.append((label, small, three(at[0]), aim))
    return rows


def said(subject: Subject, baseline: str) -> list[str]:
    """Return the core's sentences about a result, held against a baseline; HTML."""
    if subject.published:
        return []
    of, same = subject.result, subject.ranked(baseline)
    if same is not of:  # gaps and controls are the core's; what protocols score is of the same rows
        here = [str(n) for n, v in same.data_vars.items() if "protocol" in v.dims]
        of = of.drop_dims("protocol").assign({name: same[name] for name in here})
    return [html.escape(s) for s in leakviz.explain_lodo(of, baseline=baseline)]


def renamed(subject: Subject, title: str) -> Subject:
    """Return the same subject under another title."""
    return replace(subject, title=title)
