"""Features of the images under a trained backbone, computed once and kept by their content.

This module needs PyTorch (the extra ``battery``).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from leakviz.battery.models import VIT_HEADS, VIT_LAYERS
from leakviz.battery.training import as_batches

N_MASKS = 25
KEEP = 0.75
"""The chance of a head to be kept by a mask."""

Arrays = dict[str, NDArray[Any]]


@torch.inference_mode()
def extract(model: nn.Module, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the penultimate features of images.

    Parameters
    ----------
    model : torch.nn.Module
        As `leakviz.battery.models.make_model` builds it, in evaluation mode.
    pixels : ndarray of uint8, shape (n, 28, 28)

    Returns
    -------
    ndarray of float32, shape (n, D)
    """
    return torch.cat([model.features(batch) for batch in as_batches(pixels)]).numpy()


@torch.inference_mode()
def extract_masked(
    model: nn.Module,
    pixels: NDArray[np.uint8],
    masks: NDArray[np.bool_],
    *,
    progress: Callable[[int], object] = lambda done: None,
) -> NDArray[np.float32]:
    """Return the penultimate features of images under each mask of the attention heads.

    Parameters
    ----------
    model : torch.nn.Module
        A ViT, in evaluation mode.
    pixels : ndarray of uint8, shape (n, 28, 28)
    masks : ndarray of bool, shape (K, layers, heads)
        False switches a head off.
    progress : callable, optional
        Called with the number of masks that are done.

    Returns
    -------
    ndarray of float32, shape (K, n, D)
    """
    answers = []
    for done, mask in enumerate(masks, start=1):
        kept = torch.from_numpy(mask.astype(np.float32))
        answers.append(torch.cat([model.features(batch, kept) for batch in as_batches(pixels)]).numpy())
        progress(done)
    return np.stack(answers)


def head_masks(count: int = N_MASKS, *, keep: float = KEEP, seed: int = 0) -> NDArray[np.bool_]:
    """Return fixed random masks of the ViT's attention heads, none like another or without a hole.

    Parameters
    ----------
    count : int, default 25
    keep : float, default 0.75
        The chance of each head to be kept.
    seed : int, default 0

    Returns
    -------
    ndarray of bool, shape (count, layers, heads)

    Notes
    -----
    The bank of K = 25 binary masks of arXiv 2607.19393, section 3, which leaves
    the chance open.

    Examples
    --------
    >>> masks = head_masks()
    >>> masks.shape, bool((masks.reshape(25, -1).sum(axis=1) < 16).all())
    ((25, 4, 4), True)
    """
    rng = np.random.default_rng(seed)
    chosen: list[NDArray[np.bool_]] = []
    while len(chosen) < count:
        mask = rng.random((VIT_LAYERS, VIT_HEADS)) < keep
        if not mask.all() and not any((mask == other).all() for other in chosen):
            chosen.append(mask)
    return np.stack(chosen)


def cached(folder: Path, key: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
    """Return arrays that were made before under this key, or make and keep them.

    Parameters
    ----------
    folder : path
    key : mapping
        Everything that decides the arrays, as JSON can hold it.
    make : callable
        Returns a dict of arrays.

    Returns
    -------
    dict of str to ndarray

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for _ in range(2):
    ...         arrays = cached(Path(name), {"of": "two"}, lambda: print("made") or {"x": np.arange(2)})
    made
    >>> arrays["x"].tolist()
    [0, 1]
    """
    folder.mkdir(parents=True, exist_ok=True)
    address = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    path = folder / f"{address}.npz"
    if not path.is_file():
        temporary = folder / f".{address}-{uuid.uuid4().hex}.tmp"
        try:
            with open(temporary, "wb") as file:
                np.savez(file, **make())  # type: ignore[arg-type]
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def pixels_hash(*parts: NDArray[np.uint8]) -> str:
    """Return the SHA-256 of images.

    Examples
    --------
    >>> pixels_hash(np.zeros((1, 2, 2), dtype=np.uint8))[:8]
    'df3f6198'
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
