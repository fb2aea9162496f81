"""The simulated study: its Bayes AUC and its density ratio."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.simulated import bayes_score, rare_mixture


@pytest.mark.parametrize(("overlap", "auc"), [(0.9, 67.0), (0.75, 69.9), (0.6, 73.3)])
def test_bayes_auc_is_the_documented_one(overlap: float, auc: float) -> None:
    X, y = rare_mixture(100_000, 0.3, overlap, random_state=1)
    assert 100 * roc_auc_score(y, bayes_score(X, overlap)) == pytest.approx(auc, abs=0.5)


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
