"""From prepared rows to fitted models: solutions, thresholds and what the solver has to tell."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.decide.threshold import threshold_between
from rareclass.kernels.whitening import whiten
from rareclass.metrics.scored_classes import ScoredClasses
from rareclass.progress import track
from rareclass.ranking.penalties import PENALTIES
from rareclass.ranking.preparation import Prepared
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.solvers.certificate import duality_gap
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.ranking.stability import outside_landmarks
from rareclass.solver_status import Status

if TYPE_CHECKING:
    from rareclass.ranking.rankrc import RankRC

# Rounding error that stops the solver below this optimality is nobody's concern.
ROUNDING_TOL = 1e-5


def fit_path(models: Sequence["RankRC"], prepared: Prepared, verbose: bool | str) -> None:
    """Fit models that differ in lam alone, on prepared rows."""
    penalty, lams = PENALTIES[models[0].penalty], [model.lam for model in models]
    title = f"RankRC, {len(prepared.labels.rare)} rare rows"
    with prepared.blas_threads(), track(title, None, verbose) as advance:

        def report(_: int, lam: float, step: Step) -> None:
            note = f"lam {lam:.3g}, iteration {step.iteration}, optimality {step.optimality:.1e}"
            advance(1, f"{note}, {step.in_memory:.0%} of the kernel in memory")

        problem = prepared.problem(1.0, coordinates=penalty.coordinates)
        problem = replace(problem, keeps_values=len(lams) == 1)
        (solutions,) = penalty.solve_paths(
            [lambda: problem], lams, models[0].tol, models[0].max_iter, prepared.at_once, report
        )
        store_solutions(models, prepared, problem, solutions)


def store_solutions(
    models: Sequence["RankRC"],
    prepared: Prepared,
    problem: RankingProblem,
    solutions: Sequence[Solution],
) -> None:
    """Make fitted models of the solutions of a problem on all rows, one for each."""
    offsets = training_thresholds(prepared, solutions)
    for model, solution, offset in zip(models, solutions, offsets, strict=True):
        model.offset_ = offset
        _store(model, prepared, solution)
        if PENALTIES[model.penalty].drops_landmarks:
            _drop_landmarks(model, prepared, problem, solution)
        else:
            model.whitener_ = problem.whitener
            model.__dict__.pop("duality_gap_", None)  # of a fit with another penalty
        warn_if_short(solution, model.lam, model.tol)


def training_thresholds(prepared: Prepared, solutions: Sequence[Solution]) -> list[float]:
    """The threshold of best balanced accuracy of each solution on the training rows.

    As many solutions share a pass as have room for their scores in a part of the memory.
    """
    labels = prepared.labels
    thresholds = []
    for start in range(0, len(solutions), prepared.columns_at_once):
        some = solutions[start : start + prepared.columns_at_once]
        coefficients = np.column_stack([solution.at.coefficients for solution in some])
        token = some[0].at.token if len(solutions) == 1 else None
        rare, majority = prepared.training_scores(coefficients, token)
        for k in range(len(some)):
            weighted = labels.majority_weight is not None
            split = ScoredClasses(
                rare[:, k],
                majority[:, k],
                labels.rare_weight if weighted else None,
                labels.majority_weight,
            )
            thresholds.append(threshold_between(split))
    return thresholds


def _store(model: "RankRC", prepared: Prepared, solution: Solution) -> None:
    model.classes_ = prepared.labels.classes
    model.pos_label_ = prepared.labels.pos_label
    model.landmarks_ = prepared.landmarks.points
    model.landmark_rows_ = prepared.landmarks.first_rows
    model._outside = outside_landmarks(prepared)
    model.coef_ = solution.at.coefficients
    model.n_landmarks_ = int(np.count_nonzero(model.coef_))
    model.width_ = prepared.width
    model.feature_scales_ = prepared.scales
    model.objective_ = solution.at.value
    model.optimality_ = solution.optimality
    model.n_iter_ = solution.n_iter
    model.status_ = str(solution.status)
    model.history_ = solution.history


def _drop_landmarks(
    model: "RankRC", prepared: Prepared, problem: RankingProblem, solution: Solution
) -> None:
    """Keep only the landmarks that are in use."""
    used = np.flatnonzero(model.coef_)
    model.landmarks_ = model.landmarks_[used]
    model.coef_ = model.coef_[used]
    if model.landmark_rows_ is not None:
        model.landmark_rows_ = model.landmark_rows_[used]
    model.whitener_ = whiten(prepared.landmark_kernel[np.ix_(used, used)], prepared.dtype)
    model.duality_gap_ = duality_gap(solution.at, problem, model.lam)
    if not len(used):
        warnings.warn(
            f"lam={model.lam:.3g} leaves no landmark, and every row gets the score 0. Lower it: "
            f"the first landmark comes in below {np.abs(solution.at.gradient).max():.3g}.",
            UserWarning,
            stacklevel=4,
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
    warnings.warn(f"lam={lam:.3g}: {told}", ConvergenceWarning, stacklevel=3)
