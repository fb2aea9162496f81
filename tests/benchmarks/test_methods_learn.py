"""Methods of the benchmarks learn, and truths of simulations are those of very many rows."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks import data_sets, peers
from benchmarks.decisions import constraints, paired
from benchmarks.paper_tables import fig3
from benchmarks.peers import Task
from benchmarks.several_classes.measures import measures
from benchmarks.several_classes.methods import Probabilities
from benchmarks.simulated import bayes_score, rare_mixture
from benchmarks.tabular import measure as tabular
from rareclass import metrics
from rareclass.metrics import roc_auc

pytestmark = pytest.mark.sampled(0)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = (np.arange(900) % 15 == 0).astype(np.int8)
    X = rng.normal(size=(900, 4)).astype(np.float32)
    X[y == 1] += 2.0
    return data_sets.standardised(X[:600], y[:600], X[600:], y[600:])


@pytest.mark.parametrize("name", peers.TITLES)
def test_a_peer_ranks_held_out_rare_rows_high(name, rows):
    fitted = peers.METHODS[name][1](rows.X, rows.y, Task(threads=1, search_seconds=1.0))
    scores = fitted.scores(rows.X_test)
    assert scores.shape == rows.y_test.shape
    assert roc_auc_score(rows.y_test, scores) > 0.9
    assert fitted.details


@pytest.mark.parametrize("name", ["logistic", "lightgbm", "rareclass"])
def test_a_method_of_the_tables_ranks_rows_with_words(name):
    rng = np.random.default_rng(0)
    y = (np.arange(300) % 10 == 0).astype(np.int64)
    kind = np.where(y == 1, "r", rng.choice(["a", "b"], 300)).tolist()
    frame = pl.DataFrame({"number": rng.normal(size=300) + 3.0 * y, "kind": [None, *kind[1:]]})
    fitted = tabular.fit(name, frame, y, 0, 5.0)
    assert roc_auc(y, fitted.scores(frame)) > 0.95


def test_recall_counts_alerts_that_are_called_their_own_class():
    y = np.array([1, 1, 2, 2, 0, 0])
    found = np.array([
        [0.1, 0.8, 0.1],  # found
        [0.2, 0.3, 0.5],  # an alert of the wrong class
        [0.3, 0.1, 0.6],  # found
        [0.8, 0.1, 0.1],  # beyond the budget of four
        [0.4, 0.5, 0.1],  # a false alert
        [0.9, 0.0, 0.1],
    ])  # fmt: skip
    run = measures(y, Probabilities.of(found), [2, 2])
    assert run["within_budget"] == run["within_shared_budget"] == [0.5, 0.5]
    # A class of few rows is worth more: the row of 0.3 and 0.5 is called the first class.
    assert measures(y, Probabilities.of(found), [1, 16])["within_shared_budget"] == [1.0, 0.0]
    assert run["rare_called_right"] == 0.5


@pytest.mark.parametrize("overlap", [0.6, 0.9])
def test_the_score_of_the_simulated_mixture_is_the_log_density_ratio(overlap):
    """The mean over majority rows of p(x | rare) / p(x | majority) over a region is the share of
    rare rows in it: checked by Monte Carlo on half-spaces."""
    majority, _ = rare_mixture(200_000, 0.0, overlap, random_state=2)
    rare, _ = rare_mixture(200_000, 1.0, overlap, random_state=3)
    ratio = np.exp(bayes_score(majority, overlap))
    assert ratio.mean() == pytest.approx(1.0, abs=0.01)
    for axis in range(5):
        share = np.mean(rare[:, axis] < 0.5)
        assert np.mean(ratio * (majority[:, axis] < 0.5)) == pytest.approx(share, abs=0.01)


def test_the_oracle_keeps_the_constraint_and_mapie_is_asked_for_the_rate_of_a_batch():
    best = constraints.oracle(constraints.CASES[2], constraints.POPULATIONS[0].above)
    assert best == pytest.approx(0.569, abs=0.002)  # false-positive rate <= .01, at 2.326
    _, rate, chance = constraints.CONTROLLED[3]
    assert constraints.alert_chance(rate, rate) == pytest.approx(chance)


@pytest.mark.parametrize("rounded", [False, True])
def test_truths_of_pairs_are_those_of_very_many_rows(rounded, monkeypatch):
    population = paired.Population((2.5, 1.5), 0.5, rounded)
    # The truth is for 20 rare rows to 2,000 others: 250 such samples in one.
    monkeypatch.setitem(paired.RARE_ROWS, 5_000, 100)
    truths = population.truths(20)
    y = np.arange(5_000 * 101) < 5_000
    a, b = population.draw(5_000, np.random.default_rng(0))
    costs = {"threshold": paired.CUT, "cost_fn": paired.COST_MISSED}
    options = {"precision_at_k": {"k": 5_000}, "expected_cost": costs}
    for name, truth in truths.items():
        of, own = getattr(metrics, name), options.get(name, {})
        assert of(y, a, **own) - of(y, b, **own) == pytest.approx(truth, abs=0.02)


@pytest.mark.parametrize("repeated", [False, True])
def test_spectral_norms_of_nystrom_errors(repeated):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    if repeated:  # equal rows: K_RR is singular
        X[1:40:2] = X[0:40:2]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 6)
    draws = [np.sort(rng.choice(80, 12, replace=False)) for _ in range(4)]
    inverses = [np.linalg.pinv(K[np.ix_(R, R)], rcond=1e-12, hermitian=True) for R in draws]
    pairs = zip(draws, inverses, strict=True)
    wanted = [np.linalg.norm(K - K[:, R] @ inverse @ K[R], 2) for R, inverse in pairs]
    found, steps = fig3.spectral_norms(fig3.NystromErrors(K, draws), 80, 4, seed=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert steps < 30
