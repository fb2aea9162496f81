"""Nameless temporary files, the folder for them, and files that are read by position."""

import errno
import io
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from rareclass.errors import ErrorKind, InputError, setting

_HAS_PREADV = os.name == "posix"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def scratch_folder(folder: str | Path | None = None) -> Path:
    """Choose the folder of temporary files: `folder`, $TMPDIR, /var/tmp, or the system's.

    /var/tmp stands before the system's own choice because /tmp often is memory.

    Raises `InputError` when `folder` is not a folder that can be written to.
    """
    if folder is not None:
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise ErrorKind.UNWRITABLE.error(
                f"scratch={str(folder)!r} is not a folder that can be written to.",
                "Name one on a disk with room, or leave it out for $TMPDIR or /var/tmp.",
            )
        return Path(folder)
    var = "/var/tmp"
    if not os.environ.get("TMPDIR") and os.path.isdir(var) and os.access(var, os.W_OK):
        return Path(var)
    return Path(tempfile.gettempdir())


class Scratch:
    """Nameless file in a folder: gone when it is closed, or when the process is killed.

    `folder` is as in `scratch_folder`. With `expected_bytes`, too little room is an error at once.

    Raises `InputError`, naming the folder and the bytes, where the disk has no room.
    """

    def __init__(self, folder: str | Path | None = None, expected_bytes: int | None = None) -> None:
        self.folder = scratch_folder(folder)
        self.size = 0
        self._needed = ""
        if expected_bytes is not None:
            self.expect(expected_bytes)
        try:
            # Without a name from the start, or from as soon as the system allows.
            made = tempfile.TemporaryFile(dir=self.folder, buffering=0, prefix="rareclass-")  # noqa: SIM115
            self.file = cast(BinaryIO, made)
        except OSError as error:
            raise self._unwritable(error) from error
        weakref.finalize(self, self.file.close)
        self._lock = threading.Lock()

    def expect(self, n_bytes: int, sure_share: float = 1.0) -> None:
        """Raise `InputError` where the disk has no room for `n_bytes` in all.

        Only `sure_share` of them is asked for, where the number is an estimate.
        """
        self._needed = f"{n_bytes:,}" if sure_share == 1 else f"about {n_bytes:,}"
        if shutil.disk_usage(self.folder).free < sure_share * n_bytes - self.size:
            raise self._no_room()

    def close(self) -> None:
        """Free the room on disk; nothing can be read any more."""
        self.file.close()

    def append(self, data: Any) -> None:
        """Write an array or bytes at the end."""
        left = memoryview(data).cast("B")
        try:
            while left:
                left = left[self.file.write(left) :]
        except OSError as error:
            raise self._unwritable(error) from error
        self.size += memoryview(data).nbytes

    def read_into(self, buffer: Any, offset: int) -> None:
        """Fill a contiguous array from the byte `offset`; safe in any thread."""
        if self.file.closed:
            raise ErrorKind.MISSING_FILE.error(
                "These rows on disk were closed, and their scratch file is gone.",
                "Read the file again, and close the rows (or end their `with`) after their last "
                "use.",
            )
        left = memoryview(buffer).cast("B")
        while left:
            n = read_file_at(self.file, left, offset, self._lock)
            if n <= 0:
                raise OSError(f"the scratch file in {self.folder} ended at byte {offset:,}")
            left, offset = left[n:], offset + n

    def _unwritable(self, error: OSError) -> InputError:
        if error.errno in _NO_ROOM:
            return self._no_room()
        fault = f"Cannot write rows to the scratch folder {self.folder}: {error.strerror or error}."
        return ErrorKind.UNWRITABLE.error(fault, _other_folder())

    def _no_room(self) -> InputError:
        needed = self._needed or f"more than {self.size:,}"
        free = shutil.disk_usage(self.folder).free
        return ErrorKind.UNWRITABLE.error(
            f"The scratch folder {self.folder} has no room for the decoded rows: {needed} bytes "
            f"are needed, {free:,} are free there.",
            _other_folder(),
        )


def _other_folder() -> str:
    return f"Name a folder on another disk: {setting('scratch')}, or the variable TMPDIR."


def read_file_at(file: BinaryIO, buffer: Any, offset: int, lock: threading.Lock) -> int:
    """Read bytes of an open file from `offset` into a buffer, in any thread; return how many."""
    if _HAS_PREADV:
        return os.preadv(file.fileno(), [buffer], offset)
    with lock:  # other systems: seek, then read
        file.seek(offset)
        n: int = file.readinto(buffer)  # type: ignore[attr-defined]
        return n


class BytesAt(io.RawIOBase):
    """Raw stream over bytes that ``read_at(buffer, offset)`` reads, at a place of its own."""

    def __init__(self, read_at: Callable[[Any, int], int], size: Callable[[], int]) -> None:
        self._read_at, self._size, self._at = read_at, size, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte, counted as files do; return its place."""
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}
        self._at = offset + (starts[whence] if whence in starts else self._size())
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the place reached; return the number of bytes."""
        n_read = self._read_at(buffer, self._at)
        self._at += n_read
        return n_read
