"""Rows that a model was trained on are told from new ones, where it is measured."""

import warnings

import polars as pl
import pytest

from command_line import run
from made_tables import purchases
from rareclass.findings import FindingKind, finding_of
from rareclass.model.evaluate import evaluate_file
from rareclass.model.model_file import load_model

TRAINED, SAID = 240, "seems to hold the rows that the model was trained on"


def is_noticed(fitted, table, folder):
    """Say whether measuring on these rows warns of training."""
    table.write_parquet(folder / "rows.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate_file(load_model(fitted.model), folder / "rows.parquet")
    kinds = [found.kind for each in caught if (found := finding_of(each.message)) is not None]
    return FindingKind.TRAINING_ROWS in kinds


def test_rows_of_training_are_noticed_in_any_order(fitted, tmp_path):
    table = purchases(TRAINED)
    assert is_noticed(fitted, table, tmp_path)
    assert is_noticed(fitted, table.sample(fraction=1.0, shuffle=True, seed=1), tmp_path)
    assert is_noticed(fitted, table.select(table.columns[::-1]), tmp_path)


def test_other_rows_are_not(fitted, tmp_path):
    """As many of each class, drawn alike; a part of training, and training twice."""
    table = purchases(TRAINED)
    for seed in range(1, 9):
        other = purchases(TRAINED, seed)
        assert other["fraud"].value_counts(sort=True).equals(table["fraud"].value_counts(sort=True))
        assert not is_noticed(fitted, other, tmp_path)
    assert not is_noticed(fitted, table.head(200), tmp_path)
    assert not is_noticed(fitted, pl.concat([table, table]), tmp_path)


@pytest.mark.parametrize(
    "words", [("evaluate",), ("threshold", "--min-recall", "0.5"), ("report", "--out", "r.html")]
)
def test_every_command_that_measures_says_so(fitted, tmp_path, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    purchases(TRAINED).write_csv("train.csv")
    assert SAID in " ".join(run(words[0], fitted.model, "train.csv", *words[1:]).split())
