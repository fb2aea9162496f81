"""Labels of rows: which are rare, and the rows that have them.

Which label is rare is decided here for everybody: `rare_among` by rows, `class_position` by name.
scikit-learn is imported on first use: it takes seconds.
"""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Complex, Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from narwhals.dependencies import get_pyarrow

from rareclass.errors import ErrorKind, InputError, counted, setting
from rareclass.findings import Finding, FindingKind, warn
from rareclass.labels.spelling import (
    codes_among,
    in_order,
    merge_spellings,
    missing_labels,
    plain,
    refuse_missing,
    refuse_two_words_for_yes,
    rows_of_each,
    unmasked,
)
from rareclass.labels.weights import row_weights

# More labels than this are a measurement, or names of rows.
MOST_CLASSES = 100
# With fewer rows the measures and the threshold of a class say little.
FEW_ROWS = 5
# Rows that are looked at together.
_STRETCH_ROWS = 2**16


def rarest(labels: Sequence[Any], count: Any, mass: Any = None) -> int:
    """Position of the rare label: the one of fewest rows.

    Equal numbers of rows are settled by `mass`, the weights of the rows (equal to a billionth),
    then by the order of the labels (`in_order`): the last one is rare.

    >>> rarest("ab", [5, 2]), rarest("ba", [3, 3]), rarest("ab", [2, 2], [1.0, 2.0])
    (1, 0, 0)
    """
    order = np.array(in_order(labels))
    count, mass = np.asarray(count)[order], np.asarray(count if mass is None else mass)[order]
    least = mass[count == count.min()].min()
    is_rare = (count == count.min()) & (mass - least <= 1e-9 * least + 1e-8)
    return int(order[is_rare][-1])


def rare_among(labels: Sequence[Any], count: Any, mass: Any = None) -> list[int]:
    """Positions of the rare labels: of two the `rarest`, of more all but the one of most rows.

    Equal numbers of rows are settled by `mass`, then by the order of the labels (`in_order`): of
    two the last is rare, of more the first is not. Raises `InputError` on too many labels; warns
    where the rare one of two has more weight.

    >>> rare_among(["b", "a"], [5, 5]), rare_among(["x", "y", "z"], [40, 35, 25])
    ([0], [1, 2])
    """
    if len(labels) > MOST_CLASSES:
        raise _too_many(len(labels))
    if len(labels) == 2:
        rare = rarest(labels, count, mass)
        if mass is not None and mass[rare] > mass[1 - rare] * (1.0 + 1e-9):
            warn(
                "the class with fewer rows counts as the rare one, though its rows weigh more in "
                "total. pos_label names the rare class.",
                finding=Finding(FindingKind.RARE_BY_ROWS, remedy={"pos_label": None}),
            )
        return [rare]
    order = in_order(labels)
    count, mass = np.asarray(count)[order], np.asarray(count if mass is None else mass)[order]
    rest = order[largest(count, mass)]
    return [k for k in range(len(labels)) if k != rest]


def _too_many(n_labels: int) -> InputError:
    return ErrorKind.LABELS.error(
        f"The target has {n_labels:,} labels, which are too many to be classes.",
        f"Give at most {MOST_CLASSES}: merge labels, cut numbers into classes, or name the rare "
        f"label with {setting('pos_label')}; {setting('method', 'ordinal-rankrc')} learns ordered "
        "levels.",
    )


def largest(first: np.ndarray, then: np.ndarray) -> int:
    """Position of the majority label: of most rows and then weight, or the other way round.

    Of equals the first.
    """
    tied = np.flatnonzero(np.isclose(first, np.max(first), rtol=1e-9))
    return int(tied[np.argmax(np.asarray(then)[tied])])


def class_position(pos_label: Any, classes: np.ndarray) -> int:
    """Position of the label that was named as the rare one; others than the classes are refused."""
    found = np.flatnonzero(classes == pos_label)
    if not len(found) and isinstance(pos_label, str):
        texts = [label if isinstance(label, str) else "" for label in classes.tolist()]
        found = np.array([*codes_among([pos_label], texts).values()])
    if not len(found):
        raise ErrorKind.LABELS.error(
            f"pos_label={pos_label!r} is not among the labels {classes.tolist()}.",
            "Name the rare one of them, or leave pos_label out.",
            value=pos_label,
        )
    return int(found[0])


class AllBut:
    """The numbers 0 to n_rows - 1 without some: reads like an increasing array, holds only those.

    The majority is nearly all of a table, and its row numbers took 4 bytes a row. Place p is the
    number p + k where k of those left out stand before it: left_out[j] - j <= p for j < k.

    Parameters
    ----------
    n_rows : int
    left_out : ndarray of int
        Increasing; those that are left out.

    Examples
    --------
    >>> rows = AllBut(6, np.array([0, 3]))
    >>> len(rows), rows[1:4].tolist(), np.asarray(rows).tolist()
    (4, [2, 4, 5], [1, 2, 4, 5])
    """

    def __init__(self, n_rows: int, left_out: np.ndarray) -> None:
        self.dtype = row_dtype(n_rows)
        self._n_rows, self._left_out = n_rows, left_out
        self._n_before = left_out - np.arange(len(left_out))

    def __len__(self) -> int:
        return self._n_rows - len(self._left_out)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("row numbers that are not in memory cannot be had without a copy.")
        return np.delete(np.arange(self._n_rows, dtype=dtype or self.dtype), self._left_out)

    def __getitem__(self, key: Any) -> Any:
        """Return the numbers at a slice, a mask, places, or a single place."""
        n = len(self)
        if isinstance(key, slice):
            start, stop, step = key.indices(n)
            if step == 1 and start < stop:  # few of those left out are looked up
                before, up_to = self._n_before.searchsorted([start, stop - 1], side="right")
                numbers = np.arange(start + before, stop + up_to, dtype=self.dtype)
                if up_to == before:
                    return numbers
                return np.delete(numbers, self._left_out[before:up_to] - numbers[0])
            key = np.arange(start, stop, step)
        places = np.asarray(key)
        if places.dtype == bool:
            return np.asarray(self)[places]
        if places.size and (places.min() < -n or places.max() >= n):
            raise IndexError(f"places must lie between 0 and {n - 1:,}.")
        places = np.where(places < 0, places + n, places)
        number = places + np.searchsorted(self._n_before, places, side="right")
        return number.astype(self.dtype)[()]

    def searchsorted(self, numbers: Any, side: Any = "left", sorter: None = None) -> Any:
        """How many are below a number (left), or at or below it (right)."""
        numbers = np.asarray(numbers)
        before = np.clip(numbers + (side == "right"), 0, self._n_rows)
        return before - np.searchsorted(self._left_out, before)


# What is indexed like an array of row numbers.
RowNumbers = np.ndarray | AllBut


def row_dtype(n_rows: int) -> type[np.signedinteger]:
    """Type of row numbers: int32 is half the bytes, where it reaches."""
    return np.int32 if n_rows < 2**31 else np.int64


class Labels(NamedTuple):
    """The labels in order, which of them are rare, and the rows that count.

    ``rare`` and ``majority`` are row numbers in increasing order, of rows with weight above 0. Of
    several rare labels, or levels, ``pos_label`` is the tuple of all but the majority's, in order,
    and ``codes`` the position among ``classes`` of each rare row's label.
    """

    classes: np.ndarray
    pos_label: Any
    rare: np.ndarray
    majority: RowNumbers
    rare_weight: np.ndarray
    majority_weight: np.ndarray | None  # None when every row counts once
    codes: Any = None  # an array; None of two labels

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the rows that count, in order."""
        return np.sort(np.concatenate([self.rare, self.majority]))

    def is_rare(self, n_rows: int) -> np.ndarray:
        """True for the rare rows of a table of so many rows."""
        is_rare = np.zeros(n_rows, dtype=bool)
        is_rare[self.rare] = True
        return is_rare

    def of_rows(self, rows: np.ndarray, weight: np.ndarray | None) -> "Labels":
        """Return the labels of some of the rows that count, numbered anew, with other weights."""
        is_rare = np.isin(rows, self.rare)
        place = np.searchsorted(self.rare, rows[is_rare])
        codes = None if self.codes is None else self.codes[place]
        return _held_apart(is_rare, weight, self.classes, self.pos_label)._replace(codes=codes)

    @property
    def majority_code(self) -> int:
        """Position among the classes of the one label that is not rare."""
        rare = self.pos_label if isinstance(self.pos_label, tuple) else (self.pos_label,)
        return next(k for k, label in enumerate(self.classes.tolist()) if label not in rare)

    @property
    def majority_label(self) -> Any:
        """The label that is not rare, as a user writes it."""
        return plain(self.classes[self.majority_code])


def read_labels(
    y: Any, sample_weight: Any, pos_label: Any, n_rows: int, several: bool = False
) -> Labels:
    """Find the rare label as `rare_among` does, or `pos_label`; with `several` more than one.

    Rows of weight 0 are left out. A list as `pos_label` names all of several rare labels and leaves
    one label for the rest. Warns where the label with fewer rows has more weight, and of rare
    labels of fewer than 5 rows among several.

    Raises `ValueError` on one class or more than two (where not `several`), a missing label, a
    `pos_label` that does not occur, a wrong length or a weight below zero; `InputError` where a
    list leaves no label or several for the rest, or the labels are too many to be classes.

    >>> found = read_labels(list("aaaaaaaabcbcbcbcbc"), None, None, 18, several=True)
    >>> found.pos_label, found.rare[:4].tolist(), found.codes[:4].tolist()
    (('b', 'c'), [8, 9, 10, 11], [1, 2, 1, 2])
    """
    y = label_column(y, n_rows)
    refuse_missing(y)
    weight = row_weights(sample_weight, n_rows, relative=True)
    kept = slice(None) if weight is None else np.flatnonzero(weight)
    classes, code = classes_of(y[kept])
    named = labels_named(pos_label) if several else None
    if len(classes) != 2 and (
        not several or len(classes) < 2 or (named is None and pos_label is not None)
    ):
        raise _not_two(classes, len(code))
    count = rows_of_each(code)
    if named is not None:
        rare = _positions_named(named, classes.tolist())
    elif pos_label is not None:
        rare = [class_position(pos_label, classes)]
    else:
        mass = None if weight is None else np.bincount(code, weight[kept])
        rare = rare_among(classes.tolist(), count, mass)
    rows = dict(zip(classes.tolist(), count.tolist(), strict=True))
    refuse_two_words_for_yes(classes[rare].tolist(), rows)
    if len(rare) == 1:
        is_rare = code if rare == [1] and code.dtype == bool else code == rare[0]
        return _held_apart(is_rare, weight, classes, classes[rare[0]])
    [rest] = set(range(len(classes))) - {*rare}
    found = all_but_one(classes, code, rest, weight)
    few = few_of({str(label): rows[label] for label in found.pos_label})
    if few:
        warn(words_of_few(few), finding=Finding(FindingKind.FEW_OF_CLASS, {"rows": few}))
    return found


def all_but_one(
    classes: np.ndarray, code: np.ndarray, majority: int, weight: np.ndarray | None
) -> Labels:
    """Return the rows of all labels but one; `code` is of the rows of weight above 0."""
    is_rare = code != majority
    labels = tuple(plain(label) for k, label in enumerate(classes) if k != majority)
    return _held_apart(is_rare, weight, classes, labels)._replace(codes=code[is_rare])


def labels_named(pos_label: Any) -> list[Any] | None:
    """Return labels that are named in a list; None where none is, or one by itself."""
    if isinstance(pos_label, str) or not isinstance(pos_label, Sequence | np.ndarray | set):
        return None
    return list(pos_label)


def _positions_named(named: list[Any], known: list[Any]) -> list[int]:
    """Return the positions of rare labels that a list names; one other label must be left."""
    rare = sorted({class_position(label, np.array(known, dtype=object)) for label in named})
    others = [known[k] for k in range(len(known)) if k not in rare]
    if len(others) != 1:
        left = "none" if not others else f"{len(others)} labels, {others}"
        raise ErrorKind.LABELS.error(
            f"pos_label must leave one label of frequent rows out, and leaves out {left}.",
            "Leave one label out of it; merge several that are not rare into one.",
            value=[plain(label) for label in named],
        )
    if len(known) > MOST_CLASSES:
        raise _too_many(len(known))
    return rare


def few_of(rows: dict[str, int]) -> dict[str, int]:
    """Return the rare classes with too few rows for sound measures, with their rows."""
    return {label: n for label, n in rows.items() if n < FEW_ROWS}


def words_of_few(few: dict[str, int]) -> str:
    """Return what to know of classes of few rows."""
    named = ", ".join(f"{label} ({counted(n, 'row')})" for label, n in few.items())
    return (
        f"rare classes of fewer than {FEW_ROWS} rows: {named}. Their probabilities and measures "
        "are rough."
    )


def _held_apart(
    is_rare: np.ndarray, weight: np.ndarray | None, classes: np.ndarray, pos_label: Any
) -> Labels:
    """Return the rows of both classes; `is_rare` has an entry for each row of weight above 0."""
    n_rows = len(is_rare if weight is None else weight)
    dtype = row_dtype(n_rows)
    if weight is None:
        found = [np.flatnonzero(is_rare[rows]) + rows.start for rows in _stretches(n_rows)]
        rare = np.concatenate(found).astype(dtype)
        return Labels(classes, pos_label, rare, AllBut(n_rows, rare), np.ones(len(rare)), None)
    rare, rest = (np.flatnonzero(weight)[rows].astype(dtype) for rows in (is_rare, ~is_rare))
    return Labels(classes, pos_label, rare, rest, weight[rare], weight[rest])


def classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels in order, and the position of the label of each row.

    Texts of the same value are one label (`merge_spellings`). O(n) for two labels, the usual case,
    which need no sorting of the rows; else O(n log n). Raises `InputError` as `refuse_fractions`.
    """
    classes, code = different(y)
    refuse_fractions(classes, "y", "pass words: [str(label) for label in y]")
    return merge_spellings(classes, code)


def refuse_fractions(numbers: np.ndarray, where: str, or_words: str) -> None:
    """Raise `InputError` where one of labels that all are numbers has a fraction, or is infinite.

    Of fractions this is scikit-learn's rule.
    """
    found = numbers.tolist() if numbers.dtype.kind == "f" else []
    for number in [each for each in found if not each.is_integer()][:1]:
        fault = f"Unknown label type: {number!r} in {where} is a measurement, and no class."
        remedy = f"Cut it into classes ({where} > limit), or {or_words}."
        raise ErrorKind.LABELS.error(fault, remedy, value=number)


def different(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different labels in order, and the position of the label of each row."""
    second = None
    for rows in _stretches(len(y)) if y.dtype != object else ():
        other = y[rows] != y[0]
        if other.any():
            second = rows.start + int(other.argmax())
            break
    if second is not None and all(
        ((y[rows] == y[0]) | (y[rows] == y[second])).all() for rows in _stretches(len(y))
    ):
        classes = np.sort(y[[0, second]])
        return classes, y == classes[1]
    if y.dtype == object and len({isinstance(label, str) for label in y}) > 1:
        # Text beside numbers has no order: numbers first, then by what is written.
        values = sorted(set(y.tolist()), key=lambda label: (isinstance(label, str), str(label)))
        place = {label: k for k, label in enumerate(values)}
        classes = np.empty(len(values), object)
        classes[:] = values
        return classes, np.array([place[label] for label in y])
    return np.unique(y, return_inverse=True)


def _not_two(classes: np.ndarray, n_rows: int) -> InputError:
    """Error for one label, or for more than two."""
    if len(classes) == 1:
        return one_only(plain(classes[0]), n_rows)
    return ErrorKind.LABELS.error(
        "Only binary classification is supported. The type of the target is multiclass with "
        f"{len(classes)} labels.",
        "Use y == label to learn one label against all others, OrdinalRankRC for ordered levels, "
        "or RareClassifier for several rare classes.",
    )


def one_only(label: Any, n_rows: int) -> InputError:
    """Return the error for a target with one label, of every row that counts."""
    return ErrorKind.LABELS.error(
        f"The target holds one class only: {label!r} in all {counted(n_rows, 'row')}.",
        "Two are needed, at least one row of each.",
        value=label,
    )


def _stretches(n_rows: int) -> list[slice]:
    """All rows, some at a time: of large arrays the allocator may keep what is freed."""
    return [slice(start, start + _STRETCH_ROWS) for start in range(0, n_rows, _STRETCH_ROWS)]


def label_column(y: Any, n_rows: int | None) -> np.ndarray:
    """Labels as an array of one a row; refuses None and a wrong length."""
    y = label_array(y)
    if y.ndim != 1:
        from sklearn.utils import column_or_1d

        y = column_or_1d(y, warn=True)
    if n_rows is not None and len(y) != n_rows:
        lengths = f"[{n_rows}, {len(y)}]"
        message = f"Found input variables with inconsistent numbers of samples: {lengths}."
        raise ErrorKind.ROWS.error(message, "Give a label for each row.")
    return y


def label_array(y: Any) -> np.ndarray:
    """Labels as an array in which a missing one can be told: beside text, NaN would become text.

    Objects that all are truth values, numbers or dates become those: pandas leaves such columns
    where it has dropped empty cells. Raises `InputError` on what is neither, nor a word.

    >>> label_array(np.array([True, False], object)).dtype.kind, label_array([1, "a"]).tolist()
    ('b', [1, 'a'])
    """
    if y is None:
        message = "requires y to be passed, but the target y is None."
        raise ErrorKind.LABELS.error(message, "Give a label for each row.")
    y = with_zone(y)
    array = np.asarray(unmasked(y))
    if array.dtype.kind == "U" and not isinstance(y, np.ndarray):
        objects = np.array(y, dtype=object)
        array = array if all(isinstance(label, str) for label in objects.flat) else objects
    if array.dtype.kind in "mSVc":
        array = np.array(unmasked(y), dtype=object)  # which is refused by the name of its type
    elif array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] != "D":
        return array.astype("M8[us]")  # Python has no nanoseconds
    if array.dtype != object or array.ndim != 1:
        return array
    missing = missing_labels(array)
    rows = np.delete(np.arange(len(array)), missing)
    labels = _plain_labels(array[rows], rows)
    return array if len(missing) else labels


def with_zone(values: Any) -> Any:
    """Return a column of times of a zone as those of Python: NumPy has no zone; others as are."""
    arrow = get_pyarrow()
    if arrow is not None and isinstance(values, arrow.Array):
        values = arrow.chunked_array([values])
    column = nw.from_native(values, series_only=True, pass_through=True)
    is_date = isinstance(column, nw.Series) and isinstance(column.dtype, nw.Datetime)
    if not is_date or column.dtype.time_zone is None:
        return values
    return np.array(column.to_list(), dtype=object)


def _plain_labels(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return truth values, numbers or dates as such; words, also beside numbers, as they are.

    Raises `InputError` on labels that are none of these, by the number of the row.
    """
    kinds = {type(label) for label in labels}
    if kinds and kinds <= {bool, np.bool_}:
        return labels.astype(bool)
    of_dates = bool(kinds) and all(issubclass(kind, date) for kind in kinds)
    fit = date if of_dates else (str, Real, Decimal, np.bool_)
    is_fit = not of_dates and all(issubclass(kind, fit) for kind in kinds)
    for row, label in () if is_fit else zip(rows.tolist(), labels, strict=True):
        has_zone = isinstance(label, datetime) and label.tzinfo is not None
        if has_zone or not isinstance(label, fit):
            name = type(label).__name__ + " with a time zone" * has_zone
            is_complex = isinstance(label, Complex)
            what = "Complex data not supported" if is_complex else "Unknown label type"
            raise ErrorKind.LABELS.error(
                f"{what}: the label of row {row} is a {name}.",
                "Give words, numbers or truth values, or dates throughout: pass [str(label) for "
                "label in y].",
                row=row,
            )
    if of_dates:
        return labels.astype("M8[us]" if any(issubclass(k, datetime) for k in kinds) else "M8[D]")
    if all(issubclass(kind, Real | Decimal) for kind in kinds):
        exact = (Decimal, Fraction)
        return np.array([float(each) if isinstance(each, exact) else each for each in labels])
    return labels
