"""Models of the majority's covariance: from moments to a metric, the inner product of its inverse.

A metric is <x, z> = x' Sigma^-1 z, without the inverse ever being formed. It brings rows minus the
mean into its own coordinates (`rare_rows`; compressed rows stay compressed if possible) and gives
``w = Sigma^-1 sum_i alpha_i (x_i - mean)`` and ``w' Sigma w`` (`weights`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from rareclass.errors import ErrorKind, InputError
from rareclass.moments.dual import DualSolution, RareRows, dense_rows
from rareclass.moments.moments import Moments, MomentSettings
from rareclass.parameters import check_choice, check_whole, is_number

# Ridge of a singular covariance, in mean variances: enough for weights of ten digits.
_LEAST_RIDGE = 1e-3
# The variance of a word that few rows hold is known from few rows: one mean variance is best or
# near the best on three sets of texts (docs/decisions/0016).
_SPARSE_RIDGE = 1.0
# What factors leave of a variance is rounding error below this share of it.
_ROUNDING = 1e-14
# Columns of the sketch beyond the factors wanted: the error falls fast with the first few.
_OVERSAMPLING = 10
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
    """Metric of Sigma = s L L' s with s the standard deviations and L a Cholesky factor."""

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
        sides = [one, r, T, G], [(m @ m) - r, -one, -T, G]
        left, right = (np.ascontiguousarray(np.column_stack(each)) for each in sides)
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


class FittedCovariance(NamedTuple):
    """A covariance that a model has fitted, ready to be used as a metric."""

    metric: Metric
    ridge: float  # the lambda of Sigma + lambda I, in units of variance
    was_singular: bool = False  # whether there is no inverse without the ridge, or without `floor`
    floor: float = 0.0  # variance given to constant columns, where that was enough; else 0


@dataclass(frozen=True)
class Full:
    """The covariance itself. Time O(d^3) once, memory 8 d^2 bytes.

    ``ridge`` times the mean variance is added to every variance. None is 0 while the covariance has
    an inverse. Columns that are constant get 0.001 of it as their variance; where there still is no
    inverse, every variance gets what shrinkage amounts to (`normal_shrinkage`), at least 0.001.
    """

    ridge: float | None = None

    def wanted(self, seed: int) -> MomentSettings:
        """Ask for the whole scatter."""
        return MomentSettings(scatter=True, seed=seed)

    def model(self, moments: Moments, is_sparse: bool) -> FittedCovariance:
        """Factorise the covariance, with a ridge if need be."""
        unit = mean_variance(moments)
        added = (self.ridge or 0.0) * unit
        covariance = _with_ridge(moments.covariance, added)
        metric = DenseMetric.of(covariance)
        if metric is not None:
            return FittedCovariance(metric, added)
        if self.ridge is not None:
            raise _singular(self.ridge)
        # A constant column depends on no other: its own variance is all that is missing.
        floor = _LEAST_RIDGE * unit
        np.fill_diagonal(covariance, np.where(moments.variance_sum == 0.0, floor, moments.variance))
        metric = DenseMetric.of(covariance)
        if metric is not None:
            return FittedCovariance(metric, 0.0, was_singular=True, floor=floor)
        rho = normal_shrinkage(moments)
        added = max(rho / max(1.0 - rho, _LEAST_RIDGE), _LEAST_RIDGE) * unit
        metric = DenseMetric.of(_with_ridge(moments.covariance, added))
        if metric is None:
            raise ErrorKind.NOT_REACHABLE.error(
                "the covariance of the majority has no inverse even with a small ridge: features "
                "differ too much in scale.",
                "Standardise the features, or pass a larger ridge=.",
            )
        return FittedCovariance(metric, added, was_singular=True)


@dataclass(frozen=True)
class Diagonal:
    """Variances alone: features are taken as uncorrelated. Time and memory O(d).

    ``ridge`` as in `Full`; None is 1 for compressed rows, whose variances each rest on few stored
    cells, and 0 for dense rows, of which constant columns get 0.001 as their variance.
    """

    ridge: float | None = None

    def wanted(self, seed: int) -> MomentSettings:
        """Ask for no more than variances."""
        return MomentSettings(seed=seed)

    def model(self, moments: Moments, is_sparse: bool) -> FittedCovariance:
        """Add the ridge to the variances."""
        none = np.zeros((len(moments.mean), 0))
        return _low_rank(moments, moments.variance, none, self.ridge, is_sparse)


@dataclass(frozen=True)
class Factor:
    r"""A diagonal and ``n_factors`` factors: :math:`\Sigma = D + F F'`, F of shape (d, k).

    F F' is the best part of rank k that a random sketch of the covariance holds (one pass of the
    rows; the sketch of all rows is the sum of the sketches of its parts), and D what is missing on
    the diagonal: variances are exact. ``ridge`` as in `Diagonal`, added to D; None is 0.001 where
    factors leave nothing of a variance. Time O(d k^2) once.

    Section 5.3 of the paper; Tropp, Yurtsever, Udell, Cevher, "Fixed-rank approximation of a
    positive-semidefinite matrix from streaming data", NeurIPS 2017: Algorithm 3.
    """

    n_factors: int = 50
    ridge: float | None = None

    def wanted(self, seed: int) -> MomentSettings:
        """Ask for variances and a sketch."""
        return MomentSettings(n_probes=self.n_factors + _OVERSAMPLING, seed=seed)

    def model(self, moments: Moments, is_sparse: bool) -> FittedCovariance:
        """Take factors from the sketch, and the diagonal that they leave."""
        F, variance = factors_of(moments, self.n_factors), moments.variance
        found = np.einsum("jk,jk->j", F, F)
        # More than all there is, by rounding: beside larger features this is not always little.
        over = found > variance
        F[over] *= np.sqrt(variance[over] / found[over])[:, None]
        left = np.where(over, 0.0, variance - found)
        return _low_rank(moments, left, F, self.ridge, is_sparse)


CovarianceModel = Full | Diagonal | Factor


def make_covariance(covariance: Any, n_factors: Any, ridge: Any) -> CovarianceModel:
    """Return the covariance model of some parameters; `ValueError` where they are out of range."""
    check_whole("n_factors", n_factors)
    if isinstance(ridge, str) and ridge == "auto":
        ridge = None
    elif is_number(ridge, ends="[)"):
        ridge = float(ridge)
    else:
        raise ErrorKind.SETTING.error(f"ridge={ridge!r} is not 'auto' or a number at or above 0.")
    known: dict[str, CovarianceModel] = {
        "full": Full(ridge),
        "diagonal": Diagonal(ridge),
        "factor": Factor(int(n_factors), ridge),
    }
    check_choice("covariance", covariance, list(known))
    return known[covariance]


def mean_variance(moments: Moments) -> float:
    """Return the unit of ridges, the mean variance; 1 where nothing varies."""
    mean = float(moments.variance.mean())
    return mean if mean > 0.0 else 1.0


def normal_shrinkage(moments: Moments) -> float:
    """Return the best share of the identity for a normal majority, in [0, 1].

    The oracle approximating estimate of Chen, Wiesel, Eldar, Hero, IEEE Transactions on Signal
    Processing 58(10), 2010.
    """
    d, weight = len(moments.mean), moments.weight
    square = float(np.mean(moments.covariance**2))
    unit = mean_variance(moments) ** 2
    room = (weight + 1.0) * (square - unit / d)
    return 1.0 if room <= 0.0 else float(min((square + unit) / room, 1.0))


def factors_of(moments: Moments, n_factors: int) -> np.ndarray:
    """Return the best F of shape (d, k) with F F' near the covariance behind a sketch.

    1. Y = (Sigma + nu I) Omega, nu just above rounding error
    2. E = Y R^-1 with R'R = Omega'Y, so that E E' = Y (Omega'Y)^-1 Y'
    3. the largest k singular values s of E = U s V' give F = U sqrt(s^2 - nu)
    """
    sketch, probes = moments.sketch / moments.weight, moments.probes
    norm = float(np.linalg.norm(sketch))
    if norm == 0.0:
        return np.zeros((len(moments.mean), 0))
    nu = np.sqrt(len(moments.mean)) * np.finfo(float).eps * norm
    Y = sketch + nu * probes
    core = probes.T @ Y
    values, vectors = np.linalg.eigh(0.5 * (core + core.T))
    known = values > values[-1] * np.finfo(float).eps * len(values)
    E = Y @ (vectors[:, known] / np.sqrt(values[known]))
    U, s, _ = np.linalg.svd(E, full_matrices=False)
    strength = np.maximum(s[:n_factors] ** 2 - nu, 0.0)
    return U[:, : len(strength)] * np.sqrt(strength)


def _low_rank(
    moments: Moments, diagonal: np.ndarray, F: np.ndarray, given: float | None, is_sparse: bool
) -> FittedCovariance:
    """Return a diagonal and factors with their ridge; see `Diagonal` and `Factor`."""
    unit = mean_variance(moments)
    ridge = given if given is not None or not is_sparse else _SPARSE_RIDGE
    if ridge:
        return FittedCovariance(LowRankMetric.of(diagonal + ridge * unit, F), ridge * unit)
    singular, constant = diagonal <= moments.variance * _ROUNDING, moments.variance_sum == 0.0
    least = _LEAST_RIDGE * unit
    floored, floor = np.where(constant, least, diagonal), least if constant.any() else 0.0
    whole: Metric | None = None
    if singular.any() and F.shape[1] == len(F):  # as many factors as features may be the whole
        whole = DenseMetric.of(F @ F.T + np.diag(floored))
    if given is not None:
        if not singular.any():
            return FittedCovariance(LowRankMetric.of(diagonal, F), 0.0)
        if whole is None or floor:
            raise _singular(given)
        return FittedCovariance(whole, 0.0)
    if whole is None and constant[singular].all():
        whole = LowRankMetric.of(floored, F)
    if whole is not None:
        return FittedCovariance(whole, 0.0, was_singular=floor > 0.0, floor=floor)
    return FittedCovariance(LowRankMetric.of(diagonal + least, F), least, was_singular=True)


def _with_ridge(covariance: np.ndarray, ridge: float) -> np.ndarray:
    """Return a copy, ``covariance + ridge I``."""
    moved: np.ndarray = covariance.copy()
    moved.flat[:: len(moved) + 1] += ridge
    return moved


def _singular(ridge: float) -> InputError:
    return ErrorKind.NOT_REACHABLE.error(
        f"ridge={ridge:g} leaves the covariance of the majority without an inverse: columns are "
        "constant in it, or depend on each other, or are more than its rows.",
        "Use ridge='auto', or a larger number such as ridge=0.01.",
    )
