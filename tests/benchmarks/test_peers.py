"""Peers of the benchmarks: each learns; simulated rows have the shape of their name."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks import data_sets, peers
from benchmarks.peers import Task, method


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = (np.arange(900) % 15 == 0).astype(np.int8)
    X = rng.normal(size=(900, 4)).astype(np.float32)
    X[y == 1] += 2.0
    return data_sets.standardised(X[:600], y[:600], X[600:], y[600:])


@pytest.mark.parametrize("name", peers.TITLES)
def test_method_ranks_held_out_rare_rows_high(name, rows):
    fitted = method(name)(rows.X, rows.y, Task(threads=1, options={}))
    scores = fitted.scores(rows.X_test)
    assert scores.shape == rows.y_test.shape
    assert roc_auc_score(rows.y_test, scores) > 0.9
    assert fitted.details


def test_simulated_set_is_standardised_float32_with_the_named_shape():
    data = data_sets.build(data_sets.simulated_name(3000, 6, 30, held_out=1000))
    assert data.X.shape == (3000, 6)
    assert data.X.dtype == np.float32
    assert (data.y.sum(), data.y_test.sum()) == (30, 10)
    np.testing.assert_allclose(data.X.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(data.X.std(axis=0), 1.0, rtol=1e-4)
    assert not np.array_equal(data.X[:1000], data.X_test)
