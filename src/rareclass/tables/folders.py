"""Which format a file is of, and which files of a folder are one table, in which order."""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import cast

from rareclass.errors import ErrorKind, InputError
from rareclass.files import Location
from rareclass.remote import RemotePath
from rareclass.tables.byte_streams import cannot_open, plain_suffix

FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
SVMLIGHT_SUFFIXES = (".svmlight", ".libsvm", ".svm")
SNIFFED_BYTES = 1 << 16
_FIELD = rb"[ \t]+(?:qid|\d+):[-+.\deE]+"
_WHOLE_LINE = re.compile(rb"\S+(?:" + _FIELD + rb")+\s*(?:#.*)?", re.DOTALL)
_LINE_CUT_SHORT = re.compile(rb"\S+(?:" + _FIELD + rb")+")
# In each folder that `rareclass stream` keeps its state in: its tables are not the user's.
STREAM_LOCK = "rareclass-stream.lock"
FORMAT_NAMES = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}


def format_of_name(path: Path) -> str | None:
    """The format of a file by its suffix: csv, jsonl, parquet, or None.

    Examples
    --------
    >>> format_of_name(Path("a.tsv.gz")), format_of_name(Path("a.csv.tmp"))
    ('csv', None)
    """
    return FORMAT_OF_SUFFIX.get(plain_suffix(path))


def looks_like_svmlight(head: bytes) -> bool:
    """Say whether a text that begins so has svmlight in its first line that is no comment."""
    lines = head.splitlines(keepends=True)
    first = next((line for line in lines if line.strip() and line[:1] != b"#"), b"")
    is_whole = first.endswith(b"\n") or len(head) < SNIFFED_BYTES
    return bool(_WHOLE_LINE.fullmatch(first) if is_whole else _LINE_CUT_SHORT.match(first))


def find_parts(path: Path, wanted: str | None = None) -> list[Path]:
    """The file itself, or the tables in and below a folder, sorted by name: all of one format.

    Names that begin with a dot or an underscore are left out, of files and of folders: others keep
    notes under them. So are files with other suffixes than those of tables, which are the names of
    files that are still being written, empty files of text, and folders in which a stream keeps
    what it has learned.

    Raises `InputError` when a folder holds no table of the format `wanted`, by default any; when it
    holds tables of several and none is wanted; or when one below it may not be read.
    """
    if not path.is_dir():
        return [path]
    parts = [part for part in tables_in(path) if has_content(part)]
    if wanted is not None:
        parts = [part for part in parts if format_of_name(part) == wanted]
    if not parts:
        kind = f"{FORMAT_NAMES[wanted]} file" if wanted else "table"
        suffixes = [s for s, name in FORMAT_OF_SUFFIX.items() if wanted in (None, name)]
        raise InputError(
            f"There is no {kind} in the folder {path}.",
            f"Tables are named {', '.join(suffixes)}.",
            ErrorKind.MISSING_FILE,
        )
    check_one_format(parts[0], parts)
    return parts


def tables_in(folder: Path) -> list[Path]:
    """All that is named like a table in a folder and below it, sorted; see `find_parts`."""
    if isinstance(folder, RemotePath):
        return _tables_of(cast(list[Path], folder.files()), folder)
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        """Left out, its rows would be missing without a word."""
        if isinstance(error, FileNotFoundError):
            if Path(error.filename) != folder:  # tidied away in the meantime
                return
            raise cannot_open(folder, error) or error
        raise InputError(
            f"The folder {error.filename} may not be read: {error.strerror}.",
            "Allow it, or move it away if its rows are not wanted.",
            ErrorKind.MISSING_FILE,
        ) from error

    for below, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        if STREAM_LOCK in names and Path(below) != folder:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [
            Path(below, name)
            for name in names
            if not name.startswith((".", "_")) and format_of_name(Path(name)) is not None
        ]
    return sorted(found)


def _tables_of(files: list[Path], folder: Path) -> list[Path]:
    """Those of a remote folder's files that are tables of its own."""
    own = {path: path.relative_to(folder).parts for path in files}
    of_streams = {parts[:-1] for parts in own.values() if parts[-1] == STREAM_LOCK} - {()}
    return sorted(
        path
        for path, parts in own.items()
        if not any(part.startswith((".", "_")) for part in parts)
        and format_of_name(path) is not None
        and not any(parts[: len(below)] == below for below in of_streams)
    )


def has_content(path: Path) -> bool:
    """Say whether a table is there, and is no empty file of text."""
    try:
        return path.is_file() and (format_of_name(path) == "parquet" or path.stat().st_size > 0)
    except FileNotFoundError:  # renamed in the meantime
        return False


def check_one_format(first: Path, parts: Sequence[Path]) -> None:
    """Raise `InputError` when a part of a table is of another format than the first."""
    for part in parts:
        if format_of_name(part) != format_of_name(first):
            names = [FORMAT_NAMES[format_of_name(each) or ""] for each in (part, first)]
            raise InputError(
                f"{part} is {names[0]}, {first} is {names[1]}: a folder is one table, of one "
                "format.",
                "Move one of them away, or let its name begin with _.",
                ErrorKind.FILE_FORMAT,
            )


def check_columns_agree(
    first: Location,
    expected: Sequence[str],
    part: Location,
    found: Collection[str],
    exactly: bool = False,
) -> None:
    """Raise `InputError` when a part of a table has not the columns that the first part has.

    More columns than those expected are a fault where they are to agree `exactly`.
    """
    remedy = (
        "All parts of a table need the same columns: write it again, move it away, or "
        "leave the column out with columns=."
    )
    if exactly:
        remedy = "All parts of a table need the same columns: write it again, or move it away."
    lacking = [name for name in expected if name not in found]
    if lacking:
        raise InputError(
            f"{part} lacks the column {lacking[0]!r}, which {first} has.",
            remedy,
            ErrorKind.MISSING_COLUMN,
        )
    more = [name for name in found if name not in expected]
    if exactly and more:
        raise InputError(
            f"{part} has a column {more[0]!r}, which {first} lacks.",
            remedy,
            ErrorKind.MISSING_COLUMN,
        )
