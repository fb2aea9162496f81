"""Rows of an audit as a table to work through: where each is, why it is listed, what is near."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from rareclass.audit.auditing import Audit, SuspectRows

MISSED, WRONG = "rare, not recorded", "recorded as rare, is not"


class TableRows(NamedTuple):
    """The audited rows as their file has them."""

    frame: pl.DataFrame
    number: Sequence[int]  # of each row in the file, from 1
    names: Sequence[str] | None = None  # by a column of identifiers


def audit_frame(found: Audit, rows: TableRows) -> pl.DataFrame:
    """Return a row for each suspect: missed cases first, the most suspect of each kind first.

    Columns: ``suspect``, ``row`` (number in the file), ``name`` where rows have one,
    ``probability``, ``score``, ``reason_1``, ``value_1`` and so on, ``case_1``, ``distance_1`` and
    so on (row numbers, or names, of the nearest rare rows), and ``contradicts``: numbers of rows
    with the same cells and the other label.
    """
    parts = [
        _frame_of(kind, suspects, rows)
        for kind, suspects in ((MISSED, found.missed), (WRONG, found.wrong))
    ]
    return pl.concat(parts, how="diagonal")


def _frame_of(kind: str, suspects: SuspectRows, rows: TableRows) -> pl.DataFrame:
    named = rows.number if rows.names is None else rows.names
    columns: dict[str, Any] = {
        "suspect": pl.Series([kind] * len(suspects.row), dtype=pl.String),
        "row": pl.Series([rows.number[k] for k in suspects.row], dtype=pl.Int64),
    }
    if rows.names is not None:
        columns["name"] = pl.Series([rows.names[k] for k in suspects.row], dtype=pl.String)
    columns |= {"probability": suspects.probability, "score": suspects.score}
    for place in range(max(map(len, suspects.reasons), default=0)):
        names = [each[place] if place < len(each) else None for each in suspects.reasons]
        cells = [
            None if name is None else _text(rows.frame[name][int(row)])
            for row, name in zip(suspects.row, names, strict=True)
        ]
        columns[f"reason_{place + 1}"] = pl.Series(names, dtype=pl.String)
        columns[f"value_{place + 1}"] = pl.Series(cells, dtype=pl.String)
    dtype = pl.Int64 if rows.names is None else pl.String
    for place in range(suspects.case.shape[1]):
        cases = [named[k] for k in suspects.case[:, place]]
        columns[f"case_{place + 1}"] = pl.Series(cases, dtype=dtype)
        columns[f"distance_{place + 1}"] = suspects.distance[:, place]
    others = [" ".join(str(rows.number[k]) for k in each) for each in suspects.contradictions]
    columns["contradicts"] = pl.Series([text or None for text in others], dtype=pl.String)
    return pl.DataFrame(columns)


def _text(cell: Any) -> str | None:
    if cell is None or cell != cell:
        return None
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)
