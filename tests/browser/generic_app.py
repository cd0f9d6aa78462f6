"""A page of its own for the tests: three walked dimensions, and everything that a table can move.

python tests/browser/generic_app.py --port 5007
"""

import holoviews as hv
import holoviews.plotting.bokeh
import numpy as np
import panel as pn
import xarray as xr

from dashboards.figures.style import by_column
from dashboards.live import Attribute, Column, Edge, Live, Select, Slider, Tap
from dashboards.markup import markup

HOSTILE = '<img src=x onerror="alert(1)"> & "quoted" \'too\' </span>'
X = np.linspace(0, 1, 11)


def answers():
    """Return a table whose every entry tells at which stop it is."""
    a, b, c = np.arange(1, 6) / 10, np.arange(1, 5), np.array([-1.0, 0.0, 1.0])
    walked = {"a": a, "b": b, "c": c}
    of = {name: xr.DataArray(values, dims=name) for name, values in walked.items()}
    one = xr.DataArray([1.0], dims="one")
    x, point, pixel = (
        xr.DataArray(np.asarray(values, dtype=float), dims=name)
        for name, values in (("x", X), ("point", range(6)), ("pixel", range(12)))
    )
    bar = xr.DataArray([1.0, 2.0, 3.0], dims="bar")
    say = [[[f"{HOSTILE} a={i:g} b={j} c={k:g}" for k in c] for j in b] for i in a]
    return xr.Dataset(
        {
            "curve": of["a"] + of["b"] * x / 8 + of["c"] * x**2 / 8,
            "coarse": (of["b"] * x / 4).astype(np.float32),
            "bars": of["c"] * bar,
            "part": of["a"] + 0 * bar,
            "box_left": of["a"] * one,
            "box_top": (2 + of["c"]) * one,
            "state": (of["a"] * 10 + of["c"] + point).astype(int) % 2 == 0,
            "gap": xr.where(of["b"] == point, np.nan, of["b"] * 1.0).transpose("b", "point"),
            "image": of["a"] * pixel,
            "constant": x * 0 + 0.5,
            "wide": of["b"] * 1.5,
            "seen": of["c"] > 0,
            "top_at": 2 + of["c"],
            "say": (("a", "b", "c"), np.array(say, dtype=object)),
            "always": ((), HOSTILE),
            "end": (("a", "c"), np.array([[f"{10 * i + k:g}" for k in c] for i in a], dtype=object)),
            "case_of": (of["a"] * 10 + of["b"] + of["c"]).round().astype(int) % 4,
            "word": ("case", np.array(["none", "one", "two", "three"], dtype=object)),
            "picked": ("pick", np.array(["nobody", *(f"point {i}" for i in range(6))], dtype=object)),
        },
        {**walked, "pick": np.arange(7)},
    ).transpose("a", "b", "c", "case", "pick", ...)


def page():
    """Build the page for one session."""
    live = Live(
        answers(),
        sliders=[
            Slider("a", "first", "of five", marks=((0.2, "the second"),)),
            Slider("b", "second"),
            Slider("c", "third"),
        ],
        columns=[
            Column("curve:source", "y", "curve"),
            Column("coarse:source", "y", "coarse"),
            Column("bars:source", "height", ("bars", "part")),
            Column("box:source", "left", "box_left"),
            Column("box:source", "top", "box_top"),
            Column("points:source", "fill_alpha", "state"),
            Column("points:source", "y", "gap"),
            Column("image:source", "image", "image"),
            Column("constant:source", "y", "constant"),
        ],
        attributes=[
            Attribute("curve:glyph", "line_width", "wide"),
            Attribute("points:glyph_renderer", "visible", "seen"),
            Attribute("edge", "top", "top_at"),
        ],
        grips=[
            Edge("edge", "top", "c", by="top_at"),
            Tap("taps", x="a"),
            Select("points", "pick", tuple(range(1, 7))),
        ],
        start={"a": 0.3, "b": 2, "c": 0.0, "pick": 0},
        follows={"case": "case_of"},
        sizing_mode="stretch_width",
    )
    now = live.at()

    def dressed(element, *hooks, **options):
        return element.opts(hooks=list(hooks), **options)

    first = hv.Overlay(
        [
            dressed(hv.Curve((X, now["curve"].values), "x", "y"), live.tag("curve", "source", "glyph")),
            dressed(hv.Curve((X, now["coarse"].values), "x", "y"), live.tag("coarse", "source")),
            dressed(hv.Curve((X, now["constant"].values), "x", "y"), live.tag("constant", "source")),
            dressed(
                hv.Rectangles([(0.3, -1.0, 2.0, 2.0)], ["left", "bottom", "right", "top"]),
                live.tag("box", "source"),
                fill_alpha=0.1,
            ),
        ]
    ).opts(
        xlim=(0, 1), ylim=(-1, 3), width=420, height=220, hooks=[live.edges("edge", top="top_at"), live.taps("taps")]
    )  # fmt: skip
    points = {"x": np.arange(6.0), "y": now["gap"].values, "on": now["state"].values.astype(float)}
    second = hv.Overlay(
        [
            dressed(
                hv.Points(points, ["x", "y"], "on"),
                by_column(fill_alpha="on"),
                live.tag("points", "source", "glyph_renderer"),
                live.selects("points"),
                size=20,
                tools=["tap"],
                visible=False,
            ),
            dressed(
                hv.Bars(([0.0, 1.0, 2.0], (now["bars"] * now["part"]).values), "bar", "height"),
                live.tag("bars", "source"),
            ),
        ]
    ).opts(xlim=(-1, 7), ylim=(-4, 5), width=420, height=220)
    third = dressed(
        hv.Image((range(4), range(3), now["image"].values.reshape(3, 4)), ["i", "j"], "z"),
        live.tag("image", "source"),
        width=420,
        height=220,
    )
    texts = (
        f"<h1>{live.text('say')}</h1><p>{live.text('always')}</p><p>{live.text('word')}, {live.text('picked')}</p>"
        f'<svg width="100" height="10"><line x1="0" y1="5" y2="5" {live.attrs(x2="end")}></line></svg>'
        f"{live.button('b', 3, 'fourth')}{live.menu('pick', 'points')}{live.reset()}"
    )
    return pn.Column(live, markup(texts), pn.Row(first, second, third))


if pn.state.served:
    pn.extension()
    hv.renderer("bokeh").webgl = False
    page().servable()
