"""The parameters that MIBC and MIBCCV share."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from rareclass.memory import check_fits
from rareclass.moments.covariance import Covariance, make_covariance


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
            if not (isinstance(C, Real) and float(C) > 0.0):
                raise ValueError(f"C={C!r} must be a number above 0, or np.inf.")
        if not (isinstance(self.tol, Real) and 0.0 < float(self.tol) < np.inf):
            raise ValueError(f"tol={self.tol!r} must be a number above 0.")
        if not (isinstance(self.max_iter, (int, np.integer)) and self.max_iter >= 1):
            raise ValueError(f"max_iter={self.max_iter!r} must be a whole number above 0.")
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
