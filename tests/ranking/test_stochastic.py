"""StochasticRankRC as its users meet it."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score

from draws import draws
from made_tables import rare_mixture
from oracles.pairs import pair_loss
from rareclass import RankRC, StochasticRankRC
from rareclass.rows import from_arrays, from_parquet

X, Y = rare_mixture(400, 30)
WIDE, WIDE_Y = rare_mixture(6000, 120, seed=1)
WIDTH = 2.8
RARE_FIRST = np.argsort(Y == 0, kind="stable")
LOSSES = ("smoothed_hinge", "squared_hinge")
quiet = pytest.mark.filterwarnings("ignore:lam=.*:sklearn.exceptions.ConvergenceWarning")


def objective(model, X, y, lam, weight=None, eps=0.5):
    """Problem (13) at a model, by all pairs."""
    weight = np.ones(len(y)) if weight is None else weight
    scores, rare = model.score_samples(X), y == 1
    loss = pair_loss(scores[rare][:, None] - scores[~rare][None, :], eps)
    Z = model.landmarks_
    K = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(-1) / model.width_**2)
    w, v = weight[rare] / weight[rare].sum(), weight[~rare] / weight[~rare].sum()
    return w @ loss @ v + 0.5 * lam * model.dual_coef_ @ K @ model.dual_coef_


def streamed(model, X, y, cuts, weight=None):
    """A model after the rows came in parts."""
    edges = [0, *sorted(cuts), len(y)]
    for start, stop in itertools.pairwise(edges):
        if stop > start:
            part = slice(start, stop)
            w = None if weight is None else weight[part]
            model.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=w)
    return model


def assert_same(one, other, rtol=1e-9):
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, rtol=rtol, atol=1e-9)
    assert one.offset_ == pytest.approx(other.offset_, rel=1e-9)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)


# -- the same minimum as the exact solver ----------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("lam", [1.0, 2**-8, 2**-14])
def test_few_rows_are_one_batch_and_its_steps_are_newtons(loss, lam):
    few = np.r_[0:220, np.flatnonzero(Y)[-8:]]
    exact = RankRC(lam=lam, loss=loss, tol=1e-9).fit(X[few], Y[few])
    model = StochasticRankRC(lam=lam, loss=loss, tol=1e-9, max_iter=60).fit(X[few], Y[few])
    assert model.status_ == "converged"
    assert model.width_ == pytest.approx(exact.width_, rel=1e-12)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    np.testing.assert_allclose(model.score_samples(X), exact.score_samples(X), atol=2e-3)


@pytest.mark.sampled(1)
@quiet
@pytest.mark.parametrize("lam", [1.0, 2**-4, 2**-8, 2**-12, 2**-16])
def test_five_passes_reach_one_percent(lam):
    exact = RankRC(lam=lam).fit(WIDE, WIDE_Y)
    model = StochasticRankRC(lam=lam, max_iter=5, tol=1e-9, random_state=0).fit(WIDE, WIDE_Y)
    found = objective(model, WIDE, WIDE_Y, lam)
    assert exact.objective_ <= found * (1 + 1e-9)
    assert found <= 1.01 * exact.objective_
    assert model.objective_ == pytest.approx(exact.objective_, rel=0.02)
    # The gap that is reported is no smaller than the true one.
    assert found / exact.objective_ - 1.0 <= model.optimality_


def test_it_stops_once_the_running_average_says_so():
    model = StochasticRankRC(lam=0.01, tol=0.01, random_state=0).fit(WIDE, WIDE_Y)
    assert model.status_ == "converged"
    assert model.optimality_ <= 0.01
    assert model.n_iter_ == len(model.history_) < 20
    assert model.history_[-1].passes <= model.n_iter_
    exact = RankRC(lam=0.01).fit(WIDE, WIDE_Y)
    assert objective(model, WIDE, WIDE_Y, 0.01) <= 1.01 * exact.objective_


def test_stopping_short_warns():
    with pytest.warns(ConvergenceWarning, match="after 1 passes with an estimated relative gap"):
        model = StochasticRankRC(lam=1e-6, max_iter=1, tol=1e-9).fit(X, Y)
    assert model.status_ == "reached max_iter"


@quiet
def test_landmarks_are_those_of_the_exact_model():
    parameters = {"landmarks": ("rare", 12), "random_state": 3, "lam": 0.01}
    exact = RankRC(**parameters).fit(WIDE, WIDE_Y)
    model = StochasticRankRC(**parameters).fit(WIDE, WIDE_Y)
    np.testing.assert_array_equal(model.landmarks_, exact.landmarks_)
    assert (model.n_landmarks_, model.n_rare_) == (12, 120)
    assert objective(model, WIDE, WIDE_Y, 0.01) <= 1.01 * exact.objective_
    points = StochasticRankRC(landmarks=X[:5], lam=0.01).fit(WIDE, WIDE_Y)
    exact = RankRC(landmarks=X[:5], lam=0.01).fit(WIDE, WIDE_Y)
    np.testing.assert_array_equal(points.landmarks_, exact.landmarks_)
    assert objective(points, WIDE, WIDE_Y, 0.01) <= 1.01 * exact.objective_


@pytest.mark.sampled(0)
def test_the_threshold_has_the_best_balanced_accuracy():
    model = StochasticRankRC(lam=0.01).fit(X, Y)
    scores = model.score_samples(X)
    found = balanced_accuracy_score(Y, model.predict(X))
    best = max(balanced_accuracy_score(Y, scores > t) for t in np.r_[-np.inf, np.sort(scores)])
    assert found == pytest.approx(best)


# -- weights ---------------------------------------------------------------------------------


def test_weights_are_copies_where_all_rows_are_one_batch():
    few = np.r_[0:100, np.flatnonzero(Y)[-6:]]
    weight = np.random.default_rng(0).integers(0, 3, len(few))
    copies = np.repeat(few, weight)
    kwargs = {"lam": 0.01, "batch_size": 1000, "tol": 1e-8, "max_iter": 60, "random_state": 0}
    one = StochasticRankRC(**kwargs).fit(X[few], Y[few], sample_weight=weight)
    other = StochasticRankRC(**kwargs).fit(X[copies], Y[copies])
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), atol=1e-5)
    scaled = StochasticRankRC(**kwargs).fit(X[few], Y[few], sample_weight=1e150 * weight)
    np.testing.assert_allclose(one.score_samples(X), scaled.score_samples(X), atol=1e-9)


@quiet
def test_weights_in_mini_batches_have_the_minimum_of_the_copies():
    weight = np.random.default_rng(0).integers(0, 4, len(WIDE_Y)).astype(float)
    exact = RankRC(lam=0.003).fit(WIDE, WIDE_Y, sample_weight=weight)
    model = StochasticRankRC(lam=0.003, random_state=0, max_iter=5, tol=1e-9)
    model.fit(WIDE, WIDE_Y, sample_weight=weight)
    assert model.width_ == pytest.approx(exact.width_, rel=1e-12)
    assert objective(model, WIDE, WIDE_Y, 0.003, weight) <= 1.001 * exact.objective_


def test_weight_zero_is_absence_in_a_stream():
    weight = np.random.default_rng(0).integers(0, 2, len(Y))
    kwargs = {"lam": 0.01, "batch_size": 64, "random_state": 0}
    one = streamed(StochasticRankRC(**kwargs), X, Y, [100], weight)
    there = weight > 0
    assert_same(one, streamed(StochasticRankRC(**kwargs), X[there], Y[there], []))


# -- streams ---------------------------------------------------------------------------------


@draws(10)
@given(st.lists(st.integers(0, 400), max_size=6), st.integers(0, 10**6))
def test_a_stream_may_be_cut_anywhere(cuts, seed):
    order = np.random.default_rng(seed).permutation(400)
    kwargs = {"lam": 0.003, "batch_size": 90, "random_state": 1}
    whole = streamed(StochasticRankRC(**kwargs), X[order], Y[order], [])
    parts = streamed(StochasticRankRC(**kwargs), X[order], Y[order], cuts)
    assert_same(parts, whole)


@pytest.mark.thorough
def test_one_row_at_a_time():
    kwargs = {"lam": 0.003, "batch_size": 70, "random_state": 1}
    whole = streamed(StochasticRankRC(**kwargs), X[:150], Y[:150], [])
    assert_same(streamed(StochasticRankRC(**kwargs), X[:150], Y[:150], range(150)), whole)


@quiet
def test_a_stream_with_the_rare_rows_first_is_one_pass_of_fit():
    rows, y = X[RARE_FIRST], Y[RARE_FIRST]
    kwargs = {"lam": 0.003, "batch_size": 64, "random_state": 1, "width": WIDTH}
    stream = streamed(StochasticRankRC(**kwargs), rows, y, [50, 51, 200, 333])
    fitted = StochasticRankRC(**kwargs, max_iter=1, shuffle=False).fit(rows, y)
    assert_same(stream, fitted)


@quiet
def test_a_fit_can_go_on_as_a_stream():
    model = StochasticRankRC(lam=0.01, random_state=0, max_iter=2).fit(X, Y)
    before = model.objective_
    for _ in range(10):
        model.partial_fit(X, Y)
    assert model.n_rare_ == 30 * 11
    assert model.status_ in ("learning", "converged")
    assert model.objective_ == pytest.approx(before, rel=0.1)


@pytest.mark.sampled(0)
def test_rare_rows_that_come_late_join_the_loss_and_the_landmarks():
    order = np.argsort(WIDE_Y == 1, kind="stable")[60:]  # the rare rows last
    rows, y = WIDE[order], WIDE_Y[order]
    early = np.r_[np.flatnonzero(y)[:20], 0 : len(y)]
    kwargs = {"lam": 2**-8, "batch_size": 300, "random_state": 0, "width": WIDTH}
    model = streamed(StochasticRankRC(**kwargs), rows[early[:2020]], y[early[:2020]], [])
    assert (model.n_rare_, model.n_landmarks_) == (20, 20)
    few = streamed(StochasticRankRC(**kwargs, landmarks=("rare", 25)), rows, y, [])
    late = np.flatnonzero(y)[20:]
    for _ in range(6):
        for stream in (model, few):
            more = np.r_[late, 0:5000] if stream.n_rare_ < 100 else np.arange(5000)
            stream.partial_fit(rows[more], y[more], classes=[0, 1])
    assert (model.n_rare_, model.n_landmarks_) == (len(late) + 20, len(late) + 20)
    assert few.n_landmarks_ == 25
    seen = np.r_[np.flatnonzero(y), 0:5000]
    exact = RankRC(lam=2**-8, width=WIDTH, landmarks=model.landmarks_).fit(rows[seen], y[seen])
    assert objective(model, rows[seen], y[seen], 2**-8) <= 1.02 * exact.objective_


def test_before_both_classes_came_every_row_scores_zero():
    model = StochasticRankRC(batch_size=50, width=WIDTH)
    majority = X[Y == 0]
    model.partial_fit(majority[:120], np.zeros(120, int), classes=[0, 1])
    np.testing.assert_array_equal(model.score_samples(X), 0.0)
    assert model.predict(X[:3]).tolist() == [0, 0, 0]
    assert model.transform(X[:3]).shape == (3, 0)
    model.partial_fit(X[Y == 1], np.ones(30, int))
    np.testing.assert_array_equal(model.score_samples(X[:3]) != 0.0, True)
    model.partial_fit(majority[120:], np.zeros(len(majority) - 120, int))
    assert model.score(X, Y) > 0.8


def test_a_short_stream_is_learned_to_the_end():
    stream = StochasticRankRC(lam=0.01, width=WIDTH).partial_fit(X, Y, classes=[0, 1])
    exact = RankRC(lam=0.01, width=WIDTH).fit(X, Y)
    assert stream.objective_ == pytest.approx(exact.objective_, rel=1e-5)


def test_a_copy_goes_on_like_the_original():
    half = StochasticRankRC(batch_size=60, random_state=0).partial_fit(X[:250], Y[:250], [0, 1])
    others = [copy.deepcopy(half), pickle.loads(pickle.dumps(half))]
    half.partial_fit(X[250:], Y[250:])
    for other in others:
        assert_same(other.partial_fit(X[250:], Y[250:]), half)


def test_the_rows_given_may_be_changed_afterwards():
    rows = X.copy()
    model = StochasticRankRC(batch_size=90, random_state=0).partial_fit(rows, Y, [0, 1])
    rows[:] = np.nan
    assert_same(model, StochasticRankRC(batch_size=90, random_state=0).partial_fit(X, Y, [0, 1]))


# -- same seed, same answer ------------------------------------------------------------------


@pytest.mark.sampled(1)
@quiet
@pytest.mark.parametrize("container", [sparse.csr_array, pd.DataFrame, sparse.csr_matrix])
def test_threads_and_containers_do_not_change_the_model(container):
    kwargs = {"lam": 0.003, "batch_size": 100, "random_state": 4, "max_iter": 2}
    one = StochasticRankRC(**kwargs, n_jobs=1).fit(X, Y)
    assert_same(StochasticRankRC(**kwargs, n_jobs=2).fit(X, Y), one)
    rows = container(X)
    other = StochasticRankRC(**kwargs).fit(rows, Y)
    np.testing.assert_allclose(other.score_samples(rows), one.score_samples(X), rtol=1e-6)
    assert (
        one.dual_coef_ != StochasticRankRC(**{**kwargs, "random_state": 5}).fit(X, Y).dual_coef_
    ).any()


@quiet
@pytest.mark.parametrize("shuffle", [True, False])
def test_rows_on_disk_give_the_model_of_rows_in_memory(tmp_path, shuffle):
    names = [f"x{k}" for k in range(X.shape[1])]
    table = pa.table({**dict(zip(names, X.T, strict=True)), "y": Y})
    pq.write_table(table, tmp_path / "rows.parquet")
    kwargs = {"lam": 0.003, "batch_size": 100, "random_state": 4, "shuffle": shuffle, "n_jobs": 1}
    with from_parquet(tmp_path / "rows.parquet", target="y") as rows:
        disk = StochasticRankRC(**kwargs, max_iter=3).fit_rows(rows)
    memory = StochasticRankRC(**kwargs, max_iter=3).fit(X, Y)
    np.testing.assert_array_equal(disk.dual_coef_, memory.dual_coef_)
    assert disk.offset_ == memory.offset_
    assert list(disk.feature_names_in_) == names
    assert_same(StochasticRankRC(**kwargs, max_iter=3).fit_rows(from_arrays(X, Y)), memory)


@quiet
def test_float32_agrees():
    kwargs = {"lam": 0.01, "batch_size": 100, "random_state": 4}
    narrow = StochasticRankRC(**kwargs).fit(X.astype(np.float32), Y)
    assert narrow.landmarks_.dtype == np.float32
    wanted = StochasticRankRC(**kwargs).fit(X, Y)
    assert narrow.objective_ == pytest.approx(wanted.objective_, rel=1e-3)


# -- interruption and errors -----------------------------------------------------------------


def test_ctrl_c_leaves_what_was_learned():
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1) / 8.0)

    model = StochasticRankRC(kernel=kernel, batch_size=60, n_jobs=1, lam=0.01)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.state_.learned.n_batches > 2
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0.0}, "lam=0.0 must be a number above 0"),
        ({"tol": "a"}, "tol='a' must be a number above 0"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number above 0"),
        ({"block_rows": 1.5}, "block_rows=1.5 must be a whole number"),
        ({"batch_size": -1}, "batch_size=-1 must be a whole number above 0 or 'auto'"),
        ({"landmarks": "all"}, "landmarks='all' .* majority, which is not held.* RankRC takes"),
        ({"landmarks": ("rare", 0)}, "with k a whole number of at least 1"),
        ({"landmarks": ("rare+majority", 3)}, "is not 'rare'"),
        ({"landmarks": np.ones((2, 9))}, "landmarks has 9 columns, X has 4"),
        ({"loss": "pnorm_push"}, "is not a plain sum over pairs"),
        ({"loss": "nothing"}, "loss='nothing' is not one of"),
        ({"width": "wide"}, "width='wide' is not 'mean'"),
        ({"pos_label": 7}, "pos_label=7 is not among the labels"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters, message):
    with pytest.raises(ValueError, match=message):
        StochasticRankRC(**parameters).fit(X, Y)


def test_bad_streams_are_refused():
    model = StochasticRankRC()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, Y)
    model.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="row 0: label 5 is not among the classes"):
        model.partial_fit(X[:1], [5])
    with pytest.raises(ValueError, match=r"classes=\[1, 2\] is not \[0, 1\] as before"):
        model.partial_fit(X, Y, classes=[1, 2])
    with pytest.raises(ValueError, match="no label at all: row 1"):
        model.partial_fit(X[:2], [0.0, np.nan])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X, Y[:-1])


def one_bad_row():
    rows = X.copy()
    rows[-1, 0] = np.nan
    return rows


@pytest.mark.parametrize(
    ("parameters", "call"),
    [
        ({}, lambda: (X, np.full(400, 7), [0, 1])),
        ({}, lambda: (X, Y[:-1], [0, 1])),
        ({}, lambda: (X, Y, [0, 1], np.full(400, -1.0))),
        ({}, lambda: (one_bad_row(), Y, [0, 1])),
        ({"pos_label": 2}, lambda: (X, Y, [0, 1])),
        ({"width": "wide"}, lambda: (X, Y, [0, 1])),
        ({"memory": "1KiB"}, lambda: (X, Y, [0, 1])),
        ({"landmarks": np.ones((2, 9))}, lambda: (X, Y, [0, 1])),
    ],
)
def test_a_first_call_that_fails_leaves_no_trace(parameters, call):
    model = StochasticRankRC(**parameters, batch_size=100)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"\w"):
        model.partial_fit(*call())
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.score_samples(X)
    model.set_params(**{name: getattr(StochasticRankRC(), name) for name in parameters})
    model.partial_fit(X[:, :3], Y + 6, classes=[6, 7])
    assert (model.n_features_in_, model.classes_.tolist()) == (3, [6, 7])


@pytest.mark.parametrize("bad", [{"width": "wide"}, {"memory": "1KiB"}])
def test_a_later_call_that_fails_can_be_made_again(bad):
    # The rows of the first 4,096 are read, and wait, when the mini-batch that they are in fails.
    good = {"batch_size": 5000, "random_state": 0, "width": WIDTH, "memory": "2GiB"}
    model = streamed(StochasticRankRC(**good), WIDE[:300], WIDE_Y[:300], [])
    rest, y = WIDE[300:], WIDE_Y[300:]
    with pytest.raises(ValueError, match=next(iter(bad))):
        model.set_params(**bad).partial_fit(rest, y)
    assert model.state_.n_waiting == np.count_nonzero(WIDE_Y[:300] == 0)
    fresh = streamed(StochasticRankRC(**good), WIDE[:300], WIDE_Y[:300], [])
    assert model.state_.rng.bit_generator.state == fresh.state_.rng.bit_generator.state
    again = model.set_params(**good).partial_fit(rest, y)
    assert_same(again, streamed(StochasticRankRC(**good), WIDE, WIDE_Y, [300]))


def test_a_fit_that_fails_leaves_what_was_there():
    model = StochasticRankRC(width="wide")
    with pytest.raises(ValueError, match="width="):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]
    model.set_params(width=WIDTH).fit(X, Y)
    scores = model.score_samples(X)
    with pytest.raises(ValueError, match="width="):
        model.set_params(width="wide").fit(X[:, :3], Y + 6)
    np.testing.assert_array_equal(model.set_params(width=WIDTH).score_samples(X), scores)
    assert model.classes_.tolist() == [0, 1]


@quiet
def test_labels_of_any_kind_whichever_sorts_first():
    reference = StochasticRankRC(random_state=0).fit(X, Y)
    for common, rare in (("ok", "fraud"), (1, 0)):
        y = np.where(Y == 1, rare, common)
        model = StochasticRankRC(random_state=0).fit(X, y)
        assert model.pos_label_ == rare
        np.testing.assert_array_equal(model.predict(X) == rare, reference.predict(X) == 1)
        stream = StochasticRankRC(random_state=0, pos_label=rare).partial_fit(X, y, [common, rare])
        assert stream.score(X, y) > 0.8


def test_no_warning_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StochasticRankRC().fit(X, Y)
