r"""What losses of the margin s - t alone have in common: every row's own sum, and what pulls on it.

For majority row j and rare row i

.. math::

    R_j = \sum_{i \in P} w_i \, \ell(s_i - t_j), \qquad
    M_i = \sum_{j \in N} w_j \, \ell(s_i - t_j) ,

so that the loss over all pairs is :math:`\sum_j w_j R_j = \sum_i w_i M_i`. Losses that look at the
top of the list are functions of these sums: see `MajorityOuterLoss` and `RareOuterLoss`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rareclass.ranking.losses.pair_loss import BlockTerms, PairLoss, RareTerms


class RowTerms(NamedTuple):
    """What the majority rows of a block have to do with the rare side, their weights left out."""

    total: np.ndarray  # shape (n,): R_j
    slope: np.ndarray  # shape (n,): d R_j / d t_j, at or above zero
    zone: Any  # tuple of arrays: what the other functions need to know, one entry a row in each


class MarginLoss(PairLoss):
    r"""A convex, non-increasing loss of the margin of a pair.

    What inherits from it tells the sums of a block's rows (`rows`), adds up what weighted rows
    ask of the rare ones (`pull`, `curvature`), and turns those sums, flattened or not, into
    gradients (`finish`, `finish_curvature`).
    """

    @property
    def at_zero(self) -> float:
        """The loss of a pair with equal scores."""
        raise NotImplementedError

    def rows(self, rare: Any, scores: np.ndarray) -> RowTerms:
        """Each majority row's own sum over the rare rows, and its slope."""
        raise NotImplementedError

    def pull(self, rare: Any, zone: Any, weight: np.ndarray) -> np.ndarray:
        """Rare-side sums, for `finish`, of majority rows of any weight."""
        raise NotImplementedError

    def n_pull(self, rare: Any) -> int:
        """How many numbers `pull` adds up."""
        raise NotImplementedError

    def row_change(self, rare: Any, prefix: Any, zone: Any, direction: np.ndarray) -> np.ndarray:
        r"""Change of :math:`R_j` along a direction of all scores: shape (n,)."""
        raise NotImplementedError

    def rare_sums(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """What a block adds to the sums that `rare_totals` needs."""
        raise NotImplementedError

    def rare_totals(self, rare: Any, sums: np.ndarray) -> np.ndarray:
        r"""Each rare row's own sum :math:`M_i`, its weight left out, in the caller's order."""
        raise NotImplementedError

    def pair_slope(self, rare: Any, which: slice, scores: np.ndarray) -> np.ndarray:
        """Minus the slope of pairs, as `pair_curvature` gives their curvature."""
        raise NotImplementedError

    def block(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        terms = self.rows(rare, scores)
        there = weight > 0.0
        gradient = weight * np.where(there, terms.slope, 0.0)
        value = weight @ np.where(there, terms.total, 0.0)
        pull = partial(self.pull, rare, terms.zone, weight)
        return terms_or_too_far(float(value), gradient, pull, self.n_pull(rare), terms.zone)

    def finish(self, rare: Any, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score, in the caller's order, from the sums of all blocks."""
        raise NotImplementedError


def terms_or_too_far(
    value: float, gradient: np.ndarray, sums: Callable[[], np.ndarray], n_sums: int, zone: Any
) -> BlockTerms:
    """The terms of a block; infinite where a loss overflows: the line search comes back from there.

    Of so many rare-side `sums`, worked out when they are asked for.
    """
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        return BlockTerms(np.inf, np.full(len(gradient), np.nan), np.full(n_sums, np.nan), zone)
    return BlockTerms(value, gradient, sums(), zone)
