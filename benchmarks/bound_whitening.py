"""The whitening page written the usual Panel way; see ``bound.py``."""

from functools import partial
from types import SimpleNamespace

import panel as pn
from bound_blind import GAP, WIDE, Page, Written

from dashboards import theme, whitening
from dashboards.figures import whitening as draw


def build_whitening(query):
    app_page = whitening.WhiteningPage(query)
    own, of = whitening.WhiteningPage, Page(app_page)
    color = theme.REGIME_COLOR[app_page.case.regime]
    drawn = {
        "auroc": (draw.auroc_curve, 250),
        "histograms": (draw.histograms, 250),
        "spectrum": (draw.eigenvalues, 230),
        "budget": (draw.budgets, 230),
        "cumulated": (draw.cumulated, 230),
    }
    cards = {
        name: of.figure(
            partial(function, color=color), "alpha", height=height, title=draw.FIGURES[name], name=name
        )
        for name, (function, height) in drawn.items()
    }
    three = {"stylesheets": [whitening._THREE_CSS], **WIDE}
    return pn.Column(
        of.written(own._heading, "alpha", css=whitening._BANNER_CSS),
        of.strip,
        pn.Column(
            cards["auroc"],
            cards["histograms"],
            of.written(own._numbers, "alpha", css=whitening._TABLE_CSS),
            **three,
        ),
        pn.Column(cards["spectrum"], cards["budget"], cards["cumulated"], **three),
        own._cautions(SimpleNamespace(live=Written(of.at()))),
        **GAP,
    )
