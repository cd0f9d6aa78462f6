"""The command line: ``leakviz check`` judges predictions, ``leakviz audit`` features, ``leakviz serve`` starts the app.

The exit status of ``check`` and ``audit`` can be used by a script or a CI job:

== ===========================================================================
0  not shown: the scores show no leak, which is not a proof of its absence; where
   fit labels say that the designated class is in the fit set, the words say so
1  leaky (check), or the fingerprint fires (audit)
2  undetermined: the test cannot answer on these data
3  unusable input: the file, an option or an answer; the reason is on stderr
4  an error inside leakviz
== ===========================================================================

``leakviz lodo`` ends with 0 when it has an answer (a gap is no verdict), with 3 or 4 as above; so do ``leakviz
export`` and ``leakviz report``. Whatever is stopped with Ctrl-C ends with 130 and leaves nothing half-written.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
from typer.exceptions import TyperException

from leakviz import _stop
from leakviz._progress import bar
from leakviz._stop import STOPPED
from leakviz.battery.commands import app as battery_commands
from leakviz.errors import InputError
from leakviz.lodo.command import lodo_command
from leakviz.predictions import MAX_BYTES, Predictions, read_predictions

if TYPE_CHECKING:
    import xarray as xr

    from leakviz.blind import BlindTest
    from leakviz.embeddings import Embeddings

ROOT = Path(__file__).resolve().parents[1]
STATUS = {"not shown": 0, "leaky": 1, "undetermined": 2}
"""The exit status of each verdict of ``check``."""

AUDIT_STATUS = {"not shown": 0, "fires": 1, "undetermined": 2}
"""The exit status of each verdict of ``audit``."""

PAGES = ("fingerprint", "whitening", "audit", "purity", "calibration", "lodo", "learn")
"""What ``export`` can write as a file."""

NOT_EXPORTED = {
    "embeddings": "it reads features and audits them",
    "predictions": "it reads predictions and tests them",
    "report": "it puts other pages together",
}
"""The app's other pages: what each does that needs the app."""

UNUSABLE = 3
BROKEN = 4
_ANSWERS = (
    "p|y|positive|scale|missing|fold|delimiter|encoding|sheet|label|source|features|groups|"
    "fit|id_test|ood_test|fit_labels|id_test_labels|role_column|label_column|ood_class|overlap|regime"
)
_LAST_WORDS = 3.0  # seconds that a server has to end

HELP = """Find, understand and show leakage in machine-learning results.

\b
Examples:
  leakviz serve                                    the app, in a browser
  leakviz check preds.csv --y died --positive yes  can these risks be real?
  leakviz audit emb.npz --ood-class fox            is the OOD class in the fit set?
  leakviz lodo table.csv --source hospital         what is lost on a new source?
  leakviz export purity --state delta=0.1 --out page.html
  leakviz report preds.csv --out report.html --pdf report.pdf
  leakviz battery describe                         what the shipped battery shows

\b
Exit status:
  0    done; check and audit: no leak is shown, which is no proof of its absence
  1    leaky (check), or the fingerprint fires (audit)
  2    undetermined: check or audit cannot answer on these data
  3    unusable input: the file, an option or an answer; stderr has the reason
  4    an error inside leakviz
  130  stopped with Ctrl-C; nothing is left half-written

\b
For scripts: --json writes the answer for machines (report: --json FILE); progress and
messages go to stderr. For the shell: leakviz --install-completion.
"""

app = typer.Typer(
    name="leakviz",
    help=HELP,
    no_args_is_help=True,
    context_settings={"max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(battery_commands, name="battery")

# ---- options that several commands have

_P = Annotated[str | None, typer.Option("--p", help="Column of the predicted risk.")]
_Y = Annotated[str | None, typer.Option("--y", help="Column of the outcome.")]
_Positive = Annotated[str | None, typer.Option(help="Label of y that is the event.")]
_Scale = Annotated[str | None, typer.Option(help="probability, percent or logit.")]
_Missing = Annotated[str | None, typer.Option(help="refuse or drop rows with a missing value.")]
_Fold = Annotated[str | None, typer.Option(help="Column of the cross-validation fold.")]
_Delimiter = Annotated[str | None, typer.Option(help="Of a text file: one character.")]
_Encoding = Annotated[str | None, typer.Option(help="Of a text file, such as cp1252.")]
_Sheet = Annotated[str | None, typer.Option(help="Of an Excel file.")]
_Fit = Annotated[str | None, typer.Option(help="Array with the features of the fit rows.")]
_IdTest = Annotated[str | None, typer.Option(help="Array with those of the ID test rows.")]
_OodTest = Annotated[str | None, typer.Option(help="Array with those of the OOD rows.")]
_FitLabels = Annotated[str | None, typer.Option(help="Array with the classes of the fit rows.")]
_IdTestLabels = Annotated[str | None, typer.Option(help="Array with the classes of the ID test rows.")]
_Json = Annotated[bool, typer.Option("--json", help="Write JSON instead of words.")]

# Text in one command, with a default; in another, given or not.
_SHRINKAGE = typer.Option(help="alpha: ledoit-wolf, or a number from 0 to 1.")
_K = typer.Option("--k", help="Which neighbour the kNN detector measures.")
_REGIME = typer.Option(help="Of features without labels, what the split is known to be, such as clean-novel.")
_ORDER = "leakviz.order"
_OVERLAP = typer.Option(help="refuse, or report, test rows that are fit rows.")


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, Feather, JSON lines or Excel.")],
    p: _P = None,
    y: _Y = None,
    positive: _Positive = None,
    scale: _Scale = None,
    missing: _Missing = None,
    fold: _Fold = None,
    delimiter: _Delimiter = None,
    encoding: _Encoding = None,
    sheet: _Sheet = None,
    delta: Annotated[str, typer.Option(help="Impurity that the head may have.")] = "0.05",
    k_min: Annotated[int, typer.Option(help="Smallest head that counts.")] = 50,
    ceiling: Annotated[str | None, typer.Option(help="C* ceiling: the largest credible C-statistic.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="File with honest predictions for the same rows.")
    ] = None,
    max_bytes: Annotated[int, typer.Option(help="Limit for a file and what it unpacks to.")] = MAX_BYTES,
    as_json: _Json = False,
) -> int:
    """Say whether predictions can be real.

    p must be made for rows that the model was not fitted on: held-out or out-of-fold predictions (scikit-learn:
    cross_val_predict with method="predict_proba"), unrounded. Those of the training rows look leaky. Scores that are
    no risks, such as an SVM's margins, are to be calibrated first, out of fold too; read with --scale logit, their
    ranks hold (C-statistic, pure head, M*), and their dispersion does not.

    \b
    Examples:
      leakviz check preds.csv
      leakviz check preds.xlsx --p risk --y outcome --positive case --ceiling 0.85
      leakviz check preds.parquet --reference honest.parquet --json

    Exit status: 0 not shown, 1 leaky, 2 undetermined, 3 unusable, 4 an error, 130 stopped.
    """
    options: dict[str, Any] = {
        "p": p,
        "y": y,
        "positive": positive,
        "scale": scale,
        "missing": missing,
        "delimiter": delimiter,
        "encoding": encoding,
        "sheet": sheet,
        "max_bytes": max_bytes,
    }
    predictions = _read(file, fold=fold, **options)
    honest = None if reference is None else _reference(reference, predictions, options)
    from leakviz.blind import blind_test

    result = blind_test(
        predictions.p,
        predictions.y,
        delta=delta,
        k_min=k_min,
        c_max=ceiling,
        reference=honest,
        folds=predictions.folds,
    )
    typer.echo(_as_json(predictions, result) if as_json else _as_words(predictions, result))
    return STATUS[result.verdict]


@app.command()
def audit(
    file: Annotated[
        str | None,
        typer.Argument(help=".npz, Parquet or netCDF-4. Without it, --fit and so on name .npy files."),
    ] = None,
    fit: _Fit = None,
    id_test: _IdTest = None,
    ood_test: _OodTest = None,
    fit_labels: _FitLabels = None,
    id_test_labels: _IdTestLabels = None,
    ood_class: Annotated[
        list[str] | None, typer.Option(help="Class that the OOD rows were designated from. May be repeated.")
    ] = None,
    role_column: Annotated[str | None, typer.Option(help="Of Parquet: what each row is for.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Of Parquet: the classes.")] = None,
    shrinkage: Annotated[str, _SHRINKAGE] = "ledoit-wolf",
    k: Annotated[int, _K] = 50,
    seeds: Annotated[str, typer.Option(help="Of the probe's splits, with commas between.")] = "0,1,2",
    gate: Annotated[float, typer.Option(help="Oracle gate of the rule.")] = 0.95,
    tau: Annotated[float, typer.Option(help="Cut on the best detector.")] = 0.65,
    overlap: Annotated[str, _OVERLAP] = "refuse",
    out: Annotated[str | None, typer.Option(help="Save a battery (.nc) that the app opens.")] = None,
    name: Annotated[str, typer.Option(help="What the battery calls the split.")] = "split",
    regime: Annotated[str | None, typer.Option(help="For --out without labels: leak or clean-novel.")] = None,
    max_bytes: Annotated[
        int | None, typer.Option(help="Limit for the file and what it unpacks to.", show_default="4000000000")
    ] = None,
    as_json: _Json = False,
) -> int:
    """Look for the leak fingerprint in features.

    \b
    Examples:
      leakviz audit emb.npz --ood-class fox
      leakviz audit --fit fit.npy --id-test id.npy --ood-test ood.npy --json
      leakviz audit emb.npz --ood-class fox --out battery.nc

    Exit status: 0 not shown, 1 fires, 2 undetermined, 3 unusable, 4 an error, 130 stopped. It is the verdict on the
    scores; where labels show a leak that the scores do not, the first line says so ("headline" with --json).
    """
    from leakviz.audit import audit_battery, audit_split
    from leakviz.battery import save_battery
    from leakviz.embeddings import MAX_BYTES as MOST
    from leakviz.embeddings import read_embeddings
    from leakviz.fingerprint import Rule

    arrays = {
        "fit": fit,
        "id_test": id_test,
        "ood_test": ood_test,
        "fit_labels": fit_labels,
        "id_test_labels": id_test_labels,
    }
    named: dict[str, Any] = {role: value for role, value in arrays.items() if value is not None}
    if file is None and not named:
        raise InputError(
            "there is nothing to audit: give a file, or --fit, --id-test and --ood-test as .npy files."
        )
    rule, runs = Rule(gate=gate, tau=tau), _seeds(seeds)
    if out is not None and (not out.endswith(".nc") or not Path(out).parent.is_dir()):
        raise InputError(f"--out must be the name of a .nc file in a folder that exists, got {out!r}.")
    with bar("auditing", bar_format="{l_bar}{bar}") as progress:
        embeddings = read_embeddings(
            named if file is None else file,
            **({} if file is None else named),
            ood_class=ood_class or None,
            role_column=role_column,
            label_column=label_column,
            max_bytes=MOST if max_bytes is None else max_bytes,
        )
        if out is not None and regime is None and embeddings.ood_class is None:
            raise InputError(
                "--out needs --regime leak or --regime clean-novel, for no --ood-class and --fit-labels say it."
            )
        found = audit_split(
            **embeddings.arguments(),
            shrinkage=shrinkage,  # type: ignore[arg-type]  # text is read as a decimal
            k=k,
            seeds=runs,
            rule=rule,
            overlap=overlap,  # type: ignore[arg-type]  # checked there
            progress=progress,
        )
    if out is not None:
        save_battery(audit_battery(found, name=name, regime=regime), out)
    typer.echo(_audit_json(embeddings, found) if as_json else _audit_words(embeddings, found, out))
    return AUDIT_STATUS[found.attrs["verdict"]]


app.command("lodo")(lodo_command)


@app.command()
def serve(
    file: Annotated[str | None, typer.Option(help="Predictions to open.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 5006,
) -> int:
    """Start the app on this machine. Ctrl-C ends it.

    \b
    Examples:
      leakviz serve
      leakviz serve --file preds.csv --port 0

    Exit status: 0 ended, by Ctrl-C as well, 3 unusable, 4 an error, 130 stopped before the server is started.
    """
    command = serve_command(file, port)
    server = subprocess.Popen(command, cwd=ROOT)
    try:
        status = server.wait()
    except KeyboardInterrupt:  # from a terminal the server has heard it, too
        try:
            status = server.wait(timeout=_LAST_WORDS)
        except subprocess.TimeoutExpired:
            server.terminate()
            server.wait()
            status = 0
    return _status_of(status)


@app.command()
def export(
    page: Annotated[str, typer.Argument(help=f"One of {', '.join(PAGES)}; lesson is another name of learn.")],
    out: Annotated[str, typer.Option(help="The file to write, .html; one that is there is replaced.")],
    state: Annotated[str, typer.Option(help='As in a link, such as "tau=0.6&gate=0.9".')] = "",
    as_json: _Json = False,
) -> int:
    """Write a page as one HTML file that needs no server.

    \b
    Examples:
      leakviz export fingerprint --out page.html
      leakviz export purity --state "first=flchain__lr__honest&delta=0.1" --out purity.html

    A state that there is not is moved to the nearest one, which stderr says, and the page is written; data of your own,
    such as first=own, only the app has, and nothing is written.

    Exit status: 0 done, 3 unusable, 4 an error, 130 stopped.
    """
    return _child(export_command(page, out, state, as_json=as_json))


class _InOrder(typer.core.TyperCommand):
    """A command that knows behind which argument an option stood."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note the order, and read as usual."""
        ctx.meta[_ORDER] = list(args)
        return super().parse_args(ctx, args)


def options_behind(
    args: Sequence[str], names: Collection[str]
) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Tell which options of a command line are for one file, and which are for all.

    Parameters
    ----------
    args : sequence of str
        Of a command all of whose options take a value.
    names : collection of str
        Of the options that are asked about, with ``_``.

    Returns
    -------
    list of dict
        For each argument, the options between it and the next: they are for this file.
    dict
        Those that stand before all arguments, behind the last one, or behind a page: they are for all files.

    Examples
    --------
    >>> options_behind(["a.csv", "--y", "died", "b.csv", "--y=dead", "purity", "--p", "risk"], ["p", "y"])
    ([{'y': 'died'}, {'y': 'dead'}, {}], {'p': 'risk'})
    """
    behind: list[dict[str, str]] = []
    common: dict[str, str] = {}
    into, words = common, iter(args)
    for word in words:
        if word == "--":
            behind += [{} for _ in words]
        elif not word.startswith("--"):
            behind.append({})
            into = common if _is_page(word) else behind[-1]
        else:
            option, equals, value = word.partition("=")
            value = value if equals else next(words, "")
            name = option[2:].replace("-", "_")
            if name in names:
                into[name] = value
    if behind:
        common |= behind[-1]
        behind[-1] = {}
    return behind, common


def _is_page(word: str) -> bool:
    """Tell whether an argument of a report is a page or a link, and no file."""
    page = re.match(rf"({'|'.join((*PAGES, 'lesson', 'embeddings'))})(:|$)", word)
    return bool(page) or ("?" in word and not Path(word).is_file())


@app.command(cls=_InOrder)
def report(
    ctx: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="Pages with their states, such as purity:first=flchain__lr__honest, or links that were copied; and files of "
            "your own: predictions, features (.npz, .npy, .nc), a battery (.nc), or a table with sources (--label, --source). A "
            "state calls your file own. Of several files, each takes the options right behind it; those at the end are for all."
        ),
    ] = None,
    out: Annotated[str | None, typer.Option(help="Write HTML.")] = None,
    pdf: Annotated[str | None, typer.Option(help="Write PDF, A4.")] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", help="Write the report as data, for machines and --from.")
    ] = None,
    again: Annotated[str | None, typer.Option("--from", help="Make the report of a JSON file again.")] = None,
    own: Annotated[
        list[str] | None, typer.Option("--file", help="With --from: the file that the report was made from.")
    ] = None,
    title: Annotated[str, typer.Option(help="Of the report.")] = "",
    author: Annotated[str, typer.Option(help="Of the report.")] = "",
    notes: Annotated[str, typer.Option(help="Your words on the whole.")] = "",
    note: Annotated[
        list[str] | None, typer.Option(help="Your words on a section: its number, a colon, the words.")
    ] = None,
    date: Annotated[str, typer.Option(help="Such as 2026-01-31; by default today.")] = "",
    p: _P = None,
    y: _Y = None,
    positive: _Positive = None,
    scale: _Scale = None,
    missing: _Missing = None,
    fold: _Fold = None,
    delimiter: _Delimiter = None,
    encoding: _Encoding = None,
    sheet: _Sheet = None,
    label: Annotated[
        str | None, typer.Option(help="Column of the label of a table with sources, as in leakviz lodo.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Column that says where a row is from.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Feature columns of such a table, with commas between.")
    ] = None,
    groups: Annotated[str | None, typer.Option(help="Column that says which rows belong together.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Classifier for such a table, by default logistic.")
    ] = None,
    fit: _Fit = None,
    id_test: _IdTest = None,
    ood_test: _OodTest = None,
    fit_labels: _FitLabels = None,
    id_test_labels: _IdTestLabels = None,
    ood_class: Annotated[
        str | None, typer.Option(help="Class that the OOD rows were designated from; several with commas.")
    ] = None,
    shrinkage: Annotated[str | None, _SHRINKAGE] = None,
    k: Annotated[str | None, _K] = None,
    overlap: Annotated[str | None, _OVERLAP] = None,
    regime: Annotated[str | None, _REGIME] = None,
) -> int:
    """Write a report of pages, or of your own file: HTML, PDF, JSON. Exit status: 0 done, 3 unusable, 4 an error, 130 stopped.

    Results first, then figures, notes, limits that apply, parameters, hashes, versions, this command and BibTeX.

    leakviz report preds.csv --y died --positive yes --out report.html --pdf report.pdf

    leakviz report table.csv --label died --source hospital --pdf sources.pdf

    leakviz report purity:first=flchain__lr__honest fingerprint:tau=0.6 --out report.html --json report.json

    leakviz report --from report.json --pdf report.pdf
    """
    reading = {
        "p": p,
        "y": y,
        "positive": positive,
        "scale": scale,
        "missing": missing,
        "fold": fold,
        "delimiter": delimiter,
        "encoding": encoding,
        "sheet": sheet,
        "label": label,
        "source": source,
        "features": features,
        "groups": groups,
        "model": model,
        "fit": fit,
        "id_test": id_test,
        "ood_test": ood_test,
        "fit_labels": fit_labels,
        "id_test_labels": id_test_labels,
        "ood_class": ood_class,
        "shrinkage": shrinkage,
        "k": k,
        "overlap": overlap,
        "regime": regime,
    }
    each, common = options_behind(ctx.meta[_ORDER], reading)
    asked = {
        "title": title,
        "author": author,
        "notes": notes,
        "note": note or [],
        "date": date,
        "from": again or "",
        "options": common,
        "each": each,
    }
    command = report_command(what or [], asked, own or [], out=out, pdf=pdf, json_file=json_file)
    if sys.stderr.isatty():  # the app takes seconds to come; its bars are written over this
        typer.echo("starting ...\r", nl=False, err=True)
    return _child(command)


def report_command(
    what: Sequence[str],
    asked: dict[str, Any],
    own: Sequence[str] = (),
    *,
    out: str | None = None,
    pdf: str | None = None,
    json_file: str | None = None,
) -> list[str]:
    """Return the command that `report` runs.

    Parameters
    ----------
    what : sequence of str
        Sections and files of the user's own.
    asked : dict
        ``title``, ``author``, ``notes``, ``note``, ``date``, ``from``, ``options`` of all files, and in ``each`` those
        of each of `what` alone.
    own : sequence of str
        The files of a report that is made again.
    out, pdf, json_file : str, optional
        The files to write.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        Where nothing is asked for, a file is not there or cannot be written, or Panel or the app is not there.

    Examples
    --------
    >>> report_command(["purity"], {"from": ""}, pdf="report.pdf")[1:3]
    ['-m', 'dashboards.report_command']
    """
    sections = [one for one in what if _is_page(one)]
    files = [one for one in what if not _is_page(one)]
    alone = [
        given
        for one, given in zip(what, asked.get("each") or [{}] * len(what), strict=True)
        if not _is_page(one)
    ]
    targets = {"out": (out, (".html", ".htm")), "pdf": (pdf, (".pdf",)), "json": (json_file, (".json",))}
    if not any(path for path, _ in targets.values()):
        raise InputError("say what to write: --out report.html, --pdf report.pdf or --json report.json.")
    if asked["from"] and what:
        raise InputError(
            f"--from makes the sections that its report has; {what[0]!r} cannot be added. Its file is given with --file."
        )
    if own and not asked["from"]:
        raise InputError("--file goes with --from; without it the file is named without an option.")
    if not asked["from"] and not what:
        raise InputError(
            f"name the pages of the report ({', '.join(PAGES)}), such as purity:first=flchain__lr__honest, or your own file."
        )
    for file in (*files, *own, *([asked["from"]] if asked["from"] else [])):
        if not Path(file).is_file():
            pages = "" if asked["from"] else f" If a page is meant: there are {', '.join(PAGES)}."
            raise InputError(f"there is no file {file!r}. Check the path and the working directory.{pages}")
    whole = {
        name: "" if path is None else _target(path, f"--{name}", endings)
        for name, (path, endings) in targets.items()
    }
    if len({path for path in whole.values() if path}) < sum(map(bool, whole.values())):
        raise InputError("--out, --pdf and --json must be different files.")
    _check_app()
    for package in (*(["matplotlib"] if out or pdf else []), *(["pypdf"] if pdf else [])):
        if importlib.util.find_spec(package) is None:
            raise InputError(
                f'this report needs {package}, which is not installed: pip install "leakviz[figures]".'
            )
    given = [str(Path(file).resolve()) for file in (*files, *own)]
    start = {"from": ""} if not asked["from"] else {"from": str(Path(asked["from"]).resolve())}
    each = {"each": [*alone, *({} for _ in own)]}
    question = json.dumps({**asked, **start, **whole, **each, "sections": sections, "files": given})
    return [sys.executable, "-m", "dashboards.report_command", question]


def export_command(page: str, out: str, state: str = "", *, as_json: bool = False) -> list[str]:
    """Return the command that `export` runs.

    Parameters
    ----------
    page : str
        One of `PAGES`, or ``lesson``.
    out : str
        The file to write.
    state : str
        As in a link.
    as_json : bool
        Whether JSON is written instead of words.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        Where there is no such page, the file cannot be written, or Panel or the app is not there.

    Examples
    --------
    >>> export_command("purity", "page.html", "delta=0.1")[1:4]
    ['-m', 'dashboards.page_file', 'purity']
    """
    if page in NOT_EXPORTED:
        raise InputError(
            f"{page} has nothing to drag without the app: {NOT_EXPORTED[page]}. Files of your own go into a report: leakviz "
            "report FILE --out report.html."
        )
    if page not in (*PAGES, "lesson"):
        raise InputError(f"there is no page {page!r} to export; there are {', '.join(PAGES)} and lesson.")
    target = _target(out, "--out", (".html", ".htm"))
    _check_app()
    command = [sys.executable, "-m", "dashboards.page_file", page, "--out", target]
    return [*command, f"--state={state}", *(["--json"] if as_json else [])]


def _child(command: list[str]) -> int:
    """Run a command that writes files, and return its status; it writes nothing where it is stopped."""
    # In a group of its own: Ctrl-C comes here, and the child is told to stop and to tidy up.
    child = subprocess.Popen(command, cwd=ROOT, process_group=0)
    try:
        status = child.wait()
    except KeyboardInterrupt:
        child.terminate()
        if child.wait() == 0:  # it was done already
            return 0
        return STOPPED
    return _status_of(status)


def _status_of(child: int) -> int:
    return BROKEN if child == 1 else child  # what Python ends with after a traceback


def _target(path: str, option: str, endings: Sequence[str]) -> str:
    """Return where a file is to be written, whole, or say why it cannot be."""
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise InputError(f"{option} must end in {endings[0]}, got {path!r}.")
    if not target.parent.is_dir():
        raise InputError(f"{option}: there is no folder {str(target.parent)!r}; create it first.")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(f"{option}: {path!r} cannot be written; choose another one.")
    return str(target.resolve())


def serve_command(file: str | None, port: int) -> list[str]:
    """Return the command that `serve` runs.

    Parameters
    ----------
    file : str or None
        A file of predictions to open.
    port : int

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        Where the file, Panel or the app is not there.

    Examples
    --------
    >>> serve_command(None, 5010)[1:]
    ['-m', 'dashboards.server', '--port', '5010']
    """
    _check_app()
    command = [sys.executable, "-m", "dashboards.server", "--port", str(port)]
    if file is None:
        return command
    if not Path(file).is_file():
        raise InputError(f"there is no file {file!r}. Check the path and the working directory.")
    return [*command, "--file", str(Path(file).resolve())]


def _check_app() -> None:
    page = ROOT / "app.py"
    if not page.is_file():
        raise InputError(f"there is no app at {page}. Run leakviz from a checkout of the repository.")
    if importlib.util.find_spec("panel") is None:
        raise InputError("the app needs Panel, which is not installed: pip install panel.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    sys.exit(_status(lambda: typer.main.get_command(app).main(arguments, "leakviz", standalone_mode=False)))


def _status(run: Callable[[], Any]) -> int:
    """Run, and turn whatever goes wrong into a message on stderr and a status that is no verdict."""
    _stop.loaded()
    try:
        status = int(run() or 0)
        if status == STOPPED:  # by a command, or by Typer for one
            typer.echo(_stop.WORDS, err=True, nl=False)
        return status
    except InputError as error:
        return unusable(error)
    except TyperException as error:
        show = getattr(error, "show", None)
        if show is not None:
            show()
        return UNUSABLE
    except BrokenPipeError:
        return BROKEN
    except Exception:
        traceback.print_exc()
        return BROKEN


def unusable(error: InputError, *, answers: bool = True) -> int:
    """Say on stderr why an input cannot be used, and return the status for it; the processes that are started do so, too.

    Without `answers` nothing on the command line says how the file is read, and no option is named.

    Examples
    --------
    >>> unusable(InputError("there is nothing to audit."))
    3
    """
    typer.echo(f"leakviz: {re.sub(r'^c_max ', '--ceiling ', str(error))}", err=True)
    if answers and re.search(rf"\b({_ANSWERS})='", str(error)):
        typer.echo(
            "On the command line an answer such as name='value' is --name value, with - for _.", err=True
        )
    return UNUSABLE


def _read(file: str, **options: Any) -> Predictions:
    with bar(f"reading {Path(file).name}", unit="B", unit_scale=True) as progress:
        return read_predictions(file, progress=progress, **options)


def _reference(file: str, predictions: Predictions, options: dict[str, Any]) -> Any:
    """Read the honest predictions and refuse them where they are not for the same rows."""
    honest = _read(file, **options)
    if honest.n != predictions.n:
        raise InputError(
            f"{honest.name!r} has {honest.n:,} rows and {predictions.name!r} has {predictions.n:,}. The "
            "reference must hold the same rows in the same order."
        )
    different = honest.y != predictions.y
    if different.any():
        raise InputError(
            f"y differs between {predictions.name!r} and the reference {honest.name!r} in "
            f"{int(different.sum()):,} of {honest.n:,} rows, first row {int(different.argmax()) + 1:,}. The "
            "reference must hold the same rows in the same order."
        )
    return honest.p


def _as_words(predictions: Predictions, result: BlindTest) -> str:
    answer, numbers, caveats = result.explain_parts()

    def listed(sentences: Sequence[str], mark: str = "- ") -> list[str]:
        return [
            textwrap.fill(sentence, 100, initial_indent=f"  {mark}", subsequent_indent=" " * (2 + len(mark)))
            for sentence in sentences
        ]

    return "\n".join(
        [
            *_first_lines(predictions, result),
            "",
            textwrap.fill(answer, 100),
            "",
            *listed(numbers, ""),
            *(["", "What this rests on, and does not say:", *listed(caveats)] if caveats else []),
            "",
            f"How the file was read ({predictions.n:,} rows):",
            *listed(predictions.decided),
        ]
    )


def _first_lines(predictions: Predictions, result: BlindTest) -> list[str]:
    """Say whose verdict it is, and how strong; one label against several is said at once."""
    against = f" ({predictions.against})" if predictions.against else ""
    return textwrap.wrap(f"{predictions.name}{against}: {result.headline}", 100, break_long_words=False)


def _as_json(predictions: Predictions, result: BlindTest) -> str:
    answer = {
        "file": predictions.name,
        "n": predictions.n,
        "dropped": predictions.dropped,
        "columns": predictions.columns,
        "decided": predictions.decided,
        "content_hash": predictions.content_hash,
        "event": predictions.event,
        "no_event": predictions.no_event,
        "verdict": result.verdict,
        "headline": result.headline,
        "strength": result.strength,
        "needed_risk": result.needed_risk,
        "decisions": result.decisions,
        "blind_test": json.loads(result.to_json()),
    }
    return json.dumps(answer, indent=2, ensure_ascii=False)


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds must be whole numbers with commas between, such as 0,1,2, got {text!r}.")
    return [int(part) for part in parts]


def _audit_words(embeddings: Embeddings, found: xr.Dataset, out: str | None) -> str:
    from leakviz.audit import explain, headline

    names = {
        "oracle LDA": "oracle_lda",
        "Mahalanobis": "maha",
        "kNN": "knn",
        "Mahalanobis, class excluded": "maha_excluded",
        "kNN, class excluded": "knn_excluded",
    }
    lines = [f"{embeddings.name}: {headline(found)}", ""]
    lines += ["\n\n".join(textwrap.fill(part, 100) for part in explain(found).split("\n\n")), ""]
    lines.append(f"{'AUROC':<28} {'mean':>6}  widest 95 % interval  by seed")
    for shown, variable in names.items():
        if variable in found:
            low, high = float(found[f"{variable}_low"].min()), float(found[f"{variable}_high"].max())
            seeds = " ".join(f"{value:.3f}" for value in found[variable].values)
            lines.append(
                f"{shown:<28} {float(found[variable].mean()):>6.3f}  {low:.3f} to {high:.3f}        {seeds}"
            )
    rows = ", ".join(
        f"{getattr(embeddings, role).shape[0]:,} {role}" for role in ("fit", "id_test", "ood_test")
    )
    lines += ["", f"How the file was read ({rows} rows of {embeddings.fit.shape[1]:,} features):"]
    lines += [f"- {sentence}" for sentence in embeddings.decided]
    if out is not None:
        lines += ["", f"Saved as a battery: {out}"]
    return "\n".join(lines)


def _audit_json(embeddings: Embeddings, found: xr.Dataset) -> str:
    from leakviz.audit import explain, headline

    per_seed = {str(name): found[name].values.tolist() for name in found if found[name].dims == ("seed",)}
    single = {str(name): found[name].item() for name in found if found[name].dims == ()}
    answer = {
        "file": embeddings.name,
        "arrays": embeddings.arrays,
        "decided": embeddings.decided,
        "content_hash": embeddings.content_hash,
        "verdict": found.attrs["verdict"],
        "headline": headline(found),
        "words": explain(found),
        "seeds": found["seed"].values.tolist(),
        **per_seed,
        **single,
        "facts": dict(found.attrs),
    }
    return json.dumps(answer, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    main()
