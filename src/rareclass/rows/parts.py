"""Parts of a table in the memory of workers, and the sums over their rows."""

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind, missing_column
from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.memory import ArrayRows, add_to
from rareclass.rows.protocol import Budget, SentOnce
from rareclass.rows.source import RowSource, are_narrow, as_source, is_table


class PartFacts(NamedTuple):
    """Facts of a part that the process of the user holds."""

    n_rows: int
    n_features: int
    dtype: str
    is_sparse: bool
    names: tuple[str, ...] | None
    label_values: np.ndarray | None  # the different labels
    codes: np.ndarray | None  # index of each row's label among them
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
        self._rows: weakref.WeakKeyDictionary[Piece, ArrayRows] = weakref.WeakKeyDictionary()
        self._known: weakref.WeakValueDictionary[str, SentOnce] = weakref.WeakValueDictionary()
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


def read_part(number: int, data: Any, y: Any, weight: Any, roles: ColumnRoles) -> "HeldPart":
    """Split a part, an array, CSR matrix or table, with labels beside it or in a column.

    Raises `InputError`, naming the part and the row in it, on cells that are no finite numbers,
    columns that are missing and lengths that differ.
    """
    names = None
    if is_table(data):
        table = nw.from_native(data, eager_only=True)
        for name in (roles.target, roles.weight, *(roles.features or ())):
            if name is not None and name not in table.columns:
                raise missing_column(f"part {number}", name, [str(k) for k in table.columns])
        y = y if roles.target is None else table[roles.target].to_numpy()
        weight = weight if roles.weight is None else table[roles.weight].to_numpy()
        beside = (roles.target, roles.weight)
        names = roles.features
        if names is None:
            names = tuple(k for k in table.columns if k not in beside)
        data = table.select(names).to_native()
    elif roles.target is not None or roles.weight is not None:
        raise ErrorKind.SHAPE.error(
            f"part {number} is a {type(data).__name__}, which has no columns with names.",
            "Pass labels and weights as collections of their own: target=y.",
        )
    X = _features(number, data, names, roles.dtype)
    n_rows = X.shape[0]
    for name, values in (("target", y), ("weight", weight)):
        if values is not None and len(values) != n_rows:
            raise ErrorKind.ROWS.error(
                f"part {number} has {n_rows:,} rows and {len(values):,} of its {name}.",
                "Collections that belong together need the same rows in every part.",
            )
    values, codes = (None, None) if y is None else _encoded(np.asarray(y))
    weights = None if weight is None else np.asarray(weight, dtype=np.float64)
    facts = PartFacts(
        n_rows=n_rows,
        n_features=X.shape[1],
        dtype=X.dtype.name,
        is_sparse=sparse.issparse(X),
        names=names,
        label_values=values,
        codes=codes,
        weights=weights,
    )
    return HeldPart(X, facts)


def _features(number: int, data: Any, names: tuple[str, ...] | None, dtype: str | None) -> Any:
    """Return features as finite floats; arrays that can be used as they are are not copied."""
    n_rows = data.shape[0] if sparse.issparse(data) else len(data)
    if n_rows:
        try:
            X = as_source(data, names).take(slice(None))
        except ValueError as error:
            raise ErrorKind.CELL.error(
                f"part {number} (its rows are counted from 0): {error}"
            ) from error
        return X if dtype is None else X.astype(dtype, copy=False)
    if sparse.issparse(data):
        return sparse.csr_matrix(data.shape, dtype=dtype or data.dtype)
    # Without rows it is narrow by default, so that parts with rows decide.
    if is_table(data):
        types = nw.from_native(data, eager_only=True).schema.values()
        is_narrow = are_narrow(types)
        return np.empty((0, len(types)), dtype or (np.float32 if is_narrow else np.float64))
    return np.empty((0, np.shape(data)[1]), dtype or np.float32)


def _encoded(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different labels, and the index of each row's label among them in few bytes."""
    if y.dtype == object:
        code_of: dict[Any, int] = {}
        codes = np.array([code_of.setdefault(label, len(code_of)) for label in y], dtype=np.int64)
        values = np.empty(len(code_of), dtype=object)
        values[:] = list(code_of)
    else:
        values, codes = np.unique(y, return_inverse=True)
    return values, codes.astype(np.min_scalar_type(max(len(values) - 1, 0)))
