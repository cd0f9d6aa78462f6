"""The page of held-out sources without a browser: its rows are the core's, its figures and texts are its rows'."""

import gc
import io
import json
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import leakviz
from dashboards import export
from dashboards import lodo_answers as answers
from dashboards.figures import lodo as figures
from dashboards.lodo import LodoPage
from dashboards.lodo_answers import CASES, THRESHOLDS
from dashboards.report_content import section_of
from leakviz.paths import data_dir

SAE = "sae_logistic, constant 0.5"
TRAP = "?case=prompt_attacks&model=logistic-unweighted"


@pytest.fixture(scope="module")
def built():
    page = LodoPage()
    page.__panel__().get_root()
    page.own.n_jobs = 1
    return page


@pytest.fixture
def page(built):
    built.state.read("")
    return built


def sources(page, name):
    """Return the columns of each layer of a figure that stands."""
    prefix = f"{page.live.key}/{name}."
    return {
        tag.removeprefix(prefix).removesuffix(":source"): m.data
        for m in page._panes[name].object.references()
        for tag in m.tags
        if isinstance(tag, str) and tag.startswith(prefix) and tag.endswith(":source")
    }


def seen(box):
    return box.styles.get("display") != "none"


def hospitals(n=240, seed=0, name="clinic <b>x</b>"):
    """Return a table of three hospitals; ``crp`` tells the label in one of them alone."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    where = np.repeat(["north", "south", name], n // 3)
    crp = np.where((where == "south") & (y == 1), 2.0, rng.uniform(size=n) < 0.3)
    frame = pd.DataFrame({"y": y, "hospital": where, "age": rng.normal(60, 9, n) + 9 * y, "crp": crp})
    return frame.to_csv(index=False).encode()


# ---- what must be shown


def test_the_published_68_rows_are_the_files():
    rows = pd.read_csv(data_dir() / "published" / "lodo_accuracy.csv")
    assert len(rows) == 68
    seen = 0
    for model in answers.classifiers("published"):
        subject = answers.shipped("published", model)
        shown = answers.gap_rows(subject, "accuracy", "cv").set_index("source")
        classifier, strategy = model.split(", ")
        of = rows[(rows["classifier"] == classifier) & (rows["threshold_strategy"] == strategy)]
        for row in of.itertuples():
            assert shown.loc[row.held_out_dataset, "lodo"] == pytest.approx(row.accuracy_pct / 100)
            seen += 1
    assert seen == 68


def test_the_mixed_six_as_they_are_quoted(page):
    page.state.read("?case=published")
    assert "<b>0.996</b>" in page._texts["heading"].object
    assert "<b>0.912</b>" in page._texts["heading"].object
    assert "<b>74.1 %</b>" in page._texts["heading"].object
    page.state.model = SAE
    told = page._texts["heading"].object
    assert "<b>62.2 %</b>" in told
    assert "0.996" not in told.split("</h1>")[0]  # of another classifier
    assert "Of the logistic model on activations" in told
    pooled = page.data("gap").set_index("name")["lodo"]
    assert pooled["6 mixed, by rows"] == pytest.approx(0.622, abs=5e-4)


def test_the_harm_case_is_what_came_with_the_data():
    # data/lodo/README.md, from an independent script.
    tfidf, minilm = (answers.shipped("harm_scored_responses", m) for m in ("tfidf", "minilm"))
    for subject, cv, left_out in ((tfidf, 0.866, 0.778), (minilm, 0.801, 0.727)):
        pooled = answers.gap_rows(subject, "auc", "cv").set_index("name").loc["pooled"]
        assert pooled["baseline"] == pytest.approx(cv, abs=0.006)  # another seed's folds
        assert pooled["lodo"] == pytest.approx(left_out, abs=5e-4)
    within = answers.gap_rows(tfidf, "auc", "cv").set_index("name").loc["mean within sources"]
    assert within["baseline"] == pytest.approx(0.868, abs=0.006)
    assert within["lodo"] == pytest.approx(0.842, abs=5e-4)


def test_the_trap_is_said_where_it_is_and_nowhere_else(page):
    page.state.read(TRAP)
    assert float(page.answer()["noise_mean"]) < 0.3
    trap = page._texts["heading"].object
    assert "The trap" in trap
    assert "hold one label" in trap
    page.state.model = "logistic"
    assert 0.45 <= float(page.answer()["noise_mean"]) <= 0.55
    assert "The trap" not in page._texts["heading"].object
    assert abs(float(page.answer()["shuffled_mean"])) < 0.005


def test_words_never_promise_more_than_transfer(page):
    for case in CASES:
        page.state.read(f"?case={case}")
        said = " ".join(p.object for p in page._texts.values()).lower()
        assert "deployment" not in said
        assert "true shift" not in said
        if case != "published":
            assert "transfer between these sources" in said


# ---- rows and figures


def test_gaps_are_sorted_and_one_label_is_another_mark(page):
    page.state.read("?case=prompt_attacks")
    rows = page.data("gap")
    of = page.answer()
    for group in ("source", "one label"):
        gaps = rows[rows["group"] == group]["gap"].to_numpy()
        assert (np.diff(gaps) <= 0).all()
    single = rows[rows["group"] == "one label"].set_index("source")
    assert len(single) == int((of["kind"] != "mixed").sum()) == 8
    assert single.loc["advbench", "metric"] == "recall"
    recall = of["rate"].sel(metric="recall", protocol="lodo", source="advbench")
    assert single.loc["advbench", "lodo"] == float(recall)
    drawn = sources(page, "gap")
    marks = dict(zip(drawn["lodo"]["name"], drawn["lodo"]["mark"], strict=True))
    assert marks["advbench"] == "square"
    assert marks["agentdojo slack"] == "circle"
    assert marks["pooled"] == "diamond"
    # Both intervals of the pooled gap, laid off from the baseline.
    pooled = rows.iloc[0]
    bars = drawn["rows_bar"], drawn["source_bar"]
    for bar, kind in zip(bars, ("gap", "gap_source"), strict=True):
        assert bar["x0"][0] == pytest.approx(pooled["baseline"] - pooled[f"{kind}_high"])
        assert bar["x1"][0] == pytest.approx(pooled["baseline"] - pooled[f"{kind}_low"])


def test_one_baseline_is_held_against_the_same_rows(page):
    page.state.read("?case=harm_scored_responses&baseline=same-source")
    of = page.answer()
    label, code = of["label"].values, of["source_code"].values
    name = str(of["source"].values[0])
    held, left_out = (of["score"].sel(protocol=p).values for p in ("same-source", "lodo"))
    pooled, own = [], []
    for known, scores in zip(~np.isnan(held), left_out, strict=True):
        for into, rows in ((pooled, known), (own, known & (code == 0))):
            pairs = label[rows].sum() * (1 - label[rows]).sum()
            into.append((roc_auc_score(label[rows], scores[rows]), pairs))
    pooled, own = (np.average([v for v, _ in of], weights=[w for _, w in of]) for of in (pooled, own))
    for text in ("heading", "numbers", "pairs"):
        assert f"{pooled:.3f}" in page._texts[text].object, text
    assert "<b>0.700</b>" not in page._texts["heading"].object  # over all rows
    first = page.data("gap").set_index("source").loc[name]
    assert first["lodo"] == pytest.approx(own)
    assert first["gap"] == pytest.approx(first["baseline"] - first["lodo"])
    assert "Cross-validation gives" not in page._texts["said"].object
    assert "cross-validation" not in page._texts["gap_legend"].object


def test_a_source_has_one_name(page):
    names = set(map(page.shown.name_of, page.answer()["source"].values.astype(str)))
    assert "violence multi score" in names
    assert set(page.data("gap")["name"].iloc[2:]) == names
    assert set(sources(page, "known")["cells"]["positives"]) == names
    assert set(sources(page, "retention")["points"]["source"]) < names
    rows = json.loads(page._boxes["listing"].table)["rows"]
    assert {row[-1][0] for row in rows} - {""} < names
    assert "of exploits, has" in page._texts["explanation"].object


def test_squares_are_told_on_the_axis_and_a_top_ten_of_four_features_is_none(page):
    page.state.read("?case=prompt_attacks")
    axis = page._panes["gap"].object.xaxis[0]
    assert axis.axis_label == "AUROC ● ◆, recall or specificity ■"
    assert "Squares" in page._texts["gap_caption"].object
    page.state.case = "penguins"
    assert axis.axis_label == "AUROC"
    assert "undefined here" in page._texts["explanation"].object
    assert "Jaccard" not in page._texts["explanation"].object


def test_too_few_sources_have_no_interval_over_sources(page):
    page.state.read("?case=penguins")
    assert "too few sources (3)" in page._texts["numbers"].object
    assert len(sources(page, "gap")["source_bar"]["x0"]) == 0


def test_the_parts_of_the_gap_add_up(page):
    for case in list(CASES)[:3]:
        at = answers.shipped(case, "logistic").result.sel(scope="all", baseline="cv")
        assert float(at["gap_within"] + at["gap_between"]) == pytest.approx(float(at["gap"]), abs=1e-9)


def test_matrices_are_the_cores_and_the_switch_keeps_mixed_sources(page):
    page.state.read("?case=prompt_attacks&scope=mixed")
    cells = sources(page, "left-out")["cells"]
    of = page.answer()["pair_auc"].sel(protocol="lodo")
    source = {page.shown.name_of(s): s for s in of["positive_source"].values.tolist()}
    assert len(cells["auc"]) == 100
    for k in (0, 37, 99):
        at = {
            "positive_source": source[cells["positives"][k]],
            "negative_source": source[cells["negatives"][k]],
        }
        assert cells["auc"][k] == float(of.sel(at))
    assert "0.778" in page._texts["pairs"].object  # pooled LODO of the mixed ten
    page.state.scope = "all"
    cells = sources(page, "known")["cells"]
    assert len(cells["auc"]) == int(np.isfinite(of.values).sum()) == 16 * 12
    assert cells["color"][int(np.argmax(cells["auc"]))] == figures._COLORS[100]


@pytest.mark.parametrize(("case", "model"), [("published", SAE), ("harm_scored_responses", "logistic")])
def test_the_table_of_the_sliders_is_counted_by_hand(case, model):
    subject = answers.shipped(case, model)
    kept = subject.retention["retention"].values
    table, quads = answers.retention_answers(subject), answers.quadrant_answers(subject)
    for stop in (0, 60, 100, 150):
        below = np.nansum(kept < THRESHOLDS[stop])
        assert str(table["say_count"].values[stop]) == str(int(below))
        assert table["shortcut"].values[stop].sum() == below
    if answers.has_firing(subject):
        at = quads.sel(retention_threshold=0.5, firing_ratio=1.5, method="nearest")
        firing = subject.retention["firing_ratio"].values
        low, specific = kept < 0.5, firing >= 1.5
        by_hand = [(low & ~specific), (low & specific), (~low & ~specific), (~low & specific)]
        shown = [int(at[f"quadrant_{q}"].item()) for q in range(4)]
        assert shown == [int(b.sum()) for b in by_hand] == [5, 5, 5, 5]


def test_what_a_case_has_not_is_said_in_a_line(page):
    page.state.read(TRAP)
    assert not seen(page._cards["retention"])
    assert "choose it" in page._texts["retention"].object
    with pytest.raises(ValueError, match="has no figure 'retention'"):
        page.data("retention")
    page.state.read("?case=published")
    assert not seen(page._cards["known"])
    assert "no score of a row is public" in page._texts["pairs"].object
    page.state.model = SAE
    assert seen(page._cards["retention"])
    assert "not public" in page._texts["retention"].object
    page.state.read("")
    assert "no quadrants here" in page._texts["quadrants"].object
    assert not seen(page._boxes["quadrants"])


def test_the_ablation_is_the_cores_step_by_step(page):
    of = leakviz.load_ablation("harm_scored_responses__logistic")
    rows, drawn = page.data("ablation"), sources(page, "ablation")
    for protocol in ("cv", "lodo"):
        steps = of["step_auc"].sel(ablation_protocol=protocol).values
        assert drawn[protocol]["y"].tolist() == steps.tolist() == rows[protocol].tolist()
    # With nothing taken away it is the page's own pooled value; that of the random orders, too.
    pooled = page.answer()["auc"].sel(protocol="lodo", scope="all").item()
    assert rows["lodo"][0] == pytest.approx(pooled, abs=1e-3)
    assert rows["random_low"][0] == rows["random_high"][0] == pytest.approx(rows["lodo"][0])
    assert rows["change"][0] == 0
    page.state.model = "forest"
    assert not seen(page._cards["ablation"])
    assert "choose “logistic, balanced”" in page._texts["ablation"].object


def test_a_row_is_explained_by_attributions_that_add_up(page):
    page.state.row = 7
    rows = page.data("explanation")
    table, kept = leakviz.load_lodo_data("harm_scored_responses"), page.shown.retention
    logit = float(kept["intercept"]) + float(
        (kept["coefficient"].values * (table.X[7] - kept["centre"].values) / kept["scale"].values).sum()
    )
    assert f"<b>{answers.three(logit)}</b>" in page._texts["explanation"].object
    assert rows["weighted_attribution"].to_numpy() == pytest.approx(rows["attribution"] * rows["weight"])
    bars = sources(page, "explanation")["before"]
    assert bars["right"] - abs(bars["left"]) == pytest.approx(rows["attribution"].to_numpy())


def test_another_case_is_written_into_the_same_figures(page):
    before = {name: pane.object for name, pane in page._panes.items()}
    page.state.case = "penguins"
    assert {name: pane.object for name, pane in page._panes.items()} == before
    assert page.state.query().startswith("case=penguins")
    names = page._panes["gap"].object.yaxis[0].major_label_overrides.values()
    assert {"Adelie", "Gentoo", "Chinstrap"} < set(names)


def test_links_are_read_and_what_cannot_be_had_is_told(page):
    told = page.state.read("?case=penguins&threshold=0.801&firing=9&row=999&metric=f1")
    assert [w in " ".join(told) for w in ("0.8", "firing ratio 9", "rows 0 to 332", "metric “f1”")] == [
        True
    ] * 4
    assert page.state.threshold == pytest.approx(0.80)
    assert page.live.value("retention_threshold") == pytest.approx(0.80)
    assert page.quadrants.value("retention_threshold") == pytest.approx(0.80)
    assert "own" in page.state.read("?case=own:abcdef")[0]
    page.state.read(
        "?case=prompt_attacks&model=logistic-unweighted&baseline=same-source&metric=accuracy&threshold=0.2"
    )
    again = LodoPage("?" + page.state.query())
    assert again.state.query() == page.state.query()


def test_files_for_paper(page):
    page.state.read("?case=published&model=" + SAE)
    svg = export.draw(lambda backend: page.figure("gap", backend), "svg", size=(150, 110)).getvalue()
    assert b"mosscap" in svg
    for name in ("composition", "retention"):
        page.figure(name, "matplotlib")


# ---- a table of one's own


def test_a_table_is_asked_about_computed_and_shown(page):
    page.own.load(hospitals(), "wards.csv")
    assert [q.role for q in page.own.found.questions] == ["source"]
    page.own.say("source", "hospital")
    assert page.own.page()["file"]["ready"]
    page.own.use()
    assert page.own.alerts == []
    assert page.subject == "wards.csv"
    assert page.answer().sizes["source"] == 3
    table = leakviz.read_sources(hospitals(), source="hospital")
    expected = leakviz.lodo(table.X, table.y, table.source, n_jobs=1)
    assert float(page.answer()["gap"].sel(baseline="cv", scope="all")) == float(
        expected["gap"].sel(baseline="cv", scope="all")
    )
    kept = page.data("retention").set_index("feature")["retention"]
    assert kept["crp"] < kept["age"]  # what one hospital alone holds up
    assert "south" in page._texts["retention_legend"].object
    assert "<b>x</b>" not in page._texts["explanation"].object
    own = page.state.case
    # Another session has not got it, and the link says so.
    other = LodoPage(f"?case={own}")
    assert other.state.case == "harm_scored_responses"
    assert any("somebody’s own" in sentence for sentence in other.state.told)
    other = LodoPage(f"?case={own}&threshold=0.2")
    other.take(replace(page.shown, case="own:00b2"))
    assert "taken as a new one" in other.state.told[0]
    other.take(page.shown)
    assert (other.state.case, other.state.threshold) == (own, 0.2)


def test_features_are_ticked_and_no_column_is_offered_twice(page):
    frame = pd.read_csv(io.BytesIO(hospitals(120))).rename(columns={"y": "died"})
    page.own.load(
        frame.assign(died=np.where(frame["died"] == 1, "yes", "no")).to_csv(index=False).encode(), "f.csv"
    )

    def field(role):
        seen = page.own.page()["file"]
        return next((f for f in [*seen["questions"], *seen["rest"]] if f["role"] == role), None)

    def offered(role):
        return [option[0] for option in field(role)["options"]]

    assert {q.role for q in page.own.found.questions} == {"label", "source"}
    assert field("features") is None  # which are left is not known yet
    assert offered("source") == ["died", "hospital", "crp"]
    page.own.say("source", "hospital")
    page.own.say("label", "died")
    assert offered("source") == ["hospital", "crp"]  # what was asked before there was a label, too
    page.own.say("source", "")
    assert offered("source") == ["hospital", "crp"]
    page.own.say("source", "hospital")
    page.own.say("positive", "yes")
    assert (offered("features"), field("features")["ticked"]) == (["age", "crp"], ["age", "crp"])
    assert page.own.found.read().features == ("age", "crp")
    page.own.say("features", '["crp"]')
    assert (offered("features"), field("features")["ticked"]) == (["age", "crp"], ["crp"])
    assert page.own.found.read().features == ("crp",)
    page.own.say("features", '["crp", "age"]')  # all of them: nothing is said
    assert not field("features")["said"]
    page.own.say("features", '["crp"]')
    page.own.say("groups", "age")
    assert field("features") is None  # one is left
    assert page.own.found.read().features == ("crp",)
    page.own.say("groups", "")
    told = page._texts["heading"].object
    assert told.startswith("<h1>“f.csv” is not computed yet: the button is below.</h1>")
    assert f"Meanwhile, {CASES['harm_scored_responses']}: Cross-validation reaches" in told
    page.own.use()
    assert [str(f) for f in page.shown.retention["feature"].values] == ["crp"]
    assert page.shown.file["options"]["features"] == "crp"
    assert "Meanwhile" not in page._texts["heading"].object
    page.own.say("features", "")
    assert "Meanwhile, f.csv, as it was computed before: " in page._texts["heading"].object
    page.own.close()
    assert "Meanwhile" not in page._texts["heading"].object


def test_a_column_that_is_not_all_numbers_can_be_unticked(page):
    page.own.load(
        b"y,source,x,z\n"
        + b"".join(
            b"%d,%c,%d,%s\n" % (i % 2, b"ab"[i // 2 % 2], 7 * i % 5, b"u" if i == 3 else b"1")
            for i in range(12)
        ),
        "z.csv",
    )
    assert "feature 'z': not a number in 1 of 12 rows" in page.own.found.problem
    assert "“z.csv” cannot be used as it is answered" in page._texts["heading"].object
    page.own.say("features", '["x"]')
    assert page.own.found.problem is None
    assert page.own.found.read().features == ("x",)
    page.own.close()


def test_what_no_fold_divides_is_not_defined(page):
    """Each hospital is one patient: nothing that compares rows of a hospital with others of it is known."""
    rng = np.random.default_rng(0)
    y, where = np.arange(120) % 2, np.repeat(list("abcdef"), 20)
    frame = pd.DataFrame(
        {"y": y, "source": where, "crp": rng.normal(size=120) + y, "age": rng.normal(60, 9, 120)}
    )
    table = leakviz.read_sources(
        frame.assign(who=np.repeat(range(6), 20)).to_csv(index=False).encode(), groups="who"
    )
    made = {"model": "logistic", "case": "own:1", "title": "w.csv", "source": "w", "n_jobs": 1}
    page.take(answers.computed(table, **made))
    left_out = float(page.answer()["auc"].sel(protocol="lodo", scope="all"))
    told = page._texts["heading"].object
    assert f"With the source left out, the AUROC is <b>{left_out:.3f}</b>. What it is worth" in told
    assert "not defined</b> for this table" in told
    assert "Every source is one group or one row, so no fold divides a source" in told
    rows = page.data("gap")
    assert rows[["baseline", "gap", "gap_low"]].isna().all(axis=None)
    assert rows.set_index("name").loc["pooled", "lodo"] == left_out
    assert not seen(page._cards["known"])
    assert seen(page._cards["left-out"])
    assert page._texts["pairs"].object.count('<td class="n">not defined</td>') == 5
    cells = page._texts["known"].object
    assert [name in cells for name in ("0.0 %", "chance:", "largest:")] == [False] * 3
    assert cells.count("not defined") == 3  # the name, the identity, the control with sources shuffled
    assert "cross-validation</span>" not in page._texts["gap_legend"].object
    assert "share under shuffled sources are not defined" in page._texts["retention"].object
    assert "Cross-validation is not drawn" in page._texts["ablation_caption"].object
    page.state.metric = "accuracy"
    assert "With the source left out, the accuracy is" in page._texts["heading"].object
    page.state.metric = "auc"


def test_the_loss_within_a_source_leads_and_shares_of_the_gap_are_called_so(page):
    of = page.answer().sel(scope="all", baseline="cv")
    lost = float(of["gap_within_mean"])
    heading, below = page._texts["heading"].object.split("</h1>")
    before, after = (np.nanmean(of["source_auc"].sel(protocol=p)) for p in ("cv", "lodo"))
    assert lost == pytest.approx(before - after, abs=1e-9)
    assert f"from <b>{before:.3f}</b> to <b>{after:.3f}</b>: <b>{lost:.3f}</b> is lost." in heading
    share = answers.adding_up(*(float(of[n]) for n in ("gap", "gap_within", "gap_between")))
    assert share[0] not in heading
    assert f"Counted by pairs of rows, {share[0]} of the gap is from pairs of one source" in below
    assert "these are shares of the gap of all rows together, not what a source loses" in below
    assert page._texts["numbers"].object.index("lost within a source") < page._texts["numbers"].object.index(
        "share of the gap"
    )


def test_features_that_hang_on_one_source_are_listed_for_a_report(page):
    page.state.read("?case=harm_scored_responses&threshold=0.45")
    kept = page.answer() is not None and page.shown.retention
    title, table = page.hanging_table()
    names = [str(f) for f in kept["feature"].values[kept["retention"].values < 0.45]]
    assert title == "Features whose coefficient hangs on one source: retention below 0.45"
    assert sorted(names) == ["PC1", "PC20"]
    assert all(f'<th scope="row">{name}</th>' in table for name in names)
    assert "hate speech multi score" in table
    assert table.index("PC1<") < table.index("PC20")  # the lowest first
    tables = section_of("lodo", page, title="Sources").facts["tables"]
    assert [row[0] for row in tables[-1]["rows"]] == ["PC1", "PC20"]
    assert (tables[-1]["title"], tables[-1]["header"][-1]) == (title, "hangs on")
    rows, many = answers.hanging(page.shown, 1.5, most=3)
    assert (len(rows), many) == (3, int((kept["retention"] < 1.5).sum()))
    page.state.read("?case=published")
    assert page.hanging_table() == ("", "")


def test_a_long_name_leaves_a_matrix_its_room(page):
    long = "L" * 300
    names = answers.shown_names([long, "north", "south"])
    frame = pd.DataFrame(
        [(a, b, 0.5, 9) for a in names for b in names],
        columns=["positive_source", "negative_source", "pair_auc", "pairs"],
    )
    picture = figures.matrix_picture(frame, {n: n for n in names}, dict.fromkeys(names, 9))
    assert [text for _, text in picture.xticks] == ["LLLLLLLL…LLLLL", "north", "south"]
    assert export.figure_state_says(page, "known").endswith("pairs of all sources")


def test_a_gap_that_is_undefined_leaves_cross_validation_as_it_is(page):
    """The one source with both labels cannot be left out: without it training has one label."""
    rng = np.random.default_rng(1)
    y, where = np.r_[np.ones(30), np.arange(40) % 2].astype(int), np.repeat(["pure", "both"], [30, 40])
    frame = pd.DataFrame({"y": y, "source": where, "mark": np.where(y == 1, 2, 0) + rng.random(70)})
    page.own.load(frame.to_csv(index=False).encode(), "two.csv")
    page.own.use()
    scores = page.answer()["score"].sel(protocol="cv").values[0]
    told = page._texts["heading"].object
    assert f"Cross-validation reaches an AUROC of <b>{roc_auc_score(y, scores):.3f}</b>" in told
    assert "with the source left out it is undefined" in told
    assert "Without source “both”, training has 30 rows, all with y = 1." in told
    assert page.data("gap").set_index("name").loc["pooled", "baseline"] == roc_auc_score(y, scores)
    assert seen(page._cards["known"])
    assert not seen(page._cards["left-out"])
    assert "There is no figure of pairs with the source left out" in page._texts["pairs"].object
    said = page._texts["said"].object
    assert "No source has both labels" not in said
    assert "A column that gives the label away: &#x27;mark&#x27; alone" in said  # by how it was made


def test_a_trap_is_told_by_its_interval(page):
    kept = answers.shipped("prompt_attacks", "logistic-unweighted")
    few = kept.result.isel(draw=[0, 1, 2, 3, 4])
    wide = replace(kept, result=few.assign(noise_mean=0.422, noise_low=0.295, noise_high=0.549))
    assert answers.heading(wide, "auc", "cv")[2] == ""
    apart = replace(kept, result=few.assign(noise_mean=0.3, noise_low=0.28, noise_high=0.32))
    assert "So few draws may be chance" in answers.heading(apart, "auc", "cv")[2]


def test_a_bad_file_leaves_what_was_there(page):
    shown = page.shown
    page.own.load(b"\x00\x01\x02", "bad.csv")
    assert "'bad.csv' is not text" in page.own.page()["alert"][0]
    page.own.load(b"y,source,x\n1,a,1\n0,a,2\n", "one.csv")
    assert page.own.page()["alert"]
    assert page.shown is shown


def test_work_can_be_stopped(page):
    shown = page.shown
    page.own.load(hospitals(seed=1), "stopped.csv")
    page.own.say("source", "hospital")
    hear = page.own._show_work
    page.own._show_work = lambda job: (hear(job), page.own.stop())
    try:
        page.own.use()
    finally:
        page.own._show_work = hear
    assert "you cancelled it" in page.own.alerts[0]
    assert page.shown is shown


def test_penguins_are_recomputed_here(page):
    page.state.case = "penguins"
    page.recompute()
    assert "Recomputed here in" in page._texts["heading"].object
    assert page.answer().sizes["seed"] == 1
    kept = answers.shipped("penguins", "logistic").result
    gap = [float(r["gap"].sel(baseline="cv", scope="all")) for r in (page.answer(), kept)]
    assert gap[0] == pytest.approx(gap[1], abs=0.01)
    assert LodoPage("?case=penguins").answer().sizes["seed"] == 10  # another session's is as it was


def test_a_closed_page_is_let_go():
    page = LodoPage("?case=penguins")
    page.own.n_jobs = 1
    held = weakref.ref(page)
    del page
    gc.collect()
    assert held() is None
