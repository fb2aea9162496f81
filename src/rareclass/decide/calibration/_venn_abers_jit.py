"""Isotonic regression with one more row, for every place where it may stand."""

import numpy as np
from numba import njit


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
    after = np.full(n + 1, -1)  # the next corner of the hull that begins here
    for j in range(n - 1, -1, -1):
        t = j + 1
        while after[t] >= 0 and (S[after[t]] - S[j]) * (W[t] - W[j]) <= (S[t] - S[j]) * (
            W[after[t]] - W[j]
        ):
            t = after[t]
        after[j] = t
    corners = np.empty(n + 1, np.int64)
    size = 0
    value = np.empty(n + 1)
    for k in range(n + 1):
        while size > 1:
            a, b = corners[size - 2], corners[size - 1]
            if (S[k] - S[a]) * (W[b] - W[a]) > (S[b] - S[a]) * (W[k] - W[a]):
                break
            size -= 1
        corners[size] = k
        size += 1
        left, right = size - 1, k
        slope = 1.0
        moved = True
        while moved:
            moved = False
            while after[right] >= 0:
                j, i = after[right], corners[left]
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
        value[k] = slope
    return value
