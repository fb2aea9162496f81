"""CSV: rows read one by one, so that every row has its line and its byte offset."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.tables.batch import columns_fault, object_columns
from rareclass.tables.byte_streams import ByteStream
from rareclass.tables.dialect import (
    NOT_UTF8,
    NUL,
    ROW_LIMIT,
    SAMPLE_BYTES,
    UNCLOSED,
    dialect_of,
    with_points,
)
from rareclass.tables.text_source import BLOCK_BYTES, TakenRows, TextSource


class CsvSource(TextSource):
    """Rows from CSV text; every cell is text, as it stands but for decimal commas.

    How it is written is found out as `rareclass.tables.dialect` does it, from as much of its
    beginning as is there. Empty lines are no rows. Where the header does not have the columns that
    are asked for, all rows are rejected.
    """

    def __init__(
        self,
        stream: ByteStream,
        name: str,
        position: dict[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        separator: str | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        super().__init__(stream, name, None, block_bytes)
        self.columns = None if columns is None else list(columns)
        self._separator = separator
        self._decimal_commas: bool | None = None
        self._header: list[str] | None = None
        self._fault: str | None = None
        self._marks: dict[int, str] = {}
        self._ran_out = False
        if position is not None and position["offset"] and position["header"] is not None:
            self._go_on(position)

    def find_header(self) -> None:
        """Read the header line if it is there and was not read before.

        Raises `InputError` when there will be none, or it cannot be one.
        """
        if self._header is None:
            self._read_header()

    def _go_on(self, position: dict[str, Any]) -> None:
        self.columns = position["columns"]
        self._separator = position["separator"]
        self._decimal_commas = position["decimal_commas"]
        self._set_header(position["header"])
        self._go_to(position)

    def _position(self) -> dict[str, Any]:
        return {
            **super()._position(),
            "header": self._header,
            "separator": self._separator,
            "decimal_commas": self._decimal_commas,
        }

    def _set_header(self, names: list[str]) -> None:
        self._header = names
        if self.columns is None:
            self.columns = names
        self._fault = columns_fault(self.columns, names)

    def _read_header(self) -> None:
        """Find out how the text is written, if its header line is there."""
        lines, size, found = self._lines, SAMPLE_BYTES, None
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
        self._separator, self._decimal_commas = found.separator, found.decimal_commas
        lines.take(found.header_lines)
        self._set_header(found.names)

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
        if self._header is None or self._take_plain(taken, max_records):
            return
        at, more = 0, True
        while more and taken.n_read < max_records:
            at, more = self._take_until_fault(taken, max_records, at)
        self._lines.take(at)

    def _take_plain(self, taken: TakenRows, max_records: int) -> bool:
        """Take a whole batch of lines without quotes and faults; False where there is anything.

        It gives what the csv module would, several times as fast: all cells of all rows are cut
        apart at once.
        """
        lines = self._lines
        left = max_records - taken.n_read
        while len(lines.ahead) < left and lines.fill():
            pass
        chunk = lines.ahead[:left]
        raw = b"".join(chunk)
        separator, width = self._separator or ",", len(self._header or ())
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

    def _take_until_fault(self, taken: TakenRows, max_records: int, at: int) -> tuple[int, bool]:
        """Take rows from line `at` ahead on; return where to go on, and whether to.

        After a row that the csv module cannot make out, reading goes on at the line after its
        first: a stray quote costs one line, not all those up to the next quote.
        """
        start, first_line = at, self._lines.line
        width = len(self._header or ())
        left = max_records - taken.n_read
        reader = csv.reader(self._texts(at), delimiter=self._separator or ",")
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
                    self._judge(taken, row, at, end)
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

    def _judge(self, taken: TakenRows, row: list[str], at: int, end: int) -> None:
        """Reject a row with something wrong in its lines; those before it may have been it."""
        width = len(self._header or ())
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

    def _columns_of(self, taken: TakenRows) -> dict[str, Any]:
        if self._header is None or self.columns is None:
            return {}
        if not taken.lines:
            return object_columns(self.columns, [])
        width = len(self._header)
        if taken.cells:
            by_name = {name: taken.cells[k::width] for k, name in enumerate(self._header)}
        else:
            by_name = dict(zip(self._header, map(list, zip(*taken.rows, strict=True)), strict=True))
        return {name: self._cells(by_name[name]) for name in self.columns}

    def _cells(self, cells: Sequence[str]) -> Any:
        if self._decimal_commas:
            cells = with_points(cells)
        return np.fromiter(cells, dtype=object, count=len(cells))
