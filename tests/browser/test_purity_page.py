"""The purity page in a browser: every stop against the core, the hand, choosing, files, looks."""

import numpy as np
import pandas as pd
import pytest

from dashboards import purity_answers as answers
from dashboards.shelf import shipped
from leakviz import sweep_purity
from leakviz.blind import TRIGGERS, VERDICTS, sweep_blind
from leakviz.certification import read_false_certification
from leakviz.purity import DELTA_STOPS, K_MIN_STOPS

from .conftest import PHONE, Frames, drag, sound, visits

FIGURES = 6
NAMES = ("flchain__lr__honest", "flchain__lr__chapter")
WORD = {"": "", "near-label": ", near-label", "above-ceiling": ", above the ceiling"}


@pytest.fixture(scope="module")
def frames():
    return []


@pytest.fixture(scope="module")
def page(browser, app_url, frames):
    with visits(browser, app_url) as visit:
        yield visit("?page=purity", figures=FIGURES, prepare=lambda page: frames.append(Frames(page)))


@pytest.fixture(scope="module")
def sweeps():
    vectors = [shipped(name) for name in NAMES]
    return [sweep_blind(v.ranked, breadths=answers.breadths(v, shipped)) for v in vectors]


@pytest.fixture
def start(page):
    page.evaluate("probe.table.go(probe.table.starts)")
    page.evaluate("probe.frames()")
    return page


def seen(page, label, stop):
    """Move a slider to a stop and return what the page then shows."""
    page.evaluate("([label, stop]) => probe.slide(label, stop)", [label, int(stop)])
    return page.evaluate(
        """() => {
          const t = probe.texts()
          const of = (i) => ({verdict: t[`verdict_${i}`], trigger: t[`trigger_${i}`], head: t[`head_${i}`],
            spike: probe.column(`spike_${i}`, "rank")[0], breadth: t[`breadth_${i}`]})
          return {0: of(0), 1: of(1), true: t.true_9, line: probe.tagged("line:glyph").location,
            left: probe.column("box", "left")[0], bottom: probe.column("box", "bottom")[0]}
        }"""
    )


def check(got, sweeps, delta=0.05, k_min=50, ceiling=np.inf, epsilon=0.01):
    for i, sweep in enumerate(sweeps):
        at = sweep.sel(delta=delta, k_min=k_min, ceiling=ceiling, epsilon=epsilon)
        here = got[str(i)]
        assert here["verdict"].lower().split(",")[0] == VERDICTS[at["verdict"].item()]
        assert here["trigger"] == WORD[TRIGGERS[at["trigger"].item()]]
        assert here["head"] == f"{at['spike'].item():,}"
        assert here["spike"] == at["spike"].item() or (np.isnan(here["spike"]) and not at["spike"].item())
    assert got["1"]["breadth"] == answers.percent(sweeps[1]["breadth"].sel(epsilon=epsilon).item())
    rate = read_false_certification()["scan"].sel(max_risk=0.9, delta=delta, k_min=k_min).item()
    assert got["true"] == answers.chance(rate)
    assert (got["left"], got["bottom"], got["line"]) == (k_min, round(1 - delta, 3), round(1 - delta, 3))


def test_every_stop_of_delta(start, sweeps):
    for stop, delta in enumerate(DELTA_STOPS):
        check(seen(start, "delta", stop), sweeps, delta=delta)


def test_every_stop_of_k_min(start, sweeps):
    for stop, k_min in enumerate(K_MIN_STOPS):
        check(seen(start, "k_min", stop), sweeps, k_min=k_min)


def test_every_stop_of_the_ceiling(start, sweeps):
    start.evaluate("probe.slide('k_min', 77)")  # beyond the honest head: only the ceiling can convict it
    for stop, ceiling in enumerate(sweeps[0]["ceiling"].values):
        check(seen(start, "C* ceiling", stop), sweeps, k_min=1000, ceiling=ceiling)


def test_every_stop_of_epsilon(start, sweeps):
    for stop, epsilon in enumerate(answers.EPSILON_STOPS):
        check(seen(start, "epsilon", stop), sweeps, epsilon=epsilon)


def test_keys_move_and_the_address_follows(start):
    start.get_by_role("slider", name="k_min").focus()
    start.keyboard.press("ArrowRight")
    start.wait_for_function("location.search.includes('k_min=55')")
    assert start.evaluate("probe.texts().say_k_min") == "55"


def test_the_box_is_dragged_by_its_edges(start):
    start.mouse.move(5, 5)
    place = start.evaluate("probe.place('purity:figure', 50, 0.97)")
    to = start.evaluate("probe.place('purity:figure', 300, 0.97)")
    start.mouse.move(place["x"], place["y"])
    start.mouse.down()
    start.mouse.move((place["x"] + to["x"]) / 2, place["y"], steps=4)
    start.mouse.move(to["x"], to["y"], steps=4)
    start.mouse.up()
    start.wait_for_function("location.search.includes('k_min=300')")
    place = start.evaluate("probe.place('purity:figure', 2000, 0.95)")
    to = start.evaluate("probe.place('purity:figure', 2000, 0.80)")
    start.mouse.move(place["x"], place["y"])
    start.mouse.down()
    start.mouse.move(to["x"], to["y"], steps=6)
    start.mouse.up()
    start.wait_for_function("location.search.includes('delta=0.2')")


def test_the_picture_follows_a_drag_and_the_server_hears_nothing(start, frames, sweeps):
    look = "[probe.column('box', 'bottom')[0], ...[0, 1].map((i) => probe.texts()[`head_${i}`])]"
    for stop, (bottom, *heads) in drag(start, frames[0], "delta", look):
        delta = DELTA_STOPS[stop]
        assert bottom == round(1 - delta, 3)
        assert heads == [f"{sweep['spike'].sel(delta=delta).item():,}" for sweep in sweeps]


def test_two_visitors_do_not_touch_each_other(start, visit):
    other = visit("?page=purity&first=nhefs__lr__honest&beside=none&delta=0.2", figures=FIGURES)
    start.get_by_role("slider", name="k_min").press("ArrowRight")
    other.get_by_role("slider", name="delta").press("End")
    start.wait_for_function("location.search.includes('k_min=55')")
    other.wait_for_function("location.search.includes('delta=0.3')")
    texts = [
        page.evaluate("(({say_delta, say_k_min, title_0}) => [say_delta, say_k_min, title_0])(probe.texts())")
        for page in (start, other)
    ]
    assert texts == [
        ["0.05", "55", shipped(NAMES[0]).title],
        ["0.30", "50", shipped("nhefs__lr__honest").title],
    ]


def test_the_data_behind_the_curves_are_of_the_stop_that_is_seen(start):
    start.evaluate("probe.table.go({delta: 40})")
    start.wait_for_function("location.search.includes('delta=0.2')")
    with start.expect_download() as started:
        start.get_by_role("button", name="CSV", exact=True).first.click()
    rows = pd.read_csv(started.value.path())
    for name in NAMES:
        own, vector = rows[rows["vector"] == name], shipped(name)
        head = sweep_purity(vector.p, vector.y, deltas=["0.2"])
        assert (own["delta"] == 0.2).all()
        assert (own["spike"] == head.spike.item()).all()
        at = own.set_index("k").loc[head.spike.item()]
        assert (at["events"], at["purity"]) == (head.spike_events.item(), head.spike_purity.item())


def test_buttons_of_the_calculator(start):
    start.get_by_role("button", name="0.0001", exact=True).click()
    assert start.evaluate("probe.texts().needed") == "k_min 452"
    start.get_by_role("button", name="0.5", exact=True).click()
    start.wait_for_function("location.search.includes('max_risk=0.5')")


def test_choosing_patches_without_new_canvases(visit):
    page = visit("?page=purity", figures=FIGURES)
    page.evaluate("globalThis.canvases = [...probe.elements('canvas')]")
    page.get_by_label("and a third").select_option(label="simulated, broad calibrated leak")
    page.wait_for_function("probe.texts().title_2.startsWith('simulated, broad')")
    assert page.evaluate("probe.column('curve_2', 'rank').at(-1)") == 200_000
    assert page.evaluate("probe.tagged('purity:x_range').end") == pytest.approx(216_000)
    assert page.evaluate("probe.tagged('curve_2:glyph_renderer').visible")
    assert page.get_by_label("flag fraction").is_visible()
    page.get_by_label("prevalence").fill("7")
    page.get_by_label("prevalence").press("Enter")
    page.get_by_role("alert").first.wait_for()
    assert "prevalence" in page.get_by_role("alert").first.inner_text()
    page.get_by_label("beside them").select_option(label="none")
    page.wait_for_function("!probe.tagged('curve_1:glyph_renderer').visible")
    assert page.evaluate(
        "[...probe.elements('canvas')].every((c) => canvases.includes(c)) && canvases.every((c) => c.isConnected)"
    )
    page.wait_for_function("location.search.includes('beside=none')")


def test_a_link_to_anothers_file(visit):
    page = visit("?page=purity&first=own:0123", figures=FIGURES)
    assert "Bring the file under" in page.get_by_role("alert").inner_text()


def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(visit):
    sound(visit("?page=purity&third=arm:broad", figures=FIGURES, viewport=PHONE))


@pytest.mark.parametrize(
    ("which", "figure", "word"),
    [
        (0, "purity", "purity: share of events among them"),
        (1, "certification", "k_min, records"),
        (2, "graded-leak", "window, days"),
    ],
)
def test_files(page, which, figure, word):
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as started:
            page.get_by_role("button", name=kind, exact=True).nth(which).click()
        assert started.value.suggested_filename == f"{figure}.{kind.lower()}"
        data = started.value.path().read_bytes()
        assert len(data) > 300
        if kind == "SVG":
            assert f">{word}</text>" in data.decode()
