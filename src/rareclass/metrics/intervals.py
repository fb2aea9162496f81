"""Confidence intervals and exact tests of shares, their sums and differences; any real counts."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_number
from rareclass.table_block import TableBlock

LEAST_P = 1e-12
_STEPS = 60  # of a bisection
# Sums of fractional weights that are equal on paper differ by rounding.
EQUAL = 1e-12
# Groups of like rows that are added to those of a sample: few groups show little of how alike.
MADE_UP = 2.0
_EQUAL = 1e-9


class Interval(NamedTuple):
    """An estimate and the bounds of its confidence interval, ``low <= value <= high``."""

    value: float
    low: float
    high: float

    def text(self, digits: str = ".3f") -> str:
        """Format a measure with its bounds.

        >>> Interval(0.93, 0.893, 0.955).text(), Interval(0.1, -0.12, 0.3).text("+.1f")
        ('0.930 (0.893 to 0.955)', '+0.1 (-0.1 to +0.3)')
        """
        return f"{self.value:{digits}} ({self.bounds_text(digits)})"

    def bounds_text(self, digits: str = ".3f") -> str:
        """Format the bounds of a measure."""
        return f"{self.low:{digits}} to {self.high:{digits}}"

    def amounts(self) -> str:
        """Format a quantity with its bounds.

        >>> Interval(12.0, 9.5, 1140.0).amounts()
        '12 (9.5 to 1,140)'
        """
        return f"{amount_text(self.value)} ({self.amount_bounds()})"

    def amount_bounds(self) -> str:
        """Format the bounds of a quantity."""
        return f"{amount_text(self.low)} to {amount_text(self.high)}"


def amount_text(number: float) -> str:
    r"""Format a quantity with three digits, or all of a large one.

    >>> amount_text(1234.5), amount_text(12.345), amount_text(0.01234), amount_text(float("nan"))
    ('1,234', '12.3', '0.0123', '\u2013')
    """
    if math.isnan(number):
        return "\u2013"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def measures_block(
    head: str, measures: Iterable[tuple[str, Interval | None, int]], level: float = 0.95
) -> TableBlock:
    """Return a table of measures: name, value and interval, with so many digits."""
    rows = []
    for name, each, digits in measures:
        if each is None:
            rows.append((name, "unknown", ""))
            continue
        bounds = "exact" if each.low == each.high else each.bounds_text(f",.{digits}f")
        rows.append((name, f"{each.value:,.{digits}f}", bounds))
    return TableBlock("", (head, "Value", f"{level:.0%} interval"), tuple(rows))


class Estimate(Protocol):
    """Estimate of a measure of one column."""

    def interval(self, level: float) -> Interval:
        """Return its interval at a level."""


class ShareEstimate(NamedTuple):
    """Estimate of a share s, with its interval at any level; ``offset + factor s`` is reported."""

    value: float
    centre: float  # the same, freed from its first-order bias
    variance: float  # of the estimate, cautious
    n_trials: float  # independent rows that it rests on
    offset: float = 0.0
    factor: float = 1.0

    def interval(self, level: float) -> Interval:
        """Interval on the logit scale, cut to what the worst distribution on [0, 1] would allow.

        With ``z`` the normal quantile of ``1 - (1 - level) / 2``, the bounds are
        ``expit(logit(centre) -+ z sqrt(variance) / (centre (1 - centre)))``, cut to the
        Clopper-Pearson bounds of ``value`` in `n_trials` yes-or-no trials. At a value of 1 those
        alone remain: ``low = ((1 - level) / 2)**(1 / n_trials)``. The value is always inside.
        """
        z, value, centre = normal_quantile(level), self.value, self.centre
        _, low, high = exact_interval(value * self.n_trials, self.n_trials, level)
        if 0.0 < centre < 1.0:
            middle = special.logit(centre)
            reach = z * np.sqrt(self.variance) / (centre * (1.0 - centre))
            low = max(low, float(special.expit(middle - reach)))
            high = min(high, float(special.expit(middle + reach)))
        bounds = (value, min(low, value), max(high, value))
        return Interval(*(self.offset + self.factor * bound for bound in bounds))


def cautious_square_sum(
    weight: FloatArray, influence: FloatArray, share: float, part: float = 1.0
) -> float:
    """Squared influences added up, with one made-up row of the greatest possible spread.

    ``sum_i weight_i influence_i**2 + share (1 - share) / part**2``, where the measure is a mean
    over a `part` of the rows. The influence of a row on a mean of numbers in [0, 1] has variance
    ``share (1 - share)`` at most. A sample of few rows often shows none of the spread that is there
    (all but one rare row at the very top); the extra row is worth 1 / n of the answer and keeps the
    interval honest: docs/decisions/0005 has the coverage with and without it.
    """
    return float(weight @ influence**2) + share * (1.0 - share) / part**2


def stretch_for_training(n_tested: float, n_train: float) -> float:
    """Factor from the interval of held-out scores to that of what is learned from such rows.

    Held-out scores as they are have the variance V of which rows were tested. Other training rows
    would have given other models, and the folds' models share most of theirs, so that the luck of
    one is the luck of all. Nadeau and Bengio (2003, "Inference for the generalization error",
    Machine Learning 52) put the variance of the mean of K folds, each of variance K V, at
    ``K V (1 / K + n_test / n_train)``; with ``n_tested = K n_test`` that is
    ``V (1 + n_tested / n_train)``. Its square root is 1.5 for 5 folds, whatever their number of
    rows.

    >>> stretch_for_training(100, 80)
    1.5
    """
    return math.sqrt(1.0 + n_tested / n_train)


def stretch_of_folds(n_rows: float, n_tested: float, n_folds: int) -> float:
    """Return `stretch_for_training` of folds that learn from all rows but those they test."""
    return stretch_for_training(n_tested, n_rows - n_tested / n_folds)


def widened(interval: Interval, factor: float) -> Interval:
    """Return the interval of a share with bounds so many times as far away, on the logit scale.

    Around 0 and 1, which have no logit, on the scale of shares. Measures that can be negative are
    not shares.

    >>> widened(Interval(0.5, 0.4, 0.6), 1.0)
    Interval(value=0.5, low=0.4, high=0.6)
    """
    value = interval.value

    def bound(at: float) -> float:
        if not 0.0 < value < 1.0:
            return min(max(value + factor * (at - value), 0.0), 1.0)
        middle = special.logit(value)
        return float(special.expit(middle + factor * (special.logit(at) - middle)))

    if factor == 1.0 or math.isnan(value):
        return interval
    return Interval(value, min(bound(interval.low), value), max(bound(interval.high), value))


def wilson_interval(value: float, n_trials: float, level: float) -> Interval:
    """Wilson's score interval of a share of `n_trials` yes-or-no trials."""
    z2 = normal_quantile(level) ** 2
    middle = (value + z2 / (2.0 * n_trials)) / (1.0 + z2 / n_trials)
    spread = value * (1.0 - value) / n_trials + z2 / (4.0 * n_trials**2)
    reach = float(np.sqrt(z2 * spread)) / (1.0 + z2 / n_trials)
    low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
    return Interval(value, min(low, value), max(high, value))


def sum_interval(parts: Sequence[Interval]) -> Interval:
    """Interval of a sum of independent estimates: the squares of their reaches add up.

    The method of variance estimates recovery (Zou and Donner 2008): each bound uses the reach of
    the parts to its own side, so that bounds that are not symmetric stay so.
    """
    value = sum(part.value for part in parts)
    below = math.hypot(*(part.value - part.low for part in parts))
    above = math.hypot(*(part.high - part.value for part in parts))
    return Interval(value, value - below, value + above)


def difference_interval(a: Interval, b: Interval, correlation: float) -> Interval:
    """Interval of ``a - b`` from the intervals of both and the correlation r of the estimates.

    ``low = a - b - sqrt(la**2 - 2 r la ub + ub**2)`` with ``la`` how far a's interval reaches down
    and ``ub`` how far b's reaches up, and ``high`` likewise (Zou 2007, "Toward using confidence
    intervals to compare correlations").
    """

    def reach(one: float, other: float) -> float:
        return math.sqrt(max(one * one - 2.0 * correlation * one * other + other * other, 0.0))

    difference = a.value - b.value
    low = difference - reach(a.value - a.low, b.high - b.value)
    return Interval(difference, low, difference + reach(a.high - a.value, b.value - b.low))


def normal_quantile(level: float) -> float:
    """How many standard deviations either side hold `level` of a normal distribution."""
    check_number("level", level, "above 0 and below 1, such as 0.95", high=1.0)
    return float(special.ndtri(0.5 + level / 2.0))


def p_value_of_intervals(at: Callable[[float], Interval], level: float) -> float:
    """1 less the highest level whose interval leaves out 0, by bisection of its logarithm.

    ``at(level)`` is the interval, wider at higher levels. On which side of ``1 - level`` the
    p-value lies agrees with ``at(level)`` exactly. At least 1e-12.
    """

    def holds_zero(log_tail: float) -> bool:
        found = at(-np.expm1(log_tail))
        return found.low <= 0.0 <= found.high

    held, left_out = np.log(LEAST_P), np.log1p(-1e-9)
    if holds_zero(left_out):
        return 1.0
    if not holds_zero(held):
        return LEAST_P
    # What is reported at `level` says on which side of it the p-value lies.
    middle = np.log1p(-level)
    for _ in range(_STEPS + 1):
        if holds_zero(middle):
            held = max(held, middle)
        else:
            left_out = min(left_out, middle)
        middle = (held + left_out) / 2.0
    return float(np.exp(left_out))


def chance_of_at_least(hits: Any, trials: Any, share: Any) -> Any:
    r"""``P(Bin(trials, share) >= hits)``: small where the true share is more than `share`.

    The incomplete beta function ``I_share(hits, trials - hits + 1)``, 1 for no hits.
    """
    return _beta_of_hits(special.betainc, hits, trials, share, without_hits=1.0)


def chance_of_at_most(hits: Any, trials: Any, share: Any) -> Any:
    """``P(Bin(trials, share) <= hits)``: small where the true share is less than `share`."""
    return chance_of_at_least(np.asarray(trials, float) - hits, trials, 1.0 - np.asarray(share))


def lower_bound(hits: Any, trials: Any, tail: Any) -> Any:
    """Lower bound of a share at ``1 - tail``: so many hits or more have the chance `tail` of it."""
    return _beta_of_hits(special.betaincinv, hits, trials, tail, without_hits=0.0)


def _beta_of_hits(beta: Any, hits: Any, trials: Any, at: Any, without_hits: float) -> Any:
    """Return a function of ``Beta(hits, trials - hits + 1)``, which does not exist without hits."""
    hits, trials = np.broadcast_arrays(np.asarray(hits, float), trials)
    some = np.maximum(hits, np.finfo(float).tiny)
    return np.where(hits > 0, beta(some, np.maximum(trials - hits, 0) + 1, at), without_hits)


def upper_bound(hits: Any, trials: Any, tail: Any) -> Any:
    """Upper bound of a share at ``1 - tail``; see `lower_bound`."""
    return 1.0 - lower_bound(np.asarray(trials, float) - hits, trials, tail)


def mid_p_bounds(hits: Any, trials: float, tail: float) -> tuple[Any, Any]:
    r"""Bounds p of a share with ``P(more hits) + P(as many) / 2 = tail`` of Bin(trials, p).

    Those below for the lower bound, the mirrored ones for the upper. By bisection between the
    Clopper-Pearson bound and the share; those exact intervals hold the share more often than
    stated, mid-p intervals about as often: 91.6 % at least of 95 %, 93.5 to 96.7 % from 10 expected
    hits on.
    """
    hits, bounds = np.clip(np.asarray(hits, float), 0.0, trials), []
    log_ways = special.gammaln(trials + 1.0)
    log_ways = log_ways - special.gammaln(hits + 1.0) - special.gammaln(trials - hits + 1.0)
    for count in (hits, trials - hits):
        others, some = trials - count, np.maximum(count, np.finfo(float).tiny)
        low, high = lower_bound(count, trials, tail), count / trials
        for _ in range(_STEPS // 2):
            middle = (low + high) / 2.0
            log_chance = special.xlogy(count, middle) + special.xlog1py(others, -middle)
            at_least = special.betainc(some, others + 1.0, middle)
            is_less = at_least - np.exp(log_ways + log_chance) / 2.0 < tail
            low, high = np.where(is_less, middle, low), np.where(is_less, high, middle)
        bounds.append(np.where(count > 0.0, low, 0.0))
    return bounds[0], 1.0 - bounds[1]


def exact_interval(hits: float, trials: float, level: float) -> Interval:
    """Clopper-Pearson's two-sided interval; from 0 to 1 around NaN where there are no trials."""
    if trials <= 0:
        return Interval(float("nan"), 0.0, 1.0)
    tail = (1.0 - level) / 2.0
    value = hits / trials
    low, high = float(lower_bound(hits, trials, tail)), float(upper_bound(hits, trials, tail))
    return Interval(value, min(low, value), max(high, value))


def trials_of_share(
    is_hit: NDArray[np.bool_],
    among: NDArray[np.bool_],
    weight: FloatArray | None = None,
    group: NDArray[np.intp] | None = None,
) -> tuple[float, float]:
    """Hits and trials of the share of hits among some rows, as a test of it counts them.

    Whole weights are copies; with others rows count as so many as have the same variance (Kish),
    and rows of a group, one code each, as `trials_of_groups` says. O(n).
    """
    every = np.ones(len(among)) if weight is None else weight
    rows = np.where(among, every, 0.0)
    hits, n = float(rows @ is_hit), float(rows.sum())
    if n == 0.0:
        return 0.0, 0.0
    trials = n if (every == np.round(every)).all() else n**2 / float(rows @ rows)
    if group is not None:
        amounts = rows * is_hit, rows, every
        of_hits, of_rows, of_all = (np.bincount(group, each) for each in amounts)
        share, squares = hits / n, np.array([of_rows @ of_rows, of_all @ of_all])
        spread = float(np.square(of_hits - share * of_rows).sum())
        sizes, n_groups = np.array([n, every.sum()]), float((of_rows > 0.0).sum())
        trials = min(trials, float(trials_of_groups(sizes, share, spread, squares, n_groups)[0]))
    return hits if trials == n else hits / n * trials, trials


def trials_of_groups(
    every: Any, share: Any, spread: Any, squares: Any, n_groups: Any
) -> FloatArray:
    r"""Trials that vary as a share of rows of groups does (Korn and Graubard 1998).

    .. math:: n \Big/ \frac{G e + 2 k_1}{G + 2}, \quad
        e = \frac{\sum_g (a_g - p n_g)^2}{n p (1 - p)}, \quad k = \frac{\sum_g n_g^2}{n}

    with a share p of n rows (`every`) in G groups, a group's :math:`a_g` of :math:`n_g` rows. The
    design effect e is that of the linearised variance of a ratio (`spread`). It is k where rows of
    a group are all alike, and where a share of 0 or 1 says nothing of it. Few groups need two more,
    all alike and as large as those of all rows (:math:`k_1` is the last k).
    """
    tiny = np.finfo(float).tiny
    alike = np.atleast_1d(squares) / np.maximum(every, tiny)
    some = (share > EQUAL) & (share < 1.0 - EQUAL)
    variance = np.where(some, every * share * (1.0 - share), 1.0)
    effect = n_groups * np.where(some, spread / variance, alike) + MADE_UP * alike[-1]
    return np.asarray(every * (n_groups + MADE_UP) / np.maximum(effect, tiny))


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

    def of_rows_alike(self, alike: float) -> Self:
        """Return the rate of rows of which so many count as one, as rows of a group do."""
        units = self.rare_unit * alike, self.majority_unit * alike
        return self._replace(rare_unit=units[0], majority_unit=units[1])

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

    def interval(self, level: float = 0.95) -> Interval:
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
