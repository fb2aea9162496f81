"""A table in parts as rows, on a cluster or in other processes.

A part is a piece of a table with whole rows. It lives in a place, a process that answers requests
about the parts it holds; the process of the user holds no features. An engine, such as Dask's or
Spark's, knows the places, carries requests and replies, and reloads the parts of a lost place. The
sums of passes are kept in a checkpoint where one is asked for.
"""

import hashlib
import io
import os
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.files import let_go, replacing, take_hold, writing
from rareclass.labels.two_classes import RowNumbers
from rareclass.rows.memory import ArrayRows, count_threads
from rareclass.rows.places import (
    BlockSettings,
    Names,
    PartFacts,
    Reply,
    Request,
    View,
    digest,
    pack,
    pickled_for,
)
from rareclass.rows.protocol import Budget, LabelledRows, Rows, SentOnce, runs
from rareclass.rows.source import RowSource, stacked

# A place that is lost takes one attempt; more in a row mean that something else is wrong.
_MOST_ATTEMPTS = 20
# Bytes of features of a part that are brought to this process for a few passes.
_MOST_BROUGHT = 2**25
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
            requests, by_place = {}, dict[str, list[int]]()
            for k in left:
                by_place.setdefault(self.place_of[k], []).append(k)
            for place, some in by_place.items():
                request = Request(kind, tuple(some), view_name, payload, tuple(needs), {}, ())
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
        seconds = time.perf_counter() - start
        cost = PassCost(kind, seconds, reply.seconds, sent_bytes, reply.n_bytes, n_places)
        self.passes.append(cost)
        return reply

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
            with replacing(self.path) as temporary:
                temporary.write_bytes(head)
            return []
        data = self.path.read_bytes()
        if not data.startswith(_MAGIC):
            raise InputError(
                f"{self.path} is not a checkpoint of a fit.",
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
        with writing(self.path), self.path.open("ab") as file:
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


class PartitionedSource(RowSource):
    """Rows of a table in parts that live elsewhere.

    Attributes
    ----------
    engine : Engine
        Brings requests to the places; its ``passes`` have the cost of each pass.
    offsets : ndarray of int of shape (n_parts + 1,)
        Number of the first row of each part, and of all rows.
    """

    def __init__(self, engine: Engine, facts: Sequence[PartFacts], checkpoint: Any = None) -> None:
        with_rows = [each for each in facts if each.n_rows] or list(facts)
        _check_alike(facts, with_rows)
        self.offsets = np.concatenate([[0], np.cumsum([each.n_rows for each in facts])])
        shape = int(self.offsets[-1]), with_rows[0].n_features
        dtype = np.result_type(*(np.dtype(each.dtype) for each in with_rows))
        super().__init__(shape, dtype, self._rows_of, with_rows[0].is_sparse, engine.close)
        self.engine, self.as_rows = engine, PartitionedRows
        self.journal = None
        if checkpoint is not None:
            self.journal = Journal(checkpoint, _fingerprint(facts))

    def begin_fit(self) -> None:
        """Begin a fit: the checkpoint's first entry belongs to its first pass."""
        if self.journal is not None:
            self.journal.rewind()

    def _rows_of(self, rows: slice | np.ndarray) -> Any:
        index = np.arange(*rows.indices(self.n_rows)) if isinstance(rows, slice) else rows
        index = np.asarray(index, dtype=np.int64)
        if not len(index):
            return np.empty((0, self.n_features), self.dtype)
        order = np.argsort(index, kind="stable")
        edges = np.searchsorted(index[order], self.offsets)
        places = {
            k: index[order[start:stop]] - self.offsets[k]
            for k, (start, stop) in enumerate(pairwise(edges))
            if stop > start
        }
        found = self.engine.ask("take", None, list(places), None, (places,)).by_part
        rows_of = stacked([found[k] for k in sorted(found)]).astype(self.dtype, copy=False)
        return rows_of[np.argsort(order, kind="stable")]


class PartitionedRows:
    """Chosen rows of a table in parts: every pass is a request to the places of the parts.

    Parts of them that take many passes, or few bytes, are brought to this process once.

    Parameters are those of `ArrayRows`; the budget holds for each place, and for the rows
    brought here.
    """

    def __init__(
        self,
        source: PartitionedSource,
        index: RowNumbers | None = None,
        weight: np.ndarray | None = None,
        *,
        block_rows: int = 4096,
        budget: Budget | None = None,
        n_jobs: int | None = None,
        keeps_arrays: bool = True,
        blocks_a_thread: int = 0,
    ) -> None:
        self.n_rows = source.n_rows if index is None else len(index)
        self.n_features, self.n_threads = source.n_features, count_threads(n_jobs)
        self.budget = budget or Budget(0)
        self._source, self._index, self._weight = source, index, weight
        settings = BlockSettings(
            source.dtype.name, block_rows, self.budget.total, self.budget.reserve, keeps_arrays
        )
        self._view = View.of_rows(settings, source.offsets, index, weight)
        self._remembered: dict[str, float] = {}
        self._parts: dict[tuple[int, int, bool], Rows] = {}
        self._runs: list[tuple[int, int]] | None = None  # of the whole; None for all rows

    @property
    def numbers(self) -> slice | np.ndarray:
        """Row numbers in the whole."""
        return slice(None) if self._runs is None else _numbers(self._runs)

    @property
    def weight(self) -> np.ndarray:
        """Weight of each row, shape (n_rows,)."""
        return np.ones(self.n_rows) if self._weight is None else self._weight[self.numbers]

    def share_remembering(self, name: str) -> float:
        """Share of the blocks that remembered `name` at the end of the last pass."""
        return self._remembered.get(name, 0.0)

    def sum(self, fn: Callable[..., tuple], *broadcast: Any) -> tuple:
        """Add ``fn(block, *broadcast)``, a tuple of numbers and arrays, over all blocks."""
        if not self.n_rows:
            raise ValueError("there are no rows to sum over.")

        def ask() -> list[np.ndarray]:
            return self._ask("sum", fn, broadcast).total

        journal = self._source.journal
        total = ask() if journal is None else journal.sums(fn, (*broadcast, self._view), ask)
        return tuple(entry[()] for entry in total)

    def map(self, fn: Callable[..., np.ndarray], *broadcast: Any) -> np.ndarray:
        """Join ``fn(block, *broadcast)``, one result a row, in row order, in this process."""
        if not self.n_rows:
            return np.empty(0)
        by_part = self._ask("map", fn, broadcast).by_part
        return np.concatenate([by_part[k] for k in sorted(by_part)])

    def take(self, index: np.ndarray) -> Any:
        """A few rows by their number among these rows."""
        index = index if self._runs is None else _numbers(self._runs)[index]
        return self._source.take(index if self._index is None else self._index[index])

    def every(self, stride: int, first: int = 0, keeps_arrays: bool = True) -> Rows:
        """Every `stride`-th of the `runs` of these rows.

        Those that take many passes or few bytes are brought here, with one request; others answer
        where they are.
        """
        wanted = stride, first, keeps_arrays
        if wanted not in self._parts:
            chosen = runs(0, self.n_rows, stride, first)
            n_cells = sum(stop - start for start, stop in chosen) * self.n_features
            brings = keeps_arrays or n_cells * self._source.dtype.itemsize <= _MOST_BROUGHT
            self._parts[wanted] = (
                self._bring(chosen or [(0, 0)], keeps_arrays)
                if brings
                else self._staying(stride, first, chosen)
            )
        return self._parts[wanted]

    def _staying(self, stride: int, first: int, chosen: list[tuple[int, int]]) -> "PartitionedRows":
        part = object.__new__(PartitionedRows)
        part.__dict__.update(self.__dict__, _remembered={}, _parts={}, _runs=chosen)
        part.n_rows = sum(stop - start for start, stop in chosen)
        part._view = self._view.every(stride, first)
        return part

    def _bring(self, stretches: Sequence[tuple[int, int]], keeps_arrays: bool) -> ArrayRows:
        X = self.take(_numbers(stretches))
        parts, n_before = [], 0
        for start, stop in stretches:
            rows = ArrayRows(
                RowSource.of_array(X[n_before : n_before + stop - start]),
                None,
                None if self._weight is None else self._weight[start:stop],
                block_rows=self._view.settings.block_rows,
                budget=self.budget,
                n_jobs=self.n_threads,
                keeps_arrays=keeps_arrays,
            )
            n_before += stop - start
            parts.append(rows.starting_at(start))
        return ArrayRows.joined(parts)

    def _ask(self, kind: str, fn: Callable, broadcast: tuple) -> Any:
        reply = self._source.engine.ask(kind, self._view, list(self._view.pieces), fn, broadcast)
        if reply.n_blocks:
            self._remembered = {
                name: count / reply.n_blocks for name, count in reply.remembered.items()
            }
        return reply

    def __reduce__(self) -> Any:
        raise TypeError("rows in parts stay where they are and cannot be pickled.")


def _numbers(stretches: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.concatenate([np.arange(start, stop) for start, stop in stretches])


def labelled(engine: Engine, facts: Sequence[PartFacts], checkpoint: Any = None) -> LabelledRows:
    """Make labelled rows of parts that are in their places."""
    if not sum(each.n_rows for each in facts):
        raise InputError(
            "The parts have columns but no rows.", "Give some with rows.", ErrorKind.TOO_FEW_ROWS
        )
    source = PartitionedSource(engine, facts, checkpoint)
    labels = [each.label_values[each.codes] for each in facts if each.label_values is not None]
    # A part without rows may have another type of label.
    labels = [part for part in labels if len(part)] if len(labels) == len(facts) else []
    weights = [each.weights for each in facts if each.weights is not None]
    return LabelledRows(
        source,
        np.concatenate(labels) if labels else None,
        np.concatenate(weights) if len(weights) == len(facts) else None,
        facts[0].names,
    )


def _check_alike(facts: Iterable[PartFacts], with_rows: Sequence[PartFacts]) -> None:
    """Raise `InputError`, naming the part, where parts are not of one table."""
    first = with_rows[0]
    for k, each in enumerate(facts):
        if each.n_features != first.n_features or each.names != first.names:
            its, others = each.names or each.n_features, first.names or first.n_features
            raise InputError(
                f"part {k} has the columns {its}, others {others}.",
                "All parts of a table need the same columns in the same order.",
                ErrorKind.SHAPE,
            )
        if each.n_rows and each.is_sparse != first.is_sparse:
            raise InputError(
                f"part {k} is {'sparse' if each.is_sparse else 'dense'}, others are not.",
                "Make all parts CSR matrices, or none.",
                ErrorKind.SHAPE,
            )


def _fingerprint(facts: Sequence[PartFacts]) -> bytes:
    """Hash of shapes, labels, weights and features, by which a checkpoint knows its rows."""
    seen = hashlib.blake2b(digest_size=16)
    for each in facts:
        seen.update(repr((each.n_rows, each.n_features, each.dtype, each.is_sparse)).encode())
        if each.codes is not None:
            seen.update(each.codes.tobytes() + repr(each.label_values).encode())
        seen.update(each.digest)
    return seen.digest()
