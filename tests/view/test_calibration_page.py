"""The calibration page without a browser: what the table holds, what the figures show, what is said."""

import itertools

import holoviews as hv
import numpy as np
import pandas as pd
import pytest
from bokeh.models import ColumnDataSource

import leakviz
from dashboards import calibration, export, stencil
from dashboards.calibration import START, CalibrationPage, folds_of, own_key
from dashboards.figures.calibration import BINS, ENDS, FITS, METHODS, threshold_range
from dashboards.shelf import ArmSettings, Shelf, Vector, simulated
from leakviz.blind import concordance_ranked
from leakviz.calibration import dispersion_ranked
from leakviz.purity import spike_ranked

NAMES = ("reliability", "dispersion", "benefit", "weight")
SMALL = ArmSettings(n=20_000, seed=3)  # the tests have no time for 200,000


def small_shelf():
    return Shelf(arms=SMALL)


@pytest.fixture(scope="module")
def shelf():
    return small_shelf()


@pytest.fixture(scope="module")
def page(shelf):
    page = CalibrationPage("", shelf)
    page.__panel__()
    return page


@pytest.fixture(scope="module")
def honest(shelf):
    return CalibrationPage("?vector=flchain__lr__honest", shelf)


def own(n=400, name="own:a", folds=True, seed=0, y=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 3, n)
    y = (rng.random(n) < p).astype(np.int8) if y is None else y
    return Vector(
        name=name,
        title="my <b>file</b>.csv",
        source="a file",
        p=p,
        y=y,
        ranked=leakviz.rank_predictions(p, y),
        folds=np.arange(n) % 4 if folds else None,
    )


def said(page, **stops):
    now = page.live.at(**stops)
    return "".join(str(now[f"say_{i}"].item()) for i in range(9))


def shown(page):
    """Return every tagged model of the page's figures: tag without the page's key, and model."""
    found = {}
    for pane in page.__panel__().select(lambda v: type(v).__name__ == "Bokeh"):
        for model in pane.object.references():
            for tag in model.tags:
                if isinstance(tag, str) and tag.startswith(page.live.key + "/"):
                    found.setdefault(tag.split("/", 1)[1], []).append(model)
    return found


def state_of(page):
    """Return what the figures show: every column and attribute that the table moves."""
    models = shown(page)
    seen = {}
    for target, column, _ in page.live.columns:
        (source,) = models[target]
        seen[target, column] = np.asarray(source.data[column])
    for target, attribute, _ in page.live.attributes:
        (model,) = models[target]
        seen[target, attribute] = np.asarray(getattr(model, attribute))
    return seen


# ---- the table and the figures


def test_every_target_is_there_once_and_rows_fit_their_columns(page):
    models = shown(page)
    for target, column, variable in page.live.columns:
        (source,) = models[target]
        assert isinstance(source, ColumnDataSource)
        assert len(source.data[column]) == page.live.at()[variable].size, (target, column)
    for target, attribute, variable in page.live.attributes:
        (model,) = models[target]
        assert attribute in model.properties()
        assert page.live.at()[variable].size == 1


STOPS = [
    {"bins": 37, "strategy": "uniform"},
    {"method": "platt", "fit": "same", "zoom": "all", "scale": "standardised"},
    {"method": "isotonic", "fit": "folds", "low": 0.5, "high": 0.05, "bins": 5},
    {"method": "isotonic", "fit": "same", "eta": "beta", "a": 5.0, "b": 40.0},
]


@pytest.mark.parametrize("stops", STOPS)
def test_moving_there_shows_what_is_drawn_there(shelf, stops):
    moved = CalibrationPage("", shelf)
    moved.live.go(**stops)
    drawn_before = moved.__panel__()  # copies of figures drawn at another stop, then moved
    assert drawn_before is not None
    kept = dict(stencil._DRAWN)
    try:
        for key in [k for k in stencil._DRAWN if k[0] == "calibration"]:
            del stencil._DRAWN[key]
        query = "&".join(f"{k}={v}" for k, v in stops.items())
        fresh = CalibrationPage(f"?{query}", shelf)
        assert len(fresh.state.told) == ("low" in stops)  # whose ends are the other way round
        drawn = state_of(fresh)
    finally:
        stencil._DRAWN.update(kept)
    for key, value in state_of(moved).items():
        expected = drawn[key]
        if value.dtype.kind in "OUS":
            assert value.tolist() == expected.tolist(), key
        else:
            np.testing.assert_allclose(
                value.astype(float), expected.astype(float), rtol=1e-6, err_msg=str(key)
            )


def test_another_vector_fits_the_same_figures(shelf, page):
    other = CalibrationPage("?vector=breast_cancer__lr__honest", shelf)
    lengths = {key: value.shape for key, value in state_of(page).items()}
    assert {key: value.shape for key, value in state_of(other).items()} == lengths


@pytest.mark.parametrize(
    "vector", ["arm:miscalibrated", "flchain__lr__honest", "flchain__lr__chapter", "own:a"]
)
def test_a_table_takes_less_than_a_megabyte(vector):
    shelf = small_shelf()
    shelf.add(own(20_000))
    assert len(CalibrationPage(f"?vector={vector}", shelf).live.table) < 1_000_000


# ---- against the core


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins_are_the_core_s_at_every_stop(honest, strategy):
    vector = honest.vector
    for n_bins in BINS.tolist():
        curve = leakviz.calibration_curve(vector.p, vector.y, n_bins=n_bins, strategy=strategy)
        now = honest.live.at(bins=n_bins, strategy=strategy)
        for name in ("predicted", "observed", "low", "high"):
            row = now[f"bin_{name}"].values
            some = curve["n"].values > 0
            np.testing.assert_allclose(row[:n_bins][some], curve[name].values[some], rtol=1e-6)
            assert np.isnan(row[n_bins:]).all()
        assert now["bin_n"].values[:n_bins].tolist() == curve["n"].values.tolist()


@pytest.mark.parametrize(("method", "fit"), list(itertools.product(METHODS, FITS)))
def test_numbers_are_the_core_s(shelf, method, fit):
    page = CalibrationPage(f"?method={method}&fit={fit}", shelf)
    vector = page.vector
    folds = folds_of(vector) if fit == "folds" and method != "none" else None
    p = leakviz.recalibrate(vector.p, vector.y, method=method, folds=folds).p
    summary = leakviz.calibration_summary(p, vector.y)
    now = page.live.at()
    assert now["est_slope"].item() == f"{summary.slope.value:.2f}"
    made = method != "none" and fit == "same"  # what such a fit makes 1 or 0 whatever the risks are
    if made:
        assert summary.slope.value == pytest.approx(1, abs=1e-5)
        assert summary.observed_minus_expected.value == pytest.approx(0, abs=1e-9)
    interval = f"{summary.slope.low:.2f} to {summary.slope.high:.2f}".replace("-", "−")
    assert now["int_slope"].item() == ("by construction" if made else interval)
    assert now["est_brier"].item() == f"{summary.brier.value:.5f}"
    for part in ("miscalibration", "discrimination", "uncertainty"):
        e = getattr(summary, part)
        assert now[f"est_{part}"].item() == f"{e.value:.5f}"
        made_too = made and method == "isotonic" and part == "miscalibration"
        assert now[f"int_{part}"].item() == (
            "by construction" if made_too else f"{e.low:.5f} to {e.high:.5f}"
        )
    assert now["est_c"].item() == f"{leakviz.auroc(p, vector.y):.3f}"
    low, high = leakviz.auroc_interval(p, vector.y)
    assert now["int_c"].item() == f"{low:.3f} to {high:.3f}"
    z = leakviz.dispersion(p, vector.y)
    assert float(now["z_unit"].item().replace("−", "-").replace(",", "")) == pytest.approx(z.z, abs=0.051)
    assert f"{z.effective_records:,.0f} effective" in now["z_unit_of"].item()
    benefit = leakviz.net_benefit(p, vector.y, page.answer().reading.benefit["threshold"].values)
    np.testing.assert_allclose(now["benefit"].values, benefit["net_benefit"].values, rtol=1e-5, atol=1e-9)
    drawn = page.live.at(scale="standardised")["treat_all"].values
    wanted, seen = benefit["treat_all_standardised"].values, np.isfinite(drawn)
    np.testing.assert_allclose(drawn[seen], wanted[seen], rtol=1e-5, atol=1e-7)
    assert (wanted[~seen] < page.live.answers["benefit_y0"].isel(scale=1).min().item()).all()


def test_every_pair_of_threshold_stops_shows_what_the_core_answers(honest):
    """All 361 pairs, in both orders: the value, its interval, treating all, the axes and what they hold."""
    vector, table = honest.vector, honest.live.answers
    names = ("uniform_value", "uniform_interval", "uniform_all", "range_says", "from", "to", "benefit_y1")
    at = {**dict.fromkeys(("method", "eta"), 0), "fit": FITS.index("same")}
    shown = {
        name: table[name].isel({d: i for d, i in at.items() if d in table[name].dims}).values
        for name in names
    }
    direct = {}
    for i, j in itertools.product(range(ENDS.size), repeat=2):
        low, high = threshold_range(ENDS[i], ENDS[j])
        if (low, high) not in direct:
            direct[low, high] = leakviz.expected_net_benefit(
                vector.p, vector.y, weight=("uniform", low, high)
            )
        core = direct[low, high]
        values = [shown["uniform_value"][0, i, j], *shown["uniform_interval"][0, i, j].split(" to ")]
        values += [shown["uniform_all"][0, i, j], shown["uniform_value"][1, i, j]]
        wanted = [core.value, core.low, core.high, core.treat_all, core.standardised]
        np.testing.assert_allclose(
            [float(v.replace("−", "-").replace(",", "")) for v in values], wanted, atol=6e-6
        )
        assert shown["range_says"][i, j] == f"{low:g} to {high:g}"
        assert (shown["from"][i, j], shown["to"][i, j]) == (low, high)
    curve = leakviz.net_benefit(vector.p, vector.y, ENDS)["net_benefit"].values
    for i, j in itertools.combinations(range(ENDS.size), 2):
        assert shown["benefit_y1"][0, i, j] > curve[i : j + 1].max()


def test_expected_net_benefit_of_a_beta_weight(honest):
    vector = honest.vector
    for a, b in ((1.0, 2.0), (2.0, 20.0), (8.0, 40.0)):
        direct = leakviz.expected_net_benefit(vector.p, vector.y, weight=("beta", a, b))
        now = honest.live.at(eta="beta", a=a, b=b)
        assert float(now["beta_value"].item()) == pytest.approx(direct.value, abs=6e-6)
        assert now["see_uniform"].item() == "off"
        assert now["see_beta"].item() == "on"


def test_axes_of_net_benefit_are_the_range(page):
    for low, high in ((0.0, 0.3), (0.5, 0.1), (0.99, 0.99)):
        now = page.live.at(low=low, high=high)
        assert (now["from"].item(), now["to"].item()) == threshold_range(low, high)
        assert now["benefit_y0"].item() < now["benefit_y1"].item()
    assert all(threshold_range(a, b)[0] < threshold_range(a, b)[1] for a in ENDS for b in ENDS)


# ---- what the paper says (section 7.1), on the page


@pytest.fixture(scope="module")
def paper():
    """Return the page at the paper's own settings."""
    return CalibrationPage("")


def test_platt_takes_the_dispersion_away_and_leaves_ranking_and_head(paper):
    given = calibration._READINGS[paper.vector]["none", "same"]
    healed = calibration._READINGS[paper.vector]["platt", "same"]
    assert 280 < given.dispersion[0].z < 310
    assert abs(healed.dispersion[0].z) < 1.96
    assert given.summary.slope.value == pytest.approx(0.4, abs=0.02)
    assert healed.summary.slope.value == pytest.approx(1, abs=1e-6)
    assert healed.c_statistic == given.c_statistic
    assert healed.spike == given.spike
    sentence = said(paper, method="platt", fit="same")
    assert "takes the slope from 0.40 to 1.00" in sentence
    assert "C* stays at 0.84" in sentence
    assert "the pure head at" in sentence
    assert "no standard normal" in paper.live.at(method="platt", fit="same")["note"].item()


def test_isotonic_on_the_same_data_makes_z_zero_and_the_page_says_that_it_means_nothing(paper, shelf):
    for page in (paper, CalibrationPage("?vector=nassCDS__lr__injSeverity", shelf)):
        reading = calibration._READINGS[page.vector]["isotonic", "same"]
        assert abs(reading.dispersion[0].z) < 1e-9
        now = page.live.at(method="isotonic", fit="same")
        assert now["z_unit"].item() == "0.0"
        assert "z 0 whatever the predictions are" in now["note"].item()


def test_a_pure_head_outlives_recalibration(shelf):
    page = CalibrationPage("?vector=arm:deterministic", shelf)
    given, healed = (calibration._READINGS[page.vector][m, "same"] for m in ("none", "platt"))
    assert given.spike.tie_blocks >= 60  # the flagged
    assert healed.spike == given.spike
    assert healed.c_statistic == given.c_statistic
    assert f"{given.spike.tie_blocks:,} records" in said(page, method="platt", fit="same")


def test_uniform_weight_is_refused_in_the_miscalibrated_arm_and_its_raw_value_named(paper):
    now = paper.live.at()
    assert now["z_uniform"].item() == "not tested"
    assert "raw 2.5" in now["z_uniform_of"].item()
    labels = dict(zip(("unit", "uniform"), now["own_text"].values, strict=True))
    assert labels["uniform"].startswith("2.5 refused")
    assert now["own_fill"].values.tolist() == [True, False]


def test_arms_stand_beside_the_vector_as_the_core_has_them(page, shelf):
    now = page.live.at()
    for i, vector in enumerate(simulated(shelf.arms).values()):
        for w, d in enumerate(dispersion_ranked(vector.ranked)):
            assert now["arm_x"].values[2 * i + w] == pytest.approx(np.clip(abs(d.z_raw), 0.01, 2000))
            assert now["arm_fill"].values[2 * i + w] == (d.z is not None)


def test_no_text_calls_a_vector_clean(page, honest):
    for one in (page, honest):
        for name, variable in one.live.answers.data_vars.items():
            if variable.dtype.kind == "O" and name not in ("title_says", "source_says"):
                assert not any("clean" in str(text) for text in variable.values.ravel()), name


def test_what_did_not_heal_is_not_called_healed(shelf):
    page = CalibrationPage("?vector=nassCDS__lr__injSeverity&method=platt", shelf)
    assert abs(page.answer().reading.dispersion[0].z) > 1.96
    assert "not wholly" in page.live.at()["note"].item()


def test_a_vector_that_no_curve_fits_says_why(shelf):
    page = CalibrationPage("?vector=nhefs__lr__yrdth&method=platt", shelf)
    assert said(page) == "Platt recalibration cannot be fitted."
    assert "separates" in page.live.at()["note"].item()
    assert np.isnan(page.live.at()["benefit"].values).all()
    with pytest.raises(leakviz.InputError, match="separates"):
        page.answer()


# ---- a user's predictions


def test_own_predictions_come_first_and_are_fitted_on_their_folds():
    shelf = small_shelf()
    page = CalibrationPage("", shelf)
    page.__panel__()
    vector = own()
    shelf.add(vector)
    assert page.state.vector == "own:a" == page._menu.value
    assert next(iter(page._menu.options.values())) == "own:a"
    assert page.state.fit == "folds"
    page.state.method = "platt"
    assert page.answer().reading.fitted_on == "other folds"
    p = leakviz.recalibrate(vector.p, vector.y, method="platt", folds=vector.folds).p
    ranked = leakviz.rank_predictions(p, vector.y)
    assert page.answer().reading.c_statistic == concordance_ranked(ranked)
    assert page.answer().reading.spike == spike_ranked(ranked, "0.05")
    assert page.subject == "my <b>file</b>.csv"
    later = CalibrationPage("", shelf)
    assert later.state.vector == "own:a"


def test_shipped_predictions_are_cross_fitted_on_random_fifths(shelf):
    page = CalibrationPage("?vector=actg175__lr__honest&method=platt&fit=folds", shelf)
    vector, folds = page.vector, folds_of(page.vector)
    assert vector.folds is None
    assert np.ptp(np.bincount(folds)) <= 1
    assert np.bincount(folds).size == 5
    np.testing.assert_array_equal(folds, folds_of(vector))  # seeded
    p = leakviz.recalibrate(vector.p, vector.y, method="platt", folds=folds).p
    now = page.live.at()
    assert page.answer().reading.fitted_on == "other folds"
    assert now["est_c"].item() == f"{leakviz.auroc(p, vector.y):.3f}"
    assert now["folds_say"].item().endswith("folds: random fifths, seed 0")
    assert now["see_folds"].item() == "on"
    assert page.live.at(fit="same")["est_slope"].item() == "1.00"
    assert page.data("benefit")["fitted_on"].unique().tolist() == ["other folds"]


def test_without_folds_there_is_one_fit_and_it_is_labelled():
    shelf = small_shelf()
    shelf.add(own(folds=False))
    page = CalibrationPage("", shelf)
    assert own_key(page.vector, "platt", "folds") == ("platt", "same")
    now = page.live.at(method="platt", fit="folds")
    assert now["fitted_says"].item() == "fitted on the same data: these predictions come without folds"
    assert now["see_folds"].item() == "off"
    assert said(page, method="platt", fit="folds") == said(page, method="platt", fit="same")


@pytest.mark.parametrize("event", [0, 1])
def test_one_class_is_undefined_and_stays_on_the_page(event):
    shelf = small_shelf()
    shelf.add(own(y=np.full(400, event, dtype=np.int8)))
    page = CalibrationPage("", shelf)
    page.__panel__()
    now = page.live.at()
    assert now["est_slope"].item() == "undefined"
    assert now["est_c"].item() == "undefined"
    assert "undefined" in said(page)
    assert "only one class" in page.live.at(method="platt")["note"].item()


def test_what_is_on_its_way_is_said_to_be():
    shelf = small_shelf()
    vector = own(name="own:b")
    readings = {("none", "same"): calibration.read(vector, ("none", "same"), full=False)}
    table = calibration.page_answers(vector, shelf.arms, readings)
    hasty = table.sel(START | {"method": "none"})
    assert hasty["est_brier"].item() != "…"
    assert hasty["int_miscalibration"].item() == "…"
    waiting = table.sel(START | {"method": "platt", "fit": "same"})
    assert waiting["est_slope"].item() == "…"
    assert waiting["note"].item() == "The figures follow in a moment."
    full = calibration.page_answers(
        vector, shelf.arms, calibration.readings_of(vector, calibration.keys_of(vector))
    )
    assert {n: v.dims for n, v in table.data_vars.items()} == {n: v.dims for n, v in full.data_vars.items()}
    assert {n: v.shape for n, v in table.data_vars.items()} == {n: v.shape for n, v in full.data_vars.items()}
    assert (full["note"] != "The figures follow in a moment.").all()


# ---- links and files


def test_a_link_brings_everything_back(shelf):
    query = (
        "vector=flchain__lr__chapter&method=isotonic&bins=23&strategy=uniform&zoom=all&low=0.05&high=0.9"
        "&scale=standardised&eta=beta&a=5&b=40"
    )
    page = CalibrationPage("?" + query, shelf)
    assert page.state.told == []
    assert page.state.query() == query
    assert {name: page.live.value(name) for name in START} == {
        name: getattr(page.state, name) for name in START
    }


def test_a_link_to_somebody_else_s_predictions_says_so(shelf):
    page = CalibrationPage("?vector=own:elsewhere&bins=500", shelf)
    assert len(page.state.told) == 2
    assert page.state.vector == calibration.DEFAULT
    assert page.state.bins == 50


@pytest.mark.parametrize("name", NAMES)
def test_files_hold_the_present_state(shelf, name):
    page = CalibrationPage("?vector=flchain__lr__honest&method=platt&low=0.1&high=0.5&bins=7", shelf)
    frame = page.data(name)
    assert isinstance(frame, pd.DataFrame)
    assert frame["vector"].iloc[0] == "flchain__lr__honest"
    assert frame["recalibration"].iloc[0] == "platt"
    svg = export.draw(lambda backend: page.figure(name, backend), "svg", size=(130, 90)).getvalue()
    assert svg.startswith(b"<?xml")
    if name == "reliability":
        p = leakviz.recalibrate(page.vector.p, page.vector.y, method="platt").p
        curve = leakviz.calibration_curve(p, page.vector.y, n_bins=7)
        bins = frame[frame["part"] == "bin, quantile"]
        np.testing.assert_allclose(bins["observed"], curve["observed"].values)
        assert frame[frame["part"] == "records"]["n"].sum() == page.vector.p.size
    if name == "benefit":
        assert frame["threshold"].min() == pytest.approx(0.1)
        assert frame["threshold"].max() == pytest.approx(0.5)
    if name == "dispersion":
        assert len(frame) == 12
    if name == "weight":
        assert frame["weight"].item() == "uniform(0.1, 0.5)"


def test_unknown_figures_are_refused(page):
    for ask in (page.data, page.figure):
        with pytest.raises(ValueError, match="no figure is called"):
            ask("nothing")


def test_figures_are_elements(page):
    assert all(isinstance(page.figure(name), hv.Overlay) for name in NAMES)
