"""The resampled breadth of the graded leak."""

import numpy as np
import pandas as pd

from leakviz.graded import WINDOWS, read_graded, resample_breadth
from leakviz.paths import data_dir


def breadth_by_hand(p, q, y, epsilon):
    """Return the largest share of records down to which p's purity exceeds q's by more than epsilon."""
    ends = [k for k in range(1, len(y) + 1) if k == len(y) or np.sort(p)[-k] != np.sort(p)[-k - 1]]
    best = 0
    for k in ends:
        cut = np.sort(q)[-k]
        above, level = y[q > cut], y[q == cut]
        purity_q = (above.sum() + level.mean() * (k - len(above))) / k
        if y[np.argsort(-p, kind="stable")[:k]].mean() - purity_q > epsilon + 1e-12:
            best = k
    return best / len(y)


def test_every_resample_is_judged_by_its_own_honest_models():
    rng = np.random.default_rng(5)
    y = rng.random(60) < 0.4
    honest, other, leak = (y + rng.normal(scale=s, size=60) for s in (1.5, 1.4, 0.8))
    honest, other, leak = (1 / (1 + np.exp(-v)) for v in (honest, other, leak))
    table = resample_breadth([leak], y, honest=honest, other=other, epsilons=["0.02"], resamples=25, seed=3)
    draws = np.random.default_rng(3)
    found, null = [], []
    for _ in range(25):
        at = draws.integers(0, 60, 60)
        one, two, three, of = honest[at], other[at], leak[at], y[at]
        found.append(breadth_by_hand(three, one, of, 0.02))
        null.append([breadth_by_hand(one, two, of, 0.02), breadth_by_hand(two, one, of, 0.02)])
    assert table.exceeds.item() == np.mean(np.array(found) > np.max(null, axis=1))
    np.testing.assert_allclose(table.high.item(), np.quantile(found, 0.975))
    np.testing.assert_allclose(table.null_high.item(), np.quantile(np.max(null, axis=1), 0.975))
    assert 0 < table.exceeds.item() < 1


def test_the_shipped_table_is_of_the_shipped_vectors():
    """A few resamples of the same vectors agree with the thousand that were written, within their noise."""

    def read(arm):
        return pd.read_parquet(data_dir() / "predictions" / f"flchain__{arm}.parquet")

    honest, other = read("lr__honest"), read("hgb__honest")
    leaks = [read(f"lr__dead{days}d")["p"] for days in (30, 1460)]
    few = resample_breadth(
        leaks, honest["y"], honest=honest["p"], other=other["p"], epsilons=["0.01"], resamples=60, seed=9
    )
    table = read_graded()
    assert table.window_days.values.tolist() == list(WINDOWS[1:])
    shipped = table.exceeds.sel(epsilon=0.01, window_days=[30, 1460]).values
    assert (np.abs(few.exceeds.values[0] - shipped) < 0.2).all()
    assert shipped[0] < 0.5 < 0.95 < shipped[1]
