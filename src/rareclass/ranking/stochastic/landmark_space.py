"""The span of landmarks in whitened coordinates, to which later landmarks can be added."""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from rareclass.kernels.expansion import KernelExpansion, expand, whiten
from rareclass.kernels.kernels import Kernel, Matrix
from rareclass.kernels.landmarks import pivots_of
from rareclass.machine import size_text
from rareclass.ranking.ranking_data import landmark_kernel
from rareclass.rows.source import stacked

# Rows whose kernel is held at a time.
_BLOCK_ROWS = 1024
SQUARES = 5
"""Matrices of landmarks that are held at a time: the running model, a batch's, and their like."""


class LandmarkSpace(NamedTuple):
    """Landmarks, their kernel, and the coordinates in which the regulariser is the identity."""

    expansion: KernelExpansion  # kernel and landmarks
    # T, shape (n_landmarks, rank): coefficients are T @ w, rows k(x, landmarks) @ T
    whitener: np.ndarray

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return self.whitener.shape[1]

    def kernel(self, X: Matrix) -> np.ndarray:
        """Kernel of rows against the landmarks: shape (n, n_landmarks)."""
        return self.expansion.kernel.block(X, self.expansion.landmarks)

    def features(self, X: Matrix) -> np.ndarray:
        """Whitened coordinates of rows, in the dtype of the landmarks: shape (n, rank).

        Where landmarks are float32 so is the kernel: rounding its coordinates loses no more than
        that did.
        """
        found = np.empty((X.shape[0], self.rank), dtype=self.expansion.landmarks.dtype)
        for start in range(0, len(found), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            found[rows] = expand(self.kernel(X[rows]), self.whitener)
        return found


def span(kernel: Kernel, points: Matrix) -> LandmarkSpace:
    """The span of the kernel functions of some points: O(n_landmarks^3) time."""
    expansion = KernelExpansion(kernel, points)
    return LandmarkSpace(expansion, whiten(landmark_kernel(expansion), points.dtype))


def widened(space: LandmarkSpace, rows: Matrix, most: float) -> LandmarkSpace:
    r"""The same coordinates and further ones, for rows that lie outside the span.

    With coordinates u of the new landmarks z and :math:`k(z, z') - u u' = L L'`, the new
    coordinates of a row x are :math:`L^{-1} (k(z, x) - u \, T' k(Z, x))`: what is left of the new
    kernel functions outside the span, orthonormal. Rows are taken by pivoted Cholesky, the one
    farthest from the span first, while their squared distance can be told from rounding: it exceeds
    ``max(eps(dtype), sqrt(eps64))`` times the mean of k(z, z).

    At most `most` landmarks in all; `space` itself when no row is worth one.

    Cost: O(n (n_landmarks + new landmarks) (n_features + rank + new landmarks)) time and O(n
    (n_landmarks + new landmarks)) memory; nothing where `most` leaves no room.
    """
    room = int(min(most - space.expansion.n_landmarks, rows.shape[0]))
    if room < 1:
        return space
    (kernel, landmarks), T = (space.expansion.kernel, space.expansion.landmarks), space.whitener
    wide: Any = rows.astype(np.float64)
    u = kernel.block(wide, landmarks.astype(np.float64)) @ T
    diagonal = np.asarray(kernel.diag(wide), dtype=np.float64)
    scale = float(np.abs(diagonal).mean())
    least = max(np.finfo(landmarks.dtype).eps, np.finfo(np.float64).eps ** 0.5) * scale
    chosen = pivots_of(
        diagonal - (u * u).sum(axis=1),
        lambda p: kernel.block(wide, wide[p : p + 1])[:, 0] - u @ u[p],
        room,
        least,
    )
    if not len(chosen):
        return space
    K = kernel.block(wide[chosen], wide[chosen])
    L = linalg.cholesky(0.5 * (K + K.T) - u[chosen] @ u[chosen].T, lower=True)
    out = linalg.solve_triangular(L, np.eye(len(chosen)), lower=True).T
    wider = np.block([[T, -T @ (u[chosen].T @ out)], [np.zeros((len(chosen), T.shape[1])), out]])
    return LandmarkSpace(KernelExpansion(kernel, stacked([landmarks, rows[chosen]])), wider)


def check_memory(landmarks: Matrix, n_rare: int, memory: int) -> None:
    """Raise `ValueError` when landmarks and rare rows take more than `memory` bytes."""
    n_landmarks, size = landmarks.shape[0], landmarks.dtype.itemsize
    squares, rare = 8 * SQUARES * n_landmarks**2, size * n_rare * n_landmarks
    if squares + rare <= memory:
        return
    most = int(min((memory / (2 * 8 * SQUARES)) ** 0.5, memory / (2 * size * n_rare)))
    remedy = f"Allow at least memory='{-(-(squares + rare) // 1024)}KiB'"
    if most > 0:
        remedy += f", or pass landmarks=('rare', k) with k of at most {most:,}"
    raise ValueError(
        f"memory= allows {size_text(memory)}; the matrices of {n_landmarks:,} landmarks take "
        f"{size_text(squares)}, {n_rare:,} rare rows in their coordinates {size_text(rare)}. "
        f"{remedy}."
    )
