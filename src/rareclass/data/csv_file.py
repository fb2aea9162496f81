"""Text tables with any separator, plain or compressed, read one batch of rows at a time."""

import bz2
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv

from rareclass.errors import InputError

SEPARATORS = (",", ";", "\t", "|", " ")
_SAMPLE_BYTES = 1 << 18
_BLOCK_BYTES = 8 << 20
_PLAIN_SUFFIX_OF_COMPRESSED = {".gz": "gzip", ".bz2": "bz2"}


class CsvFile:
    """A text table whose first line names the columns; every cell is read as text.

    Parameters
    ----------
    path : Path
        The file, plain or compressed with gzip or bzip2 (found from its content).

    Raises
    ------
    InputError
        When it has no header line, is binary, or its compression is damaged.
    """

    format_name = "CSV"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._compression = _compression_of(path)
        sample = self._read_sample()
        self._encoding = _encoding_of(sample)
        if b"\0" in sample and self._encoding != "utf-16":
            raise InputError(f"{path} is not a text file.", "Give a CSV, Parquet or svmlight file.")
        text = sample.decode(self._encoding, errors="replace")
        if not text.strip():
            raise InputError(f"{path} holds no text.", "Check how it was made or copied.")
        self.separator = _separator_of(text)
        self.columns = _header_of(path, text, self.separator)
        self._sample_lines = max(1, sample.count(b"\n"))
        self._sample_size = len(sample)

    def estimate_rows(self) -> int:
        """Return about the number of rows, from the length of the first lines."""
        if self._sample_size < _SAMPLE_BYTES:
            return max(0, self._sample_lines - 1)
        return int(self._plain_size() / self._sample_size * self._sample_lines)

    def estimate_memory(self) -> int:
        """Return about how many bytes the columns take in memory."""
        return max(self._plain_size(), 8 * self.estimate_rows() * len(self.columns))

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
            raise self._damaged() from error

    def _batches_of(
        self, file: BinaryIO, wanted: list[str], batch_rows: int
    ) -> Iterator[pl.DataFrame]:
        reader = pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(
                block_size=_BLOCK_BYTES,
                column_names=self.columns,
                skip_rows=1,
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
                for start in range(0, frame.height, batch_rows):
                    yield frame.slice(start, batch_rows)

    def _open(self) -> BinaryIO:
        if self._compression == "gzip":
            return cast(BinaryIO, gzip.open(self.path, "rb"))
        if self._compression == "bz2":
            return cast(BinaryIO, bz2.open(self.path, "rb"))
        return self.path.open("rb")

    def _read_sample(self) -> bytes:
        try:
            with self._open() as file:
                return file.read(_SAMPLE_BYTES)
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged() from error

    def _plain_size(self) -> int:
        size = self.path.stat().st_size
        if self._compression is None or self._sample_size < _SAMPLE_BYTES:
            return max(size, self._sample_size)
        packed = len(zlib.compress(self._read_sample()))
        return int(size * self._sample_size / packed)

    def _damaged(self) -> InputError:
        return InputError(
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


def _compression_of(path: Path) -> str | None:
    with path.open("rb") as file:
        magic = file.read(3)
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    if magic == b"BZh":
        return "bz2"
    named = _PLAIN_SUFFIX_OF_COMPRESSED.get(path.suffix.lower())
    if named:
        raise InputError(
            f"{path} is named like a {named} file but is not one.",
            f"If it is plain text, take the {path.suffix} off its name.",
        )
    return None


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


def _separator_of(text: str) -> str:
    """Return the separator under which most of the first lines have the header's cell count."""
    lines = text.splitlines()[:-1][:200] or text.splitlines()[:1]

    def agreement(separator: str) -> tuple[float, int]:
        rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=separator))
        rows = [row for row in rows if row]
        width = len(rows[0]) if rows else 1
        if width < 2:
            return (0.0, 0)
        return (round(sum(len(row) == width for row in rows) / len(rows), 1), width)

    best = max(SEPARATORS, key=agreement)
    return best if agreement(best)[1] > 1 else ","


def _header_of(path: Path, text: str, separator: str) -> list[str]:
    names = [name.strip() for name in next(csv.reader(io.StringIO(text), delimiter=separator))]
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
