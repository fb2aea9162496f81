"""The long runs for a few seconds, and their reading of memory."""

import pytest

from benchmarks.soak import serve, stream
from benchmarks.soak.memory import Memory


@pytest.mark.parametrize(("last", "grows"), [(104, False), (106, True)])
def test_memory_is_compared_between_the_middle_third_and_the_last(last, grows):
    memory = Memory(0)
    memory.readings = [10, 50, 90, 100, 100, 900, last, last, 1]
    assert memory.grows == grows
    assert memory.thirds == (100, last)


@pytest.mark.thorough
def test_a_stream_of_seconds(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(stream.Memory, "grows", False)  # it still warms up
    words = ["--minutes", "0.15", "--longest", "5", "--scratch", str(tmp_path)]
    assert stream.main(words) == 0
    said = capsys.readouterr().out
    assert "started: " in said
    assert "WRONG" not in said


@pytest.mark.thorough
def test_a_service_of_seconds(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(serve.Memory, "grows", False)
    monkeypatch.setattr("benchmarks.serving._ROWS", 2000)
    monkeypatch.setattr("benchmarks.serving._RARE", 100)
    assert serve.main(["--minutes", "0.05", "--scratch", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert " requests; " in said
    assert "WRONG" not in said
