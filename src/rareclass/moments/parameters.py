"""What MIBC and MIBCCV are given: parameters, and weights in the units of the user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from rareclass.labels.two_classes import Labels
from rareclass.machine import check_fits
from rareclass.moments.covariance import Covariance, make_covariance
from rareclass.parameters import check_number, check_whole


@dataclass(frozen=True)
class MIBCSettings:
    """What is asked of the model of the covariance and of the solver, as `MIBC` has it."""

    covariance: Any
    n_factors: int
    ridge: Any
    tol: float
    max_iter: int

    def checked(self, prices: Sequence[Any]) -> Covariance:
        """The model of the covariance; refuse what cannot be worked with, naming the parameter."""
        for C in prices:
            check_number("C", C, "a number above 0, or np.inf", ends="(]")
        check_number("tol", self.tol)
        check_whole("max_iter", self.max_iter)
        return make_covariance(self.covariance, self.n_factors, self.ridge)


def check_memory(n_features: int, model: Covariance, n_sets: int = 1) -> None:
    """Refuse what does not fit: moments of so many sets of rows, a factor and what is at work."""
    wanted = model.wanted(0)
    one = n_features * (n_features if wanted.scatter else wanted.n_probes + 2)
    of = f" of {n_sets} sets of rows" if n_sets > 1 else ""
    check_fits(
        8 * one * (n_sets + 3),
        f"The moments of {n_features:,} features{of} and their factors",
        "Use covariance='diagonal', or 'factor' with fewer n_factors.",
    )


def seed_of(random_state: Any) -> int:
    """A whole number; None is 0."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def majority_weight(labels: Labels, n_rows: int) -> np.ndarray:
    """Weight of every row as a majority row: rows are read in their places, none is gathered."""
    weight = np.zeros(n_rows)
    given = labels.majority_weight
    weight[labels.majority] = 1.0 if given is None else given
    return weight


def with_weights_as_given(labels: Labels, sample_weight: Any) -> Labels:
    """Labels with weights in the units of the user: C is a price for a weight of 1."""
    if sample_weight is None or labels.majority_weight is None:
        return labels
    largest = float(np.max(np.asarray(sample_weight)))
    return labels._replace(
        rare_weight=labels.rare_weight * largest, majority_weight=labels.majority_weight * largest
    )
