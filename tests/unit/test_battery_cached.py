"""A backbone's file: what goes in comes out, and what is wrong is named."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import xarray as xr

from leakviz.battery import fit_set, knn_of, load_backbone, rows_of, sample_rows
from leakviz.battery.cached import Backbone, save_backbone
from leakviz.battery.settings import Features, fit_sample, halves
from leakviz.detectors import Mahalanobis, knn_score
from leakviz.errors import InputError
from leakviz.moments import class_statistics, fit_statistics

CLASSES = ("shirt", "shoe", "bag")


@pytest.fixture(scope="module")
def features():
    rng = np.random.default_rng(0)
    centres = np.abs(rng.normal(size=(3, 6))) * 3

    def draw(per_class):
        labels = np.arange(3 * per_class) % 3
        rows = (centres[labels] + np.abs(rng.normal(size=(labels.size, 6)))).astype(np.float32)
        rows[:, 2] = 0  # a dead unit
        return rows, labels

    (fit, fit_labels), (test, test_labels) = draw(200), draw(40)
    noise = np.abs(rng.normal(size=(30, 6))).astype(np.float32)
    return Features(
        "net-clothes",
        "clothes",
        CLASSES,
        fit,
        fit_labels,
        test,
        test_labels,
        {"noise": noise},
        {"noise": "far"},
    )


@pytest.fixture(scope="module")
def made(features):
    statistics = class_statistics(features.fit, features.fit_labels)
    sets = [(), (0,), (1, 2)]
    unions = [statistics.without(group) if group else statistics.union() for group in sets]
    knn = [-knn_score(features.fit[~np.isin(features.fit_labels, group)], features.rows) for group in sets]
    sample = fit_sample(features.fit_labels, 300)
    scores = {
        "maha": np.arange(120.0),
        "knn": -np.arange(120.0),
        "oracle_lda": np.where(halves(features)[:, :120], 1.5, np.nan),
    }
    return Backbone(
        name=features.backbone,
        id_dataset=features.id_dataset,
        classes=CLASSES,
        statistics=statistics,
        rows=features.rows,
        kinds=features.kinds,
        novel=("noise",),
        distance=features.distance,
        sample=features.fit[sample],
        sample_labels=features.fit_labels[sample],
        seeds=(0, 1, 2),
        held_out=halves(features),
        fit_sets=tuple(sets),
        knn_distance=np.stack(knn).astype(np.float32),
        ledoit_wolf=np.array([[u.ledoit_wolf(covariance=c) for c in ("one-class", "tied")] for u in unions]),
        retrained={"shoe": scores},
        facts={"trainings": "[]"},
    )


@pytest.fixture(scope="module")
def path(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("cached") / "mine.net-clothes.nc"
    save_backbone(made, path)
    return path


@pytest.fixture(scope="module")
def backbone(path):
    return load_backbone(path.with_name("mine.nc"), "net-clothes")


def test_features_come_back_in_half_precision_and_the_rest_exactly(made, backbone):
    assert (backbone.rows == made.rows.astype(np.float16).astype(np.float32)).all()
    assert (backbone.sample == made.sample.astype(np.float16)).all()
    assert np.abs(backbone.knn_distance - made.knn_distance).max() <= 1 / 65535 + 1e-7
    for name in ("kinds", "sample_labels", "held_out", "ledoit_wolf"):
        assert (getattr(backbone, name) == getattr(made, name)).all()
    for name in ("name", "id_dataset", "classes", "novel", "distance", "seeds", "fit_sets"):
        assert getattr(backbone, name) == getattr(made, name)
    for name, values in made.retrained["shoe"].items():
        assert np.array_equal(backbone.retrained["shoe"][name], values, equal_nan=True)


def test_statistics_come_back_in_single_precision(made, backbone):
    for name in ("scatter", "square_moment", "cube_moment", "mean"):
        kept, was = getattr(backbone.statistics, name), getattr(made.statistics, name)
        assert np.abs(kept - was).max() <= 1e-6 * np.abs(was).max()
    assert (backbone.statistics.scatter == backbone.statistics.scatter.transpose(0, 2, 1)).all()


@pytest.mark.parametrize("without", [(), ("shirt",), ("bag", "shoe"), ("bag",)])
def test_a_fit_set_is_that_of_the_rows(features, backbone, without):
    """The last one is not among the stored fit sets: its alpha comes from the moments."""
    left = ~np.isin(features.fit_labels, [CLASSES.index(name) for name in without])
    refit = fit_statistics(features.fit[left], labels=features.fit_labels[left])
    chosen = fit_set(backbone, without=without)
    assert chosen.count == refit.count
    for covariance in ("one-class", "tied"):
        exact, cached = (s.ledoit_wolf(covariance=covariance) for s in (refit, chosen))
        assert cached == pytest.approx(exact, rel=1e-4)
        detectors = [Mahalanobis.from_statistics(s, covariance=covariance) for s in (refit, chosen)]
        one, two = (detector.score_samples(features.test) for detector in detectors)
        assert two == pytest.approx(one, rel=1e-4, abs=1e-4)


def test_a_sample_leaves_classes_out_and_keeps_its_order(features, backbone):
    rows, labels = sample_rows(backbone, without=["shoe"], rows=100)
    assert np.bincount(labels).tolist() == [50, 0, 50]
    assert (rows[0] == features.fit[0].astype(np.float16)).all()
    assert fit_set(backbone, without=["shoe"], rows=100).count == 100
    assert fit_set(backbone, without=["shoe"], rows=2000).count == 200  # all that there are


def test_neighbours_are_looked_up_or_computed(features, backbone):
    left = features.fit[features.fit_labels != 0]
    assert knn_of(backbone, without=["shirt"]) == pytest.approx(knn_score(left, features.rows), abs=2e-5)
    rows, _ = sample_rows(backbone, rows=90)
    assert knn_of(backbone, rows=90) == pytest.approx(knn_score(rows, features.rows), abs=2e-3)


def test_rows_of_a_setting(backbone):
    own, other = rows_of(backbone, "shirt+bag")
    assert set(backbone.kinds[own]) == {1}
    assert set(backbone.kinds[other]) == {0, 2}
    own, other = rows_of(backbone, "noise", seed=1)
    assert (own.size, other.size) == (60, 15)
    assert backbone.held_out[1][own].all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda b: fit_set(b, without=["coat"]),
            r"without names 'coat', .*net-clothes; it has shirt, shoe, bag$",
        ),
        (
            lambda b: fit_set(b, without="shirt"),
            "without must be a list of names of classes, got the text 'shirt'",
        ),
        (lambda b: fit_set(b, without=CLASSES), "without names every class"),
        (lambda b: fit_set(b, rows=0), "rows must be a whole number from 1 up, got 0"),
        (lambda b: fit_set(b, rows=1.5), "rows must be a whole number from 1 up, got 1.5"),
        (lambda b: knn_of(b, without=["bag"]), r"not without bag; give rows to take a sample"),
        (lambda b: knn_of(b, rows=30), "k is 50, but the fit set has 30 rows"),
        (lambda b: rows_of(b, "coat"), r"ood names 'coat', .* it has shirt, shoe, bag, noise"),
        (lambda b: rows_of(b, "shirt+noise"), "ood names 'noise'"),
        (lambda b: rows_of(b, "bag", seed=7), r"seed must be one of \(0, 1, 2\), got 7"),
    ],
)
def test_what_is_wrong_is_named(backbone, call, message):
    with pytest.raises(InputError, match=message):
        call(backbone)


def test_features_beyond_half_precision_are_refused(made, tmp_path):
    with pytest.raises(InputError, match="features reach 70000; half precision ends at 65504"):
        save_backbone(replace(made, rows=np.full_like(made.rows, 70_000)), tmp_path / "big.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_is_refused(made, path, tmp_path):
    changed = tmp_path / path.name
    save_backbone(made, changed)
    assert changed.read_bytes() == path.read_bytes()
    with h5py.File(changed, "a") as file:
        file["kind"][3] += 1
    with pytest.raises(InputError, match="the content does not match its content_hash"):
        load_backbone(tmp_path / "mine.nc", "net-clothes")


def test_the_wrong_backbone_is_refused(path):
    with pytest.raises(InputError, match=r"there is no file .*mine.vit.nc'; .* \['mine.net-clothes.nc'\]"):
        load_backbone(path.with_name("mine.nc"), "vit")
    with pytest.raises(InputError, match=r"features belong to the battery \(none\), got 'vit'"):
        load_backbone(xr.Dataset(), "vit")


def test_the_same_file_is_read_once(path, backbone):
    assert load_backbone(path.with_name("mine.nc"), "net-clothes") is backbone
