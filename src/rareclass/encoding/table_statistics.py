"""Statistics that all views of a table share, learned once and encoded once for a set of rows.

Numbers, dates, texts and the levels of categories look at no label and serve every fold. What
labels say is learned from each set of rows by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.bounded_numbers import NumberSummaries, summarise_numbers
from rareclass.encoding.column_values import (
    KnownCodes,
    KnownLevels,
    RecurringDates,
    could_be_codes,
    known_words,
    rows_of_text,
    text_components,
)
from rareclass.encoding.label_statistics import (
    LabelFeatures,
    LabelStatistics,
    TrainingPart,
    side_by_side,
)
from rareclass.encoding.log_odds import CategoryStatistics
from rareclass.encoding.typed_table import TypedTable
from rareclass.metrics.intervals import row_units
from rareclass.tables.cells import TIME_OF_DAY

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

# Of this share of the rows no other part may have the word, for members to know what that means.
_KNOWN_UNSEEN = 0.01
# Words of a category that stand as examples.
MOST_EXAMPLES = 8


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
    texts : ndarray of shape (n_rows, n_components)
    of_labels : list of LabelFeatures
        Features by each set of labels that the statistics learned from.
    """

    n_rows: int
    numbers: Floats
    cycles: Floats
    levels: list[Codes]
    texts: Floats
    of_labels: list[LabelFeatures]

    def take(self, rows: Any) -> "EncodedTable":
        """Some rows: their numbers, a mask or a slice."""
        return EncodedTable(
            len(np.empty(self.n_rows, np.bool_)[rows]),
            self.numbers[rows],
            self.cycles[rows],
            [levels[rows] for levels in self.levels],
            self.texts[rows],
            [features.take(rows) for features in self.of_labels],
        )


# A column, and which rows have a marked cell in it.
MarkedRows: TypeAlias = tuple[str, NDArray[np.bool_]]


class UnlikeCells(NamedTuple):
    """Cells unlike all of training: the rows that have them, by column; only columns with some."""

    unseen: dict[str, NDArray[np.bool_]]  # words and codes that training did not have
    outside: dict[str, NDArray[np.bool_]]  # numbers and dates beyond those of training

    @classmethod
    def of(cls, unseen: Iterable[MarkedRows], outside: Iterable[MarkedRows]) -> "UnlikeCells":
        """Return cells that are marked in features of columns, of which each may have several."""
        return cls(_by_column(unseen), _by_column(outside))

    @property
    def by_column(self) -> dict[str, NDArray[np.bool_]]:
        """Rows with a cell of either kind, by column."""
        return _by_column([*self.unseen.items(), *self.outside.items()])

    def rows(self) -> dict[int, list[str]]:
        """Return the columns with such a cell of each row that has one, by its place."""
        found: dict[int, list[str]] = {}
        for name, rows in self.by_column.items():
            for row in np.flatnonzero(rows).tolist():
                found.setdefault(row, []).append(name)
        return dict(sorted(found.items()))


def _by_column(marked: Iterable[MarkedRows]) -> dict[str, NDArray[np.bool_]]:
    found: dict[str, NDArray[np.bool_]] = {}
    for name, rows in marked:
        if rows.any():
            found[name] = found.get(name, False) | rows
    return found


class ExampleCells(NamedTuple):
    """Cells of training by column: the commonest words of categories, medians of numbers."""

    words: dict[str, list[str]]
    medians: dict[str, float]


class TableStatistics:
    """Learns of a typed table what its views share.

    Categories are the columns of words, and the columns of whole numbers whose single values tell
    more of the rare class than where they lie; these stay numbers, too. What labels say of
    categories is learned from one or several sets of rows (`LabelStatistics`), such as the training
    rows of each fold; everything else looks at no label.

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
    is_lone_ : list of ndarray of bool of shape (n_known,)
        Which levels one row has, a drawn row whatever it stands for. Of new rows as many have a
        level that training lacks as rows of training have one of these (Good and Turing).
    stand_ins_ : list of int or None
        Of each category of words the commonest level, which words count as that training did not
        have; None where they are a level of their own, and for codes.
    labels_ : list of LabelStatistics
        Of each set of rows.
    """

    labels_: list[LabelStatistics]

    def __init__(self, absolute_time: bool = False) -> None:
        self.absolute_time = absolute_time

    def fit_encode(
        self,
        table: TypedTable,
        y: NDArray[np.bool_],
        weight: Floats | None,
        fold: NDArray[np.integer],
        moment: NDArray[np.integer] | None = None,
        sets: Sequence[TrainingPart] | None = None,
    ) -> EncodedTable:
        """Learn from all rows and return them encoded.

        y: which rows are rare; weight: as copies, 0 as absent; fold: the number of each row's fold,
        any whole numbers; moment: the place of each row in time, where folds were drawn at random
        and it is known. `sets` are the rows whose labels are learned from; by default all rows, in
        the parts that `fold` makes. Rows of a set get what its other parts say, others what all of
        it says.
        """
        y, fold = np.asarray(y, np.bool_), np.asarray(fold)
        used = None if weight is None else np.asarray(weight, np.float64)
        shares = np.ones(table.n_rows) if used is None else used
        self.columns_ = [[column.name, column.kind] for column in table.columns]
        self._fit_numbers(table, used)
        levels = self._fit_levels(table, shares, fold)
        self._fit_texts(table, shares)
        sets = sets or [TrainingPart(np.arange(table.n_rows), fold, moment, True)]
        of_labels = self._fit_labels(levels, y, shares, sets)
        levels = self._keep_what_tells(levels)
        drawn = shares / np.where(y, *row_units(y, shares))
        self.is_lone_ = [
            np.bincount(each, drawn, known.n_levels)[: known.n_known] < 1.5
            for each, known in zip(levels, self.known_, strict=True)
        ]
        if not any(labels.kept_ or labels.nearby_only_ for labels in self.labels_):
            self.labels_, of_labels = self.labels_[:1], of_labels[:1]  # all sets are alike
        return self._encoded(table, levels, of_labels)

    def encode(self, table: TypedTable) -> EncodedTable:
        """Encode rows with what all rows of training say.

        A word that training did not have is a level of its own where some rows of training have
        words that no other part has, so that members know such rows. Else it counts as the
        commonest word.
        """
        levels = self._levels(table)
        of_labels = [each.transform(levels, table.n_rows) for each in self.labels_]
        return self._encoded(table, levels, of_labels)

    def seen_in(self, labels: int, encoded: EncodedTable, most: int) -> EncodedTable:
        """Return rows as they look where only one set of labels, by number, was there to learn.

        Words that no row of the set has count as words that training did not have; of those that
        are no commoner than the `most` commonest, only if another word stands for them.
        """
        own, levels = self.labels_[labels], list(encoded.levels)
        for k, place in enumerate(own.kept_):
            if place >= self.n_words_:
                continue
            if own.stand_ins_[k] is not None:
                levels[place] = own.as_seen(k, levels[place])
            else:
                is_new = own.is_unseen(k)[levels[place]] & (levels[place] < most)
                levels[place] = np.where(is_new, self.known_[place].n_known + 1, levels[place])
        return replace(encoded, levels=levels)

    @property
    def nearby_only_(self) -> list[str]:
        """The columns whose values say clearly less of rows far away, to some set of labels."""
        told = {name for labels in self.labels_ for name in labels.nearby_only_}
        return [name for name, _ in self.columns_ if name in told]

    def outside(self, table: TypedTable) -> dict[str, int]:
        """Cells of each column that are beyond the numbers of training, or words it did not have.

        Only columns with such cells are named.
        """
        rows = self.find_unlike(table).by_column
        return {name: int(np.count_nonzero(each)) for name, each in rows.items()}

    def find_unlike(self, table: TypedTable) -> UnlikeCells:
        """Find the cells with values that training did not have, and those beyond its numbers."""
        numbers, _ = self._numbers(table)
        with np.errstate(invalid="ignore"):
            beyond = (numbers < self.low_) | (numbers > self.high_)
        categories = [table.columns[k] for k in self.category_sources_]
        return UnlikeCells.of(
            (
                (column.name, known.levels_in(column) > known.n_known)
                for column, known in zip(categories, self.known_, strict=True)
            ),
            ((self.columns_[k][0], beyond[:, n]) for n, k in enumerate(self.number_sources_)),
        )

    def examples(self) -> ExampleCells:
        """Return cells of training as examples."""
        words: dict[str, list[str]] = {}
        for k in range(self.n_words_):
            common = np.argsort(-self.level_weights_[k][:-1], kind="stable")[:MOST_EXAMPLES]
            name = self.columns_[self.category_sources_[k]][0]
            words[name] = [self.known_[k].name(int(level)) for level in common]
        numbers = [self.columns_[k][0] for k in self.number_sources_[: self.n_plain_]]
        medians = self.summaries.median.tolist()
        return ExampleCells(words, dict(zip(numbers, medians, strict=False)))

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

    def _fit_levels(
        self, table: TypedTable, weight: Floats, fold: NDArray[np.integer]
    ) -> list[Codes]:
        """Find the levels of words, and of numbers that may be codes, and return them.

        Times of day are no codes.
        """
        words = table.of_kind("category")
        clocks = {each.name for each in table.remembered if each.number_format == TIME_OF_DAY}
        numbers = [k for k in table.of_kind("number") if table.columns[k].name not in clocks]
        codes = [k for k in numbers if could_be_codes(table.columns[k].values, weight)]
        self.n_words_ = len(words)
        self.category_sources_ = words + codes
        self.known_: list[KnownLevels] = [known_words(table.columns[k], weight) for k in words]
        self.known_ += [KnownCodes().fit(table.columns[k].values, weight) for k in codes]
        self.stand_ins_: list[int | None] = [None] * len(self.known_)
        levels = self._levels(table)
        self.level_weights_ = [
            np.bincount(each, weight, known.n_levels)[: known.n_known + 1]
            for each, known in zip(levels, self.known_, strict=True)
        ]
        for k in range(self.n_words_):
            counts = CategoryStatistics.log_counts_out_of_part(levels[k], weight, fold)
            if weight @ (counts == 0) < _KNOWN_UNSEEN * weight.sum():
                self.stand_ins_[k] = int(np.argmax(self.level_weights_[k]))
        return levels

    def _fit_labels(
        self,
        levels: list[Codes],
        y: NDArray[np.bool_],
        weight: Floats,
        sets: Sequence[TrainingPart],
    ) -> list[LabelFeatures]:
        """Learn from each set of rows, and return its features of all rows."""
        names = [self.columns_[k][0] for k in self.category_sources_]
        self.labels_ = [LabelStatistics() for _ in sets]
        found = []
        for labels, learned in zip(self.labels_, sets, strict=True):
            rows = learned.rows
            own = labels.fit_transform(
                names, self.known_, [each[rows] for each in levels], self.stand_ins_,
                y[rows], weight[rows], learned,
            )  # fmt: skip
            features = labels.transform(levels, len(y)) if len(rows) < len(y) else own
            for of_all, of_set in zip(features, own, strict=True):
                of_all[rows] = of_set
            found.append(features)
        return found

    def _keep_what_tells(self, levels: list[Codes]) -> list[Codes]:
        """Forget the numbers that are codes to no set of labels; the levels that are left."""
        told = {place for labels in self.labels_ for place in labels.kept_}
        kept = [k for k in range(len(self.known_)) if k < self.n_words_ or k in told]
        for labels in self.labels_:
            labels.keep(kept)
        self.category_sources_ = [self.category_sources_[k] for k in kept]
        self.category_names_ = [self.columns_[k][0] for k in self.category_sources_]
        self.known_ = [self.known_[k] for k in kept]
        self.level_weights_ = [self.level_weights_[k] for k in kept]
        self.stand_ins_ = [self.stand_ins_[k] for k in kept]
        return [levels[k] for k in kept]

    def _levels(self, table: TypedTable) -> list[Codes]:
        """The levels of each category; words that training did not have as what stands for them."""
        columns = [table.columns[k] for k in self.category_sources_]
        known = zip(columns, self.known_, strict=True)
        levels = [each.levels_in(column) for column, each in known]
        for k, stand_in in enumerate(self.stand_ins_):
            if stand_in is not None:
                is_new = levels[k] == self.known_[k].n_known + 1
                if not self.level_weights_[k][-1]:  # an empty cell, where training had none
                    is_new |= levels[k] == self.known_[k].n_known
                levels[k] = np.where(is_new, np.int32(stand_in), levels[k])
        return levels

    def _encoded(
        self, table: TypedTable, levels: list[Codes], of_labels: list[LabelFeatures]
    ) -> EncodedTable:
        numbers, cycles = self._numbers(table)
        return EncodedTable(table.n_rows, numbers, cycles, levels, self._texts(table), of_labels)

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
