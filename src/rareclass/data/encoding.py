"""Typed tables to standardised numbers: skrub's encoders, then imputation and scaling."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from skrub import DatetimeEncoder, StringEncoder, TableVectorizer

from rareclass.data.columns import HIGH_CARDINALITY, Column

# Below this many rows the solver gets double precision; above, half the memory.
DOUBLE_PRECISION_ROWS = 100_000
TEXT_COMPONENTS = 30


class TableEncoder(BaseEstimator):
    """Turns typed columns into standardised numbers.

    Numbers pass; strings with few values get one column for each value; strings with many values
    get the rare class's share, estimated out of fold (section 6.3 of the RankRC paper); dates get
    year, month, day and total seconds; text gets letter groups. Then empty numbers become the
    median, with a marker column, and everything is standardised.

    Parameters
    ----------
    columns : sequence of Column
        The columns to use.
    random_state : int
        Seed of the folds of the target encoding and of the text's SVD.

    Attributes
    ----------
    vectorizer_, imputer_, scaler_
        The fitted parts.
    dtype_ : str
        float64 when fitted on fewer than 100,000 rows, else float32.
    feature_names_ : list of str
        Names of the encoded columns.
    """

    def __init__(self, columns: Sequence[Column], random_state: int = 0) -> None:
        self.columns = columns
        self.random_state = random_state

    def fit_transform(
        self,
        frame: pl.DataFrame,
        rare: NDArray[np.bool_],
        sample_weight: NDArray[np.float64] | None = None,
    ) -> NDArray[Any]:
        """Fit on typed rows and return them encoded, the target encoding out of fold.

        Parameters
        ----------
        frame : DataFrame
            The columns as `read_as_trained` gives them.
        rare : ndarray of bool
            Which rows are rare.
        sample_weight : ndarray, optional
            Weights for the means and deviations of the standardisation.
        """
        self.dtype_ = "float64" if frame.height < DOUBLE_PRECISION_ROWS else "float32"
        self.vectorizer_ = self._vectorizer(rare)
        self.imputer_ = SimpleImputer(
            strategy="median", add_indicator=True, keep_empty_features=True
        )
        self.scaler_ = StandardScaler(copy=False)
        with _expected_warnings_silenced():
            encoded = self.vectorizer_.fit_transform(_as_categories(frame), rare.astype(int))
            X = encoded.to_numpy().astype(self.dtype_, copy=False)
            X = self.imputer_.fit_transform(X)
            X = self.scaler_.fit_transform(X, sample_weight=sample_weight)
        self.feature_names_ = [
            str(name) for name in self.imputer_.get_feature_names_out(encoded.columns)
        ]
        return np.ascontiguousarray(X, dtype=self.dtype_)

    def transform(self, frame: pl.DataFrame) -> NDArray[Any]:
        """Return typed rows encoded; a value never seen in training is all zeros or the mean."""
        with _expected_warnings_silenced():
            encoded = self.vectorizer_.transform(_as_categories(frame))
            X = encoded.to_numpy().astype(self.dtype_, copy=False)
            X = self.scaler_.transform(self.imputer_.transform(X))
        return np.ascontiguousarray(X, dtype=self.dtype_)

    def count_unseen(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return how many cells of each category column hold a value not seen in training."""
        counts: dict[str, int] = {}
        for column in self.columns:
            encoder = self.vectorizer_.transformers_.get(column.name)
            if not isinstance(encoder, OneHotEncoder | TargetEncoder):
                continue
            known = [value for value in encoder.categories_[0] if isinstance(value, str)]
            cells = frame[column.name].drop_nulls()
            unseen = len(cells) - int(cells.is_in(known).sum())
            if unseen:
                counts[column.name] = unseen
        return counts

    def _vectorizer(self, rare: NDArray[np.bool_]) -> TableVectorizer:
        texts = [column.name for column in self.columns if column.kind == "text"]
        text_encoder = StringEncoder(n_components=TEXT_COMPONENTS, random_state=self.random_state)
        return TableVectorizer(
            cardinality_threshold=HIGH_CARDINALITY,
            low_cardinality=OneHotEncoder(
                drop="if_binary", dtype="float32", handle_unknown="ignore", sparse_output=False
            ),
            high_cardinality=TargetEncoder(target_type="binary", cv=self._folds(rare)),
            datetime=DatetimeEncoder(),
            specific_transformers=[(text_encoder, texts)] if texts else (),
            drop_null_fraction=None,
        )

    def _folds(self, rare: NDArray[np.bool_]) -> StratifiedKFold | KFold:
        fewest = int(min(rare.sum(), (~rare).sum()))
        if fewest < 2:
            return KFold(2, shuffle=True, random_state=self.random_state)
        return StratifiedKFold(min(5, fewest), shuffle=True, random_state=self.random_state)


class SparseEncoder(BaseEstimator):
    """Scales sparse rows column by column to unit deviation, without centring (zeros stay zeros).

    Parameters
    ----------
    zero_based : bool
        Whether the training file numbers its first feature 0.
    """

    def __init__(self, zero_based: bool) -> None:
        self.zero_based = zero_based

    def fit_transform(
        self,
        X: sparse.csr_matrix,
        rare: NDArray[np.bool_],
        sample_weight: NDArray[np.float64] | None = None,
    ) -> sparse.csr_matrix:
        """Fit on sparse rows and return them scaled."""
        self.scaler_ = StandardScaler(with_mean=False)
        return self.scaler_.fit_transform(X, sample_weight=sample_weight)

    def transform(self, X: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return sparse rows scaled."""
        return self.scaler_.transform(X)


def _as_categories(frame: pl.DataFrame) -> pl.DataFrame:
    """Mark words as categories, so that skrub does not guess again whether they are dates."""
    return frame.with_columns(pl.col(pl.String).cast(pl.Categorical))


@contextmanager
def _expected_warnings_silenced() -> Iterator[None]:
    with warnings.catch_warnings():
        # Unseen values are counted and reported by `count_unseen`.
        warnings.filterwarnings("ignore", message="Found unknown categories")
        # A column that is empty in a part of the rows is marked by the imputer.
        warnings.filterwarnings("ignore", message="Skipping features without any observed")
        yield
