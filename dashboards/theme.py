"""Colours, marks, fonts and sizes: the only place where they are named.

The page takes its colours from CSS custom properties that the template sets for
the light and the dark theme; Bokeh's axes and grids read them too (Bokeh looks up
``--bk-...`` before a model's own value). Data colours are the same in both themes.
"""

from __future__ import annotations

from string import Template

LIGHT = {
    "bg": "#ffffff",
    "ink": "#1a1d21",
    "muted": "#5a6470",
    "hair": "#e4e7eb",
    "soft": "#f6f7f9",
    "accent": "#0b4e78",
    "alarm": "#b24a00",
}
DARK = {
    "bg": "#14171a",
    "ink": "#eceef0",
    "muted": "#9aa4af",
    "hair": "#2b3036",
    "soft": "#1b1f23",
    "accent": "#6fb7e6",
    "alarm": "#f0985a",
}

# Colour *and* mark tell a regime, in every figure (Okabe-Ito colours).
REGIME_COLOR = {
    "leak": "#D55E00",
    "clean-excl": "#0072B2",
    "clean-retrained": "#CC79A7",
    "clean-novel": "#009E73",
}
REGIME_MARK = {
    "leak": "circle",
    "clean-excl": "square",
    "clean-retrained": "diamond",
    "clean-novel": "triangle",
}
REGIME_LABEL = {
    "leak": "leak",
    "clean-excl": "clean, class excluded",
    "clean-retrained": "clean, retrained without the class",
    "clean-novel": "clean, other source",
}
UNKNOWN_COLOR = "#8a63b8"  # a split of which nobody said what it is
QUIET_COLOR = "#7a8591"  # lines that lead from mark to mark, on both themes
# Matplotlib's names of the same marks.
PAPER_MARK = {
    **{"circle": "o", "square": "s", "diamond": "D", "triangle": "^", "inverted_triangle": "v"},
    **{"hex": "h", "star": "*", "square_pin": "P", "triangle_pin": "X"},
}

# Prediction vectors side by side, where no regime is drawn: Okabe-Ito colours with a dash and a mark each.
# The first is black, which is ink on a dark page.
VECTOR_COLOR = (LIGHT["ink"], "#CC79A7", "#E69F00")
VECTOR_DASH = ("solid", "dashed", "dashdot")
VECTOR_MARK = ("diamond", "inverted_triangle", "hex")

# The models of the last lesson: honest, leaky, with a near-label flag, and that recalibrated.
MODEL_COLOR = (REGIME_COLOR["clean-excl"], REGIME_COLOR["leak"], "#CC79A7", "#B07C00")
MODEL_MARK = ("square", "circle", "diamond", "inverted_triangle")

# Sources side by side, by how many features hang on each; colour and mark together tell them apart, the last
# stands for all that follow.
SOURCE_COLOR = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07C00"),
    *("#2f8fc4", "#8a63b8", "#a6611a", "#4b8b3b", "#7a8591"),
)
SOURCE_MARK = (
    *("circle", "square", "triangle", "diamond", "inverted_triangle"),
    *("hex", "star", "square_pin", "triangle_pin", "circle"),
)
# What a model scores when it knows a row's source, and when it has never seen it.
PROTOCOL_COLOR = {"baseline": QUIET_COLOR, "lodo": "#0072B2"}
LABEL_COLOR = {"positive": "#2a6690", "negative": "#c9d9e4"}

# The heat map runs from the page's paper to this ink; it is drawn on both themes alike.
RAMP = ["#f6f8fa", "#c9d9e4", "#93b3c8", "#5a8aa9", "#2a6690", "#0b4e78"]
ON_MAP = "#ffffff"  # lines and crosses on the map
# From one end over the middle to the other: AUROC 0, 0.5 and 1.
DIVERGING = [
    "#8f3500",
    "#c65a1e",
    "#e39a72",
    "#f3d3c2",
    *RAMP[:1],
    "#c9d9e4",
    "#93b3c8",
    "#2a6690",
    "#0b4e78",
]


def ramp(n: int = 128) -> list[str]:
    """Return the heat map's colours in `n` even steps.

    Examples
    --------
    >>> ramp(2)
    ['#f6f8fa', '#0b4e78']
    """
    return _blend(RAMP, n)


def diverging(n: int = 101) -> list[str]:
    """Return the colours from one end over the middle to the other in `n` even steps.

    Examples
    --------
    >>> diverging(3)
    ['#8f3500', '#f6f8fa', '#0b4e78']
    """
    return _blend(DIVERGING, n)


def _blend(colors: list[str], n: int) -> list[str]:
    knots = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colors]
    blended = []
    for k in range(n):
        at = k * (len(knots) - 1) / (n - 1)
        low = min(int(at), len(knots) - 2)
        mix = [round(a + (b - a) * (at - low)) for a, b in zip(knots[low], knots[low + 1], strict=True)]
        blended.append("#" + "".join(f"{v:02x}" for v in mix))
    return blended


FONT = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif'
FONT_VALUE = {"value": FONT}  # for glyphs, where a bare string would be a column name
NARROW = 760  # px; below it everything stands in one column

# Bokeh's visual properties that follow the theme, as CSS custom properties.
_BOKEH = """
  --bk-axis-label-text-color: $muted; --bk-axis-label-text-font: $font;
  --bk-major-label-text-color: $muted; --bk-major-label-text-font: $font;
  --bk-grid-line-color: $hair;
  --bk-background-fill-color: transparent; --bk-border-fill-color: transparent;
"""


def css(text: str) -> str:
    """Fill ``$name`` in a style sheet with the theme's custom property and its light value.

    Parameters
    ----------
    text : str
        CSS with ``$ink``, ``$muted``, ``$hair``, ``$soft``, ``$bg``, ``$accent``, ``$alarm``,
        ``$font`` and ``$narrow`` in it.

    Returns
    -------
    str
        CSS in which each colour is ``var(--lv-name, light value)``: in a notebook, where no
        template sets the properties, the light value stands.

    Examples
    --------
    >>> css("p { color: $muted }")
    'p { color: var(--lv-muted, #5a6470) }'
    """
    names = {name: f"var(--lv-{name}, {value})" for name, value in LIGHT.items()}
    return Template(text).substitute(names, font=FONT, narrow=f"{NARROW}px")


def root_css() -> str:
    """Return the custom properties of both themes, for the document's root."""
    return (
        f":root {{ {_properties(LIGHT, 'light')} }}\n:root[data-theme=dark] {{ {_properties(DARK, 'dark')} }}\n"
        + css(
            "html, body { background: $bg; color: $ink; font: 15px/1.45 $font;"
            " font-variant-numeric: tabular-nums; }\n"
        )
    )


def cell_css() -> str:
    """Return the custom properties of both themes for a page in a notebook cell, which stands on whatever is there.

    Until the browser says what that is (`dashboards.notebook`), the page brings its own white.
    """
    return (
        f":host {{ {_properties(LIGHT, 'light')} container-type: inline-size; background: {LIGHT['bg']} }}\n"
        f":host([data-theme]) {{ background: none }}\n:host([data-theme=dark]) {{ {_properties(DARK, 'dark')} }}\n"
    )


def _properties(colors: dict[str, str], scheme: str) -> str:
    own = f"color-scheme: {scheme}; --lv-scheme: {scheme}; " + "".join(
        f"--lv-{name}: {value}; " for name, value in colors.items()
    )
    return own + Template(_BOKEH).substitute(colors, font=FONT)


# What every HTML text on a page shares.
TEXT_CSS = css(
    """
:host, div { color: $ink; font: 15px/1.45 $font; font-variant-numeric: tabular-nums; }
h1 { font-size: 25px; line-height: 1.28; font-weight: 560; letter-spacing: -.015em; margin: 0 0 4px; max-width: 980px }
h1 b { font-weight: 680; color: $accent }
h2 { font-size: calc(15px * var(--lv-large, 1)); font-weight: 620; margin: 0 }
.aside { float: right; font-size: 12.5px; font-weight: 400; color: $muted }
p { margin: 0 }
.note { color: $muted; max-width: 900px; margin: 0 }
.small { font-size: calc(13px * var(--lv-large, 1)); color: $muted }
.help { font-size: 12.5px; color: $muted; margin: 0 }
table { border-collapse: collapse; width: 100%; font-size: 13.5px }
th { text-align: left; font-weight: 400 }
td, th { padding: 5px 0; border-bottom: 1px solid $hair; white-space: nowrap }
.n { text-align: right; padding-left: 10px }
.m { color: $muted }
a { color: $accent }
button { font: inherit; color: $muted; background: none; border: 0; padding: 4px 2px; cursor: pointer }
.framed { color: $ink; border: 1px solid $hair; border-radius: 6px; padding: 5px 10px; font-size: 13px }
.framed:hover { border-color: $muted }
button:focus-visible, select:focus-visible, a:focus-visible { outline: 2px solid $accent; outline-offset: 2px; border-radius: 3px }
select { color-scheme: var(--lv-scheme, light); font: inherit; font-size: 13px; color: $ink; background: $bg; border: 1px solid $hair; border-radius: 6px; padding: 4px 6px; max-width: 100% }
@media (max-width: $narrow) { h1 { font-size: 20px } }
"""
)

# Panel's menus and fields; the selectors outweigh Bokeh's, whose arrow is black on every page.
FIELD_CSS = css(
    """
:host { min-width: 0 }
label { font: 13px/1.4 $font; color: $muted }
:host :is(select, input).bk-input { font: 13px/1.4 $font; color: $ink; background-color: $bg; border: 1px solid $hair; border-radius: 6px; min-height: 30px; padding: 3px 6px; color-scheme: var(--lv-scheme, light); width: 100% }
:host select.bk-input:not([multiple]) { appearance: none; padding-right: 24px; background: linear-gradient(45deg, transparent 50%, $muted 50%) right 13px center / 5px 5px no-repeat, linear-gradient(135deg, $muted 50%, transparent 50%) right 8px center / 5px 5px no-repeat, $bg }
:host :is(select, input).bk-input:focus-visible { outline: 2px solid $accent; outline-offset: 2px; box-shadow: none }
"""
)

# Layouts that pages share: two columns that become one, and the strip of controls between hairlines.
TWO_CSS = css(
    """
:host { display: grid; grid-template-columns: minmax(0, 660px) minmax(0, 1fr); gap: 36px; align-items: start }
.scroll-button { display: none !important }  /* Panel's: it would be a row of its own, with a gap above */
@media (max-width: 960px) { :host { grid-template-columns: minmax(0, 1fr); gap: 26px } }  /* the second would be a ribbon */
"""
)
RULED_CSS = css(
    """
:host { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 10px 36px; border-top: 1px solid $hair; border-bottom: 1px solid $hair; padding: 10px 0 12px }
@media (max-width: 1000px) { :host { grid-template-columns: minmax(0, 1fr) } }
"""
)
