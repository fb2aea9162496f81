"""Statistics that all views of a table share, learned once and encoded once for a set of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.bounded_numbers import NumberSummaries, summarise_numbers
from rareclass.encoding.dates_and_texts import RecurringDates, TextComponents
from rareclass.encoding.known_levels import (
    CategoryColumn,
    KnownWords,
    as_codes,
    could_be_codes,
    halves,
    holds_nearby_only,
)
from rareclass.encoding.log_odds import CategoryStatistics, find_pairs
from rareclass.encoding.typed_table import TypedColumn, TypedTable

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

# Of this share of the rows no other fold may have the word, for members to know what that means.
_KNOWN_UNSEEN = 0.01


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
    levels : list of ndarray of int32 of shape (n_rows,)
        Of each category: words first, then codes. See `KnownWords` and `KnownCodes`.
    log_odds, log_counts : ndarray of shape (n_rows, n_categories)
        Of each category; in training the log-odds are those of the other folds.
    pairs : ndarray of shape (n_rows, n_pairs)
        Log-odds of pairs of categories, likewise.
    texts : ndarray of shape (n_rows, n_components)
    """

    n_rows: int
    numbers: Floats
    cycles: Floats
    levels: list[Codes]
    log_odds: Floats
    log_counts: Floats
    pairs: Floats
    texts: Floats

    def take(self, rows: slice) -> "EncodedTable":
        """Some consecutive rows."""
        return EncodedTable(
            len(range(self.n_rows)[rows]),
            self.numbers[rows],
            self.cycles[rows],
            [levels[rows] for levels in self.levels],
            self.log_odds[rows],
            self.log_counts[rows],
            self.pairs[rows],
            self.texts[rows],
        )


class TableStatistics:
    """Learns of a typed table what its views share.

    Categories are the columns of words, and the columns of whole numbers whose single values tell
    more of the rare class than where they lie (`as_codes`); these stay numbers, too.

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
    cycle_names_, cycle_sources_, category_names_, category_sources_, text_names_, text_sources_
        Of cycles, categories and components of texts, likewise.
    n_words_ : int
        So many categories are columns of words; those after them are codes.
    known_ : list of KnownWords or KnownCodes
        The levels of each category.
    level_weights_ : list of ndarray of shape (n_known + 1,)
        Weight of the rows with each level; the last one is that of missing.
    is_ordered_ : ndarray of bool of shape (n_numbers,)
        Of each number, whether it is more than a code.
    stand_ins_ : list of int or None
        Of each category of words the level that words count as which training did not have; None
        where they are a level of their own.
    pairs_ : list of [int, int]
        The categories of each pair.
    nearby_only_ : list of str
        Categories whose values tell clearly less of rows far away in the table
        (`holds_nearby_only`), in folds that were drawn. Where there are any, log-odds of training
        rows are out of the other half of the table, for members to learn what they are worth
        farther away.
    """

    def __init__(self, absolute_time: bool = False) -> None:
        self.absolute_time = absolute_time

    def fit_encode(
        self,
        table: TypedTable,
        y: NDArray[np.bool_],
        weight: Floats | None = None,
        fold: NDArray[np.integer] | None = None,
        is_drawn: bool = False,
    ) -> EncodedTable:
        """Learn from all rows and return them encoded, what looks at y out of fold.

        y: which rows are rare; weight: as copies, 0 as absent; fold: the number of each row's fold,
        any whole numbers; is_drawn: whether folds were drawn at random, and say nothing of rows far
        away. Raises `ValueError` where there are no folds.
        """
        if fold is None:
            raise ValueError("statistics of categories need the folds of the rows: pass fold.")
        y, fold = np.asarray(y, np.bool_), np.asarray(fold)
        used = None if weight is None else np.asarray(weight, np.float64)
        shares = np.ones(table.n_rows) if used is None else used
        self.columns_ = [[column.name, column.kind] for column in table.columns]
        self._fit_numbers(table, used)
        levels, log_odds, pairs = self._fit_categories(table, y, shares, fold, is_drawn)
        self._fit_texts(table, shares)
        counts = side_by_side(
            [CategoryStatistics.log_counts_out_of_fold(each, shares, fold) for each in levels],
            table.n_rows,
        )
        self.stand_ins_ = [self._stand_in(k, counts[:, k], shares) for k in range(self.n_words_)]
        return self._encoded(table, levels, log_odds, pairs, counts)

    def encode(self, table: TypedTable) -> EncodedTable:
        """Encode rows with what all rows of training say.

        A word that training did not have is a level of its own where some rows of training have
        words that no other fold has, so that members know such rows. Else it counts as the word of
        a typical row: nothing is known that tells it from the rare rows.
        """
        levels = self._levels(table)
        for k, stand_in in enumerate(self.stand_ins_):
            if stand_in is not None:
                unknown = np.append(self.level_weights_[k] <= 0, True)[levels[k]]
                levels[k] = np.where(unknown, np.int32(stand_in), levels[k])
        of_levels = zip(self.statistics_, levels, strict=True)
        log_odds = side_by_side([known.transform(each) for known, each in of_levels], table.n_rows)
        pairs = [
            known.transform((levels[i], levels[j]), (log_odds[:, i], log_odds[:, j]))
            for known, (i, j) in zip(self.pair_statistics_, self.pairs_, strict=True)
        ]
        of_levels = zip(self.statistics_, levels, strict=True)
        counts = side_by_side([known.log_counts(each) for known, each in of_levels], table.n_rows)
        return self._encoded(table, levels, log_odds, pairs, counts)

    def outside(self, table: TypedTable) -> dict[str, int]:
        """Cells of each column that are beyond the numbers of training, or words it did not have.

        Only columns with such cells are named.
        """
        return self.count_outside(table) | self.count_unseen(table)

    def count_outside(self, table: TypedTable) -> dict[str, int]:
        """Return how many cells of each column of numbers or dates lie beyond those of training.

        Columns without such cells are left out. Of whole numbers that are codes, those that
        training did not have count, too.
        """
        numbers, _ = self._numbers(table)
        with np.errstate(invalid="ignore"):
            beyond = np.count_nonzero((numbers < self.low_) | (numbers > self.high_), axis=0)
        unknown = [
            int(np.count_nonzero(known.levels(table.columns[k].values) > known.n_known))
            for k, known in self._categories_after(self.n_words_)
        ]
        sources = [*self.number_sources_, *self.category_sources_[self.n_words_ :]]
        return self._most_of_each(sources, [*beyond.tolist(), *unknown])

    def count_unseen(self, table: TypedTable) -> dict[str, int]:
        """Return how many cells of each column hold a word that training did not have."""
        unseen = [
            int(np.count_nonzero(levels_of_words(table.columns[k], known) > known.n_known))
            for k, known in self._categories_after(0)[: self.n_words_]
        ]
        return self._most_of_each(self.category_sources_[: self.n_words_], unseen)

    def _categories_after(self, first: int) -> list[tuple[int, Any]]:
        """The column and the levels of each category from `first` on."""
        return list(zip(self.category_sources_, self.known_, strict=True))[first:]

    def _most_of_each(self, sources: Sequence[int], counts: Sequence[int]) -> dict[str, int]:
        """The largest count of each column, where it is above 0."""
        most: dict[str, int] = {}
        for source, count in zip(sources, counts, strict=True):
            name = self.columns_[source][0]
            most[name] = max(most.get(name, 0), int(count))
        return {name: count for name, count in most.items() if count}

    @property
    def summaries(self) -> NumberSummaries:
        """The summaries of the numbers of training."""
        return NumberSummaries(*self.number_summaries_)

    def _fit_numbers(self, table: TypedTable, weight: Floats | None) -> None:
        self.date_sources_ = table.of_kind("date")
        dates = side_by_side([table.columns[k].values for k in self.date_sources_], table.n_rows)
        self.dates_ = RecurringDates(self.absolute_time).fit(dates, weight)
        plain = table.of_kind("number")
        names = [table.columns[k].name for k in self.date_sources_]
        parts = [
            f"{names[i]} to {names[j]}: days" if part == "days" else f"{names[i]}: {part}"
            for part, i, j in self.dates_.features_
        ]
        sources = [self.date_sources_[first] for _, first, _ in self.dates_.features_]
        n_cycles = self.dates_.n_cycles_
        self.cycle_names_, self.cycle_sources_ = parts[:n_cycles], sources[:n_cycles]
        self.number_names_ = [table.columns[k].name for k in plain] + parts[n_cycles:]
        self.number_sources_ = plain + sources[n_cycles:]
        self.n_plain_ = len(plain)
        numbers, _ = self._numbers(table)
        self.number_summaries_: list[NDArray[Any]] = list(summarise_numbers(numbers, weight))
        self.low_, self.high_ = self.number_summaries_[:2]
        shares = np.ones(table.n_rows) if weight is None else weight
        self.missing_share_ = shares @ np.isnan(numbers) / max(shares.sum(), 1e-300)

    def _numbers(self, table: TypedTable) -> tuple[Floats, Floats]:
        """Numbers with days of dates, and cycles of dates."""
        dates = side_by_side([table.columns[k].values for k in self.date_sources_], table.n_rows)
        parts, n_cycles = self.dates_.transform(dates), self.dates_.n_cycles_
        plain = [table.columns[k].values for k in self.number_sources_[: self.n_plain_]]
        numbers = side_by_side([*plain, *parts.T[n_cycles:]], table.n_rows)
        return numbers, parts[:, :n_cycles]

    def _fit_categories(
        self,
        table: TypedTable,
        y: NDArray[np.bool_],
        weight: Floats,
        fold: NDArray[np.integer],
        is_drawn: bool,
    ) -> tuple[list[Codes], Floats, list[Floats]]:
        """Find categories and pairs; levels, and log-odds in the other folds, of both."""
        words = table.of_kind("category")
        numbers = table.of_kind("number")
        codes = [k for k in numbers if could_be_codes(table.columns[k].values, weight)]
        every = _categories(table, words, codes, y, weight, fold)
        self.nearby_only_ = [
            table.columns[k].name
            for k, each in zip(words + codes, every, strict=True)
            if is_drawn
            and each.tells_more
            and holds_nearby_only(each.levels, each.known.n_levels, y, weight, each.known.groups)
        ]
        if self.nearby_only_:
            fold = halves(table.n_rows)
            every = _categories(table, words, codes, y, weight, fold)
        log_odds = side_by_side([each.log_odds for each in every], table.n_rows)
        found = find_pairs([each.levels for each in every], log_odds, y, weight, fold)
        # A code may tell something only beside another column.
        paired = {k for pair in found for k in (pair.first, pair.second)}
        kept = [k for k, each in enumerate(every) if each.tells_more or k in paired]
        self.pairs_ = [[kept.index(pair.first), kept.index(pair.second)] for pair in found]
        self.pair_statistics_ = [pair.statistics for pair in found]
        chosen = [every[k] for k in kept]
        self.n_words_ = len(words)
        self.category_sources_ = [(words + codes)[k] for k in kept]
        of_codes = zip(self.category_sources_, chosen, strict=True)
        unordered = {k for k, each in list(of_codes)[len(words) :] if not each.has_order}
        self.is_ordered_ = np.array([k not in unordered for k in self.number_sources_], np.bool_)
        self.category_names_ = [table.columns[k].name for k in self.category_sources_]
        self.known_: list[Any] = [each.known for each in chosen]
        self.statistics_ = [each.statistics for each in chosen]
        self.level_weights_ = [
            np.bincount(each.levels, weight, each.known.n_levels)[: each.known.n_known + 1]
            for each in chosen
        ]
        of_pairs = [pair.log_odds for pair in found]
        return [each.levels for each in chosen], log_odds[:, kept], of_pairs

    def _levels(self, table: TypedTable) -> list[Codes]:
        columns = [table.columns[k] for k in self.category_sources_]
        known = list(zip(columns, self.known_, strict=True))
        words = [levels_of_words(column, each) for column, each in known[: self.n_words_]]
        return words + [each.levels(column.values) for column, each in known[self.n_words_ :]]

    def _stand_in(self, category: int, log_counts: Floats, weight: Floats) -> int | None:
        """The level whose log-odds half of the rows do not exceed; None: unseen is a level too."""
        if weight @ (log_counts == 0) >= _KNOWN_UNSEEN * weight.sum():
            return None
        weights = self.level_weights_[category]
        order = np.argsort(self.statistics_[category].log_odds_[: len(weights)], kind="stable")
        below = np.cumsum(weights[order])
        return int(order[np.searchsorted(below, 0.5 * below[-1])])

    def _encoded(
        self,
        table: TypedTable,
        levels: list[Codes],
        log_odds: Floats,
        pairs: list[Floats],
        log_counts: Floats,
    ) -> EncodedTable:
        numbers, cycles = self._numbers(table)
        return EncodedTable(
            table.n_rows,
            numbers,
            cycles,
            levels,
            log_odds,
            log_counts,
            side_by_side(pairs, table.n_rows),
            self._texts(table),
        )

    def _fit_texts(self, table: TypedTable, weight: Floats) -> None:
        sources = table.of_kind("text")
        self.texts_ = [text_components(table.columns[k], weight) for k in sources]
        widths = [len(each.directions_) for each in self.texts_]
        self.text_sources_ = [k for k, n in zip(sources, widths, strict=True) for _ in range(n)]
        self.text_names_ = [
            f"{table.columns[k].name}: letters {part + 1}"
            for k, n in zip(sources, widths, strict=True)
            for part in range(n)
        ]

    def _texts(self, table: TypedTable) -> Floats:
        columns = [table.columns[k] for k in sorted(set(self.text_sources_))]
        parts: list[Floats] = []
        for column, known in zip(columns, self.texts_, strict=True):
            parts.extend(rows_of_text(column, known).T)
        return side_by_side(parts, table.n_rows)


def text_components(column: TypedColumn, weight: Floats) -> TextComponents:
    """Learn the main directions of the letters of a text column; a weight counts as copies."""
    assert column.levels is not None
    present = column.values >= 0
    counted = np.bincount(column.values[present], weight[present], len(column.levels))
    weights = counted.astype(np.float64, copy=False)
    kept = weights > 0
    return TextComponents().fit(column.levels[kept], weights[kept])


def rows_of_text(column: TypedColumn, components: TextComponents) -> Floats:
    """Return the numbers of each cell, zeros where it is empty: (n_rows, n_components)."""
    assert column.levels is not None
    # Only words that these rows have.
    used, position = np.unique(column.values, return_inverse=True)
    zeros = np.zeros((int(len(used) > 0 and used[0] < 0), len(components.directions_)))
    return np.vstack([zeros, components.transform(column.levels[used[used >= 0]])])[position]


def statistics_of(
    table: TypedTable | EncodedTable,
    y: NDArray[np.bool_],
    weight: Floats | None,
    fold: NDArray[np.integer] | None,
    statistics: TableStatistics | None,
) -> tuple[TableStatistics, EncodedTable]:
    """The statistics given with the rows that they encoded, or such of a view's own."""
    if isinstance(table, EncodedTable):
        if statistics is None:
            raise ValueError("an encoded table needs the statistics that encoded it.")
        return statistics, table
    own = TableStatistics()
    return own, own.fit_encode(table, y, weight, fold)


def side_by_side(columns: Sequence[NDArray[Any]], n_rows: int) -> Floats:
    """Columns as a matrix in F order, (n_rows, n_columns)."""
    joined = np.empty((len(columns), n_rows))
    for row, column in zip(joined, columns, strict=True):
        row[:] = column
    return joined.T


def _categories(
    table: TypedTable,
    words: list[int],
    codes: list[int],
    y: NDArray[np.bool_],
    weight: Floats,
    fold: NDArray[np.integer],
) -> list[CategoryColumn]:
    """Columns of words, then columns of whole numbers that may be codes."""
    found = []
    for column in (table.columns[k] for k in words):
        known = known_words(column, weight)
        levels, statistics = levels_of_words(column, known), CategoryStatistics()
        log_odds = statistics.fit_transform(levels, known.n_levels, y, weight, fold)
        found.append(CategoryColumn(known, statistics, levels, log_odds, True, False))
    return found + [as_codes(table.columns[k].values, y, weight, fold) for k in codes]


def known_words(column: TypedColumn, weight: Floats) -> KnownWords:
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


def levels_of_words(column: TypedColumn, known: KnownWords) -> Codes:
    """Return the level of each cell: of its word, or of an empty cell."""
    assert column.levels is not None
    return np.append(known.levels(column.levels), np.int32(known.n_known))[column.values]
