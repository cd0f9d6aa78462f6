"""The state of each page that a report can hold, with what a session can choose from, and without the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboards import (
    audit,
    audit_answers,
    batteries,
    calibration,
    fingerprint,
    lodo,
    mechanism,
    purity,
    whitening,
)
from dashboards.page_file import computed
from dashboards.report_content import SplitPage, SplitState
from dashboards.shelf import Shelf
from dashboards.state import OWN, PageState, asked_of

TITLES = {
    "fingerprint": fingerprint.TITLE,
    "whitening": whitening.TITLE,
    "audit": audit.TITLE,
    "purity": purity.TITLE,
    "calibration": calibration.TITLE,
    "lodo": lodo.TITLE,
    "learn": mechanism.TITLE,
    "embeddings": SplitPage.title,
}


_STATES: dict[str, type[PageState]] = {
    "fingerprint": fingerprint.FingerprintState,
    "whitening": whitening.WhiteningState,
    "audit": audit.AuditState,
    "purity": purity.PurityState,
    "calibration": calibration.CalibrationState,
    "lodo": lodo.LodoState,
    "learn": mechanism.MechanismState,
    "embeddings": SplitState,
}


def state_of(name: str, shelf: Shelf, made: Mapping[str, Any]) -> PageState:
    """Return the state with which a page starts, ready to read a link.

    Parameters
    ----------
    name : str
        A key of `TITLES`.
    shelf : Shelf
        The session's own data.
    made : mapping of str to Viewer
        The pages that were visited in this session; some have computed what is on no shelf.

    Examples
    --------
    >>> state = state_of("purity", Shelf(), {})
    >>> state.read("delta=0.1&first=zzz")
    ['The link asks for predictions “zzz”, which is not here; flchain, logistic regression, honest is shown.']
    """
    state: Any = _STATES[name]()
    if name == "fingerprint":
        state.offer(shelf.batteries)
    elif name == "whitening":
        state.offer(shelf.audits)
    elif name == "audit":
        state.param["chosen"].objects = audit_answers.page_answers()["chosen"].values.tolist()
    elif name == "purity":
        state.shelf = shelf
        state.offer(shelf.names())
    elif name == "calibration":
        state.shelf = shelf
        state.param["vector"].objects = shelf.names()
    elif name == "lodo":
        for subject in computed(made.get("lodo")):
            state.offer(subject)
    elif name == "embeddings":
        state.param["audit"].objects = ["", *getattr(made.get("embeddings"), "results", {})]
    return state


def written(state: PageState) -> str:
    """Write a state as a link that names its data also where they are the default: a session with own data starts with those.

    Examples
    --------
    >>> written(state_of("lodo", Shelf(), {}))
    'case=harm_scored_responses&threshold=0.5&firing=1.5'
    """
    query = state.query()
    for name in state.chooses[:1]:
        if f"&{name}=" not in f"&{query}":
            query = "&".join(filter(None, (f"{name}={getattr(state, name)}", query)))
    return query


def start_of(name: str, shelf: Shelf) -> tuple[str, str]:
    """Return the state with which a page starts that was not visited, and what the data are called that it brings.

    Examples
    --------
    >>> start_of("purity", Shelf()), start_of("learn", Shelf())
    (('', 'flchain, logistic regression, honest'), ('', ''))
    """
    slot = {"purity": "first", "calibration": "vector"}.get(name)
    if slot and shelf.own:
        newest, beside = shelf.own[-1], "&beside=none&third=none" if name == "purity" else ""
        return f"{slot}={newest.name}{beside}", newest.title
    if slot:
        return "", shelf.title(_STATES[name].param[slot].default)
    if name == "lodo":
        return "", lodo.CASES[lodo.LodoState.param["case"].default]
    return "", f"the {batteries.TITLES[batteries.PUBLISHED]} battery" if name == "fingerprint" else ""


def readable(name: str, query: str, shelf: Shelf) -> str:
    """Write a section's state as people read it: labels for names, titles for data, and nothing of what is left empty.

    Examples
    --------
    >>> readable("purity", "first=flchain__lr__chapter&beside=none&delta=0.1", Shelf())
    'predictions flchain, logistic regression, leak: chapter of the cause of death; delta 0.1'
    >>> readable("calibration", "vector=own:0123456789ab", Shelf()), readable("learn", "", Shelf())
    ('predictions of a file that is not here', 'as it starts')
    """
    declared, told = _STATES[name], []
    own = {one.name: one.title for one in shelf.own}
    own |= {one.name: one.title for one in shelf.batteries} | {one.name: one.title for one in shelf.audits}
    for key, value in asked_of(query).items():
        label = str(declared.param[key].label).lower() if key in declared.param else key
        if value in ("", "none") and key in declared.chooses:
            continue
        if value.startswith(OWN):
            # A table with sources, and a split, are held by their pages and on no shelf.
            lost = "of your own" if name in ("lodo", "embeddings") else "of a file that is not here"
            told.append(f"{label} {own.get(value, lost)}")
        elif key in declared.chooses:
            told.append(
                f"{label} {shelf.title(value) if value in shelf.names() else lodo.CASES.get(value, value)}"
            )
        else:
            told.append(f"{label} {value}")
    return "; ".join(told) or "as it starts"
