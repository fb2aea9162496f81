"""Spark DataFrames as rows: the partitions stay on the executors, a pass is a job."""

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

from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.later import pc
from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.partitioned import Engine, labelled
from rareclass.rows.places import (
    LoadedPart,
    PartFacts,
    PartHolder,
    Reply,
    Request,
    read_part,
)
from rareclass.rows.protocol import LabelledRows
from rareclass.rows.source import is_spark

# Spark keeps a partition as decoded pieces of consecutive rows, each of about so many bytes.
_PIECE_BYTES = 1 << 18
_STORED = "part int, digest long, cells binary, about binary"
_STORED_SCHEMA = pa.schema(
    [("part", pa.int32()), ("digest", pa.int64()), ("cells", pa.binary()), ("about", pa.binary())]
)
_REPLY = "part int, reply binary"
_REPLY_SCHEMA = pa.schema([("part", pa.int32()), ("reply", pa.binary())])
# Larger values go to each executor once, not with every task (bytes).
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

    The DataFrame is computed once. Each partition is decoded there and kept by Spark as floats,
    in memory or on the executors' disks. A pass of a fit is one job of a task a partition, whose
    partial sums are collected and added by the driver.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    target, weight, dtype
        As in `from_parquet`.
    columns : iterable of str or None
        The features, in this order; None means all other columns. Numbers, truth values, decimals;
        each entry of a vector of pyspark.ml or of an array is a feature ``name[k]``.
    checkpoint : path or None
        A file of the driver for the sums of every pass. When a fit was cut off, the same fit on the
        same rows continues from there.

    Returns
    -------
    LabelledRows
        Labels and weights are in this process' memory, 8 to 16 bytes a row. ``close()`` makes
        Spark forget the rows; ``source.engine.passes`` has the cost of each pass.

    Raises
    ------
    InputError
        A ValueError: on columns that are not there or no numbers, on cells that are empty or
        infinite (naming partition, row and column), without rows; and when a partition that Spark
        lost and computed again has changed, as rows after a shuffle or of a random function
        may.

    Notes
    -----
    Only the features are kept between passes: each pass computes kernels anew. A pass
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
    roles = ColumnRoles.of(target, weight, None, dtype)
    features = list(features)
    engine = SparkEngine(selected(df, features, beside), [*features, *beside], roles)
    return labelled(engine, engine.load(range(len(engine.place_of))), checkpoint)


class SparkEngine(Engine):
    """Partitions of a Spark DataFrame; see `from_spark`.

    Each partition with rows is a place that forgets everything after its reply: the driver keeps
    the values that are sent once, and adds them to each job.
    """

    def __init__(self, frame: Any, names: Sequence[str], roles: ColumnRoles) -> None:
        from pyspark.storagelevel import StorageLevel

        try:
            self._context = frame.sparkSession.sparkContext
        except AttributeError:  # Spark Connect has none to send values with
            self._context = None
        stored = frame.mapInArrow(partial(_read, names=names, roles=roles), _STORED)
        self._stored = stored.persist(StorageLevel.MEMORY_AND_DISK)
        self._carried: dict[str, list[Any]] = {}
        self._let_go = weakref.finalize(self, _let_go, self._stored, self._carried)
        self._let_go.atexit = False
        self._facts: list[PartFacts] = []
        self._digest_of: dict[int, int] = {}  # of each partition with rows
        try:
            self._collect_facts()
        except BaseException:
            self.close()
            raise
        self._blocks = self._stored.select("part", "digest", "cells").where("cells is not null")
        self._number = {partition: k for k, partition in enumerate(self._digest_of)}
        super().__init__([f"partition {number}" for number in self._digest_of])

    def load(self, parts: Sequence[int]) -> list[PartFacts]:
        """Return the facts of each: Spark brings the rows where they are needed."""
        return [self._facts[k] for k in parts]

    def exchange(self, requests: Mapping[str, Request]) -> list[Reply]:
        """Run one job: a task a partition."""
        self._carry(requests)
        request = next(iter(requests.values()))
        parts = {k for each in requests.values() for k in each.parts}
        partitions = [number for number, k in self._number.items() if k in parts]
        payload = self._lent(request.payload)
        job = _Job(
            request._replace(parts=(), payload=b"", supplies={}, dropped=()),
            payload,
            {name: self._carried[name] for name in {request.view, *request.needs} - {""}},
            {number: (self._number[number], self._digest_of[number]) for number in partitions},
            (self._facts[0].dtype, self._facts[0].n_features),
        )
        blocks = self._blocks
        if len(partitions) < len(self._number):
            blocks = blocks.where(blocks["part"].isin(partitions))
        found = blocks.mapInArrow(partial(_answer, job=job), _REPLY).collect()
        payload.destroy()
        replies = {row["part"]: pickle.loads(row["reply"]) for row in found}
        for number in partitions:
            reply = replies.get(number)
            if isinstance(reply, Exception):
                raise reply
            if reply is None:
                raise _changed(number)
        return [replies[number] for number in partitions]

    def close(self) -> None:
        """Make Spark forget the rows."""
        self._let_go()

    def _collect_facts(self) -> None:
        """Collect the facts of the partitions: the first job, which reads them."""
        found = self._stored.where("about is not null").select("part", "digest", "about").collect()
        for row in sorted(found, key=lambda row: row["part"]):
            about = pickle.loads(row["about"])
            if isinstance(about, Exception):
                raise about
            self._facts.append(about)
            self._digest_of[row["part"]] = row["digest"]
        if not self._facts:
            raise InputError(
                "The DataFrame has columns but no rows.",
                "Give one with rows.",
                ErrorKind.TOO_FEW_ROWS,
            )

    def _carry(self, requests: Mapping[str, Request]) -> None:
        """Keep values that are sent once for later jobs, and drop those no longer needed."""
        new: dict[str, dict[int, bytes]] = {}
        same: dict[bytes, bytes] = {}  # equal values go once
        for request in requests.values():
            for name in request.dropped:
                for each in self._carried.pop(name, ()):
                    each.destroy()
            for name, blob in request.supplies.items():
                for k in request.parts:
                    new.setdefault(name, {})[k] = same.setdefault(blob, blob)
        for name, of_parts in new.items():
            self._carried.setdefault(name, []).append(self._lent(of_parts))

    def _lent(self, value: Any) -> Any:
        """Prepare a value for a job: a large one goes once to each executor."""
        blobs = value.values() if isinstance(value, dict) else [value]
        n_bytes = sum({id(blob): len(blob) for blob in blobs}.values())
        if self._context is None or n_bytes <= _LARGE:
            return _InTask(value)
        return self._context.broadcast(value)


class _InTask(NamedTuple):
    """Value that goes along with each task, with the interface of a broadcast."""

    value: Any

    def destroy(self) -> None:
        """Do nothing: the value goes with its tasks."""


def _let_go(stored: Any, carried: Mapping[str, list[Any]]) -> None:
    """Forget rows and values sent; a session that has ended has done so already."""
    # A session that is gone may raise anything, and nothing is left to do.
    with suppress(Exception):
        stored.unpersist()
        for some in carried.values():
            for each in some:
                each.destroy()


def _changed(partition: int) -> InputError:
    return InputError(
        f"partition {partition} was lost, and Spark computed it again with other rows, or in "
        "another "
        "order.",
        "Store the rows: df.checkpoint(), or write the DataFrame to Parquet and read that.",
        ErrorKind.ROWS,
    )


# The functions below run on executors.


class _Job(NamedTuple):
    """Content of a job."""

    request: Request  # without the payload and the fields that differ between partitions
    payload: Any  # broadcast or `_InTask` of bytes
    carried: dict[str, list[Any]]  # values of the request: bytes by part
    known: dict[int, tuple[int, int]]  # part and digest of each partition
    kind: tuple[str, int]  # dtype and number of features

    def of(self, part: int) -> Request:
        """Request to a part."""
        supplies: dict[str, bytes] = {}
        for name, some in self.carried.items():
            for each in some:
                blob = each.value.get(part)
                supplies |= {} if blob is None else {name: blob}
        return self.request._replace(parts=(part,), payload=self.payload.value, supplies=supplies)


def _read(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], roles: ColumnRoles
) -> Iterator[pa.RecordBatch]:
    """Yield the facts of a partition and its pieces of floats; nothing where it has no rows."""
    number = partition_of_task()
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    try:
        table = flat(pa.Table.from_batches(found).rename_columns(list(names)), number)
        for name in (roles.target, roles.weight):
            if name is not None and table[name].null_count:
                row = int(np.flatnonzero(table[name].is_null())[0])
                raise InputError(
                    f"partition {number}, row {row} (from 0), column {name!r}: the cell is empty.",
                    f"Leave such rows out: df.dropna(subset=[{name!r}]).",
                    ErrorKind.CELL,
                    column=name,
                    row=row,
                )
        part = read_part(number, table, None, None, roles)
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


def _answer(batches: Iterable[pa.RecordBatch], job: _Job) -> Iterator[pa.RecordBatch]:
    """Yield the reply of each part among some pieces."""
    pieces: dict[int, list[Any]] = {}
    digests: dict[int, set[int]] = {}
    for batch in batches:
        for number, digest, cells in zip(*(batch[k] for k in range(3)), strict=True):
            pieces.setdefault(number.as_py(), []).append(cells.as_buffer())
            digests.setdefault(number.as_py(), set()).add(digest.as_py())
    for number, some in pieces.items():
        if number not in job.known:
            continue
        k, digest = job.known[number]
        answer: Any = _changed(number)
        if digests[number] == {digest}:
            dtype, n_features = job.kind
            rows = [np.frombuffer(each, dtype).reshape(-1, n_features) for each in some]
            X, place = np.concatenate(rows), PartHolder(memo_bytes=0)
            facts = PartFacts(len(X), n_features, dtype, False, None, None, None, None, b"")
            place.hold(k, LoadedPart(X, facts))
            answer = place.answer(job.of(k))
        row = [pa.array([number], pa.int32()), pa.array([pickle.dumps(answer)], pa.binary())]
        yield pa.RecordBatch.from_arrays(row, schema=_REPLY_SCHEMA)


# Columns of DataFrames.


def selected(frame: Any, names: Sequence[str], others: Iterable[str] = ()) -> Any:
    """Select features and other columns under numbered names, with vectors as arrays.

    PySpark's mapInArrow takes no names with dots: `_read` restores the names.

    Raises `InputError` on columns that are missing, and on features that are no numbers.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    others = list(others)
    for name in (*names, *others):
        if name not in kinds:
            raise InputError(
                f"The DataFrame has no column {name!r}.",
                name_hint(name, list(kinds)),
                ErrorKind.MISSING_COLUMN,
                column=name,
            )
    for name in names:
        _check_numbers(name, kinds[name])
    wanted = [column_of(frame, name) for name in (*names, *others)]
    return frame.select(*(column.alias(f"c{k}") for k, column in enumerate(wanted)))


def column_of(frame: Any, name: str) -> Any:
    """Column by its whole name, dots included; vectors become arrays."""
    column = frame["`" + name.replace("`", "``") + "`"]
    if not _is_vector(frame.schema[name].dataType):
        return column
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column).alias(name)


def _is_vector(kind: Any) -> bool:
    return type(kind).__name__ == "VectorUDT"


def _check_numbers(name: str, kind: Any) -> None:
    from pyspark.sql.types import BooleanType, NumericType

    cell = kind.elementType if kind.typeName() == "array" else kind
    if not (isinstance(cell, NumericType | BooleanType) or _is_vector(kind)):
        raise InputError(
            f"column {name!r} holds {kind.simpleString()}, not numbers.",
            "Encode it first (pyspark.ml.feature has StringIndexer and OneHotEncoder), or leave "
            "it out with columns=.",
            ErrorKind.CELL,
            column=name,
        )


def partition_of_task() -> int:
    """Number of the partition that this executor process works on."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return int(context.partitionId())


def flat(table: pa.Table, number: int) -> pa.Table:
    """Make each entry of an array a column ``name[k]`` of its own.

    Raises `InputError`, naming partition, row and column, where an array is null or has another
    length than the first.
    """
    if not any(pa.types.is_list(field.type) for field in table.schema):
        return table
    columns: dict[str, Any] = {}
    for name in table.column_names:
        if pa.types.is_list(table[name].type):
            columns |= _entries(name, table[name], number)
        else:
            columns[name] = table[name]
    return pa.table(columns)


def _entries(name: str, column: pa.ChunkedArray, number: int) -> dict[str, np.ndarray]:
    lengths = np.array(pc.fill_null(pc.list_value_length(column), -1))
    width = int(lengths[0])
    bad = np.flatnonzero((lengths < 0) | (lengths != width))
    if len(bad):
        row = int(bad[0])
        what = "is null" if lengths[row] < 0 else f"has {lengths[row]} entries, others {width}"
        raise InputError(
            f"partition {number}, row {row} (from 0), column {name!r}: the array {what}.",
            "Give every row an array of the same length.",
            ErrorKind.SHAPE,
            column=name,
            row=row,
        )
    kind = pa.float32() if column.type.value_type == pa.float32() else pa.float64()
    entries = pc.list_flatten(column).cast(kind)
    values = entries.combine_chunks() if isinstance(entries, pa.ChunkedArray) else entries
    cells = values.to_numpy(zero_copy_only=False).reshape(-1, width)
    return {f"{name}[{k}]": cells[:, k] for k in range(width)}
