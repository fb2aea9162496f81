"""Intervals of a training: those of the held-out rows, wider by what other training rows change."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from rareclass.ensemble.plan import MOST_ROWS
from rareclass.fit.auto_method import AutoMethod
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.training import train
from rareclass.fit.training_set import FitSettings, read_training_set
from rareclass.metrics import interval
from rareclass.metrics.intervals import Interval, widened
from rareclass.tables.table_file import open_table


def trained(folder, method, copies=1):
    """A model of 400 rows, a tenth of them rare, each so many times."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 10 == 0
    X = rng.normal(size=(400, 3)) + y[:, None]
    table = pl.DataFrame(X, list("abc")).with_columns(y=pl.Series(y.astype(int)))
    pl.concat([table] * copies).write_csv(folder / "t.csv")
    settings = FitSettings(target="y", method=method, baseline=False)
    return train(read_training_set(open_table(folder / "t.csv"), settings), settings)


@pytest.mark.parametrize(
    ("method", "ratio"),
    [
        (AutoMethod(members=("logistic regression",)), 1.0 + 400 / 320),  # five folds
        (RankRCMethod(0.01), 1.0 + 100 / 300),  # a quarter of the rows held out
    ],
)
def test_intervals_allow_for_other_training_rows(tmp_path, method, ratio):
    """By the formula of Nadeau and Bengio, ``sqrt(1 + n_tested / n_train)`` on the logit scale."""
    found = trained(tmp_path, method)
    held_out, estimate = found.content.held_out, found.estimate
    rows = held_out.y == 1, held_out.scores, held_out.weight
    for name, measure in (("AUC", "roc_auc"), ("average precision", "average_precision")):
        value, *ends = interval(measure, *rows)
        own, *own_ends = estimate.measures[name]
        assert own == pytest.approx(value, abs=1e-9)
        reach = np.sqrt(ratio) * (logit(ends) - logit(value))
        np.testing.assert_allclose(own_ends, expit(logit(value) + reach), atol=1e-6)


@pytest.mark.parametrize("copies", [1, 3])
def test_two_tenths_held_out_of_thinned_rows_count_as_what_they_are(tmp_path, monkeypatch, copies):
    """Rare rows that no fold holds out make no interval narrower; copies count where they are."""
    monkeypatch.setattr("rareclass.ensemble.plan._MANY_ROWS", 100)
    monkeypatch.setattr("rareclass.ensemble.plan._RARE_ROWS_FOR_TENTHS", 10)
    monkeypatch.setitem(MOST_ROWS, "standard", 200)
    found = trained(tmp_path, AutoMethod(members=("logistic regression",)), copies)
    held_out, estimate = found.content.held_out, found.estimate
    assert ((held_out.y == 1).sum(), estimate.n_rare) == (8, 8 * copies)
    assert estimate.n_rows == pytest.approx(80 * copies, rel=0.3)
    assert any("are distinct:" in note for note in found.notes) is (copies > 1)


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).map(sorted), st.floats(1.0, 3.0))
def test_a_wider_interval_holds_the_narrower_one_and_stays_a_share(ends, factor):
    low, value, high = ends
    found = widened(Interval(value, low, high), factor)
    assert 0.0 <= found.low <= low + 1e-12
    assert high - 1e-12 <= found.high <= 1.0
    assert found.value == value
    assert widened(Interval(value, low, high), 1.0) == Interval(value, low, high)
