"""Two small backbones for 28 x 28 grey images: a ResNet, and a ViT whose attention heads can be masked.

This module needs PyTorch (the extra ``battery``); nothing that a page imports does.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

VIT_LAYERS = 4
VIT_HEADS = 4


class Residual(nn.Module):
    """A basic block: two 3 x 3 convolutions beside a shortcut (He et al. 2016, figure 5).

    Parameters
    ----------
    inputs, outputs : int
        Channels.
    stride : int
        Of the first convolution.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return images of shape (n, outputs, height / stride, width / stride)."""
        inner = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


class ResNet(nn.Module):
    """Three basic blocks with 32, 64 and 128 channels, and the average over the last 4 x 4 positions.

    About 0.31 million parameters; the feature has 128 dimensions, none of them negative.

    Parameters
    ----------
    classes : int
        How many outputs the linear head has.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True)
        )
        self.blocks = nn.Sequential(Residual(32, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2))
        self.head = nn.Linear(128, classes)

    def features(self, images: Tensor) -> Tensor:
        """Return the penultimate features, shape (n, 128)."""
        return self.blocks(self.stem(images)).mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, shape (n, classes)."""
        return self.head(self.features(images))


class Attention(nn.Module):
    """Self-attention whose heads can be switched off one by one.

    Parameters
    ----------
    width : int
        Of a token.
    heads : int
        Divides `width`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, tokens: Tensor, kept: Tensor | None) -> Tensor:
        """Return the tokens after attention; `kept` (heads,) multiplies each head's output."""
        n, length, width = tokens.shape
        query, key, value = (
            self.qkv(tokens).reshape(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        mixed = functional.scaled_dot_product_attention(
            query, key, value
        )  # (n, heads, length, width / heads)
        if kept is not None:
            mixed = mixed * kept[None, :, None, None]
        return self.out(mixed.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    """A transformer block with the norms in front (pre-norm).

    Parameters
    ----------
    width, heads : int
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor, kept: Tensor | None) -> Tensor:
        """Return the tokens after attention and the two-layer perceptron."""
        tokens = tokens + self.attention(self.norm1(tokens), kept)
        return tokens + self.mlp(self.norm2(tokens))


class ViT(nn.Module):
    """A vision transformer on 49 tokens of a convolutional stem; 4 layers, 4 heads, width 64.

    The feature is the cls token after the last LayerNorm, 64 dimensions: their
    covariance has one null direction, which the norm makes.

    Parameters
    ----------
    classes : int
        How many outputs the linear head has.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        width = 64
        self.stem = nn.Sequential(
            nn.Conv2d(1, 32, 3, 2, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.GELU(),
            nn.Conv2d(32, width, 3, 2, 1),
        )
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, 50, width))
        self.layers = nn.ModuleList(Block(width, VIT_HEADS) for _ in range(VIT_LAYERS))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def features(self, images: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return the penultimate features, shape (n, 64).

        `kept`, shape (layers, heads), multiplies the output of every head: 0
        switches it off, None keeps all.
        """
        patches = self.stem(images).flatten(2).transpose(1, 2)  # (n, 49, width)
        tokens = torch.cat([self.cls.expand(len(patches), -1, -1), patches], dim=1) + self.position
        for index, layer in enumerate(self.layers):
            tokens = layer(tokens, None if kept is None else kept[index])
        return self.norm(tokens[:, 0])

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, shape (n, classes)."""
        return self.head(self.features(images))


ARCHITECTURES: dict[str, Callable[[int], nn.Module]] = {"resnet": ResNet, "vit": ViT}


def make_model(architecture: str, classes: int, *, seed: int) -> nn.Module:
    """Build an untrained backbone with a head for so many classes.

    Parameters
    ----------
    architecture : {"resnet", "vit"}
    classes : int
    seed : int
        Of the initial weights.

    Returns
    -------
    torch.nn.Module
        With ``features(images)`` and ``forward(images)``.

    Examples
    --------
    >>> model = make_model("resnet", 10, seed=0)
    >>> sum(p.numel() for p in model.parameters())
    308074
    >>> tuple(make_model("vit", 10, seed=0).features(torch.zeros(2, 1, 28, 28)).shape)
    (2, 64)
    """
    torch.manual_seed(seed)
    return ARCHITECTURES[architecture](classes)
