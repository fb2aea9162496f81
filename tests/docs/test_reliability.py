"""Every promise of the page names a test that is there."""

import re
from pathlib import Path

TOP = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_the_tests_that_show_a_promise_are_there():
    named = NAMED.findall((TOP / "docs" / "reliability.md").read_text())
    assert len(named) > 20
    absent = [
        f"{path}::{test}" for path, test in named
        if not (TOP / path).is_file() or f"def {test}(" not in (TOP / path).read_text()
    ]  # fmt: skip
    assert not absent
