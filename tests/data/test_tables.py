"""Files of any size are read in order, in batches, with little memory."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rareclass.data.csv_file import CsvFile
from rareclass.data.parquet_file import ParquetFile
from rareclass.data.svmlight_file import SvmlightFile
from rareclass.data.tables import TableFile, open_table


def numbered(n_rows: int) -> pl.DataFrame:
    return pl.DataFrame({"k": np.arange(n_rows), "word": [f"w,{k}\nx" for k in range(n_rows)]})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batches_keep_order_and_cells(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    table = numbered(5000)
    table.write_csv(path) if suffix == ".csv" else table.write_parquet(path, row_group_size=777)
    file: TableFile = open_table(path)  # type: ignore[assignment]
    batches = list(file.batches(batch_rows=300))
    assert all(batch.height <= 300 for batch in batches)
    together = pl.concat(batches)
    assert together["k"].cast(pl.Int64).to_list() == table["k"].to_list()
    assert together["word"].to_list() == table["word"].to_list()
    assert pl.concat(file.batches(["word"])).columns == ["word"]


def test_rows_are_estimated_well_enough(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": np.random.default_rng(0).normal(size=50_000), "b": 1})
    table.write_csv(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    table.write_parquet(tmp_path / "t.parquet")
    assert 45_000 < CsvFile(tmp_path / "t.csv").estimate_rows() < 55_000
    assert 25_000 < CsvFile(tmp_path / "t.csv.gz").estimate_rows() < 100_000
    assert ParquetFile(tmp_path / "t.parquet").estimate_rows() == 50_000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("näme;b\nKöln;1\nZürich;2\n".encode(encoding))
    file = CsvFile(path)
    assert file.columns == ["näme", "b"]
    assert pl.concat(file.batches())["näme"].to_list() == ["Köln", "Zürich"]


def test_pandas_index_gets_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",a\n0,1\n1,2\n")
    assert CsvFile(path).columns == ["column_1", "a"]


def test_windows_line_ends_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'"a","b c"\r\n"1","x ""y"""\r\n"2",""\r\n')
    frame = pl.concat(CsvFile(path).batches())
    assert frame.to_dict(as_series=False) == {"a": ["1", "2"], "b c": ['x "y"', ""]}


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_counts_features_alike_in_all_batches(tmp_path: Path, first: int) -> None:
    path = tmp_path / "t.svmlight"
    path.write_text("".join(f"{k % 2} {first + k % 5}:{k + 1}\n" for k in range(50)))
    file = SvmlightFile(path)
    whole, zero_based = file.read()
    assert zero_based == (first == 0)
    assert whole.X.shape == (50, 5)
    batches = list(file.batches(zero_based, 5, batch_rows=7))
    np.testing.assert_array_equal(
        np.vstack([batch.X.toarray() for batch in batches]), whole.X.toarray()
    )


def test_reading_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    line = ",".join(["0.123456789"] * 20) + "\n"
    with path.open("w") as file:
        file.write(",".join(f"c{k}" for k in range(20)) + "\n")
        for _ in range(60):
            file.write(line * 10_000)
    assert path.stat().st_size > 130 << 20
    code = (
        "import resource, sys; from pathlib import Path;"
        "from rareclass.data.csv_file import CsvFile;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        f"rows = sum(batch.height for batch in CsvFile(Path({str(path)!r})).batches());"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "print(rows, after - before)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    rows, grown = map(int, answer.split())
    assert rows == 600_000
    assert grown < 120 << 10  # in KiB
