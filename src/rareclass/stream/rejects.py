"""Files of rows that could not be used, or are in doubt: a JSON object a line, none twice."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rareclass.stream.growing_file import GrowingFile
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
        self.count, self.last = count, last
        self._file = GrowingFile(folder / name, length)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def add(self, rows: Iterable[Rejected]) -> None:
        """Write rows; they can be read at once and are safe after `sync`."""
        lines = []
        for row in rows:
            lines.append(json.dumps(row._asdict(), ensure_ascii=False) + "\n")
            self.last = row
        if lines:
            self._file.add("".join(lines))
            self.count += len(lines)

    def sync(self) -> None:
        """Flush to disk, before a checkpoint counts on it."""
        self._file.sync()

    def close(self) -> None:
        """Close the file; what could not be written on a full disk has been told of before."""
        self._file.close()

    def to_state(self) -> dict[str, Any]:
        """Return count and length, and the last row, as JSON can write them."""
        last = None if self.last is None else list(self.last)
        return {"count": self.count, "length": self._file.length, "last": last}

    @classmethod
    def from_state(
        cls, folder: Path, state: dict[str, Any], name: str = REJECTED
    ) -> "RejectedFile":
        """Open the file again as it was when `to_state` was called."""
        last = None if state["last"] is None else Rejected(*state["last"])
        return cls(folder, state["count"], state["length"], last, name)
