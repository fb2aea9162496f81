r"""Losses on pairs of a rare and a majority row, in score space.

A loss knows scores and weights, nothing of rows, kernels or features. Its sum over all pairs

.. math:: L(s) = \sum_{i \in P} \sum_{j \in N} w_i w_j \, \ell(s_i - s_j)

is taken as a sum over majority rows alone: the rare side is sorted once and broadcast as a few
arrays of m+ numbers, each block of majority rows answers with its own terms and with sums of
size m+ that add up over blocks, and `finish` turns those into the rare side's gradient.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rareclass.ranking import _smoothed_hinge_jit as jit


class RareSide(NamedTuple):
    """The rare scores, sorted, with prefix sums: what a block needs to know of them.

    Arrays of m+ numbers in sorted order (``order`` leads there from the caller's order);
    prefix sums have m+ + 1 entries, the first one zero.
    """

    order: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    centre: float
    weight_sum: np.ndarray
    score_sum: np.ndarray
    square_sum: np.ndarray


class Zone(NamedTuple):
    """Rare rows ``low[j]:high[j]`` (sorted) make a pair with curvature with majority row j."""

    low: np.ndarray
    high: np.ndarray


class BlockTerms(NamedTuple):
    """What one block adds: value of its pairs, d/dscore by row, rare-side sums, zones."""

    value: float
    gradient: np.ndarray
    sums: np.ndarray
    zone: Zone


class PairLoss(Protocol):
    """A convex loss of the score difference of a (rare, majority) pair."""

    def rare(self, scores: np.ndarray, weight: np.ndarray) -> RareSide:
        """Sort the rare side and sum its prefixes: O(m+ log m+)."""
        ...

    def block(self, rare: RareSide, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        ...

    def finish(self, rare: RareSide, sums: np.ndarray) -> np.ndarray:
        """Gradient by rare score, in the caller's order, from the sums of all blocks."""
        ...

    def rare_direction(self, rare: RareSide, direction: np.ndarray) -> np.ndarray:
        """Prefix sums of a direction of the rare scores, for `curvature`."""
        ...

    def curvature(
        self, rare: RareSide, prefix: np.ndarray, zone: Zone, direction: np.ndarray, weight: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        ...

    def finish_curvature(
        self, rare: RareSide, direction: np.ndarray, sums: np.ndarray
    ) -> np.ndarray:
        """Hessian times direction by rare score, from the sums of all blocks."""
        ...

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        """Curvature of one pair at score difference z, elementwise."""
        ...


@dataclass(frozen=True)
class SmoothedHinge:
    r"""The hinge with its corner rounded: linear, quadratic, zero.

    .. math::

        \ell(z) = \begin{cases} (1 - \epsilon) - z & z < 1 - 2\epsilon \\
            (1 - z)^2 / (4 \epsilon) & 1 - 2\epsilon \le z < 1 \\ 0 & z \ge 1 \end{cases}

    Parameters
    ----------
    eps : float, default=0.5
        Half the width of the quadratic part, in (0, 1/2]. Smaller is nearer the hinge, and
        its curvature 1 / (2 eps) is sharper: more Newton steps.

    Notes
    -----
    Cost: two binary searches among the rare scores for each majority row, O(log m+); no pair
    is formed and the majority is never sorted. Continuously differentiable; the second
    derivative jumps where a pair enters or leaves the quadratic part.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "RankRC: Large-Scale Nonlinear Rare Class Ranking", IEEE TKDE
       27(12), 2015, section 3, and equations (18) to (20).

    Examples
    --------
    >>> loss = SmoothedHinge()
    >>> one = np.ones(1)
    >>> loss.block(loss.rare(0 * one, one), 0 * one, one).value
    0.5
    """

    eps: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.eps <= 0.5:
            raise ValueError(f"eps={self.eps!r} must be above 0 and at most 0.5.")

    def rare(self, scores: np.ndarray, weight: np.ndarray) -> RareSide:
        """Sort the rare side and sum its prefixes: O(m+ log m+)."""
        order = np.argsort(scores, kind="stable")
        w = weight[order]
        total = w.sum()
        # Prefix sums of squares lose fewer digits around the middle of the scores.
        centre = float(scores @ weight / total) if total > 0.0 else 0.0
        s = scores[order] - centre
        return RareSide(order, s, w, centre, _prefix(w), _prefix(w * s), _prefix(w * s * s))

    def block(self, rare: RareSide, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        n = len(scores)
        gradient = np.empty(n)
        low, high = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        sums = np.zeros((3, len(rare.scores) + 1))
        value = jit._block(
            rare.scores,
            rare.weight_sum,
            rare.score_sum,
            rare.square_sum,
            scores - rare.centre,
            weight,
            self.eps,
            gradient,
            low,
            high,
            sums,
        )
        return BlockTerms(value, gradient, sums, Zone(low, high))

    def finish(self, rare: RareSide, sums: np.ndarray) -> np.ndarray:
        """Gradient by rare score, in the caller's order, from the sums of all blocks."""
        # Majority row j has rare row i in its linear zone when low_j > i.
        linear = sums[0, ::-1].cumsum()[::-1][1:]
        count, reach = sums[1:].cumsum(axis=1)[:, :-1]
        pull = linear + (reach - rare.scores * count) / (2.0 * self.eps)
        return _unsort(rare, -rare.weight * pull)

    def rare_direction(self, rare: RareSide, direction: np.ndarray) -> np.ndarray:
        """Prefix sums of w d over the sorted rare rows, for `curvature`."""
        return _prefix(rare.weight * direction[rare.order])

    def curvature(
        self, rare: RareSide, prefix: np.ndarray, zone: Zone, direction: np.ndarray, weight: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        product = np.empty(len(direction))
        sums = np.zeros((2, len(rare.scores) + 1))
        jit._curvature(
            rare.weight_sum,
            prefix,
            zone.low,
            zone.high,
            direction,
            weight,
            self.eps,
            product,
            sums,
        )
        return product, sums

    def finish_curvature(
        self, rare: RareSide, direction: np.ndarray, sums: np.ndarray
    ) -> np.ndarray:
        """Hessian times direction by rare score, from the sums of all blocks."""
        count, reach = sums.cumsum(axis=1)[:, :-1]
        d = direction[rare.order]
        return _unsort(rare, rare.weight * (d * count - reach) / (2.0 * self.eps))

    def second_derivative(self, z: np.ndarray) -> np.ndarray:
        """1 / (2 eps) in the quadratic part, 0 elsewhere."""
        return ((z >= 1.0 - 2.0 * self.eps) & (z < 1.0)) / (2.0 * self.eps)


LOSSES: dict[str, type] = {"smoothed_hinge": SmoothedHinge}


def make_loss(loss: Any, eps: float) -> PairLoss:
    """The PairLoss that an estimator's `loss` parameter means: a name or the object itself."""
    if hasattr(loss, "block"):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"loss={loss!r} is not one of {sorted(LOSSES)}.")
    return LOSSES[loss](eps)


def _prefix(values: np.ndarray) -> np.ndarray:
    """Prefix sums with a leading zero."""
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def _unsort(rare: RareSide, values: np.ndarray) -> np.ndarray:
    """Values in sorted order, back in the caller's order."""
    result = np.empty(len(values))
    result[rare.order] = values
    return result
