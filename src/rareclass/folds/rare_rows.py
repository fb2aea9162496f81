"""Which rows a splitter must have in every part: those of the rarest label."""

from typing import Any

import numpy as np

from rareclass.errors import InputError
from rareclass.labels.two_classes import given_labels, label_array, missing_labels, plain


def rare_rows(y: Any, pos_label: Any = None) -> np.ndarray:
    """Mask of the rows with the label `pos_label`, or with the one of the fewest rows.

    Among labels of equally few rows the last in their order. Raises `InputError` on one label
    only, a row without one (naming it), or a `pos_label` that does not occur.
    """
    labels = label_array(given_labels(y))
    if labels.ndim != 1:
        raise InputError(f"y has the shape {labels.shape}.", "Give one label a row.")
    missing = missing_labels(labels)
    if len(missing):
        raise InputError(f"row {missing[0]} of y has no label.", "Leave such rows out.")
    classes, code = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        only = f"the label {plain(classes[0])!r} only" if len(classes) else "no row"
        raise InputError(f"y holds {only}.", "Folds with rare rows need rows of two labels.")
    if pos_label is not None:
        if not (classes == pos_label).any():
            raise InputError(
                f"pos_label={pos_label!r} is not among the labels {classes.tolist()}.",
                "Name the rare one of them, or leave pos_label out.",
            )
        return labels == pos_label
    counts = np.bincount(code)
    return code == len(counts) - 1 - int(np.argmin(counts[::-1]))
