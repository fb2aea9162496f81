"""Numbers of wrong labels from scores: the likelihood and the bound beside slow sums; coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rareclass.labels.wrong_labels import (
    confident_count,
    count_wrong_labels,
    loss_of_curve,
    most_wrong_at_random,
)

SCORES = st.lists(st.integers(-8, 8).map(lambda k: k / 2.0), min_size=1, max_size=12)


def scored(n_rare=300, n_lost=0, n_majority=3_000, apart=4.0, seed=0):
    """Scores of rows that kept the rare label, and of rows with the label of the majority."""
    rng = np.random.default_rng(seed)
    rare, others = rng.normal(apart, 1.0, n_rare), rng.normal(0.0, 1.0, n_majority)
    return rare[n_lost:], np.append(others, rare[:n_lost])


@given(
    st.floats(-3, 3), st.floats(-2, 2), st.floats(-2, 2), st.floats(-9, -1.2), SCORES,
    st.floats(0.4, 1.0),
    st.integers(0, 10**6),
)  # fmt: skip
def test_the_likelihood_is_the_sum_over_rows_and_its_gradient_that_of_differences(
    a, log_b, log_e, log_d, scores, most, seed
):
    rng = np.random.default_rng(seed)
    own, other = rng.integers(0, 4, (2, len(scores))).astype(float)
    score, at = np.array(scores), np.array([a, log_b, log_e, log_d])
    first, last = min(scores), max(scores)
    loss, gradient = loss_of_curve(at, score, own, other, most)
    slow = (log_e - log_b) ** 2 / 20.0
    for s, n, m in zip(score, own, other, strict=True):
        # The slope goes evenly from exp(log_b) to exp(log_e): a trapezium below it.
        end = np.exp(log_b) + (np.exp(log_e) - np.exp(log_b)) * (s - first) / (last - first or 1.0)
        of_class = 1.0 / (1.0 + np.exp(-(a + (s - first) * (np.exp(log_b) + end) / 2.0)))
        share = most * of_class + np.exp(log_d) * (1.0 - of_class)
        slow -= n * np.log(share) + (m * np.log1p(-share) if m else 0.0)
    if not slow < 1e3:  # differences of large numbers say nothing
        return
    assert loss == pytest.approx(slow, rel=1e-7, abs=1e-7)
    for k in range(4):
        step = 1e-6 * np.eye(4)[k]
        ends = [loss_of_curve(at + sign * step, score, own, other, most)[0] for sign in (1.0, -1.0)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-3, abs=1e-3)


@given(SCORES, SCORES)
def test_the_bound_is_at_least_that_of_every_threshold_taken_alone(own, other):
    own, other = np.array(own), np.array(other)
    ones = np.ones(len(own)), np.ones(len(other))
    found = most_wrong_at_random(own, other, *ones)
    tail = 0.0025
    bounds = []
    for t in np.unique(own):
        k, above = int((own >= t).sum()), int((other >= t).sum())
        least = stats.beta.ppf(tail, k, len(own) - k + 1)
        bounds.append(stats.gamma.ppf(1.0 - tail, above + 1) / least)
    # Every threshold that is looked at is one of these, or counts fewer of several equal rows.
    assert found >= min(bounds) * (1.0 - 1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_lost", [0, 30, 90])
def test_the_number_is_found_where_classes_stand_apart(n_lost):
    found = count_wrong_labels(*scored(n_lost=n_lost))
    assert found.low <= n_lost <= found.high <= found.most
    assert abs(found.number - n_lost) <= 30
    assert found.are_certain == (n_lost > 0)
    assert found.share == pytest.approx(found.number / (found.number + 300 - n_lost))


def test_an_overlap_of_classes_is_not_taken_for_wrong_labels():
    rng = np.random.default_rng(0)
    score = rng.uniform(-3, 3, 6_000)
    rare = rng.random(6_000) < 0.3 / (1.0 + np.exp(-4.0 * score))  # a share of 0.3 at the top
    found = count_wrong_labels(score[rare], score[~rare])
    assert (found.number, found.low) == (0.0, 0.0)


def test_a_weight_counts_as_so_many_rows_and_an_interval_of_copies_is_not_shorter():
    own, other = scored(n_rare=120, n_lost=20, n_majority=900)
    once = count_wrong_labels(own, other)
    twice = count_wrong_labels(own, other, np.full(len(own), 2.0), np.full(len(other), 2.0))
    copied = count_wrong_labels(np.repeat(own, 2), np.repeat(other, 2))
    assert twice.number == pytest.approx(copied.number)
    assert twice.low == pytest.approx(copied.low)
    assert twice.most == pytest.approx(2.0 * once.most, rel=0.3)
    assert twice.high >= copied.high


@pytest.mark.parametrize(("own", "other"), [([], [1.0]), ([1.0], [])])
def test_rows_of_both_labels_are_needed(own, other):
    with pytest.raises(ValueError, match="two labels"):
        count_wrong_labels(own, other)


def test_constant_scores_and_single_rows_have_an_estimate():
    for own, other in (([1.0], [1.0]), ([1.0] * 5, [1.0] * 9), ([2.0], [1.0])):
        found = count_wrong_labels(own, other)
        assert 0.0 <= found.low <= found.number <= found.high <= found.most


@pytest.mark.thorough
def test_the_interval_covers_the_number_lost_at_random():
    rng = np.random.default_rng(1)
    covered = []
    for seed in range(150):
        n_rare, apart = int(rng.integers(30, 300)), rng.uniform(2.0, 5.0)
        n_lost = int(n_rare * rng.choice([0.0, 0.05, 0.1, 0.2, 0.4]))
        found = count_wrong_labels(*scored(n_rare, n_lost, 2_000, apart, seed))
        covered.append(found.low <= n_lost <= found.high)
    assert np.mean(covered) >= 0.95


CHANCES = st.lists(st.integers(0, 16).map(lambda k: k / 16.0), min_size=1, max_size=12)


@given(CHANCES, CHANCES)
def test_confident_learning_counts_rows_above_the_means_of_both_labels(own, other):
    """The count of cleanlab's confident joint, scaled to the rows of the label."""
    bar_own, bar_other = np.mean(own), np.mean(1.0 - np.array(other))
    joint = [0, 0]
    for p in other:
        likely = [q for q, bar in ((p, bar_own), (1.0 - p, bar_other)) if q >= bar]
        if likely:
            joint[1 if len(likely) == 2 and p <= 0.5 else int(p < bar_own)] += 1
    slow = len(other) * joint[0] / sum(joint) if sum(joint) else 0.0
    assert confident_count(own, other) == pytest.approx(slow)
    copies = np.arange(len(other)) % 3 + 1
    assert confident_count(own, other, None, copies) == pytest.approx(
        confident_count(own, np.repeat(other, copies))
    )


def test_confident_learning_counts_lost_labels_of_classes_that_stand_apart():
    own, other = scored(n_lost=60)
    count = confident_count(*(1.0 / (1.0 + np.exp(-4.0 * (s - 2.0))) for s in (own, other)))
    assert count == pytest.approx(60, abs=25)
