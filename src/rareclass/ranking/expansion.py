"""The kernel expansion over landmarks, as an operator on blocks of rows."""

from dataclasses import dataclass

import numpy as np

from rareclass.ranking import _expansion_jit as jit
from rareclass.ranking.kernels import Kernel, Matrix
from rareclass.rows import Block


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    r"""f(x) = sum_r beta_r k(z_r, x) on any block of rows, and its transpose.

    The kernel matrix of rows against landmarks is never formed whole: each block works out its
    own part and remembers it while the memory budget lasts.

    Parameters
    ----------
    kernel : Kernel
    landmarks : ndarray or CSR of shape (n_landmarks, n_features)
    """

    kernel: Kernel
    landmarks: Matrix

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks."""
        return self.landmarks.shape[0]

    def matrix(self, block: Block) -> np.ndarray:
        """Kernel of the rows of `block` against the landmarks: shape (n, n_landmarks)."""
        K = block.memo.get("kernel", self)
        if K is None:
            K = self.kernel.block(block.X, self.landmarks)
            block.memo.put("kernel", self, K, K.nbytes)
        return K


def expand(K: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Scores ``K @ coefficients`` in float64; coefficients may have several columns."""
    if K.dtype == np.float64 or coefficients.ndim > 1:
        return K.astype(np.float64, copy=False) @ coefficients
    scores = np.empty(K.shape[0])
    jit._expand(K, coefficients, scores)
    return scores


def pull_back(K: np.ndarray, by_row: np.ndarray) -> np.ndarray:
    """``K.T @ by_row`` in float64: what the rows of a block ask of each landmark."""
    if K.dtype == np.float64:
        return by_row @ K
    by_landmark = np.zeros(K.shape[1])
    jit._pull_back(K, by_row, by_landmark)
    return by_landmark


def block_scores(block: Block, expansion: KernelExpansion, coefficients: np.ndarray) -> np.ndarray:
    """Scores of the rows of `block`: the function to map over rows."""
    return expand(expansion.matrix(block), coefficients)
