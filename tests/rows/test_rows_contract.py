"""What every implementation of `Rows` keeps, wherever the rows live."""

import pickle
import tempfile
from itertools import pairwise
from unittest.mock import patch

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from rareclass.rows import ArrayRows, from_arrays, from_table, rows_of
from rareclass.rows.protocol import Budget, RowValues, SentOnce, Token
from rows_in_process import InProcess, held


class Factor(SentOnce):
    def __init__(self, value):
        self.value = value


def sums(block, factor, values):
    """Sums that remember what they read, under a token, as a solver does."""
    X = block.memo.get("X", factor)
    if X is None:
        X = block.X.toarray() if sparse.issparse(block.X) else np.array(block.X)
        block.memo.put("X", factor, X, X.nbytes)
    mine = values.of(block)
    return len(X), factor.value * ((block.weight * mine) @ X), block.weight.sum()


def again(block, token):
    known = block.memo.get("seen", token)
    if known is None:
        block.memo.put("seen", token, 1, 8)
    return (block.stop - block.start,)


def first_cells(block, plus):
    X = block.X[:, [0]]
    return (X.toarray() if sparse.issparse(X) else X)[:, 0] + plus + 0.0 * block.start


def places(block):
    return np.arange(block.start, block.stop)


def cut(X, edges):
    return [X[start:stop] for start, stop in pairwise(edges)]


def in_memory(X, edges, y):
    return from_arrays(X, y)


def on_disk(X, edges, y):
    if sparse.issparse(X):
        return from_arrays(X, y)
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({f"c{k}": column for k, column in enumerate(X.T)} | {"y": y})
        pq.write_table(table, f"{folder}/a.parquet", row_group_size=13)
        return from_table(f"{folder}/a.parquet", "y")


def in_parts(X, edges, y):
    return held(InProcess(), cut(X, edges), cut(y, edges))


def in_parts_of_little_memory(X, edges, y):
    return held(InProcess(memory_limit=1000), cut(X, edges), cut(y, edges))


KINDS = [in_memory, on_disk, in_parts, in_parts_of_little_memory]


@st.composite
def tables(draw):
    """Rows of whole numbers, so that sums are exact, cut anywhere: parts without rows included."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    X = rng.integers(-9, 10, (n, 3)).astype(draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        X = sparse.csr_array(np.where(X > 3, X, 0))
    edges = [0, *sorted(draw(st.lists(st.integers(0, n), max_size=5))), n]
    chosen = None
    if draw(st.booleans()):
        chosen = np.flatnonzero(rng.random(n) < draw(st.sampled_from([0.1, 0.5, 1.0])))
        chosen = chosen if len(chosen) else np.array([0])
    weight = None
    if draw(st.booleans()):
        weight = rng.integers(0, 3, n if chosen is None else len(chosen)).astype(float)
    return X, edges, rng.integers(0, 2, n), chosen, weight


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", KINDS)
@draws(100)
@given(tables(), st.integers(1, 20), st.sampled_from([0, 300, 10**6]), st.integers(1, 2))
def test_rows_are_the_same_wherever_they_live(make, table, block_rows, budget, n_jobs):
    X, edges, y, chosen, weight = table
    made = make(X, edges, y)
    assert made.shape == X.shape
    assert made.source.dtype == X.dtype
    np.testing.assert_array_equal(made.y, y)
    settings = {"block_rows": block_rows, "budget": Budget(budget), "n_jobs": n_jobs}
    rows = rows_of(made.source, chosen, weight, **settings)
    mine = dense(X) if chosen is None else dense(X)[chosen]
    w = np.ones(len(mine)) if weight is None else weight
    assert (rows.n_rows, rows.n_features) == mine.shape
    np.testing.assert_array_equal(rows.weight, w)
    np.testing.assert_array_equal(np.arange(rows.n_rows)[rows.numbers], np.arange(len(mine)))

    factor, values = Factor(3.0), RowValues(np.arange(len(mine)) % 5)
    for _ in range(3):
        n, total, mass = rows.sum(sums, factor, values)
        assert n == len(mine)
        assert mass == w.sum()
        np.testing.assert_array_equal(total, 3.0 * ((w * values.whole) @ mine))
        np.testing.assert_array_equal(rows.map(first_cells, 2), mine[:, 0] + 2)
    # Other values under other names are not taken for the first ones.
    twice = rows.sum(sums, Factor(6.0), RowValues(values.whole))[1]
    np.testing.assert_array_equal(twice, 2 * total)
    np.testing.assert_array_equal(rows.map(places), np.arange(len(mine)))
    token = Token.new()
    assert rows.sum(again, token) == rows.sum(again, token) == (len(mine),)

    some = np.array([len(mine) - 1, 0])
    np.testing.assert_array_equal(dense(rows.take(some)), mine[some])
    assert rows.take(some).dtype == X.dtype


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", KINDS)
@draws(60)
@given(
    tables(), st.integers(1, 7), st.integers(1, 4), st.integers(0, 2), st.booleans(), st.booleans()
)
def test_a_part_has_the_same_rows_wherever_they_live(
    make, table, block_rows, stride, first, keeps_arrays, stays
):
    most = 0 if stays else 2**25  # bytes that rows in parts bring
    with (
        patch("rareclass.rows.protocol.RUN_ROWS", 3),
        patch("rareclass.rows.dask_rows._MOST_BROUGHT", most),
    ):
        X, edges, y, chosen, weight = table
        rows = rows_of(make(X, edges, y).source, chosen, weight, block_rows=block_rows)
        mine = dense(X) if chosen is None else dense(X)[chosen]
        part = rows.every(stride, first, keeps_arrays)
        numbers = np.arange(len(mine))[part.numbers]
        run = np.arange(len(mine)) // 3
        wanted = np.flatnonzero((run >= first) & ((run - first) % stride == 0))
        np.testing.assert_array_equal(numbers, wanted)
        assert part.n_rows == len(numbers)
        if not len(numbers):
            return
        np.testing.assert_array_equal(part.weight, rows.weight[numbers])
        np.testing.assert_array_equal(part.map(first_cells, 0), mine[numbers, 0])
        np.testing.assert_array_equal(part.map(places), numbers)
        values = RowValues(np.arange(len(mine)))
        total = part.sum(sums, Factor(1.0), values)[1]
        np.testing.assert_array_equal(total, (rows.weight[numbers] * numbers) @ mine[numbers])
        some = np.array([part.n_rows - 1, 0])
        np.testing.assert_array_equal(dense(part.take(some)), mine[numbers[some]])


def sent_by(client, ask, *args):
    before = client.sent_bytes
    ask(*args)
    return client.sent_bytes - before


def test_what_does_not_change_is_sent_once():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    client = InProcess()
    source = held(client, cut(X, range(0, 1001, 100))).source
    rows = rows_of(source)
    factor, values = Factor(np.zeros(50_000)), RowValues(np.ones(1000))
    later = 10 * 2000  # bytes: names of functions and values, for ten parts
    assert 400_000 < sent_by(client, rows.sum, size_of_factor, factor) < 400_000 + later
    assert sent_by(client, rows.sum, size_of_factor, factor) < later
    # Of values by row, each part is sent those of its own rows.
    assert 8_000 < sent_by(client, rows.map, values_of, values) < 8_000 + later
    assert sent_by(client, rows.map, values_of, values) < later
    n_values = len(source._sent)
    del factor, values
    assert len(source._sent) == n_values - 2


def test_a_value_stays_the_same_object_while_a_block_remembers_it():
    """Dask may drop a copy of a value and bring another: what blocks remember stays valid."""
    X = np.arange(30.0).reshape(10, 3)
    client = InProcess()
    source = held(client, [X]).source
    rows = rows_of(source, budget=Budget(10**6))
    factor, values = Factor(2.0), RowValues(np.ones(10))
    for _ in range(2):
        rows.sum(sums, factor, values)
        for sent in source._sent[factor].values():
            sent.result = pickle.loads(cloudpickle.dumps(sent.result))
    (piece,) = rows._pieces.values()
    (block,) = source._parts[0].result.rows(source._sent[piece][0].result).blocks()
    assert block.memo.get("X", Factor(2.0)) is None
    rows.sum(never_reads, factor, values)


def never_reads(block, factor, values):
    assert block.memo.get("X", factor) is not None
    return (1,)


def size_of_factor(block, factor):
    return (len(factor.value),)


def values_of(block, values):
    return values.of(block)


def test_blocks_on_workers_keep_to_the_smaller_of_two_budgets():
    client = InProcess(n_workers=1, memory_limit=4 * 5 * 240)
    source = held(client, [np.zeros((100, 3))]).source
    values = RowValues(np.ones(100))
    for budget, share in ((10**6, 0.5), (2 * 240, 0.2), (0, 0.0)):
        rows = rows_of(source, block_rows=10, budget=Budget(budget))
        rows.sum(sums, Factor(1.0), values)
        assert rows.share_remembering("X") == share


def test_rows_in_parts_are_chosen_in_order():
    source = held(InProcess(), [np.zeros((4, 1))]).source
    with pytest.raises(ValueError, match="increasing order"):
        rows_of(source, np.array([2, 1]))


def test_stretches_of_a_whole_are_rows_of_their_own():
    X = np.arange(30.0).reshape(10, 3)
    source = from_arrays(X, None).source
    joined = ArrayRows(source, block_rows=2, stretches=[(0, 4), (7, 13)])
    np.testing.assert_array_equal(joined.numbers, [0, 1, 2, 3, 7, 8, 9, 10, 11, 12])
    np.testing.assert_array_equal(joined.map(places), joined.numbers)
    np.testing.assert_array_equal(joined.take(np.array([9, 0, 4])), X[[9, 0, 4]])
    assert joined.take(np.array([], dtype=int)).shape == (0, 3)
