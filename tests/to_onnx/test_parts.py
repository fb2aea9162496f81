"""Parts of a graph beside what they stand for: views of numbers, and probabilities."""

from collections.abc import Callable

import numpy as np
import pytest

from rareclass.decide.calibration.calibration import METHODS, Calibration
from rareclass.encoding.bounded_numbers import BoundedNumbers
from rareclass.model.onnx.estimators import ModelOutputs, finished, probability
from rareclass.model.onnx.graph import Graph, TableInputs, Tensor
from rareclass.model.onnx.rare_classifier import bounded
from to_onnx.sessions import answers


def value_of(formula: Callable[[Tensor], Tensor], X: np.ndarray) -> np.ndarray:
    """Return the value of a formula of tensors at a matrix."""
    graph = Graph()
    inputs = TableInputs(graph, Tensor(graph, "X"))
    outputs = ModelOutputs(formula(Tensor(graph, "X")), None, None)
    return answers(finished(inputs, outputs, X.shape[1]), X)["score"]


@pytest.mark.parametrize("how", ["quantiles", "clipped"])
def test_numbers_are_bounded_as_the_library_bounds_them(how: str) -> None:
    random = np.random.default_rng(0)
    X = random.standard_cauchy(size=(200, 3)) * [1.0, 1e3, 1e-3] + [0.0, 5.0, -1.0]
    X[::3, 1] = 0.0
    numbers = BoundedNumbers(how).fit(X)
    new = np.concatenate([X, 10.0 * X, [[np.nan, 0.0, 1e30]]])
    found = value_of(lambda tensor: bounded(tensor, numbers), new)
    np.testing.assert_allclose(found, numbers.transform(new), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("are_shares", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_probabilities_are_those_of_the_map(method: str, are_shares: bool) -> None:
    random = np.random.default_rng(1)
    y = np.arange(300) % 10 == 0
    scores = random.normal(size=300) + 1.5 * y
    scores = 1.0 / (1.0 + np.exp(-scores)) if are_shares else 20.0 * scores + 7.0
    calibration = Calibration.fit(y.astype(int), scores, method=method)
    new = np.concatenate([scores, [0.0, 1.0, 0.5, 3.0, -3.0]])
    found = value_of(lambda tensor: probability(tensor, calibration), new[:, None])
    np.testing.assert_allclose(found[:, 0], calibration(new), rtol=1e-9, atol=1e-12)
