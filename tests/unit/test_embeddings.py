"""Files of features: the same in every format, asked about where a role is open, refused where hostile."""

import io
import pickle
import struct
import zipfile

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr

from leakviz.embeddings import inspect_embeddings, read_embeddings
from leakviz.errors import InputError

WIDTH = 4


class Trap:
    """What must never be unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    found = {
        role: rng.normal(size=(n, WIDTH)).astype(np.float32)
        for role, n in (("fit", 12), ("id_test", 6), ("ood_test", 5))
    }
    found["fit_labels"] = np.array(["ant", "bee", "cat"] * 4)
    found["id_test_labels"] = np.array(["ant", "bee"] * 3)
    return found


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def parquet(frame):
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


def hdf5(write):
    file = io.BytesIO()
    with h5py.File(file, "w") as store:
        write(store)
    return file.getvalue()


def one_table(tables, *, lists):
    """Return a frame with a row per example, as people keep features beside what belongs to them."""
    roles = np.repeat(["fit", "id_test", "ood_test"], [12, 6, 5])
    rows = np.concatenate([tables[role] for role in ("fit", "id_test", "ood_test")])
    labels = np.concatenate([tables["fit_labels"], tables["id_test_labels"], ["cat"] * 5])
    columns = {"embedding": list(rows)} if lists else {f"f{i}": rows[:, i] for i in range(WIDTH)}
    frame = pd.DataFrame({"id": np.arange(len(rows)), **columns, "role": roles, "label": labels})
    return frame.sample(frac=1, random_state=1).sort_values("role", kind="stable")


def netcdf(tables, tmp_path):
    data = xr.Dataset(
        {
            role: ((f"{role.removesuffix('_labels')}_row", "feature")[: values.ndim], values)
            for role, values in tables.items()
        }
    )
    data.to_netcdf(tmp_path / "emb.nc", engine="h5netcdf")
    return tmp_path / "emb.nc"


def test_every_format_gives_the_same(tables, tmp_path):
    expected = read_embeddings(npz(**tables), name="emb.npz", ood_class="cat")
    for role, values in tables.items():
        assert getattr(expected, role).tolist() == values.tolist()
    assert expected.ood_class == ("cat",)
    for other in (
        read_embeddings(netcdf(tables, tmp_path), ood_class="cat"),
        read_embeddings({role: npy(values) for role, values in tables.items()}, ood_class=["cat"]),
    ):
        assert other.content_hash == expected.content_hash
        assert list(other.arguments()) == [
            "fit",
            "id_test",
            "ood_test",
            "fit_labels",
            "id_test_labels",
            "ood_class",
        ]
    for lists in (False, True):
        found = read_embeddings(parquet(one_table(tables, lists=lists)), ood_class="cat")
        # The rows of a role come in the order of the file, each with its own label.
        for role in ("fit", "id_test"):
            both = {
                tuple(row): label
                for row, label in zip(tables[role].tolist(), tables[f"{role}_labels"], strict=True)
            }
            rows = getattr(found, role)
            assert rows.dtype == np.float32
            assert len(rows) == len(tables[role])
            assert [both[tuple(row)] for row in rows.tolist()] == getattr(found, f"{role}_labels").tolist()
        assert "Left out: 'id', '__index_level_0__'." in found.decided


def test_arrays_are_read_only_and_said(tables):
    found = read_embeddings(npz(**tables), name="emb.npz")
    with pytest.raises(ValueError, match="read-only"):
        found.fit[0] = 0
    assert found.decided == (
        "fit, id_test, ood_test, fit_labels and id_test_labels are the arrays of that name.",
    )
    assert found.ood_class is None


def test_roles_are_asked_for_and_answered(tables):
    other = {
        "train": tables["fit"],
        "valid": tables["id_test"],
        "far": tables["ood_test"],
        "y": tables["fit_labels"],
    }
    found = inspect_embeddings(npz(**other), name="emb.npz")
    assert [question.role for question in found.questions] == ["fit", "id_test", "ood_test"]
    assert [option.value for option in found.questions[0].options] == ["train", "valid", "far"]
    assert found.questions[0].options[0].text == "'train', 12 rows of 4 features (float32)"
    assert found.candidates["fit_labels"] == ("y",)
    with pytest.raises(InputError, match=r"Say fit='...': 'train', 12 rows"):
        found.read()
    found = found.answer(fit="train", id_test="valid")
    assert [option.value for option in found.questions[0].options] == ["far"]
    found = found.answer(ood_test="far", fit_labels="y", ood_class="cat")
    assert found.candidates["ood_class"] == ("ant", "bee", "cat")
    assert found.read().arrays == {"fit": "train", "id_test": "valid", "ood_test": "far", "fit_labels": "y"}
    assert (
        found.answer(fit="y").problem
        == "'emb.npz': fit, 'y', must have the shape (rows, features), got (12,)."
    )
    assert found.answer(fit="far").problem.startswith("'emb.npz': fit and ood_test are both 'far'")
    assert found.answer(ood_test=None).questions[0].role == "ood_test"
    with pytest.raises(InputError, match="no question 'model'"):
        found.answer(model="x")


def test_test_rows_are_split_by_the_designated_class(tables):
    labels = np.array([1, 2, 1, 3, 2, 1])
    arrays = {**tables, "id_test_labels": labels, "fit_labels": np.arange(12) % 3 + 1}
    del arrays["ood_test"]
    found = read_embeddings(npz(**arrays), ood_class="2")  # as a command line says it
    assert found.ood_class == (2,)
    assert found.ood_test.tolist() == tables["id_test"][labels == 2].tolist()
    assert found.id_test.tolist() == tables["id_test"][labels != 2].tolist()
    assert found.id_test_labels.tolist() == [1, 1, 3, 1]
    assert (
        found.decided[-1]
        == "The OOD rows are those test rows whose label is 2; the others are the ID test rows."
    )
    assert read_embeddings(npz(**arrays, ood_class=[2, 3])).ood_class == (2, 3)
    with pytest.raises(InputError, match="no test row has the label 9"):
        read_embeddings(npz(**arrays), ood_class=9)


def test_progress_counts_numbers(tables):
    seen = []
    read_embeddings(npz(**tables), progress=lambda done, total: seen.append((done, total)))
    total = sum(values.size for values in tables.values())
    assert seen[0] == (48, total)
    assert seen[-1] == (total, total)


def test_names_are_text(tables):
    name = "<img src=x onerror=alert(1)>"
    found = inspect_embeddings(npz(**{name: tables["fit"]}), name=name)
    assert found.name == name
    assert found.arrays[0].name == name


# Content that cannot be used


def test_what_is_wrong_inside_names_the_array(tables):
    def problem(**new):
        with pytest.raises(InputError) as error:
            read_embeddings(npz(**{**tables, **new}), name="emb.npz")
        return str(error.value)

    rows = tables["fit"].copy()
    rows[[4, 6], 2] = np.nan
    assert "fit is missing (nan) in 2 of 12 rows; first: row 4, column 2" in problem(fit=rows)
    with np.errstate(over="ignore"):
        assert "float16 ends at 65504" in problem(fit=(tables["fit"] * 1e6).astype(np.float16))
    assert "ood_test has 3 features and the fit set 4" in problem(ood_test=tables["ood_test"][:, :3])
    assert "fit_labels has 11 labels and fit has 12 rows" in problem(fit_labels=tables["fit_labels"][:11])
    early = inspect_embeddings(npz(**{**tables, "id_test_labels": tables["id_test_labels"][:5]}))
    assert "id_test_labels has 5 labels and id_test has 6 rows" in early.problem
    answered = inspect_embeddings(npz(**tables, y=np.arange(11))).answer(fit_labels="y")
    assert "fit_labels has 11 labels and fit has 12 rows" in answered.problem
    assert answered.answer(fit_labels="fit_labels").problem is None
    assert "must have the shape (rows, features), got (12,)" in problem(fit=tables["fit"][:, 0])
    assert "fit_labels is missing or no whole number" in problem(fit_labels=np.full(12, np.nan))


def test_object_arrays_are_refused_unread_with_how_to_save_them(tables):
    for role, told in (
        ("fit", "np.stack(list(rows)).astype('float32')"),
        ("fit_labels", "labels.astype(str)"),
    ):
        trapped = np.array([Trap()] * 12, dtype=object)
        data = io.BytesIO()
        np.savez(data, **{**tables, role: trapped if role == "fit_labels" else trapped[:, None]})
        with pytest.raises(InputError, match="never loads pickles") as error:
            read_embeddings(data)
        assert told in str(error.value)


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return file.getvalue()


def lying_npy(shape):
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def linked(store):
    store["fit"] = h5py.ExternalLink("elsewhere.h5", "/fit")
    store["id_test"] = np.ones((3, 2))


def elsewhere(store):
    store.create_dataset("fit", (3, 2), "f4", external=[("somebody_elses_file", 0, 24)])


def packed(store):
    store["fit"] = np.ones((3, 2), dtype=np.int16)
    store["fit"].attrs["scale_factor"] = 0.1


HOSTILE = {
    "pickle": (pickle.dumps({"fit": 1}), "is a Python pickle"),
    "torch": (zipped(archive__data_dot_pkl=b"\x80\x02."), "is a Python pickle"),
    "zip": (zipped(readme_dot_txt=b"hello"), "but no .npz of NumPy"),
    "text": (b"f0,f1\n1,2\n", "no file of arrays that is known"),
    "classic netCDF": (b"CDF\x01" + bytes(40), "is classic netCDF. Save netCDF-4"),
    "one array": (npy(np.ones((3, 2))), "is one array, and an audit needs three"),
    "records": (npz(fit=np.zeros(3, dtype=[("a", "f4")])), "holds records with named fields"),
    "cut npz": (npz(fit=np.ones((99, 9)))[:400], "damaged or cut short"),
    "cut parquet": (b"PAR1" + bytes(50), "damaged or cut short"),
    "cut netCDF": (hdf5(packed)[:600], "damaged or cut short"),
    "shape that is not there": (zipped(fit_dot_npy=lying_npy((10**9, 10**3))), "more than its"),
    "header that is code": (
        zipped(fit_dot_npy=b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os').abort()".ljust(32)),
        "damaged",
    ),
    "link out of the file": (hdf5(linked), "which is no array of the file"),
    "data out of the file": (hdf5(elsewhere), "stored in another file"),
    "packed": (hdf5(packed), r"is packed \(scale_factor"),
    "empty": (b"", "it has 0 bytes"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_and_foreign_files_are_refused_with_what_to_do(case):
    data, message = HOSTILE[case]
    with pytest.raises(InputError, match=message):
        read_embeddings(data, fit="fit", id_test="id_test", ood_test="id_test")


def test_sizes_are_limited_before_anything_is_unpacked(tables):
    zeros = io.BytesIO()
    np.savez_compressed(zeros, fit=np.zeros((20_000, 100)))
    assert zeros.getbuffer().nbytes < 100_000
    with pytest.raises(InputError, match=r"unpacks to 16,0\d\d,\d\d\d, more than the limit of 1,000,000"):
        read_embeddings(zeros, max_bytes=1_000_000)

    def compressed(store):
        for role in ("fit", "id_test", "ood_test"):
            store.create_dataset(role, (20_000, 100), "f8", compression="gzip")

    with pytest.raises(
        InputError, match="'fit' unpacks to 16,000,000 bytes, more than the limit of 1,000,000"
    ):
        read_embeddings(hdf5(compressed), max_bytes=1_000_000)
    frame = pd.DataFrame({"role": "fit", **{f"f{i}": np.zeros(50_000) for i in range(9)}})
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame), file, use_dictionary=False, compression="zstd")
    with pytest.raises(InputError, match="more than the limit of 1,000,000"):
        read_embeddings(file.getvalue(), max_bytes=1_000_000)
    with pytest.raises(InputError, match="float16 or float32, or fewer rows, or raise max_bytes"):
        read_embeddings(npz(**tables), max_bytes=100)


def test_parquet_says_what_it_lacks(tables):
    frame = one_table(tables, lists=False)

    def problem(frame, **options):
        with pytest.raises(InputError) as error:
            read_embeddings(parquet(frame), name="emb.parquet", **options)
        return str(error.value)

    assert "name it 'role', with the values fit, id_test and ood_test" in problem(frame.drop(columns="role"))
    assert "say role_column='...'" in problem(frame.assign(split=frame.role))
    assert "role_column is 'part', which is no column" in problem(frame, role_column="part")
    assert "no column of floating-point numbers" in problem(frame[["role", "label", "id"]])
    holed = frame.assign(role=frame.role.mask(np.arange(len(frame)) == 2))
    assert "column 'role', is missing in 1 of 23 rows; first: row 2" in problem(holed)
    holed = frame.assign(f1=frame.f1.mask(frame.role == "fit"))
    assert "fit is missing (nan) in 12 of 12 rows; first: row 0, column 1" in problem(holed)
    assert "Say id_test='...'" in problem(frame[frame.role == "fit"])
    lists = one_table(tables, lists=True)
    lists["embedding"] = [row[: 3 if i == 7 else 4] for i, row in enumerate(lists["embedding"])]
    assert "has lists of different lengths: row 7 has 3 numbers, row 0 has 4" in problem(lists)
    renamed = frame.rename(columns={"role": "part", "label": "kind"})
    found = read_embeddings(parquet(renamed), role_column="part", label_column="kind")
    assert sorted(found.fit_labels.tolist()) == sorted(tables["fit_labels"].tolist())
