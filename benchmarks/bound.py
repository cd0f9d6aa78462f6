"""The fingerprint page written the usual Panel way: the reference of ``drag.py``.

    panel serve benchmarks/bound.py

`pn.bind` makes the functions follow the widgets; they return new figures and new HTML. The
functions of leakviz and of ``dashboards.figures``, the layout, the template and the server's
settings are those of the app, and the answers of all stops are computed once per process, so what a
step costs here is what drawing a figure anew costs.
"""

import sys
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace

import panel as pn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from app import framed
from dashboards import fingerprint as page
from dashboards import server
from dashboards.cards import card, downloads
from dashboards.figures import fingerprint as figures
from dashboards.markup import markup
from dashboards.shell import Shell


@lru_cache(maxsize=1024)
def at(gate, tau, backbone, id_dataset, distance, metric, chosen):
    """Look up the present stop in the same cached table that the app ships to the browser."""
    table = page.answers(backbone, id_dataset, distance)
    table = table.sel(gate=gate, tau=tau, method="nearest").sel(metric=metric, chosen=chosen)
    return table.isel({f"show_{name}": 1 for name in figures.REGIMES})


def scatter(**where):
    now = at(**where)
    link = [now[f"link_{end}"].item() for end in ("x0", "y0", "x1", "y1")]
    return figures.scatter(page.published(), now, link=link)


def heat_map(gate, tau, metric, **where):
    now = at(gate=gate, tau=tau, metric=metric, **where)
    return figures.heat_map(now, gates=page.GATES, taus=page.TAUS, gate=gate, tau=tau, metric=metric)


def rate_curves(**where):
    return figures.rate_curves(at(**where), taus=page.TAUS, tau=where["tau"])


def dumbbells(**where):
    return figures.dumbbells(page.matched_pairs(), at(**where), tau=where["tau"])


class Written:
    """The page's sentences and tables, with the numbers of one stop written in."""

    def __init__(self, now):
        self.now = now

    def text(self, variable):
        return str(self.now[variable].item())

    def attrs(self, **variables):
        return " ".join(f'{name}="{self.text(variable)}"' for name, variable in variables.items())

    def switch(self, dim, label):
        return f"<span>{label}</span>"


def sentences(part, **where):
    """Return what a method of the app's page writes, at one stop."""
    return part(SimpleNamespace(live=Written(at(**where)), told=()))


def told(**where):
    now = Written(at(**where))
    return (
        f'<p class="small">{now.text("detail")}</p><p class="small">{now.text("errors")}</p>'
        f'<p class="small">{len(page.published()["setting"])} settings, mean of three probe seeds. {page.SOURCE}.</p>'
    )


def build():
    """Lay one session's page out as the app does."""
    state = page.FingerprintState.of(page.published())
    slim = {"margin": 0, "width": 150, "stylesheets": [page._SELECT_CSS]}
    stops = {"step": 0.005, "format": "0.000", "margin": 0, "sizing_mode": "stretch_width"}
    gate = pn.widgets.FloatSlider(name="oracle gate", start=0.8, end=1.0, value=page.RULE.gate, **stops)
    tau = pn.widgets.FloatSlider(name="tau", start=0.2, end=1.0, value=page.RULE.tau, **stops)
    menus = {
        name: pn.widgets.Select(name=state.param[name].label, options=state.param[name].objects, **slim)
        for name in ("backbone", "id_dataset", "distance", "metric", "chosen")
    }
    inputs = {"gate": gate, "tau": tau, **menus}
    follow = partial(pn.bind, **inputs)

    def written(part, css=""):
        return markup(pn.bind(partial(sentences, part), **inputs), css=css)

    def present():
        app_page = page.FingerprintPage()
        app_page.state.param.update(**{name: widget.value for name, widget in inputs.items()})
        return app_page

    def figure(title, function, name, height, *, caption="", size=(160, 110), css=None):
        pane = pn.pane.HoloViews(follow(function), sizing_mode="stretch_both", margin=0)
        links = downloads(
            name, lambda backend: present().figure(name, backend), lambda: present().data(name), size=size
        )
        return card(title, pane, caption, links=links, height=height, stylesheets=css)

    own = page.FingerprintPage
    box = figure("Fingerprint box", scatter, "scatter", 560)
    box.insert(1, markup(own._legend(SimpleNamespace(live=Written(None))), css=page._LEGEND_CSS))
    box.extend([menus["chosen"], markup(follow(told)), written(own._two_by_two, page._TABLE_CSS)])
    heat = figure("Would other cuts do?", heat_map, "map", 200, caption=f"From {page._ramp_legend()}")
    heat.insert(1, menus["metric"])
    rates = figure(
        "Sensitivity and specificity at this gate",
        rate_curves,
        "rates",
        190,
        caption="Solid: sensitivity. Dashed: specificity. Bands: Wilson 95 %. Dotted: the published tau.",
    )
    contrast = figure(
        "The same class, inside and outside the fit set", dumbbells, "contrast", 300, css=[page._WIDE_CSS]
    )
    wide = {"sizing_mode": "stretch_width", "margin": 0}
    right = pn.Column(
        markup('<h2>What it gets right <span class="aside">Wilson 95 %</span></h2>'),
        written(own._read_outs, page._TABLE_CSS),
        heat,
        rates,
        stylesheets=[":host { gap: 14px }"],
        **wide,
    )
    filters = pn.Row(
        *(menus[name] for name in ("backbone", "id_dataset", "distance")),
        margin=0,
        sizing_mode=None,
        stylesheets=[page._FILTER_CSS],
    )
    strip = pn.Row(gate, tau, stylesheets=[":host { gap: 36px }"], **wide)
    return pn.Column(
        written(own._heading),
        pn.Column(strip, filters, stylesheets=[page._RULED_CSS], **wide),
        pn.Column(box, right, stylesheets=[page._TWO_CSS], **wide),
        contrast,
        markup(own._cautions(None).object),
        stylesheets=[":host { gap: 18px }"],
        **wide,
    )


if pn.state.served:
    server.prepare()
    pn.state.onload(server.no_delay)
    framed(Shell(pages=[["bound", "Fingerprint, bound"]], page="bound"), build()).servable(title="bound")
