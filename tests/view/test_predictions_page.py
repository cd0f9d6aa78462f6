"""The page for one's own predictions, driven without a browser: files in, vectors on the shelf out."""

import asyncio
import gc
import io
import json
import pickle
import re
import threading
import weakref
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import pytest

import app
from dashboards import predictions, upload
from dashboards.calibration import CalibrationPage
from dashboards.predictions import PredictionsPage
from dashboards.purity import PurityPage
from dashboards.report import ReportPage
from dashboards.shelf import OWN, Shelf
from dashboards.upload import Upload
from leakviz import blind_test, purity_curve
from leakviz.predictions import MAX_BYTES

HTML = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(7)
    z = rng.normal(size=4000) - 2
    p = 1 / (1 + np.exp(-z))
    return pd.DataFrame({"p": p, "y": (rng.random(len(p)) < p).astype(int)})


def as_bytes(frame, kind):
    stream = io.BytesIO()
    if kind == "csv":
        frame.to_csv(stream, index=False)
    elif kind == "tsv":
        frame.to_csv(stream, index=False, sep="\t")
    elif kind == "parquet":
        frame.to_parquet(stream)
    elif kind == "feather":
        frame.to_feather(stream)
    elif kind == "jsonl":
        frame.to_json(stream, orient="records", lines=True, double_precision=15)
    elif kind == "xlsx":
        frame.to_excel(stream, index=False)
    return stream.getvalue()


def send(page, data, name="preds.csv", identity="1", size=None, step=1000):
    """Do what the browser does with a file."""
    page.upload._handle_msg(
        {"do": "start", "id": identity, "name": name, "size": len(data) if size is None else size}
    )
    for at in range(0, len(data), step):
        page.upload._handle_msg({"do": "piece", "id": identity, "at": at, "data": data[at : at + step]})


def loaded(data, name="preds.csv", **answers):
    page = PredictionsPage()
    page.load(data, name)
    for role, value in answers.items():
        page.say(role, value)
    page.use()
    assert page.alerts == []
    return page


@pytest.fixture
def before(frame):
    """Return a page with a vector on its shelf, and that vector."""
    page = loaded(as_bytes(frame, "csv"), "before.csv")
    return page, page.shelf.own[0]


def seen(page):
    return json.loads(page.sheet.page)


def asks(page):
    return [question.role for question in page.found.questions]


# ---- files that can be read


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather", "jsonl", "xlsx"])
def test_clean_file_becomes_a_vector_that_equals_the_data(frame, kind):
    few = frame[:400].round(6)  # pandas writes JSON to 15 places
    page = PredictionsPage()
    send(page, as_bytes(few, kind), f"preds.{kind}")
    assert page.found.questions == ()
    page.sheet._handle_msg({"do": "use"})
    (vector,) = page.shelf.own
    np.testing.assert_array_equal(vector.p, few["p"])
    np.testing.assert_array_equal(vector.y, few["y"])
    assert vector.name.startswith(OWN)
    assert vector.title == f"preds.{kind}"
    assert page.shelf.get(vector.name) is vector


def test_the_same_numbers_have_the_same_name_whatever_the_format(frame):
    names = {loaded(as_bytes(frame, kind)).shelf.own[0].name for kind in ("csv", "parquet", "feather")}
    assert len(names) == 1


def test_verdict_is_the_cores(frame):
    page = loaded(as_bytes(frame, "parquet"))
    (vector,) = page.shelf.own
    expected = blind_test(frame["p"], frame["y"])
    assert page.results[vector.name] == expected
    assert expected.verdict in page.heading.object
    assert seen(page)["shelf"][0]["explain"] == [expected.explain()]


def test_a_leaky_vector_is_called_leaky_with_the_reason_and_the_scope(frame):
    p = frame["p"].to_numpy().copy()
    events = np.flatnonzero(frame["y"])[:90]
    p[events] = np.linspace(0.99, 1, 90)
    page = loaded(as_bytes(frame.assign(p=p), "csv"), "twin.csv")
    assert "twin.csv is <b>leaky</b>, on <b>strong evidence</b>." in page.heading.object
    assert "nearly deterministic at prediction time fires honestly" in page.heading.object


def test_one_of_several_labels_can_be_the_event_and_every_label_is_offered():
    rows = "".join(f"0.{i + 1},{label}\n" for i, label in enumerate(["ash", "oak", "elm", "oak"]))
    page = PredictionsPage()
    page.load(f"p,y\n{rows}".encode(), "trees.csv")
    (question,) = seen(page)["file"]["questions"]
    assert [value for value, _ in question["options"]] == ["ash", "oak", "elm"]
    page.say("positive", "oak")
    page.use()
    (vector,) = page.shelf.own
    assert vector.y.tolist() == [0, 1, 0, 1]
    assert vector.title == "trees.csv, 'oak' against the 2 other labels"
    assert "trees.csv, &#x27;oak&#x27; against the 2 other labels" in page.heading.object
    assert dict(vector.options)["positive"] == "oak"
    found = page.found
    assert [value for value, _ in predictions._choices(found, "positive")] == ["ash", "oak", "elm"]


def test_the_command_and_the_pages_agree_on_a_dispersion_of_one_class():
    """p 0.05 to 0.15 with no event in 200 records: the formula gives about -7, and nothing is told apart."""
    p = np.linspace(0.05, 0.15, 200)
    page = loaded(as_bytes(pd.DataFrame({"p": p, "y": 0}), "csv"), "one.csv")
    why = "every record lacks the event"
    assert f"Dispersion is not tested: {why}." in page.heading.object
    name = page.shelf.own[0].name
    purity = PurityPage(f"?first={name}&beside=none", page.shelf)
    now = purity.live.at()
    assert (now["z_0"].item(), now["z_records_0"].item()) == ("not tested", why)
    assert (now["rates_can"].item(), now["rates_cannot"].item()) == ("none", "note")
    calibration = CalibrationPage(f"?vector={name}", page.shelf).live.at()
    assert (calibration["z_unit"].item(), calibration["say_3"].item()) == ("not tested", "not tested")
    assert calibration["z_unit_of"].item().endswith(why)
    other = PurityPage("?first=nassCDS__lr__honest&beside=none", page.shelf).live.at()
    assert (other["rates_can"].item(), other["rates_cannot"].item()) == ("note", "none")


def test_a_link_puts_purity_and_calibration_into_the_report(frame):
    page = loaded(as_bytes(frame, "csv"))
    name = page.shelf.own[0].name
    href = re.search(r'href="(\?page=report[^"]*)"', page.heading.object)[1].replace("&amp;", "&")
    report = ReportPage("sections=fingerprint&heading=Mine", page.shelf)
    assert report.state.read(href) == []
    shown = [(of, parse_qs(state)) for of, state, _ in report.state.sections]
    assert shown == [
        ("fingerprint", {}),
        ("purity", {"first": [name], "beside": ["none"], "third": ["none"]}),
        ("calibration", {"vector": [name]}),
    ]
    assert report.state.heading == "Mine"
    told = report.state.read(href)
    assert [sentence.split(" is in the report already")[0] for sentence in told] == ["Purity", "Calibration"]
    report.add("purity")  # as it starts: with these predictions
    assert "Purity is in the report already" in report.alert
    assert len(report.state.sections) == 3


def test_folds_are_kept(frame):
    page = loaded(as_bytes(frame.assign(site=np.arange(len(frame)) % 5), "csv"), fold="site")
    np.testing.assert_array_equal(page.shelf.own[0].folds, np.arange(len(frame)) % 5)


def test_two_files_of_one_name_can_be_told_apart(frame):
    page = loaded(as_bytes(frame, "csv"))
    page.load(as_bytes(frame[:2000], "csv"), "preds.csv")
    page.use()
    assert [vector.title for vector in page.shelf.own] == ["preds.csv", "preds.csv (2)"]
    page.load(as_bytes(frame[:2000], "parquet"), "preds.csv")
    page.use()
    assert [vector.title for vector in page.shelf.own] == ["preds.csv", "preds.csv (2)"]


def test_a_file_that_leaves_nothing_open_is_used_at_once_and_its_curve_is_seen(frame):
    page = PredictionsPage()
    assert not page.look.card.visible
    page.load(as_bytes(frame, "csv"), "preds.csv")
    (vector,) = page.shelf.own
    assert page.used == vector.name
    assert page.look.card.visible
    source = next(
        m for m in page.look.figure.references() if f"{page.look.live.key}/curve_0:source" in m.tags
    )
    curve = purity_curve(frame["p"], frame["y"])
    np.testing.assert_array_equal(source.data["rank"][: curve.k.size], curve.k)
    np.testing.assert_allclose(source.data["purity"][: curve.k.size], curve.purity)
    drawn = page.look.data()
    assert drawn["events"].iloc[-1] == frame["y"].sum()
    assert (drawn["verdict"] == page.results[vector.name].verdict).all()
    page.load(OPEN, "open.csv")  # what is asked is not used before it is answered
    assert not page.look.card.visible
    assert page.shelf.own == [vector]


# ---- questions

OPEN = b"id,risk,bmi,died,site\n" + b"".join(
    b"%d,0.%03d,%d.5,%s,%d\n" % (9000 - i, i % 997, 20 + i % 7, b"case" if i % 4 else b"control", i % 3)
    for i in range(300)
)


def test_questions_can_be_answered_in_any_order():
    page = PredictionsPage()
    page.load(OPEN, "open.csv")
    assert set(asks(page)) == {"p", "y"}
    page.say("y", "died")
    assert set(asks(page)) == {"p", "positive"}
    page.say("positive", "case")
    assert asks(page) == ["p"]
    assert not seen(page)["file"]["ready"]
    page.use()
    assert page.shelf.own == []
    page.say("p", "risk")
    assert seen(page)["file"]["ready"]
    page.use()
    assert page.shelf.own[0].y.mean() == 0.75


def test_an_answer_is_taken_back():
    page = PredictionsPage()
    page.load(OPEN, "open.csv")
    page.say("p", "risk")
    assert "p" not in asks(page)
    page.say("p", "")
    assert "p" in asks(page)
    assert page.said == {}
    (field,) = [f for f in seen(page)["file"]["questions"] if f["role"] == "p"]
    assert field["value"] == ""
    assert not field["said"]


def test_what_was_decided_can_be_changed_and_is_said_again():
    page = loaded(b"p,y\n0.9,1\n0.2,0\n0.4,1\n")
    np.testing.assert_array_equal(page.shelf.own[0].y, [1, 0, 1])
    page.say("positive", "0")
    (vector,) = page.shelf.own  # the same file, read another way, takes its place
    assert (list(vector.y), vector.title) == ([0, 1, 0], "preds.csv")
    assert page.used == vector.name
    assert set(page.results) == {vector.name}
    assert page.look.vector is vector
    page.say("positive", "")
    assert page.found.answers["positive"] == "1"
    assert [list(v.y) for v in page.shelf.own] == [[1, 0, 1]]


def test_an_answer_that_does_not_fit_is_a_message_and_no_vector():
    page = PredictionsPage()
    page.load(b"p,y\n0.9,1\n0.2,0\n", "preds.csv")
    (vector,) = page.shelf.own
    page.say("positive", "2")
    assert "positive='2' is not in y" in seen(page)["alert"][0]
    assert page.shelf.own == [vector]
    page.say("positive", "")
    assert seen(page)["alert"] == []
    assert [v.name for v in page.shelf.own] == [vector.name]
    page.say("verdict", "leaky")  # no such question
    assert page.said == {}


def test_another_column_opens_the_questions_about_it_anew():
    page = PredictionsPage()
    page.load(OPEN, "open.csv")
    page.say("y", "died")
    page.say("positive", "case")
    page.say("p", "bmi")
    assert asks(page) == ["scale"]
    page.say("scale", "percent")
    assert asks(page) == []
    page.say("p", "risk")
    assert page.found.answers["scale"] == "probability"
    assert page.said == {"y": "died", "positive": "case", "p": "risk"}


def test_percentages_and_gaps_are_asked_about():
    page = PredictionsPage()
    page.load(b"p;y\n97,5;ja\n;nein\n12;nein\n", "prozent.csv")
    assert set(asks(page)) == {"positive", "scale", "missing"}
    for role, value in {"missing": "drop", "scale": "percent", "positive": "ja"}.items():
        page.say(role, value)
    page.use()
    np.testing.assert_allclose(page.shelf.own[0].p, [0.975, 0.12])
    assert ["decimal mark", "comma"] in seen(page)["file"]["facts"]


# ---- files that cannot be read: a message, never a number, and what was there stays

REFUSED = {
    "empty": (b"", "has 0 bytes"),
    "header only": (b"p,y\n", "0 rows"),
    "one column": (b"p\n0.5\n", "one column only"),
    "no header": (b"0.93,1\n0.12,0\n", "no header"),
    "one label in two spellings": (b"p,y\n0.5,Yes\n0.2,yes\n0.1,no\n", "holds 3 labels"),
    "infinite": (b"p,y\n0.5,1\ninf,0\n", "infinite in 1 of 2 rows, first row 2"),
    "not a number": (b"p,y\n0.5,1\nn/k,0\n", "not a number in 1 of 2 rows, first row 2"),
    "all missing": (b"p,y\n,1\n,0\n", "all 2 rows are missing"),
    "comma and point": (b"p;y\n0,5;1\n0.2;0\n", "Use one decimal mark"),
    "twice the same name": (b"p,y,p\n0.5,1,0.4\n", "stands 2 times"),
    "ragged": (b"p,y\n0.5,1\n0.5\n", "do not have as many cells as the header"),
    "open quote": (b'p,y\n0.5,"1\n0.4,0\n', "never closed"),
    "NUL": (b"p,y\n0.5,\0\n", "NUL"),
    "pickle": (pickle.dumps({"p": [1]}), "never loads pickles"),
    "gzip": (b"\x1f\x8b\x08" + bytes(20), "gzip"),
    "cut Parquet": (b"PAR1" + bytes(40), "damaged or cut short"),
    "zip that is none": (b"PK\x03\x04" + bytes(40), "damaged or cut short"),
    "web page": (b"<!DOCTYPE html><html>", "web page"),
    "HTML labels": (f"p,y\n0.5,{HTML}\n0.2,<B>\n0.1,<b>\n".encode(), "holds 3 labels"),
    "latin-1": ("p,y\n0.5,gut\n0.4,bösartig\n".encode("latin-1"), "byte 0xF6 is not utf-8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_file_gives_a_message_and_leaves_everything_else(before, case):
    page, vector = before
    data, informative = REFUSED[case]
    send(page, data, "bad.csv")
    assert any(informative in words for words in seen(page)["alert"])
    page.use()
    assert page.shelf.own == [vector]
    assert seen(page)["shelf"][0]["verdict"] == "not shown"
    page.load(b"p,y\n0.9,1\n0.2,0\n", "good.csv")
    assert seen(page)["alert"] == []


def test_a_file_that_cannot_be_opened_leaves_the_one_that_is_looked_at():
    page = PredictionsPage()
    page.load(OPEN, "open.csv")
    page.say("p", "risk")
    page.load(b"", "empty.csv")
    assert page.found.name == "open.csv"
    assert page.said == {"p": "risk"}


def test_an_error_nobody_thought_of_is_a_message_too(before, monkeypatch, caplog):
    page, vector = before

    def broken(*args, **options):
        raise RuntimeError("secret")

    monkeypatch.setattr(predictions, "inspect_predictions", broken)
    page.load(b"p,y\n0.5,1\n", "odd.csv")
    assert "'odd.csv' could not be read" in page.alerts[0]
    assert "secret" not in page.alerts[0]
    assert "secret" in caplog.text
    assert page.shelf.own == [vector]


def test_a_message_that_asks_for_the_encoding_can_be_answered():
    page = PredictionsPage()
    data = io.BytesIO("p,y\n0.5,gut\n0.4,bösartig\n".encode("cp1252"))
    page.load(data, "windows.csv")
    assert seen(page)["retry"]["role"] == "encoding"
    assert not data.closed
    page.sheet._handle_msg({"do": "retry", "role": "encoding", "value": "cp1252"})
    assert data.closed
    assert seen(page)["retry"] is None
    assert [option.value for option in page.found.questions[0].options] == ["gut", "bösartig"]


def test_names_from_files_are_text():
    page = PredictionsPage()
    page.load(f"{HTML},died\n0.5,{HTML}\n0.2,<b>x</b>\n".encode(), f"{HTML}.csv")
    page.say("positive", HTML)
    page.use()
    assert "<img" not in page.heading.object
    assert "&lt;img" in page.heading.object
    assert seen(page)["file"]["preview"]["rows"][0][1] == HTML
    assert "innerHTML" not in page.sheet._esm.read_text()
    assert page.shelf.own[0].title == f"{HTML}.csv"


# ---- the way up


def test_a_file_over_the_limit_is_refused_before_it_is_sent():
    page = PredictionsPage()
    page.upload._handle_msg({"do": "start", "id": "1", "name": "big.csv", "size": MAX_BYTES + 1})
    assert f"more than the limit of {MAX_BYTES:,}, and was not sent" in page.alerts[0]
    assert page.upload.coming == ""


@pytest.mark.parametrize(
    "piece",
    [
        {"at": 5, "data": b"0.5,1\n"},
        {"at": 0, "data": "0.5,1\n"},
        {"at": 0, "data": bytes(101)},
        {"at": 0, "data": bytes(5_000_000)},
    ],
    ids=["a gap", "text", "more than was said", "too large"],
)
def test_what_does_not_arrive_as_announced_is_refused(piece):
    page = PredictionsPage()
    page.upload._handle_msg({"do": "start", "id": "1", "name": "a.csv", "size": 100})
    page.upload._handle_msg({"do": "piece", "id": "1", **piece})
    assert page.alerts == ["'a.csv' did not arrive whole. Try again."]
    assert page.upload.coming == ""


def test_an_upload_can_be_cancelled_and_its_rest_is_ignored(before, monkeypatch):
    monkeypatch.setattr(upload, "EVERY", -1)
    page, vector = before
    page.upload._handle_msg({"do": "start", "id": "1", "name": "a.csv", "size": 100})
    page.upload._handle_msg({"do": "piece", "id": "1", "at": 0, "data": bytes(50)})
    assert json.loads(page.upload.working) == {"text": "Sending a.csv: 50 bytes of 100 bytes", "done": 0.5}
    page.upload._handle_msg({"do": "cancel"})
    page.upload._handle_msg({"do": "piece", "id": "1", "at": 50, "data": bytes(50)})
    assert page.alerts == ["'a.csv' was not taken: you cancelled it."]
    assert json.loads(page.upload.working)["text"] == ""
    assert page.shelf.own == [vector]


def test_a_second_file_waits_for_the_first():
    page = PredictionsPage()
    page.upload._handle_msg({"do": "start", "id": "1", "name": "a.csv", "size": 12})
    page.upload._handle_msg({"do": "start", "id": "2", "name": "b.csv", "size": 12})
    assert page.alerts == ["'b.csv' was not taken: 'a.csv' is still on its way."]
    page.upload._handle_msg({"do": "piece", "id": "1", "at": 0, "data": b"p,y\n.5,1\n.2,0\n"[:12]})
    assert page.found.name == "a.csv"


def test_reading_goes_on_beside_other_work_and_can_be_cancelled(frame):
    data = as_bytes(pd.concat([frame] * 100), "csv")

    async def session():
        page = PredictionsPage()
        page.load(OPEN, "open.csv")
        while page._job:
            await asyncio.sleep(0.01)
        page.load(io.BytesIO(data), "large.csv")
        page.upload._handle_msg({"do": "start", "id": "2", "name": "b.csv", "size": 12})
        assert "'large.csv' is still being worked on" in page.alerts[0]
        page.upload._handle_msg({"do": "cancel"})
        while page._job:
            await asyncio.sleep(0.01)
        assert page.alerts == ["'large.csv' was not taken: you cancelled it."]
        assert page.found.name == "open.csv"
        page.say("y", "died")
        page.say("p", "risk")  # before the first answer is through
        while page._job:
            await asyncio.sleep(0.01)
        assert asks(page) == ["positive"]

    asyncio.run(session())


def test_what_is_read_one_way_and_back_again_stays_while_others_take_it_in(monkeypatch):
    wait, part = threading.Event(), predictions.part

    def slow(vector, get):
        if list(vector.y) == [0, 1, 0]:
            assert wait.wait(10)
        return part(vector, get)

    monkeypatch.setattr(predictions, "part", slow)

    async def session():
        page = PredictionsPage()
        page.load(b"p,y\n0.9,1\n0.2,0\n0.4,1\n", "preds.csv")
        for said in ("", "0", ""):
            page.say("positive", said)
            await asyncio.sleep(0.05)
            while page._job:
                await asyncio.sleep(0.01)
        wait.set()
        while page._tasks:
            await asyncio.sleep(0.01)
        assert page.used in page.results
        assert [list(v.y) for v in page.shelf.own] == [[1, 0, 1]]

    asyncio.run(session())


# ---- what is kept, and what is not


def test_a_file_is_closed_when_it_is_read(frame):
    data = io.BytesIO(as_bytes(frame, "csv"))
    PredictionsPage().load(data, "preds.csv")
    assert data.closed


def test_what_is_removed_leaves_the_memory(frame):
    page = loaded(as_bytes(frame, "csv"))
    (vector,) = page.shelf.own
    held = [page.found, vector, vector.p, vector.y, vector.ranked, page, page.shelf]
    gone = [weakref.ref(thing) for thing in held]
    page.sheet._handle_msg({"do": "remove", "name": vector.name})
    assert page.shelf.own == []
    assert page.results == {}
    assert seen(page)["intro"]
    del held, vector
    gc.collect()
    assert [ref() for ref in gone[:5]] == [None] * 5
    del page
    gc.collect()
    assert [ref() for ref in gone[5:]] == [None] * 2


def test_two_sessions_have_two_shelves(frame):
    one, other = PredictionsPage(), PredictionsPage()
    one.load(as_bytes(frame, "csv"), "mine.csv")
    one.use()
    assert len(one.shelf.own) == 1
    assert other.shelf.own == []
    assert other.found is None


def test_put_away(before):
    page, vector = before
    page.sheet._handle_msg({"do": "close"})
    assert page.found is None
    assert page.shelf.own == [vector]
    assert seen(page)["file"] is None


# ---- the command line and the app


def test_a_file_named_at_the_start_is_read(tmp_path, frame):
    path = tmp_path / "preds.parquet"
    path.write_bytes(as_bytes(frame, "parquet"))
    page = PredictionsPage("", Shelf(file=str(path)))
    assert page.found.name == "preds.parquet"
    assert page.found.questions == ()


def test_a_wrong_path_at_the_start_is_a_message():
    page = PredictionsPage("", Shelf(file="/nowhere/preds.csv"))
    assert "there is no file '/nowhere/preds.csv'" in page.alerts[0]


def test_the_app_opens_on_the_file_unless_the_address_names_a_page(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_bytes(b"p,y\n0.9,1\n0.2,0\n")
    session = app.App("", str(path))
    assert session.shell.page == "predictions"
    assert session.made["predictions"].found.n == 2
    assert app.App("?page=fingerprint", str(path)).shell.page == "fingerprint"
    assert app.App("").shell.page == app.FIRST


def test_links_name_pages_of_the_app():
    assert {app.page_of(href) for _, href in predictions.LINKS} == {"purity", "calibration"}


def test_the_strip_says_the_limit_and_the_formats():
    hint = PredictionsPage().upload.hint
    assert "up to 1,000 MB" in hint
    for name in ("CSV", "TSV", "Parquet", "Feather", "JSON lines", "Excel"):
        assert name in hint
    assert isinstance(PredictionsPage().upload, Upload)
