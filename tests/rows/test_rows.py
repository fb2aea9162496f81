import threading

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from rareclass.machine import parse_bytes
from rareclass.rows import ArrayRows, as_source, from_table
from rareclass.rows.protocol import Budget, Memo
from rareclass.rows.source import canonical, equal_rows, order_of_values

X = np.random.default_rng(0).normal(size=(103, 3))


def weighted_sum(block, factor):
    return block.weight.sum(), factor * (block.weight @ block.X)


def first_column(block):
    return block.X[:, 0]


@given(st.integers(1, 120), st.integers(1, 4), st.booleans())
def test_sum_and_map_do_not_depend_on_blocks_or_threads(block_rows, n_jobs, chosen):
    index = np.arange(102, -1, -3) if chosen else None
    weight = np.arange(103.0)[index] if chosen else None
    rows = ArrayRows(as_source(X), index, weight, block_rows=block_rows, n_jobs=n_jobs)
    picked = X[index] if chosen else X
    w = weight if chosen else np.ones(103)
    total, moment = rows.sum(weighted_sum, 2.0)
    assert total == pytest.approx(w.sum())
    np.testing.assert_allclose(moment, 2.0 * w @ picked, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(rows.map(first_column), picked[:, 0])
    np.testing.assert_array_equal(rows.take(np.array([2, 0])), picked[[2, 0]])
    assert rows.n_rows == len(picked)
    assert rows.n_features == 3


def test_many_blocks_run_in_many_threads():
    seen = set()

    def spy(block):
        seen.add(threading.get_ident())
        return (1,)

    ArrayRows(as_source(X), block_rows=1, n_jobs=3).sum(spy)
    assert threading.get_ident() not in seen
    seen.clear()
    ArrayRows(as_source(X), block_rows=50, n_jobs=3).sum(spy)
    assert seen == {threading.get_ident()}


def test_blocks_remember_within_the_budget_only(monkeypatch):
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 10)
    made = []

    def work(block):
        value = block.memo.get("value", "key")
        if value is None:
            made.append(block.start)
            value = block.X.copy()
            block.memo.put("value", "key", value, value.nbytes)
        return (value.sum(),)

    budget = Budget(2 * 10 * 3 * 8)
    rows = ArrayRows(as_source(X[:50]), block_rows=10, budget=budget, n_jobs=1)
    first = rows.sum(work)
    assert made == [0, 10, 20, 30, 40]
    assert rows.sum(work) == first
    assert made[5:] == [20, 30, 40]  # two blocks fit
    assert budget.left == 0
    rows.every(2).sum(work)  # remembered by the same blocks
    assert made[8:] == [20, 40]


@pytest.mark.parametrize("block_rows", [1, 4, 7, 8, 50])
def test_blocks_cut_to_a_run_are_remembered(monkeypatch, block_rows):
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 8)
    settings = {"block_rows": block_rows, "budget": Budget(10**6), "n_jobs": 2}
    rows = ArrayRows(as_source(X), np.arange(3, 53), np.arange(50.0), **settings)
    np.testing.assert_array_equal(rows.every(1).weight, np.arange(50.0))
    rows.every(3).map(
        lambda block: block.memo.put("seen", "key", 1, 8) or np.zeros(block.stop - block.start)
    )
    assert rows.every(3).share_remembering("seen") == 1.0
    assert rows.every(3, 1).share_remembering("seen") == 0.0


def test_sums_do_not_change_what_a_function_returns():
    kept = np.ones(3)
    rows = ArrayRows(as_source(X[:40]), block_rows=10, n_jobs=1)
    np.testing.assert_array_equal(rows.sum(lambda block: (kept,))[0], 4 * kept)
    np.testing.assert_array_equal(kept, 1)


def test_room_for_arrays_is_within_the_budget_and_not_shared():
    budget = Budget(3 * 2**20)
    like = np.zeros((100, 333), dtype=np.float32)
    arrays = []
    while (array := budget.room(like)) is not None:
        array[...] = len(arrays)
        arrays.append(array)
    assert 3 * 2**20 - 64 * 3 - 2 * like.nbytes < sum(a.nbytes for a in arrays) <= 3 * 2**20
    for number, array in enumerate(arrays):
        assert array.shape == like.shape
        assert array.dtype == like.dtype
        assert (array == number).all()
    memo = Memo(Budget(1000))
    for name in "ab":
        memo.keep(name, 1, np.arange(100.0))
    np.testing.assert_array_equal(memo.get("a", 1), np.arange(100.0))
    assert "a" in memo
    assert memo.get("b", 1) is None


def test_a_memo_gives_back_what_it_replaces_and_knows_its_key():
    budget = Budget(10)
    memo = Memo(budget)
    memo.put("a", 1, "old", 6)
    memo.put("a", 2, "new", 8)
    assert budget.left == 2
    assert memo.get("a", 1) is None
    assert memo.get("a", 2) == "new"
    memo.put("a", 3, "too large", 11)
    assert memo.get("a", 2) == "new"


@pytest.mark.parametrize(
    ("text", "size"), [("2GiB", 2**31), ("1.5 kB", 1500), (77, 77), ("12", 12), ("1e3B", 1000)]
)
def test_sizes_are_parsed_and_other_texts_refused(text, size):
    assert parse_bytes(text) == size
    for bad in ("", "2 parsecs", "-1", 0, "0B", "1..2GB"):
        with pytest.raises(ValueError, match=r"memory|float"):
            parse_bytes(bad)


@pytest.mark.parametrize("read", [as_source, lambda table: from_table(table.lazy()).source])
def test_tables_come_in_blocks_of_the_narrowest_float_that_is_exact(read):
    narrow = pl.DataFrame({"a": [1, 2], "b": [True, False]}, {"a": pl.Int16, "b": pl.Boolean})
    assert read(narrow).take(slice(0, 2)).dtype == np.float32
    wide = narrow.with_columns(c=pl.Series([2**40 + 1, 0]))
    block = read(wide).take(np.array([0]))
    assert (block.tolist(), block.dtype) == ([[1, 1, 2**40 + 1]], np.float64)


def test_empty_inputs_are_refused():
    for data in (np.empty((0, 3)), np.empty((3, 0)), pl.DataFrame(), sparse.csr_array((0, 2))):
        with pytest.raises(ValueError, match="minimum of 1"):
            as_source(data)


def test_the_row_of_a_bad_value_is_counted_over_blocks():
    tall = np.zeros((70_000, 1))
    tall[69_999] = np.inf
    with pytest.raises(ValueError, match="row 69999, column 0"):
        as_source(tall)
    tall[69_999] = 1e308  # the sum overflows; every value is finite
    tall[69_998] = 1e308
    assert as_source(tall).n_rows == 70_000


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -2.5])
TABLES = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, 3), elements=NUMBERS))


def stored_zeros(X):
    n, d = X.shape
    columns = np.tile(np.arange(d)[::-1], n)
    return sparse.csr_array((X[:, ::-1].ravel(), columns, np.arange(0, n * d + 1, d)), X.shape)


@pytest.mark.parametrize("written", [np.asarray, sparse.csr_array, stored_zeros])
@given(X=TABLES)
def test_groups_are_those_of_a_loop_over_pairs(written, X):
    first, group = equal_rows(written(X))
    loop = [next(k for k, row in enumerate(X) if (row == other).all()) for other in X]
    assert first[group].tolist() == loop
    assert sorted(first) == sorted(set(loop))


@pytest.mark.parametrize("written", [np.asarray, sparse.csr_array, stored_zeros])
@given(X=TABLES, seed=st.integers(0, 9))
def test_the_order_is_one_of_values(written, X, seed):
    X = X[equal_rows(X)[0]]
    other = np.random.default_rng(seed).permutation(X)
    orders = [order_of_values(written(rows)) for rows in (X, other)]
    np.testing.assert_array_equal(X[orders[0]], other[orders[1]])


def test_rows_that_are_canonical_are_not_copied():
    X = sparse.csr_array(np.eye(3))
    assert canonical(X) is X
    untidy = stored_zeros(np.eye(3))
    assert canonical(untidy) is not untidy
    assert untidy.nnz == 9
