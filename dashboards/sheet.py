"""What stands below the strip for a file: what is asked about it, what was found, what is on the shelf.

The page writes plain texts, the browser shows them and sends back what is chosen: a name from a file
never becomes HTML.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import param
from panel.custom import JSComponent

from dashboards import theme

EMPTY: dict[str, Any] = {"alert": [], "retry": None, "intro": [], "file": None, "shelf": []}

_CSS = theme.css(
    """
:host { display: block; width: 100% }
.two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 36px; align-items: start }
.two[hidden], h2[hidden] { display: none }
[data-slot=alert]:not(:empty), [data-slot=retry]:not(:empty) { margin-bottom: 16px }
section { margin-bottom: 22px }
[data-slot=intro] { display: grid; grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr); gap: 22px 48px; align-items: start }
[data-slot=intro]:empty { display: none }
.block > * + * { margin-top: 8px }
ol { margin: 4px 0 0; padding: 0 0 0 18px; font-size: 14px }
ol li { padding: 3px 0 }
ol li::marker { color: $muted }
code { font-size: 12.5px; overflow-wrap: anywhere }
pre { margin: 4px 0 0; padding: 8px 12px; background: $soft; border-radius: 6px; overflow-x: auto; font-size: 12.5px; line-height: 1.5 }
pre:focus-visible { outline: 2px solid $accent; outline-offset: 2px }
.alert { color: $alarm; max-width: 900px; margin: 0; overflow-wrap: anywhere }
.alert + .alert { margin-top: 4px }
fieldset { border: 0; border-left: 2px solid $hair; margin: 0 0 18px; padding: 0 0 0 14px; min-width: 0 }
fieldset.open { border-left-color: $accent }
legend { float: left; width: 100%; padding: 0; margin: 0 0 6px; overflow-wrap: anywhere }
legend + * { clear: both }
legend .role, .row label { font-weight: 620 }
.role::after { content: "." }
.option { display: flex; gap: 8px; align-items: baseline; padding: 3px 0; font-size: 14px }
.option label { overflow-wrap: anywhere }
input[type=radio] { accent-color: $accent; width: 16px; height: 16px; margin: 0; flex: none; position: relative; top: 2px }
input:focus-visible, summary:focus-visible, h2:focus-visible, .wide:focus-visible { outline: 2px solid $accent; outline-offset: 2px; border-radius: 3px }
.quiet { font-size: 13px; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: $hair }
.quiet:hover { color: $ink }
[data-slot=act] { display: flex; flex-wrap: wrap; gap: 8px 10px; align-items: center; margin: 4px 0 22px }
[data-slot=act] .small { flex: 1 1 200px }
.primary { background: $accent; color: $bg; border-radius: 6px; padding: 7px 14px }
.primary:hover { filter: brightness(1.12) }
.primary:disabled { background: $soft; color: $muted; cursor: default; filter: none }
[data-slot=rest] { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 12px 20px; margin-top: 10px }
.row label { display: block; font-size: 13px }
.row select { width: 100%; margin: 3px 0 }
.row .small { font-size: 12.5px }
[data-role=features] { grid-column: 1 / -1 }
.many fieldset { border: 0; margin: 0; padding: 0 }
.many legend { font-size: 13px; font-weight: 620; margin: 0 }
.many .ticks { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 0 16px; max-height: 190px; overflow-y: auto; margin: 3px 0; padding: 2px }
.ticks input { accent-color: $accent; width: 16px; height: 16px; margin: 0; flex: none; position: relative; top: 2px }
.ticks .option { min-width: 0 }
.ticks .option label { font-weight: 400; font-size: 14px; min-width: 0 }
dl { display: grid; grid-template-columns: auto minmax(0, 1fr); margin: 6px 0 0; font-size: 13.5px }
dt, dd { margin: 0; padding: 5px 0; border-bottom: 1px solid $hair }
dt { color: $muted; padding-right: 24px }
dd { overflow-wrap: anywhere }
ul { margin: 10px 0 0; padding: 0; list-style: none; font-size: 13.5px }
[data-slot=found] li { padding: 3px 0 3px 14px; text-indent: -14px; overflow-wrap: anywhere }
[data-slot=found] li::before { content: "–"; color: $muted; display: inline-block; width: 14px; text-indent: 0 }
[data-slot=things]:not(:empty), [data-slot=preview]:not(:empty) { margin: 22px 0 0 }
.block table { width: auto; min-width: 60% }
.block td, .block th, [data-slot=preview] td, [data-slot=preview] th { padding: 5px 24px 5px 0; font-variant-numeric: tabular-nums; text-align: left }
[data-slot=preview] table { width: auto; min-width: 100% }
thead th { color: $muted; font-weight: 400 }
.gone { color: $muted; font-style: italic }
.wide { overflow-x: auto; margin-top: 4px }
.things { width: auto; min-width: 100% }
.things td, .things th { padding: 5px 24px 5px 0; font-variant-numeric: tabular-nums; text-align: left; white-space: normal; overflow-wrap: anywhere; vertical-align: baseline }
.things th { max-width: 320px }
.use { display: inline-block; margin-left: 7px; color: $accent; font-size: 12.5px; font-weight: 620 }
.shelf li { border-bottom: 1px solid $hair; padding: 6px 0 8px }
.shelf { margin-top: 4px; border-top: 1px solid $hair }
.line { display: flex; flex-wrap: wrap; gap: 2px 16px; align-items: baseline; font-size: 14px }
.line .name { font-weight: 620; overflow-wrap: anywhere }
.line .grow { flex: 1 1 0 }
.line .m { font-size: 13px }
.line a, .line button, summary { font-size: 13px }
summary { color: $muted; cursor: pointer; width: fit-content; padding: 3px 0 }
details p { max-width: 900px; margin-top: 4px; overflow-wrap: anywhere }
.again { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; margin: 0; font-size: 13px }
.again input { font: inherit; color: $ink; background: $bg; border: 1px solid $hair; border-radius: 6px; padding: 4px 6px }
.again .small { flex: 1 0 100% }
@media (max-width: $narrow) { .two, [data-slot=intro] { grid-template-columns: minmax(0, 1fr); gap: 22px } }
@media (max-width: 420px) { [data-slot=rest] { grid-template-columns: minmax(0, 1fr) } .line .grow { display: none } }
"""
)


class Sheet(JSComponent):
    """The sheet of one page.

    Attributes
    ----------
    page : str
        JSON of a dict with the keys of `EMPTY`.

        ``alert`` : list of str
        ``retry`` : None, or role, label, text and options of something to read the file again with.
        ``intro`` : blocks of heading, table (label, header, rows), steps, code, notes and button (do, words), what is left
        out is not shown.
        ``file`` : None, or ``ready``, ``verb`` (what the button says; none without), ``words``, ``questions`` and
        ``rest`` (fields: role, label, text, options, value, said; of several answers with ``ticked``, whose answer comes
        as JSON), ``facts`` (pairs), ``decided``
        (sentences), ``things`` (heading, rows of name, facts and use, more), and where there is one
        ``preview`` (header of name and use, rows) and ``used``: the answer has just come, above.
        ``shelf`` : per entry name, title, verdict, size, explain (paragraphs), source, links (words,
        address) and acts (do, words).
    """

    page = param.String(default=json.dumps(EMPTY), doc="JSON.")

    _esm = Path(__file__).with_name("sheet.js")
    _stylesheets: ClassVar[list[str]] = [theme.TEXT_CSS, _CSS]

    def __init__(self, said: Callable[[dict[str, str]], object], **params: Any):
        """Take what is called with a message: ``do``, and role, value or name."""
        super().__init__(**params)
        self._said = said

    def _handle_msg(self, data: Any) -> None:
        if isinstance(data, dict):
            self._said({key: str(value) for key, value in data.items()})
