"""Losses of a pair's margin by name: what losses that look at the top are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rareclass.ranking.losses.logistic import Logistic
from rareclass.ranking.losses.pair_loss import (
    NO_LEVELS,
    BlockTerms,
    MarginLoss,
    RareTerms,
    RowTerms,
)
from rareclass.ranking.losses.piecewise_quadratic import SmoothedHinge, SquaredHinge


class ExponentialRare(NamedTuple):
    """The rare scores and weights, log of sum_i w_i exp(-s_i), and each row's share of that sum."""

    scores: np.ndarray
    weight: np.ndarray
    log_total: float
    share: np.ndarray


class RowSums(NamedTuple):
    """Each majority row's own sum; zero for a row without weight."""

    total: np.ndarray


@dataclass(frozen=True)
class Exponential(MarginLoss):
    r"""The exponential of the margin, RankBoost's loss.

    .. math::

        \ell(z) = e^{-z}, \qquad \sum_{ij} w_i w_j \, \ell(s_i - t_j)
        = \Bigl( \sum_i w_i e^{-s_i} \Bigr) \Bigl( \sum_j w_j e^{t_j} \Bigr) .

    Convex. Pairs far in the wrong order outweigh all others, so that wrong labels hurt; in return
    the loss looks at the top of the list more than the hinges do.

    Notes
    -----
    Cost: O(1) for each majority row; nothing is sorted. Sums are kept as logarithms on the rare
    side; where the loss itself exceeds the range of floats it is infinite, and the line search
    comes back from there.

    References
    ----------
    .. [1] Freund, Iyer, Schapire, Singer, "An efficient boosting algorithm for combining
       preferences", JMLR 4, 2003.

    Examples
    --------
    >>> loss = Exponential()
    >>> one = np.ones(1)
    >>> loss.block(loss.rare(0 * one, one), 0 * one, one).value
    1.0
    """

    @property
    def at_zero(self) -> float:
        """The loss of a pair with equal scores."""
        return 1.0

    def rare(
        self, scores: np.ndarray, weight: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> ExponentialRare:
        """The rare side's sum and every row's share of it."""
        there = weight > 0.0
        if not there.any():
            return ExponentialRare(scores, weight, -np.inf, np.zeros(len(scores)))
        lowest = scores[there].min()
        terms = np.zeros(len(scores))
        terms[there] = weight[there] * np.exp(lowest - scores[there])
        total = terms.sum()
        return ExponentialRare(scores, weight, float(np.log(total) - lowest), terms / total)

    def block(self, rare: ExponentialRare, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        terms = super().block(rare, scores, weight)
        total = np.where(weight > 0.0, terms.zone.total, 0.0)
        return terms._replace(zone=RowSums(total))

    def rows(self, rare: ExponentialRare, scores: np.ndarray) -> RowTerms:
        """Each majority row's own sum over the rare rows, which is its slope, too."""
        with np.errstate(over="ignore"):
            total = np.exp(rare.log_total + scores)
        return RowTerms(total, total, RowSums(total))

    def n_pull(self, rare: ExponentialRare) -> int:
        """Number of sums of `pull`."""
        return 1

    def pull(self, rare: ExponentialRare, zone: tuple, weight: np.ndarray) -> np.ndarray:
        """The weighted sum of the rows' own sums."""
        return _dots(weight, zone[0])

    def finish(self, rare: ExponentialRare, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score: its share of the loss."""
        return RareTerms(0.0, -rare.share * sums[0])

    def rare_direction(
        self, rare: ExponentialRare, direction: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> float:
        """The mean direction of the rare rows, by share."""
        return float(rare.share @ direction)

    def row_change(
        self, rare: ExponentialRare, prefix: float, zone: tuple, direction: np.ndarray
    ) -> np.ndarray:
        """Change of each majority row's sum along a direction of all scores."""
        return zone[0] * (direction - prefix)

    def curvature(
        self,
        rare: ExponentialRare,
        prefix: float,
        zone: tuple,
        direction: np.ndarray,
        weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        by_row = weight * zone[0]
        sums = np.stack([np.sum(by_row), by_row @ direction])
        return by_row * (direction - prefix), sums

    def finish_curvature(
        self, rare: ExponentialRare, prefix: float, direction: np.ndarray, sums: np.ndarray
    ) -> RareTerms:
        """Hessian times direction by rare score, from the sums of all blocks."""
        return RareTerms(0.0, rare.share * (direction * sums[0] - sums[1]))

    def rare_sums(
        self, rare: ExponentialRare, scores: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Add up a block for `rare_totals`."""
        with np.errstate(over="ignore"):
            return _dots(weight, np.exp(_log_unit(rare) + scores))

    def rare_totals(self, rare: ExponentialRare, sums: np.ndarray) -> np.ndarray:
        """Each rare row's own sum over the majority, in the caller's order."""
        with np.errstate(over="ignore"):
            return np.asarray(sums[0] * np.exp(-rare.scores - _log_unit(rare)))

    def curved(self, zone: tuple) -> np.ndarray:
        """Every row with weight, but where its loss is too small to be a number."""
        return zone[0] > 0.0

    def pair_curvature(self, rare: ExponentialRare, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs, times the rare row's weight: the loss itself."""
        return rare.share[which, None] * self.rows(rare, scores).total

    def pair_slope(self, rare: ExponentialRare, which: slice, scores: np.ndarray) -> np.ndarray:
        """Minus the slope of pairs, times the rare row's weight: the loss itself."""
        return self.pair_curvature(rare, which, scores)


def _log_unit(rare: ExponentialRare) -> float:
    """Logarithm of the factor that keeps the exponentials of `rare_sums` in range."""
    return rare.log_total if np.isfinite(rare.log_total) else 0.0


def _dots(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum of weighted values, infinite ones without weight left out: shape (1,)."""
    return np.reshape(weight @ np.where(weight != 0.0, values, 0.0), (1,))


MARGIN_LOSSES: dict[str, Callable[..., MarginLoss]] = {
    "smoothed_hinge": SmoothedHinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "exponential": Exponential,
}


def make_margin_loss(name: str, eps: float) -> MarginLoss:
    """The loss of a pair that a loss is built on."""
    if not isinstance(name, str) or name not in MARGIN_LOSSES:
        raise ValueError(f"pair_loss={name!r} is not one of {sorted(MARGIN_LOSSES)}.")
    return SmoothedHinge(eps) if name == "smoothed_hinge" else MARGIN_LOSSES[name]()
