r"""Proximal Newton for :math:`L(w) + \lambda \sum_r |w_r|`, with a working set of unknowns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import linalg

from rareclass.ranking.problem import Evaluation, RankingProblem, Solver, ValueQuestion
from rareclass.ranking.solvers import _coordinate_descent_jit as jit
from rareclass.ranking.solvers.newton import (
    Direction,
    Objective,
    Path,
    PathSettings,
    PathSolver,
    Solution,
    Step,
    minimize,
)
from rareclass.rows import Block


def violations(w: np.ndarray, gradient: np.ndarray, lam: float) -> np.ndarray:
    """Violation of each condition of the minimum: all zero at the minimum and nowhere else."""
    at_zero = np.maximum(np.abs(gradient) - lam, 0.0)
    elsewhere = np.abs(gradient + lam * np.sign(w))
    return np.where(w == 0.0, at_zero, elsewhere)


def largest_lam(gradient_at_zero: np.ndarray) -> float:
    r"""The smallest lam for which no landmark is used: :math:`\max_r |\partial_r L(0)|`."""
    return float(np.abs(gradient_at_zero).max(initial=0.0))


def duality_gap(at: Evaluation, lam: float) -> float:
    r"""No model has an objective lower than this one by more than the gap.

    With :math:`\tau = \min(1, \min_r \lambda / |g_r|)`, for every v

    .. math::

        L(v) + \lambda \|v\|_1 \ge \tau \bigl(L(w) + g'(v - w)\bigr) + \lambda \|v\|_1
        \ge \tau \bigl(L(w) - g'w\bigr),

    as a convex L lies above its tangents, and above 0. `at` has the value of the whole objective,
    and the gradient of L.
    """
    share = lam / max(lam, float(np.abs(at.gradient).max(initial=0.0)))
    smooth = at.value - lam * float(np.abs(at.w).sum())
    bound = max(share * (smooth - float(at.gradient @ at.w)), 0.0)
    return max(at.value - bound, 0.0)


# Unknowns that join the working set in one iteration: at least, and relative to those in use.
_LEAST_NEW, _NEW_A_USED = 16, 1.0
# Damping relative to the mean curvature: the least that keeps the model's minimum unique.
_LEAST_DAMPING = 1e-10
# The model's minimum is found to this share of the violation that is left.
_EXACT = 0.05


class Penalized(Objective):
    """A smooth problem with lam = 0, and its penalty."""

    def __init__(self, problem: RankingProblem, lam: float) -> None:
        self.problem, self.lam = problem, lam

    def value(self, at: Evaluation) -> float:
        """The whole objective at a point where the smooth part is known."""
        return at.value + self.lam * float(np.abs(at.w).sum())

    def slope(self, at: Evaluation, direction: np.ndarray) -> float:
        """The derivative along a direction, on its own side where a weight is zero."""
        of_penalty = np.where(at.w == 0.0, np.abs(direction), np.sign(at.w) * direction)
        return super().slope(at, direction) + self.lam * float(of_penalty.sum())

    def size(self, at: Evaluation) -> float:
        """The largest violation of the conditions of the minimum."""
        return float(self.violations(at).max(initial=0.0))

    def distance(self, at: Evaluation, direction: np.ndarray) -> float:
        """The same: along a direction slopes jump."""
        return self.size(at)

    def violations(self, at: Evaluation) -> np.ndarray:
        """Violation of each condition of the minimum."""
        return violations(at.w, at.gradient, self.lam)


@dataclass(eq=False)
class ProximalDirections:
    r"""Directions to the minimum of a quadratic model with the penalty.

    Working set: the unknowns that are not zero, and those zeros whose condition is violated most.
    Each evaluation gives the violations of all unknowns, so that none is screened out unseen. The
    Hessian among them is one pass, and the minimum of the model

    .. math:: g'd + \tfrac12 d'(H + \mu I)d + \lambda \sum_r |w_r + d_r|

    is found by coordinate descent. The damping mu is as good as zero unless a search had to shorten
    its step, or the model promises more than the whole objective: L is not negative.

    Lee, Sun, Saunders, "Proximal Newton-type methods for minimizing composite functions", SIAM
    Journal on Optimization 24(3), 2014.
    """

    objective: Penalized
    reference: float
    _damping: float = 0.0
    _last: tuple[np.ndarray, np.ndarray] | None = None  # the end of the step, and H

    def __call__(self, at: Evaluation, optimality: float, tol: float) -> Solver[Direction]:
        """The direction from a point."""
        if self._last is not None:
            end, H = self._last
            is_whole, before = at.w is end, self._damping
            self._damping = 0.25 * before if is_whole else max(4.0 * before, _curvature(H))
        violated = self.objective.violations(at)
        working = _working_set(at.w, violated)
        H = yield ActiveHessian(self.objective.problem, at, working)
        wanted = max(min(_EXACT, optimality) * violated.max(), 0.1 * tol * self.reference)
        end, self._damping = _model_minimum(self.objective, at, working, H, self._damping, wanted)
        self._last = end, H
        return Direction(end - at.w, 1, end)


def _curvature(H: np.ndarray) -> float:
    """Mean of the curvatures of the unknowns."""
    return float(np.trace(H)) / len(H)


def _working_set(w: np.ndarray, violated: np.ndarray) -> np.ndarray:
    """The unknowns in use, and as many again of those that should be: increasing."""
    used = np.flatnonzero(w)
    new = np.flatnonzero((w == 0.0) & (violated > 0.0))
    most = max(_LEAST_NEW, int(_NEW_A_USED * len(used)))
    if len(new) > most:
        new = new[np.argsort(-violated[new], kind="stable")[:most]]
    return np.union1d(used, new)


def _model_minimum(
    objective: Penalized,
    at: Evaluation,
    working: np.ndarray,
    H: np.ndarray,
    damping: float,
    wanted: float,
) -> tuple[np.ndarray, float]:
    """Minimum of the model, and the damping used."""
    here, lam = objective.value(at), objective.lam
    gradient, w = at.gradient[working], at.w[working]
    steepest = violations(w, gradient, lam)
    # With this damping alone, a model without curvature promises about half of all there is.
    enough = float(steepest @ steepest) / max(here, np.finfo(float).tiny)
    while True:
        shift = max(damping, _LEAST_DAMPING * (_curvature(H) + enough))
        model = QuadraticModel(w, gradient, H + shift * np.eye(len(H)), lam)
        v = model.minimum(wanted)
        promised = model.decrease(v)
        if promised <= here or damping >= enough:
            break
        damping = max(4.0 * shift, enough)
    target = at.w.copy()
    target[working] = v
    return target, damping


# Of the grid of lams: the ratio of neighbours, how many there are, and the exponents before them,
# where one landmark comes in after the other.
_RATIO, _N_LAMS = 2.0**-0.5, 32
_FIRST = 2.0 ** np.arange(-5, 0)

# From one lam to the next at most this factor at once: what is in use then changes by little.
_LARGEST_STEP = 8.0
# Lams on the way are solved to violations of this share of them.
_ON_THE_WAY = 0.1


def default_lams(problem: RankingProblem) -> tuple[float, ...]:
    r"""Lams from one landmark or a few to most of them.

    They are :math:`\lambda_{\max} 2^{-k/2}` for k = 1, 2, ..., 32, and before them k = 1/32, 1/16,
    ..., 1/2. From :math:`\lambda_{\max}` on no landmark is used; it is known from one pass of the
    rows. `problem` is in the coordinates of `unit_norm`.
    """
    smooth = replace(problem, lam=0.0, slot=None)
    # Where no landmark tells rare from other rows, any lam gives the same model.
    largest = largest_lam(smooth.evaluate(np.zeros(smooth.rank)).gradient) or 1.0
    exponents = np.concatenate([_FIRST, np.arange(1, _N_LAMS + 1)])
    return tuple((largest * _RATIO**exponents).tolist())


def minimize_sparse(
    problem: RankingProblem, path: Path, run: PathSettings, slot: int
) -> PathSolver:
    """Minimise for decreasing lams, by their numbers; each solution starts the next.

    The path begins at the largest useful lam. Where the next lam is far below the last, lams in
    between lead there. The problem is in the coordinates of `unit_norm`; its tolerance is the
    largest violation of the conditions of the minimum, relative to the largest slope at w = 0.
    """
    problem, found, tell = replace(problem, lam=0.0, slot=slot), [], run.tell
    at: Evaluation = yield ValueQuestion(problem, np.zeros(problem.rank))
    reference = last = largest_lam(at.gradient)
    passes = 1.0
    for k, lam in path:
        run = run._replace(tell=tell and partial(_tell_of, tell, lam))
        on_the_way = run._replace(tol=_ON_THE_WAY)
        for between in _between(last, lam):
            near = yield from _minimum(Penalized(problem, between), at, between, on_the_way, passes)
            at, passes = near.at, near.passes
        objective = Penalized(problem, lam)
        solution = yield from _minimum(objective, at, reference, run, passes)
        at, passes, last = solution.at, 0.0, min(lam, last)
        whole = at._replace(value=objective.value(at))
        found.append((k, solution._replace(at=whole).lightened()))
        run.done()
    return found


def _between(last: float, lam: float) -> list[float]:
    """Lams on the way from the last one to the next, at even ratios."""
    steps = int(np.ceil(np.log(last / lam) / np.log(_LARGEST_STEP))) if last > lam else 1
    return [last * (lam / last) ** (k / steps) for k in range(1, steps)]


def _tell_of(tell: Callable[[float, Step], None], lam: float, _: float, step: Step) -> None:
    tell(lam, step)


def _minimum(
    objective: Penalized, at: Evaluation, reference: float, run: PathSettings, passes: float
) -> Solver[Solution]:
    """Minimise from an evaluation of the smooth part."""
    ways = [ProximalDirections(objective, reference)]
    return (yield from minimize(objective, at, reference, run, ways, passes))


def unit_norm(K: np.ndarray, dtype: np.dtype) -> np.ndarray:
    r"""A diagonal matrix T that makes the functions of all landmarks equally large.

    With :math:`T_{rr} = k(z_r, z_r)^{-1/2}` and :math:`\beta = T w` an absolute weight
    :math:`|w_r|` is the norm of what landmark r adds to f. `K` is the kernel between the landmarks;
    T is zero where a landmark's function is.
    """
    size = np.sqrt(np.maximum(np.diag(K), 0.0))
    return np.diag(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0))


_SWEEPS, _ROUNDS = 20, 100


class QuadraticModel(NamedTuple):
    """q(v) = g'(v - w) + (v - w)' H (v - w) / 2 + lam sum_r |v_r| around a point w."""

    w: np.ndarray  # shape (n,)
    gradient: np.ndarray  # g
    H: np.ndarray  # symmetric, positive definite
    lam: float

    def decrease(self, v: np.ndarray) -> float:
        """q(w) - q(v)."""
        d = v - self.w
        penalty = self.lam * float((np.abs(self.w) - np.abs(v)).sum())
        return penalty - float(self.gradient @ d) - 0.5 * float(d @ self.H @ d)

    def minimum(self, wanted: float) -> np.ndarray:
        """The minimum, to violations of its conditions of at most `wanted`.

        Coordinate descent finds which coordinates are zero and the signs of the others; among
        those the minimum is a linear system, whose solution is approached as far as the signs hold.
        """
        v, slope = self.w.copy(), self.gradient.copy()
        for _ in range(_ROUNDS):
            jit._descend(self.H, self.lam, v, slope, wanted, _SWEEPS)
            if violations(v, slope, self.lam).max(initial=0.0) <= wanted:
                break
            for _ in range(len(v)):
                v, slope, blocked = self._on_face(v, slope)
                if not blocked:
                    break
        return v

    def _on_face(self, v: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """A step to the minimum over points with the signs of v: (v, slope, a sign stopped it)."""
        free = np.flatnonzero(v)
        residual = -(slope[free] + self.lam * np.sign(v[free]))
        try:
            factor = linalg.cho_factor(self.H[np.ix_(free, free)], check_finite=False)
        except linalg.LinAlgError:
            return v, slope, False
        step = linalg.cho_solve(factor, residual, check_finite=False)
        turning = step * v[free] < 0.0
        lengths = np.full(len(free), np.inf)
        lengths[turning] = -v[free][turning] / step[turning]
        first = int(lengths.argmin()) if len(free) else 0
        length = min(1.0, float(lengths.min(initial=np.inf)))
        moved = v.copy()
        moved[free] += length * step
        if length < 1.0:
            moved[free[first]] = 0.0
        return moved, self.gradient + self.H @ (moved - self.w), length < 1.0


class ActiveHessian:
    r"""Second derivatives among some unknowns, of shape (n_active, n_active), in one pass.

    Column b is the curvature along unknown b, which changes the scores by the kernel function
    :math:`\phi_b` of its landmark: the whitener has one entry a column at most. `active` are the
    unknowns of interest, increasing. O(n_active (n_active + log m+)) a row.
    """

    n_sums: ClassVar[int] = 2

    def __init__(self, problem: RankingProblem, at: Evaluation, active: np.ndarray) -> None:
        self.problem, self.at = problem, at
        self.landmarks = np.abs(problem.whitener[:, active]).argmax(axis=0)
        self.sizes = problem.whitener[self.landmarks, active]
        self.rare_features = self._features(problem.rare_kernel)
        self.prefixes = [problem.loss.rare_direction(at.rare, d) for d in self.rare_features]
        # A question needs a function of its own; this one has no use for it.
        self.coefficients = np.zeros(problem.expansion.n_landmarks)

    def of_block(self, block: Block, K: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple]:
        """Slopes pulled back to the coordinates of interest; rare-side sums of every unknown."""
        p = self.problem
        zone, weight = p.zone(block, self.at, K), p.block_weight(block)
        features = self._features(K)
        by_row, sums = [], []
        for prefix, direction in zip(self.prefixes, features, strict=True):
            change, more = p.loss.curvature(self.at.rare, prefix, zone, direction, weight)
            by_row.append(change)
            sums.append(more)
        return np.zeros_like(values), (features @ np.stack(by_row).T, np.stack(sums))

    def finish(self, pull: np.ndarray, of_majority: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Add the rare side."""
        p, H = self.problem, of_majority.copy()
        each = zip(self.prefixes, self.rare_features, sums, strict=True)
        for b, (prefix, direction, more) in enumerate(each):
            of_rare = p.loss.finish_curvature(self.at.rare, prefix, direction, more)
            H[:, b] += self.rare_features @ of_rare
        return (0.5 * p.scale) * (H + H.T)

    def _features(self, K: np.ndarray) -> np.ndarray:
        """The functions of the landmarks of interest, a row each."""
        columns = K[:, self.landmarks].astype(np.float64, order="F", copy=False)
        return np.asfortranarray(columns * self.sizes).T
