"""The scikit-learn contract of the stochastic estimator, exceptions in one table."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rareclass.ranking.stochastic import StochasticRankRC

EXPECTED_FAILURES: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore:lam=.*:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([StochasticRankRC()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
