"""The audit page written the usual Panel way; see ``bound.py``."""

from types import SimpleNamespace

import panel as pn
from bound_blind import GAP, WIDE, Page, Written

from dashboards import audit, names
from dashboards import audit_answers as answers
from dashboards.figures import audit as draw
from dashboards.markup import markup

CUTS = ("gate", "tau")
SPACE = (*CUTS, "reading", "convention")


def build_audit(query):
    app_page = audit.AuditPage(query)
    own, of = audit.AuditPage, Page(app_page)
    titles = names.setting_names(answers.own())

    def spaces(now):
        return draw.spaces(
            now,
            answers.readings(),
            convention=str(now["convention"].item()),
            reading=str(now["reading"].item()),
        )

    def said(part):
        return of.written(part, *CUTS, css=audit._TABLE_CSS)

    cards = {
        "published": of.figure(lambda now: draw.published(now, answers.wild()), *CUTS, height=360),
        "own": of.figure(lambda now: draw.own(now, answers.own(), titles), *CUTS, height=360),
        "index": of.figure(lambda now: draw.index_strips(answers.index_settings()), height=230),
        "pairs": of.figure(lambda now: draw.pairs(now, answers.index_settings()), "tau", height=430),
        "spaces": of.figure(spaces, *SPACE, height=400),
    }
    two = {"stylesheets": [audit._PAIR_CSS], **WIDE}
    return pn.Column(
        of.written(own._heading, *CUTS),
        of.strip,
        pn.Column(cards["published"], cards["own"], **two),
        of.follow(lambda now: markup(f'<p class="small">{now["detail"].item()}</p>'), "chosen"),
        pn.Column(pn.Column(said(own._contest), cards["index"], **GAP), cards["pairs"], **two),
        pn.Column(
            cards["spaces"],
            pn.Column(said(own._rule_table), markup(app_page._ablation_table(), css=audit._TABLE_CSS), **GAP),
            **two,
        ),
        own._cautions(SimpleNamespace(live=Written(of.at()))),
        **GAP,
    )
