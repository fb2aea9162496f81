"""Rules of the house that a count can hold; each limit only ever goes down."""

import ast
import re
from collections import Counter
from pathlib import Path

from rareclass.errors import ErrorKind, InputError
from source_trees import ROOT, nodes, room_of, trees

PROJECT = Path(__file__).parents[1]

# Calls of `hasattr` and `getattr`: a protocol, a base class or a default says it better.
MOST_ATTRIBUTE_TESTS = 27
# Calls of `ValueError`: of parts of a stored model, whose reader says which file is damaged, and of
# states that no caller reaches.
MOST_PLAIN_ERRORS = 100
# A docstring begins with a noun or an imperative verb, not with one of these.
PRONOUNS = (
    *("That", "Those", "It", "Its", "They", "What"),
    *("Which", "Who", "This", "These", "As", "Whether"),
)
# Words of messages that a reader must decode; plain ones are significant, against, duplicate,
# majority, given, predicted, continues. The name of an option may be one of them.
RIDDLES = re.compile(
    r"told apart|\bbeside\b|(?<!-)\bcopies\b|\bthe rest\b|asked for|in the running"
    r"|columns that count|taken for\b|at (?:its|their) word|has no use for"
    r"|\bforetold\b|\bgoes on\b|\banew\b",
    re.IGNORECASE,
)
# Lines of code of each room (neither blank, comment nor docstring), and of all files in lines. A
# change that needs more room takes it from another one in the same commit, and says why there.
MOST_CODE = {
    "cli": 2815,
    "compare": 1264,
    "decide": 1825,
    "encoding": 2710,
    "ensemble": 2918,
    "estimators": 351,
    "explain": 353,
    "fit": 1853,
    "folds": 466,
    "hunt": 850,
    "hyperball": 1823,
    "kernels": 590,
    "labels": 870,
    "metrics": 2099,
    "model": 3949,
    "moments": 1526,
    "online": 2318,
    "ranking": 3640,
    "report": 2924,
    "review": 1030,
    "rows": 1654,
    "serving": 1358,
    "single files": 2099,
    "stream": 1896,
    "tables": 4055,
}
MOST_LINES = {"src/rareclass": 72_899, "tests": 54_094, "benchmarks": 17_803}
MOST_FILES = 277
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def doubled_classes():
    names = Counter(
        node.name
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    return {name for name, times in names.items() if times > 1}


def attribute_tests():
    return [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("hasattr", "getattr")
    ]


def docstrings_with_a_pronoun_first():
    found = []
    for path, node in nodes():
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if text and text.split()[0].rstrip(",;:.") in PRONOUNS:
            found.append(f"{path}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}")
    return found


def test_a_class_name_is_defined_once():
    assert sorted(doubled_classes()) == []


def test_attributes_are_seldom_asked_for_by_name():
    places = attribute_tests()
    assert len(places) <= MOST_ATTRIBUTE_TESTS, "\n".join([f"{len(places)}:", *places])


def test_docstrings_begin_with_a_noun_or_a_verb():
    assert docstrings_with_a_pronoun_first() == []


def texts():
    loose = {id(node.value) for _, node in nodes() if isinstance(node, ast.Expr)}
    for path, node in nodes():
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and " " in node.value and id(node) not in loose:
            yield f"{path}:{node.lineno}", node.value


def test_messages_have_no_riddles():
    assert [(place, text) for place, text in texts() if RIDDLES.search(text)] == []


def test_facts_of_a_model_are_typed():
    """Only `rareclass.model.facts` knows the keys of the facts as JSON; others read attributes."""
    places = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and ast.unparse(node.value).endswith(("metadata", ".facts"))
    ]
    assert places == []


def lines_of_code(text, tree):
    lines = text.split("\n")
    idle = {k for k, each in enumerate(lines, 1) if not each.strip() or each.strip()[0] == "#"}
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            idle.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines) - len(idle)


def code_by_room():
    found = Counter()
    for path, tree in trees().items():
        room = room_of(path) if "/" in path else "single files"
        found[room] += lines_of_code((ROOT / path).read_text(), tree)
    return found


def test_code_is_counted_without_words():
    lines = ['"""Title.', "", "Words.", '"""', "# comment", "x = 1", "def f():", '    """Words."""']
    text = "\n".join([*lines, "    return 1", ""])
    assert lines_of_code(text, ast.parse(text)) == 3


def test_no_room_grows():
    found = code_by_room()
    assert {room: n for room, n in found.items() if n > MOST_CODE.get(room, 0)} == {}
    assert set(MOST_CODE) == set(found)


def test_the_project_does_not_grow():
    lines = {
        name: sum(path.read_text().count("\n") for path in (PROJECT / name).rglob("*.py"))
        for name in MOST_LINES
    }
    assert {name: n for name, n in lines.items() if n > MOST_LINES[name]} == {}
    assert len(trees()) <= MOST_FILES


def test_every_error_is_made_by_its_kind():
    """``ErrorKind.CELL.error(message, remedy)``: no file but `errors` calls the class itself."""
    calls = Counter(
        ast.unparse(node.func)
        for path, node in nodes()
        if isinstance(node, ast.Call) and path != "errors.py"
    )
    assert calls["InputError"] == 0
    assert calls["ValueError"] <= MOST_PLAIN_ERRORS


def test_an_error_carries_its_facts():
    error = ErrorKind.CELL.error("no 'x'.", "Give it.", column="age", row=3, value="x")
    assert isinstance(error, InputError)
    assert str(error) == "no 'x'. Give it."
    assert (error.kind, error.column, error.row, error.value) == (ErrorKind.CELL, "age", 3, "x")
