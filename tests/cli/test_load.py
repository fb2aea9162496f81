"""`rareclass.load`: one door to every model, for tables in memory and for files."""

import numpy as np
import polars as pl
import pytest

import rareclass as package
from command_line import run, scores_of
from rareclass.errors import InputError


@pytest.fixture(scope="module")
def written(fitted):
    return scores_of(fitted.model, fitted.new)


@pytest.mark.parametrize("kind", ["path", "polars", "pandas", "pyarrow"])
def test_a_table_of_any_kind_is_scored_as_the_command_scores_its_file(fitted, written, kind):
    model = package.load(fitted.model)
    table = pl.read_csv(fitted.new)
    make = {"polars": table.clone, "pandas": table.to_pandas, "pyarrow": table.to_arrow}
    given = make.get(kind, lambda: str(fitted.new))()
    np.testing.assert_array_equal(model.score_samples(given), written["score"].to_numpy())
    called = model.predict(given)
    assert set(called) == {"yes", "no"}
    np.testing.assert_array_equal(called == "yes", written["called_rare"].to_numpy())
    probability = model.predict_proba(given)
    np.testing.assert_allclose(probability[:, 1], written["probability"].to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)


def test_what_a_model_says_of_itself(fitted):
    model = package.load(fitted.model)
    assert model.target == "fraud"
    assert model.columns == ["amount", "items", "country", "member"]
    assert model.classes == ("no", "yes")
    assert model.thresholds.shape == (1,)
    assert model.facts.target.n_rare == 24
    assert repr(model) == "<Model of 'fraud': no, yes>"
    assert package.load in [getattr(package, name) for name in package.__all__]


def test_columns_in_another_order_and_no_rows(fitted):
    model = package.load(fitted.model)
    table = pl.read_csv(fitted.new).select("member", "amount", "country", "items")
    expected = model.score_samples(fitted.new)
    np.testing.assert_array_equal(model.score_samples(table), expected)
    np.testing.assert_allclose(model.score_samples(table.head(7)), expected[:7], rtol=1e-12)
    assert model.score_samples(table.head(0)).shape == (0,)
    assert model.predict(table.head(0)).shape == (0,)


def test_a_stream_is_opened_by_its_folder_or_a_checkpoint(fitted, tmp_path):
    folder = tmp_path / "stream"
    rows = pl.read_csv(fitted.train).with_columns(fraud=pl.col("fraud") == "yes")
    rows.write_csv(tmp_path / "rows.csv")
    run("stream", tmp_path / "rows.csv", "-t", "fraud", "--checkpoint", folder)
    model = package.load(folder)
    assert model.classes == ("false", "true")
    scores = model.score_samples(fitted.new)
    # Twice: a model has no memory of what it has scored.
    np.testing.assert_array_equal(model.score_samples(fitted.new), scores)
    newest = max(folder.glob("checkpoint-*.npz"))
    np.testing.assert_array_equal(package.load(newest).score_samples(fitted.new), scores)
    bad = pl.read_csv(fitted.new, infer_schema=False)
    bad[3, "amount"] = "lots"
    for _ in range(2):
        with pytest.raises(InputError, match=r"Row 4: .*lots"):
            model.score_samples(bad)


def test_what_is_no_table_and_no_model(fitted, tmp_path):
    model = package.load(fitted.model)
    cut = tmp_path / "cut.rareclass"
    cut.write_bytes(fitted.model.read_bytes()[:1000])
    for ask, given, said in (
        (model.score_samples, np.zeros((2, 4)), "ndarray is not a table"),
        (model.score_samples, pl.read_csv(fitted.new).drop("amount"), "lacks column 'amount'"),
        (package.load, tmp_path / "none.rareclass", "does not exist"),
        (package.load, tmp_path, "is a folder"),
        (package.load, fitted.new, "not a model file"),
        (package.load, cut, "damaged"),
    ):
        with pytest.raises(InputError, match=said):
            ask(given)
