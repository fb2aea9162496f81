"""One row is scored without what only many rows are worth: counts, as time is for benchmarks."""

import sys

import joblib
import numpy as np
import polars as pl
import pytest

from made_models import made_model
from rareclass import RankRC
from rareclass.encoding.encoders import TableEncoder
from rareclass.rows import as_source
from rareclass.rows.memory import ArrayRows, count_threads
from rareclass.tables.columns import Column

# Calls of Python functions while a row is scored: about 230 of an array, 1,900 of a table of 40
# columns.
MOST_CALLS_OF_AN_ARRAY, MOST_CALLS_OF_A_TABLE = 350, 3000
N_COLUMNS = 40


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    return pl.DataFrame({f"c{k}": random.normal(size=80) for k in range(N_COLUMNS)})


@pytest.fixture(scope="module")
def model(table):
    y = np.arange(table.height) % 8 == 0
    columns = [Column(name, "number", "standardised", "number") for name in table.columns]
    encoder = TableEncoder(columns)
    machine = RankRC(lam=1.0).fit(encoder.fit_transform(table, y), y)
    return made_model(encoder, machine)


def calls_of(work):
    work()
    count = 0

    def count_calls(frame, event, argument):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_a_row_takes_few_calls(model, table):
    row, array = table.head(1), table.head(1).to_numpy()
    assert calls_of(lambda: model.estimator.score_samples(array)) <= MOST_CALLS_OF_AN_ARRAY
    assert calls_of(lambda: model.score_samples(row)) <= MOST_CALLS_OF_A_TABLE


def test_cores_are_not_counted_and_cells_not_looked_at(model, table, monkeypatch):
    def refused(*_args):
        raise AssertionError("this takes longer than the row itself")

    monkeypatch.setattr(joblib, "cpu_count", refused)
    monkeypatch.setattr(type(model.encoder), "find_unlike", refused)
    expected = model.estimator.score_samples(model.encoder.transform(table))
    assert model.score_samples(table.head(1)) == pytest.approx(expected[:1], rel=1e-12)


def test_threads_that_cannot_be_are_refused_where_none_are_needed():
    for n_jobs in (0, 1.5):
        with pytest.raises(ValueError, match="number of threads"):
            count_threads(n_jobs)
        with pytest.raises(ValueError, match="number of threads"):
            ArrayRows(as_source(np.zeros((2, 1))), n_jobs=n_jobs)
