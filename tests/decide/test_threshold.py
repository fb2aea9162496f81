"""The balanced-accuracy threshold against every threshold tried."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.metrics import balanced_accuracy, samples
from rareclass.decide import balanced_accuracy_threshold


def _candidates(scores):
    levels = np.unique(scores)
    return np.concatenate([[levels[0] - 1], (levels[1:] + levels[:-1]) / 2, [levels[-1]]])


@given(samples())
def test_no_threshold_does_better(sample):
    y, s, w = sample
    t = balanced_accuracy_threshold(y, s, w)
    best = max(balanced_accuracy(y, s, w, c) for c in _candidates(s))
    assert balanced_accuracy(y, s, w, t) == pytest.approx(best, abs=1e-9)


@given(samples(weights=False))
def test_it_is_the_middle_of_the_widest_and_then_highest_of_the_best_gaps(sample):
    y, s, w = sample
    levels = np.unique(s)
    tried = [
        (round(balanced_accuracy(y, s, w, low), 12), high - low, high, low)
        for low, high in pairwise(levels)
    ]
    best = max(tried, default=(0.5,))
    t = balanced_accuracy_threshold(y, s)
    if best[0] <= 0.5:
        assert t == levels[-1]
    else:
        assert best[3] <= t < best[2]
        assert t in (best[3] / 2 + best[2] / 2, best[3])


@given(samples(weights=False), st.data())
def test_a_weight_of_k_is_k_copies_and_0_is_absence(sample, data):
    y, s, _ = sample
    copies = np.array(data.draw(st.lists(st.integers(0, 3), min_size=y.size, max_size=y.size)))
    copies[[np.argmax(y == 0), np.argmax(y == 1)]] = 1
    expected = balanced_accuracy_threshold(np.repeat(y, copies), np.repeat(s, copies))
    assert balanced_accuracy_threshold(y, s, copies) == expected


def test_midpoints_and_ties():
    assert balanced_accuracy_threshold([0, 0, 1, 1], [0.0, 1.0, 4.0, 9.0]) == 2.5
    # Two gaps are equally good, (0, 1) and (2, 5): the wider one.
    assert balanced_accuracy_threshold([0, 1, 0, 1], [0.0, 1.0, 2.0, 5.0]) == 3.5
    # Equally wide too: the higher one.
    assert balanced_accuracy_threshold([0, 1, 0, 1], [0.0, 1.0, 2.0, 3.0]) == 2.5


@pytest.mark.parametrize("scores", [[7.0, 7.0, 7.0], [1.0, 7.0, 0.0]])
def test_nothing_is_called_rare_when_no_threshold_helps(scores):
    assert balanced_accuracy_threshold([1, 0, 1], scores) == 7.0


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (np.nextafter(1.0, 0.0), 1.0),
        (-np.inf, np.inf),
        (0.0, np.inf),
        (-np.inf, 0.0),
        (-1.7e308, 1.7e308),
        (0.0, 5e-324),
    ],
)
def test_the_threshold_parts_neighbouring_floats_and_infinities(low, high):
    t = balanced_accuracy_threshold([0, 1], [low, high])
    assert low <= t < high


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="no rare"):
        balanced_accuracy_threshold([0, 0], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        balanced_accuracy_threshold([0, 1], [np.nan, 2.0])
