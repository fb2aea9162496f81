"""What a new user meets: files that exist already, single rows, lists of columns, two labels."""

import json
from pathlib import Path

import polars as pl
import pytest

from cli.conftest import QUICK, Run, message, output_of, purchases
from rareclass.fit.demo import SCORES_NAME
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model


@pytest.mark.sampled(0)
def test_a_model_is_replaced_only_where_said(train_csv: Path, rareclass: Run) -> None:
    out = train_csv.parent / "m.rareclass"
    words = ("fit", train_csv, "-t", "fraud", *QUICK, "--holdout", "0", "--out", out)
    assert rareclass(*words).exit_code == 0
    before = out.read_bytes()
    said = message(rareclass(*words))
    assert f"--out {out} exists already. Give another name, or --overwrite" in said.replace(
        "\n", ""
    )
    assert out.read_bytes() == before
    assert rareclass(*words, "--overwrite").exit_code == 0
    assert out.read_bytes() != before


@pytest.mark.parametrize("verb", ["score", "evaluate"])
def test_scores_and_measures_are_replaced_only_where_said(
    fitted: Path, tmp_path: Path, rareclass: Run, verb: str
) -> None:
    out = tmp_path / "out.csv"
    option = {"score": "--out", "evaluate": "--json"}[verb]
    words = (verb, fitted / "model.rareclass", fitted / "new.csv", option, out)
    out.write_text("mine")
    assert f"{option} {out} exists already" in message(rareclass(*words))
    assert out.read_text() == "mine"
    assert rareclass(*words, "--overwrite").exit_code == 0
    assert out.read_text() != "mine"


def test_the_demonstration_asks_before_it_replaces(tmp_path: Path, rareclass: Run) -> None:
    (tmp_path / SCORES_NAME).write_text("row,score,called_rare,percentile\n")
    said = message(rareclass("demo", "--out", tmp_path))
    assert f"{SCORES_NAME} exists already" in said
    assert "--overwrite" in said
    assert [path.name for path in tmp_path.iterdir()] == [SCORES_NAME]


def test_one_row_is_one_row(fitted: Path, tmp_path: Path, rareclass: Run) -> None:
    one = tmp_path / "one.csv"
    table = purchases()
    table.head(1).write_csv(one)
    scored = rareclass("score", fitted / "model.rareclass", one, "--out", tmp_path / "s.csv")
    assert scored.stdout.startswith("Scored 1 row; 0 (0.00%) are called rare")
    table[5:6].with_columns(fraud=pl.lit(None, pl.String)).vstack(table[3:12]).write_csv(one)
    evaluated = rareclass("evaluate", fitted / "model.rareclass", one)
    assert "Note: 1 row has no target and was left out." in evaluated.stdout


def test_counts_are_whole_numbers(fitted: Path, tmp_path: Path, rareclass: Run) -> None:
    assert '"n_rows": 60,' in json.dumps(
        facts_as_json(load_model(fitted / "model.rareclass").facts)["held_out"]
    )
    out = tmp_path / "m.json"
    done = rareclass("evaluate", fitted / "model.rareclass", fitted / "new.csv", "--json", out)
    assert done.exit_code == 0
    assert '"n_rows": 240,\n' in out.read_text()
    assert '"n_rare": 24,\n' in out.read_text()


@pytest.mark.parametrize("option", ["--drop", "--keep", "--category"])
def test_several_columns_in_one_option(train_csv: Path, rareclass: Run, option: str) -> None:
    out = train_csv.parent / "m.rareclass"
    result = rareclass(
        "fit", train_csv, "-t", "fraud", option, "items, country", "--out", out
    )  # fmt: skip
    said = message(result)
    assert f"{option}: there is no column 'items, country'." in said
    assert f"One column each time: {option} items {option} country." in said


def test_several_columns_in_one_option_of_a_stream(train_csv: Path, rareclass: Run) -> None:
    result = rareclass(
        "stream", train_csv, "-t", "fraud", "--drop", "items,country",
        "--checkpoint", train_csv.parent / "c",
    )  # fmt: skip
    assert "One column each time: --drop items --drop country." in message(result)


def events(*rows: tuple[str, str, str]) -> str:
    return "id,amount,fraud\n" + "".join(",".join(row) + "\n" for row in rows)


def test_a_contradicting_label_is_remarked_once_and_over_a_restart(
    tmp_path: Path, rareclass: Run
) -> None:
    source, folder = tmp_path / "s.csv", tmp_path / "c"
    rows = [("a", "1", "0"), ("b", "2", ""), ("b", "", "1"), ("a", "1", "0"), ("c", "3", "0")]
    source.write_text(events(*rows))
    words = ("stream", source, "-t", "fraud", "--id", "id", "--checkpoint", folder)
    first = output_of(rareclass(*words))
    assert "Contradicted" not in first
    # A row again, a label alone for a row held before, and one under its old label.
    rows += [("a", "1", "1"), ("b", "", "0"), ("b", "2", "0"), ("c", "3", "0")]
    source.write_text(events(*rows))
    shown = output_of(rareclass(*words))
    assert (
        "Note: id 'a' comes as rare at row 6 of the stream, and came as not rare at row 4." in shown
    )
    assert "Contradicted: 3 rows came again with another label" in shown
    lines = [json.loads(line) for line in (folder / "contradicted.jsonl").read_text().splitlines()]
    assert [(entry["line"], entry["reason"].split(",")[0]) for entry in lines] == [
        (7, "id 'a' comes as rare at row 6 of the stream"),
        (8, "id 'b' comes as not rare at row 7 of the stream"),
        (9, "id 'b' comes as not rare at row 8 of the stream"),
    ]
    rejected = (folder / "rejected.jsonl").read_text()
    assert "has its label already" in rejected
