"""Solutions for increasing prices of one problem, each the start of the next."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rareclass.moments.covariance import Modelled
from rareclass.moments.dual import DualSolution, solve_dual
from rareclass.moments.solution import Solved, solved


def solve_path(
    model: Modelled,
    mean: np.ndarray,
    rare_rows: Any,
    rare_weight: np.ndarray,
    Cs: Sequence[float],
    tol: float,
    max_iter: int,
    seed: int,
) -> list[tuple[Solved, DualSolution]]:
    """The hyperplane for each C, from the smallest to the largest.

    Rows are brought into the metric once. A rare row that was at its bound starts at its next one,
    any other where it was.

    `Cs` are increasing, `rare_rows` of shape (n, d); for `tol`, `max_iter` and `seed` see
    `solve_dual`.
    """
    rows = model.metric.rare_rows(rare_rows, mean)
    found: list[tuple[Solved, DualSolution]] = []
    start, before = None, np.zeros(len(rare_weight))
    for C in Cs:
        upper = C * rare_weight
        if start is not None:
            start = np.where(start >= before, upper if np.isfinite(C) else before, start)
        dual = solve_dual(rows, upper, tol, max_iter, start, seed)
        found.append((solved(model, dual, mean), dual))
        start, before = dual.alpha, upper
    return found
