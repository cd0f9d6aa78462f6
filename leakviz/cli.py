"""The command line: ``leakviz check`` gives a verdict on a file, ``leakviz serve`` starts the app.

The exit status of ``check`` can be used by a script or a CI job:

== ===========================================================================
0  not shown: nothing in (p, y) shows a leak, which is not a proof of its absence
1  leaky
2  undetermined: the test cannot fire on these data
3  unusable input: the file, an option or an answer; the reason is on stderr
4  an error inside leakviz
== ===========================================================================
"""

from __future__ import annotations

import importlib.util
import json
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

from leakviz.errors import InputError
from leakviz.predictions import MAX_BYTES, Predictions, read_predictions

if TYPE_CHECKING:
    from leakviz.blind import BlindTest

ROOT = Path(__file__).resolve().parents[1]
STATUS = {"not shown": 0, "leaky": 1, "undetermined": 2}
"""The exit status of each verdict."""

UNUSABLE = 3
BROKEN = 4
_LARGE = 20_000_000  # bytes from which reading shows its progress

app = typer.Typer(
    name="leakviz",
    help="Find, understand and show leakage in machine-learning results.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
def serve(
    file: Annotated[str | None, typer.Option(help="Predictions to open.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 5006,
) -> int:
    """Start the app on this machine and wait until it ends."""
    return subprocess.call(serve_command(file, port), cwd=ROOT)


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
    page = ROOT / "app.py"
    if not page.is_file():
        raise InputError(f"there is no app at {page}. Run leakviz serve from a checkout of the repository.")
    if importlib.util.find_spec("panel") is None:
        raise InputError("the app needs Panel, which is not installed: pip install panel.")
    command = [sys.executable, "-m", "dashboards.server", "--port", str(port)]
    if file is None:
        return command
    if not Path(file).is_file():
        raise InputError(f"there is no file {file!r}. Check the path and the working directory.")
    return [*command, "--file", str(Path(file).resolve())]


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
        typer.echo(f"leakviz: {error}", err=True)
        if re.search(r"\b(p|y|positive|scale|missing|fold|delimiter|encoding|sheet)='", str(error)):
            typer.echo("On the command line an answer such as name='value' is --name value.", err=True)
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


if __name__ == "__main__":
    main()
