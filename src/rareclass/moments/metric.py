"""The inner product of an inverse covariance: from rare rows to the dual, and back to weights.

A metric is <x, z> = x' Sigma^-1 z, without the inverse ever being formed. It brings rows minus the
mean into its own coordinates (`rare_rows`; compressed rows stay compressed if possible) and gives
``w = Sigma^-1 sum_i alpha_i (x_i - mean)`` and ``w' Sigma w`` (`weights`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from rareclass.moments.dual import DualSolution, RareRows, dense_rows

# Below this reciprocal condition number (of the correlations) a covariance counts as singular:
# weights would have fewer than four digits left.
_LEAST_CONDITION = 1e-12
# A column whose mean is this many standard deviations is stored in nearly all rows.
_FULL_COLUMN = 10.0


class Weights(NamedTuple):
    """Weights w of a solution, and w' Sigma w."""

    w: np.ndarray
    variance: float


@dataclass(frozen=True)
class DenseMetric:
    """Metric of Sigma = s L L' s with s the standard deviations and L a Cholesky factor.

    Scaling first keeps the digits of features with small variances.
    """

    scale: np.ndarray  # s
    factor: np.ndarray  # L, lower triangular

    @classmethod
    def of(cls, covariance: np.ndarray) -> "DenseMetric | None":
        """Factorise a covariance in O(d^3); None when it is singular to working precision."""
        variance = covariance.diagonal()
        if not (variance > 0.0).all():
            return None
        scale = np.sqrt(variance)
        correlation = covariance / scale / scale[:, None]
        norm = float(np.abs(correlation).sum(axis=0).max())
        factor, failed = lapack.dpotrf(correlation, lower=1, clean=1)
        if failed:
            return None
        condition, _ = lapack.dpocon(factor, norm, uplo="L")
        return cls(scale, factor) if condition > _LEAST_CONDITION else None

    def rare_rows(self, X: Any, mean: np.ndarray) -> RareRows:
        """Return Z = L^-1 (X - mean) / s, dense: time O(n d^2)."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        centred = ((X - mean) / self.scale).T
        Z, _ = lapack.dtrtrs(self.factor, centred, lower=1, overwrite_b=1)
        return dense_rows(Z.T)

    def weights(self, solution: DualSolution, mean: np.ndarray) -> Weights:
        """Return w = L^-T Z'alpha / s and ||Z'alpha||^2."""
        g = solution.dense_part
        u, _ = lapack.dtrtrs(self.factor, g, lower=1, trans=1)
        return Weights(u / self.scale, float(g @ g))


@dataclass(frozen=True)
class LowRankMetric:
    r"""Metric of Sigma = diag(D) + F F' with k columns in F; none for a diagonal covariance.

    With s = D^-1/2 and the singular value decomposition s F = Q t V', the Woodbury identity is

    .. math::

        \Sigma^{-1} = s \Bigl(I - Q \frac{t^2}{1 + t^2} Q'\Bigr) s
                    = s \Bigl(I - Q \bigl(1 - (1 + t^2)^{-1/2}\bigr) Q'\Bigr)^2 s,

    so that no d x d matrix is formed. The second form whitens dense rows. Compressed rows stay
    compressed by the first: with a_i = s x_i, m = s mean, r_i = a_i . m and
    T_i = t (1 + t^2)^-1/2 Q'(a_i - m),

    .. math:: \langle i, j \rangle = a_i \cdot a_j - r_i - r_j + m \cdot m - T_i \cdot T_j .

    Columns with a mean of many standard deviations, which would cancel in this sum and are stored
    in nearly all rows anyway, are centred and kept as dense columns G:
    :math:`G_i \cdot G_j` is added, and a_i and m are 0 there.
    """

    inverse_root: np.ndarray  # s
    directions: np.ndarray  # Q, shape (d, k)
    strength: np.ndarray  # t^2

    @classmethod
    def of(cls, diagonal: np.ndarray, factors: np.ndarray) -> "LowRankMetric":
        """Combine a positive diagonal and factors of shape (d, k). Time O(d k^2)."""
        root = 1.0 / np.sqrt(diagonal)
        if not factors.shape[1]:
            return cls(root, factors, np.empty(0))
        Q, t, _ = np.linalg.svd(factors * root[:, None], full_matrices=False)
        return cls(root, Q, t**2)

    def rare_rows(self, X: Any, mean: np.ndarray) -> RareRows:
        """Bring rows into the metric. Time O(stored cells x k), or O(n d k) for dense rows."""
        s, Q = self.inverse_root, self.directions
        if not sparse.issparse(X):
            return dense_rows(self._half((X - mean) * s))
        A = sparse.csr_array(X, dtype=np.float64, copy=True)
        A.sum_duplicates()
        m, full = s * mean, self._full_columns(mean)
        G = np.zeros((A.shape[0], 0))
        if len(full):
            G = (A[:, full].toarray() - mean[full]) * s[full]
            s = s.copy()
            s[full] = m[full] = 0.0
        A.data *= s[A.indices]
        A.eliminate_zeros()
        T = np.zeros((A.shape[0], 0))
        if len(self.strength):
            T = (A @ Q - m @ Q + G @ Q[full]) * self._root_share
        r = A @ m
        one = np.ones_like(r)
        left, right = np.column_stack([one, r, T, G]), np.column_stack([(m @ m) - r, -one, -T, G])
        indptr, indices = A.indptr.astype(np.int64), A.indices.astype(np.int32)
        return RareRows(indptr, indices, A.data, A.shape[1], left, right)

    def weights(self, solution: DualSolution, mean: np.ndarray) -> Weights:
        """Return w = s (A'alpha - Q t (1 + t^2)^-1/2 T'alpha) and ||A'alpha||^2 - ||T'alpha||^2.

        The rows of A are centred in both.
        """
        g, k = solution.dense_part, len(self.strength)
        if not len(solution.sparse_part):
            return Weights(self.inverse_root * self._half(g), float(g @ g))
        centred = solution.sparse_part - (g[0] * self.inverse_root) * mean
        T, G = g[2 : 2 + k], g[2 + k :]
        if len(G):
            centred[self._full_columns(mean)] = G
        variance = float(max(centred @ centred - T @ T, 0.0))
        if k:
            centred -= self.directions @ (self._root_share * T)
        return Weights(self.inverse_root * centred, variance)

    def _full_columns(self, mean: np.ndarray) -> np.ndarray:
        return np.flatnonzero(np.abs(self.inverse_root * mean) > _FULL_COLUMN)

    @property
    def _root_share(self) -> np.ndarray:
        return np.sqrt(self.strength / (1.0 + self.strength))

    def _half(self, A: np.ndarray) -> np.ndarray:
        """Return A (I - Q (1 - (1 + t^2)^-1/2) Q')."""
        if not len(self.strength):
            return A
        part = A @ self.directions * (1.0 - 1.0 / np.sqrt(1.0 + self.strength))
        return A - part @ self.directions.T


Metric = DenseMetric | LowRankMetric
