"""A hyperplane from the dual: threshold, guarantee, and what stopped short on the way."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.findings import Finding, warn
from rareclass.moments.covariance import Modelled, mean_variance
from rareclass.moments.dual import DualSolution, solve_dual
from rareclass.moments.moments import Moments
from rareclass.rows import Block

# Rare rows at the margin score w . mean + 1 but for rounding and the solver's tolerance: the
# threshold lies just below, so that they are called rare in any order of the sums.
_AT_MARGIN = 1e-6


class Solved(NamedTuple):
    """A hyperplane and how it was found."""

    coef: np.ndarray  # w
    offset: float  # score above which a row is called rare
    mean_score: float  # w . mean of the majority
    spread: float  # sqrt(w' Sigma w), the standard deviation of the majority's scores in the model
    dual_coef: np.ndarray  # alpha, shape (n_rare,)
    gap: float  # relative duality gap
    n_iter: int
    status: str
    ridge: float


def solved(model: Modelled, dual: DualSolution, mean: np.ndarray) -> Solved:
    """The hyperplane of a solution of the dual, with the paper's threshold."""
    coef = model.metric.weights(dual, mean)
    mean_score = float(coef @ mean)
    return Solved(
        coef=coef,
        offset=mean_score + 1.0 - _AT_MARGIN,
        mean_score=mean_score,
        spread=float(np.sqrt(model.metric.variance(dual, mean))),
        dual_coef=dual.alpha,
        gap=dual.gap,
        n_iter=dual.n_iter,
        status=str(dual.status),
        ridge=model.ridge,
    )


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


def specificity_bound(solution: Solved) -> float:
    """kappa^2 / (1 + kappa^2) at a threshold: lemma 1 of the paper, read from right to left."""
    distance = solution.offset - solution.mean_score
    if distance <= 0.0:
        return 0.0
    return float(distance**2 / (distance**2 + solution.spread**2))


def linear_scores(block: Block, coef: np.ndarray) -> np.ndarray:
    """X w of a block; one column a column of `coef`."""
    scores: np.ndarray = np.asarray(block.X @ coef, dtype=np.float64)
    return scores


def warn_of_ridge(names: Sequence[str] | None, model: Modelled, moments: Moments) -> None:
    """Say that the covariance had no inverse, why, and what was done; columns may have `names`."""
    if not model.was_singular:
        return
    constant = np.flatnonzero(moments.variance_sum == 0.0)
    why = "columns depend on each other, or are more than the rows"
    if len(constant):
        shown = [str(j) if names is None else repr(str(names[j])) for j in constant[:3]]
        more = f" and {len(constant) - 3:,} more" if len(constant) > 3 else ""
        why = f"column {', '.join(shown)}{more} constant in it"
    done = f"constant columns were given the variance {model.floor:.3g}"
    if not model.floor:
        as_given = f"ridge={model.ridge / mean_variance(moments):.3g}"
        done = f"{model.ridge:.3g} was added to each variance, as {as_given} would"
    warn(
        f"The covariance of the majority has no inverse ({why}): {done}. Pass ridge= to choose it, "
        "or leave such columns out.",
        finding=Finding("ridge added", {"ridge": model.ridge, "floor": model.floor}),
    )


def warn_if_short(solutions: Sequence[DualSolution], tol: float, max_iter: int) -> None:
    """Say how many solutions did not reach the wanted gap."""
    short = [s.gap for s in solutions if s.gap > tol and s.status == "reached max_iter"]
    if short:
        warn(
            f"{len(short)} of {len(solutions)} solutions stopped at max_iter={max_iter} "
            f"with a duality gap of up to {max(short):.1e}, above tol={tol:.1e}. Raise "
            "max_iter or tol, or lower C.",
            ConvergenceWarning,
        )
