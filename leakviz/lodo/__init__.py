"""Leave-one-dataset-out (LODO): how much of a score is the benchmark. Source: arXiv 2602.14161.

The package's function `leakviz.lodo` has the package's name: its modules are imported with ``from``, as in
``from leakviz.lodo.pairs import auroc_gap``.
"""

from leakviz.lodo.ablation import ablate_shortcuts
from leakviz.lodo.attributions import weighted_attributions
from leakviz.lodo.cases import load_ablation, load_lodo, load_lodo_data, load_retention, lodo_cases, save_lodo
from leakviz.lodo.compare import lodo_from_scores
from leakviz.lodo.protocol import lodo
from leakviz.lodo.published import load_published_lodo, load_published_retention
from leakviz.lodo.retention import retention, sweep_retention
from leakviz.lodo.table import inspect_sources, read_sources
from leakviz.lodo.words import explain_lodo, summarise_lodo

__all__ = [
    "ablate_shortcuts",
    "explain_lodo",
    "inspect_sources",
    "load_ablation",
    "load_lodo",
    "load_lodo_data",
    "load_published_lodo",
    "load_published_retention",
    "load_retention",
    "lodo",
    "lodo_cases",
    "lodo_from_scores",
    "read_sources",
    "retention",
    "save_lodo",
    "summarise_lodo",
    "sweep_retention",
    "weighted_attributions",
]
