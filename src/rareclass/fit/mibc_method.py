"""MIBC as the command line runs it: which covariance, C, memory, and what is said of the model."""

from dataclasses import dataclass, replace
from math import inf, log10
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rareclass.errors import ErrorKind, counted, setting
from rareclass.estimators.rankings import LinearRanking
from rareclass.findings import Finding, FindingKind, warnings_as
from rareclass.fit.method import EncodedRows, Method, Terms, how_chosen
from rareclass.machine import size_text
from rareclass.model.facts import MomentFacts, SolverFacts
from rareclass.moments import MIBC, MIBCCV
from rareclass.moments.dual import NotSeparableError
from rareclass.moments.mibc_cv import PAPER_CS

DEFAULT_COST = 1.0
# Up to so many columns the whole covariance is kept: factorising it takes a fraction of a second.
MOST_FULL_COLUMNS = 1000
# Ridges to choose from, in mean variances.
RIDGES: tuple[Any, ...] = ("auto", 0.01, 0.1, 1.0, 10.0)
# Copies of a whole covariance beside two for each fold: of all rows, its factor, those at work.
_COPIES = 4


@dataclass(frozen=True)
class MIBCMethod(Method):
    """A linear model on moments of the majority; see `rareclass.fit.method.Method`.

    With no covariance given, all of it is kept for tables of up to 1,000 columns once encoded, and
    the diagonal of wider ones and of sparse rows.
    """

    name: ClassVar[str] = "mibc"
    parameter: ClassVar[str] = "C"

    cost: float | None = None  # C; None: by cross-validation
    covariance: str | None = None
    ridge: Any = None  # as in `MIBC`; None: by cross-validation

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> MIBC:
        """Fit with cross-validation where there are rows for it."""
        covariance = self.covariance or _covariance(rows)
        _check_memory(covariance, rows, terms)
        try:
            estimator = self._estimator(covariance, rows, terms, notes)
            with warnings_as(notes, _say):
                fitted = rows.fit(estimator)
        except NotSeparableError as error:
            raise ErrorKind.NOT_REACHABLE.error(
                error.message, f"Use {setting('cost', 'auto')}, or a number such as 1."
            ) from error
        return fitted.best_estimator_ if isinstance(fitted, MIBCCV) else fitted

    def _estimator(
        self, covariance: str, rows: EncodedRows, terms: Terms, notes: list[str]
    ) -> MIBC | MIBCCV:
        """A search over folds where there are rows for them."""
        shared: dict[str, Any] = {
            "covariance": covariance,
            "pos_label": 1,
            "random_state": terms.seed,
        }
        if terms.folds < 2:
            notes.append("Too few rare rows for cross-validation: the threshold may be far off.")
            if self.cost is None:
                notes.append(f"For the same reason C was not chosen: {DEFAULT_COST:g} was taken.")
            ridge = "auto" if self.ridge is None else self.ridge
            return MIBC(self.cost or DEFAULT_COST, ridge=ridge, **shared)
        costs = PAPER_CS if self.cost is None else (self.cost,)
        ridges = RIDGES if self.ridge is None else (self.ridge,)
        # Even one C is cross-validated: the threshold needs scores of rows held out.
        return MIBCCV(costs, ridges, cv=rows.cv(terms), **shared)

    def as_chosen(self, model: MIBC) -> "MIBCMethod":
        """Return the method with the C and the ridge of `model`."""
        return replace(self, cost=float(model.C), ridge=model.ridge)

    def facts(self, model: MIBC, terms: Terms, chosen: Any) -> MomentFacts:
        """Return C, the covariance, what is guaranteed, and how the solver ended."""
        has_folds = terms.folds >= 2
        return MomentFacts(
            C=float(model.C),
            C_chosen_by_cross_validation=self.cost is None and has_folds,
            covariance=model.covariance,
            ridge=float(model.ridge_),
            ridge_chosen_by_cross_validation=self.ridge is None and has_folds,
            specificity_bound=float(model.specificity_bound_),
            solver=SolverFacts(model.status_, int(model.n_iter_), float(model.duality_gap_)),
        )

    def summary(self, model: MIBC, terms: Terms, thresholds: NDArray[np.float64]) -> list[str]:
        """Return the lines on covariance, C, guarantee and solver."""
        ridge = f", with {model.ridge_:.3g} added to every variance" if model.ridge_ else ""
        if model.ridge != "auto":
            ridge += f" ({model.ridge:g} of their mean"
            ridge += ", chosen by cross-validation)" if self.ridge is None else ")"
        power = "" if inf == model.C else f" (10^{log10(model.C):.4g})"
        passes = "pass" if model.n_iter_ == 1 else "passes"
        return [
            f"Covariance of the majority: {model.covariance}, "
            f"{counted(len(model.coef_), 'column')}{ridge}",
            f"Cost C = {model.C:.4g}{power}, {how_chosen(self.cost, terms)}",
            f"Guarantee: false-positive rate at most {1.0 - model.specificity_bound_:.1%} at the "
            "threshold, for this mean and covariance of the majority",
            f"Solver: {model.status_} after {model.n_iter_:,} {passes} of the rare rows, "
            f"duality gap {model.duality_gap_:.1e}",
        ]

    def as_stored(self, model: MIBC) -> LinearRanking:
        """Return what scores rows: neither moments nor rare rows."""
        return LinearRanking(model.coef_)


def _say(finding: Finding) -> str | None:
    """Leave out a ridge: the summary tells it, and columns one a value depend on each other."""
    return "" if finding.kind == FindingKind.RIDGE_ADDED else None


def _covariance(rows: EncodedRows) -> str:
    is_wide = rows.shape[1] > MOST_FULL_COLUMNS
    return "diagonal" if is_wide or sparse.issparse(rows.X) else "full"


def _check_memory(covariance: str, rows: EncodedRows, terms: Terms) -> None:
    """Raise `InputError` when the whole covariances of the folds do not fit."""
    if covariance != "full":
        return
    n_columns = rows.shape[1]
    needed = 8 * n_columns**2 * (2 * terms.folds + _COPIES)
    if needed > terms.memory:
        raise ErrorKind.MEMORY.error(
            f"{setting('covariance', covariance)} of {n_columns:,} encoded columns takes "
            f"{size_text(needed)} with its folds; {size_text(terms.memory)} are left for it.",
            f"Use {setting('covariance', 'factor')} or diagonal, or raise "
            f"{setting('kernel_memory')}.",
        )
