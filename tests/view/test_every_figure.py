"""Every figure of every page: what matplotlib draws for a file is what Bokeh draws on the screen, mark by mark.

Both drawings are read back from the artists and the renderers, whoever made them, and reduced to the same kinds of
marks: points, strokes (each piece of a line), rules across the frame, boxes, areas, images and texts, with positions
and with the colour that they have on white paper. Where the two differ on purpose, `PURPOSE` says where and why.
"""

import gc
import io
import re
import zlib
from collections import Counter
from functools import lru_cache

import holoviews as hv
import numpy as np
import pytest
from bokeh.core.property.validation import validate
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import GlyphRenderer, Span
from matplotlib import colors
from matplotlib.collections import LineCollection, PatchCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.markers import MarkerStyle

from dashboards import export, theme
from dashboards.audit import AuditPage
from dashboards.calibration import CalibrationPage
from dashboards.embeddings import EmbeddingsPage
from dashboards.fingerprint import FingerprintPage
from dashboards.lodo import LodoPage
from dashboards.mechanism import MechanismPage
from dashboards.purity import PurityPage
from dashboards.whitening import WhiteningPage

PAPER = (255, 255, 255)

# ---- the pages


def detail():
    found = page_of("fingerprint computed").detail
    found.show_setting("P_vit-mnist_2")
    return found


def embeddings():
    rng = np.random.default_rng(5)
    centres = 2 * rng.normal(size=(4, 12))
    rows = {c: centres[c] + rng.normal(size=(120, 12)) for c in range(4)}
    file = io.BytesIO()
    np.savez(
        file,
        fit=np.concatenate([rows[c][:80] for c in rows]),
        fit_labels=np.repeat(["cat", "dog", "elk", "fox"], 80),
        id_test=np.concatenate([rows[c][80:] for c in range(3)]),
        ood_test=rows[3][80:],
        ood_class=np.array("fox"),
    )
    page = EmbeddingsPage()
    page.load(file.getvalue(), "animals.npz")
    page.use()
    return page


# name: (how the page is made, its figures; of those that one function draws from other columns, one)
PAGES = {
    "fingerprint": (
        lambda: FingerprintPage("?tau=0.6&hidden=excluded"),
        ("scatter", "map", "rates", "contrast"),
    ),
    "fingerprint computed": (
        lambda: FingerprintPage("?battery=computed&tau=0.7"),
        ("scatter", "area"),
    ),
    "detail": (detail, ("maha", "roc")),
    "whitening": (WhiteningPage, ("auroc", "histograms", "spectrum", "budget", "cumulated")),
    "audit": (AuditPage, ("published", "own", "index", "pairs", "spaces")),
    "purity": (
        lambda: PurityPage("?first=nhefs__lr__honest&beside=nhefs__lr__yrdth"),
        ("purity", "certification", "graded"),
    ),
    "calibration": (
        lambda: CalibrationPage("?vector=nhefs__lr__honest"),
        ("reliability", "dispersion", "benefit", "weight"),
    ),
    "lodo": (
        lambda: LodoPage("?case=penguins"),
        ("gap", "left-out", "composition", "retention", "ablation", "explanation"),
    ),
    "learn": (
        lambda: MechanismPage("?step=6"),
        ("plane", "histograms", "roc", "box", "reliability", "purity"),
    ),
    "embeddings": (embeddings, ("box", "contrast", "spectrum")),
}
FIGURES = [(page, name) for page, (_, names) in PAGES.items() for name in names]

# Marks of one drawing that the other has not. Hollow marks are alike: on paper they are filled with its white, so that
# what is drawn before does not shine through. Labels are compared by what they say and by colour: pixels shift them on
# the screen, points on paper.
PURPOSE = {
    ("learn", "plane"): {("point", -99.0, -99.0, "circle", PAPER, (26, 29, 33))},  # follows the finger
}
Y_LABEL = {
    ("audit", "spaces"): "signature, AUROC"
}  # the screen's is of all readings: a button names the present


@lru_cache
def page_of(case):
    return PAGES[case][0]()


@lru_cache
def both(case, name):
    """Return the panels of a figure in both drawings; where things stand on the sheet is for others to see."""
    page, held = page_of(case), []
    shown = hv.renderer("bokeh").get_plot(page.figure(name)).state
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "_put", lambda drawn, *more: held.append(drawn))
        patch.setattr(export, "_lay_out", lambda *more: None)
        patch.setattr(Figure, "savefig", lambda *more, **options: None)
        export.draw(lambda backend: page.figure(name, backend), "svg")
    axes = [a for a in held[0].axes if a.get_label() != "<colorbar>"]
    panels = [panel for panel, *_ in shown.children] if hasattr(shown, "children") else [shown]
    return list(zip(panels, axes, strict=True))


@pytest.fixture(scope="module", autouse=True)
def no_collection():
    """Let the collector rest, and Bokeh's checks of types: thousands of small models are made, and kept."""
    gc.disable()
    with validate(False):
        yield
    both.cache_clear()
    page_of.cache_clear()
    gc.enable()


# ---- drawings to marks


def number(value):
    return float(f"{float(value):.6g}") + 0.0


@lru_cache
def on_paper(color, alpha=1.0):
    """Return a colour as it stands on white paper, None where nothing is seen."""
    if color in (None, "none", ""):
        return None
    *rgb, own = colors.to_rgba(color)
    seen = np.rint(255 * own * alpha) / 255  # both libraries take alpha in steps of one in 255
    return tuple(int(np.rint(255 * (seen * c + 1 - seen))) for c in rgb) if seen else None


def point(x, y, mark, face, edge):
    if np.isfinite([x, y]).all() and (face or edge):
        inside = PAPER if mark in ("x", "cross") or not face else face
        yield "point", number(x), number(y), mark, inside, edge or face


def strokes(x, y, color):
    for ends in zip(x[:-1], y[:-1], x[1:], y[1:], strict=True):
        a, b, c, d = map(number, ends)
        if color and np.isfinite([a, b, c, d]).all() and (a, b) != (c, d):
            yield "stroke", *sorted([(a, b), (c, d)]), color


def area(x, y, color):
    corners = {(number(a), number(b)) for a, b in zip(x, y, strict=True) if np.isfinite([a, b]).all()}
    if color and corners:
        yield "area", frozenset(corners), color


def box(sides, face, edge):
    left, bottom, right, top = map(number, sides)
    if np.isfinite([left, bottom, right, top]).all() and (face or edge):
        yield (
            "box",
            min(left, right),
            min(bottom, top),
            max(left, right),
            max(bottom, top),
            face,
            edge or face,
        )


def image(values, extent, paint):
    """Every pixel, from the lowest row up."""
    cells = [on_paper(tuple(c)) for c in paint(values)]
    yield "image", values.shape, tuple(map(number, extent)), tuple(cells)


def of_bokeh(figure):
    """Yield what is seen of a Bokeh figure."""
    for renderer in [*figure.renderers, *figure.center]:
        if isinstance(renderer, Span) and renderer.visible:
            way = "x" if renderer.dimension == "height" else "y"
            yield "rule", way, number(renderer.location), on_paper(renderer.line_color, renderer.line_alpha)
        if isinstance(renderer, GlyphRenderer) and renderer.visible:
            yield from of_glyph(renderer.glyph, renderer.data_source.data)


def of_glyph(glyph, data):
    n = max((len(v) for v in data.values()), default=0)

    def column(name):
        value = getattr(glyph, name)
        value = value.value if isinstance(value, Value) else value
        if isinstance(value, Field):
            return list(data[value.field])
        named = isinstance(value, str) and value in data and (name != "marker" or value not in MARKS.values())
        return list(data[value]) if named else [value] * n

    def paint(part):
        if f"{part}_color" not in glyph.properties():
            return [None] * n
        pairs = zip(column(f"{part}_color"), column(f"{part}_alpha"), strict=True)
        return [on_paper(color, alpha) for color, alpha in pairs]

    def rows(*names):
        return zip(*map(column, names), strict=True)

    kind = type(glyph).__name__
    if kind == "Scatter":
        for (x, y, mark), face, edge in zip(
            rows("x", "y", "marker"), paint("fill"), paint("line"), strict=True
        ):
            if mark == "circle_cross":  # two marks on paper
                yield from point(x, y, "cross", None, edge)
            yield from point(x, y, mark.removesuffix("_cross"), face, edge)
    elif kind == "Line":
        yield from strokes(column("x"), column("y"), paint("line")[0])
    elif kind == "Segment":
        for (a, b, c, d), color in zip(rows("x0", "y0", "x1", "y1"), paint("line"), strict=True):
            yield from strokes([a, c], [b, d], color)
    elif kind == "Quad":
        for sides, face, edge in zip(
            rows("left", "bottom", "right", "top"), paint("fill"), paint("line"), strict=True
        ):
            yield from box(sides, face, edge)
    elif kind == "Patch":
        (x, y), color = (np.asarray(column(c), float) for c in "xy"), paint("fill")[0]
        for loop in np.split(np.arange(n), np.flatnonzero(np.isnan(x))):
            yield from area(x[loop], y[loop], color)
    elif kind == "Image":
        mapper = glyph.color_mapper
        ramp = colors.ListedColormap(mapper.palette)
        for values, x, y, wide, high in rows("image", "x", "y", "dw", "dh"):
            part = (np.ravel(values) - mapper.low) / (mapper.high - mapper.low)
            yield from image(values, (x, x + wide, y, y + high), lambda _, part=part: ramp(part))
    elif kind == "Text":
        for (x, y, text), color in zip(rows("x", "y", "text"), paint("text"), strict=True):
            if color and text and np.isfinite([x, y]).all():
                yield "text", str(text), color
    else:
        raise AssertionError(f"nobody reads a {kind}")


def outline(path):
    return path.vertices.round(6).tobytes()


MARKS = {
    outline(style.get_path().transformed(style.get_transform())): name
    for name, mark in {**theme.PAPER_MARK, "x": "x", "cross": "+"}.items()
    for style in [MarkerStyle(mark)]
}


def of_matplotlib(axes):
    """Yield what is seen of matplotlib's axes."""
    for found in axes.collections:
        face, edge = (
            [on_paper(tuple(c)) for c in of] or [None]
            for of in (found.get_facecolor(), found.get_edgecolor())
        )
        if isinstance(found, PathCollection):
            paths = found.get_paths()
            for i, (x, y) in enumerate(np.ma.filled(found.get_offsets(), np.nan)):
                mark = MARKS[outline(paths[i % len(paths)])]
                yield from point(x, y, mark, face[i % len(face)], edge[i % len(edge)])
            continue
        for i, path in enumerate(found.get_paths()):
            x, y = path.vertices.T
            fill, line = face[i % len(face)], edge[i % len(edge)]
            if isinstance(found, LineCollection):
                yield from strokes(x, y, line)
            elif isinstance(found, PatchCollection) and len(set(x)) <= 2 and len(set(y)) <= 2:
                yield from box((min(x), min(y), max(x), max(y)), fill, line)
            else:
                yield from area(x, y, fill)
    ways = {"x": axes.get_xaxis_transform(which="grid"), "y": axes.get_yaxis_transform(which="grid")}
    for found in axes.lines:
        color = on_paper(found.get_color(), 1 if found.get_alpha() is None else found.get_alpha())
        data = dict(zip("xy", map(np.asarray, found.get_data()), strict=True))
        rule = [way for way, transform in ways.items() if found.get_transform() == transform]
        if rule:
            yield "rule", rule[0], number(data[rule[0]][0]), color
        else:
            yield from strokes(data["x"], data["y"], color)
    for found in axes.images:
        values = found.get_array()
        values = values[::-1] if found.origin == "upper" else values
        yield from image(values, found.get_extent(), lambda v, f=found: f.cmap(f.norm(np.ravel(v))))
    for found in axes.texts:
        yield "text", found.get_text(), on_paper(found.get_color())
    assert not axes.patches


def title(axes):
    return (axes.get_title(loc="left") or axes.get_title()).replace("\n", " ")


# ---- every figure


@pytest.mark.parametrize(("case", "name"), FIGURES)
def test_every_mark_of_the_file_is_that_of_the_screen(case, name):
    for shown, axes in both(case, name):
        screen, paper = Counter(of_bokeh(shown)), Counter(of_matplotlib(axes))
        for mark in PURPOSE.get((case, name), ()):
            del screen[mark]
        beside = [
            axis for axis in shown.right if "lodo-beside" in axis.tags
        ]  # an axis of texts; on paper texts
        for axis in beside:
            labels = [axis.major_label_overrides[at] for at in axis.ticker.ticks]
            screen.update(("text", text, on_paper(theme.LIGHT["ink"])) for text in labels if text)
        assert sum(screen.values()) > 1
        # a map's two palettes are rounded apart by one step at most
        pixels = [[mark for mark in of if mark[0] == "image"] for of in (screen, paper)]
        for there, here in zip(*pixels, strict=True):
            assert there[:3] == here[:3]
            np.testing.assert_allclose(there[3], here[3], atol=1)
            del screen[there], paper[here]
        assert list(screen - paper)[:3] == []  # on the screen alone
        assert list(paper - screen)[:3] == []  # on paper alone
        for way in "xy":
            span, axis = getattr(shown, f"{way}_range"), getattr(shown, f"{way}axis")[0]
            np.testing.assert_allclose(getattr(axes, f"get_{way}lim")(), (span.start, span.end), rtol=1e-9)
            label = getattr(axes, f"get_{way}label")().replace("\n", " ")
            here = Y_LABEL.get((case, name), label) if way == "y" else label
            assert axis.axis_label == here
            assert (axes.get_xscale() if way == "x" else axes.get_yscale()) == (
                "log" if "Log" in type(axis).__name__ else "linear"
            )
        assert title(axes)


# ---- and with the answers


def drawn_points(case, name, **wanted):
    """Return x, y, face and edge of each point that matplotlib draws, of one mark if it is named, in order."""
    ((_, axes),) = both(case, name)
    marks = [mark for mark in of_matplotlib(axes) if mark[0] == "point"]
    return sorted(
        (x, y, face, edge) for _, x, y, mark, face, edge in marks if mark in wanted.get("marks", (mark,))
    )


def rows_of(x, y, face, edge):
    """Return what `drawn_points` should: columns, and colours that are one or one for each row."""
    n = len(x)
    faces, edges = ([on_paper(c)] * n if isinstance(c, str) else map(on_paper, c) for c in (face, edge))
    return sorted(zip(map(number, x), map(number, y), faces, edges, strict=True))


def strokes_of(case, name, panel=0):
    """Return the pieces of lines that matplotlib draws, by colour."""
    found = {}
    for kind, *ends, color in of_matplotlib(both(case, name)[panel][1]):
        if kind == "stroke":
            found.setdefault(color, set()).update(ends)
    return found


def test_the_box_shows_what_fires_and_what_is_wrong():
    frame = page_of("fingerprint").data("scatter")
    assert len(frame) == 32  # 20 leaks and 12 other sources; the excluded are hidden
    color = frame["regime"].map(theme.REGIME_COLOR)
    points = rows_of(
        frame["oracle_lda"], frame["best_unsup"], np.where(frame["fires"], color, "#ffffff"), color
    )
    wrong = frame[frame["fires"] != (frame["regime"] == "leak")]
    assert len(wrong) == 4
    ink = theme.LIGHT["ink"]
    rings = rows_of(wrong["oracle_lda"], wrong["best_unsup"], ["#ffffff"] * 4, ink)
    assert drawn_points("fingerprint", "scatter") == sorted(points + rings)


def test_histograms_are_the_counts():
    frame = page_of("detail").data("maha")
    ((_, axes),) = both("detail", "maha")
    found = Counter((a, c, d) for kind, a, b, c, d, *_ in of_matplotlib(axes) if kind == "box")
    expected = Counter()
    for kind in ("id", "ood"):
        expected.update(zip(*(map(number, frame[c]) for c in ("left", "right", kind)), strict=True))
    assert found == expected


def test_the_budget_has_two_points_for_each_direction():
    frame = page_of("whitening").data("budget")
    color = str(page_of("whitening").live.at()["color"].item())
    expected = [
        *rows_of(frame["direction"], frame["signal_mass"], "#ffffff", theme.LIGHT["ink"]),
        *rows_of(frame["direction"], frame["budget"], color, color),
    ]
    found = drawn_points("whitening", "budget")
    assert sorted(m[2:] for m in found) == sorted(m[2:] for m in expected)
    low = both("whitening", "budget")[0][1].get_ylim()[0]  # what is less stands at the foot
    order = [np.sort([max(m[1], low) for m in of if m[2] == PAPER]) for of in (found, expected)]
    np.testing.assert_allclose(*order, rtol=1e-4)


def test_settings_in_both_spaces_are_where_they_read():
    page = page_of("audit")
    frame = page.data("spaces")
    color = frame["regime"].map(theme.REGIME_COLOR)
    expected = rows_of(
        frame["embedding_maha"], frame[page.state.reading], np.where(frame["fires"], color, "#ffffff"), color
    )
    assert drawn_points("audit", "spaces") == expected


def test_purity_curves_are_the_data_in_the_vectors_colours():
    curves = page_of("purity").data("purity").groupby("vector", sort=False)
    drawn = strokes_of("purity", "purity")
    for (_, data), color in zip(curves, theme.VECTOR_COLOR, strict=False):
        assert drawn[on_paper(color)] == {(number(k), number(p)) for k, p in data[["k", "purity"]].to_numpy()}
    legend = both("purity", "purity")[0][1].get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["convicts", *page_of("purity").titles[:2]]


def test_calibration_bins_are_the_answer():
    bins = page_of("calibration").answer().bins
    expected = rows_of(bins["predicted"].values, bins["observed"].values, *[theme.LIGHT["ink"]] * 2)
    assert len(expected) == 10
    np.testing.assert_allclose(
        [m[:2] for m in drawn_points("calibration", "reliability")], [m[:2] for m in expected], atol=1e-6
    )
    assert [m[2:] for m in drawn_points("calibration", "reliability")] == [m[2:] for m in expected]


def test_sources_have_their_gap_and_features_their_source():
    gap = page_of("lodo").data("gap")
    found = drawn_points("lodo", "gap")
    for column, face in (("baseline", "#ffffff"), ("lodo", theme.PROTOCOL_COLOR["lodo"])):
        values = sorted(number(v) for v in gap[column].dropna())
        assert values == sorted(m[0] for m in found if m[2] == on_paper(face))
    kept = page_of("lodo").data("retention").dropna(subset=["retention"])
    faces = drawn_points("lodo", "retention")
    x = np.clip(kept["retention"], -1, 1.5)
    assert sorted(zip(map(number, x), map(number, kept["coefficient"]), strict=True)) == sorted(
        m[:2] for m in faces
    )
    filled = {m[0] for m in faces if m[2] != PAPER}
    assert filled == {number(v) for v in x[kept["shortcut"]]}


def test_the_plane_shows_rows_of_the_world_and_nothing_else():
    frame = page_of("learn").data("plane")
    color = on_paper(str(page_of("learn").live.at()["color"].item()), 0.75)
    found = np.array([m[:2] for m in drawn_points("learn", "plane") if m[3] == color])
    rows = frame.loc[frame["role"] == "ood_test", ["feature_1", "feature_2"]].to_numpy()
    away = np.sqrt(((found[:, None] - rows) ** 2).sum(axis=2)).min(axis=1)
    assert len(found) == 100
    assert away.max() < 1e-4
    legend = both("learn", "plane")[0][
        1
    ].get_legend()  # of no mark that is not there: the class is not in the fit set
    assert [t.get_text() for t in legend.get_texts()] == ["fit set", "ID test", "OOD class, test"]


def test_eigenvalues_are_the_data():
    frame = page_of("embeddings").data("spectrum")
    drawn = set().union(*strokes_of("embeddings", "spectrum").values())
    for column in ("eigenvalue", "shrunk"):
        assert {(number(x), number(y)) for x, y in frame[["end", column]].to_numpy()} <= drawn


# ---- the files


def file_of(case, name, kind, **options):
    return export.draw(lambda backend: page_of(case).figure(name, backend), kind, **options).getvalue()


def pdf_text(data):
    """Return what a PDF's text operators show, strings joined: what a search in it finds."""
    shown = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.S):
        try:
            content = zlib.decompress(stream)
        except zlib.error:
            continue
        for run in re.findall(
            rb"(\[(?:\((?:\\.|[^\\)])*\)|[^\]])*\]\s*TJ|\((?:\\.|[^\\)])*\)\s*Tj)", content
        ):
            parts = re.findall(rb"\(((?:\\.|[^\\)])*)\)", run)
            # two bytes a letter, which the font's ToUnicode table maps to itself; ligatures have a font of their own
            shown.append(re.sub(rb"\\(.)", rb"\1", b"".join(parts)).decode("utf-16-be", "replace"))
    return "\n".join(shown)


def test_what_is_in_the_files():
    svg = file_of("whitening", "budget", "svg")
    assert svg == file_of("whitening", "budget", "svg")
    for words in (
        "Budget of each direction; grey: first and last tenth",
        "direction, largest eigenvalue first",
        "share",
    ):
        assert f">{words}</text>" in svg.decode()
    found = pdf_text(file_of("lodo", "gap", "pdf"))
    assert "Each source when it is left out" in found
    assert "Gentoo" in found
    png = file_of("learn", "box", "png", dpi=72)
    assert imread(io.BytesIO(png))[0, 0, :3].tolist() == list(colors.to_rgb(theme.LIGHT["bg"]))
