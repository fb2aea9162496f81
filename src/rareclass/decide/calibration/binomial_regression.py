"""Logistic regression on one to three increasing features, as parametric maps need it."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from rareclass.decide.calibration.levels import Levels
from rareclass.metrics.scored_classes import FloatArray

# Steps end when the next would take this off the mean loss: it is taken, and is as good as exact.
_MOST_STEPS, _TOL = 100, 1e-17
_ROUNDING = 1e-15
_RIDGE = 1e-9  # relative to the curvature: features that say the same share the slope


class Fit(NamedTuple):
    """Slopes, at or above 0, the intercept and the loss they reach."""

    slopes: FloatArray
    intercept: float
    loss: float


def platt_targets(levels: Levels) -> FloatArray:
    r"""Mean target of each level: :math:`(n_+ + 1) / (n_+ + 2)` for rare, :math:`1 / (n_- + 2)`.

    Instead of 1 and 0 (Platt 1999): the mean of the posterior under a uniform prior, which keeps
    slopes finite where the classes do not overlap. n are weights, as copies.
    """
    rare = (levels.n_rare + 1.0) / (levels.n_rare + 2.0)
    rest = 1.0 / (levels.n_majority + 2.0)
    return (levels.rare * rare + (levels.total - levels.rare) * rest) / levels.total


def fit_increasing(features: FloatArray, targets: FloatArray, weight: FloatArray) -> Fit:
    r"""Least weighted log loss of :math:`p = 1 / (1 + e^{-(f's + c)})` over slopes s at or above 0.

    The loss is convex, so the best of the sets of features whose own minimum has no slope below 0
    is the minimum under the bounds. `features` of shape (n, q), q at most 2 or 3; O(2^q n) a step.
    """
    n_features = features.shape[1]
    best: Fit | None = None
    for size in range(n_features, -1, -1):
        for chosen in combinations(range(n_features), size):
            columns = list(chosen)
            slopes, intercept, loss = _newton(features[:, columns], targets, weight)
            if (slopes >= 0.0).all() and (best is None or loss < best.loss):
                every = np.zeros(n_features)
                every[columns] = slopes
                best = Fit(every, intercept, loss)
        if best is not None and size == n_features:
            break  # nothing was in the way
    assert best is not None  # without features there is a constant
    return best


def _newton(features: FloatArray, targets: FloatArray, weight: FloatArray) -> Fit:
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
    return Fit(at[:-1], float(at[-1]), _loss(design @ at, targets, weight))


def _loss(log_odds: FloatArray, targets: FloatArray, weight: FloatArray) -> float:
    return float(weight @ (np.logaddexp(0.0, log_odds) - targets * log_odds))
