"""Streams killed again and again for minutes: `python -m benchmarks.soak.stream --minutes 10`.

A thread appends rows to a CSV file, often half a row at a time: late labels, labels for nobody,
bad numbers, short rows, cells with line ends. Two processes of `rareclass stream --follow` learn
from it: one is left alone, and its memory is read; the other is killed by SIGKILL at random
moments, or stopped by SIGTERM or SIGINT, and started again. In the end both read on to the last
row, and a third process reads the whole file at once.

Ends with 1 where the last checkpoint, log, scores, alerts, rejected or contradicted rows of the two
differ in a bit from those of the third, a row is missing or there twice, a temporary file is left,
a traceback was printed, a process ended otherwise than it was told to, or memory of the last third
of the run is more than 5 percent beyond that of the middle third.
"""

import argparse
import csv
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import ROOT
from benchmarks.soak.memory import Memory, pause_of
from rareclass.stored import pack
from rareclass.stream.checkpoint import KINDS, load_newest
from rareclass.stream.log import CLOCK_COLUMNS, read_log, read_scores

_COLUMNS = ("id", "amount", "items", "country", "fraud")
_FIRST = 1500  # rows that are there from the start: they tell what the columns hold
_PAUSE = 0.05  # seconds between two pieces of the file
_FOLDER, _ALERTS, _ERRORS = "run", "alerts.jsonl", "stderr.txt"
_OPTIONS = (
    "--target", "fraud", "--id", "id", "--checkpoint", _FOLDER, "--alerts", _ALERTS,
    "--param", "policy=reservoir", "--hold", "500", "--every", "2000", "--report-every", "1000",
    "--window", "2000",
)  # fmt: skip
# Signals, how often each is sent, and how a process may end of it (also before it listens).
_SIGNALS = {
    signal.SIGKILL: (0.7, {-signal.SIGKILL}),
    signal.SIGTERM: (0.15, {128 + signal.SIGTERM, -signal.SIGTERM}),
    signal.SIGINT: (0.15, {128 + signal.SIGINT, -signal.SIGINT}),
}


class Records:
    """Records without end, as CSV; about a third get their label later, some are bad."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._late: list[tuple[int, list[str]]] = []  # row at which it is due
        self._n_rows = 0
        self.n_written = 0

    def text(self, n_rows: int, is_sure: bool = False) -> bytes:
        """The next rows, with what is due among them; sure ones have no text for a number."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        for _ in range(n_rows):
            self._n_rows += 1
            due = [record for row, record in self._late if row <= self._n_rows]
            self._late = [late for late in self._late if late[0] > self._n_rows]
            records = [self._record(is_sure), *due]
            writer.writerows(records)
            self.n_written += len(records)
        return lines.getvalue().encode()

    def _record(self, is_sure: bool) -> list[str]:
        draw = self._draw
        is_rare = draw.random() < 0.08
        land = "two\nlines" if draw.random() < 0.01 else f"L{draw.randrange(8)}"
        cells = [
            f"r{self._n_rows}", f"{draw.gauss(50 + 25 * is_rare, 10):.3f}",
            str(draw.randrange(1, 9)), land, str(int(is_rare)),
        ]  # fmt: skip
        which = draw.random()
        if which < 0.35:
            due = self._n_rows + 1 + int(draw.expovariate(0.02))
            if which < 0.3:
                self._late.append((due, [cells[0], "", "", "", cells[4]]))
            cells[4] = ""
        elif which < 0.40:
            return self._spoilt(cells, draw.randrange(4 if is_sure else 5))
        return cells

    @staticmethod
    def _spoilt(cells: list[str], kind: int) -> list[str]:
        return [
            cells[:3],
            [f"never-{cells[0]}", "", "", "", "1"],
            [cells[0], "inf", *cells[2:]],
            [*cells[:4], "maybe"],
            [cells[0], "about 40", *cells[2:]],
        ][kind]


class Growing(threading.Thread):
    """A thread that appends records at a rate, and cuts them anywhere."""

    def __init__(self, path: Path, records: Records, rate: float, seed: int) -> None:
        super().__init__(daemon=True)
        self._path, self._records, self._rate = path, records, rate
        self._draw = random.Random(seed)
        self._ending = threading.Event()
        first = (",".join(_COLUMNS) + "\n").encode() + records.text(_FIRST, is_sure=True)
        path.write_bytes(first)

    def run(self) -> None:
        """Append until `end`; the last record is whole."""
        kept, begun, n_rows = b"", time.monotonic(), 0
        with self._path.open("ab", buffering=0) as file:
            while not self._ending.wait(_PAUSE):
                more = int((time.monotonic() - begun) * self._rate) - n_rows
                n_rows += more
                kept += self._records.text(more)
                cut = self._draw.randint(0, len(kept))
                file.write(kept[:cut])
                kept = kept[cut:]
            file.write(kept)

    def end(self) -> None:
        """Write what is begun, and end."""
        self._ending.set()
        self.join()


class Stream:
    """Processes of one stream, one after the other, in a folder of its own."""

    def __init__(self, name: str, place: Path) -> None:
        self.name, self.place = name, place / name
        self._source = place / "rows.csv"
        (self.place / "temporary").mkdir(parents=True)
        self.faults: list[str] = []
        self.done = Counter[str]()

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """Begin, or go on."""
        words = [sys.executable, "-m", "rareclass.cli.main", "stream", str(self._source)]
        environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment["TMPDIR"] = str(self.place / "temporary")
        self.done["started"] += 1
        with (self.place / _ERRORS).open("ab") as errors:
            return subprocess.Popen(
                [*words, *_OPTIONS, *more], cwd=self.place, stdout=subprocess.DEVNULL,
                stderr=errors, env=os.environ | environment,
            )  # fmt: skip

    def stop(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        """Send a signal, and see it end so."""
        if process.poll() is None:
            process.send_signal(number)
            self.done[number.name] += 1
        self._check(process, _SIGNALS[number][1])

    def finish(self) -> None:
        """Read to the end of the file."""
        self._check(self.start(), {0})

    def _check(self, process: subprocess.Popen[bytes], right: set[int]) -> None:
        try:
            code = process.wait(300)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
            self.faults.append(f"{self.name}: a process did not end for 300 seconds")
        if code not in right:
            said = (self.place / _ERRORS).read_text()[-2000:]
            self.faults.append(f"{self.name}: a process ended with {code}: {said}")

    def outcome(self) -> dict[str, Any]:
        """All that must not depend on how the stream was run."""
        folder = self.place / _FOLDER
        loaded = load_newest(folder)
        if loaded is None:
            return {}
        del loaded.state.options["alerts"]  # its path: each stream has its own
        texts = [self.place / _ALERTS, folder / "rejected.jsonl", folder / "contradicted.jsonl"]
        return {
            "checkpoint": loaded.path.name,
            "state": pack(loaded.state, KINDS)._asdict(),
            "counters": vars(loaded.state.counters),
            "log": read_log(folder).drop_columns(list(CLOCK_COLUMNS)).to_pydict(),
            "scores": read_scores(folder).to_pydict(),
            **{path.stem: path.read_text().splitlines() for path in texts},
        }

    def left_over(self) -> list[str]:
        """What of files is left that should not be, and tracebacks."""
        hidden = [path for path in self.place.rglob(".*") if path.is_file()]
        found = [f"{path} is left" for path in (*hidden, *self.place.glob("temporary/*"))]
        if "Traceback" in (self.place / _ERRORS).read_text():
            found.append(f"{self.place / _ERRORS} has a traceback")
        return found


def differences(found: Any, expected: Any, where: str) -> list[str]:
    """Where nested dictionaries of arrays and plain values differ, to the last bit."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        return [
            place for k in expected for place in differences(found[k], expected[k], f"{where}.{k}")
        ]
    if isinstance(expected, np.ndarray) and isinstance(found, np.ndarray):
        same = (found.dtype, found.shape) == (expected.dtype, expected.shape)
        return [] if same and found.tobytes() == expected.tobytes() else [f"{where} differs"]
    return [] if repr(found) == repr(expected) else [f"{where} differs"]  # NaN is NaN


def missing_or_twice(outcome: dict[str, Any], n_written: int) -> list[str]:
    """Rows that were lost, or are in a table or journal twice."""
    counters, scored = outcome["counters"], outcome["scores"]["row"]
    alerted = [json.loads(line)["row"] for line in outcome["alerts"]]
    rejected = [(one["file"], one["line"]) for one in map(json.loads, outcome["rejected"])]
    found = []
    if counters["rows"] != n_written:
        found.append(f"{n_written:,} records were written, {counters['rows']:,} are counted")
    if len(scored) != counters["unlabelled"]:
        found.append(f"{len(scored):,} scores of {counters['unlabelled']:,} rows without a label")
    for what, rows in (("scores", scored), ("alerts", alerted), ("rejected", rejected)):
        found += [f"{what}: {row} is there twice" for row, n in Counter(rows).items() if n > 1]
    return found


def follow(args: argparse.Namespace, place: Path) -> tuple[list[Stream], Memory, int]:
    """Let two streams follow a file that grows; the streams, with memory and records written."""
    records = Records(args.seed)
    growing = Growing(place / "rows.csv", records, args.rate, args.seed)
    steady, killed = Stream("steady", place), Stream("killed", place)
    draw = random.Random(args.seed)
    left_alone, process = steady.start("--follow"), killed.start("--follow")
    memory = Memory(left_alone.pid)
    try:
        growing.start()
        end, due = time.monotonic() + 60.0 * args.minutes, time.monotonic()
        while time.monotonic() < end:
            until = min(end, time.monotonic() + draw.uniform(0.2, args.longest))
            while (now := time.monotonic()) < until and process.poll() is None:
                if now >= due:
                    memory.read()
                    due += pause_of(args.minutes)
                time.sleep(min(0.02, until - now))
            numbers = draw.choices(list(_SIGNALS), [share for share, _ in _SIGNALS.values()])
            killed.stop(process, numbers[0])
            process = killed.start("--follow")
        growing.end()
        steady.stop(left_alone, signal.SIGTERM)
        killed.stop(process, signal.SIGTERM)
    finally:
        for one in (left_alone, process):
            one.kill()
            one.wait()
    return [steady, killed], memory, records.n_written


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print memory, what was done, and what was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak.stream")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=500.0, help="rows a second")
    parser.add_argument("--longest", type=float, default=12.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scratch", type=Path, default=ROOT / "scratch" / "benchmarks")
    args = parser.parse_args(argv)
    # A shell that starts this in the background lets its processes ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    place = args.scratch.resolve() / "stream-soak"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    streams, memory, n_written = follow(args, place)
    whole = Stream("whole", place)
    for stream in (*streams, whole):
        stream.finish()
    expected = whole.outcome()
    faults = [*whole.faults, *missing_or_twice(expected, n_written), *whole.left_over()]
    for stream in streams:
        faults += [*stream.faults, *stream.left_over()]
        faults += differences(stream.outcome(), expected, stream.name)
    for what, n in sorted(streams[1].done.items()):
        print(f"{what}: {n:,}")
    for what in ("rejected", "alerts"):
        print(f"{what}: {len(expected[what]):,}")
    print(f"scores: {len(expected['scores']['row']):,}")
    print(f"{n_written:,} records; {memory}")
    for fault in faults:
        print(f"WRONG {fault}")
    return int(bool(faults) or memory.grows)


if __name__ == "__main__":
    sys.exit(main())
