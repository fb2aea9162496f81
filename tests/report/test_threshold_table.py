"""What every threshold comes to is what scikit-learn counts there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import confusion_matrix

from draws import draws
from rareclass.errors import InputError
from rareclass.metrics import interval
from rareclass.metrics.intervals import exact_interval
from rareclass.report import GainsDisplay
from rareclass.report.threshold_table import LEVEL, ThresholdTable


def scored(n, seed, share=0.05, digits=2):
    generator = np.random.default_rng(seed)
    y = generator.random(n) < share
    y[:2] = True, False
    return y, np.round(generator.normal(size=n) + 2.0 * y, digits), generator


@pytest.mark.sampled(0)
@given(st.integers(4, 900), st.integers(0, 2**20), st.integers(0, 3), st.booleans())
@draws(80)
def test_the_counts_are_those_of_scikit_learn(n, seed, digits, weighted):
    y, scores, generator = scored(n, seed, digits=digits)
    if (scores == scores[0]).all():
        scores[0] += 1.0
    weight = generator.integers(1, 4, n).astype(float) if weighted else None
    own = float(generator.choice(scores))
    table = ThresholdTable.of(y, scores, weight, own=own)
    assert (np.diff(table.alerts) > 0).all()
    assert table.alerts[0] == 0
    assert table.alerts[-1] == table.n_rows
    assert (np.diff(table.thresholds) < 0).all()
    assert table.thresholds[table.own] == own
    for k in np.linspace(0, len(table.thresholds) - 1, 25).astype(int):
        called = scores > table.thresholds[k]
        (tn, fp), (fn, tp) = confusion_matrix(y, called, labels=[False, True], sample_weight=weight)
        assert (table.hits[k], table.false_alerts[k]) == (tp, fp)
        assert (table.n_rare - table.hits[k], table.n_rest - table.false_alerts[k]) == (fn, tn)


def test_every_number_of_alerts_up_to_two_hundred_has_its_threshold():
    y, scores, _ = scored(20_000, 1, digits=9)
    table = ThresholdTable.of(y, scores)
    assert_array_equal(table.alerts[:201], np.arange(201))
    recalls = table.recall.value
    assert np.diff(recalls).max() < 0.02
    assert len(table.thresholds) < 900
    assert np.median([len(repr(float(each))) for each in table.thresholds]) <= 8


def test_intervals_are_exact_ones():
    y, scores, _ = scored(500, 2)
    table = ThresholdTable.of(y, scores)
    for k in range(0, len(table.thresholds), 17):
        tp, fp = table.hits[k], table.false_alerts[k]
        for band, hits, trials in (
            (table.precision, tp, tp + fp),
            (table.recall, tp, table.n_rare),
            (table.false_positive_rate, fp, table.n_rest),
        ):
            assert_allclose(band.at(k), exact_interval(tp if hits is tp else hits, trials, LEVEL))


def test_costs_and_the_busiest_day_against_plain_sums():
    y, scores, generator = scored(400, 3)
    day, amount = generator.integers(0, 7, 400), generator.random(400) * 90
    table = ThresholdTable.of(
        y, scores, time=day, costs={"fp": 2.0, "fn": amount}, own=float(np.median(scores))
    )
    assert_allclose(table.amounts.value, table.alerts / 7)
    for k in range(0, len(table.thresholds), 11):
        called = scores > table.thresholds[k]
        found = interval(
            "expected_cost",
            y,
            scores,
            threshold=table.thresholds[k],
            cost_fp=np.full(400, 2.0),
            cost_fn=amount,
            level=LEVEL,
        )
        cost = table.cost
        # Looking costs nothing here: what is left are the two parts of that measure.
        assert_allclose((cost.value[k], cost.low[k], cost.high[k]), 400 * np.array(found))
        assert table.busiest[k] == max(np.bincount(day[called], minlength=7))
    assert table.cost.value[table.least_cost] == table.cost.value.min()
    assert table.cost_words == "fp 2, fn by row"
    review = ThresholdTable.of(y, scores, costs={"fp": 2.0, "fn": amount, "review": 0.5})
    assert_allclose(review.cost.value - table.cost.value, 0.5 * table.alerts)


def test_thinned_tables_keep_their_ends_and_what_is_asked_for():
    y, scores, _ = scored(5_000, 4, digits=9)
    table = ThresholdTable.of(y, scores)
    kept = table.thinned(50)
    assert kept[0] == 0
    assert kept[-1] == len(table.thresholds) - 1
    assert 20 < len(kept) <= 52
    assert table.alerts[table.at_alerts(37)] == 37
    k = table.at_recall(0.5)
    assert table.recall.value[k] >= 0.5 > table.recall.value[k - 1]
    gains = GainsDisplay(table)
    assert_allclose(gains.lift.value[-1], 1.0)
    assert gains.gain.value[-1] == 1.0
    assert [round(100 * gains.share[k], 3) for k in gains.places()][-2:] == [10.0, 30.0]


def test_infinite_scores_have_a_threshold_of_their_own():
    table = ThresholdTable.of([0, 0, 1, 1], [-np.inf, 0.0, 1.0, np.inf])
    for threshold, alerts in zip(table.thresholds, table.alerts, strict=True):
        assert (np.array([-np.inf, 0.0, 1.0, np.inf]) > threshold).sum() in (alerts, 3)
    with pytest.raises(InputError, match="no threshold"):
        ThresholdTable.of([0, 1], [1.0, 1.0])
