"""The command line: words, JSON, and an exit status that a script can trust."""

import json
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tqdm import tqdm

from leakviz import _progress, cli
from leakviz.blind import blind_test
from leakviz.lodo import fits
from leakviz.predictions import read_predictions


@pytest.fixture(scope="module")
def cohort():
    rng = np.random.default_rng(7)
    p = rng.beta(1, 4, 4000).round(6)
    return p, (rng.random(4000) < p).astype(int)


def text(p, y, header="p,y"):
    rows = "".join(
        f"{a!r},{b}\n" for a, b in zip(np.asarray(p).tolist(), np.asarray(y).tolist(), strict=True)
    )
    return f"{header}\n{rows}"


@pytest.fixture
def honest(tmp_path, cohort):
    path = tmp_path / "honest.csv"
    path.write_text(text(*cohort))
    return str(path)


@pytest.fixture
def leaky(tmp_path, cohort):
    p, y = cohort
    path = tmp_path / "leaky.csv"
    path.write_text(text(np.where(y == 1, 0.9 + p / 20, p * 0.8), y))
    return str(path)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    caught = capsys.readouterr()
    return ended.value.code, caught.out, caught.err


def test_honest_predictions_are_not_shown_to_leak(capsys, honest):
    status, out, err = run(capsys, "check", honest)
    assert (status, err) == (0, "")
    assert out.startswith("honest.csv: not shown\n")
    assert "How the file was read (4,000 rows):" in out
    assert "- p is column 'p', by its name." in out


def test_words_are_the_answer_then_the_numbers_then_what_it_rests_on(capsys, leaky):
    _, out, _ = run(capsys, "check", leaky)
    answer, numbers, caveats, read = out.split("\n\n")[1:]
    assert answer.startswith("Leaky, near-label: ")
    assert [line[:7] for line in numbers.splitlines() if line[2:3].isupper()] == [
        "  The C",
        "  M* is",
        "  So th",
        "  If ad",
        "  Dispe",
    ]
    first, *listed = caveats.splitlines()
    assert not first.startswith(" ")
    assert all(line.startswith(("  - ", "    ")) for line in listed)
    assert read.startswith("How the file was read")
    assert max(map(len, out.splitlines())) <= 100


def test_leaky_predictions_end_with_1(capsys, leaky):
    status, out, _ = run(capsys, "check", leaky)
    assert status == 1
    assert out.startswith(
        "leaky.csv: leaky, strong evidence: honest predictions would need risks above M* 0.9"
    )
    assert "near-label" in out


def test_one_class_is_undetermined(capsys, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("p,y\n0.5,0\n0.25,0\n")
    status, out, _ = run(capsys, "check", str(path))
    assert status == 2
    assert out.startswith("one.csv: undetermined\n")


# p of "b" alone; the events are rows 2 and 3.
MANY = "p,kind\n0.1,a\n0.9,b\n0.8,b\n0.2,c\n0.3,a\n"


def test_one_label_is_tested_against_the_others_once_it_is_named(capsys, tmp_path):
    path = tmp_path / "many.csv"
    path.write_text(MANY)
    status, out, err = run(capsys, "check", str(path))
    assert (status, out) == (3, "")
    assert "Which column is the outcome y?" in err
    status, _, err = run(capsys, "check", str(path), "--y", "kind")
    assert status == 3
    assert "There are 3 labels" in err
    assert "'a' (2 rows, first row 1); 'b' (2 rows, first row 2); 'c' (1 row, first row 4)" in err
    assert "--name value" in err
    status, out, _ = run(capsys, "check", str(path), "--y", "kind", "--positive", "b")
    assert status == 2  # five rows
    assert out.startswith("many.csv ('b' against the 2 other labels): undetermined\n")
    assert "- y is 1 where 'kind' is 'b', 0 where 'a', 'c', the 2 other labels." in out
    _, out, _ = run(capsys, "check", str(path), "--y", "kind", "--positive", "b", "--json")
    answer = json.loads(out)
    assert (answer["event"], answer["no_event"]) == ("b", ["a", "c"])
    assert answer["blind_test"]["events"] == 2


@pytest.mark.parametrize(("label", "events"), [("7", [0, 1, 1, 0]), ("1", [1, 0, 0, 0])])
def test_digits_as_text_are_labels(tmp_path, label, events):
    path = tmp_path / "digits.csv"
    path.write_text('p,y\n0.1,"1"\n0.9,"7"\n0.8,"7"\n0.2,"10"\n')
    read = read_predictions(str(path), positive=label)
    assert read.y.tolist() == events
    assert read.event == label
    assert len(read.no_event) == 2


def test_json_holds_the_whole_result(capsys, leaky):
    status, out, _ = run(capsys, "check", leaky, "--json", "--delta", "0.1", "--k-min", "80")
    answer = json.loads(out)
    predictions = read_predictions(leaky)
    expected = blind_test(predictions.p, predictions.y, delta="0.1", k_min=80)
    assert status == 1
    assert answer["blind_test"] == json.loads(expected.to_json())
    assert (answer["headline"], answer["strength"]) == (expected.headline, expected.strength)
    assert answer["needed_risk"] == expected.needed_risk
    assert (answer["verdict"], answer["n"], answer["columns"]) == ("leaky", 4000, {"p": "p", "y": "y"})
    assert answer["content_hash"] == predictions.content_hash


def test_ceiling_is_handed_on(capsys, honest):
    status, out, _ = run(capsys, "check", honest, "--ceiling", "0.51", "--json")
    answer = json.loads(out)["blind_test"]
    assert (status, answer["trigger"], answer["c_max"]) == (1, "above-ceiling", 0.51)


def test_reference_gives_breadth(capsys, leaky, honest):
    status, out, _ = run(capsys, "check", leaky, "--reference", honest, "--json")
    assert status == 1
    assert json.loads(out)["blind_test"]["breadth"] > 0.1


def test_reference_for_other_rows_is_refused(capsys, leaky, tmp_path, cohort):
    p, y = cohort
    short, other = tmp_path / "short.csv", tmp_path / "other.csv"
    short.write_text(text(p[:100], y[:100]))
    flipped = y.copy()
    flipped[[6, 9]] = 1 - flipped[[6, 9]]
    other.write_text(text(p, flipped))
    status, out, err = run(capsys, "check", leaky, "--reference", str(short))
    assert (status, out) == (3, "")
    assert "'short.csv' has 100 rows and 'leaky.csv' has 4,000" in err
    status, out, err = run(capsys, "check", leaky, "--reference", str(other))
    assert (status, out) == (3, "")
    assert "in 2 of 4,000 rows, first row 7" in err


def test_answers_are_options(capsys, tmp_path, cohort):
    p, y = cohort
    path = tmp_path / "preds.csv"
    labels = np.where(y == 1, "case", "control")
    path.write_text(text(np.round(p * 100, 4), labels, "risk,status"))
    status, out, err = run(capsys, "check", str(path))
    assert (status, out) == (3, "")
    assert "Which label of 'status' is the event" in err
    assert "name='value' is --name value" in err
    status, *_ = run(
        capsys, "check", str(path), "--p", "risk", "--y", "status", "--positive", "case", "--scale", "percent"
    )
    assert status == 0


@pytest.mark.parametrize(
    ("arguments", "informative"),
    [
        (["check", "no-such.csv"], "there is no file 'no-such.csv'"),
        (["check"], "Missing argument"),
        (["check", "a.csv", "--colour"], "No such option"),
        (["check", "a.csv", "--k-min", "many"], "--k-min"),
        (["frobnicate"], "No such command"),
        (["serve", "--file", "no-such.csv"], "there is no file 'no-such.csv'"),
    ],
)
def test_no_usage_error_looks_like_a_verdict(capsys, arguments, informative):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (3, "")
    assert informative in err


@pytest.mark.parametrize("option", [["--delta", "2"], ["--k-min", "0"], ["--ceiling", "high"]])
def test_option_out_of_range_is_unusable_input(capsys, honest, option):
    status, out, err = run(capsys, "check", honest, *option)
    assert (status, out) == (3, "")
    assert err.startswith("leakviz: ")


def test_a_fault_of_ours_is_no_verdict(capsys, honest, monkeypatch):
    monkeypatch.setattr(cli, "_as_words", lambda *_: 1 / 0)
    status, _, err = run(capsys, "check", honest)
    assert status == 4
    assert "ZeroDivisionError" in err


@pytest.fixture
def bars(capsys, monkeypatch):
    """Let a second pass at once; return the ends of the bars, by what they say."""
    ends = {}

    class AtOnce(tqdm):
        def __init__(self, *args, desc="", **options):
            super().__init__(*args, **{**options, "desc": desc, "delay": 0, "mininterval": 0})
            self.says, self.seen = desc, not self.disable

        def close(self):
            ends.setdefault(self.says, (self.n, self.total) if self.seen else None)
            super().close()

    monkeypatch.setattr(_progress, "tqdm", AtOnce)
    monkeypatch.setattr(fits, "tqdm", AtOnce)
    return ends


def test_what_takes_long_shows_how_far_it_is(capsys, bars, honest, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    status, out, err = run(capsys, "check", honest)
    size = Path(honest).stat().st_size
    assert (status, bars) == (0, {"reading honest.csv": (size, size)})
    assert "reading honest.csv" in err
    assert "reading" not in out

    rng = np.random.default_rng(0)
    rows = {name: rng.normal(size=(n, 3)) for name, n in (("fit", 90), ("id_test", 60), ("ood_test", 60))}
    np.savez(tmp_path / "emb.npz", **rows)
    run(capsys, "audit", str(tmp_path / "emb.npz"), "--k", "5")
    done, total = bars.pop("auditing")
    assert done == total > 1

    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    table["y"], table["source"] = np.tile([0, 1], 60), np.repeat(["x", "y", "z"], 40)
    table.to_csv(tmp_path / "wards.csv", index=False)
    assert run(capsys, "lodo", str(tmp_path / "wards.csv"), "--controls", "0", "--jobs", "1")[0] == 0
    # five folds, the part of every source that is held out, three sources, and five folds that tell sources apart
    assert bars["LODO"] == (14, 14)


def test_where_nobody_looks_no_bar_is_shown(capsys, bars, honest):
    assert run(capsys, "check", honest)[2] == ""
    assert bars == {"reading honest.csv": None}


def test_serve_runs_panel_on_the_app(honest):
    command = cli.serve_command(honest, 5010)
    assert command == [sys.executable, "-m", "dashboards.server", "--port", "5010", "--file", honest]


def test_process_ends_with_the_status_and_never_imports_panel(leaky):
    code = (
        "import sys\nfrom leakviz import cli\n"
        "try:\n    cli.main(sys.argv[1:])\n"
        "finally:\n    found = [m for m in ('panel', 'bokeh', 'holoviews') if m in sys.modules]\n"
        "    print(found, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, "check", leaky]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("leaky.csv: leaky, strong evidence: ")
    assert done.stderr.splitlines() == ["[]"]


# The page of help, and Ctrl-C


def test_help_tells_every_command_and_every_exit_status(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for command in ("serve", "check", "audit", "lodo", "export", "report", "battery"):
        assert f"  leakviz {command}" in out  # an example
        assert f"\n  {command} " in out  # what it does
    for number in (0, 1, 2, 3, 4, 130):
        assert f"\n    {number} " in out
    assert "--install-completion" in out


@pytest.mark.parametrize(
    "command",
    ["check", "audit", "lodo", "export", "report", "serve", "battery build", "battery describe"],
)
def test_help_of_a_command_tells_its_exit_statuses(command, capsys):
    _, out, _ = run(capsys, *command.split(), "--help")
    told = " ".join(out.split())
    for words in ("Exit status: 0 ", "3 unusable", "4 an error", "130 stopped"):
        assert words in told


def test_completion_knows_the_commands(capsys, monkeypatch):
    monkeypatch.setenv("_LEAKVIZ_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "leakviz au")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run(capsys)[1].split() == ["audit"]


@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        ([Path(sys.executable).with_name("leakviz")], "pandas"),
        ([sys.executable, "-m", "leakviz"], "leakviz._stop"),
    ],
)
def test_ctrl_c_while_loading_is_quiet(command, loaded, honest):
    child = subprocess.Popen(
        [*command, "check", honest],
        bufsize=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},  # Python tells on stderr what it has loaded
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a runner may have it ignored
    )
    next(line for line in child.stderr if line.split()[-1].decode() == loaded)
    child.stderr.readline()  # of what comes after it: `leakviz._stop` is not only there, it has been asked
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert b"Traceback" not in err
    assert err.endswith(b"leakviz: stopped; nothing was written.\n")
    assert (child.returncode, out) == (130, b"")


def test_ctrl_c_at_work_is_told(capsys, honest, monkeypatch):
    monkeypatch.setattr(cli, "read_predictions", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    status, out, err = run(capsys, "check", honest)
    assert (status, out, err) == (130, "", "leakviz: stopped; nothing was written.\n")


@pytest.mark.parametrize(
    ("ends", "status"), [("sys.exit(130)", 130), ("sys.exit(0)", 0), ("time.sleep(60)", 0)]
)
def test_a_server_that_is_stopped_says_whether_it_had_started(capsys, monkeypatch, ends, status):
    child = f"import os, signal, sys, time; os.kill(os.getppid(), signal.SIGINT); {ends}"
    monkeypatch.setattr(cli, "serve_command", lambda file, port: [sys.executable, "-c", child])
    monkeypatch.setattr(cli, "_LAST_WORDS", 0.3)
    assert run(capsys, "serve")[0] == status


def test_python_m_leakviz_is_the_command(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["leakviz", "check", "no_such.csv"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("leakviz", run_name="__main__")
    assert stopped.value.code == cli.UNUSABLE
    assert "no_such.csv" in capsys.readouterr().err
