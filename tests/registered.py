"""Every estimator, each of its code paths once: what contracts and oracles are tried on.

`tests/test_registered.py` fails where the package has a name that is missing here.
"""

from sklearn.linear_model import LogisticRegression

from expected_failures import DRAWN_BY_NUMBER
from rareclass import (
    MIBC,
    MIBCCV,
    RACH,
    RACHCV,
    OrdinalRankRC,
    OrdinalRankRCCV,
    RankRC,
    RankRCCV,
    RankSVM,
    RareClassifier,
    StochasticRankRC,
)
from rareclass.decide import CalibratedRanker, DecisionClassifier, ReviewBand, ThresholdRule
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.online import CBR, OAM, OPAUC, AdaOAM, OnlineLogistic, OnlineMixture, UniExp

ONLINE = {
    "cbr": CBR(C=0.1, random_state=0),
    "cbr reservoir": CBR(policy="reservoir", buffer_size=7, random_state=0),
    "cbr balanced": CBR(C=2**-10, class_weight="balanced", random_state=0),
    "cbr diagonal": CBR(covariance="diagonal", random_state=0),
    "oam": OAM(C=0.1, random_state=0),
    "oam fifo": OAM(policy="fifo", C=0.01, buffer_size=7, random_state=0),
    "opauc": OPAUC(random_state=0),
    "opauc low rank": OPAUC(rank=3, random_state=0),
    "adaoam": AdaOAM(random_state=0),
    "uniexp": UniExp(random_state=0),
    "logistic": OnlineLogistic(random_state=0),
    "mixture": OnlineMixture(random_state=0),
    "logistic balanced": OnlineLogistic(class_weight="balanced", random_state=0),
    "logistic newton": OnlineLogistic(steps="newton", random_state=0),
}

# Each class, and each way through its code, with scikit-learn's checks in every run.
ESTIMATORS = [
    RankRC(),
    RankRC(penalty="l1"),
    RankRC(loss="pnorm_push"),
    RankRC(landmarks=5),
    RankSVM(),
    RankRCCV(lams=[1.0, 0.01], cv=3),
    OrdinalRankRC(),
    OrdinalRankRCCV(lams=[1.0, 0.01], cv=3),
    StochasticRankRC(),
    MIBC(),
    MIBCCV(Cs=[0.1, 1.0], cv=3, tol=1e-10),
    RACH(tol=1e-10),
    RACH(kernel="gaussian", tol=1e-10),
    RACHCV(C1s=[3.0], n_balls=1, cv=2, tol=1e-10),
    RareClassifier(members=[LogisticOnQuantiles(strengths=(0.1,))], cv=2),
    DecisionClassifier(LogisticRegression(), ThresholdRule.f_beta(), cv=3),
    CalibratedRanker(LogisticRegression(C=0.1), cv=3),
    *(ONLINE[name] for name in ("cbr", "cbr diagonal", "oam", "opauc", "opauc low rank")),
    *(ONLINE[name] for name in ("adaoam", "uniexp", "logistic", "mixture")),
]
# Ways that share their code with one above: in `make test-thorough` only.
MORE_ESTIMATORS = [
    RankRCCV(lams=[0.03, 0.001], cv=3, penalty="l1"),
    MIBC(covariance="diagonal"),
    MIBC(covariance="factor", n_factors=2),
    MIBC(ridge=0.1, C=100.0),
    MIBCCV(Cs=[0.1, 1.0], ridges=["auto", 0.1], covariance="diagonal", cv=3, tol=1e-10),
    RACHCV(C1s=[3.0], cv=2, tol=1e-10),
    RACHCV(kernel="gaussian", C1s=[3.0], widths=[1.0], margins=[0.5], cv=2, tol=1e-10),
    RareClassifier(members=DRAWN_BY_NUMBER, cv=2),
    DecisionClassifier(
        RankRC(),
        ReviewBand(ThresholdRule.f_beta(0.5), ThresholdRule.f_beta(2.0)),
        3,
        response="score_samples",
    ),
    CalibratedRanker(LogisticRegression(C=0.1), method="isotonic", cv=3, ensemble=False),
    *(ONLINE[name] for name in ("cbr reservoir", "cbr balanced", "oam fifo")),
    *(ONLINE[name] for name in ("logistic balanced", "logistic newton")),
]
