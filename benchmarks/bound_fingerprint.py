"""The fingerprint page written the usual Panel way, for either battery: see ``bound.py``."""

from functools import partial

import panel as pn

from dashboards import fingerprint as page
from dashboards import theme
from dashboards.cards import card, downloads
from dashboards.markup import markup


def build_fingerprint(query):
    """Lay one session's page out as the app does; its functions return new figures and new HTML.

    A page of the app, which nobody sees, looks the answers up in the table that it would ship.
    """
    model = page.FingerprintPage(query)
    state, rich = model.state, model.rich
    slim = {"margin": 0, "width": 150, "stylesheets": [page._SELECT_CSS]}
    wide = {"sizing_mode": "stretch_width", "margin": 0}
    step = {"step": 0.01 if rich else 0.005, "format": "0.000", **wide}
    sliders = {
        "gate": pn.widgets.FloatSlider(label="oracle gate", start=0.8, end=1.0, value=state.gate, **step),
        "tau": pn.widgets.FloatSlider(label="tau", start=0.2, end=1.0, value=state.tau, **step),
    }
    stops = model.live.answers["alpha"].values.tolist() if rich else []
    if rich:
        start = stops.index(state.alpha)
        sliders["alpha"] = pn.widgets.IntSlider(
            label="alpha", start=0, end=len(stops) - 1, value=start, **wide
        )
    chosen = ["covariance", "detector"] if rich else []
    menus = {
        name: pn.widgets.Select(label=state.param[name].label, options=state.param[name].objects, **slim)
        for name in ("backbone", "id_dataset", "distance", *chosen, "metric", "chosen")
    }
    inputs = {**sliders, **menus}
    follow = partial(pn.bind, **inputs)

    def at(**values):
        if rich:
            values["alpha"] = stops[values["alpha"]]
        if any(getattr(state, name) != value for name, value in values.items()):
            state.param.update(**values)
        return model

    def written(part, css=""):
        return markup(follow(lambda **values: getattr(at(**values), part)()), css=css)

    def figure(title, name, height, *, caption="", size=(160, 110), css=None):
        def draw(**values):
            return at(**values).figure(name)

        pane = pn.pane.HoloViews(follow(draw), sizing_mode="stretch_both", margin=0)
        links = downloads(
            name, lambda backend: model.figure(name, backend), lambda: model.data(name), size=size
        )
        return card(title, pane, caption, links=links, height=height, stylesheets=css)

    def told(**values):
        now = at(**values).live.at()
        texts = [now[name].item() for name in ("detail", "errors") if name in now]
        return "".join(f'<p class="small">{text}</p>' for text in texts)

    box = figure("Fingerprint box", "scatter", 560)
    box.insert(1, markup(model._legend(), css=page._LEGEND_CSS))
    box.extend([menus["chosen"], markup(follow(told)), written("_two_by_two", page._TABLE_CSS)])
    heat = figure("Would other cuts do?", "map", 200, caption=f"From {page._ramp_legend()}")
    heat.insert(1, menus["metric"])
    third = ("Score AUROC against alpha", "area") if rich else ("Sensitivity and specificity", "rates")
    contrast = figure("The same class, inside and outside the fit set", "contrast", 300, css=[page._WIDE_CSS])
    right = pn.Column(
        markup('<h2>What it gets right <span class="aside">Wilson 95 %</span></h2>'),
        written("_read_outs", page._TABLE_CSS),
        heat,
        figure(*third, 190),
        stylesheets=[":host { gap: 14px }"],
        **wide,
    )
    filters = pn.Row(
        *(menus[name] for name in menus if name not in ("metric", "chosen")),
        margin=0,
        sizing_mode=None,
        stylesheets=[page._FILTER_CSS],
    )
    strip = pn.Row(*sliders.values(), stylesheets=[":host { gap: 36px }"], **wide)
    return pn.Column(
        written("_heading"),
        pn.Column(
            strip, filters, stylesheets=[theme.RULED_CSS], css_classes=["three"] if rich else [], **wide
        ),
        pn.Column(box, right, stylesheets=[theme.TWO_CSS], **wide),
        contrast,
        markup(model._cautions().object),
        stylesheets=[":host { gap: 18px }"],
        **wide,
    )
