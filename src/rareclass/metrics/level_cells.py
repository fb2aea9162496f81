"""Rows of ordered levels, added up by score and level: what MAUC and VUS are counted from."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.metrics.interval import normal_quantile
from rareclass.metrics.scored_classes import FloatArray, check_scores, read_column, whole_rows


class LevelCells(NamedTuple):
    """Weights by distinct (score, level), in that order: copies and weights come to the same."""

    codes: NDArray[np.int64]  # level of each cell
    ends: NDArray[np.int64]  # where each group of equal scores ends
    weight: FloatArray
    n_levels: int

    @property
    def mass(self) -> FloatArray:
        """Weight of each level."""
        return np.bincount(self.codes, self.weight, self.n_levels).astype(np.float64)


def level_cells(
    y: Any, scores: ArrayLike, sample_weight: ArrayLike | None, levels: Any
) -> LevelCells:
    """Check the columns and add up the rows; O(n log n).

    Refuses what `check_scores` and the reading of levels refuse, and rows of fewer than two levels.
    """
    # Not at the top: scikit-learn takes seconds to load, and no other measure needs it.
    from rareclass.labels.levels import encode
    from rareclass.labels.two_classes import plain

    value, weight = check_scores(scores, sample_weight)
    order, codes = encode(y, levels)
    read_column(codes, "y", len(value))
    if weight is not None:
        kept = weight > 0.0
        value, codes, weight = value[kept], codes[kept], weight[kept]
    # By level first: two bytes a code are sorted by counting. Then by score, keeping that order.
    by = np.argsort(codes.astype(np.min_scalar_type(len(order))), kind="stable")
    by = by[np.argsort(value[by], kind="stable")]
    value, codes = value[by], codes[by]
    new_score = np.append(True, value[1:] != value[:-1])[: len(value)]
    new_level = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
    starts = np.flatnonzero(new_score | new_level)
    by_row = np.ones(len(by)) if weight is None else weight[by]
    cell_weight = np.add.reduceat(by_row, starts) if len(starts) else by_row
    ends = np.append(np.flatnonzero(new_score[starts])[1:], len(starts)).astype(np.int64)
    cells = LevelCells(codes[starts].astype(np.int64), ends, cell_weight, len(order))
    present = np.flatnonzero(cells.mass)
    if len(present) < 2:
        held = f"only {plain(order[present[0]])!r}" if len(present) else "no level"
        raise InputError(
            f"y holds {held}.",
            "Rows of two levels or more are needed to measure their order.",
            ErrorKind.LABELS,
            column="y",
        )
    return cells


def variance_of_draws(
    measure: Callable[[LevelCells], float],
    cells: LevelCells,
    level: float,
    n_draws: int,
    random_state: Any,
) -> float:
    """Variance of a measure over rows drawn again with replacement within each level.

    `level` is checked only: it is that of the interval. Time n_draws times O(n) and the measure.
    """
    from sklearn.utils import check_random_state

    normal_quantile(level)
    if not n_draws >= 2:
        raise ValueError(f"n_draws={n_draws!r} must be at least 2.")
    rng = check_random_state(random_state)
    members = [np.flatnonzero(cells.codes == code) for code in np.flatnonzero(cells.mass)]
    drawn = np.empty(int(n_draws))
    for k in range(len(drawn)):
        weight = np.zeros_like(cells.weight)
        for of_level in members:
            own = cells.weight[of_level]
            n = whole_rows(own.sum())
            weight[of_level] = rng.multinomial(n, own / own.sum()) * (own.sum() / n)
        drawn[k] = measure(cells._replace(weight=weight))
    return float(np.var(drawn, ddof=1))
