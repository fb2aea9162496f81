"""Compiled loops of OPAUC and AdaOAM: moments of both classes, then a step against the other one.

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
    share = h / (weight[own] + h)
    factor = weight[own] * share
    weight[own] += h
    for i in range(x.shape[0]):
        gap[i] = x[i] - mean[i]
        mean[i] += share * gap[i]
    spread[own] += factor * _dot(gap, gap)
    for j in range(x.shape[0]):
        scaled = factor * gap[j]
        for i in range(x.shape[0]):
            scatter[j, i] += scaled * gap[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _product(matrix, v, out):
    """out = matrix v of a symmetric matrix."""
    for j in range(v.shape[0]):
        out[j] = _dot(matrix[j], v)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _step_length(eta, direction, gradient, lam, gap, scatter, n, bound, product):
    """eta, or the minimum along the direction where eta would raise the row's own objective.

    Along w - t p that objective is -t g'p + t^2/2 p'Hp, with H = lam I + gap gap' + covariance.
    `bound` is above the greatest eigenvalue of H: where that is enough the product is spared.
    """
    slope = _dot(gradient, direction)
    square = _dot(direction, direction)
    if eta * bound * square <= 2.0 * slope:
        return eta
    _product(scatter, direction, product)
    along = _dot(gap, direction)
    curvature = lam * square + along * along + _dot(direction, product) / n
    return eta if eta * curvature <= 2.0 * slope else slope / curvature


@njit(cache=True, nogil=True, fastmath=_FAST)
def _gradient(x, y, lam, coef, centre, scatter, n, gap, gradient):
    """Fill in the gradient of the row's objective, and gap = x - centre; returns gap' gap."""
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
def learn(rows, sign, step, eta, lam, delta, coef, squares, moments, scores_out):
    """Go through dense rows in order; weights, squares and moments change in place.

    ``delta``: of AdaOAM, which has sums of squared gradients; None for OPAUC. ``scores_out``: each
    row's w.x before it.
    """
    weight, mean, scatter, spread = moments
    room = np.empty((4, coef.shape[0]))
    gap, gradient, product = room[0], room[1], room[2]
    direction = gradient if delta is None else room[3]
    for t in range(rows.shape[0]):
        x, y = rows[t], float(sign[t])
        scores_out[t] = _dot(coef, x)
        if y == 0.0:
            continue
        own, other = (1, 0) if y > 0.0 else (0, 1)
        _add_row(x, step[t], own, moments, gap)
        n = weight[other]
        if n == 0.0:
            continue
        square = _gradient(x, y, lam, coef, mean[other], scatter[other], n, gap, gradient)
        if delta is not None:
            _adapt(gradient, squares, delta, direction)
        bound = lam + square + spread[other] / n
        size = _step_length(
            eta * step[t], direction, gradient, lam, gap, scatter[other], n, bound, product
        )
        for i in range(coef.shape[0]):
            coef[i] -= size * direction[i]


# -- covariances of low rank: no row costs a sweep over all features -------------------------
#
# The moments of a class are the k columns of A = sum x r' and the sum of its rows. They are columns
# of `basis`, the majority's k + 1 first, and behind them stands one column more, so that
# w = basis along: a gradient is a combination of w, the row and the columns, and a step changes
# `along` and the row's non-zeros of the last column. All inner products come from
# gram = basis' basis and basis' x.

# Columns and `along` drift apart by a step's length a row, and their sum loses as many digits.
_LEAST_FOLD, _FOLD_SHARE = 1024, 16
_LEAST_SCALE = 1e-3


@njit(cache=True, nogil=True, fastmath=_FAST)
def _products(indices, data, basis, out):
    """out = basis' x; returns x'x."""
    out[:] = 0.0
    square = 0.0
    for i in range(indices.shape[0]):
        row = basis[indices[i]]
        for j in range(out.shape[0]):
            out[j] += data[i] * row[j]
        square += data[i] * data[i]
    return square


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add(indices, data, x_x, entry, start, basis, gram, x_products):
    """basis += x entry' in the columns from start; gram and basis' x follow."""
    size = entry.shape[0]
    for i in range(indices.shape[0]):
        row = basis[indices[i], start : start + size]
        for j in range(size):
            row[j] += data[i] * entry[j]
    for i in range(gram.shape[0]):
        row = gram[i, start : start + size]
        for j in range(size):
            row[j] += x_products[i] * entry[j]
    for j in range(size):
        x_products[start + j] += x_x * entry[j]
    for j in range(size):
        row = gram[start + j]
        for i in range(gram.shape[0]):
            row[i] += entry[j] * x_products[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _projected_gradient(y, lam, first, along, gram, draws, n, w_x, out):
    """Gradient g = basis out + pull x of the row's objective; returns pull.

    The other class, of weight n, has the columns from first: with the sum of its rows s and its
    draws, the covariance is Z Z' / (k n) for Z = A - s draws' / n.
    """
    k = draws.shape[0]
    w_centre = _dot(gram[first + k], along) / n
    pull = w_x - w_centre - y
    out[:] = lam * along
    total = 0.0
    for j in range(k):
        part = (_dot(gram[first + j], along) - draws[j] * w_centre) / (k * n)
        out[first + j] += part
        total += part * draws[j]
    out[first + k] -= (pull + total) / n
    return pull


@njit(cache=True, nogil=True, fastmath=_FAST)
def _projected_step_length(eta, lam, pull, part, first, gram, draws, n, x_products, x_x):
    """eta, or the minimum along g = basis part + pull x where eta would raise the objective."""
    k = draws.shape[0]
    x_g = _dot(part, x_products) + pull * x_x
    square = pull * x_g
    g_products = np.empty(part.shape[0])
    for i in range(part.shape[0]):
        g_products[i] = _dot(gram[i], part) + pull * x_products[i]
        square += part[i] * g_products[i]
    if square <= 0.0:
        return 0.0
    centre_g = g_products[first + k] / n
    curvature = lam * square + (x_g - centre_g) ** 2
    for j in range(k):
        z_g = g_products[first + j] - draws[j] * centre_g
        curvature += z_g * z_g / (k * n)
    return eta if eta * curvature <= 2.0 * square else square / curvature


@njit(cache=True, nogil=True, fastmath=_FAST)
def _fold(basis, along, gram):
    """Put all of w in the last column: nothing changes but the rounding."""
    last = along.shape[0] - 1
    gram[last] = 0.0
    for i in range(basis.shape[0]):
        row = basis[i]
        w = _dot(row, along)
        row[last] = w
        for j in range(last + 1):
            gram[last, j] += w * row[j]
    gram[:, last] = gram[last]
    along[:] = 0.0
    along[last] = 1.0


@njit(cache=True, nogil=True, fastmath=_FAST)
def learn_projected(
    indptr, indices, data, sign, step, drawn, eta, lam, basis, along, gram, all_draws, weight,
    n_steps, scores_out,
):  # fmt: skip
    """Go through sparse rows in order; the state, which is `LowRankState`, changes in place.

    ``drawn``: k normal numbers of each row, shape (n, k). ``scores_out``: each row's w.x before it.
    """
    k, last = drawn.shape[1], along.shape[0] - 1
    fold_after = max(_LEAST_FOLD, basis.shape[0] // _FOLD_SHARE)
    x_products, part = np.empty(last + 1), np.empty(last + 1)
    entry, moved = np.empty(k + 1), np.empty(1)
    for t in range(sign.shape[0]):
        columns, values = indices[indptr[t] : indptr[t + 1]], data[indptr[t] : indptr[t + 1]]
        x_x = _products(columns, values, basis, x_products)
        w_x = _dot(along, x_products)
        scores_out[t] = w_x
        if sign[t] == 0:
            continue
        own, other = (1, 0) if sign[t] > 0 else (0, 1)
        # The row's class takes it in; what w gains by that, the last column gives back.
        for j in range(k):
            entry[j] = np.sqrt(step[t]) * drawn[t, j]
            all_draws[own, j] += entry[j]
        entry[k], start = step[t], own * (k + 1)
        weight[own] += step[t]
        _add(columns, values, x_x, entry, start, basis, gram, x_products)
        moved[0] = -_dot(entry, along[start : start + k + 1]) / along[last]
        _add(columns, values, x_x, moved, last, basis, gram, x_products)
        n = weight[other]
        if n == 0.0:
            continue
        first, draws = other * (k + 1), all_draws[other]
        pull = _projected_gradient(float(sign[t]), lam, first, along, gram, draws, n, w_x, part)
        size = _projected_step_length(
            eta * step[t], lam, pull, part, first, gram, draws, n, x_products, x_x
        )
        for j in range(last + 1):
            along[j] -= size * part[j]
        n_steps[0] += 1
        if abs(along[last]) < _LEAST_SCALE or n_steps[0] >= fold_after:
            _fold(basis, along, gram)
            n_steps[0] = 0
            _products(columns, values, basis, x_products)
        moved[0] = -size * pull / along[last]
        _add(columns, values, x_x, moved, last, basis, gram, x_products)
