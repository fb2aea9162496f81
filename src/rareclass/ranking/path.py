"""Solutions along a decreasing sequence of lams, each started from the one before."""

from collections.abc import Callable, Sequence

import numpy as np

from rareclass.ranking.newton import Solution, Step, minimize
from rareclass.ranking.preconditioner import SampledHessian
from rareclass.ranking.problem import RankingProblem

Report = Callable[[float, Step], None]


def solve_path(
    problem: RankingProblem,
    lams: Sequence[float],
    tol: float,
    max_iter: int,
    report: Report | None = None,
) -> list[Solution]:
    r"""Minimise the objective for every lam, from the largest to the smallest.

    Large lams are easy and their solutions are near zero; each solution starts the next one.

    Parameters
    ----------
    problem : RankingProblem
        Its own lam is not used.
    lams : sequence of float
        In any order, all above 0.
    tol : float
        Wanted gradient norm, relative to the gradient norm at w = 0 (which lam does not change).
    max_iter : int
        Most Newton iterations for each lam.
    report : callable or None
        Called with (lam, Step) after every Newton iteration.

    Returns
    -------
    list of Solution
        In the order of `lams`.
    """
    solutions: list[Solution | None] = [None] * len(lams)
    start = problem.evaluate(np.zeros(problem.size))
    reference = float(np.linalg.norm(start.gradient))
    at_lam, inverse = 0.0, None
    for k in np.argsort(-np.asarray(lams), kind="stable"):
        lam = float(lams[k])
        # Only the regulariser changes with lam: no pass is needed to move the start.
        shift = lam - at_lam if start.w.any() else 0.0
        start = start._replace(
            value=start.value + 0.5 * shift * float(start.w @ start.w),
            gradient=start.gradient + shift * start.w,
        )

        def tell(step: Step, lam: float = lam) -> None:
            if report is not None:
                report(lam, step)

        at_this = problem.with_lam(lam)
        solution = minimize(
            at_this, start, reference, tol, max_iter, SampledHessian(at_this), inverse, tell
        )
        solutions[k], start, at_lam, inverse = solution, solution.at, lam, solution.inverse
    return [solution for solution in solutions if solution is not None]
