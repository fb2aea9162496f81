"""Files that a stream leaves: a log of measures, scores of rows without a label, and rejected rows.

The first two are folders of Parquet parts. The name of a part says after how many records of the
stream it was written, so that a restart can take away what its checkpoint does not know of yet.
Text files are cut back to the length that the checkpoint knows.
"""

import json
import os
import re
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rareclass.errors import ErrorKind
from rareclass.files import replacing, writing
from rareclass.tables.text_reader import Rejected

__all__ = ["ParquetParts", "read_log", "read_scores"]  # names of the reference

_INT, _FLOAT, _TEXT = pa.int64(), pa.float64(), pa.string()
_MEASURES = {"auc": _FLOAT, "average_precision": _FLOAT, "precision_at_k": _FLOAT}
_MOVED = {"column": _TEXT, "stability_index": _FLOAT, "outside": _FLOAT}
_FALL = {"measure": _TEXT, "value": _FLOAT, "best": _FLOAT, "best_rows": _INT}
_FALL |= {"low": _FLOAT, "high": _FLOAT}
_MEMBER = {"name": _TEXT, "weight": _FLOAT, **_MEASURES, "loss": _FLOAT}
_COUNTS = (
    "rows", "labelled", "rare", "unlabelled", "held", "dropped", "early_labels",
    "early_labels_dropped", "rejected", "features",
)  # fmt: skip
LOG_SCHEMA = pa.schema(
    {
        **dict.fromkeys(_COUNTS, _INT),
        **_MEASURES,
        "moved": pa.list_(pa.struct(_MOVED)),
        "falls": pa.list_(pa.struct(_FALL)),
        "members": pa.list_(pa.struct(_MEMBER)),
        "resets": _INT,
        "last_reset": _INT,
        # These two come from the clock and differ from run to run.
        "rows_per_second": _FLOAT,
        "time": pa.timestamp("ms", tz="UTC"),
    }
)
SCORES_SCHEMA = pa.schema(
    {
        "row": _INT,
        "id": _TEXT,
        "score": _FLOAT,
        "file": pa.dictionary(pa.int32(), _TEXT),
        "line": _INT,
    }
)
REJECTED = "rejected.jsonl"
_REMEDY = "Make room on the disk; the same command continues from the last checkpoint."
_NAME = re.compile(r"part-(\d{15})\.parquet")


class ParquetParts:
    """A table that grows by parts on disk; rows added are in memory until `write`."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema
        self._waiting: list[pa.RecordBatch] = []

    @property
    def n_waiting(self) -> int:
        """Rows that are not on disk yet."""
        return sum(batch.num_rows for batch in self._waiting)

    def add(self, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> None:
        """Add rows, given as one sequence a column."""
        cells = [pa.array(columns[field.name], field.type) for field in self.schema]
        batch = pa.RecordBatch.from_arrays(cells, schema=self.schema)
        if batch.num_rows:
            self._waiting.append(batch)

    def write(self, rows: int) -> None:
        """Write what was added, if anything, as the part named `rows`; it is on disk on return."""
        if not self._waiting:
            return
        with writing(self.folder, _REMEDY):
            self.folder.mkdir(exist_ok=True)
        with replacing(self.folder / f"part-{rows:015d}.parquet") as temporary:
            table = pa.Table.from_batches(self._waiting, self.schema).unify_dictionaries()
            pq.write_table(table, temporary)
        self._waiting.clear()

    def forget_after(self, rows: int) -> None:
        """Remove parts written after `rows` records, and what a killed write left."""
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            match = _NAME.fullmatch(path.name)
            is_left_over = path.name.startswith(".part-") and path.suffix == ".parquet"
            if is_left_over or (match and int(match[1]) > rows):
                path.unlink()

    def read(self) -> pa.Table:
        """Return all parts on disk as one table, in the order of the stream."""
        names = [path for path in self.folder.glob("part-*.parquet") if _NAME.fullmatch(path.name)]
        tables = [pq.read_table(path, schema=self.schema) for path in sorted(names)]
        return pa.concat_tables(tables) if tables else self.schema.empty_table()


class FileMark(NamedTuple):
    """Rows and length of a file at a checkpoint, and of rejected rows the last."""

    n_rows: int = 0
    length: int = 0
    last: Rejected | None = None


class GrowingFile:
    """A text file that only grows, from its mark in the checkpoint on.

    Bytes behind the mark are cut off when the file is opened: their rows will come again.

    Raises `InputError` when the file cannot be written, or is shorter than the checkpoint says.
    """

    def __init__(self, path: Path, mark: FileMark) -> None:
        self.path, self.mark = path, mark
        with writing(path, _REMEDY):
            self._file = path.open("ab", buffering=0)  # what is refused must not come later
            weakref.finalize(self, self._file.close)  # also where the stream cannot begin
            found = self._file.tell()
            if found > mark.length:
                self._file.truncate(mark.length)
        if found < mark.length:
            self._file.close()
            raise ErrorKind.DAMAGED_FILE.error(
                f"{path} has {found:,} bytes, its checkpoint knows of {mark.length:,}.",
                "Restore the file, or start again in another folder.",
            )

    def append(self, text: str, n_rows: int, last: Rejected | None = None) -> None:
        """Append rows, or nothing of them; they can be read at once and are safe after `sync`."""
        # Half a surrogate pair, which JSON lines may hold, has no place in UTF-8.
        content = text.encode(errors="backslashreplace")
        rest = memoryview(content)
        with writing(self.path, _REMEDY):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                with suppress(OSError):
                    self._file.truncate(self.mark.length)
                raise
        self.mark = FileMark(self.mark.n_rows + n_rows, self.mark.length + len(content), last)

    def sync(self) -> None:
        """Flush to disk, before a checkpoint counts on it."""
        with writing(self.path, _REMEDY):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()


class RejectedFile(GrowingFile):
    """Rows that could not be used, or are in doubt: file, line, reason and text, as JSON lines."""

    def add(self, rows: Iterable[Rejected]) -> None:
        """Write rows; they can be read at once and are safe after `sync`."""
        rows = list(rows)
        if rows:
            lines = [json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows]
            self.append("".join(lines), len(rows), rows[-1])


def read_log(folder: str | Path) -> pa.Table:
    """Return the log of a stream as one table, one row a report.

    Parameters
    ----------
    folder : str or Path
        The folder given as ``--checkpoint``.

    Returns
    -------
    pyarrow.Table
        Counts so far: ``rows`` (records), ``labelled``, ``rare``, ``unlabelled``, ``held``,
        ``dropped``, ``early_labels`` (held for rows to come), ``early_labels_dropped``,
        ``rejected``, ``features``. Of the window, null while not defined: ``auc``,
        ``average_precision``, ``precision_at_k``. ``moved``: columns whose recent cells are unlike
        the past, as ``column``, ``stability_index`` and the share ``outside``. ``falls``: measures
        lower than in the best window by more than chance explains, as ``measure``, ``value``,
        ``best``, ``best_rows`` and the bounds ``low`` and ``high`` of the fall. ``members`` of a
        mixture: ``name``, ``weight``, ``auc`` of the last rare rows, ``average_precision`` and
        ``precision_at_k`` of the window (of its last 10,000 rows), ``loss`` so far. ``resets``: how
        often drift has made steps long again, ``last_reset``: the records when it last did.
        ``rows_per_second`` since the report before, and ``time``.

    Raises
    ------
    InputError
        When there is no such folder.
    """
    return _parts_in(folder, "log", LOG_SCHEMA).read()


def read_scores(folder: str | Path) -> pa.Table:
    """Return the scores that rows without a label got when they came, as one table.

    The folder and errors are as of `read_log`. Columns: ``row`` (number in the stream, from 1),
    ``id`` (null without ``--id``), ``score`` (higher: rarer), ``file`` and ``line``.
    """
    return _parts_in(folder, "scores", SCORES_SCHEMA).read()


def _parts_in(folder: str | Path, name: str, schema: pa.Schema) -> ParquetParts:
    if not Path(folder).is_dir():
        raise ErrorKind.MISSING_FILE.error(
            f"There is no folder {folder}.", "rareclass stream makes one."
        )
    return ParquetParts(Path(folder) / name, schema)
