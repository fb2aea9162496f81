"""Labels of one frequent class and of one rare class or several: which rows are rare, and of which.

What is learned of several rare classes is learned of any of them first (`RareClasses.labels`, as of
two classes), and then of each among the rare rows (`RareClasses.which`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.findings import Finding, FindingKind, warn
from rareclass.labels.two_classes import (
    Labels,
    classes_of,
    held_apart,
    labels_and_weights,
    labels_of_two,
    largest,
    plain,
)

# More labels than this are a measurement, or names of rows.
MOST_CLASSES = 100
# With fewer rows the measures and the threshold of a class say little.
FEW_ROWS = 5


class RareClasses(NamedTuple):
    """The rows of any rare class and of the rest, and the class of each rare row.

    `labels` has all labels as `classes`. Of several rare classes its `pos_label` is the tuple of
    them, in order, and `which` of shape (len(labels.rare),) the position of each rare row's class
    in that tuple; None where one class is rare.
    """

    labels: Labels
    which: np.ndarray | None = None

    @property
    def rare(self) -> tuple[Any, ...]:
        """The rare labels, in order."""
        return (self.labels.pos_label,) if self.which is None else self.labels.pos_label


def read_rare_classes(y: Any, sample_weight: Any, pos_label: Any, n_rows: int) -> RareClasses:
    """Read a label a row: of two labels as `read_labels`, of more the most frequent is the rest.

    `pos_label` is None, the rare label of two, or a list of all rare labels, which leaves one label
    for the rest. Warns of classes of fewer than 5 rows.

    Raises `ValueError` as `read_labels`, and `InputError` where `pos_label` leaves no label or
    several for the rest, or the labels are too many to be classes.

    >>> found = read_rare_classes(list("aaaaaaaabcbcbcbcbc"), None, None, 18)
    >>> found.rare, found.labels.rare[:4].tolist(), found.which[:4].tolist()
    (('b', 'c'), [8, 9, 10, 11], [0, 1, 0, 1])
    """
    named = _as_list(pos_label)
    column, weight = labels_and_weights(y, sample_weight, n_rows)
    kept = slice(None) if weight is None else np.flatnonzero(weight)
    classes, code = classes_of(column[kept])
    if len(classes) <= 2 or (named is None and pos_label is not None):
        single = named[0] if named is not None and len(named) == 1 else pos_label
        return RareClasses(labels_of_two(classes, code, weight, single))
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"y holds {len(classes):,} labels, which are too many to be classes.",
            f"Give at most {MOST_CLASSES}: merge labels, or cut numbers into classes.",
            ErrorKind.LABELS,
        )
    rest = _rest_of(classes, code, None if weight is None else weight[kept], named)
    rare = [k for k in range(len(classes)) if k != rest]
    _warn_of_few(classes, np.bincount(code, minlength=len(classes)), rare)
    labels = tuple(plain(classes[k]) for k in rare)
    held = held_apart(code != rest, weight, classes, labels)
    return RareClasses(held, np.searchsorted(rare, code[code != rest]))


def _as_list(pos_label: Any) -> list[Any] | None:
    """Return labels that are named in a list; None where none or one is named."""
    if isinstance(pos_label, str) or not isinstance(pos_label, Sequence | np.ndarray | set):
        return None
    return list(pos_label)


def _rest_of(
    classes: np.ndarray, code: np.ndarray, weight: np.ndarray | None, named: list[Any] | None
) -> int:
    """Return the position of the label that is not rare."""
    if named is None:
        count = np.bincount(code, minlength=len(classes))
        return largest(count, np.bincount(code, weight, len(classes)))
    known = classes.tolist()
    unknown = [label for label in named if label not in known]
    others = [k for k, label in enumerate(known) if label not in named]
    if unknown:
        raise InputError(
            f"pos_label names {plain(unknown[0])!r}, which is not among the labels {known}.",
            "Name labels of rows.",
            ErrorKind.LABELS,
            value=unknown[0],
        )
    if len(others) != 1:
        left = "none" if not others else f"{len(others)} labels, {[known[k] for k in others]}"
        raise InputError(
            f"pos_label must leave one label of frequent rows out, and leaves out {left}.",
            "Leave one label out of it; merge several that are not rare into one.",
            ErrorKind.LABELS,
            value=[plain(label) for label in named],
        )
    return others[0]


def _warn_of_few(classes: np.ndarray, count: np.ndarray, rare: list[int]) -> None:
    few = few_of({str(plain(classes[k])): int(count[k]) for k in rare})
    if few:
        warn(words_of_few(few), finding=Finding(FindingKind.FEW_OF_CLASS, {"rows": few}))


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
