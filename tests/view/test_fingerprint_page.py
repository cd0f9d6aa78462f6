"""The fingerprint page without a browser: its facts, its figures at any stop, its files."""

import io
import re

import holoviews as hv
import numpy as np
import pandas as pd
import pytest
from bokeh.models import BoxAnnotation, GlyphRenderer, Plot, Span

import leakviz
from dashboards import export, stencil, theme
from dashboards.fingerprint import FingerprintPage, page_answers

FIGURES = ("scatter", "map", "rates", "contrast")
# What a figure is known by: the labels of its axes.
LABELS = {
    "scatter": ("oracle LDA, AUROC with labels", "best-unsup, AUROC without labels"),
    "map": ("oracle gate", "tau"),
    "rates": ("tau", "rate"),
    "contrast": ("", "best-unsup, AUROC"),
}


@pytest.fixture
def page():
    return FingerprintPage()


def shown(page):
    """Return what the texts of the page say."""
    now = page.live.at()
    return {
        name: now[name].item() for name in now.data_vars if now[name].dims == () and now[name].dtype == object
    }


# Facts: 2607.19393, section 5, and data/published/README.md


@pytest.mark.parametrize(
    ("query", "leaks", "clean", "alarms"),
    [
        ("", "18 of 20", "31 of 32", "1"),
        ("gate=0.97", "17 of 20", "32 of 32", "0"),
        ("gate=0.96", "18 of 20", "32 of 32", "0"),
        ("tau=0.8", "20 of 20", "31 of 32", "1"),
        ("tau=0.75", None, "31 of 32", "1"),
        ("tau=0.6", None, "32 of 32", "0"),
        ("gate=0.8", "18 of 20", "31 of 32", "1"),
    ],
)
def test_published_counts(query, leaks, clean, alarms):
    page = FingerprintPage(query)
    says = shown(page)
    assert leaks in (None, says["leak_count"])
    assert (says["clean_count"], says["alarms"]) == (clean, alarms)
    correct = page.answer()["correct"]
    assert f"{int(correct.sel(regime='clean'))} of 32" == clean


def test_published_intervals_breakdown_and_area(page):
    says = shown(page)
    assert says["leak_interval"] == "0.70 to 0.97"
    assert says["clean_interval"] == "0.84 to 0.99"
    assert says["clean_excl_interval"] == "0.84 to 1.00"
    assert says["clean_novel_near_interval"] == "0.30 to 0.95"
    assert [says[f"{g}_count"] for g in ("clean_excl", "clean_novel_far", "clean_novel_near")] == [
        "20 of 20", "8 of 8", "3 of 4",
    ]  # fmt: skip
    assert says["area"] == "0.9953"
    assert [says[k] for k in ("hit", "miss", "alarms", "quiet")] == ["18", "2", "1", "31"]
    assert "the gate changes no decision" in says["gate_says"]
    assert says["area_ungated"] == "0.9953"
    assert says["errors"] == (
        "Missed: cat, ResNet-50; cat, ViT-B/16. False alarm: CIFAR-100 to CIFAR-10, ResNet-50."
    )


def test_a_setting_at_645_thousandths_fires_at_650_and_not_at_645(page, battery):
    leaks = battery["setting"].values[battery["regime"].values == "leak"]
    i = leaks.tolist().index("P_c100_vit_g2")
    scatter = figures_of(page)["scatter"]
    (points,) = [r for r in scatter.renderers if f"{page.live.key}/leak:glyph_renderer" in r.tags]
    assert points.data_source.data["best_unsup"][i] == 0.645
    for tau, fires in ((0.645, 0.0), (0.650, 1.0), (0.645, 0.0)):
        page.live.go(tau=tau)
        page.live.apply(scatter)
        assert points.data_source.data["fill_alpha"][i] == fires, tau


def test_the_contrast_catches_both_misses(page):
    pairs = page.data("contrast")
    assert pairs["difference"].round(3).agg(["min", "max"]).tolist() == [0.217, 0.739]
    assert pairs["difference"].is_monotonic_decreasing
    assert set(pairs["pair"].tail(2)) == {"c10_rn_3", "c10_vit_3"}  # the smallest, and still 0.2


# Every text and number is the core's


@pytest.mark.parametrize(
    ("query", "keep"),
    [
        ("backbone=vit_b16", lambda b: b["backbone"] == "vit_b16"),
        ("distance=far&gate=0.985", lambda b: b["distance"] != "near"),
        (
            "id_dataset=cifar10&distance=near&tau=0.8",
            lambda b: (b["id_dataset"] == "cifar10") & (b["distance"] != "far"),
        ),
    ],
)
def test_filters_answer_as_the_core_does_on_the_subset(battery, query, keep):
    page = FingerprintPage(query)
    subset = battery.isel(setting=np.flatnonzero(keep(battery)))
    score = leakviz.score_battery(subset, leakviz.Rule(page.state.gate, page.state.tau))
    assert page.answer().identical(score)
    says = shown(page)
    for regime in score["regime"].values:
        of, key = score.sel(regime=regime), str(regime).replace(" ", "_").replace("-", "_")
        assert says[f"{key}_count"] == f"{int(of['correct'])} of {int(of['n'])}"
        assert says[f"{key}_rate"] == ("none" if of["n"] == 0 else f"{float(of['rate']):.2f}")
    area = float(score["auroc"])
    assert says["area"] == ("undefined" if np.isnan(area) else f"{area:.4f}")
    now = page.live.at()
    drawn = sum(int(np.isfinite(now[f"{r}_x"].values).sum()) for r in ("leak", "excluded", "novel"))
    assert drawn == subset.sizes["setting"]


def test_one_and_none_are_said_in_plain_words(battery):
    assert shown(FingerprintPage())["alarm_word"] == "false alarm"
    assert shown(FingerprintPage("tau=0.6"))["alarm_word"] == "false alarms"
    # No far setting is left, so there is no rate to tell.
    far = shown(FingerprintPage("id_dataset=cifar10&distance=near"))
    assert [far[f"clean_novel_far_{what}"] for what in ("count", "rate", "interval")] == [
        "0 of 0",
        "none",
        "",
    ]
    nothing = page_answers(battery, np.zeros(52, dtype=bool)).isel(gate=0, tau=0, metric=0, chosen=0)
    assert nothing["leak_count"].item() == "0 of 0"
    assert nothing["area"].item() == "undefined"
    assert nothing["gate_says"].item() == "No setting is left by the filters."


def test_every_stop_of_the_table_is_the_core_s(page, every_stop):
    table = page.live.answers
    for name, regime in (("leak", "leak"), ("excluded", "clean-excl"), ("novel", "clean-novel")):
        of = page.battery["regime"].values == regime
        np.testing.assert_array_equal(table[f"{name}_fill"], every_stop["fired"].values[..., of])
        np.testing.assert_array_equal(table[f"{name}_ring"], every_stop["error"].values[..., of])
    counts = every_stop["correct"].sel(regime="leak").values
    assert table["leak_count"].values.tolist() == [[f"{k} of 20" for k in row] for row in counts]


def test_the_table_is_small(page):
    assert len(page.live.table) <= 1_000_000


# Figures


def figures_of(page, labels=LABELS):
    """Return the Bokeh figures of a page as the app gets them, by name."""
    root = page.__panel__().get_root()
    by_labels = {(f.xaxis[0].axis_label, f.yaxis[0].axis_label): f for f in root.select({"type": Plot})}
    return {name: by_labels[known] for name, known in labels.items()}


def test_every_target_is_on_the_page_and_fits(page):
    live, root = page.live, page.__panel__().get_root()
    tagged = {}
    for model in root.references():
        for tag in map(str, model.tags):
            tagged.setdefault(tag, []).append(model)
    for target, column, variable in live.columns:
        (source,) = tagged[f"{live.key}/{target}"]
        old, new = source.data[column], live.at()[variable].values
        assert np.asarray(old).size == new.size, (target, column)
    for target, attribute, variable in live.attributes:
        (model,) = tagged[f"{live.key}/{target}"]
        assert getattr(model, attribute) == live.at()[variable].item(), (target, attribute)
    for grip in live.grips:
        assert f"{live.key}/{grip.target}" in tagged, grip
    assert len({(c.target, c.column) for c in live.columns}) == len(live.columns)


def test_every_text_on_the_page_is_in_the_table(page):
    wanted = set()
    for pane in page.__panel__().select(lambda v: isinstance(getattr(v, "object", None), str)):
        wanted |= set(re.findall(rf'data-live-text="{page.live.key} (\w+)"', pane.object))
        for spec in re.findall(rf'data-live-attrs="{page.live.key} ([^"]*)"', pane.object):
            wanted |= {pair.split("=")[1] for pair in spec.split()}
    assert len(wanted) > 30
    assert wanted <= set(page.live.answers.data_vars)


def columns(glyph):
    """Return the columns that a glyph is drawn from."""
    specs = [getattr(glyph, name) for name in glyph.dataspecs()]
    return {field for spec in specs if isinstance(field := getattr(spec, "field", spec), str)}


def looks(figure):
    """Return everything of a figure that sliders move: what is drawn of each layer, and the lines."""
    layers = []
    for renderer in figure.renderers:
        if isinstance(renderer, GlyphRenderer):
            data = renderer.data_source.data
            drawn = {name: np.asarray(data[name]).tolist() for name in columns(renderer.glyph) & set(data)}
            assert drawn
            layers.append({"glyph": type(renderer.glyph).__name__, "visible": renderer.visible, **drawn})
    return layers, sorted((s.dimension, s.location) for s in figure.select({"type": Span}))


def assert_same_look(one, other):
    (layers, lines), (others, other_lines) = looks(one), looks(other)
    assert lines == other_lines
    for i, (layer, twin) in enumerate(zip(layers, others, strict=True)):
        assert set(layer) == set(twin)
        if layer["glyph"] == "Patch":  # an outline begins anywhere
            layer, twin = ({"corners": sorted(zip(of["x"], of["y"], strict=True))} for of in (layer, twin))
        for key in layer:
            np.testing.assert_array_equal(
                np.array(layer[key]), np.array(twin[key]), err_msg=f"layer {i}: {key}"
            )


@pytest.fixture(scope="module")
def drawn_at_the_default():
    """Let a page at the default be the first of the process, whose figures the others copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stencil, "_DRAWN", {})
        figures_of(FingerprintPage())
        yield


@pytest.mark.parametrize(
    "query",
    [
        "gate=0.96&tau=0.8",
        "gate=1&tau=1&hidden=leak,novel&metric=specificity",
        "gate=0.8&tau=0.2&chosen=P_c10_rn_3",
        "tau=0.645&backbone=vit_b16",
        "gate=0.99&distance=near&id_dataset=cifar10&chosen=N_excl_c10_vit_0&metric=sensitivity",
    ],
)
def test_a_figure_moved_to_a_stop_is_the_figure_drawn_there(drawn_at_the_default, query):
    page = FingerprintPage(query)
    moved = figures_of(page)  # copies, moved by `Live.apply`
    for name in FIGURES:
        assert_same_look(moved[name], hv.renderer("bokeh").get_plot(page.figure(name)).state)


def test_a_first_visitor_s_state_is_not_the_next_one_s(monkeypatch):
    monkeypatch.setattr(stencil, "_DRAWN", {})
    figures_of(FingerprintPage("gate=1&tau=0.2&hidden=leak&backbone=vit_b16&metric=specificity"))
    page = FingerprintPage()
    moved = figures_of(page)
    for name in FIGURES:
        assert_same_look(moved[name], hv.renderer("bokeh").get_plot(page.figure(name)).state)


def test_two_pages_share_no_model():
    one, other = (set(FingerprintPage().__panel__().get_root().references()) for _ in range(2))
    assert one.isdisjoint(other)
    assert {m.id for m in one}.isdisjoint({m.id for m in other})


def test_the_box_lies_where_the_rule_is():
    page = FingerprintPage("gate=0.97&tau=0.5")
    (box,) = figures_of(page)["scatter"].select({"type": BoxAnnotation, "tags": [f"{page.live.key}/edges"]})
    assert (box.left, box.top) == (0.97, 0.5)


# Links


def test_a_link_that_cannot_be_shown_says_so_and_shows_the_nearest():
    page = FingerprintPage("?gate=abc&tau=0.6513&backbone=<b>x</b>&chosen=nobody")
    assert (page.state.gate, page.state.tau, page.state.backbone, page.state.chosen) == (
        0.95,
        0.65,
        "all",
        "",
    )
    heading = page.__panel__()[0].object
    assert heading.count('role="alert"') == 4
    assert "The link asks for tau 0.6513; the nearest stop, 0.65, is shown." in heading
    assert "&lt;b&gt;x&lt;/b&gt;" in heading
    assert "<b>x" not in heading


def test_the_hand_and_the_state_follow_each_other(page):
    page.state.param.update(gate=0.9, tau=0.5, hidden=["novel"], metric="specificity", chosen="P_c10_rn_3")
    assert (page.live.value("gate"), page.live.value("tau"), page.live.value("show_novel")) == (0.9, 0.5, 0)
    page.live.go(gate=0.96, show_novel=1, chosen="")
    state = page.state
    assert (state.gate, state.tau, state.hidden, state.metric, state.chosen) == (
        0.96,
        0.5,
        [],
        "specificity",
        "",
    )
    assert FingerprintPage(state.query()).live.state == page.live.state


# Files


@pytest.mark.parametrize("name", FIGURES)
def test_an_svg_holds_its_labels_as_text(page, name):
    svg = draw(page, name)
    for label in filter(None, LABELS[name]):
        assert f">{label}</text>" in svg


def draw(page, name):
    return export.draw(lambda backend: page.figure(name, backend), "svg", size=(160, 110)).read().decode()


def test_hidden_regimes_are_in_no_export():
    everything = draw(FingerprintPage(), "scatter")
    assert theme.REGIME_COLOR["clean-excl"].lower() in everything
    assert ">cat, ResNet-50</text>" in everything
    page = FingerprintPage("hidden=excluded,leak")
    without = draw(page, "scatter")
    assert theme.REGIME_COLOR["clean-excl"].lower() not in without
    assert ">cat, ResNet-50</text>" not in without
    assert f">{theme.REGIME_LABEL['clean-excl']}</text>" not in without
    assert theme.REGIME_COLOR["clean-novel"].lower() in without
    assert set(page.data("scatter")["regime"]) == {"clean-novel"}


def test_csv_is_the_core_s(battery, every_stop):
    page = FingerprintPage("gate=0.955&tau=0.7&backbone=vit_b16")
    subset = battery.isel(setting=np.flatnonzero(battery["backbone"] == "vit_b16"))
    read = {
        n: pd.read_csv(io.StringIO(export.table(page.data(n)).read()), keep_default_na=False) for n in FIGURES
    }
    scatter = read["scatter"].set_index("setting")
    fires = leakviz.fired(subset, leakviz.Rule("0.955", "0.7"))
    assert scatter["fires"].to_dict() == dict(
        zip(fires["setting"].values.tolist(), fires.values.tolist(), strict=True)
    )
    for column in ("oracle_lda", "maha", "knn", "best_unsup"):
        assert scatter[column].tolist() == subset[column].values.tolist()
    sweep = leakviz.sweep_rule(subset, gates=every_stop["gate"], taus=every_stop["tau"])
    at = read["map"].set_index(["gate", "tau"])["balanced_accuracy"]
    np.testing.assert_array_equal(at.to_numpy(), sweep["balanced_accuracy"].values.ravel())
    rates = read["rates"]
    low = rates[rates["rate_of"] == "sensitivity"]["low"]
    np.testing.assert_array_equal(low, sweep["low"].sel(gate=0.955, regime="leak"))
    pairs = leakviz.contrast(subset).sort_values("difference", ascending=False)
    assert read["contrast"]["difference"].tolist() == pairs["difference"].tolist()


def test_an_unknown_figure_is_refused(page):
    with pytest.raises(
        ValueError, match="no figure is called 'pie'; there are scatter, map, rates and contrast"
    ):
        page.figure("pie")
