"""Penalties on the coefficients by name: who solves the problem, and what a model keeps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rareclass.kernels.expansion import Coordinates, whiten
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.solvers import path, sparse_path
from rareclass.ranking.solvers.newton import Solution
from rareclass.ranking.solvers.sparse_path import unit_norm

PAPER_LAMS = tuple(2.0 ** np.arange(10, -21, -2))


@dataclass(frozen=True)
class Penalty:
    """What depends on the penalty."""

    coordinates: Coordinates  # makes the matrix from unknowns to coefficients
    solve_paths: Callable[..., list[list[Solution]]]  # as `path.solve_paths`
    # makes a grid of lams for problems on all rows that differ in the loss, from their makers
    lams: Callable[[Sequence[Callable[[], RankingProblem]]], tuple[float, ...]]
    drops_landmarks: bool  # whether coefficients are zero, and their landmarks no part of the model


PENALTIES: dict[str, Penalty] = {
    "l2": Penalty(whiten, path.solve_paths, lambda makers: PAPER_LAMS, False),
    "l1": Penalty(unit_norm, sparse_path.solve_paths, sparse_path.default_lams, True),
}
