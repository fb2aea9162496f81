"""Rows of a table as RareClassifier sees them: contributions of columns, distances to cases."""

from dataclasses import replace
from typing import Any

import numpy as np

from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import TypedColumn, TypedTable, read_table
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.ensemble.training_rows import in_memory
from rareclass.explain.explanation import Explanation, Floats

# Rows with a replaced column that are scored at a time.
_SCORED_ROWS = 50_000

Parts = dict[str, np.ndarray]


def explain_columns(model: RareClassifier, X: Any) -> Explanation:
    """Return ``f(x) - f(x with the column's cell typical)``, exactly, of all members together.

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
    """Return the table once for each of some columns, with that column typical."""
    n_rows = table.n_rows
    stacked = table.take(np.tile(np.arange(n_rows), len(chosen)))
    columns = list(stacked.columns)
    for k, place in enumerate(chosen):
        rows = slice(k * n_rows, (k + 1) * n_rows)
        columns[place] = with_typical(columns[place], rows, typical_cell(statistics, place))
    return replace(stacked, columns=tuple(columns))


def typical_cell(statistics: TableStatistics, place: int) -> float | str | None:
    """Return the usual cell of a column: a number, a word, or None for an empty cell."""
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
    """Return whether a column of numbers says something by its single values alone."""
    number = statistics.number_sources_.index(place)
    return place in statistics.category_sources_ and not statistics.is_ordered_[number]


def with_typical(column: TypedColumn, rows: slice, cell: float | str | None) -> TypedColumn:
    """Return the column with some cells replaced."""
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


def parts_of(model: RareClassifier, X: Any) -> Parts:
    """Return the arrays of n_rows rows that rows are compared by.

    ``ranks``: of numbers among those of training, from 0 to 1, NaN where missing; ``cycles``: sines
    and cosines of dates; ``levels``: of words and codes; ``texts``: their components.
    """
    table = model.statistics_.encode(model._typed(X))
    return {
        "ranks": _ranks(model.statistics_, table.numbers),
        "cycles": table.cycles,
        "levels": np.stack([np.empty(table.n_rows, np.int32), *table.levels], axis=1)[:, 1:],
        "texts": table.texts,
    }


def table_distances(model: RareClassifier, rows: Parts, cases: Parts) -> Floats:
    r"""Return distances between rows and cases, from 0 to 1: shape (n_rows, n_cases).

    .. math:: d(x, z) = \sum_c \frac{1}{2} \Bigl( \frac{1}{p} + \frac{l_c}{\sum l} \Bigr) d_c(x, z)

    over p columns: half of the weight is shared alike, half by :math:`l_c`, what the ranking of
    held-out rows loses without the column (`RareClassifier.feature_importances_`). Of a column that
    is several features :math:`d_c` is their mean: the difference of two numbers' ranks, 0 or 1 as
    words or codes are equal or not, half the difference of sines and cosines, and half of one less
    the cosine of two texts. One cell missing is 1, both is 0 (Gower 1971, with weights).

    Time: O(n_rows n_cases n_features).
    """
    known = model.statistics_
    total = np.zeros((len(rows["ranks"]), len(cases["ranks"])))
    weight = _column_weights(model)
    for sources, features in _features(known):
        share = weight[sources] / len(features)
        for part, k in features:
            total += share * _PARTS[part](rows[part][:, k], cases[part][:, k])
    for source in dict.fromkeys(known.text_sources_):
        chosen = np.flatnonzero(np.array(known.text_sources_) == source)
        total += weight[source] * _apart(rows["texts"][:, chosen], cases["texts"][:, chosen])
    return total


def _features(known: TableStatistics) -> list[tuple[int, list[tuple[str, int]]]]:
    """Return the features of each column of the table that has some, texts aside."""
    found: dict[int, list[tuple[str, int]]] = {}
    for k, source in enumerate(known.number_sources_):
        if known.is_ordered_[k]:
            found.setdefault(source, []).append(("ranks", k))
    for k, source in enumerate(known.cycle_sources_):
        found.setdefault(source, []).append(("cycles", k))
    for k, source in enumerate(known.category_sources_):
        found.setdefault(source, []).append(("levels", k))
    return list(found.items())


def _column_weights(model: RareClassifier) -> Floats:
    used = [k for k, column in enumerate(model.columns_) if column.is_used]
    losses = np.maximum(np.nan_to_num(model.feature_importances_[used]), 0.0)
    alike = np.full(len(used), 1.0 / len(used))
    return 0.5 * (alike + losses / losses.sum()) if losses.sum() > 0.0 else alike


def _ranks(known: TableStatistics, numbers: Floats) -> Floats:
    """Return the share of training below each number and half of those equal; NaN if missing."""
    found = known.summaries
    ranks = np.empty(numbers.shape)
    for k, (begin, end) in enumerate(zip(found.starts[:-1], found.starts[1:], strict=True)):
        ranks[:, k] = np.interp(numbers[:, k], found.knots[begin:end], found.ranks[begin:end])
    return np.where(np.isnan(numbers), np.nan, ranks)


def _difference(rows: np.ndarray, cases: np.ndarray) -> Floats:
    """Return absolute differences; 1 where one is missing, 0 where both are."""
    apart = np.abs(rows[:, None] - cases)
    missing, of_case = np.isnan(rows)[:, None], np.isnan(cases)
    if missing.any() or of_case.any():
        apart = np.where(missing | of_case, (missing != of_case).astype(np.float64), apart)
    return apart


_PARTS = {
    "ranks": _difference,
    "cycles": lambda rows, cases: _difference(rows / 2.0, cases / 2.0),
    "levels": lambda rows, cases: rows[:, None] != cases,
}


def _apart(rows: Floats, cases: Floats) -> Floats:
    """Return half of 1 - cosine; 1/2 for one text without known words, 0 for two of them."""
    lengths, of_cases = (np.linalg.norm(each, axis=1) for each in (rows, cases))
    inner = rows @ cases.T / np.maximum(np.outer(lengths, of_cases), np.finfo(np.float64).tiny)
    both_empty = (lengths == 0.0)[:, None] & (of_cases == 0.0)
    apart: Floats = np.where(both_empty, 0.0, np.clip(0.5 - 0.5 * inner, 0.0, 1.0))
    return apart
