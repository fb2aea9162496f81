r"""Cutting planes for losses of labellings: a structural SVM on the kernel expansion.

.. math:: \min_{w, c} \; F(w, c) = \frac{\lambda}{2} \|w\|^2 + \xi(s, t), \qquad
          \xi(s, t) = \max_{\bar y} \; \Delta(\bar y) - u's + v't

with scores :math:`f(x) + c` of rare rows, s, and of majority rows, t, and the prices u and v of
labelling :math:`\bar y` (`losses.labelling`). The unknowns are w and, for losses with an intercept,
c behind them. A labelling is a cut: a linear function of the unknowns that :math:`\xi` is nowhere
below.

1. The minimum of the regulariser and the highest of the cuts known is a lower bound: a quadratic
   programme in as many unknowns as cuts, for which the majority is not read.
2. On the line from the best point to that minimum scores are linear, and F is minimised without
   reading a row.
3. A little further on the line the worst labelling is the next cut. Its sum of features takes a
   pass of the rows that it labels wrong, the scores of the next minimum one of all.

It ends when F at the best point is within `tol` of the bound, relative to F. Cuts know nothing of
lam: each lam of a path starts with those of the one before. The bound is exact, F has finitely many
cuts, and so the gap falls to rounding error in the end.

References
----------
.. [1] Joachims, Finley, Yu, "Cutting-plane training of structural SVMs", Machine Learning 77, 2009:
   one slack variable.
.. [2] Franc, Sonnenburg, "Optimized cutting plane algorithm for large-scale risk minimization",
   JMLR 10, 2009: step 2, and where step 3 cuts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.optimize import minimize_scalar

from rareclass.findings import Status
from rareclass.kernels.expansion import KERNEL, KernelExpansion, block_scores, expand, pull_back
from rareclass.ranking.losses.labelling import Labelling, LabellingLoss, RankedClass
from rareclass.ranking.problem import Evaluation, RankingProblem
from rareclass.ranking.solvers.newton import Path, PathSettings, Solution, Step
from rareclass.rows import Block, RowValues, Token

# Share of what is left of the line that the next cut is made beyond the best point.
_BEYOND = 0.1
# Points that are tried on the line: a sort of the scores each.
_LINE_POINTS = 6
# A cut drops out after so many programmes in which it held nothing.
_MOST_IDLE, _HOLDS = 20, 1e-9
# Of the quadratic programme: most steps, its relative gap, and the share of the way to the
# boundary that a step goes.
_MOST_STEPS, _EXACT, _NEARLY, _JITTER = 60, 1e-12, 0.995, 1e-15


class Point(NamedTuple):
    """Unknowns, the scores they give, F there, and the labelling that is the worst."""

    unknowns: np.ndarray
    rare: np.ndarray
    majority: np.ndarray
    F: float
    worst: Labelling


@dataclass(eq=False)
class Cut:
    r"""The linear function :math:`\delta - g'u` of the unknowns u."""

    delta: float
    g: np.ndarray
    idle: float = 0.0  # programmes in a row in which it held nothing; -inf: it stays

    def at(self, unknowns: np.ndarray) -> float:
        """Value at a point."""
        return float(self.delta - self.g @ unknowns)


class LabellingObjective:
    """F and its cuts for one problem; `passes` counts the readings of the majority."""

    def __init__(self, problem: RankingProblem) -> None:
        self.problem, self.lam, self.passes = problem, problem.lam, 0.0
        self.loss: LabellingLoss = problem.loss
        self._weights = problem.rare_weight, problem.majority_weight
        # Where all unknowns are 0, all scores are.
        scores = [np.zeros(len(weight)) for weight in self._weights]
        self.start = self.at(np.zeros(problem.rank + self.loss.has_intercept), *scores)
        first = self.loss.first(*map(RankedClass, scores, self._weights))
        self.cuts = [self.cut(labelling, idle=-np.inf) for labelling in first]

    def at(self, unknowns: np.ndarray, rare: np.ndarray, majority: np.ndarray) -> Point:
        """F where the scores are known: no pass, O(m log m)."""
        worst = self.loss.worst(*map(RankedClass, (rare, majority), self._weights))
        w = unknowns[: self.problem.rank]
        F = 0.5 * self.lam * float(w @ w) + worst.value(rare, majority)
        return Point(unknowns, rare, majority, F, worst)

    def between(self, one: Point, other: Point, share: float) -> Point:
        """The point on a line, on which scores are linear: 0 is one end, 1 the other."""
        return self.at(*(a + share * (b - a) for a, b in zip(one[:3], other[:3], strict=True)))

    def scored(self, unknowns: np.ndarray) -> Point:
        """F at unknowns of which the scores are not known: one pass."""
        p, level = self.problem, unknowns[self.problem.rank :].sum()
        coefficients = p.whitener @ unknowns[: p.rank]
        majority = p.rows.map(block_scores, p.expansion, coefficients)
        self.passes += 1.0
        return self.at(unknowns, expand(p.rare_kernel, coefficients) + level, majority + level)

    def cut(self, labelling: Labelling, idle: float = 0.0) -> Cut:
        """The cut of a labelling: a pass of the rows that it labels wrong."""
        p, v = self.problem, labelling.majority
        (of_majority,) = p.rows.sum(_pull_of_block, p.expansion, RowValues(v))
        g = (pull_back(p.rare_kernel, labelling.rare) - of_majority) @ p.whitener
        if self.loss.has_intercept:
            g = np.append(g, labelling.rare.sum() - v.sum())
        self.passes += np.count_nonzero(v) / max(len(v), 1)
        return Cut(labelling.delta, g, idle)

    def lower_bound(self) -> tuple[float, np.ndarray]:
        """The minimum of the regulariser and the highest cut; forgets cuts that are long idle."""
        value, unknowns, alpha = minimum_of_cuts(self.cuts, self.problem.rank, self.lam)
        for cut, weight in zip(self.cuts, alpha, strict=True):
            cut.idle = min(cut.idle, 0.0) if weight > _HOLDS else cut.idle + 1.0
        self.cuts = [cut for cut in self.cuts if cut.idle <= _MOST_IDLE]
        return value, unknowns


def _pull_of_block(
    block: Block, expansion: KernelExpansion, prices: RowValues
) -> tuple[np.ndarray]:
    own = prices.of(block)
    chosen = own != 0.0
    return (pull_back(expansion.matrix(block, chosen), own[chosen]),)


def minimize_labellings(
    problem: RankingProblem, path: Path, run: PathSettings
) -> dict[int, Solution]:
    """Minimise F for decreasing lams, by their numbers; each starts from the one before.

    The wanted gap to the lower bound, relative to F, is `run.gap`; `run.max_iter` are the most cuts
    of a lam.
    """
    objective, found = LabellingObjective(problem), {}
    best = objective.start
    for k, lam in path:
        objective.lam = lam
        best, history, status = _solve(objective, objective.at(*best[:3]), run)
        last, coefficients = history[-1], problem.whitener @ best.unknowns[: problem.rank]
        # F has no gradient where it is lowest: that is a corner.
        none = np.full(len(best.unknowns), np.nan)
        at = Evaluation(best.unknowns, best.F, none, coefficients, None, Token.new())
        cost = last.optimality, last.iteration, status, last.passes
        found[k] = Solution(at, *cost, history)
        run.done()
    return found


def _solve(
    objective: LabellingObjective, best: Point, run: PathSettings
) -> tuple[Point, list[Step], Status]:
    """The minimum for one lam from a point, and the way there."""
    before, in_memory = objective.passes, objective.problem.rows.share_remembering(KERNEL)
    history: list[Step] = []
    lower, is_stuck = -np.inf, False
    objective.cuts.append(objective.cut(best.worst))
    while True:
        # 1.
        bound, unknowns = objective.lower_bound()
        lower = max(lower, bound)
        gap = max(best.F - lower, 0.0) / abs(best.F) if best.F else 0.0
        step = float(np.linalg.norm(unknowns - best.unknowns))
        passes = objective.passes - before
        history.append(Step(len(history), best.F, gap, step, passes, in_memory))
        if run.tell is not None:
            run.tell(objective.lam, history[-1])
        if gap <= run.gap:
            return best, history, Status.CONVERGED
        if is_stuck:
            return best, history, Status.ROUNDING
        if len(history) > run.max_iter:
            return best, history, Status.MAX_ITER
        # 2.
        end = objective.scored(unknowns)
        known = max(cut.at(unknowns) for cut in objective.cuts)
        best = _best_on_line(objective, best, end)
        # 3.
        cut = objective.cut(objective.between(best, end, _BEYOND).worst)
        if cut.at(unknowns) <= known:  # it would leave the bound where it is
            cut = objective.cut(end.worst)
        is_stuck = cut.at(unknowns) <= known
        objective.cuts.append(cut)


def _best_on_line(objective: LabellingObjective, best: Point, end: Point) -> Point:
    """The lowest F found on the line from the best point to another, by Brent's method."""
    tried = [best, end]

    def value(share: float) -> float:
        tried.append(objective.between(best, end, share))
        return tried[-1].F

    minimize_scalar(value, bounds=(0.0, 1.0), method="bounded", options={"maxiter": _LINE_POINTS})
    return min(tried, key=lambda each: each.F)


def minimum_of_cuts(
    cuts: Sequence[Cut], rank: int, lam: float
) -> tuple[float, np.ndarray, np.ndarray]:
    r"""Minimise :math:`\frac{\lambda}{2} \|w\|^2 + \max_k (\delta_k - g_k'u)`, with u = (w, c).

    By its dual over weights of the cuts, with :math:`w = G'\alpha / \lambda` and G, h the slopes in
    w, of which there are `rank`, and in c, which is a multiplier:

    .. math:: \max_{\alpha \ge 0} \; \delta'\alpha - \tfrac{1}{2 \lambda} \|G'\alpha\|^2, \quad
              1'\alpha = 1, \; h'\alpha = 0 .

    Returns the value, which is a lower bound for any alpha that meets the conditions, u and alpha.
    """
    slopes, delta = np.array([cut.g for cut in cuts]), np.array([cut.delta for cut in cuts])
    G, sums = slopes[:, :rank], np.vstack([np.ones(len(cuts)), slopes[:, rank:].T])
    alpha, levels = simplex_qp(G @ G.T / lam, delta, sums)
    w = G.T @ alpha / lam
    value = float(delta @ alpha) - 0.5 * lam * float(w @ w)
    return value, np.append(w, levels[1:]), alpha


def simplex_qp(Q: np.ndarray, d: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Maximise :math:`d'\alpha - \frac12 \alpha'Q\alpha` over alpha >= 0 with S alpha = (1, 0).

    Q is positive semi-definite; S are `sums`, whose first row is ones. Returns alpha and the
    multipliers nu of the sums, by Mehrotra's predictor and corrector on
    :math:`d - Q\alpha - S'\nu + z = 0`, S alpha = (1, 0), alpha z = 0: 10 to 25 factorisations.
    """
    n, m, scale = len(d), len(sums), max(float(np.abs(Q).max()), float(np.abs(d).max()))
    alpha, nu = np.full(n, 1.0 / n), np.zeros(m)
    z = np.full(n, max(float(np.abs(Q @ alpha - d).max()), 1e-3 * scale))
    matrix = np.block([[Q, sums.T], [sums, np.zeros((m, m))]])
    for _ in range(_MOST_STEPS):
        r_d = d - Q @ alpha - nu @ sums + z
        r_s, left = np.eye(m)[0] - sums @ alpha, float(alpha @ z)
        off = max(float(np.abs(r_d).max()) / scale, float(np.abs(r_s).max()))
        if left <= _EXACT * max(1.0, abs(float(nu[0]))) and off <= _EXACT:
            break
        np.einsum("ii->i", matrix)[:n] = np.diag(Q) + z / alpha + _JITTER * scale
        factor, aim = lu_factor(matrix, check_finite=False), np.zeros(n)
        for _ in range(2):
            right = np.concatenate([r_d + aim / alpha - z, r_s])
            d_alpha, d_nu = np.split(lu_solve(factor, right, check_finite=False), [n])
            d_z = (aim - z * d_alpha) / alpha - z
            far = min(_longest(alpha, d_alpha), _longest(z, d_z))
            after = float((alpha + far * d_alpha) @ (z + far * d_z))
            aim = (after / left) ** 3 * left / n - d_alpha * d_z
        far *= _NEARLY
        alpha, nu, z = alpha + far * d_alpha, nu + far * d_nu, z + far * d_z
    return alpha / alpha.sum(), nu


def _longest(x: np.ndarray, direction: np.ndarray) -> float:
    """The longest step up to 1 after which nothing is below 0."""
    falls = direction < 0.0
    return float((x[falls] / -direction[falls]).min(initial=1.0))
