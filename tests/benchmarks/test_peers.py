"""Every method that is measured: it learns, and higher scores are rarer."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks import data_sets, peers
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.peers import Task, kernel_gamma, method
from rareclass import RankRC


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


def test_landmarks_of_the_task_are_nystroem_components_too(rows):
    task = Task(threads=1, options={"landmarks": ["rare", 7]})
    assert method("rankrc")(rows.X, rows.y, task).details["landmarks"] == 7
    assert method("nystroem_sgd")(rows.X, rows.y, task).details["components"] == 7


def test_all_kernel_methods_have_the_same_kernel(rows):
    model = RankRC(verbose=False).fit(rows.X, rows.y)
    assert kernel_gamma(rows.X) == pytest.approx(model.width_**-2, rel=1e-5)


def test_unknown_method_is_named():
    with pytest.raises(ValueError, match="no method 'lightbgm'"):
        method("lightbgm")


def test_simulated_set_is_standardised_float32_with_the_named_shape():
    data = data_sets.build(data_sets.simulated_name(3000, 6, 30, held_out=1000))
    assert data.X.shape == (3000, 6)
    assert data.X.dtype == np.float32
    assert (data.y.sum(), data.y_test.sum()) == (30, 10)
    np.testing.assert_allclose(data.X.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(data.X.std(axis=0), 1.0, rtol=1e-4)
    assert not np.array_equal(data.X[:1000], data.X_test)


def test_part_keeps_the_share_and_the_held_out_rows():
    data = data_sets.build(data_sets.simulated_name(3000, 6, 30, held_out=500))
    part = data_sets.part(data, 1000)
    assert (len(part.X), part.y.sum()) == (1000, 10)
    assert part.X_test is data.X_test


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "shape", "n_rare"),
    [
        ("cod_rna", (156_098, 8), 1561),
        ("kdd-50000", (50_000, 43), 361),
        ("kdd_u2r", (145_586, 43), 52),
    ],
)
def test_real_sets(name, shape, n_rare):
    if not data_sets.is_available(name):
        pytest.skip(
            f"{name} is not in {data_folder()}; set RARECLASS_DATA to the folder that has it"
        )
    data = data_sets.build(name)
    assert data.X.shape == shape
    assert data.y.sum() == n_rare
    assert np.isfinite(data.X).all()


def test_unknown_set_is_named():
    assert not data_sets.is_available("kdd99")
    with pytest.raises(ValueError, match="no data set 'kdd99'"):
        data_sets.build("kdd99")
