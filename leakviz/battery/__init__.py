"""Batteries: controlled settings whose leak is known, published, computed here or brought by a user."""

from leakviz.battery.cached import Backbone, fit_set, knn_of, load_backbone, rows_of, sample_rows
from leakviz.battery.schema import check_battery, load_battery, save_battery

__all__ = [
    "Backbone",
    "check_battery",
    "fit_set",
    "knn_of",
    "load_backbone",
    "load_battery",
    "rows_of",
    "sample_rows",
    "save_battery",
]
