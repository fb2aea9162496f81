"""Measures against their definitions and scikit-learn; invariances and refusals of all of them."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.metrics import average_precision_score, roc_auc_score

from draws import draws
from faults import refused
from oracles.metrics import average_precision_by_rows, precision_at_k_by_filling, samples
from oracles.ordinal import mauc_by_pairs
from oracles.paired_metrics import cost_by_rows
from rareclass import metrics
from rareclass.errors import ErrorKind

OPTIONS = {
    "roc_auc": {},
    "average_precision": {},
    "precision_at_k": {"k": 2},
    "recall_at_k": {"k": 2},
    "lift_at_k": {"k": 2},
    "partial_auc": {"max_fpr": 0.3},
    "expected_cost": {"threshold": 0.5, "cost_fp": 2.0, "cost_fn": 7.0},
}
VALUES = {name: partial(getattr(metrics, name), **more) for name, more in OPTIONS.items()}
VALUES["accuracy_at_optroc"] = metrics.accuracy_at_optroc
INTERVALS = {
    f"{name}_interval": partial(metrics.interval, name, **more) for name, more in OPTIONS.items()
}
ALL = VALUES | INTERVALS
by_name = pytest.mark.parametrize("name", ALL)


@given(samples())
def test_areas_are_means_over_pairs_and_over_rare_rows(sample):
    by_pairs, by_rows = mauc_by_pairs(*sample), average_precision_by_rows(*sample)
    assert metrics.roc_auc(*sample) == pytest.approx(by_pairs, rel=1e-12, abs=0)
    assert metrics.average_precision(*sample) == pytest.approx(by_rows, rel=1e-10)


@given(samples(), st.floats(0.01, 1.0))
def test_precision_at_k_fills_from_the_top(sample, share):
    y, s, w = sample
    k = share * w.sum()
    expected = precision_at_k_by_filling(y, s, k, w)
    assert metrics.precision_at_k(y, s, k, w) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("rare_share", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(rare_share, weighted):
    rng = np.random.default_rng(0)
    y = rng.random(5000) < rare_share
    s = np.round(rng.normal(size=5000) + y, 2)
    w = rng.gamma(0.3, size=5000) if weighted else None
    auc, ap = roc_auc_score(y, s, sample_weight=w), average_precision_score(y, s, sample_weight=w)
    assert metrics.roc_auc(y, s, w) == pytest.approx(auc, rel=1e-11)
    assert metrics.average_precision(y, s, w) == pytest.approx(ap, rel=1e-11)


@pytest.mark.sampled(6)
@by_name
@draws(40)
@given(data=st.data())
def test_a_weight_of_k_is_k_copies_and_0_is_absence(name, data):
    y, s, _ = data.draw(samples(weights=False))
    copies = np.array(data.draw(st.lists(st.integers(0, 3), min_size=y.size, max_size=y.size)))
    copies[[np.argmax(y == 0), np.argmax(y == 1)]] = 2
    repeated = ALL[name](np.repeat(y, copies), np.repeat(s, copies))
    rel = 1e-9 if name.startswith(("recall", "lift", "partial", "expected")) else 1e-12
    close = {"rel": rel, "abs": 0.0 if rel == 1e-12 else 1e-12}
    assert ALL[name](y, s, sample_weight=copies) == pytest.approx(repeated, **close)
    assert ALL[name](y, s, sample_weight=np.ones(y.size)) == pytest.approx(ALL[name](y, s), **close)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("expected")])
@draws(40)
@given(sample=samples(weights=False))
def test_only_the_order_of_the_scores_counts(name, sample):
    y, s, _ = sample
    rank = np.unique(s, return_inverse=True)[1]
    infinite = np.where(rank == rank.max(), np.inf, rank)
    assert ALL[name](y, np.exp(rank / 5.0)) == ALL[name](y, s) == ALL[name](y, infinite)
    back = np.arange(y.size)[::-1]
    assert ALL[name](y[back] == 1, s[back]) == ALL[name](y, s)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", INTERVALS)
@draws(40)
@given(sample=samples())
@example(sample=(np.array([0, 1]), np.array([1.0, 0.0]), np.array([2.0, 2.0])))
def test_intervals_hold_the_value(name, sample):
    y, s, w = sample
    w[np.argmax(y == 1)] += 2.0  # k = 2 is within the rows
    found = INTERVALS[name](y, s, sample_weight=w)
    assert found.low <= found.value <= found.high
    if not name.startswith(("lift", "expected")):
        assert 0.0 <= found.low <= found.high <= 1.0
    of_value = VALUES[name.removesuffix("_interval")](y, s, sample_weight=w)
    assert found.value == pytest.approx(of_value, rel=1e-12, abs=1e-12)


def best_of_all_thresholds(y, scores, weight):
    right = [
        weight[(scores >= t) == (y == 1)].sum() for t in [*np.unique(scores[weight > 0]), np.inf]
    ]
    return max(right) / weight.sum()


@given(samples())
def test_accuracy_at_optroc_is_the_best_of_all_thresholds(sample):
    y, s, w = sample
    for weight, passed in ((w, w), (np.ones(y.size), None)):
        best = best_of_all_thresholds(y, s, weight)
        assert metrics.accuracy_at_optroc(y, s, passed) == pytest.approx(best, rel=1e-12)
    value = metrics.accuracy_at_optroc(y, s)
    assert value == metrics.accuracy_at_optroc(1 - y, -s)  # the classes may change places
    assert max(y.mean(), 1 - y.mean()) <= value + 1e-12
    assert value <= 1.0


K = ErrorKind
BAD_INPUT = (
    ([], [], None, K.TOO_FEW_ROWS, {}),
    ([0, 1], [1.0], None, K.ROWS, {"column": "y"}),
    ([0, 1, 1], [1.0, np.nan, 2.0], None, K.CELL, {"column": "scores", "row": 1}),
    ([0, 1], ["a", "b"], None, K.CELL, {"column": "scores", "remedy": False}),
    ([0, 1], [[1.0], [2.0]], None, K.SHAPE, {"column": "scores"}),
    ([0, 2], [1.0, 2.0], None, K.CELL, {"column": "y", "row": 1, "value": 2}),
    (["no", "yes"], [1.0, 2.0], None, K.CELL, {"column": "y", "row": 0}),
    ([0, np.nan], [1.0, 2.0], None, K.CELL, {"column": "y", "row": 1}),
    ([0, 0], [1.0, 2.0], None, K.LABELS, {"says": "no rare (y = 1) row"}),
    ([True, True], [1.0, 2.0], None, K.LABELS, {"says": "no majority (y = 0) row"}),
    ([0, 1], [1.0, 2.0], [1.0], K.ROWS, {"column": "sample_weight"}),
    ([0, 1, 1], [1.0, 2.0, 3], [1.0, -1.0, -2], K.CELL, {"row": 1, "says": "1 more such"}),
    ([0, 1], [1.0, 2.0], [1.0, np.inf], K.CELL, {"column": "sample_weight", "row": 1}),
    ([0, 1], [1.0, 2.0], [1.0, 0.0], K.LABELS, {"says": "of positive weight"}),
)


@pytest.mark.sampled(30)
@by_name
@pytest.mark.parametrize(("y", "scores", "weight", "kind", "place"), BAD_INPUT)
def test_bad_input_is_named(name, y, scores, weight, kind, place):
    with refused(kind, **place):
        ALL[name](y, scores, sample_weight=weight)


@pytest.mark.parametrize("k", [0, -1, 3, np.nan, np.inf])
def test_k_out_of_range(k):
    for measure in (metrics.precision_at_k, partial(metrics.interval, "precision_at_k")):
        with pytest.raises(ValueError, match="k = "):
            measure([0, 1], [0.1, 0.2], k=k)


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
