"""What is shipped: the package with its types, and nothing of the tests."""

import os
import shutil
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_the_package_and_says_that_it_is_typed(tmp_path):
    wheels = pytest.importorskip("hatchling.builders.wheel")
    (built,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(built).namelist()
    assert "rareclass/py.typed" in names
    assert "rareclass/__init__.py" in names
    shipped = {name for name in names if ".dist-info/" not in name}
    there = {
        f"rareclass/{path.relative_to(ROOT / 'src/rareclass').as_posix()}"
        for ending in ("py", "css", "js", "html.j2")
        for path in (ROOT / "src/rareclass").rglob(f"*.{ending}")
    }
    assert shipped == there | {"rareclass/py.typed"}


def test_two_builds_of_the_same_files_are_equal_byte_for_byte(tmp_path):
    wheels = pytest.importorskip("hatchling.builders.wheel")
    built = []
    for name in ("one", "another"):  # other times of files, and another folder
        copy = tmp_path / name
        copy.mkdir()
        for each in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
            shutil.copyfile(ROOT / each, copy / each)
        shutil.copytree(ROOT / "src", copy / "src", copy_function=shutil.copyfile)
        os.utime(copy / "src/rareclass/__init__.py", (len(built), len(built)))
        (wheel,) = wheels.WheelBuilder(str(copy)).build(
            directory=str(tmp_path / f"dist-{name}"), versions=["standard"]
        )
        built.append(Path(wheel).read_bytes())
    assert built[0] == built[1]
