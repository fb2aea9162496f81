"""StochasticRankRC as its users meet it, and its parts against plain answers."""

import gc
import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score

from draws import draws
from made_tables import rare_mixture
from oracles.ordinal import TWO_CLASSES, ordinal_loss
from oracles.pairs import pair_loss
from rareclass import RankRC, StochasticRankRC
from rareclass.ranking.problem import Evaluation
from rareclass.ranking.running_model import RunningModel, end_of_step, sampled_curvature
from rareclass.ranking.stochastic_rankrc import CAPACITY

X, Y = rare_mixture(400, 30)
WIDE, WIDE_Y = rare_mixture(6000, 120, seed=1)
WIDTH = 2.8
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
    assert model.n_iter_ < 20
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
@pytest.mark.parametrize("machine", [RankRC, StochasticRankRC])
def test_the_threshold_has_the_best_balanced_accuracy(machine):
    model = machine(lam=0.01).fit(X, Y)
    scores = model.score_samples(X)
    found = balanced_accuracy_score(Y, model.predict(X))
    best = max(balanced_accuracy_score(Y, scores > t) for t in np.r_[-np.inf, np.sort(scores)])
    assert found == pytest.approx(best)


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
    kwargs = {"lam": 0.01, "random_state": 0}
    one = streamed(StochasticRankRC(**kwargs), X, Y, [100], weight)
    there = weight > 0
    cut = np.count_nonzero(there[:100])
    assert_same(one, streamed(StochasticRankRC(**kwargs), X[there], Y[there], [cut]))


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
    rare, majority = WIDE[WIDE_Y == 1], WIDE[WIDE_Y == 0]
    for landmarks, wanted in (("rare", 120), (("rare", 25), 25)):
        model = StochasticRankRC(lam=2**-8, landmarks=landmarks, width=WIDTH, random_state=0)
        model.partial_fit(np.r_[rare[:20], majority[:500]], np.arange(520) < 20, [False, True])
        assert (model.n_rare_, model.n_landmarks_) == (20, 20)
        model.partial_fit(rare[20:], np.ones(100, bool))
        for start in range(0, 5000, 500):
            model.partial_fit(majority[start : start + 500], np.zeros(500, bool))
        assert (model.n_rare_, model.n_landmarks_) == (120, wanted)
        rows, y = np.r_[rare, majority[:5000]], np.arange(5120) < 120
        exact = RankRC(lam=2**-8, width=WIDTH, landmarks=model.landmarks_).fit(rows, y)
        assert objective(model, rows, y, 2**-8) <= 1.02 * exact.objective_


def test_before_both_classes_came_every_row_scores_zero():
    model = StochasticRankRC(width=WIDTH)
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


def test_the_rows_given_may_be_changed_afterwards():
    rows = X.copy()
    model = StochasticRankRC(random_state=0).partial_fit(rows, Y, [0, 1])
    rows[:] = np.nan
    assert_same(model, StochasticRankRC(random_state=0).partial_fit(X, Y, [0, 1]))


def test_ctrl_c_leaves_what_was_learned():
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += 1
        if calls == 10:
            raise KeyboardInterrupt
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1) / 8.0)

    model = StochasticRankRC(kernel=kernel, n_jobs=1, lam=0.01)
    with pytest.raises(KeyboardInterrupt):
        model.fit(WIDE, WIDE_Y)
    assert model.state_.n_batches > 2
    assert model.score(WIDE, WIDE_Y) > 0.75


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0.0}, "lam=0.0 must be a number above 0"),
        ({"tol": "a"}, "tol='a' must be a number above 0"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number above 0"),
        ({"batch_size": -1}, "batch_size=-1 must be a whole number above 0 or 'auto'"),
        ({"landmarks": ("rare", 0)}, "with k a whole number of at least 1"),
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


@pytest.mark.parametrize("bad", [{"width": "wide"}, {"memory": "1KiB"}])
def test_a_call_that_fails_can_be_made_again(bad):
    model = StochasticRankRC(random_state=0).set_params(**bad)
    with pytest.raises(ValueError, match=next(iter(bad))):
        model.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(NotFittedError):
        model.score_samples(X)
    model.set_params(width="mean", memory="2GiB").partial_fit(X, Y, classes=[0, 1])
    assert model.n_rare_ == 30
    scores = model.score_samples(X)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 4), np.nan), Y[:5])
    np.testing.assert_array_equal(model.score_samples(X), scores)


def test_a_first_call_that_was_refused_leaves_an_estimator_that_is_not_fitted():
    model = StochasticRankRC()
    with pytest.raises(ValueError, match="inconsistent"):
        model.partial_fit(X, Y[:-1], classes=[0, 1])
    with pytest.raises(NotFittedError):
        model.score_samples(X)
    model.partial_fit(X[:, :3], Y + 6, classes=[6, 7])
    assert (model.n_features_in_, model.classes_.tolist()) == (3, [6, 7])


@pytest.mark.sampled(0)
def test_a_stream_of_any_length_takes_the_same_memory():
    rng = np.random.default_rng(0)
    rare = rng.normal(size=(40, 6)) + 1.0

    def run(n):
        model = StochasticRankRC(n_jobs=1, width=3.0, random_state=0)
        model.partial_fit(rare, np.ones(40, int), classes=[0, 1])
        for _ in range(n):
            model.partial_fit(rng.normal(size=(2000, 6)), np.zeros(2000, int))
            gc.collect(1)  # threadpoolctl 3.5 leaves 18 KB a call to Python's collector
        return model

    run(1)  # compiled and imported
    held, peaks = [], []
    for n in (6, 30):
        tracemalloc.start()
        model = run(n)
        assert len(model.state_.sample.weight) <= CAPACITY
        now, peak = tracemalloc.get_traced_memory()
        held.append(now)
        peaks.append(peak)
        tracemalloc.stop()
    # 24 parts more, of 2,000 rows: their labels alone, kept, would be 384,000 bytes.
    assert held[1] - held[0] < 24 * 2000 * 5
    assert peaks[1] - peaks[0] < 24 * 2000 * 5


def test_what_does_not_fit_is_refused_by_name():
    with pytest.raises(ValueError, match=r"30 landmarks .*or pass landmarks=\('rare', k\) with k"):
        StochasticRankRC(memory="20KiB").fit(X, Y)


LAM = 0.01


def a_batch(n_rare=30, n=80, seed=0):
    """A mini-batch, its dense features, labels and weights, and a point."""
    rng = np.random.default_rng(seed)
    rows = np.r_[rng.normal(size=(n_rare, 3)) + 0.5, rng.normal(size=(n, 3))]
    y = np.repeat([1, 0], [n_rare, n])
    weight = rng.uniform(0.5, 2.0, n_rare + n)
    landmarks = rows[:20]
    model = RankRC(eps=0.3, lam=LAM, width=2.0, landmarks=landmarks)
    prepared = model._prepare(rows, y == 1, weight)
    problem = replace(prepared.problem(LAM), slot=None)
    F = prepared.expansion.kernel.block(rows, prepared.landmarks.points) @ problem.whitener
    weight /= np.bincount(y, weight)[y]
    return problem, (F, y, weight), rng.normal(size=problem.rank)


def dense_model(batch, w):
    """Value, gradient and Hessian of the objective by all pairs."""
    F, y, weight = batch
    value, by_row, H = ordinal_loss(F @ w, y, weight, TWO_CLASSES, 0.3)
    value, gradient = value + 0.5 * LAM * w @ w, F.T @ by_row + LAM * w
    return value, gradient, F.T @ H @ F + LAM * np.eye(len(w))


def point(w, value, gradient):
    return Evaluation(w, value, gradient, None, None, None)


def test_the_sampled_curvature_is_right_on_average():
    problem, batch, w = a_batch(n_rare=40, n=200)
    H, at, rng = dense_model(batch, w)[2], problem.evaluate(w), np.random.default_rng(0)
    # So few pairs are all looked at.
    np.testing.assert_allclose(sampled_curvature(problem, at, 500, rng), H, rtol=1e-8, atol=1e-12)
    samples = [sampled_curvature(problem, at, 20, rng) for _ in range(600)]
    assert np.linalg.norm(samples[0] - H) > 0.05 * np.linalg.norm(H)
    assert np.linalg.norm(np.mean(samples, axis=0) - H) < 0.03 * np.linalg.norm(H)
    assert all(np.linalg.eigvalsh(sample)[0] > -1e-12 for sample in samples[:20])


def test_a_step_that_leads_up_is_shortened():
    problem, batch, w = a_batch()
    value, gradient, _ = dense_model(batch, w)
    for size in (1e-3, 10.0, 1e3, 1e6):
        at = end_of_step(problem, w, -size * gradient, 0.0)
        assert at.value < value
        assert at.value == pytest.approx(dense_model(batch, at.w)[0])
        if size < 1.0:
            np.testing.assert_array_equal(at.w, w - size * gradient)
    # What leads up from its start is cut down to what passes for noise, or not taken.
    assert end_of_step(problem, w, 1e3 * gradient, 0.01).value <= 1.01 * value
    np.testing.assert_array_equal(end_of_step(problem, w, 1e12 * gradient, 0.0).w, w)


@draws(30)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_the_running_model_is_an_average_that_forgets_by_the_cube(seed, n_batches):
    rng, rank = np.random.default_rng(seed), 4
    model, seen, mass = RunningModel.empty(rank), [], 0.0
    for _ in range(n_batches):
        root, w = rng.normal(size=(rank, rank)), rng.normal(size=rank)
        weight = rng.uniform(0.5, 3.0)
        H = root @ root.T + 0.3 * np.eye(rank)
        batch = point(w, float(rng.normal()), rng.normal(size=rank))
        model = model.updated(batch, H, weight, model.share_of(weight, 0.0))
        mass += weight
        seen.append((weight * mass**3, batch, H))
    total = sum(a for a, *_ in seen)

    def q(w):
        away = [(a, b, H, w - b.w) for a, b, H in seen]
        each = [a * (b.value + b.gradient @ d + 0.5 * d @ H @ d) for a, b, H, d in away]
        return sum(each) / total

    w = rng.normal(size=rank)
    assert model.value(w) == pytest.approx(q(w), rel=1e-8, abs=1e-9)
    end = w + model.step(w)[0]
    for _ in range(5):
        assert q(end + 0.1 * rng.normal(size=rank)) > q(end)
    # In other coordinates, of which the old ones are some, it is the same function.
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0][:rank]
    assert model.moved(turn).value(turn.T @ w) == pytest.approx(model.value(w))


def test_a_batch_that_is_the_whole_replaces_the_model():
    batch = point(np.zeros(2), 1.0, np.ones(2))
    model = RunningModel.empty(2).updated(batch, np.eye(2), 1.0, 1.0)
    other = point(np.ones(2), 3.0, -np.ones(2))
    model = model.updated(other, 2.0 * np.eye(2), 1.0, model.share_of(1.0, 1.0))
    assert model.value(np.ones(2)) == pytest.approx(3.0)
    np.testing.assert_allclose(model.A, 2.0 * np.eye(2))


def test_what_lacked_rare_rows_counts_less():
    batch, model = point(np.zeros(2), 1.0, np.ones(2)), RunningModel.empty(2)
    for _ in range(50):
        model = model.updated(batch, np.eye(2), 1.0, model.share_of(1.0, 0.0))
    assert model.share_of(1.0, 0.0) == pytest.approx(4 / 51, rel=0.05)
    assert model.discounted(0.2).share_of(1.0, 0.0) == pytest.approx(4 / 11, rel=0.1)


def test_singular_curvature_gives_a_finite_step():
    batch, H = point(np.zeros(2), 1.0, np.array([1.0, 0.0])), np.diag([1.0, 0.0])
    step, _ = RunningModel.empty(2).updated(batch, H, 1.0, 1.0).step(np.zeros(2))
    np.testing.assert_allclose(step, [-1.0, 0.0], atol=1e-9)


@pytest.mark.thorough
def test_the_sample_of_the_majority_is_uniform(monkeypatch):
    monkeypatch.setattr("rareclass.ranking.stochastic_rankrc.CAPACITY", 20)
    counts, rows = np.zeros(100), np.arange(100.0)[:, None]
    for seed in range(400):
        model = StochasticRankRC(random_state=seed)
        for part in np.split(rows, [1, 15, 40]):
            model.partial_fit(part, np.zeros(len(part), int), classes=[0, 1])
        kept = model.state_.sample.X.ravel().astype(int)
        assert len(np.unique(kept)) == 20
        counts[kept] += 1
    # Each row is kept with probability 1/5: 80 +- 8 times, five standard errors.
    assert np.abs(counts - 80).max() < 40
