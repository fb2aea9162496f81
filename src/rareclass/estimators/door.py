"""What every estimator does at its door: columns looked at, rows made readable, settings taken."""

from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from rareclass.errors import InputError
from rareclass.estimators.by_part import AnswersByPart
from rareclass.estimators.notebook_html import ShowsFittedFacts
from rareclass.rows import LabelledRows, RowSource, as_source, header
from rareclass.rows.dask_parts import is_dask, is_delayed
from rareclass.rows.safe_squares import with_safe_squares

Settings = TypeVar("Settings")


class FitsRows(AnswersByPart, ShowsFittedFacts):
    """Learning from rows wherever they live: what every estimator of tables shares.

    Whoever inherits has ``fit``.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows in memory."""
        raise NotImplementedError

    def fit_rows(self, rows: LabelledRows) -> Self:
        """Learn from rows that live on disk, or anywhere: the same model as `fit` in memory.

        Parameters
        ----------
        rows : LabelledRows
            What `rareclass.rows.from_parquet`, `from_csv` or `from_arrays` gives: features,
            labels and weights. Only labels and weights are in memory, and what the method holds.

        Returns
        -------
        estimator
            This one.

        Notes
        -----
        Time: as `fit`, and one reading of the scratch file a pass over what memory cannot hold.
        `score_samples`, `predict` and `transform` take such rows in place of X.
        """
        rows = LabelledRows.to_learn_from(rows)
        rows.source.begin_fit()
        return self.fit(rows, rows.y, rows.sample_weight)


def read_features(
    estimator: BaseEstimator, X: Any, reset: bool = True, squares: bool = False
) -> RowSource:
    """The rows of X; its columns are remembered (`reset`), or must be those of before.

    `squares`: whether distances between rows are worked out; see `with_safe_squares`.
    """
    if is_delayed(X):
        raise InputError(
            "Delayed blocks of Dask do not say how many columns they have.",
            "Learn by fit_rows(rareclass.rows.from_dask(X, y)), score by part: "
            "dask.delayed(model).score_samples(block).",
        )
    if reset:
        validate_data(estimator, header(X), skip_check_array=True)
    if is_dask(X):
        from rareclass.rows.dask import from_dask  # needs an extra

        X = from_dask(X)
    source = as_source(X, getattr(estimator, "feature_names_in_", None))
    if not reset:  # what is no table at all is told first
        validate_data(estimator, header(X), reset=False, skip_check_array=True)
    if squares:
        names = getattr(estimator, "feature_names_in_", None)
        source = with_safe_squares(source, names, learns=reset)
    return source


def finite_scores(scores: Any) -> Any:
    """Scores as they are; `ValueError` where one is no number, naming its row. O(n_rows)."""
    if not isinstance(scores, np.ndarray):
        return scores
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(scores.sum()):
            return scores
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]}: its score is {scores[wrong[0]]}, beyond what floats hold. Scale the "
            "columns before fitting and scoring (sklearn.preprocessing.StandardScaler)."
        )
    return scores


def settings_of(kind: type[Settings], estimator: BaseEstimator) -> Settings:
    """The parameters of an estimator that a dataclass of settings has fields for."""
    names = [field.name for field in fields(kind) if field.init]  # type: ignore[arg-type]
    return kind(**{name: getattr(estimator, name) for name in names})


def same_columns(estimator: BaseEstimator, like: BaseEstimator) -> None:
    """Give an estimator the columns that another one was shown."""
    estimator.n_features_in_ = like.n_features_in_
    if hasattr(like, "feature_names_in_"):
        estimator.feature_names_in_ = like.feature_names_in_
