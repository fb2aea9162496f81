"""One process a cell, which says the outcome of each split as soon as it has it."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from benchmarks.cells import ROOT, Cell, Group, end_of
from benchmarks.ledger import Ledger, Run

_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_all(groups: Sequence[Group], ledger: Ledger, jobs: int) -> None:
    """Run every cell with splits that the ledger does not have, `jobs` at a time."""
    lock = Lock()
    living: set[subprocess.Popen[str]] = set()

    def run(cell: Cell, missing: list[int]) -> None:
        for outcome in outcomes(cell, missing, living):
            with lock:
                number = outcome.pop("split")
                done = ledger.add(cell.key, number, dict(cell.about), {"threads": 1, **outcome})
                print(f"{cell.key}, split {number}: {_in_words(done)}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(run, cell, missing)
            for group in groups
            for cell in group.cells
            if (missing := missing_splits(cell, group.repeats, ledger))
        ]
        try:
            for one in running:
                one.result()
        except BaseException:  # ended from outside, it ends its processes as well
            pool.shutdown(wait=False, cancel_futures=True)
            for process in living:
                process.kill()
            raise


def missing_splits(cell: Cell, n_splits: int, ledger: Ledger) -> list[int]:
    """The splits still to measure: none after one that was stopped at a limit no lower."""
    limits = [run["limit"] for run in ledger.of(cell.key) if run["status"] == "stopped"]
    if limits and max(limits) >= cell.limit:
        return []
    done = {run["repeat"] for run in ledger.of(cell.key) if run["status"] == "ok"}
    return [number for number in range(n_splits) if number not in done]


def outcomes(
    cell: Cell, numbers: Sequence[int], living: set[subprocess.Popen[str]]
) -> Iterator[dict[str, Any]]:
    """What the process says of each split; then, where it did not come to its end, why."""
    order = {"function": cell.function, "arguments": {**cell.arguments, "numbers": numbers}}
    order["arguments"] |= {"threads": 1, "limit": cell.limit}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.cells"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env=dict(os.environ) | _THREADS,
            text=True,
        )
        living.add(process)
        left = list(numbers)
        try:
            process.stdin.write(json.dumps(order))
            process.stdin.close()
            for line in process.stdout:
                if line.startswith('{"split"'):
                    outcome = json.loads(line)
                    left.remove(outcome["split"])
                    yield outcome
            code = process.wait()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            living.discard(process)
        if code != 0 and left:
            errors.seek(0)
            yield {"split": left[0], **end_of(code, errors.read(), cell.limit)}


def _in_words(run: Run) -> str:
    if run["status"] == "stopped":
        return f"stopped after {run['limit']:.0f} s"
    if run["status"] != "ok":
        return f"{run['status']}: {run.get('message', '')}"
    return f"{run['seconds']:.2f} s, AUC {run['auc']:.4f}, AP {run['average_precision']:.4f}"
