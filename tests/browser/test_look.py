"""How the page stands: sizes, themes, and what axe-core finds."""

import io

import numpy as np
import pytest
from matplotlib.pyplot import imread

from dashboards import theme

from .conftest import DESKTOP, PHONE, press_reset, set_theme, sound, visits


@pytest.fixture(scope="module")
def phone(browser, app_url):
    """Return the page as it comes on a phone."""
    with visits(browser, app_url) as visit:
        yield visit(viewport=PHONE)


@pytest.fixture(scope="module")
def desktop(standing):
    """Return the page as it came on a desktop, at its start."""
    return press_reset(standing)


@pytest.fixture(params=["desktop", "phone"])
def page(request):
    page = request.getfixturevalue(request.param)
    page.evaluate("scrollTo(0, 0)")
    return page


def rgb(color):
    return tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))


def test_every_figure_has_an_area_on_the_screen(page):
    boxes = page.evaluate(
        """[...probe.elements(".bk-Figure")].map((e) => {
          const {left, right, width, height} = e.getBoundingClientRect()
          let scroller = e
          while (scroller && getComputedStyle(scroller).overflowX !== "auto") {
            scroller = scroller.parentElement ?? scroller.getRootNode().host
          }
          return {left, right, width, height, scrolls: scroller !== null && scroller !== undefined}
        })"""
    )
    width = page.viewport_size["width"]
    assert len(boxes) == 4
    for box in boxes:
        assert box["width"] > 300, box
        assert box["height"] > 150, box
        assert box["scrolls"] or (box["left"] >= 0 and box["right"] <= width), box
    assert [b["scrolls"] for b in boxes] == [
        False,
        False,
        False,
        True,
    ]  # the pairs, in a scroller of their own


def test_the_hand_and_the_answer_are_on_the_first_screen(page):
    for label in ("oracle gate", "tau"):
        box = page.get_by_role("slider", name=label, exact=True).bounding_box()
        assert box["y"] + box["height"] < page.viewport_size["height"], label
        assert box["width"] > 150


@pytest.mark.parametrize("name", ["dark", "light"])
def test_a_theme_reaches_texts_axes_and_marks(page, name):
    set_theme(page, name)
    colors = {"light": theme.LIGHT, "dark": theme.DARK}[name]
    heading = page.get_by_role("heading", level=1)
    assert heading.evaluate("e => getComputedStyle(e).color") == "rgb({}, {}, {})".format(*rgb(colors["ink"]))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb({}, {}, {})".format(
        *rgb(colors["bg"])
    )
    tagged = page.evaluate(
        """probe.models.flatMap((m) => m.tags.filter((t) => typeof t === "string" && t.startsWith("theme:"))
          .map((t) => [...t.split(":").slice(1), m[t.split(":")[2]]]))"""
    )
    assert len(tagged) >= 10
    assert {color for color, *_ in tagged} == {"ink", "alarm"}
    for color, what, value in tagged:
        assert value == colors[color] or value == {"value": colors[color]}, (color, what)
    # The axis' numbers, in pixels: left of the frame is only paper and their ink.
    place = page.evaluate("probe.place('edges', 0.94, 0.8)")
    left = page.evaluate("probe.elements('.bk-Figure').next().value.getBoundingClientRect().left")
    page.evaluate("probe.frames(3)")
    clip = {"x": left + 20, "y": place["y"] - 12, "width": 30, "height": 24}
    pixels = imread(io.BytesIO(page.screenshot(clip=clip)))[..., :3].reshape(-1, 3) * 255
    np.testing.assert_allclose(np.median(pixels, axis=0), rgb(colors["bg"]), atol=1)
    ink = pixels[np.argmax(np.abs(pixels - rgb(colors["bg"])).sum(axis=1))]
    np.testing.assert_allclose(ink, rgb(colors["muted"]), atol=40)


def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(standing):
    sound(standing)
    standing.set_viewport_size(DESKTOP)
