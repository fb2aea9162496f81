"""Learned machines of prepared rows: solutions along paths of lams, thresholds, warnings.

1. `solve_paths` picks the solvers, which run in step and share passes of the rows: Newton's
   (`solvers.newton`), on many rows by steps on a part (`solvers.part`), with the penalty "l1"
   proximal (`solvers.proximal_newton`), or cutting planes (`solvers.cutting_planes`).
2. `fit_path` makes machines of all rows from their solutions, `cross_fit` those of folds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.estimators.search import Fold
from rareclass.findings import Status, warn
from rareclass.kernels.expansion import Coordinates, KernelExpansion, whiten
from rareclass.kernels.kernels import Matrix
from rareclass.machine import track
from rareclass.ranking.losses import LabellingLoss, make_loss
from rareclass.ranking.problem import RankingProblem, ValueQuestion, solve_in_step
from rareclass.ranking.ranking_data import (
    KernelSettings,
    PreparedRanking,
    RankingData,
    coefficients_of,
    prepare,
    width_of_rows,
)
from rareclass.ranking.solvers.cutting_planes import minimize_labellings
from rareclass.ranking.solvers.newton import (
    MOST_SAMPLED,
    NewtonDirections,
    Objective,
    Path,
    PathSettings,
    PathSolver,
    SampledHessian,
    Solution,
    Step,
    minimize,
    reference_norm,
)
from rareclass.ranking.solvers.part import (
    ROWS_TOLD_BY_A_PART,
    PartEnds,
    minimize_from_part,
    part_stride,
)
from rareclass.ranking.solvers.proximal_newton import duality_gap, minimize_sparse, unit_norm
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import RowSource

PAPER_LAMS = tuple(2.0 ** np.arange(10, -21, -2))
# Below this optimality, do not warn when rounding stops the solver.
ROUNDING_TOL = 1e-5
# What tol="auto" comes to: beyond so many summed rows, where a pass is dear, the minimum is found
# to well within what the rare rows' being a sample moves it by (docs/decisions/0009).
_EXACT_TOL, _MANY_ROWS, _TOL_OF_MANY_ROWS = 1e-6, 20_000, 1e-3
# What it comes to for losses of labellings: the gap of SVM-Perf.
_GAP = 1e-3
# Majority rows that a preconditioner is built from for a loose tolerance, which few of its steps
# reach: half of them are as good there, at half the time.
_LOOSE, _FEW_SAMPLED = 1e-2, 1500
# How far each of several lams goes on from where it starts, however loose the tolerance.
_CUT = 0.3
# Held-out scores of models of a part of the rows say which is best long before they settle.
_TOL_OF_A_PART = 1e-2
# Of `cross_fit`: held-out scores change in the second digit where a tighter one is asked for, and
# the ranking of members by them does not (docs/decisions/0066).
_CROSS_FIT_TOL, _CROSS_FIT_MAX_ITER = 1e-2, 60
_CROSS_FIT_LOSS, _CROSS_FIT_EPS = "smoothed_hinge", 0.5


PENALTIES: dict[str, Coordinates] = {"l2": whiten, "l1": unit_norm}
"""Coordinates that a problem with each penalty is solved in."""


@dataclass(eq=False, repr=False, kw_only=True)
class MachineParameters:
    """Parameters that a kernel machine and a search over its lams share; see `RankRC`."""

    loss: Any = "smoothed_hinge"
    eps: float = 0.5
    loss_params: dict[str, Any] | None = None
    penalty: str = "l2"
    feature_scaling: str | None = None
    tol: float | str = "auto"
    max_iter: int = 200
    memory: int | str = "2GiB"
    kernel_dtype: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: bool | str = "auto"


def accuracy_of(
    parameters: MachineParameters, prepared: PreparedRanking, is_part: bool = False
) -> PathSettings:
    """Accuracy that `tol` means for a problem on these rows; `is_part`: they only choose."""
    tol, max_iter = parameters.tol, parameters.max_iter
    if not isinstance(tol, str):
        return PathSettings(tol, max_iter, gap=tol)
    if parameters.penalty != "l2":
        # A violation that is small relative to lambda_max may be large relative to lam.
        return PathSettings(_EXACT_TOL, max_iter, gap=_GAP)
    n_rows = len(prepared.data.target.labels.majority)
    auto = _TOL_OF_MANY_ROWS if n_rows > _MANY_ROWS else _EXACT_TOL
    auto = _TOL_OF_A_PART if is_part else auto
    cut = _CUT if auto > ROUNDING_TOL else np.inf
    foresees = n_rows > ROWS_TOLD_BY_A_PART
    return PathSettings(auto, max_iter, cut, foresees, max(auto, _GAP))


def solve_paths(
    problems: Iterable[Callable[[], RankingProblem]],
    lams: Sequence[float],
    settings: PathSettings,
    at_once: int = 1,
    report: Callable[[int, float, Step], None] | None = None,
    penalty: str = "l2",
) -> list[list[Solution]]:
    """Minimise the objectives of several problems over the same rows, for every lam.

    Solvers run in step, so that one pass of the rows serves all of them (see `answer`). On few
    rows each problem is one solver: from the largest lam to the smallest, each solution starts
    the next. On many rows every lam is a solver of its own, which starts from the solution on a
    part of the rows. Problems of labellings have a solver that shares no pass.

    Each of `problems` makes a problem when its turn comes, whose own lam is not used. The tolerance
    is relative to the gradient at w = 0. At most `at_once` solvers run at the same time; each holds
    a matrix of rank x rank. `report` is called with (number of the problem, lam, Step) after every
    iteration. Solutions come by problem, in the order of `lams`.
    """
    order = np.argsort(-np.asarray(lams), kind="stable")
    path = [(int(k), float(lams[k])) for k in order]
    found: dict[int, dict[int, Solution]] = {}
    numbers: list[int] = []  # of the problem of each solver

    def solvers() -> Iterator[Callable[[int], PathSolver]]:
        for number, make in enumerate(problems):
            tell = None if report is None else partial(report, number)
            run, problem = settings._replace(tell=tell), make()
            if isinstance(problem.loss, LabellingLoss):
                found[number] = minimize_labellings(problem, path, run)
                continue
            for solver in _solvers(problem, path, run, penalty):
                numbers.append(number)
                yield solver

    for number, solutions in zip(numbers, solve_in_step(solvers(), at_once), strict=True):
        found.setdefault(number, {}).update(solutions)
    return [[found[number][k] for k in range(len(lams))] for number in sorted(found)]


def _solvers(
    problem: RankingProblem, path: Path, run: PathSettings, penalty: str
) -> list[Callable[[int], PathSolver]]:
    """Solvers of a path, each of which is given a slot when its turn comes."""
    if penalty == "l1":
        return [partial(minimize_sparse, problem, path, run)]
    stride = part_stride(problem.rows.n_rows, problem.expansion.n_landmarks)
    # A fold may hold out every row of the part.
    if stride is None or not problem.on_part(stride).majority_weight.any():
        return [partial(_one_by_one, problem, path, run)]
    ends = PartEnds(problem, stride, run.foresees)
    return [partial(minimize_from_part, ends, k, lam, run) for k, lam in path]


def _one_by_one(problem: RankingProblem, path: Path, run: PathSettings, slot: int) -> PathSolver:
    """Every lam from the solution for the one before."""
    problem, found = replace(problem, slot=slot), []
    start = yield ValueQuestion(problem, np.zeros(problem.rank))
    reference = reference_norm(problem, start)
    inverse, passes = None, 1.0
    n_sampled = _FEW_SAMPLED if run.tol >= _LOOSE else MOST_SAMPLED
    for k, lam in path:
        start = start.regularised(lam - problem.lam)
        problem = replace(problem, lam=lam)
        newton = NewtonDirections(problem, SampledHessian(problem, n_sampled=n_sampled), inverse)
        objective = Objective(problem)
        solution = yield from minimize(objective, start, reference, run, [newton], passes)
        found.append((k, solution.lightened()))
        run.done()
        start, inverse, passes = solution.at, newton.inverse, 0.0
    return found


class LearnedMachine(NamedTuple):
    """Machine learned for one lam; `threshold` is the target's."""

    landmarks: Matrix
    landmark_rows: np.ndarray | None
    coef: np.ndarray
    whitener: np.ndarray
    threshold: Any
    duality_gap: float | None
    solution: Solution


def fit_path(
    prepared: PreparedRanking, lams: Sequence[float], machine: MachineParameters
) -> list[LearnedMachine]:
    """Solve for each lam on prepared rows, and warn where a solver stopped short."""
    accuracy, coordinates = accuracy_of(machine, prepared), PENALTIES[machine.penalty]
    target = prepared.data.target
    title = f"{type(machine).__name__}, {len(target.labels.rare)} {target.rows_held}"
    with track(title, None, machine.verbose) as advance:

        def report(_: int, lam: float, step: Step) -> None:
            note = f"lam {lam:.3g}, iteration {step.iteration}, optimality {step.optimality:.1e}"
            advance(1, f"{note}, {step.in_memory:.0%} of the kernel in memory")

        problem = prepared.problem(1.0, coordinates=coordinates)
        problem = replace(problem, keeps_values=len(lams) == 1 and not accuracy.foresees)
        path = accuracy if len(lams) > 1 else accuracy._replace(cut=np.inf)
        (solutions,) = solve_paths(
            [lambda: problem], lams, path, prepared.at_once, report, machine.penalty
        )
        return learned_machines(prepared, problem, lams, solutions, machine)


def learned_machines(
    prepared: PreparedRanking,
    problem: RankingProblem,
    lams: Sequence[float],
    solutions: Sequence[Solution],
    parameters: MachineParameters,
) -> list[LearnedMachine]:
    """Machines from the solutions of a problem on all rows, one for each.

    Their thresholds are the target's on the training rows, or on the solvers' part of them. As many
    solutions share a pass as have room for their scores in a part of the memory.
    """
    accuracy, machines, loss = accuracy_of(parameters, prepared), [], prepared.loss
    is_labelling = isinstance(loss, LabellingLoss)
    tol = accuracy.gap if is_labelling else accuracy.tol
    at_once = len(solutions) if accuracy.foresees else prepared.columns_at_once
    for k, (lam, solution) in enumerate(zip(lams, solutions, strict=True)):
        if k % at_once == 0:
            coefficients = coefficients_of(solutions[k : k + at_once])
            if accuracy.foresees:
                scored = prepared.scored_part(coefficients)
            else:
                token = solution.at.token if len(solutions) == 1 else None
                scored = prepared.scored(coefficients, token)
        if isinstance(loss, LabellingLoss) and loss.has_intercept:
            # Where f + c = 0: the loss has learned that.
            threshold: Any = -float(solution.at.w[problem.rank])
        else:
            threshold = prepared.data.target.threshold(scored.column(k % at_once), loss)
        machine = LearnedMachine(
            prepared.landmarks.points,
            prepared.landmarks.first_rows,
            solution.at.coefficients,
            problem.whitener,
            threshold,
            None,
            solution,
        )
        if parameters.penalty == "l1":
            machine = _without_unused(machine, prepared, lam)
        machines.append(machine)
        if stopped_short(solution, tol):
            warn(
                f"lam={lam:.3g}: {solution.status} after {solution.n_iter} iterations with "
                f"optimality {solution.optimality:.1e}, wanted {tol:.1e}. Raise max_iter, tol or "
                "lam, or check the scale of the features.",
                ConvergenceWarning,
            )
        elif is_labelling and solution.at.value >= 1.0 - tol:
            warn(
                f"lam={lam:.3g}: the objective is {solution.at.value:.4f}, and it is 1 where all "
                f"scores are equal: they say next to nothing. Lower lam; where the classes overlap "
                "much, use a loss of pairs."
            )
    return machines


def _without_unused(
    machine: LearnedMachine, prepared: PreparedRanking, lam: float
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
        whitener=whiten(prepared.landmark_kernel[np.ix_(used, used)], prepared.data.source.dtype),
        duality_gap=duality_gap(at, lam),
    )


def stopped_short(solution: Solution, tol: float) -> bool:
    """True where the solver stopped far from the minimum."""
    if solution.status is Status.CONVERGED:
        return False
    # Written so that an optimality that is not a number is short, too.
    near = solution.optimality <= max(tol, ROUNDING_TOL)
    return solution.status is Status.MAX_ITER or not near


class CrossFittedMachines(NamedTuple):
    """Machines of several folds and lams, with the scores of the rows that each fold held out.

    ``held_out`` has the shape (n_rows, n_lams), NaN for rows of no fold; ``coefficients`` one array
    of shape (n_landmarks, n_lams) a fold, over the landmarks of ``expansion``.
    """

    held_out: np.ndarray
    coefficients: list[np.ndarray]
    expansion: KernelExpansion
    width: float


def cross_fit(
    settings: KernelSettings,
    source: RowSource,
    target: TwoClasses,
    folds: Sequence[Fold],
    lams: Sequence[float],
    check: Callable[[], None] = lambda: None,
) -> CrossFittedMachines:
    """Solve for every fold and lam in step, so that they share the passes of the rows.

    `check` is called at every iteration, and ends it by raising. Time and memory are those of
    `RankRCCV` on as many folds and lams, without its last fit.
    """
    width = width_of_rows(settings, source, target.labels)
    loss = make_loss(_CROSS_FIT_LOSS, _CROSS_FIT_EPS, None)
    prepared = prepare(RankingData(settings, source, target, loss, width), several=True)
    paths = solve_paths(
        [partial(prepared.problem, 1.0, fold.held_out) for fold in folds],
        lams,
        PathSettings(_CROSS_FIT_TOL, _CROSS_FIT_MAX_ITER),
        prepared.at_once,
        lambda number, lam, step: check(),
    )
    coefficients = [coefficients_of(path) for path in paths]
    held_out = np.full((source.n_rows, len(lams)), np.nan)
    rare, majority = target.labels.rare, target.labels.majority
    for fold, of_fold in zip(folds, coefficients, strict=True):
        rows = prepared.scored(of_fold, tested=fold.tested)
        held_out[rare[fold.tested[rare]]] = rows.held
        held_out[majority[fold.tested[majority]]] = rows.majority
    return CrossFittedMachines(held_out, coefficients, prepared.expansion, width)
