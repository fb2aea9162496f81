"""Parquet in one pass: the rows of `from_table`, in bounded memory, from a thread that ends."""

import contextlib
import gc
import threading
import time
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import in_new_process
from rareclass.rows import as_source, from_table, parquet_batches
from rareclass.rows.readers import read_ahead
from rareclass.tables.table_file import open_table
from rows.test_files_disk import NAMES, data, parts, refused, table

pytestmark = pytest.mark.sampled(0)


READER = "rareclass-read-ahead_0"


def readers():
    return [t for t in threading.enumerate() if t.name == READER]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert not readers()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch_rows", [None, 1, 64, 10_000])
def test_the_rows_are_those_of_from_table(tmp_path, dtype, batch_rows):
    X, y = data(dtype)
    parts(tmp_path, X, y)
    whole = from_table(tmp_path, "y")
    batches = list(parquet_batches(tmp_path, "y", batch_rows=batch_rows))
    # Row groups have 150 rows, the parts 500, 200 and 500.
    assert max(map(len, batches)) == min(batch_rows or 150, 150)
    assert len(batches) == {None: 10, 1: 1200, 64: 24, 10_000: 10}[batch_rows]
    taken = np.concatenate([rows.source.take(slice(None)) for rows in batches])
    assert taken.dtype == whole.source.dtype == dtype
    np.testing.assert_array_equal(taken, X)
    np.testing.assert_array_equal(np.concatenate([rows.y for rows in batches]), whole.y)
    for rows in batches:
        assert rows.sample_weight is None
        assert rows.feature_names == NAMES
        assert rows.shape == (len(rows.y), 5)
        assert as_source(rows) is rows.source


def test_labels_are_of_one_kind_in_every_batch(tmp_path):
    X, y = data()
    words = np.where(np.arange(1200) < 300, "a", np.where(y == 1, "fraud", "ok"))
    kinds = {
        "words": pa.array(words),
        "coded": pa.array(words).dictionary_encode(),
        "narrow": pa.array(y.astype(np.int8)),
        "real": pa.array(y + 0.5),
        "truth": pa.array(y == 1),
    }
    pq.write_table(table(X, **kinds), tmp_path / "t.parquet", row_group_size=100)
    for name, cells in kinds.items():
        batches = list(parquet_batches(tmp_path / "t.parquet", name, columns=["c"]))
        labels = [label for rows in batches for label in rows.y.tolist()]
        assert labels == cells.to_pylist()
        assert len({rows.y.dtype for rows in batches}) == 1
        assert {type(label) for label in labels} == {type(cells[0].as_py())}
    # A width a part is a kind for all of them.
    folder = tmp_path / "folder"
    folder.mkdir()
    parts(folder, X, y)
    pq.write_table(table(X, y=y.astype(np.int8)), folder / "day-2" / "part-2.parquet")
    assert {rows.y.dtype for rows in parquet_batches(folder, "y")} == {np.dtype(np.int64)}


def test_what_the_footers_show_is_refused_at_once(tmp_path):
    X, y = data()
    path = tmp_path / "t.parquet"
    refused(lambda: parquet_batches(path, "y"), "There is no file")
    for read in (from_table, parquet_batches):
        pq.write_table(table(X, y=y, city=["x"] * 1200), path)
        refused(partial(read, path, "y"), "'city' holds string, not numbers", "columns=")
        refused(partial(read, path, "z"), "no column 'z'")
        pq.write_table(table(X[:0], y=y[:0]), path)
        refused(partial(read, path, "y"), str(path), "no rows")
    with pytest.raises(ValueError, match="batch_rows=0 is not a number of rows above 0"):
        parquet_batches(path, "y", batch_rows=0)
    with pytest.raises(ValueError, match="dtype='int8'"):
        parquet_batches(path, "y", dtype="int8")


def test_bad_cells_are_named_after_the_rows_before_them(tmp_path):
    X, y = data()
    X[777, 2] = np.nan
    parts(tmp_path, X, y)
    seen = []
    part = tmp_path / "day-2" / "part-2.parquet"
    with pytest.raises(ValueError, match="'c' holds nan at row 78 ") as caught:
        seen.extend(parquet_batches(tmp_path, "y", batch_rows=50))
    assert str(part) in str(caught.value)
    assert sum(map(len, seen)) == 750
    assert not readers()
    many = table(np.repeat(X[:700], 17, axis=0), y=np.arange(11_900))
    pq.write_table(many, tmp_path / "t.parquet")
    labels = parquet_batches(tmp_path / "t.parquet", "y", batch_rows=500)
    refused(lambda: list(labels), "by row 10,500 has more than 10,000 different values")


READERS = [lambda path: parquet_batches(path, "y"), lambda path: open_table(path).batches()]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("fault", ["gone", "cut", "replaced"])
def test_a_part_that_changes_on_the_way_is_named(tmp_path, fault, read):
    X, y = data()
    parts(tmp_path, X, y)
    part = tmp_path / "day-2" / "part-2.parquet"
    batches = read(tmp_path)
    next(batches)
    if fault == "gone":
        part.unlink()
    elif fault == "cut":
        part.write_bytes(part.read_bytes()[:5000])
    else:
        pq.write_table(table(X, y=y), part)
    words = {"gone": "is gone", "cut": "cut short or damaged", "replaced": "was changed"}
    refused(lambda: list(batches), str(part), words[fault])


def counted(made, n=100, fail_at=None):
    closed = []

    def items():
        try:
            for k in range(n):
                if k == fail_at:
                    raise ValueError("of the reader")
                made.append(k)
                yield k
        finally:
            closed.append(threading.current_thread().name)

    return items(), closed


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_two_items_are_made_ahead_and_no_more():
    made = []
    items, closed = counted(made)
    ahead = read_ahead(items)
    assert not readers()
    assert not made
    assert next(ahead) == 0
    for k in range(1, 4):
        wait_until(lambda k=k: len(made) == k + 2)
        time.sleep(0.02)
        assert len(made) == k + 2
        assert next(ahead) == k
    ahead.close()
    assert closed == [READER]
    assert not readers()


@pytest.mark.thorough
def test_the_thread_ends_when_the_loop_is_left():
    def left():
        for k in read_ahead(items):
            if k == 2:
                break

    def failed():
        for _ in read_ahead(items):
            raise KeyboardInterrupt

    def forgotten():
        next(read_ahead(items))

    def in_a_ring():
        ring = [read_ahead(items)]
        next(ring[0])  # type: ignore[call-overload]
        ring.append(ring)

    for use in (left, failed, forgotten, in_a_ring):
        items, closed = counted([])
        with contextlib.suppress(KeyboardInterrupt):
            use()
        gc.collect()
        wait_until(lambda: not readers())
        assert closed == [READER]


def test_what_the_reader_raises_is_raised_in_its_place():
    items, closed = counted([], fail_at=3)
    taken = []
    with pytest.raises(ValueError, match="of the reader") as caught:
        taken.extend(read_ahead(items))
    assert taken == [0, 1, 2]
    assert closed
    # Where it happened is told as well.
    assert any("items" in str(entry) for entry in caught.traceback)


@pytest.mark.thorough
def test_ctrl_c_ends_the_thread(tmp_path):
    parts(tmp_path, *data())
    code = (
        "import signal, sys, threading, time\n"
        "from rareclass.rows import parquet_batches\n"
        "from rareclass.tables.parquet import ParquetFile\n"
        "batches = ParquetFile.batches\n"
        "def slow(*given, **more):\n"
        "    for batch in batches(*given, **more):\n"
        "        yield batch\n"
        "        time.sleep(0.2)\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "ParquetFile.batches = slow\n"
        "try:\n"
        "    for rows in parquet_batches(sys.argv[1], 'y'):\n"
        "        print(len(rows), flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', threading.active_count())\n"
    )
    done = in_new_process(code, tmp_path, check=True)
    assert done.stdout.split()[-2:] == ["stopped", "1"]
    assert "Traceback" not in done.stderr


def test_an_interpreter_ends_with_rows_half_read(tmp_path):
    parts(tmp_path, *data())
    code = (
        "import sys\n"
        "from rareclass.rows import parquet_batches\n"
        "kept = parquet_batches(sys.argv[1], 'y', batch_rows=1)\n"
        "print(len(next(kept)))\n"
    )
    done = in_new_process(code, tmp_path, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


COUNTING = {
    "batches": "sum(map(len, parquet_batches(sys.argv[1], 'y')))",
    "all rows": "len(from_table(sys.argv[1], 'y'))",
    "a table": "sum(batch.height for batch in open_table(Path(sys.argv[1])).batches())",
}


@pytest.mark.parametrize(
    "how", [n if n == "batches" else pytest.param(n, marks=pytest.mark.thorough) for n in COUNTING]
)
def test_row_groups_of_any_size_take_little_memory(tmp_path, how):
    x = np.random.default_rng(0).normal(size=6_000_000).astype(np.float32)
    whole = pa.table({"a": x, "b": x, "y": x > 3})
    pq.write_table(whole, tmp_path / "t.parquet", row_group_size=len(x), compression="none")
    del whole
    code = (
        "import pyarrow as pa, sys, tracemalloc\n"
        "from pathlib import Path\n"
        "from rareclass.rows import from_table, parquet_batches\n"
        "from rareclass.tables.table_file import open_table\n"
        "next(parquet_batches(sys.argv[1], 'y'))\n"  # what the first call imports
        "tracemalloc.start()\n"
        f"n = {COUNTING[how]}\n"
        "print(n, pa.default_memory_pool().max_memory(), tracemalloc.get_traced_memory()[1])\n"
    )
    n_rows, arrow, python = map(
        int, in_new_process(code, tmp_path / "t.parquet", check=True).stdout.split()
    )
    assert n_rows == len(x)
    assert arrow < 16e6  # of 48 MB of features, in one row group; a batch is 0.8 MB
    assert python < 10e6 or how != "batches"
