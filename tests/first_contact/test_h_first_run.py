"""The first fit on a machine chooses what later fits choose: compiling is not learning."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest
from numba.core import event

from ensemble.quick_members import Clock, MeanDifference, Slow
from rareclass import RareClassifier, compiling, machine
from rareclass.compiling import compiled_seconds
from rareclass.ensemble.cross_fitting import TimeLimit

RNG = np.random.default_rng(3)
Y = np.repeat([1, 0], [30, 170])
X = RNG.normal(size=(200, 4)) + Y[:, None]


@dataclass(frozen=True)
class Compiling(MeanDifference):
    clock: Clock | None = None
    compiles: float = 0.0
    takes: float = 0.1

    def learn(self, X, is_rare, weight, seed, n_jobs):
        if not self.clock.rows:
            self.clock.rows.append(len(X))
            with event.trigger_event("numba:compiler_lock"):
                self.clock.now += self.compiles
        self.clock.now += self.takes
        return super().learn(X, is_rare, weight, seed, n_jobs)


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    monkeypatch.setattr(time, "perf_counter", one.perf_counter)
    return one


@pytest.mark.parametrize("compiles", [0.0, 5.0, 500.0])
def test_compiling_takes_nothing_of_the_budget(clock, compiles):
    first = Compiling(clock=clock, compiles=compiles)
    others = [Slow(name, clock, 0.2) for name in ("second", "third")]
    model = RareClassifier(time_budget=20.0, members=[first, *others], cv=3, n_jobs=1).fit(X, Y)
    assert set(model.leaderboard_["member"]) == {first.name, "second", "third"}
    assert not model.without_time_
    assert max(model.leaderboard_["seconds"]) < 1.0


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_compiling_within_compiling_counts_once(clock, depth):
    limit, before = TimeLimit.from_now(10.0), compiled_seconds()
    events = [event.trigger_event("numba:compiler_lock") for _ in range(depth)]
    for each in events:
        each.__enter__()
        clock.now += 1.0
    assert compiled_seconds() - before == pytest.approx(depth)  # while it goes on, too
    for each in reversed(events):
        each.__exit__(None, None, None)
    clock.now += 3.0
    assert compiled_seconds() - before == pytest.approx(depth)
    assert limit.left == pytest.approx(7.0)


@pytest.fixture
def notice(monkeypatch):
    monkeypatch.setattr(compiling._notice, "_before", 0.0)
    monkeypatch.setattr(compiling._notice, "_is_told", False)


def _lines_after(seconds, clock, capfd):
    with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
        clock.now += seconds
    return capfd.readouterr().err.splitlines()


@pytest.mark.usefixtures("notice")
@pytest.mark.parametrize("is_cached", [True, False])
def test_a_command_tells_once_that_it_compiles_for_long(clock, capfd, monkeypatch, is_cached):
    monkeypatch.setattr(machine, "_hushed", False)
    monkeypatch.setattr(compiling, "_is_cached", is_cached)
    assert not _lines_after(0.6, clock, capfd)
    (line,) = _lines_after(0.6, clock, capfd)
    assert ("NUMBA_CACHE_DIR" in line) != is_cached
    assert not _lines_after(9.0, clock, capfd)


@pytest.mark.usefixtures("notice")
@pytest.mark.parametrize("hushed", [True, None])
def test_a_quiet_command_and_python_without_a_bar_tell_nothing(clock, capfd, monkeypatch, hushed):
    monkeypatch.setattr(machine, "_hushed", hushed)
    assert not _lines_after(9.0, clock, capfd)


COMPILE = """
from rareclass import compiling, machine

machine.hush(False)
compiling._LONG_SECONDS = 0.0

@compiling.njit(cache=True)
def add(a, b):
    return a + b

assert add(1, 2) == 3
"""


def _run(*arguments, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, check=True, capture_output=True, text=True
    )


def test_a_process_that_reads_compiled_code_does_not_tell_that_it_compiles(tmp_path):
    script = tmp_path / "adds.py"
    script.write_text(COMPILE)
    told = [_run(script, cache=tmp_path / "cache").stderr.splitlines() for _ in range(2)]
    assert [len(lines) for lines in told] == [1, 0]


FIT = """
import json, sys
import numpy as np
from rareclass import RareClassifier
rng = np.random.default_rng(0)
y = rng.random(1500) < 0.05
X = rng.normal(size=(1500, 5)) + y[:, None]
model = RareClassifier(random_state=0, verbose=False).fit(X, y)
print(json.dumps([sorted(set(model.leaderboard_["member"])), sorted(model.without_time_)]))
"""


# Files of compiled functions after a first fit, one for each function and kinds of arguments.
MOST_COMPILED = 40


@pytest.mark.thorough
def test_first_and_second_run_on_a_machine_learn_the_same_members(tmp_path):
    runs, counts = [], []
    for _ in range(2):
        runs.append(json.loads(_run("-c", FIT, cache=tmp_path / "cache").stdout))
        counts.append(len(list((tmp_path / "cache").rglob("*.nbc"))))
    assert runs[0] == runs[1]
    assert not runs[0][1]
    assert len(runs[0][0]) >= 8
    assert counts[0] == counts[1] <= MOST_COMPILED
