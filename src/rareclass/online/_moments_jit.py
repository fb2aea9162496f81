"""Compiled loop of OPAUC and AdaOAM: moments of both classes, then a step against the other one.

``mean`` and ``scatter`` have one plane a class (1 rare, 0 majority); scatter / weight is the
class's covariance and ``spread`` the trace of scatter.
"""

import numpy as np

from rareclass.compiling import njit

# Sums may be taken in any order, fixed once compiled: that is what lets them run in vector lanes. A
# loop with a sum stores nothing: where a loop stores, the compiled code has a second way for arrays
# that overlap, with another order.
_FAST = {"reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_row(x, h, own, moments, gap):
    """Welford: the class takes in a row of weight h. gap is room for a row."""
    weight, means, scatters, spread = moments
    mean, scatter = means[own], scatters[own]
    before = weight[own]
    weight[own] += h
    share = h / weight[own]
    factor = before * share
    for i in range(x.shape[0]):
        gap[i] = x[i] - mean[i]
    for i in range(x.shape[0]):
        mean[i] += share * gap[i]
    if factor == 0.0:
        return
    spread[own] += factor * _dot(gap, gap)
    for j in range(x.shape[0]):
        scaled = factor * gap[j]
        row = scatter[j]
        for i in range(x.shape[0]):
            row[i] += scaled * gap[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _product(matrix, v, out):
    """out = matrix v of a symmetric matrix, four of its rows at a time.

    Rows are added up rather than dotted with v, so that out is loaded and stored a quarter as
    often and nothing waits for the end of a sum.
    """
    d = v.shape[0]
    for i in range(d):
        out[i] = 0.0
    whole = d - d % 4
    for j in range(0, whole, 4):
        v0, v1, v2, v3 = v[j], v[j + 1], v[j + 2], v[j + 3]
        r0, r1, r2, r3 = matrix[j], matrix[j + 1], matrix[j + 2], matrix[j + 3]
        for i in range(d):
            out[i] += (r0[i] * v0 + r1[i] * v1) + (r2[i] * v2 + r3[i] * v3)
    for j in range(whole, d):
        vj = v[j]
        row = matrix[j]
        for i in range(d):
            out[i] += row[i] * vj


@njit(cache=True, nogil=True, fastmath=_FAST)
def _step_length(eta, direction, gradient, lam, gap, scatter, n, bound, product):
    """eta, or the minimum along the direction where eta would raise the row's own objective.

    Along w - t p that objective is -t g'p + t^2/2 p'Hp, with H = lam I + gap gap' + covariance:
    it rises when t is above twice the minimum. `bound` is above the greatest eigenvalue of H, and
    rows for which that is enough are spared the product.
    """
    slope = _dot(gradient, direction)
    square = _dot(direction, direction)
    if eta * bound * square <= 2.0 * slope:
        return eta
    _product(scatter, direction, product)
    along = _dot(gap, direction)
    curvature = lam * square + along * along + _dot(direction, product) / n
    if eta * curvature <= 2.0 * slope:
        return eta
    return slope / curvature


@njit(cache=True, nogil=True, fastmath=_FAST)
def _gradient(x, y, lam, coef, centre, scatter, n, gap, gradient):
    """Gradient of the row's objective, and gap = x - centre; returns gap' gap."""
    for i in range(x.shape[0]):
        gap[i] = x[i] - centre[i]
    _product(scatter, coef, gradient)
    pull = _dot(gap, coef) - y
    for i in range(x.shape[0]):
        gradient[i] = lam * coef[i] + pull * gap[i] + gradient[i] / n
    return _dot(gap, gap)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _adapt(gradient, squares, delta, direction):
    """AdaOAM's direction: each feature's gradient over the root of its sum of squares."""
    for i in range(gradient.shape[0]):
        squares[i] += gradient[i] * gradient[i]
        direction[i] = gradient[i] / (delta + np.sqrt(squares[i]))


@njit(cache=True, nogil=True, fastmath=_FAST)
def _learn(rows, sign, step, eta, lam, coef, adaptive, delta, squares, moments, scores_out):
    weight, mean, scatter, spread = moments
    room = np.empty((4, coef.shape[0]))
    gap, gradient, product = room[0], room[1], room[2]
    direction = room[3] if adaptive else gradient
    for t in range(rows.shape[0]):
        x, y = rows[t], float(sign[t])
        scores_out[t] = _dot(coef, x)
        if y == 0.0:
            continue
        own = 1 if y > 0.0 else 0
        _add_row(x, step[t], own, moments, gap)
        other = 1 - own
        n = weight[other]
        if n == 0.0:
            continue
        square = _gradient(x, y, lam, coef, mean[other], scatter[other], n, gap, gradient)
        if adaptive:
            _adapt(gradient, squares, delta, direction)
        bound = lam + square + spread[other] / n
        size = _step_length(
            eta * step[t], direction, gradient, lam, gap, scatter[other], n, bound, product
        )
        for i in range(coef.shape[0]):
            coef[i] -= size * direction[i]


def learn(rows, sign, step, eta, lam, coef, moments, delta=None, squares=None):
    """Go through dense rows in order, in place; returns each row's score before it.

    With delta and squares (a number a feature) it is AdaOAM, without OPAUC.
    """
    scores = np.empty(len(rows))
    adaptive = delta is not None
    delta, squares = (float(delta), squares) if adaptive else (0.0, np.empty(0))
    eta, lam, moments = float(eta), float(lam), tuple(moments)
    _learn(rows, sign, step, eta, lam, coef, adaptive, delta, squares, moments, scores)
    return scores
