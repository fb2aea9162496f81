"""Where rows arrive: a file, a folder or standard input, opened by name."""

import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

from rareclass.errors import InputError
from rareclass.tables.batch import Batch
from rareclass.tables.file_source import FileSource, Reading, open_file, open_pipe
from rareclass.tables.folder_source import FolderSource

_LONGEST_WAIT_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


class Source(Protocol):
    """Rows in order, which can be read again from the position of any batch.

    `columns` are the names of the columns; None while they are not known, such as before the
    first object of JSON lines.
    """

    @property
    def columns(self) -> list[str] | None:
        """The names of the columns, once known."""

    def read(self, max_records: int) -> Batch | None:
        """Return the next records; None at the end.

        There are `max_records` of them unless a file ends. A source that is followed returns
        what is there, and at least every second a batch, if need be without records.
        """

    def close(self) -> None:
        """Close what is open."""


def open_source(
    source: str,
    position: dict[str, Any] | None = None,
    follow: bool = False,
    *,
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    exact_columns: Collection[str] = (),
) -> Source:
    r"""Open rows that arrive, from their beginning or from a position.

    Parameters
    ----------
    source : str
        A file of CSV, JSON lines (both plain or compressed with gzip or bzip2) or Parquet; a
        folder of such files; "-" for standard input, which is JSON lines where it begins with a
        brace and CSV otherwise.
    position : dict, optional
        `Batch.position` of the last batch that was read. Standard input must then bring the
        same stream again from its beginning.
    follow : bool
        Whether to wait at the end: for lines added to a text file, for new files in a folder.
        A last line without a newline waits for it; otherwise it counts as a line. Compressed
        and Parquet files are never added to: on their own they end.
    columns : sequence of str, optional
        The columns to hand out. By default those of the header, or the keys of the first JSON
        object.
    separator : str, optional
        Between the cells of CSV; by default found out.
    exact_columns : collection of str
        Numeric columns of Parquet to hand out as Python numbers rather than float64, which
        takes whole numbers beyond 2^53 for equal when they are close: for ids.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        Here or on reading, when there is no such source, or it cannot be read at all. Single
        rows that cannot be taken are `Batch.rejected`.

    Notes
    -----
    Costs memory for one block of the file and one batch. The rows do not depend on how many are
    read at a time, nor on where reading was interrupted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.csv")
    ...     _ = path.write_text("age,class\n31,no\n42\n57,yes\n")
    ...     rows = open_source(str(path))
    ...     batch = rows.read(10)
    ...     rows.close()
    >>> batch.columns["age"].tolist(), batch.lines.tolist()
    (['31', '57'], [2, 4])
    >>> [(row.line, row.reason, row.text) for row in batch.rejected]
    [(3, '1 cells where the header has 2', '42')]
    """
    reading = Reading(follow, None if columns is None else list(columns), separator, exact_columns)
    if position is not None:
        _check_kind(source, position)
        position = position["in"]
    rows: FileSource | FolderSource
    if source == "-":
        rows = open_pipe(sys.stdin.buffer, position, reading)
    elif Path(source).is_dir():
        rows = FolderSource(Path(source), position, reading)
    else:
        if Path(source).exists() and not Path(source).is_file():
            raise InputError(
                f"{source} is a pipe or a device.", "Send what it gives to standard input, as -."
            )
        rows = open_file(Path(source), source, position, reading)
    return _OpenSource(rows, _kind_of(source), follow)


class _OpenSource:
    """Any source: waits where it is followed, and marks positions with its kind."""

    def __init__(self, rows: FileSource | FolderSource, kind: str, follow: bool) -> None:
        self._rows = rows
        self._kind = kind
        self._follow = follow

    @property
    def columns(self) -> list[str] | None:
        return self._rows.columns

    def read(self, max_records: int) -> Batch | None:
        if max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {max_records}.")
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while True:
            batch = self._rows.read(max_records)
            if batch is None:
                return None
            if batch.n_read or not self._follow or time.monotonic() >= deadline:
                return batch._replace(position={"kind": self._kind, "in": batch.position})
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        self._rows.close()


def _kind_of(source: str) -> str:
    if source == "-":
        return "standard input"
    return "folder" if Path(source).is_dir() else "file"


def _check_kind(source: str, position: dict[str, Any]) -> None:
    kind = _kind_of(source)
    if position["kind"] != kind and (kind != "file" or Path(source).exists()):
        raise InputError(
            f"{source} is a {kind}; what was read before is a {position['kind']}.",
            "Give the same source, or an empty checkpoint.",
        )
