"""Compiled passes of the piecewise quadratic losses over the majority rows of a block.

``rare`` are the scores of the rare rows, sorted and centred; ``W, S1, S2`` are prefix sums over
them of w, w s and w s^2 with a leading zero, so that a sum over rare rows lo..hi-1 is a difference.
Rare rows 0..low-1 are in the linear zone of a majority row, loss steep (knee - (s - t)); rows
low..high-1 in the quadratic one, loss curve (1 - (s - t))^2 / 2.
"""

import numpy as np

from rareclass.compiling import njit

# Searches run so many at a time, one step of each in turn, so that their waits overlap.
_LANES = 16


@njit(cache=True, nogil=True)
def _count_below(sorted_scores, scores, shift, counts_out):
    """For every score, how many sorted scores are below score + shift."""
    n_sorted, n = sorted_scores.shape[0], scores.shape[0]
    bound = np.empty(_LANES)
    found, steps = np.empty(_LANES, np.uint64), np.zeros(2, np.uint64)
    for start in range(0, n, _LANES):
        lanes = min(_LANES, n - start)
        for k in range(lanes):
            bound[k] = scores[start + k] + shift
            found[k] = 0
        length = n_sorted
        while length > 1:
            half = length // 2
            steps[1], last = half, np.uint64(half - 1)
            for k in range(lanes):
                # Read from two entries: LLVM makes a branch of a choice, which is guessed wrong
                # half of the time. An unsigned place is not looked at for being counted from the
                # end.
                found[k] += steps[np.uint64(sorted_scores[found[k] + last] < bound[k])]
            length -= half
        for k in range(lanes):
            is_below = n_sorted > 0 and sorted_scores[found[k]] < bound[k]
            counts_out[start + k] = found[k] + np.uint64(is_below)


@njit(cache=True, nogil=True)
def _zones(rare, scores, bound, low_out, high_out):
    """Where the zones of each majority row end among the sorted rare rows."""
    if bound == -np.inf:
        low_out[:] = 0
    else:
        _count_below(rare, scores, bound, low_out)
    _count_below(rare, scores, 1.0, high_out)


@njit(cache=True, nogil=True)
def _row(t, w, s, n, s1, s2, shape):
    """Sum of one majority row over the rare rows, and its slope in t.

    w and s are sums over its linear zone, n, s1 and s2 over its quadratic one. Numbers only: a call
    with arrays takes 40 ns, fifteen times as long as all of this.
    """
    _, knee, steep, curve = shape
    a = 1.0 + t
    square = max(a * a * n - 2.0 * a * s1 + s2, 0.0)
    total = steep * (w * (knee + t) - s) + 0.5 * curve * square
    return total, steep * w + curve * (a * n - s1)


@njit(cache=True, nogil=True)
def _add_pull(sums_out, low, high, t, w):
    """Share of a majority row of weight w in the sums that make the rare side's gradient."""
    sums_out[0, low] += w
    if high > low:
        sums_out[1, low] += w
        sums_out[1, high] -= w
        sums_out[2, low] += w * (1.0 + t)
        sums_out[2, high] -= w * (1.0 + t)


@njit(cache=True, nogil=True)
def _block(rare, W, S1, S2, scores, weight, shape, gradient_out, low_out, high_out, sums_out):
    """Value of the pairs of a block; gradient by row, zones, and additive rare-side sums."""
    value = 0.0
    _zones(rare, scores, shape[0], low_out, high_out)
    for j in range(scores.shape[0]):
        w = weight[j]
        if w == 0.0:
            gradient_out[j] = 0.0
            low_out[j] = 0
            high_out[j] = 0
            continue
        t, lo, hi = scores[j], low_out[j], high_out[j]
        n, s1, s2 = W[hi] - W[lo], S1[hi] - S1[lo], S2[hi] - S2[lo]
        total, slope = _row(t, W[lo], S1[lo], n, s1, s2, shape)
        value += w * total
        gradient_out[j] = w * slope
        _add_pull(sums_out, lo, hi, t, w)
    return value


@njit(cache=True, nogil=True)
def _rows(rare, W, S1, S2, scores, shape, total_out, slope_out, low_out, high_out):
    """Each majority row's sum over the rare rows, its slope, its zones."""
    _zones(rare, scores, shape[0], low_out, high_out)
    for j in range(scores.shape[0]):
        lo, hi = low_out[j], high_out[j]
        n, s1, s2 = W[hi] - W[lo], S1[hi] - S1[lo], S2[hi] - S2[lo]
        total_out[j], slope_out[j] = _row(scores[j], W[lo], S1[lo], n, s1, s2, shape)


@njit(cache=True, nogil=True)
def _pull(low, high, scores, weight, sums_out):
    """Additive rare-side sums of weighted majority rows."""
    for j in range(scores.shape[0]):
        if weight[j] != 0.0:
            _add_pull(sums_out, low[j], high[j], scores[j], weight[j])


@njit(cache=True, nogil=True)
def _row_change(W, S1, D, DS, low, high, scores, direction, shape, change_out):
    """Change of each majority row's sum; D, DS are prefix sums of w d and w s d."""
    _, _, steep, curve = shape
    for j in range(scores.shape[0]):
        lo, hi, d, a = low[j], high[j], direction[j], 1.0 + scores[j]
        change = steep * (d * W[lo] - D[lo])
        if hi > lo:
            n, s1 = W[hi] - W[lo], S1[hi] - S1[lo]
            change += curve * (d * (a * n - s1) - (a * (D[hi] - D[lo]) - (DS[hi] - DS[lo])))
        change_out[j] = change


@njit(cache=True, nogil=True)
def _curvature(W, D, low, high, direction, weight, curve, product_out, sums_out):
    """Hessian-vector product of a block: by row, and additive rare-side sums."""
    for j in range(direction.shape[0]):
        lo, hi, w = low[j], high[j], weight[j]
        if hi == lo or w == 0.0:
            product_out[j] = 0.0
            continue
        d = direction[j]
        product_out[j] = w * curve * (d * (W[hi] - W[lo]) - (D[hi] - D[lo]))
        sums_out[0, lo] += w
        sums_out[0, hi] -= w
        sums_out[1, lo] += w * d
        sums_out[1, hi] -= w * d
