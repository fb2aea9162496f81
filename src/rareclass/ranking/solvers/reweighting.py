r"""Losses whose weights of the rare rows follow the scores: one convex problem after the other.

Where the loss is concave in each rare row's own sum, majorise and minimise: at a solution the loss
lies below its tangent in those sums, which is the ranking problem with other weights of the rare
rows. Its minimum is no worse, so that the objective falls from round to round.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from rareclass.findings import Status
from rareclass.kernels.expansion import expand
from rareclass.ranking.losses.pair_loss import MarginLoss, PairLoss
from rareclass.ranking.losses.top import Top
from rareclass.ranking.problem import (
    AboutProblem,
    Evaluation,
    RankingProblem,
    Solver,
    ValueQuestion,
)
from rareclass.ranking.solvers.newton import Solution
from rareclass.rows import Block

Minimize = Callable[[RankingProblem, Evaluation, Solution], Solver[Solution]]
"""Minimises a problem from an evaluation, with what the last solution has built."""

# The play ends at this gap, relative to the objective.
_GAP, _ROUNDS = 2e-3, 200
# A step that loses more than this share of the bound is tried again, so much shorter.
_LOSS, _SHORTER, _MOST_TRIALS = 1e-3, 0.25, 5
# The most that a step may differ from the last one, as a factor.
_STEP_CHANGE = 1e3


class _Play(NamedTuple):
    """Rare weights as factors of the given ones, the scores that answer them, and the bound."""

    factors: np.ndarray
    scores: np.ndarray
    bound: float


def hardest_share(
    problem: RankingProblem,
    plain: Solution,
    minimize: Minimize,
    penalty: Callable[[np.ndarray], float],
) -> Solver[Solution]:
    r"""The minimum of F, from the solution in which all rare rows count.

    1. Evaluate F at w: with the weights on the rare rows that score lowest.
    2. Stop when the best F found is near the best bound.
    3. Move weight from rows that score high to rows that score low, by a step times the score,
       and project onto Q. The step is Barzilai's and Borwein's, shorter where the bound fell.
    4. w is the minimum with these weights. As :math:`F_q \le F`, its value is a lower bound.
       Go to 1.

    Weights that no longer move belong to scores that tie where 0 < q < its cap: to the maximum.

    `penalty` is one on w beside the problem's own regulariser. The best found comes back: its value
    is F, its optimality the gap to the bound, relative to F.

    References
    ----------
    .. [1] Birgin, Martinez, Raydan, "Nonmonotone spectral projected gradient methods on convex
       sets", SIAM Journal on Optimization 10, 2000.
    """
    share, weight = problem.loss.rare_share, problem.rare_weight
    steps = _Steps(weight, share)
    solution, best, bound = plain, plain.at, plain.at.value
    upper, lower, gap = np.inf, -np.inf, np.inf
    for k in range(_ROUNDS + 1):
        # 1.
        scores = expand(problem.rare_kernel, solution.at.coefficients)
        hardest = replace(problem, rare_weight=lowest_share(scores, weight, share))
        there = yield ValueQuestion(hardest, solution.at.w)
        solution = solution._replace(passes=solution.passes + 1.0)
        value = there.value + penalty(solution.at.w)
        if value < upper:
            upper, best = value, solution.at
        # 2.
        gap = (upper - lower) / abs(upper) if upper != 0.0 else 0.0
        is_met = gap <= _GAP
        if is_met or k == _ROUNDS:
            break
        # 3.
        round_ = replace(problem, rare_weight=weight * steps.next(scores, bound))
        # 4.
        start = yield ValueQuestion(round_, solution.at.w)
        more = yield from minimize(round_, start, solution)
        bound = more.at.value
        if more.status is Status.CONVERGED:
            lower = max(lower, bound)
        solution = solution.followed_by(more, passes=1.0)
    status = Status.CONVERGED if is_met else Status.MAX_ITER
    at = best._replace(value=float(upper))
    gap = max(float(gap), 0.0)
    return solution._replace(at=at, optimality=gap, status=status, gap_goal=_GAP)


class _Steps:
    """Projected gradient steps of the rare weights, as factors of the given ones."""

    def __init__(self, weight: np.ndarray, share: float) -> None:
        self._weight, self._cap = weight, 1.0 / share
        self._last: _Play | None = None
        self._now = np.ones(len(weight))
        self._step = 1.0
        self._n_moves = self._n_trials = 0

    def next(self, scores: np.ndarray, bound: float) -> np.ndarray:
        """The next factors, from the scores and the bound that the ones before gave."""
        here, last = _Play(self._now, scores, bound), self._last
        if last is None:
            spread = float(np.ptp(scores))
            self._step = 1.0 / spread if spread > 0.0 else 1.0
        elif bound < last.bound - _LOSS * abs(last.bound) and self._n_trials < _MOST_TRIALS:
            here = last
            self._step *= _SHORTER
            self._n_trials += 1
        else:
            self._spectral(here, last)
            self._n_trials = 0
        self._last = here
        self._now = _onto_caps(here.factors - self._step * here.scores, self._weight, self._cap)
        return self._now

    def _spectral(self, here: _Play, last: _Play) -> None:
        """The two Barzilai-Borwein steps in turn."""
        self._n_moves += 1
        moved, turned = here.factors - last.factors, here.scores - last.scores
        both = float(self._weight @ (moved * turned))
        if both > 0.0:
            long = float(self._weight @ (moved * moved)) / both
            short = both / float(self._weight @ (turned * turned))
            step = short if self._n_moves % 2 else long
            low, high = self._step / _STEP_CHANGE, self._step * _STEP_CHANGE
            self._step = min(max(step, low), high)
        else:
            self._step /= _SHORTER


def _onto_caps(factors: np.ndarray, weight: np.ndarray, cap: float) -> np.ndarray:
    """The nearest factors in [0, cap] of weighted mean one: all less one number, then clipped."""
    total = float(weight.sum())

    def excess(shift: float) -> float:
        return float(weight @ np.clip(factors - shift, 0.0, cap)) - total

    low, high = float(factors.min()) - cap, float(factors.max())
    clipped = np.clip(factors - brentq(excess, low, high, xtol=1e-15, maxiter=1000), 0.0, cap)
    return np.asarray(clipped * (total / float(weight @ clipped)))


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


# Rounds end when the objective falls by less than this share.
_LEAST_FALL = 1e-3


def keeps_weights(loss: PairLoss) -> bool:
    """True where the solution with the weights of the rare rows as given is the solution."""
    return loss.rare_share == 1.0 and not isinstance(loss, Top)


def reweighted(
    problem: RankingProblem,
    plain: Solution,
    minimize: Minimize,
    penalty: Callable[[np.ndarray], float] | None = None,
) -> Solver[Solution]:
    """Go on from the solution with the weights as given to one of the whole loss.

    The plain solution itself for most losses; for those over a share of the rare rows as
    `hardest_share` has it. Else its value is the objective with the outer function; its optimality
    and status are those of the last convex problem. `penalty` is one on w beside the problem's own
    regulariser.

    Cost: two passes of the rows a round and those of its Newton steps, which are few.
    """
    penalty = penalty or (lambda w: 0.0)
    if keeps_weights(problem.loss):
        return plain
    if not isinstance(problem.loss, Top):
        return (yield from hardest_share(problem, plain, minimize, penalty))
    found = yield from _outer_terms(problem, problem.loss, plain.at, None, penalty)
    solution = plain._replace(passes=plain.passes + 1.0)
    for _ in range(int(problem.loss.rounds)):
        tangent = replace(problem, rare_weight=problem.rare_weight * found.slope)
        start = yield ValueQuestion(tangent, solution.at.w)
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
    loss: Top,
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
    w = at.w * problem.penalized
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
        """Sums by rare row, in the caller's order."""
        return self.pair.rare_totals(self.rare, sums)
