"""The verbs on databases: the same answers as on files, and no password anywhere."""

import json
import zipfile

import polars as pl
import pytest

from database_servers import PASSWORD, duckdb_file, sqlite_file

QUICK = ("--members", "logistic regression", "--folds", "2")
ALL = ("--query", "SELECT * FROM payments")


@pytest.fixture
def postgresql_payments(postgresql, table):
    postgresql.put("payments", table.to_arrow())
    return postgresql.uri


def test_a_query_is_learned_from_as_a_file_is(rareclass, postgresql_payments, table, tmp_path):
    table.write_parquet(tmp_path / "train.parquet")
    common = ("-t", "fraud", *QUICK)
    one = rareclass("fit", tmp_path / "train.parquet", *common, "-o", tmp_path / "file.skops")
    other = rareclass("fit", postgresql_payments, *ALL, *common, "-o", tmp_path / "query.skops")
    assert (one.exit_code, other.exit_code) == (0, 0), other.output
    assert other.stdout.splitlines()[0] == "the query: 240 rows, 4 columns to learn from"
    for model, data, query in [
        ("file", tmp_path / "train.parquet", ()),
        ("query", postgresql_payments, ALL),
    ]:
        scored = rareclass(
            "score", tmp_path / f"{model}.skops", data, *query, "--id", "order",
            "-o", tmp_path / f"{model}.csv", "--json", tmp_path / f"{model}.json",
        )  # fmt: skip
        assert scored.exit_code == 0, scored.output
    assert pl.read_csv(tmp_path / "file.csv").equals(pl.read_csv(tmp_path / "query.csv"))
    assert json.loads((tmp_path / "query.json").read_text())["n_rows"] == 240


@pytest.mark.parametrize("with_pages", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_no_password_in_what_is_kept(rareclass, postgresql_payments, tmp_path, with_pages):
    asked, model = (postgresql_payments, *ALL), tmp_path / "m.skops"
    page = ("--report", tmp_path / "fit.html") if with_pages else ()
    runs = [
        ("fit", *asked, "-t", "fraud", *QUICK, "-o", model, "--json", tmp_path / "f.json", *page),
        ("evaluate", model, *asked, "--json", tmp_path / "e.json"),
        ("threshold", model, *asked, "--min-recall", "0.5"),
    ]
    if with_pages:
        runs += [("report", model, *asked, "-o", tmp_path / "r.html")]
    for words in runs:
        done = rareclass(*words)
        assert done.exit_code == 0, done.output
        assert PASSWORD not in done.output
    for path in tmp_path.iterdir():
        parts = [path.read_bytes()]
        if path.suffix == ".skops":
            with zipfile.ZipFile(path) as archive:
                parts += [archive.read(name) for name in archive.namelist()]
        assert not any(PASSWORD.encode() in part for part in parts), path


@pytest.mark.thorough
def test_large_tables_stay_on_disk(rareclass, postgresql_payments, tmp_path):
    done = rareclass(
        "fit", postgresql_payments, "--query",
        "SELECT p.*, g AS k FROM payments p, generate_series(1, 60) g", "--drop", "order",
        "-t", "fraud", "--method", "rankrc", "--lam", "1", "--memory", "100MiB",
        "--holdout", "0", "-o", tmp_path / "m.skops",
    )  # fmt: skip
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("make", [sqlite_file, duckdb_file])
def test_files_of_databases(rareclass, make, table, tmp_path):
    uri = make(tmp_path / "shop.db", "payments", table.to_arrow())
    fitted = rareclass("fit", uri, *ALL, "-t", "fraud", *QUICK, "-o", tmp_path / "m.skops")
    assert fitted.exit_code == 0, fitted.output
    judged = rareclass("evaluate", tmp_path / "m.skops", uri, *ALL)
    assert judged.stdout.startswith("the query: 240 rows, 24 of them rare"), judged.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train.parquet", "--query", "SELECT 1"), "--query: TRAIN train.parquet is no database"),
        (("sqlite:///no.db",), "--query is missing: which rows of sqlite:///no.db?"),
        (("sqlite:///no.db", *ALL), "The file no.db of sqlite:///no.db does not exist"),
        (("{uri}", *ALL, "--separator", ";"), "--separator: the query on postgresql://rare:***@"),
        (("{uri}", "--query", "SELECT * FROM nowhere"), 'relation "nowhere" does not exist'),
        (("{uri}", "--query", "SELECT amount FROM payments"), "there is no column 'fraud'"),
        (("{uri}x", *ALL), 'database "postgresx" does not exist'),
    ],
)
def test_faults(rareclass, postgresql_payments, tmp_path, words, said):
    words = [word.format(uri=postgresql_payments) for word in words]
    done = rareclass("fit", *words, "-t", "fraud", "-o", tmp_path / "m.skops")
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split()), done.stderr
    assert PASSWORD not in done.output
    assert not list(tmp_path.iterdir())
