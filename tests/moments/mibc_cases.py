"""A set to learn from, every model of the covariance, and what makes two MIBC equal."""

import numpy as np
import pytest

from rareclass.moments.moments import MomentSettings, moments_of
from rareclass.rows import as_source

EXACT = {"tol": 1e-12, "max_iter": 10_000}
COVARIANCES = {
    "full": {},
    "diagonal": {"covariance": "diagonal"},
    "factor": {"covariance": "factor", "n_factors": 2},
}
each_covariance = pytest.mark.parametrize("given", COVARIANCES.values(), ids=COVARIANCES)


def assert_same_hyperplane(one, other, rtol=1e-8):
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(one.offset_, other.offset_, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(one.specificity_bound_, other.specificity_bound_, rtol=10 * rtol)
    np.testing.assert_allclose(one.ridge_, other.ridge_, rtol=rtol)


def moments_of_array(X, wanted=None, weight=None):
    """Moments of an array, CSR matrix or table in memory."""
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    return moments_of(as_source(X), wanted or MomentSettings(scatter=True), None, weight)


def rare_rows(n=400, n_rare=25, d=5, seed=0, shift=1.2):
    """Correlated features of several scales; rare rows away from the mean, some among the rest."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=int)
    y[rng.choice(n, n_rare, replace=False)] = 1
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)))
    X[y == 1] += shift * rng.normal(size=d)
    return X * 10.0 ** rng.uniform(-1, 1, d) + rng.normal(size=d), y
