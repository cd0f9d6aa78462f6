"""``leakviz lodo``: leave-one-dataset-out for a table that somebody brings.

Exit status: 0 done, whatever the gap is; 3 unusable input; 4 an error inside leakviz; 130 stopped with Ctrl-C.
Nothing is written unless everything is done, and files are written whole or not at all.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
import xarray as xr

from leakviz._progress import bar
from leakviz._stop import STOPPED
from leakviz.errors import InputError
from leakviz.lodo.ablation import ablate_shortcuts
from leakviz.lodo.cases import check_target, result_path, save_lodo
from leakviz.lodo.fits import MODELS, class_weight_of
from leakviz.lodo.protocol import lodo
from leakviz.lodo.retention import retention
from leakviz.lodo.table import SourceTable, read_sources
from leakviz.lodo.words import (
    explain_ablation,
    explain_lodo,
    level_of,
    retention_sentence,
    source_table,
    summarise_lodo,
    taken_away,
    undivided,
)
from leakviz.predictions.sources import MAX_BYTES, quoted

_MOST_FEATURES = 20  # that the words list
_LONGEST_NAME = 40  # characters of a source's name in a table
_MOST_COLUMNS = 40  # that the words name


def lodo_command(
    file: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, Feather, JSON lines or Excel.")],
    label: Annotated[
        str | None, typer.Option(help="Column of the label; by default one called label or y.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Column that says where a row is from; by default one called source.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Label that stands for 1; 0 and 1, false and true need none.")
    ] = None,
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
        bool,
        typer.Option(
            "--retention", help="Say, too, what is left of each coefficient of a logistic regression."
        ),
    ] = False,
    with_ablation: Annotated[
        bool,
        typer.Option(
            "--ablation", help="Say, too, what happens without the features that hang on one source."
        ),
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(help="Write the whole result to this .nc file; retention and ablation go beside it."),
    ] = None,
    max_bytes: Annotated[int, typer.Option(help="Limit for a file and what it unpacks to.")] = MAX_BYTES,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of words.")] = False,
) -> int:
    """Compare cross-validation with leaving out each source.

    \b
    Examples:
      leakviz lodo wards.csv --label died --positive yes --source hospital
      leakviz lodo wards.csv --source hospital --groups patient_id --missing drop
      leakviz lodo wards.parquet --retention --ablation --out result.nc --json

    Exit status: 0 done, whatever the gap is; 3 unusable input; 4 an error inside leakviz; 130 stopped.
    """
    if model not in MODELS:
        raise InputError(f"--model must be one of {', '.join(MODELS)}, got {model!r}.")
    if jobs == 0:
        raise InputError("--jobs must not be 0; -1 is one per core.")
    runs = _seeds(seeds)
    target = None if out is None else _target(out)
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
        given: dict[str, Any] = {"groups": table.groups, "n_jobs": jobs, "progress": sys.stderr.isatty()}
        beside = {**given, "features": table.features, "class_weight": class_weight_of(model)}
        rows = (table.X, table.y, table.source)
        found = {
            "lodo": lodo(*rows, model=MODELS[model](), folds=folds, seeds=runs, controls=controls, **given)
        }
        undone: dict[str, str] = {}
        asked = {
            "retention": (with_retention, lambda: retention(*rows, **beside)),
            "ablation": (with_ablation, lambda: ablate_shortcuts(*rows, folds=folds, **beside)),
        }
        for kind, (wanted, compute) in asked.items():
            if wanted:
                try:
                    found[kind] = compute()
                except InputError as error:  # what the sources allow stands, and what they do not is said
                    undone[kind] = str(error)
        about = {
            "title": table.name,
            "source_hash": table.content_hash,
            "label_1": table.positive,
            "label_0": table.negative,
        }
        found = {kind: result.assign_attrs(about) for kind, result in found.items()}
        found["lodo"] = found["lodo"].assign_attrs(table.named_columns())
        write = _as_json if as_json else _as_words
        written = [] if target is None else _write(target, found)
        typer.echo(write(table, found, undone, written))
    except KeyboardInterrupt:
        return STOPPED
    return 0


def _read(file: str, **options: Any) -> SourceTable:
    with bar(f"reading {Path(file).name}", unit="B", unit_scale=True) as progress:
        return read_sources(file, progress=progress, **options)


def _target(out: str) -> Path:
    try:
        return check_target(out)
    except InputError as error:
        raise InputError(str(error).replace("path", "--out", 1)) from error


def _write(target: Path, found: dict[str, xr.Dataset]) -> list[str]:
    """Write all files in a folder beside their places, then move them: none is there before all are done."""
    places = {
        kind: target if kind == "lodo" else result_path(target.parent, target.stem, kind) for kind in found
    }
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".leakviz-") as folder:
            for kind, result in found.items():
                save_lodo(result, Path(folder) / places[kind].name)
            for place in places.values():
                os.replace(Path(folder) / place.name, place)
    except OSError as error:
        raise InputError(f"--out: {str(target)!r} cannot be written: {error.strerror or error}.") from error
    return [str(place) for place in places.values()]


def _used(table: SourceTable) -> list[str]:
    """Say which columns have which part, and which label is which number."""
    part = {role: quoted(column) for role, column in table.columns.items()}
    ones = int(table.y.sum())
    count = len(table.features)
    return [
        f"Label: column {part['label']}; 1 is {quoted(table.positive)} ({ones:,} rows), 0 is "
        f"{quoted(table.negative)} ({table.n - ones:,} rows).",
        f"Source: column {part['source']}. Groups: {'column ' + part['groups'] if 'groups' in part else 'none'}.",
        f"Features: {count} column{'s' * (count != 1)}: {_listed(table.features)}.",
    ]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_COLUMNS} more" if len(names) > _MOST_COLUMNS else ""
    return (", ".join(map(quoted, names[:_MOST_COLUMNS])) or "none") + more


def _as_words(
    table: SourceTable, found: dict[str, xr.Dataset], undone: dict[str, str], written: list[str]
) -> str:
    result = found["lodo"]
    lines = [f"{table.name}: {table.n:,} rows, {result.sizes['source']} sources"]
    lines += [_filled(sentence) for sentence in _used(table)]
    lines += [f"Model: {result.attrs['model']}", ""]
    lines += [_filled(sentence) for sentence in explain_lodo(result)]
    lines += ["", "Within each source (AUROC; recall or specificity where it has one label):"]
    lines.append(_aligned(_short_names(source_table(result))))
    lines += [_filled(sentence) for sentence in _terms(result)]
    if "retention" in found:
        kept = found["retention"]
        largest = np.argsort(-np.abs(kept.coefficient.values), kind="stable")
        n = min(largest.size, _MOST_FEATURES)
        said = f"Coefficients of a {kept.attrs['model']}, and what is left of them without any one source ({n} largest):"
        lines += ["", _filled(said)]
        rows = _feature_table(kept).iloc[largest[:n]]
        short = {column: [_short(str(v)) for v in rows[column]] for column in ("feature", "argmin_source")}
        lines.append(_aligned(rows.assign(**short)))
        if why := kept.attrs.get("undefined"):
            lines.append(_filled(f"Intervals and the median with sources shuffled are not defined: {why}."))
    if "ablation" in found:
        lines += ["", "Without the features whose retention is low:"]
        lines += [_filled(sentence) for sentence in explain_ablation(found["ablation"])]
        lines.append("Taken away when a source is left out:")
        for name, taken in taken_away(found["ablation"]).items():
            lines.append(_filled(f"- {_short(name)}: {_listed(taken)}"))
    differs = [retention_sentence(result, found[kind]) for kind in ("retention", "ablation") if kind in found]
    lines += [_filled(said) for said in dict.fromkeys(differs) if said]
    for kind, why in undone.items():
        lines += ["", _filled(f"--{kind} cannot be answered: {why}.")]
    lines += ["", f"How the file was read ({table.n:,} rows):"]
    lines += [f"- {sentence}" for sentence in table.decided]
    lines += [f"Saved: {name}" for name in written]
    return "\n".join(lines)


def _as_json(
    table: SourceTable, found: dict[str, xr.Dataset], undone: dict[str, str], written: list[str]
) -> str:
    result = found["lodo"]
    answer = {
        "file": table.name,
        "n": table.n,
        "dropped": table.dropped,
        "columns": table.columns,
        "label_1": table.positive,
        "label_0": table.negative,
        "features": table.features,
        "decided": table.decided,
        "content_hash": table.content_hash,
        "words": explain_lodo(result),
        "lodo": summarise_lodo(result),
        "undone": undone,
        "written": written,
    }
    if "retention" in found:
        kept = found["retention"]
        rows = _feature_table(kept)
        answer["retention"] = rows.astype(object).where(rows.notna(), None).to_dict(orient="records")
        answer["retention_model"] = kept.attrs["model"]
        answer["retention_words"] = retention_sentence(result, kept)
        answer["retention_undefined"] = kept.attrs.get("undefined")
    if "ablation" in found:
        answer["ablation"] = summarise_lodo(found["ablation"])
        answer["ablation_taken_away"] = taken_away(found["ablation"])
        answer["ablation_words"] = explain_ablation(found["ablation"])
        answer["ablation_model"] = found["ablation"].attrs["model"]
    return json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False)


def _terms(result: xr.Dataset) -> list[str]:
    """Say what the columns of the table of sources are."""
    return [
        f"cv: cross-validation that {'leaves whole sources out here, too' if undivided(result) else 'mixes the sources'}.",
        *(
            ["same-source: rows held out of their source, by a model that saw its other rows."]
            if "same-source" in result.protocol.values
            else []
        ),
        f"lodo: by a model that saw no row of the source; lodo_low, lodo_high: its {level_of(result)} interval (DeLong; Wilson for "
        "recall and specificity), undefined where there are too few rows.",
    ]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _short_names(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(source=[_short(str(name)) for name in frame["source"]])


def _feature_table(kept: xr.Dataset) -> pd.DataFrame:
    names = ["coefficient", "coefficient_low", "coefficient_high", "retention", "null_median"]
    columns = {name: kept[name].values for name in [*names, "argmin_source", "undefined"]}
    return pd.DataFrame({"feature": kept.feature.values, **columns})


def _aligned(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, na_rep="undefined", float_format=lambda value: f"{value:.3f}")


def _filled(sentence: str) -> str:
    return textwrap.fill(sentence, 100)


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds must be whole numbers with commas between, such as 0,1,2, got {text!r}.")
    return [int(part) for part in parts]
