"""What a page needs to stand in a notebook cell soon."""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.model import Model
from bokeh.models.ui import UIElement
from panel.io.notebook import patch_inline_stylesheets
from panel.viewable import Viewable


def inline_styles(_: Any, root: Model, *__: Any) -> None:
    """Put Panel's style sheets into the models before they join a document.

    With ``pn.extension(inline=True)`` Panel does so itself, but afterwards and one by one, and each time the whole
    document is searched again: a page of nine figures took twenty seconds to show.
    """
    if pn.config.inline and pn.state.curdoc is None:
        for model in root.select({"type": UIElement}):
            if isinstance(model, UIElement):
                patch_inline_stylesheets(model)


if inline_styles not in Viewable._preprocessing_hooks:
    Viewable._preprocessing_hooks.append(inline_styles)
