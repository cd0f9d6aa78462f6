"""A saved page, opened from disk with the network off: it behaves like the page."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import leakviz
from app import PAGES
from dashboards.page_file import page_file
from leakviz.lessons import lessons
from leakviz.world import score_world, simulate_leak

from .conftest import DESKTOP, FIGURES, PHONE, PROBE, Frames, drag, fits, set_theme, sound, stand

DEAD = "select.bk-input, .bk-btn, a[href^='?']"


@pytest.fixture
def opened(browser):
    """Give a function that opens a file without a network; whatever the page asks for or says fails."""
    contexts, complaints = [], []

    def open_file(path, *, figures, **options):
        context = browser.new_context(offline=True, viewport=DESKTOP, **options)
        context.add_init_script(path=PROBE)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
        page.on(
            "request",
            lambda r: (
                None
                if r.url == path.as_uri() or r.url.startswith(("data:", "blob:"))
                else complaints.append(r.url)
            ),
        )
        page.on("websocket", lambda w: complaints.append(w.url))
        page.goto(path.as_uri())
        stand(page, figures)
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert complaints == []


def test_a_page_that_is_saved_is_the_page_without_a_server(reset, opened, tmp_path):
    app, path = reset, tmp_path / "page.html"
    tau = app.get_by_role("slider", name="tau", exact=True)
    tau.focus()
    for _ in range(10):
        tau.press("ArrowLeft")
    app.wait_for_function("location.search.endsWith('tau=0.6')")
    with app.expect_download() as coming:
        app.get_by_role("button", name="save this page").click()
    assert coming.value.suggested_filename == "leakviz-fingerprint.html"
    coming.value.save_as(path)
    assert path.stat().st_size <= 4_000_000

    page = opened(path, figures=FIGURES)
    assert page.evaluate("probe.texts()") == app.evaluate("probe.texts()")
    assert page.evaluate(f'[...probe.elements("{DEAD}")].length') == 0
    battery = leakviz.load_battery("published")
    about = page.get_by_role("region", name="About this file").inner_text()
    assert "gate=0.95&tau=0.6" in about
    assert battery.attrs["content_hash"] in about
    assert re.search(r"saved with leakviz \d+\.\d+\.\d+ on \d+ \w+ 20\d\d", about)

    # The slider moves the points and the sentence, and nothing else is made or asked.
    read = (
        "({says: probe.texts().leak_count, fires: probe.column('leak', 'fill_alpha').filter(Boolean).length})"
    )
    seen = drag(page, Frames(page), "tau", read)
    taus = page.evaluate("probe.table.values.tau")
    for stop, shown in seen:
        rule = leakviz.Rule(gate=0.95, tau=taus[stop])
        n = int(leakviz.score_battery(battery, rule).correct.sel(regime="leak"))
        assert shown == {"says": f"{n} of 20", "fires": n}
    assert len({shown["says"] for _, shown in seen}) > 1

    # What the theme paints: axis labels in the colours of either.
    sound(page)
    set_theme(page, "dark")
    page.set_viewport_size(DESKTOP)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"


def test_lessons_run_from_a_file(opened, tmp_path):
    path = tmp_path / "lessons.html"
    # Not in this thread, in which Playwright's loop runs.
    with ThreadPoolExecutor(1) as pool:
        saved = pool.submit(page_file, "learn", PAGES["learn"][1], "step=2", title="Learn").result()
    path.write_text(saved.html, encoding="utf-8")
    course = lessons()
    page = opened(path, figures=1)
    heading = lambda: page.get_by_role("heading", level=1).inner_text()  # noqa: E731
    assert heading().endswith(course[1].title)
    page.get_by_role("button", name="Skip").click()
    assert heading().endswith(course[2].title)

    # The question, then what came out: the switch turns, and the numbers are the core's.
    third = course[2]
    before = page.evaluate("probe.texts().auroc_says")
    page.get_by_role("button", name="Show the answer").click()
    page.wait_for_function("before => probe.texts().auroc_says !== before", arg=before)
    truth = third.truth()
    page.wait_for_function("t => Math.abs(probe.texts().auroc_says - t) < 0.006", arg=truth)
    assert (
        third.reveal in page.get_by_role("status").all_inner_texts()[-1]
        or page.get_by_text(third.reveal).count()
    )
    stand(page, 3)

    # A step ahead and back by keyboard, the end, and the world with its controls that are grey.
    page.get_by_role("link", name="your answers").click()
    assert heading() == "Your answers"
    page.get_by_role("link", name="explore the world").click()
    assert page.get_by_role("slider", name="distance").is_disabled()
    switch = page.get_by_role("switch", name="OOD class in the fit set")
    assert not switch.is_disabled()
    switch.click()
    world = simulate_leak(in_fit=True, **WORLD)
    expected = float(score_world(world, detector="one-class", alpha=0.0)["auroc"])
    page.wait_for_function("t => Math.abs(probe.texts().auroc_says.split(' ')[0] - t) < 0.006", arg=expected)
    page.set_viewport_size(PHONE)
    fits(page)


# The world that the page starts with.
WORLD = {
    "classes": 3,
    "distance": 6.25,
    "angle": 90,
    "anisotropy": 1.5,
    "orientation": 0,
    "rows": 300,
    "seed": 0,
}
