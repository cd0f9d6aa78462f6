"""The graded leak of flchain: how far sampling alone moves its breadth. Source: arXiv 2606.11267, sections 2 and 7.2.

The model is told who died within so many days after the baseline. Breadth over the honest model is judged
against how far two honest models for the same records exceed one another; both are uncertain, so the rows
are drawn anew, all vectors together, and the comparison is made in every resample.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from leakviz.blind import EPSILON_STOPS
from leakviz.errors import InputError
from leakviz.paths import data_dir, write_whole
from leakviz.purity import BreadthCurve, check_predictions, rank_predictions

WINDOWS = (0, 30, 90, 180, 365, 730, 1460)
"""Days after the baseline; 0 is the honest model."""

RESAMPLES = 1000
"""Draws behind the table that ships."""

_SEED = 0


def resample_breadth(
    vectors: Sequence[ArrayLike],
    y: ArrayLike,
    *,
    honest: ArrayLike,
    other: ArrayLike,
    epsilons: Iterable[object] = EPSILON_STOPS,
    resamples: int = RESAMPLES,
    seed: int = _SEED,
) -> xr.Dataset:
    """Return how often a vector's breadth exceeds that of honest models over each other, over resamples of the rows.

    Parameters
    ----------
    vectors : sequence of array-like, each of shape (n,)
        Predictions that are compared with `honest`.
    y : array-like, shape (n,)
        Outcomes of the same rows.
    honest, other : array-like, shape (n,)
        Two honest vectors; each one's breadth over the other is what honest models reach.
    epsilons : iterable of decimals
        Excess of purity from which it counts.
    resamples : int
        Draws of n rows with replacement, the same rows for all vectors.
    seed : int

    Returns
    -------
    xarray.Dataset
        Shares of the records, over `epsilon` (and `vector`): `low` and `high`, the 2.5 and 97.5 % quantiles of the
        breadth; `null_low` and `null_high`, those quantiles of the smaller and the larger breadth of the honest two;
        `exceeds`, the share of resamples in which the vector's breadth is above both of theirs.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`.

    Examples
    --------
    >>> y = np.array([1, 0] * 20)
    >>> p = np.linspace(0.6, 0.4, 40)
    >>> table = resample_breadth([y, p], y, honest=p, other=p, epsilons=["0.01"], resamples=20)
    >>> table.exceeds.values.tolist(), table.null_high.item()
    ([[1.0, 0.0]], 0.0)
    """
    cuts = [float(str(e)) for e in epsilons]
    rows = [check_predictions(v, y)[0] for v in (*vectors, honest, other)]
    outcomes = check_predictions(honest, y)[1]
    rng = np.random.default_rng(seed)
    found = np.empty((resamples, len(cuts), len(vectors)))
    null = np.empty((resamples, len(cuts), 2))
    for i in range(resamples):
        drawn = rng.integers(0, outcomes.size, outcomes.size)
        *leaks, one, two = (rank_predictions(v[drawn], outcomes[drawn]) for v in rows)
        curves = [BreadthCurve(leak, one) for leak in leaks]
        honest_two = BreadthCurve(one, two), BreadthCurve(two, one)
        for j, epsilon in enumerate(cuts):
            found[i, j] = [c.breadth(epsilon) for c in curves]
            null[i, j] = [c.breadth(epsilon) for c in honest_two]
    low, high = np.quantile(found, [0.025, 0.975], axis=0)
    return xr.Dataset(
        {
            "low": (("epsilon", "vector"), low),
            "high": (("epsilon", "vector"), high),
            "exceeds": (("epsilon", "vector"), (found > null.max(axis=2, keepdims=True)).mean(axis=0)),
            "null_low": ("epsilon", np.quantile(null.min(axis=2), 0.025, axis=0)),
            "null_high": ("epsilon", np.quantile(null.max(axis=2), 0.975, axis=0)),
        },
        {"epsilon": cuts},
        {"resamples": resamples, "seed": seed},
    )


def write_graded(folder: str | Path) -> Path:
    """Compute the table of flchain's shipped vectors and write it as ``graded_breadth.csv``: about a minute."""

    def read(arm: str) -> pd.DataFrame:
        return pd.read_parquet(data_dir() / "predictions" / f"flchain__{arm}.parquet")

    honest, other = read("lr__honest"), read("hgb__honest")
    leaks = [read(f"lr__dead{days}d")["p"].to_numpy() for days in WINDOWS[1:]]
    table = resample_breadth(leaks, honest["y"], honest=honest["p"], other=other["p"])
    frame = table.assign_coords(vector=list(WINDOWS[1:])).rename(vector="window_days").to_dataframe()
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    file = target / "graded_breadth.csv"
    write_whole(file, frame.reset_index().to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    return file


def read_graded(file: str | Path | None = None) -> xr.Dataset:
    """Return the shipped table, as `resample_breadth` makes it, over `epsilon` and `window_days`.

    Raises
    ------
    InputError
        If the file is missing.

    Examples
    --------
    >>> read_graded().window_days.values.tolist()
    [30, 90, 180, 365, 730, 1460]
    """
    path = data_dir() / "predictions" / "graded_breadth.csv" if file is None else Path(file)
    if not path.is_file():
        raise InputError(f"file {str(path)!r} does not exist; write it with write_graded")
    table = xr.Dataset.from_dataframe(pd.read_csv(path).set_index(["epsilon", "window_days"]))
    null = {name: table[name].isel(window_days=0, drop=True) for name in ("null_low", "null_high")}
    return table.assign(null)


if __name__ == "__main__":
    print(write_graded(sys.argv[1]))
