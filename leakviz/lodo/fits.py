"""Split rows, fit models, score rows: every fit is one task, and tasks run on all cores.

Nothing of a held-out row reaches the model that scores it: scaler, vocabulary, regularisation and
threshold are all fitted on the training rows of the fold.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from leakviz.errors import InputError
from leakviz.lodo.inputs import Labelled, take
from leakviz.predictions.sources import quoted

Progress = Callable[[int, int], object]

UNDIVIDED = "every source is one group or one row, so no fold divides a source, and cross-validation leaves whole sources out, too"
"""Why nothing is defined that compares rows of a source with others of the same source: see `whole_sources`."""

_WORTH_PROCESSES = 4.0  # seconds of work left from which starting worker processes pays


def logistic(*, class_weight: str | None = "balanced") -> Any:
    """Return the default model: features standardised, then a logistic regression."""
    return make_pipeline(
        StandardScaler(),
        LogisticRegression(class_weight=class_weight, tol=1e-6, max_iter=10_000, random_state=0),
    )


def _unweighted() -> Any:
    return logistic(class_weight=None)


# What follows is imported where it is used: the ensembles alone take as long to load as all of leakviz.
def _linear_svm() -> Any:
    from sklearn.svm import LinearSVC

    return make_pipeline(StandardScaler(), LinearSVC(class_weight="balanced", random_state=0))


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(class_weight="balanced", random_state=0)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(class_weight="balanced", random_state=0)


MODELS: dict[str, Callable[[], Any]] = {
    "logistic": logistic,
    "logistic-unweighted": _unweighted,
    "linear-svm": _linear_svm,
    "boosting": _boosting,
    "forest": _forest,
}
"""Models by name, for the command line and the page; each call makes a new one."""


def class_weight_of(name: str) -> str | None:
    """Return how the logistic regression beside a model of `MODELS` weighs the labels, for `retention`.

    Examples
    --------
    >>> class_weight_of("logistic-unweighted") is None, class_weight_of("forest")
    (True, 'balanced')
    """
    return None if name == "logistic-unweighted" else "balanced"


def check_model(model: Any) -> None:
    """Refuse what cannot be fitted or gives no score."""
    if isinstance(model, type):
        raise InputError(f"model is the class {model.__name__}; give an instance, {model.__name__}()")
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise InputError(f"model must be a scikit-learn estimator, got {type(model).__name__}")
    if not (hasattr(model, "decision_function") or hasattr(model, "predict_proba")):
        raise InputError(
            f"model {type(model).__name__} has neither decision_function nor predict_proba, so it gives no "
            "score to rank by; use a classifier that has one"
        )


def seeded(model: Any, seed: int) -> Any:
    """Return an unfitted copy in which every open ``random_state`` is the seed."""
    copy = clone(model)
    return copy.set_params(**dict.fromkeys(open_seeds(copy), seed))


def open_seeds(model: Any) -> list[str]:
    """Return the parameters that leave a model's random numbers open."""
    return [
        name
        for name, value in model.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]


def cross_validation(
    labelled: Labelled, groups: NDArray[np.int32] | None, folds: int, seed: int
) -> NDArray[np.int16]:
    """Return the fold of each row: scikit-learn's stratified folds, shuffled with the seed.

    Groups, where given, stay whole; folds of which one leaves one label in training are refused.
    """
    least = int(np.bincount(labelled.y, minlength=2).min())
    if least < folds:
        raise InputError(
            f"folds={folds}, but one label occurs in {least} rows only; give at most {least} folds"
        )
    splitter: Any = (StratifiedKFold if groups is None else StratifiedGroupKFold)(
        folds, shuffle=True, random_state=seed
    )
    if groups is not None and np.unique(groups).size < folds:
        if whole_sources(labelled, groups):
            raise InputError(
                "groups say the same as source: all rows of a source are in one group, so no fold can divide a source. "
                "Leave groups out (a source is left out whole in any case), or name finer ones, such as patients"
            )
        raise InputError(f"folds={folds}, but there are {np.unique(groups).size} groups; give fewer folds")
    fold = np.full(labelled.n, -1, dtype=np.int16)
    with warnings.catch_warnings():
        # A label in fewer groups than folds: what matters, both labels in training, is checked below.
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(splitter.split(np.zeros((labelled.n, 1)), labelled.y, groups))
    for number, (_, test) in enumerate(splits):
        if not test.size:
            raise InputError(
                f"folds={folds}, but groups are so large that fold {number} is empty; give fewer"
            )
        fold[test] = number
    for number in range(folds):
        if why := why_not(labelled.y, fold != number):
            raise InputError(
                f"folds={folds}: without fold {number}, {why}; a model needs both labels. Ask for other folds, or name "
                "finer groups"
            )
    return fold


def spread_folds(
    strata: NDArray, groups: NDArray[np.int32] | None, folds: int, rng: np.random.Generator
) -> NDArray[np.int16]:
    """Deal rows (or whole groups) to folds, stratum by stratum, so that each fold has its share of each.

    Works for strata of any size: of one with fewer members than folds, some folds have none.
    """
    units = np.arange(strata.size) if groups is None else groups
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    shuffled = rng.permutation(first.size)
    dealt = shuffled[np.argsort(strata[first[shuffled]], kind="stable")]
    fold = np.empty(first.size, dtype=np.int16)
    fold[dealt] = (np.arange(first.size) + rng.integers(folds)) % folds
    return fold[unit]


def without_source(
    code: NDArray[np.int32], groups: NDArray[np.int32] | None, source: int
) -> NDArray[np.bool_]:
    """Return the training rows for a source that is left out: no row of it, and none of its groups."""
    train = code != source
    if groups is not None:
        train &= ~np.isin(groups, groups[code == source])
    return train


def whole_sources(labelled: Labelled, groups: NDArray[np.int32] | None) -> bool:
    """Tell whether no source can be divided: each is one row, or its rows are of one group."""
    units = np.arange(labelled.n) if groups is None else groups
    pairs = np.unique(np.stack([labelled.code, units]), axis=1)
    return pairs.shape[1] == len(labelled.names)


def check_sources(labelled: Labelled, unfit: Sequence[str]) -> None:
    """Refuse sources of which none can be left out; `unfit` says of each why not, as `why_not` does."""
    if all(unfit):
        raise InputError(
            f"no source can be left out: without source {quoted(labelled.names[0])}, {unfit[0]}, and likewise for "
            f"each of the {len(unfit)}; a model needs both labels. Merge sources, so that two hold both"
        )


def why_not(y: NDArray, train: NDArray, least: int = 1) -> str:
    """Say why no model can be trained on these rows, or return an empty text.

    Examples
    --------
    >>> why_not(np.array([1, 1, 0]), np.array([True, True, False]))
    'training has 2 rows, all with y = 1'
    """
    counts = np.bincount(y[train], minlength=2)
    total = int(counts.sum())
    if not total:
        return "training has no row, for its groups are in all sources"
    if not counts.all():
        return f"training has {total} row{'s' * (total > 1)}, all with y = {int(counts.argmax())}"
    if counts.min() < least:
        return f"training has {int(counts.min())} row with y = {int(counts.argmin())}, and threshold='youden' needs two"
    return ""


def fit_and_score(
    model: Any,
    X: Any,
    y: NDArray[np.int64],
    train: NDArray,
    test: NDArray,
    seed: int,
    threshold: float | str,
    folds: int,
    moved: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Fit on the training rows, and return scores of the test rows and the threshold for them.

    `train` and `test` are masks. With `moved`, each row has the features of the row at that place.
    """
    at = np.arange(y.size) if moved is None else moved
    fitted = seeded(model, seed).fit(take(X, at[train]), y[train])
    cut = threshold
    if isinstance(threshold, str):
        cut = _youden_cut(model, take(X, at[train]), y[train], seed, folds)
    return decide(fitted, take(X, at[test])), float(cut)


def fit_and_name(
    model: Any, X: Any, code: NDArray[np.int32], train: NDArray, test: NDArray, seed: int
) -> NDArray[np.int64]:
    """Fit a model that tells sources apart, and return the sources that it gives to the test rows."""
    with warnings.catch_warnings():
        # Many sources of few rows are told apart as any others: the recall of each is given.
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        warnings.filterwarnings("ignore", message="The least populated class")
        return np.asarray(seeded(model, seed).fit(take(X, train), code[train]).predict(take(X, test)))


def decide(fitted: Any, X: Any) -> NDArray[np.float64]:
    """Return ``decision_function``, or the logit of the probability of label 1."""
    if hasattr(fitted, "decision_function"):
        scores = np.asarray(fitted.decision_function(X), dtype=np.float64)
    else:
        scores = logit(np.asarray(fitted.predict_proba(X), dtype=np.float64)[:, 1])
    if scores.ndim != 1 or np.isnan(scores).any():
        raise InputError(
            f"model gave scores of the shape {scores.shape} with {np.isnan(scores).sum()} missing; it must "
            "give one number per row"
        )
    return scores


def run(
    function: Callable[..., Any],
    tasks: Sequence[tuple],
    *,
    n_jobs: int | None = -1,
    progress: Progress | bool | None = None,
    name: str = "fits",
) -> list[Any]:
    """Call a function for each task, on several cores where that pays, and return what it returns.

    Parameters
    ----------
    function : callable
        Called with the members of a task.
    tasks : sequence of tuple
    n_jobs : int, optional
        Worker processes, as joblib counts them: -1 is one per core. They are started only if the first
        task shows that there are seconds of work left.
    progress : callable or bool, optional
        Called as ``progress(done, total)`` in the caller's thread, once before the first task and after
        every one. An exception that it raises ends the work: no new task begins, the running ones end,
        and the exception comes out. True shows a bar on stderr.
    name : str
        What the bar says.

    Returns
    -------
    list
        In the order of the tasks.
    """
    with _reporting(progress, len(tasks), name) as report:
        report(0, len(tasks))
        if not tasks:
            return []
        # BLAS threads make small fits slower, many times so on a busy machine; the cores have processes.
        with threadpool_limits(limits=1, user_api="blas"):
            start = time.perf_counter()
            results = [function(*tasks[0])]
            left = (time.perf_counter() - start) * (len(tasks) - 1)
            report(1, len(tasks))
            if n_jobs in (None, 1) or left < _WORTH_PROCESSES:
                for task in tasks[1:]:
                    results.append(function(*task))
                    report(len(results), len(tasks))
                return results
        return results + _run_in_processes(function, tasks[1:], n_jobs, report)


def _run_in_processes(
    function: Callable[..., Any], tasks: Sequence[tuple], n_jobs: int | None, report: Progress
) -> list[Any]:
    results: list[Any] = [None] * len(tasks)
    stopped = False

    def feed() -> Iterator[Any]:
        for place, task in enumerate(tasks):
            if stopped:
                return
            yield delayed(_placed)(place, function, task)

    workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    running = workers(feed())
    for done, (place, result) in enumerate(running, start=2):
        results[place] = result
        try:
            report(done, len(tasks) + 1)
        except BaseException:
            stopped = True
            for _ in running:  # those that run already
                pass
            raise
    return results


def _placed(place: int, function: Callable[..., Any], task: tuple) -> tuple[int, Any]:
    return place, function(*task)


@contextmanager
def _reporting(progress: Progress | bool | None, total: int, name: str) -> Iterator[Progress]:
    """Give a function to report to: the caller's own, a bar on stderr, or nothing."""
    if callable(progress):
        yield progress
        return
    with tqdm(total=total, desc=name, unit="fit", disable=not progress, leave=False) as bar:
        yield lambda done, total: bar.update(done - bar.n)


def _youden_cut(model: Any, X: Any, y: NDArray[np.int64], seed: int, folds: int) -> float:
    """Return the threshold with the largest recall + specificity on out-of-fold scores of the training rows.

    A row is called positive where its score is above the threshold, so the threshold is the largest score
    that is called negative.
    """
    least = int(np.bincount(y, minlength=2).min())
    if least < 2:
        raise InputError(
            "threshold='youden' needs two rows of each label in training, and a fold has one; give a number"
        )
    scores = np.empty(y.size)
    splitter = StratifiedKFold(min(folds, least), shuffle=True, random_state=seed)
    for inner, outer in splitter.split(np.zeros((y.size, 1)), y):
        scores[outer] = decide(seeded(model, seed).fit(take(X, inner), y[inner]), take(X, outer))
    is_one = y == 1
    cuts, place = np.unique(scores, return_inverse=True)
    missed = np.cumsum(np.bincount(place[is_one], minlength=cuts.size)) / is_one.sum()
    spared = np.cumsum(np.bincount(place[~is_one], minlength=cuts.size)) / (~is_one).sum()
    best = int(np.argmax(spared - missed))
    return float(cuts[best]) if spared[best] > missed[best] else -np.inf
