"""Speed and memory of the blind test, as ratios of one run.

    python benchmarks/blind.py [--rows 500000] [--prevalence-logit -5 0] [--skip-script]

At a low prevalence few predictions had an event, at one half every second: there is more to look at.

Compared with one ``numpy.sort`` of the same predictions, and with the same quantities from a
straightforward script of numpy, scipy and scikit-learn, which also shows that both agree.

numpy's AVX-512 sort is slower than its AVX2 sort on some AMD processors; compare with a run under
``NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR"`` (names of numpy 2.4; older ones say
AVX512_SKX for X86_V4).
"""

import argparse
import math
import time
import tracemalloc

import numpy as np
from scipy.special import expit
from scipy.stats import beta, rankdata
from sklearn.metrics import roc_auc_score

from leakviz.blind import blind_test, blind_test_ranked, sweep_blind
from leakviz.calibration import net_benefit_ranked
from leakviz.purity import head_bound_ranked, purity_curve_ranked, rank_predictions, spike_ranked


def best_of(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def script(p, y, delta=0.05):
    """What one would write for it with numpy and scikit-learn; no M*."""
    n, ones = p.size, int(y.sum())
    zeros = n - ones
    area = roc_auc_score(y, p)

    # DeLong by midranks
    ranks, within_ones, within_zeros = rankdata(p), rankdata(p[y == 1]), rankdata(p[y == 0])
    of_ones = (ranks[y == 1] - within_ones) / zeros
    of_zeros = 1 - (ranks[y == 0] - within_zeros) / ones
    variance = of_ones.var(ddof=1) / ones + of_zeros.var(ddof=1) / zeros
    half = 1.959963984540054 * math.sqrt(variance) / (area * (1 - area))
    centre = math.log(area / (1 - area))

    order = np.argsort(-p, kind="stable")
    k = np.arange(1, n + 1)
    is_cut = np.append(p[order][1:] != p[order][:-1], True)
    purity = np.cumsum(y[order]) / k
    passes = is_cut & (purity >= 1 - delta - 1e-12)
    spike = k[passes].max(initial=0)
    fails = is_cut & ~passes
    contiguous = k[passes & (k < (k[fails].min() if fails.any() else n + 1))].max(initial=0)
    orders = []
    for tie in (y, 1 - y):
        cum = np.cumsum(y[np.lexsort((tie, -p))]) / k
        orders.append(k[cum >= 1 - delta - 1e-12].max(initial=0))

    dispersions = []
    inside = (p > 0) & (p < 1)
    q, e = p[inside], y[inside]
    for w in (np.ones_like(q), -np.log1p(-q)):
        a, s2 = w**2, q * (1 - q)
        each = a**2 * s2 * (1 - 2 * q) ** 2
        dispersions += [
            (a * (e - q) ** 2).sum() / (a * s2).sum(),
            (a * (1 - 2 * q) * (e - q)).sum() / math.sqrt(each.sum()),
            each.sum() ** 2 / (each**2).sum(),
        ]
    head = (spike, contiguous, *orders)
    return np.array([area, expit(centre - half), expit(centre + half), *head, *dispersions])


def script_bound(p, y):
    """Compute M* by asking scipy at every cut."""
    order = np.argsort(-p, kind="stable")
    cuts = np.flatnonzero(np.append(p[order][1:] != p[order][:-1], True))
    k, events = cuts + 1, np.cumsum(y[order])[cuts]
    wanted = (k >= 50) & (events > 0)
    return beta.ppf(0.05, events[wanted], k[wanted] - events[wanted] + 1).max()


def ours(result):
    unit, uniform = result.dispersion, result.dispersion_uniform
    area = [result.c_statistic, result.c_low, result.c_high]
    head = [result.spike, result.spike_contiguous, result.spike_worst_order, result.spike_best_order]
    both = [value for d in (unit, uniform) for value in (d.v, d.z_raw, d.effective_records)]
    return np.array([*area, *head, *both])


def line(what, seconds, more=""):
    print(f"{what:32s}{seconds * 1e3:10.3f} ms   {more}")


def measure(args, prevalence_logit):
    rng = np.random.default_rng(0)
    p = expit(rng.normal(prevalence_logit, 1.7, args.rows))
    y = (rng.random(args.rows) < p).astype(np.int8)
    print(f"{args.rows:,} rows, prevalence {y.mean():.4f}")

    sort_time, test_time = math.inf, math.inf
    for _ in range(args.repeats):  # in turn, so that both meet the same machine
        sort_time = min(sort_time, best_of(lambda: np.sort(p), 1)[0])
        seconds, result = best_of(lambda: blind_test(p, y), 1)
        test_time = min(test_time, seconds)
    line("one np.sort", sort_time)
    line("blind_test, cold", test_time, f"{test_time / sort_time:.2f} sorts (at most 4)")

    tracemalloc.start()
    blind_test(p, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"memory: {peak / (8 * args.rows) + 1:.2f} arrays of n, p itself included (at most 6)")

    ranked = rank_predictions(p, y)
    spike_ranked(ranked, "0.05")  # prepares what later calls use
    blind_test_ranked(ranked)
    tau = np.arange(1, 100) / 100
    repeats = max(3, args.repeats)
    line("k_min moved, whole result", best_of(lambda: blind_test_ranked(ranked, k_min=66), args.repeats)[0])
    line("delta moved", best_of(lambda: spike_ranked(ranked, "0.07"), repeats)[0])
    line(
        "99 thresholds of net benefit",
        best_of(lambda: net_benefit_ranked(ranked, tau), repeats)[0],
        "(below 1)",
    )
    line("sweep over all slider stops", best_of(lambda: sweep_blind(ranked), 3)[0])
    line("purity curve to draw", best_of(lambda: purity_curve_ranked(ranked), 3)[0])

    if args.skip_script:
        return
    script_time, expected = best_of(lambda: script(p, y), 3)
    line("script without M*", script_time, f"{script_time / test_time:.1f} times blind_test (at least 8)")
    bound_time, bound = best_of(lambda: script_bound(p, y), 1)
    line("script's M* alone", bound_time, f"{bound_time / test_time:.1f} times blind_test")
    difference = np.max(np.abs(ours(result) - expected) / np.maximum(1, np.abs(expected)))
    print(f"largest relative difference {difference:.1e}")
    print(f"difference in M* {abs(head_bound_ranked(ranked).risk - bound):.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument(
        "--prevalence-logit",
        type=float,
        nargs="+",
        default=[-5.0, 0.0],
        help="means of the normal logit (sd 1.7): prevalence 0.02 and 0.5",
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--skip-script", action="store_true")
    args = parser.parse_args()
    for prevalence_logit in args.prevalence_logit:
        measure(args, prevalence_logit)
        print()


if __name__ == "__main__":
    main()
