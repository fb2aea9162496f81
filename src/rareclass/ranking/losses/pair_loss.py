r"""The contract of losses on pairs of a rare and a majority row, in score space.

A loss knows scores and weights, nothing of rows, kernels or features. Its sum over all pairs

.. math:: L(s) = \sum_{i \in P} \sum_{j \in N} w_i w_j \, \ell(s_i - s_j)

is taken as a sum over majority rows alone: the rare side is sorted once and broadcast as a few
arrays of m+ numbers, each block of majority rows answers with its own terms and with sums of
size m+ that add up over blocks, and `finish` turns those into the rare side's gradient.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np


class BlockTerms(NamedTuple):
    """Terms of one block of majority rows."""

    value: float  # of its pairs
    gradient: np.ndarray  # d/dscore by row: shape (n,)
    sums: np.ndarray  # rare-side sums, which add up over blocks: shape (any, m+ + 1)
    zone: Any  # a tuple of arrays, what `PairLoss.curvature` needs of the rows: one entry a row


class RareTerms(NamedTuple):
    """Terms of the rare side, once all blocks are summed."""

    value: float  # of pairs among the rare rows: zero where there are none
    gradient: np.ndarray  # by rare score, in the caller's order: shape (m+,)


class PairLoss(Protocol):
    """A convex loss of the score differences of (rare, majority) pairs, nowhere below zero.

    Inherit from this class to write a loss of your own.
    """

    def pair_weight(self, rare_weight: np.ndarray, majority: float) -> float:
        """Total weight of all pairs, from the weights of the rare rows and the majority's sum."""
        return float(rare_weight.sum() * majority)

    def rare(self, scores: np.ndarray, weight: np.ndarray) -> Any:
        """Sort the rare side and sum its prefixes: O(m+ log m+)."""

    def block(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""

    def finish(self, rare: Any, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score, from the sums of all blocks."""

    def rare_direction(self, rare: Any, direction: np.ndarray) -> Any:
        """Prepare a direction of the rare scores for `curvature`: prefix sums."""

    def curvature(
        self, rare: Any, prefix: Any, zone: Any, direction: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and sums of shape (any, m+ + 1)."""

    def finish_curvature(
        self, rare: Any, prefix: Any, direction: np.ndarray, sums: np.ndarray
    ) -> np.ndarray:
        """Hessian times direction by rare score, from the sums of all blocks: shape (m+,)."""

    def curved(self, zone: Any) -> np.ndarray:
        """Mask of the rows with a pair that has curvature: shape (n,)."""

    def pair_curvature(self, rare: Any, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs of some rare rows with majority scores, for a preconditioner.

        `rare` is as `rare` returned it; `which` are rare rows in the caller's order. Shape
        (len(which), n), weighted by the rare rows, not by the majority; at or above zero. It may
        approximate.
        """
