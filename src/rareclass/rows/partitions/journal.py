"""The answers of passes on disk, so that a fit that was cut off goes on where it was."""

import hashlib
import io
import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.errors import InputError
from rareclass.files import let_go, take_hold
from rareclass.rows.partitions.wire import digest

_MAGIC = b"rareclass passes 1\n"


class Journal:
    """The sums of every pass of a fit, in their order.

    A fit asks the same questions in the same order whenever it is run on the same rows with the
    same settings: what is here already is not asked again, so that a second run takes up where
    the first one was cut off. Each entry holds a digest of its question: a run that asks something
    else, with other rows or settings, is refused.

    An entry is written at the end of the file, with its length; one that was cut short by a crash
    is dropped.

    Raises `InputError` where the file is none of these, is of another fit, or another process is
    writing it.
    """

    def __init__(self, path: str | Path, of_rows: bytes) -> None:
        self.path, self._of_rows = Path(path), of_rows
        # Until nobody has it any more, or the process ends: entries come one after the other.
        take_hold(self.path, f"The checkpoint {self.path}")
        weakref.finalize(self, let_go, self.path)
        self._entries = self._read()
        self._next = 0
        self.n_found = len(self._entries)

    def rewind(self) -> None:
        """A fit begins: its first pass is the first of the file."""
        self._next = 0

    def sums(
        self, fn: Callable, broadcast: tuple, ask: Callable[[], Sequence[np.ndarray]]
    ) -> list[np.ndarray]:
        """The sums of the next pass: as they were found, or asked for and written down."""
        question = digest(fn, broadcast)
        place, self._next = self._next, self._next + 1
        if place < len(self._entries):
            known, sums = self._entries[place]
            if known != question:
                raise InputError(
                    f"{self.path}: pass {place + 1:,} of this fit asks something else than it did "
                    "when the checkpoint was written.",
                    "Its settings or rows have changed: go on with those of before, or name "
                    "another checkpoint.",
                )
            return sums
        sums = list(ask())
        self._write(question, sums)
        self._entries.append((question, sums))
        return sums

    def _read(self) -> list[Any]:
        """Entries up to the first that is cut short; the file is cut there."""
        head = _MAGIC + self._of_rows
        if not self.path.exists():
            self.path.write_bytes(head)
            return []
        data = self.path.read_bytes()
        if not data.startswith(_MAGIC):
            raise InputError(
                f"{self.path} is no checkpoint of a fit.", "Name a file that is not there yet."
            )
        if not data.startswith(head):
            raise InputError(
                f"{self.path} is a checkpoint of a fit on other rows.",
                "Name another file, or delete it.",
            )
        entries, place = [], len(head)
        while (entry := _entry(data, place)) is not None:
            with np.load(io.BytesIO(entry[_DIGEST:]), allow_pickle=False) as arrays:
                entries.append((entry[:_DIGEST], [arrays[name] for name in arrays.files]))
            place += _HEAD + len(entry)
        os.truncate(self.path, place)
        return entries

    def _write(self, question: bytes, sums: list[np.ndarray]) -> None:
        arrays = io.BytesIO()
        np.savez(arrays, *sums)
        entry = question + arrays.getvalue()
        with self.path.open("ab") as file:
            check = hashlib.blake2b(entry, digest_size=_DIGEST).digest()
            file.write(len(entry).to_bytes(8, "little") + check + entry)
            file.flush()
            os.fsync(file.fileno())


_DIGEST = 16
_HEAD = 8 + _DIGEST


def _entry(data: bytes, place: int) -> bytes | None:
    """The entry at a place of the file; None at its end, and where it is cut short or damaged."""
    if place + _HEAD > len(data):
        return None
    length = int.from_bytes(data[place : place + 8], "little")
    entry = data[place + _HEAD : place + _HEAD + length]
    check = hashlib.blake2b(entry, digest_size=_DIGEST).digest()
    return entry if len(entry) == length and check == data[place + 8 : place + _HEAD] else None
