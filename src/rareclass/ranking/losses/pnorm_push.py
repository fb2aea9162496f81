"""The p-norm push: majority rows at the top of the list count for more."""

from dataclasses import dataclass

import numpy as np

from rareclass.ranking.losses.checks import check_number
from rareclass.ranking.losses.majority_outer import MajorityOuterLoss, Outer
from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.margin_losses import make_margin_loss


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
    pair_loss : {"smoothed_hinge", "squared_hinge", "logistic", "exponential"}, \
default="smoothed_hinge"
        The loss of a pair.
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
        check_number("power", self.power, "a number of at least 1", 1.0, np.inf)
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
        curvature = np.divide((p - 1.0) / unit * slope, r, out=np.zeros(len(r)), where=r > 0.0)
        return Outer(unit / p * slope * r, slope[:, None], curvature[:, None])
