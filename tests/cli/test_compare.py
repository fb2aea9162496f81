"""`rareclass compare`: score files matched by row, and methods on the same folds."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.conftest import Run, message
from rareclass.comparison import compare_scores

FLAGS = ("--target", "fraud", "--scores")


def scored(n_rows: int = 120) -> dict[str, pl.DataFrame]:
    """Return two files of scores of the same rows, one with the labels, in different orders."""
    rng = np.random.default_rng(0)
    rare = np.arange(n_rows) % 10 == 0
    ids = [f"o-{k}" for k in range(n_rows)]
    frames = {}
    for name, shift in (("a", 2.0), ("b", 0.5)):
        score = rng.normal(size=n_rows) + shift * rare
        frames[name] = pl.DataFrame({"order": ids, "score": score, "called_rare": score > 1.0})
    frames["b"] = frames["b"].rename({"score": "margin"})
    frames["a"] = frames["a"].with_columns(fraud=np.where(rare, "yes", "no"))
    return frames


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    frames = scored()
    paths = tmp_path / "a.csv", tmp_path / "b.parquet"
    frames["a"].write_csv(paths[0])
    frames["b"].reverse().write_parquet(paths[1])
    return paths


def test_score_files_are_matched_by_id(
    files: tuple[Path, Path], tmp_path: Path, rareclass: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "found.json"
    done = rareclass("compare", *files, *FLAGS, "--id", "order", "--k", 20, "--json", out)
    assert done.exit_code == 0, done.output
    frames = scored()
    y = (frames["a"]["fraud"] == "yes").to_numpy()
    columns = {"a": frames["a"]["score"].to_numpy(), "b": frames["b"]["margin"].to_numpy()}
    expected = compare_scores(y, columns, k=[12, 20])
    content = json.loads(out.read_text())
    assert content["measures"] == json.loads(json.dumps(expected.to_dict()))["measures"]
    assert content["columns"]["b"] == {"file": str(files[1]), "column": "margin"}
    assert "120 rows, 12 of them rare: fraud = yes" in done.stdout
    assert "Precision at 20" in done.stdout
    for width in (80, 50):
        monkeypatch.setenv("COLUMNS", str(width))
        done = rareclass("compare", *files, *FLAGS, "--id", "order")
        assert done.exit_code == 0
        assert max(map(len, done.stdout.splitlines())) <= width
        assert "worse" in done.stdout


def test_several_columns_of_one_file_with_the_truth_in_another(
    tmp_path: Path, rareclass: Run
) -> None:
    frames = scored()
    both = pl.DataFrame({"one": frames["a"]["score"], "two": frames["b"]["margin"]})
    both.write_csv(tmp_path / "both.csv")
    frames["a"].select("order", "fraud").write_csv(tmp_path / "truth.csv")
    done = rareclass(
        "compare", tmp_path / "both.csv", *FLAGS, "--truth", tmp_path / "truth.csv",
        "--score", "one", "--score", "two", "--positive", "no",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "120 rows, 108 of them rare: fraud = no" in done.stdout


def without(column: str, row: int) -> pl.Expr:
    """Return the column with an empty cell."""
    return pl.when(pl.int_range(pl.len()) == row).then(None).otherwise(pl.col(column)).alias(column)


# Of each file, one fault.
SPOILT = {
    "rows": ("b", lambda b: b.head(100)),
    "twice": ("b", lambda b: b.with_columns(pl.col("order").replace("o-3", "o-7"))),
    "labels": ("a", lambda a: a.with_columns(without("fraud", 5))),
    "probability": ("b", lambda b: b.rename({"margin": "probability"})),
    "tied": ("b", lambda b: b.with_columns(margin=pl.lit(0.5))),
    "class": ("a", lambda a: a.with_columns(fraud=pl.lit("no"))),
    "empty": ("b", lambda b: b.with_columns(without("margin", 5))),
    "columns": ("b", lambda b: b.with_columns(other=pl.col("margin"))),
    "target": ("a", lambda a: a.drop("fraud")),
    "disagree": ("b", lambda b: b.with_columns(fraud=pl.lit("no"))),
}


@pytest.mark.parametrize(
    ("name", "by_id", "answer"),
    [
        ("rows", True, "b.csv has no row with order = o-100, nor 19 others."),
        ("rows", False, "b.csv has 100 rows and"),
        ("twice", True, "b.csv: order = o-7 occurs twice, at rows 4 and 8"),
        ("labels", False, "a.csv has no label (fraud) at row 6"),
        ("probability", False, "b.csv: probability is"),
        ("tied", False, "b.csv: margin is 0.5 in every row"),
        ("class", False, "one class only: 'no'"),
        ("empty", False, "b.csv: margin is empty at row 6"),
        ("columns", False, "columns of numbers are margin, other"),
        ("target", False, "No file of scores has a column 'fraud'"),
        ("disagree", False, "have different labels: 'yes' and 'no' at row 1"),
    ],
)
def test_bad_files_are_named_and_nothing_is_written(
    tmp_path: Path, rareclass: Run, name: str, by_id: bool, answer: str
) -> None:
    frames = scored()
    spoilt, change = SPOILT[name]
    frames[spoilt] = change(frames[spoilt])
    for stem, frame in frames.items():
        frame.write_csv(tmp_path / f"{stem}.csv")
    out = tmp_path / "found.json"
    words = ("--id", "order") if by_id else ()
    done = rareclass(
        "compare", tmp_path / "a.csv", tmp_path / "b.csv", *FLAGS, *words, "--json", out
    )
    assert answer in message(done)
    assert not out.exists()
