"""Cost of a threshold per row, and its confidence interval."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.metrics.intervals import Interval, normal_quantile, sum_interval, wilson_interval
from rareclass.metrics.scored_classes import (
    FloatArray,
    amount_column,
    by_class,
    check_scores,
    label_column,
)
from rareclass.parameters import check_number


def expected_cost(
    y: ArrayLike,
    scores: ArrayLike,
    threshold: float = 0.5,
    cost_fp: ArrayLike = 1.0,
    cost_fn: ArrayLike = 1.0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean cost per row of calling rare what scores above a threshold.

    ``(sum_j w_j p_j [s_j > t] + sum_i w_i n_i [s_i <= t]) / (W+ + W-)`` over majority rows j and
    rare rows i, with ``p`` the cost of a false alert and ``n`` that of a rare row missed. In the
    unit of the costs; O(n) time and memory.

    Parameters
    ----------
    y, sample_weight
        As in `roc_auc`, with the same errors.
    scores : array-like of shape (n,)
        Higher means rarer; or decisions, True or 1 where a row was called rare.
    threshold : float, default 0.5
        Rows that score above it are called rare; the default reads decisions. NaN is refused.
    cost_fp, cost_fn : float or array-like of shape (n,), default 1
        What a false alert costs (a review), and a rare row that is missed (the amount at stake):
        one number, or one of each row. Finite and not negative, in any one unit.

    Examples
    --------
    >>> expected_cost([0, 0, 1, 1], [0.1, 0.7, 0.4, 0.9], cost_fp=1, cost_fn=[0, 0, 30, 500])
    7.75
    """
    estimate = cost_estimate(y, scores, sample_weight, threshold, cost_fp, cost_fn)
    return sum(part.value for part in estimate.parts)


class ClassCost(NamedTuple):
    """Cost of one class per row of both classes."""

    value: float
    at_worst: float  # the same, were every row an error
    n_trials: float  # rows that the share of cost incurred rests on
    of_amounts: float  # variance of the mean amount, per row of both classes

    @property
    def incurred(self) -> float:
        """Share of the possible cost that is incurred."""
        return min(self.value / self.at_worst, 1.0) if self.at_worst else 0.0

    @property
    def made_up(self) -> float:
        """One row of the spread that the class's errors have, as a part of the variance."""
        return self.incurred * (1.0 - self.incurred) * (self.at_worst / self.n_trials) ** 2

    def interval(self, level: float) -> Interval:
        """Interval of the class's cost."""
        incurred = self.incurred
        found = wilson_interval(incurred, self.n_trials, level)
        more = normal_quantile(level) * incurred * math.sqrt(self.of_amounts)
        below = math.hypot((incurred - found.low) * self.at_worst, more)
        above = math.hypot((found.high - incurred) * self.at_worst, more)
        return Interval(self.value, max(self.value - below, 0.0), self.value + above)


class CostEstimate(NamedTuple):
    """Estimate of a cost: the sum over both classes, the class shares being given.

    A class costs its share of the rows, times the mean cost ``A`` of an error in it, times the
    share ``R`` of that cost that is incurred. R has Wilson's interval in
    ``(sum w c)**2 / sum w c**2`` trials (c the costs), which is the number of rows where all cost
    the same; where costs differ, the mean A varies as well and the squared reach gains
    ``z**2 R**2 var(c) / W``. The reaches of the classes are added as squares.
    """

    parts: tuple[ClassCost, ...]

    def interval(self, level: float) -> Interval:
        """Interval of the sum of independent costs."""
        return sum_interval([part.interval(level) for part in self.parts])


def class_cost(
    error: NDArray[np.bool_],
    amount: FloatArray,
    weight: FloatArray | None,
    total: float,
    group: NDArray[np.intp] | None = None,
) -> ClassCost:
    """The cost of one class: which rows are errors, what each error costs, the weight of all rows.

    With groups, a group is one trial at the sum of its amounts.
    """
    w = np.ones(amount.size) if weight is None else weight
    mass = float(w.sum())
    worst = float(w @ amount)
    mean = worst / mass
    # Shares of the sum: squares of amounts could overflow.
    copies, share, apart = w, amount / (worst or 1.0), (amount - mean) / total
    if group is not None:
        share, apart = (np.bincount(group, w * each).astype(np.float64) for each in (share, apart))
        copies = np.ones(len(share))
    n_trials = 1.0 / float(copies @ share**2) if worst > 0.0 else mass
    spread = float(copies @ apart**2)
    return ClassCost(float(w @ (amount * error)) / total, worst / total, n_trials, spread)


def cost_columns(cost_fp: ArrayLike, cost_fn: ArrayLike, n: int) -> tuple[FloatArray, FloatArray]:
    """Both costs of each row; a single number is every row's."""
    return tuple(  # type: ignore[return-value]
        amount_column(np.full(n, cost) if np.ndim(cost) == 0 else cost, name, n)
        for name, cost in (("cost_fp", cost_fp), ("cost_fn", cost_fn))
    )


def check_threshold(threshold: float) -> None:
    """Infinite thresholds call every row alike; NaN is refused."""
    check_number("threshold", threshold, "a number", -math.inf, math.inf, "[]")


def cost_estimate(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    cost_fp: ArrayLike = 1.0,
    cost_fn: ArrayLike = 1.0,
) -> CostEstimate:
    """Estimate of `expected_cost`, which says what the columns are."""
    check_threshold(threshold)
    value, weight = check_scores(scores, sample_weight)
    label = label_column(y, value.size)
    fp, fn = cost_columns(cost_fp, cost_fn, value.size)
    total = float(value.size if weight is None else weight.sum())
    is_error, amount = (value > threshold) != label, np.where(label, fn, fp)
    classes = by_class("scores", label, weight, [is_error, amount, weight])
    parts = (class_cost(error, each, w, total) for _, error, each, w in classes)
    return CostEstimate(tuple(parts))
