"""Labels, scores and weights checked, split by class, and reduced to what ranking measures need."""

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rareclass.errors import ErrorKind
from rareclass.folds.dealing import group_numbers
from rareclass.labels.spelling import missing_labels
from rareclass.labels.two_classes import label_array
from rareclass.labels.weights import refuse_amounts

FloatArray = NDArray[np.float64]
# Rows from which on the search is worth the loading of compiled code: that takes 5 to 20 ms where
# the process has fitted a model, 0.4 s where nothing else needed numba. Once loaded, the search is
# the faster way at any size; this many rows take 3 to 8 ms against 10 to 25 ms. Only the size
# decides, so that equal rows give equal last digits.
_SEARCH_FROM = 200_000


class ScoredClasses(NamedTuple):
    """The scores of each class; rows of weight 0 are left out."""

    rare: FloatArray  # shape (n_rare,): in row order
    majority: FloatArray  # shape (n_majority,)
    rare_weight: FloatArray | None  # all positive; None when every row counts once
    majority_weight: FloatArray | None


def split_scores(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> ScoredClasses:
    """Check the three columns against each other and split the scores by class.

    `y` is 1 or True where the row is rare; higher scores mean rarer, infinite ones are allowed, NaN
    is not; weights are copies, and need not be whole. Refuses empty or mismatched columns, other
    labels, weights that are negative or not finite, and a class with no row of positive weight. One
    pass, O(n) time and memory.
    """
    value, weight = check_scores(scores, sample_weight)
    rare, majority = by_class("scores", label_column(y, value.size), weight, [value, weight])
    return ScoredClasses(rare[1], majority[1], rare[2], majority[2])


def by_class(
    scores: str, label: NDArray[np.bool_], weight: FloatArray | None, columns: Sequence[Any]
) -> list[list[Any]]:
    """Return for each class which rows are of it, those of weight 0 left out, and its columns.

    Refuses no rows, naming the column of `scores`, and rows of one class only.
    """
    if not label.size:
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"{scores} is empty.",
            "At least one rare row and one other row are needed.",
            column=scores,
        )
    kept = None if weight is None else weight > 0
    parts: list[list[Any]] = []
    for name, mask in (("rare (y = 1)", label), ("majority (y = 0)", ~label)):
        own = mask if kept is None else mask & kept
        if not own.any():
            of_weight = "" if weight is None else " of positive weight"
            raise ErrorKind.LABELS.error(
                f"y holds no {name} row{of_weight}: both classes are needed.",
                "Pass y == rare_label, of rows of both.",
                column="y",
            )
        # compress() takes 0.4 of the time of column[own] where the classes are mixed.
        parts.append([own, *(None if each is None else each.compress(own) for each in columns)])
    return parts


def check_scores(
    scores: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray | None]:
    """Scores and weights as columns of float64.

    Refuses NaN scores, weights that are negative or not finite, and columns of different lengths.
    """
    value = score_column(scores)
    return value, weight_column(sample_weight, value.size)


def score_column(
    scores: ArrayLike, name: str = "scores", n_rows: int | None = None, beside: str = "y"
) -> FloatArray:
    """Scores as a column of float64, infinite ones allowed; NaN is refused."""
    value = read_column(scores, name, n_rows, beside, np.float64)
    _refuse(np.isnan(value), value, name, "is NaN", "Drop or repair the row.")
    return value


def amount_column(amounts: ArrayLike, name: str, n_rows: int) -> FloatArray:
    """One finite number of at least 0 for each row: weights, costs."""
    column = read_column(amounts, name, n_rows, "scores", np.float64)
    refuse_amounts(column, name)
    return column


def weight_column(sample_weight: ArrayLike | None, n_rows: int) -> FloatArray | None:
    """Weights as `amount_column` has them; None where every row counts once."""
    return None if sample_weight is None else amount_column(sample_weight, "sample_weight", n_rows)


def label_column(
    y: ArrayLike, n_rows: int | None = None, beside: str = "scores"
) -> NDArray[np.bool_]:
    """True where the label is 1 or True; anything but 0 and 1 is refused."""
    label = read_column(y, "y", n_rows, beside)
    if label.dtype == object:
        bad = np.isin(np.arange(len(label)), missing_labels(label))
        _refuse(bad, label, "y", "is not a label", "Leave the row out.")
        label = label_array(label)
    if label.dtype == np.bool_:
        return label
    ones = np.asarray(label == 1, dtype=np.bool_)
    bad = ~(ones | np.asarray(label == 0, dtype=np.bool_))
    _refuse(bad, label, "y", "is neither 1 (rare) nor 0", "Pass y == rare_label.")
    return ones


def read_column(
    values: ArrayLike,
    name: str,
    n_rows: int | None = None,
    beside: str = "scores",
    dtype: DTypeLike | None = None,
) -> NDArray[Any]:
    """Array of one dimension; refuses what is none, or has other rows than the column `beside`."""
    try:
        column = np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ErrorKind.CELL.error(f"{name} must be numbers: {error}.", "", column=name) from error
    if column.ndim != 1:
        raise ErrorKind.SHAPE.error(
            f"{name} must have one dimension, but its shape is {column.shape}.",
            "Pass one value a row.",
            column=name,
        )
    if n_rows is not None and column.size != n_rows:
        raise ErrorKind.ROWS.error(
            f"{name} has {column.size} rows, but {beside} has {n_rows}.",
            "Pass columns of the same rows.",
            column=name,
        )
    return column


def _refuse(
    bad: NDArray[np.bool_], column: NDArray[Any], name: str, complaint: str, remedy: str
) -> None:
    if bad.any():
        row = int(bad.argmax())
        more = int(bad.sum()) - 1
        others = f" ({more} more such rows)" if more else ""
        value = column.item(row)
        raise ErrorKind.CELL.error(
            f"{name}[{row}] = {value!r} {complaint}{others}.",
            remedy,
            column=name,
            row=row,
            value=value,
        )


class ClassPair(NamedTuple):
    """The rows of one class; rows of weight 0 are left out."""

    mask: NDArray[np.bool_]  # which of the rows given they are, in the same order
    a: FloatArray  # shape (n,): scores
    b: FloatArray
    weight: FloatArray | None  # all positive; None when every row counts once
    group: NDArray[np.intp] | None  # codes 0 .. n_groups - 1, the same in both classes

    @property
    def mass(self) -> float:
        """Total weight."""
        return float(self.a.size if self.weight is None else self.weight.sum())

    def weights(self) -> FloatArray:
        """Weight of each row."""
        return np.ones(self.a.size) if self.weight is None else self.weight


class ScoredPair(NamedTuple):
    """Both score columns, by class."""

    rare: ClassPair
    majority: ClassPair
    n_groups: int  # 0 where rows are independent
    n_rows: int  # of the columns given

    @property
    def columns(self) -> list[ScoredClasses]:
        """Either column of scores, by class."""
        weights = self.rare.weight, self.majority.weight
        scores = (self.rare.a, self.majority.a), (self.rare.b, self.majority.b)
        return [ScoredClasses(*each, *weights) for each in scores]

    def ranks_alike(self) -> bool:
        """Say whether both columns have the same order of all rows, ties included."""
        a, b = (np.concatenate(column[:2]) for column in self.columns)
        order = np.argsort(a, kind="stable")
        a, b = a[order], b[order]
        is_above = np.array_equal(a[1:] > a[:-1], b[1:] > b[:-1])
        return is_above and not (b[1:] < b[:-1]).any()


def split_pair(
    y: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    name: str = "scores_a",
) -> ScoredPair:
    """Check the columns against each other and split them by class.

    As `split_scores`, for two columns of scores, and a column of groups that may hold numbers or
    names but no missing ones. Errors call the first column of scores `name`. O(n) time and memory;
    groups are sorted.
    """
    a = score_column(scores_a, name)
    b = score_column(scores_b, "scores_b", a.size, name)
    label = label_column(y, a.size, name)
    weight, group, n_groups = weight_column(sample_weight, a.size), None, 0
    if groups is not None:
        group, n_groups = group_codes(groups, a.size, ... if weight is None else weight > 0)
    rare, majority = by_class(name, label, weight, [a, b, weight, group])
    return ScoredPair(ClassPair(*rare), ClassPair(*majority), n_groups, a.size)


def group_codes(
    groups: ArrayLike, n_rows: int, kept: NDArray[np.bool_] | EllipsisType = ...
) -> tuple[NDArray[np.intp], int]:
    """Numbers of the groups among the rows kept, and how many they are; see `group_numbers`."""
    number = group_numbers(read_column(groups, "groups", n_rows, "y"), n_rows)
    codes = np.zeros(n_rows, np.intp)
    names, codes[kept] = np.unique(number[kept], return_inverse=True)
    return codes, len(names)


class RareCells(NamedTuple):
    """Weights of both classes around the d distinct rare scores.

    Every measure of a ranking is a function of how many majority rows lie above, at and below each
    rare score. Where exactly they lie between two neighbouring rare scores changes nothing, so n
    rows become 2 d + 1 cells: gap 0, tie 0, gap 1, tie 1, ..., gap d. No score is rounded or put in
    a bin.
    """

    scores: FloatArray  # shape (d,): of the rare rows, distinct, ascending
    rare: FloatArray  # shape (d,): weight of the rare rows at each
    tied: FloatArray  # shape (d,): weight of the majority rows at each
    # shape (d + 1,), of the majority strictly between: gaps[i] just below scores[i], gaps[d] above
    # all
    gaps: FloatArray

    @property
    def n_rare(self) -> float:
        """Total weight of the rare rows."""
        return float(self.rare.sum())

    @property
    def n_majority(self) -> float:
        """Total weight of the majority rows."""
        return float(self.tied.sum() + self.gaps.sum())

    def rare_from(self) -> FloatArray:
        """Weight of the rare rows that score at least ``scores[i]``; shape (d,)."""
        return np.cumsum(self.rare[::-1])[::-1]

    def majority_from(self) -> FloatArray:
        """Weight of the majority rows that score at least ``scores[i]``; shape (d,)."""
        return np.cumsum((self.tied + self.gaps[1:])[::-1])[::-1]

    def majority_below(self) -> FloatArray:
        """Weight of the majority rows below ``scores[i]``, ties counting one half; shape (d,)."""
        return np.cumsum(self.gaps[:-1]) + np.cumsum(self.tied) - self.tied / 2


def cells_of(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> RareCells:
    """Count both classes around the rare scores, from columns as `split_scores` takes them."""
    return place_rows(split_scores(y, scores, sample_weight)).cells


class PlacedRows(NamedTuple):
    """Both classes counted around the rare scores, and the place of each row."""

    cells: RareCells
    rare_at: NDArray[np.intp]  # of each rare row among the distinct rare scores
    majority_at: NDArray[np.int64]  # cell of each majority row: gap 0, tie 0, gap 1, ..., gap d


def place_rows(split: ScoredClasses) -> PlacedRows:
    """Count both classes around the d distinct rare scores: O(n log n_rare) time, O(n) memory."""
    distinct, rare_at = np.unique(split.rare, return_inverse=True)
    compiled = is_worth_compiling(split.rare.size + split.majority.size)
    majority_at = find_cells(distinct, split.majority, compiled)
    rare = np.bincount(rare_at, split.rare_weight, distinct.size).astype(float)
    n_cells = 2 * distinct.size + 1
    counts = np.bincount(majority_at, split.majority_weight, n_cells).astype(float)
    cells = RareCells(distinct, rare, tied=counts[1::2], gaps=counts[0::2])
    return PlacedRows(cells, rare_at, majority_at)


def find_cells(distinct: FloatArray, scores: FloatArray, compiled: bool) -> NDArray[np.int64]:
    """Cell of each row: gap 0, tie 0, gap 1, tie 1, ..., gap d; O(n log d) time."""
    if compiled:
        # Not at the top: numba takes longer to load than small samples take to sort.
        from rareclass.metrics import _ranking_jit as jit

        cell = np.empty(scores.size, np.int64)
        jit.find_cells(distinct, scores, cell)
        return cell
    left = np.searchsorted(distinct, scores)
    return 2 * left + (distinct[np.minimum(left, distinct.size - 1)] == scores)


def is_worth_compiling(n_rows: int) -> bool:
    """Return whether so many rows make up for the loading of compiled code."""
    return n_rows >= _SEARCH_FROM
