"""Rows as River has them, dicts of features by name, as the numbers that a learner takes."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np


def cells(x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """The features of a row that are present, as numbers.

    None and NaN are absent, True and False are 1 and 0, and text becomes a feature of its own,
    ``name=value``, that is 1.

    Refuses, naming the feature, a value that is no number and an infinite one.

    Examples
    --------
    >>> cells({"size": 2, "new": True, "colour": "red", "age": None})
    {'size': 2.0, 'new': 1.0, 'colour=red': 1.0}
    """
    if not isinstance(x, Mapping):
        raise TypeError(
            f"x={x!r} of type {type(x).__name__} is not a row of River: pass a dict of features "
            "by name, e.g. {'amount': 12.5}. Arrays and tables go to the model's own partial_fit."
        )
    found: dict[Hashable, float] = {}
    for name, value in x.items():
        if value is None:
            continue
        if isinstance(value, str):
            found[f"{name}={value}"] = 1.0
            continue
        number = value if type(value) is float else _number(name, value)
        if isfinite(number):
            found[name] = number
        elif number == number:
            raise ValueError(
                f"feature {name!r} is {value!r}: only finite numbers can be learned from. Leave "
                "the feature out, or give None, where its value is not known."
            )
    return found


def _number(name: Hashable, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"feature {name!r} is {value!r} of type {type(value).__name__}: neither a number nor "
            "text. Convert it first, e.g. a time to seconds."
        ) from None


def columns_of(
    rows: Sequence[Mapping[Hashable, float]], columns: Mapping[Hashable, int]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The known features of each row: columns in increasing order, and values."""
    for row in rows:
        known = sorted((columns[name], value) for name, value in row.items() if name in columns)
        yield (
            np.array([column for column, _ in known], dtype=np.int64),
            np.array([value for _, value in known], dtype=np.float64),
        )


def in_csr_form(
    rows: Sequence[Mapping[Hashable, float]], columns: Mapping[Hashable, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The non-zeros of rows whose features are all known: row pointers, columns, values.

    Examples
    --------
    >>> indptr, indices, data = in_csr_form([{"b": 2.0, "a": 1.0}, {"a": 0.0}], {"a": 0, "b": 1})
    >>> indptr.tolist(), indices.tolist(), data.tolist()
    ([0, 2, 2], [0, 1], [1.0, 2.0])
    """
    indptr, indices, data = [0], [], []
    for row in rows:
        for column, value in sorted((columns[name], value) for name, value in row.items()):
            if value:
                indices.append(column)
                data.append(value)
        indptr.append(len(indices))
    return (
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(data, dtype=np.float64),
    )
