"""Precision where cases were missed: beside a slow sum, and beside the truth in expectation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.metrics import average_precision
from rareclass.metrics.missed_cases import (
    average_precision_with_missed,
    missed_per_case,
    precision_with_missed,
)

ROWS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 5), st.integers(1, 3)), min_size=1, max_size=20
).filter(lambda rows: len({each[0] for each in rows}) == 2)


@given(ROWS, st.floats(0.0, 3.0))
def test_the_average_is_the_mean_over_cases_with_ties_and_weights(rows, ratio):
    y, scores, weight = (np.array(each) for each in zip(*rows, strict=True))
    slow = 0.0
    for is_case, score, w in rows:
        if is_case:
            above = scores >= score
            precision = (weight * y)[above].sum() / weight[above].sum()
            slow += w * min(1.0, (1.0 + ratio) * precision)
    slow /= weight[y].sum()
    assert average_precision_with_missed(y, scores, ratio, weight) == pytest.approx(slow)
    if ratio == 0.0:
        assert slow == pytest.approx(average_precision(y, scores, weight))


def test_missed_at_random_the_corrected_average_is_the_true_one():
    rng = np.random.default_rng(0)
    true = np.arange(20_000) < 1_000
    scores = rng.normal(size=20_000) + 2.0 * true
    recorded = true & (rng.random(20_000) < 0.7)
    corrected = average_precision_with_missed(recorded, scores, missed_per_case(0.3))
    assert corrected == pytest.approx(average_precision(true, scores), abs=0.02)
    assert average_precision(recorded, scores) < corrected - 0.1


def test_a_precision_is_at_most_one():
    assert precision_with_missed([0.5, 0.9], 1.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0])
def test_a_share_that_is_none_is_refused(share):
    with refused(ErrorKind.SETTING, value=share):
        missed_per_case(share)
