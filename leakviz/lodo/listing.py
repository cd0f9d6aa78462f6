"""The kept results in a table, as ``data/lodo/README.md`` shows it: ``python -m leakviz.lodo.listing``."""

from __future__ import annotations

import xarray as xr

from leakviz.lodo.cases import load_ablation, load_lodo, lodo_cases

_HEAD = (
    "result",
    "CV",
    "LODO",
    "gap, 95 % over rows",
    "name alone, 95 % of shuffled labels",
    "noise features, 95 % (draws)",
    "sources shuffled: gap, 95 % (draws)",
    "without shortcuts: change, 95 %",
)


def listing() -> str:
    """Return one row per kept result, as a Markdown table: AUROCs, controls, and what ablation changes.

    Returns
    -------
    str

    Examples
    --------
    >>> print(listing().splitlines()[0].split("|")[1].strip())
    result
    """
    rows = [_HEAD, ("---",) * len(_HEAD)]
    cases = lodo_cases()
    for name, has_ablation in zip(cases["name"].tolist(), cases["ablation"].tolist(), strict=True):
        rows.append(_row(name, load_lodo(name), load_ablation(name) if has_ablation else None))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(name: str, result: xr.Dataset, ablation: xr.Dataset | None) -> tuple[str, ...]:
    of = result.sel(scope="all", baseline="cv")

    def control(what: str) -> str:
        if f"{what}_mean" not in result:
            return "cannot be run"
        mean, low, high = (float(result[f"{what}_{end}"]) for end in ("mean", "low", "high"))
        return f"{_between(mean, low, high)} ({result.sizes['draw']})"

    return (
        f"`{name}`",
        _three(of.matched_auc),
        _three(of.matched_lodo_auc),
        _between(of.gap, of.gap_low, of.gap_high),
        _between(result.name_auc, result.name_auc_null_low, result.name_auc_null_high),
        control("noise"),
        control("shuffled"),
        "" if ablation is None else _between(ablation.change, ablation.change_low, ablation.change_high),
    )


def _between(value: object, low: object, high: object) -> str:
    return f"{_three(value)}, {_three(low)} to {_three(high)}"


def _three(value: object) -> str:
    return f"{round(float(value), 3) + 0.0:.3f}"  # type: ignore[arg-type]  # a number, or an array of one


if __name__ == "__main__":
    print(listing())
