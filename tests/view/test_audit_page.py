"""The audit page without a browser: its table is the core's, its figures and words are its table's."""

import gc
import weakref

import numpy as np
import panel as pn
import pytest

import leakviz
from dashboards import audit_answers as answers
from dashboards import stencil
from dashboards.audit import AuditPage
from dashboards.figures import audit as figures
from leakviz.comparisons import published_wild, quoted_figure


@pytest.fixture(scope="module")
def page():
    page = AuditPage()
    page.__panel__()
    return page


@pytest.fixture(scope="module")
def sources(page):
    """Return the data of every tagged source of the page."""
    root = page.__panel__().get_root()
    return {
        tag.split("/")[1].removesuffix(":source"): model
        for model in root.references()
        for tag in model.tags
        if isinstance(tag, str) and tag.endswith(":source")
    }


def say(page, variable, **at):
    return str(page.live.at(**at)[variable].item())


RNG = np.random.default_rng(2)
STOPS = list(zip(RNG.choice(answers.GATES, 20), RNG.choice(answers.TAUS, 20), strict=True))


def test_every_count_is_the_cores(page):
    wild = published_wild()
    counted = wild[
        (wild["n"] == 1) & (wild["space"] == "embedding") & (wild["unsup_low"] == wild["unsup_high"])
    ]
    battery = answers.signature()
    convention = battery["convention"].values
    for gate, tau in [(0.95, 0.65), *STOPS]:
        rule, now = leakviz.Rule(gate, tau), page.live.at(gate=gate, tau=tau)
        assert (
            int(now["published_count"])
            == ((counted["oracle_low"] >= gate) & (counted["unsup_low"] < tau)).sum()
        )
        assert int(now["own_count"]) == int(leakviz.fired(answers.own(), rule).sum())
        for name in figures.CONVENTIONS:
            subset = battery.isel(setting=np.flatnonzero(np.isin(convention, ["all", name])))
            fires, regime = leakviz.fired(subset, rule).values, subset["regime"].values
            leaks = regime == "leak"
            assert now[f"{name}_leak"].item() == f"{fires[leaks].sum()} of {leaks.sum()}"
            excluded = regime == "clean-excl"
            assert now[f"{name}_excluded"].item() == f"{(~fires[excluded]).sum()} of {excluded.sum()}"


def test_every_mark_is_filled_where_its_setting_fires(page):
    own, frame = answers.own(), answers.readings()
    for gate, tau in STOPS:
        rule = leakviz.Rule(gate, tau)
        for convention in figures.CONVENTIONS:
            now = page.live.at(gate=gate, tau=tau, convention=convention)
            fill = now["own_passes"].values & now["own_collapsed"].values
            np.testing.assert_array_equal(fill, leakviz.fired(own, rule))
            for layer, regime in figures.SPACE.items():
                of = figures._of(frame, regime, convention)
                fires = (of["oracle_lda"] >= gate) & (of["best_unsup"] < tau)
                np.testing.assert_array_equal(
                    now[f"{layer}_passes"].values & now[f"{layer}_collapsed"].values, fires
                )


def test_readings_and_conventions_are_the_batterys(page):
    battery = answers.signature()
    for reading in figures.READINGS:
        for convention in figures.CONVENTIONS:
            now = page.live.at(reading=reading, convention=convention)
            of = figures._of(answers.readings(), "clean-excl", convention)
            expected = battery.sel(setting=of["setting"].values)
            assert set(expected["convention"].values) == {convention}
            np.testing.assert_allclose(now["space_excluded_y"], expected[reading].mean("seed"), atol=1e-11)
            np.testing.assert_allclose(
                now["space_excluded_x"], expected["embedding_maha"].mean("seed"), atol=1e-11
            )


# ---- what it must show


def test_the_published_count_is_the_papers(page):
    fires = quoted_figure("24 in-the-wild pairs", "pairs_that_fire")
    assert int(say(page, "published_count")) == fires.low == 1
    assert published_wild().query("regime == 'clean-novel'")["n"].sum() == 24
    # The hard text class, oracle 0.91: the gate alone keeps it out (section 6).
    assert say(page, "hard_says") == "The hard text class is kept out by the gate alone."
    assert "fires too" in say(page, "hard_says", gate=0.9)
    assert say(page, "published_count", gate=0.9) == "2"
    assert "none of them fires" in say(page, "far_says")
    assert "some of them may fire" in say(page, "far_says", tau=0.8)


def test_the_index_is_the_same_inside_and_outside_the_fit_set(page):
    frame = figures.paired(answers.index_settings()).pivot(index="pair", columns="regime", values="index")
    both = frame.dropna(subset=["leak", "clean-excl"])
    assert len(both) == 120
    np.testing.assert_array_equal(both["leak"], both["clean-excl"])
    contest = answers.contest().set_index("score")
    assert contest.loc["neighbourhood index, matched pairs", "auroc"] == 0.5
    assert contest.loc["1 − best-unsup, matched pairs", "low"] > 0.9
    best = figures.paired(answers.index_settings()).pivot(index="pair", columns="regime", values="best_unsup")
    assert (best["clean-excl"] > best["leak"]).all()


def test_leaks_balance_in_every_block():
    """For balanced classes the leak AUROCs of one score average 0.5 over the classes, whatever the score."""
    table = answers.ablation().set_index(["group", "block"])
    np.testing.assert_allclose(table.loc["leak", "mean"], 0.5, atol=1e-9)
    kept, dropped = (table.loc[(f"clean-excl, {c}", "all 77"), "mean"] for c in figures.CONVENTIONS)
    assert dropped > kept > 0.5  # the convention changes the result


# ---- state, figures, words


def test_a_link_is_read_and_written():
    page = AuditPage("?gate=0.9&tau=0.8&reading=ahss&convention=dropped&chosen=wild_memo")
    assert page.state.told == []
    assert page.state.query() == "gate=0.9&tau=0.8&reading=ahss&convention=dropped&chosen=wild_memo"
    assert page.live.value("reading") == "ahss"
    assert "Memo, leaked" in say(page, "detail")
    assert len(AuditPage("?reading=none&gate=2").state.told) == 2


def test_a_release_changes_the_state_once(page):
    seen = []
    watcher = page.state.param.watch(
        lambda *events: seen.append([e.name for e in events]), page.state.names()
    )
    page.live.state = {**page.live.state, "tau": int(np.argmin(np.abs(answers.TAUS - 0.8)))}
    assert (page.state.tau, seen) == (0.8, [["tau"]])
    page.state.tau = 0.65
    assert page.live.value("tau") == 0.65
    page.state.param.unwatch(watcher)


def test_sources_hold_what_the_table_says(page, sources):
    now = page.live.at()
    for layer in ("own", *figures.PUBLISHED, *figures.SPACE):
        fill = now[f"{layer}_passes"].values & now[f"{layer}_collapsed"].values
        np.testing.assert_array_equal(sources[layer].data["fill_alpha"], fill.astype(float), layer)
    np.testing.assert_array_equal(sources["space_leak"].data["y"], now["space_leak_y"])
    for name in ("published_box", "own_box"):
        assert (sources[name].data["left"][0], sources[name].data["top"][0]) == (0.95, 0.65)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_figure_has_its_data_and_a_form_for_paper(page, name):
    assert len(page.data(name)) > 5
    assert page.figure(name, "matplotlib") is not None


def test_an_unknown_figure_is_an_error(page):
    with pytest.raises(ValueError, match="no figure is called 'x'"):
        page.figure("x")
    with pytest.raises(ValueError, match="no figure is called 'x'"):
        page.data("x")


def test_the_table_is_small(page):
    assert len(page.live.table) < 300_000


def test_a_page_goes_with_its_session(monkeypatch):
    monkeypatch.setattr(stencil, "_DRAWN", dict(stencil._DRAWN))
    page = AuditPage()
    root = page.__panel__()
    gone = [weakref.ref(thing) for thing in (page, page.live, page.state)]
    del page, root
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3


def test_words_on_the_page_are_no_markup(page):
    texts = [p.object for p in page.__panel__().select(pn.pane.HTML)]
    assert any("never looks at the fit set" in text for text in texts)
    assert any("60 of 60" in text or "59 of 60" in text for text in texts)
