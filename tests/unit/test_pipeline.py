"""The whole pipeline that builds a battery, on a few hundred digits and two epochs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from leakviz.battery import load_battery, rows_of
from leakviz.battery.build import Plan, build
from leakviz.battery.cached import _open
from leakviz.battery.recipes import Recipe
from leakviz.battery.settings import ood_groups
from leakviz.battery.sources import read_small_digits

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: battery)")

CLASSES, SIZES = 3, (1,)


def first_classes(images, count):
    """Keep the first classes of a data set, so that there are few groups."""
    train, test = images.train_labels < count, images.test_labels < count
    return replace(
        images,
        train=images.train[train],
        train_labels=images.train_labels[train],
        test=images.test[test],
        test_labels=images.test_labels[test],
        classes=images.classes[:count],
    )


def small_recipe(architecture, images):
    return Recipe(architecture, images.name, images.content_hash, (), 80, 2, 64, 3e-3, 0.05, 0, 1)


@pytest.fixture(scope="module")
def plan():
    images = first_classes(read_small_digits(test_per_class=20), CLASSES)
    return Plan(
        "small",
        (images,),
        (images,),
        small_recipe,
        {"small-digits": ("2",)},
        test_per_class=20,
        novel_rows=20,
        signature_fit=45,
        group_sizes=SIZES,
    )


@pytest.fixture(scope="module")
def folder(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipeline")
    torch.manual_seed(1)  # whatever state the process is in, the same comes out
    with threadpool_limits(1):
        written = build(plan, work=folder / "work", out=folder / "out", quiet=True)
    (folder / "written.json").write_text(json.dumps([str(path) for path in written]))
    return folder


@pytest.fixture(scope="module")
def battery(folder):
    return load_battery(folder / "out" / "small.nc")


def test_every_file_is_written_and_read(folder):
    written = json.loads((folder / "written.json").read_text())
    names = ["small.resnet-small-digits.nc", "small.vit-small-digits.nc", "small.nc", "small-signature.nc"]
    assert written == [str(folder / "out" / name) for name in names]
    assert sorted(path.name for path in (folder / "out").iterdir()) == sorted(names)


def test_settings_are_those_of_the_plan(battery):
    groups = ood_groups(CLASSES, sizes=SIZES)
    counts = battery.regime.to_series().value_counts().to_dict()
    expected = {
        "leak": 2 * len(groups),
        "clean-excl": 2 * len(groups),
        "clean-novel": 6,
        "clean-retrained": 2,
    }
    assert counts == expected
    assert set(battery.backbone.values) == {"resnet-small-digits", "vit-small-digits"}
    assert battery.sizes["seed"] == 3
    assert battery.maha_by_alpha.dtype == np.float32
    retrained = battery.sel(setting="N_retrain_vit-small-digits_2")
    assert retrained.pair.item() == battery.sel(setting="P_vit-small-digits_2").pair.item()
    assert battery["size"].sel(setting="P_vit-small-digits_1").item() == 1
    assert battery["size"].sel(setting="N_novel_vit-small-digits_noise").item() == 0


def test_partners_share_the_oracle_and_the_neighbourhood_index(battery):
    excluded = battery.where(battery.regime == "clean-excl", drop=True)
    leaked = battery.sel(setting=["P_" + pair for pair in excluded.pair.values])
    assert (leaked.oracle_lda.values == excluded.oracle_lda.values).all()
    assert (leaked.neighbourhood_leakage.values == excluded.neighbourhood_leakage.values).all()


@pytest.mark.parametrize("name", ["maha", "knn", "isolation_forest", "one_class_svm", "lof"])
def test_leaks_of_balanced_classes_average_one_half(battery, name):
    single = (battery.regime == "leak") & (battery["size"] == 1)
    means = battery[name].where(single, drop=True).groupby("backbone").mean("setting")
    assert means.values == pytest.approx(0.5, abs=1e-9)


def test_the_signature_has_both_conventions(folder):
    signature = load_battery(folder / "out" / "small-signature.nc")
    counts = signature.convention.to_series().value_counts().to_dict()
    groups = len(ood_groups(CLASSES, sizes=SIZES))
    assert counts == {"all": groups + 3, "kept": groups, "dropped": groups}
    assert (signature.prs_maha.values == signature.maha.values).all()
    assert signature.block.values.tolist() == [
        "displacement",
        "norm ratio",
        "centroid distance",
        "flip rate",
    ]
    # The base method's scalar knows no fit set: within a pair it is the same where centroids do not matter.
    kept = signature.where(signature.convention == "kept", drop=True)
    leaked = signature.sel(setting=[name.replace("N_excl_kept_", "P_") for name in kept.setting.values])
    assert (leaked.ahss.values == kept.ahss.values).all()


def test_the_backbone_file_gives_what_was_scored(folder, battery):
    path = folder / "out" / "small.resnet-small-digits.nc"
    backbone = _open(path, path.stat().st_mtime_ns)
    assert backbone.statistics.count.tolist() == [80, 80, 80]
    own, other = rows_of(backbone, "2", seed=0)
    assert own.size == 2 * other.size == 20
    facts = json.loads(backbone.facts["trainings"])
    assert [fact.get("without") for fact in facts] == [None, "2"]
    assert all(0.2 < fact["accuracy"] <= 1 for fact in facts)
    assert json.loads(battery.attrs["backbones"])["resnet-small-digits"] == backbone.facts["content_hash"]


def test_a_second_build_trains_nothing_and_writes_the_same_bytes(plan, folder, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr("leakviz.battery.training._run", refuse)
    small = replace(plan, architectures=("resnet",))
    with threadpool_limits(1):
        (again, _) = build(small, work=folder / "work", out=tmp_path, quiet=True)
    assert again.read_bytes() == (folder / "out" / again.name).read_bytes()


def test_an_interrupted_training_goes_on_and_ends_the_same(plan, folder, tmp_path):
    from leakviz.battery import training

    images, recipe = plan.images[0], small_recipe("resnet", plan.images[0])
    whole = training.train(images, recipe, folder / "work" / "weights", quiet=True)
    calls = []

    def stop_after_one_epoch(state, path):
        keep(state, path)
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt

    keep, training._save = training._save, stop_after_one_epoch
    try:
        with pytest.raises(KeyboardInterrupt):
            training.train(images, recipe, tmp_path, quiet=True)
        assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
        resumed = training.train(images, recipe, tmp_path, quiet=True)
    finally:
        training._save = keep
    assert resumed.accuracy == whole.accuracy
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    assert [path.suffix for path in tmp_path.iterdir()] == [".pt"]
