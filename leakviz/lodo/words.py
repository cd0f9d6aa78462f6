"""Results in plain words and in plain numbers, for the command line, a page and a program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

NOISE_BAND = (0.45, 0.55)
"""Where the AUROC of noise features has to be for pooled LODO values to be read as ranking."""

_TELLS_SOURCES = 0.1  # by how much a pooled AUROC may exceed the mean within sources before it is said

_ROWS = ("score", "called", "label", "source_code")


def explain_lodo(result: xr.Dataset) -> list[str]:
    """Say in a few plain sentences what a result shows, what it rests on, and what it cannot say.

    Parameters
    ----------
    result : xarray.Dataset
        As `lodo` or `lodo_from_scores` returns it.

    Returns
    -------
    list of str

    Notes
    -----
    Shares of the gap are from its exact split into pairs within and between sources (`lodo`).

    Examples
    --------
    >>> from leakviz import load_lodo
    >>> explain_lodo(load_lodo("penguins__logistic"))[1].split(". ")[0]
    'Within a source the mean AUROC goes from 0.962 to 0.971'
    """
    said = [_gap_sentence(result, "all"), _split_sentence(result), *_composition_sentences(result)]
    if "shared_rows" in result and (shared := int(result.shared_rows.sum())):
        said.append(
            f"{shared:,} {'row has' if shared == 1 else 'rows have'} exactly the features of a row in another "
            "source: if they are copies, leaving a source out does not leave them out."
        )
    if "identity_accuracy" in result:
        said.append(
            f"A model tells the source from the features in {_percent(result.identity_accuracy)} of the rows; "
            f"the largest source holds {_percent(result.identity_majority)}."
        )
    pooled, within = (result[name].sel(protocol="cv", scope="all").item() for name in ("auc", "within_mean"))
    if pooled - within > _TELLS_SOURCES:
        said.append(
            f"Cross-validation, too, ranks the rows of one source with {_three(within)} only: what its pooled "
            f"{_three(pooled)} has more is telling sources apart."
        )
    said.append(
        f"The source's name alone ranks the label with an AUROC of {_three(result.name_auc)} "
        f"({_three(result.name_auc_null)} where labels are shuffled)."
    )
    said += _control_sentences(result)
    said.append(
        "All of this is transfer between these sources; about sources that are not like them it says nothing."
    )
    return said


def summarise_lodo(result: xr.Dataset) -> dict[str, Any]:
    """Return a result without its rows, as numbers, texts, lists and dicts that JSON can hold.

    Parameters
    ----------
    result : xarray.Dataset
        As `lodo` or `lodo_from_scores` returns it.

    Returns
    -------
    dict
        ``attrs``; ``coords``; and per variable of `lodo` its ``dims`` and ``values``. What is undefined is
        None.

    Examples
    --------
    >>> from leakviz import lodo_from_scores
    >>> result = lodo_from_scores([3, 1, 2, 0], [3, 0, 2, 1], [1, 1, 0, 0], ["a", "b", "a", "b"])
    >>> summarise_lodo(result)["variables"]["n"]
    {'dims': ['source'], 'values': [2, 2]}
    """
    kept = result.drop_vars([name for name in _ROWS if name in result])
    return {
        "attrs": {str(name): _plain(np.asarray(value)) for name, value in kept.attrs.items()},
        "coords": {str(name): _plain(c.values) for name, c in kept.coords.items() if name != "row"},
        "variables": {
            str(name): {"dims": list(map(str, variable.dims)), "values": _plain(variable.values)}
            for name, variable in kept.data_vars.items()
        },
    }


def source_table(result: xr.Dataset) -> pd.DataFrame:
    """Return one row per source: its rows, what it consists of, and its own values under each protocol.

    Parameters
    ----------
    result : xarray.Dataset
        As `lodo` or `lodo_from_scores` returns it.

    Returns
    -------
    pandas.DataFrame
        Columns ``source``, ``n``, ``positive_share``, ``metric`` ("AUROC"; "recall" or "specificity" where
        the source has one label), and one per protocol.

    Examples
    --------
    >>> from leakviz import lodo_from_scores
    >>> result = lodo_from_scores([3, 1, 2, 0], [3, 0, 2, 1], [1, 1, 0, 1], ["a", "b", "a", "b"])
    >>> source_table(result).metric.tolist()
    ['AUROC', 'recall']
    """
    names = {"mixed": "AUROC", "positive only": "recall", "negative only": "specificity"}
    metric = [names[kind] for kind in result.kind.values.tolist()]
    table = pd.DataFrame(
        {
            "source": result.source.values,
            "n": result.n.values,
            "positive_share": result.positive_share.values,
            "metric": metric,
        }
    )
    for protocol in result.protocol.values.tolist():
        of = result.sel(protocol=protocol)
        table[protocol] = [
            (of.source_auc if name == "AUROC" else of.rate.sel(metric=name)).values[k]
            for k, name in enumerate(metric)
        ]
    return table


def _gap_sentence(result: xr.Dataset, scope: str) -> str:
    of = result.sel(scope=scope)
    cv, left_out = (of.auc.sel(protocol=name).item() for name in ("cv", "lodo"))
    gap = of.sel(baseline="cv")
    level = f"{100 * float(result.attrs['level']):g} %"
    where = "" if scope == "all" else f" on the {int((result.kind == 'mixed').sum())} mixed sources alone"
    if math.isnan(cv) or math.isnan(left_out):
        return f"The AUROC{where} is undefined (one class)."
    over = f"{level} over rows {_three(gap.gap_low)} to {_three(gap.gap_high)}"
    if bool(of.too_few_sources):
        n = result.sizes["source"] if scope == "all" else int((result.kind == "mixed").sum())
        over += f"; too few sources ({n}) for an interval over sources"
    else:
        over += f", over sources {_three(gap.gap_source_low)} to {_three(gap.gap_source_high)}"
    return (
        f"Cross-validation gives an AUROC of {_three(cv)}{where}, leaving a row's source out {_three(left_out)}: "
        f"a gap of {_three(gap.gap)} ({over})."
    )


def _split_sentence(result: xr.Dataset) -> str:
    of = result.sel(scope="all")
    first, second = (of.within_mean.sel(protocol=name).item() for name in ("cv", "lodo"))
    if math.isnan(first) or math.isnan(second):
        return "No source has both labels, so no AUROC within a source is defined."
    kinds = {
        name: [of[name].sel(protocol=protocol).item() for protocol in ("cv", "lodo")]
        for name in ("within", "between")
    }
    falls = {name: before - after for name, (before, after) in kinds.items()}
    share = _percent(of.within_share.sel(protocol="cv"))
    words = (
        f"Within a source the mean AUROC goes from {_three(first)} to {_three(second)}. Over pairs of rows of one source "
        f"({share} of the pairs) it goes from {_three(kinds['within'][0])} to {_three(kinds['within'][1])}, over pairs of "
        f"two sources from {_three(kinds['between'][0])} to {_three(kinds['between'][1])}"
    )
    # Per pair, not by what each kind adds to the gap: where there are few pairs within, they add little whatever they do.
    if falls["between"] > 0.01 and falls["within"] < falls["between"] / 4:
        return (
            f"{words}: the sources' own rows are ranked as before, or nearly, and the gap comes from pairs of rows of "
            "two sources, where scores of different models meet."
        )
    return words + "."


def _composition_sentences(result: xr.Dataset) -> list[str]:
    kinds = result.kind.values
    single = int((kinds != "mixed").sum())
    if not single:
        return []
    verb = "has" if single == 1 else "have"
    said = [
        f"{single} of {kinds.size} sources {verb} one label only: no AUROC is defined there, and recall or "
        "specificity stands in its place."
    ]
    return [*said, _gap_sentence(result, "mixed")] if single < kinds.size else said


def _control_sentences(result: xr.Dataset) -> list[str]:
    if "noise_mean" not in result:
        return []
    draws = result.sizes["draw"]
    noise, low, high = (float(result[f"noise_{end}"]) for end in ("mean", "low", "high"))
    said = (
        f"Control: with features that know nothing, leaving sources out gives {_three(noise)} (mean of {draws} draws, "
        f"95 % {_three(low)} to {_three(high)}); it should be 0.5."
    )
    if not (NOISE_BAND[0] <= noise <= NOISE_BAND[1] or low <= 0.5 <= high):
        said += (
            " It is not: what sources consist of moves the models' offsets, so the pooled value without a source is not "
            "about ranking alone. Read the values within sources, and balance the classes if they are not."
        )
    shuffled, low, high = (float(result[f"shuffled_{end}"]) for end in ("mean", "low", "high"))
    return [
        said,
        f"Control: with sources shuffled within each class the gap is {_three(shuffled)} (95 % {_three(low)} to "
        f"{_three(high)}); it should be 0"
        + ("." if abs(shuffled) <= 0.005 or low <= 0 <= high else ", and it is not quite."),
    ]


def _three(value: Any) -> str:
    number = round(float(value), 3)
    return f"{number + 0.0:.3f}".replace("-", "\N{MINUS SIGN}")


def _percent(value: Any) -> str:
    return f"{100 * float(value):.1f} %"


def _plain(values: np.ndarray) -> Any:
    """Return an array as nested lists, or a scalar; what is not finite becomes None."""
    if values.dtype.kind == "f":
        plain = values.astype(object)
        return np.where(np.isfinite(values), plain, np.array(None, dtype=object)).tolist()
    return values.tolist()
