"""Weights of checked rows: their weighted sums estimate sums over the table without bias."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.labels.states import ListedRows, check_weights


def listed(rows, chances):
    chances = np.array(chances, float)
    return ListedRows(np.array(rows), chances < 1.0, chances)


def test_weights_of_two_rounds():
    first = listed([0, 1, 2], [1.0, 0.25, 0.25])
    second = listed([3, 4], [1.0, 0.5])
    known_after = np.array([1, 1, 1, 2, 2, 0, -1, 2])
    weight = check_weights(known_after, [first, second])
    by_first = np.array([1, 4, 4, 0, 0, 1, 0, 0])
    by_second = np.array([1, 1, 1, 1, 2, 1, 0, 0])
    np.testing.assert_allclose(weight, (2 * by_first + by_second) / 3)


@pytest.mark.parametrize(
    ("known_after", "rounds", "weight"),
    [
        ([0, 0, -1], [], [1, 1, 0]),
        ([1, 0, -1], [listed([0], [1.0])], [1, 1, 0]),  # no row at random
        ([1, 2, 0], [listed([0], [0.5])], [1, 1, 1]),  # all are known
        ([1, 0, -1], [listed([0, 2], [0.5, 0.5])], [1, 1, 0]),  # a verdict is missing
        ([1, -1, 2, -1], [listed([0, 1], [0.5, 0.5]), listed([2], [0.25])], [1, 0, 4, 0]),
    ],
)
def test_known_rows_count_once_where_a_round_says_no_more(known_after, rounds, weight):
    assert check_weights(np.array(known_after), rounds).tolist() == weight


@given(st.integers(0, 2**32 - 1))
def test_sums_are_unbiased_where_rounds_depend_on_what_was_found(seed):
    """Mean over all draws of two rounds; the rule of the second goes by what the first found."""
    rng = np.random.default_rng(seed)
    n = 5
    f = rng.normal(size=n)
    estimates, chances = [], []
    for a in range(n):  # first: one row of five at random
        known_after = np.full(n, -1)
        known_after[a] = 1
        left = np.flatnonzero(known_after < 0)
        by_rule = left[np.argmax(f[left] * np.sign(f[a]))]  # takes one by a rule
        left = left[left != by_rule]
        uneven = np.array([0.5, 0.3, 0.2])  # second: one of three with unequal chances
        for b, chance in zip(left, uneven, strict=True):
            after = known_after.copy()
            after[[by_rule, b]] = 2
            rounds = [listed([a], [1 / n]), listed([by_rule, b], [1.0, chance])]
            estimates.append(check_weights(after, rounds) @ f)
            chances.append(chance / n)
    assert sum(chances) == pytest.approx(1.0)
    assert np.dot(estimates, chances) == pytest.approx(f.sum())
