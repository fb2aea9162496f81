"""Whatever write of a command the system refuses: a sentence, the last good state, a way on."""

from itertools import count

import pytest

from disk_faults.refusals import Refusals, refusing_arrays, refusing_files
from disk_faults.scenes import SCENES
from disk_faults.stage import stage_of
from draws import thorough
from faults import cause_of

# Every case takes each so many-th operation.
_SHARES = 12


def play(name, refusing, at, lasting, choice=0):
    stage = stage_of(name)
    before, refusals = stage.reset(), Refusals(stage.folder, at, lasting, choice)
    with stage.running():
        with refusing(refusals):
            result = stage.scene.run(stage.folder)
        where = f"{name}, {refusals.seen[at : at + 1]} {result.output}"
        stage.check_others(before, where)
        stage.check_outputs(before, where)
        if result.exit_code:
            assert refusals.has_refused, where
            cause_of(result)
        else:  # the system may refuse what is not needed, such as a lock
            assert stage.scene.read(stage.folder) == stage.read, where
        if refusals.has_refused:
            stage.scene.run_again(stage.folder)
    assert stage.scene.read(stage.folder) == stage.read, where
    return refusals.has_refused


@pytest.mark.sampled(2)
@pytest.mark.parametrize("share", range(_SHARES))
@pytest.mark.parametrize("name", SCENES)
def test_each_operation_on_a_file(name, share):
    """One operation, or with every other case all operations from one on; both where thorough."""
    for lasting in (False, True) if thorough() else (bool(share % 2),):
        for at in count(share, _SHARES):
            if not play(name, refusing_files, at, lasting, choice=share):
                break


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SCENES)
def test_no_memory_for_an_array(name):
    """Every array at first, then ever fewer: a command makes up to thousands."""
    at, step = 0, (1.25 if thorough() else 4.0)
    while play(name, refusing_arrays, at, lasting=True):
        at = max(at + 1, int(at * step))
