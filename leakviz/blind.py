"""The blind leakage test: what predictions and outcomes alone say about leakage.

Source: arXiv 2606.11267, Algorithm 1. What the paper leaves open is settled here: ties, the true rate
of false certification, dispersion that few records carry, and words that do not promise too much.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit
from scipy.stats import rankdata

from leakviz.calibration import Dispersion, leak_dispersion_ranked
from leakviz.certification import MAX_RISKS, false_certification
from leakviz.decimals import as_decimal, stops
from leakviz.errors import InputError
from leakviz.purity import (
    BOUND_FROM,
    DELTA_STOPS,
    K_MIN_STOPS,
    BreadthCurve,
    HeadBound,
    RankedPredictions,
    Spike,
    check_delta,
    check_predictions,
    head_bounds_ranked,
    parts,
    rank_predictions,
    spike_ranked,
    sweep_purity_ranked,
)

VERDICTS = ("leaky", "not shown", "undetermined")
"""Possible verdicts, in the order of the codes in `sweep_blind`."""

TRIGGERS = ("", "near-label", "above-ceiling")
"""Possible triggers, in the order of the codes in `sweep_blind`; the first means none."""

CEILING_STOPS = np.append(stops("0.5", "1", "0.01"), np.inf)
"""The stops of the page's slider for the C* ceiling; infinity is "off"."""

EPSILON_STOPS = stops("0", "0.1", "0.005")
"""The stops of the page's slider for epsilon."""

STRENGTHS = ("weak", "moderate", "strong")
"""How far a verdict "leaky" is from what honest predictions may do, in the order of `strength_of`."""

PESSIMISTIC_RISK = 0.9
"""The largest honest risk that arXiv 2606.11267 (section 6) takes for a pessimistic bound."""

_SCHEMA = "leakviz.BlindTest/3"
_READ_TOO = "leakviz.BlindTest/2"  # had no strength and no headline, which follow from the rest
_DERIVED = ("headline", "strength", "needed_risk")  # in the JSON for those who read it elsewhere
_MOST_SWAPPED_FOLDS = 6

DECISIONS = "These are decisions, not risks (every prediction is 0 or 1): there is one cut, and no ranking."

CREDIBLE = {
    "weak": "that is within the 0.9 that the method's paper takes for a pessimistic bound: no leak is needed",
    "moderate": "that is more than the 0.9 of the paper's pessimistic bound, but not with all heads allowed for",
    "strong": "that is credible only of an outcome that is nearly certain beforehand",
}
"""What honest predictions would need for a pure head, held against what is credible, by the strength of the evidence."""


@dataclass(frozen=True)
class BlindTest:
    """What a vector of predictions and its outcomes show about leakage.

    Made by `blind_test`. Undefined numbers are None.

    Attributes
    ----------
    n, events : int
        Rows; rows with the event.
    prevalence : float
        events / n.
    levels : int
        Different predictions; what shares one is tied.
    c_statistic : float or None
        Share of pairs that are ranked right, ties 1/2. None with one class.
    c_low, c_high : float or None
        Its 95 % interval (DeLong, logit scale).
    spike, spike_contiguous, spike_worst_order, spike_best_order : int
        The pure head at `delta`, in records; see `leakviz.purity.Spike`. `spike` decides.
    spike_events : int
        Events among the first `spike` records.
    ties_hide_head : bool
        The best order inside ties would reach k_min, and the cuts do not.
    k_min : int
        Shortest head that counts.
    delta : str
        Impurity let through, as a decimal or a fraction.
    false_certification : dict of str to float
        For each largest admissible risk M, how often an honest ranking fires at (delta, k_min).
    naive_certification : dict of str to float
        M ** k_min, which holds for delta = 0 only.
    m_star : float or None
        The largest exact 95 % lower bound on the head's risk over cuts k >= 50, each taken alone; None
        below 50 rows.
    m_star_k, m_star_events : int or None
        The head that gives it.
    m_star_scan : float or None
        As `m_star`, but valid for all heads at once.
    breadth : float or None
        Share of records, from the top, down to which purity exceeds the reference's by more than
        epsilon. None without a reference.
    breadth_null_low, breadth_null_high : float or None
        Range of breadths between honest vectors. None where neither a second honest vector nor folds
        are given.
    epsilon : str
        Excess that counts for breadth.
    dispersion, dispersion_uniform : Dispersion
        Of unit weight and of the paper's.
    weight : str
        The weight whose z `warn` looks at: "unit" or "uniform".
    z_alpha : float
        The |z| from which `warn` is set.
    c_max : float or None
        The ceiling on an honest C-statistic, if one is held.
    verdict : str
        "leaky", "not shown" or "undetermined".
    trigger : str or None
        "near-label", "above-ceiling" or None.
    warn : bool
        Dispersion is out of line. Soft: recalibration takes it away, and an honest model can be
        miscalibrated. Never with one class or one prediction, where nothing can be told apart.
    algorithm1 : str
        The word of the paper's Algorithm 1: "leaky" or "clean".

    Examples
    --------
    >>> import numpy as np
    >>> result = blind_test(np.linspace(0.99, 0.01, 1000), np.arange(1000) < 100)
    >>> result.verdict, result.trigger, result.spike, result.spike_events
    ('leaky', 'near-label', 105, 100)
    """

    n: int
    events: int
    prevalence: float
    levels: int
    c_statistic: float | None
    c_low: float | None
    c_high: float | None
    spike: int
    spike_contiguous: int
    spike_worst_order: int
    spike_best_order: int
    spike_events: int
    ties_hide_head: bool
    k_min: int
    delta: str
    false_certification: dict[str, float]
    naive_certification: dict[str, float]
    m_star: float | None
    m_star_k: int | None
    m_star_events: int | None
    m_star_scan: float | None
    breadth: float | None
    breadth_null_low: float | None
    breadth_null_high: float | None
    epsilon: str
    dispersion: Dispersion
    dispersion_uniform: Dispersion
    weight: str
    z_alpha: float
    c_max: float | None
    verdict: str
    trigger: str | None
    warn: bool
    algorithm1: str

    @property
    def decisions(self) -> bool:
        """Whether every prediction is 0 or 1: decisions, not risks."""
        return self.dispersion.rows == 0

    @property
    def needed_risk(self) -> float | None:
        """The risk above which some honest predictions must be for this head; None without the trigger "near-label".

        It is M*, or, where the head is too short for M* (fewer than 50 records), the exact 95 % lower bound of that
        head alone, if that is larger.
        """
        return (
            needed_risk(self.spike, self.spike_events, self.m_star) if self.trigger == "near-label" else None
        )

    @property
    def strength(self) -> str | None:
        """How strong the evidence of a verdict "leaky" is: "weak", "moderate" or "strong"; None for another verdict.

        A near-label is weak if honest predictions need no risk above 0.9, which the paper takes for a pessimistic bound
        (section 6); strong if they need one although all heads that were looked at are allowed for (`m_star_scan`);
        moderate between. A C-statistic above the ceiling is strong with its whole 95 % interval, weak otherwise.
        """
        needed = self.needed_risk
        if needed is not None:
            return strength_of(needed, self.m_star_scan)
        if self.trigger == "above-ceiling":
            return "strong" if self._wholly_above else "weak"
        return None

    @property
    def _wholly_above(self) -> bool:
        return self.c_low is not None and self.c_low > (self.c_max or 0)

    @property
    def headline(self) -> str:
        """The verdict with what a reader must know at a glance: how strong it is, and what honest predictions would need."""
        return ("decisions, no ranking; " if self.decisions else "") + self._headline()

    def _headline(self) -> str:
        needed, strength = self.needed_risk, self.strength
        if strength is None:
            return self.verdict
        if needed is None:
            with_it = "with" if strength == "strong" else "but not with"
            return f"{self.verdict}, {strength} evidence: the C-statistic exceeds the ceiling, {with_it} its whole interval"
        if self.m_star is None or needed > self.m_star:  # the head is too short for M*
            bound = f"{_down(needed)}, this head taken alone"
        else:
            bound = f"M* {_down(needed)}, or {_down(self.m_star_scan or 0)} with all heads allowed for"
        return f"{self.verdict}, {strength} evidence: honest predictions would need risks above {bound}; {CREDIBLE[strength]}"

    def explain(self) -> str:
        """Return a few plain sentences: the evidence, what it presupposes, and what cannot be seen."""
        answer, numbers, caveats = self.explain_parts()
        return " ".join([answer, *numbers, *caveats])

    def explain_parts(self) -> tuple[str, list[str], list[str]]:
        """Return what `explain` says in its three parts.

        Returns
        -------
        answer : str
            The verdict and what it rests on.
        numbers : list of str
            Other numbers that were found, a sentence or two each.
        caveats : list of str
            What the answer presupposes and what cannot be seen, as far as it applies here.

        Examples
        --------
        >>> answer, numbers, caveats = blind_test([0.2, 0.4, 0.4, 0.9], [0, 0, 0, 0]).explain_parts()
        >>> answer
        'Undetermined: every record lacks the event, so nothing can be told apart.'
        >>> numbers, caveats
        (['Dispersion is not tested: every record lacks the event.'], [])
        """
        numbers = [*self._ranking_sentences(), *self._bound_sentences()]
        if self.breadth is not None:
            numbers.append(self._breadth_sentence())
        numbers.append(self._dispersion_sentence())
        return self._verdict_sentence(), numbers, self._caveats()

    def _verdict_sentence(self) -> str:
        purity = _plain(1 - Fraction(self.delta))
        head = (
            f"{_count(self.spike)} at the top, {self.spike_events:,} of them with the event, "
            f"meet a purity of at least {purity}"
        )
        if self.trigger == "near-label":
            first = f"{DECISIONS} " if self.decisions else ""
            return f"{first}Leaky, near-label: {head} (k_min {self.k_min:,})."
        if self.trigger == "above-ceiling":
            surely = "with" if self._wholly_above else "although not with"
            return (
                f"Leaky, above the ceiling: the C-statistic is {self.c_statistic:.3f} "
                f"(95 % {self.c_low:.3f} to {self.c_high:.3f}), above {self.c_max:g}, {surely} its whole "
                "interval."
            )
        if self.verdict == "undetermined":
            if self.c_statistic is None:
                one = "has" if self.events else "lacks"
                return f"Undetermined: every record {one} the event, so nothing can be told apart."
            needed = fewest_events(self.delta, self.k_min)
            if self.n < self.k_min:
                return f"Undetermined: there are {_count(self.n)}, fewer than k_min {self.k_min:,}: the test cannot fire."
            if self.events >= needed:
                return (
                    "Undetermined: every record has the same prediction, so nothing is ranked and there is no head "
                    "to look at."
                )
            return (
                f"Undetermined: a pure head of k_min {self.k_min:,} records needs {_count(needed, 'event')}, and there "
                f"{'is' if self.events == 1 else 'are'} {self.events:,}: the test cannot fire."
            )
        ceiling = (
            "no ceiling was given"
            if self.c_max is None
            else f"the C-statistic does not exceed {self.c_max:g}"
        )
        if self.decisions:
            return f"{DECISIONS} Not shown: the head cannot be tested, and {ceiling}. Save the predicted risks, and test those."
        pure = head if self.spike else f"no cut has a purity of at least {purity}"
        short = f", fewer than k_min {self.k_min:,}" if self.spike else ""
        return f"Not shown: {pure}{short}, and {ceiling}."

    def _caveats(self) -> list[str]:
        if self.verdict == "undetermined":
            return []
        said = []
        if self.trigger == "near-label":
            said += [
                "Near-label means that what was predicted from holds the outcome, or almost: as a cause of death does, "
                "which only the dead have.",
                "This convicts only if you hold that the outcome is not nearly deterministic at prediction time for "
                "anybody: an outcome that is nearly deterministic at prediction time fires honestly.",
            ]
        elif self.trigger == "above-ceiling":
            said.append(
                "This convicts only if you hold that no honest model can rank better than the ceiling."
            )
        else:
            said.append("This does not mean that there is no leak.")
        if self.decisions and self.verdict == "leaky":
            said.append(
                "Save the predicted risks, and test those: with one cut there is no head to look at, only one group."
            )
        if self.ties_hide_head and not self.decisions:
            said.append(
                f"Ties hide the head: there are {self.levels:,} different predictions for {_count(self.n)}, and the order "
                f"inside ties is unknown. In the best order the pure head would have {_count(self.spike_best_order)}: that is "
                "an upper bound, not a head that was found; unrounded scores are needed."
            )
        if self.verdict == "not shown":
            said.append(
                "This test cannot see a smooth leak below the ceiling: no test on predictions and outcomes can."
            )
        return said

    def _ranking_sentences(self) -> list[str]:
        """Say what a user should check before anything else: a ranking that is reversed."""
        if self.c_high is not None and self.c_high < 0.5:
            return [
                f"The ranking is reversed: the C-statistic is {self.c_statistic:.3f} (95 % {self.c_low:.3f} to "
                f"{self.c_high:.3f}), below one half, so the head of this ranking holds the least events. Check which "
                "label is the event and which class p is the probability of, and test again."
            ]
        if self.c_statistic is None or self.verdict == "undetermined" or self.trigger == "above-ceiling":
            return []
        return [f"The C-statistic is {self.c_statistic:.3f} (95 % {self.c_low:.3f} to {self.c_high:.3f})."]

    def _bound_sentences(self) -> list[str]:
        said: list[str] = []
        if self.verdict == "undetermined":
            return said
        if self.m_star is not None and self.m_star_scan is not None:
            said.append(
                f"M* is {_down(self.m_star)}, from {_count(self.m_star_k or 0)} with "
                f"{self.m_star_events:,} events ({_down(self.m_star_scan)} if all heads that were looked at "
                "are allowed for): a leak, if you hold that no admissible risk exceeds M*."
            )
        if self.trigger == "near-label" and self.strength is not None:
            said.append(
                f"So the evidence is {self.strength}. {self.prevalence:.3g} of all records have the event: could some honestly "
                f"have a risk above {_down(self.needed_risk or 0)}? If so, no leak is needed."
            )
        if self.trigger == "near-label":
            said.append(self._rate_sentence(MAX_RISKS[0]))
        return said

    def _rate_sentence(self, risk: str) -> str:
        """Say how often honest rankings fire, and why more often than the paper's formula has it."""
        true, naive = self.false_certification[risk], self.naive_certification[risk]
        where = f"If admissible risks go up to {risk}, an honest ranking"
        if not Fraction(self.delta):
            return f"{where} fires at this k_min and delta with a probability of up to {_rate(true)}."
        formula = (
            f"M^k_min, {_rate(naive)}, is only the chance that {_count(self.k_min)} of risk {risk} all have the event, and "
            f"delta {self.delta} lets some go without."
        )
        if true >= 0.9995:
            return f"{where} may fire every time: at delta {self.delta}, k_min {self.k_min:,} rules nothing out. {formula}"
        return f"{where} fires at this k_min and delta with a probability of up to {_rate(true)}. {formula}"

    def _breadth_sentence(self) -> str:
        text = (
            f"Purity exceeds the reference's by more than {_plain(Fraction(self.epsilon))} "
            f"down to {100 * (self.breadth or 0):.2f} % of the records"
        )
        if self.breadth_null_low is None or self.breadth_null_high is None:
            return text + "; how far honest vectors differ is unknown here, and it is not 0."
        low, high = 100 * self.breadth_null_low, 100 * self.breadth_null_high
        return text + f"; honest vectors differ from each other down to {low:.2f} to {high:.2f} %."

    def _dispersion_sentence(self) -> str:
        chosen = self.dispersion if self.weight == "unit" else self.dispersion_uniform
        wrong = ""
        if chosen.contradicted:
            wrong = f" {_count(chosen.contradicted)} predicted with certainty turned out otherwise."
        if self.decisions:
            return f"Dispersion is not tested: {chosen.untested}."
        if chosen.z is None:
            return f"Dispersion is not tested: {chosen.untested}.{wrong}"
        state = "out of line with" if self.warn else "in line with"
        return (
            f"Dispersion is {state} calibrated risks (z {round(chosen.z, 1) + 0.0:.1f}, {self.weight} weight, "
            f"{chosen.effective_records:,.0f} effective records); "
            f"recalibration, honest or not, takes this signal away.{wrong}"
        )

    def to_json(self) -> str:
        """Return the result as a JSON text; `from_json` makes an equal one of it."""
        derived = {name: getattr(self, name) for name in _DERIVED}
        return json.dumps({"schema": _SCHEMA} | asdict(self) | derived, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "BlindTest":
        """Make the result anew from what `to_json` returned.

        Raises
        ------
        InputError
            If the text is no JSON, or not of this kind.
        """
        try:
            fields = json.loads(text)
        except (TypeError, ValueError) as error:
            raise InputError(f"text is no JSON ({error}); give what to_json returned") from error
        if not isinstance(fields, dict) or fields.pop("schema", None) not in (_SCHEMA, _READ_TOO):
            raise InputError(f"text is not a {_SCHEMA}; give what to_json returned")
        fields = {name: value for name, value in fields.items() if name not in _DERIVED}
        try:
            for name in ("dispersion", "dispersion_uniform"):
                fields[name] = Dispersion(**fields[name])
            return cls(**fields)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"text lacks or has unknown fields ({error}); give what to_json returned"
            ) from error


def blind_test(
    p: ArrayLike,
    y: ArrayLike,
    *,
    delta: object = "0.05",
    k_min: int = 50,
    c_max: object | None = None,
    reference: ArrayLike | None = None,
    epsilon: object = "0.01",
    z_alpha: float = 1.96,
    weight: str = "unit",
    folds: ArrayLike | None = None,
) -> BlindTest:
    """Test predictions for leakage, from predictions and outcomes alone.

    Parameters
    ----------
    p : array-like of numbers, shape (n,)
        Predicted risks in [0, 1].
    y : array-like of bool or of the numbers 0 and 1, shape (n,)
        Outcomes; 1 is the event.
    delta : decimal, default "0.05"
        Impurity that a pure head may have, in [0, 1); a float stands for its shortest decimal.
    k_min : int, default 50
        Shortest pure head that counts, in records.
    c_max : decimal, optional
        Ceiling on the C-statistic of an honest model, in [0, 1]. Without it, broad leakage cannot be found.
    reference : array-like, shape (n,) or (vectors, n), optional
        Predictions of an honest model for the same rows. Further honest vectors give the null band of
        breadth.
    epsilon : decimal, default "0.01"
        Excess of purity over the reference that counts for breadth.
    z_alpha : float, default 1.96
        The |z| of the dispersion from which to warn.
    weight : {"unit", "uniform"}, default "unit"
        Which dispersion the warning looks at; both are returned.
    folds : array-like, shape (n,), optional
        The fold of each row in cross-fitting. With a single reference, the null band of breadth comes from
        swapping prediction and reference within whole folds.

    Returns
    -------
    BlindTest
        The verdict and everything it rests on; `explain` puts it into words.

    Raises
    ------
    InputError
        As `leakviz.purity.check_predictions`, for `reference` likewise, and if an option is out of range.

    Notes
    -----
    arXiv 2606.11267, Algorithm 1, with the spike at tie-block ends. "Leaky" if the spike is at least k_min
    ("near-label") or, otherwise, C exceeds c_max ("above-ceiling"). "Undetermined" with one class, if all
    predictions are the same, or if nothing fires and nothing could: fewer than k_min records, or fewer than
    (1 - delta) k_min events. Otherwise "not shown", never "clean": a calibrated leak that raises discrimination alone has the law of an honest, better model (proposition 1).

    The null band from folds: if prediction and reference are honest alike, swapping them within whole folds
    makes vectors of the same kind. All of up to 2^5 swaps are compared (with more than 6 folds, folds are
    grouped by 6); a leak widens this band, so it errs on the side of honesty.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.linspace(0.99, 0.01, 1000)
    >>> y = np.arange(1000) < 60
    >>> result = blind_test(p, y)
    >>> result.verdict, result.trigger, result.spike, result.spike_events
    ('leaky', 'near-label', 63, 60)
    >>> print(result.explain().split(", meet")[0])
    Leaky, near-label: 63 records at the top, 60 of them with the event
    """
    ranked = rank_predictions(p, y)
    breadths = None
    if reference is not None:
        breadths = breadth_curves(p, y, reference=reference, folds=folds)
    elif folds is not None:
        _fold_codes(folds, ranked.n)
    return blind_test_ranked(
        ranked,
        delta=delta,
        k_min=k_min,
        c_max=c_max,
        breadths=breadths,
        epsilon=epsilon,
        z_alpha=z_alpha,
        weight=weight,
    )


@dataclass(frozen=True, eq=False)
class BreadthCurves:
    """Breadth of a vector over a reference, and of honest vectors over each other, for any epsilon.

    Attributes
    ----------
    observed : BreadthCurve
        Of the vector that is tested.
    null : tuple of BreadthCurve
        Of honest vectors; empty if there is nothing to make them from.
    """

    observed: BreadthCurve
    null: tuple[BreadthCurve, ...]

    def at(self, epsilon: object) -> tuple[float, float | None, float | None]:
        """Return breadth and the ends of its null band at one epsilon."""
        null = [curve.breadth(epsilon) for curve in self.null]
        return self.observed.breadth(epsilon), min(null, default=None), max(null, default=None)


def breadth_curves(
    p: ArrayLike, y: ArrayLike, *, reference: ArrayLike, folds: ArrayLike | None = None
) -> BreadthCurves:
    """Prepare breadth for any epsilon; parameters and errors as those of `blind_test`.

    Examples
    --------
    >>> curves = breadth_curves([0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0], reference=[0.9, 0.1, 0.8, 0.2])
    >>> curves.at("0.01")
    (0.75, None, None)
    """
    ranked = rank_predictions(p, y)
    try:
        vectors = np.atleast_2d(np.asarray(reference))
    except ValueError as error:
        raise InputError("reference must hold vectors of the same length as y") from error
    if vectors.ndim != 2 or vectors.size == 0:
        raise InputError(f"reference must be one vector or a stack of vectors, got the shape {vectors.shape}")
    honest = [rank_predictions(vector, y, name="reference") for vector in vectors]
    null: list[BreadthCurve] = []
    if len(honest) > 1:
        null = [BreadthCurve(a, b) for a in honest for b in honest if a is not b]
    elif folds is not None:
        null = _swapped(*check_predictions(p, y), check_predictions(vectors[0], y)[0], folds)
    return BreadthCurves(observed=BreadthCurve(ranked, honest[0]), null=tuple(null))


def blind_test_ranked(
    ranked: RankedPredictions,
    *,
    delta: object = "0.05",
    k_min: int = 50,
    c_max: object | None = None,
    breadths: BreadthCurves | None = None,
    epsilon: object = "0.01",
    z_alpha: float = 1.96,
    weight: str = "unit",
) -> BlindTest:
    """As `blind_test`, on predictions that `rank_predictions` has sorted, and `breadth_curves`.

    What no option touches is computed once for a sorted state; after that, k_min and c_max cost O(1),
    delta and epsilon O(log n).
    """
    impurity = check_delta(delta)
    k_min = _check_k_min(k_min)
    ceiling = None if c_max is None else _check_ceiling(c_max)
    excess = _check_epsilon(epsilon)
    if isinstance(z_alpha, bool) or not isinstance(z_alpha, (int, float, np.number)) or not z_alpha > 0:
        raise InputError(f"z_alpha must be a number above 0, got {z_alpha!r}")
    if weight not in ("unit", "uniform"):
        raise InputError(f"weight must be 'unit' or 'uniform', got {weight!r}")

    evidence = _evidence(ranked)
    (area, c_low, c_high), bound, bound_scan = evidence.concordance, evidence.bound, evidence.bound_scan
    head = spike_ranked(ranked, impurity)
    breadth = null_low = null_high = None
    if breadths is not None:
        breadth, null_low, null_high = breadths.at(excess)
    unit, uniform = evidence.unit, evidence.uniform
    chosen = unit if weight == "unit" else uniform
    verdict, trigger = _judge(ranked, head.tie_blocks, k_min, impurity, area, ceiling)
    fires = head.tie_blocks >= k_min or _above(area, ceiling)
    return BlindTest(
        n=ranked.n,
        events=ranked.events,
        prevalence=ranked.prevalence,
        levels=evidence.levels,
        c_statistic=area,
        c_low=c_low,
        c_high=c_high,
        spike=head.tie_blocks,
        spike_contiguous=head.contiguous,
        spike_worst_order=head.worst_order,
        spike_best_order=head.best_order,
        spike_events=int(ranked.events_above(head.tie_blocks)),
        ties_hide_head=_hidden(head, k_min),
        k_min=k_min,
        delta=_plain(impurity),
        false_certification={risk: false_certification(k_min, risk, delta=impurity) for risk in MAX_RISKS},
        naive_certification={risk: float(Fraction(risk) ** k_min) for risk in MAX_RISKS},
        m_star=None if bound is None else bound.risk,
        m_star_k=None if bound is None else bound.k,
        m_star_events=None if bound is None else bound.events,
        m_star_scan=None if bound_scan is None else bound_scan.risk,
        breadth=breadth,
        breadth_null_low=null_low,
        breadth_null_high=null_high,
        epsilon=_plain(excess),
        dispersion=unit,
        dispersion_uniform=uniform,
        weight=weight,
        z_alpha=float(z_alpha),
        c_max=None if ceiling is None else float(ceiling),
        verdict=verdict,
        trigger=trigger,
        warn=area is not None and not ranked.constant and chosen.z is not None and abs(chosen.z) > z_alpha,
        algorithm1="leaky" if fires else "clean",
    )


def sweep_blind(
    ranked: RankedPredictions,
    *,
    deltas: Iterable[object] = DELTA_STOPS,
    k_mins: Iterable[int] = K_MIN_STOPS,
    ceilings: Iterable[object] = CEILING_STOPS,
    epsilons: Iterable[object] = EPSILON_STOPS,
    breadths: BreadthCurves | None = None,
) -> xr.Dataset:
    """Return what `blind_test` says at every combination of the sliders' stops.

    Parameters
    ----------
    ranked : RankedPredictions
        From `leakviz.purity.rank_predictions`.
    deltas, k_mins, ceilings, epsilons : iterables
        The stops; a ceiling of infinity (or None) is "off".
    breadths : BreadthCurves, optional
        From `breadth_curves`, if there is a reference.

    Returns
    -------
    xarray.Dataset
        Each variable has the dimensions it depends on, and no other:

        - over `delta`: the variables of `leakviz.purity.sweep_purity`;
        - over `delta`, `k_min`: `ties_hide_head`;
        - over `delta`, `k_min`, `ceiling`: `verdict` and `trigger`, codes; `algorithm1`, 1 for "leaky";
        - over `ceiling`: `above_ceiling`;
        - over `epsilon`: `breadth`, `breadth_null_low`, `breadth_null_high` (nan where None).

        The codes' words are in the attributes `flag_values` and `flag_meanings` of `verdict` and `trigger`.
        Attributes of the Dataset: `n`, `events`, `prevalence`, `c_statistic`, `c_low`, `c_high` (nan
        where None).
        Rates of false certification over the same stops: `leakviz.certification.read_false_certification`.

    Raises
    ------
    InputError
        If a stop is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> ranked = rank_predictions(np.linspace(0.99, 0.01, 1000), np.arange(1000) < 60)
    >>> table = sweep_blind(ranked, deltas=["0.05"], k_mins=[50, 80], ceilings=[None], epsilons=["0.01"])
    >>> [VERDICTS[code] for code in table.verdict.sel(delta=0.05, ceiling=np.inf).values]
    ['leaky', 'undetermined']
    """
    heads = [_check_k_min(k) for k in k_mins]
    limits = [None if _is_off(ceiling) else _check_ceiling(ceiling) for ceiling in ceilings]
    excesses = [_check_epsilon(epsilon) for epsilon in epsilons]
    table = sweep_purity_ranked(ranked, deltas=deltas)
    area, c_low, c_high = concordance_ranked(ranked)

    near = table.spike.values[:, np.newaxis] >= np.array(heads, dtype=np.int64)
    above = np.array([_above(area, limit) for limit in limits], dtype=bool)
    near3, above3 = np.broadcast_arrays(near[:, :, np.newaxis], above)
    needed = [[fewest_events(delta, k) for k in heads] for delta in table.delta.values]
    few = (ranked.events < np.array(needed, dtype=np.int64)) | (ranked.n < np.array(heads, dtype=np.int64))
    few = few[:, :, np.newaxis]
    silent = area is None or ranked.constant
    trigger = np.where(silent, 0, np.where(near3, 1, np.where(above3, 2, 0))).astype(np.uint8)
    verdict = np.where(silent, 2, np.where(trigger > 0, 0, np.where(few, 2, 1))).astype(np.uint8)
    best = table.spike_best_order.values[:, np.newaxis] >= np.array(heads, dtype=np.int64)

    null = [math.nan] * 3
    rows = [breadths.at(excess) if breadths else null for excess in excesses]
    breadth = np.array(rows, dtype=np.float64).reshape(-1, 3)
    dims = ("delta", "k_min", "ceiling")
    return (
        table.assign(
            ties_hide_head=(dims[:2], best & ~near, {"long_name": "ties hide a head of k_min records"}),
            verdict=(
                dims,
                verdict,
                {"long_name": "verdict", "flag_values": [0, 1, 2], "flag_meanings": [*VERDICTS]},
            ),
            trigger=(
                dims,
                trigger,
                {"long_name": "trigger", "flag_values": [0, 1, 2], "flag_meanings": [*TRIGGERS]},
            ),
            algorithm1=(
                dims,
                (near3 | above3).astype(np.uint8),
                {"long_name": "1 if the paper's word is leaky"},
            ),
            above_ceiling=("ceiling", above, {"long_name": "C-statistic above the ceiling"}),
            breadth=("epsilon", breadth[:, 0], {"long_name": "breadth, share of records"}),
            breadth_null_low=("epsilon", breadth[:, 1], {"long_name": "least breadth of honest vectors"}),
            breadth_null_high=("epsilon", breadth[:, 2], {"long_name": "largest breadth of honest vectors"}),
        )
        .assign_coords(
            k_min=heads,
            ceiling=[math.inf if limit is None else float(limit) for limit in limits],
            epsilon=[float(excess) for excess in excesses],
        )
        .assign_attrs(
            c_statistic=math.nan if area is None else area,
            c_low=math.nan if c_low is None else c_low,
            c_high=math.nan if c_high is None else c_high,
        )
    )


def concordance_ranked(ranked: RankedPredictions) -> tuple[float | None, float | None, float | None]:
    """Return the C-statistic with its 95 % interval, from sorted predictions; None with one class.

    Parameters
    ----------
    ranked : RankedPredictions
        From `leakviz.purity.rank_predictions`.

    Returns
    -------
    c_statistic, low, high : float or None
        Equal to `leakviz.statistics.auroc` and `auroc_interval` of the same rows, without sorting again.

    Examples
    --------
    >>> concordance_ranked(rank_predictions([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1]))[0]
    0.875
    """
    ones, zeros = ranked.events, ranked.n - ranked.events
    if not (ones and zeros):
        return None, None, None
    twice_won = np.empty(ranked.block_end.size, dtype=np.int32)  # zeros that an event of the block beats
    won = 0
    for part in parts(twice_won.size):
        in_block = ranked.block_events[part]
        zeros_above = ranked.block_start[part] - (ranked.block_cum[part] - in_block)
        zeros_in = ranked.block_end[part] - ranked.block_start[part] - in_block
        twice_won[part] = 2 * (zeros - zeros_above) - zeros_in
        won += int(in_block.astype(np.float64) @ twice_won[part])  # whole numbers below 2^53: exact
    area = won / (2 * ones * zeros)
    smaller = min(ones, zeros)
    bound = float(Fraction(1, 20)) ** (1 / smaller)
    if area == 1:
        return area, bound, 1.0
    if area == 0:
        return area, 0.0, 1 - bound

    variance = 0.0
    if smaller > 1:
        # Zeros stand inside these blocks, between them, or above them all.
        of_ones, of_zeros = 0.0, int(ranked.block_start[0]) * area**2
        for part in parts(twice_won.size):
            in_block, above = ranked.block_events[part], ranked.block_cum[part]
            size = ranked.block_end[part] - ranked.block_start[part]
            gap = ranked.next_start[part] - ranked.block_end[part]
            of_ones += float(in_block @ (twice_won[part] / (2 * zeros) - area) ** 2)
            of_zeros += float((size - in_block) @ ((above - in_block / 2) / ones - area) ** 2)
            of_zeros += float(gap @ (above / ones - area) ** 2)
        variance = float(of_ones / (ones - 1) / ones + of_zeros / (zeros - 1) / zeros)
    if variance == 0:
        variance = area * (1 - area) / smaller
    centre = math.log(area / (1 - area))
    half = _Z95 * math.sqrt(variance) / (area * (1 - area))
    return area, float(expit(centre - half)), float(expit(centre + half))


_Z95 = 1.959963984540054


@dataclass(frozen=True)
class _Evidence:
    """What a blind test rests on, whatever its options."""

    levels: int
    concordance: tuple[float | None, float | None, float | None]
    bound: HeadBound | None
    bound_scan: HeadBound | None
    unit: Dispersion
    uniform: Dispersion


_KNOWN: WeakKeyDictionary[RankedPredictions, _Evidence] = WeakKeyDictionary()


def _evidence(ranked: RankedPredictions) -> _Evidence:
    known = _KNOWN.get(ranked)
    if known is None:
        unit, uniform = leak_dispersion_ranked(ranked)
        bound, bound_scan = head_bounds_ranked(ranked)
        known = _Evidence(
            levels=_levels(ranked),
            concordance=concordance_ranked(ranked),
            bound=bound,
            bound_scan=bound_scan,
            unit=unit,
            uniform=uniform,
        )
        _KNOWN[ranked] = known
    return known


def _levels(ranked: RankedPredictions) -> int:
    """Count the different predictions."""
    keys = ranked.keys
    changes = (
        np.count_nonzero((keys[1:][part] ^ keys[:-1][part]) >> 1)  # the lowest bit is the outcome
        for part in parts(ranked.n - 1)
    )
    return 1 + sum(map(int, changes))


def _judge(
    ranked: RankedPredictions,
    spike: int,
    k_min: int,
    delta: object,
    area: float | None,
    ceiling: Fraction | None,
) -> tuple[str, str | None]:
    if area is None or ranked.constant:
        return "undetermined", None
    if spike >= k_min:
        return "leaky", "near-label"
    if _above(area, ceiling):
        return "leaky", "above-ceiling"
    possible = ranked.n >= k_min and ranked.events >= fewest_events(delta, k_min)
    return ("not shown" if possible else "undetermined"), None


def needed_risk(spike: int, events: int, m_star: float | None) -> float:
    """Return the risk above which some honest predictions must be for a pure head.

    Parameters
    ----------
    spike, events : int
        The head, and the events in it.
    m_star : float or None
        From `leakviz.purity.head_bound_ranked`, which looks at heads from 50 records up.

    Examples
    --------
    >>> needed_risk(60, 60, 0.951), round(needed_risk(10, 10, 0.5), 3), round(0.05 ** (1 / 10), 3)
    (0.951, 0.741, 0.741)
    """
    alone = float(betaincinv(events, spike - events + 1, 0.05)) if 0 < spike < BOUND_FROM else 0.0
    return max(m_star or 0.0, alone)


def strength_of(needed: float, scan: float | None) -> str:
    """Return how strong the evidence of a pure head is; see `BlindTest.strength`.

    Parameters
    ----------
    needed : float
        From `needed_risk`.
    scan : float or None
        The same with all heads allowed for.

    Examples
    --------
    >>> [strength_of(needed, scan) for needed, scan in [(0.9, 0.82), (0.93, 0.9), (0.99, 0.95)]]
    ['weak', 'moderate', 'strong']
    """
    if scan is not None and scan > PESSIMISTIC_RISK:
        return "strong"
    return "moderate" if needed > PESSIMISTIC_RISK else "weak"


def fewest_events(delta: object, k_min: int) -> int:
    """Return the events without which no head of `k_min` records can have a purity of 1 - `delta`.

    Examples
    --------
    >>> fewest_events("0.05", 50), fewest_events("0.3", 50), fewest_events("0", 50)
    (48, 35, 50)
    """
    return math.ceil((1 - check_delta(delta)) * k_min)


def _above(area: float | None, ceiling: Fraction | None) -> bool:
    return area is not None and ceiling is not None and area > ceiling


def _hidden(head: Spike, k_min: int) -> bool:
    return head.tie_blocks < k_min <= head.best_order


def _swapped(
    p: NDArray[np.float64], y: NDArray[np.uint8], reference: NDArray[np.float64], folds: ArrayLike
) -> list[BreadthCurve]:
    """Compare the two vectors that arise when prediction and reference change places in some folds."""
    code = _fold_codes(folds, p.size)
    count = min(int(code.max()) + 1, _MOST_SWAPPED_FOLDS)
    first, second = (rankdata(v) / p.size for v in (p, reference))  # their ranks: the scales may differ
    curves = []
    for others in product([False, True], repeat=count - 1):
        if any(others):  # fold 0 stays: swapping all the rest is its own mirror image
            swap = np.array([False, *others])[code % count]
            one = rank_predictions(np.where(swap, second, first), y)
            two = rank_predictions(np.where(swap, first, second), y)
            curves += [BreadthCurve(one, two), BreadthCurve(two, one)]
    return curves


def _fold_codes(folds: ArrayLike, rows: int) -> NDArray[np.int64]:
    array = np.asarray(folds)
    if array.shape != (rows,):
        raise InputError(f"folds must have one value per row, got the shape {array.shape} for {rows} rows")
    codes, names = pd.factorize(array)
    if (codes < 0).any():
        first = int(np.argmax(codes < 0))
        raise InputError(
            f"folds is missing in {np.count_nonzero(codes < 0)} of {rows} rows; first: row {first}; "
            "give every row a fold"
        )
    if len(names) < 2:
        raise InputError(f"folds must hold at least two folds, got only {names[0]!r}")
    return codes.astype(np.int64)


def _check_k_min(k_min: Any) -> int:
    if isinstance(k_min, (bool, np.bool_)) or not isinstance(k_min, (int, np.integer)) or k_min < 1:
        raise InputError(f"k_min must be a whole number from 1 up, got {k_min!r}")
    return int(k_min)


def _check_ceiling(c_max: object) -> Fraction:
    value = as_decimal(c_max, name="c_max")
    if not 0 <= value <= 1:
        raise InputError(f"c_max must lie between 0 and 1, got {c_max!r}")
    return value


def _check_epsilon(epsilon: object) -> Fraction:
    value = as_decimal(epsilon, name="epsilon")
    if not 0 <= value < 1:
        raise InputError(f"epsilon must be at least 0 and below 1, got {epsilon!r}")
    return value


def _is_off(ceiling: object) -> bool:
    return ceiling is None or (isinstance(ceiling, (float, np.floating)) and math.isinf(ceiling))


def _plain(value: Fraction) -> str:
    """Write a fraction as a decimal where that is exact, else as numerator/denominator."""
    if value.denominator == 1:
        return str(value.numerator)
    rest, places = value.denominator, 0
    while rest % 2 == 0 or rest % 5 == 0:
        rest = rest // 10 if rest % 10 == 0 else rest // 2 if rest % 2 == 0 else rest // 5
        places += 1
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def _count(number: int, what: str = "record") -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _down(value: float) -> str:
    """Write a lower bound with three decimals, rounded down, so that the text claims no more than it may."""
    return f"{math.floor(value * 1000) / 1000:.3f}"


def _rate(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"
