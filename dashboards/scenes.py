"""What a page shows in each of its steps, recorded, so that a file can show it where no server answers.

In the app the server follows the player of the lessons: another step, another table, other figures. A
recording holds, for every step, the attributes of the models that differ between steps, and the browser sets
them. Nothing is computed there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import param
from bokeh.document import Document
from bokeh.model import DataModel
from bokeh.models.ui import UIElement
from panel.custom import JSComponent

from dashboards.lessons import END, WORLD, Player
from leakviz.lessons import Lesson

Scene = tuple[str, bool, int]  # step, whether its answer is on the screen, stage


class Scenes(JSComponent):
    """Shows a recording: follows the player that the page has.

    Parameters
    ----------
    recording : str
        As `record` makes it.
    """

    recording = param.String(default="{}", doc="JSON.")

    _esm = Path(__file__).with_name("scenes.js")


def scenes_of(lessons: Sequence[Lesson]) -> Iterator[Scene]:
    """Yield everything that the player can ask for.

    Examples
    --------
    >>> from leakviz.lessons import lessons
    >>> list(scenes_of(lessons()[:1]))
    [('1', False, 0), ('1', True, 0), ('end', True, 0), ('world', True, 0)]
    """
    for one in lessons:
        step = str(one.number)
        yield step, False, 0
        for stage in range(1 + len(one.also)):
            yield step, True, stage
    yield END, True, 0
    yield WORLD, True, 0


def record(document: Document, player: Player, lessons: Sequence[Lesson]) -> str:
    """Go through every scene, as the player would, and write down what the page then shows.

    Parameters
    ----------
    document : Document
        In which the page stands, outside a session. It is left as it was.
    player : Player
    lessons : sequence of leakviz.lessons.Lesson

    Returns
    -------
    str
        JSON: ``player``, the id of its model; ``start``, the scene that stands; ``blobs``, tables in base64;
        ``scenes``, per scene the id of each model to its attributes.
    """
    start = player.step
    (told,) = {model.data.id for model, _ in player._models.values() if model.document is document}
    watched = [(model, names) for model in document.models if model.id != told and (names := _watched(model))]
    shown: dict[Scene, dict[tuple[str, str], Any]] = {}
    for scene in scenes_of(lessons):
        _show(player, scene)
        shown[scene] = {(m.id, name): getattr(m, name) for m, names in watched for name in names}
    _show(player, (start, start in (END, WORLD), 0))
    first, *others = shown.values()
    changes = [key for key, value in first.items() if any(other[key] != value for other in others)]
    blobs: dict[bytes, int] = {}

    def written(value: Any) -> Any:
        return {"blob": blobs.setdefault(value, len(blobs))} if isinstance(value, bytes) else value

    scenes: dict[str, Any] = {}
    for (step, known, stage), values in shown.items():
        here: dict[str, dict[str, Any]] = {}
        for key in changes:
            here.setdefault(key[0], {})[key[1]] = written(values[key])
        scenes[f"{step} {int(known)} {stage}"] = here
    tables = [base64.b64encode(blob).decode() for blob in blobs]
    stands = f"{start} {int(start in (END, WORLD))} 0"
    return json.dumps({"player": told, "start": stands, "blobs": tables, "scenes": scenes}, allow_nan=False)


def _watched(model: Any) -> list[str]:
    """Return which of a model's attributes a page changes from step to step."""
    if isinstance(model, DataModel):
        return [name for name in model.properties() if name not in ("name", "tags", "subscribed_events")]
    known = model.properties() if isinstance(model, UIElement) else ()
    return [name for name in ("visible", "css_classes", "text") if name in known]


def _show(player: Player, scene: Scene) -> None:
    step, known, stage = scene
    player.param.update(step=step, stage=0, guesses={step: None} if known and step.isdigit() else {})
    if stage:
        player.stage = stage
