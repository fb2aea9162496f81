"""Solutions along decreasing sequences of lams, for one problem or for the folds of many."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from rareclass.kernels.expansion import expand
from rareclass.ranking.problem import (
    Evaluation,
    LabellingProblem,
    Problem,
    RankingProblem,
    Solver,
    ValueQuestion,
    solve,
    solve_in_step,
)
from rareclass.ranking.solvers.cutting_planes import minimize_labellings
from rareclass.ranking.solvers.newton import (
    MOST_SAMPLED,
    Path,
    PathSettings,
    Preconditioner,
    SampledHessian,
    Solution,
    Step,
    minimize,
)
from rareclass.ranking.solvers.part import (
    PartDirection,
    Witnesses,
    enough_stride,
    part_stride,
)
from rareclass.ranking.solvers.proximal_newton import Penalized, largest_lam, minimize_penalized

Report = Callable[[int, float, Step], None]

# A start from a part of the rows is as far from the minimum as the part is from the whole: there
# is no use in finding it more exactly.
_START_TOL = 3e-3
_START_ITER = 50
# Cutting a gradient that is nearly zero stops here.
_LEAST_TOL = 1e-6

# Majority rows that a preconditioner is built from for a loose tolerance, which few of its steps
# reach: half of them are as good there, at half the time.
_LOOSE, _FEW_SAMPLED = 1e-2, 1500

# Rounding errors of a sum over pairs, in units of the last place of its terms.
_ROUNDING = 64.0
_SOME_ROWS = 256


Solutions = list[tuple[int, Solution]]
"""Solutions by the number of their lam."""
Starts = Callable[
    [RankingProblem, Path, PathSettings], Iterable[Callable[[int], Solver[Solutions]]]
]
"""Makes the solvers of a path of a problem, each of which is given a slot when its turn comes."""


def solve_paths(
    problems: Iterable[Callable[[], Problem]],
    lams: Sequence[float],
    settings: PathSettings,
    at_once: int = 1,
    report: Report | None = None,
    starts: Starts | None = None,
) -> list[list[Solution]]:
    """Minimise the objectives of several problems over the same rows, for every lam.

    Solvers run in step, so that one pass of the rows serves all of them (see `answer`). On few
    rows each problem is one solver: from the largest lam to the smallest, each solution starts
    the next. On many rows every lam is a solver of its own, which starts from the solution on a
    part of the rows; those are found along the path.

    Each of `problems` makes a problem when its turn comes, whose own lam is not used. The tolerance
    is relative to the gradient at w = 0 (which lam does not change; on many rows that of the part).
    At most `at_once` solvers run at the same time; each holds a matrix of rank x rank. `report` is
    called with (number of the problem, lam, Step) after every iteration. `starts` makes other
    solvers than these, such as `sparse_starts`. Solutions come by problem, in the order of `lams`.

    Problems of labellings have a solver of their own (`minimize_labellings`), whose passes are not
    shared.
    """
    order = [int(k) for k in np.argsort(-np.asarray(lams), kind="stable")]
    path = [(k, float(lams[k])) for k in order]
    numbers: list[int] = []  # of the problem of each solver
    found: dict[int, dict[int, Solution]] = {}

    def each() -> Iterator[Callable[[int], Solver[Solutions]]]:
        for number, make in enumerate(problems):
            tell = None if report is None else partial(report, number)
            run, problem = settings._replace(tell=tell), make()
            if isinstance(problem, LabellingProblem):
                found[number] = minimize_labellings(problem, path, run)
                continue
            for start in (starts or _starts)(problem, path, run):
                numbers.append(number)
                yield start

    for place, solutions in enumerate(solve_in_step(each(), at_once)):
        found.setdefault(numbers[place], {}).update(solutions)
    return [[found[number][k] for k in range(len(lams))] for number in sorted(found)]


def _starts(
    problem: RankingProblem, path: Path, run: PathSettings
) -> Iterator[Callable[[int], Solver[Solutions]]]:
    stride = part_stride(problem.rows.n_rows, problem.expansion.n_landmarks)
    # A fold may hold out every row of the part.
    if stride is None or not problem.on_part(stride).majority_weight.any():
        yield partial(_one_by_one, problem, path, run)
        return
    ends = _PartEnds(problem, stride, run.foresees)
    for k, lam in path:
        yield partial(_from_part, ends, k, lam, run)


def _minimize(
    run: PathSettings, problem: RankingProblem, start: Evaluation, reference: float, **more: Any
) -> Solver[Solution]:
    """The solver for one lam, with the tolerance of the path."""
    report = None if run.tell is None else partial(run.tell, problem.lam)
    norm = float(np.linalg.norm(start.gradient))
    tol = min(run.tol, run.cut * norm / reference) if norm > 0.0 < reference else run.tol
    tol = max(tol, min(run.tol, _LEAST_TOL))
    return minimize(problem, start, reference, tol, run.max_iter, report=report, **more)


def _one_by_one(
    problem: RankingProblem, path: Path, run: PathSettings, slot: int
) -> Solver[Solutions]:
    """Every lam from the solution for the one before."""
    problem, found = replace(problem, slot=slot), []
    start = yield ValueQuestion(problem, np.zeros(problem.rank))
    reference = reference_norm(problem, start)
    inverse, passes = None, 1.0
    n_sampled = _FEW_SAMPLED if run.tol >= _LOOSE else MOST_SAMPLED
    for k, lam in path:
        start = _shifted(problem, start, lam)
        problem = problem.with_lam(lam)
        solution = yield from _minimize(
            run,
            problem,
            start,
            reference,
            precondition=SampledHessian(problem, n_sampled=n_sampled),
            inverse=inverse,
            passes=passes,
        )
        found.append((k, solution.lightened()))
        run.done()
        start, inverse, passes = solution.at, solution.inverse, 0.0
    return found


def _from_part(
    ends: "_PartEnds", k: int, lam: float, run: PathSettings, slot: int
) -> Solver[Solutions]:
    """One lam from the solution on a part of the rows."""
    solution = ends.next(lam)
    # All that is asked of these rows is values, unless the part proves to be no help.
    problem = replace(ends.enough(solution.at), lam=lam, slot=None)
    asked = problem.rows.n_rows / ends.problem.rows.n_rows  # passes are of all rows
    part = replace(ends.part, lam=lam, slot=slot)
    share = ends.share / asked
    witnesses = ends.witnesses and ends.witnesses.with_lam(lam, asked)
    at = yield ValueQuestion(problem, solution.at.w)
    solution = yield from _minimize(
        run,
        problem,
        at,
        ends.reference,
        precondition=SampledHessian(problem, part),
        inverse=solution.inverse,
        shortcut=PartDirection(part, share, solution.inverse, witnesses),
        passes=1.0 + share * solution.passes,
    )
    run.done()
    return [(k, solution.lightened().at_price(asked))]


class _PartEnds:
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
        self._inverse: Preconditioner | None = None

    def enough(self, at: Evaluation) -> RankingProblem:
        """The problem on as many rows as tell its gradient as well as the rare rows do."""
        stride = enough_stride(self.problem, self._stride, at) if self._foresees else 1
        return self.problem if stride == 1 else self.problem.on_part(stride, keeps_arrays=False)

    def next(self, lam: float) -> Solution:
        """The solution for the next smaller lam."""
        problem = self.part.with_lam(lam)
        solution = solve(
            minimize(
                problem,
                _shifted(self.part.with_lam(self._lam), self._at, lam),
                self.reference,
                _START_TOL,
                _START_ITER,
                SampledHessian(problem),
                self._inverse,
            )
        )
        self._at, self._lam, self._inverse = solution.at, lam, solution.inverse
        return solution


def reference_norm(problem: RankingProblem, at_zero: Evaluation) -> float:
    """Norm of the gradient at w = 0; zero where that is rounding error of what it sums up.

    There is nothing to learn then, and w = 0 is the minimum.
    """
    norm = float(np.linalg.norm(at_zero.gradient))
    # The mean pull on the rare rows has about the norm of a row; the majority's balances it. Some
    # rows tell its size.
    some = problem.rare_kernel[:: max(1, len(problem.rare_kernel) // _SOME_ROWS)]
    features = expand(some, problem.whitener)
    of_a_row = float(np.sqrt((features * features).sum(axis=1).max(initial=0.0)))
    eps = float(np.finfo(problem.rare_kernel.dtype).eps)
    return norm if norm > _ROUNDING * eps * max(of_a_row, 1e-300) else 0.0


def _shifted(problem: RankingProblem, at: Evaluation, to: float) -> Evaluation:
    """An evaluation for another lam: only the regulariser changes, which needs no pass."""
    w, shift = at.w, to - problem.lam
    return at._replace(
        value=at.value + 0.5 * shift * float(w @ w), gradient=at.gradient + shift * w
    )


# Of the grid of lams: the ratio of neighbours, how many there are, and the exponents before them,
# where one landmark comes in after the other.
_RATIO, _N_LAMS = 2.0**-0.5, 32
_FIRST = 2.0 ** np.arange(-5, 0)

# From one lam to the next at most this factor at once: what is in use then changes by little.
_LARGEST_STEP = 8.0
# Lams on the way are solved to violations of this share of them.
_ON_THE_WAY = 0.1


def default_lams(make: Callable[[], Problem]) -> tuple[float, ...]:
    r"""Lams from one landmark or a few to most of them.

    They are :math:`\lambda_{\max} 2^{-k/2}` for k = 1, 2, ..., 32, and before them k = 1/32, 1/16,
    ..., 1/2. From :math:`\lambda_{\max}` on no landmark is used; it is known from one pass of the
    rows. `make` makes the problem, in the coordinates of `unit_norm`.
    """
    smooth = replace(cast(RankingProblem, make()), lam=0.0, slot=None)
    # Where no landmark tells rare from other rows, any lam gives the same model.
    largest = largest_lam(smooth.evaluate(np.zeros(smooth.rank)).gradient) or 1.0
    exponents = np.concatenate([_FIRST, np.arange(1, _N_LAMS + 1)])
    return tuple((largest * _RATIO**exponents).tolist())


def sparse_starts(
    problem: RankingProblem, path: Path, run: PathSettings
) -> Iterator[Callable[[int], Solver[Solutions]]]:
    """The one solver of a penalised problem, for `solve_paths`.

    The path begins at the largest useful lam, and each solution starts the next. Where the next lam
    is far below the last, lams in between lead there. The problem is in the coordinates of
    `unit_norm`; its tolerance is the largest violation of the conditions of the minimum, relative
    to the largest slope at w = 0.
    """
    yield partial(_walk, problem, path, run)


def _walk(problem: RankingProblem, path: Path, run: PathSettings, slot: int) -> Solver[Solutions]:
    """Every lam from the solution for the one before."""
    problem, found = replace(problem, lam=0.0, slot=slot), []
    at: Evaluation = yield ValueQuestion(problem, np.zeros(problem.rank))
    reference = float(np.abs(at.gradient).max(initial=0.0))
    last, passes = largest_lam(at.gradient), 1.0
    for k, lam in path:
        tell = None if run.tell is None else partial(run.tell, lam)
        for between in _between(last, lam):
            objective = Penalized(problem, between)
            near = yield from minimize_penalized(
                objective, at, between, _ON_THE_WAY, run.max_iter, passes, tell
            )
            at, passes = _smooth_part(objective, near), near.passes
        objective = Penalized(problem, lam)
        solution = yield from minimize_penalized(
            objective, at, reference, run.tol, run.max_iter, passes, tell
        )
        at, passes, last = _smooth_part(objective, solution), 0.0, min(lam, last)
        found.append((k, solution.lightened()))
        run.done()
    return found


def _between(last: float, lam: float) -> list[float]:
    """Lams on the way from the last one to the next, at even ratios."""
    steps = int(np.ceil(np.log(last / lam) / np.log(_LARGEST_STEP))) if last > lam else 1
    return [last * (lam / last) ** (k / steps) for k in range(1, steps)]


def _smooth_part(objective: Penalized, solution: Solution) -> Evaluation:
    """The solution's evaluation without the penalty."""
    at = solution.at
    return at._replace(value=at.value - objective.penalty(at.w))


def unit_norm(K: np.ndarray, dtype: np.dtype) -> np.ndarray:
    r"""A matrix T that makes the functions of all landmarks equally large.

    It is diagonal with :math:`T_{rr} = k(z_r, z_r)^{-1/2}`: :math:`k(z_r, \cdot)` has the norm
    :math:`k(z_r, z_r)^{1/2}` in the space of the kernel. With
    :math:`\beta = T w` an absolute weight :math:`|w_r|` is the norm of what landmark r adds to f,
    whatever its kernel's scale; for the Gaussian and Laplace kernels T is the identity.

    `K` is the kernel between the landmarks; T is zero where a landmark's function is zero. `dtype`
    is not used: these coordinates do not magnify rounding errors.
    """
    size = np.sqrt(np.maximum(np.diag(K), 0.0))
    return np.diag(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0))
