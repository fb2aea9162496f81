"""Checkpoints and the files beside them: whole, without pickles, two kept, damage survived."""

import numpy as np
import pytest

from faults import refused
from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.errors import ErrorKind
from rareclass.model.targets import RareClassFacts
from rareclass.stream import state
from rareclass.stream.drift import BestWindows, ColumnCounts, DriftAlarm, Window
from rareclass.stream.log import REJECTED, FileMark, RejectedFile
from rareclass.stream.reading import DayColumn, Memory
from rareclass.stream.state import (
    Counters,
    SavedLearner,
    SavedStream,
    checkpoints_in,
    claimed,
    load_checkpoint,
    load_newest,
    save_checkpoint,
)
from rareclass.tables.text_reader import Rejected
from stream.messy_stream import assert_same

ROWS = [Rejected("a.csv", line, "too short", "é" * 9) for line in (2, 5)]


def state_of(rows=0, **changed):
    window = Window(4, 2)
    window.add([0.1, -0.0, np.nextafter(1, 2)], [True, False, True])
    parts = {
        "options": {"source": "a.csv", "parameters": {"C": 0.1 + 0.2}},
        "target": RareClassFacts("y", "ä", "0"),
        "encoder": OnlineEncoder(Schema("y", {"a/../b": "number", "land": "category"})),
        "learner": SavedLearner(3, {"coef": np.array([0.1, -0.0, np.nextafter(1, 2)])}),
        "ids": Memory(3),
        "window": window,
        "counters": Counters(rows=rows),
        "rejected": FileMark(2, 120, ROWS[1]),
        "drift": ColumnCounts(1000, 100.0),
        "best": BestWindows(),
        "alarm": DriftAlarm(),
        "alerts": None,
        "clock": DayColumn("t", None),
        "columns": None,
        "position": {"file": "a.csv", "byte": 2**40},
    }
    return SavedStream(**(parts | changed))


def test_comes_back_to_the_last_bit_and_objects_are_never_written(tmp_path):
    state = state_of(12)
    path = save_checkpoint(tmp_path, 12, state)
    assert path.name == "checkpoint-000000000000012.npz"
    assert_same(load_checkpoint(path), state)
    assert np.signbit(load_checkpoint(path).learner.state["coef"][1])
    with pytest.raises(TypeError, match=r"cannot store object: state\.options\.a"):
        save_checkpoint(tmp_path, 13, state_of(options={"a": object()}))
    assert [*tmp_path.iterdir()] == [path]


def test_the_last_two_are_kept_and_nothing_else_is_left(tmp_path):
    assert load_newest(tmp_path / "absent") is load_newest(tmp_path) is None
    (tmp_path / "checkpoint-of-mine.npz").write_text("not ours")
    for rows in (0, 90, 1000, 20000):
        save_checkpoint(tmp_path, rows, state_of(rows))
    assert [int(path.stem[-15:]) for path in checkpoints_in(tmp_path)] == [20000, 1000]
    kept = set(tmp_path.iterdir())
    assert len(kept) == 3
    for rows in (1000, 3000):  # what a killed process left of any goes with the next run
        (tmp_path / f".checkpoint-{rows:015d}.npz.lock").write_text("17")
        (tmp_path / f".checkpoint-{rows:015d}-0123456789ab.npz").write_text("half")
    with claimed(tmp_path):
        assert set(tmp_path.glob("*checkpoint*")) == kept


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "text"])
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path, damage):
    older = save_checkpoint(tmp_path, 5, state_of(5))
    newer = save_checkpoint(tmp_path, 9, state_of(9))
    content = bytearray(newer.read_bytes())
    if damage == "flipped":
        content[content.index(b"PK\x03\x04", 4) - 1] ^= 0xFF  # the end of what is stored first
    kept = {"cut": content[:-40], "empty": b"", "flipped": content, "text": b"hello"}[damage]
    newer.write_bytes(kept)
    loaded = load_newest(tmp_path)
    assert (loaded.path, loaded.damaged, loaded.state.counters.rows) == (older, (newer,), 5)
    older.write_bytes(b"")
    with refused(ErrorKind.DAMAGED_FILE, says="No checkpoint in"):
        load_newest(tmp_path)


def test_another_format_is_not_damage(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, 5, state_of(5))
    monkeypatch.setattr(state, "FORMAT", state.FORMAT + 1)
    save_checkpoint(tmp_path, 9, state_of(9))
    monkeypatch.undo()
    with refused(ErrorKind.FILE_FORMAT, value=state.FORMAT + 1):
        load_newest(tmp_path)


@pytest.mark.parametrize("other", [{"rows": 1}, "text", None])
def test_a_sound_file_that_is_no_stream_is_refused(tmp_path, other):
    path = save_checkpoint(tmp_path, 1, other)
    with refused(ErrorKind.DAMAGED_FILE, says=path.name):
        load_newest(tmp_path)


def test_rows_that_the_checkpoint_does_not_know_are_cut_off(tmp_path):
    path = tmp_path / REJECTED
    file = RejectedFile(path, FileMark())
    file.add(ROWS[:1])
    mark = file.mark
    file.add(ROWS[1:])
    file.close()
    again = RejectedFile(path, mark)
    again.add(ROWS[1:])
    again.sync()
    again.close()
    assert len(path.read_text().splitlines()) == 2
    assert again.mark == file.mark
    path.write_text("")
    with refused(ErrorKind.DAMAGED_FILE, says="0 bytes"):
        RejectedFile(path, mark)
