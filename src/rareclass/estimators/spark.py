"""Scores of Spark DataFrames: a column, worked out by the executors when it is asked for."""

import uuid
from collections.abc import Callable, Iterator
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

    Returns
    -------
    pyspark.sql.DataFrame

    Raises
    ------
    InputError
        A ValueError: where a column is missing or there are too many, and where `name` is taken.
        Cells that cannot be scored are told, with their partition, by the job that meets them.

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
    work = _scoring(_sent(df, model), uuid.uuid4().hex, method)
    arrow_udf: Any = F.arrow_udf
    score = arrow_udf(work, _type_of(model, method))
    return df.withColumn(name, score(F.struct(*features)))


def _columns_needed(df: Any, model: Any) -> list[str]:
    """The columns that the features are in."""
    names = getattr(model, "feature_names_in_", None)
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


def _sent(df: Any, model: Any) -> Any:
    """The model as bytes, once for each executor; with Spark Connect as a part of the job."""
    blob = cloudpickle.dumps(model)
    try:
        return df.sparkSession.sparkContext.broadcast(blob)
    except AttributeError:
        return blob


def _type_of(model: Any, method: str) -> str:
    """Spark's name of the type of an answer."""
    if method in ("predict_proba", "transform"):
        return "array<double>"
    if method != "predict":
        return "double"
    return _SPARK_TYPES.get(np.asarray(model.classes_).dtype.kind, "string")


def _scoring(sent: Any, name: str, method: str) -> Callable:
    def score(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        model = _opened(sent, name)
        n_before = 0
        for batch in batches:
            yield _scored(model, method, batch, n_before)
            n_before += len(batch)

    return score


# What follows runs on executors.


def _opened(sent: Any, name: str) -> Any:
    if name not in _models:
        _models.clear()
        _models[name] = cloudpickle.loads(getattr(sent, "value", sent))
    return _models[name]


def _scored(model: Any, method: str, batch: pa.StructArray, n_before: int) -> pa.Array:
    """The answers for some rows of a partition, of which so many came before."""
    number = partition_of_task()
    kind = pa.list_(pa.float64()) if method in ("predict_proba", "transform") else None
    if not len(batch):
        return pa.array([], kind or pa.float64())
    table = pa.table(dict(zip(batch.type.names, batch.flatten(), strict=True)))
    try:
        answer = getattr(model, method)(_features_of(flat(table, number), model))
    except ValueError as error:
        raise InputError(
            f"partition {number} (rows of these {len(batch):,} are counted from 0, "
            f"{n_before:,} of the partition are before them): {error}",
            kind=error.kind if isinstance(error, InputError) else ErrorKind.CELL,
        ) from error
    return pa.array(list(answer) if kind else answer, kind)


def _features_of(table: pa.Table, model: Any) -> Any:
    """Features in the form in which the model was fitted on them: a table or an array."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return table.select(list(names))
    return np.column_stack([column.to_numpy().astype(float) for column in table.columns])
