"""Machines of all folds on one kernel are those that each fold alone would have learned."""

import numpy as np
import pytest

from made_tables import rare_mixture
from rareclass import RankRC
from rareclass.estimators.search import Fold
from rareclass.labels.two_classes import read_labels
from rareclass.ranking import solve as module
from rareclass.ranking.ranking_data import KernelSettings
from rareclass.ranking.solve import cross_fit
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import as_source

LAMS = (0.25, 2.0**-7)
X, Y = rare_mixture(150, 18, seed=3)
LANDMARKS = np.sort(np.concatenate([np.flatnonzero(Y), np.flatnonzero(Y == 0)[::6]]))
FOLD_OF = np.random.default_rng(0).permutation(len(Y)) % 3
FOLD_OF[:4] = -1  # learned from by every fold
WEIGHT = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float)


def machines(kernel="gaussian", weight=None):
    target = TwoClasses(read_labels(Y, weight, 1, len(Y)))
    settings = KernelSettings(kernel, "mean", LANDMARKS, "1GiB", 1, 0)
    held_out = [np.equal(FOLD_OF, k) for k in range(3)]
    folds = [Fold(mask, mask) for mask in held_out]
    return cross_fit(settings, as_source(X), target, folds, LAMS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_held_out_scores_are_those_of_a_machine_of_the_other_folds(kernel, weight, monkeypatch):
    monkeypatch.setattr(module, "_CROSS_FIT_TOL", 1e-10)
    monkeypatch.setattr(module, "_CROSS_FIT_MAX_ITER", 200)
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
    monkeypatch.setattr(module, "_CROSS_FIT_TOL", 1e-10)
    exact = machines().held_out
    tested = FOLD_OF >= 0
    spread = exact[tested].std(axis=0)
    assert (np.abs(usual - exact)[tested].max(axis=0) < 5e-2 * spread).all()
