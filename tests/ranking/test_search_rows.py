"""Width and lam chosen together, and on a part of the rows."""

import numpy as np
import pytest
from scipy import sparse

from made_tables import rare_mixture
from rareclass import OrdinalRankRCCV, RankRC, RankRCCV
from rareclass.labels.two_classes import read_labels
from rareclass.ranking import fitting
from rareclass.ranking.ranking_data import RankingData
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import as_source

X, Y = rare_mixture(600, 60)
LAMS = [1.0, 2.0**-8]


def mean_width(rows=X):
    return float(np.sqrt(2.0 * rows.var(axis=0).sum()))


def test_widths_are_searches_of_their_own():
    """One search over widths finds what a search for each of them does."""
    factors = [0.3, 1.0, 3.0]
    both = RankRCCV(LAMS, widths=factors, cv=3, random_state=0).fit(X, Y)
    alone = [
        RankRCCV(LAMS, width=factor * mean_width(), cv=3, random_state=0).fit(X, Y)
        for factor in factors
    ]
    found = both.cv_results_
    wanted = np.concatenate([each.cv_results_["mean_test_score"] for each in alone])
    np.testing.assert_allclose(found["mean_test_score"], wanted, atol=1e-9)
    np.testing.assert_allclose(found["width"], np.repeat(factors, 2) * mean_width())
    assert found["lam"].tolist() == 3 * LAMS
    best = alone[int(np.argmax([each.best_score_ for each in alone]))]
    assert both.best_score_ == best.best_score_
    assert both.best_lam_ == best.best_lam_
    assert both.best_width_ == both.best_estimator_.width == pytest.approx(best.best_width_)
    np.testing.assert_allclose(both.score_samples(X), best.score_samples(X), atol=1e-9)
    assert both.offset_ == pytest.approx(best.offset_)
    np.testing.assert_allclose(both.predict_proba(X), best.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_part_chooses_and_all_rows_are_learned_from(container):
    rows = container(X)
    model = RankRCCV(LAMS, widths=[0.5, 1.0], search_rows=200, cv=3, random_state=0).fit(rows, Y)
    ratio = model.best_width_ / mean_width()
    assert ratio == pytest.approx(0.5) or ratio == pytest.approx(1.0)
    whole = RankRC(lam=model.best_lam_, width=model.best_width_).fit(rows, Y)
    np.testing.assert_allclose(model.score_samples(rows), whole.score_samples(rows), atol=1e-9)
    # Those drawn stand for all: probabilities are those of all rows.
    assert model.predict_proba(rows)[:, 1].mean() == pytest.approx(Y.mean(), rel=0.5)


def test_as_many_search_rows_as_there_are_change_nothing():
    part = RankRCCV(LAMS, search_rows=len(X), cv=3, tol=1e-6).fit(X, Y)
    whole = RankRCCV(LAMS, cv=3).fit(X, Y)
    np.testing.assert_array_equal(
        part.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(part.score_samples(X), whole.score_samples(X))
    assert part.offset_ == whole.offset_


@pytest.mark.parametrize(("most", "rare", "rest"), [(200, 60, 140), (100, 50, 50), (580, 60, 520)])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_drawn_weighs_what_all_did(most, rare, rest, weighted):
    weight = np.arange(1.0, len(X) + 1.0) if weighted else None
    target = TwoClasses(read_labels(Y, weight, None, len(X)))
    rows = RankingData(None, as_source(X), target, None, 1.0)  # type: ignore[arg-type]
    part = rows.drawn(most, 0)
    labels, all_labels = part.target.labels, target.labels
    assert (len(labels.rare), len(labels.majority)) == (rare, rest)
    assert labels.rare_weight.sum() == pytest.approx(all_labels.rare_weight.sum())
    whole = len(all_labels.majority) if not weighted else all_labels.majority_weight.sum()
    assert labels.majority_weight.sum() == pytest.approx(whole)
    held = part.source.take(np.arange(rare))
    assert {tuple(row) for row in held} <= {tuple(row) for row in X[Y == 1]}
    drawn = part.source.take(np.arange(rare, rare + rest))
    assert {tuple(row) for row in drawn} <= {tuple(row) for row in X[Y == 0]}
    if weighted:  # each in proportion to its own
        place = {tuple(row): k for k, row in enumerate(X)}
        own = weight[[place[tuple(row)] for row in drawn]]
        assert np.ptp(labels.majority_weight / own) < 1e-9


def test_folds_of_all_rows_are_those_of_the_part():
    """Rows of one fold stay in it: those drawn of each are what its scores are of."""
    seen = []

    def count(y, scores, weight):
        seen.append((int(y.sum()), len(y)))
        return 0.5

    rare, rest = np.flatnonzero(Y == 1), np.flatnonzero(Y == 0)
    tested = [np.r_[rare[:10], rest[:300]], np.r_[rare[10:], rest[300:]]]
    folds = [(np.setdiff1d(np.arange(len(X)), rows), rows) for rows in tested]
    RankRCCV([1.0], search_rows=400, cv=folds, scoring=count, refit=False).fit(X, Y)
    (few, first), (many, second) = seen
    assert (few, many) == (10, 50)
    assert first + second == 400


def test_levels_choose_on_a_part():
    levels = np.where(Y == 1, 1 + (X[:, 0] > np.median(X[Y == 1, 0])), 0)
    model = OrdinalRankRCCV(LAMS, widths=[0.5, 1.0], search_rows=150, cv=2).fit(X, levels)
    assert model.cv_results_["width"].shape == (4,)
    assert set(model.predict(X)) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": []}, "widths is empty"),
        ({"widths": [1.0, 0.0]}, "widths=0.0 must be numbers above 0"),
        ({"search_rows": 10}, "search_rows=10 must be a whole number of at least 100"),
        ({"search_rows": 200, "landmarks": np.arange(5)}, "landmarks holds row numbers"),
        ({"widths": [1.0], "max_landmarks": 3, "penalty": "l1"}, "max_landmarks=3 counts"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        RankRCCV(LAMS, **settings).fit(X, Y)


def test_tol_is_looser_on_many_rows(monkeypatch):
    exact = RankRC(lam=2.0**-8).fit(X, Y)
    assert exact.optimality_ <= 1e-6
    monkeypatch.setattr(fitting, "_MANY_ROWS", len(X) - 61)
    many = RankRC(lam=2.0**-8).fit(X, Y)
    assert 1e-6 < many.optimality_ <= 1e-3
    assert many.history_[-1].passes < exact.history_[-1].passes
    assert RankRC(lam=2.0**-8, tol=1e-6).fit(X, Y).optimality_ <= 1e-6
    assert RankRC(lam=2.0**-8, penalty="l1").fit(X, Y).optimality_ <= 1e-6
    with pytest.raises(ValueError, match="tol='loose' must be 'auto' or a number above 0"):
        RankRC(tol="loose").fit(X, Y)
