"""Sparse solutions along decreasing sequences of lams, for one problem or for many folds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rareclass.ranking.problem import Evaluation, RankingProblem
from rareclass.ranking.solvers.certificate import largest_lam
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.ranking.solvers.path import Path, Run
from rareclass.ranking.solvers.proximal_newton import Penalized, minimize
from rareclass.ranking.solvers.questions import Solver, answer
from rareclass.ranking.solvers.reweighting import reweighted

# Of the grid of lams: the ratio of neighbours, how many there are, and the exponents before them,
# where one landmark comes in after the other.
_RATIO, _N_LAMS = 2.0**-0.5, 32
_FIRST = 2.0 ** np.arange(-5, 0)

# From one lam to the next at most this factor at once: what is in use then changes by little.
_FACTOR = 8.0
# Lams on the way are solved to violations of this share of them.
_ON_THE_WAY = 0.1


def default_lams(problems: Sequence[Callable[[], RankingProblem]]) -> tuple[float, ...]:
    r"""Lams from one landmark or a few to most of them.

    They are :math:`\lambda_{\max} 2^{-k/2}` for k = 1, 2, ..., 32, and before them k = 1/32, 1/16,
    ..., 1/2. From :math:`\lambda_{\max}` on no landmark is used; it is known from one pass of the
    rows. For problems with several losses the grid begins at the largest one and ends at the
    smallest one's end.

    The problems are over the same rows, in the coordinates of `unit_norm`.
    """
    asked = [replace(make(), lam=0.0, slot=None) for make in problems]
    at_zero = answer([p.value_at(np.zeros(p.size)) for p in asked])
    largest = [
        largest_lam(at.gradient, np.arange(p.size) < p.rank)
        for p, at in zip(asked, at_zero, strict=True)
    ]
    # Where no landmark tells rare from other rows, any lam gives the same model.
    known = [lam for lam in largest if lam > 0.0] or [1.0]
    n_lams = _N_LAMS + int(np.ceil(np.log(max(known) / min(known)) / -np.log(_RATIO)))
    exponents = np.concatenate([_FIRST, np.arange(1, n_lams + 1)])
    return tuple((max(known) * _RATIO**exponents).tolist())


def starts(
    problem: RankingProblem, path: Path, run: Run
) -> Iterator[Callable[[int], Solver[None]]]:
    """The one solver of a penalised problem, for `path.solve_paths`.

    It goes from the largest useful lam down, each solution starting the next. Where the next lam is
    far below the last, it goes there by lams in between. The problem is in the coordinates of
    `unit_norm`; its tolerance is the largest violation of the conditions of the minimum, relative
    to the largest slope at w = 0.
    """
    yield partial(_walk, problem, path, run)


def _walk(problem: RankingProblem, path: Path, run: Run, slot: int) -> Solver[None]:
    """Every lam from the solution for the one before."""
    problem = replace(problem, lam=0.0, slot=slot)
    penalized = np.arange(problem.size) < problem.rank
    at: Evaluation = yield problem.value_at(np.zeros(problem.size))
    reference = float(np.abs(at.gradient).max(initial=0.0))
    last, passes = largest_lam(at.gradient, penalized), 1.0
    for k, lam in path:
        tell = partial(run.tell, lam)
        for between in _between(last, lam):
            objective = Penalized(problem, between, penalized)
            near = yield from minimize(
                objective, at, between, _ON_THE_WAY, run.max_iter, passes, tell
            )
            at, passes = _smooth_part(objective, near), near.passes
        objective = Penalized(problem, lam, penalized)
        solution = yield from minimize(
            objective, at, reference, run.tol, run.max_iter, passes, tell
        )
        at, passes, last = _smooth_part(objective, solution), 0.0, min(lam, last)

        def again(
            tangent: RankingProblem,
            start: Evaluation,
            _: Solution,
            lam: float = lam,
            tell: Callable[[Step], None] = tell,
        ) -> Solver[Solution]:
            convex = Penalized(tangent, lam, penalized)
            return minimize(convex, start, reference, run.tol, run.max_iter, 0.0, tell)

        run.keep(k, (yield from reweighted(problem, solution, again, objective.penalty)))


def _between(last: float, lam: float) -> list[float]:
    """Lams on the way from the last one to the next, at even ratios."""
    steps = int(np.ceil(np.log(last / lam) / np.log(_FACTOR))) if last > lam else 1
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
