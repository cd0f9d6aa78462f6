"""The battery's schema, its files, and what data/published/README.md says about the shipped one."""

import csv
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from leakviz import paths
from leakviz.battery import check_battery, load_battery, save_battery
from leakviz.errors import InputError
from leakviz.paths import data_dir

PUBLISHED = Path(__file__).parents[2] / "data" / "published"


@pytest.fixture(scope="module")
def published():
    return load_battery("published")


@pytest.fixture(scope="module")
def rows():
    """Read the published table without any code of ours."""
    with open(PUBLISHED / "battery_table12.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def small(**changes):
    """Build a battery of three settings: a pair and a novel one."""
    text = {
        "setting": ["P_a", "N_excl_a", "N_far"],
        "backbone": ["net"] * 3,
        "id_dataset": ["digits"] * 3,
        "regime": ["leak", "clean-excl", "clean-novel"],
        "distance": ["", "", "far"],
        "ood": ["seven", "seven", "letters"],
        "pair": ["a", "a", ""],
    }
    numbers = {name: [0.25, 0.5, 1.0] for name in ("oracle_lda", "maha", "knn", "best_unsup")}
    coords = {name: ("setting", changes.get(name, values)) for name, values in text.items()}
    variables = {name: ("setting", changes.get(name, values)) for name, values in numbers.items()}
    return xr.Dataset(variables, coords)


# The published battery


def test_published_battery_holds_the_table_digit_by_digit(published, rows):
    assert len(rows) == 52
    assert published.sizes == {"setting": 52}
    for name in ("setting", "backbone", "id_dataset", "regime", "distance", "ood"):
        assert published[name].values.tolist() == [row[name] for row in rows]
    for name in ("oracle_lda", "maha", "knn", "best_unsup"):
        assert published[name].dtype == np.float64
        assert [Decimal(repr(float(v))) for v in published[name].values] == [Decimal(r[name]) for r in rows]
    assert published.fired_published.dtype == bool
    assert published.fired_published.values.tolist() == [row["fired_published"] == "yes" for row in rows]


def test_published_battery_says_where_it_is_from(published):
    assert set(published.attrs) == {"title", "source", "license", "created_by", "content_hash"}
    assert "2607.19393, Table 12" in published.attrs["source"]


def test_regimes_of_the_published_battery(published):
    regime, distance = published.regime.values, published.distance.values
    assert {name: int((regime == name).sum()) for name in np.unique(regime)} == {
        "leak": 20,
        "clean-excl": 20,
        "clean-novel": 12,
    }
    assert int(((regime == "clean-novel") & (distance == "far")).sum()) == 8
    assert int(((regime == "clean-novel") & (distance == "near")).sum()) == 4
    assert set(distance[regime != "clean-novel"]) == {""}


def test_published_pairs_join_a_leak_with_its_exclusion(published):
    names = published.setting.values
    for pair in sorted(set(published.pair.values) - {""}):
        assert set(names[published.pair.values == pair]) == {f"P_{pair}", f"N_excl_{pair}"}
    assert len(set(published.pair.values)) == 21  # 20 pairs and ''
    assert set(published.regime.values[published.pair.values == ""]) == {"clean-novel"}


def test_fact_pair_partners_have_the_same_oracle(rows):
    oracle = {row["setting"]: row["oracle_lda"] for row in rows}
    leaks = [name for name in oracle if name.startswith("P_")]
    assert len(leaks) == 20
    assert all(oracle[name] == oracle["N_excl_" + name.removeprefix("P_")] for name in leaks)


def test_fact_best_unsup_is_a_mean_of_maxima(published):
    larger = np.maximum(published.maha, published.knn)
    thousandths = ((published.best_unsup - larger) * 1000).round().astype(int)
    assert thousandths.values[thousandths.values != 0].tolist() == [1]
    assert published.setting.values[thousandths.values != 0].tolist() == ["P_c100_rn_g3"]


def test_fact_every_oracle_is_at_least_0_942(published):
    assert float(published.oracle_lda.min()) == 0.942


def test_content_hash_is_pinned(published):
    # A new value here means that every saved battery gets a new hash: only ever on purpose.
    assert (
        published.attrs["content_hash"] == "b1e3f139fb2f05873fa03f5f5bb4d4fa4bb88f9fe14e69d7d6380ffae2d8aed3"
    )


# The other published tables, as their README describes them


def read(name):
    return pd.read_csv(PUBLISHED / name)


def test_fact_blind_panel_has_ten_models_and_none_leaks():
    panel = read("blind_honest_panel.csv")
    assert len(panel) == 10
    assert set(panel.verdict) == {"clean"}
    assert set(panel.spike_at_95) == {0}
    assert panel.C_star.between(0.5, 1).all()


def test_fact_lodo_tables_have_the_shapes_that_the_readme_gives():
    assert len(read("lodo_datasets.csv")) == 18
    accuracy = read("lodo_accuracy.csv")
    assert accuracy.held_out_dataset.nunique() == 17
    per_run = accuracy.groupby(["classifier", "threshold_strategy"]).size()
    assert len(per_run) == 4
    assert set(per_run) == {17}
    features = read("lodo_sae_features.csv")
    assert features.quadrant.value_counts().to_dict() == {"Q1": 5, "Q2": 5, "Q3": 5, "Q4": 5}
    assert len(read("lodo_top20_sae_features.csv")) == 20
    assert int(read("lodo_shortcut_dependency_counts.csv").n_shortcut_features.sum()) == 14


def test_fact_quoted_figures_are_ordered_and_from_the_three_papers():
    quoted = read("quoted_figures.csv")
    assert (quoted.low <= quoted.high).all()
    assert set(quoted.arxiv_id.astype(str)) == {"2607.19393", "2606.11267", "2602.14161"}


# The schema


def test_a_small_battery_and_its_subsets_are_batteries(published):
    check_battery(small())
    check_battery(published.isel(setting=[0, 5]))  # leaks without their partners
    check_battery(published.isel(setting=[]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"setting": ["x", "y", "y"]},
            r"setting is repeated in 1 of 3 settings; first: row 2 \(setting 'y'\)",
        ),
        ({"setting": ["x", "", ""]}, r"setting is empty in 2 of 3 settings; first: row 1"),
        (
            {"regime": ["leak", "cleann", "odd"]},
            r"regime is unknown in 2 of 3 .* row 1 .* has 'cleann'; use one of",
        ),
        ({"distance": ["", "", "middle"]}, r"distance is unknown in 1 of 3 .* has 'middle'"),
        (
            {"maha": [0.5, np.nan, 1.01]},
            r"maha is missing or outside \[0, 1\] in 2 of 3 .* row 1 .* has 'nan'",
        ),
        ({"knn": [0.5, 0.5, np.inf]}, r"knn is missing or outside .* row 2 .* has 'inf'"),
        ({"best_unsup": [-0.001, 0.5, 0.5]}, r"best_unsup is missing or outside .* has '-0.001'"),
        ({"oracle_lda": ["a", "b", "c"]}, r"oracle_lda must be numbers"),
        ({"pair": ["a", "a", "a"]}, r"pair is not allowed in 1 of 3 .* row 2 .* only a leak row"),
        ({"regime": ["leak", "leak", "clean-novel"]}, r"pair is used twice in 1 of 3 .* row 1"),
        ({"ood": ["seven", "eight", "x"]}, r"pair is inconsistent in 1 of 3 .* partners must share ood"),
        (
            {"backbone": np.array(["net", None, "net"], object)},
            r"backbone must be text, but 1 of 3 .* row 1 has nan",
        ),
    ],
)
def test_schema_names_the_breach_its_first_row_and_the_count(changes, message):
    with pytest.raises(InputError, match=message):
        check_battery(small(**changes))


def test_schema_wants_every_dim_coordinate_and_variable():
    with pytest.raises(InputError, match="no dim 'setting'"):
        check_battery(xr.Dataset())
    with pytest.raises(InputError, match="needs the coordinate 'pair'"):
        check_battery(small().drop_vars("pair"))
    with pytest.raises(InputError, match="needs the coordinate 'setting'"):
        check_battery(small().drop_vars("setting"))
    with pytest.raises(InputError, match="needs the variable 'knn'"):
        check_battery(small().drop_vars("knn"))
    with pytest.raises(InputError, match=r"maha must have dim 'setting' and at most 'seed'"):
        check_battery(small().assign(maha=small().maha.expand_dims("run")))
    with pytest.raises(InputError, match="fired_published must be bool"):
        check_battery(small().assign(fired_published=("setting", ["yes", "no", "no"])))
    with pytest.raises(InputError, match="without a seed"):
        check_battery(small().assign(maha=small().maha.expand_dims(seed=0)))


def test_schema_looks_at_every_seed():
    seeds = small().maha.expand_dims(seed=[0, 1]).copy()
    check_battery(small().assign(maha=seeds))
    seeds[1, 2] = 1.5
    with pytest.raises(InputError, match=r"maha is missing or outside .* in 1 of 3 .* row 2 .* has '1.5'"):
        check_battery(small().assign(maha=seeds))


def test_a_pair_may_have_a_third_partner_that_was_retrained():
    three = small(
        setting=["P_a", "N_excl_a", "N_retrain_a"],
        regime=["leak", "clean-excl", "clean-retrained"],
        distance=["", "", ""],
        ood=["seven"] * 3,
        pair=["a", "a", "a"],
    )
    check_battery(three)
    check_battery(three.isel(setting=[2]))  # a subset is a battery
    twice = three.assign_coords(regime=("setting", ["leak", "clean-retrained", "clean-retrained"]))
    with pytest.raises(InputError, match=r"pair is used twice .* at most one clean-retrained row"):
        check_battery(twice)


def test_further_variables_are_looked_at_in_every_dim():
    values = np.full((3, 2, 4), 0.5)
    battery = small().assign(maha_by_alpha=(("setting", "covariance", "alpha"), values))
    check_battery(battery)
    check_battery(battery.isel(setting=[]))
    values[1, 1, 3] = np.nan
    told = r"maha_by_alpha is missing or outside .* in 1 of 3 .* row 1 .* has 'nan'"
    with pytest.raises(InputError, match=told):
        check_battery(small().assign(maha_by_alpha=(("setting", "covariance", "alpha"), values)))
    with pytest.raises(InputError, match="lof must have the dim 'setting'"):
        check_battery(small().assign(lof=("seed", [0.5])))


# Files


def test_a_saved_battery_comes_back_identical(published, tmp_path):
    save_battery(published, tmp_path / "copy.nc")
    assert load_battery(tmp_path / "copy.nc").identical(published)
    assert [path.name for path in tmp_path.iterdir()] == ["copy.nc"]


def test_text_of_any_dim_comes_back_as_text(tmp_path):
    battery = small().assign_coords(space=("setting", ["embedding"] * 3), covariance=["one-class", "tied"])
    save_battery(battery, tmp_path / "text.nc")
    back = load_battery(tmp_path / "text.nc")
    assert back.covariance.dtype.kind == back.space.dtype.kind == "U"
    save_battery(back, tmp_path / "again.nc")
    assert load_battery(tmp_path / "again.nc").identical(back)


def test_seeds_and_extra_variables_survive(tmp_path):
    battery = small().assign(best_unsup=small().best_unsup.expand_dims(seed=[0, 1, 2]))
    battery = battery.assign(mean=(("backbone_row", "feature"), np.ones((2, 3), np.float32)))
    before = battery.copy(deep=True)
    save_battery(battery, tmp_path / "rich.nc")
    assert battery.identical(before)
    back = load_battery(str(tmp_path / "rich.nc"))
    assert back.best_unsup.dims == ("seed", "setting")
    assert back["mean"].dtype == np.float32
    assert back.attrs["license"] == "not stated"


def test_saving_replaces_and_leaves_the_old_file_when_it_fails(published, tmp_path):
    path = tmp_path / "battery.nc"
    save_battery(published, path)
    save_battery(small(), path)
    assert load_battery(path).sizes["setting"] == 3
    with pytest.raises(InputError, match="repeated"):
        save_battery(small(setting=["x", "x", "x"]), path)
    unwritable = small().assign_attrs(note={"not": "storable"})
    with pytest.raises(TypeError, match="note"):
        save_battery(unwritable, path)
    assert load_battery(path).sizes["setting"] == 3
    assert [file.name for file in tmp_path.iterdir()] == ["battery.nc"]


def test_content_hash_follows_the_content_alone(published, tmp_path):
    def content_hash(battery):
        save_battery(battery, tmp_path / "hash.nc")
        return load_battery(tmp_path / "hash.nc").attrs["content_hash"]

    original = published.attrs["content_hash"]
    assert content_hash(published.assign_attrs(title="another title")) == original
    assert content_hash(published[["knn", "best_unsup", "maha", "oracle_lda", "fired_published"]]) == original
    signed_zeros = [small(maha=[0.5, 0.5, zero]) for zero in (0.0, -0.0)]
    assert content_hash(signed_zeros[0]) == content_hash(signed_zeros[1])
    changed = published.copy(deep=True)
    changed.maha[3] += 0.001
    assert content_hash(changed) != original
    renamed = published.assign_coords(ood=("setting", ["x", *published.ood.values[1:]])).isel(setting=[0])
    assert content_hash(renamed) != content_hash(published.isel(setting=[0]))


def test_a_file_that_was_changed_after_saving_is_refused(published, tmp_path):
    changed = published.copy(deep=True)
    changed.best_unsup[0] = 0.1
    changed.to_netcdf(tmp_path / "changed.nc", engine="h5netcdf")
    with pytest.raises(InputError, match="does not match its content_hash"):
        load_battery(tmp_path / "changed.nc")


HEADER = "setting,id_dataset,backbone,regime,distance,ood,oracle_lda,maha,knn,best_unsup"
LEAK = "P_a,NA,net,leak,,seven,0.99,0.4,0.5,0.5"
EXCLUDED = "N_excl_a,NA,net,clean-excl,,seven,0.99,0.8,0.9,0.9"


def write(folder, *lines):
    path = folder / "mine.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return path


def test_a_csv_of_ones_own(tmp_path):
    lonely = "P_b,NA,net,leak,,eight,0.99,0.4,0.5,0.5"
    battery = load_battery(write(tmp_path, HEADER, LEAK, EXCLUDED, lonely))
    assert battery.pair.values.tolist() == ["a", "a", ""]
    assert battery.id_dataset.values.tolist() == ["NA"] * 3  # a name, no missing value
    assert "fired_published" not in battery
    assert battery.attrs["title"] == "mine"
    assert battery.attrs["source"] == "not stated"


def test_a_csv_may_name_its_pairs(tmp_path):
    rows = ["x,d,net,leak,,7,1,0,0,0,one", "y,d,net,clean-excl,,7,1,0,0,0,one"]
    assert load_battery(write(tmp_path, HEADER + ",pair", *rows)).pair.values.tolist() == ["one", "one"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER.replace("knn", "kNN"), LEAK], "lacks 1 columns, first 'knn'"),
        (
            [HEADER, LEAK, EXCLUDED.replace("0.9,0.9", '"0,9",')],
            r"knn is not understood in 1 of 2 .* row 1 has '0,9'",
        ),
        ([HEADER, LEAK.replace("0.4", "nan")], "maha is missing or outside"),
        (
            [HEADER + ",fired_published", LEAK + ",maybe"],
            r"fired_published .* row 0 has 'maybe'; write yes or no",
        ),
        (
            [HEADER, LEAK, EXCLUDED + ",1", LEAK[:-4]],
            r"mine.csv: 2 of 3 rows .* 10 cells; first: row 1 has 11",
        ),
        ([HEADER + ",knn", LEAK + ",0.1"], "has the column 'knn' more than once"),
        ([HEADER, LEAK.replace("net", '"net')], "cannot be read as CSV"),
        ([], "mine.csv is empty"),
    ],
)
def test_a_broken_csv_says_what_is_wrong(lines, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_battery(write(tmp_path, *lines))


def test_names_that_lead_nowhere(tmp_path):
    with pytest.raises(InputError, match=r"name must be 'published', 'computed', .* or the path"):
        load_battery("publishd")
    with pytest.raises(InputError, match="there is no file"):
        load_battery(tmp_path / "absent.nc")
    (tmp_path / "text.nc").write_text("no netCDF")
    with pytest.raises(InputError, match=r"text\.nc cannot be read as netCDF-4"):
        load_battery(tmp_path / "text.nc")
    with pytest.raises(InputError, match=r"path must end in \.nc"):
        save_battery(small(), tmp_path / "battery.csv")
    with pytest.raises(InputError, match="there is no folder"):
        save_battery(small(), tmp_path / "absent" / "battery.nc")


# The data folder


def test_data_folder_of_a_checkout(monkeypatch):
    monkeypatch.delenv("LEAKVIZ_DATA", raising=False)
    assert data_dir() == PUBLISHED.parent


def test_data_folder_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("LEAKVIZ_DATA", str(tmp_path))
    assert data_dir() == tmp_path
    monkeypatch.setenv("LEAKVIZ_DATA", str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"LEAKVIZ_DATA is .*absent"):
        data_dir()


def test_data_folder_of_an_installed_wheel(monkeypatch, tmp_path):
    monkeypatch.delenv("LEAKVIZ_DATA", raising=False)
    package = tmp_path / "site-packages" / "leakviz"
    monkeypatch.setattr(paths, "_PACKAGE", package)
    (tmp_path / "site-packages" / "data").mkdir(parents=True)  # somebody else's
    with pytest.raises(InputError, match=r"no data folder .* set LEAKVIZ_DATA"):
        data_dir()
    (package / "data" / "published").mkdir(parents=True)
    assert data_dir() == package / "data"
