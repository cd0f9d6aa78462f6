"""The frame around the pages: navigation, theme and link. No science, no figure."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import param
from panel.custom import JSComponent

from dashboards import theme

_log = logging.getLogger(__name__)

_CSS = theme.css(
    """
:host { display: block; width: 100% }
header { display: flex; align-items: center; gap: 0 24px; min-height: 52px; padding: 0 32px; border-bottom: 1px solid $hair; font: 15px/1.45 $font; color: $ink; box-sizing: border-box }
.wordmark { font-weight: 650; letter-spacing: -.01em; font-size: 17px; color: $ink; text-decoration: none }
nav { display: flex; flex: 0 1 auto; min-width: 0; gap: 15px; overflow-x: auto; scrollbar-width: none }
nav a { color: $muted; text-decoration: none; line-height: 52px; white-space: nowrap }
nav span { line-height: 52px; white-space: nowrap }
nav a.on { color: $ink; box-shadow: inset 0 -2px $accent }
.space { flex: 1; margin-left: -24px }
.told:empty { display: none }
.data, .told { flex: 0 1000 auto; font-size: 13px; color: $muted; min-width: 0; max-width: 300px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
button { font: 13px/1.45 $font; color: $ink; background: none; border: 1px solid $hair; border-radius: 6px; padding: 5px 10px; white-space: nowrap; cursor: pointer }
button:hover { border-color: $muted }
button:focus-visible, a:focus-visible { outline: 2px solid $accent; outline-offset: 2px; border-radius: 3px }
header > button { flex: none }
header > button + button { margin-left: -14px }
@media (max-width: 1400px) { header:not(.saved) .data { display: none } }
@media (max-width: $narrow) { header { position: relative; flex-wrap: wrap; padding: 0 16px; gap: 0 14px } header > button + button { margin-left: -6px } nav { order: 9; flex: 1 0 100%; overflow-x: auto; gap: 15px } nav a { line-height: 40px; font-size: 14px } .wordmark { line-height: 52px } .saved .data { display: none } .told:not(:empty) { position: absolute; top: 52px; right: 16px; z-index: 3; line-height: 38px; padding-left: 12px; background: $bg } }
"""
)

# What stands around the pages, in the app and in a saved page.
FRAME_CSS = theme.css(
    """
main { --lv-rise: -10px; display: block; max-width: 1248px; margin: 0 auto; padding: 22px 32px 40px; box-sizing: border-box }
@media (max-width: $narrow) { main { padding: 16px } }
:root[data-present] { --lv-large: 1.2; --lv-files: none; --lv-spent: none; --lv-plane: calc((100vh - 405px) * 4 / 3); --lv-columns: minmax(440px, 1fr) minmax(0, var(--lv-plane)) minmax(276px, 320px) }
@media (min-height: 860px) { :root[data-present] { --lv-large: 1.3; --lv-spent: block } }
@media (min-height: 1000px) and (min-width: 1700px) { :root[data-present] { --lv-large: 1.5 } }
:root[data-present] #shell { display: none }
:root[data-present] main { max-width: none }
"""
)

# Before anything is painted: the theme of the last visit, else the system's.
HEAD_SCRIPT = """
(() => {
  let theme = null
  try { theme = localStorage.getItem("leakviz-theme") } catch {}
  theme = theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")
  document.documentElement.dataset.theme = theme
})()
"""


class Shell(JSComponent):
    """Header with the pages, the data on show, the theme and the link.

    Attributes
    ----------
    wanted : str
        A query string that the user asks for: a page chosen, or Back and Forward.

    Parameters
    ----------
    save : callable, optional
        Takes the name of a page and returns it as a file: what it is called, and what is in it.
    """

    pages = param.List(default=[], item_type=list, doc="[name, title] of each page.")
    page = param.String(default="", doc="The name of the page that is seen.")
    subject = param.String(default="", doc="What data the page shows.")
    address = param.String(default='{"query": "", "push": false}', doc="JSON; see `go`.")
    wanted = param.String(default="", doc="Set by the browser.")
    saves = param.List(default=[], item_type=str, doc="The names of the pages that can be saved.")
    saved = param.Boolean(default=False, doc="Whether this is a saved page, without a server.")

    _esm = Path(__file__).with_name("shell.js")
    _stylesheets: ClassVar[list[str]] = [_CSS]

    def __init__(self, *, save: Callable[[str], tuple[str, str]] | None = None, **params: Any):
        super().__init__(**params)
        self._save = save

    def _handle_msg(self, data: Any) -> None:
        if self._save is None or data != {"save": self.page} or self.page not in self.saves:
            return
        try:
            name, text = self._save(self.page)
        except Exception:
            _log.exception("%s could not be saved", self.page)
            self._send_msg({"failed": True})
        else:
            self._send_msg({"name": name, "text": text})

    def go(self, query: str, *, push: bool = False) -> None:
        """Put a query string into the address: in place, or as a new entry of the history."""
        self.address = json.dumps({"query": query, "push": push})
