"""The squared hinge: quadratic for every pair that falls short of its margin."""

from dataclasses import dataclass

import numpy as np

from rareclass.ranking.losses.piecewise_quadratic import PiecewiseQuadratic, Shape


@dataclass(frozen=True)
class SquaredHinge(PiecewiseQuadratic):
    r"""The hinge squared: a pair far in the wrong order weighs more than in proportion.

    .. math:: \ell(z) = \max(0, 1 - z)^2

    Convex. Against the smoothed hinge, whose loss is linear there, it works on the worst pairs
    first; so do rare rows without hope, such as wrong labels.

    Notes
    -----
    Cost: one binary search among the rare scores for each majority row, O(log m+).

    References
    ----------
    .. [1] Chapelle, Keerthi, "Efficient algorithms for ranking with SVMs", Information Retrieval
       13, 2010: its L2 loss on pairs.

    Examples
    --------
    >>> loss = SquaredHinge()
    >>> one = np.ones(1)
    >>> loss.block(loss.rare(0 * one, one), one, one).value
    4.0
    """

    @property
    def shape(self) -> Shape:
        """No linear piece."""
        return Shape(-np.inf, 0.0, 0.0, 2.0)
