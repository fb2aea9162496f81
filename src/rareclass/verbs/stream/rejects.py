"""Files of rows that could not be used, or are in doubt: a JSON object a line, none twice."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rareclass.errors import InputError
from rareclass.tables.batch import Rejected

REJECTED = "rejected.jsonl"
CONTRADICTED = "contradicted.jsonl"


class RejectedFile:
    """Rejected rows with file, line, reason and text.

    The checkpoint knows of `count` rows and `length` bytes: what follows them in the file is cut
    off, because the rows will come again.

    Raises `InputError` when the file cannot be written, or is shorter than the checkpoint says.
    """

    def __init__(
        self,
        folder: Path,
        count: int = 0,
        length: int = 0,
        last: Rejected | None = None,
        name: str = REJECTED,
    ) -> None:
        self.path, self.count, self.last = folder / name, count, last
        try:
            self._file = self.path.open("ab")
            found = self._file.tell()
            if found > length:
                self._file.truncate(length)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        if found < length:
            self._file.close()
            raise InputError(
                f"{self.path} has {found:,} bytes, its checkpoint knows of {length:,}.",
                "Restore the file, or begin anew in another folder.",
            )
        self._length = length

    def add(self, rows: Iterable[Rejected]) -> None:
        """Write rows; they can be read at once and are safe after `sync`."""
        lines = []
        for row in rows:
            lines.append(json.dumps(row._asdict(), ensure_ascii=False) + "\n")
            self.last = row
        if lines:
            # Half a surrogate pair, which JSON lines may hold, has no place in UTF-8.
            text = "".join(lines).encode(errors="backslashreplace")
            with self._writing():
                self._file.write(text)
                self._file.flush()
            self._length += len(text)
            self.count += len(lines)

    def sync(self) -> None:
        """Flush to disk, before a checkpoint counts on it."""
        with self._writing():
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; what could not be written on a full disk has been told of before."""
        with suppress(OSError):
            self._file.close()

    def to_state(self) -> dict[str, Any]:
        """Return count and length, and the last row, as JSON can write them."""
        last = None if self.last is None else list(self.last)
        return {"count": self.count, "length": self._length, "last": last}

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _unwritable(self.path, error) from error

    @classmethod
    def from_state(
        cls, folder: Path, state: dict[str, Any], name: str = REJECTED
    ) -> "RejectedFile":
        """Open the file again as it was when `to_state` was called."""
        last = None if state["last"] is None else Rejected(*state["last"])
        return cls(folder, state["count"], state["length"], last, name)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"Cannot write {path}: {error.strerror}.",
        "Make room on the disk; the same command goes on from the last checkpoint.",
    )
