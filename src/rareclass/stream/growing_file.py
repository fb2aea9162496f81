"""A file that a stream appends to, cut back to what its checkpoint knows of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rareclass.errors import InputError


class GrowingFile:
    """A text file that only grows, and of which a checkpoint knows the length.

    What follows the `length` bytes known of is cut off when the file is opened: the rows it tells
    of will come again.

    Raises `InputError` when the file cannot be written, or is shorter than the checkpoint says.
    """

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path, self.length = path, length
        try:
            self._file = path.open("ab")
            found = self._file.tell()
            if found > length:
                self._file.truncate(length)
        except OSError as error:
            raise _unwritable(path, error) from error
        if found < length:
            self._file.close()
            raise InputError(
                f"{path} has {found:,} bytes, its checkpoint knows of {length:,}.",
                "Restore the file, or begin anew in another folder.",
            )

    def add(self, text: str) -> None:
        """Append text; it can be read at once and is safe after `sync`."""
        # Half a surrogate pair, which JSON lines may hold, has no place in UTF-8.
        content = text.encode(errors="backslashreplace")
        with self._writing():
            self._file.write(content)
            self._file.flush()
        self.length += len(content)

    def sync(self) -> None:
        """Flush to disk, before a checkpoint counts on it."""
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; what could not be written on a full disk has been told of before."""
        with suppress(OSError):
            self._file.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _unwritable(self.path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"Cannot write {path}: {error.strerror}.",
        "Make room on the disk; the same command goes on from the last checkpoint.",
    )
