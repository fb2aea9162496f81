"""Every `InputError` of the package says which kind of error it is."""

import ast

from rareclass.errors import ErrorKind, InputError
from source_trees import nodes, room_of


def has_kind(call):
    return len(call.args) > 2 or any(each.arg in ("kind", None) for each in call.keywords)


def errors_without_kind():
    """Places that raise an `InputError` and leave its kind to the default."""
    return [
        (room_of(path), f"{path}:{node.lineno}")
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "InputError"
        and not has_kind(node)
    ]


def test_every_error_names_its_kind():
    assert [place for _, place in errors_without_kind()] == []


def test_an_error_carries_its_facts():
    error = InputError("no 'x'.", "Give it.", ErrorKind.CELL, column="age", row=3, value="x")
    assert str(error) == "no 'x'. Give it."
    assert (error.kind, error.column, error.row, error.value) == (ErrorKind.CELL, "age", 3, "x")
