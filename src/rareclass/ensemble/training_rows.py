"""The rows that an ensemble learns from and is measured on: typed, weighted, in folds, encoded."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from rareclass.folds.dealing import ALWAYS_LEARNED, group_numbers, moments
from rareclass.folds.majority_part import draw_majority
from rareclass.labels.two_classes import Labels, read_labels
from rareclass.labels.weights import row_weights
from rareclass.metrics import average_precision
from rareclass.rows import LabelledRows, RowSource
from rareclass.rows.source import is_dask

if TYPE_CHECKING:
    from rareclass.encoding.label_statistics import TrainingPart
    from rareclass.encoding.typed_table import TypedTable
    from rareclass.ensemble.members.member import EncodedFolds, RowsAsUnseen
    from rareclass.estimators.search import Scoring

# Larger weights are no numbers of copies, whole or not.
_MOST_COPIES = 1e9
# Of a longer file all rare rows are read, and so many of the majority that this is the total.
_MOST_READ = 500_000
# Parts of the training rows that log-odds of categories are out of, at least.
_FEWEST_PARTS = 2
# Majority rows that every member scores out of fold, at most: more would hardly make measures
# more precise, and cost time that learning can use.
_MOST_HELD_OUT = 100_000


class FitInput(NamedTuple):
    """The arguments of `RareClassifier.fit`."""

    X: Any
    y: Any
    weight: Any = None
    groups: Any = None
    time: Any = None


class FoldedRows(NamedTuple):
    """Labelled rows of weight above zero, each with the fold that holds it out.

    `number` is the row's number in the table as given; `merged` tells of rows that others stand
    for, None where there are none. Members hold out the folds below
    `n_held_out` alone and always learn from the others. `which` is the position of a rare row's
    class among several, -1 for other rows; None where one class is rare.
    """

    table: "TypedTable"
    is_rare: np.ndarray
    weight: np.ndarray | None
    fold: np.ndarray
    number: np.ndarray
    n_held_out: int | None = None
    is_drawn: bool = False  # folds were drawn at random
    moment: np.ndarray | None = None  # place of each row in time, where that is known
    which: np.ndarray | None = None
    # What a column says of a row's label is out of its part where there is one other fold.
    label_part: np.ndarray | None = None
    unit: float = 1.0  # of the weights, in weights as they were given
    merged: "MergedRows | None" = None

    @property
    def held_out_fold(self) -> np.ndarray:
        """The fold of each row where members hold it out, below 0 where none of them does."""
        if self.n_held_out is None:
            return self.fold
        return np.where(self.fold < self.n_held_out, self.fold, ALWAYS_LEARNED)

    @property
    def n_folds(self) -> int:
        """Number of folds that members hold out."""
        return int(self.held_out_fold.max()) + 1

    def learned_by(self, number: int, left_out: tuple[str, ...] = ()) -> "TrainingPart":
        """Return the rows that a fold learns labels from, in parts: the other folds.

        Where there is one other fold, its rows are in parts of their own.
        """
        from rareclass.encoding.label_statistics import TrainingPart

        rows = np.flatnonzero(self.held_out_fold != number)
        part = self.fold[rows]
        if self.label_part is not None and len(np.unique(part)) < _FEWEST_PARTS:
            part = self.label_part[rows]
        moment = None if self.moment is None else self.moment[rows]
        return TrainingPart(rows, part, moment, self.is_drawn, left_out)

    def thinned(self, n_rows: int, seed: int) -> Self:
        """Return so many of the rows, all rare ones among them, with weights that make up."""
        if n_rows >= self.table.n_rows:
            return self
        n_majority = n_rows - int(self.is_rare.sum())
        return self.part(*draw_majority(self.is_rare, self.weight, n_majority, seed))

    def take(self, chosen: np.ndarray) -> Self:
        """Return some of the rows."""
        return self.part(chosen, None if self.weight is None else self.weight[chosen])

    def part(self, chosen: np.ndarray, weight: np.ndarray | None) -> Self:
        """Return some of the rows, with other weights."""
        return self._replace(
            table=self.table.take(chosen),
            is_rare=self.is_rare[chosen],
            weight=weight,
            fold=self.fold[chosen],
            number=self.number[chosen],
            which=None if self.which is None else self.which[chosen],
            moment=None if self.moment is None else self.moment[chosen],
            label_part=None if self.label_part is None else self.label_part[chosen],
        )


class MergedRows(NamedTuple):
    """Rows as given: number, that of the row that stands for it, and its part of the weight."""

    number: np.ndarray
    first: np.ndarray
    share: np.ndarray

    def spread(self, held_out: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what is held of each row as given; ``row`` and ``weight`` are among the values."""
        place = np.full(int(self.first.max()) + 1, -1)
        place[held_out["row"]] = np.arange(len(held_out["row"]))
        of_row = place[self.first]
        spread = {name: values[of_row[of_row >= 0]] for name, values in held_out.items()}
        spread["weight"] = spread["weight"] * self.share[of_row >= 0]
        return spread | {"row": self.number[of_row >= 0]}


def read_training_rows(
    given: FitInput, cv: Any, pos_label: Any, seed: int
) -> tuple[FoldedRows, Labels]:
    """Read the rows; of a long file or Dask collection, all rare rows and a draw of the majority.

    Raises `InputError` and `ValueError` as `RareClassifier.fit`.
    """
    from rareclass.encoding.typed_table import read_table, with_equal_rows_together
    from rareclass.ensemble.plan import fold_numbers, folds_of, parts_of_rows

    given = FitInput(given.X, *map(_here, given[1:]))
    counted = _rows_that_count(given, cv)
    if counted is not None:
        columns = (each if each is None else _safe_indexing(each, counted) for each in given)
        given = FitInput(*columns)
    number, weight = _drawn_part(given, cv, pos_label, seed)
    y, groups, time = (
        column if column is None or number is None else np.asarray(column)[number]
        for column in (given.y, given.groups, given.time)
    )
    table = read_table(_here(given.X, number))
    labels, which = read_labels(y, weight, pos_label, table.n_rows, several=True), None
    if labels.codes is not None:
        which = np.full(table.n_rows, -1, dtype=np.int16)
        which[labels.rare] = np.unique(labels.codes, return_inverse=True)[1]
    number = np.arange(table.n_rows) if number is None else number
    number = number if counted is None else counted[number]
    group: Any = None
    time = None if time is None else moments(time, table.n_rows)
    groups = None if groups is None else group_numbers(groups, table.n_rows)
    weight, fold = row_weights(weight, table.n_rows), np.full(table.n_rows, ALWAYS_LEARNED)
    rows = FoldedRows(table, labels.is_rare(table.n_rows), weight, fold, number, which=which)
    if isinstance(cv, (str, int, np.integer)):
        group = table.groups_of_equal(groups, time)
        kept = labels.kept
        distinct, rows = _merged(rows, kept, group)
        if rows.merged is not None:
            labels, group = labels.of_rows(distinct, rows.weight), group[distinct]
            groups, time = (None if each is None else each[distinct] for each in (groups, time))
    n_rows = rows.table.n_rows
    dealt = folds_of(cv, n_rows, len(labels.rare), time is not None)
    fold = fold_numbers(dealt.cv, labels, n_rows, seed, groups, time, rows.which)
    part = None
    if len(np.unique(fold)) <= _FEWEST_PARTS:
        part = parts_of_rows(n_rows, seed, groups, time)
    is_drawn = group is not None and groups is None and time is None
    if is_drawn and rows.weight is not None:
        fold = with_equal_rows_together(group, rows.is_rare, fold)
    rows = rows._replace(
        fold=fold,
        n_held_out=dealt.n_held_out,
        is_drawn=is_drawn,
        moment=rows.table.moment if is_drawn else time,
        label_part=part,
    )
    return _weighed(rows, labels.kept), labels


def _merged(rows: FoldedRows, kept: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, FoldedRows]:
    """Return rows of which equal ones are one, weighted, and which these are of those given."""
    from rareclass.encoding.typed_table import distinct_rows

    weight = None if rows.weight is None else rows.weight[kept]
    code = (rows.is_rare if rows.which is None else rows.which + 1)[kept].astype(np.int16)
    distinct = distinct_rows(group[kept], code, weight=weight)
    # One row alone could not be both learned from and held out.
    if distinct.copies is None or np.count_nonzero(code[distinct.rows] == 0) < 2:
        return np.arange(rows.table.n_rows), rows
    share = np.ones(len(kept)) if weight is None else weight
    merged = MergedRows(
        rows.number[kept],
        rows.number[kept[distinct.rows[distinct.place]]],
        share / distinct.copies[distinct.place],
    )
    chosen = kept[distinct.rows]
    return chosen, rows.part(chosen, distinct.copies)._replace(merged=merged)


def _weighed(rows: FoldedRows, kept: np.ndarray) -> FoldedRows:
    """Return the rows of weight above zero, with weights of which the mean is 1.

    Whole weights are numbers of copies, and stay; of others only the ratios count.
    """
    weight, unit = rows.weight, 1.0
    if weight is not None:
        weight = weight[kept]
        if weight.max() > _MOST_COPIES or (weight != np.round(weight)).any():
            unit = weight.max() * (weight / weight.max()).mean()  # sums of large ones do not fit
            weight = weight / unit
    rows = rows.part(kept, weight) if len(kept) < rows.table.n_rows else rows
    return rows._replace(weight=weight, unit=unit)


def _here(X: Any, chosen: np.ndarray | None = None) -> Any:
    """Return rows of a file or of a Dask collection, or those chosen, in memory."""
    if is_dask(X):
        from rareclass.rows.dask import rows_here  # needs an extra

        return rows_here(X, chosen)
    from rareclass.encoding.typed_table import in_memory

    return in_memory(X, chosen)


def _drawn_part(
    given: FitInput, cv: Any, pos_label: Any, seed: int
) -> tuple[np.ndarray | None, Any]:
    """Draw row numbers and weights of a file or Dask collection too long to be read."""
    source = given.X.source if isinstance(given.X, LabelledRows) else given.X
    if not isinstance(cv, (str, int, np.integer)):
        return None, given.weight
    if not (isinstance(source, RowSource) or is_dask(source)):
        return None, given.weight
    n_rows = len(given.y) if is_dask(source) else source.n_rows
    if n_rows <= _MOST_READ:
        return None, given.weight
    labels = read_labels(given.y, given.weight, pos_label, n_rows, several=True)
    n_majority = max(_MOST_READ - len(labels.rare), _MOST_READ // 2)
    if n_majority >= len(labels.majority):
        return None, given.weight
    weight = row_weights(given.weight, n_rows)
    return draw_majority(labels.is_rare(n_rows), weight, n_majority, seed)


def _rows_that_count(given: FitInput, cv: Any) -> np.ndarray | None:
    """Return the numbers of the rows of weight above 0, by which columns are read; None for all.

    None as well where something does not fit together, which is said later.
    """
    weight, is_named = np.asarray(given.weight), isinstance(cv, (str, int, np.integer))
    if not is_named or weight.dtype.kind not in "biuf" or weight.ndim != 1:
        return None
    if not ((weight >= 0.0).all() and (weight == 0.0).any() and (weight > 0.0).any()):
        return None
    if is_dask(given.X) or isinstance(given.X, LabelledRows | RowSource):
        return None
    same = all(each is None or _num_samples(each) == len(weight) for each in given)
    return np.flatnonzero(weight > 0.0) if same else None


class TrainingViews:
    """Views of the training rows, the encodings that members ask for, each fitted once.

    What looks at labels is learned for every fold from the rows that the fold learns from alone:
    the rows that it holds out are to it what new rows are. `left_out` has for each fold the names
    of columns that it does not learn from; None: of no fold any.
    """

    def __init__(
        self,
        rows: FoldedRows,
        absolute_time: bool = False,
        left_out: Sequence[tuple[str, ...]] | None = None,
    ) -> None:
        from rareclass.encoding.table_statistics import TableStatistics

        self.rows = rows
        self.left_out = left_out or [()] * rows.n_folds
        self.sets = [rows.learned_by(k, names) for k, names in enumerate(self.left_out)]
        self.views: dict[str, Any] = {}
        self.statistics = TableStatistics(absolute_time)
        self.encoded_table = self.statistics.fit_encode(
            rows.table, rows.is_rare, rows.weight, rows.fold, sets=self.sets
        )
        self._folds: dict[str, EncodedFolds] = {}

    def folds(self, name: str, seed: int, n_jobs: int) -> "EncodedFolds":
        """Return the training rows in a view, as its members learn them."""
        if name not in self._folds:
            self._folds[name] = self._encoded(name)
        return replace(self._folds[name], seed=seed, n_jobs=n_jobs)

    def held_out_features(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return features of every row as the fold that holds it out sees it, and their columns.

        Features that rest on labels are those of categories, by `held_out_log_odds`.
        """
        X, view = self.folds(name, 0, 1).X, self.views[name]
        features = np.flatnonzero(view.labels_of_ < 0)
        known = self.statistics
        log_odds = [self.held_out_log_odds(k) for k in range(len(known.known_))]
        sources = [*view.source_column_[features], *known.category_sources_]
        return np.column_stack([X[:, features], *log_odds]), np.array(sources, np.int64)

    def held_out_log_odds(self, category: int) -> np.ndarray:
        """Return the log-odds of a category of every row that a fold holds out, 0 elsewhere.

        Also 0 in folds that do not learn from the category.
        """
        found = np.zeros(self.rows.table.n_rows)
        for number in range(self.rows.n_folds):
            place = self.set_of(number)
            kept = self.statistics.labels_[place].kept_
            if category in kept:
                rows = np.flatnonzero(self.rows.held_out_fold == number)
                log_odds = self.encoded_table.of_labels[place].log_odds
                found[rows] = log_odds[rows, kept.index(category)]
        return found

    def in_time(self, number: int) -> FoldedRows:
        """Return the rows that a fold learns from in the order of time, which is known."""
        rows, moment = self.sets[number].rows, self.rows.moment
        assert moment is not None
        return self.rows.take(rows[np.argsort(moment[rows], kind="stable")])

    def set_of(self, number: int) -> int:
        """Return the number of the set of labels of a fold: all are one where no labels count."""
        return number if len(self.statistics.labels_) > 1 else 0

    def _encoded(self, name: str) -> "EncodedFolds":
        from rareclass.encoding.views import VIEWS
        from rareclass.ensemble.members.member import EncodedFolds

        rows, view = self.rows, VIEWS[name]()
        of_sets = [each.rows for each in self.sets]
        view.fit(self.encoded_table, rows.weight, self.statistics, of_sets)
        self.views[name], X = view, view.transform(self.encoded_table)
        every = EncodedFolds(X, rows.is_rare, rows.weight, rows.held_out_fold, 0, 1)
        features = [self._features_of(view, k) for k in range(rows.n_folds)]
        sees_all = all(len(each) == X.shape[1] for each in features)
        if sees_all and not self.statistics.n_words_:
            return every
        unseen = {k: self._as_unseen(view, k) for k in range(rows.n_folds)}
        if sees_all and not any(len(each.rows) for each in unseen.values()):
            return every
        return replace(every, features=features, unseen=unseen)

    def _features_of(self, view: Any, number: int) -> np.ndarray:
        features = view.features_of(self.set_of(number))
        known, left_out = self.statistics.columns_, self.left_out[number]
        columns = [k for k, (name, _) in enumerate(known) if name in left_out]
        sources = view.source_column_[features], view.second_column_[features]
        return features[~np.isin(sources, columns).any(axis=0)]

    def _as_unseen(self, view: Any, number: int) -> "RowsAsUnseen":
        """Return the held-out rows with words that the fold does not know."""
        from rareclass.encoding.views import MOST_VALUES_BOUNDED
        from rareclass.ensemble.members.member import RowsAsUnseen

        held_out = np.flatnonzero(self.rows.held_out_fold == number)
        encoded = self.encoded_table.take(held_out)
        seen = self.statistics.seen_in(self.set_of(number), encoded, MOST_VALUES_BOUNDED)
        differs = np.zeros(len(held_out), np.bool_)
        for own, other in zip(encoded.levels, seen.levels, strict=True):
            differs |= own != other
        changed = np.flatnonzero(differs)
        return RowsAsUnseen(held_out[changed], view.transform(seen.take(changed)))


class ViewsOfPart(TrainingViews):
    """Views of some of the rows of others, with labels of their own; nothing is fitted again.

    The encodings are those of all rows.
    """

    def __init__(self, views: TrainingViews, chosen: np.ndarray, is_rare: np.ndarray) -> None:
        weight = None if views.rows.weight is None else views.rows.weight[chosen]
        self.rows = views.rows.part(chosen, weight)._replace(is_rare=is_rare)
        self.statistics = views.statistics
        self._whole, self._chosen = views, chosen
        self._folds: dict[str, EncodedFolds] = {}

    def _encoded(self, name: str) -> "EncodedFolds":
        part = self._whole.folds(name, 0, 1).take(self._chosen, self.rows.weight)
        return replace(part, is_rare=self.rows.is_rare)


class HeldOutRows(NamedTuple):
    """Labels and weights of the training rows, and the rows that members are measured on.

    `is_rare` and `weight` (None: every row counts once) have an entry a training row. Under these
    weights the rows `tested`, row numbers, stand for all rows that folds hold out. `fold` of shape
    (n_rows,) is the fold that holds a row out; None where one function scored all tested rows.
    Scores are measured by the `objective`; draws are by the `seed`.
    """

    is_rare: np.ndarray
    weight: np.ndarray | None
    tested: np.ndarray
    fold: np.ndarray | None = None
    objective: "Scoring" = average_precision
    seed: int = 0

    @classmethod
    def of(cls, rows: FoldedRows, seed: int, objective: "Scoring") -> Self:
        """Take all rows that a fold holds out, or all rare ones and a draw of 100,000 others."""
        tested = np.flatnonzero(rows.held_out_fold >= 0)
        is_rare = rows.is_rare[tested]
        every = cls(rows.is_rare, rows.weight, tested, rows.held_out_fold, objective, seed)
        if len(tested) - int(is_rare.sum()) <= _MOST_HELD_OUT:
            return every
        return every.thinned(is_rare, _MOST_HELD_OUT)[1]

    def thinned(self, kept: np.ndarray, n_others: int) -> tuple[np.ndarray, Self]:
        """Keep the tested rows `kept` and draw others: their positions, and the rows.

        The draw stands for all of the others by its weight.
        """
        drawn = draw_majority(kept, self.tested_weight, n_others, self.seed)
        of_row = np.zeros(len(self.is_rare))
        of_row[self.tested[drawn.rows]] = drawn.weight
        return drawn.rows, self._replace(weight=of_row, tested=self.tested[drawn.rows])

    def measure(self, scores: np.ndarray, rows: np.ndarray | None = None) -> float:
        """Return the objective of scores of rows, by default of those tested; NaN for one class."""
        rows = self.tested if rows is None else rows
        y = self.is_rare[rows]
        if y.all() or not y.any():
            return float("nan")
        return self.objective(y, scores, None if self.weight is None else self.weight[rows])

    @property
    def tested_weight(self) -> np.ndarray | None:
        """Weights of the rows `tested`, if there are any."""
        return None if self.weight is None else self.weight[self.tested]
