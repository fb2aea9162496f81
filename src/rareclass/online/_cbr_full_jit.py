"""CBR with a full covariance: one row after another, each against the buffer of the other class."""

import math

import numpy as np

from rareclass.compiling import njit
from rareclass.online._vectors_jit import LANES, aligned, load, plus, spread, store, times, total

# A bound on a pair's variance comes out of numbers that may cancel. This share of what they were
# before goes on top, so that rounding puts no pair aside that needs a step.
_ROUNDING = 1e-11
# Pairs that are worked out together. More share less: of four, no sum leaves its register.
_TOGETHER = 4
# Rate of the moving mean of the share of pairs that take steps: one row tells little of the next.
_SHARE_RATE = 1.0 / 16
_LEAST_V = 1e-300  # where a pair's variance is smaller no step is made: nothing can overflow


@njit(cache=True, nogil=True)
def learn(X, sign, most, slot, mean, covariance, buffer, seen, bound, share, phi, busy, scores):
    """Learn from rows X in order; the state and scores change in place.

    ``bound[k, b] >= x_b' S x_b`` for buffered row b of class k. S only ever shrinks, so a bound
    stays one without being touched. Pairs are put aside by their bounds (`_against_bounds`), or
    all worked out (`_against_all`) where the share of pairs that took steps lately, ``share[0]``,
    is above `busy`: the steps are the same either way, to rounding.

    Numbers of matrices are named by row and column all through: a view of a row that is made in
    a loop counts its references, which took a third of the time (docs/decisions/0011). So does a
    function with two loops one after the other: each here has one.

    Shapes: X (n, d); sign, most (the greatest alpha of a row), slot and scores (n,); mean (d,);
    covariance (d, width), with zeros beyond d, the width a multiple of `LANES`; buffer (2, d,
    capacity), class 1 rare; seen (2,); bound (2, capacity); share (1,). Cost of a row: O(d^2 +
    capacity d), and as much again for every pair that may need a step.
    """
    n, d = X.shape
    capacity, width = buffer.shape[2], covariance.shape[1]
    work = aligned(4, width)
    mu, s, z, w = work[0], work[1], work[2], work[3]
    mu[:d] = mean
    Z, W = aligned(_TOGETHER, width), aligned(_TOGETHER, width)
    along_mean, along_s, along_w = np.empty(capacity), np.empty(capacity), np.empty(capacity)
    for t in range(n):
        x = X[t]
        scores[t] = _dot(mu, x)
        if sign[t] == 0:
            continue
        own = 1 if sign[t] > 0 else 0
        y, size = float(sign[t]), most[t]
        rows, limit = buffer[1 - own], bound[1 - own]
        filled = min(seen[1 - own], capacity)
        steps = 0
        if filled == 0:
            variance = _dot(x, x)  # S is the identity still
        elif share[0] > busy:
            steps = _against_all(x, y, size, phi, mu, covariance, rows, filled, Z, W)
            _product(covariance, x, s, len(s))
            variance = _dot(s, x)
        else:
            steps, variance = _against_bounds(
                x, y, size, phi, mu, covariance, rows, limit, filled,
                s, z, w, along_mean, along_s, along_w,
            )  # fmt: skip
        if filled:
            share[0] += _SHARE_RATE * (steps / filled - share[0])
        seen[own] += 1
        if slot[t] >= 0:
            for i in range(d):
                buffer[own, i, slot[t]] = x[i]
            bound[own, slot[t]] = variance
    mean[:] = mu[:d]


@njit(cache=True, nogil=True, error_model="numpy")
def _against_all(x, y, size, phi, mean, covariance, rows, filled, Z, W):
    """All pairs of x with the buffered rows, O(d^2) each; returns how many took a step.

    Four pairs share a sweep over S for ``W = S Z`` and another for their steps. What a step does to
    the pairs behind it, ``m_j += alpha y w.z_j`` and ``w_j -= beta (w.z_j) w``, follows from the
    ten products ``g_kj = z_k' S z_j``: an elimination of numbers that stay in registers. Z and
    W are room, shape (4, width).
    """
    steps = 0
    b, together = 0, _TOGETHER
    while b < filled:
        stop = min(b + together, filled)
        _differences(x, rows, b, stop, Z)
        _products(covariance, Z, W)
        (g00, g01, g02, g03, g11, g12, g13, g22, g23, g33), margins = _gram(Z, W, mean)
        all_of_them = g00 + g01 + g02 + g03 + g11 + g12 + g13 + g22 + g23 + g33
        if not abs(all_of_them) < math.inf and together > 1:
            together = 1  # from here on: a pair that overflows leaves the others alone
            continue
        b = stop
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
        n = (t0 != 0.0) + (t1 != 0.0) + (t2 != 0.0) + (t3 != 0.0)
        if n > 0:
            steps += n
            _move(
                W, mean, t0, t1, t2, t3, math.sqrt(beta0), math.sqrt(beta1), math.sqrt(beta2),
                math.sqrt(beta3), c01, c02, c03, c12, c13, c23,
            )  # fmt: skip
            _shrink(covariance, W)
    return steps


@njit(cache=True, nogil=True)
def _differences(x, rows, start, stop, Z):
    """``Z_k = x - x_b`` of up to four buffered rows; 0, which makes no step, beyond the last."""
    for i in range(len(x)):
        for k in range(_TOGETHER):
            Z[k, i] = x[i] - rows[i, start + k] if start + k < stop else 0.0


@njit(cache=True, nogil=True)
def _products(S, Z, W):
    """``W = Z S`` by columns of S: four sums, and nothing stored meanwhile."""
    for j in range(0, S.shape[1], LANES):
        a = b = c = e = spread(0.0)
        for i in range(S.shape[0]):
            s = load(S, (i, j))
            a = plus(a, spread(Z[0, i]), s)
            b = plus(b, spread(Z[1, i]), s)
            c = plus(c, spread(Z[2, i]), s)
            e = plus(e, spread(Z[3, i]), s)
        store(W, (0, j), a)
        store(W, (1, j), b)
        store(W, (2, j), c)
        store(W, (3, j), e)


@njit(cache=True, nogil=True)
def _gram(Z, W, mean):
    """``z_k . w_j`` for k <= j, and ``mean . z_k``, in one pass."""
    g00 = g01 = g02 = g03 = g11 = g12 = g13 = g22 = g23 = g33 = spread(0.0)
    m0 = m1 = m2 = m3 = spread(0.0)
    for i in range(0, len(mean), LANES):
        z0, z1, z2, z3 = load(Z, (0, i)), load(Z, (1, i)), load(Z, (2, i)), load(Z, (3, i))
        w0, w1, w2, w3 = load(W, (0, i)), load(W, (1, i)), load(W, (2, i)), load(W, (3, i))
        g00, g01, g02 = plus(g00, z0, w0), plus(g01, z0, w1), plus(g02, z0, w2)
        g03 = plus(g03, z0, w3)
        g11, g12, g13 = plus(g11, z1, w1), plus(g12, z1, w2), plus(g13, z1, w3)
        g22, g23, g33 = plus(g22, z2, w2), plus(g23, z2, w3), plus(g33, z3, w3)
        m = load(mean, i)
        m0, m1, m2, m3 = plus(m0, z0, m), plus(m1, z1, m), plus(m2, z2, m), plus(m3, z3, m)
    g = (
        total(g00), total(g01), total(g02), total(g03), total(g11), total(g12), total(g13),
        total(g22), total(g23), total(g33),
    )  # fmt: skip
    return g, (total(m0), total(m1), total(m2), total(m3))


@njit(cache=True, nogil=True)
def _move(W, mean, t0, t1, t2, t3, s0, s1, s2, s3, c01, c02, c03, c12, c13, c23):
    """``mean += sum_k t_k w_k``, w_j short of ``c_kj w_k``; w_k is left s_k times as long."""
    for i in range(0, len(mean), LANES):
        w0 = load(W, (0, i))
        w1 = plus(load(W, (1, i)), spread(-c01), w0)
        w2 = plus(plus(load(W, (2, i)), spread(-c02), w0), spread(-c12), w1)
        w3 = plus(plus(load(W, (3, i)), spread(-c03), w0), spread(-c13), w1)
        w3 = plus(w3, spread(-c23), w2)
        m = plus(plus(load(mean, i), spread(t0), w0), spread(t1), w1)
        store(mean, i, plus(plus(m, spread(t2), w2), spread(t3), w3))
        store(W, (0, i), times(spread(s0), w0))
        store(W, (1, i), times(spread(s1), w1))
        store(W, (2, i), times(spread(s2), w2))
        store(W, (3, i), times(spread(s3), w3))


@njit(cache=True, nogil=True)
def _shrink(S, W):
    """``S -= sum_k w_k w_k'`` in one sweep, the k in order: so S stays exactly symmetric."""
    for j in range(0, S.shape[1], LANES):
        a, b, c, e = load(W, (0, j)), load(W, (1, j)), load(W, (2, j)), load(W, (3, j))
        for i in range(S.shape[0]):
            s = plus(load(S, (i, j)), spread(-W[0, i]), a)
            s = plus(s, spread(-W[1, i]), b)
            s = plus(s, spread(-W[2, i]), c)
            store(S, (i, j), plus(s, spread(-W[3, i]), e))


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
    steps = 0
    _product(covariance, x, s, len(s))
    _along(rows, mean, along_mean, filled)
    _along(rows, s, along_s, filled)
    score, variance = _dot(mean, x), _dot(s, x)
    slack = _ROUNDING * variance
    b = _next_violated(0, filled, y, score, variance + slack, along_mean, along_s, bound, phi)
    while b < filled:
        _difference(x, rows, b, z)
        _product(covariance, z, w, len(w))
        v = _dot(z, w)
        bound[b] = v - variance + 2.0 * along_s[b] + slack
        alpha, beta = _step_sizes(y * _dot(mean, z), v, size, phi)
        if alpha > 0.0:
            steps += 1
            _step(alpha * y, beta, w, mean, covariance)
            of_x = _dot(w, x)
            score += alpha * y * of_x
            variance -= beta * of_x * of_x
            _along(rows, w, along_w, filled)
            for j in range(filled):
                along_mean[j] += alpha * y * along_w[j]
                along_s[j] -= beta * of_x * along_w[j]
                bound[j] = bound[j] * (1.0 + _ROUNDING) - beta * along_w[j] * along_w[j]
        b = _next_violated(
            b + 1, filled, y, score, variance + slack, along_mean, along_s, bound, phi
        )
    return steps, variance


@njit(cache=True, nogil=True)
def _step(size, beta, w, mean, covariance):
    """``mean += size w`` and ``S -= beta w w'``, which stays exactly symmetric."""
    for j in range(0, len(w), LANES):
        part = load(w, j)
        store(mean, j, plus(load(mean, j), spread(size), part))
        for i in range(covariance.shape[0]):
            s = load(covariance, (i, j))
            store(covariance, (i, j), plus(s, spread(-beta), times(spread(w[i]), part)))


@njit(cache=True, nogil=True)
def _next_violated(start, stop, y, score, variance, along_mean, along_s, bound, phi):
    """The first pair from `start` on whose loss may be above zero; `stop` when there is none."""
    for b in range(start, stop):
        v = max(variance - 2.0 * along_s[b] + bound[b], 0.0) + _ROUNDING * bound[b]
        margin = y * (score - along_mean[b])
        if not ((margin >= 0.0) & (phi * phi * v <= margin * margin)):
            return b
    return stop


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _step_sizes(m, v, size, phi):
    """Proposition 1's alpha and beta for margin m and variance v; 0 where no step is due."""
    square = phi * phi
    zeta = 1.0 + square
    half = 0.5 * square * m
    root = math.sqrt(half * half + v * (square * zeta))
    full = root - (m + half)
    far = size * v * phi
    beta_cut = 2.0 * size * phi / (far + math.sqrt(far * far + 4.0 * v))
    alpha = full * (1.0 / (v * zeta))
    beta = alpha * (square / (root - half))
    cut = full >= size * (v * zeta)
    alpha = size if cut else alpha
    beta = beta_cut if cut else beta
    due = (v > _LEAST_V) & (v < math.inf) & (full > 0.0) & ((m <= 0.0) | (m * m < square * v))
    return (alpha if due else 0.0), (beta if due else 0.0)


@njit(cache=True, nogil=True)
def _difference(x, rows, b, z):
    """``z = x - x_b``."""
    for i in range(len(x)):
        z[i] = x[i] - rows[i, b]


@njit(cache=True, nogil=True)
def _product(rows, coefficients, out, n):
    """``out[:n] = sum_i coefficients[i] rows[i, :n]``, four rows at a time, n >= `LANES`."""
    d = rows.shape[0]
    whole = d - d % 4
    for start in range(0, n, LANES):
        j = min(start, n - LANES)
        a = b = c = e = spread(0.0)
        for i in range(0, whole, 4):
            a = plus(a, spread(coefficients[i]), load(rows, (i, j)))
            b = plus(b, spread(coefficients[i + 1]), load(rows, (i + 1, j)))
            c = plus(c, spread(coefficients[i + 2]), load(rows, (i + 2, j)))
            e = plus(e, spread(coefficients[i + 3]), load(rows, (i + 3, j)))
        for i in range(whole, d):
            a = plus(a, spread(coefficients[i]), load(rows, (i, j)))
        one = spread(1.0)
        store(out, j, plus(plus(a, one, b), one, plus(c, one, e)))


@njit(cache=True, nogil=True, inline="always")
def _along(rows, coefficients, out, n):
    """The same product for any n."""
    if n >= LANES:
        _product(rows, coefficients, out, n)
    else:
        _narrow_product(rows, coefficients, out, n)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _narrow_product(rows, coefficients, out, n):
    """The same one by one."""
    for j in range(n):
        out[j] = 0.0
        for i in range(rows.shape[0]):
            out[j] += coefficients[i] * rows[i, j]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _dot(a, b):
    """``a . b`` over the numbers of b."""
    found = 0.0
    for i in range(len(b)):
        found += a[i] * b[i]
    return found
