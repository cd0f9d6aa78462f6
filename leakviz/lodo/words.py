"""Results in plain words and in plain numbers, for the command line, a page and a program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from leakviz.lodo.fits import UNDIVIDED, logistic
from leakviz.lodo.pairs import within_gap
from leakviz.predictions.sources import quoted

NOISE_BAND = (0.45, 0.55)
"""Where the AUROC of noise features has to be for pooled LODO values to be read as ranking."""

SHUFFLED_BAND = 0.005
"""How far from 0 the gap with shuffled sources may be without a word."""

NEARLY = 0.01
"""Up to what change of the mean AUROC within sources the sources' own rows count as ranked as before."""

SHARES = "these are shares of the gap of all rows together, not what a source loses."
"""What the parts of a gap by pairs are, wherever they stand beside what is lost within sources."""

SMALL = 5
"""A source with fewer rows of one of its labels says next to nothing by itself."""

ENOUGH_DRAWS = 10
"""From how many draws of a control on its interval counts as more than a hint."""

_TELLS_SOURCES = 0.1  # by how much a pooled AUROC may exceed the mean within sources before it is said

_MOST_SHOWN = 5  # sources that are named one by one

_ONE_DRAW = "One draw cannot tell how far chance moves it."

_KNOWN = {
    "cv": ("Cross-validation", "in cross-validation"),
    "same-source": ("Training on the other rows of its source", "on held-out rows of known sources"),
}

_ROWS = ("score", "called", "label", "source_code")


def explain_lodo(result: xr.Dataset, *, baseline: str = "cv") -> list[str]:
    """Say in a few plain sentences what a result shows, what it rests on, and what it cannot say.

    Parameters
    ----------
    result : xarray.Dataset
        As `lodo` or `lodo_from_scores` returns it.
    baseline : {"cv", "same-source"}
        What leaving sources out is held against. What is said of pairs within and between sources is of the
        rows that each protocol scores.

    Returns
    -------
    list of str

    Notes
    -----
    Shares of the gap are from its exact split into pairs within and between sources (`lodo`).

    Examples
    --------
    >>> from leakviz import load_lodo
    >>> explain_lodo(load_lodo("penguins__logistic"))[1].split(":")[0]
    'Within a source the mean AUROC goes from 0.962 to 0.971'
    """
    said = [
        _gap_sentence(result, "all", baseline),
        *([_undivided_sentence(result)] if undivided(result) else []),
        *_left_in_sentences(result),
        _split_sentence(result, baseline),
        *_composition_sentences(result, baseline),
        *_small_sentences(result, baseline),
    ]
    if "column_with_label" in result.attrs:
        said.insert(1, _column_sentence(str(result.attrs["column_with_label"])))
    if "shared_rows" in result and (shared := int(result.shared_rows.sum())):
        said.append(
            f"{shared:,} {'row has' if shared == 1 else 'rows have'} exactly the features of a row in another "
            "source: if they are copies, leaving a source out does not leave them out."
        )
    if not undivided(result):
        said += _identity_sentences(result)
    by = "lodo" if undivided(result) else baseline
    known = result.sel(protocol=by, scope="all")
    pooled, within = (known[name].item() for name in ("auc", "within_mean"))
    if pooled - within > _TELLS_SOURCES:
        who = "Leaving a source out" if by == "lodo" else f"{_KNOWN[baseline][0]}, too,"
        said.append(
            f"{who} ranks the rows of one source with {_three(within)} only: what its pooled {_three(pooled)} has more is "
            "telling sources apart."
        )
    if not undivided(result):
        said.append(_name_sentence(result))
    said += _control_sentences(result)
    said.append(
        "All of this is transfer between these sources; about sources that are not like them it says nothing."
    )
    return said


def undivided(result: xr.Dataset) -> bool:
    """Tell whether every source is one group or one row, so that nothing is defined that divides a source.

    Examples
    --------
    >>> undivided(xr.Dataset(attrs={"whole_sources": "yes"}))
    True
    """
    return result.attrs.get("whole_sources") == "yes"


def adding_up(whole: float, first: float, second: float) -> tuple[str, str]:
    """Return two parts with three decimals that add up to the whole as it is printed.

    Where rounding leaves a thousandth over, the part that rounding has moved further away takes it.

    Examples
    --------
    >>> adding_up(0.0546, 0.0034, 0.0512)
    ('0.004', '0.051')
    """
    if any(map(math.isnan, (whole, first, second))):
        return tuple("undefined" if math.isnan(part) else _three(part) for part in (first, second))  # type: ignore[return-value]
    printed = [round(1000 * part) for part in (first, second)]
    over = round(1000 * whole) - sum(printed)
    if over:
        rest = [over * (1000 * part - at) for part, at in zip((first, second), printed, strict=True)]
        printed[rest.index(max(rest))] += over
    return _three(printed[0] / 1000), _three(printed[1] / 1000)


def lost_within(result: xr.Dataset, baseline: str) -> tuple[float, float, float]:
    """Return the mean AUROC within sources with the baseline and with the source left out, and what is lost between.

    The loss is the core's ``gap_within_mean``, of rows that both score; the two ends are of the same rows.

    Examples
    --------
    >>> from leakviz import lodo_from_scores
    >>> result = lodo_from_scores([3, 1, 2, 0], [3, 0, 2, 1], [1, 1, 0, 0], ["a", "b", "a", "b"])
    >>> lost_within(result, "cv")
    (1.0, 0.5, 0.5)
    """
    of = result.sel(scope="all")
    lost = of.gap_within_mean.sel(baseline=baseline).item()
    if baseline == "cv":  # scores every row, so what is left out decides which rows both score
        left_out = of.within_mean.sel(protocol="lodo").item()
        return left_out + lost, left_out, lost
    known = of.within_mean.sel(protocol=baseline).item()
    return known, known - lost, lost


def loss_interval(result: xr.Dataset, baseline: str) -> tuple[float, float]:
    """Return the interval over rows of what is lost within sources in the mean; nan where there is none."""
    at = result.sel(protocol=[baseline, "lodo"])
    scores = at.score.transpose("protocol", "seed", "row").values
    return within_gap(
        scores[0],
        scores[1],
        result.label.values,
        result.source_code.values,
        level=str(result.attrs["level"]),
    )


def retention_sentence(result: xr.Dataset, kept: xr.Dataset) -> str | None:
    """Say that coefficients and retention are of another model than the one that gave the scores, where they are.

    Parameters
    ----------
    result : xarray.Dataset
        As `lodo` returns it.
    kept : xarray.Dataset
        As `retention` or `ablate_shortcuts` returns it.

    Returns
    -------
    str or None
        None where it is the same model.

    Examples
    --------
    >>> from leakviz import load_lodo, load_retention
    >>> kept = load_retention("penguins__logistic")
    >>> retention_sentence(load_lodo("penguins__logistic"), kept) is None
    True
    >>> print(retention_sentence(load_lodo("penguins__forest"), kept).split(", not of")[0])
    Coefficients and retention are of a logistic regression on standardised features, classes balanced
    """
    weight = kept.attrs.get("class_weight")
    if weight is None:  # it came with its data, and so did the scores
        return None
    own = logistic(class_weight=None if weight == "none" else weight)
    if result.attrs["model"] == " ".join(repr(own).split()) and float(kept.attrs["C"]) == 1:
        return None
    return (
        f"Coefficients and retention are of a {kept.attrs['model']}, not of the model that gave the scores "
        f"({result.attrs['model']}): they say which features such a regression would carry from source to source."
    )


def explain_ablation(ablation: xr.Dataset) -> list[str]:
    """Say in a few plain sentences what taking shortcuts away does.

    Parameters
    ----------
    ablation : xarray.Dataset
        As `ablate_shortcuts` returns it.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from leakviz import load_ablation
    >>> print(explain_ablation(load_ablation("penguins__logistic"))[0].split(":")[0])
    For every source, the features whose retention among the other sources is below 0.5 are taken away
    """
    before, after = (_three(value) for value in ablation.auc.values)
    level = level_of(ablation)
    least, most = int(ablation.n_dropped.min()), int(ablation.n_dropped.max())
    said = [
        f"For every source, the features whose retention among the other sources is below {ablation.attrs['threshold']} "
        f"are taken away: {least}{f' to {most}' if most > least else ''} of {ablation.sizes['feature']}. "
        "These are found anew for each source, without it, so they differ from source to source, and from the "
        "retention among all sources; and it is not asked whether a coefficient is significant. "
    ]
    if math.isnan(float(ablation.change)):
        said[0] += "The AUROC with sources left out is undefined (one class)."
    else:
        said[0] += (
            f"With sources left out the AUROC goes from {before} to {after}, a change of {_three(ablation.change)} "
            f"({level} over rows {_three(ablation.change_low)} to {_three(ablation.change_high)})"
        )
        random = ablation.random_change.values
        said[0] += (
            "."
            if not random.size
            else (
                f"; with as many features taken at random, of {_three(random.mean())} (mean of {random.size} "
                f"draw{'s' * (random.size > 1)}, {_three(random.min())} to {_three(random.max())})."
            )
        )
    bad = int((ablation.why_not.values != "").sum()) if "why_not" in ablation else 0
    if bad:
        said.append(
            f"{bad} of {ablation.sizes['source']} sources cannot be left out: without them one label is left."
        )
    if "step_auc" in ablation and ablation.sizes["removed"] > 1:
        said.append(_steps_sentence(ablation))
    return said


def taken_away(ablation: xr.Dataset) -> dict[str, list[str]]:
    """Return, for each source, the features that are taken away when it is left out.

    Parameters
    ----------
    ablation : xarray.Dataset
        As `ablate_shortcuts` returns it.

    Returns
    -------
    dict of str to list of str

    Examples
    --------
    >>> from leakviz import load_ablation
    >>> list(taken_away(load_ablation("penguins__logistic")))
    ['Adelie', 'Gentoo', 'Chinstrap']
    """
    names = ablation.feature.values
    return {
        str(source): [str(name) for name in names[mask]]
        for source, mask in zip(ablation.source.values, ablation.dropped.values, strict=True)
    }


def _steps_sentence(ablation: xr.Dataset) -> str:
    half = ablation.sizes["removed"] // 2
    cv, left_out = (ablation.step_auc.sel(ablation_protocol=name).values for name in ("cv", "lodo"))
    count = int(ablation.removed[half])
    said = f"Step by step, the lowest retention first: with {count} of {ablation.sizes['feature']} features gone, "
    if not math.isnan(cv[0]):
        said += f"cross-validation goes from {_three(cv[0])} to {_three(cv[half])}"
        if math.isnan(left_out[0]):
            return said + "."
        said += " and "
    said += f"leaving a source out {'goes ' * math.isnan(cv[0])}from {_three(left_out[0])} to {_three(left_out[half])}"
    random = ablation.step_random.values[:, half]
    if random.size:
        said += f" ({_three(random.mean())} where they go in random order)"
    if math.isnan(cv[0]):
        return f"{said}. Cross-validation is not compared: {UNDIVIDED}."
    return f"{said}; the gap from {_three(cv[0] - left_out[0])} to {_three(cv[half] - left_out[half])}."


def summarise_lodo(result: xr.Dataset) -> dict[str, Any]:
    """Return a result without its rows, as numbers, texts, lists and dicts that JSON can hold.

    Parameters
    ----------
    result : xarray.Dataset
        As `lodo`, `lodo_from_scores` or `ablate_shortcuts` returns it.

    Returns
    -------
    dict
        ``attrs``; ``coords``; and per variable of `lodo` its ``dims`` and ``values``. What is undefined is
        None, and where a whole variable is, ``undefined`` says why.

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
            str(name): {
                "dims": list(map(str, variable.dims)),
                "values": _plain(variable.values),
                **({"undefined": variable.attrs["undefined"]} if "undefined" in variable.attrs else {}),
            }
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
        the source has one label), one per protocol, and the interval of the last, ``lodo_low`` and
        ``lodo_high``.

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
    left_out = result.sel(protocol="lodo")
    for end in ("low", "high"):
        table[f"lodo_{end}"] = [
            (
                left_out[f"source_auc_{end}"] if name == "AUROC" else left_out[f"rate_{end}"].sel(metric=name)
            ).values[k]
            for k, name in enumerate(metric)
        ]
    return table


def _gap_sentence(result: xr.Dataset, scope: str, baseline: str) -> str:
    of = result.sel(scope=scope)
    if undivided(result):
        return _whole_sentence(result, scope, baseline)
    gap = of.sel(baseline=baseline)
    known, left_out = gap.matched_auc.item(), gap.matched_lodo_auc.item()
    level = level_of(result)
    mixed = int((result.kind == "mixed").sum())
    where = "" if scope == "all" else f" on the {mixed} mixed source{'s' * (mixed != 1)} alone"
    if math.isnan(known) or math.isnan(left_out):
        all_rows = of.auc.sel(protocol=baseline).item()
        if math.isnan(all_rows):
            return f"The AUROC{where} is undefined (one class)."
        return (
            f"{_KNOWN[baseline][0]} gives an AUROC of {_three(all_rows)}{where}; with sources left out it is undefined (one "
            "class), and so is the gap."
        )
    over = f"{level} over rows {_three(gap.gap_low)} to {_three(gap.gap_high)}"
    if bool(of.too_few_sources):
        n = result.sizes["source"] if scope == "all" else mixed
        over += f"; too few sources ({n}) for an interval over sources"
    else:
        over += f", over sources {_three(gap.gap_source_low)} to {_three(gap.gap_source_high)}"
    return (
        f"{_KNOWN[baseline][0]} gives an AUROC of {_three(known)}{where}, leaving a row's source out {_three(left_out)}: "
        f"a gap of {_three(gap.gap)} ({over})."
    )


def _whole_sentence(result: xr.Dataset, scope: str, baseline: str) -> str:
    """Say what is known where no fold divides a source: the score with sources left out, and no gap."""
    at = result.sel(scope=scope, protocol="lodo")
    if scope == "mixed":
        return f"On the {int((result.kind == 'mixed').sum())} mixed sources alone it is {_three(at.auc)}."
    low, high = (_three(at[f"auc_{end}"]) for end in ("low", "high"))
    left_out = (
        "With a row's source left out, the AUROC is undefined (one class)."
        if math.isnan(at.auc.item())
        else f"Leaving a row's source out gives an AUROC of {_three(at.auc)} ({level_of(result)} over rows {low} to {high})."
    )
    return (
        f"{left_out} What it is worth to know a source is not defined: {UNDIVIDED} (AUROC "
        f"{_three(result.auc.sel(scope=scope, protocol=baseline))}). Name finer groups, or none."
    )


def _undivided_sentence(result: xr.Dataset) -> str:
    models = "how well a model tells the source from the features, " if "identity_accuracy" in result else ""
    control = ", and the control with sources shuffled" if "shuffled_mean" in result else ""
    name = "what the source's name alone says about the label"
    return f"Not defined for the same reason: the gap, {models}{'' if control else 'and '}{name}{control}."


def _identity_sentences(result: xr.Dataset) -> list[str]:
    if "identity_accuracy" not in result:
        return []
    if math.isnan(result.identity_accuracy.item()):
        return [
            "How well a model tells the source from the features is not defined: no training set has rows of it."
        ]
    asked = ""
    if "identity_rows" in result:
        rows, n = int(result.identity_rows), int(result.n.sum())
        asked = (
            f" {rows:,} of {n:,} rows are asked about: the other sources are one group or one row each, of which training "
            "holds nothing."
        )
    return [
        f"A model tells the source from the features in {_percent(result.identity_accuracy)} of the rows; "
        f"the largest source holds {_percent(result.identity_majority)}.{asked}"
    ]


def _split_sentence(result: xr.Dataset, baseline: str) -> str:
    of, both = result.sel(scope="all"), (baseline, "lodo")
    known = of.within_mean.sel(protocol=baseline).item()
    if math.isnan(known):
        return "No source has both labels, so no AUROC within a source is defined."
    if undivided(result):
        return f"Within a source the mean AUROC is {_three(of.within_mean.sel(protocol='lodo'))} with the source left out."
    first, second, lost = lost_within(result, baseline)
    if math.isnan(lost):
        return (
            f"Within a source the mean AUROC is {_three(known)} {_KNOWN[baseline][1]}; no source with both labels can be "
            "left out."
        )
    kinds = {
        name: [of[name].sel(protocol=protocol).item() for protocol in both] for name in ("within", "between")
    }
    falls = {name: before - after for name, (before, after) in kinds.items()}
    gap = of.sel(baseline=baseline)
    if math.isnan(gap.gap.item()):
        return f"Within a source the mean AUROC goes from {_three(first)} to {_three(second)}."
    share = _percent(of.within_share.sel(protocol=baseline))
    parts = adding_up(gap.gap.item(), gap.gap_within.item(), gap.gap_between.item())
    words = (
        f"Within a source the mean AUROC goes from {_three(first)} to {_three(second)}: "
        f"{_own_rows(result, baseline, lost, falls['within'])}. Counted by pairs of rows, {parts[0]} of the gap is from "
        f"pairs of one source ({share} of all pairs; their AUROC goes from {_three(kinds['within'][0])} to "
        f"{_three(kinds['within'][1])}) and {parts[1]} from pairs of two sources ({_three(kinds['between'][0])} to "
        f"{_three(kinds['between'][1])}): {SHARES}"
    )
    # Per pair, not by what each kind adds to the gap: where there are few pairs within, they add little whatever they do.
    if falls["between"] > 0.01 and falls["within"] < falls["between"] / 4:
        return (
            f"{words} The gap comes{'' if abs(lost) <= NEARLY else ' mostly'} from pairs of rows of two sources, where "
            "scores of different models meet."
        )
    return words


def _own_rows(result: xr.Dataset, baseline: str, lost: float, lost_pairs: float) -> str:
    """Say whether the sources' own rows are ranked as before, and what is lost where they are not.

    `lost` is of the mean over sources, `lost_pairs` of the mean over pairs, where large sources count more.
    """
    if abs(lost) <= NEARLY and abs(lost_pairs) <= NEARLY:
        return "the sources' own rows are ranked as before, or nearly"
    if abs(lost) <= NEARLY:
        return "the mean within sources hardly changes, while large sources change more than small ones"
    at = result.sel(protocol=[baseline, "lodo"])
    low, high = loss_interval(result, baseline)
    if math.isnan(low):
        return f"{_three(abs(lost))} is {'lost' if lost > 0 else 'gained'} in the mean, without an interval"
    over = f"{level_of(result)} over rows {_three(low)} to {_three(high)}"
    if low <= 0 <= high:
        change = "loss" if lost > 0 else "gain"
        return f"a mean {change} of {_three(abs(lost))}, inside its noise ({over})"
    if lost < 0:
        return f"{_three(-lost)} is gained in the mean (loss: {over})"
    change = (at.source_auc.sel(protocol=baseline) - at.source_auc.sel(protocol="lodo")).values
    k = int(np.nanargmax(change))
    ends = [_three(at.source_auc.sel(protocol=name).values[k]) for name in (baseline, "lodo")]
    return (
        f"{_three(lost)} is lost in the mean ({over}), most in "
        f"{quoted(str(result.source.values[k]))} ({ends[0]} to {ends[1]})"
    )


def _column_sentence(columns: str) -> str:
    return (
        f"A column that gives the label away: {columns} alone separates the labels in all rows (AUROC 1.000). If it was "
        "made from the label, or after it, what stands here is about it alone: leave it out."
    )


def _small_sentences(result: xr.Dataset, baseline: str) -> list[str]:
    """Name the sources that are too small to speak of, and what the mean within sources is without them."""
    n, ones, kind = (result[name].values for name in ("n", "positives", "kind"))
    fewest = np.where(kind == "mixed", np.minimum(ones, n - ones), n)
    small = np.flatnonzero(fewest < SMALL)
    if not small.size:
        return []
    shown = ", ".join(
        f"{quoted(str(result.source.values[k]))} ({n[k]:,} {'row' if n[k] == 1 else 'rows'}, {ones[k]:,} of label 1)"
        for k in small[:_MOST_SHOWN]
    )
    more = f" and {small.size - _MOST_SHOWN} more" if small.size > _MOST_SHOWN else ""
    said = (
        f"Too small to speak of by {'itself' if small.size == 1 else 'themselves'}, with fewer than {SMALL} rows of a "
        f"label: {shown}{more}."
    )
    if (kind[small] == "mixed").any():
        own = result.source_auc.sel(protocol=[baseline, "lodo"]).values
        means = own[:, np.isfinite(own).all(axis=0) & (fewest >= SMALL)]
        said += " The mean within sources counts each source once, however small"
        if not means.size:
            said += "."
        elif undivided(result):
            said += f"; without these it is {_three(means[1].mean())}."
        else:
            said += f"; without these it goes from {_three(means[0].mean())} to {_three(means[1].mean())}."
    return [said]


def _left_in_sentences(result: xr.Dataset) -> list[str]:
    """Say which sources cannot be left out, and why."""
    if "why_not" not in result:
        return []
    bad = [
        (str(n), str(why)) for n, why in zip(result.source.values, result.why_not.values, strict=True) if why
    ]
    shown = [
        f"Source {quoted(name)} cannot be left out: without it, {why}." for name, why in bad[:_MOST_SHOWN]
    ]
    if len(bad) > _MOST_SHOWN:
        shown.append(f"Nor can {len(bad) - _MOST_SHOWN} more.")
    if bad:
        shown.append(
            "What leaving a source out gives, and every gap, is about the rows of the other sources."
        )
    return shown


def _composition_sentences(result: xr.Dataset, baseline: str) -> list[str]:
    kinds = result.kind.values
    single = int((kinds != "mixed").sum())
    if not single:
        return []
    verb = "has" if single == 1 else "have"
    said = [
        f"{single} of {kinds.size} sources {verb} one label only: no AUROC is defined there, and recall or "
        "specificity stands in its place."
    ]
    return [*said, _gap_sentence(result, "mixed", baseline)] if single < kinds.size else said


def _name_sentence(result: xr.Dataset) -> str:
    low, high = float(result.name_auc_null_low), float(result.name_auc_null_high)
    said = (
        f"The source's name alone ranks the label with an AUROC of {_three(result.name_auc)} (judged by the other rows of "
        f"the source; shuffled labels give {_three(low)} to {_three(high)} in 95 % of draws)"
    )
    if float(result.name_auc) <= high:
        return f"{said}, which is no more than chance gives."
    return (
        f"{said}, and the majority of those rows gives the label of {_percent(result.name_accuracy)} of the rows; one label "
        f"for all gives {_percent(result.label_majority)}."
    )


def _control_sentences(result: xr.Dataset) -> list[str]:
    if "noise_mean" not in result:
        return [str(result.attrs["controls"])] if "controls" in result.attrs else []
    return [_noise_sentence(result), *([] if undivided(result) else [_shuffled_sentence(result)])]


def _noise_sentence(result: xr.Dataset) -> str:
    noise, low, high = (float(result[f"noise_{end}"]) for end in ("mean", "low", "high"))
    if math.isnan(noise):
        return "Control: with features that know nothing, the AUROC is undefined (one class)."
    said = (
        f"Control: with features that know nothing, leaving sources out gives {_three(noise)} "
        f"({_draws(result, low, high)}); it should be 0.5."
    )
    inside = NOISE_BAND[0] <= noise <= NOISE_BAND[1]
    if math.isnan(low):
        return f"{said} It is {'inside' if inside else 'outside'} {NOISE_BAND[0]} to {NOISE_BAND[1]}. {_ONE_DRAW}"
    if inside:
        return said
    if noise_fails(result) == "":
        return (
            f"{said} It is outside {NOISE_BAND[0]} to {NOISE_BAND[1]}, as chance may have it in so few draws."
        )
    by_chance = (
        ", and not by chance"
        if noise_fails(result) == "shown"
        else f", though {result.sizes['draw']} draws may be chance"
    )
    return (
        f"{said} It is not{by_chance}: what sources consist of moves the models' offsets, so the pooled value without a "
        "source is not about ranking alone. Read the values within sources. Balanced class weights mend most of it in "
        "a linear model, and little in trees that grow until a leaf holds one class."
    )


def noise_fails(result: xr.Dataset) -> str:
    """Say whether features that know nothing are ranked: "shown", "hint", or "" where chance may have it.

    "shown" takes `ENOUGH_DRAWS` draws and an interval outside the whole of `NOISE_BAND`; "hint" a mean outside the
    band and an interval without 0.5.
    """
    if "noise_mean" not in result:
        return ""
    mean, low, high = (float(result[f"noise_{end}"]) for end in ("mean", "low", "high"))
    if not (mean < NOISE_BAND[0] or mean > NOISE_BAND[1]) or not (low > 0.5 or high < 0.5):
        return ""
    apart = low > NOISE_BAND[1] or high < NOISE_BAND[0]
    return "shown" if apart and result.sizes["draw"] >= ENOUGH_DRAWS else "hint"


def _shuffled_sentence(result: xr.Dataset) -> str:
    gap, low, high = (float(result[f"shuffled_{end}"]) for end in ("mean", "low", "high"))
    if math.isnan(gap):
        return "Control: with sources shuffled within each class, the gap is undefined (one class)."
    said = (
        f"Control: with sources shuffled within each class the gap is {_three(gap)} ({_draws(result, low, high)}); "
        "it should be 0"
    )
    if math.isnan(low):
        inside = "inside" if abs(gap) <= SHUFFLED_BAND else "outside"
        return f"{said}. It is {inside} {_three(-SHUFFLED_BAND)} to {_three(SHUFFLED_BAND)}. {_ONE_DRAW}"
    if abs(gap) <= SHUFFLED_BAND:
        return said + "."
    if low <= 0 <= high:
        return said + ", which the interval holds."
    share = result.n.values / result.n.values.sum()
    left, folded = 1 - float(share @ share), 1 - 1 / int(result.attrs["folds"])
    if (left - folded) * gap < 0:  # the side with more rows to train on is the better one
        more = "cross-validation" if folded > left else "leaving a source out"
        return (
            f"{said}, and it is not quite: cross-validation trains on {_percent(folded)} of the rows, leaving a source out "
            f"on {_percent(left)} on average, and this model is better with more. So much of any gap here is the number "
            f"of rows, in favour of {more}."
        )
    return said + ", and it is not."


def _draws(result: xr.Dataset, low: float, high: float) -> str:
    """Say how many draws a control rests on, and its interval."""
    n = result.sizes["draw"]
    if n == 1:
        return "one draw, so no interval"
    return f"mean of {n} draws, {level_of(result)} {_three(low)} to {_three(high)}"


def level_of(result: xr.Dataset) -> str:
    """Return the level of a result's intervals, as it stands before one.

    Examples
    --------
    >>> level_of(xr.Dataset(attrs={"level": "0.95"}))
    '95 %'
    """
    return f"{100 * float(result.attrs['level']):g} %"


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
