"""The verbs on databases: the same answers as on files, and no password anywhere."""

import json
import zipfile

import pytest

from command_line import invoke, printed, run, scores_of
from database_servers import PASSWORD
from faults import refusal
from rareclass.errors import ErrorKind

pytestmark = pytest.mark.sampled(0)

QUICK = ("--members", "logistic regression", "--folds", "2")
ALL = ("--query", "SELECT * FROM payments")


@pytest.fixture
def postgresql_payments(postgresql, table):
    postgresql.put("payments", table.to_arrow())
    return postgresql.uri


def test_a_query_is_learned_from_as_a_file_is(postgresql_payments, table, tmp_path):
    table.write_parquet(tmp_path / "train.parquet")
    common = ("-t", "fraud", *QUICK)
    one = printed("fit", tmp_path / "train.parquet", *common, "-o", tmp_path / "file.rareclass")
    other = printed("fit", postgresql_payments, *ALL, *common, "-o", tmp_path / "query.rareclass")
    of_file, of_query = (done.splitlines()[0].partition(": ")[2] for done in (one, other))
    assert of_file.startswith("240 rows")
    assert of_query == of_file
    expected = scores_of(tmp_path / "file.rareclass", tmp_path / "train.parquet", "--id", "order")
    words = (tmp_path / "query.rareclass", postgresql_payments, *ALL)
    assert scores_of(*words, "--id", "order").equals(expected)
    scored = run("score", *words, "-o", tmp_path / "s.csv", "--json", tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text())["n_rows"] == 240
    assert PASSWORD not in other + scored
    _no_password_in_files_of(tmp_path)


@pytest.mark.thorough
def test_no_password_in_what_is_kept(postgresql_payments, tmp_path):
    asked, model = (postgresql_payments, *ALL), tmp_path / "m.rareclass"
    page = ("--report", tmp_path / "fit.html")
    runs = [
        ("fit", *asked, "-t", "fraud", *QUICK, "-o", model, "--json", tmp_path / "f.json", *page),
        ("evaluate", model, *asked, "--json", tmp_path / "e.json"),
        ("threshold", model, *asked, "--min-recall", "0.5"),
    ]
    runs += [("report", model, *asked, "-o", tmp_path / "r.html")]
    for words in runs:
        done = invoke(*words)
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
def test_large_tables_stay_on_disk(postgresql_payments, tmp_path):
    run(
        "fit", postgresql_payments, "--query",
        "SELECT p.*, g AS k FROM payments p, generate_series(1, 60) g", "--drop", "order",
        "-t", "fraud", "--method", "rankrc", "--lam", "1", "--memory", "100MiB",
        "--holdout", "0", "-o", tmp_path / "m.rareclass",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "kind", "facts"),
    [
        (("train.parquet", "--query", "SELECT 1"), ErrorKind.SETTING, ("--query", "train.parquet")),
        (("mysql://u:hush@h/d", *ALL), ErrorKind.SETTING, ("--query", "mysql://u@h/d")),
        (("mysql://u:hush@h/d",), ErrorKind.UNSUPPORTED, ("mysql://u@h/d", "s3://")),
        (("postgresql:/u:hush@h/d", *ALL), ErrorKind.SETTING, ("@", "%40", "PGPASSWORD")),
        (("sqlite:///no.db",), ErrorKind.SETTING, ("--query", "sqlite:///no.db")),
        (("sqlite:///no.db", *ALL), ErrorKind.MISSING_FILE, ("no.db", "sqlite:///no.db")),
        (("{uri}", *ALL, "--separator", ";"), ErrorKind.SETTING,
         ("--separator", "postgresql://rare:***@")),
        (("{uri}", "--query", "SELECT * FROM nowhere"), ErrorKind.CONNECTION, ('"nowhere"',)),
        (("{uri}", "--query", "SELECT amount FROM payments"), ErrorKind.MISSING_COLUMN,
         ("--target", "'fraud'", "amount")),
        (("{uri}x", *ALL), ErrorKind.CONNECTION, ('"postgresx"',)),
    ],
)  # fmt: skip
def test_faults(postgresql_payments, tmp_path, words, kind, facts):
    words = [word.format(uri=postgresql_payments) for word in words]
    done = invoke("fit", *words, "-t", "fraud", "-o", tmp_path / "m.rareclass")
    refusal(done, kind, *facts)
    assert PASSWORD not in done.output
    assert "hush" not in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("score", "m.rareclass", "rows.csv", "--out", "{uri}"), "is not an address of files"),
        (("stream", "{uri}", "-t", "fraud", "--checkpoint", "run"), "CSV"),
    ],
)
def test_scores_and_streams_are_files(words, fact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke(*(word.format(uri="postgresql://u:hush@h/d") for word in words))
    refusal(done, ErrorKind.UNSUPPORTED, "@h/d", fact)
    assert "hush" not in done.output
    assert not list(tmp_path.iterdir())
