"""Print how much faster `auroc` and `auroc_interval` are than the ordinary way, in one interleaved run.

    python benchmarks/auroc.py [rows]

`auroc` is compared with scikit-learn's `roc_auc_score`; `auroc_interval` with DeLong's variance from
scipy's midranks (Sun and Xu), the usual fast implementation. Ratios are of the best times; absolute times
are this machine's. On some AMD processors numpy's AVX-512 sort is slower than its AVX2 sort: run again with
NPY_DISABLE_CPU_FEATURES="AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR" (names
that this numpy does not know are reported and can be left out) and compare.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm, rankdata
from sklearn.metrics import roc_auc_score

from leakviz.statistics import auroc, auroc_interval

PREVALENCES = (0.02, 0.1, 0.5)
REPEATS = 5


def interval_by_midranks(scores: NDArray, labels: NDArray) -> tuple[float, float]:
    ones, zeros = scores[labels], scores[~labels]
    ranks = rankdata(np.concatenate([ones, zeros]))
    share_ones = (ranks[: ones.size] - rankdata(ones)) / zeros.size
    share_zeros = 1 - (ranks[ones.size :] - rankdata(zeros)) / ones.size
    area = share_ones.mean()
    variance = share_ones.var(ddof=1) / ones.size + share_zeros.var(ddof=1) / zeros.size
    half = norm.ppf(0.975) * np.sqrt(variance) / (area * (1 - area))
    return float(expit(logit(area) - half)), float(expit(logit(area) + half))


def samples(rows: int) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    uniform, normal = rng.random(rows), rng.normal(size=rows)
    return {
        "probabilities": uniform,
        "probabilities, sorted": np.sort(uniform),
        "3 decimals": uniform.round(3),
        "6 decimals": uniform.round(6),
        "logits": normal,
        "logits, sorted": np.sort(normal),
        "logits, 1 decimal": normal.round(1),
        "float32": uniform.astype(np.float32),
        "in pairs": np.repeat(uniform[: rows // 2], 2),
    }


def best_times(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Return milliseconds of each, taken in turn so that a busy moment hits both."""
    best = [np.inf, np.inf]
    for _ in range(REPEATS):
        for i, function in enumerate((ours, theirs)):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], 1e3 * (time.perf_counter() - start))
    return best[0], best[1]


def main(rows: int = 500_000) -> None:
    print(f"{rows:,} rows, best of {REPEATS}, milliseconds (leakviz / ordinary) and ratio")
    print(f"{'scores':24}{'prevalence':>11}{'auroc':>20}{'ratio':>7}{'auroc_interval':>22}{'ratio':>7}")
    rng = np.random.default_rng(1)
    for name, scores in samples(rows).items():
        for prevalence in PREVALENCES:
            labels = rng.random(scores.size) < prevalence
            if not np.isclose(auroc(scores, labels), roc_auc_score(labels, scores), rtol=0, atol=1e-12):
                raise AssertionError(f"auroc differs from scikit-learn on {name}")
            if not np.allclose(
                auroc_interval(scores, labels), interval_by_midranks(scores, labels), atol=1e-9
            ):
                raise AssertionError(f"auroc_interval differs from the midranks on {name}")
            area = best_times(lambda: auroc(scores, labels), lambda: roc_auc_score(labels, scores))  # noqa: B023
            bounds = best_times(
                lambda: auroc_interval(scores, labels),  # noqa: B023
                lambda: interval_by_midranks(scores, labels),  # noqa: B023
            )
            print(
                f"{name:24}{prevalence:>11}{area[0]:>12.1f} /{area[1]:>6.1f}{area[1] / area[0]:>7.1f}"
                f"{bounds[0]:>14.1f} /{bounds[1]:>6.1f}{bounds[1] / bounds[0]:>7.1f}"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
