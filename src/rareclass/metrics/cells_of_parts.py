"""Cells around the rare scores from columns in parts: counted where the parts are, and added.

1. each part gives its distinct rare scores with their weights; they are joined into the d of all
2. each part counts its majority rows around those, and the 2 d + 1 counts are added up

That is exact: no score is rounded or put in a bin.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from rareclass.metrics.rare_cells import RareCells, greatest_in_bins, search, weigh_distinct
from rareclass.metrics.scored_classes import (
    FloatArray,
    ScoredClasses,
    check_scores,
    label_column,
    same_length,
)
from rareclass.rows.dask_parts import delayed_parts, is_dask

# Parts whose counts are added in one task.
_FAN_IN = 8


def cells_of_parts(y: Any, scores: Any, sample_weight: Any = None) -> RareCells:
    """Both classes around the d distinct rare scores, from Dask columns with the same parts.

    It runs where Dask is told to: on the cluster of a client, else in threads. Where one
    column is in memory, the others are brought here, and all are one part.

    Cost: O(n log d) time over the workers; 2 d + 1 numbers a part come back.

    Raises `ValueError` as `split_scores` does, naming the part.
    """
    import dask

    split = dask.delayed(_split, pure=False)
    parts = [split(k, *columns) for k, columns in enumerate(_together(y, scores, sample_weight))]
    rare = _tree([dask.delayed(_rare)(part) for part in parts], dask.delayed(_joined))
    counts = [dask.delayed(_counted)(part, rare) for part in parts]
    (distinct, weight), cells = dask.compute(rare, _tree(counts, dask.delayed(sum)))
    for name, there in (("rare (y = 1)", distinct.size), ("majority (y = 0)", cells.any())):
        if not there:
            raise ValueError(f"y holds no {name} row: both classes are needed.")
    return RareCells(distinct, weight, tied=cells[1::2], gaps=cells[0::2])


class MajorityInParts:
    """The majority's scores in columns of parts, as a threshold asks for them."""

    def __init__(self, y: Any, scores: Any, sample_weight: Any) -> None:
        import dask

        split = dask.delayed(_split, pure=False)
        columns = enumerate(_together(y, scores, sample_weight))
        self._parts = [split(k, *each) for k, each in columns]

    def greatest(self) -> float:
        """The greatest of them."""
        return float(self._greatest(_greatest_of_all)[0])

    def greatest_below(self, upper: FloatArray) -> FloatArray:
        """The greatest in each bin below increasing bounds; see `greatest_in_bins`."""
        return self._greatest(_greatest_below, upper)

    def _greatest(self, of_part: Any, *more: Any) -> FloatArray:
        import dask

        of_parts = [dask.delayed(of_part)(part, *more) for part in self._parts]
        (found,) = dask.compute(_tree(of_parts, dask.delayed(_greatest)))
        return np.asarray(found)


def _together(*columns: Any) -> list[tuple[Any, ...]]:
    """Parts that belong together, of each column; None for a column that is not given."""
    in_parts = [each for each in columns if is_dask(each)]
    n_parts = {each.npartitions for each in in_parts}
    if len(n_parts) > 1:
        raise ValueError(
            f"y, scores and sample_weight have {sorted(n_parts)} parts: rechunk or repartition "
            "them alike."
        )
    if any(each is not None and not is_dask(each) for each in columns):
        return [tuple(None if each is None else _whole(each) for each in columns)]
    delayed = [[] if each is None else delayed_parts(each) for each in columns]
    return list(zip_longest(*delayed))


def _whole(column: Any) -> Any:
    """A column as one part: beside one in memory, one of Dask is brought here."""
    return np.asarray(column)


def _split(number: int, y: Any, scores: Any, weight: Any) -> ScoredClasses:
    try:
        value, amount = check_scores(np.asarray(scores), weight)
        label = label_column(np.asarray(y))
        same_length("y", label, value.size)
    except ValueError as error:
        raise ValueError(f"part {number}: {error}") from error
    counts = np.ones(value.size, bool) if amount is None else amount > 0
    columns = [
        None if column is None else column.compress(mask)
        for column in (value, amount)
        for mask in (label & counts, ~label & counts)
    ]
    return ScoredClasses(*columns)  # type: ignore[arg-type]


def _rare(part: ScoredClasses) -> tuple[FloatArray, FloatArray]:
    return weigh_distinct(part.rare, part.rare_weight)


def _joined(parts: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    scores, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return weigh_distinct(scores, weights)


def _counted(part: ScoredClasses, rare: tuple[FloatArray, FloatArray]) -> FloatArray:
    if not part.majority.size or not rare[0].size:
        return np.full(2 * rare[0].size + 1, 0.0) + part.majority.size
    return search(rare[0], part.majority, part.majority_weight)


def _greatest_below(part: ScoredClasses, upper: FloatArray) -> FloatArray:
    return greatest_in_bins(upper, part.majority)


def _greatest_of_all(part: ScoredClasses) -> FloatArray:
    return np.array([part.majority.max(initial=-np.inf)])


def _greatest(parts: Sequence[FloatArray]) -> FloatArray:
    return np.max(parts, axis=0)


def _tree(parts: list[Any], join: Any) -> Any:
    """One from many, a few at a time."""
    while len(parts) > 1:
        parts = [join(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
    return parts[0]
