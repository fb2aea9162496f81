"""Labels of rows: which of two is rare, and the rows that have it, of a table or of a stream.

Which label is rare is decided here for everybody: `rarest` by rows, `class_position` by name,
`label_value` for labels that are text. scikit-learn is imported on first use: it takes seconds.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.findings import Finding, FindingKind, warn

# Rows that are looked at together.
_STRETCH_ROWS = 2**16
_LARGEST_EXACT = 2.0**53  # the number after it has the same float
_WHOLE = re.compile(r"([+-]?)0*(\d+)")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)


def rarest(count: Sequence[int] | np.ndarray, mass: Any = None) -> int:
    """Position of the rare label among labels in their order: the one of fewest rows.

    Equal numbers of rows are settled by `mass`, the weights of the rows (equal to a billionth),
    then by the order: the last one is rare.

    >>> rarest([5, 2]), rarest([3, 3]), rarest([2, 2], [1.0, 2.0])
    (1, 1, 0)
    """
    tied = np.flatnonzero(count == np.min(count))
    mass = np.asarray(count if mass is None else mass)[tied]
    least = mass.min()
    return int(tied[mass - least <= 1e-9 * least + 1e-8][-1])


def largest(first: np.ndarray, then: np.ndarray) -> int:
    """Position of the majority label: of most rows and then weight, or the other way round.

    Of equals the first.
    """
    tied = np.flatnonzero(np.isclose(first, np.max(first), rtol=1e-9))
    return int(tied[np.argmax(np.asarray(then)[tied])])


def warn_of_heavy_rare() -> None:
    """Warn that the class of fewer rows, which is rare, is not the one of least weight."""
    warn(
        "the class with fewer rows counts as the rare one, though its rows weigh more in total. "
        "pos_label names the rare class.",
        finding=Finding(FindingKind.RARE_BY_ROWS, remedy={"pos_label": None}),
    )


def class_position(pos_label: Any, classes: np.ndarray) -> int:
    """Position of the label that was named as the rare one; others than the classes are refused."""
    found = np.flatnonzero(classes == pos_label)
    if not len(found):
        raise InputError(
            f"pos_label={pos_label!r} is not among the labels {classes.tolist()}.",
            "Name the rare one of them, or leave pos_label out.",
            ErrorKind.LABELS,
            value=pos_label,
        )
    return int(found[0])


def label_value(text: str) -> float | str:
    """Value by which labels that are text are compared: files write 1 and 1.0, True and true.

    Case, spaces and the width of characters (NFKC) make no other label.

    >>> [label_value(text) for text in ("1", " 1.0 ", "Yes ", "+9007199254740993")]
    [1.0, 1.0, 'yes', '9007199254740993']
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).split())
    if not _NUMBER.fullmatch(plain):
        return plain.casefold()
    value, whole = float(plain), _WHOLE.fullmatch(plain)
    if whole is None or abs(value) < _LARGEST_EXACT:
        return value
    return whole[1].replace("+", "") + whole[2]  # floats do not tell such numbers apart


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


class HeldRows(Protocol):
    """Rows that are held, and rows that are summed: `Labels`, or `levels.Levels`."""

    @property
    def rare(self) -> np.ndarray:
        """Numbers of the rows that are held, increasing, of weight above 0."""

    @property
    def majority(self) -> RowNumbers:
        """Numbers of the rows that are summed, likewise."""

    @property
    def rare_weight(self) -> np.ndarray:
        """Weights of the rows that are held."""

    @property
    def majority_weight(self) -> np.ndarray | None:
        """Weights of the rows that are summed; None when every row counts once."""


class Labels(NamedTuple):
    """The two classes, which of them is rare, and the rows that count.

    ``rare`` and ``majority`` are row numbers in increasing order, of rows with weight above 0.
    """

    classes: np.ndarray
    pos_label: Any
    rare: np.ndarray
    majority: RowNumbers
    rare_weight: np.ndarray
    majority_weight: np.ndarray | None


def read_labels(y: Any, sample_weight: Any, pos_label: Any, n_rows: int) -> Labels:
    """Find the rare class: the label with fewer rows of weight above 0, or `pos_label`.

    Equal numbers are settled by weight, then by the order of the labels (the last one is rare).
    Warns where the label with fewer rows has more weight.

    Raises `ValueError` on one class or more than two, a missing label, a `pos_label` that does not
    occur, a wrong length or a weight below zero.
    """
    y, weight = labels_and_weights(y, sample_weight, n_rows)
    classes, code = classes_of(y if weight is None else y[np.flatnonzero(weight)])
    return labels_of_two(classes, code, weight, pos_label)


def labels_of_two(
    classes: np.ndarray, code: np.ndarray, weight: np.ndarray | None, pos_label: Any
) -> Labels:
    """`read_labels` of labels that were told apart (`classes_of`); `code` is of rows that count."""
    if len(classes) != 2:
        raise _not_two(classes, code)
    is_second = code if code.dtype == bool else code == 1
    if pos_label is not None:
        position = class_position(pos_label, classes)
    else:
        n_second = int(np.count_nonzero(is_second))
        mass = count = len(is_second) - n_second, n_second
        if weight is not None:
            kept = weight[np.flatnonzero(weight)]
            mass = kept[~is_second].sum(), kept[is_second].sum()
        position = rarest(count, mass)
        if mass[position] > mass[1 - position] * (1.0 + 1e-9):
            warn_of_heavy_rare()
    is_rare = is_second if position == 1 else ~is_second
    return held_apart(is_rare, weight, classes, classes[position])


def labels_and_weights(
    y: Any, sample_weight: Any, n_rows: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Read a label and a weight a row; refuses a missing label and what `row_weights` refuses."""
    y = label_column(None if y is None else np.asarray(y), n_rows)
    missing = missing_labels(y)
    if len(missing):
        raise no_label(missing[0])
    return y, row_weights(sample_weight, n_rows, relative=True)


def held_apart(
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

    O(n) for two labels, the usual case, which need no sorting of the rows; else O(n log n). Raises
    `ValueError` where the labels are a measurement (numbers with a fraction).
    """
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
        _refuse_measurements(classes)
        return classes, y == classes[1]
    if y.dtype == object and len({isinstance(label, str) for label in y}) > 1:
        # Text beside numbers has no order: numbers first, then by what is written.
        values = sorted(set(y.tolist()), key=lambda label: (isinstance(label, str), str(label)))
        place = {label: k for k, label in enumerate(values)}
        classes = np.empty(len(values), object)
        classes[:] = values
        return classes, np.array([place[label] for label in y])
    classes, code = np.unique(y, return_inverse=True)
    _refuse_measurements(classes)
    return classes, code


def _refuse_measurements(classes: np.ndarray) -> None:
    """Raise `ValueError` where labels are numbers with a fraction, or nothing that can be one."""
    from sklearn.utils.multiclass import check_classification_targets

    if classes.dtype.kind in "biuUS":
        return
    if classes.dtype.kind == "f":
        classes = classes[classes != np.floor(classes)]
    if len(classes):
        check_classification_targets(classes[:20])  # of more it says that they are many


def _not_two(classes: np.ndarray, code: np.ndarray) -> ValueError:
    """Error for one label, or for more than two."""
    from sklearn.utils.multiclass import type_of_target

    if len(classes) == 1:
        return ValueError(
            f"the target holds one class only, {plain(classes[0])!r}: there is nothing to rank it "
            "against. Rows of a second class are needed."
        )
    return ValueError(
        "Only binary classification is supported. The type of the target is "
        f"{type_of_target(code)} with {len(classes)} labels. Use y == label to learn one label "
        "against all others (--positive on the command line), OrdinalRankRC for levels that have "
        "an order, or RareClassifier for several rare classes."
    )


def _stretches(n_rows: int) -> list[slice]:
    """All rows, some at a time: of large arrays the allocator may keep what is freed."""
    return [slice(start, start + _STRETCH_ROWS) for start in range(0, n_rows, _STRETCH_ROWS)]


def no_label(row: int, instead: str = "") -> ValueError:
    """Error for a row without a label; `instead` says what else to do with such rows."""
    return ValueError(
        f"Input y contains NaN or infinity, or no label at all: row {row}. Drop the rows "
        f"without a label{instead}."
    )


def row_weights(sample_weight: Any, n_rows: int, relative: bool = False) -> np.ndarray | None:
    """The weight of every row, at or above 0; None without weights.

    `relative` divides them by the largest: only ratios count, and 1e160**2 does not fit.
    """
    if sample_weight is None:
        return None
    from sklearn.utils.validation import _check_sample_weight

    like = np.empty((n_rows, 0))
    weight = _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
    return weight / weight.max() if relative else weight


def label_column(y: Any, n_rows: int | None) -> np.ndarray:
    """Labels as an array of one a row; refuses None and a wrong length."""
    y = label_array(y)
    if y.ndim != 1 or y.dtype.kind == "c":
        from sklearn.utils import column_or_1d

        y = column_or_1d(y, warn=True)
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(y)}]"
        )
    return y


def label_array(y: Any) -> np.ndarray:
    """Labels as an array in which a missing one can be told: beside text, NaN would become text.

    Objects that all are truth values, or all numbers, become those: pandas leaves such columns
    where it has dropped empty cells. Refuses None.

    >>> label_array(np.array([True, False], object)).dtype.kind, label_array([1, "a"]).tolist()
    ('b', [1, 'a'])
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    array = np.asarray(y)
    if array.dtype.kind == "U" and not isinstance(y, np.ndarray):
        array = np.array(y, dtype=object)
    if array.dtype != object or array.ndim != 1 or len(missing_labels(array)):
        return array
    kinds = {type(label) for label in array}
    if kinds and kinds <= {bool, np.bool_}:
        return array.astype(bool)
    if all(issubclass(kind, Real | Decimal) for kind in kinds):
        return np.array([_plain_number(label) for label in array])
    return array


def _plain_number(label: Any) -> float | int:
    return float(label) if isinstance(label, Decimal | Fraction) else label


def missing_labels(y: np.ndarray) -> np.ndarray:
    """Rows whose label is None, NaN, infinite, or a missing value of pandas."""
    if y.dtype.kind == "f":
        return np.flatnonzero(~np.isfinite(y))
    if y.dtype != object:
        return np.empty(0, dtype=int)
    names = ("NoneType", "NAType", "NaTType")
    return np.flatnonzero(
        [type(v).__name__ in names or (isinstance(v, float) and not np.isfinite(v)) for v in y]
    )


def two_labels(classes: Any) -> np.ndarray:
    """The two labels that a stream will have, sorted.

    Raises `ValueError` on fewer or more than two, a missing one, or text beside a number: these two
    would compare as text, and no number among the labels to come would be found.

    >>> two_labels(("ok", "fraud")).tolist()
    ['fraud', 'ok']
    """
    wanted = f"classes={classes!r} must be two labels, e.g. classes=[0, 1]"
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ValueError(f"{wanted}.")
    each = list(classes) if isinstance(classes, (set, frozenset)) else classes
    one_by_one = np.ravel(np.array(list(each), dtype=object))
    if len(missing_labels(one_by_one)):
        raise ValueError(
            f"{wanted}; one of them is missing. Rows without a label need no class: see "
            "test_then_train."
        )
    if len({isinstance(label, (str, bytes)) for label in one_by_one}) > 1:
        raise ValueError(f"{wanted}, both text or both not.")
    labels = np.unique(np.asarray(each))
    if len(labels) != 2:
        raise ValueError(f"{wanted}; there are {len(labels)}.")
    return labels


def signs(y: np.ndarray, classes: np.ndarray, pos_label: Any) -> np.ndarray:
    """+1 for rows with the rare label, -1 for those with the other, 0 where there is none.

    Raises `ValueError` on a label that is not among the classes, naming row and label.

    >>> signs(np.array([1.0, np.nan, 0.0]), np.array([0, 1]), 1).tolist()
    [1, 0, -1]
    """
    missing = missing_labels(y)  # some of which cannot be compared
    labelled = np.delete(np.arange(len(y)), missing) if len(missing) else slice(None)
    known, rest = y[labelled], classes[int(classes[0] == pos_label)]
    sign = (known == pos_label).astype(np.int8) - (known == rest).astype(np.int8)
    unknown = np.flatnonzero(sign == 0)
    if len(unknown):
        row = np.arange(len(y))[labelled][unknown[0]]
        raise ValueError(
            f"row {row}: label {plain(y[row])!r} is not among the classes "
            f"{classes.tolist()}. Labels must be of the same kind and spelling as the classes; "
            "leave other rows out."
        )
    if not len(missing):
        return sign
    signs_of_all = np.zeros(len(y), np.int8)
    signs_of_all[labelled] = sign
    return signs_of_all


class StreamLabels(NamedTuple):
    """Two labels, sorted, and the rare one of them."""

    classes: np.ndarray
    rare: Any

    @classmethod
    def named(cls, classes: Any, pos_label: Any) -> Self:
        """The labels that are to come; the rare one is `pos_label`, or the last where it is None.

        Raises `ValueError` on anything but two labels, or when `pos_label` is neither.
        """
        labels = two_labels(classes)
        return cls(labels, labels[1 if pos_label is None else class_position(pos_label, labels)])

    @classmethod
    def of_call(cls, classes: Any, pos_label: Any, before: Self | None) -> Self:
        """The labels of a call of `partial_fit`: the first one names them, later ones may.

        Raises `ValueError` when the first call (no labels `before`) names none, a later one others.
        """
        if before is None and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if before is None:
            return cls.named(classes, pos_label)
        if classes is not None and not np.array_equal(two_labels(classes), before.classes):
            raise ValueError(f"classes={classes!r} is not {before.classes.tolist()} as before.")
        return before

    def signs(
        self, y: Any, n_rows: int, *, unlabelled: bool = False, instead: str = ""
    ) -> np.ndarray:
        """+1 for rare rows, -1 for the majority, 0 where there is no label.

        Raises `ValueError` when there is not one label a row, one is not of the two, or one is
        missing where none may be; `instead` says what else to do with such rows.
        """
        if y is None and unlabelled:
            raise ValueError(
                "requires y to be passed, but the target y is None: pass a label a row (None "
                "where there is none), or use score_samples."
            )
        y = label_column(y, n_rows)
        if not unlabelled:
            missing = missing_labels(y)
            if len(missing):
                raise no_label(missing[0], instead)
        return signs(y, self.classes, self.rare)


def plain(label: Any) -> Any:
    """A label as a user writes it: 1, and not np.int64(1)."""
    return label.item() if isinstance(label, np.generic) else label
