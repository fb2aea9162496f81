"""What pyproject.toml asks for, the lock of oldest releases, and docs/licences.md agree."""

import tomllib
from pathlib import Path

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
