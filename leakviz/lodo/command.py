"""``leakviz lodo``: leave-one-dataset-out for a table that somebody brings.

Exit status: 0 done, whatever the gap is; 3 unusable input; 4 an error inside leakviz; 130 stopped with Ctrl-C.
Nothing is written unless everything is done, and a file is written whole or not at all.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
import xarray as xr
from tqdm import tqdm

from leakviz.errors import InputError
from leakviz.lodo.cases import check_target, result_path, save_lodo
from leakviz.lodo.fits import MODELS
from leakviz.lodo.protocol import lodo
from leakviz.lodo.retention import retention
from leakviz.lodo.table import SourceTable, read_sources
from leakviz.lodo.words import explain_lodo, source_table, summarise_lodo
from leakviz.predictions.sources import MAX_BYTES

STOPPED = 130
_LARGE = 20_000_000  # bytes from which reading shows its progress
_MOST_FEATURES = 20  # that the words list


def lodo_command(
    file: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, Feather, JSON lines or Excel.")],
    label: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
    source: Annotated[str | None, typer.Option(help="Column that says where a row is from.")] = None,
    positive: Annotated[str | None, typer.Option(help="Label that stands for 1.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Feature columns, with commas between; by default all numbers.")
    ] = None,
    groups: Annotated[str | None, typer.Option(help="Column that says which rows belong together.")] = None,
    missing: Annotated[str | None, typer.Option(help="refuse or drop rows with a missing value.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of a text file: one character.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file, such as cp1252.")] = None,
    sheet: Annotated[str | None, typer.Option(help="Of an Excel file.")] = None,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.")] = "logistic",
    folds: Annotated[int, typer.Option(help="Of the cross-validation.")] = 5,
    seeds: Annotated[str, typer.Option(help="Whole numbers, with commas between.")] = "0",
    controls: Annotated[int, typer.Option(help="Draws of each of the two controls; 0 for none.")] = 5,
    jobs: Annotated[int, typer.Option(help="Worker processes; -1 is one per core.")] = -1,
    with_retention: Annotated[
        bool, typer.Option("--retention", help="Say, too, which features carry a logistic regression.")
    ] = False,
    out: Annotated[str | None, typer.Option(help="Write the whole result to this .nc file.")] = None,
    max_bytes: Annotated[int, typer.Option(help="Limit for a file and what it unpacks to.")] = MAX_BYTES,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of words.")] = False,
) -> int:
    """Compare cross-validation with leaving out each source. Exit status: 0 done, 3 unusable, 130 stopped."""
    if model not in MODELS:
        raise InputError(f"--model must be one of {', '.join(MODELS)}, got {model!r}.")
    if jobs == 0:
        raise InputError("--jobs must not be 0; -1 is one per core.")
    runs = _seeds(seeds)
    target = None if out is None else check_target(out)
    try:
        table = _read(
            file,
            label=label,
            source=source,
            positive=positive,
            features=None if features is None else features.split(","),
            groups=groups,
            missing=missing,
            delimiter=delimiter,
            encoding=encoding,
            sheet=sheet,
            max_bytes=max_bytes,
        )
        shown = sys.stderr.isatty()
        result = lodo(
            table.X,
            table.y,
            table.source,
            model=MODELS[model](),
            folds=folds,
            seeds=runs,
            groups=table.groups,
            controls=controls,
            n_jobs=jobs,
            progress=shown,
        ).assign_attrs(title=table.name, source_hash=table.content_hash)
        kept = None
        if with_retention:
            kept = retention(
                table.X,
                table.y,
                table.source,
                features=table.features,
                groups=table.groups,
                n_jobs=jobs,
                progress=shown,
            ).assign_attrs(title=table.name, source_hash=table.content_hash)
    except KeyboardInterrupt:
        typer.echo("leakviz: stopped; nothing was written.", err=True)
        return STOPPED
    written = [] if target is None else _write(target, result, kept)
    write = _as_json if as_json else _as_words
    typer.echo(write(table, result, kept, written))
    return 0


def _read(file: str, **options: Any) -> SourceTable:
    """Read a file, with a progress bar on stderr where it is large."""
    large = Path(file).is_file() and Path(file).stat().st_size >= _LARGE
    with tqdm(
        desc=f"reading {Path(file).name}", unit="B", unit_scale=True, disable=not large, leave=False
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return read_sources(file, progress=progress, **options)


def _write(target: Path, result: xr.Dataset, kept: xr.Dataset | None) -> list[str]:
    save_lodo(result, target)
    written = [str(target)]
    if kept is not None:
        beside = result_path(target.parent, target.stem, "retention")
        save_lodo(kept, beside)
        written.append(str(beside))
    return written


def _as_words(table: SourceTable, result: xr.Dataset, kept: xr.Dataset | None, written: list[str]) -> str:
    lines = [f"{table.name}: {table.n:,} rows, {result.sizes['source']} sources", ""]
    lines += [textwrap.fill(sentence, 100) for sentence in explain_lodo(result)]
    lines += ["", "Within each source (AUROC; recall or specificity where it has one label):"]
    lines.append(_aligned(source_table(result)))
    if kept is not None:
        largest = np.argsort(-np.abs(kept.coefficient.values), kind="stable")
        n = min(largest.size, _MOST_FEATURES)
        lines += ["", f"Coefficients, and what is left of them without any one source ({n} largest):"]
        lines.append(_aligned(_feature_table(kept).iloc[largest[:n]]))
    lines += ["", f"How the file was read ({table.n:,} rows):"]
    lines += [f"- {sentence}" for sentence in table.decided]
    lines += [f"Saved: {name}" for name in written]
    return "\n".join(lines)


def _as_json(table: SourceTable, result: xr.Dataset, kept: xr.Dataset | None, written: list[str]) -> str:
    answer = {
        "file": table.name,
        "n": table.n,
        "dropped": table.dropped,
        "columns": table.columns,
        "features": table.features,
        "decided": table.decided,
        "content_hash": table.content_hash,
        "words": explain_lodo(result),
        "lodo": summarise_lodo(result),
        "written": written,
    }
    if kept is not None:
        rows = _feature_table(kept)
        answer["retention"] = rows.astype(object).where(rows.notna(), None).to_dict(orient="records")
    return json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False)


def _feature_table(kept: xr.Dataset) -> pd.DataFrame:
    names = ["coefficient", "coefficient_low", "coefficient_high", "retention", "null_median"]
    columns = {name: kept[name].values for name in [*names, "argmin_source", "undefined"]}
    return pd.DataFrame({"feature": kept.feature.values, **columns})


def _aligned(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, na_rep="undefined", float_format=lambda value: f"{value:.3f}")


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds must be whole numbers with commas between, such as 0,1,2, got {text!r}.")
    return [int(part) for part in parts]
