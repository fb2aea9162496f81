"""Tables that are written whole or not at all: also by a process that is killed meanwhile."""

import os
import signal
import subprocess
import sys
import threading

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from database_servers import PASSWORD
from draws import draws, quick
from rareclass.errors import InputError
from rareclass.tables.databases.drivers import DatabaseAddress, Query
from rareclass.tables.databases.result_table import ResultTable, quoted
from rareclass.tables.table_file import open_table

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)

SCORES = pa.table(
    {
        "order": pa.array(["a", "b", None], pa.large_string()),
        "score": [0.5, 1.5, -2.0],
        "called_rare": [True, False, True],
        "level": pa.array(["low", "high", "low"]).dictionary_encode(),
        "row": pa.array([1, 2, 3], pa.uint32()),
    }
)


@pytest.fixture
def scores(tmp_path):
    pq.write_table(SCORES, tmp_path / "scores.parquet")
    return tmp_path / "scores.parquet"


@pytest.fixture(params=["postgresql", "sqlite", "duckdb"])
def address(request, tmp_path):
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        server.rows("DROP TABLE IF EXISTS scores")
        return DatabaseAddress(server.uri)
    return DatabaseAddress(f"{request.param}:///{tmp_path / 'out.db'}")


def rows_of(table):
    where = f"{quoted(table.schema)}." if table.schema else ""
    query = Query(table.address, f"SELECT * FROM {where}{quoted(table.table)}")
    return pl.concat(open_table(query).batches())


@pytest.mark.sampled(2)
def test_a_table_is_written_and_replaced_only_if_it_may(address, scores):
    table = ResultTable.named(address, "scores")
    table.check()
    table.put(scores)
    found = rows_of(table)
    assert found.columns == SCORES.column_names
    assert found["order"].to_list() == ["a", "b", None]
    assert found["score"].to_list() == [0.5, 1.5, -2.0]
    assert found["called_rare"].cast(pl.Boolean).to_list() == [True, False, True]
    assert found["level"].to_list() == ["low", "high", "low"]
    for write in (table.check, lambda: table.put(scores)):
        with pytest.raises(InputError, match=r"scores exists already in .*--overwrite"):
            write()
    pq.write_table(SCORES.slice(1, 1), scores)
    again = ResultTable.named(address, "scores", may_replace=True)
    again.check()
    again.put(scores)
    assert rows_of(table)["order"].to_list() == ["b"]


def test_a_fault_leaves_the_table_as_it_was(address, scores):
    table = ResultTable.named(address, "scores", may_replace=True)
    table.put(scores)
    wrong = pa.table({"score": [1.0], "list": [[1, 2]], "x": [{"a": 1}]})
    pq.write_table(wrong if address.kind != "DuckDB" else SCORES, scores)
    if address.kind == "DuckDB":
        scores.write_bytes(scores.read_bytes()[:-20] + b"\0" * 16 + b"PAR1")
    with pytest.raises((InputError, pa.ArrowException, OSError)):
        table.put(scores)
    assert rows_of(table)["order"].to_list() == ["a", "b", None]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_nothing_is_left_of_a_new_file(kind, tmp_path):
    address = DatabaseAddress(f"{kind}:///{tmp_path / 'new.db'}")
    table = ResultTable.named(address, "scores")
    table.check()
    (tmp_path / "scores.parquet").write_bytes(b"no Parquet")
    with pytest.raises((InputError, pa.ArrowException)):
        table.put(tmp_path / "scores.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["scores.parquet"]


def test_views_and_schemas(postgresql, scores):
    address = DatabaseAddress(postgresql.uri)
    postgresql.rows("DROP VIEW IF EXISTS seen")
    postgresql.rows("CREATE VIEW seen AS SELECT 1 AS a")
    with pytest.raises(InputError, match=r"the table seen of .* is a view"):
        ResultTable.named(address, "seen", may_replace=True).check()
    with pytest.raises(InputError, match=r"no schema 'nowhere'.*CREATE SCHEMA"):
        ResultTable.named(address, "nowhere.scores").check()
    postgresql.rows('CREATE SCHEMA IF NOT EXISTS "the risk"')
    table = ResultTable.named(address, '"the risk".scores', may_replace=True)
    table.put(scores)
    assert rows_of(table).height == 3


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ["a.b.c", "", ".", "a.", '"a', 'a"b', "x\0y"])
def test_what_is_no_name(name, tmp_path):
    with pytest.raises(InputError, match="--out-table"):
        ResultTable.named(DatabaseAddress(f"duckdb:///{tmp_path}/x"), name)
    with pytest.raises(InputError, match="SQLite has no schemas"):
        ResultTable.named(DatabaseAddress(f"sqlite:///{tmp_path}/x"), "a.b")
    with pytest.raises(InputError, match="64 bytes"):
        ResultTable.named(DatabaseAddress("postgresql://h/d"), "x" * 64)
    assert ResultTable.named(DatabaseAddress("postgresql://h/d"), "x" * 63).name == "x" * 63
    assert ResultTable.named(DatabaseAddress(f"sqlite:///{tmp_path}/x"), "x" * 64).name == "x" * 64


def test_a_wrong_password_is_not_repeated(postgresql):
    uri = postgresql.uri.replace(PASSWORD, PASSWORD + "x")
    with pytest.raises(InputError, match="password authentication failed") as caught:
        ResultTable.named(DatabaseAddress(uri), "scores").check()
    assert PASSWORD not in str(caught.value)


# Names as PostgreSQL takes them, of 63 bytes at most.
NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), max_codepoint=0xFFF), min_size=1, max_size=20
)


@pytest.mark.parametrize(
    "kind", ["postgresql", "sqlite", pytest.param("duckdb", marks=pytest.mark.thorough)]
)
@draws(4)
@given(table=NAMES, columns=st.lists(NAMES, min_size=1, max_size=3, unique_by=str.casefold))
def test_any_name_is_itself(kind, table, columns, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    uri = f"{kind}:///{folder / 'x.db'}"
    if kind == "postgresql":
        uri = request.getfixturevalue("postgresql").uri
    pq.write_table(pa.table({name: [k] for k, name in enumerate(columns)}), folder / "x.parquet")
    result = ResultTable.named(DatabaseAddress(uri), quoted(table), may_replace=True)
    assert (result.schema, result.table) == (None, table)
    result.put(folder / "x.parquet")
    found = rows_of(result)
    assert (found.columns, found.row(0)) == (columns, tuple(range(len(columns))))
    with pytest.raises(InputError, match="exists already"):
        ResultTable.named(DatabaseAddress(uri), quoted(table)).check()


_WRITE = """
import sys, time
from pathlib import Path
from rareclass.tables.databases import result_table
from rareclass.tables.databases.drivers import DatabaseAddress
import pyarrow as pa
whole = result_table._plain_rows
def half(file, address):
    rows = whole(file, address)
    def batches():
        for number, batch in enumerate(rows):
            if number == 3:
                print("half", flush=True)
                time.sleep(60)
            yield batch
    return pa.RecordBatchReader.from_batches(rows.schema, batches())
result_table._plain_rows = half
table = result_table.ResultTable.named(DatabaseAddress(sys.argv[1]), "scores", True)
table.put(Path(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", quick(1, ["postgresql", "sqlite"]))
@pytest.mark.parametrize("was_there", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_a_process_that_is_killed_leaves_what_was_there(kind, was_there, request, scores, tmp_path):
    uri = f"sqlite:///{tmp_path / 'out.db'}"
    if kind == "postgresql":
        server = request.getfixturevalue("postgresql")
        server.rows("DROP TABLE IF EXISTS scores")
        uri = server.uri
    table = ResultTable.named(DatabaseAddress(uri), "scores", may_replace=True)
    other = ResultTable.named(DatabaseAddress(uri), "other", may_replace=True)
    (table if was_there else other).put(scores)
    pq.write_table(pa.table({"score": pa.array(range(300_000), pa.int64())}), scores)
    with subprocess.Popen(
        [sys.executable, "-c", _WRITE, uri, str(scores)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.kill()
    names = "SELECT relname::text FROM pg_class WHERE relname LIKE 'rareclass %'"
    if kind == "sqlite":
        names = "SELECT name FROM sqlite_master WHERE name LIKE 'rareclass %'"
    left = open_table(Query(DatabaseAddress(uri), names))
    for _ in range(100):  # PostgreSQL takes a moment to notice
        if not left.estimate_rows():
            break
        left = open_table(Query(DatabaseAddress(uri), names))
    assert not left.estimate_rows()
    if was_there:
        assert rows_of(table).height == 3
    else:
        table = ResultTable.named(DatabaseAddress(uri), "scores")
        table.check()
    table.put(scores)
    assert rows_of(ResultTable.named(DatabaseAddress(uri), "scores")).height == 300_000


def test_ctrl_c_leaves_what_was_there(postgresql, scores):
    table = ResultTable.named(DatabaseAddress(postgresql.uri), "scores", may_replace=True)
    table.put(scores)
    pq.write_table(pa.table({"score": pa.array(range(1_000_000), pa.int64())}), scores)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        _put_for_ever(table, scores)
    assert rows_of(table).height in (3, 1_000_000)


def _put_for_ever(table, scores):
    while True:
        table.put(scores)
