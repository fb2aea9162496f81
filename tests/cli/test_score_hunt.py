"""New rows are scored in the order of a hunt's list."""

import numpy as np
import polars as pl
import pytest

from cli.test_hunt import payments
from command_line import complaint, invoke, run
from rareclass.hunt import files

LABELS = ("--target", "checked", "--rare", "fraud", "--cleared", "ok")


@pytest.fixture
def not_drawn(monkeypatch):
    monkeypatch.setattr(files, "_draw", lambda folder, hunt: [])  # most of the time, and no matter


def hunted(folder, *more: object):
    """Rows to score, those of a hunt without their labels, and the list of the hunt."""
    table = payments()
    table.write_csv(folder / "data.csv")
    words = ("--c1", "1", "--c2", "1e-4", "--folds", "3", "--top", "120", *more)
    run("hunt", folder / "data.csv", *LABELS, *words, "-o", folder / "found")
    table.drop("checked").write_csv(folder / "new.csv")
    return folder / "new.csv", pl.read_csv(folder / "found" / "found.csv")


def scored(folder, *more: object):
    out = folder / "s.parquet"
    words = ("score", folder / "found", folder / "new.csv", "-o", out, "--overwrite", *more)
    run(*words)
    return pl.read_parquet(out)


@pytest.mark.parametrize(
    "kernel",
    [("none",), pytest.param(("gaussian", "--width", "2"), marks=pytest.mark.thorough)],
    ids=["none", "gaussian"],
)
def test_scores_fall_down_the_list_of_the_hunt(tmp_path, kernel, not_drawn):
    _, found = hunted(tmp_path, "--kernel", *kernel)
    scores = scored(tmp_path)
    assert scores.columns == ["row", "score", "sure", "called_rare", "percentile"]
    assert len(found) == 120
    assert 0 < found["review found"].sum() < 120
    at = scores[(found["review row"] - 1).to_numpy()]
    steps = np.diff(at["score"].to_numpy())
    assert (steps <= 1e-12).all()
    assert (steps < -1e-12).sum() > 80
    assert (np.diff(at["percentile"].to_numpy()) <= 1e-9).all()
    np.testing.assert_allclose(at["score"], found["review score"], rtol=1e-9)
    assert at["called_rare"].all()
    assert scores["called_rare"].sum() >= 120
    assert not scores.filter(pl.col("score") < at["score"].min() - 1e-9)["called_rare"].any()
    # Of equal ones the hunt tells each its place; a new row is as sure as the last of them.
    last = pl.DataFrame({"score": at["score"].round(9), "sure": found["review sure"]})
    least = last.select(pl.col("sure").min().over("score")).to_series()
    assert (at["sure"] <= found["review sure"] + 1e-9).all()
    assert (at["sure"] >= least - 1e-9)[:119].all()  # those after the 120th are not in the file
    assert len(set(at["sure"])) > 20
    top = scored(tmp_path, "--top", 7).filter("called_rare")
    lowest = sorted(scores["score"], reverse=True)[6]
    assert (top["score"] >= lowest).all()


@pytest.mark.thorough
def test_rows_unlike_those_of_the_hunt_are_told(tmp_path, not_drawn):
    data, _ = hunted(tmp_path, "--kernel", "none")
    new = pl.read_csv(data)[:20].with_columns(amount=pl.lit(1e6), country=pl.lit("??"))
    new.with_columns(sure=1).write_csv(data)
    words = ("score", tmp_path / "found", data, "-o", tmp_path / "s.csv", "--overwrite")
    assert "amount (20, 100.0%)" in " ".join(invoke(*words).stdout.split())
    assert "has moved far from training" in complaint(*words, "--strict")
    assert "gives no reasons" in complaint(*words, "--explain", 1)
    assert "a column of the scores has that name" in complaint(*words, "--id", "sure")
    result = run("show", tmp_path / "found")
    assert "Rare class: checked = fraud" in result


def test_a_damaged_file_of_balls_is_refused(tmp_path):
    (tmp_path / "hunt.json").write_text("{}")
    (tmp_path / "score.rareclass").write_bytes(b"PK nothing")
    payments().write_csv(tmp_path / "new.csv")
    words = ("score", tmp_path, tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    assert "is damaged or cut short" in complaint(*words)
