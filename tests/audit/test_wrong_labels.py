"""Limits on wrong labels: beside the largest number that is probable, and how often they hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.audit import SIMULATED, simulated_limits
from draws import quick
from rareclass.audit import limit_wrong_labels

# Cells of the simulation for every run: labels of a class that stands apart are limited most
# closely; in the others a majority that overlaps, or resembles the class, has lost none or few.
QUICK = [
    ("apart", (300, 2_000), 0.2), ("apart", (2_000, 2_000), 0.4),
    ("narrow class", (300, 2_000), 0.05), ("1.5 % alike", (50, 2_000), 0.0),
]  # fmt: skip


def scored(n_rare=300, n_lost=0, n_majority=3_000, apart=4.0, seed=0):
    rng = np.random.default_rng(seed)
    rare, others = rng.normal(apart, 1.0, n_rare), rng.normal(0.0, 1.0, n_majority)
    return rare[n_lost:], np.append(others, rare[:n_lost])


@given(st.integers(1, 40), st.integers(1, 80), st.integers(0, 10**6))
def test_the_limit_is_the_largest_number_that_is_probable_at_every_threshold(n, m, seed):
    """If N rows lost their label, the first k + M of n + N hold k or more that kept theirs."""
    rng = np.random.default_rng(seed)
    own, other = np.sort(rng.integers(0, 9, n))[::-1], rng.integers(-8, 2 + n % 3, m)
    places = np.unique(np.geomspace(min(3, n), n, 10).astype(int))
    for number in range(len(other), -1, -1):
        chances = [
            stats.hypergeom.sf(k - 1, n + number, n, min(k + above, n + number))
            for k in places
            for above in [int((other >= own[k - 1]).sum())]
        ]
        if min(chances) >= 0.05 / len(places):
            break
    most = limit_wrong_labels(own, other).most
    assert number - 1e-3 <= most < number + 1.0 + 1e-3
    assert most <= len(other)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("shape", "counts", "share"),
    quick(len(QUICK), [*QUICK, *(cell for cell in SIMULATED if cell not in QUICK)]),
)
def test_the_limit_holds_whatever_the_shape_of_the_scores(shape, counts, share):
    most, lost = simulated_limits(shape, counts, share, 100)
    assert (lost <= most).mean() >= 0.9


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("thinned", "of_rare"), quick(2, [(0.2, False), (1.0, True), (0.5, True), (0.5, False)])
)
@pytest.mark.parametrize("share", quick(1, [0.4, 0.05]))
def test_the_limit_holds_for_rows_that_stand_for_several_and_for_labels_of_the_majority(
    thinned, of_rare, share
):
    most, lost = simulated_limits("apart", (300, 2_000), share, 100, thinned, of_rare)
    assert (lost <= most).mean() >= 0.9
    assert np.median(most / np.maximum(lost, 20)) < 3.0


def test_a_class_that_stands_apart_has_a_close_limit_and_its_share():
    most, lost = simulated_limits("apart", (300, 2_000), 0.2, 20)
    assert (most <= lost + 6).all()
    found = limit_wrong_labels(*scored(n_lost=60))
    assert found.n_labelled == 240
    assert found.share == found.most / (found.most + 240)


def test_a_weight_counts_as_so_many_rows_and_its_limit_is_not_below_that_of_copies():
    own, other = scored(n_rare=120, n_lost=20, n_majority=900)
    once = limit_wrong_labels(own, other)
    twice = limit_wrong_labels(own, other, np.full(len(own), 2.0), np.full(len(other), 2.0))
    copied = limit_wrong_labels(np.repeat(own, 2), np.repeat(other, 2))
    assert twice.n_labelled == copied.n_labelled == 2 * once.n_labelled
    assert copied.most <= twice.most <= 3.0 * once.most
    small = limit_wrong_labels(own, other, np.full(len(own), 0.1), np.full(len(other), 0.1))
    assert small.most == pytest.approx(0.1 * once.most)


@pytest.mark.parametrize(("own", "other"), [([], [1.0]), ([1.0], [])])
def test_rows_of_both_labels_are_needed(own, other):
    with pytest.raises(ValueError, match="two labels"):
        limit_wrong_labels(own, other)
