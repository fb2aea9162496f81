"""Machines of all folds on one kernel are those that each fold alone would have learned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from made_tables import rare_mixture
from rareclass import RankRC
from rareclass.estimators.search import Fold
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import FeatureScaled, Gaussian, Laplace, Linear, Polynomial
from rareclass.labels.two_classes import read_labels
from rareclass.ranking import fitting
from rareclass.ranking.fitting import cross_fit
from rareclass.ranking.ranking_data import KernelSettings
from rareclass.ranking.scale_gradients import KernelSlopes, gradient_scales
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import as_source

LAMS = (0.25, 2.0**-7)
X, Y = rare_mixture(150, 18, seed=3)
LANDMARKS = np.sort(np.concatenate([np.flatnonzero(Y), np.flatnonzero(Y == 0)[::6]]))
FOLD_OF = np.random.default_rng(0).permutation(len(Y)) % 3
FOLD_OF[:4] = -1  # learned from by every fold
WEIGHT = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float)


def machines(kernel="gaussian", weight=None, width="mean", scales=None, X=X):
    target = TwoClasses(read_labels(Y, weight, 1, len(Y)))
    settings = KernelSettings(kernel, width, LANDMARKS, "1GiB", 1, 0)
    held_out = [np.equal(FOLD_OF, k) for k in range(3)]
    folds = [Fold(mask, mask) for mask in held_out]
    return cross_fit(settings, as_source(X), target, folds, LAMS, scales=scales)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_held_out_scores_are_those_of_a_machine_of_the_other_folds(kernel, weight, monkeypatch):
    monkeypatch.setattr(fitting, "_CROSS_FIT_TOL", 1e-10)
    monkeypatch.setattr(fitting, "_CROSS_FIT_MAX_ITER", 200)
    found = machines(kernel, weight)
    assert np.isnan(found.held_out[FOLD_OF < 0]).all()
    for k in range(3):
        train, tested = np.not_equal(FOLD_OF, k), np.equal(FOLD_OF, k)
        points = X[[row for row in LANDMARKS if train[row]]]
        for j, lam in enumerate(LAMS):
            alone = RankRC(
                kernel, width=found.width, lam=lam, landmarks=points, tol=1e-10, pos_label=1
            )
            alone.fit(X[train], Y[train], None if weight is None else weight[train])
            expected = alone.score_samples(X[tested])
            np.testing.assert_allclose(found.held_out[tested, j], expected, atol=1e-7)
            # The function of the fold scores rows as its held-out scores are.
            K = found.expansion.kernel.block(X[tested], found.expansion.landmarks)
            np.testing.assert_allclose(K @ found.coefficients[k][:, j], expected, atol=1e-7)


def test_the_tolerance_changes_scores_in_the_second_digit_at_most(monkeypatch):
    usual = machines().held_out
    monkeypatch.setattr(fitting, "_CROSS_FIT_TOL", 1e-10)
    exact = machines().held_out
    tested = FOLD_OF >= 0
    spread = exact[tested].std(axis=0)
    assert (np.abs(usual - exact)[tested].max(axis=0) < 5e-2 * spread).all()


def test_scales_are_those_of_rows_that_are_scaled(monkeypatch):
    monkeypatch.setattr(fitting, "_CROSS_FIT_TOL", 1e-10)
    scales = np.array([0.3, 1.0, 2.0, 0.7])
    inside = machines(scales=scales, width=2.5).held_out
    outside = machines(X=X * scales, width=2.5).held_out
    np.testing.assert_allclose(inside, outside, atol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(1.7), Laplace(2.0)], ids=repr)
@given(st.integers(0, 10**6))
@draws(12)
def test_gradients_are_the_slopes_of_the_score(kernel, seed):
    rng = np.random.default_rng(seed)
    rows, landmarks = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    scales, by_landmark = rng.uniform(0.2, 2.0, 4), rng.normal(size=5)
    scaled = FeatureScaled(kernel, scales)

    def score(at):
        return scaled.block(at, landmarks) @ by_landmark

    K = scaled.block(rows, landmarks)
    found = KernelSlopes(scaled, landmarks).gradients(rows, K, by_landmark)
    for d in range(4):
        e = 1e-5 * (np.arange(4) == d)
        expected = (score(rows + e) - score(rows - e)) / 2e-5
        np.testing.assert_allclose(found[:, d], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2.0)], ids=repr)
def test_kernels_of_an_inner_product_have_no_such_gradient(kernel):
    slopes = KernelSlopes(FeatureScaled(kernel, np.ones(2)), np.eye(2))
    with pytest.raises(ValueError, match=f"no gradient for {type(kernel).__name__}"):
        slopes.gradients(np.eye(2), np.eye(2), np.ones(2))


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplace(1.5)], ids=repr)
def test_a_feature_that_the_score_follows_gets_a_greater_scale(kernel):
    rng = np.random.default_rng(0)
    rows, landmarks = rng.normal(size=(200, 3)), rng.normal(size=(60, 3))
    landmarks[:30] = rows[:30]  # a distance of zero is none of a slope
    expansion = KernelExpansion(kernel, landmarks)
    K = kernel.block(landmarks, landmarks)
    follows = np.linalg.solve(K + 1e-6 * np.eye(60), np.tanh(3.0 * landmarks[:, 1]))
    scales = gradient_scales(expansion, follows, rows)
    assert scales.shape == (3,)
    assert (scales**2).mean() == pytest.approx(1.0)
    assert scales[1] > 1.2 * max(scales[0], scales[2])
    assert scales.min() > 0.0
    # By their root mean square: from finite differences, without the floor.
    e = 1e-6

    def slope(d):
        step = e * (np.arange(3) == d)
        up, down = (kernel.block(rows + s, landmarks) @ follows for s in (step, -step))
        return np.sqrt((((up - down) / (2 * e))[30:] ** 2).mean())

    far = rows[30:]
    found = gradient_scales(expansion, follows, far) ** 2
    slopes = np.array([slope(d) for d in range(3)])
    expected = slopes / slopes.mean() + 0.01
    np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-4)


def test_a_score_without_slope_has_scales_of_one():
    expansion = KernelExpansion(Gaussian(1.0), X[:5])
    np.testing.assert_array_equal(gradient_scales(expansion, np.zeros(5), X), np.ones(4))
