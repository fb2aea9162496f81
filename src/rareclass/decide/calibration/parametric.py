"""Parametric calibration: log-odds are a line of the score (Platt), or one of two slopes (beta)."""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit, logit

from rareclass.decide.calibration.calibration_map import CalibrationMap, ScoreLevels
from rareclass.metrics.scored_classes import FloatArray

# Nearer to 0 and 1 than this, scores that are probabilities are rounding.
_NEAREST = 1e-15
# Steps end when the next would take this off the mean loss: it is taken, and is as good as exact.
_MOST_STEPS, _TOL = 100, 1e-17
_ROUNDING = 1e-15
_RIDGE = 1e-9  # relative to the curvature: features that say the same share the slope


@dataclass(frozen=True)
class ScoreScale:
    r"""Increasing function from a score to z, on which parametric maps read scores.

    Scores that all lie in [0, 1] are read as probabilities, :math:`z = \ln(s / (1 - s))`, those
    nearer to 0 or 1 than half of the nearest of training as these: a forest's 0 of 100 votes is
    taken for 1 in 200. Others are centred half way between the medians of the classes and divided
    by their spread, :math:`z = (s - centre) / spread`.

    Attributes
    ----------
    is_probability : bool
    centre, spread : float
    lowest, highest : float
        Bounds of a score that is a probability.
    """

    is_probability: bool
    centre: float = 0.0
    spread: float = 1.0
    lowest: float = 0.0
    highest: float = 1.0

    @classmethod
    def of(cls, levels: ScoreLevels) -> "ScoreScale":
        """Learn the scale of training scores."""
        scores = levels.scores
        if scores[0] >= 0.0 and scores[-1] <= 1.0:
            inside = scores[(scores > 0.0) & (scores < 1.0)]
            gaps = (inside[0], 1.0 - inside[-1]) if len(inside) else (0.5, 0.5)
            low, high = (max(0.5 * float(gap), _NEAREST) for gap in gaps)
            return cls(True, lowest=low, highest=1.0 - high)
        rest = levels.total - levels.rare
        medians = [_quantile(scores, weight, 0.5) for weight in (levels.rare, rest)]
        low, high = (_quantile(scores, rest, share) for share in (0.25, 0.75))
        spread = max(high - low, abs(medians[0] - medians[1]), 1e-3 * (scores[-1] - scores[0]))
        return cls(False, 0.5 * medians[0] + 0.5 * medians[1], spread if spread > 0.0 else 1.0)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return z of each score."""
        if self.is_probability:
            return logit(np.clip(scores, self.lowest, self.highest))
        return (scores - self.centre) / self.spread


@dataclass(frozen=True)
class LogisticMap(CalibrationMap):
    r"""Logistic (Platt's) calibration, :math:`\ln\frac{p}{1-p} = a z(s) + c`, :math:`a \ge 0`.

    z is `ScoreScale`: log-odds of scores in [0, 1], a deviation of others. a and c minimise the
    log loss against Platt's targets, :math:`(n_+ + 1) / (n_+ + 2)` and :math:`1 / (n_- + 2)`.

    Attributes
    ----------
    scale : ScoreScale
    slope, intercept : float

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".

    Examples
    --------
    >>> p = LogisticMap.fit([0, 0, 1, 0, 1, 1], [-3.0, -1.0, -0.5, 0.5, 1.0, 3.0])
    >>> p([-3.0, 0.0, 3.0]).round(2)
    array([0.2, 0.5, 0.8])
    """

    scale: ScoreScale
    slope: float
    intercept: float

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""
        scale = ScoreScale.of(levels)
        found = _fit_levels(scale(levels.scores)[:, None], levels)
        return cls(scale, float(found.slopes.sum()), found.intercept)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of finite scores."""
        return np.asarray(self.slope * self.scale(scores) + self.intercept)


@dataclass(frozen=True)
class BetaMap(CalibrationMap):
    r"""Beta calibration, :math:`\ln\frac{p}{1-p} = a \ln u - b \ln(1 - u) + c` with a, b >= 0.

    :math:`u = 1 / (1 + e^{-z(s)})` brings any score to (0, 1): z is `ScoreScale`, so that scores in
    [0, 1] are u themselves, and others count from half way between the classes. Below that, the
    log-odds rise with slope a in z, above it with slope b. Fitted as `LogisticMap` is, which it
    is where a = b.

    Attributes
    ----------
    scale : ScoreScale
    low_slope, high_slope, intercept : float
        a, b and c.

    References
    ----------
    Kull, Silva Filho, Flach (2017), "Beta calibration".

    Examples
    --------
    >>> p = BetaMap.fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    >>> bool(p([0.1])[0] < p([0.5])[0] < p([0.9])[0])
    True
    """

    scale: ScoreScale
    low_slope: float
    high_slope: float
    intercept: float

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""
        scale = ScoreScale.of(levels)
        found = _fit_levels(_log_beta(scale(levels.scores)), levels)
        low, high = (float(slope) for slope in found.slopes) if len(found.slopes) else (0.0, 0.0)
        return cls(scale, low, high, found.intercept)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of finite scores."""
        slopes = np.array([self.low_slope, self.high_slope])
        return _log_beta(self.scale(scores)) @ slopes + self.intercept


class IncreasingFit(NamedTuple):
    """Slopes, at or above 0, the intercept and the loss that they reach."""

    slopes: FloatArray
    intercept: float
    loss: float


def fit_increasing(features: FloatArray, targets: FloatArray, weight: FloatArray) -> IncreasingFit:
    r"""Least weighted log loss of :math:`p = 1 / (1 + e^{-(f's + c)})` over slopes s at or above 0.

    The loss is convex, so the best of the sets of features whose own minimum has no slope below 0
    is the minimum under the bounds. `features` of shape (n, q), q at most 2 or 3; O(2^q n) a step.
    """
    n_features = features.shape[1]
    best: IncreasingFit | None = None
    for size in range(n_features, -1, -1):
        for chosen in combinations(range(n_features), size):
            columns = list(chosen)
            slopes, intercept, loss = _newton(features[:, columns], targets, weight)
            if (slopes >= 0.0).all() and (best is None or loss < best.loss):
                every = np.zeros(n_features)
                every[columns] = slopes
                best = IncreasingFit(every, intercept, loss)
        if best is not None and size == n_features:
            break  # nothing was in the way
    assert best is not None  # without features there is a constant
    return best


def _fit_levels(features: FloatArray, levels: ScoreLevels) -> IncreasingFit:
    """`fit_increasing` to Platt's targets; a constant where all scores are equal."""
    if levels.is_constant:
        features = features[:, :0]
    return fit_increasing(features, levels.platt_targets, levels.total)


def _newton(features: FloatArray, targets: FloatArray, weight: FloatArray) -> IncreasingFit:
    """Unconstrained minimum by damped Newton steps."""
    design = np.column_stack([features, np.ones(len(features))])
    mean = float(weight @ targets / weight.sum())
    at = np.zeros(design.shape[1])
    at[-1] = np.log(mean) - np.log1p(-mean)
    weight = weight / weight.sum()
    loss = _loss(design @ at, targets, weight)
    for _ in range(_MOST_STEPS):
        p = expit(design @ at)
        gradient = design.T @ (weight * (p - targets))
        curvature = (design.T * (weight * p * (1.0 - p))) @ design
        curvature[np.diag_indices_from(curvature)] *= 1.0 + _RIDGE
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        decrease = float(gradient @ step)
        if not decrease > _TOL:
            at = at - step
            break
        length = 1.0
        while length > 1e-10:
            tried = at - length * step
            reached = _loss(design @ tried, targets, weight)
            if reached <= loss - 1e-4 * length * decrease + _ROUNDING:
                break
            length *= 0.5
        else:
            break
        at, loss = tried, reached
    return IncreasingFit(at[:-1], float(at[-1]), _loss(design @ at, targets, weight))


def _loss(log_odds: FloatArray, targets: FloatArray, weight: FloatArray) -> float:
    return float(weight @ (np.logaddexp(0.0, log_odds) - targets * log_odds))


def _log_beta(z: FloatArray) -> FloatArray:
    """ln u and -ln(1 - u)."""
    return np.column_stack([-np.logaddexp(0.0, -z), np.logaddexp(0.0, z)])


def _quantile(scores: FloatArray, weight: FloatArray, share: float) -> float:
    running = np.cumsum(weight)
    return float(scores[np.searchsorted(running, share * running[-1])])
