"""Rows of numbers, dense or sparse: stacked, and grouped where they are equal.

Tables with cells of all kinds are grouped by polars, and rows on disk by hashes (room `fit`).
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse


def stacked(parts: Sequence[Any]) -> Any:
    """Stack the rows of several parts: dense where all parts are, else CSR."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


def canonical(X: Any) -> Any:
    """Return rows in canonical form: CSR ones by column, without zeros or duplicates."""
    if sparse.issparse(X) and not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X


def equal_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each group of equal rows, and each row's group, in no order.

    Cost: O(n log n) comparisons of dense rows; a hash of 128 bits for each CSR row.

    Examples
    --------
    >>> first, group = equal_rows(np.array([[2.0, 0.0], [1.0, 1.0], [2.0, -0.0]]))
    >>> first[group].tolist()
    [0, 1, 0]
    """
    if not sparse.issparse(X):
        _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
        return first, group.ravel()
    X = canonical(X)
    group_of: dict[bytes, int] = {}
    group = np.empty(X.shape[0], dtype=np.int64)
    for row, (start, stop) in enumerate(pairwise(X.indptr)):
        digest = hashlib.blake2b(X.indices[start:stop].tobytes(), digest_size=16)
        digest.update(X.data[start:stop].tobytes())
        group[row] = group_of.setdefault(digest.digest(), len(group_of))
    return np.unique(group, return_index=True)[1], group


def order_of_values(X: Any) -> np.ndarray:
    """Order distinct rows by their values alone; returns row numbers."""
    if not sparse.issparse(X):
        return np.unique(X, axis=0, return_index=True)[1]
    X = canonical(X)
    cuts = pairwise(X.indptr)
    keys = [(tuple(X.indices[a:b]), tuple(X.data[a:b])) for a, b in cuts]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
