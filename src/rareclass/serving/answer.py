"""Answers to requests: scores as JSON or as an Arrow stream."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rareclass.serving.request_rows import ARROW, JSON


@dataclass(frozen=True)
class Answered:
    """The body of an answer."""

    body: bytes
    media_type: str
    n_rows: int


def answered(
    model: str, columns: pl.DataFrame, reasons: Sequence[Any] | None, as_arrow: bool
) -> Answered:
    """Write a row for each row of a request, in its order, as one kind of body."""
    if as_arrow:
        return Answered(_arrow(columns, reasons), ARROW, columns.height)
    if reasons is None:
        rows = columns.write_json()
    else:
        told = columns.iter_rows(named=True)
        rows = json.dumps(
            [{**row, "reasons": each} for row, each in zip(told, reasons, strict=True)],
            allow_nan=False,
        )
    body = f'{{"model":{json.dumps(model)},"rows":{rows}}}'
    return Answered(body.encode(), JSON, columns.height)


def _arrow(columns: pl.DataFrame, reasons: Sequence[Any] | None) -> bytes:
    if reasons is not None:
        effect = pl.Struct({"column": pl.String, "value": pl.String, "effect": pl.Float64})
        columns = columns.with_columns(pl.Series("reasons", reasons, pl.List(effect)))
    sink = io.BytesIO()
    columns.write_ipc_stream(sink, compat_level=pl.CompatLevel.oldest())
    return sink.getvalue()
