"""Algorithm 1 against a loop over rows, and the rows that it leaves to a ball."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hyperball.rach_cases import CLEARED, RARE, UNKNOWN, hidden_cluster
from rareclass.hyperball import RACH
from rareclass.hyperball.pool import MAJORITY, UNLABELLED, distances_to, gather, near_rows
from rareclass.hyperball.problem import InputSpace, Points
from rareclass.hyperball.solver import one_class_center
from rareclass.labels.partial_labels import read_partial_labels
from rareclass.rows import ArrayRows, as_source


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
    everyone = near_rows(values, None, 0.3)
    some = near_rows(values, None, 0.3, n_most=n_most)
    assert some.tolist() == sorted(set(some.tolist()) & set(everyone.tolist()))
    assert sorted(values[some]) == sorted(values[everyone])[:n_most]


@given(distances=DISTANCES.filter(len), weight=st.data(), share=st.sampled_from([0.1, 0.4, 1.0]))
def test_a_weight_is_so_many_copies(distances, weight, share):
    n = len(distances)
    times = np.array(weight.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    copied = np.repeat(np.arange(n), times)
    found = near_rows(np.array(distances), times.astype(float), share)
    by_copies = copied[near_rows(np.array(distances)[copied], None, share)]
    assert found.tolist() == np.unique(by_copies).tolist()


def test_of_a_share_that_is_a_whole_number_of_rows_not_one_more():
    distances = np.arange(1.0, 101.0)
    assert len(near_rows(distances, None, 0.07, reach=1.0)) == 7  # 0.07 * 100 > 7
    assert len(near_rows(distances, np.full(100, 0.1), 0.07, reach=1.0)) == 7


@pytest.mark.parametrize("n_jobs", [None, 1, 3])
@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array, np.float32])
def test_distances_to_a_centre(to, n_jobs):
    rng = np.random.default_rng(3)
    X, center = rng.normal(size=(50, 4)).astype(np.float32).astype(float), rng.normal(size=4)
    by_loop = [np.sqrt(((row - center) ** 2).sum()) for row in X]
    rows = ArrayRows(as_source(to(X)), n_jobs=n_jobs)
    origin = None if to is sparse.csr_array else X[0]
    seen = center if origin is None else center - origin
    found = distances_to(rows, InputSpace(origin), seen)
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
