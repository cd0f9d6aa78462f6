"""What a page needs to stand in a notebook cell: soon, as wide as the cell, and in the notebook's theme."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, cast

import panel as pn
from bokeh.document import Document
from bokeh.model import Model
from bokeh.models import Column, InlineStyleSheet
from bokeh.models.ui import UIElement
from panel.custom import JSComponent
from panel.io.notebook import patch_inline_stylesheets
from panel.viewable import Viewable

from dashboards import theme

_CELL = "leakviz-cell"
_BY_WIDTH = re.compile(r"@media(?=[^{]*-width)")


class Ground(JSComponent):
    """Sees what the page stands on, light or dark, and follows the notebook's theme."""

    _esm = Path(__file__).with_name("notebook.js")
    _stylesheets = [":host { position: absolute; width: 0; height: 0 }"]


def in_cell(root: Model) -> None:
    """Make a page's models ready for a notebook cell; anything else is left alone.

    What asks for the window's width is made to ask for the page's: a cell is much narrower than its window.

    Parameters
    ----------
    root : bokeh.model.Model
        Before it joins a document. May be prepared already, in part or in whole.
    """
    elements = [model for model in root.select({"type": UIElement}) if isinstance(model, UIElement)]
    sheets = [_text(sheet) for model in elements for sheet in model.stylesheets]
    if not isinstance(root, Column) or not any("--lv-" in text for text in sheets):
        return
    for model in elements:
        if any(_BY_WIDTH.search(_text(sheet)) for sheet in model.stylesheets):
            model.stylesheets = [
                _BY_WIDTH.sub("@container", _text(sheet)) if _text(sheet) else sheet
                for sheet in model.stylesheets
            ]
    if theme.cell_css() not in root.stylesheets:
        root.stylesheets = [*root.stylesheets, theme.cell_css()]
    if not any(_CELL in child.tags for child in root.children):
        ground = Ground()._get_model(Document(), root)
        ground.tags = [_CELL]
        root.children = [*root.children, cast(UIElement, ground)]


def _text(sheet: Any) -> str:
    """Return what is in a style sheet; nothing of one that is elsewhere."""
    if isinstance(sheet, InlineStyleSheet):
        return str(sheet.css)
    return sheet if isinstance(sheet, str) else ""


def prepare(viewable: Viewable, root: Model, *_: Any) -> None:
    """Prepare what is shown in a notebook, before its models join a document.

    With ``pn.extension(inline=True)`` Panel puts its style sheets into the models itself, but afterwards and one
    by one, and each time the whole document is searched again: a page of nine figures took twenty seconds to show.
    """
    if pn.state.curdoc is not None:
        return
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        in_cell(root)
    if pn.config.inline:
        for model in root.select({"type": UIElement}):
            if isinstance(model, UIElement):
                patch_inline_stylesheets(model)


if prepare not in Viewable._preprocessing_hooks:
    Viewable._preprocessing_hooks.append(prepare)
