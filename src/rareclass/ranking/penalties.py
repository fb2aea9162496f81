"""Penalties on the coefficients by name: who solves the problem, and what a model keeps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rareclass.kernels.whitening import Coordinates, whiten
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.solvers import path, sparse_path
from rareclass.ranking.solvers.newton import Solution
from rareclass.ranking.solvers.sparse_path import unit_norm

PAPER_LAMS = tuple(2.0 ** np.arange(10, -21, -2))


@dataclass(frozen=True)
class Penalty:
    """What depends on the penalty.

    Attributes
    ----------
    coordinates : callable
        Makes the matrix from unknowns to coefficients.
    solve_paths : callable
        As `path.solve_paths`.
    lams : callable
        Makes a grid of lams for problems on all rows that differ in the loss, from their makers.
    drops_landmarks : bool
        Whether coefficients are zero, and their landmarks no part of the model.
    """

    coordinates: Coordinates
    solve_paths: Callable[..., list[list[Solution]]]
    lams: Callable[[Sequence[Callable[[], RankingProblem]]], tuple[float, ...]]
    drops_landmarks: bool


PENALTIES: dict[str, Penalty] = {
    "l2": Penalty(whiten, path.solve_paths, lambda makers: PAPER_LAMS, False),
    "l1": Penalty(unit_norm, sparse_path.solve_paths, sparse_path.default_lams, True),
}
