"""The fingerprint page with a choice of battery, without a browser: alpha, detectors, the detail of a setting."""

import gc
import weakref

import holoviews as hv
import numpy as np
import panel as pn
import pytest
from test_fingerprint_page import assert_same_look, shown

import leakviz
from dashboards import batteries, export, stencil
from dashboards.batteries import Battery
from dashboards.figures import fingerprint as figures
from dashboards.fingerprint import FingerprintPage
from dashboards.live import Live, _product
from dashboards.shelf import Shelf
from leakviz.detector_sweep import use_detector

GROUPS = {
    "leak": "leak",
    "clean_excl": "clean-excl",
    "clean_retrained": "clean-retrained",
    "clean_novel_far": "clean-novel far",
    "clean_novel_near": "clean-novel near",
    "clean": "clean",
}


@pytest.fixture(scope="module")
def computed():
    return batteries.computed().dataset


@pytest.fixture(scope="module")
def page():
    """Return a page that tests move, but leave at the computed battery."""
    return FingerprintPage("battery=computed")


@pytest.fixture(scope="module")
def framed():
    """Return a page that tests show several batteries on, the published one between them.

    As before a browser has painted it: what is not seen first is not there.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Live, "when_seen", lambda live, build: None)
        page = FingerprintPage()
        page.__panel__()
        yield page


# Every number is the core's


@pytest.mark.parametrize(
    ("query", "keep"),
    [
        ("", lambda b: b["size"] >= 0),
        ("tau=0.72&alpha=0&covariance=tied&backbone=vit-fashion", lambda b: b["backbone"] == "vit-fashion"),
        (
            "gate=0.9&tau=0.5&alpha=1&detector=mahalanobis&size=2&distance=far&id_dataset=mnist",
            lambda b: (b["id_dataset"] == "mnist") & np.isin(b["size"], [0, 2]) & (b["distance"] != "near"),
        ),
        ("gate=0.99&tau=0.61&detector=knn&alpha=0.05", lambda b: b["size"] >= 0),
    ],
)
def test_a_stop_answers_as_the_core_does(computed, query, keep):
    page = FingerprintPage(f"battery=computed&{query}")
    s = page.state
    assert page.state.told == []
    alpha = s.alpha if s.alpha == "ledoit-wolf" else float(s.alpha)
    under = use_detector(computed, alpha=alpha, covariance=s.covariance, detector=s.detector)
    kept = np.flatnonzero(keep(computed).values)
    subset, rule = under.isel(setting=kept), leakviz.Rule(s.gate, s.tau)
    score, fires = leakviz.score_battery(subset, rule), leakviz.fired(subset, rule)
    assert page.answer().identical(score)
    says, now = shown(page), page.live.at()
    for key, group in GROUPS.items():
        if group in score["regime"].values:
            of = score.sel(regime=group)
            assert says[f"{key}_count"] == f"{int(of['correct'])} of {int(of['n'])}"
            if of["n"] > 0:
                assert says[f"{key}_interval"] == f"{float(of['low']):.2f} to {float(of['high']):.2f}"
    assert says["area"] == f"{float(score['auroc']):.4f}"
    assert says["area_interval"] == f"{float(score['auroc_low']):.3f} to {float(score['auroc_high']):.3f}"
    assert says["area_ungated"] == f"{float(score['auroc_ungated']):.4f}"
    alone = leakviz.score_battery(subset, leakviz.Rule(0, s.tau))["fired_count"]
    assert says["leak_ungated_says"].split()[0] == str(int(alone.sel(regime="leak")))
    assert says["clean_ungated_says"].split()[0] == str(int(alone.sel(regime="clean")))

    columns = {(c.target, c.column): c.variable for c in page.live.columns}
    unsup = subset["best_unsup"]
    fired_at = dict(zip(subset["setting"].values.tolist(), fires.values.tolist(), strict=True))
    for name, regime in figures.regimes_of(computed).items():
        settings = computed["setting"].values[computed["regime"].values == regime]
        here = np.isin(settings, subset["setting"].values)
        own = settings[here].tolist()
        drawn = {
            c: _product(now, columns[f"{name}:source", c])[here] for c in ("best_unsup", "fill_alpha", "maha")
        }
        np.testing.assert_array_equal(drawn["fill_alpha"], [fired_at[i] for i in own])
        np.testing.assert_allclose(drawn["best_unsup"], unsup.sel(setting=own).mean("seed"), atol=1e-7)
        np.testing.assert_allclose(drawn["maha"], subset["maha"].sel(setting=own).mean("seed"), atol=1e-7)
        np.testing.assert_array_equal(np.isfinite(now[f"{name}_y"].values), here)
        whisker = [_product(now, columns[f"{name}_tall:source", end])[here] for end in ("y0", "y1")]
        np.testing.assert_allclose(whisker[0], unsup.sel(setting=own).min("seed"), atol=1e-7)
        np.testing.assert_allclose(whisker[1], unsup.sel(setting=own).max("seed"), atol=1e-7)
        ring = sum(
            _product(now, columns[f"{layer}:source", "line_alpha"]) for layer in figures.rings(now, name)
        )
        wrong = [fired_at[i] != (regime == "leak") for i in own]
        np.testing.assert_array_equal(ring[here], wrong)

    pairs = leakviz.contrast(subset)
    assert f"in {int((pairs['difference'] > 0).sum())} of {len(pairs)} pairs" in says["contrast_says"]
    assert (
        f"(difference in best-unsup {pairs['difference'].min():.2f} to {pairs['difference'].max():.2f})"
        in says["contrast_says"]
    )
    again = pairs.dropna(subset="retrained") if "retrained" in pairs else pairs[:0]
    if len(again):
        above = int((again["excluded"] > again["retrained"]).sum())
        assert f"Excluded lies above retrained in {above} of {len(again)}" in says["contrast_says"]


def test_the_map_holds_every_second_tau_at_every_alpha(page, computed):
    page.live.go(alpha="0.1", metric="sensitivity")
    sweep = leakviz.sweep_rule(
        use_detector(computed, alpha=0.1), gates=page.state.stops["gate"], taus=page.state.stops["tau"][::2]
    )
    image = page.live.at()["heat"].values.reshape(41, 21)
    np.testing.assert_allclose(image, sweep["sensitivity"].values.T, atol=1e-7)
    page.live.go(alpha="ledoit-wolf", metric="balanced")


def test_the_table_is_small_under_every_detector(page):
    for covariance, detector in (("one-class", "max"), ("tied", "mahalanobis")):
        page.state.param.update(covariance=covariance, detector=detector)
        assert len(page.live.table) <= 1_000_000
        stops = page.live.answers["alpha"].values.tolist()
        place = stops.index("ledoit-wolf")
        middle = float(page.battery["ledoit_wolf"].sel(covariance=covariance).median())
        assert float(stops[place - 1]) < middle < float(stops[place + 1])  # where it is marked
    page.state.param.update(covariance="one-class", detector="max")


def test_a_chosen_setting_is_told_with_its_partner_at_this_alpha(page, computed):
    page.state.param.update(chosen="N_retrain_vit-mnist_2", alpha="0.5")
    at = use_detector(computed, alpha=0.5).mean("seed")
    says = shown(page)
    assert says["detail"].startswith("digit 2, ViT on MNIST (backbone retrained without the class,")
    own, other = "N_retrain_vit-mnist_2", "P_vit-mnist_2"
    assert says["detail_maha"] == f"{at['maha'].sel(setting=own).item():.3f}"
    assert says["detail_unsup"] == f"{at['best_unsup'].sel(setting=own).item():.3f}"
    assert says["detail_partner"] == ". Its partner, leaked: best-unsup"
    assert says["detail_other"] == f"{at['best_unsup'].sel(setting=other).item():.3f}"
    page.state.param.update(chosen="", alpha="ledoit-wolf")


def test_the_cautions_hold_computed_numbers(page, computed):
    told = " ".join(page._cautions().object.split())
    score = leakviz.score_battery(computed, leakviz.Rule())
    leaks, clean = score.sel(regime="leak"), score.sel(regime="clean")
    assert f"{int(leaks['correct'])} of {int(leaks['n'])} leaks fire" in told
    assert f"and {int(clean['fired_count'])} of {int(clean['n'])} clean settings" in told
    assert "the average of Mahalanobis is 0.5000 on every backbone and seed" in told
    assert "excluded lies above retrained in" in told


def test_rows_and_legend_have_the_same_words(page):
    rows, legend = page._read_outs(), page._legend()
    for regime in ("leak", "excluded", "retrained"):
        assert f"{regime}, " in rows
        assert f"</svg>{regime}</button>" in legend
    assert "far source, silent" in rows
    assert "near source, silent" in rows
    assert "</svg>other source</button>" in legend


# Figures, links, batteries


def test_every_target_is_on_the_page_and_fits(page):
    root = page.__panel__().get_root()
    lives = [page.live, page.detail.live]
    tagged = {}
    for model in root.references():
        for tag in map(str, model.tags):
            tagged.setdefault(tag, []).append(model)
    for live in lives:
        for target, column, variable in live.columns:
            (source,) = tagged[f"{live.key}/{target}"]
            assert np.asarray(source.data[column]).size == _product(live.at(), variable).size, (
                target,
                column,
            )
        for target, attribute, _ in live.attributes:
            (model,) = tagged[f"{live.key}/{target}"]
            assert attribute in model.properties(), (target, attribute)
        for grip in live.grips:
            assert f"{live.key}/{grip.target}" in tagged, grip
        assert len({(c.target, c.column) for c in live.columns}) == len(live.columns)


LABELS = {
    "scatter": ("oracle LDA, AUROC with labels", "best-unsup, AUROC without labels"),
    "map": ("oracle gate", "tau"),
    "area": ("alpha, steps of the slider", "AUROC"),
    "contrast": ("", "best-unsup, AUROC"),
}


def test_a_figure_moved_to_a_stop_is_the_figure_drawn_there_and_goes_with_its_page(page):
    page.__panel__()  # the first of the process, whose figures the others copy
    other = FingerprintPage(
        "battery=computed&alpha=0.2&tau=0.8&seeds=hidden&hidden=retrained&covariance=tied&size=1"
    )
    panes = [pane.object for pane in other.__panel__().select(pn.pane.Bokeh)]
    moved = {(figure.xaxis[0].axis_label, figure.yaxis[0].axis_label): figure for figure in panes}
    for name in ("scatter", "area"):
        assert_same_look(moved[LABELS[name]], hv.renderer("bokeh").get_plot(other.figure(name)).state)
    other.state.chosen = "P_vit-mnist_2"
    alive = [weakref.ref(part) for part in (other, other.live, other.detail, other.state)]
    del other, moved, panes
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4


@pytest.mark.parametrize("name", ["scatter", "area", "contrast"])
def test_figures_and_data_leave_the_page(page, name):
    svg = export.draw(lambda backend: page.figure(name, backend), "svg", size=(160, 110)).read().decode()
    for label in filter(None, LABELS[name]):
        assert f">{label}</text>" in svg
    data = page.data(name)
    assert {"covariance", "detector"} <= set(data)
    assert len(data) == {"scatter": 268, "area": 21, "contrast": 120}[name]


def test_a_link_names_the_stop_that_it_means():
    page = FingerprintPage("battery=computed&alpha=0.011&gate=0.955&tau=0.65&detector=both&hidden=retrained")
    s = page.state
    assert (s.alpha, s.detector, s.hidden) == ("0.01", "max", ["retrained"])
    assert any("alpha 0.011; the nearest stop, 0.01, is shown" in told for told in page.state.told)
    assert any("gate 0.955; the nearest stop" in told for told in page.state.told)
    assert any("detector “both”, which is not here" in told for told in page.state.told)
    assert FingerprintPage(s.query()).live.state == page.live.state
    assert "is no number; Ledoit-Wolf is shown" in FingerprintPage("battery=computed&alpha=x").state.told[0]
    lost = FingerprintPage("battery=own:7&alpha=0.1")
    assert lost.state.battery == "published"
    assert "own:7" in lost.state.told[0]
    assert len(lost.state.told) == 1  # alpha is a value of the battery that is not here


def test_another_battery_brings_its_own_hand_and_the_frame_stays(framed):
    page, root = framed, framed.__panel__()
    page.state.read("gate=0.955&backbone=vit_b16&chosen=P_c10_vit_3&tau=0.7")
    kept = [root[0], root[1], page._menus["battery"]]
    published = page.live
    page.state.battery = "computed"
    s = page.state
    assert (s.backbone, s.chosen, s.tau) == ("all", "", 0.7)
    assert s.gate in s.stops["gate"]
    assert page.live is not published
    assert [root[0], root[1], page._menus["battery"]] == kept
    assert "alpha <b>" in root[1].object
    assert [m.label for m in page._parts["extra"]] == ["covariance", "detector", "OOD group"]
    assert page.subject == "Computed battery, 268 settings"
    page._menus["covariance"].value = "tied"  # as a hand does
    assert s.covariance == "tied"
    page.state.read("battery=published&gate=0.96")  # as Back does
    assert (s.battery, s.covariance, s.gate) == ("published", "one-class", 0.96)
    assert list(page._parts["extra"]) == []
    assert shown(page)["alarms"] == "0"
    page.live.go(gate=0.95)
    assert page.state.gate == 0.95
    assert shown(page)["leak_count"] == "18 of 20"


def test_a_sessions_own_battery_stays_in_it(framed):
    page, shelf = framed, framed.shelf
    page.state.read("")
    drawn = set(stencil._DRAWN)
    dataset = batteries.published().dataset
    alone = dataset.isel(setting=np.flatnonzero(dataset["regime"] == "clean-novel"))
    shelf.batteries = [Battery("own:2", "<b>mine</b>.nc", "mine.nc, loaded here", alone)]
    menu = page._menus["battery"]
    assert list(menu.options.items())[-1] == ("<b>mine</b>.nc", "own:2")
    menu.value = "own:2"
    assert page.subject == "<b>mine</b>.nc, 12 settings"
    assert (shown(page)["leak_count"], shown(page)["clean_n"]) == ("0 of 0", "12")
    assert page.figure_names() == ("scatter",)  # no pair, and no rate of leaks
    assert set(stencil._DRAWN) == drawn  # no figure of it is kept for others
    assert "own:2" not in FingerprintPage().state.param["battery"].objects
    gone = weakref.ref(shelf.batteries[0])
    shelf.batteries = []
    assert page.state.battery == "published"
    assert shown(page)["leak_count"] == "18 of 20"
    gc.collect()
    assert gone() is None


def test_a_battery_of_ones_own_is_answered_as_the_core_does():
    published = batteries.published().dataset
    members = [f"{kind}_c10_rn_{i}" for kind in ("P", "N_excl") for i in range(3)]
    mine = published.sel(setting=members).drop_vars("fired_published")
    page = FingerprintPage("battery=own:1", Shelf(batteries=[Battery("own:1", "mine", "mine.nc", mine)]))
    assert page.state.told == []
    assert (shown(page)["leak_count"], shown(page)["clean_n"]) == ("3 of 3", "3")
    assert page.answer().identical(leakviz.score_battery(mine, leakviz.Rule()))
    assert page.figure_names() == ("scatter", "map", "rates", "contrast")
    assert "in 3 pairs" in page._contrast_says()
    assert "cat" not in page._contrast_says()


def test_a_battery_of_ones_own_may_have_alpha_too(computed):
    mine = computed.isel(setting=np.flatnonzero(computed["backbone"] == "vit-mnist"), alpha=[2, 10, 20])
    mine = mine.sel(covariance=["one-class"]).drop_vars("size").assign_attrs(backbones="{}")
    page = FingerprintPage(
        "battery=own:3&tau=0.7", Shelf(batteries=[Battery("own:3", "mine", "mine.nc", mine)])
    )
    middle = float(mine["ledoit_wolf"].median())  # that of Ledoit and Wolf stands among the others
    placed = sorted([(3e-5, "0.00003"), (0.001, "0.001"), (0.03, "0.03"), (middle, "ledoit-wolf")])
    assert page.state.param["alpha"].objects == [name for _, name in placed]
    assert page.state.param["covariance"].objects == ["one-class"]
    assert page.detail is None
    page.state.alpha = "0.03"
    score = leakviz.score_battery(use_detector(mine, alpha=0.03), leakviz.Rule(tau=0.7))
    assert shown(page)["leak_count"] == f"{int(score['correct'].sel(regime='leak'))} of 30"
    assert "gold standard" in page._cautions().object


# The detail of a setting


@pytest.mark.parametrize("setting", ["P_vit-fashion_Shirt", "N_excl_vit-fashion_Shirt"])
def test_the_detail_follows_what_is_chosen(page, computed, setting):
    page.__panel__()
    page.state.param.update(chosen=setting, alpha="0.1", covariance="tied")
    at = use_detector(computed, alpha=0.1, covariance="tied").sel(setting=setting)
    view, now = page.detail, page.detail.live.at()
    assert view.__panel__().visible
    for name in ("oracle_lda", "maha", "knn", "best_unsup", "isolation_forest", "one_class_svm", "lof"):
        cells = [now[f"{name}_{end}"].item() for end in (0, 1, 2, "mean")]
        assert cells == [*(f"{v:.3f}" for v in at[name].values), f"{at[name].values.mean():.3f}"], name
    assert float(now["maha_says"].item()[:5]) == pytest.approx(at["maha"].values[0], abs=2e-3)
    assert f"{at['neighbourhood_leakage'].item():.3f}" in now["overlap_says"].item()
    assert now["whitening"].item() == f"?page=whitening&setting={setting}"
    assert now["title"].item().startswith("Shirt, ViT on Fashion-MNIST: ")
    assert [len(view.data(name)) for name in ("maha", "knn", "oracle", "roc")] == [48, 48, 48, 3 * 201]
    page.state.param.update(chosen="", alpha="ledoit-wolf", covariance="one-class")
    assert not view.__panel__().visible
    assert view.detail is None


def test_figures_of_a_detail_leave_the_page(page):
    page.state.chosen = "P_vit-fashion_Shirt"
    for name, label in (("maha", "squared distance"), ("roc", "share of OOD rows flagged")):
        svg = export.draw(lambda backend, n=name: page.detail.figure(n, backend), "svg", size=(100, 75))
        assert f">{label}</text>" in svg.read().decode()
    page.state.chosen = ""


def test_the_published_battery_says_that_it_holds_numbers_only():
    page = FingerprintPage("chosen=P_c10_rn_3")
    assert page.detail is None
    assert "no scores to draw" in shown(page)["detail_note"]
    assert shown(FingerprintPage())["detail_note"] == ""


def test_a_filter_that_leaves_a_group_empty_leaves_its_row():
    page = FingerprintPage("?battery=computed")
    before = set(page.live.answers)
    page.state.size = "2"  # no group of two was left out and trained without
    assert set(page.live.answers) == before
    assert page.live.at()["clean_retrained_count"].item() == "0 of 0"
    assert page.live.at()["clean_excl_count"].item().endswith(" of 40")
