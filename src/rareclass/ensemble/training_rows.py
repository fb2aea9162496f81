"""The rows that an ensemble learns from: typed, labelled, weighted, in folds."""

from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rareclass.encoding.typed_table import TypedTable, read_table
from rareclass.ensemble.equal_to_rare import held_out_together
from rareclass.folds.majority_part import draw_majority
from rareclass.labels.two_classes import Labels, read_labels, row_weights
from rareclass.rows import LabelledRows, RowSource

# Folds where nothing is said of them, and where there is no time for so many on all rows: each
# learns from more rows then (docs/decisions/0028).
FOLDS, FEWER_FOLDS = 5, 3
# Larger weights are no numbers of copies, whole or not.
_MOST_COPIES = 1e9
# Rows elsewhere of which more than these are not read: of the majority a part is learned from.
_MOST_READ = 500_000
# A small part that times are taken on.
_PIECE_ROWS, _PIECE_RARE = 3_000, 300


class TrainingRows(NamedTuple):
    """Rows of weight above zero, with the number that each has in the table as it was given."""

    table: TypedTable
    is_rare: np.ndarray
    weight: np.ndarray | None
    fold: np.ndarray  # that holds each row out
    number: np.ndarray
    fewer_folds: np.ndarray | None = None  # likewise, to take where time is short
    has_names: bool = True  # columns have names of their own
    is_drawn: bool = False  # folds were drawn at random

    def part(self, chosen: np.ndarray, weight: np.ndarray | None) -> Self:
        """Some of the rows, with other weights."""
        return self._replace(
            table=self.table.take(chosen),
            is_rare=self.is_rare[chosen],
            weight=weight,
            fold=self.fold[chosen],
            number=self.number[chosen],
            fewer_folds=None if self.fewer_folds is None else self.fewer_folds[chosen],
        )

    def in_fewer_folds(self) -> Self:
        """The same rows in fewer folds, where their number was left open."""
        return self if self.fewer_folds is None else self._replace(fold=self.fewer_folds)

    def piece(self, seed: int) -> Self:
        """A small part with rare rows in it."""
        rng = np.random.default_rng(seed)
        rare = rng.permutation(np.flatnonzero(self.is_rare))[:_PIECE_RARE]
        rest = rng.permutation(np.flatnonzero(~self.is_rare))[: _PIECE_ROWS - len(rare)]
        chosen = np.sort(np.concatenate([rare, rest]))
        return self.part(chosen, None if self.weight is None else self.weight[chosen])

    def thinned(self, n_majority: int, seed: int) -> Self:
        """All rare rows and so many of the others, whose weights make up for those left out."""
        return self.part(*draw_majority(self.is_rare, self.weight, n_majority, seed))


class Given(NamedTuple):
    """What `fit` is given."""

    X: Any
    y: Any
    weight: Any = None
    groups: Any = None
    time: Any = None


def read_training_rows(
    given: Given, cv: Any, pos_label: Any, seed: int
) -> tuple[TrainingRows, Labels]:
    """Read the rows; of a file too long to be read, all rare ones and some others.

    Raises `InputError` and `ValueError` as `RareClassifier.fit`.
    """
    from rareclass.ensemble.fold_numbers import fold_numbers

    number, weight = _part_of_file(given, cv, pos_label, seed)
    y, groups, time = given.y, given.groups, given.time
    if number is not None:
        y, groups, time = (
            None if column is None else np.asarray(column)[number] for column in (y, groups, time)
        )
    X = in_memory(given.X, slice(None) if number is None else number)
    table = read_table(X)
    labels = read_labels(y, weight, pos_label, table.n_rows)
    counts = (FOLDS, FEWER_FOLDS) if isinstance(cv, str) and cv == "auto" else (cv,)
    fold, *fewer = (
        fold_numbers(count, labels, table.n_rows, seed, groups, time) for count in counts
    )
    is_rare = np.zeros(table.n_rows, dtype=bool)
    is_rare[labels.rare] = True
    is_drawn = isinstance(cv, (str, int, np.integer)) and groups is None and time is None
    if is_drawn and weight is not None:
        fold, *fewer = (held_out_together(table, is_rare, each) for each in (fold, *fewer))
    number = np.arange(table.n_rows) if number is None else number
    weight = row_weights(weight, table.n_rows)
    has_names = hasattr(X, "columns") or hasattr(X, "column_names")
    rows = TrainingRows(table, is_rare, weight, fold, number, has_names=has_names)
    rows = rows._replace(fewer_folds=fewer[0] if fewer else None, is_drawn=is_drawn)
    kept = np.sort(np.concatenate([labels.rare, labels.majority]))
    if weight is not None:
        weight = _as_copies(weight[kept])
    if len(kept) < table.n_rows:
        return rows.part(kept, weight), labels
    return rows._replace(weight=weight), labels


def in_memory(X: Any, chosen: Any = slice(None)) -> Any:
    """Rows of a file, or those chosen, with the names of their columns; others as they are."""
    names = X.feature_names if isinstance(X, LabelledRows) else None
    source = X.source if isinstance(X, LabelledRows) else X
    if not isinstance(source, RowSource):
        return X
    rows = source.take(chosen)
    return rows if names is None else pa.table(dict(zip(names, rows.T, strict=True)))


def _part_of_file(
    given: Given, cv: Any, pos_label: Any, seed: int
) -> tuple[np.ndarray | None, Any]:
    """Row numbers of a file too long to be read: all rare ones, some others; their weights.

    None where all rows are read, as for folds that are given by number of row.
    """
    source = given.X.source if isinstance(given.X, LabelledRows) else given.X
    if not isinstance(cv, (str, int, np.integer)):
        return None, given.weight
    if not isinstance(source, RowSource) or source.n_rows <= _MOST_READ:
        return None, given.weight
    labels = read_labels(given.y, given.weight, pos_label, source.n_rows)
    n_majority = max(_MOST_READ - len(labels.rare), _MOST_READ // 2)
    if n_majority >= len(labels.majority):
        return None, given.weight
    is_rare = np.zeros(source.n_rows, dtype=bool)
    is_rare[labels.rare] = True
    return draw_majority(is_rare, row_weights(given.weight, source.n_rows), n_majority, seed)


def _as_copies(weight: np.ndarray) -> np.ndarray:
    """Whole numbers are numbers of copies; of other weights only ratios count: mean 1."""
    if weight.max() <= _MOST_COPIES and (weight == np.round(weight)).all():
        return weight
    weight = weight / weight.max()  # sums of very large ones do not fit
    return weight / weight.mean()
