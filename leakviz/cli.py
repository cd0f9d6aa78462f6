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

``leakviz lodo`` ends with 0 when it has an answer (a gap is no verdict), with 3 or 4 as above, and with 130 when
it is stopped with Ctrl-C; so does ``leakviz export``.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from tqdm import tqdm
from typer.exceptions import TyperException

from leakviz.battery.commands import app as battery_commands
from leakviz.errors import InputError
from leakviz.lodo.command import STOPPED, lodo_command
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

UNUSABLE = 3
BROKEN = 4
_ANSWERS = (
    "p|y|positive|scale|missing|fold|delimiter|encoding|sheet|label|source|features|groups|"
    "fit|id_test|ood_test|fit_labels|id_test_labels|role_column|label_column|overlap|regime"
)
_LARGE = 20_000_000  # bytes from which reading shows its progress

app = typer.Typer(
    name="leakviz",
    help="Find, understand and show leakage in machine-learning results.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(battery_commands, name="battery")


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, Feather, JSON lines or Excel.")],
    p: Annotated[str | None, typer.Option("--p", help="Column of the predicted risk.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="Column of the outcome.")] = None,
    positive: Annotated[str | None, typer.Option(help="Label of y that is the event.")] = None,
    scale: Annotated[str | None, typer.Option(help="probability, percent or logit.")] = None,
    missing: Annotated[str | None, typer.Option(help="refuse or drop rows with a missing value.")] = None,
    fold: Annotated[str | None, typer.Option(help="Column of the cross-validation fold.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of a text file: one character.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file, such as cp1252.")] = None,
    sheet: Annotated[str | None, typer.Option(help="Of an Excel file.")] = None,
    delta: Annotated[str, typer.Option(help="Impurity that the head may have.")] = "0.05",
    k_min: Annotated[int, typer.Option(help="Smallest head that counts.")] = 50,
    ceiling: Annotated[str | None, typer.Option(help="C* ceiling: the largest credible C-statistic.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="File with honest predictions for the same rows.")
    ] = None,
    max_bytes: Annotated[int, typer.Option(help="Limit for a file and what it unpacks to.")] = MAX_BYTES,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of words.")] = False,
) -> int:
    """Say whether predictions can be real. Exit status: 0 not shown, 1 leaky, 2 undetermined, 3 unusable."""
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
    fit: Annotated[str | None, typer.Option(help="Array with the features of the fit rows.")] = None,
    id_test: Annotated[str | None, typer.Option(help="Array with those of the ID test rows.")] = None,
    ood_test: Annotated[str | None, typer.Option(help="Array with those of the OOD rows.")] = None,
    fit_labels: Annotated[str | None, typer.Option(help="Array with the classes of the fit rows.")] = None,
    id_test_labels: Annotated[
        str | None, typer.Option(help="Array with the classes of the ID test rows.")
    ] = None,
    ood_class: Annotated[
        list[str] | None, typer.Option(help="Class that the OOD rows were designated from. May be repeated.")
    ] = None,
    role_column: Annotated[str | None, typer.Option(help="Of Parquet: what each row is for.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Of Parquet: the classes.")] = None,
    shrinkage: Annotated[
        str, typer.Option(help="alpha: ledoit-wolf, or a number from 0 to 1.")
    ] = "ledoit-wolf",
    k: Annotated[int, typer.Option("--k", help="Which neighbour the kNN detector measures.")] = 50,
    seeds: Annotated[str, typer.Option(help="Of the probe's splits, with commas between.")] = "0,1,2",
    gate: Annotated[float, typer.Option(help="Oracle gate of the rule.")] = 0.95,
    tau: Annotated[float, typer.Option(help="Cut on the best detector.")] = 0.65,
    overlap: Annotated[str, typer.Option(help="refuse, or report, test rows that are fit rows.")] = "refuse",
    out: Annotated[str | None, typer.Option(help="Save a battery (.nc) that the app opens.")] = None,
    name: Annotated[str, typer.Option(help="What the battery calls the split.")] = "split",
    regime: Annotated[str | None, typer.Option(help="For --out without labels: leak or clean-novel.")] = None,
    max_bytes: Annotated[
        int | None, typer.Option(help="Limit for the file and what it unpacks to.", show_default="4000000000")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of words.")] = False,
) -> int:
    """Look for the leak fingerprint in features. Exit status: 0 not shown, 1 fires, 2 undetermined, 3 unusable."""
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
    with tqdm(desc="auditing", unit="", disable=None, delay=1, leave=False, bar_format="{l_bar}{bar}") as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

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
    """Start the app on this machine and wait until it ends."""
    return subprocess.call(serve_command(file, port), cwd=ROOT)


@app.command()
def export(
    page: Annotated[str, typer.Argument(help=f"One of {', '.join(PAGES)}; lesson is another name of learn.")],
    out: Annotated[str, typer.Option(help="The file to write, .html; one that is there is replaced.")],
    state: Annotated[str, typer.Option(help='As in a link, such as "tau=0.6&gate=0.9".')] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of words.")] = False,
) -> int:
    """Write a page as one HTML file that needs no server. Exit status: 0 done, 3 unusable, 130 stopped."""
    # In a group of its own: Ctrl-C comes here, and the child is told to stop and to tidy up.
    child = subprocess.Popen(export_command(page, out, state, as_json=as_json), cwd=ROOT, process_group=0)
    try:
        return child.wait()
    except KeyboardInterrupt:
        child.terminate()
        if child.wait() == 0:  # it was done already
            return 0
        typer.echo("leakviz: stopped; nothing was written.", err=True)
        return STOPPED


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
    if page not in (*PAGES, "lesson"):
        raise InputError(f"there is no page {page!r} to export; there are {', '.join(PAGES)} and lesson.")
    target = Path(out)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out must end in .html, got {out!r}.")
    if not target.parent.is_dir():
        raise InputError(f"--out: there is no folder {str(target.parent)!r}; create it first.")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(f"--out: {out!r} cannot be written; choose another one.")
    _check_app()
    command = [sys.executable, "-m", "dashboards.page_file", page, "--out", str(target.resolve())]
    return [*command, f"--state={state}", *(["--json"] if as_json else [])]


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
    try:
        return int(run() or 0)
    except InputError as error:
        typer.echo(f"leakviz: {re.sub(r'^c_max ', '--ceiling ', str(error))}", err=True)
        if re.search(rf"\b({_ANSWERS})='", str(error)):
            typer.echo(
                "On the command line an answer such as name='value' is --name value, with - for _.", err=True
            )
        return UNUSABLE
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


def _read(file: str, **options: Any) -> Predictions:
    """Read a file, with a progress bar on stderr where it is large."""
    large = Path(file).is_file() and Path(file).stat().st_size >= _LARGE
    with tqdm(
        desc=f"reading {Path(file).name}", unit="B", unit_scale=True, disable=not large, leave=False
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

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
    return "\n".join(
        [
            f"{predictions.name}: {result.verdict}",
            "",
            textwrap.fill(result.explain(), 100),
            "",
            f"How the file was read ({predictions.n:,} rows):",
            *(f"- {sentence}" for sentence in predictions.decided),
        ]
    )


def _as_json(predictions: Predictions, result: BlindTest) -> str:
    answer = {
        "file": predictions.name,
        "n": predictions.n,
        "dropped": predictions.dropped,
        "columns": predictions.columns,
        "decided": predictions.decided,
        "content_hash": predictions.content_hash,
        "verdict": result.verdict,
        "blind_test": json.loads(result.to_json()),
    }
    return json.dumps(answer, indent=2, ensure_ascii=False)


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds must be whole numbers with commas between, such as 0,1,2, got {text!r}.")
    return [int(part) for part in parts]


def _audit_words(embeddings: Embeddings, found: xr.Dataset, out: str | None) -> str:
    from leakviz.audit import explain

    names = {
        "oracle LDA": "oracle_lda",
        "Mahalanobis": "maha",
        "kNN": "knn",
        "Mahalanobis, class excluded": "maha_excluded",
        "kNN, class excluded": "knn_excluded",
    }
    lines = [f"{embeddings.name}: {found.attrs['verdict']}", ""]
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
    from leakviz.audit import explain

    per_seed = {str(name): found[name].values.tolist() for name in found if found[name].dims == ("seed",)}
    single = {str(name): found[name].item() for name in found if found[name].dims == ()}
    answer = {
        "file": embeddings.name,
        "arrays": embeddings.arrays,
        "decided": embeddings.decided,
        "content_hash": embeddings.content_hash,
        "verdict": found.attrs["verdict"],
        "words": explain(found),
        "seeds": found["seed"].values.tolist(),
        **per_seed,
        **single,
        "facts": dict(found.attrs),
    }
    return json.dumps(answer, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    main()
