"""Two processes and one file: the second is told who has it, and a dead one stops nobody."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from rareclass.errors import InputError
from rareclass.files import check_writable, replacing, replacing_folder
from rareclass.model.archive import write_archive
from rareclass.stored import Stored
from rareclass.stream.state import claimed

_HOLD = """
import sys, time
from pathlib import Path
from rareclass.files import being_written, lock_file
what = Path(sys.argv[1])
if sys.argv[2] == "folder":
    what.mkdir(exist_ok=True)
    held = lock_file(what / sys.argv[3], "it")
    print("held", flush=True)
    time.sleep(60)
with being_written(what):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def other_process(path, *words):
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path), *(words or ("file",))],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout.readline() == "held\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def test_a_file_that_another_process_writes(tmp_path):
    out = tmp_path / "scores.csv"
    with other_process(out) as child:
        said = rf"scores\.csv is in use by another running rareclass, process {child.pid}\."
        with pytest.raises(InputError, match=said), replacing(out):
            pass
        assert not out.exists()
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        # What it leaves behind stops nobody, and goes.
        assert (tmp_path / ".scores.csv.lock").exists()
        with replacing(out) as temporary:
            temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


def test_a_folder_of_a_stream_names_the_process(tmp_path):
    from rareclass.stream.state import LOCK

    folder = tmp_path / "run"
    with other_process(folder, "folder", LOCK) as child:
        said = rf"folder=.*run'\) is in use by another running rareclass, process {child.pid}\."
        with pytest.raises(InputError, match=said), claimed(folder):
            pass
    with claimed(folder):
        pass


def test_a_folder_that_cannot_be_written_to_says_so_itself(tmp_path):
    with pytest.raises(InputError, match="does not exist"), replacing(tmp_path / "no" / "f.csv"):
        pass


@pytest.mark.thorough
def test_many_processes_write_one_file_one_after_the_other(tmp_path):
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from rareclass.errors import InputError\nfrom rareclass.files import being_written\n"
        "path, done = Path(sys.argv[1]), 0\n"
        "while done < 20:\n"
        "    try:\n"
        "        with being_written(path):\n"
        "            before = int(path.read_text() or 0)\n"
        "            time.sleep(0.001)\n"
        "            path.write_text(str(before + 1))\n"
        "            done += 1\n"
        "    except InputError:\n"
        "        time.sleep(0.001)\n"
    )
    path = tmp_path / "count"
    path.write_text("0")
    children = [subprocess.Popen([sys.executable, "-c", script, str(path)]) for _ in range(4)]
    end = time.monotonic() + 120
    assert [child.wait(end - time.monotonic()) for child in children] == [0] * 4
    assert path.read_text() == "80"


def written_to(path, kind):
    """Write a file or folder anew, by one of the ways that replace files."""
    if kind == "archive":
        write_archive(path, Stored({}, {}))
    elif kind == "folder":
        with replacing_folder(path) as folder:
            (folder / "f").write_text("new")
    else:
        check_writable(path, "--out")
        with replacing(path, like=path if kind == "checkpoint" else None) as temporary:
            assert not path.exists() or temporary.stat().st_mode & 0o077 == 0
            temporary.write_text("new")


@pytest.mark.parametrize("kind", ["file", "archive", "checkpoint", "folder"])
@pytest.mark.parametrize("links", [0, 1, 2])
@pytest.mark.parametrize("mode", [None, 0o600, 0o640, 0o644, 0o444, 0o666])
def test_what_is_replaced_keeps_its_mode_and_its_links(tmp_path, kind, links, mode):
    real = path = tmp_path / "home" / "it"
    file = real / "f" if kind == "folder" else real
    real.parent.mkdir()
    if mode is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_text("old")
        file.chmod(mode)
        file.parent.chmod(0o700)
    for k in range(links):
        (tmp_path / f"link {k}").symlink_to(path)
        path = tmp_path / f"link {k}"
    before = os.umask(0o027)
    try:
        written_to(path, kind)
    finally:
        os.umask(before)
    assert path.is_symlink() == bool(links)
    assert file.read_bytes() != b"old"
    assert file.stat().st_mode & 0o777 == (mode or 0o640)
    if kind == "folder":
        assert real.stat().st_mode & 0o777 == (0o700 if mode else 0o750)
    assert [each.name for each in real.parent.iterdir()] == ["it"]
