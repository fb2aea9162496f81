"""A command that is killed at any moment leaves the last good state, and the next run succeeds."""

import multiprocessing
import os
import random
import shutil
import sys
import time
from multiprocessing import forkserver

import pytest

from disk_faults.scenes import SCENES, SCRATCH, remembered
from disk_faults.stage import scratch_in, stage_of
from draws import thorough

_KILLS, _CASES = 25, 8


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    many = ["disk_faults.imported"] if thorough() else []
    context.set_forkserver_preload(["disk_faults.scenes", *many, __name__])
    with pytest.MonkeyPatch.context() as patch:  # it does not have the paths of pytest by itself
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


def play(name, folder, known):
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with scratch_in(folder), remembered(SCENES[name].slow, known):
        os._exit(SCENES[name].run(folder).exit_code)


def kill_once(stage, processes, moments):
    """Kill the command: at any moment, or soon after it has begun to write; then run it again."""
    before, n_files = stage.reset(), stage.n_files()
    process = processes.Process(target=play, args=(stage.scene.name, stage.folder, stage.known))
    process.start()
    if moments.random() < 0.3:
        process.join(moments.uniform(0.0, 0.5))
    else:
        while process.is_alive() and stage.n_files() == n_files:
            time.sleep(0.001)
        process.join(moments.uniform(0.0, 0.05))
    process.kill()
    process.join()
    assert process.exitcode in (0, -9)
    where = f"{stage.scene.name} killed"
    stage.check_outputs(before, where)
    shutil.rmtree(stage.folder / SCRATCH)  # the system's to empty
    (stage.folder / SCRATCH).mkdir()
    with stage.running():
        stage.scene.run_again(stage.folder)
    assert stage.scene.read(stage.folder) == stage.read
    stage.check_others(before, where)
    hidden = [path.name for path in stage.folder.rglob(".*")]
    assert not hidden, where


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SCENES)
def test_a_kill(name, processes):
    kill_once(stage_of(name), processes, random.Random(name))


@pytest.mark.thorough
@pytest.mark.parametrize("case", range(_CASES))
@pytest.mark.parametrize("name", SCENES)
def test_kills_at_random_moments(name, case, processes):
    moments = random.Random(f"{name} {case}")
    for _ in range(_KILLS):
        kill_once(stage_of(name), processes, moments)
