"""Where rows arrive: a file, a folder or standard input, opened by name."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import polars as pl

from rareclass.errors import ErrorKind
from rareclass.remote import path_of
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.byte_streams import PipeBytes, ends_in
from rareclass.tables.folders import (
    FolderPart,
    check_one_format,
    find_parts,
    folder_columns,
    format_of_name,
    format_of_text,
    has_content,
    tables_in,
)
from rareclass.tables.parquet import is_complete
from rareclass.tables.svmlight_file import no_named_columns
from rareclass.tables.table_file import TEXT_READERS, FileReader, file_reader, stored_file
from rareclass.tables.text_reader import Batch, Reading, TextReader

_LONGEST_WAIT_SECONDS = 1.0
_PAUSE_SECONDS = 0.05
_CHECK_SECONDS = 1.0
# A writer completes a line it has begun within this time, or has stopped.
_SETTLED_SECONDS = 2.0


def open_file(
    path: Path, name: str, position: dict[str, Any] | None, reading: Reading
) -> FileReader:
    """Open a file by its suffix, or else by its first bytes.

    Raises `InputError` when it is missing or not what its suffix says, or belongs to another
    position.
    """
    stored, file_format = stored_file(path, reading.text)
    if file_format == "svmlight":
        raise no_named_columns(path)
    _check_format(file_format, position, str(path))
    return file_reader(stored, file_format, name, position, reading)


def _open_pipe(pipe: BinaryIO, position: dict[str, Any] | None, reading: Reading) -> TextReader:
    """Open standard input: CSV, or JSON lines where the first line begins with a brace.

    A pipe cannot go back: with a position the same stream is expected from its beginning, and
    what was read before is passed over.
    """
    stream = PipeBytes(pipe, reading.follow)
    if stream.start.startswith(b"PAR1"):
        raise ErrorKind.FILE_FORMAT.error(
            "Parquet cannot be read from standard input.", "Give the name of the file."
        )
    file_format = format_of_text(stream.start)
    _check_format(file_format, position, "Standard input")
    return TEXT_READERS[file_format](stream, "-", position, reading)


def _check_format(file_format: str, position: dict[str, Any] | None, title: str) -> None:
    if position is not None:
        before = "parquet" if "row" in position else "csv" if "header" in position else "jsonl"
        _check_kind(title, file_format, before)


class FolderSource:
    """The rows of all tables in a folder and below it, one file after the other by name.

    Which files those are says `rareclass.tables.folders`; all must be of one format. The columns
    are those of the first file and of the names of its folders (`folder_columns`); rows of files
    with others are rejected.

    A file is finished when its end is reached and, if the folder is followed, another file is
    there: until then it may grow, and half a line written in the last two seconds is waited
    for. New files are read even if their names sort before those of finished ones.

    Raises `InputError` when there is no table in a folder that is not followed, a file cannot be
    read, or a finished one was changed.
    """

    def __init__(self, folder: Path, position: dict[str, Any] | None, reading: Reading) -> None:
        self._folder = folder
        self._reading = reading
        # Of each finished file the size, and the mark of its ends.
        self._finished: dict[str, tuple[int, str]] = {}
        self._current: FolderPart | None = None
        self._name: str | None = None  # of the file that is open
        self._at: dict[str, Any] | None = None
        self._next_check = 0.0
        self._first: Path | None = None  # a file of the format that all must have
        if position is not None:
            self._finished = dict(position["finished"])
            self._check_finished(by_content=True)
            self._reading = reading._replace(columns=position["columns"], nested=position["nested"])
            names = [name for name in (*self._finished, position["current"]) if name is not None]
            self._first = folder / names[0] if names else None
            if position["current"] is not None:
                self._open(position["current"], position["at"])
        elif not self._open_next() and not reading.follow:
            find_parts(folder)  # says what it lacks

    @property
    def columns(self) -> list[str] | None:
        """Columns of the first file, once they are known."""
        if self._reading.columns is not None:
            return self._reading.columns
        return self._current.columns or None if self._current is not None else None

    def read(self, max_records: int) -> Batch | None:
        """Return the next records of one file; None at the end of a folder not followed."""
        while True:
            if self._current is None and not self._open_next():
                none = np.empty(0, np.int64)
                empty = Batch(pl.DataFrame(), none, "", [], 0, self._position())
                return empty if self._reading.follow else None
            assert self._current is not None
            batch = self._current.read(max_records)
            self._reading = self._reading._replace(
                columns=self.columns, nested=self._reading.nested or self._current.file.nested
            )
            if batch is None:
                # A new dict: positions handed out before keep theirs.
                size, name = self._current.file.size_read, cast(str, self._name)
                mark = _mark_on_disk(self._current.path, size)
                self._finished = {**self._finished, name: (size, mark)}
                self.close()
            elif batch.n_read or not self._may_move_on(self._current):
                self._at = batch.position
                return batch._replace(position=self._position())
            else:
                # The listing came before this last read: nothing written before the other file
                # appeared is missed.
                self._current.file.finish()

    def close(self) -> None:
        """Close the file that is open."""
        if self._current is not None:
            self._current.file.close()
            self._current = self._name = self._at = None

    def _open(self, name: str, position: dict[str, Any] | None) -> None:
        path = self._folder / name
        reading = self._reading._replace(elsewhere=folder_columns(path, self._folder))
        file = open_file(path, name, position, reading)
        self._current = FolderPart(file, path, self._folder, reading.columns)
        self._name, self._at = name, position

    def _position(self) -> dict[str, Any]:
        at = {"current": self._name, "at": self._at}
        known = {"columns": self.columns, "nested": self._reading.nested}
        return {"finished": self._finished, **at, **known}

    def _may_move_on(self, current: FolderPart) -> bool:
        """Say whether to take the end of a file that may grow for its end: another is there."""
        if not self._reading.follow or self._other_file() is None:
            return False
        if not current.file.has_unfinished:
            return True
        try:
            written = current.path.stat().st_mtime
        except FileNotFoundError:
            return True
        return abs(time.time() - written) >= _SETTLED_SECONDS

    def _open_next(self) -> bool:
        self._check_finished()
        name = self._other_file()
        if name is not None:
            self._open(name, None)
        return name is not None

    def _other_file(self) -> str | None:
        """Return the first file by name that is neither finished nor open, and has content."""
        for path in tables_in(self._folder):
            name = path.relative_to(self._folder).as_posix()
            if name == self._name or name in self._finished:
                continue
            is_growing = self._reading.follow and format_of_name(path) == "parquet"
            if is_complete(path) if is_growing else has_content(path):
                self._first = self._first or path
                check_one_format(self._first, [path])
                return name
        return None

    def _check_finished(self, by_content: bool = False) -> None:
        """Raise `InputError` where a finished file was changed since."""
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + _CHECK_SECONDS
        for name, (size, mark) in sorted(self._finished.items()):
            path = self._folder / name
            with suppress(FileNotFoundError):  # tidied away
                is_same = path.stat().st_size == size
                if not is_same or (by_content and _mark_on_disk(path, size) != mark):
                    raise ErrorKind.ROWS.error(
                        f"{path} was changed after it had been read.",
                        "Write new rows to a new file of the folder.",
                    )


def _mark_on_disk(path: Path, size: int) -> str:
    """Digest of the ends of a file as it lies on disk; "" where it is gone."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return ends_in(file, size).mark()
    return ""


def open_source(
    source: str | Path,
    position: dict[str, Any] | None = None,
    follow: bool = False,
    *,
    columns: Sequence[str] | None = None,
    text: TextSettings = DETECTED,
) -> "Source":
    r"""Open rows that arrive, from their beginning or from a position.

    `source` is a file of CSV, JSON lines (both plain or compressed) or Parquet; a folder of such
    files; or "-" for standard input, which is JSON lines where it begins with a brace and CSV
    otherwise. `position` is that of the last batch that
    was read; standard input must then bring the same stream again from its beginning. With `follow`
    the end is waited at: for lines added to a text file, for new files in a folder; a last line
    without a newline waits for it. Compressed and Parquet files are never added to: on their own
    they end. The columns to hand out are by default those of the header, or the keys of the first
    1,000 rows of JSON, and those of the names of folders. Raises `InputError`, here or on reading,
    when there is no such source or it cannot be read at all; single rows that cannot be taken are
    `Batch.rejected`.

    Notes
    -----
    Costs memory for one block of the file and one batch. The rows do not depend on how many are
    read at a time, nor on where reading was interrupted.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.csv")
    ...     _ = path.write_text("age,class\n31,no\n42\n57,yes\n")
    ...     rows = open_source(str(path))
    ...     batch = rows.read(10)
    ...     rows.close()
    >>> batch.frame["age"].to_list(), batch.lines.tolist()
    (['31', '57'], [2, 4])
    >>> [(row.line, row.reason, row.text) for row in batch.rejected]
    [(3, '1 cells where the header has 2', '42')]
    """
    reading = Reading(None if columns is None else list(columns), text, follow)
    at = None if position is None else position["in"]
    path = path_of(source)
    kind = "standard input" if source == "-" else "a folder" if path.is_dir() else "a file"
    if position is not None and (source == "-" or path.exists()):
        _check_kind(source, kind, position["kind"])
    rows: FileReader | FolderSource
    if source == "-":
        rows = _open_pipe(sys.stdin.buffer, at, reading)
    elif kind == "a folder":
        rows = FolderSource(path, at, reading)
    else:
        rows = open_file(path, str(path), at, reading)
    return Source(rows, kind, follow)


def _check_kind(title: str | Path, kind: str, before: str) -> None:
    if kind != before:
        raise ErrorKind.FILE_FORMAT.error(
            f"{title} is {kind}; what was read before is {before}.",
            "Give the same source, or an empty checkpoint.",
        )


class Source:
    """Rows in order, which can be read again from the position of any batch.

    Where the rows are followed they are waited for. Positions say of which kind they are.
    """

    def __init__(self, rows: FileReader | FolderSource, kind: str, follow: bool) -> None:
        self._rows, self._kind, self._follow = rows, kind, follow

    @property
    def columns(self) -> list[str] | None:
        """Names of the columns; None while they are not known, as before the first rows of JSON."""
        return self._rows.columns

    def read(self, max_records: int) -> Batch | None:
        """Return the next records; None at the end.

        There are `max_records` of them unless a file ends. A source that is followed returns
        what is there, and at least every second a batch, if need be without records.
        """
        if max_records < 1:
            raise ErrorKind.SETTING.error(f"max_records must be at least 1, not {max_records}.")
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while True:
            batch = self._rows.read(max_records)
            if batch is None:
                return None
            if batch.n_read or not self._follow or time.monotonic() >= deadline:
                return batch._replace(position={"kind": self._kind, "in": batch.position})
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Close what is open."""
        self._rows.close()
