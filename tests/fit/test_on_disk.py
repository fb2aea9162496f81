"""Tables that stay on disk give the model that tables in memory give."""

import datetime as dt
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from draws import quick
from fit.test_ordinal import SETTINGS as OF_LEVELS
from fit.test_ordinal import grades
from made_tables import written
from rareclass.errors import InputError
from rareclass.fit import rows_on_disk as fit_memory
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.rows_on_disk import RowsOnDisk, encode_on_disk, plan_memory, sample_of
from rareclass.fit.training import train
from rareclass.fit.training_set import FitSettings, read_training_set
from rareclass.model.facts import facts_as_json
from rareclass.tables.table_file import open_table

SETTINGS = FitSettings(target="y", method=RankRCMethod(0.01), folds=2)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr("rareclass.encoding.training_table.batch_rows_for", lambda n_columns: 130)


def messy(path, n_rows=700):
    rng = np.random.default_rng(0)
    rare = rng.random(n_rows) < 0.1
    day = dt.datetime(2024, 1, 1)
    table = pl.DataFrame(
        {
            "amount": rng.normal(0, 1, n_rows) + 1.5 * rare,
            "small": pl.Series(rng.normal(size=n_rows), dtype=pl.Float32),
            "count": rng.integers(0, 5, n_rows),
            "key": np.arange(n_rows) * 3,
            "when": [day + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 9**6, n_rows)],
            "city": rng.choice(["a", "b", "c", "none"], n_rows),
            "shop": [f"s{k}" for k in rng.integers(0, 80, n_rows)],
            "note": [f"the {k} lamps of {k * 7 % 13} rooms" for k in range(n_rows)],
            "always": 1.0,
            "y": np.where(rare, "bad", "good"),
        }
    ).with_columns(
        amount=pl.when(pl.int_range(n_rows) % 50 == 7).then(None).otherwise(pl.col("amount")),
        y=pl.when(pl.int_range(n_rows) % 90 == 1).then(None).otherwise(pl.col("y")),
        key=pl.int_range(n_rows) * 3,
    )
    again = table[100:130].with_columns(key=pl.int_range(30) + 9**5)
    return written(pl.concat([table, again]), path, 200)


def both(path, settings=SETTINGS):
    disk = replace(settings, on_disk=True)
    return [read_training_set(open_table(path), each) for each in (settings, disk)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_rows_are_the_same(tmp_path, suffix):
    memory, disk = both(messy(tmp_path / f"t{suffix}"))
    assert isinstance(disk.rows, RowsOnDisk)
    assert disk.columns == memory.columns
    assert {column.kind for column in disk.columns} >= {"number", "text", "date", "id-like"}
    assert disk.target == memory.target
    assert (disk.n_copies, disk.n_unlabelled) == (memory.n_copies, memory.n_unlabelled)
    assert disk.n_copies > 20
    np.testing.assert_array_equal(disk.rare, memory.rare)
    assert disk.weight is not None
    assert memory.weight is not None
    np.testing.assert_array_equal(disk.weight, memory.weight)
    assert disk.rows.frame().equals(memory.rows)
    chosen = np.array([3, 3, 8, 400, 601])
    assert disk.rows[chosen].frame().equals(memory.rows[chosen])


@pytest.mark.parametrize(
    ("name", "make", "settings"),
    quick(
        1,
        [
            ("t.parquet", grades, OF_LEVELS),
            ("t.csv", grades, OF_LEVELS),
            ("t.parquet", messy, SETTINGS),
            ("t.parquet", messy, replace(SETTINGS, holdout=0.0, weigh_copies=False)),
            ("t.parquet", messy, replace(SETTINGS, method=RankRCMethod())),
        ],
    ),
)
@pytest.mark.sampled(0)
def test_the_model_is_the_same(tmp_path, name, make, settings):
    memory, disk = both(make(tmp_path / name), settings)
    assert isinstance(disk.rows, RowsOnDisk)
    assert disk.target == memory.target
    np.testing.assert_array_equal(disk.y, memory.y)
    one, other = train(memory, settings), train(disk, replace(settings, on_disk=True))
    assert other.method == one.method
    assert other.summary == one.summary
    assert other.notes == one.notes
    coef = [each.content.estimator.dual_coef_ for each in (other, one)]
    np.testing.assert_allclose(*coef, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(other.content.thresholds, one.content.thresholds, rtol=1e-7)
    forget = {"date", "quantiles", "held_out", "rule"}
    for name, value in facts_as_json(one.content.facts).items():
        if name not in forget:
            assert facts_as_json(other.content.facts)[name] == value, name
    quantiles = [each.content.facts.quantiles for each in (other, one)]
    np.testing.assert_allclose(*quantiles, rtol=1e-7, atol=1e-9)
    if one.estimate is not None:
        assert [*other.estimate.measures] == [*one.estimate.measures]
        for name, measured in other.estimate.measures.items():
            assert measured == pytest.approx(one.estimate.measures[name], rel=1e-7)


@pytest.mark.sampled(0)
def test_encoded_rows_are_closed_after_their_training(tmp_path, monkeypatch):
    encoded = []

    def watched(*given):
        encoded.append(encode_on_disk(*given))
        return encoded[-1]

    monkeypatch.setattr("rareclass.fit.training.encode_on_disk", watched)
    settings = replace(SETTINGS, on_disk=True)
    train(read_training_set(open_table(messy(tmp_path / "t.parquet")), settings), settings)
    assert len(encoded) == 2
    for rows in encoded:
        with pytest.raises(InputError, match="were closed"):
            rows.take(slice(0, 1))


@pytest.mark.thorough
def test_a_sample_for_the_encoder_is_nearly_as_good(tmp_path):
    path = messy(tmp_path / "t.parquet", 3000)
    # Letter groups of a text column need more rows than that.
    whole_settings = replace(SETTINGS, drop=("note",))
    memory, _ = both(path, whole_settings)
    settings = replace(whole_settings, on_disk=True, most_sampled=900)
    disk = read_training_set(open_table(path), settings)
    one, other = train(memory, whole_settings), train(disk, settings)
    assert one.estimate.measures["AUC"].value > 0.75
    assert other.estimate.measures["AUC"].value > one.estimate.measures["AUC"].value - 0.01
    # Standardised as the whole is, although rare rows are more frequent in the sample.
    sampled, whole = (each.content.encoder.statistics_.summaries for each in (other, one))
    assert sampled.mean[0] == pytest.approx(whole.mean[0], abs=0.1 * whole.deviation[0])


def test_rows_of_the_sample_are_written_as_the_fit_gave_them(tmp_path):
    class Fake:
        """Negative in a fit, positive after it."""

        def fit_transform(self, frame, rare, weight, n_rows):
            self.seen = (rare, weight, n_rows)
            return -np.array(frame.to_numpy())

        def transform(self, frame):
            return np.array(frame.to_numpy())

    n = 1000
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": np.arange(n) + 0.5, "y": np.arange(n) % 50 == 0}).write_parquet(path)
    data = read_training_set(open_table(path), replace(SETTINGS, on_disk=True, most_sampled=120))
    assert isinstance(data.rows, RowsOnDisk)
    encoder, copies = Fake(), np.arange(n) % 3 + 1.0
    X = encode_on_disk(encoder, data.rows, data.y, data.rare, copies, 0).take(slice(None))[:, 0]
    np.testing.assert_array_equal(abs(X), np.arange(n) + 0.5)
    sample, stands_for = sample_of(120, data.rare, copies, 0)
    np.testing.assert_array_equal(np.flatnonzero(X < 0), sample)
    rare, weight, n_rows = encoder.seen
    assert n_rows == n
    assert stands_for is not None
    np.testing.assert_array_equal(rare, data.rare[sample])
    np.testing.assert_array_equal(weight, stands_for)
    np.testing.assert_array_equal(weight[rare == 1], copies[data.rare])


def test_zeros_of_both_signs_are_copies(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [0.0, -0.0, 1.5, None, None], "y": [*"uuvuu"]}).write_parquet(path)
    memory, disk = both(path)
    assert disk.weight.tolist() == memory.weight.tolist() == [2, 1, 2]


def test_the_same_faults_are_found_and_a_target_of_numbers_before_it_fills_the_memory(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("rareclass.rows.decoding.MOST_LABELS", 100)
    settings = replace(SETTINGS, on_disk=True)
    path = tmp_path / "t.parquet"

    def said(table):
        table.write_parquet(path)
        with pytest.raises(InputError) as caught:
            read_training_set(open_table(path), settings)
        return str(caught.value)

    x = pl.Series("x", np.arange(500) + 0.5)
    labels = pl.Series("y", np.arange(500) % 9 == 0)
    assert "one class only" in said(pl.DataFrame([x, pl.Series("y", ["u"] * 500)]))
    assert "No row has a target" in said(pl.DataFrame([x, pl.Series("y", [None] * 500)]))
    assert "no column to learn" in said(pl.DataFrame([pl.Series("x", [1.0] * 500), labels]))
    with_infinity = x.scatter(333, np.inf)
    assert "row 334" in said(pl.DataFrame([with_infinity, labels]))
    numbers = pl.DataFrame([x, pl.Series("y", np.arange(500))])
    assert "more than 100 different values" in said(numbers)


def test_large_tables_stay_on_disk_by_themselves(tmp_path):
    pl.DataFrame({"x": np.zeros(2_000_000), "y": np.zeros(2_000_000)}).write_parquet(
        tmp_path / "t.parquet", compression="uncompressed"
    )
    file = open_table(tmp_path / "t.parquet")
    assert not plan_memory(file, 4 << 30).on_disk
    assert not plan_memory(file, 1 << 29).on_disk
    small = tmp_path / "s.parquet"
    pl.DataFrame({f"x{k}": np.zeros(200_000) for k in range(40)}).write_parquet(small)
    plan = plan_memory(open_table(small), 240 << 20)
    assert plan.on_disk
    assert plan.needed < 240 << 20
    assert fit_memory.LEAST_SAMPLED <= plan.most_sampled < 200_000
    assert plan.kernel_memory >= 64 << 20
    with pytest.raises(InputError, match="needs about"):
        plan_memory(open_table(small), 80 << 20)
