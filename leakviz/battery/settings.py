"""From features to settings: which class is called OOD, what the fit set holds, and what every detector says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from leakviz.detectors import (
    class_distances,
    decompose,
    detector_auroc,
    kth_distance,
    oracle_lda,
    probe_split,
)
from leakviz.moments import COVARIANCES, ClassStatistics, class_statistics
from leakviz.neighbourhood import neighbourhood_leakage
from leakviz.signature import signature_blocks
from leakviz.whitening import ALPHAS

SEEDS = (0, 1, 2)
"""Of the probe's split."""

K = 50
"""Which neighbour the kNN detector and the neighbourhood index look at."""

SAMPLE_SIZES = (150, 300, 600, 2000)
"""Sizes of the stratified samples of the fit set; the largest is what the slow detectors are fitted on."""

GROUP_SIZES = (1, 2, 3)
"""How many classes are called OOD together."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Features:
    """Features of one backbone: fit set, test rows, novel sources.

    Parameters
    ----------
    backbone, id_dataset : str
    classes : tuple of str, length C
        Names; labels are indices into them.
    fit : ndarray, shape (N, D)
    fit_labels : ndarray of int, shape (N,)
    test : ndarray, shape (T, D)
        Equally many rows of every class.
    test_labels : ndarray of int, shape (T,)
    novel : dict of str to ndarray, shapes (., D)
        Rows of each novel source.
    distance : dict of str to {"near", "far"}
        Of each novel source.
    """

    backbone: str
    id_dataset: str
    classes: tuple[str, ...]
    fit: NDArray[Any] = field(repr=False)
    fit_labels: NDArray[np.int64] = field(repr=False)
    test: NDArray[Any] = field(repr=False)
    test_labels: NDArray[np.int64] = field(repr=False)
    novel: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    distance: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> NDArray[Any]:
        """Test rows, then the rows of every novel source."""
        return np.concatenate([self.test, *self.novel.values()])

    @property
    def kinds(self) -> NDArray[np.int64]:
        """What each of `rows` is: its class, or C, C + 1, ... for the novel sources in their order."""
        sizes = [len(rows) for rows in self.novel.values()]
        return np.concatenate([self.test_labels, len(self.classes) + np.repeat(np.arange(len(sizes)), sizes)])


@dataclass(frozen=True)
class Target:
    """One setting of a fit set: what is called OOD, and why.

    Parameters
    ----------
    setting : str
        Its name.
    regime, distance, ood, pair : str
        As the schema has them.
    kinds : tuple of int
        Which kinds of rows are OOD (`Features.kinds`); ID are all other classes.
    """

    setting: str
    regime: str
    distance: str
    ood: str
    pair: str
    kinds: tuple[int, ...]


def ood_groups(n_classes: int, *, sizes: Sequence[int] = GROUP_SIZES) -> list[tuple[int, ...]]:
    """Return which classes are called OOD together: each alone, then runs of two and of three.

    A run is c, c + 1 (and c + 2), counted round: fixed before anything is scored.

    Examples
    --------
    >>> ood_groups(4)[:6]
    [(0,), (1,), (2,), (3,), (0, 1), (1, 2)]
    >>> len(ood_groups(10))
    30
    """
    return [
        tuple(sorted((first + step) % n_classes for step in range(size)))
        for size in sizes
        for first in range(n_classes)
    ]


def group_name(group: Sequence[int], classes: Sequence[str]) -> str:
    """Return the name of a group of classes.

    Examples
    --------
    >>> group_name((0, 2), ["coat", "bag", "shoe"])
    'coat+shoe'
    """
    return "+".join(classes[label] for label in group)


def leak_targets(features: Features, groups: Sequence[tuple[int, ...]]) -> list[Target]:
    """Return the settings of the full fit set: every group leaked, every source novel."""
    leaks = []
    for group in groups:
        ood = group_name(group, features.classes)
        pair = f"{features.backbone}_{ood}"
        leaks.append(Target(f"P_{pair}", "leak", "", ood, pair, group))
    novel = [
        Target(
            f"N_novel_{features.backbone}_{name}",
            "clean-novel",
            features.distance[name],
            name,
            "",
            (len(features.classes) + place,),
        )
        for place, name in enumerate(features.novel)
    ]
    return [*leaks, *novel]


def excluded_target(features: Features, group: tuple[int, ...], *, regime: str = "clean-excl") -> Target:
    """Return the setting of a fit set without a group: the partner of its leak."""
    ood = group_name(group, features.classes)
    pair = f"{features.backbone}_{ood}"
    prefix = {"clean-excl": "N_excl", "clean-retrained": "N_retrain"}[regime]
    return Target(f"{prefix}_{pair}", regime, "", ood, pair, group)


def fit_sample(labels: NDArray[np.int64], size: int = SAMPLE_SIZES[-1]) -> NDArray[np.int64]:
    """Return rows of a fit set that are stratified however many of them are taken from the front.

    Parameters
    ----------
    labels : ndarray of int, shape (N,)
    size : int, default 2000

    Returns
    -------
    ndarray of int
        The first row of every class, the second of every class, and so on.

    Examples
    --------
    >>> fit_sample(np.array([0, 0, 1, 1, 1]), 4).tolist()
    [0, 2, 1, 3]
    """
    place = np.empty(labels.size, dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        place[members] = np.arange(members.size)
    return np.lexsort((labels, place))[:size]


def halves(features: Features, seeds: Sequence[int] = SEEDS) -> NDArray[np.bool_]:
    """Return which rows each seed holds out for scoring, shape (seed, row): half of every kind.

    One split per seed for all settings of a backbone: so all values of a seed
    speak of the same rows, and for balanced classes the leak AUROCs of any one
    score average exactly 0.5.
    """
    return np.stack([probe_split(features.kinds, seed=seed) for seed in seeds])


class Scorer:
    """Everything about one backbone that its settings share, so that each costs little.

    Parameters
    ----------
    features : Features
    seeds : sequence of int
    k : int
    progress : callable
        Called with a description as each step ends.

    Attributes
    ----------
    statistics : ClassStatistics
        Of the fit set.
    held_out : ndarray of bool, shape (seed, row)
    """

    def __init__(
        self,
        features: Features,
        *,
        seeds: Sequence[int] = SEEDS,
        k: int = K,
        progress: Callable[[str], object] = lambda done: None,
    ) -> None:
        self.features, self.k, self.progress = features, k, progress
        self.rows, self.kinds = features.rows, features.kinds
        self.statistics: ClassStatistics = class_statistics(features.fit, features.fit_labels)
        self.held_out = halves(features, seeds)
        self._near = class_distances(features.fit, features.fit_labels, self.rows, k=k)
        self._knn: dict[tuple[int, ...], Array] = {}
        self._oracles: dict[tuple[int, ...], Array] = {}
        self._overlaps: dict[tuple[int, ...], float] = {}
        progress("neighbours")

    def knn(self, without: tuple[int, ...]) -> Array:
        """Return minus the distance of every row to its k-th neighbour in a fit set."""
        if without not in self._knn:
            self._knn[without] = -kth_distance(self._near, members=self._members(without), k=self.k)
        return self._knn[without]

    def score(
        self,
        without: tuple[int, ...],
        targets: Sequence[Target],
        *,
        extra: Mapping[str, Array] | None = None,
    ) -> list[dict[str, Any]]:
        """Return one record per setting of a fit set: its coordinates, and every variable of the battery.

        `extra` holds scores of further detectors, (..., row), that are to be read alike.
        """
        # Test rows come first: where no novel source is scored, its rows need not be either.
        novel = any(kind >= len(self.features.classes) for target in targets for kind in target.kinds)
        rows = self.rows if novel else self.features.test
        fit = self.statistics.union(self.statistics.labels[self._members(without)])
        spectra = [decompose(fit, covariance=covariance) for covariance in COVARIANCES]
        chosen = [fit.ledoit_wolf(covariance=covariance) for covariance in COVARIANCES]
        by_alpha = np.stack([spectrum.score(rows, ALPHAS) for spectrum in spectra])
        at_chosen = np.stack(
            [spectrum.score(rows, [alpha])[0] for spectrum, alpha in zip(spectra, chosen, strict=True)]
        )
        scores = {
            "maha": at_chosen[0],
            "knn": self.knn(without)[: len(rows)],
            **self._off_the_shelf(without, rows),
            **(extra or {}),
        }
        self.progress("fit set")
        return [self._record(target, scores, by_alpha, at_chosen, chosen) for target in targets]

    def oracle(self, kinds: tuple[int, ...]) -> Array:
        """Return the AUROC of the supervised probe for each seed."""
        if kinds not in self._oracles:
            own, other = self._id_rows(kinds), np.flatnonzero(np.isin(self.kinds, kinds))
            both = np.concatenate([own, other])
            self._oracles[kinds] = np.array(
                [
                    oracle_lda(self.rows[own], self.rows[other], held_out=half[both]).auroc
                    for half in self.held_out
                ]
            )
        return self._oracles[kinds]

    def overlap(self, kinds: tuple[int, ...]) -> float:
        """Return the neighbourhood index of all test rows; it knows no fit set."""
        if kinds not in self._overlaps:
            other = np.isin(self.kinds, kinds)
            self._overlaps[kinds] = neighbourhood_leakage(
                self.rows[self._id_rows(kinds)], self.rows[other], k=self.k
            )
        return self._overlaps[kinds]

    def aurocs(self, score: Array, kinds: tuple[int, ...]) -> Array:
        """Return the AUROC of a score on the held-out rows of each seed; `score` is (..., row), all or the first."""
        known = self.kinds[: score.shape[-1]]
        other = np.isin(known, kinds)
        own = (known < len(self.features.classes)) & ~other
        parts = [(own & half[: known.size], other & half[: known.size]) for half in self.held_out]
        flat = score.reshape(-1, known.size)
        values = [[detector_auroc(line[one], line[two]) for one, two in parts] for line in flat]
        return np.array(values).reshape(*score.shape[:-1], len(self.held_out))

    def _record(
        self,
        target: Target,
        scores: dict[str, Array],
        by_alpha: Array,
        at_chosen: Array,
        chosen: list[float],
    ) -> dict[str, Any]:
        columns = {name: self.aurocs(score, target.kinds) for name, score in scores.items()}
        return {
            "setting": target.setting,
            "backbone": self.features.backbone,
            "id_dataset": self.features.id_dataset,
            "regime": target.regime,
            "distance": target.distance,
            "ood": target.ood,
            "pair": target.pair,
            "size": sum(kind < len(self.features.classes) for kind in target.kinds),
            "oracle_lda": self.oracle(target.kinds),
            **columns,
            "best_unsup": np.maximum(columns["maha"], columns["knn"]),
            "maha_by_alpha": self.aurocs(by_alpha, target.kinds).astype(np.float32),
            "maha_ledoit_wolf": self.aurocs(at_chosen, target.kinds),  # at the fit set's own alpha
            "ledoit_wolf": np.array(chosen),
            "neighbourhood_leakage": self.overlap(target.kinds),
        }

    def _off_the_shelf(self, without: tuple[int, ...], rows: NDArray[Any]) -> dict[str, Array]:
        """Score with three detectors of scikit-learn at their defaults, fitted on the stratified sample."""
        labels = self.features.fit_labels
        sample = fit_sample(labels)
        sample = sample[~np.isin(labels[sample], without)]
        detectors = {
            "isolation_forest": IsolationForest(random_state=0),
            "one_class_svm": OneClassSVM(),
            "lof": LocalOutlierFactor(novelty=True),
        }
        fit = self.features.fit[sample]
        return {
            name: make_pipeline(StandardScaler(), detector).fit(fit).score_samples(rows)
            for name, detector in detectors.items()
        }

    def _members(self, without: tuple[int, ...]) -> NDArray[np.int64]:
        return np.flatnonzero(~np.isin(self.statistics.labels, without))

    def _id_rows(self, kinds: tuple[int, ...]) -> NDArray[np.int64]:
        is_class = self.kinds < len(self.features.classes)
        return np.flatnonzero(is_class & ~np.isin(self.kinds, kinds))


def as_battery(records: Sequence[dict[str, Any]], *, space: str, seeds: Sequence[int] = SEEDS) -> xr.Dataset:
    """Return the records of `Scorer.score` as one battery.

    Parameters
    ----------
    records : sequence of dict
    space : {"embedding", "signature"}
    seeds : sequence of int

    Returns
    -------
    xarray.Dataset
        After the schema of `leakviz.load_battery`, not yet checked.
    """
    texts = ("backbone", "id_dataset", "regime", "distance", "ood", "pair")
    dims = {
        "maha_by_alpha": ("setting", "covariance", "alpha", "seed"),
        "maha_ledoit_wolf": ("setting", "covariance", "seed"),
        "ledoit_wolf": ("setting", "covariance"),
        "neighbourhood_leakage": ("setting",),
        "maha_by_block": ("setting", "block", "seed"),
    }
    names = [name for name in records[0] if name not in {"setting", "size", "convention", *texts}]
    coords: dict[str, Any] = {
        "setting": np.array([record["setting"] for record in records]),
        **{name: ("setting", np.array([record[name] for record in records])) for name in texts},
        "space": ("setting", np.full(len(records), space)),
        "size": ("setting", np.array([record["size"] for record in records])),
        "seed": np.array(seeds),
        "covariance": np.array(COVARIANCES),
        "alpha": ALPHAS,
    }
    if "maha_by_block" in records[0]:
        coords["block"] = np.array(list(signature_blocks(1)))  # their names, whatever the number of masks
    if "convention" in records[0]:
        coords["convention"] = ("setting", np.array([record["convention"] for record in records]))
    variables = {
        name: (dims.get(name, ("setting", "seed")), np.stack([record[name] for record in records]))
        for name in names
    }
    return xr.Dataset(variables, coords)
