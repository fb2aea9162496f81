"""Indicators of values and of pairs of values, against a plain dictionary."""

import numpy as np
import pandas as pd
import pytest

from encoding.label_tables import learned, seen
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import read_table
from rareclass.encoding.views import SparseView

N = 400
RNG = np.random.default_rng(0)
RARE = RNG.random(N) < 0.2
FOLD = RNG.integers(0, 4, N)
FRAME = pd.DataFrame(
    {
        "a": RNG.choice(["u", "v", None], N),
        "b": [f"k{k}" for k in RNG.geometric(0.05, N)],
        "number": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
    }
)
TABLE = read_table(FRAME)


def groups(X):
    return [frozenset(X[k].indices.tolist()) for k in range(X.shape[0])]


def test_a_column_for_each_value_and_pair_that_two_rows_have():
    view = SparseView()
    X = learned(view, TABLE, RARE, None, FOLD)
    numbers = pd.cut(FRAME["number"], [-np.inf, *view.edges_[0], np.inf], right=False)
    bins = numbers.astype(object).where(numbers.notna(), "missing").astype(str)
    assert bins.nunique() == 17  # 16 and missing
    a, b = FRAME["a"].fillna("missing"), FRAME["b"]
    words = [a, b, bins, a + " & " + b]
    often = [column.map(column.value_counts()) >= 2 for column in words]
    columns = list(zip(words, often, strict=True))
    assert X.shape == (N, sum(column[kept].nunique() for column, kept in columns))
    np.testing.assert_array_equal(np.diff(X.indptr), sum(kept.astype(int) for kept in often))
    assert set(X[:, view.second_column_ < 0].data) == {1.0}
    assert set(X[:, view.second_column_ >= 0].data) == {0.5}
    n_pairs = (view.second_column_ >= 0).sum()
    assert n_pairs == columns[3][0][columns[3][1]].nunique()
    assert view.source_column_.tolist()[-n_pairs:] == [0] * n_pairs
    assert view.second_column_.tolist()[-n_pairs:] == [1] * n_pairs
    # Rows have the same columns where, and only where, they have the same values.
    named = [
        frozenset(f"{k} {column[i]}" for k, (column, kept) in enumerate(columns) if kept[i])
        for i in range(N)
    ]
    both = set(zip(groups(X), named, strict=True))
    assert len(both) == len(set(groups(X))) == len(set(named))


def test_new_rows_are_as_those_of_training_and_unseen_values_nowhere_or_typical():
    view = SparseView()
    X = learned(view, TABLE, RARE, None, FOLD)
    assert (seen(view, TABLE) != X).nnz == 0
    odd = FRAME.assign(a="new", b="new", number=1e30)
    found = seen(view, read_table(odd, like=TABLE.remembered))
    end = seen(view, read_table(odd.assign(number=FRAME["number"].max()), like=TABLE.remembered))
    assert (found != end).nnz == 0
    # Of b training had values of single rows; what new ones of a are like it never saw.
    typical = view.statistics_.known_[0].name(view.statistics_.stand_ins_[0])
    known = odd.assign(a=None if typical == "missing" else typical)
    assert (found != seen(view, read_table(known, like=TABLE.remembered))).nnz == 0
    np.testing.assert_array_equal(np.diff(found.indptr), 2)


@pytest.mark.parametrize("pairs", [True, False])
def test_a_weight_is_so_many_copies(pairs):
    weight = RNG.integers(0, 3, N)
    copies = np.repeat(np.arange(N), weight)
    a = learned(SparseView(pairs), TABLE, RARE, weight.astype(float), FOLD)
    b = learned(SparseView(pairs), TABLE.take(copies), RARE[copies], None, FOLD[copies])
    assert a[copies].shape == b.shape
    assert (a[copies] != b).nnz == 0


def test_it_shares_statistics():
    statistics = TableStatistics()
    encoded = statistics.fit_encode(TABLE, RARE, None, FOLD)
    X = SparseView().fit(encoded, None, statistics).transform(encoded)
    assert (learned(SparseView(), TABLE, RARE, None, FOLD) != X).nnz == 0


def test_numbers_alone_are_bins():
    X = learned(SparseView(), read_table(RNG.normal(size=(N, 2))), RARE, None, FOLD)
    assert X.shape == (N, 32)
    np.testing.assert_array_equal(X.sum(axis=1), 2)
