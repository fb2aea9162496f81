"""Rate of weighted rows above a threshold, such as of alerts, with its confidence interval."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics.intervals import Interval, mid_p_bounds
from rareclass.metrics.scored_classes import FloatArray

_EQUAL = 1e-9


class WeightedRate(NamedTuple):
    """Weight of the rows above a threshold, or above each of several, and of all rows.

    The `unit` of a class is the number of rows that one drawn row stands for, apart from its
    duplicates: 1 of all rows, 10 where one row in 10 was drawn (`row_units`). Weights are therefore
    copies of drawn rows: k rows of weight 1 and one row of weight k give the same interval.
    """

    rare: Any  # weight of the rare rows above: a number, or one for each threshold
    majority: Any
    n_rare: float  # weight of all rare rows
    n_majority: float
    rare_unit: float = 1.0
    majority_unit: float = 1.0

    @classmethod
    def of(
        cls, scores: FloatArray, threshold: float, is_rare: NDArray[np.bool_], weight: Any = None
    ) -> Self:
        """Count the rows above one threshold."""
        weight = np.ones(len(scores)) if weight is None else np.asarray(weight, float)
        rare, n_rare, majority, n_majority = (
            float(weight[each & rows].sum())
            for each in (is_rare, ~is_rare)
            for rows in (scores > threshold, True)
        )
        return cls(rare, majority, n_rare, n_majority, *row_units(is_rare, weight))

    @classmethod
    def counted(cls, n_above: float, n_rows: float) -> Self:
        """Return the rate of rows that all count once."""
        return cls(n_above, 0.0, n_above, n_rows - n_above)

    @property
    def value(self) -> Any:
        """Share of the weight above each threshold."""
        return (self.rare + self.majority) / (self.n_rare + self.n_majority)

    def bounds(self, level: float) -> tuple[Any, Any]:
        r"""Return the lower and upper bounds.

        A class with unit c has :math:`A / c` rows above among :math:`N / c`, A its weight above and
        N the weight of all rows: its part of the rate has the binomial mid-p interval. The squares
        of the reaches of both classes add up (Zou and Donner 2008), so that a class without a
        row above still widens the upper bound, by about 3 c rows. Classes of the same unit are one.
        Above a rate of one half the rows below are counted. O(1) for each threshold.
        """
        total, is_half = self.n_rare + self.n_majority, self.value <= 0.5
        sizes = (self.rare, self.n_rare), (self.majority, self.n_majority)
        parts = [np.where(is_half, above, size - above) for above, size in sizes]
        units = [self.rare_unit, self.majority_unit]
        if abs(units[0] - units[1]) <= _EQUAL * units[0]:
            parts, units = [parts[0] + parts[1]], units[:1]
        down = up = 0.0
        for weight, unit in zip(parts, units, strict=True):
            low, high = mid_p_bounds(weight / unit, total / unit, (1.0 - level) / 2.0)
            down = down + (weight / total - low) ** 2
            up = up + (high - weight / total) ** 2
        value, down, up = sum(parts) / total, np.sqrt(down), np.sqrt(up)
        low, high = np.maximum(value - down, 0.0), np.minimum(value + up, 1.0)
        return np.where(is_half, low, 1.0 - high), np.where(is_half, high, 1.0 - low)

    def interval(self, level: float) -> Interval:
        """Return the rate above one threshold with its interval."""
        low, high = self.bounds(level)
        return Interval(float(self.value), float(low), float(high))


def row_units(is_rare: NDArray[np.bool_], weight: FloatArray) -> tuple[float, float]:
    """Return how many rows a drawn row of the rare class stands for, and one of the majority.

    Rare rows are never thinned: with whole weights they are copies. In the majority a smallest
    weight c of which all others are multiples is the unit, c = 1 where rows are not thinned. Other
    weights have the unit with the same variance, ``sum w**2 / sum w`` (Kish).

    >>> is_rare = np.array([True, False, False])
    >>> row_units(is_rare, np.array([2.0, 10.0, 30.0]))
    (1.0, 10.0)
    >>> row_units(is_rare, np.array([1.0, 2.0, 3.0]))
    (1.0, 2.6)
    """
    some = weight > 0
    rare, majority = weight[some & is_rare], weight[some & ~is_rare]
    of_majority = _unit(majority, float(majority.min())) if len(majority) else 1.0
    return _unit(rare, 1.0) if len(rare) else of_majority, of_majority


def _unit(weight: FloatArray, least: float) -> float:
    """Return `least` where all weights are multiples of it."""
    times = weight / least
    if np.abs(times - np.round(times)).max() <= _EQUAL * times.max():
        return least
    return float(weight @ weight / weight.sum())
