"""A part of the rows that stands in for all of them: starts, and directions, at its price."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from rareclass.ranking.problem import (
    Evaluation,
    RankingProblem,
    Solver,
    ValueQuestion,
    answer,
    solve,
)
from rareclass.ranking.solvers.newton import (
    Direction,
    Directions,
    NewtonDirections,
    Objective,
    PathSettings,
    PathSolver,
    Preconditioner,
    SampledHessian,
    Solution,
    minimize,
    reference_norm,
)

# From this stride on two witnesses cost little of the pass that they may save.
_LEAST_WITNESS_STRIDE = 10
# Rows in the part for each landmark: the curvature of so many is near that of all; half of them do
# where a part of so many would be more than a fifth of the rows.
_ROWS_A_LANDMARK, _LEAST_ROWS_A_LANDMARK = 30, 20
_LEAST_ROWS = 5_000
# Below this stride the part costs too much of a pass.
_LEAST_STRIDE = 5
# The majority's standard error relative to that of the rare rows.
_SMALL_RELATIVE_TO_RARE = 0.25
# Beyond so many majority rows, parts of them may tell the gradient of all, that the minimum is
# found, and where predictions change.
ROWS_TOLD_BY_A_PART = 100_000
_MAX_ITER = 30
# A start from a part of the rows is as far from the minimum as the part is from the whole: there
# is no use in finding it more exactly.
_START_TOL, _START_ITER = 3e-3, 50
# Nanoseconds, measured on two cores: of a kernel entry, of a feature in it, and of memory for it
# (0.5 where memory is at hand, 9 on a virtual machine whose host must find it first).
_ENTRY, _FEATURE, _FRESH_ENTRY = 0.6, 0.02, 5.0
_LATER_PASSES = 3
# Entries that are kept anyway: little to lose, much to win should there be many passes after all.
_SMALL_KERNEL = 10**8
# How much smaller than before a direction is to make the gradient, as far as the part can tell.
_EXACT = 0.03
# Steps that are made before all rows are asked, each to cut the gradient foreseen to so much.
_MOST_STEPS, _PAYS = 4, 0.5
# Pairs of steps and changes of gradient that are remembered, if they show curvature at all.
_MOST_PAIRS, _CURVED = 10, 1e-10


class Foreseen(NamedTuple):
    """An estimated evaluation, the standard error of its gradient, and what the witnesses saw."""

    at: Evaluation
    error: float
    here: list[Evaluation]  # of each witness at the point that is known
    passes: float


class Witnesses(NamedTuple):
    """The same problem on two parts of the rows; `share` of all rows are in both together."""

    problems: tuple[RankingProblem, RankingProblem]
    share: float

    @classmethod
    def of(cls, problem: RankingProblem, stride: int) -> Self | None:
        """Witnesses half-way between the runs of the part that takes every `stride`-th one.

        None where they would cost much of a pass, or one would have no rows that count.
        """
        if stride < _LEAST_WITNESS_STRIDE:
            return None
        first = stride // 2
        one, other = (
            replace(problem.on_part(2 * stride, k, keeps_arrays=False), slot=None)
            for k in (first, first + stride)
        )
        if not (one.factor > 0.0 and other.factor > 0.0):
            return None
        return cls((one, other), (one.rows.n_rows + other.rows.n_rows) / problem.rows.n_rows)

    def with_lam(self, lam: float, asked: float) -> Self:
        """The same with another lam, where passes of the share `asked` of the rows are counted."""
        one, other = self.problems
        return type(self)((replace(one, lam=lam), replace(other, lam=lam)), self.share / asked)

    def foresee(
        self, at: Evaluation, w: np.ndarray, here: list[Evaluation] | None = None
    ) -> Solver[Foreseen]:
        """The evaluation at w, from that at a point near; `here` is what was seen there before."""
        asked = [ValueQuestion(problem, w) for problem in self.problems]
        if here is None:
            asked += [ValueQuestion(problem, at.w) for problem in self.problems]
        answers = yield tuple(asked)
        there, here = answers[:2], here or answers[2:]
        changes = [b.gradient - a.gradient for a, b in zip(here, there, strict=True)]
        value = sum(b.value - a.value for a, b in zip(here, there, strict=True)) / 2
        foreseen = there[0]._replace(
            value=at.value + value, gradient=at.gradient + (changes[0] + changes[1]) / 2
        )
        return Foreseen(foreseen, _error(changes), here, self.share * len(asked) / 2)


def part_stride(n_rows: int, n_landmarks: int) -> int | None:
    """Stride of the runs that make a good part; None when it would be most of the rows."""
    good = n_rows // max(_LEAST_ROWS, _ROWS_A_LANDMARK * n_landmarks)
    most = n_rows // max(_LEAST_ROWS, _LEAST_ROWS_A_LANDMARK * n_landmarks)
    return max(good, _LEAST_STRIDE) if most >= _LEAST_STRIDE else None


def enough_stride(problem: RankingProblem, stride: int, at: Evaluation) -> int:
    r"""Largest stride, a power of two, whose sampling error stays below that of the rare rows.

    The standard error of the gradient is, of either class, half the difference that two halves of
    its rows make, on the part S of every `stride`-th run: :math:`s_P` of the rare rows, :math:`s_S`
    of the majority. With every k-th run of n rows the majority's is :math:`s_S \sqrt{|S| k / n}`; k
    is the largest at which that is a quarter of :math:`s_P`: more rows would cut the error of both
    classes by 3 % at most. But k leaves `ROWS_TOLD_BY_A_PART` rows, and five times those of the
    part.

    Cost: two passes of the part.
    """
    # Shuffled: kinds of rare rows may alternate.
    counts = np.random.default_rng(0).permutation(np.flatnonzero(problem.rare_weight > 0.0))
    if len(counts) < 2 or stride < 2 * _LEAST_STRIDE:
        return 1
    part = replace(problem.on_part(stride), slot=None)
    rare = [_with_rare(part, counts[first::2]) for first in (0, 1)]
    majority = [
        replace(problem.on_part(2 * stride, k, keeps_arrays=False), slot=None) for k in (0, stride)
    ]
    if not all(half.factor > 0.0 for half in majority):
        return 1
    of_rare, of_majority = (
        _error([each.gradient for each in answer([ValueQuestion(half, at.w) for half in halves])])
        for halves in (rare, majority)
    )
    n_part, n_rows = part.rows.n_rows, problem.rows.n_rows
    most = min(stride / _LEAST_STRIDE, n_rows / ROWS_TOLD_BY_A_PART)
    if of_majority > 0.0:
        most = min(most, (_SMALL_RELATIVE_TO_RARE * of_rare / of_majority) ** 2 * n_rows / n_part)
    return 2 ** int(np.log2(max(most, 1.0)))


def _with_rare(problem: RankingProblem, rows: np.ndarray) -> RankingProblem:
    """The problem with some rare rows, which stand for all."""
    weight = np.zeros_like(problem.rare_weight)
    weight[rows] = problem.rare_weight[rows]
    return replace(problem, rare_weight=weight * (problem.rare_weight.sum() / weight.sum()))


def _error(halves: Sequence[np.ndarray]) -> float:
    """Standard error of the mean of what two halves of the rows tell."""
    return float(np.linalg.norm(halves[0] - halves[1])) / 2


def kernel_is_worth_keeping(n_rows: int, n_landmarks: int, n_features: int, several: bool) -> bool:
    """True where the kernel of all rows is read often enough to be kept between passes.

    One lam on many rows is solved in four passes or fewer. `several`: more solutions are wanted
    than one pass serves, or solvers that need many.
    """
    few_passes = part_stride(n_rows, n_landmarks) is not None and not several
    is_small = n_rows * n_landmarks < _SMALL_KERNEL
    return (
        not few_passes
        or is_small
        or _LATER_PASSES * (_ENTRY + _FEATURE * n_features) > _FRESH_ENTRY
    )


@dataclass(eq=False)
class PartDirection:
    r"""A direction from the same problem on a part of the rows.

    At w the part's objective :math:`F_S` is tilted so that its gradient is that of the whole,
    and then minimised (DANE: Shamir, Srebro, Zhang, ICML 2014):

    .. math:: p = \arg\min_u F_S(u) + (\nabla F(w) - \nabla F_S(w))' u \; - \; w .

    That is a Newton step with the part's curvature, but the curvature is followed as pairs enter
    and leave the quadratic part of the loss. :math:`F_S` is convex, so p is a direction of descent
    for F; near the minimum each step multiplies the gradient by about
    :math:`2 \sqrt{\mathrm{rank} / |S|}`.

    The part has the lam of the whole; `share` of the rows are in it; `inverse` is a preconditioner
    for it. With `witnesses`, which foresee where a step leads, further steps are made from there.
    """

    part: RankingProblem
    share: float
    inverse: Preconditioner | None = None
    witnesses: Witnesses | None = None
    _last: Evaluation | None = field(default=None, init=False)
    _pairs: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list, init=False)

    def __call__(self, at: Evaluation, optimality: float, tol: float) -> Solver[Direction]:
        """The direction from a point."""
        norm = float(np.linalg.norm(at.gradient))
        wanted = max(_EXACT, 0.5 * tol / optimality) * norm
        return (yield from self.towards(at, wanted, tol * norm / optimality))

    def towards(self, at: Evaluation, wanted: float, goal: float) -> Solver[Direction]:
        """The direction to a gradient of norm `wanted`, as far as the part's curvature can tell.

        At the norm `goal` the minimum is found.
        """
        step, cost = yield from self._step(at, wanted)
        if self.witnesses is None:
            return Direction(step, cost)
        end, before, here = at.w + step, np.inf, None
        for _ in range(_MOST_STEPS):
            estimate = yield from self.witnesses.foresee(at, end, here)
            here, cost = estimate.here, cost + estimate.passes
            norm = float(np.linalg.norm(estimate.at.gradient))
            if norm + estimate.error <= goal:
                return Direction(end - at.w, cost, foreseen=estimate.at)
            if norm > _PAYS * before or norm <= estimate.error:
                break
            before = norm
            step, of_step = yield from self._step(estimate.at, max(wanted, 0.5 * goal))
            end, cost = end + step, cost + of_step
        return Direction(end - at.w, cost)

    def _step(self, at: Evaluation, wanted: float) -> Solver[tuple[np.ndarray, float]]:
        """A step from a point, and what it cost in passes of the whole."""
        if self._last is not None:
            pair = at.w - self._last.w, at.gradient - self._last.gradient
            if pair[0] @ pair[1] > _CURVED * np.linalg.norm(pair[0]) * np.linalg.norm(pair[1]):
                self._pairs = [*self._pairs[1 - _MOST_PAIRS :], pair]
        self._last = at
        q, shares = at.gradient, []
        for s, y in reversed(self._pairs):
            shares.append((s @ q) / (s @ y))
            q = q - shares[-1] * y
        step, passes = yield from self._minimum(at, q, wanted)
        for (s, y), share in zip(self._pairs, reversed(shares), strict=True):
            step -= s * (share + (y @ step) / (s @ y))
        return step, passes * self.share

    def _minimum(
        self, at: Evaluation, gradient: np.ndarray, wanted: float
    ) -> Solver[tuple[np.ndarray, float]]:
        """The step to the part's minimum when tilted to have `gradient` at a point, and passes."""
        here = yield ValueQuestion(self.part, at.w)
        tilt = gradient - here.gradient
        problem = replace(self.part, tilt=tilt)
        start = here._replace(value=here.value + float(tilt @ at.w), gradient=gradient)
        norm = float(np.linalg.norm(gradient))
        run = PathSettings(wanted / norm if norm > 0.0 else 1.0, _MAX_ITER)
        newton = NewtonDirections(problem, SampledHessian(problem), self.inverse)
        solution = yield from minimize(Objective(problem), start, norm, run, [newton])
        self.inverse = newton.inverse
        return solution.at.w - at.w, 1.0 + solution.passes


class PartEnds:
    """The path on a part of the rows, walked as its solutions are asked for; other rows foresee."""

    def __init__(self, problem: RankingProblem, stride: int, foresees: bool) -> None:
        self.problem, self._stride, self._foresees = problem, stride, foresees
        self.part = replace(problem.on_part(stride), slot=-1)
        self.witnesses = Witnesses.of(problem, stride) if foresees else None
        self.share = self.part.rows.n_rows / problem.rows.n_rows
        self._at = self.part.evaluate(np.zeros(problem.rank))
        # What optimality is measured by is the part's: a question less to all of the rows.
        self.reference = reference_norm(self.part, self._at)
        self._lam = self.part.lam
        self.inverse: Preconditioner | None = None  # built last

    def enough(self, at: Evaluation) -> RankingProblem:
        """The problem on as many rows as tell its gradient as well as the rare rows do."""
        stride = enough_stride(self.problem, self._stride, at) if self._foresees else 1
        return self.problem if stride == 1 else self.problem.on_part(stride, keeps_arrays=False)

    def next(self, lam: float) -> Solution:
        """The solution for the next smaller lam."""
        problem = replace(self.part, lam=lam)
        start, run = self._at.regularised(lam - self._lam), PathSettings(_START_TOL, _START_ITER)
        newton = NewtonDirections(problem, SampledHessian(problem), self.inverse)
        solution = solve(minimize(Objective(problem), start, self.reference, run, [newton]))
        self._at, self._lam, self.inverse = solution.at, lam, newton.inverse
        return solution


def minimize_from_part(
    ends: PartEnds, k: int, lam: float, run: PathSettings, slot: int
) -> PathSolver:
    """One lam from the solution on a part of the rows."""
    solution = ends.next(lam)
    # All that is asked of these rows is values, unless the part proves to be no help.
    problem = replace(ends.enough(solution.at), lam=lam, slot=None)
    asked = problem.rows.n_rows / ends.problem.rows.n_rows  # passes are of all rows
    part = replace(ends.part, lam=lam, slot=slot)
    share = ends.share / asked
    witnesses = ends.witnesses and ends.witnesses.with_lam(lam, asked)
    ways: list[Directions] = [
        PartDirection(part, share, ends.inverse, witnesses),
        NewtonDirections(problem, SampledHessian(problem, part), ends.inverse),
    ]
    passes = 1.0 + share * solution.passes
    at = yield ValueQuestion(problem, solution.at.w)
    solution = yield from minimize(Objective(problem), at, ends.reference, run, ways, passes)
    run.done()
    history = [step._replace(passes=step.passes * asked) for step in solution.history]
    priced = solution._replace(passes=solution.passes * asked, history=history)
    return [(k, priced.lightened())]
