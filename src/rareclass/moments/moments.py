"""Moments of rows wherever they live: one sum over blocks; sets of rows merge and are taken out."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.moments._sums_jit import central_sums, column_sums
from rareclass.rows import Block, Rows, RowSource, rows_of

# Share of a variance below which what is left after a removal is rounding error: the rows left are
# constant there.
_GONE = 1e-12
# Rows whose mean is the first guess of the point to sum around.
_FIRST_ROWS = 1024
# A dense block and its centred copy stay in cache; compressed rows are only read.
_BLOCK_BYTES = 2**20
_MOST_BLOCK_ROWS = 65536
_SPARSE_BLOCK_ROWS = 16384
_LEAST_BLOCK_ROWS = 256
# Sums of squares that leave less than this share have lost too many digits.
_LOST = 1e-4
# Means of equal numbers differ from them by less than this share.
_EQUAL = 1e-9
# Bytes of d x d sums of blocks that wait to be added; with more, blocks are summed one by one.
_WAITING_BYTES = 2**29
_BLOCK_GROUPS = 16


class MomentSettings(NamedTuple):
    """Moments to sum, besides weight, mean and variances."""

    scatter: bool = False  # the whole matrix
    n_probes: int = 0  # columns of the sketch; 0 for none
    seed: int = 0  # of the sketch's directions: moments that are to be merged need the same

    def probes(self, n_features: int) -> np.ndarray:
        """Random directions, shape (n_features, n_probes)."""
        if not self.n_probes:
            return np.zeros((n_features, 0))
        rng = np.random.default_rng(self.seed)
        return rng.standard_normal((n_features, min(self.n_probes, n_features)))


class Moments(NamedTuple):
    r"""Weight, mean and central second moments of rows.

    Two disjoint sets of rows a and b have together

    .. math::

        W = W_a + W_b, \quad \mu = \mu_a + \frac{W_b}{W} \delta, \quad
        S = S_a + S_b + \frac{W_a W_b}{W} \delta \delta', \qquad \delta = \mu_b - \mu_a

    (Chan, Golub, LeVeque 1979): no large numbers are subtracted, whatever the mean is.
    """

    weight: float  # W, the sum of the weights of the rows
    mean: np.ndarray  # mu
    variance_sum: np.ndarray  # the diagonal of S: sum of w (x - mu)^2 for each feature
    scatter: np.ndarray  # S, the sum of w (x - mu)(x - mu)'; of shape (0, 0) where it is not kept
    sketch: np.ndarray  # S times `probes`, shape (n_features, k); k is 0 where it is not kept
    probes: np.ndarray  # random directions, the same for all sets of rows that are to be merged

    @property
    def variance(self) -> np.ndarray:
        """Variance of each feature (divisor W)."""
        return self.variance_sum / self.weight

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (divisor W), where the scatter is kept."""
        return self.scatter / self.weight


def merge(a: Moments, b: Moments) -> Moments:
    """Return the moments of two disjoint sets of rows together, exactly.

    >>> from rareclass.rows import as_source
    >>> a, b = (moments_of(as_source(X), MomentSettings()) for X in ([[1.0], [2.0]], [[6.0]]))
    >>> merge(a, b).mean.tolist(), merge(a, b).variance_sum.tolist()
    ([3.0], [14.0])
    """
    if not a.weight:
        return b
    return _added(a, b, 1.0) if b.weight else a


def remove(whole: Moments, part: Moments) -> Moments:
    """Return the moments that are left when a part of the rows is taken out; inverse of `merge`.

    Where the part holds most of a feature's variance, what is left has as many digits fewer; a
    feature whose variance all but vanishes is taken to be constant in what is left.
    """
    if not part.weight:
        return whole
    left = _added(whole, part, -1.0)
    constant = left.variance_sum <= _GONE * _about(whole, left.mean).variance_sum
    left.variance_sum[constant] = 0.0
    left.sketch[constant] = 0.0
    if left.scatter.size:
        left.scatter[constant] = left.scatter[:, constant] = 0.0
    return left


def _added(a: Moments, b: Moments, sign: float) -> Moments:
    """Return the moments of a and b together, or with a `sign` of -1 those of a without b."""
    weight = a.weight + sign * b.weight
    mean = a.mean + sign * (b.mean - a.mean) * (b.weight / weight)
    one, other = _about(a, mean), _about(b, mean)
    return one._replace(
        weight=weight,
        mean=mean,
        variance_sum=one.variance_sum + sign * other.variance_sum,
        scatter=one.scatter + sign * other.scatter,
        sketch=one.sketch + sign * other.sketch,
    )


def _about(moments: Moments, centre: np.ndarray) -> Moments:
    """Return the same sums with ``centre`` in place of the mean."""
    e, weight = centre - moments.mean, moments.weight
    scatter = moments.scatter
    if scatter.size:
        scatter = scatter + weight * np.outer(e, e)
    return moments._replace(
        variance_sum=moments.variance_sum + weight * e**2,
        scatter=scatter,
        sketch=moments.sketch + weight * np.outer(e, e @ moments.probes),
    )


def moments_of(
    source: RowSource,
    settings: MomentSettings,
    index: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> Moments:
    """Sum the moments of chosen rows in one pass, around a point near the mean.

    The rows of `index`, None for all, have a `weight` each: 0 leaves a row out, None means 1. The
    result does not depend on the number of threads. A feature with mean 1e8 and variance 1 loses
    nothing; compressed rows are centred without being filled.

    Time: dense rows O(n d) for the diagonal and O(n d^2) for the scatter; compressed ones by their
    stored cells. Memory: a block a thread, and d^2 numbers a thread for the scatter.
    """
    d = source.n_features
    n_rows = source.n_rows if index is None else len(index)
    if settings.scatter and 8 * d * d * _BLOCK_GROUPS > _WAITING_BYTES:
        n_jobs = 1
    rows = rows_of(source, index, weight, block_rows=_block_rows(source, settings), n_jobs=n_jobs)
    probes = settings.probes(d)
    if not n_rows or (weight is not None and not weight.any()):
        full = d if settings.scatter else 0
        scatter, sketch = np.zeros((full, full)), np.zeros_like(probes)
        return Moments(0.0, np.zeros(d), np.zeros(d), scatter, sketch, probes)
    if source.is_sparse:
        return _sparse_moments(rows, settings, probes)
    first_rows = np.asarray(_first(rows), dtype=np.float64)
    # Exactly the value of a column that is constant in them.
    constant = (first_rows == first_rows[0]).all(axis=0)
    shift = np.where(constant, first_rows[0], first_rows.mean(axis=0))
    for again in (True, False):
        total, first, second, *rest = rows.sum(_dense_sums, shift, settings, probes)
        mean = first / total
        variance_sum = second - total * mean**2
        if not (again and (variance_sum < _LOST * second).any()):
            break
        # The first rows, of little weight, were far from the mean: once more, from the mean.
        shift = shift + mean
    return _about_mean(total, mean, shift, variance_sum, probes, *rest)


def _block_rows(source: RowSource, settings: MomentSettings) -> int:
    if source.is_sparse:
        return _SPARSE_BLOCK_ROWS
    fitting = _BLOCK_BYTES // (8 * source.n_features)
    # The d x d matrix of a block pays only for as many rows.
    least = max(_LEAST_BLOCK_ROWS, source.n_features if settings.scatter else 0)
    return max(least, min(fitting, _MOST_BLOCK_ROWS))


def _first(rows: Rows) -> Any:
    """Return the first rows that have a weight."""
    weight = rows.weight
    counted = np.flatnonzero(weight[:_FIRST_ROWS])
    return rows.take(counted if len(counted) else np.flatnonzero(weight)[:_FIRST_ROWS])


def _dense_sums(
    block: Block, shift: np.ndarray, settings: MomentSettings, probes: np.ndarray
) -> tuple:
    """Return W and, of y = x - shift, the sums of w y, w y^2, w y y' and w y (y'probes)."""
    weight = block.weight
    Y = np.subtract(block.X, shift, dtype=np.float64)
    # Sums of products carry the weight from here on. Most weights are 1, or 0 for rare rows.
    root = np.sqrt(weight)
    if ((weight == 0.0) | (weight == 1.0)).all():
        Y[weight == 0.0] = 0.0
    else:
        Y *= root[:, None]
    head = float(weight.sum()), root @ Y
    moved = Y.T @ (Y @ probes)
    if not settings.scatter:
        square = np.einsum("ij,ij->j", Y, Y)
        return *head, square, np.empty((0, 0)), moved
    product = Y.T @ Y
    return *head, product.diagonal(), product, moved


def _sparse_moments(rows: Rows, settings: MomentSettings, probes: np.ndarray) -> Moments:
    """Sum the moments of compressed rows, of which only the stored cells are read."""
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
    rest: tuple = (np.empty((0, 0)), np.zeros_like(probes))
    if settings.scatter or probes.size:
        rest = rows.sum(_product_sums, shift, settings, probes)
    return _about_mean(total, e, shift, variance_sum, probes, *rest)


def _stored_middle(first: sparse.csr_matrix, mean: np.ndarray) -> np.ndarray:
    """Return the means; a stored cell where it equals the mean to rounding (constant columns)."""
    first = _without_duplicates(first)
    some = mean.copy()
    some[first.indices] = first.data
    return np.where(np.isclose(some, mean, rtol=_EQUAL, atol=0.0), some, mean)


def _column_sums(block: Block) -> tuple:
    """Return n, W and, of the stored cells x of each column, the sums of w x and w x^2."""
    X, weight = block.X, block.weight
    sums = np.zeros((X.shape[1], 2))
    if not column_sums(X.indptr, X.indices, X.data, weight, sums):
        X, sums = _without_duplicates(X), np.zeros_like(sums)
        column_sums(X.indptr, X.indices, X.data, weight, sums)
    return np.count_nonzero(weight), float(weight.sum()), sums


def _central_sums(block: Block, centre: np.ndarray) -> tuple:
    """Sum, of the stored cells x of each column: 1, w, w (x - c) and w (x - c)^2."""
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


def _product_sums(
    block: Block, shift: np.ndarray, settings: MomentSettings, probes: np.ndarray
) -> tuple:
    """Sum, of y = x - shift: w y y' and w y (y'probes)."""
    X, weight = block.X, block.weight
    cells = X.data.astype(np.float64)
    if shift.any():
        X = _without_duplicates(X)
        cells = X.data.astype(np.float64) - shift[X.indices]
    Y = sparse.csr_array((cells, X.indices, X.indptr), X.shape)
    weighted = sparse.diags_array(weight) @ Y
    product = (weighted.T @ Y).toarray() if settings.scatter else np.empty((0, 0))
    return product, weighted.T @ (Y @ probes)


def _about_mean(
    weight: float,
    e: np.ndarray,
    shift: np.ndarray,
    variance_sum: np.ndarray,
    probes: np.ndarray,
    product: np.ndarray,
    moved: np.ndarray,
) -> Moments:
    """Turn sums around the shift into sums around the mean, shift + e."""
    variance_sum = np.maximum(variance_sum, 0.0)
    if product.size:
        product = product - weight * np.outer(e, e)
        np.fill_diagonal(product, variance_sum)
    sketch = moved - weight * np.outer(e, e @ probes)
    return Moments(float(weight), shift + e, variance_sum, product, sketch, probes)
