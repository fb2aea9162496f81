"""The simulated study's data: counts, determinism, density and the Bayes AUC."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.simulated import bayes_score, mixture_centres, rare_mixture


@pytest.mark.parametrize(("overlap", "auc"), [(0.9, 67.0), (0.75, 69.9), (0.6, 73.3)])
def test_bayes_auc_is_the_documented_one(overlap: float, auc: float) -> None:
    X, y = rare_mixture(100_000, 0.3, overlap, random_state=1)
    assert 100 * roc_auc_score(y, bayes_score(X, overlap)) == pytest.approx(auc, abs=0.5)


@pytest.mark.parametrize("rare_share", [0.0, 0.001, 0.1, 0.4, 1.0])
def test_number_of_rare_rows_is_exact(rare_share: float) -> None:
    X, y = rare_mixture(1000, rare_share, 0.9, random_state=0)
    assert X.shape == (1000, 5)
    assert y.sum() == round(1000 * rare_share)
    assert set(np.unique(y)) <= {0, 1}


def test_same_seed_same_rows() -> None:
    X, y = rare_mixture(50, 0.2, 0.75, random_state=7)
    again, labels = rare_mixture(50, 0.2, 0.75, random_state=7)
    other, _ = rare_mixture(50, 0.2, 0.75, random_state=8)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert not np.allclose(X, other)


def test_rows_are_in_random_order() -> None:
    _, y = rare_mixture(1000, 0.5, 0.75, random_state=0)
    assert 400 < np.count_nonzero(np.diff(y)) < 600


def test_dimension_follows_the_centres() -> None:
    centres = mixture_centres(n_centres=3, n_features=40, seed=1)
    X, y = rare_mixture(20, 0.1, 0.6, centres=centres, random_state=0)
    assert X.shape == (20, 40)
    assert bayes_score(X, 0.6, centres=centres).shape == y.shape


def test_majority_sits_at_t_times_the_later_centre() -> None:
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X, _ = rare_mixture(6000, 0.0, 0.9, centres=centres, width=0.01, random_state=0)
    expected = {(9, 0), (0, 9), (1, 9)}  # 0.9 mu_i + 0.1 mu_j for i > j
    assert {tuple(row) for row in np.round(X).astype(int)} == expected
    _, counts = np.unique(np.round(X), axis=0, return_counts=True)
    np.testing.assert_allclose(counts, 2000, atol=200)


@pytest.mark.parametrize("overlap", [0.6, 0.9])
def test_score_is_the_log_density_ratio(overlap: float) -> None:
    """The average over majority rows of p(x | rare) / p(x | majority) over a region is the
    share of rare rows in it: checked by Monte Carlo on half-spaces."""
    majority, _ = rare_mixture(200_000, 0.0, overlap, random_state=2)
    rare, _ = rare_mixture(200_000, 1.0, overlap, random_state=3)
    ratio = np.exp(bayes_score(majority, overlap))
    assert ratio.mean() == pytest.approx(1.0, abs=0.01)
    for axis in range(5):
        for cut in (-0.5, 0.0, 0.5):
            share = np.mean(rare[:, axis] < cut)
            assert np.mean(ratio * (majority[:, axis] < cut)) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rare_share": 1.5, "overlap": 0.5}, "rare_share"),
        ({"rare_share": 0.5, "overlap": -0.1}, "overlap"),
        ({"rare_share": 0.5, "overlap": 0.5, "centres": np.zeros((1, 5))}, "centres"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rare_mixture(10, **arguments)
