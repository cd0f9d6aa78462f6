"""What is trained for a battery: four backbones, and each again without a class or two."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from leakviz.battery.sources import Images


@dataclass(frozen=True)
class Recipe:
    """What decides a training: two equal recipes on the same images give the same backbone.

    Parameters
    ----------
    architecture : {"resnet", "vit"}
    dataset : str
        Name of the images.
    content_hash : str
        Of the images.
    excluded : tuple of int
        Classes that the training does not see (leave-class-out).
    train_per_class : int
        At most so many training images of a class: the fit set.
    epochs, batch : int
    learning_rate, weight_decay : float
        Of AdamW; the rate is the top of a one-cycle schedule.
    seed : int
        Of the weights, the order of the images and the augmentation.
    threads : int
        Of the processor: sums in another order give slightly other weights.

    Examples
    --------
    >>> recipe = Recipe("vit", "mnist", "0f", (), 750, 2, 128, 2e-3, 0.05, 0, 1)
    >>> recipe.backbone, len(recipe.address)
    ('vit-mnist', 16)
    """

    architecture: str
    dataset: str
    content_hash: str
    excluded: tuple[int, ...]
    train_per_class: int
    epochs: int
    batch: int
    learning_rate: float
    weight_decay: float
    seed: int
    threads: int

    @property
    def backbone(self) -> str:
        """Name of the backbone, such as ``"resnet-fashion"``."""
        return f"{self.architecture}-{self.dataset.removesuffix('-mnist')}"

    @property
    def address(self) -> str:
        """The first 16 digits of the SHA-256 of everything in the recipe: the name of its files."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def without(self, *classes: int) -> Recipe:
        """Return the same recipe with classes left out of the training."""
        return replace(self, excluded=tuple(sorted(classes)))


_EPOCHS = {
    ("resnet", "fashion-mnist"): 6,
    ("resnet", "mnist"): 10,
    ("vit", "fashion-mnist"): 8,
    ("vit", "mnist"): 20,
}
_LEARNING_RATE = {"resnet": 3e-3, "vit": 2e-3}


def full_recipe(architecture: str, images: Images) -> Recipe:
    """Return the recipe of the shipped battery for one backbone.

    Parameters
    ----------
    architecture : {"resnet", "vit"}
    images : Images
        Fashion-MNIST or MNIST.

    Returns
    -------
    Recipe
        20,000 of the 60,000 training images of Fashion-MNIST, or all 7,500 of
        MNIST; one training seed, one thread.
    """
    return Recipe(
        architecture=architecture,
        dataset=images.name,
        content_hash=images.content_hash,
        excluded=(),
        train_per_class=2000,
        epochs=_EPOCHS[architecture, images.name],
        batch=128,
        learning_rate=_LEARNING_RATE[architecture],
        weight_decay=0.05,
        seed=0,
        threads=1,
    )
