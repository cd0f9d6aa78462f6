"""A user's own table: every column has a part that was said or has one reading only."""

import io
import math

import numpy as np
import pandas as pd
import pytest

from leakviz.errors import InputError
from leakviz.lodo import inspect_sources, read_sources


def text(rows, header="y,hospital,age,score"):
    return (header + "\n" + "\n".join(rows) + "\n").encode()


PLAIN = text(["1,north,70,0.5", "0,south,60,-0.0", "0,north,50,1.5", "1,south,55,2.5"])


def test_a_plain_table():
    table = read_sources(PLAIN, source="hospital", name="t.csv")
    assert table.X.tolist() == [[70, 0.5], [60, 0], [50, 1.5], [55, 2.5]]
    assert not np.signbit(table.X).any()
    assert table.y.tolist() == [1, 0, 0, 1]
    assert table.source.tolist() == ["north", "south", "north", "south"]
    assert table.features == ("age", "score")
    assert table.columns == {"label": "y", "source": "hospital"}
    assert (table.positive, table.negative) == ("1", "0")
    assert (table.n, table.dropped, table.groups, table.name) == (4, 0, None, "t.csv")
    assert table.decided == (
        "Text in utf-8 with commas between cells.",
        "The label is column 'y', by its name.",
        "2 features: 'age', 'score'.",
    )
    with pytest.raises(ValueError, match="read-only"):
        table.X[0, 0] = 1


def test_formats_agree():
    frame = pd.read_csv(io.BytesIO(PLAIN))
    hashes = {read_sources(PLAIN, source="hospital").content_hash}
    for write in ("to_parquet", "to_feather"):
        stream = io.BytesIO()
        getattr(frame, write)(stream)
        hashes.add(read_sources(stream.getvalue(), source="hospital").content_hash)
    lines = frame.to_json(orient="records", lines=True).encode()
    hashes.add(read_sources(lines, source="hospital").content_hash)
    semicolons = PLAIN.replace(b",", b";").replace(b".", b",")
    hashes.add(read_sources(semicolons, source="hospital").content_hash)
    hashes.add(read_sources(b"\xef\xbb\xbf" + PLAIN, source="hospital").content_hash)
    assert len(hashes) == 1


def test_questions_are_asked_and_answered():
    raw = text(
        ["case,n,1.5,a", "control,s,2.5,b", "control,n,,c", "case,s,3.5,d"], header="status,site,x,ward"
    )
    found = inspect_sources(raw, name="t.csv")
    assert [question.role for question in found.questions] == ["label", "source"]
    assert [option.value for option in found.questions[0].options] == ["status", "site"]
    assert found.candidates["features"] == ("x",)
    found = found.answer(label="status", source="site")
    assert [question.role for question in found.questions] == ["positive", "missing"]
    assert "feature 'x' in 1 rows, first row 3" in found.questions[1].text
    with pytest.raises(InputError, match=r"Which label of 'status' is the event.*Say missing='...'"):
        found.read()
    table = found.answer(positive="case", missing="drop").read()
    assert (table.positive, table.negative) == ("case", "control")
    assert (table.X.tolist(), table.y.tolist(), table.dropped) == ([[1.5], [2.5], [3.5]], [1, 0, 1], 1)
    assert table.decided[-2:] == (
        "1 feature: 'x'. Left out: 'ward' (texts).",
        "1 of 4 rows were left out because a value is missing.",
    )
    assert found.answer(missing="refuse").problem.endswith("say missing='drop' to leave out 1 rows.")
    # Another label takes the answer about the old one back.
    assert found.answer(positive="case").answer(label="site", source="status").answers.get("positive") is None
    with pytest.raises(InputError, match="there is no question 'colour'"):
        found.answer(colour="red")


def test_a_column_has_one_part():
    raw = text(["1,n,1.5,4", "0,s,2.5,4", "0,n,3,5", "1,s,3.5,6"], header="y,site,x,patient")
    found = inspect_sources(raw, name="t.csv", source="site")
    assert (found.answers["label"], found.problem) == ("y", None)
    assert found.candidates["groups"] == ("x", "patient")  # what is the label or the source is not offered
    # The label by its own name keeps its column, and the other menus keep theirs.
    clash = found.answer(groups="y")
    assert (
        clash.problem
        == "'t.csv': groups: column 'y' is the label already. Name another column for groups, or for label."
    )
    assert clash.questions == ()
    assert (clash.answers["label"], clash.candidates["label"]) == ("y", ("y",))
    assert clash.answer(groups="patient").read().groups.tolist() == [0, 0, 1, 2]
    assert found.answer(label="site").problem.startswith(
        "'t.csv': source: column 'site' is the label already."
    )
    # Where nothing is settled by name, groups leave a label to ask for, or say that there is none.
    raw = text(["u,n,1.5,4", "v,s,2.5,4", "v,n,3,5", "u,t,3.5,6"], header="status,site,x,patient")
    asked = inspect_sources(raw, name="t.csv", groups="status")
    assert (
        asked.problem
        == "'t.csv': no column is left that can be the label: 'status' is the groups. Name another column there."
    )
    assert asked.candidates["source"] == ("site", "patient")
    assert "patient" in asked.candidates["groups"]
    asked = asked.answer(groups="patient")
    assert [(q.role, [o.value for o in q.options]) for q in asked.questions] == [
        ("label", ["status"]),
        ("source", ["status", "site"]),
    ]


def test_truth_values_are_features_and_labels():
    raw = text(["true,a,False,1", "false,b,True,3", "true,b,True,2"], header="y,source,smokes,x")
    table = read_sources(raw)
    assert table.y.tolist() == [1, 0, 1]
    assert table.X.tolist() == [[0, 1], [1, 3], [1, 2]]
    frame = pd.DataFrame({"y": [True, False], "source": ["a", "b"], "smokes": [True, None], "x": [1, 2]})
    stream = io.BytesIO()
    frame.astype({"smokes": "boolean"}).to_parquet(stream)
    table = read_sources(stream.getvalue(), missing="drop")
    assert (table.X.tolist(), table.dropped) == ([[1, 1]], 1)


def test_groups_and_whole_number_sources():
    rows = [f"{i % 2},{i % 3},{i // 2},{i / 7}" for i in range(3000)]
    table = read_sources(text(rows, header="y,site,patient,x"), source="site", groups="patient")
    assert table.groups.tolist() == [i // 2 for i in range(3000)]
    assert table.source.tolist()[:4] == ["0", "1", "2", "0"]
    assert table.features == ("x",)
    named = text([f"{i % 2},{i % 3},p{i},{i / 7}" for i in range(1200)], header="y,site,patient,x")
    with pytest.raises(InputError, match="groups, column 'patient', holds more than 1,000 different texts"):
        read_sources(named, source="site", groups="patient")


def test_columns_that_may_name_patients_are_told():
    rows = [f"{i % 2},{'ab'[i % 3 % 2]},{i // 4},{(7 * i) % 60},{i / 7}" for i in range(60)]
    table = read_sources(text(rows, header="y,source,subject_id,count,x"))
    assert table.decided[-1].startswith(
        "Taken as features: 'subject_id', 'count', which by name or values may say"
    )
    assert table.features == ("subject_id", "count", "x")
    table = read_sources(text(rows, header="y,source,patient,count,x"), groups="patient", features=["x"])
    assert not any("may say whose" in said for said in table.decided)
    wide = [",".join([str(i % 2), "ab"[i % 2], *map(str, range(12))]) for i in range(4)]
    names = [f"x{k}" for k in range(12)]
    table = read_sources(text(wide, header=",".join(["y", "source", *names])))
    assert all(repr(name) in table.decided[-1] for name in names)


def test_a_source_per_row_is_refused():
    numbers = text([f"{i % 2},{i},{i / 7}" for i in range(900)], header="y,source,x")
    with pytest.raises(
        InputError, match=r"holds (a different value in each of the 900 rows|900 different whole numbers)"
    ):
        read_sources(numbers)
    names = text([f"{i % 2},s{i},{i / 7}" for i in range(60)], header="y,source,x")
    with pytest.raises(InputError, match="holds a different value in each of the 60 rows"):
        read_sources(names)


def test_an_index_is_no_feature():
    raw = text([f"{i},{i % 2},{'ab'[i % 2]},{i % 7}" for i in range(30)], header=",y,source,x")
    table = read_sources(raw)
    assert table.features == ("x",)
    assert table.decided[-1] == "1 feature: 'x'. Left out: '' (looks like an identifier)."


def test_one_label_of_many_stands_against_the_others():
    raw = text([f"{'pqr'[i % 3]},{'ab'[i % 2]},{i % 7}" for i in range(30)], header="y,source,x")
    with pytest.raises(
        InputError, match="There are 3 labels: the one that you name stands against all the others"
    ):
        read_sources(raw)
    table = read_sources(raw, positive="q")
    assert table.y.tolist() == [0, 1, 0] * 10
    assert (table.positive, table.negative) == ("q", "p or r")


@pytest.mark.parametrize(
    ("rows", "informative"),
    [
        (["1,a,1", "0,b,x1", "1,a,2"], r"feature 'x': not a number in 1 of 3 rows, first row 2 \('x1'\)"),
        (["1,a,1", "0,b,inf", "1,a,2"], "feature 'x': infinite in 1 of 3 rows, first row 2"),
        (['1,a,"1,5"', "0,b,2.5", "1,a,2"], "feature 'x': a comma in 1 of 3 rows.*but a point in 1 of 3"),
        (['1,a,"1,500"', "0,b,2", "1,a,2"], "may be a decimal comma or a thousands separator"),
        (["1,a,5 %", "0,b,2", "1,a,2"], "a percent sign in 1 of 3 rows"),
        (["1,a,u", "0,b,v", "1,a,w"], "no column is left that can be a feature"),
        (["1,a,1", "0,a,2", "1,a,3"], "source, column 'source', holds 'a' only"),
        (
            ["no,a,1", "yes,b,2", "Yes,a,3"],
            "y, column 'y', holds 3 labels and needs two.*only in how they are",
        ),
        (["1,a,", "0,b,", "1,a,"], "no column is left that can be a feature"),
    ],
)
def test_what_is_wrong_is_said(rows, informative):
    with pytest.raises(InputError, match=informative):
        read_sources(text(rows, header="y,source,x"))


@pytest.mark.parametrize(
    ("options", "informative"),
    [
        ({"label": "Y"}, "label='Y': there is no such column. Do you mean 'y'"),
        (
            {"source": "y", "label": "y"},
            "source: column 'y' is the label already. Name another column for source",
        ),
        ({"features": ["age", "y"]}, "features names column 'y', which is the label"),
        ({"features": ["age", "age"]}, "features names 'age' twice"),
        ({"features": []}, "features is empty"),
        ({"features": ["hospital"], "source": "score"}, "feature 'hospital': not a number in 4 of 4 rows"),
        ({"missing": "ignore"}, "missing='ignore' is not known"),
        ({"max_bytes": 60}, "more than the limit of 60"),
        ({"positive": "2"}, "positive='2' is not in y"),
        ({"format": "parquet"}, "is csv by its content"),
    ],
)
def test_answers_that_do_not_fit_are_refused(options, informative):
    with pytest.raises(InputError, match=informative):
        read_sources(PLAIN, **({"source": "hospital"} | options))


def test_one_feature_may_be_named_alone():
    table = read_sources(PLAIN, source="hospital", features="age")
    assert table.features == ("age",)
    assert math.isclose(table.X.sum(), 235)


def test_more_than_fits_is_refused_before_it_is_made():
    wide = text(
        [f"{i % 2},{'ab'[i % 2]}" + ",1" * 50 for i in range(40)],
        header="y,source" + ",".join([""] + [f"x{i}" for i in range(50)]),
    )
    with pytest.raises(
        InputError, match="40 rows of 50 features take 16,000 bytes, more than the limit of 9,000"
    ):
        read_sources(wide, max_bytes=9000)


def test_pickles_are_never_loaded():
    with pytest.raises(InputError, match="never loads pickles"):
        read_sources(b"\x80\x04\x95", name="table.csv")
