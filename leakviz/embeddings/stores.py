"""Open a file of arrays: list what it holds without loading it, load one array at a time.

Nothing here can run what a file contains: pickles, and arrays of Python objects, which are
pickles inside, are refused unread; links out of an HDF5 file are not followed. What an
array would unpack to is compared with the limit before it is unpacked.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from numpy.typing import NDArray

from leakviz.errors import InputError
from leakviz.predictions.sources import Source, open_source, quoted

MAX_BYTES = 4_000_000_000
"""Default limit in bytes, for a file and for what it unpacks to."""

FORMATS = ("npz", "npy", "parquet", "netcdf")
"""What can be read; "netcdf" is netCDF-4 or any HDF5."""

_HOW_TO_SAVE = "np.savez('emb.npz', fit=fit, id_test=id_test, ood_test=ood_test, fit_labels=labels)"
_OBJECTS = (
    "holds Python objects, which are stored as a pickle, and leakviz never loads pickles, because opening one "
    "runs whatever code it holds. If you trust it, re-save it as plain numbers or text: "
    "np.stack(list(rows)).astype('float32') for features, labels.astype(str) for labels"
)
_PICKLE = (
    "is a Python pickle (as torch.save and joblib write them). leakviz never loads pickles, because opening one "
    f"runs whatever code it holds. If you trust it, load it yourself and re-save: {_HOW_TO_SAVE}"
)
_MOST_ARRAYS = 10_000
_ROWS = 8_192  # rows of a Parquet file per batch


@dataclass(frozen=True)
class ArrayFacts:
    """What a file says about one of its arrays.

    Attributes
    ----------
    name : str
        As in the file. Plain text, never HTML.
    shape : tuple of int
    dtype : str
        Such as "float32"; "text".
    problem : str or None
        Why it cannot be used.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    problem: str | None = None


@dataclass
class Store:
    """An opened file: what it holds, and how to load one array of it."""

    name: str
    format: str
    facts: dict[str, ArrayFacts]
    load: Callable[[str], NDArray[Any]]
    words: list[str] = field(default_factory=list)


def open_store(
    file: Any, *, name: str | None, max_bytes: int, role_column: str | None, label_column: str | None
) -> Store:
    """Take a path, bytes, a binary file object, or a mapping of names to such files of one array each."""
    if isinstance(file, Mapping):
        return _open_parts(file, max_bytes)
    source = open_source(
        file,
        name,
        max_bytes,
        what="embeddings",
        slimmer="Save float16 or float32, or fewer rows",
    )
    kind = recognise(source)
    if kind == "npz":
        return _open_npz(source, max_bytes)
    if kind == "npy":
        raise InputError(
            f"{quoted(source.name)} is one array, and an audit needs three. Give one .npy per role, or one "
            f"file: {_HOW_TO_SAVE}."
        )
    if kind == "parquet":
        return _open_parquet(source, max_bytes, role_column, label_column)
    return _open_hdf5(source, max_bytes)


def recognise(source: Source) -> str:
    """Return one of `FORMATS`, by the content, or refuse what cannot be read."""
    head, name = source.head, quoted(source.name)
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x89HDF"):
        return "netcdf"
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        members = [member.filename for member in _members(source)]
        if any(member.endswith(".pkl") for member in members):
            raise InputError(f"{name} {_PICKLE}.")
        if members and all(member.endswith(".npy") for member in members):
            return "npz"
        raise InputError(f"{name} is a zip archive, but no .npz of NumPy. Save {_HOW_TO_SAVE}.")
    if head[:1] == b"\x80" and head[1:2] and head[1] <= 5:
        raise InputError(f"{name} {_PICKLE}.")
    if head.startswith(b"CDF"):
        raise InputError(
            f"{name} is classic netCDF. Save netCDF-4: dataset.to_netcdf('emb.nc', engine='h5netcdf')."
        )
    raise InputError(
        f"{name} is no file of arrays that is known: give .npz, .npy, Parquet or netCDF-4, such as {_HOW_TO_SAVE}."
    )


def _open_parts(files: Mapping[str, Any], max_bytes: int) -> Store:
    stores = {}
    for part, file in files.items():
        source = open_source(
            file, None, max_bytes, what="embeddings", slimmer="Save float16 or float32, or fewer rows"
        )
        if recognise(source) != "npy":
            raise InputError(
                f"{part}, {quoted(source.name)}, is no .npy file. One file per role must hold one array each: "
                f"np.save('{part}.npy', array)."
            )
        stores[part] = (_open_npy(source), source.name)
    facts = {}
    for part, (store, _) in stores.items():
        (inner,) = store.facts.values()
        facts[part] = ArrayFacts(part, inner.shape, inner.dtype, inner.problem)
    names = ", ".join(name for _, name in stores.values())
    return Store(names, "npy", facts, lambda part: stores[part][0].load(""))


# NumPy's own formats


def _open_npy(source: Source) -> Store:
    with source.open() as stream:
        facts = _npy_facts(stream, source.name, source.size)

    def load(_: str) -> NDArray[Any]:
        _refuse_problem(facts)
        with source.open() as stream:
            return _read_npy(stream, source.name)

    return Store(source.name, "npy", {source.name: facts}, load)


def _open_npz(source: Source, max_bytes: int) -> Store:
    facts = {}
    members = {member.filename.removesuffix(".npy"): member for member in _members(source)}
    unpacked = sum(member.file_size for member in members.values())
    if unpacked > max_bytes:
        raise InputError(
            f"{quoted(source.name)} has {source.size:,} bytes and unpacks to {unpacked:,}, more than the limit "
            f"of {max_bytes:,}. Save float16 or float32, or fewer rows, or raise max_bytes."
        )
    for name, member in members.items():
        with _member(source, member) as stream:
            facts[name] = _npy_facts(stream, name, member.file_size)

    def load(name: str) -> NDArray[Any]:
        _refuse_problem(facts[name])
        with _member(source, members[name]) as stream:
            return _read_npy(stream, name)

    return Store(source.name, "npz", facts, load)


@contextmanager
def _member(source: Source, member: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    with (
        _damaged(source),
        source.open() as stream,
        zipfile.ZipFile(stream) as archive,
        archive.open(member) as inner,
    ):
        yield inner


def _members(source: Source) -> list[zipfile.ZipInfo]:
    with _damaged(source), source.open() as stream, zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
    if len(members) > _MOST_ARRAYS:
        raise InputError(f"{quoted(source.name)} holds {len(members):,} arrays, more than {_MOST_ARRAYS:,}.")
    return members


def _npy_facts(stream: IO[bytes], name: str, size: int) -> ArrayFacts:
    """Read the header alone; it is a literal that is parsed, never code."""
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise InputError(
                f"{quoted(name)} holds records with named fields. Save a plain table of numbers."
            )
        shape, _, dtype = read(stream)
    except InputError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{quoted(name)} begins like a NumPy array but is damaged: {error}.") from error
    if dtype.hasobject:
        return ArrayFacts(name, shape, "object", f"{quoted(name)} {_OBJECTS}.")
    if dtype.names is not None:
        return ArrayFacts(
            name, shape, "records", f"{quoted(name)} holds records with named fields. Save a plain table."
        )
    if math.prod(shape) * dtype.itemsize > size:
        raise InputError(
            f"{quoted(name)} claims the shape {shape} of {dtype}, which is more than its {size:,} bytes. "
            "It is damaged or cut short: save it again."
        )
    return ArrayFacts(name, tuple(shape), _type_name(dtype))


def _read_npy(stream: IO[bytes], name: str) -> NDArray[Any]:
    try:
        return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{quoted(name)} cannot be read to its end: {error}. Save it again.") from error


# Parquet


def _open_parquet(source: Source, max_bytes: int, role_column: str | None, label_column: str | None) -> Store:
    """Cut one table into the tables of each role, by a column that names the roles."""
    name = quoted(source.name)
    with _damaged(source), source.open() as stream:
        file = pq.ParquetFile(stream)
        schema = file.schema_arrow
        unpacked = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
        if unpacked > max_bytes:
            raise InputError(
                f"{name} has {source.size:,} bytes and unpacks to {unpacked:,}, more than the limit of "
                f"{max_bytes:,}. Save float32, or fewer rows, or raise max_bytes."
            )
        if len(set(schema.names)) < len(schema.names):
            raise InputError(f"{name} has two columns of the same name. Give every column its own.")
        role = _named_column(schema, role_column, ("role", "split"), "role_column", name)
        label = _named_column(schema, label_column, ("label",), "label_column", name)
        if role is None:
            raise InputError(
                f"{name} is one table, so a column must say what each row is for: name it 'role', with the "
                "values fit, id_test and ood_test, or say role_column='...'."
            )
        features = _feature_columns(schema, {role, label}, name)
        wanted = [role] if label is None else [role, label]
        texts = file.read(columns=wanted, use_threads=False)
        roles = _plain_column(texts.column(role), role, name).astype(str)
        labels = None if label is None else _plain_column(texts.column(label), label, name)
        width = _width(file, features)
        dtype = schema.field(features[0]).type
        shown = str((dtype.value_type if _is_list(dtype) else dtype).to_pandas_dtype().__name__)

    rows = {part: np.flatnonzero(roles == part) for part in np.unique(roles).tolist()}
    facts = {part: ArrayFacts(part, (places.size, width), shown) for part, places in rows.items()}
    if labels is not None:
        for part, places in rows.items():
            own = f"{part}_labels"
            facts[own] = ArrayFacts(own, (places.size,), _type_name(labels.dtype))
    table: list[NDArray[Any]] = []

    def load(part: str) -> NDArray[Any]:
        if part not in rows:
            assert labels is not None
            return labels[rows[part.removesuffix("_labels")]]
        if not table:
            table.append(_read_features(source, features, width))
        return table[0][rows[part]]

    words = [f"Column {quoted(role)} says what each row is for."]
    if len(features) == 1:
        words.append(f"The features are in column {quoted(features[0])}.")
    else:
        words.append(
            f"The features are the {len(features):,} floating-point columns, {quoted(features[0])} to "
            f"{quoted(features[-1])}."
        )
    if label is not None:
        words.append(f"The labels are in column {quoted(label)}.")
    rest = [column for column in schema.names if column not in {*features, role, label}]
    if rest:
        words.append(f"Left out: {', '.join(map(quoted, rest[:5]))}{' and others' if len(rest) > 5 else ''}.")
    return Store(source.name, "parquet", facts, load, words)


def _named_column(
    schema: pa.Schema, said: str | None, usual: tuple[str, ...], argument: str, name: str
) -> str | None:
    if said is not None:
        if said not in schema.names:
            raise InputError(f"{argument} is {said!r}, which is no column of {name}.")
        return said
    found = [column for column in schema.names if column.strip().lower() in usual]
    if len(found) > 1:
        raise InputError(f"{name} has the columns {found[0]!r} and {found[1]!r}; say {argument}='...'.")
    return found[0] if found else None


def _is_list(dtype: pa.DataType) -> bool:
    return pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype)


def _feature_columns(schema: pa.Schema, taken: set[str | None], name: str) -> list[str]:
    """Return the one column of lists, or all columns of floating-point numbers."""
    fields = [field for field in schema if field.name not in taken]
    lists = [f.name for f in fields if _is_list(f.type) and pa.types.is_floating(f.type.value_type)]
    if len(lists) > 1:
        raise InputError(
            f"{name} has {len(lists)} columns of lists, first {lists[0]!r} and {lists[1]!r}. Keep the features "
            "alone."
        )
    floats = lists or [f.name for f in fields if pa.types.is_floating(f.type)]
    if not floats:
        raise InputError(
            f"{name} has no column of floating-point numbers. Save the features as float32: one column each, or "
            "one column of lists."
        )
    return floats


def _plain_column(column: pa.ChunkedArray, label: str, name: str) -> NDArray[Any]:
    """Return a column of text or whole numbers, all of them there."""
    if column.null_count:
        row = next(i for i, value in enumerate(column) if not value.is_valid)
        raise InputError(
            f"{name}, column {quoted(label)}, is missing in {column.null_count:,} of {len(column):,} rows; "
            f"first: row {row}. Fill it in or drop these rows."
        )
    values = column.to_pylist()
    if all(isinstance(value, str) for value in values):
        return np.array(values, dtype=str)
    if all(isinstance(value, int) for value in values):
        return np.array(values, dtype=np.int64)
    raise InputError(f"{name}, column {quoted(label)}, must hold text or whole numbers, got {column.type}.")


def _width(file: pq.ParquetFile, features: list[str]) -> int:
    if len(features) > 1 or not _is_list(file.schema_arrow.field(features[0]).type):
        return len(features)
    batch = next(file.iter_batches(batch_size=1, columns=features, use_threads=False), None)
    value = None if batch is None or len(batch) == 0 else batch.column(0)[0].as_py()
    return 0 if value is None else len(value)


def _read_features(source: Source, features: list[str], width: int) -> NDArray[Any]:
    name = quoted(source.name)
    parts: list[NDArray[Any]] = []
    done = 0
    with _damaged(source), source.open() as stream:
        file = pq.ParquetFile(stream)
        for batch in file.iter_batches(batch_size=_ROWS, columns=features, use_threads=False):
            if not _is_list(batch.schema.field(features[0]).type):
                # A null becomes nan, which is then refused with its row.
                parts.append(
                    np.column_stack([batch.column(f).to_numpy(zero_copy_only=False) for f in features])
                )
                continue
            column = batch.column(0)
            lengths = np.array(
                [-1 if n is None else n for n in pyarrow.compute.list_value_length(column).to_pylist()]
            )
            wrong = np.flatnonzero(lengths != width)
            if wrong.size:
                raise InputError(
                    f"{name}, column {quoted(features[0])}, has lists of different lengths: row "
                    f"{done + int(wrong[0])} has {max(int(lengths[wrong[0]]), 0)} numbers, row 0 has {width}."
                )
            parts.append(column.flatten().to_numpy(zero_copy_only=False).reshape(len(batch), width))
            done += len(batch)
    return np.concatenate(parts)


# netCDF-4 and other HDF5


def _open_hdf5(source: Source, max_bytes: int) -> Store:
    facts: dict[str, ArrayFacts] = {}

    def note(name: str, item: Any) -> None:
        # visititems follows hard links alone, never one that leads out of the file.
        if isinstance(item, h5py.Dataset) and not _is_bare_dimension(item):
            facts[name] = _hdf5_facts(name, item)

    with _hdf5(source) as file:
        file.visititems(note)
    if len(facts) > _MOST_ARRAYS:
        raise InputError(f"{quoted(source.name)} holds {len(facts):,} arrays, more than {_MOST_ARRAYS:,}.")

    def load(name: str) -> NDArray[Any]:
        _refuse_problem(facts[name])
        with _hdf5(source) as file:
            item = file[name]
            size = math.prod(item.shape) * item.dtype.itemsize
            if size > max_bytes:
                raise InputError(
                    f"{quoted(name)} unpacks to {size:,} bytes, more than the limit of {max_bytes:,}. Save "
                    "float32, or fewer rows, or raise max_bytes."
                )
            if h5py.check_string_dtype(item.dtype) is not None:
                return np.asarray(item.asstr()[...]).astype(str)
            return np.asarray(item[...])

    return Store(source.name, "netcdf", facts, load)


@contextmanager
def _hdf5(source: Source) -> Iterator[Any]:
    with source.open() as stream:
        try:
            file = h5py.File(stream, "r")
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(
                f"{quoted(source.name)} begins like netCDF-4 but is damaged or cut short ({error}). Copy or "
                "export it again."
            ) from error
        with file:
            try:
                yield file
            except InputError:
                raise
            except (OSError, RuntimeError, ValueError, KeyError) as error:
                raise InputError(f"{quoted(source.name)} cannot be read to its end: {error}.") from error


def _hdf5_facts(name: str, item: Any) -> ArrayFacts:
    text = h5py.check_string_dtype(item.dtype) is not None
    problem = None
    if item.is_virtual or item.external:
        problem = f"{quoted(name)} is stored in another file, which is not followed. Save it in this one."
    elif "scale_factor" in item.attrs or "add_offset" in item.attrs:
        problem = f"{quoted(name)} is packed (scale_factor, add_offset). Save it as float32."
    elif item.shape is None or (not text and item.dtype.kind not in "iufb"):
        problem = f"{quoted(name)} holds {item.dtype}. Save plain numbers or text."
    return ArrayFacts(name, tuple(item.shape or ()), "text" if text else str(item.dtype), problem)


def _is_bare_dimension(item: Any) -> bool:
    """Tell netCDF's placeholders for dimensions without a coordinate from arrays."""
    said = item.attrs.get("NAME", b"")
    said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return said.startswith("This is a netCDF dimension but not a netCDF variable")


# What they share


def _refuse_problem(facts: ArrayFacts) -> None:
    if facts.problem is not None:
        raise InputError(facts.problem)


def _type_name(dtype: np.dtype[Any]) -> str:
    return "text" if dtype.kind in "US" else str(dtype)


@contextmanager
def _damaged(source: Source) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (
        pa.ArrowException,
        zipfile.BadZipFile,
        OSError,
        ValueError,
        EOFError,
        NotImplementedError,
    ) as error:
        raise InputError(
            f"{quoted(source.name)} is damaged or cut short (it has {source.size:,} bytes). Copy or export it "
            f"again. The reader says: {str(error).splitlines()[0] if str(error) else type(error).__name__}."
        ) from error
