"""OrdinalRankRC as its users meet it."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from made_tables import ordinal_table
from oracles.ordinal import cost_matrix, mauc_by_pairs, ordinal_minimum
from rareclass import OrdinalRankRC, RankRC
from rareclass.decide import level_thresholds

X, Y = ordinal_table(400, [0.8, 0.1, 0.06, 0.04])
MAJORITY = {"lowest": [0.7, 0.2, 0.1], "inside": [0.15, 0.7, 0.15], "highest": [0.1, 0.2, 0.7]}
DISTANCE = cost_matrix(3, "distance")
MATRIX = np.array([[0.0, 2.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])


def kernel(X, width):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / width**2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("where", MAJORITY)
@pytest.mark.parametrize(
    ("pair_cost", "costs"),
    [
        (None, cost_matrix(3)),
        ("distance", DISTANCE),
        (MATRIX, MATRIX),
        (MATRIX + MATRIX.T, MATRIX),
        (lambda r, t: (t - r) ** 2, DISTANCE**2),
    ],
)
def test_the_model_is_the_minimum_of_problem_48(where, pair_cost, costs):
    X, y = ordinal_table(150, MAJORITY[where])
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    model = OrdinalRankRC(lam=0.003, eps=0.3, tol=1e-10, pair_cost=pair_cost).fit(X, y, weight)
    majority = {"lowest": 0, "inside": 1, "highest": 2}[where]
    assert model.majority_level_ == majority
    held = np.flatnonzero((y != majority) & (weight > 0))
    assert sorted(model.landmark_rows_) == held.tolist()
    K = kernel(X, model.width_)
    value, scores = ordinal_minimum(K[:, held], K[np.ix_(held, held)], 0.003, 0.3, y, weight, costs)
    assert model.objective_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(model.score_samples(X), scores, atol=2e-4)


def test_landmarks_all_is_ordinal_rank_svm():
    X, y = ordinal_table(100, [0.5, 0.3, 0.2])
    model = OrdinalRankRC(lam=0.01, tol=1e-10, landmarks="all").fit(X, y)
    assert sorted(model.landmark_rows_) == list(range(100))
    K = kernel(X, model.width_)
    value, scores = ordinal_minimum(K, K, 0.01, 0.5, y, np.ones(100), cost_matrix(3))
    assert model.objective_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(model.score_samples(X), scores, atol=1e-4)
    # More landmarks can only lower the minimum.
    assert model.objective_ < OrdinalRankRC(lam=0.01, tol=1e-9).fit(X, y).objective_


@pytest.mark.sampled(3)
@pytest.mark.parametrize("landmarks", ["rare", "all", 20, ("rare", 12), ("rare+majority", 5)])
@pytest.mark.parametrize("rare_level", [0, 1])
def test_two_levels_are_rank_rc(rare_level, landmarks):
    X, y = ordinal_table(300, [0.9, 0.1] if rare_level else [0.1, 0.9])
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    parameters = {"landmarks": landmarks, "random_state": 0, "lam": 0.01, "tol": 1e-9}
    two = RankRC(pos_label=rare_level, **parameters).fit(X, y, weight)
    ordinal = OrdinalRankRC(**parameters).fit(X, y, weight)
    sign = 1.0 if rare_level else -1.0
    assert ordinal.objective_ == pytest.approx(two.objective_, rel=1e-12)
    found, wanted = ordinal.score_samples(X), sign * two.score_samples(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    assert ordinal.score(X, y, weight) == pytest.approx(two.score(X, y, weight), rel=1e-12)
    np.testing.assert_array_equal(ordinal.predict(X), two.predict(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "pnorm_push"])
def test_every_loss_ranks_levels_and_two_of_them_as_rank_rc_does(loss):
    model = OrdinalRankRC(loss=loss).fit(X, Y)
    assert model.status_ == "converged"
    assert model.score(X, Y) > 0.8
    ordinal, two = OrdinalRankRC(loss=loss, tol=1e-7), RankRC(loss=loss, tol=1e-7)
    found, wanted = ordinal.fit(X, Y > 0), two.fit(X, Y > 0)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-9)
    np.testing.assert_allclose(found.score_samples(X), wanted.score_samples(X), atol=1e-4)


def test_a_cost_of_zero_takes_pairs_out():
    # Only pairs with level 0 cost: 1, 2 and 3 are one rare class.
    costs = np.zeros((4, 4))
    costs[0, 1:] = 1.0
    ordinal = OrdinalRankRC(pair_cost=costs, tol=1e-9).fit(X, Y)
    two = RankRC(tol=1e-9).fit(X, Y > 0)
    np.testing.assert_allclose(ordinal.score_samples(X), two.score_samples(X), atol=1e-9)
    # Pairs with the majority do not: it is a problem of the others alone.
    among = OrdinalRankRC(pair_cost=np.triu(1.0 - costs), width=2.0, tol=1e-9).fit(X, Y)
    held = Y > 0
    K = kernel(X[held], 2.0)
    value, _ = ordinal_minimum(K, K, 2**-8, 0.5, Y[held], np.ones(held.sum()), cost_matrix(4))
    assert among.objective_ == pytest.approx(value, rel=1e-8)


def test_ordered_columns_bring_their_order_along():
    names = np.array(["none", "low", "medium", "high"])
    wanted = OrdinalRankRC().fit(X, Y).score_samples(X)
    columns = [
        pd.Series(pd.Categorical(names[Y], names, ordered=True)),
        pl.Series(names[Y], dtype=pl.Enum(names)),
    ]
    for column in columns:
        model = OrdinalRankRC().fit(X, column)
        np.testing.assert_array_equal(model.score_samples(X), wanted)
        assert model.classes_.tolist() == names.tolist()
        assert model.majority_level_ == "none"
        assert model.score(X, column) == OrdinalRankRC().fit(X, Y).score(X, Y)


def test_levels_turned_round_turn_the_ranking_round():
    wanted = OrdinalRankRC().fit(X, Y)
    turned = OrdinalRankRC(levels=[3, 2, 1, 0]).fit(X, Y)
    np.testing.assert_allclose(turned.score_samples(X), -wanted.score_samples(X), atol=1e-6)
    assert turned.score(X, Y) == pytest.approx(wanted.score(X, Y))
    assert turned.classes_.tolist() == [3, 2, 1, 0]


def test_score_predict_and_thresholds_are_what_they_say():
    model = OrdinalRankRC().fit(X, Y)
    scores = model.score_samples(X)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    assert model.score(X, Y) == pytest.approx(mauc_by_pairs(Y, scores, np.ones(400)), rel=1e-12)
    np.testing.assert_allclose(model.thresholds_, level_thresholds(Y, scores), atol=1e-12)
    assert (np.diff(model.thresholds_) >= 0).all()
    t = model.thresholds_
    by_hand = (scores[:, None] > t).sum(axis=1)
    np.testing.assert_array_equal(model.predict(X), by_hand)
    error = np.abs(model.predict(X) - Y)
    # One level for all rows would err by at least 1, averaged over the levels.
    assert np.mean([error[level == Y].mean() for level in range(4)]) < 0.7


def test_a_level_without_rows_is_never_predicted():
    model = OrdinalRankRC(levels=[-1, 0, 1, 1.5, 2, 3, 4]).fit(X, Y)
    wanted = OrdinalRankRC().fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), wanted.predict(X))
    np.testing.assert_allclose(model.score_samples(X), wanted.score_samples(X))
    assert model.thresholds_[0] == -np.inf
    assert model.thresholds_[-1] == np.inf
    assert model.thresholds_[2] == model.thresholds_[3]


def test_scikit_learn_composes_with_it():
    model = make_pipeline(StandardScaler(), OrdinalRankRC(lam=0.01))
    assert is_classifier(OrdinalRankRC())  # so that folds are stratified
    assert cross_val_score(model, X, Y, cv=3).mean() > 0.75
    fitted = OrdinalRankRC().fit(X, Y)
    features = fitted.transform(X)
    assert features.shape == (400, len(fitted.get_feature_names_out()))
    weights = np.linalg.lstsq(features, fitted.score_samples(X), rcond=None)[0]
    np.testing.assert_allclose(features @ weights, fitted.score_samples(X), atol=1e-6)


def test_progress_is_told(monkeypatch):
    told = []

    @contextmanager
    def track(title, total, enabled):
        told.append(title)
        yield lambda step=1, note="": told.append(note)

    monkeypatch.setattr("rareclass.ranking.solve.track", track)
    model = OrdinalRankRC(verbose=True).fit(X, Y)
    assert told[0] == "OrdinalRankRC, 80 rows outside the majority"
    assert len(told) == 1 + model.n_iter_
    assert "iteration 1, optimality" in told[1]
    assert told[1].endswith("100% of the kernel in memory")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"levels": [0, 1, 2]}, r"row \d+ of y: 3 is not among the levels 0, 1, 2"),
        ({"levels": "low"}, "levels=.*'low' has no order"),
        ({"pair_cost": "far"}, r"pair_cost must be None, 'distance', a callable or a matrix"),
        ({"pair_cost": np.ones((3, 3))}, r"of shape \(4, 4\).*its shape is \(3, 3\)"),
        ({"pair_cost": -np.ones((4, 4))}, "levels 0 and 1 is -1.0"),
        ({"pair_cost": lambda r, t: np.nan}, "levels 0 and 1 is nan"),
        ({"pair_cost": np.arange(16.0).reshape(4, 4)}, "not those above it"),
        ({"pair_cost": np.zeros((4, 4))}, "0 for every pair"),
        ({"lam": 0.0}, "lam=0.0 must be a number above 0"),
    ],
)
def test_parameters_out_of_range_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        OrdinalRankRC(**parameters).fit(X, Y)


def test_labels_that_fit_did_not_know_are_named():
    model = OrdinalRankRC().fit(X, Y)
    with pytest.raises(ValueError, match=r"row 1 of y: 9 is not among the levels 0, 1, 2, 3"):
        model.score(X[:3], [0, 9, 1])
    with pytest.raises(ValueError, match="Rows of two levels or more"):
        model.score(X[:2], [1, 1])
