"""Parts of a table: features, labels and weights of each, and which of its rows a view chooses."""

import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.labels.two_classes import RowNumbers
from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.protocol import SentOnce
from rareclass.rows.source import NARROW, as_source, is_table


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
    digest: bytes  # of features and weights: differs where the rows do


class LoadedPart(NamedTuple):
    """Features of a part in memory, with its facts."""

    X: Any  # ndarray or CSR of floats, all finite
    facts: PartFacts


def read_part(number: int, data: Any, y: Any, weight: Any, roles: ColumnRoles) -> LoadedPart:
    """Split a part, an array, CSR matrix or table, with labels beside it or in a column.

    Raises `InputError`, naming the part and the row in it, on cells that are no finite numbers,
    columns that are missing and lengths that differ.
    """
    names = None
    if is_table(data):
        data, y, weight = _of_table(number, data, y, weight, roles)
        names = tuple(data.columns)
        data = data.to_native()
    elif roles.target is not None or roles.weight is not None:
        raise InputError(
            f"part {number} is a {type(data).__name__}, which has no columns with names.",
            "Pass labels and weights as collections of their own: target=y.",
            ErrorKind.SHAPE,
        )
    X = _features(number, data, names, roles.dtype)
    n_rows = X.shape[0]
    for name, values in (("target", y), ("weight", weight)):
        if values is not None and len(values) != n_rows:
            raise InputError(
                f"part {number} has {n_rows:,} rows and {len(values):,} of its {name}.",
                "Collections that belong together need the same rows in every part.",
                ErrorKind.ROWS,
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
        digest=_digest(X, weights),
    )
    return LoadedPart(X, facts)


def label_array(facts: Iterable[PartFacts]) -> np.ndarray | None:
    """Labels of all parts, in their order; None where a part has none."""
    parts = []
    for each in facts:
        if each.label_values is None or each.codes is None:
            return None
        parts.append(each.label_values[each.codes])
    # A part without rows may have another type of label.
    return np.concatenate([part for part in parts if len(part)] or parts)


def weight_array(facts: Iterable[PartFacts]) -> np.ndarray | None:
    """Weights of all parts, in their order; None where a part has none."""
    weights = [each.weights for each in facts]
    known = [each for each in weights if each is not None]
    return np.concatenate(known) if len(known) == len(weights) else None


class _PartColumns(NamedTuple):
    features: nw.DataFrame[Any]
    y: Any
    weight: Any


def _of_table(number: int, data: Any, y: Any, weight: Any, roles: ColumnRoles) -> _PartColumns:
    table = nw.from_native(data, eager_only=True)
    known = list(table.columns)
    for name in (roles.target, roles.weight, *(roles.features or ())):
        if name is not None and name not in known:
            raise InputError(
                f"part {number} has no column {name!r}.",
                name_hint(name, [str(k) for k in known]),
                ErrorKind.MISSING_COLUMN,
                column=name,
            )
    if roles.target is not None:
        y = table[roles.target].to_numpy()
    if roles.weight is not None:
        weight = table[roles.weight].to_numpy()
    wanted = roles.features
    if wanted is None:
        wanted = tuple(k for k in known if k not in (roles.target, roles.weight))
    return _PartColumns(table.select(wanted), y, weight)


def _features(number: int, data: Any, names: tuple[str, ...] | None, dtype: str | None) -> Any:
    """Features as finite floats; arrays that can be used as they are are not copied."""
    if not (data.shape[0] if sparse.issparse(data) else len(data)):
        return _without_rows(data, dtype)
    try:
        source = as_source(data, names)
    except ValueError as error:
        raise InputError(
            f"part {number} (its rows are counted from 0): {error}", kind=ErrorKind.CELL
        ) from error
    X = source.take(slice(None))
    return X if dtype is None else X.astype(dtype, copy=False)


def _without_rows(data: Any, dtype: str | None) -> np.ndarray:
    """No rows of the same columns; narrow by default, so that parts with rows decide."""
    if is_table(data):
        types = nw.from_native(data, eager_only=True).schema.values()
        is_narrow = all(each in NARROW for each in types)
        return np.empty((0, len(types)), dtype or (np.float32 if is_narrow else np.float64))
    if sparse.issparse(data):
        return sparse.csr_matrix(data.shape, dtype=dtype or data.dtype)
    return np.empty((0, np.shape(data)[1]), dtype or np.float32)


def _digest(X: Any, weights: np.ndarray | None) -> bytes:
    """Checksum of each array, at a gigabyte a second: differs where the rows have changed."""
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    if weights is not None:
        arrays.append(weights)
    cells = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in arrays]
    sums = [zlib.crc32(each.data) for each in cells]
    return np.array(sums, dtype=np.uint32).tobytes()


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


class BlockSettings(NamedTuple):
    """Size of blocks and bytes that they may remember, in every place."""

    dtype: str
    block_rows: int
    budget: int  # bytes that blocks of one place may remember
    reserve: int  # bytes of the budget that large arrays may not take
    keeps_arrays: bool


class Piece(NamedTuple):
    """Chosen rows of one part, with their weights and the number of the first among all."""

    first: int
    n_rows: int
    chosen: np.ndarray | None  # a bit for each row of the part; None means all of them
    weight: np.ndarray | None

    @property
    def places(self) -> np.ndarray | None:
        """Indices of the rows in the part; None for all."""
        return None if self.chosen is None else np.flatnonzero(np.unpackbits(self.chosen))

    @property
    def stretch(self) -> tuple[int, int]:
        """First row among all, and the one after the last."""
        return self.first, self.first + self.n_rows


class View(SentOnce):
    """Chosen rows of a table in parts, as blocks: every place is sent the pieces that it holds."""

    def __init__(self, settings: BlockSettings, pieces: dict[int, Piece]) -> None:
        self.settings, self.pieces = settings, pieces

    @classmethod
    def of_rows(
        cls,
        settings: BlockSettings,
        offsets: np.ndarray,
        index: RowNumbers | None,
        weight: np.ndarray | None,
    ) -> "View":
        """Make the view of chosen rows.

        Parts begin at `offsets`, the last of which is the number of rows; `index` are increasing
        row numbers, None for all; `weight` has an entry for each chosen row.
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
            of_part = None if weight is None else weight[start:stop]
            pieces[k] = Piece(int(start), int(stop - start), chosen, of_part)
        return cls(settings, pieces)

    def part(self, parts: Iterable[int]) -> "View":
        """View with the pieces of some parts only."""
        return View(self.settings, {k: self.pieces[k] for k in parts if k in self.pieces})

    def blocks(self) -> list[tuple[int, int]]:
        """First row and the one after the last of each block, in the numbers of all."""
        size = self.settings.block_rows
        return [
            (start, min(start + size, piece.first + piece.n_rows))
            for piece in self.pieces.values()
            for start in range(piece.first, piece.first + piece.n_rows, size)
        ]
