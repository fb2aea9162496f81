"""Scores of Spark DataFrames: a column, worked out by the executors when it is asked for."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import methodcaller
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa

from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.rows.spark import column_of, flat, is_spark, partition_of_task

_NAMES = {
    "score_samples": "score",
    "decision_function": "decision",
    "predict": "prediction",
    "predict_proba": "probability",
    "transform": "features",
}
_OF_SEVERAL = ("predict_proba", "transform")  # an array a row
_SPARK_TYPES = {"b": "boolean", "i": "long", "u": "long", "f": "double"}
# The last model of this process, by its name: tasks follow each other in it.
_models: dict[str, Any] = {}


def with_scores(
    df: Any, model: Any, *, method: str = "score_samples", name: str | None = None
) -> Any:
    """The DataFrame with a column of scores more: lazy, and worked out where the rows are.

    The model goes to each executor once, and is opened once by each of its Python processes.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Has the columns that the model was fitted on, by their names, and any others. Where it was
        fitted on an array, the features are all columns, in their order.
    model : fitted estimator
        Of this package, or any that takes pyarrow tables or arrays.
    method : str, default="score_samples"
        "score_samples", "decision_function", "predict", "predict_proba" or "transform"; the last
        two give an array a row.
    name : str or None
        Of the new column; None means "score", "decision", "prediction", "probability" or
        "features".

    Raises
    ------
    InputError
        Where a column is missing or there are too many, and where `name` is taken. Cells that
        cannot be scored are told, with their partition, by the job that meets them.

    Examples
    --------
    >>> scored = with_scores(payments, model)  # doctest: +SKIP
    >>> scored.orderBy("score", ascending=False).limit(50).collect()  # doctest: +SKIP
    """
    if not is_spark(df):
        raise TypeError(f"{type(df).__name__} is no Spark DataFrame.")
    if method not in _NAMES:
        raise ValueError(f"method must be one of {', '.join(_NAMES)}, not {method!r}.")
    name = _NAMES[method] if name is None else name
    if name in df.columns:
        raise InputError(
            f"There is a column {name!r} already.",
            "Name another: name='...'.",
            ErrorKind.COLUMN_NAMES,
            column=name,
        )
    from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

    features = [column_of(df, each) for each in _columns_needed(df, model)]
    sent: Any = cloudpickle.dumps(model)  # with Spark Connect a part of the job
    with suppress(AttributeError):
        sent = df.sparkSession.sparkContext.broadcast(sent)  # once for each executor
    kind = "array<double>" if method in _OF_SEVERAL else "double"
    if method == "predict":
        kind = _SPARK_TYPES.get(np.asarray(model.classes_).dtype.kind, "string")
    arrow_udf: Any = F.arrow_udf
    score = arrow_udf(_scoring(sent, uuid.uuid4().hex, method), kind)
    return df.withColumn(name, score(F.struct(*features)))


def _names_of(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def _columns_needed(df: Any, model: Any) -> list[str]:
    """The columns that the features are in."""
    names = _names_of(model)
    if names is None:
        return list(df.columns)
    needed = []
    for name in names:
        whole, entry, _ = name.rpartition("[")  # an entry of an array or vector
        found = name if name in df.columns or not entry else whole
        if found not in df.columns:
            raise InputError(
                f"The DataFrame has no column {found!r}, which the model was fitted on.",
                name_hint(found, df.columns),
                ErrorKind.MISSING_COLUMN,
                column=found,
            )
        needed.append(found)
    return list(dict.fromkeys(needed))


def _scoring(sent: Any, name: str, method: str) -> Callable:
    """Return what executors run for the rows of a partition."""

    def score(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        if name not in _models:
            _models.clear()
            _models[name] = cloudpickle.loads(sent if isinstance(sent, bytes) else sent.value)
        n_before = 0
        for batch in batches:
            yield _scored(_models[name], method, batch, n_before)
            n_before += len(batch)

    return score


def _scored(model: Any, method: str, batch: pa.StructArray, n_before: int) -> pa.Array:
    """The answers for some rows of a partition, of which so many came before."""
    number = partition_of_task()
    kind = pa.list_(pa.float64()) if method in _OF_SEVERAL else None
    if not len(batch):
        return pa.array([], kind or pa.float64())
    names = _names_of(model)
    try:
        table = pa.table(dict(zip(batch.type.names, batch.flatten(), strict=True)))
        table = flat(table, number)
        if names is not None:  # features in the form in which the model was fitted on them
            X: Any = table.select(names)
        else:
            X = np.column_stack([column.to_numpy().astype(float) for column in table.columns])
        answer = methodcaller(method, X)(model)
    except ValueError as error:
        raise InputError(
            f"partition {number} (rows of these {len(batch):,} are counted from 0, "
            f"{n_before:,} of the partition are before them): {error}",
            kind=error.kind if isinstance(error, InputError) else ErrorKind.CELL,
        ) from error
    return pa.array(list(answer) if kind else answer, kind)
