"""A table whose columns sort it: plain texts and numbers, sorted in the browser.

The page writes rows, the browser shows them: a name from a file never becomes HTML.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import param
from panel.custom import JSComponent

from dashboards import theme

_CSS = theme.css(
    """
:host { display: block; width: 100% }
.scroll { overflow: auto; max-height: 330px; border-top: 1px solid $hair; border-bottom: 1px solid $hair }
.scroll:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
table { font-size: 13px }
thead th { position: sticky; top: 0; background: $bg; padding: 0; border-bottom: 1px solid $muted }
thead button { color: $muted; font-size: 12.5px; padding: 6px 0; width: 100%; text-align: left; white-space: nowrap }
thead th.n button { text-align: right }
thead button:hover { color: $ink }
thead button span { display: inline-block; width: 1em; text-align: center }
th + th, td { padding-left: 14px !important }
tbody th { max-width: 260px; overflow: hidden; text-overflow: ellipsis }
td, tbody th { padding-top: 3px; padding-bottom: 3px }
td { font-variant-numeric: tabular-nums }
caption { text-align: left; position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
"""
)


class Listing(JSComponent):
    """A table that a press on a heading sorts, and a second press the other way.

    Attributes
    ----------
    table : str
        JSON: ``caption``; ``columns``, per column its heading and whether it holds numbers; ``rows``, lists of
        [what is shown, what it is sorted by], the latter None where undefined: last either way.
    """

    table = param.String(default='{"caption": "", "columns": [], "rows": []}', doc="JSON.")

    _esm = Path(__file__).with_name("listing.js")
    _stylesheets: ClassVar[list[str]] = [theme.TEXT_CSS, _CSS]

    def write(
        self, frame: pd.DataFrame, *, caption: str, digits: int = 3, undefined: Sequence[str] = ()
    ) -> None:
        """Show a data frame in the table.

        Parameters
        ----------
        frame : pandas.DataFrame
            Its columns' names are the headings.
        caption : str
            What the table lists, for a screen reader.
        digits : int
            Of numbers that are not whole.
        undefined : sequence of str
            What a row shows in the place of a number that is nan, one per row; "undefined" where it is "".
        """
        columns = [[str(c), frame[c].dtype.kind in "iuf"] for c in frame.columns]
        why = list(undefined) or [""] * len(frame)
        cells = [_cells(frame[c].to_numpy(), digits, why) for c in frame.columns]
        rows = [list(row) for row in zip(*cells, strict=True)]
        self.table = json.dumps({"caption": caption, "columns": columns, "rows": rows}, allow_nan=False)


def _cells(values: np.ndarray, digits: int, why: Sequence[str]) -> list[list[Any]]:
    if values.dtype.kind in "iu":
        return [[f"{v:,}", int(v)] for v in values]
    if values.dtype.kind == "f":
        return [
            [f"{v:.{digits}f}".replace("-", "−"), float(v)] if np.isfinite(v) else [w or "undefined", None]
            for v, w in zip(values, why, strict=True)
        ]
    return [[str(v), str(v)] for v in values]
