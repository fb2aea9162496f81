"""What counts as the beginning of a drift, and what a stream does then."""

from pathlib import Path
from typing import Any

import pytest

from rareclass.errors import InputError
from rareclass.metrics.column_drift import ColumnShift
from rareclass.stream import loop as loop_module
from rareclass.stream import reading, state
from rareclass.stream.best_windows import Fall
from rareclass.stream.checkpoint import claimed, load_newest
from rareclass.stream.drift_alarm import DriftAlarm
from rareclass.stream.learners import parse_parameters, settled
from rareclass.stream.log import read_log
from rareclass.stream.loop import StreamLoop
from rareclass.stream.options import StreamOptions
from rareclass.stream.reading import Interruption
from stream.messy_stream import assert_same, messy_records, outcome, write_csv

FALL = Fall("auc", 0.7, 0.9, 1000, 0.1, 0.3)


def moves(names: str) -> list[ColumnShift]:
    return [ColumnShift(name, 0.5, 0.0) for name in names]


def test_it_rings_when_enough_columns_begin_to_move_or_a_measure_falls() -> None:
    alarm, rang = DriftAlarm(), []
    looks: list[tuple[str, list[Fall]]] = [
        ("", []), ("a", []), ("abc", []), ("abc", []), ("ab", [FALL]), ("ab", [FALL]),
        ("", []), ("abc", []), ("abcde", [FALL]),
    ]  # fmt: skip
    for n, (names, falls) in enumerate(looks):
        if alarm.rings(n, moves(names), falls, 10):
            rang.append(n)
        alarm = DriftAlarm.from_state(alarm.to_state())
    assert rang == [2, 4, 7, 8]
    assert (alarm.count, alarm.last) == (4, 8)


def options_for(source: Path, learner: str = "cbr", **more: Any) -> StreamOptions:
    given: dict[str, Any] = {
        "parameters": parse_parameters(learner, []), "id_column": "id", "window": 200, "top": 20,
        "every": 450, "report_every": 150, "on_drift": "reset",
    }  # fmt: skip
    return StreamOptions(str(source), "fraud", learner=learner, **(given | more))


def run(options: StreamOptions, folder: Path, stop_after: int | None = None) -> None:
    interruption = Interruption()
    with claimed(folder):
        loop = StreamLoop(options, folder, interruption)
        for event in loop.run():
            if stop_after is not None and event.rows >= stop_after:
                interruption.signal = 2
        loop.close()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("messy") / "rows.csv", messy_records(900, n_sure=250))


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "FIRST_ROWS", 200)
    monkeypatch.setattr(state, "LEAST_SEGMENT", 200)
    monkeypatch.setattr("rareclass.stream.column_drift.FEWEST_ROWS", 100)


def test_steps_are_reset_where_drift_begins_however_the_stream_is_cut(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(options_for(source, on_drift="report"), tmp_path / "reported")
    run(options_for(source), tmp_path / "whole")
    whole = outcome(tmp_path / "whole")
    log = read_log(tmp_path / "whole")
    assert log["resets"].to_pylist()[-1] >= 2
    assert set(log["last_reset"].to_pylist()) > {None, 400}
    # Where the source ends is chance: no reset there.
    assert whole["state"]["alarm"]["last"] % 200 == 0
    learned, only_reported = (
        whole["state"]["learner"]["state"],
        outcome(tmp_path / "reported")["state"]["learner"]["state"],
    )
    assert learned["covariance"].trace() > only_reported["covariance"].trace()
    monkeypatch.setattr(reading, "MOST_ROWS", 37)
    for stop_after in (399, 400, 401, 700, None):
        run(options_for(source), tmp_path / "stopped", stop_after)
    assert_same(outcome(tmp_path / "stopped"), whole)


def test_what_a_folder_does_on_drift_is_settled_when_it_begins(
    source: Path, tmp_path: Path
) -> None:
    run(options_for(source, "logistic"), tmp_path / "reset")
    run(options_for(source, "logistic", on_drift="report"), tmp_path / "report")
    for name in ("reset", "report"):
        assert settled("auto", "auto", tmp_path / name) == ("logistic", name)
        loaded = load_newest(tmp_path / name)
        assert loaded is not None
        assert ("alarm" in loaded.state) == (name == "reset")
    with pytest.raises(InputError, match="goes on with --on-drift report, but now it is reset"):
        run(options_for(source, "logistic"), tmp_path / "report")
    with pytest.raises(InputError, match="goes on with --on-drift reset, but now it is report"):
        run(options_for(source, "logistic", on_drift="report"), tmp_path / "reset")
    with pytest.raises(InputError, match="the steps of oam do not shrink"):
        settled("oam", "reset", tmp_path / "new")
