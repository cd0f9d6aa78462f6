"""What a hand does to the fingerprint page of the computed battery: alpha, another battery, a setting's detail."""

import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import leakviz
from dashboards import batteries
from leakviz.detector_sweep import use_detector

from .conftest import DESKTOP, PHONE, Frames, stand, visits
from .test_hand import place, slider, text, wait_for_address, wait_for_text

ASK = "?page=fingerprint&battery=computed"
DETAIL = 4  # figures of a chosen setting


@pytest.fixture(scope="module")
def computed():
    return batteries.computed().dataset


@pytest.fixture(scope="module")
def opened(browser, app_url):
    """Return one page for all tests here, and what went over its sockets."""
    counted = []
    with visits(browser, app_url) as visit:
        page = visit(ASK, figures=None, prepare=lambda page: counted.append(Frames(page)))
        page.set_default_timeout(60_000)  # the first visitor waits until the battery is loaded and drawn
        stand(page)
        yield page, counted[0]


@pytest.fixture
def page(opened):
    page, _ = opened
    page.set_viewport_size(DESKTOP)
    page.mouse.move(2, 2)
    page.get_by_role("button", name="Reset").click()
    wait_for_text(page, "say_alpha", "Ledoit-Wolf")
    page.wait_for_function("!/alpha|chosen|tied/.test(location.search)")
    return page


@pytest.fixture
def detail(opened):
    """Return the page with a setting chosen: the one that a tap has opened, or the first."""
    page, frames = opened
    page.set_viewport_size(DESKTOP)
    if "chosen=" not in page.url:
        page.get_by_label("setting", exact=True).select_option(value="1")
        wait_for_address(page, "chosen=")
    page.wait_for_function(f"probe.ready({4 + DETAIL})")
    return page, frames


def settle(page, frames):
    """Wait until nothing more comes over the sockets: the detail is there."""
    last = -1
    while last != frames.count:
        last = frames.count
        page.wait_for_timeout(250)


def bottom_of_the_box(page):
    """Return how far down the page the figure with the firing box reaches, in pixels."""
    return page.evaluate(
        "[...probe.elements('.bk-Figure')][0].getBoundingClientRect().bottom + document.documentElement.scrollTop"
    )


def answer(computed, alpha, gate=0.95, tau=0.65, **options):
    stop = alpha if alpha == "ledoit-wolf" else float(alpha)
    return leakviz.score_battery(use_detector(computed, alpha=stop, **options), leakviz.Rule(gate, tau))


def leaks_that_fire(score):
    of = score.sel(regime="leak")
    return f"{int(of['correct'])} of {int(of['n'])}"


def test_a_tap_on_a_point_opens_its_detail(page, computed):
    setting = "N_retrain_resnet-fashion_Shirt"
    row = computed.sel(setting=setting).mean("seed")
    page.mouse.click(*place(page, "edges", row["oracle_lda"].item(), row["best_unsup"].item()))
    wait_for_address(page, f"chosen={setting}")
    page.wait_for_function(f"probe.ready({4 + DETAIL})")
    says = page.evaluate("probe.texts()")
    assert says["title"] == "Shirt, ResNet on Fashion-MNIST: backbone retrained without the class"
    assert says["oracle_lda_mean"] == f"{row['oracle_lda'].item():.3f}"
    page.get_by_role("button", name="seed 2", exact=True).click()
    values = computed["knn"].sel(setting=setting).values
    assert page.evaluate("probe.texts().knn_says").startswith(f"{values[2]:.3f}")
    link = page.get_by_role("link", name="open in Whitening")
    assert link.get_attribute("href") == f"?page=whitening&setting={setting}"


def test_the_page_is_sound_with_a_detail_and_on_a_phone(detail):
    page, _ = detail
    serious = [v for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
    told = [f"{v['id']}: {v['help']}: {n['html'][:300]}" for v in serious for n in v["nodes"]]
    assert not told, "\n".join(told)
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        page.evaluate("probe.frames(5)")
        wide = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide[0] <= wide[1], size


def test_alpha_moves_points_read_outs_and_detail_without_the_server(detail, computed):
    page, frames = detail
    settle(page, frames)
    page.evaluate("scrollTo(0, 0)")
    page.evaluate("for (const c of probe.elements('canvas')) c.known = true")
    track = slider(page, "alpha").bounding_box()
    stops = page.evaluate("probe.table.values.alpha")
    at = lambda i: track["x"] + 9 + i / (len(stops) - 1) * (track["width"] - 18)  # noqa: E731
    y = track["y"] + track["height"] / 2
    look = """async () => {
      await probe.frames(3)
      const {say_alpha, leak_count, area, maha_mean} = probe.texts()
      const picture = [...probe.elements("canvas")].map((c) => c.toDataURL()).join()
      return [say_alpha, leak_count, area, maha_mean, Array.from(probe.column("leak", "best_unsup")), picture]
    }"""
    page.mouse.move(at(stops.index("ledoit-wolf")), y)
    page.mouse.down()
    page.evaluate("probe.frames(3)")
    before, seen = frames.count, []
    leaks = computed["regime"].values == "leak"
    chosen = re.search("chosen=([^&]+)", page.url)[1]
    for alpha in ("0.01", "1", "0"):
        page.mouse.move(at(stops.index(alpha)), y, steps=3)
        seen.append(page.evaluate(look))
        shown, count, area, maha, unsup, _ = seen[-1]
        score, under = answer(computed, alpha), use_detector(computed, alpha=float(alpha))
        assert (shown, count, area) == (alpha, leaks_that_fire(score), f"{float(score['auroc']):.4f}")
        expected = under["best_unsup"].isel(setting=leaks).mean("seed").values
        np.testing.assert_allclose(unsup, expected, atol=1e-6)
        assert maha == f"{under['maha'].sel(setting=chosen).mean().item():.3f}"  # the detail's table
    during = frames.count
    page.mouse.up()
    assert during == before, f"{during - before} websocket frames during the drag"
    assert len({picture for *_, picture in seen}) == len(seen), "the picture stood still"
    wait_for_address(page, "alpha=0&")
    assert page.evaluate("[...probe.elements('canvas')].filter((c) => !c.known).length") == 0, "new canvases"
    assert frames.count > during


def test_a_menu_of_the_detector_is_answered_by_the_server_in_the_same_figures(page, computed):
    page.evaluate("for (const c of probe.elements('canvas')) c.known = true")
    assert bottom_of_the_box(page) <= DESKTOP["height"]  # sentence, sliders and box are on the first screen
    slider(page, "alpha").press("End")
    page.get_by_label("covariance", exact=True).select_option("tied")
    page.get_by_label("detector", exact=True).select_option("Mahalanobis")
    score = answer(computed, "1", covariance="tied", detector="mahalanobis")
    wait_for_text(page, "leak_count", leaks_that_fire(score))
    assert text(page, "area") == f"{float(score['auroc']):.4f}"
    wait_for_address(page, "alpha=1", "covariance=tied", "detector=mahalanobis")
    assert page.evaluate("[...probe.elements('canvas')].filter((c) => !c.known).length") == 0, "new canvases"


def test_another_battery_comes_under_the_same_frame_and_the_keyboard_stays(page):
    menu = page.get_by_label("battery", exact=True)
    menu.focus()
    menu.press("ArrowUp")
    wait_for_text(page, "leak_count", "18 of 20")
    page.wait_for_function("probe.ready(4)")
    assert not page.get_by_role("slider", name="alpha", exact=True).count()
    assert page.evaluate("globalThis.__leakviz_live.tables.length") == 1
    held = "(() => { let e = document.activeElement; while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement; return e.labels?.[0]?.textContent })()"
    assert page.evaluate(held) == "battery"
    wait_for_address(page, "page=fingerprint&gate=0.95&tau=0.65")
    slider(page, "tau").press("End")
    wait_for_text(page, "leak_count", "20 of 20")
    assert bottom_of_the_box(page) <= DESKTOP["height"]
