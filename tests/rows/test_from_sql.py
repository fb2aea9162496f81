"""Rows of a query: those of the same table in Parquet, from an address or an open connection."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from database_servers import PASSWORD, duckdb_file, sqlite_file
from draws import draws
from rareclass import RankRC
from rareclass.errors import InputError
from rareclass.rows import from_parquet, from_sql

RNG = np.random.default_rng(3)
TABLE = pa.table(
    {
        "a": RNG.normal(size=500),
        "b": RNG.normal(size=500).astype(np.float32),
        "c": pa.array(np.arange(500) % 7, pa.int32()),
        "w": pa.array(1.0 + np.arange(500) % 3),
        "y": np.where(np.arange(500) % 25 == 3, "rare", "rest"),
    }
)


@pytest.fixture(scope="module", params=["postgresql", "sqlite", "duckdb"])
def uri(request, tmp_path_factory):
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        server.put("cases", TABLE)
        return server.uri
    make = sqlite_file if request.param == "sqlite" else duckdb_file
    return make(tmp_path_factory.mktemp("db") / "cases.db", "cases", TABLE)


def test_rows_are_those_of_parquet(uri, tmp_path):
    pq.write_table(TABLE, tmp_path / "cases.parquet")
    with (
        from_parquet(tmp_path / "cases.parquet", "y", weight="w") as file,
        from_sql(uri, "SELECT * FROM cases", "y", weight="w") as rows,
    ):
        assert rows.feature_names == file.feature_names == ("a", "b", "c")
        assert rows.y.tolist() == file.y.tolist()
        np.testing.assert_array_equal(rows.sample_weight, file.sample_weight)
        np.testing.assert_array_equal(
            rows.source.take(slice(None)), file.source.take(slice(None)).astype(rows.source.dtype)
        )


def test_a_model_learns_from_a_query(uri):
    with from_sql(uri, "SELECT a, b, c, y = 'rare' AS y FROM cases", "y") as rows:
        model = RankRC(lam=1.0).fit_rows(rows)
        scores = model.score_samples(rows)
    X = np.column_stack([TABLE[name].to_numpy() for name in "abc"]).astype(np.float64)
    alike = RankRC(lam=1.0).fit(X, TABLE["y"].to_numpy(zero_copy_only=False) == "rare")
    np.testing.assert_allclose(scores, alike.score_samples(X), rtol=1e-10)


def test_rows_to_be_scored_in_float32(uri):
    rows = from_sql(uri, "SELECT a, c FROM cases ORDER BY a", columns=["c", "a"], dtype="float32")
    assert (rows.y, rows.source.dtype, rows.shape) == (None, np.float32, (500, 2))
    rows.close()


def test_an_open_connection_stays_open(postgresql, tmp_path):
    import duckdb
    from adbc_driver_sqlite import dbapi

    postgresql.put("cases", TABLE)
    file = sqlite_file(tmp_path / "cases.db", "cases", TABLE).removeprefix("sqlite:///")
    shop = duckdb.connect()
    shop.register("cases", TABLE)
    with postgresql.connect() as one, dbapi.connect(file) as other, shop:
        for connection in (one, other, shop):
            for _ in range(2):
                rows = from_sql(connection, "SELECT * FROM cases", "y")
                assert rows.shape == (500, 4)
                rows.close()
            with pytest.raises(InputError, match=r"The database refuses the query:.*nowhere"):
                from_sql(connection, "SELECT * FROM nowhere")
            if connection is one:
                connection.rollback()


def test_what_is_no_connection():
    with pytest.raises(InputError, match=r"A object is no connection.*postgresql://"):
        from_sql(object(), "SELECT 1")


@pytest.mark.parametrize(
    ("sql", "how", "said"),
    [
        ("SELECT * FROM cases", {"target": "z"}, r"target= there is no column 'z'.*a, b, c, w, y"),
        ("SELECT a, y FROM cases", {}, r"column 'y' holds string, not numbers"),
        ("SELECT a, NULL AS b FROM cases", {"columns": ["a", "b"]}, "column 'b'"),
        ("SELECT CASE WHEN c = 3 THEN NULL ELSE a END AS a FROM cases", {}, "'a' is empty at row"),
        ("SELECT a FROM cases WHERE 1 = 0", {}, "has columns but no rows"),
    ],
)
def test_what_cannot_be_taken_is_named(uri, sql, how, said):
    with pytest.raises(InputError, match=said) as caught:
        from_sql(uri, sql, **how)
    assert PASSWORD not in str(caught.value)


NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), max_codepoint=0x2FFF), min_size=1, max_size=12
)


@draws(15)
@given(names=st.lists(NAMES, min_size=2, max_size=4, unique_by=lambda name: name.casefold()))
def test_any_name_of_a_column_is_itself(names):
    import duckdb

    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    columns = ", ".join(f"{k} AS {name}" for k, name in enumerate(quoted))
    with duckdb.connect() as shop:
        rows = from_sql(shop, f"SELECT {columns}", names[0])
    assert rows.feature_names == tuple(names[1:])
    assert rows.source.take(slice(None)).tolist() == [list(range(1, len(names)))]
    assert rows.y.tolist() == [0]
    rows.close()
