"""A file that may not grow, and a disk that is full, for what libraries write by themselves."""

import errno
import os
import resource
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from disk_faults.scenes import SCENES
from disk_faults.stage import stage_of
from faults import cause_of, refused
from rareclass.errors import ErrorKind
from rareclass.stream.log import FileMark, GrowingFile

_PAGE = 4096
_DISK = 2**21


def play(stage, before):
    result = stage.scene.run(stage.folder)
    where = f"{stage.scene.name}, {result.output}"
    stage.check_outputs(before, where)
    stage.check_others(before, where)
    if result.exit_code:
        cause_of(result)
    else:
        assert stage.scene.read(stage.folder) == stage.read, where
    return bool(result.exit_code)


@contextmanager
def longest_file(n_bytes):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SCENES)
def test_files_that_may_not_grow(name):
    stage, n_bytes, lacks_room = stage_of(name), 0, True
    while lacks_room:
        before = stage.reset()
        with stage.running():
            with longest_file(n_bytes):
                lacks_room = play(stage, before)
            stage.scene.run_again(stage.folder)
        assert stage.scene.read(stage.folder) == stage.read
        n_bytes = max(50, 3 * n_bytes)


def test_a_row_without_room_leaves_no_half_of_it(tmp_path):
    file = GrowingFile(tmp_path / "alerts.jsonl", FileMark())
    file.append("one\n", 1)
    with longest_file(6), refused(ErrorKind.UNWRITABLE, says=os.strerror(errno.EFBIG)):
        file.append("two\n", 1)
    assert file.path.read_text() == "one\n"
    file.append("three\n", 1)
    file.close()
    assert file.path.read_text() == "one\nthree\n"


@contextmanager
def small_disk(folder):
    """Mount a disk of 2 MiB in a folder; skip where that is not allowed."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("only root may mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SCENES)
def test_a_full_disk(name):
    stage, n_pages, lacks_room = stage_of(name), 0, True
    with small_disk(stage.folder):
        while lacks_room:
            stage.reset()
            free = os.statvfs(stage.folder).f_bavail * _PAGE
            ballast = stage.folder / "ballast"
            ballast.write_bytes(bytes(max(free - n_pages * _PAGE, 0)))
            before = stage.snapshot()
            with stage.running():
                lacks_room = play(stage, before)
                ballast.unlink()
                stage.scene.run_again(stage.folder)
            assert stage.scene.read(stage.folder) == stage.read
            n_pages = max(1, 2 * n_pages)
