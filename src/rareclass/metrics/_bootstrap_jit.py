"""Compiled bootstrap: rows or groups drawn again, counted around the rare scores, and measured.

What is drawn are items: distinct places that rows have in both rankings, or groups of rows. How
often each item is drawn is multinomial, and is never drawn row by row where many rows share an
item: items of large mass take a binomial number each; small ones share blocks, which take a
binomial number together and hand it out by an alias table that fits in cache. So a replicate costs
O(items), and at most O(draws).

Every replicate has a generator of its own: neither threads nor the order of the replicates change
an answer.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rareclass.compiling import njit

BLOCK_ITEMS = 256
_FEW = 10.0  # expected number from which on a binomial is drawn by rejection
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)

AVERAGE_PRECISION, PRECISION_AT_K, RECALL_AT_K, LIFT_AT_K, PARTIAL_AUC, ROC_AUC = range(6)


@njit(cache=True, nogil=True)
def _next(state: NDArray[np.uint64]) -> float:
    """A uniform number in (0, 1): SplitMix64 (Steele, Lea and Flood 2014)."""
    state[0] += _STEP
    z = state[0]
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    z = z ^ (z >> _S31)
    return (float(z >> _S11) + 0.5) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def _binomial(state: NDArray[np.uint64], n: int, p: float) -> int:
    """Successes in n trials of chance p."""
    if n <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    is_likely = p > 0.5
    k = _binomial_half(state, n, 1.0 - p if is_likely else p)
    return n - k if is_likely else k


@njit(cache=True, nogil=True)
def _binomial_half(state: NDArray[np.uint64], n: int, p: float) -> int:
    """The same for p of at most 1/2: by inversion, or by Hoermann's BTRS (1993) from 10 on."""
    q = 1.0 - p
    odds = p / q
    if n * p < _FEW:
        while True:
            u, k = _next(state), 0
            chance = math.exp(n * math.log1p(-p))
            while u > chance and k <= n:
                u -= chance
                k += 1
                chance *= odds * (n - k + 1) / k
            if k <= n:  # else the last digits of u ran past the end
                return k
    spread = math.sqrt(n * p * q)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    mode = math.floor((n + 1) * p)
    log_odds = math.log(odds)
    at_mode = math.lgamma(mode + 1.0) + math.lgamma(n - mode + 1.0)
    while True:
        u, v = _next(state) - 0.5, _next(state)
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + c)
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= v_r:
            return int(k)
        height = math.log(v * alpha / (a / (us * us) + b))
        density = at_mode - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
        if height <= density + (k - mode) * log_odds:
            return int(k)


@njit(cache=True, nogil=True)
def alias_tables(
    mass: NDArray[np.float64],
    block: NDArray[np.int64],
    keep: NDArray[np.float64],
    other: NDArray[np.int64],
) -> None:
    """Walker's alias table of every block, by Vose's method; block i is ``block[i]:block[i + 1]``.

    Item j of a block stays itself with chance ``keep[j]`` and becomes ``other[j]`` otherwise.
    """
    small, large = np.empty(mass.shape[0], np.int64), np.empty(mass.shape[0], np.int64)
    for i in range(block.shape[0] - 1):
        start, end = block[i], block[i + 1]
        total = 0.0
        for j in range(start, end):
            total += mass[j]
        n_small, n_large = 0, 0
        for j in range(start, end):
            keep[j] = mass[j] / total * (end - start)
            other[j] = j
            if keep[j] < 1.0:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small and n_large:
            low, high = small[n_small - 1], large[n_large - 1]
            other[low] = high
            keep[high] -= 1.0 - keep[low]
            n_small -= 1
            if keep[high] < 1.0:
                n_large -= 1
                small[n_small] = high
                n_small += 1
        for j in range(n_small):  # what rounding left over
            keep[small[j]] = 1.0
        for j in range(n_large):
            keep[large[j]] = 1.0


@njit(cache=True, nogil=True)
def replicates(
    seeds: NDArray[np.uint64],
    n_draws: NDArray[np.int64],
    strata: NDArray[np.int64],
    block: NDArray[np.int64],
    block_mass: NDArray[np.float64],
    mass_from: NDArray[np.float64],
    keep: NDArray[np.float64],
    other: NDArray[np.int64],
    entry: NDArray[np.int64],
    at_a: NDArray[np.int32],
    at_b: NDArray[np.int32],
    weight: NDArray[np.float64],
    sizes: NDArray[np.int64],
    measure: int,
    option: float,
    out: NDArray[np.float64],
) -> None:
    """Draw and measure a replicate for each seed; out is (replicates, 2).

    Stratum s draws ``n_draws[s]`` times among the items of its blocks ``strata[s]:strata[s + 1]``.
    ``mass_from[i]`` is the mass of block i and those after it in its stratum. Item j brings its
    entries ``entry[j]:entry[j + 1]``: `weight` at place `at_a` and `at_b` of the totals, which hold
    the d rare cells and then the 2 d + 1 majority cells of a column; `sizes` are both d.
    """
    total_a = np.empty(3 * sizes[0] + 1)
    total_b = np.empty(3 * sizes[1] + 1)
    state = np.empty(1, np.uint64)
    for r in range(seeds.shape[0]):
        state[0] = seeds[r]
        total_a[:], total_b[:] = 0.0, 0.0
        for s in range(n_draws.shape[0]):
            left = n_draws[s]
            for i in range(strata[s], strata[s + 1]):
                if left == 0:
                    break
                n = left
                if i + 1 < strata[s + 1]:
                    n = _binomial(state, left, block_mass[i] / mass_from[i])
                left -= n
                start, length = block[i], block[i + 1] - block[i]
                if length == 1:
                    _add(start, n, entry, at_a, at_b, weight, total_a, total_b)
                    continue
                for _ in range(n):
                    place = _next(state) * length
                    j = int(place)
                    item = start + j
                    if place - j >= keep[item]:
                        item = other[item]
                    _add(item, np.int64(1), entry, at_a, at_b, weight, total_a, total_b)
        for column in range(2):
            total = total_a if column == 0 else total_b
            out[r, column] = measured(total, sizes[column], measure, option)


@njit(cache=True, nogil=True)
def _add(
    item: int,
    n: int,
    entry: NDArray[np.int64],
    at_a: NDArray[np.int32],
    at_b: NDArray[np.int32],
    weight: NDArray[np.float64],
    total_a: NDArray[np.float64],
    total_b: NDArray[np.float64],
) -> None:
    """Add n draws of an item to the totals."""
    for e in range(entry[item], entry[item + 1]):
        total_a[at_a[e]] += n * weight[e]
        total_b[at_b[e]] += n * weight[e]


@njit(cache=True, nogil=True)
def measured(total: NDArray[np.float64], d: int, measure: int, option: float) -> float:
    """A measure of d rare cells and 2 d + 1 majority cells; cells without weight change nothing.

    `option` is k as a share of the weight for what is at k, the greatest false-positive rate for
    the partial AUC.
    """
    n_rare, n_majority = 0.0, 0.0
    for i in range(d):
        n_rare += total[i]
    for i in range(d, 3 * d + 1):
        n_majority += total[i]
    if measure == AVERAGE_PRECISION:
        return _average_precision(total, d, n_rare)
    if measure in (ROC_AUC, PARTIAL_AUC):
        most = n_majority * (option if measure == PARTIAL_AUC else 1.0)
        return _area(total, d, most) / (n_rare * most) if most > 0.0 else 0.5
    k = option * (n_rare + n_majority)
    hits = _hits(total, d, k)
    if measure == RECALL_AT_K:
        return hits / n_rare
    if measure == PRECISION_AT_K:
        return hits / k
    return hits / option / n_rare


@njit(cache=True, nogil=True)
def _average_precision(total: NDArray[np.float64], d: int, n_rare: float) -> float:
    found, called, area = 0.0, total[3 * d], 0.0
    for i in range(d - 1, -1, -1):
        found += total[i]
        called += total[i] + total[d + 2 * i + 1]
        if total[i] > 0.0:
            area += total[i] * (found / called)
        called += total[d + 2 * i]
    return area / n_rare


@njit(cache=True, nogil=True)
def _hits(total: NDArray[np.float64], d: int, k: float) -> float:
    """Rare weight among the top k, a tied group bringing its share."""
    hits, ahead = 0.0, total[3 * d]
    for i in range(d - 1, -1, -1):
        if ahead >= k:
            break
        group = total[i] + total[d + 2 * i + 1]
        if total[i] > 0.0:
            hits += total[i] * min((k - ahead) / group, 1.0)
        ahead += group + total[d + 2 * i]
    return hits


@njit(cache=True, nogil=True)
def _area(total: NDArray[np.float64], d: int, most: float) -> float:
    """Area under rare weight found, over the majority weight passed, from 0 to `most`."""
    found, passed = 0.0, min(total[3 * d], most)
    area = 0.0
    for i in range(d - 1, -1, -1):
        if passed >= most:
            break
        tied = total[d + 2 * i + 1]
        if tied > 0.0:
            part = min(tied, most - passed)
            area += part * (found + 0.5 * total[i] * part / tied)
            passed += part
        found += total[i]
        part = min(total[d + 2 * i], most - passed)
        area += part * found
        passed += part
    return area
