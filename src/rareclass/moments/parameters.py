"""The parameters that MIBC and MIBCCV share, checked."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from rareclass.moments.covariance import Covariance, make_covariance


def check_parameters(estimator: Any, prices: Sequence[Any]) -> Covariance:
    """Refuse what cannot be worked with, naming the parameter; the model of the covariance."""
    for C in prices:
        if not (isinstance(C, Real) and float(C) > 0.0):
            raise ValueError(f"C={C!r} must be a number above 0, or np.inf.")
    if not (isinstance(estimator.tol, Real) and 0.0 < float(estimator.tol) < np.inf):
        raise ValueError(f"tol={estimator.tol!r} must be a number above 0.")
    max_iter = estimator.max_iter
    if not (isinstance(max_iter, (int, np.integer)) and max_iter >= 1):
        raise ValueError(f"max_iter={max_iter!r} must be a whole number above 0.")
    return make_covariance(estimator.covariance, estimator.n_factors, estimator.ridge)


def seed_of(random_state: Any) -> int:
    """A whole number; None is 0."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
