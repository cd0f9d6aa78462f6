"""What ships: published figures, kept results and the data behind them; and the command line."""

import errno
import json
import math
import shutil

import numpy as np
import pytest
import xarray as xr

from leakviz import cli
from leakviz.errors import InputError
from leakviz.lodo import (
    command,
    explain_lodo,
    fits,
    load_ablation,
    load_lodo,
    load_lodo_data,
    load_published_lodo,
    load_retention,
    lodo,
    lodo_cases,
    lodo_from_scores,
    retention,
    save_lodo,
    summarise_lodo,
)
from leakviz.lodo.build import build
from leakviz.lodo.cases import CASES, content_hash
from leakviz.lodo.listing import listing
from leakviz.lodo.words import explain_ablation, retention_sentence
from leakviz.paths import data_dir

PENGUINS = str(data_dir() / "lodo" / "penguins.csv")


# Published figures


def test_fact_68_published_rows():
    published = load_published_lodo()
    assert published.accuracy.size == 68
    assert not np.isnan(published.accuracy).any()
    assert int(published.n.sum()) == 105_034
    jayavibhav = published.sel(source="jayavibhav", classifier="raw_logistic, constant 0.5")
    assert (jayavibhav.accuracy.item(), jayavibhav.n.item(), jayavibhav.kind.item()) == (
        0.691,
        10_000,
        "mixed",
    )
    assert published.sel(source="mosscap").n.item() == 10_114  # with gandalf_summarization
    assert published.sel(source="mosscap").kind.item() == "positive only"
    tuned = published.sel(source="advbench", classifier="raw_logistic, precision 0.95")
    assert tuned.threshold.item() == 0.081
    low, high = tuned.accuracy_low.item(), tuned.accuracy_high.item()
    assert low < 0.937 < high
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.937 * 0.063 / 520), rel=0.02)


def test_fact_published_means_are_recomputed_and_undefined_stays_undefined():
    published = load_published_lodo()
    negative = published.kind == "negative only"
    assert int(negative.sum()) == 5
    assert np.isnan(published.f1.where(negative, drop=True)).all()
    assert not np.isnan(published.f1.where(~negative, drop=True)).any()
    # On positives alone F1 is 2 r / (1 + r) of the recall r: the two printed columns agree to rounding.
    recall = published.accuracy.where(published.kind == "positive only", drop=True)
    f1 = published.f1.where(published.kind == "positive only", drop=True)
    np.testing.assert_allclose(f1, 2 * recall / (1 + recall), atol=0.0011)
    assert int((published.kind == "mixed").sum()) == 6
    means = published.mean_accuracy
    raw, sae = "raw_logistic, constant 0.5", "sae_logistic, constant 0.5"
    assert round(100 * means.sel(scope="mixed", classifier=raw).item(), 1) == 74.1
    assert round(100 * means.sel(scope="mixed", classifier=sae).item(), 1) == 62.2
    weighted = (published.accuracy * published.n).sum("source") / published.n.sum()
    np.testing.assert_allclose(means.sel(scope="all"), weighted)
    defined = published.where(~negative, drop=True)
    np.testing.assert_allclose(
        published.mean_f1.sel(scope="all"), (defined.f1 * defined.n).sum("source") / defined.n.sum()
    )
    assert published.quoted_auc.values.tolist() == [0.996, 0.997, 0.912]


# Kept results


@pytest.mark.parametrize(("model", "cv", "left_out"), [("tfidf", 0.866, 0.778), ("minilm", 0.801, 0.727)])
def test_fact_harm_case_is_within_seed_noise_of_the_independent_script(model, cv, left_out):
    result = load_lodo(f"harm_scored_responses__{model}")
    found = result.auc.sel(scope="all").values
    np.testing.assert_allclose(found, [cv, left_out], atol=0.006)
    if model == "tfidf":
        np.testing.assert_allclose(result.within_mean.sel(scope="all"), [0.868, 0.842], atol=0.006)
    assert result.sizes["source"] == 10
    assert result.gap_low.sel(baseline="cv", scope="all") > 0.03


def test_fact_controls_of_the_kept_results():
    for name in ("harm_scored_responses__logistic", "prompt_attacks__logistic", "penguins__logistic"):
        result = load_lodo(name)
        assert result.sizes["seed"] == 10
        assert result.sizes["draw"] == 20
        assert abs(result.shuffled_mean.item()) < 0.005
        assert -0.01 < result.shuffled_low.item() < result.shuffled_high.item() < 0.01
        assert 0.45 < result.noise_low.item() < result.noise_high.item() < 0.55
        assert not any("It is not" in said for said in explain_lodo(result))
    # Most of what this benchmark measures is which source a row is from.
    attacks = load_lodo("prompt_attacks__logistic")
    assert attacks.name_auc.item() > 0.9
    assert "what its pooled 0.970 has more is telling sources apart" in " ".join(explain_lodo(attacks))
    trap = load_lodo("prompt_attacks__logistic-unweighted")
    assert trap.noise_mean.item() < 0.3
    assert "it should be 0.5. It is not, and not by chance" in " ".join(explain_lodo(trap))
    # Balanced weights do not mend a forest: its trees grow until a leaf holds one class, whatever it weighs.
    forest = load_lodo("prompt_attacks__forest")
    assert forest.sizes["draw"] == 10
    assert forest.noise_high.item() < 0.45
    assert "It is not, and not by chance" in " ".join(explain_lodo(forest))
    # Where every source has both labels, a forest passes too; its controls rest on fewer draws.
    forest = load_lodo("harm_scored_responses__forest")
    assert forest.shuffled_low.item() < 0 < forest.shuffled_high.item()
    assert 0.45 < forest.noise_mean.item() < 0.55


def test_the_readme_shows_what_the_files_hold():
    assert listing() in (data_dir() / "lodo" / "README.md").read_text(encoding="utf-8")
    attacks = load_lodo("prompt_attacks__forest")  # as the README says below the table
    assert (attacks.noise_auc < 0.45).all()
    assert (attacks.kind != "mixed").sum() == 8


def test_controls_that_cannot_run_are_said():
    for model in ("tfidf", "minilm"):
        said = " ".join(explain_lodo(load_lodo(f"harm_scored_responses__{model}")))
        assert "The two controls cannot be run here: the features behind these scores do not ship." in said
    given = lodo_from_scores([3, 1, 2, 0], [3, 0, 2, 1], [1, 1, 0, 0], list("abab"), bootstrap=10)
    assert any(said.startswith("No control was run: noise features") for said in explain_lodo(given))


def test_every_kept_result_loads_and_is_documented():
    cases = lodo_cases()
    assert cases.name.is_unique
    for row in cases.itertuples():
        result = load_lodo(row.name)
        data = load_lodo_data(row.case)
        assert result.label.values.tolist() == data.y.tolist()
        assert result.source.values[result.source_code.values].tolist() == data.source.tolist()
        assert result.attrs["title"] == CASES[row.case].title
        assert result.attrs["license"]
        assert result.attrs["model"] != "not stated"
        json.dumps(summarise_lodo(result), allow_nan=False)
        if row.retention:
            features = load_retention(row.name)
            assert {"coefficient", "retention", "argmin_source", "null_median"} <= set(features)
        if row.ablation:
            assert load_ablation(row.name).sizes["arm"] == 2


def test_a_kept_result_is_what_its_data_give():
    data = load_lodo_data("penguins")
    result = load_lodo("penguins__logistic")
    fresh = lodo(data.X, data.y, data.source, seeds=(0, 1), controls=0, identity=False, n_jobs=1)
    for seed in (0, 1):
        np.testing.assert_allclose(result.score.sel(seed=seed), fresh.score.sel(seed=seed), atol=1e-6)
    before = load_retention("penguins__logistic")
    again = retention(
        data.X, data.y, data.source, features=data.features, bootstrap=20, null_draws=0, n_jobs=1
    )
    np.testing.assert_allclose(before.coefficient, again.coefficient, atol=1e-8)
    np.testing.assert_allclose(before.coefficient_without, again.coefficient_without, atol=1e-8)


def test_penguins_are_the_package_s_complete_rows():
    data = load_lodo_data("penguins")
    assert (data.n, data.dropped, int(data.y.sum())) == (333, 11, 168)
    assert {name: int((data.source == name).sum()) for name in set(data.source.tolist())} == {
        "Adelie": 146,
        "Chinstrap": 68,
        "Gentoo": 119,
    }


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the data folder that may be changed."""
    for name in ("published", "lodo"):
        shutil.copytree(data_dir() / name, tmp_path / name)
    monkeypatch.setenv("LEAKVIZ_DATA", str(tmp_path))
    return tmp_path / "lodo"


def test_a_result_that_does_not_match_its_data_is_refused(copied):
    load_ablation("penguins__logistic")
    csv = copied / "penguins.csv"
    csv.write_text(csv.read_text().replace("39.1", "39.2", 1))
    with pytest.raises(
        InputError, match=r"have changed since; make it anew with python -m leakviz.lodo.build"
    ):
        load_lodo("penguins__logistic")
    with pytest.raises(InputError, match="have changed since"):
        load_retention("penguins__logistic")
    arrays = dict(np.load(copied / "harm_scored_responses.npz"))
    arrays["tfidf_cv_logit"][3] += 1
    np.savez(copied / "harm_scored_responses.npz", **arrays)
    with pytest.raises(InputError, match="have changed since"):
        load_lodo("harm_scored_responses__tfidf")
    written = build(["harm_scored_responses__tfidf"])
    assert [path.name for path in written] == ["harm_scored_responses__tfidf.nc"]
    load_lodo("harm_scored_responses__tfidf")


def test_a_result_that_was_changed_is_refused(copied, tmp_path):
    path = copied / "penguins__logistic.ablation.nc"
    changed = xr.load_dataset(path, engine="h5netcdf")
    changed["auc"] = changed["auc"] + 0.01
    changed.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match="was changed after it was saved"):
        load_ablation("penguins__logistic")
    path = copied / "penguins__logistic.nc"
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as netCDF-4"):
        load_lodo("penguins__logistic")
    path.unlink()
    with pytest.raises(InputError, match="no lodo of 'penguins__logistic' ships"):
        load_lodo("penguins__logistic")
    (copied / "penguins.csv").unlink()
    with pytest.raises(InputError, match=r"there is no file 'penguins.csv' in data/lodo"):
        load_lodo_data("penguins")


def test_a_result_survives_its_file(tmp_path):
    for load, result in (
        (load_lodo, load_lodo("penguins__logistic")),
        (load_retention, load_retention("penguins__logistic")),
    ):
        path = tmp_path / f"{load.__name__}.nc"
        save_lodo(result, path)
        again = load(path)
        assert again.identical(result)
        by_xarray = xr.load_dataset(path, engine="h5netcdf")  # what is read here is what xarray reads
        for name, variable in by_xarray.variables.items():
            np.testing.assert_array_equal(variable.values.astype(again[name].dtype), again[name].values)
            assert (variable.dims, variable.attrs) == (again[name].dims, again[name].attrs)
        assert by_xarray.attrs == again.attrs
        assert content_hash(again) == result.attrs["content_hash"]
    other = tmp_path / "other.nc"
    xr.Dataset({"score": ("row", [1.0])}).to_netcdf(other, group="a", engine="h5netcdf")
    with pytest.raises(InputError, match=r"other\.nc cannot be read as netCDF-4"):
        load_lodo(other)
    other.unlink()
    with pytest.raises(InputError, match="holds a result of retention, not of lodo"):
        load_lodo(tmp_path / "load_retention.nc")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".nc"] * 2


@pytest.mark.parametrize(
    ("call", "informative"),
    [
        (lambda: load_lodo("penguins"), "name must be one that lodo_cases lists or the path of a .nc file"),
        (lambda: load_lodo("no-such.nc"), "there is no file 'no-such.nc'"),
        (lambda: load_retention("penguins__forest"), "no retention of 'penguins__forest' ships"),
        (
            lambda: load_lodo_data("owls"),
            "case must be one of harm_scored_responses, prompt_attacks, penguins",
        ),
        (lambda: save_lodo(xr.Dataset(), "x.nc"), "result is none of what lodo, retention or ablate"),
        (lambda: save_lodo(load_lodo("penguins__logistic"), "x.csv"), "path must end in .nc"),
        (lambda: save_lodo(load_lodo("penguins__logistic"), "no/x.nc"), "there is no folder 'no'"),
    ],
)
def test_loading_and_saving_refuse(call, informative):
    with pytest.raises(InputError, match=informative):
        call()


# The command line


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(["lodo", *arguments])
    caught = capsys.readouterr()
    return ended.value.code, caught.out, caught.err


ANSWERED = [PENGUINS, "--label", "sex", "--source", "species", "--positive", "male", "--missing", "drop"]
QUICK = [*ANSWERED, "--controls", "1", "--jobs", "1"]


def test_words_name_the_sources_and_what_was_decided(capsys):
    status, out, err = run(capsys, *QUICK, "--features", "bill_length_mm, bill_depth_mm")
    assert (status, err) == (0, "")
    assert out.startswith(
        "penguins.csv: 333 rows, 3 sources\n"
        "Label: column 'sex'; 1 is 'male' (168 rows), 0 is 'female' (165 rows).\n"
        "Source: column 'species'. Groups: none.\n"
        "Features: 2 columns: 'bill_length_mm', 'bill_depth_mm'.\n"
        "Model: Pipeline("
    )
    assert "too few sources (3)" in out
    assert "- 2 features: 'bill_length_mm', 'bill_depth_mm'." in out
    assert "- 11 of 344 rows were left out because a value is missing." in out
    assert [line.split()[0] for line in out.splitlines() if " AUROC " in line and "0." in line[20:]][-3:] == [
        "Adelie",
        "Gentoo",
        "Chinstrap",
    ]


def test_json_and_the_files_hold_the_same_results(capsys, tmp_path):
    path = tmp_path / "result.nc"
    asked = ["--seeds", "0,1", "--retention", "--ablation", "--out", str(path), "--json"]
    status, out, _ = run(capsys, *QUICK, *asked, "--features", "bill_depth_mm,body_mass_g,year")
    answer = json.loads(out)
    assert status == 0
    assert answer["written"] == [
        str(tmp_path / name) for name in ("result.nc", "result.retention.nc", "result.ablation.nc")
    ]
    assert sorted(answer["written"]) == sorted(map(str, tmp_path.iterdir()))
    assert (answer["label_1"], answer["label_0"]) == ("male", "female")
    assert answer["columns"] == {"label": "sex", "source": "species"}
    assert answer["features"] == ["bill_depth_mm", "body_mass_g", "year"]
    saved = load_lodo(path)
    assert answer["lodo"]["variables"]["gap"]["values"] == saved.gap.values.tolist()
    assert saved.seed.values.tolist() == [0, 1]
    assert (saved.attrs["title"], saved.attrs["label_1"]) == ("penguins.csv", "male")
    features = load_retention(tmp_path / "result.retention.nc")
    assert [row["feature"] for row in answer["retention"]] == features.feature.values.tolist()
    assert answer["retention_words"] is None  # it is the model that gave the scores
    undefined = [row["retention"] for row in answer["retention"] if row["undefined"]]
    assert undefined
    assert set(undefined) == {None}
    ablation = load_ablation(tmp_path / "result.ablation.nc")
    assert answer["ablation"]["variables"]["change"]["values"] == ablation.change.item()
    assert answer["ablation_words"] == explain_ablation(ablation)
    assert (
        f"a change of {ablation.change.item():.3f}".replace("-", "\N{MINUS SIGN}")
        in answer["ablation_words"][0]
    )


def test_what_two_sources_do_not_allow_is_said_beside_what_they_do(capsys, tmp_path):
    table = tmp_path / "two.csv"
    rows = [f"{i % 2},{'ab'[i // 2 % 2]},{(7 * i) % 11}.5" for i in range(60)]
    table.write_text("y,source,x\n" + "\n".join(rows) + "\n")
    asked = [str(table), "--ablation", "--controls", "0", "--jobs", "1"]
    status, out, _ = run(capsys, *asked)
    assert status == 0
    assert "--ablation cannot be answered: source has 2 values; without one, retention" in " ".join(
        out.split()
    )
    answer = json.loads(run(capsys, *asked, "--json")[1])
    assert answer["undone"]["ablation"].startswith("source has 2 values")
    assert "ablation" not in answer


def test_retention_of_another_model_is_said(capsys):
    few = ["--features", "bill_depth_mm", "--controls", "0", "--jobs", "1", "--retention"]
    status, out, _ = run(capsys, *ANSWERED, *few, "--model", "linear-svm")
    said = " ".join(out.split())
    assert status == 0
    assert (
        "Coefficients of a logistic regression on standardised features, classes balanced, and what" in said
    )
    assert (
        "not of the model that gave the scores (Pipeline(steps=[('standardscaler', StandardScaler()), ('linearsvc'"
        in said
    )
    assert "No control was run: controls=0." in said
    # Where the weights are all that differs, the regression beside the scores has the same.
    status, out, _ = run(capsys, *ANSWERED, *few, "--model", "logistic-unweighted")
    said = " ".join(out.split())
    assert "Coefficients of a logistic regression on standardised features, classes not balanced" in said
    assert "not of the model that gave the scores" not in said
    balanced, kept = load_lodo("prompt_attacks__logistic"), load_retention("prompt_attacks__logistic")
    assert retention_sentence(balanced, kept) is None
    told = retention_sentence(load_lodo("prompt_attacks__logistic-unweighted"), kept)
    assert told.startswith(
        "Coefficients and retention are of a logistic regression on standardised features, classes b"
    )


@pytest.mark.parametrize(
    ("arguments", "informative"),
    [
        (["no-such.csv"], "there is no file 'no-such.csv'"),
        ([], "Missing argument"),
        ([PENGUINS], "Which column is the label?"),
        ([PENGUINS, "--label", "sex", "--source", "species"], "name='value' is --name value"),
        ([*ANSWERED, "--model", "oracle"], "--model must be one of logistic,"),
        ([*ANSWERED, "--seeds", "one"], "--seeds must be whole numbers"),
        ([*ANSWERED, "--folds", "1"], "folds must be a whole number from 2 up"),
        ([*ANSWERED, "--jobs", "0"], "--jobs must not be 0"),
        ([*ANSWERED, "--out", "result.csv"], "--out must end in .nc"),
        ([*ANSWERED, "--out", "nowhere/result.nc"], "--out: there is no folder 'nowhere'"),
        ([*ANSWERED, "--groups", "species"], "groups: column 'species' is the source already"),
        ([*ANSWERED, "--features", "colour"], "features='colour': there is no such column"),
    ],
)
def test_what_cannot_be_used_ends_with_3(capsys, arguments, informative):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (3, "")
    assert informative in err


def test_ctrl_c_leaves_nothing_behind(capsys, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    asked = [*ANSWERED, "--features", "year", "--controls", "0", "--jobs", "1", "--retention"]
    asked += ["--out", str(tmp_path / "result.nc")]
    monkeypatch.setattr(command, "retention", lambda *_, **__: load_retention("penguins__logistic"))
    for place, name in ((fits, "fit_and_score"), (xr.Dataset, "to_netcdf"), (command.os, "replace")):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, stop)
            status, out, err = run(capsys, *asked)
        assert (status, out) == (130, "")
        assert "stopped; nothing was written" in err
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "old").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(command, "save_lodo", full)
        status, out, err = run(capsys, *asked)
    assert (status, out) == (3, "")
    assert "result.nc' cannot be written: No space left on device." in err
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    result = load_ablation("penguins__logistic")
    path = tmp_path / "result.nc"
    save_lodo(result, path)
    before = path.read_bytes()

    def half(self, target, **_):
        target.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", half)
    with pytest.raises(OSError, match="disk full"):
        save_lodo(result, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
