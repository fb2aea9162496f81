"""Models of the majority's covariance: from moments to a metric."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.moments.metric import DenseMetric, LowRankMetric, Metric
from rareclass.moments.moments import Moments, MomentSettings
from rareclass.parameters import check_whole, is_number

# Ridge of a singular covariance, in mean variances: enough for weights of ten digits.
_LEAST_RIDGE = 1e-3
# The variance of a word that few rows hold is known from few rows: one mean variance is best or
# near the best on three sets of texts (docs/decisions/0016).
_SPARSE_RIDGE = 1.0
# What factors leave of a variance is rounding error below this share of it.
_ROUNDING = 1e-14
# Columns of the sketch beyond the factors wanted: the error falls fast with the first few.
_OVERSAMPLING = 10


class FittedCovariance(NamedTuple):
    """A covariance that a model has fitted, ready to be used as a metric."""

    metric: Metric
    ridge: float  # the lambda of Sigma + lambda I, in units of variance
    was_singular: bool = False  # whether there is no inverse without the ridge, or without `floor`
    floor: float = 0.0  # variance given to constant columns, where that was enough; else 0


@dataclass(frozen=True)
class Full:
    """The covariance itself. Time O(d^3) once, memory 8 d^2 bytes.

    Parameters
    ----------
    ridge : float or None
        Added to every variance, as a multiple of their mean. None is 0 while the covariance has
        an inverse. Columns that are constant get 0.001 of it as their variance; where there still
        is no inverse, every variance gets what shrinkage amounts to (`normal_shrinkage`), and at
        least 0.001.
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
        metric = _sure(_with_ridge(moments.covariance, added))
        return FittedCovariance(metric, added, was_singular=True)


@dataclass(frozen=True)
class Diagonal:
    """Variances alone: features are taken as uncorrelated. Time and memory O(d).

    Parameters
    ----------
    ridge : float or None
        Added to every variance, as a multiple of their mean. None is 1 for compressed rows, whose
        variances each rest on few stored cells, and 0 for dense rows, of which constant columns get
        0.001 of it as their variance.
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
    r"""A diagonal and a few factors: :math:`\Sigma = D + F F'`, F of shape (d, k).

    F F' is the best part of rank k that a random sketch of the covariance holds (one pass of the
    rows; the sketch of all rows is the sum of the sketches of its parts), and D what is missing on
    the diagonal: variances are exact. Time O(d k^2) once.

    Parameters
    ----------
    n_factors : int
        k.
    ridge : float or None
        As in `Diagonal`, added to D; None is 0.001 where factors leave nothing of a variance.

    References
    ----------
    .. [1] Grave, El Ghaoui, 2014, section 5.3.
    .. [2] Tropp, Yurtsever, Udell, Cevher, "Fixed-rank approximation of a positive-semidefinite
       matrix from streaming data", NeurIPS 2017: Algorithm 3.
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
    """Return the covariance model that the parameters of an estimator name.

    Raises `ValueError` on an unknown name or a number out of range.
    """
    check_whole("n_factors", n_factors)
    ridge = _checked_ridge(ridge)
    known: dict[str, CovarianceModel] = {
        "full": Full(ridge),
        "diagonal": Diagonal(ridge),
        "factor": Factor(int(n_factors), ridge),
    }
    if not isinstance(covariance, str) or covariance not in known:
        raise ValueError(f"covariance={covariance!r} is not one of {', '.join(map(repr, known))}.")
    return known[covariance]


def _checked_ridge(ridge: Any) -> float | None:
    """Return the ridge as a number, None for "auto"."""
    if isinstance(ridge, str) and ridge == "auto":
        return None
    if is_number(ridge, ends="[)"):
        return float(ridge)
    raise ValueError(f"ridge={ridge!r} is not 'auto' or a number at or above 0.")


def mean_variance(moments: Moments) -> float:
    """Return the unit of ridges, the mean variance; 1 where nothing varies."""
    mean = float(moments.variance.mean())
    return mean if mean > 0.0 else 1.0


def normal_shrinkage(moments: Moments) -> float:
    """Return the best share of the identity for a normal majority, in [0, 1].

    Chen, Wiesel, Eldar, Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE
    Transactions on Signal Processing 58(10), 2010: the oracle approximating estimate, as
    scikit-learn's `oas` has it.
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


def _sure(covariance: np.ndarray) -> DenseMetric:
    """Return the metric of a covariance that should have one."""
    metric = DenseMetric.of(covariance)
    if metric is None:
        raise InputError(
            "the covariance of the majority has no inverse even with a small ridge: features "
            "differ too much in scale.",
            "Standardise the features, or pass a larger ridge=.",
            ErrorKind.NOT_REACHABLE,
        )
    return metric


def _singular(ridge: float) -> InputError:
    return InputError(
        f"ridge={ridge:g} leaves the covariance of the majority without an inverse: columns are "
        "constant in it, or depend on each other, or are more than its rows.",
        "Use ridge='auto', or a larger number such as ridge=0.01.",
        ErrorKind.NOT_REACHABLE,
    )
