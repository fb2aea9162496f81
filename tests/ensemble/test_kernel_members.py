"""Kernel members: which rows they take for rows that are like nothing they know."""

import numpy as np

from rareclass.ensemble.members.kernel_machine import GaussianOnNumbers
from rareclass.ensemble.members.member import EncodedFolds


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rare rows lie apart from the others, and from each other."""
    rng = np.random.default_rng(seed)
    is_rare = np.arange(n) % 10 == 0
    X = rng.normal(size=(n, 4)) * np.where(is_rare, 3.0, 1.0)[:, None]
    X[is_rare, 0] += 3.0
    return X, is_rare


def test_new_rare_rows_are_not_taken_for_rows_like_nothing():
    X, is_rare = rows(300, 0)
    fold = np.random.default_rng(0).permutation(300) % 3
    found = GaussianOnNumbers(lams=(0.01,)).cross_fit(
        EncodedFolds(X, is_rare, None, fold, seed=0, n_jobs=1)
    )
    function = found[0].functions[0]
    new, new_is_rare = rows(3000, 1)
    far = function.with_similarity(new)[:, 1] < function.least
    assert far[new_is_rare].mean() < 0.05
    assert not far[~new_is_rare].any()
    # What is far from everything is.
    nothing = np.full((1, 4), 100.0)
    assert function.scores(nothing)[0] <= function.most
