"""One problem a label, against all other rows, from one set of moments."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.findings import finding_of, warn
from rareclass.labels.two_classes import Labels
from rareclass.machine import track
from rareclass.moments.moments import Moments, MomentSettings, moments_of, remove
from rareclass.rows import RowSource


class LabelPart(NamedTuple):
    """A label of a matrix, its rows, and the moments of all other rows."""

    label: int
    labels: Labels
    rare_rows: Any
    moments: Moments


def label_parts(
    source: RowSource, Y: Any, weight: np.ndarray, wanted: MomentSettings, n_jobs: int | None
) -> Iterator[LabelPart]:
    """Yield each column of Y as a problem against all other rows.

    1. Sum the moments of all rows, in one pass.
    2. For each label, take out the moments of its own few rows; its majority is left.

    Raises `ValueError` on a Y of another length, and a label with no row or with every row, naming
    its column.
    """
    labels_of = _label_matrix(Y, source.n_rows)
    whole = moments_of(source, wanted, None, weight, n_jobs)
    with track("Fitting labels", labels_of.shape[1]) as advance:
        for label in range(labels_of.shape[1]):
            rows = _rows_of(label, labels_of, weight)
            part = moments_of(source, wanted, rows, weight[rows], n_jobs=1)
            labels = Labels(np.array([0, 1]), 1, rows, rows[:0], weight[rows], None)
            yield LabelPart(label, labels, source.take(rows), remove(whole, part))
            advance(1)


def _rows_of(label: int, labels_of: sparse.csc_array, weight: np.ndarray) -> np.ndarray:
    """Return the rows of a label with a weight above 0, in order."""
    rows = labels_of.indices[labels_of.indptr[label] : labels_of.indptr[label + 1]]
    rows = np.sort(rows[weight[rows] > 0.0])
    if not 0 < len(rows) < np.count_nonzero(weight):
        has = "no row" if not len(rows) else "every row"
        raise ValueError(
            f"label {label} (column {label} of Y) has {has}: there is nothing to tell it "
            "from. Leave the column out."
        )
    return rows


def warn_once_a_category(caught: list[tuple[int, warnings.WarningMessage]]) -> None:
    """Repeat the first warning of each category, and for how many labels there was one."""
    for kind in dict.fromkeys(warning.category for _, warning in caught):
        alike = [(label, warning) for label, warning in caught if warning.category is kind]
        label, first = alike[0]
        more = f" So it is with {len(alike) - 1:,} more labels." if len(alike) > 1 else ""
        warn(f"Label {label}: {first.message}{more}", kind, finding_of(first.message))


def _label_matrix(Y: Any, n_rows: int) -> sparse.csc_array:
    """Check a matrix of labels; return its columns without stored zeros."""
    if not sparse.issparse(Y):
        Y = np.asarray(Y)
        if Y.ndim != 2:
            raise ValueError(
                f"Y has {Y.ndim} dimension(s); it must be a matrix with a column for each label: "
                "sklearn.preprocessing.MultiLabelBinarizer or LabelBinarizer makes one."
            )
    if Y.shape[0] != n_rows:
        raise ValueError(f"X has {n_rows:,} rows and Y has {Y.shape[0]:,}.")
    if Y.dtype.kind not in "biuf":
        raise ValueError(
            f"Y holds {Y.dtype}, not numbers: 1 for rows with the label and 0 for the others. "
            "sklearn.preprocessing.MultiLabelBinarizer or LabelBinarizer makes it of names."
        )
    matrix = sparse.csc_array(Y)
    matrix.sum_duplicates()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        label = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise ValueError(
            f"Y contains NaN or infinity: row {matrix.indices[bad[0]]}, column {label}. Use 1 for "
            "rows with the label and 0 for the others."
        )
    matrix.eliminate_zeros()
    return matrix
