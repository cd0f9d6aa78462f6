"""What a backbone is shown after its training: test images of every class, and sources it has never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakviz.battery.sources import Images, invert, noise, permute, take_per_class

TEST_PER_CLASS = 500
"""At most so many test images of a class are used, the same number of each."""

NOVEL_ROWS = 1000
"""At most so many images of a novel source."""


@dataclass(frozen=True)
class Novel:
    """Images of a source that is not the backbone's own.

    Parameters
    ----------
    name : str
    distance : {"near", "far"}
        Near where the source shows things of the same kind as the ID classes.
    pixels : ndarray of uint8, shape (n, 28, 28)
    """

    name: str
    distance: str
    pixels: NDArray[np.uint8]


def shown_rows(images: Images, *, per_class: int = TEST_PER_CLASS) -> NDArray[np.int64]:
    """Return the test rows to use: the first of each class, equally many, so that classes are balanced.

    Examples
    --------
    >>> from leakviz.battery.sources import read_small_digits
    >>> rows = shown_rows(read_small_digits(test_per_class=30), per_class=20)
    >>> rows.size
    200
    """
    fewest = int(np.bincount(images.test_labels, minlength=len(images.classes)).min())
    return take_per_class(images.test_labels, min(per_class, fewest))


def novel_sources(images: Images, others: Sequence[Images], *, count: int = NOVEL_ROWS) -> list[Novel]:
    """Return every novel source for one ID data set.

    Other data sets give the first images of their test part (and then of their
    training part), equally many of each class; they are
    near where their classes have the same names as the ID classes (another
    hand's digits), else far. Three far sources are derived: the negatives of the
    ID test images, the same images with all pixels permuted, and noise.

    Parameters
    ----------
    images : Images
        The ID data set.
    others : sequence of Images
    count : int, default 1000
        At most so many images of a source.

    Returns
    -------
    list of Novel

    Examples
    --------
    >>> from leakviz.battery.sources import read_small_digits
    >>> digits = read_small_digits()
    >>> [(novel.name, novel.distance, len(novel.pixels)) for novel in novel_sources(digits, [], count=100)]
    [('inverted', 'far', 100), ('permuted', 'far', 100), ('noise', 'far', 100)]
    """
    found = []
    for other in others:
        pixels = _some(np.concatenate([other.test, other.train]), _labels(other), count)
        found.append(Novel(other.name, "near" if other.classes == images.classes else "far", pixels))
    own = _some(images.test, images.test_labels, count)
    return [
        *found,
        Novel("inverted", "far", invert(own)),
        Novel("permuted", "far", permute(own)),
        Novel("noise", "far", noise(count)),
    ]


def _labels(images: Images) -> NDArray[np.int64]:
    return np.concatenate([images.test_labels, images.train_labels])


def _some(pixels: NDArray[np.uint8], labels: NDArray[np.int64], count: int) -> NDArray[np.uint8]:
    """Return the first `count` images, equally many of each class."""
    return pixels[take_per_class(labels, count // np.unique(labels).size)]
