"""An ordered target: its levels, which of them is summed, and the rows that are held."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, InputError, first_names, nearest_name, setting
from rareclass.labels.spelling import codes_among, label_value
from rareclass.labels.two_classes import (
    Labels,
    all_but_one,
    label_array,
    label_column,
    largest,
    missing_labels,
    plain,
    refuse_missing,
    row_weights,
)

# Past so many levels a target is a measurement, and each level costs a sort of the held rows.
_MOST_LEVELS = 1000
_SHOWN = 12


def read_levels(
    y: Any, sample_weight: Any = None, levels: Any = None, n_rows: int | None = None
) -> Labels:
    """Read an ordered target: the level with the greatest weight is the majority.

    Levels of equal weight are settled by the number of rows, then by the order: the first one is
    the majority.

    `y` is of numbers, booleans, an ordered categorical, or any labels with `levels`, which are in
    increasing order; None reads them from `y`, see `encode`. Rows of weight 0 are left out. There
    must be `n_rows`.

    Raises `ValueError` on fewer than two levels with rows, a missing label, one that is not among
    `levels` (naming row and value), text without `levels`, a wrong length or a weight below zero.

    >>> target = read_levels(["low", "low", "high"], levels=["low", "medium", "high"])
    >>> target.majority_label, target.rare.tolist(), target.codes.tolist()
    ('low', [2], [2])
    """
    levels = _order_of(y) if levels is None else levels
    y = label_column(y, n_rows)
    weight = row_weights(sample_weight, len(y), relative=True)
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    order, codes = _encode(y, levels, kept)
    count = np.bincount(codes, minlength=len(order))
    mass = count if weight is None else np.bincount(codes, weight[kept], len(order))
    if not count.any():
        raise ValueError("y is empty: rows of two levels or more are needed.")
    if np.count_nonzero(count) == 1:
        only = plain(order[int(np.argmax(count))])
        raise ValueError(
            f"the target holds one class only, {only!r}: there is nothing to rank it against. "
            "Rows of a second level are needed."
        )
    return all_but_one(order, codes, largest(mass, count), weight)


def encode(y: Any, levels: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The levels in order, and the position of each label among them.

    Without `levels` the order is that of numbers or booleans, or the one that an ordered
    categorical of pandas, or an Enum of polars, brings along. Words have none: "high" would come
    before "low". Texts that all are numbers are ordered by size, and texts of the same value are
    one level (`labels.spelling`).

    Raises `ValueError` on a missing label, one that is not among `levels` (naming row and value),
    or text without `levels`.

    >>> encode([3, 1, 3])
    (array([1, 3]), array([1, 0, 1]))
    >>> encode(["high", "low"], ["low", "medium", "high"])[1].tolist()
    [2, 0]
    """
    levels = _order_of(y) if levels is None else levels
    y = label_array(y)
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, but its shape is {y.shape}.")
    return _encode(y, levels, np.arange(len(y)))


def _order_of(y: Any) -> Sequence[Any] | None:
    """The order that a column brings along: an ordered categorical of pandas, an Enum of polars."""
    kind = getattr(y, "dtype", None)
    if getattr(kind, "ordered", False) or type(kind).__name__ == "Enum":
        return list(kind.categories)  # type: ignore[union-attr]
    return None


def _encode(y: np.ndarray, levels: Any, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The levels in order, and the position of the label of each of the rows that are kept."""
    y = y[kept]
    refuse_missing(y, kept=kept)
    # Each different label is looked up once: there are few, in any number of rows.
    found, inverse = _distinct(y)
    if levels is None and not any(isinstance(label, (str, bytes)) for label in found):
        levels, codes = np.unique(y, return_inverse=True)
        _refuse_measurements(levels, len(y))
        return levels, codes
    labels = [plain(label) for label in found]
    order = None if levels is None else _checked_levels(levels)
    names, code_of = order_labels(
        labels,
        None if order is None else [plain(level) for level in order],
        "y",
        lambda label: int(kept[np.argmax(inverse == labels.index(label))]),
    )
    if order is None:
        order = np.array(names)
        _refuse_measurements(order.astype(float), len(y))
    return order, np.array([code_of[label] for label in labels], dtype=np.intp)[inverse]


def _distinct(y: np.ndarray) -> tuple[list[Any], np.ndarray]:
    if y.dtype != object:
        found, inverse = np.unique(y, return_inverse=True)
        return list(found), inverse
    first: dict[Any, int] = {}
    inverse = np.array([first.setdefault(label, len(first)) for label in y], dtype=np.intp)
    return list(first), inverse


def _checked_levels(levels: Any) -> np.ndarray:
    if isinstance(levels, (str, bytes)) or not isinstance(levels, Iterable):
        raise ValueError(
            f"levels={levels!r} must be a sequence of labels in increasing order, such as "
            "['low', 'medium', 'high']."
        )
    if isinstance(levels, (set, frozenset)):
        raise ValueError(f"levels={levels!r} is a set, which has no order: pass a list.")
    array = label_array(levels if isinstance(levels, np.ndarray) else list(levels))
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(f"levels={array.tolist()!r} must be two labels or more.")
    missing = missing_labels(array)
    if len(missing):
        raise ValueError(f"levels[{missing[0]}] is missing: {array.tolist()!r}.")
    seen: dict[Any, int] = {}
    for k, level in enumerate(map(plain, array)):
        if seen.setdefault(level, k) != k:
            raise ValueError(f"levels holds {level!r} twice: at {seen[level]} and at {k}.")
    if array.dtype == object:  # text beside text is plain text, which every file format holds
        array = np.array(array.tolist()) if _all_text(array) else array
    return array


def order_labels(
    labels: Sequence[Any], levels: Sequence[Any] | None, where: str, row_of: Callable[[Any], int]
) -> tuple[Sequence[Any], dict[Any, int]]:
    """Return the levels of different labels in order, and the position of each label's level.

    Without `levels` all labels are texts of numbers, which are ordered by size; of a number written
    in several ways the shortest names the level. Errors name the first row of a label (`row_of`)
    of the column `where`.

    Raises `InputError` on other text without levels, and on a label of no level.

    >>> order_labels(["10", "9.0", "9"], None, "y", lambda label: 0)
    (['9', '10'], {'10': 1, '9.0': 0, '9': 0})
    """
    texts = [label for label in labels if isinstance(label, str)]
    if levels is not None:
        code_of = {level: code for code, level in enumerate(levels)}
        names = [level if isinstance(level, str) else "" for level in levels]
        code_of |= codes_among(texts, names)
        _refuse_unknown(labels, code_of, levels, where, row_of)
        return levels, code_of
    value_of = {label: label_value(label) for label in texts}
    numbers = {v for v in value_of.values() if isinstance(v, float) and np.isfinite(v)}
    words = [label for label in texts if value_of[label] not in numbers]
    if words or len(texts) < len(labels):
        first = min(words or texts or labels, key=row_of)
        is_text = first not in words or not isinstance(value_of[first], float)
        what = "is text, which has no order of its own" if is_text else "is not a level"
        raise InputError(
            f"row {row_of(first)} of {where}: {first!r} {what}.",
            "Correct it or leave it empty, or name all labels from the lowest to the highest "
            f"({setting('levels')}); there are {_shown(labels)}.",
            ErrorKind.LABELS,
            value=first,
        )
    place = dict[Any, int](zip(sorted(numbers), range(len(numbers)), strict=True))
    code_of = {label: place[value] for label, value in value_of.items()}
    spelled = [[x for x in texts if code_of[x] == code] for code in range(len(numbers))]
    return [min(each, key=len) for each in spelled], code_of


def _refuse_unknown(
    labels: Sequence[Any],
    code_of: dict[Any, int],
    levels: Sequence[Any],
    where: str,
    row_of: Callable[[Any], int],
) -> None:
    unknown = [label for label in labels if label not in code_of]
    if not unknown:
        return
    first = min(unknown, key=row_of)
    more = f" ({_shown(unknown)} are not)" if len(unknown) > 1 else ""
    near = nearest_name(first, levels) if _all_text([first, *levels]) else None
    raise InputError(
        f"row {row_of(first)} of {where}: {first!r} is not among the levels {_shown(levels)}"
        f"{more}.",
        (f"Did you mean {near!r}? " if near else "")
        + f"Add it at its place to {setting('levels')}, correct it, or leave such rows out.",
        ErrorKind.LABELS,
        value=first,
    )


def _refuse_measurements(found: np.ndarray, n_rows: int) -> None:
    whole = found.dtype.kind != "f" or bool((found == np.floor(found)).all())
    most = _MOST_LEVELS if whole else min(_MOST_LEVELS, max(n_rows // 2, _SHOWN))
    if len(found) > most:
        raise ValueError(
            f"Unknown label type: y holds {len(found):,} different numbers in {n_rows:,} rows, a "
            "measurement rather than levels. Cut it into levels first, with "
            "numpy.digitize(y, cuts) say."
        )


def _all_text(labels: Any) -> bool:
    return all(isinstance(label, str) for label in labels)


def _shown(labels: Sequence[Any]) -> str:
    return first_names([repr(plain(label)) for label in labels], _SHOWN)
