"""Make the results in ``data/lodo`` anew from the data beside them: ``python -m leakviz.lodo.build``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import xarray as xr

from leakviz.errors import InputError
from leakviz.lodo.ablation import ablate_shortcuts
from leakviz.lodo.cases import (
    CASES,
    GIVEN,
    given_scores,
    load_lodo_data,
    lodo_cases,
    result_path,
    save_lodo,
    source_hash,
)
from leakviz.lodo.compare import lodo_from_scores
from leakviz.lodo.fits import MODELS
from leakviz.lodo.protocol import lodo
from leakviz.lodo.retention import retention
from leakviz.paths import data_dir

SEEDS = tuple(range(10))
CONTROLS = 20
FEWER_SEEDS = tuple(range(5))
FEWER_CONTROLS = 10
"""For models that take a hundred times as long to fit."""


_NOT_RUN = (
    "The two controls cannot be run here: the features behind these scores do not ship. The script that the scores are "
    "from reports a gap of 0.000 \N{PLUS-MINUS SIGN} 0.002 with sources shuffled within class, and none with noise features."
)


def build(names: Sequence[str] = (), *, folder: Path | None = None, progress: bool = False) -> list[Path]:
    """Compute the results that ship, and write them.

    Parameters
    ----------
    names : sequence of str
        Of `leakviz.lodo_cases`; by default all.
    folder : pathlib.Path, optional
        Where to write; by default the folder that `leakviz.load_lodo` reads.
    progress : bool, default False
        Show a bar on stderr.

    Returns
    -------
    list of pathlib.Path
        The files. All results together take some minutes.

    Raises
    ------
    InputError
        If there is no such result.

    Examples
    --------
    >>> build(["penguins__tfidf"])
    Traceback (most recent call last):
    leakviz.errors.InputError: names: no result is called 'penguins__tfidf'; see lodo_cases
    """
    cases = lodo_cases().set_index("name")
    unknown = [name for name in names if name not in cases.index]
    if unknown:
        raise InputError(f"names: no result is called {unknown[0]!r}; see lodo_cases")
    into = data_dir() / "lodo" if folder is None else folder
    written = []
    for name in names or list(cases.index):
        case, model = (str(cases.loc[name, column]) for column in ("case", "model"))
        kinds: dict[str, Callable[[str, str, bool], xr.Dataset]] = {"lodo": _lodo}
        if model not in GIVEN and cases.loc[name, "retention"]:
            kinds["retention"] = _retention
        if cases.loc[name, "ablation"]:
            kinds["ablation"] = _ablation
        for kind, compute in kinds.items():
            path = result_path(into, name, kind)
            save_lodo(_signed(compute(case, model, progress), case, model), path)
            written.append(path)
    return written


def _lodo(case: str, model: str, progress: bool) -> xr.Dataset:
    if model in GIVEN:
        cv, left_out, y, source = given_scores(case, model)
        return lodo_from_scores(cv, left_out, y, source)
    table = load_lodo_data(case)
    quick = model.startswith("logistic")
    return lodo(
        table.X,
        table.y,
        table.source,
        model=MODELS[model](),
        seeds=SEEDS if quick else FEWER_SEEDS,
        controls=CONTROLS if quick else FEWER_CONTROLS,
        progress=progress,
    )


def _retention(case: str, model: str, progress: bool) -> xr.Dataset:
    table = load_lodo_data(case)
    return retention(
        table.X,
        table.y,
        table.source,
        features=table.features,
        bootstrap=1000,
        null_draws=100,
        progress=progress,
    )


def _ablation(case: str, model: str, progress: bool) -> xr.Dataset:
    table = load_lodo_data(case)
    return ablate_shortcuts(
        table.X, table.y, table.source, features=table.features, draws=20, progress=progress
    )


def _signed(result: xr.Dataset, case: str, model: str) -> xr.Dataset:
    about = CASES[case]
    return result.assign_attrs(
        title=about.title,
        license=about.license,
        provenance=about.source,
        created_by=f"leakviz {version('leakviz')} with scikit-learn {version('scikit-learn')}",
        source_hash=source_hash(case, model),
        **(
            {"model": f"logistic regression on {model} features, scores as they came", "controls": _NOT_RUN}
            if model in GIVEN
            else {}
        ),
    )


if __name__ == "__main__":
    for file in build(sys.argv[1:], progress=True):
        print(file)
