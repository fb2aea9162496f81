"""Encoding: what goes in, what comes out, and what is written to a model file."""

import datetime as dt
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from made_models import made_model
from rareclass.encoding.encoders import SparseEncoder, TableEncoder, _drawn_folds
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import typed_table
from rareclass.encoding.views import DenseView
from rareclass.estimators.rankings import KernelRanking
from rareclass.model.model_file import load_model, save_model
from rareclass.ranking import RankRC
from rareclass.tables.columns import Column

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


def rows(n_rows=N):
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
def encoder():
    encoder = TableEncoder(COLUMNS)
    encoder.fit_transform(rows(), RARE)
    return encoder


def test_encoded_rows_are_finite_and_columns_count_about_alike():
    encoder = TableEncoder(COLUMNS)
    X = encoder.fit_transform(rows(), RARE)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert np.isfinite(X).all()
    variances = dict.fromkeys((column.name for column in COLUMNS), 0.0)
    for name, variance in zip(encoder.feature_columns, X.var(axis=0), strict=True):
        variances[name] += variance
    assert all(0.3 < variance < 8.0 for variance in variances.values()), variances
    assert [name for name in encoder.view_.feature_names_ if "missing" in name] == [
        "number is missing",
        "few = missing",
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("weight", [None, np.arange(N) % 3 + 1.0])
@pytest.mark.parametrize("numbers", ["quantiles", "clipped"])
def test_it_is_the_dense_view_that_members_of_the_classifier_learn_from(numbers, weight):
    frame = rows()
    encoder = TableEncoder(COLUMNS, 3, numbers)
    X = encoder.fit_transform(frame, RARE, weight)
    view = DenseView(numbers)
    table, fold = typed_table(frame, COLUMNS), _drawn_folds(RARE, 3)
    statistics = TableStatistics()
    encoded = statistics.fit_encode(table, RARE, weight, fold)
    np.testing.assert_array_equal(
        X, view.fit(encoded, weight, statistics).transform(encoded), strict=True
    )
    again = view.transform(statistics.encode(table))
    np.testing.assert_allclose(encoder.transform(frame), again, rtol=1e-12)


def test_levels_but_the_most_frequent_count_as_rare():
    level = np.where(RARE, np.arange(N) % 3 + 1, 0)
    one, other = TableEncoder(COLUMNS), TableEncoder(COLUMNS)
    table = rows()
    of_levels, of_two = one.fit_transform(table, level), other.fit_transform(table, level > 0)
    n_features = of_two.shape[1]
    np.testing.assert_array_equal(of_levels[:, :n_features], of_two)
    assert one.feature_columns[n_features:] == 3 * ["many"]


@given(st.integers(1, 40), st.integers(0, 400), st.integers(0, 99))
def test_folds_hold_equal_parts_of_both_classes(n_rare, n_others, seed):
    is_rare = np.arange(n_rare + n_others) < n_rare
    fold = _drawn_folds(is_rare, seed)
    for part in (fold[is_rare], fold[~is_rare]):
        counts = np.bincount(part, minlength=5)
        assert len(counts) == 5
        assert np.ptp(counts) <= 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_rows", [N, 100_000])
def test_a_large_common_part_of_numbers_and_dates_changes_nothing(n_rows):
    generator = np.random.default_rng(1)
    numbers = generator.normal(size=n_rows).round(6)
    seconds = generator.integers(0, 60, n_rows)
    frames = [
        pl.DataFrame(
            {
                "number": numbers + offset,
                "day": [dt.datetime(year, 1, 1) + dt.timedelta(seconds=int(s)) for s in seconds],
            }
        )
        for offset, year in [(0.0, 1970), (1e9, 2020)]
    ]
    encoder = TableEncoder([COLUMNS[0], COLUMNS[4]])
    near, far = (encoder.fit_transform(frame, np.arange(n_rows) % 10 == 0) for frame in frames)
    columns = encoder.feature_columns
    number = [k for k, name in enumerate(columns) if name == "number"]
    np.testing.assert_allclose(far[:, number], near[:, number], atol=1e-5)
    np.testing.assert_allclose(far[:, number].std(axis=0), 1, atol=1e-4)


def test_unseen_values_and_empty_cells(encoder):
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
    unseen, outside = encoder.find_unlike(new)
    assert {name: rows.sum() for name, rows in unseen.items()} == {"member": 1, "few": 1, "many": 1}
    assert "day" not in outside
    assert encoder.find_unlike(rows()).unseen == {}
    far = encoder.find_unlike(rows().with_columns(pl.col("number") * 1e6))
    assert far.outside["number"].any()


def test_a_column_empty_in_training_is_no_trouble():
    frame = pl.DataFrame({"number": pl.Series([None] * N, dtype=pl.Float64), "few": ["a"] * N})
    encoder = TableEncoder([COLUMNS[0], COLUMNS[2]])
    assert np.isfinite(encoder.fit_transform(frame, RARE)).all()
    filled = frame.with_columns(number=pl.lit(3.0))
    assert np.isfinite(encoder.transform(filled)).all()


def test_one_rare_row_can_be_encoded():
    rare = np.arange(N) == 5
    assert np.isfinite(TableEncoder(COLUMNS).fit_transform(rows(), rare)).all()


def test_sparse_rows_get_unit_length_where_sparse():
    X = sparse.random(200, 50, 0.05, format="csr", random_state=0)
    encoder = SparseEncoder(zero_based=True)
    lengths = sparse.linalg.norm(encoder.fit_transform(X, RARE[:200]), axis=1)
    # Also without a stored value.
    np.testing.assert_allclose(lengths, np.diff(X.indptr) > 0)
    dense = sparse.csr_matrix(GENERATOR.normal(size=(200, 5)) * [1, 10, 100, 1e3, 1e4])
    scaled = encoder.fit_transform(dense, RARE[:200])
    np.testing.assert_allclose(abs(scaled).max(axis=0).toarray()[0], 1)


def test_model_file_gives_the_same_scores_back(tmp_path, encoder):
    frame = rows()
    X = encoder.transform(frame)
    model = RankRC(lam=0.1, pos_label=1).fit(X, RARE.astype(np.int8))
    path = tmp_path / "model.rareclass"
    made = made_model(encoder, KernelRanking.of(model))
    save_model(path, made)
    opened = load_model(path)
    assert opened.facts == made.facts
    assert opened.encoder.columns == COLUMNS
    np.testing.assert_array_equal(opened.encoder.transform(frame), X)
    np.testing.assert_array_equal(opened.estimator.score_samples(X), model.score_samples(X))


def test_a_model_that_could_not_be_opened_is_not_saved(tmp_path):
    path = tmp_path / "model.rareclass"
    path.write_text("old")
    with pytest.raises(TypeError, match="SimpleNamespace"):
        save_model(path, made_model(SimpleNamespace(odd=tmp_path), None))
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["model.rareclass"]
