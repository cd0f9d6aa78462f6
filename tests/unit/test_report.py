"""The report as data: its schema, its limits, how it is made again. Expected values are worked by hand."""

import copy
import json
import re
import shlex

import jsonschema
import numpy as np
import pytest
import xarray as xr

from leakviz import InputError, blind_test, load_battery, load_published_lodo
from leakviz import report as core
from leakviz.cli import report_command


def document() -> dict:
    section = {
        "page": "purity",
        "title": "Purity",
        "state": "delta=0.1",
        "note": "",
        "subject": "preds.csv",
        "verdict": "Not shown.",
        "says": ["a"],
        "tables": [{"title": "t", "header": ["", "b"], "rows": [["c", "d"]]}],
        "parameters": [["delta", "0.1"]],
        "data": [{"title": "preds.csv", "source": "s", "content_hash": "a" * 64, "file": "", "sha256": ""}],
        "limits": [{"name": "few events", "applies": False, "words": ""}],
        "methods": ["blind"],
        "figures": [{"name": "purity", "title": "Purity", "caption": "c"}],
    }
    file = {
        "name": "pr'eds $1.csv",
        "kind": "predictions",
        "sha256": "b" * 64,
        "content_hash": "a" * 64,
        "options": {"p": "risk", "positive": "yes"},
    }
    return {
        "schema": "leakviz.report",
        "version": 1,
        "title": "T",
        "author": "",
        "date": "2026-01-31",
        "notes": "",
        "command": "leakviz report",
        "versions": {"numpy": "2.0"},
        "files": [file],
        "sections": [section],
    }


def test_the_schema_is_a_schema_and_a_report_is_read_back_the_same():
    jsonschema.Draft202012Validator.check_schema(core.SCHEMA)
    assert core.SCHEMA["version"] == core.VERSION == 1
    assert core.read_report(core.write_report(document())) == document()


def change(path: str, value: object) -> dict:
    changed = copy.deepcopy(document())
    *parents, last = [int(k) if k.isdigit() else k for k in path.split("/")]
    at = changed
    for key in parents:
        at = at[key]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("sections/0/state", 3, "sections[0].state must be text, got 3"),
        ("sections/0/verdict", None, "sections[0] lacks verdict"),
        ("sections/0/limits/0/applies", "no", "sections[0].limits[0].applies must be true or false"),
        ("sections/0/tables/0/rows/0", "x", "sections[0].tables[0].rows[0] must be a list"),
        (
            "files/0/kind",
            "model",
            "files[0].kind must be one of 'predictions', 'embeddings', 'battery', 'sources'",
        ),
        ("files/0/sha256", "b" * 63, "files[0].sha256 is not of the form"),
        ("files/0/rows", [1], "files[0] has 'rows', which version 1 does not know"),
        ("title", "x" * 301, "title has 301 characters, and at most 300"),
        ("versions", [], "versions must be an object"),
    ],
)
def test_what_is_wrong_is_named_and_jsonschema_agrees(path, value, says):
    broken = change(path, value)
    assert not jsonschema.Draft202012Validator(core.SCHEMA).is_valid(broken)
    with pytest.raises(InputError, match="^r.json: " + re.escape(says)):
        core.read_report(json.dumps(broken), name="r.json")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "is no report of leakviz"),
        (json.dumps(change("version", 2)), "is of version 2 .* reads version 1. Update leakviz"),
        (json.dumps(change("version", True)), "version must be a whole number"),
        (json.dumps(change("date", "2026-02-30")), "date must be a day"),
        (json.dumps(change("sections", [])), "at least one page"),
    ],
)
def test_what_is_no_report_of_this_version_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        core.read_report(text)


def test_the_command_is_one_that_a_shell_reads_back():
    words = shlex.split(core.command(change("sections/0/note", "it's $HOME")))
    assert words[:6] == ["leakviz", "report", "pr'eds $1.csv", "--p", "risk", "--positive"]
    assert words[words.index("--note") + 1] == "1:it's $HOME"
    assert "purity:delta=0.1" in words
    assert words[words.index("--date") + 1] == "2026-01-31"


def test_what_differs_is_told():
    assert core.differences(document(), document()) == []
    now = change("versions/numpy", "2.1")
    now["sections"][0]["data"][0]["content_hash"] = "c" * 64
    now["sections"][0]["tables"][0]["rows"][0][1] = "e"
    told = core.differences(document(), now)
    assert [sentence.split(":")[0] for sentence in told] == [
        "Package versions differ",
        "Section 1",
        "Section 1",
    ]
    assert "numpy 2.0, now 2.1" in told[0]
    # A state that a newer report writes out is the same; another value is another state.
    whole = change("sections/0/state", document()["sections"][0]["state"] + "&k_min=50")
    assert core.differences(document(), whole) == []
    assert "can be had only as" in core.differences(document(), change("sections/0/state", "delta=0.2"))[0]


def applying(limits: list) -> list[str]:
    return [limit.name for limit in limits if limit.applies]


SMOOTH = "smooth leak below the ceiling"


def test_the_limits_of_predictions_follow_from_them():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.6, 4_000)
    honest = blind_test(p, rng.uniform(size=4_000) < p)
    assert applying(core.limits_of_predictions(honest)) == [SMOOTH]
    # 200 records, the 90 highest with the event: a pure head of at least 50, fewer than 100 events
    few = blind_test(np.linspace(0.99, 0.01, 200), np.arange(200) < 90)
    assert applying(core.limits_of_predictions(few)) == [
        "near-deterministic outcome",
        "perfect ranking",
        "few events",
    ]
    # Nothing can rule a smooth leak out: beside a leak that was found it is not looked for at all.
    assert SMOOTH not in [limit.name for limit in core.limits_of_predictions(few)]
    # 30 events: at delta 0.05 a head of 50 needs 48, since 47/50 = 0.94 < 0.95
    rare = blind_test(np.linspace(0.9, 0.01, 900), np.arange(900) % 30 == 0)
    words = {limit.name: limit.words for limit in core.limits_of_predictions(rare)}
    assert "needs 48" in words["few events"]
    assert "near-deterministic outcome" not in words  # 30 events are too few to show one
    # The 30 highest of 900 have the event: no head of 50, and a ranking that nobody honest has.
    perfect = blind_test(np.linspace(0.9, 0.01, 900), np.arange(900) < 30)
    assert applying(core.limits_of_predictions(perfect))[:2] == ["perfect ranking", "few events"]
    none = blind_test(np.linspace(0.9, 0.01, 900), np.zeros(900))
    (limit,) = [one for one in core.limits_of_predictions(none) if one.name == "one class"]
    assert limit.words.startswith("All 900 records are without the event")
    reversed_ = blind_test(1 - p, rng.uniform(size=4_000) < p)
    assert "reversed ranking" in applying(core.limits_of_predictions(reversed_))
    assert "simulated data" in applying(core.limits_of_predictions(honest, simulated=True))
    named = core.limits_of_predictions(few, whose="a.csv")
    assert all(limit.words.startswith("a.csv: ") for limit in named if limit.applies)


def test_the_limits_of_settings_sources_and_features_follow_from_them():
    battery = load_battery("published")
    limits = {limit.name: limit for limit in core.limits_of_battery(battery, published=False)}
    assert "52 settings are designations of classes on 4 backbones" in limits["dependent settings"].words
    assert not limits["published figures not recomputed"].applies
    one = battery.isel(setting=[0])
    assert applying(core.limits_of_battery(one, published=False)) == ["few settings"]

    def sources(n: int, positives: int = 50) -> xr.Dataset:
        return xr.Dataset(
            {
                "kind": ("source", ["mixed"] * n),
                "n": ("source", [100] * n),
                "positives": ("source", [positives] * n),
            },
            {"source": [f"s{i}" for i in range(n)]},
        )

    transfer = "transfer between these sources"
    assert applying(core.limits_of_sources(sources(5), published=False)) == ["too few sources", transfer]
    assert applying(core.limits_of_sources(sources(6), published=False)) == [transfer]
    assert applying(core.limits_of_sources(sources(6, 29), published=False)) == ["small sources", transfer]
    published = core.limits_of_sources(load_published_lodo(), published=True)
    assert "published figures not recomputed" in applying(published)

    few = ["fewer rows than features (n < D)"]
    assert applying(core.limits_of_features(768, 768, 500, 500)) == few
    assert applying(core.limits_of_features(769, 768, 500, 500)) == ["few rows per feature"]
    assert applying(core.limits_of_features(7_680, 768, 100, 99)) == ["few test rows"]
    assert applying(core.limits_of_features(7_680, 768, 100, 100)) == []


def test_every_method_is_a_bibtex_entry_of_its_own():
    entries = [bibtex for _, bibtex in core.METHODS.values()]
    keys = [re.match(r"@\w+\{(\w+),\n", bibtex)[1] for bibtex in entries]
    assert len(set(keys)) == len(keys)
    for bibtex in entries:
        assert bibtex.count("{") == bibtex.count("}")
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) = \{", bibtex, re.MULTILINE))


@pytest.mark.parametrize(
    ("what", "more", "says"),
    [
        (["purity"], {}, "say what to write"),
        ([], {"out": "r.html"}, "name the pages of the report"),
        (["nothing.csv"], {"out": "r.html"}, "there is no file 'nothing.csv'"),
        (["purity"], {"out": "r.pdf"}, "--out must end in .html"),
        (["purity"], {"pdf": "no/where/r.pdf"}, "there is no folder"),
        (["purity"], {"out": "r.html", "own": ["a.csv"]}, "--file goes with --from"),
    ],
)
def test_a_command_that_cannot_be_is_refused_before_anything_starts(what, more, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        report_command(what, {"from": ""}, **more)
