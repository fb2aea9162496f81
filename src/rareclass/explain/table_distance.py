"""How far rows of a table are from rare cases, column by column as RareClassifier knows them."""

from typing import Any

import numpy as np

from rareclass.encoding.table_statistics import TableStatistics
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.explain.explanation import Floats

Parts = dict[str, np.ndarray]


def parts_of(model: RareClassifier, X: Any) -> Parts:
    """What rows are compared by, plain arrays of n_rows rows.

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
    r"""Distances between rows and cases, from 0 to 1: shape (n_rows, n_cases).

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
    """The features of each column of the table that has some, texts aside."""
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
    """The share of training below each number and half of those equal; NaN where missing."""
    found = known.summaries
    ranks = np.empty(numbers.shape)
    for k, (begin, end) in enumerate(zip(found.starts[:-1], found.starts[1:], strict=True)):
        ranks[:, k] = np.interp(numbers[:, k], found.knots[begin:end], found.ranks[begin:end])
    return np.where(np.isnan(numbers), np.nan, ranks)


def _difference(rows: np.ndarray, cases: np.ndarray) -> Floats:
    """Absolute differences; 1 where one is missing, 0 where both are."""
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
    """Half of one less the cosine; 1/2 beside a text of no known word, 0 between two of them."""
    lengths, of_cases = (np.linalg.norm(each, axis=1) for each in (rows, cases))
    inner = rows @ cases.T / np.maximum(np.outer(lengths, of_cases), np.finfo(np.float64).tiny)
    both_empty = (lengths == 0.0)[:, None] & (of_cases == 0.0)
    apart: Floats = np.where(both_empty, 0.0, np.clip(0.5 - 0.5 * inner, 0.0, 1.0))
    return apart
