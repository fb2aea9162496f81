"""The kernel expansion over landmarks: an operator on blocks of rows, and its coordinates."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from rareclass.kernels import _kernels_jit as jit
from rareclass.kernels.kernels import (
    CentredPoints,
    DistanceKernel,
    FeatureScaled,
    Kernel,
    Matrix,
    takes_out,
)
from rareclass.rows import Block, RowValues, SentOnce

# Blocks remember their kernel, and values of the last function at their rows, under these names.
KERNEL, VALUES = "kernel", "values"
# A kernel block of this size stays in cache for all the questions about it, and is large beside
# the fixed cost of a block, 0.1 ms (docs/decisions/0009).
_BLOCK_BYTES = 2**22
_MOST_BLOCK_ROWS = 8192
_LEAST_BLOCK_ROWS = 64
# More columns than this are worth a copy of K in float64, for BLAS.
_FEW_COLUMNS = 32
# Rounding errors of eigenvalues were seen at a few times n eps max(Lambda) on repeated landmarks.
_SAFETY = 16.0


class _Thread(threading.local):
    """Memory that each thread keeps."""

    room = np.empty(0, dtype=np.uint8)  # for the kernel of a block


_thread = _Thread()

Coordinates = Callable[[np.ndarray, np.dtype], np.ndarray]
"""Makes T in beta = T w from the kernel between the landmarks and the dtype of kernel blocks."""


@dataclass(frozen=True, eq=False)
class KernelExpansion(SentOnce):
    r"""f(x) = sum_r beta_r k(z_r, x) on any block of rows, and its transpose.

    The kernel matrix of rows against landmarks is never formed whole: each block works out its
    own part and remembers it while the memory budget lasts.
    """

    kernel: Kernel
    landmarks: Matrix  # shape (n_landmarks, n_features)

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks."""
        return self.landmarks.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "landmarks": self.landmarks}

    @cached_property
    def _points(self) -> Matrix | CentredPoints:
        """Landmarks in the form in which the kernel of dense rows is fastest."""
        kernel, points = self.kernel, self.landmarks
        if isinstance(self.kernel, FeatureScaled):
            kernel, points = self.kernel.kernel, self.kernel.scaled(points)
        if sparse.issparse(points) or not isinstance(kernel, DistanceKernel):
            return self.landmarks
        return CentredPoints.of(points)

    def matrix(self, block: Block, chosen: np.ndarray | None = None) -> np.ndarray:
        """Kernel of the rows of `block` against the landmarks: shape (n, n_landmarks).

        `chosen`, a mask over the rows of the block, asks for some of them only; then nothing is
        remembered. The matrix is good until the same thread asks for the next one.
        """
        n_rows = block.stop - block.start if chosen is None else np.count_nonzero(chosen)
        if not n_rows or not self.n_landmarks:  # as in a sparse model; kernels need not expect it
            return np.empty((n_rows, self.n_landmarks))
        K = block.memo.get(KERNEL, self)
        if K is not None:
            return K if chosen is None else K[chosen]
        X = block.X if chosen is None else block.X[chosen]
        out: tuple[np.ndarray, ...] = ()
        if takes_out(self.kernel):
            # Room that the thread has from its last block. Fresh memory costs more than the kernel
            # does where the allocator gives every array of some megabytes back to the system at
            # once, as glibc's is told to on workers of Dask.
            dtype = np.result_type(X.dtype, self.landmarks.dtype)
            n_bytes = X.shape[0] * self.n_landmarks * dtype.itemsize
            if _thread.room.nbytes < n_bytes:
                _thread.room = np.empty(n_bytes, dtype=np.uint8)
            room = _thread.room[:n_bytes].view(dtype)
            out = (room.reshape(X.shape[0], self.n_landmarks),)
        points = self.landmarks if sparse.issparse(X) else self._points
        K = self.kernel.block(X, points, *out)
        if chosen is None and block.keeps_arrays:
            block.memo.keep(KERNEL, self, K)
        return K


def expand(K: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Values ``K @ coefficients`` in float64; coefficients may have several columns."""
    many_columns = coefficients.size > _FEW_COLUMNS * len(coefficients)
    if K.dtype == np.float64 or many_columns:
        return K.astype(np.float64, copy=False) @ coefficients
    columns, fours = _in_fours(np.atleast_2d(coefficients.T))
    values = np.empty((len(columns), K.shape[0]))
    if fours:
        jit._expand_fours(K, columns[:fours], values[:fours])
    for column, result in zip(columns[fours:], values[fours:], strict=True):
        jit._expand(K, column, result)
    return values[0] if coefficients.ndim == 1 else values[: coefficients.shape[1]].T


def pull_back(K: np.ndarray, by_row: np.ndarray) -> np.ndarray:
    """``K.T @ by_row`` in float64, also for several columns: what a block asks of each landmark."""
    if K.dtype == np.float64:
        return K.T @ by_row
    columns, fours = _in_fours(np.atleast_2d(by_row.T))
    by_landmark = np.zeros((len(columns), K.shape[1]))
    rows = len(K) - len(K) % 4
    if fours:
        jit._pull_back_fours(K[:rows], columns[:fours, :rows], by_landmark[:fours])
    for k, (column, result) in enumerate(zip(columns, by_landmark, strict=True)):
        start = rows if k < fours else 0
        jit._pull_back(K[start:], column[start:], result)
    return by_landmark[0] if by_row.ndim == 1 else by_landmark[: by_row.shape[1]].T


def _in_fours(columns: np.ndarray) -> tuple[np.ndarray, int]:
    """Columns, as rows of a matrix, and how many of them to take four at a time."""
    over = len(columns) % 4
    if over < 2:
        return np.ascontiguousarray(columns), len(columns) - over
    filled = np.zeros((len(columns) + 4 - over, columns.shape[1]))
    filled[: len(columns)] = columns
    return filled, len(filled)


def block_scores(
    block: Block,
    expansion: KernelExpansion,
    coefficients: np.ndarray,
    token: object = None,
    chosen: RowValues | None = None,
) -> np.ndarray:
    """Scores of the rows of `block`, or of those `chosen` of the whole: to map over rows.

    `token` names a function whose values the block may remember.
    """
    values = None if token is None else block.memo.get(VALUES, token)
    here = None if chosen is None else chosen.of(block)
    if values is not None:
        values = values[:, None] if coefficients.ndim > values.ndim else values
        return values if here is None else values[here]
    return expand(expansion.matrix(block, here), coefficients)


def block_rows(n_landmarks: int, dtype: np.dtype) -> int:
    """Rows a block, a power of two, so that its kernel block stays in cache.

    Blocks then lie within the runs of `Rows.every`, or are several of them.
    """
    fitting = _BLOCK_BYTES // (max(n_landmarks, 1) * dtype.itemsize)
    return 2 ** int(min(max(fitting, _LEAST_BLOCK_ROWS), _MOST_BLOCK_ROWS)).bit_length() // 2


def orthonormalise(K: np.ndarray, dtype: np.dtype) -> np.ndarray:
    r"""A matrix T with :math:`T' K T = I` for the same directions as `whiten`, in any rotation.

    Where K resolves all directions, :math:`T = L^{-T}` of its Cholesky factor :math:`K = L L'`, at
    a fifth of the time; else that of `whiten`. The least eigenvalue is at least
    :math:`1 / \mathrm{trace}(K^{-1})`, and :math:`\mathrm{trace}(K^{-1}) = \|T\|^2`.
    """
    from scipy.linalg import lapack

    factor, fault = lapack.dpotrf(K, lower=0, clean=1)
    if not fault and len(K):
        T, fault = lapack.dtrtri(factor, lower=0)
        # The largest eigenvalue is at most the trace.
        if not fault and 1.0 / np.square(T).sum() > _least_eigenvalue(K, dtype, float(np.trace(K))):
            return np.ascontiguousarray(T)
    return whiten(K, dtype)


def _least_eigenvalue(K: np.ndarray, dtype: np.dtype, largest: float) -> float:
    """Eigenvalue below which K does not resolve a direction, for rows stored in `dtype`."""
    scale = max(float(np.trace(K)) / len(K), 0.0)
    noise = _SAFETY * len(K) * np.finfo(np.float64).eps * max(largest, 0.0)
    return max(np.finfo(dtype).eps * scale, noise)


def whiten(K: np.ndarray, dtype: np.dtype) -> np.ndarray:
    r"""A matrix T with :math:`T' K T = I`, one column for every direction that K resolves.

    With the eigendecomposition :math:`K = U \Lambda U'`, :math:`T = U \Lambda^{-1/2}` over the
    eigenvalues above a cut-off. Coefficients are then :math:`\beta = T w`, the
    regulariser :math:`\beta' K \beta` is :math:`\|w\|^2`, and :math:`k(x, \cdot) T` are the
    coordinates of x in the span of the landmarks (the Nyström features). Directions that nearly
    equal landmarks have in common are kept once.

    `dtype` is what the kernel blocks of other rows are stored in. An eigenvalue l turns their
    rounding error eps k(x, x) into an error eps k(x, x) / sqrt(l) of a coordinate: l must be above
    eps times the mean of k(x, x), and above the rounding error of the eigenvalues themselves,
    ``16 n eps64 max(Lambda)``. Columns come in order of decreasing eigenvalue. O(n_landmarks^3).
    """
    if not len(K):
        return np.empty((0, 0))
    from scipy import linalg  # not for scoring, which reads no more of this file

    # By divide and conquer, LAPACK's fastest way.
    values, vectors = linalg.eigh(K, check_finite=False, driver="evd")
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.count_nonzero(values > _least_eigenvalue(K, dtype, values[0])))
    T = vectors[:, :rank] / np.sqrt(values[:rank])
    # An eigenvector has no sign of its own: its largest entry is made positive.
    signs = np.sign(T[np.abs(T).argmax(axis=0), np.arange(rank)]) if rank else 1.0
    return np.ascontiguousarray(T * signs)
