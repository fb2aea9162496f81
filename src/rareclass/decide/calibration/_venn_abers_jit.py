"""Isotonic regression with one more row, for every place where it may stand."""

import numpy as np

from rareclass.compiling import njit


@njit(cache=True, nogil=True)
def with_one_rare_row(rare, total):
    """Isotonic value of a row of y = 1 and weight 1 before level k; shape (n_levels + 1,).

    The value is max over i <= k of min over j >= k of (S_j - S_i + 1) / (W_j - W_i + 1), S and W
    being running sums: the common tangent from the lower hull of the points (W_i, S_i) on the left
    to that of the points on the right, moved by (1, 1). Hulls of the left grow by the place, those
    of the right are chains made beforehand. O(n_levels times the length of the hulls) at worst.
    """
    n = len(rare)
    S, W = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        S[i + 1] = S[i] + rare[i]
        W[i + 1] = W[i] + total[i]
    after = _next_corners(S, W)
    corners = np.empty(n + 1, np.int64)
    size = 0
    value = np.empty(n + 1)
    for k in range(n + 1):
        while size > 1 and not _turns_left(S, W, corners[size - 2], corners[size - 1], k):
            size -= 1
        corners[size] = k
        size += 1
        value[k] = _tangent(S, W, corners, size, after, k)
    return value


@njit(cache=True, nogil=True)
def _turns_left(S, W, a, b, c):
    """Say whether the hull a, b, c is convex at b."""
    return (S[c] - S[a]) * (W[b] - W[a]) > (S[b] - S[a]) * (W[c] - W[a])


@njit(cache=True, nogil=True)
def _next_corners(S, W):
    """For each point the next corner of the lower hull that begins there; -1 for the last."""
    after = np.full(len(S), -1)
    for j in range(len(S) - 2, -1, -1):
        t = j + 1
        while after[t] >= 0 and not _turns_left(S, W, j, t, after[t]):
            t = after[t]
        after[j] = t
    return after


@njit(cache=True, nogil=True)
def _tangent(S, W, corners, size, after, right):
    """Slope of the common tangent: from its ends outwards while either side brings it nearer."""
    left, slope, moved = size - 1, 1.0, True
    while moved:
        moved = False
        while after[right] >= 0:
            i, j = corners[left], after[right]
            tried = (S[j] + 1.0 - S[i]) / (W[j] + 1.0 - W[i])
            if tried > slope:
                break
            right, slope, moved = j, tried, True
        while left > 0:
            i = corners[left - 1]
            tried = (S[right] + 1.0 - S[i]) / (W[right] + 1.0 - W[i])
            if tried < slope:
                break
            left, slope, moved = left - 1, tried, True
    return slope
