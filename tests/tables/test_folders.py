"""The parts of a table in a folder."""

import os
from contextlib import nullcontext

import polars as pl
import pytest

from rareclass.errors import InputError
from rareclass.rows import from_table
from rareclass.tables.folders import FolderPart, find_parts, has_content, numbers_of_folders
from rareclass.tables.table_file import open_table


def test_parts_below_a_folder_are_found_in_order(tmp_path):
    names = "b/2.parquet a/9.PARQUET 1.parquet _notes/3.parquet .x.parquet c.csv"
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [str(part.relative_to(tmp_path)) for part in find_parts(tmp_path)]
    assert found == ["1.parquet", "a/9.PARQUET", "b/2.parquet"]
    assert find_parts(tmp_path / "c.csv") == [tmp_path / "c.csv"]
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="There is no table in the folder"):
        find_parts(tmp_path / "none")
    (tmp_path / "c.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r"c\.csv is CSV, .*1\.parquet is Parquet"):
        find_parts(tmp_path)
    for name in ("rareclass-stream.lock", "rejected.jsonl", "log/1.csv"):  # of a stream
        (tmp_path / "s" / "run" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "s" / "run" / name).write_text("a\n")
    (tmp_path / "s" / "1.csv").write_text("a\n")
    assert find_parts(tmp_path / "s") == [tmp_path / "s" / "1.csv"]
    assert find_parts(tmp_path / "s" / "run" / "log") == [tmp_path / "s" / "run" / "log" / "1.csv"]


@pytest.mark.parametrize(
    ("ending", "content", "has"),
    [("csv", b"", False), ("csv", b"a", True), ("parquet", b"", True), ("csv", None, False)],
)
def test_a_table_of_text_has_content_from_its_first_byte_on(ending, content, has, tmp_path):
    path = tmp_path / f"a.{ending}"
    if content is not None:
        path.write_bytes(content)
    assert has_content(path) is has


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (PermissionError(13, "Permission denied"), "tidied may not be read: Permission denied"),
        (FileNotFoundError(2, "No such file or directory"), None),
    ],
)
def test_a_closed_folder_is_named_and_one_that_goes_meanwhile_is_passed_over(
    tmp_path, monkeypatch, fault, said
):
    (tmp_path / "1.parquet").touch()
    (tmp_path / "tidied").mkdir()
    scan = os.scandir

    def refuse(path):
        if os.fspath(path).endswith("tidied"):
            raise type(fault)(*fault.args, os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=said) if said else nullcontext():
        assert find_parts(tmp_path) == [tmp_path / "1.parquet"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_folder_may_hold_more_files_than_may_be_open(tmp_path, suffix):
    resource = pytest.importorskip("resource")
    table = pl.DataFrame({"a": [1.0, 2.0], "y": [0, 1]})
    write = {"csv": table.write_csv, "parquet": table.write_parquet, "jsonl": table.write_ndjson}
    for number in range(80):
        write[suffix](tmp_path / f"{number:02}.{suffix}")
    n_open = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 200
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 40, before[1]))
    try:
        file = open_table(tmp_path)
        assert file.n_bytes > 0
        assert file.estimate_rows() >= 80
        assert sum(batch.height for batch in file.batches()) == 160
        if suffix != "jsonl":
            rows = from_table(tmp_path, target="y")
            assert rows.shape == (160, 1)
            rows.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["0", "1"], [0, 1]),
        (["0.5", "2"], [0.5, 2.0]),
        (["01", "1"], ["01", "1"]),
        (["no", "yes"], ["no", "yes"]),
    ],
)
def test_labels_in_the_names_of_folders_are_those_written(tmp_path, suffix, names, labels):
    table = pl.DataFrame({"x": [1.0, 2.0]})
    for k, name in enumerate(names):
        place = tmp_path / f"y={name}" / f"size=1.{k}" / f"1.{suffix}"
        place.parent.mkdir(parents=True)
        (table.write_csv if suffix == "csv" else table.write_parquet)(place)
    with from_table(tmp_path, target="y") as rows:
        assert rows.y.tolist() == [labels[0], labels[0], labels[1], labels[1]]
        assert isinstance(rows.y.tolist()[0], type(labels[0]))
        assert list(rows.feature_names) == ["x", "size"]


@pytest.mark.parametrize(
    ("values", "numeric"),
    [
        (["1", "-2.5e3", "inf"], True),
        (["1", "soon"], False),
        (["1", "1_0"], False),
        (["1", "nan"], False),
        (["1", None], False),
        (["1", "__HIVE_DEFAULT_PARTITION__"], False),
    ],
)
def test_a_key_is_a_number_where_all_its_values_are(tmp_path, values, numeric):
    parts = []
    for k, value in enumerate(values):
        place = tmp_path / ("x" if value is None else f"x/key={value}") / f"other={k}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("a\n1\n")
        parts.append(FolderPart(open_table(place), place, tmp_path / "x"))
    assert ("key" in numbers_of_folders(parts)) == numeric
