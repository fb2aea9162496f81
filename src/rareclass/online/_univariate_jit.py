"""Compiled loops of the learners from single rows: logistic regression and UniExp."""

import numpy as np

from rareclass.compiling import njit

# A row whose log odds have a variance beyond this teaches nothing: sums stay finite.
_MOST_VARIANCE = 1e300
_MOST_ROUNDS, _CLOSE = 100, 1e-13


@njit(cache=True, nogil=True, error_model="numpy")
def _slope_at_mode(margin, variance, weight):
    """The m in [0, weight] with ``m = weight / (1 + exp(margin + variance m))``, by Newton."""
    low, high = 0.0, weight / (1.0 + np.exp(margin))
    m, last = high, high
    for _ in range(_MOST_ROUNDS):
        wrong = 1.0 / (1.0 + np.exp(margin + variance * m))
        beyond = m - weight * wrong
        if beyond > 0.0:
            high = m
        else:
            low = m
        by = beyond / (1.0 + variance * weight * wrong * (1.0 - wrong))
        if not (low <= m - by <= high and 2.0 * abs(by) <= last):
            by = m - 0.5 * (low + high)
        last = abs(by)
        m -= by
        if last <= _CLOSE * m:
            break
    return m


@njit(cache=True, nogil=True, error_model="numpy")
def move(mean, covariance, along, variance, log_odds, sign, weight):
    """Take a row into a Gaussian N(mean, covariance) over weights, in place.

    With the row x, ``along`` = covariance x and ``variance`` = x' covariance x: the mean goes to
    the mode of Gaussian times likelihood, which lies ``sign m along`` away; the covariance becomes
    the inverse of the curvature there. Returns ``sign m`` and the c of
    ``covariance - c along along'``, 0 and 0 where there is nothing to learn. O(d^2).
    """
    margin = sign * log_odds
    if not (0.0 < variance <= _MOST_VARIANCE and abs(margin) < np.inf):
        return 0.0, 0.0
    m = _slope_at_mode(margin, variance, weight)
    curvature = m * (1.0 - m / weight)
    c = max(curvature / (1.0 + variance * curvature), 0.0)
    root = np.sqrt(c)
    for i in range(mean.shape[0]):
        mean[i] += sign * m * along[i]
        # The product is the same for (i, j) and (j, i): symmetric to the last bit.
        part = root * along[i]
        for j in range(mean.shape[0]):
            covariance[i, j] -= part * (root * along[j])
    return sign * m, c


@njit(cache=True, nogil=True, error_model="numpy")
def _score_and_spread(indices, data, mean, covariance, alone, along):
    """A row's w.x and the variance of its log odds; ``along`` becomes covariance x of the first."""
    full = covariance.shape[0]
    score, variance = 0.0, 0.0
    along[:] = covariance[0]
    for i, x in zip(indices + 1, data):  # noqa: B905 (compiled)
        score += mean[i] * x
        if i < full:
            for j in range(full):
                along[j] += covariance[i, j] * x
        else:
            variance += alone[i - full] * x * x
    variance += along[0]
    for i, x in zip(indices + 1, data):  # noqa: B905
        if i < full:
            variance += along[i] * x
    return score, variance


@njit(cache=True, nogil=True, error_model="numpy")
def learn_by_newton(
    indptr, indices, data, sign, step, mean, covariance, alone, seen, balanced, scores_out
):
    """Learn from rows in order; `mean`, `covariance`, `alone` and `seen` are changed in place.

    Rows, `sign` and `scores_out` as in `_sparse_pairs_jit.learn`; ``step``: the weight of a row.
    ``mean``: b, then w. ``covariance``: of b and the first features; ``alone``: variances of
    others.
    """
    full = covariance.shape[0]
    along = np.empty(full)
    for t in range(sign.shape[0]):
        row = slice(indptr[t], indptr[t + 1])
        score, variance = _score_and_spread(indices[row], data[row], mean, covariance, alone, along)
        scores_out[t] = score
        if sign[t] == 0:
            continue
        plane = 1 if sign[t] > 0 else 0
        seen[plane] += step[t]
        weight = step[t]
        if balanced:
            weight *= 0.5 * (seen[0] + seen[1]) / seen[plane]
        moved, c = move(
            mean[:full], covariance, along, variance, score + mean[0], float(sign[t]), weight
        )
        for k in range(indptr[t], indptr[t + 1]):
            i = indices[k] + 1
            if i >= full:
                across = alone[i - full] * data[k]
                mean[i] += moved * across
                alone[i - full] -= c * across * across


# A part of a gradient beyond this counts as this: squares and their sums stay finite.
_MOST_PART, _MOST_SUM = 1e150, 1e300


@njit(cache=True, nogil=True, error_model="numpy")
def _moved(weight, squares, part, eta):
    """Weight and sum of squares after an AdaGrad step along one part of a gradient."""
    part = min(max(part, -_MOST_PART), _MOST_PART)
    squares = min(squares + part * part, _MOST_SUM)
    if squares > 0.0:
        weight -= eta * (part / np.sqrt(squares))
    return weight, squares


# The margin below which the exponential loss goes on as its tangent, and the largest weight.
_LEAST_MARGIN, _MOST_WEIGHT = -10.0, 1e100


@njit(cache=True, nogil=True, error_model="numpy")
def learn_by_gradient(
    indptr, indices, data, sign, step, coef, squares, intercept, seen, eta, balanced, scores_out
):
    """Learn from rows in order; `coef`, `squares`, `intercept` and `seen` are changed in place.

    Rows, `sign` and `scores_out` as in `_sparse_pairs_jit.learn`; ``step``: the weight of a row.
    Logistic regression by AdaGrad, with ``intercept`` b and the sum of its squared slopes; where it
    and `squares` are None, UniExp.
    """
    for t in range(sign.shape[0]):
        score = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            score += coef[indices[k]] * data[k]
        scores_out[t] = score
        if sign[t] == 0:
            continue
        y, plane = float(sign[t]), 1 if sign[t] > 0 else 0
        seen[plane] += step[t]
        weight = step[t] if squares is not None else eta * step[t]
        if balanced:
            weight *= 0.5 * (seen[0] + seen[1]) / seen[plane]
        if squares is None:
            slope = -y * weight * np.exp(-max(y * score, _LEAST_MARGIN))
        else:
            slope = -y * weight / (1.0 + np.exp(y * (score + intercept[0])))
        if not abs(slope) > 0.0:  # nothing to learn, or a score that overflowed both ways
            continue
        if squares is not None:
            intercept[0], intercept[1] = _moved(intercept[0], intercept[1], slope, eta)
        for k in range(indptr[t], indptr[t + 1]):
            i = indices[k]
            if squares is None:
                coef[i] = min(max(coef[i] - slope * data[k], -_MOST_WEIGHT), _MOST_WEIGHT)
            else:
                coef[i], squares[i] = _moved(coef[i], squares[i], slope * data[k], eta)
