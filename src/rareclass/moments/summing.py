"""Moments of rows wherever they live: one sum over their blocks."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.moments._sums_jit import central_sums, column_sums
from rareclass.moments.moments import Moments
from rareclass.rows import Block, Rows, RowSource, as_source, rows_of

# Rows that say around which point to sum.
_FIRST_ROWS = 1024
# A dense block and its centred copy stay in cache; compressed rows are only read.
_BLOCK_BYTES = 2**20
_MOST_BLOCK_ROWS = 65536
_SPARSE_BLOCK_ROWS = 16384
_LEAST_BLOCK_ROWS = 256
# Sums of squares that leave less than this share have lost digits that others wait for.
_LOST = 1e-4
# Means of equal numbers differ from them by less than this share.
_EQUAL = 1e-9
# The d x d sums of blocks that wait to be added: more than this and blocks go one by one.
_WAITING_BYTES = 2**29
_BLOCK_GROUPS = 16


class Wanted(NamedTuple):
    """Which second moments are to be summed."""

    scatter: bool = False  # the whole matrix
    # with it, the third and fourth moments that Ledoit and Wolf's shrinkage needs
    fourth: bool = False
    n_probes: int = 0  # columns of the sketch; 0 for none
    seed: int = 0  # of its directions: moments that are to be merged need the same

    def probes(self, n_features: int) -> np.ndarray:
        """Random directions, shape (n_features, n_probes)."""
        if not self.n_probes:
            return np.zeros((n_features, 0))
        rng = np.random.default_rng(self.seed)
        return rng.standard_normal((n_features, min(self.n_probes, n_features)))


def moments_of(
    source: RowSource,
    wanted: Wanted,
    index: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> Moments:
    """Moments of chosen rows in one pass.

    The rows of `index`, None for all, have a `weight` each: 0 leaves a row out, None means 1. The
    result does not depend on the number of threads.

    Time: dense rows O(n d) for the diagonal and O(n d^2) for the scatter; compressed ones by their
    stored cells. Memory: a block a thread, and d^2 numbers a thread for the scatter.

    Sums are taken around a point near the mean, so that a feature with mean 1e8 and variance 1
    loses nothing. Compressed rows are centred without being filled.
    """
    d = source.n_features
    n_rows = source.n_rows if index is None else len(index)
    if wanted.scatter and 8 * d * d * _BLOCK_GROUPS > _WAITING_BYTES:
        n_jobs = 1
    rows = rows_of(source, index, weight, block_rows=_block_rows(source, wanted), n_jobs=n_jobs)
    if not n_rows or (weight is not None and not weight.any()):
        return _nothing(d, wanted)
    probes = wanted.probes(d)
    if source.is_sparse:
        return _sparse_moments(rows, wanted, probes)
    shift = _middle(np.asarray(_first(rows), dtype=np.float64))
    for again in (True, False):
        n, total, first, second, *rest = rows.sum(_dense_sums, shift, wanted, probes)
        mean = first / total
        variance_sum = second - total * mean**2
        if not (again and (variance_sum < _LOST * second).any()):
            break
        # The first rows, of little weight, were far from the mean: once more, from the mean.
        shift = shift + mean
    return _about_mean(n, total, mean, shift, variance_sum, probes, *rest)


def moments_of_array(X: Any, wanted: Wanted | None = None, weight: Any = None) -> Moments:
    """Moments of an array, CSR matrix or table.

    Examples
    --------
    >>> moments_of_array([[1.0, 0.0], [3.0, 0.0]]).variance.tolist()
    [1.0, 0.0]
    """
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    return moments_of(as_source(X), wanted or Wanted(scatter=True), None, weight)


def _nothing(d: int, wanted: Wanted) -> Moments:
    probes = wanted.probes(d)
    full = d if wanted.scatter else 0
    return Moments(
        n_rows=0,
        weight=0.0,
        mean=np.zeros(d),
        variance_sum=np.zeros(d),
        scatter=np.zeros((full, full)),
        third=np.zeros(d if wanted.fourth else 0),
        fourth=0.0,
        sketch=np.zeros_like(probes),
        probes=probes,
    )


def _block_rows(source: RowSource, wanted: Wanted) -> int:
    if source.is_sparse:
        return _SPARSE_BLOCK_ROWS
    fitting = _BLOCK_BYTES // (8 * source.n_features)
    # A block's matrix of d x d is only worth it for as many rows.
    least = max(_LEAST_BLOCK_ROWS, source.n_features if wanted.scatter else 0)
    return int(np.clip(fitting, least, max(least, _MOST_BLOCK_ROWS)))


def _first(rows: Rows) -> Any:
    """The first rows that count."""
    weight = rows.weight
    counted = np.flatnonzero(weight[:_FIRST_ROWS])
    return rows.take(counted if len(counted) else np.flatnonzero(weight)[:_FIRST_ROWS])


def _middle(first: np.ndarray) -> np.ndarray:
    """The mean of some rows; exactly the value of a column that is constant in them."""
    constant = (first == first[0]).all(axis=0)
    return np.where(constant, first[0], first.mean(axis=0))


def _dense_sums(block: Block, shift: np.ndarray, wanted: Wanted, probes: np.ndarray) -> tuple:
    """n, W and, of y = x - shift, the sums of w y, w y^2, w y y', w ||y||^2 y, w ||y||^4 and
    w y (y'probes).
    """
    weight = block.weight
    Y = np.subtract(block.X, shift, dtype=np.float64)
    # Sums of products carry the weight from here on. Most weights are 1, or 0 for rare rows.
    root = np.sqrt(weight)
    if ((weight == 0.0) | (weight == 1.0)).all():
        Y[weight == 0.0] = 0.0
    else:
        Y *= root[:, None]
    head = (np.count_nonzero(weight), float(weight.sum()), root @ Y)
    moved = Y.T @ (Y @ probes)
    if not wanted.scatter:
        square = np.einsum("ij,ij->j", Y, Y)
        return *head, square, np.empty((0, 0)), np.empty(0), 0.0, moved
    product = Y.T @ Y
    third, fourth = np.empty(0), 0.0
    if wanted.fourth:
        length = np.einsum("ij,ij->i", Y, Y)
        part = np.divide(length, root, out=np.zeros_like(length), where=root > 0.0)
        third, fourth = part @ Y, float(part @ part)
    return *head, product.diagonal(), product, third, fourth, moved


def _sparse_moments(rows: Rows, wanted: Wanted, probes: np.ndarray) -> Moments:
    r"""Moments of compressed rows, of which only the stored cells are read.

    Sums around 0 are good wherever cells differ by as much as they are large, which the zeros that
    are not stored see to. Columns that would lose digits are summed again around their mean: one
    with the weight W_s in its stored cells, of mean m and central sum of squares M, has the mean
    m W_s / W and the central sum :math:`M + m^2 W_s (W - W_s) / W`.
    """
    n, total, columns = rows.sum(_column_sums)
    first, second = columns.T
    e, shift = first / total, np.zeros(len(first))
    variance_sum = second - first * e
    close = variance_sum < _LOST * second
    if close.any():
        centre = _stored_middle(_first(rows), e)
        cells, stored, moved, inside = rows.sum(_central_sums, centre)[0][close].T
        full = cells == n  # sums of weights differ by their order
        moved /= stored
        shift[close] = np.where(full, centre[close], 0.0)
        mean = centre[close] + moved
        e[close] = np.where(full, moved, mean * (stored / total))
        outside = np.where(full, 0.0, mean**2 * stored * (1.0 - stored / total))
        variance_sum[close] = inside - stored * moved**2 + outside
    rest: tuple = (np.empty((0, 0)), np.empty(0), 0.0, np.zeros_like(probes))
    if wanted.scatter or probes.size:
        rest = rows.sum(_product_sums, shift, wanted, probes)
    return _about_mean(n, total, e, shift, variance_sum, probes, *rest)


def _stored_middle(first: sparse.csr_matrix, mean: np.ndarray) -> np.ndarray:
    """The means; a stored cell where it is one to rounding, as in a column that is constant."""
    first = _without_duplicates(first)
    some = mean.copy()
    some[first.indices] = first.data
    return np.where(np.isclose(some, mean, rtol=_EQUAL, atol=0.0), some, mean)


def _column_sums(block: Block) -> tuple:
    """n, W and, of the stored cells x of each column: sum of w x, sum of w x^2."""
    X, weight = block.X, block.weight
    sums = np.zeros((X.shape[1], 2))
    if not column_sums(X.indptr, X.indices, X.data, weight, sums):
        X, sums = _without_duplicates(X), np.zeros_like(sums)
        column_sums(X.indptr, X.indices, X.data, weight, sums)
    return np.count_nonzero(weight), float(weight.sum()), sums


def _central_sums(block: Block, centre: np.ndarray) -> tuple:
    """Of the stored cells x of each column: number, W_s, sums of w (x - c) and w (x - c)^2."""
    X = _without_duplicates(block.X)
    sums = np.zeros((len(centre), 4))
    central_sums(X.indptr, X.indices, X.data, block.weight, centre, sums)
    return (sums,)


def _without_duplicates(X: sparse.csr_matrix) -> sparse.csr_matrix:
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _product_sums(block: Block, shift: np.ndarray, wanted: Wanted, probes: np.ndarray) -> tuple:
    """Of y = x - shift: the sums of w y y', w ||y||^2 y, w ||y||^4 and w y (y'probes)."""
    X, weight = block.X, block.weight
    cells = X.data.astype(np.float64)
    if shift.any():
        X = _without_duplicates(X)
        cells = X.data.astype(np.float64) - shift[X.indices]
    Y = sparse.csr_array((cells, X.indices, X.indptr), X.shape)
    weighted = sparse.diags_array(weight) @ Y
    product, third, fourth = np.empty((0, 0)), np.empty(0), 0.0
    if wanted.scatter:
        product = (weighted.T @ Y).toarray()
    if wanted.fourth:
        length = np.asarray((Y * Y).sum(axis=1)).ravel()
        third, fourth = weighted.T @ length, float(weight @ length**2)
    return product, third, fourth, weighted.T @ (Y @ probes)


def _about_mean(
    n_rows: int,
    weight: float,
    e: np.ndarray,
    shift: np.ndarray,
    variance_sum: np.ndarray,
    probes: np.ndarray,
    product: np.ndarray,
    third: np.ndarray,
    fourth: float,
    moved: np.ndarray,
) -> Moments:
    """Sums around the mean, shift + e, from those around the shift."""
    if third.size:
        length, trace, pulled = e @ e, np.trace(product), product @ e
        fourth += 4.0 * (e @ pulled) - 3.0 * weight * length**2 - 4.0 * (third @ e)
        fourth += 2.0 * length * trace
        third = third - 2.0 * pulled - trace * e + 2.0 * weight * length * e
    variance_sum = np.maximum(variance_sum, 0.0)
    if product.size:
        product = product - weight * np.outer(e, e)
        np.fill_diagonal(product, variance_sum)
    return Moments(
        n_rows=int(n_rows),
        weight=float(weight),
        mean=shift + e,
        variance_sum=variance_sum,
        scatter=product,
        third=third,
        fourth=max(float(fourth), 0.0),
        sketch=moved - weight * np.outer(e, e @ probes),
        probes=probes,
    )
