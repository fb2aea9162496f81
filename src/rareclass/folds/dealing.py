"""Groups dealt to folds, so that rare rows and then the others are even."""

import heapq

import numpy as np


def dealt(n_folds: int, seed: int, is_rare: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Number of the fold of each row; rows of a group stay together.

    Groups with the most rare rows come first, each to the fold that has the fewest; those of
    equally many rows are in an order by chance. Groups without rare rows even out the others.
    With at least `n_folds` groups that hold rare rows, each fold gets one.

    `is_rare` and `group`, numbered from 0 on, have one entry a row. O(n + g log g) time for g
    groups.
    """
    n_rare, n_rest, order = _in_order(seed, is_rare, group)
    fold = np.zeros(len(order), dtype=np.int64)
    # Rare rows are evened out first, then the others.
    heap = [(0, 0, k) for k in range(n_folds)]
    for each in order[: np.count_nonzero(n_rare)]:
        rare, rest, k = heap[0]
        fold[each] = k
        heapq.heapreplace(heap, (rare + int(n_rare[each]), rest + int(n_rest[each]), k))
    heap = [(rest, rare, k) for rare, rest, k in heap]
    heapq.heapify(heap)
    for each in order[np.count_nonzero(n_rare) :]:
        rest, rare, k = heap[0]
        fold[each] = k
        heapq.heapreplace(heap, (rest + int(n_rest[each]), rare, k))
    return fold[group]


def most_folds(is_rare: np.ndarray, group: np.ndarray) -> int:
    """The most folds that can each hold rows of both classes, groups being kept together.

    A fold needs one group of both classes, or one of rare rows alone and one of others alone:
    ``n_both + min(n_rare_alone, n_rest_alone)``.
    """
    has_rare, has_rest = np.bincount(group, is_rare) > 0, np.bincount(group, ~is_rare) > 0
    both = np.count_nonzero(has_rare & has_rest)
    return int(both + min(np.count_nonzero(~has_rest), np.count_nonzero(~has_rare)))


def dealt_with_both(n_folds: int, seed: int, is_rare: np.ndarray, group: np.ndarray) -> np.ndarray:
    """As `dealt`, each fold with rows of both classes; `n_folds` at most `most_folds`.

    `dealt` where that does so already. Where it leaves a fold without majority rows, each fold is
    begun with what it cannot do without (a group of both classes, or one of either), and the other
    groups are dealt as before: always possible, a little less even.
    """
    fold = dealt(n_folds, seed, is_rare, group)
    if len(np.unique(fold[~is_rare])) == n_folds:
        return fold
    n_rare, n_rest, order = _in_order(seed, is_rare, group)
    both, rare, rest = (
        order[mask[order]] for mask in ((n_rare > 0) & (n_rest > 0), n_rest == 0, n_rare == 0)
    )
    n_pairs = max(n_folds - len(both), 0)
    fold_of = np.full(len(order), -1)
    fold_of[both[:n_folds]] = np.arange(min(len(both), n_folds))
    for begun in (rare[:n_pairs], rest[:n_pairs]):
        fold_of[begun] = np.arange(n_folds - n_pairs, n_folds)
    for count in (n_rare, n_rest):
        begun = np.flatnonzero(fold_of >= 0)
        held = np.bincount(fold_of[begun], count[begun], n_folds)
        heap = [(int(number), k) for k, number in enumerate(held)]
        heapq.heapify(heap)
        for each in order[(fold_of[order] < 0) & (count[order] > 0)]:
            number, k = heap[0]
            fold_of[each] = k
            heapq.heapreplace(heap, (number + int(count[each]), k))
    return fold_of[group]


def _in_order(
    seed: int, is_rare: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rare rows and others of each group, and the groups, those of the most rare rows first."""
    n_groups = int(group.max()) + 1
    n_rare = np.bincount(group, is_rare, n_groups)
    n_rest = np.bincount(group, ~is_rare, n_groups)
    by_chance = np.random.default_rng(seed).permutation(n_groups)
    return n_rare, n_rest, by_chance[np.lexsort((-n_rest[by_chance], -n_rare[by_chance]))]
