"""Distances from a centre, among rows and in a kernel's feature space, and Algorithm 1 by them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from hyperball.rach_cases import CLEARED, RARE, UNKNOWN, ball_of, hidden_cluster
from rareclass.hyperball import RACH
from rareclass.hyperball.pool import MAJORITY, UNLABELLED, gather, near_rows, spread_of
from rareclass.hyperball.problem import InputSpace, Points, kernel_space, nearest
from rareclass.hyperball.solver import one_class_center
from rareclass.kernels.kernels import KERNELS, make_kernel
from rareclass.labels.partial_labels import read_partial_labels
from rareclass.rows import as_source

NAMES = sorted(KERNELS.keys() - {"linear"})  # which has a space of its own


def kernel_by_loop(name, width, a, b):
    """k(a, b) of each pair, from the formulas."""
    values = np.empty((len(a), len(b)))
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            squared = ((u - v) ** 2).sum()
            values[i, j] = {
                "gaussian": np.exp(-squared / width**2),
                "laplace": np.exp(-np.sqrt(squared) / width),
                "polynomial": (1.0 + u @ v / width**2) ** 3,
            }[name]
    return values


def squared_distances_by_sums(name, width, X, landmarks, beta):
    """``k(x, x) - 2 sum_l beta_l k(x, l) + sum_lm beta_l beta_m k(l, m)`` for every row of X."""
    own = np.array([kernel_by_loop(name, width, row[None], row[None])[0, 0] for row in X])
    across = kernel_by_loop(name, width, X, landmarks) @ beta
    return own - 2.0 * across + beta @ kernel_by_loop(name, width, landmarks, landmarks) @ beta


@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(NAMES),
    n=st.integers(1, 14),
    n_landmarks=st.integers(1, 20),
    n_copies=st.integers(0, 3),
    as_sparse=st.booleans(),
)
@draws(60)
def test_distances_are_sums_of_kernel_values(seed, name, n, n_landmarks, n_copies, as_sparse):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    X = np.vstack([rows, rows[:n_copies]])  # equal rows make the kernel matrix singular
    first = np.flatnonzero(rng.random(len(X)) < 0.4)
    held = sparse.csr_array(X) if as_sparse else X
    space = kernel_space(make_kernel(name, 1.3), held, first, n_landmarks)
    landmarks = space.landmarks.toarray() if as_sparse else space.landmarks
    assert len(landmarks) <= max(n_landmarks, 0)
    center = rng.normal(size=space.whitener.shape[1])
    new = np.vstack([X, rng.normal(size=(5, 3))])
    expected = squared_distances_by_sums(name, 1.3, new, landmarks, space.coefficients(center))
    seen = sparse.csr_array(new) if as_sparse else new
    scale = 1e-6 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(space.squared_distances(seen, center), expected, atol=scale)
    by_points = space.points(seen).squared_distances(center)
    np.testing.assert_allclose(by_points, expected, atol=scale)


def test_landmarks_hold_the_rows_asked_for():
    X = np.random.default_rng(1).normal(size=(60, 2))
    first = np.array([7, 3, 50])
    space = kernel_space(make_kernel("gaussian", 1.0), X, first, n_landmarks=12)
    assert len(space.landmarks) <= 12
    for row in first:
        assert (space.landmarks == X[row]).all(axis=1).any()
    crowded = kernel_space(make_kernel("gaussian", 1.0), X, np.arange(40), n_landmarks=12)
    assert len(crowded.landmarks) <= 12
    # Half is left for rows that span the others: the far half of them.
    assert (crowded.landmarks[:, None] == X[None, 40:]).all(axis=2).any()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_landmarks", [500, 25])
@pytest.mark.parametrize("name", NAMES)
def test_the_ball_in_feature_space_by_sums_over_its_rows(name, n_landmarks):
    X, y, _ = hidden_cluster(n=90, seed=4)
    options = {"kernel": name, "width": 2.0, "n_landmarks": n_landmarks, "filter": False}
    model = ball_of(X, y, C2=0.02, **options)
    expected = squared_distances_by_sums(name, 2.0, X, model.landmarks_, model.center_)
    depth = model.radius_**2 - expected
    np.testing.assert_allclose(model.score_samples(X), depth, atol=1e-6 * expected.max())
    if n_landmarks < len(X):
        return
    # With all rows as landmarks the centre is the one of the dual: sum of signs times multipliers.
    rows, ball = model.rows_, model.balls_[0]
    beta = np.where(ball.kinds < 0, -1.0, 1.0) * model.multipliers_
    assert beta.sum() == pytest.approx(1.0, abs=1e-9)
    by_dual = squared_distances_by_sums(name, 2.0, X, X[rows], beta)
    np.testing.assert_allclose(by_dual, expected, atol=1e-4 * expected.max())


def test_a_gaussian_ball_of_huge_width_is_the_ball_among_the_rows():
    X, y, truth = hidden_cluster(seed=5)
    among_rows = RACH(C2=0.01, tol=1e-9).fit(X, y)
    wide = RACH(C2=0.01, kernel="gaussian", width=300.0, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(wide.transduction_, among_rows.transduction_)
    np.testing.assert_array_equal(wide.predict(X), among_rows.predict(X))
    # 2 - 2 exp(-d^2 / width^2) is 2 d^2 / width^2, about.
    assert wide.radius_ * 300.0 / np.sqrt(2.0) == pytest.approx(among_rows.radius_, rel=1e-3)
    assert among_rows.score(X, truth) > 0.5


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_far_from_zero_no_digits_are_lost(offset):
    rng = np.random.default_rng(2)
    near = np.round(rng.normal(size=(20, 3)), 3)
    X = near + offset
    space = InputSpace(X.mean(axis=0))
    center = space.points(X).combine(np.full(20, 1 / 20))
    expected = ((near - near.mean(axis=0)) ** 2).sum(axis=1)
    np.testing.assert_allclose(space.squared_distances(X, center), expected, rtol=1e-7)
    np.testing.assert_allclose(space.input_center(center), X.mean(axis=0), rtol=1e-15)


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array, np.float32])
def test_spread(to):
    X = np.random.default_rng(6).normal(size=(40, 3)).astype(np.float32).astype(float)
    times = np.random.default_rng(0).integers(0, 3, 40)
    copies = X.repeat(times, axis=0)
    expected = np.sqrt(((copies - copies.mean(axis=0)) ** 2).sum(axis=1).mean())
    for rows, weight, spread in (
        (to(X), times.astype(float), pytest.approx(expected)),
        (to(copies), np.ones(len(copies)), pytest.approx(expected)),
        (to(X)[:0], np.zeros(0), 0.0),
    ):
        assert spread_of(InputSpace.around(rows).points(rows), weight) == spread
    assert spread_of(Points(X[:0], np.zeros(0)), np.zeros(0)) == 0.0


def near_by_loop(distances, weight, share, reach):
    """Algorithm 1: the smallest distance that holds the share, in exact numbers, and what is in."""
    here = [i for i, w in enumerate(weight) if w > 0]
    total = sum(weight[i] for i in here)
    for threshold in sorted(distances[i] for i in here):
        if sum(weight[i] for i in here if distances[i] <= threshold) >= share * total:
            return [i for i in here if distances[i] <= reach * threshold]
    return []


DISTANCES = st.lists(st.floats(0, 100) | st.sampled_from([0.0, 1.0, 3.0]), max_size=25)


@given(
    distances=DISTANCES,
    n_rare=st.integers(1, 9),
    n_majority=st.integers(0, 40),
    reach=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    data=st.data(),
)
def test_rows_within_the_margin_are_those_of_a_loop(distances, n_rare, n_majority, reach, data):
    share = Fraction(n_rare, n_rare + n_majority)
    n = len(distances)
    weight = data.draw(st.none() | st.lists(st.integers(0, 4), min_size=n, max_size=n))
    found = near_rows(
        np.array(distances), None if weight is None else np.array(weight, float), share, reach
    )
    assert found.tolist() == near_by_loop(distances, weight or [1] * n, share, reach)


@given(distances=DISTANCES, n_most=st.integers(1, 30))
def test_of_too_many_the_nearest_stay(distances, n_most):
    values = np.array(distances)
    some = nearest(values, min(n_most, len(values)))
    assert some.tolist() == sorted(set(some.tolist()))
    assert sorted(values[some]) == sorted(values)[:n_most]


def test_of_a_share_that_is_a_whole_number_of_rows_not_one_more():
    distances = np.arange(1.0, 101.0)
    assert len(near_rows(distances, None, 0.07, reach=1.0)) == 7  # 0.07 * 100 > 7
    assert len(near_rows(distances, np.full(100, 0.1), 0.07, reach=1.0)) == 7


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array, np.float32])
def test_distances_to_a_centre(to):
    rng = np.random.default_rng(3)
    X, center = rng.normal(size=(50, 4)).astype(np.float32).astype(float), rng.normal(size=4)
    by_loop = [np.sqrt(((row - center) ** 2).sum()) for row in X]
    origin = None if to is sparse.csr_array else X[0]
    seen = center if origin is None else center - origin
    found = np.sqrt(InputSpace(origin).squared_distances(to(X), seen))
    np.testing.assert_allclose(found, by_loop, rtol=1e-12)


def gathered(X, y, weight=None, reach=3.0, max_kept=10_000, label=RARE):
    labels = read_partial_labels(y, weight, label, len(y))
    settings = RACH(filter=reach, max_kept=max_kept)
    return gather(settings, as_source(X), labels, label, labels.rows_of(label))


def algorithm_1(X, y, weight, reach):
    """The paper's program: the centre, the share of rare rows, the threshold, the rows kept."""
    rare = [i for i, label in enumerate(y) if label == RARE and weight[i] > 0]
    cleared = [i for i, label in enumerate(y) if label == CLEARED and weight[i] > 0]
    center = X[rare[0]]
    if len(rare) > 1:
        points = Points(X[rare], np.zeros(len(rare)))
        center, _ = one_class_center(points, np.array(weight)[rare].astype(float))
    n_rare, n_cleared = (int(sum(weight[i] for i in rows)) for rows in (rare, cleared))
    distances = [float(np.sqrt(((row - center) ** 2).sum())) for row in X]
    unknown = [w if label == UNKNOWN else 0 for label, w in zip(y, weight, strict=True)]
    share = Fraction(n_rare, n_rare + n_cleared)
    kept = near_by_loop(distances, unknown, share, reach)
    return sorted([*rare, *cleared, *kept])


@pytest.mark.parametrize("n_rare", [1, 2, 6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reach", [1.0, 3.0])
def test_the_pool_is_algorithm_1(n_rare, weighted, reach):
    X, y, _ = hidden_cluster(n_rare=n_rare, n_cleared=60, seed=n_rare)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y)) if weighted else np.ones(len(y), dtype=int)
    weight[np.flatnonzero(y == RARE)[0]] = 1  # one rare row at least counts
    pool = gathered(X, y, weight if weighted else None, reach)
    assert pool.rows.tolist() == algorithm_1(X, y, weight, reach)
    assert 0 < len(pool.which(UNLABELLED)) < pool.n_unlabelled
    np.testing.assert_array_equal(pool.weight, weight[pool.rows])
    np.testing.assert_array_equal(pool.X, X[pool.rows])
    assert [*pool.kinds] == [{RARE: 1, CLEARED: -1, UNKNOWN: 0}[label] for label in y[pool.rows]]
    assert pool.n_unlabelled == ((y == UNKNOWN) & (weight > 0)).sum()
    assert pool.n_near == len(pool.which(UNLABELLED))


def test_without_a_filter_all_stay_however_many():
    X, y, _ = hidden_cluster()
    pool = gathered(X, y, reach=False, max_kept=50)
    assert pool.n_near == len(pool.which(UNLABELLED)) == pool.n_unlabelled == (y == UNKNOWN).sum()


def test_of_too_many_rows_of_a_kind_the_nearest_stay():
    X, y, _ = hidden_cluster(n_rare=1, n_cleared=60)
    pool = gathered(X, y, reach=3.0, max_kept=20)
    whole = gathered(X, y, reach=3.0)
    apart = np.linalg.norm(X - X[y == RARE], axis=1)
    for kind in (MAJORITY, UNLABELLED):
        near = whole.rows[whole.which(kind)]
        nearest = near[np.argsort(apart[near])[:20]]
        assert pool.rows[pool.which(kind)].tolist() == sorted(nearest)
    assert pool.n_near == whole.n_near > 20
    assert pool.n_majority == 60


def test_other_categories_are_majority_rows():
    X, y, _ = hidden_cluster()
    y[np.flatnonzero(y == CLEARED)[:5]] = 2
    pool = gathered(X, y)
    assert (
        sorted(pool.rows[pool.which(MAJORITY)])
        == np.flatnonzero((y == CLEARED) | (y == 2)).tolist()
    )
