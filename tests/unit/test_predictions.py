"""Reading predictions: what is decided, what is asked, and how the answers are taken."""

import io
import os
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leakviz.errors import InputError
from leakviz.predictions import MAX_BYTES, inspect_predictions, read_predictions
from leakviz.predictions.columns import BAD, COMMA, GROUPED, MISSING, PERCENT, Column, number_text

SMALL = b"p,y\n0.75,1\n0.5,0\n"


def roles(found):
    return [question.role for question in found.questions]


def options(found, role):
    return [o.value for question in found.questions if question.role == role for o in question.options]


@pytest.fixture
def written(tmp_path):
    def write(name, data):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


# ---- ways to bring a file


def test_path_bytes_and_file_object_give_the_same(written):
    path = written("preds.csv", SMALL)
    with path.open("rb") as stream:
        stream.seek(3)
        brought = [read_predictions(f) for f in (path, str(path), SMALL, bytearray(SMALL), stream)]
        assert not stream.closed
    assert {b.content_hash for b in brought} == {brought[0].content_hash}
    assert [b.name for b in brought] == ["preds.csv", "preds.csv", "the upload", "the upload", "preds.csv"]


def test_file_object_without_a_name_is_called_as_said():
    assert read_predictions(io.BytesIO(SMALL), name="mine").name == "mine"


@pytest.mark.parametrize(
    ("file", "informative"),
    [
        ("no/such.csv", "there is no file 'no/such.csv'"),
        (os.curdir, "is not a file"),
        (3, "file is a int"),
        (io.StringIO("p,y\n"), "mode 'rb'"),
    ],
)
def test_what_is_no_file_is_refused(file, informative):
    with pytest.raises(InputError, match=informative):
        read_predictions(file)


def test_content_hash_depends_on_the_numbers_alone():
    stream = io.BytesIO()
    pq.write_table(pa.table({"p": [0.75, 0.5], "y": [True, False], "more": [1, 2]}), stream)
    same = read_predictions(stream.getvalue()).content_hash
    assert same == read_predictions(b"outcome;risk\nb;0,75\na;0,5\n", positive="b").content_hash
    assert same != read_predictions(SMALL, positive=0).content_hash
    assert len(same) == 64


def test_arrays_have_their_types_and_cannot_be_changed():
    predictions = read_predictions(b"p,y,fold\n0.75,1,a\n0.5,0,b\n", fold="fold")
    assert (predictions.p.dtype, predictions.y.dtype, predictions.folds.dtype) == ("f8", "i1", "i4")
    for array in (predictions.p, predictions.y, predictions.folds):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_reading_twice_from_one_inspection_gives_the_same():
    """The table behind an inspection is not changed by reading from it."""
    found = inspect_predictions(b"p,y\n" + b"".join(b"%d.5,%d\n" % (i, i % 2) for i in range(99)))
    half = found.answer(scale="percent").read()
    again = found.answer(scale="percent").read()
    assert half.content_hash == again.content_hash
    assert half.p[-1] == 0.985


# ---- columns


def test_names_p_and_y_settle_the_columns():
    found = inspect_predictions(b"a,b,P,y\n0.1,1,0.3,1\n0.2,0,0.4,0\n")
    assert (found.questions, found.answers["p"], found.answers["y"]) == ((), "P", "y")
    assert "p is column 'P', by its name." in found.decided


def test_only_reading_is_taken_and_said():
    found = inspect_predictions(b"id,risk,outcome\n5,0.3,1\n6,0.4,0\n7,.5,0\n")
    assert found.questions == ()
    assert found.decided[1:] == (
        "y is column 'outcome': no other column can be.",
        "p is column 'risk': no other column can be.",
    )


def test_another_column_that_could_be_meant_opens_a_question():
    found = inspect_predictions(b"risk,old,outcome\n0.3,0.2,1\n0.4,0.5,0\n")
    assert roles(found) == ["p"]
    assert options(found, "p") == ["risk", "old"]
    assert found.answer(p="old").read().p.tolist() == [0.2, 0.5]


def test_column_that_could_be_the_outcome_with_a_third_label_opens_a_question():
    found = inspect_predictions(b"risk,sex,status\n0.3,1,dead\n0.4,0,lost\n0.5,0,alive\n")
    assert roles(found) == ["y", "p"]
    assert options(found, "y") == ["sex"]
    assert options(found, "p") == ["risk", "sex"]


def test_class_columns_are_offered_in_the_order_of_the_file():
    found = inspect_predictions(b"1,10,2,label\n0.2,0.3,0.5,10\n0.6,0.3,0.1,2\n")
    assert options(found, "p") == ["1", "10", "2"]
    assert "add up to 1" in next(q.text for q in found.questions if q.role == "p")


def test_candidates_and_facts_are_those_of_the_whole_file():
    """The first 5,000 rows say integer, two labels, no gap; the rows below say otherwise."""
    rows = b"1,a,0.5\n0,b,0.5\n" * 2500 + b"0.25,c,\n"
    found = inspect_predictions(b"score,group,risk\n" + rows)
    score, group, risk = found.columns
    assert (score.low, score.high, score.kind) == (0, 1, "number")
    assert group.labels == (("a", 2500), ("b", 2500), ("c", 1))
    assert (risk.n, risk.missing) == (5000, 1)
    assert found.candidates["p"] == ("score", "risk")
    assert found.candidates["y"] == ("group",)  # no fractions; of three labels, one can be named
    assert found.candidates["fold"] == ("score", "group")


def test_preview_is_the_first_rows_as_plain_text():
    found = inspect_predictions(b"p,y,note\n" + b'0.5,1,"<b>x</b>"\n,0,\n' * 9)
    assert len(found.preview) == 8
    assert found.preview[:2] == (("0.5", "1", "<b>x</b>"), ("", "0", ""))
    assert (found.n, found.format, found.delimiter, found.encoding) == (18, "csv", ",", "utf-8")


def test_decimal_mark_is_that_of_p():
    assert inspect_predictions(b"p;y\n0,5;1\n").decimal == ","
    assert inspect_predictions(b"p;y\n0.5;1\n").decimal == "."
    assert inspect_predictions(b"p;y\n1;1\n").decimal is None


def test_problem_is_told_without_raising():
    found = inspect_predictions(b"p,y\nx,1\n0.5,0\n", name="mine.csv")
    assert found.problem.startswith(
        "'mine.csv': p, column 'p': not a number in 1 of 2 rows, first row 1 ('x')"
    )
    with pytest.raises(InputError, match="not a number"):
        found.read()


# ---- questions and answers


def test_questions_are_answered_one_by_one():
    found = inspect_predictions(b"risk,age,died\n10,40,yes\n,50,no\n30,60,no\n")
    assert roles(found) == ["y", "p"]
    found = found.answer(p="risk", y="died")
    assert roles(found) == ["scale", "positive", "missing"]
    found = found.answer(positive="yes").answer(scale="percent")
    assert roles(found) == ["missing"]
    predictions = found.answer(missing="drop").read()
    assert (predictions.p.tolist(), predictions.y.tolist(), predictions.dropped) == ([0.1, 0.3], [1, 0], 1)
    assert predictions.decided[-1] == "1 of 3 rows were left out because a value is missing."
    assert predictions.columns == {"p": "risk", "y": "died"}


def test_another_column_takes_back_the_answers_about_the_first():
    found = inspect_predictions(b"a,b,y\n10,0.2,yes\n20,0.3,no\n", p="a", y="y", scale="percent")
    found = found.answer(p="b")
    assert found.answers["scale"] == "probability"
    assert roles(found) == ["positive"]
    assert found.answer(positive="no").read().p.tolist() == [0.2, 0.3]


def test_answer_can_be_taken_back():
    found = inspect_predictions(b"p,y\n.5,yes\n.4,no\n", positive="yes")
    assert roles(found.answer(positive=None)) == ["positive"]


def test_unknown_question_is_refused():
    with pytest.raises(InputError, match="no question 'colour'"):
        inspect_predictions(SMALL).answer(colour="red")


def test_scale_offers_only_what_fits():
    assert options(inspect_predictions(b"p,y\n50,1\n2,0\n"), "scale") == ["percent", "logit"]
    assert options(inspect_predictions(b"p,y\n-5,1\n2,0\n"), "scale") == ["logit"]
    assert options(inspect_predictions(b"p,y\n0,1\n1,0\n"), "scale") == []


@pytest.mark.parametrize("positive", ["1", 1, 1.0, True, np.int64(1)])
def test_positive_may_be_text_or_number(positive):
    if positive is True:
        assert read_predictions(b"p,y\n.5,True\n.4,False\n", positive=positive).y.tolist() == [1, 0]
    else:
        assert read_predictions(SMALL, positive=positive).y.tolist() == [1, 0]


def test_folds_are_places_in_the_order_of_the_file():
    predictions = read_predictions(b"p,y,k\n.5,1,b\n.4,0,a\n.3,1,b\n", fold="k")
    assert predictions.folds.tolist() == [0, 1, 0]
    assert predictions.fold_names == ("b", "a")
    assert predictions.columns["fold"] == "k"


def test_row_without_a_fold_is_asked_about():
    data = b"p,y,k\n.5,1,b\n.4,0,\n.3,1,c\n"
    with pytest.raises(InputError, match="fold, column 'k', in 1 of 3 rows, first row 2"):
        read_predictions(data, fold="k")
    assert read_predictions(data, fold="k", missing="drop").folds.tolist() == [0, 1]


def test_fold_with_hundreds_of_values_is_refused():
    data = b"p,y,k\n" + b"".join(b"0.5,%d,%d.5\n" % (i % 2, i) for i in range(400))
    with pytest.raises(InputError, match="fold, column 'k', holds hundreds of values"):
        read_predictions(data, fold="k")


# ---- large files


def test_progress_is_told_in_the_callers_thread_and_reaches_the_end(written):
    data = b"p,y\n" + b"0.123456789,1\n0.987654321,0\n" * 400_000
    seen = []
    read_predictions(
        written("large.csv", data), progress=lambda *now: seen.append((*now, threading.get_ident()))
    )
    done = [call[0] for call in seen]
    assert len(done) > 2
    assert done == sorted(done)
    assert done[-1] == len(data)
    assert {call[1:] for call in seen} == {(len(data), threading.get_ident())}


def test_columns_of_many_batches_are_exact(monkeypatch):
    """Rows are in order and bit for bit, though some batches are kept as codes and some as numbers."""
    monkeypatch.setattr("leakviz.predictions.readers._BLOCK", 1 << 16)
    rng = np.random.default_rng(1)
    p = np.concatenate([np.full(30_000, 0.1), rng.random(30_000), np.full(30_000, 1 / 3)])
    y = (rng.random(len(p)) < 0.3).astype("i1")
    text = "p,y\n" + "".join(f"{a!r},{b}\n" for a, b in zip(p.tolist(), y.tolist(), strict=True))
    predictions = read_predictions(text.encode())
    np.testing.assert_array_equal(predictions.p, p)
    np.testing.assert_array_equal(predictions.y, y)


def test_only_the_named_columns_are_kept_when_both_are_named():
    found = read_predictions(b"a,p,q,y\nx,0.5,?,1\nx,0.4,?,0\n", p="p", y="y")
    assert found.p.tolist() == [0.5, 0.4]


def test_rows_of_json_lines_are_counted_even_where_they_are_empty():
    empty = b"{}\n" * 200_000
    found = inspect_predictions(empty + b'{"p": 0.5, "y": 1}\n' + empty + b'{"p": 0.25, "y": 0}\n')
    assert (found.n, found.columns[0].missing) == (400_002, 400_000)
    assert found.answer(missing="drop").read().p.tolist() == [0.5, 0.25]


def test_default_limit_lets_half_a_gigabyte_in():
    assert MAX_BYTES >= 500_000_000


# ---- columns, alone


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("", MISSING),
        (" N/A ", MISSING),
        ("None", MISSING),
        ("-999", 0),
        ("?", BAD),
        (".", BAD),
        ("1.2.3", BAD),
        ("1,2,3", BAD),
        ("0,5", COMMA),
        ("0,123", COMMA),
        ("1,234", GROUPED),
        ("12,345", GROUPED),
        ("1234,567", COMMA),
        ("12%", PERCENT),
        ("%", BAD),
        ("１", BAD),
    ],
)
@pytest.mark.parametrize("rows", [1, 1000])
def test_flag_of_a_text(text, flag, rows):
    """Kept as codes or as numbers, a column finds the same."""
    column = Column("p", 0)
    column.add(pa.array([text] + [str(i) for i in range(rows)]))
    assert set(column.tallies) == ({flag} if flag else set())
    if flag:
        assert (column.count(flag), column.tallies[flag].row, column.tallies[flag].text) == (1, 1, text)


def test_labels_that_are_equal_numbers_are_one():
    column = Column("y", 0)
    column.add(pa.array(["1", "1.0", "01", "0", None]))
    column.add(pa.array(["0.0", "-0", " 1 "]))
    assert column.labels[0] == ("1", "0")
    assert column.labels[1].tolist() == [0, 0, 0, 1, -1, 1, 1, 0]
    assert [(tally.number, tally.row) for tally in column.label_counts] == [(4, 1), (3, 4)]


def test_labels_too_large_for_a_float_stay_apart():
    column = Column("y", 0)
    column.add(pa.array(["9007199254740992", "9007199254740993"]))
    assert len(column.labels[0]) == 2


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([0.5, 1.0], pa.float16()),
        pa.array([0.5, 1.0], pa.float32()),
        pa.array([b"0.5", b"1"]),
        pa.array(["0.5", "1.0"], pa.large_string()),
        pa.array([0.5, 1.0]).dictionary_encode(),
        pa.array([b"0.5", b"1"]).dictionary_encode(),
    ],
)
def test_numbers_of_any_type(cells):
    column = Column("p", 0)
    column.add(cells)
    assert column.is_number
    assert column.numbers().tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "cells", [pa.array([[0.5], None]), pa.array([{"a": 1}, None]), pa.array([b"\xff", None])]
)
def test_what_is_no_number_and_no_text_is_counted(cells):
    column = Column("p", 0)
    column.add(cells)
    assert (column.count(BAD), column.count(MISSING), column.is_number) == (1, 1, False)


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (-0.0, "0"), (0.1, "0.1"), (1e300, "1e+300"), (float("nan"), "nan")]
)
def test_number_text_is_the_shortest(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize("integer", ["i1", "u8", "i8"])
def test_whole_number_columns_of_any_width(integer):
    column = Column("y", 0)
    column.add(pa.array(np.array([0, 1, 1], integer)))
    assert column.labels[0] == ("0", "1")
