"""P-values against the best of the same rows: never below those of the closed test."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.compare.score_columns import adjusted_for_the_choice


def partitions(items):
    """Every way to part items into groups of equals."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        for place in range(len(smaller)):
            yield [*smaller[:place], [first, *smaller[place]], *smaller[place + 1 :]]
        yield [[first], *smaller]


def closed_test(p_values):
    """Bonferroni's test of every way in which rankings may be equal: 0 is the best, pairs of
    others were not looked at."""
    m = len(p_values) + 1
    adjusted = np.zeros(len(p_values))
    for groups in partitions(list(range(m))):
        pairs = [pair for group in groups for pair in combinations(sorted(group), 2)]
        tested = [p_values[b - 1] for a, b in pairs if a == 0]
        if not tested:
            continue
        of_all = min(1.0, len(pairs) * min(tested))
        for a, b in pairs:
            if a == 0:
                adjusted[b - 1] = max(adjusted[b - 1], of_all)
    return adjusted


@draws(60)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5))
def test_between_the_closed_test_and_holm(p_values):
    ours = np.array(adjusted_for_the_choice(p_values))
    assert (ours >= closed_test(p_values) - 1e-12).all()
    m = len(p_values) + 1
    order = np.argsort(p_values, kind="stable")
    n_pairs = m * (m - 1) / 2
    steps = (n_pairs - np.arange(len(order))) * np.array(p_values)[order]
    holm = np.minimum(np.maximum.accumulate(steps), 1.0)
    assert (ours[order] <= holm + 1e-12).all()


def test_alone_and_in_pairs():
    assert adjusted_for_the_choice([]) == []
    assert adjusted_for_the_choice([0.03]) == [0.03]
    assert adjusted_for_the_choice([0.02, 0.01]) == pytest.approx([0.03, 0.03])
