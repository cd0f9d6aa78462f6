"""The calibration page in a browser: every stop of the bins, the switches, keys, files, looks."""

import csv
import io

import numpy as np
import pytest
from matplotlib.pyplot import imread

import leakviz
from dashboards.calibration import CalibrationPage
from dashboards.figures.calibration import BINS, ENDS, TITLES
from dashboards.shelf import Shelf, shipped

from .conftest import DESKTOP, PHONE, Frames, drag, sound, visits

VECTOR = "flchain__lr__honest"
QUERY = f"?page=calibration&vector={VECTOR}"
FIGURES = ("reliability", "dispersion", "benefit", "weight")
COLUMNS = ("predicted", "observed", "low", "high", "n")


@pytest.fixture(scope="module")
def frames():
    return []


@pytest.fixture(scope="module")
def page(browser, app_url, frames):
    with visits(browser, app_url) as visit:
        page = visit(QUERY, figures=len(FIGURES), prepare=lambda page: frames.append(Frames(page)))
        yield complete(page)


@pytest.fixture(scope="module")
def answers():
    """Return the answers that Python has for the same vector."""
    return CalibrationPage(QUERY, Shelf()).live


def complete(page):
    """Wait until nothing is on its way any more."""
    page.wait_for_function("!probe.table.pool.includes('…')", timeout=60_000)
    page.evaluate("probe.frames(3)")
    return page


def restart(page):
    page.get_by_role("button", name="Reset", exact=True).click()
    page.evaluate("probe.frames(3)")
    assert page.evaluate("probe.table.state") == page.evaluate("probe.table.starts")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()
    page.evaluate("probe.frames(3)")


@pytest.mark.parametrize(("strategy", "label"), [("quantile", "equal size"), ("uniform", "equal width")])
def test_every_stop_of_the_bins_slider_is_the_core_s_curve(page, strategy, label):
    restart(page)
    press(page, label)
    seen = page.evaluate(
        """([n, columns]) => Array.from({length: n}, (_, stop) => {
          probe.slide("bins", stop)
          return columns.map((c) => probe.column("bins", c))
        })""",
        [len(BINS), COLUMNS],
    )
    vector = shipped(VECTOR)
    for n_bins, columns in zip(BINS.tolist(), seen, strict=True):
        curve = leakviz.calibration_curve(vector.p, vector.y, n_bins=n_bins, strategy=strategy)
        some = curve["n"].values > 0
        for name, column in zip(COLUMNS, columns, strict=True):
            shown = np.array(column, dtype=float)
            if name == "n":
                assert shown[:n_bins].tolist() == curve["n"].values.tolist()
            else:
                np.testing.assert_allclose(shown[:n_bins][some], curve[name].values[some], rtol=1e-6)
                assert np.isnan(shown[:n_bins][~some]).all()
                assert np.isnan(shown[n_bins:]).all()


def test_one_switch_moves_everything(page, answers):
    restart(page)
    before = page.get_by_role("heading", level=1).inner_text()
    assert before.startswith("As given, the calibration slope is 1.02")
    for method, label in (("platt", "Platt"), ("isotonic", "isotonic"), ("none", "as given")):
        press(page, label)
        now = answers.at(method=method)
        texts = page.evaluate("probe.texts()")
        for name, text in texts.items():
            assert text == str(now[name].item()), name
        heading = page.get_by_role("heading", level=1).inner_text()
        assert heading == "".join(str(now[f"say_{i}"].item()) for i in range(9))
        for source, column, variable in (
            ("bins", "observed", "bin_observed"),
            ("curve", "observed", "curve_y"),
            ("band", "y", "band_y"),
            ("bars", "top", "bar_top"),
            ("own_unit", "z", "own_x_0"),
            ("benefit", "net_benefit", "benefit"),
        ):
            shown = np.array(page.evaluate(f"probe.column('{source}', '{column}')"), dtype=float)
            np.testing.assert_allclose(shown, now[variable].values, rtol=1e-6, err_msg=source)
    assert page.get_by_role("heading", level=1).inner_text() == before


def test_the_range_of_thresholds_follows_the_hand(page, answers):
    restart(page)
    for low, high in ((3, 9), (12, 5), (0, 18), (7, 7)):
        page.evaluate(f"probe.slide('threshold from', {low}); probe.slide('threshold to', {high})")
        now = answers.at(low=ENDS[low], high=ENDS[high])
        axes = page.evaluate(
            """["x_range", "y_range"].flatMap((r) => {
              const {start, end} = probe.tagged("benefit_frame:" + r); return [start, end]})"""
        )
        wanted = [now[v].item() for v in ("from", "to", "benefit_y0", "benefit_y1")]
        np.testing.assert_allclose(axes, wanted)
        assert page.evaluate("probe.tagged('weight_frame:x_range').end") == wanted[1]
        assert page.evaluate("probe.texts().uniform_value") == now["uniform_value"].item()


def test_standardised_and_beta(page, answers):
    restart(page)
    press(page, "standardised")
    assert page.evaluate("probe.tagged('benefit_frame:yaxis').axis_label") == "net benefit / prevalence"
    press(page, "beta")
    page.get_by_role("combobox", name="beta a").select_option(label="5")
    page.get_by_role("combobox", name="beta b").select_option(label="40")
    page.evaluate("probe.frames(3)")
    now = answers.at(scale="standardised", eta="beta", a=5, b=40)
    assert page.get_by_text(now["beta_value"].item(), exact=True).is_visible()
    np.testing.assert_allclose(page.evaluate("probe.column('weight', 'y')"), now["weight"].values, rtol=1e-6)
    page.wait_for_function("location.search.includes('eta=beta') && location.search.includes('b=40')")


def test_the_picture_follows_a_drag_and_the_server_hears_nothing(page, frames, answers):
    restart(page)
    look = "[probe.column('bins', 'n').filter((n) => n > 0).length, probe.texts().uniform_value]"
    vector = shipped(VECTOR)
    for stop, (filled, _) in drag(page, frames[0], "bins", look):
        curve = leakviz.calibration_curve(vector.p, vector.y, n_bins=int(BINS[stop]))
        assert filled == np.count_nonzero(curve["n"])
    for stop, (_, value) in drag(page, frames[0], "threshold to", look):
        assert value == answers.at(high=ENDS[stop])["uniform_value"].item()


def test_two_visitors_do_not_touch_each_other(page, visit):
    restart(page)
    other = visit("?page=calibration&vector=nhefs__lr__honest&method=isotonic", figures=len(FIGURES))
    page.get_by_role("slider", name="bins", exact=True).press("ArrowRight")
    press(other, "Platt")
    page.wait_for_function("location.search.includes('bins=11')")
    other.wait_for_function("location.search.includes('method=platt')")
    state = "(({method, bins}) => [method, bins])(probe.table.state)"
    assert [p.evaluate(state) for p in (page, other)] == [[0, 6], [1, 5]]
    assert page.get_by_role("heading", level=1).inner_text().startswith("As given")
    complete(other)


def test_keys_move_the_bins_and_the_address_follows(page):
    restart(page)
    slider = page.get_by_role("slider", name="bins", exact=True)
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "13"
    page.wait_for_function("location.search.includes('bins=13')")
    page.keyboard.press("Home")
    assert slider.get_attribute("aria-valuetext") == "5"
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == "50"
    page.get_by_role("button", name="Platt", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('method=platt')")


def test_another_vector_changes_the_figures_in_place(visit):
    page = complete(visit(QUERY, figures=len(FIGURES)))
    figures = page.evaluate("probe.models.filter((m) => m.type === 'Figure').map((m) => m.id)")
    page.get_by_label("predictions").select_option(label="nhefs, logistic regression, leak: year of death")
    page.wait_for_function("location.search.includes('nhefs__lr__yrdth')")
    page.wait_for_function("probe.texts().est_c === '1.000'")
    page.locator("header .data").filter(has_text="nhefs, logistic regression, leak: year of death").wait_for(
        state="attached"
    )
    assert page.evaluate("probe.models.filter((m) => m.type === 'Figure').map((m) => m.id)") == figures
    complete(page)
    press(page, "Platt")
    assert page.get_by_role("heading", level=1).inner_text() == "Platt recalibration cannot be fitted."


def test_simulated_arms_can_be_fitted_on_other_folds(visit):
    counted = []
    page = visit("?page=calibration", figures=len(FIGURES), prepare=lambda page: counted.append(Frames(page)))
    complete(page)
    # At a prevalence of 0.02 the axis of net benefit needs labels of many digits, and still stands still.
    for label in ("threshold from", "threshold to"):
        drag(page, counted[0], label, "probe.texts().range_says")
    restart(page)
    fitted = page.get_by_role("group", name="fitted on")
    assert not fitted.is_visible()
    press(page, "Platt")
    same = page.evaluate("probe.column('benefit', 'net_benefit')")
    heading = page.get_by_role("heading", level=1).inner_text()
    assert "from 0.40 to 1.00" in heading
    assert "C* stays at 0.84" in heading
    press(page, "the other folds")
    assert page.evaluate("probe.column('benefit', 'net_benefit')") != same
    assert "Rows of different folds" in page.evaluate("probe.texts().note")


# ---- files


@pytest.fixture(scope="module")
def settled(page):
    restart(page)
    press(page, "Platt")
    page.evaluate("probe.table.go({bins: 2, low: 7, high: 13})")  # 7 bins, 0.1 to 0.5
    page.wait_for_function("location.search.includes('bins=7') && location.search.includes('high=0.5')")
    return page


def download(page, figure, kind):
    button = page.get_by_role("button", name=kind, exact=True).nth(FIGURES.index(figure))
    with page.expect_download() as started:
        button.click()
    assert started.value.suggested_filename == f"{figure}.{kind.lower()}"
    return started.value.path().read_bytes()


@pytest.mark.parametrize("figure", FIGURES)
def test_files_hold_what_is_on_the_screen(settled, figure):
    svg = download(settled, figure, "SVG").decode("utf-8")
    assert ("Weight of thresholds" if figure == "weight" else TITLES[figure]) in svg
    picture = imread(io.BytesIO(download(settled, figure, "PNG")))
    assert picture.shape[1] > 800
    assert picture[..., :3].std() > 0.02
    rows = list(csv.DictReader(io.StringIO(download(settled, figure, "CSV").decode("utf-8"))))
    assert rows[0]["recalibration"] == "platt"
    if figure == "reliability":
        observed = [float(r["observed"]) for r in rows if r["part"] == "bin, quantile"]
        shown = settled.evaluate("probe.column('bins', 'observed')")[:7]
        np.testing.assert_allclose(shown, observed, rtol=1e-6)
    if figure == "benefit":
        thresholds = [float(r["threshold"]) for r in rows]
        assert (min(thresholds), max(thresholds)) == pytest.approx((0.1, 0.5))
    if figure == "weight":
        assert f"{float(rows[0]['value']):.5f}" == settled.evaluate("probe.texts().uniform_value")


# ---- looks


def test_nothing_is_wider_than_the_screen_and_axe_finds_nothing_serious(visit):
    page = complete(visit(QUERY, figures=len(FIGURES), viewport=PHONE))
    for label in ("Platt", "beta"):
        press(page, label)
    sound(page)
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        page.evaluate("probe.frames(3)")
        boxes = page.evaluate(
            "[...probe.elements('.bk-Figure')].map((e) => e.getBoundingClientRect().toJSON())"
        )
        assert all(b["left"] >= 0 and b["right"] <= size["width"] for b in boxes), boxes
