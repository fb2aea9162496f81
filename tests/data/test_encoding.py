"""Encoding: what goes in, what comes out, and what is written to a model file."""

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rareclass.data.columns import Column
from rareclass.data.encoding import TableEncoder
from rareclass.ranking import RankRC
from rareclass.workflow.model_file import ModelFile, load_model, save_model

N = 300
GENERATOR = np.random.default_rng(0)
COLUMNS = [
    Column("number", "number", "", "number"),
    Column("member", "boolean", "", "string"),
    Column("few", "category", "", "string"),
    Column("many", "high-cardinality category", "", "string"),
    Column("day", "date", "", "date"),
    Column("words", "text", "", "string"),
]


def rows(n_rows: int = N) -> pl.DataFrame:
    numbers = GENERATOR.normal(100, 20, n_rows)
    return pl.DataFrame(
        {
            "number": [None if k % 11 == 0 else float(v) for k, v in enumerate(numbers)],
            "member": GENERATOR.choice(["yes", "no"], n_rows).tolist(),
            "few": [None if k % 7 == 0 else "abc"[k % 3] for k in range(n_rows)],
            "many": [f"m{k % 60}" for k in range(n_rows)],
            "day": [dt.datetime(2020, 1, 1) + dt.timedelta(days=k) for k in range(n_rows)],
            "words": [f"some words about item {k}" for k in range(n_rows)],
        }
    )


RARE = np.arange(N) % 10 == 0


@pytest.fixture(scope="module")
def encoder() -> TableEncoder:
    encoder = TableEncoder(COLUMNS)
    encoder.fit_transform(rows(), RARE)
    return encoder


def test_encoded_rows_are_finite_and_standardised() -> None:
    encoder = TableEncoder(COLUMNS)
    X = encoder.fit_transform(rows(), RARE)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert np.isfinite(X).all()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-6)
    # The year is the same in all rows: nothing to scale.
    deviation = X.std(axis=0)
    is_year = np.array([name.endswith("_year") for name in encoder.feature_names_])
    np.testing.assert_allclose(deviation[~is_year], 1, atol=1e-5)
    np.testing.assert_array_equal(deviation[is_year], 0)
    assert len(encoder.feature_names_) == X.shape[1]
    # Empty numbers have a marker.
    assert sum("missingindicator" in name for name in encoder.feature_names_) == 1


def test_target_encoding_is_out_of_fold() -> None:
    """A category met once says nothing about its own row."""
    frame = pl.DataFrame({"many": [f"once{k}" for k in range(N)]})
    encoder = TableEncoder([COLUMNS[3]])
    X = encoder.fit_transform(frame, RARE)
    # A fold that met no such category says the same of all its rows.
    assert len(np.unique(X[:, 0].round(9))) <= 5
    in_sample = encoder.transform(frame)
    assert np.corrcoef(in_sample[:, 0], RARE)[0, 1] > 0.9


def test_unseen_values_and_empty_cells(encoder: TableEncoder) -> None:
    new = pl.DataFrame(
        {
            "number": [None, 1e30],
            "member": ["maybe", None],
            "few": ["z", None],
            "many": ["new", None],
            "day": [dt.datetime(2050, 1, 1), None],
            "words": [None, ""],
        }
    )
    assert np.isfinite(encoder.transform(new)).all()
    assert encoder.count_unseen(new) == {"member": 1, "few": 1, "many": 1}
    assert encoder.count_unseen(rows()) == {}


def test_rows_are_encoded_alike_alone_and_together(encoder: TableEncoder) -> None:
    frame = rows()
    together = encoder.transform(frame)
    alone = np.vstack([encoder.transform(frame[k : k + 7]) for k in range(0, N, 7)])
    np.testing.assert_allclose(alone, together, rtol=1e-6, atol=1e-6)


def test_a_column_empty_in_training_is_no_trouble() -> None:
    frame = pl.DataFrame({"number": pl.Series([None] * N, dtype=pl.Float64), "few": ["a"] * N})
    encoder = TableEncoder([COLUMNS[0], COLUMNS[2]])
    assert np.isfinite(encoder.fit_transform(frame, RARE)).all()
    filled = frame.with_columns(number=pl.lit(3.0))
    assert np.isfinite(encoder.transform(filled)).all()


def test_one_rare_row_can_be_encoded() -> None:
    rare = np.arange(N) == 5
    assert np.isfinite(TableEncoder(COLUMNS).fit_transform(rows(), rare)).all()


def test_weights_count_as_copies_in_the_scaling() -> None:
    frame = pl.DataFrame({"number": GENERATOR.normal(size=N)})
    weight = GENERATOR.integers(1, 4, N)
    copies = np.repeat(np.arange(N), weight)
    weighted = TableEncoder(COLUMNS[:1])
    weighted.fit_transform(frame, RARE, weight.astype(float))
    repeated = TableEncoder(COLUMNS[:1])
    repeated.fit_transform(frame[copies], RARE[copies])
    np.testing.assert_allclose(weighted.transform(frame), repeated.transform(frame), rtol=1e-6)


def test_model_file_gives_the_same_scores_back(tmp_path: Path, encoder: TableEncoder) -> None:
    """Also checks that every type of every kind of column is on the list of trusted ones."""
    frame = rows()
    X = encoder.transform(frame)
    model = RankRC(lam=0.1, pos_label=1).fit(X, RARE.astype(np.int8))
    path = tmp_path / "model.skops"
    save_model(path, ModelFile(encoder, model, {"target": "y"}))
    opened = load_model(path)
    assert opened.metadata == {"target": "y"}
    assert opened.encoder.columns == COLUMNS
    np.testing.assert_array_equal(opened.encoder.transform(frame), X)
    np.testing.assert_array_equal(opened.model.score_samples(X), model.score_samples(X))


def test_a_model_that_could_not_be_opened_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    path.write_text("old")
    with pytest.raises(TypeError, match="Path"):
        save_model(path, ModelFile({"odd": tmp_path}, None, {}))
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]
