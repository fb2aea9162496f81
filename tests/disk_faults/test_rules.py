"""The rules behind it: what is left over goes, folders change places, faults that pass pass."""

import errno
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from disk_faults.refusals import Refusals, refusing_files
from faults import cause_of, refused
from rareclass import files
from rareclass.cli.command import app
from rareclass.errors import ErrorKind, system_faults
from rareclass.files import being_written, replacing, replacing_folder
from rareclass.model.archive import seal, write_archive
from rareclass.serving.live_model import LiveModel, ServedModel
from rareclass.stored import pack
from rareclass.stream.state import load_newest


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path):
    others = [".s-0123456789ab.parquet", ".s-0123456789a.csv", ".t-0123456789ab.csv", "s-1.csv"]
    for name in [*others, ".s-0123456789ab.csv"]:
        (tmp_path / name).write_text("half")
    (tmp_path / ".found-0123456789ab").mkdir()
    (tmp_path / ".found-0123456789ab" / "found.csv").write_text("half")
    with replacing(tmp_path / "s.csv") as temporary:
        temporary.write_text("whole")
    with replacing_folder(tmp_path / "found") as folder:
        (folder / "found.csv").write_text("whole")
    assert names(tmp_path) == sorted([*others, "s.csv", "found"])


def test_what_the_same_process_writes_stays(tmp_path):
    with being_written(tmp_path / "s.csv"), replacing(tmp_path / "s.csv") as outer:
        with replacing(tmp_path / "s.csv") as inner:
            inner.write_text("inner")
        outer.write_text("outer")
    assert (tmp_path / "s.csv").read_text() == "outer"
    assert names(tmp_path) == ["s.csv"]


@pytest.mark.parametrize("name", ["x" * 251 + ".csv", "ф" * 125 + ".csv", "." + "y" * 254])
def test_a_name_as_long_as_any_is_written_and_locked(tmp_path, name):
    assert len(os.fsencode(name)) in (254, 255)
    other = tmp_path / (name[:-5] + "z" + name[-4:])  # is written at the same time
    with replacing(tmp_path / name) as temporary, replacing(other) as beside:
        assert len([each for each in names(tmp_path) if each.endswith(".lock")]) == 2
        temporary.write_text("whole")
        beside.write_text("other")
    assert (tmp_path / name).read_text() == "whole"
    with replacing_folder(tmp_path / ("f" * 255)) as folder:
        (folder / "a.csv").write_text("whole")
    assert names(tmp_path) == sorted([name, other.name, "f" * 255])


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("fails", ["", "block", "rename"])
def test_a_folder_takes_the_place_of_another(tmp_path, monkeypatch, can_exchange, fails):
    out, real = tmp_path / "found", os.replace

    def write(content):
        with replacing_folder(out) as folder:
            (folder / "a.csv").write_text(content)
            if fails == "block" and content == "new":
                raise OSError(errno.ENOSPC, "no room")

    def replace(source, target):
        if fails == "rename" and Path(target) == out and "former" not in str(source):
            raise OSError(errno.EACCES, "no right")
        real(source, target)

    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
    write("old")
    monkeypatch.setattr(os, "replace", replace)
    is_refused = fails == "block" or (fails == "rename" and not can_exchange)
    if is_refused:
        with refused(ErrorKind.UNWRITABLE, says=str(out)):
            write("new")
    else:
        write("new")
    assert (out / "a.csv").read_text() == ("old" if is_refused else "new")
    assert names(tmp_path) == ["found"]


def test_a_folder_of_a_process_killed_between_two_renames_comes_back(tmp_path):
    (tmp_path / ".found-former").mkdir()
    (tmp_path / ".found-former" / "a.csv").write_text("old")
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "found"):
        raise ZeroDivisionError
    assert (tmp_path / "found" / "a.csv").read_text() == "old"
    assert names(tmp_path) == ["found"]


def test_a_lock_needs_no_room(tmp_path):
    with refusing_files(Refusals(tmp_path, 1, lasting=True)), being_written(tmp_path / "s.csv"):
        held = names(tmp_path)
    assert held == [".s.csv.lock"]
    assert names(tmp_path) == []


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES])
def test_a_model_that_cannot_be_opened_to_be_sealed_stays(tmp_path, code):
    path = tmp_path / "m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "content")
    before = path.read_bytes()
    choice = 2 if code == errno.EMFILE else 0
    said = os.strerror(code)
    with pytest.raises(OSError, match=said), refusing_files(Refusals(tmp_path, 0, choice=choice)):
        seal(path)
    assert path.read_bytes() == before


def test_a_checkpoint_that_cannot_be_read_now_is_not_damaged(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint-000000000000001.npz"
    write_archive(path, pack({"format": 0}))

    def unreadable(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("rareclass.model.archive.check_archive", unreadable)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        load_newest(tmp_path)
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("fault", [MemoryError(), OSError(errno.EMFILE, "too many open files")])
def test_a_service_tries_again_after_a_fault_of_the_machine(tmp_path, fault):
    path, faults = tmp_path / "m.rareclass", [fault]

    class Served(ServedModel):
        target, columns = "y", ()

        def __init__(self): ...

    def opened(_):
        if path.read_text() == "new" and faults:
            raise faults.pop()
        return Served()

    path.write_text("old")
    model = LiveModel(path, opened)
    before = model.now
    path.write_text("new")
    assert [model.look().outcome for _ in range(2)] == ["changing", "refused"]
    assert model.now is before
    assert [model.look().outcome for _ in range(2)] == ["loaded", "same"]
    assert model.now is not before


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (MemoryError(), ErrorKind.MEMORY),
        (OSError(errno.ENOSPC, "no room", "a.csv"), ErrorKind.UNWRITABLE),
        (OSError(errno.EIO, "broken"), ErrorKind.UNWRITABLE),
    ],
)
def test_a_fault_of_the_machine_is_a_sentence(monkeypatch, fault, kind):
    with refused(kind), system_faults():
        raise fault

    def fail(*_):
        raise fault

    monkeypatch.setattr("rareclass.opening.open_model", fail)
    assert cause_of(CliRunner().invoke(app, ["show", "m.rareclass"])).kind is kind


@pytest.mark.sampled(1)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that has no room")
@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_without_room_is_a_sentence(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rareclass", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_other_errors_keep_their_place():
    for fault in (FileNotFoundError(errno.ENOENT, "none"), BrokenPipeError(errno.EPIPE, "gone")):
        with pytest.raises(type(fault)), system_faults():
            raise fault
