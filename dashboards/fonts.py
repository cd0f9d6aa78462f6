"""Letters that the figures' own typeface lacks: another font of the machine has them, or nobody has.

Figures and reports on paper are set in DejaVu, which comes with matplotlib and holds the Latin, Greek, Cyrillic,
Hebrew and Arabic letters. A name from a user's file can hold any others.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"
# The first draws a box for each letter; those of formulas have signs in places of their own.
_NOBODYS = (
    "Last Resort",
    "LastResort",
    "cmb10",
    "cmex",
    "cmmi",
    "cmr10",
    "cmss",
    "cmsy",
    "cmtt",
    "STIXNon",
    "STIXSize",
)
_BOLD = (600, 700, "semibold", "bold")
_PLAIN = (400, "normal", "regular", "book", "roman")


@lru_cache(maxsize=16384)
def holder(letter: str, family: str = SANS, weight: str = "normal") -> str:
    """Return the font that has a letter: the family itself, else the first other one of the machine; "" for none.

    Examples
    --------
    >>> holder("a"), holder("ש", MONO), holder("\\U0010fffd")
    ('DejaVu Sans', 'DejaVu Sans', '')
    """
    if ord(letter) < 127:
        return family
    known = (name for name in (family, SANS, *_others()) if ord(letter) in _letters(name, weight))
    return next(known, "")


def is_bold(text: str, family: str = SANS) -> bool:
    """Tell whether a text can be set in bold: no letter is there in plain type alone.

    Examples
    --------
    >>> is_bold("bold"), is_bold("שלום")
    (True, True)
    """
    return all(holder(letter, family, "bold") or not holder(letter, family) for letter in text)


def of(text: str, family: str = SANS, *, bold: bool = False) -> dict[str, Any]:
    """Return family and weight of a text, as matplotlib takes them.

    Examples
    --------
    >>> of("plain"), of("שלום", MONO)["family"]
    ({'family': ['DejaVu Sans'], 'weight': 'normal'}, ['DejaVu Sans Mono', 'DejaVu Sans'])
    """
    weight = "bold" if bold and is_bold(text, family) else "normal"
    return {"family": families(text, family, weight), "weight": weight}


def families(text: str, family: str = SANS, weight: str = "normal") -> list[str]:
    """Return the fonts that a text needs, the family first.

    Examples
    --------
    >>> families("plain"), families("שלום", MONO)
    (['DejaVu Sans'], ['DejaVu Sans Mono', 'DejaVu Sans'])
    """
    found = (holder(letter, family, weight) for letter in text if ord(letter) > 126)
    return list(dict.fromkeys([family, *filter(None, found)]))


def lost(text: str) -> set[str]:
    """Return the letters of a text that no font of the machine has.

    Examples
    --------
    >>> lost("Café, שלום")
    set()
    """
    return {
        letter for letter in set(text) if ord(letter) > 126 and letter.isprintable() and not holder(letter)
    }


def lost_in(document: Any) -> set[str]:
    """Return the letters of a document of plain values that no font of the machine has."""
    return lost(json.dumps(document, ensure_ascii=False))


def fall_back(figure: Any) -> set[str]:
    """Give each text of a matplotlib figure the fonts that it needs; return the letters that none has."""
    from matplotlib.text import Text

    none: set[str] = set()
    for text in figure.findobj(Text):
        words = text.get_text()
        if words.isascii():
            continue
        needed = families(words)
        if len(needed) > 1:
            text.set_fontfamily(needed)
        none |= lost(words)
    return none


def says(letters: set[str]) -> str:
    """Say which letters stand as boxes on paper; "" where there are none.

    Examples
    --------
    >>> says(set())
    ''
    >>> says({"\\U0010fffd"})[:47]
    'No font of this machine has 1 of the letters (U'
    """
    if not letters:
        return ""
    named = [f"U+{ord(letter):04X}" for letter in sorted(letters)]
    some = ", ".join(named[:4]) + (f" and {len(named) - 4} more" if len(named) > 4 else "")
    return (
        f"No font of this machine has {len(named)} of the letters ({some}): in the PDF they are empty boxes. The HTML report and "
        "report.json have them; with a font that has them installed, such as Noto, the PDF has them, too."
    )


@lru_cache(maxsize=1)
def _others() -> tuple[str, ...]:
    """Return the other fonts of the machine, sans serif first, in an order that is always the same."""
    from matplotlib.font_manager import fontManager

    plain = (f for f in fontManager.ttflist if f.style == "normal" and f.weight in _PLAIN)
    names = {font.name for font in plain if not font.name.startswith(_NOBODYS)}
    return tuple(sorted(names - {SANS, MONO}, key=lambda name: ("sans" not in name.lower(), name)))


@lru_cache(maxsize=512)
def _letters(family: str, weight: str = "normal") -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

    if weight == "bold" and not any(f.name == family and f.weight in _BOLD for f in fontManager.ttflist):
        return frozenset()
    try:
        found = findfont(FontProperties(family=family, weight=weight), fallback_to_default=False)
        return frozenset(get_font(found).get_charmap())
    except (ValueError, RuntimeError, OSError):  # it was taken away, or cannot be read
        return frozenset()
