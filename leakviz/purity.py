"""The head of a risk ranking: who stands at the top, and how many of them had the event.

Everything here rests on one sort. `rank_predictions` makes it; the functions whose
names end in ``_ranked`` answer questions about the sorted state without sorting again.

Purity exists only where a threshold can cut: at ``k = #{p >= t}``, the end of a block
of tied predictions. Inside a block the order is arbitrary, so what it would show is
reported apart, as the best and the worst order.

Source of the statistics: arXiv 2606.11267, sections 2 and 6.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, ndtri

from leakviz.decimals import as_decimal, stops
from leakviz.errors import InputError

#: Distinct purities e/k stay distinct in float64 up to this many rows.
MOST_ROWS = 2**26

_PART = 8_192

#: The rank from which `head_bound_ranked` looks at heads.
BOUND_FROM = 50

DELTA_STOPS = stops("0", "0.3", "0.005")
"""The stops of the page's slider for delta."""

K_MIN_STOPS = np.unique(
    np.concatenate(
        [
            np.arange(1, 20),
            np.arange(20, 50, 2),
            np.arange(50, 100, 5),
            np.arange(100, 200, 10),
            np.arange(200, 500, 25),
            np.arange(500, 1001, 50),
            [66],  # what the paper's formula asks for at alpha 0.001 and M 0.9; 325 is what delta 0.05 needs
        ]
    )
)
"""The stops of the page's slider for k_min, roughly logarithmic."""


def check_predictions(
    p: ArrayLike, y: ArrayLike, *, name: str = "p"
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return predictions and outcomes as arrays that can be computed with, or say what is wrong.

    Parameters
    ----------
    p : array-like of numbers, shape (n,)
        Predicted risks in [0, 1].
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Outcomes; 1 is the event.
    name : str
        What error messages call `p`.

    Returns
    -------
    p : numpy.ndarray of float64, shape (n,)
        The input itself where it already is one.
    y : numpy.ndarray of uint8, shape (n,)
        Zeros and ones.

    Raises
    ------
    InputError
        If an argument is empty, not one-dimensional, not numeric, has missing values
        or values out of range, or the lengths differ.

    Examples
    --------
    >>> check_predictions([0.25, 1], [False, True])
    (array([0.25, 1.  ]), array([0, 1], dtype=uint8))
    """
    risks = _numbers(p, name)
    outcomes = _numbers(y, "y")
    if risks.size != outcomes.size:
        raise InputError(
            f"{name} and y must have the same length, got {risks.size} and {outcomes.size}; "
            "give one outcome for each prediction"
        )
    if risks.size == 0:
        raise InputError(f"{name} and y have no rows; give at least one prediction")
    if risks.size > MOST_ROWS:
        raise InputError(
            f"{name} has {risks.size:,} rows and purities are told apart exactly only up to {MOST_ROWS:,}; "
            "test a random part of them"
        )
    risks = risks.astype(np.float64, copy=False)
    if not (risks.min() >= 0 and risks.max() <= 1):  # a nan makes both false
        _refuse(np.isnan(risks), risks, name, "missing (nan)", "drop or mend these rows first")
        _refuse(
            (risks < 0) | (risks > 1),
            risks,
            name,
            "outside [0, 1]",
            "give risks: divide percentages by 100, put logits through the logistic function",
        )
    if outcomes.dtype.kind == "f":
        _refuse(np.isnan(outcomes), outcomes, "y", "missing (nan)", "drop or mend these rows first")
    if outcomes.dtype.kind != "b" and (
        outcomes.dtype.kind == "f" or not (outcomes.min() >= 0 and outcomes.max() <= 1)
    ):
        _refuse(
            (outcomes != 0) & (outcomes != 1),
            outcomes,
            "y",
            "neither 0 nor 1",
            "write the event as 1 and its absence as 0",
        )
    return risks, outcomes.astype(np.uint8, copy=False)


@dataclass(frozen=True, eq=False)
class RankedPredictions:
    """Predictions and outcomes, sorted once: the state behind every question about the head.

    Made by `rank_predictions`. The arrays are read-only. The rows of the three block
    arrays are the tie blocks that hold at least one event, from the highest prediction
    down; no other block can raise the purity.

    Attributes
    ----------
    n : int
        Rows.
    events : int
        Rows with y = 1.
    keys : numpy.ndarray of int64, shape (n,)
        Ascending; the bits of the prediction, shifted up by one, and the outcome in the lowest bit.
    block_start, block_end : numpy.ndarray of int32, shape (blocks,)
        Records above the block, and records above it or in it.
    block_cum : numpy.ndarray of int32, shape (blocks,)
        Events above the block or in it.

    Examples
    --------
    >>> ranked = rank_predictions([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    >>> ranked.block_end.tolist(), ranked.block_cum.tolist(), ranked.block_p.tolist()
    ([1, 3], [1, 2], [0.9, 0.8])
    """

    n: int
    events: int
    keys: NDArray[np.int64]
    block_start: NDArray[np.int32]
    block_end: NDArray[np.int32]
    block_cum: NDArray[np.int32]

    @property
    def prevalence(self) -> float:
        """Share of rows with the event."""
        return self.events / self.n

    @property
    def constant(self) -> bool:
        """Whether all predictions are the same, so that nothing is ranked."""
        return bool(self.keys[0] >> 1 == self.keys[-1] >> 1)

    @property
    def block_p(self) -> NDArray[np.float64]:
        """The prediction that each block's members share."""
        return (self.keys[self.n - self.block_end] >> 1).view(np.float64)

    @cached_property
    def block_events(self) -> NDArray[np.int32]:
        """Events in each block."""
        events = self.block_cum.copy()
        events[1:] -= self.block_cum[:-1]
        return events

    @cached_property
    def next_start(self) -> NDArray[np.int32]:
        """Records above the next block that holds an event; n after the last one."""
        following = np.full_like(self.block_start, self.n)
        following[:-1] = self.block_start[1:]
        return following

    @cached_property
    def head_records(self) -> NDArray[np.int64]:
        """Blocks whose purity no later block reaches: where the spike can lie, for any delta."""
        return _unreached_later(self.block_cum, self.block_end)

    @cached_property
    def best_records(self) -> NDArray[np.int64]:
        """The same where each block lists its events first."""
        peak = self.block_start + self.block_events
        return (
            self.head_records
            if np.array_equal(peak, self.block_end)
            else _unreached_later(self.block_cum, peak)
        )

    @cached_property
    def low_records(self) -> NDArray[np.int64]:
        """Blocks after which the purity falls below all that was seen before."""
        lowest = self.block_cum / self.next_start
        falls = np.ones(lowest.size, dtype=bool)
        np.less(lowest[1:], np.minimum.accumulate(lowest)[:-1], out=falls[1:])
        return np.flatnonzero(falls)

    def cut_at_or_above(self, k: int) -> int:
        """Return the largest rank <= k at which a threshold can cut (0 if there is none)."""
        if k <= 0 or k >= self.n:
            return min(max(k, 0), self.n)
        score = int(self.keys[self.n - k]) >> 1
        if int(self.keys[self.n - k - 1]) >> 1 != score:
            return k
        return self.n - int(np.searchsorted(self.keys, 2 * score + 1, side="right"))

    def cut_at_or_below(self, k: int) -> int:
        """Return the smallest rank >= k at which a threshold can cut, for k from 1 to n."""
        score = int(self.keys[self.n - k]) >> 1
        return self.n - int(np.searchsorted(self.keys, 2 * score, side="left"))

    def events_above(self, k: ArrayLike) -> NDArray[np.int64]:
        """Return how many events stand in the first k records, for cuts k."""
        ranks = np.asarray(
            k, dtype=self.block_end.dtype
        )  # another type would make searchsorted copy the blocks
        done = np.searchsorted(self.block_end, ranks, side="right")
        if self.block_cum.size == 0:
            return np.zeros(ranks.shape, dtype=np.int64)
        return np.where(done > 0, self.block_cum[done - 1], 0).astype(np.int64)

    def count_at_least(self, thresholds: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return, for each threshold in [0, 1], how many records have p >= it, and how many events."""
        lowest_key = (thresholds + 0.0).view(np.int64) << 1
        records = self.n - np.searchsorted(self.keys, lowest_key, side="left")
        return records, self.events_above(records)

    def predictions(self) -> NDArray[np.float64]:
        """Return the predictions in ascending order, shape (n,)."""
        return (self.keys >> 1).view(np.float64)

    def outcomes(self) -> NDArray[np.uint8]:
        """Return the outcomes in the order of `predictions`, within ties the zeros first."""
        return (self.keys & 1).astype(np.uint8)

    def cuts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return every rank at which a threshold can cut, ascending, and the events above each."""
        starts_block = np.empty(self.n, dtype=bool)
        starts_block[0] = True
        np.greater(self.keys[1:] ^ self.keys[:-1], 1, out=starts_block[1:])  # differ in more than the label
        first = np.flatnonzero(starts_block)[::-1]
        events_below = np.cumsum(self.keys & 1)[first - 1]
        return self.n - first, np.where(first > 0, self.events - events_below, self.events)


def parts(rows: int) -> list[slice]:
    """Cut so many rows into parts that stay in the processor's cache; BLAS starts no threads for them.

    Examples
    --------
    >>> parts(10_000)
    [slice(0, 8192, None), slice(8192, 10000, None)]
    """
    return [slice(start, min(start + _PART, rows)) for start in range(0, rows, _PART)]


def rank_predictions(p: ArrayLike, y: ArrayLike, *, name: str = "p") -> RankedPredictions:
    """Sort predictions once, so that questions about their head cost next to nothing.

    Parameters
    ----------
    p : array-like of numbers, shape (n,)
        Predicted risks in [0, 1]; float32 is computed in float64, -0.0 is 0.
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Outcomes; 1 is the event.
    name : str
        What error messages call `p`.

    Returns
    -------
    RankedPredictions
        The sorted state; it takes one array of n 8-byte words and three of 4-byte words, as long as
        there are distinct predictions that had an event.

    Raises
    ------
    InputError
        As `check_predictions`.

    Notes
    -----
    The bits of a float64 in [0, 1], read as an integer, have the order of the float and leave
    the two highest bits free. Shifted up by one, they make room for the outcome, so one sort
    of 64-bit words orders both, and nothing is lost. The shifted words are again finite floats:
    they are sorted as such, since numpy sorts floats faster than integers. numpy's AVX-512 sort
    is slower than its AVX2 sort on some AMD processors; the environment variable
    ``NPY_DISABLE_CPU_FEATURES="AVX512_SKX AVX512_ICL AVX512_SPR"`` (older numpy) or
    ``"X86_V4 AVX512_ICL AVX512_SPR"`` (numpy 2.4 and later) switches it off. `benchmarks/blind.py` measures.

    Examples
    --------
    >>> rank_predictions([0.1, 0.9], [0, 1]).n
    2
    """
    risks, outcomes = check_predictions(p, y, name=name)
    n = risks.size
    framed = np.empty(n + 2, dtype=np.int64)  # a word at either end that is no prediction's
    framed[[0, -1]] = -1
    keys = framed[1:-1]
    floats = keys.view(np.float64)
    np.add(risks, 0.0, out=floats)  # -0.0 becomes 0
    keys <<= 1
    keys |= outcomes
    floats.sort()

    # Of each block that holds an event, from the top: its last event, its first, and whether non-events tie.
    starts, ends, ties = [], [], []
    for part in reversed(parts(n)):
        words = framed[part.start : part.stop + 2]
        here, differs = words[1:-1], words[1:] != words[:-1]
        is_event = (here.astype(np.int8) & 1).view(bool)
        last = np.flatnonzero(is_event & differs[1:])[::-1]
        first = last if differs.all() else np.flatnonzero(is_event & differs[:-1])[::-1]
        starts.append((n - 1 - part.start - last).astype(np.int32))
        ends.append((n - part.start - first).astype(np.int32))
        ties.append((here - 1 == words[:-2])[first])  # non-events come first in a block
    block_start, block_end, tied = map(np.concatenate, (starts, ends, ties))
    del starts, ends, ties
    block_cum = np.cumsum(block_end - block_start, dtype=np.int32)
    events = int(block_cum[-1]) if block_cum.size else 0
    if tied.any():
        score = keys[n - block_end[tied]] - 1
        block_end[tied] = n - np.searchsorted(keys, score, side="left")

    arrays = {"keys": keys, "block_start": block_start, "block_end": block_end, "block_cum": block_cum}
    for array in arrays.values():
        array.flags.writeable = False
    return RankedPredictions(n=n, events=events, **arrays)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Spike:
    """The pure head at one delta, in records.

    Attributes
    ----------
    tie_blocks : int
        The largest cut k with at least (1 - delta) k events above it; 0 if there is none.
    contiguous : int
        The largest cut down to which every cut passes.
    worst_order, best_order : int
        The largest k, cut or not, if each block listed its non-events (its events) first.
    """

    tie_blocks: int
    contiguous: int
    worst_order: int
    best_order: int


def spike_ranked(ranked: RankedPredictions, delta: object) -> Spike:
    """Return the pure head at one delta; see `sweep_purity` for many.

    Parameters
    ----------
    ranked : RankedPredictions
        From `rank_predictions`.
    delta : str, float, Decimal or Fraction
        Impurity that is let through, in [0, 1); read as a decimal and compared in integers.

    Returns
    -------
    Spike
        Found by bisection, O(log n).

    Raises
    ------
    InputError
        If delta is no decimal in [0, 1).

    Notes
    -----
    arXiv 2606.11267, Algorithm 1, line 6, with tie blocks.

    Examples
    --------
    >>> spike_ranked(rank_predictions([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0]), "0.35")
    Spike(tie_blocks=3, contiguous=3, worst_order=3, best_order=3)
    >>> spike_ranked(rank_predictions([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0]), 0)
    Spike(tie_blocks=1, contiguous=1, worst_order=1, best_order=2)
    """
    purity = 1 - check_delta(delta)
    num, den = purity.numerator, purity.denominator
    start, end, cum = ranked.block_start, ranked.block_end, ranked.block_cum

    def passes(events: Any, k: Any) -> bool:
        return den * int(events) >= num * int(k)

    def reach(block: int) -> int:
        """Return how far down the block's events alone keep the purity up."""
        return den * int(cum[block]) // num

    tie_blocks = worst = best = 0
    block = _last_passing(ranked.head_records, lambda j: passes(cum[j], end[j]))
    if block >= 0:
        gap_end = int(ranked.next_start[block])
        tie_blocks = ranked.cut_at_or_above(min(reach(block), gap_end))
        non_events_next = 0
        if block + 1 < end.size:
            non_events_next = int(end[block + 1] - start[block + 1] - ranked.block_events[block + 1])
        worst = min(reach(block), gap_end + non_events_next)

    block = _last_passing(ranked.best_records, lambda j: passes(cum[j], start[j] + ranked.block_events[j]))
    if block >= 0:
        best = min(reach(block), int(ranked.next_start[block]))

    return Spike(tie_blocks, _contiguous(ranked, passes, reach), worst, best)


def _contiguous(
    ranked: RankedPredictions, passes: Callable[[Any, Any], bool], reach: Callable[[int], int]
) -> int:
    start, end, cum, gap_end = ranked.block_start, ranked.block_end, ranked.block_cum, ranked.next_start
    if cum.size == 0 or start[0] > 0:  # no event, or a cut above the first one
        return 0
    records = ranked.low_records
    position = bisect_left(
        range(records.size), True, key=lambda i: not passes(cum[records[i]], gap_end[records[i]])
    )
    if position == records.size:
        return ranked.n
    block = int(records[position])
    if not passes(cum[block], end[block]):
        return int(start[block])
    return ranked.cut_at_or_above(min(reach(block), int(gap_end[block])))


def check_delta(delta: object, *, name: str = "delta") -> Fraction:
    """Read a decimal in [0, 1) exactly.

    Parameters
    ----------
    delta : str, float, Decimal or Fraction
        As `leakviz.decimals.as_decimal` reads it.
    name : str
        What error messages call it.

    Returns
    -------
    fractions.Fraction
        The exact value.

    Raises
    ------
    InputError
        If it is no decimal or outside [0, 1).

    Examples
    --------
    >>> check_delta(0.05)
    Fraction(1, 20)
    """
    value = as_decimal(delta, name=name)
    if not 0 <= value < 1:
        raise InputError(f"{name} must be at least 0 and below 1, got {delta!r}")
    return value


def sweep_purity(p: ArrayLike, y: ArrayLike, *, deltas: Iterable[object] = DELTA_STOPS) -> xr.Dataset:
    """Return the pure head for every stop of the slider for delta.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    deltas : iterable of decimals, default 0 to 0.30 by 0.005
        Impurity that is let through; each in [0, 1).

    Returns
    -------
    xarray.Dataset
        Over `delta` (floats, in the given order):

        - `spike`, `spike_contiguous`, `spike_worst_order`, `spike_best_order`: records, as in `Spike`;
        - `spike_events`: events among the first `spike` records; `spike_purity`: their share (nan
          without records);
        - `spike_fraction`: `spike` / n;
        - `spike_threshold`: the smallest prediction in the head (nan if 0 records);
        - `line`: 1 - delta.

        Attributes: `n`, `events`, `prevalence`.

    Raises
    ------
    InputError
        As `check_predictions`, and if a delta is no decimal in [0, 1).

    Notes
    -----
    arXiv 2606.11267, sections 2 and 6. One sort, then O(log n) for each delta.

    Examples
    --------
    >>> table = sweep_purity([0.9, 0.8, 0.7, 0.1], [1, 1, 0, 0], deltas=["0", "0.35"])
    >>> table.spike.values.tolist(), table.spike_purity.round(3).values.tolist()
    ([2, 3], [1.0, 0.667])
    """
    return sweep_purity_ranked(rank_predictions(p, y), deltas=deltas)


def sweep_purity_ranked(ranked: RankedPredictions, *, deltas: Iterable[object] = DELTA_STOPS) -> xr.Dataset:
    """As `sweep_purity`, on predictions that `rank_predictions` has sorted."""
    exact = [check_delta(delta, name="deltas") for delta in deltas]
    found = [spike_ranked(ranked, delta) for delta in exact]
    spike = np.array([head.tie_blocks for head in found], dtype=np.int64)
    events = ranked.events_above(spike)
    some = np.maximum(spike, 1)
    threshold = (ranked.keys[ranked.n - some] >> 1).view(np.float64)

    def over_delta(values: Any, about: str) -> tuple[str, NDArray, dict[str, str]]:
        return "delta", np.asarray(values), {"long_name": about}

    return xr.Dataset(
        {
            "spike": over_delta(spike, "records in the pure head, at a cut"),
            "spike_contiguous": over_delta([h.contiguous for h in found], "records, pure at every cut"),
            "spike_worst_order": over_delta([h.worst_order for h in found], "records, ties at their worst"),
            "spike_best_order": over_delta([h.best_order for h in found], "records, ties at their best"),
            "spike_events": over_delta(events, "events in the pure head"),
            "spike_purity": over_delta(np.where(spike > 0, events / some, np.nan), "share of events in it"),
            "spike_fraction": over_delta(spike / ranked.n, "share of all records in it"),
            "spike_threshold": over_delta(
                np.where(spike > 0, threshold, np.nan), "smallest prediction in it"
            ),
            "line": over_delta([float(1 - delta) for delta in exact], "purity asked for"),
        },
        coords={"delta": np.array([float(delta) for delta in exact])},
        attrs=_size(ranked),
    )


def purity_curve(
    p: ArrayLike, y: ArrayLike, *, max_points: int | None = 2000, keep: Iterable[int] | None = None
) -> xr.Dataset:
    """Return the share of events among the first k records, for every k at which a threshold can cut.

    Parameters
    ----------
    p, y : array-like, shape (n,)
        Predicted risks in [0, 1] and outcomes 0 or 1.
    max_points : int or None, default 2000
        Thin each of the two dimensions to at most so many points; None keeps all. At least 400.
    keep : iterable of int, optional
        Ranks whose cut (the last one at or above each) must survive. By default the spikes at every
        stop of delta and every stop of k_min.

    Returns
    -------
    xarray.Dataset
        Over `k` (cuts, ascending; the last is n):

        - `purity`: share of events among the first `k` records;
        - `events`: their number;
        - `threshold`: the smallest prediction among them.

        Over `band_k` (ranks at which the order inside a tie block matters most, and the cuts):

        - `band_low`, `band_high`: purity if each block listed its non-events (its events) first.
          The two meet at every cut.

        Attributes: `n`, `events`, `prevalence`, `cuts` (how many there are before thinning), `thinned`
        (0 or 1).

    Raises
    ------
    InputError
        As `check_predictions`, and if `max_points` is below 400.

    Notes
    -----
    Nothing is averaged: every point is one of the full curve. On a logarithmic rank axis the thinned
    curve keeps every cut among the first 50 ranks, all of `keep`, and in each of some hundred
    intervals the first, the last, the highest and the lowest point, so a drawing of it covers the
    same pixels. Source: arXiv 2606.11267, section 2.

    Examples
    --------
    >>> curve = purity_curve([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    >>> curve.k.values.tolist(), curve.purity.round(3).values.tolist()
    ([1, 3, 4], [1.0, 0.667, 0.5])
    >>> curve.band_k.values.tolist(), curve.band_low.values.round(3).tolist()
    ([1, 2, 3, 4], [1.0, 0.5, 0.667, 0.5])
    """
    return purity_curve_ranked(rank_predictions(p, y), max_points=max_points, keep=keep)


def purity_curve_ranked(
    ranked: RankedPredictions, *, max_points: int | None = 2000, keep: Iterable[int] | None = None
) -> xr.Dataset:
    """As `purity_curve`, on predictions that `rank_predictions` has sorted."""
    if max_points is not None and max_points < 400:
        raise InputError(f"max_points must be at least 400 or None, got {max_points!r}")
    cuts, events = ranked.cuts()
    purity = events / cuts
    all_cuts = cuts.size

    band_rank, band_low, band_high = _band(cuts, events)
    if max_points is not None:
        wanted = _default_keep(ranked) if keep is None else np.fromiter(keep, dtype=np.int64)
        chosen = _thin(cuts, [purity], wanted, max_points)
        cuts, events, purity = cuts[chosen], events[chosen], purity[chosen]
        chosen = _thin(band_rank, [band_low, band_high], wanted, max_points)
        band_rank, band_low, band_high = band_rank[chosen], band_low[chosen], band_high[chosen]

    return xr.Dataset(
        {
            "purity": ("k", purity, {"long_name": "share of events among the first records"}),
            "events": ("k", events, {"long_name": "events among the first records"}),
            "threshold": (
                "k",
                (ranked.keys[ranked.n - cuts] >> 1).view(np.float64),
                {"long_name": "smallest prediction among the first records"},
            ),
            "band_low": ("band_k", band_low, {"long_name": "purity, ties at their worst"}),
            "band_high": ("band_k", band_high, {"long_name": "purity, ties at their best"}),
        },
        coords={"k": cuts, "band_k": band_rank},
        attrs=_size(ranked) | {"cuts": all_cuts, "thinned": int(cuts.size < all_cuts)},
    )


def _band(
    cuts: NDArray[np.int64], events: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the ranks where the best or the worst order bends, and both purities there."""
    size = np.diff(cuts, prepend=0)
    in_block = np.diff(events, prepend=0)
    before, events_before = cuts - size, events - in_block
    mixed = size > 1
    if not mixed.any():
        return cuts, events / cuts, events / cuts
    bends = [
        cuts,
        (before + 1)[mixed],
        (before + in_block)[mixed & (in_block > 0)],
        (before + size - in_block)[mixed & (in_block < size)],
    ]
    rank = np.unique(np.concatenate(bends))
    block = np.searchsorted(cuts, rank, side="left")
    inside = rank - before[block]
    most = events_before[block] + np.minimum(inside, in_block[block])
    least = events_before[block] + np.maximum(inside - (size - in_block)[block], 0)
    return rank, least / rank, most / rank


def _default_keep(ranked: RankedPredictions) -> NDArray[np.int64]:
    heads = [spike_ranked(ranked, as_decimal(delta)) for delta in DELTA_STOPS.tolist()]
    ranks = [rank for h in heads for rank in (h.tie_blocks, h.contiguous, h.worst_order, h.best_order)]
    return np.unique(np.concatenate([np.array(ranks, dtype=np.int64), K_MIN_STOPS]))


def _thin(
    rank: NDArray[np.int64],
    curves: Sequence[NDArray[np.float64]],
    keep: NDArray[np.int64],
    max_points: int,
) -> NDArray[np.int64]:
    """Choose at most max_points positions that draw like all of them when rank is on a logarithmic axis."""
    if rank.size <= max_points:
        return np.arange(rank.size)
    forced = np.searchsorted(rank, keep[(keep > 0) & (keep <= rank[-1])], side="right") - 1
    forced = np.unique(np.concatenate([np.flatnonzero(rank <= 50), forced[forced >= 0], [0, rank.size - 1]]))
    intervals = (max_points - forced.size) // (2 + 2 * len(curves))
    if intervals < 20:
        raise InputError(
            f"keep asks for {forced.size} points, which leaves too few of max_points={max_points} "
            "for the curve; keep fewer or allow more"
        )
    edges = np.geomspace(rank[0], rank[-1] + 1, intervals + 1)
    first = np.unique(np.searchsorted(rank, edges[:-1], side="left").clip(max=rank.size - 1))
    last = np.append(first[1:], rank.size) - 1
    chosen = [forced, first, last]
    for curve in curves:
        chosen += [_extreme(curve, first, np.minimum), _extreme(curve, first, np.maximum)]
    return np.unique(np.concatenate(chosen))


def _extreme(curve: NDArray[np.float64], first: NDArray[np.int64], pick: np.ufunc) -> NDArray[np.int64]:
    """Return the position of the extreme value of each interval that starts at `first`."""
    extreme = pick.reduceat(curve, first)
    at = np.flatnonzero(curve == np.repeat(extreme, np.diff(np.append(first, curve.size))))
    return at[np.searchsorted(at, first)]


@dataclass(frozen=True)
class HeadBound:
    """A lower bound on the risk in the head.

    Attributes
    ----------
    risk : float
        The bound.
    k, events : int
        The head that gives it: its records and the events among them.
    """

    risk: float
    k: int
    events: int


def head_bound_ranked(
    ranked: RankedPredictions, *, level: object = "0.95", whole_scan: bool = False
) -> HeadBound | None:
    """Return M*: the largest exact lower bound on the head's risk, over cuts k >= 50.

    If no admissible risk exceeded M*, a head as pure as the one observed would be rare. So it convicts
    whoever holds that no admissible risk exceeds M*.

    Parameters
    ----------
    ranked : RankedPredictions
        From `rank_predictions`.
    level : decimal, default 0.95
        One-sided confidence.
    whole_scan : bool, default False
        False: each head is bounded as if it were the only one looked at (Clopper and Pearson's
        one-sided bound), and the largest bound is returned; choosing the largest makes it somewhat
        too large. True: the bounds hold for all heads at once, so the largest does too.

    Returns
    -------
    HeadBound or None
        None if there are fewer than 50 rows.

    Raises
    ------
    InputError
        If `level` is not between 0 and 1.

    Notes
    -----
    With e events among k records, the bound is the M at which at least e of k independent outcomes
    of risk M are events with probability a = 1 - level. Outcomes whose risks differ but do not
    exceed M reach e no more often. For the whole scan, the error is shared out as
    a_k = 49 a / (k (k - 1)), which adds up to a over all k >= 50: no approximation, at the price of
    a lower bound. (50 events in 50 records: 0.942 alone, 0.871 for the whole scan.)

    Bounds: Clopper and Pearson, Biometrika 26 (1934), 404-413. Most heads are passed over because
    even Zubkov and Serov's bound on the binomial tail (Theory of Probability and Its Applications
    57 (2013), 539-544), weakened to a quadratic, shows that they cannot win.

    Examples
    --------
    >>> import numpy as np
    >>> ranked = rank_predictions(np.linspace(1, 0, 100), np.arange(100) < 60)
    >>> bound = head_bound_ranked(ranked)
    >>> bound.k, bound.events, round(bound.risk, 4), round(0.05 ** (1 / 60), 4)
    (60, 60, 0.9513, 0.9513)
    """
    return head_bounds_ranked(ranked, level=level, whole_scan=(whole_scan,))[0]


def head_bounds_ranked(
    ranked: RankedPredictions, *, level: object = "0.95", whole_scan: tuple[bool, ...] = (False, True)
) -> tuple[HeadBound | None, ...]:
    """As `head_bound_ranked`, for several answers to whether the whole scan is allowed for."""
    confidence = as_decimal(level, name="level")
    if not 0 < confidence < 1:
        raise InputError(f"level must be above 0 and below 1, got {level!r}")
    if ranked.n < BOUND_FROM:
        return (None,) * len(whole_scan)
    first = ranked.cut_at_or_below(BOUND_FROM)
    first_events = ranked.events_above(first)
    from_here = int(np.searchsorted(ranked.block_end, np.int32(first), side="right"))
    end, cum = ranked.block_end[from_here:], ranked.block_cum[from_here:]
    records = ranked.head_records[np.searchsorted(ranked.head_records, from_here) :] - from_here

    def heads(blocks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return records and events of the first head and of those that end with these blocks."""
        return np.append(first, end[blocks]), np.append(first_events, cum[blocks])

    def bound(whole: bool) -> HeadBound:
        def alpha(k: NDArray[np.int64]) -> NDArray[np.float64]:
            shared = (BOUND_FROM - 1) / (k * (k - 1.0)) if whole else np.ones(k.size)
            return float(1 - confidence) * shared

        def most_promising(k: NDArray[np.int64], events: NDArray[np.int64]) -> HeadBound:
            """Return the head whose approximate bound (Wilson's) is the largest, with its exact bound."""
            share, z2 = events / k, ndtri(alpha(k)) ** 2
            half = np.sqrt(z2 * (share * (1 - share) + z2 / (4 * k)) / k)
            at = int(np.argmax((share + z2 / (2 * k) - half) / (1 + z2 / k)))
            size, hits = int(k[at]), int(events[at])
            risk = float(betaincinv(hits, size - hits + 1, alpha(k[at : at + 1])[0])) if hits else 0.0
            return HeadBound(risk=risk, k=size, events=hits)

        # Start from the best of some heads that no later one outdoes, then ask all that can still win.
        some = np.unique(np.geomspace(1, max(records.size, 1), 200).astype(np.int64)) - 1
        best = most_promising(*heads(records[some[: records.size]]))
        while True:
            risk = best.risk
            k, events = heads(np.flatnonzero(cum / end > risk))
            wins = 2 * k * np.maximum(events / k - risk, 0) ** 2 > ndtri(alpha(k)) ** 2 * risk * (1 - risk)
            k, events = k[wins], events[wins]
            wins = (betainc(events, k - events + 1, risk) < alpha(k)) & (k != best.k)
            if not wins.any():
                return best
            rival = most_promising(k[wins], events[wins])
            if rival.risk <= risk:
                return best
            best = rival

    return tuple(map(bound, whole_scan))


class BreadthCurve:
    """How far down a vector's purity exceeds a reference's: answers for every epsilon from one pass.

    Parameters
    ----------
    ranked, reference : RankedPredictions
        Two vectors of predictions for the same outcomes.

    Notes
    -----
    Breadth is the largest cut k of `ranked` at which its purity exceeds that of the reference by more
    than epsilon, as a share of n (arXiv 2606.11267, section 2). Where the reference cannot cut at k, its
    purity is the mean over the orders of its tie block. Differences are compared exactly.

    Examples
    --------
    >>> y = [1, 1, 0, 0]
    >>> sharp, blunt = rank_predictions([0.9, 0.8, 0.2, 0.1], y), rank_predictions([0.9, 0.1, 0.8, 0.2], y)
    >>> BreadthCurve(sharp, blunt).breadth("0.01")
    0.75
    """

    def __init__(self, ranked: RankedPredictions, reference: RankedPredictions) -> None:
        """Compare the two purities at every cut."""
        self.n = ranked.n
        cuts, events = ranked.cuts()
        ends, reference_events = reference.cuts()
        block = np.searchsorted(ends, cuts, side="left")
        size = np.diff(ends, prepend=0)[block]
        in_block = np.diff(reference_events, prepend=0)[block]
        above = reference_events[block] - in_block
        inside = cuts - (ends[block] - size)
        excess = (events - above - in_block * inside / size) / cuts
        later = np.concatenate((np.maximum.accumulate(excess[::-1])[::-1][1:], [-np.inf]))
        record = np.flatnonzero(excess >= later)
        self._k = cuts[record]
        self._excess = excess[record]
        self._exact = np.column_stack([part[record] for part in (events, above, in_block, inside, size)])

    def breadth(self, epsilon: object) -> float:
        """Return the largest share of records, from the top, with an excess above epsilon (0 if none)."""
        limit = as_decimal(epsilon, name="epsilon")
        position = int(np.searchsorted(-self._excess, -(float(limit) - 1e-9), side="right"))
        while position > 0:
            position -= 1
            events, above, in_block, inside, size = map(int, self._exact[position])
            k = int(self._k[position])
            if events - above - Fraction(in_block * inside, size) > limit * k:
                return k / self.n
        return 0.0


def _numbers(values: ArrayLike, name: str) -> NDArray:
    """Return a one-dimensional numeric array, without changing any value."""
    if np.ma.is_masked(values):
        first = int(np.argmax(np.ma.getmaskarray(np.ma.asarray(values))))
        raise InputError(
            f"{name} is missing (masked) in {np.ma.count_masked(values)} rows; first: row {first}; "
            "drop or mend these rows first"
        )
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be one-dimensional, got rows of different lengths") from error
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, got the shape {array.shape}; "
            "of two class columns give that of the event"
        )
    if array.dtype.kind == "O":
        missing = np.asarray(pd.isna(array))
        _refuse(missing, array, name, "missing", "drop or mend these rows first")
        text = np.array(
            [not isinstance(v, (bool, int, float, np.number, np.bool_)) for v in array], dtype=bool
        )
        _refuse(text, array, name, "not a number", "convert these rows first")
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        first_value = f"; first: row 0 has {array[0]!r}" if array.size else ""
        raise InputError(
            f"{name} must be numbers, got {array.size} rows of the type {array.dtype}{first_value}; "
            "convert them first"
        )
    return array


def _refuse(bad: NDArray[np.bool_], values: NDArray, name: str, problem: str, told: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} is {problem} in {np.count_nonzero(bad)} of {bad.size} rows; "
            f"first: row {row} has {values[row]!s}; {told}"
        )


def _unreached_later(events: NDArray[np.int32], k: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the positions whose purity, events / k, no later one reaches."""
    purity = events / k
    unreached = np.ones(purity.size, dtype=bool)
    np.greater(purity[:-1], np.maximum.accumulate(purity[::-1])[::-1][1:], out=unreached[:-1])
    return np.flatnonzero(unreached)


def _last_passing(records: NDArray[np.int64], passes: Callable[[int], bool]) -> int:
    """Return the last of the records that passes, or -1; those that pass come first."""
    count = bisect_left(range(records.size), True, key=lambda i: not passes(int(records[i])))
    return int(records[count - 1]) if count else -1


def _size(ranked: RankedPredictions) -> dict[str, Any]:
    return {"n": ranked.n, "events": ranked.events, "prevalence": ranked.prevalence}
