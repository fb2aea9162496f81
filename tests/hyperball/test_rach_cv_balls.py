"""RACHCV with several categories, and with several balls of one category."""

import numpy as np
import pytest

from hyperball.rach_cases import (
    CLEARED,
    LOOSE,
    PRIORS,
    RARE,
    UNKNOWN,
    ball_of,
    chosen,
    depths_by_hand,
    folds_by_hand,
    hidden_cluster,
    several_clusters,
)
from rareclass.hyperball.choice import choose_radius, f1_interval


def test_several_categories_share_prices_and_have_each_a_radius():
    X, y, truth = several_clusters([[4.0, 0.0], [0.7, 0.7]], n_cloud=120, n_rare=7)
    model = chosen(X, y, C1s=[0.3, 3.0], margins=[0.2], filter=False, cv=3)
    assert set(model.best_radius_slack_) == {1, 2}
    share = {k: (y == k).sum() / (y >= 0).sum() for k in (1, 2)}
    f1s, counts = [], []
    for label in (1, 2):
        prices = {"C1": model.best_C1_, "C2": 0.0, "margin": model.best_margin_}
        border = {"radius": "share", "rare_share": share[label]}
        folds = folds_by_hand(y, 3, label)
        depths, is_rare = depths_by_hand(X, y, folds, label, **prices, **border)
        by_hand = choose_radius(depths, is_rare, np.ones(len(depths)), prior=PRIORS["share"])
        f1s.append(by_hand.f1)
        counts.append(by_hand.counts)
    assert model.best_score_ == pytest.approx(np.mean(f1s))
    best = model.best_index_
    totals = [model.cv_results_[name][best] for name in ("tp", "fp", "fn")]
    assert totals == np.sum(counts, axis=0).tolist()
    intervals = sorted(f1_interval(c) for c in counts)
    assert model.score_interval_ == intervals[0] < intervals[1]
    assert model.score(X, truth) > 0.5
    assert model.best_estimator_.radius_slack == model.best_radius_slack_


def test_two_groups_of_one_category():
    X, y, truth = several_clusters([[6.0, 6.0], [-6.0, -6.0]], n_cloud=120)
    y, truth = np.where(y > 0, RARE, y), (truth > 0).astype(int)
    model = chosen(X, y, n_balls="auto", cv=3)
    assert len(model.balls_) == 2
    assert model.score(X, truth) > 0.9
    assert model.best_score_ > 0.9


@pytest.mark.sampled(1)
@pytest.mark.parametrize("radius", ["solved", "share"])
@pytest.mark.parametrize("n_groups", [1, 2])
def test_there_are_several_balls_where_one_is_not_enough(radius, n_groups):
    X, y, truth = several_clusters([[5.0, 5.0], [-5.0, -5.0]][:n_groups], n_cloud=120)
    y, truth = np.where(y > 0, RARE, y), (truth > 0).astype(int)
    model = chosen(X, y, n_balls=None, C1s=[0.3], cv=4, radius=radius)
    tried = [1, 2, 3]
    assert model.cv_results_["n_balls"].tolist() == tried
    assert model.best_n_balls_ == len(model.balls_)
    if radius == "solved" or n_groups == 1:
        assert model.best_n_balls_ == n_groups
    assert model.best_n_balls_ >= n_groups
    assert model.score(X, truth) > 0.85
    assert ("pu_score" in model.cv_results_) == (radius == "solved")
    asked = chosen(X, y, n_balls=[3, n_groups], C1s=[0.3], cv=4, radius=radius)
    assert asked.cv_results_["f1"].tolist() == [
        model.cv_results_["f1"][tried.index(n)] for n in (3, n_groups)
    ]


def test_with_a_kernel_and_a_border_by_share_one_ball_is_tried():
    X, y, _ = hidden_cluster(n=80)
    model = chosen(X, y, n_balls=None, kernel="gaussian", C1s=[3.0], margins=[0.1], cv=2)
    assert set(model.cv_results_["n_balls"]) == {1}


def test_rows_count_in_the_ball_in_which_they_lie_deepest():
    X, y, _ = several_clusters([[2.0, 0.0], [-2.0, 0.0]], 150, n_rare=8, n_cleared=80, scale=0.5)
    group, y = y, np.where(y > 0, RARE, y)
    options = {"C1": 1e-3, "C2": 0.0}
    grid = {"C1s": [1e-3], "C2s": [0.0], "margins": [0.0], "cv": 3}
    border = {"filter": False, "radius": "solved", "learn_radius": False}
    model = chosen(X, y, n_balls=2, **grid, **border)
    folds = folds_by_hand(y, 3)
    numbers = np.concatenate(folds)
    depths = np.full((2, len(numbers)), -np.inf)
    for k, label in enumerate((1, 2)):
        for fold in folds:
            learned = np.setdiff1d(np.flatnonzero((y == CLEARED) | (group == label)), fold)
            ball = ball_of(X[learned], y[learned], **options, **LOOSE, pos_label=RARE)
            here = np.isin(numbers, fold) & (group[numbers] != 3 - label)
            depths[k, here] = ball.score_samples(X[numbers[here]])
    cleared = y[numbers] == CLEARED
    assert (depths[0] >= 0)[cleared].any()
    assert (depths[1] >= 0)[cleared].any()
    called = depths.max(axis=0) >= 0
    assert model.cv_results_["fp"][0] == (called & cleared).sum()
    assert model.cv_results_["tp"][0] == (called & ~cleared).sum()


def test_a_group_whose_only_case_is_held_out_has_no_ball():
    X, y, _ = several_clusters([[6.0, 6.0], [-6.0, -6.0]], n_cloud=120)
    lone = np.flatnonzero(y == 2)[0]
    y = np.where(y == 2, UNKNOWN, y)
    y[lone] = RARE
    model = chosen(X, y, n_balls=2, cv=3, C1s=[3.0], margins=[0.1])
    assert [(ball.kinds > 0).sum() for ball in model.balls_] in ([5, 1], [1, 5])
    assert np.isfinite(model.best_radius_slack_)
    assert model.cv_results_["fn"][0] >= 1  # nobody could have found it
