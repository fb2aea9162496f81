"""The rows that an ensemble learns from and is measured on: typed, weighted, in folds, encoded."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.folds.dealing import dealt, places, read_times, stretches
from rareclass.folds.majority_part import draw_majority
from rareclass.labels.two_classes import Labels, read_labels, row_weights
from rareclass.parameters import is_whole
from rareclass.rows import LabelledRows, RowSource
from rareclass.rows.source import is_dask

if TYPE_CHECKING:
    from rareclass.encoding.label_statistics import TrainingPart
    from rareclass.encoding.typed_table import TypedTable
    from rareclass.ensemble.members.member import EncodedFolds, RowsAsUnseen
    from rareclass.ensemble.plan import TableShape
    from rareclass.estimators.search import Fold, Scoring

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
    def shape(self) -> "TableShape":
        """Rows, rare rows and columns, for the plan."""
        from rareclass.ensemble.plan import TableShape

        return TableShape(self.table.n_rows, int(self.is_rare.sum()), len(self.table.columns))

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
    from rareclass.ensemble.plan import folds_of

    given = FitInput(given.X, *map(_here, given[1:]))
    number, weight = _drawn_part(given, cv, pos_label, seed)
    y, groups, time = (
        column if column is None or number is None else np.asarray(column)[number]
        for column in (given.y, given.groups, given.time)
    )
    table = read_table(_here(given.X, number))
    labels, which = read_labels(y, weight, pos_label, table.n_rows, several=True), None
    is_rare = np.zeros(table.n_rows, dtype=bool)
    is_rare[labels.rare] = True
    if labels.codes is not None:
        which = np.full(table.n_rows, -1, dtype=np.int16)
        which[labels.rare] = np.unique(labels.codes, return_inverse=True)[1]
    number = np.arange(table.n_rows) if number is None else number
    group: Any = None
    time = None if time is None else places(read_times(time, table.n_rows), table.n_rows, "time")
    groups = None if groups is None else places(groups, table.n_rows, "groups")
    weight, fold = row_weights(weight, table.n_rows), np.full(table.n_rows, ALWAYS_LEARNED)
    rows = FoldedRows(table, is_rare, weight, fold, number, which=which)
    if isinstance(cv, (str, int, np.integer)):
        group = table.groups_of_equal(groups, time)
        kept = np.sort(np.concatenate([labels.rare, labels.majority]))
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
    return _weighed(rows, np.sort(np.concatenate([labels.rare, labels.majority]))), labels


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
    is_rare = np.zeros(n_rows, dtype=bool)
    is_rare[labels.rare] = True
    return draw_majority(is_rare, row_weights(given.weight, n_rows), n_majority, seed)


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
        X = view.fit_transform(
            self.encoded_table, rows.is_rare, rows.weight, rows.fold, self.statistics,
            [each.rows for each in self.sets],
        )  # fmt: skip
        self.views[name] = view
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
    """

    is_rare: np.ndarray
    weight: np.ndarray | None
    tested: np.ndarray
    fold: np.ndarray | None = None

    @classmethod
    def of(cls, rows: FoldedRows, seed: int) -> "HeldOutRows":
        """Take all rows that a fold holds out, or all rare ones and a draw of 100,000 others."""
        tested = np.flatnonzero(rows.held_out_fold >= 0)
        is_rare = rows.is_rare[tested]
        every = cls(rows.is_rare, rows.weight, tested, rows.held_out_fold)
        if len(tested) - int(is_rare.sum()) <= _MOST_HELD_OUT:
            return every
        return every.thinned(is_rare, _MOST_HELD_OUT, seed)[1]

    def thinned(self, kept: np.ndarray, n_others: int, seed: int) -> tuple[np.ndarray, Self]:
        """Keep the tested rows `kept` and draw others: their positions, and the rows.

        The draw stands for all of the others by its weight.
        """
        drawn = draw_majority(kept, self.tested_weight, n_others, seed)
        of_row = np.zeros(len(self.is_rare))
        of_row[self.tested[drawn.rows]] = drawn.weight
        return drawn.rows, self._replace(weight=of_row, tested=self.tested[drawn.rows])

    def measure(
        self, objective: "Scoring", scores: np.ndarray, rows: np.ndarray | None = None
    ) -> float:
        """Return the objective of scores of rows, by default of those tested; NaN for one class."""
        rows = self.tested if rows is None else rows
        y = self.is_rare[rows]
        if y.all() or not y.any():
            return float("nan")
        return objective(y, scores, None if self.weight is None else self.weight[rows])

    @property
    def tested_weight(self) -> np.ndarray | None:
        """Weights of the rows `tested`, if there are any."""
        return None if self.weight is None else self.weight[self.tested]


_PARTS = 5
# The fold of rows that every fold learns from, and none scores.
ALWAYS_LEARNED = -1


def fold_numbers(
    cv: Any,
    labels: Labels,
    n_rows: int,
    seed: int,
    groups: Any = None,
    time: Any = None,
    which: np.ndarray | None = None,
) -> np.ndarray:
    """Return the number of the fold that holds each row out, of shape (n_rows,), from 0 on.

    Stratified and shuffled; rows of a group stay together; with `time` a fold is a stretch of it.
    A single rare row is always learned from. Whatever the folds, both classes are among the rows
    that a fold does not hold out. `which` of shape (n_rows,), -1 for the majority, spreads the rows
    of each of several rare classes over the folds.

    Raises `ValueError` on a `cv` that is none, and `InputError` where `cv` holds a row out twice or
    leaves rows out which it does not test, and where groups or times do not fit the rows or leave
    too few folds.
    """
    from rareclass.estimators.search import make_folds

    is_count = isinstance(cv, (bool, int, np.integer))
    _check(cv, labels, is_count, groups is not None, time is not None)
    is_rare = np.zeros(n_rows, dtype=bool)
    is_rare[labels.rare] = True
    if is_count and len(labels.rare) == 1:  # folds of the majority alone
        number = np.full(n_rows, ALWAYS_LEARNED)
        n_majority = len(labels.majority)
        order = np.random.default_rng(seed).permutation(n_majority)
        number[labels.majority] = order % min(int(cv), n_majority)
        return number
    if time is not None:
        moment = places(read_times(time, n_rows), n_rows, "time")
        return _split(labels, "time", partial(stretches, int(cv)), is_rare, moment)
    if groups is not None:
        groups = group = places(groups, n_rows, "groups")
        if is_count:
            n_folds = min(int(cv), len(np.unique(group[labels.rare])))
            return _split(labels, "groups", partial(dealt, n_folds, seed), is_rare, group)
    if is_count:
        cv = min(int(cv), len(labels.rare), len(labels.majority))
    folds = make_folds(cv, labels, n_rows, seed, "more rows", which, groups)
    return _as_numbers(folds, labels, n_rows)


def _check(cv: Any, labels: Labels, is_count: bool, has_groups: bool, has_time: bool) -> None:
    if has_groups and has_time:
        raise InputError(
            "groups and time are both given.", "Give one of them.", ErrorKind.COMBINATION
        )
    if has_time and not is_count:
        raise InputError(
            f"cv={cv!r} is not a whole number, which folds by time need.",
            "Give a number of folds, or no time.",
            ErrorKind.COMBINATION,
            value=cv,
        )
    if is_count and not is_whole(cv, 2):
        raise InputError(
            f"cv={cv!r} is not at least 2 folds.", "Give 2 or more.", ErrorKind.SETTING, value=cv
        )
    if is_count and len(labels.majority) < 2:
        raise InputError(
            "The majority has 1 row of weight above 0, which cannot be both trained on and held "
            "out.",
            "Give more majority rows.",
            ErrorKind.TOO_FEW_ROWS,
        )


def _as_numbers(folds: "list[Fold]", labels: Labels, n_rows: int) -> np.ndarray:
    """Return numbers of folds that each learn from all rows but those that they test."""
    kept = np.sort(np.concatenate([labels.rare, labels.majority]))
    number = np.full(n_rows, ALWAYS_LEARNED)
    for k, fold in enumerate(folds):
        twice = np.flatnonzero(fold.tested & (number >= 0))
        if len(twice):
            raise InputError(
                f"cv holds row {twice[0]} out twice.",
                "Give folds that hold each row out once at most.",
                ErrorKind.ROWS,
                row=int(twice[0]),
            )
        idle = kept[(fold.held_out & ~fold.tested)[kept]]
        if len(idle):
            raise InputError(
                f"Fold {k + 1} of cv neither learns from nor tests {counted(len(idle), 'row')}, "
                f"the first of them row {idle[0]}.",
                "Give folds that learn from all rows but those that they test. For folds by time, "
                "pass time to fit.",
                ErrorKind.ROWS,
                row=int(idle[0]),
            )
        number[fold.tested] = k
    return number


def _split(
    labels: Labels,
    name: str,
    split: Callable[[np.ndarray, np.ndarray], np.ndarray],
    is_rare: np.ndarray,
    place: np.ndarray,
) -> np.ndarray:
    """Split the rows that count by group or time, so that each fold leaves both classes."""
    kept = np.sort(np.concatenate([labels.rare, labels.majority]))
    number = np.full(len(is_rare), ALWAYS_LEARNED)
    number[kept] = split(is_rare[kept], place[kept])
    for kind, rows in (("rare", labels.rare), ("majority", labels.majority)):
        if len(np.unique(number[rows])) == 1:
            raise InputError(
                f"{name} puts all {kind} rows into one fold, which would have none to learn from.",
                f"Fit without {name}.",
                ErrorKind.TOO_FEW_ROWS,
            )
    return number


def parts_of_rows(
    n_rows: int, seed: int, groups: np.ndarray | None = None, time: np.ndarray | None = None
) -> np.ndarray:
    """Return parts of the rows, of shape (n_rows,), where folds are too few to be parts.

    Dealt at random; rows of a group are in one part, and with `time` a part is a stretch of it.
    Groups and times are numbered from 0 on.
    """
    if time is not None:
        return time * _PARTS // (int(time.max()) + 1)
    group = np.arange(n_rows) if groups is None else groups
    return np.random.default_rng(seed).permutation(int(group.max()) + 1)[group] % _PARTS
