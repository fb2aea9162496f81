"""The share of cases among the first rows of a hunt, against slow ways to the same figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.hunt.sureness import sureness

PLACES = st.lists(st.integers(1, 40), min_size=1, max_size=8).map(sorted)


def share_by_hand(k, places, n_rows, n_cases):
    """N H(k) / k, H being the highest of all chords above k."""
    n = len(places)
    points = [(0.0, 0.0), *((p, (j + 1) / (n + 1)) for j, p in enumerate(places)), (n_rows, 1.0)]
    heights = [y for x, y in points if x == k]
    for a in points:
        for b in points:
            if a[0] < k < b[0]:
                heights.append(a[1] + (b[1] - a[1]) * (k - a[0]) / (b[0] - a[0]))
    return min(n_cases * max(heights) / k, 1.0)


@given(places=PLACES, known=st.sampled_from([None, 3.0, 17.0]))
def test_shares_are_those_of_the_least_concave_curve_and_fall(places, known):
    curve = sureness(50, np.array(places), known)
    curve.check_parts()
    share, n_cases = curve(np.arange(1, 51)), curve.n_cases
    by_hand = [share_by_hand(k, places, 50, n_cases) for k in range(1, 51)]
    np.testing.assert_allclose(share, by_hand, rtol=1e-9)
    assert (np.diff(share) <= 1e-12).all()
    assert n_cases == known or 0 < n_cases <= 50
    expected = share * np.arange(1, 51)  # rows that are cases: more with every row
    assert (np.diff(expected) >= -1e-9).all()


def test_nothing_is_told_where_no_case_was_held_out():
    assert sureness(45, np.zeros(0, dtype=np.int64)) is None


def test_shares_are_the_truth_where_cases_stand_at_random_among_so_many():
    """200 cases lead a list of 5,000; those held out stand among them as any other would."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(50):
        share = sureness(5000, np.sort(rng.integers(1, 201, 12)))
        found.append([share.n_cases, *share([100, 400])])
    n_cases, hundred, four_hundred = np.mean(found, axis=0)
    assert n_cases == pytest.approx(200, rel=0.2)
    assert hundred > 0.9
    assert four_hundred == pytest.approx(0.5, abs=0.1)
