"""A combination of members: each one's score, its rank among the majority, and their mean."""

from typing import Any

import numpy as np

from rareclass.encoding.views import SparseView
from rareclass.ensemble.false_positive_rate import FalsePositiveRate
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.ensemble.score_functions import KernelFunction, LinearFunction
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import make_kernel
from rareclass.model.onnx.graph import Tensor
from rareclass.model.onnx.kernel_machine import expanded
from rareclass.model.onnx.knots import on_lines
from rareclass.model.onnx.table_inputs import TableInputs
from rareclass.model.onnx.tree_sum import summed
from rareclass.model.onnx.views import EncodedRow, dense_rows, linear_in_indicators

_LN_10 = float(np.log(10.0))


def combined(inputs: TableInputs, model: RareClassifier) -> Tensor:
    """Scores of the combination, of shape (n_rows, 1).

    Raises `InputError` for columns of dates and texts, naming them.
    """
    row = EncodedRow(inputs, model.statistics_)
    rows: dict[str, Tensor] = {}
    total = None
    for member in model.members_:
        view = model.views_[member.view]
        if isinstance(view, SparseView):
            function: Any = member.function
            scores = linear_in_indicators(row, view, function.weights) + function.intercept
        else:
            if member.view not in rows:
                rows[member.view] = dense_rows(row, view)
            scores = _scores(rows[member.view], member.function)
        part = _log_rate(scores.upright(), member.scale) * -member.weight
        total = part if total is None else total + part
    assert total is not None
    return _log_rate(total, model.scale_) / -_LN_10


def _scores(X: Tensor, function: Any) -> Tensor:
    """A member's score of encoded rows, of shape (n_rows,)."""
    if isinstance(function, TreeSum):
        return summed(X, function)
    if isinstance(function, LinearFunction):
        return X @ function.weights + function.intercept
    assert isinstance(function, KernelFunction)
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


def _log_rate(scores: Tensor, scale: FalsePositiveRate) -> Tensor:
    """ln F of scores of shape (n_rows, 1)."""
    inside = on_lines(scores.graph, scores, [scale.knots], [scale.log_rates])
    beyond = (scores - scale.knots[-1]).at_least(0.0)
    return inside - (beyond / scale.excess + 1.0).log()
