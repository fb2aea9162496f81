"""One file, or standard input, opened as the source of rows that it is."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from rareclass.errors import InputError
from rareclass.tables.batch import Batch
from rareclass.tables.byte_streams import ByteStream, FileBytes, PipeBytes, plain_suffix
from rareclass.tables.csv_source import CsvSource
from rareclass.tables.dialect import UTF8_MARK, UTF16_MARKS
from rareclass.tables.folders import (
    SNIFFED_BYTES,
    SVMLIGHT_SUFFIXES,
    format_of_name,
    looks_like_svmlight,
)
from rareclass.tables.jsonl_source import JsonLinesSource
from rareclass.tables.parquet_source import ParquetSource
from rareclass.tables.text_source import BLOCK_BYTES, TextSource


class Reading(NamedTuple):
    """How files are read.

    `follow`: wait for more at the end of a text file that is not compressed. The columns to hand
    out are by default those of the file, or of the first JSON object. `exact_columns`: see
    `ParquetSource`. The rows do not depend on how many bytes are read at a time.
    """

    follow: bool = False
    columns: list[str] | None = None
    separator: str | None = None
    exact_columns: Collection[str] = ()
    block_bytes: int = BLOCK_BYTES


class FileSource(Protocol):
    """The rows of one file.

    `read` gives None at the end, and a batch without records where more may come.
    """

    columns: Any

    def read(self, max_records: int) -> Batch | None:
        """Return the next records."""

    def finish(self) -> None:
        """Take the end of what is there for the end."""

    def close(self) -> None:
        """Give the file back."""


def open_file(
    path: Path, name: str, position: dict[str, Any] | None, reading: Reading
) -> FileSource:
    """Open a file by its suffix, or else by its first bytes.

    Raises `InputError` when it is missing or not what its suffix says, or belongs to another
    position.
    """
    file_format = format_of_name(path) or _format_of_content(path)
    _check_format(file_format, position, str(path))
    if file_format == "parquet":
        return ParquetSource(path, name, position, reading.columns, reading.exact_columns)
    return _open_text(FileBytes(path, reading.follow), name, file_format, position, reading)


def open_pipe(pipe: BinaryIO, position: dict[str, Any] | None, reading: Reading) -> FileSource:
    """Open standard input: CSV, or JSON lines where the first line begins with a brace.

    A pipe cannot go back: with a position the same stream is expected from its beginning, and
    what was read before is passed over.
    """
    stream = PipeBytes(pipe, reading.follow)
    if stream.start.startswith(b"PAR1"):
        raise InputError(
            "Parquet cannot be read from standard input.", "Give the name of the file."
        )
    file_format = _format_of_text(stream.start)
    _check_format(file_format, position, "Standard input")
    return _open_text(stream, "-", file_format, position, reading)


def _open_text(
    stream: ByteStream,
    name: str,
    file_format: str,
    position: dict[str, Any] | None,
    reading: Reading,
) -> TextSource:
    columns, separator, block_bytes = reading.columns, reading.separator, reading.block_bytes
    try:
        if file_format == "jsonl":
            return JsonLinesSource(stream, name, position, columns, block_bytes)
        source = CsvSource(stream, name, position, columns, separator, block_bytes)
        source.find_header()
    except BaseException:
        stream.close()
        raise
    return source


def _check_format(file_format: str, position: dict[str, Any] | None, title: str) -> None:
    key = "row" if file_format == "parquet" else "header" if file_format == "csv" else "offset"
    if position is None or (key in position and (key != "offset" or "header" not in position)):
        return
    raise InputError(
        f"{title} is {file_format}, which is not what was read before.",
        "Give the same source, or an empty checkpoint.",
    )


def _format_of_content(path: Path) -> str:
    stream = FileBytes(path, growing=False)
    try:
        start = stream.read(SNIFFED_BYTES) or b""
    finally:
        stream.close()
    if plain_suffix(path) in SVMLIGHT_SUFFIXES or looks_like_svmlight(start):
        raise InputError(
            f"{path} is an svmlight file, which cannot be read as a stream.",
            "Give CSV, JSON lines or Parquet; fit, score and evaluate read svmlight.",
        )
    return "parquet" if start.startswith(b"PAR1") else _format_of_text(start)


def _format_of_text(start: bytes) -> str:
    if start[:2] in UTF16_MARKS:
        start = start[2 : len(start) // 2 * 2].decode(UTF16_MARKS[start[:2]], "replace").encode()
    return "jsonl" if start.removeprefix(UTF8_MARK).lstrip().startswith(b"{") else "csv"
