"""Rows held in memory, read block by block by a pool of threads that lasts."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from rareclass.errors import ErrorKind
from rareclass.labels.two_classes import RowNumbers
from rareclass.machine import one_blas_thread
from rareclass.parameters import is_whole
from rareclass.rows.protocol import Block, Budget, Memo, Rows, runs
from rareclass.rows.source import RowSource

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Workers:
    """Pool of threads that is made when it is first needed, and serves every pass after that.

    Starting a thread and waiting for it to be there takes a millisecond, where a pass over a part
    of the rows takes ten, and a fit makes hundreds. The threads end when nothing holds this any
    more.

    >>> list(Workers().map(abs, [-1, 2, -3], n_threads=2))
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._n_threads, self._process = 0, os.getpid()

    def map(
        self, work: Callable[[Piece], Result], pieces: Iterable[Piece], n_threads: int
    ) -> Iterator[Result]:
        """Return ``work`` of each piece in order, by `n_threads` threads or the running pool.

        One thread is the caller's. Where a piece fails, or at Ctrl-C, waiting pieces are dropped
        and running ones finished.
        """
        return map(work, pieces) if n_threads <= 1 else self._shared(work, pieces, n_threads)

    def _shared(
        self, work: Callable[[Piece], Result], pieces: Iterable[Piece], n_threads: int
    ) -> Iterator[Result]:
        pool, process = self._pool, os.getpid()
        if pool is None or self._n_threads < n_threads or self._process != process:
            # For more threads, or in a child process.
            pool = ThreadPoolExecutor(n_threads, "rareclass")
            self._pool, self._n_threads, self._process = pool, n_threads, process
        try:
            yield from pool.map(work, pieces)
        except BaseException:
            self._pool = None
            pool.shutdown(wait=True, cancel_futures=True)
            raise


# Fewer are done sooner than a thread is started and handed its work.
_BLOCKS_A_THREAD = 4
# Enough groups to keep cores busy to the end, each small enough to be dropped at Ctrl-C.
_GROUPS = 16
_MOST_BLOCKS_A_GROUP = 64


def count_threads(n_jobs: int | None) -> int:
    """Count the threads of `n_jobs`: None and -1 are all cores, -2 all but one, and so on.

    Inside a joblib worker, which sets OMP_NUM_THREADS, None keeps to the worker's share.
    """
    if n_jobs is not None and is_whole(n_jobs):
        return int(n_jobs)
    check_jobs(n_jobs)
    import joblib  # costs as much as a small fit

    available = joblib.cpu_count()  # looks at files of the system
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if n_jobs is None:
        return max(1, min(available, int(limit))) if limit.isdigit() else available
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


def check_jobs(n_jobs: int | None) -> None:
    """Raise `ValueError` where `count_threads` knows no number of threads for it."""
    if n_jobs is not None and (n_jobs == 0 or int(n_jobs) != n_jobs):
        raise ErrorKind.SETTING.error(f"n_jobs={n_jobs!r} must be a number of threads, -1 or None.")


class ArrayRows:
    """Chosen rows of an array, in blocks, with weights and a memory budget.

    Nothing is copied beyond one block per thread and what the blocks remember.

    Parameters
    ----------
    source : RowSource
        The array, sparse matrix or table.
    index : ndarray of int of shape (n_rows,), AllBut or None
        Which rows of `source`, in which order; None means all of them.
    weight : ndarray of shape (n_rows,) or None
        Weight of each chosen row; None means 1.
    block_rows : int
        Rows a block.
    budget : Budget
        Bytes that all blocks together may remember.
    n_jobs : int or None
        Threads over blocks; BLAS runs with one thread inside them. The result does not depend
        on it: blocks are added up in an order that does not either.
    keeps_arrays : bool
        Whether large arrays of a block are worth remembering.
    blocks_a_thread : int
        A thread is started only for so many.
    stretches : sequence of (int, int) or None
        From which number to which the rows are those of a whole, stretch by stretch in increasing
        order; None where they are a whole themselves.
    """

    def __init__(
        self,
        source: RowSource,
        index: RowNumbers | None = None,
        weight: np.ndarray | None = None,
        *,
        block_rows: int = 4096,
        budget: Budget | None = None,
        n_jobs: int | None = None,
        keeps_arrays: bool = True,
        blocks_a_thread: int = _BLOCKS_A_THREAD,
        stretches: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.n_rows = source.n_rows if index is None else len(index)
        self.n_features = source.n_features
        self._source, self._index, self._weight = source, index, weight
        self._is_whole, n_before = stretches is None, 0
        # Of each block: the places of its rows here, and what their numbers in the whole are more.
        self._places: list[tuple[int, int, int]] = []
        for first, end in stretches or [(0, self.n_rows)]:
            shift = first - n_before
            for start in range(n_before, end - shift, block_rows):
                self._places.append((start, min(start + block_rows, end - shift), shift))
            n_before = end - shift
        self.budget = budget or Budget(0)
        check_jobs(n_jobs)
        self._n_jobs = n_jobs
        self._memos = [Memo(self.budget) for _ in self._places]
        self._keeps_arrays, self._blocks_a_thread = keeps_arrays, blocks_a_thread
        # Parts that `every` made: questions about one of them share passes.
        self._parts: dict[tuple[int, int, bool], ArrayRows] = {}
        self._workers = Workers()

    def every(self, stride: int, first: int = 0, keeps_arrays: bool = True) -> "ArrayRows":
        """Every `stride`-th of the `runs` of these rows.

        A block within a run is shared, with what it remembers; others are cut to the run.
        """
        keeps_arrays = self._keeps_arrays or keeps_arrays
        if (stride, first, keeps_arrays) not in self._parts:
            part = object.__new__(type(self))
            part.__dict__.update(self.__dict__, _keeps_arrays=keeps_arrays, _parts={})
            if stride > 1 or first:
                part._places, part._memos = self._cut_to_runs(stride, first)
                part.n_rows = sum(stop - start for start, stop, _ in part._places)
                part._is_whole = self._is_whole and part.n_rows == self.n_rows
            self._parts[stride, first, keeps_arrays] = part
        return self._parts[stride, first, keeps_arrays]

    def _cut_to_runs(self, stride: int, first: int) -> tuple[list[tuple[int, int, int]], list]:
        """Return the blocks of some runs: their places, and what each remembers."""
        places, memos = [], []
        for (start, stop, shift), memo in zip(self._places, self._memos, strict=True):
            for begin, end in runs(start + shift, stop + shift, stride, first):
                places.append((begin - shift, end - shift, shift))
                memos.append(memo if end - begin == stop - start else Memo(self.budget))
        return places, memos

    @property
    def numbers(self) -> np.ndarray | slice:
        """Row numbers in the whole."""
        if self._is_whole:
            return slice(None)
        each = [np.arange(start + shift, stop + shift) for start, stop, shift in self._places]
        return np.concatenate([np.empty(0, np.int64), *each])

    @property
    def weight(self) -> np.ndarray:
        """Weight of each row, shape (n_rows,)."""
        if self._is_whole:
            return self._weights(0, self.n_rows)
        each = [self._weights(start, stop) for start, stop, _ in self._places]
        return np.concatenate([np.empty(0), *each])

    def _weights(self, start: int, stop: int) -> np.ndarray:
        return np.ones(stop - start) if self._weight is None else self._weight[start:stop]

    @cached_property
    def n_threads(self) -> int:
        """Threads over blocks, at most; counted when they are first needed."""
        return count_threads(self._n_jobs)

    def share_remembering(self, name: str) -> float:
        """Share of the blocks that remember something called `name`."""
        return sum(name in memo for memo in self._memos) / len(self._memos)

    def remembered(self) -> Counter[str]:
        """How many blocks remember something, by its name where that is a text."""
        names = chain.from_iterable(memo.names for memo in self._memos)
        return Counter(name for name in names if isinstance(name, str))

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self._places)

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """The blocks in row order, from the `first` of them on."""
        every = zip(self._places, self._memos, strict=True)
        for (start, stop, shift), memo in islice(every, first, None):
            weight, take = self._weights(start, stop), partial(self._pick, slice(start, stop))
            yield Block(start + shift, stop + shift, weight, memo, self._keeps_arrays, take)

    def sum(self, fn: Callable[..., tuple], *broadcast: Any) -> tuple:
        """Add ``fn(block, *broadcast)``, a tuple of numbers and arrays, over all blocks."""
        if not self.n_rows:
            raise ValueError("there are no rows to sum over.")
        total: list[np.ndarray] = []
        for part in self._run(partial(_sum_over, fn, broadcast)):
            if total:
                add_to(total, part)
            else:
                total = part
        return tuple(entry[()] for entry in total)

    def map(self, fn: Callable[..., np.ndarray], *broadcast: Any) -> np.ndarray:
        """Join ``fn(block, *broadcast)``, one result a row, in row order."""
        groups = self._run(lambda group: [fn(block, *broadcast) for block in group])
        joined, filled = np.empty(0), 0
        for part in (part for group in groups for part in group):
            if not filled:
                joined = np.empty((self.n_rows, *part.shape[1:]), part.dtype)
            joined[filled : filled + len(part)] = part
            filled += len(part)
        return joined[:filled] if filled == self.n_rows else joined[:filled].copy()

    def take(self, index: np.ndarray) -> Any:
        """A few rows by their number among these rows."""
        if self._is_whole:
            return self._pick(index)
        places = np.concatenate([np.arange(start, stop) for start, stop, _ in self._places])
        return self._pick(places[np.asarray(index, dtype=np.intp)])

    def _pick(self, places: slice | np.ndarray) -> Any:
        return self._source.take(places if self._index is None else self._index[places])

    def _run(self, work: Callable[[Iterator[Block]], Any]) -> Iterator[Any]:
        """``work`` on consecutive groups of blocks, in their order.

        Groups are handed to threads, not blocks: handing over costs as much as a small block.
        They depend on the number of blocks only, so that sums do not depend on the threads.
        """
        n_blocks = len(self._places)
        size = min(_MOST_BLOCKS_A_GROUP, -(-n_blocks // _GROUPS))
        groups = [islice(self.blocks(start), size) for start in range(0, n_blocks, size)]
        n_threads = n_blocks // self._blocks_a_thread
        if n_threads > 1:  # one row is scored sooner than cores are counted
            n_threads = min(self.n_threads, n_threads)
        with one_blas_thread():
            yield from self._workers.map(work, groups, n_threads)


def rows_of(
    source: RowSource,
    index: RowNumbers | None = None,
    weight: np.ndarray | None = None,
    **settings: Any,
) -> Rows:
    """Chosen rows of a source as blocks, wherever they live; settings as of `ArrayRows`."""
    make = source.as_rows or ArrayRows
    return make(source, index, weight, **settings)


def _sum_over(fn: Callable[..., tuple], broadcast: tuple, group: Iterator[Block]) -> list:
    """``fn`` of the blocks of a group, added up in their order."""
    total: list[np.ndarray] = []
    for block in group:
        add_to(total, fn(block, *broadcast))
    return total


def add_to(total: list[np.ndarray], part: Iterable) -> None:
    """Add to a total, entry by entry; the first part is copied, the others go in place."""
    if not total:
        total.extend(np.array(entry) for entry in part)
        return
    for entry, more in zip(total, part, strict=True):
        entry += more
