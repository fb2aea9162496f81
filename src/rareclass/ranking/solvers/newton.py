"""Truncated Newton with preconditioned conjugate gradients, safeguarded by a line search.

The functions here are solvers in the sense of `problem.Solver`: they yield questions about the
objective, and are sent the answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from rareclass.findings import Status
from rareclass.kernels.expansion import KERNEL, expand
from rareclass.ranking.problem import (
    Evaluation,
    ProductQuestion,
    RankingProblem,
    Solver,
    ValueQuestion,
)
from rareclass.rows import Block

Preconditioner = Callable[[np.ndarray], np.ndarray]
"""An approximate inverse Hessian: symmetric and positive definite."""

_ARMIJO = 1e-4
_MAX_TRIALS = 30
_MAX_CG = 250
# A Newton step, of a few products and an evaluation, does better than steps that cut less.
_POOR = 0.65
# Cutting a gradient that is nearly zero stops here.
_LEAST_TOL = 1e-6
# Rounding errors of a sum over pairs, in units of the last place of its terms.
_ROUNDING = 64.0
_SOME_ROWS = 256


class Step(NamedTuple):
    """One line of the history: the state after an iteration."""

    iteration: int
    objective: float
    optimality: float  # gradient norm relative to the reference
    step: float  # its length
    passes: float  # readings of all the rows so far, those of a part by its share
    in_memory: float  # share of the kernel read from memory; the rest is worked out in each pass
    # whether objective and optimality are foreseen by a part of the rows, not summed over all
    foreseen: bool = False


class PathSettings(NamedTuple):
    """Settings of the solvers of a path of lams, and what they call."""

    tol: float  # wanted gradient norm, relative to that at zero
    max_iter: int  # most iterations for each lam
    # Where a lam starts from the solution of the one before: how much smaller the gradient becomes
    # at least. With a loose `tol` it would else be the same solution.
    cut: float = np.inf
    foresees: bool = False  # on many rows, whether parts of them may tell that `tol` is reached
    gap: float = 0.0  # of problems of labellings: wanted gap to a lower bound
    done: Callable[[], None] = lambda: None  # called after every solution
    tell: Callable[[float, Step], None] | None = None  # called with lam after every iteration

    def tolerance(self, start: Evaluation, reference: float) -> float:
        """Wanted optimality for a lam that starts at a point, relative to `reference`."""
        norm, tol = float(np.linalg.norm(start.gradient)), self.tol
        if norm > 0.0 < reference:
            tol = min(tol, self.cut * norm / reference)
        return max(tol, min(self.tol, _LEAST_TOL))


Path = Sequence[tuple[int, float]]
"""Numbers and values of lams, the values decreasing."""


class Solution(NamedTuple):
    """End of a minimisation: point, optimality and cost."""

    at: Evaluation
    optimality: float
    n_iter: int
    status: Status
    passes: float
    history: list[Step]

    def lightened(self) -> "Solution":
        """Without what only solvers need: the rare side."""
        return self._replace(at=self.at._replace(rare=None))


PathSolver = Solver[list[tuple[int, Solution]]]
"""Solves for some lams of a path; returns their numbers with the solutions."""


class Direction(NamedTuple):
    """A direction of descent from a point."""

    step: np.ndarray
    cost: float  # passes of all rows that it took to find
    end: np.ndarray | None = None  # of the whole step, with zeros that are exact
    foreseen: Evaluation | None = None  # there, where a part of the rows tells it


Directions = Callable[[Evaluation, float, float], Solver[Direction]]
"""Finds a direction from a point, its optimality and the one that is wanted."""


class Objective:
    """A problem as `minimize` sees it; `proximal_newton.Penalized` adds a penalty."""

    def __init__(self, problem: RankingProblem) -> None:
        self.problem, self.lam = problem, problem.lam

    def value(self, at: Evaluation) -> float:
        """Return the objective at a point."""
        return at.value

    def slope(self, at: Evaluation, direction: np.ndarray) -> float:
        """Return the derivative at a point along a direction."""
        return float(at.gradient @ direction)

    def size(self, at: Evaluation) -> float:
        """Return the norm of what is zero at the minimum: the gradient."""
        return float(np.linalg.norm(at.gradient))

    def distance(self, at: Evaluation, direction: np.ndarray) -> float:
        """Measure how far a point is from the minimum, where values are equal to rounding."""
        return abs(self.slope(at, direction))

    def optimality(self, at: Evaluation, reference: float) -> float:
        """Return the size at a point relative to a reference above 0."""
        return self.size(at) / reference if reference > 0.0 else self.size(at)


def minimize(
    objective: Objective,
    start: Evaluation,
    reference: float,
    run: PathSettings,
    ways: Sequence[Directions],
    passes: float = 0.0,
) -> Solver[Solution]:
    r"""Minimise a convex, piecewise quadratic function, or one with a penalty.

    1. Stop when the optimality, the size of the gradient (or of the violations) over `reference`,
       is at most the tolerance of `run`.
    2. Direction of the first of the `ways`. That is dropped, if there is another, after a step that
       did not cut the optimality to `_POOR` of what it was.
    3. Where the way foresees that it ends within the tolerance, step there. Else `line_search`.
    4. If no step reduces F within rounding error, take the next way; without one, stop.

    `reference` is what optimality is measured by (here: at zero), `passes` what the start has cost:
    one pass of the rows an evaluation.
    """
    at, tol = start, run.tolerance(start, reference)
    history: list[Step] = []
    status = Status.MAX_ITER
    optimality = objective.optimality(at, reference)
    for iteration in range(run.max_iter + 1):
        # 1.
        if optimality <= tol:
            status = Status.CONVERGED
            break
        if iteration == run.max_iter:
            break
        # 2.
        found = yield from ways[0](at, optimality, tol)
        # 3.
        trial, length, n_trials = found.foreseen, 1.0, 0
        if trial is None:
            length, trial, n_trials = yield from line_search(objective, at, found.step, found.end)
        passes += found.cost + n_trials
        # 4.
        if trial is None:
            if len(ways) == 1:
                status = Status.ROUNDING
                break
            ways = ways[1:]
            continue
        at, before = trial, optimality
        optimality = objective.optimality(at, reference)
        if optimality > _POOR * before:
            ways = ways[-1:]
        in_memory = objective.problem.rows.share_remembering(KERNEL)
        here = length, passes, in_memory, found.foreseen is not None
        history.append(Step(iteration + 1, objective.value(at), optimality, *here))
        if run.tell is not None:
            run.tell(objective.lam, history[-1])
    return Solution(at, optimality, len(history), status, passes, history)


def reference_norm(problem: RankingProblem, at_zero: Evaluation) -> float:
    """Norm of the gradient at w = 0; zero where that is rounding error, and w = 0 the minimum."""
    norm = float(np.linalg.norm(at_zero.gradient))
    # The mean pull on the rare rows has about the norm of a row; the majority's balances it. Some
    # rows tell its size.
    some = problem.rare_kernel[:: max(1, len(problem.rare_kernel) // _SOME_ROWS)]
    features = expand(some, problem.whitener)
    of_a_row = float(np.sqrt((features * features).sum(axis=1).max(initial=0.0)))
    eps = float(np.finfo(problem.rare_kernel.dtype).eps)
    return norm if norm > _ROUNDING * eps * max(of_a_row, 1e-300) else 0.0


@dataclass(eq=False)
class NewtonDirections:
    """Newton's: conjugate gradients on H p = -g, from zero, each iterate a direction of descent.

    They end where the residual is the forcing term times the norm of g, and start with the
    preconditioner built last, `inverse`. When they have cost as much as building one here would,
    it is built. One pass of the rows a product.
    """

    problem: RankingProblem
    precondition: "SampledHessian | None" = None
    inverse: Preconditioner | None = None

    def __call__(self, at: Evaluation, optimality: float, tol: float) -> Solver[Direction]:
        """The direction from a point."""
        precondition = self.precondition
        forcing = max(min(0.25, np.sqrt(optimality)), 0.1 * tol / optimality)
        wanted = forcing * float(np.linalg.norm(at.gradient))
        p, r = np.zeros_like(at.gradient), -at.gradient
        patience = precondition.patience if precondition else _MAX_CG
        p, r, n_products = yield from conjugate_gradients(
            self.problem, at, p, r, wanted, patience, self.inverse
        )
        if precondition is not None and float(np.linalg.norm(r)) > wanted:
            self.inverse = precondition(at) or self.inverse
            p, r, n_more = yield from conjugate_gradients(
                self.problem, at, p, r, wanted, _MAX_CG, self.inverse
            )
            n_products += n_more
        return Direction(p, n_products)


def conjugate_gradients(
    problem: RankingProblem,
    at: Evaluation,
    p: np.ndarray,
    r: np.ndarray,
    wanted: float,
    max_products: int,
    inverse: Preconditioner | None,
) -> Solver[tuple[np.ndarray, np.ndarray, int]]:
    """Go on from p with residual r = -g - H p until its norm is `wanted`: (p, r, products)."""
    z = r if inverse is None else inverse(r)
    d, rz = z, float(r @ z)
    for k in range(max_products):
        Hd = yield ProductQuestion(problem, at, d)
        curvature = float(d @ Hd)
        if not curvature > 0.0:  # only rounding can do this: H is at least lam I
            return (p if p.any() else -at.gradient), r, k + 1
        alpha = rz / curvature
        p, r = p + alpha * d, r - alpha * Hd
        if float(np.linalg.norm(r)) <= wanted:
            return p, r, k + 1
        z = r if inverse is None else inverse(r)
        rz, previous = float(r @ z), rz
        d = z + (rz / previous) * d
    return p, r, max_products


def line_search(
    objective: Objective, at: Evaluation, direction: np.ndarray, end: np.ndarray | None = None
) -> Solver[tuple[float, Evaluation | None, int]]:
    """A step length with enough descent: (length, evaluation there or None, evaluations).

    The whole step ends at `end`, if given: zeros are exact there.
    """
    slope, here = objective.slope(at, direction), objective.value(at)
    if not slope < 0.0:
        return 0.0, None, 0
    rounding = 4.0 * np.finfo(np.float64).eps * max(abs(here), 1e-300)
    low, low_slope, t = 0.0, slope, 1.0
    for n in range(1, _MAX_TRIALS + 1):
        w = at.w + t * direction if end is None or t != 1.0 else end
        trial: Evaluation = yield ValueQuestion(objective.problem, w)
        value, trial_slope = objective.value(trial), objective.slope(trial, direction)
        if value <= here + _ARMIJO * t * slope:
            return t, trial, n
        # Near the minimum the values agree to the last digit; slopes still tell.
        flat = abs(value - here) <= rounding
        if flat and objective.distance(trial, direction) <= 0.5 * objective.distance(at, direction):
            return t, trial, n
        if flat and t < 1e-3:
            break
        if not trial_slope <= 0.0:  # too far, as is where the loss overflows
            # The root of phi' lies in (low, t): secant, kept off both ends. Where a flat Hessian
            # sent the step orders of magnitude too far, phi' is nearly a jump near low: the
            # interval must shrink by a fixed factor at least.
            finite = np.isfinite(trial_slope)
            share = low_slope / (low_slope - trial_slope) if finite else 0.0
            t = low + min(max(share, 0.05), 0.4) * (t - low)
        else:
            low, low_slope, t = t, trial_slope, 2.0 * t
    return 0.0, None, _MAX_TRIALS


# Nanoseconds, measured on two cores: of a flop in a matrix product, of a kernel entry in a pass
# from memory, of a row in a pass, and of a pass whatever its size. Only their ratio is used.
_FLOP, _ENTRY, _ROW, _PASS = 0.02, 1.0, 100.0, 2e6

# Majority rows that are sampled: more are nearer the Hessian and slower to build from.
MOST_SAMPLED = 3000
# Rare rows at a time, and blocks of the sample: all pairs of a block with them are formed, 25 MB.
_RARE_ROWS, _SAMPLE_BLOCKS = 4096, 4


@dataclass(frozen=True)
class SampledHessian:
    r"""Inverse of the Hessian over some majority rows that have curvature, all rare rows.

    With whitened features F+ of the rare and Fs of s sampled majority rows, out of a that have
    a pair with curvature, and pair curvatures :math:`C_{ij} = w_i w_j \ell''(f_i - f_j)`,

    .. math::

        H_S = \frac{a}{s W_+ W_-} \bigl( F_+' \mathrm{diag}(C 1) F_+ + F_s' \mathrm{diag}(C' 1)
        F_s - F_+' C F_s - F_s' C' F_+ \bigr) + \lambda I .

    Of a `PNormPush` these are the pairs alone: the curvature of its power is left out, which takes
    no more iterations in the whole.

    Finding rows with curvature on a part costs no pass of them all.

    Cost: O(n_sampled rank (m+ + landmarks + rank)) to build, O(rank^2) to apply. The draw has a
    fixed seed and is made among rows in their order: blocks and threads do not change it.
    """

    problem: RankingProblem  # whose Hessian it is
    # the same on a part of the rows, to sample from; None samples all
    part: RankingProblem | None = None
    n_sampled: int = MOST_SAMPLED  # at most

    @property
    def patience(self) -> int:
        """Plain CG iterations that cost about as much as building this."""
        p = self.problem
        n, rank = p.rows.n_rows, p.rank
        landmarks, rare = p.expansion.n_landmarks, len(p.rare_weight)
        sampled = min(self.n_sampled, n)
        build = 2.0 * sampled * rank * (landmarks + rare + 1.5 * rank) + rank**3
        one_pass = n * (landmarks * _ENTRY + _ROW) + _PASS
        return int(np.clip(build * _FLOP / one_pass, 3, 60))

    def __call__(self, at: Evaluation) -> Preconditioner | None:
        """The approximate inverse Hessian at a point; None when no row has curvature there."""
        p = self.part or self.problem
        active = np.flatnonzero(p.curved_rows(at))
        if not len(active):
            return None
        chosen = active
        if len(active) > self.n_sampled:
            rng = np.random.default_rng(0)
            chosen = np.sort(rng.choice(active, self.n_sampled, replace=False))
        weight = p.majority_weight[chosen] * (p.scale * len(active) / len(chosen))
        block_rows = -(-len(chosen) // _SAMPLE_BLOCKS)
        sample = p.in_memory(chosen, weight, block_rows, keeps_arrays=False).rows
        # A float32 kernel has no more digits, and its products take half the time.
        whitener = p.whitener.astype(p.rare_kernel.dtype, copy=False)
        H = np.zeros((p.rank, p.rank))
        for start in range(0, len(p.rare_weight), _RARE_ROWS):
            rare = slice(start, min(start + _RARE_ROWS, len(p.rare_weight)))
            features = p.rare_kernel[rare] @ whitener
            half, by_rare = sample.sum(_half_hessian, p, at, whitener, rare, features)
            by_row = by_rare[:, None].astype(features.dtype)
            H += half + 0.5 * (features * by_row).T @ features
        H += H.T
        H[np.diag_indices(p.rank)] += p.lam
        # None where lam is below the rounding error of H: plain conjugate gradients go on.
        try:
            factor = linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        return lambda r: linalg.cho_solve(factor, r, check_finite=False)


def _half_hessian(
    block: Block, p: RankingProblem, at: Evaluation, whitener: Any, rare: slice, rare_features: Any
) -> tuple[Any, Any]:
    """Terms of some rare and some sampled rows in H_S - lam I, up to its transpose."""
    names = "scores", "features"
    scores, features = (block.memo.get(name, at.token) for name in names)
    if scores is None or features is None:
        K = p.expansion.matrix(block)
        scores, features = expand(K, at.coefficients), K @ whitener
        for name, values in zip(names, (scores, features), strict=True):
            block.memo.keep(name, at.token, values)
    C = p.loss.pair_curvature(at.rare, rare, scores) * block.weight
    by_rare, by_sampled = C.sum(axis=1), C.sum(axis=0)[:, None].astype(features.dtype)
    half = 0.5 * by_sampled * features - C.T.astype(features.dtype) @ rare_features
    return features.T @ half, by_rare
