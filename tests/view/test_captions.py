"""What stands below a figure in its file: whatever of the state decides the figure is in it."""

import holoviews as hv
import numpy as np
import pytest

import app
from dashboards.export import _load_matplotlib, figure_state_says
from dashboards.shelf import Shelf

# Of each page where it starts, and what a hand may move there: parameter to a value that it has not.
MOVES = {
    "fingerprint": (
        "battery=computed",
        {
            "gate": 0.97, "tau": 0.4, "alpha": "0.1", "covariance": "tied", "detector": "knn", "size": "2",
            "metric": "specificity", "hidden": ["excluded"],
        },
    ),
    "whitening": ("", {"ood": "Shirt", "fit": "all", "rows": "150", "covariance": "tied", "alpha": "0.3"}),
    "audit": ("", {"gate": 0.9, "tau": 0.5, "reading": "ahss", "convention": "dropped"}),
    "purity": (
        "beside=none",
        {"delta": 0.1, "k_min": 100, "epsilon": 0.05, "max_risk": 0.8, "alpha": 0.01},
    ),
    "calibration": (
        "vector=nassCDS__lr__honest&eta=beta",
        {
            "method": "platt", "bins": 5, "strategy": "uniform", "low": 0.02, "high": 0.2,
            "scale": "standardised", "eta": "uniform", "a": 5.0, "b": 5.0,
        },
    ),
    "lodo": (
        "case=penguins&model=logistic",
        {"model": "forest", "metric": "accuracy", "baseline": "same-source", "row": 7, "threshold": 0.9},
    ),
}  # fmt: skip


def drawn(page, name):
    """Return the numbers and the frame of a figure, as text."""
    try:
        figure = page.figure(name, "matplotlib")
    except ValueError:  # a classifier without coefficients has no retention
        return "none"
    frames = [
        hv.Store.lookup_options("matplotlib", f, "plot").kwargs for f in figure.traverse(specs=[hv.Overlay])
    ]
    layers = figure.traverse(
        lambda e: [type(e).__name__, *(np.asarray(c).tolist() for c in columns(e))], [hv.Element]
    )
    return repr([[(f.get("xlim"), f.get("ylim")) for f in frames], layers])  # a NaN is a NaN


def columns(layer):
    if isinstance(layer, hv.element.Annotation) and not hasattr(layer, "interface"):
        return [layer.data]
    return [layer.dimension_values(d, flat=True) for d in layer.dimensions()]


@pytest.mark.parametrize("name", MOVES)
def test_what_changes_a_figure_is_in_its_caption(name):
    _load_matplotlib()
    start, moves = MOVES[name]
    page = app.PAGES[name][1](start, Shelf())
    figures = {f: drawn(page, f) for f in page.figure_state}
    told = {f: figure_state_says(page, f) for f in figures}
    before = {p: getattr(page.state, p) for p in moves}
    moved = set()
    for parameter, value in moves.items():
        setattr(page.state, parameter, value)
        for f in figures:
            if drawn(page, f) != figures[f]:
                moved.add(parameter)
                assert figure_state_says(page, f) != told[f], (f, parameter)
        setattr(page.state, parameter, before[parameter])
        assert {f: figure_state_says(page, f) for f in figures} == told
    assert moved == set(moves)
