"""One estimator on one table: finite scores and a true status, or an error with a name."""

import traceback
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

# scikit-learn's own messages on what cannot be an X or y are named errors, too.
_OURS = (
    "rareclass",
    "sklearn/utils/validation",
    "sklearn/utils/_",
    "sklearn/base",
    "sklearn/utils/multiclass",
)


class FaultError(AssertionError):
    """What came of it that should not."""


def tried(estimator, X, y):
    """What came of fitting and scoring; raises `FaultError` where that was neither of the two."""
    model = clone(estimator)
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            model.fit(X, y)
            for rows in (X, _a_few(X)):
                _check_scores(model, rows)
        except FaultError:
            raise
        except (ValueError, TypeError, MemoryError) as error:
            return _named(error)
        except Exception as error:
            raise FaultError(traceback.format_exc(limit=-4)) from error
    _check_status(model, [each for each in caught if each.category is ConvergenceWarning])
    return "finite"


def _a_few(X):
    return X[:2] if not isinstance(X, list) and hasattr(X, "__getitem__") else X


def _check_scores(model, X):
    try:
        score = next(
            getattr(model, name) for name in ("score_samples", "decision_function", "predict_proba")
            if hasattr(model, name)
        )  # fmt: skip
        scores = np.asarray(score(X))
    except NotImplementedError as error:
        raise FaultError(str(error)) from error
    if not np.isfinite(scores).all():
        raise FaultError(f"scores that are not finite: {scores.ravel()[:5]}")
    predicted = np.asarray(model.predict(X))
    if len(predicted) != len(scores):
        raise FaultError("as many predictions as scores")


def _named(error):
    """An error of ours, or of scikit-learn's validation, with a sentence."""
    frames = traceback.extract_tb(error.__traceback__)
    where = frames[-1].filename
    if not any(part in where for part in _OURS) or len(str(error)) < 15:
        raise FaultError("".join(traceback.format_exception(error)[-4:])) from error
    return "named"


def _check_status(model, caught):
    status = getattr(model, "status_", None)
    if not isinstance(status, str):
        return
    optimality = getattr(model, "optimality_", 0.0)
    if status == "converged" and not np.isfinite(optimality):
        raise FaultError(f"converged, at an optimality of {optimality}")
    if status == "converged" and not np.isfinite(getattr(model, "objective_", 0.0)):
        raise FaultError("converged, at an objective that is not finite")
    if status != "converged" and not caught:
        raise FaultError(f"{status}, and nobody was warned")
