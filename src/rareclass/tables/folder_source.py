"""A folder of files, read by name, to which files and rows may be added."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.errors import InputError
from rareclass.tables.batch import Batch
from rareclass.tables.compressed import compression_of, plain_suffix
from rareclass.tables.file_source import FORMAT_OF_SUFFIX, FileSource, Reading, open_file
from rareclass.tables.opening import cannot_open
from rareclass.tables.parquet_source import ParquetSource, is_complete
from rareclass.tables.text_source import TextSource

# Names that programs give to files they have not finished, or that hold no rows.
_UNFINISHED_SUFFIXES = (".tmp", ".part", ".partial", ".crdownload", ".inprogress")
_GROWTH_CHECK_SECONDS = 1.0
# A writer completes a line it has begun within this time, or has stopped.
_SETTLED_SECONDS = 2.0


class FolderSource:
    """The rows of all tables in a folder, one file after the other by name.

    Hidden files, those with names that begin with an underscore, and those that are still
    written under a temporary name (such as .tmp and .part) are passed over, and so are
    subfolders and files with other suffixes. The columns are those of the first file; rows of
    files with others are rejected.

    A file is finished when its end is reached and, if the folder is followed, another file is
    there: until then it may grow, and half a line written in the last two seconds is waited
    for. What is added later to a finished text file is read too.
    New files are read even if their names sort before those of finished ones.

    Parameters
    ----------
    folder : Path
    position : dict or None
        Where to go on, from an earlier batch.
    reading : Reading

    Raises
    ------
    InputError
        When there is no table in a folder that is not followed, a file cannot be read, or a
        finished one was changed in any other way than by adding to it.
    """

    def __init__(self, folder: Path, position: dict[str, Any] | None, reading: Reading) -> None:
        self._folder = folder
        self._reading = reading
        self._finished: dict[str, int] = {}  # the size of each when it was finished
        self._current: FileSource | None = None
        self._name: str | None = None
        self._at: dict[str, Any] | None = None
        self._next_growth_check = 0.0
        if position is not None:
            self._go_on(position)
        elif not self._open_next() and not reading.follow:
            raise InputError(
                f"There is no table in the folder {folder}.",
                f"Tables are named {', '.join(FORMAT_OF_SUFFIX)}.",
            )

    @property
    def columns(self) -> list[str] | None:
        """The columns of the first file, once they are known."""
        if self._reading.columns is not None:
            return self._reading.columns
        return self._current.columns if self._current is not None else None

    def read(self, max_records: int) -> Batch | None:
        """Return the next records of one file; None at the end of a folder not followed."""
        while True:
            if self._current is None and not self._open_next():
                return self._nothing() if self._reading.follow else None
            assert self._current is not None
            batch = self._current.read(max_records)
            if batch is None:
                self._finish_current()
            elif batch.n_read or not self._may_move_on():
                return self._placed(batch)
            else:
                # The listing came before this last read: nothing written before the other file
                # appeared is missed.
                self._current.finish()

    def close(self) -> None:
        """Close the file that is open."""
        if self._current is not None:
            self._current.close()
            self._current = None

    def _go_on(self, position: dict[str, Any]) -> None:
        self._finished = dict(position["finished"])
        self._reading = self._reading._replace(columns=position["columns"])
        self._at = position["at"]
        if position["current"] is not None:
            self._open(position["current"], position["at"])

    def _open(self, name: str, position: dict[str, Any] | None) -> None:
        self._current = open_file(self._folder / name, name, position, self._reading)
        self._name, self._at = name, position

    def _placed(self, batch: Batch) -> Batch:
        self._at = batch.position
        self._remember_columns()
        return batch._replace(position=self._position())

    def _position(self) -> dict[str, Any]:
        return {
            "finished": self._finished,
            "current": self._name if self._current is not None else None,
            "at": self._at if self._current is not None else None,
            "columns": self.columns,
        }

    def _nothing(self) -> Batch:
        return Batch({}, np.empty(0, np.int64), "", [], 0, self._position())

    def _remember_columns(self) -> None:
        if self._reading.columns is None and self.columns is not None:
            self._reading = self._reading._replace(columns=self.columns)

    def _finish_current(self) -> None:
        assert self._current is not None
        assert self._name is not None
        self._remember_columns()
        size = self._size_read(self._folder / self._name, self._current)
        # A new dict: positions handed out before keep theirs.
        self._finished = {**self._finished, self._name: size}
        self._current.close()
        self._current, self._name, self._at = None, None, None

    def _may_move_on(self) -> bool:
        """Whether to take the end of a file that may grow for its end: there is another to read.

        Half a line that has just been written is left until it is complete, or old.
        """
        if not self._reading.follow or (self._other_file() or self._grown_file()) is None:
            return False
        assert self._name is not None
        if not isinstance(self._current, TextSource) or not self._current.has_unfinished:
            return True
        try:
            written = (self._folder / self._name).stat().st_mtime
        except FileNotFoundError:
            return True
        return abs(time.time() - written) >= _SETTLED_SECONDS

    @staticmethod
    def _size_read(path: Path, source: FileSource) -> int:
        if isinstance(source, ParquetSource):
            return source.size
        assert isinstance(source, TextSource)
        return source.size_read

    def _open_next(self) -> bool:
        name = self._other_file()
        if name is not None:
            self._open(name, None)
            return True
        name = self._grown_file()
        if name is not None:
            self._open(name, self._end_of_finished(self._folder / name, self._finished[name]))
            return True
        return False

    def _other_file(self) -> str | None:
        """Return the first file by name that is neither finished nor open, if it is ready."""
        try:
            names = sorted(path.name for path in self._folder.iterdir())
        except OSError as error:
            raise cannot_open(self._folder, error, was_there=True) or error from None
        for name in names:
            if name != self._name and name not in self._finished and _is_table(name):
                path = self._folder / name
                if path.is_file() and self._is_ready(path):
                    return name
        return None

    def _is_ready(self, path: Path) -> bool:
        """Whether a file has anything to read yet."""
        try:
            if FORMAT_OF_SUFFIX[plain_suffix(path)] != "parquet":
                return path.stat().st_size > 0
            return not self._reading.follow or is_complete(path)
        except FileNotFoundError:  # renamed in the meantime
            return False

    def _grown_file(self) -> str | None:
        """Return the first finished file that has been added to."""
        if time.monotonic() < self._next_growth_check:
            return None
        for name, size in sorted(self._finished.items()):
            path = self._folder / name
            try:
                now = path.stat().st_size
            except FileNotFoundError:  # tidied away
                continue
            if now == size or name == self._name:
                continue
            if now < size or not _may_grow(path):
                raise InputError(
                    f"{path} was changed after it had been read.",
                    "Write new rows to a new file, or add them to the end of a text file.",
                )
            return name
        self._next_growth_check = time.monotonic() + _GROWTH_CHECK_SECONDS
        return None

    def _end_of_finished(self, path: Path, size: int) -> dict[str, Any]:
        """Return the position behind the first `size` bytes of a text file."""
        source = open_file(path, path.name, None, self._reading)
        batch = source.read(0)
        source.close()
        start = batch.position if batch is not None else {}
        n_lines, last = 0, b"\n"
        with path.open("rb") as file:
            left = size
            while left and (block := file.read(min(left, 1 << 20))):
                n_lines += block.count(b"\n")
                left -= len(block)
                last = block[-1:]
        return {**start, "offset": size, "line": 1 + n_lines + (last != b"\n")}


def _is_table(name: str) -> bool:
    if name.startswith((".", "_")) or name.endswith("~"):
        return False
    path = Path(name)
    return path.suffix.lower() not in _UNFINISHED_SUFFIXES and (
        plain_suffix(path) in FORMAT_OF_SUFFIX
    )


def _may_grow(path: Path) -> bool:
    return FORMAT_OF_SUFFIX[plain_suffix(path)] != "parquet" and compression_of(path) is None
