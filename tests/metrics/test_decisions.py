"""Recall and lift at k, partial AUC and expected cost against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score

from draws import draws
from faults import refused
from oracles.metrics import precision_at_k_by_filling, samples
from oracles.paired_metrics import cost_by_rows
from rareclass import metrics
from rareclass.errors import ErrorKind
from rareclass.metrics.areas import area_estimate
from rareclass.metrics.rare_cells import collapse
from rareclass.metrics.scored_classes import split_scores


@draws(40)
@given(samples(), st.floats(0.05, 1.0))
def test_recall_and_lift_are_precision_in_other_units(sample, share):
    y, s, w = sample
    k = share * w.sum()
    rare = precision_at_k_by_filling(y, s, k, w) * k / w[y == 1].sum()
    assert metrics.recall_at_k(y, s, k, w) == pytest.approx(rare, rel=1e-6, abs=1e-9)
    for lift in (metrics.lift_at_k(y, s, k, w), metrics.lift_at_k(y, s, None, w, share=share)):
        assert lift == pytest.approx(rare / share, rel=1e-6, abs=1e-6)


@draws(60)
@given(samples(), st.floats(0.01, 1.0))
def test_partial_auc_is_scikit_learns(sample, max_fpr):
    y, s, w = sample
    w = np.where(w > 0, np.clip(w, 1e-3, 1e3), 0.0)
    expected = roc_auc_score(y, s, max_fpr=max_fpr, sample_weight=w)
    assert metrics.partial_auc(y, s, w, max_fpr=max_fpr) == pytest.approx(expected, abs=1e-7)
    least = max_fpr**2 / 2
    # McClish's scale undone; at 1 scikit-learn gives the area itself, which is its own scale.
    area = expected if max_fpr == 1.0 else least + (2 * expected - 1) * (max_fpr - least)
    ours = metrics.partial_auc(y, s, w, max_fpr=max_fpr, standardized=False)
    assert ours == pytest.approx(area, abs=1e-7)


def test_partial_auc_influences_are_derivatives():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [9, 60])
    s = rng.normal(size=69) + y
    w = rng.uniform(0.5, 3.0, size=69)
    p, variance, share = 0.3, 0.0, metrics.partial_auc(y, s, w, max_fpr=0.3, standardized=False)
    share /= p
    for row in range(69):
        own, step = y == y[row], 1e-6
        there = [
            metrics.partial_auc(
                y,
                s,
                np.where(own, w * (1 - e), w) + e * w[own].sum() * (np.arange(69) == row),
                max_fpr=p,
                standardized=False,
            )
            for e in (step, -step)
        ]
        slope = (there[0] - there[1]) / (2 * step * p)
        variance += w[row] * slope**2 / w[own].sum() ** 2
    c = share * (1 - share)
    made_up = c / w[y == 1].sum() ** 2 + c / (p * w[y == 0].sum()) ** 2
    ours = area_estimate(collapse(split_scores(y, s, w)), p)
    assert ours[:3] == pytest.approx((share, share, variance + made_up), rel=1e-4)


def test_whole_partial_auc_is_the_auc_with_its_interval():
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [9, 300])
    s = np.round(rng.normal(size=309) + y, 1)
    whole = metrics.interval("partial_auc", y, s, max_fpr=1.0)
    assert whole == pytest.approx(metrics.interval("roc_auc", y, s), rel=1e-12)


@draws(40)
@given(samples(), st.sampled_from([-np.inf, -1.0, 0.0, 2.5, np.inf]), st.integers(0, 2**32))
def test_cost_is_that_of_the_rows_called_wrongly(sample, threshold, seed):
    y, s, w = sample
    fp, fn = np.random.default_rng(seed).gamma(0.5, size=(2, y.size))
    expected = cost_by_rows(y, s, threshold, fp, fn, w)
    assert metrics.expected_cost(y, s, threshold, fp, fn, w) == pytest.approx(expected, rel=1e-9)
    found = metrics.interval("expected_cost", y, s, w, threshold=threshold, cost_fp=fp, cost_fn=fn)
    assert 0.0 <= found.low <= found.value <= found.high
    assert found.value == pytest.approx(expected, rel=1e-9)


def test_cost_of_decisions_and_of_nothing_at_stake():
    y = np.array([True, True, False, False])
    called = np.array([True, False, True, False])
    assert metrics.expected_cost(y, called, cost_fp=3, cost_fn=5) == 2.0
    assert metrics.interval("expected_cost", y, called, cost_fp=0, cost_fn=0) == (0.0, 0.0, 0.0)
    one = metrics.interval("expected_cost", y, called, cost_fp=0)
    recall = metrics.interval("recall_at_k", [1, 1, 0, 0], [3, 1, 0, 0], k=1)
    assert one == pytest.approx((0.25, (1 - recall.high) / 2, (1 - recall.low) / 2))


def test_amounts_that_vary_make_the_cost_vary():
    y = np.repeat([1, 0], [50, 50])
    amounts = np.tile([2.0, 6.0], 50)
    varied = metrics.interval("expected_cost", y, np.zeros(100), cost_fp=0.0, cost_fn=amounts)
    # All rare rows are missed: the mean amount varies, and Wilson's interval reaches down.
    share = metrics.interval("recall_at_k", [1] * 40 + [0], np.arange(41)[::-1], k=40)
    assert share.value == 1.0  # (2 + 6)**2 / (2**2 + 6**2) * 25 rows' worth of trials
    down = np.hypot(2.0 * (1 - share.low), ndtri(0.975) * 2.0 / np.sqrt(50) / 2)
    up = ndtri(0.975) * 2.0 / np.sqrt(50) / 2
    assert varied == pytest.approx((2.0, 2.0 - down, 2.0 + up))


def test_bad_options_are_named():
    y, s = [0, 1], [0.1, 0.2]
    for p in (0.0, 1.1, np.nan, True):
        with pytest.raises(ValueError, match=r"max_fpr=.* must be a rate"):
            metrics.partial_auc(y, s, max_fpr=p)
    with refused(ErrorKind.SETTING, value=3):
        metrics.recall_at_k(y, s, 3)
    for k, share in ((None, None), (1, 0.5)):
        with refused(ErrorKind.COMBINATION):
            metrics.lift_at_k(y, s, k, share=share)
    with pytest.raises(ValueError, match="share=2 must be"):
        metrics.lift_at_k(y, s, share=2)
    with refused(ErrorKind.CELL, column="cost_fn", row=1, value=-1.0):
        metrics.expected_cost(y, s, cost_fn=[1, -1])
    with refused(ErrorKind.ROWS, column="cost_fp"):
        metrics.expected_cost(y, s, cost_fp=[1, 1, 1])
    with pytest.raises(ValueError, match="threshold=nan"):
        metrics.expected_cost(y, s, np.nan)
