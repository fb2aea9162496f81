"""Every module of the package, parsed once for all tests that read its source."""

import ast
from functools import cache
from pathlib import Path

import rareclass

ROOT = Path(rareclass.__file__).parent


@cache
def trees():
    """Syntax tree of each file, by its path below the package."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in sorted(ROOT.rglob("*.py"))
    }


@cache
def nodes():
    """Every node of the package, with the path of its file."""
    return [(path, node) for path, tree in trees().items() for node in ast.walk(tree)]


def room_of(path):
    """Room of a file: its first folder, or the name of a file of the ground."""
    return path.split("/")[0].removesuffix(".py")
