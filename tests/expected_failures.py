"""The one table of what an estimator is excused from, and why."""

from rareclass import (
    MIBCCV,
    RACH,
    RACHCV,
    OrdinalRankRC,
    OrdinalRankRCCV,
    RankRC,
    RankRCCV,
    RareClassifier,
)
from rareclass.decide import DecisionClassifier
from rareclass.ensemble.members.machines import LaplaceOnQuantiles
from rareclass.ensemble.members.trees import ExtraTrees
from rareclass.online import OnlineRanker

REPEATED_DRAW = "landmarks drawn by number: among repeated rows the draw is another one"
NO_ORDER = "text has no order of its own: it is refused without levels="
ONE_RANK = (
    "decision_function is one rank a row, whatever the number of levels, and its zero means "
    "nothing: thresholds_ say where levels end"
)
MINUS_ONE = "-1 among the labels is scikit-learn's own mark for rows without one"
FAR_AWAY = "rows far from all training rows lie outside a ball of theirs, whatever its kernel"
COPIES_IN_TURN = (
    "each copy of a row moves w in turn, and random orders differ with the number of rows"
)
TWO_WEIGHTS = "class_weight is None or 'balanced'; sample_weight takes any"
OWN_THRESHOLD = (
    "predict goes by the threshold of best balanced accuracy, not by a probability of one half"
)
IN_WORDS_OF_TABLES = "tables have columns, not features: errors of them name those, and the remedy"
FEW_DISTINCT = "rounded as for categories, the rows are copies of a handful, most of them held out"
ROWS_BY_NUMBER = "landmarks and bootstraps are drawn by number, as are splits: copies draw others"
DRAWN_BY_NUMBER = [LaplaceOnQuantiles(lams=(2.0**-4,)), ExtraTrees(trees=5)]

OWN_THRESHOLD = "predict goes by the threshold chosen, which is no probability of one half"

COPIES = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
# Class, some of its parameters, checks, reason.
TABLE = [
    (RankRC, {"landmarks": 5}, COPIES, REPEATED_DRAW),
    (OrdinalRankRC, {}, ("check_classifiers_classes",), NO_ORDER),
    (OrdinalRankRC, {}, ("check_classifiers_train",), ONE_RANK),
    (OrdinalRankRCCV, {}, ("check_classifiers_classes",), NO_ORDER),
    (OrdinalRankRCCV, {}, ("check_classifiers_train",), ONE_RANK),
    (RankRCCV, {}, ("check_classifiers_train",), OWN_THRESHOLD),
    (MIBCCV, {}, ("check_classifiers_train",), OWN_THRESHOLD),
    (RACH, {"kernel": "gaussian"}, ("check_classifiers_one_label",), FAR_AWAY),
    (RACHCV, {}, ("check_classifiers_classes",), MINUS_ONE),
    (
        RareClassifier,
        {},
        ("check_n_features_in_after_fitting", "check_estimators_empty_data_messages"),
        IN_WORDS_OF_TABLES,
    ),
    (RareClassifier, {}, ("check_classifiers_train",), FEW_DISTINCT),
    (RareClassifier, {"members": DRAWN_BY_NUMBER}, COPIES, ROWS_BY_NUMBER),
    (DecisionClassifier, {"response": "auto"}, ("check_classifiers_train",), OWN_THRESHOLD),
    (OnlineRanker, {}, COPIES, COPIES_IN_TURN),
    (OnlineRanker, {}, ("check_class_weight_classifiers",), TWO_WEIGHTS),
]


def expected_failures(estimator):
    """The checks of scikit-learn that an estimator is excused from, each with its reason."""
    given = estimator.get_params()
    return {
        check: reason
        for kind, some, checks, reason in TABLE
        if isinstance(estimator, kind) and some.items() <= given.items()
        for check in checks
    }
