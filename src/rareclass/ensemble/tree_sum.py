"""Sums of trees: f(x) = a + the sum of the values of the leaves that x reaches, one a tree."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from rareclass.ensemble._tree_sum_jit import (
    LARGE,
    LEVEL,
    LOWEST,
    MASKED,
    MASKED_LEAVES,
    MOST_CUTS,
    MOST_FEATURES,
    MOST_SPLITS,
    TILE_STEP,
    WORDS,
    PreparedTrees,
    add_trees,
    depths_of,
    lay_groups,
    lay_out,
    walk_down,
)
from rareclass.rows.memory import ArrayRows
from rareclass.rows.source import RowSource

_BLOCK_ROWS = 4096
# Preparing a tree takes as long as so many rows, and so many more a split, take to walk down it.
_ROWS_A_TREE, _ROWS_A_SPLIT = 500, 10
_FEW_ROWS = 32  # walk down in the time that a tile takes
# A tile of rows stays in the second cache.
_TILE_BYTES = 2**18
_MOST_TILES = 16


class Tree(NamedTuple):
    """One tree as libraries keep it: an entry of each array a node, the root first.

    A row goes left where ``x[feature] <= threshold``, or where x[feature] is NaN and
    `missing_goes_left`. A leaf has left < 0, and only there `value` counts.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_goes_left: np.ndarray
    value: np.ndarray


@dataclass(eq=False)
class TreeSum:
    r"""The score :math:`f(x) = a + \sum_t v_t(x)`, where v_t is the value of x's leaf in tree t.

    Notes
    -----
    A row costs one comparison a level in trees that ask the same at all splits of a level, one a
    split in others of up to 128 leaves, 16 of either at once, and some steps down in larger ones;
    `_tree_sum_jit` has the forms. Few rows walk down all trees instead, which need not be brought
    into a form first. A tree takes about 29 bytes a leaf, and 10 to 26 more in a form.

    Examples
    --------
    >>> stump = Tree(*map(np.array, ([0, 0, 0], [0.5, 0, 0], [1, -1, -1], [2, -1, -1],
    ...     [True, False, False], [0.0, -1.0, 1.0])))
    >>> TreeSum.of([stump], 10.0).scores(np.array([[0.5], [0.6], [np.nan]]))
    array([ 9., 11.,  9.])
    """

    # shape (n_splits,): A row goes left at a split where ``x[feature] <= threshold``, or where
    # x[feature] is NaN and `missing_goes_left`. Splits of all trees stand after each other, those
    # of one tree in preorder.
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray  # shape (n_splits,): the split that follows; ~k stands for leaf k
    right: np.ndarray
    missing_goes_left: np.ndarray
    # shape (n_leaves,): value of each leaf; leaves of a tree stand from left to right
    value: np.ndarray
    # shape (n_trees + 1,): first split of each tree, and their number. Tree t has start[t + 1] -
    # start[t] splits, at least one, and one leaf more; its first leaf is start[t] + t.
    start: np.ndarray
    intercept: float  # a, with the values of all trees that split nothing

    _n_walked = 0  # rows, in all calls so far

    @classmethod
    def of(cls, trees: Sequence[Tree], intercept: float = 0.0) -> Self:
        """Return the sum of trees and of an intercept."""
        splitting = [tree for tree in trees if tree.left[0] >= 0]
        intercept += sum(float(tree.value[0]) for tree in trees if tree.left[0] < 0)
        n_splits = [len(tree.left) // 2 for tree in splitting]
        start = np.concatenate([[0], np.cumsum(n_splits)]).astype(np.int32)
        total = int(start[-1])
        out = (
            np.empty(total, np.int32),
            np.empty(total),
            np.empty(total, np.int32),
            np.empty(total, np.int32),
            np.empty(total, np.bool_),
            np.empty(total + len(splitting)),
        )
        kinds = (np.int64, np.float64, np.int64, np.int64, np.bool_, np.float64)  # compiled for
        for number, (first, tree) in enumerate(zip(start[:-1], splitting, strict=True)):
            nodes: list[np.ndarray] = [
                np.ascontiguousarray(each, kind) for each, kind in zip(tree, kinds, strict=True)
            ]
            lay_out(*nodes, int(first), int(first) + number, *out)
        return cls(*out, start, float(intercept))

    def at(self, features: np.ndarray, n_features: int) -> Self:
        """Return the function of rows of more features."""
        return replace(self, feature=features[self.feature].astype(np.int32))

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return the sum of all trees, with values divided by the number of functions."""
        splits = np.cumsum([0] + [len(each.left) for each in functions])
        leaves = np.cumsum([0] + [len(each.value) for each in functions])
        shifts = list(zip(functions, splits[:-1], leaves[:-1], strict=True))
        return cls(
            np.concatenate([each.feature for each in functions]),
            np.concatenate([each.threshold for each in functions]),
            np.concatenate([_shifted(each.left, *by) for each, *by in shifts]),
            np.concatenate([_shifted(each.right, *by) for each, *by in shifts]),
            np.concatenate([each.missing_goes_left for each in functions]),
            np.concatenate([each.value for each in functions]) / len(functions),
            np.concatenate(
                [each.start[:-1] + first for each, first, _ in shifts] + [splits[-1:]]
            ).astype(np.int32),
            float(np.mean([each.intercept for each in functions])),
        )

    def check_parts(self) -> None:
        """Raise `ValueError` where compiled code would leave its arrays, or walk for ever."""
        n_splits, start = len(self.left), self.start
        kinds = {"feature": "i", "left": "i", "right": "i", "missing_goes_left": "b"}
        for name, kind in {**kinds, "threshold": "f", "value": "f"}.items():
            array, n = vars(self)[name], n_splits + (self.n_trees if name == "value" else 0)
            if array.shape != (n,) or array.dtype.kind != kind:
                raise ValueError(f"{name} does not have {n} entries, one for each split or leaf")
        if np.isnan(self.threshold).any():
            raise ValueError("a threshold is not a number")
        if start.dtype.kind != "i" or start.ndim != 1 or start[0] != 0 or start[-1] != n_splits:
            raise ValueError("start does not say where trees begin")
        if (np.diff(start) < 1).any() or (self.feature < 0).any():
            raise ValueError("a tree has no split, or a split no feature")
        self._check_children()

    def _check_children(self) -> None:
        start, n_splits = self.start, len(self.left)
        tree = np.repeat(np.arange(self.n_trees), np.diff(start))
        first_leaf, end_leaf = start[tree] + tree, start[tree + 1] + tree + 1
        for child in (self.left, self.right):
            # In preorder a split stands before those below it: no walk comes back.
            is_split = (child > np.arange(n_splits)) & (child < start[tree + 1])
            is_leaf = (child < 0) & (~child >= first_leaf) & (~child < end_leaf)
            if not (is_split | is_leaf).all():
                raise ValueError("a split leads outside of its tree")
        children = np.concatenate([self.left, self.right])
        parents = np.bincount(children[children >= 0], minlength=n_splits)
        parents[start[:-1]] += 1
        if (parents != 1).any() or (np.bincount(~children[children < 0]) != 1).any():
            raise ValueError("a split or a leaf does not follow exactly one split")

    @property
    def n_trees(self) -> int:
        """Number of trees that split."""
        return len(self.start) - 1

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row, of shape (n_rows,); the same for any number of threads."""
        if not X.shape[0]:
            return np.empty(0)
        if X.shape[1] < self._n_features:
            raise ValueError(f"rows have {X.shape[1]} features, the trees look at more.")
        if X.shape[0] <= _FEW_ROWS:
            return self._walked(_dense(X))
        source = RowSource(X.shape, X.dtype, lambda rows: X[rows], sparse.issparse(X))
        rows = ArrayRows(source, block_rows=_BLOCK_ROWS, n_jobs=n_jobs, blocks_a_thread=1)
        scores_of = self._by_forms if self._is_prepared(X.shape[0]) else self._walked
        return rows.map(lambda block: scores_of(_dense(block.X)))

    @cached_property
    def _n_features(self) -> int:
        """Number of features that rows have at least."""
        return int(self.feature.max(initial=-1)) + 1

    def _is_prepared(self, n_rows: int) -> bool:
        """Return whether rows are scored by the prepared trees; else count them as walked."""
        self._n_walked += n_rows
        most = _ROWS_A_TREE + _ROWS_A_SPLIT * len(self.left) / max(self.n_trees, 1)
        return self._n_walked > most and np.diff(self.start).max(initial=0) <= MOST_SPLITS

    @cached_property
    def _prepared(self) -> dict[bool, list[PreparedTrees]]:
        """The trees as rows are scored, by whether some of their values are missing."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if not name.startswith("_")}

    def _by_forms(self, X: np.ndarray) -> np.ndarray:
        """Return f of every row by prepared trees."""
        scores, has_missing = np.zeros(len(X)), bool(np.isnan(X).any())
        if has_missing not in self._prepared:
            parts = [self._part(*of) for of in itertools.pairwise(self._ends_of_parts())]
            self._prepared[has_missing] = [_prepared(each, has_missing) for each in parts]
        for part in self._prepared[has_missing]:
            tiles = _TILE_BYTES // (2 * TILE_STEP * len(part.feature))
            add_trees(X, part, TILE_STEP * min(max(tiles, 1), _MOST_TILES), scores)
        return scores + self.intercept

    def _walked(self, X: np.ndarray) -> np.ndarray:
        """Return f of every row by walking down all trees."""
        scores, tree = np.zeros(len(X)), (self.feature, self.threshold, self.left, self.right)
        walk_down(X, *tree, self.missing_goes_left, self.value, self.start, scores)
        return scores + self.intercept

    def _ends_of_parts(self) -> list[int]:
        """Cut the trees where 16 bits could not number features, or the thresholds of one."""
        used, feature = np.unique(self.feature, return_inverse=True)
        counts, ends = np.zeros(len(used), np.int64), [0]
        for k, splits in enumerate(itertools.pairwise(self.start)):
            more = np.bincount(feature[slice(*splits)], minlength=len(used))
            sums = counts + more
            fits = sums.max() <= MOST_CUTS and np.count_nonzero(sums) <= MOST_FEATURES
            is_end = k > 0 and not fits
            ends += [k] if is_end else []
            counts = more if is_end else sums
        return [*ends, self.n_trees] if self.n_trees else []

    def _part(self, begin: int, end: int) -> "TreeSum":
        """Return consecutive trees as a sum of their own."""
        first, last = self.start[begin], self.start[end]
        splits, leaves = slice(first, last), slice(first + begin, last + end)
        return TreeSum(
            self.feature[splits].astype(np.int32),
            self.threshold[splits].astype(np.float64),
            _shifted(self.left[splits], -first, -first - begin),
            _shifted(self.right[splits], -first, -first - begin),
            self.missing_goes_left[splits],
            self.value[leaves].astype(np.float64),
            (self.start[begin : end + 1] - first).astype(np.int32),
            0.0,
        )


def _dense(X: Any) -> np.ndarray:
    X = X.toarray() if sparse.issparse(X) else X
    return np.ascontiguousarray(X, dtype=np.float64)


def _prepared(trees: TreeSum, has_missing: bool) -> PreparedTrees:
    """Bring trees into the forms that they are scored in."""
    # A feature is two columns where missing values go left in some splits and right in others.
    side = 2 * trees.feature.astype(np.int64) + (has_missing & trees.missing_goes_left)
    sides, column = np.unique(side, return_inverse=True)
    order = np.lexsort((trees.threshold, column))
    of, cut = column[order], trees.threshold[order]
    is_new = np.append(True, (of[1:] != of[:-1]) | (cut[1:] != cut[:-1]))
    first_cut = np.searchsorted(of[is_new], np.arange(len(sides) + 1))
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_new)
    code = (number - first_cut[column] + LOWEST).astype(np.int16)
    how = column.astype(np.int32), code, trees.left, trees.right, trees.start
    depth, n_splits = depths_of(*how), np.diff(trees.start)
    form = np.where(depth > 0, LEVEL, np.where(n_splits < MASKED_LEAVES, MASKED, LARGE))
    sizes = n_splits[form == LARGE]
    room = int((WORDS * (np.minimum(n_splits, MASKED_LEAVES) + 1)).sum())
    prepared = PreparedTrees(
        feature=sides // 2,
        missing_left=sides % 2 == 1,
        first_cut=first_cut,
        cuts=cut[is_new],
        form=form,
        first_group=np.zeros(len(depth) + 1, np.int64),
        first_split=np.zeros(WORDS * len(depth) + 1, np.int64),
        column=np.empty(room, np.int32),
        code=np.empty(room, np.int16),
        kept=np.empty(room, np.int16),
        first_leaf=trees.start[:-1] + np.arange(len(depth)),
        value=trees.value,
        entry=np.empty((len(sizes), MASKED_LEAVES), np.int16),
        first_node=np.concatenate([[0], np.cumsum(sizes)]),
        nodes=np.empty(sizes.sum(), np.uint64),
    )
    n_kept = lay_groups(*how, depth, prepared)
    return prepared._replace(
        column=prepared.column[:n_kept].copy(),
        code=prepared.code[:n_kept].copy(),
        kept=prepared.kept[:n_kept].copy(),
    )


def _shifted(child: np.ndarray, splits: int, leaves: int) -> np.ndarray:
    """Return children whose splits and leaves stand so much later."""
    return np.where(child < 0, child - leaves, child + splits).astype(np.int32)


def before_rounding(threshold: np.ndarray) -> np.ndarray:
    """Return the largest float64 that, rounded to float32, is at most the threshold.

    Libraries that compare rows in float32 decide ``float32(x) <= t``. Rounding keeps the order, so
    that this is ``x <= s``, where s lies half-way between a, the last float32 up to t, and the
    next one: half-way itself is rounded to the even one of the two.

    >>> [s] = before_rounding(np.array([0.1]))
    >>> float(np.float32(s)) <= 0.1, float(np.float32(np.nextafter(s, 1))) <= 0.1
    (True, False)
    """
    threshold = np.asarray(threshold, dtype=np.float64)
    below = threshold.astype(np.float32)
    down = below > threshold
    below[down] = np.nextafter(below[down], np.float32(-np.inf))
    with np.errstate(over="ignore"):
        above = np.nextafter(below, np.float32(np.inf))
    half_way = below.astype(np.float64) / 2 + above.astype(np.float64) / 2
    is_even = below.view(np.int32) % 2 == 0
    found = np.where(is_even, half_way, np.nextafter(half_way, -np.inf))
    return np.where(np.isfinite(found), found, threshold)
