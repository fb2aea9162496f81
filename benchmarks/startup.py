"""Seconds until rareclass is usable, in fresh processes: `python -m benchmarks.startup`.

Goals: ``import rareclass`` under 1 s, ``rareclass --help`` and ``--version`` under 0.3 s, scoring
one row of a table under 0.8 s by a model of any method, learning 300 rows with the defaults, from
the start of the process to the saved model, 5 s at most. One unmeasured run of each goes first, so
that byte code is compiled and files are in the page cache; the interpreter's own start is measured
beside them, and so is ``import sklearn.base``, which every scikit-learn estimator needs. Seconds of
processor time change less than those of the clock where the machine has other work.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import repeated

METHODS = ("auto", "rankrc", "mibc", "ordinal-rankrc")
ONE_ROW = (
    "rareclass score, one row of numbers",
    *(f"rareclass score, the same by {method}" for method in METHODS[1:]),
)
SCRIPT = str(Path(sys.executable).with_name("rareclass"))


def _commands(folder: Path) -> dict[str, tuple[list[str], float | None]]:
    """Name -> (command, goal in seconds)."""
    row = [str(folder / "row.csv"), "--out", str(folder / "scores.csv"), "--overwrite"]
    return {
        "python -c pass": ([sys.executable, "-c", "pass"], None),
        "import rareclass": ([sys.executable, "-c", "import rareclass"], 1.0),
        "import sklearn.base": ([sys.executable, "-c", "import sklearn.base"], None),
        "from rareclass import RankRC": (
            [sys.executable, "-c", "from rareclass import RankRC"],
            None,
        ),
        "from rareclass import RareClassifier": (
            [sys.executable, "-c", "from rareclass import RareClassifier"],
            None,
        ),
        "rareclass --version": ([SCRIPT, "--version"], 0.3),
        "rareclass --help": ([SCRIPT, "--help"], 0.3),
        **{
            name: ([SCRIPT, "score", str(folder / f"{method}.rareclass"), *row], 0.8)
            for name, method in zip(ONE_ROW, METHODS, strict=True)
        },
        "rareclass fit, 300 rows of 7 numbers": (
            [
                *[SCRIPT, "fit", str(folder / "300.csv"), "--target", "y"],
                *["--out", str(folder / "300.rareclass"), "--overwrite"],
            ],
            5.0,
        ),
    }


def _make_model(folder: Path) -> None:
    """Models of a few numbers, and a row to score."""
    rng = np.random.default_rng(0)
    y = np.arange(600) < 50
    table = np.column_stack([rng.normal(size=(600, 3)) + y[:, None], y])
    names = "a,b,c,y"
    np.savetxt(folder / "table.csv", table, "%.3f,%.3f,%.3f,%d", header=names, comments="")
    np.savetxt(folder / "row.csv", table[:1], "%.3f,%.3f,%.3f,%d", header=names, comments="")
    y = np.arange(300) < 30
    few = np.column_stack([rng.normal(size=(300, 7)) + y[:, None], y])
    names, cells = ",".join([*"abcdefg", "y"]), ",".join([*["%.3f"] * 7, "%d"])
    np.savetxt(folder / "300.csv", few, cells, header=names, comments="")
    fit = [SCRIPT, "fit", str(folder / "table.csv"), "--target", "y"]
    for method in METHODS:
        out = ["--method", method, "--out", str(folder / f"{method}.rareclass")]
        subprocess.run([*fit, *out], check=True, capture_output=True)


class _Seconds(NamedTuple):
    wall: float
    processor: float


def _measure(command: list[str], repeats: int, environment: dict[str, str]) -> list[_Seconds]:
    """Seconds of each of `repeats` fresh processes, after one warm-up."""
    seconds = []
    for attempt in range(repeats + 1):
        start, before = time.perf_counter(), _processor()
        subprocess.run(command, check=True, capture_output=True, env=environment)
        if attempt:
            seconds.append(_Seconds(time.perf_counter() - start, _processor() - before))
    return seconds


def _processor() -> float:
    """Seconds of processor time that processes took which this one started, and which ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure, print, write results/startup.json."""
    return repeated.command("startup", __doc__, (9, "processes per command"), _rows)


def _rows(folder: Path, repeats: int) -> list[dict[str, Any]]:
    _make_model(folder)
    rows: list[dict[str, Any]] = []
    # As an installed package has it: byte code is kept, whatever this process was told.
    environment = dict(os.environ) | {"PYTHONPYCACHEPREFIX": str(folder / "byte code")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for name, (command, goal) in _commands(folder).items():
        try:
            seconds = _measure(command, repeats, environment)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name:45} could not run: {error}")
            rows.append({"command": name, "error": type(error).__name__})
            continue
        median, processor = (statistics.median(each) for each in zip(*seconds, strict=True))
        verdict = "" if goal is None else f"goal < {goal} s: {'yes' if median < goal else 'NO'}"
        print(f"{name:45} {median:6.3f} s, processor {processor:6.3f} s   {verdict}")
        row = {"command": name, "median_seconds": median, "processor_seconds": processor}
        rows.append(row | {"seconds": [each.wall for each in seconds], "goal": goal})
    return rows


if __name__ == "__main__":
    sys.exit(main())
