"""RACHCV: its figures against folds worked by hand, its folds, several balls, what it refuses."""

import re
import warnings

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, StratifiedKFold

from hyperball.rach_cases import (
    CLEARED,
    LOOSE,
    PRIORS,
    RARE,
    UNKNOWN,
    ball_of,
    chosen,
    depths_by_hand,
    f1_by_hand,
    folds_by_hand,
    hidden_cluster,
    several_clusters,
)
from rareclass.hyperball import RACHCV
from rareclass.hyperball.choice import ConfusionCounts, choose_radius, f1_interval

CANDIDATES = [
    {"C1": 1.0, "C2": 0.02, "margin": 0.0},
    {"C1": 0.3, "C2": 0.0, "margin": 0.5},
    {"C1": 5.0, "C2": 0.01, "margin": 0.1, "kernel": "gaussian", "width": 2.0},
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("candidate", CANDIDATES, ids=str)
@pytest.mark.parametrize("radius", ["solved", "share"])
@pytest.mark.parametrize("learn_radius", [False, True])
def test_the_score_is_that_of_folds_worked_by_hand(candidate, radius, learn_radius):
    X, y, _ = hidden_cluster(n=90, n_cluster=25, n_rare=10, n_cleared=20, seed=1)
    grid = {"C1s": [candidate["C1"]], "C2s": [candidate["C2"]], "margins": [candidate["margin"]]}
    kernel = candidate.get("kernel")
    if kernel:
        grid["widths"] = [candidate["width"]]
    model = chosen(
        X, y, **grid, kernel=kernel, cv=4, radius=radius, learn_radius=learn_radius, filter=False
    )
    share = (y == RARE).sum() / (y >= 0).sum()
    depths, is_rare = depths_by_hand(
        X, y, folds_by_hand(y, 4), **candidate, radius=radius, rare_share=share
    )
    by_hand = choose_radius(depths, is_rare, np.ones(len(depths)), learn_radius, PRIORS[radius])
    assert model.best_score_ == pytest.approx(by_hand.f1)
    called = depths >= -by_hand.slack
    assert model.best_score_ == pytest.approx(f1_by_hand(is_rare, called))
    assert model.n_splits_ == 4
    assert (model.best_C1_, model.best_C2_) == (candidate["C1"], candidate["C2"])
    assert (model.best_margin_, model.best_width_) == (candidate["margin"], candidate.get("width"))
    counts = ConfusionCounts(
        (called & is_rare).sum(), (called & ~is_rare).sum(), (~called & is_rare).sum()
    )
    found = [model.cv_results_[name].tolist() for name in ("tp", "fp", "fn")]
    assert found == [[k] for k in counts]
    assert model.score_interval_ == f1_interval(counts)
    tp, fp, fn = counts
    assert [int(word) for word in re.findall(r"\b\d+\b", model.uncertainty_)[:3]] == [
        tp + fn,
        tp,
        fp,
    ]
    low, high = model.score_interval_
    assert f"{low:.2f} to {high:.2f}" in model.uncertainty_
    assert model.best_radius_slack_ == pytest.approx(by_hand.slack, abs=0.02 * np.ptp(depths))
    if not learn_radius:
        assert model.best_radius_slack_ == 0.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kernel", ["gaussian", None])
def test_the_best_model_is_rach_with_the_best_parameters(kernel):
    X, y, truth = hidden_cluster(n=120)
    model = chosen(X, y, kernel=kernel, tol=1e-9)
    again = ball_of(
        X, y, C1=model.best_C1_, C2=model.best_C2_, kernel=kernel, margin=model.best_margin_,
        width=model.best_width_ or "mean", radius="share", tol=1e-9,
        radius_slack=model.best_radius_slack_,
    )  # fmt: skip
    np.testing.assert_array_equal(model.transduction_, again.transduction_)
    np.testing.assert_array_equal(model.score_samples(X), again.score_samples(X))
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))
    assert model.best_estimator_.get_params() == again.get_params()
    assert model.score(X, truth) > 0.7
    assert model.width_ == again.width_
    assert str(model.describe()) == str(again.describe())
    results = model.cv_results_
    best = model.best_index_
    assert results["f1"][best] == model.best_score_
    half_a_row = 0.5 / (y == RARE).sum()
    assert best == np.flatnonzero(results["f1"] >= results["f1"].max() - half_a_row)[0]
    expected = [1 + (results["f1"] > f1).sum() for f1 in results["f1"]]
    assert results["rank"].tolist() == expected
    assert len(results["f1"]) == (27 if kernel else 3)
    for name in ("C1", "C2", "margin"):
        assert results[name][best] == getattr(model, f"best_{name}_")
    tp, fp, fn = (results[name] for name in ("tp", "fp", "fn"))
    np.testing.assert_allclose(results["f1"], 2 * tp / (2 * tp + fp + fn))
    assert (tp + fn == (y == RARE).sum()).all()


@pytest.mark.sampled(0)
def test_where_the_share_is_the_border_half_a_held_out_row_is_chance():
    """Six cases: an F1 within 1/12 of the best is as good, and the first such candidate is kept."""
    X, y, _ = hidden_cluster(n=150, n_rare=6, n_cleared=40, seed=9)
    grid = {"C1s": [30.0, 0.3], "margins": [0.2], "kernel": "gaussian", "refit": False}
    model = chosen(X, y, **grid)
    f1 = model.cv_results_["f1"]
    assert (model.best_index_, model.best_score_) == (0, f1[0])
    assert 1.0 - 1 / 12 < f1[0] < f1[2] == 1.0
    exact = chosen(X, y, **grid, radius="solved")
    assert exact.best_score_ == exact.cv_results_["f1"].max()


def test_the_grid_is_wide_where_the_share_is_the_border():
    X, y, _ = hidden_cluster(n=80)
    for radius, widths, C1 in (
        ("share", [8.0, 2.0, 0.5], 30.0),
        ("solved", [1.0, 2.0, 0.5, 4.0], 3.0),
    ):
        model = chosen(X, y, kernel="gaussian", cv=2, radius=radius, margins=[0.2])
        tried, mean = model.cv_results_, model.best_width_ / widths[model.best_index_ // 3]
        np.testing.assert_allclose(tried["width"][::3] / mean, widths)
        assert tried["C1"][0] == C1
        assert sorted(tried["C1"]) == sorted([0.3, 3.0, 30.0] * len(widths))


def test_a_rule_for_each_label_is_kept():
    X, y, _ = hidden_cluster(n=80)
    by_label, solved = (chosen(X, y, cv=2, radius=radius) for radius in ({RARE: "share"}, "solved"))
    assert by_label.best_estimator_.radius == {RARE: "share"}
    np.testing.assert_array_equal(by_label.cv_results_["f1"], solved.cv_results_["f1"])


def test_every_combination_is_tried_once():
    X, y, _ = hidden_cluster(n=80)
    grid = {"C1s": [0.5, 2.0], "C2s": [0.0, 0.01], "margins": [0.1, 0.3], "widths": [1.0, 3.0]}
    results = chosen(X, y, **grid, kernel="gaussian", cv=2).cv_results_
    tried = list(zip(*(results[k] for k in ("C1", "C2", "margin", "width")), strict=True))
    assert len(tried) == len(set(tried)) == 16
    assert set(results["width"]) == {1.0, 3.0}
    # A width without a kernel is nothing.
    assert np.isnan(chosen(X, y, **{**grid, "C1s": [1.0]}, cv=2).cv_results_["width"]).all()


@pytest.mark.sampled(0)
def test_margins_are_shares_of_what_the_kernel_measures():
    X, y, _ = hidden_cluster(n=100)
    plain, scaled = (chosen(k * X, y, kernel="gaussian", cv=2) for k in (1.0, 1000.0))
    assert set(plain.cv_results_["margin"]) == {0.5, 0.2, 0.05}
    assert set((plain.cv_results_["width"] / plain.best_estimator_.width_).round(9)) <= {
        2.0**k for k in range(-4, 5)
    }
    np.testing.assert_allclose(scaled.cv_results_["width"], 1000 * plain.cv_results_["width"])
    np.testing.assert_array_equal(scaled.cv_results_["f1"], plain.cv_results_["f1"])
    np.testing.assert_array_equal(scaled.transduction_, plain.transduction_)
    assert set(chosen(X, y, cv=2).cv_results_["margin"]) == {0.0}
    polynomial = chosen(X, y, kernel="polynomial", C1s=[1.0], cv=2, filter=False)
    width = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2).mean())
    unit = ((1.0 + (X**2).sum(axis=1) / width**2) ** 3).mean()
    assert set((polynomial.cv_results_["margin"] / unit).round(9)) == {0.5, 0.2, 0.05}


def test_with_fewer_cases_than_folds_each_is_held_out_alone():
    X, y, _ = hidden_cluster(n_rare=3)
    model = chosen(X, y, C1s=[3.0], margins=[0.5])
    assert model.n_splits_ == 3
    assert model.cv_results_["tp"][0] + model.cv_results_["fn"][0] == 3


def test_fewer_cleared_rows_than_folds():
    X, y, _ = hidden_cluster(n_cleared=2)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the ball of 1 is uselessly large")
        model = RACHCV(pos_label=RARE).fit(X, y)  # other warnings are errors
    assert model.n_splits_ == 5


def test_a_single_case_cannot_be_held_out():
    X, y, truth = hidden_cluster(n_rare=1)
    with pytest.warns(UserWarning, match=r"^1 has a single labelled row, which cannot be held out"):
        model = RACHCV(C2s=[0.1, 0.2], radius="solved").fit(X, y)
    assert np.isnan(model.best_score_)
    assert model.score_interval_ == (0.0, 1.0)
    assert model.uncertainty_ == "F1 is not known: no labelled row could be held out."
    assert (model.n_splits_, model.best_index_, model.best_radius_slack_) == (0, 0, 0.0)
    assert model.best_C1_ == model.cv_results_["C1"][0]
    assert (model.predict(X[y == RARE]) == RARE).all()
    assert not np.isnan(model.score(X, truth))


def test_a_category_with_a_single_case_leaves_the_choice_to_the_others():
    X, y, _ = several_clusters([[4.0, 0.0], [0.0, 4.0]])
    y[np.flatnonzero(y == 1)[1:]] = UNKNOWN
    with pytest.warns(UserWarning, match="1 has a single labelled row"):
        model = RACHCV(cv=3).fit(X, y)
    assert model.n_splits_ == 3
    assert model.best_score_ > 0.0
    assert set(model.predict(X)) <= {0, 1, 2}


def test_a_splitter_and_a_list_of_folds_and_a_number_are_the_same_folds():
    X, y, _ = several_clusters([[1.0, 1.0]], n_cloud=80, scale=0.5, n_rare=9)
    grid = {"C1s": [0.01, 10.0], "C2s": [0.001, 0.1]}
    folds = folds_by_hand(y, 3, seed=4)
    rest = [np.setdiff1d(np.arange(len(y)), test) for test in folds]
    ways = [
        {"cv": 3, "random_state": 4},
        {"cv": StratifiedKFold(3, shuffle=True, random_state=4)},
        {"cv": list(zip(rest, folds, strict=True))},
        {"cv": zip(rest, folds, strict=True)},
    ]
    f1s = [chosen(X, y, **grid, **way) for way in ways]
    for other in f1s[1:]:
        assert other.n_splits_ == 3
        np.testing.assert_array_equal(other.cv_results_["f1"], f1s[0].cv_results_["f1"])
    assert len(set(f1s[0].cv_results_["f1"])) > 1
    different = chosen(X, y, **grid, cv=3, random_state=5)
    assert not np.array_equal(folds_by_hand(y, 3, seed=5)[0], folds[0])
    assert different.cv_results_["tp"].shape == (4,)


def test_of_a_list_only_rows_with_a_label_are_held_out():
    X, y, _ = hidden_cluster(n=100)
    labelled, unlabelled = np.flatnonzero(y != UNKNOWN), np.flatnonzero(y == UNKNOWN)
    half = labelled[::2]
    rest = np.setdiff1d(labelled, half)
    grid = {"C1s": [1.0], "margins": [0.1]}
    clean = chosen(X, y, **grid, cv=[(rest, half), (half, rest)])
    mixed = [(rest, np.append(half, unlabelled[:20])), (half, np.append(unlabelled, rest))]
    more = chosen(X, y, **grid, cv=mixed)
    np.testing.assert_array_equal(more.cv_results_["f1"], clean.cv_results_["f1"])
    np.testing.assert_array_equal(more.cv_results_["fp"], clean.cv_results_["fp"])


@pytest.mark.parametrize("cv", [LeaveOneOut(), ShuffleSplit(3, test_size=0.4, random_state=0)])
def test_other_splitters(cv):
    X, y, _ = hidden_cluster(n=80, n_rare=5, n_cleared=10)
    model = chosen(X, y, C1s=[3.0], margins=[0.3], cv=cv)
    n_held_out = sum(model.cv_results_[name][0] for name in ("tp", "fn"))
    assert model.n_splits_ == (15 if isinstance(cv, LeaveOneOut) else 3)
    if isinstance(cv, LeaveOneOut):
        assert n_held_out == 5


def test_folds_that_hold_nothing_out_are_worth_nothing():
    X, y, _ = hidden_cluster(n=80)
    unlabelled = np.flatnonzero(y == UNKNOWN)
    model = chosen(X, y, C1s=[3.0], margins=[0.3], cv=[(unlabelled, unlabelled[:9])])
    assert model.best_score_ == 0.0
    assert model.score_interval_ == (0.0, 1.0)
    assert model.uncertainty_.startswith("F1 is not known")
    assert model.best_radius_slack_ == 0.0


@pytest.mark.sampled(0)
def test_a_ball_with_fewer_unlabelled_rows_is_better_where_labels_cannot_tell():
    """Cleared rows far away: balls of all sizes tell them from the cases."""
    X, y, truth = hidden_cluster(n_cleared=0, seed=2)
    far = np.flatnonzero((truth == CLEARED) & (X.sum(axis=1) < -2.0))[:8]
    y[far] = CLEARED
    grid = {"C1s": [0.0, 0.3], "margins": [0.0], "C2s": [0.0, 0.3], "cv": 4}
    model = chosen(X, y, **grid, radius="solved", filter=False)
    one = model.cv_results_
    inside = [
        sum(
            (ball.depth(X[y == UNKNOWN]) >= 0).sum()
            for ball in chosen(X, y, radius="solved", filter=False, cv=4, **alone).balls_
        )
        for alone in (
            {"C1s": [c1], "C2s": [c2], "margins": [0.0]}
            for c1, c2 in zip(one["C1"], one["C2"], strict=True)
        )
    ]
    recall = (one["tp"] + 0.5) / (one["tp"] + one["fn"] + 1.0)
    by_hand = recall**2 / (np.array(inside) + 1.0)
    np.testing.assert_allclose(one["pu_score"], by_hand, rtol=0.05)
    assert model.best_index_ == int(np.argmax(by_hand))
    assert max(inside) > 1.5 * min(inside)


def test_held_out_rows_and_depths_are_those_behind_the_counts():
    X, y, _ = hidden_cluster(n=100, seed=4)
    model = chosen(X, y, C1s=[0.3, 3.0], cv=4)
    rows, found = model.held_out_rows_, model.held_out_depths_ >= 0.0
    assert sorted(rows) == np.flatnonzero(y != UNKNOWN).tolist()
    counts = [(found & (y[rows] == RARE)).sum(), (found & (y[rows] != RARE)).sum()]
    assert counts == [model.cv_results_[name][model.best_index_] for name in ("tp", "fp")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("learn_radius", [False, True])
@pytest.mark.parametrize("radius", ["solved", "share"])
def test_a_weight_is_so_many_copies(learn_radius, radius):
    X, y, _ = hidden_cluster(n=80, n_rare=9, n_cleared=15, seed=3)
    times = np.random.default_rng(3).integers(0, 3, len(y))
    times[np.flatnonzero(y == RARE)[:4]] = 1
    copied = np.repeat(np.arange(len(y)), times)
    labelled = np.flatnonzero((y != UNKNOWN) & (times > 0))
    tests = [labelled[k::3] for k in range(3)]
    options = {"learn_radius": learn_radius, "radius": radius, "C1s": [1.0], "tol": 1e-9}
    weighted = chosen(X, y, times, **options, cv=[(test, test) for test in tests])
    in_copies = [np.flatnonzero(np.isin(copied, test)) for test in tests]
    copies = chosen(X[copied], y[copied], **options, cv=[(test, test) for test in in_copies])
    np.testing.assert_allclose(weighted.cv_results_["f1"], copies.cv_results_["f1"])
    np.testing.assert_allclose(weighted.cv_results_["margin"], copies.cv_results_["margin"])
    assert weighted.best_index_ == copies.best_index_
    np.testing.assert_allclose(
        weighted.score_samples(X), copies.score_samples(X), atol=0.05 * copies.radius_**2
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C1s": []}, r"^C1s=\[\] must be a list of finite numbers at or above 0, or None"),
        ({"C2s": [-1.0]}, "^C2s="),
        ({"margins": [np.inf]}, "^margins="),
        ({"n_balls": []}, r"^n_balls=\[\] must be numbers"),
        ({"n_balls": [1, 0]}, "^n_balls=0 must be a whole number above 0, or 'auto'"),
        ({"tol": 0.0}, "^tol=0.0"),
        ({"radius": "wide"}, "^radius='wide'"),
        ({"filter": "no"}, "^filter='no'"),
        ({"cv": 1}, "^cv=1 must be 2 folds or more, a splitter or a list"),
        ({"cv": True}, "^cv=True must be 2 folds or more"),
        *[
            ({"cv": value}, f"^cv={value!r} is not a number of folds, a splitter or a list")
            for value in ("5", 2.5, None)
        ],
    ],
)
def test_what_is_refused(change, message):
    X, y, _ = hidden_cluster(n=80)
    with pytest.raises(ValueError, match=message):
        RACHCV(**change).fit(X, y)


def test_without_a_majority_label_there_is_nothing_to_choose_by():
    X, y, _ = hidden_cluster(n=60, n_cleared=10)
    with pytest.raises(ValueError, match=r"one class, 1: .* Label some rows as clea"):
        RACHCV().fit(X, np.where(y == CLEARED, UNKNOWN, y))


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
