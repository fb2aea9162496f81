"""Rows that live somewhere, with their labels: what ``fit_rows`` takes."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from rareclass.rows.source import RowSource, as_source, is_table


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features wherever they live, labels and weights in memory.

    Made by `from_parquet`, `from_csv` and `from_arrays`; taken by ``RankRC.fit_rows``,
    ``RankRCCV.fit_rows`` and in place of X by ``score_samples``, ``predict`` and their like.
    ``dataclasses.replace(rows, y=rows.y == "U2R")`` is the same rows with other labels.

    Attributes
    ----------
    source : RowSource
        The features.
    y : ndarray of shape (n_rows,) or None
        The labels; None for rows that are only to be scored.
    sample_weight : ndarray of shape (n_rows,) or None
    feature_names : tuple of str or None
    """

    source: RowSource
    y: np.ndarray | None
    sample_weight: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.source.n_rows, self.source.n_features

    def __len__(self) -> int:
        return self.source.n_rows


def from_arrays(X: Any, y: Any, sample_weight: Any = None) -> LabelledRows:
    """Rows in memory, or in a memory-mapped array, as files give them; nothing is copied.

    Parameters
    ----------
    X : array, CSR matrix or table of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or None
    sample_weight : array-like of shape (n_rows,) or None

    Raises
    ------
    ValueError
        On values that are missing or infinite, naming row and column.

    Examples
    --------
    >>> from_arrays([[1.0, 2.0], [3.0, 4.0]], [0, 1]).shape
    (2, 2)
    """
    names = tuple(nw.from_native(X, eager_only=True).columns) if is_table(X) else None
    weight = None if sample_weight is None else np.asarray(sample_weight)
    return LabelledRows(as_source(X, names), None if y is None else np.asarray(y), weight, names)


def header(X: Any) -> Any:
    """What stands for `X` where only its columns are looked at: their number and names.

    Rows on disk become a table without rows, anything else stays as it is.
    """
    if isinstance(X, RowSource):
        return np.empty((0, X.n_features))
    if not isinstance(X, LabelledRows):
        return X
    if X.feature_names is None:
        return np.empty((0, X.source.n_features))
    return pa.table({name: pa.array([], pa.float64()) for name in X.feature_names})
