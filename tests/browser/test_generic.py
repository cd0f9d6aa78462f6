"""The answer table on a page that is not the fingerprint's: three dimensions, every kind of target."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

from .conftest import served, visits
from .generic_app import HOSTILE, answers

COLUMNS = {
    ("curve", "y"): "curve",
    ("coarse", "y"): "coarse",
    ("bars", "height"): ("bars", "part"),
    ("box", "left"): "box_left",
    ("box", "top"): "box_top",
    ("points", "fill_alpha"): "state",
    ("points", "y"): "gap",
    ("image", "image"): "image",
    ("constant", "y"): "constant",
}
ATTRIBUTES = {
    ("curve:glyph", "line_width"): "wide",
    ("points:glyph_renderer", "visible"): "seen",
    ("edge", "top"): "top_at",
}
BARS = ("bars", "height")
LOOK = """([stops, columns, attributes]) => stops.map((stop) => {
  const plain = (v) => v?.value ?? v // a glyph's number is a value
  for (const i of [0, 1, 2]) probe.slide(["first", "second", "third"][i], stop[i])
  const seen = {...probe.texts(), ...probe.attributes()}
  for (const [target, column] of columns) seen[`${target}.${column}`] = probe.column(target, column).flat()
  for (const [target, attribute] of attributes) seen[`${target}.${attribute}`] = plain(probe.tagged(target)[attribute])
  return seen
})"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Serve the page and the app as others would: by ``panel serve``, with an argument for the app."""
    scripts = ["app.py", str(Path(__file__).with_name("generic_app.py"))]
    folder = tmp_path_factory.mktemp("generic")
    (folder / "brought.csv").write_text("p,y\n0.9,1\n0.2,0\n")
    scripts_and_file = [*scripts, "--args", str(folder / "brought.csv")]
    command = (
        f"import runpy, sys; sys.argv = ['panel', 'serve', *sys.argv[1:], *{scripts_and_file}];"
        "runpy.run_module('panel', run_name='__main__')"
    )
    with served(["-c", command], "generic_app", folder / "log.txt") as url:
        yield url


@pytest.fixture(scope="module")
def page(browser, url):
    with visits(browser, url) as visit:
        yield visit(figures=3)


@pytest.fixture
def fresh(page):
    page.get_by_role("button", name="Reset").click()
    return page


def same(shown, expected):
    if isinstance(expected, list):
        return np.array_equal(np.array(shown, dtype=float), np.array(expected, dtype=float), equal_nan=True)
    return shown == expected and isinstance(shown, bool) == isinstance(expected, bool)


def test_every_stop_of_three_sliders_agrees_with_the_table(page):
    table = answers()
    stops = list(itertools.product(range(5), range(4), range(3)))
    random.Random(1).shuffle(stops)
    keys = [[list(k) for k in COLUMNS], [list(k) for k in ATTRIBUTES]]
    wrong = []
    for stop, shown in zip(stops, page.evaluate(LOOK, [stops, *keys]), strict=True):
        now = table.isel(dict(zip("abc", stop, strict=True)))
        expected = {
            ".".join(k): now[v].values.tolist() for k, v in (COLUMNS | ATTRIBUTES).items() if k != BARS
        }
        expected[".".join(BARS)] = (now["bars"] * now["part"]).values.tolist()  # two variables: their product
        expected |= {name: now[name].item() for name in ("say", "always", "end")}
        expected["word"] = ["none", "one", "two", "three"][int(now["case_of"])]
        expected["picked"] = "nobody"
        for what, value in expected.items():
            if not same(shown[what], value):
                wrong.append(f"{stop}: {what} is {json.dumps(shown[what])}, not {json.dumps(value)}")
    assert not wrong, f"{len(wrong)} disagree, the first:\n" + "\n".join(wrong[:10])


def test_a_mark_stands_on_the_track_where_its_value_is(page):
    shown = page.evaluate("[...probe.elements('.marks i')].map((e) => [e.title, e.style.left])")
    assert shown == [["the second", "25%"]]


def test_texts_stay_texts(page):
    shown = page.evaluate("probe.texts().always")
    assert shown == HOSTILE
    assert page.evaluate("[...probe.elements('img')].map((e) => e.outerHTML)") == []


def test_an_edge_that_lies_elsewhere_than_its_stop_snaps_there(fresh):
    at = fresh.evaluate("[probe.place('edge', 0.5, 2), probe.place('edge', 0.5, 2.8)]")
    fresh.mouse.move(at[0]["x"], at[0]["y"])
    fresh.mouse.down()
    fresh.mouse.move(at[1]["x"], at[1]["y"], steps=6)
    fresh.mouse.up()
    fresh.wait_for_function("probe.table.state.c === 2 && probe.tagged('edge').top === 3")


def test_taps_selections_buttons_and_menus_move_their_dimension(fresh):
    at = fresh.evaluate("probe.place('taps', 0.48, 0.9)")
    fresh.mouse.click(at["x"], at["y"])
    fresh.wait_for_function("probe.table.state.a === 4")
    fresh.get_by_role("button", name="fourth").click()
    assert fresh.evaluate("probe.table.state.b") == 3
    assert fresh.get_by_role("button", name="fourth").get_attribute("aria-pressed") == "true"
    fresh.evaluate("probe.slide('third', 2)")  # the points are seen
    fresh.wait_for_function("probe.tagged('points:glyph_renderer').visible")
    at = fresh.evaluate("probe.place('points:source', 2, 4)")
    fresh.mouse.click(at["x"], at["y"])
    fresh.wait_for_function("probe.texts().picked === 'point 2'")
    fresh.get_by_label("points", exact=True).select_option("5.000")
    assert fresh.evaluate("probe.texts().picked") == "point 4"
    assert fresh.evaluate("probe.tagged('points:source').selected.indices") == [4]
    fresh.get_by_role("button", name="Reset").click()
    assert fresh.evaluate("probe.table.state") == {"a": 2, "b": 1, "c": 1, "pick": 0}
    assert fresh.evaluate("probe.tagged('points:source').selected.indices") == []


def test_panel_serve_takes_a_file_for_the_app(browser, url):
    with visits(browser, url.replace("generic_app", "app")) as visit:
        visit(figures=None).get_by_role("heading", level=1, name="On brought.csv the test is").wait_for()
