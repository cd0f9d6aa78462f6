"""Find, understand and show leakage in machine-learning results."""

from leakviz.battery import load_battery, save_battery
from leakviz.decimals import stops
from leakviz.errors import InputError
from leakviz.fingerprint import Rule, contrast, fired, score_battery, sweep_rule
from leakviz.statistics import auroc, auroc_interval, wilson_interval

__all__ = [
    "InputError",
    "Rule",
    "auroc",
    "auroc_interval",
    "contrast",
    "fired",
    "load_battery",
    "save_battery",
    "score_battery",
    "stops",
    "sweep_rule",
    "wilson_interval",
]
