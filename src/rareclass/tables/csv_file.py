"""CSV: rows of cells as text, many at a time where they are well made, else one by one."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv

from rareclass.tables import columns_fault
from rareclass.tables.dialect import (
    ROW_LIMIT,
    SAMPLE_BYTES,
    UNCLOSED,
    Dialect,
    dialect_of,
    fault_of_text,
    line_ends,
    row_ends,
    tell_fallback,
    with_points,
)
from rareclass.tables.text_reader import TakenRows, TextReader

# Blocks of 1 MiB that are read at once.
_CHUNK_BLOCKS = 32


class CsvReader(TextReader):
    """Rows from CSV text; every cell is text, as it stands but for decimal commas.

    The dialect is found from as much of the beginning as is there. Empty lines are no rows. Where
    the header does not have the columns that are asked for, all rows are rejected.
    """

    format_name, any_end = "CSV", True

    _dialect: Dialect | None = None
    _fault: str | None = None

    def _begin(self, position: dict[str, Any] | None) -> None:
        if position is not None and position["offset"] and position["header"] is not None:
            written = position["separator"], position["decimal_commas"], position["header"]
            dialect = Dialect(position.get("encoding", "utf-8"), *written)
            self._set_dialect(dialect, position["columns"])
        self.find_columns()

    @property
    def position(self) -> dict[str, Any]:
        """Where to go on after the rows taken, and how they are written."""
        known = self._dialect
        return {
            **super().position,
            "header": known and known.names,
            "separator": known.separator if known else self._reading.text.separator,
            "decimal_commas": known and known.decimal_commas,
        }

    def _set_dialect(self, dialect: Dialect, columns: list[str]) -> None:
        self._dialect, self.columns = dialect, columns
        self._fault = columns_fault(columns, dialect.names)

    def remedy(self, reason: str) -> str:
        """Say what a row must be like."""
        if reason == UNCLOSED:
            return "Close the quote, or take the row out."
        return "Every row needs as many cells as the header line; quote cells that hold separators."

    def find_columns(self) -> None:
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
            known = replace(self._reading.text, encoding=lines.known_encoding)
            found = dialect_of(self._stream.title, sample[:size], is_whole, known)
            if found is None and len(sample) < size:
                return
            size *= 4
        if found.encoding != lines.encoding:
            lines.recode(found.encoding)
            tell_fallback(self._stream.title, sample[: size // 4])
        lines.take(found.header_lines)
        self._set_dialect(found, self._reading.columns_of(found.names))

    def _texts(self, at: int) -> Iterator[str]:
        """Yield the lines from line `at` ahead on."""
        self._ran_out = False
        lines = self._lines
        while True:
            for raw in islice(lines.ahead, at, None):
                at += 1
                yield raw.decode("utf-8", "surrogateescape")
            if at == len(lines.ahead) and not lines.fill():
                self._ran_out = True
                return

    def _take(self, taken: TakenRows, max_records: int) -> None:
        if self._dialect is None:
            return
        while taken.n_read < max_records and self._take_chunk(
            taken, max_records - taken.n_read, self._dialect
        ):
            if self.is_table:
                return
        at, more = 0, True
        while more and taken.n_read < max_records:
            at, more = self._take_until_fault(taken, max_records, at, self._dialect)
        self._lines.take(at)

    def _take_chunk(self, taken: TakenRows, most: int, dialect: Dialect) -> bool:
        """Take whole rows of up to so many lines at once; False where any may have a fault."""
        lines = self._lines
        for _ in range(_CHUNK_BLOCKS):
            if len(lines.ahead) >= most or not lines.fill():
                break
        text = b"".join(lines.ahead[:most])
        if not text or self._fault is not None or b"\0" in text:
            return False
        if not text.endswith((b"\n", b"\r")):
            text += b"\n"
        ends = row_ends(text, dialect.separator.encode())
        longest = ROW_LIMIT if self.is_table else csv.field_size_limit()
        if not len(ends) or np.diff(ends, prepend=0).max() > longest:
            return False
        text = text[: ends[-1]]
        try:
            cells = self._cells_of(text, dialect)
        except pa.ArrowException:
            return False
        ends_of_lines = line_ends(text)
        starts = np.append(0, ends[:-1])
        if len(cells) < len(ends):  # empty lines are no rows
            letters = np.frombuffer(text, np.uint8)[starts]
            starts = starts[(letters != ord("\n")) & (letters != ord("\r"))]
        taken.lines += (lines.line + np.searchsorted(ends_of_lines, starts, "right")).tolist()
        taken.frames.append(cells)
        lines.take(len(ends_of_lines))
        return True

    def _cells_of(self, text: bytes, dialect: Dialect) -> pl.DataFrame:
        table = pa_csv.read_csv(
            pa.BufferReader(text),
            read_options=pa_csv.ReadOptions(block_size=len(text), column_names=dialect.names),
            parse_options=pa_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(dialect.names, pa.large_string()),
                include_columns=self.only or self.columns,
                strings_can_be_null=False,
            ),
        )
        return pl.DataFrame(pl.from_arrow(table))

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
                if row:
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
        """Take a row, or reject it with what is wrong."""
        reason = fault_of_text(row, self._lines.encoding)
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
        columns = self.only or self.columns or []
        frames = taken.frames
        if taken.rows and self._dialect is not None:
            cells = zip(*taken.rows, strict=True)
            text = dict(zip(self._dialect.names, map(list, cells), strict=True))
            rows = pl.DataFrame(text, dict.fromkeys(text, pl.String))
            frames.append(rows.select(columns))
        if not frames:
            return pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
        frame = pl.concat(frames)
        return frame if self._dialect is None else with_points(frame, self._dialect.decimal_commas)
