"""SVG, PNG and CSV of every figure really download and hold what is on the screen."""

import csv
import io

import pytest
from matplotlib.pyplot import imread

import leakviz

# In the order of the page: its file's name, and words that stand in the drawing.
FIGURES = {
    "fingerprint": [
        "oracle LDA, AUROC with labels",
        "best-unsup, AUROC without labels",
        "leak",
        "Fingerprint box",
    ],
    "robustness": ["oracle gate", "tau", "Sensitivity; ring: this rule, cross: the published one"],
    "rates": ["tau", "rate", "specificity"],
    "contrast": ["best-unsup, AUROC", "cat, ViT-B/16", "automobile, ResNet-50"],
}


@pytest.fixture(scope="module")
def page(standing):
    """Return the page with tau at 0.80 and the map of sensitivity."""
    standing.get_by_role("button", name="Reset").click()
    standing.evaluate("probe.table.go({tau: 120})")
    standing.get_by_role("button", name="sensitivity", exact=True).click()
    standing.wait_for_function("location.search.endsWith('gate=0.95&tau=0.8&metric=sensitivity')")
    return standing


def download(page, figure, kind):
    button = page.get_by_role("button", name=kind, exact=True).nth(list(FIGURES).index(figure))
    with page.expect_download() as started:
        button.click()
    got = started.value
    assert got.suggested_filename == f"{figure}.{kind.lower()}"
    return got.path().read_bytes()


def rows(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"))))


@pytest.mark.parametrize("figure", FIGURES)
def test_svg(page, figure):
    drawing = download(page, figure, "SVG").decode("utf-8")
    assert drawing.startswith("<?xml")
    for words in FIGURES[figure]:
        assert f">{words}</text>" in drawing, words


@pytest.mark.parametrize("figure", FIGURES)
def test_png(page, figure):
    data = download(page, figure, "PNG")
    assert data.startswith(b"\x89PNG\r\n")
    picture = imread(io.BytesIO(data))
    height, width = picture.shape[:2]
    assert width > 700
    assert height > 400
    assert picture[..., :3].std() > 0.02, "the picture is blank"


def test_csv_of_the_scatter(page, battery):
    got = rows(download(page, "fingerprint", "CSV"))
    fires = leakviz.fired(battery, leakviz.Rule(tau="0.8"))
    assert {(r["gate"], r["tau"]) for r in got} == {("0.95", "0.8")}
    assert {r["setting"]: r["fires"] for r in got} == {
        str(s): str(bool(f)) for s, f in zip(battery["setting"].values, fires.values, strict=True)
    }
    assert sum(r["fires"] == "True" for r in got if r["regime"] == "leak") == 20  # published: 20/20 at 0.80
    assert {r["setting"]: float(r["oracle_lda"]) for r in got} == dict(
        zip(battery["setting"].values.tolist(), battery["oracle_lda"].values.tolist(), strict=True)
    )


def test_csv_of_the_map(page, every_stop):
    got = rows(download(page, "robustness", "CSV"))
    assert len(got) == 41 * 161
    at = {(float(r["gate"]), float(r["tau"])): r for r in got}
    for gate, tau in ((0.8, 0.2), (0.95, 0.65), (0.96, 0.65), (1.0, 1.0)):
        for name in ("sensitivity", "specificity", "balanced_accuracy"):
            assert float(at[gate, tau][name]) == every_stop[name].sel(gate=gate, tau=tau).item()


def test_csv_of_the_curves(page, every_stop):
    got = rows(download(page, "rates", "CSV"))
    assert {r["gate"] for r in got} == {"0.95"}
    for rate, regime in (("sensitivity", "leak"), ("specificity", "clean")):
        along = every_stop.sel(gate=0.95, regime=regime)
        own = [r for r in got if r["rate_of"] == rate]
        assert [float(r["tau"]) for r in own] == every_stop["tau"].values.tolist()
        for column in ("rate", "low", "high"):
            assert [float(r[column]) for r in own] == along[column].values.tolist()


def test_csv_of_the_pairs(page, battery):
    got = rows(download(page, "contrast", "CSV"))
    pairs = leakviz.contrast(battery).set_index("pair")
    assert len(got) == len(pairs) == 20
    assert {r["tau"] for r in got} == {"0.8"}
    for r in got:
        assert float(r["difference"]) == pairs.loc[r["pair"], "difference"]
    assert [float(r["difference"]) for r in got] == sorted(pairs["difference"], reverse=True)


def test_a_second_download_holds_what_is_on_the_screen_by_then(page):
    first = download(page, "fingerprint", "CSV")
    assert download(page, "fingerprint", "CSV") == first
    page.evaluate("probe.table.go({tau: 121})")
    page.wait_for_function("location.search.includes('tau=0.805')")
    again = download(page, "fingerprint", "CSV")
    assert again != first
    assert {r["tau"] for r in rows(again)} == {"0.805"}
