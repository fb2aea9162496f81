"""Labels some of which are missing: of a table, or of the rows of a stream as they come."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from rareclass.errors import ErrorKind
from rareclass.labels.spelling import missing_labels, plain, refuse_missing, spelled_as
from rareclass.labels.states import UNKNOWN
from rareclass.labels.two_classes import (
    class_position,
    classes_of,
    different,
    label_array,
    label_column,
    labels_named,
    rare_among,
    row_weights,
)


class PartialLabels(NamedTuple):
    """Label of each row, where it has one, and the labels that are rare."""

    classes: np.ndarray  # sorted; where there is no majority label, a stand-in for it is among them
    majority: Any  # the label of rows outside every ball
    rare: tuple  # the labels that get a ball
    code: np.ndarray  # (n_rows,): position among `classes`, -1 for rows without a label
    weight: np.ndarray | None  # None: 1 each

    def rows_of(self, label: Any) -> np.ndarray:
        """Numbers of the rows with a label, those of weight 0 left out."""
        return self._present(self.code == np.flatnonzero(self.classes == label)[0])

    def unlabelled(self) -> np.ndarray:
        """Numbers of the rows without a label, those of weight 0 left out."""
        return self._present(self.code == UNKNOWN)

    def labelled_but(self, label: Any) -> np.ndarray:
        """Numbers of the rows with any other label, those of weight 0 left out."""
        position = np.flatnonzero(self.classes == label)[0]
        return self._present((self.code != UNKNOWN) & (self.code != position))

    def not_rare(self) -> np.ndarray:
        """Numbers of the rows without a rare label, those of weight 0 left out."""
        rare = np.flatnonzero(np.isin(self.classes, np.array(self.rare, self.classes.dtype)))
        return self._present(~np.isin(self.code, rare))

    def present(self) -> np.ndarray:
        """Numbers of all rows but those of weight 0."""
        return self._present(np.ones(len(self.code), dtype=bool))

    def weight_of(self, rows: np.ndarray) -> np.ndarray:
        """Weights of some rows."""
        return np.ones(len(rows)) if self.weight is None else self.weight[rows]

    def _present(self, chosen: np.ndarray) -> np.ndarray:
        return np.flatnonzero(chosen if self.weight is None else chosen & (self.weight > 0.0))


def read_partial_labels(y: Any, sample_weight: Any, pos_label: Any, n_rows: int) -> PartialLabels:
    """Tell rare, majority and unlabelled rows apart.

    Unlabelled are -1 (or "-1"), None, NaN, a missing value of pandas, an empty text, and the masked
    entries of a masked array. `pos_label` is a rare label or a list of them; None: of two labels
    the one with fewer rows (of equals the last), of more all but the one with the most. Raises
    ValueError where no row has a label, `pos_label` does not occur, or a length or weight is wrong.
    """
    code, classes = _read_codes(y, n_rows)
    weight = row_weights(sample_weight, n_rows)
    if not len(classes):
        raise ErrorKind.LABELS.error(
            "no row has a label: all are unlabelled (-1, None or NaN).",
            "Give at least one confirmed row of the rare class its label.",
        )
    known = (code != UNKNOWN) & (True if weight is None else weight > 0.0)
    counts = np.bincount(code[known], minlength=len(classes))
    if not counts.any():
        message = "every row with a label has sample_weight 0: there is none to learn from."
        raise ErrorKind.LABELS.error(message, "Give one of them a weight above 0.")
    mass = counts if weight is None else np.bincount(code[known], weight[known], len(classes))
    rare = _rare_labels(classes, counts, mass, pos_label)
    others = [k for k, label in enumerate(classes) if label not in rare]
    if not others:
        classes, code, majority = _with_stand_in(classes, code)
    else:
        majority = classes[max(others, key=lambda k: counts[k])]
    return PartialLabels(classes, majority, rare, code, weight)


def _read_codes(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the rows, and the sorted labels that they stand for."""
    y = label_column(y, n_rows)
    empty = _empty_cells(y)
    code = np.full(n_rows, UNKNOWN)
    if empty.all():
        return code, np.empty(0)
    classes, code[~empty] = classes_of(label_array(y[~empty]))
    return code, classes


def _empty_cells(y: np.ndarray) -> np.ndarray:
    """Where there is no label. Infinite labels are refused: they are a mistake and not a gap."""
    missing = missing_labels(y)
    empty = np.isin(np.arange(len(y)), missing)
    for row in missing.tolist():
        if isinstance(y[row], float) and np.isinf(y[row]):
            message = f"Input y contains infinity: row {row}."
            raise ErrorKind.LABELS.error(message, "Unlabelled rows are -1, None or NaN.", row=row)
    if y.dtype.kind in "if":
        return empty | (y == UNKNOWN)
    empty[~empty] = [label in (UNKNOWN, str(UNKNOWN)) for label in y[~empty].tolist()]
    return empty


def _rare_labels(
    classes: np.ndarray, counts: np.ndarray, mass: np.ndarray, pos_label: Any
) -> tuple:
    """The labels that get a ball: those asked for, else all but the most frequent."""
    if pos_label is not None:
        wanted = labels_named(pos_label) or [pos_label]
        rare = sorted({class_position(label, classes) for label in wanted})
        if not counts[rare].all():
            label = plain(classes[rare][counts[rare] == 0][0])
            raise ErrorKind.SETTING.error(f"pos_label={label!r} has no row of weight above 0.")
        return tuple(classes[rare])
    there = np.flatnonzero(counts)
    if len(there) == 1:
        return (classes[there[0]],)
    chosen = rare_among(classes[there].tolist(), counts[there], mass[there])
    return tuple(classes[there[chosen]])


def _with_stand_in(classes: np.ndarray, code: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
    """A label for rows outside the ball where no row has one: -1, or a text."""
    stand_in: Any = "not " + " or ".join(map(str, classes)) if classes.dtype.kind in "UMO" else -1
    if classes.dtype.kind == "b":
        stand_in = not classes[0]
    dtype = object if classes.dtype.kind in "MO" else None
    widened, place = different(np.array([*classes, stand_in], dtype))
    return widened, np.where(code == UNKNOWN, UNKNOWN, place[code]), widened[int(place[-1])]


def two_labels(classes: Any) -> np.ndarray:
    """The two labels that a stream will have, sorted.

    Raises `ValueError` on fewer or more than two, or a missing one.

    >>> two_labels(("ok", "fraud")).tolist()
    ['fraud', 'ok']
    """
    wanted = f"classes={classes!r} must be two labels, e.g. classes=[0, 1]"
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ErrorKind.SETTING.error(f"{wanted}.")
    each = label_column(list(classes), None)
    if len(missing_labels(each)):
        raise ErrorKind.SETTING.error(
            f"{wanted}; one of them is missing. Rows without a label need no class: see "
            "test_then_train."
        )
    labels, _ = classes_of(each)
    if len(labels) != 2:
        raise ErrorKind.SETTING.error(f"{wanted}; there are {len(labels)}.")
    return labels


def signs(y: np.ndarray, classes: np.ndarray, pos_label: Any) -> np.ndarray:
    """+1 for rows with the rare label or one of a tuple, -1 for other classes, 0 for no label.

    Raises `ValueError` on a label that is not among the classes, naming row and label.

    >>> signs(np.array([1.0, np.nan, 0.0]), np.array([0, 1]), 1).tolist()
    [1, 0, -1]
    """
    missing = missing_labels(y)  # some of which cannot be compared
    labelled = np.delete(np.arange(len(y)), missing) if len(missing) else slice(None)
    named = pos_label if isinstance(pos_label, tuple) else (pos_label,)
    known = label_array(y[labelled])
    is_rare = np.array([label in named for label in classes.tolist()])

    def signs_of(labels: np.ndarray) -> np.ndarray:
        found = np.zeros(len(labels), np.int8)
        for label, sign in zip(classes, np.where(is_rare, 1, -1), strict=True):
            found[labels == label] = sign
        return found

    sign = signs_of(known)
    if not sign.all():
        sign = signs_of(spelled_as(known, classes))
    unknown = np.flatnonzero(sign == 0)
    if len(unknown):
        row = int(np.arange(len(y))[labelled][unknown[0]])
        label = plain(y[row])
        fault = f"row {row}: label {label!r} is not among the classes {classes.tolist()}."
        remedy = (
            "Labels must be of the same kind and spelling as the classes; leave other rows out."
        )
        raise ErrorKind.LABELS.error(fault, remedy, row=row, value=label)
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
        if before is None:
            if classes is None:
                what = "classes must be passed on the first call to partial_fit."
                raise ErrorKind.SETTING.error(what)
            return cls.named(classes, pos_label)
        if classes is not None and not np.array_equal(two_labels(classes), before.classes):
            known = before.classes.tolist()
            raise ErrorKind.SETTING.error(f"classes={classes!r} is not {known} as before.")
        return before

    def signs(
        self, y: Any, n_rows: int, *, unlabelled: bool = False, instead: str = ""
    ) -> np.ndarray:
        """+1 for rare rows, -1 for the majority, 0 where there is no label.

        Raises `ValueError` when there is not one label a row, one is not of the two, or one is
        missing where none may be; `instead` says what else to do with such rows.
        """
        if y is None and unlabelled:
            raise ErrorKind.LABELS.error(
                "requires y to be passed, but the target y is None: pass a label a row (None "
                "where there is none), or use score_samples."
            )
        y = label_column(y, n_rows)
        if not unlabelled:
            refuse_missing(y, instead)
        return signs(y, self.classes, self.rare)
