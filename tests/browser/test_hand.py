"""What a hand does to the fingerprint page: keys, drags, taps, menus, buttons; and what the address says."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

import leakviz

from .conftest import Frames, press_reset, set_theme, stand, visits

TOO_MUCH = "?gate=abc&tau=7&backbone=<img src=x onerror=alert(1)>&metric=1e999"


@pytest.fixture
def page(reset):
    return reset


@pytest.fixture(scope="module")
def own(browser, app_url):
    """Return the page of another visitor, whose system is dark, and the counter of what goes over its websockets."""
    counted = []
    with visits(browser, app_url) as visit:
        page = visit(TOO_MUCH, color_scheme="dark", prepare=lambda page: counted.append(Frames(page)))
        yield page, counted[0]


def slider(page, label):
    return page.get_by_role("slider", name=label, exact=True)


def text(page, variable):
    return page.evaluate("variable => probe.texts()[variable]", variable)


def wait_for_text(page, variable, expected):
    page.wait_for_function("([v, text]) => probe.texts()[v] === text", arg=[variable, expected])


def wait_for_address(page, *parts):
    page.wait_for_function("parts => parts.every((p) => location.search.includes(p))", arg=list(parts))


def state(page):
    return page.evaluate("({...probe.table.state})")


def place(page, tag, x, y):
    """Return where a point of a figure is on the screen, after scrolling there."""
    at = page.evaluate("([tag, x, y]) => probe.place(tag, x, y)", [tag, x, y])
    return at["x"], at["y"]


def tap(page, tag, x, y):
    """Tap a point of a figure; two taps within 300 ms would be a double tap to Bokeh."""
    page.wait_for_function("performance.now() > (probe.next_tap ?? 0)")
    page.mouse.click(*place(page, tag, x, y))
    page.evaluate("probe.next_tap = performance.now() + 350")


# Keys and the address


def test_keys_move_sliders_and_the_address_follows_in_place(page):
    entries = page.evaluate("history.length")
    tau = slider(page, "tau")
    tau.focus()
    for key, shown, sentence in (
        ("ArrowRight", "0.655", "0.655"),
        ("ArrowLeft", "0.650", "0.65"),
        ("Home", "0.200", "0.20"),
        ("End", "1.000", "1.00"),
    ):
        tau.press(key)
        assert (tau.get_attribute("aria-valuetext"), text(page, "say_tau")) == (shown, sentence), key
    wait_for_address(page, "gate=0.95", "tau=1")
    tau.press("Home")
    tau.press("PageUp")
    assert tau.get_attribute("aria-valuetext") == "0.280"  # a tenth of the way
    gate = slider(page, "oracle gate")
    gate.press("End")
    gate.press("ArrowDown")
    assert text(page, "say_gate") == "0.995"
    wait_for_address(page, "gate=0.995", "tau=0.28")
    assert page.evaluate("history.length") == entries


def test_tab_reaches_every_control_of_the_first_screen(page):
    page.get_by_role("link", name="leakviz").focus()
    reached = []
    while reached[-1:] != ["other source"] and len(reached) < 40:
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                """() => {
                  let e = document.activeElement
                  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement
                  return e.ariaLabel ?? e.labels?.[0]?.textContent ?? e.textContent.trim()
                }"""
            )
        )
    wanted = [
        "Fingerprint", "switch to the dark theme", "Copy link", "oracle gate", "tau", "backbone", "ID data set",
        "other sources", "Reset", "SVG", "PDF", "PNG", "CSV", "leak", "excluded", "other source",
    ]  # fmt: skip
    assert [r for r in reached if r in wanted] == wanted


def test_a_link_that_asks_for_too_much_says_so(own):
    page, _ = own
    told = page.get_by_role("alert").all_inner_texts()
    assert "gate “abc”, which is no number; 0.95 is shown" in told[0]
    assert "tau 7; the nearest stop, 1, is shown" in told[1]
    assert "backbone “<img src=x onerror=alert(1)>”, which is not here" in told[2]
    assert "map “1e999”, which is not here; balanced is shown" in told[3]
    assert (text(page, "say_gate"), text(page, "say_tau")) == ("0.95", "1.00")
    assert page.evaluate("[...probe.elements('img')].length") == 0


def test_a_reload_and_back_bring_the_state_and_the_theme_back(own):
    page, _ = own
    press_reset(page)
    for _ in range(4):
        slider(page, "oracle gate").press("ArrowRight")
    page.get_by_role("button", name="specificity", exact=True).click()
    page.get_by_role("button", name="other source", exact=True).click()
    page.get_by_label("setting", exact=True).select_option("cat, ResNet-50 (leaked)")
    said = ["gate=0.97", "metric=specificity", "hidden=novel", "chosen=P_c10_rn_3"]
    wait_for_address(page, *said, "tau=0.65")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"  # the system's
    set_theme(page, "light")
    before = state(page)
    page.reload()
    stand(page)
    assert state(page) == before
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # data/published/README.md: 17/20 and 32/32 at gate 0.97.
    assert (text(page, "leak_count"), text(page, "clean_count")) == ("17 of 20", "32 of 32")
    assert "cat, ResNet-50 (leaked" in text(page, "detail")
    assert page.evaluate("['leak', 'novel'].map((r) => probe.tagged(r + ':glyph_renderer').visible)") == [
        True,
        False,
    ]
    tau = slider(page, "tau")
    tau.focus()
    for _ in range(3):
        tau.press("ArrowRight")
    wait_for_address(page, *said, "tau=0.665")
    before = state(page)
    page.get_by_role("link", name="leakviz").click()  # another document: the page from its start
    page.wait_for_url(re.compile(r"/app\??$"))
    stand(page)
    assert text(page, "leak_count") == "18 of 20"
    page.go_back()
    wait_for_address(page, "tau=0.665")
    stand(page)
    assert state(page) == before


def test_back_within_the_page_moves_the_sliders(page):
    page.evaluate("history.pushState(null, '', '?page=fingerprint&gate=0.9&tau=0.9')")
    page.get_by_role("button", name="specificity", exact=True).click()
    wait_for_address(page, "metric=specificity", "tau=0.65")
    page.go_back()
    page.wait_for_function("probe.table.state.metric === 0")
    assert text(page, "say_tau") == "0.65"
    page.evaluate(
        "history.replaceState(null, '', '?page=fingerprint&gate=0.96&tau=0.8'); history.pushState(null, '', '?')"
    )
    page.go_back()
    wait_for_text(page, "say_gate", "0.96")
    assert (text(page, "leak_count"), text(page, "alarms")) == ("20 of 20", "0")


# Drags


def test_the_picture_follows_a_drag_and_the_server_hears_of_it_once(own, every_stop):
    page, frames = own
    press_reset(page)
    page.evaluate("for (const c of probe.elements('canvas')) c.known = true")
    track = slider(page, "tau").bounding_box()
    at = lambda share: track["x"] + 9 + share * (track["width"] - 18)  # noqa: E731
    y = track["y"] + track["height"] / 2
    look = """async () => {
      await probe.frames(3)
      const picture = [...probe.elements("canvas")].map((c) => c.toDataURL())
      return [Number(probe.texts().say_tau), probe.texts().leak_count, probe.column("box", "top")[0], picture.join()]
    }"""
    page.mouse.move(at(90 / 160), y)
    page.mouse.down()
    page.evaluate("probe.frames(3)")
    before = frames.count
    seen = []
    for share in (0.6, 0.7, 0.75, 0.9, 0.5, 0.3, 0.1):
        page.mouse.move(at(share), y, steps=4)
        seen.append(page.evaluate(look))
        tau, count, top, _ = seen[-1]
        assert abs(tau - (0.2 + 0.8 * share)) < 0.02
        assert top == tau
        assert count == f"{int(every_stop['correct'].sel(gate=0.95, tau=tau, regime='leak'))} of 20"
    during = frames.count
    page.mouse.up()
    assert during == before, f"{during - before} websocket frames during the drag"
    assert len({picture for *_, picture in seen}) == len(seen), "the picture stood still"
    wait_for_address(page, f"tau={seen[-1][0]:g}")
    assert page.evaluate("[...probe.elements('canvas')].filter((c) => !c.known).length") == 0, "new canvases"
    assert frames.count > during


@pytest.mark.parametrize(
    ("start", "end", "dim", "address"),
    [
        ((0.975, 0.65), (0.975, 0.8017), "tau", "tau=0.8"),
        ((0.95, 0.4), (0.9601, 0.4), "gate", "gate=0.96"),
    ],
)
def test_an_edge_of_the_box_can_be_dragged(page, every_stop, start, end, dim, address):
    other = {"tau": "gate", "gate": "tau"}[dim]
    kept = text(page, f"say_{other}")
    page.mouse.move(*place(page, "edges", *start))
    page.mouse.down()
    middle = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
    page.mouse.move(*place(page, "edges", *middle), steps=5)
    halfway = float(text(page, f"say_{dim}"))
    assert halfway in every_stop[dim].values
    assert min(start[dim == "tau"], end[dim == "tau"]) < halfway < max(start[dim == "tau"], end[dim == "tau"])
    page.mouse.move(*place(page, "edges", *end), steps=5)
    page.mouse.up()
    wait_for_address(page, address)
    stop = float(address.split("=")[1])
    assert text(page, f"say_{dim}") == f"{stop:.2f}"
    assert (
        slider(page, {"tau": "tau", "gate": "oracle gate"}[dim]).get_attribute("aria-valuetext")
        == f"{stop:.3f}"
    )
    side = {"tau": "top", "gate": "left"}[dim]
    assert page.evaluate(f"[probe.tagged('edges').{side}, probe.column('box', '{side}')[0]]") == [stop, stop]
    assert text(page, f"say_{other}") == kept


# Taps


def test_a_tap_on_the_map_moves_both_sliders_to_the_nearest_stop(page):
    tap(page, "map", 0.9012, 0.8021)
    wait_for_address(page, "gate=0.9&", "tau=0.8")
    assert slider(page, "oracle gate").get_attribute("aria-valuetext") == "0.900"
    assert (text(page, "say_gate"), text(page, "say_tau"), text(page, "leak_count")) == (
        "0.90",
        "0.80",
        "20 of 20",
    )
    assert page.evaluate("[probe.column('cross', 'gate'), probe.column('cross', 'tau')]") == [[0.9], [0.8]]


def link(page):
    return [page.evaluate(f"probe.column('link', '{end}')[0]") for end in ("x0", "y0", "x1", "y1")]


def test_a_tap_on_a_setting_draws_the_line_to_its_partner_and_back(page):
    # Table 12: P_c100_rn_g2 has oracle 0.963 and best-unsup 0.555, its partner 0.809.
    tap(page, "edges", 0.963, 0.555)
    wait_for_address(page, "chosen=P_c100_rn_g2")
    assert link(page) == [0.963, 0.555, 0.963, 0.809]
    detail = text(page, "detail")
    assert "oracle LDA 0.963, Mahalanobis 0.555, kNN 0.496, best-unsup 0.555" in detail
    assert detail.endswith("Its partner, excluded from the fit set: best-unsup 0.809.")
    tap(page, "edges", 0.963, 0.809)
    wait_for_address(page, "chosen=N_excl_c100_rn_g2")
    assert link(page) == [0.963, 0.809, 0.963, 0.555]
    tap(page, "edges", 0.94, 0.5)  # nothing is there
    wait_for_text(
        page, "detail", "Tap a point, or choose a setting, to read its numbers and to see its partner."
    )
    assert np.isnan(link(page)).all()


def test_a_setting_can_be_tapped_again_after_another_way_of_choosing(page):
    for _ in range(2):
        tap(page, "edges", 0.963, 0.555)
        wait_for_address(page, "chosen=P_c100_rn_g2")
        page.get_by_label("setting", exact=True).select_option("CIFAR-100 group 0, ResNet-50 (leaked)")
        wait_for_address(page, "chosen=P_c100_rn_g0")
        assert link(page)[:2] == [0.978, 0.572]


def test_the_menu_of_settings_works_from_the_keyboard(page, battery):
    menu = page.get_by_label("setting", exact=True)
    menu.focus()
    menu.press("ArrowDown")
    first = battery.isel(setting=0)
    wait_for_address(page, f"chosen={first['setting'].item()}")
    assert link(page)[:2] == [first["oracle_lda"].item(), first["best_unsup"].item()]
    assert f"({'leaked'}, {first['setting'].item()})" in text(page, "detail")
    menu.press("Home")
    page.wait_for_function("!location.search.includes('chosen')")
    assert np.isnan(link(page)).all()


# Buttons and filters


def test_a_regime_can_be_switched_off(page):
    button = page.get_by_role("button", name="leak", exact=True)
    button.click()
    wait_for_address(page, "hidden=leak")
    seen = "['leak', 'leak_rings', 'leak_names', 'excluded', 'novel_rings', 'novel_names'].map((r) => probe.tagged(r + ':glyph_renderer').visible)"
    assert button.get_attribute("aria-pressed") == "false"
    assert page.evaluate(seen) == [False] * 3 + [True] * 3
    button.click()
    page.wait_for_function("!location.search.includes('hidden')")
    assert button.get_attribute("aria-pressed") == "true"
    assert page.evaluate(seen) == [True] * 6


def test_the_map_shows_what_its_buttons_say(page):
    for name in ("sensitivity", "specificity", "balanced accuracy"):
        page.get_by_role("button", name=name, exact=True).click()
        seen = page.evaluate(
            "['balanced', 'sensitivity', 'specificity'].filter((m) => probe.tagged(`heat_${m}:glyph_renderer`).visible)"
        )
        assert seen == [name.split()[0]]
        pressed = page.get_by_role("group", name="what the map shows").get_by_role("button", pressed=True)
        assert pressed.all_inner_texts() == [name]


@pytest.mark.parametrize(
    ("menu", "choice", "keep"),
    [
        ("backbone", "ResNet-50", lambda b: b["backbone"] == "resnet50"),
        ("ID data set", "CIFAR-100", lambda b: b["id_dataset"] == "cifar100"),
        ("other sources", "near only", lambda b: b["distance"] != "far"),
    ],
)
def test_a_filter_changes_every_number_and_reset_brings_all_back(page, battery, menu, choice, keep):
    subset = battery.isel(setting=np.flatnonzero(keep(battery)))
    score = leakviz.score_battery(subset, leakviz.Rule(tau="0.8"))
    page.evaluate("probe.table.go({tau: 120})")
    wait_for_address(page, "tau=0.8")
    page.get_by_label(menu, exact=True).select_option(choice)
    clean = score.sel(regime="clean")
    wait_for_text(page, "clean_count", f"{int(clean['correct'])} of {int(clean['n'])}")
    leak = score.sel(regime="leak")
    assert text(page, "leak_count") == f"{int(leak['correct'])} of {int(leak['n'])}"
    assert text(page, "leak_interval") == f"{float(leak['low']):.2f} to {float(leak['high']):.2f}"
    assert text(page, "area") == f"{float(score['auroc']):.4f}"
    drawn = sum(
        np.isfinite(np.array(page.evaluate(f"probe.column('{r}', 'oracle_lda')"), dtype=float)).sum()
        for r in ("leak", "excluded", "novel")
    )
    assert drawn == subset.sizes["setting"]
    page.get_by_role("button", name="Reset").click()
    wait_for_text(page, "clean_count", "31 of 32")
    assert text(page, "leak_count") == "18 of 20"
    chosen = page.get_by_label(menu, exact=True).locator("option:checked")
    expect(chosen).to_have_text("near and far" if menu == "other sources" else "all")


def test_two_visitors_do_not_touch_each_other(page, own):
    one, other = press_reset(own[0]), page
    slider(one, "tau").press("End")
    one.get_by_label("backbone", exact=True).select_option("ViT-B/16")
    wait_for_address(one, "tau=1", "backbone=vit_b16")
    wait_for_text(one, "clean_n", "16")
    slider(other, "oracle gate").press("ArrowRight")
    wait_for_address(other, "gate=0.955&tau=0.65")
    assert (text(other, "say_tau"), text(other, "clean_n"), text(other, "leak_count")) == (
        "0.65",
        "32",
        "18 of 20",
    )
    assert text(one, "say_gate") == "0.95"
