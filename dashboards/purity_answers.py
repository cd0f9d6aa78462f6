"""Everything that the purity page shows, for every stop of its sliders, as one table.

The core answers, this module puts the answers into rows and words of fixed shape, so that the
browser only looks them up (see `dashboards.live`). A verdict depends on delta, k_min and the
ceiling; its five cases are a dimension that follows these three, so a text is written once a case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr

from dashboards.figures.purity import POINTS, SLOTS, curve_rows
from dashboards.live import words
from dashboards.shelf import Vector, shipped, shipped_names
from leakviz.blind import (
    CEILING_STOPS,
    CREDIBLE,
    DECISIONS,
    EPSILON_STOPS,
    BlindTest,
    BreadthCurves,
    blind_test_ranked,
    needed_risk,
    strength_of,
    sweep_blind,
)
from leakviz.certification import ALPHAS, MAX_RISKS, read_false_certification, read_minimum_heads
from leakviz.graded import WINDOWS, read_graded
from leakviz.purity import (
    DELTA_STOPS,
    K_MIN_STOPS,
    BreadthCurve,
    RankedPredictions,
    purity_curve_ranked,
    sweep_purity_ranked,
)

CEILINGS = tuple("off" if math.isinf(c) else f"{c:.2f}" for c in CEILING_STOPS)
RISKS = tuple(float(risk) for risk in MAX_RISKS)
RATES = tuple(float(alpha) for alpha in ALPHAS)

# The cases of a verdict: the word, and what gave rise to it.
CASES = (
    ("leaky, strong evidence", "near-label"),
    ("leaky, weak evidence", "above the ceiling"),
    ("leaky, strong evidence", "above the ceiling"),  # with its whole interval
    ("not shown", ""),
    ("undetermined", ""),
    ("", ""),  # no vector is chosen
    ("leaky, moderate evidence", "near-label"),
    ("leaky, weak evidence", "near-label"),
)
STRONG, ABOVE, WHOLLY_ABOVE, NOT_SHOWN, UNDETERMINED, NO_VECTOR, MODERATE, WEAK = range(len(CASES))
NEAR = {
    STRONG: "strong",
    MODERATE: "moderate",
    WEAK: "weak",
}  # the cases of a pure head, by the strength of the evidence
_CAN_FIRE = {NOT_SHOWN, ABOVE, WHOLLY_ABOVE, *NEAR}

# Why shipped vectors that were made without the named leaks fire all the same.
FIRES_HONESTLY = {
    "flchain": "It saw nothing from after the baseline and fires honestly: over up to 14 years, death is nearly "
    "certain for the oldest.",
    "breast_cancer": "It saw nothing but the cells and fires honestly: whether a sample is malignant "
    "is nearly determined by them.",
    "monica": "Nobody planned a leak here, and there is one: all seven risk histories read “not known” in "
    "621 records, and all 621 died.",
}

NEARLY_CERTAIN = 0.1  # the largest delta at which a pure head speaks of an outcome that is nearly certain

GRADED = ("honest", *(f"dead{days}d" for days in WINDOWS[1:]))
MOST = 0.95  # share of resamples in which breadth must exceed the honest models' own
TICKS = [(float(i), "0" if not days else f"{days}") for i, days in enumerate(WINDOWS)]


def chance(rate: float) -> str:
    """Write a probability as people count.

    Examples
    --------
    >>> chance(0.188), chance(0.0052), chance(0.00034), chance(6e-9), chance(1e-15), chance(1.0)
    ('19 in 100', '5.2 in 1,000', '1 in 2,900', '1 in 170 million', 'fewer than 1 in a billion', 'always')
    """
    if rate >= 0.9995:
        return "always"
    if rate >= 0.0995:
        return f"{100 * rate:.0f} in 100" if rate < 0.9895 else f"{1000 * rate:.0f} in 1,000"
    if rate >= 0.00995:
        return f"{100 * rate:.1f} in 100"
    if rate >= 0.000995:
        return f"{1000 * rate:.1f} in 1,000"
    if rate < 1e-9:
        return "fewer than 1 in a billion"
    one_in = float(f"{1 / rate:.2g}")
    return f"1 in {one_in / 1e6:g} million" if one_in >= 1e6 else f"1 in {one_in:,.0f}"


def percent(share: float, digits: int = 1) -> str:
    """Write a share in per cent."""
    return f"{100 * share:.{digits}f}\u00a0%"


def _down(value: float) -> str:
    """Write a lower bound, rounded down: the text claims no more than it may."""
    return f"{math.floor(value * 1000) / 1000:.3f}"


def decimal(value: float, least: int = 2) -> str:
    """Write a stop with as many decimals as it needs, at least two."""
    return (
        f"{value:.{least}f}" if abs(value * 10**least - round(value * 10**least)) < 1e-6 else f"{value:.3f}"
    )


# ---- one vector


def references(vector: Vector, get: Callable[[str], Vector]) -> tuple[Vector | None, Vector | None]:
    """Return the honest vector to which breadth refers, and a second one on the same rows.

    Parameters
    ----------
    vector : Vector
    get : callable
        Returns a vector by its name.

    Returns
    -------
    (Vector or None, Vector or None)
        Nothing for a vector that is itself the reference.
    """
    parts = vector.name.split("__")
    if len(parts) != 3 or vector.name not in shipped_names():
        return (get(vector.honest), None) if vector.honest else (None, None)
    data, model, arm = parts
    if arm == "honest":
        return None, None
    honest = [n for n in shipped_names() if n.split("__")[0] == data and n.endswith("__honest")]
    honest.sort(key=lambda n: n.split("__")[1] != model)  # its own twin first
    same = [v for v in map(shipped, honest) if np.array_equal(v.y, vector.y)]
    return (same[0] if same else None), (same[1] if len(same) > 1 else None)


def breadths(vector: Vector, get: Callable[[str], Vector]) -> BreadthCurves | None:
    """Return a vector's breadth for every epsilon, with the null band where two honest vectors exist."""
    one, two = references(vector, get)
    if one is None:
        return None
    null = (BreadthCurve(one.ranked, two.ranked), BreadthCurve(two.ranked, one.ranked)) if two else ()
    return BreadthCurves(observed=BreadthCurve(vector.ranked, one.ranked), null=null)


_PARTS: WeakKeyDictionary[Vector, xr.Dataset] = WeakKeyDictionary()


def part(vector: Vector | None, get: Callable[[str], Vector]) -> xr.Dataset:
    """Return what is drawn and said about one vector, once as long as it lives.

    A shipped vector lives as long as the process, a user's as long as the session that brought it.
    """
    if vector is None:
        return _nothing()
    if vector not in _PARTS:
        _PARTS[vector] = _make_part(vector, get)
    return _PARTS[vector]


def _make_part(vector: Vector, get: Callable[[str], Vector]) -> xr.Dataset:
    ranked = vector.ranked
    widths = breadths(vector, get)
    test = blind_test_ranked(ranked, breadths=widths)
    sweep = sweep_blind(ranked, breadths=widths)
    above = sweep["above_ceiling"].values.astype(np.int64)
    if test.c_low is not None:
        above += above * (test.c_low > CEILING_STOPS)
    table: dict[str, Any] = {
        **_drawn(vector, sweep),
        "n": ((), ranked.n),
        "above_of": ("ceiling", above.astype(np.uint8)),
        "case_of": (("delta", "k_min", "above"), _cases(sweep, above, test)),
    }
    texts = _texts(vector, test, sweep, references(vector, get)[0])
    return xr.Dataset(table, {"delta": sweep["delta"].values, "epsilon": sweep["epsilon"].values}).assign(
        texts
    )


_CURVES: WeakKeyDictionary[Vector, dict[str, np.ndarray]] = WeakKeyDictionary()


def _drawn(vector: Vector, sweep: xr.Dataset) -> dict[str, Any]:
    """Return what is drawn of a vector: its curve, once as long as it lives, and its pure heads."""
    if vector not in _CURVES:
        _CURVES[vector] = curve_rows(purity_curve_ranked(vector.ranked, max_points=POINTS))
    rows, spike = _CURVES[vector], sweep["spike"].values
    return {
        "k": ("point", rows["k"]),
        "purity": ("point", rows["purity"]),
        "band_x": ("outline", rows["band_x"]),
        "band_y": ("outline", rows["band_y"]),
        "base": ((), vector.ranked.prevalence),
        "seen": ((), True),
        "spike_x": (("delta", "one"), np.where(spike > 0, spike, np.nan)[:, None]),
        "spike_y": (("delta", "one"), sweep["spike_purity"].values[:, None]),
        "spike_text": (
            ("delta", "one"),
            np.array([f"{k:,}" if k else "" for k in spike], dtype=object)[:, None],
        ),
    }


_DRAWN = ("k", "purity", "band_x", "band_y", "base", "seen", "spike_x", "spike_y", "spike_text")
_LINES = ("k_min_line", "line", "box_left", "box_bottom", "k_min_text", "line_text")


def first_look(vector: Vector | None, *, delta: float, k_min: int) -> xr.Dataset:
    """Return what the figure of purity draws of one vector at one stop, and nothing else: it is there soon."""
    table = common()[list(_LINES)].sel(delta=delta, k_min=k_min, drop=True)
    table = table.assign(_axis([0 if vector is None else vector.ranked.n]))
    for slot in SLOTS:
        of = _nothing()
        if slot == 0 and vector is not None:
            of = xr.Dataset(
                _drawn(vector, sweep_purity_ranked(vector.ranked, deltas=[delta])), {"delta": [delta]}
            )
        own = {name: f"{name}_{slot}" for name in _DRAWN}
        table = table.assign(of[list(own)].sel(delta=delta, drop=True).rename(own).data_vars)
    return table


def _axis(sizes: Sequence[int]) -> dict[str, Any]:
    """Return where the axis of ranks ends, and the label that stands there."""
    end = 1.08 * max(*sizes, 10)
    return {"x_start": ((), 0.9), "x_end": ((), end), "line_x": ("one", [end])}


def _cases(sweep: xr.Dataset, above: np.ndarray, test: BlindTest) -> np.ndarray:
    """Return the verdict's case for each stop of delta and k_min, below and above the ceiling."""
    code = {word: case for case, word in NEAR.items()}
    heads = zip(sweep["spike"].values.tolist(), sweep["spike_events"].values.tolist(), strict=True)
    near = [code[strength_of(needed_risk(k, e, test.m_star), test.m_star_scan)] for k, e in heads]
    verdict, trigger = sweep["verdict"].values, sweep["trigger"].values
    case = np.empty((*verdict.shape[:2], 3), dtype=np.uint8)
    for level in range(3):
        found = np.flatnonzero(above == level)
        at = found[0] if len(found) else len(above) - 1  # a level that no ceiling reaches is never looked up
        case[..., level] = np.select(
            [verdict[..., at] == 2, verdict[..., at] == 1, trigger[..., at] == 1],
            [UNDETERMINED, NOT_SHOWN, np.array(near)[:, np.newaxis]],
            WHOLLY_ABOVE if level == 2 else ABOVE,
        )
    return case


def _by_case(texts: Sequence[str]) -> tuple[str, np.ndarray]:
    return "case", np.array(texts, dtype=object)


def _texts(vector: Vector, test: BlindTest, sweep: xr.Dataset, reference: Vector | None) -> dict[str, Any]:
    texts: dict[str, Any] = {
        name: ((), text)
        for name, text in {
            "row": "vector",
            "cell": "n",
            "title": vector.title,
            "source": vector.source,
            "size": f"{test.n:,}",
            "events": f"{test.events:,} events",
            **_fixed(test),
        }.items()
    }
    texts["breadth"] = words(lambda b: _breadth(b, reference, vector), sweep["breadth"])
    texts["breadth_null"] = words(
        lambda b, low, high: (
            f"honest models {100 * low:.1f} to {percent(high)}"
            if not math.isnan(low)
            else ""
            if math.isnan(b)
            else "of honest models: unknown, not 0"
        ),
        sweep["breadth"],
        sweep["breadth_null_low"],
        sweep["breadth_null_high"],
    )
    texts["head"] = words(lambda k: f"{k:,}", sweep["spike"])
    texts["head_events"] = words(
        lambda k, e: f"{e:,} events, {percent(e / k)}" if k else "", sweep["spike"], sweep["spike_events"]
    )
    texts["order"] = words(
        lambda worst, best: (
            "no ranking" if test.decisions else f"{worst:,}" if worst == best else f"{worst:,} to {best:,}"
        ),
        sweep["spike_worst_order"],
        sweep["spike_best_order"],
    )
    if test.decisions:
        tied, hidden = DECISIONS, sweep["spike"] >= 0
    else:
        tied, hidden = (
            f"Ties hide the head: with {test.levels:,} different predictions the order inside ties is unknown, and the best "
            "one, in which the head would be long enough, is only an upper bound; unrounded scores are needed.",
            sweep["ties_hide_head"],
        )
    texts["ties"] = words(lambda here: tied if here else "", hidden.astype(int))
    texts["evidence"] = _evidence(vector.ranked, test, sweep)
    honest = vector.name.endswith("__honest") and vector.name in shipped_names()
    reason = FIRES_HONESTLY.get(vector.name.split("__")[0], "") if honest else ""
    texts["verdict"] = _by_case([said_of(test, word).capitalize() for word, _ in CASES])
    texts["m_says"] = _m_says(test, sweep)
    texts["trigger"] = _by_case([f", {trigger}" if trigger else "" for _, trigger in CASES])
    texts["assumes"] = _assumes(reason, sweep["delta"])
    return texts


def _assumes(reason: str, deltas: xr.DataArray) -> xr.DataArray:
    """Return what a verdict rests on; why an honest vector fires depends on what purity is asked for."""

    def write(case: int, delta: float) -> str:
        if case in NEAR and reason:
            purity = decimal(round(1 - delta, 3))
            return (
                reason
                if delta <= NEARLY_CERTAIN
                else f"At this delta a share of {purity} with the event convicts, and honest models have such heads."
            )
        return "This does not mean that there is no leak." if case == NOT_SHOWN else ""

    return words(write, xr.DataArray(np.arange(len(CASES)), dims="case"), deltas)


def _fixed(test: BlindTest) -> dict[str, str]:
    """Return the texts that no slider moves."""
    texts = {"c": "undefined", "c_interval": "one class", "m_star": "none", "m_star_head": ""}
    if test.c_statistic is not None:
        texts["c"] = f"{test.c_statistic:.3f}"
        texts["c_interval"] = f"{test.c_low:.3f} to {test.c_high:.3f}"
    if test.m_star is not None and test.m_star_scan is not None:
        texts["m_star"] = _down(test.m_star)
        texts["m_star_head"] = f"{test.m_star_events:,} of the top {test.m_star_k:,}"
        texts["m_scan"] = _down(test.m_star_scan)
    z = test.dispersion
    texts["z"] = "not tested" if z.z is None else f"{round(z.z, 1) + 0.0:.1f}".replace("-", "−")
    texts["z_records"] = z.untested or f"{z.effective_records:,.0f} effective records"
    return {"m_scan": "", **texts}


def said_of(test: BlindTest, verdict: str) -> str:
    """Say first of decisions that they are no ranking."""
    return f"decisions, no ranking; {verdict}" if test.decisions and verdict else verdict


def _m_says(test: BlindTest, sweep: xr.Dataset) -> xr.DataArray:
    """Return what honest predictions would need for the head, for each case and delta."""

    def write(case: int, k: int, events: int) -> str:
        if test.m_star is None or test.c_statistic is None or case == NO_VECTOR:
            return ""
        if case not in NEAR:
            return f"M* {_down(test.m_star)}, each head alone."
        needed = needed_risk(k, events, test.m_star)
        what = "M* " if needed == test.m_star else ""
        return (
            f"Honest predictions would need risks above {what}{_down(needed)} for it ({_down(test.m_star_scan or 0)} with all "
            f"heads allowed for); {CREDIBLE[NEAR[case]]}."
        )

    case = xr.DataArray(np.arange(len(CASES)), dims="case")
    return words(write, case, sweep["spike"], sweep["spike_events"])


def _breadth(value: float, reference: Vector | None, vector: Vector) -> str:
    if math.isnan(value):
        honest = vector.name.endswith("__honest") or vector.name == "arm:clean"
        return "is the reference" if honest else "no reference"
    return percent(value)


def _evidence(ranked: RankedPredictions, test: BlindTest, sweep: xr.Dataset) -> xr.DataArray:
    """Return the sentence of evidence for each case and delta."""

    def write(case: int, k: int, events: int) -> str:
        if case in NEAR:
            return f"{events:,} of the top {k:,} records had the event ({percent(events / max(k, 1))})."
        if case in (ABOVE, WHOLLY_ABOVE) and test.c_statistic is not None:
            with_it = "with" if case == WHOLLY_ABOVE else "but not with"
            return (
                f"C* {test.c_statistic:.3f} (95\u00a0% {test.c_low:.3f} to {test.c_high:.3f}) exceeds the ceiling, "
                f"{with_it} its whole interval."
            )
        if case == NOT_SHOWN:
            if not k:
                return "No head is pure enough."
            return f"The pure head has {k:,} record{'s' if k > 1 else ''}, fewer than k_min."
        if case == UNDETERMINED:
            if test.c_statistic is None:
                return f"Every record {'has' if test.events else 'lacks'} the event, so nothing can be told apart."
            if ranked.constant:
                return "Every record has the same prediction, so nothing is ranked and there is no head to look at."
            return f"With {test.events:,} events in {test.n:,} records there can be no pure head of k_min."
        return ""

    case = xr.DataArray(np.arange(len(CASES)), dims="case")
    return words(write, case, sweep["spike"], sweep["spike_events"])


@lru_cache(maxsize=1)
def _nothing() -> xr.Dataset:
    """Return the part of no vector: the same variables, and nothing to be seen."""
    like = part(shipped(shipped_names()[0]), shipped)
    empty: dict[str, Any] = {}
    for name, variable in like.data_vars.items():
        if variable.dtype.kind in "OU":
            values = np.full(variable.shape, "", dtype=object)
        elif variable.dtype.kind == "f":
            values = np.full(variable.shape, np.nan)
        else:
            values = np.zeros_like(variable.values)
        empty[str(name)] = (variable.dims, values)
    empty |= {name: (empty[name][0], row) for name, row in curve_rows(None).items()}
    empty["base"] = ((), 0.0)
    empty["row"], empty["cell"] = ((), "vector none"), ((), "n none")
    empty["case_of"] = (like["case_of"].dims, np.full(like["case_of"].shape, NO_VECTOR, dtype=np.uint8))
    return xr.Dataset(empty, like.coords)


# ---- the page


def page_answers(vectors: Sequence[Vector | None], get: Callable[[str], Vector]) -> xr.Dataset:
    """Return everything that the page shows, for up to three vectors and every stop.

    Parameters
    ----------
    vectors : three of Vector or None
    get : callable
        Returns a vector by its name.

    Returns
    -------
    xarray.Dataset
        What belongs to one vector ends in ``_0``, ``_1`` or ``_2``.
    """
    table = common()
    sizes = []
    for slot, vector in zip(SLOTS, vectors, strict=True):
        of = part(vector, get)
        sizes.append(int(of["n"]))
        own = {name: f"{name}_{slot}" for name in of.data_vars if name != "n"}
        dims = {"above": f"above_{slot}", "case": f"case_{slot}"}
        table = table.assign(of.drop_vars("n").rename({**own, **dims}).data_vars)
    table = table.assign(_axis(sizes))
    tests = [None if vector is None else blind_test_ranked(vector.ranked) for vector in vectors]
    alone = [test for test in tests if test is not None]
    shape = (len(CASES),) * 3
    cases, can, cannot = (np.empty(shape, dtype=object) for _ in range(3))
    for which in product(range(len(CASES)), repeat=3):
        said = [
            CASES[case][0] if test is None else said_of(test, CASES[case][0])
            for case, test in zip(which, tests, strict=True)
        ]
        needs = ""
        if len(alone) == 1 and alone[0].m_star is not None and set(which) & set(NEAR):
            needs = f" (M* {_down(alone[0].m_star)})"
        cases[which] = together(said) + needs
        fires = bool(set(which) & _CAN_FIRE)
        can[which], cannot[which] = ("note", "none") if fires else ("none", "note")
    over = tuple(f"case_{slot}" for slot in SLOTS)
    return table.assign(together=(over, cases), rates_can=(over, can), rates_cannot=(over, cannot))


FOLLOWS = {
    **{f"above_{slot}": f"above_of_{slot}" for slot in SLOTS},
    **{f"case_{slot}": f"case_of_{slot}" for slot in SLOTS},
}


def together(verdicts: Sequence[str]) -> str:
    """Say up to three verdicts in a few words; an empty one is of no vector.

    Examples
    --------
    >>> together(["leaky", "", ""]), together(["leaky", "leaky", ""])
    ('leaky', 'both leaky')
    >>> together(["leaky", "not shown", ""])
    'first leaky, second not shown'
    """
    named = [(n, v) for n, v in zip(("first", "second", "third"), verdicts, strict=True) if v]
    if not named:
        return ""
    if len({v for _, v in named}) == 1:
        many = {1: "", 2: "both ", 3: "all three "}[len(named)]
        return many + named[0][1]
    return ", ".join(f"{n} {v}" for n, v in named)


@lru_cache(maxsize=1)
def common() -> xr.Dataset:
    """Return what does not depend on the vectors: lines, rates, the calculator, the graded leak."""
    coords = {
        "delta": DELTA_STOPS,
        "k_min": K_MIN_STOPS,
        "ceiling": list(CEILINGS),
        "epsilon": EPSILON_STOPS,
        "max_risk": list(RISKS),
        "alpha": list(RATES),
    }
    at = {name: xr.DataArray(values, dims=name) for name, values in coords.items()}
    lines = np.array([round(1 - d, 3) for d in DELTA_STOPS])
    rates = read_false_certification().sel(max_risk=list(RISKS))
    table: dict[str, Any] = {
        "k_min_line": ("k_min", K_MIN_STOPS.astype(np.float64)),
        "line": ("delta", lines),
        "box_left": (("k_min", "one"), K_MIN_STOPS.astype(np.float64)[:, None]),
        "box_bottom": (("delta", "one"), lines[:, None]),
        "k_min_text": (("k_min", "one"), np.array([f"k_min {k:,}" for k in K_MIN_STOPS], object)[:, None]),
        "line_text": (
            ("delta", "one"),
            np.array([f"1 − delta = {decimal(v)}" for v in lines], object)[:, None],
        ),
        "say_delta": words(decimal, at["delta"]),
        "say_k_min": words(lambda k: f"{k:,}", at["k_min"]),
        "say_epsilon": words(decimal, at["epsilon"]),
        "say_ceiling": (
            "ceiling",
            np.array(["no ceiling" if c == "off" else f"ceiling {c}" for c in CEILINGS], object),
        ),
        "true_curve": (
            ("max_risk", "delta", "head"),
            rates["scan"].transpose("max_risk", "delta", "k_min").values,
        ),
        "naive_curve": (("max_risk", "head"), rates["naive"].transpose("max_risk", "k_min").values),
        "alpha_line": ("alpha", np.array(RATES)),
        "cases_9": words(
            lambda rate: f"in up to {chance(rate)} cases" if rate < 0.9995 else "every time, at worst",
            rates["scan"].sel(max_risk=0.9, drop=True),
        ),
        "chosen_true": words(
            lambda rate: f"up to {chance(rate)}" if rate < 0.9995 else "up to all of them", rates["scan"]
        ),
        "chosen_naive": words(chance, rates["naive"]),
    }
    for risk in MAX_RISKS:
        name = risk.replace("0.", "")
        table[f"true_{name}"] = words(chance, rates["scan"].sel(max_risk=float(risk), drop=True))
        table[f"naive_{name}"] = words(chance, rates["naive"].sel(max_risk=float(risk), drop=True))
    table |= _calculator(at)
    dropped = {
        name: v.drop_vars(list(v.coords)) if isinstance(v, xr.DataArray) else v for name, v in table.items()
    }
    return xr.Dataset(dropped, coords).assign(graded())


def _calculator(at: dict[str, xr.DataArray]) -> dict[str, Any]:
    """Return the k_min that is needed, for every alpha, M and delta: its mark and its sentence."""
    heads = read_minimum_heads()["k_min"].sel(alpha=list(RATES), max_risk=list(RISKS))
    heads = heads.reindex(delta=DELTA_STOPS, fill_value=0).transpose("alpha", "max_risk", "delta")
    needed = heads.values
    naive = np.array([[math.ceil(round(math.log(a) / math.log(m), 9)) for m in RISKS] for a in RATES])
    plain = xr.DataArray(needed, dims=heads.dims)

    def write(k: int) -> str:
        return f"k_min {k:,}" if k else "no k_min"

    def write_why(k: int, simple: int) -> str:
        if not k:
            return "is long enough: heads as pure as that come at any length without a leak. Lower delta, or hold a smaller M"
        return (
            "is needed, as the formula log alpha / log M has it"
            if k == simple
            else f"is needed; the formula log alpha / log M asks for {simple:,}"
        )

    return {
        "needed_x": ((*heads.dims, "one"), np.where(needed > 0, needed, np.nan)[..., None].astype(float)),
        "needed_y": (
            (*heads.dims, "one"),
            np.where(needed > 0, np.array(RATES)[:, None, None], np.nan)[..., None],
        ),
        "needed": words(write, plain),
        "needed_why": words(write_why, plain, xr.DataArray(naive, dims=("alpha", "max_risk"))),
        "say_alpha": words(lambda a: f"{a:g}", at["alpha"]),
        "say_max_risk": words(lambda m: f"{m:g}", at["max_risk"]),
    }


# ---- the graded leak


@lru_cache(maxsize=1)
def graded() -> dict[str, Any]:
    """Return the graded leak in flchain: four quantities against the window, and what they support."""
    vectors = [shipped(f"flchain__lr__{arm}") for arm in GRADED]
    widths = [breadths(v, shipped) for v in vectors]
    tests = [blind_test_ranked(v.ranked, breadths=b) for v, b in zip(vectors, widths, strict=True)]
    sweeps = [
        sweep_blind(v.ranked, breadths=b, ceilings=[None]) for v, b in zip(vectors, widths, strict=True)
    ]
    gain = np.array([(t.c_statistic or np.nan) - (tests[0].c_statistic or np.nan) for t in tests])
    breadth = np.stack([s["breadth"].values for s in sweeps], axis=1)
    resampled = read_graded().sel(epsilon=EPSILON_STOPS, window_days=list(WINDOWS[1:]))
    low, high = resampled["null_low"].values, resampled["null_high"].values
    spike = np.stack([s["spike"].values for s in sweeps], axis=1)
    m_star = np.array([t.m_star for t in tests], dtype=float)
    outside = resampled["exceeds"].transpose("epsilon", "window_days").values >= MOST
    first = np.array([_from_here(row) for row in outside])
    fires = spike[:, None, :] >= K_MIN_STOPS[None, :, None]
    fire_from = np.apply_along_axis(_from_here, 2, fires[..., 1:])

    most = f"{100 * MOST:.0f} of 100"

    def breadth_says(low: float, high: float, first: int) -> str:
        over = f"exceed that of two honest models over each other ({100 * low:.1f} to {percent(high)} of the records)"
        if first == len(WINDOWS) - 1:
            return f"At no severity does breadth {over} in {most} resamples of the records: it shows nothing here."
        days, gained = WINDOWS[first + 1], gain[first + 1]
        text = (
            f"From a window of {days:,} days on, breadth {over.replace('exceed', 'exceeds', 1)} in at least {most} "
            f"resamples of the records; C* has gained {gained:.3f} there."
        )
        if first:
            text += f" Up to {WINDOWS[first]:,} days (a gain of {gain[first]:.3f}) it cannot tell the leak from an honest model."
        return text

    def head_says(honest: bool, first: int, start: int, end: int) -> str:
        if honest:
            return (
                f"The pure head grows from {start:,} to {end:,} records, but the honest model's own convicts "
                "already, so here it cannot tell the leak."
            )
        if first == len(WINDOWS) - 1:
            return f"The pure head ({start:,} records without, up to {end:,} with the leak) convicts at no severity."
        return (
            f"The pure head convicts from a window of {WINDOWS[first + 1]:,} days on, and the honest model's, "
            f"with {start:,} records, does not."
        )

    of = "delta", "k_min"
    return {
        "graded_delta_c": ("window", gain),
        "graded_m_star": ("window", m_star),
        "graded_breadth": (("epsilon", "window"), 100 * breadth),
        "graded_spike": (("delta", "window"), spike.astype(np.float64)),
        "graded_null": (("epsilon", "corner"), 100 * np.stack([low, low, high, high], axis=1)),
        "graded_says": words(breadth_says, *(xr.DataArray(v, dims="epsilon") for v in (low, high, first))),
        "graded_head_says": words(
            head_says,
            xr.DataArray(fires[..., 0], dims=of),
            xr.DataArray(fire_from, dims=of),
            xr.DataArray(spike[:, 0], dims="delta"),
            xr.DataArray(spike[:, -1], dims="delta"),
        ),
        "graded_m_says": (
            (),
            f"M* is {_down(m_star[0])} without the leak already, and {_down(m_star[-1])} at the end; C* rises by {gain[-1]:.3f}.",
        ),
    }


def _from_here(row: np.ndarray) -> int:
    """Return the place from which on everything is true (the length, if nothing at the end is)."""
    false = np.flatnonzero(~row)
    return int(false[-1]) + 1 if len(false) else 0
