"""Rows in parts on the workers of a Dask cluster: a pass is a task a part.

Dask keeps each part as the result of the task that read it, a `HeldPart`. A pass submits a task a
part, which sums over the blocks of its rows; partial sums are added up on the workers, in the order
of the parts. Values that do not change are results of tasks, too. When a worker is lost, Dask runs
the tasks again whose results it held.
"""

import io
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import cloudpickle
import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind
from rareclass.labels.two_classes import RowNumbers
from rareclass.rows.memory import ArrayRows, add_to, count_threads
from rareclass.rows.protocol import Budget, Rows, RowValues, SentOnce, runs
from rareclass.rows.source import RowSource, stacked

# Share of a worker's memory for values that blocks remember: it must neither spill nor pause.
_OF_MEMOS = 0.25
# With more partial sums than this, they are added up on the workers, this many at a time.
_FAN_IN = 8
# Larger calls of a pass are the result of a task, and go from worker to worker (bytes).
_LARGE = 1 << 18
# Bytes of features of a part of the rows that are brought to this process for a few passes.
_MOST_BROUGHT = 2**25


class PartFacts(NamedTuple):
    """Facts of a part that the process of the user holds."""

    n_rows: int
    n_features: int
    dtype: str
    is_sparse: bool
    names: tuple[str, ...] | None
    labels: np.ndarray | None
    weights: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Piece:
    """Chosen rows of one part, as blocks."""

    first: int  # number of the first of them among all chosen rows
    n_rows: int
    chosen: np.ndarray | None = field(repr=False)  # a bit for each row of the part; None: all
    weight: np.ndarray | None = field(repr=False)
    dtype: str
    block_rows: int
    budget: int  # bytes that the blocks may remember
    reserve: int  # bytes of the budget that large arrays may not take
    keeps_arrays: bool
    stride: int = 1  # of the runs that are taken: see `Rows.every`
    first_run: int = 0

    def rows(self, source: RowSource) -> ArrayRows:
        """The rows among those of the part, for the thread that asks."""
        rows = ArrayRows(
            source.astype(self.dtype),  # a part may be narrower than the table
            None if self.chosen is None else np.flatnonzero(np.unpackbits(self.chosen)),
            self.weight,
            block_rows=self.block_rows,
            budget=Budget(self.budget, self.reserve),
            n_jobs=1,
            keeps_arrays=self.keeps_arrays,
            stretches=[(self.first, self.first + self.n_rows)],
        )
        return rows.every(self.stride, self.first_run, self.keeps_arrays)


class HeldPart:
    """Features of a part, and what the blocks of its pieces remember between passes.

    What is remembered stays here: a copy in another process begins without it.
    """

    def __init__(self, X: Any, facts: PartFacts) -> None:
        self.X, self.facts = X, facts
        self._source = RowSource.of_array(X)
        self._rows: WeakKeyDictionary[Piece, ArrayRows] = WeakKeyDictionary()
        self._known: WeakValueDictionary[str, SentOnce] = WeakValueDictionary()
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return HeldPart, (self.X, self.facts)

    def __sizeof__(self) -> int:
        """Bytes of the features, by which Dask decides what to keep in memory."""
        X = self.X
        arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        return sum(array.nbytes for array in arrays)

    def take(self, index: np.ndarray) -> Any:
        """A few rows by their number in the part."""
        return self._source.take(index)

    def rows(self, piece: Piece) -> ArrayRows:
        """The rows of a piece, the same object as long as the piece is alive."""
        with self._lock:
            rows = self._rows.get(piece)
            if rows is None:
                rows = self._rows[piece] = piece.rows(self._source)
        return rows

    def same(self, name: str, value: SentOnce) -> SentOnce:
        """The object that came first under a name: blocks know values by their identity."""
        with self._lock:
            return self._known.setdefault(name, value)


class PartialSum(NamedTuple):
    """Sums over the rows of some parts."""

    total: list[np.ndarray]
    remembered: Counter[str]  # blocks that remember a value, by its name
    n_blocks: int

    @classmethod
    def over(cls, part: HeldPart, piece: Piece, fn: Callable, broadcast: tuple) -> "PartialSum":
        """Add up ``fn(block, *broadcast)`` over the blocks of a piece."""
        rows = part.rows(piece)
        total = list(rows.sum(fn, *broadcast))
        return cls(total, rows.remembered(), rows.n_blocks)

    @classmethod
    def joined(cls, sums: Sequence["PartialSum"]) -> "PartialSum":
        """Add up several, in their order."""
        total: list[np.ndarray] = []
        for each in sums:
            add_to(total, each.total)
        remembered = sum((each.remembered for each in sums), Counter())
        return cls(total, remembered, sum(each.n_blocks for each in sums))


class DaskSource(RowSource):
    """Rows of a table in parts on the workers of a cluster.

    Attributes
    ----------
    offsets : ndarray of int of shape (n_parts + 1,)
        Number of the first row of each part, and of all rows.
    """

    def __init__(self, client: Any, parts: Sequence[Any], facts: Sequence[PartFacts]) -> None:
        with_rows = [each for each in facts if each.n_rows]
        self.offsets = np.concatenate([[0], np.cumsum([each.n_rows for each in facts])])
        shape = int(self.offsets[-1]), with_rows[0].n_features
        dtype = np.result_type(*(np.dtype(each.dtype) for each in with_rows))
        self.client, self._parts = client, list(parts)
        take = partial(_taken, client, self._parts, self.offsets, dtype)
        # Dask forgets parts when nobody holds their futures.
        super().__init__(shape, dtype, take, with_rows[0].is_sparse, self._parts.clear)
        self.as_rows = DaskRows
        # Futures of values that are sent once: of the whole, or by the part that they belong to.
        self._sent: WeakKeyDictionary[Any, dict[int | None, Any]] = WeakKeyDictionary()

    def bytes_to_remember(self, most: int) -> int:
        """Bytes that blocks may remember on all workers together, `most` on each of them."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [int(_OF_MEMOS * each["memory_limit"]) for each in workers]
        return sum(min(most, limit or most) for limit in limits)

    def ask(
        self, pieces: dict[int, Piece], of_part: Callable, fn: Callable, broadcast: tuple
    ) -> list[Any]:
        """Submit ``of_part(part, piece, fn, broadcast)`` for each piece; return the futures."""
        file = io.BytesIO()
        packer = _Packer(file)
        packer.dump((fn, broadcast))
        call: Any = file.getvalue()
        if len(call) > _LARGE:
            call = self._submit(_unpickled, cloudpickle.dumps(call))
        found = []
        for k, piece in pieces.items():
            sent = [self._once(value, k, piece) for value in packer.values]
            names = [future.key for future in sent]
            mine = self._once(piece, k, piece)
            found.append(self._submit(_answer, of_part, self._parts[k], mine, call, names, *sent))
        return found

    def added_up(self, sums: list[Any]) -> PartialSum:
        """Return the total of partial sums, in their order."""
        while len(sums) > _FAN_IN:
            groups = [sums[k : k + _FAN_IN] for k in range(0, len(sums), _FAN_IN)]
            sums = [self._submit(PartialSum.joined, group) for group in groups]
        return PartialSum.joined(gathered(self.client, sums))

    def _submit(self, work: Callable, *args: Any) -> Any:
        return submitted(self.client, work, *args)

    def _once(self, value: Any, k: int, piece: Piece) -> Any:
        """Return the future of a value that is sent once; of values by row, those of a part."""
        sent = self._sent.setdefault(value, {})
        if not isinstance(value, Piece | RowValues):
            if None not in sent:
                sent[None] = self._submit(_unpickled, cloudpickle.dumps(value))
            return sent[None]
        if k not in sent:
            if isinstance(value, RowValues):
                value = value.part([(piece.first, piece.first + piece.n_rows)])
            sent[k] = self._submit(_unpickled, cloudpickle.dumps(value), self._parts[k])
        return sent[k]


class DaskRows:
    """Chosen rows of a table in parts: every pass is a task a part.

    Parts of them that take many passes, or few bytes, are brought to this process once.

    Parameters are those of `ArrayRows`; the budget holds for each worker, whose parts get their
    shares of it, and for the rows brought here.
    """

    def __init__(
        self,
        source: DaskSource,
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
        self._block_rows = block_rows
        whole = Piece(
            0, self.n_rows, None, None, source.dtype.name, block_rows,
            source.bytes_to_remember(self.budget.total), self.budget.reserve, keeps_arrays,
        )  # fmt: skip
        self._pieces = cut_to_parts(whole, source.offsets, index, weight)
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
        sums = self._source.ask(self._pieces, PartialSum.over, fn, broadcast)
        found = self._source.added_up(sums)
        self._remembered = {
            name: count / found.n_blocks for name, count in found.remembered.items()
        }
        return tuple(entry[()] for entry in found.total)

    def map(self, fn: Callable[..., np.ndarray], *broadcast: Any) -> np.ndarray:
        """Join ``fn(block, *broadcast)``, one result a row, in row order, in this process."""
        if not self.n_rows:
            return np.empty(0)
        found = self._source.ask(self._pieces, _mapped, fn, broadcast)
        return np.concatenate(gathered(self._source.client, found))

    def take(self, index: np.ndarray) -> Any:
        """A few rows by their number among these rows."""
        index = index if self._runs is None else _numbers(self._runs)[index]
        return self._source.take(index if self._index is None else self._index[index])

    def every(self, stride: int, first: int = 0, keeps_arrays: bool = True) -> Rows:
        """Every `stride`-th of the `runs` of these rows.

        Those that take many passes or few bytes are brought here, with one request; others stay
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

    def _staying(self, stride: int, first: int, chosen: list[tuple[int, int]]) -> "DaskRows":
        part = object.__new__(DaskRows)
        part.__dict__.update(self.__dict__, _remembered={}, _parts={}, _runs=chosen)
        part.n_rows = sum(stop - start for start, stop in chosen)
        part._pieces = {
            k: replace(piece, stride=stride, first_run=first, keeps_arrays=False)
            for k, piece in self._pieces.items()
            if runs(piece.first, piece.first + piece.n_rows, stride, first)
        }
        return part

    def _bring(self, stretches: Sequence[tuple[int, int]], keeps_arrays: bool) -> ArrayRows:
        numbers = _numbers(stretches)
        return ArrayRows(
            RowSource.of_array(self.take(numbers)),
            None,
            None if self._weight is None else self._weight[numbers],
            block_rows=self._block_rows,
            budget=self.budget,
            n_jobs=self.n_threads,
            keeps_arrays=keeps_arrays,
            stretches=stretches,
        )

    def __reduce__(self) -> Any:
        raise TypeError("rows in parts stay where they are and cannot be pickled.")


def _numbers(stretches: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.concatenate([np.arange(start, stop) for start, stop in stretches])


def cut_to_parts(
    whole: Piece, offsets: np.ndarray, index: RowNumbers | None, weight: np.ndarray | None
) -> dict[int, Piece]:
    """Cut the chosen rows of a table into the pieces of its parts, by the number of the part.

    Parts begin at `offsets`, the last of which is the number of rows; `index` are increasing row
    numbers, None for all; `weight` has an entry for each chosen row. A part's blocks may remember
    its share of the bytes of the whole.
    """
    if index is not None and (np.diff(index) <= 0).any():
        raise ValueError("rows of a table in parts are chosen in increasing order.")
    edges = offsets if index is None else np.searchsorted(index, offsets)
    pieces = {}
    for k, (start, stop) in enumerate(pairwise(edges)):
        if start == stop:
            continue
        chosen, n_part = None, int(offsets[k + 1] - offsets[k])
        if index is not None and stop - start < n_part:
            bits = np.zeros(n_part, dtype=bool)
            bits[index[start:stop] - offsets[k]] = True
            chosen = np.packbits(bits)
        share = (stop - start) / whole.n_rows
        pieces[k] = replace(
            whole,
            first=int(start),
            n_rows=int(stop - start),
            chosen=chosen,
            weight=None if weight is None else weight[start:stop],
            budget=int(share * whole.budget),
            reserve=int(share * min(whole.reserve, whole.budget // 4)),
        )
    return pieces


def _taken(
    client: Any, parts: Sequence[Any], offsets: np.ndarray, dtype: Any, rows: slice | np.ndarray
) -> Any:
    """Bring rows of a table in parts, by their number in the table."""
    index = np.arange(*rows.indices(offsets[-1])) if isinstance(rows, slice) else rows
    index = np.asarray(index, dtype=np.int64)
    order = np.argsort(index, kind="stable")
    edges = np.searchsorted(index[order], offsets)
    asked = [
        submitted(client, HeldPart.take, parts[k], index[order[start:stop]] - offsets[k])
        for k, (start, stop) in enumerate(pairwise(edges))
        if stop > start or (not len(index) and not k)
    ]
    found = stacked(gathered(client, asked)).astype(dtype, copy=False)
    return found[np.argsort(order, kind="stable")]


def submitted(client: Any, work: Callable, *args: Any) -> Any:
    """Submit a task; return its future."""
    with naming_losses(client):
        return client.submit(work, *args, pure=False)


def gathered(client: Any, futures: list[Any]) -> list[Any]:
    """Wait for results of tasks; an exception meanwhile cancels those that run."""
    try:
        with naming_losses(client):
            return list(client.gather(futures))
    except BaseException:
        if client.status == "running":
            client.cancel(futures)
        raise


@contextmanager
def naming_losses(client: Any) -> Iterator[None]:
    """Raise `InputError` with a remedy when scheduler or workers are gone for good."""
    from distributed.client import CancelledError, ClosedClientError, CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise ErrorKind.CONNECTION.error(
            f"Dask's workers were killed again and again: {error}",
            "They may have too little memory for one part: make the parts smaller, or give "
            "each worker more. Where workers come and go all the time, raise Dask's "
            "distributed.scheduler.allowed-failures.",
        ) from error
    except (CancelledError, ClosedClientError, CommClosedError, TimeoutError, OSError) as error:
        if client.status == "running" and not isinstance(error, CommClosedError):
            raise  # of a task, such as a file that a worker cannot read
        raise ErrorKind.CONNECTION.error(
            f"The connection to the Dask scheduler was lost ({type(error).__name__}).",
            "Start it again, make the collection again, and fit again.",
        ) from error


class _Packer(cloudpickle.Pickler):
    """Pickler of a call that leaves out, and keeps, the values that are sent once.

    What cannot be imported is pickled by value.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.values: list[SentOnce] = []

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, SentOnce):
            return None
        place = next((k for k, each in enumerate(self.values) if each is obj), len(self.values))
        if place == len(self.values):
            self.values.append(obj)
        return place


class _Unpacker(pickle.Unpickler):
    def __init__(self, call: bytes, values: Sequence[SentOnce]) -> None:
        super().__init__(io.BytesIO(call))
        self._values = values

    def persistent_load(self, pid: Any) -> Any:
        return self._values[pid]


# The functions below run on workers.


def _unpickled(value: bytes, part: HeldPart | None = None) -> Any:
    """The value; one of a single part is made where Dask keeps the part."""
    return cloudpickle.loads(value)


def _answer(
    of_part: Callable, part: HeldPart, piece: Piece, call: bytes, names: list[str], *values: Any
) -> Any:
    known = [part.same(name, value) for name, value in zip(names, values, strict=True)]
    fn, broadcast = _Unpacker(call, known).load()
    return of_part(part, piece, fn, broadcast)


def _mapped(part: HeldPart, piece: Piece, fn: Callable, broadcast: tuple) -> np.ndarray:
    return part.rows(piece).map(fn, *broadcast)
