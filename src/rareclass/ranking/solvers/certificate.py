r"""How near a point is to the minimum of :math:`L(w) + \lambda \sum_r p_r |w_r|`.

L is smooth; p is 1 for the weights of landmarks and 0 for a loss's own unknowns. At the minimum
the gradient g of L is

.. math::

    g_r = -\lambda p_r \, \mathrm{sign}(w_r) \quad (w_r \ne 0), \qquad
    |g_r| \le \lambda p_r \quad (w_r = 0) .
"""

import numpy as np

from rareclass.ranking.losses.rare_outer import RareOuterLoss
from rareclass.ranking.problem import Evaluation, RankingProblem


def violations(w: np.ndarray, gradient: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """By how much each condition of the minimum is violated: all zero there and nowhere else.

    `thresholds` are lam p.
    """
    at_zero = np.maximum(np.abs(gradient) - thresholds, 0.0)
    elsewhere = np.abs(gradient + thresholds * np.sign(w))
    return np.where((w == 0.0) & (thresholds > 0.0), at_zero, elsewhere)


def largest_lam(gradient_at_zero: np.ndarray, penalized: np.ndarray) -> float:
    r"""The smallest lam for which no landmark is used: :math:`\max_r |\partial_r L(0)|`."""
    return float(np.abs(gradient_at_zero[penalized]).max(initial=0.0))


def duality_gap(at: Evaluation, problem: RankingProblem, lam: float) -> float:
    r"""No model has an objective lower than this one by more than the gap.

    With :math:`\tau = \min(1, \min_r \lambda / |g_r|)`, for every v

    .. math::

        L(v) + \lambda \|v\|_1 \ge \tau \bigl(L(w) + g'(v - w)\bigr) + \lambda \|v\|_1
        \ge \tau \bigl(L(w) - g'w\bigr),

    as a convex L lies above its tangents, a loss is above 0, and :math:`|\tau g_r| \le \lambda`.
    The bound is the value of the dual problem at :math:`\tau g`, or below it.

    `at` has the value of the whole objective, and the gradient of L. nan where no bound is known:
    for a loss that is not convex, or has unknowns of its own, whose slopes are zero at the minimum
    only.
    """
    if problem.loss.n_levels or isinstance(problem.loss, RareOuterLoss):
        return float("nan")
    share = lam / max(lam, float(np.abs(at.gradient).max(initial=0.0)))
    smooth = at.value - lam * float(np.abs(at.w).sum())
    bound = max(share * (smooth - float(at.gradient @ at.w)), 0.0)
    return max(at.value - bound, 0.0)
