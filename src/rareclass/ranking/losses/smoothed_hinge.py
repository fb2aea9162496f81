"""The smoothed hinge: the paper's loss."""

from dataclasses import dataclass

from rareclass.ranking.losses.checks import check_number
from rareclass.ranking.losses.piecewise_quadratic import PiecewiseQuadratic, Shape


@dataclass(frozen=True)
class SmoothedHinge(PiecewiseQuadratic):
    r"""The hinge with its corner rounded: linear, quadratic, zero.

    .. math::

        \ell(z) = \begin{cases} (1 - \epsilon) - z & z < 1 - 2\epsilon \\
            (1 - z)^2 / (4 \epsilon) & 1 - 2\epsilon \le z < 1 \\ 0 & z \ge 1 \end{cases}

    Parameters
    ----------
    eps : float, default=0.5
        Half the width of the quadratic part, in (0, 1/2]. Smaller is nearer the hinge, and
        its curvature 1 / (2 eps) is sharper: more Newton steps.

    Notes
    -----
    Cost: two binary searches among the rare scores for each majority row, O(log m+); no pair
    is formed and the majority is never sorted. Continuously differentiable; the second
    derivative jumps where a pair enters or leaves the quadratic part.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "RankRC: Large-Scale Nonlinear Rare Class Ranking", IEEE TKDE
       27(12), 2015, section 3, and equations (18) to (20).

    Examples
    --------
    >>> import numpy as np
    >>> loss = SmoothedHinge()
    >>> one = np.ones(1)
    >>> loss.block(loss.rare(0 * one, one), 0 * one, one).value
    0.5
    """

    eps: float = 0.5

    def __post_init__(self) -> None:
        check_number("eps", self.eps, "a number above 0 and at most 0.5", 0.0, 0.5, "(]")

    @property
    def shape(self) -> Shape:
        """Linear below 1 - 2 eps, with slope -1."""
        return Shape(1.0 - 2.0 * self.eps, 1.0 - self.eps, 1.0, 1.0 / (2.0 * self.eps))
