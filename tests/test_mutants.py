"""Faults are put where code runs, and go to the tests that can see them, the quickest first."""

import json

import pytest

from mutants.__main__ import ALL_ROOMS, BESIDES, EXPLAINED, GAP, KINDS, ROOT, draw, explained, keep
from mutants.changes import Change, changed, changes_of, named
from mutants.reach import ANYTHING, COLLECTING, Reach

SOURCE = '''"""A module of 3 lines."""

LEAST, MOST = 2, 1e300


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
def module(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def test_each_place_has_its_fault(module):
    found = {(each.before, each.after) for each in changes_of(module, module.parent)}
    assert found == {
        ("2", "3"),
        ("1e+300", "2e+300"),
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


NAMED = """LEAST, MOST = 1, 1

class Box:
    size: int = 1

    def first(self, a):
        return a + 1

    def second(self, a):
        def inside(b):
            limit = 1
            return b < limit

        return inside(a) + 1 + 1
"""


def names_of(source, folder):
    path = folder / "named.py"
    path.write_text(source)
    return [name.removeprefix("named.py::") for name in named(changes_of(path, folder))]


def test_faults_are_named_by_what_they_are_in(tmp_path):
    assert [name for name in names_of(NAMED, tmp_path) if ": 1 -> 2" in name] == [
        "(LEAST, MOST): 1 -> 2 #1",
        "(LEAST, MOST): 1 -> 2 #2",
        "Box.size: 1 -> 2 #1",
        "Box.first: 1 -> 2 #1",
        "Box.second.inside: 1 -> 2 #1",
        "Box.second: 1 -> 2 #1",
        "Box.second: 1 -> 2 #2",
    ]


def test_a_fault_is_the_only_change(module):
    for each in changes_of(module, module.parent):
        text = changed(SOURCE, each)
        compile(text, "module.py", "exec")
        lines = zip(SOURCE.splitlines(), text.splitlines(), strict=True)
        assert [k for k, (a, b) in enumerate(lines, 1) if a != b] == [each.line]


def test_a_fault_of_another_text_does_not_fit():
    with pytest.raises(ValueError, match=r"module.py:3 does not hold 7"):
        changed(SOURCE, Change("module.py", 3, 8, "7", "8"))


MODULE, COMPILED = "src/rareclass/metrics/area.py", "src/rareclass/metrics/_area_jit.py"
TEXT = "from rareclass.metrics import _area_jit\n\n\n@cache\ndef area(a):\n    return 2 * a\n"


@pytest.fixture
def root(tmp_path):
    for path, text in ((MODULE, TEXT), (COMPILED, "def doubled(a):\n    return 2 * a\n")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "tests" / "metrics").mkdir(parents=True)
    return tmp_path


def known(**more):
    seconds = {"t.py::slow": 2.0, "t.py::quick": 1.0, "t.py::other": 0.1}
    called = {"t.py::slow": {f"{MODULE}:4"}, "t.py::quick": {f"{MODULE}:4", "src/b.py:1"}}
    return Reach(seconds, {test: frozenset(each) for test, each in called.items()} | more)


@pytest.mark.parametrize(
    ("path", "line", "alone"),
    [(MODULE, 6, True), (COMPILED, 2, True), (MODULE, 1, False)],
    ids=["function", "compiled", "module"],
)
def test_the_tests_that_can_see_a_fault(root, path, line, alone):
    fault = Change(path, line, 0, "2", "3")
    assert known().order(fault, root) == (["t.py::quick", "t.py::slow"], alone)


def test_what_runs_unseen_can_see_any(root):
    fault = Change(MODULE, 6, 0, "2", "3")
    first, alone = known(**{"t.py::other": frozenset({ANYTHING})}).order(fault, root)
    assert (first[0], alone) == ("t.py::other", True)
    assert not known(**{COLLECTING: frozenset({f"{MODULE}:4"})}).order(fault, root)[1]


def test_counts_and_survivors_are_kept(tmp_path):
    path = tmp_path / "kept.json"
    path.write_text('{"seeds": {}}')
    fault = Change(MODULE, 6, 0, "2", "3")._asdict()
    gap = {**fault, "caught": False, "tried": ["room"], "seconds": 1.0}
    first = {"a": {**fault, "caught": True, "tried": ["room"]}, "b": gap, "c": gap}
    keep(7, first, path)
    kept = json.loads(path.read_text())["seeds"]["7"]
    room = MODULE.split("/")[2]
    assert kept["rooms"] == {room: {"faults": 3, "first": 1, "now": 1}}
    assert kept["survivors"]["c"] == {**fault, "tried": ["room"], "kind": GAP}
    again = {"b": {**gap, "caught": True, "tried": ["room", "other tests"]}, "c": gap}
    keep(7, again, path)
    kept = json.loads(path.read_text())["seeds"]["7"]
    assert kept["rooms"] == {room: {"faults": 3, "first": 1, "now": 2}}
    assert list(kept["survivors"]) == ["c"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("room", ALL_ROOMS)
def test_each_room_has_faults_and_tests_to_catch_them(room):
    drawn = draw(3, 7, [room]).values()
    assert {each.path.split("/")[2] for each in drawn} == {room}
    assert list((ROOT / "tests" / room).glob("test_*.py"))
    assert all((ROOT / path).exists() for path in BESIDES.get(room, ()))


def test_survivors_are_explained_once_and_by_a_known_kind():
    reasons = explained()
    assert EXPLAINED.read_text().count("[[survivor]]") == len(reasons)
    assert {kind for kind, _ in reasons.values()} <= set(KINDS) - {GAP}
    assert all(why for _, why in reasons.values())
