"""What all views of a table share: learned once, and encoded once for a set of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rareclass.encoding.bounded_numbers import NumberSummaries, summarise_numbers
from rareclass.encoding.category_statistics import CategoryStatistics
from rareclass.encoding.known_words import KnownWords
from rareclass.encoding.recurring_dates import RecurringDates
from rareclass.encoding.typed_table import TypedColumn, TypedTable

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EncodedTable:
    """Rows as every view needs them; made by `TableStatistics`.

    Attributes
    ----------
    n_rows : int
    numbers : ndarray of shape (n_rows, n_numbers)
        The table's numbers, then days of dates; NaN where missing; F order.
    cycles : ndarray of shape (n_rows, n_cycles)
        Sines and cosines of dates; NaN where missing.
    codes : list of ndarray of int32 of shape (n_rows,)
        Of each category the level: known ones from the commonest on, then missing; -1 is unseen.
    log_odds, log_counts : ndarray of shape (n_rows, n_categories)
        Of each category; in training those of the other folds.
    """

    n_rows: int
    numbers: Floats
    cycles: Floats
    codes: list[NDArray[np.int32]]
    log_odds: Floats
    log_counts: Floats


class TableStatistics(BaseEstimator):
    """Learns of a typed table what its views share.

    Parameters
    ----------
    absolute_time : bool
        Whether dates also count as moments, not only by what recurs.

    Attributes
    ----------
    columns_ : list of [name, kind]
        The columns of the table that it was fitted on.
    number_names_, number_sources_ : list of str, list of int
        Of each number of an `EncodedTable`: its name and its column in the table.
    cycle_names_, cycle_sources_ : list of str, list of int
    category_names_, category_sources_ : list of str, list of int
        Of each category: its name and its column in the table.
    level_weights_ : list of ndarray of shape (n_levels,)
        Weight of the rows with each level; the last one is that of missing.
    """

    def __init__(self, absolute_time: bool = False) -> None:
        self.absolute_time = absolute_time

    def fit_encode(
        self,
        table: TypedTable,
        y: NDArray[np.bool_],
        weight: Floats | None = None,
        fold: NDArray[np.integer] | None = None,
    ) -> EncodedTable:
        """Learn from all rows and return them encoded, what looks at y out of fold.

        y: which rows are rare; weight: as copies, 0 as absent; fold: the number of each row's fold.
        Raises `ValueError` where a column needs folds and there are none.
        """
        y = np.asarray(y, np.bool_)
        used = None if weight is None else np.asarray(weight, np.float64)
        shares = np.ones(table.n_rows) if used is None else used
        self.columns_ = [[column.name, column.kind] for column in table.columns]
        numbers, cycles = self._fit_numbers(table, used)
        self.category_sources_ = table.of_kind("category")
        self.category_names_ = [table.columns[k].name for k in self.category_sources_]
        self.words_ = [_known_words(table.columns[k], shares) for k in self.category_sources_]
        codes = self._codes(table)
        if fold is None:
            if codes:
                raise ValueError(
                    "the table has categories, whose log-odds need the folds of the rows."
                )
            fold = np.zeros(table.n_rows, np.int64)
        self.level_weights_, self.statistics_, log_odds = [], [], []
        for code, words in zip(codes, self.words_, strict=True):
            n_levels = len(words) + 1
            # Levels of rows without weight are unseen.
            counted = np.where(code < 0, n_levels, code)
            weights = np.bincount(counted, shares, n_levels + 1)[:n_levels]
            self.level_weights_.append(weights)
            statistics = CategoryStatistics()
            odds = statistics.fit_transform(counted, n_levels + 1, y, shares, fold)
            statistics.log_odds_ = statistics.log_odds_[:n_levels]
            statistics.log_count_ = statistics.log_count_[:n_levels]
            self.statistics_.append(statistics)
            log_odds.append(odds)
        return EncodedTable(
            table.n_rows,
            numbers,
            cycles,
            codes,
            _side_by_side(log_odds, table.n_rows),
            self._log_counts(codes, table.n_rows),
        )

    def encode(self, table: TypedTable) -> EncodedTable:
        """Encode rows with what all rows of training say."""
        numbers, cycles = self._numbers(table)
        codes = self._codes(table)
        log_odds = [
            statistics.transform(code)
            for statistics, code in zip(self.statistics_, codes, strict=True)
        ]
        return EncodedTable(
            table.n_rows,
            numbers,
            cycles,
            codes,
            _side_by_side(log_odds, table.n_rows),
            self._log_counts(codes, table.n_rows),
        )

    def outside(self, table: TypedTable) -> dict[str, int]:
        """Cells of each column that are beyond the numbers of training, or words it did not have.

        Only columns with such cells are named.
        """
        encoded = self.encode(table)
        counts: dict[str, int] = {}
        with np.errstate(invalid="ignore"):
            beyond = (encoded.numbers < self.low_) | (encoded.numbers > self.high_)
        for k, count in enumerate(np.count_nonzero(beyond, axis=0)):
            name = self.columns_[self.number_sources_[k]][0]
            counts[name] = max(counts.get(name, 0), int(count))
        for source, code in zip(self.category_sources_, encoded.codes, strict=True):
            name = self.columns_[source][0]
            if self.columns_[source][1] == "category":
                counts[name] = int(np.count_nonzero(code < 0))
        return {name: count for name, count in counts.items() if count}

    def level_name(self, category: int, level: int) -> str:
        """The word of a level, "missing" for the last one."""
        words = self.words_[category]
        return words.word(level) if level < len(words) else "missing"

    @property
    def summaries(self) -> NumberSummaries:
        """The summaries of the numbers of training."""
        return NumberSummaries(*self.number_summaries_)

    def _fit_numbers(self, table: TypedTable, weight: Floats | None) -> tuple[Floats, Floats]:
        self.date_sources_ = table.of_kind("date")
        dates = _side_by_side([table.columns[k].values for k in self.date_sources_], table.n_rows)
        self.dates_ = RecurringDates(self.absolute_time).fit(dates, weight)
        plain = table.of_kind("number")
        parts = [self._part_name(*feature) for feature in self.dates_.features_]
        sources = [self.date_sources_[first] for _, first, _ in self.dates_.features_]
        n_cycles = self.dates_.n_cycles_
        self.cycle_names_, self.cycle_sources_ = parts[:n_cycles], sources[:n_cycles]
        self.number_names_ = [table.columns[k].name for k in plain] + parts[n_cycles:]
        self.number_sources_ = plain + sources[n_cycles:]
        self.n_plain_ = len(plain)
        numbers, cycles = self._numbers(table)
        self.number_summaries_: list[NDArray[Any]] = list(summarise_numbers(numbers, weight))
        self.low_, self.high_ = self.number_summaries_[:2]
        missing = np.isnan(numbers if weight is None else numbers[weight > 0]).any(axis=0)
        self.has_missing_ = missing
        return numbers, cycles

    def _part_name(self, part: str, first: int, second: int) -> str:
        names = [self.columns_[self.date_sources_[k]][0] for k in (first, second)]
        return f"{names[0]} to {names[1]}: days" if part == "days" else f"{names[0]}: {part}"

    def _numbers(self, table: TypedTable) -> tuple[Floats, Floats]:
        """Numbers with days of dates, and cycles of dates."""
        dates = _side_by_side([table.columns[k].values for k in self.date_sources_], table.n_rows)
        parts, n_cycles = self.dates_.transform(dates), self.dates_.n_cycles_
        plain = [table.columns[k].values for k in self.number_sources_[: self.n_plain_]]
        numbers = _side_by_side([*plain, *parts.T[n_cycles:]], table.n_rows)
        return numbers, parts[:, :n_cycles]

    def _codes(self, table: TypedTable) -> list[NDArray[np.int32]]:
        columns = [table.columns[k] for k in self.category_sources_]
        return [
            _codes_of_words(column, words)
            for column, words in zip(columns, self.words_, strict=True)
        ]

    def _log_counts(self, codes: Sequence[NDArray[np.int32]], n_rows: int) -> Floats:
        counts = [
            statistics.log_counts(code)
            for statistics, code in zip(self.statistics_, codes, strict=True)
        ]
        return _side_by_side(counts, n_rows)


def _side_by_side(columns: Sequence[NDArray[Any]], n_rows: int) -> Floats:
    """Columns as a matrix in F order, (n_rows, n_columns)."""
    joined = np.empty((len(columns), n_rows))
    for row, column in zip(joined, columns, strict=True):
        row[:] = column
    return joined.T


def _known_words(column: TypedColumn, weight: Floats) -> KnownWords:
    """The words that rows with weight have, from the commonest on."""
    assert column.levels is not None
    present = column.values >= 0
    counts = np.bincount(column.values[present], weight[present], len(column.levels))
    kept = np.flatnonzero(counts > 0)
    words = column.levels[kept]
    # By word among equals: the order of the rows does not matter.
    by_word = np.argsort(words, kind="stable")
    order = by_word[np.argsort(-counts[kept][by_word], kind="stable")]
    return KnownWords().fit(words[order])


def _codes_of_words(column: TypedColumn, words: KnownWords) -> NDArray[np.int32]:
    assert column.levels is not None
    positions = words.positions(column.levels)
    return np.append(positions, np.int32(len(words)))[column.values]
