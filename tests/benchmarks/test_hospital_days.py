"""Generated days in hospital: levels, determinism, what the features know and what they do not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hospital_days import (
    LAST_LEVEL,
    LONGEST_STAY,
    PAPER_FEATURES,
    PAPER_ROWS,
    PROFILE,
    TAIL,
    hospital_days,
    level_counts,
)
from rareclass.metrics import mauc


def test_levels_of_the_paper_s_shape():
    counts = level_counts(PAPER_ROWS)
    assert counts.sum() == PAPER_ROWS
    assert len(counts) == 16
    assert counts[0] == round(0.85 * PAPER_ROWS)
    assert (np.diff(counts[1:15]) < 0).all()  # a long tail
    assert counts[15] > counts[14] > 50  # 15 stands for all that is longer


@given(st.integers(0, 5000), st.floats(0.0, 1.0))
def test_level_counts_add_up_and_are_within_one_of_their_share(n_rows, zero_share):
    counts = level_counts(n_rows, zero_share)
    assert counts.sum() == n_rows
    assert counts[0] == round(n_rows * zero_share)
    shares = [day**-TAIL for day in range(1, LONGEST_STAY + 1)]
    expected = np.array([*shares[:14], sum(shares[14:])]) / sum(shares) * (n_rows - counts[0])
    assert (np.abs(counts[1:] - expected) <= 1.0 + 1e-9).all()


@pytest.mark.parametrize("zero_share", [0.0, 0.5, 0.85, 1.0])
def test_drawn_levels_are_the_counted_ones(zero_share):
    _, y, _ = hospital_days(2000, 30, zero_share, random_state=0)
    np.testing.assert_array_equal(
        np.bincount(y, minlength=LAST_LEVEL + 1), level_counts(2000, zero_share)
    )


def test_same_seed_same_rows():
    first, again = (hospital_days(300, 40, random_state=5) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first.X, hospital_days(300, 40, random_state=6).X)


def test_features_are_age_sex_counts_and_indicators():
    X, _, _ = hospital_days(3000, random_state=0)
    assert X.shape == (3000, PAPER_FEATURES)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X[:, :10].sum(axis=1), 1.0)
    np.testing.assert_array_equal(X, np.round(X))
    assert X.min() == 0.0
    is_indicator = X[:, PROFILE:].max(axis=0) <= 1.0
    assert 0.35 < is_indicator.mean() < 0.75  # rare claims are counted 0 or 1 by chance as well
    assert X.max() > 10.0
    assert 0.7 < (X == 0.0).mean() < 0.95


def test_rows_are_in_random_order():
    _, y, _ = hospital_days(2000, 30, 0.5, random_state=0)
    assert 800 < np.count_nonzero(np.diff(y > 0)) < 1200


def test_burden_ranks_levels_and_luck_keeps_it_from_being_perfect():
    _, y, burden = hospital_days(20_000, 23, random_state=0)
    assert 0.8 < mauc(y, burden) < 0.95
    assert 0.55 < mauc(y[y > 0], burden[y > 0]) < 0.75  # length of stay is harder to tell


def test_relation_is_the_same_in_every_draw():
    """A direction learned on one draw ranks another one, though less well than the burden."""
    X, y, _ = hospital_days(8000, 60, random_state=1)
    Z, levels, burden = hospital_days(8000, 60, random_state=2)
    design = np.column_stack([np.ones(len(X)), X])
    direction = np.linalg.lstsq(design, (y > 0).astype(float), rcond=None)[0][1:]
    assert 0.65 < mauc(levels, Z @ direction) < mauc(levels, burden)


def test_given_the_burden_features_tell_nothing():
    X, y, burden = hospital_days(40_000, 60, random_state=3)
    admitted = (y > 0).astype(float)
    bins = np.digitize(burden, np.quantile(burden, np.linspace(0, 1, 201)[1:-1]))
    use = X[:, PROFILE:].sum(axis=1)

    def correlation(a, b):
        return np.corrcoef(a, b)[0, 1]

    def within(a):
        means = np.bincount(bins, a) / np.bincount(bins)
        return a - means[bins]

    assert correlation(admitted, use) > 0.15
    assert abs(correlation(within(admitted), within(use))) < 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"zero_share": 1.5}, "zero_share must lie between 0 and 1, got 1.5"),
        ({"n_features": 22}, "n_features must be 23 or more .* got 22"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        hospital_days(10, **arguments)


def test_no_rows():
    X, y, burden = hospital_days(0, random_state=0)
    assert (X.shape, y.shape, burden.shape) == ((0, PAPER_FEATURES), (0,), (0,))
