"""A report of a user's own predictions and of shipped data: HTML, PDF, JSON, and the same again."""

import base64
import hashlib
import html
import io
import json
import re
import shlex
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl

import holoviews as hv
import numpy as np
import pandas as pd
import pytest
import typer
from pypdf import PdfReader

import app
from dashboards import fonts, lodo_answers, report_command, report_content, report_paper
from dashboards.embeddings import MANY_ARRAYS, EmbeddingsPage
from dashboards.lodo import LodoPage
from dashboards.predictions import PredictionsPage
from dashboards.purity import PurityPage
from dashboards.report import ReportPage, ReportState
from dashboards.report_content import PAGES, asked_section, named_own, read_html
from dashboards.report_file import (
    Asked,
    _end_blocks,
    _end_html,
    applying,
    html_with,
    make_report,
    pdf_of,
    rows_of,
)
from dashboards.shelf import Shelf
from leakviz import InputError, cli, load_battery, read_predictions, save_battery
from leakviz import report as core
from leakviz._progress import bar
from leakviz.lessons import lessons
from leakviz.paths import write_all

HOSTILE = "r<img src=x onerror=alert(1)>$\\frac{x}$.csv"
NOTE = "see <script>alert(1)</script> & $5_{x}$\nsecond line"


def ask(**asked: object) -> int:
    whole = {
        **dict.fromkeys(("notes", "title", "author", "out", "pdf", "json", "from"), ""),
        **{"sections": [], "files": [], "note": [], "options": {}, "date": "2026-01-31"},
        **asked,
    }
    return report_command.main([json.dumps(whole)])


@pytest.fixture(scope="module")
def one_figure():
    """Have a purity section one figure: what is looked at here is around it, and each one costs seconds."""
    whole = report_content._KINDS["purity"]
    with pytest.MonkeyPatch.context() as patch:
        first = whole._replace(figures=lambda page: whole.figures(page)[:1])
        patch.setitem(report_content._KINDS, "purity", first)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_figure):
    """One report of a hostile file, by the command, with all its files."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(1)
    p = np.round(rng.uniform(0.05, 0.95, 300), 6)
    file = folder / HOSTILE
    pd.DataFrame({"risk": p, "died": np.where(rng.uniform(size=300) < p, "yes", "no")}).to_csv(
        file, index=False
    )
    asked = {
        "files": [str(file)],
        "options": {"positive": "yes"},
        "sections": ["purity:first=own&beside=none&third=none&delta=0.1"],
        "notes": NOTE,
        "note": ["1:" + NOTE],
        "title": "A <b>title</b> of $x$",
    }
    paths = {kind: str(folder / f"a.{kind}") for kind in ("pdf", "json")}
    assert ask(**asked, **paths, out=str(folder / "a.html")) == 0
    return folder, file, p, asked


@pytest.fixture(scope="module")
def brought(tmp_path_factory):
    """A report that the app makes of everything that a user can bring, and the same by the command that it prints."""
    folder = tmp_path_factory.mktemp("brought")
    rng = np.random.default_rng(0)
    classes = np.repeat(["cat", "dog, wild", "fox"], 60)
    centres = 8 * np.repeat(np.eye(3, 6), 60, axis=0)
    fit, test = (centres + rng.normal(size=(180, 6)) for _ in range(2))
    dog = classes == "dog, wild"
    np.savez(folder / "emb.npz", x=fit, classes=classes, own=test[~dog], other=test[dog])
    y = rng.integers(0, 2, 240)
    table = pd.DataFrame(
        {"a": y + rng.normal(size=240), "b": rng.normal(size=240), "site": np.arange(240) % 3}
    )
    table.assign(died=np.where(y, "yes", "no")).to_csv(folder / "sites.csv", index=False, sep=";")
    p = np.round(rng.uniform(0.05, 0.95, 200), 6)
    for name, words in (("a?b.csv", ("yes", "no")), ("-c.csv", ("died", "lived"))):
        frame = pd.DataFrame({"risk": p, "y": np.where(rng.uniform(size=200) < p, *words)})
        frame.to_csv(folder / name, index=False)

    features = EmbeddingsPage()
    shelf = features.shelf
    features.load(folder / "emb.npz")
    said = {"fit": "x", "id_test": "own", "ood_test": "other", "fit_labels": "classes", "k": "10"}
    for role, value in {**said, "ood_class": "dog, wild"}.items():
        features.say(role, value)
    features.use()
    (audit,) = shelf.audits
    save_battery(load_battery("published").isel(setting=slice(0, 12)), folder / "mine.nc")
    features.load(folder / "mine.nc")
    predictions = PredictionsPage(shelf=shelf)
    for name, event in (("a?b.csv", "yes"), ("-c.csv", "died")):
        predictions.load(folder / name)
        predictions.say("positive", event)
        predictions.use()
    sources = LodoPage("", shelf)
    sources.own.load(folder / "sites.csv")
    answers = {"label": "died", "positive": "yes", "source": "site", "model": "logistic-unweighted"}
    for role, value in answers.items():
        sources.own.say(role, value)
    sources.own.use()

    page = ReportPage(shelf=shelf, made={"embeddings": features, "lodo": sources})
    features.show_audit(audit.name)
    features.view.live.go(gate=0.9, tau=0.6)
    for name in ("embeddings", "lodo"):
        page.add(name)
    one, other = shelf.own
    page.state.sections = [
        *page.state.sections,
        ("purity", f"first={one.name}&beside={other.name}", "a note"),
        ("fingerprint", f"battery={shelf.batteries[-1].name}&tau=0.6", ""),
    ]
    page.make("json")
    assert page.alert == ""
    document = core.read_report(page.files["json"])
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(cli, "_child", lambda command: report_command.main(command[3:]))
        patch.setattr(
            report_command, "make_report", lambda *a, **k: made.append(make_report(*a, **k)) or made[0]
        )
        command = document["command"].replace("--out report.html --pdf report.pdf", "")
        words = shlex.split(command)[1:]
        assert typer.main.get_command(cli.app).main(words, "leakviz", standalone_mode=False) == 0
    return SimpleNamespace(folder=folder, page=page, audit=audit, document=document, again=made[0])


def test_the_command_of_the_apps_report_makes_the_same_report(brought):
    assert (brought.folder / "report.json").read_bytes() == brought.page.files["json"]
    kinds = {file["name"]: file["kind"] for file in brought.document["files"]}
    assert kinds == {
        "a?b.csv": "predictions",
        "-c.csv": "predictions",
        "emb.npz": "embeddings",
        "mine.nc": "battery",
        "sites.csv": "sources",
    }
    for file in brought.document["files"]:
        assert file["sha256"] == hashlib.sha256((brought.folder / file["name"]).read_bytes()).hexdigest()
    embeddings = brought.document["sections"][0]
    assert "gate=0.9&tau=0.6" in embeddings["state"]
    # 60 dogs of the fit set are what the labels say, before what the scores make of them.
    assert embeddings["verdict"].startswith(
        "By its labels the fit set holds 60 rows of the OOD class (dog, wild): a leak. "
        "At gate 0.90 and tau 0.60 the split of emb.npz fires"
    )
    assert ["audit", "emb.npz"] in embeddings["parameters"]
    hashes = {file["name"]: file["content_hash"] for file in brought.document["files"]}
    of = {one["title"]: one for section in brought.document["sections"] for one in section["data"]}
    assert {name: of[name]["content_hash"] for name in hashes} == hashes
    assert not any("SHA-256" in one["source"] for one in of.values())
    assert of["-c.csv"]["source"].endswith("; positive class died")
    pairs = zip(brought.page._report[1].sections, brought.again.sections, strict=True)
    for app_s, again in pairs:
        for figure in app_s.figures:
            if figure.part:
                continue
            shown, drawn = (
                (one.page.view if one.facts["page"] == "embeddings" else one.page).data(figure.name)
                for one in (app_s, again)
            )
            assert len(shown)
            pd.testing.assert_frame_equal(shown, drawn)


def test_a_report_of_many_files_is_made_again_from_its_json(brought):
    folder = brought.folder
    files = [str(folder / file["name"]) for file in brought.document["files"]]
    again = folder / "again.json"
    assert ask(**{"from": str(folder / "report.json")}, files=files, json=str(again)) == 0
    assert again.read_bytes() == brought.page.files["json"]


def test_each_limit_stands_where_it_applies(brought):
    sections = {section["page"]: section for section in brought.document["sections"]}
    apply = {page: set(applying(section)) for page, section in sections.items()}
    four = {"near-deterministic outcome", "few events", "dependent settings", "too few sources"}
    # 200 risks with about 100 events; three sources; 12 published settings; 60 OOD rows.
    fewest = min(min(int(v.y.sum()), int((1 - v.y).sum())) for v in brought.page.shelf.own)
    assert four & apply["purity"] == ({"few events"} if fewest < 100 else set())
    assert fewest < 100
    assert four & apply["lodo"] == {"too few sources"}
    assert four & apply["fingerprint"] == {"dependent settings"}
    assert four & apply["embeddings"] == set()
    assert "few test rows" in apply["embeddings"]


def test_what_a_file_shows_where_nobody_says_it():
    owns = [report_command.Own("own:1", {"kind": kind, "name": "f"}) for kind in core.READERS]
    pages = [[p for p, _, _ in report_command._wanted({"sections": [], "note": []}, [own])] for own in owns]
    assert pages == [["purity", "calibration"], ["embeddings", "whitening"], ["fingerprint"], ["lodo"]]


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.ids, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href", "action", "data"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_data(self, data):
        self.text.append(data)


def test_the_html_needs_nothing_and_what_users_wrote_is_text(made):
    folder = made[0]
    text = (folder / "a.html").read_text()
    seen = Seen()
    seen.feed(text)
    assert not {"script", "img", "iframe", "object", "b\u00a0"} & set(seen.tags)
    assert all(link.startswith(("#", "data:,")) for link in seen.links)
    assert not re.search(r"url\((?!#)|@import", text)
    assert len(set(seen.ids)) == len(seen.ids)
    assert "default-src 'none'" in text
    whole = "".join(seen.text)
    for words in (
        HOSTILE,
        NOTE,
        "A <b>title</b> of $x$",
        "Limits of this result",
        "@misc{jacobs2026priorfree",
    ):
        assert words in whole
    assert seen.tags.count("svg") == 1
    assert "few events" not in whole.split("Checked, and not found")[0]  # about 150 events
    assert (
        whole.index("the blind test says")
        < whole.index("Figure 1.")
        < whole.index("Notes")
        < whole.index("Parameters")
    )


def test_the_pdf_is_a4_with_selectable_text_and_no_pixels(made):
    folder = made[0]
    reader = PdfReader(folder / "a.pdf")
    texts = [page.extract_text() for page in reader.pages]
    for number, page in enumerate(reader.pages, start=1):
        assert [round(float(v)) for v in page.mediabox[2:]] == [595, 842]
        assert f"page {number} of {len(reader.pages)}" in texts[number - 1]
        assert len(page.images) == 0
    (drawn,) = [page for page in reader.pages if "Figure 1." in page.extract_text()]
    operations = drawn.get_contents().operations
    # A figure is the last that is painted, so that nothing hides it, and all that is behind it is text and lines.
    assert [operator for _, operator in operations[-4:]] == [b"q", b"cm", b"Do", b"Q"]
    assert b"re" not in {operator for _, operator in operations}
    whole = "\n".join(texts)
    flat = " ".join(whole.split())
    for words in (
        HOSTILE,
        "see <script>alert(1)</script> & $5_{x}$",
        "records, from the highest predicted risk down",
    ):
        assert words in flat  # the last one is a figure's axis
    assert reader.metadata.title == "A <b>title</b> of $x$"
    assert reader.metadata.creation_date is None


def test_the_pdf_says_it_in_order_and_says_what_it_was_made_of(made):
    folder = made[0]
    document = core.read_report((folder / "a.json").read_text())
    flat = " ".join(" ".join(page.extract_text() for page in PdfReader(folder / "a.pdf").pages).split())
    order = [
        document["sections"][0]["verdict"],
        "The evidence, with 95 % intervals",  # the table
        "Figure 1.",
        "Notes see <script>",
        "Limits of this result",
        "Parameters predictions",
        "Data – ",
        "How this report was made",
        "The same report again",
        "Versions python",
        "Methods that were used, as BibTeX",
        "@misc{jacobs2026priorfree",
    ]
    places, at = [], 0
    for words in order:
        assert words in flat[at:], words
        at = flat.index(words, at)
        places.append(at)
    assert places == sorted(places)
    (entry,) = document["files"]
    squeezed, text = re.sub(r"\s", "", flat), (folder / "a.html").read_text()
    command = re.sub(r"[\s'\"\\\\]", "", document["command"])
    for kind, whole in (("html", re.sub(r"\s", "", html.unescape(text))), ("pdf", squeezed)):
        for words in (entry["sha256"], entry["content_hash"], "31January2026"):
            assert words in whole, kind
        for package, number in document["versions"].items():
            assert re.sub(r"\s", "", f"{package} {number}") in whole, kind
        assert command in re.sub(r"['\"\\\\]", "", whole), kind


def test_a_heading_stands_with_what_it_leads_to_and_no_row_alone():
    block = report_paper.Block
    for before in range(0, 60, 2):  # lines above: somewhere among them the page ends wherever it can
        paper = report_paper.Paper(title="t")
        lines = [block("under", f"line {i}") for i in range(before)]
        small = [["a", f"{i}"] for i in range(5)]
        paper.lay_out(
            [
                *lines,
                *[
                    block("heading", "1. Head"),
                    block("muted", "of"),
                    block("verdict", "Says."),
                    block("text", "More."),
                ],
                *[block("subheading", "Parameters"), block("table", "", rows=small)],
                *[block("subheading", "Data"), block("item", "Title"), block("under", "hash")],
                block("table", "long", rows=[[f"r{i}", "x"] for i in range(60)]),
            ]
        )
        on = {mark.text: number for number, marks in enumerate(paper.pages) for mark in marks if mark.text}
        assert on["1. Head"] == on["of"] == on["Says."] == on["More."]
        assert on["Parameters"] == on["0"] == on["4"]
        assert on["Data"] == on["Title"] == on["hash"]
        assert on["long"] == on["r0"] == on["r1"]
        assert on["r58"] == on["r59"]


def test_no_text_leaves_its_page_or_lies_on_another():
    paper = report_paper.Paper(title="t" * 400, author="a")
    long = "word " * 300 + "x" * 500
    paper.lay_out(
        [
            report_paper.Block(kind, long)
            for kind in ("title", "heading", "text", "item", "note", "code", "caption", "verdict")
        ]
        + [report_paper.Block("table", "t", rows=[[long[:300], "b\nc"]] * 30, header=["one", "two"])]
    )
    assert len(paper.pages) > 3
    for number, marks in enumerate(paper.pages, start=1):
        texts = [m for m in [*marks, *paper._foot(number)] if not m.length]
        for mark in texts:
            assert (
                mark.x + report_paper.extent(mark.text, mark.style)
                <= report_paper.WIDE - report_paper.MARGIN + 0.5
            )
        # the baseline of what is set lies above the foot, and no two lines of one column are nearer than their type
        assert min(m.y for m in marks) > report_paper.FOOT + 10
        for x in {m.x for m in texts}:
            column = sorted((m for m in texts if m.x == x), key=lambda m: m.y)
            for below, above in pairwise(column):
                assert above.y - below.y >= below.style.size


def test_the_json_holds_no_row_and_checks_against_its_schema(made):
    folder, file, p, _ = made
    document = core.read_report((folder / "a.json").read_text())
    (entry,) = document["files"]
    assert entry["name"] == HOSTILE
    assert entry["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert entry["options"]["positive"] == "yes"
    assert set(entry) == {"name", "kind", "sha256", "content_hash", "options"}
    text = (folder / "a.json").read_text()
    assert not any(f"{value}" in text for value in p[:50])
    assert str(folder) not in text
    section = document["sections"][0]
    assert ["delta", "0.1"] in section["parameters"]
    own = "own:" + entry["content_hash"][:12]
    assert section["state"].startswith(f"first={own}&beside=none")


def test_the_same_report_again_has_the_same_bytes(made):
    folder, file, _, _ = made
    again = folder / "again"
    again.mkdir()
    paths = {"out": str(again / "a.html"), "pdf": str(again / "a.pdf"), "json": str(again / "a.json")}
    assert ask(**{"from": str(folder / "a.json")}, files=[str(file)], **paths) == 0
    for name in ("a.html", "a.pdf", "a.json"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_other_versions_are_told_in_the_output(made, capsys):
    folder, file, _, _ = made
    document = json.loads((folder / "a.json").read_text())
    document["versions"]["numpy"] = "1.0"
    old = folder / "old.json"
    old.write_text(json.dumps(document))
    out = folder / "old.html"
    assert ask(**{"from": str(old)}, files=[str(file)], out=str(out)) == 0
    assert "Package versions differ: numpy 1.0, now" in capsys.readouterr().err
    assert "not the report as it was made first" in out.read_text()


def test_a_report_of_a_file_asks_for_it_and_takes_no_other(made, capsys):
    folder, file, _, _ = made
    assert ask(files=[str(file)], json=str(folder / "x.json")) == cli.UNUSABLE  # which label?
    assert "is --name value" in capsys.readouterr().err
    out, report = folder / "none.html", str(folder / "a.json")
    assert ask(**{"from": report}, out=str(out)) == cli.UNUSABLE
    assert "--file PATH" in capsys.readouterr().err
    other = folder / "other.csv"
    other.write_text(file.read_text().replace("yes", "no", 1))
    assert ask(**{"from": report}, files=[str(other)], out=str(out)) == cli.UNUSABLE
    assert f"other.csv is another file than the report's, which was {HOSTILE}: the" in capsys.readouterr().err
    other.write_text("a,b\n0.5,yes\n0.2,no\n")
    assert ask(**{"from": report}, files=[str(other)], out=str(out)) == cli.UNUSABLE
    told = capsys.readouterr().err
    assert told.startswith(
        f"leakviz: other.csv is another file than the report's, which was {HOSTILE}, and it"
    )
    assert "'other.csv': p='risk': there is no such column" in told
    assert "--name value" not in told  # the report says how its file is read
    assert not out.exists()


def test_the_page_and_the_command_write_the_same_report_of_a_file(made):
    folder, file, _, _ = made
    brought = PredictionsPage()
    brought.load(file.read_bytes(), HOSTILE)
    brought.say("positive", "yes")
    brought.use()
    page = ReportPage(shelf=brought.shelf)
    own = brought.shelf.own[0].name
    page.add("purity")
    assert page.state.sections[0][1] == f"first={own}&beside=none&third=none"
    shown = json.loads(page.desk.page)
    assert shown["sections"][0]["words"] == f"predictions {HOSTILE}"
    offers = {offer["page"]: offer["words"] for offer in shown["offers"]}
    assert offers["calibration"] == f"as it starts: {HOSTILE}"
    page.make("json")
    document = core.read_report(page.files["json"])
    assert document["files"][0]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    kept, again = folder / "page.json", folder / "page_again.json"
    kept.write_bytes(page.files["json"])
    assert ask(**{"from": str(kept)}, files=[str(file)], json=str(again)) == 0
    assert again.read_bytes() == kept.read_bytes()


def test_the_sources_in_a_report_have_their_ablation_and_it_fills_its_frame():
    report = make_report([Asked("lodo", "case=penguins&model=logistic")], app.PAGES, date="2026-01-31")
    (section,) = report.sections
    captions = {figure["name"]: figure["caption"] for figure in section.facts["figures"]}
    assert "mean of as many features taken away at random" in captions["ablation"]
    rows = section.page.data("ablation")
    values = rows.filter(regex="^(cv|lodo|random)").to_numpy()
    drawn = hv.render(section.page.figure("ablation", "matplotlib"), backend="matplotlib")
    low, high = drawn.axes[0].get_ylim()
    assert low < np.nanmin(values)
    assert np.nanmax(values) < high
    assert np.ptp(values[np.isfinite(values)]) > 0.5 * (high - low)


def test_a_command_on_paper_is_the_command():
    words = [
        "leakviz",
        "report",
        "a b.csv",
        "purity:" + "&".join(f"n{i}=o'wn" for i in range(40)),
        "--out",
        "x",
    ]
    lines = report_paper.command_lines(shlex.join(words), report_paper.STYLES["command"], 400)
    said = subprocess.run(["sh", "-c", f"printf '%s\\n' {lines}"], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == words
    style = report_paper.STYLES["command"]
    assert max(report_paper.extent(line, style) for line in lines.split("\n")) <= 400
    assert report_paper.lines_of(lines, style, 400) == lines.split("\n")


def test_the_lines_of_the_readme_run_as_printed(tmp_path, monkeypatch, capsys):
    readme = Path("README.md").read_text().split("## Write a report")[1].split("## ")[0]
    lines = [
        shlex.split(line, comments=True) for line in readme.splitlines() if line.startswith("    leakviz ")
    ]
    assert len(lines) == 4
    rng = np.random.default_rng(4)
    p = rng.uniform(size=200)
    died = np.where(rng.uniform(size=200) < p, "yes", "no")
    pd.DataFrame({"risk": p, "died": died}).to_csv(tmp_path / "predictions.csv", index=False)
    (tmp_path / "table.csv").write_text("a,died,hospital\n1,0,x\n")
    asked = []

    def child(command: list[str]) -> int:
        asked.append(json.loads(command[-1]))
        own = "predictions.csv" in str(asked[-1]["files"])
        return report_command.main(command[3:]) if own else 0

    def undrawn(report: object, paths: dict[str, Path]) -> dict[Path, bytes]:
        return {path: core.write_report(report.document).encode() for path in paths.values()}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_child", child)
    monkeypatch.setattr(report_command, "_contents", undrawn)  # to draw it is another test's
    for words in lines:
        assert typer.main.get_command(cli.app).main(words[1:], "leakviz", standalone_mode=False) == 0
    assert (tmp_path / "report.pdf").read_bytes() == (tmp_path / "report.json").read_bytes()  # the same again
    assert "2. Calibration" in capsys.readouterr().out
    assert asked[1]["options"] == {"label": "died", "source": "hospital"}
    assert asked[2]["sections"] == ["purity:first=flchain__lr__honest", "fingerprint:tau=0.6"]


def test_stopped_half_way_nothing_is_left(tmp_path, monkeypatch):
    (tmp_path / "a.html").write_text("before")

    def replace(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_all({tmp_path / "a.html": b"new", tmp_path / "a.pdf": b"new"})
    assert [f.name for f in tmp_path.iterdir()] == ["a.html"]
    assert (tmp_path / "a.html").read_text() == "before"


def test_words_and_numbers_are_the_pages_own():
    from app import PAGES as APP

    report = make_report([Asked("fingerprint", "tau=0.6", "look")], APP, date="2026-01-31")
    (section,) = report.document["sections"]
    counts = report.sections[0].page.live.at()
    assert f"catches {counts['leak_count'].item()} leaks" in section["verdict"]
    row = next(row for row in section["tables"][0]["rows"] if row[0] == "leak, fires")
    assert row[1] == str(counts["leak_count"].item())
    shipped = Path("data/published/battery_table12.csv")
    assert section["data"][0]["sha256"] == hashlib.sha256(shipped.read_bytes()).hexdigest()
    assert section["note"] == "look"
    assert next(limit["name"] for limit in section["limits"] if limit["applies"]) == "dependent settings"


def test_a_report_that_no_command_makes_says_why(brought):
    page = brought.page
    many = replace(brought.audit, name="own:0123456789ab", file=MANY_ARRAYS)
    one = ReportPage(shelf=Shelf(audits=[many]), made=page.made)
    one.state.sections = [("whitening", "features=own:0123456789ab", ""), ("purity", "", "")]
    assert one._no_command() == f"of own:0123456789ab, {MANY_ARRAYS}."
    one.state.sections = [("purity", "", "")]
    assert one._no_command() == ""
    # Two other files of one name, and a case that was computed anew here: a command would show something else.
    twin = replace(brought.audit, name="own:0123456789ac", file={**brought.audit.file, "sha256": "0" * 64})
    two = ReportPage(shelf=Shelf(audits=[brought.audit, twin]), made=page.made)
    two.state.sections = [("whitening", f"features={a.name}", "") for a in (brought.audit, twin)]
    assert "two of its files are called emb.npz" in two._no_command()
    lodo = LodoPage()
    kept = lodo_answers.shipped("penguins", "logistic")
    lodo.state.offer(kept)
    fresh = ReportPage("?sections=lodo:case%253Dpenguins", made={"lodo": lodo})
    assert "was recomputed in this session" in fresh._no_command()
    fresh.make("json")
    document = core.read_report(fresh.files["json"])
    assert (document["command"], document["no_command"]) == ("", fresh._no_command())
    for text in (_end_html(document), "\n".join(block.text for block in _end_blocks(document))):
        assert "a command shows the result that ships" in text
        assert "leakviz report" not in text


def test_a_lesson_in_a_report_is_the_lesson_with_its_answer():
    asked = [Asked("learn", f"step={step}") for step in (1, 5, 7, 8, "end")]
    first, fifth, seventh, last, end = make_report(asked, app.PAGES, date="2026-01-31").document["sections"]
    said = [dict(section["parameters"]) for section in (first, fifth, seventh)]
    # The worlds of lessons 5 and 7 as `leakviz.lessons` declares them, not the controls that stand idle behind them.
    assert [one["anisotropy"] for one in said] == ["1", "1", "6"]
    five, seven = (lessons()[n - 1].state_after for n in (5, 7))
    assert said[1]["OOD class in the fit set"] == ("yes" if five["in_fit"] else "no")
    assert (said[2]["alpha"], said[2]["features of noise"]) == (
        f"{seven['alpha']:g}",
        f"{seven['noise_dimensions']}",
    )
    assert fifth["verdict"] == f"Lesson 5, {lessons()[4].title}. {lessons()[4].reveal}"
    assert [[f["name"] for f in section["figures"]] for section in (first, fifth, seventh, last, end)] == [
        ["plane"], ["plane", "histograms", "box"], ["plane", "histograms", "roc"], ["reliability", "purity"], [],
    ]  # fmt: skip
    assert "95 % of the known test rows" in fifth["figures"][0]["caption"]
    assert (
        "95 % of the known test rows" not in first["figures"][0]["caption"]
    )  # there the line alone is drawn
    assert [row[0] for row in last["tables"][0]["rows"]][2:] == ["near-label flag", "flag, after Platt"]
    assert [section["state"] for section in (fifth, last)] == ["step=5", "step=8"]
    assert end["limits"] == [{"name": "simulated data", "applies": False, "words": ""}]


def test_every_figure_of_a_page_is_in_its_report():
    states = {"fingerprint": "", "whitening": "", "audit": "", "calibration": "vector=nassCDS__lr__honest"}
    report = make_report([Asked(*one) for one in states.items()], app.PAGES, date="2026-01-31")
    for section in report.sections:
        assert {figure.name for figure in section.figures} == set(section.page.figure_state)
    whitening = report.document["sections"][1]
    assert whitening["verdict"].startswith("Fitted without the OOD class: at alpha")
    audit = report.sections[2].page
    assert report_content._detail_figures(audit) == []
    audit.state.chosen = audit.detail.battery.dataset["setting"].values[-1]
    chosen = report_content.section_of("audit", audit, title="In the wild")
    detail = [figure.name for figure in chosen.figures if figure.part == "detail"]
    assert detail == ["maha", "knn", "oracle", "roc"]


def test_letters_that_a_font_lacks_come_from_another_or_are_told(monkeypatch):
    def told_of(title: str, others: tuple[str, ...]) -> tuple[str, set[str]]:
        fonts.holder.cache_clear()
        report_paper._advance.cache_clear()
        monkeypatch.setattr(fonts, "_others", lambda: others)
        report = make_report([Asked("learn", "step=end")], app.PAGES, date="2026-01-31", title=title)
        reader = PdfReader(io.BytesIO(pdf_of(report)))
        resources = reader.pages[0]["/Resources"]["/Font"].values()
        return reader.pages[0].extract_text(), {str(font.get_object()["/BaseFont"]) for font in resources}

    known = fonts._letters("STIXGeneral") - fonts._letters(fonts.SANS)  # both come with matplotlib
    letter = next(c for c in map(chr, sorted(known)) if c.isprintable())
    text, used = told_of(f"of {letter}", ("STIXGeneral",))
    assert letter in text
    assert any("STIX" in name for name in used)
    assert "empty boxes" not in text
    text, _ = told_of(f"of {letter}", ())
    assert f"No font of this machine has 1 of the letters (U+{ord(letter):04X})" in " ".join(text.split())
    fonts.holder.cache_clear()
    report_paper._advance.cache_clear()


def test_a_figure_shrinks_to_three_quarters_before_it_goes_to_the_next_page(monkeypatch):
    monkeypatch.setattr(report_paper, "_size_of", lambda pdf: (200.0, 300.0))
    block = report_paper.Block
    one, two = (block("figure", "caption " * 9, pdf=p) for p in (b"1", b"2"))
    scales = []
    for lines in range(20, 60):
        paper = report_paper.Paper(title="t")
        paper.lay_out(
            [*[block("under", f"line {i}") for i in range(lines)], block("figures", beside=(one, two))]
        )
        (page, x, y, scale, _), (other, beside, level, same, _) = paper.figures
        assert (page, y, scale) == (other, level, same)  # in a row
        assert beside >= x + 200 * scale
        assert y > report_paper.MARGIN
        scales.append((page, scale))
    shrunk = {scale for page, scale in scales if page == 0 and scale < 1}
    assert min(shrunk) < 0.79
    assert min(shrunk) >= 0.75
    assert {scale for page, scale in scales if page == 1} == {1.0}


def test_a_bar_shows_at_once_where_it_is_known_that_there_is_a_wait():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    at_once, later, told = Terminal(), Terminal(), []
    with bar("reading", delay=0, file=at_once), bar("reading", file=later):
        assert "reading" in at_once.getvalue()
        assert later.getvalue() == ""
    paper = report_paper.Paper(title="t")
    paper.write([report_paper.Block("text", "word " * 3000)], lambda done, total: told.append((done, total)))
    assert told == [(number, len(paper.pages)) for number in range(1, len(paper.pages) + 1)]


def test_sections_are_named_as_links_are():
    assert asked_section("purity:first=a:b&beside=none") == ("purity", "first=a:b&beside=none")
    assert asked_section("?page=lodo&case=penguins") == ("lodo", "case=penguins")
    with pytest.raises(InputError, match="there is no page 'nope'"):
        asked_section("nope:tau=1")
    with pytest.raises(InputError, match="no file was named"):
        named_own("first=own", [])


def test_what_a_page_hides_is_not_read():
    read = read_html(
        '<p>seen <button>press</button><b class="none">hidden<i>x</i></b></p><p hidden>no</p><svg><title>t</title></svg>'
    )
    assert read.paragraphs == [("p", "seen")]


def test_the_page_puts_sections_together_and_its_link_says_it():
    left = PurityPage("first=nassCDS__lr__honest&beside=none&delta=0.1")
    page = ReportPage(made={"purity": left})
    shown = json.loads(page.desk.page)
    words = {offer["page"]: offer["words"] for offer in shown["offers"]}
    assert list(words) == list(PAGES)
    assert "delta 0.1" in words["purity"]
    assert words["learn"] == "as it starts"
    for do in ({"do": "add", "page": "learn"}, {"do": "add", "page": "purity"}, {"do": "up", "at": 1}):
        page._heard(do)
    page._heard({"do": "note", "at": 0, "value": NOTE})
    page._heard({"do": "title", "value": "T; & = é"})
    for nonsense in (
        {"do": "remove", "at": 9},
        {"do": "up", "at": 0},
        {"do": "down", "at": True},
        {"do": "add", "page": "x"},
    ):
        page._heard(nonsense)
    assert page.state.sections == [("purity", left.state.query(), NOTE), ("learn", "", "")]
    again = ReportState()
    assert again.read(page.state.query()) == []
    assert (again.sections, again.heading) == (page.state.sections, "T; & = é")
    told = again.read("sections=purity:delta%3D0.1;nope:x;%ZZ&heading=" + "x" * 999)
    assert [s[0] for s in again.sections] == ["purity"]
    assert len(told) == 2
    assert len(again.heading) == 300


def test_a_link_to_a_report_moves_what_cannot_be_had_at_once_and_says_so():
    page = ReportPage(
        "?sections=nosuch:a;fingerprint:tau%3D99;purity:first%3Dzzz%26delta%3D0.1;lodo:foo%3D1;learn;embeddings:tau%3D0.6"
    )
    assert [name for name, _, _ in page.state.sections] == ["fingerprint", "purity", "lodo", "learn"]
    states = {name: dict(parse_qsl(state)) for name, state, _ in page.state.sections}
    assert states["fingerprint"]["tau"] == "1"  # the last stop
    assert (states["purity"]["first"], states["purity"]["delta"]) == ("flchain__lr__honest", "0.1")
    assert (states["lodo"].get("foo"), states["learn"]) == (None, {})
    told = page.state.told
    assert len(told) == 5
    for number, words in enumerate(
        (
            "a section “nosuch”",
            "Section 1, Fingerprint: The link asks for tau 99",
            "Section 2, Purity: The link asks for",
            "Section 3, Sources: The link names “foo”",
            "no audit",
        )
    ):
        assert words in told[number]
    assert ReportState().read(page.state.query()) == []  # what is left can be had


def test_a_link_to_a_report_of_a_file_asks_for_it_and_is_ready_when_it_comes():
    rng = np.random.default_rng(3)
    p = rng.uniform(size=200).round(4)
    y = (rng.uniform(size=200) < p).astype(int)
    text = "\n".join(["risk,died", *(f"{a},{b}" for a, b in zip(p, y, strict=True))]).encode()
    name = f"own:{read_predictions(text).content_hash[:12]}"
    sections = [("purity", f"first={name}&beside=none&third=none&delta=0.1", "mine"), ("learn", "", "")]
    link = ReportState(sections=sections).query()
    session = app.App("?page=report&" + link)
    page = session.made["report"]
    (told,) = page.state.told
    for words in (name, "under “Your predictions”", "of somebody’s own, not here"):
        assert words in told
    shown = json.loads(page.desk.page)["sections"]
    assert [one["words"].endswith("; waits for its file") for one in shown] == [True, False]
    page.make("json")
    assert (page.files, page.alert) == ({}, told)
    assert "--file" not in told
    page.note(1, "another")  # the report still waits, and says so
    assert page.state.told == [told]
    session._asked(SimpleNamespace(new="?page=predictions"))
    session.made["predictions"].load(text, "mine.csv")
    assert session.shell.page == "report"
    assert page.state.missing == ()
    assert page.state.told[0].startswith(f"This is the file that the link names, {name}")
    assert [state for _, state, _ in page.state.sections] == [state for _, state, _ in sections]
    page.make("json")
    assert f"first={name}" in core.read_report(page.files["json"])["sections"][0]["state"]
    assert page.alert == ""


def test_a_section_names_its_data_where_others_would_be_shown_first():
    left = PurityPage("delta=0.1")
    page = ReportPage(made={"purity": left})
    page.add("purity")
    assert page.state.sections[0][1] == f"first={left.state.first}&{left.state.query()}"


def test_the_page_makes_the_files_and_says_what_is_missing(monkeypatch):
    page, sent = ReportPage("?sections=learn:step%253D2"), []
    monkeypatch.setattr(page.desk, "_send_msg", sent.append)
    page.make("json")  # to its end: there is no loop to wait in
    document = core.read_report(page.files["json"])
    assert document["sections"][0]["state"] == "step=2"
    assert sent[0]["name"] == "leakviz-report.json"
    assert base64.b64decode(sent[0]["base64"]) == page.files["json"]
    page.make("pdf")
    assert (page.files["pdf"][:5], sent[-1]["name"]) == (b"%PDF-", "leakviz-report.pdf")
    told = PdfReader(io.BytesIO(page.files["pdf"])).pages[0].extract_text()
    assert " ".join(document["sections"][0]["verdict"].split()) in " ".join(told.split())
    made = page._report[1]
    assert rows_of(made.sections[0].figures) == [[0], [1, 2]]
    inside = html_with(made, [[b"<svg></svg>"] * 3])
    assert inside.count('<div class="pair"><figure>') == 1
    lost = ReportPage(ReportState(sections=[("purity", "first=own:0123456789ab", "")]).query(), Shelf())
    lost.make("pdf")
    assert "own:0123456789ab" in lost.alert
    assert not lost.files
