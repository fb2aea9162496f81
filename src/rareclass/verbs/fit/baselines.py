"""What plain methods reach on the same held-out rows: is the model worth its time?"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rareclass.metrics import average_precision, roc_auc
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class Baseline:
    """A plain method on the held-out rows."""

    name: str
    auc: float
    average_precision: float
    seconds: float  # of its fit


def baselines(
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    tested: Any,
    y_tested: np.ndarray,
    weight_tested: np.ndarray | None,
) -> list[Baseline]:
    """scikit-learn's histogram boosting and logistic regression, with their defaults.

    `X` and `tested` are encoded rows to learn from and to be judged on, `y` codes of a rare class
    1. Boosting takes no sparse rows.
    """
    found = []
    for name, make in _MAKERS.items():
        if sparse.issparse(X) and name == "histogram boosting":
            continue
        start = time.perf_counter()
        with threadpool_limits(count_threads(None), user_api="openmp"):
            model = make().fit(X, y, sample_weight=weight)
        seconds = time.perf_counter() - start
        scores = model.decision_function(tested)
        rare = y_tested == 1
        found.append(
            Baseline(
                name,
                roc_auc(rare, scores, weight_tested),
                average_precision(rare, scores, weight_tested),
                seconds,
            )
        )
    return found


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


_MAKERS: dict[str, Callable[[], Any]] = {
    "histogram boosting": _boosting,
    "logistic regression": _logistic,
}
