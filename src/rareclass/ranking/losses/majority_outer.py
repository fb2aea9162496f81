r"""Losses that are an outer function of each majority row's own mean pair loss.

With the mean pair loss :math:`r_j = \frac{1}{W_+} \sum_i w_i \, \ell(s_i - t_j)` of majority row j,
a growing, convex :math:`\varphi` lets the rows that stand above many rare ones count for more:

.. math:: L = W_+ \sum_{j \in N} w_j \, \varphi(r_j, \eta) + W_+ W_- \, \omega' \eta .

The row's own sum is known when its block is read, so there is no extra pass, and the rows stay a
sum. What reaches the rare side is the pair loss's, with majority weights
:math:`w_j \varphi'(r_j)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rareclass.parameters import check_number
from rareclass.ranking.losses.margin_losses import make_margin_loss
from rareclass.ranking.losses.pair_loss import (
    NO_LEVELS,
    BlockTerms,
    MarginLoss,
    PairLoss,
    RareTerms,
    terms_or_too_far,
)


class Outer(NamedTuple):
    r"""The outer function at the rows of a block.

    A sum of convex parts :math:`\varphi = \sum_k \varphi_k`; in a loss with own unknowns, part k is
    a function of :math:`r - \eta_k`.
    """

    value: np.ndarray  # shape (n,): of all parts together
    slopes: np.ndarray  # shape (n, n_parts): first derivative of every part
    curvatures: np.ndarray  # shape (n, n_parts): second derivative
    plain: float = 0.0  # slope of a further part: a multiple of r itself

    @property
    def slope(self) -> np.ndarray:
        """Slope of all parts together."""
        return np.sum(self.slopes, axis=1) + self.plain


class OuterRare(NamedTuple):
    """The rare side of the pair loss, its total weight, and the loss's own unknowns."""

    pairs: Any
    total: float
    levels: np.ndarray


class OuterDirection(NamedTuple):
    """A direction of the rare scores, as the pair loss wants it, and of the own unknowns."""

    pairs: Any
    levels: np.ndarray


class MajorityOuterLoss(PairLoss):
    """An outer function of each majority row's own mean pair loss.

    Convex where the outer function is convex and never falls, as the pair loss is convex.
    """

    @property
    def pair(self) -> MarginLoss:
        """The loss of a pair."""
        raise NotImplementedError

    @property
    def level_weight(self) -> np.ndarray:
        """Slope of the loss in every own unknown: omega."""
        return np.zeros(self.n_levels)

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """Thresholds of the parts, from the own unknowns."""
        return levels

    def outer(self, mean: np.ndarray, levels: np.ndarray) -> Outer:
        """The outer function at mean pair losses."""
        raise NotImplementedError

    def rare(
        self, scores: np.ndarray, weight: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> OuterRare:
        """The rare side of the pair loss, and the own unknowns."""
        return OuterRare(self.pair.rare(scores, weight), float(weight.sum()) or 1.0, levels)

    def block(self, rare: OuterRare, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        terms = self.pair.rows(rare.pairs, scores)
        there = weight > 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            outer = self.outer(terms.total / rare.total, rare.levels)
            # A row without weight has no part in anything, not even in zones.
            slope = np.where(there, outer.slope, 0.0)
            curvatures = np.where(there[:, None], outer.curvatures, 0.0)
            value = rare.total * (weight @ np.where(there, outer.value, 0.0))
            gradient = weight * slope * terms.slope
        zone = (slope, terms.slope, curvatures, *terms.zone)

        def sums() -> Any:
            of_levels = [np.reshape(np.sum(weight), (1,)), weight @ outer.slopes]
            pull = self.pair.pull(rare.pairs, terms.zone, weight * slope)
            return np.concatenate(
                [np.concatenate(of_levels)[: self.n_levels + 1], np.reshape(pull, (-1,))]
            )

        n_sums = self.n_levels + 1 + self.pair.n_pull(rare.pairs)
        return terms_or_too_far(float(value), gradient, sums, n_sums, zone)

    def finish(self, rare: OuterRare, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score and own unknown, from the sums of all blocks."""
        majority, slopes = sums[0], sums[1 : self.n_levels + 1]
        levels = rare.total * (majority * self.level_weight - slopes)
        thresholds = self.thresholds(rare.levels)
        value = rare.total * majority * float(self.level_weight @ thresholds)
        of_pairs = self.pair.finish(rare.pairs, sums[self.n_levels + 1 :])
        return RareTerms(value, of_pairs.gradient, levels)

    def rare_direction(
        self, rare: OuterRare, direction: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> OuterDirection:
        """Prepare a direction for `curvature`."""
        return OuterDirection(self.pair.rare_direction(rare.pairs, direction), levels)

    def curvature(
        self,
        rare: OuterRare,
        prefix: OuterDirection,
        zone: tuple,
        direction: np.ndarray,
        weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        slope, row_slope, curvatures, *zone_of_pairs = zone
        change = self.pair.row_change(rare.pairs, prefix.pairs, zone_of_pairs, direction)
        inner = (change / rare.total)[:, None] - (prefix.levels if self.n_levels else 0.0)
        # How much the slope of every part changes.
        turn = weight[:, None] * curvatures * inner
        by_row, sums = self.pair.curvature(
            rare.pairs, prefix.pairs, zone_of_pairs, direction, weight * slope
        )
        turned = np.sum(turn, axis=1)
        pull = self.pair.pull(rare.pairs, zone_of_pairs, turned)
        of_levels = np.sum(turn, axis=0)[: self.n_levels]
        return (
            by_row + turned * row_slope,
            np.concatenate([of_levels, np.reshape(pull, (-1,)), np.reshape(sums, (-1,))]),
        )

    def finish_curvature(
        self, rare: OuterRare, prefix: OuterDirection, direction: np.ndarray, sums: np.ndarray
    ) -> RareTerms:
        """Hessian times direction by rare score and own unknown."""
        of_levels, sums = np.split(sums, [self.n_levels])
        pull, sums = np.split(sums, [self.pair.n_pull(rare.pairs)])
        by_rare = self.pair.finish(rare.pairs, pull).gradient
        of_pairs = self.pair.finish_curvature(rare.pairs, prefix.pairs, direction, sums)
        return RareTerms(0.0, by_rare + of_pairs.gradient, -rare.total * of_levels)

    def curved(self, zone: tuple) -> np.ndarray:
        """Mask of the rows with curvature, of a pair or of the outer function."""
        slope, row_slope, curvatures, *zone_of_pairs = zone
        outer = np.any(curvatures * row_slope[:, None] != 0.0, axis=1)
        if self.n_levels:
            outer |= np.any(curvatures > 0.0, axis=1)
        return outer | ((slope > 0.0) & self.pair.curved(tuple(zone_of_pairs)))

    def pair_curvature(self, rare: OuterRare, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of the pairs; that of the outer function is in `row_curvatures`."""
        slope = self._outer_at(rare, scores).slope
        return self.pair.pair_curvature(rare.pairs, which, scores) * slope

    def pair_slope(self, rare: OuterRare, which: slice, scores: np.ndarray) -> np.ndarray:
        """Minus the slope of the majority row's mean in each pair's margin: shape as above."""
        return self.pair.pair_slope(rare.pairs, which, scores) / rare.total

    def row_curvatures(self, rare: OuterRare, scores: np.ndarray) -> np.ndarray:
        """Curvature of every part of the outer function in the row's mean: shape (n, parts).

        Part k is a function of the mean less own unknown k, where there are some.
        """
        return rare.total * self._outer_at(rare, scores).curvatures

    def _outer_at(self, rare: OuterRare, scores: np.ndarray) -> Outer:
        total = self.pair.rows(rare.pairs, scores).total
        return self.outer(total / rare.total, rare.levels)


@dataclass(frozen=True)
class PNormPush(MajorityOuterLoss):
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
    pair_loss : str, default="smoothed_hinge"
        The loss of a pair: "smoothed_hinge", "squared_hinge", "logistic" or "exponential".
    eps : float, default=0.5
        Of the smoothed hinge.

    Notes
    -----
    Cost: that of the pair loss and its Hessian product twice over; no extra pass.

    References
    ----------
    .. [1] Rudin, "The P-Norm Push: a simple convex ranking algorithm that concentrates at the top
       of the list", JMLR 10, 2009 (with the exponential loss and the sum for the mean).

    Examples
    --------
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
        make_margin_loss(self.pair_loss, self.eps)

    @property
    def pair(self) -> MarginLoss:
        """The loss of a pair."""
        return make_margin_loss(self.pair_loss, self.eps)

    def outer(self, mean: np.ndarray, levels: np.ndarray) -> Outer:
        """The power, its slope and its curvature."""
        p, unit = self.power, self.pair.at_zero
        r = mean / unit
        slope = r ** (p - 1.0)
        # Below p = 2 the curvature grows without bound towards zero, where the row's slope ends.
        curvature = (p - 1.0) / unit * slope / np.where(r > 0.0, r, np.inf)
        return Outer(unit / p * slope * r, slope[:, None], curvature[:, None])


@dataclass(frozen=True)
class PartialAUC(MajorityOuterLoss):
    r"""The mean pair loss over the share of the majority that stands highest.

    With :math:`r_j` the mean pair loss of majority row j over the rare rows, and one own unknown
    :math:`\eta`, learned with the scores and not regularised,

    .. math::

        L = W_+ W_- \, \eta + \frac{W_+}{\beta} \sum_{j \in N} w_j \, \varphi(r_j - \eta), \qquad
        \varphi(x) = \tfrac12 \bigl( x + \sqrt{x^2 + 4 \delta^2} \bigr) .

    For :math:`\delta \to 0` its minimum over :math:`\eta` is the largest mean of :math:`r_j` that
    any weights of the majority rows give of which none exceeds :math:`1 / \beta` times its own:
    the loss of the rows with a false-positive rate up to beta. That is a maximum of convex
    functions, so the loss is convex, in the scores and :math:`\eta` together.

    Several ranges make a weighted AUC: their losses are averaged with `share` as weights, and the
    plain loss over all pairs has what is left of one.

    Parameters
    ----------
    beta : float or sequence of float, default=0.1
        End of the range of false-positive rates, in (0, 1). Smaller looks nearer to the top, and
        learns from as many fewer rows.
    share : float, sequence of float or None, default=None
        Weight of every range; at most one together. None shares one out equally.
    softness : float, default=0.1
        delta, as a share of the loss at equal scores. Smaller cuts the range more sharply, and
        takes more Newton steps.
    rare_share : float, default=1.0
        Share of the rare rows that count, those that score lowest, in (0, 1]. Below 1 the range is
        two-way: false-positive rates up to beta, true-positive rates above 1 - `rare_share`.
    pair_loss : str, default="smoothed_hinge"
        The loss of a pair: "smoothed_hinge", "squared_hinge", "logistic" or "exponential".
    eps : float, default=0.5
        Of the smoothed hinge.

    Notes
    -----
    Cost: that of the pair loss and its Hessian product twice over; no sort of the majority and
    no extra pass. The unknown is counted from where it is best when all scores are equal.
    The two-way loss is a maximum over weights of the rare rows, convex still; it is solved by up
    to 200 such problems until it is within 0.2 percent of a lower bound: ``optimality_`` is that
    gap (see `hardest_share`).

    References
    ----------
    .. [1] Rockafellar, Uryasev, "Optimization of conditional value-at-risk", Journal of Risk 2,
       2000: the form with one threshold.
    .. [2] Narasimhan, Agarwal, "A structural SVM based approach for optimizing partial AUC",
       ICML 2013.

    Examples
    --------
    >>> loss = PartialAUC(beta=0.5)
    >>> loss.n_levels
    1
    """

    beta: float | Sequence[float] = 0.1
    share: float | Sequence[float] | None = None
    softness: float = 0.1
    rare_share: float = 1.0
    pair_loss: str = "smoothed_hinge"
    eps: float = 0.5

    def __post_init__(self) -> None:
        for value in _each(self.beta):
            check_number("beta", value, "above 0 and below 1", 0.0, 1.0)
        for value in () if self.share is None else _each(self.share):
            check_number("share", value, "above 0 and at most 1")
        betas, shares = self._betas, self.level_weight
        if not len(betas):
            raise ValueError(f"beta={self.beta!r} must hold a number above 0 and below 1.")
        if len(shares) != len(betas) or not (shares > 0.0).all() or shares.sum() > 1.0 + 1e-12:
            raise ValueError(
                f"share={self.share!r} must hold one number above 0 for each beta, at most 1 in "
                "all."
            )
        check_number("softness", self.softness, "a number above 0")
        check_number("rare_share", self.rare_share, "above 0 and at most 1", 0.0, 1.0, "(]")
        make_margin_loss(self.pair_loss, self.eps)

    @property
    def _betas(self) -> np.ndarray:
        return np.atleast_1d(np.asarray(self.beta, dtype=np.float64))

    @property
    def n_levels(self) -> int:
        """One for each beta."""
        return len(self._betas)

    @property
    def pair(self) -> MarginLoss:
        """The loss of a pair."""
        return make_margin_loss(self.pair_loss, self.eps)

    @property
    def level_weight(self) -> np.ndarray:
        """Weight of every range."""
        if self.share is None:
            return np.full(len(self._betas), 1.0 / max(len(self._betas), 1))
        return np.atleast_1d(np.asarray(self.share, dtype=np.float64))

    def thresholds(self, levels: np.ndarray) -> np.ndarray:
        """eta: own unknowns are counted from the best ones when all scores are equal."""
        betas, unit = self._betas, self.pair.at_zero
        # The slope of phi is beta there.
        x = (betas - 0.5) * 2.0 / np.sqrt(betas * (1.0 - betas)) * self.softness * unit
        return unit - x + levels

    def outer(self, mean: np.ndarray, levels: np.ndarray) -> Outer:
        """The smoothed excess over every threshold, and the plain loss with the share left."""
        delta = self.softness * self.pair.at_zero
        x = mean[:, None] - self.thresholds(levels)
        root = np.sqrt(x * x + 4.0 * delta**2)
        excess = np.where(x > 0.0, 0.5 * (x + root), 2.0 * delta**2 / (root + np.abs(x)))
        force = self.level_weight / self._betas
        plain = max(1.0 - float(self.level_weight.sum()), 0.0)
        return Outer(
            plain * mean + excess @ force,
            force * excess / root,
            force * 2.0 * delta**2 / root**3,
            plain,
        )


def _each(given: object) -> Sequence[object]:
    """The entries of a sequence, or the one value itself."""
    if isinstance(given, np.ndarray):
        return list(given.ravel())
    return given if isinstance(given, list | tuple) else (given,)
