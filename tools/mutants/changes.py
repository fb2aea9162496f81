"""Small faults in a module: where one can be put, and the module's text with it.

The operators are the usual ones of mutation testing: a comparison, an arithmetic operator or a
logical operator becomes its neighbour, a condition its opposite, a number its successor, a
statement of accumulation its inverse, a returned value its negative.

Left alone is what no test should hold: documentation, annotations, the words of messages, what
`raise` and warnings say, and settings of numba's decorators.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
}
_LOGIC: dict[type[ast.boolop], type[ast.boolop]] = {ast.And: ast.Or, ast.Or: ast.And}


class Change(NamedTuple):
    """A fault: its place, what stood there and what stands there with it."""

    path: str
    line: int
    column: int
    before: str
    after: str
    within: str = ""  # the function by its qualified name, or what is set outside of functions


def changes_of(path: Path, root: Path) -> list[Change]:
    """Every fault that can be put into a module, in the order of its text."""
    tree = ast.parse(path.read_text())
    within = {id(node): name for node, name in _with_names(tree)}
    return [
        Change(
            path.relative_to(root).as_posix(),
            node.lineno,
            node.col_offset,
            ast.unparse(node),
            ast.unparse(replacement),
            within[id(node)],
        )
        for node in _code(tree)
        for replacement in _replacements(node)
    ]


def named(changes: Iterable[Change]) -> dict[str, Change]:
    """Faults by name: file, function, change, and its number among the same ones of the function.

    So a fault keeps its name when the code of another function changes.
    """
    found, times = dict[str, Change](), Counter[str]()
    for each in changes:
        name = f"{each.path}::{each.within}: {each.before} -> {each.after}"
        times[name] += 1
        found[f"{name} #{times[name]}"] = each
    return found


def _with_names(
    tree: ast.AST, names: tuple[str, ...] = (), is_called: bool = False
) -> Iterator[tuple[ast.AST, str]]:
    """Every node with the names of the classes and functions around it, joined by dots.

    What is not called, code of modules and classes, is named by what an assignment sets.
    """
    for child in ast.iter_child_nodes(tree):
        here, inside = names, is_called
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            here, inside = (*names, child.name), not isinstance(child, ast.ClassDef)
        elif isinstance(child, (ast.Assign, ast.AnnAssign)) and not is_called:
            target = child.target if isinstance(child, ast.AnnAssign) else child.targets[0]
            here = (*names, ast.unparse(target))
        yield child, ".".join(here)
        yield from _with_names(child, here, inside)


def changed(source: str, change: Change) -> str:
    """A module's text with a fault in it; raises `ValueError` where it does not fit."""
    for node in _code(ast.parse(source)):
        if (node.lineno, node.col_offset, ast.unparse(node)) == (
            change.line,
            change.column,
            change.before,
        ):
            return _spliced(source, node, change.after)
    raise ValueError(f"{change.path}:{change.line} does not hold {change.before}")


def _spliced(source: str, node: ast.expr | ast.stmt, after: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    stop = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    text = source.encode()
    # In brackets, as the neighbours of an expression bind as they bound before.
    inserted = after if isinstance(node, ast.stmt) else f"({after})"
    return (text[:start] + inserted.encode() + text[stop:]).decode()


def _code(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Statements and expressions that run and that tests can see."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(child, ast.Call) and _name(child.func) in {"warn", "Finding", "InputError"}:
            continue
        if isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            for statement in child.body:
                yield from _of_body(statement)
        elif isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield from _with_parts(child.value)
        elif isinstance(child, (ast.expr, ast.stmt)):
            yield from _with_parts(child)
        elif not isinstance(child, ast.arguments):
            yield from _code(child)


def _of_body(statement: ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    yield from _code(ast.Module([statement], []))


def _with_parts(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    yield node
    yield from _code(node)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _replacements(node: ast.expr | ast.stmt) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        yield ast.Compare(node.left, [_COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
        yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(_LOGIC[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node.value)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp):
        yield ast.Return(ast.UnaryOp(ast.USub(), node.value))


def _other_constants(value: object) -> Iterator[ast.Constant]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):  # a large float is its own successor
        yield ast.Constant(value + 1 if value + 1 != value else 2 * value)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
