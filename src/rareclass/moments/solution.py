"""A hyperplane from the dual: threshold, guarantee, and what stopped short on the way."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.moments.covariance import Modelled
from rareclass.moments.dual import DualSolution

# Rare rows at the margin score w . mean + 1 but for rounding and the solver's tolerance: the
# threshold lies just below, so that they are called rare in any order of the sums.
_AT_MARGIN = 1e-6


class Solved(NamedTuple):
    """A hyperplane and how it was found.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        w.
    offset : float
        Score above which a row is called rare.
    mean_score : float
        w . mean of the majority.
    spread : float
        sqrt(w' Sigma w), the standard deviation of the majority's scores in the model.
    dual_coef : ndarray of shape (n_rare,)
        alpha.
    gap : float
        Relative duality gap.
    n_iter : int
    status : str
    ridge : float
    """

    coef: np.ndarray
    offset: float
    mean_score: float
    spread: float
    dual_coef: np.ndarray
    gap: float
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


def specificity_bound(solution: Solved) -> float:
    """kappa^2 / (1 + kappa^2) at a threshold: lemma 1 of the paper, read from right to left."""
    distance = solution.offset - solution.mean_score
    if distance <= 0.0:
        return 0.0
    return float(distance**2 / (distance**2 + solution.spread**2))


def warn_if_short(estimator: Any, solutions: Sequence[DualSolution], stacklevel: int = 4) -> None:
    """Say how many solutions did not reach the wanted gap."""
    short = [s.gap for s in solutions if s.gap > estimator.tol and s.status == "reached max_iter"]
    if short:
        warnings.warn(
            f"{len(short)} of {len(solutions)} solutions stopped at max_iter={estimator.max_iter} "
            f"with a duality gap of up to {max(short):.1e}, above tol={estimator.tol:.1e}. Raise "
            "max_iter or tol, or lower C.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
