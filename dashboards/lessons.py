"""The player of the lessons: it asks before it shows, and keeps what was answered for the visit.

A lesson is data (`leakviz.lessons`). The player shows its text, asks its question, takes an answer by
hand or by keyboard and then shows what came out; the page beside it draws the lesson's world.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import param
from panel.custom import JSComponent

from dashboards import theme
from leakviz.fingerprint import Rule
from leakviz.lessons import Lesson

END, WORLD = "end", "world"  # steps after the last lesson: the answers, and the world to play with

_CSS = theme.css(
    """
:host { display: block; width: 100% }
.player { color: $ink; font: calc(15px * var(--lv-large, 1))/1.45 $font; font-variant-numeric: tabular-nums }
.bar { display: flex; gap: 3px; margin-bottom: 10px; max-width: 600px }
.bar a { flex: 1 1 0; min-width: 0; text-align: center; color: $muted; text-decoration: none; font-size: 12.5px; line-height: 26px; border-top: 3px solid $hair; white-space: nowrap }
.bar a:nth-last-child(-n+3) { flex: 0 0 auto; padding: 0 5px }
.bar button { font: 12.5px/26px $font; color: $muted; background: none; border: 0; border-top: 3px solid transparent; padding: 0 3px; cursor: pointer }
.bar button:hover { color: $ink }
.bar a.done { border-top-color: $muted }
.bar a.on { color: $ink; font-weight: 650; border-top-color: $accent }
.bar a:hover { color: $ink }
h1 { font-size: calc(25px * var(--lv-large, 1)); line-height: 1.25; font-weight: 620; letter-spacing: -.015em; margin: 0 0 8px }
h1.small { font-size: 20px; margin: 0 }
.player[data-step=world] .body { display: flex; flex-wrap: wrap; gap: 0 16px; align-items: baseline }
h2 { font-size: calc(15px * var(--lv-large, 1)); font-weight: 650; margin: 0 0 8px; line-height: 1.35 }
p { margin: 0 }
.text.spent { display: var(--lv-spent, block) } /* before a class on a low screen the answer takes its place */
h1 .m { font-size: .6em; font-weight: 450; letter-spacing: 0; vertical-align: .12em }
.two { display: grid; grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr); gap: 20px 56px; align-items: start; margin-top: 12px }
.help { color: $muted; font-size: calc(12.5px * var(--lv-large, 1)) }
.ask { border-top: 1px solid $hair; margin-top: 12px; padding-top: 10px }
.where { display: block; border-radius: 6px }
.where.open { cursor: pointer; touch-action: manipulation }
.axis { display: block; width: 100%; overflow: visible }
.rail { stroke: $muted; stroke-width: 1.5 }
.tick { stroke: $muted; stroke-width: 1.5 }
.coin { stroke: $muted; stroke-width: 1.5; stroke-dasharray: 2 3 }
text { font: calc(13px * var(--lv-large, 1)) $font; fill: $ink }
text .m { fill: $muted }
text.truth { font-weight: 650 }
text.guess { fill: $accent }
path.truth { fill: $ink }
circle.guess { fill: $bg; stroke: $accent; stroke-width: 2.4 }
.open circle.guess { fill: $accent; fill-opacity: .25 }
.choices { display: flex; flex-direction: column; gap: 6px }
.choices:has(button:disabled) { gap: 4px }
.choices button:disabled { padding: 3px 12px }
.choices button { text-align: left; font: inherit; color: $ink; background: none; border: 1px solid $hair; border-radius: 6px; padding: 7px 12px; cursor: pointer }
.choices button:hover:enabled { border-color: $accent }
.choices button:disabled { cursor: default; color: $muted; opacity: 1 }
.choices button.right { border-color: $accent; color: $ink; box-shadow: inset 0 0 0 1px $accent }
.choices button.mine:not(.right) { border-style: dashed; border-color: $muted }
.m { color: $muted }
.note { margin-bottom: 8px; color: $muted }
.reveal { margin-top: 10px }
.reveal:empty { display: none }
.found { display: block; margin-top: 4px; color: $muted }
.reveal b { font-weight: 680; color: $accent }
.go { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 12px; align-items: center }
.go button { font: calc(14px * var(--lv-large, 1))/1.4 $font; border-radius: 6px; padding: 6px 16px; cursor: pointer }
.main { color: $bg; background: $accent; border: 1px solid $accent }
.main:hover { filter: brightness(1.12) }
.framed { color: $ink; background: none; border: 1px solid $hair }
.framed:hover { border-color: $muted }
.go .plain { color: $muted; background: none; border: 0; padding: 6px 4px; text-decoration: underline; text-underline-offset: 3px }
.go .plain:hover { color: $ink }
.keys { margin-top: 12px }
.also { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 12px }
.also button { font: calc(13px * var(--lv-large, 1))/1.4 $font; color: $ink; background: none; border: 1px solid $hair; border-radius: 6px; padding: 5px 10px; cursor: pointer }
.also button:hover { border-color: $muted }
.also button[aria-pressed=true] { color: $accent; border-color: $accent; box-shadow: inset 0 0 0 1px $accent }
a { color: $accent }
table { border-collapse: collapse; width: 100%; margin-top: 10px; font-size: calc(14px * var(--lv-large, 1)) }
th { text-align: left; font-weight: 400; padding: 4px 10px 4px 0 }
td, th { border-bottom: 1px solid $hair; vertical-align: middle }
thead th { color: $muted; font-size: calc(12.5px * var(--lv-large, 1)) }
tbody th a { color: $ink; text-decoration: none }
tbody th a:hover { text-decoration: underline }
.n { text-align: right; padding-left: 8px; width: 44px }
.pic { width: 44% }
s { color: $muted }
.checks { margin: 0 0 6px; font-size: calc(17px * var(--lv-large, 1)) }
ol { margin: 0; padding-left: 22px }
li { margin: 5px 0 }
[tabindex]:focus-visible, button:focus-visible, a:focus-visible { outline: 2px solid $accent; outline-offset: 2px; border-radius: 4px }
@media (max-width: $narrow) { h1 { font-size: 21px } .bar a, .bar button { line-height: 30px } .two { grid-template-columns: minmax(0, 1fr) } }
"""
)

# What somebody takes home: what to check in a benchmark of one's own.
ENDING: dict[str, Any] = {
    "title": "What to check in your own benchmark",
    "checks": [
        {
            "text": "Compare labels: is a class that you call OOD among those that the detector was fitted on, or the model that makes your features (the backbone) was trained on?",
        },
        {
            "text": f"Ask with labels: does a supervised line tell the class from the rest, at an AUROC of {Rule().gate:g} or more?",
        },
        {
            "text": f"Ask without: does the better of Mahalanobis and kNN (best-unsup) stay below {Rule().tau:g}? Decodable but not detectable is the fingerprint: a suspicion, since a hard class can fire too.",
            "link": "Fingerprint",
            "href": "?page=fingerprint",
        },
        {
            "text": "If the class is in the fit set, take it out and score again. A jump is the evidence of that leak; without one, the class is hard, or the backbone itself knows it.",
            "link": "Audit your embeddings",
            "href": "?page=embeddings",
        },
        {
            "text": "With predictions alone, say first how high an honest risk may be; then look at the records at the top: is a long head of them purer than that? That there is none clears nobody.",
            "link": "Audit your predictions",
            "href": "?page=predictions",
        },
    ],
}
FREE: dict[str, str] = {
    "title": "Explore the world",
    "text": "Everything that the lessons used is yours: sliders, and centres to drag (by keys: Space in the plane, then arrows).",
    "alone": "In this file the switch and alpha are yours. The other sliders, and centres to drag, need the app: leakviz serve.",
}


def course(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """Return what the browser needs of the lessons, with what came out.

    Parameters
    ----------
    lessons : sequence of leakviz.lessons.Lesson

    Returns
    -------
    dict
        For JSON.

    Examples
    --------
    >>> from leakviz.lessons import lessons
    >>> first = course(lessons()[:1])["lessons"][0]
    >>> first["number"], first["kind"]
    (1, 'where')
    """
    told = []
    for one in lessons:
        where = one.kind == "where"
        told.append(
            {
                "number": one.number,
                "title": one.title,
                "text": one.text,
                "question": one.question,
                "kind": one.kind,
                "options": list(one.options),
                "about": {"decodable": "the line", "exclusion": "best-unsup"}.get(one.slug, "the detector"),
                "truth": one.truth() if where else None,
                "answer": one.answer(),
                "reveal": one.reveal,
                "found": one.found(),
                "also": [{"label": further.label, "text": further.text} for further in one.also],
            }
        )
    return {"lessons": told, "ending": ENDING, "world": FREE}


class Player(JSComponent):
    """The text of a step, its question and its answer, and the bar that shows where one is.

    Parameters
    ----------
    lessons : sequence of leakviz.lessons.Lesson
    step : str
        The number of a lesson, `END` or `WORLD`.

    Attributes
    ----------
    guesses : dict
        Number of the lesson, as text, to what was answered: a number from 0 to 1, which option, or None
        where the answer was shown unasked. A lesson that is in it is revealed.
    present : bool
        Whether a class looks on: large type, and the arrow keys lead on and back.
    """

    course = param.String(default="{}", doc="JSON: the lessons, the end, the world.")
    step = param.String(default="1")
    guesses = param.Dict(default={})
    stage = param.Integer(default=0, doc="Of a revealed lesson: its own world (0), or a further case.")
    present = param.Boolean(default=False)
    alone = param.Boolean(default=False, doc="Whether there is no server: steps are then in the file's hash.")

    _esm = Path(__file__).with_name("lessons.js")
    _stylesheets: ClassVar[list[str]] = [_CSS]

    def __init__(self, lessons: Sequence[Lesson], **params: Any):
        super().__init__(course=json.dumps(course(lessons)), **params)

    def revealed(self, step: str) -> bool:
        """Tell whether the answer of a step is on the screen."""
        return step in (END, WORLD) or step in self.guesses


def valid_guesses(guesses: Mapping[str, Any], lessons: Sequence[Lesson]) -> dict[str, Any]:
    """Keep of some answers those that a lesson can have had.

    Examples
    --------
    >>> from leakviz.lessons import lessons
    >>> valid_guesses({"1": 0.7, "99": 0.1, "2": "x"}, lessons())
    {'1': 0.7}
    """
    known = {str(one.number): one for one in lessons}
    kept: dict[str, Any] = {}
    for step, value in guesses.items():
        one = known.get(str(step))
        if one is None:
            continue
        most = 1.0 if one.kind == "where" else len(one.options) - 1
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is None or (number and 0 <= value <= most):
            kept[str(step)] = value
    return kept
