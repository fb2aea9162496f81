"""Precision where cases were missed: beside a slow sum, and beside the truth in expectation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.metrics import average_precision, missed_case_measures
from rareclass.metrics.missed_cases import average_precision_with_missed

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=20).filter(
    lambda rows: len({each[0] for each in rows}) == 2
)


@given(ROWS, st.floats(0.0, 3.0))
def test_the_average_is_the_mean_over_cases_with_ties(rows, ratio):
    y, scores = (np.array(each) for each in zip(*rows, strict=True))
    precisions = [y[scores >= score].mean() for score in scores[y]]
    slow = np.mean([min(1.0, (1.0 + ratio) * each) for each in precisions])
    assert average_precision_with_missed(y, scores, ratio) == pytest.approx(slow)
    recorded = average_precision_with_missed(y, scores, 0.0)
    assert recorded == pytest.approx(average_precision(y, scores))


def planted(share, apart, seed):
    rng = np.random.default_rng(seed)
    true = np.arange(6_000) < 300
    scores = rng.normal(size=6_000) + apart * true
    return true & (rng.random(6_000) >= share), scores, float(np.quantile(scores, 0.94)), true


def of_true_labels(scores, threshold, true):
    called = scores > threshold
    hits = (called & true).sum()
    return hits / called.sum(), hits / true.sum(), average_precision(true, scores), true.sum()


def draws(share, apart, n):
    """Values, true values, and whether intervals hold these, a row a draw."""
    found = []
    for seed in range(n):
        recorded, scores, threshold, true = planted(share, apart, seed)
        each = missed_case_measures(recorded, scores, threshold, missed_cases=share)
        intervals = each.precision, each.recall, each.average_precision
        truth = of_true_labels(scores, threshold, true)
        held = [i.low <= at <= i.high for i, at in zip(intervals, truth, strict=False)]
        found.append(([*(i.value for i in intervals), each.n_rare], truth, held))
    return map(np.array, zip(*found, strict=True))


def test_missed_at_random_measures_are_those_of_the_true_labels():
    values, truth, held = draws(0.3, 2.5, 6)
    error = (values - truth).mean(axis=0)
    assert (np.abs(error[:3]) < 0.03).all()
    assert error[3] == pytest.approx(0.0, abs=10.0)
    assert held.all()
    recorded, scores, threshold, true = planted(0.3, 2.5, 0)
    assert recorded[scores > threshold].mean() < true[scores > threshold].mean() - 0.15


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.1, 0.3, 0.45])
@pytest.mark.parametrize("apart", [1.5, 2.5, 4.0])
def test_intervals_hold_the_measures_of_the_true_labels(share, apart):
    _, _, held = draws(share, apart, 60)
    assert (held.mean(axis=0) >= 0.9).all()


def test_no_alert_has_no_precision_and_a_model_that_misses_nothing_keeps_its_measures():
    recorded, scores, threshold, _ = planted(0.3, 2.5, 0)
    none = missed_case_measures(recorded, scores, np.inf, missed_cases=0.3)
    assert none.precision is None
    assert none.recall.value == 0.0
    assert none.as_plain_data()["precision"] is None
    least = missed_case_measures(recorded, scores, threshold, missed_cases=1e-12)
    assert least.average_precision.value == pytest.approx(average_precision(recorded, scores))
    assert least.precision.value == pytest.approx(recorded[scores > threshold].mean())


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0, "auto", None, True, np.nan])
def test_a_share_that_is_none_is_refused(share):
    with refused(ErrorKind.SETTING):
        missed_case_measures([True, False], [1.0, 0.0], 0.5, missed_cases=share)
    with refused(ErrorKind.LABELS):
        missed_case_measures([False, False], [1.0, 0.0], 0.5, missed_cases=0.2)
