"""The page Learn in a browser: the tour by keyboard, Back, links, the switch, the hand on the world, a class."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from dashboards.lessons import ENDING
from dashboards.mechanism import MechanismPage
from dashboards.mechanism_answers import number
from leakviz.lessons import lessons

from .conftest import DESKTOP, PHONE, Frames, drag, visits

WIDE = "document.documentElement.scrollWidth <= innerWidth"
TALL = "document.documentElement.scrollHeight <= innerHeight"
HAND = "probe.models.find((m) => m.data?.wiring && m.data.shown).data"
SIZE = "parseFloat(getComputedStyle([...probe.elements('.player h1')][0]).fontSize)"
KEPT = "globalThis.canvases.every((c) => c.isConnected) && [...probe.elements('canvas')].every((c) => canvases.includes(c))"


TOLD = "(() => { const d = probe.models.find((m) => m.data?.course).data; return `${d.step} ${d.stage}` })()"


@pytest.fixture(scope="module")
def world(browser, app_url):
    """Return the page with the world, and the counter of what goes over its websocket."""
    heard = []
    with visits(browser, app_url) as visit:
        page = visit(
            "?page=learn&step=world&detector=knn&in_fit=1&distance=5",
            figures=4,
            prepare=lambda page: heard.append(Frames(page)),
        )
        yield page, heard[0]


@pytest.fixture(scope="module")
def learner(browser, app_url, world):
    """Return the lessons in another window of the same browser, opened before a class by a link to none of them."""
    with visits(browser, app_url) as visit:
        page = visit("?page=learn&present=1&step=9", figures=None, context=world[0].context)
        page.wait_for_function("probe.texts().auroc_says")
        yield page


@pytest.fixture
def start(world):
    page, _ = world
    page.bring_to_front()  # a window behind another gets few frames
    page.mouse.move(5, 5)
    page.wait_for_timeout(300)  # a hand that just let go says so a little later
    before = page.evaluate(f"{HAND}.answered")
    page.get_by_role("button", name="Reset", exact=True).click()
    page.wait_for_function(f"before => {HAND}.answered > before", arg=before)
    page.wait_for_function("location.search === '?page=learn&step=world' && probe.texts().auroc_says !== ''")
    page.wait_for_function("probe.table.state.share === 0")
    page.evaluate("globalThis.canvases = [...probe.elements('canvas')]")
    return page


def text(page, variable):
    return page.evaluate("variable => probe.texts()[variable]", variable)


def afresh(page):
    """Go to lesson 1, nothing answered, no class."""
    if "present=1" in page.url:
        page.keyboard.press("Escape")
        page.wait_for_function("!location.search.includes('present')")
    page.get_by_role("link", name="your answers").click()
    page.get_by_role("heading", name="Your answers").wait_for()
    if page.get_by_role("button", name="Start afresh").count():
        page.get_by_role("button", name="Start afresh").click()
    else:
        page.get_by_role("link", name="lesson 1: ").click()
    page.wait_for_function("location.search === '?page=learn&step=1'")
    page.wait_for_selector(".where.open")


def test_a_class_is_led_through_by_arrows_alone(learner):
    """To the end and back, on one screen, the plane undistorted."""
    page = learner
    assert not page.get_by_role("navigation", name="pages").is_visible()
    assert "lesson 1 is shown" in page.get_by_role("alert").first.inner_text()
    page.wait_for_function("() => !location.search.includes('step=9')")
    seen, pressed = set(), 0
    while "end" not in seen and pressed < 40:
        page.keyboard.press("ArrowRight")
        pressed += 1
        page.evaluate("probe.frames(1)")
        seen.add(page.evaluate(TOLD).split()[0])
    assert seen == {*map(str, range(1, 9)), "end"}
    for _ in range(pressed):
        page.keyboard.press("ArrowLeft")
        page.evaluate("probe.frames(1)")
    assert page.evaluate(TOLD).split()[0] == "1"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.search.includes('step=2')")
    units = """() => { const f = probe.tagged("plane:figure"), {width, height} = Bokeh.index.find_one(f).frame.bbox
      return [width / (f.x_range.end - f.x_range.start), height / (f.y_range.end - f.y_range.start)] }"""
    for viewport in ({"width": 1920, "height": 1080}, DESKTOP):
        page.set_viewport_size(viewport)
        page.wait_for_timeout(250)
        across, up = page.evaluate(units)
        assert across == pytest.approx(up, rel=0.04)
        assert page.evaluate(TALL)
        assert page.evaluate(WIDE)
    page.keyboard.press("Escape")
    page.wait_for_function("!location.search.includes('present')")


def test_the_tour_by_keyboard(learner):
    """Every lesson is asked, answered, explained and left with keys alone; Back leads to where one was."""
    page = learner
    afresh(page)
    page.locator(".where.open").focus()
    told, said = lessons(), {}
    for lesson in told:
        page.wait_for_function("n => location.search.includes(`step=${n}`) || n === 1", arg=lesson.number)
        assert page.locator(".player h1").inner_text().endswith(lesson.title)
        marked = page.locator(".bar [aria-current]").all_inner_texts()
        assert marked == [str(lesson.number)]
        assert page.locator(".reveal").inner_text() == ""
        assert page.evaluate(WIDE)
        if lesson.kind == "where":
            for _ in range(lesson.number):
                page.keyboard.press("ArrowRight")
            said[lesson.number] = 0.5 + 0.05 * lesson.number
        else:
            page.keyboard.press("Tab")  # the second option
            said[lesson.number] = 1
        page.keyboard.press("Enter")
        page.wait_for_function("document => [...probe.elements('.reveal')][0].textContent !== ''")
        shown = page.locator(".reveal").inner_text()
        assert lesson.reveal in shown
        assert shown.endswith(lesson.found())
        assert page.evaluate(TALL)  # one screen, with its answer
        if lesson.kind == "where":
            assert number(lesson.truth()) in shown
            reads = {"decodable": "oracle_says", "exclusion": "unsup_says"}.get(lesson.slug, "auroc_says")
            page.wait_for_function("([v, n]) => probe.texts()[v] === n", arg=[reads, number(lesson.truth())])
        else:
            assert shown.startswith("Right." if lesson.answer() == 1 else "Not so.")
        if lesson.slug == "orientation":  # the class walks there before the eye
            assert page.evaluate("probe.slider('angle').value") != "90"
            page.wait_for_function("probe.slider('angle').value === '90'")
        for further in lesson.also:  # which Next leads to first, and it has the focus
            assert page.locator(".next").inner_text().lower() == f"next: {further.label}".lower()
            page.keyboard.press("Enter")
            page.wait_for_function(
                "t => [...probe.elements('.reveal')][0].textContent === t", arg=further.text
            )
            assert page.evaluate(TALL)
        page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('step=end')")
    page.wait_for_function(TALL)
    assert page.get_by_role("heading", name=ENDING["title"]).is_visible()
    checks = page.locator(".player ol li").all_inner_texts()
    assert len(checks) == len(ENDING["checks"])
    for shown, check in zip(checks, ENDING["checks"], strict=True):
        assert shown.startswith(check["text"])
    table = page.get_by_role("table", name="your answers and the truth")
    for lesson in told:
        row = table.get_by_role("row").filter(has_text=lesson.title).inner_text()
        if lesson.kind == "where":
            assert f"{said[lesson.number]:.2f}" in row
            assert number(lesson.truth()) in row
        else:
            assert lesson.options[lesson.answer()] in row
    page.go_back()
    page.wait_for_function("location.search.includes('step=8')")
    page.wait_for_function("[...probe.elements('.player h1')][0].textContent.endsWith('Predictions only')")
    assert page.locator(".reveal").inner_text() != ""  # answers are kept
    page.go_back()
    page.wait_for_function(
        "[...probe.elements('.player h1')][0].textContent.endsWith('Few rows, many features')"
    )
    page.go_forward()
    page.wait_for_function("location.search.includes('step=8')")
    page.wait_for_function("[...probe.elements('.player h1')][0].textContent.endsWith('Predictions only')")
    page.set_viewport_size(PHONE)  # every answer, further case and the end, once more
    for lesson in told:
        page.get_by_role("link", name=f"lesson {lesson.number}: ").click()
        page.wait_for_function(f"{TOLD} === '{lesson.number} 0'")
        for further in ("", *(further.label for further in lesson.also)):
            if further:
                page.get_by_role("button", name=further, exact=True).click()
            page.evaluate("probe.frames(3)")  # figures take their size a little later
            assert page.locator(".reveal").inner_text() != ""
            assert page.evaluate(WIDE), lesson.slug
    page.get_by_role("link", name="your answers").click()
    page.get_by_role("heading", name="Your answers").wait_for()
    page.evaluate("probe.frames(2)")
    assert page.evaluate(WIDE)
    page.set_viewport_size(DESKTOP)


def test_a_link_to_a_lesson_on_a_phone_in_the_dark(learner):
    """Loaded again, the answers are still there."""
    page = learner
    afresh(page)
    page.locator(".where.open").press("Enter")
    page.wait_for_function("[...probe.elements('.reveal')][0].textContent !== ''")
    answered = page.locator(".reveal").inner_text()
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    page.goto(page.url.split("?")[0] + "?page=learn&step=3")
    page.wait_for_function("globalThis.probe?.table && probe.texts().auroc_says")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator(".reveal").inner_text() == ""
    assert page.locator(".player h1").inner_text().endswith("The leak")
    assert page.evaluate(WIDE)
    found = Axe().run(page).response["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    assert serious == [], [(v["id"], [n["target"] for n in v["nodes"]]) for v in serious]
    box = page.locator(".where.open").bounding_box()
    page.touchscreen.tap(box["x"] + 0.5 * box["width"], box["y"] + 30) if page.evaluate(
        "'ontouchstart' in window"
    ) else page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 30)
    page.wait_for_function("n => probe.texts().auroc_says === n", arg=number(lessons()[2].truth()))
    page.wait_for_function("probe.table.state.share === 8")  # the eye has seen it turn
    assert page.get_by_role("switch").get_attribute("aria-checked") == "true"
    assert page.evaluate(WIDE)

    # Before a class: large, without the frame, by arrow keys.
    page.set_viewport_size(DESKTOP)
    before = page.evaluate(SIZE)
    page.get_by_role("button", name="present to a class: large type, arrow keys").click()
    page.wait_for_function("location.search.includes('present=1')")
    assert not page.get_by_role("navigation", name="pages").is_visible()
    assert page.evaluate(SIZE) >= 1.2 * before
    page.keyboard.press("ArrowRight")  # the further case of lesson 3
    page.evaluate("probe.frames(2)")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.search.includes('step=4')")
    assert page.locator(".reveal").inner_text() == ""
    page.keyboard.press("ArrowRight")
    page.wait_for_function("[...probe.elements('.reveal')][0].textContent !== ''")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("location.search.includes('step=3')")
    assert page.evaluate(WIDE)
    page.keyboard.press("Escape")
    page.wait_for_function("!location.search.includes('present')")
    assert page.get_by_role("navigation", name="pages").is_visible()
    page.get_by_role("link", name="lesson 1: ").click()
    page.wait_for_function("told => [...probe.elements('.reveal')][0].innerText === told", arg=answered)


def test_another_detector_and_sessions_apart(world, learner):
    page, other = world[0], learner
    assert page.get_by_label("detector").input_value() == "knn"
    assert page.get_by_role("switch").get_attribute("aria-checked") == "true"
    assert not page.get_by_role("slider", name="alpha").is_visible()
    assert text(page, "tells_says").startswith("the kNN")
    other.get_by_role("link", name="explore the world").click()
    other.wait_for_function("probe.texts().tells_says.startsWith('the one-class')")
    page.get_by_label("detector").select_option("class-conditional")
    page.wait_for_function("probe.texts().tells_says.startsWith('the class-conditional')")
    assert text(other, "tells_says").startswith("the one-class")
    found = Axe().run(page).response["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    assert serious == [], [(v["id"], [n["target"] for n in v["nodes"]]) for v in serious]


def test_alpha_is_a_table(start, world):
    table = MechanismPage("?step=world").live.answers
    seen = drag(start, world[1], "alpha", "[probe.texts().auroc_says, probe.column('round2', 'x')[0]]")
    for stop, (told, x) in seen:
        now = table.isel(share=0, alpha=stop)
        assert told == now["auroc_says"].item()
        assert x == now["round2_x"].values[0]


def test_the_switch_turns_the_level_lines_before_the_eye(start, world):
    frames = world[1]
    start.wait_for_timeout(300)  # what Reset sent has come
    before = frames.count
    shares = start.evaluate(
        """() => new Promise((done) => {
          const seen = new Set(), begun = performance.now()
          const look = () => {
            seen.add(probe.table.state.share)
            if (probe.table.state.share === 8) done([seen.size, performance.now() - begun])
            else requestAnimationFrame(look)
          }
          ;[...probe.elements('[role=switch]')][0].click()
          look()
        })"""
    )
    assert frames.count - before <= 3  # the release: one message, in three
    assert shares[0] >= 4
    assert shares[1] < 1000  # half a second, and what a busy machine adds
    start.wait_for_function("location.search.includes('in_fit=1')")
    assert text(start, "word_says") == "below one half: inverted"
    assert (
        start.evaluate("probe.tagged('ood:glyph').marker.value ?? probe.tagged('ood:glyph').marker")
        == "circle"
    )
    start.emulate_media(reduced_motion="reduce")
    moved = start.evaluate(
        """() => { const seen = []; const t = probe.table, move = t.move.bind(t)
          t.move = (stops) => { seen.push(stops.share); return move(stops) }
          ;[...probe.elements('[role=switch]')][0].click(); delete t.move; return seen }"""
    )
    assert moved == [0]
    start.emulate_media(reduced_motion="no-preference")
    assert start.evaluate(KEPT)


def test_one_request_is_under_way_and_the_latest_wins(start):
    sent = start.evaluate(
        """async () => {
          const data = HAND, steps = []
          const model = probe.models.find((m) => m.data === data), trigger = model.trigger_event.bind(model)
          let under_way = 0, most = 0
          model.trigger_event = (event) => { under_way += 1; most = Math.max(most, under_way); trigger(event) }
          data.properties.answered.change.connect(() => { under_way -= 1; steps.push(probe.texts().auroc_says) })
          for (let k = 0; k < 40; k += 1) { probe.slide("distance", 60 + k); await probe.frames(1) }
          probe.slider("distance").dispatchEvent(new Event("change", {bubbles: true}))
          return most
        }""".replace("HAND", HAND)
    )
    assert sent == 1
    start.wait_for_function("location.search.includes('distance=4.95')")
    table = MechanismPage("?step=world&distance=4.95").live.answers
    start.wait_for_function(
        "n => probe.texts().auroc_says === n", arg=table["auroc_says"].isel(share=0, alpha=0).item()
    )
    assert start.evaluate(KEPT)


def test_centres_are_dragged(start):
    x, y = start.evaluate("[probe.column('ood_centre', 'x')[0], probe.column('ood_centre', 'y')[0]]")
    at = start.evaluate("([x, y]) => probe.place('ood_centre:source', x, y)", [x, y])
    to = start.evaluate("([x, y]) => probe.place('ood_centre:source', x, y)", [x - 6, y - 1])
    start.mouse.move(at["x"], at["y"])
    start.mouse.down()
    start.mouse.move(to["x"], to["y"], steps=6)
    start.mouse.up()
    start.wait_for_function("location.search.includes('angle=')")
    start.wait_for_function("x => Math.abs(probe.column('ood_centre', 'x')[0] - x) < 0.15", arg=x - 6)
    assert start.evaluate("probe.column('held', 'x')[0]") == -99
    # And by keys: Space takes the first known class, the arrow moves it.
    first = start.evaluate("probe.column('centre', 'x')[0]")
    start.get_by_role("application").focus()
    start.keyboard.press("Space")
    start.keyboard.press("Shift+ArrowRight")
    start.wait_for_function("location.search.includes('centres=')")
    start.wait_for_function("x => Math.abs(probe.column('centre', 'x')[0] - x) < 0.06", arg=first + 1)
    assert start.evaluate(KEPT)
    assert start.get_by_role("slider", name="distance").get_attribute("aria-valuetext") in start.url
