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


def learn(rows, sign, step, eta, lam, coef, moments, delta, squares):
    """Go through dense rows in order, in place; returns each row's score before it.

    With a delta, and squares for each feature, it is AdaOAM; without (None, none) OPAUC.
    """
    scores = np.empty(len(rows))
    adaptive, delta = delta is not None, float(delta or 0.0)
    eta, lam, moments = float(eta), float(lam), tuple(moments)
    _learn(rows, sign, step, eta, lam, coef, adaptive, delta, squares, moments, scores)
    return scores


# -- covariances of low rank: no row costs a sweep over all features -------------------------
#
# The moments of a class are the k columns of A = sum x r' and the sum of its rows: k + 1 columns of
# ``basis`` (the majority's first). A gradient is a combination of w, the row and those columns, so
# w is kept as ``scale base + basis along``, in which a step changes the row's non-zeros of base and
# the 2 (k + 1) numbers of along. Inner products come from ``gram = basis' basis`` and
# ``products = basis' base``, which rows change by rank one. ``numbers`` holds scale, base' base and
# the steps since w was last folded into base.

# base and basis along drift apart by a step's length a row, and their sum loses as many digits.
_LEAST_FOLD, _FOLD_SHARE = 1024, 16
_LEAST_SCALE = 1e-3


@njit(cache=True, nogil=True, fastmath=_FAST)
def _products(indices, data, basis, base, out):
    """out = basis' x; returns base' x and x'x."""
    out[:] = 0.0
    along, square = 0.0, 0.0
    for i in range(indices.shape[0]):
        value = data[i]
        row = basis[indices[i]]
        for j in range(out.shape[0]):
            out[j] += value * row[j]
        along += value * base[indices[i]]
        square += value * value
    return along, square


@njit(cache=True, nogil=True, fastmath=_FAST)
def _shift(x, factor, model, x_products, x_base, x_x):
    """base += factor x, with its products; returns base' x after."""
    indices, data = x
    base, _, products, numbers = model
    for i in range(indices.shape[0]):
        base[indices[i]] += factor * data[i]
    for j in range(products.shape[0]):
        products[j] += factor * x_products[j]
    numbers[1] += factor * (2.0 * x_base + factor * x_x)
    return x_base + factor * x_x


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_columns(x, entry, start, basis, gram, x_products, x_x):
    """basis += x entry' in the columns from start; gram and x_products follow."""
    indices, data = x
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
def _hold(x, own, h, drawn, model, moments, x_products, x_base, x_x):
    """The moments of the row's class take it in, and w stays; returns base' x after."""
    _, along, products, numbers = model
    basis, gram, draws, weight = moments
    k = drawn.shape[0]
    start = own * (k + 1)
    entry = np.empty(k + 1)
    entry[k] = h
    for j in range(k):
        entry[j] = np.sqrt(h) * drawn[j]
        draws[own, j] += entry[j]
    weight[own] += h
    gained = 0.0
    for j in range(k + 1):
        gained += entry[j] * along[start + j]
        products[start + j] += x_base * entry[j]
    _add_columns(x, entry, start, basis, gram, x_products, x_x)
    # What `basis along` gained, base gives back.
    return _shift(x, -gained / numbers[0], model, x_products, x_base, x_x)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _class_products(gram, along, products, scale, out):
    """out = basis' w for the columns of one class, whose columns of gram and products these are."""
    for j in range(out.shape[0]):
        out[j] = scale * products[j]
    for i in range(along.shape[0]):
        a = along[i]
        row = gram[i]
        for j in range(out.shape[0]):
            out[j] += a * row[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _part(w_class, draws, n, pull, out):
    """The gradient's part in the columns of the other class: Z (Z'w) / (k n) - pull c."""
    k = draws.shape[0]
    w_centre = w_class[k] / n
    total = 0.0
    for j in range(k):
        out[j] = (w_class[j] - draws[j] * w_centre) / (k * n)
        total += out[j] * draws[j]
    out[k] = -(pull + total) / n


@njit(cache=True, nogil=True, fastmath=_FAST)
def _bound(gram, draws, n, x_class, x_x):
    """|x - c|^2 and the trace of Z Z' / (k n): above the greatest eigenvalue of their sum."""
    k = draws.shape[0]
    centre_square = gram[k, k] / (n * n)
    trace = 0.0
    for j in range(k):
        trace += gram[j, j] + draws[j] * (draws[j] * centre_square - 2.0 * gram[j, k] / n)
    return max(x_x - 2.0 * x_class[k] / n + centre_square, 0.0) + max(trace, 0.0) / (k * n)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _square(gram, model):
    """w'w."""
    _, along, products, numbers = model
    square = numbers[0] * numbers[0] * numbers[1]
    for i in range(along.shape[0]):
        inner = 2.0 * numbers[0] * products[i]
        for j in range(along.shape[0]):
            inner += gram[i, j] * along[j]
        square += along[i] * inner
    return square


@njit(cache=True, nogil=True, fastmath=_FAST)
def _projected_step_length(eta, lam, pull, part, of_class, w_class, x_class, w_x, w_w, x_x):
    """eta, or the minimum along the gradient where eta would raise the row's own objective.

    g = lam w + pull x + C part, C the columns of the other class: all that is needed of g are
    its inner products with w, x, C and itself.
    """
    gram, draws, n = of_class
    k = draws.shape[0]
    w_g, x_g = lam * w_w + pull * w_x, lam * w_x + pull * x_x
    c_g = np.empty(k + 1)
    for i in range(k + 1):
        w_g += part[i] * w_class[i]
        x_g += part[i] * x_class[i]
        c_g[i] = lam * w_class[i] + pull * x_class[i]
        for j in range(k + 1):
            c_g[i] += gram[i, j] * part[j]
    square = lam * w_g + pull * x_g
    for i in range(k + 1):
        square += part[i] * c_g[i]
    if square <= 0.0:
        return 0.0
    centre_g = c_g[k] / n
    curvature = lam * square + (x_g - centre_g) ** 2
    for j in range(k):
        z_g = c_g[j] - draws[j] * centre_g
        curvature += z_g * z_g / (k * n)
    return eta if eta * curvature <= 2.0 * square else square / curvature


@njit(cache=True, nogil=True, fastmath=_FAST)
def _fold(basis, model):
    """Put all of w in base: nothing changes but the rounding."""
    base, along, products, numbers = model
    scale, square = numbers[0], 0.0
    products[:] = 0.0
    for i in range(base.shape[0]):
        row = basis[i]
        w = scale * base[i]
        for j in range(along.shape[0]):
            w += row[j] * along[j]
        for j in range(along.shape[0]):
            products[j] += w * row[j]
        base[i] = w
        square += w * w
    along[:] = 0.0
    numbers[0], numbers[1], numbers[2] = 1.0, square, 0.0


@njit(cache=True, nogil=True, fastmath=_FAST)
def _move(x, y, eta, lam, model, moments, x_products, w_x, x_base, x_x):
    """w -= eta g for a row whose other class has rows."""
    base, along, products, numbers = model
    basis, gram, all_draws, weight = moments
    other = 0 if y > 0.0 else 1
    draws, n = all_draws[other], weight[other]
    first, last = other * (draws.shape[0] + 1), (other + 1) * (draws.shape[0] + 1)
    x_class, of_class = x_products[first:last], gram[first:last, first:last]
    w_class, part = np.empty(last - first), np.empty(last - first)
    _class_products(gram[:, first:last], along, products[first:last], numbers[0], w_class)
    pull = w_x - w_class[-1] / n - y
    _part(w_class, draws, n, pull, part)
    if eta * (lam + _bound(of_class, draws, n, x_class, x_x)) > 2.0:
        w_w = _square(gram, model)
        other_class = (of_class, draws, n)
        eta = _projected_step_length(
            eta, lam, pull, part, other_class, w_class, x_class, w_x, w_w, x_x
        )
    shrink = 1.0 - eta * lam
    numbers[0] *= shrink
    numbers[2] += 1.0
    for j in range(along.shape[0]):
        along[j] *= shrink
    for j in range(part.shape[0]):
        along[first + j] -= eta * part[j]
    fold_after = max(_LEAST_FOLD, base.shape[0] // _FOLD_SHARE)
    if abs(numbers[0]) < _LEAST_SCALE or numbers[2] >= fold_after:
        _fold(basis, model)
        x_base, _ = _products(x[0], x[1], basis, base, x_products)
    _shift(x, -eta * pull / numbers[0], model, x_products, x_base, x_x)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _learn_projected(rows, sign, step, drawn, eta, lam, model, moments, scores_out):
    indptr, indices, data = rows
    base, along, _, numbers = model
    basis, weight = moments[0], moments[3]
    x_products = np.empty(along.shape[0])
    for t in range(sign.shape[0]):
        x = (indices[indptr[t] : indptr[t + 1]], data[indptr[t] : indptr[t + 1]])
        x_base, x_x = _products(x[0], x[1], basis, base, x_products)
        w_x = numbers[0] * x_base
        for j in range(along.shape[0]):
            w_x += along[j] * x_products[j]
        scores_out[t] = w_x
        if sign[t] == 0:
            continue
        own = 1 if sign[t] > 0 else 0
        x_base = _hold(x, own, step[t], drawn[t], model, moments, x_products, x_base, x_x)
        if weight[1 - own] > 0.0:
            y, size = float(sign[t]), eta * step[t]
            _move(x, y, size, lam, model, moments, x_products, w_x, x_base, x_x)


def learn_projected(rows, sign, step, drawn, eta, lam, model, moments):
    """Go through sparse rows in order, in place; returns each row's score before it."""
    scores = np.empty(len(sign))
    model, moments = tuple(model), tuple(moments)
    _learn_projected(tuple(rows), sign, step, drawn, float(eta), float(lam), model, moments, scores)
    return scores
