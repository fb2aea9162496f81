"""The inner product of an inverse covariance: from rare rows to the dual, and back to weights.

A metric is <x, z> = x' Sigma^-1 z, without the inverse ever being formed. It brings rows minus the
mean into its own coordinates (`rare_rows`; compressed rows stay compressed if possible) and gives
``w = Sigma^-1 sum_i alpha_i (x_i - mean)`` (`weights`) and ``w' Sigma w`` (`variance`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack, solve_triangular

from rareclass.moments.dual import DualSolution, RareRows, dense_rows

# Below this reciprocal condition number (of the correlations) a covariance counts as singular:
# weights would have fewer than four digits left.
_LEAST_CONDITION = 1e-12
# A column whose mean is this many standard deviations is stored in nearly all rows.
_FULL_COLUMN = 10.0


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
        Z = solve_triangular(self.factor, centred, lower=True, check_finite=False).T
        return dense_rows(np.ascontiguousarray(Z))

    def weights(self, solution: DualSolution, mean: np.ndarray) -> np.ndarray:
        """Return w = L^-T Z'alpha / s."""
        u = solve_triangular(
            self.factor, solution.dense_part, lower=True, trans="T", check_finite=False
        )
        return u / self.scale

    def variance(self, solution: DualSolution, mean: np.ndarray) -> float:
        """Return ||Z'alpha||^2."""
        return float(solution.dense_part @ solution.dense_part)


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
        Q, t, _ = np.linalg.svd(factors * root[:, None], full_matrices=False)
        return cls(root, Q, t**2)

    def rare_rows(self, X: Any, mean: np.ndarray) -> RareRows:
        """Bring rows into the metric. Time O(stored cells x k), or O(n d k) for dense rows."""
        s, Q = self.inverse_root, self.directions
        if not sparse.issparse(X):
            return dense_rows(self._half((X - mean) * s))
        A = sparse.csr_array(X, dtype=np.float64, copy=True)
        A.sum_duplicates()
        full = self._full_columns(mean)
        G = (A[:, full].toarray() - mean[full]) * s[full]
        s, m = s.copy(), s * mean
        s[full] = m[full] = 0.0
        A.data *= s[A.indices]
        A.eliminate_zeros()
        T = (A @ Q - m @ Q + G @ Q[full]) * self._root_share
        r = A @ m
        one = np.ones_like(r)
        left, right = np.column_stack([one, r, T, G]), np.column_stack([(m @ m) - r, -one, -T, G])
        indptr, indices = A.indptr.astype(np.int64), A.indices.astype(np.int32)
        return RareRows(indptr, indices, A.data, A.shape[1], left, right)

    def weights(self, solution: DualSolution, mean: np.ndarray) -> np.ndarray:
        """Return w = s (A'alpha - Q t (1 + t^2)^-1/2 T'alpha), where the rows of A are centred."""
        s, g = self.inverse_root, solution.dense_part
        if not len(solution.sparse_part):
            return s * self._half(g)
        T = g[2 : 2 + len(self.strength)]
        return s * (self._centred(solution, mean) - self.directions @ (self._root_share * T))

    def variance(self, solution: DualSolution, mean: np.ndarray) -> float:
        """Return ||A'alpha||^2 - ||T'alpha||^2, where the rows of A are centred."""
        g = solution.dense_part
        if not len(solution.sparse_part):
            return float(g @ g)
        centred, T = self._centred(solution, mean), g[2 : 2 + len(self.strength)]
        return float(max(centred @ centred - T @ T, 0.0))

    def _full_columns(self, mean: np.ndarray) -> np.ndarray:
        return np.flatnonzero(np.abs(self.inverse_root * mean) > _FULL_COLUMN)

    def _centred(self, solution: DualSolution, mean: np.ndarray) -> np.ndarray:
        """Return A'alpha, where the rows of A are centred."""
        g = solution.dense_part
        centred = solution.sparse_part - g[0] * (self.inverse_root * mean)
        centred[self._full_columns(mean)] = g[2 + len(self.strength) :]
        return centred

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
