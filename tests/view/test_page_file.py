"""A page as one file: what is in it, what is not, and how it comes to its place."""

import base64
import gc
import gzip
import html
import json
import re
import subprocess
import sys
import weakref
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import leakviz
from app import PAGES
from dashboards import page_file as module
from dashboards.fingerprint import FingerprintPage
from dashboards.page_file import ALIASES, LEFT_OUT, main, page_file
from dashboards.provenance import hash_of_arrays, sources
from dashboards.purity import PurityPage
from dashboards.shelf import Shelf, Vector, shipped
from leakviz import cli
from leakviz.paths import data_dir, write_whole
from leakviz.purity import rank_predictions

HOSTILE = "</script><img src=x onerror=\"alert(1)\"> & 'too'.csv"


def save(name, query="", **options):
    """Save a page; return the file, and the page that it was made of."""
    title, make = PAGES[name]
    pages = []

    def kept(query, shelf):
        pages.append(make(query, shelf))
        return pages[-1]

    saved = page_file(name, kept, query, title=title, **options)
    return saved, *pages


@lru_cache
def save_once(name):
    # Small predictions, for speed; else each page as it opens.
    return save(name, {"calibration": "vector=breast_cancer__lr__honest"}.get(name, ""))


def unpacked(text):
    """Return the document that a file holds."""
    (packed,) = re.findall(r'<script type="application/gzip" id="document">([^<]*)</script>', text)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def outside(text):
    """Return the file without what is packed."""
    return re.sub(r'(<script type="application/gzip"[^>]*>)[^<]*', r"\1", text)


def models(document):
    """Yield what is written of each model."""
    if isinstance(document, dict):
        if document.get("type") == "object":
            yield document
        for value in document.values():
            yield from models(value)
    elif isinstance(document, list):
        for value in document:
            yield from models(value)


@pytest.fixture(params=list(LEFT_OUT))
def saved(request):
    return save_once(request.param)[0]


def test_a_file_is_small_and_names_no_host(saved):
    assert len(saved.html.encode()) <= 4_000_000
    shown = outside(saved.html)
    assert "default-src 'none'" in shown
    assert "connect-src" not in shown  # so the default holds, and nothing can be asked for
    assert re.findall(r'(?:src|href|action)="(?!#|data:)[^"]*"', shown) == []
    document = json.dumps(unpacked(saved.html)["json"])
    hosts = set(re.findall(r"https?://([\w.-]+)", document))
    assert hosts <= {"arxiv.org", "www.w3.org"}  # citations, and the name of SVG
    assert "ImportedStyleSheet" not in document


def test_what_needs_a_server_is_not_in_it_and_the_file_says_so(saved):
    document = unpacked(saved.html)["json"]
    kinds = {model["name"].rpartition(".")[2] for model in models(document)}
    assert kinds.isdisjoint(
        {"FileDownload", "Button", "CustomSelect", "Select", "TextInput", "Spinner", "RadioButtonGroup"}
    )
    assert "Figure" in kinds
    texts = [
        html.unescape(m.get("attributes", {}).get("text", ""))
        for m in models(document)
        if "HTML" in m["name"]
    ]
    assert any("arXiv" in text for text in texts)  # captions with their source
    assert not any('href="?' in text for text in texts)
    assert LEFT_OUT[saved.name] in html.unescape(outside(saved.html))


def test_a_file_says_where_it_is_from(saved):
    shown = html.unescape(outside(saved.html))
    title, page = PAGES[saved.name][0], save_once(saved.name)[1]
    assert f"<title>{title}: {page.subject} – leakviz</title>" in shown
    assert re.search(r"saved with leakviz \d+\.\d+\.\d+ on <time datetime=", shown)
    assert f"leakviz export {saved.name}" in shown
    assert saved.query in shown
    labels = [page.state.param[name].label or name for name in page.state.names()]
    for label in page.shown() if callable(getattr(page, "shown", None)) else labels:
        assert f'<th scope="row">{label}</th>' in shown
    for source in sources(page):
        assert (
            re.fullmatch(r"[0-9a-f]{64}", source.content_hash) or saved.name == "learn"
        )  # its parameters are all
        assert source.title in shown
        assert source.source in shown
        assert source.content_hash in shown


def test_the_state_and_the_value_of_each_slider_are_in_the_file(saved):
    page = save_once(saved.name)[1]
    shown = dict(re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', html.unescape(outside(saved.html))))
    if saved.name != "learn":  # which says the step
        for name in page.state.names():
            value, told = getattr(page.state, name), shown[page.state.param[name].label or name]
            if name in page.state.stops:
                assert float(told) == pytest.approx(value, rel=1e-5)
            else:
                assert told == (", ".join(value) if isinstance(value, list) else str(value)) or told == "none"
    stops = [
        dict(attributes["state"]["entries"])
        for model in models(unpacked(saved.html)["json"])
        if isinstance((attributes := model.get("attributes", {})).get("state"), dict)
    ]
    assert page.live.state in stops


def test_the_hash_of_shipped_predictions_is_the_one_that_the_command_line_prints():
    path = data_dir() / "predictions" / "flchain__lr__honest.parquet"
    read = leakviz.read_predictions(path, p="p", y="y")
    vector = shipped("flchain__lr__honest")
    assert hash_of_arrays(vector.p, vector.y.astype(np.int8), vector.folds) == read.content_hash
    assert sources(PurityPage())[0].content_hash == read.content_hash


@pytest.fixture
def hostile():
    rng = np.random.default_rng(5)
    p = rng.beta(1, 4, 600)
    y = (rng.random(600) < p).astype(np.int8)
    vector = Vector(
        "own:0123456789ab", HOSTILE, f"your file {HOSTILE}: p, y", p, y, ranked=rank_predictions(p, y)
    )
    return Shelf(own=[vector])


def test_names_from_files_stay_text_and_a_session_s_shelf_is_left_alone(hostile):
    watched = hostile.param.watchers.copy()
    saved, page = save("purity", "first=own:0123456789ab", shelf=hostile)
    shown = outside(saved.html)
    assert "first=own" in saved.query
    assert "<img" not in shown
    assert html.escape(HOSTILE) in shown
    assert "leakviz export" not in shown  # which could not have the file
    assert shown.count("</script>") == 4  # the theme, two packages, the start
    for model in models(unpacked(saved.html)["json"]):
        if "HTML" in model["name"]:
            assert "<img" not in html.unescape(model["attributes"]["text"])
    assert sources(page)[0].title == HOSTILE
    assert page.shelf is not hostile
    assert hostile.param.watchers == watched
    assert [v.title for v in hostile.own] == [HOSTILE]
    alive = [weakref.ref(page), weakref.ref(page.live), weakref.ref(page.shelf)]
    del page
    gc.collect()
    assert [ref() for ref in alive] == [None, None, None]


def test_what_a_page_computed_itself_is_taken_along():
    page = PAGES["lodo"][1]("case=penguins&model=logistic", Shelf())
    own = page.shown
    mine = type(own)("own:abc", "logistic", HOSTILE, "your file", own.result, own.retention, own.attributions)
    page.take(mine)
    saved, _ = save("lodo", page.state.query(), like=page)
    assert saved.told == ()
    assert "case=own" in saved.query
    assert html.escape(HOSTILE) in outside(saved.html)
    assert "<img" not in outside(saved.html)


# Lessons


def test_the_lessons_file_holds_every_step_as_the_page_shows_it():
    saved, page = save_once("learn")
    player = page.player
    assert (player.step, player.guesses, player.stage) == ("1", {}, 0)  # as before it was recorded
    written = [m.get("attributes", {}) for m in models(unpacked(saved.html)["json"])]
    (recording,) = (
        json.loads(attributes["recording"]) for attributes in written if "recording" in attributes
    )
    stages = {str(one.number): 1 + len(one.also) for one in page.lessons}
    wanted = {f"{step} 0 0" for step in stages} | {"end 1 0", "world 1 0"}
    wanted |= {f"{step} 1 {stage}" for step, n in stages.items() for stage in range(n)}
    assert set(recording["scenes"]) == wanted
    # Lesson 3 asks about the class outside the fit set, and answers with it inside.
    for key, guesses in (("3 0 0", {}), ("3 1 0", {"3": None})):
        player.param.update(step="3", guesses=guesses)
        (live,) = (shown for shown in recording["scenes"][key].values() if "table" in shown)
        assert base64.b64decode(recording["blobs"][live["table"]["blob"]]) == page.live.table
        assert live["state"] == page.live.state
        assert (live["state"]["share"] > 0) == bool(guesses)


# The command


@pytest.fixture
def here(monkeypatch):
    """Let the command line run the export in this process, which has loaded all of it already."""

    class Child:
        def __init__(self, command, cwd, process_group):
            assert command[:3] == [sys.executable, "-m", "dashboards.page_file"]
            assert cwd == cli.ROOT
            self.arguments = command[3:]

        def wait(self):
            return main(self.arguments)

    monkeypatch.setattr(subprocess, "Popen", Child)


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    return stopped.value.code


def test_the_command_writes_a_page_at_a_state(here, tmp_path, capsys):
    out = tmp_path / "page.html"
    out.write_text("old")
    assert (
        run(
            "export",
            "fingerprint",
            "--out",
            str(out),
            "--state",
            "tau=0.6&gat=0.9&gate=3&map=<b>&metric=<b>",
            "--json",
        )
        == 0
    )
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert facts["state"] == "gate=1&tau=0.6"
    assert facts["bytes"] == out.stat().st_size
    assert said.err.splitlines() == [f"leakviz: {sentence}" for sentence in facts["told"]]
    assert facts["told"][:-1] == FingerprintPage("gate=3&tau=0.6&metric=<b>").state.told
    assert "The link asks for gate 3; the nearest stop, 1, is shown." in facts["told"]
    assert facts["told"][-1].startswith("The link names “gat”, “map”, which this page does not have")
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "<b>" not in outside(text)
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("state", ["first=own", "delta=0.1&beside=own:0123456789ab"])
def test_data_of_one_s_own_that_the_command_has_not_are_refused(state, tmp_path, capsys):
    assert main(["purity", "--out", str(tmp_path / "x.html"), f"--state={state}"]) == cli.UNUSABLE
    assert "asks for data of your own" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_lesson_is_the_lessons(monkeypatch, tmp_path, capsys):
    asked = []

    def kept(name, make, query, **options):
        asked.append((name, query))
        return module.PageFile(name, "<!DOCTYPE html>", "step=2")

    monkeypatch.setattr(module, "page_file", kept)
    assert main(["lesson", "--out", str(tmp_path / "l.html"), "--state=step=2"]) == 0
    assert asked == [("learn", "step=2")]
    assert capsys.readouterr().out.startswith("Saved learn at step=2: ")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nonsense", "--out", "x.html"], "there is no page 'nonsense' to export; there are fingerprint,"),
        (
            ["report", "--out", "x.html"],
            "report has nothing to drag without the app: it puts other pages together.",
        ),
        (["predictions", "--out", "x.html"], "leakviz report FILE"),
        (["purity", "--out", "x.pdf"], "--out must end in .html, got 'x.pdf'."),
        (["purity", "--out", "no/such/x.html"], "there is no folder"),
    ],
)
def test_what_cannot_be_exported_is_said(arguments, why, capsys):
    assert run("export", *arguments) == cli.UNUSABLE
    assert why in capsys.readouterr().err


def test_both_lists_of_pages_are_the_same():
    assert tuple(LEFT_OUT) == cli.PAGES
    assert set(LEFT_OUT) | set(cli.NOT_EXPORTED) == set(PAGES)
    assert set(LEFT_OUT) <= set(PAGES)
    assert set(ALIASES.values()) <= set(LEFT_OUT)


def test_a_stop_leaves_nothing(monkeypatch, tmp_path, capsys):
    def stop(*args, **options):
        raise KeyboardInterrupt

    out = tmp_path / "page.html"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            write_whole(out, "text")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(module, "page_file", stop)
    assert main(["purity", "--out", str(out)]) == cli.STOPPED
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ends", "status"), [(-15, cli.STOPPED), (cli.STOPPED, cli.STOPPED), (0, 0)])
def test_ctrl_c_stops_the_export_and_waits_until_it_has_tidied_up(
    monkeypatch, tmp_path, capsys, ends, status
):
    done = []

    class Child:
        def __init__(self, command, cwd, process_group):
            assert process_group == 0  # Ctrl-C does not reach it

        def wait(self):
            done.append("wait")
            if len(done) == 1:
                raise KeyboardInterrupt
            return ends

        def terminate(self):
            done.append("terminate")

    monkeypatch.setattr(subprocess, "Popen", Child)
    assert run("export", "purity", "--out", str(tmp_path / "page.html")) == status
    assert done == ["wait", "terminate", "wait"]
    assert ("nothing was written" in capsys.readouterr().err) == (status != 0)
