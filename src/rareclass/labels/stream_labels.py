"""The two labels of a stream, of which its parts need not have both."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import column_or_1d

from rareclass.labels.two_classes import (
    check_length,
    given_labels,
    label_array,
    missing_labels,
    refuse_missing,
    signs,
    two_labels,
)


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
        found = labels[1:] if pos_label is None else labels[labels == pos_label]
        if not len(found):
            raise ValueError(f"pos_label={pos_label!r} is not among the labels {labels.tolist()}.")
        return cls(labels, found[0])

    def check_same(self, classes: Any) -> None:
        """Raise `ValueError` when a later call names other labels; None names none."""
        if classes is not None and not np.array_equal(two_labels(classes), self.classes):
            raise ValueError(f"classes={classes!r} is not {self.classes.tolist()} as before.")

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
        y = label_array(given_labels(y))
        y = y if y.ndim == 1 else column_or_1d(y, warn=True)
        check_length(y, n_rows)
        if not unlabelled:
            refuse_missing(missing_labels(y), instead)
        return signs(y, self.classes, self.rare)
