"""The ways to count rows into cells: each against the definition, and where they meet."""

from functools import partial
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from draws import draws
from oracles.metrics import samples
from rareclass import metrics
from rareclass.metrics import scored_classes
from rareclass.metrics.scored_classes import place_rows, split_scores


def searched(split, compiled_from):
    with patch.object(scored_classes, "_SEARCH_FROM", compiled_from):
        return place_rows(split).cells


WAYS = [partial(searched, compiled_from=n) for n in (0, 10**9)]


def cells_by_definition(y, scores, weight):
    y, scores, weight = y[weight > 0], scores[weight > 0], weight[weight > 0]
    distinct = sorted(set(scores[y == 1]))
    ends = [None, *distinct, None]
    rare = [weight[(y == 1) & (scores == s)].sum() for s in distinct]
    tied = [weight[(y == 0) & (scores == s)].sum() for s in distinct]
    gaps = []
    for low, high in pairwise(ends):
        inside = y == 0
        if low is not None:
            inside = inside & (scores > low)
        if high is not None:
            inside = inside & (scores < high)
        gaps.append(weight[inside].sum())
    return distinct, rare, tied, gaps


def assert_cells_equal(ours, expected, rel=1e-12):
    for column, values in zip(ours, expected, strict=True):
        np.testing.assert_allclose(column, values, rtol=rel, atol=0)


@st.composite
def many_scores(draw):
    """Enough distinct rare scores for several strides; infinities, both zeros, ties, weights 0."""
    n = draw(st.integers(2, 700))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from([1, 5, 100, 10_000]))
    scores = rng.integers(-levels, levels + 1, n) * draw(st.sampled_from([1e-300, 1.0, 1e300]))
    special = rng.random(n) < draw(st.sampled_from([0.0, 0.1, 1.0]))
    scores[special] = rng.choice([np.inf, -np.inf, 0.0, -0.0], special.sum())
    y = rng.random(n) < draw(st.sampled_from([0.02, 0.5, 0.98]))
    y[:2] = True, False
    weight = rng.integers(0, 4, n).astype(float)
    weight[:2] = 1.0
    return y.astype(int), scores, weight


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
@given(sample=samples())
def test_cells_are_as_defined(way, sample):
    y, s, w = sample
    assert_cells_equal(way(split_scores(y, s, w)), cells_by_definition(y, s, w))
    assert_cells_equal(way(split_scores(y, s)), cells_by_definition(y, s, np.ones(y.size)))


@given(many_scores())
def test_all_ways_give_the_same_cells(sample):
    y, s, w = sample
    for weight in (None, w):
        split = split_scores(y, s, weight)
        assert_cells_equal(*(way(split) for way in WAYS), rel=0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_rare", [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097])
def test_every_place_among_the_rare_scores(way, n_rare):
    # One majority row in each gap, two at each tie, in an order that mixes them.
    at = np.arange(n_rare, dtype=float)
    majority = np.concatenate([at - 0.5, [n_rare - 0.5], at, at])
    np.random.default_rng(0).shuffle(majority)
    y = np.repeat([1, 0], [n_rare, majority.size])
    split = split_scores(y, np.concatenate([at[::-1], majority]))
    cells = way(split)
    expected = (at, np.ones(n_rare), np.full(n_rare, 2.0), np.ones(n_rare + 1))
    assert_cells_equal(cells, expected, rel=0)


@draws(5)
@given(st.integers(0, 2**32), st.sampled_from([0.001, 0.5]), st.booleans())
def test_one_row_more_crosses_the_switch(seed, rare_share, ties):
    n = scored_classes._SEARCH_FROM
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rare_share
    y[:2] = True, False
    s = rng.normal(size=n) + y
    s = np.round(s, 1) if ties else s
    w = rng.integers(0, 3, n)
    w[:2] = 1
    assert metrics.roc_auc(y, s) == pytest.approx(roc_auc_score(y, s), rel=1e-12)
    # Counts and whole weights are exact either way; a row of weight 0 does not cross.
    split = split_scores(y, s)
    assert_cells_equal(*(way(split) for way in WAYS), rel=0)
    copies = metrics.roc_auc(np.repeat(y, w), np.repeat(s, w))
    assert metrics.roc_auc(y, s, w) == pytest.approx(copies, rel=1e-12)
    short = metrics.roc_auc(y[1:], s[1:], w[1:])
    w[0] = 0
    assert metrics.roc_auc(y, s, w) == short


def test_labels_and_weights_of_every_kind_are_split_alike():
    rng = np.random.default_rng(0)
    y = rng.random(1000) < 0.3
    s = rng.normal(size=1000)
    w = rng.integers(0, 3, 1000)
    expected = (s[y & (w > 0)], s[~y & (w > 0)], w[y & (w > 0)], w[~y & (w > 0)])
    for label in (y, y.astype(int), y.astype(np.float32), y.astype(object), y.tolist()):
        for column, values in zip(split_scores(label, s, w), expected, strict=True):
            np.testing.assert_array_equal(column, values)
    strided = np.repeat(s, 2)[::2]
    strided.flags.writeable = False
    assert metrics.roc_auc(y, strided) == metrics.roc_auc(y, s)
