r"""A loss that is an outer function of each rare row's own sum over the majority.

With the mean pair loss :math:`q_i = \frac{1}{W_-} \sum_j w_j \, \ell(s_i - t_j)` of rare row i,
about the share of the majority that stands above it,

.. math:: L = W_- \sum_{i \in P} w_i \, \varphi(q_i), \qquad \varphi \text{ concave} .

A concave function lies below its tangents, so that at scores with means :math:`\bar q`

.. math::

    L(s) \le \mathrm{const} + \sum_i w_i \, \varphi'(\bar q_i) \sum_j w_j \, \ell(s_i - t_j) ,

the pair loss with other weights of the rare rows: convex. Its minimum has a smaller L, and is the
next place for the tangents (see `reweighting`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rareclass.parameters import check_number, check_whole
from rareclass.ranking.losses.margin_losses import make_margin_loss
from rareclass.ranking.losses.pair_loss import (
    NO_LEVELS,
    BlockTerms,
    MarginLoss,
    PairLoss,
    RareTerms,
)


class RareOuter(NamedTuple):
    """The outer function at every rare row's mean pair loss, and its slope: shape (m+,)."""

    value: np.ndarray
    slope: np.ndarray


@dataclass(frozen=True)
class Top(PairLoss):
    r"""The logarithm of how many majority rows stand above every rare row, averaged.

    With :math:`M_i = \sum_j w_j \, \ell(s_i - t_j)`, about the weight of the majority rows above
    rare row i,

    .. math:: L = \frac{W_-}{u} \sum_{i \in P} w_i \,
              \log \Bigl( 1 + \frac{M_i}{\kappa W_+} \Bigr) ,

    where :math:`\kappa` is the `depth`. To halve the majority rows above a rare row gains the same
    wherever it stands, once they are more than :math:`\kappa W_+`: so that places near the top
    count most, as in average precision and precision at k. The plain loss counts majority rows
    and gains most from rare rows that are buried.

    **Not convex.** The solver starts from the solution of the plain pair loss and goes on in
    rounds, each a convex problem with weights of the rare rows :math:`c_i \propto
    1 / (M_i + \kappa W_+)`, in which the objective never rises; it finds a local minimum near
    the plain solution, or stops short of it after `rounds`. u makes the first weights average
    one, so that lam means what it does for the plain loss.

    Parameters
    ----------
    depth : float, default=0.1
        How near to the top places stop counting more, above 0: at 1, when as many majority rows
        stand above as there are rare rows. Smaller looks nearer to the top; a large one is the
        plain pair loss.
    rounds : int, default=10
        Most rounds of new weights; they end before when one lowers the objective by less than
        1e-3 of it.
    pair_loss : str, default="smoothed_hinge"
        The loss of a pair: "smoothed_hinge", "squared_hinge", "logistic" or "exponential".
    eps : float, default=0.5
        Of the smoothed hinge.

    Notes
    -----
    Cost: a plain solution, and for every round two passes of the rows and a few Newton steps.
    ``objective_`` is that of L; ``optimality_`` and ``status_`` are those of the convex problem
    of the last round, at its own tolerance.

    References
    ----------
    .. [1] Hunter, Lange, "A tutorial on MM algorithms", The American Statistician 58, 2004.
    .. [2] Usunier, Buffoni, Gallinari, "Ranking with ordered weighted pairwise classification",
       ICML 2009: concave functions of the number of rows above a relevant one.

    Examples
    --------
    >>> loss = Top(depth=1.0)
    >>> loss.outer(mean=np.array([0.0, 0.1]), rare_share=0.1).value.round(3)  # log 1, log 2
    array([0.   , 0.693])
    """

    depth: float = 0.1
    rounds: int = 10
    pair_loss: str = "smoothed_hinge"
    eps: float = 0.5

    def __post_init__(self) -> None:
        check_number("depth", self.depth, "a number above 0")
        check_whole("rounds", self.rounds, "a whole number of at least 1")
        make_margin_loss(self.pair_loss, self.eps)

    @property
    def pair(self) -> MarginLoss:
        """The loss of a pair."""
        return make_margin_loss(self.pair_loss, self.eps)

    def outer(self, mean: np.ndarray, rare_share: float) -> RareOuter:
        """The logarithm, and its slope in the mean, at mean pair losses: shape (m+,).

        `rare_share` is the weight of the rare rows over that of the majority.
        """
        # M / (depth W+), both over the majority's weight.
        reach = self.depth * rare_share
        return RareOuter(np.log1p(mean / reach), 1.0 / (mean + reach))

    # As a PairLoss it answers as the pair loss does: the weights of the rare rows in the problem
    # are what makes it the tangent problem.

    def rare(self, scores: np.ndarray, weight: np.ndarray, levels: np.ndarray = NO_LEVELS) -> Any:
        """Rare side of the pair loss."""
        return self.pair.rare(scores, weight)

    def block(self, rare: Any, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Terms of a block, of the pair loss."""
        return self.pair.block(rare, scores, weight)

    def finish(self, rare: Any, sums: np.ndarray) -> RareTerms:
        """Terms of the rare side, of the pair loss."""
        return self.pair.finish(rare, sums)

    def rare_direction(
        self, rare: Any, direction: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> Any:
        """Direction of the rare scores, of the pair loss."""
        return self.pair.rare_direction(rare, direction)

    def curvature(
        self, rare: Any, prefix: Any, zone: Any, direction: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block, of the pair loss."""
        return self.pair.curvature(rare, prefix, zone, direction, weight)

    def finish_curvature(
        self, rare: Any, prefix: Any, direction: np.ndarray, sums: np.ndarray
    ) -> RareTerms:
        """Hessian times direction by rare score, of the pair loss."""
        return self.pair.finish_curvature(rare, prefix, direction, sums)

    def curved(self, zone: Any) -> np.ndarray:
        """Mask of the rows with curvature, of the pair loss."""
        return self.pair.curved(zone)

    def pair_curvature(self, rare: Any, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs, of the pair loss."""
        return self.pair.pair_curvature(rare, which, scores)
