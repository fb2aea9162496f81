"""Width and lam chosen together, and on a part of the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from made_tables import rare_mixture
from rareclass import OrdinalRankRCCV, RankRC, RankRCCV
from rareclass.labels.two_classes import read_labels
from rareclass.ranking import fitting, search
from rareclass.ranking.losses import LossChoice
from rareclass.ranking.ranking_data import RankingData
from rareclass.ranking.solvers.path import solve_paths
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


def test_a_first_round_leaves_the_better_half_of_the_widths_and_the_lams_near_their_best(
    monkeypatch,
):
    solved = []

    def count(problems, lams, *rest):
        problems = list(problems)
        solved.append((len(problems), len(lams)))
        return solve_paths(problems, lams, *rest)

    monkeypatch.setattr(search, "solve_paths", count)
    lams, factors = [2.0**-k for k in range(0, 18, 2)], [0.2, 0.5, 1.0, 2.0, 4.0]
    model = RankRCCV(lams, widths=factors, search_rows=300, cv=4, random_state=0).fit(X, Y)
    # Every second of nine lams in two folds; then three at most of two widths in all four.
    assert solved[:5] == 5 * [(2, 5)]
    assert len(solved) == 7
    assert all(folds == 4 and n_lams <= 3 for folds, n_lams in solved[5:])
    assert model.n_splits_ == 4
    widths = np.unique(model.cv_results_["width"] / mean_width())
    assert len(widths) == 2
    assert {round(width, 6) for width in widths} <= set(factors)


@given(st.data())
def test_the_best_of_the_first_round_go_on_with_the_lams_beside_theirs(data):
    n_widths, n_losses = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    within = data.draw(st.sampled_from([None, 0.0, 0.3, 2.0]))
    grid = [2.0**-k for k in range(data.draw(st.integers(1, 9)))]
    tried, losses = grid[::2], [LossChoice(f"loss {k}", None) for k in range(n_losses)]
    shape = (n_widths, 2, 2, n_losses, len(tried))  # measures and folds in the middle
    scores = np.random.default_rng(data.draw(st.integers(0, 99))).random(shape)
    order = data.draw(st.permutations(grid))
    first = [
        search._Tried(
            search._Entry(float(width), losses), order, tried, [], of_width, 1e-2, None, [], None
        )
        for width, of_width in enumerate(scores.reshape(n_widths, 2, 2, -1))
    ]
    kept = search._better_half(first, within)
    means = scores.mean(axis=2)
    half = min(n_widths * n_losses, max(2, n_widths * n_losses // 2))
    wanted: dict[int, dict[int, int]] = {}
    for _ in range(
        half
    ):  # the best of those that are left, by its AUC or what decides among equals
        top = np.nanmax(means[:, 0])
        near = means[:, 0] >= top - (within or 0.0)
        by = means[:, 0] if within is None else means[:, 1]
        place = np.unravel_index(np.nanargmax(np.where(near, by, -1.0)), by.shape)
        wanted.setdefault(int(place[0]), {})[int(place[1])] = 2 * int(place[2])
        means[place[0], :, place[1]] = np.nan
    assert {int(e.width): e.losses for e in kept} == {
        width: [losses[k] for k in sorted(of_loss)] for width, of_loss in wanted.items()
    }
    for entry in kept:
        near = {k + step for k in wanted[int(entry.width)].values() for step in (-1, 0, 1)}
        assert (entry.lams, entry.lam_stride) == ([v for k, v in enumerate(grid) if k in near], 1)


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
