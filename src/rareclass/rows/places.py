"""Parts of a table, the places that hold them, and requests to places as bytes."""

import hashlib
import io
import itertools
import pickle
import time
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.labels.two_classes import RowNumbers
from rareclass.later import nw, sparse
from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.memory import ArrayRows, add_to
from rareclass.rows.protocol import Budget, RowValues, SentOnce, Token, runs
from rareclass.rows.scratch_rows import ScratchRows
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
        table = nw.from_native(data, eager_only=True)
        for name in (roles.target, roles.weight, *(roles.features or ())):
            if name is not None and name not in table.columns:
                raise InputError(
                    f"part {number} has no column {name!r}.",
                    name_hint(name, [str(k) for k in table.columns]),
                    ErrorKind.MISSING_COLUMN,
                    column=name,
                )
        y = y if roles.target is None else table[roles.target].to_numpy()
        weight = weight if roles.weight is None else table[roles.weight].to_numpy()
        beside = (roles.target, roles.weight)
        names = roles.features
        if names is None:
            names = tuple(k for k in table.columns if k not in beside)
        data = table.select(names).to_native()
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


def _features(number: int, data: Any, names: tuple[str, ...] | None, dtype: str | None) -> Any:
    """Return features as finite floats; arrays that can be used as they are are not copied."""
    n_rows = data.shape[0] if sparse.issparse(data) else len(data)
    if n_rows:
        try:
            X = as_source(data, names).take(slice(None))
        except ValueError as error:
            raise InputError(
                f"part {number} (its rows are counted from 0): {error}", kind=ErrorKind.CELL
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
    stride: int = 1  # of the runs that are taken: see `Rows.every`
    first: int = 0


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

    def every(self, stride: int, first: int) -> "View":
        """View of every `stride`-th run of the chosen rows, without pieces that have none."""
        settings = self.settings._replace(stride=stride, first=first, keeps_arrays=False)
        pieces = {k: each for k, each in self.pieces.items() if runs(*each.stretch, stride, first)}
        return View(settings, pieces)

    def part(self, parts: Iterable[int]) -> "View":
        """View with the pieces of some parts only."""
        return View(self.settings, {k: self.pieces[k] for k in parts if k in self.pieces})


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
        n_bytes = 0
        for array in (*self.total, *self.by_part.values()):
            parts = (
                (array.data, array.indices, array.indptr) if sparse.issparse(array) else (array,)
            )
            n_bytes += sum(part.nbytes for part in parts)
        return n_bytes


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
        fn, broadcast = _Unpacker(io.BytesIO(request.payload), self._known).load()
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
        """Return the rows of a view in some parts; their blocks are made once."""
        made = self._rows.setdefault(name, {})
        view: View = self._known[name]
        settings = view.settings
        n_bytes = settings.budget
        if self._memo_bytes is not None:
            n_bytes = min(n_bytes, self._memo_bytes)
        budget = Budget(n_bytes, min(settings.reserve, n_bytes // 4))
        if made:  # one for all parts of the view
            budget = next(iter(made.values())).budget
        for k in parts:
            if k not in made:
                piece = view.pieces[k]
                rows = ArrayRows(
                    # A part may be narrower than the table.
                    self._sources[k].astype(settings.dtype),
                    piece.places,
                    piece.weight,
                    block_rows=settings.block_rows,
                    budget=budget,
                    n_jobs=self.n_threads,
                    keeps_arrays=settings.keeps_arrays,
                )
                made[k] = rows.starting_at(piece.first).every(settings.stride, settings.first)
        kept = self._joined.get(name)
        if kept is None or kept[0] != parts:
            kept = self._joined[name] = parts, ArrayRows.joined([made[k] for k in parts])
        return kept[1]


def pickled_for(value: Any, parts: Sequence[int], view: View | None) -> bytes:
    """Pickle a value for a place: the whole, or the values of the rows of its parts."""
    if isinstance(value, View):
        value = value.part(parts)
    elif isinstance(value, RowValues) and view is not None:
        value = value.part(view.pieces[k].stretch for k in sorted(parts) if k in view.pieces)
    return cloudpickle.dumps(value)


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
