"""Many problems that share their majority: each label against the rest, from one set of moments."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from rareclass.errors import InputError
from rareclass.labels.two_classes import Labels
from rareclass.moments.moments import remove
from rareclass.moments.parameters import check_memory, check_parameters, seed_of
from rareclass.moments.summing import moments_of
from rareclass.moments.weights import row_weights
from rareclass.progress import track
from rareclass.rows import as_source, header

if TYPE_CHECKING:
    from rareclass.moments.mibc import MIBC


def fit_many(estimator: "MIBC", X: Any, Y: Any, sample_weight: Any = None) -> "list[MIBC]":
    """A model for each column of Y; see `MIBC.fit_many`.

    1. the moments of all rows, in one pass
    2. for each label, those of its own few rows are taken out again: what is left is its majority
    3. the label's problem is solved, and its moments are dropped

    Raises
    ------
    ValueError
        On a Y of another length, and a label with no row or with every row, naming its column.
    """
    model = check_parameters(estimator, [estimator.C])
    checked = clone(estimator)
    validate_data(checked, header(X), skip_check_array=True)
    source = as_source(X, getattr(checked, "feature_names_in_", None))
    check_memory(source.n_features, model)
    labels_of = _label_matrix(Y, source.n_rows)
    weight = row_weights(sample_weight, source.n_rows)
    seed = seed_of(estimator.random_state)
    wanted = model.wanted(seed)
    whole = moments_of(source, wanted, None, weight, estimator.n_jobs)
    models, said = [], []
    with track("Fitting labels", labels_of.shape[1]) as advance:
        for label in range(labels_of.shape[1]):
            rows = _rows_of(label, labels_of, weight)
            part = moments_of(source, wanted, rows, weight[rows], n_jobs=1)
            labels = Labels(np.array([0, 1]), 1, rows, rows[:0], weight[rows], None)
            one = clone(checked)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    one._learned_like(checked, seed, labels, remove(whole, part), source.take(rows))
                except InputError as error:
                    raise InputError(f"Label {label}: {error.message}", error.remedy) from error
            said += [(label, warning) for warning in caught]
            models.append(one.forget_rows())
            advance(1)
    _say_once(said)
    return models


def _rows_of(label: int, labels_of: sparse.csc_array, weight: np.ndarray) -> np.ndarray:
    """The rows of a label that count, in order."""
    rows = labels_of.indices[labels_of.indptr[label] : labels_of.indptr[label + 1]]
    rows = np.sort(rows[weight[rows] > 0.0])
    if not 0 < len(rows) < np.count_nonzero(weight):
        has = "no row" if not len(rows) else "every row"
        raise ValueError(
            f"label {label} (column {label} of Y) has {has}: there is nothing to tell it "
            "from. Leave the column out."
        )
    return rows


def _say_once(said: list[tuple[int, warnings.WarningMessage]]) -> None:
    """The first warning of each kind, and how many labels have one like it."""
    for kind in dict.fromkeys(warning.category for _, warning in said):
        alike = [(label, warning) for label, warning in said if warning.category is kind]
        label, first = alike[0]
        more = f" So it is with {len(alike) - 1:,} more labels." if len(alike) > 1 else ""
        warnings.warn(f"Label {label}: {first.message}{more}", kind, stacklevel=4)


def _label_matrix(Y: Any, n_rows: int) -> sparse.csc_array:
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
