"""The scikit-learn contract of the ordinal ranking estimators, exceptions in one table."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rareclass import OrdinalRankRC, OrdinalRankRCCV

# Check name -> why both estimators are excused from it.
EXPECTED_FAILURES = {
    "check_classifiers_classes": "text has no order of its own: it is refused without levels=",
    "check_classifiers_train": (
        "decision_function is one rank a row, whatever the number of levels, and its zero means "
        "nothing: thresholds_ say where levels end"
    ),
}


@pytest.mark.filterwarnings("ignore:only .* rows of the smaller class:UserWarning")
@parametrize_with_checks(
    [OrdinalRankRC(), OrdinalRankRCCV(lams=[1.0, 0.01], cv=3)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
