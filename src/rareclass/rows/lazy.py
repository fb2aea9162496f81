"""Tables that are worked out while they are read, as rows on disk: polars LazyFrames and others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from rareclass.errors import InputError
from rareclass.rows.labelled import LabelledRows
from rareclass.rows.sql import decoded
from rareclass.tables.databases.cells import plain_batch, plain_schema

# Rows that are asked for at a time.
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class _Lazy:
    """What messages call a table that is nowhere yet."""

    name: str

    def __str__(self) -> str:
        return self.name


def from_lazy(
    frame: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    scratch: str | Path | None = None,
) -> LabelledRows:
    """Rows of a polars LazyFrame or a DuckDB relation, for ``fit_rows``: of any number.

    It is worked out once, in parts that are decoded as they come into a nameless scratch file, as
    those of a file are (`from_parquet`): never collected whole.

    Parameters
    ----------
    frame : polars.LazyFrame, duckdb.DuckDBPyRelation or pyarrow.RecordBatchReader
        Also a narwhals LazyFrame of one of the first two. A reader is read to its end.
    target : str or None
        Column of the labels: numbers, truth values or strings. None for rows to be scored.
    weight : str or None
        Column of weights at or above 0.
    columns : iterable of str or None
        The features, in this order; None means all other columns. Of a LazyFrame only those needed
        are worked out.
    dtype : "float32", "float64" or None
        As in `from_parquet`.
    scratch : path or None
        Folder for the scratch file; None means $TMPDIR, else /var/tmp, else the system's choice.

    Returns
    -------
    LabelledRows

    Raises
    ------
    InputError
        A ValueError: for what is no such table; on columns that are not there or not numbers, cells
        that are empty or infinite (naming column and row), no rows, and a full disk. What polars or
        DuckDB raise while they work it out, such as for a file that is not there, is raised as it
        is.

    Notes
    -----
    Cost: one run of what the frame says; rows x features x 4 or 8 bytes of disk until the result
    is closed or let go of; in memory a few parts of 65,536 rows, what the frame's own steps hold (a
    sort holds all rows) and 1 to 8 bytes a row.

    Examples
    --------
    >>> import polars as pl
    >>> payments = pl.LazyFrame({"amount": [0.5, 9.0, 1.5], "class": ["ok", "fraud", "ok"]})
    >>> rows = from_lazy(payments.with_columns(log=pl.col("amount").log()), target="class")
    >>> rows.shape, rows.feature_names
    ((3, 2), ('amount', 'log'))
    """
    native = nw.to_native(frame, pass_through=True)
    package = type(native).__module__.partition(".")[0]
    kind = type(native).__name__
    chosen = None if columns is None else list(columns)
    needed = None
    if chosen is not None:
        needed = list(dict.fromkeys([*chosen, *(name for name in (target, weight) if name)]))
    if package == "polars" and kind == "LazyFrame":
        title = _Lazy("the LazyFrame")
        schema, batches = _of_polars(native, needed)
    elif package in ("duckdb", "_duckdb") and hasattr(native, "to_arrow_reader"):
        title = _Lazy("the relation")
        schema, batches = _of_reader(native.to_arrow_reader(_BATCH_ROWS), title)
    elif isinstance(native, pa.RecordBatchReader):
        title = _Lazy("the reader")
        schema, batches = _of_reader(native, title)
    else:
        raise InputError(
            f"A {kind} is no table that is read in parts.",
            "Give a polars LazyFrame, a DuckDB relation or a pyarrow RecordBatchReader; what is in "
            "memory goes to fit(X, y) or rareclass.rows.from_arrays.",
        )
    return decoded(title, schema, batches, target, weight, chosen, dtype, scratch)


def _of_polars(frame: Any, needed: list[str] | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import polars as pl

    if not hasattr(frame, "collect_batches"):
        raise InputError(
            f"polars {pl.__version__} cannot give a LazyFrame in parts.", "pip install -U polars"
        )
    known = frame.collect_schema()
    schema = pl.DataFrame(schema=known).to_arrow().schema
    if needed is not None and set(needed) <= set(known):
        frame = frame.select(needed)
        schema = pa.schema([schema.field(name) for name in needed])

    def batches() -> Iterator[pa.RecordBatch]:
        parts = frame.collect_batches(chunk_size=_BATCH_ROWS, lazy=True, engine="streaming")
        for part in parts:
            yield from part.to_arrow().cast(schema).to_batches()

    plain = plain_schema(schema, "the LazyFrame")
    return plain, (plain_batch(batch, plain) for batch in batches())


def _of_reader(
    reader: pa.RecordBatchReader, title: _Lazy
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    schema = plain_schema(reader.schema, str(title))

    def batches() -> Iterator[pa.RecordBatch]:
        with reader:
            for batch in reader:
                yield plain_batch(batch, schema)

    return schema, batches()
