"""Where the data are that leakviz ships."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path

from leakviz.errors import InputError

_PACKAGE = Path(__file__).resolve().parent


def data_dir() -> Path:
    """Return the folder that holds the shipped data.

    Looked for in this order: the environment variable ``LEAKVIZ_DATA``, the
    folder ``data`` beside the package (a checkout), the folder ``data`` inside
    the package (an installed wheel).

    Returns
    -------
    pathlib.Path
        An existing folder.

    Raises
    ------
    InputError
        If ``LEAKVIZ_DATA`` is set but is no folder, or if there is none at all.

    Examples
    --------
    >>> (data_dir() / "published" / "battery_table12.csv").is_file()
    True
    """
    chosen = os.environ.get("LEAKVIZ_DATA")
    if chosen:
        folder = Path(chosen)
        if folder.is_dir():
            return folder
        raise InputError(
            f"LEAKVIZ_DATA is {chosen!r}, which is no folder; "
            "set it to a folder that contains 'published', or unset it"
        )
    for folder in (_PACKAGE.parent / "data", _PACKAGE / "data"):
        # Site-packages may hold somebody else's "data": ours has a folder "published".
        if (folder / "published").is_dir():
            return folder
    raise InputError(
        f"no data folder beside or inside {_PACKAGE}; "
        "install leakviz again, or set LEAKVIZ_DATA to a copy of the repository's 'data' folder"
    )


def write_whole(target: Path, content: bytes | str) -> None:
    """Write a file beside its place and rename it, so that nobody ever sees half of it.

    Parameters
    ----------
    target : pathlib.Path
        An existing file is replaced.
    content : bytes or str
        Text is written as UTF-8.
    """
    write_all({target: content})


def write_all(contents: Mapping[Path, bytes | str]) -> None:
    """Write files beside their places, and put them there when all of them are whole.

    Parameters
    ----------
    contents : mapping of pathlib.Path to bytes or str
        As `write_whole` takes them.
    """
    made: dict[Path, Path] = {}
    try:
        for target, content in contents.items():
            made[target] = target.with_name(f".{target.name}-{uuid.uuid4().hex}.tmp")
            made[target].write_bytes(content if isinstance(content, bytes) else content.encode())
        for target, temporary in made.items():
            temporary.replace(target)
    finally:
        for temporary in made.values():
            temporary.unlink(missing_ok=True)
