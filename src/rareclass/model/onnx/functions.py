"""Score functions in ONNX: kernel expansions, sums of trees, linear functions, their scale."""

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from onnx import numpy_helper
from scipy import sparse

from rareclass.ensemble.score_functions import (
    FalsePositiveRate,
    KernelFunction,
    LinearFunction,
    MeanFunction,
)
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.errors import ErrorKind, InputError
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import (
    FeatureScaled,
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
    make_kernel,
)
from rareclass.model.onnx.graph import ML, Tensor, on_lines

# What is left of |x|^2 + |z|^2 - 2 x.z below this part of it is rounding: as in the library.
_NOISE = 8.0 * np.finfo(np.float64).eps


def function_scores(X: Tensor, function: Any) -> Tensor:
    """Score of a member's function of encoded rows, of shape (n_rows,)."""
    if isinstance(function, TreeSum):
        return summed(X, function)
    if isinstance(function, LinearFunction):
        return X @ function.weights + function.intercept
    if isinstance(function, MeanFunction):
        each = [function_scores(X, part) for part in function.functions]
        return reduce(add, each) * (1.0 / len(each))
    assert isinstance(function, KernelFunction)
    if function.features is not None:
        X = X.columns(function.features)
    X = X.to(np.float32)
    if function.scales is not None:
        scales = X.graph.op("Cast", function.scales, to=1)
        X = X * scales
    both = np.column_stack([function.coefficients, np.ones(len(function.coefficients))])
    kernel = make_kernel(function.kernel, function.width)
    found = expanded(X.to(np.float64), KernelExpansion(kernel, function.landmarks), both)
    scores, similarity = found.column(0), found.column(1)
    lower = X.graph.op("Min", scores, np.float64(function.most))
    return lower.where(similarity < function.least, scores)


def log_rate(scores: Tensor, scale: FalsePositiveRate) -> Tensor:
    """ln F of scores of shape (n_rows, 1)."""
    inside = on_lines(scores.graph, scores, [scale.knots], [scale.log_rates])
    beyond = (scores - scale.knots[-1]).at_least(0.0)
    return inside - (beyond / scale.excess + 1.0).log()


def expanded(X: Tensor, expansion: KernelExpansion, coefficients: np.ndarray) -> Tensor:
    """Values of the expansion, of shape (n_rows,) or (n_rows, n_functions) as coefficients have.

    Distances are those of the library, from one matrix product of centred rows: as exact, and
    memory for n_rows x n_landmarks numbers.

    Raises `InputError` for landmarks that are sparse and kernels that are no formula.
    """
    if sparse.issparse(expansion.landmarks):
        raise InputError(
            "This model was learned from sparse rows, which ONNX has no tensors for.",
            "Learn it from dense rows, X.toarray(), if these fit in memory.",
            ErrorKind.UNSUPPORTED,
        )
    if not expansion.n_landmarks:  # a sparse model may have none
        return X.graph.op("ReduceSum", X, np.array([1]), keepdims=0) * 0.0
    Z = np.asarray(expansion.landmarks, dtype=np.float64)
    K = _kernel(X, Z, expansion.kernel)
    return K @ np.asarray(coefficients, dtype=np.float64)


def _kernel(X: Tensor, Z: np.ndarray, kernel: Any) -> Tensor:
    """k(x, z), of shape (n_rows, n_landmarks)."""
    if isinstance(kernel, FeatureScaled):
        used = np.flatnonzero(kernel.scales)
        factors = kernel.scales[used]
        return _kernel(X.columns(used) * factors, Z[:, used] * factors, kernel.kernel)
    if isinstance(kernel, Gaussian):
        return (_squared_distances(X, Z) * (-1.0 / kernel.width**2)).exp()
    if isinstance(kernel, Laplace):
        distances = X.graph.op("Sqrt", _squared_distances(X, Z))
        return (distances * (-1.0 / kernel.width)).exp()
    if isinstance(kernel, Linear):
        return X @ Z.T
    if isinstance(kernel, Polynomial):
        base = X @ Z.T * (1.0 / kernel.width**2) + kernel.offset
        return X.graph.op("Pow", base, np.float64(kernel.degree))
    raise InputError(
        f"The kernel {type(kernel).__name__} is code of its own, which ONNX cannot hold.",
        "Kernels by name are formulas: gaussian, laplace, linear, polynomial.",
        ErrorKind.UNSUPPORTED,
    )


def _squared_distances(X: Tensor, Z: np.ndarray) -> Tensor:
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    norms = X.graph.op("ReduceSumSquare", X, np.array([1]))
    total = norms + np.einsum("ij,ij->i", Z, Z)
    distances = total - (X @ Z.T) * 2.0
    return distances.where(distances > total * _NOISE, 0.0)


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
