"""Tables that are worked out while they are read give the rows of the table in memory."""

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from rareclass import RankRC
from rareclass.errors import InputError
from rareclass.rows import from_lazy
from rareclass.rows import readers as lazy_module

RNG = np.random.default_rng(5)
TABLE = pl.DataFrame(
    {
        "a": RNG.normal(size=700),
        "b": RNG.integers(0, 9, 700),
        "ok": RNG.random(700) < 0.5,
        "w": 1.0 + np.arange(700) % 3,
        "y": np.where(np.arange(700) % 20 == 3, "rare", "rest"),
    }
)
KINDS = {
    "polars": lambda: TABLE.lazy(),
    "narwhals": lambda: nw.from_native(TABLE.lazy()),
    "duckdb": None,
    "reader": lambda: pa.RecordBatchReader.from_stream(TABLE.to_arrow()),
}


@pytest.fixture(params=KINDS)
def frame(request, monkeypatch):
    monkeypatch.setattr(lazy_module, "_BATCH_ROWS", 64)
    if request.param == "duckdb":
        with duckdb.connect() as shop:
            shop.register("given", TABLE.to_arrow())
            yield shop.sql("SELECT * FROM given")
    else:
        yield KINDS[request.param]()


def test_rows_are_those_in_memory(frame):
    with from_lazy(frame, "y", weight="w") as rows:
        assert rows.feature_names == ("a", "b", "ok")
        assert rows.y.tolist() == TABLE["y"].to_list()
        np.testing.assert_array_equal(rows.sample_weight, TABLE["w"].to_numpy())
        np.testing.assert_array_equal(
            rows.source.take(slice(None)),
            TABLE.select("a", "b", "ok").to_numpy().astype(np.float64),
        )


def test_columns_in_the_order_asked_for(frame):
    with from_lazy(frame, columns=["b", "a"], dtype="float32") as rows:
        assert (rows.shape, rows.y) == ((700, 2), None)
        assert rows.source.take(slice(0, 1))[0, 0] == TABLE["b"][0]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"target": "z"}, "target= there is no column 'z'"),
        ({"columns": ["a", "z"]}, "columns= there is no column 'z'"),
        ({}, "column 'y' holds .*string, not numbers"),
    ],
)
def test_what_cannot_be_taken_is_named(frame, how, said):
    with pytest.raises(InputError, match=said):
        from_lazy(frame, **how)


def test_a_model_learns_from_steps_not_yet_taken():
    steps = TABLE.lazy().with_columns(c=pl.col("a") * pl.col("b")).filter(pl.col("ok"))
    with from_lazy(steps, "y", columns=["a", "b", "c"]) as rows:
        scores = RankRC(lam=1.0).fit_rows(rows).score_samples(rows)
    table = steps.collect()
    alike = RankRC(lam=1.0).fit(table.select("a", "b", "c"), table["y"].to_numpy() == "rare")
    np.testing.assert_allclose(
        np.abs(scores), np.abs(alike.score_samples(table.select("a", "b", "c")))
    )


def test_cells_and_rows_that_are_not_there():
    with pytest.raises(InputError, match="'a' is empty at row 3"):
        from_lazy(pl.LazyFrame({"a": [1.0, 2.0, None]}))
    with pytest.raises(InputError, match="the LazyFrame has columns but no rows"):
        from_lazy(TABLE.lazy().filter(pl.col("a") > 1e9), "y")
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        from_lazy(TABLE.lazy().select(pl.col("nowhere")))


@pytest.mark.parametrize("given", [TABLE, [[1.0]], "rows.csv"])
def test_what_is_no_lazy_table(given):
    with pytest.raises(InputError, match="no table that is read in parts"):
        from_lazy(given)


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_rows():
    import subprocess
    import sys

    code = """
import resource, sys
import polars as pl
from rareclass.rows import from_lazy
n = int(sys.argv[1])
frame = pl.LazyFrame({"k": [0]}).select(pl.int_range(0, n).alias("k"))
frame = frame.with_columns(*((pl.col("k") * i).cast(pl.Float64).alias(f"x{i}") for i in range(8)))
rows = from_lazy(frame)
assert rows.shape == (n, 9)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""
    small, large = (
        int(subprocess.check_output([sys.executable, "-c", code, str(n)]))
        for n in (500_000, 6_000_000)
    )
    assert large - small < 150  # MiB: the rows are 432 MB
