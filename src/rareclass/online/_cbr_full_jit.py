"""CBR with a full covariance: one row after another, each against the buffer of the other class."""

import math

import numpy as np

from rareclass.compiling import njit

# A bound on a pair's variance comes out of numbers that may cancel. This share of what they were
# before goes on top, so that rounding puts no pair aside that needs a step.
_ROUNDING = 1e-11
# Pairs that are worked out together. More share less: of four, no sum leaves its register.
_TOGETHER = 4
_LEAST_V = 1e-300  # where a pair's variance is smaller no step is made: nothing can overflow
# With fewer features leaving out the pairs without a step costs more than it saves.
_FEW_FEATURES = 16


@njit(cache=True, nogil=True)
def learn(X, sign, step, slot, mean, covariance, buffer, seen, bound, share, C, phi, busy, scores):
    """Learn from rows X in order; the state and scores change in place.

    ``bound[k, b] >= x_b' S x_b`` for buffered row b of class k. S only ever shrinks, so a bound
    stays one without being touched. Pairs are put aside by their bounds (`_against_bounds`), or
    all worked out (`_against_all`) where the share of pairs of the row before that took steps,
    ``share[0]``, is above `busy`: the steps are the same either way, to rounding.

    Numbers of matrices are named by row and column all through: a view of a row that is made in
    a loop counts its references, which took a third of the time (docs/decisions/0042).

    Shapes: X (n, d); sign, step, slot and scores (n,); mean (d,); covariance (d, d); buffer
    (2, d, capacity), class 1 rare; seen (2,); bound (2, capacity); share (1,). Cost of a row:
    O(d^2 + capacity d), and as much again for every pair that may need a step.
    """
    n, d = X.shape
    capacity = buffer.shape[2]
    s, z, w = np.empty(d), np.empty(d), np.empty(d)
    Z, W, order = np.empty((_TOGETHER, d)), np.empty((_TOGETHER, d)), np.empty(5, np.int64)
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
            steps = _against_all(x, y, size, phi, mean, covariance, rows, filled, Z, W, order, z, w)
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
            for i in range(d):
                buffer[own, i, slot[t]] = x[i]
            bound[own, slot[t]] = variance


@njit(cache=True, nogil=True, error_model="numpy")
def _against_all(x, y, size, phi, mean, covariance, rows, filled, Z, W, order, z, w):
    """All pairs of x with the buffered rows, O(d^2) each; returns how many took a step.

    Four pairs share a sweep over S for ``W = S Z`` and another for their steps. What a step does to
    the pairs behind it, ``m_j += alpha y w.z_j`` and ``w_j -= beta (w.z_j) w``, follows from the
    ten products ``g_kj = z_k' S z_j``: an elimination of numbers that stay in registers. Shapes:
    Z, W (4, d), order (5,), and z and w (d,) for products that overflow.
    """
    steps = 0
    for b in range(0, filled, _TOGETHER):
        _differences(x, rows, b, filled, Z)
        _products(covariance, Z, W)
        (g00, g01, g02, g03, g11, g12, g13, g22, g23, g33), margins = _gram(Z, W, mean)
        total = g00 + g01 + g02 + g03 + g11 + g12 + g13 + g22 + g23 + g33
        if not abs(total) < math.inf:  # one pair that overflows leaves the others alone
            stop = min(b + _TOGETHER, filled)
            steps += _one_by_one(x, y, size, phi, mean, covariance, rows, b, stop, z, w)
            continue
        m0, m1, m2, m3 = margins
        t0, beta0 = _step_sizes(y * m0, g00, size, phi)
        t0 *= y
        c01, c02, c03 = beta0 * g01, beta0 * g02, beta0 * g03
        t1, beta1 = _step_sizes(y * (m1 + t0 * g01), g11 - c01 * g01, size, phi)
        t1 *= y
        g12, g13 = g12 - c01 * g02, g13 - c01 * g03
        c12, c13 = beta1 * g12, beta1 * g13
        v2 = g22 - c02 * g02 - c12 * g12
        t2, beta2 = _step_sizes(y * (m2 + t0 * g02 + t1 * g12), v2, size, phi)
        t2 *= y
        g23 = g23 - c02 * g03 - c12 * g13
        c23 = beta2 * g23
        v3 = g33 - c03 * g03 - c13 * g13 - c23 * g23
        t3, beta3 = _step_sizes(y * (m3 + t0 * g03 + t1 * g13 + t2 * g23), v3, size, phi)
        t3 *= y
        n = _in_order(t0, t1, t2, t3, order)
        if n > 0:
            steps += n
            _move(
                W, mean, t0, t1, t2, t3, math.sqrt(beta0), math.sqrt(beta1), math.sqrt(beta2),
                math.sqrt(beta3), c01, c02, c03, c12, c13, c23,
            )  # fmt: skip
            _shrink(covariance, W, order, n if len(x) >= _FEW_FEATURES else _TOGETHER)
    return steps


@njit(cache=True, nogil=True)
def _one_by_one(x, y, size, phi, mean, covariance, rows, start, stop, z, w):
    """The pairs with the buffered rows from start to stop, each by itself."""
    steps = 0
    for b in range(start, stop):
        _difference_and_product(x, rows, b, covariance, z, w)
        alpha, beta = _step_sizes(y * _dot(mean, z), _dot(z, w), size, phi)
        if alpha > 0.0:
            steps += 1
            _step(alpha * y, beta, w, mean, covariance)
    return steps


@njit(cache=True, nogil=True)
def _differences(x, rows, first, filled, Z):
    """``Z_k = x - x_b`` of four buffered rows; 0, which makes no step, beyond the last."""
    if first + _TOGETHER <= filled:
        for i in range(len(x)):
            Z[0, i] = x[i] - rows[i, first]
            Z[1, i] = x[i] - rows[i, first + 1]
            Z[2, i] = x[i] - rows[i, first + 2]
            Z[3, i] = x[i] - rows[i, first + 3]
    else:
        for k in range(_TOGETHER):
            for i in range(len(x)):
                Z[k, i] = x[i] - rows[i, first + k] if first + k < filled else 0.0


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _products(S, Z, W):
    """``W = Z S`` by tiles of four rows of S: sixteen sums, and nothing stored meanwhile.

    Where d is no multiple of four the last tile has its last row more than once.
    """
    d = S.shape[0]
    for i in range(0, d, 4):
        i1, i2, i3 = min(i + 1, d - 1), min(i + 2, d - 1), min(i + 3, d - 1)
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
        c0 = c1 = c2 = c3 = e0 = e1 = e2 = e3 = 0.0
        for j in range(d):
            a0 += S[i, j] * Z[0, j]
            a1 += S[i1, j] * Z[0, j]
            a2 += S[i2, j] * Z[0, j]
            a3 += S[i3, j] * Z[0, j]
            b0 += S[i, j] * Z[1, j]
            b1 += S[i1, j] * Z[1, j]
            b2 += S[i2, j] * Z[1, j]
            b3 += S[i3, j] * Z[1, j]
            c0 += S[i, j] * Z[2, j]
            c1 += S[i1, j] * Z[2, j]
            c2 += S[i2, j] * Z[2, j]
            c3 += S[i3, j] * Z[2, j]
            e0 += S[i, j] * Z[3, j]
            e1 += S[i1, j] * Z[3, j]
            e2 += S[i2, j] * Z[3, j]
            e3 += S[i3, j] * Z[3, j]
        W[0, i], W[0, i1], W[0, i2], W[0, i3] = a0, a1, a2, a3
        W[1, i], W[1, i1], W[1, i2], W[1, i3] = b0, b1, b2, b3
        W[2, i], W[2, i1], W[2, i2], W[2, i3] = c0, c1, c2, c3
        W[3, i], W[3, i1], W[3, i2], W[3, i3] = e0, e1, e2, e3


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _gram(Z, W, mean):
    """``z_k . w_j`` for k <= j, and ``mean . z_k``, in one pass."""
    g00 = g01 = g02 = g03 = g11 = g12 = g13 = g22 = g23 = g33 = 0.0
    m0 = m1 = m2 = m3 = 0.0
    for i in range(len(mean)):
        g00 += Z[0, i] * W[0, i]
        g01 += Z[0, i] * W[1, i]
        g02 += Z[0, i] * W[2, i]
        g03 += Z[0, i] * W[3, i]
        g11 += Z[1, i] * W[1, i]
        g12 += Z[1, i] * W[2, i]
        g13 += Z[1, i] * W[3, i]
        g22 += Z[2, i] * W[2, i]
        g23 += Z[2, i] * W[3, i]
        g33 += Z[3, i] * W[3, i]
        m0 += Z[0, i] * mean[i]
        m1 += Z[1, i] * mean[i]
        m2 += Z[2, i] * mean[i]
        m3 += Z[3, i] * mean[i]
    return (g00, g01, g02, g03, g11, g12, g13, g22, g23, g33), (m0, m1, m2, m3)


@njit(cache=True, nogil=True)
def _in_order(t0, t1, t2, t3, order):
    """How many of the four step; ``order`` begins with which."""
    n = 0
    order[0] = 0
    n += t0 != 0.0
    order[n] = 1
    n += t1 != 0.0
    order[n] = 2
    n += t2 != 0.0
    order[n] = 3
    n += t3 != 0.0
    return n


@njit(cache=True, nogil=True, fastmath={"contract"})
def _move(W, mean, t0, t1, t2, t3, s0, s1, s2, s3, c01, c02, c03, c12, c13, c23):
    """``mean += sum_k t_k w_k``, where w_j is short of ``c_kj w_k``; w_k is left s_k times as long.

    s_k is the root of beta_k: so scaled, S - sum w_k w_k' stays exactly symmetric.
    """
    for i in range(len(mean)):
        w0 = W[0, i]
        w1 = W[1, i] - c01 * w0
        w2 = W[2, i] - c02 * w0 - c12 * w1
        w3 = W[3, i] - c03 * w0 - c13 * w1 - c23 * w2
        mean[i] += t0 * w0 + t1 * w1 + t2 * w2 + t3 * w3
        W[0, i] = s0 * w0
        W[1, i] = s1 * w1
        W[2, i] = s2 * w2
        W[3, i] = s3 * w3


@njit(cache=True, nogil=True, fastmath={"contract"})
def _shrink(S, W, order, n):
    """``S -= sum_k w_k w_k'`` over the first n in order, in one sweep."""
    d = S.shape[0]
    k0, k1, k2 = order[0], order[1], order[2]
    if n == 4:
        for i in range(d):
            p, q, r, t = W[0, i], W[1, i], W[2, i], W[3, i]
            for j in range(d):
                S[i, j] = S[i, j] - p * W[0, j] - q * W[1, j] - r * W[2, j] - t * W[3, j]
    elif n == 3:
        for i in range(d):
            p, q, r = W[k0, i], W[k1, i], W[k2, i]
            for j in range(d):
                S[i, j] = S[i, j] - p * W[k0, j] - q * W[k1, j] - r * W[k2, j]
    else:
        _shrink_by_few(S, W, k0, k1, n)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _shrink_by_few(S, W, k0, k1, n):
    """The same for one or two pairs."""
    d = S.shape[0]
    if n == 2:
        for i in range(d):
            p, q = W[k0, i], W[k1, i]
            for j in range(d):
                S[i, j] = S[i, j] - p * W[k0, j] - q * W[k1, j]
    else:
        for i in range(d):
            p = W[k0, i]
            for j in range(d):
                S[i, j] = S[i, j] - p * W[k0, j]


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
        alpha, beta = _step_sizes(y * _dot(mean, z), v, size, phi)
        if alpha > 0.0:
            steps += 1
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _step_sizes(m, v, size, phi):
    """Proposition 1's alpha and beta of a pair with margin m and variance v; 0 where none is due.

    Of ``alpha = min(size, full / (v zeta))`` both cases are worked out, without branches and each
    with one root: which it will be is a toss-up. Where alpha is not cut short, the equation that
    it solves gives ``beta = phi^2 full / (v (root + half + phi^2 full))``; neither form cancels.
    """
    square = phi * phi
    zeta = 1.0 + square
    half = 0.5 * square * m
    root = math.sqrt(half * half + v * (square * zeta))
    full = root - (m + half)
    spread = size * v * phi
    beta_cut = 2.0 * size * phi / (spread + math.sqrt(spread * spread + 4.0 * v))
    alpha = full / (v * zeta)
    beta = square * full / (v * (root + half + square * full))
    cut = full >= size * (v * zeta)
    alpha = size if cut else alpha
    beta = beta_cut if cut else beta
    due = (v > _LEAST_V) & (v < math.inf) & (full > 0.0) & ((m <= 0.0) | (m * m < square * v))
    return (alpha if due else 0.0), (beta if due else 0.0)


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
        c0, c1 = coefficients[i], coefficients[i + 1]
        c2, c3 = coefficients[i + 2], coefficients[i + 3]
        for j in range(n):
            out[j] = (
                out[j]
                + c0 * rows[i, j]
                + c1 * rows[i + 1, j]
                + c2 * rows[i + 2, j]
                + c3 * rows[i + 3, j]
            )
    for i in range(whole, d):
        c0 = coefficients[i]
        for j in range(n):
            out[j] = out[j] + c0 * rows[i, j]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _product_of_few(rows, coefficients, out):
    """``out = sum_i coefficients[i] rows[i]`` where many coefficients are 0."""
    for j in range(len(out)):
        out[j] = 0.0
    for i in range(len(coefficients)):
        c0 = coefficients[i]
        if c0 != 0.0:
            for j in range(len(out)):
                out[j] = out[j] + c0 * rows[i, j]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _dot(a, b):
    """``a . b``."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
