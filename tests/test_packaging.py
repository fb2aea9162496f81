"""What pyproject.toml asks for, locks and licences agree; the wheel holds the package alone."""

import os
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
NOT_OURS = ("docs", "dev")  # tools: the newest ones test the oldest releases


def _declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = list(project["dependencies"])
    for extra, lines in project["optional-dependencies"].items():
        asked += lines if extra not in NOT_OURS else []
    found = [Requirement(line) for line in asked]
    return {
        canonicalize_name(one.name): one
        for one in found
        if one.name != "rareclass" and "== 'darwin'" not in str(one.marker).replace('"', "'")
    }


def _pins(file):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pairs = [line.split(";")[0].strip().split("==") for line in lines if "==" in line]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_the_oldest_lock_pins_the_lower_bounds():
    pins = _pins("requirements-oldest.lock")
    apart = {}
    for name, one in _declared().items():
        (bound,) = one.specifier
        assert bound.operator == ">=", f"{one}: only lower bounds are tested"
        if pins.get(name) != Version(bound.version):
            apart[name] = (bound.version, str(pins.get(name)))
    assert not apart


def test_the_lock_is_no_older_than_the_lower_bounds():
    pins = _pins("requirements.lock")
    low = [str(one) for name, one in _declared().items() if name in pins
           and not one.specifier.contains(pins[name])]  # fmt: skip
    assert not low


def test_every_dependency_has_its_licence_on_the_page():
    page = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    missing = [name for name in _declared() if f"| {name} |" not in page and f" {name}" not in page]
    assert not missing


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
