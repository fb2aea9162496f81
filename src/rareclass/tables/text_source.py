"""What reading rows from the lines of a text has in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from rareclass.tables.batch import TEXT_LIMIT, Batch, Rejected, object_columns
from rareclass.tables.byte_streams import ByteStream
from rareclass.tables.text_lines import BLOCK_BYTES, TextLines

NOT_UTF8 = "not UTF-8 text (convert it: iconv -f latin1 -t utf-8 OLD > NEW)"


class TakenRows:
    """The records found for one batch so far.

    Attributes
    ----------
    rows : list of sequences
        The cells of the good ones, in the order of the source's columns.
    cells : list of str
        Instead of `rows`: the cells of all of them, row after row.
    lines : list of int
        Where each begins.
    rejected : list of Rejected
        The bad ones.
    """

    def __init__(self) -> None:
        self.rows: list[Sequence[Any]] = []
        self.cells: list[str] = []
        self.lines: list[int] = []
        self.rejected: list[Rejected] = []

    @property
    def n_read(self) -> int:
        """Good and bad records."""
        return len(self.lines) + len(self.rejected)


class TextSource(ABC):
    """Rows of a text; a subclass says how lines become rows.

    Parameters
    ----------
    stream : ByteStream
    name : str
        Handed on with each batch.
    position : dict or None
        Where to go on, from an earlier batch.
    block_bytes : int
        Bytes to read at a time. The rows do not depend on it.
    """

    columns: list[str] | None

    def __init__(
        self,
        stream: ByteStream,
        name: str,
        position: dict[str, Any] | None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._stream = stream
        self._name = name
        self._lines = TextLines(stream, block_bytes)
        if position is not None and position["offset"]:
            self._go_to(position["offset"], position["line"])

    @property
    def size_read(self) -> int:
        """The size of the file when all rows taken so far were in it, and no others."""
        return self._stream.packed_size or self._lines.offset

    def read(self, max_records: int) -> Batch | None:
        """Return the next records; None at the end; none of them where they have not arrived."""
        taken = TakenRows()
        line = self._lines.line - 1
        rest = self._lines.take_rest_of_line()
        if rest is not None:
            self._reject(taken, line, "the rest of a line that had been read incomplete", rest)
        if not self._lines.inside_line:
            self._take(taken, max_records)
        if not taken.n_read and self._lines.ended and not self._lines.ahead:
            return None
        return Batch(
            columns=self._columns_of(taken),
            lines=np.array(taken.lines, dtype=np.int64),
            file=self._name,
            rejected=taken.rejected,
            n_read=taken.n_read,
            position=self._position(),
        )

    @property
    def has_unfinished(self) -> bool:
        """Whether the beginning of a row is there, whose rest is waited for."""
        return self._lines.has_unfinished

    def finish(self) -> None:
        """Wait for no more rows than there are."""
        self._stream.finish()

    def close(self) -> None:
        """Give the file back."""
        self._stream.close()

    def _go_to(self, offset: int, line: int) -> None:
        self._lines.skip(offset, line)

    @abstractmethod
    def _take(self, taken: TakenRows, max_records: int) -> None:
        """Read up to so many records into `taken`."""

    def _position(self) -> dict[str, Any]:
        return {"offset": self._lines.offset, "line": self._lines.line, "columns": self.columns}

    def _columns_of(self, taken: TakenRows) -> dict[str, Any]:
        return object_columns(self.columns or [], taken.rows)

    def _reject(self, taken: TakenRows, line: int, reason: str, raw: bytes) -> None:
        # Four bytes a character at most; a cut one is dropped with what is over.
        text = raw[: 4 * TEXT_LIMIT + 4].decode("utf-8", errors="replace").rstrip("\r\n")
        taken.rejected.append(Rejected(self._name, line, reason, text[:TEXT_LIMIT]))
