"""Parquet and CSV as rows on disk: the same rows, the same fit, errors that say where."""

import gzip
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rareclass import RankRC, RankRCCV
from rareclass.errors import InputError
from rareclass.rows import from_arrays, from_table, parquet_batches
from rareclass.rows.decoding import ScratchRows
from rareclass.tables.table_file import open_table

pytestmark = pytest.mark.sampled(0)

NAMES = tuple("abcde")


def data(dtype=np.float64, n_rows=1200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.04
    X = rng.normal(size=(n_rows, 5)) + 0.8 * y[:, None] * rng.normal(size=5)
    return X.astype(dtype), y.astype(np.int64)


def table(X, **more):
    return pa.table({name: X[:, k] for k, name in enumerate(NAMES)} | more)


def parts(folder, X, y, cuts=(0, 500, 700, 1200), **options):
    for k, (start, stop) in enumerate(pairwise(cuts)):
        path = folder / f"day-{k}" / f"part-{k}.parquet"
        path.parent.mkdir(exist_ok=True)
        rows = slice(start, stop)
        pq.write_table(table(X[rows], y=y[rows]), path, row_group_size=150, **options)
    return folder


def same(one, other, rtol=1e-10):
    for name in {"coef_", "dual_coef_"} & vars(one).keys():
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol, rtol)
    assert one.offset_ == pytest.approx(other.offset_, rel=rtol)
    np.testing.assert_array_equal(one.landmarks_, other.landmarks_)


@pytest.fixture
def many_blocks(monkeypatch):
    """Blocks of 32 rows; what is read from disk while they are in force, as (rows, thread)."""
    monkeypatch.setattr("rareclass.kernels.expansion._MOST_BLOCK_ROWS", 32)
    reads = []
    take = ScratchRows.take

    def watched(self, rows):
        block = take(self, rows)
        reads.append((len(block), threading.current_thread().name))
        return block

    monkeypatch.setattr(ScratchRows, "take", watched)
    return reads


def in_many_threads(reads):
    return sum(size <= 32 and name.startswith("rareclass_") for size, name in reads) > 25


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("memory", ["2GiB", "1MiB"])
def test_a_fit_on_parquet_is_the_fit_in_memory(tmp_path, many_blocks, dtype, memory):
    X, y = data(dtype)
    rows = from_table(parts(tmp_path, X, y), target="y", scratch=tmp_path)
    assert rows.source.dtype == dtype
    assert rows.shape == (1200, 5)
    np.testing.assert_array_equal(rows.y, y)
    expected = RankRC(n_jobs=1).fit(X, y)
    model = RankRC(memory=memory, n_jobs=2).fit_rows(rows)
    assert in_many_threads(many_blocks)
    same(model, expected)
    assert list(model.feature_names_in_) == list(NAMES)
    np.testing.assert_allclose(model.score_samples(rows), expected.score_samples(X))
    np.testing.assert_array_equal(model.predict(rows), expected.predict(X))
    assert model.score(rows, rows.y) == expected.score(X, y)
    np.testing.assert_allclose(model.transform(rows), expected.transform(X))


def test_scoring_other_columns_is_refused(tmp_path):
    X, y = data()
    rows = from_table(parts(tmp_path, X, y), target="y")
    model = RankRC().fit_rows(rows)
    fewer = from_table(tmp_path, target="y", columns=["a", "b"])
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(fewer)
    with pytest.raises(ValueError, match="X has 2 features"):
        RankRC().fit(X, y).score_samples(fewer.source)


def test_labels_weights_and_columns(tmp_path):
    X, y = data(np.float32)
    words = np.where(y == 1, "fraud", "ok")
    whole = table(X, y=pa.array(words).dictionary_encode(), w=y + 1.0)
    pq.write_table(whole, tmp_path / "t.parquet", row_group_size=100)
    how = tmp_path / "t.parquet", "y"
    options = {"weight": "w", "columns": ["c", "a"], "dtype": "float64"}
    rows = from_table(*how, **options)
    for parts in ([rows], list(parquet_batches(*how, **options))):
        assert np.concatenate([part.y for part in parts]).tolist() == words.tolist()
        assert np.concatenate([part.sample_weight for part in parts]).tolist() == (y + 1).tolist()
        assert {part.feature_names for part in parts} == {("c", "a")}
        taken = np.concatenate([part.source.take(slice(None)) for part in parts])
        assert taken.dtype == np.float64
        np.testing.assert_array_equal(taken, X[:, [2, 0]])
    assert all(part.y is None for part in parquet_batches(how[0], columns=["a"]))
    model = RankRC().fit_rows(rows)
    assert model.pos_label_ == "fraud"
    assert set(model.predict(rows)) == {"fraud", "ok"}


def test_rows_without_labels_are_scored_and_not_fitted(tmp_path):
    X, y = data()
    model = RankRC().fit_rows(from_table(parts(tmp_path, X, y), target="y"))
    pl.DataFrame(X, schema=NAMES).write_parquet(tmp_path / "new.pq")
    pl.DataFrame(X, schema=NAMES).write_csv(tmp_path / "new.csv")
    for new in (from_table(tmp_path / "new.pq"), from_table(tmp_path / "new.csv")):
        assert new.y is None
        np.testing.assert_allclose(model.score_samples(new), model.score_samples(from_arrays_of(X)))
        for estimator in (RankRC(), RankRCCV()):
            refused(lambda: estimator.fit_rows(new), "no labels", "target=", "from_arrays takes y")  # noqa: B023


@pytest.mark.parametrize("given", ["x.parquet", Path("x.parquet"), np.eye(3), None])
def test_what_is_no_labelled_rows_is_refused(given):
    for estimator in (RankRC(), RankRCCV()):
        with pytest.raises(TypeError, match=r"from_table\(path, target=.*fit\(X, y\)") as caught:
            estimator.fit_rows(given)
        assert ("x.parquet" in str(caught.value)) == isinstance(given, str | Path)


def test_rows_are_closed_by_with(tmp_path):
    X, y = data()
    with from_table(parts(tmp_path, X, y), target="y") as rows:
        others = replace(rows, y=1 - rows.y)
        model = RankRC().fit_rows(rows)
    assert rows.y.tolist() == y.tolist()
    for closed in (rows, others):
        refused(lambda: model.score_samples(closed), "were closed", "Read the file again")  # noqa: B023
    with from_arrays(X, y) as kept:
        pass
    assert kept.source.take(slice(0, 1)).tolist() == X[:1].tolist()


def test_closing_gives_the_disk_back(tmp_path, monkeypatch):
    X, y = data()
    made = []
    start = ScratchRows.__init__
    monkeypatch.setattr(
        ScratchRows, "__init__", lambda self, *to: (made.append(self), start(self, *to))[1]
    )
    rows = from_table(parts(tmp_path, X, y), target="y")
    file = made[0]._scratch.file
    assert os.fstat(file.fileno()).st_size == X.nbytes
    rows.close()
    rows.close()
    assert file.closed
    # Reading that fails closes it too, whoever keeps the traceback.
    nothing = pa.nulls(len(y), pa.int64())
    pq.write_table(table(X, y=nothing), tmp_path / "day-2" / "part-2.parquet")
    refused(lambda: from_table(tmp_path, "y", columns=["a"]))
    assert made[1]._scratch.file.closed


def from_arrays_of(X):
    return from_arrays(pl.DataFrame(X, schema=NAMES), None)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_fit_on_csv_is_the_fit_in_memory(tmp_path, many_blocks, pack):
    X, y = data()
    for k, rows in enumerate((slice(0, 400), slice(400, None))):
        text = pl.from_arrow(table(X[rows], y=y[rows])).write_csv()
        (tmp_path / f"{k}.csv{'.gz' * (pack is not bytes)}").write_bytes(pack(text.encode()))
    rows = from_table(tmp_path, target="y")
    np.testing.assert_array_equal(rows.y, y)
    np.testing.assert_array_equal(rows.source.take(slice(None)), X)
    same(RankRC(n_jobs=2).fit_rows(rows), RankRC(n_jobs=1).fit(X, y))
    assert in_many_threads(many_blocks)


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["0", "1"], [0, 1]),
        (["-0", "1"], [-0.0, 1.0]),
        (["0.0", "1"], [0.0, 1.0]),
        (["0.25", "-3e+20"], [0.25, -3e20]),
        (["01", "1"], ["01", "1"]),
        (["1", "1.0"], [1.0, 1.0]),
        (["1_0", "10"], ["1_0", "10"]),
        (["0x10", "1"], ["0x10", "1"]),
        (["inf", "1"], ["inf", "1"]),
        (["nan", "1"], ["nan", "1"]),
        (["9" * 23, "9" * 22 + "8"], ["9" * 23, "9" * 22 + "8"]),
    ],
)
def test_labels_of_csv_are_numbers_only_where_written_so(tmp_path, texts, labels):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"1,{text}\n" for text in texts))
    read = from_table(tmp_path / "t.csv", "y").y.tolist()
    assert read == labels
    assert list(map(type, read)) == list(map(type, labels))


def test_a_memory_map_is_never_loaded(tmp_path):
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(
        tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(100_000, 100)
    )
    X[:] = rng.normal(size=X.shape)
    X.flush()
    y = np.arange(len(X)) < 10
    RankRC(n_jobs=1).fit(X[:500], y[:500])  # compiled before it is measured
    tracemalloc.start()
    model = RankRC(n_jobs=1, memory="1MiB").fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    model.score_samples(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 40 MB of rows: the fit takes blocks and one sampled preconditioner, not the rows.
    assert peak < 0.6 * X.nbytes


def refused(read, *words, **options):
    with pytest.raises(InputError) as caught:
        read(**options)
    assert caught.value.remedy
    for word in words:
        assert word in str(caught.value)


def test_bad_cells_are_named(tmp_path):
    X, y = data()
    path = tmp_path / "t.parquet"
    for value in (None, np.nan, np.inf):
        cells = X[:, 2].tolist()
        cells[777] = value
        bad = table(X).set_column(2, "c", pa.array(cells)).append_column("y", pa.array(y))
        pq.write_table(bad, path, row_group_size=100)
        refused(lambda: from_table(path, "y"), str(path), "'c'", "row 778", "columns=")
    pq.write_table(table(X, y=pa.array([None, *y[1:]])), path)
    refused(lambda: from_table(path, "y"), "'y' is empty at row 1 ")
    pq.write_table(table(X, y=y, w=np.where(np.arange(1200) == 5, -1.0, 1.0)), path)
    refused(lambda: from_table(path, "y", weight="w"), "weight 'w' is -1.0 at row 6")
    pq.write_table(table(X * 1e300, y=y), path)
    refused(lambda: from_table(path, "y", dtype="float32"), "too large for float32")


def test_bad_cells_of_csv_are_named(tmp_path):
    path = tmp_path / "t.csv"
    good = "1.5,2,ok\n" * 300_000
    for cell, said in (("zwei", "holds 'zwei'"), ("", "is empty"), ("inf", "holds inf")):
        path.write_text("a,b,y\n" + good + f"1,{cell},no\n" + "1,1,no\n")
        refused(lambda: from_table(path, "y"), str(path), "'b'", said, "row 300,001")
    path.write_text("a,b,y\n1,2,\n")
    refused(lambda: from_table(path, "y"), "'y' is empty at row 1")
    path.write_text("a,b,y\n1,2,x\n1,2\n")
    refused(lambda: from_table(path, "y"), "line 3 (row 2): 2 cells where the header has 3: 1,2")
    path.write_bytes("a,b,y\n1,2,é\n1,2,".encode() + b"\xff\n")
    refused(lambda: from_table(path, "y"), "line 3 (row 2): not UTF-8 text")
    refused(lambda: from_table(tmp_path / "none.csv", "y"), "no file")
    packed = gzip.compress(("a,b,y\n" + "".join(f"{k},{k},x\n" for k in range(9**5))).encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) // 2])
    refused(lambda: from_table(tmp_path / "t.csv.gz", "y"), "t.csv.gz")


def test_parts_that_differ_are_named(tmp_path):
    X, y = data()
    parts(tmp_path, X, y)
    odd = tmp_path / "day-2" / "part-2.parquet"
    pq.write_table(table(X, y=y).drop_columns("d"), odd)
    refused(lambda: from_table(tmp_path, "y"), str(odd), "lacks the column 'd'")
    assert from_table(tmp_path, "y", columns=["a", "b"]).shape == (1900, 2)
    pq.write_table(table(X, y=np.where(y, "x", "y")), odd)
    refused(lambda: from_table(tmp_path, "y"), str(odd), "target 'y' holds string")
    zoned = pa.array(y.astype(np.int64), pa.timestamp("ms", "UTC"))
    pq.write_table(table(X).append_column("y", zoned), odd)
    refused(lambda: from_table(odd, "y"), str(odd), "target 'y' holds timestamp[ms, tz=UTC]")
    pq.write_table(table(X, y=y.astype(np.int8)), odd)
    assert from_table(tmp_path, "y").y.dtype == np.int64
    (tmp_path / "_notes.parquet").write_text("kept by another program")
    assert len(from_table(tmp_path, "y")) == 1900
    (tmp_path / "empty").mkdir()
    refused(lambda: from_table(tmp_path / "empty", "y"), "There is no table in the folder")
    refused(lambda: from_table(tmp_path / "none.parquet", "y"), "There is no file")
    odd.write_bytes(odd.read_bytes()[:-300])
    refused(lambda: from_table(tmp_path, "y"), str(odd), "cut short")


@pytest.mark.parametrize(
    ("name", "opener"), [("t.parquet", (pa, "OSFile")), ("t.csv", (Path, "open"))]
)
def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch, name, opener):
    (tmp_path / name).write_text("PAR1")

    def closed(path, *options, **more):
        raise PermissionError(13, "Permission denied", str(path))

    # Not by chmod: it does not stop the superuser, as whom tests may run.
    monkeypatch.setattr(*opener, closed)
    refused(lambda: from_table(tmp_path / name, "y"), f"read {tmp_path / name}", "its owner")


def test_a_csv_that_goes_while_reading_is_named(tmp_path, monkeypatch):
    from rareclass.rows import readers

    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    batches = readers._numbers_of_text
    monkeypatch.setattr(
        readers,
        "_numbers_of_text",
        lambda part, *how: (part.file.path.unlink(), batches(part, *how))[1],
    )
    refused(lambda: from_table(tmp_path, "y"), "t.csv is gone", "Put it back")


@pytest.mark.parametrize("compression", ["snappy", "none"])
def test_flipped_bytes_are_named_by_row_group(tmp_path, compression):
    X, y = data()
    parts(tmp_path, X, y, compression=compression, write_page_checksum=True, use_dictionary=False)
    part = tmp_path / "day-0" / "part-0.parquet"
    group = pq.ParquetFile(part).metadata.row_group(2)
    # The pages of a column end where the next column's begin.
    place = group.column(2).dictionary_page_offset or group.column(2).data_page_offset
    content = bytearray(part.read_bytes())
    for k in range(place - 60, place - 20):
        content[k] ^= 0xFF
    part.write_bytes(content)
    for read in (lambda: from_table(tmp_path, "y"), lambda: list(open_table(part).batches())):
        refused(read, str(part), "row group 3 of 4 cannot be read: ")
    assert len(list(open_table(part).batches(["a"], batch_rows=100))) == 5


def test_a_killed_fit_leaves_nothing(tmp_path):
    X, y = data(n_rows=5000)
    pq.write_table(table(X, y=y), tmp_path / "t.parquet")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = (
        "import sys, time, traceback\n"
        "from rareclass import RankRC\n"
        "from rareclass.kernels import expansion\n"
        "from rareclass.rows import from_table\n"
        "from rareclass.rows.decoding import ScratchRows\n"
        "expansion._MOST_BLOCK_ROWS = 32\n"
        "take, taken = ScratchRows.take, []\n"
        "def stop_midway(self, rows):\n"
        "    taken.append(rows)\n"
        "    if len(taken) == 100:\n"
        "        print(*(frame.name for frame in traceback.extract_stack()), flush=True)\n"
        "        time.sleep(60)\n"
        "    return take(self, rows)\n"
        "ScratchRows.take = stop_midway\n"
        "RankRC(n_jobs=1).fit_rows(from_table(sys.argv[1], 'y', scratch=sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "t.parquet", scratch]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        where = child.stdout.readline().split()
        child.send_signal(signal.SIGKILL)
    assert {"fit_rows", "sum"} <= set(where)
    assert child.returncode == -signal.SIGKILL
    assert list(scratch.iterdir()) == []
