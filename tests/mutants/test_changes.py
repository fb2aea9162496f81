"""Faults are put where code runs, and make another program of it."""

from pathlib import Path

import pytest

from mutants.changes import Change, changed, changes_of

SOURCE = '''"""A module of 3 lines."""

LEAST = 2


def found(a: int = 1, *, b: "list[0]" = ()) -> float:
    """Of 4 words."""
    if a < LEAST and not b:
        raise ValueError(f"{a} is less than {LEAST + 1}")
    total = 0.5
    for each in b:
        total -= each * -1
    return total / a if b else "as " + "text"
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def test_each_place_has_its_fault(module: Path) -> None:
    found = {(each.before, each.after) for each in changes_of(module, module.parent)}
    assert found == {
        ("2", "3"),
        ("a < LEAST and (not b)", "a < LEAST or not b"),
        ("a < LEAST", "a <= LEAST"),
        ("not b", "b"),
        ("0.5", "1.5"),
        ("total -= each * -1", "total += each * -1"),
        ("each * -1", "each / -1"),
        ("-1", "1"),
        ("1", "2"),
        ("total / a if b else 'as ' + 'text'", "total / a if not b else 'as ' + 'text'"),
        ("total / a", "total * a"),
    }


def test_a_fault_is_the_only_change(module: Path) -> None:
    for each in changes_of(module, module.parent):
        text = changed(SOURCE, each)
        compile(text, "module.py", "exec")
        lines = zip(SOURCE.splitlines(), text.splitlines(), strict=True)
        assert [k for k, (a, b) in enumerate(lines, 1) if a != b] == [each.line]


def test_a_fault_of_another_text_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"module.py:3 does not hold 7"):
        changed(SOURCE, Change("module.py", 3, 8, "7", "8"))
