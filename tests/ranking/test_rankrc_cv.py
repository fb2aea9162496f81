"""RankRCCV against its folds fitted one by one; widths, and lams chosen on a part of the rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from made_tables import rare_mixture
from rareclass import OrdinalRankRCCV, RankRC, RankRCCV
from rareclass.labels.two_classes import read_labels
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.ranking_data import RankingData
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import as_source

X, Y = rare_mixture(300, 30)
LAMS = [1.0, 2.0**-6, 2.0**-12]


def like_majority(scores, test, used, weight):
    """Scores moved and stretched so that the majority's mean and deviation are those of `used`."""

    def moments(values, labels, weight):
        rest = labels == 0
        mean = np.average(values[rest], weights=weight[rest])
        return mean, np.sqrt(np.average((values[rest] - mean) ** 2, weights=weight[rest]))

    mean, deviation = moments(scores, Y[test], weight[test])
    new_mean, new_deviation = moments(used, Y, weight)
    return (scores - mean) / deviation * new_deviation + new_mean


@pytest.mark.sampled(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_threshold_is_the_best_on_held_out_scores(weighted):
    # Weights under which another threshold is the best.
    uneven = np.where(X[:, 1] > 0, 40.0, 1.0)
    splits = list(StratifiedKFold(5, shuffle=True, random_state=1).split(X, Y))
    weight = uneven if weighted else np.ones(len(X))
    model = RankRCCV([0.01], cv=splits, tol=1e-9).fit(X, Y, weight)
    width, scores = model.best_estimator_.width_, np.empty(len(X))
    used = model.score_samples(X)
    for train, test in splits:
        alone = RankRC(lam=0.01, width=width, tol=1e-9).fit(X[train], Y[train], weight[train])
        scores[test] = like_majority(alone.score_samples(X[test]), test, used, weight)

    def accuracy(threshold, weight):
        return balanced_accuracy_score(Y, scores > threshold, sample_weight=weight)

    best = max(accuracy(t, weight) for t in scores)
    assert accuracy(model.offset_, weight) == pytest.approx(best, abs=1e-6)
    assert model.offset_ == model.best_estimator_.offset_ != alone.offset_
    if weighted:
        without = max(scores, key=lambda t: accuracy(t, None))
        assert accuracy(without, weight) < best - 0.01


@pytest.mark.parametrize("lams", [[2.0**-6, 1.0, 2.0**-12], [1.0, 2.0**-6], [2.0**-12, 1.0]])
def test_among_equal_means_the_largest_lam_is_taken(lams):
    apart = X + 50.0 * Y[:, None]  # every model ranks every rare row first
    model = RankRCCV(lams, cv=3).fit(apart, Y)
    assert (model.cv_results_["mean_test_score"] == 1.0).all()
    assert model.best_lam_ == model.best_estimator_.lam == 1.0
    assert lams[model.best_index_] == 1.0


def test_of_areas_as_good_as_equal_the_best_average_precision_decides():
    lams = list(2.0 ** np.arange(0, -13, -2))
    by_area = RankRCCV(lams, cv=3, equal_within=0, random_state=0).fit(X, Y)
    by_precision = RankRCCV(lams, cv=3, scoring="average_precision", random_state=0).fit(X, Y)
    area = by_area.cv_results_["mean_test_score"]
    precision = by_precision.cv_results_["mean_test_score"]
    assert by_area.best_index_ == area.argmax() != precision.argmax()
    assert "mean_test_average_precision" not in by_area.cv_results_
    for within in (0.005, 0.02, 1.0):
        model = RankRCCV(lams, cv=3, equal_within=within, random_state=0).fit(X, Y)
        near = np.flatnonzero(area >= area.max() - within)
        assert model.best_index_ == near[precision[near].argmax()]
        assert model.best_score_ == area[model.best_index_]
        found = model.cv_results_["mean_test_average_precision"]
        np.testing.assert_allclose(found, precision, atol=1e-12)
    assert model.best_lam_ == by_precision.best_lam_
    with pytest.raises(ValueError, match="equal_within=-1 must be a number of at least 0"):
        RankRCCV(lams, equal_within=-1).fit(X, Y)


def test_among_equals_the_widest_kernel_is_taken():
    apart = X + 50.0 * Y[:, None]
    model = RankRCCV([0.01, 1.0], widths=[1.0, 3.0, 2.0], cv=3).fit(apart, Y)
    assert (model.cv_results_["mean_test_score"] == 1.0).all()
    assert (model.best_lam_, model.best_index_) == (1.0, 3)


def test_copies_of_a_held_out_row_in_the_training_part_stay_landmarks():
    data, y = np.vstack([X, X[Y == 1][:10]]), np.r_[Y, np.ones(10, dtype=int)]
    splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(data, y))
    model = RankRCCV([0.01], cv=splits, tol=1e-9).fit(data, y)
    for k, (train, test) in enumerate(splits):
        width = model.best_estimator_.width_
        alone = RankRC(lam=0.01, width=width, tol=1e-9).fit(data[train], y[train])
        wanted = roc_auc_score(y[test], alone.score_samples(data[test]))
        assert model.cv_results_[f"split{k}_test_score"][0] == pytest.approx(wanted, abs=2e-4)


def test_a_fold_without_landmarks_and_folds_that_stop_short_are_told():
    with pytest.raises(ValueError, match="more landmarks"):
        RankRCCV(LAMS, landmarks=1, cv=3).fit(X, Y)
    with pytest.warns(ConvergenceWarning) as caught:
        model = RankRCCV([1.0, 1e-6], cv=3, max_iter=2).fit(X, Y)
    assert any("solutions of the folds" in str(warning.message) for warning in caught)
    assert model.cv_results_["n_stopped_short"][1] == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss_params": {"power": 2}}, "no parameter .power.; it has eps"),
        ({"loss": SmoothedHinge(), "loss_params": {"eps": 0.1}}, "given by name"),
        ({"penalty": "l0"}, "penalty='l0' is not one of"),
        ({"feature_scaling": "unit"}, "feature_scaling='unit' is not one of"),
        ({"cv": None}, "cv=None"),
        ({"search_rows": 10}, "search_rows=10 must be a whole number of at least 100"),
        ({"search_rows": 200, "landmarks": np.arange(5)}, "landmarks holds row numbers"),
        ({"widths": [1.0], "max_landmarks": 3, "penalty": "l1"}, "max_landmarks=3 counts"),
    ],
)
def test_choices_out_of_place_are_refused(parameters, message):
    X, y = rare_mixture(60, 10)
    with pytest.raises(ValueError, match=message):
        RankRCCV(LAMS, **{"cv": 2, **parameters}).fit(X, y)


WIDE, WIDE_Y = rare_mixture(600, 60)
TWO_LAMS = [1.0, 2.0**-8]


def mean_width(rows=WIDE):
    return float(np.sqrt(2.0 * rows.var(axis=0).sum()))


def test_widths_are_searches_of_their_own():
    """One search over widths finds what a search for each of them does."""
    factors = [0.3, 1.0, 3.0]
    both = RankRCCV(TWO_LAMS, widths=factors, cv=3, random_state=0).fit(WIDE, WIDE_Y)
    alone = [
        RankRCCV(TWO_LAMS, width=factor * mean_width(), cv=3, random_state=0).fit(WIDE, WIDE_Y)
        for factor in factors
    ]
    found = both.cv_results_
    wanted = np.concatenate([each.cv_results_["mean_test_score"] for each in alone])
    np.testing.assert_allclose(found["mean_test_score"], wanted, atol=1e-9)
    np.testing.assert_allclose(found["width"], np.repeat(factors, 2) * mean_width())
    assert found["lam"].tolist() == 3 * TWO_LAMS
    best = alone[int(np.argmax([each.best_score_ for each in alone]))]
    assert both.best_score_ == best.best_score_
    assert both.best_lam_ == best.best_lam_
    assert both.best_width_ == both.best_estimator_.width == pytest.approx(best.best_width_)
    np.testing.assert_allclose(both.score_samples(WIDE), best.score_samples(WIDE), atol=1e-9)
    assert both.offset_ == pytest.approx(best.offset_)
    np.testing.assert_allclose(both.predict_proba(WIDE), best.predict_proba(WIDE), atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_part_chooses_and_all_rows_are_learned_from(container):
    rows = container(WIDE)
    model = RankRCCV(TWO_LAMS, widths=[0.5, 1.0], search_rows=200, cv=3, random_state=0).fit(
        rows, WIDE_Y
    )
    ratio = model.best_width_ / mean_width()
    assert ratio == pytest.approx(0.5) or ratio == pytest.approx(1.0)
    whole = RankRC(lam=model.best_lam_, width=model.best_width_).fit(rows, WIDE_Y)
    np.testing.assert_allclose(model.score_samples(rows), whole.score_samples(rows), atol=1e-9)
    # Those drawn stand for all: probabilities are those of all rows.
    assert model.predict_proba(rows)[:, 1].mean() == pytest.approx(WIDE_Y.mean(), rel=0.5)


def test_as_many_search_rows_as_there_are_change_nothing():
    part = RankRCCV(TWO_LAMS, search_rows=len(WIDE), cv=3, tol=1e-6).fit(WIDE, WIDE_Y)
    whole = RankRCCV(TWO_LAMS, cv=3).fit(WIDE, WIDE_Y)
    np.testing.assert_array_equal(
        part.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(part.score_samples(WIDE), whole.score_samples(WIDE))
    assert part.offset_ == whole.offset_


@pytest.mark.parametrize(("most", "rare", "rest"), [(200, 60, 140), (100, 50, 50), (580, 60, 520)])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_drawn_weighs_what_all_did(most, rare, rest, weighted):
    weight = np.arange(1.0, len(WIDE) + 1.0) if weighted else None
    target = TwoClasses(read_labels(WIDE_Y, weight, None, len(WIDE)))
    rows = RankingData(None, as_source(WIDE), target, None, 1.0)  # type: ignore[arg-type]
    part = rows.drawn(most, 0)
    labels, all_labels = part.target.labels, target.labels
    assert (len(labels.rare), len(labels.majority)) == (rare, rest)
    assert labels.rare_weight.sum() == pytest.approx(all_labels.rare_weight.sum())
    whole = len(all_labels.majority) if not weighted else all_labels.majority_weight.sum()
    assert labels.majority_weight.sum() == pytest.approx(whole)
    held = part.source.take(np.arange(rare))
    assert {tuple(row) for row in held} <= {tuple(row) for row in WIDE[WIDE_Y == 1]}
    drawn = part.source.take(np.arange(rare, rare + rest))
    assert {tuple(row) for row in drawn} <= {tuple(row) for row in WIDE[WIDE_Y == 0]}
    if weighted:  # each in proportion to its own
        place = {tuple(row): k for k, row in enumerate(WIDE)}
        own = weight[[place[tuple(row)] for row in drawn]]
        assert np.ptp(labels.majority_weight / own) < 1e-9


def test_folds_of_all_rows_are_those_of_the_part():
    """Rows of one fold stay in it: those drawn of each are what its scores are of."""
    seen = []

    def count(y, scores, weight):
        seen.append((int(y.sum()), len(y)))
        return 0.5

    rare, rest = np.flatnonzero(WIDE_Y == 1), np.flatnonzero(WIDE_Y == 0)
    tested = [np.r_[rare[:10], rest[:300]], np.r_[rare[10:], rest[300:]]]
    folds = [(np.setdiff1d(np.arange(len(WIDE)), rows), rows) for rows in tested]
    RankRCCV([1.0], search_rows=400, cv=folds, scoring=count, refit=False).fit(WIDE, WIDE_Y)
    (few, first), (many, second) = seen
    assert (few, many) == (10, 50)
    assert first + second == 400


def test_levels_choose_on_a_part():
    levels = np.where(WIDE_Y == 1, 1 + (WIDE[:, 0] > np.median(WIDE[WIDE_Y == 1, 0])), 0)
    model = OrdinalRankRCCV(TWO_LAMS, widths=[0.5, 1.0], search_rows=150, cv=2).fit(WIDE, levels)
    assert model.cv_results_["width"].shape == (4,)
    assert set(model.predict(WIDE)) <= {0, 1, 2}
