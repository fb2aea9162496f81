"""scikit-learn's checks of every estimator, all but what one table excuses it from."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from expected_failures import expected_failures
from registered import ESTIMATORS, MORE_ESTIMATORS

pytestmark = [
    # What small tables of scikit-learn's own are rightly told.
    pytest.mark.filterwarnings("ignore:only .* rows of the smaller class:UserWarning"),
    pytest.mark.filterwarnings("ignore:The covariance of the majority has no inverse:UserWarning"),
    pytest.mark.filterwarnings("ignore:(the ball of|.* has a single labelled row):UserWarning"),
    pytest.mark.filterwarnings("ignore:rare classes of fewer than 5 rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:column .* alone ranks the rows:UserWarning"),
    pytest.mark.filterwarnings("ignore:lam=.*:sklearn.exceptions.ConvergenceWarning"),
]


@pytest.mark.sampled(150)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.thorough
@parametrize_with_checks(MORE_ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract_of_other_parameters(estimator, check):
    check(estimator)
