"""Questions of wrappers to any estimator: one score a row, and the columns that its fit takes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.utils.validation import has_fit_parameter

from rareclass.errors import ErrorKind, InputError
from rareclass.labels.two_classes import plain
from rareclass.metrics.scored_classes import FloatArray


def rarity_scores(estimator: Any, X: Any, pos_label: Any) -> FloatArray:
    """Scores of rows by a fitted estimator, higher where `pos_label` is likelier; shape (n_rows,).

    Taken are, in this order, what is there: ``score_samples`` of an estimator with a
    ``pos_label_`` (a ranker of this package), ``decision_function``, ``predict_proba``. Outlier
    detectors of scikit-learn score inliers high: theirs are turned.

    Raises `InputError` where there is none of them, the estimator does not know `pos_label`, or a
    score is not finite, naming the row.
    """
    name = type(estimator).__name__
    if is_ranker(estimator):
        sign = 1.0 if last_step(estimator).pos_label_ == pos_label else -1.0
        scores = sign * np.asarray(estimator.score_samples(X), dtype=np.float64)
    elif scores_inliers_high(estimator) and hasattr(estimator, "decision_function"):
        scores = -np.asarray(estimator.decision_function(X), dtype=np.float64)
    elif hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        place = _place(estimator, pos_label)
        scores = scores[:, place] if scores.ndim == 2 else (scores if place else -scores)
    elif hasattr(estimator, "predict_proba"):
        probability = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        scores = probability[:, _place(estimator, pos_label)]
        outside = ~((scores >= 0.0) & (scores <= 1.0))
        if outside.any():
            row = int(outside.argmax())
            raise InputError(
                f"predict_proba of {name} gives row {row} the probability {scores[row]!r}, which "
                "is not between 0 and 1.",
                "Use its decision_function, or another classifier.",
                ErrorKind.CELL,
                row=row,
                value=scores[row],
            )
    else:
        raise InputError(
            f"{name} has no decision_function, predict_proba or score_samples: there is nothing "
            "to make a probability of.",
            "Use a classifier that has one of them.",
            ErrorKind.UNSUPPORTED,
        )
    bad = ~np.isfinite(scores)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"{name} scores row {row} {scores[row]!r}, which is no finite number.",
            "Look at what the estimator learned, and at that row.",
            ErrorKind.NOT_FINITE,
            row=row,
            value=scores[row],
        )
    return scores


def fit_columns(estimator: Any, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the columns that the estimator's fit takes, by the name that it has for them.

    In a pipeline these are columns of the last step. A column that is None is left out.
    """
    steps = getattr(estimator, "steps", None)
    prefix = f"{steps[-1][0]}__" if steps else ""
    return {
        prefix + name: np.asarray(column)
        for name, column in columns.items()
        if column is not None and has_fit_parameter(last_step(estimator), name)
    }


def is_ranker(estimator: Any) -> bool:
    """Return whether only the order of its scores is trained, as by the rankers of this package."""
    last = last_step(estimator)
    return hasattr(last, "pos_label_") and hasattr(last, "score_samples")


def scores_inliers_high(estimator: Any) -> bool:
    """Return whether it is an outlier detector of scikit-learn, such as `IsolationForest`."""
    return is_outlier_detector(estimator) and not is_ranker(estimator)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline; another estimator itself."""
    steps = getattr(estimator, "steps", None)
    return steps[-1][1] if steps else estimator


def _place(estimator: Any, pos_label: Any) -> int:
    classes = list(getattr(estimator, "classes_", [False, True]))
    if len(classes) != 2 or pos_label not in classes:
        raise InputError(
            f"{type(estimator).__name__} learned the labels {[plain(each) for each in classes]}, "
            f"which are not two of which one is {plain(pos_label)!r}.",
            "Fit it on rows of both classes.",
            ErrorKind.LABELS,
        )
    return classes.index(pos_label)
