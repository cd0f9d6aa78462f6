"""The whitening page without a browser: its table is the core's, its figures and texts are its table's."""

import time
from types import SimpleNamespace

import holoviews as hv
import numpy as np
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

import leakviz
from dashboards import batteries, export
from dashboards import whitening_answers as answers
from dashboards.figures import whitening as figures
from dashboards.live import stop_of
from dashboards.markup import link_note
from dashboards.shelf import Audit, Shelf
from dashboards.whitening import LESSONS, WhiteningPage, parts_of
from leakviz.detectors import detector_auroc
from leakviz.moments import fit_statistics
from leakviz.whitening import ALPHAS

LEAKED, EXCLUDED = "?ood=Sneaker&fit=all", "?ood=Coat"


def say(page, variable):
    return str(page.live.at()[variable].item())


def sentence(page):
    return "".join(say(page, f"say_{i}") for i in range(9))


def embeddings(n=400, size=12, *, name="own:0123abcd", seed=0, without=True, title="emb.npz"):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 4
    fit, rows = (rng.normal(size=(m, size)) + 3 * np.eye(size)[np.arange(m) % 4] for m in (n, 200))
    kept = np.arange(200) % 4 != 3
    return Audit(
        name=name,
        title=title,
        fit=fit_statistics(fit, labels=labels),
        id_test=rows[kept],
        ood_test=rows[~kept],
        ood_name="the <b>last</b> class",
        without=fit_statistics(fit[labels != 3], labels=labels[labels != 3]) if without else None,
    )


@pytest.fixture(scope="module")
def page():
    return WhiteningPage()


@pytest.fixture(scope="module")
def built():
    page = WhiteningPage()
    page.__panel__()
    return page


@pytest.fixture(scope="module")
def root(built):
    return built.__panel__().get_root()


# ---- the table is the core's


@pytest.mark.parametrize(
    "query",
    [
        LEAKED,
        "?features=vit-fashion&ood=small-digits&fit=all",
        f"{EXCLUDED}&rows=600&covariance=tied",
    ],
)
def test_the_table_is_an_independent_answer_at_sampled_stops(query):
    page = WhiteningPage(query)
    case = page.case
    table = page.live.answers
    rng = np.random.default_rng(3)
    for stop in [table.attrs["own"], *rng.choice(np.arange(1, table.sizes["alpha"]), 2, replace=False)]:
        alpha = table["value"].values[stop]
        page.state.alpha = "ledoit-wolf" if stop == table.attrs["own"] else answers.number(alpha)
        assert page.live.state["alpha"] == stop
        detector = leakviz.Mahalanobis.from_statistics(case.fit, shrinkage=alpha, covariance=case.covariance)
        own, other = (-detector.score_samples(rows) for rows in (case.id_test, case.ood_test))
        now = page.live.at()
        auroc = detector_auroc(-own, -other)
        assert now["now_y"].item() == pytest.approx(auroc, abs=1e-12)
        assert say(page, "auroc_says") == f"{auroc:.3f}"
        low, high = leakviz.auroc_interval(
            np.concatenate([own, other]), np.repeat([False, True], [len(own), len(other)])
        )
        assert say(page, "auroc_interval") == f"{low:.3f} to {high:.3f}"
        for kind, distances in (("id", own), ("ood", other)):
            edges = np.append(now["bin_left"].values, now["bin_right"].values[-1])
            counts, _ = np.histogram(np.clip(distances, edges[0], edges[-1]), edges)
            # A distance on an edge may fall to either side of it.
            assert np.abs(now[f"{kind}_share"].values * len(distances) - counts).sum() <= 4
        assert float(page.answer().auroc[0]) == pytest.approx(auroc, abs=1e-12)


def test_budgets_and_their_words_are_the_definition(page):
    case, now = page.case, page.live.at()
    alpha = page.alpha
    assert alpha == case.fit.ledoit_wolf()
    spread = np.sqrt(np.diag(case.fit.scatter) / case.fit.count)
    kept = spread > 0
    s = case.fit.scatter[np.ix_(kept, kept)] / case.fit.count / np.outer(spread[kept], spread[kept])
    values, vectors = np.linalg.eigh(s)
    values, vectors = values[::-1], vectors[:, ::-1]
    delta = ((case.ood_test.astype(float).mean(axis=0) - case.fit.mean)[kept] / spread[kept]) @ vectors
    mass = delta**2 / np.sum(delta**2)
    shrunk = (1 - alpha) * values + alpha * np.trace(s) / len(values)
    budget = mass / shrunk / np.sum(mass / shrunk)
    size, tenth = len(values), round(len(values) / 10)
    for name, expected in {
        "eigenvalue": values,
        "shrunk": shrunk,
        "mass": mass,
        "budget": budget,
        "mass_sum": np.cumsum(mass),
        "budget_sum": np.cumsum(budget),
    }.items():
        np.testing.assert_allclose(now[name].values[:size], expected, rtol=2e-3, atol=1e-9, err_msg=name)
        assert np.isnan(now[name].values[size:]).all()
    bottom = budget[-tenth:].sum()
    assert say(page, "bottom_budget_says") == say(page, "say_3") == answers.percent(bottom)
    assert say(page, "top_signal_mass_says") == answers.percent(mass[:tenth].sum())
    assert say(page, "say_5") == answers.percent(mass[-tenth:].sum())
    assert say(page, "excess_says") == answers.points(bottom - mass[-tenth:].sum())
    assert say(page, "condition_number_says") == answers.condition(shrunk[0] / shrunk[-1])
    assert say(page, "directions_say").startswith(f"{size:,} directions, {tenth} in a tenth")
    for name in ("top_signal_mass", "bottom_budget", "excess", "condition_number", "auroc"):
        assert " to " in say(page, f"{name}_interval"), name


def test_the_best_alpha_is_marked_and_named_unavailable(page):
    table = page.live.answers
    best = table.attrs["best"]
    areas = table["now_y"].values[:, 0]
    assert areas[best] == np.nanmax(areas)
    assert say(page, "best_at") == answers.number(table["value"].values[best])
    words = page._heading() + page._numbers() + page._marked()
    assert words.count("not available without labels") == 3
    (slider,) = page.live.sliders
    assert [stop_of(table, "alpha", at) for at, _ in slider.marks] == [table.attrs["own"], best]
    page.state.alpha = answers.number(table["value"].values[best])
    assert sentence(page).endswith(", the best.")
    page.state.alpha = "ledoit-wolf"


# ---- the figures


def test_every_target_exists_once_and_takes_rows_of_its_length(built, root):
    tagged = {}
    for model in root.references():
        for tag in model.tags:
            if isinstance(tag, str) and tag.startswith(built.live.key):
                assert tag not in tagged, tag
                tagged[tag.split("/", 1)[1]] = model
    now = built.live.at()
    for target, column, variable in built.live.columns:
        assert len(tagged[target].data[column]) == now[variable].size, (target, column)
    for target, attribute, variable in built.live.attributes:
        shown = getattr(tagged[target], attribute)
        assert getattr(shown, "value", shown) == now[variable].item(), (target, attribute)
    assert len(built.live.table) < 400_000


@pytest.mark.parametrize("name", ["auroc", "histograms", "spectrum", "budget"])
def test_what_the_browser_shows_is_the_figure_drawn_at_that_stop(name):
    moved, fresh = WhiteningPage(EXCLUDED), WhiteningPage(f"{LEAKED}&alpha=0.3&rows=300")
    layers = [
        *("band", "curve", "now", "ledoit_wolf", "best", "id", "ood"),
        *("eigenvalue", "shrunk", "mass", "budget", "mass_sum", "budget_sum"),
    ]
    hooks = {layer: [moved.live.tag(layer, "source", "glyph")] for layer in layers}
    hooks |= {end: [moved.live.tag(f"{name}_{end}", "source")] for end in ("top", "bottom")}
    hooks["figure"] = [moved.live.tag(name, "x_range", "y_range")]
    bokeh = hv.renderer("bokeh")
    drawn = bokeh.get_plot(moved.figure(name, hooks=hooks)).state
    moved.state.read(f"{LEAKED}&alpha=0.3&rows=300")
    moved.live.apply(drawn)
    again = bokeh.get_plot(fresh.figure(name, hooks=hooks)).state
    compared = 0
    for one in drawn.references():
        for tag in one.tags:
            if not isinstance(tag, str) or not tag.startswith(moved.live.key):
                continue
            two = next(m for m in again.references() if tag in m.tags)
            compared += 1
            if tag.endswith(":source"):
                for column, values in two.data.items():
                    shown = np.asarray(one.data[column], dtype=float)
                    seen = ~np.isnan(np.asarray(shown))  # HoloViews drops what is nan throughout
                    expected = np.asarray(values, dtype=float)
                    expected = expected[~np.isnan(expected)]
                    np.testing.assert_allclose(shown[seen], expected, err_msg=f"{tag} {column}")
            elif tag.endswith("_range"):
                assert (one.start, one.end) == pytest.approx((two.start, two.end)), tag
            elif tag.endswith(":glyph"):
                for ink in ("line_color", "fill_color"):
                    if ink in one.properties() and getattr(one, ink.replace("color", "alpha")):
                        assert getattr(one, ink) == getattr(two, ink), (tag, ink)
    assert compared > 4


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_files(page, name):
    if name in ("auroc", "histograms"):
        drawing = export.draw(lambda backend: page.figure(name, backend), "svg", size=(110, 75)).read()
        assert b"<svg" in drawing
    frame = page.data(name)
    assert len(frame) > 10
    assert set(frame["fit_set"]) == {page.case.fit_name}


# ---- choosing


def test_choosing_patches_and_keeps_the_figures(built, root):
    def drawn():
        return {m.id for m in root.references() if type(m).__name__ == "figure"}

    before = drawn()
    assert len(before) == len(figures.FIGURES)
    built._menus["ood"].value = "Sneaker"
    built._menus["fit"].value = "all"
    assert built.case.regime == "leak"
    assert "below 0.5" in say(built, "leak_says")
    assert say(built, "color") == "#D55E00"
    built._menus["features"].value = "vit-mnist"  # it has other classes and fewer directions
    assert built.case.id_test.shape[1] == 64
    assert built.state.ood in built.state.param["ood"].objects
    assert built._menus["ood"].value == built.state.ood
    assert drawn() == before
    built.state.read("")


def test_classes_are_chosen_one_by_one(built):
    built.state.read("?ood=Sneaker&fit=chosen")
    assert built._ticks.visible
    assert built.case.regime == "leak"  # Sneaker is ticked at first
    built._boxes.value = ["Coat", "Sandal"]
    assert built.case.fit_name.startswith("2 of 10 classes, ")
    assert built.case.regime == "clean-excl"
    n = batteries.backbone("resnet-fashion")
    ids = [n.classes.index(c) for c in ("Coat", "Sandal")]
    assert len(built.case.id_test) == np.isin(n.kinds, ids).sum()
    shown = built.case
    built._boxes.value = ["Sneaker"]
    assert "needs a class that is not called OOD" in built._alert.object
    assert built.case is shown
    built._boxes.value = ["Coat", "Sandal", "Sneaker"]
    assert built._alert.object == ""
    assert WhiteningPage("?" + built.state.query()).case.fit_name == built.case.fit_name
    built.state.read("")


def test_ledoit_wolfs_alpha_goes_with_the_fit_set(page):
    one = page.alpha
    page.state.rows = "150"
    assert page.state.alpha == "ledoit-wolf"
    assert page.alpha > 3 * one  # few rows need more shrinkage
    assert say(page, "condition_number_interval") == "too few rows"
    page.state.alpha = "0.3"
    page.state.rows = "all"
    assert page.alpha == 0.3
    page.state.alpha = "ledoit-wolf"
    assert page.alpha == one


def test_lessons_lead_where_they_say(built):
    for label, wanted in LESSONS:
        built._learn(wanted)
        assert all(getattr(built.state, name) == value for name, value in wanted.items()), label
    built.state.read("")
    shown = {label.split(",")[0].split(":")[0]: WhiteningPage(query_of(w)) for label, w in LESSONS}
    euclid = {k: p.live.answers["now_y"].values[-1, 0] for k, p in shown.items()}
    full = {k: p.live.answers["now_y"].values[0, 0] for k, p in shown.items()}
    best = {k: p.live.answers["now_y"].values[:, 0].max() for k, p in shown.items()}
    assert euclid["8 × 8 digits"] < full["8 × 8 digits"] - 0.3  # shrinking hurts
    assert full["8 × 8 digits"] > best["8 × 8 digits"] - 0.005
    assert 0.005 < best["Coat"] - full["Coat"] < 0.15  # it helps a little
    assert shown["Sneaker"].live.at()["now_y"].item() < 0.5  # leaked
    assert best["150 rows"] - full["150 rows"] > 0.03  # it heals
    assert shown["150 rows"].alpha == 0


def query_of(wanted):
    return "?" + "&".join(f"{k}={v}" for k, v in wanted.items())


# ---- links


def test_links():
    page = WhiteningPage("?setting=N_excl_resnet-fashion_Sandal&alpha=0.1&rows=300&covariance=tied")
    s = page.state
    assert (s.features, s.ood, s.fit, s.alpha) == ("resnet-fashion", "Sandal", "without", "0.1")
    assert (page.case.covariance, page.case.fit.count, page.state.told) == ("tied", 300, [])
    assert WhiteningPage("?" + s.query()).state.query() == s.query()
    assert parts_of("P_vit-mnist_2")[0] == {"features": "vit-mnist", "ood": "2", "fit": "all"}
    assert "retrained" in parts_of("N_retrain_resnet-fashion_Sandal")[1]
    nearest = WhiteningPage("?alpha=0.0101")
    assert nearest.state.alpha == "0.01"
    assert "nearest stop, 0.01" in nearest.state.told[0]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?setting=P_nothing", "a setting that the computed battery has not"),
        ("?features=own:feedbeef", "own:feedbeef: a link carries the hash"),
        ("?features=<script>", "features “&lt;script&gt;”"),
        ("?ood=Hat", "“Hat”, which is not here"),
        ("?alpha=much", "“much”, which is no number; Ledoit and Wolf’s is shown"),
        ("?fit=chosen&classes=", "This fit set cannot be had"),
    ],
)
def test_what_a_link_cannot_have_is_said(query, told):
    page = WhiteningPage(query)
    shown = [pane for pane in (link_note(page.state), page._alert) if pane.visible]
    assert told in " ".join(pane.object for pane in shown)
    assert all("<script" not in pane.object for pane in shown)


# ---- alpha 0, where the covariance is singular


def test_a_null_direction_is_left_out_at_alpha_0_and_named():
    page = WhiteningPage("?features=vit-mnist&ood=2&fit=all&alpha=0")  # the final LayerNorm leaves one
    assert "left out at alpha 0" in say(page, "directions_say")
    now = page.live.at()
    assert np.isnan(now["shrunk"].values[:64]).sum() == 1
    assert now["budget"].values[63] == 0
    assert say(page, "condition_number_says") != "no answer"


def test_too_few_rows_are_refused_at_alpha_0_alone():
    audit = embeddings(n=12)
    shelf = Shelf(audits=[audit])
    page = WhiteningPage("?alpha=0", shelf)
    assert page.state.features == audit.name
    assert sentence(page).startswith(
        "At alpha 0 there is no answer: 9 fit rows give a covariance of rank 8, too few for 12 "
    )
    assert say(page, "auroc_says") == say(page, "bottom_budget_says") == "no answer"
    assert np.isnan(page.live.at()["now_y"].item())
    assert np.isnan(page.answer().auroc.item())
    page.state.alpha = "0.1"
    assert "AUROC" in sentence(page)
    drawing = export.draw(lambda backend: page.figure("auroc", backend), "svg", size=(110, 75)).read()
    assert b"<svg" in drawing


# ---- a user's embeddings


def test_a_users_embeddings_are_offered_first_and_shown():
    shelf = Shelf()
    page = WhiteningPage("", shelf)
    page.__panel__()
    audit = embeddings()
    shelf.audits = [audit]
    assert page.state.features == audit.name
    assert page.subject == "emb.npz"
    assert next(iter(page._menus["features"].groups)) == "your own"
    assert page._menus["rows"].values == ["all"]
    assert page.case.regime == "clean-excl"
    assert page.case.fit is audit.without
    page._menus["fit"].value = "all"
    assert page.case.regime == "leak"
    assert page.alpha == audit.fit.ledoit_wolf()
    page._menus["covariance"].value = "tied"
    assert page.case.covariance == "tied"
    assert page.live.text("ood_says").endswith(">the &lt;b&gt;last&lt;/b&gt; class</span>")
    shelf.audits = []
    assert page.state.features == "resnet-fashion"
    assert page.case.fit_name.endswith("rows")


def test_in_the_app_embeddings_come_when_they_are_ready():
    document = Document()
    context = SimpleNamespace(request=SimpleNamespace(arguments={}), session=None)
    document._session_context = lambda: context  # as a server sets it
    audit = embeddings()
    with set_curdoc(document):
        page = WhiteningPage("", Shelf(audits=[audit]))
        assert page.state.features == audit.name
        assert page.case.id_test.shape[1] != 12  # what is shown meanwhile
        assert "emb.npz is on its way" in page._alert.object
        page.state.covariance = "tied"  # asked for before the first is there
        deadline = time.monotonic() + 60
        while len(document.session_callbacks) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for callback in document.session_callbacks:
            callback.callback()
    assert page.case.id_test is audit.id_test
    assert page.case.covariance == "tied"
    assert page.alpha == page.case.fit.ledoit_wolf(covariance="tied")
    assert page._alert.object == ""


def test_embeddings_without_labels_have_one_fit_set_and_no_tied_covariance():
    audit = embeddings(without=False)
    bare = Audit(
        audit.name,
        audit.title,
        fit_statistics(np.random.default_rng(1).normal(size=(90, 12))),
        audit.id_test,
        audit.ood_test,
    )
    page = WhiteningPage("", Shelf(audits=[bare]))
    assert page._options("fit")["options"] == {"all classes": "all"}
    assert page._options("covariance")["options"] == {"one-class": "one-class"}
    assert say(page, "ood_says") == "the designated OOD rows"


def test_more_directions_than_points_are_drawn_in_groups():
    audit = embeddings(n=900, size=600)
    page = WhiteningPage("", Shelf(audits=[audit]))
    now = page.live.at()
    assert now["directions_end"].item() == 600.5
    assert now["end"].values[-1] == 600
    assert np.isfinite(now["budget"].values).all()
    # Each point is the mean of its group: groups of 2 and 3 make up the whole budget.
    sizes = np.diff(np.concatenate([[0], now["end"].values]))
    assert set(sizes) == {2, 3}
    assert np.sum(sizes * now["budget"].values) == pytest.approx(1, abs=1e-5)
    assert len(page.live.table) < 1_000_000


def test_stops_hold_every_alpha_of_the_pages():
    table = WhiteningPage().live.answers
    assert set(ALPHAS) <= set(table["value"].values)
    np.testing.assert_array_equal(np.diff(table["alpha"].values) > 0, True)
