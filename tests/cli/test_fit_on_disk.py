"""``rareclass fit`` on a table that it leaves on disk."""

import polars as pl
import pytest

from cli.conftest import fit_in_vain
from command_line import QUICK, run, says
from made_tables import purchases
from rareclass import RareClassifier
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model
from rareclass.scratch_file import Scratch


@pytest.fixture
def on_disk(monkeypatch):
    monkeypatch.setattr("rareclass.fit.rows_on_disk.LARGE_SHARE", 1e12)


@pytest.mark.usefixtures("on_disk")
def test_same_model_and_messages_and_a_note(tmp_path, out, fitted, monkeypatch):
    folders = []
    start = Scratch.__init__

    def watched(self, *args, **kwargs):
        start(self, *args, **kwargs)
        folders.append(self.folder)

    monkeypatch.setattr(Scratch, "__init__", watched)
    (tmp_path / "scratch").mkdir()
    words = ("-t", "fraud", "--method", "rankrc", "--lam", "2^-4", "--out", out)
    said = run("fit", fitted.train, *words, "--scratch", tmp_path / "scratch")
    assert "read from disk in pieces" in said
    assert "encoder is fitted on 240 rows" in said
    assert "fraud = yes, 24 rows (10.00%)" in said
    assert set(folders) == {tmp_path / "scratch"}
    assert len(folders) == 3  # typed cells, and the encoded rows of both trainings
    assert list((tmp_path / "scratch").iterdir()) == []
    one, other = load_model(fitted.model), load_model(tmp_path / "m.rareclass")
    assert other.estimator.dual_coef_ == pytest.approx(one.estimator.dual_coef_, rel=1e-8)
    assert facts_as_json(other.facts)["columns"] == facts_as_json(one.facts)["columns"]
    assert facts_as_json(other.facts)["label_counts"] == facts_as_json(one.facts)["label_counts"]
    held = [
        facts_as_json(content.facts)["held_out"]["measures"]["AUC"]["value"]
        for content in (one, other)
    ]
    assert held[0] == pytest.approx(held[1], rel=1e-9)


@pytest.mark.usefixtures("on_disk")
def test_a_combination_learns_from_a_sample_that_stands_for_all(tmp_path, monkeypatch):
    seen = []
    fit = RareClassifier.fit

    def watched(self, X, y, sample_weight=None, **beside):
        rare = y == 1
        seen.append((X.n_rows, int(rare.sum()), float(sample_weight[~rare].sum())))
        assert (sample_weight[rare] == 1.0).all()
        return fit(self, X, y, sample_weight, **beside)

    monkeypatch.setattr(RareClassifier, "fit", watched)
    monkeypatch.setattr("rareclass.fit.rows_on_disk.LEAST_SAMPLED", 300)
    monkeypatch.setattr("rareclass.fit.rows_on_disk.MOST_SAMPLED", 300)
    purchases(1000).write_parquet(tmp_path / "t.parquet")
    model, words = tmp_path / "m.rareclass", ("--target", "fraud", *QUICK)
    assert "300 rows at most" in run("fit", tmp_path / "t.parquet", *words, "--out", model)
    assert seen == [(300, 100, pytest.approx(900, abs=3))]
    run("evaluate", model, tmp_path / "t.parquet")


@pytest.mark.usefixtures("on_disk")
def test_faults_are_named_and_nothing_is_left(tmp_path):
    path, lost, table = tmp_path / "t.csv", tmp_path / "none", purchases()
    cell = pl.when(pl.int_range(240) == 16).then(float("inf")).otherwise("amount")
    for rows, words, facts in (
        (table, ("--scratch", lost), (str(lost),)),
        (table, ("--positive", "yess"), ("--positive", "'yess'", "'yes'")),
        (table.with_columns(fraud=pl.lit("no")), (), ("'no'", "240 rows")),
        (table.with_columns(amount=cell), (), ("'amount'", "row 17")),
    ):
        rows.write_csv(path)
        says(fit_in_vain(path, *words), *facts)
