"""Figures as files: exact sizes, the same bytes, text that is text, and every mark where the element has it."""

import io
import re
import zlib
from itertools import pairwise

import holoviews as hv
import numpy as np
import pandas as pd
import pytest
from matplotlib import colors
from matplotlib.collections import PathCollection
from matplotlib.image import imread

from dashboards import export, paper_figures, theme
from dashboards.cards import downloads
from dashboards.fingerprint import FingerprintPage
from leakviz.errors import InputError


@pytest.fixture(scope="module")
def fingerprint():
    return FingerprintPage("?tau=0.6&hidden=excluded")


def svg_points(data):
    width, height = re.search(rb'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"', data, re.S).groups()
    return float(width), float(height)


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


@pytest.mark.parametrize("kind", export.KINDS)
def test_a_figure_has_the_same_bytes_every_time_and_the_size_that_was_chosen(fingerprint, kind, tmp_path):
    first, again = (
        export.save(fingerprint, "rates", tmp_path / f"{i}.{kind}", width=85, dpi=100).read_bytes()
        for i in range(2)
    )
    assert first == again
    if kind == "svg":
        assert svg_points(first)[0] == pytest.approx(85 / 25.4 * 72, abs=0.01)
        assert b">sensitivity</text>" in first
        assert b"State: gate 0.95, tau 0.6, hidden regimes excluded" in first  # in the metadata, unbroken
        assert b"<dc:title>Sensitivity and specificity" in first
    elif kind == "pdf":
        box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", first).groups()
        assert float(box[0]) == pytest.approx(85 / 25.4 * 72, abs=0.01)
        assert b"/CreationDate" not in first
        assert b"/Subtype /Type3" not in first  # no letter is a drawing
        assert b"/FontFile2" in first  # TrueType
        assert b"/ToUnicode" in first
        found = pdf_text(first)
        for word in ("sensitivity", "Table 12", "tau 0.6"):
            assert word in found
    else:
        width, _ = (int.from_bytes(first[i : i + 4], "big") for i in (16, 20))
        assert width == pytest.approx(85 / 25.4 * 100, abs=1)
        assert b"tIME" not in first


def test_a_narrow_figure_has_nothing_cut_off(fingerprint):
    figures = {}

    def figure(backend):
        return fingerprint.figure("contrast", backend)

    for width in (60, 200):
        svg = export.draw(figure, "svg", size=(200, 85), width=width).getvalue()
        figures[width] = svg.decode()
        wide, high = svg_points(svg)
        for x, y in re.findall(r'<text[^>]* x="([\d.-]+)" y="([\d.-]+)"', figures[width]):
            assert 0 <= float(x) <= wide
            assert 4 <= float(y) <= high  # a baseline with room for a letter above
    assert ">The same class, inside and outside the fit set</text>" in figures[200]
    assert ">The same class, inside and outside the fit set</text>" not in figures[60]  # in lines
    assert "font-size: 6px" in figures[60]


def test_presets():
    def figure(backend):
        return hv.Overlay([hv.Curve([0.2, 0.4], label="rate")]).opts(hv.Options("Overlay", backend=backend))

    sizes = {}
    for preset in export.PRESETS:
        data = export.draw(figure, "png", preset=preset, size=(200, 100)).getvalue()
        sizes[preset] = [int.from_bytes(data[i : i + 4], "big") for i in (16, 20)]
    # composed for 200 x 100 mm: 170 wide, and 85 / sqrt(0.85) high
    np.testing.assert_allclose(sizes["print"], [170 / 25.4 * 300, 92.195 / 25.4 * 300], atol=1)
    assert sizes["slide"] == [2000, 1125]  # ten inches wide, 16:9, 200 dpi
    svg = {p: export.draw(figure, "svg", preset=p, caption="made up").getvalue().decode() for p in sizes}
    # the caption's type, 0.82 of 8 and of 14 points, and the line's width in the same proportion
    for preset, points in (("print", 8), ("slide", 14)):
        size = re.search(r"font-size: ([\d.]+)px[^>]*>made up", svg[preset])
        assert size is not None
        assert float(size[1]) == pytest.approx(0.82 * points, abs=0.01)
    high = [svg_points(s.encode())[1] for s in (svg["print"], svg["slide"])]
    assert high[0] > 160 / 25.4 * 72 * 110 / 160  # the caption makes it higher
    assert high[1] == pytest.approx(405, abs=0.01)  # but not a slide


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"preset": "poster"}, "preset is 'poster'"),
        ({"width": 5}, "width is 5"),
        ({"width": float("nan")}, "width is nan"),
        ({"dpi": 10_000}, "dpi is 10000"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_it_is(fingerprint, options, named, tmp_path):
    with pytest.raises(InputError, match=named):
        export.save(fingerprint, "rates", tmp_path / "a.svg", size=(120, 80), **options)
    assert list(tmp_path.iterdir()) == []


def test_the_buttons_take_a_size_and_say_what_is_wrong_with_it():
    def figure(backend):
        return hv.Overlay([hv.Curve([0.2, 0.4], label="rate")]).opts(hv.Options("Overlay", backend=backend))

    sent = []
    (files,) = [downloads("rates", figure, lambda: pd.DataFrame({"a": [1]}), size=(200, 100))]
    files._send_msg = sent.append
    assert files.presets["print"]["width"] == "170"
    for message in (
        {"file": "PNG", "preset": "slide", "width": "", "dpi": ""},
        {"file": "PNG", "preset": "print", "width": "85", "dpi": "100"},
        {"file": "CSV", "preset": "print", "width": "", "dpi": ""},
        {"file": "PDF", "preset": "print", "width": "9", "dpi": ""},
        {"file": "PDF", "preset": "print", "width": "1e3", "dpi": ""},
        {"file": "PDF", "preset": "<b>", "width": "", "dpi": ""},
        {"file": "EXE"},
        "nonsense",
    ):
        files._handle_msg(message)
    widths = [int.from_bytes(m["data"][16:20], "big") for m in sent[:2]]
    assert widths[0] == 2000
    assert widths[1] == pytest.approx(85 / 25.4 * 100, abs=1)
    assert (sent[2]["name"], sent[2]["data"]) == ("rates.csv", b"a\n1\n")
    assert ["wrong" in m for m in sent] == [False, False, False, True, True, True]
    assert sent[3]["wrong"] == "width is 9.0; it must be from 40 to 1000."


def test_a_path_names_its_kind(fingerprint, tmp_path):
    with pytest.raises(InputError, match=r"must end in one of \.svg, \.pdf, \.png"):
        export.save(fingerprint, "rates", tmp_path / "a.gif")


def test_a_hostile_name_stays_text_and_in_the_sheet():
    name = "<b>$\\frac{x}$ & " + "x" * 300 + "\x00\u4e2d"

    def figure(backend):
        return hv.Overlay([hv.Curve([0.2, 0.4], label="rate")]).opts(hv.Options("Overlay", backend=backend))

    svg = export.draw(figure, "svg", width=60, caption=name).getvalue().decode()
    assert "&lt;b&gt;$\\frac{x}$ &amp; " in svg
    assert "\x00" not in svg
    lines = export._wrap(name.replace("\x00", " "), 150, 6.56)
    assert all(6.56 * export._extent_of(line) <= 150 for line in lines)
    assert "".join(lines).count("x") == 301


# What is drawn against what the page answers


def drawn_axes(page, name):
    element = page.figure(name, "matplotlib")
    export._load_matplotlib()
    (axes, *_) = hv.renderer("matplotlib").get_plot(element).state.axes
    return axes


def marks(axes):
    """Return position, fill and edge of every mark that matplotlib draws."""
    rows = []
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            offsets = np.ma.getdata(collection.get_offsets())
            for i, (x, y) in enumerate(offsets):
                if not np.isfinite([x, y]).all():
                    continue
                face, edge = collection.get_facecolors(), collection.get_edgecolors()
                rows.append(
                    (
                        round(float(x), 9),
                        round(float(y), 9),
                        colors.to_hex(face[i % len(face)]) if len(face) else "",
                        colors.to_hex(edge[i % len(edge)]) if len(edge) else "",
                    )
                )
    return rows


# The papers' figures


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    made = paper_figures.in_the_wild()
    return made, {f.name: f for f in paper_figures.write(made, folder)}


def test_a_figure_of_a_paper_has_its_files_and_a_caption_that_tells_what_is_whose(written):
    one, files = written
    assert sorted(f.rpartition(".")[2] for f in files) == ["csv", "md", "pdf", "png", "svg"]
    caption = files[f"{one.name}.md"].read_text()
    for kind in ("**Published.**", "**Computed here.**", "**Not public.**"):
        assert kind in caption
    assert one.line in files[f"{one.name}.svg"].read_text()
    read = pd.read_csv(files[f"{one.name}.csv"], keep_default_na=False)
    assert read["setting"].tolist() == one.data["setting"].tolist()


def test_the_wild_is_where_the_table_says(written):
    published = pd.read_csv("data/published/battery_table12.csv", keep_default_na=False)
    novel = published[published["regime"] == "clean-novel"]
    axes = drawn_axes(Drawn(written[0]), "")
    found = marks(axes)
    table = {(round(x, 9), round(y, 9)) for x, y in novel[["oracle_lda", "best_unsup"]].to_numpy()}
    stl10 = {(1.0, 0.77), (1.0, 0.8)}  # section 6; the oracle is "about 1"
    assert {m[:2] for m in found} == table | stl10
    assert len(found) == 14
    filled = [m[:2] for m in found if m[2] == theme.REGIME_COLOR["clean-novel"].lower()]
    assert filled == [(0.953, 0.635)]  # the one that fires, section 6


def test_the_gap_is_where_the_paper_says():
    axes = drawn_axes(Drawn(paper_figures.decodable()), "")
    found = marks(axes)
    top = max(m[1] for m in found)
    assert sorted(m[0] for m in found if m[1] == top) == [0.634, 1.0]  # Table 1, G2: a gap of 0.37
    assert sorted(m[0] for m in found if m[1] == top - 1) == [0.595, 0.882]  # section 4, mac.hw: 0.29
    texts = {t.get_text() for t in axes.texts}
    assert {"Γ 0.37", "Γ 0.29"} <= texts


def test_the_graded_leak_is_drawn_with_the_published_floor():
    one = paper_figures.floor()
    axes = drawn_axes(Drawn(one), "")
    found = {m[:2] for m in marks(axes)}
    graded = one.data[one.data["window_days"] > 0]
    assert found >= {(round(x, 9), round(y, 9)) for x, y in graded[["c_gain", "breadth_percent"]].to_numpy()}
    spans = [p.get_extents() for c in axes.collections for p in c.get_paths()]
    assert any(s.x0 == pytest.approx(0.007) and s.x1 == pytest.approx(0.008) for s in spans)  # section 7.2


class Drawn:
    def __init__(self, one):
        self.one = one

    def figure(self, name, backend):
        return self.one.figure(backend=backend)


def test_arms_reach_the_published_dispersion():
    curves, found, heads = paper_figures.arm_tables(50_000)
    z = found.set_index("arm")["z"]
    # z of a miscalibrated arm grows with the square root of n: 291 at 200,000 (section 7.1)
    assert z["miscalibrated"] == pytest.approx(291 / 2, rel=0.15)
    assert z.drop("miscalibrated").abs().max() < 4
    assert found.set_index("arm")["published"].dropna().to_dict() == {
        "clean": -0.5,
        "miscalibrated": 291,
        "broad": 0.0,
        "laundered": -0.1,
    }
    head = heads[(heads["arm"] == "deterministic") & (heads["percent"] <= 0.3)]
    assert head["purity"].min() == 1.0  # the flag is 0.3 % of the records
    assert set(curves["arm"]) == set(heads["arm"])


# Where a narrow sheet has no room


def test_a_legend_leaves_the_frame_and_labels_do_not_touch(monkeypatch):
    held, put = [], export._put
    monkeypatch.setattr(export, "_put", lambda drawn, *more: (held.append(drawn), put(drawn, *more)))
    grid = np.stack(np.meshgrid(np.arange(30), np.arange(30)), axis=-1).reshape(-1, 2)

    def figure(backend):
        ticks = [(float(i), f"name{i}") for i in range(30)]
        layers = hv.Overlay([hv.Points(grid, label="everywhere"), hv.Points(grid[:9], label="and here")])
        return layers.opts(hv.Options("Overlay", backend=backend, xticks=ticks, show_legend=True))

    words = "a caption of many words that is broken into lines " * 4
    png = export.draw(figure, "png", width=60, dpi=72, caption=words).getvalue()
    (axes,), renderer = held[0].axes, held[0].canvas.get_renderer()
    frame, legend = axes.get_window_extent(renderer), axes.get_legend().get_window_extent(renderer)
    assert legend.y1 < frame.y0
    labels = [t for t in axes.get_xticklabels() if t.get_visible() and t.get_text()]
    boxes = sorted((b.x0, b.x1) for b in (t.get_window_extent(renderer) for t in labels))
    assert 2 <= len(boxes) < 30
    assert all(left[1] < right[0] for left, right in pairwise(boxes))
    edge = imread(io.BytesIO(png))[:, -1, :3]
    assert (edge == 1).all()  # whole letters: the last column of pixels is paper


def test_names_of_many_rows_shrink_and_those_of_groups_are_broken(monkeypatch):
    held = []
    monkeypatch.setattr(export, "_put", lambda drawn, *more: held.append(drawn))
    names = [(float(i), f"a source of name {i}") for i in range(16)]
    groups = [(2.0, "ResNet on Fashion-MNIST"), (6.0, "ViT on Fashion-MNIST"), (11.0, "ViT on MNIST")]

    def drawn(**options):
        def figure(backend):
            layers = hv.Overlay([hv.Rectangles([(0, 0, 15, 15)])])
            return layers.opts(hv.Options("Overlay", backend=backend, show_legend=False, **options))

        export.draw(figure, "png", preset="slide", dpi=50)
        return held[-1].axes[0], held[-1].canvas.get_renderer()

    axes, renderer = drawn(xticks=names, yticks=names, xrotation=90)
    frame, sheet = axes.get_window_extent(renderer), axes.get_figure().bbox
    assert frame.height > 0.55 * sheet.height  # 0.33 is the least that labels leave
    boxes = sorted((b.y0, b.y1) for b in (t.get_window_extent(renderer) for t in axes.get_yticklabels()))
    assert all(low[1] < high[0] + 1 for low, high in pairwise(boxes))
    sizes = {t.get_fontsize() for t in (*axes.get_yticklabels(), *axes.get_xticklabels())}
    assert len(sizes) == 1
    assert 6 < sizes.pop() < 14

    axes, _ = drawn(xticks=groups, xlim=(0, 22))
    said = [t.get_text() for t in axes.get_xticklabels() if t.get_visible()]
    assert [text.replace("\n", " ") for text in said] == [name for _, name in groups]
    assert "\n" in said[0]


def test_a_short_logarithmic_axis_has_plain_numbers(monkeypatch):
    held = []
    monkeypatch.setattr(export, "_put", lambda drawn, *more: held.append(drawn))

    def figure(backend):
        options = {"logx": True, "xlim": (15, 250), "ylim": (0, 1)}
        layers = hv.Overlay([hv.Curve([(15, 0.2), (250, 0.4)])])
        return layers.opts(hv.Options("Overlay", backend=backend, **options))

    export.draw(figure, "png", dpi=50)
    (axes,) = held[0].axes
    ticks = [*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks()]
    said = {t.label1.get_text() for t in ticks if t.label1.get_visible() and 15 <= t.get_loc() <= 250}
    assert {"20", "100", "200"} <= said - {""} <= {f"{n}" for n in (*range(20, 100, 10), 100, 200)}
