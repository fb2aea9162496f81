"""The file of rejected rows: nothing twice, and a disk that is full."""

import errno
import json
import os
from pathlib import Path

import pytest

from rareclass.errors import InputError
from rareclass.stream import rejects
from rareclass.stream.rejects import RejectedFile
from rareclass.tables.batch import Rejected

ROWS = [Rejected("a.csv", line, "too short", "é" * 9) for line in (2, 5)]


def test_what_the_checkpoint_does_not_know_is_cut_off(tmp_path: Path) -> None:
    file = RejectedFile(tmp_path)
    file.add(ROWS[:1])
    state = file.to_state()
    file.add(ROWS[1:])
    file.close()
    again = RejectedFile.from_state(tmp_path, json.loads(json.dumps(state)))
    again.add(ROWS[1:])
    again.sync()
    again.close()
    lines = [json.loads(line) for line in again.path.read_text().splitlines()]
    assert lines == [row._asdict() for row in ROWS]
    assert (again.count, again.last) == (2, ROWS[1])
    again.path.write_text("")
    with pytest.raises(InputError, match="its checkpoint knows of"):
        RejectedFile.from_state(tmp_path, state)


def test_a_full_disk_is_told_of_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no disk that is always full")
    (tmp_path / rejects.REJECTED).symlink_to("/dev/full")
    opened = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, mode: opened(path, "wb" if mode == "ab" else mode)
    )
    file = RejectedFile(tmp_path)
    with pytest.raises(InputError, match=os.strerror(errno.ENOSPC)) as told:
        file.add(ROWS)
    assert "Make room on the disk" in told.value.remedy
    assert file.count == 0
    file.close()  # tries to write what is left, and may not
