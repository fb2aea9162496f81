"""RankRC on simulated rows: what `scale` and `peers` share."""

from pathlib import Path
from typing import Any

from benchmarks.cells import Cell
from benchmarks.process_memory import machine_bytes

LAM = 2.0**-8
TOL = "auto"  # the default
ENTRY_BYTES = 4  # float32 kernel
# What "all" adds to the kernel, so that everything else of a fit has room as well.
ROOM = 2**30


def kernel_bytes(rows: int, landmarks: int) -> int:
    """Size of the kernel between all rows and the landmarks."""
    return ENTRY_BYTES * rows * landmarks


def budget(memory: str, rows: int, landmarks: int) -> int | str:
    """The ``memory=`` of RankRC: "all" is enough for the whole kernel."""
    return kernel_bytes(rows, landmarks) + ROOM if memory == "all" else memory


def no_room(memory: str, rows: int, features: int, landmarks: int) -> str:
    """Why a kernel kept whole cannot be measured on this machine; empty when it can."""
    needed = kernel_bytes(rows, landmarks) + 2 * ENTRY_BYTES * rows * features + ROOM
    free = machine_bytes()
    if memory != "all" or not free or needed <= free:
        return ""
    return f"needs {needed / 2**30:.0f} GiB of memory, {free / 2**30:.0f} are free"


def fit_cell(
    key: str, data: str, method: str, scratch: Path, options: dict[str, Any], **more: Any
) -> Cell:
    """A cell that fits `method` on a prepared set."""
    arguments = {"data": data, "scratch": str(scratch), "name": method, "options": options}
    if "score" in more:
        arguments["score"] = more.pop("score")
    return Cell(key, "benchmarks.fitting:measure", arguments, **more)
