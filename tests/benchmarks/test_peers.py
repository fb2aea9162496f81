"""Peers of the benchmarks learn, and generated rows are as documented."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks import data_sets, peer_table, peers
from benchmarks.hospital_days import (
    hospital_days,
)
from benchmarks.peers import Task, method
from benchmarks.simulated import bayes_score, rare_mixture
from rareclass.metrics import mauc

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


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


@pytest.mark.parametrize(("overlap", "auc"), [(0.9, 67.0), (0.75, 69.9), (0.6, 73.3)])
def test_bayes_auc_is_the_documented_one(overlap: float, auc: float) -> None:
    X, y = rare_mixture(100_000, 0.3, overlap, random_state=1)
    assert 100 * roc_auc_score(y, bayes_score(X, overlap)) == pytest.approx(auc, abs=0.5)


@pytest.mark.parametrize("overlap", [0.6, 0.9])
def test_score_is_the_log_density_ratio(overlap: float) -> None:
    """The average over majority rows of p(x | rare) / p(x | majority) over a region is the
    share of rare rows in it: checked by Monte Carlo on half-spaces."""
    majority, _ = rare_mixture(200_000, 0.0, overlap, random_state=2)
    rare, _ = rare_mixture(200_000, 1.0, overlap, random_state=3)
    ratio = np.exp(bayes_score(majority, overlap))
    assert ratio.mean() == pytest.approx(1.0, abs=0.01)
    for axis in range(5):
        for cut in (-0.5, 0.0, 0.5):
            share = np.mean(rare[:, axis] < cut)
            assert np.mean(ratio * (majority[:, axis] < cut)) == pytest.approx(share, abs=0.01)


def test_relation_is_the_same_in_every_draw():
    """A direction learned on one draw ranks another one, though less well than the burden."""
    X, y, _ = hospital_days(8000, 60, random_state=1)
    Z, levels, burden = hospital_days(8000, 60, random_state=2)
    design = np.column_stack([np.ones(len(X)), X])
    direction = np.linalg.lstsq(design, (y > 0).astype(float), rcond=None)[0][1:]
    assert 0.65 < mauc(levels, Z @ direction) < mauc(levels, burden)


def test_each_library_is_shown_at_its_best_setting():
    common = {"data": "kdd", "status": "ok", "rows": 9, "features": 2, "rare": 1, "seconds": 1.0}
    found = {"rankrc_top": 0.5, "lightgbm": 0.4, "lightgbm_slow": 0.6, "xgboost": 0.3}
    lines = [
        common | {"method": name, "average_precision": value, "auc": 0.9}
        for name, value in found.items()
    ]
    stopped = common | {"method": "lightgbm_tuned", "status": "stopped"}
    assert (
        peer_table.best([*lines, stopped], "kdd", peer_table.LIGHTGBM)["average_precision"] == 0.6
    )
    assert peer_table.best(lines, "unsw", peer_table.LIGHTGBM) is None
    (page,) = peer_table._at_their_best(["kdd"], lines)
    assert peer_table._at_their_best(["unsw"], lines) == []
    assert "| 0.900, 0.500, 1.0 s | 0.900, 0.600, 1.0 s (300 slow trees) |" in page


def test_a_search_without_time_keeps_the_defaults(rows):
    task = Task(threads=1, search_seconds=0.0)
    for name in ("lightgbm_tuned", "xgboost_tuned"):
        assert method(name)(rows.X, rows.y, task).details["settings"] == {}
