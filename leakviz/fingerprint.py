"""The leak fingerprint: decodable by a supervised probe, not detectable without labels."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.battery import check_battery
from leakviz.decimals import as_fraction_of_one
from leakviz.errors import InputError
from leakviz.statistics import auroc, auroc_interval, wilson_interval

GROUPS = ("leak", "clean-excl", "clean-novel far", "clean-novel near", "clean")
RETRAINED = "clean-retrained"


def groups(battery: xr.Dataset) -> tuple[str, ...]:
    """Return the groups of settings that answers are broken down by.

    Parameters
    ----------
    battery : xarray.Dataset
        As `leakviz.load_battery` returns it.

    Returns
    -------
    tuple of str
        `GROUPS`, and "clean-retrained" where there are such settings.

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> groups(load_battery("published"))
    ('leak', 'clean-excl', 'clean-novel far', 'clean-novel near', 'clean')
    """
    return (*GROUPS, RETRAINED) if (battery["regime"] == RETRAINED).any() else GROUPS


@dataclass(frozen=True)
class Rule:
    """The rule that calls a setting leaky: ``oracle_lda >= gate`` and ``best_unsup < tau``.

    Parameters
    ----------
    gate : float or decimal string, default 0.95
        Oracle gate: the least AUROC of the supervised probe, in [0, 1].
    tau : float or decimal string, default 0.65
        Cut below which the best unsupervised AUROC counts as collapsed, in [0, 1].

    Raises
    ------
    InputError
        If one of them is no decimal number in [0, 1].

    Notes
    -----
    Defaults and rule: arXiv 2607.19393, section 5.1.

    Examples
    --------
    >>> Rule(tau="0.7")
    Rule(gate=0.95, tau=0.7)
    """

    gate: float = 0.95
    tau: float = 0.65

    def __post_init__(self) -> None:
        """Check both numbers and keep them as floats."""
        for name in ("gate", "tau"):
            value = float(as_fraction_of_one(getattr(self, name), name=name))
            object.__setattr__(self, name, value)


def fired(battery: xr.Dataset, rule: Rule) -> xr.DataArray:
    """Tell which settings the rule calls leaky.

    Parameters
    ----------
    battery : xarray.Dataset
        As `leakviz.load_battery` returns it. Where variables have a dim
        ``seed``, the rule sees their means over seeds, rounded to 12 decimals
        (a mean of decimals is compared as a decimal).
    rule : Rule
        Gate and tau.

    Returns
    -------
    xarray.DataArray of bool, dims (setting,)
        True where ``oracle_lda >= gate`` and ``best_unsup < tau``.

    Raises
    ------
    InputError
        If the battery breaks the schema.

    Notes
    -----
    arXiv 2607.19393, section 5.1.

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> battery = load_battery("published")
    >>> leaks = battery.regime == "leak"
    >>> int(fired(battery, Rule()).where(leaks, False).sum())
    18
    """
    check_battery(battery)
    oracle, unsup = _means(battery)
    answer = (oracle >= rule.gate) & (unsup < rule.tau)
    coords = {name: c for name, c in battery.coords.items() if c.dims == ("setting",)}
    return xr.DataArray(answer, coords, ("setting",), name="fired")


def sweep_rule(battery: xr.Dataset, *, gates: ArrayLike, taus: ArrayLike) -> xr.Dataset:
    """Answer, for every gate and every tau at once, how the rule does on a battery.

    Parameters
    ----------
    battery : xarray.Dataset
        As `leakviz.load_battery` returns it, or any subset of its settings.
        Where variables have a dim ``seed``, their means over seeds are used
        (see `fired`).
    gates : array-like of floats or decimal strings, shape (G,)
        Oracle gates, in [0, 1], strictly increasing; `leakviz.decimals.stops`
        makes such grids.
    taus : array-like of floats or decimal strings, shape (T,)
        Cuts on best_unsup, likewise.

    Returns
    -------
    xarray.Dataset
        Coordinates ``gate`` (G), ``tau`` (T), ``setting`` (S), and ``regime``
        with the values "leak", "clean-excl", "clean-novel far",
        "clean-novel near" and "clean" (every clean setting), and
        "clean-retrained" where there are such settings. Variables:

        ``fired``, ``error`` : bool (gate, tau, setting)
            The decision, and whether it is wrong: a leak that does not fire or
            a clean setting that does.
        ``n`` : int (regime)
            How many settings.
        ``fired_count``, ``correct`` : int (gate, tau, regime)
            How many fire; how many are right (leaks that fire, clean ones that
            stay silent).
        ``rate``, ``low``, ``high`` : float (gate, tau, regime)
            ``correct / n`` with its Wilson 95 % interval; nan where n is 0.
        ``sensitivity``, ``specificity``, ``balanced_accuracy`` : float (gate, tau)
            ``rate`` of "leak", ``rate`` of "clean", and their mean.
        ``auroc``, ``auroc_low``, ``auroc_high`` : float (gate)
            AUROC, leak against clean, of the gated score (1 - best_unsup where
            oracle_lda >= gate, else 0), with its 95 % interval; nan without
            leaks or without clean settings.
        ``auroc_ungated`` : float
            The same for 1 - best_unsup alone.

    Raises
    ------
    InputError
        If the battery breaks the schema, or the stops are not strictly
        increasing decimals in [0, 1].

    Notes
    -----
    Rule, score and breakdown: arXiv 2607.19393, sections 5.1 to 5.3. The
    intervals treat settings as independent, which re-designations on a few
    backbones are not.

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> sweep = sweep_rule(load_battery("published"), gates=[0.95, 0.96], taus=[0.65, 0.8])
    >>> sweep.correct.sel(gate=0.95, tau=0.65).values.tolist()
    [18, 20, 8, 3, 31]
    >>> sweep.correct.sel(gate=0.96, tau=0.65).values.tolist()
    [18, 20, 8, 4, 32]
    """
    check_battery(battery)
    gate, tau = _stops(gates, "gates"), _stops(taus, "taus")
    oracle, unsup = _means(battery)
    members, names = _members(battery), groups(battery)
    leak = members[names.index("leak")]

    passes = oracle >= gate[:, np.newaxis]  # (gate, setting)
    collapsed = unsup < tau[:, np.newaxis]  # (tau, setting)
    fires = passes[:, np.newaxis, :] & collapsed  # (gate, tau, setting)

    n = members.sum(axis=1)
    fired_count = _counts(passes, collapsed, members)
    correct = np.where(np.array(names) == "leak", fired_count, n - fired_count)
    rate = np.divide(correct, n, out=np.full(correct.shape, np.nan), where=n > 0)
    low, high = wilson_interval(correct, n)
    sensitivity = rate[..., names.index("leak")]
    specificity = rate[..., names.index("clean")]

    scores = np.where(passes, 1 - unsup, 0.0)
    bounds = np.array([auroc_interval(row, leak) for row in scores])

    stop = ("gate", "tau")
    return xr.Dataset(
        {
            "fired": ((*stop, "setting"), fires),
            "error": ((*stop, "setting"), fires != leak),
            "n": ("regime", n),
            "fired_count": ((*stop, "regime"), fired_count),
            "correct": ((*stop, "regime"), correct),
            "rate": ((*stop, "regime"), rate),
            "low": ((*stop, "regime"), low),
            "high": ((*stop, "regime"), high),
            "sensitivity": (stop, sensitivity),
            "specificity": (stop, specificity),
            "balanced_accuracy": (stop, (sensitivity + specificity) / 2),
            "auroc": ("gate", np.array([auroc(row, leak) for row in scores])),
            "auroc_low": ("gate", bounds[:, 0]),
            "auroc_high": ("gate", bounds[:, 1]),
            "auroc_ungated": ((), auroc(1 - unsup, leak)),
        },
        {"gate": gate, "tau": tau, "setting": battery["setting"].values, "regime": list(names)},
        {name: battery.attrs[name] for name in ("title", "source") if name in battery.attrs},
    )


def score_battery(battery: xr.Dataset, rule: Rule) -> xr.Dataset:
    """Tell how the rule does on a battery.

    Parameters
    ----------
    battery : xarray.Dataset
        As `leakviz.load_battery` returns it, or any subset of its settings.
    rule : Rule
        Gate and tau.

    Returns
    -------
    xarray.Dataset
        What `sweep_rule` answers at this one stop: the same variables without
        the dims ``gate`` and ``tau``, which stay as scalar coordinates.

    Raises
    ------
    InputError
        If the battery breaks the schema.

    Notes
    -----
    arXiv 2607.19393, sections 5.2 and 5.3.

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> score = score_battery(load_battery("published"), Rule())
    >>> score.correct.values.tolist(), score.n.values.tolist()
    ([18, 20, 8, 3, 31], [20, 20, 8, 4, 32])
    >>> round(float(score.auroc), 4)
    0.9953
    """
    return sweep_rule(battery, gates=[rule.gate], taus=[rule.tau]).isel(gate=0, tau=0)


def contrast(battery: xr.Dataset) -> pd.DataFrame:
    """Compare each leaked setting with its partner, the same class excluded from the fit set.

    Nothing but fit-set membership differs within a pair, so a positive
    difference is the effect of the leak.

    Parameters
    ----------
    battery : xarray.Dataset
        As `leakviz.load_battery` returns it. With a dim ``seed``, means over
        seeds are used (see `fired`).

    Returns
    -------
    pandas.DataFrame
        One row per complete pair, in the order of the leaked settings; columns
        ``pair``, ``id_dataset``, ``backbone``, ``ood``, ``leaked`` and
        ``excluded`` (best_unsup of the two, AUROC), ``difference`` (excluded
        minus leaked), ``oracle_lda`` (of the leaked one); and, where the battery
        has settings retrained without the class, ``retrained`` (best_unsup, nan
        where it was not made). A pair whose clean-excl partner is not in the
        battery is left out.

    Raises
    ------
    InputError
        If the battery breaks the schema.

    Notes
    -----
    arXiv 2607.19393, section 5.2 (the matched contrast).

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> pairs = contrast(load_battery("published"))
    >>> len(pairs)
    20
    >>> print(f"{pairs.difference.min():.3f} to {pairs.difference.max():.3f}")
    0.217 to 0.739
    """
    check_battery(battery)
    oracle, unsup = _means(battery)
    names = ["pair", "id_dataset", "backbone", "ood"]
    table = pd.DataFrame({name: battery[name].values for name in [*names, "regime"]})
    table = table.assign(unsup=unsup, oracle_lda=oracle)
    table = table[table["pair"] != ""]
    leaked = table[table["regime"] == "leak"].rename(columns={"unsup": "leaked"})
    excluded = table[table["regime"] == "clean-excl"].rename(columns={"unsup": "excluded"})
    pairs = leaked.merge(excluded[["pair", "excluded"]], on="pair", how="inner")
    pairs["difference"] = pairs["excluded"] - pairs["leaked"]
    pairs = pairs[[*names, "leaked", "excluded", "difference", "oracle_lda"]]
    retrained = table[table["regime"] == RETRAINED].rename(columns={"unsup": "retrained"})
    return pairs if retrained.empty else pairs.merge(retrained[["pair", "retrained"]], on="pair", how="left")


def _means(battery: xr.Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return oracle_lda and best_unsup over settings, averaged over seeds if there are any."""
    oracle, unsup = (_mean_over_seeds(battery[name]) for name in ("oracle_lda", "best_unsup"))
    return oracle, unsup


def _mean_over_seeds(variable: xr.DataArray) -> NDArray[np.float64]:
    values = variable.astype(np.float64)
    if "seed" not in values.dims:
        return values.values
    # On paper the mean of 0.64, 0.65 and 0.66 is 0.65, in floats it may be 1e-16 beside it: a cut at 0.65
    # must not see that.
    return values.mean("seed").round(12).values


def _members(battery: xr.Dataset) -> NDArray[np.bool_]:
    """Return which settings (columns) belong to which of `groups` (rows)."""
    regime, distance = battery["regime"].values, battery["distance"].values
    leak, novel = regime == "leak", regime == "clean-novel"
    rows = [leak, regime == "clean-excl", novel & (distance == "far"), novel & (distance == "near"), ~leak]
    if RETRAINED in groups(battery):
        rows.append(regime == RETRAINED)
    return np.array(rows, dtype=bool)


def _counts(
    passes: NDArray[np.bool_], collapsed: NDArray[np.bool_], members: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count the settings that pass the gate, collapse and belong, as (gate, tau, group)."""
    # A matrix product per group in floats: exact for counts, and no array of gate x tau x setting numbers.
    counts = [(passes & group).astype(np.float64) @ collapsed.T.astype(np.float64) for group in members]
    return np.stack(counts, axis=-1).astype(np.int64)


def _stops(values: ArrayLike, name: str) -> NDArray[np.float64]:
    given = np.asarray(values, dtype=object)  # object: strings stay strings, floats stay floats
    if given.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got the shape {given.shape}")
    decimals = [float(as_fraction_of_one(value, name=f"{name}[{i}]")) for i, value in enumerate(given)]
    array = np.array(decimals, dtype=np.float64)
    if array.size == 0:
        raise InputError(f"{name} is empty; give at least one stop")
    falls = np.diff(array) <= 0
    if falls.any():
        row = int(np.flatnonzero(falls)[0]) + 1
        raise InputError(
            f"{name} must be strictly increasing; {int(falls.sum())} of {array.size} stops are not, "
            f"first: {name}[{row}] = {array[row]:g}; sort them and drop repeats"
        )
    return array
