"""The same settings in the space of the perturbation signature of a ViT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakviz.battery.settings import (
    SEEDS,
    Features,
    K,
    Scorer,
    excluded_target,
    leak_targets,
)
from leakviz.detectors import decompose
from leakviz.moments import fit_statistics
from leakviz.signature import ahss, class_centroids, perturbation_signature, signature_blocks

CONVENTIONS = ("all", "kept", "dropped")
"""Which class centroids the signature measures distances to.

``all``: leaked and novel settings, where every class is in the fit set. An
excluded class leaves the fit set, and its centroid is either ``kept`` (the
signature is the leaked one, only the detector's fit set differs) or ``dropped``
(distances to the remaining classes alone, as if the class were not known).
"""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Masked:
    """Embeddings of a ViT under each mask, for the rows of a `Features` of its clean pass.

    Parameters
    ----------
    clean : Features
    fit, test : ndarray, shapes (K, N, D) and (K, T, D)
    novel : dict of str to ndarray, shapes (K, ., D)
    """

    clean: Features
    fit: NDArray[Any] = field(repr=False)
    test: NDArray[Any] = field(repr=False)
    novel: dict[str, NDArray[Any]] = field(repr=False)


def signature_records(
    masked: Masked,
    groups: Sequence[tuple[int, ...]],
    *,
    seeds: Sequence[int] = SEEDS,
    k: int = K,
    progress: Callable[[str], object] = lambda done: None,
) -> list[dict[str, Any]]:
    """Return one record per setting in signature space, with both conventions for an excluded class.

    Parameters
    ----------
    masked : Masked
    groups : sequence of tuple of int
        The classes that are called OOD together, as `ood_groups` gives them.
    seeds : sequence of int
    k : int
    progress : callable
        Called with a description as each step ends.

    Returns
    -------
    list of dict
        As `leakviz.battery.settings.Scorer.score` gives them, and besides
        ``convention``, ``prs_maha`` (the same values as ``maha``), ``ahss``,
        ``embedding_maha`` (Mahalanobis on the clean embeddings, same fit rows) and
        ``maha_by_block``.

    Notes
    -----
    arXiv 2607.19393, section 3, Appendix C (block ablation) and Appendix E.
    """
    clean = masked.clean
    whole = _signatures(masked)
    scorer = Scorer(whole, seeds=seeds, k=k, progress=progress)
    records = _named(scorer.score((), leak_targets(whole, groups), extra=_extra(whole, clean, ())), "all")
    for group in groups:
        target = excluded_target(whole, group)
        kept = replace(target, setting=target.setting.replace("N_excl_", "N_excl_kept_"), pair="")
        records += _named(scorer.score(group, [kept], extra=_extra(whole, clean, group, novel=False)), "kept")
    for group in groups:
        rest = ~np.isin(clean.fit_labels, group)
        without = replace(
            masked,
            clean=replace(
                clean, fit=clean.fit[rest], fit_labels=clean.fit_labels[rest], novel={}, distance={}
            ),
            fit=masked.fit[:, rest],
            novel={},
        )
        less = _signatures(without)
        alone = Scorer(less, seeds=seeds, k=k, progress=progress)
        target = excluded_target(less, group)
        records += _named(alone.score((), [target], extra=_extra(less, without.clean, ())), "dropped")
    return records


def _signatures(masked: Masked) -> Features:
    """Return the signatures of every row, measured from the centroids of the classes in the fit set."""
    clean = masked.clean
    centroids = class_centroids(clean.fit, clean.fit_labels)
    return replace(
        clean,
        fit=perturbation_signature(clean.fit, masked.fit, centroids),
        test=perturbation_signature(clean.test, masked.test, centroids),
        novel={
            name: perturbation_signature(clean.novel[name], stack, centroids)
            for name, stack in masked.novel.items()
        },
    )


def _extra(
    signature: Features, clean: Features, without: tuple[int, ...], *, novel: bool = True
) -> dict[str, Array]:
    """Return the scores that exist in signature space alone."""
    rest = ~np.isin(signature.fit_labels, without)
    fit, rows, embedding = signature.fit[rest], signature.rows, clean.rows
    if not novel:
        rows, embedding = signature.test, clean.test
    blocks = signature_blocks((rows.shape[1] - 2) // 3).values()
    return {
        "prs_maha": _maha(fit, rows),
        "ahss": ahss(rows),
        "embedding_maha": _maha(clean.fit[rest], embedding),
        "maha_by_block": np.stack([_maha(fit[:, block], rows[:, block]) for block in blocks]),
    }


def _maha(fit: NDArray[Any], rows: NDArray[Any]) -> Array:
    if (fit == fit[0]).all():  # a block may be: with one class left no mask flips the nearest centroid
        return np.zeros(len(rows))
    statistics = fit_statistics(fit)
    return decompose(statistics).score(rows, [statistics.ledoit_wolf()])[0]


def _named(records: list[dict[str, Any]], convention: str) -> list[dict[str, Any]]:
    return [{**record, "convention": convention} for record in records]
