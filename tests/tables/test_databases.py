"""Tables that a database gives: the same cells as a file, its own words, no passwords."""

import datetime
import os
import signal
import sqlite3
import threading
from decimal import Decimal
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from database_servers import PASSWORD, duckdb_file, sqlite_file
from draws import draws
from rareclass.encoding.training_table import plan_reading, read_training_table
from rareclass.errors import InputError
from rareclass.findings import TableWarning
from rareclass.tables.databases import DatabaseAddress, Query, RunningQuery
from rareclass.tables.table_file import open_table

ROWS = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "amount": pa.array([None if k % 7 == 0 else k / 4 for k in range(300)], pa.float64()),
        "name": pa.array([None if k % 11 == 0 else f"o'{k} “x”" for k in range(300)]),
    }
)
KINDS = ("postgresql", "sqlite", "duckdb")


@pytest.fixture(scope="module", params=KINDS)
def address(request, tmp_path_factory):
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        server.put("the rows", ROWS)
        return DatabaseAddress(server.uri)
    make = sqlite_file if request.param == "sqlite" else duckdb_file
    return DatabaseAddress(make(tmp_path_factory.mktemp("db") / "a b.db", "the rows", ROWS))


def table_of(address, sql, **how):
    return open_table(Query(address, sql), **how)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("one_pass", [False, True])
def test_cells_are_those_of_a_file(address, one_pass):
    table = table_of(address, 'SELECT * FROM "the rows" ORDER BY id', one_pass=one_pass)
    assert table.columns == ROWS.column_names
    frames = list(table.batches(batch_rows=128))
    assert max(frame.height for frame in frames) <= 128
    assert pl.concat(frames).equals(pl.DataFrame(pl.from_arrow(ROWS)))
    assert pl.concat(table.batches(["name", "id"])).columns == ["name", "id"]
    assert table.estimate_rows() == 300


def test_rows_that_are_kept_are_read_in_passes_that_overlap(address):
    table = table_of(address, 'SELECT * FROM "the rows" ORDER BY id DESC')
    one, other = (table.batches(["id"], 50) for _ in range(2))
    for first, second in zip(one, other, strict=True):
        assert first.equals(second)
    assert table.n_bytes > 300 * 16


def test_first_rows_are_looked_at_without_another_run(address, monkeypatch):
    runs = []
    begin = RunningQuery.__init__
    monkeypatch.setattr(
        RunningQuery, "__init__", lambda self, *given: (runs.append(1), begin(self, *given))[1]
    )
    table = table_of(address, 'SELECT * FROM "the rows"', one_pass=True)
    head = table.batches(batch_rows=1)
    assert next(head).height == 1
    head.close()
    assert sum(frame.height for frame in table.batches()) == 300
    assert len(runs) == 1


def test_a_query_may_end_as_in_a_shell_and_without_rows(address):
    for end in (";", " -- all of them"):
        assert table_of(address, f'SELECT id FROM "the rows"{end}').estimate_rows() == 300
    table = table_of(address, 'SELECT id, name FROM "the rows" WHERE id < 0')
    assert (table.columns, table.estimate_rows(), list(table.batches())) == (["id", "name"], 0, [])


def test_columns_of_one_name_are_told_apart(address):
    with pytest.warns(TableWarning, match=r"'id\.1' \(column 2\)"):
        table = table_of(address, 'SELECT id, name AS id FROM "the rows" ORDER BY 1')
    assert table.columns[0] == "id"
    assert next(table.batches())[table.columns[1]].dtype == pl.String


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEC * FROM nowhere", "syntax error"),
        ('SELECT nope FROM "the rows" AS r', "nope"),
        ('DELETE FROM "the rows"', "read-?only|attempt to write|Cannot execute"),
        ("CREATE TABLE nowhere (a int)", "read-?only|attempt to write|Cannot execute"),
    ],
)
def test_a_query_that_is_refused(address, sql, said):
    with pytest.raises(InputError, match=said) as caught:
        list(table_of(address, sql).batches())
    assert str(address) in str(caught.value)
    _no_password_in(caught.value)
    assert table_of(address, 'SELECT * FROM "the rows"').estimate_rows() == 300


def test_types_of_postgresql(postgresql):
    sql = """
        SELECT 1::int2 AS i, 2.5::float4 AS f, 12.25::numeric(9, 2) AS n, 7.5::numeric AS u,
               '12345678901234567890'::numeric(20) AS long, true AS b, 'x'::char(3) AS c,
               DATE '2026-01-02' AS d, TIMESTAMPTZ '2026-01-02 03:00+01' AS t,
               TIME '12:30' AS h, '{"a": 1}'::jsonb AS j, ARRAY[1, 2] AS a,
               '01234567-89ab-cdef-0123-456789abcdef'::uuid AS key
        UNION ALL SELECT NULL, NULL, NULL, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
               NULL
    """
    frame = pl.concat(table_of(DatabaseAddress(postgresql.uri), sql).batches())
    assert frame.row(0) == (
        1, 2.5, 12.25, 7.5, 12345678901234567890.0, True, "x  ",
        datetime.date(2026, 1, 2),
        datetime.datetime(2026, 1, 2, 2, tzinfo=datetime.UTC),
        datetime.time(12, 30), '{"a": 1}', [1, 2], "01234567-89ab-cdef-0123-456789abcdef",
    )  # fmt: skip
    assert frame.drop("u").row(1) == (None,) * 12
    assert frame["u"].is_nan().to_list() == [False, True]


def test_long_whole_numbers_stay_exact_and_uuids_are_text_wherever_nulls_are(postgresql):
    sql = """SELECT '12345678901234567890'::numeric(20) AS long, '5'::numeric(5) AS short,
             CASE WHEN g % 3 = 0 THEN NULL ELSE md5(g::text)::uuid END AS key,
             CASE WHEN g % 3 = 0 THEN NULL ELSE (md5(g::text)::uuid)::text END AS text
             FROM generate_series(1, 50) g"""
    frame = pl.concat(table_of(DatabaseAddress(postgresql.uri), sql).batches())
    assert frame["key"].equals(frame["text"], null_equal=True)
    assert frame["key"].null_count() == 16
    assert frame.row(0)[:2] == ("12345678901234567890", 5.0)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [("SELECT interval '1 day' AS \"how long\"", "interval"), ("SELECT '::1'::inet AS x", "inet")],
)
def test_a_type_without_cells_is_named_and_not_used(postgresql, sql, kind):
    file = table_of(DatabaseAddress(postgresql.uri), f"{sql}, 1 AS a, 0 AS y UNION ALL {sql}, 2, 1")
    plan = read_training_table(plan_reading(file, "y"))
    assert [column.kind for column in plan.columns] == ["unusable", "number"]
    assert kind in plan.columns[0].why_dropped


def test_a_sum_of_duckdb_is_a_number(tmp_path):
    address = DatabaseAddress(duckdb_file(tmp_path / "d", "t", ROWS))
    table = table_of(address, "SELECT sum(id) AS s, 'a'::ENUM('a', 'b') AS e FROM t")
    assert next(table.batches()).row(0) == (Decimal(300 * 299 // 2), "a")


def test_a_column_of_sqlite_with_several_types_is_named(tmp_path):
    path = tmp_path / "mixed.db"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE t (a, b)")
        file.executemany("INSERT INTO t VALUES (?, ?)", ((k, k) for k in range(70_000)))
        file.execute("INSERT INTO t VALUES (1, 'word')")
    file.close()
    with pytest.raises(InputError, match=r"column 'b' holds cells of several types.*CAST\(\"b\""):
        table_of(DatabaseAddress(f"sqlite:///{path}"), "SELECT * FROM t").estimate_rows()


def test_rows_that_change_between_passes_are_noticed(tmp_path):
    path = tmp_path / "changing.db"
    address = DatabaseAddress(sqlite_file(path, "t", ROWS))
    table = table_of(address, "SELECT id FROM t", one_pass=True)
    assert sum(frame.height for frame in table.batches()) == 300
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM t WHERE id = 5")
    file.close()
    with pytest.raises(InputError, match="gave 300 rows and, run again, 299"):
        list(table.batches())


def test_an_address_that_is_none(tmp_path):
    text = tmp_path / "rows.csv"
    text.write_text("a,b\n1,2\n")
    for uri, said in [
        ("sqlite:///nofile.db", "nofile.db of sqlite:///nofile.db does not exist.*Three slashes"),
        (f"duckdb:///{tmp_path}", "is a folder"),
        (f"sqlite:///{text}", "is not a database of SQLite"),
        (f"duckdb:///{text}", "is not a database of DuckDB"),
        ("sqlite://here.db", "names no file.*sqlite:///file"),
        ("mysql://h/d", "not one of a database.*postgresql://"),
    ]:
        with pytest.raises(InputError, match=said):
            table_of(DatabaseAddress(uri), "SELECT 1")


def test_a_server_that_refuses_or_is_not_there(postgresql):
    base = f"127.0.0.1:{postgresql.port}"
    for where, said in [
        (f"postgresql://rare:{PASSWORD}x@{base}/postgres", "password authentication failed"),
        (f"postgresql://rare:{PASSWORD}@{base}/nowhere", '"nowhere" does not exist'),
        (f"postgresql://rare:{PASSWORD}@127.0.0.1:1/postgres", "Connection refused"),
        (f"postgresql://rare:{PASSWORD}@no-host.invalid/postgres", "no-host.invalid"),
        (f"postgresql://rare:{PASSWORD}@{base}x/postgres", "port"),
    ]:
        with pytest.raises(InputError, match=said) as caught:
            table_of(DatabaseAddress(where), "SELECT 1")
        assert "rare:***@" in str(caught.value)
        _no_password_in(caught.value)


def test_a_connection_lost_on_the_way(postgresql):
    sql = "SELECT g, repeat('x', 1000) AS x FROM generate_series(1, 300000) g"
    running = RunningQuery(Query(DatabaseAddress(postgresql.uri), sql))
    batches = running.batches()
    assert next(batches).num_rows > 0
    postgresql.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query LIKE 'COPY (SELECT g, repeat%'"
    )
    with pytest.raises(InputError, match=r"broke off after [\d,]+ rows") as caught:
        for _ in batches:
            pass
    _no_password_in(caught.value)
    assert running.is_closed


def test_rows_not_asked_for_end_the_query(postgresql):
    sql = "SELECT repeat('x', 1000) AS abandoned FROM generate_series(1, 100000) g"
    for _ in RunningQuery(Query(DatabaseAddress(postgresql.uri), sql)).batches():
        break
    assert not _running(postgresql, "abandoned")


def test_ctrl_c_cancels_the_query(postgresql):
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        table_of(DatabaseAddress(postgresql.uri), "SELECT pg_sleep(60) AS slept").estimate_rows()
    interrupt.join()
    assert not _running(postgresql, "slept")


def _running(server, words):
    return server.rows(
        "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND "
        f"query LIKE 'COPY%{words}%' AND pid <> pg_backend_pid()"
    )


@draws(30)
@given(
    st.text(min_size=1, max_size=12),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=4, max_size=20),
)
def test_a_password_is_in_nothing_that_is_said(user, password):
    written = quote(password, safe="")
    uri = f"postgresql://{quote(user, safe='')}:{written}@db.example:5432/shop?password={written}"
    address = DatabaseAddress(uri)
    said = [str(address), repr(address), str(Query(address, "SELECT 1"))]
    told = address.without_secrets(f"FATAL: cannot connect to {uri} with {password}!")
    rest = f"postgresql://{quote(user, safe='')}:***@db.example:5432/shop?password=***"
    assert said[0] == rest
    for text in (said[0], *said[1:2], told):
        assert written not in text.replace(rest, "")


@pytest.mark.parametrize("password", ["p@ss-word", "p/ss@word", "p#ss-word", "p?ss@word"])
def test_a_password_that_would_be_taken_apart_is_not_repeated(password):
    with pytest.raises(InputError, match="%40") as caught:
        DatabaseAddress(f"postgresql://me:{password}@host/db")
    assert password not in str(caught.value)
    assert "ss" not in str(caught.value).replace("password", "").replace("address", "").replace(
        "PGPASSWORD", ""
    ).replace("pgpass", "")


def _no_password_in(error):
    while error is not None:
        assert PASSWORD not in str(error)
        error = error.__cause__ or error.__context__
