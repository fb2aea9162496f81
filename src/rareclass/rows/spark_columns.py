"""Columns of Spark DataFrames: which are numbers, and what they are as a table of one partition.

Looked at without PySpark where nothing of Spark is at hand.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rareclass.errors import InputError, name_hint


def is_spark(X: Any) -> bool:
    """Whether `X` is a Spark DataFrame; without a look at Spark itself."""
    return type(X).__module__.startswith("pyspark.sql.") and hasattr(X, "mapInArrow")


def selected(frame: Any, names: Sequence[str], others: Iterable[str] = ()) -> Any:
    """Some features and other columns of a DataFrame under names of their own, vectors as arrays.

    PySpark's mapInArrow takes no names with dots: `flat_table` gives columns theirs again.

    Raises `InputError` on columns that are not there, and on features that are no numbers.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    others = list(others)
    for name in (*names, *others):
        if name not in kinds:
            raise InputError(f"The DataFrame has no column {name!r}.", name_hint(name, list(kinds)))
    for name in names:
        _check_numbers(name, kinds[name])
    wanted = [column_of(frame, name) for name in (*names, *others)]
    return frame.select(*(column.alias(f"c{k}") for k, column in enumerate(wanted)))


def column_of(frame: Any, name: str) -> Any:
    """A column by its whole name, dots included; vectors become arrays."""
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
        )


def partition_of_task() -> int:
    """The number of the partition that this process of an executor is at."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return int(context.partitionId())


def flat_table(
    number: int, batches: Iterable[pa.RecordBatch], names: Sequence[str]
) -> pa.Table | None:
    """All rows of a partition, each entry of an array a column ``name[k]``; None without rows.

    Raises `InputError`, naming partition, row and column, where an array is empty of a value or
    as long as no other.
    """
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return None
    return flat(pa.Table.from_batches(found).rename_columns(list(names)), number)


def flat(table: pa.Table, number: int) -> pa.Table:
    """The table with each entry of an array as a column of its own."""
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
        )
    kind = pa.float32() if column.type.value_type == pa.float32() else pa.float64()
    entries = pc.list_flatten(column).cast(kind)
    values = entries.combine_chunks() if isinstance(entries, pa.ChunkedArray) else entries
    cells = values.to_numpy(zero_copy_only=False).reshape(-1, width)
    return {f"{name}[{k}]": cells[:, k] for k in range(width)}
