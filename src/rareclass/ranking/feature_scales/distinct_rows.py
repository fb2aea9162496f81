"""The rows that scales are learned from: distinct ones, in an order of their own, never too many.

A row is known by a hash of its values. Copies are one row with their summed weight, and rows come
in the order of their hashes, which is as good as drawn: folds and parts that are taken by position
depend on neither the order of the rows nor on whether a row is repeated or weighted. That order,
and that rows come in blocks, is why copies are not told by `equal_rows`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from rareclass.folds.majority_part import DrawnRows, weight_for_all
from rareclass.ranking.targets import RankingTarget
from rareclass.ranking.training_rows import some_rows
from rareclass.rows import Block, RowSource, rows_of

_BLOCK_BYTES = 2**24
# Odd multipliers of a mixing step that spreads every bit (MurmurHash3's finaliser).
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


def row_hashes(X: Any) -> np.ndarray:
    """A number for each row that depends on its values alone: uint64 of shape (n_rows,).

    float32 and float64, dense and CSR rows of equal values have equal numbers.
    """
    # The bits of small whole numbers are nearly all zero: they are mixed before columns tell them
    # apart, and again so that sums do not cancel.
    rng = np.random.default_rng(0)
    columns = rng.integers(1, 2**63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if not sparse.issparse(X):
        return _mixed(_mixed(_bits(X)) * columns).sum(axis=1, dtype=np.uint64)
    X = sparse.csr_array(X)
    values = _mixed(_mixed(_bits(X.data)) * columns[X.indices])
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _bits(values: np.ndarray) -> np.ndarray:
    # Adding zero makes -0.0 the 0.0 that it equals, whose bits are all zero.
    return (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Zero stays zero, so that a CSR row need not list its zeros."""
    numbers = (numbers ^ (numbers >> _SHIFT)) * _FIRST
    numbers = (numbers ^ (numbers >> _SHIFT)) * _SECOND
    return numbers ^ (numbers >> _SHIFT)


def distinct_rows(
    source: RowSource, target: RankingTarget, most_held: int, most_majority: Callable[[int], int]
) -> tuple[RowSource, RankingTarget]:
    """Distinct rows in memory, in float64; each class weighs what it did.

    Rows that are held come first. There are no more of them than `most_held`, those of the
    smallest hashes, and of the majority than `most_majority` of the number that are held. Cost:
    one reading of the rows, in order, and one of those that are kept.
    """
    labels = target.labels
    size = max(1, _BLOCK_BYTES // (8 * source.n_features))
    hashes = rows_of(source, block_rows=size, n_jobs=1).map(_hashes_of_block)
    keys = _apart_by_label(hashes[labels.rare], target.held_code)
    held = _merged(keys, labels.rare_weight, most_held)
    most = most_majority(len(held.rows))
    rest = _merged(hashes[labels.majority], labels.majority_weight, most)
    return some_rows(source, target, held, rest, np.float64)


def _hashes_of_block(block: Block) -> np.ndarray:
    return row_hashes(block.X)


def _apart_by_label(hashes: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Hashes that differ, too, where equal rows have different labels."""
    if (code == code[0]).all():
        return hashes
    return _mixed(hashes ^ _mixed(code.astype(np.uint64) + np.uint64(1)))


def _merged(hashes: np.ndarray, weight: np.ndarray | None, most: int) -> DrawnRows:
    """Positions of one row of each hash, in the order of the hashes, and the weight of its copies.

    The weights of the rows that are kept sum to the weight of all rows.
    """
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.bincount(which, weight, minlength=len(first)).astype(np.float64)
    return DrawnRows(first[:most], weight_for_all(summed, np.arange(len(first))[:most]))
