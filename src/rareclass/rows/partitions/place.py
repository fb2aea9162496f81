"""Places that hold parts of a table and answer requests about them, and requests as bytes.

1. A part arrives, is read as rows of floats, and stays: in memory, past a limit in a scratch file.
2. A request names parts, a view of them, and a function with its broadcast values.
3. The reply lists the parts that the place lacks; all others are computed.

A place may be lost with all that it holds: the engine sends it again.
"""

import hashlib
import io
import itertools
import pickle
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from scipy import sparse

from rareclass.rows.memory import ArrayRows, add_to
from rareclass.rows.partitions.parts import LoadedPart, Piece, View
from rareclass.rows.protocol import Budget, RowValues, SentOnce, Token
from rareclass.rows.scratch import ScratchRows
from rareclass.rows.source import RowSource


class Request(NamedTuple):
    """Question to a place."""

    kind: str  # "sum", "map" or "take"
    parts: tuple[int, ...]
    view: str  # name of a `View`; "" where rows are taken by their index in a part
    payload: bytes
    needs: tuple[str, ...]  # names of values that the payload leaves out
    supplies: dict[str, bytes]  # values that the place presumably lacks, by name
    dropped: tuple[str, ...]  # names of values no longer needed


class Reply(NamedTuple):
    """Answer of a place, or of several together."""

    total: list[np.ndarray]  # sums over the parts; empty without rows
    by_part: dict[int, Any]  # results of a map or a take
    left: tuple[int, ...]  # parts that the reply does not cover
    absent: tuple[int, ...]  # parts among them that the place does not hold
    remembered: Counter[str]  # blocks that remember a value, by its name
    n_blocks: int
    seconds: float  # of work, in the place that took longest

    @classmethod
    def joined(cls, replies: Sequence["Reply"]) -> "Reply":
        """Join replies, in their order."""
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
        """Bytes of all arrays."""
        arrays = [*self.total, *self.by_part.values()]
        return sum(_n_bytes(array) for array in arrays)


class PartHolder:
    """Parts of a table held by one process.

    Up to `feature_bytes` of features stay in memory, the others go to a scratch file; blocks may
    remember `memo_bytes`.
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

    def hold(self, number: int, part: LoadedPart) -> None:
        """Keep the features of a part."""
        X = part.X
        if not sparse.issparse(X) and not self._room.take(X.nbytes):
            on_disk = ScratchRows(X.shape[1], X.dtype, self._scratch, len(X))
            on_disk.append(X)
            self._sources[number] = on_disk.source()
            return
        self._sources[number] = RowSource.of_array(X)

    def close(self) -> None:
        """Release everything."""
        for source in self._sources.values():
            source.close()
        self.__init__()  # type: ignore[misc]

    def answer(self, request: Request) -> Reply:
        """Answer a request for the parts that are here."""
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
            # A value sent again after another place was lost: blocks know the one that is here.
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
        """Rows of a view in some parts; their blocks are made once."""
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
            self._sources[number].astype(settings.dtype),  # a part may be narrower than the table
            piece.places,
            piece.weight,
            block_rows=settings.block_rows,
            budget=budget,
            n_jobs=self.n_threads,
            keeps_arrays=settings.keeps_arrays,
        )
        return rows.starting_at(piece.first)


def pickled_for(value: Any, parts: Sequence[int], view: View | None) -> bytes:
    """Pickle a value for a place: the whole, or the values of the rows of its parts."""
    if isinstance(value, View):
        value = value.part(parts)
    elif isinstance(value, RowValues) and view is not None:
        value = value.part(view.pieces[k].stretch for k in sorted(parts) if k in view.pieces)
    return cloudpickle.dumps(value)


def _n_bytes(array: Any) -> int:
    if sparse.issparse(array):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(array.nbytes)


class Names:
    """Names of values that are sent once, as long as the value is alive."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._name_of: weakref.WeakKeyDictionary[SentOnce, str] = weakref.WeakKeyDictionary()
        self.dropped: list[str] = []

    def of(self, value: SentOnce) -> str:
        """Name of a value, always the same."""
        name = self._name_of.get(value)
        if name is None:
            name = self._name_of[value] = f"{type(value).__name__}-{next(self._numbers)}"
            weakref.finalize(value, self.dropped.append, name)
        return name

    def take_dropped(self) -> list[str]:
        """Return the names of values that were garbage-collected, each once."""
        dropped = self.dropped[:]
        del self.dropped[: len(dropped)]
        return dropped


class _Packer(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, names: Names) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._names = names
        self.used: dict[str, SentOnce] = {}

    def persistent_id(self, obj: Any) -> str | None:
        if not isinstance(obj, SentOnce):
            return None
        name = self._names.of(obj)
        self.used[name] = obj
        return name


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, pid: Any) -> Any:
        return self._known[pid]


def pack(names: Names, fn: Callable, broadcast: tuple) -> tuple[bytes, dict[str, SentOnce]]:
    """Pickle a call; values sent once are left out and returned by name.

    Functions and classes that another process cannot import go by value.
    """
    file = io.BytesIO()
    packer = _Packer(file, names)
    packer.dump((fn, broadcast))
    return file.getvalue(), packer.used


def unpack(payload: bytes, known: Mapping[str, Any]) -> tuple[Callable, tuple]:
    """Restore a call."""
    fn, broadcast = _Unpacker(io.BytesIO(payload), known).load()
    return fn, broadcast


class _Digester(_Packer):
    """Pickler whose bytes are the same in every run: names and tokens count from this call on."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, Names())
        self._tokens: dict[Token, int] = {}

    def persistent_id(self, obj: Any) -> None:
        return None  # values sent once are part of the question

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Token):
            return int, (self._tokens.setdefault(obj, len(self._tokens)),)
        return super().reducer_override(obj)


def digest(fn: Callable, broadcast: tuple) -> bytes:
    """Hash of a call: the same for the same numbers, in this process and in others."""
    file = io.BytesIO()
    _Digester(file).dump((fn, broadcast))
    return hashlib.blake2b(file.getvalue(), digest_size=16).digest()
