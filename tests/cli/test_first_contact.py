"""What a new user meets: files that exist already, single rows, lists of columns, two labels."""

import json

import polars as pl
import pytest

from cli.conftest import facts_of
from command_line import QUICK, invoke, run
from faults import refusal
from made_tables import purchases
from rareclass.errors import ErrorKind
from rareclass.fit.demo import SCORES_NAME


@pytest.mark.sampled(0)
def test_a_model_is_replaced_only_where_said(train_csv):
    out = train_csv.parent / "m.rareclass"
    words = ("fit", train_csv, "-t", "fraud", *QUICK, "--holdout", "0", "--out", out)
    run(*words)
    before = out.read_bytes()
    refusal(invoke(*words), ErrorKind.EXISTING_FILE, f"--out {out}", "--overwrite")
    assert out.read_bytes() == before
    run(*words, "--overwrite")
    assert out.read_bytes() != before


@pytest.mark.parametrize("verb", ["score", "evaluate"])
def test_scores_and_measures_are_replaced_only_where_said(fitted, tmp_path, verb):
    out = tmp_path / "out.csv"
    option = {"score": "--out", "evaluate": "--json"}[verb]
    words = (verb, fitted / "model.rareclass", fitted / "new.csv", option, out)
    out.write_text("mine")
    refusal(invoke(*words), ErrorKind.EXISTING_FILE, f"{option} {out}", "--overwrite")
    assert out.read_text() == "mine"
    run(*words, "--overwrite")
    assert out.read_text() != "mine"


def test_the_demonstration_asks_before_it_replaces(tmp_path):
    (tmp_path / SCORES_NAME).write_text("row,score,called_rare,percentile\n")
    done = invoke("demo", "--out", tmp_path)
    refusal(done, ErrorKind.EXISTING_FILE, SCORES_NAME, "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == [SCORES_NAME]


def test_one_row_is_one_row(fitted, tmp_path):
    one = tmp_path / "one.csv"
    table = purchases()
    table.head(1).write_csv(one)
    scored = invoke("score", fitted / "model.rareclass", one, "--out", tmp_path / "s.csv")
    assert scored.stdout.startswith("Scored 1 row; 0 (0.00%) are called rare")
    table[5:6].with_columns(fraud=pl.lit(None, pl.String)).vstack(table[3:12]).write_csv(one)
    evaluated = invoke("evaluate", fitted / "model.rareclass", one)
    assert "Note: 1 row has no target" in evaluated.stdout


def test_counts_are_whole_numbers(fitted, tmp_path):
    assert '"n_rows": 60,' in json.dumps(facts_of(fitted / "model.rareclass")["held_out"])
    out = tmp_path / "m.json"
    run("evaluate", fitted / "model.rareclass", fitted / "new.csv", "--json", out)
    assert '"n_rows": 240,\n' in out.read_text()
    assert '"n_rare": 24,\n' in out.read_text()


@pytest.mark.parametrize(
    ("verb", "option"),
    [*(("fit", each) for each in ("--drop", "--keep", "--category")), ("stream", "--drop")],
)
def test_several_columns_in_one_option(train_csv, verb, option):
    out = {"fit": "--out", "stream": "--checkpoint"}[verb], train_csv.parent / "made"
    result = invoke(verb, train_csv, "-t", "fraud", option, "items, country", *out)
    refusal(result, ErrorKind.MISSING_COLUMN, f"{option} items {option} country")
