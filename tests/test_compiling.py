"""Compiled code that is kept in files is never that of other types or older sources."""

import importlib
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareclass import compiling

_PARTS = """
from rareclass.compiling import njit

@njit(cache=True)
def part(x):
    return x + {number}
"""
_WHOLE = """
from rareclass.compiling import njit
from {folder}._parts_jit import part

@njit(cache=True)
def whole(x):
    return 10 * part(x)

@njit(cache=True)
def first(x):
    return x[0]
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package of two files of compiled functions, and import it as a new process does."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # changed within the second
    folder = tmp_path / "compiled_here"
    folder.mkdir()

    def imported(number=1):
        texts = _PARTS.format(number=number), _WHOLE.format(folder=folder.name)
        for path, text in zip(
            (folder / "_parts_jit.py", folder / "_whole_jit.py"), texts, strict=True
        ):
            # A file that is written again is a changed one for older releases of numba.
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
        compiling._sources_beside.cache_clear()
        for name in [name for name in sys.modules if name.startswith(folder.name)]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return importlib.import_module(f"{folder.name}._whole_jit")

    yield imported
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def kept(module):
    return sorted(Path(module.__file__ or "").parent.glob("__pycache__/*.nb?*"))


def hits(function):
    return sum(function._cache_hits.values())


def test_code_is_read_by_the_next_process_until_a_file_beside_it_changes(package):
    assert package().whole(1) == 20
    again = package()
    assert again.whole(1) == 20
    assert hits(again.whole) == 1
    changed = package(number=2)
    assert changed.whole(1) == 30
    assert hits(changed.whole) == 0
    assert len(kept(changed)) == len({path.name.split(".")[1] for path in kept(changed)})


class Killed(BaseException):
    """Ends a process where it is raised."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", range(3))
def test_a_kill_at_any_write_leaves_no_code_of_older_sources(package, monkeypatch, n):
    package().whole(1)
    left, replace = [n], os.replace

    def counted(source, target):
        if str(target).endswith((".nbc", ".nbi")):
            left[0] -= 1
            if left[0] < 0:
                raise Killed
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", counted)
        with suppress(Killed):
            package(number=2).whole(1)
    assert package(number=2).whole(1) == 30


def test_two_processes_that_compile_for_different_types_at_once(package, monkeypatch):
    numbers, words = np.array([1.5, 2.5]), np.array([3, 4])
    one, other = package().first, package().first
    replace, late = os.replace, dict[str, bytes]()
    is_one = [False]

    def interrupted(source, target):
        """Let the one compile when the other begins to write; its code arrives last."""
        if is_one[0] and str(target).endswith(".nbc"):
            late[str(target)] = Path(source).read_bytes()
            return
        if not is_one[0] and not late:
            is_one[0] = True
            assert one(numbers) == 1.5
            is_one[0] = False
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        assert other(words) == 3
    assert late
    for target, content in late.items():
        Path(target).write_bytes(content)
    third = package()
    assert (third.first(words), third.first(numbers)) == (3, 1.5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [0, 10, None])
def test_damaged_files_are_compiled_anew(package, size):
    before = package()
    before.whole(1)
    assert kept(before)
    for path in kept(before):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2 if size is None else size])
    again = package()
    assert again.whole(1) == 20
    assert hits(again.whole) == 0
    third = package()
    assert third.whole(1) == 20
    assert hits(third.whole) == 1


@pytest.mark.parametrize("is_writable", [True, False])
def test_the_folder_goes_while_the_process_runs(package, monkeypatch, is_writable):
    module = package()
    module.whole.dispatcher()  # finds the folder
    folder = Path(module.__file__ or "").parent / "__pycache__"
    shutil.rmtree(folder)
    if not is_writable:
        folder.write_text("a file where the folder was")
    assert module.whole(1) == 20
    assert bool(kept(module)) == is_writable


def test_threads_that_call_functions_of_one_file_first(package, monkeypatch):
    make = compiling._Compiled._made

    def slow(self):
        time.sleep(0.05)
        return make(self)

    monkeypatch.setattr(compiling._Compiled, "_made", slow)
    module, found = package(), dict[int, Any]()

    def call(k):
        time.sleep(0.02 * k)
        try:
            found[k] = module.whole(k)
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: 10 * k + 10 for k in range(8)}


_SCORES = """
import numpy as np
from rareclass import RankRC
from rareclass.online import OAM
X = np.random.default_rng(0).normal(size=(400, 5))
y = (X[:, 0] > 1.5).astype(int)
for model in (OAM(random_state=0), RankRC()):
    print(*model.fit(X, y).score_samples(X[:9]).tolist())
"""


@pytest.mark.thorough
def test_processes_that_compile_into_one_folder_at_once(tmp_path):
    words = [sys.executable, "-c", _SCORES]
    given = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for deletes in (False, False, True):  # nothing is compiled yet, all is, and it goes meanwhile
        running = [
            subprocess.Popen(words, env=given, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        while deletes and any(each.poll() is None for each in running):
            for path in tmp_path.iterdir():
                shutil.rmtree(path, ignore_errors=True)
            time.sleep(0.05)
        found = [each.communicate()[0] for each in running]
        assert [each.returncode for each in running] == [0] * 2
        assert len(set(found)) == 1
        assert len(found[0].splitlines()) == 2
        assert deletes or list(tmp_path.rglob("*.nbc"))


_INTERRUPTED = """
import os
import signal
import sys
from pathlib import Path

from numba.core.codegen import CPUCodeLibrary

from whole_jit import whole

if os.fork() == 0:  # another process, whose code is kept
    whole(1)
    os._exit(0)
os.wait()
calls, which = [], 0

def interrupted(name):
    called = getattr(CPUCodeLibrary, name).__func__

    def hook(*given):
        calls.append(name)
        if len(calls) == which:
            signal.raise_signal(signal.SIGINT)
        return called(*given)

    setattr(CPUCodeLibrary, name, classmethod(hook))

interrupted("_object_compiled_hook")
interrupted("_object_getbuffer_hook")
while True:  # each time one call later, in a process of its own
    which += 1
    if sys.argv[1] == "anew":
        for path in Path().rglob("*.nbc"):
            path.unlink()
    if os.fork() == 0:
        try:
            whole(1)
        except KeyboardInterrupt:
            print("stopped", whole(1), flush=True)
            os._exit(0)
        print("went on" if len(calls) >= which else "all tried", flush=True)
        os._exit(1)
    if os.wait()[1]:
        break
"""


@pytest.mark.sampled(1)
@pytest.mark.skipif(os.name == "nt", reason="no fork")
@pytest.mark.parametrize("way", ["anew", "kept"])
def test_an_interrupt_while_llvm_calls_back_ends_the_call_and_nothing_else(tmp_path, way):
    (tmp_path / "whole_jit.py").write_text(_PARTS.format(number=1).replace("def part", "def whole"))
    given = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", _INTERRUPTED, way]
    done = subprocess.run(words, cwd=tmp_path, env=given, text=True, stdout=subprocess.PIPE)
    *stopped, end = done.stdout.splitlines()
    assert end == "all tried"
    assert set(stopped) == {"stopped 2"}
    assert len(stopped) > 2
