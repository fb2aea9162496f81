r"""Losses that are an outer function of each rare row's own sum over the majority.

With the mean pair loss :math:`q_i = \frac{1}{W_-} \sum_j w_j \, \ell(s_i - t_j)` of rare row i,
about the share of the majority that stands above it,

.. math:: L = W_- \sum_{i \in P} w_i \, \varphi(q_i), \qquad \varphi \text{ concave} .

A concave function lies below its tangents, so that at scores with means :math:`\bar q`

.. math::

    L(s) \le \mathrm{const} + \sum_i w_i \, \varphi'(\bar q_i) \sum_j w_j \, \ell(s_i - t_j) ,

the pair loss with other weights of the rare rows: convex. Its minimum has a smaller L, and is the
next place for the tangents (see `reweighting`).
"""

from typing import Any, NamedTuple

import numpy as np

from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.pair_loss import NO_LEVELS, BlockTerms, PairLoss, RareTerms


class RareOuter(NamedTuple):
    """The outer function at every rare row's mean pair loss, and its slope: shape (m+,)."""

    value: np.ndarray
    slope: np.ndarray


class RareOuterLoss(PairLoss):
    """A concave outer function of each rare row's own mean pair loss.

    Not convex. As a PairLoss it answers as the pair loss does: the weights of the rare rows in
    the problem are what makes it the tangent problem.
    """

    @property
    def pair(self) -> MarginLoss:
        """The loss of a pair."""
        raise NotImplementedError

    @property
    def n_rounds(self) -> int:
        """Most rounds of new weights."""
        raise NotImplementedError

    def outer(self, mean: np.ndarray, rare_share: float) -> RareOuter:
        """The outer function at mean pair losses.

        `rare_share` is the weight of the rare rows over that of the majority. Shape (m+,).
        """
        raise NotImplementedError

    def rare(self, scores: np.ndarray, weight: np.ndarray, levels: np.ndarray = NO_LEVELS) -> Any:
        """As the pair loss."""
        return self.pair.rare(scores, weight)

    def block(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """As the pair loss."""
        return self.pair.block(rare, scores, weight)

    def finish(self, rare: Any, sums: np.ndarray) -> RareTerms:
        """As the pair loss."""
        return self.pair.finish(rare, sums)

    def rare_direction(
        self, rare: Any, direction: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> Any:
        """As the pair loss."""
        return self.pair.rare_direction(rare, direction)

    def curvature(
        self, rare: Any, prefix: Any, zone: Any, direction: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As the pair loss."""
        return self.pair.curvature(rare, prefix, zone, direction, weight)

    def finish_curvature(
        self, rare: Any, prefix: Any, direction: np.ndarray, sums: np.ndarray
    ) -> RareTerms:
        """As the pair loss."""
        return self.pair.finish_curvature(rare, prefix, direction, sums)

    def curved(self, zone: Any) -> np.ndarray:
        """As the pair loss."""
        return self.pair.curved(zone)

    def pair_curvature(self, rare: Any, which: slice, scores: np.ndarray) -> np.ndarray:
        """As the pair loss."""
        return self.pair.pair_curvature(rare, which, scores)
