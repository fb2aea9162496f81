"""Questions to blocks of majority rows, wherever these live; and rows with their labels."""

import itertools
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import narwhals as nw
import numpy as np
import pyarrow as pa

from rareclass.errors import ErrorKind
from rareclass.rows.source import HasSource, RowSource, as_source, is_dask, is_dask_array, is_table

# Arrays that blocks keep are cut from pieces this large: the operating system then hands out huge
# pages, and writing 4 GB for the first time takes 0.5 s in place of 1.8 s.
_LEAST_PIECE, _MOST_PIECE = 2**20, 2**26
_ALIGNMENT = 64


class Budget:
    """Bytes that blocks may remember, shared by threads; `reserve` of them not by large arrays."""

    def __init__(self, n_bytes: int, reserve: int = 0) -> None:
        self.total = n_bytes
        self.left = n_bytes
        self.reserve = reserve
        self._lock = threading.Lock()
        self._piece = np.empty(0, dtype=np.uint8)
        self._piece_size = _LEAST_PIECE

    def take(self, n_bytes: int) -> bool:
        """Take `n_bytes` (a negative number gives back); False, and nothing taken, if too few."""
        with self._lock:
            if n_bytes > self.left:
                return False
            self.left -= n_bytes
            return True

    def room(self, like: np.ndarray) -> np.ndarray | None:
        """Allocate an array like `like`, not filled; None when too little is left."""
        n_bytes = -(-like.nbytes // _ALIGNMENT) * _ALIGNMENT
        with self._lock:
            left = self.left - self.reserve
            if n_bytes > left:
                return None
            if n_bytes > len(self._piece):
                size = max(n_bytes, min(self._piece_size, left))
                self._piece = np.empty(size, dtype=np.uint8)
                self._piece_size = min(2 * self._piece_size, _MOST_PIECE)
            self.left -= n_bytes
            taken, self._piece = self._piece[: like.nbytes], self._piece[n_bytes:]
        return taken.view(like.dtype).reshape(like.shape)


class Memo:
    """Values that one block remembers between passes, within the budget.

    A value that does not fit is not kept and is computed again: the budget changes the time and
    never the result.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._kept: dict[Any, tuple[Any, Any, int]] = {}

    def __contains__(self, name: Any) -> bool:
        return name in self._kept

    @property
    def names(self) -> list[Any]:
        """Names of the remembered values."""
        return list(self._kept)

    def get(self, name: Any, key: Any) -> Any | None:
        """Value put under `name` if it was put with the same `key`, else None."""
        kept = self._kept.get(name)
        return kept[1] if kept is not None and kept[0] == key else None

    def put(self, name: Any, key: Any, value: Any, n_bytes: int) -> None:
        """Keep `value` under `name`, replacing an older one, if the budget allows."""
        old = self._kept.get(name)
        if self._budget.take(n_bytes - (old[2] if old else 0)):
            self._kept[name] = (key, value, n_bytes)

    def keep(self, name: Any, key: Any, array: np.ndarray) -> None:
        """Keep a copy of an array for good, if the budget allows and `name` is free."""
        room = None if name in self._kept else self._budget.room(array)
        if room is not None:
            room[...] = array
            self._kept[name] = (key, room, array.nbytes)


@dataclass(frozen=True)
class Block:
    """Consecutive rows ``start:stop`` of the whole, with their weights."""

    start: int
    stop: int
    weight: np.ndarray  # 0 means that the row is absent
    memo: Memo  # values remembered between passes
    keeps_arrays: bool  # True where large arrays, such as the kernel, are worth remembering
    take: Callable[[], Any] = field(repr=False)

    @property
    def X(self) -> Any:  # noqa: N802 - the symbol of every docstring
        """Rows, fetched at each call: ndarray or CSR of shape (n, n_features)."""
        return self.take()


# Rows of a part that follow one another: few enough for a small part to have several such runs, and
# as many as a kernel block of a thousand landmarks or more has.
RUN_ROWS = 1024


def runs(start: int, stop: int, stride: int, first: int = 0) -> list[tuple[int, int]]:
    """Return what rows ``start:stop`` have of every `stride`-th run of `RUN_ROWS` rows.

    Runs are numbered from row 0 and `first` is the first one taken: a part has the same rows
    whatever the blocks and wherever the rows live.

    >>> runs(0, 2500, stride=2)
    [(0, 1024), (2048, 2500)]
    """
    number = max(start // RUN_ROWS, first)
    begin = (number + (first - number) % stride) * RUN_ROWS
    return [
        (max(start, each), min(each + RUN_ROWS, stop))
        for each in range(begin, stop, stride * RUN_ROWS)
    ]


_numbers = itertools.count()


class Token(NamedTuple):
    """Name for a point at which blocks remember values; equal in every process."""

    number: int

    @classmethod
    def new(cls) -> "Token":
        """Make a name that no other point of this process has."""
        return cls(next(_numbers))


class SentOnce:
    """Base of values that never change and are sent once to each place where rows live.

    Objects are compared by identity, also after they were sent.
    """

    __hash__ = object.__hash__


class RowValues(SentOnce):
    """Values of all rows, from which each block takes those of its own.

    A place where rows live is sent the values of its own rows only.

    Parameters
    ----------
    values : ndarray of shape (n_rows, ...)

    Examples
    --------
    >>> RowValues(np.array([5, 6, 7, 8])).part([(2, 4)]).within(2, 4).tolist()
    [7, 8]
    """

    def __init__(self, values: np.ndarray) -> None:
        self._firsts, self._pieces = [0], [values]

    @property
    def whole(self) -> np.ndarray:
        """All values, in the process that made them."""
        (values,) = self._pieces
        return values

    def of(self, block: Block) -> np.ndarray:
        """Values of the rows of a block."""
        return self.within(block.start, block.stop)

    def within(self, start: int, stop: int) -> np.ndarray:
        """Values of consecutive rows within one stretch of `part`."""
        k = bisect_right(self._firsts, start) - 1
        first = self._firsts[k]
        return self._pieces[k][start - first : stop - first]

    def part(self, stretches: Iterable[tuple[int, int]]) -> "RowValues":
        """Keep the values of some stretches of rows, given in increasing order."""
        part = RowValues(self.whole[:0])
        for start, stop in stretches:
            part._firsts.append(start)
            part._pieces.append(self.whole[start:stop])
        return part


class Rows(Protocol):
    """Majority rows, wherever they live.

    ``fn`` must be a plain function of a `Block` and of the broadcast values: it is called once
    a block, in any order, perhaps in another thread, in another process or on another machine.
    Remembered values stay where the blocks are and may be lost at any time: a function may rely
    on its arguments only. A `Token` names a point; values that do not change from pass to pass
    inherit from `SentOnce`; one value for each row is `RowValues`.
    """

    n_rows: int
    n_features: int

    @property
    def n_threads(self) -> int:
        """Most threads that work on blocks."""

    def sum(self, fn: Callable[..., tuple], *broadcast: Any) -> tuple:
        """Add up ``fn(block, *broadcast)``, a tuple of numbers and arrays, over the blocks."""

    def map(self, fn: Callable[..., np.ndarray], *broadcast: Any) -> np.ndarray:
        """Join ``fn(block, *broadcast)``, one result a row, in row order."""

    def take(self, index: np.ndarray) -> Any:
        """Take a few rows by their number: ndarray or CSR of shape (len(index), n_features)."""

    def every(self, stride: int, first: int = 0, keeps_arrays: bool = True) -> "Rows":
        """Take every `stride`-th of the `runs` of these rows from number `first`: an even part.

        `keeps_arrays`, for many passes, lets blocks remember large arrays.
        """

    def share_remembering(self, name: str) -> float:
        """Share of the blocks that remember a value called `name`."""

    @property
    def numbers(self) -> np.ndarray | slice:
        """Row numbers in the whole: all of them, unless these rows are a part."""

    @property
    def weight(self) -> np.ndarray:
        """Weight of each row, shape (n_rows,)."""


@dataclass(frozen=True, eq=False)
class LabelledRows(HasSource):
    """Features wherever they live, labels and weights in memory.

    Made by `from_table` and `from_arrays`; taken by ``RankRC.fit_rows``,
    ``RankRCCV.fit_rows`` and in place of X by ``score_samples``, ``predict`` and their like.
    ``dataclasses.replace(rows, y=rows.y == "U2R")`` is the same rows with other labels.

    Rows of a file hold a scratch file on disk until they are closed, by `close` or at the end of
    a ``with``, or garbage-collected. Results of `replace` share it.

    Attributes
    ----------
    source : RowSource
        The features.
    y : ndarray of shape (n_rows,) or None
        The labels; None for rows that are only to be scored.
    sample_weight : ndarray of shape (n_rows,) or None
    feature_names : tuple of str or None
    """

    source: RowSource
    y: np.ndarray | None
    sample_weight: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.source.n_rows, self.source.n_features

    def __len__(self) -> int:
        return self.source.n_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the scratch file; the features can no longer be read, labels stay."""
        self.source.close()

    @staticmethod
    def to_learn_from(rows: Any) -> "LabelledRows":
        """Return `rows` as they are, if ``fit_rows`` can learn from them.

        Raises `TypeError` for something else, such as a path or a table, and `InputError` for rows
        without labels.
        """
        if not isinstance(rows, LabelledRows):
            found = repr(rows) if isinstance(rows, str | Path) else f"a {type(rows).__name__}"
            raise TypeError(
                f"fit_rows takes rows with labels, not {found}. Make them of a file or folder: "
                "rareclass.rows.from_table(path, target='the column of labels'); "
                "arrays in memory go to fit(X, y)."
            )
        if rows.y is None:
            raise ErrorKind.LABELS.error(
                "These rows have no labels to learn from: y is None.",
                "Name their column: from_table(path, target='the column of labels'); "
                "from_arrays takes y.",
            )
        return rows


def from_arrays(X: Any, y: Any, sample_weight: Any = None) -> LabelledRows:
    """Rows in memory, or in a memory-mapped array; nothing is copied.

    Parameters
    ----------
    X : array, CSR matrix or table of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or None
    sample_weight : array-like of shape (n_rows,) or None

    Raises
    ------
    ValueError
        On values that are missing or infinite, naming row and column.

    Examples
    --------
    >>> from_arrays([[1.0, 2.0], [3.0, 4.0]], [0, 1]).shape
    (2, 2)
    """
    names = tuple(nw.from_native(X, eager_only=True).columns) if is_table(X) else None
    weight = None if sample_weight is None else np.asarray(sample_weight)
    return LabelledRows(as_source(X, names), None if y is None else np.asarray(y), weight, names)


def header(X: Any) -> Any:
    """Stand-in for `X` where only the number and names of its columns count.

    Rows on disk become a table without rows; a RecordBatch, a table; anything else stays.
    """
    if isinstance(X, RowSource):
        return np.empty((0, X.n_features))
    if is_dask(X):  # the collection's meta: no rows, the same columns
        return np.empty((0, X.shape[1])) if is_dask_array(X) else X._meta
    if not isinstance(X, LabelledRows):
        return pa.table(X) if isinstance(X, pa.RecordBatch) else nw.to_native(X, pass_through=True)
    if X.feature_names is None:
        return np.empty((0, X.source.n_features))
    return pa.table({name: pa.array([], pa.float64()) for name in X.feature_names})
