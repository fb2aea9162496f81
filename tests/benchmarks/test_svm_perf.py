"""SVM-Perf as a baseline: its losses, its scorer, and its place among the methods of Table 4."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from benchmarks.paper_tables import svm_perf
from benchmarks.paper_tables.methods import METHODS


def two_classes(rows=150, rare=20):
    rng = np.random.default_rng(0)
    y = (np.arange(rows) < rare).astype(int)
    return rng.normal(size=(rows, 3)) + 1.5 * y[:, None], y


@pytest.mark.parametrize("loss", svm_perf.LOSSES)
def test_the_scorer_finds_the_rare_rows(loss):
    X, y = two_classes()
    scores = svm_perf.fit(X, y, C=100.0, loss=loss, k=10)(X)
    assert roc_auc_score(y, scores) > 0.9
    if loss == "f1":
        assert f1_score(y, scores > 0) > 0.7
    if loss == "break_even":
        assert (scores > 0).sum() == y.sum()


def test_the_area_is_the_hinge_of_all_pairs():
    """The whole problem solved once more, on all pairs, by LIBLINEAR."""
    from sklearn.svm import LinearSVC

    X, y = two_classes(60, 8)
    pairs = (X[y == 1][:, None] - X[y == 0]).reshape(-1, X.shape[1])
    # LIBLINEAR sums over pairs, and both signs of a pair make two classes for it.
    both = np.concatenate([pairs, -pairs]), np.repeat([1, -1], len(pairs))
    hinge = LinearSVC(C=10.0 / (2 * len(pairs)), loss="hinge", fit_intercept=False, tol=1e-8,
                      max_iter=10**6).fit(*both)  # fmt: skip
    mine = svm_perf.fit(X, y, C=10.0, loss="roc_area")(np.eye(3))
    mine = mine - svm_perf.fit(X, y, C=10.0, loss="roc_area")(np.zeros((1, 3)))
    assert np.corrcoef(mine, hinge.coef_[0])[0, 1] > 0.999
    np.testing.assert_allclose(mine, hinge.coef_[0], atol=0.1)


def test_a_path_of_models_for_table_4():
    X, y = two_classes()
    path = METHODS["SVM-Perf"](X, y, [1.0, 0.01], 0)
    assert path.scores(X, [0, 1]).shape == (len(X), 2)
    assert path.sizes == [3, 3]
    with pytest.raises(ValueError, match="loss='auc'"):
        svm_perf.fit(X, y, 1.0, "auc")
