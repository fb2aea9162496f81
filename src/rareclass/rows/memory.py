"""Rows held in memory: arrays, sparse matrices and tables, read block by block."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import islice
from typing import Any

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from rareclass.rows.protocol import Block, Budget, Memo
from rareclass.rows.source import RowSource

# Fewer are done sooner than a thread is started and handed its work.
_BLOCKS_A_THREAD = 4
# Enough groups to keep cores busy to the end, each small enough to be dropped at Ctrl-C.
_GROUPS = 16
_MOST_BLOCKS_A_GROUP = 64


def count_threads(n_jobs: int | None) -> int:
    """Threads meant by `n_jobs`: None and -1 are all cores, -2 all but one, and so on.

    Inside a joblib worker, which sets OMP_NUM_THREADS, None keeps to the worker's share.
    """
    available = joblib.cpu_count()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if n_jobs is None:
        return max(1, min(available, int(limit))) if limit.isdigit() else available
    if n_jobs == 0 or int(n_jobs) != n_jobs:
        raise ValueError(f"n_jobs={n_jobs!r} must be a whole number of threads, -1 or None.")
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


class ArrayRows:
    """Chosen rows of an array, in blocks, with weights and a memory budget.

    Nothing is copied beyond one block per thread and what the blocks remember.

    Parameters
    ----------
    source : RowSource
        The array, sparse matrix or table.
    index : ndarray of int of shape (n_rows,) or None
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
    """

    def __init__(
        self,
        source: RowSource,
        index: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        *,
        block_rows: int = 4096,
        budget: Budget | None = None,
        n_jobs: int | None = None,
        keeps_arrays: bool = True,
        blocks_a_thread: int = _BLOCKS_A_THREAD,
    ) -> None:
        self.n_rows = source.n_rows if index is None else len(index)
        self.n_features = source.n_features
        self.budget = budget or Budget(0)
        self.n_threads = count_threads(n_jobs)
        self._source, self._index, self._weight = source, index, weight
        self._block_rows, self._n_whole = block_rows, self.n_rows
        self._memos = [Memo(self.budget) for _ in range(0, self.n_rows, block_rows)]
        self._blocks = range(len(self._memos))
        self._keeps_arrays, self._blocks_a_thread = keeps_arrays, blocks_a_thread
        self._blas = _blas()

    def every(self, stride: int) -> "ArrayRows":
        """Every `stride`-th block of these rows, remembering what they remember."""
        part = object.__new__(ArrayRows)
        part.__dict__.update(self.__dict__, _blocks=self._blocks[::stride], _keeps_arrays=True)
        part.n_rows = sum(stop - start for start, stop in map(self._range, part._blocks))
        return part

    @property
    def numbers(self) -> np.ndarray | slice:
        """Which rows of the whole these are."""
        if len(self._blocks) == len(self._memos):
            return slice(None)
        return np.concatenate([np.arange(*self._range(number)) for number in self._blocks])

    @property
    def weight(self) -> np.ndarray:
        """Weight of each row, shape (n_rows,)."""
        return np.ones(self.n_rows) if self._weight is None else self._weight[self.numbers]

    def share_remembering(self, name: str) -> float:
        """Share of the blocks that remember something called `name`."""
        return sum(name in self._memos[number] for number in self._blocks) / len(self._blocks)

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """The blocks in row order, from the `first` of them on."""
        for number in self._blocks[first:]:
            start, stop = self._range(number)
            weight = np.ones(stop - start) if self._weight is None else self._weight[start:stop]
            take = partial(self._take, start, stop)
            yield Block(start, stop, weight, self._memos[number], self._keeps_arrays, take)

    def _range(self, number: int) -> tuple[int, int]:
        """First row of a block, and the one after its last."""
        start = number * self._block_rows
        return start, min(start + self._block_rows, self._n_whole)

    def sum(self, fn: Callable[..., tuple], *broadcast: Any) -> tuple:
        """Add ``fn(block, *broadcast)``, a tuple of numbers and arrays, over all blocks."""
        if not self.n_rows:
            raise ValueError("there are no rows to sum over.")
        total: list[np.ndarray] = []
        for part in self._run(partial(_sum_over, fn, broadcast)):
            _add(total, part)
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
        numbers = self.numbers
        index = index if isinstance(numbers, slice) else numbers[index]
        return self._source.take(index if self._index is None else self._index[index])

    def _take(self, start: int, stop: int) -> Any:
        if self._index is None:
            return self._source.take(slice(start, stop))
        return self._source.take(self._index[start:stop])

    def _run(self, work: Callable[[Iterator[Block]], Any]) -> Iterator[Any]:
        """``work`` on consecutive groups of blocks, in their order.

        Groups are handed to threads, not blocks: handing over costs as much as a small block.
        They depend on the number of blocks only, so that sums do not depend on the threads.
        """
        n_blocks = len(self._blocks)
        size = min(_MOST_BLOCKS_A_GROUP, -(-n_blocks // _GROUPS))
        groups = [islice(self.blocks(start), size) for start in range(0, n_blocks, size)]
        n_threads = min(self.n_threads, n_blocks // self._blocks_a_thread)
        with self._blas.limit(limits=1, user_api="blas"):
            if n_threads <= 1:
                yield from map(work, groups)
                return
            pool = ThreadPoolExecutor(n_threads)
            try:
                yield from pool.map(work, groups)
            finally:
                # On Ctrl-C the groups that wait are dropped; the running ones take milliseconds.
                pool.shutdown(wait=True, cancel_futures=True)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process, found once: looking takes 4 ms, like a small fit."""
    return ThreadpoolController()


def _sum_over(fn: Callable[..., tuple], broadcast: tuple, group: Iterator[Block]) -> list:
    """``fn`` of the blocks of a group, added up in their order."""
    total: list[np.ndarray] = []
    for block in group:
        _add(total, fn(block, *broadcast))
    return total


def _add(total: list[np.ndarray], part: Iterable) -> None:
    """Add to a total, entry by entry; the first part is copied, the others go in place."""
    if not total:
        total.extend(np.array(entry) for entry in part)
        return
    for entry, more in zip(total, part, strict=True):
        entry += more
