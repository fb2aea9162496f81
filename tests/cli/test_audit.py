"""``rareclass audit``: the list that it writes, the estimates, and what it refuses."""

import numpy as np
import polars as pl
import pytest

from command_line import invoke, run_with_json
from faults import refusal
from made_tables import purchases
from rareclass.errors import ErrorKind

QUICK = ("--members", "logistic regression", "--repeats", "1", "--top", "8")


@pytest.fixture
def data(tmp_path):
    rows = purchases().with_columns(amount=pl.col("amount") + 60.0 * (pl.col("fraud") == "yes"))
    fraud = rows["fraud"].to_list()
    for row in (3, 13, 23):
        fraud[row] = "no"
    rows = rows.with_columns(fraud=pl.Series(fraud))
    twin = rows[33:34].with_columns(fraud=pl.lit("no"), order=pl.lit("twin"))
    path = tmp_path / "orders.csv"
    pl.concat([rows, twin]).write_csv(path)
    return path


def test_the_list_names_rows_and_the_summary_has_the_estimates(data, tmp_path):
    out = tmp_path / "suspects.csv"
    words = ("audit", data, "--target", "fraud", "--id", "order", "--out", out, *QUICK)
    shown, written = run_with_json(*words)
    listed = pl.read_csv(out)
    missed = listed.filter(pl.col("suspect") == listed["suspect"][0])
    assert {24, 241} <= set(missed["row"])
    assert listed.height == 16
    assert missed.row(by_predicate=pl.col("row") == 241, named=True)["contradicts"] == 34
    assert missed["name"][missed["row"].to_list().index(241)] == "twin"
    most = written["missed"]["most"]
    assert 4 <= most <= 20
    assert len(written["rows"]) == 16
    limit = f"At most {most:,.0f} rows (95% confidence, if labels are wrong at random)"
    assert all(fact in shown for fact in (str(out), limit, "twin"))


@pytest.mark.parametrize(
    ("labels", "options", "kind", "fact"),
    [
        (None, ("--positive", "maybe"), ErrorKind.LABELS, "maybe"),
        ("no", (), ErrorKind.LABELS, "no"),
        ("", (), ErrorKind.LABELS, "--target"),
        (None, ("--id", "ordre"), ErrorKind.MISSING_COLUMN, "ordre"),
        (None, ("--members", "forest of one"), ErrorKind.SETTING, "forest of one"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(data, labels, options, kind, fact):
    if labels is not None:
        pl.read_csv(data).with_columns(fraud=pl.lit(labels or None)).write_csv(data)
    out = data.parent / "suspects.csv"
    refusal(invoke("audit", data, "--target", "fraud", "--out", out, *options), kind, fact)
    assert not out.exists()


def test_a_single_rare_row_and_rows_without_columns_are_refused(data, tmp_path):
    rows = pl.read_csv(data)
    one = np.where(np.arange(rows.height) == 7, "yes", "no").tolist()
    rows.with_columns(fraud=pl.Series(one)).write_csv(data)
    words = ("--target", "fraud", "--out", tmp_path / "suspects.csv")
    refusal(invoke("audit", data, *words), ErrorKind.TOO_FEW_ROWS)
    sparse = tmp_path / "rows.svmlight"
    sparse.write_text("1 1:0.5\n0 2:1\n0 1:2\n")
    refusal(invoke("audit", sparse, *words), ErrorKind.FILE_FORMAT)
