"""The scikit-learn contract of every ranking estimator, exceptions in one table."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rareclass import RankRC, RankRCCV, RankSVM

# Check name -> why an estimator is excused from it.
REPEATED_DRAW = "landmarks drawn by number: among repeated rows the draw is another one"
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "RankRC(landmarks=5)": {
        "check_sample_weight_equivalence_on_dense_data": REPEATED_DRAW,
        "check_sample_weight_equivalence_on_sparse_data": REPEATED_DRAW,
    },
}


@pytest.mark.filterwarnings("ignore:only .* rows of the smaller class:UserWarning")
@parametrize_with_checks(
    [RankRC(), RankSVM(), RankRC(landmarks=5), RankRCCV(lams=[1.0, 0.01], cv=3)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(repr(estimator), {}),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
