"""The whitening page in a browser: every stop of alpha, the hand, choosing, links, looks."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from dashboards.whitening import WhiteningPage
from dashboards.whitening_answers import number

from .conftest import PHONE, Frames, drag, stand, visits

FIGURES = 5
EXCLUDED = "#0072B2"


@pytest.fixture(scope="module")
def opened(browser, app_url):
    """Return the page, and the counter of what goes over its websocket."""
    heard = []
    with visits(browser, app_url) as visit:
        page = visit("?page=whitening", figures=FIGURES, prepare=lambda page: heard.append(Frames(page)))
        yield page, heard[0]


@pytest.fixture(scope="module")
def page(opened):
    return opened[0]


@pytest.fixture(scope="module")
def table():
    return WhiteningPage().live.answers


@pytest.fixture
def start(page):
    page.mouse.move(5, 5)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("['', '?page=whitening'].includes(location.search)")
    page.wait_for_function("probe.texts().ood_says === 'Coat'")
    page.evaluate("probe.frames()")
    return page


def text(page, variable):
    return page.evaluate("variable => probe.texts()[variable]", variable)


def test_every_stop_of_alpha_is_the_table(start, table):
    said = [f"say_{i}" for i in range(9)] + ["auroc_interval", "condition_number_says", "excess_interval"]
    seen = start.evaluate(
        """([n, said]) => Array.from({length: n}, (_, stop) => {
          probe.slide("alpha", stop)
          const t = probe.texts(), column = (name, c) => probe.column(name, c)
          return {said: said.map((v) => t[v]), now: [column("now", "place")[0], column("now", "auroc")[0]],
            line: probe.tagged("now_line:glyph").location, shrunk: column("shrunk", "shrunk"),
            budget: column("budget", "share"), sum: column("budget_sum", "budget_sum"),
            id: column("id", "top"), ood: column("ood", "top")}
        })""",
        [table.sizes["alpha"], said],
    )
    for stop, here in enumerate(seen):
        now = table.isel(alpha=stop)
        assert here["said"] == [str(now[v].item()) for v in said], stop
        assert here["now"] == [now["now_x"].item(), now["now_y"].item()]
        assert here["line"] == now["now_line"].item()
        for shown, variable in (
            ("shrunk", "shrunk"),
            ("budget", "budget"),
            ("sum", "budget_sum"),
            ("id", "id_share"),
            ("ood", "ood_share"),
        ):
            np.testing.assert_allclose(
                np.array(here[shown], dtype=float), now[variable].values, rtol=1e-6, err_msg=f"{stop} {shown}"
            )


def test_a_drag_sends_nothing_and_makes_no_canvas(start, opened, table):
    seen = drag(start, opened[1], "alpha", "[probe.texts().say_1, probe.column('now', 'place')[0]]")
    for stop, (told, place) in seen:
        assert told == number(table["value"].values[stop])
        assert place == table["alpha"].values[stop]
    start.wait_for_function("location.search.includes('alpha=')")


def test_keys_the_button_and_a_tap_move_alpha(start):
    slider = start.get_by_role("slider", name="alpha")
    own = slider.get_attribute("aria-valuetext")
    assert own.endswith("(Ledoit-Wolf)")
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "1"
    start.wait_for_function("location.search.includes('alpha=1')")
    button = start.get_by_role("button", name="Ledoit-Wolf")
    assert button.get_attribute("aria-pressed") == "false"
    button.press("Enter")
    assert slider.get_attribute("aria-valuetext") == own
    assert button.get_attribute("aria-pressed") == "true"
    at = start.evaluate("probe.place('auroc:y_range', 24, 0.75)")
    start.mouse.click(at["x"], at["y"])
    start.wait_for_function("location.search.includes('alpha=0.1')")
    assert text(start, "say_1") == "0.1"


def test_choosing_patches_without_new_canvases(start):
    start.evaluate("globalThis.canvases = [...probe.elements('canvas')]")
    assert (
        start.evaluate("probe.tagged('ood:glyph').fill_color.value ?? probe.tagged('ood:glyph').fill_color")
        == EXCLUDED
    )
    start.get_by_label("OOD", exact=True).select_option(label="Sneaker")
    start.get_by_label("fit set, default without OOD").select_option(label="all classes")
    start.wait_for_function("probe.texts().regime_says === 'leak'")
    start.get_by_label("rows, default all").select_option(label="150")
    start.wait_for_function("location.search.includes('rows=150')")
    page = WhiteningPage("?ood=Sneaker&fit=all&rows=150")
    start.wait_for_function("fit => probe.texts().fit_says === fit", arg=page.case.fit_name)
    table = page.live.answers
    assert text(start, "auroc_says") == str(page.live.at()["auroc_says"].item())
    np.testing.assert_allclose(start.evaluate("probe.column('curve', 'auroc')"), table["curve_y"].values)
    # The track has the new fit set's stops: its Ledoit-Wolf and its best alpha are marked.
    last = table.sizes["alpha"] - 1
    marks = [f"{100 * table.attrs[stop] / last:.3f}" for stop in ("own", "best")]
    shown = start.evaluate("[...probe.elements('.marks i')].map((i) => parseFloat(i.style.left).toFixed(3))")
    assert shown == marks
    assert start.get_by_role("slider", name="alpha").get_attribute("max") == str(last)
    start.get_by_label("features").select_option(label="ViT on MNIST")
    start.wait_for_function("probe.tagged('budget:x_range').end === 64.5")
    assert start.evaluate(
        "[...probe.elements('canvas')].every((c) => canvases.includes(c)) && canvases.every((c) => c.isConnected)"
    )


def test_lessons_and_classes(start):
    start.get_by_role("button", name="150 rows: it heals").click()
    start.wait_for_function("location.search.includes('rows=150') && location.search.includes('alpha=0')")
    assert text(start, "say_1") == "0"
    start.get_by_label("fit set, default without OOD").select_option(label="chosen classes")
    start.get_by_label("Bag").uncheck()
    start.wait_for_function("probe.texts().fit_says.startsWith('9 of 10 classes')")
    assert text(start, "regime_says") == "leak"  # Coat is ticked


def test_a_deep_link_and_two_sessions_apart(visit, page):
    context = page.context
    other = visit("?page=whitening&setting=N_excl_vit-mnist_2&alpha=0.2", figures=FIGURES, context=context)
    assert text(other, "ood_says") == "digit 2"
    assert text(other, "say_1") == "0.2"
    assert other.get_by_label("features").input_value() == "ViT on MNIST"
    before = text(page, "say_1")
    other.get_by_role("slider", name="alpha").press("Home")
    other.wait_for_function("location.search.endsWith('alpha=0')")
    assert text(page, "say_1") == before
    other.reload()
    stand(other, FIGURES)
    assert (text(other, "ood_says"), text(other, "say_1")) == ("digit 2", "0")
    found = Axe().run(other).response["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in serious] == []
    other.set_viewport_size(PHONE)
    other.evaluate("probe.frames(6)")
    assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_nothing_overflows_and_files_come(start):
    assert start.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for kind, word in (("SVG", b"AUROC</text>"), ("CSV", b"ledoit_wolf")):
        with start.expect_download() as started:
            start.get_by_role("button", name=kind, exact=True).first.click()
        assert started.value.suggested_filename == f"whitening-auroc.{kind.lower()}"
        assert word in started.value.path().read_bytes()
