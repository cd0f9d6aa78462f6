"""Print how much faster the table of pairs and the row bootstrap are than the ordinary way, in one run.

    python benchmarks/lodo.py [rows] [sources]

The K x K table of pair AUROCs is compared with scikit-learn's `roc_auc_score` for each of the K x K cells; the
fits of `retention` with scikit-learn's logistic regression to the same tolerance; worker processes with one
process, on a model whose fits take a second or so together. Ratios are of times taken in turn; absolute times are this
machine's.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from leakviz.lodo import lodo
from leakviz.lodo.pairs import pair_table
from leakviz.lodo.retention import fit_coefficients

REPEATS = 3


def best(*functions: Callable[[], object]) -> list[float]:
    """Return the best time of each in milliseconds, taken in turn so that a busy moment hits all."""
    times = [np.inf] * len(functions)
    for _ in range(REPEATS):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[i] = min(times[i], 1e3 * (time.perf_counter() - start))
    return times


def show(what: str, ours: float, theirs: float) -> None:
    print(f"{what:58}{ours:>10.1f}{theirs:>12.1f}{theirs / ours:>8.1f}")


def cell_by_cell(scores: np.ndarray, y: np.ndarray, code: np.ndarray, n_sources: int) -> np.ndarray:
    table = np.full((n_sources, n_sources), np.nan)
    for i in range(n_sources):
        for j in range(n_sources):
            rows = ((code == i) & (y == 1)) | ((code == j) & (y == 0))
            if 0 < y[rows].sum() < rows.sum():
                table[i, j] = roc_auc_score(y[rows], scores[rows])
    return table


def main(rows: int = 50_000, n_sources: int = 17) -> None:
    rng = np.random.default_rng(0)
    code, y = rng.integers(0, n_sources, rows), rng.integers(0, 2, rows)
    scores = y + rng.normal(size=rows)
    ours = pair_table(scores, y, code, n_sources=n_sources).auc
    np.testing.assert_allclose(ours, cell_by_cell(scores, y, code, n_sources), rtol=0, atol=1e-12)

    print(f"{'best of ' + str(REPEATS) + ', milliseconds':58}{'leakviz':>10}{'ordinary':>12}{'ratio':>8}")
    times = best(
        lambda: pair_table(scores, y, code, n_sources=n_sources).auc,
        lambda: cell_by_cell(scores, y, code, n_sources),
    )
    show(f"table of pairs, {rows:,} rows, {n_sources} sources", *times)

    Z, label = rng.normal(size=(1000, 32)), np.tile([0, 1], 500)
    Z[:, 0] += label
    for solver in ("newton-cholesky", "lbfgs"):
        model = LogisticRegression(class_weight="balanced", solver=solver, tol=1e-8, max_iter=10_000)
        np.testing.assert_allclose(
            fit_coefficients(Z, label, 1.0, np.ones(1000))[0], model.fit(Z, label).coef_[0], atol=1e-5
        )
        with threadpool_limits(limits=1, user_api="blas"):
            times = best(
                lambda: [fit_coefficients(Z, label, 1.0, np.ones(1000)) for _ in range(20)],
                lambda model=model: [model.fit(Z, label) for _ in range(20)],
            )
        show(f"20 fits of retention, 1,000 x 32, against {solver}", *times)

    forest = RandomForestClassifier(n_estimators=50, random_state=0)
    source = rng.integers(0, 12, 3000)
    X, target = rng.normal(size=(3000, 16)), rng.integers(0, 2, 3000)

    def fit(n_jobs: int) -> None:
        lodo(X, target, source, model=forest, controls=0, identity=False, bootstrap=10, n_jobs=n_jobs)

    fit(-1)  # starts the worker processes, which stay
    show("18 forests, all cores against one", *best(lambda: fit(-1), lambda: fit(1)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
