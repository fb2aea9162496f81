"""Accuracy at OPTROC against every threshold tried in turn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from oracles.metrics import samples
from rareclass.metrics import accuracy_at_optroc, roc_auc


def best_of_all_thresholds(y, scores, weight):
    """Every score, and infinity, as a threshold."""
    right = [
        weight[(scores >= t) == (y == 1)].sum() for t in [*np.unique(scores[weight > 0]), np.inf]
    ]
    return max(right) / weight.sum()


@given(samples())
def test_it_is_the_best_of_all_thresholds(sample):
    y, s, w = sample
    assert accuracy_at_optroc(y, s, w) == pytest.approx(best_of_all_thresholds(y, s, w), rel=1e-12)
    ones = np.ones(y.size)
    assert accuracy_at_optroc(y, s) == pytest.approx(best_of_all_thresholds(y, s, ones), rel=1e-12)


@draws(40)
@given(data=st.data())
def test_a_weight_of_k_is_k_copies_and_0_is_absence(data):
    y, s, _ = data.draw(samples(weights=False))
    copies = np.array(data.draw(st.lists(st.integers(0, 3), min_size=y.size, max_size=y.size)))
    copies[[np.argmax(y == 0), np.argmax(y == 1)]] = 2
    repeated = accuracy_at_optroc(np.repeat(y, copies), np.repeat(s, copies))
    assert accuracy_at_optroc(y, s, copies) == pytest.approx(repeated, rel=1e-12)


@draws(40)
@given(sample=samples(weights=False))
def test_only_the_order_counts_and_the_classes_may_change_places(sample):
    y, s, _ = sample
    rank = np.unique(s, return_inverse=True)[1]
    infinite = np.where(rank == rank.max(), np.inf, rank)
    value = accuracy_at_optroc(y, s)
    assert value == accuracy_at_optroc(y, infinite) == accuracy_at_optroc(1 - y, -s)
    assert max(y.mean(), 1 - y.mean()) <= value + 1e-12
    assert value <= 1.0


def test_by_hand():
    assert accuracy_at_optroc([0, 0, 0, 1], [1, 2, 3, 4]) == 1.0
    assert accuracy_at_optroc([0, 0, 0, 1], [2, 3, 4, 1]) == 0.75  # nothing is called rare
    assert accuracy_at_optroc([1, 1, 1, 0], [2, 3, 4, 5]) == 0.75  # everything is
    assert accuracy_at_optroc([0, 1, 0, 1], [1, 2, 2, 3]) == 0.75  # the tie is called as one
    assert accuracy_at_optroc([1, 0, 0], [0.0, 1.0, 2.0], [1e12, 1.0, 1.0]) == 1e12 / (1e12 + 2)


def test_as_many_rows_as_are_searched_rather_than_sorted():
    rng = np.random.default_rng(3)
    y = (rng.random(300_000) < 0.01).astype(np.int64)
    s = np.round(rng.normal(size=y.size) + 2 * y, 2)
    values = np.unique(s)
    rare, other = (np.bincount(np.searchsorted(values, s[y == k]), minlength=values.size)
                   for k in (1, 0))  # fmt: skip
    called_right = np.append(rare[::-1].cumsum()[::-1], 0) + np.append(0, other.cumsum())
    assert accuracy_at_optroc(y, s) == pytest.approx(called_right.max() / y.size, rel=1e-12)
    assert roc_auc(y, s) < 1.0


@pytest.mark.parametrize(
    ("y", "scores", "weight", "message"),
    [
        ([], [], None, "scores is empty"),
        ([0, 1], [1.0, np.nan], None, r"scores\[1\] = .*NaN"),
        ([0, 0], [1.0, 2.0], None, r"no rare \(y = 1\) row"),
        ([0, 1], [1.0, 2.0], [1.0, -1.0], r"sample_weight\[1\]"),
    ],
)
def test_bad_input_is_named(y, scores, weight, message):
    with pytest.raises(ValueError, match=message):
        accuracy_at_optroc(y, scores, weight)
