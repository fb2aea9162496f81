"""Two score columns of the same rows, checked, and split into the rare rows and the majority."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.metrics.scored_classes import (
    FloatArray,
    amount_column,
    label_column,
    same_length,
    score_column,
)


class ClassPair(NamedTuple):
    """The rows of one class; rows of weight 0 are left out."""

    mask: NDArray[np.bool_]  # which of the rows given they are, in the same order
    a: FloatArray  # shape (n,): scores
    b: FloatArray
    weight: FloatArray | None  # all positive; None when every row counts once
    group: NDArray[np.intp] | None  # codes 0 .. n_groups - 1, the same in both classes

    @property
    def mass(self) -> float:
        """Total weight."""
        return float(self.a.size if self.weight is None else self.weight.sum())


class ScoredPair(NamedTuple):
    """Both score columns, by class."""

    rare: ClassPair
    majority: ClassPair
    n_groups: int  # 0 where rows are independent
    n_rows: int  # of the columns given

    @property
    def n_independent(self) -> float:
        """The weight of the rare rows, or the number of groups that hold one."""
        if self.rare.group is None:
            return self.rare.mass
        return float(np.unique(self.rare.group).size)


def split_pair(
    y: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ScoredPair:
    """Check the columns against each other and split them by class.

    As `split_scores`, for two columns of scores, and a column of groups that may hold numbers or
    names but no missing ones. O(n) time and memory; groups are sorted.
    """
    a, b = score_column(scores_a, "scores_a"), score_column(scores_b, "scores_b")
    same_length("scores_b", b, a.size, "scores_a")
    label = label_column(y)
    same_length("y", label, a.size, "scores_a")
    if a.size == 0:
        raise ValueError("scores_a is empty: at least one rare row and one other row are needed.")
    weight = (
        None if sample_weight is None else amount_column(sample_weight, "sample_weight", a.size)
    )
    kept = None if weight is None else weight > 0
    group, n_groups = None, 0
    if groups is not None:
        group, n_groups = _codes(groups, a.size, kept)
    columns = (a, b, weight, group)
    parts = []
    for name, mask in (("rare (y = 1)", label), ("majority (y = 0)", ~label)):
        own_mask = mask if kept is None else mask & kept
        # compress() takes less time than indexing where the classes are mixed.
        own = [None if each is None else each.compress(own_mask) for each in columns]
        if not own_mask.any():
            weighted = "" if weight is None else " of positive weight"
            raise ValueError(f"y holds no {name} row{weighted}: both classes are needed.")
        parts.append(ClassPair(own_mask, *own))  # type: ignore[arg-type]
    return ScoredPair(parts[0], parts[1], n_groups, a.size)


def _codes(
    groups: ArrayLike, n_rows: int, kept: NDArray[np.bool_] | None
) -> tuple[NDArray[np.intp], int]:
    """Numbers of the groups among the rows kept, in sorted order of their names where they sort."""
    column: NDArray[Any] = np.asarray(groups)
    if column.ndim != 1:
        raise ValueError(f"groups must have one dimension, but its shape is {column.shape}.")
    same_length("groups", column, n_rows, "scores_a")
    missing = np.asarray(column != column, dtype=bool) | np.asarray(column == None)  # noqa: E711
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(
            f"groups[{row}] = {column[row]!r} is missing; give rows without a group one each."
        )
    codes = np.zeros(n_rows, np.intp)
    of_kept = column if kept is None else column[kept]
    try:
        names, inverse = np.unique(of_kept, return_inverse=True)
    except TypeError:  # names of several kinds have no order
        names, inverse = np.unique([repr(name) for name in of_kept], return_inverse=True)
    codes[slice(None) if kept is None else kept] = inverse
    return codes, len(names)
