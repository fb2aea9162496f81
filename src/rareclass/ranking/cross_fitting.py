"""Machines of every fold and lam on one kernel, with the scores of the rows each fold held out."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from rareclass.estimators.search import Fold
from rareclass.kernels.expansion import KernelExpansion
from rareclass.machine import blas_threads
from rareclass.ranking.fitting import PENALTIES
from rareclass.ranking.losses import make_loss
from rareclass.ranking.preparation import (
    KernelSettings,
    Prepared,
    coefficients_of,
    prepare,
    width_of_rows,
)
from rareclass.ranking.solvers.path import solve_paths
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import RowSource

# Held-out scores change in the fourth digit where a tighter one is asked for.
_TOL, _MAX_ITER = 1e-3, 60
_LOSS, _EPS = "smoothed_hinge", 0.5


class CrossFittedMachines(NamedTuple):
    """What `cross_fit` finds.

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
    width: float | None = None,
    scales: np.ndarray | None = None,
    check: Callable[[], None] = lambda: None,
) -> CrossFittedMachines:
    """Solve for every fold and lam in step, so that they share the passes of the rows.

    `width` None takes that of `settings`; `scales` are those of the features.
    `check` is called at every iteration, and ends it by raising. Time and memory are
    those of `RankRCCV` on as many folds and lams, without its last fit.
    """
    width = width_of_rows(settings, source, target.labels) if width is None else width
    loss = make_loss(_LOSS, _EPS, None)
    prepared = prepare(settings, source, target, loss, True, width, scales)
    coordinates = PENALTIES["l2"].coordinates
    with blas_threads(1):
        paths = solve_paths(
            [partial(prepared.problem, 1.0, fold.held_out, None, coordinates) for fold in folds],
            lams,
            _TOL,
            _MAX_ITER,
            prepared.at_once,
            lambda number, lam, step: check(),
        )
        coefficients = [coefficients_of(path) for path in paths]
        held_out = _held_out_scores(prepared, folds, coefficients)
    return CrossFittedMachines(held_out, coefficients, prepared.expansion, width)


def _held_out_scores(
    prepared: Prepared[TwoClasses], folds: Sequence[Fold], coefficients: Sequence[np.ndarray]
) -> np.ndarray:
    scores = np.full((prepared.n_rows, coefficients[0].shape[1]), np.nan)
    rare, majority = prepared.labels.rare, prepared.labels.majority
    for fold, of_fold in zip(folds, coefficients, strict=True):
        rows = prepared.scored(of_fold, tested=fold.tested)
        scores[rare[fold.tested[rare]]] = rows.held
        scores[majority[fold.tested[majority]]] = rows.majority
    return scores
