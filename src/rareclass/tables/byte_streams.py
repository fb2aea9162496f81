"""Bytes of files, that may grow or be compressed, and of standard input."""

import bz2
import gzip
import hashlib
import io
import os
import select
import threading
import weakref
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast

from rareclass.errors import ErrorKind, InputError
from rareclass.remote import RemotePath
from rareclass.scratch_file import BytesAt, read_file_at

Compression = Literal["gzip", "bz2"] | None
COMPRESSED_SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".bz2": "bz2"}
# Others that tables come in, by their first bytes.
_OTHER_PACKED = {
    b"\xfd7zX": "compressed with xz",
    b"(\xb5/\xfd": "compressed with Zstandard (zst)",
    b'\x04"M\x18': "compressed with LZ4",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"PK\x03\x04": "a ZIP archive, as Excel workbooks are",
}
# What reading damaged bytes raises.
DAMAGE = (EOFError, zlib.error, OSError)
# Enough for a magic number, or a byte order mark and an opening brace.
_START_BYTES = 4
# Bytes at either end of what was read by which it is known again.
_COMPARED_BYTES = 1 << 12


class ReadEnds:
    """First and last bytes of what was read of a stream."""

    def __init__(self) -> None:
        self.first, self.last = b"", b""

    def add(self, data: bytes) -> None:
        """Take in the bytes read next."""
        self.first += data[: _COMPARED_BYTES - len(self.first)]
        self.last = (self.last + data[-_COMPARED_BYTES:])[-_COMPARED_BYTES:]

    def mark(self) -> str:
        """Return a digest, the same however the bytes came in blocks."""
        return mark_of(self.first + self.last)


def mark_of(content: bytes) -> str:
    """Return a digest by which content is known again."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def ends_in(content: BinaryIO, size: int) -> ReadEnds:
    """Return the ends of the first `size` bytes of a file, of fewer where it is shorter."""
    ends = ReadEnds()
    content.seek(0)
    ends.add(content.read(min(size, _COMPARED_BYTES)))
    start = content.seek(max(content.tell(), size - _COMPARED_BYTES))
    ends.add(content.read(size - start))
    return ends


def not_appended(title: str, how: str) -> InputError:
    """The error to raise where what was read before is not there any more."""
    return ErrorKind.ROWS.error(
        f"{title} {how}.",
        "Only append to what is being read; start again with an empty checkpoint.",
    )


def changed(path: Path) -> InputError:
    """The error to raise where a table was written while it was read."""
    return ErrorKind.DAMAGED_FILE.error(
        f"{path} was changed while it was read.", "Read a copy of it."
    )


OTHER_ROWS = "has other rows where those lay that were read from it before"
_SHORTER = "is shorter than what was read from it before"


def cannot_open(path: Path, error: Exception, was_there: bool = False) -> InputError | None:
    """The error to raise for a file that is missing or closed to this user.

    None for any other error: then the content is at fault. A file that was there has gone since.
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        if was_there:
            return ErrorKind.MISSING_FILE.error(
                f"{path} is gone: it was there when reading began.", "Put it back, and start again."
            )
        return ErrorKind.MISSING_FILE.error(f"There is no file {path}.", "Check the name.")
    if isinstance(error, PermissionError):
        return ErrorKind.MISSING_FILE.error(
            f"You may not read {path}: permission denied.",
            "Ask its owner for the right to read it (chmod +r), or for a copy.",
        )
    return None


def damaged(path: Path, error: Exception) -> InputError:
    """The error to raise where the bytes of a file cannot be read to their end."""
    return cannot_open(path, error, was_there=True) or ErrorKind.DAMAGED_FILE.error(
        f"{path} is cut short or damaged.",
        "Copy or write it again; write under another name, and rename it when it is complete.",
    )


def compression_of(path: Path, magic: bytes) -> Compression:
    """Return how a file is compressed, from its first bytes.

    Raises `InputError` when its name says that it is compressed and its content does not, and for
    other ways of compression.
    """
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    if magic[:3] == b"BZh":
        return "bz2"
    if magic in _OTHER_PACKED:
        raise ErrorKind.FILE_FORMAT.error(
            f"{path} is {_OTHER_PACKED[magic]}, which is not read.",
            "Unpack it, or save it as CSV; gzip and bzip2 are read as they are.",
        )
    named = COMPRESSED_SUFFIXES.get(path.suffix.lower())
    if named and magic:
        raise ErrorKind.FILE_FORMAT.error(
            f"{path} is named like a {named} file but is not one.",
            f"If it is plain text, take the {path.suffix} off its name.",
        )
    return None


def plain_suffix(path: Path) -> str:
    """Return the suffix of what is in the file, in lower case.

    >>> plain_suffix(Path("a.CSV.gz")), plain_suffix(Path("b.svm.csv")), plain_suffix(Path("c"))
    ('.csv', '.csv', '')
    """
    if path.suffix.lower() in COMPRESSED_SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


class StoredFile:
    """Content of a file, which is opened once however many passes are made over it.

    Every pass reads by position, so passes may overlap. The file is opened when it is first read;
    `release` closes it until the next pass, as does letting go of this object.

    Raises `InputError` when the file is missing or may not be read, or is named like a compressed
    file and is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._first: tuple[int, int] | None = None  # size and time when it was opened first
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._size_and_time()[0]

    @property
    def magic(self) -> bytes:
        """First bytes on disk."""
        magic = bytearray(_START_BYTES)
        return bytes(magic[: self.read_at(magic, 0)])

    @property
    def compression(self) -> Compression:
        """Compression, by the first bytes."""
        return compression_of(self.path, self.magic)

    def content(self) -> BinaryIO:
        """Open the uncompressed content at its beginning, for one pass."""
        raw = io.BufferedReader(BytesAt(self.read_at, lambda: self.size), 1 << 16)
        return _uncompressed(raw, self.compression)

    def head(self, size: int) -> bytes:
        """Return the first `size` bytes of the content, all of it if it is shorter.

        Raises `InputError` when they cannot be read.
        """
        try:
            with self.content() as content:
                return content.read(size)
        except DAMAGE as error:
            raise damaged(self.path, error) from error

    def read_at(self, buffer: Any, offset: int) -> int:
        """Read into a buffer what lies at byte `offset` on disk; return how many bytes."""
        return read_file_at(self._opened(), buffer, offset, self._lock)

    def release(self) -> None:
        """Close the file; the next pass opens it again."""
        if self._file is not None:
            self._closing()
            self._file = None

    def check_unchanged(self) -> None:
        """Raise `InputError` where the file was written since it was first opened."""
        if self._size_and_time() != self._first:
            raise changed(self.path)

    def _size_and_time(self) -> tuple[int, int]:
        found = os.fstat(self._opened().fileno())
        return found.st_size, found.st_mtime_ns

    def _opened(self) -> BinaryIO:
        if self._file is None:
            try:
                self._file = cast(BinaryIO, self.path.open("rb", buffering=0))
            except OSError as error:
                raise cannot_open(self.path, error, self._first is not None) or error from None
            self._first = self._first or self._size_and_time()
            self._closing = weakref.finalize(self, self._file.close)
        return self._file


def _uncompressed(raw: BinaryIO, compression: Compression) -> BinaryIO:
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    return cast(BinaryIO, bz2.BZ2File(raw)) if compression == "bz2" else raw


class FileBytes:
    """Uncompressed bytes of a file, which may be growing: then its end is waited at.

    Messages call the stream by its `title`; `packed_size` is that of a compressed file on disk.
    A compressed file does not grow. Raises `InputError` when the file is missing, may not be read,
    is damaged, or becomes shorter while it is read.
    """

    def __init__(self, stored: StoredFile, growing: bool = False) -> None:
        self.title, self.stored = str(stored.path), stored
        compression, is_remote = stored.compression, isinstance(stored.path, RemotePath)
        self._growing = growing and compression is None and not is_remote
        self._content = self.stored.content()
        self.packed_size = self.stored.size if compression else None

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes: b"" at the end, None at that of a file that may grow."""
        try:
            data = self._content.read(size)
        except DAMAGE as error:
            raise damaged(self.stored.path, error) from error
        if data or self.packed_size is not None:
            return data
        if self.stored.size < self._content.tell():
            raise not_appended(self.title, _SHORTER)
        return None if self._growing else data

    def skip(self, offset: int) -> ReadEnds:
        """Go to byte `offset`, return the ends of what lies before; a compressed file is read."""
        try:
            ends = ends_in(self._content, offset)
        except DAMAGE as error:
            raise damaged(self.stored.path, error) from error
        if self._content.tell() < offset:
            raise not_appended(self.title, _SHORTER)
        return ends

    def finish(self) -> None:
        """Take the end of the file for its end."""
        self._growing = False

    def close(self) -> None:
        """End this pass over the file."""
        self._content.close()


class PipeBytes:
    """Bytes that can be read once only, such as standard input, plain or compressed.

    Opening waits for the first bytes; `start` is what the pipe begins with. Where it is growing,
    `read` returns None where it would have to wait (not on a compressed pipe, and not where the
    system cannot tell).
    """

    title = "Standard input"
    packed_size: int | None = None

    def __init__(self, pipe: BinaryIO, growing: bool) -> None:
        self._pipe = _Pipe(cast(io.BufferedReader, pipe))
        self._bytes_read = 0
        compression = compression_of(Path("Standard input"), self._pipe.head(_START_BYTES))
        self._growing = growing and compression is None
        self._unpacked: Any = None
        if compression is None:
            self.start = self._pipe.head(_START_BYTES, at_most=1 << 12)
        else:
            raw = io.BufferedReader(self._pipe)
            self._unpacked = _uncompressed(cast(BinaryIO, raw), compression)
            self.start = bytes(self._unpacked.peek(_START_BYTES))

    def read(self, size: int) -> bytes | None:
        """Return up to `size` bytes; None where they have not arrived."""
        if self._growing and not self._pipe.has_some():
            return None
        if self._unpacked is None:
            data = self._pipe.some(size)
        else:
            try:
                data = self._unpacked.read1(size)
            except DAMAGE as error:
                raise ErrorKind.DAMAGED_FILE.error(
                    f"Standard input cannot be uncompressed: {error}.",
                    "Send it again from the start.",
                ) from error
        self._bytes_read += len(data)
        return data

    def skip(self, offset: int) -> ReadEnds:
        """Read up to byte `offset`, waiting for it; return the ends of what lies before."""
        self._growing, was_growing = False, self._growing
        ends = ReadEnds()
        while self._bytes_read < offset:
            data = self.read(min(1 << 20, offset - self._bytes_read))
            if not data:
                what = f"ended after {self._bytes_read:,} bytes; {offset:,} were read of it before"
                raise not_appended(self.title, what)
            ends.add(data)
        self._growing = was_growing
        return ends

    def finish(self) -> None:
        """Wait for the end of the pipe from now on."""
        self._growing = False

    def close(self) -> None:
        """Leave the pipe open: it is not ours."""


class _Pipe(io.RawIOBase):
    """A pipe whose next bytes can be looked at before they are read."""

    def __init__(self, pipe: io.BufferedReader) -> None:
        self._source = pipe
        self._head = b""

    def head(self, size: int, at_most: int = 0) -> bytes:
        """Return the first bytes, which will be read again; fewer than `size` only at the end."""
        while len(self._head) < size and (data := self._source.read1(1 << 16)):
            self._head += data
        return self._head[: max(size, at_most)]

    def some(self, size: int) -> bytes:
        """Return what has arrived, at least a byte but at the end, `size` bytes at most."""
        # Not by `read`, which waits until all that is asked for is there.
        data = self._head or self._source.read1(max(size, io.DEFAULT_BUFFER_SIZE))
        self._head = data[size:]
        return data[:size]

    def has_some(self) -> bool:
        """Say whether reading would not wait."""
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


ByteStream: TypeAlias = FileBytes | PipeBytes
