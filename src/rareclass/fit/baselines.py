"""Plain methods on the same held-out rows: is the model worth its time?"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rareclass.folds.score_scale import MajorityScores, match_majority
from rareclass.metrics import average_precision, roc_auc
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class Baseline:
    """A plain method on the held-out rows."""

    name: str
    auc: float
    average_precision: float
    seconds: float  # of learning


class JudgedRows(NamedTuple):
    """Encoded rows to learn from and to be judged on, with codes of a rare class 1."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    tested: Any
    y_tested: np.ndarray
    weight_tested: np.ndarray | None


def baselines(parts: Iterable[JudgedRows]) -> list[Baseline]:
    """scikit-learn's histogram boosting and logistic regression, with their defaults.

    On the rows judged in all parts together, with scores of each part measured from the mean of its
    majority in deviations. Boosting takes no sparse rows.
    """
    parts = list(parts)
    y = np.concatenate([part.y_tested for part in parts]) == 1
    weights = [part.weight_tested for part in parts if part.weight_tested is not None]
    weight = np.concatenate(weights) if weights else None
    found = []
    for name, make in _MAKERS.items():
        if sparse.issparse(parts[0].X) and name == "histogram boosting":
            continue
        start = time.perf_counter()
        with threadpool_limits(count_threads(None), user_api="openmp"):
            models = [make().fit(part.X, part.y, sample_weight=part.weight) for part in parts]
        seconds = time.perf_counter() - start
        scores = np.concatenate(
            [_standardised(model, part) for model, part in zip(models, parts, strict=True)]
        )
        found.append(
            Baseline(
                name,
                roc_auc(y, scores, weight),
                average_precision(y, scores, weight),
                seconds,
            )
        )
    return found


def _standardised(model: Any, part: JudgedRows) -> np.ndarray:
    scores: np.ndarray = model.decision_function(part.tested)
    return match_majority(MajorityScores.of(scores[part.y_tested != 1]))(scores)


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
