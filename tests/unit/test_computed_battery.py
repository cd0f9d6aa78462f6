"""What the shipped battery shows: each fact of the design's notes, as it is on these files."""

import json
import re
import time

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from leakviz.audit import audit_split
from leakviz.battery import fit_set, knn_of, load_backbone, load_battery, rows_of, sample_rows
from leakviz.battery.describe import describe_battery
from leakviz.detectors import decompose, detector_auroc, oracle_lda
from leakviz.errors import InputError
from leakviz.fingerprint import Rule, contrast, fired, score_battery, sweep_rule
from leakviz.paths import data_dir
from leakviz.whitening import ALPHAS, sweep_shrinkage, whitening_spectrum

BACKBONES = ["resnet-fashion", "vit-fashion", "resnet-mnist", "vit-mnist"]
DETECTORS = ["maha", "knn", "isolation_forest", "one_class_svm", "lof"]
FOLDER = data_dir() / "battery"


@pytest.fixture(scope="module")
def battery():
    return load_battery("computed")


@pytest.fixture(scope="module")
def signature():
    return load_battery("computed-signature")


def part(battery, chosen):
    return battery.isel(setting=np.flatnonzero(np.asarray(chosen)))


def singles(battery):
    return part(battery, (battery.regime == "leak") & (battery["size"] == 1))


# The files


def test_the_files_are_small():
    sizes = [path.stat().st_size for path in FOLDER.glob("*.nc")]
    assert len(sizes) == 6
    assert max(sizes) < 5_000_000
    assert sum(sizes) < 16_000_000


def test_the_settings_are_those_of_the_plan(battery):
    counts = battery.regime.to_series().value_counts().to_dict()
    assert counts == {"leak": 120, "clean-excl": 120, "clean-novel": 20, "clean-retrained": 8}
    assert battery.backbone.to_series().value_counts().to_dict() == dict.fromkeys(BACKBONES, 67)
    assert set(battery.ood.values[battery.regime.values == "clean-retrained"]) == {
        "Shirt",
        "Sandal",
        "2",
        "4",
    }
    assert (battery.alpha.values == ALPHAS).all()
    assert battery.sizes["alpha"] == 41


def test_backbones_were_trained_well_enough_to_speak_of():
    """Far above chance, 0.1; the digits nearly without error."""
    for name in BACKBONES:
        facts = json.loads(load_backbone("computed", name).facts["trainings"])
        assert len(facts) == 3
        least = 0.95 if "mnist" in name else 0.8
        assert all(fact["accuracy"] > least and fact["seconds"] > 0 for fact in facts)


def test_a_battery_refuses_backbones_of_another(battery):
    assert load_backbone(battery, "vit-mnist").name == "vit-mnist"
    other = battery.assign_attrs(backbones=json.dumps({"vit-mnist": "0" * 64}))
    with pytest.raises(InputError, match="is not the file that the battery was made with"):
        load_backbone(other, "vit-mnist")


def test_the_readme_quotes_what_describe_prints():
    """Word by word; what is computed anew may differ in the last digit on another processor."""
    quoted = (FOLDER / "README.md").read_text(encoding="utf-8").partition("### Backbones")[2]
    printed = describe_battery().partition("### Backbones")[2]
    (words, numbers), (own_words, own_numbers) = (
        (parts[::2], [float(number) for number in parts[1::2]])
        for parts in (re.split(r"(\d+\.\d+(?:e-\d+)?)", text.strip()) for text in (quoted, printed))
    )
    assert words == own_words
    assert own_numbers == pytest.approx(numbers, abs=1.5e-3, rel=0)
    assert len(numbers) > 300


# Facts


@pytest.mark.parametrize("name", DETECTORS)
def test_fact_leaks_of_balanced_classes_average_exactly_one_half(battery, name):
    means = singles(battery)[name].groupby("backbone").mean("setting")
    assert means.shape == (4, 3)
    assert means.values == pytest.approx(0.5, abs=1e-9)


def test_fact_one_half_holds_for_groups_too(battery, signature):
    """Every class is in as many groups as any other, and so is every pair of classes."""
    for data in (battery, signature):
        leaks = part(data, data.regime == "leak")
        for size in (2, 3):
            means = part(leaks, leaks["size"] == size)[["maha", "knn"]].groupby("backbone").mean("setting")
            assert means.to_array().values == pytest.approx(0.5, abs=1e-9)


def test_fact_one_half_holds_at_every_alpha(battery):
    means = singles(battery).maha_by_alpha.astype(np.float64).groupby("backbone").mean("setting")
    assert means.shape == (4, 2, 41, 3)
    assert means.values == pytest.approx(0.5, abs=1e-6)


def test_fact_one_half_on_the_stored_features():
    backbone = load_backbone("computed", "vit-mnist")
    score = decompose(fit_set(backbone), covariance="tied").score(backbone.rows, [0.01])[0]
    for seed in backbone.seeds:
        parts = [rows_of(backbone, name, seed=seed) for name in backbone.classes]
        assert np.mean([detector_auroc(score[a], score[b]) for a, b in parts]) == pytest.approx(0.5, abs=1e-9)


def test_fact_no_clean_setting_fires_at_the_published_rule(battery):
    """Counted here without the code that counts."""
    oracle, unsup = (battery[name].values.mean(axis=1) for name in ("oracle_lda", "best_unsup"))
    fires = (oracle >= 0.95) & (unsup < 0.65)
    clean = battery.regime.values != "leak"
    assert (clean.sum(), fires[clean].sum()) == (148, 0)
    assert (fires == fired(battery, Rule()).values).all()
    # Every leak that fires is a leak; not every leak fires.
    assert 0 < fires.sum() < 120


def test_fact_sensitivity_rises_with_tau_and_stops_below_all(battery):
    single = part(battery, battery["size"] <= 1)
    sweep = sweep_rule(single, gates=[0.95], taus=[0.65, 0.7, 0.75, 0.8, 0.85]).isel(gate=0)
    leaks = sweep.correct.sel(regime="leak").values
    assert int(sweep.n.sel(regime="leak")) == 40
    assert (np.diff(leaks) >= 0).all()
    # Two classes never fire, whatever tau: their oracle does not reach the gate.
    shut = singles(battery).oracle_lda.mean("seed").values < 0.95
    assert set(singles(battery).ood.values[shut]) == {"Shirt"}
    assert leaks[-1] == 40 - shut.sum() == 38
    # Up to 0.85 no novel source fires.
    novel = [sweep.correct.sel(regime=f"clean-novel {d}").values.tolist() for d in ("far", "near")]
    assert novel == [[18] * 5, [2] * 5]


def test_fact_the_gate_costs_and_without_it_the_score_is_almost_perfect(battery):
    score = score_battery(part(battery, battery["size"] <= 1), Rule())
    assert float(score.auroc) < 0.96
    assert float(score.auroc_ungated) > 0.99


def test_fact_the_digit_2_is_missed_on_both_architectures(battery):
    leaks = singles(battery)
    missed = part(leaks, ~fired(leaks, Rule()).values & (leaks.id_dataset == "mnist").values)
    assert {"resnet-mnist", "vit-mnist"} == set(missed.backbone.values[missed.ood.values == "2"])


def test_fact_the_contrast_parts_every_matched_pair(battery):
    pairs = contrast(battery)
    assert len(pairs) == 120
    assert (pairs.difference > 0).all()


def test_fact_the_contrast_holds_seed_by_seed_and_partners_share_the_oracle(battery):
    leaks = part(battery, battery.regime == "leak")
    excluded = battery.sel(setting=["N_excl_" + pair for pair in leaks.pair.values])
    assert (excluded.best_unsup.values > leaks.best_unsup.values).all()
    assert (excluded.oracle_lda.values == leaks.oracle_lda.values).all()


def test_fact_groups_spread_less_and_fire_more(battery):
    leaks = part(battery, battery.regime == "leak")
    fires = fired(leaks, Rule()).values
    shares, spreads = [], []
    for size in (1, 2, 3):
        chosen = leaks["size"].values == size
        shares.append(fires[chosen].sum())
        spreads.append(leaks.best_unsup.mean("seed").values[chosen].std())
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]
    assert spreads == sorted(spreads, reverse=True)


def test_fact_excluded_flatters_retraining(battery):
    pairs = contrast(battery).dropna()
    assert len(pairs) == 8
    assert (pairs.excluded > pairs.retrained).all()
    # Shirt again: without training on it, it looks as much in-distribution as when it leaks.
    shirt = pairs[pairs.ood == "Shirt"]
    assert (abs(shirt.retrained - shirt.leaked) < 0.06).all()
    sandal = pairs[pairs.ood == "Sandal"]
    assert (sandal.retrained - sandal.leaked > 0.2).all()


def test_fact_ledoit_wolf_alphas_are_small(battery):
    assert (battery.ledoit_wolf > 0).all()
    assert float(battery.ledoit_wolf.sel(covariance="one-class").max()) < 0.002
    assert float(battery.ledoit_wolf.sel(covariance="tied").max()) < 0.01


def test_fact_alpha_moves_one_class_more_than_tied(battery):
    spread = battery.maha_by_alpha.mean("seed")
    spread = spread.max("alpha") - spread.min("alpha")
    assert float(spread.sel(covariance="one-class").median()) > 1.5 * float(
        spread.sel(covariance="tied").median()
    )


def test_fact_full_euclidean_hurts_here_and_heals_small_fit_sets():
    backbone = load_backbone("computed", "resnet-fashion")

    def sweep(ood, **options):
        own, other = rows_of(backbone, ood)
        fit = fit_set(backbone, **options)
        return sweep_shrinkage(fit, backbone.rows[own], backbone.rows[other], alphas=[0, 0.1, 1])

    digits = sweep("small-digits").auroc.values
    assert digits[0] > 0.9 > 0.5 > digits[2]
    coat = sweep("Coat", without=["Coat"]).auroc.values
    assert coat[1] > coat[0] > coat[2]
    few = sweep("Coat", without=["Coat"], rows=150)
    assert few.auroc_ledoit_wolf > few.auroc[0] + 0.05


@pytest.mark.parametrize("name", BACKBONES)
def test_fact_the_budget_tells_where_alpha_matters(name):
    """The top tenth of directions holds the signal on ResNets, not on ViTs; the bottom tenth is paid for little."""
    backbone = load_backbone("computed", name)
    found = []
    for ood in backbone.classes:
        rows = backbone.rows[rows_of(backbone, ood)[1]]
        found.append(whitening_spectrum(fit_set(backbone, without=[ood]), rows, alphas=[0]))
    top = np.array([float(answer.top_signal_mass) for answer in found])
    assert top.min() > 0.9 if name.startswith("resnet") else np.median(top) < 0.5
    spent = np.array([float(answer.bottom_budget[0]) for answer in found])
    held = np.array([float(answer.bottom_signal_mass) for answer in found])
    assert held.max() < 0.005
    assert (spent > 2 * held).all() if name.startswith("resnet") else spent.max() < 0.2


def test_fact_the_layer_norm_leaves_a_null_direction():
    backbone = load_backbone("computed", "vit-fashion")
    spectrum = decompose(fit_set(backbone), standardize=False)
    assert spectrum.eigenvalues[-1] < 1e-6 * spectrum.eigenvalues[0]
    assert spectrum.eigenvalues[-2] > 1e-6 * spectrum.eigenvalues[0]


def test_fact_the_neighbourhood_index_sees_no_fit_set(battery):
    leaks = part(battery, battery.regime == "leak")
    excluded = battery.sel(setting=["N_excl_" + pair for pair in leaks.pair.values])
    assert (excluded.neighbourhood_leakage.values == leaks.neighbourhood_leakage.values).all()
    is_leak = (battery.regime == "leak").values
    assert 0.4 < roc_auc_score(is_leak, battery.neighbourhood_leakage.values) < 0.65
    # Retraining raises it: overlap marks near-OOD, not a leak.
    again = part(battery, battery.regime == "clean-retrained")
    before = battery.sel(setting=["P_" + pair for pair in again.pair.values])
    assert (again.neighbourhood_leakage.values > before.neighbourhood_leakage.values).all()


# The cache


def test_aurocs_of_the_cache_are_those_of_the_battery(battery):
    """Half-precision rows and single-precision sums, against what was computed on the features themselves."""
    backbone = load_backbone("computed", "resnet-fashion")
    stops = [0, 10, 24, 40]
    own = part(battery, (battery.backbone == backbone.name) & (battery.regime != "clean-retrained"))
    worst = dict.fromkeys(("maha", "knn", "by_alpha", "oracle"), 0.0)
    for place in range(0, own.sizes["setting"], 4):
        row = own.isel(setting=place)
        ood = row.ood.item()
        without = ood.split("+") if row.regime == "clean-excl" else []
        fit = fit_set(backbone, without=without)
        maha = decompose(fit).score(backbone.rows, [*ALPHAS[stops], fit.ledoit_wolf()])
        scores = np.vstack([maha, knn_of(backbone, without=without)])
        one, two = rows_of(backbone, ood, seed=1)
        *by_alpha, at_chosen, knn = (detector_auroc(score[one], score[two]) for score in scores)
        exact = row.sel(seed=1)
        worst["maha"] = max(worst["maha"], abs(at_chosen - float(exact.maha)))
        worst["knn"] = max(worst["knn"], abs(knn - float(exact.knn)))
        known = exact.maha_by_alpha.sel(covariance="one-class").values[stops]
        worst["by_alpha"] = max(worst["by_alpha"], np.abs(np.array(by_alpha) - known).max())
    own_rows, other_rows = rows_of(backbone, "Coat")
    half = backbone.held_out[0][np.concatenate([own_rows, other_rows])]
    oracle = oracle_lda(backbone.rows[own_rows], backbone.rows[other_rows], held_out=half).auroc
    exact = battery.sel(setting="P_resnet-fashion_Coat", seed=0)
    worst["oracle"] = abs(oracle - float(exact.oracle_lda))
    assert max(worst.values()) < 1e-3, worst


@pytest.mark.parametrize("rows", [None, 150, 2000])
def test_another_fit_set_takes_a_moment(rows):
    backbone = load_backbone("computed", "resnet-fashion")
    taken = []
    for name in ("Coat", "Bag", "Dress", "Shirt", "Sneaker"):
        started = time.perf_counter()
        decompose(fit_set(backbone, without=[name, "Sandal"], rows=rows))
        taken.append(time.perf_counter() - started)
    assert min(taken) < 0.1


def test_scores_of_a_retrained_backbone_give_its_aurocs(battery):
    backbone = load_backbone("computed", "vit-fashion")
    scores, labels = backbone.retrained["Shirt"], backbone.kinds[: 10 * 500]
    exact = battery.sel(setting="N_retrain_vit-fashion_Shirt")
    is_ood = labels == backbone.classes.index("Shirt")
    for place in range(3):
        half = backbone.held_out[place][: labels.size]
        for name in ("maha", "knn", "oracle_lda"):
            values = scores[name][place] if scores[name].ndim == 2 else scores[name]
            area = roc_auc_score(is_ood[half], -values[half])
            assert area == pytest.approx(float(exact[name][place]), abs=1e-5)
        assert np.isnan(scores["oracle_lda"][place][~half]).all()


def test_audit_of_saved_features_agrees_with_scikit_learn():
    backbone = load_backbone("computed", "vit-mnist")
    fit, labels = sample_rows(backbone, rows=2000)
    own, other = rows_of(backbone, "4")
    id_test, ood_test = backbone.rows[own], backbone.rows[other]
    id_labels = np.array(backbone.classes)[backbone.kinds[own]]
    audit = audit_split(
        fit,
        id_test,
        ood_test,
        fit_labels=np.array(backbone.classes)[labels],
        ood_class="4",
        id_test_labels=id_labels,
        seeds=[0],
    )
    rows = np.concatenate([id_test, ood_test]).astype(np.float64)
    is_ood = np.repeat([False, True], [own.size, other.size])
    scored = audit.held_out.values[0]
    assert scored.sum() == 1250

    def reference(members):
        centre, spread = members.mean(axis=0), members.std(axis=0)
        gaussian = LedoitWolf().fit((members - centre) / spread)
        distance = gaussian.mahalanobis((rows - centre) / spread)
        near = NearestNeighbors(n_neighbors=50).fit(normalize(members)).kneighbors(normalize(rows))[0][:, -1]
        return [roc_auc_score(is_ood[scored], values[scored]) for values in (distance, near)]

    train = rows[~scored]
    scaled = (rows - train.mean(axis=0)) / train.std(axis=0)
    probe = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(scaled[~scored], is_ood[~scored])
    oracle = roc_auc_score(is_ood[scored], probe.decision_function(scaled[scored]))
    assert float(audit.oracle_lda[0]) == pytest.approx(oracle, abs=1e-6)
    maha, knn = reference(fit.astype(np.float64))
    assert float(audit.maha[0]) == pytest.approx(maha, abs=1e-6)
    assert float(audit.knn[0]) == pytest.approx(knn, abs=1e-6)
    best = max(reference(fit[labels != 4].astype(np.float64)))
    assert float(audit.best_unsup_excluded[0]) == pytest.approx(best, abs=1e-6)


# Signature space


def test_the_signature_has_the_same_design(signature):
    assert signature.convention.to_series().value_counts().to_dict() == {"all": 70, "kept": 60, "dropped": 60}
    assert (signature.space == "signature").all()
    assert (signature.prs_maha.values == signature.maha.values).all()
    assert contrast(signature).shape[0] == 60


def test_fact_the_signature_detects_less_than_the_embedding(signature):
    kept, dropped = (
        part(signature, signature.convention == name).mean("seed") for name in ("kept", "dropped")
    )
    assert (kept.prs_maha < kept.embedding_maha).all()
    assert (dropped.prs_maha < dropped.embedding_maha).mean() > 0.9
    # Which centroids the distances are measured to is no detail.
    assert float(dropped.prs_maha.mean() - kept.prs_maha.mean()) > 0.05


def test_fact_leaks_fire_in_signature_space_and_not_only_they(signature):
    """As it is: among the settings that fire are three clean ones, all on one backbone."""
    fires = part(signature, fired(signature, Rule()).values)
    leaks = fires.regime.values == "leak"
    assert leaks.sum() > 10 * (~leaks).sum()
    false = part(fires, ~leaks)
    assert set(false.backbone.values) == {"vit-mnist"}
    assert false.sizes["setting"] == 3
    assert "dropped" not in false.convention.values


def test_fact_the_base_scalar_is_no_detector_here(signature):
    excluded = part(signature, signature.convention == "kept")
    assert float(abs(excluded.ahss.mean() - 0.5)) < 0.05
    assert float(excluded.ahss.mean("seed").min()) < 0.3
