"""The page of held-out sources in a browser: the hand, choosing, a table of one's own, links, looks."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from dashboards import lodo_answers as answers
from dashboards.figures import lodo as figures
from dashboards.lodo_answers import FIRING, THRESHOLDS

from .conftest import PHONE, Frames, drag, visits

SAE = "sae_logistic, constant 0.5"
PUBLISHED = "?page=lodo&case=published&model=sae_logistic,%20constant%200.5"
HARM, SEEN = 7, 3  # figures of the first case, and of the published one


@pytest.fixture(scope="module")
def opened(browser, app_url):
    """Return the page, and the counter of what goes over its websocket."""
    heard = []
    with visits(browser, app_url) as visit:
        page = visit(PUBLISHED, figures=SEEN, prepare=lambda page: heard.append(Frames(page)))
        page.wait_for_function("probe.texts().quadrant_3 === '5'")
        page.wait_for_timeout(1600)  # what stands in the page is looked for at most every 1.5 s
        yield page, heard[0]


@pytest.fixture(scope="module")
def page(opened):
    return opened[0]


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth > innerWidth")


def table(n=150):
    """Return three hospitals as CSV, one with a name that would be a tag."""
    rng = np.random.default_rng(0)
    rows = ["y,hospital,age"]
    for i in range(n):
        where = ("north", "south", "<b id=evil>west</b>")[i % 3]
        rows.append(f"{i // 3 % 2},{where},{rng.normal(60 + 9 * (i // 3 % 2), 9):.2f}")
    return "\n".join(rows).encode()


def test_a_drag_sends_nothing_and_makes_no_canvas(page, opened):
    subject = answers.shipped("published", SAE)
    shown, quads = answers.retention_answers(subject), answers.quadrant_answers(subject)
    seen = drag(
        page,
        opened[1],
        "retention threshold",
        "[probe.texts().say_count, probe.column('retention.points', 'fill'), probe.tagged('retention.line:glyph').location]",
    )
    for stop, (count, fill, line) in seen:
        now = shown.isel(retention_threshold=stop)
        assert count == str(now["say_count"].item())
        assert fill == now["shortcut"].values.astype(float).tolist()
        assert line == pytest.approx(THRESHOLDS[stop])
    page.wait_for_function(
        "location.search.includes('threshold=') && !location.search.includes('threshold=0.5&')"
    )
    seen = drag(page, opened[1], "firing ratio", "[0, 1, 2, 3].map((q) => probe.texts()[`quadrant_${q}`])")
    stop = page.get_by_role("slider", name="retention threshold").input_value()
    for firing, cells in seen:
        now = quads.isel(firing_ratio=firing, retention_threshold=int(stop))
        assert cells == [str(now[f"quadrant_{q}"].item()) for q in range(4)]


def test_keys_and_sorting(page):
    slider = page.get_by_role("slider", name="retention threshold")
    slider.press("Home")
    assert slider.get_attribute("aria-valuetext") == "−0.50"
    assert page.evaluate("probe.texts().say_count") == "0"
    page.get_by_role("slider", name="firing ratio").press("End")
    page.wait_for_function(f"location.search.includes('firing={FIRING[-1]:g}')")
    page.get_by_role("button", name="retention", exact=True).press("Enter")
    first = "[...probe.elements('.scroll tbody tr')].map((r) => r.cells[2].textContent)"
    values = [float(v.replace("−", "-")) for v in page.evaluate(first)]
    assert values == sorted(values, reverse=True)
    page.get_by_role("button", name="retention", exact=True).press("Enter")
    values = [float(v.replace("−", "-")) for v in page.evaluate(first)]
    assert values == sorted(values)


def test_choosing_writes_into_the_figures_that_stand(page):
    page.get_by_label("case", exact=True).select_option(label="prompt attacks, 18 sources")
    page.wait_for_function("location.search.includes('case=prompt_attacks')")
    page.wait_for_function(f"probe.ready({HARM})")
    rows = answers.gap_rows(answers.shipped("prompt_attacks", "logistic"), "accuracy", "cv")
    height = figures.gap_picture(rows, metric="accuracy").height  # of other sources: the figure follows
    page.wait_for_function(
        f"[...probe.elements('.bk-Figure')][0].getBoundingClientRect().height === {height}"
    )
    page.get_by_label("classifier", exact=True).select_option(label="logistic, unweighted")
    page.get_by_text("The trap").wait_for()
    names = page.evaluate("Array.from(probe.tagged('gap.lodo:source').get_column('name'))")
    assert "advbench" in names
    page.get_by_role("button", name="mixed sources only").click()
    page.wait_for_function("probe.tagged('known.cells:source').get_column('auc').length === 100")
    with page.expect_download() as started:
        page.get_by_role("button", name="CSV", exact=True).first.click()
    assert started.value.suggested_filename == "lodo-gap.csv"
    assert b"advbench" in started.value.path().read_bytes()


def test_a_table_by_drop_a_bad_one_and_two_sessions_apart(page, browser, app_url):
    drop = """([name, bytes]) => {
      const data = new DataTransfer()
      data.items.add(new File([new Uint8Array(bytes)], name))
      document.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}))
    }"""
    page.evaluate(drop, ["bad.csv", [0, 1, 2]])
    page.get_by_text("is not text").wait_for()
    assert "case=prompt_attacks" in page.evaluate("location.search")
    page.evaluate(drop, ["wards.csv", list(table())])
    page.get_by_label("hospital").first.check()
    page.get_by_role("button", name="Leave each source out").click()
    page.wait_for_function("location.search.includes('case=own')", timeout=30_000)
    page.wait_for_function("probe.tagged('gap.lodo:source').get_column('name').includes('north')")
    assert page.evaluate("[...probe.elements('#evil')].length") == 0
    own = page.evaluate("location.search")
    with visits(browser, app_url) as visit:
        other = visit(own, figures=HARM, viewport=PHONE, color_scheme="dark")
        other.get_by_text("somebody’s own").wait_for()
        assert other.get_by_label("case", exact=True).evaluate("(e) => e.options.length") == 4
        assert not overflow(other)
        found = Axe().run(other).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in serious] == []
        other.set_viewport_size({"width": 1280, "height": 720})
        other.evaluate("probe.frames(4)")
        assert not overflow(other)
