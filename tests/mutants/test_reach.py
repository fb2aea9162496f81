"""A fault goes to the tests that can see it, the quickest first."""

from pathlib import Path

import pytest

from mutants.changes import Change
from mutants.reach import ANYTHING, COLLECTING, Reach

MODULE, COMPILED = "src/rareclass/metrics/area.py", "src/rareclass/metrics/_area_jit.py"
TEXT = "from rareclass.metrics import _area_jit\n\n\n@cache\ndef area(a):\n    return 2 * a\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in ((MODULE, TEXT), (COMPILED, "def doubled(a):\n    return 2 * a\n")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "tests" / "metrics").mkdir(parents=True)
    return tmp_path


def known(**more: frozenset[str]) -> Reach:
    seconds = {"t.py::slow": 2.0, "t.py::quick": 1.0, "t.py::other": 0.1}
    called = {"t.py::slow": {f"{MODULE}:4"}, "t.py::quick": {f"{MODULE}:4", "src/b.py:1"}}
    return Reach(seconds, {test: frozenset(each) for test, each in called.items()} | more)


@pytest.mark.parametrize(
    ("path", "line", "alone"),
    [(MODULE, 6, True), (COMPILED, 2, True), (MODULE, 1, False)],
    ids=["function", "compiled", "module"],
)
def test_the_tests_that_can_see_a_fault(root: Path, path: str, line: int, alone: bool) -> None:
    fault = Change(path, line, 0, "2", "3")
    assert known().order(fault, root) == (["t.py::quick", "t.py::slow"], alone)


def test_what_runs_unseen_can_see_any(root: Path) -> None:
    fault = Change(MODULE, 6, 0, "2", "3")
    first, alone = known(**{"t.py::other": frozenset({ANYTHING})}).order(fault, root)
    assert (first[0], alone) == ("t.py::other", True)
    assert not known(**{COLLECTING: frozenset({f"{MODULE}:4"})}).order(fault, root)[1]
