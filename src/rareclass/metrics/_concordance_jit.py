"""Compiled count of the pairs of different levels that scores put in order."""

import numpy as np
from numpy.typing import NDArray

from rareclass.compiling import njit


@njit(cache=True, nogil=True)
def concordant_weight(
    codes: NDArray[np.int64], ends: NDArray[np.int64], weight: NDArray[np.float64], n_levels: int
) -> float:
    """Weight of the pairs whose higher level scores higher, ties counting one half.

    Rows come in increasing order of score; ``ends[g]`` is where the g-th group of equal scores
    ends. A Fenwick tree over levels holds the weight of the rows before: O(log n_levels) a row.
    """
    below = np.zeros(n_levels + 1)  # the tree, entry 0 unused
    own = np.zeros(n_levels + 1)  # the same for the group of equal scores
    total, start = 0.0, 0
    for end in ends:
        for i in range(start, end):
            lower, tied, k = 0.0, 0.0, codes[i]
            while k > 0:  # levels 0 .. codes[i] - 1
                lower += below[k]
                k -= k & -k
            if end - start > 1:
                # A tied pair is met once, at its higher level: ties are sorted by level.
                k = codes[i]
                while k > 0:
                    tied += own[k]
                    k -= k & -k
                _add(own, codes[i], weight[i])
            total += weight[i] * (lower + 0.5 * tied)
        for i in range(start, end):
            _add(below, codes[i], weight[i])
            if end - start > 1:
                _clear(own, codes[i])
        start = end
    return total


@njit(cache=True, nogil=True)
def _add(tree: NDArray[np.float64], code: int, weight: float) -> None:
    k = code + 1
    while k < tree.shape[0]:
        tree[k] += weight
        k += k & -k


@njit(cache=True, nogil=True)
def _clear(tree: NDArray[np.float64], code: int) -> None:
    k = code + 1
    while k < tree.shape[0]:
        tree[k] = 0.0
        k += k & -k
