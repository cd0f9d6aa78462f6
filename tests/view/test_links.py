"""Links to every page: what is written is read back, junk is answered, and a link to a file waits for it."""

import importlib
import re
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote_plus, urlencode

import holoviews as hv
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import param
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import app
from dashboards.batteries import Battery, published
from dashboards.embeddings import EmbeddingsState
from dashboards.fingerprint import FingerprintPage
from dashboards.markup import link_note, waiting_note
from dashboards.mechanism import WORLD, write_centres
from dashboards.predictions import PredictionsState
from dashboards.report import ReportState
from dashboards.section_states import TITLES, state_of
from dashboards.shelf import Audit, Shelf
from dashboards.whitening import WhiteningPage
from leakviz import BlindTest, read_predictions
from leakviz.moments import fit_statistics

SCRIPT = "<script>alert(1)</script>"
HOSTILE = [
    "{key}=nonsense&{key}2=1",
    "{key}=nan&{key}=inf",
    "{key}=-1e308",
    "{key}=" + "9" * 50_000,
    "{key}=" + quote_plus(SCRIPT),
    "{key}=%ff%zz%00%",
    "{key}=own:0123456789ab",
    "{key}=own:..%2F..%2Fetc",
    "{key}=1,2;3,,&&&=&{key}",
    "taus=0.5&utm_source=x&told=1&name=2",
]


SHELF = Shelf()
TAKE = {"embeddings": EmbeddingsState, "predictions": PredictionsState}  # they take files
STATES = [name for name in TITLES if name not in TAKE] + list(TAKE)


def made(name):
    """Return a page's state as the page makes it."""
    return TAKE[name]() if name in TAKE else state_of(name, SHELF, {})


def values(state):
    return {name: getattr(state, name) for name in state.names()}


def allowed(state):
    """Tell whether every value of a state is one that can be chosen."""
    for name in state.names():
        value, declared = getattr(state, name), state.param[name]
        if name in state.stops:
            assert value in state.stops[name]
        elif isinstance(declared, param.ListSelector):
            assert set(value) <= set(declared.objects)
        elif isinstance(declared, param.Selector):
            assert value in declared.objects


# What is written is read back


@st.composite
def choices(draw, state):
    """Draw what a hand could have moved, with the data as they are."""
    wanted = {}
    for name in state.names():
        declared = state.param[name]
        if name in ("features", "battery", "case", "model"):
            continue
        if name in state.stops:
            wanted[name] = draw(st.sampled_from(np.asarray(state.stops[name]).tolist()))
        elif isinstance(declared, param.ListSelector):
            among = list(declared.objects)
            kept = draw(st.sets(st.sampled_from(among), min_size=name == "classes")) if among else set()
            wanted[name] = [one for one in among if one in kept]
        elif isinstance(declared, param.Selector):
            wanted[name] = draw(st.sampled_from(list(declared.objects)))
    return wanted


@pytest.mark.parametrize("name", STATES)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_written_is_read_back(name, data):
    state, other = made(name), made(name)
    for first in {"features", "battery", "case"} & set(state.names()):  # decides what else there is
        assert (
            state.read(urlencode({first: data.draw(st.sampled_from(state.param[first].objects[:2]))})) == []
        )
    state.param.update(**data.draw(choices(state)))
    if name == "learn" and state.step == WORLD:
        point = st.tuples(*[st.floats(-5, 5).map(lambda v: round(v, 1))] * 2)
        state.centres = write_centres(data.draw(st.lists(point, min_size=2, max_size=4)))
    elif name == "learn":
        state.read(state.query())  # what the world is like is a part of the state only where it is seen
    elif name == "purity":
        state.param.update(n=data.draw(st.integers(1_000, 300_000)), c=data.draw(st.floats(0.6, 0.9)))
    query = state.query()
    told = other.read("?page=x&" + query)
    if name == "calibration" and state.low >= state.high:  # a range has its ends in order, and says so
        assert len(told) == 1
    else:
        assert told == []
    assert values(other) == values(state)
    assert other.query() == query


# Junk


def test_every_page_is_here():
    assert set(STATES) >= set(app.PAGES) - {"report"}


def of_each_kind(state):
    """Return the first name that is declared in each way, and the ones that name data."""
    kinds = {(type(state.param[name]), name in state.stops): name for name in reversed(state.names())}
    return sorted({*kinds.values(), *state.chooses})


@pytest.mark.parametrize("name", STATES)
def test_no_link_breaks_a_page(name):
    state = made(name)
    state.read("")
    plain, note = values(state), link_note(state)
    for key in [*of_each_kind(state), "setting"]:
        for junk in HOSTILE:
            told = state.read(junk.format(key=key))
            allowed(state)
            assert "<script" not in note.object
            assert all(len(sentence) < 700 for sentence in told)
            if values(state) == plain:
                assert told, junk.format(key=key)  # what was asked is not shown, and that is said
            state.read("")
            assert (values(state), state.told, note.visible) == (plain, [], False)


def test_the_app_says_what_a_link_does_not_show(monkeypatch):
    monkeypatch.setattr(app, "FIRST", "embeddings")  # which is shown soonest
    session = app.App("?page=embedings&tau=0.6")
    state = session.made["embeddings"].state
    note = link_note(state)
    assert state.told == ["The link names the page “embedings”, which is not here; Your embeddings is shown."]
    session.shell.wanted = "?page=embeddings&tau=7"  # the page is there already
    assert "The link names “tau”, which this page does not have; it is left out." in note.object


# Files


def predictions(seed=0, n=400):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n).round(4)
    y = rng.uniform(size=n) < p
    return "\n".join(["risk,died", *(f"{a},{int(b)}" for a, b in zip(p, y, strict=True))]).encode()


@pytest.mark.parametrize(("name", "slot"), [("fingerprint", "battery"), ("lodo", "case")])
def test_where_a_link_waits_no_verdict_of_other_data_is_the_heading(name, slot):
    page = app.PAGES[name][1](f"?page={name}&{slot}=own:0123456789ab", Shelf())
    note, heading = page.__panel__()[:2]
    assert "<h1>This link waits for a file</h1>" in note.object
    assert "<h1>" not in heading.object
    shown = "the published battery, 52 settings" if name == "fingerprint" else "harm in responses, 10 files"
    assert f"Meanwhile, {shown}: " in heading.object
    page.state.param.update(**({"tau": 0.6} if name == "fingerprint" else {"case": "penguins"}))
    assert note.object == ""  # moved on
    assert heading.object.count("<h1>") == 1


def test_a_link_to_predictions_waits_for_the_file_and_knows_it():
    a, b = (f"own:{read_predictions(predictions(seed)).content_hash[:12]}" for seed in (0, 1))
    link = f"first={a}&beside={b}&third=none&delta=0.1&k_min=100"
    session = app.App("?page=predictions")
    page = app.PAGES["purity"][1]("?page=purity&" + link, session.shelf)
    session.made["purity"] = page
    assert page.state.delta == 0.1
    assert f"{a} and {b}" in page.state.told[0]
    assert session._query("purity") == f"page=purity&{link}"  # a copy of the address is the link
    note, _, heading = page.__panel__()[:3]
    assert "<h1>This link waits for a file</h1>" in note.object
    assert '<a class="bring" href="?page=predictions">' in note.object
    assert "<h1>" not in heading.object
    assert "Meanwhile, flchain, logistic regression, honest, and 1 more: At delta" in heading.object
    session.before = "purity"  # from which one came to bring the file
    bring = session.made["predictions"]
    bring.load(predictions(seed=2), "mine.csv")  # the same name, other numbers
    assert f"the link names {a} and {b}, this is {bring.used}, taken as a new one" in bring.heading.object
    assert page.state.first == bring.used
    assert f"this is {bring.used}, taken as a new one" in note.object
    assert "It is shown at what the link asks for: delta 0.1, k_min 100." in note.object
    assert "<h1>At delta" in heading.object  # of what is shown
    assert session.shell.page == "predictions"
    bring.load(predictions(seed=1), "renamed.csv")
    assert (page.state.beside, page.state.missing) == (b, (a,))
    assert f"waits for {a}" in bring.heading.object
    bring.load(predictions(), "renamed.csv")
    assert page.state.query() == f"first={a}&beside={b}&delta=0.1&k_min=100&epsilon=0.01"
    assert page.live.value("delta") == 0.1
    assert (session.shell.page, note.visible) == ("purity", True)  # back, as it has all that it waited for
    assert "<h1>At delta" in heading.object
    assert "This is the file that the link to Purity names" in bring.heading.object
    assert "waits" not in bring.heading.object
    # What a notebook takes on from here.
    assert isinstance(bring.figure("purity"), hv.Overlay)
    assert set(bring.data("purity")["vector"]) == {a}


def test_a_link_to_your_predictions_names_what_is_shown():
    a, b = (f"own:{read_predictions(predictions(seed)).content_hash[:12]}" for seed in (0, 1))
    session = app.App(f"?page=predictions&file={a}")
    page = session.made["predictions"]
    assert "Bring the file below" in page.state.told[0]
    assert session._query("predictions") == f"page=predictions&file={a}"
    page.load(predictions(seed=1), "other.csv")
    assert f"the link names {a}, this is {b}, taken as a new one" in page.state.told[0]
    assert session._query("predictions") == f"page=predictions&file={b}"
    page.load(predictions(), "right.csv")
    assert page.state.told == [f"This is the file that the link names, {a}, as the link shows it."]
    assert session._query("predictions") == f"page=predictions&file={a}"
    verdict = page.heading.object
    session.shell.wanted = f"?page=predictions&file={b}"  # what the session has, it shows again
    assert (page.used, page.look.vector.name) == (b, b)
    assert "other.csv" in page.heading.object
    session.shell.wanted = f"?page=predictions&file={a}"
    assert page.heading.object == verdict
    page.remove(a)
    assert session._query("predictions") == "page=predictions"


@pytest.mark.parametrize(
    ("query", "shown"),
    [("low=0.5&high=0.1", "from 0.5 to 0.1; 0.1 to 0.5"), ("low=0.2&high=0.2", "from 0.2 to 0.2; 0.2 to ")],
)
def test_thresholds_in_the_wrong_order_are_told(query, shown):
    assert shown in made("calibration").read(query)[0]
    assert made("calibration").read("low=0.1&high=0.5") == []


def test_a_link_to_embeddings_and_to_their_battery_waits_for_the_file():
    shelf, rng = Shelf(), np.random.default_rng(0)
    query = "features=own:00a1&covariance=tied&alpha=0.1"
    whitening = WhiteningPage("?" + query, shelf)
    fingerprint = FingerprintPage(
        "?battery=own:00a1&gate=0.9&tau=0.5&metric=specificity&backbone=mine", shelf
    )
    assert fingerprint.state.tau == 0.5  # of the nearest valid state
    assert waiting_note(shelf, "embeddings", "").count("waits for own:00a1") == 2
    assert waiting_note(shelf, "predictions", "") == ""
    for name in ("own:00b2", "own:00a1"):
        fit = fit_statistics(rng.normal(size=(60, 3)), labels=np.repeat([0, 1], 30))
        audit = Audit(name, "emb.npz", fit, rng.normal(size=(40, 3)), rng.normal(size=(30, 3)))
        battery = published().dataset.isel(setting=[0, 1])
        shelf.audits = [*shelf.audits, audit]
        shelf.batteries = [
            *shelf.batteries,
            Battery(name, "emb.npz", "a file", battery.assign_coords(backbone=("setting", ["mine", "b"]))),
        ]
        if name == "own:00b2":
            assert whitening.state.missing == fingerprint.state.missing == ("own:00a1",)
            assert waiting_note(shelf, "embeddings", name).count("taken as a new one") == 2
    assert whitening.state.query() == query
    assert fingerprint.state.query() == "battery=own:00a1&gate=0.9&tau=0.5&backbone=mine&metric=specificity"
    assert waiting_note(shelf, "embeddings", "own:00a1").count("as the link shows it") == 2


# In a notebook

OF_EACH = {
    "fingerprint": ("", "scatter"),
    "whitening": ("", "auroc"),
    "audit": ("", "own"),
    "purity": ("first=nhefs__lr__honest&beside=none", "purity"),
    "calibration": ("vector=nhefs__lr__honest", "reliability"),
    "lodo": ("", "gap"),
    "learn": ("", "box"),
}


def test_the_readme_has_one_import_and_one_line_for_every_page():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `(from dashboards[^`]+)` \| `(\w+)\((.*)\)` \|$", text, re.MULTILINE)
    assert [title for title, *_ in rows] == [title for title, _ in app.PAGES.values()]
    for (name, (_, page)), (_, line, of, link) in zip(app.PAGES.items(), rows, strict=True):
        assert (line, of) == (f"from {page.__module__} import {page.__name__}", page.__name__)
        told = (ReportState() if name == "report" else made(name)).read(link.strip('"'))
        assert told == [], name  # it opens as the line says


def tables(answer):
    """Return the tables in a page's answer, as the README says how to come by them."""
    if isinstance(answer, xr.Dataset):
        return [answer]
    if isinstance(answer, dict):
        return [table for part in answer.values() for table in tables(part)]
    if isinstance(answer, BlindTest):
        return [pd.DataFrame([asdict(answer)])]
    return [answer.bins, answer.expected]  # of Calibration


@pytest.mark.parametrize("name", OF_EACH)
def test_a_page_gives_its_figure_as_an_element_and_its_numbers(name):
    query, figure = OF_EACH[name]
    page = app.PAGES[name][1](query, Shelf())
    element = page.figure(figure)
    assert isinstance(element, (hv.Element, hv.Overlay, hv.Layout))
    element.opts(title="mine")  # to be restyled
    assert isinstance(page.data(figure), pd.DataFrame)
    found = tables(page.answer())
    assert found
    assert all(len(table) for table in found)  # of variables, of rows


def test_a_figure_is_restyled_on_the_screen_and_on_paper():
    was = hv.Store.current_backend
    importlib.import_module("holoviews.plotting.mpl")  # in a notebook: hv.extension("bokeh", "matplotlib")
    hv.Store.set_current_backend(was)
    page = FingerprintPage("tau=0.6")
    own = [
        hv.Options("Overlay", backend="bokeh", title="Ours"),
        hv.Options("Points", backend="bokeh", size=14),
    ]
    shown = hv.render(page.figure("scatter").opts(*own), backend="bokeh")
    assert shown.title.text == "Ours"
    assert {r.glyph.size for r in shown.renderers if hasattr(r.glyph, "marker")} == {14}
    own = hv.Options("Overlay", backend="matplotlib", title="Ours", fig_inches=3)
    drawn = hv.render(page.figure("scatter", "matplotlib").opts(own), backend="matplotlib")
    assert (drawn.axes[0].get_title(), *drawn.get_size_inches()) == ("Ours", 3, 3)
    plt.close(drawn)
