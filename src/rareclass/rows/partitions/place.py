"""A place that holds parts of a table, and answers requests about them.

1. a part arrives, is read as rows of floats, and stays: in memory, past a limit in a scratch file
2. a request names parts, a view of them and a function with what it is broadcast
3. what the place lacks, a part or something that is sent once, is told in the reply; everything
   else is worked out

A place may be lost with all that it holds: whoever asks sends it again.
"""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from scipy import sparse

from rareclass.rows.memory import ArrayRows, add_to
from rareclass.rows.partitions.part import Part
from rareclass.rows.partitions.view import Piece, View
from rareclass.rows.partitions.wire import unpack
from rareclass.rows.protocol import Budget, RowValues, SentOnce
from rareclass.rows.scratch import ScratchRows
from rareclass.rows.source import RowSource


class Request(NamedTuple):
    """What a place is asked."""

    kind: str  # "sum", "map" or "take"
    parts: tuple[int, ...]
    view: str  # the name of a `View`; "" where rows are taken by their place in a part
    payload: bytes
    needs: tuple[str, ...]  # names of what the payload leaves out
    supplies: dict[str, bytes]  # what the place is thought to lack, by name
    dropped: tuple[str, ...]  # names of what is not needed any more


class Reply(NamedTuple):
    """What a place answers, or several together."""

    total: list[np.ndarray]  # sums over the parts that were asked; empty without rows
    by_part: dict[int, Any]  # what a map or a take gave
    left: tuple[int, ...]  # parts that are not in it
    absent: tuple[int, ...]  # those of them that are not there
    remembered: Counter[str]  # blocks that remember something, by its name
    n_blocks: int
    seconds: float  # of work, in the place that took longest

    @classmethod
    def joined(cls, replies: Sequence["Reply"]) -> "Reply":
        """Several together, in their order."""
        total: list[np.ndarray] = []
        for reply in replies:
            if reply.total:
                add_to(total, reply.total)
        return cls(
            total,
            {k: result for reply in replies for k, result in reply.by_part.items()},
            tuple(k for reply in replies for k in reply.left),
            tuple(k for reply in replies for k in reply.absent),
            sum((reply.remembered for reply in replies), Counter()),
            sum(reply.n_blocks for reply in replies),
            max(reply.seconds for reply in replies),
        )

    @property
    def n_bytes(self) -> int:
        """Of the arrays in it."""
        arrays = [*self.total, *self.by_part.values()]
        return sum(_n_bytes(array) for array in arrays)


class Place:
    """What one process holds of a table.

    `feature_bytes` of features stay in memory, the others go to a scratch file; blocks may
    remember `memo_bytes` at most. Threads are `n_threads`.
    """

    def __init__(
        self,
        feature_bytes: int | None = None,
        memo_bytes: int | None = None,
        n_threads: int = 1,
        scratch: str | None = None,
    ) -> None:
        self.n_threads = n_threads
        self._room = Budget(2**62 if feature_bytes is None else feature_bytes)
        self._memo_bytes, self._scratch = memo_bytes, scratch
        self._sources: dict[int, RowSource] = {}
        self._known: dict[str, Any] = {}
        self._rows: dict[str, dict[int, ArrayRows]] = {}
        self._joined: dict[str, tuple[tuple[int, ...], ArrayRows]] = {}

    def hold(self, number: int, part: Part) -> None:
        """Keep the features of a part."""
        X = part.X
        if not sparse.issparse(X) and not self._room.take(X.nbytes):
            on_disk = ScratchRows(X.shape[1], X.dtype, self._scratch, len(X))
            on_disk.append(X)
            self._sources[number] = on_disk.source()
            return
        self._sources[number] = RowSource(
            X.shape, X.dtype, lambda rows: X[rows], sparse.issparse(X)
        )

    def close(self) -> None:
        """Let go of everything."""
        for source in self._sources.values():
            source.close()
        self.__init__()  # type: ignore[misc]

    def answer(self, request: Request) -> Reply:
        """The reply to a request, for as many of its parts as can be."""
        start = time.perf_counter()
        self._learn(request)
        present = tuple(k for k in request.parts if k in self._sources)
        absent = tuple(k for k in request.parts if k not in self._sources)
        if self._lacks(request, present):
            return Reply([], {}, request.parts, absent, Counter(), 0, 0.0)
        fn, broadcast = unpack(request.payload, self._known)
        total: list[np.ndarray] = []
        by_part: dict[int, Any] = {}
        remembered: Counter[str] = Counter()
        n_blocks = 0
        if request.kind == "take":
            (places,) = broadcast
            by_part = {k: self._sources[k].take(places[k]) for k in present}
        elif present:
            rows = self._of_view(request.view, present)
            if request.kind == "sum":
                total = list(rows.sum(fn, *broadcast))
            else:
                each = self._rows[request.view]
                by_part = {k: each[k].map(fn, *broadcast) for k in present}
            remembered, n_blocks = Counter(rows.remembered()), rows.n_blocks
        seconds = time.perf_counter() - start
        return Reply(total, by_part, absent, absent, remembered, n_blocks, seconds)

    def _learn(self, request: Request) -> None:
        for name in request.dropped:
            for kept in (self._known, self._rows, self._joined):
                kept.pop(name, None)
        for name, blob in request.supplies.items():
            # Sent again after another place was lost: blocks know what is here as it is.
            if not isinstance(self._known.get(name), SentOnce) or isinstance(
                self._known[name], View | RowValues
            ):
                self._known[name] = cloudpickle.loads(blob)

    def _lacks(self, request: Request, present: Sequence[int]) -> bool:
        if any(name not in self._known for name in request.needs):
            return True
        if not request.view:
            return False
        view = self._known.get(request.view)
        return view is None or any(k not in view.pieces for k in present)

    def _of_view(self, name: str, parts: tuple[int, ...]) -> ArrayRows:
        """The rows of a view in some parts; blocks are made once."""
        made = self._rows.setdefault(name, {})
        view: View = self._known[name]
        new = [k for k in parts if k not in made]
        if new:
            budget = next(iter(made.values())).budget if made else self._budget(view)
            made |= {k: self._blocks(k, view, view.pieces[k], budget) for k in new}
        kept = self._joined.get(name)
        if kept is None or kept[0] != parts:
            kept = self._joined[name] = parts, ArrayRows.joined([made[k] for k in parts])
        return kept[1]

    def _budget(self, view: View) -> Budget:
        budget, reserve = view.settings.budget, view.settings.reserve
        n_bytes = budget if self._memo_bytes is None else min(budget, self._memo_bytes)
        return Budget(n_bytes, min(reserve, n_bytes // 4))

    def _blocks(self, number: int, view: View, piece: Piece, budget: Budget) -> ArrayRows:
        settings = view.settings
        rows = ArrayRows(
            _of_dtype(self._sources[number], settings.dtype),
            piece.places,
            piece.weight,
            block_rows=settings.block_rows,
            budget=budget,
            n_jobs=self.n_threads,
            keeps_arrays=settings.keeps_arrays,
        )
        return rows.starting_at(piece.first)


def sent(value: Any, parts: Sequence[int], view: View | None) -> bytes:
    """What is sent once, for a place with some parts: the whole, or the values of its own rows."""
    if isinstance(value, View):
        value = value.part(parts)
    elif isinstance(value, RowValues) and view is not None:
        value = value.part(view.pieces[k].stretch for k in sorted(parts) if k in view.pieces)
    return cloudpickle.dumps(value)


def _of_dtype(source: RowSource, dtype: str) -> RowSource:
    """Rows as the whole table has them, where a part is narrower."""
    if source.dtype == np.dtype(dtype):
        return source
    shape = source.n_rows, source.n_features
    return RowSource(
        shape, dtype, lambda rows: source.take(rows).astype(dtype), source.is_sparse, source.close
    )


def _n_bytes(array: Any) -> int:
    if sparse.issparse(array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(array.nbytes)
