"""Thresholds of two classes, of levels and of several rare classes against all others."""

from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from draws import draws
from oracles.metrics import balanced_accuracy, samples
from oracles.ordinal import ordinal_samples
from rareclass.decide import balanced_accuracy_threshold, level_thresholds
from rareclass.decide.threshold import called_class, class_weights, decades_above, shared_thresholds


def _candidates(scores):
    levels = np.unique(scores)
    return np.concatenate([[levels[0] - 1], (levels[1:] + levels[:-1]) / 2, [levels[-1]]])


@given(samples())
def test_no_threshold_does_better_and_it_is_the_middle_of_the_widest_highest_gap(sample):
    y, s, w = sample
    t = balanced_accuracy_threshold(y, s, w)
    best = max(balanced_accuracy(y, s, w, c) for c in _candidates(s))
    assert balanced_accuracy(y, s, w, t) == pytest.approx(best, abs=1e-9)
    w = np.ones(len(y))
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
    for choose in (balanced_accuracy_threshold, lambda *rows: level_thresholds(*rows)[0]):
        if abs(low) <= 1.0 >= abs(high) - 1e-9 or choose is balanced_accuracy_threshold:
            assert low <= choose([0, 1], [low, high]) < high


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
def test_of_levels_a_weight_of_k_is_k_copies(sample, balanced):
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
    # Levels that are never worth predicting.
    t = level_thresholds([1, 2], [0.0, 1.0], levels=[0, 1, 2, 3])
    assert t.tolist() == [-np.inf, 0.5, np.inf]


@pytest.mark.parametrize(
    ("choose", "given", "message"),
    [
        (balanced_accuracy_threshold, ([0, 0], [1.0, 2.0]), "no rare"),
        (balanced_accuracy_threshold, ([0, 1], [np.nan, 2.0]), "NaN"),
        (level_thresholds, ([], []), "no rows"),
        (level_thresholds, ([0, 1], [1.0, np.nan]), r"scores\[1\] = .*nan"),
        (level_thresholds, ([0, 1], [1.0]), "y has 2 rows, but scores has 1"),
        (level_thresholds, ([0, 1], [1.0, 2.0], [1.0, -1.0]), r"sample_weight\[1\]"),
        (level_thresholds, (["a", "b"], [1.0, 2.0]), "text"),
    ],
)
def test_bad_columns_are_named(choose, given, message):
    with pytest.raises(ValueError, match=message):
        choose(*given)


# Few values, so that there are ties, and zeros.
SHARES = st.sampled_from([0.0, 1e-300, 0.01, 0.1, 0.1 + 1e-16, 0.2, 0.3, 0.5, 1.0])
PROBABILITIES = st.integers(1, 4).flatmap(
    lambda n: st.integers(1, 12).flatmap(lambda rows: arrays(float, (rows, n), elements=SHARES))
)


@given(PROBABILITIES, st.data())
def test_a_row_is_called_the_class_that_it_is_above_by_the_greatest_factor(probability, data):
    n = probability.shape[1]
    any_threshold = st.sampled_from([0.0, 0.01, 0.1, 0.3, np.inf])
    thresholds = data.draw(arrays(float, n, elements=any_threshold))
    for row, called in zip(probability, called_class(probability, thresholds), strict=True):
        above = [k for k in range(n) if row[k] > thresholds[k]]
        if not above:
            assert called == -1
            continue
        factor = {k: row[k] / thresholds[k] if thresholds[k] else np.inf for k in above}
        assert called in above
        assert factor[int(called)] >= max(factor.values()) * (1.0 - 1e-12)
    thresholds = data.draw(arrays(float, n, elements=SHARES))
    decades = decades_above(probability, thresholds)
    np.testing.assert_array_equal(decades > 0.0, probability > thresholds)
    assert not (decades == 0.0).any()


@given(PROBABILITIES, st.data())
def test_no_other_cut_is_nearer_to_the_number_wanted(probability, data):
    """An oracle: thresholds at every multiple that some row has, and below all of them."""
    rows, n = probability.shape
    weights = class_weights(data.draw(st.lists(st.integers(1, 1000), min_size=n, max_size=n)))
    copies = data.draw(arrays(float, rows, elements=st.sampled_from([0.5, 1.0, 3.0])))
    wanted = data.draw(st.floats(0.0, float(copies.sum())))

    def n_called(thresholds):
        return float(copies[called_class(probability, thresholds) >= 0].sum())

    found = shared_thresholds(probability, weights, wanted, copies)
    np.testing.assert_allclose(found * weights[0], found[0] * weights, rtol=1e-12)
    multiples = (probability / weights).max(axis=1)
    cuts = [0.0, *(value * (1.0 + 1e-9) for value in multiples)]
    nearest = min(abs(n_called(cut * weights) - wanted) for cut in cuts)
    assert abs(n_called(found) - wanted) <= nearest + 1e-9


def test_a_class_of_infinite_weight_is_never_called():
    probability = np.array([[0.9, 0.0], [0.2, 0.3]])
    found = shared_thresholds(probability, np.array([np.inf, 2.0]), 2.0)
    assert found[0] == np.inf
    assert called_class(probability, found).tolist() == [-1, 1]
