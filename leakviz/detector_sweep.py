"""The fingerprint under another detector: another shrinkage, covariance, or one detector alone."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from leakviz.battery import check_battery
from leakviz.errors import InputError
from leakviz.fingerprint import _counts, _mean_over_seeds, _members, _stops, groups
from leakviz.moments import Covariance
from leakviz.statistics import auroc, auroc_interval

Detector = Literal["max", "mahalanobis", "knn"]
DETECTORS: tuple[Detector, ...] = get_args(Detector)
LEDOIT_WOLF = "ledoit-wolf"


def use_detector(
    battery: xr.Dataset,
    *,
    alpha: float | Literal["ledoit-wolf"] = "ledoit-wolf",
    covariance: Covariance = "one-class",
    detector: Detector = "max",
) -> xr.Dataset:
    """Return the battery as it would be with another shrinkage, covariance or detector.

    Parameters
    ----------
    battery : xarray.Dataset
        A battery that knows ``maha_by_alpha`` over (setting, covariance, alpha,
        seed) and ``maha_ledoit_wolf`` over (setting, covariance, seed), as
        ``load_battery("computed")`` returns it.
    alpha : float or "ledoit-wolf", default "ledoit-wolf"
        Shrinkage of the Mahalanobis detector: one of ``battery.alpha``, or for
        every setting the alpha that Ledoit and Wolf's estimator chooses for its
        own fit set.
    covariance : {"one-class", "tied"}, default "one-class"
        Of the Mahalanobis detector.
    detector : {"max", "mahalanobis", "knn"}, default "max"
        What best_unsup is: the larger of Mahalanobis and kNN, per seed, as in
        the paper, or one of them alone.

    Returns
    -------
    xarray.Dataset
        A battery: ``maha`` and ``best_unsup`` (setting, seed) replaced, the
        rest as it was.

    Raises
    ------
    InputError
        If the battery lacks what this needs, or an option is unknown.

    Notes
    -----
    arXiv 2607.19393, section 5.1 (best_unsup) and section 8 (shrinkage).

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> battery = load_battery("computed")
    >>> whitened, euclidean = (use_detector(battery, alpha=alpha, detector="mahalanobis") for alpha in (0, 1))
    >>> bool((whitened.best_unsup == whitened.maha).all()), bool((whitened.maha == euclidean.maha).all())
    (True, False)
    """
    at = aurocs_by_alpha(battery, alphas=[alpha], covariance=covariance, detector=detector).isel(alpha=0)
    return battery.assign(
        {
            name: at[name].drop_vars("alpha").assign_attrs(battery[name].attrs)
            for name in ("maha", "best_unsup")
        }
    )


def aurocs_by_alpha(
    battery: xr.Dataset,
    *,
    alphas: Sequence[float | str],
    covariance: Covariance = "one-class",
    detector: Detector = "max",
) -> xr.Dataset:
    """Return the AUROCs that shrinkage moves, per seed, at several alphas.

    Parameters
    ----------
    battery, covariance, detector
        As for `use_detector`.
    alphas : sequence, length A
        Numbers among ``battery.alpha`` and "ledoit-wolf", in any order.

    Returns
    -------
    xarray.Dataset
        ``maha``, ``best_unsup`` : float (alpha, setting, seed); ``alpha`` is text.

    Raises
    ------
    InputError
        As `use_detector`.

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> at = aurocs_by_alpha(load_battery("computed"), alphas=["ledoit-wolf", 0.1])
    >>> at.alpha.values.tolist(), at.maha.dims
    (['ledoit-wolf', '0.1'], ('alpha', 'setting', 'seed'))
    """
    asked = list(alphas)
    maha = _mahalanobis(battery, asked, covariance)
    unsup = _best(maha, battery["knn"].transpose("setting", "seed").values, detector)
    dims = ("alpha", "setting", "seed")
    return xr.Dataset(
        {"maha": (dims, maha), "best_unsup": (dims, unsup)},
        {
            "alpha": [alpha_name(alpha) for alpha in asked],
            "setting": battery["setting"].values,
            "seed": battery["seed"].values,
        },
    )


def sweep_detector(
    battery: xr.Dataset,
    *,
    gates: ArrayLike,
    taus: ArrayLike,
    alphas: Sequence[float | str],
    covariance: Covariance = "one-class",
    detector: Detector = "max",
) -> xr.Dataset:
    """Answer, for every gate, tau and alpha at once, how the rule does on a battery.

    At each alpha the answer is that of `leakviz.sweep_rule` on `use_detector`.

    Parameters
    ----------
    battery : xarray.Dataset
        As for `use_detector`, or any subset of its settings.
    gates, taus : array-like of floats, shapes (G,) and (T,)
        In [0, 1], strictly increasing.
    alphas : sequence, length A
        Numbers among ``battery.alpha`` and "ledoit-wolf", in any order.
    covariance, detector
        As for `use_detector`.

    Returns
    -------
    xarray.Dataset
        Coordinates ``gate`` (G), ``tau`` (T), ``alpha`` (A, text: "0.01",
        "ledoit-wolf"), ``setting`` (S), ``regime`` (as in `leakviz.sweep_rule`).

        ``passes`` : bool (gate, setting)
            ``oracle_lda >= gate``.
        ``collapsed`` : bool (alpha, tau, setting)
            ``best_unsup < tau``. A setting fires where both hold.
        ``maha``, ``maha_low``, ``maha_high`` : float (alpha, setting)
            AUROC: mean over seeds, smallest and largest of the seeds.
        ``best_unsup``, ``best_unsup_low``, ``best_unsup_high`` : float (alpha, setting)
            The same for the best unsupervised AUROC.
        ``n`` : int (regime)
        ``collapsed_count`` : int (alpha, tau, regime)
            How many tau alone would flag.
        ``fired_count``, ``correct`` : int (gate, tau, alpha, regime)
        ``sensitivity``, ``specificity``, ``balanced_accuracy`` : float (gate, tau, alpha)
        ``auroc``, ``auroc_low``, ``auroc_high`` : float (gate, alpha)
            AUROC of the fingerprint score with its 95 % interval.
        ``auroc_ungated`` : float (alpha)

    Raises
    ------
    InputError
        As `use_detector`, and if gates or taus are no increasing numbers in [0, 1].

    Examples
    --------
    >>> from leakviz.battery import load_battery
    >>> battery = load_battery("computed")
    >>> sweep = sweep_detector(battery, gates=[0, 0.95], taus=[0.65, 1], alphas=["ledoit-wolf", 1])
    >>> bool((sweep.fired_count.sel(gate=0) == sweep.collapsed_count).all())
    True
    """
    check_battery(battery)
    gate, tau = _stops(gates, "gates"), _stops(taus, "taus")
    at = aurocs_by_alpha(battery, alphas=alphas, covariance=covariance, detector=detector)
    maha, unsup = at["maha"].values, at["best_unsup"].values
    maha_mean, unsup_mean = (values.mean(axis=2).round(12) for values in (maha, unsup))
    oracle = _mean_over_seeds(battery["oracle_lda"])
    members, names = _members(battery), groups(battery)
    leak, n = members[names.index("leak")], members.sum(axis=1)

    passes = oracle >= gate[:, np.newaxis]
    collapsed = unsup_mean[:, np.newaxis, :] < tau[:, np.newaxis]
    fired = np.stack([_counts(passes, at, members) for at in collapsed], axis=2)  # (gate, tau, alpha, group)
    alone = (collapsed[:, :, np.newaxis, :] & members).sum(axis=3)
    correct = np.where(np.array(names) == "leak", fired, n - fired)
    rate = np.divide(correct, n, out=np.full(correct.shape, np.nan), where=n > 0)
    sensitivity, specificity = (rate[..., names.index(name)] for name in ("leak", "clean"))
    area, low, high = _areas(passes, unsup_mean, leak)

    stop, each = ("gate", "tau", "alpha"), ("alpha", "setting")
    return xr.Dataset(
        {
            "passes": (("gate", "setting"), passes),
            "collapsed": (("alpha", "tau", "setting"), collapsed),
            "maha": (each, maha_mean),
            "maha_low": (each, maha.min(axis=2)),
            "maha_high": (each, maha.max(axis=2)),
            "best_unsup": (each, unsup_mean),
            "best_unsup_low": (each, unsup.min(axis=2)),
            "best_unsup_high": (each, unsup.max(axis=2)),
            "n": ("regime", n),
            "collapsed_count": (("alpha", "tau", "regime"), alone),
            "fired_count": ((*stop, "regime"), fired),
            "correct": ((*stop, "regime"), correct),
            "sensitivity": (stop, sensitivity),
            "specificity": (stop, specificity),
            "balanced_accuracy": (stop, (sensitivity + specificity) / 2),
            "auroc": (("gate", "alpha"), area),
            "auroc_low": (("gate", "alpha"), low),
            "auroc_high": (("gate", "alpha"), high),
            "auroc_ungated": ("alpha", np.array([auroc(1 - row, leak) for row in unsup_mean])),
        },
        {
            "gate": gate,
            "tau": tau,
            "alpha": at["alpha"].values,
            "setting": battery["setting"].values,
            "regime": list(names),
        },
        {"covariance": covariance, "detector": detector},
    )


def alpha_name(alpha: float | str) -> str:
    """Return an alpha as text: "ledoit-wolf", or its shortest decimal.

    Examples
    --------
    >>> alpha_name(0.00015), alpha_name(1), alpha_name("ledoit-wolf")
    ('0.00015', '1', 'ledoit-wolf')
    """
    return alpha if isinstance(alpha, str) else np.format_float_positional(float(alpha), trim="-")


def _mahalanobis(battery: xr.Dataset, alphas: list, covariance: str) -> NDArray[np.float64]:
    """Return the AUROC of the Mahalanobis detector, shape (alpha, setting, seed)."""
    for name in ("maha_by_alpha", "maha_ledoit_wolf"):
        if name not in battery:
            raise InputError(
                f"battery lacks {name!r}, so its shrinkage cannot be changed; load_battery('computed') has it"
            )
    known = battery["covariance"].values.tolist()
    if covariance not in known:
        raise InputError(f"covariance must be one of {', '.join(map(repr, known))}, got {covariance!r}")
    at_stops = battery["maha_by_alpha"].sel(covariance=covariance).transpose("alpha", "setting", "seed")
    at_chosen = battery["maha_ledoit_wolf"].sel(covariance=covariance).transpose("setting", "seed")
    stops = battery["alpha"].values
    values = np.empty((len(alphas), *at_chosen.shape))
    for place, alpha in enumerate(alphas):
        if alpha == LEDOIT_WOLF:
            values[place] = at_chosen
            continue
        found = np.flatnonzero(stops == alpha)
        if not found.size:
            raise InputError(
                f"alpha must be 'ledoit-wolf' or one of the battery's {stops.size} stops from {stops[0]:g} to "
                f"{stops[-1]:g}, got {alpha!r}; see battery.alpha"
            )
        values[place] = at_stops[int(found[0])]
    return values


def _best(maha: NDArray[np.float64], knn: NDArray[np.float64], detector: str) -> NDArray[np.float64]:
    if detector not in DETECTORS:
        raise InputError(f"detector must be one of {', '.join(map(repr, DETECTORS))}, got {detector!r}")
    if detector == "mahalanobis":
        return maha
    return np.maximum(maha, knn) if detector == "max" else np.broadcast_to(knn, maha.shape).copy()


def _areas(
    passes: NDArray[np.bool_], unsup: NDArray[np.float64], leak: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], ...]:
    """Return AUROC, low and high of the gated score, shape (gate, alpha); equal rows are scored once."""
    if not leak.size:
        return tuple(np.full((len(passes), len(unsup)), np.nan) for _ in range(3))
    scores = np.where(passes[:, np.newaxis, :], 1 - unsup, 0.0).reshape(-1, leak.size)
    distinct, which = np.unique(scores, axis=0, return_inverse=True)
    found = np.array([(auroc(row, leak), *auroc_interval(row, leak)) for row in distinct])
    area, low, high = found[which.ravel()].reshape(len(passes), len(unsup), 3).transpose(2, 0, 1)
    return area, low, high
