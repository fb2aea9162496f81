"""From prepared rows to learned machines: solutions, thresholds and what the solver has to tell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.findings import Status, warn
from rareclass.kernels.expansion import Coordinates, whiten
from rareclass.kernels.kernels import Matrix
from rareclass.machine import blas_threads
from rareclass.progress import track
from rareclass.ranking.preparation import Prepared, coefficients_of
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.ranking.solvers.path import (
    Starts,
    default_lams,
    solve_paths,
    sparse_starts,
    unit_norm,
)
from rareclass.ranking.solvers.proximal_newton import duality_gap

PAPER_LAMS = tuple(2.0 ** np.arange(10, -21, -2))
# Rounding error that stops the solver below this optimality is nobody's concern.
ROUNDING_TOL = 1e-5
# What tol="auto" comes to: beyond so many summed rows, where a pass is dear, the minimum is found
# to well within what the rare rows' being a sample moves it by (docs/decisions/0040).
_EXACT_TOL, _MANY_ROWS, _TOL_OF_MANY_ROWS = 1e-6, 20_000, 1e-3
# Beyond so many, a part of the rows may tell that it is found, and where predictions change.
_ROWS_TOLD_BY_A_PART = 100_000
# How far each of several lams goes on from where it starts, however loose the tolerance.
_CUT = 0.3
# Held-out scores of models of a part of the rows say which is best long before they settle.
_TOL_OF_A_PART = 1e-2


@dataclass(frozen=True)
class Penalty:
    """What depends on the penalty: who solves the problem, and what a model keeps."""

    coordinates: Coordinates  # makes the matrix from unknowns to coefficients
    starts: Starts | None  # makes its solvers, for `solve_paths`
    # makes a grid of lams for problems on all rows that differ in the loss, from their makers
    lams: Callable[[Sequence[Callable[[], RankingProblem]]], tuple[float, ...]]
    drops_landmarks: bool  # whether coefficients are zero, and their landmarks no part of the model


PENALTIES: dict[str, Penalty] = {
    "l2": Penalty(whiten, None, lambda makers: PAPER_LAMS, False),
    "l1": Penalty(unit_norm, sparse_starts, default_lams, True),
}


@dataclass(frozen=True)
class SolverSettings:
    """What is asked of the solver, as `RankRC` has it."""

    penalty: str
    tol: float | str
    max_iter: int
    verbose: bool | str

    def tol_for(self, prepared: Prepared, is_part: bool = False) -> float:
        """`tol` as a number, for a problem on these rows; `is_part`: they only choose."""
        if not isinstance(self.tol, str):
            return self.tol
        if is_part and self.penalty == "l2":
            return _TOL_OF_A_PART
        # With "l1" a violation that is small beside lambda_max need not be small beside lam.
        many = self.penalty == "l2" and len(prepared.labels.majority) > _MANY_ROWS
        return _TOL_OF_MANY_ROWS if many else _EXACT_TOL

    def cut(self, tol: float) -> float:
        """How much smaller than where it starts each of several lams makes the gradient.

        With a loose "auto" it would else have the solution of another.
        """
        return _CUT if isinstance(self.tol, str) and tol > ROUNDING_TOL else np.inf

    def foresees(self, prepared: Prepared) -> bool:
        """Whether parts of the rows may stand for all once these have been asked."""
        is_auto = isinstance(self.tol, str) and self.penalty == "l2"
        return is_auto and len(prepared.labels.majority) > _ROWS_TOLD_BY_A_PART


class LearnedMachine(NamedTuple):
    """What is learned for one lam; `threshold` is the target's."""

    landmarks: Matrix
    landmark_rows: np.ndarray | None
    coef: np.ndarray
    whitener: np.ndarray
    threshold: Any
    duality_gap: float | None
    solution: Solution


def fit_path(
    prepared: Prepared, lams: Sequence[float], settings: SolverSettings, name: str
) -> list[LearnedMachine]:
    """Solve for each lam on prepared rows, and warn where a solver stopped short."""
    penalty = PENALTIES[settings.penalty]
    title = f"{name}, {len(prepared.labels.rare)} {prepared.target.rows_held}"
    with blas_threads(1), track(title, None, settings.verbose) as advance:

        def report(_: int, lam: float, step: Step) -> None:
            note = f"lam {lam:.3g}, iteration {step.iteration}, optimality {step.optimality:.1e}"
            advance(1, f"{note}, {step.in_memory:.0%} of the kernel in memory")

        problem = prepared.problem(1.0, coordinates=penalty.coordinates)
        foresees = settings.foresees(prepared)
        problem = replace(problem, keeps_values=len(lams) == 1 and not foresees)
        (solutions,) = solve_paths(
            [lambda: problem],
            lams,
            settings.tol_for(prepared),
            settings.max_iter,
            prepared.at_once,
            report,
            starts=penalty.starts,
            cut=settings.cut(settings.tol_for(prepared)) if len(lams) > 1 else np.inf,
            foresees=foresees,
        )
        return learned_machines(prepared, problem, lams, solutions, settings)


def learned_machines(
    prepared: Prepared,
    problem: RankingProblem,
    lams: Sequence[float],
    solutions: Sequence[Solution],
    settings: SolverSettings,
) -> list[LearnedMachine]:
    """Machines from the solutions of a problem on all rows, one for each."""
    thresholds = training_thresholds(prepared, solutions, settings.foresees(prepared))
    machines = []
    for lam, solution, threshold in zip(lams, solutions, thresholds, strict=True):
        machine = LearnedMachine(
            prepared.landmarks.points,
            prepared.landmarks.first_rows,
            solution.at.coefficients,
            problem.whitener,
            threshold,
            None,
            solution,
        )
        if PENALTIES[settings.penalty].drops_landmarks:
            machine = _without_unused(machine, prepared, problem, lam)
        machines.append(machine)
        warn_if_short(solution, lam, settings.tol_for(prepared))
    return machines


def training_thresholds(
    prepared: Prepared, solutions: Sequence[Solution], on_part: bool
) -> list[Any]:
    """The target's threshold for each solution on the training rows, or the solvers' part of them.

    As many solutions share a pass as have room for their scores in a part of the memory.
    """
    if on_part:
        scored = prepared.scored_part(coefficients_of(solutions))
        return [prepared.target.threshold(scored.column(k)) for k in range(len(solutions))]
    thresholds = []
    for start in range(0, len(solutions), prepared.columns_at_once):
        some = solutions[start : start + prepared.columns_at_once]
        token = some[0].at.token if len(solutions) == 1 else None
        scored = prepared.scored(coefficients_of(some), token)
        thresholds += [prepared.target.threshold(scored.column(k)) for k in range(len(some))]
    return thresholds


def _without_unused(
    machine: LearnedMachine, prepared: Prepared, problem: RankingProblem, lam: float
) -> LearnedMachine:
    """Only the landmarks that are in use."""
    at, used = machine.solution.at, np.flatnonzero(machine.coef)
    if not len(used):
        warn(
            f"lam={lam:.3g} leaves no landmark, and every row gets the score 0. Lower it: the "
            f"first landmark comes in below {np.abs(at.gradient).max():.3g}."
        )
    rows = machine.landmark_rows
    return machine._replace(
        landmarks=machine.landmarks[used],
        landmark_rows=None if rows is None else rows[used],
        coef=machine.coef[used],
        whitener=whiten(prepared.landmark_kernel[np.ix_(used, used)], prepared.dtype),
        duality_gap=duality_gap(at, problem, lam),
    )


def stopped_short(solution: Solution, tol: float) -> bool:
    """Whether the solver stopped far from the minimum."""
    if solution.status is Status.CONVERGED:
        return False
    # Written so that an optimality that is not a number is short, too.
    near = solution.optimality <= max(tol, ROUNDING_TOL)
    return solution.status is Status.MAX_ITER or not near


def warn_if_short(solution: Solution, lam: float, tol: float) -> None:
    """Warn when the solver stopped far from the minimum."""
    if not stopped_short(solution, tol):
        return
    if solution.gap_goal is not None:
        told = (
            f"the two-way loss is within {solution.optimality:.2%} of a lower bound, wanted "
            f"{solution.gap_goal:.2%}. Raise lam or rare_share."
        )
    else:
        told = (
            f"{solution.status} after {solution.n_iter} iterations with optimality "
            f"{solution.optimality:.1e}, wanted {tol:.1e}. Raise max_iter, tol or lam, or check "
            "the scale of the features."
        )
    warn(f"lam={lam:.3g}: {told}", ConvergenceWarning)
