r"""Losses on pairs of a rare and a majority row, in score space.

A loss knows scores and weights, nothing of rows, kernels or features. Its sum over all pairs

.. math:: L(s) = \sum_{i \in P} \sum_{j \in N} w_i w_j \, \ell(s_i - s_j)

is taken as a sum over majority rows alone: the rare side is sorted once and broadcast as a few
arrays of m+ numbers, each block of majority rows answers with its own terms and with sums of
size m+ that add up over blocks, and `finish` turns those into the rare side's gradient.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

NO_LEVELS = np.empty(0)
"""The own unknowns of a loss that has none."""


class BlockTerms(NamedTuple):
    """What one block adds.

    Attributes
    ----------
    value : float
        Of its pairs.
    gradient : ndarray of shape (n,)
        d/dscore by row.
    sums : ndarray
        Rare-side sums, which add up over blocks.
    zone : tuple of ndarray
        A NamedTuple of what `PairLoss.curvature` needs of the rows: one entry a row.
    """

    value: float
    gradient: np.ndarray
    sums: np.ndarray
    zone: Any


class RareTerms(NamedTuple):
    """What the rare side adds once all blocks are summed.

    Attributes
    ----------
    value : float
        Of pairs among the rare rows: zero where there are none.
    gradient : ndarray of shape (m+,)
        By rare score, in the caller's order.
    levels : ndarray of shape (n_levels,)
        By own unknown of the loss.
    """

    value: float
    gradient: np.ndarray
    levels: np.ndarray = NO_LEVELS


class PairLoss(Protocol):
    """A loss of the score differences of (rare, majority) pairs.

    Losses inherit from it what most of them share.

    Attributes
    ----------
    n_levels : int
        Unknowns of the loss's own, such as a threshold: they are learned with the scores and
        not regularised. Zero for most losses.
    """

    @property
    def n_levels(self) -> int:
        """How many unknowns the loss has of its own."""
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
        ...

    def block(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        ...

    def finish(self, rare: Any, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score and own unknown, from the sums of all blocks."""
        ...

    def rare_direction(
        self, rare: Any, direction: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> Any:
        """What `curvature` needs of a direction of the rare scores: prefix sums."""
        ...

    def curvature(
        self, rare: Any, prefix: Any, zone: Any, direction: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        ...

    def finish_curvature(
        self, rare: Any, prefix: Any, direction: np.ndarray, sums: np.ndarray
    ) -> RareTerms:
        """Hessian times direction by rare score and own unknown; its value is zero."""
        ...

    def curved(self, zone: Any) -> np.ndarray:
        """Which rows of a block have a pair with curvature: bool, shape (n,)."""
        ...

    def pair_curvature(self, rare: Any, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs of some rare rows with majority scores, for a preconditioner.

        Parameters
        ----------
        rare : as `rare` returned it
        which : slice
            Which rare rows, in the caller's order.
        scores : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (len(which), n)
            Weighted by the rare rows, not by the majority; at or above zero. It may approximate.
        """
        ...
