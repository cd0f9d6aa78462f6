"""Find, understand and show leakage in machine-learning results."""

from leakviz.arms import simulate_arms
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
from leakviz.errors import InputError
from leakviz.fingerprint import Rule, contrast, fired, score_battery, sweep_rule
from leakviz.predictions import inspect_predictions, read_predictions
from leakviz.purity import purity_curve, rank_predictions, sweep_purity
from leakviz.statistics import auroc, auroc_interval, wilson_interval

__all__ = [
    "BlindTest",
    "InputError",
    "Rule",
    "auroc",
    "auroc_interval",
    "blind_test",
    "calibration_curve",
    "calibration_summary",
    "contrast",
    "dispersion",
    "expected_net_benefit",
    "false_certification",
    "fired",
    "inspect_predictions",
    "isotonic_curve",
    "load_battery",
    "minimum_head",
    "net_benefit",
    "purity_curve",
    "rank_predictions",
    "read_predictions",
    "recalibrate",
    "save_battery",
    "score_battery",
    "simulate_arms",
    "stops",
    "sweep_blind",
    "sweep_purity",
    "sweep_rule",
    "wilson_interval",
]
