r"""Cutting planes for losses of labellings: a structural SVM on the kernel expansion.

.. math:: \min_{w, c} \; F(w, c) = \frac{\lambda}{2} \|w\|^2 + \xi(s, t), \qquad
          \xi(s, t) = \max_{\bar y} \; \Delta(\bar y) - u's + v't

with scores :math:`f(x) + c` of rare rows, s, and of majority rows, t, and the prices u and v of
labelling :math:`\bar y` (`losses.labelling`); c is 0 for losses without an intercept. A labelling
is a cut: a linear function of (w, c) that :math:`\xi` is nowhere below.

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

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from rareclass.findings import Status
from rareclass.kernels.expansion import KernelExpansion, block_scores, expand, pull_back
from rareclass.ranking.losses.labelling import Labelling, RankedClass, common_unit
from rareclass.ranking.problem import Evaluation, LabellingProblem
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.rows import Block, RowValues, Token

Tell = Callable[[float, Step], None]

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
    """Unknowns and the scores they give, which are linear in them."""

    w: np.ndarray
    level: float  # c
    rare: np.ndarray
    majority: np.ndarray

    def towards(self, other: Self, share: float) -> "Point":
        """The point on the line to another: 0 is this one, 1 the other."""
        return Point(
            self.w + share * (other.w - self.w),
            self.level + share * (other.level - self.level),
            self.rare + share * (other.rare - self.rare),
            self.majority + share * (other.majority - self.majority),
        )


class Value(NamedTuple):
    """F at a point, and the labelling that is the worst there."""

    at: Point
    F: float
    worst: Labelling


class Cut(NamedTuple):
    r"""The linear function :math:`\delta - g'w - h c`."""

    delta: float
    g: np.ndarray
    h: float

    def at(self, point: Point) -> float:
        """Value at a point."""
        return float(self.delta - self.g @ point.w - self.h * point.level)


class LowerBound(NamedTuple):
    """Minimum of the regulariser and the highest cut, where it is, and the weights of the cuts."""

    value: float
    w: np.ndarray
    level: float
    alpha: np.ndarray


class LabellingObjective:
    """F and its cuts for one problem; `passes` counts the readings of the majority."""

    def __init__(self, problem: LabellingProblem) -> None:
        self.problem, self.loss, self.passes = problem, problem.loss, 0.0
        self._majority_weight = problem.majority_weight
        self._unit = common_unit(np.concatenate([problem.rare_weight, self._majority_weight]))

    def point(self, w: np.ndarray, level: float) -> Point:
        """Score all rows: one pass."""
        p, coefficients = self.problem, self.problem.whitener @ w
        majority = p.rows.map(block_scores, p.expansion, coefficients)
        self.passes += 1.0
        return Point(w, level, expand(p.rare_kernel, coefficients) + level, majority + level)

    def ranked(self, at: Point) -> tuple[RankedClass, RankedClass]:
        """Both classes in the order of their scores."""
        rare = RankedClass(at.rare, self.problem.rare_weight, self._unit)
        return rare, RankedClass(at.majority, self._majority_weight, self._unit)

    def value(self, at: Point, lam: float) -> Value:
        """F at a point: no pass, O(m log m)."""
        worst = self.loss.worst(*self.ranked(at))
        return Value(at, 0.5 * lam * float(at.w @ at.w) + worst.value(at.rare, at.majority), worst)

    def cut(self, labelling: Labelling) -> Cut:
        """The cut of a labelling: a pass of the rows that it labels wrong."""
        p, v = self.problem, labelling.majority
        (of_majority,) = p.rows.sum(_pull_of_block, p.expansion, RowValues(v))
        pull = pull_back(p.rare_kernel, labelling.rare) - of_majority
        self.passes += np.count_nonzero(v) / max(len(v), 1)
        return Cut(labelling.delta, pull @ p.whitener, float(labelling.rare.sum() - v.sum()))


def _pull_of_block(
    block: Block, expansion: KernelExpansion, prices: RowValues
) -> tuple[np.ndarray]:
    own = prices.of(block)
    chosen = own != 0.0
    return (pull_back(expansion.matrix(block, chosen), own[chosen]),)


def minimize_labellings(
    problem: LabellingProblem,
    path: Sequence[tuple[int, float]],
    tol: float,
    max_iter: int,
    tell: Tell | None,
    done: Callable[[], None],
) -> list[tuple[int, Solution]]:
    """Minimise F for decreasing lams, by their numbers; each starts from the one before.

    `tol` is the wanted gap to the lower bound, relative to F; `max_iter` the most cuts of a lam.
    """
    objective, found = LabellingObjective(problem), []
    best = objective.point(np.zeros(problem.rank), 0.0)
    labellings = objective.loss.first(*objective.ranked(best))
    cuts = _Cuts([objective.cut(labelling) for labelling in labellings])
    for k, lam in path:
        solution, best = _solve(objective, cuts, best, lam, tol, max_iter, tell)
        found.append((k, solution))
        done()
    return found


class _Cuts:
    """The first cuts, which bound the intercept, and those that have held something lately."""

    def __init__(self, first: list[Cut]) -> None:
        self._cuts, self._n_first = first, len(first)
        self._idle = np.zeros(len(first), dtype=int)

    def add(self, cut: Cut) -> None:
        self._cuts.append(cut)
        self._idle = np.append(self._idle, 0)

    def minimum(self, lam: float, has_level: bool) -> LowerBound:
        """Solve the quadratic programme, and forget the cuts that have long held nothing."""
        bound = minimum_of_cuts(self._cuts, lam, has_level)
        self._idle = np.where(bound.alpha > _HOLDS, 0, self._idle + 1)
        kept = self._idle <= _MOST_IDLE
        kept[: self._n_first] = True
        self._cuts = [cut for cut, keep in zip(self._cuts, kept, strict=True) if keep]
        self._idle = self._idle[kept]
        return bound._replace(alpha=bound.alpha[kept])

    def highest(self, at: Point) -> float:
        return max(cut.at(at) for cut in self._cuts)


def _solve(
    objective: LabellingObjective,
    cuts: _Cuts,
    start: Point,
    lam: float,
    tol: float,
    max_iter: int,
    tell: Tell | None,
) -> tuple[Solution, Point]:
    """The minimum for one lam, and the point it is at."""
    has_level, before = objective.loss.has_intercept, objective.passes
    best, lower = objective.value(start, lam), -np.inf
    history: list[Step] = []
    status, no_better_cut = None, False
    cuts.add(objective.cut(best.worst))
    for iteration in range(max_iter + 1):
        # 1.
        bound = cuts.minimum(lam, has_level)
        lower = max(lower, bound.value)
        gap = max(best.F - lower, 0.0) / abs(best.F) if best.F else 0.0
        history.append(
            Step(iteration, best.F, gap, float(np.linalg.norm(bound.w - best.at.w)),
                 objective.passes - before, objective.problem.share_in_memory)
        )  # fmt: skip
        if tell is not None:
            tell(lam, history[-1])
        if gap <= tol:
            status = Status.CONVERGED
        elif no_better_cut:
            status = Status.ROUNDING
        if status is not None or iteration == max_iter:
            break
        # 2.
        end = objective.value(objective.point(bound.w, bound.level), lam)
        known = cuts.highest(end.at)
        best = _best_on_line(objective, best, end, lam)
        # 3.
        beyond = objective.value(best.at.towards(end.at, _BEYOND), lam)
        cut = objective.cut(beyond.worst)
        if cut.at(end.at) <= known:  # it would leave the bound where it is
            cut = objective.cut(end.worst)
        no_better_cut = cut.at(end.at) <= known
        cuts.add(cut)
    return _solution(objective, best, history, status or Status.MAX_ITER), best.at


def _best_on_line(objective: LabellingObjective, best: Value, end: Value, lam: float) -> Value:
    """The lowest F on the line from the best point to another, by halving where its slope is."""
    start, here, low = best.at, end, 0.0
    high = share = 1.0
    for _ in range(_LINE_POINTS):
        best = here if here.F < best.F else best
        slope = lam * (here.at.w @ (end.at.w - start.w))
        slope -= here.worst.rare @ (end.at.rare - start.rare)
        slope += here.worst.majority @ (end.at.majority - start.majority)
        if slope > 0.0:
            high = share
        elif share == 1.0:
            break
        else:
            low = share
        share = 0.5 * (low + high)
        here = objective.value(start.towards(end.at, share), lam)
    return here if here.F < best.F else best


def _solution(
    objective: LabellingObjective, best: Value, history: list[Step], status: Status
) -> Solution:
    at, p = best.at, objective.problem
    w = np.append(at.w, at.level) if objective.loss.has_intercept else at.w
    # F has no gradient where it is lowest: that is a corner.
    point = Evaluation(w, best.F, np.full(len(w), np.nan), p.whitener @ at.w, None, Token.new())
    last = history[-1]
    return Solution(point, last.optimality, last.iteration, status, last.passes, history, None)


def minimum_of_cuts(cuts: Sequence[Cut], lam: float, has_level: bool) -> LowerBound:
    r"""Minimise :math:`\frac{\lambda}{2} \|w\|^2 + \max_k (\delta_k - g_k'w - h_k c)`.

    By its dual, with :math:`w = G'\alpha / \lambda`; c is a multiplier of it:

    .. math:: \max_{\alpha \ge 0} \; \delta'\alpha - \tfrac{1}{2 \lambda} \|G'\alpha\|^2, \quad
              1'\alpha = 1, \; h'\alpha = 0 .

    Its value is a lower bound for any alpha that meets the conditions: O(cuts^3).
    """
    G, h = np.array([cut.g for cut in cuts]), np.array([cut.h for cut in cuts])
    delta = np.array([cut.delta for cut in cuts])
    sums = np.vstack([np.ones(len(cuts)), h]) if has_level else np.ones((1, len(cuts)))
    totals = np.array([1.0, 0.0])[: len(sums)]
    alpha, levels = SimplexQP(G @ G.T / lam, delta, sums, totals).solve()
    w = G.T @ alpha / lam
    value = float(delta @ alpha) - 0.5 * lam * float(w @ w)
    return LowerBound(value, w, float(levels[1]) if has_level else 0.0, alpha)


class _QPPoint(NamedTuple):
    """Weights of the cuts, multipliers of the sums, and multipliers of alpha >= 0."""

    alpha: np.ndarray
    nu: np.ndarray
    z: np.ndarray

    def moved(self, ahead: "_QPPoint", far: float) -> "_QPPoint":
        return _QPPoint(*(x + far * dx for x, dx in zip(self, ahead, strict=True)))

    def reach(self, ahead: "_QPPoint") -> float:
        """The longest step up to 1 after which neither alpha nor z is below 0."""
        return min(_longest(self.alpha, ahead.alpha), _longest(self.z, ahead.z))


class SimplexQP(NamedTuple):
    r"""Maximise :math:`d'\alpha - \frac12 \alpha'Q\alpha` over alpha >= 0 with S alpha = totals.

    Q is positive semi-definite and the first row of S is ones, its total 1.
    """

    Q: np.ndarray
    d: np.ndarray
    sums: np.ndarray
    totals: np.ndarray

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Return alpha and the multipliers nu of the sums.

        Mehrotra's predictor and corrector on :math:`d - Q\alpha - S'\nu + z = 0`, S alpha =
        totals, alpha z = 0: 10 to 25 factorisations of the size of alpha.
        """
        n, scale = len(self.d), max(float(np.abs(self.Q).max()), float(np.abs(self.d).max()))
        alpha = np.full(n, 1.0 / n)
        over = float(np.abs(self.Q @ alpha - self.d).max())
        at = _QPPoint(alpha, np.zeros(len(self.sums)), np.full(n, max(over, 1e-3 * scale)))
        for _ in range(_MOST_STEPS):
            r_d = self.d - self.Q @ at.alpha - at.nu @ self.sums + at.z
            r_s, left = self.totals - self.sums @ at.alpha, float(at.alpha @ at.z)
            off = max(float(np.abs(r_d).max()) / scale, float(np.abs(r_s).max()))
            if left <= _EXACT * max(1.0, abs(float(at.nu[0]))) and off <= _EXACT:
                break
            matrix = self.Q.copy()
            matrix.flat[:: n + 1] += at.z / at.alpha + _JITTER * scale
            # LAPACK itself: its wrappers take longer than so small a matrix does.
            factor, failed = dpotrf(matrix, overwrite_a=1)
            if failed:  # rounding ends it
                break
            ahead = self._step(at, factor, r_d, r_s, 0.0)
            after = at.moved(ahead, at.reach(ahead))
            aim = (float(after.alpha @ after.z) / left) ** 3 * left / n
            ahead = self._step(at, factor, r_d, r_s, aim - ahead.alpha * ahead.z)
            at = at.moved(ahead, _NEARLY * at.reach(ahead))
        return at.alpha / at.alpha.sum(), at.nu

    def _step(
        self,
        at: _QPPoint,
        factor: np.ndarray,
        r_d: np.ndarray,
        r_s: np.ndarray,
        aim: np.ndarray | float,
    ) -> _QPPoint:
        """The Newton step that aims the products alpha z at `aim`."""
        by_sum = dpotrs(factor, self.sums.T)[0]
        right = r_d + aim / at.alpha - at.z
        d_nu = np.linalg.solve(self.sums @ by_sum, by_sum.T @ right - r_s)
        d_alpha = dpotrs(factor, right)[0] - by_sum @ d_nu
        return _QPPoint(d_alpha, d_nu, (aim - at.z * d_alpha) / at.alpha - at.z)


def _longest(x: np.ndarray, direction: np.ndarray) -> float:
    """The longest step up to 1 after which nothing is below 0."""
    falls = direction < 0.0
    return float((x[falls] / -direction[falls]).min(initial=1.0))
