"""Sums of trees: f(x) = a + sum_t v_t(x), with thresholds and values in double precision."""

import numpy as np
from onnx import numpy_helper

from rareclass.ensemble.tree_sum import TreeSum
from rareclass.model.onnx.graph import ML, Tensor


def summed(X: Tensor, trees: TreeSum) -> Tensor:
    """The sum over trees of each row, of shape (n_rows,)."""
    if not trees.n_trees:
        return X.graph.op("ReduceSum", X, np.array([1]), keepdims=0) * 0.0 + trees.intercept
    total = X.graph.op(
        "TreeEnsemble",
        X,
        domain=ML,
        n_targets=1,
        aggregate_function=1,
        post_transform=0,
        tree_roots=trees.start[:-1].tolist(),
        nodes_featureids=trees.feature.tolist(),
        nodes_splits=numpy_helper.from_array(np.asarray(trees.threshold, np.float64)),
        nodes_modes=numpy_helper.from_array(np.zeros(len(trees.left), np.uint8)),  # x <= split
        nodes_missing_value_tracks_true=trees.missing_goes_left.astype(int).tolist(),
        **_children("true", trees.left),
        **_children("false", trees.right),
        leaf_targetids=[0] * len(trees.value),
        leaf_weights=numpy_helper.from_array(np.asarray(trees.value, np.float64)),
    )
    return total.column(0) + trees.intercept


def _children(side: str, child: np.ndarray) -> dict[str, list[int]]:
    """The nodes on a side of each split; ~k stands for leaf k."""
    return {
        f"nodes_{side}nodeids": np.where(child < 0, ~child, child).tolist(),
        f"nodes_{side}leafs": (child < 0).astype(int).tolist(),
    }
