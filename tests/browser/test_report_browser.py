"""The Report page: put together by keyboard, made as HTML, and opened from disk without a network."""

from .conftest import DESKTOP, PHONE, sound

FOCUSED = """(() => { let a = document.activeElement
  while (a?.shadowRoot?.activeElement) a = a.shadowRoot.activeElement
  return a?.getAttribute("aria-label") })()"""


def test_a_report_is_put_together_by_keyboard_and_made(visit, browser, tmp_path):
    page = visit("?page=report", figures=None)
    title = page.get_by_label("title", exact=True)
    title.fill("Spring <b>")
    title.press("Tab")  # what was typed is taken when the field is left
    for name in ("Sources", "Purity"):
        button = page.get_by_role("button", name=f"add {name}")
        button.focus()
        button.press("Enter")
        page.get_by_role("button", name=f", {name}, up").wait_for()
        assert page.evaluate(FOCUSED) == f"add {name}"
    up = page.get_by_role("button", name="move section 2, Purity, up")
    up.focus()
    up.press("Enter")
    page.get_by_role("button", name="move section 1, Purity, down").wait_for()
    assert page.evaluate(FOCUSED) == "move section 1, Purity, down"  # the focus goes along
    assert page.get_by_role("heading", level=1).inner_text() == "A report of 2 sections."
    page.wait_for_function("location.search.includes('sections=purity;lodo')")
    page.get_by_role("button", name="remove section 2, Sources").press("Enter")
    page.get_by_role("heading", name="A report of 1 section.").wait_for()
    sound(page)

    with page.expect_download() as coming:
        page.get_by_role("button", name="make the report as HTML").press("Enter")
    assert coming.value.suggested_filename == "leakviz-report.html"
    path = tmp_path / "report.html"
    coming.value.save_as(path)
    page.get_by_text("Saved as leakviz-report.html").wait_for()

    context = browser.new_context(offline=True, java_script_enabled=False, viewport=DESKTOP)
    asked = []
    try:
        report = context.new_page()
        report.on("request", lambda r: asked.append(r.url))
        report.goto(path.as_uri())
        assert report.get_by_role("heading", level=1).inner_text() == "Spring <b>"
        figure, *others = report.get_by_role("img").all()
        assert len(others) == 2  # what is certified, and the leak that grows
        box = figure.bounding_box()
        assert box["width"] > 500
        assert box["height"] > 300
        assert report.get_by_text("records, from the highest predicted risk down").is_visible()
        report.set_viewport_size(PHONE)
        assert report.locator("main").bounding_box()["width"] == PHONE["width"]
        assert figure.bounding_box()["width"] <= PHONE["width"]
        assert all(url == path.as_uri() or url.startswith("data:") for url in asked)
    finally:
        context.close()
