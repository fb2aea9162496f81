r"""Losses of how all rows are labelled at once: F1, precision at k and the break-even point.

Such a measure is no sum over rows or pairs. It is a function of the contingency table: a, the
weight of the rare rows that are labelled rare, and b, that of the majority rows. A structural SVM
bounds it from above by the worst labelling,

.. math:: \xi(s, t) = \max_{\bar y} \; \Delta(\bar y) - \sum_{i \in P} u_i s_i
          + \sum_{j \in N} v_j t_j ,

s and t being the scores of rare and majority rows, :math:`u_i` a price for a rare row that
:math:`\bar y` labels majority and :math:`v_j` one for a majority row that it labels rare. It is a
maximum of linear functions of the scores, so convex. Among the labellings of one table the worst
has the a highest rare scores and the b highest majority scores labelled rare: two sorts and prefix
sums tell the value of any table.

Weights count as copies: a labelling may label any part of a row. Rows at the border that tie share
what is left by weight, so that equal rows stay equal and the order of rows does not matter.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rareclass.decide.alert_budget import AtMostAlerts
from rareclass.decide.constraints import AsManyAsRare, Constraint, GreatestFBeta
from rareclass.errors import ErrorKind
from rareclass.parameters import check_whole


class Labelling(NamedTuple):
    """Linear function of the scores that a loss is nowhere below: one labelling's."""

    delta: float
    rare: np.ndarray  # u, shape (m+,)
    majority: np.ndarray  # v, shape (m-,)

    def value(self, rare_scores: np.ndarray, majority_scores: np.ndarray) -> float:
        """Value of the function: the loss itself where the labelling is the worst."""
        return float(self.delta - self.rare @ rare_scores + self.majority @ majority_scores)


class RankedClass:
    """Scores of a class in falling order, with sums of the highest ones."""

    def __init__(self, scores: np.ndarray, weight: np.ndarray) -> None:
        self.scores, self.weight = scores, weight
        order = np.argsort(-scores, kind="stable")
        self.ranked = scores[order]
        ranked_weight = weight[order]
        # Weight and total score of the first 0, 1, ..., n rows.
        self.ends = np.concatenate([[0.0], np.cumsum(ranked_weight)])
        self._sums = np.concatenate([[0.0], np.cumsum(ranked_weight * self.ranked)])
        self.total = float(self.ends[-1])  # weight of all rows

    def highest(self, weight: np.ndarray) -> np.ndarray:
        """Total score of so much of the highest-scored weight."""
        return np.interp(weight, self.ends, self._sums)

    def lowest(self, weight: np.ndarray) -> np.ndarray:
        """Total score of so much of the lowest-scored weight."""
        return self._sums[-1] - np.interp(self.total - weight, self.ends, self._sums)

    def taken(self, weight: float) -> np.ndarray:
        """Weight of each row, in the caller's order, among the highest-scored `weight`."""
        if weight <= 0.0:
            return np.zeros(len(self.scores))
        last = min(int(self.ends[1:].searchsorted(weight)), len(self.ranked) - 1)
        above, tied = self.scores > self.ranked[last], self.scores == self.ranked[last]
        share = (weight - self.weight[above].sum()) / self.weight[tied].sum()
        return self.weight * (above + min(max(share, 0.0), 1.0) * tied)


class LabellingLoss(ABC):
    """A loss of the labels of all rows, by its worst labelling."""

    has_intercept: ClassVar[bool] = False  # true where the loss depends on where scores lie

    @abstractmethod
    def worst(self, rare: RankedClass, majority: RankedClass) -> Labelling:
        """The labelling with the greatest value at these scores.

        Raises `InputError` on weights or a size that the loss does not know what to do with.
        """

    def first(self, rare: RankedClass, majority: RankedClass) -> list[Labelling]:
        """Labellings that keep the problem bounded before any is known to be the worst."""
        return []

    def constraint(self, n_rows: float) -> Constraint:
        """The aim of a threshold that goes with the loss, on rows of so much weight."""
        return AsManyAsRare()


@dataclass(frozen=True)
class F1(LabellingLoss):
    r"""One minus F1 of the rows that score above zero, with an intercept.

    .. math:: \Delta = 1 - \frac{2a}{a + b + W_+}, \qquad
              u_i = \frac{w_i}{2 W_+}, \quad v_j = \frac{w_j}{2 W_+}

    for rows that are labelled wrong. With these prices a single wrong row costs nothing once its
    score is at least 1 on the right side of zero: :math:`\Delta` rises by about
    :math:`1 / (2 W_+)` for either kind. The scores are f(x) + b with an intercept b that is
    learned and not regularised.

    Notes
    -----
    Worst labelling in O(m log m). For one a the value is concave in b, :math:`-2a / (a + b + W_+)`
    and the sum of the b highest scores both being so: its slope changes sign once, in one cell of
    the ranked majority, where the best b has a closed form. For one b the value is convex in a
    while a moves within one rare row's weight, so that the best a is at the end of a row. So m+ + 1
    values of a are tried, and a bisection finds b for each.

    Examples
    --------
    >>> rare, majority = np.array([3.0, -1.0]), np.array([0.5, -3.0])
    >>> found = F1().worst(*(RankedClass(s, np.ones(2)) for s in (rare, majority)))
    >>> found.value(rare, majority), found.rare, found.majority  # a = 1, b = 1
    (0.875, array([0.  , 0.25]), array([0.25, 0.  ]))
    """

    has_intercept: ClassVar[bool] = True

    def worst(self, rare: RankedClass, majority: RankedClass) -> Labelling:
        """The labelling with the greatest value at these scores."""
        price, a = 0.5 / rare.total, rare.ends
        b = _best_b(a, rare.total, price, majority)
        missed = rare.lowest(rare.total - a)
        value = -2.0 * a / (a + b + rare.total) + price * (majority.highest(b) - missed)
        k = int(np.argmax(value))
        return _missed_or_wrong(float(a[k]), float(b[k]), rare, majority)

    def first(self, rare: RankedClass, majority: RankedClass) -> list[Labelling]:
        """Nothing rare, and everything: they keep the intercept from running away."""
        ends = (0.0, 0.0), (rare.total, majority.total)
        return [_missed_or_wrong(a, b, rare, majority) for a, b in ends]

    def constraint(self, n_rows: float) -> Constraint:
        """The greatest F1."""
        return GreatestFBeta()


def _missed_or_wrong(a: float, b: float, rare: RankedClass, majority: RankedClass) -> Labelling:
    """The labelling of a table with the prices of `F1`."""
    delta, price = 1.0 - 2.0 * a / (a + b + rare.total), 0.5 / rare.total
    return Labelling(delta, price * (rare.weight - rare.taken(a)), price * majority.taken(b))


def _best_b(a: np.ndarray, rare_total: float, price: float, majority: RankedClass) -> np.ndarray:
    """The real b of greatest value for each a; see `F1`."""
    t, ends, C = majority.ranked, majority.ends, a + rare_total
    # The number of rows at whose start the value still rises: it does up to one of them.
    low, high = np.zeros(len(a), dtype=np.int64), np.full(len(a), len(t))
    while (open_ := low < high).any():
        middle = np.minimum((low + high) // 2, len(t) - 1)
        rises = 2.0 * a / (C + ends[middle]) ** 2 + price * t[middle] > 0.0
        low = np.where(open_ & rises, middle + 1, low)
        high = np.where(open_ & ~rises, middle, high)
    last = np.maximum(low - 1, 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        flat = np.sqrt(2.0 * a / (-price * t[last])) - C  # where the slope is zero
    flat = np.where(t[last] < 0.0, flat, np.inf)
    return np.where(low > 0, np.clip(flat, ends[last], ends[low]), 0.0)


@dataclass(frozen=True)
class BreakEven(LabellingLoss):
    r"""One minus precision, or recall, where both are equal: with as many rows as there are rare.

    .. math:: \Delta = 1 - \frac{a}{W_+}, \quad a + b = W_+, \qquad
              u_i = \frac{w_i}{W_+}, \quad v_j = \frac{w_j}{W_+}

    Only differences of scores matter: a rare row that changes places with a majority row costs
    nothing once it scores higher by 1.

    Notes
    -----
    Worst labelling in O(m log m): the value is concave and piecewise linear in a, and all ends of
    its pieces are tried.
    """

    def worst(self, rare: RankedClass, majority: RankedClass) -> Labelling:
        """The labelling with the greatest value at these scores."""
        k = rare.total
        low = max(0.0, k - majority.total)
        a = np.clip(np.concatenate([rare.ends, k - majority.ends]), low, k)
        return _worst_exchange(k, a, rare, majority)


@dataclass(frozen=True)
class PrecisionAtK(LabellingLoss):
    r"""One minus the precision of the k rows that score highest.

    .. math:: \Delta = 1 - \frac{a}{k}, \quad a + b = k, \qquad
              \xi = \max_a \; \Delta + \frac{\min(k, W_+) - a}{k}
              \bigl( \bar t_{k - a} - \bar s_{W_+ - a} \bigr)

    with the mean scores of the :math:`k - a` highest majority rows and of the :math:`W_+ - a`
    lowest rare ones: as many pairs as would have to change places. For :math:`k = W_+` this is
    `BreakEven`, and Joachims' bound. For another k his compares with a labelling that has not k
    rare rows: it moves with a constant added to all scores and is no bound. This one does not move,
    and is one.

    Parameters
    ----------
    k : int or None, default=None
        Number of rows that are looked at; None: as many as there are rare ones, the break-even
        point. With a number all weights that are not 0 must be equal.

    Notes
    -----
    Worst labelling in O(m log m): all min(k, m+) + 1 tables are tried.

    References
    ----------
    .. [1] Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    .. [2] Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the top", ICML
       2015: means in place of sums.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            check_whole("k", self.k, "None or a whole number of at least 1")

    def worst(self, rare: RankedClass, majority: RankedClass) -> Labelling:
        """The labelling with the greatest value at these scores."""
        if self.k is None:
            return BreakEven().worst(rare, majority)
        weights = np.concatenate([rare.weight, majority.weight])
        unit = float(weights.max())
        if not np.isin(weights, (0.0, unit)).all():
            raise ErrorKind.UNSUPPORTED.error(
                f"precision at k={self.k} counts rows, and some have other weights than others.",
                "Leave out sample_weight and search_rows, or take k=None, the break-even point.",
                value=self.k,
            )
        k, n_rows = self.k * unit, (rare.total + majority.total) / unit
        if self.k > n_rows:
            raise ErrorKind.SETTING.error(
                f"k={self.k} is more than the {n_rows:g} rows to learn from.",
                "Lower k.",
                value=self.k,
            )
        a = np.arange(max(0.0, k - majority.total), min(k, rare.total) + 0.5 * unit, unit)
        return _worst_exchange(k, a, rare, majority)

    def constraint(self, n_rows: float) -> Constraint:
        """At most k rows."""
        if self.k is None or self.k >= n_rows:
            return AsManyAsRare()
        return AtMostAlerts(int(self.k), int(n_rows))


def _worst_exchange(k: float, a: np.ndarray, rare: RankedClass, majority: RankedClass) -> Labelling:
    """The worst labelling with a + b = k among tables; see `PrecisionAtK`."""
    missed, wrong, pairs = rare.total - a, k - a, min(k, rare.total) - a
    # Share of the missed rare rows, and of the wrong majority rows, that have a partner.
    of_rare, of_majority = (
        np.divide(pairs, size, out=np.zeros(len(a)), where=size > 0.0) for size in (missed, wrong)
    )
    apart = of_majority * majority.highest(wrong) - of_rare * rare.lowest(missed)
    at = int(np.argmax((apart - a) / k))
    return Labelling(
        1.0 - float(a[at]) / k,
        of_rare[at] / k * (rare.weight - rare.taken(float(a[at]))),
        of_majority[at] / k * majority.taken(float(wrong[at])),
    )
