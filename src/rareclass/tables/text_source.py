"""Rows of a text that arrives: its lines with their byte offsets, and what reading them shares."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
import polars as pl

from rareclass.errors import ErrorKind, InputError
from rareclass.tables.batch import TEXT_LIMIT, Batch, Rejected
from rareclass.tables.byte_streams import ByteStream
from rareclass.tables.dialect import ROW_LIMIT, UTF8_MARK, UTF16_MARKS

BLOCK_BYTES = 1 << 20


class TextLines:
    r"""The lines of a stream as UTF-8, read a block ahead.

    A line ends with a newline, which stays on it. What follows the last newline is a line once
    the stream has ended, and waits for its rest until then. Offsets are those of the stream's own
    bytes, whatever its encoding; a line that is not in it stays as it is.

    Attributes
    ----------
    ahead : list of bytes
        Lines read and not taken yet. Always the same list: it grows at its end.
    offset, line : int
        Bytes before the first of them; its number in the file, from 1.
    encoding : str
        UTF-8 or UTF-16, by the first bytes; `recode` makes it another.
    ended, inside_line : bool
        Whether no line will come after those ahead; whether what comes next is the rest of a line
        that was taken before.
    tail : bytes
        The beginning of a line whose rest is waited for.

    Examples
    --------
    >>> from rareclass.tables.byte_streams import PipeBytes
    >>> lines = TextLines(PipeBytes(BytesIO(b"a\nbc\nd"), growing=False))
    >>> lines.fill(), lines.ahead
    (True, [b'a\n', b'bc\n'])
    >>> lines.take(2)
    >>> lines.offset, lines.line, lines.fill(), lines.ahead
    (5, 3, True, [b'd'])
    """

    def __init__(self, stream: ByteStream) -> None:
        self.ahead: list[bytes] = []
        self.offset = 0
        self.line = 1
        self.ended = False
        self.encoding = "utf-8"
        self._stream = stream
        self.tail = b""
        # What the lines ahead are in the stream, where that is not UTF-8.
        self._sizes: list[int] = []
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
                raise InputError(
                    f"Line {number} of {self._stream.title} is longer than {ROW_LIMIT >> 20} MiB.",
                    "Is it a text file with a row on each line?",
                    ErrorKind.DAMAGED_FILE,
                )
            if lines:
                self._add(lines)
                return True
        return False

    def take(self, n_lines: int) -> None:
        """Let go of the first lines ahead."""
        sizes = map(len, self.ahead[:n_lines])
        self.offset += sum(sizes if self.encoding == "utf-8" else self._sizes[:n_lines])
        self.line += n_lines
        del self.ahead[:n_lines], self._sizes[:n_lines]

    def skip(self, offset: int, line: int, encoding: str = "utf-8") -> None:
        """Go on at byte `offset`, where line `line` begins, on a stream nothing was read from."""
        self.offset, self.line, self.encoding = offset, line, encoding
        self._at_start = offset == 0
        newline = "\n".encode(encoding)
        before = b""
        for place in range(max(1, offset - len(newline) + 1), offset + 1):
            before += self._stream.skip(place)
        self.inside_line = line > 1 and before != newline

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
        self.take(1)
        self.line -= 1
        return rest if rest.strip(b"\r\n") else None

    def _cut(self, data: bytes) -> list[bytes]:
        """Return the lines in `data` as they are in the stream; the beginning of one is kept."""
        if not self.encoding.startswith("utf-16"):
            lines = BytesIO(data).readlines()
            self.tail = b"" if not lines or lines[-1].endswith(b"\n") else lines.pop()
            return lines
        whole = len(data) // 2 * 2
        texts = data[:whole].decode(self.encoding, "surrogatepass").split("\n")
        lines = [f"{text}\n".encode(self.encoding, "surrogatepass") for text in texts[:-1]]
        self.tail = data[sum(map(len, lines)) :]
        return lines

    def _add(self, lines: list[bytes]) -> None:
        if self.encoding != "utf-8":
            self._sizes.extend(map(len, lines))
            for k, line in enumerate(lines):
                with suppress(UnicodeDecodeError):  # it is hardly UTF-8 either, and rejected
                    lines[k] = line.decode(self.encoding).encode()
        self.ahead.extend(lines)

    def _without_mark(self, data: bytes) -> bytes | None:
        """Drop a byte order mark at the start; None where the first bytes are still to come."""
        if not self._at_start:
            return data
        if len(data) < len(UTF8_MARK) and b"\n" not in data:
            self.tail = data
            return None
        self._at_start = False
        self.encoding = UTF16_MARKS.get(data[:2], "utf-8")
        mark = 2 if self.encoding != "utf-8" else 3 if data.startswith(UTF8_MARK) else 0
        self.offset = mark
        return data[mark:]


class TakenRows:
    """Records found for one batch so far.

    Good ones are `rows` of cells in the order of the source's columns, or all `cells`, row after
    row; `lines` says where each begins.
    """

    def __init__(self) -> None:
        self.rows: list[Sequence[Any]] = []
        self.cells: list[str] = []
        self.lines: list[int] = []
        self.rejected: list[Rejected] = []

    @property
    def n_read(self) -> int:
        """Number of good and bad records."""
        return len(self.lines) + len(self.rejected)


class TextSource(ABC):
    """Rows of a text; a subclass says how lines become rows.

    `name` is handed on with each batch; `position` is where to go on, from an earlier one. The
    rows do not depend on how many bytes are read at a time.
    """

    columns: list[str] | None

    def __init__(self, stream: ByteStream, name: str, position: dict[str, Any] | None) -> None:
        self._stream = stream
        self._name = name
        self._lines = TextLines(stream)
        if position is not None and position["offset"]:
            self._go_to(position)

    @property
    def size_read(self) -> int:
        """Size of the file when all rows taken so far were in it, and no others."""
        return self._stream.packed_size or self._lines.offset

    @property
    def has_unfinished(self) -> bool:
        """Say whether the beginning of a row is there, whose rest is waited for."""
        return bool(self._lines.ahead or self._lines.tail)

    def read(self, max_records: int) -> Batch | None:
        """Return the next records; None at the end; none of them where they have not arrived."""
        taken = TakenRows()
        line = self._lines.line - 1
        rest = self._lines.take_rest_of_line()
        if rest is not None:
            self._reject(taken, line, "the end of a line that had been read incomplete", rest)
        if not self._lines.inside_line:
            self._take(taken, max_records)
        if not taken.n_read and self._lines.ended and not self._lines.ahead:
            return None
        return Batch(
            frame=self._frame_of(taken),
            lines=np.array(taken.lines, dtype=np.int64),
            file=self._name,
            rejected=taken.rejected,
            n_read=taken.n_read,
            position=self._position(),
        )

    def finish(self) -> None:
        """Wait for no more rows than there are."""
        self._stream.finish()

    def close(self) -> None:
        """Give the file back."""
        self._stream.close()

    def _go_to(self, position: dict[str, Any]) -> None:
        encoding = position.get("encoding", "utf-8")
        self._lines.skip(position["offset"], position["line"], encoding)

    @abstractmethod
    def _take(self, taken: TakenRows, max_records: int) -> None:
        """Read up to so many records into `taken`."""

    def _position(self) -> dict[str, Any]:
        lines = self._lines
        place = {"offset": lines.offset, "line": lines.line, "columns": self.columns}
        return place if lines.encoding == "utf-8" else {**place, "encoding": lines.encoding}

    @abstractmethod
    def _frame_of(self, taken: TakenRows) -> pl.DataFrame:
        """Return the cells of the rows as text."""

    def _reject(self, taken: TakenRows, line: int, reason: str, raw: bytes) -> None:
        # Four bytes a character at most; a cut one is dropped with what is over.
        text = raw[: 4 * TEXT_LIMIT + 4].decode("utf-8", errors="replace").rstrip("\r\n")
        taken.rejected.append(Rejected(self._name, line, reason, text[:TEXT_LIMIT]))
