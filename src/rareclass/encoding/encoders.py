"""What stands before a model and makes numbers of typed columns or sparse rows."""

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import (
    MaxAbsScaler,
    OneHotEncoder,
    StandardScaler,
    TargetEncoder,
    normalize,
)

from rareclass.encoding.bounded_numbers import BoundedNumbers
from rareclass.tables.columns import HIGH_CARDINALITY, Column, Kind

if TYPE_CHECKING:
    from skrub import TableVectorizer


# Below this many rows the solver gets double precision; above, half the memory.
DOUBLE_PRECISION_ROWS = 100_000
TEXT_COMPONENTS = 30
# Year, month, day, hour, total seconds.
_DATE_PARTS = 5
# A standardised number beyond this would overflow in a kernel of 32 bits.
FARTHEST = 1e15
# float32 and the scaler round: bounds of training are met to this.
_ROUNDING = 1e-5
# Rows that store fewer of their features than this are brought to unit length.
SPARSE_SHARE = 0.1


class TableEncoder(BaseEstimator):
    """Turns typed columns into standardised numbers.

    Numbers are centred in float64; strings with few values get one column for each value; strings
    with many values get the mean of the target, which is the rare class's share where rare rows
    are 1 and others 0, estimated out of fold (section 6.3 of the RankRC paper); dates get year,
    month, day, hour and total seconds; text gets letter groups. Then empty numbers become the
    median, with a marker column, and everything is standardised.

    With ``numbers="quantiles"`` a number, or the total seconds of a date, is the normal quantile of
    its rank in training (`BoundedNumbers`) in place of its distance from the median: only the order
    counts, and no far value, or long tail, decides alone (docs/decisions/0006).

    A weight counts as copies in the means and deviations of the standardisation only: medians,
    means of the target and letter groups are those of the rows given, each taken once.

    Of centred numbers `centre_` and `spread_` are median and root mean square distance from it, of
    quantiles `bounded_` is what makes them; `vectorizer_` encodes all other columns, `imputer_` and
    `scaler_` follow; `low_` and `high_` are the ends of each encoded number and part of a date in
    training.
    `dtype_` is float64 when fitted on fewer than 100,000 rows, else float32: numbers and total
    seconds are centred and scaled in float64 before they become that; what skrub makes of the other
    columns has been through float32 in any case. The seed is that of the folds of the target
    encoding and of the text's SVD.
    """

    def __init__(
        self, columns: Sequence[Column], random_state: int = 0, numbers: str = "centred"
    ) -> None:
        self.columns = columns
        self.random_state = random_state
        self.numbers = numbers

    def fit_transform(
        self,
        frame: pl.DataFrame,
        y: NDArray[Any],
        sample_weight: NDArray[np.float64] | None = None,
        n_rows: int | None = None,
    ) -> NDArray[Any]:
        """Fit on typed rows and return them encoded, the target encoding out of fold.

        `frame` has the columns as `read_as_trained` gives them, y which rows are rare, or the
        position of each row's level. The weights are for the means and deviations of the
        standardisation. `n_rows` are those of the table that `frame` is a sample of; by default it
        is all of it.
        """
        n_rows = frame.height if n_rows is None else n_rows
        self.dtype_ = "float64" if n_rows < DOUBLE_PRECISION_ROWS else "float32"
        numbers, others = self._split(frame)
        if self._has_quantiles:
            self.bounded_ = BoundedNumbers("quantiles").fit(_cells(numbers), sample_weight)
        else:
            centred = [_centre_and_spread(cells) for cells in numbers]
            self.centre_ = np.array([centre for centre, _ in centred])
            self.spread_ = np.array([spread for _, spread in centred])
        self.vectorizer_ = self._vectorizer(y) if others.width else None
        self.imputer_ = SimpleImputer(
            strategy="median", add_indicator=True, keep_empty_features=True
        )
        self.scaler_ = StandardScaler(copy=False)
        with _expected_warnings_silenced():
            if self.vectorizer_ is not None:
                others = self.vectorizer_.fit_transform(others, y.astype(int))
            X = self.imputer_.fit_transform(self._join(numbers, others))
            X = self.scaler_.fit_transform(X, sample_weight=sample_weight)
        names = self.imputer_.get_feature_names_out([*numbers.columns, *others.columns])
        self.feature_names_ = [str(name) for name in names]
        bounded = self._are_numbers(numbers.width)
        self.low_ = np.where(bounded, X.min(axis=0), -np.inf)
        self.high_ = np.where(bounded, X.max(axis=0), np.inf)
        return np.ascontiguousarray(X, dtype=self.dtype_)

    def transform(self, frame: pl.DataFrame) -> NDArray[Any]:
        """Return typed rows encoded; a value never seen in training is all zeros or the mean.

        A number beyond those of training is the nearest of them, as is a date: a row that is far
        from all of training would have the score of no row, which may be above the majority's.
        """
        numbers, others = self._split(frame)
        if self.vectorizer_ is not None:
            with _expected_warnings_silenced():
                others = self.vectorizer_.transform(others)
        X = self._imputed_and_scaled(self._join(numbers, others))
        if hasattr(self, "low_"):  # models of 0.1.0 have none
            np.clip(X, self.low_, self.high_, out=X)
        return np.ascontiguousarray(X, dtype=self.dtype_)

    def count_unseen(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return how many cells of each category column hold a value not seen in training."""
        counts: dict[str, int] = {}
        if self.vectorizer_ is None:
            return counts
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

    def count_outside(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return how many cells of each column of numbers lie beyond those of training.

        Only columns that have some. Dates are not counted: later rows have later ones.
        """
        counts: dict[str, int] = {}
        if not hasattr(self, "low_"):  # models of 0.1.0 have none
            return counts
        numbers, _ = self._split(frame)
        names = {column.name for column in self.columns if column.reads_as == "number"}
        if self._has_quantiles:
            beyond = zip(numbers.columns, self.bounded_.n_outside(_cells(numbers)), strict=True)
            return {name: int(n) for name, n in beyond if n and name in names}
        for place, cells in enumerate(numbers):
            if cells.name not in names:
                continue
            distance = (cells.to_numpy() - self.centre_[place]) / self.spread_[place]
            scaled = (distance - self.scaler_.mean_[place]) / self.scaler_.scale_[place]
            low, high = self.low_[place], self.high_[place]
            rounding = _ROUNDING * (1.0 + max(abs(low), abs(high)))
            with np.errstate(invalid="ignore"):
                beyond = (scaled < low - rounding) | (scaled > high + rounding)
            if beyond.any():
                counts[cells.name] = int(np.count_nonzero(beyond))
        return counts

    def encoded_words(self, name: str) -> tuple[list[str], NDArray[Any], list[int]]:
        """What each word of a column becomes before empty numbers are filled.

        The words that training knew; a row for each of them, one for an empty cell and one for a
        word that it did not know; and where these numbers stand among those of all such columns.
        """
        vectorizer = self.vectorizer_
        assert vectorizer is not None
        categories = getattr(vectorizer.transformers_[name], "categories_", [[]])[0]
        known = [word for word in categories if isinstance(word, str)]
        unseen = "".join(known) + "?"  # longer than any of them
        words = pl.Series(name, [*known, None, unseen], dtype=pl.String)
        rows = [
            words if column.name == name else pl.Series(column.name, [None] * len(words), pl.String)
            for column in self.columns
            if column.reads_as == "string"
        ]
        with _expected_warnings_silenced():
            encoded = vectorizer.transform(_as_categories(pl.DataFrame(rows)))
        outputs = vectorizer.input_to_outputs_[name]
        table = np.column_stack([encoded[output].to_numpy() for output in outputs])
        return known, table.astype(np.float64), [encoded.columns.index(each) for each in outputs]

    @property
    def _has_quantiles(self) -> bool:
        return getattr(self, "numbers", "centred") == "quantiles"  # models of 0.1.0 have none

    @property
    def feature_columns(self) -> list[str]:
        """The column of the table that each encoded feature is of."""
        columns = [column.name for column in self.columns if column.reads_as != "string"]
        if self.vectorizer_ is not None:
            inputs = self.vectorizer_.input_to_outputs_.items()
            of_output = {output: name for name, outputs in inputs for output in outputs}
            names = self.feature_names_[len(columns) : self.imputer_.n_features_in_]
            columns += [of_output[name] for name in names]
        markers = self.imputer_.indicator_.features_
        return columns + [columns[place] for place in markers]

    def _are_numbers(self, n_numbers: int) -> NDArray[np.bool_]:
        """Which encoded columns are numbers or parts of dates: what may lie beyond training."""
        dates = tuple(f"{column.name}_" for column in self.columns if column.kind == "date")
        return np.array(
            [
                place < n_numbers or bool(dates and name.startswith(dates))
                for place, name in enumerate(self.feature_names_)
            ]
        )

    def _split(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the numbers, total seconds of dates among them, and what skrub encodes."""
        if all(column.reads_as == "number" for column in self.columns):
            names = [column.name for column in self.columns]
            return frame if frame.columns == names else frame[names], pl.DataFrame()
        numbers = [
            frame[column.name]
            if column.reads_as == "number"
            else _total_seconds(frame[column.name])
            for column in self.columns
            if column.reads_as != "string"
        ]
        others = [frame[column.name] for column in self.columns if column.reads_as != "number"]
        words = _as_categories(pl.DataFrame(others)) if others else pl.DataFrame()
        return pl.DataFrame(numbers), words

    def _join(self, numbers: pl.DataFrame, encoded: pl.DataFrame) -> NDArray[Any]:
        """Return centred numbers and encoded columns side by side, NaN where empty."""
        n_rows = max(numbers.height, encoded.height)
        X = np.empty((n_rows, numbers.width + encoded.width), dtype=self.dtype_)
        if self._has_quantiles:
            X[:, : numbers.width] = self.bounded_.transform(_cells(numbers))
        else:
            for position, cells in enumerate(numbers):
                distance = (cells.to_numpy() - self.centre_[position]) / self.spread_[position]
                X[:, position] = np.clip(distance, -FARTHEST, FARTHEST)
        for position, cells in enumerate(encoded, numbers.width):
            X[:, position] = cells.to_numpy()
        return X

    def _imputed_and_scaled(self, X: NDArray[Any]) -> NDArray[Any]:
        """What `imputer_` and `scaler_` make of X, which may be written to.

        Their own checks of X take longer than a row does.
        """
        is_empty = np.isnan(X)
        np.copyto(X, self.imputer_.statistics_, where=is_empty, casting="same_kind")
        markers = self.imputer_.indicator_.features_
        if len(markers):
            X = np.hstack([X, is_empty[:, markers].astype(X.dtype)])
        X -= self.scaler_.mean_.astype(X.dtype)
        X /= self.scaler_.scale_.astype(X.dtype)
        return X

    def _vectorizer(self, y: NDArray[Any]) -> "TableVectorizer":
        make_skrub_importable()
        from skrub import DatetimeEncoder, StringEncoder, TableVectorizer

        texts = [column.name for column in self.columns if column.kind == "text"]
        text_encoder = StringEncoder(n_components=TEXT_COMPONENTS, random_state=self.random_state)
        target_type = "binary" if len(np.unique(y)) <= 2 else "continuous"
        return TableVectorizer(
            cardinality_threshold=HIGH_CARDINALITY,
            low_cardinality=OneHotEncoder(
                drop="if_binary", dtype="float32", handle_unknown="ignore", sparse_output=False
            ),
            high_cardinality=TargetEncoder(target_type=target_type, cv=self._folds(y)),
            # Its total seconds are rounded to float32: minutes apart become equal.
            datetime=DatetimeEncoder(add_total_seconds=False),
            specific_transformers=[(text_encoder, texts)] if texts else (),
            drop_null_fraction=None,
        )

    def _folds(self, y: NDArray[Any]) -> StratifiedKFold | KFold:
        """Folds that all hold rows of the two most frequent labels."""
        second = int(np.sort(np.bincount(y.astype(int), minlength=2))[-2])
        if second < 2:
            return KFold(2, shuffle=True, random_state=self.random_state)
        return StratifiedKFold(min(5, second), shuffle=True, random_state=self.random_state)


def make_skrub_importable() -> None:
    """Let skrub be imported where HOME is no place to write to.

    It makes a folder for its example data there when it is imported, which is not at the top of
    this file either: skrub brings matplotlib and more, and a table of numbers is scored without.
    """
    if os.environ.get("SKB_DATA_DIRECTORY") or "skrub" in sys.modules:
        return
    try:
        (Path.home() / "skrub_data").mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # unwritable, or there is no HOME
        os.environ["SKB_DATA_DIRECTORY"] = tempfile.gettempdir()


def encoded_width(column: Column) -> int:
    """Return about how many numbers a column becomes."""
    if not column.is_used:
        return 0
    marker = int(column.n_missing > 0)
    if column.kind == "text":
        return TEXT_COMPONENTS
    if column.kind == "date":
        return _DATE_PARTS * (1 + marker)
    return 1 + marker if column.kind != "category" or column.n_distinct == 2 else column.n_distinct


class SparseEncoder(BaseEstimator):
    """Scales sparse rows without centring, so that zeros stay zeros.

    Columns are divided by their largest absolute value. Rows that store fewer than a tenth of
    their features, as text does, then get unit length: a long document is not far from everything
    (docs/decisions/0008-sparse-rows.md).

    `zero_based`: the training file numbers its first feature 0. `scaler_` has the largest absolute
    values; `unit_rows_` says whether rows get unit length.
    """

    columns: tuple[Column, ...] = ()  # sparse rows have none that are named

    def __init__(self, zero_based: bool) -> None:
        self.zero_based = zero_based

    def fit_transform(
        self,
        X: sparse.csr_matrix,
        y: NDArray[Any],
        sample_weight: NDArray[np.float64] | None = None,
    ) -> sparse.csr_matrix:
        """Fit on sparse rows and return them scaled; classes and weights do not matter."""
        self.scaler_ = MaxAbsScaler().fit(X)
        self.unit_rows_ = bool(X.nnz < SPARSE_SHARE * X.shape[0] * X.shape[1])
        return self.transform(X)

    def count_unseen(self, rows: object) -> dict[str, int]:
        """Return nothing: sparse rows hold no categories."""
        return {}

    def count_outside(self, rows: object) -> dict[str, int]:
        """Return nothing: sparse rows have no named columns."""
        return {}

    def transform(self, X: sparse.csr_matrix) -> sparse.csr_matrix:
        """Return sparse rows scaled; features that training did not have are left out."""
        scaled = self.scaler_.transform(X)
        return normalize(scaled, copy=False) if self.unit_rows_ else scaled


def _total_seconds(dates: pl.Series) -> pl.Series:
    seconds = dates.dt.timestamp("us").cast(pl.Float64) / 1e6
    return seconds.alias(f"{dates.name}_total_seconds")


def _cells(numbers: pl.DataFrame) -> NDArray[np.float64]:
    """Numbers as a matrix, NaN where empty: (n_rows, n_columns), F order."""
    return numbers.to_numpy(order="fortran").astype(np.float64, copy=False)


def _centre_and_spread(cells: pl.Series) -> tuple[float, float]:
    """Return the median and the root mean square distance from it, 0 and 1 for no cells."""
    values = cells.drop_nulls().to_numpy()
    centre = float(np.median(values)) if len(values) else 0.0
    spread = float(np.sqrt(np.mean((values - centre) ** 2))) if len(values) else 0.0
    return centre, spread if spread > 0 else 1.0


def _as_categories(frame: pl.DataFrame) -> pl.DataFrame:
    """Mark words as categories, so that skrub does not guess again whether they are dates."""
    if not frame.width:
        return frame
    return frame.with_columns(pl.col(pl.String).cast(pl.Categorical))


@contextmanager
def _expected_warnings_silenced() -> Iterator[None]:
    with warnings.catch_warnings():
        # Unseen values are counted and reported by `count_unseen`.
        warnings.filterwarnings("ignore", message="Found unknown categories")
        # A column that is empty in a part of the rows is marked by the imputer.
        warnings.filterwarnings("ignore", message="Skipping features without any observed")
        # A level of few rows is not in every fold.
        warnings.filterwarnings("ignore", message="The least populated class in y has only")
        yield


_TREATMENTS: dict[Kind, str] = {
    "number": "value, rank, logarithm",
    "category": "commonest values, log-odds",
    "high-cardinality category": "commonest values, log-odds",
    "date": "hour, weekday, month, day",
}


class TypedColumns(BaseEstimator):
    """Stands where an encoder does and hands typed columns on.

    Numbers stay float64 and dates datetimes. Words that are categories become a type that says so:
    what was read as words stays words to the model, even if it looks like numbers or is different
    in every row.

    `columns` are those that are learned from.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def fit_transform(
        self, frame: pl.DataFrame, y: Any = None, sample_weight: Any = None
    ) -> pl.DataFrame:
        """Return the typed rows; nothing is learned."""
        return self.transform(frame)

    def transform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return rows, typed as `read_as_trained` types them, with categories as such."""
        categories = [
            pl.col(column.name).cast(pl.Categorical)
            for column in self.columns
            if column.reads_as == "string" and column.kind != "text"
        ]
        return frame.with_columns(categories)

    def count_unseen(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return nothing: the model knows what it saw."""
        return {}

    def count_outside(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return nothing: the model knows the range of its numbers."""
        return {}


def treated_by_model(column: Column) -> Column:
    """Return the column with what a model that encodes tables itself does with it.

    >>> treated_by_model(Column("a", "number", "standardised", "number", n_missing=3)).treatment
    'value, rank, logarithm; empty: marked'
    """
    if column.kind not in _TREATMENTS:
        return column
    treatment = _TREATMENTS[column.kind]
    if column.n_missing and column.kind != "text":
        treatment += "; empty: a value too" if column.reads_as == "string" else "; empty: marked"
    return replace(column, treatment=treatment)
