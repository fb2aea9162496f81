"""Rows that live anywhere, with their labels: the argument of ``fit_rows``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np
import pyarrow as pa

from rareclass.errors import ErrorKind, InputError
from rareclass.rows.source import HasSource, RowSource, as_source, is_dask, is_dask_array, is_table


@dataclass(frozen=True, eq=False)
class LabelledRows(HasSource):
    """Features wherever they live, labels and weights in memory.

    Made by `from_parquet`, `from_csv` and `from_arrays`; taken by ``RankRC.fit_rows``,
    ``RankRCCV.fit_rows`` and in place of X by ``score_samples``, ``predict`` and their like.
    ``dataclasses.replace(rows, y=rows.y == "U2R")`` is the same rows with other labels.

    Rows of a file hold a scratch file on disk until they are closed, by `close` or at the end of
    a ``with``, or garbage-collected. Results of `replace` share it.

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the scratch file; the features can no longer be read, labels stay."""
        self.source.close()

    @staticmethod
    def to_learn_from(rows: Any) -> "LabelledRows":
        """Return `rows` as they are, if ``fit_rows`` can learn from them.

        Raises `TypeError` for something else, such as a path or a table, and `InputError` for rows
        without labels.
        """
        if not isinstance(rows, LabelledRows):
            found = repr(rows) if isinstance(rows, str | Path) else f"a {type(rows).__name__}"
            raise TypeError(
                f"fit_rows takes rows with labels, not {found}. Make them of a file or folder: "
                "rareclass.rows.from_parquet(path, target='the column of labels'), or from_csv; "
                "arrays in memory go to fit(X, y)."
            )
        if rows.y is None:
            raise InputError(
                "These rows have no labels to learn from: y is None.",
                "Name their column: from_parquet(path, target='the column of labels'), from_csv "
                "likewise; from_arrays takes y.",
                ErrorKind.LABELS,
            )
        return rows


def from_arrays(X: Any, y: Any, sample_weight: Any = None) -> LabelledRows:
    """Rows in memory, or in a memory-mapped array; nothing is copied.

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
    """Stand-in for `X` where only the number and names of its columns count.

    Rows on disk become a table without rows; anything else stays as it is.
    """
    if isinstance(X, RowSource):
        return np.empty((0, X.n_features))
    if is_dask(X):  # the collection's meta: no rows, the same columns
        return np.empty((0, X.shape[1])) if is_dask_array(X) else X._meta
    if not isinstance(X, LabelledRows):
        return X
    if X.feature_names is None:
        return np.empty((0, X.source.n_features))
    return pa.table({name: pa.array([], pa.float64()) for name in X.feature_names})
