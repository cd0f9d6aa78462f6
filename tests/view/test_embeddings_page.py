"""The page for one's own embeddings, driven without a browser: files in, audits and batteries on the shelf."""

import asyncio
import gc
import io
import json
import pickle
import weakref

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import app
import leakviz
from dashboards import embeddings
from dashboards.embeddings import EmbeddingsPage, example_file
from dashboards.embeddings_result import GATES, TAUS, read_battery
from leakviz.audit import audit_split, explain

HTML = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def arrays():
    """Return a split whose designated class is in the fit set; classes stand apart."""
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(4, 12)) * 2

    def draw(n, label):
        return (centres[label] + rng.normal(size=(n, 12))).astype(np.float32)

    return {
        "fit": np.concatenate([draw(200, c) for c in range(4)]),
        "fit_labels": np.repeat(["cat", "dog", "elk", "fox"], 200),
        "id_test": np.concatenate([draw(80, c) for c in range(3)]),
        "ood_test": draw(160, 3),
        "ood_class": np.array("fox"),
    }


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def send(page, data, name):
    """Do what the browser does with a file."""
    page.upload._handle_msg({"do": "start", "id": "1", "name": name, "size": len(data)})
    step = 1 << 20
    for at in range(0, len(data), step):
        page.upload._handle_msg({"do": "piece", "id": "1", "at": at, "data": data[at : at + step]})


def say(page, do, **message):
    """Do what the browser does with a button or a menu."""
    page.sheet._handle_msg({"do": do, **message})


def seen(page):
    return json.loads(page.sheet.page)


def asks(page):
    return [question.role for question in page.found.questions]


@pytest.fixture(scope="module")
def audited(arrays):
    """Return a page with one audit; whoever changes it makes its own."""
    page = EmbeddingsPage()
    send(page, npz(**arrays), "animals.npz")
    say(page, "use")
    assert page.alerts == []
    return page


# ---- the audit is the core's


def test_the_answer_is_that_of_audit_split(arrays, audited):
    expected = audit_split(**{**arrays, "ood_class": "fox"})
    for name in ("oracle_lda", "maha", "knn", "best_unsup", "best_unsup_excluded", "contrast"):
        np.testing.assert_array_equal(audited.answer()[name], expected[name], name)
    assert audited.answer().attrs["verdict"] == expected.attrs["verdict"]
    first = explain(expected).split("\n\n")[0]
    assert first in audited.heading.object
    assert seen(audited)["shelf"][0]["explain"] == explain(expected).split("\n\n")


def test_a_link_names_the_audit_that_is_shown(arrays, audited):
    name = audited.shelf.audits[0].name
    assert audited.state.query() == f"file={name}"
    page = EmbeddingsPage(f"?file={name}")
    assert (page.state.missing, page.state.address()) == ((name,), f"file={name}")
    send(page, npz(**arrays), "renamed.npz")
    say(page, "use")
    assert page.state.told == [f"This is the file that the link names, {name}, as the link shows it."]
    page.remove(name)
    assert (page.state.query(), page.shown) == ("", None)


def test_every_stop_says_what_the_rule_says(audited):
    audit, live = audited.answer(), audited.view.live
    battery = audited.shelf.batteries[0].dataset
    rng = np.random.default_rng(1)
    for gate, tau in zip(rng.choice(GATES, 25), rng.choice(TAUS, 25), strict=True):
        now = live.at(gate=gate, tau=tau)
        fires = leakviz.fired(battery, leakviz.Rule(gate, tau)).values
        assert bool(now["split_fill"].item()) == fires[0], (gate, tau)
        assert bool(now["other_fill"].item()) == fires[1], (gate, tau)
        runs = ((audit["oracle_lda"] >= gate) & (audit["best_unsup"] < tau)).sum().item()
        assert now["say_runs"].item() == f"{runs} of 3 seeds"
        assert now["say_fires"].item() == ("fires" if fires[0] else "does not fire")


def test_the_figures_draw_what_the_answer_holds(audited):
    audit = audited.answer()
    box = audited.view.panes["box"].object
    sources = {
        tag.split("/")[1]: model.data
        for model in box.references()
        for tag in model.tags
        if isinstance(tag, str) and tag.endswith(":source")
    }
    assert sources["split:source"]["x"][0] == pytest.approx(audit["oracle_lda"].mean().item(), abs=1e-12)
    assert sources["other:source"]["y"][0] == pytest.approx(
        audit["best_unsup_excluded"].mean().item(), abs=1e-12
    )
    np.testing.assert_array_equal(sources["split_runs:source"]["y"], audit["best_unsup"])
    for name in ("box", "contrast", "histograms", "spectrum"):
        assert len(audited.data(name)) > 1
        assert audited.figure(name, "matplotlib") is not None
    shares = audited.data("histograms")[["id_share", "ood_share"]].sum()
    np.testing.assert_allclose(shares, 1, atol=1e-5)


def test_the_shelf_has_what_the_whitening_page_needs(arrays, audited):
    (audit,) = audited.shelf.audits
    rest = arrays["fit"][arrays["fit_labels"] != "fox"].astype(float)
    assert (audit.fit.count, audit.without.count) == (800, 600)
    np.testing.assert_allclose(audit.without.mean, rest.mean(axis=0))
    np.testing.assert_allclose(
        audit.without.scatter, (rest - rest.mean(axis=0)).T @ (rest - rest.mean(axis=0))
    )
    np.testing.assert_array_equal(audit.ood_test, arrays["ood_test"])
    assert seen(audited)["shelf"][0]["links"] == [
        ["fingerprint", f"?page=fingerprint&battery={audit.name}"],
        ["whitening", f"?page=whitening&features={audit.name}"],
    ]


# ---- batteries


def test_the_saved_battery_opens_again(audited):
    data = audited.view._file().getvalue()
    saved = read_battery(data)
    assert saved["regime"].values.tolist() == ["leak", "clean-excl"]
    np.testing.assert_array_equal(saved["best_unsup"][0], audited.answer()["best_unsup"])
    other = EmbeddingsPage()
    send(other, data, "audit.nc")
    (battery,) = other.shelf.batteries
    assert battery.dataset.identical(audited.shelf.batteries[0].dataset)
    assert battery.title == "audit.nc"
    assert seen(other)["shelf"][0]["verdict"] == "battery"
    say(other, "remove", name=battery.name)
    assert other.shelf.batteries == []


def test_a_split_of_unknown_truth_is_a_battery_when_it_is_said(arrays):
    page = EmbeddingsPage()
    page.load(npz(**{k: arrays[k] for k in ("fit", "id_test", "ood_test")}), "bare.npz")
    page.use()
    assert page.shelf.batteries == []
    assert len(page.shelf.audits) == 1
    assert page.view.save.visible is False
    assert "contrast" not in page.answer()
    page.view.truth.value = "clean-novel"
    (battery,) = page.shelf.batteries
    assert battery.dataset["regime"].values.tolist() == ["clean-novel"]
    assert page.view.save.visible
    assert page.view.live.at()["mark"].item() == "triangle"


# ---- the wizard


def test_names_of_their_own_are_asked_about(arrays):
    page = EmbeddingsPage()
    page.load(
        npz(train=arrays["fit"], y=arrays["fit_labels"], test=arrays["id_test"], new=arrays["ood_test"]),
        "own.npz",
    )
    assert asks(page) == ["fit", "id_test", "ood_test"]
    page.use()
    assert page.results == {}
    for role, value in {"ood_test": "new", "fit": "train", "id_test": "test"}.items():
        say(page, "answer", role=role, value=value)
    assert asks(page) == []
    assert [f["role"] for f in seen(page)["file"]["questions"]] == ["fit", "id_test", "ood_test"]
    page.say("fit", "")
    assert asks(page) == ["fit"]
    page.say("fit", "train")
    page.say("fit_labels", "y")
    (field,) = [f for f in seen(page)["file"]["rest"] if f["role"] == "ood_class"]
    assert [value for value, _ in field["options"]] == ["", "cat", "dog", "elk", "fox"]
    page.say("ood_class", "fox")
    page.say("k", "20")
    page.say("shrinkage", "0.1")
    page.use()
    assert (page.answer().attrs["k"], page.answer()["alpha"].item()) == (20, 0.1)
    assert "contrast" in page.answer()
    page.say("k", "50")
    assert "of the answers before" in page.heading.object
    assert seen(page)["file"]["ready"]


def test_arrays_come_one_by_one(arrays):
    page = EmbeddingsPage()
    for name in ("fit", "id_test", "ood_test"):
        file = io.BytesIO()
        np.save(file, arrays[name])
        send(page, file.getvalue(), f"{name}.npy")
    assert asks(page) == []
    assert page.title == "3 arrays"
    assert seen(page)["file"]["ready"]
    read = page.found.read()
    for name in ("fit", "id_test", "ood_test"):
        np.testing.assert_array_equal(getattr(read, name), arrays[name])


def table_of(arrays, role="role"):
    """Return the split as one table, and its bytes as Parquet."""
    parts = [pd.DataFrame(arrays[name]).assign(**{role: name}) for name in ("fit", "id_test", "ood_test")]
    frame = pd.concat(parts, ignore_index=True)
    frame.columns = frame.columns.astype(str)
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def test_other_formats_give_the_same_split(arrays, tmp_path):
    xr.Dataset(
        {name: ((f"{name}_row", "feature"), arrays[name]) for name in ("fit", "id_test", "ood_test")}
    ).to_netcdf(tmp_path / "emb.nc", engine="h5netcdf")
    for name, data in {"emb.parquet": table_of(arrays), "emb.nc": (tmp_path / "emb.nc").read_bytes()}.items():
        page = EmbeddingsPage()
        page.load(data, name)
        assert seen(page)["file"]["ready"], name
        for part in ("fit", "id_test", "ood_test"):
            np.testing.assert_array_equal(getattr(page.found.read(), part), arrays[part], name)


def test_a_message_that_asks_for_a_column_can_be_answered(arrays):
    page = EmbeddingsPage()
    file = io.BytesIO(table_of(arrays, role="part"))
    page.load(file, "emb.parquet")
    assert seen(page)["retry"]["role"] == "role_column"
    assert not file.closed
    say(page, "retry", role="role_column", value="part")
    assert seen(page)["retry"] is None
    assert asks(page) == []


def test_rows_in_two_sets_stop_the_audit_until_it_is_said_to_count_them(arrays):
    page = EmbeddingsPage()
    page.load(
        npz(**{**arrays, "ood_test": np.concatenate([arrays["ood_test"], arrays["fit"][:3]])}), "twice.npz"
    )
    assert "overlap" not in [f["role"] for f in seen(page)["file"]["questions"]]
    page.use()
    assert "ood_test is also in fit in 3 of 163 rows; first: row 160" in page.alerts[0]
    assert "choose “count them and go on” below" in page.alerts[0]
    assert "cannot be audited</b> as it is" in page.heading.object
    assert page.results == {}
    assert [f["role"] for f in seen(page)["file"]["questions"]] == ["overlap"]
    page.say("overlap", "report")
    page.use()
    assert page.answer().attrs["n_overlap_fit_ood"] == 3
    assert page.view.live.at()["overlap"].item() == "3 rows are in two sets"


# ---- what cannot be used: a message, and what was there stays

RNG = np.random.default_rng(0)
GOOD = {
    "fit": RNG.normal(size=(90, 4)),
    "id_test": RNG.normal(size=(60, 4)),
    "ood_test": RNG.normal(size=(60, 4)),
}
BAD = {
    "empty": (b"", "empty: it has 0 bytes"),
    "no arrays": (b"hello", "no file of arrays that is known"),
    "pickle": (pickle.dumps(GOOD), "never loads pickles"),
    "objects": (npz(**{**GOOD, "fit": np.array([[1, "a"]], dtype=object)}), "Python objects"),
    "cut short": (npz(**GOOD)[:2000], "damaged or cut short"),
    "missing": (
        npz(**{**GOOD, "fit": np.where(GOOD["fit"] > 2, np.nan, GOOD["fit"])}),
        "fit is missing (nan) in",
    ),
    "overflow": (npz(**{**GOOD, "id_test": np.full((60, 4), np.inf, np.float16)}), "float16 ends at 65504"),
    "widths": (npz(**{**GOOD, "ood_test": np.ones((60, 5))}), "ood_test has 5 features and the fit set 4"),
    "zero rows": (npz(**{**GOOD, "ood_test": np.zeros((60, 4))}), "ood_test is all zero in 60 of 60 rows"),
    "labels": (npz(**GOOD, fit_labels=np.arange(3)), "fit_labels has 3 labels and fit has 90 rows"),
    "constant": (npz(**{**GOOD, "fit": np.ones((90, 4))}), "all 4 features are constant"),
    "few rows": (npz(**{**GOOD, "fit": GOOD["fit"][:20]}), "k is 50, but the fit set has 20 rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_a_message_and_leaves_the_shelf(audited, case):
    page = EmbeddingsPage("", audited.shelf)
    page.results = dict(audited.results)
    data, words = BAD[case]
    send(page, data, "bad.npz")
    if case in ("widths", "labels"):  # what shapes say is said before anything is read or pressed
        assert any(words in told for told in seen(page)["alert"]), seen(page)["alert"]
        assert not seen(page)["file"]["ready"]
    page.use()
    assert any(words in told for told in seen(page)["alert"]), seen(page)["alert"]
    assert [entry["title"] for entry in seen(page)["shelf"]] == ["animals.npz"]
    assert len(audited.shelf.audits) == 1


def test_a_file_over_the_limit_is_refused_before_it_is_sent():
    page = EmbeddingsPage()
    page.upload._handle_msg({"do": "start", "id": "1", "name": "big.npz", "size": embeddings.LIMIT + 1})
    assert "more than the limit of 1,000,000,000, and was not sent. Save float16" in page.alerts[0]
    assert "1,000 MB" in page.upload.hint


def test_an_error_nobody_thought_of_is_a_message_too(monkeypatch, caplog):
    def broken(*args, **options):
        raise RuntimeError("secret")

    monkeypatch.setattr(embeddings, "inspect_embeddings", broken)
    page = EmbeddingsPage()
    page.load(npz(**GOOD), "odd.npz")
    assert "'odd.npz' could not be read" in page.alerts[0]
    assert "secret" not in page.alerts[0]
    assert "secret" in caplog.text


def test_names_from_files_are_text(arrays):
    page = EmbeddingsPage()
    labels = np.where(arrays["fit_labels"] == "fox", HTML, arrays["fit_labels"])
    page.load(npz(**{**arrays, "fit_labels": labels, "ood_class": np.array(HTML)}), f"{HTML}.npz")
    page.use()
    assert page.alerts == []
    assert "<img" not in page.heading.object
    assert "<img" not in page.view.words.object
    assert "&lt;img" in page.heading.object
    assert "innerHTML" not in page.sheet._esm.read_text()


# ---- work in a thread


def test_an_audit_goes_on_beside_other_work_and_can_be_cancelled(arrays):
    wide = {
        name: np.tile(arrays[name], (4, 40))
        + RNG.normal(size=(4 * len(arrays[name]), 480)).astype(np.float32)
        for name in ("fit", "id_test", "ood_test")
    }
    wide |= {"fit_labels": np.tile(arrays["fit_labels"], 4), "ood_class": arrays["ood_class"]}

    async def session():
        page = EmbeddingsPage()
        page.load(npz(**wide), "wide.npz")
        while page._job:
            await asyncio.sleep(0.01)
        page.use()
        page.load(npz(**GOOD), "other.npz")
        assert "'wide.npz' is still being worked on" in page.alerts[0]
        while page._job.done is None:
            await asyncio.sleep(0.01)
        page.upload._handle_msg({"do": "cancel"})
        while page._job:
            await asyncio.sleep(0.01)
        assert page.alerts == ["'wide.npz' was not taken: you cancelled it."]
        assert page.results == {}
        assert page.found.name == "wide.npz"
        assert seen(page)["file"]["ready"]

    asyncio.run(session())


# ---- the example, the session, the app


def test_the_example_shows_a_leak():
    page = EmbeddingsPage()
    say(page, "example")
    assert page.alerts == []
    assert asks(page) == []
    assert page.found.answers["ood_class"] == ("Sneaker",)
    found = leakviz.read_embeddings(example_file())
    assert (found.fit.shape, set(found.fit_labels) >= {"Sneaker", "Bag"}) == ((2000, 128), True)


def test_what_is_removed_leaves_the_memory(arrays):
    page = EmbeddingsPage()
    file = io.BytesIO(npz(**arrays))
    page.load(file, "animals.npz")
    page.use()
    (audit,) = page.shelf.audits
    held = [page.found, audit, audit.fit, page.results[audit.name], page, page.shelf]
    gone = [weakref.ref(thing) for thing in held]
    say(page, "remove", name=audit.name)
    assert (page.shelf.audits, page.shelf.batteries, page.results) == ([], [], {})
    assert file.closed
    assert seen(page)["intro"]
    del held, audit
    gc.collect()
    assert [ref() for ref in gone[:4]] == [None] * 4
    del page
    gc.collect()
    assert [ref() for ref in gone[4:]] == [None] * 2


def test_two_sessions_have_two_shelves(audited):
    other = EmbeddingsPage()
    assert other.shelf.audits == []
    assert other.found is None


def test_links_name_pages_of_the_app(audited):
    assert {app.page_of(href) for _, href in seen(audited)["shelf"][0]["links"]} == {
        "fingerprint",
        "whitening",
    }
