"""RankRC and RankSVM as their users meet them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from made_tables import rare_mixture
from oracles.ordinal import TWO_CLASSES, ordinal_minimum
from rareclass import RankRC, RankSVM, rankrc_path
from rareclass.ranking import solve as module
from rareclass.ranking.rankrc import _share_outside

X, Y = rare_mixture(400, 30)


def test_the_model_is_the_minimum_of_problem_13():
    model = RankRC(lam=0.003, eps=0.3, tol=1e-10).fit(X, Y)
    K = np.exp(-((X[:, None] - X[None, Y == 1]) ** 2).sum(-1) / model.width_**2)
    value, scores = ordinal_minimum(K, K[Y == 1], 0.003, 0.3, Y, np.ones(len(Y)), TWO_CLASSES)
    assert model.objective_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(model.score_samples(X), scores, atol=1e-4)
    # Features are the kernel projected on the landmarks; scores are linear in them.
    F = model.transform(X)
    np.testing.assert_allclose(F @ F.T, K @ np.linalg.solve(K[Y == 1], K.T), atol=1e-6)
    w, *_ = np.linalg.lstsq(F, model.score_samples(X), rcond=None)
    np.testing.assert_allclose(F @ w, model.score_samples(X), atol=1e-7)


def test_rank_svm_is_the_minimum_over_all_landmarks():
    few = np.r_[0:90, np.flatnonzero(Y)[-10:]]
    model = RankSVM(lam=0.01, tol=1e-9).fit(X[few], Y[few])
    assert sorted(model.landmark_rows_) == list(range(100))
    wider = RankRC(lam=0.01, tol=1e-9).fit(X[few], Y[few])
    assert model.objective_ < wider.objective_  # more landmarks can only lower the minimum
    assert RankRC(landmarks="all", lam=0.01, tol=1e-9).fit(X[few], Y[few]).objective_ == (
        pytest.approx(model.objective_, rel=1e-12)
    )


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_rankrc_is_ranksvm_on_the_nystrom_features(kernel):
    X, y = rare_mixture(60, 8)
    new = rare_mixture(20, 3, seed=1)[0]
    own = {"lam": 0.01, "tol": 1e-10, "verbose": False}
    for landmarks in ("rare", [0, 5, 7, 20, 41]):
        model = RankRC(kernel=kernel, width=2.0, landmarks=landmarks, **own).fit(X, y)
        # The linear kernel of these features is K'.
        nystrom = RankSVM(kernel="linear", **own).fit(model.transform(X), y)
        found = nystrom.score_samples(model.transform(new))
        np.testing.assert_allclose(found, model.score_samples(new), atol=1e-6)
        assert nystrom.objective_ == pytest.approx(model.objective_, rel=1e-9)


def test_the_majority_is_not_copied():
    import tracemalloc

    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60_000, 50))
    y = np.zeros(60_000, dtype=int)
    y[:20] = 1
    wide[:20] += 1.0
    RankRC().fit(wide[:100], y[:100])  # compile and import first
    tracemalloc.start()
    RankRC(memory="1MiB", n_jobs=1).fit(wide, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Row-sized vectors (scores, indices, sorted copies for the threshold), not a copy of the
    # table, which would be 24 MB.
    assert peak < 0.6 * wide.nbytes


def test_the_path_is_the_fits_one_by_one_in_the_order_asked():
    lams = [0.01, 4.0, 0.0001]
    path = rankrc_path(X, Y, lams, tol=1e-9)
    assert [model.lam for model in path] == lams
    for model in path:
        alone = RankRC(lam=model.lam, tol=1e-9).fit(X, Y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-9)
        assert model.offset_ == pytest.approx(alone.offset_, abs=1e-4)
    assert rankrc_path(X, Y, []) == []


def test_landmarks_that_are_points_and_what_is_no_rule():
    assert RankRC(pos_label=0).fit(X, Y).landmarks_.shape == (370, 4)  # rare is what is named
    points = np.random.default_rng(0).normal(size=(5, 4))
    model = RankRC(landmarks=points).fit(X, Y)
    assert model.landmark_rows_ is None
    assert model.dual_coef_.shape == (5,)
    arrays = (np.array([9999]), np.array([0.5]), np.ones((2, 7)))
    for wrong in ("some", 0, [], ("rare", 0), ("some", 3), *arrays):
        with pytest.raises(ValueError, match="landmarks"):
            RankRC(landmarks=wrong).fit(X, Y)


def test_copies_of_rare_rows_and_constant_features_are_harmless():
    rare = X[Y == 1]
    data = np.column_stack([np.vstack([X, rare, rare]), np.full(460, 7.0)])
    y = np.r_[Y, np.ones(60, dtype=int)]
    model = RankRC(lam=2.0**-20, max_iter=500).fit(data, y)
    assert model.status_ == "converged"
    assert model.landmarks_.shape[0] == 30


def test_a_single_rare_row_is_enough():
    y = np.zeros(len(X))
    y[5] = 1
    model = RankRC().fit(X, y)
    assert model.landmarks_.shape[0] == 1
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize(
    ("y", "message"), [(0 * Y, "one class only"), (np.arange(400) % 3, "OrdinalRankRC")]
)
def test_labels_that_are_no_two_classes_are_told_what_to_do(y, message):
    with pytest.raises(ValueError, match=message):
        RankRC().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0}, "lam"),
        ({"lam": -1.0}, "lam"),
        ({"lam": np.nan}, "lam"),
        ({"width": 0}, "width"),
        ({"width": "median"}, "width"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 200.0}, "max_iter=200.0 must be a whole number above 0"),
        ({"lam": True}, "lam=True must be a number above 0"),
        ({"memory": "2 giga"}, "memory"),
        ({"memory": "1KiB"}, "landmarks"),
        ({"memory": "1kB", "landmarks": ("rare", 5)}, "rare rows .*at least memory.*k of at most"),
        ({"kernel": "rbf"}, "gaussian"),
        ({"loss": "hinge"}, "smoothed_hinge"),
        ({"eps": 0.7}, "eps"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"pos_label": "fraud"}, "fraud"),
        *(
            ({name: None}, name)
            for name in ("lam", "tol", "max_iter", "width", "loss", "kernel", "landmarks")
        ),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameters, message):
    with pytest.raises(ValueError, match=message):
        RankRC(**parameters).fit(X, Y)


def test_tables_that_cannot_be_read_say_who_makes_them_readable():
    with pytest.raises(ValueError, match=r"'city'.*TableVectorizer"):
        RankRC().fit(pd.DataFrame(X, columns=list("abcd")).assign(city="Toronto"), Y)
    with pytest.raises(ValueError, match=r"column 1 .* too large.*StandardScaler"):
        RankRC().fit(np.where(np.arange(1600).reshape(400, 4) == 13, 1e200, X), Y)


def test_stopping_short_warns_and_says_so():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RankRC(max_iter=1, lam=1e-6).fit(X, Y)
    assert model.status_ == "reached max_iter"
    assert model.n_iter_ == 1
    assert model.optimality_ > 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankRC(tol=1e-15, max_iter=500).fit(X, Y)  # rounding error is not worth a warning


@pytest.mark.parametrize(("common", "rare"), [("ok", "fraud"), ("a", "z")])
def test_a_row_at_the_threshold_is_not_rare_whichever_label_sorts_first(common, rare):
    y = np.where(Y == 1, rare, common)
    model = RankRC().fit(np.ones((400, 2)), y)
    assert set(model.predict(np.ones((5, 2)))) == {common}
    decision = model.decision_function(np.ones((5, 2)))
    np.testing.assert_array_equal(model.classes_[(decision > 0).astype(int)], [common] * 5)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_the_stability_bound_knows_the_largest_kernel_value_of_the_rows(size):
    rows = size * X
    model = RankRC(kernel="linear", landmarks=5, random_state=0).fit(rows, Y)
    wanted = model.stability_bound(rows, Y, kappa=float((rows**2).sum(axis=1).max()))
    assert model.stability_bound(rows, Y) == pytest.approx(wanted)


def test_columns_of_transform_are_named_after_the_machine():
    model = RankRC(width=50.0).fit(X, Y)  # nearly equal eigenvalues
    named = model.set_output(transform="pandas").transform(X)
    assert named.shape == (len(X), model.whitener_.shape[1])
    assert list(named.columns[:2]) == ["rankrc0", "rankrc1"]


@pytest.mark.parametrize("factor", [1e160, 1e-160, 1e-300])
def test_only_ratios_of_weights_count(factor):
    weight = 1.0 + np.arange(400) % 3
    wanted = RankRC().fit(X, Y, weight)
    found = RankRC().fit(X, Y, factor * weight)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-9)
    assert found.status_ == "converged"


@given(
    st.sets(st.integers(0, 40), min_size=1),
    st.lists(st.integers(0, 50), max_size=12),
    st.booleans(),
)
def test_share_of_rows_outside_the_landmarks(rows, chosen, weighted):
    rows, chosen = np.sort(np.array(list(rows), np.int32)), np.array(chosen, np.int64)
    weight = np.arange(1.0, len(rows) + 1.0) if weighted else None
    wanted = np.average(~np.isin(rows, chosen), weights=weight)
    assert _share_outside(rows, weight, chosen) == pytest.approx(wanted, abs=1e-12)


def test_tol_is_looser_on_many_rows(monkeypatch):
    exact = RankRC(lam=2.0**-8).fit(X, Y)
    assert exact.optimality_ <= 1e-6
    monkeypatch.setattr(module, "_MANY_ROWS", np.count_nonzero(Y == 0) - 1)
    many = RankRC(lam=2.0**-8).fit(X, Y)
    assert 1e-6 < many.optimality_ <= 1e-3
    assert many.history_[-1].passes < exact.history_[-1].passes
    assert RankRC(lam=2.0**-8, tol=1e-6).fit(X, Y).optimality_ <= 1e-6
    assert RankRC(lam=2.0**-8, penalty="l1").fit(X, Y).optimality_ <= 1e-6
    with pytest.raises(ValueError, match="tol='loose' must be 'auto' or a number above 0"):
        RankRC(tol="loose").fit(X, Y)
