"""Which test runs which function: noted once without a fault, so that each fault is judged by the
tests that can see it, the quickest first.

A fault in a function is left to the tests that call it, and to the rest of their file where its
tests share what they made. A fault in compiled code, in which nobody looks, is left to those that
call functions of the modules that name it. What is not in a function, or is called while tests are
collected, is left to every test of the room; those that call the module go first.
"""

import ast
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import pytest
from numba.core import event

from mutants.changes import Change

# What runs outside of any test, and a test that starts processes, in which nobody looks.
COLLECTING, ANYTHING = "", "*"
_STARTS = {"subprocess.Popen", "os.fork", "os.posix_spawn"}


class Reach(NamedTuple):
    """For each test of a room: its seconds, and the functions it calls as `path:line`."""

    seconds: dict[str, float]
    called: dict[str, frozenset[str]]

    def order(self, change: Change, root: Path) -> tuple[list[str], bool]:
        """The tests to run first, and whether no others can see the fault."""
        place = _function_of(change, root)
        if place is not None:
            first = self._by_seconds({f"{change.path}:{place}"})
            outside = f"{change.path}:{place}" in self.called.get(COLLECTING, ())
            return first, not outside
        naming = _that_name(change.path, root)
        near = {change.path, *naming}
        functions = {each for called in self.called.values() for each in called}
        first = self._by_seconds({each for each in functions if _path(each) in near}, naming)
        return first, "_jit" in change.path

    def takes(self, tests: list[str]) -> float:
        """The seconds of these tests together."""
        return sum(self.seconds[test] for test in tests)

    def _by_seconds(self, functions: set[str], files: Container[str] = ()) -> list[str]:
        wanted = functions | {ANYTHING}
        tests = (
            test
            for test in self.seconds
            if self.called.get(test, frozenset()) & wanted or file_of(test) in files
        )
        return sorted(tests, key=self.seconds.__getitem__)


def file_of(test: str) -> str:
    """The file that a test is in."""
    return test.split("::")[0]


def _path(function: str) -> str:
    return function.rsplit(":", 1)[0]


def _function_of(change: Change, root: Path) -> int | None:
    """The first line of the function around a fault; none outside one and in compiled code."""
    if "_jit" in change.path:
        return None
    inside = [
        min([node.lineno, *(each.lineno for each in node.decorator_list)])
        for node in _outermost(ast.parse((root / change.path).read_text()))
        if node.lineno <= change.line <= (node.end_lineno or node.lineno)
    ]
    return inside[0] if inside else None


def _outermost(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _outermost(child)


def _that_name(path: str, root: Path) -> list[str]:
    """Files with the module's name in them, of the same room and of its tests."""
    room = Path(path).parts[2]
    return [
        each.relative_to(root).as_posix()
        for part in ("src/rareclass", "tests")
        for each in (root / part / room).rglob("*.py")
        if Path(path).stem in each.read_text()
    ]


class _UntracedCompiler(event.Listener):
    """Looks away while numba compiles: it calls nothing of the package, and millions of its own."""

    def __init__(self, trace: Callable[..., None]) -> None:
        self.trace, self.depth = trace, 0

    def on_start(self, event: object) -> None:
        """Stop tracing."""
        self.depth += 1
        sys.settrace(None)

    def on_end(self, event: object) -> None:
        """Trace again after the outermost function."""
        self.depth -= 1
        if not self.depth:
            sys.settrace(self.trace)


class Notes:
    """A plugin of pytest that notes what each test calls, and writes it at the end."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.source, self.root, self.path = f"{folder / 'src'}{os.sep}", folder, path
        self.seconds, self.starts, self.now = dict[str, float](), set[str](), COLLECTING
        # By identity: to compare code is slow.
        self.called = defaultdict[str, dict[int, CodeType]](dict)

    def _audit(self, event: str, _: object) -> None:
        if event in _STARTS:
            self.starts.add(self.now)

    def _call(self, frame: FrameType, *_: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self.source):
            self.called[self.now][id(code)] = code

    def _next(self, test: str) -> None:
        self.now = test
        threading.settrace(self._call)
        sys.settrace(self._call)

    def pytest_sessionstart(self) -> None:
        """Trace what runs while tests are collected, in the process that was forked off."""
        sys.addaudithook(self._audit)
        event.register("numba:compile", _UntracedCompiler(self._call))
        self._next(COLLECTING)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note the functions that a test calls, and its seconds."""
        self._next(item.nodeid)
        start = time.perf_counter()
        done = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        self._next(COLLECTING)
        return done

    def pytest_sessionfinish(self) -> None:
        """Write the notes."""
        sys.settrace(None)
        called = {
            test: [
                f"{Path(code.co_filename).relative_to(self.root).as_posix()}:{code.co_firstlineno}"
                for code in codes.values()
            ]
            for test, codes in self.called.items()
        }
        for test in self.starts:
            called.setdefault(test, []).append(ANYTHING)
        self.path.write_text(json.dumps({"seconds": self.seconds, "called": called}))


def read(path: Path) -> Reach:
    """What a run with `Notes` has written."""
    content = json.loads(path.read_text())
    return Reach(
        content["seconds"], {test: frozenset(each) for test, each in content["called"].items()}
    )


class Nearest:
    """A plugin of pytest: the tests named go first, or alone but for what shares with them.

    It writes which test was the first to fail.
    """

    def __init__(self, first: list[str], alone: bool, path: Path) -> None:
        self.rank, self.alone, self.path = {test: k for k, test in enumerate(first)}, alone, path

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run the tests nearest to the fault first, or alone."""
        last = len(self.rank)
        if self.alone:
            sharing = {
                path
                for path in {item.path for item in items}
                if any(word in path.read_text() for word in ("scope=", "@cache", ".cache"))
            }
            items[:] = [item for item in items if item.nodeid in self.rank or item.path in sharing]
        items.sort(key=lambda item: self.rank.get(item.nodeid, last))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of the first test that fails."""
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the name of the first file that cannot be collected."""
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid)
