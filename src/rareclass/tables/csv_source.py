"""CSV: rows read one by one, so that every row has its line and its byte offset."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.errors import InputError
from rareclass.tables.batch import columns_fault, object_columns
from rareclass.tables.byte_streams import ByteStream
from rareclass.tables.csv_file import checked_column_names, has_decimal_commas, separator_of
from rareclass.tables.text_lines import BLOCK_BYTES
from rareclass.tables.text_source import NOT_UTF8, TakenRows, TextSource

_SAMPLE_BYTES = 1 << 18
_NUL = "holds a NUL byte: was the file written completely?"
_UNCLOSED = "a quote is opened and not closed"
_COMMA_NUMBER = re.compile(r"(\s*[+-]?\d+),(\d+(?:[eE][+-]?\d+)?\s*)")


class CsvSource(TextSource):
    """Rows from CSV text; every cell is text, as it stands.

    The first line with something in it names the columns. Empty lines are no rows. Where cells
    are not separated by commas and numbers are written with a decimal comma, such cells are
    handed out with a point, as `rareclass.tables.csv_file.CsvFile` does.

    Parameters
    ----------
    stream : ByteStream
    name : str
    position : dict or None
    columns : sequence of str, optional
        The columns to hand out. Rows of a text whose header names others are rejected.
    separator : str, optional
        Found out by default.
    block_bytes : int

    Raises
    ------
    InputError
        By `find_header` and `read`, when there is no header line, or it cannot be one.
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

        Raises
        ------
        InputError
            When there will be none, or it cannot be one.
        """
        if self._header is None:
            self._read_header()

    def _go_on(self, position: dict[str, Any]) -> None:
        self.columns = position["columns"]
        self._separator = position["separator"]
        self._decimal_commas = position["decimal_commas"]
        self._set_header(position["header"])
        self._go_to(position["offset"], position["line"])

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
        """Find the separator and the columns, if the header line is there."""
        n_bytes = sum(map(len, self._lines.ahead))
        n_lines = len(self._lines.ahead)
        while n_bytes < _SAMPLE_BYTES and self._lines.fill():
            n_bytes += sum(map(len, self._lines.ahead[n_lines:]))
            n_lines = len(self._lines.ahead)
        sample = b"".join(self._lines.ahead)[:_SAMPLE_BYTES]
        text = sample.decode("utf-8", errors="replace")
        if not text.strip():
            if self._lines.ended:
                raise InputError(
                    f"{self._stream.title} holds no text.", "Check how it was made or copied."
                )
            return
        separator = self._separator or separator_of(text)
        found = self._first_record(separator)
        if found is None:
            return
        names, n_lines = found
        names = checked_column_names(Path(self._stream.title), [name.strip() for name in names])
        if self._separator is None:
            self._separator = separator
        if self._decimal_commas is None:
            self._decimal_commas = has_decimal_commas(text, separator)
        self._lines.take(n_lines)
        self._set_header(names)

    def _first_record(self, separator: str) -> tuple[list[str], int] | None:
        """Return the first row with something in it, and the lines up to its end."""
        reader = csv.reader(self._texts(0), delimiter=separator)
        try:
            for row in reader:
                if self._ran_out and not self._lines.ended:
                    return None
                if any(cell.strip() for cell in row):
                    marks = [why for at, why in self._marks.items() if at < reader.line_num]
                    if _NUL in marks:
                        raise self._no_text()
                    if marks or self._ran_out:
                        raise csv.Error(marks[0] if marks else _UNCLOSED)
                    return row, reader.line_num
        except csv.Error as error:
            if _NUL in self._marks.values():
                raise self._no_text() from None
            raise InputError(
                f"The header line of {self._stream.title} cannot be read: {error}.",
                "Check its quotes.",
            ) from error
        if self._lines.ended:
            raise InputError(
                f"{self._stream.title} has no header line.", "Put one with the column names first."
            )
        return None

    def _no_text(self) -> InputError:
        return InputError(
            f"{self._stream.title} is not a text file.", "Give CSV, JSON lines or Parquet."
        )

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
                    self._marks[at] = _NUL
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
                    raise csv.Error(_UNCLOSED)
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
            if "limit" in reason and start + reader.line_num > at + 1:
                reason = _UNCLOSED
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
            cells = [_with_point(cell) if "," in cell else cell for cell in cells]
        return np.fromiter(cells, dtype=object, count=len(cells))


def _with_point(cell: str) -> str:
    found = _COMMA_NUMBER.fullmatch(cell)
    return f"{found[1]}.{found[2]}" if found else cell
