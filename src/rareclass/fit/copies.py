"""Copies of rows, which one row stands for, and rows that recur, which stay as they are.

A copy of a training row that is held out would flatter the model. In a table of few codes, though,
rows recur because customers, items or shops do: new rows will too, and to hold all of them out
together would belittle the model. Rows that recur have labels of their own, copies have one label.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class DistinctRows(NamedTuple):
    """Rows that are learned from, in order, and how many rows each stands for; None for one."""

    rows: NDArray[np.int64]
    copies: NDArray[np.float64] | None


def distinct_rows(
    group: NDArray[np.integer], code: NDArray[np.int16], weigh: bool = True
) -> DistinctRows:
    """Return the first row of each group of copies; all rows where rows recur.

    group: a number from 0 on for each row, equal for rows that are equal in all columns; code: of
    its label. Rows recur where as many rare rows equal a row of the most frequent label as equal
    rare rows only. Without `weigh` only distinct rows count, whether they recur or not. Time:
    O(n log n).
    """
    is_rare = code != np.argmax(np.bincount(code))
    if weigh and _recur(group, is_rare):
        return DistinctRows(np.arange(len(code)), None)
    of_both = group.astype(np.int64) * (int(code.max()) + 1) + code
    _, first, count = np.unique(of_both, return_index=True, return_counts=True)
    if len(first) == len(code):
        return DistinctRows(np.arange(len(code)), None)
    in_order = np.argsort(first)
    return DistinctRows(first[in_order], count[in_order].astype(np.float64))


def _recur(group: NDArray[np.integer], is_rare: NDArray[np.bool_]) -> bool:
    n_groups = int(group.max(initial=-1)) + 1
    n_rare = np.bincount(group[is_rare], minlength=n_groups)
    has_others = np.bincount(group[~is_rare], minlength=n_groups) > 0
    n_recurring, n_copied = n_rare[has_others].sum(), n_rare[~has_others & (n_rare > 1)].sum()
    return bool(0 < n_recurring >= n_copied)
