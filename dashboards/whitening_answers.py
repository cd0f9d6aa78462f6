"""Everything that the whitening page shows, for every stop of alpha, as one table.

The core answers; this module puts the answers into rows and words of fixed shape, so that the
browser only looks them up (see `dashboards.live`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import leakviz
from dashboards import batteries, names, theme
from dashboards.figures.whitening import BINS, drawn
from dashboards.shelf import Audit
from leakviz.battery import fit_set, rows_of
from leakviz.budget import budget_intervals
from leakviz.moments import Covariance, FitStatistics
from leakviz.whitening import ALPHAS, whitening_answers


@dataclass(frozen=True, eq=False)
class Case:
    """One fit set, and the rows that are told apart with it.

    Attributes
    ----------
    regime : str
        "" where nobody knows; "leak" where a class that is called OOD is in the fit set, "clean-excl" where it was left
        out, "clean-novel" where the OOD rows are of another source.
    ood_name, fit_name, source : str
        On the screen, plain text (a user's file may have named them: escape it).
    note : str
        Which rows the ID test rows are, one or two sentences.
    fit : FitStatistics
    id_test, ood_test : numpy.ndarray, shapes (n, D) and (m, D)
    covariance : {"one-class", "tied"}
    ledoit_wolf : float
        Ledoit and Wolf's alpha of this fit set.
    """

    regime: str
    ood_name: str
    fit_name: str
    source: str
    note: str
    fit: FitStatistics = field(repr=False)
    id_test: NDArray[Any] = field(repr=False)
    ood_test: NDArray[Any] = field(repr=False)
    covariance: Covariance
    ledoit_wolf: float


def stops(ledoit_wolf: float) -> NDArray[np.float64]:
    """Return the stops of alpha: those of every page, and Ledoit and Wolf's own.

    Examples
    --------
    >>> stops(0.12).size - ALPHAS.size, stops(0.1).size - ALPHAS.size
    (1, 0)
    """
    return np.union1d(ALPHAS, ledoit_wolf)


def number(alpha: float) -> str:
    """Write an alpha in plain decimals, three digits at most.

    Examples
    --------
    >>> number(0.0), number(1e-5), number(0.00052218), number(0.3)
    ('0', '0.00001', '0.000522', '0.3')
    """
    if alpha == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(alpha)))
    return f"{alpha:.{places}f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """Write a share in per cent, with two digits where it is small.

    Examples
    --------
    >>> percent(0.9234), percent(0.0812), percent(0.0012), percent(0.0000001)
    ('92.3\\xa0%', '8.1\\xa0%', '0.12\\xa0%', '<\\xa00.01\\xa0%')
    """
    if share >= 0.9995 and share < 1:
        return ">\u00a099.9\u00a0%"
    if share == 0:
        return "0\u00a0%"
    if share >= 0.01:
        return f"{100 * share:.1f}\u00a0%"
    return f"{100 * share:.2f}\u00a0%" if share >= 0.00005 else "<\u00a00.01\u00a0%"


def points(share: float) -> str:
    """Write a difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(0.081), points(-0.002)
    ('+8.1', '−0.2')
    """
    text = f"{100 * share:+.1f}".replace("-", "−")
    return "0.0" if text in ("+0.0", "−0.0") else text


def condition(value: float) -> str:
    """Write a condition number with three digits.

    Examples
    --------
    >>> condition(1.0), condition(42.37), condition(1708.2), condition(2.34e13)
    ('1', '42.4', '1,710', '2.3 × 10^13')
    """
    if value >= 1e7:
        power = math.floor(math.log10(value))
        return f"{value / 10**power:.1f} × 10^{power}"
    text = f"{float(f'{value:.3g}'):,.1f}"
    return text.removesuffix(".0")


def page_answers(case: Case) -> xr.Dataset:
    """Return everything that the page shows of one case, for every stop of alpha.

    Parameters
    ----------
    case : Case

    Returns
    -------
    xarray.Dataset
        `figures.whitening.drawn`, the texts, and ``value``: the alphas of the stops. Attribute
        ``own`` and ``best``: the stops of Ledoit and Wolf's and of the best alpha.
    """
    alphas = stops(case.ledoit_wolf)
    asked: dict[str, Any] = {"alphas": alphas, "covariance": case.covariance, "singular": "nan"}
    spectrum, sweep, counts = whitening_answers(case.fit, case.id_test, case.ood_test, n_bins=BINS, **asked)
    sure = budget_intervals(case.fit, case.id_test, case.ood_test, **asked)
    own, best = (int(np.flatnonzero(alphas == a)[0]) for a in (case.ledoit_wolf, sweep["best_alpha"].item()))
    table = drawn(spectrum, sweep, counts, marks={"ledoit_wolf": own, "best": best})
    table = table.assign(
        {
            **_numbers(spectrum, sweep, sure, own, best),
            **_sentence(spectrum, sweep),
            **_standing(case, spectrum, sweep),
            "half_says": ((), "Dotted: 0.5. " if float(table["area_start"]) <= 0.5 else ""),
            "value": ("alpha", alphas),
            "color": ((), theme.REGIME_COLOR.get(case.regime, theme.UNKNOWN_COLOR)),
        }
    )
    return table.assign_attrs(own=own, best=best)


def _texts(write: Callable[..., str], *values: xr.DataArray) -> tuple[tuple[str, ...], Any]:
    """Write one text for every entry of some numbers over alpha, or over nothing."""
    dims = tuple(map(str, values[0].dims))
    rows = zip(*(v.values.ravel().tolist() for v in values), strict=True)
    return dims, np.array([write(*row) for row in rows], dtype=object).reshape(values[0].shape)


def _three(value: float) -> str:
    return f"{value:.3f}"


def _interval(write: Callable[[float], str], low: xr.DataArray, high: xr.DataArray) -> Any:
    def both(a: float, b: float) -> str:
        if math.isnan(a):
            return ""
        return write(a) if write(a) == write(b) else f"{write(a)} to {write(b)}"

    return _texts(both, low, high)


def _known(write: Callable[[float], str], value: xr.DataArray) -> Any:
    return _texts(lambda v: "no answer" if math.isnan(v) else write(v), value)


def _numbers(
    spectrum: xr.Dataset, sweep: xr.Dataset, sure: xr.Dataset, own: int, best: int
) -> dict[str, Any]:
    """Return the read-outs with their intervals."""
    texts: dict[str, Any] = {
        "auroc_says": _known(_three, sweep["auroc"]),
        "auroc_interval": _interval(_three, sweep["low"], sweep["high"]),
        "agnostic_says": _known(_three, sweep["sign_agnostic"]),
    }
    for name, write in (
        ("top_signal_mass", percent),
        ("bottom_signal_mass", percent),
        ("bottom_budget", percent),
        ("excess", points),
        ("condition_number", condition),
    ):
        texts[f"{name}_says"] = _known(write, spectrum[name])
        texts[f"{name}_interval"] = _interval(write, sure[f"{name}_low"], sure[f"{name}_high"])
    texts["condition_number_interval"] = _texts(
        lambda value, told: told or ("" if math.isnan(value) else "too few rows"),
        spectrum["condition_number"],
        spectrum["condition_number"].copy(data=texts["condition_number_interval"][1]),
    )
    for name, at in (("ledoit_wolf", own), ("best", best)):
        here = sweep.isel(alpha=at)
        texts[f"{name}_says"] = _texts(_three, here["auroc"])
        texts[f"{name}_interval"] = _interval(_three, here["low"], here["high"])
        texts[f"{name}_at"] = _texts(number, here["alpha"])
    return texts


def _sentence(spectrum: xr.Dataset, sweep: xr.Dataset) -> dict[str, Any]:
    """Return the parts of the sentence above the page; those with odd numbers are stressed."""
    best = sweep["best_auroc"].item()
    signal = percent(spectrum["bottom_signal_mass"].item())
    n_fit, rank, size = spectrum.attrs["n_fit"], spectrum.attrs["rank"], spectrum.sizes["direction"]
    refused = (
        f" there is no answer: {n_fit:,} fit rows give a covariance of rank {min(rank, n_fit - 1):,}, "
        f"too few for {size:,} directions. Shrink, or take more rows."
    )

    def write(alpha: float, share: float, auroc: float) -> list[str]:
        if math.isnan(share):
            return ["At alpha ", number(alpha), refused, *[""] * 6]
        cost = ", the best." if best - auroc < 0.0005 else f", {best - auroc:.3f} below the best."
        return [
            "At alpha ",
            number(alpha),
            " the tenth of directions with least variance takes ",
            percent(share),
            " of the budget for ",
            signal,
            " of the signal; AUROC ",
            _three(auroc),
            cost,
        ]

    values = (sweep["alpha"].values, spectrum["bottom_budget"].values, sweep["auroc"].values)
    parts = np.array([write(*row) for row in zip(*values, strict=True)], dtype=object)
    return {f"say_{i}": ("alpha", parts[:, i]) for i in range(parts.shape[1])}


def _standing(case: Case, spectrum: xr.Dataset, sweep: xr.Dataset) -> dict[str, Any]:
    """Return the sentences that alpha does not change."""
    size, tenth = spectrum.sizes["direction"], spectrum.attrs["n_tenth"]
    null = int((spectrum["eigenvalue"].values < 1e-6 * spectrum["eigenvalue"].values[0]).sum())
    parts = [f"{size:,} directions, {tenth:,} in a tenth"]
    constant = spectrum.attrs["n_constant"]
    if constant:
        parts.append(f"{constant:,} constant feature{'s' if constant > 1 else ''} left out")
    if null and np.isfinite(spectrum["condition_number"].values[0]):
        many = "direction has" if null == 1 else "directions have"
        parts.append(f"{null:,} {many} an eigenvalue below a millionth of the largest: left out at alpha 0")
    told = (
        "The class is in the fit set: below 0.5, its rows look more in-distribution than the ID test rows. "
    )
    return {
        "directions_say": ((), "; ".join(parts) + "."),
        "ood_says": ((), case.ood_name),
        "fit_says": ((), case.fit_name),
        "source_says": ((), case.source),
        "note_says": ((), case.note),
        "rows_say": ((), f"{sweep.attrs['n_id']:,} ID and {sweep.attrs['n_ood']:,} OOD test rows"),
        "regime_says": ((), theme.REGIME_LABEL.get(case.regime, "whether it leaked is not known")),
        "leak_says": ((), told if case.regime == "leak" else ""),
    }


# ---- which cases there are


ALL, WITHOUT, CHOSEN = "all", "without", "chosen"
ROWS = ("150", "300", "600", "2000", "all")
SIZES = {1: "one class", 2: "two classes", 3: "three classes", 0: "other sources"}


@lru_cache(maxsize=8)
def targets(backbone: str) -> dict[str, dict[str, str]]:
    """Return what can be called OOD under a backbone: group, then name in links to name on the screen."""
    battery = batteries.computed().dataset
    here = battery.isel(
        setting=(battery["backbone"].values == backbone)
        & np.isin(battery["regime"].values, ["leak", "clean-novel"])
    )
    found: dict[str, dict[str, str]] = {title: {} for title in SIZES.values()}
    for ood, size, data in zip(
        here["ood"].values, here["size"].values, here["id_dataset"].values, strict=True
    ):
        title = SIZES.get(int(size), f"{size} classes")
        found.setdefault(title, {})[str(ood)] = names.ood_name(str(data), str(ood))
    return {title: options for title, options in found.items() if options}


def classes(backbone: str) -> tuple[str, ...]:
    """Return the classes of a backbone, as links name them."""
    return batteries.backbone(backbone).classes


def members(backbone: str, ood: str, fit: str, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the classes in a fit set.

    Parameters
    ----------
    backbone, ood : str
    fit : {"all", "without", "chosen"}
    chosen : sequence of str
        The classes, where they are chosen one by one.

    Raises
    ------
    leakviz.InputError
        If no class is left that could be ID.
    """
    every, called_ood = classes(backbone), ood.split("+")
    kept = {ALL: every, WITHOUT: [c for c in every if c not in called_ood], CHOSEN: chosen}[fit]
    in_order = tuple(c for c in every if c in kept)
    if not any(c not in called_ood for c in in_order):
        raise leakviz.InputError("the fit set needs a class that is not called OOD; tick one more")
    return in_order


@lru_cache(maxsize=48)
def battery_case(
    backbone: str, ood: str, members: tuple[str, ...], rows: str, covariance: Covariance
) -> Case:
    """Return a case of the computed battery, once per process.

    Parameters
    ----------
    backbone, ood : str
        As the battery's coordinates name them.
    members : tuple of str
        Classes in the fit set.
    rows : str
        One of `ROWS`.
    covariance : {"one-class", "tied"}
    """
    of = batteries.backbone(backbone)
    without = [c for c in of.classes if c not in members]
    fit = fit_set(of, without=without, rows=None if rows == "all" else int(rows))
    own, other = rows_of(of, ood)
    own = own[np.isin(of.kinds[own], [of.classes.index(c) for c in members])]
    if ood in of.novel:
        regime = "clean-novel"
    else:
        regime = "leak" if set(ood.split("+")) & set(members) else "clean-excl"
    inside = f"all {len(members)} classes" if not without else f"{len(members)} of {len(of.classes)} classes"
    return Case(
        regime=regime,
        ood_name=names.ood_name(of.id_dataset, ood),
        fit_name=f"{inside}, {fit.count:,} rows",
        source="computed here, see data/battery/README.md",
        note="ID test rows are of its classes that are not called OOD. All test rows count here; the fingerprint "
        "page gives means over three halves of them, so its values differ a little.",
        fit=fit,
        id_test=of.rows[own],
        ood_test=of.rows[other],
        covariance=covariance,
        ledoit_wolf=fit.ledoit_wolf(covariance=covariance),
    )


@lru_cache(maxsize=48)
def battery_answers(
    backbone: str, ood: str, members: tuple[str, ...], rows: str, covariance: Covariance
) -> xr.Dataset:
    """Return the table of `battery_case`, once per process: sessions share it."""
    return page_answers(battery_case(backbone, ood, members, rows, covariance))


def audit_case(audit: Audit, fit: str, covariance: Covariance) -> Case:
    """Return the case of a user's embeddings.

    Parameters
    ----------
    audit : Audit
    fit : {"all", "without"}
    covariance : {"one-class", "tied"}
    """
    without = fit == WITHOUT and audit.without is not None
    statistics = audit.without if without and audit.without is not None else audit.fit
    known = audit.without is not None
    return Case(
        regime="clean-excl" if without else "leak" if known else "",
        ood_name=audit.ood_name or "the designated OOD rows",
        fit_name=f"as you gave it{', without the class' if without else ''}, {statistics.count:,} rows",
        source=f"your file {audit.title}",
        note="All test rows count here; an audit gives means over halves of them, so its values differ a little.",
        fit=statistics,
        id_test=audit.id_test,
        ood_test=audit.ood_test,
        covariance=covariance,
        ledoit_wolf=statistics.ledoit_wolf(covariance=covariance),
    )
