"""Passes over a table in parts: requests go to places, are repeated where places are lost, and
their sums are kept in a checkpoint where one is asked for."""

import hashlib
import io
import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.files import let_go, take_hold
from rareclass.rows.partitions.parts import PartFacts, View
from rareclass.rows.partitions.place import Names, Reply, Request, digest, pack, pickled_for
from rareclass.rows.protocol import SentOnce

# A place that is lost takes one attempt; more in a row mean that something else is wrong.
_MOST_ATTEMPTS = 20
_MAGIC = b"rareclass passes 1\n"
_DIGEST = 16
_HEAD = 8 + _DIGEST


class PassCost(NamedTuple):
    """Time and bytes of one pass."""

    kind: str
    seconds: float
    work_seconds: float  # in the place that took longest
    sent_bytes: int  # to all places together
    received_bytes: int
    n_places: int


class Engine(ABC):
    """Places that hold the parts of a table, and one pass over them.

    A subclass names the places and brings requests there.
    """

    def __init__(self, place_of: Sequence[str]) -> None:
        self.place_of = list(place_of)  # the name of the place of each part
        self.names = Names()
        self.passes: list[PassCost] = []
        self._known: dict[str, set[str]] = {}  # names of the values that each place was sent
        self._dropped: dict[str, list[str]] = {}

    @abstractmethod
    def load(self, parts: Sequence[int]) -> list[PartFacts]:
        """Bring parts to their places; return the facts of each."""

    @abstractmethod
    def exchange(self, requests: Mapping[str, Request]) -> list[Reply]:
        """Return the replies of places, in their order; some may have been joined.

        Parts of a lost place are `left` and `absent`.
        """

    @abstractmethod
    def close(self) -> None:
        """Make the places forget everything."""

    def new_place(self, part: int) -> str:
        """Name the place to which a lost part is brought."""
        return self.place_of[part]

    def ask(
        self, kind: str, view: View | None, parts: Sequence[int], fn: Any, broadcast: tuple
    ) -> Reply:
        """Make one pass over some parts; parts lost on the way are loaded again."""
        start = time.perf_counter()
        payload, needs = pack(self.names, fn, broadcast)
        view_name = "" if view is None else self.names.of(view)
        known = needs if view is None else {**needs, view_name: view}
        replies: list[Reply] = []
        left, sent_bytes, n_places = tuple(parts), 0, 0
        for _ in range(_MOST_ATTEMPTS):
            requests = {}
            for place, some in self._by_place(left).items():
                request = Request(kind, some, view_name, payload, tuple(needs), {}, ())
                requests[place] = self._supplied(place, request, known, view)
                sent_bytes += len(payload) + sum(map(len, requests[place].supplies.values()))
            n_places = max(n_places, len(requests))
            answered = self.exchange(requests)
            replies += answered
            left = tuple(sorted(k for reply in answered for k in reply.left))
            if not left:
                break
            self._mend(left, [k for reply in answered for k in reply.absent])
        else:
            raise InputError(
                f"{len(left):,} parts of the rows were lost {_MOST_ATTEMPTS} times in a row.",
                "Look at the logs of the workers: they may have too little memory.",
                ErrorKind.CONNECTION,
            )
        reply = Reply.joined(replies)
        self._note(kind, time.perf_counter() - start, reply, sent_bytes, n_places)
        return reply

    def _by_place(self, parts: Sequence[int]) -> dict[str, tuple[int, ...]]:
        chosen: dict[str, list[int]] = {}
        for k in parts:
            chosen.setdefault(self.place_of[k], []).append(k)
        return {place: tuple(some) for place, some in chosen.items()}

    def _supplied(
        self, place: str, request: Request, known: Mapping[str, SentOnce], view: View | None
    ) -> Request:
        """Add the values to a request that the place presumably lacks."""
        for name in self.names.take_dropped():
            for each, names in self._known.items():
                if name in names:
                    names.discard(name)
                    self._dropped.setdefault(each, []).append(name)
        has = self._known.setdefault(place, set())
        its_parts = [k for k, each in enumerate(self.place_of) if each == place]
        new = {
            name: pickled_for(value, its_parts, view)
            for name, value in known.items()
            if name not in has
        }
        has.update(new)
        dropped = tuple(self._dropped.pop(place, ()))
        return request._replace(supplies=new, dropped=dropped)

    def _mend(self, left: Sequence[int], absent: Sequence[int]) -> None:
        """Load absent parts in new places; places with parts left are sent their values again."""
        for k in absent:
            self.place_of[k] = self.new_place(k)
        if absent:
            self.load(sorted(absent))
        for k in left:
            self._known.pop(self.place_of[k], None)

    def _note(self, kind: str, seconds: float, reply: Reply, sent_bytes: int, n: int) -> None:
        self.passes.append(PassCost(kind, seconds, reply.seconds, sent_bytes, reply.n_bytes, n))


class Journal:
    """File with the sums of every pass of a fit, in their order.

    A fit asks the same questions in the same order whenever it is run on the same rows with the
    same settings: a second run reads the sums found here and continues where the first was cut
    off. Each entry holds a hash of its question: a run with other rows or settings is refused.

    An entry is appended with its length; one that was cut short by a crash is dropped.

    Raises `InputError` where the file is no checkpoint, belongs to another fit, or is being written
    by another process.
    """

    def __init__(self, path: str | Path, of_rows: bytes) -> None:
        self.path, self._of_rows = Path(path), of_rows
        # Locked until collected or the process ends: entries come one after the other.
        take_hold(self.path, f"The checkpoint {self.path}")
        weakref.finalize(self, let_go, self.path)
        self._entries = self._read()
        self._next = 0
        self.n_found = len(self._entries)

    def rewind(self) -> None:
        """Begin a fit: its first pass is the first entry of the file."""
        self._next = 0

    def sums(
        self, fn: Callable, broadcast: tuple, ask: Callable[[], Sequence[np.ndarray]]
    ) -> list[np.ndarray]:
        """Return the sums of the next pass: those of the file, or new ones that are appended."""
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
                    ErrorKind.COMBINATION,
                )
            return sums
        sums = list(ask())
        self._write(question, sums)
        self._entries.append((question, sums))
        return sums

    def _read(self) -> list[Any]:
        """Read entries up to the first that is cut short; truncate the file there."""
        head = _MAGIC + self._of_rows
        if not self.path.exists():
            self.path.write_bytes(head)
            return []
        data = self.path.read_bytes()
        if not data.startswith(_MAGIC):
            raise InputError(
                f"{self.path} is no checkpoint of a fit.",
                "Name a file that is not there yet.",
                ErrorKind.FILE_FORMAT,
            )
        if not data.startswith(head):
            raise InputError(
                f"{self.path} is a checkpoint of a fit on other rows.",
                "Name another file, or delete it.",
                ErrorKind.COMBINATION,
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


def _entry(data: bytes, place: int) -> bytes | None:
    """Entry at a position of the file; None at the end, and where it is cut short or damaged."""
    if place + _HEAD > len(data):
        return None
    length = int.from_bytes(data[place : place + 8], "little")
    entry = data[place + _HEAD : place + _HEAD + length]
    check = hashlib.blake2b(entry, digest_size=_DIGEST).digest()
    return entry if len(entry) == length and check == data[place + 8 : place + _HEAD] else None
