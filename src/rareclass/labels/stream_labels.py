"""The two labels of a stream, of which its parts need not have both."""

from typing import Any, NamedTuple, Self

import numpy as np

from rareclass.labels.two_classes import label_array, missing_labels, signs, two_labels


class StreamLabels(NamedTuple):
    """Two labels, sorted, and the rare one of them."""

    classes: np.ndarray
    rare: Any

    @classmethod
    def named(cls, classes: Any, pos_label: Any) -> Self:
        """The labels that are to come; the rare one is `pos_label`, or the last where it is None.

        Raises
        ------
        ValueError
            On anything but two labels, or when `pos_label` is neither.
        """
        labels = two_labels(classes)
        found = labels[1:] if pos_label is None else labels[labels == pos_label]
        if not len(found):
            raise ValueError(f"pos_label={pos_label!r} is not among the labels {labels.tolist()}.")
        return cls(labels, found[0])

    def check_same(self, classes: Any) -> None:
        """Raise `ValueError` when a later call names other labels."""
        if not np.array_equal(two_labels(classes), self.classes):
            raise ValueError(f"classes={classes!r} is not {self.classes.tolist()} as before.")

    def is_rare(self, y: Any, n_rows: int) -> np.ndarray:
        """Which rows are rare.

        Raises
        ------
        ValueError
            When there is not one label a row, one is missing, or one is not of the two.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = np.ravel(label_array(y))
        if len(y) != n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(y)}]"
            )
        missing = missing_labels(y)
        if len(missing):
            raise ValueError(
                f"Input y contains NaN or infinity, or no label at all: row {missing[0]}. Drop the "
                "rows without a label."
            )
        return signs(y, self.classes, self.rare) > 0
