"""`rareclass compare`: score files matched by row, and methods on the same folds."""

import json
import warnings
from datetime import datetime
from types import SimpleNamespace
from unittest.mock import ANY

import numpy as np
import polars as pl
import pytest

from command_line import complaint, invoke, printed, run, run_with_json, says
from faults import refusal
from rareclass.cli import compare as cli_compare
from rareclass.cli.screen import output
from rareclass.compare import compare_scores, leaderboard
from rareclass.compare.leaderboard import NativeCategories, Words
from rareclass.errors import ErrorKind
from rareclass.tables.columns import Column
from rareclass.tables.table_file import open_table

FLAGS = ("--target", "fraud", "--scores")


def scored(n_rows=120):
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
def files(tmp_path):
    frames = scored()
    paths = tmp_path / "a.csv", tmp_path / "b.parquet"
    frames["a"].write_csv(paths[0])
    frames["b"].reverse().write_parquet(paths[1])
    return paths


@pytest.mark.sampled(0)
def test_weights_are_copies_and_rows_of_a_value_are_compared_alone(tmp_path):
    frames, n_rows = scored(), 120
    weight, kind = 1 + np.arange(n_rows) % 3, np.array(["x", "y", "z"])[np.arange(n_rows) // 50]
    first = frames["a"].with_columns(w=pl.Series(weight), kind=pl.Series(kind))
    label = pl.when(kind=pl.lit("z")).then(pl.lit("no")).otherwise("fraud")
    first = first.with_columns(fraud=label)
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_csv(paths[0])
    frames["b"].write_csv(paths[1])
    words = ("compare", *paths, *FLAGS, "--weight", "w", "--by", "kind")
    shown, told = run_with_json(*words)
    y = (first["fraud"] == "yes").to_numpy()
    columns = {"a": first["score"].to_numpy(), "b": frames["b"]["margin"].to_numpy()}
    times = np.repeat(np.arange(n_rows), weight)
    copied = compare_scores(y[times], {name: each[times] for name, each in columns.items()})
    for found, expected in zip(told["measures"], copied.measures, strict=True):
        assert found["standings"][0]["value"] == pytest.approx(expected.best.value)
    assert told["n_rows"] == weight.sum()
    own = kind == "y"
    of_own = {name: each[own] for name, each in columns.items()}
    alone = compare_scores(y[own], of_own, sample_weight=weight[own])
    assert set(told["by"]) == {"x", "y"}
    assert told["by"]["y"] == json.loads(json.dumps(alone.to_dict()))
    assert set(told["not_judged"]) == {"z"}
    assert f"kind = y: {weight[own].sum()} rows" in shown
    assert f"kind = z: not compared, {told['not_judged']['z']}" in shown
    assert "--by: there is no column 'kin'" in complaint(*words[:-1], "kin")
    first.with_columns(w=pl.lit(-1.0)).write_csv(paths[0])
    assert "--weight w is '-1.0' at row 1" in complaint(*words)


def test_score_files_are_matched_by_id(files, tmp_path, monkeypatch):
    words = ("compare", *files, *FLAGS, "--id", "order")
    assert "another order" in complaint(*words[:-2])
    done, content = run_with_json(*words, "--k", 20)
    frames = scored()
    y = (frames["a"]["fraud"] == "yes").to_numpy()
    columns = {"a": frames["a"]["score"].to_numpy(), "b": frames["b"]["margin"].to_numpy()}
    expected = compare_scores(y, columns, k=[12, 20])
    assert content["measures"] == json.loads(json.dumps(expected.to_dict()))["measures"]
    assert content["columns"]["b"] == {"file": str(files[1]), "column": "margin"}
    says(done, "120 rows, 12 of them rare: fraud = yes", "Precision at 20")
    for width in (80, 50):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = invoke(*words).stdout
        assert max(map(len, shown.splitlines())) <= width
        assert "worse" in shown


def test_several_columns_of_one_file_with_the_truth_in_another(tmp_path):
    frames = scored()
    both = pl.DataFrame({"one": frames["a"]["score"], "two": frames["b"]["margin"]})
    both.write_csv(tmp_path / "both.csv")
    frames["a"].select("order", "fraud").write_csv(tmp_path / "truth.csv")
    done = run(
        "compare", tmp_path / "both.csv", *FLAGS, "--truth", tmp_path / "truth.csv",
        "--score", "one", "--score", "two", "--positive", "no",
    )  # fmt: skip
    assert "120 rows, 108 of them rare: fraud = no" in done


def without(column, row):
    return pl.when(pl.int_range(pl.len()) == row).then(None).otherwise(pl.col(column)).alias(column)


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


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "by_id", "kind", "place", "facts"),
    [
        ("rows", True, ErrorKind.ROWS, ("order", None, "o-100"), ("b.csv", "19")),
        ("rows", False, ErrorKind.ROWS, (None, None, None), ("b.csv", "100 rows", "a.csv 120")),
        ("twice", True, ErrorKind.ROWS, ("order", 8, "o-7"), ("b.csv", "4 and 8")),
        ("labels", False, ErrorKind.LABELS, ("fraud", 6, None), ("a.csv",)),
        ("probability", False, ErrorKind.CELL, ("probability", 1, ANY), ("b.csv",)),
        ("tied", False, ErrorKind.CELL, ("margin", None, 0.5), ("b.csv",)),
        ("class", False, ErrorKind.LABELS, (None, None, "no"), ("'no'", "120 rows")),
        ("empty", False, ErrorKind.CELL, ("margin", 6, ""), ("b.csv",)),
        ("columns", False, ErrorKind.MISSING_COLUMN, (None, None, None), ("margin, other",)),
        ("target", False, ErrorKind.MISSING_COLUMN, ("fraud", None, None), ("--target",)),
        ("disagree", False, ErrorKind.LABELS, ("fraud", 1, "no"), ("a.csv", "b.csv", "'yes'")),
    ],
)
def test_bad_files_are_named_and_nothing_is_written(tmp_path, name, by_id, kind, place, facts):
    frames = scored()
    spoilt, change = SPOILT[name]
    frames[spoilt] = change(frames[spoilt])
    for stem, frame in frames.items():
        frame.write_csv(tmp_path / f"{stem}.csv")
    out = tmp_path / "found.json"
    words = ("--id", "order") if by_id else ()
    done = invoke("compare", tmp_path / "a.csv", tmp_path / "b.csv", *FLAGS, *words, "--json", out)
    error = refusal(done, kind, *facts)
    assert (error.column, error.row, error.value) == place
    assert not out.exists()


@pytest.mark.sampled(0)
def test_methods_on_the_same_folds(train_csv, tmp_path, in_this_process, monkeypatch):
    monkeypatch.setattr(leaderboard, "find_spec", lambda name: None)
    out = tmp_path / "board.csv"
    words = ("compare", train_csv, "--target", "fraud", "--folds", 2, "--methods")
    done, content = run_with_json(*words, "mibc, logistic,catboost", "--k", 30, "--out", out)
    named = cli_compare.compare.__annotations__["methods"].__metadata__[0].help
    assert all(name in named for name in leaderboard.PEERS)
    assert "Rare class: fraud = yes, 24 rows" in done
    plan = done.index("Plan: 2 methods on the same 2 folds")
    assert plan < done.index("mibc: average precision 0.") < done.index("By average precision")
    says(done, "240 rows, 24 of them rare", "pip install catboost")
    board = pl.read_csv(out)
    assert set(board["method"][:2]) == {"mibc", "logistic"}
    assert board["status"].to_list() == ["ok", "ok", "not tried"]
    assert board["average_precision"][0] >= board["average_precision"][1]
    assert content["n_rare"] == 24
    assert [row["method"] for row in content["leaderboard"]] == board["method"].to_list()
    assert "precision at 30" in [each["words"] for each in content["comparison"]["measures"]]
    for width in (80, 50):
        monkeypatch.setenv("COLUMNS", str(width))
        done = printed(*words, "logistic", "--groups", "items", "--drop", "order")
        assert "in 8 groups" in " ".join(done.split())
        assert max(map(len, done.splitlines())) <= width


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ((), "--target is missing"),
        (("--methods", "forrest"), "Did you mean 'forest'?"),
        (("--target", "fraud", "--id", "order"), "--id is for comparing files of scores"),
        (("--target", "fraud", "--scores", "--folds", 3), "--folds is for comparing methods"),
        (("--target", "fraud", "--folds", 30), "make 24 folds with rows of both classes at most"),
        (("--target", "fraud", "--groups", "member"), "make 2 folds with rows of both classes"),
        (("--target", "fraud", "--groups", "member", "--time", "items"), "both given"),
        (("--target", "fraud", "--methods", "catboost"), "No method can be tried"),
        (("--target", "fraud", "--k", 500, "--methods", "logistic"), "--k 500.0 must be above 0"),
    ],
)
def test_bad_comparisons_of_methods_are_named(
    train_csv, in_this_process, monkeypatch, words, answer
):
    monkeypatch.setattr(leaderboard, "find_spec", lambda name: None)
    assert answer in complaint("compare", train_csv, *words)


SLOW = (
    "auto", "balanced-forest", "catboost", "easy-ensemble", "extra-trees", "lightgbm", "rankrc",
    "xgboost",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.thorough] * (n in SLOW)) for n in leaderboard.PEERS]
)
@pytest.mark.sampled(2)
def test_every_method_learns_a_table(train_csv, name):
    asked = leaderboard.CompareSettings("fraud", methods=(name,), folds=2, seconds=30.0)
    data = leaderboard.read_compared(open_table(train_csv), asked)
    with warnings.catch_warnings(action="ignore"):  # of other libraries, about their own defaults
        board = leaderboard.compare_on(data, asked, isolate=False)
    assert board.runs[0].is_judged
    assert board.found.comparison.by("AUC").best.value > 0.8


def test_preparations_learn_from_training_rows_alone():
    kinds = {"n": ("number", "number"), "w": ("category", "string"), "t": ("date", "date")}
    columns = [Column(name, kind, "", type_) for name, (kind, type_) in kinds.items()]
    moment = datetime(2026, 1, 5, 7)
    train = pl.DataFrame(
        {"n": [1.0, None, 2.0, 3.0], "w": ["a", "b", "a", None], "t": [moment] * 4}
    )
    new = pl.DataFrame({"n": [4.0], "w": ["c"], "t": [None]}, schema=train.schema)
    native = NativeCategories(columns)
    learned = native.fit_transform(train)
    assert learned["c1"].cat.categories.to_list() == ["a", "b"]
    assert learned["c1"].cat.codes.to_list() == [0, 1, 0, -1]
    assert np.isnan(learned["c0"][1])
    assert (learned["c3"] == 7).all()
    assert (learned["c4"] == 1).all()  # a Monday
    assert native.transform(new)["c1"].cat.codes.to_list() == [-1]
    assert native.transform(new)[["c2", "c3"]].isna().all(axis=None)
    words = Words(columns).fit_transform(train)
    assert words["c1"].to_list() == ["a", "b", "a", "(missing)"]
    letters = pl.DataFrame({"w": list("aabbcde")})
    few = NativeCategories(columns[1:2], most_values=3).fit_transform(letters)["c0"]
    assert few.astype(object).to_list() == ["a", "a", "b", "b", *["(rarer values)"] * 3]
    again = NativeCategories(columns[1:2], most_values=3)
    again.fit_transform(letters)
    assert again.transform(new)["c0"].astype(object).to_list() == ["(rarer values)"]


def test_names_of_classes_are_printed_as_they_are(capsys):
    run = SimpleNamespace(name="auto", is_judged=True)
    board = SimpleNamespace(runs=[run], of_classes={"auto": {"[late]": 0.5, ":x:": 0.25}})
    cli_compare._print_of_classes(output(), board)
    shown = capsys.readouterr().out
    assert "[late]" in shown
    assert "\\" not in shown
    assert ":x:" in shown
