"""Rows of queries and of tables that are worked out while they are read: those in memory."""

from functools import partial

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import in_new_process
from database_servers import PASSWORD, duckdb_file, sqlite_file
from draws import draws
from faults import refused
from rareclass import RankRC
from rareclass.errors import ErrorKind, InputError
from rareclass.rows import from_table, readers

pytestmark = pytest.mark.sampled(0)

RNG = np.random.default_rng(3)
TABLE = pl.DataFrame(
    {
        "a": RNG.normal(size=500),
        "b": RNG.normal(size=500).astype(np.float32),
        "c": np.arange(500, dtype=np.int32) % 7,
        "w": 1.0 + np.arange(500) % 3,
        "y": np.where(np.arange(500) % 25 == 3, "rare", "rest"),
    }
)
ARROW = TABLE.to_arrow()
DATABASES = ("postgresql", "sqlite", "duckdb")
SHOPS = []


def relation():
    """A relation of a connection of its own: one may have one open result."""
    SHOPS.append(duckdb.connect())
    return SHOPS[-1].from_arrow(ARROW)


LAZY = {
    "polars": TABLE.lazy,
    "narwhals": lambda: nw.from_native(TABLE.lazy()),
    "relation": relation,
    "reader": lambda: pa.RecordBatchReader.from_stream(ARROW),
}


def database(kind, request, tmp_path_factory):
    if kind == "postgresql":
        server = request.getfixturevalue("postgresql")
        server.put("cases", ARROW)
        return server.uri
    make = sqlite_file if kind == "sqlite" else duckdb_file
    return make(tmp_path_factory.mktemp("db") / "cases.db", "cases", ARROW)


@pytest.fixture(scope="module", params=DATABASES)
def uri(request, tmp_path_factory):
    return database(request.param, request, tmp_path_factory)


@pytest.fixture(scope="module", params=[*LAZY, *DATABASES])
def read(request, tmp_path_factory):
    if request.param in DATABASES:
        where = database(request.param, request, tmp_path_factory)
        yield partial(from_table, where, query="SELECT * FROM cases")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "_BATCH_ROWS", 64)
        yield lambda *to, **how: from_table(LAZY[request.param](), *to, **how)


def test_rows_are_those_in_memory(read):
    with read("y", weight="w") as rows:
        assert rows.feature_names == ("a", "b", "c")
        assert rows.y.tolist() == TABLE["y"].to_list()
        np.testing.assert_array_equal(rows.sample_weight, TABLE["w"].to_numpy())
        features = TABLE.select("a", "b", "c").to_numpy().astype(rows.source.dtype)
        np.testing.assert_array_equal(rows.source.take(slice(None)), features)


def test_columns_in_the_order_asked_for(read):
    with read(columns=["c", "a"], dtype="float32") as rows:
        assert (rows.y, rows.source.dtype, rows.shape) == (None, np.float32, (500, 2))
        assert rows.feature_names == ("c", "a")
        assert rows.source.take(slice(None))[:, 0].max() == 6


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"target": "z"}, r"target=: there is no column 'z'.*a, b, c, w, y"),
        ({"columns": ["a", "z"]}, "columns=: there is no column 'z'"),
        ({}, "column 'y' holds .*string, not numbers"),
    ],
)
def test_columns_that_cannot_be_taken_are_named(read, how, said):
    with pytest.raises(InputError, match=said) as caught:
        read(**how)
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a, NULL AS b FROM cases", "column 'b'"),
        ("SELECT CASE WHEN c = 3 THEN NULL ELSE a END AS a FROM cases", "'a' is empty at row"),
        ("SELECT a FROM cases WHERE 1 = 0", "has no rows"),
    ],
)
def test_cells_of_a_query_that_cannot_be_taken_are_named(uri, sql, said):
    with pytest.raises(InputError, match=said) as caught:
        from_table(uri, query=sql)
    assert PASSWORD not in str(caught.value)


def test_cells_and_rows_that_are_not_there():
    with pytest.raises(InputError, match="'a' is empty at row 3"):
        from_table(pl.LazyFrame({"a": [1.0, 2.0, None]}))
    with pytest.raises(InputError, match="the LazyFrame has no rows"):
        from_table(TABLE.lazy().filter(pl.col("a") > 1e9), "y")
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        from_table(TABLE.lazy().select(pl.col("nowhere")))


@pytest.mark.parametrize("given", [TABLE, [[1.0]]])
def test_what_is_no_lazy_table(given):
    with pytest.raises(InputError, match="not a table that can be read in parts"):
        from_table(given)


def test_what_is_no_connection():
    with refused(ErrorKind.SETTING, says="postgresql://"):
        from_table(object(), query="SELECT 1")


def test_a_model_learns_from_a_query_and_from_steps_not_yet_taken(uri):
    steps = TABLE.lazy().with_columns(d=pl.col("a") * pl.col("c")).filter(pl.col("b") > 0)
    query = "SELECT a, b, c, y = 'rare' AS y FROM cases"
    for table, names, rows in (
        (TABLE, ("a", "b", "c"), from_table(uri, "y", query=query)),
        (steps.collect(), ("a", "c", "d"), from_table(steps, "y", columns=["a", "c", "d"])),
    ):
        with rows:
            scores = RankRC(lam=1.0).fit_rows(rows).score_samples(rows)
        X = table.select(names).to_numpy().astype(np.float64)
        alike = RankRC(lam=1.0).fit(X, table["y"].to_numpy() == "rare")
        np.testing.assert_allclose(np.abs(scores), np.abs(alike.score_samples(X)), rtol=1e-10)


def test_an_open_connection_stays_open(postgresql, tmp_path):
    from adbc_driver_sqlite import dbapi

    postgresql.put("cases", ARROW)
    file = sqlite_file(tmp_path / "cases.db", "cases", ARROW).removeprefix("sqlite:///")
    shop = duckdb.connect()
    shop.register("cases", ARROW)
    with postgresql.connect() as one, dbapi.connect(file) as other, shop:
        for connection in (one, other, shop):
            for _ in range(2):
                rows = from_table(connection, "y", query="SELECT * FROM cases")
                assert rows.shape == (500, 4)
                rows.close()
            with pytest.raises(InputError, match=r"The database refuses the query:.*nowhere"):
                from_table(connection, query="SELECT * FROM nowhere")
            if connection is one:
                connection.rollback()
            connection.close()
            with refused(ErrorKind.CONNECTION):
                from_table(connection, "y", query="SELECT * FROM cases")


NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), max_codepoint=0x2FFF), min_size=1, max_size=12
)


@draws(15)
@given(names=st.lists(NAMES, min_size=2, max_size=4, unique_by=lambda name: name.casefold()))
def test_any_name_of_a_column_is_itself(names):
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    columns = ", ".join(f"{k} AS {name}" for k, name in enumerate(quoted))
    with duckdb.connect() as shop:
        rows = from_table(shop, names[0], query=f"SELECT {columns}")
    assert rows.feature_names == tuple(names[1:])
    assert rows.source.take(slice(None)).tolist() == [list(range(1, len(names)))]
    assert rows.y.tolist() == [0]
    rows.close()


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_rows():
    code = """
import resource, sys
import polars as pl
from rareclass.rows import from_table
n = int(sys.argv[1])
frame = pl.LazyFrame({"k": [0]}).select(pl.int_range(0, n).alias("k"))
frame = frame.with_columns(*((pl.col("k") * i).cast(pl.Float64).alias(f"x{i}") for i in range(8)))
rows = from_table(frame)
assert rows.shape == (n, 9)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""
    small, large = (int(in_new_process(code, n).stdout) for n in (500_000, 6_000_000))
    assert large - small < 150  # MiB: the rows are 432 MB
