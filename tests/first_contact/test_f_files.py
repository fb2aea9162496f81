"""Files as they come: Excel's first line, names of folders, JSON lines of several shapes."""

import gzip
import json
import sqlite3
from contextlib import closing, nullcontext
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from command_line import QUICK, run
from faults import refused
from first_contact.containers import FILES, FRAMES, column_of_file
from rareclass.encoding.training_table import plan_reading, read_training_table
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, TableWarning, finding_of
from rareclass.remote import path_of
from rareclass.rows import from_table
from rareclass.serving.requests import RefusedError, rows_of_json
from rareclass.tables.databases import DatabaseAddress, Query
from rareclass.tables.folders import folder_columns
from rareclass.tables.sources import open_source
from rareclass.tables.table_file import open_rows, open_table
from tables.readings import head_of

Cells = dict[str, list[Any]]


def of_file(path):
    file = open_table(path)
    return pl.concat(file.batches()).to_dict(as_series=False)


def of_stream(path, at_once=3):
    found = {}
    position = None
    while True:
        batch = head_of(path, position, n=at_once)
        if batch is None:
            return found
        assert not batch.rejected
        for cells in batch.frame:
            found.setdefault(cells.name, []).extend(cells.to_list())
        position = json.loads(json.dumps(batch.position))


EXCEL = {
    "as Excel writes it": b"sep=;\r\na;b\r\n1;x\r\n2;y\r\n",
    "with a mark": b"\xef\xbb\xbfsep=;\r\na;b\r\n1;x\r\n2;y\r\n",
    "quoted": b'"sep=;"\na;b\n1;x\n2;y\n',
    "a comma": b"sep=,\na,b\n1,x\n2,y\n",
    "a tab": b"sep=\t\na\tb\n1\tx\n2\ty\n",
    "in capitals": b"SEP=;\na;b\n1;x\n2;y\n",
    "saved again": b"sep=,,,\na,b\n1,x\n2,y\n",
    "in UTF-16": "sep=;\r\na;b\r\n1;x\r\n2;y\r\n".encode("utf-16"),
    "a rare one": b"sep=~\na~b\n1~x\n2~y\n",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", EXCEL)
def test_the_first_line_of_excel_names_the_separator(tmp_path, name, packed):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(EXCEL[name]) if packed else EXCEL[name])
    wanted = {"a": ["1", "2"], "b": ["x", "y"]}
    assert of_file(path) == wanted
    assert of_stream(path) == wanted


def test_a_fault_below_the_first_line_of_excel_has_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sep=;\na;b\n1;x\n2;y;z\n")
    source = open_source(path)
    batch = source.read(9)
    assert batch.lines.tolist() == [3]
    assert [row.line for row in batch.rejected] == [4]
    path.write_text("sep=;\n")
    with refused(ErrorKind.TOO_FEW_ROWS):
        open_table(path)


WRITERS = {
    "csv": lambda path, cells: pl.DataFrame(cells).write_csv(path),
    "jsonl": lambda path, cells: pl.DataFrame(cells).write_ndjson(path),
    "parquet": lambda path, cells: pq.write_table(pa.table(cells), path),
}
FOLDERS = [
    "shop=a/day=2024-01-01",
    "shop=a/day=2024-01-02",
    "shop=b%2Fc/day=2024-01-01",
    "shop=__HIVE_DEFAULT_PARTITION__/day=2024-01-05",
]
KEYS = {
    "shop": ["a", "a", "a", "a", "b/c", "b/c", None, None],
    "day": [f"2024-01-0{k}" for k in (1, 1, 2, 2, 1, 1, 5, 5)],
}


def made(folder, suffix):
    for k, name in enumerate(FOLDERS):
        place = folder / name
        place.mkdir(parents=True)
        WRITERS[suffix](place / f"part-{k}.{suffix}", {"n": [k, k + 10], "y": ["no", "yes"]})
    return folder


def in_order(cells):
    rows = zip(*(cells[name] for name in ("n", "shop", "day", "y")), strict=True)
    return sorted((int(n), *rest) for n, *rest in rows)


WANTED = sorted(
    (k % 2 * 10 + k // 2, shop, day, ["no", "yes"][k % 2])
    for k, (shop, day) in enumerate(zip(KEYS["shop"], KEYS["day"], strict=True))
)


@pytest.mark.parametrize("suffix", WRITERS)
def test_names_of_folders_are_columns(tmp_path, suffix):
    folder = made(tmp_path / "t", suffix)
    file = open_table(folder)
    assert file.columns == ["n", "y", "shop", "day"]
    assert in_order(of_file(folder)) == WANTED
    for at_once in (1, 3, 100):
        assert in_order(of_stream(folder, at_once)) == WANTED
    only = next(file.batches(["day"], 100))
    assert only.to_dict(as_series=False) == {"day": [of_file(folder)["day"][0]] * 2}


@pytest.mark.parametrize("suffix", WRITERS)
def test_one_part_has_the_columns_of_the_whole(tmp_path, suffix):
    folder = made(tmp_path / "t", suffix) / "shop=a"
    assert set(of_file(folder)["shop"]) == {"a"}
    day = folder / "day=2024-01-02"
    assert of_file(day)["day"] == of_stream(day)["day"] == ["2024-01-02"] * 2
    assert of_file(day)["shop"] == ["a", "a"]
    assert folder_columns(day / "part-1.csv", day) == {"shop": "a", "day": "2024-01-02"}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_column_of_the_file_goes_before_that_of_its_folder(tmp_path, suffix):
    place = tmp_path / "t" / "day=2024-01-01"
    place.mkdir(parents=True)
    WRITERS[suffix](place / f"a.{suffix}", {"n": [1, 2], "day": ["mon", "tue"]})
    for cells in (of_file(tmp_path / "t"), of_stream(tmp_path / "t", 1)):
        assert cells["day"] == ["mon", "tue"]


def test_parts_without_the_folders_of_others_are_named(tmp_path):
    folder = made(tmp_path / "t", "csv")
    (folder / "z.csv").write_text("n,y\n1,no\n")
    with refused(ErrorKind.MISSING_COLUMN, column="shop", says="z.csv"):
        open_table(folder)


def test_folders_far_away_are_columns():
    MemoryFileSystem.store.clear()
    system = MemoryFileSystem()
    for k, name in enumerate(FOLDERS[:2]):
        system.pipe(f"/bucket/t/{name}/{k}.csv", f"n,y\n{k},no\n".encode())
    assert of_file(path_of("memory://bucket/t"))["day"] == ["2024-01-01", "2024-01-02"]
    assert of_stream(path_of("memory://bucket/t"))["day"] == ["2024-01-01", "2024-01-02"]
    assert of_file(path_of("memory://bucket/t/shop=a"))["shop"] == ["a", "a"]
    MemoryFileSystem.store.clear()


@pytest.mark.parametrize("suffix", WRITERS)
def test_rows_on_disk_have_numbers_of_folders(tmp_path, suffix):
    for year in (2023, 2024):
        place = tmp_path / "t" / f"year={year}"
        place.mkdir(parents=True)
        WRITERS[suffix](place / f"a.{suffix}", {"n": [1.0, 2.0], "y": [0, 1]})
    with from_table(tmp_path / "t", target="y") as rows:
        assert rows.feature_names == ("n", "year")
        table = rows.source.take(slice(None))
        assert table.tolist() == [[1, 2023], [2, 2023], [1, 2024], [2, 2024]]
    with from_table(tmp_path / "t", target="year", columns=["n"]) as rows:
        assert set(np.unique(rows.y).tolist()) <= {2023, 2024, "2023", "2024"}
    (tmp_path / "t" / "year=2024").rename(tmp_path / "t" / "year=soon")
    with refused(ErrorKind.CELL, column="year"):
        from_table(tmp_path / "t", target="y")
    with from_table(tmp_path / "t", target="y", columns=["n"]) as rows:
        assert rows.shape == (4, 1)


def test_a_fit_learns_from_the_days_of_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
    noise = np.random.default_rng(0)
    for k in range(8):
        place = tmp_path / "t" / f"shop={'ab'[k % 2]}" / f"day=2024-01-{k + 1:02}"
        place.mkdir(parents=True)
        n_rare = 3 * (k % 2)
        cells = {"n": noise.normal(size=20), "y": ["yes"] * n_rare + ["no"] * (20 - n_rare)}
        WRITERS["parquet"](place / "0.parquet", cells)
    model, out = tmp_path / "m.rareclass", tmp_path / "s.csv"
    run("fit", tmp_path / "t", "-t", "y", "--time", "day", "--out", model, *QUICK)
    run("score", model, tmp_path / "t" / "shop=b", "--id", "day", "--out", out)
    run("stream", tmp_path / "t", "-t", "y", "--checkpoint", tmp_path / "c")
    assert pl.read_csv(out)["day"].n_unique() == 4


def lines_of(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_json_lines_have_the_keys_of_their_first_rows(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(lines_of({"a": 1}, {"a": 2, "b": "x"}, {"b": "y", "c": True}))
    cells = {"a": ["1", "2", None], "b": [None, "x", "y"], "c": [None, None, "true"]}
    assert of_file(path) == cells
    for at_once in (1, 2, 9):
        assert of_stream(path, at_once) == cells


def test_a_fit_takes_json_lines_whose_first_row_lacks_the_target(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"n": k * k % 17} | ({"y": k % 5 == 0} if k else {}) for k in range(60)]
    path.write_text(lines_of(*rows))
    file = open_table(path)
    assert len(read_training_table(plan_reading(file, "y")).labels) == 59


@pytest.mark.parametrize(
    "names", [["a", "b", "a"], ["é", "é", "b"], ["b", "c d", "c d"], [1, "1", "b"]]
)
def test_two_columns_of_one_name_are_told(tmp_path, names):
    """A file's later ones get a number, as pandas reads it; a data frame and JSON are refused."""
    words = [str(name) for name in names]
    (twice,) = {name for name in words if words.count(name) > 1}
    places = ", ".join(str(k) for k, name in enumerate(words, 1) if name == twice)
    table = pa.Table.from_arrays([pa.array([1.5, k, 3.0]) for k in range(3)], words)
    for frame in (pd.DataFrame([[1, 2, 3]] * 3, columns=names), table):
        for read in (open_rows, read_table):
            with refused(ErrorKind.COLUMN_NAMES, column=twice, says=f"{twice!r}: {places}"):
                read(frame)
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, [words, *3 * [["1", "2", "3"]]])))
    with pytest.warns(TableWarning, match="columns of one name"):
        columns = open_table(tmp_path / "t.csv").columns
    assert columns == [*pd.read_csv(tmp_path / "t.csv").columns]
    line = "{" + ", ".join(f"{json.dumps(name)} : {k}" for k, name in enumerate(words)) + "}"
    (tmp_path / "t.jsonl").write_text("{}\n" + line)
    source = open_source(tmp_path / "t.jsonl", columns=[*dict.fromkeys(words)])
    (bad,) = source.read(9).rejected
    source.close()
    assert (bad.line, bad.reason) == (2, f"two values of {twice!r}")
    with refused(ErrorKind.DAMAGED_FILE, says=bad.reason):
        of_file(tmp_path / "t.jsonl")
    with pytest.raises(RefusedError) as caught:
        rows_of_json(f"[{line}]".encode(), [], 9)
    assert caught.value.faults[0].column == twice


def sqlite_of(cells, folder):
    path = folder / "t.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE t (x TEXT, n INTEGER)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(c, k) for k, c in enumerate(cells)])
        base.commit()
    return Query(DatabaseAddress(f"sqlite:///{path}"), "SELECT * FROM t")


@pytest.mark.parametrize(
    ("n_rows", "kind"),
    [(0, ErrorKind.TOO_FEW_ROWS), (1, ErrorKind.TOO_FEW_ROWS), (3, ErrorKind.MISSING_COLUMN)],
)
def test_a_table_with_nothing_to_learn_from_is_refused_alike(tmp_path, n_rows, kind):
    """A header alone, one row, or one value, from files, a query and frames of every make."""
    cells = ["same"] * n_rows
    for write in (*FILES.values(), sqlite_of):
        with refused(kind):
            column_of_file(cells, write, tmp_path)
    typed = pa.table({"x": pa.array(cells, pa.string())})
    frames = [pl.DataFrame(typed), typed.to_pandas(), typed.to_pandas(types_mapper=pd.ArrowDtype)]
    for frame in (*(make(cells) for make in FRAMES.values()), typed, *frames):
        with refused(kind):
            read_table(frame)


@pytest.mark.parametrize("cells", [["007", "8", "0123"], ["01", "02", None]])
def test_codes_are_noted_where_nothing_says_that_they_are_words(tmp_path, cells):
    """A CSV; JSON lines, Parquet, a query and data frames say so by their types."""
    for name, write in (FILES | {"SQLite": sqlite_of}).items():
        with pytest.warns(TableWarning, match="begins") if name == "CSV" else nullcontext() as told:
            assert column_of_file(cells * 20, write, tmp_path).kind == "category"
        if told is not None:
            assert [finding_of(each.message).kind for each in told] == [FindingKind.CODES]
    for make in FRAMES.values():
        assert read_table(make(cells * 20)).columns[0].kind == "category"


def test_a_column_of_a_query_without_a_name_is_called_by_its_place(tmp_path):
    query = sqlite_of(["a"], tmp_path)
    table = open_table(Query(query.address, 'SELECT n AS " n ", x AS "" FROM t'))
    assert table.columns == ["n", "column_2"]
    assert next(table.batches(["column_2"])).columns == ["column_2"]
