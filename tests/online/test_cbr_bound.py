"""There is no bound on the mistakes of CBR: docs/method/online.md, each sentence of it."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from draws import draws
from rareclass.online import CBR


def with_one_majority_row(d, C, eta):
    """A ranker that holds the majority row 0: a rare row is its own pair."""
    model = CBR(C, eta=eta, buffer_size=1).start(d, [0, 1])
    return model.partial_fit(np.zeros((1, d)), [0])


def reach(C, eta, v):
    """What all steps on one pair can add to its margin."""
    return C * v + 2.0 / NormalDist().inv_cdf(eta) * np.sqrt(v)


@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 6),
    C=st.sampled_from([2.0**-6, 0.1, 1.0, 8.0]),
    eta=st.sampled_from([0.55, 0.7, 0.95]),
    beyond=st.sampled_from([1.001, 1.5, 10.0]),
)
@draws(60)
def test_a_pair_out_of_reach_stays_misranked(seed, d, C, eta, beyond):
    rng = np.random.default_rng(seed)
    model = with_one_majority_row(d, C, eta)
    root = rng.normal(size=(d, d)) / d
    model.state_.covariance[:] = S = root @ root.T + 1e-6 * np.eye(d)
    z = rng.normal(size=d)
    v = z @ S @ z
    assume(v > 1e-6)
    model.state_.mean[:] = -beyond * reach(C, eta, v) * z / (z @ z)
    scores = model.test_then_train(np.tile(z, (300, 1)), np.ones(300))
    assert (scores < 0.0).all()
    assert (np.diff(scores) >= -1e-9).all()
    # It is not far from what is reached: the sum of the steps is near the bound where C is small.
    assert scores[-1] - scores[0] <= reach(C, eta, v)


@pytest.mark.parametrize(
    ("C", "eta", "d"), [(1.0, 0.7, 200), (2.0**-6, 0.7, 100), (0.125, 0.95, 30)]
)
def test_rows_with_a_margin_that_are_misranked_for_ever(C, eta, d):
    gamma = 0.05
    r = np.sqrt(1.0 - gamma**2)
    model = with_one_majority_row(d + 1, C, eta)
    taught = np.column_stack([np.full(d, gamma), r * np.eye(d)])
    for _ in range(60):
        model.partial_fit(taught, np.ones(d))
    z = np.append(gamma, np.full(d, -r / np.sqrt(d)))
    v = z @ model.state_.covariance @ z
    assert model.coef_ @ z < -reach(C, eta, v)  # so that it stays so whatever the number of rows
    scores = model.test_then_train(np.tile(z, (600, 1)), np.ones(600))
    assert (scores < 0.0).sum() == 600 > 1.0 / gamma**2
