"""The retention of the page of held-out sources, written the usual Panel way; see ``bound.py``."""

from types import SimpleNamespace

import panel as pn
from bound_blind import GAP, WIDE, Page, Written

from dashboards import lodo
from dashboards import lodo_answers as answers
from dashboards.cards import card
from dashboards.figures import lodo as figures


def build_lodo(query):
    app_page = lodo.LodoPage(query)
    subject = app_page.shown
    # The app's second table follows the first one's slider; here one strip has both.
    of = app_page.quadrants
    both = SimpleNamespace(
        sliders=(*app_page.live.sliders, *of.sliders),
        **{name: getattr(of, name) for name in ("labels", "state", "starts", "follows", "answers")},
    )
    firing = Page(SimpleNamespace(live=both))
    points = answers.points_of(subject)
    order = [*map(subject.name_of, answers.argmin_order(subject.retention))]

    def scatter(now):
        threshold = float(now["retention_threshold"])
        picture = figures.retention_picture(points, order, threshold=threshold)
        return figures.draw("retention", picture, line=threshold)

    # One table of both sliders, which the app keeps apart; the texts of the threshold are looked up in its own.
    own = answers.retention_answers(subject)
    bare = SimpleNamespace(_subject=subject, _made=app_page._made, sweep=app_page.sweep)

    def told(now):
        at = own.sel(retention_threshold=float(now["retention_threshold"]), method="nearest")
        return lodo.LodoPage._retention(SimpleNamespace(**vars(bare), live=Written(at)))

    def quadrants(now):
        return lodo.LodoPage._quadrant_table(SimpleNamespace(_subject=subject, quadrants=Written(now)))

    bound = firing.follow
    still = {
        name: pn.pane.HoloViews(app_page.figure(name), sizing_mode="stretch_both", margin=0)
        for name in ("gap", "composition")
    }
    return pn.Column(
        firing.strip,
        pn.pane.HTML(app_page._heading(), **WIDE),
        firing.figure(
            scatter, "retention_threshold", height=360, title=figures.FIGURES["retention"], name="retention"
        ),
        pn.pane.HTML(bound(told, "retention_threshold"), **WIDE),
        pn.pane.HTML(bound(quadrants, "retention_threshold", "firing_ratio"), **WIDE),
        *(card(figures.FIGURES[name], pane, height=460) for name, pane in still.items()),
        **GAP,
    )
