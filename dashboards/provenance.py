"""Where the numbers on a page are from: what they are called, their source, and a hash of their content."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from dashboards import batteries
from dashboards.shelf import OWN, Audit, Vector


class Source(NamedTuple):
    """One of the data that a page shows, as plain text: a user's file name may be in it.

    Attributes
    ----------
    title, source : str
    content_hash : str
        SHA-256 of the content, or of what it was computed from; "" where the parameters are all there is.
    """

    title: str
    source: str
    content_hash: str = ""


def sources(page: Any) -> list[Source]:
    """Return what a page shows, in the order in which it shows it.

    Parameters
    ----------
    page : Viewer
        One of the app's pages.

    Returns
    -------
    list of Source

    Examples
    --------
    >>> from dashboards.fingerprint import FingerprintPage
    >>> [(s.title, s.content_hash[:8]) for s in sources(FingerprintPage())]
    [('Controlled validation of the leak fingerprint, 52 settings', 'b1e3f139')]
    """
    kind = type(page).__name__
    if kind == "FingerprintPage":
        return [_of_battery(page.shown_battery)]
    if kind == "AuditPage":
        return [_of_battery(batteries.published()), _of_battery(batteries.computed())]
    if kind == "WhiteningPage":
        return [_of_features(page.state)]
    if kind in ("PurityPage", "CalibrationPage"):
        slots = ("first", "beside", "third") if kind == "PurityPage" else ("vector",)
        chosen = dict.fromkeys(getattr(page.state, slot) for slot in slots)
        return [_of_vector(page.shelf.get(name)) for name in chosen if name in page.shelf.names()]
    if kind == "LodoPage":
        shown, attrs = page.shown, page.answer().attrs
        known = attrs.get("content_hash") or attrs.get("source_hash") or attrs.get("input_hash") or ""
        return [Source(shown.title, shown.source, str(known) or _hash_of_dataset(page.answer()))]
    if kind == "MechanismPage":
        return [
            Source("simulated by leakviz", "arXiv 2607.19393 and 2606.11267; the parameters are the data")
        ]
    raise ValueError(f"{kind} shows no data of which the source is known")


def hash_of_arrays(*arrays: np.ndarray | None) -> str:
    """Return the SHA-256 of some arrays' numbers, as `leakviz.read_predictions` computes it for a file.

    Examples
    --------
    >>> hash_of_arrays(np.array([0.25, 0.5]), np.array([0, 1], dtype=np.int8))[:8]
    'b7a38e38'
    """
    content = hashlib.sha256()
    for array in arrays:
        if array is not None:
            content.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return content.hexdigest()


def _of_battery(battery: batteries.Battery) -> Source:
    attrs = battery.dataset.attrs
    own = battery.name.startswith(OWN)
    return Source(
        battery.title if own else str(attrs["title"]),
        battery.source if own else str(attrs["source"]),
        str(attrs["content_hash"]),
    )


def _of_features(state: Any) -> Source:
    audit: Audit | None = state.audit()
    if audit is not None:
        return Source(audit.title, "your own features", hash_of_arrays(audit.id_test, audit.ood_test))
    name = state.features
    source = str(batteries.computed().dataset.attrs["source"])
    return Source(
        f"features of {name}, computed by leakviz", source, batteries.backbone(name).facts["content_hash"]
    )


def _of_vector(vector: Vector) -> Source:
    y = vector.y.astype(np.int8)
    return Source(vector.title, vector.source, hash_of_arrays(np.asarray(vector.p, float), y, vector.folds))


def _hash_of_dataset(dataset: Any) -> str:
    content = hashlib.sha256()
    for name in sorted(map(str, dataset.data_vars)):
        values = dataset[name].values
        text = values.dtype.kind in "OUS"
        content.update(name.encode())
        content.update("\0".join(map(str, values.ravel())).encode() if text else values.tobytes())
    return content.hexdigest()
