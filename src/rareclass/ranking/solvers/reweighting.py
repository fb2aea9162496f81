r"""Losses whose weights of the rare rows follow the scores: one convex problem after the other.

Where the loss is concave in each rare row's own sum, majorise and minimise: at a solution the loss
lies below its tangent in those sums, which is the ranking problem with other weights of the rare
rows. Its minimum is no worse, so that the objective falls from round to round.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.pair_loss import PairLoss
from rareclass.ranking.losses.rare_outer import RareOuterLoss
from rareclass.ranking.problem import AboutProblem, Evaluation, RankingProblem
from rareclass.ranking.solvers.hardest_share import Minimize, hardest_share
from rareclass.ranking.solvers.newton import Solution
from rareclass.ranking.solvers.questions import Solver
from rareclass.rows import Block

# Rounds end when the objective falls by less than this share.
_LEAST_FALL = 1e-3


def keeps_weights(loss: PairLoss) -> bool:
    """Whether the solution with the weights of the rare rows as given is the solution."""
    return loss.rare_share == 1.0 and not isinstance(loss, RareOuterLoss)


def reweighted(
    problem: RankingProblem,
    plain: Solution,
    minimize: Minimize,
    penalty: Callable[[np.ndarray], float] | None = None,
) -> Solver[Solution]:
    """From the solution with the weights as given to one of the whole loss.

    The plain solution itself for most losses; for those over a share of the rare rows as
    `hardest_share` has it. Else its value is the objective with the outer function; its optimality
    and status are those of the last convex problem. `penalty` is one on w beside the problem's own
    regulariser.

    Cost: two passes of the rows a round and those of its Newton steps, which are few.
    """
    penalty = penalty or (lambda w: 0.0)
    if keeps_weights(problem.loss):
        return plain
    if not isinstance(problem.loss, RareOuterLoss):
        return (yield from hardest_share(problem, plain, minimize, penalty))
    found = yield from _outer_terms(problem, problem.loss, plain.at, None, penalty)
    solution = plain._replace(passes=plain.passes + 1.0)
    for _ in range(problem.loss.n_rounds):
        tangent = replace(problem, rare_weight=problem.rare_weight * found.slope)
        start = yield tangent.value_at(solution.at.w)
        more = yield from minimize(tangent, start, solution)
        trial = yield from _outer_terms(problem, problem.loss, more.at, found, penalty)
        more = solution.followed_by(more, passes=2.0)
        if not trial.objective < found.objective:
            solution = more._replace(at=solution.at)
            break
        fall = 1.0 - trial.objective / found.objective
        solution, found = more, trial
        if fall < _LEAST_FALL:
            break
    return solution._replace(at=solution.at._replace(value=found.objective))


class _OuterTerms(NamedTuple):
    """The objective at a point, factors of the rare weights for its tangent, and their unit."""

    objective: float
    slope: np.ndarray
    unit: float


def _outer_terms(
    problem: RankingProblem,
    loss: RareOuterLoss,
    at: Evaluation,
    first: _OuterTerms | None,
    penalty: Callable[[np.ndarray], float],
) -> Solver[_OuterTerms]:
    """Objective and tangent at a point; `first` is None at the plain solution."""
    weight, majority = problem.rare_weight, problem.majority_total
    mean = (yield RareTotals(problem, loss.pair, at.w)) / majority
    outer = loss.outer(mean, float(weight.sum()) / majority)
    # At the plain solution the weights keep their sum, so that lam means the same.
    unit = float(weight.sum() / (weight @ outer.slope)) if first is None else first.unit
    w = problem.regularized(at.w)
    objective = problem.scale * majority * unit * float(weight @ outer.value)
    objective += 0.5 * problem.lam * float(w @ w) + penalty(at.w)
    return _OuterTerms(objective, outer.slope * unit, unit)


class RareTotals(AboutProblem):
    """Each rare row's own sum of pair losses over the majority; the answer has shape (m+,)."""

    n_sums = 1

    def __init__(self, problem: RankingProblem, pair: MarginLoss, w: np.ndarray) -> None:
        super().__init__(problem, w)
        self.pair = pair
        self.rare = self.pair.rare(self.rare_values, problem.rare_weight)

    def of_block(self, block: Block, K: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple]:
        """Nothing by row; the rare rows' sums."""
        sums = self.pair.rare_sums(self.rare, values, self.problem.block_weight(block))
        return np.zeros_like(values), (sums,)

    def finish(self, pull: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """By rare row, in the caller's order."""
        return self.pair.rare_totals(self.rare, sums)
