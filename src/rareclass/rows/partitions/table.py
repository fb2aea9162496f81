"""A table in parts as rows: sums, maps and a few rows by their number."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.labels.two_classes import RowNumbers
from rareclass.rows.equal_rows import stacked
from rareclass.rows.labelled import LabelledRows
from rareclass.rows.memory import ArrayRows, Stretch, count_threads
from rareclass.rows.partitions.engine import Engine, Journal
from rareclass.rows.partitions.parts import (
    BlockSettings,
    PartFacts,
    View,
    label_array,
    weight_array,
)
from rareclass.rows.protocol import Budget
from rareclass.rows.source import RowSource


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

    Rows of `every`, which take many passes, are brought to this process once.

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
        self._brought: dict[tuple[int, int, bool], ArrayRows] = {}

    @property
    def numbers(self) -> slice:
        """All rows of the whole."""
        return slice(None)

    @property
    def weight(self) -> np.ndarray:
        """Weight of each row, shape (n_rows,)."""
        return np.ones(self.n_rows) if self._weight is None else self._weight

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
        return self._source.take(index if self._index is None else self._index[index])

    def every(self, stride: int, first: int = 0, keeps_arrays: bool = True) -> ArrayRows:
        """Every `stride`-th block of these rows, brought here with one request."""
        wanted = stride, first, keeps_arrays
        part = self._brought.get(wanted)
        if part is None:
            blocks = self._view.blocks()[first::stride] or [(0, 0)]
            part = self._brought[wanted] = self._bring(blocks, keeps_arrays)
        return part

    def _bring(self, blocks: Sequence[tuple[int, int]], keeps_arrays: bool) -> ArrayRows:
        X = self.take(np.concatenate([np.arange(start, stop) for start, stop in blocks]))
        stretches, n_before = [], 0
        for start, stop in blocks:
            rows = X[n_before : n_before + stop - start]
            n_before += stop - start
            weight = None if self._weight is None else self._weight[start:stop]
            stretches.append(Stretch(RowSource.of_array(rows), None, weight, start))
        return ArrayRows.of_stretches(
            stretches,
            block_rows=self._view.settings.block_rows,
            budget=self.budget,
            n_jobs=self.n_threads,
            keeps_arrays=keeps_arrays,
        )

    def _ask(self, kind: str, fn: Callable, broadcast: tuple) -> Any:
        reply = self._source.engine.ask(kind, self._view, list(self._view.pieces), fn, broadcast)
        if reply.n_blocks:
            self._remembered = {
                name: count / reply.n_blocks for name, count in reply.remembered.items()
            }
        return reply

    def __reduce__(self) -> Any:
        raise TypeError("rows in parts stay where they are and cannot be pickled.")


def labelled(engine: Engine, facts: Sequence[PartFacts], checkpoint: Any = None) -> LabelledRows:
    """Make labelled rows of parts that are in their places."""
    if not sum(each.n_rows for each in facts):
        raise InputError(
            "The parts have columns but no rows.", "Give some with rows.", ErrorKind.TOO_FEW_ROWS
        )
    source = PartitionedSource(engine, facts, checkpoint)
    return LabelledRows(source, label_array(facts), weight_array(facts), facts[0].names)


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
