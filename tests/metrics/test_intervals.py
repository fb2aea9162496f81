"""Intervals: their components against slow definitions, their bounds, and how often they cover."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import beta

from oracles.metrics import placements_by_pairs, samples
from rareclass.decide import ThresholdRule
from rareclass.errors import InputError
from rareclass.metrics import average_precision, interval, partial_auc, roc_auc
from rareclass.metrics.areas import (
    area_estimate,
    auc_estimate,
    auc_influences,
    average_precision_estimate,
    average_precision_influences,
    partial_auc_influences,
    rare_above,
)
from rareclass.metrics.scored_classes import cells_of

AREAS = [("roc_auc", {}), ("average_precision", {})]


def _spread(weight, value, mean):
    return weight @ (value - mean) ** 2


@given(samples())
def test_placements_are_delongs_structural_components(sample):
    y, s, w = sample
    of_rare, of_majority, auc = placements_by_pairs(y, s, w)
    cells = cells_of(y, s, w)
    ours = cells.majority_below() / cells.n_majority
    majority, value = np.append(cells.gaps, cells.tied), rare_above(cells)
    for power in (1, 2):
        assert cells.rare @ ours**power == pytest.approx(w[y == 1] @ of_rare**power, rel=1e-10)
        assert majority @ value**power == pytest.approx(w[y == 0] @ of_majority**power, rel=1e-10)
    assert cells.rare @ ours / cells.n_rare == pytest.approx(auc, rel=1e-10)


@given(samples())
def test_roc_auc_interval_is_its_formula(sample):
    y, s, w = sample
    of_rare, of_majority, auc = placements_by_pairs(y, s, w)
    n_rare, n_majority = w[y == 1].sum(), w[y == 0].sum()
    n, worst = min(n_rare, n_majority), auc * (1 - auc)
    variance = (_spread(w[y == 1], of_rare, auc) + worst) / n_rare**2
    variance += (_spread(w[y == 0], of_majority, auc) + worst) / n_majority**2
    low = beta.ppf(0.025, n * auc, n * (1 - auc) + 1) if auc > 0 else 0.0
    high = beta.ppf(0.975, n * auc + 1, n * (1 - auc)) if auc < 1 else 1.0
    if 1e-9 < auc < 1 - 1e-9:
        reach = ndtri(0.975) * np.sqrt(variance) / worst
        low = max(low, expit(logit(auc) - reach))
        high = min(high, expit(logit(auc) + reach))
        assert interval("roc_auc", y, s, w) == pytest.approx(
            (auc, min(low, auc), max(high, auc)), abs=1e-6
        )


@pytest.mark.parametrize(
    ("measure", "influences", "estimate", "options"),
    [
        (roc_auc, auc_influences, auc_estimate, {}),
        (average_precision, average_precision_influences, average_precision_estimate, {}),
        (partial_auc, partial_auc_influences, area_estimate, {"max_fpr": 0.3}),
    ],
)
def test_influences_are_derivatives_and_give_the_variance(measure, influences, estimate, options):
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [12, 40])
    s = np.round(rng.normal(size=52) + y, 1)
    w = rng.uniform(0.5, 3.0, size=52)
    cells = cells_of(y, s, w)
    of_rare, of_majority = influences(cells, **options)
    found, measure = estimate(cells, **options), partial(measure, **options)
    d, step, variance = cells.scores.size, 1e-6, 0.0
    for row in range(52):
        index = np.searchsorted(cells.scores, s[row])
        tie = index < d and cells.scores[index] == s[row]
        ours = of_rare[index] if y[row] else of_majority[index + (d + 1 if tie else 0)]
        own = y == y[row]
        # (1 - e) F + e delta, which leaves the weight of the class as it is.
        there = [
            measure(y, s, np.where(own, w * (1 - e), w) + e * w[own].sum() * (np.arange(52) == row))
            for e in (step, -step)
        ]
        slope = (there[0] - there[1]) / (2 * step) / found.factor
        assert ours == pytest.approx(slope, abs=1e-6)
        variance += w[row] * slope**2 / w[own].sum() ** 2
    assert cells.rare @ of_rare == pytest.approx(0.0, abs=1e-12)
    top = options.get("max_fpr", 1.0)
    worst = found.value * (1.0 - found.value)
    made_up = worst / w[y == 1].sum() ** 2 + worst / (top * w[y == 0].sum()) ** 2
    assert found.variance == pytest.approx(variance + made_up, rel=1e-4)
    assert found.offset + found.factor * found.value == pytest.approx(measure(y, s, w))


def test_perfect_separation_has_a_one_sided_bound():
    y = np.repeat([0, 1], [500, 10])
    for measure, _ in AREAS:
        assert interval(measure, y, y) == pytest.approx((1.0, 0.025 ** (1 / 10), 1.0))
    worst = interval("roc_auc", y, -y)
    assert worst == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 10)))
    # One majority row out of place must not open the interval wide.
    s = y.astype(float)
    s[0] = 2.0
    assert 0.6 < interval("roc_auc", y, s).low < 0.9
    alone = np.arange(100) == 90  # one rare row says almost nothing
    for measure, _ in AREAS:
        found = interval(measure, alone, np.arange(100.0))
        assert found.low < 0.1
        assert found.high > (0.99 if measure == "roc_auc" else found.value)


def test_a_greater_level_is_wider_and_more_rows_are_narrower():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], [300, 30])
    s = rng.normal(size=330) + 2 * y
    for name, options in (*AREAS, ("lift_at_k", {"share": 1 / 11})):
        measure = partial(interval, name, **options)
        half, usual, more = measure(y, s, level=0.5), measure(y, s), measure(y, s, level=0.99)
        assert more.low < usual.low < half.low < half.high < usual.high < more.high
        copies = measure(np.tile(y, 25), np.tile(s, 25))
        assert (copies.high - copies.low) * 3.5 < usual.high - usual.low
        for level in (0.0, 1.0, 95, np.nan):
            with pytest.raises(ValueError, match=r"level=.* must be"):
                measure(y, s, level=level)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1, 10])
def test_intervals_of_rows_that_groups_share_cover(size):
    """Rows of a group have like scores, and labels that have an effect of the group in common."""
    rng, hits = np.random.default_rng(0), {False: [], True: []}

    def draw(n):
        group = np.cumsum(rng.random(n) < 1.0 / size)
        of_group, effect = (rng.normal(size=n)[group - group[0]] for _ in range(2))
        s = 0.95 * of_group + 0.3 * rng.normal(size=n)
        return rng.random(n) < expit(1.5 * s + 1.9 * effect - 4.6), s, group

    truth = roc_auc(*draw(200_000)[:2])
    for is_grouped in np.tile([False, True], 60):
        y, s, group = draw(1500)
        found = interval("roc_auc", y, s, groups=group if is_grouped else None)
        hits[is_grouped].append(found.low <= truth <= found.high)
    assert np.mean(hits[True]) >= 0.88
    assert np.mean(hits[False]) >= 0.88 or (size == 10 and np.mean(hits[False]) <= 0.75)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("shift", "least"), [(1.5, 0.88), (3.5, 0.9)])
def test_nominal_95_percent_intervals_cover(shift, least):
    n_rare, n_majority, n_samples = 20, 2000, 250
    t = np.linspace(-8.0, 12.0, 20_001)
    rare, majority = ndtr(shift - t), ndtr(-t)
    step = -np.diff(rare)
    precision = n_rare * rare / (n_rare * rare + n_majority * majority)
    at_k = precision[np.argmax(n_rare * rare + n_majority * majority <= n_rare)]
    truth = [ndtr(shift / np.sqrt(2)), step @ (precision[1:] + precision[:-1]) / 2, at_k]
    rng = np.random.default_rng(3)
    y = np.repeat([True, False], [n_rare, n_majority])
    hits = np.zeros(3)
    for _ in range(n_samples):
        s = rng.normal(size=y.size) + shift * y
        intervals = (
            interval("roc_auc", y, s),
            interval("average_precision", y, s),
            interval("precision_at_k", y, s, k=n_rare),
        )
        hits += [i.low <= true <= i.high for i, true in zip(intervals, truth, strict=True)]
    assert (hits / n_samples >= least).all(), hits / n_samples


@pytest.mark.parametrize(
    "changes",
    [
        {"y": [0, 1]},
        {"scores": [1.0, np.nan, 3.0, 4.0]},
        {"groups": [1, 2]},
        {"sample_weight": [1.0]},
        {"y": [], "scores": [], "groups": []},
    ],
)
def test_of_one_column_of_scores_no_error_names_another(changes):
    columns = {"y": [0, 1, 1, 0], "scores": [1.0, 2.0, 3.0, 4.0], "groups": [1, 1, 2, 2]}
    for ask in (partial(interval, "roc_auc"), ThresholdRule.min_recall(0.5).choose):
        with pytest.raises(InputError) as refusal:
            ask(**columns | changes)
        assert "scores_a" not in str(refusal.value)
