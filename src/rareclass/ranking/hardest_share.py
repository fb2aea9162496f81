r"""Losses that only the hardest share of the rare rows counts in: a maximum over rare weights.

.. math:: F(w) = \max_{q \in Q} F_q(w), \qquad
          Q = \{ q : 0 \le q_i \le w_i / \rho, \; \textstyle\sum_i q_i = W_+ \}

with :math:`F_q` the objective with rare weights q. The loss of a pair never rises with the rare
score, so that the maximum stands on the rare rows that score lowest. F is convex with kinks
where rare scores tie, and at its minimum they do: F is minimised by play between w and q.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rareclass.ranking.expansion import expand
from rareclass.ranking.newton import Solution
from rareclass.ranking.problem import Evaluation, RankingProblem
from rareclass.ranking.questions import Solver
from rareclass.solver_status import Status

Minimize = Callable[[RankingProblem, Evaluation, Solution], Solver[Solution]]
"""Minimises a problem from an evaluation, with what the last solution has built."""

# The play ends at this gap, relative to the objective. It closes about like 1 / rounds.
_GAP, _ROUNDS = 2e-3, 100


def hardest_share(
    problem: RankingProblem,
    plain: Solution,
    minimize: Minimize,
    penalty: Callable[[np.ndarray], float],
) -> Solver[Solution]:
    r"""The minimum of F, from the solution in which all rare rows count.

    1. Evaluate F at w: with the weights on the rare rows that score lowest.
    2. Move the weights towards those, by a share of 2 / (k + 2) in round k.
    3. w is the minimum with these weights. As :math:`F_q \le F`, its value is a lower bound.
    4. Stop when the best F found is near the best bound; else go to 1.

    Parameters
    ----------
    problem : RankingProblem
    plain : Solution
    minimize : callable
    penalty : callable
        A penalty on w beside the problem's own regulariser.

    Returns
    -------
    Solver of a Solution
        The best found. Its value is F, its optimality the gap to the bound, relative to F.
    """
    share, weight = problem.loss.rare_share, problem.rare_weight
    solution, best, mixed = plain, plain.at, weight
    upper, lower, gap = np.inf, -np.inf, np.inf
    for k in range(_ROUNDS + 1):
        # 1.
        scores = expand(problem.rare_kernel, solution.at.coefficients)
        hardest = lowest_share(scores, weight, share)
        there = yield replace(problem, rare_weight=hardest).value_at(solution.at.w)
        solution = solution._replace(passes=solution.passes + 1.0)
        value = there.value + penalty(solution.at.w)
        if value < upper:
            upper, best = value, solution.at
        # 4.
        gap = (upper - lower) / abs(upper) if upper != 0.0 else 0.0
        if gap <= _GAP or k == _ROUNDS:
            break
        # 2.
        mixed = mixed + (2.0 / (k + 2.0)) * (hardest - mixed)
        # 3.
        round_ = replace(problem, rare_weight=mixed)
        start = yield round_.value_at(solution.at.w)
        more = yield from minimize(round_, start, solution)
        if more.status is Status.CONVERGED:
            lower = max(lower, more.at.value)
        solution = solution.followed_by(more, passes=1.0)
    status = Status.CONVERGED if gap <= _GAP else Status.MAX_ITER
    at = best._replace(value=float(upper))
    return solution._replace(at=at, optimality=max(float(gap), 0.0), status=status)


def lowest_share(scores: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    """Weights over `share` of the rows with the lowest scores, of the same sum; zero elsewhere.

    Rows that tie at the border share what is left by weight: copies stay equal.

    Examples
    --------
    >>> lowest_share(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
    array([0., 2., 1.])
    """
    values, place = np.unique(scores, return_inverse=True)
    group = np.bincount(place, weight, len(values))
    before = np.cumsum(group) - group
    taken = np.clip(share * group.sum() - before, 0.0, group)
    kept = np.divide(taken, group, out=np.zeros(len(group)), where=group > 0.0)
    return weight * kept[place] / share
