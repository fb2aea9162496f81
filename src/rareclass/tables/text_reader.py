"""Rows as they are read, in batches; of a text: its lines, and what reading them shares."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from rareclass.errors import ErrorKind, no_rows
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.byte_streams import OTHER_ROWS, ByteStream, FileBytes, ReadEnds, not_appended
from rareclass.tables.dialect import MARKS, ROW_LIMIT, SAMPLE_BYTES

BLOCK_BYTES = 1 << 20
TEXT_LIMIT = 500  # characters of a raw row that are kept; such a row may be of any length


class Rejected(NamedTuple):
    """A row that could not be taken, with the reason.

    The file is named as given, or as inside its folder, "-" for standard input; the raw row is cut
    at 500 characters. The reason is in words for the user.
    """

    file: str
    line: int
    reason: str
    text: str


class Batch(NamedTuple):
    """Rows of one file that follow each other, and the position after them.

    `frame` has the cells of the rows taken, in the order of the source's columns: text, or of
    Parquet its own types. `lines` says where each row begins, from 1: the line of a text file (the
    header of CSV is line 1), the number of the row in Parquet. `n_read` counts the rejected records
    too. `position` is where to go on after this batch, and can be written as JSON.
    """

    frame: pl.DataFrame
    lines: npt.NDArray[np.int64]
    file: str
    rejected: list[Rejected]
    n_read: int
    position: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """The number of rows taken, that is n_read less the rejected ones."""
        return len(self.lines)


class TextLines:
    r"""The lines of a stream as UTF-8, read a block ahead.

    A line ends with a newline, which stays on it; with \r alone where `any_end`. What follows the
    last end is a line once the stream has ended, and waits for its rest until then. Offsets are
    those of the stream's own bytes, whatever its encoding; a line that is not in it stays as it is.

    Attributes
    ----------
    ahead : list of bytes
        Lines read and not taken yet. Always the same list: it grows at its end.
    offset, line : int
        Bytes before the first of them; its number in the file, from 1.
    encoding : str
        By a mark of the first bytes, else the one that was named, else UTF-8; `recode` makes it
        another.
    known_encoding : str or None
        The one that a name or a mark of UTF-16 says.
    ended, inside_line : bool
        Whether no line will come after those ahead; whether what comes next is the rest of a line
        that was taken before.
    tail : bytes
        The beginning of a line whose rest is waited for.

    >>> from rareclass.tables.byte_streams import PipeBytes
    >>> lines = TextLines(PipeBytes(BytesIO(b"a\nbc\nd"), growing=False))
    >>> lines.fill(), lines.ahead
    (True, [b'a\n', b'bc\n'])
    >>> lines.take(2)
    >>> lines.offset, lines.line, lines.fill(), lines.ahead
    (5, 3, True, [b'd'])
    """

    def __init__(
        self, stream: ByteStream, any_end: bool = False, encoding: str | None = None
    ) -> None:
        self.ahead: list[bytes] = []
        self.offset = 0
        self.line = 1
        self.ended = False
        self.encoding, self.known_encoding = encoding or "utf-8", encoding
        self._stream, self._any_end = stream, any_end
        self._after_return = False  # a newline that comes next ends the line before
        self.tail = b""
        # What the lines ahead are in the stream, where that is not UTF-8.
        self._raw: list[bytes] = []
        self.ends = ReadEnds()  # of the bytes before `offset`
        self._at_start = True
        self.inside_line = False

    def fill(self) -> bool:
        """Read on until there is one more line; False where there is none, or none yet."""
        while not self.ended:
            block = self._stream.read(BLOCK_BYTES)
            if block is None:
                return False
            if not block:
                self.ended = True
                last, self.tail = self.tail, b""
                self._add([last] if last else [])
                return bool(last)
            data = self._without_mark(self.tail + block)
            if data is None:
                continue
            lines = self._cut(data)
            if len(self.tail) > ROW_LIMIT:
                number = self.line + len(self.ahead) + len(lines)
                raise ErrorKind.DAMAGED_FILE.error(
                    f"Line {number} of {self._stream.title} is longer than {ROW_LIMIT >> 20} MiB.",
                    "Is it a text file with a row on each line?",
                )
            if lines:
                self._add(lines)
                return True
        return False

    def take(self, n_lines: int) -> None:
        """Let go of the first lines ahead."""
        raw = self.ahead if self.encoding == "utf-8" else self._raw
        taken = b"".join(raw[:n_lines])
        self.ends.add(taken)
        self.offset += len(taken)
        self.line += n_lines
        del self.ahead[:n_lines], self._raw[:n_lines]

    def skip(self, offset: int, line: int, mark: str, encoding: str = "utf-8") -> None:
        """Go on at byte `offset`, where line `line` begins, on a stream nothing was read from.

        Raises `InputError` where the ends of what lies before have another `mark`.
        """
        self.offset, self.line, self._at_start = offset, line, False
        self.ends = self._stream.skip(offset)
        if self.ends.mark() != mark:
            raise not_appended(self._stream.title, OTHER_ROWS)
        before = self.ends.last
        self._heed_mark(self.ends.first)
        if self.known_encoding is None:
            self.encoding = encoding
        self._after_return = self._any_end and before.endswith("\r".encode(self.encoding))
        self.inside_line = line > 1 and not before.endswith("\n".encode(self.encoding))

    def recode(self, encoding: str) -> None:
        """Take the lines ahead, which were taken for UTF-8, and those that follow for others."""
        lines = self.ahead[:]
        self.ahead.clear()
        self.encoding = encoding
        self._add(lines)

    def take_rest_of_line(self) -> bytes | None:
        """Take what has been added to a line that was taken as the last one, if anything was.

        A stream that had ended without a newline may have grown since. A newline alone is what
        was missing, and not returned.
        """
        if not self.inside_line or not (self.ahead or self.fill()):
            return None
        self.inside_line = False
        rest = self.ahead[0]
        if self._after_return and rest != b"\n":
            return None
        self.take(1)
        self.line -= 1
        return rest if rest.strip(b"\r\n") else None

    def _cut(self, data: bytes) -> list[bytes]:
        """Return the lines in `data` as they are in the stream; the beginning of one is kept."""
        if not self.encoding.startswith("utf-16"):
            lines = data.splitlines(True) if self._any_end else BytesIO(data).readlines()
            self.tail = b"" if not lines or lines[-1].endswith(b"\n") else lines.pop()
            return lines
        text = data[: len(data) // 2 * 2].decode(self.encoding, "surrogatepass")
        texts = StringIO(text, newline="" if self._any_end else "\n").readlines()
        if texts and not texts[-1].endswith("\n"):
            texts.pop()
        lines = [text.encode(self.encoding, "surrogatepass") for text in texts]
        self.tail = data[sum(map(len, lines)) :]
        return lines

    def _add(self, lines: list[bytes]) -> None:
        if self.encoding != "utf-8":
            self._raw.extend(lines)
            for k, line in enumerate(lines):
                with suppress(UnicodeError):  # it is hardly UTF-8 either, and rejected
                    lines[k] = line.decode(self.encoding).encode()
        self.ahead.extend(lines)

    def _without_mark(self, data: bytes) -> bytes | None:
        """Drop a byte order mark at the start; None where the first bytes are still to come."""
        if not self._at_start:
            return data
        if len(data) < max(map(len, MARKS)) and b"\n" not in data:
            self.tail = data
            return None
        self._at_start, self.offset = False, self._heed_mark(data)
        self.ends.add(data[: self.offset])
        return data[self.offset :]

    def _heed_mark(self, start: bytes) -> int:
        """Take the encoding that a byte order mark says; return the length of the mark."""
        mark = next(filter(start.startswith, MARKS), b"")
        if mark:
            self.encoding = MARKS[mark]
            is_sure = self.encoding != "utf-8"  # which other bytes may belie
            self.known_encoding = self.encoding if is_sure else None
        return len(mark)


class TakenRows:
    """Records found for one batch so far.

    Good ones are `frames`, and after them `rows` of cells in the order of the file's columns;
    `lines` says where each begins.
    """

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.rows: list[Sequence[Any]] = []
        self.lines: list[int] = []
        self.rejected: list[Rejected] = []

    @property
    def n_read(self) -> int:
        """Number of good and bad records."""
        return len(self.lines) + len(self.rejected)


class Reading(NamedTuple):
    """How files are read.

    The columns to hand out are by default those of the file, or of the first rows of JSON; it may
    lack those that are known from `elsewhere`. `follow`: wait for more at the end of a text file
    that is not compressed. `nested`: the columns with lists or objects, where a file before says.
    """

    columns: list[str] | None = None
    text: TextSettings = DETECTED
    follow: bool = False
    elsewhere: Collection[str] = ()
    nested: Collection[str] | None = None

    def columns_of(self, found: list[str]) -> list[str]:
        """Return the columns to hand out of a file that has those `found`."""
        if self.columns is None:
            return found
        return [name for name in self.columns if name not in self.elsewhere or name in found]


READ_ALL = Reading()


class TextReader(ABC):
    """Rows of a text from its beginning or a position; a subclass says how lines become rows.

    `name` is handed on with each batch; `position` is where to go on, from an earlier one. The
    rows do not depend on how many bytes are read at a time. `as_table` makes a file a table, of
    which `batches` are all rows, in any number of passes.

    Attributes
    ----------
    columns : list of str or None
        None while they are not known.
    nested : collection of str, or None
        Those with lists or objects; None while they are not known.
    only : list of str or None
        The columns to hand out; None means all.
    is_table : bool
        Whether rows may be of any length, and come in parts of 32 MiB.
    """

    format_name: str
    path: Path  # of a table
    n_bytes: int  # of a table, on disk
    index_columns: tuple[str, ...] = ()
    category_columns: tuple[str, ...] = ()
    any_end = False  # of lines: a carriage return alone ends one, too
    columns: list[str] | None

    def __init__(
        self,
        stream: ByteStream,
        name: str,
        position: dict[str, Any] | None = None,
        reading: Reading = READ_ALL,
    ) -> None:
        self.only: list[str] | None = None
        self.is_table = False
        self._stream = stream
        self._name = name
        self.columns, self.nested, self._reading = reading.columns, reading.nested, reading
        self._lines = TextLines(stream, self.any_end, reading.text.encoding)
        if position is not None and position["offset"]:
            encoding = position.get("encoding", "utf-8")
            self._lines.skip(position["offset"], position["line"], position["ends"], encoding)
        self._begin(position)

    @abstractmethod
    def _begin(self, position: dict[str, Any] | None) -> None:
        """Take what a position says of the columns."""

    @abstractmethod
    def find_columns(self) -> None:
        """Read on until the columns are known, if they are there and were not known before."""

    @property
    def size_read(self) -> int:
        """Size of the file when all rows taken so far were in it, and no others."""
        return self._stream.packed_size or self._lines.offset

    @property
    def has_unfinished(self) -> bool:
        """Say whether the beginning of a row is there, whose rest is waited for."""
        return bool(self._lines.ahead or self._lines.tail)

    @property
    def position(self) -> dict[str, Any]:
        """Where to go on after the rows taken."""
        lines = self._lines
        place: dict[str, Any] = {"offset": lines.offset, "line": lines.line}
        place |= {"columns": self.columns, "ends": lines.ends.mark()}
        return place if lines.encoding == "utf-8" else {**place, "encoding": lines.encoding}

    def read(self, max_records: int) -> Batch | None:
        """Return the next records; None at the end; none of them where they have not arrived."""
        taken = TakenRows()
        line = self._lines.line - 1
        rest = self._lines.take_rest_of_line()
        if rest is not None:
            self._reject(taken, line, "the end of a line that had been read incomplete", rest)
        if not self._lines.inside_line:
            self.find_columns()
            self._take(taken, max_records)
        if not taken.n_read and self._lines.ended and not self._lines.ahead:
            return None
        return Batch(
            frame=self._frame_of(taken),
            lines=np.array(taken.lines, dtype=np.int64),
            file=self._name,
            rejected=taken.rejected,
            n_read=taken.n_read,
            position=self.position,
        )

    def finish(self) -> None:
        """Wait for no more rows than there are."""
        self._stream.finish()

    def close(self) -> None:
        """Close the file; another pass of `batches` opens it again."""
        self._stream.close()
        if isinstance(self._stream, FileBytes):
            self._stream.stored.release()

    def as_table(self) -> Self:
        """Find the columns of a file that is read in passes from now on.

        Raises `InputError` when it is no text, has no columns, or its compression is damaged.
        """
        assert isinstance(self._stream, FileBytes)
        self._stored = self._stream.stored
        self.path, self.n_bytes = self._stored.path, self._stored.size
        with closing(self._stream):
            self.find_columns()
            self._start = self.position
            if not self.columns:
                self._next(1, 0)
                raise no_rows(self.path)
        self._lines = TextLines(self._stream)  # what was read ahead
        return self

    def estimate_rows(self) -> int:
        """Return about the number of rows, from the length of the first lines."""
        sample = self._stored.head(SAMPLE_BYTES)
        n_lines = max(1, sample.count(b"\n"))
        if len(sample) < SAMPLE_BYTES:
            return max(0, n_lines - self._start["line"] + 1)
        # A compressed file is taken to be packed as tightly as its first lines.
        is_packed = self._stored.compression is not None
        return int(self.n_bytes / len(zlib.compress(sample) if is_packed else sample) * n_lines)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table in file order, `batch_rows` or fewer at a time.

        Raises `InputError` at the first row that cannot be taken, naming row and line.
        """
        n_rows = 0
        with closing(FileBytes(self._stored)) as stream:
            reader = type(self)(stream, self._name, self._start, self._reading)
            reader.path, reader.only, reader.is_table = self.path, list(columns), True
            while (frame := reader._next(batch_rows, n_rows)) is not None:
                n_rows += len(frame)
                yield from frame.to_arrow(compat_level=pl.CompatLevel.newest()).to_batches()
            self._stored.check_unchanged()

    def _next(self, n_rows: int, n_before: int) -> pl.DataFrame | None:
        batch = self.read(n_rows)
        if batch is None or not batch.rejected:
            return None if batch is None else batch.frame
        bad = batch.rejected[0]
        row = n_before + int((batch.lines < bad.line).sum()) + 1
        raise ErrorKind.DAMAGED_FILE.error(
            f"{self.path}, line {bad.line:,} (row {row:,}): {bad.reason}: {bad.text[:200]}",
            self.remedy(bad.reason),
        )

    @abstractmethod
    def remedy(self, reason: str) -> str:
        """Return what to do about a row that cannot be taken for this reason."""

    @abstractmethod
    def _take(self, taken: TakenRows, max_records: int) -> None:
        """Read up to so many records into `taken`."""

    @abstractmethod
    def _frame_of(self, taken: TakenRows) -> pl.DataFrame:
        """Return the cells of the rows as text."""

    def _reject(self, taken: TakenRows, line: int, reason: str, raw: bytes) -> None:
        # Four bytes a character at most; a cut one is dropped with what is over.
        text = raw[: 4 * TEXT_LIMIT + 4].decode("utf-8", errors="replace").rstrip("\r\n")
        taken.rejected.append(Rejected(self._name, line, reason, text[:TEXT_LIMIT]))
