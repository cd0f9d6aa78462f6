"""Read predictions that somebody brings: opened safely, known on every row, nothing guessed."""

from leakviz.predictions.reading import Inspection, inspect_predictions, read_predictions
from leakviz.predictions.records import ColumnFacts, Option, Predictions, Question
from leakviz.predictions.sources import MAX_BYTES

__all__ = [
    "MAX_BYTES",
    "ColumnFacts",
    "Inspection",
    "Option",
    "Predictions",
    "Question",
    "inspect_predictions",
    "read_predictions",
]
