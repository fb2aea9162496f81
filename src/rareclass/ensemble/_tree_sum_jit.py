"""Compiled sums of trees: 16 rows at once through small trees, step by step below the top of large.

Cells become ranks of 16 bits. A *column* of a tile of rows is one feature with one side for missing
values, and a cell's rank is the number of the column's thresholds below the cell: ``x <= t_j`` is
the same as ``rank(x) < j + 1``, exactly. A missing value gets the rank that is left, or right, of
every threshold. Ranks start at -32,768, and are compared 16 at once.

There are four forms of trees.

- *Level trees* (CatBoost's) ask the same at all splits of a level. The answers, one bit a level,
  are the number of the leaf.
- *Masked trees* have up to 128 leaves. Bit k of a row's bits says whether leaf k, counted from the
  left, can still be the row's; a split that sends the row right clears the leaves on its left. When
  all splits have been looked at, in any order, the row's leaf is the lowest bit that is left. That
  is one comparison and one "and" a split, without branches (Lucchese et al., "QuickScorer", SIGIR
  2015). Bits are in words of 16, and most splits clear leaves of one word alone.
- *Large trees* have a top of 128 leaves, which is a masked tree. Below it rows are walked
  down, one step of all rows in turn, so that waits for memory overlap.
- *Walked trees* are as learned, row by row: all trees while few rows are scored (`TreeSum` says
  when the other forms pay), and where 16 bits cannot number the splits of one of them.
"""

from typing import NamedTuple

import numpy as np

from rareclass.compiling import njit

MOST_CUTS = 65_534  # of one column
MOST_FEATURES = 32_767  # each may be two columns
MOST_SPLITS = 32_767  # of a tree
TILE_STEP = 64  # rows
MOST_LEVELS = 15  # of a level tree
MASKED_LEAVES = 128
LEVEL, MASKED, LARGE = 0, 1, 2
_WORD = 16  # leaves
WORDS = MASKED_LEAVES // _WORD
LOWEST = -32_768
_4, _16, _32, _LOW_16 = (np.uint64(k) for k in (4, 16, 32, 0xFFFF))
_LEAF = 0x8000  # of a child's 16 bits: it is a leaf
_ALWAYS_LEFT = np.int16(32_767)
_ALL = np.int16(-1)
# Bits of a word whose place has a one in its own bit 0, 1, 2 and 3.
_ODD, _UPPER_TWO, _UPPER_FOUR, _UPPER_EIGHT = (np.int16(k) for k in (-21846, -13108, -3856, -256))
_ONE, _TWO, _FOUR, _EIGHT, _NONE = (np.int16(k) for k in (1, 2, 4, 8, 0))


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


class PreparedTrees(NamedTuple):
    """Trees as `add_trees` reads them, in the order of their sum."""

    # The columns: a feature each, and whether a missing value is left of all thresholds. Those of
    # column c are cuts[first_cut[c] : first_cut[c + 1]], increasing.
    feature: np.ndarray
    missing_left: np.ndarray
    first_cut: np.ndarray
    cuts: np.ndarray
    form: np.ndarray  # of each tree: LEVEL, MASKED or LARGE
    # Tree k has the groups first_group[k] : first_group[k + 1] of splits: one for all levels, or
    # one for each word of 16 leaves. Group g has the splits first_split[g] : first_split[g + 1], an
    # even number.
    first_group: np.ndarray
    first_split: np.ndarray
    column: np.ndarray
    code: np.ndarray  # a row goes left where its rank in the column is less
    kept: np.ndarray  # the leaves of the word that rows going right may reach
    # Tree k has the leaves value[first_leaf[k]], ...
    first_leaf: np.ndarray
    value: np.ndarray
    # Where rows go from leaf j of the top of the k-th large tree: entry[k, j], a node, or ~leaf. A
    # node is four numbers of 16 bits: column, code, and what follows on the left and on the right.
    entry: np.ndarray
    first_node: np.ndarray
    nodes: np.ndarray


@njit(cache=True, nogil=True)
def add_trees(X, trees, tile_rows, scores_out):
    """Add to each row's score the value of its leaf in every tree; `tile_rows`: times 64."""
    form, first_leaf = trees.form, trees.first_leaf
    first_group, first_split = trees.first_group, trees.first_split
    column, code, kept, value = trees.column, trees.code, trees.kept, trees.value
    entry, first_node, nodes = trees.entry, trees.first_node, trees.nodes
    tile = np.empty((trees.feature.shape[0], tile_rows), np.int16)
    word = np.empty(tile_rows, np.int16)
    best, leaf = np.empty_like(word), np.empty_like(word)
    cells, going = np.empty(tile_rows), np.empty(tile_rows, np.uint32)
    for row0 in range(0, X.shape[0], tile_rows):
        rows = X[row0 : row0 + tile_rows]
        scores = scores_out[row0 : row0 + tile_rows]
        _rank(rows, trees, cells, going, tile)
        # Whole vectors: what the rows beyond come to is not looked at.
        size = min(tile_rows, (rows.shape[0] + 63) // 64 * 64)
        large = 0
        for k in range(form.shape[0]):
            begin, end = first_group[k], first_group[k + 1]
            if form[k] == LEVEL:
                splits = first_split[begin], first_split[end]
                _answer_levels(tile, column, code, splits[0], splits[1], leaf[:size])
            else:
                groups = first_split[begin : end + 1]
                _keep_leaves(
                    tile, column, code, kept, groups, word[:size], best[:size], leaf[:size]
                )
            if form[k] == LARGE:
                below_top = nodes[first_node[large] :]
                _walk_on(tile, entry[large], below_top, going[: rows.shape[0]], leaf)
                large += 1
            of_tree = value[first_leaf[k] :]
            for i in range(scores.shape[0]):
                scores[i] += of_tree[np.uint64(leaf[i])]


@njit(cache=True, nogil=True)
def _rank(rows, trees, cells, below, tile_out):
    """Put the ranks of all rows into a tile: a search by halves, a step of all rows in turn.

    A step is read from two entries: LLVM makes a branch of a choice, which is guessed wrong half of
    the time and costs four times more.
    """
    n_rows, steps = np.uint64(rows.shape[0]), np.zeros(2, np.uint32)
    for c in range(trees.feature.shape[0]):
        cuts, feature = trees.cuts[trees.first_cut[c] : trees.first_cut[c + 1]], trees.feature[c]
        for i in range(n_rows):
            cells[i], below[i] = rows[i, feature], 0
        left = cuts.shape[0]
        while left > 0:
            steps[1], last = (left + 1) // 2, np.uint32((left - 1) // 2)
            for i in range(n_rows):
                below[i] += steps[np.uint64(cuts[below[i] + last] < cells[i])]
            left //= 2
        missing, ranks = 0 if trees.missing_left[c] else cuts.shape[0], tile_out[c]
        for i in range(n_rows):
            ranks[i] = (missing if np.isnan(cells[i]) else np.int64(below[i])) + LOWEST


@njit(cache=True, nogil=True)
def _answer_levels(tile, column, code, begin, end, leaf_out):
    """Number of each row's leaf: the answers of the levels as bits, two levels in turn."""
    m = leaf_out.shape[0]
    for i in range(m):
        leaf_out[i] = 0
    for n in range(begin, end, 2):
        upper, lower, t, u = tile[column[n]], tile[column[n + 1]], code[n], code[n + 1]
        for i in range(m):
            answers = (2 if upper[i] >= t else 0) | (1 if lower[i] >= u else 0)
            leaf_out[i] = leaf_out[i] << 2 | answers


@njit(cache=True, nogil=True)
def _keep_leaves(tile, column, code, kept, first_split, word, best, leaf_out):
    """Number of each row's leaf: the lowest bit of the first word that has one."""
    m = leaf_out.shape[0]
    n_groups = first_split.shape[0] - 1
    for group in range(n_groups - 1, -1, -1):
        for i in range(m):
            word[i] = _ALL
        for n in range(first_split[group], first_split[group + 1], 2):
            one, other, t, u = tile[column[n]], tile[column[n + 1]], code[n], code[n + 1]
            kept_by_one, kept_by_other = kept[n], kept[n + 1]
            for i in range(m):
                word[i] &= (_ALL if one[i] < t else kept_by_one) & (
                    _ALL if other[i] < u else kept_by_other
                )
        first = np.int16(_WORD * group)
        if group == n_groups - 1:
            for i in range(m):
                best[i], leaf_out[i] = word[i], first
        else:
            for i in range(m):
                # Read first: what may not be read makes a branch.
                new, old, at = word[i], best[i], leaf_out[i]
                best[i], leaf_out[i] = new if new != 0 else old, first if new != 0 else at
    for i in range(m):
        lowest = best[i] & -best[i]
        leaf_out[i] += (
            (_ONE if lowest & _ODD else _NONE)
            | (_TWO if lowest & _UPPER_TWO else _NONE)
            | (_FOUR if lowest & _UPPER_FOUR else _NONE)
            | (_EIGHT if lowest & _UPPER_EIGHT else _NONE)
        )


@njit(cache=True, nogil=True)
def _walk_on(tile, entry, nodes, going, leaf):
    """Go on from the leaf of a large tree's top to its own; `going` is room for rows.

    A row on its way is one number: the row above, the node it has come to in the lower 16 bits.
    """
    n_going = np.uint64(0)
    for i in range(np.uint64(going.shape[0])):
        child = np.uint16(entry[np.uint64(leaf[i])])
        leaf[i] = ~child  # where the child is a leaf
        going[n_going] = i << _16 | np.uint64(child)
        n_going += np.uint64(child < _LEAF)
    while n_going > 0:
        still = np.uint64(0)
        for j in range(n_going):
            row, node = np.uint64(going[j]) >> _16, nodes[np.uint64(going[j]) & _LOW_16]
            goes_right = tile[node & _LOW_16, row] >= np.int16(node >> _16)
            # The row is stored either way: a branch would be guessed wrong.
            child = np.uint16(node >> (_32 + (np.uint64(goes_right) << _4)))
            leaf[row] = ~child
            going[still] = row << _16 | np.uint64(child)
            still += np.uint64(child < _LEAF)
        n_going = still


@njit(cache=True, nogil=True)
def walk_down(X, feature, threshold, left, right, missing_left, value, start, scores_out):
    """Add to each row's score the value of its leaf in every tree, in the order of the trees."""
    for k in range(start.shape[0] - 1):
        for i in range(X.shape[0]):
            node = start[k]
            while node >= 0:
                x = X[i, feature[node]]
                goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
            scores_out[i] += value[~node]


# -- preparing ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def depths_of(column, code, left, right, start):
    """Depth of each level tree, 0 for other trees."""
    depth = np.zeros(start.shape[0] - 1, np.int64)
    level = np.empty(left.shape[0], np.int64)
    for k in range(start.shape[0] - 1):
        root, end = start[k], start[k + 1]
        n_levels = 0
        while (1 << n_levels) - 1 < end - root:
            n_levels += 1
        # In preorder the first splits of a level tree go down its left side.
        fits = (1 << n_levels) - 1 == end - root and n_levels <= MOST_LEVELS
        level[root] = 0
        for n in range(root, end if fits else root):
            example = root + level[n]
            fits &= level[n] < n_levels
            fits = fits and column[n] == column[example] and code[n] == code[example]
            for child in (left[n], right[n]):
                if child >= 0:
                    level[child] = level[n] + 1
        if fits:
            depth[k] = n_levels
    return depth


@njit(cache=True, nogil=True)
def lay_groups(column, code, left, right, start, depth, trees_out):
    """Fill groups, splits, entries and nodes of the trees; return how many splits there are."""
    below = np.empty(left.shape[0], np.int64)  # leaves of the top below a split
    first = np.empty(left.shape[0], np.int64)  # the leftmost of them
    in_top = np.empty(left.shape[0], np.bool_)
    group, at, large = 0, 0, 0
    for k in range(depth.shape[0]):
        root, end = start[k], start[k + 1]
        trees_out.first_group[k] = group
        if trees_out.form[k] == LEVEL:
            at = _lay_levels(column, code, root, depth[k], at, trees_out)
            group += 1
            trees_out.first_split[group] = at
            continue
        _choose_top(left, right, root, end, below, in_top)
        _number_leaves(left, right, root, end, in_top, below, first)
        for word in range(0, below[root], _WORD):
            at = _lay_word(column, code, left, root, end, in_top, below, first, word, at, trees_out)
            group += 1
            trees_out.first_split[group] = at
        if trees_out.form[k] == LARGE:
            leaf0 = root + k
            _lay_nodes(column, code, left, right, root, end, leaf0, large, trees_out)
            _lay_entries(left, right, root, end, leaf0, in_top, below, first, large, trees_out)
            large += 1
    trees_out.first_group[depth.shape[0]] = group
    return at


@njit(cache=True, nogil=True, inline="always")
def _lay_levels(column, code, root, depth, at, trees_out):
    """Add the levels of a tree, an even number; return where the next group begins."""
    if depth % 2:
        trees_out.column[at], trees_out.code[at] = 0, _ALWAYS_LEFT
        at += 1
    for n in range(root, root + depth):
        trees_out.column[at], trees_out.code[at] = column[n], code[n]
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _leaves(child, below):
    """Number of leaves of a child, itself where it is a leaf."""
    return below[child] if child >= 0 else 1


@njit(cache=True, nogil=True, inline="always")
def _choose_top(left, right, root, end, below, in_top_out):
    """Say which splits are the top of a tree: those with the most leaves below."""
    room = MASKED_LEAVES - 1
    if end - root <= room:
        in_top_out[root:end] = True
        return
    for n in range(end - 1, root - 1, -1):
        below[n] = _leaves(left[n], below) + _leaves(right[n], below)
    n_with = np.zeros(below[root] + 1, np.int64)  # splits with so many leaves below
    for n in range(root, end):
        n_with[below[n]] += 1
    # A split has more leaves than those below it, and stands before them: the top has no gap.
    least = below[root]
    while n_with[least] < room:
        room -= n_with[least]
        least -= 1
    for n in range(root, end):
        in_top_out[n] = below[n] > least or (below[n] == least and room > 0)
        room -= below[n] == least


@njit(cache=True, nogil=True, inline="always")
def _number_leaves(left, right, root, end, in_top, below_out, first_out):
    """For each split of the top, how many leaves of the top are below, and the leftmost of them."""
    for n in range(end - 1, root - 1, -1):
        below_out[n] = 1
        if in_top[n]:
            below_out[n] = _leaves(left[n], below_out) + _leaves(right[n], below_out)
    first_out[root] = 0
    for n in range(root, end):
        if in_top[n] and left[n] >= 0:
            first_out[left[n]] = first_out[n]
        if in_top[n] and right[n] >= 0:
            first_out[right[n]] = first_out[n] + _leaves(left[n], below_out)


@njit(cache=True, nogil=True, inline="always")
def _lay_word(column, code, left, root, end, in_top, below, first, word, at, trees_out):
    """Add the splits that clear leaves of a word, an even number; return where the next begin."""
    before = at
    for n in range(root, end):
        if in_top[n]:
            begin = max(first[n] - word, 0)
            stop = min(first[n] + _leaves(left[n], below) - word, _WORD)
            if begin < stop:
                trees_out.column[at], trees_out.code[at] = column[n], code[n]
                trees_out.kept[at] = ~(((1 << (stop - begin)) - 1) << begin)
                at += 1
    if (at - before) % 2:
        trees_out.column[at], trees_out.code[at], trees_out.kept[at] = 0, 0, _ALL
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _lay_nodes(column, code, left, right, root, end, leaf0, large, trees_out):
    """Add all splits of a large tree as nodes; children are numbered within the tree."""
    node0, mask = trees_out.first_node[large], 0xFFFF
    for n in range(root, end):
        on_left = left[n] + (leaf0 if left[n] < 0 else -root)
        on_right = right[n] + (leaf0 if right[n] < 0 else -root)
        trees_out.nodes[node0 + n - root] = (
            np.uint64(column[n])
            | np.uint64(code[n] & mask) << np.uint64(16)
            | np.uint64(on_left & mask) << np.uint64(32)
            | np.uint64(on_right & mask) << np.uint64(48)
        )


@njit(cache=True, nogil=True, inline="always")
def _lay_entries(left, right, root, end, leaf0, in_top, below, first, large, trees_out):
    """Say where rows go on from each leaf of the top."""
    for n in range(root, end):
        if in_top[n]:
            if left[n] < 0 or not in_top[left[n]]:
                child = left[n] + (leaf0 if left[n] < 0 else -root)
                trees_out.entry[large, first[n]] = child
            if right[n] < 0 or not in_top[right[n]]:
                child = right[n] + (leaf0 if right[n] < 0 else -root)
                trees_out.entry[large, first[n] + _leaves(left[n], below)] = child
