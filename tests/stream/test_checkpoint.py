"""Checkpoints: whole, without pickles, the last two kept, damage survived."""

import math
from pathlib import Path

import numpy as np
import pytest

from rareclass.errors import InputError
from rareclass.stream import checkpoint
from rareclass.stream.checkpoint import (
    checkpoints_in,
    load_checkpoint,
    load_newest,
    rows_of,
    save_checkpoint,
)
from stream.messy_stream import assert_same

STATE = {
    "weights": np.array([0.1, -0.0, np.nextafter(1, 2)]),
    "empty": np.empty((0, 3)),
    "flags": np.array([True, False]),
    "nested": {"a/b": {"": np.arange(3), "more": [1, "ä", None]}, "../x": np.zeros(1)},
    "generator": np.random.default_rng(3).bit_generator.state,
    "share": 0.1 + 0.2,
    "many": np.int64(7),
}


def test_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 12, STATE)
    assert (path.name, rows_of(path)) == ("checkpoint-000000000000012.npz", 12)
    assert_same(load_checkpoint(path), STATE)
    assert math.copysign(1.0, load_checkpoint(path)["weights"][1]) == -1.0


def test_the_last_two_are_kept_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-of-mine.npz").write_text("not ours")
    for rows in (0, 90, 1000, 20000):
        save_checkpoint(tmp_path, rows, STATE)
    assert [rows_of(path) for path in checkpoints_in(tmp_path)] == [20000, 1000]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "text"])
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    older = save_checkpoint(tmp_path, 5, STATE | {"rows": 5})
    newer = save_checkpoint(tmp_path, 9, STATE | {"rows": 9})
    content = bytearray(newer.read_bytes())
    if damage == "flipped":
        content[len(content) // 3] ^= 0xFF
    kept = {"cut": content[:-40], "empty": b"", "flipped": content, "text": b"hello"}[damage]
    newer.write_bytes(kept)
    loaded = load_newest(tmp_path)
    assert loaded is not None
    assert (loaded.path, loaded.damaged, loaded.state["rows"]) == (older, (newer,), 5)
    older.write_bytes(b"")
    with pytest.raises(InputError, match=r"No checkpoint in .* can be read"):
        load_newest(tmp_path)


def test_none_is_no_fault(tmp_path: Path) -> None:
    assert load_newest(tmp_path) is None
    assert load_newest(tmp_path / "absent") is None


def test_a_newer_format_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path, 5, STATE)
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    save_checkpoint(tmp_path, 9, STATE)
    monkeypatch.undo()
    with pytest.raises(InputError, match="has format 2, this version reads 1"):
        load_newest(tmp_path)


@pytest.mark.parametrize(
    "state", [{"a": np.array([object()])}, {"a": object()}, {1: 2}, {"a": np.array(["x"], object)}]
)
def test_objects_are_never_written(tmp_path: Path, state: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="a checkpoint cannot hold"):
        save_checkpoint(tmp_path, 1, state)
    assert not list(tmp_path.iterdir())
