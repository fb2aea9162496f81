"""Any classifier learns from some rows: which of weights, groups and times it takes."""

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rareclass.errors import InputError

# Rows that weights may be written out as, for a learner that takes none.
_MOST_COPIED = 5_000_000


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of an array, a sparse matrix, or a pandas, polars or pyarrow table."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):
        return X.take(rows)
    if sparse.issparse(X) or hasattr(X, "columns") or isinstance(X, np.ndarray):
        return X[rows]
    return np.asarray(X)[rows]


def fit_on(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
) -> Any:
    """Fit an estimator on rows, in place, with what its ``fit`` takes of what there is.

    Groups and times are for folds of its own, and left out where it has none. Where it takes no
    weights, a row of weight k is there k times.

    Raises `InputError` where weights that are not all whole would have to be written out.
    """
    taken = inspect.signature(estimator.fit).parameters
    beside = {"sample_weight": weight, "groups": groups, "time": time}
    passed = {
        name: column
        for name, column in beside.items()
        if column is not None and name in taken and not (name == "time" and groups is not None)
    }
    if weight is not None and "sample_weight" not in passed:
        rows = _written_out(estimator, weight)
        X, y = take_rows(X, rows), y[rows]
        passed = {name: column[rows] for name, column in passed.items()}
    return estimator.fit(X, y, **passed)


def _written_out(estimator: Any, weight: NDArray[np.float64]) -> NDArray[np.intp]:
    """Each row number as often as its weight says."""
    name = type(estimator).__name__
    if (weight % 1.0 != 0.0).any():
        raise InputError(
            f"{name} takes no sample_weight, and weights that are not whole numbers cannot be "
            "written out as copies.",
            "Leave it out, or give whole weights.",
        )
    if weight.sum() > _MOST_COPIED:
        raise InputError(
            f"{name} takes no sample_weight, and {weight.sum():,.0f} copies are too many.",
            "Leave it out.",
        )
    return np.repeat(np.arange(len(weight)), weight.astype(np.intp))
