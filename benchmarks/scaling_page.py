"""How a fit on workers grows, as one page: `python -m benchmarks.scaling_page`.

Reads benchmarks/results/distributed.json, works a few constants out of it, and writes
docs/scaling.md: the model, its figures beside the measured ones, and what it says of sizes that
nobody has measured here.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
FEATURES, LANDMARKS, PASSES = 40, 1000, 5
# Bytes a row in the process of the user at the peak of a fit of RankRC, as `client_bytes` finds.
MILLION, BILLION = 10**6, 10**9


class Constants(NamedTuple):
    """Seconds, from measurements on this machine."""

    entry: float  # of one thread, for a kernel entry in a pass
    fixed: float  # of the process of the user, whatever the rows
    row: float  # of the process of the user, for each row
    a_pass: float  # of a pass besides work
    a_worker: float  # of each worker in it
    cell: float  # of reading a feature of a row, by one worker

    def fit(self, rows: float, landmarks: int, passes: float, workers: int) -> float:
        """Seconds of a fit of RankRC for one lam, from rows that are on their workers."""
        work = passes * rows * landmarks * self.entry / workers
        return self.fixed + self.row * rows + work + passes * self.overhead(workers)

    def overhead(self, workers: int) -> float:
        """Seconds of a pass in which nobody waits for work."""
        return self.a_pass + self.a_worker * workers


def constants(runs: list[Run]) -> Constants:
    """From the fits of two sizes in memory, those of Dask, and the passes of nothing."""
    known = {run["key"]: run for run in summaries(runs) if run["status"] == "ok"}
    empty = [run for key, run in known.items() if key.startswith("pass / ")]
    workers = np.array([int(run["place"].split()[1]) for run in empty])
    slope, start = np.polyfit(workers, [run["seconds"] for run in empty], 1)
    small, large = sorted(
        (run for run in known.values() if run["what"] == "fit" and "2 workers" in run["place"]),
        key=lambda run: run["rows"],
    )
    one = next(
        run
        for run in known.values()
        if run["what"] == "fit" and "1 worker" in run["place"] and run["rows"] == large["rows"]
    )
    entry = one["work_seconds"] / (one["passes"] * one["rows"] * LANDMARKS)
    here = [run["seconds"] - run["asked_seconds"] for run in (small, large)]
    row = max((here[1] - here[0]) / (large["rows"] - small["rows"]), 0.0)
    cell = one["load_seconds"] / (one["rows"] * FEATURES)
    fixed = max(here[0] - row * small["rows"], 0.0)
    return Constants(entry, fixed, row, float(start), max(float(slope), 0.0), cell)


def page(result: dict[str, Any]) -> str:
    """The whole page."""
    runs = result["runs"]
    c = constants(runs)
    return TEXT.format(
        cores=result["cores"],
        entry=f"{c.entry * 1e9:.2f}",
        fixed=f"{c.fixed:.1f}",
        row=f"{c.row * 1e6:.2f}",
        a_pass=f"{c.a_pass * 1e3:.0f}",
        a_worker=f"{c.a_worker * 1e3:.1f}",
        cell=f"{c.cell * 1e9:.0f}",
        checked=_checked(runs, c),
        ahead=_ahead(c),
        hundred=f"{c.row * 10 * BILLION / 60:.0f}",
        work=f"{PASSES * 10 * BILLION * LANDMARKS * c.entry / 100 / 60:.0f}",
        memory=f"{CLIENT_BYTES * 10 * BILLION / 2**30:,.0f}",
        client=CLIENT_BYTES,
        most=f"{24 * 2**30 / CLIENT_BYTES / MILLION:,.0f}",
        kernel=f"{4 * 10 * BILLION * LANDMARKS / 100 / 2**30:,.0f}",
        features=f"{4 * 10 * BILLION * FEATURES / 100 / 2**30:,.0f}",
    )


# Measured by `client_bytes` below; written here so that the page needs no cluster.
CLIENT_BYTES = 45


def _checked(runs: list[Run], c: Constants) -> str:
    body = []
    for run in summaries(runs):
        if run["status"] != "ok" or run["what"] != "fit" or "dask" not in run["place"]:
            continue
        n_workers = int(run["place"].split()[1])
        told = c.fit(run["rows"], LANDMARKS, run["passes"], n_workers)
        ratio = f"{told / run['seconds']:.2f}"
        name = [f"{run['rows']:,}", str(n_workers), f"{run['passes']:.0f}"]
        body.append([*name, f"{run['seconds']:.1f}", f"{told:.1f}", ratio])
    return table(["rows", "workers", "passes", "measured s", "by the model s", "ratio"], body)


def _ahead(c: Constants) -> str:
    body = []
    for rows, n_workers in (
        (100 * MILLION, 10), (BILLION, 10), (BILLION, 100), (10 * BILLION, 100),
    ):  # fmt: skip
        whole = c.fit(rows, LANDMARKS, PASSES, n_workers)
        here = c.fixed + c.row * rows
        work = PASSES * rows * LANDMARKS * c.entry / n_workers
        read = rows * FEATURES * c.cell / n_workers
        body.append(
            [
                f"{rows:,}",
                str(n_workers),
                f"{read:,.0f}",
                f"{whole:,.0f}",
                f"{work:,.0f}",
                f"{PASSES * c.overhead(n_workers):.1f}",
                f"{here:,.0f}",
                f"{CLIENT_BYTES * rows / 2**30:,.0f}",
            ]
        )
    header = [
        "rows", "workers", "reading s", "fit s", "of it work s", "overhead s", "here s",
        "memory here GiB",
    ]  # fmt: skip
    return table(header, body)


TEXT = (
    (
        """# Time on workers

Made by `python -m benchmarks.scaling_page` from `benchmarks/results/distributed.json`, whose
figures are in [the benchmark](performance.md). How to learn on a cluster is in
[Past one machine](clusters.md).

For n rows, d features, l landmarks, w workers of one thread, and p passes (four to six for a
single lam on many rows: most of the way is made on a part of the rows that is brought here), the
seconds of a fit of RankRC are the sum of

- work: p n l / w times {entry} ns, for a kernel entry in a pass at {features_count} features
- a pass besides work: {a_pass} ms, and {a_worker} ms a worker (all of them on {cores} cores)
- here, in the process of the user: {fixed} s for landmarks, their factorisation and the part,
  and {row} µs a row for labels and the threshold

Reading takes n d / w times {cell} ns before that, from binary files on the same disk. Memory here
is {client} bytes a row at the peak. Beside what was measured, on which the constants rest:

{checked}

What the model says of {features_count} features, 1,000 landmarks and {passes} passes, nothing of
it measured:

{ahead}

## 10 billion rows on 100 workers

The work of a fit is {work} minutes. A kernel of {kernel} GiB a worker is not kept but worked out
again in each pass, and features of {features} GiB a worker are read from its disk each time, which
the model does not count. What ends it first is the process of the user: labels, row numbers and
scores of {memory} GiB, and {hundred} minutes of work on them that no worker shares. In 24 GiB
there is room for about {most} million rows. To go further, labels would have to stay on the workers
as the features do ([decision 0036](decisions/0036-rows-in-parts.md)).
"""
    )
    .replace("{features_count}", str(FEATURES))
    .replace("{passes}", str(PASSES))
)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page."""
    result = json.loads((record.RESULTS / "distributed.json").read_text())
    record.replace_file(PAGE, page(result).encode())
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
