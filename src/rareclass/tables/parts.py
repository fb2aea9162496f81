"""The files that together are one table."""

import os
from collections.abc import Sequence
from pathlib import Path

from rareclass.errors import InputError


def find_parts(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The file itself, or what is below a folder and ends so, sorted by name.

    Names that start with a dot or an underscore are left out: others keep notes under them.

    Raises
    ------
    InputError
        When a folder holds none, or one below it may not be read.
    """
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    for folder, below, names in os.walk(path, onerror=_refuse, followlinks=True):
        below[:] = [name for name in below if not name.startswith((".", "_"))]
        found += [
            Path(folder, name)
            for name in names
            if name.lower().endswith(tuple(suffixes)) and not name.startswith((".", "_"))
        ]
    if not found:
        raise InputError(f"The folder {path} holds no {suffixes[0]} file.", "Check the name.")
    return sorted(found)


def _refuse(error: OSError) -> None:
    """Left out, its rows would be missing without a word."""
    raise InputError(
        f"The folder {error.filename} may not be read: {error.strerror}.",
        "Allow it, or move it away if its rows are not wanted.",
    ) from error


def check_parts_agree(first: Path, expected: Sequence[str], part: Path, names: set[str]) -> None:
    """Raise `InputError` when a part of a table lacks a column that the first part has."""
    for name in expected:
        if name not in names:
            raise InputError(
                f"{part} lacks the column {name!r}, which {first} has.",
                "All parts of a table need the same columns: write it again, move it away, or "
                "leave the column out with columns=.",
            )
