"""Train a backbone once, keep its weights, and never train the same recipe again.

This module needs PyTorch (the extra ``battery``).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from leakviz.battery.models import make_model
from leakviz.battery.recipes import Recipe
from leakviz.battery.sources import Images, take_per_class

SHIFT = 2
"""Augmentation moves an image by up to so many pixels, each way."""


@dataclass(frozen=True)
class Trained:
    """A backbone after its training.

    Parameters
    ----------
    model : torch.nn.Module
        In evaluation mode.
    recipe : Recipe
    accuracy : float
        Share of the test images of trained classes that it puts in their class.
    seconds : float
        Wall time of the training.
    torch_version : str
        That trained it.
    """

    model: nn.Module
    recipe: Recipe
    accuracy: float
    seconds: float
    torch_version: str


def fit_rows(images: Images, recipe: Recipe) -> NDArray[np.int64]:
    """Return the rows of the training images that a recipe uses: the fit set.

    The excluded classes stay out.
    """
    rows = take_per_class(images.train_labels, recipe.train_per_class)
    return rows[~np.isin(images.train_labels[rows], recipe.excluded)]


def train(images: Images, recipe: Recipe, folder: Path, *, quiet: bool = False) -> Trained:
    """Train a backbone, or load it where this very recipe was trained before.

    A training that was interrupted goes on from its last full epoch.

    Parameters
    ----------
    images : Images
    recipe : Recipe
    folder : path
        Where weights are kept, under the recipe's address.
    quiet : bool, default False
        No progress bar.

    Returns
    -------
    Trained

    Notes
    -----
    AdamW (Loshchilov and Hutter 2019) with a one-cycle schedule (Smith and
    Topin 2019), cross-entropy. Augmentation: shifts, and mirrors where the
    data set allows them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{recipe.address}.pt"
    torch.set_num_threads(recipe.threads)
    seen = [label for label in range(len(images.classes)) if label not in recipe.excluded]
    model = make_model(recipe.architecture, len(seen), seed=recipe.seed)
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if path.is_file():
        saved = torch.load(path, weights_only=True)
    else:
        _run(model, images, recipe, seen, path.with_suffix(".part"), quiet=quiet)
        saved = torch.load(path.with_suffix(".part"), weights_only=True)
        model.load_state_dict(saved["model"])
        saved = {
            "model": saved["model"],
            "recipe": json.dumps(asdict(recipe), sort_keys=True),
            "accuracy": _accuracy(model, images, seen),
            "seconds": saved["seconds"],
            "torch": str(torch.__version__),
        }
        _save(saved, path)
        path.with_suffix(".part").unlink()
    model.load_state_dict(saved["model"])
    model.eval()
    return Trained(model, recipe, saved["accuracy"], saved["seconds"], saved["torch"])


def as_batches(pixels: NDArray[np.uint8], size: int = 500) -> Iterator[Tensor]:
    """Yield the images as float tensors of shape (size, 1, 28, 28), black -1 to white 1."""
    for start in range(0, len(pixels), size):
        yield _scaled(torch.from_numpy(np.ascontiguousarray(pixels[start : start + size])))


def _run(
    model: nn.Module, images: Images, recipe: Recipe, seen: list[int], part: Path, *, quiet: bool
) -> None:
    """Train, and leave the state after every epoch in `part`."""
    rows = fit_rows(images, recipe)
    pixels = torch.from_numpy(images.train[rows])
    targets = torch.from_numpy(np.searchsorted(seen, images.train_labels[rows]))
    steps = -(-len(rows) // recipe.batch)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.learning_rate, total_steps=recipe.epochs * steps
    )
    parts: dict[str, Any] = {"model": model, "optimiser": optimiser, "schedule": schedule}
    first, seconds = 0, 0.0
    if part.is_file():
        saved = torch.load(part, weights_only=True)
        for name, thing in parts.items():
            thing.load_state_dict(saved[name])
        first, seconds = saved["epoch"], saved["seconds"]
    model.train()
    named = f"{recipe.architecture} on {recipe.dataset}" + (
        f" without {', '.join(images.classes[label] for label in recipe.excluded)}" if recipe.excluded else ""
    )
    with tqdm(total=recipe.epochs * steps, initial=first * steps, desc=named, disable=quiet) as bar:
        for epoch in range(first, recipe.epochs):
            started = time.perf_counter()
            # One generator per epoch, so that a resumed training sees what an unbroken one would.
            generator = torch.Generator().manual_seed(1000 * recipe.seed + epoch)
            for chosen in torch.randperm(len(rows), generator=generator).split(recipe.batch):
                batch = _augmented(_scaled(pixels[chosen]), generator, mirrored=images.mirrored)
                loss = functional.cross_entropy(model(batch), targets[chosen])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                bar.update()
            bar.set_postfix(loss=f"{loss.item():.3f}")
            seconds += time.perf_counter() - started
            state = {name: thing.state_dict() for name, thing in parts.items()}
            _save({**state, "epoch": epoch + 1, "seconds": seconds}, part)


def _scaled(pixels: Tensor) -> Tensor:
    scaled = pixels.to(torch.float32).unsqueeze(1) / 127.5 - 1
    return scaled.contiguous(memory_format=torch.channels_last)


def _augmented(images: Tensor, generator: torch.Generator, *, mirrored: bool) -> Tensor:
    """Shift every image by up to SHIFT pixels each way, and mirror half of them where that is allowed."""
    count, side = len(images), images.shape[-1]
    padded = functional.pad(images, (SHIFT,) * 4, value=-1.0)
    corner = torch.randint(0, 2 * SHIFT + 1, (2, count, 1), generator=generator)
    row, column = corner + torch.arange(side)
    if mirrored:
        turned = torch.rand(count, 1, generator=generator) < 0.5
        column = torch.where(turned, column.flip(1), column)
    shifted = padded[torch.arange(count)[:, None, None], 0, row[:, :, None], column[:, None, :]]
    return shifted.unsqueeze(1).contiguous(memory_format=torch.channels_last)


@torch.inference_mode()
def _accuracy(model: nn.Module, images: Images, seen: list[int]) -> float:
    model.eval()
    kept = np.isin(images.test_labels, seen)
    answers = torch.cat([model(batch).argmax(dim=1) for batch in as_batches(images.test[kept])])
    return float(np.mean(np.array(seen)[answers.numpy()] == images.test_labels[kept]))


def _save(state: dict[str, Any], path: Path) -> None:
    """Write beside the place and rename, so that a file is whole or not there."""
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}.tmp")
    try:
        torch.save(state, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
