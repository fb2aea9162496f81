"""Which room may import which: arrows go down only, and no files import each other."""

import ast
from functools import cache

from source_trees import ROOT, trees

# From the ground up; a room imports rooms named before it, and itself.
GROUND = "errors", "findings", "lazy_names", "compiling", "remote", "files", "scratch_file"
ROOMS = (
    (*GROUND, "machine", "parameters", "theory", "stored", "table_block"),
    ("labels",),
    ("tables",),
    ("rows",),
    ("folds",),
    ("kernels",),
    ("metrics",),
    ("decide",),
    ("encoding",),
    ("estimators",),
    ("ranking",),
    ("moments",),
    ("hyperball",),
    ("online",),
    ("ensemble",),
    ("explain",),
    ("audit",),
    ("model",),
    ("fit", "stream"),
    ("opening",),
    ("compare",),
    ("report", "hunt", "review"),  # a hunt draws its balls by a display, a report reads hunts
    ("serving",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}


def modules():
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports_of(name):
    found = set()
    for node in ast.walk(trees()[MODULES[name].relative_to(ROOT).as_posix()]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rareclass"):
            module = node.module.removeprefix("rareclass").removeprefix(".")
            inner = {f"{module}.{alias.name}".lstrip(".") for alias in node.names}
            found |= (inner & MODULES.keys()) or {module}
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names if alias.name.startswith("rareclass."))
            found |= {name.removeprefix("rareclass.") for name in names}
    return found & MODULES.keys() - {name}


@cache
def imports():
    """What each module imports, worked out when a test asks, not wherever tests are collected."""
    return {name: imports_of(name) for name in MODULES}


def a_circle(graph):
    done = set()

    def walk(node, trail):
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return None
        for other in sorted(graph[node]):
            circle = walk(other, [*trail, node])
            if circle:
                return circle
        done.add(node)
        return None

    return next((circle for node in sorted(graph) if (circle := walk(node, []))), None)


def room_of(name):
    return name.split(".")[0]


def test_every_room_has_its_floor():
    assert {room_of(name) for name in MODULES} - {""} == FLOOR.keys()


def test_imports_go_down_only():
    upward = [
        f"{name} -> {other}"
        for name, others in sorted(imports().items())
        for other in sorted(others)
        # The package's face hands out names of all rooms, on first use.
        if name and other and FLOOR[room_of(other)] > FLOOR[room_of(name)]
    ]
    assert not upward


def test_compiled_functions_see_files_of_their_folder_only():
    """A change elsewhere would leave compiled code of before in its file."""
    for name, others in imports().items():
        folder, _, file = name.rpartition(".")
        if file.endswith("_jit"):
            near = {other for other in others if other.rpartition(".")[0] == folder}
            assert others - near <= {"compiling"}, name
            assert all(other.endswith("_jit") for other in near), name


def test_no_files_import_each_other():
    assert a_circle(imports()) is None


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}}
    assert a_circle(graph) == ["b", "c", "b"]


def test_folders_of_a_room_do_not_import_each_other():
    """A folder inside a room stands above or below its neighbours, too."""
    folders = {".".join(name.split(".")[:2]) for name in MODULES if name.count(".") > 1}
    graph = {folder: set() for folder in folders}
    for name, others in imports().items():
        for other in others:
            here, there = (".".join(each.split(".")[:2]) for each in (name, other))
            if here != there and {here, there} <= folders:
                graph[here].add(there)
    assert a_circle(graph) is None
