"""Text tables with any separator, plain or compressed, read one batch of rows at a time."""

import csv
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv

from rareclass.errors import InputError
from rareclass.tables.compressed import compression_of, open_plain
from rareclass.tables.opening import cannot_open

SEPARATORS = (",", ";", "\t", "|", "^", ":", " ")
_SAMPLE_BYTES = 1 << 18
_BLOCK_BYTES = 8 << 20
_CELL_WITH_COMMA = r"^(\s*[+-]?\d+),(\d+(?:[eE][+-]?\d+)?\s*)$"
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
# 1,234 may be either; 1,234,567 and 1,234.5 can only have thousands set off by commas.
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_SURELY_THOUSANDS = re.compile(
    r"[+-]?[1-9]\d{0,2}(?:,\d{3}){2,}(?:\.\d*)?|[+-]?[1-9]\d{0,2},\d{3}\.\d+"
)
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")


class CsvFile:
    """A text table whose first line names the columns; every cell is read as text.

    Where cells are not separated by commas and numbers are written with a decimal comma, such
    cells are handed out with a point: 1.5 for 1,5. Blank lines before the header are skipped.

    Parameters
    ----------
    path : Path
        The file, plain or compressed with gzip or bzip2 (found from its content).
    separator : str, optional
        What separates the cells; by default found out.

    Raises
    ------
    InputError
        When it has no header line, is binary, or its compression is damaged.
    """

    format_name = "CSV"

    def __init__(self, path: Path, separator: str | None = None) -> None:
        self.path = path
        self._compression = compression_of(path)
        sample = self._read_sample()
        self._encoding = _encoding_of(sample)
        if b"\0" in sample and self._encoding != "utf-16":
            raise InputError(f"{path} is not a text file.", "Give a CSV, Parquet or svmlight file.")
        text = sample.decode(self._encoding, errors="replace")
        if not text.strip():
            raise InputError(f"{path} holds no text.", "Check how it was made or copied.")
        self.separator = separator or separator_of(text)
        names, self._header_lines = _first_record(path, text, self.separator)
        self.columns = checked_column_names(path, names)
        self._has_decimal_commas = has_decimal_commas(text, self.separator)
        self._sample_lines = max(1, sample.count(b"\n"))
        self._sample_size = len(sample)

    def estimate_rows(self) -> int:
        """Return about the number of rows, from the length of the first lines."""
        if self._sample_size < _SAMPLE_BYTES:
            return max(0, self._sample_lines - 1)
        return int(self._plain_size() / self._sample_size * self._sample_lines)

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in file order as text, `batch_rows` or fewer at a time."""
        wanted = list(self.columns if columns is None else columns)
        try:
            with self._open() as file:
                yield from self._batches_of(file, wanted, batch_rows)
        except pa.ArrowException as error:
            raise self._unreadable(error) from error
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(error) from error

    def _batches_of(
        self, file: BinaryIO, wanted: list[str], batch_rows: int
    ) -> Iterator[pl.DataFrame]:
        reader = pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(
                block_size=_BLOCK_BYTES,
                column_names=self.columns,
                skip_rows=self._header_lines,
                encoding=self._encoding,
                use_threads=False,
            ),
            parse_options=pa_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(self.columns, pa.large_string()),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )
        with reader:
            for block in reader:
                frame = pl.from_arrow(block)
                assert isinstance(frame, pl.DataFrame)
                if self._has_decimal_commas:
                    frame = frame.with_columns(pl.all().str.replace(_CELL_WITH_COMMA, "$1.$2"))
                for start in range(0, frame.height, batch_rows):
                    yield frame.slice(start, batch_rows)

    def _open(self) -> BinaryIO:
        return open_plain(self.path, self._compression)

    def _read_sample(self) -> bytes:
        try:
            with self._open() as file:
                return file.read(_SAMPLE_BYTES)
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(error) from error

    def _plain_size(self) -> int:
        size = self.path.stat().st_size
        if self._compression is None or self._sample_size < _SAMPLE_BYTES:
            return max(size, self._sample_size)
        packed = len(zlib.compress(self._read_sample()))
        return int(size * self._sample_size / packed)

    def _damaged(self, error: Exception) -> InputError:
        return cannot_open(self.path, error, was_there=True) or InputError(
            f"{self.path} is cut short or damaged ({self._compression or 'plain text'}).",
            "Copy or write it again.",
        )

    def _unreadable(self, error: Exception) -> InputError:
        reason = str(error).splitlines()[0].removeprefix("CSV parse error: ")
        if "invalid UTF8" in reason or "codec can't decode" in reason:
            return InputError(
                f"{self.path} is not UTF-8 text.",
                "Convert it: iconv -f latin1 -t utf-8 OLD > NEW",
            )
        if "Empty CSV" in reason:
            return InputError(f"{self.path} has a header line but no rows.", "")
        return InputError(
            f"{self.path} cannot be read as a table separated by {self.separator!r}: "
            f"{reason[:300]}",
            "Every row needs as many cells as the header line; quote cells that hold separators.",
        )


def _encoding_of(sample: bytes) -> str:
    if sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if sample[:3] == b"\xef\xbb\xbf":
        return "utf-8-sig"
    try:
        # The sample may end inside a character: four bytes are the longest.
        sample[: max(0, len(sample) - 4)].decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def separator_of(text: str) -> str:
    """Return the separator under which most of the first lines have the header's cell count."""
    lines = [line for line in text.splitlines() if line.strip()]
    lines = lines[:-1][:200] or lines[:1]

    def agreement(separator: str) -> tuple[float, int]:
        rows = _records("\n".join(lines), separator)
        width = len(rows[0]) if rows else 1
        if width < 2:
            return (0.0, 0)
        return (round(sum(len(row) == width for row in rows) / len(rows), 1), width)

    best = max(SEPARATORS, key=agreement)
    return best if agreement(best)[1] > 1 else ","


def _records(text: str, separator: str) -> list[list[str]]:
    """Return the rows that are not empty, as far as the text can be read."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=None), delimiter=separator):
            if row:
                rows.append(row)
    except csv.Error:  # such as a quoted cell that never ends
        pass
    return rows


def _first_record(path: Path, text: str, separator: str) -> tuple[list[str], int]:
    """Return the first row with something in it, and the lines of the file up to its end."""
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=separator)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                return [name.strip() for name in row], reader.line_num
    except csv.Error as error:
        raise InputError(
            f"The header line of {path} cannot be read: {error}.", "Check its quotes."
        ) from error
    raise InputError(f"{path} has no header line.", "Put one with the column names first.")


def has_decimal_commas(text: str, separator: str) -> bool:
    """Whether a comma within digits marks decimals, judged from the first lines.

    Where all that is there could be thousands as well, it does in files that are separated by
    semicolons: those are written where the comma marks decimals.
    """
    if separator == ",":
        return False
    cells = [cell.strip() for row in _records(text, separator)[1:5001] for cell in row]
    if any(_SURELY_THOUSANDS.fullmatch(cell) for cell in cells):
        return False
    if any(_COMMA_NUMBER.fullmatch(c) and not _MAYBE_THOUSANDS.fullmatch(c) for c in cells):
        return True
    return separator == ";" and not any(_POINT_NUMBER.fullmatch(cell) for cell in cells)


def checked_column_names(path: Path, names: list[str]) -> list[str]:
    """Return the names of a header line, empty ones filled in; it must be one, and none twice."""
    if all(_is_number(name) for name in names):
        raise InputError(
            f"The first line of {path} holds numbers, not column names: {', '.join(names[:4])}.",
            "Put a header line with the column names first.",
        )
    seen: set[str] = set()
    for position, name in enumerate(names, start=1):
        if not name:
            # pandas writes its index under an empty name.
            name = names[position - 1] = f"column_{position}"
        if name in seen:
            raise InputError(
                f"{path} has two columns named {name!r}.", "Rename one in the header line."
            )
        seen.add(name)
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
