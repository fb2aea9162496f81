"""Nameless temporary files, and the folder for them."""

import errno
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, BinaryIO, cast

from rareclass.errors import ErrorKind, InputError

_HAS_PREADV = hasattr(os, "preadv")  # not on Windows
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def scratch_folder(folder: str | Path | None = None) -> Path:
    """Choose the folder of temporary files: `folder`, $TMPDIR, /var/tmp, or the system's.

    /var/tmp stands before the system's own choice because /tmp often is memory.

    Raises `InputError` when `folder` is not a folder that can be written to.
    """
    if folder is not None:
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise InputError(
                f"scratch={str(folder)!r} is not a folder that can be written to.",
                "Name one on a disk with room, or leave it out for $TMPDIR or /var/tmp.",
                ErrorKind.UNWRITABLE,
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
            self.file = cast(
                BinaryIO,
                tempfile.TemporaryFile(  # noqa: SIM115 - it is open for as long as this object
                    dir=self.folder, buffering=0, prefix="rareclass-"
                ),
            )
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

    def write_at(self, data: Any, offset: int) -> None:
        """Write bytes over others, or at the end."""
        with self._lock:
            self.file.seek(offset)
            self.append(data)
            self.file.seek(0, os.SEEK_END)
        self.size = self.file.tell()

    def read_into(self, buffer: Any, offset: int) -> None:
        """Fill a contiguous array from the byte `offset`; safe in any thread."""
        if self.file.closed:
            raise InputError(
                "These rows on disk were closed, and their scratch file is gone.",
                "Read the file again, and close the rows (or end their `with`) after their last "
                "use.",
                ErrorKind.MISSING_FILE,
            )
        left = memoryview(buffer).cast("B")
        while left:
            n = self._read_some(left, offset)
            if n <= 0:
                raise OSError(f"the scratch file in {self.folder} ended at byte {offset:,}")
            left, offset = left[n:], offset + n

    def _read_some(self, buffer: memoryview, offset: int) -> int:
        if _HAS_PREADV:
            return os.preadv(self.file.fileno(), [buffer], offset)
        with self._lock:  # other systems: seek, then read
            self.file.seek(offset)
            n: int = self.file.readinto(buffer)  # type: ignore[attr-defined]
            return n

    def _unwritable(self, error: OSError) -> InputError:
        if error.errno in _NO_ROOM:
            return self._no_room()
        return InputError(
            f"Cannot write rows to the scratch folder {self.folder}: {error.strerror or error}.",
            "Name another: scratch= (--scratch on the command line), or the environment variable "
            "TMPDIR.",
            ErrorKind.UNWRITABLE,
        )

    def _no_room(self) -> InputError:
        needed = self._needed or f"more than {self.size:,}"
        free = shutil.disk_usage(self.folder).free
        return InputError(
            f"The scratch folder {self.folder} has no room for the decoded rows: {needed} bytes "
            f"are needed, {free:,} are free there.",
            "Name a folder on a larger disk: scratch= (--scratch on the command line), or the "
            "environment variable TMPDIR.",
            ErrorKind.UNWRITABLE,
        )
