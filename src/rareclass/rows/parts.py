"""The files that together are one table."""

from collections.abc import Sequence
from pathlib import Path

from rareclass.errors import InputError


def find_parts(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The file itself, or what is below a folder and ends so, sorted by name.

    Names that start with a dot or an underscore are left out: others keep notes under them.

    Raises
    ------
    InputError
        When a folder holds none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(
        part
        for part in path.rglob("*")
        if part.name.lower().endswith(tuple(suffixes))
        and part.is_file()
        and not any(name.startswith((".", "_")) for name in part.relative_to(path).parts)
    )
    if not found:
        raise InputError(f"The folder {path} holds no {suffixes[0]} file.", "Check the name.")
    return found


def check_parts_agree(first: Path, expected: Sequence[str], part: Path, names: set[str]) -> None:
    """Raise `InputError` when a part of a table lacks a column that the first part has."""
    for name in expected:
        if name not in names:
            raise InputError(
                f"{part} lacks the column {name!r}, which {first} has.",
                "All parts of a table need the same columns: write it again, move it away, or "
                "leave the column out with columns=.",
            )
