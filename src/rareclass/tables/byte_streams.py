"""Bytes that arrive: files that may grow or be compressed, and standard input."""

import bz2
import gzip
import io
import os
import select
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from rareclass.errors import InputError
from rareclass.tables.compressed import compression_of, open_plain
from rareclass.tables.opening import cannot_open

# Enough for a magic number, or a byte order mark and an opening brace.
_START_BYTES = 4


class ByteStream(Protocol):
    """Bytes in order. `read` gives b"" at the end, and None where there are none yet.

    Its title is what messages call it; its packed size that of a compressed file, as it is on
    disk, and None of all others.
    """

    title: str
    packed_size: int | None

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes."""

    def skip(self, offset: int) -> bytes:
        """Go to byte `offset`, counted from the beginning; return the byte before it."""

    def finish(self) -> None:
        """Wait for no more bytes: the end of what is there is the end."""

    def close(self) -> None:
        """Give the file back."""


class FileBytes:
    """The uncompressed bytes of a file.

    Parameters
    ----------
    path : Path
        The file, plain or compressed with gzip or bzip2 (found from its content).
    growing : bool
        Whether to wait at the end for more. A compressed file does not grow.

    Raises
    ------
    InputError
        When it is missing, may not be read, is damaged, or becomes shorter while it is read.
    """

    def __init__(self, path: Path, growing: bool) -> None:
        self.title = str(path)
        self._path = path
        compression = compression_of(path)
        self._growing = growing and compression is None
        try:
            self._file = open_plain(path, compression)
            self.packed_size = path.stat().st_size if compression else None
        except OSError as error:
            raise cannot_open(path, error) or error from None

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes; None at the end of a file that may grow."""
        data = self._read(size)
        if data or not self._growing:
            return data
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            raise self._shorter()
        return None

    def skip(self, offset: int) -> bytes:
        """Go to byte `offset`; a compressed file is read up to it."""
        if not offset:
            self._file.seek(0)
            return b""
        try:
            self._file.seek(offset - 1)
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(error) from error
        before = self._read(1)
        if not before:
            raise self._shorter()
        return before

    def finish(self) -> None:
        """Take the end of the file for its end."""
        self._growing = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except (EOFError, zlib.error, OSError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        return cannot_open(self._path, error, was_there=True) or InputError(
            f"{self._path} is cut short or damaged.",
            "Copy or write it again; write under another name, and rename it when it is complete.",
        )

    def _shorter(self) -> InputError:
        return InputError(
            f"{self._path} is shorter than what was read from it before.",
            "Only append to a file that is being read; start again with an empty checkpoint.",
        )


class PipeBytes:
    """Bytes that can be read once only, such as standard input, plain or compressed.

    Opening it waits for the first bytes; `start` is what it begins with.

    Parameters
    ----------
    pipe : binary file
    growing : bool
        Whether `read` returns None where it would have to wait (not on a compressed pipe, and
        not where the system cannot tell).
    """

    title = "Standard input"
    packed_size: int | None = None

    def __init__(self, pipe: BinaryIO, growing: bool) -> None:
        self._pipe = _Pipe(pipe)
        self._growing = growing
        self._bytes_read = 0
        self._content: Any = self._pipe
        magic = self._pipe.head(3)
        if magic[:2] == b"\x1f\x8b":
            self._content = gzip.GzipFile(fileobj=io.BufferedReader(self._pipe))
        elif magic == b"BZh":
            self._content = bz2.BZ2File(io.BufferedReader(self._pipe))
        if self._content is not self._pipe:
            self._growing = False
            self.start = bytes(self._content.peek(_START_BYTES))
        else:
            self.start = self._pipe.head(_START_BYTES, at_most=1 << 12)

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes; None where they have not arrived."""
        if self._growing and not self._pipe.has_some():
            return None
        try:
            if self._content is self._pipe:
                data = self._pipe.some(size)
            else:
                data = self._content.read1(size)
        except (EOFError, zlib.error, OSError) as error:
            raise InputError(
                f"Standard input cannot be uncompressed: {error}.", "Send it again from the start."
            ) from error
        self._bytes_read += len(data)
        return data

    def skip(self, offset: int) -> bytes:
        """Read and drop what comes before byte `offset`, waiting for it."""
        self._growing, was_growing = False, self._growing
        last = b""
        while self._bytes_read < offset:
            data = self.read(min(1 << 20, offset - self._bytes_read))
            if not data:
                raise InputError(
                    f"Standard input ended after {self._bytes_read:,} bytes; "
                    f"{offset:,} had been read of it before.",
                    "Send the same stream again from its beginning, or name an empty checkpoint.",
                )
            last = data[-1:]
        self._growing = was_growing
        return last

    def finish(self) -> None:
        """Wait for the end of the pipe from now on."""
        self._growing = False

    def close(self) -> None:
        """Leave the pipe open: it is not ours."""


class _Pipe(io.RawIOBase):
    """A pipe whose next bytes can be looked at before they are read."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._source = pipe
        self._head = b""

    def head(self, size: int, at_most: int = 0) -> bytes:
        """Return the first bytes, which will be read again; fewer than `size` only at the end."""
        while len(self._head) < size and (data := self._read_some(1 << 16)):
            self._head += data
        return self._head[: max(size, at_most)]

    def some(self, size: int) -> bytes:
        """Return what has arrived, at least a byte but at the end, `size` bytes at most."""
        data = self._head or self._read_some(size)
        # A read may bring more than was asked for.
        self._head = data[size:]
        return data[:size]

    def has_some(self) -> bool:
        """Return whether reading would not wait."""
        if self._head:
            return True
        try:
            return bool(select.select([self._source.fileno()], [], [], 0)[0])
        except (OSError, ValueError):  # no file of the system, or one that cannot be asked
            return True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.some(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_some(self, size: int) -> bytes:
        # A buffered reader gives what is there only if asked for no more than one read.
        read = getattr(self._source, "read1", self._source.read)
        return bytes(read(max(size, io.DEFAULT_BUFFER_SIZE)))
