"""The measured figures of a computed battery, as text: what its README quotes is printed by this."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from leakviz._progress import Progress
from leakviz.battery.cached import fit_set, load_backbone, rows_of
from leakviz.battery.schema import COMPUTED, load_battery
from leakviz.errors import InputError
from leakviz.fingerprint import Rule, contrast, fired, score_battery, sweep_rule
from leakviz.paths import data_dir
from leakviz.statistics import auroc
from leakviz.whitening import sweep_shrinkage, whitening_spectrum

TAUS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85)
_TEACHING = (
    ("resnet-fashion", "small-digits", False, None),
    ("resnet-fashion", "Coat", True, None),
    ("resnet-fashion", "Sneaker", True, None),
    ("resnet-fashion", "Sneaker", False, None),
    ("resnet-fashion", "Coat", True, 150),
)
_STOPS = (0.0, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 1.0)


def describe_battery(
    battery: str | os.PathLike[str] = "computed", *, progress: Progress | None = None
) -> str:
    """Return what a computed battery shows, in Markdown.

    Parameters
    ----------
    battery : str or path, default "computed"
        The name, or the path of the ``.nc`` file; its backbones, and the battery
        in signature space, are looked for beside it.
    progress : callable, optional
        Called as ``progress(done, total)``, sections.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If the battery was not computed by leakviz.
    """
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in _sections(battery, progress))


def battery_facts(
    battery: str | os.PathLike[str] = "computed", *, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Return what `describe_battery` writes, for machines.

    Parameters
    ----------
    battery : str or path, default "computed"
        As `describe_battery` takes it.
    progress : callable, optional
        Called as ``progress(done, total)``, sections.

    Returns
    -------
    list of dict
        Of each section ``title``, ``text`` (a string, without the tables) and ``tables``, each a list of rows, a row a dict
        by the columns' headings, with the cells as they are printed.

    Raises
    ------
    InputError
        If the battery was not computed by leakviz.
    """
    return [_facts(title, text) for title, text in _sections(battery, progress)]


def _facts(title: str, text: str) -> dict[str, Any]:
    """Part a section into words and tables.

    Examples
    --------
    >>> _facts("tau", "Right decisions.\\n\\n" + _table(["settings", "0.6"], [["leak", "26/40"]]))
    {'title': 'tau', 'text': 'Right decisions.', 'tables': [[{'settings': 'leak', '0.6': '26/40'}]]}
    """
    parts = text.split("\n\n")
    tables = [part for part in parts if part.startswith("| ")]
    words = "\n\n".join(part for part in parts if part not in tables)
    return {"title": title, "text": words, "tables": [_rows(table) for table in tables]}


def _rows(table: str) -> list[dict[str, str]]:
    """Read what `_table` wrote."""
    header, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n"))
    return [dict(zip(header, line, strict=True)) for line in lines]


def _sections(battery: str | os.PathLike[str], progress: Progress | None) -> list[tuple[str, str]]:
    """Return the sections of the description: titles, and Markdown."""
    data = load_battery(battery)
    if "backbones" not in data.attrs:
        raise InputError("battery was not computed by leakviz battery build, so there is nothing to describe")
    names = list(json.loads(data.attrs["backbones"]))
    path = data_dir() / "battery" / COMPUTED["computed"] if battery == "computed" else Path(battery)
    beside = path.with_name(f"{path.stem}-signature.nc")
    files = [path, beside] if beside.is_file() else [path]
    signature = {"Signature space": lambda: _signature(load_battery(beside))} if beside in files else {}
    write: dict[str, Callable[[], str]] = {
        "Backbones": lambda: _backbones(battery, names),
        "The fingerprint": lambda: _fingerprint(data),
        "tau": lambda: _taus(data),
        "The exclusion contrast": lambda: _contrast(data),
        "Retraining": lambda: _retraining(data),
        "Exactly one half": lambda: _one_half(data),
        "Other detectors": lambda: _detectors(data),
        "Neighbourhood index": lambda: _neighbourhood(data),
        "Shrinkage": lambda: _shrinkage(battery, data, names),
        "The whitening budget": lambda: _budget(battery, data, names),
        **signature,
        "Content": lambda: _content(battery, names, files),
    }
    sections = []
    for title, text in write.items():
        sections.append((title, text()))
        if progress is not None:
            progress(len(sections), len(write))
    return sections


def _content(battery: str | os.PathLike[str], names: Sequence[str], paths: Sequence[Path]) -> str:
    """Return the content hashes, and the versions that made them."""
    rows, torch = [], set()
    for path in paths:
        data = load_battery(path)
        rows.append([path.name, data.attrs["content_hash"]])
    for name in names:
        facts = load_backbone(battery, name).facts
        rows.append([f"{paths[0].stem}.{name}.nc", str(facts["content_hash"])])
        torch |= {fact["torch"] for fact in json.loads(facts["trainings"])}
    versions = ", ".join(f"{name} {number}" for name, number in json.loads(data.attrs["versions"]).items())
    return f"Trained with PyTorch {', '.join(sorted(torch))}; scored with {versions}.\n\n" + _table(
        ["file", "content hash (SHA-256)"], rows
    )


def _backbones(battery: str | os.PathLike[str], names: Sequence[str]) -> str:
    rows = []
    for name in names:
        backbone = load_backbone(battery, name)
        for fact in json.loads(backbone.facts["trainings"]):
            recipe = fact["recipe"]
            kept = [c for c in range(len(backbone.classes)) if c not in recipe["excluded"]]
            rows.append(
                [
                    name + (f" without {fact['without']}" if "without" in fact else ""),
                    f"{int(backbone.statistics.count[kept].sum()):,}",
                    str(recipe["epochs"]),
                    f"{fact['accuracy']:.3f}",
                    f"{fact['seconds']:.0f}",
                    str(backbone.statistics.n_features),
                ]
            )
    return _table(["backbone", "fit rows", "epochs", "test accuracy", "seconds", "D"], rows)


def _fingerprint(data: xr.Dataset) -> str:
    rule = Rule()
    rows = []
    for name, part in _parts(data):
        score = score_battery(part, rule)
        leak, clean = (score.sel(regime=regime) for regime in ("leak", "clean"))
        rows.append(
            [
                name,
                _share(leak),
                _share(clean),
                f"{float(score.auroc):.3f}",
                f"{float(score.auroc_ungated):.3f}",
            ]
        )
    single = data.isel(setting=np.flatnonzero((data["size"] <= 1).values))
    missed = _named(single, (single.regime == "leak").values & ~fired(single, rule).values)
    shut = _named(
        single, (single.regime == "leak").values & (single.oracle_lda.mean("seed") < rule.gate).values
    )
    false = _named(data, (data.regime != "leak").values & fired(data, rule).values)
    return "\n\n".join(
        [
            f"gate {rule.gate:g}, tau {rule.tau:g}; means over seeds; Wilson 95 % intervals within this design. Single "
            "classes stand with the novel sources and the retrained backbones.",
            _table(
                ["settings", "leaks that fire", "clean that stay silent", "AUROC of the score", "ungated"],
                rows,
            ),
            f"Single classes whose leak is missed: {missed}. Of these the gate shuts out: {shut}. "
            f"Clean settings that fire: {false}.",
        ]
    )


def _taus(data: xr.Dataset) -> str:
    rows = []
    for name, part in _parts(data):
        sweep = sweep_rule(part, gates=[Rule().gate], taus=TAUS).isel(gate=0)
        for regime in ("leak", "clean"):
            counts, n = sweep.correct.sel(regime=regime).values, int(sweep.n.sel(regime=regime))
            rows.append([f"{name}: {regime}", *(f"{count}/{n}" for count in counts)])
    return "Right decisions as tau moves, gate 0.95.\n\n" + _table(["settings", *map(str, TAUS)], rows)


def _contrast(data: xr.Dataset) -> str:
    pairs = contrast(data)
    size = dict(zip(data["pair"].values, data["size"].values, strict=True))
    rows = []
    for count in sorted({size[pair] for pair in pairs["pair"]}):
        some = pairs[[size[pair] == count for pair in pairs["pair"]]]
        rows.append(
            [
                f"{count} class{'es' if count > 1 else ''}",
                f"{len(some)}",
                f"{int((some.difference > 0).sum())}",
                f"{some.difference.min():.3f} to {some.difference.max():.3f}",
                f"{some.leaked.max():.3f}",
                f"{some.excluded.min():.3f}",
            ]
        )
    return _table(
        ["pairs", "n", "excluded above leaked", "difference", "largest leaked", "smallest excluded"], rows
    )


def _retraining(data: xr.Dataset) -> str:
    pairs = contrast(data)
    if "retrained" not in pairs:
        return "No backbone was trained without a class."
    pairs = pairs[pairs.retrained.notna()]
    again = data.isel(setting=np.flatnonzero((data.regime == "clean-retrained").values))
    oracle = dict(zip(again["pair"].values, again.oracle_lda.mean("seed").values, strict=True))
    figures = pairs[["leaked", "excluded", "retrained", "oracle_lda"]].to_numpy()
    rows = [
        [str(backbone), str(ood), *(f"{value:.3f}" for value in values), f"{oracle[pair]:.3f}"]
        for backbone, ood, pair, values in zip(
            pairs["backbone"], pairs["ood"], pairs["pair"], figures, strict=True
        )
    ]
    above = int((pairs.excluded > pairs.retrained).sum())
    fires = int(fired(again, Rule()).sum())
    return (
        _table(
            [
                "backbone",
                "class",
                "leaked",
                "excluded",
                "retrained",
                "oracle, trained on it",
                "oracle, retrained",
            ],
            rows,
        )
        + f"\n\nbest_unsup. {fires} of {len(pairs)} retrained settings fire; clean-excl lies above the retrained "
        f"value in {above} of {len(pairs)}."
    )


def _one_half(data: xr.Dataset) -> str:
    single = data.isel(setting=np.flatnonzero(((data.regime == "leak") & (data["size"] == 1)).values))
    worst = 0.0
    for name in ("maha", "knn", "isolation_forest", "one_class_svm", "lof"):
        means = single[name].groupby("backbone").mean("setting")
        worst = max(worst, float(abs(means - 0.5).max()))
    spread = single.maha.mean("seed")
    return (
        f"Over the ten classes of a backbone the leak AUROC of any one score averages 0.5: over backbones, seeds and "
        f"five detectors {'to within 1e-9' if worst < 1e-9 else f'to within {worst:.0e}'}. Mahalanobis ranges from {float(spread.min()):.3f} to "
        f"{float(spread.max()):.3f}: the spread, not the mean, decides which leaks fire."
    )


def _detectors(data: xr.Dataset) -> str:
    names = ("best_unsup", "maha", "knn", "isolation_forest", "one_class_svm", "lof")
    regimes = [
        r for r in ("leak", "clean-excl", "clean-retrained", "clean-novel") if (data.regime == r).any()
    ]
    leak = (data.regime == "leak").values
    rows = []
    for name in names:
        means = data[name].mean("seed").values
        row = [f"{means[(data.regime == regime).values].mean():.3f}" for regime in regimes]
        rows.append([name, *row, f"{auroc(1 - means, leak):.3f}"])
    return "Mean AUROC, and how well 1 - AUROC tells leaks from clean settings.\n\n" + _table(
        ["detector", *regimes, "leak against clean"], rows
    )


def _neighbourhood(data: xr.Dataset) -> str:
    leak, index = (data.regime == "leak").values, data.neighbourhood_leakage.values
    excluded = (data.regime == "clean-excl").values
    by_pair = {
        regime: dict(zip(data["pair"].values[rows], index[rows], strict=True))
        for regime, rows in (
            ("leak", leak),
            ("excl", excluded),
            ("retrained", (data.regime == "clean-retrained").values),
        )
    }
    same = sum(by_pair["leak"][pair] == value for pair, value in by_pair["excl"].items())
    raised = [(by_pair["leak"][pair], value) for pair, value in by_pair["retrained"].items()]
    moved = "; ".join(f"{before:.3f} to {after:.3f}" for before, after in raised)
    matched = leak | excluded
    return (
        f"Leak against clean over all settings: AUROC {auroc(index, leak):.3f}; on matched pairs "
        f"{auroc(index[matched], leak[matched]):.3f}, the same value in {same} of {len(by_pair['excl'])} pairs. "
        f"Retraining moves it: {moved}."
    )


def _shrinkage(battery: str | os.PathLike[str], data: xr.Dataset, names: Sequence[str]) -> str:
    alphas = data.ledoit_wolf.sel(covariance="one-class").values
    rows = []
    for name, ood, excluded, sample in _TEACHING:
        if name not in names:
            continue
        backbone = load_backbone(battery, name)
        own, other = rows_of(backbone, ood)
        fit = fit_set(backbone, without=[ood] if excluded else [], rows=sample)
        sweep = sweep_shrinkage(fit, backbone.rows[own], backbone.rows[other], alphas=_STOPS)
        what = f"{name}, {ood}{' excluded' if excluded else ''}{f', {sample} fit rows' if sample else ''}"
        rows.append(
            [
                what,
                *(f"{value:.3f}" for value in sweep.auroc.values),
                f"{float(sweep.ledoit_wolf):.1e}: {float(sweep.auroc_ledoit_wolf):.3f}",
            ]
        )
    text = (
        f"Ledoit and Wolf's alpha of the fit sets (one-class): {alphas.min():.1e} to {alphas.max():.1e}, "
        f"median {np.median(alphas):.1e}."
    )
    if not rows:
        return text
    return f"{text} AUROC of one-class Mahalanobis, all test rows:\n\n" + _table(
        ["case", *(f"{alpha:g}" for alpha in _STOPS), "Ledoit-Wolf"], rows
    )


def _budget(battery: str | os.PathLike[str], data: xr.Dataset, names: Sequence[str]) -> str:
    rows = []
    for name in names:
        backbone = load_backbone(battery, name)
        for regime in ("clean-excl", "clean-novel"):
            targets = list(backbone.classes) if regime == "clean-excl" else list(backbone.novel)
            found = []
            for ood in targets:
                fit = fit_set(backbone, without=[ood] if regime == "clean-excl" else [])
                answer = whitening_spectrum(fit, backbone.rows[rows_of(backbone, ood)[1]], alphas=[0])
                found.append(
                    (
                        float(answer.top_signal_mass),
                        float(answer.bottom_signal_mass),
                        float(answer.bottom_budget[0]),
                    )
                )
            top, mass, spent = np.array(found).T
            rows.append([name, regime, _range(top), _range(mass, digits=4), _range(spent)])
    return "At alpha 0; single classes excluded, and novel sources.\n\n" + _table(
        ["backbone", "OOD", "signal mass, top tenth", "signal mass, bottom tenth", "budget, bottom tenth"],
        rows,
    )


def _signature(signature: xr.Dataset) -> str:
    rule = Rule()
    fires = fired(signature, rule).values
    convention, regime = signature.convention.values, signature.regime.values
    rows = []
    for name in dict.fromkeys(signature.backbone.values):
        for what, chosen in (
            ("leak", regime == "leak"),
            ("excluded, centroid kept", convention == "kept"),
            ("excluded, centroid dropped", convention == "dropped"),
            ("novel", regime == "clean-novel"),
        ):
            part = chosen & (signature.backbone.values == name)
            some = signature.isel(setting=np.flatnonzero(part)).mean("seed")
            below = int((some.prs_maha < some.embedding_maha).sum())
            rows.append(
                [
                    f"{name}: {what}",
                    f"{int(fires[part].sum())}/{int(part.sum())}",
                    _range(some.best_unsup.values),
                    f"{float(some.prs_maha.mean()):.3f}",
                    f"{float(some.embedding_maha.mean()):.3f}",
                    f"{below}/{int(part.sum())}",
                    f"{float(some.ahss.mean()):.3f}",
                    *(f"{value:.3f}" for value in some.maha_by_block.mean("setting").values),
                ]
            )
    blocks = signature["block"].values.tolist()
    return _table(
        [
            "settings",
            "fire",
            "best_unsup",
            "PRS-Maha",
            "embedding Maha",
            "PRS below",
            "AHSS",
            *blocks,
        ],
        rows,
    )


def _parts(data: xr.Dataset) -> Iterable[tuple[str, xr.Dataset]]:
    """Yield the battery by the size of its OOD groups; novel and retrained settings go with single classes."""
    for size in sorted(set(data["size"].values.tolist()) - {0}):
        chosen = data["size"].values == size
        if size == 1:
            chosen |= data["size"].values == 0
        name = "single classes" if size == 1 else f"groups of {size}"
        yield name, data.isel(setting=np.flatnonzero(chosen))
    yield "all", data


def _share(score: xr.Dataset) -> str:
    return (
        f"{int(score.correct)}/{int(score.n)} = {float(score.rate):.2f} "
        f"[{float(score.low):.2f}, {float(score.high):.2f}]"
    )


def _named(data: xr.Dataset, chosen: np.ndarray) -> str:
    texts = [
        f"{name.split('_')[-1]} ({backbone})"
        for name, backbone in zip(data.setting.values[chosen], data.backbone.values[chosen], strict=True)
    ]
    return ", ".join(texts) or "none"


def _range(values: np.ndarray, *, digits: int = 2) -> str:
    return f"{values.min():.{digits}f} to {values.max():.{digits}f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
