"""The threshold of a few buffered scores against the one of `rareclass.decide`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.decide import balanced_accuracy_threshold
from rareclass.online.ranker import _FEW_SCORES, buffer_offset

# Few distinct ones, so that ties, equal gains and equal widths are common; and neighbours.
SCORES = st.lists(
    st.sampled_from([-np.inf, -2.0, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 3.0, 1e308, np.inf])
    | st.floats(allow_nan=False),
    min_size=1,
    max_size=12,
).map(np.array)


@given(rare=SCORES, majority=SCORES)
def test_it_is_the_threshold_of_all_other_scores(rare, majority):
    y = np.repeat([1, 0], [len(rare), len(majority)])
    wanted = balanced_accuracy_threshold(y, np.concatenate([rare, majority]))
    assert buffer_offset(rare, majority) == wanted


@pytest.mark.parametrize("n", [1, 50, _FEW_SCORES // 2, _FEW_SCORES])
def test_short_and_long_buffers(n):
    rng = np.random.default_rng(n)
    rare, majority = rng.normal(1.0, 1.0, n), rng.normal(0.0, 1.0, n).round(1)
    y = np.repeat([1, 0], n)
    wanted = balanced_accuracy_threshold(y, np.concatenate([rare, majority]))
    assert buffer_offset(rare, majority) == wanted


def test_no_threshold_without_both_classes_and_none_of_nan():
    assert buffer_offset(np.ones(3), np.empty(0)) == 0.0
    with pytest.raises(ValueError, match="NaN"):
        buffer_offset(np.array([1.0, np.nan]), np.zeros(2))
