"""Learned scales of features: kernel, derivative, rows, selection, and the estimators."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.model_selection import StratifiedKFold

from draws import draws
from oracles.ordinal import cost_matrix, mauc_by_pairs, ordinal_loss, pair_weights
from rareclass import OrdinalRankRC, RankRC, RankRCCV, rankrc_path
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import FeatureScaled, Gaussian, Laplace, Linear, Polynomial
from rareclass.labels.levels import read_levels
from rareclass.labels.two_classes import read_labels
from rareclass.ranking import feature_scaling as learning
from rareclass.ranking.feature_scaling import (
    DescentRound,
    ScaleSlopes,
    Study,
    clear_gain,
    distinct_rows,
    held_out_gradients,
    learn_feature_scales,
)
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.ranking_data import KernelSettings, RankingData
from rareclass.ranking.targets import OrderedLevels, TwoClasses
from rareclass.rows import ArrayRows, as_source, from_arrays, from_table

SETTINGS = KernelSettings("gaussian", "mean", "rare", "2GiB", None, None)
KINDS = [Gaussian(1.7), Laplace(2.0), Linear(), Polynomial(3.0), Polynomial(2.0, 1, 0.5)]


def rare_cores(n_rows=360, n_rare=50, n_features=6, seed=0, n_informative=2):
    """Rare rows lie in the middle of some features; those say nothing in the mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = np.arange(n_rows) < n_rare
    X[:n_rare, :n_informative] *= 0.12
    order = rng.permutation(n_rows)
    return X[order], y[order].astype(int)


X, Y = rare_cores()
GRID = learning._LAMS


def test_a_lam_of_the_grid_has_its_neighbours():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "_LAMS", GRID)
        assert np.log2(learning.near(2.0**-5.5)).tolist() == [-2, -6, -10]
        assert np.log2(learning.near(1e9)).tolist() == [2, -2]
        assert np.log2(learning.near(1e-9)).tolist() == [-10, -14]


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Fewer rounds, lams and folds: enough for these data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "_N_ROUNDS", 5)
        patch.setattr(learning, "_FULL_RATE_ROUNDS", 3)
        patch.setattr(learning, "_LAMS", np.array([2.0**-2, 2.0**-6]))
        yield


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scaled_kernel_is_the_kernel_of_scaled_rows(kernel, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.6)).astype(dtype)
    scales = np.array([0.0, 1.0, 2.5, 0.0, 0.3, 7.0])
    scaled = FeatureScaled(kernel, scales)
    plain = (X * scales).astype(dtype)
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
        found = scaled.block(rows, rows[:5])
        assert found.dtype == dtype
        wanted = kernel.block(plain, plain[:5])
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(scaled.diag(rows), kernel.diag(plain), rtol=tolerance)


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array])
def test_landmarks_of_an_expansion_are_scaled_once(to):
    scales = np.array([0.0, 1.0, 2.5, 0.0, 0.3, 7.0])
    expansion = KernelExpansion(FeatureScaled(Gaussian(1.7), scales), to(X[:5]))
    found = ArrayRows(as_source(to(X[:40])), n_jobs=1).map(lambda block: expansion.matrix(block))
    wanted = Gaussian(1.7).block(X[:40] * scales, X[:5] * scales)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_a_feature_of_scale_zero_is_not_read():
    X = np.array([[1.0, np.nan], [2.0, np.inf]])
    assert np.isfinite(FeatureScaled(Gaussian(1.0), np.array([1.0, 0.0])).block(X, X)).all()
    nothing = FeatureScaled(Gaussian(1.0), np.zeros(2)).block(X, X)
    np.testing.assert_array_equal(nothing, 1.0)


@pytest.mark.parametrize("wrong", [[1.0, -1.0], [np.nan, 1.0], [[1.0]], [1.0, np.inf]])
def test_scales_are_checked(wrong):
    with pytest.raises(ValueError, match="scales"):
        FeatureScaled(Linear(), np.array(wrong))
    with pytest.raises(ValueError, match="3 columns, scales has 2"):
        FeatureScaled(Linear(), np.ones(2)).block(np.eye(3), np.eye(3))


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
@pytest.mark.parametrize("is_sparse", [False, True])
@draws(8)
@given(st.integers(0, 10**6))
def test_slopes_are_the_derivative_of_the_kernel(kernel, is_sparse, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(9, 4)), rng.normal(size=(5, 4))
    Z[0] = X[0]  # at distance zero
    squares = rng.uniform(0.2, 2.0, 4)
    by_row, by_landmark = rng.normal(size=(9, 2)), rng.normal(size=(5, 2))
    by_row[3] = 0.0

    def total(squares):
        K = FeatureScaled(kernel, np.sqrt(squares)).block(X, Z)
        return np.einsum("ik,ir,rk->k", by_row, K, by_landmark)

    scaled = FeatureScaled(kernel, np.sqrt(squares))
    rows, points = (sparse.csr_array(X), sparse.csr_array(Z)) if is_sparse else (X, Z)
    K = scaled.block(X, Z)
    slopes = ScaleSlopes.of(scaled, rows, points, K)
    pairs = zip(by_row.T, by_landmark.T, strict=True)
    found = np.array([slopes.sums(c, b) for c, b in pairs])
    for d in range(4):
        e = 1e-5 * (np.arange(4) == d)
        wanted = (total(squares + e) - total(squares - e)) / 2e-5
        np.testing.assert_allclose(found[:, d], wanted, rtol=1e-5, atol=1e-6)


def classes_of(y, weight=None, rare=1):
    return TwoClasses(read_labels(y, weight, rare, len(y)))


def learn(X, target, width):
    data = RankingData(SETTINGS, as_source(X), target, SmoothedHinge(), width)
    return learn_feature_scales(data, 0.5, False)


def study(X, y, kernel="gaussian", weight=None, has_levels=False):
    if has_levels:
        levels = read_levels(y, weight, None, len(y))
        target = OrderedLevels(levels, cost_matrix(len(levels.classes), "distance"))
    else:
        target = classes_of(y, weight)
    rows, distinct = distinct_rows(as_source(X), target, 20_000, 0)
    settings = replace(SETTINGS, kernel=kernel, random_state=0)
    return Study(RankingData(settings, rows, distinct, SmoothedHinge(), 4.0), 3)


def held_out_losses(trials, target):
    """Mean loss of the held-out pairs of every fold, all of them formed."""
    losses, costs, labels = [], getattr(target, "costs", np.ones((2, 2))), target.labels
    for fold, w in zip(trials.folds, trials.weights, strict=True):
        problem = trials.prepared.problem(1.0, fold.held_out)
        coefficients = (problem.whitener @ w)[:, None]
        scored = trials.prepared.scored(coefficients, tested=fold.tested)
        u = labels.rare_weight[fold.tested[labels.rare]]
        v = labels.majority_weight[fold.tested[labels.majority]]
        codes, weight = scored.y.astype(int), np.concatenate([u, v])
        value = ordinal_loss(scored.scores[:, 0], codes, weight, costs, 0.5)[0]
        losses.append(value / pair_weights(codes, weight, costs).sum())
    return np.array(losses)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kernel", "has_levels"),
    [
        ("gaussian", False),
        ("gaussian", True),
        ("laplace", False),
        ("polynomial", False),
        ("linear", False),
        pytest.param("laplace", True, marks=pytest.mark.thorough),
    ],
)
def test_the_gradient_is_the_derivative_of_the_held_out_loss(kernel, has_levels, monkeypatch):
    monkeypatch.setattr("rareclass.ranking.feature_scaling._TOL", 1e-11)
    X, y = rare_cores(150, 30, 4, seed=1)
    if has_levels:
        y = np.where(y == 1, 2 * (np.arange(150) % 2), 1)
    X[0] = X[1]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    made = study(X, y, kernel, weight, has_levels)
    squares = np.array([1.5, 0.7, 1.0, 0.4])
    # Few landmarks for their coordinates: with one for each coordinate K is easily singular.
    lams = np.array([0.05])
    trial = made.attempt(squares, lams, made.folds(0))
    found = held_out_gradients(trial, made.rows, residual=1e-10)
    for d in range(4):
        e = 1e-4 * (np.arange(4) == d)
        ends = []
        for at in (squares + e, squares - e):
            # What lams are relative to depends on the scales for inner products.
            unit = made.attempt(at, lams, made.folds(0)).unit
            moved = made.attempt(at, lams * trial.unit / unit, made.folds(0))
            ends.append(held_out_losses(moved, made.data.target))
        wanted = (ends[0] - ends[1]) / 2e-4
        np.testing.assert_allclose(found[:, d], wanted, rtol=2e-2, atol=2e-5)


@draws(20)
@given(st.integers(0, 10**6), st.booleans())
def test_distinct_rows_do_not_depend_on_order_or_copies(seed, is_sparse):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (40, 3)).astype(float), np.arange(40) % 4 == 0
    weight = rng.integers(1, 4, 40)
    copies = rng.permutation(np.repeat(np.arange(40), weight))
    to = sparse.csr_array if is_sparse else np.asarray
    first = distinct_rows(as_source(to(X)), classes_of(y, weight, True), 1000, 0)
    second = distinct_rows(as_source(to(X[copies])), classes_of(y[copies], None, True), 1000, 0)
    one, other = (
        rows.take(slice(None)).toarray() if is_sparse else rows.take(slice(None))
        for rows, _ in (first, second)
    )
    np.testing.assert_array_equal(one, other)
    for rows, of_class in ((first[1].labels.rare, y), (first[1].labels.majority, ~y)):
        wanted = np.unique(X[of_class], axis=0)
        np.testing.assert_array_equal(np.unique(one[rows], axis=0), wanted)
        assert len(rows) == len(wanted)
    for name in ("rare_weight", "majority_weight"):
        a, b = (getattr(target.labels, name) for _, target in (first, second))
        np.testing.assert_allclose(a / a.sum(), b / b.sum(), rtol=1e-12)  # relative to each other


def test_rows_beyond_the_limit_are_drawn_and_weigh_what_their_class_does():
    rows, target = distinct_rows(as_source(X), classes_of(Y), 20, 0)
    assert (len(target.labels.rare), len(target.labels.majority), rows.n_rows) == (20, 20, 40)
    assert target.labels.rare_weight.sum() == pytest.approx(50.0)
    assert target.labels.majority_weight.sum() == pytest.approx(310.0)


@pytest.fixture(scope="module")
def learned():
    return RankRC(feature_scaling="learned", lam=2**-6, random_state=0).fit(X, Y)


@pytest.mark.sampled(0)
def test_the_informative_features_are_found(learned):
    scales = learned.feature_scales_
    assert sorted(np.flatnonzero(scales)) == [0, 1]
    assert scales**2 @ X.var(axis=0) == pytest.approx(X.var(axis=0).sum())
    rows, y = rare_cores(4000, 400, seed=1)
    alone = RankRC(lam=2**-6).fit(X[:, :2], Y).score(rows[:, :2], y)
    plain = RankRC(lam=2**-6).fit(X, Y).score(rows, y)
    assert learned.score(rows, y) > alone - 0.005
    assert learned.score(rows, y) > plain + 0.05


def test_the_model_is_that_of_scaled_rows(learned):
    scaled = X * learned.feature_scales_
    other = RankRC(lam=2**-6, width=learned.width_).fit(scaled, Y)
    np.testing.assert_allclose(
        learned.score_samples(X), other.score_samples(scaled), rtol=1e-4, atol=1e-6
    )
    plain = RankRC(lam=1.0).fit(X, Y)
    assert (plain.width_, plain.feature_scales_) == (learned.width_, None)
    # Landmarks and features stay in the units of X.
    assert set(map(tuple, learned.landmarks_)) <= set(map(tuple, X))
    changed = X.copy()
    changed[:, 2:] = 5.0
    np.testing.assert_array_equal(learned.score_samples(changed), learned.score_samples(X))
    kernel = learned.transform(X) @ learned.transform(learned.landmarks_).T
    np.testing.assert_allclose(
        kernel, learned._expansion().kernel.block(X, learned.landmarks_), atol=1e-5
    )


@pytest.mark.thorough
def test_containers_and_rows_on_disk_give_the_same_scales(learned, tmp_path):
    names = [f"column {k}" for k in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    settings = {"feature_scaling": "learned", "lam": 2**-6, "random_state": 0}
    model = RankRC(**settings).fit(table, Y)
    np.testing.assert_array_equal(model.feature_scales_, learned.feature_scales_)
    assert list(model.feature_names_in_) == names
    table.assign(label=Y).to_parquet(tmp_path / "rows.parquet")
    with from_table(tmp_path / "rows.parquet", target="label") as rows:
        on_disk = RankRC(**settings).fit_rows(rows)
        np.testing.assert_allclose(on_disk.score_samples(rows), learned.score_samples(X))
    np.testing.assert_array_equal(on_disk.feature_scales_, learned.feature_scales_)
    again = RankRC(**settings).fit_rows(from_arrays(sparse.csr_array(X), Y))
    np.testing.assert_allclose(again.feature_scales_, learned.feature_scales_, rtol=1e-6)


@pytest.mark.thorough
def test_where_nothing_is_to_be_won_scales_are_one():
    X, y = rare_cores(400, 40, 3, seed=2, n_informative=3)
    model = RankRC(feature_scaling="learned", lam=2**-6).fit(X, y)
    np.testing.assert_array_equal(model.feature_scales_, 1.0)
    plain = RankRC(lam=2**-6).fit(X, y)
    np.testing.assert_allclose(model.score_samples(X), plain.score_samples(X), atol=1e-5)


def test_constant_features_are_dropped_and_few_rows_are_told():
    X, y = rare_cores(400, 40, 5, seed=3)
    X[:, 4] = 7.0
    made = study(X, y)
    assert made.variance[4] == pytest.approx(0.0, abs=1e-20)
    with pytest.warns(UserWarning, match="10 distinct rows"):
        model = RankRC(feature_scaling="learned").fit(X[:80], y[:80] & (np.arange(80) < 40))
    np.testing.assert_array_equal(model.feature_scales_, 1.0)
    with pytest.warns(UserWarning, match="there are 1 rare and"):
        RankRC(feature_scaling="learned").fit(X, np.arange(len(X)) == 7)


@pytest.mark.parametrize("units", [1e-6, 1.0, 1e6])
def test_scales_leave_rows_as_far_apart_in_any_units(units):
    X, y = rare_cores(150, 30, 4, seed=1)
    made = study(units * X, y)
    for squares in (np.array([1.5, 0.7, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 1.0])):
        apart = made.normalised(squares) @ made.variance
        assert apart == pytest.approx(made.variance.sum(), rel=1e-12)
    np.testing.assert_array_equal(made.normalised(np.zeros(4)), 0.0)


@pytest.mark.parametrize("kernel", [lambda X, Z: X @ Z.T, FeatureScaled(Linear(), np.ones(8))])
def test_a_kernel_of_unknown_derivative_is_refused(kernel):
    with pytest.raises(ValueError, match="feature_scaling=None"):
        RankRC(kernel=kernel, feature_scaling="learned").fit(X, Y)


@pytest.mark.thorough
def test_kernels_by_name_select(learned):
    for kernel in ("laplace", "polynomial"):
        model = RankRC(kernel=kernel, lam=2**-6, feature_scaling="learned").fit(X, Y)
        largest = np.argsort(-model.feature_scales_)[:2]
        assert sorted(largest) == [0, 1], kernel


@pytest.mark.parametrize("weighted", [False, True])
def test_a_fold_learns_its_scales_without_the_rows_that_it_holds_out(monkeypatch, weighted):
    seen, scales = [], np.array([[2.0, 0.5], [1.0, 3.0], [0.3, 1.0], [1.0, 1.0]])
    rows, weight = X[:, :2], np.arange(len(Y)) % 3 + 1.0 if weighted else None

    def learn(data, *others):
        labels = data.target.labels
        seen.append((labels.rare, np.asarray(labels.majority), labels.rare_weight))
        return scales[len(seen) % 4 - 1]

    monkeypatch.setattr("rareclass.ranking.machine.learn_feature_scales", learn)
    monkeypatch.setattr("rareclass.ranking.search.learn_feature_scales", learn)
    folds = list(StratifiedKFold(3).split(rows, Y))
    fixed = {"width": 2.0, "tol": 1e-9}
    model = RankRCCV(lams=[0.1], cv=folds, feature_scaling="learned", refit=False, **fixed)
    model.fit(rows, Y, weight)
    np.testing.assert_array_equal(model.feature_scales_, scales[0])
    for k, (train, test) in enumerate(folds):
        rare, majority, of_rare = seen[k + 1]
        np.testing.assert_array_equal(np.sort(np.r_[rare, majority]), train)
        given = np.ones(len(Y)) if weight is None else weight / weight.max()
        np.testing.assert_allclose(of_rare, given[rare])
        own = scales[k + 1]
        of = None if weight is None else weight[train]
        alone = RankRC(lam=0.1, **fixed).fit(rows[train] * own, Y[train], of)
        found = model.cv_results_[f"split{k}_test_score"][0]
        tested = None if weight is None else weight[test]
        assert found == pytest.approx(alone.score(rows[test] * own, Y[test], tested), abs=1e-3)


@pytest.mark.thorough
def test_the_cross_validated_model_and_the_path_learn_too(learned):
    model = RankRCCV(lams=[2**-6, 1.0], cv=3, feature_scaling="learned", random_state=0).fit(X, Y)
    np.testing.assert_array_equal(np.flatnonzero(model.feature_scales_), [0, 1])
    np.testing.assert_array_equal(model.best_estimator_.feature_scales_, model.feature_scales_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, _ = rankrc_path(X, Y, [2**-6, 1.0], feature_scaling="learned", random_state=0)
    np.testing.assert_array_equal(first.feature_scales_, learned.feature_scales_)
    np.testing.assert_allclose(first.score_samples(X), learned.score_samples(X), atol=1e-4)


@pytest.mark.thorough
def test_rows_that_nothing_was_learned_from_decide():
    # Many features of noise and few rare rows: folds that learned the scales are sure of a gain.
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 25)), np.arange(300) < 25
    _, rounds = learning._descend(study(X, y, Gaussian(7.0)), lambda *_: None)
    assert rounds[-1].auc > rounds[0].auc + 0.05
    found = learn(X, classes_of(y, None, True), 7.0)
    np.testing.assert_array_equal(found, 1.0)


@given(st.integers(0, 10**6))
def test_a_clear_gain_is_that_of_the_corrected_paired_test(seed):
    gain = np.random.default_rng(seed).normal(1.0, 1.0, 5)
    # The t test has the error sd / sqrt(n); the correction is sqrt(1 + n / 4) times that.
    t = stats.ttest_1samp(gain, 0.0).statistic / np.sqrt(1.0 + 5 / 4)
    assert clear_gain(gain) == (stats.t.sf(t, 4) < 0.05)
    assert not clear_gain(np.zeros(5))
    assert clear_gain(np.full(5, 0.25))


def test_scales_that_do_not_gain_on_their_own_rows_are_not_tried_on_others(monkeypatch):
    descents = []

    def descend(study, advance):
        descents.append(study)
        return np.full(3, 2.0), [DescentRound(0.7, 0.1), DescentRound(0.7, 0.1)]

    monkeypatch.setattr(learning, "_descend", descend)
    rows, y = rare_cores(120, 20, 3)
    found = learn(rows, classes_of(y), 4.0)
    assert len(descents) == 1
    np.testing.assert_array_equal(found, 1.0)


def test_dense_rows_to_learn_from_take_an_eighth_of_the_memory():
    source = as_source(np.zeros((2, 16)))
    assert learning._fitting_rows(2**23, source) * 16 * 8 == 2**20
    assert learning._fitting_rows(1, source) == learning._LEAST_ROWS
    of_sparse = learning._fitting_rows(1, as_source(sparse.csr_array((2, 16))))  # no limit
    assert of_sparse >= learning._MAJORITY_A_RARE_ROW * learning._MOST_RARE


def test_what_all_scales_gain_together_moves_none():
    variance, squares = np.array([1.0, 4.0, 0.5]), np.array([2.0, 0.25, 1.0])
    ways = np.array([[1.0, 0.5, -1.0], [0.5, 1.0, 2.0], [3.0, -1.0, 0.0]])
    ways -= np.outer(ways @ squares / (squares @ variance), variance)  # along the constraint
    for common in (0.0, 0.3, -7.0):
        mean = -ways.mean(axis=0)
        wanted = mean / (ways.std(axis=0, ddof=1) / np.sqrt(3)) / learning._AGREEMENT
        found = learning._step(ways + common * variance, variance, squares)
        np.testing.assert_allclose(found, np.clip(wanted, -1.0, 1.0), rtol=1e-12)


def test_equal_rows_of_different_levels_stay_apart():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [2.0], [2.0]])
    y = np.array([0, 0, 2, 2, 1, 1, 1])
    levels = OrderedLevels(read_levels(y), np.ones((3, 3)))
    rows, target = distinct_rows(as_source(X), levels, 9, 0)
    held = rows.take(slice(None))[: len(target.labels.rare), 0]
    pairs = sorted(zip(held, target.labels.codes, target.labels.rare_weight, strict=True))
    assert pairs == [(0.0, 0, 2.0), (0.0, 2, 1.0), (1.0, 2, 1.0)]


def test_levels_of_few_rows_are_spread_over_the_folds():
    y = np.repeat([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [40] + 11 * [1])
    rng = np.random.default_rng(0)
    made = study(rng.normal(size=(len(y), 2)), y, has_levels=True)
    labels = made.data.target.labels
    for fold in made.folds(0):
        assert fold.tested[labels.rare].any()
        assert fold.tested[labels.majority].any()


@pytest.mark.thorough
def test_scales_find_the_features_that_order_the_levels():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [480, 70, 50])
    X = rng.normal(size=(600, 8))
    # The higher the level, the nearer to the middle of two features: the means say nothing.
    X[:, :2] *= np.array([1.0, 0.3, 0.05])[y][:, None]
    order = rng.permutation(600)
    X, y = X[order], y[order]
    plain = OrdinalRankRC(lam=0.05, random_state=0).fit(X[::2], y[::2])
    model = OrdinalRankRC(lam=0.05, feature_scaling="learned", random_state=0).fit(X[::2], y[::2])
    assert set(np.flatnonzero(model.feature_scales_)) <= {0, 1}
    found, before = (
        mauc_by_pairs(y[1::2], one.score_samples(X[1::2]), np.ones(300)) for one in (model, plain)
    )
    assert found > before
    assert plain.feature_scales_ is None


def test_two_levels_learn_what_two_classes_learn():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(140, 5)), np.arange(140) < 30
    X[:30, 0] += 2.0
    levels = OrderedLevels(read_levels(y.astype(int)), np.ones((2, 2)))
    classes = classes_of(y, None, True)
    np.testing.assert_allclose(learn(X, levels, 3.0), learn(X, classes, 3.0), rtol=1e-6)
