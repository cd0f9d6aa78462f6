"""From scores to answers: what cross-validation says, what leaving a source out says, and where they part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.errors import InputError
from leakviz.lodo.fits import UNDIVIDED, whole_sources
from leakviz.lodo.inputs import Labelled, check_labelled, fingerprint_of, whole
from leakviz.lodo.naming import JUDGED_BY_OTHERS, name_alone
from leakviz.lodo.pairs import (
    PairTable,
    auroc_gap,
    pair_table,
    percentiles,
    pooled_of,
    resample_sources,
    within_mean_of,
)
from leakviz.statistics import auroc, auroc_interval, wilson_interval

SCOPES = ("all", "mixed")
METRICS = ("accuracy", "recall", "specificity")
KINDS = ("mixed", "positive only", "negative only")
FEW_SOURCES = 5
"""Up to this many sources, no interval over sources is given."""

NO_CONTROLS = "No control was run: noise features and shuffled sources need models that are fitted anew, and only scores were given."

LONG_NAMES = {
    "score": "score of each row (logit or decision function), nan where a protocol does not score it",
    "called": "1 where the score is above the threshold, 0 where not, -1 where there is no score",
    "auc": "AUROC",
    "within": "share of pairs within a source that are ranked right",
    "within_mean": "mean of the sources' own AUROCs",
    "between": "share of pairs between two sources that are ranked right",
    "within_share": "share of pairs that are within a source",
    "pair_auc": "AUROC of the positives of one source against the negatives of another",
    "gap": "AUROC of the baseline minus AUROC with the source left out, on the same rows",
    "source_auc": "AUROC within a source",
    "rate": "accuracy, recall or specificity at the threshold",
    "positive_share": "share of rows with label 1",
    "noise_auc": "AUROC with sources left out, where the rows of X are shuffled",
    "shuffled_gap": "gap where source labels are shuffled within class",
    "shared_rows": "rows with exactly the features of a row in another source",
    "repeated_rows": "rows with exactly the features of another row in their source",
    "identity_accuracy": "share of rows whose source a model tells from X, out of fold",
    "name_auc": "AUROC of the positive share of the other rows of the source, both rows of a pair left out",
    "name_auc_null": "mean of name_auc over shuffled labels",
    "name_accuracy": "share of rows told by the majority of the other rows of their source, pairs left out",
    "name_auc_in_sample": "AUROC of the source's positive share, which a row's own label is part of",
    "name_accuracy_in_sample": "share of rows with the majority label of their source",
    "label_majority": "share of rows with the more frequent label",
}


def lodo_from_scores(
    cv: ArrayLike,
    lodo: ArrayLike,
    y: ArrayLike,
    source: ArrayLike,
    *,
    same_source: ArrayLike | None = None,
    threshold: float = 0.0,
    level: float | str = 0.95,
    bootstrap: int = 2000,
    seed: int = 0,
) -> xr.Dataset:
    """Compare cross-validation with leave-one-dataset-out (LODO), from scores that somebody has already.

    Parameters
    ----------
    cv : array-like of numbers, shape (n,) or (seeds, n)
        Out-of-fold scores of a cross-validation that mixes the sources. Logits, decision values or
        probabilities; larger means "more like label 1".
    lodo : array-like of numbers, shape (n,) or (seeds, n)
        Scores of the same rows by models that never saw the row's source.
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Labels.
    source : array-like of str or int, shape (n,)
        Where each row is from.
    same_source : array-like of numbers, shape (n,) or (seeds, n), optional
        Scores of the rows of one held-out part of every source, nan elsewhere.
    threshold : float, default 0
        A row is called positive where its score is above it. It must have been fixed without the row's
        source: 0 for logits, 0.5 for probabilities.
    level : float or decimal string, default 0.95
        Confidence of all intervals.
    bootstrap : int, default 2000
        Samples of whole sources.
    seed : int, default 0
        Of the bootstrap and of the shuffled labels.

    Returns
    -------
    xarray.Dataset
        What `lodo` returns, without what needs a model: identity of sources, ``why_not`` and the controls;
        the attribute ``controls`` says that none was run.

    Raises
    ------
    InputError
        If lengths differ, a score is missing, or `y` or `source` cannot be used.

    Notes
    -----
    See `lodo`.

    Examples
    --------
    >>> result = lodo_from_scores([3, 1, 2, 0], [3, 0, 2, 1], [1, 1, 0, 0], ["a", "b", "a", "b"])
    >>> result.gap.sel(baseline="cv", scope="all").item()
    0.25
    >>> result.source_auc.sel(protocol="lodo").values.tolist()
    [1.0, 0.0]
    """
    labelled = check_labelled(y, source)
    scores = {"cv": _scores(cv, "cv", labelled.n), "lodo": _scores(lodo, "lodo", labelled.n)}
    if same_source is not None:
        held = _scores(same_source, "same_source", labelled.n, partly=True)
        scores = {"cv": scores["cv"], "same-source": held, "lodo": scores["lodo"]}
    if not math.isfinite(threshold):
        raise InputError(f"threshold must be a finite number, got {threshold!r}")
    n_seeds = max(len(array) for array in scores.values())
    for name, array in scores.items():
        if len(array) not in (1, n_seeds):
            raise InputError(
                f"{name} has scores of {len(array)} seeds and another has {n_seeds}; give as many, or one"
            )
    scores = {name: np.broadcast_to(array, (n_seeds, labelled.n)) for name, array in scores.items()}
    called = {name: _called(array, threshold) for name, array in scores.items()}
    result = compare(scores, called, labelled, level=level, bootstrap=bootstrap, seed=seed)
    digest = fingerprint_of(None, labelled, scores={n: a.tolist() for n, a in scores.items()}, cut=threshold)
    return result.assign_coords(seed=np.arange(n_seeds)).assign_attrs(
        model="not stated", threshold=f"{threshold:g}", input_hash=digest, controls=NO_CONTROLS
    )


def compare(
    scores: Mapping[str, NDArray[np.float64]],
    called: Mapping[str, NDArray[np.int8]],
    labelled: Labelled,
    *,
    level: float | str,
    bootstrap: int,
    seed: int,
    groups: NDArray[np.int32] | None = None,
) -> xr.Dataset:
    """Return everything that follows from the scores (seeds, n) of each protocol; see `lodo`."""
    whole(bootstrap, "bootstrap", 1)
    protocols = list(scores)
    baselines = [name for name in protocols if name != "lodo"]
    mixed = labelled.mixed
    chosen = {"all": np.ones_like(mixed), "mixed": mixed}
    tables = {name: _table(scores[name], labelled) for name in protocols}
    # A gap is between scores of the same rows: those that both protocols score.
    matched = {
        name: tuple(_table(s, labelled) for s in _both(scores[name], scores["lodo"])) for name in baselines
    }
    names = list(labelled.names)
    result = xr.Dataset(
        {
            "label": ("row", labelled.y.astype(np.int8)),
            "source_code": ("row", labelled.code),
            "score": (("protocol", "seed", "row"), np.array(list(scores.values()))),
            "called": (("protocol", "seed", "row"), np.array(list(called.values()))),
        },
        {
            "source": names,
            "positive_source": names,
            "negative_source": names,
            "protocol": protocols,
            "baseline": baselines,
            "scope": list(SCOPES),
            "metric": list(METRICS),
        },
    )
    result = result.assign(
        **_composition(labelled),
        **name_alone(labelled, groups, seed),
        **_pooled(scores, tables, labelled, chosen, level),
        **_gaps(scores, matched, labelled, chosen, level, bootstrap, seed),
        **_per_source(scores, labelled, level),
        **_rates(called, labelled, level),
        pair_auc=(
            ("protocol", "positive_source", "negative_source"),
            np.array([tables[name].auc for name in protocols]),
        ),
        pairs=(
            ("protocol", "positive_source", "negative_source"),
            np.array([tables[name].pairs for name in protocols]) / len(scores["lodo"]),
        ),
        too_few_sources=("scope", [bool(chosen[scope].sum() <= FEW_SOURCES) for scope in SCOPES]),
    )
    for name, words in LONG_NAMES.items():
        if name in result:
            result[name].attrs["long_name"] = words
    result = result.assign_attrs(level=str(level), bootstrap=bootstrap)
    if whole_sources(labelled, groups):
        gaps = [str(name) for name in result.data_vars if str(name).startswith("gap")]
        return not_defined(result.assign_attrs(whole_sources="yes"), [*gaps, *JUDGED_BY_OTHERS])
    return result


def not_defined(result: xr.Dataset, names: Iterable[str]) -> xr.Dataset:
    """Return a result in which what rests on folds that divide sources is nan, with the reason as an attribute."""
    for name in names:
        long_name = result[name].attrs
        result = result.assign({name: result[name] * math.nan})
        result[name].attrs = {**long_name, "undefined": UNDIVIDED}
    return result


def _scores(values: ArrayLike, name: str, n: int, *, partly: bool = False) -> NDArray[np.float64]:
    scores = np.asarray(values)
    if scores.dtype.kind not in "biuf":
        raise InputError(f"{name} must be numbers, got the type {scores.dtype}")
    scores = np.atleast_2d(scores.astype(np.float64))
    if scores.ndim != 2 or scores.shape[1] != n:
        raise InputError(f"{name} must have the shape ({n},) or (seeds, {n}), got {np.shape(values)}")
    missing = np.isnan(scores).all(axis=1) if partly else np.isnan(scores).any(axis=0)
    if missing.any() and partly:
        raise InputError(f"{name} has no score at all for seed {int(np.argmax(missing))}")
    if missing.any():
        raise InputError(
            f"{name} is missing (nan) in {np.count_nonzero(missing)} of {n} rows; "
            f"first: row {int(np.argmax(missing))}; every row needs a score"
        )
    return scores


def _called(scores: NDArray[np.float64], threshold: float) -> NDArray[np.int8]:
    return np.where(np.isnan(scores), -1, scores > threshold).astype(np.int8)


def _both(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
    """Return two scores, nan where either is."""
    known = ~(np.isnan(first) | np.isnan(second))
    return np.where(known, first, np.nan), np.where(known, second, np.nan)


def _table(scores: NDArray[np.float64], labelled: Labelled) -> PairTable:
    """Return the table of pairs over the rows that have a score, added up over seeds."""
    won, pairs = np.zeros((2, len(labelled.names), len(labelled.names)))
    for values in scores:
        known = ~np.isnan(values)
        table = pair_table(
            values[known], labelled.y[known], labelled.code[known], n_sources=len(labelled.names)
        )
        won += table.won
        pairs += table.pairs
    return PairTable(won, pairs)


def _over_seeds(
    measure: Callable[..., tuple[float, ...]], *scores: NDArray[np.float64], y: NDArray, rows: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Measure something on some rows for each seed; return the means, weighted by pairs, and all values.

    With these weights, means over seeds agree with the table of pairs that is added up over seeds.
    """
    values, pairs = [], []
    for of_seed in zip(*scores, strict=True):
        known = rows & ~np.isnan(of_seed[0])
        label = y[known]
        values.append(measure(*(score[known] for score in of_seed), label))
        pairs.append(float(label.sum()) * float(label.size - label.sum()))
    each, weight = np.array(values), np.array(pairs)
    if not weight.any():
        return np.full(each.shape[1], np.nan), each
    return np.average(each[weight > 0], axis=0, weights=weight[weight > 0]), each


def _composition(labelled: Labelled) -> dict[str, Any]:
    """Describe what the sources consist of."""
    counts = labelled.counts()
    n, positives = counts.sum(axis=1), counts[:, 1]
    kind = np.where(positives == 0, KINDS[2], np.where(positives == n, KINDS[1], KINDS[0]))
    return {
        "n": ("source", n),
        "positives": ("source", positives),
        "positive_share": ("source", positives / n),
        "kind": ("source", kind),
    }


def _pooled(
    scores: Mapping[str, NDArray],
    tables: Mapping[str, PairTable],
    labelled: Labelled,
    chosen: Mapping[str, NDArray],
    level: float | str,
) -> dict[str, Any]:
    """Return the pooled AUROC of each protocol and scope, its interval and its exact split."""
    found = []
    for protocol, table in tables.items():
        for scope in SCOPES:
            cut = table.only(chosen[scope])
            rows = chosen[scope][labelled.code]
            (low, high), _ = _over_seeds(
                lambda own, y: auroc_interval(own, y, level=level), scores[protocol], y=labelled.y, rows=rows
            )
            found.append(
                {
                    "auc": cut.pooled,
                    "auc_low": low,
                    "auc_high": high,
                    "within": cut.within,
                    "between": cut.between,
                    "within_share": cut.within_share,
                    "within_mean": cut.within_mean,
                }
            )
    return _stacked(found, ("protocol", "scope"), (len(tables), len(SCOPES)))


def _gaps(
    scores: Mapping[str, NDArray],
    matched: Mapping[str, tuple[PairTable, ...]],
    labelled: Labelled,
    chosen: Mapping[str, NDArray],
    level: float | str,
    bootstrap: int,
    seed: int,
) -> dict[str, Any]:
    """Return the gap of each baseline and scope: value, both intervals, and its exact split."""
    found = []
    for baseline, both in matched.items():
        for scope in SCOPES:
            first, second = (table.only(chosen[scope]) for table in both)
            (_, low, high), each = _over_seeds(
                lambda base, left_out, y: auroc_gap(base, left_out, y, level=level),
                *_both(scores[baseline], scores["lodo"]),
                y=labelled.y,
                rows=chosen[scope][labelled.code],
            )
            gap = first.pooled - second.pooled
            within = 0.0 if first.within_share == 0 else first.within_share * (first.within - second.within)
            found.append(
                {
                    "matched_auc": first.pooled,
                    "matched_lodo_auc": second.pooled,
                    "gap": gap,
                    "gap_low": low,
                    "gap_high": high,
                    "gap_seed_sd": each[:, 0].std(ddof=1) if len(each) > 1 else math.nan,
                    "gap_within": within,
                    "gap_between": gap - within,
                    "gap_within_mean": first.within_mean - second.within_mean,
                    **_source_bounds(first, second, chosen[scope], level, bootstrap, seed),
                }
            )
    return _stacked(found, ("baseline", "scope"), (len(matched), len(SCOPES)))


def _stacked(found: list[dict[str, float]], dims: tuple[str, ...], shape: tuple[int, ...]) -> dict[str, Any]:
    return {name: (dims, np.array([one[name] for one in found]).reshape(shape)) for name in found[0]}


def _source_bounds(
    first: PairTable,
    second: PairTable,
    chosen: NDArray[np.bool_],
    level: float | str,
    bootstrap: int,
    seed: int,
) -> dict[str, float]:
    """Return bootstrap intervals over sources: of the pooled gap, and of the gap of mean own AUROCs."""
    pooled = own = (math.nan, math.nan)
    members = np.flatnonzero(chosen)
    if members.size > FEW_SOURCES:
        times = np.zeros((bootstrap, chosen.size))
        times[:, members] = resample_sources(members.size, bootstrap, np.random.default_rng([seed, 2]))
        pooled = percentiles(pooled_of(first, times) - pooled_of(second, times), level)
        own = percentiles(within_mean_of(first, times) - within_mean_of(second, times), level)
    return {
        "gap_source_low": pooled[0],
        "gap_source_high": pooled[1],
        "gap_within_mean_source_low": own[0],
        "gap_within_mean_source_high": own[1],
    }


def _per_source(scores: Mapping[str, NDArray], labelled: Labelled, level: float | str) -> dict[str, Any]:
    """Return the AUROC within each source, with its interval: nan where it has one label only."""
    found = np.array(
        [
            [
                _over_seeds(
                    lambda own, y: (auroc(own, y), *auroc_interval(own, y, level=level)),
                    of_seeds,
                    y=labelled.y,
                    rows=labelled.code == k,
                )[0]
                for k in range(len(labelled.names))
            ]
            for of_seeds in scores.values()
        ]
    )
    names = ("source_auc", "source_auc_low", "source_auc_high")
    return {name: (("protocol", "source"), found[..., i]) for i, name in enumerate(names)}


def _rates(called: Mapping[str, NDArray], labelled: Labelled, level: float | str) -> dict[str, Any]:
    """Return accuracy, recall and specificity per source and per scope; nan where they have no row."""
    n_sources = len(labelled.names)
    right = np.zeros((len(METRICS), len(called), n_sources + len(SCOPES), len(next(iter(called.values())))))
    total = np.zeros_like(right)
    mixed = labelled.mixed
    for p, of_seeds in enumerate(called.values()):
        for s, calls in enumerate(of_seeds):
            known = calls >= 0
            hit = known & (calls == labelled.y)
            for m, rows in enumerate((known, known & (labelled.y == 1), known & (labelled.y == 0))):
                for into, members in ((right, hit & rows), (total, rows)):
                    counts = np.bincount(labelled.code[members], minlength=n_sources)
                    into[m, p, :n_sources, s] = counts
                    into[m, p, n_sources:, s] = counts.sum(), counts[mixed].sum()
    bounds = np.nan_to_num(wilson_interval(right, total, level=level))  # nan has no row, so no weight
    rate, low, high = (_weighted(part, total) for part in (right, *(bounds * total)))
    n = np.rint(total.mean(axis=-1)).astype(np.int64)
    own, pooled = ("metric", "protocol", "source"), ("metric", "protocol", "scope")
    found: dict[str, Any] = {}
    for name, values in (("rate", rate), ("rate_low", low), ("rate_high", high), ("rate_n", n)):
        found[name] = (own, values[:, :, :n_sources])
        found[f"pooled_{name}"] = (pooled, values[:, :, n_sources:])
    return found


def _weighted(sums: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums over seeds, divided by the rows of all seeds; nan where there is no row."""
    top, rows = sums.sum(axis=-1), total.sum(axis=-1)
    return np.divide(top, rows, out=np.full(top.shape, np.nan), where=rows > 0)
