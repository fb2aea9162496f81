"""Compiled passes of dual coordinate descent over the rare rows.

``rows`` is a `RareRows`; ``v`` and ``g`` are A'alpha and left'alpha, kept up to date by every step,
so that a step costs the length of its row however many rows and columns there are.

Numba's cache names the module of `RareRows`, and finds its files by line: move both together.
"""

import numpy as np

from rareclass.compiling import njit


# Sums may be taken in any order (several lanes at a time); nothing else of fast mathematics.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _score(rows, i, v, g):
    """s_i = a_i . v + right_i . g."""
    total = 0.0
    right = rows.right[i]
    for k in range(right.shape[0]):
        total += right[k] * g[k]
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[k] * v[rows.indices[k]]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _add(rows, i, step, v, g):
    """v += step a_i, g += step left_i."""
    left = rows.left[i]
    for k in range(left.shape[0]):
        g[k] += step * left[k]
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        v[rows.indices[k]] += step * rows.data[k]


@njit(cache=True, nogil=True, error_model="numpy")
def _squared_norms(rows, norms_out):
    """<i, i> of every row; rounding below 0 is 0."""
    for i in range(norms_out.shape[0]):
        total = 0.0
        for k in range(rows.left.shape[1]):
            total += rows.left[i, k] * rows.right[i, k]
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.data[k] * rows.data[k]
        norms_out[i] = max(total, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _combine(rows, alpha, v_out, g_out):
    """v = A'alpha and g = left'alpha afresh, touching the columns of the rows alone."""
    g_out[:] = 0.0
    for k in range(rows.indices.shape[0]):
        v_out[rows.indices[k]] = 0.0
    for i in range(alpha.shape[0]):
        if alpha[i] != 0.0:
            _add(rows, i, alpha[i], v_out, g_out)


@njit(cache=True, nogil=True, error_model="numpy")
def _scores(rows, v, g, scores_out):
    """s of every row."""
    for i in range(scores_out.shape[0]):
        scores_out[i] = _score(rows, i, v, g)


@njit(cache=True, nogil=True, error_model="numpy")
def _shuffle(order, n, random):
    """Random permutation of order[:n] (Fisher and Yates; a 64-bit linear congruential sequence)."""
    x = random[0]
    for k in range(n - 1, 0, -1):
        x = x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = np.int64((x >> np.uint64(33)) % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    random[0] = x


@njit(cache=True, nogil=True, error_model="numpy")
def _descend(rows, norms, upper, alpha, v, g, order, random, enough, most):
    """Up to ``most`` passes of coordinate descent, with shrinking; returns how many,
    and how many rows they visited.

    A row moves to the best alpha_i within [0, upper_i], the others held:
    alpha_i <- clip(alpha_i - (s_i - 1) / <i, i>). A row at a bound whose slope points out of the
    box by more than any slope of the pass before is left out of the passes that follow. Stops when
    the terms of the duality gap, each as it was when its row was visited, sum to ``enough`` or
    less; under no upper bound the terms are |s_i - 1| alpha_i and the worst 1 - s_i times the sum.
    """
    n_active = order.shape[0]
    n_passes, n_visits = 0, 0
    steepest_in, steepest_out = -np.inf, np.inf
    while n_passes < most:
        n_passes += 1
        _shuffle(order, n_active, random)
        n_visits += n_active
        lowest, highest, gap, worst, total = 0.0, 0.0, 0.0, 0.0, 0.0
        k = 0
        while k < n_active:
            i = order[k]
            a, top = alpha[i], upper[i]
            slope = _score(rows, i, v, g) - 1.0
            if (a <= 0.0 and slope > steepest_out) or (a >= top and slope < steepest_in):
                n_active -= 1
                order[k], order[n_active] = order[n_active], i
                continue
            k += 1
            total += a
            if slope >= 0.0:
                gap += slope * a
            elif top < np.inf:
                gap -= slope * (top - a)
            else:
                gap -= slope * a
                worst = max(worst, -slope)
            if (slope > 0.0 and a > 0.0) or (slope < 0.0 and a < top):
                lowest = min(lowest, slope)
                highest = max(highest, slope)
                # A row without length: its score is 0 whatever its alpha, and it wants all it may.
                new = min(max(a - slope / norms[i], 0.0), top) if norms[i] > 0.0 else top
                if new != a:
                    alpha[i] = new
                    _add(rows, i, new - a, v, g)
        if gap + worst * total <= enough:
            break
        steepest_in = lowest if lowest < 0.0 else -np.inf
        steepest_out = highest if highest > 0.0 else np.inf
    return n_passes, n_visits
