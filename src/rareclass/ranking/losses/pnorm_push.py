r"""The p-norm push: a power of each majority row's own mean pair loss.

The row's own sum is known when its block is read, so there is no extra pass, and the rows stay a
sum. With the outer function :math:`\varphi` of the row's mean :math:`r_j`, what reaches the rare
side is the pair loss's, with majority weights :math:`w_j \varphi'(r_j)`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rareclass.parameters import check_choice, check_number
from rareclass.ranking.losses.pair_loss import BlockTerms, PairLoss, RareTerms
from rareclass.ranking.losses.piecewise_quadratic import (
    PiecewiseQuadratic,
    RareDirection,
    RareSide,
    SmoothedHinge,
    SquaredHinge,
)

_N_PULL = 3  # rows of the sums that `PiecewiseQuadratic.pull` makes


class Outer(NamedTuple):
    """The outer function of the mean at the rows of a block: shape (n,) each."""

    value: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


class PushRare(NamedTuple):
    """The rare side of the pair loss, and its total weight."""

    pairs: RareSide
    total: float


class PushZone(NamedTuple):
    """Outer slope and curvature of each row, the slope of its sum, and its `PlacedZone`."""

    slope: np.ndarray
    curvature: np.ndarray
    row_slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray

    @property
    def of_pairs(self) -> tuple[np.ndarray, ...]:
        """The zone of the pair loss."""
        return self[3:]


@dataclass(frozen=True)
class PNormPush(PairLoss):
    r"""A power of each majority row's own mean pair loss.

    .. math::

        L = W_+ \sum_{j \in N} w_j \frac{\ell_0}{p} \left( \frac{r_j}{\ell_0} \right)^p,
        \qquad r_j = \frac{1}{W_+} \sum_{i \in P} w_i \, \ell(s_i - t_j),
        \qquad \ell_0 = \ell(0) .

    A majority row that stands above many rare ones is pushed down with the force
    :math:`(r_j / \ell_0)^{p - 1}`. With p = 1 it is the pair loss itself; a large p works on the
    highest majority rows alone. The factor makes every p agree with p = 1 in the gradient at zero
    scores, so that lam means about the same. Convex.

    Parameters
    ----------
    power : float, default=4.0
        p, at least 1. Higher looks nearer to the top, and is more at the mercy of a few rows.
    pair_loss : {"smoothed_hinge", "squared_hinge"}, default="smoothed_hinge"
        The loss of a pair, with `eps` of the smoothed hinge.

    References
    ----------
    .. [1] Rudin, "The P-Norm Push: a simple convex ranking algorithm that concentrates at the top
       of the list", JMLR 10, 2009 (with the exponential loss and the sum for the mean).

    >>> loss = PNormPush(power=2.0)
    >>> one = np.ones(1)
    >>> loss.block(loss.rare(0 * one, one), 0 * one, one).value  # 0.5 / 2
    0.25
    """

    power: float = 4.0
    pair_loss: str = "smoothed_hinge"
    eps: float = 0.5

    def __post_init__(self) -> None:
        check_number("power", self.power, "a number of at least 1", 1.0, ends="[)")
        check_choice("pair_loss", self.pair_loss, ("smoothed_hinge", "squared_hinge"))
        SmoothedHinge(self.eps)

    @property
    def pair(self) -> PiecewiseQuadratic:
        """The loss of a pair."""
        return SmoothedHinge(self.eps) if self.pair_loss == "smoothed_hinge" else SquaredHinge()

    def rare(self, scores: np.ndarray, weight: np.ndarray) -> PushRare:
        """Sort the rare side of the pair loss and sum its prefixes."""
        return PushRare(self.pair.rare(scores, weight), float(weight.sum()) or 1.0)

    def block(self, rare: PushRare, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows.

        The value is infinite where the power overflows: the line search comes back from there.
        """
        terms, there = self.pair.rows(rare.pairs, scores), weight > 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            outer = self._outer(terms.total / rare.total)
            # A row without weight has no part in anything, not even in zones.
            slope, curvature = (np.where(there, x, 0.0) for x in (outer.slope, outer.curvature))
            value = float(rare.total * (weight @ np.where(there, outer.value, 0.0)))
            gradient = weight * slope * terms.slope
        zone = PushZone(slope, curvature, terms.slope, *terms.zone)
        if np.isfinite(value) and np.isfinite(gradient).all():
            sums = self.pair.pull(rare.pairs, terms.zone, weight * slope)
            return BlockTerms(value, gradient, sums, zone)
        gradient = np.full(len(scores), np.nan)
        sums = np.full((_N_PULL, len(rare.pairs.scores) + 1), np.nan)
        return BlockTerms(np.inf, gradient, sums, zone)

    def finish(self, rare: PushRare, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score, from the sums of all blocks."""
        return self.pair.finish(rare.pairs, sums)

    def rare_direction(self, rare: PushRare, direction: np.ndarray) -> RareDirection:
        """Prefix sums of a direction of the rare scores, for `curvature`."""
        return self.pair.rare_direction(rare.pairs, direction)

    def curvature(
        self,
        rare: PushRare,
        prefix: RareDirection,
        zone: PushZone,
        direction: np.ndarray,
        weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        of_pairs = zone.of_pairs
        change = self.pair.row_change(rare.pairs, prefix, of_pairs, direction)
        turn = weight * zone.curvature * (change / rare.total)  # how much the outer slope changes
        by_row, sums = self.pair.curvature(
            rare.pairs, prefix, of_pairs, direction, weight * zone.slope
        )
        pull = self.pair.pull(rare.pairs, of_pairs, turn)
        return by_row + turn * zone.row_slope, np.concatenate([pull, sums])

    def finish_curvature(
        self, rare: PushRare, prefix: RareDirection, direction: np.ndarray, sums: np.ndarray
    ) -> np.ndarray:
        """Hessian times direction by rare score."""
        pull, bend = sums[:_N_PULL], sums[_N_PULL:]
        by_rare = self.pair.finish(rare.pairs, pull).gradient
        return by_rare + self.pair.finish_curvature(rare.pairs, prefix, direction, bend)

    def curved(self, zone: PushZone) -> np.ndarray:
        """Mask of the rows with curvature, of a pair or of the outer function."""
        outer = zone.curvature * zone.row_slope != 0.0
        return outer | ((zone.slope > 0.0) & self.pair.curved(zone.of_pairs))

    def pair_curvature(self, rare: PushRare, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of the pairs, without that of the outer function."""
        outer = self._outer(self.pair.rows(rare.pairs, scores).total / rare.total)
        return self.pair.pair_curvature(rare.pairs, which, scores) * outer.slope

    def _outer(self, mean: np.ndarray) -> Outer:
        p, unit = self.power, self.pair.at_zero
        r = mean / unit
        slope = r ** (p - 1.0)
        # Below p = 2 the curvature grows without bound towards zero, where the row's slope ends.
        curvature = (p - 1.0) / unit * slope / np.where(r > 0.0, r, np.inf)
        return Outer(unit / p * slope * r, slope, curvature)
