"""Audit a designated OOD split: decodable by a probe, and undetectable because it leaked?

The split is three tables of features from one layer of one model: what the detectors are
fitted on, the ID test rows, and the rows designated as OOD. Where the classes of the fit
rows are known, the designated class is left out and the detectors are fitted again: the
exclusion contrast.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.battery import check_battery
from leakviz.detectors import (
    Mahalanobis,
    OracleLDA,
    as_seeds,
    class_distances,
    kth_distance,
    oracle_lda,
    probe_split,
    refuse_zero_rows,
)
from leakviz.errors import InputError
from leakviz.fingerprint import Rule
from leakviz.matrices import Progress, as_features, as_labels
from leakviz.moments import class_statistics
from leakviz.neighbourhood import neighbourhood_leakage
from leakviz.whitening import areas

PUBLISHED_RULE = Rule()
"""The published gate and tau: what a split is judged by where nothing else is said."""

VERDICTS = ("fires", "not shown", "undetermined")

_MOST_CLASSES = 12  # that a note lists
_LEVEL = 0.05  # one minus the level of every interval


def audit_split(
    fit: ArrayLike,
    id_test: ArrayLike,
    ood_test: ArrayLike,
    *,
    fit_labels: ArrayLike | None = None,
    ood_class: ArrayLike | None = None,
    id_test_labels: ArrayLike | None = None,
    shrinkage: float | Literal["ledoit-wolf"] = "ledoit-wolf",
    k: int = 50,
    seeds: Sequence[int] = (0, 1, 2),
    rule: Rule = PUBLISHED_RULE,
    overlap: Literal["refuse", "report"] = "refuse",
    progress: Progress | None = None,
) -> xr.Dataset:
    """Audit a designated OOD split for a leak into the fit set.

    Parameters
    ----------
    fit, id_test, ood_test : array-like of numbers, shapes (n, D), (a, D) and (b, D)
        Features of one layer of one model; at least 4 test rows of either kind.
    fit_labels : array-like of whole numbers or text, shape (n,), optional
        Classes of the fit rows.
    ood_class : label or array-like of labels, optional
        The class, or classes, that the OOD rows were designated from. Where it
        is among `fit_labels`, the detectors are fitted without it, too.
    id_test_labels : array-like of whole numbers or text, shape (a,), optional
        Classes of the ID test rows: each is halved for the probe.
    shrinkage : "ledoit-wolf" or float in [0, 1], default "ledoit-wolf"
        Of the Mahalanobis detector (one-class, on standardised features).
    k : int, default 50
        Which neighbour the kNN detector measures.
    seeds : sequence of int, default (0, 1, 2)
        Each splits the test rows in two halves: one fits the probe, the probe
        and the detectors are evaluated on the other.
    rule : Rule
        Gate and tau; by default the published ones.
    overlap : {"refuse", "report"}, default "refuse"
        What to do where a test row is also a fit row, or an OOD row also an ID
        test row: an error, or a count in the answer.
    progress : callable, optional
        Called as ``progress(done, total)``, in the caller's thread, in units of
        work.

    Returns
    -------
    xarray.Dataset
        Coordinates ``seed`` and ``row`` (ID test rows, then OOD rows; ``is_ood``
        tells which). Every AUROC is of held-out rows, with larger scores for
        ID, and is not flipped.

        ``oracle_lda``, ``maha``, ``knn``, ``best_unsup`` : float (seed)
            AUROC of the probe, of both detectors, and the larger of these two.
        ``oracle_lda_low``, ``oracle_lda_high``, and so on : float (seed)
            95 % intervals of oracle_lda, maha and knn.
        ``fired`` : bool (seed)
            ``oracle_lda >= gate`` and ``best_unsup < tau``.
        ``alpha`` : float
            The shrinkage in use.
        ``neighbourhood_leakage`` : float
            The competing index, which never looks at the fit set; absent where
            there are no k other test rows.
        ``maha_score``, ``knn_score`` : float (row)
        ``oracle_score`` : float (seed, row)
            nan where the row fitted the probe.
        ``held_out`` : bool (seed, row)

        And where `ood_class` is among `fit_labels`: ``maha_excluded``,
        ``knn_excluded`` (with intervals), ``best_unsup_excluded``, ``contrast``
        (best_unsup_excluded less best_unsup), ``alpha_excluded``,
        ``maha_score_excluded``, ``knn_score_excluded``: the same with the
        class left out of the fit set.

        Attributes: ``verdict`` ("fires", "not shown" or "undetermined": never
        "clean"), ``reason``, ``gate``, ``tau``, ``k``, ``shrinkage``,
        ``ood_class``, ``n_fit``, ``n_designated`` (fit rows of the designated
        class; -1 if unknown), ``n_id``, ``n_ood``, ``n_features``,
        ``n_constant``, ``n_overlap_fit_id``, ``n_overlap_fit_ood``,
        ``n_overlap_id_ood``, and ``notes``, one per line.

    Raises
    ------
    InputError
        If a table is none, widths or lengths differ, a number is missing or
        infinite, a row is all zero, all features are constant; if a test row is
        also a fit row; if `ood_class` is given without `fit_labels`, or differs
        from one of them in spelling only; if ID test rows carry the designated
        class, or a class that the fit set lacks; if there are fewer than k fit
        rows, or the shrinkage is 0 with fewer fit rows than features.

    Notes
    -----
    arXiv 2607.19393, sections 4.4 and 5.1. `verdict` follows the rule on means
    over seeds. It is "undetermined" where the rule fires on some seeds only, or
    where the detectors have collapsed but so few rows are held out that not
    even an AUROC of 1 would show, at 95 %, a probe at the gate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> place = {"cat": [9, 0, 0], "dog": [0, 9, 0], "fox": [0, 0, 9]}
    >>> def draw(n, *names):
    ...     return np.concatenate([rng.normal(size=(n, 3)) + place[name] for name in names])
    >>> audit = audit_split(
    ...     draw(500, "cat", "dog", "fox"), draw(200, "cat", "dog"), draw(200, "fox"),
    ...     fit_labels=np.repeat(["cat", "dog", "fox"], 500), ood_class="fox",
    ... )
    >>> audit.attrs["verdict"], bool((audit.contrast > 0.1).all())
    ('fires', True)
    """
    rows = as_features(fit, "fit")
    own = as_features(id_test, "id_test", width=rows.shape[1])
    other = as_features(ood_test, "ood_test", width=rows.shape[1])
    for name, table in (("fit", rows), ("id_test", own), ("ood_test", other)):
        refuse_zero_rows(table, name)
    runs = as_seeds(seeds)
    designated, absent, held = _designated(fit_labels, ood_class, rows.shape[0])
    strata = _strata(id_test_labels, fit_labels, ood_class, own.shape[0], other.shape[0])
    _check_neighbours(k, rows.shape[0], designated)
    overlaps = _overlaps(rows, own, other, overlap)
    work = _Work(rows.shape, own.shape[0], other.shape[0], len(runs), progress)

    # Two groups, the designated class and the rest, make both fit sets.
    groups = np.zeros(rows.shape[0], dtype=np.int64) if designated is None else designated.astype(np.int64)
    statistics = class_statistics(rows, groups, progress=work.part("statistics"))
    tests = np.concatenate([own, other])
    near = class_distances(rows, groups, tests, k=k, progress=work.part("neighbours"))
    whole = Mahalanobis.from_statistics(statistics.union(), shrinkage=shrinkage)
    scores = {"maha_score": whole.score_samples(tests), "knn_score": -kth_distance(near, k=k)}
    alphas = {"alpha": whole.shrinkage_}
    if groups.any():
        rest = Mahalanobis.from_statistics(statistics.without(1), shrinkage=shrinkage)
        scores["maha_score_excluded"] = rest.score_samples(tests)
        scores["knn_score_excluded"] = -kth_distance(near, members=[0], k=k)
        alphas["alpha_excluded"] = rest.shrinkage_

    oracles = []
    for place, seed in enumerate(runs):
        oracles.append(oracle_lda(own, other, held_out=probe_split(strata, seed=seed)))
        work.part("probe")(place + 1, len(runs))
    variables = _evaluated(scores, oracles, own.shape[0], rule)
    variables |= {name: ((), value) for name, value in alphas.items()}
    if k < tests.shape[0]:
        variables["neighbourhood_leakage"] = ((), neighbourhood_leakage(own, other, k=k))
    work.finish()

    answer = xr.Dataset(
        variables,
        {
            "seed": list(runs),
            "row": np.arange(tests.shape[0]),
            "is_ood": ("row", np.repeat([False, True], [own.shape[0], other.shape[0]])),
        },
        {
            "gate": rule.gate,
            "tau": rule.tau,
            "k": int(k),
            "shrinkage": str(shrinkage),
            "ood_class": "" if ood_class is None else ", ".join(map(str, _classes(ood_class))),
            "n_fit": rows.shape[0],
            "n_designated": -1 if designated is None else int(designated.sum()),
            "n_id": own.shape[0],
            "n_ood": other.shape[0],
            "n_features": rows.shape[1],
            "n_constant": whole.n_constant_,
            "n_null": whole.n_null_,
            **overlaps,
        },
    )
    verdict, reason = _verdict(answer)
    notes = _notes(answer, absent, held, whole.spectrum_.varies, tests)
    return answer.assign_attrs(verdict=verdict, reason=reason, notes="\n".join(notes))


def explain(audit: xr.Dataset) -> str:
    """Say in words what an audit found, and what it cannot know.

    Parameters
    ----------
    audit : xarray.Dataset
        As `audit_split` returns it.

    Returns
    -------
    str
        Sentences, in paragraphs separated by an empty line. Plain text, never HTML.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> audit = audit_split(*(rng.normal(size=(300, 4)) + shift for shift in (9, 9, 15)))
    >>> print(explain(audit).split(". ")[0])
    Not shown: the best unsupervised detector sees the OOD rows (AUROC 1.000, tau 0.65)
    """
    facts = audit.attrs
    verdict = f"{facts['verdict']}: {facts['reason']}."
    paragraphs = [[verdict[0].upper() + verdict[1:]]]
    if headline(audit) != facts["verdict"]:
        paragraphs[0] = [_leaked(audit), f"The scores, {verdict}"]
    if facts["verdict"] == "not shown" and facts["n_designated"] <= 0:
        paragraphs[0].append("That is no proof that the split is clean.")
    paragraphs.append(_membership(audit))
    scope = [
        "The fingerprint needs features that were trained on the classes: on others a leak leaves no trace."
    ]
    if "contrast" in audit:
        scope.append(
            "Leaving a class out of the fit set alone flatters the clean value, for the model has still been "
            "trained on it: retraining without the class is the gold standard."
        )
    elif facts["verdict"] == "fires":
        scope.append(
            "A novel class that is merely hard can fire too: the exclusion contrast (fit_labels and ood_class) "
            "or retraining without the class tells them apart."
        )
    paragraphs.append(scope)
    if facts["notes"]:
        paragraphs.append(facts["notes"].split("\n"))
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs if sentences)


def audit_battery(
    audit: xr.Dataset,
    *,
    name: str = "split",
    regime: str | None = None,
    backbone: str = "not stated",
    id_dataset: str = "not stated",
    ood: str | None = None,
    distance: str = "",
) -> xr.Dataset:
    """Turn an audit into a battery, which `leakviz.save_battery` saves and the app opens.

    Parameters
    ----------
    audit : xarray.Dataset
        As `audit_split` returns it.
    name : str, default "split"
        What to call it: settings are ``P_<name>`` and ``N_excl_<name>``, or
        ``N_novel_<name>``.
    regime : str, optional
        What the split is known to be. Needed where the audit had no `fit_labels`
        and `ood_class`; else the labels say it: a leak and its clean-excl
        partner, or clean-novel.
    backbone, id_dataset : str
        Names for the coordinates.
    ood : str, optional
        The OOD rows' name; by default the designated class.
    distance : {"near", "far", ""}
        Of a novel class.

    Returns
    -------
    xarray.Dataset
        A battery of one or two settings over ``seed``.

    Raises
    ------
    InputError
        If the regime is needed and not given, or contradicts the labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> audit = audit_split(*(rng.normal(size=(300, 4)) + shift for shift in (9, 9, 15)))
    >>> audit_battery(audit, regime="clean-novel", ood="shifted").setting.values.tolist()
    ['N_novel_split']
    """
    known = audit.attrs["n_designated"]
    if known < 0 and regime is None:
        raise InputError(
            "regime must be given, for the audit had no fit_labels and ood_class to tell it: say 'leak' if "
            "the OOD class is in the fit set, 'clean-novel' if it is not"
        )
    told = {True: ("leak",), False: ("clean-novel", "clean-retrained")}[known > 0]
    if known >= 0 and regime is not None and regime not in told:
        raise InputError(
            f"regime is {regime!r}, but {known:,} fit rows carry the designated class: that is {told[0]!r}; "
            "leave regime out"
        )
    truth = regime or told[0]
    prefix = {"leak": "P", "clean-excl": "N_excl", "clean-retrained": "N_retrain", "clean-novel": "N_novel"}
    if truth not in prefix:
        raise InputError(f"regime must be one of {', '.join(map(repr, prefix))}, got {regime!r}")
    variables = ("oracle_lda", "maha", "knn", "best_unsup")
    columns = {v: [audit[v].values] for v in variables}
    settings, regimes = [f"{prefix[truth]}_{name}"], [truth]
    if "contrast" in audit:
        settings.append(f"N_excl_{name}")
        regimes.append("clean-excl")
        for v in variables:
            columns[v].append(audit[v if v == "oracle_lda" else f"{v}_excluded"].values)
    same = len(settings)
    battery = xr.Dataset(
        {v: (("setting", "seed"), np.stack(columns[v])) for v in variables},
        {
            "setting": settings,
            "seed": audit["seed"].values,
            "regime": ("setting", regimes),
            "backbone": ("setting", [backbone] * same),
            "id_dataset": ("setting", [id_dataset] * same),
            "ood": ("setting", [ood or audit.attrs["ood_class"] or "not stated"] * same),
            "distance": ("setting", [distance] * same),
            "pair": ("setting", [name if same > 1 else ""] * same),
        },
        {
            "title": f"Audit of {name}",
            "source": "features brought by the user",
            "license": "not stated",
            "created_by": "leakviz audit",
        },
    )
    check_battery(battery)
    return battery


def row_overlap(rows: ArrayLike, others: ArrayLike) -> NDArray[np.bool_]:
    """Tell which rows of one table are also in another.

    Parameters
    ----------
    rows, others : array-like of numbers, shapes (n, D) and (m, D)

    Returns
    -------
    numpy.ndarray of bool, shape (m,)
        True where a row of `others` equals one of `rows`, at the precision of
        the coarser of the two types.

    Raises
    ------
    InputError
        If one is no table of finite numbers, or widths differ.

    Examples
    --------
    >>> row_overlap([[1.0, 2.0]], [[0.0, 0.0], [1.0, 2.0]]).tolist()
    [False, True]
    """
    first = as_features(rows, "rows")
    second = as_features(others, "others", width=first.shape[1])
    # Features saved once as float32 and once as float16 are the same features.
    coarsest = min((first.dtype, second.dtype), key=lambda dtype: (dtype.kind != "f", dtype.itemsize))
    seen = set(_digests(first, coarsest))
    return np.fromiter((digest in seen for digest in _digests(second, coarsest)), bool, second.shape[0])


def _digests(rows: NDArray[Any], dtype: np.dtype[Any]) -> list[bytes]:
    target = dtype if dtype.kind == "f" else np.dtype(np.float64)
    answer: list[bytes] = []
    for start in range(0, rows.shape[0], 4096):
        with np.errstate(over="ignore"):  # beyond float16 a number becomes infinite: then it equals no other
            block = rows[start : start + 4096].astype(target) + target.type(0)  # + 0: -0.0 is 0
        answer += [hashlib.blake2b(row, digest_size=16).digest() for row in np.ascontiguousarray(block)]
    return answer


def _overlaps(rows: NDArray[Any], own: NDArray[Any], other: NDArray[Any], overlap: str) -> dict[str, int]:
    if overlap not in ("refuse", "report"):
        raise InputError(f"overlap must be 'refuse' or 'report', got {overlap!r}")
    counts = {}
    known, both = "a detector knows rows that it was fitted on", "no detector tells a row from itself"
    for key, first, second, name, told, why in (
        ("n_overlap_fit_id", rows, own, "id_test", "also in fit", known),
        ("n_overlap_fit_ood", rows, other, "ood_test", "also in fit", known),
        ("n_overlap_id_ood", own, other, "ood_test", "also in id_test", both),
    ):
        same = row_overlap(first, second)
        counts[key] = int(same.sum())
        if overlap == "refuse" and same.any():
            raise InputError(
                f"{name} is {told} in {counts[key]:,} of {same.size:,} rows; first: row "
                f"{int(np.flatnonzero(same)[0])}; {why}: remove them, or "
                "say overlap='report' to count them and go on"
            )
    return counts


def _classes(ood_class: ArrayLike) -> list[Any]:
    return np.atleast_1d(np.asarray(ood_class)).tolist()


def headline(audit: xr.Dataset) -> str:
    """Return an audit's verdict in few words; where the labels show a leak that the scores do not, first what they show.

    Parameters
    ----------
    audit : xarray.Dataset
        As `audit_split` returns it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fit, id_test, ood_test = (rng.normal(size=(300, 4)) + shift for shift in (9, 9, 15))
    >>> headline(audit_split(fit, id_test, ood_test))
    'not shown'
    >>> headline(audit_split(fit, id_test, ood_test, fit_labels=np.arange(300) // 280, ood_class=1))
    'a leak by the labels; scores: not shown'
    """
    verdict = str(audit.attrs["verdict"])
    shown = audit.attrs["n_designated"] > 0 and verdict != "fires"
    return f"a leak by the labels; scores: {verdict}" if shown else verdict


def _leaked(audit: xr.Dataset) -> str:
    facts = audit.attrs
    return (
        f"By its labels the fit set holds {facts['n_designated']:,} rows of the designated class "
        f"({facts['ood_class']}): that is a leak, whatever the scores say."
    )


def _inverted(audit: xr.Dataset) -> bool:
    """Tell whether the better detector is below 1/2 where its interval says so too, not just below."""
    return float(np.maximum(audit["maha_high"], audit["knn_high"]).mean()) < 0.5


def _designated(
    fit_labels: ArrayLike | None, ood_class: ArrayLike | None, n: int
) -> tuple[NDArray[np.bool_] | None, list[Any], list[Any]]:
    """Return which fit rows are of the designated class, which of the classes the fit set lacks, and what it has."""
    labels = None if fit_labels is None else as_labels(fit_labels, "fit_labels", rows=n, of="fit")
    if ood_class is None:
        return None, [], []
    wanted = _classes(ood_class)
    if labels is None:
        raise InputError(
            "ood_class is given without fit_labels, which say where it is in the fit set; give both"
        )
    if not wanted:
        raise InputError("ood_class is empty; name at least one class")
    held = np.unique(labels).tolist()
    absent = [label for label in wanted if label not in held]
    for label in absent:
        alike = [h for h in held if str(h).strip().casefold() == str(label).strip().casefold()]
        if alike:
            raise InputError(
                f"ood_class is {label!r}, which is no class of fit_labels, but {alike[0]!r} is; "
                "write it as the labels do"
            )
    designated = np.isin(labels, [label for label in wanted if label in held])
    if designated.all():
        raise InputError(
            "ood_class names every class of the fit set, so that nothing is left in-distribution"
        )
    return designated, absent, held


def _strata(
    id_test_labels: ArrayLike | None,
    fit_labels: ArrayLike | None,
    ood_class: ArrayLike | None,
    n_id: int,
    n_ood: int,
) -> NDArray[np.int64]:
    """Return what to halve the test rows by: the ID classes, and OOD as one class more."""
    codes = np.zeros(n_id, dtype=np.int64)
    if id_test_labels is not None:
        labels = as_labels(id_test_labels, "id_test_labels", rows=n_id, of="id_test")
        if ood_class is not None:
            _refuse_rows(
                np.isin(labels, _classes(ood_class)),
                labels,
                "of the designated OOD class",
                "move these rows to ood_test",
            )
        if fit_labels is not None:
            _refuse_rows(
                ~np.isin(labels, np.asarray(fit_labels)),
                labels,
                "of a class that fit_labels lack",
                "such rows are not in-distribution: remove them, or mend the labels",
            )
        codes = np.unique(labels, return_inverse=True)[1]
    return np.concatenate([codes, np.full(n_ood, codes.max() + 1)])


def _refuse_rows(bad: NDArray[np.bool_], labels: NDArray[Any], problem: str, told: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"id_test_labels is {problem} in {int(bad.sum()):,} of {bad.size:,} rows; "
            f"first: row {row} has {labels[row].item()!r}; {told}"
        )


def _check_neighbours(k: object, n_fit: int, designated: NDArray[np.bool_] | None) -> None:
    left = n_fit if designated is None else n_fit - int(designated.sum())
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f"k must be a whole number from 1 up, got {k!r}")
    if k > left:
        without = "" if left == n_fit else " without the designated class"
        raise InputError(
            f"k is {k}, but the fit set has {left:,} rows{without}; give a smaller k "
            "(--k on the command line) or more fit rows"
        )


def _evaluated(
    scores: dict[str, NDArray[np.float64]], oracles: list[OracleLDA], n_id: int, rule: Rule
) -> dict[str, Any]:
    """Return the AUROCs of every seed, on the rows that the seed holds out, and the scores behind them."""
    total = oracles[0].held_out.size
    is_ood = np.arange(total) >= n_id
    held = np.stack([oracle.held_out for oracle in oracles])
    read = np.full(held.shape, np.nan)
    for row, oracle in zip(read, oracles, strict=True):
        row[oracle.held_out] = oracle.score

    found: dict[str, NDArray[np.float64]] = {
        "oracle_lda": np.array([oracle.auroc for oracle in oracles]),
        "oracle_lda_low": np.array([oracle.low for oracle in oracles]),
        "oracle_lda_high": np.array([oracle.high for oracle in oracles]),
    }
    for name, score in scores.items():
        short = name.replace("_score", "")
        per_seed = [areas(score[np.newaxis, h & ~is_ood], score[np.newaxis, h & is_ood]) for h in held]
        for end, values in zip(("", "_low", "_high"), zip(*per_seed, strict=True), strict=True):
            found[f"{short}{end}"] = np.concatenate(values)
    found["best_unsup"] = np.maximum(found["maha"], found["knn"])
    if "maha_excluded" in found:
        found["best_unsup_excluded"] = np.maximum(found["maha_excluded"], found["knn_excluded"])
        found["contrast"] = found["best_unsup_excluded"] - found["best_unsup"]
    fired = (found["oracle_lda"] >= rule.gate) & (found["best_unsup"] < rule.tau)
    return {
        **{name: ("seed", values) for name, values in found.items()},
        "fired": ("seed", fired),
        **{name: ("row", score) for name, score in scores.items()},
        "oracle_score": (("seed", "row"), read),
        "held_out": (("seed", "row"), held),
    }


def _verdict(audit: xr.Dataset) -> tuple[str, str]:
    gate, tau = audit.attrs["gate"], audit.attrs["tau"]
    oracle, best = (round(float(audit[name].mean()), 12) for name in ("oracle_lda", "best_unsup"))
    fires = audit["fired"].values
    probe = f"the probe tells the OOD rows from the ID test rows (oracle LDA {oracle:.3f}, gate {gate:g})"
    if best < tau:
        smallest = int(
            min((audit["held_out"] & kind).sum("row").min() for kind in (audit.is_ood, ~audit.is_ood))
        )
        needed = math.ceil(math.log(_LEVEL) / math.log(gate)) if 0 < gate < 1 else 1
        if smallest < needed:
            how = "are inverted" if _inverted(audit) else "have collapsed"
            return "undetermined", (
                f"the detectors {how} (best AUROC {best:.3f}, tau {tau:g}), but with {smallest} "
                f"held-out rows not even a perfect probe would show an AUROC of {gate:g} at 95 %; it takes "
                f"{needed} of ID and of OOD, which is {2 * needed} test rows of each"
            )
    if fires.any() and not fires.all():
        return "undetermined", (
            f"the rule fires on {int(fires.sum())} of {fires.size} seeds (mean oracle LDA {oracle:.3f}, gate "
            f"{gate:g}; mean best detector {best:.3f}, tau {tau:g}), so the split lies at the thresholds"
        )
    if oracle >= gate and best < tau:
        how = (
            "ranks the OOD rows as more in-distribution than the ID test rows"
            if _inverted(audit)
            else "hardly tells them apart"
        )
        return "fires", f"{probe}, but the best unsupervised detector {how} (AUROC {best:.3f}, tau {tau:g})"
    if best >= tau:
        return "not shown", (
            f"the best unsupervised detector sees the OOD rows (AUROC {best:.3f}, tau {tau:g})"
        )
    return "not shown", (
        f"the detectors miss the OOD rows (best AUROC {best:.3f}, tau {tau:g}), but the probe does not tell "
        f"them apart either (oracle LDA {oracle:.3f}, gate {gate:g}), as with a class that is hard and not leaked"
    )


def _membership(audit: xr.Dataset) -> list[str]:
    """Say whether the designated class is in the fit set, and what leaving it out changes."""
    facts = audit.attrs
    if facts["n_designated"] < 0:
        return [
            "Whether the OOD class is in the fit set is not known: that takes the labels of the fit rows and the "
            "name of the designated class."
        ]
    if facts["n_designated"] == 0:
        return [f"No fit row carries the designated class ({facts['ood_class']})."]
    change = float(audit["contrast"].mean())
    return [
        *([_leaked(audit)] if headline(audit) == facts["verdict"] else []),
        f"Without these rows the best detector reads {float(audit['best_unsup_excluded'].mean()):.3f} instead "
        f"of {float(audit['best_unsup'].mean()):.3f} (exclusion contrast {change:+.3f}).",
    ]


def _notes(
    audit: xr.Dataset, absent: list[Any], held: list[Any], varies: NDArray[np.bool_], tests: NDArray[Any]
) -> list[str]:
    facts = audit.attrs
    notes = []
    if absent:
        some = ", ".join(map(repr, held[:_MOST_CLASSES])) + (", ..." if len(held) > _MOST_CLASSES else "")
        notes.append(
            f"fit_labels lack {', '.join(map(repr, absent))}, which ood_class names; their {len(held):,} classes are {some}."
        )
    if facts["n_constant"]:
        constant = np.flatnonzero(~varies)
        moving = int(np.count_nonzero(np.ptp(tests[:, constant], axis=0) > 0))
        notes.append(
            f"{constant.size:,} of {varies.size:,} features are constant in the fit set (first: column "
            f"{int(constant[0])}) and are left out of the Mahalanobis detector; test rows vary in {moving:,} of "
            "them."
        )
    if facts["n_null"]:
        notes.append(f"{facts['n_null']:,} numerically null directions are left out at alpha 0.")
    if facts["n_fit"] <= facts["n_features"]:
        notes.append(
            f"The fit set has {facts['n_fit']:,} rows for {facts['n_features']:,} features: shrinkage alone "
            "makes its covariance invertible."
        )
    for key, words in (
        ("n_overlap_fit_id", "ID test rows are also fit rows"),
        ("n_overlap_fit_ood", "OOD rows are also fit rows"),
        ("n_overlap_id_ood", "OOD rows are also ID test rows"),
    ):
        if facts[key]:
            notes.append(f"{facts[key]:,} {words}.")
    return notes


class _Work:
    """How much of an audit is done, in multiplications."""

    def __init__(
        self, fit: tuple[int, ...], n_id: int, n_ood: int, n_seeds: int, progress: Progress | None
    ) -> None:
        n, size = fit
        tests = n_id + n_ood
        self._parts = {
            "statistics": 3 * n * size**2,
            "neighbours": 2 * tests * n * (size + 50),
            "probe": n_seeds * size**2 * (2 * tests + 20 * size) + n_ood * tests * size,
        }
        self._done = dict.fromkeys(self._parts, 0)
        self._progress = progress

    def part(self, name: str) -> Callable[[int, int], None]:
        """Return what to call while a part is worked on."""

        def report(done: int, total: int) -> None:
            self._done[name] = self._parts[name] * done // total
            if self._progress is not None:
                self._progress(sum(self._done.values()), sum(self._parts.values()))

        return report

    def finish(self) -> None:
        for name in self._parts:
            self.part(name)(1, 1)
