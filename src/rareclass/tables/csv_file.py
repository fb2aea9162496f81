"""CSV: as a table in blocks of text, and as a stream of rows with their lines and offsets."""

import codecs
import csv
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rareclass.errors import ErrorKind, InputError, bad_cell
from rareclass.tables.batch import columns_fault
from rareclass.tables.byte_streams import DAMAGE, ByteStream, StoredFile, damaged
from rareclass.tables.dialect import (
    COMMA_CELL,
    NOT_UTF8,
    NUL,
    ROW_LIMIT,
    SAMPLE_BYTES,
    UNCLOSED,
    UTF8_MARK,
    UTF16_MARKS,
    Dialect,
    dialect_of,
    no_text,
    row_end,
)
from rareclass.tables.text_source import TakenRows, TextSource

_BLOCK_BYTES = 8 << 20
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BAD_CELL = re.compile(
    r"In CSV column #(\d+): Row #(\d+): .*?(?:invalid value '(.*)')?$", re.DOTALL
)
_BAD_NUMBER = re.compile(r"Failed to parse string: '(.*)' as a scalar of type double", re.DOTALL)


class _Block(NamedTuple):
    """Whole rows as UTF-8, and the line of the file that they begin at."""

    text: bytes
    line: int


class CsvFile:
    """A text table whose first line names the columns.

    It is read in blocks that end where a row ends, by the thread that asks for them: no other one
    is left when reading stops early. A row may be as long as two blocks, 16 MiB. Raises
    `InputError` when it has no header line, is binary, or its compression is damaged.
    """

    format_name = "CSV"

    def __init__(
        self, path: Path, separator: str | None = None, stored: StoredFile | None = None
    ) -> None:
        self.path = path
        self.stored = stored or StoredFile(path)
        size, dialect = SAMPLE_BYTES, None
        while dialect is None:
            sample = self.stored.head(size)
            is_whole = len(sample) < size
            if b"\0" in sample and sample[:2] not in UTF16_MARKS:
                raise no_text(str(path))
            dialect = dialect_of(str(path), sample, is_whole or size > ROW_LIMIT, separator)
            size *= 4
        self.dialect: Dialect = dialect
        self.columns = dialect.names
        self._sample = len(sample), max(1, sample.count(b"\n")), is_whole

    @property
    def n_bytes(self) -> int:
        """Bytes on disk."""
        return self.stored.size

    def estimate_rows(self) -> int:
        """Return about the number of rows, from the length of the first lines."""
        size, lines, is_whole = self._sample
        if is_whole:
            return max(0, lines - 1)
        # A compressed file is taken to be packed as tightly as its first lines.
        packed = size
        if self.stored.compression is not None:
            packed = len(zlib.compress(self.stored.head(size)))
        return int(self.n_bytes / packed * lines)

    def release(self) -> None:
        """Close the file until it is read again."""
        self.stored.release()

    def batches(
        self,
        columns: Sequence[str],
        batch_rows: int,
        types: Mapping[str, pa.DataType] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in file order, `batch_rows` or fewer at a time.

        Cells are text, those of columns with a type in `types` are float64 and null where empty.
        Raises `InputError`, naming row, line and cell.
        """
        n_rows = 0
        try:
            with self.stored.content() as content:
                for block in self._blocks(content):
                    table = self._table(block, list(columns), types or {}, n_rows)
                    n_rows += table.num_rows
                    yield from table.to_batches(batch_rows)
        except DAMAGE as error:
            raise damaged(self.path, error) from error

    def _blocks(self, content: BinaryIO) -> Iterator[_Block]:
        """Yield the text after the header line."""
        separator = self.dialect.separator.encode()
        line, header_lines, rest = 1, self.dialect.header_lines, b""
        for data in self._utf8(content):
            rest += data
            while header_lines and data:
                end = _LINE_END.search(rest)
                if end is None or (end.end() == len(rest) and rest.endswith(b"\r")):
                    break
                rest, header_lines, line = rest[end.end() :], header_lines - 1, line + 1
            if header_lines and data:
                continue
            cut = len(rest) if not data else row_end(rest, separator)
            if not cut and len(rest) > ROW_LIMIT:
                reason = UNCLOSED if rest.count(b'"') % 2 else "was it meant to be one?"
                raise InputError(
                    f"{self.path}: the row that begins at line {line:,} is longer than "
                    f"{ROW_LIMIT >> 20} MiB ({reason}).",
                    "Close the quote, shorten its cells, or take the row out.",
                    ErrorKind.DAMAGED_FILE,
                )
            if cut and not header_lines:
                done, rest = rest[:cut], rest[cut:]
                yield _Block(done, line)
                line += done.count(b"\n") + done.count(b"\r") - done.count(b"\r\n")

    def _utf8(self, content: BinaryIO) -> Iterator[bytes]:
        """Yield the text as UTF-8 without a mark, a block at a time; at last nothing at all."""
        encoding = self.dialect.encoding
        is_wide = encoding.startswith("utf-16")
        decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if is_wide else "strict")
        is_first = True
        try:
            while raw := content.read(_BLOCK_BYTES):
                if is_first:
                    raw = raw[2:] if is_wide else raw.removeprefix(UTF8_MARK)
                    is_first = False
                if encoding != "utf-8":
                    raw = decoder.decode(raw).encode("utf-8", "surrogatepass")
                if raw:
                    yield raw
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path} is text of several encodings: its beginning is {encoding}, which "
                f"{error.object[error.start : error.end]!r} is not.",
                "Write it in one, UTF-8 for instance.",
                ErrorKind.DAMAGED_FILE,
            ) from None
        yield b""

    def _table(
        self,
        block: _Block,
        columns: list[str],
        types: Mapping[str, pa.DataType],
        n_before: int,
        threads: bool = True,
    ) -> pa.Table:
        as_text = self.dialect.decimal_commas
        kinds = {name: pa.large_string() for name in self.columns} | (
            {} if as_text else dict(types)
        )
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(block.text),
                read_options=pa_csv.ReadOptions(
                    block_size=len(block.text), column_names=self.columns, use_threads=threads
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self.dialect.separator, newlines_in_values=True
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=kinds, include_columns=columns, strings_can_be_null=False
                ),
            )
        except pa.ArrowException as error:
            if threads and types:
                # One thread alone knows the row.
                return self._table(block, columns, types, n_before, threads=False)
            raise self._unreadable(error, block, n_before) from error
        if not as_text:
            return table
        for place, name in enumerate(columns):
            cells = pc.replace_substring_regex(table.column(name), f"^{COMMA_CELL}$", r"\1.\2")
            if name in types:
                cells = self._as_numbers(cells, name, n_before)
            table = table.set_column(place, name, cells)
        return table

    def _as_numbers(self, cells: pa.ChunkedArray, name: str, n_before: int) -> pa.ChunkedArray:
        cells = pc.utf8_trim_whitespace(cells)
        empty = pa.array(pa_csv.ConvertOptions().null_values, cells.type)
        cells = pc.if_else(pc.is_in(cells, empty), pa.scalar(None, cells.type), cells)
        try:
            return cells.cast(pa.float64())
        except pa.ArrowInvalid as error:
            found = _BAD_NUMBER.search(str(error))
            cell = found[1] if found else ""
            row = n_before + pc.index(cells, cell).as_py() + 1
            raise self._no_number(name, cell, row) from None

    def _no_number(self, name: str, cell: str, row: int) -> InputError:
        return bad_cell(
            f"{self.path}: column {name!r} holds {cell!r} at row {row:,} (the first row is 1), "
            "which is not a number.",
            "Correct that cell, leave the column out with columns=, or use the command line, "
            "which encodes tables.",
            name,
            row,
            cell,
        )

    def _unreadable(self, error: Exception, block: _Block, n_before: int) -> InputError:
        """Return what is wrong in a block, with the row where it is."""
        reason = str(error)
        found = _BAD_CELL.match(reason)
        if found and found[3] is not None:
            return self._no_number(self.columns[int(found[1])], found[3], n_before + int(found[2]))
        row, line, cells = _first_fault(block, self.dialect.separator, len(self.columns))
        if cells is None and "UTF8" in reason:
            return InputError(
                f"{self.path} is not UTF-8 text at row {row + n_before:,} (line {line:,}).",
                "Convert it: iconv -f latin1 -t utf-8 OLD > NEW",
                ErrorKind.DAMAGED_FILE,
            )
        if cells is None:
            where = reason.splitlines()[0].removeprefix("CSV parse error: ")[:300]
        else:
            shown = self.dialect.separator.join(cells)
            where = (
                f"Expected {len(self.columns)} columns, got {len(cells)} at row "
                f"{row + n_before:,} (line {line:,}): {shown[:200]}"
            )
        return InputError(
            f"{self.path} cannot be read as a table separated by {self.dialect.separator!r}: "
            f"{where}",
            "Every row needs as many cells as the header line; quote cells that hold separators.",
            ErrorKind.DAMAGED_FILE,
        )


class _Fault(NamedTuple):
    """A row that is wrong, from 1, its line and cells; None for cells that are not UTF-8."""

    row: int
    line: int
    cells: list[str] | None


def _first_fault(block: _Block, separator: str, width: int) -> _Fault:
    """Return the first row that has not `width` cells, else the first that is not UTF-8."""
    text = block.text.decode("utf-8", "surrogateescape")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    not_utf8 = _Fault(0, 0, None)
    row, line = 0, block.line
    try:
        for cells in reader:
            if cells:
                row += 1
                if not not_utf8.row and any("\udc80" <= c <= "\udcff" for c in "".join(cells)):
                    not_utf8 = _Fault(row, line, None)
                if len(cells) != width:
                    return _Fault(row, line, cells)
            line = block.line + reader.line_num
    except csv.Error:
        pass
    return not_utf8


class CsvSource(TextSource):
    """Rows from CSV text; every cell is text, as it stands but for decimal commas.

    The dialect is found from as much of the beginning as is there. Empty lines are no rows. Where
    the header does not have the columns that are asked for, all rows are rejected.
    """

    def __init__(
        self,
        stream: ByteStream,
        name: str,
        position: dict[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        separator: str | None = None,
    ) -> None:
        super().__init__(stream, name, None)
        self.columns = None if columns is None else list(columns)
        self._separator = separator
        self._dialect: Dialect | None = None
        self._fault: str | None = None
        self._marks: dict[int, str] = {}
        self._ran_out = False
        if position is not None and position["offset"] and position["header"] is not None:
            self.columns = position["columns"]
            written = position["separator"], position["decimal_commas"], position["header"]
            self._set_dialect(Dialect(position.get("encoding", "utf-8"), *written))
            self._go_to(position)

    def _position(self) -> dict[str, Any]:
        known = self._dialect
        return {
            **super()._position(),
            "header": known and known.names,
            "separator": known.separator if known else self._separator,
            "decimal_commas": known and known.decimal_commas,
        }

    def _set_dialect(self, dialect: Dialect) -> None:
        self._dialect = dialect
        if self.columns is None:
            self.columns = dialect.names
        self._fault = columns_fault(self.columns, dialect.names)

    def find_header(self) -> None:
        """Read the header line if it is there and was not read before.

        Raises `InputError` when there will be none, or it cannot be one.
        """
        lines, size, found = self._lines, SAMPLE_BYTES, self._dialect
        if found is not None:
            return
        while found is None:
            while sum(map(len, lines.ahead)) < size and lines.fill():
                pass
            sample = b"".join(lines.ahead)
            is_whole = (lines.ended and len(sample) < size) or size > ROW_LIMIT
            found = dialect_of(self._stream.title, sample[:size], is_whole, self._separator)
            if found is None and len(sample) < size:
                return
            size *= 4
        head = b"".join(lines.ahead[: found.header_lines])
        if b"\r" in head.replace(b"\r\n", b""):
            raise InputError(
                f"The lines of {self._stream.title} end as on old Macs, with \\r alone.",
                "Convert it: tr '\\r' '\\n' < OLD > NEW",
                ErrorKind.FILE_FORMAT,
            )
        if lines.encoding == "utf-8" and found.encoding == "cp1252":
            lines.recode(found.encoding)
        lines.take(found.header_lines)
        self._set_dialect(found)

    def _texts(self, at: int) -> Iterator[str]:
        """Yield the lines from line `at` ahead on, and note those with something wrong."""
        self._ran_out = False
        self._marks = {}
        lines = self._lines
        while True:
            for raw in islice(lines.ahead, at, None):
                try:
                    text = raw.decode("utf-8")
                except UnicodeDecodeError:
                    self._marks[at] = NOT_UTF8
                    text = raw.decode("utf-8", errors="surrogateescape")
                if "\0" in text:
                    self._marks[at] = NUL
                at += 1
                yield text
            if at == len(lines.ahead) and not lines.fill():
                self._ran_out = True
                return

    def _take(self, taken: TakenRows, max_records: int) -> None:
        self.find_header()
        if self._dialect is None or self._take_plain(taken, max_records, self._dialect):
            return
        at, more = 0, True
        while more and taken.n_read < max_records:
            at, more = self._take_until_fault(taken, max_records, at, self._dialect)
        self._lines.take(at)

    def _take_plain(self, taken: TakenRows, max_records: int, dialect: Dialect) -> bool:
        """Take a whole batch of lines without quotes and faults; False where there is anything."""
        lines = self._lines
        left = max_records - taken.n_read
        while len(lines.ahead) < left and lines.fill():
            pass
        chunk = lines.ahead[:left]
        raw = b"".join(chunk)
        separator, width = dialect.separator, len(dialect.names)
        if self._fault is not None or width < 2 or not chunk or b'"' in raw or b"\0" in raw:
            return False
        counts = set(map(bytes.count, chunk, repeat(separator.encode())))
        if counts != {width - 1} or max(map(len, chunk)) > csv.field_size_limit():
            return False
        try:
            text = raw.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            return False
        if "\r" in text:
            return False
        taken.cells = text.replace("\n", separator).split(separator)[: width * len(chunk)]
        taken.lines.extend(range(lines.line, lines.line + len(chunk)))
        lines.take(len(chunk))
        return True

    def _take_until_fault(
        self, taken: TakenRows, max_records: int, at: int, dialect: Dialect
    ) -> tuple[int, bool]:
        """Take rows from line `at` ahead on; return where to go on, and whether to.

        After a row that the csv module cannot make out, reading goes on at the line after its
        first: a stray quote costs one line, not all those up to the next quote.
        """
        start, first_line = at, self._lines.line
        width = len(dialect.names)
        left = max_records - taken.n_read
        reader = csv.reader(self._texts(at), delimiter=dialect.separator)
        try:
            for row in reader:
                if self._ran_out:
                    if not self._lines.ended:
                        return at, False
                    raise csv.Error(UNCLOSED)
                end = start + reader.line_num
                if len(row) == width and not self._marks and self._fault is None:
                    taken.rows.append(row)
                    taken.lines.append(first_line + at)
                    left -= 1
                elif row:
                    self._judge(taken, row, at, end, width)
                    left -= 1
                at = end
                if not left:
                    return at, False
        except csv.Error as error:
            reason = str(error)
            if "limit" in reason:
                is_one_line = start + reader.line_num <= at + 1
                long = f"a cell of more than {csv.field_size_limit():,} characters"
                reason = long if is_one_line else UNCLOSED
            self._reject(taken, first_line + at, reason, self._lines.ahead[at])
            return at + 1, True
        return at, False

    def _judge(self, taken: TakenRows, row: list[str], at: int, end: int, width: int) -> None:
        """Reject a row with something wrong in its lines; those before it may have been it."""
        reason = next((self._marks[k] for k in range(at, end) if k in self._marks), None)
        self._marks.clear()
        if reason is None and len(row) != width:
            reason = f"{len(row)} cells where the header has {width}"
            if end - at > 1:
                reason += f" (a quoted cell spans {end - at} lines)"
        reason = reason or self._fault
        line = self._lines.line + at
        if reason is None:
            taken.rows.append(row)
            taken.lines.append(line)
        else:
            self._reject(taken, line, reason, b"".join(self._lines.ahead[at:end]))

    def _frame_of(self, taken: TakenRows) -> pl.DataFrame:
        if self._dialect is None or not taken.lines:
            return pl.DataFrame(schema=dict.fromkeys(self.columns or (), pl.String))
        names = self._dialect.names
        cells = taken.cells or list(chain.from_iterable(taken.rows))
        text = {name: cells[k :: len(names)] for k, name in enumerate(names)}
        frame = pl.DataFrame(text, dict.fromkeys(names, pl.String)).select(self.columns)
        if not self._dialect.decimal_commas:
            return frame
        return frame.select(pl.all().str.replace(f"^{COMMA_CELL}$", "${1}.${2}"))
