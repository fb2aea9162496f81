"""What is shipped: the package with its types, and nothing of the tests."""

import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_the_package_and_says_that_it_is_typed(tmp_path: Path) -> None:
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
