"""Scores of Dask collections: worked out where the parts are, when they are asked for.

Every method that takes rows alone takes a Dask array or DataFrame too, and gives a lazy collection
of the same parts: nothing runs before ``compute()``, and no row comes here. The model goes once to
each worker. Of a Spark DataFrame it is the same one with a column more (`estimators.spark`).
"""

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rareclass.rows.dask_parts import is_dask
from rareclass.rows.spark_columns import is_spark

_METHODS = ("score_samples", "decision_function", "predict", "_predict_proba", "transform")


class AnswersByPart:
    """Makes the methods of a class that take rows take collections of Dask and Spark, too."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _METHODS:
            method = getattr(cls, name, None)
            if isfunction(method) and not hasattr(method, "answers_by_part"):
                setattr(cls, name, _by_part(name, method))


def _by_part(name: str, method: Callable) -> Callable:
    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if is_dask(X):
            return _mapped(self, name, X)
        if is_spark(X):
            from rareclass.estimators.spark import with_scores  # needs an extra

            return with_scores(X, self, method=name.removeprefix("_"))
        return method(self, X, *args, **kwargs)

    answer.answers_by_part = True  # type: ignore[attr-defined]
    return answer


def _mapped(estimator: Any, name: str, X: Any) -> Any:
    from dask import delayed

    check_is_fitted(estimator)
    model = delayed(estimator, pure=False)
    like = _like(estimator, name)
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
        shape: dict[str, Any] = {"drop_axis": 1}
        if like.ndim == 2:
            shape = {"chunks": (X.chunks[0], (like.shape[1],))}
        return X.map_blocks(_of_part, model, name, like, dtype=like.dtype, meta=like, **shape)
    frame = _as_frame(like, X._meta.index[:0])
    return X.map_partitions(_of_frame, model, name, like, meta=frame)


def _like(estimator: Any, name: str) -> np.ndarray:
    """An answer for no rows: its type and columns."""
    if name == "predict":
        return np.asarray(estimator.classes_)[:0]
    if name == "_predict_proba":
        return np.empty((0, len(estimator.classes_)))
    if name == "transform":
        return np.empty((0, estimator._n_features_out))
    return np.empty(0)


def _of_part(part: Any, model: Any, name: str, like: np.ndarray) -> np.ndarray:
    return getattr(model, name)(part) if part.shape[0] else like


def _of_frame(part: Any, model: Any, name: str, like: np.ndarray) -> Any:
    return _as_frame(_of_part(part, model, name, like), part.index)


def _as_frame(answer: np.ndarray, index: Any) -> Any:
    import pandas as pd

    return (pd.Series if answer.ndim == 1 else pd.DataFrame)(answer, index=index)
