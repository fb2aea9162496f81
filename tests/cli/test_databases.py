"""The verbs on databases: the same answers as on files, and no password anywhere."""

import json
import zipfile

import numpy as np
import polars as pl
import pytest

from cli.conftest import message, output_of
from database_servers import PASSWORD, duckdb_file, sqlite_file
from faults import refusal
from rareclass import load
from rareclass.errors import ErrorKind
from rareclass.tables.databases.drivers import DatabaseAddress, Query
from rareclass.tables.table_file import open_table

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)

QUICK = ("--members", "logistic regression", "--folds", "2")
ALL = ("--query", "SELECT * FROM payments")


@pytest.fixture
def postgresql_payments(postgresql, table):
    postgresql.put("payments", table.to_arrow())
    return postgresql.uri


def test_a_query_is_learned_from_as_a_file_is(rareclass, postgresql_payments, table, tmp_path):
    table.write_parquet(tmp_path / "train.parquet")
    common = ("-t", "fraud", *QUICK)
    one = rareclass("fit", tmp_path / "train.parquet", *common, "-o", tmp_path / "file.rareclass")
    other = rareclass("fit", postgresql_payments, *ALL, *common, "-o", tmp_path / "query.rareclass")
    assert (one.exit_code, other.exit_code) == (0, 0), other.output
    of_file, of_query = (done.stdout.splitlines()[0].partition(": ")[2] for done in (one, other))
    assert of_file.startswith("240 rows")
    assert of_query == of_file
    for model, data, query in [
        ("file", tmp_path / "train.parquet", ()),
        ("query", postgresql_payments, ALL),
    ]:
        scored = rareclass(
            "score", tmp_path / f"{model}.rareclass", data, *query, "--id", "order",
            "-o", tmp_path / f"{model}.csv", "--json", tmp_path / f"{model}.json",
        )  # fmt: skip
        assert scored.exit_code == 0, scored.output
    assert pl.read_csv(tmp_path / "file.csv").equals(pl.read_csv(tmp_path / "query.csv"))
    assert json.loads((tmp_path / "query.json").read_text())["n_rows"] == 240
    assert PASSWORD not in other.output + scored.output
    _no_password_in_files_of(tmp_path)


@pytest.mark.thorough
def test_no_password_in_what_is_kept(rareclass, postgresql_payments, tmp_path):
    asked, model = (postgresql_payments, *ALL), tmp_path / "m.rareclass"
    page = ("--report", tmp_path / "fit.html")
    runs = [
        ("fit", *asked, "-t", "fraud", *QUICK, "-o", model, "--json", tmp_path / "f.json", *page),
        ("evaluate", model, *asked, "--json", tmp_path / "e.json"),
        ("threshold", model, *asked, "--min-recall", "0.5"),
    ]
    runs += [("report", model, *asked, "-o", tmp_path / "r.html")]
    for words in runs:
        done = rareclass(*words)
        assert done.exit_code == 0, done.output
        assert PASSWORD not in done.output
    _no_password_in_files_of(tmp_path)


def _no_password_in_files_of(folder):
    for path in folder.iterdir():
        parts = [path.read_bytes()]
        if path.suffix == ".rareclass":
            with zipfile.ZipFile(path) as archive:
                parts += [archive.read(name) for name in archive.namelist()]
        assert not any(PASSWORD.encode() in part for part in parts), path


@pytest.mark.thorough
def test_large_tables_stay_on_disk(rareclass, postgresql_payments, tmp_path):
    output_of(rareclass(
        "fit", postgresql_payments, "--query",
        "SELECT p.*, g AS k FROM payments p, generate_series(1, 60) g", "--drop", "order",
        "-t", "fraud", "--method", "rankrc", "--lam", "1", "--memory", "100MiB",
        "--holdout", "0", "-o", tmp_path / "m.rareclass",
    ))  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("make", [sqlite_file, duckdb_file])
def test_files_of_databases(rareclass, make, table, tmp_path):
    uri = make(tmp_path / "shop.db", "payments", table.to_arrow())
    output_of(rareclass("fit", uri, *ALL, "-t", "fraud", *QUICK, "-o", tmp_path / "m.rareclass"))
    judged = rareclass("evaluate", tmp_path / "m.rareclass", uri, *ALL)
    assert judged.stdout.startswith("the query: 240 rows, 24 of them rare"), judged.output


@pytest.mark.parametrize(
    ("words", "kind", "facts"),
    [
        (("train.parquet", "--query", "SELECT 1"), ErrorKind.SETTING, ("--query", "train.parquet")),
        (("mysql://u:hush@h/d", *ALL), ErrorKind.SETTING, ("--query", "mysql://u@h/d")),
        (("mysql://u:hush@h/d",), ErrorKind.UNSUPPORTED, ("mysql://u@h/d", "s3://")),
        (("postgresql:/u:hush@h/d", *ALL), ErrorKind.SETTING, ("@", "%40", "PGPASSWORD")),
        (("sqlite:///no.db",), ErrorKind.SETTING, ("--query", "sqlite:///no.db")),
        (("sqlite:///no.db", *ALL), ErrorKind.MISSING_FILE, ("no.db", "sqlite:///no.db")),
        (
            ("{uri}", *ALL, "--separator", ";"),
            ErrorKind.SETTING,
            ("--separator", "postgresql://rare:***@"),
        ),
        (("{uri}", "--query", "SELECT * FROM nowhere"), ErrorKind.CONNECTION, ('"nowhere"',)),
        (
            ("{uri}", "--query", "SELECT amount FROM payments"),
            ErrorKind.MISSING_COLUMN,
            ("--target", "'fraud'", "amount"),
        ),
        (("{uri}x", *ALL), ErrorKind.CONNECTION, ('"postgresx"',)),
    ],
)
def test_faults(rareclass, postgresql_payments, tmp_path, words, kind, facts):
    words = [word.format(uri=postgresql_payments) for word in words]
    done = rareclass("fit", *words, "-t", "fraud", "-o", tmp_path / "m.rareclass")
    refusal(done, kind, *facts)
    assert PASSWORD not in done.output
    assert "hush" not in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "kind", ["postgresql", "sqlite", pytest.param("duckdb", marks=pytest.mark.thorough)]
)
def test_scores_go_back_into_a_table(rareclass, kind, request, table, tmp_path):
    if kind == "postgresql":
        server = request.getfixturevalue("postgresql")
        server.put("payments", table.to_arrow())
        server.rows("DROP TABLE IF EXISTS scores, others")
        uri = server.uri
    else:
        make = sqlite_file if kind == "sqlite" else duckdb_file
        uri = make(tmp_path / "shop.db", "payments", table.to_arrow())
    model = tmp_path / "m.rareclass"
    output_of(rareclass("fit", uri, *ALL, "-t", "fraud", *QUICK, "-o", model))
    asked = ("score", model, uri, *ALL, "--id", "order")
    for more in ((), ("--overwrite", "--top", "7")):
        done = rareclass(*asked, "--out-table", "scores", *more)
        assert done.exit_code == 0, done.output
        assert "Saved the table scores of" in " ".join(done.stdout.split())
    refused = rareclass(*asked, "--out-table", "scores")
    assert refused.exit_code == 2
    assert "--out-table scores exists already" in " ".join(refused.stderr.split())
    assert PASSWORD not in done.output + refused.output
    output_of(rareclass(*asked, "--top", "7", "-o", tmp_path / "s.parquet"))
    found = open_table(Query(DatabaseAddress(uri), "SELECT * FROM scores"))
    kept = pl.concat(found.batches()).with_columns(pl.col("called_rare").cast(pl.Boolean))
    assert kept.equals(pl.read_parquet(tmp_path / "s.parquet"))
    file = tmp_path / "rows.parquet"
    table.write_parquet(file)
    output_of(rareclass("score", model, file, "--out", uri, "--out-table", "others"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rows.csv",), "No output for the scores is given."),
        (("rows.csv", "--out-table", "s"), "--out-table s: DATA rows.csv is not a database"),
        (("rows.csv", "--out-table", "s", "--out", "s.csv"), "--out s.csv is not a database"),
        (("rows.csv", "--out-table", "s", "--out", "mysql://u:hush@h/d"), "--out mysql://u@h/d is"),
        (("rows.csv", "--out", "postgresql://u:hush@h/d"), "postgresql://u:***@h/d is a database"),
        (("sqlite:///x.db", "--query", "q", "--out-table", "a.b"), "SQLite has no schemas"),
    ],
)
def test_where_scores_cannot_go(rareclass, words, said, tmp_path):
    done = message(rareclass("score", tmp_path / "m.rareclass", *words))
    assert said in done


def test_a_stream_of_a_query_goes_on(rareclass, postgresql, table, tmp_path):
    numbered = table.with_row_index("n")
    postgresql.put("arrivals", numbered.head(100).to_arrow())
    query = ("--query", "SELECT * FROM arrivals ORDER BY n", "-t", "fraud", "--drop", "n")
    asked = ("stream", postgresql.uri, *query, "--checkpoint", tmp_path / "run", "--id", "order")
    first = rareclass(*asked)
    assert first.exit_code == 0, first.output
    again = rareclass(*asked)
    assert "No new rows" in again.output
    postgresql.put("arrivals", numbered.to_arrow())
    more = rareclass(*asked)
    assert "240 rows" in " ".join(more.output.split()), more.output
    table.write_csv(tmp_path / "all.csv")
    whole = ("stream", tmp_path / "all.csv", "-t", "fraud", "--checkpoint", tmp_path / "whole")
    assert rareclass(*whole, "--id", "order").exit_code == 0
    one, other = (load(tmp_path / name).score_samples(table) for name in ("run", "whole"))
    np.testing.assert_allclose(one, other, rtol=1e-9)
    postgresql.put("arrivals", numbered.reverse().with_columns(n=pl.int_range(240)).to_arrow())
    changed = rareclass(*asked)
    assert changed.exit_code == 2
    assert "gives another row 240 than before" in " ".join(changed.stderr.split())
    assert "ORDER BY" in changed.stderr
    follow = rareclass(*asked, "--follow")
    assert "--follow: the answer to a query ends" in follow.stderr
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes()
    assert PASSWORD not in first.output + changed.output
