"""Compiled sums of trees: small trees by masks of leaves, large ones step by step.

Rows come in tiles, stored by column, that stay in cache while every tree is added to them.

A tree of up to 64 leaves is not walked through. Bit k of a row's word says whether its leaf k,
counted from the left, can still be the row's; a split that sends the row right clears the leaves
on its left, and when all splits have been looked at, in any order, the row's leaf is the lowest
bit that is left. That is one comparison and one "and" a split, without branches, for eight rows
at once, and is several times faster than walking. (Lucchese et al., "QuickScorer", SIGIR 2015.)

In a larger tree, all rows of a tile take a step each in turn, so that waits for memory overlap,
and rows that have come to a leaf drop out.
"""

import numpy as np

from rareclass.compiling import njit

MOST_MASKED_LEAVES = 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
# The upper six bits of a power of two times this number are different for each of the 64.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)


def _positions_of_bits():
    """Where a word's only bit stands, by the upper six bits of its product with _DE_BRUIJN."""
    position = np.empty(64, np.int64)
    for bit in range(64):
        position[(int(_DE_BRUIJN) << bit & int(_ALL)) >> int(_SHIFT)] = bit
    return position


_POSITION = _positions_of_bits()


@njit(cache=True, nogil=True)
def lay_out(
    feature, threshold, left, right, missing_left, value, node0, leaf0,
    feature_out, threshold_out, left_out, right_out, missing_left_out, value_out,
):  # fmt: skip
    """Copy one tree, a node an entry with left < 0 at leaves, to its place: splits and leaves.

    Splits are numbered from `node0` on in preorder, leaves from `leaf0` on from left to right; a
    child that is leaf k becomes ~k.
    """
    todo = np.empty(left.shape[0], np.int64)
    came_from = np.empty(left.shape[0], np.int64)  # ~parent where it is the right child
    todo[0], came_from[0], top = 0, node0, 1
    node, leaf = node0, leaf0
    while top > 0:
        top -= 1
        old, parent = todo[top], came_from[top]
        if left[old] < 0:
            number = ~leaf
            value_out[leaf] = value[old]
            leaf += 1
        else:
            number = node
            feature_out[node] = feature[old]
            threshold_out[node] = threshold[old]
            missing_left_out[node] = missing_left[old]
            todo[top], came_from[top] = right[old], ~node
            todo[top + 1], came_from[top + 1] = left[old], node
            top += 2
            node += 1
        if old == 0:
            continue
        if parent < 0:
            right_out[~parent] = number
        else:
            left_out[parent] = number


@njit(cache=True, nogil=True)
def masks_of(left, right, start):
    """For each split of a tree of at most 64 leaves: every bit but those of leaves on its left.

    Entries of larger trees are left as they are: touching them costs more than scoring a row.
    """
    mask = np.empty(left.shape[0], np.uint64)
    first = np.empty(left.shape[0], np.int64)  # the leftmost leaf below a split
    for k in range(start.shape[0] - 1):
        if start[k + 1] - start[k] >= MOST_MASKED_LEAVES:
            continue
        leaf0 = start[k] + k
        for n in range(start[k + 1] - 1, start[k] - 1, -1):
            first[n] = ~left[n] if left[n] < 0 else first[left[n]]
            end = ~right[n] if right[n] < 0 else first[right[n]]
            ones = (_ONE << np.uint64(end - first[n])) - _ONE  # of fewer than 64 leaves
            mask[n] = _ALL ^ (ones << np.uint64(first[n] - leaf0))
    return mask


@njit(cache=True, nogil=True)
def add_trees(
    X, feature, threshold, left, right, missing_left, value, start, mask, tile_rows, scores_out
):
    """Add to each row's score the value of its leaf in every tree, tree after tree."""
    n_rows, n_features = X.shape
    tile = np.empty((n_features, tile_rows))
    word = np.empty(tile_rows, np.uint64)
    at = np.empty(tile_rows, np.int32)
    going = np.empty(tile_rows, np.int32)
    for row0 in range(0, n_rows, tile_rows):
        m = min(tile_rows, n_rows - row0)
        any_missing = False
        for i in range(m):
            for j in range(n_features):
                tile[j, i] = X[row0 + i, j]
                any_missing |= np.isnan(X[row0 + i, j])
        scores = scores_out[row0 : row0 + m]
        for k in range(start.shape[0] - 1):
            if start[k + 1] - start[k] < MOST_MASKED_LEAVES:
                _keep_leaves(
                    tile, feature, threshold, missing_left, mask, start[k], start[k + 1], word[:m]
                )
                _add_lowest(word[:m], value, start[k] + k, scores)
            else:
                _walk(
                    tile, feature, threshold, left, right, missing_left,
                    start[k], any_missing, at[:m], going[:m],
                )  # fmt: skip
                for i in range(m):
                    scores[i] += value[~at[i]]


@njit(cache=True, nogil=True)
def _keep_leaves(tile, feature, threshold, missing_left, mask, begin, end, word_out):
    """Bits of the leaves that each row may still reach after all splits of a tree."""
    m = word_out.shape[0]
    for i in range(m):
        word_out[i] = _ALL
    for n in range(begin, end):
        column, t, kept = tile[feature[n]], threshold[n], mask[n]
        # A comparison with NaN is false: which one is asked says where missing values go.
        if missing_left[n]:
            for i in range(m):
                word_out[i] &= kept if column[i] > t else _ALL
        else:
            for i in range(m):
                word_out[i] &= _ALL if column[i] <= t else kept


@njit(cache=True, nogil=True)
def _add_lowest(word, value, leaf0, scores_out):
    """Add the value of the leaf of each row's lowest bit."""
    for i in range(word.shape[0]):
        lowest = word[i] & (~word[i] + _ONE)
        scores_out[i] += value[leaf0 + _POSITION[(lowest * _DE_BRUIJN) >> _SHIFT]]


@njit(cache=True, nogil=True)
def _walk(
    tile, feature, threshold, left, right, missing_left, root, any_missing, at_out, going
):  # fmt: skip
    """Where each row ends: ~leaf. `going` is room for the rows that are on their way."""
    # Indices without a sign: one with a sign is looked at whether it counts from the end.
    n_going = at_out.shape[0]
    for i in range(n_going):
        at_out[i], going[i] = root, i
    while n_going > 0:
        still = np.uint64(0)
        for k in range(np.uint64(n_going)):
            row = np.uint64(going[k])
            n = np.uint64(at_out[row])
            x = tile[np.uint64(feature[n]), row]
            goes_left = x <= threshold[n]
            if any_missing:
                goes_left |= np.isnan(x) & missing_left[n]
            # Both are fetched, and the row stored either way: a branch would be guessed wrong.
            on_left, on_right = left[n], right[n]
            child = on_left if goes_left else on_right
            at_out[row] = child
            going[still] = row
            still += np.uint64(child >= 0)
        n_going = np.int64(still)
