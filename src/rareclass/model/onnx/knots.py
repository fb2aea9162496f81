"""Where numbers stand among others, and lines between: binary searches as trees of ONNX."""

from collections.abc import Sequence

import numpy as np
from onnx import numpy_helper

from rareclass.model.onnx.graph import ML, Graph, Tensor

_LEQ, _LT = 0, 1  # the modes of a split


def counts_below(
    graph: Graph, X: Tensor, splits: Sequence[np.ndarray], or_equal: bool = False
) -> Tensor:
    """Of each column's increasing splits, how many are below its numbers (or equal to them).

    X: (n_rows, n_columns), with as many arrays of splits; the answer is int64 of that shape. NaN is
    above all. O(log n_splits) a number; O(n_splits), and as much memory, where the graph has no
    trees.
    """
    if not graph.has_trees:
        return _counted(graph, X, splits, or_equal)
    nodes: list[tuple[int, float, int, bool, int, bool]] = []
    leaves: list[tuple[int, int]] = []
    roots = []

    def grow(column: int, low: int, high: int) -> tuple[int, bool]:
        """The tree of splits low to high; its number, and whether it is a leaf."""
        if low == high:
            leaves.append((column, low))
            return len(leaves) - 1, True
        middle, place = (low + high) // 2, len(nodes)
        nodes.append((column, float(splits[column][middle]), 0, False, 0, False))
        left, right = grow(column, low, middle), grow(column, middle + 1, high)
        nodes[place] = (column, float(splits[column][middle]), *left, *right)
        return place, False

    for column, each in enumerate(splits):
        if len(each):
            roots.append(grow(column, 0, len(each))[0])
    if not roots:
        return (X.where(X.equals(X), 0.0) * 0.0).to(np.int64)
    feature, split, left, left_leaf, right, right_leaf = (
        list(each) for each in zip(*nodes, strict=True)
    )
    found = graph.op(
        "TreeEnsemble",
        X,
        domain=ML,
        n_targets=len(splits),
        aggregate_function=1,
        post_transform=0,
        tree_roots=roots,
        nodes_featureids=feature,
        nodes_splits=numpy_helper.from_array(np.array(split, np.float64)),
        nodes_modes=numpy_helper.from_array(
            np.full(len(nodes), _LT if or_equal else _LEQ, np.uint8)
        ),
        nodes_truenodeids=left,
        nodes_trueleafs=[int(each) for each in left_leaf],
        nodes_falsenodeids=right,
        nodes_falseleafs=[int(each) for each in right_leaf],
        leaf_targetids=[column for column, _ in leaves],
        leaf_weights=numpy_helper.from_array(np.array([n for _, n in leaves], np.float64)),
    )
    return found.to(np.int64)


def _counted(graph: Graph, X: Tensor, splits: Sequence[np.ndarray], or_equal: bool) -> Tensor:
    """`counts_below` by comparison with every split."""
    counts = []
    for column, each in enumerate(splits):
        x = X.columns([column])
        not_below = x.graph.op("LessOrEqual" if not or_equal else "Less", x, each)
        below = graph.op("Not", not_below).to(np.int64)
        counts.append(graph.op("ReduceSum", below, np.array([1]), keepdims=1))
    return graph.side_by_side(counts)


def on_lines(
    graph: Graph, X: Tensor, knots: Sequence[np.ndarray], heights: Sequence[np.ndarray]
) -> Tensor:
    """`np.interp` of each column by its own increasing knots and their heights; NaN stays.

    X: (n_rows, n_columns); beyond the knots the height is that of the last one.
    """
    low, high = (np.array([each[end] for each in knots]) for end in (0, -1))
    # A single knot gets a second one of the same height.
    lines = [
        (each, height)
        if len(each) > 1
        else (np.append(each, each[0] + 1.0 + abs(each[0])), np.repeat(height, 2))
        for each, height in zip(knots, heights, strict=True)
    ]
    starts = np.cumsum([0] + [len(each) for each, _ in lines])[:-1]
    places = counts_below(graph, X, [each[1:-1] for each, _ in lines], or_equal=True) + starts
    at = np.concatenate([each for each, _ in lines])
    height = np.concatenate([each for _, each in lines])
    slope = np.concatenate([np.append(np.diff(h) / np.diff(each), 0.0) for each, h in lines])
    begin, rise, level = (graph.constant(each).take(places) for each in (at, slope, height))
    return (X.clip(low, high) - begin) * rise + level
