"""Base classes of the estimators of tables, and the reading of their rows and settings.

`FitsRows` learns from rows wherever they live, and answers for collections of Dask;
`RankScorer` makes decisions, labels and probabilities from a rarity score.

A Dask array or DataFrame is answered by a lazy collection of the same parts: nothing runs before
``compute()``, no row comes here, and the model goes once to each worker.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import isfunction
from operator import attrgetter, methodcaller
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rareclass.decide.calibration import Calibration, LevelCalibration
from rareclass.decide.rarity_scores import TwoClassScorer
from rareclass.errors import ErrorKind, needed_for
from rareclass.machine import all_or_nothing, one_blas_thread
from rareclass.rows import LabelledRows, RowSource, as_source, header
from rareclass.rows.source import is_dask, is_delayed, with_safe_squares

_METHODS = ("score_samples", "decision_function", "predict", "_predict_proba", "transform")

# Methods that have been changed so already.
_CHANGED: set[Callable] = set()

Settings = TypeVar("Settings")


class FitsRows:
    """Learning from rows wherever they live; methods that take rows take Dask collections, too.

    Subclasses define ``fit``. It learns, and the methods answer, with `one_blas_thread`: the same
    bits on any number of cores. A ``fit`` that fails changes nothing.
    """

    # What a fit undoes. One that learns in steps keeps them at Ctrl-C, which is no Exception.
    _undoes: ClassVar[type[BaseException]] = BaseException

    @property
    def has_several(self) -> bool:
        """True where several classes are rare: decisions then have a column for each class."""
        return False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "partial_fit", *_METHODS):
            method = getattr(cls, name, None)
            if isfunction(method) and method not in _CHANGED:
                method = all_or_nothing(method, cls._undoes) if name == "fit" else method
                setattr(cls, name, _in_one_blas_thread(name, method))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows in memory."""
        raise NotImplementedError

    def fit_rows(self, rows: LabelledRows) -> Self:
        """Learn from rows that live on disk, or anywhere: the same model as `fit` in memory.

        Parameters
        ----------
        rows : LabelledRows
            What `rareclass.rows.from_table` or `from_arrays` gives: features,
            labels and weights. Only labels and weights are in memory, and what the method holds.

        Notes
        -----
        Time: as `fit`, and one reading of the scratch file a pass over what memory cannot hold.
        `score_samples`, `predict` and `transform` take such rows in place of X.
        """
        rows = LabelledRows.to_learn_from(rows)
        return self.fit(rows, rows.y, rows.sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


def _in_one_blas_thread(name: str, method: Callable) -> Callable:
    """Return the method, which answers for a collection of Dask part by part."""

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if name in _METHODS and is_dask(X):
            return _mapped(self, name, X)
        with one_blas_thread():
            return method(self, X, *args, **kwargs)

    _CHANGED.add(call)
    return call


def _mapped(estimator: Any, name: str, X: Any) -> Any:
    """Return the lazy collection of answers for the parts of a Dask array or DataFrame."""
    from dask import array, delayed

    check_is_fitted(estimator)
    model = delayed(estimator, pure=False)
    # An answer for no rows: its type and columns.
    like: np.ndarray = np.empty(0)
    if name == "predict":
        like = np.asarray(estimator.classes_)[:0]
    elif name == "decision_function" and estimator.has_several:
        like = np.empty((0, len(estimator.classes_)))
    elif name in ("_predict_proba", "transform"):
        is_transform = name == "transform"
        like = np.empty((0, estimator._n_features_out if is_transform else len(estimator.classes_)))
    if isinstance(X, array.Array):
        X = X.rechunk({1: -1})
        shape: dict[str, Any] = {"drop_axis": 1}
        if like.ndim == 2:
            shape = {"chunks": (X.chunks[0], (like.shape[1],))}
        return X.map_blocks(_of_part, model, name, like, dtype=like.dtype, meta=like, **shape)
    frame = _as_frame(like, X._meta.index[:0])
    return X.map_partitions(_of_frame, model, name, like, meta=frame)


def _of_part(part: Any, model: Any, name: str, like: np.ndarray) -> np.ndarray:
    return methodcaller(name, part)(model) if part.shape[0] else like


def _of_frame(part: Any, model: Any, name: str, like: np.ndarray) -> Any:
    return _as_frame(_of_part(part, model, name, like), part.index)


def _as_frame(answer: np.ndarray, index: Any) -> Any:
    with needed_for("Answers for a Dask DataFrame", "pandas"):
        import pandas as pd
    return (pd.Series if answer.ndim == 1 else pd.DataFrame)(answer, index=index)


def read_features(
    estimator: BaseEstimator, X: Any, reset: bool = True, squares: bool = False
) -> RowSource:
    """Rows of X; the estimator keeps their columns (`reset`), or checks them against those kept.

    `squares` says that distances between rows are worked out; see `with_safe_squares`.

    Raises `InputError` on delayed blocks of Dask, `ValueError` on other columns than those kept.
    """
    if is_delayed(X):
        raise ErrorKind.UNSUPPORTED.error(
            "Delayed blocks of Dask do not say how many columns they have.",
            "Learn by fit_rows(rareclass.rows.from_dask(X, y)), score by part: "
            "dask.delayed(model).score_samples(block).",
        )
    rows = X
    if is_dask(X):
        with needed_for("Learning from a Dask collection", "rareclass[dask]"):
            from rareclass.rows.dask import from_dask
        rows = from_dask(X)
    # What is no table at all is told first.
    source = as_source(rows, None if reset else vars(estimator).get("feature_names_in_"))
    if reset:
        _keep_columns(estimator, X)
    else:
        validate_data(estimator, header(X), reset=False, skip_check_array=True)
    names = vars(estimator).get("feature_names_in_")
    return with_safe_squares(source, names, learns=reset) if squares else source


def _keep_columns(estimator: BaseEstimator, X: Any) -> None:
    """Keep the number of columns, and their names where X has some."""
    if (type(X) is np.ndarray or issparse(X)) and X.ndim == 2:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    else:
        validate_data(estimator, header(X), skip_check_array=True)


def finite_scores(scores: Any) -> Any:
    """Return the scores; raise `ValueError` where one is not finite, naming its row. O(n_rows)."""
    if not isinstance(scores, np.ndarray):
        return scores
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(scores.sum()):
            return scores
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        row = int(wrong[0])
        raise ErrorKind.NOT_FINITE.error(
            f"row {row}: its score is {scores[row]}, beyond what floats hold.",
            "Scale the columns before fitting and scoring (sklearn.preprocessing.StandardScaler).",
            row=row,
        )
    return scores


def settings_of(kind: type[Settings], estimator: BaseEstimator) -> Settings:
    """Parameters of an estimator that a dataclass of settings has fields for."""
    parameters = vars(estimator)
    return kind(**{field.name: parameters[field.name] for field in fields(kind) if field.init})  # type: ignore[arg-type]


def learned(path: str, meaning: str) -> Any:
    """Make a learned attribute that another one holds, such as ``"_best.coef_"``."""
    return property(attrgetter(path), doc=meaning)


def same_columns(estimator: BaseEstimator, like: BaseEstimator) -> None:
    """Give an estimator the columns that another one was fitted on."""
    estimator.n_features_in_ = like.n_features_in_
    if "feature_names_in_" in vars(like):
        estimator.feature_names_in_ = like.feature_names_in_


# Weights whose ratios to the least are as near as this to whole numbers were copies.
_ROUNDING = 1e-9
_CALIBRATE = "Wrap it: rareclass.decide.CalibratedRanker(estimator).fit(X, y)."


def learn_calibration(
    y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None
) -> Calibration | None:
    """The map from held-out scores to probabilities; None where they hold one class only.

    Weights that were divided by the largest are made the copies again that they stood for.
    """
    y = np.asarray(y, dtype=bool)
    if weight is not None:
        counts = weight > 0.0
        y, scores, weight = y[counts], scores[counts], weight[counts]
        if len(weight):
            copies = weight / weight.min()
            whole = np.round(copies)
            weight = whole if (np.abs(copies - whole) <= _ROUNDING * whole).all() else copies
    if not len(y) or y.all() or not y.any():
        return None
    return Calibration.fit(y, scores, weight)


def learn_level_calibration(
    codes: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, n_levels: int
) -> LevelCalibration:
    """The maps from held-out scores to probabilities of levels 0 to n_levels - 1."""
    above: list[Calibration | float] = []
    for k in range(n_levels - 1):
        found = learn_calibration(codes > k, scores, weight)
        above.append(float(np.max(codes) > k) if found is None else found)
    return LevelCalibration(above)


def check_calibrated(estimator: Any, remedy: str) -> None:
    """Raise `AttributeError` where there are no probabilities, or fitting would not make them.

    Estimators that always keep a calibration map say so by ``_calibrates``.
    """
    if getattr(estimator, "calibration_", None) is not None:
        return
    if estimator._calibrates and "classes_" not in vars(estimator):
        return
    raise AttributeError(
        f"this {type(estimator).__name__} has no probabilities: no scores of held-out rows were "
        f"kept. {remedy}"
    )


class RankScorer(TwoClassScorer):
    """Decisions, labels, probabilities and an AUC from a rarity score.

    Subclasses define ``score_samples``, ``offset_``, ``classes_`` and ``pos_label_``, and where
    held-out scores were kept a map ``calibration_`` from scores to probabilities.
    """

    _calibrates = False
    calibration_: Calibration | None

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """Probability of each of ``classes_``, from the score and a map of held-out scores.

        ``predict_proba(X)`` takes what `score_samples` takes, and gives an ndarray of shape
        (n_rows, 2), strictly between 0 and 1, at the base rate of the training rows, by weight, or
        the one of `set_prevalence`. There only where rows were held out while fitting:
        `rareclass.decide.CalibratedRanker` gives probabilities to any other estimator. `predict`
        goes by its own threshold, not by one half.
        """
        # A property, as an estimator without probabilities is told by having no such attribute.
        check_calibrated(self, _CALIBRATE)
        return self._predict_proba

    def set_prevalence(
        self, prevalence: float | None = None, majority_sampling_rate: float | None = None
    ) -> Self:
        """State the base rate of `predict_proba`; nothing is learned again.

        Parameters and errors as of `rareclass.decide.at_prevalence`; without any, the base rate of
        the training rows, by weight. Raises `AttributeError` where there are no probabilities.
        Returns the estimator.
        """
        check_calibrated(self, _CALIBRATE)
        check_is_fitted(self)
        assert self.calibration_ is not None
        keeps: Any = vars(self).get("best_estimator_", self)  # of a search
        keeps.calibration_ = self.calibration_.at(prevalence, majority_sampling_rate)
        return self

    def _predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        assert self.calibration_ is not None
        return self._by_class(self.calibration_(self.score_samples(X)))

    _predict_proba.__name__ = "predict_proba"  # by which scikit-learn takes one of its columns

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance from the threshold, above 0 where ``classes_[1]`` is predicted.

        This is ``score_samples(X) - offset_``, negated when the rare class is ``classes_[0]``:
        scikit-learn's scorers expect larger values for the class that sorts last.
        """
        return self._towards_last(self.score_samples(X) - self.offset_)
