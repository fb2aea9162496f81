r"""Losses on pairs of a rare and a majority row, in score space.

A loss knows scores and weights, nothing of rows, kernels or features. Its sum over all pairs

.. math:: L(s) = \sum_{i \in P} \sum_{j \in N} w_i w_j \, \ell(s_i - s_j)

is taken as a sum over majority rows alone: the rare side is sorted once and broadcast as a few
arrays of m+ numbers, each block of majority rows answers with its own terms and with sums of
size m+ that add up over blocks, and `finish` turns those into the rare side's gradient.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

NO_LEVELS = np.empty(0)
"""The own unknowns of a loss that has none."""


class BlockTerms(NamedTuple):
    """Terms of one block of majority rows."""

    value: float  # of its pairs
    gradient: np.ndarray  # d/dscore by row: shape (n,)
    sums: np.ndarray  # rare-side sums, which add up over blocks
    zone: Any  # a NamedTuple of what `PairLoss.curvature` needs of the rows: one entry a row


class RareTerms(NamedTuple):
    """Terms of the rare side, once all blocks are summed."""

    value: float  # of pairs among the rare rows: zero where there are none
    gradient: np.ndarray  # by rare score, in the caller's order: shape (m+,)
    levels: np.ndarray = NO_LEVELS  # by own unknown of the loss: shape (n_levels,)


class PairLoss(Protocol):
    """A loss of the score differences of (rare, majority) pairs.

    Losses inherit from it what most of them share.
    """

    @property
    def n_levels(self) -> int:
        """Number of unknowns of the loss's own, such as a threshold: learned, not regularised."""
        return 0

    @property
    def rare_share(self) -> float:
        """Share of the rare rows that count: below 1, the loss is that of the lowest ones."""
        return 1.0

    def pair_weight(self, rare_weight: np.ndarray, majority: float) -> float:
        """Total weight of all pairs, from the weights of the rare rows and the majority's sum."""
        return float(rare_weight.sum() * majority)

    def rare(self, scores: np.ndarray, weight: np.ndarray, levels: np.ndarray = NO_LEVELS) -> Any:
        """Sort the rare side and sum its prefixes: O(m+ log m+)."""

    def block(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""

    def finish(self, rare: Any, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score and own unknown, from the sums of all blocks."""

    def rare_direction(
        self, rare: Any, direction: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> Any:
        """Prepare a direction of the rare scores for `curvature`: prefix sums."""

    def curvature(
        self, rare: Any, prefix: Any, zone: Any, direction: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""

    def finish_curvature(
        self, rare: Any, prefix: Any, direction: np.ndarray, sums: np.ndarray
    ) -> RareTerms:
        """Hessian times direction by rare score and own unknown; its value is zero."""

    def curved(self, zone: Any) -> np.ndarray:
        """Mask of the rows with a pair that has curvature: shape (n,)."""

    def pair_curvature(self, rare: Any, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs of some rare rows with majority scores, for a preconditioner.

        `rare` is as `rare` returned it; `which` are rare rows in the caller's order. Shape
        (len(which), n), weighted by the rare rows, not by the majority; at or above zero. It may
        approximate.
        """


class RowTerms(NamedTuple):
    """Sums of the majority rows of a block over the rare rows, majority weights left out."""

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
        """Number of sums of `pull`."""
        raise NotImplementedError

    def row_change(self, rare: Any, prefix: Any, zone: Any, direction: np.ndarray) -> np.ndarray:
        r"""Change of :math:`R_j` along a direction of all scores: shape (n,)."""
        raise NotImplementedError

    def rare_sums(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Add up a block for `rare_totals`."""
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
