"""The audit of a split against an independent computation with scikit-learn, and what it refuses."""

import json

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from leakviz import cli
from leakviz.audit import audit_battery, audit_split, explain, row_overlap
from leakviz.battery import load_battery, save_battery
from leakviz.errors import InputError
from leakviz.fingerprint import Rule, contrast, fired
from leakviz.neighbourhood import neighbourhood_leakage

NAMES = np.array(["ant", "bee", "cat", "dog", "eel"])
SIZE = 10


def draw(seed, per_class):
    """Return features that were trained on the classes, as it were: clusters well apart, and their classes."""
    world, rng = np.random.default_rng(3), np.random.default_rng(seed)
    means = world.normal(size=(NAMES.size, SIZE)) * 2
    mixing = np.diag(np.linspace(1, 0.3, SIZE)) + world.normal(size=(SIZE, SIZE)) / 10
    labels = np.repeat(np.arange(NAMES.size), per_class)
    return np.float32(rng.normal(size=(labels.size, SIZE)) @ mixing + means[labels]), NAMES[labels]


def parts(name="cat", per_class=140):
    fit, fit_labels = draw(1, 120)
    tests, labels = draw(2, per_class)
    return {
        "fit": fit,
        "id_test": tests[labels != name],
        "ood_test": tests[labels == name],
        "fit_labels": fit_labels,
        "ood_class": name,
        "id_test_labels": labels[labels != name],
    }


@pytest.fixture(scope="module")
def split():
    return parts()


@pytest.fixture(scope="module")
def leaked(split):
    return audit_split(**split)


def changed(split, **new):
    return {**split, **new}


def test_audit_agrees_with_scikit_learn(split, leaked):
    tests = np.concatenate([split["id_test"], split["ood_test"]]).astype(np.float64)
    is_ood = np.repeat([False, True], [len(split["id_test"]), len(split["ood_test"])])
    assert leaked.is_ood.values.tolist() == is_ood.tolist()
    fits = {"": split["fit"], "_excluded": split["fit"][split["fit_labels"] != "cat"]}

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def area(distance, rows):
        return roc_auc_score(is_ood[rows], distance[rows])

    distances = {}
    for suffix, rows in fits.items():
        rows = rows.astype(np.float64)
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
        model = LedoitWolf().fit((rows - centre) / spread)
        away = (tests - centre) / spread - model.location_
        explicit = np.einsum("ni,ij,nj->n", away, np.linalg.inv(model.covariance_), away)
        assert -leaked[f"maha_score{suffix}"].values == pytest.approx(explicit, rel=1e-6)
        assert float(leaked[f"alpha{suffix}"]) == pytest.approx(model.shrinkage_, rel=1e-6)
        near = NearestNeighbors(n_neighbors=50).fit(unit(rows)).kneighbors(unit(tests))[0][:, -1]
        assert -leaked[f"knn_score{suffix}"].values == pytest.approx(near, abs=1e-6)
        distances[suffix] = {"maha": explicit, "knn": near}

    for seed in (0, 1, 2):
        found = leaked.sel(seed=seed)
        held = found.held_out.values
        probe = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(tests[~held], is_ood[~held])
        decision = probe.decision_function(tests)
        assert -found.oracle_score.values[held] == pytest.approx(decision[held], abs=1e-6)
        assert np.isnan(found.oracle_score.values[~held]).all()
        assert float(found.oracle_lda) == pytest.approx(area(decision, held), abs=1e-6)
        best = {}
        for suffix, pair in distances.items():
            for name, distance in pair.items():
                value = area(distance, held)
                assert float(found[f"{name}{suffix}"]) == pytest.approx(value, abs=1e-6)
                low, high = (float(found[f"{name}{suffix}_{end}"]) for end in ("low", "high"))
                assert low <= value <= high
            best[suffix] = max(area(distance, held) for distance in pair.values())
        assert float(found.best_unsup) == pytest.approx(best[""], abs=1e-6)
        assert float(found.contrast) == pytest.approx(best["_excluded"] - best[""], abs=1e-6)
        # Half of every class is held out.
        assert held.sum() == held.size // 2
        own = held[~is_ood]
        assert [own[split["id_test_labels"] == name].sum() for name in ("ant", "bee", "dog", "eel")] == [
            70
        ] * 4
    index = neighbourhood_leakage(split["id_test"], split["ood_test"])
    assert float(leaked.neighbourhood_leakage) == index


def test_a_leak_fires_and_leaving_the_class_out_does_not(split, leaked):
    assert leaked.attrs["verdict"] == "fires"
    assert leaked.fired.values.all()
    assert (leaked.contrast > 0.3).all()
    assert leaked.attrs["n_designated"] == 120
    kept = split["fit_labels"] != "cat"
    clean = audit_split(**changed(split, fit=split["fit"][kept], fit_labels=split["fit_labels"][kept]))
    assert clean.attrs["verdict"] == "not shown"
    assert "contrast" not in clean
    assert clean.attrs["n_designated"] == 0
    for name in ("maha", "knn", "best_unsup"):
        assert clean[name].values == pytest.approx(leaked[f"{name}_excluded"].values, abs=1e-9)
    assert clean.oracle_lda.values.tolist() == leaked.oracle_lda.values.tolist()
    # The competing index never looks at the fit set.
    assert float(clean.neighbourhood_leakage) == float(leaked.neighbourhood_leakage)


def test_groups_of_classes_are_one_class(split):
    tests, labels = draw(2, 140)
    group = np.isin(labels, ["cat", "dog"])
    found = audit_split(
        split["fit"],
        tests[~group],
        tests[group],
        fit_labels=split["fit_labels"],
        ood_class=["cat", "dog", "fox"],
    )
    assert found.attrs["n_designated"] == 240
    assert found.attrs["ood_class"] == "cat, dog, fox"
    assert "fit_labels lack 'fox'" in found.attrs["notes"]
    assert (found.contrast > 0.2).all()


def test_without_labels_there_is_no_contrast(split, leaked):
    plain = audit_split(split["fit"], split["id_test"], split["ood_test"])
    assert "contrast" not in plain
    assert plain.attrs["n_designated"] == -1
    assert plain.maha_score.values == pytest.approx(leaked.maha_score.values, rel=1e-9)
    assert "is not known" in explain(plain)


def test_words_say_the_verdict_and_its_scope(split, leaked):
    words = explain(leaked)
    assert words.startswith("Fires: the probe tells the OOD rows from the ID test rows (oracle LDA 1.000")
    assert "120 rows of the designated class (cat): that is a leak, whatever the scores say" in words
    change = float(leaked.contrast.mean())
    assert f"(exclusion contrast {change:+.3f})" in words
    assert "needs features that were trained on the classes" in words
    assert "retraining without the class is the gold standard" in words
    assert "clean" not in leaked.attrs["verdict"]


def test_few_rows_are_undetermined(split):
    few = changed(split, ood_test=split["ood_test"][:60])
    found = audit_split(**few)
    assert found.fired.values.all()  # the published rule does not ask how many rows there are
    assert found.attrs["verdict"] == "undetermined"
    # 0.05^(1/59) is the first above 0.95.
    assert "with 30 held-out rows" in found.attrs["reason"]
    assert "it takes 59 of ID and of OOD" in found.attrs["reason"]


def test_seeds_that_disagree_are_undetermined(split, leaked):
    best = np.sort(leaked.best_unsup.values)
    assert best[0] < best[-1]
    cut = round(float((best[0] + best[1]) / 2), 6)
    found = audit_split(**split, rule=Rule(tau=cut))
    assert found.attrs["verdict"] == "undetermined"
    assert f"on {int((best < cut).sum())} of 3 seeds" in found.attrs["reason"]


def test_neither_a_factor_nor_the_type_changes_the_answer(split, leaked):
    scaled = audit_split(
        **changed(
            split, **{name: split[name].astype(np.float64) * 1e3 for name in ("fit", "id_test", "ood_test")}
        )
    )
    for name in ("oracle_lda", "best_unsup", "best_unsup_excluded"):
        assert scaled[name].values == pytest.approx(leaked[name].values, abs=1e-9)
    assert scaled.maha_score.values == pytest.approx(leaked.maha_score.values, rel=1e-6)


def test_progress_rises_to_the_end_and_inputs_stay(split):
    held = {name: np.array(value) for name, value in split.items() if name != "ood_class"}
    for array in held.values():
        array.flags.writeable = False
    seen = []
    audit_split(**held, ood_class="cat", seeds=[5], progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]
    assert len({total for _, total in seen}) == 1


# What is wrong with a split


def test_test_rows_in_the_fit_set_are_refused_or_counted(split):
    fit = split["fit"].copy()
    fit[[4, 400]] = split["ood_test"][[7, 9]]
    spoiled = changed(split, fit=fit)
    with pytest.raises(InputError, match=r"ood_test is also in fit in 2 of 140 rows; first: row 7"):
        audit_split(**spoiled)
    found = audit_split(**spoiled, overlap="report", seeds=[0])
    assert (found.attrs["n_overlap_fit_ood"], found.attrs["n_overlap_fit_id"]) == (2, 0)
    assert "2 OOD rows are also fit rows." in explain(found)
    own = split["id_test"].copy()
    own[3] = split["ood_test"][0]
    with pytest.raises(InputError, match=r"ood_test is also in id_test in 1 of 140 rows; first: row 0"):
        audit_split(**changed(split, id_test=own))


def test_overlap_sees_through_types_and_the_sign_of_zero():
    rows = np.array([[0.1, -0.0], [1.0, 2.0]], dtype=np.float32)
    assert row_overlap(rows, rows.astype(np.float16)[::-1]).tolist() == [True, True]
    assert row_overlap(rows, [[np.float32(0.1), 0.0]]).tolist() == [True]
    assert row_overlap(rows, [[0.1, 0.0]]).tolist() == [True]  # at the precision of float32
    assert row_overlap(rows, [[0.1001, 0.0]]).tolist() == [False]
    assert row_overlap(np.array([[1, 2]]), [[1.0, 2.0], [2.0, 1.0]]).tolist() == [True, False]
    assert row_overlap(np.float16([[65504.0]]), np.float32([[1e6]])).tolist() == [False]


def nan(rows):
    rows = rows.copy()
    rows[[3, 8], 1] = np.nan
    return rows


REFUSED = {
    "nan": (
        lambda s: {"id_test": nan(s["id_test"])},
        r"id_test is missing \(nan\) in 2 of 560 rows; first: row 3",
    ),
    "float16 overflow": (
        lambda s: {"ood_test": np.where(s["ood_test"] > 4, np.inf, s["ood_test"]).astype(np.float16)},
        r"ood_test is infinite .* float16 ends at 65504",
    ),
    "objects": (lambda s: {"fit": s["fit"].astype(object)}, r"fit must be real numbers, got the type object"),
    "other width": (
        lambda s: {"ood_test": s["ood_test"][:, :4]},
        "ood_test has 4 features and the fit set 10",
    ),
    "zero rows": (
        lambda s: {"fit": s["fit"] * (np.arange(600) != 11)[:, None]},
        r"fit is all zero in 1 of 600 rows; first: row 11",
    ),
    "all constant": (lambda s: {"fit": np.ones_like(s["fit"])}, "all 10 features are constant"),
    "labels too short": (
        lambda s: {"fit_labels": s["fit_labels"][:5]},
        "fit_labels has 5 labels and fit has 600",
    ),
    "no labels": (
        lambda s: {"fit_labels": None, "id_test_labels": None},
        "ood_class is given without fit_labels",
    ),
    "another spelling": (
        lambda s: {"ood_class": "Cat "},
        "'Cat ', which is no class of fit_labels, but 'cat' is",
    ),
    "everything": (lambda s: {"ood_class": NAMES.tolist(), "id_test_labels": None}, "names every class"),
    "designated among ID": (
        lambda s: {"id_test_labels": np.where(np.arange(560) == 5, "cat", s["id_test_labels"])},
        r"of the designated OOD class in 1 of 560 rows; first: row 5 has 'cat'",
    ),
    "ID of an unknown class": (
        lambda s: {"id_test_labels": np.where(np.arange(560) < 9, "fox", s["id_test_labels"])},
        r"of a class that fit_labels lack in 9 of 560 rows; first: row 0 has 'fox'",
    ),
    "few fit rows": (lambda s: {"k": 500}, "k is 500, but the fit set has 480 rows without the designated"),
    "few tests": (lambda s: {"ood_test": s["ood_test"][:3]}, "ood_test has 2 rows to fit the probe and 1"),
    "rank": (
        lambda s: {"fit": s["fit"][::75], "fit_labels": s["fit_labels"][::75], "k": 2, "shrinkage": 0},
        "shrinkage 0 needs a covariance of full rank 10, but 8 fit rows give rank 7",
    ),
    "seeds": (lambda s: {"seeds": [1, 1]}, "seeds has one twice"),
    "overlap": (lambda s: {"overlap": "ignore"}, "overlap must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unusable_splits_are_named(split, case):
    new, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        audit_split(**changed(split, **new(split)))


def test_constant_features_and_few_rows_are_noted(split):
    def widened(rows, value):
        return np.column_stack([rows, np.full(len(rows), 2.0), value * np.ones(len(rows))])

    wide = {name: widened(split[name], 0) for name in ("fit", "id_test")}
    found = audit_split(**changed(split, **wide, ood_test=widened(split["ood_test"], 3)), seeds=[0])
    assert found.attrs["n_constant"] == 2
    assert "2 of 12 features are constant in the fit set (first: column 10)" in found.attrs["notes"]
    assert "test rows vary in 1 of them" in found.attrs["notes"]
    twice = {
        name: np.column_stack([split[name], split[name][:, 0]]) for name in ("fit", "id_test", "ood_test")
    }
    found = audit_split(**changed(split, **twice), seeds=[0], shrinkage=0)
    assert found.attrs["notes"] == "1 numerically null directions are left out at alpha 0."
    plain = audit_split(**split, seeds=[0], shrinkage=0)
    assert found.maha_score.values == pytest.approx(plain.maha_score.values, rel=1e-6)  # twice is as once
    few = changed(split, fit=split["fit"][::75], fit_labels=None, ood_class=None, id_test_labels=None)
    found = audit_split(**few, k=3, seeds=[0])
    assert "8 rows for 10 features: shrinkage alone makes its covariance invertible" in explain(found)


# The result as a battery


def test_an_audit_saves_as_a_battery_that_opens(tmp_path, leaked):
    battery = audit_battery(leaked, name="cats", backbone="resnet", id_dataset="zoo")
    save_battery(battery, tmp_path / "mine.nc")
    opened = load_battery(tmp_path / "mine.nc")
    assert opened.setting.values.tolist() == ["P_cats", "N_excl_cats"]
    assert opened.regime.values.tolist() == ["leak", "clean-excl"]
    assert fired(opened, Rule()).values.tolist() == [True, False]
    pairs = contrast(opened)
    assert float(pairs.difference[0]) == pytest.approx(float(leaked.contrast.mean()))
    assert opened.ood.values.tolist() == ["cat", "cat"]


def test_what_a_split_is_must_be_known_to_save_it(split, leaked):
    unknown = audit_split(split["fit"], split["id_test"], split["ood_test"], seeds=[0])
    with pytest.raises(InputError, match="regime must be given"):
        audit_battery(unknown)
    assert audit_battery(unknown, regime="leak").setting.values.tolist() == ["P_split"]
    with pytest.raises(InputError, match="120 fit rows carry the designated class: that is 'leak'"):
        audit_battery(leaked, regime="clean-novel")
    with pytest.raises(InputError, match="regime must be one of"):
        audit_battery(unknown, regime="dirty")


# The command line


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", *map(str, arguments)])
    caught = capsys.readouterr()
    return ended.value.code, caught.out, caught.err


def test_command_ends_with_the_verdict(capsys, tmp_path, split, leaked):
    file = tmp_path / "emb.npz"
    np.savez(file, **split)
    status, out, err = run(capsys, file, "--out", tmp_path / "b.nc", "--name", "cats")
    assert (status, err) == (1, "")
    assert out.startswith("emb.npz: fires\n")
    assert "- ood_class is what the array of that name says." in out
    assert load_battery(tmp_path / "b.nc").setting.values.tolist() == ["P_cats", "N_excl_cats"]
    mean = float(leaked.maha.mean())
    low, high = float(leaked.maha_low.min()), float(leaked.maha_high.max())
    assert f"Mahalanobis                  {mean:>6.3f}  {low:.3f} to {high:.3f}" in out

    status, out, _ = run(capsys, file, "--json", "--tau", "0.2", "--seeds", "0,1")
    answer = json.loads(out)
    assert (status, answer["verdict"]) == (0, "not shown")
    assert answer["maha"] == leaked.maha.values[:2].tolist()
    assert answer["facts"]["tau"] == 0.2
    assert answer["words"].startswith(
        "By its labels the fit set holds 120 rows of the designated class (cat): that is a leak"
    )
    assert "The scores, not shown: " in answer["words"]
    assert answer["headline"] == "a leak by the labels; scores: not shown"


def test_command_takes_one_file_per_role(capsys, tmp_path, split):
    files = {}
    for name in ("fit", "id_test", "ood_test", "fit_labels"):
        files[name] = tmp_path / f"{name}.npy"
        np.save(files[name], split[name][:60] if name == "ood_test" else split[name])
    options = [part for name, file in files.items() for part in (f"--{name.replace('_', '-')}", file)]
    status, out, _ = run(capsys, *options, "--ood-class", "cat")
    assert status == 2
    assert "undetermined" in out.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "there is nothing to audit"),
        (["none.npz"], "there is no file"),
        (["emb.npz", "--seeds", "a"], "whole numbers with commas between"),
        (["emb.npz", "--out", "b.csv"], "must be the name of a .nc file"),
        (["emb.npz", "--gate", "2"], "gate must lie between 0 and 1"),
        (["emb.npz", "--out", "b.nc"], "--out needs --regime"),
        (["emb.npz", "--ood-class", "cat"], "without fit_labels"),
        (["emb.npz", "--shrinkage", "auto"], "or use 'ledoit-wolf'"),
        (["emb.npz", "--fit", "train"], "fit is 'train', which is no array of the file"),
        (["other.npz"], "--name value, with - for _"),
    ],
)
def test_command_says_what_is_unusable(capsys, tmp_path, monkeypatch, split, options, message):
    monkeypatch.chdir(tmp_path)
    tables = {name: split[name] for name in ("fit", "id_test", "ood_test")}
    np.savez("emb.npz", **tables)
    np.savez("other.npz", *tables.values())
    status, out, err = run(capsys, *options)
    assert (status, out) == (3, "")
    assert message in err
