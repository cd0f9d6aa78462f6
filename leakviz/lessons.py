"""Eight lessons on why a leak inverts a score, as data: states of a world, questions, and what is true of them.

A lesson holds no result. What it asks for is computed by the core when it is asked, and what its
words promise is a `Claim` that the tests measure for many seeds.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import xarray as xr

from leakviz.detectors import Mahalanobis, detector_auroc
from leakviz.errors import InputError
from leakviz.fingerprint import Rule
from leakviz.world import World, score_world, simulate_leak, simulate_twins, sweep_world
from leakviz.world.draw import world_features

RULE = Rule()
"""The published gate and tau, by which lesson 4 judges."""

State = Mapping[str, Any]
"""Arguments of `simulate_leak`, "detector" and "alpha"; or ``{"twins": True}``, for `simulate_twins`."""


@dataclass(frozen=True)
class Claim:
    """What the words of a lesson promise: a quantity of a state lies within a band, whatever the seed.

    Attributes
    ----------
    state : mapping
    variable : str
        As `measure` takes it.
    low, high : float
        The band, ends included.
    share : float
        Of the seeds for which it holds, at least: below 1 where the band itself is
        one that chance leaves now and then.

    Examples
    --------
    >>> claim = lessons()[0].claims[0]
    >>> claim.variable, bool(claim.low <= measure(claim.state, claim.variable, seed=3) <= claim.high)
    ('oracle_lda', True)
    """

    state: State
    variable: str
    low: float
    high: float
    share: float = 1.0


@dataclass(frozen=True)
class Further:
    """A state to look at after the reveal, with a sentence.

    Attributes
    ----------
    label : str
        For a button.
    text : str
    state : mapping

    Examples
    --------
    >>> [further.label for further in lessons()[3].also]
    ['Where the gate does not help']
    """

    label: str
    text: str
    state: State


@dataclass(frozen=True)
class Lesson:
    """One step of the tour.

    Attributes
    ----------
    number : int
        1 to 8.
    slug : str
        For its address.
    title, text, question, reveal : str
        Plain text; `text` has at most 60 words, `reveal` is one sentence.
    state, state_after : mapping
        What is shown with the question, and with the reveal (seed 0).
    kind : {"where", "choice"}
        Whether the answer is a place on an axis from 0 to 1, or one of three options.
    options : tuple of str
        Three, or none.
    also : tuple of Further
    claims : tuple of Claim

    Examples
    --------
    >>> third = lessons()[2]
    >>> third.title, third.kind, round(third.truth(), 1), third.answer() is None
    ('The leak', 'where', 0.4, True)
    >>> fourth = lessons()[3]
    >>> fourth.options[fourth.answer()]
    'No: the line fails too'
    """

    number: int
    slug: str
    title: str
    text: str
    state: State
    question: str
    kind: Literal["where", "choice"]
    reveal: str
    state_after: State
    options: tuple[str, ...] = ()
    also: tuple[Further, ...] = ()
    claims: tuple[Claim, ...] = ()
    _decide: Callable[[], tuple[float, int | None]] = field(
        default=lambda: (float("nan"), None), repr=False, compare=False
    )
    _find: Callable[[], str] = field(default=lambda: "", repr=False, compare=False)

    def truth(self) -> float:
        """Return what the core finds: the AUROC asked for, or the number that decides between options."""
        return _decided(self.number)[0]

    def answer(self) -> int | None:
        """Return which of the options is right, from 0, or None where there are none."""
        return _decided(self.number)[1]

    def found(self) -> str:
        """Return a sentence with the numbers that the core finds for the reveal, or "" where one says all.

        Examples
        --------
        >>> lessons()[4].found().partition(":")[0]
        'Best-unsup was 0.49 and is 1.000'
        """
        return self._find()


def lesson_world(state: State, *, seed: int = 0) -> World:
    """Return the world of a lesson's state.

    Parameters
    ----------
    state : mapping
        As in `Lesson`.
    seed : int, default 0

    Returns
    -------
    World

    Raises
    ------
    InputError
        If the state is one of twins, which have no world, or as `simulate_leak`.

    Examples
    --------
    >>> lesson_world(lessons()[2].state_after).in_fit
    True
    """
    if "twins" in state:
        raise InputError("state is one of twins, which have no world; use simulate_twins")
    return simulate_leak(**{k: v for k, v in state.items() if k not in ("detector", "alpha")}, seed=seed)


def measure(state: State, variable: str, *, seed: int = 0) -> float:
    """Return a quantity of a lesson's state, computed by the core.

    Parameters
    ----------
    state : mapping
        As in `Lesson`.
    variable : str
        A scalar of `score_world`; or

        - ``contrast``: `best_unsup` without the class in the fit set less that with it;
        - ``swing``: the largest less the smallest AUROC as the class goes once around the ellipse;
        - ``rise``: the AUROC at alpha 1 less that at alpha 0.

        Of twins, ``name:model`` for a variable of `simulate_twins` over `model`, or
        ``kolmogorov_ratio``: Kolmogorov's distance between them over what chance stays
        below in 95 % of draws, the larger of both outcomes' (Bonferroni).
    seed : int, default 0

    Returns
    -------
    float

    Examples
    --------
    >>> leak = lessons()[2].state_after
    >>> measure(leak, "auroc") < 0.5 < measure(leak, "oracle_lda")
    True
    """
    if "twins" in state:
        twins = _twins(seed)
        if variable == "kolmogorov_ratio":
            return float((twins.kolmogorov / twins.kolmogorov_limit).max())
        name, model = variable.split(":")
        return float(twins[name].sel(model=model))
    if variable == "contrast":
        out, into = (_score(state, seed, in_fit=there) for there in (False, True))
        return float(out.best_unsup - into.best_unsup)
    if variable == "rise":
        none, full = (_score(state, seed, alpha=alpha) for alpha in (0, 1))
        return float(full.auroc - none.auroc)
    if variable == "swing":
        turned = [_turned(state, angle, seed) for angle in range(0, 360, 15)]
        return max(turned) - min(turned)
    return float(_score(state, seed)[variable])


def _score(state: State, seed: int, **changes: Any) -> xr.Dataset:
    return _scored(json.dumps({**state, **changes}, sort_keys=True), seed)


@lru_cache(maxsize=64)
def _scored(state: str, seed: int) -> xr.Dataset:
    wanted = json.loads(state)
    return score_world(lesson_world(wanted, seed=seed), detector=wanted["detector"], alpha=wanted["alpha"])


@lru_cache(maxsize=16)
def _twins(seed: int) -> xr.Dataset:
    return simulate_twins(seed=seed)


def _turned(state: State, angle: float, seed: int) -> float:
    """Return the AUROC of the one-class Gaussian alone: a circle of worlds would wait long for the others."""
    world = lesson_world({**state, "angle": angle}, seed=seed)
    fit, own, other = map(world_features, (world.fit, world.id_test, world.ood_test))
    detector = Mahalanobis(shrinkage=state["alpha"], standardize=False).fit(fit)
    return detector_auroc(detector.score_samples(own), detector.score_samples(other))


@lru_cache(maxsize=8)
def _decided(number: int) -> tuple[float, int | None]:
    return lessons()[number - 1]._decide()


def _where(state: State, variable: str) -> Callable[[], tuple[float, int | None]]:
    return lambda: (measure(state, variable), None)


def _fires(state: State) -> Callable[[], tuple[float, int | None]]:
    """Decide lesson 4: it fires; it does not, for the line fails; or for a detector sees the class."""

    def decide() -> tuple[float, int | None]:
        oracle, best = measure(state, "oracle_lda"), measure(state, "best_unsup")
        if best >= RULE.tau:
            return oracle, 2
        return oracle, 0 if oracle >= RULE.gate else 1

    return decide


def _moves(before: State, after: State) -> Callable[[], tuple[float, int | None]]:
    """Decide lesson 6: it rises, it falls, or it stays, which is to say that both intervals overlap."""

    def decide() -> tuple[float, int | None]:
        first, second = _score(before, 0), _score(after, 0)
        if first.high < second.low:
            return float(second.auroc), 0
        return float(second.auroc), 1 if second.high < first.low else 2

    return decide


def _told_apart(state: State) -> Callable[[], tuple[float, int | None]]:
    """Decide lesson 8: the test convicts one of the two models, or their laws are the same to chance."""

    def decide() -> tuple[float, int | None]:
        twins = _twins(0)
        ratio = measure(state, "kolmogorov_ratio")
        convicted = [bool(twins.verdict.sel(model=model) == "leaky") for model in ("honest", "leaky")]
        if convicted[0] != convicted[1]:
            return ratio, convicted.index(True)
        return ratio, 2 if ratio <= 1 else None

    return decide


def _interval_found(state: State) -> Callable[[], str]:
    def find() -> str:
        found = _score(state, 0)
        low, high = (_number(float(found[f"oracle_lda_{end}"])) for end in ("low", "high"))
        return f"Beside it stands {low} to {high}, its 95 % interval: how far chance in the rows may have moved it."

    return find


def _heads_found() -> str:
    twins = _twins(0)
    first, second = (int(twins["spike"].sel(model=model)) for model in ("honest", "leaky"))
    return (
        f"Pure heads below {int(twins.attrs['k_min'])} records count for nothing: that the first has {first} and the second "
        f"{second} is chance."
    )


def _number(value: float) -> str:
    return f"{value:.3f}" if value >= 0.995 else f"{value:.2f}"  # two decimals would say 1


def _exclusion_found(out: State) -> Callable[[], str]:
    def find() -> str:
        ends = sweep_world(lesson_world(out), detector=out["detector"], alphas=[out["alpha"]], shares=[0, 1])
        without, within = ends.best_unsup.values
        contrast, low, high = (float(ends[f"contrast{end}"]) for end in ("", "_low", "_high"))
        return (
            f"Best-unsup was {_number(within)} and is {_number(without)}: an exclusion contrast of {contrast:.2f} "
            f"(95 % interval {low:.2f} to {high:.2f}, paired)."
        )

    return find


def _went(before: State, after: State) -> Callable[[], str]:
    def find() -> str:
        first, second = _score(before, 0), _score(after, 0)
        was, now = (
            f"{_number(float(s.auroc))} ({_number(float(s.low))} to {_number(float(s.high))})"
            for s in (first, second)
        )
        return f"It was {was} and is {now}, with 95 % intervals."

    return find


def _state(**values: Any) -> State:
    return MappingProxyType({"detector": "one-class", "alpha": 0.0} | values)


@lru_cache(maxsize=1)
def lessons() -> tuple[Lesson, ...]:
    """Return the eight lessons, in their order.

    Returns
    -------
    tuple of Lesson

    Notes
    -----
    1 to 7: arXiv 2607.19393, sections 4, 5 and 8; 8: arXiv 2606.11267, sections 3, 4 and 6.

    Examples
    --------
    >>> [lesson.slug for lesson in lessons()]  # doctest: +NORMALIZE_WHITESPACE
    ['decodable', 'detectable', 'leak', 'leaked-or-hard', 'exclusion', 'orientation', 'whitening',
     'predictions']
    """
    return (
        _decodable(),
        _detectable(),
        _leak(),
        _leaked_or_hard(),
        _exclusion(),
        _orientation(),
        _whitening(),
        _predictions(),
    )


_OUT = _state(distance=6.25, in_fit=False)
_IN = _state(distance=6.25, in_fit=True)
_RIM = _state(classes=5, distance=8.0, angle=18.0, in_fit=True)
_BETWEEN = _state(spread=2.0, distance=0.0)
_HARD = _state(spread=2.0, distance=3.4, noise_dimensions=100, test_rows=1200)


def _decodable() -> Lesson:
    return Lesson(
        number=1,
        slug="decodable",
        title="Decodable",
        text=(
            "A model turns each row into a point. Three classes are known (grey); a fourth (blue) is called "
            "out-of-distribution, OOD. Fit a straight line to the colours of a random half of these points, and judge "
            "it on the others. Its AUROC: the share of pairs, one blue and one grey, that it orders right. (Small "
            "dots: for later.)"
        ),
        state=_OUT,
        question="Where will the AUROC of the line land? One half is a coin, 1 is perfect.",
        kind="where",
        reveal=(
            "Above 0.99, because the OOD class lies on one side of a line: with labels it can be told apart, so it "
            "is called decodable."
        ),
        state_after=_OUT,
        claims=(Claim(_OUT, "oracle_lda", 0.99, 1),),
        _decide=_where(_OUT, "oracle_lda"),
        _find=_interval_found(_OUT),
    )


def _detectable() -> Lesson:
    return Lesson(
        number=2,
        slug="detectable",
        title="Detectable",
        text=(
            "A detector gets no labels. It is fitted on other rows of the known classes alone (the fit set, small "
            "dots). The more standard deviations a point lies from their common centre, each direction measured by "
            "its own spread, the more unusual it is: the Mahalanobis distance. AUROC: the share of pairs in which the "
            "OOD point is more unusual."
        ),
        state=_OUT,
        question="Where will the AUROC of the detector land?",
        kind="where",
        reveal=(
            "Above 0.9, because the OOD class lies outside of what was fitted: it is unusual without any label, so "
            "it is called detectable."
        ),
        state_after=_OUT,
        claims=(Claim(_OUT, "auroc", 0.9, 1), Claim(_OUT, "best_unsup", 0.9, 1)),
        _decide=_where(_OUT, "auroc"),
    )


def _leak() -> Lesson:
    return Lesson(
        number=3,
        slug="leak",
        title="The leak",
        text=(
            "Somebody builds a benchmark and calls a class OOD that the model was trained on. A detector is fitted on "
            "the points of the model’s training rows, so rows of that class are in the fit set, too: that is the leak. "
            "No test point moves, and the line stays. Only the detector changes: it takes that class for usual."
        ),
        state=_OUT,
        question="Where will the AUROC of the detector land when the class is in the fit set?",
        kind="where",
        reveal=(
            "Below one half, between 0.3 and 0.5, because the fit now covers the class, and most of its points look "
            "more usual than those of the known classes, while the line still reads above 0.99."
        ),
        state_after=_IN,
        also=(
            Further(
                "A leak that does not invert",
                "Now there are five known classes and the sixth lies far out. It stays unusual although it is in the "
                "fit set: the AUROC is between 0.7 and 0.9, as in many an honest benchmark.",
                _RIM,
            ),
        ),
        claims=(
            Claim(_IN, "auroc", 0.3, 0.5),
            Claim(_IN, "oracle_lda", 0.99, 1),
            Claim(_IN, "best_unsup", 0, RULE.tau),
            Claim(_RIM, "auroc", 0.7, 0.9),
            Claim(_RIM, "best_unsup", RULE.tau, 1),
        ),
        _decide=_where(_IN, "auroc"),
    )


def _leaked_or_hard() -> Lesson:
    return Lesson(
        number=4,
        slug="leaked-or-hard",
        title="Leaked, or just hard?",
        text=(
            "This class lies amid the others: it looks usual although outside the fit set. A low AUROC alone proves "
            "no leak. The fingerprint of a leak fires if two things hold: the line reads at least 0.95 (the gate); "
            "best-unsup, the better of Mahalanobis (our detector so far) and kNN (distance to near fit rows), stays "
            "below 0.65."
        ),
        state=_BETWEEN,
        question="The detector reads far below one half. Does the fingerprint fire?",
        kind="choice",
        options=(
            "Yes: it looks like a leak",
            "No: the line fails too",
            "No: another detector sees the class",
        ),
        reveal=(
            "It stays silent, because the line reads below 0.75, far under the gate: the class is hard for "
            "everybody, with labels and without."
        ),
        state_after=_BETWEEN,
        also=(
            Further(
                "Where the gate does not help",
                "Here the class lies apart in two features, and there are a hundred more of pure noise: with labels "
                "the line reads above 0.95, both detectors stay below 0.65, and the fingerprint fires without a leak.",
                _HARD,
            ),
        ),
        claims=(
            Claim(_BETWEEN, "oracle_lda", 0, 0.75),
            Claim(_BETWEEN, "best_unsup", 0, RULE.tau),
            Claim(_HARD, "oracle_lda", RULE.gate, 1),
            Claim(_HARD, "best_unsup", 0, RULE.tau),
        ),
        _decide=_fires(_BETWEEN),
    )


def _exclusion() -> Lesson:
    return Lesson(
        number=5,
        slug="exclusion",
        title="Take it out",
        text=(
            "A suspicion can be tested: leave the class out of the fit set and fit both detectors again. By how much "
            "best-unsup grows is the exclusion contrast. It is cheap: the model is not trained again. So the new value "
            "is flattered: a model trained on the class sets it apart better than one that never saw it."
        ),
        state=_IN,
        question="Best-unsup stands near one half. Where will it land with the class taken out?",
        kind="where",
        reveal=(
            "Above 0.9, a contrast of at least 0.3, because being in the fit set was all that hid the class; "
            "the hard class of the last step is in no fit set, so there is nothing to take out."
        ),
        state_after=_OUT,
        claims=(
            Claim(_OUT, "best_unsup", 0.9, 1),
            Claim(_IN, "best_unsup", 0.4, 0.55),
            Claim(_IN, "contrast", 0.3, 1),
        ),
        _decide=_where(_OUT, "best_unsup"),
        _find=_exclusion_found(_OUT),
    )


def _orientation() -> Lesson:
    wide = _state(
        classes=1,
        spread=0.0,
        distance=2.5,
        angle=0.0,
        anisotropy=4.0,
        orientation=30.0,
        rows=1000,
        test_rows=1000,
    )
    thin = MappingProxyType({**wide, "angle": 90.0})
    return Lesson(
        number=6,
        slug="orientation",
        title="Round the ellipse",
        text=(
            "One known class, four times as long as it is thin. The OOD class is outside the fit set and lies in "
            "the long direction. After your answer it walks round the ellipse to the thin direction, always as many "
            "standard deviations away, so that it ends up looking much nearer."
        ),
        state=wide,
        question="What will the AUROC of the detector do?",
        kind="choice",
        options=("It rises", "It falls", "It stays"),
        reveal=(
            "It stays, within 0.05 all the way round, because a detector that has seen the known class alone counts "
            "standard deviations, and cannot know which direction matters."
        ),
        state_after=thin,
        claims=(
            Claim(wide, "swing", 0, 0.05),
            Claim(wide, "oracle_lda", 0.9, 1),
            Claim(thin, "oracle_lda", 0.9, 1),
        ),
        _decide=_moves(wide, thin),
        _find=_went(wide, thin),
    )


def _whitening() -> Lesson:
    few = _state(
        centres=((-3.5, 0.0),), distance=3.0, angle=0.0, anisotropy=6.0, rows=100, noise_dimensions=40
    )
    healed = MappingProxyType({**few, "alpha": 1.0})
    thin = MappingProxyType({**few, "angle": 90.0, "alpha": 1.0})
    return Lesson(
        number=7,
        slug="whitening",
        title="Few rows, many features",
        text=(
            "Few fit rows, forty-two features: the plane shows two, the others are pure noise. Whitening divides each "
            "direction by its spread, as the Mahalanobis distance does (alpha 0): all count alike, and most are noise. "
            "Shrinkage (alpha) leads back to plain distance, in which wide directions count most. The OOD class "
            "differs in the widest."
        ),
        state=few,
        question="Alpha goes from 0 to 1. Where will the AUROC of the detector land?",
        kind="where",
        reveal=(
            "Above 0.85, up by at least 0.15, because plain distance counts the wide direction most, and here the "
            "class differs in it."
        ),
        state_after=healed,
        also=(
            Further(
                "Where alpha hurts",
                "Now the class differs in the thinnest direction, and at alpha 1 the AUROC is below 0.6, lower "
                "by at least 0.05 than at alpha 0: which alpha is best cannot be known without labels.",
                thin,
            ),
        ),
        claims=(
            Claim(few, "auroc", 0.5, 0.8),
            Claim(healed, "auroc", 0.85, 1),
            Claim(few, "rise", 0.15, 1),
            Claim(thin, "auroc", 0.4, 0.6),
            Claim(thin, "rise", -1, -0.05),
        ),
        _decide=_where(healed, "auroc"),
        _find=_went(few, healed),
    )


def _predictions() -> Lesson:
    twins: State = MappingProxyType({"twins": True})
    return Lesson(
        number=8,
        slug="predictions",
        title="Predictions only",
        text=(
            "All that is left of a model are its predicted risks and what happened; a test that sees no more is "
            "called blind. Of two models, one knew honest features alone, the other also saw a trace of the outcome. "
            "Both are calibrated: of the people given a risk of one in five, one in five has the event."
        ),
        state=twins,
        question="Compare the curves. Which of the two models leaks?",
        kind="choice",
        options=("The first", "The second", "Nobody can tell from this"),
        reveal=(
            "Nobody can tell, because predictions and outcomes have the same joint distribution in both, and a test "
            "sees nothing else."
        ),
        state_after=twins,
        also=(
            Further(
                "A near-label flag",
                "A third model saw a flag that only events have. Its pure head is at least 150 records long, the "
                "honest model’s below 50. Say how high an honest risk may be: if nobody’s outcome is nearly certain "
                "beforehand, no honest head is so pure, and this leak shows.",
                twins,
            ),
            Further(
                "Laundered by Platt scaling",
                "The flagged model was too sure of itself: its dispersion z is above 20. Platt scaling recalibrates "
                "it, and z falls within 1 of 0; but it keeps the order of the records, so the pure head stays.",
                twins,
            ),
        ),
        claims=(
            Claim(twins, "kolmogorov_ratio", 0, 1, share=0.9),
            Claim(twins, "spike:honest", 0, 49),
            Claim(twins, "spike:leaky", 0, 49),
            Claim(twins, "spike:flag", 150, np.inf),
            Claim(twins, "spike:recalibrated", 150, np.inf),
            Claim(twins, "z:flag", 20, np.inf),
            Claim(twins, "z:recalibrated", -1, 1),
        ),
        _decide=_told_apart(twins),
        _find=_heads_found,
    )
