"""Tables with named columns, read in batches: a file, a folder of them, a query, a data frame."""

import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa

from rareclass.errors import ErrorKind, counted, missing_column, no_rows, setting
from rareclass.machine import track
from rareclass.remote import path_of
from rareclass.scratch_file import Scratch
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.byte_streams import FileBytes, StoredFile, cannot_open
from rareclass.tables.csv_file import CsvReader
from rareclass.tables.databases import Query, RunningQuery
from rareclass.tables.folders import FolderPart, check_columns_agree, find_parts, format_of_file
from rareclass.tables.frames import as_frame, frame_of_arrow, read_frame
from rareclass.tables.jsonl import JsonLinesReader
from rareclass.tables.parquet import ParquetFile
from rareclass.tables.svmlight_file import SvmlightFile, no_named_columns
from rareclass.tables.text_reader import Reading, TextReader

# Where a table can be.
TablePlace: TypeAlias = Path | Query
# Rows of one file, of text or Parquet, as a table or from a position on.
FileReader: TypeAlias = TextReader | ParquetFile
TEXT_READERS: dict[str, type[TextReader]] = {"csv": CsvReader, "jsonl": JsonLinesReader}
BATCH_ROWS = 50_000
_BATCH_BYTES = 64 << 20


class StoredTable:
    """A table with named columns: a file, or all files of a folder, one after the other.

    A file is opened once, however many passes are made over it; those of a folder once a pass.
    Cells of text formats are text; those of Parquet keep their types, which are the widest that
    any file of a folder has. Names of folders are columns, too (`folder_columns`).

    Raises `InputError` when files of a folder have not the same columns, or columns not of one
    type.
    """

    def __init__(self, path: Path, parts: list[FolderPart]) -> None:
        self.path, self._parts = path, parts
        first = parts[0]
        self.columns, self.format_name = first.columns, first.file.format_name
        self.index_columns = first.file.index_columns
        self.category_columns = first.file.category_columns
        self.n_bytes: int = sum(part.file.n_bytes for part in parts)  # on disk
        for part in parts[1:]:
            check_columns_agree(first.path, self.columns, part.path, part.columns, exactly=True)
        typed = [part for part in parts if isinstance(part.file, ParquetFile)]
        self._schema = _common_schema(typed) if len(typed) > 1 else None

    def estimate_rows(self) -> int:
        """Return the number of rows: exact where the format says it, else an estimate."""
        n_rows = 0
        for part in self._parts:
            n_rows += part.file.estimate_rows()
            self._release(part)
        return n_rows

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in file order, `batch_rows` or fewer at a time."""
        wanted = list(self.columns if columns is None else columns)
        for part in self._parts:
            for batch in part.batches(wanted, batch_rows):
                if self._schema is not None:
                    batch = batch.cast(pa.schema([self._schema.field(name) for name in wanted]))
                yield frame_of_arrow(batch).select(wanted)
            self._release(part)

    def _release(self, part: FolderPart) -> None:
        """Close a file of a folder, which may hold more of them than may be open."""
        if len(self._parts) > 1:
            part.file.close()


def batch_rows_for(n_columns: int) -> int:
    """Return the rows of a batch, so that batches of wide tables do not grow with their width.

    >>> batch_rows_for(40), batch_rows_for(4000)
    (50000, 2097)
    """
    return min(BATCH_ROWS, max(256, _BATCH_BYTES // (8 * max(1, n_columns))))


def open_table(
    path: str | TablePlace,
    text: TextSettings = DETECTED,
    *,
    scratch: str | Path | None = None,
    one_pass: bool = False,
) -> "StoredTable | SvmlightFile | QueryTable":
    """Open a file of CSV, JSON lines, Parquet or svmlight, or a folder of one of the first three.

    Or the answer to a query, whose rows are kept in the folder `scratch` unless they are to be read
    in one pass only (`QueryTable`).

    The content of a file decides where it can. Text may be compressed with gzip or bzip2. Columns
    of one name are told apart by a number, with a warning.

    Raises `InputError` when a file is missing, empty, not a regular file, or not what its name
    says, and when the files of a folder are not one table.
    """
    if isinstance(path, Query):
        text.check(path, "not a text file")
        return QueryTable(path, scratch, one_pass)
    path = path_of(path)
    if not path.is_dir():
        file = _open_file(path, text)
        if isinstance(file, SvmlightFile):
            return file
        return StoredTable(path, [FolderPart(file, path, path)])
    return StoredTable(path, open_parts(path, text))


def open_parts(path: Path, text: TextSettings = DETECTED) -> list[FolderPart]:
    """Return a file, or those of a folder, as parts of one table; as `open_table`."""
    parts: list[FolderPart] = []
    for name in find_parts(path):
        file = _open_file(name, text, parts[0].file.nested if parts else None)
        if isinstance(file, SvmlightFile):
            raise no_named_columns(name)
        if name != path:
            file.close()  # a folder may hold more files than may be open
        parts.append(FolderPart(file, name, path))
    return parts


def _open_file(
    path: Path, text: TextSettings, nested: Collection[str] | None = None
) -> FileReader | SvmlightFile:
    stored, kind = stored_file(path, text)
    if not stored.size:
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"{path} is empty (0 bytes).", "Check how it was made or copied."
        )
    if kind == "svmlight":
        return SvmlightFile(path)
    file = file_reader(stored, kind, str(path), None, Reading(text=text, nested=nested))
    return file.as_table() if isinstance(file, TextReader) else file


def stored_file(path: Path, text: TextSettings) -> tuple[StoredFile, str]:
    """Open a file, and find its format (`format_of_file`).

    Raises `InputError` where it is missing, closed to this user, or a pipe, and as that does.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ErrorKind.FILE_FORMAT.error(
                f"{path} is a pipe or a device.",
                "Write the data to a file first; a stream also comes from standard input, as -.",
            )
        stored = StoredFile(path)
        return stored, format_of_file(stored, text)
    except OSError as error:
        raise cannot_open(path, error) or ErrorKind.MISSING_FILE.error(
            f"Cannot read {path}: {error.strerror}.", "Copy it to another disk, or restore it."
        ) from error


def file_reader(
    stored: StoredFile, kind: str, name: str, position: dict[str, Any] | None, reading: Reading
) -> FileReader:
    """Return the reader of a file by its `kind`: parquet, csv or jsonl."""
    if kind == "parquet":
        return ParquetFile(stored.path, name, position, reading)
    return TEXT_READERS[kind](FileBytes(stored, reading.follow), name, position, reading)


def _common_schema(parts: Sequence[FolderPart]) -> pa.Schema:
    """Return the types that hold the cells of all parts."""
    fields = []
    schemas = [part.schema() for part in parts]
    for name in schemas[0].names:
        common = schemas[0].field(name).remove_metadata()
        for part, schema in zip(parts, schemas, strict=True):
            field = schema.field(name).remove_metadata()
            both = [pa.schema([common]), pa.schema([field])]
            try:
                common = pa.unify_schemas(both, promote_options="permissive").field(0)
            except pa.ArrowException:
                raise ErrorKind.CELL.error(
                    f"{part.path}: column {name!r} holds {field.type}, in {parts[0].path} "
                    f"{common.type}.",
                    "Write the column alike in all parts.",
                    column=name,
                ) from None
        fields.append(common)
    return pa.schema(fields)


# Rows of a text file are an estimate, and the first may be the longest: less than this part of
# what they foretell is surely too little room.
_SURE_SHARE = 0.5


class SpooledTables:
    """Arrow tables in a nameless file, read back one at a time.

    `folder` is as in `scratch_folder`. Raises `InputError` where the disk has no room.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._file = Scratch(folder)
        self._ends = [0]

    def __iter__(self) -> Iterator[pa.Table]:
        return map(self.read, range(len(self._ends) - 1))

    @property
    def n_bytes(self) -> int:
        """Bytes on disk."""
        return self._ends[-1]

    def append(self, table: pa.Table | pa.RecordBatch, expected: float = 0.0) -> None:
        """Write a table at the end, where so many of its size are `expected` in all."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write(table)
        content = sink.getvalue()
        if expected:
            self._file.expect(int(content.size * expected), _SURE_SHARE)
        self._file.append(content)
        self._ends.append(self._file.size)

    def read(self, place: int) -> pa.Table:
        """Read a table by its place, from 0 on."""
        start, end = self._ends[place : place + 2]
        content = np.empty(end - start, np.uint8)
        self._file.read_into(content, start)
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            return reader.read_all()


class QueryTable:
    """A table with named columns that a database gives.

    The query runs once: at the first need its rows go, batch by batch, to a nameless file on this
    machine's disk, from which every pass reads. So all passes see the same rows in the same order,
    and the database is not kept waiting by what is done with them. Of a table for one pass nothing
    is kept: its rows come straight from the database, and a further pass runs the query again.

    `scratch` is the folder for the file, as in `scratch_folder`. Raises `InputError` as
    `RunningQuery`; when there is no room on the disk; and when a query that is run again gives
    other rows in number.
    """

    format_name = "database"
    index_columns: tuple[str, ...] = ()

    def __init__(
        self, query: Query, scratch: str | Path | None = None, one_pass: bool = False
    ) -> None:
        self.path = query
        self._running: RunningQuery | None = RunningQuery(query)
        self._schema = self._running.schema
        self.category_columns = self._running.category_columns
        self.columns: list[str] = list(self._schema.names)
        self._folder, self._one_pass = scratch, one_pass
        self._kept: SpooledTables | None = None
        self._n_rows: int | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes on this machine's disk."""
        return 0 if self._one_pass else self._spooled().n_bytes

    def estimate_rows(self) -> int:
        """Return the number of rows, which is exact; 0 while a table for one pass is not read."""
        if not self._one_pass:
            self._spooled()
        return self._n_rows or 0

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in the order of the query, `batch_rows` or fewer at a time."""
        wanted = list(self.columns if columns is None else columns)
        for batch in self._streamed() if self._one_pass else self._spooled():
            chosen = batch.select(wanted)
            for start in range(0, batch.num_rows, batch_rows):
                yield frame_of_arrow(chosen.slice(start, batch_rows))

    def _take(self) -> RunningQuery:
        running, self._running = self._running, None
        if running is None or running.is_closed:
            running = RunningQuery(self.path)
            if running.schema != self._schema:
                raise ErrorKind.ROWS.error(
                    f"{self.path} gave other columns before.", "Run it again."
                )
        return running

    def _streamed(self) -> Iterator[pa.RecordBatch]:
        running, n_rows = self._take(), 0
        try:
            for batch in running.batches():
                yield batch
                n_rows += batch.num_rows
        finally:
            if not running.is_closed:  # only the first rows were looked at
                self._running = running
        if self._n_rows not in (None, n_rows):
            raise ErrorKind.ROWS.error(
                f"{self.path} gave {counted(self._n_rows or 0, 'row')} and, run again, {n_rows:,}.",
                "Read a table that nobody changes meanwhile.",
            )
        self._n_rows = n_rows

    def _spooled(self) -> SpooledTables:
        if self._kept is None:
            kept, n_rows = SpooledTables(self._folder), 0
            with track(f"Reading {self.path.name}") as advance:
                for batch in self._take().batches():
                    kept.append(batch)
                    n_rows += batch.num_rows
                    advance(batch.num_rows)
            self._kept, self._n_rows = kept, n_rows
        return self._kept


class _HeldTable:
    """Rows in memory, read as a file is; a column is read when it is asked for."""

    path, format_name, index_columns = Path("the table"), "table", ()

    def __init__(self, frame: "nw.DataFrame[Any]") -> None:
        self._frame, self.columns = frame, read_frame(frame.to_native()).names
        kinds = zip(self.columns, frame.schema.values(), strict=True)
        chosen = (name for name, kind in kinds if kind in (nw.Categorical, nw.Enum))
        self.category_columns = tuple(chosen)

    @property
    def n_bytes(self) -> int:
        return int(self._frame.estimated_size())

    def estimate_rows(self) -> int:
        return len(self._frame)

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> Iterator[pl.DataFrame]:
        read = read_frame(self._frame.to_native(), columns)
        yield from pl.DataFrame([column.cells for column in read.columns]).iter_slices(batch_rows)


# A table with named columns, wherever it is.
TableFile: TypeAlias = StoredTable | QueryTable | _HeldTable


def named_columns(
    file: TableFile | SvmlightFile, names: Iterable[str] = (), option: str = ""
) -> TableFile:
    """Return a table that has all these columns, which the setting `option` names.

    Raises `InputError` for an svmlight file, whose columns have no names, and for a missing column.
    """
    if isinstance(file, SvmlightFile):
        raise no_named_columns(file.path, f"{setting(option)}: " if option else "")
    for name in names:
        if name not in file.columns:
            raise missing_column(str(file.path), name, file.columns, option)
    return file


def fetch(file: TableFile, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a table, or these columns of it; raise `InputError` where it has no rows."""
    batches = list(file.batches(columns))
    if not any(batch.height for batch in batches):
        raise no_rows(file.path)
    return pl.concat(batches, how="vertical_relaxed")


def open_rows(table: Any, text: TextSettings = DETECTED) -> TableFile | SvmlightFile:
    """Return a data frame of any make, or a file by its name, as a table to be read in batches.

    Raises `InputError` for what is no table with named columns, and as `open_table`.
    """
    if isinstance(table, str | Path):
        return open_table(path_of(table), text)
    frame = as_frame(table)
    if not isinstance(frame, nw.DataFrame):
        raise ErrorKind.SHAPE.error(
            f"A {type(table).__name__} is not a table with named columns.",
            "Give a pandas, polars or pyarrow table, or the name of a file.",
        )
    return _HeldTable(frame)
