"""Compiled search of scores among the distinct rare scores, and pairs of levels in order.

A binary search waits for memory at every step. Searches run `_LANES` at a time, one step of each
in turn, so that the waits overlap; and they begin in every `_STRIDE`-th score, which stays in
cache where all scores would not.
"""

import numpy as np
from numpy.typing import NDArray

from rareclass.compiling import njit

_LANES = 32
_STRIDE = 64


@njit(cache=True, nogil=True)
def find_cells(
    distinct: NDArray[np.float64], scores: NDArray[np.float64], cell: NDArray[np.int64]
) -> None:
    """The number of each row's cell."""
    coarse = distinct[::_STRIDE].copy()
    found, steps = np.empty(_LANES, np.int64), np.zeros(2, np.int64)
    for start in range(0, scores.shape[0], _LANES):
        lanes = min(_LANES, scores.shape[0] - start)
        _search_lanes(distinct, coarse, scores, start, lanes, steps, found)
        cell[start : start + lanes] = found[:lanes]


@njit(cache=True, nogil=True)
def _search_lanes(
    distinct: NDArray[np.float64],
    coarse: NDArray[np.float64],
    scores: NDArray[np.float64],
    start: int,
    lanes: int,
    steps: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """The cell of each lane's score."""
    d = distinct.shape[0]
    width = min(_STRIDE, d)
    found[:lanes] = 0
    _narrow(coarse, scores, start, lanes, steps, found, coarse.shape[0])
    for k in range(lanes):
        # The last window is shifted down so that it, too, has `width` scores.
        found[k] = min(found[k] * _STRIDE, d - width)
    _narrow(distinct, scores, start, lanes, steps, found, width)
    for k in range(lanes):
        i, t = found[k], scores[start + k]
        cell = 2 * (i + (distinct[i] < t))
        if distinct[i] == t:
            cell += 1
        found[k] = cell


@njit(cache=True, nogil=True)
def _narrow(
    table: NDArray[np.float64],
    scores: NDArray[np.float64],
    start: int,
    lanes: int,
    steps: NDArray[np.int64],
    found: NDArray[np.int64],
    length: int,
) -> None:
    """Move each search from the first of `length` entries to the last one not above its score.

    Where all are above its score, it stays at the first. A step is read from the two entries of
    `steps`, the first of which is 0: LLVM makes a branch of a choice, which is guessed wrong half
    of the time and costs five times more.
    """
    while length > 1:
        half = length // 2
        steps[1] = half
        for k in range(lanes):
            is_above = table[np.uint64(found[k] + half)] <= scores[start + k]
            found[k] += steps[np.uint64(is_above)]
        length -= half


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


@njit(cache=True, nogil=True)
def chance_in_order(
    codes: NDArray[np.int64], ends: NDArray[np.int64], share: NDArray[np.float64], n_levels: int
) -> float:
    """Chance that one row of each level, drawn by `share`, comes in order; r tied count 1 / r!.

    Rows come in increasing order of score, then of level, as in `concordant_weight`; a level has
    one row at a score at most. ``reached[k]`` is the chance of an order of the k lowest levels so
    far. Cost: rows, and in each tie the pairs of levels of a run without a gap.
    """
    reached = np.zeros(n_levels + 1)
    reached[0] = 1.0
    start = 0
    for end in ends:
        # From the highest level down: no row of a tie may follow what the same tie has reached.
        for i in range(end - 1, start - 1, -1):
            tied, r = 1.0, 0
            while i - r >= start and codes[i - r] == codes[i] - r:
                tied *= share[i - r] / (r + 1)
                reached[codes[i] + 1] += tied * reached[codes[i] - r]
                r += 1
        start = end
    return reached[n_levels]
