"""The parts of stochastic learning against plain answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from oracles.pairs import ranking_loss
from rareclass.kernels.kernels import Gaussian, Linear
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.stochastic import learner as mini_batch
from rareclass.ranking.stochastic.feeding import CAPACITY, Reservoir
from rareclass.ranking.stochastic.learner import (
    BatchModel,
    HeldRare,
    LearnedFunction,
    LearnerSettings,
    MiniBatch,
    RunningModel,
    Scores,
    span,
    widened,
)
from rareclass.ranking.stochastic.weighted_rows import WeightedRows, WeightedTable, joined, visits
from rareclass.rows import as_source

KERNEL, LAM, EPS = Gaussian(2.0), 0.01, 0.3


def a_batch(n_rare=30, n=80, seed=0):
    """A mini-batch, its dense features and weights, and a point."""
    rng = np.random.default_rng(seed)
    rare = WeightedRows(rng.normal(size=(n_rare, 3)) + 0.5, rng.uniform(0.5, 2.0, n_rare))
    rows = WeightedRows(rng.normal(size=(n, 3)), rng.uniform(0.5, 2.0, n))
    space = span(KERNEL, rare.X[:20])
    held = HeldRare(rare, space.features(rare.X))
    batch = MiniBatch(SmoothedHinge(EPS), LAM, space, held, rows, 1)
    F = np.vstack([held.features, space.features(rows.X)])
    weights = rare.weight / rare.weight.sum(), rows.weight / rows.weight.sum()
    return batch, F, weights, rng.normal(size=space.rank)


def dense_model(F, weights, w):
    """Value, gradient and Hessian of the loss by all pairs."""
    n_rare = len(weights[0])
    scores = F @ w
    value, by_rare, by_row, H = ranking_loss(scores[:n_rare], scores[n_rare:], *weights, EPS)
    return value, F.T @ np.concatenate([by_rare, by_row]), F.T @ H @ F


@draws(20)
@given(st.integers(0, 10**6))
def test_a_batch_is_what_all_pairs_say(seed):
    batch, F, weights, w = a_batch(seed=seed)
    value, gradient, H = dense_model(F, weights, w)
    found = batch.model(batch.scores(w), 1.0, np.random.default_rng(0))
    assert found.value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-8, atol=1e-12)
    # So few pairs are all looked at.
    np.testing.assert_allclose(found.curvature, H, rtol=1e-8, atol=1e-12)


def test_the_curvature_does_not_depend_on_how_many_rare_rows_are_taken_at_a_time(monkeypatch):
    batch, F, weights, w = a_batch()
    monkeypatch.setattr(mini_batch, "_LEAST_RARE", 7)
    found = batch.model(batch.scores(w), 1.0, np.random.default_rng(0)).curvature
    np.testing.assert_allclose(found, dense_model(F, weights, w)[2], rtol=1e-8, atol=1e-12)


def test_the_sampled_curvature_is_right_on_average(monkeypatch):
    batch, F, weights, w = a_batch(n_rare=40, n=200)
    H = dense_model(F, weights, w)[2]
    monkeypatch.setattr(mini_batch, "_LEAST_MAJORITY", 20)
    monkeypatch.setattr(mini_batch, "_LEAST_RARE", 10)
    rng, at = np.random.default_rng(0), batch.scores(w)
    samples = [batch.model(at, 0.0, rng).curvature for _ in range(600)]
    assert np.linalg.norm(samples[0] - H) > 0.05 * np.linalg.norm(H)
    assert np.linalg.norm(np.mean(samples, axis=0) - H) < 0.03 * np.linalg.norm(H)
    assert all(np.linalg.eigvalsh(sample)[0] > -1e-12 for sample in samples[:20])


def test_a_step_that_leads_up_is_shortened():
    batch, F, weights, w = a_batch()

    def objective(w):
        return dense_model(F, weights, w)[0] + 0.5 * LAM * w @ w

    gradient = dense_model(F, weights, w)[1] + LAM * w
    for size in (1e-3, 10.0, 1e3, 1e6):
        t = batch.length(batch.step(w, -size * gradient), 0.0)
        assert objective(w - t * size * gradient) < objective(w)
        assert t == 1.0 if size < 1.0 else t <= 1.0 if size < 100.0 else t < 0.1
    # What leads up from its start is cut down to what passes for noise.
    t = batch.length(batch.step(w, 1e3 * gradient), 0.01)
    assert 0.0 < t < 0.1
    assert objective(w + t * 1e3 * gradient) <= 1.01 * objective(w)
    assert batch.length(batch.step(w, 1e3 * gradient), 0.0) < 1e-9


@draws(30)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_the_running_model_is_an_average_that_forgets_by_the_cube(seed, n_batches):
    rng = np.random.default_rng(seed)
    rank, lam = 4, 0.3
    model, seen, mass = RunningModel.empty(rank), [], 0.0
    for _ in range(n_batches):
        root, w = rng.normal(size=(rank, rank)), rng.normal(size=rank)
        weight = rng.uniform(0.5, 3.0)
        batch = BatchModel(float(rng.normal()), rng.normal(size=rank), root @ root.T)
        model = model.updated(batch, w, weight, model.share_of(weight, 0.0))
        mass += weight
        seen.append((weight * mass**3, batch, w))
    total = sum(a for a, *_ in seen)

    def q(w):
        each = [
            a * (b.value + b.gradient @ (w - at) + 0.5 * (w - at) @ b.curvature @ (w - at))
            for a, b, at in seen
        ]
        return sum(each) / total + 0.5 * lam * w @ w

    w = rng.normal(size=rank)
    assert model.value(w, lam) == pytest.approx(q(w), rel=1e-8, abs=1e-9)
    found = model.minimum(w, lam)
    assert found.value == pytest.approx(q(found.w), rel=1e-8, abs=1e-9)
    assert found.decrease == pytest.approx(q(w) - q(found.w), rel=1e-6, abs=1e-9)
    for _ in range(5):
        assert q(found.w + 0.1 * rng.normal(size=rank)) > q(found.w)


def test_a_batch_that_is_the_whole_replaces_the_model():
    one = BatchModel(1.0, np.ones(2), np.eye(2))
    other = BatchModel(3.0, -np.ones(2), 2.0 * np.eye(2))
    model = RunningModel.empty(2).updated(one, np.zeros(2), 1.0, 1.0)
    model = model.updated(other, np.ones(2), 1.0, model.share_of(1.0, 1.0))
    assert model.value(np.ones(2), 0.0) == pytest.approx(3.0)
    np.testing.assert_allclose(model.A, 2.0 * np.eye(2))


def test_what_lacked_rare_rows_counts_less():
    batch = BatchModel(1.0, np.ones(2), np.eye(2))
    model = RunningModel.empty(2)
    for _ in range(50):
        model = model.updated(batch, np.zeros(2), 1.0, model.share_of(1.0, 0.0))
    later = model.discounted(0.2)
    assert model.share_of(1.0, 0.0) == pytest.approx(4 / 51, rel=0.05)
    assert later.share_of(1.0, 0.0) == pytest.approx(4 / 11, rel=0.1)


def test_late_rare_rows_join_what_was_learned():
    rng = np.random.default_rng(0)
    early = WeightedRows(rng.normal(size=(10, 3)), np.full(10, 2.0))
    late = WeightedRows(rng.normal(size=(30, 3)), np.ones(30))
    learned = LearnedFunction.start(span(KERNEL, early.X), 2.0, early)
    kept = LearnerSettings(SmoothedHinge(EPS), LAM, 1, np.inf, 2**30)
    for _ in range(8):
        rows = WeightedRows(rng.normal(size=(50, 3)), np.ones(50))
        learned = learned.after(rows, kept, rng)
    for most, n_landmarks in ((np.inf, 40), (15, 15), (10, 10)):
        after = learned.with_rare(late, kept._replace(most_landmarks=most))
        assert after.space.expansion.n_landmarks == n_landmarks
        X = np.vstack([early.X, late.X])
        np.testing.assert_allclose(after.rare.features, after.space.features(X), atol=1e-9)
        # The function is the same; what it was learned from is 20 of 50 pairs' worth.
        where = rng.normal(size=(5, 3))
        np.testing.assert_allclose(
            after.space.features(where) @ after.weights,
            learned.space.features(where) @ learned.weights,
            atol=1e-9,
        )
        assert after.model.mass == pytest.approx(0.4 * learned.model.mass)
        assert after.model.window == pytest.approx(0.4 * learned.model.window)


def test_singular_curvature_and_a_tiny_lam_give_a_finite_step():
    batch = BatchModel(1.0, np.array([1.0, 0.0]), np.diag([1.0, 0.0]))
    model = RunningModel.empty(2).updated(batch, np.zeros(2), 1.0, 1.0)
    found = model.minimum(np.zeros(2), 1e-300)
    np.testing.assert_allclose(found.w, [-1.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_widened_space_spans_all_its_landmarks(convert):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(25, 3))
    more = np.vstack([points[20:], points[:4]])  # the last four add nothing
    space = span(KERNEL, convert(points[:20]))
    wider = widened(space, convert(more), np.inf)
    assert wider.expansion.n_landmarks == 25
    assert wider.rank == 25
    X = rng.normal(size=(40, 3))
    F, F_before = wider.features(convert(X)), space.features(convert(X))
    np.testing.assert_allclose(F[:, :20], F_before, atol=1e-9)
    whole = span(KERNEL, points).features(X)
    np.testing.assert_allclose(F @ F.T, whole @ whole.T, atol=1e-8)
    assert widened(space, convert(more), 22).expansion.n_landmarks == 22
    assert widened(space, convert(points[:5]), np.inf) is space
    assert widened(space, convert(more), 20) is space


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_rows_that_add_nothing_are_told_in_any_unit(unit):
    rng = np.random.default_rng(0)
    points = unit * rng.normal(size=(5, 8))
    mixed = rng.normal(size=(30, 5)) @ points  # in the span of a linear kernel, all but one
    more = np.vstack([mixed, unit * rng.normal(size=(1, 8))])
    assert widened(span(Linear(), points), more, np.inf).expansion.n_landmarks == 6


def test_a_space_without_room_asks_nothing_of_the_kernel():
    class Counting(Gaussian):
        def block(self, A, B):
            calls.append(len(A))
            return super().block(A, B)

    calls: list[int] = []
    rng = np.random.default_rng(0)
    space, more = span(Counting(2.0), rng.normal(size=(20, 3))), rng.normal(size=(30, 3))
    calls.clear()
    for most in (0, 20, 20.9):
        assert widened(space, more, most) is space
    assert not calls
    assert widened(space, more, 22.5).expansion.n_landmarks == 22
    assert calls


@pytest.mark.parametrize("weight", [None, np.ones(7)])
def test_what_is_not_rare_has_the_weight_of_the_majority(weight):
    assert WeightedTable(as_source(np.eye(7)), weight, np.array([1, 4])).majority_weight(2.0) == 5.0


def test_a_reservoir_is_a_uniform_sample_however_rows_come(monkeypatch):
    monkeypatch.setattr("rareclass.ranking.stochastic.feeding.CAPACITY", 20)
    rows = WeightedRows(np.arange(100.0)[:, None], np.ones(100))
    counts = np.zeros(100)
    for seed in range(400):
        whole = Reservoir().updated(rows, np.random.default_rng(seed))
        parts, rng = Reservoir(), np.random.default_rng(seed)
        for start in (0, 1, 15, 40):
            stop = {0: 1, 1: 15, 15: 40, 40: 100}[start]
            parts = parts.updated(rows.pick(slice(start, stop)), rng)
        kept = np.sort(whole.rows.X.ravel())
        np.testing.assert_array_equal(kept, np.sort(parts.rows.X.ravel()))
        assert len(np.unique(kept)) == 20
        counts[kept.astype(int)] += 1
    # Each row is kept with probability 1/5: 80 +- 8 times, five standard errors.
    assert np.abs(counts - 80).max() < 40
    assert CAPACITY > 1000


@draws(50)
@given(st.integers(1, 200), st.integers(1, 50), st.integers(1, 60), st.booleans())
def test_a_pass_visits_every_row_once(n, size, together, shuffled):
    rng = np.random.default_rng(0) if shuffled else None
    parts = list(visits(n, size, together, rng))
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    assert max(map(len, parts)) <= size
    if not shuffled:
        np.testing.assert_array_equal(np.concatenate(parts), np.arange(n))


def test_parts_of_any_kind_are_joined():
    dense = WeightedRows(np.eye(2), np.ones(2))
    compressed = WeightedRows(sparse.csr_array(np.eye(2)), np.zeros(2))
    both = joined([dense, compressed])
    assert sparse.issparse(both.X)
    np.testing.assert_array_equal(both.X.toarray(), np.vstack([np.eye(2), np.eye(2)]))
    assert len(both) == 4


def test_scores_are_linear():
    batch, F, _, w = a_batch()
    found = batch.scores(w)
    assert isinstance(found, Scores)
    np.testing.assert_allclose(np.concatenate(found), F @ w, rtol=1e-9)
