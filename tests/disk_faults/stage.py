"""A folder in which a command is run again and again, and what it may leave there."""

import atexit
import os
import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from disk_faults.scenes import SCENES, SCRATCH, Scene, remembered

Snapshot = dict[str, bytes]


class Stage(NamedTuple):
    """A scene that was prepared and played once without a fault."""

    scene: Scene
    folder: Path
    copy: Path  # of the folder before the command
    read: dict[str, Any]  # outputs that the command leaves where nothing fails
    known: dict[str, Any]  # results of the slow functions

    @contextmanager
    def running(self):
        """Run commands with temporary files in the folder and slow results computed once."""
        with scratch_in(self.folder), remembered(self.scene.slow, self.known):
            yield

    def reset(self):
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.copy, self.folder, dirs_exist_ok=True)
        return self.snapshot()

    def snapshot(self):
        found = dict[str, bytes]()
        for path in self.folder.rglob("*"):
            try:
                if path.is_file() or not any(path.iterdir()):
                    name = path.relative_to(self.folder).as_posix()
                    found[name] = path.read_bytes() if path.is_file() else b""
            except FileNotFoundError:  # of a process that runs
                continue
        return found

    def n_files(self):
        return sum(len(files) + len(folders) for _, folders, files in os.walk(self.folder))

    def check_outputs(self, before, where):
        """Check that outputs are the old or the new ones, and no old line was lost."""
        after = self.snapshot()
        for output, read in self.scene.outputs.items():
            old, new = (
                {name: each for name, each in files.items() if name.partition("/")[0] == output}
                for files in (before, after)
            )
            if old == new:
                continue
            found = read(self.folder / output)
            if output not in self.scene.grows:
                assert found == self.read[output], f"{output}: {where} {str(found)[:200]}"
            elif output in old:  # a file to which lines are added
                assert new[output].startswith(old[output]), f"{output}: {where}"

    def check_others(self, before, where):
        """Check that files other than the outputs are as they were, and no others came."""
        after = self.snapshot()
        for name in before.keys() | after.keys():
            if name.partition("/")[0] not in self.scene.outputs:
                assert after.get(name) == before.get(name), f"{name}: {where}"


@cache
def stage_of(name):
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk takes its time to sync
    scene, root = SCENES[name], Path(tempfile.mkdtemp(prefix="rareclass-test-", dir=memory))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    folder, known = root / "stage", dict[str, Any]()
    (folder / SCRATCH).mkdir(parents=True)
    scene.prepare(folder)
    shutil.copytree(folder, root / "copy")
    with scratch_in(folder), remembered(scene.slow, known):
        result = scene.run(folder)
    assert result.exit_code == 0, result.output
    return Stage(scene, folder, root / "copy", scene.read(folder), known)


@contextmanager
def scratch_in(folder):
    """Have temporary files below a folder, and no plain methods trained beside a model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / SCRATCH))
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
        yield
