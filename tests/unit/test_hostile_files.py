"""Files that are hostile or unlucky: each gives a message one can act on, or its one right reading."""

import datetime
import io
import json
import pickle
import struct
import zipfile
import zlib

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from leakviz.errors import InputError
from leakviz.predictions import inspect_predictions, read_predictions


def parquet(table=None, **options):
    table = {"p": [0.9, 0.1, 0.4], "y": [1, 0, 0]} if table is None else table
    stream = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), stream, **options)
    return stream.getvalue()


def feather(table, **options):
    stream = io.BytesIO()
    pyarrow.feather.write_feather(pa.table(table), stream, **options)
    return stream.getvalue()


def excel(*sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for i, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet{i + 1}")
        for row in rows:
            sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return stream.getvalue()


def claiming_zip(size=2_000_000_000):
    """Make an Excel file of a few hundred bytes whose directory claims that its sheet has `size` bytes."""
    data = zipped(xl__workbook_dot_xml=b"<workbook/>", xl__worksheets__sheet1_dot_xml=b"<worksheet/>")
    at = data.rindex(b"PK\x01\x02")  # the directory entry of the sheet: its unpacked size is at byte 24
    return data[: at + 24] + struct.pack("<I", size) + data[at + 28 :]


class Trap:
    """An object that, unpickled, would end the test run."""

    def __reduce__(self):
        return pytest.exit, ("a pickle was loaded",)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


MANY = b"p,y\n" + b"0.25,0\n0.75,1\n" * 200
HTML = b"<img src=x onerror=alert(1)>"

REFUSED = {
    # nothing, or almost nothing
    "empty": (b"", {}, ["'preds' is empty", "0 bytes"]),
    "blanks": (b"\n  \n\n", {}, ["is empty"]),
    "only a byte-order mark": (b"\xef\xbb\xbf", {}, ["is empty"]),
    "header only": (b"p,y\n", {}, ["a header ('p', 'y') and 0 rows"]),
    "header only, Parquet": (parquet({"p": pa.array([], "f8"), "y": pa.array([], "i1")}), {}, ["0 rows"]),
    "no header": (b"0.93,1\n0.12,0\n", {}, ["no header", "'0.93'", "names of the columns on top"]),
    "one column": (b"p\n0.5\n", {}, ["one column only, 'p'", "delimiter="]),
    "p without y": (b"p,age\n0.5,40.5\n0.6,41\n0.7,42\n", {}, ["no column can be y", "0 otherwise"]),
    # values of p
    "NaN": (b"p,y\n0.5,1\nNaN,0\nNaN,1\n", {}, ["2 of 3 rows, first row 2 ('NaN')", "missing='...'", "drop"]),
    "empty cell": (b"p,y\n0.5,1\n,0\n", {}, ["missing: p, column 'p', in 1 of 2 rows, first row 2 ('')"]),
    "NA words": (b"p,y\nNA,1\nnull,0\n#N/A,0\n.5,1\n", {}, ["3 of 4 rows, first row 1 ('NA')"]),
    "NaN, Parquet": (parquet({"p": [0.5, np.nan], "y": [0, 1]}), {}, ["1 of 2 rows, first row 2 ('nan')"]),
    "null, Parquet": (parquet({"p": [None, 0.5], "y": [0, 1]}), {}, ["1 of 2 rows, first row 1"]),
    "null, JSON lines": (b'{"p": null, "y": 1}\n{"p": 0.1, "y": 0}\n', {}, ["1 of 2 rows, first row 1"]),
    "key left out": (b'{"p": 0.1, "y": 1}\n{"p": 0.1}\n', {}, ["y, column 'y', in 1 of 2 rows, first row 2"]),
    "all of p missing": (b"p,y\n,1\n,0\n", {}, ["column 'p', is empty: all 2 rows"]),
    "no row with both": (b"p,y\n0.5,\n,0\n", {"missing": "drop"}, ["No row has both p and y"]),
    "missing refused": (b"p,y\n0.5,\n.1,0\n", {"missing": "refuse"}, ["1 of 2 rows, first row 1", "'drop'"]),
    "missing label": (b"p,y\n0.5,\n.1,0\n", {}, ["y, column 'y', in 1 of 2 rows, first row 1"]),
    "inf": (b"p,y\n0.5,1\n0.2,0\ninf,1\n", {}, ["infinite in 1 of 3 rows, first row 3 ('inf')"]),
    "-Infinity": (b"p,y\n-Infinity,1\n0.2,0\n", {}, ["infinite in 1 of 2 rows, first row 1"]),
    "too large to hold": (b"p,y\n1e999,1\n0.2,0\n", {}, ["infinite in 1 of 2 rows, first row 1 ('1e999')"]),
    "percentages": (
        b"p,y\n0.5,0\n97,1\n12,0\n",
        {},
        ["2 of 3 rows are outside", "row 2 (97)", "percent", "logit"],
    ),
    "percentages said to be probabilities": (
        b"p,y\n0.5,0\n97,1\n",
        {"scale": "probability"},
        ["1 of 2 rows are outside, first row 2 (97)", "scale='percent' or scale='logit'"],
    ),
    "more than 100 percent": (
        b"p,y\n0.5,0\n101,1\n",
        {"scale": "percent"},
        ["[0, 100]", "first row 2 (101)"],
    ),
    "logits": (b"p,y\n-2.5,0\n3.5,1\n", {}, ["goes from -2.5 to 3.5", "2 of 2 rows", "'logit' takes"]),
    "negative by rounding": (b"p,y\n0.1,0\n-1e-9,1\n", {}, ["1 of 2 rows", "row 2 (-1e-09)"]),
    "just above 1": (b"p,y\n0.1,0\n1.0000000000000002,1\n", {}, ["1 of 2 rows", "(1.0000000000000002)"]),
    "unknown scale": (b"p,y\n0.1,0\n", {"scale": "odds"}, ["scale='odds'", "probability, percent, logit"]),
    "huge integers": (b"p,y\n18446744073709551617,0\n0.5,1\n", {}, ["1 of 2 rows", "first row 1"]),
    "text in p": (b"p,y\n0.5,1\nn/k,0\nn/k,0\n", {}, ["not a number in 2 of 3 rows, first row 2 ('n/k')"]),
    "dates in p": (b"p,y\n2024-01-01,1\n2024-01-02,0\n", {}, ["not a number in 2 of 2 rows", "'2024-01-01'"]),
    "dates in p, Parquet": (
        parquet({"p": [datetime.date(2024, 1, 1)], "y": [1]}),
        {},
        ["not a number in 1 of 1 rows, first row 1 ('2024-01-01')"],
    ),
    "lists in p": (parquet({"p": [[0.1, 0.9]], "y": [1]}), {}, ["not a number in 1 of 1 rows", "[0.1, 0.9]"]),
    "a space inside a number": (b"p,y\n0. 5,1\n0.2,0\n", {}, ["1 of 2 rows, first row 1 ('0. 5')"]),
    "hexadecimal": (b"p,y\n0x1,1\n0.2,0\n", {}, ["1 of 2 rows, first row 1 ('0x1')"]),
    "underscore": (b"p,y\n0_1,1\n0.2,0\n", {}, ["1 of 2 rows, first row 1 ('0_1')"]),
    "single quotes": (b"p,y\n'0.5',1\n0.2,0\n", {}, ["not a number in 1 of 2 rows", "0.5"]),
    "currency": ("p,y\n€0.5,1\n0.2,0\n".encode(), {}, ["1 of 2 rows, first row 1 ('€0.5')"]),
    "one percent sign": (b"p,y\n0.5,1\n20%,0\n", {}, ["a percent sign in 1 of 2 rows, first row 2 ('20%')"]),
    "two percent signs": (b"p,y\n5%%,1\n20%,0\n", {}, ["not a number in 1 of 2 rows", "'5%%'"]),
    "percent signs, another scale": (b"p,y\n5%,1\n", {"scale": "logit"}, ["has percent signs", "'logit'"]),
    "comma and point": (
        b"p;y\n0,5;1\n0.2;0\n",
        {},
        ["a comma in 1 of 2 rows, first row 1", "one decimal mark"],
    ),
    "thousands": (b'p,y\n"1,234",1\n"5,678",0\n', {}, ["2 of 2 rows, first row 1 ('1,234')", "thousands"]),
    "thousands and point": (b'p,y\n"1,234.5",1\n0.5,0\n', {}, ["not a number in 1 of 2 rows", "'1,234.5'"]),
    # labels
    "three labels": (
        b"p,y\n0.5,benign\n0.2,malignant\n0.1,unknown\n0.1,benign\n",
        {},
        [
            "There are 3 labels",
            "stands against all the others",
            "'benign' (2 rows, first row 1)",
            "'unknown' (1 row, first row 3)",
        ],
    ),
    "0, 1 and 9": (b"p,y\n0.5,0\n0.2,1\n0.1,9\n", {}, ["3 labels", "'9' (1 row, first row 3)"]),
    "0, 1 and True": (b"p,y\n0.5,0\n0.2,1\n0.1,True\n", {}, ["3 labels", "'True'", "how they are written"]),
    "Yes, yes and no": (b"p,y\n0.5,Yes\n0.2,yes\n0.1,no\n", {}, ["3 labels", "how they are written"]),
    "case and control": (
        b"p,y\n0.5,control\n0.2,case\n",
        {},
        ["Which label of 'y' is the event", "positive='...'", "'control' (1 row, first row 1)"],
    ),
    "1 and 2": (b"p,y\n0.5,1\n0.2,2\n", {}, ["Which label of 'y' is the event"]),
    "-1 and 1": (b"p,y\n0.5,-1\n0.2,1\n", {}, ["Which label of 'y' is the event"]),
    "T and F": (b"p,y\n0.5,T\n0.2,F\n", {}, ["Which label of 'y' is the event"]),
    "one text label": (
        b"p,y\n0.5,control\n0.2,control\n",
        {},
        ["Which label of 'y'", "(2 rows, first row 1)"],
    ),
    "positive is not there": (
        b"p,y\n.5,a\n.2,b\n",
        {"positive": "A"},
        ["positive='A' is not in y", "'a' (1"],
    ),
    "labels like HTML": (b"p,y\n0.5," + HTML + b"\n0.2,<b>\n.1,c\n", {}, [repr(HTML.decode()), "3 labels"]),
    "hundreds of labels": (
        b"p,y\n" + b"".join(b"0.%d5,%d.5\n" % (i, i) for i in range(300)),
        {},
        ["y, column 'y', holds hundreds of different values"],
    ),
    "columns swapped": (
        b"y,p\n" + b"".join(b"0.%03d,%d\n" % (i, i % 2) for i in range(300)),
        {},
        ["swapped", "p='y', y='p'"],
    ),
    "text labels, columns swapped": (
        b"y,p\n0.3,yes\n.1,no\n",
        {},
        ["not a number in 2 of 2", "other way round"],
    ),
    # columns
    "duplicate names": (b"p,y,p\n0.5,1,0.4\n", {}, ["'p' stands 2 times", "columns 1 and 3", "Rename"]),
    "duplicate names, Parquet": (
        parquet(pa.table([pa.array([0.5]), pa.array([1]), pa.array([0.4])], names=["p", "y", "p"])),
        {},
        ["'p' stands 2 times"],
    ),
    "key twice in a row": (b'{"p": 0.1, "y": 1, "p": 0.9}\n', {}, ["line 1: the key 'p' stands twice"]),
    "no such column": (b"Risk,y\n0.5,1\n", {"p": "risk"}, ["p='risk': there is no such column", "'Risk'?"]),
    "the same column twice": (b"p,y\n0.5,1\n", {"p": "y", "y": "y"}, ["p and y are both column 'y'"]),
    "two class columns": (
        b"no,yes,y\n0.25,0.75,1\n0.6,0.4,0\n",
        {},
        ["'no', 'yes' add up to 1 on every row", "probabilities of the classes"],
    ),
    "classes 1, 10, 2": (
        b"1,10,2,y\n0.25,0.5,0.25,1\n0.5,0.25,0.25,0\n",
        {},
        ["'1', '10', '2' add up to 1", "'1': 0.25 to 0.5; '10': 0.25 to 0.5; '2'"],
    ),
    "hard predictions": (
        b"a,b\n1,1\n0,1\n",
        {},
        ["Which column is the outcome", "Which column is the predicted"],
    ),
    "another binary column": (
        b"risk,sex,outcome\n0.5,0,dead\n0.1,1,alive\n0.3,1,lost\n0.2,0,dead\n",
        {},
        ["Which column is the outcome", "needs two labels, or one", "'outcome': 3 different texts"],
    ),
    "a broken risk beside another number": (
        b"risk,bmi,y\n0.5,0.3,1\nn/k,0.4,0\n0.3,0.5,0\n",
        {},
        ["Which column is the predicted risk", "'risk': numbers and texts, such as 'n/k' in row 2"],
    ),
    # rows and text
    "ragged rows": (
        MANY + b"0.5\n0.1,0,7\n",
        {},
        ["2 of 402 rows do not have as many cells as the header (2)", "row 401 with 1: '0.5'"],
    ),
    "row names without a header": (b"p,y\na,0.5,1\nb,0.2,0\n", {}, ["2 of 2 rows", "row.names=FALSE"]),
    "an open quote": (b'p,y\n0.5,1\n0.5,"1\n0.4,0\n', {}, ["double quote is opened and never closed"]),
    "an open quote in a long file": (
        b'p,y\n0.5,"1\n' + b"0.4,0\n" * 2_000_000,
        {},
        ["one row is longer than 4 MB", "double quote"],
    ),
    "NUL bytes": (b"p,y\n" + b"0.5,1\n" * 1000 + b"0.5,\0\n", {}, ["line 1,002: a NUL byte"]),
    "NUL bytes at the start": (b"p,y\n0.5,\0\n", {}, ["byte 9 is NUL"]),
    "UTF-16 without a mark": ("p,y\n0.5,1\n".encode("utf-16-le"), {}, ["encoding='utf-16-le'"]),
    "latin-1": ("p,y\n0.5,gut\n0.4,bösartig\n".encode("latin-1"), {}, ["line 3: byte 0xF6", "cp1252"]),
    "UTF-8 cut short": ("p,y\n0.5,gut\n0.4,ö".encode()[:-1], {}, ["line 3: byte 0xC3 is not utf-8"]),
    "wrong encoding said": (
        "p,y\n.5,ö\n".encode("cp1252"),
        {"encoding": "utf-8"},
        ["Choose another encoding"],
    ),
    "unknown encoding": (b"p,y\n0.5,1\n", {"encoding": "klingon"}, ["encoding='klingon' is not known"]),
    "a comment on top": (b"# made by us, today\np,y\n0.5,1\n", {}, ["no column can be"]),
    # other formats, damaged or in disguise
    "pickle": (pickle.dumps({"p": Trap()}), {}, ["Python pickle", "never loads", "to_parquet"]),
    "pickle of protocol 0": (pickle.dumps({"p": Trap()}, protocol=0), {}, ["Python pickle"]),
    "pickle of protocol 2": (pickle.dumps(Trap(), protocol=2), {}, ["Python pickle"]),
    "pickle, compressed": (zlib.compress(pickle.dumps(Trap())), {}, ["zlib", "never loads pickles"]),
    "pickle of PyTorch": (zipped(archive__data_dot_pkl=b"x"), {}, ["never loads pickles"]),
    "pickle called csv": (pickle.dumps([1]), {"name": "preds.csv"}, ["'preds.csv' is a Python pickle"]),
    "object array": (npy(np.array([Trap()], dtype=object)), {}, ["NumPy array (.npy)", "CSV or Parquet"]),
    "npz": (npz(p=np.ones(3)), {}, ["NumPy archive (.npz)"]),
    "gzip": (b"\x1f\x8b\x08" + bytes(20), {}, ["gzip", "Decompress"]),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), {}, [".xls", ".xlsx or CSV"]),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(20), {}, ["HDF5"]),
    "Feather version 1": (b"FEA1" + bytes(20), {}, ["version 1", "write_feather"]),
    "zip of a CSV": (zipped(preds_dot_csv=MANY), {}, ["zip archive of 1 files", "Unpack"]),
    "web page": (b"<!DOCTYPE html>\n<html><body>Log in</body></html>", {}, ["web page", "login"]),
    "JSON array": (b'[{"p": 0.5, "y": 1}]', {}, ["one JSON array", "lines=True"]),
    "JSON object over lines": (
        b'{\n "p": [0.5],\n "y": [1]\n}\n',
        {},
        ["line 1 is not JSON", "one object per line"],
    ),
    "JSON lines cut short": (b'{"p": 0.5, "y": 1}\n{"p": 0.4, "y"', {}, ["line 2 is not JSON", "whole"]),
    "JSON, not an object": (b'{"p": 0.5, "y": 1}\n[0.4, 0]\n', {}, ["line 2 is not a JSON object"]),
    "JSON, deeply nested": (b'{"p": ' + b"[" * 100_000, {}, ["line 1 is not JSON"]),
    "JSON, endless integer": (b'{"p": ' + b"9" * 10_000 + b"}\n", {}, ["line 1 is not JSON"]),
    "truncated Parquet": (parquet()[:-20], {}, ["Parquet but is damaged or cut short", "again"]),
    "Parquet cut to its head": (parquet()[:5], {}, ["Parquet but is damaged"]),
    "Parquet with a broken page": (
        (lambda data: data[:4] + bytes(60) + data[64:])(parquet()),
        {},
        ["Parquet but is damaged"],
    ),
    "truncated Feather": (feather({"p": [0.5], "y": [1]})[:-30], {}, ["Feather but is damaged"]),
    "truncated Excel": (excel([["p", "y"], [0.5, 1]])[:-200], {}, ["Excel file but is damaged or cut short"]),
    "not the format asked for": (parquet(), {"format": "csv"}, ["is parquet by its content", "format='csv'"]),
    "unknown format": (b"p,y\n0.5,1\n", {"format": "sas"}, ["format='sas' is not known"]),
    # sizes
    "2 GB claimed by a tiny zip": (
        claiming_zip(),
        {},
        ["unpack to 2,000,000,011", "refused unopened", "sheet1.xml"],
    ),
    "a sheet of zeros": (
        zipped(xl__workbook_dot_xml=b"<workbook/>", xl__worksheets__sheet1_dot_xml=bytes(60_000_000)),
        {},
        ["unpack to 60,000,011", "refused unopened"],
    ),
    "Parquet that unpacks": (
        parquet({"p": np.arange(200_000.0) / 2e5, "y": np.zeros(200_000, "i1")}, use_dictionary=False),
        {"max_bytes": 1_700_000},
        ["unpacks to", "more than the limit of 1,700,000"],
    ),
    "Parquet of equal rows": (
        parquet({"p": np.zeros(2_000_000), "y": np.zeros(2_000_000, "i1")}),
        {"max_bytes": 1_000_000},
        ["claims 2,000,000 rows", "18,000,000 bytes"],
    ),
    "Feather that unpacks": (
        feather({"p": np.zeros(2_000_000), "y": np.zeros(2_000_000, "i1")}, compression="zstd"),
        {"max_bytes": 1_000_000},
        ["unpacks to 18,000,000", "more than the limit of 1,000,000"],
    ),
    "too large": (MANY, {"max_bytes": 1000}, ["2,804 bytes, more than the limit of 1,000", "max_bytes"]),
    "10,001 columns": (b",".join([b"a"] * 10_001) + b"\n", {}, ["10,001 columns"]),
    # Excel
    "two sheets": (
        excel([["p", "y"], [0.5, 1]], [["p", "y"], [0.4, 0]]),
        {},
        ["'sheet1', 'sheet2'", "sheet="],
    ),
    "no such sheet": (excel([["p", "y"], [0.5, 1]]), {"sheet": "x"}, ["no sheet 'x'", "'sheet1'"]),
    "empty Excel": (excel([]), {}, ["is empty: none of its 1 sheets"]),
    "a gap in Excel": (excel([["p", "y"], [0.5, 1], [], [0.2, 0]]), {}, ["1 of 3 rows, first row 2"]),
    "an Excel cell beside the table": (
        excel([["p", "y"], [0.5, 1, "note"]]),
        {},
        ["row 1 (sheet row 2)", "'note'"],
    ),
    "an Excel error": (
        excel([["p", "y"], ["#DIV/0!", 1], [0.5, 0]]),
        {},
        ["1 of 2 rows, first row 1 ('#DIV/0!')"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_file_is_refused_with_a_message_one_can_act_on(case):
    data, options, informative = REFUSED[case]
    with pytest.raises(InputError) as caught:
        read_predictions(data, **{"name": "preds", **options})
    message = str(caught.value)
    for part in informative:
        assert part in message
    assert "\n" not in message
    assert message.endswith(".")


# every file below has this one reading, whatever it looks like
P, Y = [0.75, 0.5, 0.0], [1, 0, 1]
ROWS = [["p", "y"], [0.75, 1], [0.5, 0], [0, 1]]

READ = {
    "plain": (b"p,y\n0.75,1\n0.5,0\n0,1\n", {}),
    "no newline at the end": (b"p,y\n0.75,1\n0.5,0\n0,1", {}),
    "newlines of Windows": (b"p,y\r\n0.75,1\r\n0.5,0\r\n0,1\r\n", {}),
    "newlines of old Macs": (b"p,y\r0.75,1\r0.5,0\r0,1\r", {}),
    "blank lines": (b"\np,y\n\n0.75,1\n\n0.5,0\n0,1\n\n\n", {}),
    "tabs": (b"p\ty\n0.75\t1\n0.5\t0\n0\t1\n", {"format": "tsv"}),
    "bars": (b"p|y\n0.75|1\n0.5|0\n0|1\n", {}),
    "a delimiter of one's own": (b"p~y\n0.75~1\n0.5~0\n0~1\n", {"delimiter": "~"}),
    "semicolon and decimal comma": (b"p;y\n0,75;1\n0,5;0\n0;1\n", {}),
    "decimal comma with three places": (b"p;y\n0,750;1\n0,500;0\n0,000;1\n", {}),
    "quoted decimal comma": (b'p,y\n"0,75",1\n"0,5",0\n"0,0",1\n', {}),
    "sep= of Excel": (b"sep=;\r\np;y\r\n0,75;1\r\n0,5;0\r\n0;1\r\n", {}),
    "byte-order mark": (b"\xef\xbb\xbfp,y\n0.75,1\n0.5,0\n0,1\n", {}),
    "byte-order mark and quotes": (b'\xef\xbb\xbf"p","y"\n"0.75","1"\n"0.5","0"\n"0","1"\n', {}),
    "UTF-16": ("p,y\n0.75,1\n0.5,0\n0,1\n".encode("utf-16"), {}),
    "UTF-16 said": ("p,y\n0.75,1\n0.5,0\n0,1\n".encode("utf-16-be"), {"encoding": "utf-16-be"}),
    "latin-1 said": (
        "p,y\n.75,bös\n.5,gut\n0,bös\n".encode("latin-1"),
        {"encoding": "latin-1", "positive": "bös"},
    ),
    "spaces": (b" p , y\n 0.75 , 1\n 0.5,0 \n0  ,1\n", {}),
    "numbers written oddly": (b"p,y\n+7.5e-1,01\n.5,0.0\n0.,1e0\n", {}),
    "negative zero": (b"p,y\n0.75,1\n0.5,-0\n-0.0,1\n", {}),
    "percent signs": (b"p,y\n75%,1\n50 %,0\n0%,1\n", {}),
    "percentages": (b"p,y\n75,1\n50,0\n0,1\n", {"scale": "percent"}),
    "large names": (b"P,Y\n0.75,1\n0.5,0\n0,1\n", {}),
    "names one cannot know": (b"risk,outcome\n0.75,1\n0.5,0\n0,1\n", {}),
    "columns the other way round": (b"y,p\n1,0.75\n0,0.5\n1,0\n", {}),
    "other columns beside p and y": (b"age,sex,p,y\n3,m,0.75,1\n4,f,0.5,0\n5,f,0,1\n", {}),
    "an index without a name": (b",risk,died\n17,0.75,1\n4,0.5,0\n99,0,1\n", {}),
    "an index of texts": (b",risk,died\nann,0.75,1\nbob,0.5,0\ncy,0,1\n", {}),
    "an index with a name": (b"id,risk,died\n0,0.75,1\n1,0.5,0\n2,0,1\n", {}),
    "identity numbers": (b"id,risk,died\n90210,0.75,1\n10115,0.5,0\n75001,0,1\n", {}),
    "duplicate names elsewhere": (b"p,a,a,y\n0.75,1,2,1\n0.5,1,2,0\n0,1,2,1\n", {}),
    "true and false": (b"p,y\n0.75,TRUE\n0.5,FALSE\n0,TRUE\n", {}),
    "case and control": (b"p,y\n0.75,case\n0.5,control\n0,case\n", {"positive": "case"}),
    "yes and no": (b"p,y\n0.75,yes\n0.5,no\n0,yes\n", {"positive": "yes"}),
    "1 and 2": (b"p,y\n0.75,2\n0.5,1\n0,2\n", {"positive": 2}),
    "1.0 means 1": (b"p,y\n0.75,1\n0.5,0\n0,1\n", {"positive": "1.0"}),
    "polarity turned round": (b"p,y\n0.75,0\n0.5,1\n0,0\n", {"positive": 0}),
    "labels like HTML": (b"p,y\n.75," + HTML + b"\n.5,<b>\n0," + HTML + b"\n", {"positive": HTML.decode()}),
    "labels with the delimiter": (b'p,y\n.75,"a, b"\n.5,"c ""d"""\n0,"a, b"\n', {"positive": "a, b"}),
    "a newline in a cell": (b'note,p,y\n"a\nb",.75,1\n"c",.5,0\n"d\n\ne",0,1\n', {}),
    "missing dropped": (b"p,y\n0.75,1\nNA,1\n0.5,0\n0.5,\n0,1\n", {"missing": "drop"}),
    "missing elsewhere": (b"p,y,age\n0.75,1,\n0.5,0,NA\n0,1,\n", {}),
    "two class columns": (b"no,yes,y\n0.25,0.75,1\n0.5,0.5,0\n1,0,1\n", {"p": "yes"}),
    "a name that lies": (parquet({"p": P, "y": Y}), {"name": "preds.csv"}),
    "Parquet": (parquet({"p": P, "y": Y}), {}),
    "Parquet in float32": (parquet({"p": pa.array(P, "f4"), "y": pa.array(Y, "f4")}), {}),
    "Parquet in decimals": (
        parquet({"p": pa.array([75, 50, 0]).cast(pa.decimal128(30, 2)), "y": Y}),
        {"scale": "percent"},
    ),
    "Parquet with booleans": (parquet({"p": P, "y": [True, False, True]}), {}),
    "Parquet with texts": (parquet({"p": ["0.75", "0.5", "0"], "y": ["1", "0", "1"]}), {}),
    "Parquet with categories": (
        parquet({"p": P, "y": pa.array(["b", "a", "b"]).dictionary_encode()}),
        {"positive": "b"},
    ),
    "Parquet with a list beside": (parquet({"v": [[1], [2], [3]], "p": P, "y": Y}), {"p": "p", "y": "y"}),
    "Feather": (feather({"p": P, "y": Y}), {}),
    "Feather, uncompressed": (feather({"p": P, "y": Y}, compression="uncompressed"), {}),
    "Feather with categories": (
        feather({"p": P, "y": pa.array(["b", "a", "b"]).dictionary_encode()}),
        {"positive": "b"},
    ),
    "JSON lines": (
        b'{"p": 0.75, "y": 1}\n{"p": 0.5, "y": 0}\n\n{"y": true, "p": 0}\n'.replace(b"true", b"1"),
        {},
    ),
    "JSON lines with booleans": (b'{"p":0.75,"y":true}\n{"p":0.5,"y":false}\n{"p":0,"y":true}', {}),
    "JSON lines with a late key": (b'{"p":0.75,"y":1}\n{"p":0.5,"y":0}\n{"p":0,"y":1,"note":[1]}', {}),
    "Excel": (excel(ROWS), {}),
    "Excel with an empty sheet": (excel(ROWS, []), {}),
    "Excel with blank rows": (excel([[], [], *ROWS, [], [None, None]]), {}),
    "Excel, the second sheet": (excel([["p", "y"], [0.1, 0]], ROWS), {"sheet": "sheet2"}),
}


@pytest.mark.parametrize("case", READ)
def test_file_has_its_one_right_reading(case):
    data, options = READ[case]
    predictions = read_predictions(data, **{"name": "preds", **options})
    np.testing.assert_array_equal(predictions.p, P)
    np.testing.assert_array_equal(predictions.y, Y)
    assert not np.signbit(predictions.p).any()


def test_one_row_can_be_read():
    predictions = read_predictions(b"p,y\n0.5,1\n")
    assert (predictions.n, predictions.p[0], predictions.y[0]) == (1, 0.5, 1)


@pytest.mark.parametrize(("label", "y"), [(b"0", 0), (b"1", 1), (b"true", 1), (b"False", 0)])
def test_one_class_can_be_read_and_is_said(label, y):
    predictions = read_predictions(b"p,y\n0.5," + label + b"\n0.25," + label + b"\n")
    assert predictions.y.tolist() == [y, y]
    assert "one label only" in predictions.decided[-1]


def test_one_label_is_not_mistaken_for_the_outcome_beside_it():
    """An outcome that never happens is no reason to read the treatment as the outcome."""
    found = inspect_predictions(b"risk,treated,died\n0.5,1,0\n0.4,0,0\n0.3,1,0\n")
    assert found.candidates["y"] == ("treated", "died")
    assert [question.role for question in found.questions] == ["y", "p"]


def test_logits_are_turned_into_probabilities_only_when_said():
    predictions = read_predictions(b"p,y\n0,1\n-800,0\n2,1\n40,0\n", scale="logit")
    np.testing.assert_allclose(predictions.p, [0.5, 0, 1 / (1 + np.exp(-2)), 1], rtol=1e-15)
    assert "2 logits are so large that p is exactly 0 or 1" in predictions.decided[-1]


def test_what_is_bad_far_down_is_found():
    """Nothing is concluded from the first rows: the only bad cell is in the last of 700,000."""
    data = b"p,y\n" + b"0.25,1\n0.75,0\n" * 350_000
    for last, message in [
        (b"2.5,1\n", "1 is outside, first row 700,001 (2.5), from 0.25 to 2.5 in all"),
        (b"NA,1\n", "1 of 700,001 rows, first row 700,001 ('NA')"),
        (b"0.5,2\n", "'2' (1 row, first row 700,001)"),
        (b"0.5\n", "1 of 700,001 rows do not have as many cells as the header (2). The first is row 700,001"),
        (b"x,1\n", "not a number in 1 of 700,001 rows, first row 700,001 ('x')"),
    ]:
        with pytest.raises(InputError) as caught:
            read_predictions(data + last)
        assert message in str(caught.value)


def test_label_that_appears_late_keeps_its_row():
    data = b"p,y\n" + b"0.5,0\n" * 900_000 + b"0.5,1\n"
    predictions = read_predictions(data)
    assert (predictions.n, predictions.y.sum(), predictions.y[-1]) == (900_001, 1, 1)


def test_one_long_text_multiplied_by_a_dictionary_is_not_unpacked():
    """A megabyte of text on 20,000 rows would be 20 GB if it were written out."""
    note = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, "i4")), ["x" * 1_000_000])
    table = {"p": np.linspace(0, 1, 20_000), "y": np.arange(20_000) % 2, "note": note}
    for data in (parquet(table), parquet({**table, "note": note}, store_schema=False), feather(table)):
        found = inspect_predictions(data)
        assert found.read().n == 20_000
        assert len(found.preview[0][2]) == 200


def test_damaged_files_never_give_a_number_or_another_error():
    """Cut each format anywhere, or overwrite bytes anywhere: a message or the same numbers, nothing else."""
    rng = np.random.default_rng(0)
    p, y = np.linspace(0, 1, 500), np.arange(500) % 2
    rows = [["p", "y"], *([float(a), int(b)] for a, b in zip(p[:40], y[:40], strict=True))]
    lines = "".join(json.dumps({"p": a, "y": b}) + "\n" for a, b in zip(p.tolist(), y.tolist(), strict=True))
    for data in (parquet({"p": p, "y": y}), feather({"p": p, "y": y}), excel(rows), lines.encode()):
        for _ in range(12):
            cut = data[: rng.integers(1, len(data))]
            try:
                predictions = read_predictions(cut)
            except InputError:
                continue
            assert cut[:1] == b"{"  # whole lines of text are whole
            np.testing.assert_array_equal(predictions.p, p[: predictions.n])
        for _ in range(25):
            broken = bytearray(data)
            at = int(rng.integers(0, len(data) - 8))
            broken[at : at + 4] = rng.bytes(4)
            with_message_or_without(bytes(broken))


def with_message_or_without(data):
    try:
        predictions = read_predictions(data)
    except InputError:
        return
    assert ((predictions.p >= 0) & (predictions.p <= 1)).all()
    assert set(predictions.y.tolist()) <= {0, 1}


def test_a_few_values_outside_are_not_taken_for_logits():
    """Rounding leaves 1.0000001; among logits of risks 99 in 100 do not lie from 0 to 1."""
    rows = [f"{i / 300},{i % 2}" for i in range(300)]
    rows[7], rows[20] = "-0.0001,1", "1.0000001,0"
    data = ("p,y\n" + "\n".join(rows)).encode()
    for scale in (None, "probability"):
        with pytest.raises(InputError, match=r"2 .*outside.*first row 8 \(-0.0001\)") as caught:
            read_predictions(data, scale=scale)
        assert "logit'" not in str(caught.value)
    assert read_predictions(data, scale="logit").n == 300


def test_blank_lines_are_told():
    predictions = read_predictions(b"p,y\r\n0.5,1\r\n\r\n\r\n0.2,0\r\n0.7,1\r\n\r\n0.1,0\r\n\r\n\r\n")
    assert predictions.n == 4
    assert (
        "3 blank lines left out, the first at line 3; rows are counted without them." in predictions.decided
    )
    assert not any("blank" in said for said in read_predictions(b"p,y\n0.5,1\n0.2,0\n\n").decided)


def test_a_comment_above_the_header_is_called_one():
    with pytest.raises(InputError, match="begins with a comment, '# made by a tool'"):
        read_predictions(b"# made by a tool\np,y\n0.5,1\n0.2,0\n")
