"""Which rows are landmarks: every rule against what it is to choose."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from made_tables import rare_mixture
from rareclass import RankRC
from rareclass.kernels import landmarks as module
from rareclass.kernels.kernels import Gaussian
from rareclass.kernels.landmarks import (
    LandmarkCandidates,
    choose_landmarks,
    distinct_landmarks,
    pivoted_cholesky,
)

X, Y = rare_mixture(120, 30)
RARE = np.flatnonzero(Y)
# A row of weight zero is nobody's landmark.
KEPT = np.setdiff1d(np.arange(len(Y)), [2, 5])
KERNEL = Gaussian(2.0)


def drawn(rows, k):
    return np.random.RandomState(7).choice(rows, size=k, replace=False)


def spread_out_of_drawn(k):
    rng = np.random.RandomState(7)
    some = np.sort(rng.choice(RARE, size=10 * k, replace=False))
    return some[kmeans_plusplus(X[some], k, random_state=rng)[1]]


# Every rule by its form, and the rows that it is to choose.
RULES = {
    "rare": lambda: RARE,
    "all": lambda: KEPT,
    "random": lambda: drawn(KEPT, len(RARE)),
    ("rare", 12): lambda: RARE[
        kmeans_plusplus(X[RARE], 12, random_state=np.random.RandomState(7))[1]
    ],
    ("rare", 2): lambda: spread_out_of_drawn(2),
    ("rare", 12, "kmeans++"): lambda: RARE[
        kmeans_plusplus(X[RARE], 12, random_state=np.random.RandomState(7))[1]
    ],
    ("rare", 12, "pivoted_cholesky"): lambda: RARE[pivoted_cholesky(KERNEL, X[RARE], 12)],
    ("rare", 999): lambda: RARE,
    ("rare+majority", 9): lambda: [*RARE, *drawn(np.setdiff1d(KEPT, RARE), 9)],
    ("rare+majority", 999): lambda: KEPT,
    9: lambda: drawn(KEPT, 9),
    999: lambda: KEPT,
    (3, 1, 8, 3): lambda: [1, 3, 8],
}


def chosen(rule):
    rng = np.random.RandomState(7)
    rows = LandmarkCandidates(RARE, lambda: KEPT, X.__getitem__, X.shape[1])
    found = choose_landmarks(rule, KERNEL, rows, 2**30, rng)
    return found.rows


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_chooses_its_rows(rule):
    is_array = isinstance(rule, tuple) and not isinstance(rule[0], str)
    found = chosen(np.array(rule) if is_array else rule)
    np.testing.assert_array_equal(found, np.sort(RULES[rule]()))


def test_every_rule_is_tried():
    with pytest.raises(ValueError, match="is not") as told:
        chosen("nonsense")
    plain = set(re.findall(r"(?<!\()'([\w+]+)'", str(told.value))) - {"nonsense"}
    counted = {(name, "kmeans++") for name in module._COUNTED}
    counted |= {("rare", selection) for selection in module._SELECTIONS}
    assert plain == {rule for rule in RULES if isinstance(rule, str)}
    assert counted == {
        (rule[0], (*rule, "kmeans++")[2])
        for rule in RULES
        if isinstance(rule, tuple) and isinstance(rule[0], str)
    }


def test_rows_that_differ_in_stored_zeros_are_one_landmark():
    rows = sparse.csr_array(
        (np.array([1.0, 0.0, 1.0, 2.0]), np.array([0, 2, 0, 1]), np.array([0, 2, 3, 4])),
        shape=(3, 3),
    )
    found = distinct_landmarks(rows, np.array([4, 7, 9]))
    assert found.points.shape == (2, 3)
    assert found.point_of[0] == found.point_of[1]
    assert rows.nnz == 4  # the caller's rows stay as they are


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array])
def test_of_equal_rows_the_first_stands_for_the_point(to):
    rows = np.array([[2.0, 0.0], [1.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    found = distinct_landmarks(to(rows), np.array([10, 11, 12, 13, 14]))
    first = found.first_rows
    assert sorted(first) == [10, 11, 14]
    points = found.points.toarray() if sparse.issparse(found.points) else found.points
    np.testing.assert_array_equal(rows[first - 10], points)


def test_the_draw_is_that_of_the_seed():
    one, same, other = (
        RankRC(landmarks=("rare", 12), random_state=seed).fit(X, Y).landmark_rows_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
