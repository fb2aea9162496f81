"""RareClassifier: how the score changes as a column's cells become typical ones."""

from dataclasses import replace
from typing import Any

import numpy as np

from rareclass.encoding.table_reading import read_table
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import TypedColumn, TypedTable
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.ensemble.training_rows import in_memory
from rareclass.explain.explanation import Explanation

# Rows with a replaced column that are scored at a time.
_SCORED_ROWS = 50_000


def explain_columns(model: RareClassifier, X: Any) -> Explanation:
    """``f(x) - f(x with the column's cell typical)``, exactly, of all members together.

    Typical is the median of a number, the commonest word of a category (or code), and an empty cell
    for dates and texts. Time: a scoring of the rows for each column, a batch of columns at a time.
    """
    table = read_table(in_memory(X), model.columns_)
    score = model.score_typed(table)
    effects = np.empty((table.n_rows, len(table.columns)))
    if table.n_rows:
        at_once = max(1, _SCORED_ROWS // table.n_rows)
        for first in range(0, len(table.columns), at_once):
            chosen = range(first, min(first + at_once, len(table.columns)))
            changed = model.score_typed(_replaced(table, model.statistics_, chosen))
            effects[:, chosen] = score[:, None] - changed.reshape(len(chosen), -1).T
    return Explanation(score, effects, table.names)


def _replaced(table: TypedTable, statistics: TableStatistics, chosen: range) -> TypedTable:
    """The table once for each of some columns, which is typical there: n_rows rows each."""
    n_rows = table.n_rows
    stacked = table.take(np.tile(np.arange(n_rows), len(chosen)))
    columns = list(stacked.columns)
    for k, place in enumerate(chosen):
        rows = slice(k * n_rows, (k + 1) * n_rows)
        columns[place] = with_typical(columns[place], rows, typical_cell(statistics, place))
    return replace(stacked, columns=tuple(columns))


def typical_cell(statistics: TableStatistics, place: int) -> float | str | None:
    """What a cell of this column is usually: a number, a word, or None for an empty cell."""
    _, kind = statistics.columns_[place]
    sources = statistics.category_sources_
    if kind == "category" or (kind == "number" and _is_code(statistics, place)):
        category = sources.index(place)
        commonest = int(np.argmax(statistics.level_weights_[category]))
        known = statistics.known_[category]
        if commonest >= known.n_known:
            return None
        return known.name(commonest) if kind == "category" else float(known.values_[commonest])
    if kind == "number":
        number = statistics.number_sources_[: statistics.n_plain_].index(place)
        median = float(statistics.summaries.median[number])
        return median if np.isfinite(median) else None
    return None


def _is_code(statistics: TableStatistics, place: int) -> bool:
    """Whether a column of numbers says something by its single values alone."""
    number = statistics.number_sources_.index(place)
    return place in statistics.category_sources_ and not statistics.is_ordered_[number]


def with_typical(column: TypedColumn, rows: slice, cell: float | str | None) -> TypedColumn:
    """The column with some cells replaced."""
    values, levels = column.values.copy(), column.levels
    if levels is None:
        values[rows] = np.nan if cell is None else cell
        return replace(column, values=values)
    if cell is None:
        values[rows] = -1
        return replace(column, values=values)
    known = np.flatnonzero(levels == cell)
    if not len(known):
        levels = np.append(levels, np.array([cell], dtype=object))
    values[rows] = known[0] if len(known) else len(levels) - 1
    return replace(column, values=values, levels=levels)
