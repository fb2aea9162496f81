"""Thresholds between levels against every way to cut the scores."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from oracles.ordinal import ordinal_samples
from rareclass.decide import balanced_accuracy_threshold, level_thresholds


def error_of(predicted, codes, weight, balanced):
    if balanced:
        weight = weight / np.bincount(codes, weight)[codes]
    return float(weight @ np.abs(predicted - codes))


def least_error(codes, scores, weight, n_levels, balanced):
    """The least error of all non-decreasing maps from distinct scores to levels."""
    distinct, place = np.unique(scores, return_inverse=True)
    cuts = combinations_with_replacement(range(len(distinct) + 1), n_levels - 1)
    return min(
        error_of((place[:, None] >= np.array(cut)).sum(axis=1), codes, weight, balanced)
        for cut in cuts
    )


@draws(150)
@given(ordinal_samples(max_rows=9, max_levels=4), st.booleans())
def test_no_other_cuts_err_less(sample, balanced):
    scores, codes, weight, n_levels = sample
    levels = range(n_levels)
    t = level_thresholds(codes, scores, weight, levels=levels, balanced=balanced)
    assert t.shape == (n_levels - 1,)
    assert (t[1:] >= t[:-1]).all()
    kept = weight > 0
    codes, scores, weight = codes[kept], scores[kept], weight[kept]
    found = error_of(np.searchsorted(t, scores), codes, weight, balanced)
    least = least_error(codes, scores, weight, n_levels, balanced)
    assert found == pytest.approx(least, rel=1e-9, abs=1e-9 * weight.sum())


@draws(50)
@given(ordinal_samples(max_rows=12), st.booleans())
def test_a_weight_of_k_is_k_copies_and_0_is_absence(sample, balanced):
    scores, codes, weight, n_levels = sample
    copies = np.minimum(np.ceil(weight), 3).astype(int)
    given = {"levels": range(n_levels), "balanced": balanced}
    found = level_thresholds(codes, scores, copies, **given)
    repeated = level_thresholds(np.repeat(codes, copies), np.repeat(scores, copies), **given)
    np.testing.assert_array_equal(found, repeated)


def test_two_levels_have_the_threshold_of_best_balanced_accuracy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = rng.random(200) < 0.2
        y[:2] = 0, 1
        scores = np.round(rng.normal(size=200) + 1.5 * y, 1)
        weight = rng.integers(0, 4, 200)
        weight[:2] = 1
        [t] = level_thresholds(y, scores, weight)
        assert t == balanced_accuracy_threshold(y, scores, weight)


def test_rows_or_levels_count():
    scores = np.arange(13.0)
    codes = np.array([0] * 10 + [1, 0, 1])
    assert level_thresholds(codes, scores).tolist() == [9.5]
    # By rows a lone row of level 1 under one of level 0 is as well left out as let in.
    assert level_thresholds(codes, scores, balanced=False).tolist() in ([9.5], [11.5])
    assert level_thresholds([0] * 9 + [1], -scores[:10], balanced=False).tolist() == [np.inf]


def test_levels_that_are_never_worth_predicting():
    t = level_thresholds([1, 2], [0.0, 1.0], levels=[0, 1, 2, 3])
    assert t.tolist() == [-np.inf, 0.5, np.inf]


def test_neighbouring_floats_have_a_threshold_between_them():
    low = 1.0
    high = np.nextafter(low, 2.0)
    [t] = level_thresholds([0, 1], [low, high])
    assert low <= t < high


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], []), "no rows"),
        (([0, 1], [1.0, np.nan]), r"scores\[1\] = .*nan"),
        (([0, 1], [1.0]), "y has 2 rows, but scores has 1"),
        (([0, 1], [1.0, 2.0], [1.0, -1.0]), r"sample_weight\[1\]"),
        ((["a", "b"], [1.0, 2.0]), "text"),
    ],
)
def test_bad_columns_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        level_thresholds(*given)
