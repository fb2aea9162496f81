"""Files that a stream appends to, cut back to the length that its checkpoint knows."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from rareclass.errors import ErrorKind, InputError
from rareclass.tables.batch import Rejected

REJECTED = "rejected.jsonl"
CONTRADICTED = "contradicted.jsonl"


class GrowingFile:
    """A text file that only grows, and whose length stands in the checkpoint.

    Bytes behind `length` are cut off when the file is opened: their rows will come again.

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
                ErrorKind.DAMAGED_FILE,
            )

    def append(self, text: str) -> None:
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
        """Close the file; a full disk was reported when the text was appended."""
        with suppress(OSError):
            self._file.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _unwritable(self.path, error) from error


class FileMark(NamedTuple):
    """Length and rows of a file at a checkpoint."""

    n_rows: int = 0
    length: int = 0
    last: Rejected | None = None


class RejectedFile(GrowingFile):
    """Rows that could not be used, or are in doubt: file, line, reason and text, as JSON lines."""

    def __init__(self, path: Path, mark: FileMark = FileMark()) -> None:  # noqa: B008 (never changed)
        super().__init__(path, mark.length)
        self.count, self.last = mark.n_rows, mark.last

    def add(self, rows: Iterable[Rejected]) -> None:
        """Write rows; they can be read at once and are safe after `sync`."""
        rows = list(rows)
        if rows:
            self.append("".join(json.dumps(r._asdict(), ensure_ascii=False) + "\n" for r in rows))
            self.count += len(rows)
            self.last = rows[-1]

    def mark(self) -> FileMark:
        """Return what a checkpoint keeps."""
        return FileMark(self.count, self.length, self.last)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"Cannot write {path}: {error.strerror}.",
        "Make room on the disk; the same command goes on from the last checkpoint.",
        ErrorKind.UNWRITABLE,
    )
