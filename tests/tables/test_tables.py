"""Files of any size are read in order, in batches, with little memory."""

import gzip
import os
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from command_line import in_new_process
from rareclass.encoding.training_table import TypedScratch
from rareclass.errors import ErrorKind, InputError
from rareclass.tables.reading import read_cells
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import open_table
from rareclass.tables.text_columns import CellProfile, reading_of_text


def test_rows_are_estimated_well_enough(tmp_path):
    table = pl.DataFrame({"a": np.random.default_rng(0).normal(size=50_000), "b": 1})
    table.write_csv(tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    table.write_parquet(tmp_path / "t.parquet")
    assert 45_000 < open_table(tmp_path / "t.csv").estimate_rows() < 55_000
    assert 25_000 < open_table(tmp_path / "t.csv.gz").estimate_rows() < 100_000
    assert open_table(tmp_path / "t.parquet").estimate_rows() == 50_000


CHANGES = {
    "shorter": lambda content: content[: len(content) // 2],
    "longer": lambda content: content + content[-2000:],
    "other": lambda content: content[: len(content) // 2] + content[-(-len(content) // 2) :],
    "replaced": lambda content: content.replace(b"1", b"2"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".svm"])
@pytest.mark.parametrize("how", list(CHANGES))
def test_a_table_that_is_changed_while_it_is_read_is_refused(tmp_path, suffix, how):
    path, rows = tmp_path / f"t{suffix}", range(4000)
    line = {".jsonl": '{{"a": {}, "b": 1}}\n', ".svm": "1 1:{}\n"}.get(suffix, "{},1\n")
    content = "".join(["a,b\n" * (".csv" in suffix), *map(line.format, rows)]).encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    for is_late in (False, True):  # in the first pass, and before the next
        file, written = open_table(path), path.read_bytes()
        given = {"zero_based": True} if suffix == ".svm" else {}
        if is_late:
            assert sum(1 for _ in file.batches(**given, batch_rows=1000)) == 4
        batches = file.batches(**given, batch_rows=1000)
        _ = is_late or next(batches)
        path.write_bytes(CHANGES[how](written))
        os.utime(path, (1e9, 1e9))
        with pytest.raises(InputError) as refused:
            list(batches)
        assert refused.value.kind in (ErrorKind.DAMAGED_FILE, ErrorKind.ROWS)
        path.write_bytes(written)


def written_with(separator):
    return "".join(separator.join(row) + "\n" for row in ("abc", "123", "456"))


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ('"a","b c"\r\n"1","x ""y"""\r\n"2",""\r\n', ["a", "b c"], ["1", 'x "y"', "2", ""]),
        ('\n\n"a\nnote";b\n1;2\n3;4\n', ["a\nnote", "b"], list("1234")),
        ('"a\nnote";b\r\n\r\n1;2\r\n3;4\r\n', ["a\nnote", "b"], list("1234")),
        (' \n;;\n"a\nnote";b\n1;2\n3;4\n', ["a\nnote", "b"], list("1234")),
        (",a\n0,1\n1,2\n", ["column_1", "a"], list("0112")),  # the index of pandas
        (" a , b \n1,x\n2,y\n", ["a", "b"], list("1x2y")),
        ("a,b,\n1,x,\n2,y,\n", ["a", "b", "column_3"], ["1", "x", "", "2", "y", ""]),
        *(
            (written_with(s), list("abc"), list("123456"))
            for s in (",", ";", "\t", "|", "^", ":", " ")
        ),
    ],
)
def test_text_is_read_as_it_is_written(tmp_path, text, columns, rows):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    file = open_table(path)
    assert file.columns == columns
    assert [cell for row in pl.concat(file.batches()).rows() for cell in row] == rows


@pytest.mark.parametrize(
    ("separator", "cells", "expected"),
    [
        (";", ["1,5", "-2,25", "3e1"], ["1.5", "-2.25", "3e1"]),
        (";", ["12,345", "7"], ["12.3450", "7"]),
        ("\t", ["12,345", "7,25"], ["12.3450", "7.25"]),
        (";", ["1.234,5", "7,25"], ["1.234,5", "7,25"]),  # thousands: as in every other file
        (";", ["2.500", "7,25"], ["2.500", "7,25"]),
        (";", ["0.5", "2.500", "7,25"], ["0.5", "2.500", "7.25"]),
        ("\t", ["12,345", "7"], ["12,345", "7"]),
        (";", ["1,234,567", "7,125"], ["1,234,567", "7,125"]),
        (";", ["1,5 l", "a,1"], ["1,5 l", "a,1"]),
        (",", ['"1,5"', "2"], ["1,5", "2"]),
    ],
)
def test_decimal_commas(tmp_path, separator, cells, expected):
    path = tmp_path / "t.csv"
    path.write_text(f"a{separator}b\n" + "".join(f"{cell}{separator}x\n" for cell in cells))
    assert pl.concat(open_table(path).batches())["a"].to_list() == expected


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_thousands_beside_decimal_commas_are_one_number_in_every_file(tmp_path, separator):
    cells = ["12,5", "2.500", "1.234,5", "850", "12,345"]
    pl.DataFrame({"x": cells, "y": "a"}).write_csv(tmp_path / "t.csv", separator=separator)
    read = pl.concat(open_table(tmp_path / "t.csv").batches())["x"]
    profile = CellProfile()
    profile.add(read, 1)
    reading = reading_of_text(profile).reading
    assert read_cells(read, reading, 1).to_list() == [12.5, 2500.0, 1234.5, 850.0, 12.345]
    for cell, number in zip(cells, [12.5, 2500.0, 1234.5, 850.0, 12.345], strict=True):
        few = tmp_path / "few.csv"  # whose own cells say less
        pl.DataFrame({"x": [cell], "y": "1,5"}).write_csv(few, separator=separator)
        assert read_cells(pl.concat(open_table(few).batches())["x"], reading, 1).item() == number


def test_the_last_suffix_and_the_content_say_the_format(tmp_path):
    for name in ("sales.svm.csv", "sales.parquet.csv", "plain", "log.txt"):
        (tmp_path / name).write_text("day at n\n1 12:30 3\n")
        assert open_table(tmp_path / name).format_name == "CSV"
    line = b"+1 3:0.5 17:2 # first\n"
    (tmp_path / "packed.svm.gz").write_bytes(gzip.compress(line))
    (tmp_path / "packed").write_bytes(gzip.compress(line))
    (tmp_path / "wide").write_bytes(b"1 " + b" ".join(b"%d:1" % k for k in range(20_000)))
    for name in ("packed.svm.gz", "packed", "wide"):
        file = open_table(tmp_path / name)
        assert isinstance(file, SvmlightFile)
        assert file.read()[0].X.nnz > 1


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_counts_features_alike_in_all_batches(tmp_path, first):
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


@pytest.mark.sampled(0)
def test_reading_a_large_file_takes_little_memory(tmp_path):
    path = tmp_path / "large.csv"
    line = ",".join(["0.123456789"] * 20) + "\n"
    with path.open("w") as file:
        file.write(",".join(f"c{k}" for k in range(20)) + "\n")
        for _ in range(60):
            file.write(line * 10_000)
    assert path.stat().st_size > 130 << 20
    code = (
        "import resource, sys; from pathlib import Path;"
        "from rareclass.tables.table_file import open_table;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "rows = sum(batch.height for batch in open_table(Path(sys.argv[1])).batches());"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "print(rows, after - before)"
    )
    rows, grown = map(int, in_new_process(code, path, check=True).stdout.split())
    assert rows == 600_000
    assert grown < 120 << 10  # in KiB


def test_a_disk_far_too_small_is_noticed_at_the_first_batch(tmp_path, monkeypatch):
    frame = pl.DataFrame({"x": np.arange(1000.0)})

    def start(expected_rows):
        TypedScratch(tmp_path, expected_rows=expected_rows).append(frame)

    usage = SimpleNamespace(free=1_000_000)
    monkeypatch.setattr("rareclass.scratch_file.shutil.disk_usage", lambda folder: usage)
    start(None)
    start(125_000)  # as many bytes as are free
    start(200_000)  # perhaps an overestimate
    with pytest.raises(InputError, match=r"no room.*: about 8,.* bytes are needed, 1,0"):
        start(1_000_000)
