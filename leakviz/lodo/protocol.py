"""Cross-validation, same-source held-out and leave-one-dataset-out (LODO) with one model, and two controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.base import clone

from leakviz.decimals import as_decimal, as_fraction_of_one
from leakviz.errors import InputError
from leakviz.lodo import fits
from leakviz.lodo.compare import LONG_NAMES, compare, not_defined
from leakviz.lodo.inputs import (
    Labelled,
    check_features,
    check_groups,
    check_labelled,
    count_twins,
    fingerprint_of,
    label_columns,
    whole,
)
from leakviz.statistics import auroc, wilson_interval

PROTOCOLS = ("cv", "same-source", "lodo")


def lodo(
    X: Any,
    y: ArrayLike,
    source: ArrayLike,
    *,
    model: Any = None,
    folds: int = 5,
    seeds: Iterable[int] = (0,),
    groups: ArrayLike | None = None,
    threshold: float | str = 0.0,
    controls: int = 5,
    identity: bool = True,
    allow_missing: bool = False,
    level: float | str = 0.95,
    bootstrap: int = 2000,
    progress: fits.Progress | bool | None = None,
    n_jobs: int | None = -1,
) -> xr.Dataset:
    """Measure how much of a score is the benchmark: cross-validation against leave-one-dataset-out (LODO).

    Every row is scored three times: out of fold in a cross-validation that mixes the sources; in a
    held-out part of its own source; and by a model that never saw its source. What the third loses to the
    first two is the gap. It is about transfer between these sources, and nothing else.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame, shape (n, d); or sequence of str, shape (n,)
        Features; texts need a `model` that takes them.
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Labels; both must occur.
    source : array-like of str or int, shape (n,)
        The data set, hospital, site or file that each row is from; two or more. A source with one label
        is welcome: what is undefined for it stays nan.
    model : scikit-learn estimator, optional
        With ``decision_function`` or ``predict_proba`` (turned into logits). It is cloned and fitted inside
        each fold, so scaling, vocabulary and search for C belong into it. By default features are
        standardised and a logistic regression with balanced class weights is fitted. A ``random_state`` that
        is left None is set to the seed.
    folds : int, default 5
        Of the cross-validation; 1 / folds of each source is held out in the same-source protocol.
    seeds : iterable of int, default (0,)
        Each draws its own folds. All figures are means over seeds, interval ends too (weighted by pairs or
        rows, which matters where seeds hold out different ones).
    groups : array-like of str or int, shape (n,), optional
        Rows of one group (a patient, a conversation) are never on both sides of a split; with a source,
        its groups leave training too.
    threshold : float or "youden", default 0
        A row is called positive where its score is above it; 0 is a probability of one half. "youden"
        takes the cut with the largest recall + specificity in an inner cross-validation of the training
        rows (groups are not kept whole there), so it never sees the rows that it is for.
    controls : int, default 5
        Draws of each of the two controls; each draw costs one more fit per source, 0 leaves them out.
    identity : bool, default True
        Fit the model to tell the sources apart; it must be one that takes more than two classes.
    allow_missing : bool, default False
        Let missing values in `X` through to the model.
    level : float or decimal string, default 0.95
        Confidence of all intervals.
    bootstrap : int, default 2000
        Samples of whole sources.
    progress : callable or bool, optional
        ``progress(done, total)`` is called in the caller's thread after each fit; True shows a bar on
        stderr. To stop, raise from it: no new fit begins and the exception comes out.
    n_jobs : int, optional
        Worker processes, -1 for one per core. They are started only where seconds of work are left.

    Returns
    -------
    xarray.Dataset
        Over ``row``, ``seed``, ``protocol`` ("cv", "same-source", "lodo"), ``baseline`` ("cv",
        "same-source"), ``scope`` ("all"; "mixed": sources with both labels), ``source``, ``metric``
        ("accuracy", "recall", "specificity"); "same-source" is missing where no source can be split (one
        row or one group in each):

        ``score``, ``called`` : (protocol, seed, row)
            Scores; 1 above the threshold, 0 below, -1 without a score.
        ``auc``, ``auc_low``, ``auc_high`` : (protocol, scope)
            Pooled AUROC (DeLong, logit scale).
        ``within``, ``between``, ``within_share`` : (protocol, scope)
            Its exact split: auc = within_share * within + (1 - within_share) * between, over pairs within
            a source and pairs of two sources.
        ``within_mean`` : (protocol, scope)
            Mean of the sources' own AUROCs. Where it keeps and the pooled one falls, the models' offsets
            between sources are lost, not the ranking.
        ``gap``, ``gap_low``, ``gap_high``, ``gap_source_low``, ``gap_source_high`` : (baseline, scope)
            Baseline minus LODO on the same rows (``matched_auc - matched_lodo_auc``); paired DeLong interval
            over rows; bootstrap interval over sources (`leakviz.lodo.pairs.pooled_of`), nan where
            ``too_few_sources`` (at most 5).
        ``gap_within``, ``gap_between`` : (baseline, scope)
            The parts of the gap from pairs within and between sources; they add up to it.
        ``gap_within_mean``, with ``_source_low`` and ``_source_high`` : (baseline, scope)
            The gap of ``within_mean``.
        ``gap_seed_sd`` : (baseline, scope)
            Standard deviation of the gap over seeds; nan with one.
        ``pair_auc``, ``pairs`` : (protocol, positive_source, negative_source)
            AUROC of the positives of one source against the negatives of another, and how many pairs.
        ``source_auc``, ``source_auc_low``, ``source_auc_high`` : (protocol, source)
            AUROC within each source; nan with one label.
        ``rate``, ``rate_low``, ``rate_high``, ``rate_n`` : (metric, protocol, source)
            With Wilson intervals and the rows they rest on; ``pooled_rate`` and so on over ``scope``.
        ``n``, ``positives``, ``positive_share``, ``kind`` : (source)
            Composition; kind is "mixed", "positive only" or "negative only".
        ``shared_rows``, ``repeated_rows`` : (source)
            Rows with exactly the features of a row in another source, and in their own. If the first are
            copies, leaving a source out does not leave them out: give copies one group.
        ``name_auc``, ``name_accuracy``
            What the source's name alone says about the label of a row that is left out, in pairs of a
            positive and a negative (`leakviz.lodo.naming.name_alone`): AUROC of the rate of the source's
            other rows, 0.5 in expectation without association; accuracy of their majority.
        ``name_auc_null``, ``name_auc_null_low``, ``name_auc_null_high``, ``label_majority``
            To compare with: mean and central 95 % of ``name_auc`` with shuffled labels; share of the more
            frequent label.
        ``name_auc_in_sample``, ``name_accuracy_in_sample``
            The same with each row's own label in its source's rate: too large by construction.
        ``identity_accuracy``, ``identity_low``, ``identity_high``, ``identity_majority``
            Share of rows whose source the model tells from X, out of fold, beside the largest source's
            share; ``identity_recall`` over source. A source that is one group or one row is never in the training
            set of its own rows: they are left out, the recall is nan, and ``identity_rows`` says how many rows
            are left.
        ``noise_auc`` : (draw)
            Control: pooled LODO AUROC where the rows of X are shuffled, so that they know nothing. Far
            below 0.5, composition leaks through the models' offsets.
        ``shuffled_auc``, ``shuffled_gap`` : (draw)
            Control: pooled LODO AUROC where source labels are shuffled within class, and how far "cv" is
            above it: near 0, apart from what other sizes of training make (of five folds each model sees
            80 % of the rows, of sources left out more or fewer).
        ``noise_mean``, ``noise_low``, ``noise_high``, ``shuffled_mean``, ``shuffled_low``, ``shuffled_high``
            Mean ``noise_auc`` and ``shuffled_gap`` with t intervals over draws (nan with one draw).

        ``why_not`` : (source)
            Why a source cannot be left out (without it, training has one label), "" where it can. It has no
            LODO score, is in no LODO value and in no gap, and the rest goes on.

        Attributes ``model``, ``folds``, ``level``, ``bootstrap``, ``threshold``, ``input_hash``, and
        ``controls``: "run", or a sentence why none was. Only where it is so: ``column_with_label`` names the
        columns (counted from 0) of which each alone separates the labels; ``whole_sources`` is "yes" where every
        source is one group or one row. No fold divides a source then, and cross-validation, too, leaves whole sources
        out: every gap, the identity of sources, what the name alone says and the control with shuffled sources are nan,
        and each has an attribute ``undefined`` that says so.

    Raises
    ------
    InputError
        If input is missing, infinite or does not fit, a fold leaves one label in training, or no source at
        all can be left out.

    Notes
    -----
    arXiv 2602.14161, sections 3 and 4, for the protocols and the identity of sources; the split, the
    bootstrap and the controls are this package's. DeLong treats rows as independent; the bootstrap takes
    sources as drawn from many like them, with models kept as they are. A model whose random state is
    fixed is fitted once per source, whatever the number of seeds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source = np.repeat(["north", "south", "west"], 60)
    >>> y = (rng.random(180) < np.repeat([0.9, 0.5, 0.1], 60)).astype(int)
    >>> X = np.c_[y, source == "north", source == "south"] + rng.normal(size=(180, 3))
    >>> result = lodo(X, y, source, n_jobs=1)
    >>> [round(value, 2) for value in result.auc.sel(protocol=["cv", "lodo"], scope="all").values.tolist()]
    [0.74, 0.68]
    >>> bool(result.too_few_sources.sel(scope="all"))
    True
    """
    labelled = check_labelled(y, source)
    codes = check_groups(groups, labelled.n)
    features = check_features(X, labelled.n, allow_missing=allow_missing)
    whole(folds, "folds", 2)
    whole(controls, "controls", 0)
    used = _seeds(seeds)
    cut = _threshold(threshold)
    chosen = _model(model, features)
    unfit = _not_evaluable(labelled, codes, 2 if cut == "youden" else 1)
    fits.check_sources(labelled, unfit)
    plan = _plan(
        chosen,
        features,
        labelled,
        codes,
        folds=folds,
        seeds=used,
        threshold=cut,
        controls=controls,
        identity=identity,
    )
    done = fits.run(_call, [fit.task for fit in plan], n_jobs=n_jobs, progress=progress, name="LODO")
    scores, called = _gather(plan, done, labelled.n, len(used), controls)
    run = [name for name in PROTOCOLS if name in scores]
    result = compare(
        {name: scores[name] for name in run},
        {name: called[name] for name in run},
        labelled,
        level=level,
        bootstrap=bootstrap,
        seed=used[0],
        groups=codes,
    )
    shared, repeated = count_twins(features, labelled)
    extra: dict[str, Any] = {
        "why_not": ("source", np.array(unfit)),
        "shared_rows": ("source", shared),
        "repeated_rows": ("source", repeated),
    }
    if controls:
        extra |= _controls(scores, labelled.y, level)
    if identity:
        extra |= _identity(_told(plan, done, labelled.n), labelled, level)
    result = result.assign(extra).assign_coords(seed=list(used))
    if fits.whole_sources(labelled, codes):
        held = [name for name in extra if name.startswith(("identity_", "shuffled_"))]
        result = not_defined(result, [name for name in held if name != "identity_rows"])
    for name in extra:
        if name in LONG_NAMES:
            result[name].attrs["long_name"] = LONG_NAMES[name]
    words = " ".join(repr(chosen).split())
    beside: dict[str, Any] = {}
    if told := label_columns(features, labelled.y):
        names = [str(n) for n in features.columns] if hasattr(features, "columns") else None
        beside["column_with_label"] = ", ".join(repr(names[k]) if names else f"column {k}" for k in told)
    return result.assign_attrs(
        **beside,
        model=words,
        folds=folds,
        controls="run" if controls else "No control was run: controls=0.",
        threshold=cut if isinstance(cut, str) else f"{cut:g}",
        input_hash=fingerprint_of(
            features,
            labelled,
            model=words,
            folds=folds,
            seeds=used,
            groups=None if codes is None else codes.tolist(),
            threshold=cut,
            controls=controls,
            identity=identity,
            level=str(level),
            bootstrap=bootstrap,
        ),
    )


class _Fit(NamedTuple):
    """One fit: what it is for, the place of its seed or draw, the rows that it scores, and the call."""

    what: str
    place: int
    rows: NDArray
    task: tuple


def _plan(
    model: Any,
    X: Any,
    labelled: Labelled,
    groups: NDArray[np.int32] | None,
    *,
    folds: int,
    seeds: tuple[int, ...],
    threshold: float | str,
    controls: int,
    identity: bool,
) -> list[_Fit]:
    """Return every fit of a run; each has both labels to train on.

    A source that cannot be left out is passed over, and so is the same-source protocol where it cannot be
    had; a fold without both labels ends the run, for other folds can be asked for.
    """
    plan: list[_Fit] = []
    y = labelled.y

    def add(what: str, place: int, train: NDArray, test: NDArray, moved: NDArray | None = None) -> None:
        seed = seeds[place] if what in PROTOCOLS else seeds[0]
        call = (fits.fit_and_score, model, X, y, train, test, seed, threshold, folds, moved)
        plan.append(_Fit(what, place, test, call))

    def add_sources(what: str, place: int, code: NDArray[np.int32], moved: NDArray | None = None) -> None:
        for k in range(len(labelled.names)):
            train = fits.without_source(code, groups, k)
            if (code == k).any() and not fits.why_not(y, train, least):
                add(what, place, train, code == k, moved)

    least = 2 if threshold == "youden" else 1
    fitted_once = not fits.open_seeds(model)
    undivided = fits.whole_sources(labelled, groups)
    for place, seed in enumerate(seeds):
        fold = fits.cross_validation(labelled, groups, folds, seed)
        for number in range(folds):
            add("cv", place, fold != number, fold == number)
        held = _held_out(labelled, groups, folds, seed)
        if held.any() and not fits.why_not(y, ~held, least):
            add("same-source", place, ~held, held)
        if place == 0 or not fitted_once:
            add_sources("lodo", place, labelled.code)
    for draw in range(controls):
        moved = np.random.default_rng([seeds[0], 3, draw]).permutation(labelled.n)
        add_sources("noise", draw, labelled.code, moved)
        if not undivided:  # else shuffling gives the same sources other names
            rng = np.random.default_rng([seeds[0], 4, draw])
            add_sources("shuffled", draw, shuffle_sources(labelled, groups, rng))
    if identity:
        plan += _identity_plan(model, X, labelled, groups, folds, seeds[0])
    return plan


def _held_out(
    labelled: Labelled, groups: NDArray[np.int32] | None, folds: int, seed: int
) -> NDArray[np.bool_]:
    """Return one part in `folds` of every source and label; none of a source that cannot be split."""
    strata = 2 * labelled.code + labelled.y
    held = fits.spread_folds(strata, groups, folds, np.random.default_rng([seed, 5])) == 0
    gone = np.bincount(labelled.code[~held], minlength=len(labelled.names)) == 0
    return held & ~gone[labelled.code]


def _not_evaluable(labelled: Labelled, groups: NDArray[np.int32] | None, least: int) -> list[str]:
    """Say, for each source, why it cannot be left out; an empty text where it can."""
    return [
        fits.why_not(labelled.y, fits.without_source(labelled.code, groups, k), least)
        for k in range(len(labelled.names))
    ]


def _identity_plan(
    model: Any, X: Any, labelled: Labelled, groups: NDArray[np.int32] | None, folds: int, seed: int
) -> list[_Fit]:
    teller = _without_balance(model)
    code = labelled.code
    fold = fits.spread_folds(code, groups, folds, np.random.default_rng([seed, 6]))
    plan = []
    for number in np.unique(fold):
        train = fold != number
        test = (fold == number) & np.isin(code, code[train])  # nobody tells a source that he has not seen
        if not test.any():
            continue
        if np.unique(code[train]).size < 2:
            raise InputError("a fold leaves one source in training, so none can be told: say identity=False")
        plan.append(_Fit("identity", 0, test, (fits.fit_and_name, teller, X, code, train, test, seed)))
    return plan


def _call(function: Callable[..., Any], *task: Any) -> Any:
    return function(*task)


def _gather(
    plan: list[_Fit], done: list[Any], n: int, n_seeds: int, n_draws: int
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.int8]]]:
    """Return scores (seeds or draws, n) of each protocol and control, and which rows are called positive."""
    scores = {name: np.full((n_draws, n), np.nan) for name in ("noise", "shuffled")}
    called: dict[str, NDArray[np.int8]] = {}
    for fit, result in zip(plan, done, strict=True):
        if fit.what == "identity":
            continue
        values, cut = result
        shape = (n_seeds if fit.what in PROTOCOLS else n_draws, n)
        scores.setdefault(fit.what, np.full(shape, np.nan))[fit.place, fit.rows] = values
        called.setdefault(fit.what, np.full(shape, -1, np.int8))[fit.place, fit.rows] = values > cut
    for place in range(1, n_seeds):
        if np.isnan(scores["lodo"][place]).all():  # fitted once, the same for every seed
            scores["lodo"][place], called["lodo"][place] = scores["lodo"][0], called["lodo"][0]
    return scores, called


def _told(plan: list[_Fit], done: list[Any], n: int) -> NDArray[np.int64]:
    """Return the source that the model gave to each row; -1 where training held no row of its source."""
    told = np.full(n, -1, dtype=np.int64)
    for fit, result in zip(plan, done, strict=True):
        if fit.what == "identity":
            told[fit.rows] = result
    return told


def shuffle_sources(
    labelled: Labelled, groups: NDArray[np.int32] | None, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return sources shuffled among the rows of each label: each keeps its size and its composition.

    With groups, whole groups change places with groups of the same majority label, so that sizes and
    shares are kept on the whole only.
    """
    code = labelled.code.copy()
    if groups is None:
        for label in (0, 1):
            rows = np.flatnonzero(labelled.y == label)
            code[rows] = code[rng.permutation(rows)]
        return code
    _, first, unit = np.unique(groups, return_index=True, return_inverse=True)
    majority = np.bincount(unit, weights=labelled.y) * 2 > np.bincount(unit)
    home = code[first]
    for label in (False, True):
        units = np.flatnonzero(majority == label)
        home[units] = home[rng.permutation(units)]
    return home[unit].astype(np.int32)


def _controls(scores: dict[str, NDArray], y: NDArray[np.int64], level: float | str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    noise = np.array([_auc_of_known(draw, draw, y) for draw in scores["noise"]])
    shuffled = np.array([_auc_of_known(draw, draw, y) for draw in scores["shuffled"]])
    # Where a source cannot be left out, cross-validation is taken on the rows that the draw has scored.
    mixed = np.array(
        [np.mean([_auc_of_known(cv, draw, y) for cv in scores["cv"]]) for draw in scores["shuffled"]]
    )
    for name, every in (("noise", noise), ("shuffled", mixed - shuffled)):
        values = every[~np.isnan(every)]
        mean = float(values.mean()) if values.size else np.nan
        half = np.nan
        if values.size > 1:
            quantile = student.ppf(float((1 + as_fraction_of_one(level, name="level")) / 2), values.size - 1)
            half = float(quantile * values.std(ddof=1) / np.sqrt(values.size))
        found |= {
            f"{name}_mean": ((), mean),
            f"{name}_low": ((), mean - half),
            f"{name}_high": ((), mean + half),
        }
    return found | {
        "noise_auc": ("draw", noise),
        "shuffled_auc": ("draw", shuffled),
        "shuffled_gap": ("draw", mixed - shuffled),
    }


def _auc_of_known(scores: NDArray, known: NDArray, y: NDArray[np.int64]) -> float:
    rows = ~np.isnan(known)
    return auroc(scores[rows], y[rows]) if rows.any() else np.nan


def _identity(told: NDArray[np.int64], labelled: Labelled, level: float | str) -> dict[str, Any]:
    known = told >= 0
    right, rows = int((told == labelled.code).sum()), int(known.sum())
    K = len(labelled.names)
    n = np.bincount(labelled.code[known], minlength=K)
    hits = np.bincount(labelled.code, weights=told == labelled.code, minlength=K)
    low, high = wilson_interval(right, rows, level=level) if rows else (np.nan, np.nan)
    return {
        "identity_accuracy": ((), right / rows if rows else np.nan),
        "identity_low": ((), low),
        "identity_high": ((), high),
        "identity_majority": ((), float(n.max() / rows) if rows else np.nan),
        "identity_recall": ("source", np.divide(hits, n, out=np.full(K, np.nan), where=n > 0)),
        **({} if known.all() else {"identity_rows": ((), rows)}),
    }


def _without_balance(model: Any) -> Any:
    """Return a copy without balanced class weights: accuracy is to be compared with the majority share."""
    weighted = [
        name
        for name, value in model.get_params(deep=True).items()
        if (name == "class_weight" or name.endswith("__class_weight")) and value == "balanced"
    ]
    return clone(model).set_params(**dict.fromkeys(weighted))


def _model(model: Any, features: Any) -> Any:
    if model is None:
        if len(features.shape) != 2:
            raise InputError(
                "X holds texts; give a model that takes them, such as a pipeline with TfidfVectorizer"
            )
        if hasattr(features, "tocsr"):
            raise InputError(
                "X is sparse, and the default model centres it, which fills it; give a model, such as "
                "make_pipeline(MaxAbsScaler(), LogisticRegression(class_weight='balanced'))"
            )
        return fits.logistic()
    fits.check_model(model)
    return model


def _seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    if isinstance(seeds, (int, np.integer)):
        seeds = (int(seeds),)
    used = tuple(whole(seed, "seeds", 0) for seed in seeds)
    if not used or len(set(used)) < len(used):
        raise InputError(f"seeds must be different whole numbers, at least one, got {used}")
    return used


def _threshold(threshold: float | str) -> float | str:
    if threshold == "youden":
        return "youden"
    return float(as_decimal(threshold, name="threshold"))
