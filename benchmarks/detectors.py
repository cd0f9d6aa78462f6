"""Print how much faster the detectors' short ways are than the plain ones, and that both agree.

    python benchmarks/detectors.py [--large] [--threads 1]

Compared in turn, on one thread unless --threads says otherwise; ratios are of the best CPU times, which another
program on the machine changes least; absolute times are this machine's:

- 101 alphas with their AUROCs (and intervals) at 11,000 fit rows, 11,000 test rows and 128 features, against
  refitting scikit-learn's `ShrunkCovariance`, scoring and `roc_auc_score` one by one;
- a fit set with one class left out, from class statistics, against `LedoitWolf` on the remaining rows;
- kNN against `NearestNeighbors`;
- D = 2,048: time, and the peak of memory, of a detector and an 11-alpha sweep, in a process of its own.

With --large, also an audit of 50,000 x 768 fit rows and 10,000 test rows, in a process of its own: a minute.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import LedoitWolf, ShrunkCovariance
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from leakviz import (
    Mahalanobis,
    audit_split,
    class_statistics,
    knn_score,
    stops,
    sweep_shrinkage,
)

CLASSES = 10


def features(rows: int, size: int, *, seed: int, dtype: type = np.float64) -> tuple[NDArray, NDArray]:
    """Return correlated features with class means, and the classes."""
    world, rng = np.random.default_rng(0), np.random.default_rng(seed)
    falling = np.exp(-np.arange(size) / (size / 8))[:, np.newaxis]
    mixing = (world.normal(size=(size, size)) * falling).astype(dtype)
    means = world.normal(size=(CLASSES, size)).astype(dtype)
    labels = rng.integers(0, CLASSES, rows)
    noise = rng.standard_normal((2, rows, size), dtype=dtype)
    return noise[0] @ mixing + means[labels] + noise[1] / 10, labels


def best_times(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Return CPU seconds of each, taken in turn."""
    best = [np.inf] * len(functions)
    for _ in range(repeats):
        for place, function in enumerate(functions):
            start = time.process_time()
            function()
            best[place] = min(best[place], time.process_time() - start)
    return best


def unit(rows: NDArray) -> NDArray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def compare_sweep() -> None:
    fit, labels = features(11_000, 128, seed=1)
    tests, classes = features(11_000, 128, seed=2)
    is_ood = classes == 0
    fit = fit[labels != 0]
    alphas = stops(0, 1, "0.01")

    def plain() -> list[float]:
        centre, spread = fit.mean(axis=0), fit.std(axis=0)
        areas = []
        for alpha in alphas:
            model = ShrunkCovariance(shrinkage=alpha).fit((fit - centre) / spread)
            areas.append(roc_auc_score(is_ood, model.mahalanobis((tests - centre) / spread)))
        return areas

    def ours() -> NDArray:
        return sweep_shrinkage(fit, tests[~is_ood], tests[is_ood], alphas=alphas).auroc.values

    difference = np.abs(ours() - plain()).max()
    fast, slow = best_times(ours, plain, repeats=3)
    print(f"101 alphas, N = 11,000, D = 128: {1e3 * fast:.0f} ms against {1e3 * slow:.0f} ms,", end=" ")
    print(f"{slow / fast:.1f} times; largest difference of an AUROC {difference:.1e}")


def compare_fit_set() -> None:
    rows, labels = features(11_000, 128, seed=1)
    classes = class_statistics(rows, labels)
    kept = rows[labels != 3]

    def plain() -> LedoitWolf:
        return LedoitWolf().fit((kept - kept.mean(axis=0)) / kept.std(axis=0))

    statistics = classes.without(3)
    difference = abs(statistics.ledoit_wolf() - plain().shrinkage_)
    summed, detector, slow = best_times(
        lambda: classes.without(3),
        lambda: Mahalanobis.from_statistics(classes.without(3)),
        plain,
        repeats=20,
    )
    print(
        f"One class out, D = 128: statistics {1e3 * summed:.2f} ms, with a detector {1e3 * detector:.2f} ms,"
    )
    print(f"  against {1e3 * slow:.1f} ms, {slow / detector:.1f} times; difference of alpha {difference:.1e}")


def compare_knn() -> None:
    fit, _ = features(10_000, 128, seed=1)
    rows, _ = features(2_000, 128, seed=2)
    neighbours = NearestNeighbors(n_neighbors=50)

    def plain() -> NDArray:
        return neighbours.fit(unit(fit)).kneighbors(unit(rows))[0][:, -1]

    difference = np.abs(knn_score(fit, rows) + plain()).max()
    fast, slow = best_times(lambda: knn_score(fit, rows), plain, repeats=3)
    print(f"kNN, 10,000 x 128 against 2,000 rows: {1e3 * fast:.0f} ms against {1e3 * slow:.0f} ms,", end=" ")
    print(f"{slow / fast:.1f} times; largest difference of a distance {difference:.1e}")


def measure_wide() -> dict[str, float]:
    fit, _ = features(11_000, 2_048, seed=1, dtype=np.float32)
    tests, classes = features(2_000, 2_048, seed=2, dtype=np.float32)
    start = time.perf_counter()
    detector = Mahalanobis().fit(fit)
    detector.score_samples(tests)
    fitted = time.perf_counter()
    sweep_shrinkage(detector.statistics_, tests[classes != 0], tests[classes == 0], alphas=stops(0, 1, "0.1"))
    return {"detector": fitted - start, "sweep": time.perf_counter() - fitted}


def measure_audit() -> dict[str, float]:
    fit, labels = features(50_000, 768, seed=1, dtype=np.float32)
    tests, classes = features(10_000, 768, seed=2, dtype=np.float32)
    reports: list[float] = []
    start, cpu = time.perf_counter(), time.process_time()
    audit_split(
        fit,
        tests[classes != 0],
        tests[classes == 0],
        fit_labels=labels,
        ood_class=0,
        id_test_labels=classes[classes != 0],
        progress=lambda done, total: reports.append(done / total),
    )
    return {
        "audit": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "reports": len(reports),
        "last": reports[-1],
    }


def in_own_process(name: str) -> dict[str, float]:
    """Measure in a fresh process, whose peak of memory is its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measure", choices=("wide", "audit"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        found = {"wide": measure_wide, "audit": measure_audit}[asked.measure]()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(json.dumps({**found, "gigabytes": peak}))
        return
    with threadpool_limits(limits=asked.threads):
        compare_sweep()
        compare_fit_set()
        compare_knn()
    wide = in_own_process("wide")
    print(
        f"D = 2,048, 11,000 fit rows: detector {wide['detector']:.1f} s, 11 alphas {wide['sweep']:.1f} s,",
        end=" ",
    )
    print(f"peak {wide['gigabytes']:.2f} GB")
    if asked.large:
        audit = in_own_process("audit")
        print(
            f"Audit of 50,000 x 768 and 10,000 rows: {audit['audit']:.1f} s ({audit['cpu']:.1f} s of CPU),",
            f"peak {audit['gigabytes']:.2f} GB,",
        )
        print(f"  {audit['reports']:.0f} reports of progress, the last {audit['last']:.0%}")


if __name__ == "__main__":
    main()
