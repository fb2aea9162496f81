"""Many problems that share their majority: each label against the rest, from one set of moments."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from rareclass.labels import Labels
from rareclass.moments.moments import remove
from rareclass.moments.parameters import check_parameters, seed_of
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
    labels_of = _label_matrix(Y, source.n_rows)
    weight = row_weights(sample_weight, source.n_rows)
    seed = seed_of(estimator.random_state)
    wanted = model.wanted(seed)
    whole = moments_of(source, wanted, None, weight, estimator.n_jobs)
    models = []
    with track("Fitting labels", labels_of.shape[1]) as advance:
        for label in range(labels_of.shape[1]):
            rows = labels_of.indices[labels_of.indptr[label] : labels_of.indptr[label + 1]]
            rows = np.sort(rows[weight[rows] > 0.0])
            if not 0 < len(rows) < whole.n_rows:
                has = "no row" if not len(rows) else "every row"
                raise ValueError(
                    f"label {label} (column {label} of Y) has {has}: there is nothing to tell it "
                    "from. Leave the column out."
                )
            part = moments_of(source, wanted, rows, weight[rows], n_jobs=1)
            labels = Labels(np.array([0, 1]), 1, rows, rows[:0], weight[rows], None)
            one = clone(checked)
            one.n_features_in_, one._seed = source.n_features, seed
            if hasattr(checked, "feature_names_in_"):
                one.feature_names_in_ = checked.feature_names_in_
            one._learned(labels, remove(whole, part), source.take(rows), stacklevel=6)
            models.append(one.forget_rows())
            advance(1)
    return models


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
