"""Spark DataFrames as rows: their partitions stay on the executors, a pass is a job."""

import pickle
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import pyarrow as pa

from rareclass.errors import InputError
from rareclass.rows.decoding import checked_dtype
from rareclass.rows.labelled import LabelledRows
from rareclass.rows.partitions.engine import Engine
from rareclass.rows.partitions.part import Columns, Facts, Part, read_part
from rareclass.rows.partitions.place import Place, Reply, Request
from rareclass.rows.partitions.table import labelled
from rareclass.rows.spark_columns import flat_table, is_spark, partition_of_task, selected

# What Spark keeps of a partition: pieces of consecutive rows, decoded, each of about so many bytes.
_PIECE_BYTES = 1 << 18
_STORED = "part int, digest long, cells binary, about binary"
_STORED_SCHEMA = pa.schema(
    [("part", pa.int32()), ("digest", pa.int64()), ("cells", pa.binary()), ("about", pa.binary())]
)
_REPLY = "part int, reply binary"
_REPLY_SCHEMA = pa.schema([("part", pa.int32()), ("reply", pa.binary())])
# More bytes than these go to each executor once, not with every task.
_LARGE = 1 << 16


def from_spark(
    df: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    checkpoint: str | Path | None = None,
) -> LabelledRows:
    """Rows of a Spark DataFrame, for ``fit_rows``: they stay on the executors.

    The DataFrame is worked out once. Each partition is decoded there and kept by Spark as floats,
    in memory or on the executors' disks. A pass of a fit is one job of a task a partition, whose
    partial sums are collected and added by the driver.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    target : str or None
        Column of the labels: numbers, truth values or strings. None for rows to be scored.
    weight : str or None
        Column of weights at or above 0.
    columns : iterable of str or None
        The features, in this order; None means all other columns. Numbers, truth values, decimals;
        each entry of a vector of pyspark.ml or of an array is a feature ``name[k]``.
    dtype : "float32", "float64" or None
        What the features are kept in; None means float32 when all are float32 or narrower, else
        float64.
    checkpoint : path or None
        A file of the driver that keeps the answers of every pass. When a fit was cut off, the same
        fit on the same rows goes on from there.

    Returns
    -------
    LabelledRows
        Labels and weights are in this process' memory, 8 to 16 bytes a row. ``close()`` lets Spark
        forget what it keeps; ``source.engine.passes`` says what each pass cost.

    Raises
    ------
    InputError
        A ValueError: on columns that are not there or no numbers, on cells that are empty or
        infinite (naming partition, row and column), without rows; and when a partition that Spark
        lost and worked out again is not what it was, as rows after a shuffle or of a random
        function may be.

    Notes
    -----
    Nothing but the features is kept between passes: kernels are worked out again in each. A pass
    costs 0.1 s and more beside its work, so methods of few passes, above all `MIBC`, go best.

    Memory: each task holds a partition once or twice; make partitions that fit, of some 100 MB.
    The Python of the executors needs this package, of the same version.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> spark = SparkSession.builder.getOrCreate()  # doctest: +SKIP
    >>> payments = spark.read.parquet("payments")  # doctest: +SKIP
    >>> with from_spark(payments, target="fraud") as rows:  # doctest: +SKIP
    ...     model = RankRC().fit_rows(rows)
    """
    if not is_spark(df):
        raise TypeError(f"{type(df).__name__} is no Spark DataFrame.")
    beside = [name for name in (target, weight) if name is not None]
    features = [name for name in df.columns if name not in beside] if columns is None else columns
    kept = Columns(target, weight, None, None if dtype is None else checked_dtype(dtype).name)
    features = list(features)
    engine = SparkEngine(selected(df, features, beside), [*features, *beside], kept)
    return labelled(engine, engine.load(range(len(engine.place_of))), checkpoint)


class SparkEngine(Engine):
    """Partitions of a Spark DataFrame; see `from_spark`.

    Each partition with rows is a place that forgets everything after its reply: the driver keeps
    what is sent once, and gives it to each job.
    """

    def __init__(self, frame: Any, names: Sequence[str], columns: Columns) -> None:
        from pyspark.storagelevel import StorageLevel

        self._context = _context_of(frame)
        stored = frame.mapInArrow(partial(_read, names=names, columns=columns), _STORED)
        self._stored = stored.persist(StorageLevel.MEMORY_AND_DISK)
        self._carried: dict[str, list[Any]] = {}
        self._let_go = weakref.finalize(self, _let_go, self._stored, self._carried)
        self._let_go.atexit = False
        self._facts: list[Facts] = []
        self._digest_of: dict[int, int] = {}  # of each partition with rows
        try:
            self._look()
        except BaseException:
            self.close()
            raise
        self._blocks = self._stored.select("part", "digest", "cells").where("cells is not null")
        self._number = {partition: k for k, partition in enumerate(self._digest_of)}
        super().__init__([f"partition {number}" for number in self._digest_of])

    def load(self, parts: Sequence[int]) -> list[Facts]:
        """What is known of each: Spark brings them where they are needed."""
        return [self._facts[k] for k in parts]

    def exchange(self, requests: Mapping[str, Request]) -> list[Reply]:
        """One job: a task a partition."""
        self._carry(requests)
        request = next(iter(requests.values()))
        parts = {k for each in requests.values() for k in each.parts}
        partitions = [number for number, k in self._number.items() if k in parts]
        payload = self._lent(request.payload)
        asked = _Asked(
            request._replace(parts=(), payload=b"", supplies={}, dropped=()),
            payload,
            {name: self._carried[name] for name in {request.view, *request.needs} - {""}},
            {number: (self._number[number], self._digest_of[number]) for number in partitions},
            (self._facts[0].dtype, self._facts[0].n_features),
        )
        blocks = self._blocks
        if len(partitions) < len(self._number):
            blocks = blocks.where(blocks["part"].isin(partitions))
        found = blocks.mapInArrow(partial(_answer, asked=asked), _REPLY).collect()
        _give_back(payload)
        replies = {row["part"]: pickle.loads(row["reply"]) for row in found}
        for number in partitions:
            reply = replies.get(number)
            if isinstance(reply, Exception):
                raise reply
            if reply is None:
                raise _changed(number)
        return [replies[number] for number in partitions]

    def close(self) -> None:
        """Let Spark forget the rows."""
        self._let_go()

    def _look(self) -> None:
        """What is known of the partitions: the first job, which reads them."""
        found = self._stored.where("about is not null").select("part", "digest", "about").collect()
        for row in sorted(found, key=lambda row: row["part"]):
            about = pickle.loads(row["about"])
            if isinstance(about, Exception):
                raise about
            self._facts.append(about)
            self._digest_of[row["part"]] = row["digest"]
        if not self._facts:
            raise InputError("The DataFrame has columns but no rows.", "Give one with rows.")

    def _carry(self, requests: Mapping[str, Request]) -> None:
        """Keep what is sent once for the jobs to come, and let go of what is not needed."""
        new: dict[str, dict[int, bytes]] = {}
        same: dict[bytes, bytes] = {}  # what is the same for all goes once
        for request in requests.values():
            for name in request.dropped:
                for each in self._carried.pop(name, ()):
                    _give_back(each)
            for name, blob in request.supplies.items():
                for k in request.parts:
                    new.setdefault(name, {})[k] = same.setdefault(blob, blob)
        for name, of_parts in new.items():
            self._carried.setdefault(name, []).append(self._lent(of_parts))

    def _lent(self, value: Any) -> Any:
        """A value as it goes into a job: what is large goes once to each executor."""
        if self._context is None:
            return value
        blobs = {id(blob): len(blob) for blob in _blobs(value)}
        return self._context.broadcast(value) if sum(blobs.values()) > _LARGE else value


def _blobs(value: Any) -> Iterable[bytes]:
    return value.values() if isinstance(value, dict) else [value]


def _context_of(frame: Any) -> Any:
    """What sends values to executors; Spark Connect has nothing of the kind."""
    try:
        return frame.sparkSession.sparkContext
    except AttributeError:
        return None


def _give_back(lent: Any) -> None:
    if hasattr(lent, "destroy"):
        lent.destroy()


def _let_go(stored: Any, carried: Mapping[str, list[Any]]) -> None:
    """Forget rows, and what was sent; a session that has ended has done so already."""
    # Whatever the session says when it is gone, there is nothing left to do.
    with suppress(Exception):
        stored.unpersist()
        for some in carried.values():
            for each in some:
                _give_back(each)


def _changed(partition: int) -> InputError:
    return InputError(
        f"partition {partition} was lost, and is not what it was when Spark worked it out again: "
        "other rows, or in another order.",
        "Learn from what stays: df.checkpoint(), or write the DataFrame to Parquet and read that.",
    )


# What follows runs on executors.


class _Asked(NamedTuple):
    """What a job is for."""

    request: Request  # without what differs between partitions, and without the payload
    payload: Any  # bytes, or a broadcast of them
    carried: dict[str, list[Any]]  # what the request needs: bytes by part, or broadcasts of these
    known: dict[int, tuple[int, int]]  # part and digest of each partition
    kind: tuple[str, int]  # dtype and number of features

    def of(self, part: int) -> Request:
        """The request to a part."""
        supplies: dict[str, bytes] = {}
        for name, some in self.carried.items():
            for each in some:
                blob = _value(each).get(part)
                supplies |= {} if blob is None else {name: blob}
        return self.request._replace(parts=(part,), payload=_value(self.payload), supplies=supplies)


def _value(lent: Any) -> Any:
    return lent.value if hasattr(lent, "destroy") else lent


def _read(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], columns: Columns
) -> Iterator[pa.RecordBatch]:
    """A partition as pieces of floats, and what is known of it; nothing where it has no rows."""
    number = partition_of_task()
    try:
        table = flat_table(number, batches, names)
        if table is None:
            return
        _check_no_nulls(number, table, columns)
        part = read_part(number, table, None, None, columns)
    except InputError as error:
        yield _stored_row(number, 0, None, error)
        return
    X = np.ascontiguousarray(part.X)
    digest = zlib.crc32(X.data.cast("B"))
    yield _stored_row(number, digest, None, part.facts)
    size = max(1, _PIECE_BYTES // max(1, X.itemsize * X.shape[1]))
    for start in range(0, len(X), size):
        yield _stored_row(number, digest, X[start : start + size].tobytes(), None)


def _stored_row(number: int, digest: int, cells: bytes | None, about: Any) -> pa.RecordBatch:
    known = None if about is None else cloudpickle.dumps(about)
    row = [[number], [digest], [cells], [known]]
    return pa.RecordBatch.from_arrays(
        [pa.array(cell, kind) for cell, kind in zip(row, _STORED_SCHEMA.types, strict=True)],
        schema=_STORED_SCHEMA,
    )


def _check_no_nulls(number: int, table: pa.Table, columns: Columns) -> None:
    for name in (columns.target, columns.weight):
        if name is not None and table[name].null_count:
            row = int(np.flatnonzero(table[name].is_null())[0])
            raise InputError(
                f"partition {number}, row {row} (from 0), column {name!r}: the cell is empty.",
                f"Leave such rows out: df.dropna(subset=[{name!r}]).",
            )


def _answer(batches: Iterable[pa.RecordBatch], asked: _Asked) -> Iterator[pa.RecordBatch]:
    """The reply of each part among some pieces."""
    pieces: dict[int, list[Any]] = {}
    digests: dict[int, set[int]] = {}
    for batch in batches:
        for number, digest, cells in zip(*(batch[k] for k in range(3)), strict=True):
            pieces.setdefault(number.as_py(), []).append(cells.as_buffer())
            digests.setdefault(number.as_py(), set()).add(digest.as_py())
    for number, some in pieces.items():
        if number not in asked.known:
            continue
        k, digest = asked.known[number]
        answer: Any = _changed(number)
        if digests[number] == {digest}:
            answer = _place_of(k, some, *asked.kind).answer(asked.of(k))
        row = [pa.array([number], pa.int32()), pa.array([pickle.dumps(answer)], pa.binary())]
        yield pa.RecordBatch.from_arrays(row, schema=_REPLY_SCHEMA)


def _place_of(part: int, pieces: Sequence[Any], dtype: str, n_features: int) -> Place:
    """A place with one part that remembers nothing."""
    X = np.concatenate([np.frombuffer(each, dtype).reshape(-1, n_features) for each in pieces])
    place = Place(memo_bytes=0)
    facts = Facts(len(X), n_features, dtype, False, None, None, None, None, b"")
    place.hold(part, Part(X, facts))
    return place
