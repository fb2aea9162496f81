"""Weights and other amounts of rows: numbers of at least 0, one a row."""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, counted
from rareclass.labels.spelling import plain, unmasked


def row_weights(sample_weight: Any, n_rows: int, relative: bool = False) -> np.ndarray | None:
    """The weight of every row, at or above 0; None without weights. Refuses others by their row.

    `relative` divides them by the largest: only ratios count, and 1e160**2 does not fit.
    """
    if sample_weight is None:
        return None
    from sklearn.utils.validation import _check_sample_weight

    sample_weight = unmasked(sample_weight)
    given, like = np.asarray(sample_weight), np.empty((n_rows, 0))
    if given.dtype.kind not in "biuf":
        given = np.asarray(sample_weight, dtype=object)  # beside text, numbers would become text
    refuse_amounts(given.ravel(), "sample_weight")
    weight = _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
    return weight / weight.max() if relative else weight


def weight_of_each(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return `row_weights`, or 1 for every row without any."""
    weight = row_weights(sample_weight, n_rows)
    return np.ones(n_rows) if weight is None else weight


def refuse_amounts(amounts: np.ndarray, name: str) -> None:
    """Raise `InputError` at the first of a column that is no finite number of at least 0."""
    if amounts.dtype.kind in "biuf":
        is_amount = np.isfinite(amounts) & (amounts >= 0)
    else:
        kinds = Real, Decimal, np.bool_
        each = (float(value) if isinstance(value, kinds) else -1.0 for value in amounts.tolist())
        is_amount = np.array([0.0 <= value < np.inf for value in each], dtype=bool)
    if not is_amount.all():
        row, others = int(np.argmin(is_amount)), len(is_amount) - int(is_amount.sum()) - 1
        value, remedy = plain(amounts[row]), "Correct it, or leave the row out."
        more = f" ({counted(others, 'more such row')})" if others else ""
        message = f"{name}[{row}] = {value!r} is not a finite number of at least 0{more}."
        raise ErrorKind.CELL.error(message, remedy, column=name, row=row, value=value)
