"""The purity and the calibration page written the usual Panel way; see ``bound.py``.

Each function is bound to the widgets that its figure or text depends on, and to no other.
"""

from functools import lru_cache, partial
from types import SimpleNamespace
from urllib.parse import parse_qs

import panel as pn

from dashboards import calibration, purity, theme
from dashboards import purity_answers as answers
from dashboards.cards import card, downloads
from dashboards.figures import calibration as calibration_figures
from dashboards.figures import purity as purity_figures
from dashboards.markup import markup
from dashboards.shelf import ArmSettings, Shelf
from leakviz.purity import K_MIN_STOPS

WIDE = {"sizing_mode": "stretch_width", "margin": 0}
GAP = {"stylesheets": [":host { gap: 18px }"], **WIDE}


class Written:
    """A page's sentences and tables, with the numbers of one stop written in."""

    def __init__(self, now):
        self.now = now

    def text(self, variable):
        return str(self.now[variable].item())

    def attrs(self, **variables):
        return " ".join(f'{name.rstrip("_")}="{self.text(variable)}"' for name, variable in variables.items())

    def button(self, dim, stop, label):
        return f"<span>{label}</span>"

    def switch(self, dim, label):
        return f"<span>{label}</span>"


class Page:
    """What the app's page answers, laid out again with widgets that every function is bound to."""

    def __init__(self, page):
        self.page = page
        self.widgets = {
            slider.dim: pn.widgets.IntSlider(
                name=slider.label, start=0, end=len(page.live.labels[slider.dim]) - 1,
                value=page.live.state[slider.dim], **WIDE,
            )
            for slider in page.live.sliders
        }  # fmt: skip
        for dim in page.live.starts.keys() - self.widgets.keys():
            options = {label: i for i, label in enumerate(page.live.labels[dim])}
            self.widgets[dim] = pn.widgets.Select(
                name=dim, options=options, value=page.live.state[dim], width=150, margin=0
            )
        # Looked up once a step, however many functions ask.
        self.at = lru_cache(maxsize=1024)(self._at)

    def _at(self, **stops):
        page = self.page
        everywhere = {**page.live.state, **stops}
        follows = {dim: page.live._stop(dim, everywhere) for dim in page.live.follows}
        return page.live.answers.isel(everywhere | follows)

    def follow(self, function, *dims):
        if not dims:
            return function(self.at())
        return pn.bind(lambda **stops: function(self.at(**stops)), **{dim: self.widgets[dim] for dim in dims})

    def figure(self, function, *dims, height, title="", caption="", name="figure", size=(160, 110)):
        pane = pn.pane.HoloViews(self.follow(function, *dims), sizing_mode="stretch_both", margin=0)
        links = downloads(name, lambda backend: None, lambda: None, size=size)
        return card(title, pane, caption, links=links, height=height)

    def written(self, part, *dims, css=""):
        """Return what a method of the app's page writes."""
        bare = partial(SimpleNamespace, told=[])
        return markup(self.follow(lambda now: part(bare(live=Written(now))), *dims), css=css)

    @property
    def strip(self):
        sliders = [w for w in self.widgets.values() if isinstance(w, pn.widgets.IntSlider)]
        menus = [w for w in self.widgets.values() if w not in sliders]
        return pn.Column(
            pn.Row(*sliders, stylesheets=[":host { gap: 36px }"], **WIDE),
            pn.Row(*menus, stylesheets=[":host { flex-wrap: wrap; gap: 6px 16px }"], **WIDE),
            **WIDE,
        )


def arms_of(query):
    """Return the simulated arms of as many rows as the link asks for."""
    return Shelf(arms=ArmSettings(n=int(parse_qs(query.lstrip("?"))["n"][0])))


def build_purity(query):
    app_page = purity.PurityPage(query, arms_of(query))
    own, of = purity.PurityPage, Page(app_page)

    def curves(now):
        return purity_figures.purity_curves(now, titles=app_page.titles)

    def certification(now):
        return purity_figures.certification_curves(now, k_mins=K_MIN_STOPS)

    def panel(name):
        ylim = app_page._panel_range(name)
        return lambda now: purity_figures.severity_panel(name, now, ticks=answers.TICKS, ylim=ylim)

    moves = {"delta_c": (), "breadth": ("epsilon",), "spike": ("delta", "k_min"), "m_star": ()}
    certified = ("delta", "k_min", "max_risk", "alpha")
    rates = of.figure(certification, *certified, height=300, title="How long must a pure head be?")
    rates.insert(1, of.written(own._calculator, *certified, css=purity._BUTTON_CSS))
    return pn.Column(
        of.written(own._heading, "delta", "k_min", "ceiling", css=purity._BANNER_CSS),
        of.strip,
        pn.Column(
            of.figure(curves, "delta", "k_min", height=430, title="Purity of the head", name="purity"),
            pn.Column(
                of.written(own._evidence, "delta", "epsilon", css=purity._TABLE_CSS),
                of.written(own._rates, "delta", "k_min", css=purity._TABLE_CSS),
                **GAP,
            ),
            stylesheets=[theme.TWO_CSS],
            **WIDE,
        ),
        rates,
        of.written(own._graded_says, "delta", "k_min", "epsilon"),
        pn.Column(
            *(of.figure(panel(name), *dims, height=230, title=name) for name, dims in moves.items()),
            stylesheets=[purity._FOUR_CSS],
            **WIDE,
        ),
        own._cautions(None),
        **GAP,
    )


def build_calibration(query):
    app_page = calibration.CalibrationPage(query, arms_of(query))
    own, of, draw = calibration.CalibrationPage, Page(app_page), calibration_figures
    fitted = ("method", "fit")
    both = {"stylesheets": [calibration._TWO_CSS], **WIDE}
    diagram = (*fitted, "bins", "strategy", "zoom")
    dispersion = of.figure(draw.dispersions, *fitted, height=300, title="Dispersion |z|")
    dispersion.append(of.written(own._dispersion_says, *fitted))
    expected = of.figure(
        draw.weights, "low", "high", "eta", "a", "b", height=120, title="Expected net benefit"
    )
    weighed = (*fitted, "low", "high", "scale", "eta", "a", "b")
    expected.insert(1, of.written(own._expected_rows, *weighed, css=calibration._TABLE_CSS))
    return pn.Column(
        of.written(own._heading, *fitted),
        of.strip,
        pn.Column(
            of.figure(draw.reliability, *diagram, height=540, title="Reliability"),
            pn.Column(of.written(own._numbers, *fitted, css=calibration._TABLE_CSS), dispersion, **GAP),
            **both,
        ),
        pn.Column(
            of.figure(draw.benefits, *fitted, "low", "high", "scale", height=300, title="Net benefit"),
            expected,
            **both,
        ),
        own._cautions(None),
        **GAP,
    )
