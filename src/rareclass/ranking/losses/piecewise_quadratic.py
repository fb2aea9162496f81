"""Losses of pairs in three pieces, linear, quadratic and zero: prefix sums over the rare scores.

The smoothed hinge, which is the paper's loss, and the squared hinge.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rareclass.parameters import check_number
from rareclass.ranking.losses import _piecewise_quadratic_jit as jit
from rareclass.ranking.losses.pair_loss import BlockTerms, PairLoss, RareTerms


class RareSide(NamedTuple):
    """The rare scores, sorted, with prefix sums: what a block needs to know of them.

    Arrays of m+ numbers in sorted order (``order`` leads there from the caller's order). The
    ``prefixes`` are sums of w, w s and w s^2: m+ + 1 entries each, the first one zero.
    """

    order: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    centre: float
    prefixes: tuple[np.ndarray, ...]


class Zone(NamedTuple):
    """Rare rows ``low[j]:high[j]`` (sorted) make a pair with curvature with majority row j."""

    low: np.ndarray
    high: np.ndarray


class PlacedZone(NamedTuple):
    """A Zone and the centred scores of its rows."""

    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray


class RareDirection(NamedTuple):
    """Prefix sums of w d and of w s d over the sorted rare rows."""

    weight_sum: np.ndarray
    score_sum: np.ndarray


class Shape(NamedTuple):
    r"""The three pieces.

    .. math::

        \ell(z) = \begin{cases} \mathrm{steep} \, (\mathrm{knee} - z) & z < \mathrm{bound} \\
            \mathrm{curve} \, (1 - z)^2 / 2 & \mathrm{bound} \le z < 1 \\ 0 & z \ge 1 \end{cases}
    """

    bound: float
    knee: float
    steep: float
    curve: float


class RowTerms(NamedTuple):
    """Sums of the majority rows of a block over the rare rows, majority weights left out."""

    total: np.ndarray  # shape (n,)
    slope: np.ndarray  # shape (n,): of the total in the row's score, at or above zero
    zone: PlacedZone


class PiecewiseQuadratic(PairLoss):
    """A loss in three pieces, each pair's zone found by binary search.

    Two binary searches among the rare scores for each majority row, O(log m+); no pair is formed
    and the majority is never sorted.
    """

    @property
    def shape(self) -> Shape:
        """Ends and slopes of the three pieces."""
        raise NotImplementedError

    @property
    def at_zero(self) -> float:
        """The loss of a pair with equal scores."""
        bound, knee, steep, curve = self.shape
        return steep * knee if bound > 0.0 else 0.5 * curve

    def rare(self, scores: np.ndarray, weight: np.ndarray) -> RareSide:
        """Sort the rare side and sum its prefixes: O(m+ log m+)."""
        order = np.argsort(scores, kind="stable")
        w = weight[order]
        total = w.sum()
        # Prefix sums of squares lose fewer digits around the middle of the scores.
        centre = float(scores @ weight / total) if total > 0.0 else 0.0
        s = scores[order] - centre
        return RareSide(order, s, w, centre, tuple(map(_prefix, (w, w * s, w * s * s))))

    def block(self, rare: RareSide, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        n = len(scores)
        gradient = np.empty(n)
        low, high = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        sums = np.zeros((3, len(rare.scores) + 1))
        t = scores - rare.centre
        value = jit._block(
            rare.scores, *rare.prefixes, t, weight, self.shape, gradient, low, high, sums
        )
        return BlockTerms(value, gradient, sums, Zone(low, high))

    def rows(self, rare: RareSide, scores: np.ndarray) -> RowTerms:
        """Each majority row's own sum over the rare rows, and its slope."""
        n = len(scores)
        total, slope = np.empty(n), np.empty(n)
        low, high = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        t = scores - rare.centre
        jit._rows(rare.scores, *rare.prefixes, t, self.shape, total, slope, low, high)
        return RowTerms(total, slope, PlacedZone(low, high, t))

    def pull(self, rare: RareSide, zone: tuple, weight: np.ndarray) -> np.ndarray:
        """Rare-side sums, for `finish`, of majority rows of any weight."""
        sums = np.zeros((3, len(rare.scores) + 1))
        jit._pull(*zone, weight, sums)
        return sums

    def finish(self, rare: RareSide, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score, in the caller's order, from the sums of all blocks."""
        # Majority row j has rare row i in its linear zone when low_j > i.
        linear = sums[0, ::-1].cumsum()[::-1][1:]
        count, reach = sums[1:].cumsum(axis=1)[:, :-1]
        pull = self.shape.steep * linear + self.shape.curve * (reach - rare.scores * count)
        return RareTerms(0.0, _unsort(rare, -rare.weight * pull))

    def rare_direction(self, rare: RareSide, direction: np.ndarray) -> RareDirection:
        """Prefix sums of w d and w s d over the sorted rare rows, for `curvature`."""
        change = rare.weight * direction[rare.order]
        return RareDirection(_prefix(change), _prefix(change * rare.scores))

    def row_change(
        self, rare: RareSide, prefix: RareDirection, zone: tuple, direction: np.ndarray
    ) -> np.ndarray:
        """Change of each majority row's sum along a direction of all scores."""
        change = np.empty(len(direction))
        jit._row_change(*rare.prefixes[:2], *prefix, *zone, direction, self.shape, change)
        return change

    def curvature(
        self,
        rare: RareSide,
        prefix: RareDirection,
        zone: tuple,
        direction: np.ndarray,
        weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        product = np.empty(len(direction))
        sums = np.zeros((2, len(rare.scores) + 1))
        d = np.ascontiguousarray(direction)
        of_weight = rare.prefixes[0], prefix.weight_sum
        jit._curvature(*of_weight, *zone[:2], d, weight, self.shape.curve, product, sums)
        return product, sums

    def finish_curvature(
        self, rare: RareSide, prefix: RareDirection, direction: np.ndarray, sums: np.ndarray
    ) -> np.ndarray:
        """Hessian times direction by rare score, from the sums of all blocks."""
        count, reach = sums.cumsum(axis=1)[:, :-1]
        d = direction[rare.order]
        return _unsort(rare, rare.weight * (d * count - reach) * self.shape.curve)

    def curved(self, zone: tuple) -> np.ndarray:
        """Mask of the rows with a pair in the quadratic part."""
        low, high = zone[:2]
        return high > low

    def pair_curvature(self, rare: RareSide, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs, times the rare row's weight: not zero in the quadratic part."""
        s, w = (_unsort(rare, values)[which, None] for values in (rare.scores, rare.weight))
        z = s - (scores - rare.centre)
        inside = (z >= self.shape.bound) & (z < 1.0)
        return np.where(inside, w * self.shape.curve, 0.0)


def _prefix(values: np.ndarray) -> np.ndarray:
    """Prefix sums with a leading zero."""
    return np.append(0.0, np.cumsum(values))


def _unsort(rare: RareSide, values: np.ndarray) -> np.ndarray:
    """Values in sorted order, back in the caller's order."""
    result = np.empty(len(values))
    result[rare.order] = values
    return result


@dataclass(frozen=True)
class SmoothedHinge(PiecewiseQuadratic):
    r"""The hinge with its corner rounded: linear, quadratic, zero.

    .. math::

        \ell(z) = \begin{cases} (1 - \epsilon) - z & z < 1 - 2\epsilon \\
            (1 - z)^2 / (4 \epsilon) & 1 - 2\epsilon \le z < 1 \\ 0 & z \ge 1 \end{cases}

    ``eps``, in (0, 1/2], is half the width of the quadratic part. Smaller is nearer the hinge, and
    its curvature 1 / (2 eps) is sharper: more Newton steps. Section 3 of the paper, equations (18)
    to (20).

    >>> import numpy as np
    >>> loss = SmoothedHinge()
    >>> one = np.ones(1)
    >>> loss.block(loss.rare(0 * one, one), 0 * one, one).value
    0.5
    """

    eps: float = 0.5

    def __post_init__(self) -> None:
        check_number("eps", self.eps, "a number above 0 and at most 0.5", 0.0, 0.5, "(]")

    @property
    def shape(self) -> Shape:
        """Linear below 1 - 2 eps, with slope -1."""
        return Shape(1.0 - 2.0 * self.eps, 1.0 - self.eps, 1.0, 1.0 / (2.0 * self.eps))


@dataclass(frozen=True)
class SquaredHinge(PiecewiseQuadratic):
    r"""The hinge squared: a pair far in the wrong order weighs more than in proportion.

    .. math:: \ell(z) = \max(0, 1 - z)^2

    Against the smoothed hinge, whose loss is linear there, it works on the worst pairs first; so do
    rare rows without hope, such as wrong labels. Chapelle, Keerthi, "Efficient algorithms for
    ranking with SVMs", Information Retrieval 13, 2010: its L2 loss on pairs.

    >>> loss = SquaredHinge()
    >>> one = np.ones(1)
    >>> loss.block(loss.rare(0 * one, one), one, one).value
    4.0
    """

    @property
    def shape(self) -> Shape:
        """No linear piece."""
        return Shape(-np.inf, 0.0, 0.0, 2.0)
