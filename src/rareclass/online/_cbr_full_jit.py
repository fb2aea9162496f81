"""CBR with a full covariance: one row after another, each against the buffer of the other class."""

import math

import numpy as np

from rareclass.compiling import njit

# A bound on a pair's variance comes out of numbers that may cancel. This share of what they were
# before goes on top, so that rounding puts no pair aside that needs a step.
_ROUNDING = 1e-11


@njit(cache=True, nogil=True)
def learn(X, sign, step, slot, mean, covariance, buffer, seen, bound, share, C, phi, busy, scores):
    """Learn from rows X in order; the state and scores change in place.

    ``bound[k, b] >= x_b' S x_b`` for buffered row b of class k. S only ever shrinks, so a bound
    stays one without being touched. Pairs are put aside by their bounds (`_against_bounds`), or
    all worked out (`_against_all`) where the share of pairs of the row before that took steps,
    ``share[0]``, is above `busy`: the steps are the same numbers either way.

    Shapes: X (n, d); sign, step, slot and scores (n,); mean (d,); covariance (d, d); buffer
    (2, d, capacity), class 1 rare; seen (2,); bound (2, capacity); share (1,). Cost of a row:
    O(d^2 + capacity d), and as much again for every pair that may need a step.
    """
    n, d = X.shape
    capacity = buffer.shape[2]
    s, z, w = np.empty(d), np.empty(d), np.empty(d)
    along_mean, along_s, along_w = np.empty(capacity), np.empty(capacity), np.empty(capacity)
    for t in range(n):
        x = X[t]
        scores[t] = _dot(mean, x)
        if sign[t] == 0:
            continue
        own = 1 if sign[t] > 0 else 0
        y, size = float(sign[t]), C * step[t]
        rows, limit = buffer[1 - own], bound[1 - own]
        filled = min(seen[1 - own], capacity)
        if filled == 0:
            variance = _dot(x, x)  # S is the identity still
        elif share[0] > busy:
            steps = _against_all(x, y, size, phi, mean, covariance, rows, filled, z, w)
            _product(covariance, x, s, d)
            share[0], variance = steps / filled, _dot(x, s)
        else:
            steps, variance = _against_bounds(
                x, y, size, phi, mean, covariance, rows, limit, filled,
                s, z, w, along_mean, along_s, along_w,
            )  # fmt: skip
            share[0] = steps / filled
        seen[own] += 1
        if slot[t] >= 0:
            buffer[own, :, slot[t]] = x
            bound[own, slot[t]] = variance


@njit(cache=True, nogil=True)
def _against_all(x, y, size, phi, mean, covariance, rows, filled, z, w):
    """All pairs of x with the buffered rows, O(d^2) each; returns how many took a step."""
    steps = 0
    for b in range(filled):
        _difference_and_product(x, rows, b, covariance, z, w)
        v = _dot(z, w)
        alpha = _step_length(y * _dot(mean, z), v, size, phi)
        if alpha > 0.0:
            steps += 1
            _step(alpha * y, _shrinkage(alpha, v, phi), w, mean, covariance)
    return steps


@njit(cache=True, nogil=True, inline="always")
def _against_bounds(
    x, y, size, phi, mean, covariance, rows, bound, filled, s, z, w, along_mean, along_s, along_w
):  # fmt: skip
    """The same, with the pairs that need no step put aside; returns steps, and x' S x after them.

    1. With ``s = S x``, margins ``m = y mean.(x - x_b)`` and bounds
       ``x.s - 2 s.x_b + bound_b >= z' S z`` of all pairs are one product each.
    2. A pair with ``phi sqrt(bound on z'Sz) <= m`` needs no step: O(1).
    3. Another is worked out from z itself, ``w = S z``; where its loss is above 0 it takes the step
       ``mean += alpha y w``, ``S -= beta w w'``.
    4. After a step, ``w.x_b`` corrects the margins, ``s.x_b`` and bounds of 1: one more product.
    """
    d = len(x)
    steps = 0
    _product(covariance, x, s, d)
    _product(rows, mean, along_mean, filled)
    _product(rows, s, along_s, filled)
    score, variance = _dot(mean, x), _dot(x, s)
    slack = _ROUNDING * variance
    b = _next_violated(0, filled, y, score, variance + slack, along_mean, along_s, bound, phi)
    while b < filled:
        _difference_and_product(x, rows, b, covariance, z, w)
        v = _dot(z, w)
        bound[b] = v - variance + 2.0 * along_s[b] + slack
        alpha = _step_length(y * _dot(mean, z), v, size, phi)
        if alpha > 0.0:
            steps += 1
            beta = _shrinkage(alpha, v, phi)
            _step(alpha * y, beta, w, mean, covariance)
            of_x = _dot(w, x)
            score += alpha * y * of_x
            variance -= beta * of_x * of_x
            _product(rows, w, along_w, filled)
            for j in range(filled):
                along_mean[j] += alpha * y * along_w[j]
                along_s[j] -= beta * of_x * along_w[j]
                bound[j] = bound[j] * (1.0 + _ROUNDING) - beta * along_w[j] * along_w[j]
        b = _next_violated(
            b + 1, filled, y, score, variance + slack, along_mean, along_s, bound, phi
        )
    return steps, variance


@njit(cache=True, nogil=True, fastmath={"contract"})
def _step(size, beta, w, mean, covariance):
    """``mean += size w`` and ``S -= beta w w'``, which stays exactly symmetric."""
    for i in range(len(w)):
        mean[i] += size * w[i]
        for j in range(len(w)):
            covariance[i, j] -= beta * (w[i] * w[j])


@njit(cache=True, nogil=True)
def _next_violated(start, stop, y, score, variance, along_mean, along_s, bound, phi):
    """The first pair from `start` on whose loss may be above zero; `stop` when there is none."""
    for b in range(start, stop):
        v = max(variance - 2.0 * along_s[b] + bound[b], 0.0) + _ROUNDING * bound[b]
        if not phi * math.sqrt(v) <= y * (score - along_mean[b]):
            return b
    return stop


@njit(cache=True, nogil=True)
def _step_length(m, v, size, phi):
    """Proposition 1's alpha of a pair with margin m and variance v; 0 where no step is due."""
    if not (v > 0.0 and v < math.inf) or phi * math.sqrt(v) - m <= 0.0:
        return 0.0
    square = phi * phi
    psi, zeta = 1.0 + 0.5 * square, 1.0 + square
    root = math.sqrt(0.25 * m * m * square * square + v * square * zeta)
    alpha = (root - m * psi) / (v * zeta)
    return min(size, max(0.0, alpha))


@njit(cache=True, nogil=True)
def _shrinkage(alpha, v, phi):
    """Proposition 1's beta, in the form that does not cancel."""
    spread = alpha * v * phi
    root_u = 2.0 * v / (spread + math.sqrt(spread * spread + 4.0 * v))
    return alpha * phi / (root_u + spread)


@njit(cache=True, nogil=True, inline="always")
def _difference_and_product(x, rows, b, covariance, z, w):
    """``z = x - x_b`` and ``w = S z``; by few features where most agree, as indicators do."""
    d = len(x)
    differing = 0
    for i in range(d):
        z[i] = x[i] - rows[i, b]
        differing += z[i] != 0.0
    if 2 * differing < d:
        _product_of_few(covariance, z, w)
    else:
        _product(covariance, z, w, d)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _product(rows, coefficients, out, n):
    """``out[:n] = sum_i coefficients[i] rows[i, :n]``, four rows at a time."""
    d = len(coefficients)
    for j in range(n):
        out[j] = 0.0
    whole = d - d % 4
    for i in range(0, whole, 4):
        c0, c1, c2, c3 = coefficients[i : i + 4]
        r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        for j in range(n):
            out[j] = out[j] + c0 * r0[j] + c1 * r1[j] + c2 * r2[j] + c3 * r3[j]
    for i in range(whole, d):
        c0, r0 = coefficients[i], rows[i]
        for j in range(n):
            out[j] = out[j] + c0 * r0[j]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _product_of_few(rows, coefficients, out):
    """``out = sum_i coefficients[i] rows[i]`` where many coefficients are 0."""
    for j in range(len(out)):
        out[j] = 0.0
    for i in range(len(coefficients)):
        c0 = coefficients[i]
        if c0 != 0.0:
            r0 = rows[i]
            for j in range(len(out)):
                out[j] = out[j] + c0 * r0[j]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _dot(a, b):
    """``a . b``."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
