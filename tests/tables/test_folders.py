"""Tables in folders and behind URLs: every format as one file on this machine."""

import bz2
import gzip
import json
import os
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from rareclass.errors import InputError
from rareclass.remote import path_of
from rareclass.rows import from_table, parquet_batches
from rareclass.tables.folders import FolderPart, find_parts, has_content, numbers_of_folders
from rareclass.tables.sources import open_source
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import open_table


def test_parts_below_a_folder_are_found_in_order(tmp_path):
    names = "b/2.parquet a/9.PARQUET 1.parquet _notes/3.parquet .x.parquet c.csv"
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [str(part.relative_to(tmp_path)) for part in find_parts(tmp_path)]
    assert found == ["1.parquet", "a/9.PARQUET", "b/2.parquet"]
    assert find_parts(tmp_path / "c.csv") == [tmp_path / "c.csv"]
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="There is no table in the folder"):
        find_parts(tmp_path / "none")
    (tmp_path / "c.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r"c\.csv is CSV, .*1\.parquet is Parquet"):
        find_parts(tmp_path)
    for name in ("rareclass-stream.lock", "rejected.jsonl", "log/1.csv"):  # of a stream
        (tmp_path / "s" / "run" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "s" / "run" / name).write_text("a\n")
    (tmp_path / "s" / "1.csv").write_text("a\n")
    assert find_parts(tmp_path / "s") == [tmp_path / "s" / "1.csv"]
    assert find_parts(tmp_path / "s" / "run" / "log") == [tmp_path / "s" / "run" / "log" / "1.csv"]


@pytest.mark.parametrize(
    ("ending", "content", "has"),
    [("csv", b"", False), ("csv", b"a", True), ("parquet", b"", True), ("csv", None, False)],
)
def test_a_table_of_text_has_content_from_its_first_byte_on(ending, content, has, tmp_path):
    path = tmp_path / f"a.{ending}"
    if content is not None:
        path.write_bytes(content)
    assert has_content(path) is has


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (PermissionError(13, "Permission denied"), "tidied may not be read: Permission denied"),
        (FileNotFoundError(2, "No such file or directory"), None),
    ],
)
def test_a_closed_folder_is_named_and_one_that_goes_meanwhile_is_passed_over(
    tmp_path, monkeypatch, fault, said
):
    (tmp_path / "1.parquet").touch()
    (tmp_path / "tidied").mkdir()
    scan = os.scandir

    def refuse(path):
        if os.fspath(path).endswith("tidied"):
            raise type(fault)(*fault.args, os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=said) if said else nullcontext():
        assert find_parts(tmp_path) == [tmp_path / "1.parquet"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_folder_may_hold_more_files_than_may_be_open(tmp_path, suffix):
    resource = pytest.importorskip("resource")
    table = pl.DataFrame({"a": [1.0, 2.0], "y": [0, 1]})
    write = {"csv": table.write_csv, "parquet": table.write_parquet, "jsonl": table.write_ndjson}
    for number in range(80):
        write[suffix](tmp_path / f"{number:02}.{suffix}")
    n_open = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 200
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 40, before[1]))
    try:
        file = open_table(tmp_path)
        assert file.n_bytes > 0
        assert file.estimate_rows() >= 80
        assert sum(batch.height for batch in file.batches()) == 160
        if suffix != "jsonl":
            rows = from_table(tmp_path, target="y")
            assert rows.shape == (160, 1)
            rows.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["0", "1"], [0, 1]),
        (["0.5", "2"], [0.5, 2.0]),
        (["01", "1"], ["01", "1"]),
        (["no", "yes"], ["no", "yes"]),
    ],
)
def test_labels_in_the_names_of_folders_are_those_written(tmp_path, suffix, names, labels):
    table = pl.DataFrame({"x": [1.0, 2.0]})
    for k, name in enumerate(names):
        place = tmp_path / f"y={name}" / f"size=1.{k}" / f"1.{suffix}"
        place.parent.mkdir(parents=True)
        (table.write_csv if suffix == "csv" else table.write_parquet)(place)
    with from_table(tmp_path, target="y") as rows:
        assert rows.y.tolist() == [labels[0], labels[0], labels[1], labels[1]]
        assert isinstance(rows.y.tolist()[0], type(labels[0]))
        assert list(rows.feature_names) == ["x", "size"]


@pytest.mark.parametrize(
    ("values", "numeric"),
    [
        (["1", "-2.5e3", "inf"], True),
        (["1", "soon"], False),
        (["1", "1_0"], False),
        (["1", "nan"], False),
        (["1", None], False),
        (["1", "__HIVE_DEFAULT_PARTITION__"], False),
    ],
)
def test_a_key_is_a_number_where_all_its_values_are(tmp_path, values, numeric):
    parts = []
    for k, value in enumerate(values):
        place = tmp_path / ("x" if value is None else f"x/key={value}") / f"other={k}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("a\n1\n")
        parts.append(FolderPart(open_table(place), place, tmp_path / "x"))
    assert ("key" in numbers_of_folders(parts)) == numeric


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
