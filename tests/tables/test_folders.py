"""The parts of a table in a folder."""

import os

import pytest

from rareclass.errors import InputError
from rareclass.tables.folders import find_parts


def test_parts_below_a_folder_are_found_in_order(tmp_path):
    for name in (
        "b/2.parquet",
        "a/9.PARQUET",
        "1.parquet",
        "_notes/3.parquet",
        ".x.parquet",
        "c.csv",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [str(part.relative_to(tmp_path)) for part in find_parts(tmp_path, "parquet")]
    assert found == ["1.parquet", "a/9.PARQUET", "b/2.parquet"]
    assert find_parts(tmp_path / "c.csv", "parquet") == [tmp_path / "c.csv"]
    with pytest.raises(InputError, match="There is no JSON lines file in the folder"):
        find_parts(tmp_path, "jsonl")
    (tmp_path / "c.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r"c\.csv is CSV, .*1\.parquet is Parquet"):
        find_parts(tmp_path)


def test_a_folder_that_may_not_be_read_is_not_left_out(tmp_path, monkeypatch):
    (tmp_path / "1.parquet").touch()
    (tmp_path / "closed").mkdir()
    scan = os.scandir

    def refuse(path):
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match="closed may not be read: Permission denied"):
        find_parts(tmp_path, "parquet")
