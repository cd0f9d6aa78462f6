"""The purity page without a browser: its table is the core's, its figures and texts are its table's."""

from pathlib import Path

import holoviews as hv
import numpy as np
import pandas as pd
import pytest

import leakviz
from dashboards import export
from dashboards import purity_answers as answers
from dashboards.figures import purity as figures
from dashboards.markup import link_note
from dashboards.purity import DEFAULT, NONE, PurityPage
from dashboards.shelf import PUBLISHED, ArmSettings, Shelf, Vector, shipped, shipped_names
from leakviz.blind import CEILING_STOPS, blind_test_ranked
from leakviz.certification import MAX_RISKS, false_certification
from leakviz.purity import DELTA_STOPS, K_MIN_STOPS, rank_predictions

HONEST = [name for name in shipped_names() if name.endswith("__honest")]
SMALL = "n=20000&seed=3"


def own(n=500, seed=0, title="mine.csv", name="own:0123abcd"):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(2)
    y = (rng.random(n) < p).astype(np.uint8)
    return Vector(name=name, title=title, source="a file", p=p, y=y, ranked=rank_predictions(p, y))


def say(page, variable):
    return str(page.live.at()[variable].item())


def tagged(page):
    """Return the models of a page's figures by their tags; each tag is on one model only."""
    found = {}
    for model in page.__panel__().get_root().references():
        for tag in model.tags:
            if isinstance(tag, str) and tag.startswith(page.live.key + "/"):
                found.setdefault(tag.split("/", 1)[1], {})[model.id] = model
    assert {name: len(models) for name, models in found.items() if len(models) > 1} == {}
    return {name: next(iter(models.values())) for name, models in found.items()}


# ---- the words are the core's


@pytest.mark.parametrize(
    "name",
    [
        "flchain__lr__honest",
        "flchain__lr__chapter",
        "flchain__hgb__futime",
        "monica__lr__honest",
        "monica_cc__lr__honest",
        "nassCDS__lr__injSeverity",
        "nassCDS__hgb__injSeverity",
        "breast_cancer__lr__honest",
        "nhefs__lr__yrdth",
    ],
)
def test_the_banner_says_what_the_core_says_at_every_sampled_stop(name):
    page = PurityPage(f"?first={name}&beside=none")
    vector = shipped(name)
    widths = answers.breadths(vector, shipped)
    rng = np.random.default_rng(1)
    for _ in range(40):
        delta, k_min = rng.choice(DELTA_STOPS), int(rng.choice(K_MIN_STOPS))
        ceiling, epsilon = str(rng.choice(answers.CEILINGS)), float(rng.choice(answers.EPSILON_STOPS))
        page.state.param.update(delta=delta, k_min=k_min, ceiling=ceiling, epsilon=epsilon)
        test = blind_test_ranked(
            vector.ranked,
            delta=delta,
            k_min=k_min,
            c_max=None if ceiling == "off" else ceiling,
            breadths=widths,
            epsilon=epsilon,
        )
        assert page.answer() == {name: test}
        said = test.verdict if test.strength is None else f"{test.verdict}, {test.strength} evidence"
        assert say(page, "verdict_0").lower() == said
        needs = f" (M* {answers._down(test.m_star)})" if test.trigger == "near-label" and test.m_star else ""
        assert say(page, "together") == said + needs
        if test.trigger == "near-label" and test.m_star:
            assert (
                f"would need risks above {'M* ' * (test.needed_risk == test.m_star)}{answers._down(test.needed_risk)} "
                in (say(page, "m_says_0"))
            )
        trigger = {None: "", "near-label": ", near-label", "above-ceiling": ", above the ceiling"}
        assert say(page, "trigger_0") == trigger[test.trigger]
        assert say(page, "head_0") == f"{test.spike:,}"
        assert say(page, "true_9") == answers.chance(test.false_certification["0.9"])
        assert say(page, "naive_9") == answers.chance(test.naive_certification["0.9"])
        evidence = say(page, "evidence_0")
        if test.trigger == "near-label":
            assert evidence.startswith(f"{test.spike_events:,} of the top {test.spike:,} records")
        if test.trigger == "above-ceiling":
            whole = test.c_low > float(ceiling)
            assert evidence.endswith("exceeds the ceiling, with its whole interval.") == whole
        assert (say(page, "ties_0") != "") == test.ties_hide_head
        if test.breadth is not None:
            assert say(page, "breadth_0") == answers.percent(test.breadth)


def test_reference_values_of_the_shipped_vectors():
    """data/predictions/README.md, from an independent implementation."""
    for name, c, spike in (
        ("flchain__lr__honest", "0.841", "225"),
        ("flchain__lr__chapter", "1.000", "2,283"),
        ("flchain__hgb__futime", "0.970", "0"),
        ("monica__lr__honest", "0.748", "948"),
        ("monica_cc__lr__honest", "0.627", "1"),
        ("nassCDS__lr__injSeverity", "0.986", "0"),
    ):
        page = PurityPage(f"?first={name}&beside=none")
        assert (say(page, "c_0"), say(page, "head_0")) == (c, spike), name
    assert say(PurityPage(), "z_0") == "−1.5"


def test_ten_honest_vectors_are_not_shown_or_fire_with_their_reason():
    assert len(HONEST) == 10
    fires = set()
    for name in HONEST:
        page = PurityPage(f"?first={name}&beside=none")
        verdict = say(page, "verdict_0")
        if verdict.startswith("Leaky, "):
            fires.add(name.split("__")[0])
            assert say(page, "assumes_0") == answers.FIRES_HONESTLY[name.split("__")[0]]
        else:
            assert verdict == "Not shown"
            assert say(page, "assumes_0") == "This does not mean that there is no leak."
    assert fires == {"flchain", "breast_cancer", "monica"}


def test_a_leak_is_never_given_the_reason_of_an_honest_model():
    assert say(PurityPage("?first=flchain__lr__chapter&beside=none"), "assumes_0") == ""


def test_the_word_clean_is_no_verdict_and_the_scope_stands():
    page = PurityPage(f"?first=arm:laundered&beside=none&{SMALL}")
    heading = page._heading()
    assert "clean" not in heading
    assert "a smooth leak below the ceiling cannot be seen by any test on (p, y)" in heading
    assert "An outcome that is nearly deterministic at prediction time fires honestly" in heading


# ---- paper, section 7.1: what the arms can carry


@pytest.fixture(scope="module")
def arms():
    return Shelf()


@pytest.mark.parametrize(
    ("arm", "ceiling", "verdict"),
    [
        ("clean", "off", "not shown"),
        ("miscalibrated", "off", "not shown"),
        ("laundered", "off", "not shown"),
        ("broad", "off", "not shown"),
        ("broad", "0.85", "leaky"),
        ("deterministic", "off", "leaky"),
    ],
)
def test_verdicts_of_the_arms(arms, arm, ceiling, verdict):
    page = PurityPage(f"?first=arm:{arm}&beside=arm:clean&ceiling={ceiling}", arms)
    assert say(page, "verdict_0").lower().split(",")[0] == verdict
    assert page.answer()[f"arm:{arm}"].verdict == verdict


def test_dispersion_is_evaded_and_the_head_and_c_stay(arms):
    page = PurityPage("?first=arm:miscalibrated&beside=arm:clean&third=arm:laundered", arms)
    z = [float(say(page, f"z_{i}").replace("−", "-")) for i in figures.SLOTS]
    assert z[0] > 280
    assert abs(z[1]) < 3.5
    assert abs(z[2]) < 1
    now = page.live.at()
    assert say(page, "c_0") == say(page, "c_1") == say(page, "c_2")
    for name in ("purity", "k"):
        np.testing.assert_array_equal(now[f"{name}_0"], now[f"{name}_1"])
        np.testing.assert_array_equal(now[f"{name}_0"], now[f"{name}_2"])


def test_only_the_head_finds_the_flag(arms):
    page = PurityPage("?first=arm:deterministic&beside=none", arms)
    test = page.answer()["arm:deterministic"]
    assert test.trigger == "near-label"
    assert 600 < test.spike < 760
    assert abs(float(say(page, "z_0").replace("−", "-"))) < 3.5
    now = page.live.at()
    assert now["purity_0"].values[now["k_0"].values <= 200].min() == 1  # the top 0.1 %


# ---- the figures


def test_every_target_exists_once_and_takes_rows_of_its_length():
    page = PurityPage()
    now, models = page.live.at(), tagged(page)
    for target, column, variable in page.live.columns:
        assert len(models[target].data[column]) == now[variable].size, (target, column)
    for target, attribute, variable in page.live.attributes:
        assert getattr(models[target], attribute) == now[variable].item(), (target, attribute)
    assert {grip.target for grip in page.live.grips} <= set(models)


@pytest.mark.parametrize("query", ["?delta=0.2&k_min=7&epsilon=0.03&third=nhefs__lr__yrdth", "?beside=none"])
def test_what_the_browser_shows_is_the_figure_drawn_at_that_stop(query):
    moved, fresh = PurityPage(), PurityPage(query)
    bokeh = hv.renderer("bokeh")
    hooks = {
        **{f"curve_{i}": [moved.live.tag(f"curve_{i}", "source", "glyph_renderer")] for i in figures.SLOTS},
        **{f"spike_{i}": [moved.live.tag(f"spike_{i}", "source", "glyph_renderer")] for i in figures.SLOTS},
        **{f"band_{i}": [moved.live.tag(f"band_{i}", "source", "glyph_renderer")] for i in figures.SLOTS},
        "box": [moved.live.tag("box", "source")],
        "figure": [moved.live.tag("purity", "x_range")],
    }
    drawn = bokeh.get_plot(moved.figure("purity", hooks=hooks)).state
    moved.state.read(query)
    moved.live.apply(drawn)
    again = bokeh.get_plot(
        fresh.figure("purity", hooks={layer: _tag_as(moved, layer) for layer in hooks})
    ).state
    for layer in hooks:
        if layer == "figure":
            assert drawn.x_range.end == again.x_range.end
            continue
        tag = f"{moved.live.key}/{layer}:source"
        one, two = (next(m for m in f.references() if tag in m.tags) for f in (drawn, again))
        for column, values in two.data.items():
            np.testing.assert_array_equal(one.data[column], values, err_msg=f"{layer} {column}")
        tag = f"{moved.live.key}/{layer}:glyph_renderer"
        seen = [next((m.visible for m in f.references() if tag in m.tags), None) for f in (drawn, again)]
        assert seen[0] == seen[1], layer


def _tag_as(page, layer):
    handles = {"box": ("source",), "figure": ("x_range",)}.get(layer, ("source", "glyph_renderer"))
    return [page.live.tag("purity" if layer == "figure" else layer, *handles)]


def test_the_spike_and_the_curve_meet():
    page = PurityPage("?first=covid_testing__hgb__ct_result&beside=none")
    for delta in (0.0, 0.05, 0.2):
        page.state.delta = delta
        now = page.live.at()
        k = now["spike_x_0"].values[0]
        if np.isfinite(k):
            at = now["purity_0"].values[now["k_0"].values == k]
            assert at[0] == now["spike_y_0"].values[0] >= 1 - delta - 1e-12


@pytest.mark.parametrize("name", ["purity", "certification", "graded"])
def test_files(name):
    page = PurityPage("?third=arm:broad&" + SMALL)
    drawing = export.draw(lambda backend: page.figure(name, backend), "svg", size=(160, 110)).read()
    assert b"<svg" in drawing
    frame = page.data(name)
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) > 5


def test_a_file_name_is_text_on_paper_too():
    shelf = Shelf()
    shelf.add(own(title="a$\\frac{$<b>x</b>.csv"))
    page = PurityPage("", shelf)
    drawing = export.draw(lambda backend: page.figure("purity", backend), "svg", size=(160, 110)).read()
    assert b"frac{$" in drawing
    assert "<b>x" not in page._heading()


# ---- the calculator and the graded leak


def test_the_calculator_is_exact():
    page = PurityPage()
    assert say(page, "needed") == "k_min 325"
    assert "66" in say(page, "needed_why")
    for alpha, risk, delta in ((0.001, 0.9, 0.0), (0.01, 0.8, 0.1), (0.05, 0.5, 0.3), (0.0001, 0.5, 0.2)):
        page.state.param.update(alpha=alpha, max_risk=risk, delta=delta)
        k = leakviz.minimum_head(alpha, risk, delta=delta)
        assert say(page, "needed") == f"k_min {k:,}"
        now = page.live.at()
        assert (now["needed_x"].item(), now["needed_y"].item()) == (k, alpha)
        at = list(K_MIN_STOPS).index(20)
        assert now["true_curve"].values[at] == pytest.approx(
            false_certification(20, risk, delta=delta), rel=1e-8
        )
        assert now["naive_curve"].values[at] == pytest.approx(risk**20)
    page.state.param.update(max_risk=0.9, delta=0.1)
    assert (say(page, "needed"), say(page, "needed_why")[:14]) == ("no k_min", "is long enough")


def test_graded_leak():
    page = PurityPage()
    frame = page.data("graded")
    assert frame["spike"].tolist() == [225, 265, 326, 376, 525, 725, 1028]
    assert np.isnan(frame["breadth_percent"][0])
    assert frame["breadth_percent"].dropna().is_monotonic_increasing
    assert frame["c_gain"].round(3).tolist()[0] == 0
    assert frame["m_star"].is_monotonic_increasing
    # The smallest leaks do not exceed what two honest models for resampled rows reach.
    assert say(page, "graded_says").startswith("From a window of 365 days on")
    page.state.epsilon = 0.02
    assert say(page, "graded_says").startswith("From a window of 180 days on")
    page.state.epsilon = 0.0
    assert say(page, "graded_says").startswith("At no severity")
    page.state.param.update(delta=0.02, k_min=325)
    assert "convicts from a window of" in say(page, "graded_head_says")


# ---- choosing


def test_the_table_is_small_whatever_is_chosen():
    for query in (
        "",
        "?first=flights_late60__lr__dep_noise60&beside=arm:broad&third=covid_testing__hgb__honest",
    ):
        assert len(PurityPage(query).live.table) <= 1_000_000


def test_choosing_patches_and_keeps_the_figures():
    page = PurityPage()
    root = page.__panel__().get_root()

    def drawn():
        return {m.id for m in root.references() if type(m).__name__ == "figure"}

    before = drawn()
    assert len(before) == 6
    page._menus["beside"].value = "nassCDS__lr__honest"
    assert page.state.beside == "nassCDS__lr__honest"
    assert say(page, "title_1") == shipped("nassCDS__lr__honest").title
    assert page.live.at()["x_end"].item() == pytest.approx(1.08 * 26217)
    page._menus["beside"].value = NONE
    assert (
        say(page, "together") == "leaky, moderate evidence (M* 0.924)"
    )  # 195 of 204, by Clopper and Pearson
    assert not page.live.at()["seen_1"].item()
    assert drawn() == before


def test_a_users_vector_is_offered_first_and_shown():
    shelf = Shelf()
    page = PurityPage("", shelf)
    page.__panel__()
    vector = own()
    shelf.add(vector)
    assert (page.state.first, page.state.beside, page.state.third) == (vector.name, NONE, NONE)
    assert next(iter(page._menus["first"].groups)) == "your own"
    assert page._menus["first"].value == vector.name
    assert page.answer()[vector.name].n == 500
    shelf.own = []
    assert (page.state.first, page._menus["first"].value) == (DEFAULT[0], DEFAULT[0])


def test_a_link_to_anothers_file_says_so():
    page = PurityPage("?first=own:feedbeef&delta=0.1")
    assert page.state.first == DEFAULT[0]
    assert page.state.delta == 0.1
    note = link_note(page.state)
    assert note.visible
    assert "own:feedbeef" in note.object
    assert 'Bring the file under <a href="?page=predictions">Your predictions</a>' in note.object


def test_lost_links_and_the_header_name_vectors_as_the_menus_do():
    page = PurityPage("?first=own:feedbeef&third=arm:nothing&beside=unheard__of")
    told = " ".join(page.state.told)
    assert DEFAULT[0] not in told
    assert f"Until then: {shipped(DEFAULT[0]).title}." in told
    assert f"which is not here; {shipped(DEFAULT[1]).title} is shown" in told
    assert "“arm:nothing”, which is not here; none is shown" in told
    assert page.subject == f"{shipped(DEFAULT[0]).title}, and 1 more"
    page.state.beside = NONE
    assert page.subject == shipped(DEFAULT[0]).title


def test_every_shipped_vector_names_who_published_its_records():
    for name in shipped_names():
        assert PUBLISHED[name.split("__")[0]] in shipped(name).source
    readme = (Path(__file__).parents[2] / "data" / "predictions" / "README.md").read_text(encoding="utf-8")
    for words in PUBLISHED.values():
        package = words.split(" (")[0]
        assert package in readme


def test_predictions_that_are_all_the_same_are_undetermined():
    y = np.arange(500) < 480
    vector = Vector(
        name="own:same", title="same.csv", source="a file", p=np.full(500, 0.4), y=y,
        ranked=rank_predictions(np.full(500, 0.4), y),
    )  # fmt: skip
    shelf = Shelf()
    shelf.add(vector)
    page = PurityPage("", shelf)
    assert say(page, "verdict_0") == "Undetermined"
    assert "every record has the same prediction" in say(page, "evidence_0").lower()
    assert page.answer()["own:same"].verdict == "undetermined"
    page.state.ceiling = "0.50"
    assert say(page, "together") == "undetermined"


def test_links():
    query = "beside=none&third=arm:clean&delta=0.1&k_min=66&ceiling=0.87&epsilon=0.02&alpha=0.05&n=5000"
    page = PurityPage("?" + query)
    s = page.state
    assert (s.beside, s.third, s.delta, s.k_min, s.ceiling, s.alpha, s.n) == (
        NONE,
        "arm:clean",
        0.1,
        66,
        "0.87",
        0.05,
        5000,
    )
    assert page.shelf.arms.n == 5000
    assert PurityPage("?" + s.query()).state.query() == s.query()
    assert PurityPage("?ceiling=0.873").state.ceiling == "0.87"
    assert PurityPage("?ceiling=x").state.ceiling == "off"
    assert "<script" not in PurityPage("?first=<script>")._alert.object


def test_arms_have_controls_and_bad_values_are_answered():
    shelf = Shelf()
    page = PurityPage(f"?first=arm:broad&beside=none&{SMALL}", shelf)
    page.__panel__()
    assert page._arms_row.visible
    before = page.live.answers
    for name, text, words in (
        ("prevalence", "2", "prevalence"),
        ("prevalence", "x<b>", "is no number"),
        ("n", "1e9", "whole number"),
        ("n", "3000000000", "at most 2,000,000"),
        ("beta", "-1", "beta"),
    ):
        page._inputs[name].value = text
        assert words in page._alert.object, (name, page._alert.object)
        assert "<b>" not in page._alert.object
        assert page.live.answers is before
        page._inputs[name].value = page._written(name)
    page._inputs["n"].value = "30,000"
    assert shelf.arms == ArmSettings(n=30_000, seed=3)
    assert say(page, "size_0") == "30,000"
    page._menus["first"].value = "nhefs__lr__honest"
    assert not page._arms_row.visible


def test_breadth_refers_to_the_honest_twin_and_has_its_band():
    page = PurityPage(
        "?first=flchain__lr__dead180d&beside=nassCDS__lr__injSeverity&third=flchain__lr__honest"
    )
    assert say(page, "breadth_0") == answers.percent(page.answer()["flchain__lr__dead180d"].breadth)
    assert say(page, "breadth_null_0").startswith("honest models 4.9 to 12.8")
    assert say(page, "breadth_null_1") == "of honest models: unknown, not 0"
    assert say(page, "breadth_2") == "is the reference"


def test_breadth_of_an_arm_refers_to_the_clean_arm_of_the_same_settings():
    page = PurityPage(f"?first=arm:broad&beside=none&{SMALL}")
    assert page.answer()["arm:broad"].breadth > 0
    assert say(page, "breadth_0") == answers.percent(page.answer()["arm:broad"].breadth)


def test_reset_moves_the_sliders_and_keeps_the_vectors():
    page = PurityPage("?first=nhefs__lr__honest&delta=0.2")
    page.live.state = dict(page.live.starts)  # what the browser does
    page.live.resets += 1
    assert (page.state.first, page.state.delta) == ("nhefs__lr__honest", 0.05)


def test_ceiling_stops_are_the_cores():
    assert [float("inf") if c == "off" else float(c) for c in answers.CEILINGS] == list(CEILING_STOPS)
    assert tuple(float(m) for m in MAX_RISKS) == answers.RISKS


def test_the_page_is_a_notebook():
    assert (Path(__file__).parents[2] / "notebooks" / "blind_test.ipynb").is_file()
