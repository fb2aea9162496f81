"""From moments and rare rows to hyperplanes: settings, problems of labels, the path over prices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.errors import first_names
from rareclass.findings import Finding, FindingKind, Status, warn
from rareclass.labels.two_classes import Labels, read_labels
from rareclass.machine import check_fits
from rareclass.moments.covariance import (
    CovarianceModel,
    FittedCovariance,
    make_covariance,
    mean_variance,
)
from rareclass.moments.dual import solve_dual
from rareclass.moments.moments import Moments
from rareclass.parameters import check_number, check_whole

# Rare rows at the margin score w . mean + 1 but for rounding and the solver's tolerance: the
# threshold lies just below, so that they are called rare in any order of the sums.
_AT_MARGIN = 1e-6


@dataclass(eq=False, repr=False, kw_only=True)
class MIBCParameters:
    """Parameters that `MIBC` and `MIBCCV` share; see `MIBC`."""

    covariance: Any = "full"
    n_factors: int = 50
    ridge: Any = "auto"
    tol: float = 1e-6
    max_iter: int = 1000
    random_state: Any = None
    n_jobs: int | None = None
    pos_label: Any = None

    def _covariance_model(self, Cs: Sequence[Any], ridge: Any) -> CovarianceModel:
        """Return the covariance model; refuse values out of range, naming the parameter."""
        for C in Cs:
            check_number("C", C, "a number above 0, or np.inf", ends="(]")
        check_number("tol", self.tol)
        check_whole("max_iter", self.max_iter)
        return make_covariance(self.covariance, self.n_factors, ridge)


def check_memory(n_features: int, model: CovarianceModel, n_sets: int = 1) -> None:
    """Refuse moments of so many sets of rows, and their factors, that do not fit in memory."""
    wanted = model.wanted(0)
    one = n_features * (n_features if wanted.scatter else wanted.n_probes + 2)
    of = f" of {n_sets} sets of rows" if n_sets > 1 else ""
    check_fits(
        8 * one * (n_sets + 3),
        f"The moments of {n_features:,} features{of} and their factors",
        "Use covariance='diagonal', or 'factor' with fewer n_factors.",
    )


def majority_weight(labels: Labels, n_rows: int) -> np.ndarray:
    """Return the weight of every row as a majority row: rows are read in place, none is copied."""
    weight = np.zeros(n_rows)
    weight[labels.majority] = 1.0 if labels.majority_weight is None else labels.majority_weight
    return weight


def weighted_labels(y: Any, sample_weight: Any, pos_label: Any, n_rows: int) -> Labels:
    """Read labels, with weights in the units of the user: C is a price for a weight of 1."""
    labels = read_labels(y, sample_weight, pos_label, n_rows)
    if sample_weight is None or labels.majority_weight is None:
        return labels
    largest = float(np.max(np.asarray(sample_weight)))
    return labels._replace(
        rare_weight=labels.rare_weight * largest, majority_weight=labels.majority_weight * largest
    )


class Hyperplane(NamedTuple):
    """A hyperplane and how the solver found it."""

    coef: np.ndarray  # w
    offset: float  # score above which a row is called rare
    mean_score: float  # w . mean of the majority
    spread: float  # sqrt(w' Sigma w), the standard deviation of the majority's scores in the model
    dual_coef: np.ndarray  # alpha, shape (n_rare,)
    gap: float  # relative duality gap
    n_iter: int
    status: str
    ridge: float

    def specificity_bound(self) -> float:
        """Return kappa^2 / (1 + kappa^2) at the threshold: lemma 1 of the paper, inverted."""
        distance = self.offset - self.mean_score
        if distance <= 0.0:
            return 0.0
        return float(distance**2 / (distance**2 + self.spread**2))


def solve_path(
    model: FittedCovariance,
    mean: np.ndarray,
    rare_rows: Any,
    rare_weight: np.ndarray,
    Cs: Sequence[float],
    tol: float,
    max_iter: int,
    seed: int,
) -> list[Hyperplane]:
    """Return the hyperplane for each of increasing Cs, at the paper's threshold.

    The rows, (n, d), are brought into the metric once. A rare row that was at its bound starts at
    its next one, any other where it was. For `tol`, `max_iter` and `seed` see `solve_dual`.
    """
    rows = model.metric.rare_rows(rare_rows, mean)
    path: list[Hyperplane] = []
    start, before = None, np.zeros(len(rare_weight))
    for C in Cs:
        upper = C * rare_weight
        if start is not None:
            start = np.where(start >= before, upper if np.isfinite(C) else before, start)
        dual = solve_dual(rows, upper, tol, max_iter, start, seed)
        coef, variance = model.metric.weights(dual, mean)
        mean_score = float(coef @ mean)
        path.append(
            Hyperplane(
                coef=coef,
                offset=mean_score + 1.0 - _AT_MARGIN,
                mean_score=mean_score,
                spread=float(np.sqrt(variance)),
                dual_coef=dual.alpha,
                gap=dual.gap,
                n_iter=dual.n_iter,
                status=str(dual.status),
                ridge=model.ridge,
            )
        )
        start, before = dual.alpha, upper
    return path


def warn_of_ridge(names: Sequence[str] | None, model: FittedCovariance, moments: Moments) -> None:
    """Warn that the covariance had no inverse, why, and what was done; columns may have `names`."""
    if not model.was_singular:
        return
    constant = np.flatnonzero(moments.variance_sum == 0.0).tolist()
    why = "columns depend on each other, or are more than the rows"
    if len(constant):
        shown = [str(j) if names is None else repr(str(names[j])) for j in constant]
        why = f"column {first_names(shown, 3)} constant in it"
    done = f"constant columns were given the variance {model.floor:.3g}"
    if not model.floor:
        as_given = f"ridge={model.ridge / mean_variance(moments):.3g}"
        done = f"{model.ridge:.3g} was added to each variance, as {as_given} would"
    warn(
        f"The covariance of the majority has no inverse ({why}): {done}. Pass ridge= to choose it, "
        "or leave such columns out.",
        finding=Finding(FindingKind.RIDGE_ADDED, {"ridge": model.ridge, "floor": model.floor}),
    )


def warn_if_short(solutions: Sequence[Hyperplane], tol: float, max_iter: int) -> None:
    """Warn how many solutions did not reach the wanted gap."""
    short = [s.gap for s in solutions if s.gap > tol and s.status == Status.MAX_ITER]
    if short:
        warn(
            f"{len(short)} of {len(solutions)} solutions stopped at max_iter={max_iter} "
            f"with a duality gap of up to {max(short):.1e}, above tol={tol:.1e}. Raise "
            "max_iter or tol, or lower C.",
            ConvergenceWarning,
        )
