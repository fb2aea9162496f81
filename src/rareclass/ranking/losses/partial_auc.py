"""Partial AUC: only the majority rows at the top of the list count."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rareclass.parameters import check_number
from rareclass.ranking.losses.majority_outer import MajorityOuterLoss, Outer
from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.margin_losses import make_margin_loss


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
