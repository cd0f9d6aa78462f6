"""The page Learn without a browser: its table is the core's, and its lessons ask before they show."""

import gc
import json
import re
import weakref
from functools import partial

import numpy as np
import pytest

from dashboards import export
from dashboards import mechanism_answers as answers
from dashboards.figures import mechanism as figures
from dashboards.lessons import END, WORLD, course, valid_guesses
from dashboards.mechanism import (
    KNOBS,
    LAST,
    START,
    STOPS,
    MechanismPage,
    lesson_case,
    world_of,
)
from dashboards.mechanism_answers import DETECTORS, SHARES, page_answers, twins_table, word
from leakviz.lessons import lessons
from leakviz.world import FRAME, WORLD_ALPHAS, score_world, simulate_leak


@pytest.fixture(scope="module")
def page():
    """Return one page for all tests; each says where it begins."""
    page = MechanismPage()
    page.__panel__()
    return page


@pytest.fixture
def start(page):
    page.player.guesses = {}
    page.state.read("")
    return page


def say(page, variable):
    return str(page.live.at()[variable].item())


def answer(page, value=None):
    page.player.guesses = {**page.player.guesses, page.state.step: value}


def visible(page, *parts):
    return [page._parts[part].visible for part in parts]


# ---- the table is the core's


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_table_is_what_score_world_answers(detector):
    world = simulate_leak(distance=5, anisotropy=2, orientation=20, rows=60, test_rows=200)
    table = page_answers(world, detector=detector)
    alphas = [0.0, 0.1, 1.0] if detector in answers.GAUSSIAN else [0.0]
    for in_fit in (False, True):
        here = simulate_leak(**{**world.parameters(), "in_fit": in_fit})
        for alpha in alphas:
            core = score_world(here, detector=detector, alpha=alpha)
            now = table.isel(share=-in_fit, alpha=int(np.flatnonzero(alpha == WORLD_ALPHAS)[0]))
            assert now["auroc_says"].item() == answers.number(float(core["auroc"]))
            assert now["word_says"].item() == word(float(core["low"]), float(core["high"]))
            both = [answers.number(float(core[end])) for end in ("low", "high")]
            assert now["interval_says"].item() == " to ".join(both)
            assert now["unsup_says"].item() == answers.number(float(core["best_unsup"]))
            np.testing.assert_allclose(now["tpr"], core["true_positive_rate"], atol=1e-6)
            assert now["now_x"].item() == pytest.approx(float(core["oracle_lda"]), abs=1e-12)
            assert now["now_y"].item() == pytest.approx(float(core["best_unsup"]), abs=1e-12)
            for kind in ("id", "ood"):
                share = core[f"{kind}_count"] / len(getattr(here, f"{kind}_test"))
                np.testing.assert_allclose(now[f"{kind}_share"], share, atol=1e-6)
            np.testing.assert_allclose(now["oracle_x"], core["oracle_x"])
            kind = "round" if detector == "one-class" else "winding"
            for level in range(3):
                line = core[["contour_x", "contour_y"]].isel(level=level).to_array().values.T
                drawn = np.column_stack([now[f"{kind}{level}_{axis}"] for axis in "xy"])
                drawn = drawn[~np.isnan(drawn).any(axis=1)]
                away = np.abs(drawn[:, None] - line[None]).max(axis=2)
                assert np.nanmin(away, axis=1).max() < 1e-4  # what is drawn is on the core's line
                assert np.ptp(drawn, axis=0) == pytest.approx(
                    np.nanmax(line, axis=0) - np.nanmin(line, axis=0), rel=0.02
                )


@pytest.mark.parametrize("detector", DETECTORS)
def test_what_a_moving_hand_sees_is_the_table_at_rest(detector):
    world = simulate_leak(distance=4, rows=50, test_rows=100)
    whole = page_answers(world, detector=detector)
    quick = page_answers(world, detector=detector, alpha=0.1, share=1.0)
    at = int(np.flatnonzero(WORLD_ALPHAS == 0.1)[0])
    names = ["auroc_says", "color", "tells_says", "id_share", "tpr", "round0_y", "now_y"]
    if detector in answers.GAUSSIAN:
        names.append("winding2_x")
    else:  # curves on a coarser grid
        for axis in "xy":
            ends = [
                (np.nanmin(v), np.nanmax(v))
                for v in (whole[f"winding2_{axis}"][-1], quick[f"winding2_{axis}"])
            ]
            assert ends[0] == pytest.approx(ends[1], abs=0.6)  # of the length of its cells
    for name in names:
        now = whole[name].isel(
            {d: {"share": -1, "alpha": at}[d] for d in ("share", "alpha") if d in whole[name].dims}
        )
        one = quick[name].isel(share=-1) if "share" in quick[name].dims else quick[name]
        np.testing.assert_array_equal(now, one, err_msg=name)


def test_every_table_has_the_same_rows_and_at_most_a_megabyte(start):
    start.state.step = WORLD
    known = {name: v.sizes for name, v in start.live.answers.data_vars.items()}
    for detector in DETECTORS:
        start._asked({"detector": detector, "classes": 5}, True)
        assert len(start.live.table) < 1_000_000
        for name, sizes in known.items():
            row = [
                n for d, n in start.live.answers[name].sizes.items() if d not in ("share", "alpha", "layers")
            ]
            assert row == [n for d, n in sizes.items() if d not in ("share", "alpha", "layers")], name
    start._asked({"reset": True}, True)


def test_rows_in_the_fit_set_are_seen_as_such():
    table = page_answers(simulate_leak(rows=40), detector="one-class", alpha=0.0)
    seen = np.isfinite(table["ood_fit_x"]).sum("ood_fit").values
    np.testing.assert_array_equal(seen, np.ceil(SHARES * 40))
    assert table["color"].values[0] != table["color"].values[1] == table["color"].values[-1]


# ---- the words


def test_words_follow_the_interval():
    assert word(0.44, 0.52) == word(0.48, 0.56) == "no better than a coin"
    assert word(0.41, 0.49).startswith("below one half")
    assert word(0.62, 0.69) == "detects a little"  # across tau
    assert (word(0.55, 0.64), word(0.65, 0.7)) == ("hardly detects", "detects")
    assert (word(0.94, 0.98), word(0.95, 0.98)) == ("detects", "orders nearly all pairs right")
    assert answers.number(0.9951) == "0.995"


def test_the_sentence_changes_with_the_switch(start):
    start.state.step = WORLD
    before = say(start, "tells_says"), say(start, "auroc_says"), say(start, "contrast_says")
    assert before[0] == "the one-class Gaussian finds it unusual"
    start.live.go(share=1.0)
    assert say(start, "tells_says").endswith("more familiar than the known classes")
    assert say(start, "fit_says") == "The class is in the fit set"
    assert start.state.in_fit == "1"
    assert say(start, "auroc_says") == answers.number(float(start.answer()["auroc"]))
    assert "in_fit=1" in start.state.query()


# ---- the lessons


def test_a_lesson_asks_before_it_shows(start):
    assert start.state.step == "1"
    assert visible(start, "scores", "covered", "plane", "twins", "headline") == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert not start.live.at()["see_line"]
    answer(start, 0.7)
    assert visible(start, "scores", "covered", "detector_reads") == [True, False, False]
    assert start.live.at()["see_line"]
    assert not start.live.at()["see_levels"]
    assert start.hand.shown == list(KNOBS[1])


def test_every_step_has_a_link_of_its_own(start):
    titles = {str(lesson.number): lesson.title for lesson in lessons()}
    assert list(titles) == list("12345678")
    written = json.loads(start.player.course)  # what the browser writes, by number
    assert {str(one["number"]): one["title"] for one in written["lessons"]} == titles
    for step in (*titles, END):
        assert start.state.read(f"?step={step}") == []
        assert start.player.step == step  # the one that it writes
        assert start.state.query() == f"step={step}"
        if step not in ("8", END):
            assert start.case == lesson_case(int(step), -1)


def test_what_is_revealed_is_what_the_page_shows(start):
    for lesson in (lessons()[number - 1] for number in (1, 3, 4)):
        start.state.step = str(lesson.number)
        assert say(start, "auroc_says") == answers.number(float(score(lesson.state)["auroc"]))
        answer(start)
        assert say(start, "auroc_says") == answers.number(float(score(lesson.state_after)["auroc"]))
        if lesson.kind == "where":
            shown = "oracle_says" if lesson.number == 1 else "auroc_says"
            assert say(start, shown) == answers.number(lesson.truth())
        for stage, further in enumerate(lesson.also, start=1):
            start.player.stage = stage
            assert say(start, "oracle_says") == answers.number(float(score(further.state)["oracle_lda"]))
        assert start.state.query() == f"step={lesson.number}"


def test_every_case_of_every_lesson_shows_its_own_numbers_in_the_app(start, monkeypatch):
    """In the app the browser walks, turns and glides: here a hand that does what it does with what it has."""
    monkeypatch.setattr("dashboards.mechanism._served", lambda: True)
    hand = start.hand
    monkeypatch.setattr(hand, "flip", lambda on: start.live.go(share=float(on)))
    monkeypatch.setattr(hand, "glide", lambda stop: start.live.go(alpha=float(STOPS["alpha"][stop])))
    walk = lambda name, value: start._asked({name: value}, True) if name in hand.shown else None  # noqa: E731
    monkeypatch.setattr(hand, "walk", walk)
    for lesson in lessons()[: LAST - 1]:
        start.state.step = str(lesson.number)
        answer(start)
        states = [lesson.state_after, *(further.state for further in lesson.also)]
        for stage in [*range(len(states)), *reversed(range(len(states)))]:
            start.player.stage = stage
            shown = say(start, "auroc_says"), say(start, "oracle_says")
            core = score(states[stage])
            assert shown == tuple(answers.number(float(core[v])) for v in ("auroc", "oracle_lda")), (
                lesson.number,
                stage,
            )


def score(state):
    return score_world(world_of({"in_fit": False, **state}), detector=state["detector"], alpha=state["alpha"])


def test_what_would_give_the_answer_away_is_not_there(start):
    for step, hidden, seen in (
        ("4", ("line_reads", "rule", "box"), ("detector_reads", "histograms")),
        ("5", ("rule", "box"), ("line_reads", "detector_reads")),
    ):
        start.state.step = step
        assert not any(visible(start, *hidden))
        assert all(visible(start, *seen))
        answer(start)
        assert all(visible(start, *hidden, *seen))


def test_nothing_of_a_lesson_is_cut_off():
    """The plane shows the same part throughout, and every row that is drawn is in it, with half its mark."""
    for number in range(1, LAST):
        for stage in range(-1, 1 + len(lessons()[number - 1].also)):
            table: dict = {}
            answers._draw_rows(table, world_of(lesson_case(number, stage)))
            for axis, (low, high) in zip("xy", FRAME, strict=True):
                for name in ("fit", "ood_fit", "id", "ood", "centre", "ood_centre"):
                    values = table[f"{name}_{axis}"][1]
                    assert low + 0.2 < np.nanmin(values) <= np.nanmax(values) < high - 0.2, (
                        number,
                        stage,
                        name,
                    )
    for distance, told in ((9.5, ""), (12, "The OOD class lies outside of this picture.")):
        world = simulate_leak(distance=distance, rows=20, test_rows=40)
        assert page_answers(world, detector="one-class", alpha=0.0, share=0.0)["away_says"].item() == told


def test_another_step_begins_with_its_own_case(start):
    start.state.step = "4"
    answer(start, 0)
    start.player.stage = 1
    start.state.step = "5"
    assert start.player.stage == 0
    assert start.case["in_fit"] is True
    start.state.step = "4"
    assert say(start, "oracle_says") == answers.number(float(score(lessons()[3].state)["oracle_lda"]))


def test_the_last_lesson_names_the_twins_after_the_answer(start):
    start.state.step = "8"
    assert visible(start, "plane", "right", "twins") == [False, False, True]
    assert "honest" not in start._seen.object
    assert not start.live.at()["see_flag"]
    answer(start, 2)
    assert "honest" in start._seen.object
    start.player.stage = 2
    assert start.live.at()["see_recalibrated"]
    found = answers.twins()
    text = twins_table(found, told=2)
    assert text.count("<tr>") == 5
    for model in figures.MODELS:
        assert f"{int(found['spike'].sel(model=model)):,}" in text
    assert re.search(r">-\d", text) is None  # minus signs


def test_the_end_shows_no_figures(start):
    start.state.step = END
    assert visible(start, "plane", "right", "twins", "histograms") == [False] * 4
    assert start._parts["left"].css_classes == ["left", "all"]


def test_guesses_are_checked_and_kept_for_the_visit(start):
    told = lessons()
    assert valid_guesses({"2": 1.5, "3": -0.1, "4": 3, "5": None, "6": 1, "x": 0.5}, told) == {
        "5": None,
        "6": 1,
    }
    start.player.guesses = {"1": 0.4, "2": 7.0}
    assert start.player.guesses == {"1": 0.4}
    start.state.step = "3"
    assert start.player.guesses == {"1": 0.4}


def test_the_course_says_what_the_lessons_say():
    told = course(lessons())["lessons"]
    assert [one["number"] for one in told] == list(range(1, 9))
    for one in told:
        if one["kind"] == "where":
            assert 0 <= one["truth"] <= 1
        else:
            assert one["options"][one["answer"]]


# ---- the world


def test_a_link_carries_the_world():
    query = "?step=world&detector=knn&in_fit=1&classes=4&distance=3.5&angle=200&anisotropy=2&rows=100&alpha=0.1&seed=7"
    page = MechanismPage(query)
    assert page.state.told == []
    case = page.state.case()
    assert (case["detector"], case["classes"], case["distance"], case["seed"]) == ("knn", 4, 3.5, 7)
    assert page.live.value("share") == 1.0
    again = MechanismPage(page.state.query())
    assert again.case == page.case
    world = again.world
    assert (world.classes, world.angle, world.rows, world.in_fit) == (4, 200.0, 100, True)
    assert page.answer().attrs["detector"] == "knn"


def test_a_link_that_cannot_be_had_is_told():
    page = MechanismPage("?step=9&distance=far&alpha=7&centres=1,2;99,0;0,0&present=yes")
    assert page.state.step == "1"
    for part in ("step “9”", "distance “far”", "alpha 7", "centres", "present “yes”"):
        assert part in " ".join(page.state.told)


def test_the_hand_moves_the_world(start):
    start.state.step = WORLD
    start._asked({"distance": 3.013, "rows": 77, "seed": 2.4, "detector": "no", "name": 1}, False)
    assert {k: start.case[k] for k in ("distance", "rows", "seed", "detector")} == {
        "distance": 3.0,
        "rows": 100,
        "seed": 2,
        "detector": "one-class",
    }
    assert start.state.distance == START["distance"]  # not before the hand rests
    start._asked({"distance": 3.0}, True)
    assert start.state.distance == 3.0
    assert say(start, "auroc_says") == answers.number(float(start.answer()["auroc"]))
    for bad in (
        {"distance": float("nan")},
        {"angle": "90"},
        {"rows": None},
        {"centre": [9, 0, 0]},
        {"centre": "x"},
    ):
        before = start.case
        start._asked(bad, False)
        assert start.case == before
    start._asked({"reset": True}, True)
    assert start.case == START


def test_messages_of_a_strange_browser_are_answered_or_left(start):
    start.state.step = WORLD
    before = start.case
    for message in (
        None,
        {},
        {"n": "1", "change": {}},
        {"n": 3, "change": []},
        {"n": 4, "change": {"rest": 1}},
    ):
        start.hand._handle_msg(message)
    assert start.hand.answered == 4
    assert start.case == before


def test_centres_go_where_they_are_dragged(start):
    start.state.step = WORLD
    start._asked({"centre": [-1, -3.0, 4.0]}, True)
    np.testing.assert_allclose(start.world.ood_centre, [-3, 4], atol=0.1)
    before = start.world
    start._asked({"centre": [0, 2.0, -5.0]}, True)
    np.testing.assert_allclose(start.world.centres[0], [2, -5])
    np.testing.assert_allclose(start.world.centres[1:], before.centres[1:], atol=0.051)
    np.testing.assert_allclose(start.world.ood_centre, before.ood_centre, atol=0.15)  # stays
    np.testing.assert_allclose(MechanismPage(start.state.query()).world.centres, start.world.centres)
    start._asked({"classes": 4}, True)
    assert len(start.world.centres) == 4
    assert start.state.centres == ""
    start._asked({"reset": True}, True)


def test_knn_has_no_alpha(start):
    start.state.step = WORLD
    assert start._parts["alpha"].visible
    start._asked({"detector": "knn"}, True)
    assert not start._parts["alpha"].visible
    start._asked({"reset": True}, True)
    assert start._parts["alpha"].visible


@pytest.mark.parametrize("name", STOPS)
def test_every_stop_is_one_that_the_core_takes(name):
    for value in (STOPS[name][0], STOPS[name][-1]):
        case = {**START, "rows": 30, name: value.item()}
        if name != "alpha":
            world_of(case)


# ---- figures


def test_figures_are_drawn_on_paper_and_give_their_numbers(start):
    start.state.step = WORLD
    start.live.go(share=1.0)
    for name, title in figures.FIGURES.items():
        if name in ("plane", "purity"):
            draw = partial(start.figure, name)
            assert title.encode() in export.draw(draw, "svg", size=(80, 60)).getvalue()
        frame = start.data(name)
        assert len(frame)
        assert not frame.isna().all(axis=None)
    rows = start.data("plane")
    assert rows["role"].value_counts()["ood_test"] == 600
    assert (rows["role"] == "fit, the class").sum() == 300
    with pytest.raises(ValueError, match="no figure is called 'map'"):
        start.figure("map")
    with pytest.raises(ValueError, match="no figure is called 'map'"):
        start.data("map")


def test_a_page_is_let_go():
    page = MechanismPage()
    page.__panel__()
    alive = [weakref.ref(page), weakref.ref(page.live), weakref.ref(page.state)]
    del page
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3
