"""The audit page in a browser: the hand, the menus, links, looks."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from dashboards import audit_answers as answers
from dashboards.audit import AuditPage
from dashboards.figures import audit as figures

from .conftest import PHONE, Frames, drag, visits

FIGURES = 5


@pytest.fixture(scope="module")
def opened(browser, app_url):
    """Return the page, and the counter of what goes over its websocket."""
    heard = []
    with visits(browser, app_url) as visit:
        page = visit("?page=audit", figures=FIGURES, prepare=lambda page: heard.append(Frames(page)))
        yield page, heard[0]


@pytest.fixture(scope="module")
def live():
    return AuditPage().live


@pytest.fixture
def start(opened):
    page = opened[0]
    page.mouse.move(5, 5)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("['', '?page=audit', '?page=audit&gate=0.95&tau=0.65'].includes(location.search)")
    page.evaluate("probe.frames()")
    return page


def test_a_drag_moves_marks_and_words_and_sends_nothing(start, opened, live):
    read = """(() => { const t = probe.texts(); return {
      texts: [t.published_count, t.own_count, t.kept_leak, t.far_says, t.hard_says],
      fill: probe.column("space_leak", "fill_alpha"), box: probe.column("own_box", "top"), pairs: probe.column("pairs_tau", "y0")} })()"""
    for stop, seen in drag(start, opened[1], "tau", read):
        tau = answers.TAUS[stop]
        now = live.at(tau=tau)
        said = ("published_count", "own_count", "kept_leak", "far_says", "hard_says")
        assert seen["texts"] == [str(now[v].item()) for v in said], tau
        fill = now["space_leak_passes"].values & now["space_leak_collapsed"].values
        np.testing.assert_array_equal(seen["fill"], fill.astype(float))
        assert seen["box"] == seen["pairs"] == [tau]
    start.wait_for_function("location.search.includes('tau=0.')")


def test_keys_move_the_gate_and_the_hard_class_fires(start):
    slider = start.get_by_role("slider", name="oracle gate")
    slider.focus()
    for _ in range(8):
        slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "0.910"
    texts = start.evaluate("probe.texts()")
    assert (texts["published_count"], texts["say_gate"]) == ("2", "0.91")
    assert "fires too, though it is clean" in texts["hard_says"]
    assert start.evaluate("probe.column('published_retrained', 'fill_alpha')") == [1]


def test_menus_and_buttons_look_up_in_the_browser(start, opened, live):
    start.evaluate("for (const c of probe.elements('canvas')) c.known = true")
    for reading in figures.READINGS:
        start.get_by_label("reading of the signature").select_option(label=figures.READINGS[reading])
        for convention in figures.CONVENTIONS:
            start.get_by_role("button", name=convention, exact=True).click()
            now = live.at(reading=reading, convention=convention)
            for axis in ("x", "y"):
                shown = start.evaluate(f"probe.column('space_excluded', '{axis}')")
                np.testing.assert_allclose(shown, now[f"space_excluded_{axis}"].values)
            assert start.evaluate("probe.texts().below_says") == str(now["below_says"].item())
    start.wait_for_function("location.search.includes('reading=isolation_forest&convention=dropped')")
    assert start.evaluate("[...probe.elements('canvas')].filter((c) => !c.known).length") == 0


def tap(page, tag, x, y):
    """Tap a point; two taps within 300 ms would be a double tap to Bokeh."""
    page.wait_for_timeout(400)
    at = page.evaluate("([tag, x, y]) => probe.place(tag, x, y)", [tag, x, y])
    page.mouse.click(at["x"], at["y"])


def test_taps_in_any_figure_name_the_setting_and_show_it_in_detail(start):
    tap(start, "published_leak:source", 1, 0.634)
    start.wait_for_function("probe.texts().detail.startsWith('Tobacco/Memo, leaked')")
    start.wait_for_function("location.search.includes('chosen=wild_memo')")
    frame = figures.strip_of(answers.index_settings(), "clean-retrained")
    last = frame.iloc[-1]
    x, y = start.evaluate("['x', 'y'].map((c) => probe.column('index_clean-retrained', c).at(-1))")
    tap(start, "index_clean-retrained:source", x, y)
    start.wait_for_function("name => probe.texts().detail.startsWith(name)", arg=last["name"])
    start.get_by_role("table", name="AUROC by seed").wait_for()
    start.get_by_role("heading", name=last["name"]).wait_for()
    start.get_by_role("combobox", name="setting", exact=True).select_option(label="no setting")
    start.get_by_role("table", name="AUROC by seed").wait_for(state="hidden")
    start.wait_for_function("!location.search.includes('chosen')")


def test_files_come(start):
    for kind, word in (("SVG", b"oracle LDA"), ("CSV", b"N_c100_rn_cross")):
        with start.expect_download() as started:
            start.get_by_role("button", name=kind, exact=True).first.click()
        assert started.value.suggested_filename == f"audit-published.{kind.lower()}"
        assert word in started.value.path().read_bytes()


def test_a_deep_link_and_two_sessions_apart(visit, opened):
    page = opened[0]
    other = visit("?page=audit&gate=0.9&tau=0.8&convention=dropped", figures=FIGURES, context=page.context)
    expected = AuditPage("?gate=0.9&tau=0.8").live.at()
    assert other.evaluate("probe.texts().own_count") == str(expected["own_count"].item())
    assert other.get_by_role("button", name="dropped", exact=True).get_attribute("aria-pressed") == "true"
    before = page.evaluate("probe.texts().say_tau")
    other.get_by_role("slider", name="tau").press("End")
    other.wait_for_function("location.search.includes('tau=1')")
    assert page.evaluate("probe.texts().say_tau") == before
    found = Axe().run(other).response["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    assert [(v["id"], [n["html"][:160] for n in v["nodes"]]) for v in serious] == []
    assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
    other.set_viewport_size(PHONE)
    other.evaluate("probe.frames(6)")
    assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
