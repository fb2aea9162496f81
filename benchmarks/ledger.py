"""The results of a benchmark on disk, written after every run so that an end loses nothing.

The file is what `benchmarks.record` writes (versions, cores, date) with every single run: key,
number of the repeat, date, status and what was measured. Started again, a benchmark goes on where
it ended.
"""

import json
import math
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import record

Run = dict[str, Any]


class Ledger:
    """The runs of one benchmark.

    Parameters
    ----------
    name : str
        Of the benchmark.
    file : str, Path or None
        None is results/NAME.json.
    parameters : dict
        Options of the command, kept in the file.
    """

    def __init__(self, name: str, file: str | Path | None, parameters: dict[str, Any]) -> None:
        self.name = name
        self.path = record.RESULTS / f"{name}.json" if file is None else Path(file)
        self.parameters = parameters
        self.runs: list[Run] = []
        if self.path.is_file():
            self.runs = json.loads(self.path.read_text()).get("runs", [])

    def add(self, key: str, repeat: int, about: dict[str, Any], outcome: Run) -> Run:
        """Append a run and write the file. A run of the same key and repeat is replaced."""
        date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        run = {"key": key, "repeat": repeat, "date": date, **about, **outcome}
        self.runs = [r for r in self.runs if (r["key"], r["repeat"]) != (key, repeat)] + [run]
        record.write(self.name, {"parameters": self.parameters, "runs": self.runs}, self.path)
        return run

    def forget(self, keys: Collection[str]) -> None:
        """Drop every run of these cells."""
        self.runs = [run for run in self.runs if run["key"] not in keys]

    def has(self, key: str, repeat: int, limit: float = 0.0) -> bool:
        """Say whether this run is there and ended on its own or at its limit (not by a fault).

        One that was stopped earlier than after `limit` seconds is not there.
        """
        done = ("ok", "stopped", "skipped")
        return any(
            (r["key"], r["repeat"]) == (key, repeat)
            and r["status"] in done
            and not (r["status"] == "stopped" and r.get("limit", math.inf) < limit)
            for r in self.runs
        )

    def of(self, key: str) -> list[Run]:
        """All runs of a cell."""
        return [run for run in self.runs if run["key"] == key]


def summaries(runs: list[Run]) -> list[Run]:
    """One line a cell, in order of first appearance.

    The line is the last finished run with ``seconds`` the median of the finished runs,
    ``min_seconds``, ``n_runs`` and ``peak_beyond_input`` the largest; a cell without a finished
    run keeps its status.
    """
    lines: dict[str, Run] = {}
    for key in dict.fromkeys(run["key"] for run in runs):
        own = [run for run in runs if run["key"] == key]
        finished = [run for run in own if run["status"] == "ok"]
        lines[key] = dict(finished[-1] if finished else own[-1])
        if not finished:
            continue
        lines[key]["n_runs"] = len(finished)
        if "seconds" in finished[0]:
            seconds = [run["seconds"] for run in finished]
            lines[key] |= {"seconds": median(seconds), "min_seconds": min(seconds)}
        if "peak_beyond_input" in finished[0]:
            lines[key]["peak_beyond_input"] = max(run["peak_beyond_input"] for run in finished)
    return list(lines.values())
