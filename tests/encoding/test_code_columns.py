"""Whole numbers that are codes are told from numbers that only happen to be whole."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit, logit

from rareclass.encoding.column_values import KnownCodes, could_be_codes
from rareclass.encoding.label_statistics import bins_of_codes, tells_more_than_bins
from rareclass.encoding.log_odds import CategoryStatistics, PartedRows, log_loss, rare_share
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import read_table

N = 6000
RNG = np.random.default_rng(0)
PART = RNG.integers(0, 5, N)
ONES = np.ones(N)
CODE = RNG.integers(0, 200, N)


def drawn(log_odds):
    return RNG.random(N) < 1 / (1 + np.exp(2.4 - log_odds))


def learned(values, y, weight=ONES, part=PART):
    """The levels of a column of codes, what each says of the rare class, and whether it is more."""
    known, statistics = KnownCodes().fit(values, weight), CategoryStatistics()
    levels, rows = known.levels(values), PartedRows(y, weight, part)
    log_odds = statistics.fit_transform(levels, known.n_levels, rows)
    tells_more = tells_more_than_bins(known, levels, log_odds, rows)
    return known, statistics, log_odds, tells_more


def tells_more(values, y):
    return learned(values, y)[-1]


def test_codes_without_an_order_are_found_and_numbers_are_not():
    effect = 1.5 * RNG.normal(size=200)
    assert tells_more(CODE * 1.0, drawn(effect[CODE]))
    assert not tells_more(CODE * 1.0, drawn(0.02 * (CODE - 100)))
    assert not tells_more(CODE * 1.0, drawn(0.0 * CODE))


def test_a_steep_number_with_most_rows_at_one_value_is_no_code():
    """Rare rows lie in the tail, which few rows are in: the bins must not be too wide there."""
    rng = np.random.default_rng(3)
    tail = np.where(rng.random(N) < 0.97, 100, CODE)
    y = (tail > 150) & (rng.random(N) < 0.9)
    assert not tells_more(tail * 1.0, y)


@pytest.mark.parametrize("size", np.linspace(0.3, 0.7, 9))
def test_the_two_log_losses_are_compared_row_by_row(size):
    """Around the effect from which codes say more: by 2 standard errors and half a percent."""
    rng = np.random.default_rng(round(100 * size))
    effect, weight = size * rng.normal(size=200), rng.integers(1, 3, N).astype(float)
    y = rng.random(N) < expit(effect[CODE] - 2.4)
    known, _, log_odds, found = learned(CODE * 1.0, y, weight)
    levels, rows = known.levels(CODE * 1.0), PartedRows(y, weight, PART)
    bins = bins_of_codes(known, levels, rows)[levels]
    binned = CategoryStatistics().fit_transform(bins, bins.max() + 1, rows)
    prior = (weight @ y) / weight.sum()
    gain = log_loss(expit(binned + logit(prior)), y) - log_loss(expit(log_odds + logit(prior)), y)
    mean = np.average(gain, weights=weight)
    error = np.sqrt(weight @ (gain - mean) ** 2) / weight.sum()
    of_prior = np.average(log_loss(np.full(N, prior), y), weights=weight)
    assert found == (mean > 2 * error and mean > 0.005 * of_prior)


def test_what_could_be_codes():
    assert could_be_codes(CODE * 1.0, ONES)
    assert could_be_codes(np.where(CODE > 3, CODE, np.nan), ONES)
    assert not could_be_codes(CODE + 0.5, ONES)
    assert not could_be_codes(np.arange(N) * 1.0, ONES)
    assert not could_be_codes(CODE % 19 * 1.0, ONES)
    assert not could_be_codes(np.where(np.arange(N) < 9, CODE + 0.5, 1.0), np.arange(N) >= 9)
    assert not could_be_codes(np.full(N, np.nan), ONES)
    few = np.arange(20) * 1.0
    for weight in (2.0, 3.0):
        assert could_be_codes(few, np.full(20, weight)) == (weight == 3.0)
        assert could_be_codes(np.repeat(few, int(weight)), np.ones(20 * int(weight))) == (
            weight == 3.0
        )


def test_levels_of_values_known_missing_and_unseen():
    codes = np.array([5.0, np.nan, 2.0, 5.0, *range(10, 20)])
    known = KnownCodes().fit(codes, np.ones(14))
    levels = known.levels(np.array([2.0, 5.0, np.nan, 3.0, -7.0, 1e300]))
    # Whatever training did not have is one level, wherever it lies.
    assert levels.tolist() == [0, 1, 12, 13, 13, 13]
    assert (known.n_known, known.n_levels) == (12, 14)
    assert [known.name(level) for level in (0, 12, 13)] == ["2", "missing", "unseen"]
    absent = KnownCodes().fit(codes, np.where(codes == 5.0, 0.0, 1.0))
    assert absent.levels(np.array([2.0, 5.0, np.nan])).tolist() == [0, 12, 11]
    nothing = KnownCodes().fit(np.array([np.nan]), np.ones(1))
    assert nothing.levels(np.array([1.0, np.nan])).tolist() == [1, 0]


def bins(values, y, weight=None):
    weight = np.ones(len(values)) if weight is None else weight
    known = KnownCodes().fit(values, weight)
    return bins_of_codes(known, known.levels(values), PartedRows(y, weight, None))


def test_bins_have_four_codes_or_more_and_about_equal_weight_of_both_classes():
    tail = np.arange(N) % 20 == 0
    codes = np.where(tail, 180 + CODE % 20, CODE % 180) * 1.0  # a tenth of the codes is rare
    found = bins(codes, tail)
    assert (np.diff(found[:-2]) >= 0).all()
    assert found[-2:].tolist() == [found[-3] + 1, found[-3] + 2]  # of missing and of unseen ones
    levels = KnownCodes().fit(codes, ONES).levels(codes)
    evened = np.bincount(found[levels], np.where(tail, 10.0, 10.0 / 19.0))
    assert evened.max() < 0.12 * evened.sum()
    assert len(np.unique(found[180:200])) >= 10  # half of the bins lie where the rare rows do
    for n_codes, n_bins in ((7, 1), (8, 2), (100, 25)):
        values = np.arange(2 * n_codes) % n_codes * 1.0
        assert len(np.unique(bins(values, np.arange(2 * n_codes) < n_codes)[:-2])) == n_bins
    copies = np.arange(200) % 3
    of_weights = bins(CODE[:200] * 1.0, tail[:200], copies * 1.0)
    of_copies = bins(np.repeat(CODE[:200] * 1.0, copies), np.repeat(tail[:200], copies))
    np.testing.assert_array_equal(of_weights, of_copies)


@pytest.mark.parametrize("steep", [0.0, 0.03])
def test_a_value_never_seen_is_no_evidence(steep):
    y = drawn(steep * (CODE - 100))
    known, statistics, *_ = learned(CODE * 1.0, y)
    never = known.levels(np.array([0.5, 198.5, 1e9]))
    np.testing.assert_array_equal(statistics.transform(never), 0.0)
    np.testing.assert_array_equal(statistics.log_counts(never), 0.0)
    assert statistics.prior_ == rare_share(y, ONES)


@pytest.mark.parametrize("make", ["text", "type", "short"])
def test_times_of_day_are_said_to_be_that_and_not_learned_value_by_value(make):
    quarters = np.arange(N) % 96
    text = [f"{k // 4:02d}:{k % 4 * 15:02d}" + ":00" * (make != "short") for k in quarters]
    cells = pl.Series(
        "at", text if make != "type" else pd.to_datetime(text, format="%H:%M:%S").time
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table = read_table(pl.DataFrame({"at": pl.Series(cells), "code": quarters * 900}))
    assert [("times of day" in str(each.message)) for each in told] == [True] * (make != "type")
    at, code = table.remembered
    assert at.treatment == f"time of day: {code.treatment}"
    np.testing.assert_array_equal(table.columns[0].values, table.columns[1].values)
    y = (quarters % 7 == 3) & (RNG.random(N) < 0.6)
    statistics = TableStatistics()
    statistics.fit_encode(table, y, None, PART)
    assert statistics.category_names_ == ["code"]
