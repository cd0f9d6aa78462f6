"""Read features that somebody brings: opened safely, every table in its role, nothing guessed."""

from leakviz.embeddings.reading import (
    Embeddings,
    EmbeddingsInspection,
    EmbeddingsQuestion,
    inspect_embeddings,
    read_embeddings,
)
from leakviz.embeddings.stores import MAX_BYTES, ArrayFacts

__all__ = [
    "MAX_BYTES",
    "ArrayFacts",
    "Embeddings",
    "EmbeddingsInspection",
    "EmbeddingsQuestion",
    "inspect_embeddings",
    "read_embeddings",
]
