"""The battery: controlled settings whose leak is known, and the one schema that holds them."""

import csv
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from leakviz.errors import InputError
from leakviz.paths import data_dir

REGIMES = ("leak", "clean-excl", "clean-novel", "clean-retrained")
DISTANCES = ("near", "far", "")
COORDINATES = ("backbone", "id_dataset", "regime", "distance", "ood", "pair")
VARIABLES = ("oracle_lda", "maha", "knn", "best_unsup")
FURTHER = (
    "maha_by_alpha",
    "maha_ledoit_wolf",
    "maha_by_block",
    "isolation_forest",
    "one_class_svm",
    "lof",
    "prs_maha",
    "ahss",
    "embedding_maha",
    "neighbourhood_leakage",
)
"""Variables that a battery may have besides; each in [0, 1], dim ``setting`` first."""

PROVENANCE = ("title", "source", "license", "created_by")

_DESCRIPTIONS = {
    "oracle_lda": "AUROC of the supervised shrinkage-LDA probe, ID test against OOD test",
    "maha": "AUROC of the Mahalanobis detector",
    "knn": "AUROC of the k-nearest-neighbour detector",
    "best_unsup": "AUROC of the best unsupervised detector",
    "fired_published": "the decision that the source prints",
    "maha_by_alpha": "AUROC of the Mahalanobis detector at each alpha and covariance",
    "maha_ledoit_wolf": "AUROC of the Mahalanobis detector at Ledoit and Wolf's alpha, for each covariance",
    "maha_by_block": "AUROC of the Mahalanobis detector on one block of the signature",
    "ledoit_wolf": "Ledoit and Wolf's alpha of the fit set",
    "isolation_forest": "AUROC of scikit-learn's IsolationForest",
    "one_class_svm": "AUROC of scikit-learn's OneClassSVM",
    "lof": "AUROC of scikit-learn's LocalOutlierFactor",
    "prs_maha": "AUROC of PRS-Maha, the Mahalanobis detector on the signature",
    "ahss": "AUROC of the attention-head sensitivity score",
    "embedding_maha": "AUROC of the Mahalanobis detector on the embedding, same rows",
    "neighbourhood_leakage": "share of ID rows among the nearest neighbours of an OOD row",
}
COMPUTED = {"computed": "grey.nc", "computed-signature": "grey-signature.nc"}
_PUBLISHED = {
    "title": "Controlled validation of the leak fingerprint, 52 settings",
    "source": "arXiv 2607.19393, Table 12 (means of three seeds, three decimals)",
    "license": "figures only, quoted from the paper",
    "created_by": "leakviz, from data/published/battery_table12.csv",
}


def load_battery(name: str | os.PathLike[str]) -> xr.Dataset:
    """Load a battery of controlled settings, checked against the schema.

    Parameters
    ----------
    name : str or path
        ``"published"`` (52 settings of a paper), ``"computed"`` (computed here,
        in the penultimate embedding), ``"computed-signature"`` (the same ViTs in
        their perturbation signature), or the path of a ``.csv`` or ``.nc`` file.
        A CSV has one row per setting, the columns ``setting``, ``backbone``,
        ``id_dataset``, ``regime``, ``distance``, ``ood``, ``oracle_lda``,
        ``maha``, ``knn``, ``best_unsup``, and may have ``fired_published``
        (yes or no) and ``pair``. Without ``pair``, a leak row ``P_x``, a
        clean-excl row ``N_excl_x`` and a clean-retrained row ``N_retrain_x`` are
        partners. Other columns are left out.

    Returns
    -------
    xarray.Dataset
        Dim ``setting`` (its coordinate: unique names). String coordinates over
        it: ``backbone``, ``id_dataset``, ``regime`` (leak, clean-excl,
        clean-novel, clean-retrained), ``distance`` (near, far or empty), ``ood``
        and ``pair`` (shared by a leak row and its clean-excl and clean-retrained
        partners, empty elsewhere).
        Variables in [0, 1], all AUROC: ``oracle_lda``, ``maha``, ``knn``,
        ``best_unsup``, over ``setting`` or over ``setting`` and ``seed``; bool
        ``fired_published`` where the source prints it. The computed ones have
        more: coordinates ``space`` (embedding or signature), ``size`` (classes in
        the OOD group, 0 for a novel source), ``alpha``, ``covariance``, and
        variables as `leakviz.battery.schema.FURTHER` lists them. Attributes
        ``title``, ``source``, ``license``, ``created_by``, ``content_hash``.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read, breaks the schema, or does
        not match the content hash that it carries.

    Notes
    -----
    The published battery is Table 12 of arXiv 2607.19393 (Appendix D; the
    regimes are defined in its section 5.1). Its ``best_unsup`` is a mean over
    seeds of per-seed maxima, so it can exceed the larger of ``maha`` and ``knn``.

    Examples
    --------
    >>> battery = load_battery("published")
    >>> battery.sizes["setting"]
    52
    >>> float(battery.best_unsup.sel(setting="P_c100_vit_g2"))
    0.645
    """
    if name == "published":
        return _finish(_read_csv(data_dir() / "published" / "battery_table12.csv"), _PUBLISHED)
    path = data_dir() / "battery" / COMPUTED[name] if name in COMPUTED else Path(name)
    readers = {".csv": _read_csv, ".nc": read_netcdf}
    if path.suffix.lower() not in readers:
        known = ", ".join(map(repr, ("published", *COMPUTED)))
        raise InputError(f"name must be {known} or the path of a .csv or .nc file, got {str(name)!r}")
    if not path.is_file():
        raise InputError(f"name: there is no file {str(path)!r}; check the path")
    battery = readers[path.suffix.lower()](path)
    recorded = battery.attrs.get("content_hash")
    battery = _finish(battery, {"title": path.stem})
    if recorded not in (None, battery.attrs["content_hash"]):
        raise InputError(
            f"{path.name}: the content does not match its content_hash {str(recorded)[:12]}..., "
            "so it was changed after it was saved; save it again with save_battery if the change is meant"
        )
    return battery


def save_battery(battery: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Save a battery as netCDF, so that `load_battery` gives it back.

    The file is written beside its place and then renamed, so a reader never
    sees half of it. ``content_hash`` is computed anew.

    Parameters
    ----------
    battery : xarray.Dataset
        As `load_battery` returns it; it is not changed.
    path : str or path
        A file name that ends in ``.nc``, in a folder that exists. An existing
        file is replaced.

    Raises
    ------
    InputError
        If the battery breaks the schema, or the path is no ``.nc`` file name in
        an existing folder.

    Examples
    --------
    >>> import tempfile
    >>> battery = load_battery("published")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_battery(battery, f"{folder}/mine.nc")
    ...     load_battery(f"{folder}/mine.nc").identical(battery)
    True
    """
    path = Path(path)
    if path.suffix.lower() != ".nc":
        raise InputError(f"path must end in .nc, got {str(path)!r}")
    if not path.parent.is_dir():
        raise InputError(f"path: there is no folder {str(path.parent)!r}; create it first")
    finished = _finish(battery, {})
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}.tmp")
    try:
        finished.to_netcdf(temporary, engine="h5netcdf")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_battery(battery: xr.Dataset) -> None:
    """Refuse a Dataset that is no battery.

    A subset of a battery is a battery, an empty one too: a leak row whose
    partner was filtered out is no error.

    Parameters
    ----------
    battery : xarray.Dataset
        The candidate; see `load_battery` for the schema.

    Raises
    ------
    InputError
        At the first breach: names it, its first setting and how many there are.

    Examples
    --------
    >>> check_battery(load_battery("published").isel(setting=slice(3)))
    >>> check_battery(xr.Dataset())
    Traceback (most recent call last):
    leakviz.errors.InputError: battery has no dim 'setting'; see load_battery for the schema
    """
    if "setting" not in battery.sizes:
        raise InputError("battery has no dim 'setting'; see load_battery for the schema")
    for name in ("setting", *COORDINATES):
        if name not in battery.coords or battery[name].dims != ("setting",):
            raise InputError(f"battery needs the coordinate {name!r} over 'setting'; see load_battery")
    settings = _strings(battery, "setting")
    _refuse(np.isin(settings, [""]), settings, "setting", "empty", "give every setting a name")
    _refuse(
        pd.Series(settings).duplicated().to_numpy(), settings, "setting", "repeated", "names must be unique"
    )
    for name, known in (("regime", REGIMES), ("distance", DISTANCES)):
        values = _strings(battery, name)
        told = f"use one of {', '.join(map(repr, known))}"
        _refuse(~np.isin(values, known), settings, name, "unknown", told, values)
    for name in VARIABLES:
        _check_variable(battery, name, settings)
    for name in FURTHER:
        if name in battery:
            _check_values(battery, name, settings)
    if "fired_published" in battery and battery["fired_published"].dtype != bool:
        raise InputError(f"fired_published must be bool, got {battery['fired_published'].dtype}")
    _check_pairs(battery, settings)


def _check_variable(battery: xr.Dataset, name: str, settings: NDArray[np.str_]) -> None:
    if name not in battery.data_vars:
        raise InputError(f"battery needs the variable {name!r}; see load_battery for the schema")
    variable = battery[name]
    if "setting" not in variable.dims or not set(variable.dims) <= {"setting", "seed"}:
        raise InputError(f"{name} must have dim 'setting' and at most 'seed' besides, got {variable.dims}")
    if "seed" in variable.dims and variable.sizes["seed"] == 0:
        raise InputError(f"{name} has a dim 'seed' without a seed; drop the dim or give at least one")
    _check_values(battery, name, settings)


def _check_values(battery: xr.Dataset, name: str, settings: NDArray[np.str_]) -> None:
    variable = battery[name]
    if variable.dtype.kind not in "fiu":
        raise InputError(f"{name} must be numbers, got {variable.dtype}")
    if "setting" not in variable.dims:
        raise InputError(f"{name} must have the dim 'setting', got {variable.dims}")
    if variable.size == 0:
        return
    values = variable.transpose("setting", ...).values.reshape(settings.size, -1)
    bad = ~((values >= 0) & (values <= 1))  # true for nan too
    first = values[np.arange(settings.size), bad.argmax(axis=1)].astype(str)  # per setting
    told = "an AUROC lies between 0 and 1 and is not missing"
    _refuse(np.asarray(bad.any(axis=1)), settings, name, "missing or outside [0, 1]", told, first)


def _check_pairs(battery: xr.Dataset, settings: NDArray[np.str_]) -> None:
    pairs, regimes = _strings(battery, "pair"), _strings(battery, "regime")
    paired = pairs != ""
    told = "only a leak row and its clean-excl and clean-retrained partners form a pair"
    _refuse(paired & (regimes == "clean-novel"), settings, "pair", "not allowed", told, pairs)
    member = pd.DataFrame({"pair": pairs, "regime": regimes})
    told = "a pair is one leak row, at most one clean-excl row and at most one clean-retrained row"
    _refuse(paired & member.duplicated().to_numpy(), settings, "pair", "used twice", told, pairs)
    for name in ("backbone", "id_dataset", "ood"):
        first = member.assign(value=_strings(battery, name)).groupby("pair")["value"].transform("first")
        differs = paired & (first.to_numpy(dtype=object) != _strings(battery, name))
        told = f"partners must share {name}"
        _refuse(differs, settings, "pair", "inconsistent", told, pairs)


def _refuse(
    bad: NDArray[np.bool_],
    settings: NDArray[np.str_],
    name: str,
    problem: str,
    told: str,
    values: NDArray[np.str_] | None = None,
) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        value = "" if values is None else f" has {str(values[row])!r}"
        raise InputError(
            f"{name} is {problem} in {int(bad.sum())} of {bad.size} settings; "
            f"first: row {row} (setting {str(settings[row])!r}){value}; {told}"
        )


def _strings(battery: xr.Dataset, name: str) -> NDArray[np.str_]:
    values = battery[name].values
    if values.dtype.kind == "U":
        return values
    wrong = np.array([not isinstance(value, str) for value in values], dtype=bool)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{name} must be text, but {int(wrong.sum())} of {wrong.size} settings have none; "
            f"first: row {row} has {values[row]!r}; use '' for nothing"
        )
    return values.astype(str)


def _finish(battery: xr.Dataset, provenance: dict[str, str]) -> xr.Dataset:
    """Check it and give it plain string coordinates, provenance, descriptions and its hash."""
    check_battery(battery)
    # netCDF gives text back as objects.
    others = [name for name, coord in battery.coords.items() if coord.dtype == object and coord.ndim == 1]
    texts = {
        name: (battery[name].dims, _strings(battery, str(name)))
        for name in dict.fromkeys(("setting", *COORDINATES, *others))
    }
    battery = battery.assign_coords(texts)
    battery = battery.assign(
        {
            name: battery[name].assign_attrs(long_name=text)
            for name, text in _DESCRIPTIONS.items()
            if name in battery
        }
    )
    stated = {name: battery.attrs.get(name) or provenance.get(name) or "not stated" for name in PROVENANCE}
    return battery.assign_attrs(stated, content_hash=content_hash(battery))


def content_hash(battery: xr.Dataset) -> str:
    """Return the SHA-256 of names, dims and values; the same on every machine and after a round trip."""
    digest = hashlib.sha256()
    for name in sorted(map(str, battery.variables)):
        variable = battery[name]
        digest.update(json.dumps([name, list(map(str, variable.dims)), variable.shape]).encode())
        digest.update(_canonical_bytes(name, variable.values))
    return digest.hexdigest()


def _canonical_bytes(name: Hashable, values: NDArray) -> bytes:
    kind = values.dtype.kind
    if kind in "UO":
        return json.dumps(values.tolist()).encode()
    if kind == "f":
        return (values.astype("<f8") + 0.0).tobytes()  # + 0.0: -0.0 is 0
    if kind in "biu":
        return values.astype("<i8").tobytes()
    raise InputError(f"battery: {name!r} has the type {values.dtype}; use numbers, bool or text")


def read_netcdf(path: Path) -> xr.Dataset:
    """Read a netCDF-4 file into memory, or say that it is none."""
    try:
        return xr.load_dataset(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path.name} cannot be read as netCDF-4 ({error}); save it with save_battery"
        ) from error


def _read_csv(path: Path) -> xr.Dataset:
    table = _text_table(path)
    needed = ("setting", *(name for name in COORDINATES if name != "pair"), *VARIABLES)
    missing = [name for name in needed if name not in table]
    if missing:
        raise InputError(f"{path.name} lacks {len(missing)} columns, first {missing[0]!r}; see load_battery")
    pair = table["pair"] if "pair" in table else _pairs_by_name(table)
    coords = {name: ("setting", table[name].to_numpy(dtype=str)) for name in needed if name not in VARIABLES}
    coords["pair"] = ("setting", pair.to_numpy(dtype=str))
    variables: dict[str, tuple[str, NDArray]] = {
        name: ("setting", _numbers(table, name)) for name in VARIABLES
    }
    if "fired_published" in table:
        variables["fired_published"] = ("setting", _yes_or_no(table, "fired_published"))
    return xr.Dataset(variables, coords)


def _text_table(path: Path) -> pd.DataFrame:
    """Read every cell as the text it is.

    pandas would read an empty distance, or a data set called "NA", as a missing
    value, and shift the columns of a row that is too long.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [cells for cells in csv.reader(file, strict=True) if cells]
    except (OSError, ValueError, csv.Error) as error:  # bytes that are not UTF-8 are a ValueError
        raise InputError(f"{path.name} cannot be read as CSV ({error}); use UTF-8 and commas") from error
    if not lines:
        raise InputError(f"{path.name} is empty; it needs a header and one row per setting")
    header, rows = lines[0], lines[1:]
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        raise InputError(f"{path.name} has the column {repeated[0]!r} more than once; drop one")
    wrong = [row for row, cells in enumerate(rows) if len(cells) != len(header)]
    if wrong:
        raise InputError(
            f"{path.name}: {len(wrong)} of {len(rows)} rows do not have the header's {len(header)} cells; "
            f"first: row {wrong[0]} has {len(rows[wrong[0]])}; mend the commas or quotes"
        )
    return pd.DataFrame(rows, columns=header, dtype=object)


def _pairs_by_name(table: pd.DataFrame) -> pd.Series:
    """Give a leak row ``P_x``, a clean-excl row ``N_excl_x`` and a retrained ``N_retrain_x`` the pair ``x``."""
    starts = {"leak": "P_", "clean-excl": "N_excl_", "clean-retrained": "N_retrain_"}
    prefix = table["regime"].map(starts).fillna("")
    named = [
        setting.removeprefix(start) if start and setting.startswith(start) else ""
        for setting, start in zip(table["setting"], prefix, strict=True)
    ]
    pair = pd.Series(named, index=table.index, dtype=object)
    both = table["regime"].groupby(pair).transform("nunique") >= 2
    return pair.where(both, "")


def _numbers(table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    # float() is exact to the nearest, which pandas' own parser is not.
    return np.array(_parsed(table, name, float, "write numbers with a decimal point"), dtype=np.float64)


def _yes_or_no(table: pd.DataFrame, name: str) -> NDArray[np.bool_]:
    return np.array(
        _parsed(table, name, {"yes": True, "no": False}.__getitem__, "write yes or no"), dtype=bool
    )


def _parsed(table: pd.DataFrame, name: str, parse: Callable[[str], object], told: str) -> list:
    values, wrong = [], []
    for row, text in enumerate(table[name]):
        try:
            values.append(parse(text))
        except (ValueError, KeyError):
            wrong.append((row, text))
    if wrong:
        row, text = wrong[0]
        raise InputError(
            f"{name} is not understood in {len(wrong)} of {len(table)} rows; "
            f"first: row {row} has {text!r}; {told}"
        )
    return values
