"""Bytes of files, that may grow or be compressed, and of standard input."""

import bz2
import gzip
import io
import os
import select
import threading
import weakref
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, cast

from rareclass.errors import ErrorKind, InputError
from rareclass.remote import RemotePath

Compression = Literal["gzip", "bz2"] | None
COMPRESSED_SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".bz2": "bz2"}
# What reading damaged bytes raises.
DAMAGE = (EOFError, zlib.error, OSError)
# Not for child processes, and on Windows without a change of line ends.
_READ_ONLY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Enough for a magic number, or a byte order mark and an opening brace.
_START_BYTES = 4


def cannot_open(path: Path, error: Exception, was_there: bool = False) -> InputError | None:
    """The error to raise for a file that is missing or closed to this user.

    None for any other error: then the content is at fault. A file that was there has gone since.
    """
    if isinstance(error, FileNotFoundError):
        if was_there:
            return InputError(
                f"{path} is gone: it was there when reading began.",
                "Put it back, and start again.",
                ErrorKind.MISSING_FILE,
            )
        return InputError(f"There is no file {path}.", "Check the name.", ErrorKind.MISSING_FILE)
    if isinstance(error, PermissionError):
        return InputError(
            f"You may not read {path}: permission denied.",
            "Ask its owner for the right to read it (chmod +r), or for a copy.",
            ErrorKind.MISSING_FILE,
        )
    return None


def damaged(path: Path, error: Exception) -> InputError:
    """The error to raise where the bytes of a file cannot be read to their end."""
    return cannot_open(path, error, was_there=True) or InputError(
        f"{path} is cut short or damaged.",
        "Copy or write it again; write under another name, and rename it when it is complete.",
        ErrorKind.DAMAGED_FILE,
    )


def compression_of(path: Path, magic: bytes) -> Compression:
    """Return how a file is compressed, from its first bytes.

    Raises `InputError` when its name says that it is compressed and its content does not.
    """
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    if magic[:3] == b"BZh":
        return "bz2"
    named = COMPRESSED_SUFFIXES.get(path.suffix.lower())
    if named and magic:
        raise InputError(
            f"{path} is named like a {named} file but is not one.",
            f"If it is plain text, take the {path.suffix} off its name.",
            ErrorKind.FILE_FORMAT,
        )
    return None


def plain_suffix(path: Path) -> str:
    """Return the suffix of what is in the file, in lower case.

    Examples
    --------
    >>> plain_suffix(Path("a.CSV.gz")), plain_suffix(Path("b.svm.csv")), plain_suffix(Path("c"))
    ('.csv', '.csv', '')
    """
    if path.suffix.lower() in COMPRESSED_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


class StoredFile:
    """The content of a file, which is opened once however many passes are made over it.

    Every pass reads by position, so passes may overlap. Opened when first read; `release` closes
    it until the next pass, as does letting go of it.

    Raises `InputError` when it is missing or may not be read, or is named like a compressed file
    and is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._was_there = False
        self._closing: Any = None
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Its bytes on disk."""
        if isinstance(self.path, RemotePath):
            return self._far_size(self.path)
        return os.fstat(self._opened()).st_size

    def magic(self) -> bytes:
        """The first bytes as they are on disk."""
        magic = bytearray(_START_BYTES)
        return bytes(magic[: self.read_at(magic, 0)])

    @property
    def compression(self) -> Compression:
        """How it is compressed."""
        return compression_of(self.path, self.magic())

    def content(self) -> BinaryIO:
        """The uncompressed content from its beginning, for one pass."""
        raw = io.BufferedReader(_Pass(self))
        return _uncompressed(raw, self.compression)

    def head(self, size: int) -> bytes:
        """The first `size` bytes of the content, all of it if it is shorter.

        Raises `InputError` when they cannot be read.
        """
        try:
            with self.content() as content:
                return content.read(size)
        except DAMAGE as error:
            raise damaged(self.path, error) from error

    def read_at(self, buffer: Any, offset: int) -> int:
        """Read into a buffer what lies at byte `offset` on disk; return how many bytes."""
        if isinstance(self.path, RemotePath):
            self._far_size(self.path)
            return self.path.read_at(buffer, offset)
        if hasattr(os, "preadv"):
            return os.preadv(self._opened(), [buffer], offset)
        with self._lock:  # systems where a read cannot say where
            os.lseek(self._opened(), offset, os.SEEK_SET)
            data = os.read(self._opened(), len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def release(self) -> None:
        """Close the file; the next pass opens it again."""
        if self._descriptor >= 0:
            self._closing()
            self._descriptor = -1

    def _far_size(self, path: RemotePath) -> int:
        try:
            size = int(path.stat().st_size)
        except OSError as error:
            raise cannot_open(self.path, error, self._was_there) or error from None
        self._was_there = True
        return size

    def _opened(self) -> int:
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self.path, _READ_ONLY)
            except OSError as error:
                raise cannot_open(self.path, error, self._was_there) or error from None
            self._was_there = True
            self._closing = weakref.finalize(self, os.close, self._descriptor)
        return self._descriptor


class _Pass(io.RawIOBase):
    """The bytes of an open file, at a place of its own in it."""

    def __init__(self, file: StoredFile) -> None:
        self._file, self._at = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence, self._file.size)
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        n_read = self._file.read_at(buffer, self._at)
        self._at += n_read
        return n_read


def _uncompressed(raw: BinaryIO, compression: Compression) -> BinaryIO:
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    return cast(BinaryIO, bz2.BZ2File(raw)) if compression == "bz2" else raw


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
    """The uncompressed bytes of a file, which may be growing: then its end is waited at.

    A compressed file does not grow. Raises `InputError` when it is missing, may not be read, is
    damaged, or becomes shorter while it is read.
    """

    def __init__(self, path: Path, growing: bool) -> None:
        self.title = str(path)
        self._path = path
        try:
            self._raw = path.open("rb")
        except OSError as error:
            raise cannot_open(path, error) or error from None
        try:
            compression = compression_of(path, self._raw.peek(_START_BYTES))
        except BaseException:
            self._raw.close()
            raise
        self._growing = growing and compression is None and not isinstance(path, RemotePath)
        self._file = _uncompressed(self._raw, compression)
        self.packed_size = path.stat().st_size if compression else None

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes; None at the end of a file that may grow."""
        data = self._read(size)
        if data or not self._growing:
            return data
        if os.fstat(self._raw.fileno()).st_size < self._file.tell():
            raise self._shorter()
        return None

    def skip(self, offset: int) -> bytes:
        """Go to byte `offset`; a compressed file is read up to it."""
        if not offset:
            self._file.seek(0)
            return b""
        try:
            self._file.seek(offset - 1)
        except DAMAGE as error:
            raise damaged(self._path, error) from error
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
        self._raw.close()

    def _read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except DAMAGE as error:
            raise damaged(self._path, error) from error

    def _shorter(self) -> InputError:
        return InputError(
            f"{self._path} is shorter than what was read from it before.",
            "Only append to a file that is being read; start again with an empty checkpoint.",
            ErrorKind.ROWS,
        )


class PipeBytes:
    """Bytes that can be read once only, such as standard input, plain or compressed.

    Opening it waits for the first bytes; `start` is what it begins with. Where it is growing,
    `read` returns None where it would have to wait (not on a compressed pipe, and not where the
    system cannot tell).
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
        except DAMAGE as error:
            raise InputError(
                f"Standard input cannot be uncompressed: {error}.",
                "Send it again from the start.",
                ErrorKind.DAMAGED_FILE,
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
                    ErrorKind.ROWS,
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
