"""Random Fourier features: their formula, their kernel, and what they say of single features."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from rareclass.online import OnlineLogistic, OnlineMixture
from rareclass.online.feature_maps import FourierFeatures


def rows(n=60, d=5, seed=0):
    return np.random.default_rng(seed).standard_t(1, size=(n, d)) * 3.0


def plain(X, waves):
    angles = 2.0 * np.pi * (np.arcsinh(X) @ waves.frequencies + waves.phases)
    return np.sqrt(2.0 / len(waves.phases)) * np.cos(angles)


def test_waves_are_their_formula():
    waves = FourierFeatures.drawn(5, 64, np.random.default_rng(0))
    far = np.vstack([rows(), np.full((1, 5), 1e300), np.zeros((1, 5))])
    np.testing.assert_allclose(waves.apply(far), plain(far, waves), atol=1e-8)


def test_their_products_are_a_gaussian_kernel():
    waves = FourierFeatures.drawn(5, 100_000, np.random.default_rng(0)).apply(rows(20))
    kernel = RBF(np.sqrt(5) / 2)(np.arcsinh(rows(20)))
    np.testing.assert_allclose(waves @ waves.T, kernel, atol=0.02)


def test_features_born_later_leave_the_waves_of_before():
    rng = np.random.default_rng(0)
    before = FourierFeatures.drawn(3, 64, rng)
    grown = before.grown(4, rng).grown(6, rng)
    X = rows(d=3)
    wide = np.hstack([X, np.zeros((60, 3))])
    np.testing.assert_array_equal(grown.apply(wide), before.apply(X))
    again = np.random.default_rng(0)
    at_once = FourierFeatures.drawn(3, 64, again).grown(6, again)
    np.testing.assert_array_equal(at_once.frequencies, grown.frequencies)
    assert grown.frequencies[3:].std() == pytest.approx(grown.deviation[0], rel=0.2)


def test_what_a_feature_raises_is_what_is_lost_without_it():
    waves = FourierFeatures.drawn(5, 64, np.random.default_rng(0))
    coef = np.random.default_rng(1).normal(size=64)
    row, usual = rows(2)
    usual[1] = row[1]
    found = waves.raises(row, usual, coef)
    for j in range(5):
        without = row.copy()
        without[j] = usual[j]
        lost = plain(row[None], waves) @ coef - plain(without[None], waves) @ coef
        assert found[j] == pytest.approx(lost[0], abs=1e-12)
    assert found[1] == 0.0


def test_reasons_of_a_mixture_take_waves_in():
    X = rows(1500, d=3)
    y = np.abs(np.arcsinh(X[:, 0])) > 3.0
    model = OnlineMixture([("fourier", OnlineLogistic(eta=1.0))], random_state=0)
    model.start(3, [False, True]).partial_fit(X, y)
    assert model.score(X, y) > 0.95  # a shell that no linear learner sees
    row, usual = X[np.argmax(model.score_samples(X))], np.zeros(3)
    raised = model.raises(row, usual, model.additive_weights())
    assert raised.argmax() == 0
    assert model.raises(row, usual, np.empty(0)).tolist() == [0.0, 0.0, 0.0]
