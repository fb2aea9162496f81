"""Formats of files, and the files of a folder that are one table, in their order."""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import unquote

import polars as pl
import pyarrow as pa

from rareclass.errors import ErrorKind
from rareclass.files import Location
from rareclass.remote import RemotePath
from rareclass.tables import TextSettings
from rareclass.tables.byte_streams import StoredFile, cannot_open, plain_suffix
from rareclass.tables.cells import numbers_in
from rareclass.tables.dialect import MARKS
from rareclass.tables.parquet import ParquetFile
from rareclass.tables.text_reader import Batch, TextReader

_FORMAT_OF_SUFFIX = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}
FORMAT_NAMES = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet", "svmlight": "svmlight"}
# In each folder that `rareclass stream` keeps its state in: its tables are not the user's.
STREAM_LOCK = "rareclass-stream.lock"
_SNIFFED_BYTES = 1 << 16
_FIELD = rb"[ \t]+(?:qid|\d+):[-+.\deE]+"
_WHOLE_LINE = re.compile(rb"\S+(?:" + _FIELD + rb")+\s*(?:#.*)?", re.DOTALL)
_LINE_CUT_SHORT = re.compile(rb"\S+(?:" + _FIELD + rb")+")


def format_of_name(path: Path) -> str | None:
    """Return the format of a file by its suffix: csv, jsonl, parquet, or None.

    >>> format_of_name(Path("a.tsv.gz")), format_of_name(Path("a.csv.tmp"))
    ('csv', None)
    """
    return _FORMAT_OF_SUFFIX.get(plain_suffix(path))


def format_of_file(stored: StoredFile, text: TextSettings) -> str:
    """Return the format of a file: Parquet by its first bytes, others by suffix or content.

    A file whose name says nothing is CSV where its separator is given. Raises `InputError` for
    settings of a text that a file of this format has no use for.
    """
    suffix = plain_suffix(stored.path)
    named = _FORMAT_OF_SUFFIX.get(suffix)
    if stored.magic == b"PAR1":
        found = "parquet"
    elif suffix in (".svmlight", ".libsvm", ".svm"):
        found = "svmlight"
    elif named is not None and suffix != ".txt":  # text of any kind
        found = named
    elif text.separator is not None:
        found = "csv"
    else:
        head = stored.head(_SNIFFED_BYTES)
        found = "svmlight" if _looks_like_svmlight(head) else format_of_text(head)
    if found != "csv":
        text.check(stored.path, f"a {FORMAT_NAMES[found]} file", is_text=found == "jsonl")
    return found


def format_of_text(start: bytes) -> str:
    """Say whether a text that begins so is taken for JSON lines or for CSV."""
    mark = next(filter(start.startswith, MARKS), b"")
    text = start[len(mark) :].decode(MARKS.get(mark, "utf-8"), "replace")
    return "jsonl" if text.lstrip().startswith("{") else "csv"


def _looks_like_svmlight(head: bytes) -> bool:
    """Say whether the first line that is no comment is one of svmlight."""
    lines = head.splitlines(keepends=True)
    first = next((line for line in lines if line.strip() and line[:1] != b"#"), b"")
    is_whole = first.endswith(b"\n") or len(head) < _SNIFFED_BYTES
    return bool(_WHOLE_LINE.fullmatch(first) if is_whole else _LINE_CUT_SHORT.match(first))


def find_parts(path: Path) -> list[Path]:
    """Return the file itself, or the tables in and below a folder by name, all of one format.

    Names that begin with a dot or an underscore are left out, of files and of folders: others keep
    notes under them. So are files with other suffixes than those of tables, which are the names of
    files that are still being written, empty files of text, and folders in which a stream keeps
    what it has learned.

    Raises `InputError` when a folder holds no table, or tables of several formats, or when one
    below it may not be read.
    """
    if not path.is_dir():
        return [path]
    parts = [part for part in tables_in(path) if has_content(part)]
    if not parts:
        raise ErrorKind.MISSING_FILE.error(
            f"There is no table in the folder {path}.",
            f"Tables are named {', '.join(_FORMAT_OF_SUFFIX)}.",
        )
    check_one_format(parts[0], parts)
    return parts


def tables_in(folder: Path) -> list[Path]:
    """Return all that is named like a table in a folder and below it; see `find_parts`."""
    if isinstance(folder, RemotePath):
        own = {path: path.relative_to(folder).parts for path in folder.files()}
        of_streams = {parts[:-1] for parts in own.values() if parts[-1] == STREAM_LOCK} - {()}
        return sorted(
            cast(Path, path)
            for path, parts in own.items()
            if _names_a_table(*parts) and not any(parts[: len(b)] == b for b in of_streams)
        )
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        """Raise the error: without the folder, rows would be missing without a word."""
        if isinstance(error, FileNotFoundError):
            if Path(error.filename) != folder:  # tidied away in the meantime
                return
            raise cannot_open(folder, error) or error
        raise ErrorKind.MISSING_FILE.error(
            f"The folder {error.filename} may not be read: {error.strerror}.",
            "Allow it, or move it away if its rows are not wanted.",
        ) from error

    for below, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        if STREAM_LOCK in names and Path(below) != folder:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [Path(below, name) for name in names if _names_a_table(name)]
    return sorted(found)


def _names_a_table(*way: str) -> bool:
    """Say whether the names of a file and of folders above it are those of a table."""
    is_hidden = any(name.startswith((".", "_")) for name in way)
    return not is_hidden and format_of_name(Path(way[-1])) is not None


# The name of a folder whose rows have no value there.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def folder_columns(part: Path, folder: Path) -> dict[str, str | None]:
    """Return the columns that names of folders give: ``day=2024-01-01/part.parquet`` has a day.

    They are those below the `folder`, and those that its own path ends with, so that a part of a
    table has the columns of the whole. Names and values may be percent-encoded.

    >>> folder_columns(Path("t/shop=1/day=2%2F3/a.csv"), Path("t"))
    {'shop': '1', 'day': '2/3'}
    >>> folder_columns(Path("t/shop=1/day=2/a.csv"), Path("t/shop=1"))
    {'shop': '1', 'day': '2'}
    """
    if part == folder:
        return {}
    above = list(PurePosixPath(str(folder)).parts)
    named = len(above)
    while named and "=" in above[named - 1]:
        named -= 1
    found: dict[str, str | None] = {}
    for name in (*above[named:], *part.relative_to(folder).parts[:-1]):
        key, mark, value = name.partition("=")
        if key and mark:
            found[unquote(key)] = None if value == _NO_VALUE else unquote(value)
    return found


class FolderPart:
    """A file, with the columns that the names of its folders give where it has none of that name.

    Those are text. `wanted` are the columns that `read` hands out, by default all.
    """

    def __init__(
        self,
        file: TextReader | ParquetFile,
        path: Path,
        folder: Path,
        wanted: Collection[str] | None = None,
    ) -> None:
        self.file, self.path = file, path
        self._given, self._wanted = folder_columns(path, folder), wanted

    @property
    def keys(self) -> dict[str, str | None]:
        """The columns that its folders give, with their value in all of its rows."""
        own = self.file.columns or ()
        return {key: value for key, value in self._given.items() if key not in own}

    @property
    def columns(self) -> list[str]:
        """The columns of the file and of its folders; none while those of the file are unknown."""
        own = self.file.columns
        return [*own, *self.keys] if own else []

    def read(self, max_records: int) -> Batch | None:
        """Return the next rows as the file does."""
        batch = self.file.read(max_records)
        if batch is None or not self.columns or not self.keys:
            return batch
        cells = {key: pl.lit(value, pl.String) for key, value in self.keys.items()}
        wanted = self.columns if self._wanted is None else self._wanted
        return batch._replace(frame=batch.frame.with_columns(**cells).select(wanted))

    def schema(self, numbers: Collection[str] = ()) -> pa.Schema:
        """Return the types of a Parquet file's columns, and of those of folders."""
        assert isinstance(self.file, ParquetFile)
        kinds = [(key, pa.float64() if key in numbers else pa.string()) for key in self.keys]
        return pa.schema([*self.file.schema, *(pa.field(*kind) for kind in kinds)])

    def batches(
        self, columns: Sequence[str], batch_rows: int, numbers: Collection[str] = (), **how: Any
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as the file does; columns of folders are float64 among `numbers`."""
        if not self.keys:
            yield from self.file.batches(columns, batch_rows, **how)
            return
        own = [name for name in columns if name not in self.keys] or self.columns[:1]
        cells = {key: pa.scalar(value, pa.string()) for key, value in self.keys.items()}
        cells |= {key: pa.scalar(float(self.keys[key] or 0)) for key in self.keys if key in numbers}
        for batch in self.file.batches(own, batch_rows, **how):
            arrays = [
                pa.repeat(cells[name], batch.num_rows) if name in cells else batch.column(name)
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def numbers_of_folders(parts: Sequence[FolderPart]) -> set[str]:
    """Return the columns of folders whose values are numbers in all parts."""
    keys = {key for part in parts for key in part.keys}
    values = {key: pl.Series([p.keys.get(key) for p in parts], dtype=pl.String) for key in keys}
    numbers = {key: numbers_in(cells, truth={}).fill_nan(None) for key, cells in values.items()}
    return {key for key in keys if not numbers[key].null_count()}


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
            raise ErrorKind.FILE_FORMAT.error(
                f"{part} is {names[0]}, {first} is {names[1]}: a folder is one table, of one "
                "format.",
                "Move one of them away, or let its name begin with _.",
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
    lacking = [name for name in expected if name not in found]
    more = [name for name in found if name not in expected] if exactly else []
    if not lacking and not more:
        return
    name = (lacking or more)[0]
    fault = f"{part} lacks the column {name!r}, which {first} has."
    if more and not lacking:
        fault = f"{part} has a column {name!r}, which {first} lacks."
    ways = "write it again, or move it away."
    if not exactly:
        ways = "write it again, move it away, or leave the column out with columns=."
    raise ErrorKind.MISSING_COLUMN.error(
        fault, f"All parts of a table need the same columns: {ways}", column=name
    )
