"""The page for one's own predictions, as a hand, a keyboard and a second session meet it."""

import time

import numpy as np
import pandas as pd
import pytest

from .conftest import DESKTOP, fits, sound, visits

PAGE = "?page=predictions"
SCRIPT = "window.harmed = true"
HTML = f'<img src=x onerror="{SCRIPT}">'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(3)
    z = rng.normal(size=3000) - 2
    p = 1 / (1 + np.exp(-z))
    event = rng.random(len(p)) < p
    path = tmp_path_factory.mktemp("files")
    pd.DataFrame({"p": p, "y": event.astype(int)}).to_parquet(path / "clear.parquet")
    pd.DataFrame({"risk": p.round(4), "bmi": 20 + z, "died": np.where(event, "case", "control")}).to_csv(
        path / "open.csv", index=False
    )
    (path / "again.csv").write_bytes((path / "open.csv").read_bytes().replace(b"bmi", b"BMI"))
    (path / "broken.csv").write_text("p,y\n0.5,1\nn/k,0\n")
    (path / "empty.csv").write_text("")
    (path / "hostile.csv").write_text(
        f'"{HTML.replace(chr(34), chr(34) * 2)}",<svg/onload={SCRIPT.replace(" ", "")}>,note\n'
        f"0.5,<script>{SCRIPT}</script>,<b>bold</b>\n0.25,<i>x</i>,<b>bold</b>\n"
    )
    # what takes seconds to read: every cell is written in a way of its own
    n = 400_000
    rows = (f'{{"p": {i % 997 / 997}, "y": {i % 2}, "id": "{i}x"}}\n' for i in range(n))
    (path / "slow.jsonl").write_text("".join(rows))
    return path


@pytest.fixture(scope="module")
def page(browser, app_url):
    """Return one session's page, on which each test brings its files; the first finds it empty."""
    with visits(browser, app_url) as visit:
        yield bring(visit)


@pytest.fixture(scope="module")
def other(browser, app_url):
    """Return the page of another session."""
    with visits(browser, app_url) as visit:
        yield bring(visit)


def bring(visit):
    page = visit(PAGE, figures=None)
    page.get_by_role("heading", name="Bring predicted risks").wait_for()
    return page


def give(page, path):
    page.set_input_files("input[type=file]", path)


def heading(page, words):
    page.get_by_role("heading", level=1).filter(has_text=words).wait_for()


def chosen(page, title):
    """Wait until a menu that is seen stands on a vector."""
    page.wait_for_function(
        """(title) => [...probe.elements("select")].some(
          (s) => s.getClientRects().length && s.selectedOptions[0]?.textContent.includes(title))""",
        arg=title,
    )
    rest(page)


def rest(page):
    """Wait until a page full of figures has all of them: leaving earlier makes the server complain."""
    page.wait_for_function(
        """() => {
          const now = [...probe.elements("canvas")].length
          if (now !== globalThis.canvases) globalThis.since = performance.now()
          globalThis.canvases = now
          return now > 0 && Bokeh.documents.every((d) => d.is_idle) && performance.now() - globalThis.since > 1500
        }"""
    )


def use(page, path):
    """Bring a file that leaves nothing open, if it is not there yet: it is used at once."""
    if not page.get_by_role("region", name="your shelf").get_by_text(path.name).count():
        give(page, path)
    page.get_by_role("link", name="See its purity").wait_for()


def test_every_stage_is_sound(page, folder):
    """Axe finds nothing serious, and nothing is wider than the screen."""
    sound(page)  # empty
    give(page, folder / "open.csv")
    heading(page, "2 open questions")
    sound(page)
    give(page, folder / "empty.csv")
    page.get_by_role("alert").filter(has_text="0 bytes").wait_for()
    sound(page)
    give(page, folder / "hostile.csv")
    heading(page, "hostile.csv")
    fits(page)
    use(page, folder / "clear.parquet")
    sound(page)
    page.set_viewport_size(DESKTOP)


def test_from_the_file_to_the_verdict_and_on_to_purity_and_calibration(page, folder):
    use(page, folder / "clear.parquet")
    heading(page, "In clear.parquet a leak is not shown")
    page.wait_for_function(
        """() => [...probe.elements("canvas")].some((c) => c.width
          && new Set(c.getContext("2d").getImageData(0, 0, c.width, c.height).data).size > 9)"""
    )
    assert page.get_by_text("Change how they are read, and they are tested anew").is_visible()
    page.get_by_label("event, y = 1").select_option("0")
    page.get_by_text("The ranking is reversed").first.wait_for()
    assert page.get_by_role("region", name="your shelf").get_by_role("listitem").count() == 1
    page.get_by_label("event, y = 1").select_option("1")
    page.get_by_text("The ranking is reversed").first.wait_for(state="detached")
    assert page.get_by_text("no test on predictions and outcomes can").first.is_visible()
    name = (
        page.get_by_role("link", name="See its purity").get_attribute("href").split("first=")[1].split("&")[0]
    )
    assert name.startswith("own:")

    page.get_by_role("link", name="See its purity").click()
    page.wait_for_url(f"**first={name.replace(':', '*')}**")
    chosen(page, "clear.parquet")
    page.go_back()
    heading(page, "In clear.parquet a leak is not shown")
    page.get_by_role("link", name="See its calibration").click()
    page.wait_for_url("**page=calibration**")
    chosen(page, "clear.parquet")
    page.get_by_role("link", name="Your predictions").click()
    heading(page, "In clear.parquet a leak is not shown")


def test_a_bad_file_gives_one_message_and_what_was_loaded_stays(page, folder):
    use(page, folder / "clear.parquet")
    for file, words in (("broken.csv", "not a number in 1 of 2 rows"), ("empty.csv", "0 bytes")):
        give(page, folder / file)
        page.get_by_role("alert").filter(has_text=words).wait_for()
        assert page.get_by_role("alert").filter(visible=True).count() == 1
        assert page.get_by_role("region", name="your shelf").get_by_text("not shown", exact=True).is_visible()
        assert page.get_by_text("clear.parquet, 3,000 records").is_visible()  # over its curve
        assert (
            page.get_by_role("button", name="Use these predictions")
            .or_(page.get_by_role("heading", name="In clear.parquet a leak is not shown"))
            .is_visible()
        )


def test_an_answer_is_taken_back(page, folder):
    give(page, folder / "again.csv")
    heading(page, "again.csv has 3,000 rows and 2 open questions")
    page.get_by_role("radio", name="'case' (").check()
    heading(page, "1 open question")
    page.get_by_role("button", name="take this answer back").click()
    heading(page, "2 open questions")
    assert not page.get_by_role("radio", name="'case' (").is_checked()


def test_questions_are_answered_by_keyboard(page, folder):
    give(page, folder / "open.csv")
    heading(page, "open.csv has 3,000 rows and 2 open questions")
    page.get_by_role("radio", name="'risk': ").or_(
        page.get_by_role("radio", name="'control' (")
    ).first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    heading(page, "1 open question")
    focused = (
        "[...probe.elements('*')].map((e) => e.shadowRoot?.activeElement).filter(Boolean).at(-1)?.dataset.key"
    )
    assert page.evaluate(focused).startswith(("p/", "positive/"))  # where it was
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "use":
            break
        if page.evaluate(
            "[...probe.elements('input[type=radio]:focus')].some((e) => ![...probe.elements(`input[name=${e.name}]`)].some((o) => o.checked))"
        ):
            page.keyboard.press("Space")
            heading(page, "open.csv can be used")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="See its purity").wait_for()


def test_markup_in_a_file_is_text(page, folder):
    give(page, folder / "hostile.csv")
    heading(page, "hostile.csv has 2 rows")
    page.get_by_text(HTML).first.wait_for()
    assert page.get_by_text("<b>bold</b>").count()
    page.wait_for_timeout(300)
    assert page.evaluate("window.harmed") is None
    assert (
        page.evaluate(
            "[...probe.elements('img, svg[onload], script:not([src])')].filter((e) => e.getRootNode() !== document).length"
        )
        == 0
    )


def test_a_drop_anywhere_on_the_page_counts(page):
    page.evaluate(
        """() => {
          const carried = new DataTransfer()
          carried.items.add(new File(["p,y\\n0.9,1\\n0.2,0\\n"], "dropped.csv"))
          for (const type of ["dragover", "drop"]) {
            const event = new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true})
            document.querySelector("main").dispatchEvent(event)
            if (!event.defaultPrevented) throw new Error(`${type} is left to the browser`)
          }
        }"""
    )
    heading(page, "On dropped.csv the test is undetermined")


def test_two_sessions_do_not_see_each_other(page, other, folder):
    use(page, folder / "clear.parquet")
    other.get_by_role("link", name="Purity").click()
    other.wait_for_url("**page=purity**")
    rest(other)
    other.get_by_role("link", name="Your predictions").click()
    heading(other, "Bring predicted risks")
    assert other.get_by_text("clear.parquet").count() == 0
    texts = other.evaluate("[...probe.elements('option')].map((e) => e.textContent)")
    assert not any("clear.parquet" in text for text in texts)


def test_a_large_file_keeps_nobody_waiting_and_can_be_cancelled(page, other, folder):
    one = page
    give(one, folder / "slow.jsonl")
    one.get_by_role("progressbar").wait_for()
    one.get_by_text("Reading slow.jsonl: ").wait_for()
    waits = []
    for k in range(5):
        begin = time.perf_counter()
        other.set_input_files("input[type=file]", {"name": f"ping{k}.csv", "mimeType": "", "buffer": b""})
        other.get_by_role("alert").filter(has_text=f"ping{k}.csv").wait_for()
        waits.append(time.perf_counter() - begin)
    assert sorted(waits)[2] < 1, waits  # the middle one: this machine may be busy with other things
    assert one.get_by_role("progressbar").is_visible()  # it was being read all the while
    one.get_by_role("button", name="Cancel").click()
    one.get_by_role("alert").filter(has_text="you cancelled it").wait_for()
    give(one, folder / "open.csv")  # and the next one is read
    heading(one, "open.csv")
