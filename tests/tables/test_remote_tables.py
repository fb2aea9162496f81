"""Tables behind URLs: every format as on this machine's disk, in folders, in one pass or many."""

import bz2
import gzip
import json

import numpy as np
import polars as pl
import pytest

from rareclass.errors import InputError
from rareclass.remote import path_of
from rareclass.rows import from_table, parquet_batches
from rareclass.tables.sources import open_source
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import open_table

RNG = np.random.default_rng(1)
TABLE = pl.DataFrame(
    {"a": RNG.normal(size=900), "b": RNG.integers(0, 5, 900), "y": RNG.random(900) < 0.1}
)
NUMBERS = TABLE.with_columns(pl.col("y").cast(pl.Int64))


def _svmlight(path):
    lines = (f"{int(y)} 1:{a!r} 2:{b}" for a, b, y in TABLE.rows())
    path.write_text("\n".join(lines) + "\n")


WRITERS = {
    "x.csv": lambda path: TABLE.write_csv(path),
    "x.csv.gz": lambda path: path.write_bytes(gzip.compress(TABLE.write_csv().encode())),
    "x.txt.bz2": lambda path: path.write_bytes(bz2.compress(TABLE.write_csv().encode())),
    "x.jsonl": lambda path: TABLE.write_ndjson(path),
    "x.parquet": lambda path: TABLE.write_parquet(path, row_group_size=200),
    "x.svmlight": _svmlight,
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_as_on_this_machine(name, memory, tmp_path):
    WRITERS[name](tmp_path / name)
    memory.put_file(str(tmp_path / name), f"/t/{name}")
    near = open_table(tmp_path / name)
    far = open_table(f"memory://t/{name}")
    assert far.format_name == near.format_name
    if isinstance(far, SvmlightFile):
        assert (far.read()[0].X != near.read()[0].X).nnz == 0
        return
    assert (far.columns, far.n_bytes) == (near.columns, near.n_bytes)
    assert far.estimate_rows() == near.estimate_rows()
    for _ in range(2):
        assert pl.concat(far.batches(batch_rows=128)).equals(pl.concat(near.batches()))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_folder_is_as_on_this_machine(suffix, memory, tmp_path):
    for k, part in enumerate(TABLE.iter_slices(300)):
        path = tmp_path / f"part-{k}.{suffix}"
        (part.write_csv if suffix == "csv" else part.write_parquet)(path)
        memory.put_file(str(path), f"/t/day-{k}/{path.name}")
    for name in ("_SUCCESS.csv", ".x.csv", "_notes/a.csv", "run/rareclass-stream.lock"):
        memory.pipe_file(f"/t/{name}", b"a,b\n")
    memory.pipe_file(f"/t/run/rows.{suffix}", b"a,b\n")
    memory.pipe_file("/t/empty.csv", b"")
    if suffix == "parquet":
        memory.pipe_file("/t/run/rows.csv", b"a,b\n")
    near, far = open_table(tmp_path), open_table("memory://t/")
    for _ in range(2):
        assert pl.concat(far.batches()).equals(pl.concat(near.batches()))
    with from_table("memory://t", "y") as rows, from_table(tmp_path, "y") as others:
        np.testing.assert_array_equal(
            rows.source.take(slice(None)), others.source.take(slice(None))
        )
        assert rows.y.tolist() == others.y.tolist()


def test_batches_of_parquet(memory):
    with memory.open("/t/x.parquet", "wb") as file:
        NUMBERS.write_parquet(file)
    parts = list(parquet_batches("memory://t/x.parquet", "y", batch_rows=400))
    assert [len(part) for part in parts] == [400, 400, 100]


@pytest.mark.parametrize("name", ["x.csv.gz", "x.jsonl", "x.parquet"])
def test_a_stream_goes_on(name, memory, tmp_path):
    WRITERS[name](tmp_path / name)
    for k in range(2):
        memory.put_file(str(tmp_path / name), f"/t/{k}/{name}")
    source, cells = open_source("memory://t"), []
    while (batch := source.read(250)) is not None:
        cells += [float(cell) for cell in batch.frame["a"]]
        source.close()
        source = open_source("memory://t", json.loads(json.dumps(batch.position)))
    source.close()
    assert cells == 2 * TABLE["a"].to_list()


def test_what_is_not_there(memory):
    for read in (open_table, from_table, open_source):
        with pytest.raises(InputError, match=r"There is no file memory://t/none.csv"):
            read("memory://t/none.csv")
    memory.pipe_file("/t/x.parquet", b"PAR1 and no more")
    with pytest.raises(InputError, match=r"memory://t/x.parquet is a Parquet file that is cut"):
        open_table("memory://t/x.parquet")
    memory.pipe_file("/t/x.csv", b"")
    with pytest.raises(InputError, match=r"memory://t/x.csv is empty"):
        open_table(path_of("memory://t/x.csv"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_web_server_that_gives_no_parts(name, web):
    address, folder = web
    WRITERS[name](folder / name)
    far = open_table(f"{address}/{name}?sig=hush")
    assert pl.concat(far.batches()).equals(pl.concat(open_table(folder / name).batches()))
    assert "hush" not in str(far.path)
