"""Pairs of categories: against a plain loop, found where they were planted and nowhere else."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from draws import draws
from rareclass.encoding import log_odds as pairs_of_columns
from rareclass.encoding.log_odds import CategoryStatistics, PairStatistics, PartedRows, find_pairs
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import read_table

ROWS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 1), st.booleans(), st.integers(0, 2), st.integers(0, 2)
    ),
    min_size=3,
    max_size=25,
).filter(lambda rows: {y for _, _, y, w, _ in rows if w} == {True, False})


def arrays(rows):
    a, b, y, weight, fold = (np.array(column) for column in zip(*rows, strict=True))
    return (a, b), PartedRows(y, weight.astype(float), fold)


def alone(codes, rows):
    return tuple(CategoryStatistics().fit_transform(c, 4, rows) for c in codes)


@draws(60)
@given(ROWS)
def test_the_definition_row_by_row(rows):
    codes, (y, weight, _) = codes, parted = arrays(rows)
    both = alone(codes, parted)
    pair = PairStatistics()
    found = pair.fit_transform(codes, both, parted)
    prior, b = (weight @ y) / weight.sum(), pair.coefficients_

    def log_odds(row, of_both, other_than=None):
        q = 1 / (1 + np.exp(-(b[0] + b[1] * of_both[0] + b[2] * of_both[1])))
        rare = others = 0.0
        for i, j, label, w, f in rows:
            if (i, j) == row[:2] and f != other_than:
                rare, others = rare + w * label, others + w * (not label)
        a = pair.smoothing_
        return np.log((rare + a * q) / (others + a * (1 - q))) - np.log(prior / (1 - prior))

    for k, row in enumerate(rows):
        of_both = both[0][k], both[1][k]
        assert np.isclose(found[k], log_odds(row, of_both, row[4]), atol=1e-8)
        new = pair.transform((codes[0][[k]], codes[1][[k]]), (both[0][[k]], both[1][[k]]))
        assert np.isclose(new[0], log_odds(row, of_both), atol=1e-8)
    unseen = pair.transform((np.array([9]), np.array([9])), (np.array([0.3]), np.array([-0.2])))
    assert np.isclose(unseen[0], log_odds((9, 9), (0.3, -0.2)), atol=1e-8)


def planted(n_rows):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, n, n_rows) for n in (10, 12, 8, 12)]
    effect = rng.normal(size=(12, 12)) * 1.5
    log_odds = effect[codes[1], codes[3]] + rng.normal(size=10)[codes[0]] - 2.5
    y = rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))
    fold = rng.integers(0, 5, n_rows)
    rows = PartedRows(y, np.ones(n_rows), fold)
    log_odds = np.column_stack([CategoryStatistics().fit_transform(c, 12, rows) for c in codes])
    return codes, log_odds, rows


@pytest.mark.parametrize("n_rows", [4000, 8000])  # in all rows, and in a part of them
def test_the_planted_pair_is_found_and_no_other(n_rows, monkeypatch):
    monkeypatch.setattr(pairs_of_columns, "_MOST_ROWS", 4000)
    (found,) = find_pairs(*planted(n_rows))
    assert (found.first, found.second) == (1, 3)
    assert found.log_odds.shape == (n_rows,)


def test_no_more_columns_than_twelve_are_paired_those_that_say_most(monkeypatch):
    codes, log_odds, rows = planted(3000)
    tried = []
    monkeypatch.setattr(pairs_of_columns, "combinations", lambda few, r: tried.extend(few) or [])
    order = [*range(11), 0, 1, 2, 3]
    wide = np.column_stack([np.zeros((3000, 11)), log_odds])
    assert find_pairs([codes[k % 4] for k in order], wide, rows) == []
    assert len(tried) == 12
    assert 11 in tried  # the one that says something alone


def test_numbers_that_tell_something_together_are_no_pair_of_codes():
    """Their bins tell it, and members find it by themselves; codes without an order are a pair."""
    rng = np.random.default_rng(4)
    n = 6000
    a, b = rng.integers(0, 60, (2, n))
    fold, effect = rng.integers(0, 5, n), 2.5 * rng.normal(size=(6, 6))
    for first, second, is_pair in ((a // 10, b // 10, False), (a % 6, b % 6, True)):
        y = rng.random(n) < expit(effect[first, second] - 2.5)
        statistics = TableStatistics()
        table = read_table(pd.DataFrame({"a": a, "b": b}))
        statistics.fit_encode(table, y, None, fold)
        assert bool(statistics.labels_[0].pairs_) == is_pair
