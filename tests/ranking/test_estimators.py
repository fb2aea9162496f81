"""The scikit-learn contract of every ranking estimator, exceptions in one table."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rareclass import RankRC, RankRCCV, RankSVM

# Check name -> why an estimator is excused from it.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {}


@pytest.mark.filterwarnings("ignore:only .* rows of the smaller class:UserWarning")
@parametrize_with_checks(
    [RankRC(), RankSVM(), RankRC(landmarks=5), RankRCCV(lams=[1.0, 0.01], cv=3)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
