"""The world of the page Learn written the usual Panel way; see ``bound.py``."""

from functools import partial

import panel as pn
from bound_blind import GAP, WIDE, Page

from dashboards import mechanism
from dashboards.figures import mechanism as draw


def build_learn(query):
    of = Page(mechanism.MechanismPage(query))
    rule = mechanism.RULE
    drawn = {
        "plane": (draw.plane, 400),
        "histograms": (draw.histograms, 150),
        "roc": (draw.roc, 180),
        "box": (partial(draw.box, gate=rule.gate, tau=rule.tau), 180),
    }
    cards = {
        # The place in the box does not depend on alpha.
        name: of.figure(
            function,
            *(() if name == "box" else ("alpha",)),
            height=height,
            title=draw.FIGURES[name],
            name=name,
        )
        for name, (function, height) in drawn.items()
    }

    def sentence(now):
        told = (str(now[name].item()) for name in ("fit_says", "tells_says", "auroc_says", "line_says"))
        return "<h1>{}: {} (AUROC {}), while {}.</h1>".format(*told)

    def numbers(now):
        told = (str(now[name].item()) for name in ("oracle_says", "auroc_says", "interval_says", "word_says"))
        return "<p>line {}, detector {} ({}): {}</p>".format(*told)

    return pn.Column(
        mechanism.markup(of.follow(sentence, "alpha")),
        of.strip,
        pn.Row(
            pn.Column(cards["plane"], cards["histograms"], **WIDE),
            pn.Column(
                mechanism.markup(of.follow(numbers, "alpha")), cards["roc"], cards["box"], width=300, margin=0
            ),
            **WIDE,
        ),
        **GAP,
    )
