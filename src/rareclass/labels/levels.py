"""An ordered target: its levels, which of them is summed, and the rows that are held."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, first_names, nearest_name, setting
from rareclass.labels.spelling import (
    codes_among,
    label_value,
    missing_labels,
    plain,
    refuse_missing,
    rows_of_each,
)
from rareclass.labels.two_classes import (
    Labels,
    all_but_one,
    different,
    label_array,
    label_column,
    largest,
    one_only,
    row_weights,
)

# A target of more different numbers is a measurement: each level costs a sort of the held rows.
MOST_LEVELS = 100
_MOST_MEASURED = 1000  # of rows that a ranking is measured on
_SHOWN = 12
_COLUMN = "Unknown label type: y"  # scikit-learn's words


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
    `levels` (naming row and value), text or a measurement without `levels` (`refuse_measurements`),
    a wrong length or a weight below zero.

    >>> target = read_levels(["low", "low", "high"], levels=["low", "medium", "high"])
    >>> target.majority_label, target.rare.tolist(), target.codes.tolist()
    ('low', [2], [2])
    """
    levels = _order_of(y) if levels is None else levels
    y = label_column(y, n_rows)
    weight = row_weights(sample_weight, len(y), relative=True)
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    order, codes = _encode(y, levels, kept, MOST_LEVELS)
    count = np.bincount(codes, minlength=len(order))
    mass = count if weight is None else np.bincount(codes, weight[kept], len(order))
    if not count.any():
        raise ErrorKind.TOO_FEW_ROWS.error("y is empty: rows of two levels or more are needed.")
    if np.count_nonzero(count) == 1:
        raise one_only(plain(order[int(np.argmax(count))]), int(count.sum()))
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
        raise ErrorKind.SHAPE.error(f"y must have one dimension, but its shape is {y.shape}.")
    return _encode(y, levels, np.arange(len(y)), _MOST_MEASURED)


def _order_of(y: Any) -> Sequence[Any] | None:
    """The order that a column brings along: an ordered categorical of pandas, an Enum of polars."""
    kind = getattr(y, "dtype", None)
    if getattr(kind, "ordered", False) or type(kind).__name__ == "Enum":
        return list(kind.categories)  # type: ignore[union-attr]
    return None


def _encode(
    y: np.ndarray, levels: Any, kept: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """The levels in order, and the position of the label of each of the rows that are kept."""
    y = y[kept]
    refuse_missing(y, kept=kept)
    # Each different label is looked up once: there are few, in any number of rows.
    found, inverse = different(y)
    if levels is None and not any(isinstance(label, str) for label in found):
        refuse_measurements(found, rows_of_each(inverse), _COLUMN, most)
        return found, inverse.astype(np.intp)
    labels = found.tolist()
    order = None if levels is None else check_levels(levels)
    names, code_of = order_labels(
        labels,
        None if order is None else [plain(level) for level in order],
        "y",
        lambda label: int(kept[np.argmax(inverse == labels.index(label))]),
    )
    codes = np.array([code_of[label] for label in labels], dtype=np.intp)[inverse.astype(np.intp)]
    if order is None:
        order = np.array(names)
        refuse_measurements(order.astype(float), np.bincount(codes), _COLUMN, most)
    return order, codes


def check_levels(levels: Any) -> np.ndarray:
    """Return levels that somebody named, lowest first; raise `InputError` where they are none."""
    is_list = isinstance(levels, Iterable) and not isinstance(levels, str | set | frozenset)
    array = levels if isinstance(levels, np.ndarray) else label_array([*levels] if is_list else [])
    missing = missing_labels(array)
    twice = [label for label, n in Counter(map(plain, array.ravel())).items() if n > 1]
    fault = ""
    if not is_list:
        fault = f"{levels!r} has no order"
    elif array.ndim != 1 or len(array) < 2:
        fault = "fewer than two levels"
    elif len(missing):
        fault = f"the name at place {missing[0] + 1} is empty"
    elif twice:
        fault = f"{twice[0]!r} is there twice"
    if fault:
        raise ErrorKind.SETTING.error(
            f"{setting('levels')}: {fault}.",
            "Give a list of every label once, lowest first: low, medium, high.",
        )
    # Text beside text is plain text, which every file format holds.
    return np.array(array.tolist()) if array.dtype == object and _all_text(array) else array


def order_labels(
    labels: Sequence[Any], levels: Sequence[Any] | None, where: str, row_of: Callable[[Any], int]
) -> tuple[Sequence[Any], dict[Any, int]]:
    """Return the levels of different labels in order, and the position of each label's level.

    Without `levels` all labels are texts of numbers, which are ordered by size; of a number written
    in several ways the shortest names the level. Errors name the first row (`row_of`) of
    one of the first labels, and the column `where`.

    Raises `InputError` on other text without levels, and on a label of no level.

    >>> order_labels(["10", "9.0", "9"], None, "y", lambda label: 0)
    (['9', '10'], {'10': 1, '9.0': 0, '9': 0})
    """
    texts = [label for label in labels if isinstance(label, str)]
    if levels is not None:
        code_of = {level: code for code, level in enumerate(levels)}
        names = [level if isinstance(level, str) else "" for level in levels]
        code_of |= codes_among(texts, names)
        unknown = [label for label in labels if label not in code_of]
        if not unknown:
            return levels, code_of
        first = min(unknown[:_SHOWN], key=row_of)
        more = f" ({_shown(unknown)} are not)" if len(unknown) > 1 else ""
        near = nearest_name(first, levels) if _all_text([first, *levels]) else None
        raise ErrorKind.LABELS.error(
            f"row {row_of(first)} of {where}: {first!r} is not among the levels {_shown(levels)}"
            f"{more}.",
            (f"Did you mean {near!r}? " if near else "")
            + f"Add it at its place to {setting('levels')}, correct it, or leave such rows out.",
            value=first,
        )
    value_of = {label: label_value(label) for label in texts}
    numbers = {v for v in value_of.values() if isinstance(v, float) and np.isfinite(v)}
    words = [label for label in texts if value_of[label] not in numbers]
    if words or len(texts) < len(labels):
        first = min((words or texts or labels)[:_SHOWN], key=row_of)  # each reads the file
        is_text = first not in words or not isinstance(value_of[first], float)
        what = "is text, which has no order of its own" if is_text else "is not a level"
        raise ErrorKind.LABELS.error(
            f"row {row_of(first)} of {where}: {first!r} {what}.",
            "Correct it or leave it empty, or name all labels from the lowest to the highest "
            f"({setting('levels')}); there are {_shown(labels)}.",
            value=first,
        )
    place = dict[Any, int](zip(sorted(numbers), range(len(numbers)), strict=True))
    code_of = {label: place[value] for label, value in value_of.items()}
    # Of several spellings the shortest comes last, of equally short ones the first.
    name_of = {code_of[text]: text for text in sorted(reversed(texts), key=len, reverse=True)}
    return [name_of[code] for code in range(len(numbers))], code_of


def refuse_measurements(
    values: np.ndarray, rows: np.ndarray, where: str, most: int = MOST_LEVELS
) -> None:
    """Refuse a target of too many different numbers, in increasing order; `rows` are of each.

    At most 100 are levels, and of numbers with a fraction no more than half as many as rows, or 12.
    Raises `InputError` with values of the column `where` at which to cut it.
    """
    n_rows = int(rows.sum())
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        most = min(most, max(n_rows // 2, _SHOWN))
    if len(values) <= most:
        return
    cuts = values[np.searchsorted(np.cumsum(rows), n_rows * np.array([0.5, 0.75, 0.9]))]
    shown = ", ".join(
        f"{cut:g}" if isinstance(cut, np.number) else str(cut) for cut in np.unique(cuts)
    )
    raise ErrorKind.LABELS.error(
        f"{where} holds {len(values):,} different numbers in {n_rows:,} rows, "
        f"a measurement rather than levels; {most:,} are taken at most.",
        "Bin them first, into a column that says how many of some bounds a number is above, such "
        f"as {shown} (its median, upper quarter and tenth), or name them all: {setting('levels')}.",
    )


def _all_text(labels: Any) -> bool:
    return all(isinstance(label, str) for label in labels)


def _shown(labels: Sequence[Any]) -> str:
    return first_names([repr(plain(label)) for label in labels], _SHOWN)
