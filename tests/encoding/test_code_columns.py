"""Whole numbers that are codes are told from numbers that only happen to be whole."""

import numpy as np
import pytest

from rareclass.encoding.known_levels import KnownCodes, as_codes, could_be_codes
from rareclass.encoding.log_odds import rare_share

N = 6000
RNG = np.random.default_rng(0)
FOLD = RNG.integers(0, 5, N)
ONES = np.ones(N)
CODE = RNG.integers(0, 200, N)


def drawn(log_odds):
    """Rare rows by these log-odds, beside a share of about a tenth."""
    return RNG.random(N) < 1 / (1 + np.exp(2.4 - log_odds))


def test_codes_without_an_order_are_found_and_numbers_are_not():
    effect = 1.5 * RNG.normal(size=200)
    assert as_codes(CODE * 1.0, drawn(effect[CODE]), ONES, FOLD).tells_more
    assert not as_codes(CODE * 1.0, drawn(0.02 * (CODE - 100)), ONES, FOLD).tells_more
    assert not as_codes(CODE * 1.0, drawn(0.0 * CODE), ONES, FOLD).tells_more


def test_a_steep_number_with_most_rows_at_one_value_is_no_code():
    """Rare rows lie in the tail, which few rows are in: the bins must not be too wide there."""
    rng = np.random.default_rng(3)
    tail = np.where(rng.random(N) < 0.97, 100, CODE)
    y = (tail > 150) & (rng.random(N) < 0.9)
    assert not as_codes(tail * 1.0, y, ONES, FOLD).tells_more


def test_what_could_be_codes():
    assert could_be_codes(CODE * 1.0, ONES)
    assert could_be_codes(np.where(CODE > 3, CODE, np.nan), ONES)
    assert not could_be_codes(CODE + 0.5, ONES)
    assert not could_be_codes(np.arange(N) * 1.0, ONES)
    assert not could_be_codes(CODE % 19 * 1.0, ONES)
    # Rows without weight do not count.
    assert not could_be_codes(np.where(np.arange(N) < 9, CODE + 0.5, 1.0), np.arange(N) >= 9)
    assert not could_be_codes(np.full(N, np.nan), ONES)


def test_levels_of_values_known_missing_and_unseen():
    codes = np.array([5.0, np.nan, 2.0, 5.0, *range(10, 20)])
    known = KnownCodes().fit(codes, np.arange(14) == 0, np.ones(14))
    levels = known.levels(np.array([2.0, 5.0, np.nan, 3.0, -7.0, 1e300]))
    assert levels[:3].tolist() == [0, 1, 12]
    assert (levels[3:] > known.n_known).all()
    assert levels[4] < levels[5] < known.n_levels  # in the bins of the lowest and the highest
    assert [known.name(level) for level in (0, 12, 13)] == ["2", "missing", "unseen"]
    assert known.groups[levels[4]] == known.groups[0]
    assert KnownCodes().fit(np.array([np.nan]), np.array([True]), np.ones(1)).levels(
        np.array([1.0, np.nan])
    ).tolist() == [1, 0]


@pytest.mark.parametrize("steep", [0.0, 0.03])
def test_a_value_never_seen_is_taken_for_its_neighbours_where_those_say_something(steep):
    y = drawn(steep * (CODE - 100))
    codes = as_codes(CODE * 1.0, y, ONES, FOLD)
    low, high = codes.statistics.transform(codes.known.levels(np.array([0.5, 198.5])))
    assert abs(high - low) < 0.2 if steep == 0 else high - low > 2
    assert codes.statistics.prior_ == rare_share(y, ONES)
