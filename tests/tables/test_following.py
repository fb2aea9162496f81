"""Sources that grow while they are followed."""

import gzip
import json
import os
import threading

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults import refused
from rareclass.errors import ErrorKind, InputError
from rareclass.tables import sources
from rareclass.tables.sources import open_source
from tables.readings import now, read_all, records_of


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(sources, "_LONGEST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(sources, "_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(sources, "_SETTLED_SECONDS", 0.0)


def append(path, text):
    with path.open("a") as file:
        file.write(text)


@pytest.mark.usefixtures("impatient")
def test_following_a_growing_file(tmp_path):
    path = tmp_path / "t.csv"
    path.touch()
    source = open_source(str(path), follow=True)
    assert (now(source).n_read, source.columns) == (0, None)
    append(path, "a,")
    assert now(source).n_read == 0
    append(path, 'b\n1,2\n3,"x\n')
    first = now(source)
    assert first.frame["a"].to_list() == ["1"]
    assert source.columns == ["a", "b"]
    append(path, 'y"')
    assert now(source).n_read == 0
    append(path, "\n5,6")
    second = now(source)
    assert second.frame["b"].to_list() == ["x\ny"]
    assert second.lines.tolist() == [3]
    source.close()
    again = open_source(str(path), first.position, follow=True)
    assert now(again).frame["b"].to_list() == ["x\ny"]
    append(path, "7\n")
    last = now(again)
    assert (last.frame["b"].to_list(), last.lines.tolist()) == (["67"], [5])
    path.write_text("a,b\n")
    with pytest.raises(InputError, match="is shorter than what was read"):
        again.read(1)
    again.close()


@pytest.mark.sampled(0)
def test_following_waits_a_second_at_most(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    source = open_source(str(path), follow=True)
    timer = threading.Timer(0.2, append, (path, "1,2\n"))
    timer.start()
    assert now(source).n_read == 1
    assert now(source).n_read == 0
    source.close()
    timer.join()


def test_a_file_that_grows_after_its_last_line_was_taken(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4")
    position = read_all(open_source(str(path)))[-1].position
    append(path, "\n5,6\n")
    rows = read_all(open_source(str(path), position))
    assert records_of(rows) == ([(str(path), 4, ("5", "6"))], [])
    path.write_text("a,b\n1,2\n3,44\n5,6\n")
    good, bad = records_of(read_all(open_source(str(path), position)))
    assert good == [(str(path), 4, ("5", "6"))]
    assert bad == [(str(path), 3, "the end of a line that had been read incomplete", "4")]


@pytest.mark.usefixtures("impatient")
def test_a_folder_that_grows(tmp_path):
    source = open_source(str(tmp_path), follow=True)
    assert now(source).n_read == 0
    (tmp_path / "m.csv").write_text("a,b\n1,2\n3,4")
    assert now(source).lines.tolist() == [2]
    for name in (".h.csv", "n.csv.tmp", "n.csv.part", "_n.csv", "notes.md", "n.csv~"):
        (tmp_path / name).write_text("a,b\n9,9\n")
    assert now(source).n_read == 0
    # A file that sorts before: now the last line of the first one is one.
    (tmp_path / "b.csv").write_text("a,b\n5,6\n")
    third, fourth = now(source), now(source)
    assert [(b.file, b.frame["a"].to_list()) for b in (third, fourth)] == [
        ("m.csv", ["3"]),
        ("b.csv", ["5"]),
    ]
    append(tmp_path / "b.csv", "7,8\n")
    position = now(source).position
    source.close()
    (tmp_path / "c.csv").write_text("a,b\n1,2\n")
    again = open_source(str(tmp_path), json.loads(json.dumps(position)), follow=True)
    fifth = now(again)
    assert (fifth.file, fifth.frame["a"].to_list()) == ("c.csv", ["1"])
    append(tmp_path / "b.csv", "9,10\n")
    (tmp_path / "d.csv").write_text("a,b\n3,4\n")
    with pytest.raises(InputError, match=r"b\.csv was changed after it had been read"):
        again.read(5)
    again.close()


@pytest.mark.usefixtures("impatient")
def test_half_a_line_is_waited_for_while_it_is_fresh(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_SETTLED_SECONDS", 2.0)
    (tmp_path / "1.csv").write_text("a,b\n1,2\n3,")
    source = open_source(str(tmp_path), follow=True)
    assert now(source).n_read == 1
    (tmp_path / "2.csv").write_text("a,b\n5,6\n")
    assert now(source).n_read == 0
    append(tmp_path / "1.csv", "4")
    assert now(source).n_read == 0
    os.utime(tmp_path / "1.csv", (1e9, 1e9))
    assert now(source).frame["b"].to_list() == ["4"]
    assert now(source).frame["b"].to_list() == ["6"]
    source.close()


@pytest.mark.usefixtures("impatient")
def test_parquet_files_in_a_followed_folder_wait_until_complete(tmp_path):
    table = pa.table({"a": [1.5, None]})
    pq.write_table(table, tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content[:-20])
    (tmp_path / "y.parquet").write_bytes(content)
    source = open_source(str(tmp_path), follow=True)
    assert now(source).file == "y.parquet"
    assert now(source).n_read == 0
    (tmp_path / "x.parquet").write_bytes(content)
    assert now(source).file == "x.parquet"
    source.close()
    (tmp_path / "y.parquet").write_bytes(content[:-20])
    not_followed = open_source(str(tmp_path))
    assert now(not_followed).file == "x.parquet"
    with pytest.raises(InputError, match=r"y\.parquet is a Parquet file that is cut short"):
        not_followed.read(5)
    not_followed.close()


@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore:.*read as cp1252")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "cp1252"])
def test_text_of_other_encodings_may_grow(tmp_path, encoding):
    """Offsets are those of the bytes in the file: a restart goes on at the very letter."""
    path = tmp_path / "1.csv"
    mark = "\ufeff" if "16" in encoding else ""
    # U+0A0D and U+0D0A hold the bytes of line ends.
    word = "\u0a0d\u0d0a" if "16" in encoding else "ü"
    content = f"{mark}a,b\n1,{word}\n3,\xe9\n5,"
    path.write_bytes(content.encode(encoding))
    source = open_source(str(path), follow=True)
    first = now(source, 1)
    assert first.frame["b"].to_list() == [word]
    position = json.loads(json.dumps(now(source).position))
    source.close()
    with path.open("ab") as file:
        file.write("6\n7,".encode(encoding)[:-1])  # half a letter of UTF-16
    again = open_source(str(path), position, follow=True)
    batch = now(again)
    assert (batch.frame["b"].to_list(), batch.lines.tolist()) == (["6"], [4])
    again.close()


WRITERS = {
    "t.csv": pl.DataFrame.write_csv,
    "t.csv.gz": lambda table, path: path.write_bytes(
        gzip.compress(table.write_csv().encode(), mtime=0)
    ),
    "utf-16.csv": lambda table, path: path.write_text(table.write_csv(), "utf-16"),
    "t.jsonl": pl.DataFrame.write_ndjson,
    "t.parquet": pl.DataFrame.write_parquet,
}
ROWS = pl.DataFrame({"a": range(5000), "b": [f"é{row % 7}" for row in range(5000)]})
CHANGES = {
    "grown": lambda rows: rows,
    "cut": lambda rows: rows.head(100),
    "other rows": lambda rows: rows.with_columns(a=9999 - pl.col("a")),
    "first cell": lambda rows: rows.with_columns(a=pl.when(a=0).then(8).otherwise("a")),
    "last cell": lambda rows: rows.with_columns(a=pl.when(a=2999).then(2998).otherwise("a")),
}


@pytest.mark.sampled(37)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["file", "folder", "finished"])
@pytest.mark.parametrize("name", WRITERS)
def test_only_what_was_read_is_gone_on_with(tmp_path, name, kind, change):
    """The file, that of a folder which is open, or one of a folder that was read to its end."""
    path, is_finished = tmp_path / name, kind == "finished"
    source = path if kind == "file" else tmp_path
    WRITERS[name](ROWS.head(3000 if is_finished else 4000), path)
    if is_finished:
        WRITERS[name](ROWS.head(1), tmp_path / f"z{name}")
    opened = open_source(source)
    for n_rows in (1, 1999, 1000, *([1] if is_finished else [])):
        position = json.loads(json.dumps(opened.read(n_rows).position))
    opened.close()
    WRITERS[name](CHANGES[change](ROWS.head(3000) if is_finished else ROWS), path)
    if change == "grown":
        WRITERS[name](ROWS.tail(1), tmp_path / f"zz{name}")
        batches = read_all(open_source(source, position))
        found = [int(cell) for batch in batches for cell in batch.frame["a"]]
        expected = range(4999 if is_finished else 3000, 5000)
        assert found == [*expected, *([4999] if kind == "folder" else [])]
    else:
        with refused(ErrorKind.ROWS, says=name):
            read_all(open_source(source, position))
