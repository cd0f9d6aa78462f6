"""The answer table without a browser: what is shipped is what was answered, at every stop."""

import itertools
import json
import struct

import numpy as np
import pytest
import xarray as xr
from bokeh.models import ColumnDataSource, Line, Span
from bokeh.plotting import figure
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboards.live import Attribute, Column, Live, Slider, _product, encode, pack, stop_of, words

HOSTILE = '<img src=x onerror="alert(1)"> & \'quoted\' "</span>'
KINDS = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "i4": "<i4", "f4": "<f4", "f8": "<f8"}


def decode(blob):
    """Read a table as its description says: header length, JSON header, arrays on multiples of 8."""
    (length,) = struct.unpack_from("<I", blob)
    header = json.loads(blob[4 : 4 + length])
    assert (4 + length) % 8 == 0

    def array(offset, kind, size):
        assert offset % 8 == 0
        return np.frombuffer(blob, KINDS[kind], size, 4 + length + offset)

    for variable in header["variables"].values():
        variable["index"] = array(*variable["index"])
        rows, width = array(*variable["rows"]), variable["width"] or 1
        if variable["bits"]:  # eight to a byte, every row from a byte of its own
            rows = rows.reshape(-1, -(-width // 8))
            rows = np.stack([rows[:, i // 8] >> (i % 8) & 1 for i in range(width)], axis=1)
        variable["rows"] = rows.reshape(-1, width)
    return header


def looked_up(header, name, stop):
    """Look a variable up at a stop: a row of numbers, of texts, or of true and false."""
    variable = header["variables"][name]
    number = 0
    for dim, size in zip(variable["dims"], variable["shape"], strict=True):
        number = number * size + stop[dim]
    row = variable["rows"][variable["index"][number]].tolist() if variable["width"] else []
    if variable["text"]:
        return [header["pool"][code] for code in row]
    return [value == 1 for value in row] if variable["bool"] else row


def stops(answers, walked):
    return [
        dict(zip(walked, stop, strict=True))
        for stop in itertools.product(*(range(answers.sizes[d]) for d in walked))
    ]


def assert_all_agree(answers, walked, follows=()):
    header = decode(encode(answers, walked, follows))
    assert header["values"] == {d: answers[d].values.tolist() for d in walked}
    assert set(header["variables"]) == set(answers.data_vars)
    for stop in stops(answers, [*walked, *follows]):
        now = answers.isel(stop)
        for name in answers.data_vars:
            expected, shipped = np.atleast_1d(now[name].values).tolist(), looked_up(header, name, stop)
            agree = [same(a, b) for a, b in zip(shipped, expected, strict=True)]
            assert all(agree), f"{name} at {stop}: {shipped} is not {expected}"


def same(one, other):
    return (one == other and isinstance(one, bool) == isinstance(other, bool)) or (
        one != one and other != other
    )


def table(**variables):
    """Return a Dataset over a (3 stops), b (2), c (2) and row dimensions."""
    return xr.Dataset(variables, {"a": [0.1, 0.2, 0.3], "b": [1.0, 2.0], "c": ["no", "yes"]})


# The table


@pytest.mark.parametrize(
    "variable",
    [
        (("a", "x"), np.arange(12.0).reshape(3, 4) / 7),
        (("x", "a"), np.arange(12.0).reshape(4, 3)),
        (("a", "b", "x"), np.arange(24.0).reshape(3, 2, 4)),
        (("b", "x", "a"), np.arange(24.0).reshape(2, 4, 3)),
        (("a", "b", "c"), np.arange(12.0).reshape(3, 2, 2)),
        (("c", "a", "b", "x"), np.arange(48).reshape(2, 3, 2, 4)),
        (("x",), np.array([1.5, np.nan, -np.inf, np.inf])),
        ((), 0.1),
        ((), "one text"),
        ((), True),
        (("a",), np.array([True, False, True])),
        (("a", "x"), np.array([[True, False]] * 3)),
        (("a", "x"), np.arange(33).reshape(3, 11) % 4 == 1),
        (("a", "b", "x"), np.arange(96).reshape(3, 2, 16) % 5 == 1),
        (("a",), np.array(["", "α", "<b>"], dtype=object)),
        (("a", "x"), np.array([["p", "q"], ["q", "p"], ["p", "q"]])),
        (("a",), np.array([-1, 0, 2**30])),
        (("a",), np.array([-5, 0, 5], dtype=np.int32)),
        (("a",), np.array([-1, 0, 2**40])),
        (("a",), np.array([0, 1, 2**32 - 1], dtype=np.uint32)),
        (("a",), np.array([0.1, 0.2, np.nan], dtype=np.float32)),
        (("a", "x"), np.array([[np.nan, 1.0], [np.nan, 1.0], [1.0, np.nan]])),
        (("a", "x"), np.empty((3, 0))),
    ],
    ids=lambda v: f"{','.join(v[0]) or 'none'}-{np.asarray(v[1]).dtype.kind}",
)
def test_what_is_shipped_is_what_was_answered(variable):
    assert_all_agree(table(v=variable), ["a", "b", "c"])


def test_many_variables_share_one_table():
    rng = np.random.default_rng(0)
    answers = table(
        curve=(("a", "b", "x"), rng.normal(size=(3, 2, 5))),
        again=(("a", "b", "x"), rng.normal(size=(3, 2, 5)).round()),
        flag=(("c", "a"), rng.random((2, 3)) < 0.5),
        word=(("b",), np.array(["one", "two"], dtype=object)),
        other=(("a", "b"), np.array([["two", "one"], ["three", "one"], ["two", "two"]], dtype=object)),
    )
    assert_all_agree(answers, ["a", "b", "c"])
    assert sorted(decode(encode(answers, ["a", "b", "c"]))["pool"]) == ["one", "three", "two"]


@settings(deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 4)] * 4),
    dims=st.permutations(["a", "b", "c", "x"]),
    kind=st.sampled_from(["float", "int", "bool", "text"]),
    distinct=st.integers(1, 400),
    seed=st.integers(0, 2**20),
)
def test_any_table_comes_back(shape, dims, kind, distinct, seed):
    numbers = np.random.default_rng(seed).integers(0, distinct, shape)
    values = {
        "float": np.where(numbers == 0, np.nan, numbers / 3),
        "int": numbers,
        "bool": numbers % 2 == 0,
        "text": numbers.astype(str).astype(object),
    }[kind]
    sizes = dict(zip(dims, shape, strict=True))
    answers = xr.Dataset({"v": (tuple(dims), values)}, {d: np.arange(sizes[d]) / 10 for d in "abc"})
    assert_all_agree(answers, ["a", "b", "c"])


@pytest.mark.parametrize("count", [255, 256, 257, 65536, 65537])
def test_the_index_has_room_for_every_row(count):
    answers = xr.Dataset({"v": ("a", np.arange(count, dtype=float))}, {"a": np.arange(count)})
    variable = decode(encode(answers, ["a"]))["variables"]["v"]
    np.testing.assert_array_equal(variable["rows"][variable["index"]].ravel(), np.arange(count))


def test_rows_that_recur_are_stored_once():
    row = np.random.default_rng(1).normal(size=1000)
    walked = {"a": np.arange(100), "b": np.arange(50)}
    same = xr.Dataset({"v": (("a", "b", "x"), np.broadcast_to(row, (100, 50, 1000)))}, walked)
    assert len(encode(same, ["a", "b"])) < 8 * 1000 + 1 * 5000 + 1000  # one row, and a byte for each stop
    packed = pack(same["v"], ["a", "b"])
    assert packed.rows.shape == (1, 1000)
    assert not packed.number.any()
    along = xr.Dataset(
        {"v": (("a", "b", "x"), np.arange(100.0)[:, None, None] + np.zeros((100, 50, 10)))}, walked
    )
    assert pack(along["v"], ["a", "b"]).rows.shape == (100, 10)


def test_variables_that_change_at_the_same_stops_share_an_index():
    number = np.random.default_rng(2).integers(0, 20, (60, 70))
    walked = {"a": np.arange(60), "b": np.arange(70)}
    one = xr.Dataset({"v": (("a", "b"), number * 2.0)}, walked)
    two = one.assign(w=(("a", "b"), np.array([f"text {n}" for n in range(20)], dtype=object)[number]))
    assert len(encode(two, ["a", "b"])) - len(encode(one, ["a", "b"])) < 1000


def test_a_table_is_encoded_the_same_every_time():
    answers = table(
        v=(("a", "b"), np.arange(6.0).reshape(3, 2)), t=("a", np.array(["x", "y", "x"], dtype=object))
    )
    assert encode(answers, ["a", "b"]) == encode(answers.copy(deep=True), ["a", "b"])


def test_two_row_dimensions_are_refused():
    answers = table(v=(("a", "x", "y"), np.zeros((3, 2, 2))))
    with pytest.raises(ValueError, match=r"v: only one dimension can hold a row's entries, not \['x', 'y'\]"):
        encode(answers, ["a"])


def test_a_dimension_that_follows_is_looked_up_like_a_walked_one():
    answers = table(
        case=(("a", "b"), np.array([[0, 1], [1, 2], [2, 0]])),
        word=("k", np.array(["p", "q", "r"], dtype=object)),
    )
    assert_all_agree(answers, ["a", "b", "c"], ["k"])


# Stops and words


def test_stop_of_is_the_nearest_or_the_name():
    answers = table()
    assert [stop_of(answers, "a", v) for v in (0.1, 0.24, 0.26, -9, 9)] == [0, 1, 2, 0, 2]
    assert stop_of(answers, "c", "yes") == 1
    with pytest.raises(ValueError, match="c: no stop is called 'maybe'"):
        stop_of(answers, "c", "maybe")


def test_words_writes_each_case_once():
    written = []

    def write(k, rate):
        written.append((k, rate))
        return f"{k}: {'none' if np.isnan(rate) else rate}"

    k = xr.DataArray([[1, 2], [1, 2]], dims=("a", "b"))
    rate = xr.DataArray([0.5, np.nan], dims="a")
    texts = words(write, k, rate)
    assert texts.transpose("a", "b").values.tolist() == [["1: 0.5", "2: 0.5"], ["1: none", "2: none"]]
    assert len(written) == 4
    assert all(type(k) is int for k, _ in written)


# Live, in Python


@pytest.fixture
def live():
    answers = table(
        y=(("a", "b", "x"), np.arange(12.0).reshape(3, 2, 2)),
        line=("a", np.array([0.1, 0.2, 0.3])),
        seen=("c", np.array([False, True])),
        image=(("b", "pixel"), np.arange(12.0).reshape(2, 6)),
        said=("a", np.array(["low", HOSTILE, "high"], dtype=object)),
        number=("b", np.array([1, 2])),
        case=(("a", "b"), np.array([[0, 1], [1, 0], [1, 1]])),
        verdict=("k", np.array(["silent", "fires"], dtype=object)),
    )
    return Live(
        answers,
        sliders=[Slider("a", "first"), Slider("b", "second")],
        columns=[Column("curve:source", "y", "y"), Column("map:source", "image", "image")],
        attributes=[Attribute("line", "location", "line"), Attribute("line", "visible", "seen")],
        start={"a": 0.1, "b": 1.0, "c": "yes"},
        labels={"a": ["<i>", "&", "x"], "c": ["off", "on"]},
        follows={"k": "case"},
    )


def test_live_starts_at_its_start_and_goes_to_the_nearest_stop(live):
    assert live.state == {"a": 0, "b": 0, "c": 1}
    live.go(a=0.26)
    assert (live.value("a"), live.value("b"), live.value("c")) == (0.3, 1.0, "yes")
    live.go(b=7, c="no")
    assert live.state == {"a": 2, "b": 1, "c": 0}
    assert live.labels == {"a": ["<i>", "&", "x"], "b": ["1.000", "2.000"], "c": ["off", "on"]}
    with pytest.raises(ValueError, match="no stop is called"):
        live.go(c="maybe")


def test_at_is_the_answer_here_or_with_something_moved(live):
    assert live.at()["y"].values.tolist() == [0.0, 1.0]
    live.go(a=0.2, b=2.0)
    assert live.at()["y"].values.tolist() == [6.0, 7.0]
    assert live.at(b=1.0)["y"].values.tolist() == [4.0, 5.0]
    assert live.state == {"a": 1, "b": 1, "c": 1}


def test_what_follows_is_at_the_stop_that_the_table_says(live):
    assert live.at()["verdict"].item() == "silent"
    assert live.at(a=0.3)["verdict"].item() == "fires"
    assert "silent" in live.text("verdict")
    live.go(b=2.0)
    assert "fires" in live.text("verdict")


def test_new_answers_keep_the_stops(live):
    live.go(a=0.3)
    before = live.table
    doubled = live.answers.assign(y=live.answers["y"] * 2)
    live.update_answers(doubled)
    assert live.table != before
    assert live.at()["y"].values.tolist() == [16.0, 18.0]
    assert looked_up(decode(live.table), "y", live.state) == [16.0, 18.0]


def test_answers_that_are_shared_are_encoded_once(live):
    again = Live(
        live.answers, sliders=live.sliders, start={"a": 0.2, "b": 1.0, "c": "no"}, follows=live.follows
    )
    assert again.table is live.table
    assert again.key != live.key


def test_several_variables_are_multiplied(live):
    assert _product(live.answers.isel(a=1, b=1), ("y", "y")).tolist() == [36.0, 49.0]


def test_apply_puts_the_present_rows_into_what_is_tagged(live):
    plot = figure()
    curve = ColumnDataSource({"x": [0, 1], "y": [0.0, 1.0]}, tags=[f"{live.key}/curve:source"])
    plot.add_glyph(curve, Line(x="x", y="y"))
    stranger = ColumnDataSource({"x": [0, 1], "y": [5.0, 5.0]}, tags=["live0/curve:source"])
    plot.add_glyph(stranger, Line(x="x", y="y"))
    image = ColumnDataSource({"image": [np.zeros((2, 3))]}, tags=[f"{live.key}/map:source"])
    plot.image("image", x=0, y=0, dw=1, dh=1, source=image)
    line = Span(location=0.0, dimension="height", tags=[f"{live.key}/line"])
    plot.add_layout(line)
    live.go(a=0.3, b=2.0, c="no")
    live.apply(plot)
    assert curve.data["y"].tolist() == [10.0, 11.0]
    assert list(curve.data["x"]) == [0, 1]
    assert stranger.data["y"] == [5.0, 5.0]
    np.testing.assert_array_equal(image.data["image"][0], [[6, 7, 8], [9, 10, 11]])
    assert (line.location, line.visible) == (0.3, False)


def test_other_stops_bring_their_start_labels_and_marks(live):
    finer = live.answers.isel(a=[0, 1, 1, 2]).assign_coords(a=[0.1, 0.2, 0.25, 0.3])
    live.update_answers(
        finer, start={"a": 0.25}, labels={"a": list("pqrs")}, marks={"a": [(0.3, "last"), (0.2, "second")]}
    )
    wiring = json.loads(live.wiring)
    assert wiring["starts"] == live.starts == {"a": 2, "b": 0, "c": 1}
    assert wiring["labels"]["a"] == ["p", "q", "r", "s"]
    assert [s["marks"] for s in wiring["sliders"]] == [[[3, "last"], [1, "second"]], []]
    live.go(a=0.25)
    assert (live.value("a"), live.state["a"]) == (0.25, 2)


def test_wiring_names_every_target_and_label(live):
    wiring = json.loads(live.wiring)
    assert wiring["id"] == live.key
    assert wiring["starts"] == {"a": 0, "b": 0, "c": 1}
    assert [s["label"] for s in wiring["sliders"]] == ["first", "second"]
    assert ["curve:source", "y", "y"] in wiring["columns"]
    assert wiring["follows"] == {"k": "case"}


# What a page writes: texts stay texts


def test_texts_are_escaped(live):
    assert live.text("said") == f'<span data-live-text="{live.key} said">low</span>'
    live.go(a=0.2)
    node = live.text("said")
    assert "<img" not in node
    assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &amp; " in node
    assert node.count("<") == 2  # the span's own


def test_attributes_are_escaped(live):
    live.go(a=0.2)
    node = live.attrs(x1="said", class_="number")
    assert node.startswith(f'data-live-attrs="{live.key} x1=said class=number" ')
    assert node.endswith(' class="1"')
    assert "<" not in node
    assert node.count('"') == 6


def test_menus_are_escaped_and_stand_where_the_state_is(live):
    live.go(a=0.2)
    menu = live.menu("a", 'a "label"')
    assert 'aria-label="a &quot;label&quot;"' in menu
    assert '<option value="0">&lt;i&gt;</option><option value="1" selected>&amp;</option>' in menu


def test_buttons_and_switches_tell_whether_they_are_on(live):
    assert 'aria-pressed="true"' in live.button("a", 0, "first")
    assert 'aria-pressed="false"' in live.button("a", 1, "second")
    assert f'data-live-go="{live.key} a 1"' in live.button("a", 1, "second")
    assert 'aria-pressed="true"' in live.switch("c", "seen")
    live.go(c="no")
    assert 'aria-pressed="false"' in live.switch("c", "seen")
