"""What the fingerprint is compared with: published pairs, the overlap index, the signature."""

import numpy as np
import pytest
import xarray as xr

from leakviz import InputError, load_battery
from leakviz.comparisons import (
    ALL_BLOCKS,
    block_ablation,
    contest_index,
    published_wild,
    quoted_figure,
    signature_settings,
)


def small_battery():
    """Two pairs and a novel setting; the index is the same within a pair."""
    texts = {
        "setting": ["P_a", "N_excl_a", "P_b", "N_excl_b", "N_novel"],
        "regime": ["leak", "clean-excl", "leak", "clean-excl", "clean-novel"],
        "pair": ["a", "a", "b", "b", ""],
        "ood": ["a", "a", "b", "b", "c"],
    }
    coords = {name: ("setting", values) for name, values in texts.items()}
    coords |= {name: ("setting", [name] * 5) for name in ("backbone", "id_dataset")}
    coords["distance"] = ("setting", [""] * 4 + ["far"])
    best = np.array([[0.3, 0.5], [0.8, 1.0], [0.6, 0.6], [0.7, 0.7], [0.9, 0.9]])
    variables = dict.fromkeys(("maha", "knn", "best_unsup"), (("setting", "seed"), best))
    variables["oracle_lda"] = (("setting", "seed"), np.ones((5, 2)))
    variables["neighbourhood_leakage"] = ("setting", [0.1, 0.1, 0.4, 0.4, 0.2])
    return xr.Dataset(variables, coords)


def test_contest_by_hand():
    table = contest_index(small_battery()).set_index("score")
    # Index: leaks 0.1, 0.4 against 0.1, 0.4, 0.2: wins 0 + 2, ties 1 + 1, of 6 pairs.
    assert table.loc["neighbourhood index", "auroc"] == pytest.approx((2 + 2 / 2) / 6)
    assert table.loc["neighbourhood index, matched pairs", "auroc"] == 0.5
    # 1 - best_unsup: leaks 0.6, 0.4 against 0.1, 0.3, 0.1.
    assert table.loc["1 − best-unsup", "auroc"] == 1
    assert table.loc["1 − best-unsup, matched pairs", ["n_leak", "n_clean"]].tolist() == [2, 2]
    assert (table["low"] <= table["auroc"]).all()


def test_a_leak_without_its_partner_is_in_no_pair():
    table = contest_index(small_battery().isel(setting=[0, 2, 3, 4])).set_index("score")
    assert table.loc["neighbourhood index, matched pairs", ["n_leak", "n_clean"]].tolist() == [1, 1]
    assert table.loc["neighbourhood index", ["n_leak", "n_clean"]].tolist() == [2, 2]


def test_the_shipped_head_to_head():
    battery = load_battery("computed")
    table = contest_index(battery).set_index("score")
    leak = (battery["regime"] == "leak").values
    index = battery["neighbourhood_leakage"].values
    wins = (index[leak][:, None] > index[~leak]).mean() + 0.5 * (index[leak][:, None] == index[~leak]).mean()
    assert table.loc["neighbourhood index", "auroc"] == pytest.approx(wins, abs=1e-12)
    assert table.loc["neighbourhood index, matched pairs", "auroc"] == 0.5
    assert table.loc["1 − best-unsup, matched pairs", "low"] > table.loc["neighbourhood index", "high"]


def test_the_published_wild_adds_up_to_the_papers_counts():
    wild = published_wild()
    images = wild[wild["regime"] == "clean-novel"]
    assert images["n"].sum() == 24
    assert images.loc[images["distance"] == "far", "n"].sum() == 18
    at = images[images["n"] == 1]
    fires = at[(at["oracle_low"] >= 0.95) & (at["unsup_low"] < 0.65)]
    assert fires["setting"].tolist() == ["N_c100_rn_cross"]  # the one that section 6 names
    hidden = images[images["n"] > 1].iloc[0]
    assert (hidden["n"], hidden["unsup_low"], hidden["unsup_high"]) == (10, 0.75, 1.0)
    # None of the hidden ones fires, and the published far pairs lie in the published range.
    assert at.loc[at["distance"] == "far", "unsup_low"].between(0.75, 1.0).all()
    memo = wild.set_index("setting").loc["wild_memo"]
    assert memo["unsup_low"] == max(0.326, 0.555, 0.634)  # Table 1
    assert memo["oracle_low"] - memo["unsup_low"] == pytest.approx(
        quoted_figure("tobacco/memo leaked (G2)", "gap_gamma").low, abs=0.005
    )
    assert wild["setting"].is_unique
    assert not wild.isna().any().any()


def test_signature_readings_and_blocks_are_means_of_the_battery():
    battery = load_battery("computed-signature")
    frame = signature_settings(battery).set_index("setting")
    assert set(frame["convention"]) == {"all", "kept", "dropped"}
    np.testing.assert_allclose(frame["prs_maha"], battery["maha"].mean("seed"), atol=1e-11)
    table = block_ablation(battery).set_index(["group", "block"])
    for group, of in table.groupby("group"):
        four = of[of["weakest"].notna()]
        assert four["weakest"].sum() == four["n"].iloc[0], group
    kept = frame[(frame["regime"] == "clean-excl") & (frame["convention"] == "kept")]
    assert table.loc[("clean-excl, kept", ALL_BLOCKS), "mean"] == pytest.approx(kept["prs_maha"].mean())
    # The displacement knows no centroid: the convention does not touch it.
    both = [table.loc[(f"clean-excl, {c}", "displacement"), "mean"] for c in ("kept", "dropped")]
    assert both[0] == pytest.approx(both[1], abs=1e-12)


def test_what_is_not_there_is_said():
    with pytest.raises(InputError, match="no 'neighbourhood_leakage'"):
        contest_index(load_battery("published"))
    with pytest.raises(InputError, match="none of signatures"):
        block_ablation(load_battery("computed"))
    with pytest.raises(InputError, match="has 0 rows of auroc"):
        quoted_figure("nothing", "auroc")
