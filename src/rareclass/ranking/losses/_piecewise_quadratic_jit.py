"""Compiled passes of the smoothed hinge over the majority rows of a block.

``scores`` of the rare rows are sorted and centred; ``W, S1, S2`` are prefix sums over them of
w, w s and w s^2 with a leading zero, so that a sum over rare rows lo..hi-1 is a difference.
"""

import numpy as np
from numba import njit

# Searches run so many at a time, one step of each in turn, so that their waits overlap.
_LANES = 16


@njit(cache=True, nogil=True)
def _count_below(sorted_scores, scores, shift, counts_out):
    """For every score, how many sorted scores are below score + shift."""
    n_sorted, n = sorted_scores.shape[0], scores.shape[0]
    bound = np.empty(_LANES)
    found = np.empty(_LANES, np.int64)
    for start in range(0, n, _LANES):
        lanes = min(_LANES, n - start)
        for k in range(lanes):
            bound[k] = scores[start + k] + shift
            found[k] = 0
        length = n_sorted
        while length > 1:
            half = length // 2
            for k in range(lanes):
                # Added, not branched: a branch would be guessed wrong half of the time.
                found[k] += half * (sorted_scores[found[k] + half - 1] < bound[k])
            length -= half
        for k in range(lanes):
            counts_out[start + k] = found[k] + (n_sorted > 0 and sorted_scores[found[k]] < bound[k])


@njit(cache=True, nogil=True)
def _block(rare, W, S1, S2, scores, weight, eps, gradient_out, low_out, high_out, sums_out):
    """Value of the pairs of a block; gradient by row, zones, and additive rare-side sums."""
    value = 0.0
    _count_below(rare, scores, 1.0 - 2.0 * eps, low_out)
    _count_below(rare, scores, 1.0, high_out)
    for j in range(scores.shape[0]):
        w = weight[j]
        if w == 0.0:
            gradient_out[j] = 0.0
            low_out[j] = 0
            high_out[j] = 0
            continue
        t = scores[j]
        low, high = low_out[j], high_out[j]
        # Linear zone, rare rows 0..low-1: loss (1 - eps) - (s - t), slope in t of 1.
        row = W[low] * (1.0 - eps + t) - S1[low]
        slope = W[low]
        if high > low:
            # Quadratic zone, rare rows low..high-1: loss (1 - (s - t))^2 / (4 eps).
            a = 1.0 + t
            n, s1, s2 = W[high] - W[low], S1[high] - S1[low], S2[high] - S2[low]
            row += max(a * a * n - 2.0 * a * s1 + s2, 0.0) / (4.0 * eps)
            slope += (a * n - s1) / (2.0 * eps)
            sums_out[1, low] += w
            sums_out[1, high] -= w
            sums_out[2, low] += w * a
            sums_out[2, high] -= w * a
        sums_out[0, low] += w
        value += w * row
        gradient_out[j] = w * slope
    return value


@njit(cache=True, nogil=True)
def _curvature(W, D1, low, high, direction, weight, eps, product_out, sums_out):
    """Hessian-vector product of a block: by row, and additive rare-side sums."""
    for j in range(direction.shape[0]):
        lo, hi, w = low[j], high[j], weight[j]
        if hi == lo or w == 0.0:
            product_out[j] = 0.0
            continue
        d = direction[j]
        product_out[j] = w * (d * (W[hi] - W[lo]) - (D1[hi] - D1[lo])) / (2.0 * eps)
        sums_out[0, lo] += w
        sums_out[0, hi] -= w
        sums_out[1, lo] += w * d
        sums_out[1, hi] -= w * d
