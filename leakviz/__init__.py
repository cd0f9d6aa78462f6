"""Find, understand and show leakage in machine-learning results."""

from leakviz import _stop

_stop.quiet_while_loading()  # before anything that takes its time

# ruff: noqa: E402
from leakviz.arms import simulate_arms
from leakviz.audit import audit_battery, audit_split
from leakviz.battery import load_battery, save_battery
from leakviz.blind import BlindTest, blind_test, sweep_blind
from leakviz.calibration import (
    calibration_curve,
    calibration_summary,
    dispersion,
    expected_net_benefit,
    isotonic_curve,
    net_benefit,
    recalibrate,
)
from leakviz.certification import false_certification, minimum_head
from leakviz.decimals import stops
from leakviz.detectors import Mahalanobis, knn_score, oracle_lda
from leakviz.embeddings import inspect_embeddings, read_embeddings
from leakviz.errors import InputError
from leakviz.fingerprint import Rule, contrast, fired, score_battery, sweep_rule
from leakviz.lessons import Lesson, lessons
from leakviz.lodo import (
    ablate_shortcuts,
    explain_lodo,
    inspect_sources,
    load_ablation,
    load_lodo,
    load_lodo_data,
    load_published_lodo,
    load_published_retention,
    load_retention,
    lodo,
    lodo_cases,
    lodo_from_scores,
    read_sources,
    retention,
    save_lodo,
    summarise_lodo,
    sweep_retention,
    weighted_attributions,
)
from leakviz.moments import ClassStatistics, class_statistics
from leakviz.neighbourhood import neighbourhood_leakage
from leakviz.predictions import inspect_predictions, read_predictions
from leakviz.purity import purity_curve, rank_predictions, sweep_purity
from leakviz.signature import perturbation_signature
from leakviz.statistics import auroc, auroc_interval, wilson_interval
from leakviz.whitening import score_histograms, sweep_shrinkage, whitening_spectrum
from leakviz.world import World, score_world, simulate_leak, simulate_twins, sweep_world

__all__ = [
    "BlindTest",
    "ClassStatistics",
    "InputError",
    "Lesson",
    "Mahalanobis",
    "Rule",
    "World",
    "ablate_shortcuts",
    "audit_battery",
    "audit_split",
    "auroc",
    "auroc_interval",
    "blind_test",
    "calibration_curve",
    "calibration_summary",
    "class_statistics",
    "contrast",
    "dispersion",
    "expected_net_benefit",
    "explain_lodo",
    "false_certification",
    "fired",
    "inspect_embeddings",
    "inspect_predictions",
    "inspect_sources",
    "isotonic_curve",
    "knn_score",
    "lessons",
    "load_ablation",
    "load_battery",
    "load_lodo",
    "load_lodo_data",
    "load_published_lodo",
    "load_published_retention",
    "load_retention",
    "lodo",
    "lodo_cases",
    "lodo_from_scores",
    "minimum_head",
    "neighbourhood_leakage",
    "net_benefit",
    "oracle_lda",
    "perturbation_signature",
    "purity_curve",
    "rank_predictions",
    "read_embeddings",
    "read_predictions",
    "read_sources",
    "recalibrate",
    "retention",
    "save_battery",
    "save_lodo",
    "score_battery",
    "score_histograms",
    "score_world",
    "simulate_arms",
    "simulate_leak",
    "simulate_twins",
    "stops",
    "summarise_lodo",
    "sweep_blind",
    "sweep_purity",
    "sweep_retention",
    "sweep_rule",
    "sweep_shrinkage",
    "sweep_world",
    "weighted_attributions",
    "whitening_spectrum",
    "wilson_interval",
]
