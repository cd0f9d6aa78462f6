"""A backbone's features and statistics in a small file: what pages compute from, without PyTorch.

One file per backbone lies beside the battery (``grey.nc``, ``grey.resnet-fashion.nc``, ...). Class
statistics make any fit set in milliseconds; features are half-precision numbers, which moves an
AUROC by less than a thousandth.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from leakviz.battery.schema import COMPUTED, content_hash, read_netcdf
from leakviz.detectors import knn_score
from leakviz.errors import InputError
from leakviz.moments import COVARIANCES, ClassStatistics, FitStatistics
from leakviz.moments import fit_statistics as statistics_of_rows
from leakviz.paths import data_dir

K = 50
_BLAS = ThreadpoolController().select(user_api="blas")  # small products: a second thread only waits
_STEP = 2 / 65535  # distances of L2-normalised rows lie in [0, 2]; stored in 65,536 steps


@dataclass(frozen=True, eq=False)
class Backbone:
    """Everything that pages and tests need of one trained backbone.

    Attributes
    ----------
    name, id_dataset : str
    classes : tuple of str, length C
    statistics : ClassStatistics
        Of the whole fit set; its labels are 0 to C - 1.
    rows : ndarray of float32, shape (R, D)
        Features: test rows of every class, then of every novel source.
    kinds : ndarray of int, shape (R,)
        What each row is: its class, or C, C + 1, ... for the novel sources.
    novel : tuple of str
        Names of the novel sources.
    distance : dict of str to {"near", "far"}
        Of each novel source.
    sample, sample_labels : ndarray, shapes (2000, D) and (2000,)
        Fit rows; stratified however many are taken from the front.
    seeds : tuple of int
    held_out : ndarray of bool, shape (seeds, R)
        Which rows each seed scores; the others fit the probe.
    fit_sets : tuple of tuple of int
        The classes left out of each fit set that `knn_distance` knows.
    knn_distance : ndarray of float32, shape (F, R)
        Distance of every row to its 50th neighbour in each of these fit sets.
    ledoit_wolf : ndarray of float64, shape (F, 2)
        Alpha of each of these fit sets, one-class and tied.
    retrained : dict of str to dict of str to ndarray
        For every class that a training left out: the scores of the test rows
        under that other backbone, ``maha`` (T,), ``knn`` (T,), ``oracle_lda``
        (seeds, T; nan for rows that fitted the probe), T being the test rows.
    facts : dict
        Accuracy, seconds, recipe, versions, content hash.
    """

    name: str
    id_dataset: str
    classes: tuple[str, ...]
    statistics: ClassStatistics = field(repr=False)
    rows: NDArray[np.float32] = field(repr=False)
    kinds: NDArray[np.int64] = field(repr=False)
    novel: tuple[str, ...] = ()
    distance: dict[str, str] = field(default_factory=dict)
    sample: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32), repr=False)
    sample_labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    seeds: tuple[int, ...] = ()
    held_out: NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), bool), repr=False)
    fit_sets: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    knn_distance: NDArray[np.float32] = field(
        default_factory=lambda: np.empty((0, 0), np.float32), repr=False
    )
    ledoit_wolf: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)), repr=False)
    retrained: dict[str, dict[str, NDArray[np.float32]]] = field(default_factory=dict, repr=False)
    facts: dict[str, Any] = field(default_factory=dict, repr=False)


def load_backbone(battery: str | os.PathLike[str] | xr.Dataset, backbone: str) -> Backbone:
    """Load one backbone of a computed battery.

    Parameters
    ----------
    battery : str, path or xarray.Dataset
        ``"computed"``, the path of a battery's ``.nc`` file, or the shipped
        battery itself as `leakviz.load_battery` returns it.
    backbone : str
        Its name in the battery, such as ``"resnet-fashion"``.

    Returns
    -------
    Backbone
        The same object for the same file: do not change it.

    Raises
    ------
    InputError
        If there is no such file, or it is not the one the battery was made with.

    Examples
    --------
    >>> backbone = load_backbone("computed", "vit-mnist")
    >>> backbone.classes[:3], backbone.rows.shape[1]
    (('0', '1', '2'), 64)
    """
    expected = None
    if isinstance(battery, xr.Dataset):
        expected = json.loads(battery.attrs.get("backbones", "{}"))
        if backbone not in expected:
            raise InputError(
                f"backbone must be one whose features belong to the battery ({', '.join(expected) or 'none'}), "
                f"got {backbone!r}"
            )
        path = data_dir() / "battery" / COMPUTED["computed"]
    elif battery == "computed":
        path = data_dir() / "battery" / COMPUTED["computed"]
    else:
        path = Path(battery)
    path = path.with_name(f"{path.stem}.{backbone}.nc")
    if not path.is_file():
        beside = sorted(other.name for other in path.parent.glob(f"{path.stem.split('.')[0]}.*.nc"))
        raise InputError(f"backbone: there is no file {str(path)!r}; beside the battery are {beside}")
    loaded = _open(path, path.stat().st_mtime_ns)
    if expected is not None and loaded.facts["content_hash"] != expected[backbone]:
        raise InputError(
            f"{path.name} is not the file that the battery was made with; build both with leakviz battery build"
        )
    return loaded


def fit_set(backbone: Backbone, *, without: Sequence[str] = (), rows: int | None = None) -> FitStatistics:
    """Return the statistics of a fit set.

    Parameters
    ----------
    backbone : Backbone
    without : sequence of str, default ()
        Names of the classes to leave out.
    rows : int, optional
        Take so many rows of the stratified sample, in its order; by default all
        rows of the fit set. Where classes are left out the sample may have
        fewer (``count`` says how many there are).

    Returns
    -------
    FitStatistics
        With class means, and what Ledoit and Wolf's alpha needs.

    Raises
    ------
    InputError
        If a class is unknown or none is left, or rows is no size of a sample.

    Examples
    --------
    >>> backbone = load_backbone("computed", "vit-mnist")
    >>> fit_set(backbone, without=["2"], rows=150).count
    150
    """
    left_out = _labels(backbone, without)
    if rows is not None:
        features, labels = sample_rows(backbone, without=without, rows=rows)
        with _BLAS.limit(limits=1):
            return statistics_of_rows(features, labels=labels)
    members = np.setdiff1d(backbone.statistics.labels, left_out)
    statistics = backbone.statistics.union(members)
    if left_out not in backbone.fit_sets:
        return statistics
    # Exact, where the sums of rounded moments are not quite.
    exact = backbone.ledoit_wolf[backbone.fit_sets.index(left_out)]
    return replace(statistics, stored_alpha=dict(zip(COVARIANCES, exact.tolist(), strict=True)))


def sample_rows(
    backbone: Backbone, *, without: Sequence[str] = (), rows: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return fit rows of the stratified sample, and their labels.

    Parameters
    ----------
    backbone, without
        As for `fit_set`.
    rows : int
        At most so many.

    Returns
    -------
    features : ndarray of float32, shape (n, D)
    labels : ndarray of int64, shape (n,)

    Raises
    ------
    InputError
        As `fit_set`.

    Examples
    --------
    >>> features, labels = sample_rows(load_backbone("computed", "vit-mnist"), rows=20)
    >>> labels.tolist() == [*range(10), *range(10)]
    True
    """
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
        raise InputError(f"rows must be a whole number from 1 up, got {rows!r}")
    kept = np.flatnonzero(~np.isin(backbone.sample_labels, _labels(backbone, without)))[:rows]
    return backbone.sample[kept], backbone.sample_labels[kept]


def knn_of(
    backbone: Backbone, *, without: Sequence[str] = (), rows: int | None = None
) -> NDArray[np.float64]:
    """Return the kNN score of every row: minus the distance to the 50th neighbour in a fit set.

    Parameters
    ----------
    backbone, without, rows
        As for `fit_set`. All rows: only the fit sets of the battery (all classes,
        or without one of its groups) are known, and looked up. A sample: computed.

    Returns
    -------
    ndarray of float64, shape (R,)
        Larger where a row looks more in-distribution.

    Raises
    ------
    InputError
        As `fit_set`; if all rows of a fit set are asked for that is not stored,
        or the sample has fewer than 50 rows.

    Examples
    --------
    >>> backbone = load_backbone("computed", "vit-mnist")
    >>> knn_of(backbone, without=["2"]).shape == backbone.kinds.shape
    True
    """
    if rows is not None:
        return knn_score(sample_rows(backbone, without=without, rows=rows)[0], backbone.rows, k=K)
    left_out = _labels(backbone, without)
    if left_out not in backbone.fit_sets:
        raise InputError(
            f"without: neighbours in the whole fit set are stored for groups of the battery alone, not without "
            f"{', '.join(without)}; give rows to take a sample"
        )
    return -backbone.knn_distance[backbone.fit_sets.index(left_out)].astype(np.float64)


def rows_of(
    backbone: Backbone, ood: str, *, seed: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which rows are ID and which are OOD in a setting.

    Parameters
    ----------
    backbone : Backbone
    ood : str
        As the battery's coordinate: classes joined by "+", or a novel source.
    seed : int, optional
        Only the half that this seed scores, which the battery's AUROCs speak
        of; by default all rows.

    Returns
    -------
    id_rows, ood_rows : ndarray of int64
        Places in ``backbone.rows``.

    Raises
    ------
    InputError
        If there is no such class, source or seed.

    Examples
    --------
    >>> id_rows, ood_rows = rows_of(load_backbone("computed", "vit-mnist"), "2+3")
    >>> id_rows.size == 4 * ood_rows.size
    True
    """
    if ood in backbone.novel:
        kinds: tuple[int, ...] = (len(backbone.classes) + backbone.novel.index(ood),)
    else:
        kinds = _labels(backbone, ood.split("+"), name="ood")
    other = np.isin(backbone.kinds, kinds)
    own = (backbone.kinds < len(backbone.classes)) & ~other
    if seed is None:
        return np.flatnonzero(own), np.flatnonzero(other)
    if seed not in backbone.seeds:
        raise InputError(f"seed must be one of {backbone.seeds}, got {seed!r}")
    half = backbone.held_out[backbone.seeds.index(seed)]
    return np.flatnonzero(own & half), np.flatnonzero(other & half)


def save_backbone(backbone: Backbone, path: str | os.PathLike[str]) -> str:
    """Save a backbone, so that `load_backbone` gives it back to within half precision.

    Parameters
    ----------
    backbone : Backbone
    path : str or path
        Replaced where it is there.

    Returns
    -------
    str
        The content hash.
    """
    path = Path(path)
    packed = _pack(backbone)
    packed = packed.assign_attrs(content_hash=content_hash(packed))
    compressed = {
        str(name): {"zlib": True, "complevel": 6, "shuffle": True}
        for name, variable in packed.variables.items()
        if variable.dtype.kind in "iufb" and variable.size > 100
    }
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}.tmp")
    try:
        packed.to_netcdf(temporary, engine="h5netcdf", encoding=compressed)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return packed.attrs["content_hash"]


@lru_cache(maxsize=8)
def _open(path: Path, changed: int) -> Backbone:
    """Read a file once; `changed` makes a new one of a file that was built anew."""
    packed = read_netcdf(path)
    recorded = packed.attrs.get("content_hash")
    if content_hash(packed) != recorded:
        raise InputError(
            f"{path.name}: the content does not match its content_hash {str(recorded)[:12]}...; "
            "get the file again, or build it with leakviz battery build"
        )
    return _unpack(packed)


def _labels(backbone: Backbone, names: Sequence[str], *, name: str = "without") -> tuple[int, ...]:
    if isinstance(names, str):
        raise InputError(f"{name} must be a list of names of classes, got the text {names!r}")
    unknown = [given for given in names if given not in backbone.classes]
    if unknown:
        raise InputError(
            f"{name} names {unknown[0]!r}, which is not known to {backbone.name}; it has "
            f"{', '.join((*backbone.classes, *(backbone.novel if name == 'ood' else ())))}"
        )
    if len(set(names)) >= len(backbone.classes):
        raise InputError(f"{name} names every class, so that nothing is left to fit; leave fewer out")
    return tuple(sorted({backbone.classes.index(given) for given in names}))


def _as_halves(values: NDArray[Any]) -> NDArray[np.int16]:
    """Return half-precision numbers as the integers with the same bits: netCDF has no such type."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest <= float(np.finfo(np.float16).max):
        raise InputError(f"features reach {largest:g}; half precision ends at 65504: scale them down")
    return values.astype(np.float16).view(np.int16)


def _from_halves(bits: NDArray[Any]) -> NDArray[np.float32]:
    return bits.astype(np.int16).view(np.float16).astype(np.float32)


def _triangle(matrices: NDArray[Any]) -> NDArray[np.float32]:
    upper = np.triu_indices(matrices.shape[-1])
    return matrices[..., upper[0], upper[1]].astype(np.float32)


def _square(triangles: NDArray[Any], size: int) -> NDArray[np.float64]:
    upper = np.triu_indices(size)
    full = np.zeros((*triangles.shape[:-1], size, size))
    full[..., upper[0], upper[1]] = triangles
    full[..., upper[1], upper[0]] = triangles
    return full


def _pack(backbone: Backbone) -> xr.Dataset:
    statistics = backbone.statistics
    assert statistics.square_moment is not None
    assert statistics.cube_moment is not None
    left_out = np.zeros((len(backbone.fit_sets), len(backbone.classes)), dtype=bool)
    for place, group in enumerate(backbone.fit_sets):
        left_out[place, list(group)] = True
    variables: dict[str, Any] = {
        "class_count": ("class", statistics.count),
        "class_mean": (("class", "feature"), statistics.mean.astype(np.float32)),
        "class_scatter": (("class", "triangle"), _triangle(statistics.scatter)),
        "class_square_moment": (("class", "triangle"), _triangle(statistics.square_moment)),
        "class_cube_moment": (
            ("class", "feature", "other_feature"),
            statistics.cube_moment.astype(np.float32),
        ),
        "feature_bits": (("row", "feature"), _as_halves(backbone.rows)),
        "kind": ("row", backbone.kinds.astype(np.int16)),
        "novel_distance": (
            "novel",
            np.array([backbone.distance[name] for name in backbone.novel], dtype=str),
        ),
        "fit_feature_bits": (("fit_row", "feature"), _as_halves(backbone.sample)),
        "fit_label": ("fit_row", backbone.sample_labels.astype(np.int16)),
        "held_out": (("seed", "row"), backbone.held_out),
        "left_out": (("fit_set", "class"), left_out),
        "knn_distance": (
            ("fit_set", "row"),
            np.rint(backbone.knn_distance / _STEP).astype(np.uint16),
            {"step": _STEP, "long_name": "distance to the 50th neighbour, in steps"},
        ),
        "ledoit_wolf": (("fit_set", "covariance"), backbone.ledoit_wolf),
    }
    if backbone.retrained:
        first = next(iter(backbone.retrained.values()))
        for name in first:
            stack = np.stack([scores[name] for scores in backbone.retrained.values()]).astype(np.float32)
            dims = ("retrained", *(("seed",) if stack.ndim == 3 else ()), "test_row")
            variables[f"retrained_{name}"] = (dims, stack)
    coords: dict[str, Any] = {
        "class": np.array(backbone.classes),
        "novel": np.array(backbone.novel, dtype=str),
        "seed": np.array(backbone.seeds),
        "covariance": np.array(COVARIANCES),
    }
    if backbone.retrained:
        coords["retrained"] = np.array(list(backbone.retrained))
    attrs = {"backbone": backbone.name, "id_dataset": backbone.id_dataset, **_as_attrs(backbone.facts)}
    return xr.Dataset(variables, coords, attrs)


def _unpack(packed: xr.Dataset) -> Backbone:
    size = packed.sizes["feature"]
    statistics = ClassStatistics(
        np.arange(packed.sizes["class"]),
        packed["class_count"].values.astype(np.int64),
        packed["class_mean"].values.astype(np.float64),
        _square(packed["class_scatter"].values, size),
        _square(packed["class_square_moment"].values, size),
        packed["class_cube_moment"].values.astype(np.float64),
    )
    novel = tuple(map(str, packed["novel"].values))
    names = ("maha", "knn", "oracle_lda")
    retrained = {
        str(name): {score: packed[f"retrained_{score}"].values[place] for score in names}
        for place, name in enumerate(packed["retrained"].values if "retrained" in packed.coords else ())
    }
    facts = {name: value for name, value in packed.attrs.items() if name not in ("backbone", "id_dataset")}
    return Backbone(
        name=str(packed.attrs["backbone"]),
        id_dataset=str(packed.attrs["id_dataset"]),
        classes=tuple(map(str, packed["class"].values)),
        statistics=statistics,
        rows=_from_halves(packed["feature_bits"].values),
        kinds=packed["kind"].values.astype(np.int64),
        novel=novel,
        distance=dict(zip(novel, map(str, packed["novel_distance"].values), strict=True)),
        sample=_from_halves(packed["fit_feature_bits"].values),
        sample_labels=packed["fit_label"].values.astype(np.int64),
        seeds=tuple(packed["seed"].values.tolist()),
        held_out=packed["held_out"].values.astype(bool),
        fit_sets=tuple(tuple(np.flatnonzero(line).tolist()) for line in packed["left_out"].values),
        knn_distance=(packed["knn_distance"].values * _STEP).astype(np.float32),
        ledoit_wolf=packed["ledoit_wolf"].values,
        retrained=retrained,
        facts=facts,
    )


def _as_attrs(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "content_hash"}
